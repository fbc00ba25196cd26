package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// purge erases posts, as the command does.
func (p place) purge(t testing.TB, ids ...manifest.PostID) {
	p.in(t, func(ws *workspace.Workspace) (err error) {
		for _, id := range ids {
			err = errors.Join(err, ws.Erase(context.Background(), id))
		}
		return err
	})
}

// job is a classification of severity, one with an example, or a moderation, by a server of the test's.
func (p place) job(t testing.TB, kind string, play modelserver.Play) (*Work, *modelserver.Server) {
	t.Helper()
	model := modelserver.New(t, map[bool]string{true: "openai", false: "vllm"}[kind == "scores"])
	model.Play = play
	server, err := endpoint.Open(endpoint.Options{URL: model.URL})
	testkit.OK(t, err)
	w := &Work{Store: p.store(), Model: "m", Now: func() time.Time { return noon }, Split: "test", Concurrency: 1}
	pictures := &Pictures{Store: p.store()}
	if kind == "classify" || kind == "examples" {
		tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, "")
		testkit.OK(t, err)
		model.Answer = func(modelserver.Request) string { return right }
		c := &Classification{Server: server, Pictures: pictures, Tasks: tasks, Split: "test", Runs: 1, Warn: func(string) {},
			Chat: endpoint.Chat{Model: "m", Dialect: endpoint.VLLM, Decoding: endpoint.Decoding{MaxTokens: 128}}}
		if kind == "examples" {
			c.Shots, w.Examples = 1, "train"
		}
		w.Questions = c.Questions
		return w, model
	}
	model.Answer = func(modelserver.Request) string { return `{"self-harm":0.1}` }
	m := &Moderation{Server: server, Pictures: pictures, Guard: kind == "guard", Send: []string{SendImage, SendText}, Split: "test",
		Chat: endpoint.Chat{Model: "m", Dialect: endpoint.VLLM, Decoding: endpoint.Decoding{MaxTokens: 128}}}
	if m.Guard {
		model.Answer = func(modelserver.Request) string { return "safe" }
	}
	w.Questions = m.Questions
	return w, model
}

// TestCheckedBeforeEachAttempt: a picture whose post was purged, became too old, got another picture, or whose grant
// ended while a server wanted a pause is not sent again.
func TestCheckedBeforeEachAttempt(t *testing.T) {
	ended := errors.New("the grant has ended")
	for _, kind := range []string{"classify", "scores", "guard"} {
		for event, want := range map[string]error{"purged": nil, "too old": &Stale{Rows: 1}, "another picture": nil,
			"grant": ended} {
			t.Run(kind+" "+event, func(t *testing.T) {
				t.Parallel()
				at := rows(t, 2) // one of the split test
				var mu sync.Mutex
				now, access := noon, error(nil)
				play := modelserver.First(1, func(w http.ResponseWriter, r modelserver.Request) bool {
					mu.Lock()
					defer mu.Unlock()
					switch event {
					case "purged":
						at.purge(t, "row00")
					case "too old":
						now = noon.Add(49 * time.Hour)
					case "another picture":
						at.in(t, func(ws *workspace.Workspace) error {
							body := pngOf(t, 50)
							return ws.StoreImage(context.Background(), testRow(0).Key, body,
								workspace.Image{Format: "png", Width: 8, Height: 8, OriginalSHA256: state.SHA256(body)})
						})
					case "grant":
						access = ended
					}
					return modelserver.Error(503, "loading", "")(w, r)
				})
				work, model := at.job(t, kind, play)
				work.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
				work.Access = func(time.Time) error { mu.Lock(); defer mu.Unlock(); return access }
				_, err := work.Do(t.Context(), nil)
				if stale, ok := errors.AsType[*Stale](err); !errors.Is(err, want) && !(ok && event == "too old" && stale.Rows == 1) {
					t.Errorf("error %v, want %v", err, want)
				}
				if n := len(model.Requests()); n != 1 {
					t.Errorf("it was sent %d times, want once", n)
				}
			})
		}
	}
}

// TestDamagedPicture: a row whose picture is lost is not asked about without it, and nothing is stored of it.
func TestDamagedPicture(t *testing.T) {
	for kind, task := range map[string]string{"classify": "severity", "scores": "moderation/scores",
		"guard": "moderation/chat"} {
		at := rows(t, 2) // one of the split test
		at.in(t, func(ws *workspace.Workspace) error {
			return os.Remove(filepath.Join(ws.Dir(), ws.ImageName(testRow(0).Key, "png")))
		})
		work, model := at.job(t, kind, nil)
		_, err := work.Do(t.Context(), nil)
		if _, damaged := errors.AsType[*workspace.Damaged](err); !damaged || !strings.Contains(err.Error(), "row00") {
			t.Errorf("%s: error %v", kind, err)
		}
		testkit.Same(t, kind+": sent and stored", [2]int{}, [2]int{len(model.Requests()), len(at.answers(t, task))})
	}
}

// TestPurgeBeside: a purge works while a slow server is waited for. What it erased is not sent, and no late answer
// brings a word of it back; what was spent on it stays counted.
func TestPurgeBeside(t *testing.T) {
	at := rows(t, 8)
	const secret = "what the meme of the erased post says"
	work, model := at.job(t, "classify", modelserver.First(1, func(w http.ResponseWriter, r modelserver.Request) bool {
		at.purge(t, "row00", "row04")
		return modelserver.Says(`{"severity":"None","why":"`+secret+`"}`, "stop")(w, r)
	}))
	var got []string
	_, err := work.Do(t.Context(), func(_ context.Context, _ *workspace.Workspace, done *Done) error {
		for _, rec := range done.Rows {
			a, _ := done.Answer(done.Questions[0], rec)
			got = append(got, string(rec.ID)+" "+a.Outcome)
		}
		return nil
	})
	testkit.OK(t, err)
	testkit.Same(t, "answers in the end", []string{"row02 ok", "row06 ok"}, got)
	testkit.Same(t, "requests", 3, len(model.Requests()))
	var stored []string
	for _, a := range at.answers(t, "severity") {
		stored = append(stored, string(a.ID))
	}
	testkit.Same(t, "stored", []string{"row02", "row06"}, stored)
	body, err := os.ReadFile(filepath.Join(string(at), "state.db"))
	if err != nil || strings.Contains(string(body), secret) {
		t.Errorf("state.db holds what was said of an erased post (%v)", err)
	}
	at.in(t, func(ws *workspace.Workspace) error {
		spent, err := ws.Spent(t.Context())
		testkit.Same(t, "requests that count", 3, spent["m"].Requests)
		return err
	})
}

// TestExamplePurged: where an example is purged while the last questions are answered, all are asked again with another one.
func TestExamplePurged(t *testing.T) {
	at := rows(t, 24)
	var work *Work
	var shown []manifest.PostID
	asked := 0
	work, model := at.job(t, "classify", func(w http.ResponseWriter, r modelserver.Request) bool {
		asked++
		if asked == 12 {
			at.purge(t, shown[0])
		}
		return false
	})
	c := &Classification{Shots: 1, Seed: 1, Runs: 1, Split: "test", Warn: func(string) {}, Pictures: &Pictures{Store: at.store()},
		Chat: endpoint.Chat{Model: "m", Dialect: endpoint.VLLM, Decoding: endpoint.Decoding{MaxTokens: 128}}}
	server, err := endpoint.Open(endpoint.Options{URL: model.URL})
	testkit.OK(t, err)
	c.Server = server
	c.Tasks, err = Tasks(manifest.FigSIM(), []string{"severity"}, "")
	testkit.OK(t, err)
	work.Examples = "train"
	work.Questions = func(ctx context.Context, ws *workspace.Workspace, examples []workspace.Record) ([]Question, error) {
		all, err := c.Questions(ctx, ws, examples)
		for _, q := range all {
			shown = append(shown, q.With[0].ID)
		}
		return all, err
	}
	outcomes := map[string]int{}
	done, err := work.Do(t.Context(), func(_ context.Context, _ *workspace.Workspace, done *Done) error {
		for _, rec := range done.Rows {
			a, _ := done.Answer(done.Questions[0], rec)
			outcomes[a.Outcome]++
		}
		return nil
	})
	testkit.OK(t, err)
	testkit.Same(t, "answers in the end", map[string]int{"ok": 12}, outcomes)
	testkit.Same(t, "questions asked", 24, done.Asked)
	if last := shown[len(shown)-1]; last == shown[0] {
		t.Errorf("%s is still an example", last)
	}
}

// TestNoAnswerNoTime: what has no answer has no time of the first one.
func TestNoAnswerNoTime(t *testing.T) {
	var r TaskReport
	r.count(&Done{}, Question{})
	body, err := json.Marshal(r)
	if err != nil || strings.Contains(string(body), "0001-") {
		t.Errorf("%s (%v)", body, err)
	}
}

// TestTwoBeside: two works ask on one workspace at the same time, about the same and other questions.
func TestTwoBeside(t *testing.T) {
	at := rows(t, 16)
	var group sync.WaitGroup
	for _, kind := range []string{"classify", "guard", "classify"} {
		group.Go(func() {
			work, _ := at.job(t, kind, nil)
			work.Concurrency = 2
			done, err := work.Do(t.Context(), nil)
			if err != nil || len(done.answers) != 8 {
				t.Errorf("%s: %+v, %v", kind, done, err)
			}
		})
	}
	group.Wait()
	testkit.Same(t, "answers stored", 8, len(at.answers(t, "severity")))
	testkit.Same(t, "answers stored", 8, len(at.answers(t, "moderation/chat")))
}

// TestInUse: while another command writes, questions are asked, and what was answered is stored when it is done.
func TestInUse(t *testing.T) {
	at := rows(t, 8)
	d := newDesk(at)
	other, err := workspace.Open(t.Context(), string(at), workspace.Options{Existing: true})
	testkit.OK(t, err)
	told, answered := 0, make(chan struct{})
	d.Progress = func(p Progress) {
		if p.Asked == p.Total {
			close(answered)
		}
	}
	d.Store.Busy = func(err error) {
		told++
		<-answered
		testkit.Same(t, "asked while it is in use", "row00 row02 row04 row06", strings.Join(d.asked, " "))
		testkit.OK(t, other.Close())
	}
	_, _, err = d.does(t)
	testkit.OK(t, err)
	testkit.Same(t, "told", 1, told)
	testkit.Same(t, "stored", 4, len(at.answers(t, "severity")))
}

// TestPatience: a workspace that stays in use is not waited for without end: by an interrupted work half a minute, by
// others half a day, and the error says how many answers are lost.
func TestPatience(t *testing.T) {
	at := rows(t, 4)
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(at)
			d.Store.Write = func(context.Context, func(*workspace.Workspace) error) error { return workspace.ErrInUse }
			told := 0
			d.Store.Busy = func(error) { told++ }
			stop := make(chan struct{})
			d.Stop = stop
			if stopped {
				time.AfterFunc(time.Hour, func() { close(stop) })
			}
			began := time.Now()
			_, _, err := d.does(t)
			want := patience
			if stopped {
				want = time.Hour + grace
			}
			if took := time.Since(began); took < want || took > want+2*tryAgain {
				t.Errorf("it took %v, want %v", took, want)
			}
			testkit.Same(t, "told that it is in use", 1, told)
			if !errors.Is(err, workspace.ErrInUse) || errors.Is(err, state.ErrInterrupted) != stopped || !strings.Contains(err.Error(), "2 answers could not be stored") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestStoppedWhileItWaits: a work that waits for a workspace in use is ended with its context.
func TestStoppedWhileItWaits(t *testing.T) {
	at := rows(t, 4)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(at)
		d.Store.Write = func(context.Context, func(*workspace.Workspace) error) error { return workspace.ErrInUse }
		d.Begin = func(context.Context, *workspace.Workspace) error { return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if _, err := d.Do(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		testkit.Same(t, "asked", 0, len(d.asked))
	})
}

// TestStoredAsTheyCome: an answer is stored at once, or 2 seconds after the last ones were, or when a hundred wait; in
// between the workspace is free.
func TestStoredAsTheyCome(t *testing.T) {
	at := rows(t, 4)
	stored := func(task string) (n int) {
		testkit.OK(t, at.store().Read(t.Context(), func(ws *workspace.Workspace) error {
			all, err := ws.Answers(t.Context(), task)
			n = len(all)
			return err
		}))
		return n
	}
	for _, test := range []struct {
		task    string
		each    time.Duration // an answer takes so long
		several int           // questions about each of two rows
		want    []int         // stored before each question
	}{
		{"one at a time", 30 * time.Second, 3, []int{0, 1, 2, 3, 4, 5}},
		{"several", 900 * time.Millisecond, 6, []int{0, 1, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(at)
			d.task = test.task
			d.Questions = d.several(test.several)
			var got []int
			d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
				time.Sleep(test.each / 9) // what is stored at once is stored by then
				got = append(got, stored(test.task))
				time.Sleep(test.each - test.each/9)
				return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
			}
			_, _, err := d.does(t)
			testkit.Same(t, test.task+": stored before each question", test.want, got, err)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(at)
		d.task = "many"
		d.Questions = d.several(105)
		writes := 0
		write := d.Store.Write
		d.Store.Write = func(ctx context.Context, do func(*workspace.Workspace) error) error {
			writes++
			return write(ctx, do)
		}
		_, _, err := d.does(t)
		testkit.OK(t, err)
		testkit.Same(t, "stored", 210, stored("many"))
		if writes < 3 || writes > 5 { // the first, two hundreds, the rest, and what is concluded
			t.Errorf("the workspace was written %d times for 210 answers", writes)
		}
	})
}

// several makes so many questions about each row.
func (d *desk) several(n int) func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
	return func(context.Context, *workspace.Workspace, []workspace.Record) (all []Question, err error) {
		for run := range n {
			q := d.question()
			q.Run = run
			q.Digest = func(rec workspace.Record) string {
				return state.SHA256(fmt.Appendf(nil, "%s %d %s", d.task, run, rec.ID))
			}
			all = append(all, q)
		}
		return all, nil
	}
}

// TestStoringTakesLong: a workspace in which it takes long to store is left alone for the longer.
func TestStoringTakesLong(t *testing.T) {
	at := rows(t, 4)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(at)
		d.Questions = d.several(60)
		began, write := time.Now(), d.Store.Write
		var writes []string
		d.Store.Write = func(ctx context.Context, do func(*workspace.Workspace) error) error {
			// SQLite waits for a reader by milliseconds.
			writes = append(writes, time.Since(began).Truncate(100*time.Millisecond).String())
			time.Sleep(time.Second)
			return write(ctx, do)
		}
		d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
			time.Sleep(500 * time.Millisecond)
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
		}
		_, _, err := d.does(t)
		// The last two are the rest, and what is concluded.
		testkit.Same(t, "written after", "500ms 21.5s 42.5s 1m0s 1m1s", strings.Join(writes, " "), err)
	})
}

// TestCannotBeStored: where answers cannot be stored nothing more is sent, those under way are waited for, and storing
// is tried once more. The error says how many are lost.
func TestCannotBeStored(t *testing.T) {
	at, full := rows(t, 40), errors.New("the disk is full")
	for _, test := range []struct {
		name   string
		fails  int           // so many writes fail
		wait   time.Duration // before its turn, from the second question on
		asked  int
		stored int
		want   string
	}{
		{"for good", 9, 0, 6, 0, "6 answers could not be stored; they are lost, and the next command asks and pays for " +
			"them again: the disk is full"},
		{"for a moment", 1, 0, 6, 6, "asking stopped when an answer could not be stored, which it is now: the disk is full"},
		{"others wait for their turn", 9, time.Hour, 1, 0,
			"1 answer could not be stored; it is lost, and the next command asks and pays for it again: the disk is full"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(at)
			d.task, d.Concurrency = test.name, 3
			writes, write := 0, d.Store.Write
			d.Store.Write = func(ctx context.Context, do func(*workspace.Workspace) error) error {
				writes++
				if writes <= test.fails {
					time.Sleep(time.Second) // the second question of each three is under way by then
					return full
				}
				return write(ctx, do)
			}
			q := d.question()
			ask, first := q.Ask, true
			q.Ask = func(ctx context.Context, rec workspace.Record, check func(sent int) error) (endpoint.Reply, error) {
				d.mu.Lock()
				waits := !first
				first = false
				d.mu.Unlock()
				if waits {
					time.Sleep(test.wait)
				}
				return ask(ctx, rec, check)
			}
			d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
				return []Question{q}, nil
			}
			d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
				time.Sleep(time.Minute)
				return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
			}
			_, _, err := d.does(t)
			if !errors.Is(err, full) || err.Error() != test.want {
				t.Errorf("%s: error %v, want %s", test.name, err, test.want)
			}
			testkit.Same(t, test.name+": asked and stored", [2]int{test.asked, test.stored},
				[2]int{len(d.asked), len(at.answers(t, test.name))})
			testkit.Same(t, test.name+": tried to store", 2, writes)
		})
	}
}

// TestStoringInUse: while another command writes, the one that waits is told of it once, and what was answered is
// stored when it is done.
func TestStoringInUse(t *testing.T) {
	at := rows(t, 16)
	for _, test := range []struct {
		name  string
		until time.Duration // it is in use
		told  int
	}{
		{"in use for a while", 70 * time.Second, 1},
		{"never in use", 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(at)
			d.task = test.name
			began, told, write := time.Now(), 0, d.Store.Write
			d.Store.Busy = func(err error) {
				told++
				if !errors.Is(err, workspace.ErrInUse) {
					t.Errorf("%s: told %v", test.name, err)
				}
			}
			d.Store.Write = func(ctx context.Context, do func(*workspace.Workspace) error) error {
				if time.Since(began) < test.until {
					return workspace.ErrInUse
				}
				return write(ctx, do)
			}
			d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
				time.Sleep(31 * time.Second)
				return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
			}
			_, _, err := d.does(t)
			testkit.Same(t, test.name+": asked and told", [2]int{8, test.told}, [2]int{len(d.asked), told}, err)
			testkit.Same(t, test.name+": stored", 8, len(at.answers(t, test.name)))
		})
	}
}

// TestRoom: where nothing can be stored, no more than a thousand answers are held.
func TestRoom(t *testing.T) {
	at := rows(t, 4)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(at)
		d.Store.Read = inMemory(t, at)
		d.Store.Write = func(context.Context, func(*workspace.Workspace) error) error { return workspace.ErrInUse }
		d.Limits.Cost = 1 // while it is not known what an answer costs, one is asked after the other
		one := d.question()
		d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) (all []Question, err error) {
			for run := range 600 {
				q := one
				q.Digest = func(rec workspace.Record) string { return state.SHA256(fmt.Appendf(nil, "%d %s", run, rec.ID)) }
				all = append(all, q)
			}
			return all, nil
		}
		_, _, err := d.does(t)
		if !errors.Is(err, workspace.ErrInUse) || len(d.asked) != holdMost {
			t.Errorf("%d questions were asked, error %v", len(d.asked), err)
		}
	})
}

// inMemory opens the workspace once for many reads.
func inMemory(t *testing.T, at place) func(context.Context, func(*workspace.Workspace) error) error {
	t.Helper()
	ws, err := workspace.Open(t.Context(), string(at), workspace.Options{ReadOnly: true})
	testkit.OK(t, err)
	t.Cleanup(func() { testkit.OK(t, ws.Close()) })
	return func(_ context.Context, do func(*workspace.Workspace) error) error { return do(ws) }
}

// TestTotal: what earlier commands have spent on any model counts, also on posts that were erased since.
func TestTotal(t *testing.T) {
	at := rows(t, 8)
	do := func(model, task string, l Limits) (*Done, string) {
		d := newDesk(at)
		d.Model, d.task, d.Limits = model, task, l
		done, asked, err := d.does(t)
		testkit.OK(t, err)
		return done, asked
	}
	prices := Limits{PriceIn: 1, PriceOut: 1} // an answer costs 105, and 110 at most
	done, _ := do("m", "one", prices)
	testkit.Same(t, "spent", "0.000420", fmt.Sprintf("%.6f", done.Total))
	at.purge(t, "row06")
	limited := prices
	limited.Total = 0.000640
	done, asked := do("n", "two", limited)
	testkit.Same(t, "asked", "row00 row02", asked)
	testkit.Same(t, "the limit", "0.00063 is spent by all commands, and the next answer could go beyond 0.00064",
		done.Limit)
	testkit.Same(t, "left", 1, done.Left)
	// The dearer price of now counts for the model that is asked.
	dearer := Limits{PriceIn: 10, PriceOut: 10, Total: 0.005}
	done, asked = do("m", "three", dearer)
	testkit.Same(t, "asked", "", asked)
	testkit.Same(t, "spent", "0.004410", fmt.Sprintf("%.6f", done.Total))
}

// TestReadAgain: a stored answer is read by the present rules, and one of which only the beginning was kept is not.
func TestReadAgain(t *testing.T) {
	at := rows(t, 4)
	reads := "old"
	do := func() map[string]string {
		d := newDesk(at)
		d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
			return endpoint.Reply{Outcome: endpoint.OK, Text: []string{"short", strings.Repeat("long ", maxText)}[n]}, nil
		}
		d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
			q := d.question()
			q.Read = func(string) (endpoint.Outcome, string) {
				if reads == "old" {
					return NotJSON, "old"
				}
				return endpoint.OK, ""
			}
			return []Question{q}, nil
		}
		done, _, err := d.does(t)
		testkit.OK(t, err)
		got := map[string]string{}
		for _, rec := range done.Rows {
			a, _ := done.Answer(done.Questions[0], rec)
			got[string(rec.ID)] = a.Outcome + a.Detail
		}
		return got
	}
	testkit.Same(t, "first", map[string]string{"row00": "not_jsonold", "row02": "not_jsonold"}, do())
	reads = "new"
	testkit.Same(t, "then", map[string]string{"row00": "ok", "row02": "not_jsonold"}, do())

	q := Question{Read: func(string) (endpoint.Outcome, string) { return UnknownLabel, "new" }}
	for _, test := range []struct {
		name    string
		outcome endpoint.Outcome
		length  int
		again   bool
	}{
		{"ok", endpoint.OK, 1, true},
		{"ok, and all of it was kept", endpoint.OK, 2 * maxText, true},
		{"not read, and all of it was kept", NotJSON, maxText - 4, true}, // a character has up to four bytes
		{"not read, and perhaps cut", NotJSON, maxText - 3, false},
		{"refused", endpoint.Refused, 1, false},
	} {
		a := workspace.Answer{Outcome: string(test.outcome), Detail: "old", Text: strings.Repeat("x", test.length)}
		want := a
		if test.again {
			want.Outcome, want.Detail = string(UnknownLabel), "new"
		}
		testkit.Same(t, test.name, want, q.again(a))
		testkit.Same(t, test.name+", without a rule", a, Question{}.again(a))
	}
}
