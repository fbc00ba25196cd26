package polite

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A Gate says when a request to one host may go out. The zero value lets every request out at once. It is safe for
// concurrent use.
type Gate struct {
	Host    string
	Limiter *rate.Limiter // the pace of requests; nil = none
	Window  *Window       // what no stretch of time may exceed; nil = none
	Pace    string        // the reason of waits for these two, for people
	Waits   *Waits        // is told of each wait; nil = none is

	mu     sync.Mutex
	paused time.Time // no request before this
	reason string    // why
	shut   error     // of every request during the pause, in place of waiting for its end
}

// A TooLong is the error of a request that would have to sit out a pause of more than MaxWait.
type TooLong struct{ For time.Duration }

// Error says how long the pause is.
func (e *TooLong) Error() string {
	return fmt.Sprintf("a pause of %v, more than the %v that a run waits", e.For.Round(time.Second), MaxWait)
}

// Pass waits until a request may go out. The caller calls answered when the request has been answered, or has failed.
// Its error is a *TooLong, that of Shut, or ctx's.
func (g *Gate) Pass(ctx context.Context) (answered func(), err error) {
	waits := g.Waits
	if waits == nil {
		waits = new(Waits)
	}
	// What another request learned during a wait counts, so that all is looked at again after each.
	for reserved := g.Limiter == nil; ; {
		now := time.Now()
		w := Wait{Host: g.Host, Reason: g.Pace}
		paused, reason, shut := g.Paused(now)
		switch {
		case shut != nil:
			return nil, shut
		case paused > MaxWait:
			return nil, &TooLong{paused}
		case paused > 0:
			// A place in the limiter's row that was reserved before a pause may lie within it.
			w.Reason, w.For, reserved = reason, paused, g.Limiter == nil
		case !reserved:
			w.For, reserved = g.Limiter.Reserve().Delay(), true
		default:
			answered, w.For = g.Window.take(now)
			if answered != nil {
				return answered, nil
			}
		}
		if err := waits.Sleep(ctx, w); err != nil {
			return nil, err
		}
	}
}

// Paused returns how long requests pause, 0 or less for not at all, and the reason; or the error of Shut.
func (g *Gate) Paused(now time.Time) (left time.Duration, reason string, shut error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !now.Before(g.paused) {
		g.shut = nil // the rest is over, and a short pause after it is only a pause
	}
	return g.paused.Sub(now), g.reason, g.shut
}

// Pause holds all requests back until t. It never shortens a pause.
func (g *Gate) Pause(t time.Time, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pause(t, reason)
}

// Shut is Pause, but until t each request fails with err at once.
func (g *Gate) Shut(t time.Time, reason string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = err
	g.pause(t, reason)
}

// Open takes Shut back. A pause stays.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = nil
}

// pause needs mu.
func (g *Gate) pause(t time.Time, reason string) {
	if t.After(g.paused) {
		g.paused, g.reason = t, reason
	}
}

// A Window holds requests to at most so many in any stretch of one length. A nil one holds none back. It is safe for
// concurrent use, and several Gates may share it.
type Window struct {
	most   int
	length time.Duration

	mu   sync.Mutex
	sent []*time.Time // when the last ones were answered, or sent where they are not yet
}

// NewWindow allows a whole number of requests in any minute; below one a minute, one in so long.
func NewWindow(perMinute float64) *Window {
	one := time.Duration(math.Round(60 / perMinute * float64(time.Second)))
	return &Window{most: max(int(perMinute), 1), length: max(time.Minute, one)}
}

// take lets a request go out now, or says how long to wait. The request counts from when answered is called.
func (r *Window) take(now time.Time) (answered func(), d time.Duration) {
	if r == nil {
		return func() {}, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.sent) > 0 && now.Sub(*r.sent[0]) >= r.length {
		r.sent = r.sent[1:]
	}
	if len(r.sent) >= r.most {
		// A limiter alone would let it go: it counts when requests were due, and one that went out late would come
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
