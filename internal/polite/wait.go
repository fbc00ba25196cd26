package polite

import (
	"context"
	"sync"
	"time"
)

// quietWait is the longest wait that Waits.Tell is not called for.
const quietWait = 2 * time.Second

// A Wait is a pause that a client is about to make.
type Wait struct {
	Host   string
	Reason string // for people: "its rate limit is used up"
	For    time.Duration
}

// Waits tells a person of waits and adds them up. The zero value tells nobody. It is safe for concurrent use.
type Waits struct {
	Tell func(Wait) // called before each wait of more than 2 s, from any goroutine; may be nil

	mu    sync.Mutex
	open  int                    // waits that have begun and not ended
	since time.Time              // when the first of them began
	total time.Duration          // of those that have ended; waits side by side count once
	by    map[Wait]time.Duration // the sums of waits, each without its For
}

// Begin takes note that a wait begins, and tells of it first when it is long. The caller waits, and calls end after it.
func (w *Waits) Begin(x Wait) (end func()) {
	if x.For > quietWait && w.Tell != nil {
		w.Tell(x)
	}
	began := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == 0 {
		w.since = began
	}
	w.open++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.by == nil {
			w.by = map[Wait]time.Duration{}
		}
		w.by[Wait{Host: x.Host, Reason: x.Reason}] += time.Since(began)
		w.open--
		if w.open == 0 {
			w.total += time.Since(w.since)
		}
	}
}

// Sleep makes a wait. Its error is that of ctx, if it ended first.
func (w *Waits) Sleep(ctx context.Context, x Wait) error {
	defer w.Begin(x)()
	select {
	case <-time.After(x.For):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sum returns for how long something was waited for, where waits side by side count once, and the host and the reason
// that the longest waits had in sum; For is that sum. They are zero without a wait.
func (w *Waits) Sum() (total time.Duration, longest Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for x, d := range w.by {
		if d > longest.For {
			longest = Wait{x.Host, x.Reason, d}
		}
	}
	return w.total, longest
}
