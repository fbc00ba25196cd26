package reddit

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"rehydrate/internal/polite"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/policy"
)

const (
	averaged = 600 // the time over which Reddit averages its rate limit, in seconds
	// maxBurst is the most requests that a client which has rested sends to Reddit without a pause between them.
	maxBurst = 20
)

// The reasons of a polite.Wait, for people.
const (
	waitPace       = "the policy asks no faster"
	waitRateLimit  = "its rate limit is used up" // by Reddit's headers, or a 429 without Retry-After
	waitRetryAfter = "it asked to be left alone" // by a Retry-After
	waitServer     = "it is in trouble"          // backing off after a 5xx, or a page instead of an answer
	waitNetwork    = "the connection broke"
)

// A pacer says when a request may go out, and counts those that did. It is safe for concurrent use.
type pacer struct {
	waits polite.Waits
	lanes map[string]*lane

	mu    sync.Mutex
	calls calls.Counts // but for the waits
}

// A lane is what is known of one host.
type lane struct {
	polite.Gate
	slots chan struct{} // one place for each request that may be open
	sent  *int          // of the pacer's calls

	mu sync.Mutex
	// What follows needs mu.
	failures int // calls in a row that failed, by their weights
	outage       // of an image host
	// learn takes in an answer, nil where none came, and returns when the next request may go out. It may be nil.
	learn func(*http.Response, time.Time) time.Time
}

func newPacer(p policy.Policy, onWait func(polite.Wait)) *pacer {
	pace := &pacer{waits: polite.Waits{Tell: onWait}, lanes: map[string]*lane{}}
	add := func(host string, l *rate.Limiter, concurrency int, sent *int) *lane {
		pace.lanes[host] = &lane{Gate: polite.Gate{Host: host, Limiter: l, Pace: waitPace, Waits: &pace.waits},
			slots: make(chan struct{}, max(concurrency, 1)), sent: sent}
		return pace.lanes[host]
	}
	for _, h := range p.Images.Hosts {
		limiter := rate.NewLimiter(rate.Limit(h.RequestsPerSecond), 1)
		if h.Name == imgurAPIHost { // what is known of imgur's API has no lock but its one place
			add(h.Name, limiter, 1, &pace.calls.ImageAPI).learn = imgurPause
		} else {
			add(h.Name, limiter, h.Concurrency, &pace.calls.Images)
		}
	}
	// Tokens are asked for out of the same allowance. A burst is no more than the requests of 20 s.
	perMinute := p.Reddit.RequestsPerMinute
	shared := rate.NewLimiter(rate.Limit(perMinute/60), int(min(max(perMinute/3, 1), maxBurst)))
	window := polite.NewWindow(perMinute)
	// Last, so that a policy that names one of these hosts as an image host changes nothing.
	for host, sent := range map[string]*int{apiHost: &pace.calls.Info, tokenHost: &pace.calls.Token} {
		l := add(host, shared, 1, sent)
		l.Window, l.learn = window, new(budget).observe
	}
	return pace
}

// checkRates refuses a policy so slow that a request would wait longer than polite.MaxWait.
func checkRates(p policy.Policy) error {
	slow := func(name, key string, rate, least float64) error {
		return fmt.Errorf("reddit: the policy's %s of %g for %s would make a request wait longer than %v; "+
			"raise it to %.2g or more", key, rate, name, polite.MaxWait, least*1.1)
	}
	if r, least := p.Reddit.RequestsPerMinute, 1/polite.MaxWait.Minutes(); !(r >= least) {
		return slow("Reddit", "requests_per_minute", r, least)
	}
	for _, h := range p.Images.Hosts {
		// As many wait for their turn at once as the host has places.
		if least := float64(max(h.Concurrency, 1)) / polite.MaxWait.Seconds(); !(h.RequestsPerSecond >= least) {
			return slow(h.Name, "requests_per_second", h.RequestsPerSecond, least)
		}
	}
	return nil
}

// enter takes one of a host's places, and returns what gives it back.
func (p *pacer) enter(ctx context.Context, host string) (leave func(), err error) {
	l := p.lanes[host]
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const reasonTooLong = "retry_after_too_long"

func tooLong(host string, d time.Duration) *Unreachable {
	until := time.Now().Add(d)
	return &Unreachable{host, reasonTooLong, until, fmt.Sprintf("asks to wait %v, more than the %v that a run waits; "+
		"nothing is lost: run the same command again after %s", d.Round(time.Second), polite.MaxWait, at(until))}
}

// at is a time for people, never too early.
func at(t time.Time) string {
	return t.UTC().Add(time.Minute - 1).Truncate(time.Minute).Format("2006-01-02 15:04 UTC")
}

// heed takes in what an answer, or none, says of the next request.
func (l *lane) heed(resp *http.Response) {
	if l.learn == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Pause(l.learn(resp, time.Now()), waitRateLimit)
}

// A budget is what Reddit's headers last said of the rate limit; the zero value knows nothing.
type budget struct {
	used, remaining int
	resetAt         time.Time // by when the window has ended for sure: Reddit cuts off parts of seconds
}

// observe takes in the headers of an answer and returns when the next request may go out.
func (b *budget) observe(resp *http.Response, now time.Time) time.Time {
	h := http.Header{} // a request without an answer counts as well
	if resp != nil {
		h = resp.Header
	}
	used, ok1 := headerNumber(h, "X-Ratelimit-Used")
	remaining, ok2 := headerNumber(h, "X-Ratelimit-Remaining")
	reset, ok3 := headerNumber(h, "X-Ratelimit-Reset")
	var pause time.Duration
	switch {
	case ok1 && ok2 && ok3:
		*b = budget{used, remaining, now.Add(time.Duration(reset+1) * time.Second)}
		pause = spacing(used, remaining, reset)
	case b.resetAt.IsZero():
		return now
	default: // counted against what is known
		if over := now.Sub(b.resetAt); over >= 0 {
			// A new window has begun, perhaps several ago, and it has as much again.
			b.used, b.remaining = 0, b.used+b.remaining
			b.resetAt = b.resetAt.Add((over/(averaged*time.Second) + 1) * averaged * time.Second)
		}
		b.used, b.remaining = b.used+1, b.remaining-1
	}
	if b.remaining <= 0 {
		pause = b.resetAt.Sub(now)
	}
	return now.Add(pause) // however far away: more than polite.MaxWait ends the asking
}

// spacing spreads what remains of a window over the rest of it, reset seconds.
func spacing(used, remaining, reset int) time.Duration {
	// prawcore's formula (rate_limit.py), but that use may run ahead of the window by a burst, or by a tenth of the
	// window where that is less.
	s, all := float64(reset), float64(used+remaining)
	late := max(float64(used)-min(maxBurst, all/10), 0)
	ahead := s - (averaged - averaged*late/all) // how far use runs ahead of the window, in seconds
	return seconds(min(s, 10, max(0, ahead)))
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// headerNumber reads a number that is sent as an integer or as a float ("997.0") and cuts its fraction off. What is
// not a number, or far out of range, counts as missing.
func headerNumber(h http.Header, name string) (int, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64)
	if err != nil || !(math.Abs(f) <= 1e12) {
		return 0, false
	}
	return int(min(max(f, 0), 1e6)), true // so that sums of it stay sound
}

// count counts a request that has gone out.
func (p *pacer) count(l *lane, path string, attempt int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if attempt > 1 {
		p.calls.Retries++
	}
	if l.Host == apiHost && strings.HasSuffix(path, "/about") {
		p.calls.About++
	} else {
		*l.sent++
	}
}
