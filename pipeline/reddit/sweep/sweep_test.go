package sweep

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/policy"
)

const pause = 30 * time.Second

type id = manifest.PostID

// A fakeReddit answers by a post's id: what follows the number are its answers, one letter for each
// time that it is asked about, the last for all further ones. l is live, r removed, a absent, u
// unclear. With e anywhere in a request the listing is empty, with x there is no answer, with f
// the client fails.
type fakeReddit struct {
	asked []string // the ids of each request
	at    []time.Duration
	times map[id]int
	start time.Time
}

var errFatal = errors.New("blocked")

func (f *fakeReddit) Ask(_ context.Context, ids []id) (reddit.Answer, error) {
	f.asked = append(f.asked, strings.Trim(fmt.Sprint(ids), "[]"))
	f.at = append(f.at, time.Since(f.start))
	a := reddit.Answer{Posts: map[id]reddit.Post{}, Unclear: map[id]manifest.Reason{}}
	var absent []id
	said := map[byte]bool{}
	for _, p := range ids {
		letters := strings.TrimLeft(string(p), "0123456789")
		letter := letters[min(f.times[p], len(letters)-1)]
		f.times[p]++
		said[letter] = true
		switch letter {
		case 'l':
			a.Posts[p] = reddit.Post{Facts: policy.Facts{HasMedia: true}}
		case 'r':
			a.Posts[p] = reddit.Post{Facts: policy.Facts{RemovedBy: "moderator"}}
		case 'u':
			a.Unclear[p] = "malformed_thing"
		default:
			absent = append(absent, p)
		}
	}
	switch {
	case said['f']:
		return reddit.Answer{}, errFatal
	case said['x']:
		return reddit.Answer{}, &reddit.Unanswered{Reason: "http_503"}
	case said['e'], len(a.Posts)+len(a.Unclear) == 0:
		return reddit.Answer{}, &reddit.Unanswered{Reason: reddit.ReasonEmptyListing}
	}
	a.Absent = absent
	return a, nil
}

// A heardLog is what a caller was told: "id state", in order.
type heardLog struct {
	recorded, handedOn []string
	takes              time.Duration // to record an answer
}

func newSweep(log *heardLog) (*Sweep[id], *fakeReddit) {
	f := &fakeReddit{times: map[id]int{}, start: time.Now()}
	return &Sweep[id]{
		Reddit: f, Pause: pause, Log: slog.New(slog.DiscardHandler), OnWait: func(polite.Wait) {},
		ID: func(p id) id { return p },
		Record: func(_ context.Context, heard []Heard[id]) error {
			time.Sleep(log.takes)
			for i, h := range heard {
				log.recorded = append(log.recorded, words(h))
				heard[i].Again = h.Absent
			}
			return nil
		},
		HandOn: func(_ context.Context, heard []Heard[id]) error {
			for _, h := range heard {
				log.handedOn = append(log.handedOn, words(h))
			}
			return nil
		},
	}, f
}

func words(h Heard[id]) string {
	s := string(h.Post) + " "
	switch {
	case h.Found != nil:
		s += string(h.Verdict.State)
	case h.Absent:
		s += strings.TrimSpace("absent " + string(h.Verdict.State))
	default:
		s += string(h.Verdict.Reason)
	}
	if h.Second {
		s += " twice asked"
	}
	return s
}

func posts(ids ...string) iter.Seq2[id, error] {
	return func(yield func(id, error) bool) {
		for _, p := range ids {
			if p == "broken" {
				yield("", errFatal)
				return
			}
			if !yield(id(p), nil) {
				return
			}
		}
	}
}

func numbered(n int, letters string) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i, letters))
	}
	return all
}

// bubble runs f as a subtest on synctest's clock.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// TestRun: what is asked, when, and what the caller hears of it.
func TestRun(t *testing.T) {
	full := numbered(policy.MaxAsk, "el")
	for _, tt := range []struct {
		name     string
		posts    []string
		asked    []string // the requests
		at       []time.Duration
		recorded []string
	}{
		{"nothing to ask", nil, nil, nil, nil},
		{"an answer for each", []string{"1l", "2r", "3u"},
			[]string{"1l 2r 3u"}, []time.Duration{0},
			[]string{"1l live", "2r removed", "3u malformed_thing"}},
		{"absent twice, or only once", []string{"1l", "2aa", "3al", "4au"},
			[]string{"1l 2aa 3al 4au", "2aa 3al 4au 1l"}, []time.Duration{0, pause},
			[]string{"1l live", "2aa absent", "3al absent", "4au absent",
				"2aa absent unavailable twice asked", "3al live twice asked", "4au malformed_thing twice asked"}},
		{"silence, and no witness", []string{"1e", "2a"},
			[]string{"1e 2a"}, []time.Duration{0},
			[]string{"1e empty_listing", "2a empty_listing"}},
		{"silence at the second asking", []string{"1l", "2ae"},
			[]string{"1l 2ae", "2ae 1l"}, []time.Duration{0, pause},
			[]string{"1l live", "2ae absent", "2ae empty_listing twice asked"}},
		{"no answer", []string{"1x", "2l"},
			[]string{"1x 2l"}, []time.Duration{0},
			[]string{"1x http_503", "2l http_503"}},
		{"silence, and a witness later", append(slices.Clone(full), "900l", "100aa"),
			[]string{strings.Join(full, " "), "900l 100aa", strings.Join(full[:99], " ") + " 900l", full[99] + " 900l",
				"100aa 900l"},
			[]time.Duration{0, 0, 0, 0, pause}, nil},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var log heardLog
			s, f := newSweep(&log)
			if err := s.Run(t.Context(), posts(tt.posts...)); err != nil {
				t.Fatalf("Run = %v", err)
			}
			if !slices.Equal(f.at, tt.at) || s.Asked != len(tt.asked) || len(log.handedOn) != len(tt.posts) {
				t.Errorf("%d requests at %v, %d posts handed on; want %d at %v, %d", s.Asked, f.at, len(log.handedOn),
					len(tt.asked), tt.at, len(tt.posts))
			}
			var handedOn []string // all but those that are asked about again
			for _, post := range tt.recorded {
				if !strings.HasSuffix(post, " absent") {
					handedOn = append(handedOn, post)
				}
			}
			if tt.recorded == nil {
				log = heardLog{}
			}
			want, got := [][]string{tt.asked, tt.recorded, handedOn}, [][]string{f.asked, log.recorded, log.handedOn}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests, recorded and handed on (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWitness: a live post is a better witness than one that is gone, and the next Run has it too.
// Nothing needs to take the posts on.
func TestWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newSweep(&heardLog{})
		s.HandOn = nil
		var log strings.Builder
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		for _, run := range [][]string{{"1r"}, {"2r"}, {"3l"}, {"4l"}, {"5e"}} {
			if err := s.Run(t.Context(), posts(run...)); err != nil {
				t.Fatal(err)
			}
		}
		// Silence beside a witness is final: it is not asked about again.
		if diff := cmp.Diff([]string{"1r", "2r 1r", "3l 2r", "4l 3l", "5e 3l"}, f.asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if n := strings.Count(log.String(), "reason=empty_listing"); n != 1 {
			t.Errorf("the log has %d lines about the one silent answer:\n%s", n, log.String())
		}
	})
}

// TestPauseWhileHandingOn: the pause passes while posts are still being handed on, and OnWait is
// told of what is left of it.
func TestPauseWhileHandingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newSweep(&heardLog{takes: time.Second})
		var waits []time.Duration
		s.OnWait = func(w polite.Wait) { waits = append(waits, w.For) }
		s.HandOn = func(context.Context, []Heard[id]) error {
			time.Sleep(10 * time.Second)
			return nil
		}
		all := append(numbered(4*policy.MaxAsk-1, "l"), "1000a", "1001l")
		if err := s.Run(t.Context(), posts(all...)); err != nil {
			t.Fatal(err)
		}
		// The absence is heard of at 4 s, after the fourth answer; the fifth comes at 5 s.
		// Five answers of 10 s each from 1 s on end at 51 s, the one to the second look at 61 s: the pause is within.
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 4*time.Second + pause,
			pause - time.Second, 61 * time.Second}
		if diff := cmp.Diff(want, append(append(f.at, waits...), time.Since(f.start))); diff != "" {
			t.Errorf("times of the requests, the wait, and how long Run took (-want +got):\n%s", diff)
		}
	})
}

// TestErrors: each ends the Run at once, as itself. While HandOn is busy, asking is 16 answers ahead at most.
func TestErrors(t *testing.T) {
	failing := func(context.Context, []Heard[id]) error { return errFatal }
	for _, tt := range []struct {
		name  string
		posts []string
		set   func(*Sweep[id])
		asked int
	}{
		{"of the client", []string{"1f"}, nil, 1},
		{"of a full request", append(numbered(policy.MaxAsk, "f"), "1000l"), nil, 1},
		{"of the second asking", []string{"1l", "2af"}, nil, 2},
		{"of asking beside the witness", append(numbered(policy.MaxAsk, "ef"), "1000l"), nil, 3},
		{"of the posts", []string{"1l", "broken"}, nil, 0},
		{"of Record", []string{"1l"}, func(s *Sweep[id]) { s.Record = failing }, 1},
		{"of HandOn", append(numbered(60*policy.MaxAsk, "l"), "1000l"), func(s *Sweep[id]) {
			s.HandOn = func(ctx context.Context, _ []Heard[id]) error {
				time.Sleep(time.Second)
				return errFatal
			}
		}, ahead + 2}, // one in HandOn, 16 waiting, one that is passed on
		{"of HandOn, about silent posts", []string{"1e"}, func(s *Sweep[id]) { s.HandOn = failing }, 1},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			s, f := newSweep(&heardLog{})
			if tt.set != nil {
				tt.set(s)
			}
			err := s.Run(t.Context(), posts(tt.posts...))
			if !errors.Is(err, errFatal) || len(f.asked) != tt.asked {
				t.Errorf("Run = %v after %d requests, want %v after %d", err, len(f.asked), errFatal, tt.asked)
			}
		})
	}
}

// TestStop: a Run that is stopped makes no further request, and hands on what it has heard.
func TestStop(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		posts []string
		asked int
		on    int // posts handed on
	}{
		{"before the first request", 0, []string{"1l"}, 0, 0},
		{"between two requests", 1500 * time.Millisecond, numbered(4*policy.MaxAsk, "l"), 2, 2 * policy.MaxAsk},
		{"in the pause", 10 * time.Second, []string{"1l", "2a"}, 1, 1},
		{"never", time.Hour, []string{"1l", "2a"}, 2, 2},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			log := heardLog{takes: time.Second}
			s, f := newSweep(&log)
			stop := make(chan struct{})
			if s.Stop = stop; tt.after == 0 {
				close(stop)
			} else {
				time.AfterFunc(tt.after, func() { close(stop) })
			}
			err := s.Run(t.Context(), posts(tt.posts...))
			if stopped := errors.Is(err, ErrStopped); stopped != (tt.after < time.Hour) || !stopped && err != nil {
				t.Errorf("Run = %v", err)
			}
			if len(f.asked) != tt.asked || len(log.handedOn) != tt.on {
				t.Errorf("%d requests, %d posts handed on; want %d and %d", len(f.asked), len(log.handedOn), tt.asked, tt.on)
			}
		})
	}
}

// TestContext: its end ends a pause and a wait for HandOn.
func TestContext(t *testing.T) {
	for name, all := range map[string][]string{"in the pause": {"1l", "2a"},
		"behind HandOn": numbered(30*policy.MaxAsk, "l")} {
		bubble(t, name, func(t *testing.T) {
			s, _ := newSweep(&heardLog{})
			s.HandOn = func(ctx context.Context, _ []Heard[id]) error {
				<-ctx.Done()
				return ctx.Err()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			if err := s.Run(ctx, posts(all...)); !errors.Is(err, context.DeadlineExceeded) ||
				time.Since(start) != time.Second {
				t.Errorf("Run = %v after %v", err, time.Since(start))
			}
		})
	}
}
