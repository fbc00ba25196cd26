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

	"rehydrate/policy"
)

const (
	// maxWait is the longest single pause that a run makes: Reddit's own window is 10 min.
	maxWait = 15 * time.Minute
	// quietWait is the longest pause that OnWait is not told of.
	quietWait = 2 * time.Second
	// window is the time over which Reddit averages its rate limit, in seconds.
	window = 600
)

// The reasons of a Wait.
const (
	waitPace       = "pace"         // the policy's own rate
	waitRateLimit  = "rate_limit"   // Reddit's rate-limit headers, or a 429 without Retry-After
	waitRetryAfter = "retry_after"  // a Retry-After
	waitServer     = "server_error" // backing off after a 5xx
	waitNetwork    = "network"      // backing off after a broken connection
)

// A pacer says when a request may go out. It is safe for concurrent use.
type pacer struct {
	onWait func(Wait)
	lanes  map[string]*lane
	budget budget // of apiHost; guarded by the mutex of its lane
}

// A lane is what is known of one host.
type lane struct {
	host    string
	limiter *rate.Limiter
	slots   chan struct{} // one place for each request that may be open

	mu     sync.Mutex
	paused time.Time // no request before this
	reason string    // why

	breaker breaker
}

func newPacer(p policy.Policy, onWait func(Wait)) *pacer {
	perSecond := rate.Limit(p.Reddit.RequestsPerMinute / 60)
	shared := rate.NewLimiter(perSecond, 1) // tokens are asked for out of the same allowance
	lanes := map[string]*lane{}
	add := func(host string, l *rate.Limiter, concurrency int) {
		lanes[host] = &lane{host: host, limiter: l, slots: make(chan struct{}, max(concurrency, 1))}
	}
	for _, h := range p.Images.Hosts {
		add(h.Name, rate.NewLimiter(rate.Limit(h.RequestsPerSecond), 1), h.Concurrency)
	}
	add(apiHost, shared, 1)
	add(tokenHost, shared, 1)
	return &pacer{onWait: onWait, lanes: lanes}
}

// checkRates refuses a policy by whose own rates a request would wait longer than maxWait.
func checkRates(p policy.Policy) error {
	if r := p.Reddit.RequestsPerMinute; !(r*maxWait.Minutes() >= 1) {
		return fmt.Errorf("reddit: the policy allows %g requests per minute, which is less than one in %v; raise reddit.requests_per_minute to %.2g or more",
			r, maxWait, 1/maxWait.Minutes()+0.001)
	}
	for _, h := range p.Images.Hosts {
		// As many wait for their turn at once as the host has places.
		if least := float64(max(h.Concurrency, 1)) / maxWait.Seconds(); !(h.RequestsPerSecond >= least) {
			return fmt.Errorf("reddit: the policy allows %g requests per second to %s, by which one would wait longer than %v; raise requests_per_second to %.2g or more",
				h.RequestsPerSecond, h.Name, maxWait, least*1.1)
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

// turn waits until a request to host may go out. It fails with a *WaitTooLong when that
// would be longer than maxWait, and with an *Unreachable while the host is left alone.
func (p *pacer) turn(ctx context.Context, host string) error {
	l := p.lanes[host]
	for {
		if err := p.sitOut(ctx, l); err != nil {
			return err
		}
		r := l.limiter.Reserve()
		if err := p.sleep(ctx, Wait{host, waitPace, r.Delay()}); err != nil {
			r.Cancel()
			return err
		}
		now := time.Now()
		if d, _ := l.pause(now); d <= 0 && l.breaker.refuses(now) == nil { // as before the wait
			return nil
		}
	}
}

// sitOut waits for the end of a host's pause, however often it is prolonged, unless the host
// is to be left alone.
func (p *pacer) sitOut(ctx context.Context, l *lane) error {
	for {
		now := time.Now()
		if err := l.breaker.refuses(now); err != nil {
			return err
		}
		d, reason := l.pause(now)
		if d <= 0 {
			return nil
		}
		if d > maxWait {
			return &WaitTooLong{Host: l.host, For: d}
		}
		if err := p.sleep(ctx, Wait{l.host, reason, d}); err != nil {
			return err
		}
	}
}

func (l *lane) pause(now time.Time) (time.Duration, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused.Sub(now), l.reason
}

// pauseUntil holds all requests to a host. It never shortens a pause.
func (l *lane) pauseUntil(t time.Time, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.After(l.paused) {
		l.paused, l.reason = t, reason
	}
}

// sleep waits, and says so first when it is long.
func (p *pacer) sleep(ctx context.Context, w Wait) error {
	if w.For > quietWait {
		p.onWait(w)
	}
	return wait(ctx, w.For)
}

// observe learns from the rate-limit headers of an answer of apiHost.
func (p *pacer) observe(h http.Header) {
	l := p.lanes[apiHost]
	l.mu.Lock()
	now := time.Now()
	next := p.budget.observe(h, now)
	l.mu.Unlock()
	if next.After(now) {
		l.pauseUntil(next, waitRateLimit)
	}
}

// A budget is what Reddit's headers last said of the rate limit.
type budget struct {
	known           bool
	used, remaining int
	resetAt         time.Time
}

// observe takes in the headers of an answer and returns when the next request may go out.
// An answer without them is counted against what is known; when that is used up, the next
// request waits for the reset.
func (b *budget) observe(h http.Header, now time.Time) time.Time {
	used, ok1 := headerNumber(h, "X-Ratelimit-Used")
	remaining, ok2 := headerNumber(h, "X-Ratelimit-Remaining")
	reset, ok3 := headerNumber(h, "X-Ratelimit-Reset")
	if !ok1 || !ok2 || !ok3 {
		if !b.known {
			return now
		}
		b.used, b.remaining = b.used+1, b.remaining-1
		if b.remaining > 0 {
			return now
		}
		return now.Add(min(b.resetAt.Sub(now), maxWait))
	}
	*b = budget{known: true, used: used, remaining: remaining, resetAt: now.Add(time.Duration(reset) * time.Second)}
	return now.Add(min(spacing(used, remaining, reset), maxWait))
}

// spacing is the pause after an answer whose headers said that used requests are used,
// remaining are left and the window ends in reset seconds. It spreads what is left over
// the rest of the window: prawcore's formula (rate_limit.py).
func spacing(used, remaining, reset int) time.Duration {
	if remaining <= 0 {
		return seconds(math.Max(1, float64(reset)))
	}
	s, u, r := float64(reset), float64(used), float64(remaining)
	ahead := s - (window - window*u/(r+u)) // how far use runs ahead of the window
	return seconds(min(s, 10, max(0, ahead)))
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// headerNumber reads a number that is sent as an integer or as a float ("997.0") and cuts
// its fraction off. Anything that is not a number from 0 to a million is taken as missing.
func headerNumber(h http.Header, name string) (int, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64)
	if err != nil || !(f >= -1e6 && f <= 1e6) {
		return 0, false
	}
	return max(int(f), 0), true
}

// paced lets each attempt wait for its turn.
type paced struct {
	pace *pacer
	next http.RoundTripper
}

func (t paced) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Hostname()
	if err := t.pace.turn(req.Context(), host); err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil && host == apiHost {
		t.pace.observe(resp.Header)
	}
	return resp, err
}
