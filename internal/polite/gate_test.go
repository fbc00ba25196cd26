package polite

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
)

// TestWindow: the window alone, as what a limiter lets through comes in bursts. A request counts from when
// its answer came.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for perMinute, want := range map[float64]time.Duration{1.9: time.Minute, 1: time.Minute, 0.1: 10 * time.Minute} {
			r := NewWindow(perMinute)
			first, _ := r.take(time.Now())
			time.Sleep(5 * time.Second) // until its answer comes
			first()
			if answered, d := r.take(time.Now()); answered != nil || d != want {
				t.Errorf("%g a minute: the second waits %v, want %v from the first's answer", perMinute, d, want)
			}
			time.Sleep(want)
			if answered, d := r.take(time.Now()); answered == nil {
				t.Errorf("%g a minute: then it has to wait %v", perMinute, d)
			}
		}
	})
}

// TestGate: requests keep the pace and sit out a pause, which others neither shorten nor slip past with a place that
// they had before it; a shut gate fails them until the pause is over.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Wait
		g := &Gate{Host: "h", Limiter: rate.NewLimiter(1, 1), Pace: "no faster",
			Waits: &Waits{Tell: func(w Wait) { told = append(told, w) }}}
		start := time.Now()
		passed := func(want time.Duration) {
			t.Helper()
			answered, err := g.Pass(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			answered()
			if d := time.Since(start); d != want {
				t.Errorf("passed after %v, want %v", d, want)
			}
		}
		passed(0)
		passed(time.Second)
		g.Pause(start.Add(time.Minute), "rest")
		g.Pause(start.Add(10*time.Second), "a shorter rest")
		passed(time.Minute)
		if diff := cmp.Diff([]Wait{{Host: "h", Reason: "rest", For: 59 * time.Second}}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}

		// Two that hold places of the limiter when the pause begins take new ones after it.
		var at [2]time.Duration
		var both sync.WaitGroup
		for i := range at {
			both.Go(func() {
				if _, err := g.Pass(t.Context()); err != nil {
					t.Error(err)
				}
				at[i] = time.Since(start)
			})
			synctest.Wait()
		}
		g.Pause(start.Add(2*time.Minute), "rest")
		both.Wait()
		if d := at[1] - at[0]; min(at[0], at[1]) < 2*time.Minute || d.Abs() < time.Second {
			t.Errorf("passed after %v", at)
		}

		shut := errors.New("shut")
		now := time.Now()
		g.Shut(now.Add(time.Hour), "rest", shut)
		if _, err := g.Pass(t.Context()); err != shut {
			t.Errorf("at a shut gate: %v", err)
		}
		g.Open()
		if _, err := g.Pass(t.Context()); !is[*TooLong](err) || time.Now() != now {
			t.Errorf("with an hour to wait: %v after %v", err, time.Since(now))
		}
		time.Sleep(time.Hour)
		if _, err := g.Pass(t.Context()); err != nil || time.Since(now) != time.Hour {
			t.Errorf("after the pause: %v", err)
		}
	})
}

// TestZeroGate: the zero value holds nobody back but for a pause.
func TestZeroGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, start := new(Gate), time.Now()
		for _, pause := range []time.Duration{0, 0, time.Minute} {
			g.Pause(start.Add(pause), "rest")
			if _, err := g.Pass(t.Context()); err != nil || time.Since(start) != pause {
				t.Errorf("%v after %v, want %v", err, time.Since(start), pause)
			}
		}
	})
}
