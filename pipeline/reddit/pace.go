package reddit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"rehydrate/pipeline/reddit/calls"
	"rehydrate/policy"
)

const (
	maxWait   = 15 * time.Minute // the longest single pause that a run makes: Reddit's own window is 10 min
	quietWait = 2 * time.Second  // the longest pause that OnWait is not called for
	averaged  = 600              // the time over which Reddit averages its rate limit, in seconds
	// maxBurst is the most requests that a client which has rested sends to Reddit without a pause between them.
	maxBurst = 20
)

// The reasons of a Wait, for people.
const (
	waitPace       = "the policy asks no faster"
	waitRateLimit  = "its rate limit is used up" // by Reddit's headers, or a 429 without Retry-After
	waitRetryAfter = "it asked to be left alone" // by a Retry-After
	waitServer     = "it is in trouble"          // backing off after a 5xx, or a page instead of an answer
	waitNetwork    = "the connection broke"
)

// A pacer says when a request may go out, and counts those that did. It is safe for concurrent use.
type pacer struct {
	onWait func(Wait)
	lanes  map[string]*lane

	mu    sync.Mutex
	calls calls.Counts
	waits int                    // that are going on
	since time.Time              // there is one
	by    map[Wait]time.Duration // the sums of waits, each without its For
}

// A lane is what is known of one host.
type lane struct {
	host    string
	limiter *rate.Limiter
	recent  *recent       // of Reddit's own hosts, which share it; nil for image hosts
	slots   chan struct{} // one place for each request that may be open
	sent    *int          // of the pacer's calls

	mu sync.Mutex
	// What follows needs mu.
	paused   time.Time    // no request before this
	reason   string       // why
	failures int          // calls in a row that failed, by their weights
	shut     *Unreachable // the last failure, once there were too many: no request at all in the pause
	// learn takes in an answer, nil where none came, and returns when the next request may go out. It may be nil.
	learn func(*http.Response, time.Time) time.Time
}

func newPacer(p policy.Policy, onWait func(Wait)) *pacer {
	pace := &pacer{onWait: onWait, lanes: map[string]*lane{}, by: map[Wait]time.Duration{}}
	add := func(host string, l *rate.Limiter, concurrency int, sent *int) *lane {
		pace.lanes[host] = &lane{host: host, limiter: l, slots: make(chan struct{}, max(concurrency, 1)), sent: sent}
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
	recent := newRecent(perMinute)
	// Last, so that a policy that names one of these hosts as an image host changes nothing.
	for host, sent := range map[string]*int{apiHost: &pace.calls.Info, tokenHost: &pace.calls.Token} {
		l := add(host, shared, 1, sent)
		l.recent, l.learn = recent, new(budget).observe
	}
	return pace
}

// checkRates refuses a policy so slow that a request would wait longer than maxWait.
func checkRates(p policy.Policy) error {
	slow := func(name, key string, rate, least float64) error {
		return fmt.Errorf("reddit: the policy's %s of %g for %s would make a request wait longer than %v; "+
			"raise it to %.2g or more", key, rate, name, maxWait, least*1.1)
	}
	if r, least := p.Reddit.RequestsPerMinute, 1/maxWait.Minutes(); !(r >= least) {
		return slow("Reddit", "requests_per_minute", r, least)
	}
	for _, h := range p.Images.Hosts {
		// As many wait for their turn at once as the host has places.
		if least := float64(max(h.Concurrency, 1)) / maxWait.Seconds(); !(h.RequestsPerSecond >= least) {
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

// turn waits until a request to a lane's host may go out, and returns what is to be called when it has been answered.
func (p *pacer) turn(ctx context.Context, l *lane) (answered func(), err error) {
	// What another request learned during a wait counts, so that all is looked at again after each.
	for reserved := false; ; {
		now := time.Now()
		w := Wait{Host: l.host, Reason: waitPace}
		paused, reason, shut := l.look(now)
		switch {
		case shut != nil:
			return nil, shut
		case paused > maxWait:
			return nil, tooLong(l.host, paused)
		case paused > 0:
			// A place in the limiter's row that was reserved before a pause may lie within it.
			w.Reason, w.For, reserved = reason, paused, false
		case !reserved:
			w.For, reserved = l.limiter.Reserve().Delay(), true
		default:
			answered, w.For = l.recent.take(now)
			if answered != nil {
				return answered, nil
			}
		}
		if err := p.sleep(ctx, w); err != nil {
			return nil, err
		}
	}
}

const reasonTooLong = "retry_after_too_long"

func tooLong(host string, d time.Duration) *Unreachable {
	return &Unreachable{host, reasonTooLong, fmt.Sprintf("asks to wait %v, more than the %v that a run waits; "+
		"nothing is lost: run the same command again when the wait is over", d.Round(time.Second), maxWait)}
}

// look returns how long the host's requests pause and why, or why there are none at all for now.
func (l *lane) look(now time.Time) (paused time.Duration, reason string, shut *Unreachable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.paused) {
		l.shut = nil // the rest is over, and a short pause after it is only a pause
	}
	return l.paused.Sub(now), l.reason, l.shut
}

// pauseUntil pauses all requests to a host. It never shortens a pause. Needs mu.
func (l *lane) pauseUntil(t time.Time, reason string) {
	if t.After(l.paused) {
		l.paused, l.reason = t, reason
	}
}

// sleep waits, and says so first when it is long.
func (p *pacer) sleep(ctx context.Context, w Wait) error {
	if w.For > quietWait && p.onWait != nil {
		p.onWait(w)
	}
	began := time.Now()
	p.mu.Lock()
	if p.waits == 0 {
		p.since = began
	}
	p.waits++
	p.mu.Unlock()
	err := wait(ctx, w.For)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.by[Wait{Host: w.Host, Reason: w.Reason}] += time.Since(began)
	p.waits--
	if p.waits == 0 {
		p.calls.Waited += time.Since(p.since)
	}
	return err
}

// A recent holds Reddit's requests to at most so many in any stretch of one length. A nil one holds nothing.
type recent struct {
	most   int
	length time.Duration

	mu   sync.Mutex
	sent []*time.Time // when the last ones were answered, or sent where they are not yet
}

// newRecent holds a whole number of requests a minute; below one a minute, one in so long.
func newRecent(perMinute float64) *recent {
	return &recent{most: max(int(perMinute), 1), length: max(time.Minute, seconds(60/perMinute))}
}

// take lets a request go out now, or says how long to wait. The request counts from when answered is called.
func (r *recent) take(now time.Time) (answered func(), d time.Duration) {
	if r == nil {
		return func() {}, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.sent) > 0 && now.Sub(*r.sent[0]) >= r.length {
		r.sent = r.sent[1:]
	}
	if len(r.sent) >= r.most {
		// The limiter alone would let it go: it counts when requests were due, and one that went out late would come
		// close before the next ones.
		return nil, r.length - now.Sub(*r.sent[0])
	}
	at := now
	r.sent = append(r.sent, &at)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		at = time.Now() // only by now it is known to have arrived
	}, 0
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
	// A reset far away may be a mistake of the host: one request in 15 minutes finds out.
	return now.Add(min(pause, maxWait))
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

// paced lets each attempt wait for its turn.
type paced struct {
	pace *pacer
	next http.RoundTripper
}

func (t paced) RoundTrip(req *http.Request) (*http.Response, error) {
	l := t.pace.lanes[req.URL.Hostname()]
	answered, err := t.pace.turn(req.Context(), l)
	if err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(req)
	answered()
	if errors.Is(err, errForbidden) || errors.Is(err, errNoToken) {
		return nil, err // it was never sent
	}
	t.pace.count(l, req.URL.Path, callOf(req.Context()).attempt)
	if l.learn != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pauseUntil(l.learn(resp, time.Now()), waitRateLimit)
	}
	return resp, err
}

// count counts a request that has gone out.
func (p *pacer) count(l *lane, path string, attempt int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if attempt > 1 {
		p.calls.Retries++
	}
	if l.host == apiHost && strings.HasSuffix(path, "/about") {
		p.calls.About++
	} else {
		*l.sent++
	}
}
