package reddit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/polite"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/policy"
)

func TestSpacing(t *testing.T) {
	// What prawcore's rate_limit.py gives for 20 requests fewer, or a tenth of the window, then the edges.
	for _, tt := range []struct {
		used, remaining, reset int
		want                   float64
	}{
		{21, 979, 599, 0}, {23, 977, 599, 0.8}, {120, 880, 541, 1}, {520, 480, 300, 0}, {521, 479, 301, 1.6},
		{20, 80, 590, 10}, {10, 90, 590, 0}, {11, 89, 599, 5},
		{20, 580, 600, 0}, {21, 975, 600, 600. / 996}, {3, 9997, 599, 0}, {0, 1, 0, 0},
	} {
		got := spacing(tt.used, tt.remaining, tt.reset).Seconds()
		if math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("spacing(%d, %d, %d) = %v s, want %v", tt.used, tt.remaining, tt.reset, got, tt.want)
		}
	}
}

func rates(used, remaining, reset string) http.Header {
	h := http.Header{}
	h.Set("x-ratelimit-used", used)
	h.Set("x-ratelimit-remaining", remaining)
	h.Set("x-ratelimit-reset", reset)
	return h
}

func TestBudget(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	known := budget{used: 990, remaining: 2, resetAt: now.Add(40 * time.Second)}
	tests := []struct {
		name   string
		before budget
		header http.Header
		want   time.Duration
		after  budget
	}{
		{"float string", budget{}, rates("23", "977.0", "599"), 800 * time.Millisecond,
			budget{23, 977, now.Add(600 * time.Second)}},
		{"nothing left, at the window's end", budget{}, rates("1000", "0.0", "0"), time.Second,
			budget{1000, 0, now.Add(time.Second)}},
		{"a fraction left is nothing", budget{}, rates("1000", "0.9", "7"), 8 * time.Second,
			budget{1000, 0, now.Add(8 * time.Second)}},
		{"huge reset", budget{}, rates("1000", "0", "86400"), 24*time.Hour + time.Second,
			budget{1000, 0, now.Add(24*time.Hour + time.Second)}},
		{"never seen", budget{}, http.Header{}, 0, budget{}},
		{"missing is counted", known, http.Header{}, 0, budget{991, 1, known.resetAt}},
		{"counted to the end", budget{999, 1, known.resetAt}, http.Header{}, 40 * time.Second,
			budget{1000, 0, known.resetAt}},
		{"counted beyond the reset", budget{1000, 0, now.Add(-time.Second)}, http.Header{}, 0,
			budget{1, 999, now.Add(599 * time.Second)}},
		{"counted at the reset", budget{590, 10, now}, http.Header{}, 0, budget{1, 599, now.Add(600 * time.Second)}},
		{"counted beyond several", budget{9000, 1000, now.Add(-1300 * time.Second)}, http.Header{}, 0,
			budget{1, 9999, now.Add(500 * time.Second)}},
		{"a window of one", budget{1, 0, now.Add(-time.Second)}, http.Header{}, 599 * time.Second,
			budget{1, 0, now.Add(599 * time.Second)}},
		{"beyond all days", budget{}, rates("1000", "0", "4000000000"), 1_000_001 * time.Second,
			budget{1000, 0, now.Add(1_000_001 * time.Second)}},
		{"one missing", known, http.Header{"X-Ratelimit-Used": {"1"}}, 0, budget{991, 1, known.resetAt}},
		{"no numbers", known, rates("NaN", "x", ""), 0, budget{991, 1, known.resetAt}},
		{"out of range", known, rates("1", "1e300", "Inf"), 0, budget{991, 1, known.resetAt}},
		{"negative", budget{}, rates("-5", "-1.0", "-3"), time.Second, budget{0, 0, now.Add(time.Second)}},
	}
	for _, tt := range tests {
		b := tt.before
		if got := b.observe(&http.Response{Header: tt.header}, now).Sub(now); got != tt.want || b != tt.after {
			t.Errorf("%s: observe = %v, %+v; want %v, %+v", tt.name, got, b, tt.want, tt.after)
		}
	}
}

// paceOptions adds what OnWait is told to w. Requests to the API go out one at a time.
func paceOptions(perMinute float64, w *[]polite.Wait) Options {
	o := testOptions()
	o.Policy.Reddit.RequestsPerMinute = perMinute
	o.retryWait = time.Second
	o.OnWait = func(x polite.Wait) { *w = append(*w, x) }
	return o
}

// TestBurst: a client that has rested sends a few requests at once, and never more in a minute than
// the policy allows, whenever it asks.
func TestBurst(t *testing.T) {
	for _, tt := range []struct {
		perMinute float64
		burst     int
	}{{100, 20}, {60, 20}, {30, 10}, {5, 1}, {1, 1}, {0.5, 1}} {
		bubble(t, fmt.Sprint(tt.perMinute), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			s := api(func(int, *http.Request) answer { return reply(200, listing("a1")) })
			c := s.client(t, paceOptions(tt.perMinute, new([]polite.Wait)))
			start := time.Now()
			for i := range 4 * int(tt.perMinute+1) {
				if i == 3*int(tt.perMinute+1) { // a rest, then a burst again
					time.Sleep(5 * time.Minute)
					start = time.Now()
				} else if i/int(tt.perMinute+1) == 2 {
					time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Minute / time.Duration(tt.perMinute+1)))))
				}
				mustAsk(t, c)
			}
			var all []time.Time
			for _, r := range s.seen {
				all = append(all, r.at)
			}
			minute, first, bursts := max(int(tt.perMinute), 1), 0, [2]int{}
			for i, from := range all {
				for k, begin := range []time.Time{all[0], start} {
					if d := from.Sub(begin); 0 <= d && d < time.Millisecond {
						bursts[k]++
					}
				}
				if from.Sub(all[0]) < time.Minute {
					first++
				}
				for j, to := range all[i:] {
					d := to.Sub(from)
					if limit := float64(tt.burst) + d.Seconds()*tt.perMinute/60; float64(j+1) > limit+1e-6 ||
						d < time.Minute && j >= minute {
						t.Fatalf("%d requests within %v", j+1, d)
					}
				}
			}
			if bursts != [2]int{tt.burst, tt.burst} || first != minute {
				t.Errorf("bursts of %d, %d requests in the first minute; want %d and %d", bursts, first, tt.burst, minute)
			}
		})
	}
}

func TestRateHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w []polite.Wait
		headers := [][]string{{"23", "977.0", "599"}, {"1000", "0.0", "0"}, {"1000", "0.0", "300"}, {"1", "999.0", "599"},
			{"1", "999", "599"}}
		s := api(func(n int, _ *http.Request) answer {
			h := headers[n]
			return reply(200, listing("a1"), "X-Ratelimit-Used", h[0], "X-Ratelimit-Remaining", h[1], "X-Ratelimit-Reset",
				h[2])
		})
		c := s.client(t, paceOptions(60e6, &w))
		start := time.Now()
		for range headers {
			mustAsk(t, c)
		}
		s.askedAt(t, apiHost, start, 0, 0.8, 1.8, 302.8, 302.8)
		if diff := cmp.Diff([]polite.Wait{{Host: apiHost, Reason: waitRateLimit, For: 301 * time.Second}}, w); diff != "" {
			t.Errorf("OnWait (-want +got):\n%s", diff)
		}
	})
}

// TestTooManyRequests: the three kinds of 429, and what else means the same.
func TestTooManyRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  answer
		want   float64 // seconds until the next attempt
		reason string  // "" when the wait is too short to be told
	}{
		{"html with retry-after", reply(429, "<html>whoa there, pardner!", "Retry-After", "4"), 4.2, waitRetryAfter},
		{"json without", reply(429, `{"message": "Too Many Requests", "error": 429}`), 1, ""},
		{"empty with rate headers", reply(429, "", "X-Ratelimit-Used", "1000", "X-Ratelimit-Remaining", "0.0",
			"X-Ratelimit-Reset", "120"), 121, waitRateLimit},
		{"empty at the reset", reply(429, "", "X-Ratelimit-Used", "1000", "X-Ratelimit-Remaining", "0.0",
			"X-Ratelimit-Reset", "0"), 1, ""},
		{"date", reply(429, "", "Retry-After", "Sat, 01 Jan 2000 00:05:00 GMT"), 300.5, waitRetryAfter},
		{"date in the past", reply(429, "", "Retry-After", "Sat, 01 Jan 1999 00:05:00 GMT"), 0.5, ""},
		{"date by the host's clock", reply(429, "", "Retry-After", "Fri, 01 Jan 1999 00:05:00 GMT", "Date",
			"Fri, 01 Jan 1999 00:04:00 GMT"), 60.5, waitRetryAfter},
		{"nonsense", reply(429, "", "Retry-After", "soon"), 1, ""},
		{"403 with retry-after", reply(403, "<html>", "Retry-After", "9"), 9.45, waitRetryAfter},
		{"414 with retry-after 0", reply(414, "", "Retry-After", "0"), 0.5, ""},
		{"503 with retry-after", reply(503, "", "Retry-After", "60"), 60.5, waitRetryAfter},
		{"empty with a reset that is just bearable",
			reply(429, "", "X-Ratelimit-Used", "1000", "X-Ratelimit-Remaining", "0.0", "X-Ratelimit-Reset", "899"), 900,
			waitRateLimit},
		{"500", reply(500, ""), 0.5, ""},
		{"just bearable", reply(429, "", "Retry-After", "900"), 900.5, waitRetryAfter},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var w []polite.Wait
			s := api(func(n int, _ *http.Request) answer {
				if n == 0 {
					return tt.first
				}
				return reply(200, listing("a1"))
			})
			c := s.client(t, paceOptions(60e6, &w))
			start := time.Now() // synctest starts at midnight UTC, 2000-01-01
			mustAsk(t, c)
			s.askedAt(t, apiHost, start, 0, tt.want)
			var told string
			for _, x := range w {
				told = x.Reason
			}
			if told != tt.reason || len(w) > 1 {
				t.Errorf("OnWait was told %v, want one wait for %q", w, tt.reason)
			}
		})
	}
}

// TestTooLong: a pause that is longer than a run waits ends the asking at once, however Reddit asks for it, and says
// when the next run is worth it. What was answered before it counts.
func TestTooLong(t *testing.T) {
	used := []string{"X-Ratelimit-Used", "1000", "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "999999"}
	for name, tt := range map[string]struct {
		answer   answer
		answered int
		wait     time.Duration
		says     string
	}{
		"Retry-After": {reply(429, "", "Retry-After", "999999999999"), 0, 365 * 24 * time.Hour,
			"asks to wait 8760h0m"},
		"100000 s": {reply(503, "", "Retry-After", "100000"), 0, 100000 * time.Second,
			"again after 2000-01-02 03:47 UTC"},
		"nothing left":         {reply(200, listing("a1"), used...), 1, 1000000 * time.Second, "asks to wait 277h46m40s"},
		"nothing left, by 429": {reply(429, "", used...), 0, 1000000 * time.Second, "again after 2000-01-12 13:47 UTC"},
		"nothing left, by 503": {reply(503, "", used...), 0, 1000000 * time.Second, "again after 2000-01-12 13:47 UTC"},
	} {
		bubble(t, name, func(t *testing.T) {
			s := api(func(int, *http.Request) answer { return tt.answer })
			c := s.client(t, testOptions())
			start := time.Now()
			for i := range 3 { // the next Ask must not even ask
				_, err := c.Ask(t.Context(), ids("a1"))
				if i < tt.answered {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				var long *Unreachable
				if !errors.As(err, &long) || long.Host != apiHost || long.Reason != reasonTooLong ||
					long.Until.Sub(start.Add(tt.wait)).Abs() > time.Second || !strings.Contains(err.Error(), tt.says) {
					t.Fatalf("Ask %d = %#v, want Unreachable until %v that says %q", i, err, start.Add(tt.wait), tt.says)
				}
			}
			if got := s.times(apiHost, start); len(got) != 1 || time.Since(start) > time.Millisecond {
				t.Errorf("asked at %v and waited %v; want one request and no wait", got, time.Since(start))
			}
		})
	}
}

// TestPauseIsShared: while one request sits out a rate limit, no other goes to that host,
// and other hosts are asked as before.
func TestPauseIsShared(t *testing.T) {
	for name, first := range map[string]answer{"Retry-After": reply(429, "", "Retry-After", "30"),
		"429 alone": reply(429, "")} {
		bubble(t, name, func(t *testing.T) {
			body := string(pngBytes(t))
			s := &script{play: func(n int, r *http.Request) answer {
				if n == 0 {
					return first
				}
				return reply(200, body)
			}}
			o := testOptions()
			o.retryWait = 30 * time.Second // after a 429 that names no time
			c := s.client(t, o)
			start := time.Now()
			var wg sync.WaitGroup
			for _, name := range []string{"i.redd.it/a", "i.redd.it/b", "i.redd.it/c", "i.imgur.com/a"} {
				wg.Go(func() { download(t, c, "https://"+name+".png", "") })
				synctest.Wait()
			}
			wg.Wait()
			for i, at := range s.times("i.redd.it", start) {
				if i > 0 && at < 30 {
					t.Errorf("request %d went out at %v s, in the pause", i, at)
				}
			}
			s.askedAt(t, "i.imgur.com", start, 0)
		})
	}
}

// TestHostRateAndConcurrency holds the policy's numbers for an image host.
func TestHostRateAndConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := testOptions()
		o.Policy.Images.Hosts = []policy.Host{{Name: "i.redd.it", RequestsPerSecond: 2, Concurrency: 2},
			{Name: "i.imgur.com", RequestsPerSecond: 0.5, Concurrency: 1}}
		a := reply(200, string(pngBytes(t)))
		a.held = 3 * time.Second
		s := &script{play: func(int, *http.Request) answer { return a }}
		c := s.client(t, o)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 8 {
			host := []string{"i.redd.it", "i.imgur.com"}[i%2]
			wg.Go(func() { download(t, c, fmt.Sprintf("https://%s/%d.png", host, i), "") })
		}
		wg.Wait()
		s.askedAt(t, "i.redd.it", start, 0, 0.5, 3, 3.5)
		s.askedAt(t, "i.imgur.com", start, 0, 3, 6, 9)
	})
}

// TestWaitsEnd: every wait gives way to the context at once.
func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := api(func(int, *http.Request) answer { return reply(429, "", "Retry-After", "600") })
		c := s.client(t, imgurOptions())
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := c.Ask(ctx, ids("a1")); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Ask = %v, want the context's error", err)
				}
			})
			for _, url := range []string{"https://i.redd.it/a.png", "https://imgur.com/abcdefg"} {
				wg.Go(func() {
					if _, err := c.Download(ctx, Candidate{URL: url}); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Download = %v, want the context's error", err)
					}
				})
			}
		}
		wg.Wait()
		if d := time.Since(start); d != 7*time.Second {
			t.Errorf("the waits ended after %v, want 7s", d)
		}
	})
}

// TestNeverTooFast plays an hour of trouble: answers that take their time, a server that cuts
// its windows short of what the policy allows, two storms of 429s of all three kinds, server
// errors, broken connections, missing rate headers and tokens that end early. In no minute are
// there more requests than the policy allows, tokens included, and in no window of Reddit's
// more than it grants.
func TestNeverTooFast(t *testing.T) {
	const perMinute, perWindow = 60, 400
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			windows, refused := map[int64]int{}, 0
			s := &script{}
			s.play = func(n int, r *http.Request) answer {
				mu.Lock()
				defer mu.Unlock()
				a := reply(200, listing("a1"))
				defer func() { a.held = time.Duration(rng.Int64N(int64(2 * time.Second))) }()
				if r.URL.Hostname() == tokenHost {
					a = tokenReply(200)
					return a
				}
				now := time.Now()
				window := now.Unix() / averaged
				windows[window]++
				used := windows[window]
				storm := n/20 == 10 || n/20 == 40
				switch {
				case used > perWindow:
					refused++
					a = reply(429, "")
				case storm:
					a = []answer{reply(429, "<html>whoa there, pardner!", "Retry-After", "4"),
						reply(429, `{"message": "Too Many Requests", "error": 429}`), reply(429, "")}[n%3]
				case n%17 == 0:
					a = reply(503, "")
				case n%23 == 0:
					a = answer{err: errors.New("connection reset by peer")}
				case n%101 == 0:
					a = reply(401, `{"error": 401}`)
				}
				if a.header != nil && n%10 != 0 && a.header.Get("Retry-After") == "" {
					left := (window+1)*averaged - now.Unix()
					if now.Nanosecond() > 0 {
						left--
					}
					a.header.Set("X-Ratelimit-Used", fmt.Sprint(min(used, perWindow)))
					a.header.Set("X-Ratelimit-Remaining", fmt.Sprintf("%d.0", max(perWindow-used, 0)))
					a.header.Set("X-Ratelimit-Reset", fmt.Sprint(left))
				}
				return a
			}
			var w []polite.Wait
			c := s.client(t, paceOptions(perMinute, &w))
			c.jitter = rng.Float64
			start := time.Now()
			answered := 0
			for time.Since(start) < time.Hour {
				_, err := c.Ask(t.Context(), ids("a1"))
				switch {
				case err == nil:
					answered++
				case noAnswer(err) == "":
					t.Fatalf("seed %d: after %v: %v", seed, time.Since(start), err)
				}
			}
			for i := perMinute; i < len(s.seen); i++ {
				if d := s.seen[i].at.Sub(s.seen[i-perMinute].at); d < time.Minute {
					t.Errorf("seed %d: %d requests within %v", seed, perMinute+1, d)
				}
			}
			for window, n := range windows {
				if n > perWindow {
					t.Errorf("seed %d: %d requests in window %d, which allows %d", seed, n, window, perWindow)
				}
			}
			if refused > 0 || answered < 1500 || len(windows) < 6 || len(w) == 0 {
				t.Errorf("seed %d: %d refused, %d answered in %d windows, %d waits told", seed, refused, answered,
					len(windows), len(w))
			}
		})
	}
}

// TestUnansweredCounts: a request that got no answer is counted against Reddit's window.
func TestUnansweredCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w []polite.Wait
		s := api(func(n int, _ *http.Request) answer {
			if n == 1 || n == 2 {
				return answer{err: errors.New("connection reset by peer")}
			}
			return reply(200, listing("a1"), "X-Ratelimit-Used", "998", "X-Ratelimit-Remaining", "2.0", "X-Ratelimit-Reset",
				"0")
		})
		c := s.client(t, paceOptions(60e6, &w))
		c.jitter = func() float64 { return 0 }
		start := time.Now()
		for range 2 {
			mustAsk(t, c)
		}
		// With both used up, the fourth waits for the end of the window: it is in its last second.
		s.askedAt(t, apiHost, start, 0, 0, 0, 1)
	})
}

// TestRetriesEnd: a call whose pauses add up is given up, and the pause that was asked for is
// still made before the next one.
func TestRetriesEnd(t *testing.T) {
	for after, want := range map[string][]float64{
		"500":   {0, 500.5, 1001, 1501.5},
		"599.5": {0, 600, maxTrying.Seconds(), 1800}, // with half a second of jitter the third begins at the limit itself
	} {
		bubble(t, after, func(t *testing.T) {
			s := api(func(n int, _ *http.Request) answer {
				if n < 3 {
					return reply(429, "", "Retry-After", after)
				}
				return reply(200, listing("a1"))
			})
			c := s.client(t, paceOptions(60e6, new([]polite.Wait)))
			start := time.Now()
			_, err := c.Ask(t.Context(), ids("a1"))
			if d := time.Since(start); noAnswer(err) != "http_429" || d > maxTrying {
				t.Errorf("Ask = %v after %v, want Unanswered http_429", err, d)
			}
			mustAsk(t, c)
			s.askedAt(t, apiHost, start, want...)
		})
	}
}

// TestRetriesAreSaid: each repetition has a line for people.
func TestRetriesAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		s := api(func(n int, _ *http.Request) answer {
			return []answer{reply(503, ""), {err: errDeadline}, reply(200, "<html><title>Ow!</title>"),
				reply(429, "", "Retry-After", "7")}[n]
		})
		o := logged(testOptions(), &b)
		o.retryWait = time.Second
		if _, err := s.client(t, o).Ask(t.Context(), ids("a1")); err == nil {
			t.Error("Ask succeeded")
		}
		for _, want := range []string{
			`msg="trying again" host=oauth.reddit.com why=http_503 wait=500ms attempt=2 of=4`,
			`msg="trying again" host=oauth.reddit.com why=timeout wait=1s attempt=3 of=4`,
			`msg="trying again" host=oauth.reddit.com why=html wait=2s attempt=4 of=4`,
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, b.String())
			}
		}
	})
}

// TestWaitsSideBySide: waits for two hosts at the same time are as long as the run stood still, and not twice that.
func TestWaitsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		picture := string(pngBytes(t))
		s := &script{play: func(n int, r *http.Request) answer {
			if n < 2 {
				return reply(429, "", "Retry-After", "60")
			}
			return reply(200, picture)
		}}
		c := s.client(t, testOptions())
		var both sync.WaitGroup
		for _, host := range []string{"i.redd.it", "i.imgur.com"} {
			both.Go(func() { download(t, c, "https://"+host+"/a.png", "") })
		}
		both.Wait()
		if got := c.Calls().Waited.Round(time.Second); got != 61*time.Second {
			t.Errorf("waited %v, want 1m1s", got)
		}
	})
}

// TestCalls: what was sent is counted by its kind, and what was not sent is not.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := string(pngBytes(t))
		s := &script{play: func(n int, r *http.Request) answer {
			switch {
			case r.URL.Hostname() == tokenHost:
				return tokenReply(3600)
			case n == 1:
				return reply(503, "", "Retry-After", "10")
			case r.URL.Path == "/api/info":
				return reply(200, listing("a1"))
			case r.URL.Path == "/r/memes/about":
				return reply(403, `{"reason":"private"}`)
			case r.URL.Path == "/moved.png":
				return reply(302, "", "Location", "/good.png")
			}
			return reply(200, body)
		}}
		c := s.client(t, testOptions())
		if got := c.Calls(); got != (calls.Counts{}) {
			t.Errorf("at first: %+v", got)
		}
		mustAsk(t, c)
		if _, err := c.About(t.Context(), "memes"); err != nil {
			t.Fatal(err)
		}
		download(t, c, "https://i.redd.it/moved.png", "")
		download(t, c, "https://elsewhere.example/a.png", "refused/host_not_allowed")
		want := calls.Counts{Info: 2, About: 1, Token: 1, Images: 2, Retries: 1, Waited: 10500 * time.Millisecond,
			WaitedFor: "oauth.reddit.com: it asked to be left alone"}
		got := c.Calls()
		got.Waited = got.Waited.Round(time.Millisecond) // the pace of the tests
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Calls (-want +got):\n%s", diff)
		}
	})
}
