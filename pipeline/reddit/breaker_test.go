package reddit

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// TestUnreachable: an API that only fails is asked less and less often, and then the run is
// stopped; a quarter of an hour later it may be asked again.
func TestUnreachable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		reason manifest.Reason
		wait   string // the reason of the pauses
		says   string
	}{
		{"429", reply(429, `{"message": "Too Many Requests", "error": 429}`), "http_429", waitRateLimit, "http_429: Too Many Requests, 429; the host limits"},
		{"403 as a rate limit", reply(403, "<html>", "Retry-After", "0"), "http_403", waitRateLimit, "start again in an hour"},
		{"5xx", reply(503, "<title>Ow!</title>"), "http_503", waitServer, "http_503: Ow!; the host has trouble of its own"},
		{"no network", answer{err: errors.New("no route to host")}, "connection", waitNetwork, "see that the network"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w waits
				well := false
				s := api(func(int, *http.Request) answer {
					if well {
						return reply(200, listing("a1"))
					}
					return tt.answer
				})
				c := s.client(t, paceOptions(60e6, &w))
				start := time.Now()
				unreachable := func() bool {
					_, err := c.Look(t.Context(), ids("a1"))
					var none *Unanswered
					var shut *Unreachable
					switch {
					case errors.As(err, &none) && none.Reason == tt.reason:
						return false
					case errors.As(err, &shut) && shut.Host == apiHost && shut.Reason == tt.reason && strings.Contains(err.Error(), tt.says):
						return true
					}
					t.Fatalf("Look = %v, want Unanswered or Unreachable %s that says %q", err, tt.reason, tt.says)
					return false
				}
				for i := range 50 {
					if got, want := unreachable(), i >= maxFailures-1; got != want {
						t.Fatalf("Look %d: unreachable is %v", i, got)
					}
				}
				want := []float64{0, 0.75, 2.25, 5.25}
				first := 5.25
				if tt.wait == waitRateLimit {
					first += 4
				}
				for _, pause := range []float64{0, 5.25 + 16, 2*5.25 + 16 + 64, 3*5.25 + 16 + 64 + 256} {
					at := first + pause
					want = append(want, at, at+0.75, at+2.25, at+5.25)
				}
				if got := secondsOf(s.times(apiHost, start)); !slices.Equal(got, want) {
					t.Errorf("asked at %v, want %v", got, want)
				}
				for _, told := range w.all {
					if told.Host != apiHost || told.For > 3*time.Second && told.Reason != tt.wait {
						t.Errorf("OnWait was told %v", told)
					}
				}
				time.Sleep(restFor - time.Second)
				if !unreachable() || len(s.times(apiHost, start)) != 20 {
					t.Error("asked again too early")
				}
				time.Sleep(time.Second)
				if !unreachable() || len(s.times(apiHost, start)) != 24 { // one call shuts it again
					t.Errorf("%d requests after the rest, want 24", len(s.times(apiHost, start)))
				}
				time.Sleep(restFor)
				well = true
				if _, err := c.Look(t.Context(), ids("a1")); err != nil {
					t.Error(err)
				}
				well = false
				if unreachable() {
					t.Error("an answer did not end the row of failures")
				}
			})
		})
	}
}

// TestSuccessEndsTheRow: trouble that passes each time never stops a run.
func TestSuccessEndsTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := map[int]bool{}
		for n := 4 * (maxFailures - 1); n < 400; n += 4*(maxFailures-1) + 1 {
			good[n] = true
		}
		s := api(func(n int, _ *http.Request) answer {
			if good[n] {
				return reply(404, "{}") // an answer, if not one of use
			}
			return reply(502, "")
		})
		c := s.client(t, testOptions())
		for i := range 40 {
			_, err := c.Look(t.Context(), ids("a1"))
			var none *Unanswered
			if !errors.As(err, &none) {
				t.Fatalf("Look %d = %v, want Unanswered", i, err)
			}
		}
	})
}

// TestTokenHostUnreachable: the token endpoint is counted on its own.
func TestTokenHostUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{play: func(int, *http.Request) answer { return reply(429, "") }}
		c := s.client(t, testOptions())
		var err error
		for range maxFailures + 10 {
			_, err = c.Look(t.Context(), ids("a1"))
		}
		var shut *Unreachable
		if !errors.As(err, &shut) || shut.Host != tokenHost || len(s.seen) != maxFailures*(retries+1) {
			t.Errorf("Look = %v after %d requests", err, len(s.seen))
		}
	})
}

// TestImageHostUnreachable: the images of a host that only fails become host_unreachable
// without a request; other hosts go on, and so does the host after a rest.
func TestImageHostUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := string(pngBytes(t))
		well := false
		s := &script{play: func(_ int, r *http.Request) answer {
			if well || r.URL.Hostname() != "i.redd.it" {
				return reply(200, body)
			}
			return reply(429, "")
		}}
		c := s.client(t, testOptions())
		start := time.Now()
		var mu sync.Mutex
		counts := map[string]int{}
		download := func(host string, i int) {
			_, err := c.Download(t.Context(), Candidate{URL: fmt.Sprintf("https://%s/%d.png", host, i)})
			var f *policy.Fault
			key := host
			if errors.As(err, &f) {
				key += " " + string(f.Outcome) + "/" + string(f.Reason)
				if f.Reason == "host_unreachable" && f.Detail == "" {
					t.Error("the fault has no detail")
				}
			} else if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[key]++
		}
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() { download("i.redd.it", i) })
			wg.Go(func() { download("i.imgur.com", i) })
		}
		wg.Wait()
		// Four calls are open at once, and each round of them counts as one failure.
		asked := len(s.times("i.redd.it", start))
		most := maxFailures * 4 * (retries + 1)
		if asked < maxFailures*(retries+1) || asked > most {
			t.Errorf("i.redd.it was asked %d times, want at most %d", asked, most)
		}
		if n := counts["i.redd.it failed/host_unreachable"]; n < 200-maxFailures*4 || n+counts["i.redd.it failed/http_429"] != 200 || counts["i.imgur.com"] != 200 {
			t.Errorf("outcomes %v", counts)
		}
		time.Sleep(restFor)
		well = true
		download("i.redd.it", 200)
		if counts["i.redd.it"] != 1 || len(s.times("i.redd.it", start)) != asked+1 {
			t.Errorf("after the rest: outcomes %v", counts)
		}
	})
}

// TestFailuresTogether: calls that were open at once and fail of the same trouble count once,
// and one that began before an answer does not count against what came after.
func TestFailuresTogether(t *testing.T) {
	var b breaker
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, step := range []struct {
		answered bool
		before   int
		want     int
	}{
		{false, 0, 1}, {false, 0, 0}, {false, 0, 0}, {false, 1, 2}, {false, 1, 0}, {false, 0, 0},
		{true, 0, 0}, {false, 2, 0}, {false, 0, 1},
	} {
		if step.answered {
			b.answered()
		} else if got := b.failed(step.before, &Unreachable{}, now); got != step.want {
			t.Errorf("step %d: failed(%d) = %d, want %d", i, step.before, got, step.want)
		}
	}
}

// TestOneImagesTrouble: what says nothing of the host does not close it.
func TestOneImagesTrouble(t *testing.T) {
	for name, a := range map[string]answer{
		"gone": reply(404, ""), "too large": reply(200, strings.Repeat("x", 1000)), "not an image": reply(200, "<html>"), "redirect": reply(302, ""),
	} {
		o := testOptions()
		o.Policy.Images.MaxBytes = 500
		s := &script{play: func(int, *http.Request) answer { return a }}
		c := s.client(t, o)
		for range 3 * maxFailures {
			var f *policy.Fault
			if _, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a.png"}); !errors.As(err, &f) || f.Reason == "host_unreachable" {
				t.Errorf("%s: Download = %v", name, err)
			}
		}
	}
}
