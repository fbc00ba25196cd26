package models

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// TestConcurrency: so many questions are asked at once as are wanted, and no more.
func TestConcurrency(t *testing.T) {
	at := rows(t, 16) // eight of the split test
	for n, want := range map[int]int{0: 1, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(at)
			d.task, d.Concurrency = fmt.Sprint("at once ", n), n
			asking, most := 0, 0
			d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
				d.mu.Lock()
				asking++
				most = max(most, asking)
				d.mu.Unlock()
				time.Sleep(time.Second)
				d.mu.Lock()
				asking--
				d.mu.Unlock()
				return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
			}
			_, _, err := d.does(t)
			testkit.Same(t, d.task, want, most, err)
		})
	}
}

// TestInterruptedWaits: an interrupted work asks nothing more and waits half a minute for the answers that are under
// way; those that come in time are stored.
func TestInterruptedWaits(t *testing.T) {
	at := rows(t, 8)
	for _, test := range []struct {
		name   string
		after  time.Duration // from the interrupt to the answer
		took   time.Duration // the work, from there
		stored int
	}{
		{"in time", 20 * time.Second, 20 * time.Second, 1},
		{"too late", time.Hour, grace, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(at)
			d.task = test.name
			stop := make(chan struct{})
			d.Stop = stop
			q := d.question()
			q.Ask = func(ctx context.Context, _ workspace.Record, _ func(int) error) (endpoint.Reply, error) {
				close(stop) // a second question would close it again
				select {
				case <-time.After(test.after):
					return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
				case <-ctx.Done():
					return endpoint.Reply{Sent: 1}, ctx.Err()
				}
			}
			d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
				return []Question{q}, nil
			}
			began := time.Now()
			_, _, err := d.does(t)
			if took := time.Since(began); !errors.Is(err, state.ErrInterrupted) || took != test.took {
				t.Errorf("%s: it took %v, want %v; error %v", test.name, took, test.took, err)
			}
			testkit.Same(t, test.name+": stored", test.stored, len(at.answers(t, test.name)))
		})
	}
}

// TestRoomForText: where nothing can be stored, no more than 64 MiB of text are held.
func TestRoomForText(t *testing.T) {
	at := rows(t, 64)
	const each = 4 << 20
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(at)
		d.Store.Read = inMemory(t, at)
		d.Store.Write = func(context.Context, func(*workspace.Workspace) error) error { return workspace.ErrInUse }
		d.Limits.Cost = 1 // while it is not known what an answer costs, one is asked after the other
		text := strings.Repeat("x", each)
		d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
			return endpoint.Reply{Outcome: endpoint.OK, Text: text}, nil
		}
		_, _, err := d.does(t)
		if n := len(d.asked); !errors.Is(err, workspace.ErrInUse) || n != holdBytes/each {
			t.Errorf("%d questions were asked, error %v", n, err)
		}
	})
}

// TestLimitsAreReached: what costs exactly as much as a limit is asked.
func TestLimitsAreReached(t *testing.T) {
	at := rows(t, 12)
	prices := Limits{PriceIn: 1e6, PriceOut: 1e6} // an answer costs 105, and 110 at most
	for name, limit := range map[string]func(*Limits){
		"a command's":   func(l *Limits) { l.Cost = 105 + 105 + 110 },
		"all commands'": func(l *Limits) { l.Total = 105 + 105 + 110 },
	} {
		d := newDesk(at)
		d.task, d.Model, d.Limits = name, name, prices
		before := 0.0
		if name == "all commands'" {
			at.in(t, func(ws *workspace.Workspace) error {
				all, err := ws.Spent(t.Context())
				for _, s := range all {
					before += s.Cost
				}
				return err
			})
		}
		limit(&d.Limits)
		if d.Limits.Total > 0 {
			d.Limits.Total += before
		}
		_, asked, err := d.does(t)
		testkit.Same(t, name, "row00 row02 row04", asked, err)

		// The third may cost 110 for all that is known, though the others cost 105.
		d = newDesk(at)
		d.task, d.Model, d.Limits = name+", less", name+", less", prices
		if limit(&d.Limits); d.Limits.Cost > 0 {
			d.Limits.Cost--
			_, asked, err = d.does(t)
			testkit.Same(t, d.task, "row00 row02", asked, err)
		}
	}
}

// TestDisclosesAhead: what is about to be sent is said of one row, then of twice as many rows each time, and of a
// hundred at most.
func TestDisclosesAhead(t *testing.T) {
	at := rows(t, 2*(1+2+4+8+16+32+64+maxAhead+3))
	d := newDesk(at)
	d.Store.Read = inMemory(t, at)
	var said []int
	d.Before = func(_ context.Context, _ *workspace.Workspace, rows []string) error {
		said = append(said, len(rows))
		return nil
	}
	q := d.question()
	q.With = nil
	d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
		return []Question{q}, nil
	}
	_, _, err := d.does(t)
	testkit.Same(t, "rows at once", []int{1, 2, 4, 8, 16, 32, 64, maxAhead, 3}, said, err)
}

// TestLimitAfterRefresh: a work that goes on after Reddit was asked again says of no row beyond its limit that it is
// sent.
func TestLimitAfterRefresh(t *testing.T) {
	d := newDesk(rows(t, 24))
	var said []string
	d.Before = func(_ context.Context, _ *workspace.Workspace, rows []string) error {
		said = append(said, rows...)
		return nil
	}
	d.Limits.Requests = 5
	d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
		d.mu.Lock()
		d.now = d.now.Add(20 * time.Hour)
		d.mu.Unlock()
		return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
	}
	d.Refresh = func(_ context.Context, ws *workspace.Workspace) (int, error) {
		seen(t, ws, 24, d.now)
		return 0, nil
	}
	done, asked, err := d.does(t)
	testkit.Same(t, "asked", "row00 row02 row04 row06 row08", asked, err)
	testkit.Same(t, "left", 7, done.Left)
	testkit.Same(t, "said to be sent", []string{"row00", "row01", "row02", "row04", "row06", "row08"}, said)
}

// TestGoneWhileAsked: a row that went while it waited for its turn is neither asked about nor counted.
func TestGoneWhileAsked(t *testing.T) {
	d := newDesk(rows(t, 8))
	var progress []string
	d.Progress = func(p Progress) { progress = append(progress, fmt.Sprint(p.Asked, "/", p.Total)) }
	d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
		if n == 0 {
			d.place.purge(t, "row04")
		}
		return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
	}
	done, asked, err := d.does(t)
	testkit.Same(t, "asked", "row00 row02 row06", asked, err)
	testkit.Same(t, "asked, known, left and rows", [4]int{3, 0, 0, 3},
		[4]int{done.Asked, done.Known, done.Left, len(done.Rows)})
	testkit.Same(t, "progress", []string{"1/4", "2/4", "3/3"}, progress)
}

// TestAbsentOnce: a row that Reddit's last answer left out may not be sent before Reddit is asked again, at first and
// while others are asked about.
func TestAbsentOnce(t *testing.T) {
	at := rows(t, 8)
	absent := func(ws *workspace.Workspace, id manifest.PostID) error {
		return ws.SetPosts(context.Background(), []workspace.Post{{ID: id, State: manifest.StateLive, CheckedAt: noon,
			LiveAt: noon, AbsentAt: noon}})
	}
	for _, test := range []struct {
		row  manifest.PostID // that is left out while row00 is asked about
		want string
	}{{"row04", "row00 row02"}, {"row01", "row00"}} { // row01 is sent along with each
		d := newDesk(at)
		d.task, d.Examples = string(test.row), "train"
		d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
			if n == 0 {
				at.in(t, func(ws *workspace.Workspace) error { return absent(ws, test.row) })
			}
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
		}
		for i, want := range []string{test.want, ""} {
			_, asked, err := d.does(t)
			if stale, ok := errors.AsType[*Stale](err); !ok || stale.Rows != 1 {
				t.Errorf("%s is left out, %d: %v", test.row, i, err)
			}
			testkit.Same(t, fmt.Sprintf("%s is left out, %d: asked", test.row, i), want, asked)
		}
		at.in(t, func(ws *workspace.Workspace) error { seen(t, ws, 8, noon); return nil })
	}
}
