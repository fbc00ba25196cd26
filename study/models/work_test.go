package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/brokenoff"
	"rehydrate/internal/testkit/measure"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
	"rehydrate/study/endpoint"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// testRow is the entry of a post, with labels under FigSIM's schema.
func testRow(i int) manifest.Entry {
	split := "test"
	if i%2 == 1 {
		split = "train"
	}
	return manifest.Entry{Key: manifest.Key{ID: manifest.PostID(fmt.Sprintf("row%02d", i))}, Ordinal: i, Line: i + 2,
		Split:  split,
		Labels: [][]int{{i / 2 % 4}, {i / 2 % 6}, {i / 2 % 6}, {0}, {0}}}
}

// pngOf is a small PNG that no other number has.
func pngOf(t testing.TB, n int) []byte {
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	img.Set(n%8, n/8%8, color.RGBA{R: 255, G: uint8(n / 64), A: 255})
	var b bytes.Buffer
	testkit.OK(t, png.Encode(&b, img))
	return b.Bytes()
}

// A place is the folder of a workspace that nobody has open.
type place string

// store opens it as the program does.
func (p place) store() Store {
	with := func(o workspace.Options) func(context.Context, func(*workspace.Workspace) error) error {
		return func(ctx context.Context, do func(*workspace.Workspace) error) error {
			ws, err := workspace.Open(ctx, string(p), o)
			if err != nil {
				return err
			}
			return errors.Join(do(ws), ws.Close())
		}
	}
	return Store{Read: with(workspace.Options{ReadOnly: true}), Write: with(workspace.Options{Existing: true})}
}

// in does something in the workspace.
func (p place) in(t testing.TB, do func(*workspace.Workspace) error) {
	t.Helper()
	testkit.OK(t, p.store().Write(context.Background(), do))
}

// answers are the stored answers for a task.
func (p place) answers(t testing.TB, task string) (all []workspace.Answer) {
	t.Helper()
	p.in(t, func(ws *workspace.Workspace) (err error) {
		all, err = ws.Answers(context.Background(), task)
		return err
	})
	return all
}

// rows makes a workspace with so many kept rows, half of them of the split test, the others of train, seen live at
// noon.
func rows(t *testing.T, n int) place {
	t.Helper()
	ctx := t.Context()
	at := place(filepath.Join(t.TempDir(), "ws"))
	ws, err := workspace.Open(ctx, string(at), workspace.Options{})
	testkit.OK(t, err)
	defer func() { testkit.OK(t, ws.Close()) }()
	binding := workspace.Binding{Release: "r", ReleaseDigest: "1", ManifestDigest: "1", Schema: manifest.FigSIM(),
		Splits: []string{"test", "train"}}
	testkit.OK(t, ws.Load(ctx, binding, func(yield func(manifest.Entry, error) bool) {
		for i := range n {
			if !yield(testRow(i), nil) {
				return
			}
		}
	}, nil))
	var results []manifest.Result
	for i := range n {
		k := testRow(i).Key
		body := pngOf(t, i)
		testkit.OK(t, ws.StoreImage(ctx, k, body,
			workspace.Image{Format: "png", Width: 8, Height: 8, OriginalSHA256: state.SHA256(body)}))
		testkit.OK(t, ws.SetReadings(ctx, workspace.NewReading{Key: k,
			Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: state.SHA256(body),
				Text: "text", Words: []word.Word{{Text: "text", Confidence: 90, Accepted: true}}}}))
		results = append(results, manifest.Result{Key: k, Outcome: manifest.Kept})
	}
	seen(t, ws, n, noon)
	testkit.OK(t, ws.SetResults(ctx, results))
	return at
}

// seen notes that the first posts are live at a time.
func seen(t *testing.T, ws *workspace.Workspace, n int, at time.Time) {
	t.Helper()
	var posts []workspace.Post
	for i := range n {
		posts = append(posts, workspace.Post{ID: testRow(i).ID, State: manifest.StateLive, CheckedAt: at, LiveAt: at})
	}
	testkit.OK(t, ws.SetPosts(t.Context(), posts))
}

// A desk asks one question about each row of test, and counts.
type desk struct {
	Work
	place place
	now   time.Time
	task  string
	reply func(n int, rec workspace.Record) (endpoint.Reply, error)

	mu    sync.Mutex
	asked []string
}

func newDesk(at place) *desk {
	d := &desk{place: at, now: noon, task: "severity"}
	d.Work = Work{Store: at.store(), Model: "m",
		Now: func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.now }, Split: "test", Concurrency: 1,
		Questions: func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
			return []Question{d.question()}, nil
		}}
	return d
}

func (d *desk) question() Question {
	return Question{Task: d.task, Run: 1, With: []manifest.Key{testRow(1).Key},
		Digest: func(rec workspace.Record) string { return state.SHA256([]byte(d.task + string(rec.ID))) },
		Tokens: func(workspace.Record) (in, out int) { return 100, 10 },
		Ask: func(_ context.Context, rec workspace.Record, check func(sent int) error) (endpoint.Reply, error) {
			if err := check(0); err != nil {
				return endpoint.Reply{}, err
			}
			d.mu.Lock()
			n := len(d.asked)
			d.asked = append(d.asked, string(rec.ID))
			d.mu.Unlock()
			if d.reply != nil {
				return d.reply(n, rec)
			}
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: endpoint.Usage{Prompt: 100, Completion: 5}}, nil
		}}
}

// does calls Do and returns the rows that were asked about.
func (d *desk) does(t *testing.T) (*Done, string, error) {
	t.Helper()
	d.asked = nil
	done, err := d.Do(t.Context(), nil)
	return done, strings.Join(d.asked, " "), err
}

// TestDo: what is answered is stored and not asked again; what failed is, by the next call.
func TestDo(t *testing.T) {
	d := newDesk(rows(t, 8))
	var before []string
	d.Before = func(_ context.Context, _ *workspace.Workspace, rows []string) error {
		before = append(before, strings.Join(rows, " "))
		return nil
	}
	d.reply = func(_ int, rec workspace.Record) (endpoint.Reply, error) {
		if rec.ID == "row02" {
			return endpoint.Reply{Outcome: endpoint.Failed, Detail: "the server answers 500"}, nil
		}
		return endpoint.Reply{Outcome: endpoint.Refused, Text: "no"}, nil
	}
	begun, progress := 0, []string{}
	d.Begin = func(context.Context, *workspace.Workspace) error { begun++; return nil }
	d.Progress = func(p Progress) {
		progress = append(progress, fmt.Sprint(p.Asked, "/", p.Total, " ", p.Outcomes[endpoint.Failed], " failed"))
	}
	for i, want := range []string{"row00 row02 row04 row06", "row02"} {
		done, asked, err := d.does(t)
		testkit.Same(t, "begun", i+1, begun)
		testkit.Same(t, "asked", want, asked, err)
		answers := map[string]string{}
		for _, rec := range done.Rows {
			a, ok := done.Answer(done.Questions[0], rec)
			if !ok {
				t.Errorf("%s has no answer", rec.ID)
			}
			answers[string(rec.ID)] = a.Outcome + a.Detail + a.Text
		}
		testkit.Same(t, "answers", map[string]string{"row00": "refusedno", "row02": "failedthe server answers 500",
			"row04": "refusedno", "row06": "refusedno"}, answers)
	}
	testkit.Same(t, "progress", []string{"1/4 0 failed", "2/4 1 failed", "3/4 1 failed", "4/4 1 failed", "1/1 1 failed"},
		progress)
	d.reply = nil
	done, asked, err := d.does(t)
	testkit.Same(t, "asked in the end", "row02", asked, err)
	testkit.Same(t, "counted", [3]int{1, 3, 0}, [3]int{done.Asked, done.Known, done.Left})
	// Each row once a call, row01 beside the first: one at first, then twice as many.
	testkit.Same(t, "what was about to be sent",
		[]string{"row00 row01", "row02 row04", "row06", "row02 row01", "row02 row01"}, before)
	_, asked, err = d.does(t)
	testkit.Same(t, "asked after all", "", asked, err)
}

// TestUnwrittenRows: while rows are missing in the dataset nothing is asked: the rest would pass for all. Rows that are
// neither asked about nor examples do not matter.
func TestUnwrittenRows(t *testing.T) {
	for _, test := range []struct {
		row      int
		examples string
		missing  bool
	}{{0, "", true}, {1, "", false}, {1, "train", true}} {
		d := newDesk(rows(t, 4))
		d.Examples = test.examples
		d.place.in(t, func(ws *workspace.Workspace) error {
			var results []manifest.Result
			for i := range 4 {
				r := manifest.Result{Key: testRow(i).Key, Outcome: manifest.Kept}
				if i == test.row {
					r.Outcome, r.Reason = manifest.Pending, state.ReasonNotWritten
				}
				results = append(results, r)
			}
			return ws.SetResults(t.Context(), results)
		})
		_, asked, err := d.does(t)
		if _, missing := errors.AsType[*state.Unwritten](err); missing != test.missing || missing == (asked != "") {
			t.Errorf("%+v: asked %q, error %v", test, asked, err)
		}
	}
}

// TestNotJudged: a row that no run has judged yet is not asked about.
func TestNotJudged(t *testing.T) {
	d := newDesk(rows(t, 4))
	d.place.in(t, func(ws *workspace.Workspace) error {
		binding, _, err := ws.Binding(t.Context())
		binding.ManifestDigest = "2"
		return errors.Join(err, ws.Load(t.Context(), binding, func(yield func(manifest.Entry, error) bool) {
			for i := range 6 {
				if !yield(testRow(i), nil) {
					return
				}
			}
		}, nil))
	})
	done, asked, err := d.does(t)
	testkit.Same(t, "asked", "row00 row02", asked, err)
	testkit.Same(t, "rows", 2, len(done.Rows))
}

// TestStricterRules: rows that the rules of now do not allow are an error before anything is asked, unless they are
// neither asked about nor examples.
func TestStricterRules(t *testing.T) {
	d := newDesk(rows(t, 6))
	d.Rules = func(_ context.Context, _ *workspace.Workspace, judge *state.Judge) error {
		judge.Policy.Images.MaxSide = 4
		return nil
	}
	_, asked, err := d.does(t)
	if stricter, ok := errors.AsType[*state.Stricter](err); !ok || stricter.Rows != 3 || asked != "" {
		t.Errorf("asked %q, error %v", asked, err)
	}
	d.Split = "val"
	_, asked, err = d.does(t)
	testkit.Same(t, "of another split", "", asked, err)
}

// TestRowLeftOut: a row that a question leaves out is not asked about, and keeps no work from its end.
func TestRowLeftOut(t *testing.T) {
	d := newDesk(rows(t, 6))
	q := d.question()
	digest := q.Digest
	q.Digest = func(rec workspace.Record) string {
		if rec.ID == "row02" {
			return ""
		}
		return digest(rec)
	}
	d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
		return []Question{q}, nil
	}
	done, asked, err := d.does(t)
	testkit.Same(t, "asked", "row00 row04", asked, err)
	if _, answered := done.Answer(q, done.Rows[1]); answered {
		t.Error("it has an answer")
	}
}

// TestHeardMeanwhile: a row, or an image, of which an audit hears while others are asked about is not sent.
func TestHeardMeanwhile(t *testing.T) {
	for _, said := range []auditlog.Post{
		{ID: "row02", State: manifest.StateDeleted, Reason: "author"},
		{ID: "row02", State: manifest.StateLive, Reason: policy.LeftGallery},
	} {
		d := newDesk(rows(t, 6))
		d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
			if n == 0 {
				d.place.in(t, func(ws *workspace.Workspace) error {
					return state.RecordAudit(t.Context(), ws, noon.Add(time.Minute),
						[]auditlog.Event{{Kind: auditlog.Audit, Verdict: "fail", Posts: []auditlog.Post{said}}})
				})
			}
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
		}
		done, asked, err := d.does(t)
		testkit.Same(t, "asked", "row00 row04", asked, err)
		testkit.Same(t, "hidden", 1, done.Hidden)
	}
}

// TestAnswersThatTheDiskRefuses: answers that the disk does not take end the work with an error, and are asked for
// again by the next.
func TestAnswersThatTheDiskRefuses(t *testing.T) {
	d, full := newDesk(rows(t, 8)), errors.New("the disk is full")
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, _ string) error {
		if step == "commit" {
			return full
		}
		return nil
	})
	_, err := d.Do(ctx, nil)
	// How many of the four are on their way when the first cannot be stored is the scheduler's.
	lost := []string{"", "1 answer could", "2 answers could", "3 answers could", "4 answers could"}
	n := len(d.asked)
	if !errors.Is(err, full) || n < 1 || n > 4 || !strings.HasPrefix(err.Error(), lost[n]+" not be stored") {
		t.Errorf("after %d questions: %v", n, err)
	}
	testkit.Same(t, "stored", 0, len(d.place.answers(t, d.task)))
	_, asked, err := newDesk(d.place).does(t)
	testkit.Same(t, "asked by the next", "row00 row02 row04 row06", asked, err)
}

// TestStoppedLook: what looks into the workspace and is stopped finds the same as one that is not, or says that it was
// stopped: never that a row is gone.
func TestStoppedLook(t *testing.T) {
	at := rows(t, 8)
	w, _ := at.job(t, "examples", nil)
	c := &Classification{Pictures: &Pictures{Store: at.store()}, Tasks: figsim(t)[1:2], Runs: 1, Shots: 1,
		Warn: func(string) {}}
	m := &Moderation{Pictures: c.Pictures, Send: []string{SendText}}
	ws, err := workspace.Open(t.Context(), string(at), workspace.Options{ReadOnly: true})
	testkit.OK(t, err)
	defer ws.Close()
	p, err := w.plan(t.Context(), ws)
	testkit.OK(t, err)
	w.Store.Read = inMemory(t, at)
	examples := p.todo[0].with
	for name, look := range map[string]func(context.Context) (any, error){
		"plan":        func(ctx context.Context) (any, error) { return w.Plan(ctx) },
		"may be sent": func(ctx context.Context) (any, error) { return nil, w.mayBeSent(ctx, p.todo[0]) },
		"near":        func(ctx context.Context) (any, error) { return nearOf(ctx, ws, policy.Default(), "", examples) },
		"picture":     func(ctx context.Context) (any, error) { return c.Pictures.readFrom(ctx, ws, examples[0]) },
		"classification": func(ctx context.Context) (any, error) {
			qs, err := c.Questions(ctx, ws, examples)
			return len(qs), err
		},
		"moderation": func(ctx context.Context) (any, error) {
			qs, err := m.Questions(ctx, ws, nil)
			return len(qs), err
		},
	} {
		brokenoff.Look(t, name, look)
	}
}

// TestStoppedAnywhere: a work that is stopped says so wherever that happens, and the same again asks what is left.
func TestStoppedAnywhere(t *testing.T) {
	stride := 1
	if measure.Raced { // each place takes ten times as long
		stride = 7
	}
	for _, kind := range []string{"examples", "scores"} {
		at := rows(t, 4)
		w, _ := at.job(t, kind, nil)
		w.Examples = "train"
		for n := 1; ; n += stride {
			ctx, stop := brokenoff.StopAt(t.Context(), n)
			if _, err := w.Plan(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, planned, stopped at %d: %v", kind, n, err)
			}
			stop()
			ctx, stop = brokenoff.StopAt(t.Context(), n)
			done, err := w.Do(ctx, nil)
			stop()
			if err == nil {
				testkit.Same(t, kind+": answers", 2, len(done.answers))
				break
			}
			if !errors.Is(err, context.Canceled) && !errors.Is(err, state.ErrInterrupted) {
				t.Fatalf("%s, stopped at %d: %v", kind, n, err)
			}
		}
	}
}

// TestEnds: what ends a work early, and what is stored then.
func TestEnds(t *testing.T) {
	trouble := errors.New("the key is wrong")
	stop, ws := make(chan struct{}), rows(t, 8)
	for _, tt := range []struct {
		name string
		set  func(*desk)
		want string // rows that are asked about
		err  error  // nil for a limit
	}{
		{"at most two questions", func(d *desk) { d.Limits = Limits{Requests: 2} }, "row00 row02", nil},
		{"what a third answer could cost", func(d *desk) { d.Limits = Limits{Cost: 0.000329, PriceIn: 1, PriceOut: 1} },
			"row00 row02 row04", nil},
		{"trouble of the run's own", func(d *desk) {
			d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
				if n == 1 {
					return endpoint.Reply{}, trouble
				}
				return endpoint.Reply{Outcome: endpoint.OK}, nil
			}
		}, "row00 row02", trouble},
		{"a grant that runs out", func(d *desk) {
			d.Access = func(time.Time) error {
				if len(d.asked) == 3 {
					return trouble
				}
				return nil
			}
		}, "row00 row02 row04", trouble},
		{"interrupted while it waits for an answer", func(d *desk) {
			d.Stop = stop
			d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
				if n == 1 {
					close(stop)
				}
				return endpoint.Reply{Outcome: endpoint.OK}, nil
			}
		}, "row00 row02", state.ErrInterrupted},
		{"a beginning that fails", func(d *desk) {
			d.Begin = func(context.Context, *workspace.Workspace) error { return trouble }
		}, "", trouble},
		{"rules that cannot be read", func(d *desk) {
			d.Rules = func(context.Context, *workspace.Workspace, *state.Judge) error { return trouble }
		}, "", trouble},
		{"questions that cannot be made", func(d *desk) {
			d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
				return nil, trouble
			}
		}, "", trouble},
		{"Reddit that cannot be asked", func(d *desk) {
			d.now = noon.Add(49 * time.Hour)
			d.Refresh = func(context.Context, *workspace.Workspace) (int, error) { return 0, trouble }
		}, "", trouble},
		{"disclosure that cannot be recorded", func(d *desk) {
			d.Before = func(context.Context, *workspace.Workspace, []string) error { return trouble }
		}, "", trouble},
	} {
		d := newDesk(ws)
		d.task = tt.name
		tt.set(d)
		done, asked, err := d.does(t)
		if !errors.Is(err, tt.err) || err == nil && (done.Limit == "" || done.Left != 4-done.Asked) {
			t.Errorf("%s: error %v, %+v", tt.name, err, done)
		}
		testkit.Same(t, tt.name, tt.want, asked)
		answers := ws.answers(t, tt.name)
		want := len(d.asked)
		if errors.Is(tt.err, trouble) && d.reply != nil {
			want-- // the last one
		}
		testkit.Same(t, tt.name+": stored", want, len(answers))
	}
}

// TestFailing: a server that is broken is not asked about every row.
func TestFailing(t *testing.T) {
	d := newDesk(rows(t, 32))
	d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
		if n < 3 {
			return endpoint.Reply{Outcome: endpoint.OK}, nil
		}
		return endpoint.Reply{Outcome: endpoint.Failed, Detail: "the server answers 502"}, nil
	}
	_, _, err := d.does(t)
	if failing, ok := errors.AsType[*Failing](err); !ok || failing.Detail != "the server answers 502" ||
		err.Error() != "the endpoint gave no usable answer to 10 questions in a row; the last: the server answers 502" ||
		len(d.asked) != 3+maxFailed {
		t.Errorf("%d questions, error %v", len(d.asked), err)
	}
}

// TestStale: nothing is sent of a post that was seen live too long ago. Reddit is asked again first, also when rows
// become too old while they are asked about, and what is gone by then is not sent.
func TestStale(t *testing.T) {
	d := newDesk(rows(t, 12))
	refreshed := 0
	later := func(by time.Duration) { d.mu.Lock(); d.now = d.now.Add(by); d.mu.Unlock() }
	d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
		later(20 * time.Hour)
		return endpoint.Reply{Outcome: endpoint.OK}, nil
	}
	_, _, err := d.does(t)
	if stale, ok := errors.AsType[*Stale](err); !ok || stale.Rows != 6 ||
		err.Error() != "the posts of 6 rows were last seen live too long ago to send them" ||
		!slices.Equal(d.asked, []string{"row00", "row02", "row04"}) {
		t.Errorf("without a way to ask Reddit: %q, error %v", d.asked, err)
	}
	d.Refresh = func(ctx context.Context, ws *workspace.Workspace) (int, error) {
		refreshed++
		seen(t, ws, 12, d.now)
		if refreshed == 1 {
			return 0, ws.SetPosts(ctx, []workspace.Post{{ID: "row08", State: manifest.StateRemoved, CheckedAt: d.now,
				Withheld: true}})
		}
		return 0, nil
	}
	done, asked, err := d.does(t)
	testkit.Same(t, "asked", "row06 row10", asked, err)
	testkit.Same(t, "refreshed, asked and known", [3]int{1, 2, 3}, [3]int{refreshed, done.Asked, done.Known})
	plan, err := d.Plan(t.Context())
	testkit.Same(t, "what there is to do", Estimate{Rows: 5, Hidden: 1, Known: 5}, plan, err)
	later(49 * time.Hour)
	// Reddit gives no answer.
	d.Refresh = func(context.Context, *workspace.Workspace) (int, error) { refreshed++; return 5, nil }
	_, asked, err = d.does(t)
	if _, ok := errors.AsType[*Stale](err); !ok || asked != "" || refreshed != 2 {
		t.Errorf("Reddit gave no answer: %q, error %v, refreshed %d times", asked, err, refreshed)
	}
	plan, err = d.Plan(t.Context())
	testkit.Same(t, "what there is to do", Estimate{Hidden: 1, Stale: 5}, plan, err)
}

// TestAskedFirst: where Reddit can be asked it is, once, before the first question, however new the rows are, and what
// is gone by then is not sent. Where nothing is to be sent it is not asked.
func TestAskedFirst(t *testing.T) {
	d := newDesk(rows(t, 8))
	refreshed := 0
	d.Refresh = func(ctx context.Context, ws *workspace.Workspace) (int, error) {
		refreshed++
		return 3, ws.SetPosts(ctx, []workspace.Post{{ID: "row02", State: manifest.StateDeleted, CheckedAt: d.now}})
	}
	for i, want := range []string{"row00 row04 row06", ""} {
		done, asked, err := d.does(t)
		testkit.Same(t, "asked", want, asked, err)
		testkit.Same(t, "posts without an answer", 3*(1-i), done.Unverified)
		testkit.Same(t, fmt.Sprint("Reddit was asked by the end of call ", i), 1, refreshed)
	}
}

// TestHiddenByRefresh: rows that Refresh takes out are counted among what is gone or held back, by the call that asked,
// and rows that left for another reason are not.
func TestHiddenByRefresh(t *testing.T) {
	d := newDesk(rows(t, 14))
	d.Refresh = func(ctx context.Context, ws *workspace.Workspace) (int, error) {
		err := ws.SetPosts(ctx, []workspace.Post{
			{ID: "row00", State: manifest.StateDeleted, Reason: "author", CheckedAt: d.now},
			{ID: "row02", State: manifest.StateRemoved, Reason: "moderator", Withheld: true, CheckedAt: d.now},
			{ID: "row04", State: manifest.StateHeld, Reason: "quarantined", CheckedAt: d.now},
			{ID: "row01", State: manifest.StateDeleted, Reason: "author", CheckedAt: d.now}, // of another split
		})
		return 0, errors.Join(err, ws.SetResults(ctx, []manifest.Result{
			{Key: testRow(0).Key, Outcome: manifest.Deleted}, {Key: testRow(1).Key, Outcome: manifest.Deleted},
			{Key: testRow(2).Key, Outcome: manifest.Removed}, {Key: testRow(4).Key, Outcome: manifest.Refused},
			{Key: testRow(6).Key, Outcome: manifest.Duplicate, DuplicateOf: testRow(8).Key}}))
	}
	for i, want := range []string{"row08 row10 row12", ""} {
		done, asked, err := d.does(t)
		testkit.Same(t, "asked", want, asked, err)
		testkit.Same(t, fmt.Sprint("left out by call ", i), 3*(1-i), done.Hidden)
	}
}

// TestStaleInTheEnd: rows that become too old with the last answer are asked about again at Reddit before anything is
// written of them.
func TestStaleInTheEnd(t *testing.T) {
	d := newDesk(rows(t, 8))
	d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
		if n == 3 {
			d.mu.Lock()
			d.now = d.now.Add(49 * time.Hour)
			d.mu.Unlock()
		}
		return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
	}
	_, asked, err := d.does(t)
	if _, ok := errors.AsType[*Stale](err); !ok || asked != "row00 row02 row04 row06" {
		t.Errorf("without a way to ask Reddit: %q, error %v", asked, err)
	}
	d.now, d.task = noon, "again"
	d.Refresh = func(_ context.Context, ws *workspace.Workspace) (int, error) { seen(t, ws, 8, d.now); return 0, nil }
	done, asked, err := d.does(t)
	testkit.Same(t, "asked", "row00 row02 row04 row06", asked, err)
	testkit.Same(t, "rows, questions and answers", [3]int{4, 1, 4},
		[3]int{len(done.Rows), len(done.Questions), len(done.answers)})
}

// TestStaleExample: an example is sent along as long as its own post was seen live in time.
func TestStaleExample(t *testing.T) {
	d := newDesk(rows(t, 8))
	d.Examples = "train"
	d.place.in(t, func(ws *workspace.Workspace) error {
		seen(t, ws, 1, noon.Add(40*time.Hour))
		var posts []workspace.Post
		for i := range 4 {
			posts = append(posts, workspace.Post{ID: testRow(2 * i).ID, State: manifest.StateLive,
				CheckedAt: noon.Add(40 * time.Hour), LiveAt: noon.Add(40 * time.Hour)})
		}
		return ws.SetPosts(t.Context(), posts)
	})
	d.now = noon.Add(47 * time.Hour)
	d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
		d.mu.Lock()
		d.now = d.now.Add(2 * time.Hour)
		d.mu.Unlock()
		return endpoint.Reply{Outcome: endpoint.OK, Text: "said"}, nil
	}
	_, asked, err := d.does(t)
	if _, ok := errors.AsType[*Stale](err); !ok || asked != "row00" {
		t.Errorf("asked %q, error %v", asked, err)
	}
}

// TestStaleExamples: examples that were all seen live too long ago are asked about at Reddit, and not missed.
func TestStaleExamples(t *testing.T) {
	at := rows(t, 4)
	w, model := at.job(t, "examples", nil)
	later := noon.Add(49 * time.Hour)
	w.Now = func() time.Time { return later }
	w.Refresh = func(_ context.Context, ws *workspace.Workspace) (int, error) { seen(t, ws, 4, later); return 0, nil }
	_, err := w.Do(t.Context(), nil)
	testkit.Same(t, "asked", 2, len(model.Requests()), err)
}

// TestLimitHidesNothing: what the last answers bring counts more than that no further question may be asked.
func TestLimitHidesNothing(t *testing.T) {
	d := newDesk(rows(t, 8))
	trouble := errors.New("the key is wrong")
	d.Limits, d.Concurrency = Limits{Requests: 1}, 2
	d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
		for !d.halted() { // the second question is refused while the first one waits
			runtime.Gosched()
		}
		return endpoint.Reply{}, trouble
	}
	if done, _, err := d.does(t); !errors.Is(err, trouble) {
		t.Errorf("error %v, %+v", err, done)
	}
}

// TestDisclosesWhatIsSent: of rows that a limit keeps back, none is said to have been sent.
func TestDisclosesWhatIsSent(t *testing.T) {
	d := newDesk(rows(t, 16))
	var before []string
	d.Before = func(_ context.Context, _ *workspace.Workspace, rows []string) error {
		before = append(before, rows...)
		return nil
	}
	d.Limits.Requests = 3
	_, asked, err := d.does(t)
	testkit.Same(t, "asked", "row00 row02 row04", asked, err)
	testkit.Same(t, "said to be sent", []string{"row00", "row01", "row02", "row04"}, before)
}

// TestDisclosesBeyondTheGone: where rows go before they are sent, as many others as the limit lets through are sent in
// their place, and none that is not said to be sent. What an amount keeps back is not said either.
func TestDisclosesBeyondTheGone(t *testing.T) {
	for name, tt := range map[string]struct {
		limits      Limits
		concurrency int
		asked       int
		most        int // rows that are said to be sent at most, with row01 and those that went
	}{
		"requests":            {Limits{Requests: 3}, 1, 3, 6},
		"requests, at once":   {Limits{Requests: 3}, 3, 3, 6},
		"an amount":           {Limits{Cost: 800, PriceIn: 1e6}, 1, 8, 11},
		"an amount, of all":   {Limits{Total: 800, PriceIn: 1e6}, 1, 8, 11},
		"requests and amount": {Limits{Requests: 5, Cost: 400, PriceIn: 1e6}, 1, 4, 7},
	} {
		d := newDesk(rows(t, 40))
		d.Limits, d.Concurrency = tt.limits, tt.concurrency
		said := map[string]bool{}
		d.Before = func(_ context.Context, _ *workspace.Workspace, rows []string) error {
			for _, row := range rows {
				said[row] = true
			}
			return nil
		}
		var purge sync.Once
		d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
			purge.Do(func() { d.place.purge(t, "row02", "row04") })
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: endpoint.Usage{Prompt: 100}}, nil
		}
		_, _, err := d.does(t)
		testkit.OK(t, err)
		if len(d.asked) > tt.asked || tt.concurrency == 1 && len(d.asked) < tt.asked || len(said) > tt.most {
			t.Errorf("%s: %q were sent, %v said to be", name, d.asked, said)
		}
		for _, row := range d.asked {
			if !said[row] {
				t.Errorf("%s: %s was sent and not said to be", name, row)
			}
		}
	}
}

// TestKeptBackCosts: what was sent of a question costs, also where its row goes before the question is repeated.
func TestKeptBackCosts(t *testing.T) {
	d := newDesk(rows(t, 8))
	d.Limits = Limits{PriceIn: 1e6}
	q := d.question()
	q.Ask = func(_ context.Context, rec workspace.Record, check func(sent int) error) (endpoint.Reply, error) {
		reply := endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: endpoint.Usage{Prompt: 100}}
		for range 2 { // the first one is answered by 503
			if err := check(reply.Sent); err != nil {
				return endpoint.Reply{Sent: reply.Sent}, err
			}
			reply.Sent++
			if rec.ID == "row02" && reply.Sent == 1 {
				d.place.purge(t, rec.ID)
			}
		}
		return reply, nil
	}
	d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
		return []Question{q}, nil
	}
	done, _, err := d.does(t)
	testkit.OK(t, err)
	testkit.Same(t, "asked, cost of this command and of all", []float64{3, 700, 700},
		[]float64{float64(done.Asked), done.Cost, done.Total})
}

// TestLimitOfRepeats: a request that repeats a question counts as any other, and none goes beyond the limit. What was
// sent for a question that the limit cuts off is spent, and the next call asks it again.
func TestLimitOfRepeats(t *testing.T) {
	d := newDesk(rows(t, 8))
	sent, q := 0, d.question()
	q.Ask = func(_ context.Context, _ workspace.Record, check func(sent int) error) (endpoint.Reply, error) {
		reply := endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: endpoint.Usage{Prompt: 100, Completion: 5}}
		for range 2 { // the first one is not answered
			if err := check(reply.Sent); err != nil {
				return endpoint.Reply{Sent: reply.Sent}, err
			}
			sent, reply.Sent = sent+1, reply.Sent+1
		}
		return reply, nil
	}
	d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
		return []Question{q}, nil
	}
	d.Limits = Limits{Requests: 5, PriceIn: 1e6, PriceOut: 0}
	for _, want := range []struct {
		sent, asked, left int
		cost              float64
		limit             string
	}{{5, 2, 2, 500, "5 requests are made"}, {4, 2, 0, 400, ""}} {
		sent = 0
		done, _, err := d.does(t)
		testkit.OK(t, err)
		testkit.Same(t, "sent, asked, left", []int{want.sent, want.asked, want.left}, []int{sent, done.Asked, done.Left})
		testkit.Same(t, "limit", want.limit, done.Limit)
		testkit.Same(t, "cost", want.cost, done.Cost)
	}
}

// TestCostOfRepeats: a request that repeats a question costs as any other, and none is sent that could go beyond a
// limit. One that the server did not take costs nothing. What other questions have reserved is kept for them.
func TestCostOfRepeats(t *testing.T) {
	for name, tt := range map[string]struct {
		limits      Limits
		concurrency int
		free        int // the first requests of a question, which the server does not take
		fails       int // the next ones, which it does not answer
		sent        int
		cost        float64
		limit       string
		raise       string
	}{
		"a command's": {Limits{Cost: 250}, 1, 0, 5, 2, 200,
			"200.0000 is spent, and the next answer could go beyond 250.0000", ""},
		"all commands'": {Limits{Total: 250}, 1, 0, 5, 2, 200,
			"200.0000 is spent by all commands, and the next answer could go beyond 250.0000", "--max-cost-total"},
		"exactly as much": {Limits{Cost: 300}, 1, 0, 5, 3, 300,
			"300.0000 is spent, and the next answer could go beyond 300.0000", ""},
		"less than one": {Limits{Cost: 90}, 1, 0, 5, 0, 0,
			"0.0000 is spent, and the next answer could go beyond 90.0000", "--max-cost"},
		"free ones": {Limits{Cost: 400}, 1, 3, 0, 16, 400, "", ""},
		"free and dear": {Limits{Cost: 400}, 1, 1, 1, 6, 400,
			"400.0000 is spent, and the next answer could go beyond 400.0000", ""},
		"several at once": {Limits{Cost: 600}, 4, 0, 1, 6, 600,
			"600.0000 is spent, and the next answer could go beyond 600.0000", ""},
	} {
		d := newDesk(rows(t, 8))
		d.Limits, d.Concurrency = tt.limits, tt.concurrency
		d.Limits.PriceIn = 1e6
		sent, q := 0, d.question()
		q.Ask = func(_ context.Context, _ workspace.Record, check func(sent int) error) (endpoint.Reply, error) {
			reply := endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: endpoint.Usage{Prompt: 100, Completion: 5}}
			for n := range tt.free + tt.fails + 1 {
				if err := check(reply.Sent); err != nil {
					return endpoint.Reply{Sent: reply.Sent}, err
				}
				d.mu.Lock()
				sent++
				d.mu.Unlock()
				if n >= tt.free {
					reply.Sent++
				}
			}
			return reply, nil
		}
		d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
			return []Question{q}, nil
		}
		done, _, err := d.does(t)
		testkit.OK(t, err)
		testkit.Same(t, name+": sent", tt.sent, sent)
		testkit.Same(t, name+": cost of this command and of all", [2]float64{tt.cost, tt.cost},
			[2]float64{done.Cost, done.Total})
		testkit.Same(t, name+": limit, what to raise, passed", [3]string{tt.limit, tt.raise, ""},
			[3]string{done.Limit, done.Raise, done.Passed})
	}
}

// TestDisclosesOnce: an example of several questions is said once to be sent.
func TestDisclosesOnce(t *testing.T) {
	d := newDesk(rows(t, 8))
	var before []string
	d.Before = func(_ context.Context, _ *workspace.Workspace, rows []string) error {
		before = append(before, strings.Join(rows, " "))
		return nil
	}
	alone, with := d.question(), d.question()
	alone.With, with.With = nil, []manifest.Key{testRow(3).Key}
	with.Digest = func(rec workspace.Record) string { return state.SHA256([]byte("with " + rec.ID)) }
	d.Questions = func(context.Context, *workspace.Workspace, []workspace.Record) ([]Question, error) {
		return []Question{alone, with}, nil
	}
	_, _, err := d.does(t)
	testkit.Same(t, "said to be sent", []string{"row00", "row02 row04", "row06 row03"}, before, err)
}

// TestCostWithoutUsage: an answer without a count of tokens costs what it was estimated to, one that is dearer is what
// the next one may cost.
func TestCostWithoutUsage(t *testing.T) {
	for _, tt := range []struct {
		usage endpoint.Usage
		want  string
	}{
		{endpoint.Usage{}, "row00 row02"}, // 110 each
		{endpoint.Usage{Prompt: 150}, "row00"},
	} {
		d := newDesk(rows(t, 8))
		d.Limits = Limits{Cost: 0.000260, PriceIn: 1, PriceOut: 1}
		d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: tt.usage}, nil
		}
		done, asked, err := d.does(t)
		testkit.Same(t, fmt.Sprintf("asked, with usage %+v, and spent %f", tt.usage, done.Cost), tt.want, asked, err)
	}
}

// TestFirstAnswerFirst: where a limit is set on what answers cost, the first one comes before others are sent, which
// then cost as much.
func TestFirstAnswerFirst(t *testing.T) {
	for name, limits := range map[string]Limits{
		"a command's": {Cost: 0.007, PriceIn: 1, PriceOut: 1}, "all commands'": {Total: 0.007, PriceIn: 1, PriceOut: 1},
	} {
		d := newDesk(rows(t, 16))
		d.Limits, d.Concurrency = limits, 8
		d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
			time.Sleep(10 * time.Millisecond) // long enough for others to be sent
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said",
				Usage: endpoint.Usage{Prompt: 1000, Completion: 1000}}, nil
		}
		done, _, err := d.does(t)
		testkit.OK(t, err)
		testkit.Same(t, name+" limit: asked and left", [2]int{3, 5}, [2]int{done.Asked, done.Left})
		testkit.Same(t, name+" limit: passed", "", done.Passed)
	}
}

// TestLimitPassed: one answer that is dearer than all before it can go beyond a limit. The end says by how much.
func TestLimitPassed(t *testing.T) {
	for limits, want := range map[Limits]string{
		{Cost: 0.1, PriceIn: 1000}:         "the limit of 0.1000 for this command is passed: 1.3000 is spent, 1.2000 more",
		{Total: 0.5, PriceIn: 1000}:        "the limit of 0.5000 for all commands is passed: 1.3000 is spent, 0.8000 more",
		{Cost: 2, Total: 2, PriceIn: 1000}: "",
	} {
		d := newDesk(rows(t, 8))
		d.Limits = limits
		d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said",
				Usage: endpoint.Usage{Prompt: []int{100, 100, 100, 1000}[n], Completion: 1}}, nil
		}
		if limits.Cost == 0.1 {
			d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
				return endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: endpoint.Usage{Prompt: 1300, Completion: 1}},
					nil
			}
		}
		done, _, err := d.does(t)
		testkit.OK(t, err)
		testkit.Same(t, "what is said", want, done.Passed)
	}
}

// TestOneCost: where the server counts the tokens of some answers alone, the sum of the command, of run.json and of the
// workspace are one number, and it is told how many answers are estimates.
func TestOneCost(t *testing.T) {
	for name, usage := range map[string]func(n int) endpoint.Usage{
		"half": func(n int) endpoint.Usage {
			return endpoint.Usage{Prompt: 1000 * (n % 2),
				Completion: 7 * (n % 2)}
		},
		"none":          func(int) endpoint.Usage { return endpoint.Usage{} },
		"the sent ones": func(int) endpoint.Usage { return endpoint.Usage{Prompt: 900} },
		"the answered":  func(int) endpoint.Usage { return endpoint.Usage{Completion: 9} },
		"all":           func(int) endpoint.Usage { return endpoint.Usage{Prompt: 900, Completion: 9} },
	} {
		d := newDesk(rows(t, 8))
		d.Limits = Limits{PriceIn: 100, PriceOut: 1000}
		d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
			return endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: usage(n)}, nil
		}
		done, _, err := d.does(t)
		testkit.OK(t, err)
		var report TaskReport
		report.count(done, done.Questions[0])
		costs := fmt.Sprintf("%.6f %.6f %.6f", done.Cost, done.Total, d.Limits.cost(report.In, report.Out))
		if costs != strings.Join(slices.Repeat([]string{fmt.Sprintf("%.6f", done.Cost)}, 3), " ") || done.Cost == 0 {
			t.Errorf("%s counted: the costs are %s", name, costs)
		}
		want := map[string]int{"half": 2, "none": 4, "the sent ones": 4, "the answered": 4}[name]
		testkit.Same(t, name+" counted: estimated", want, report.Estimated)
	}
}

// TestEveryRequestCosts: a question costs whatever became of it, as often as it was sent, in the sum of the command, in
// that of the workspace and in run.json, and limits stop at it.
func TestEveryRequestCosts(t *testing.T) {
	for name, tt := range map[string]struct {
		reply endpoint.Reply
		in    int // tokens of a question
		asked string
	}{
		"no answer in time":       {endpoint.Reply{Outcome: endpoint.Failed, Sent: 1}, 100, "row00 row02"},
		"three without an answer": {endpoint.Reply{Outcome: endpoint.Failed, Sent: 3}, 300, "row00"},
		"a failure that was counted": {endpoint.Reply{Outcome: endpoint.Failed,
			Usage: endpoint.Usage{Prompt: 120, Completion: 1}, Sent: 1}, 120, "row00 row02"},
		"an answer after one that none": {endpoint.Reply{Outcome: endpoint.OK, Text: "said",
			Usage: endpoint.Usage{Prompt: 90, Completion: 5}, Sent: 2}, 190, "row00"},
		"a refusal": {endpoint.Reply{Outcome: endpoint.Refused, Sent: 1}, 100, "row00 row02"},
	} {
		d := newDesk(rows(t, 8))
		d.Limits = Limits{Cost: 0.000250, PriceIn: 1}
		d.reply = func(int, workspace.Record) (endpoint.Reply, error) { return tt.reply, nil }
		done, asked, err := d.does(t)
		testkit.Same(t, name+": asked", tt.asked, asked, err)
		var report TaskReport
		report.count(done, done.Questions[0])
		want := float64(tt.in*len(strings.Fields(tt.asked))) / 1e6
		costs := fmt.Sprintf("%.6f %.6f %.6f", done.Cost, done.Total, d.Limits.cost(report.In, report.Out))
		testkit.Same(t, name+": costs", fmt.Sprintf("%.6f %.6f %.6f", want, want, want), costs)
	}
}

// TestContradictingCounts: answers whose counts contradict each other cost the larger ones, in the command's sums,
// limits and files, and are told: by the command that asked them, and as estimates in the files.
func TestContradictingCounts(t *testing.T) {
	d := newDesk(rows(t, 8))
	d.Limits = Limits{Cost: 0.0012, PriceOut: 1}
	d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
		return endpoint.Reply{Outcome: endpoint.OK, Text: "said", Usage: endpoint.Usage{Prompt: 10, Completion: 505},
			Contradicts: n > 0, Sent: 1}, nil
	}
	done, asked, err := d.does(t)
	testkit.Same(t, "asked", "row00 row02", asked, err)
	testkit.Same(t, "answers whose counts contradict each other", 1, done.Contradicting)
	var report TaskReport
	report.count(done, done.Questions[0])
	testkit.Same(t, "estimated", 1, report.Estimated)
	testkit.Same(t, "tokens", 1010, report.Out)
}

// TestInterruptedCosts: a question that was sent and whose answer nobody waited for costs its estimate.
func TestInterruptedCosts(t *testing.T) {
	at := rows(t, 4)
	d := newDesk(at)
	d.Limits = Limits{PriceIn: 1}
	ctx, cancel := context.WithCancel(t.Context())
	d.reply = func(int, workspace.Record) (endpoint.Reply, error) {
		cancel()
		return endpoint.Reply{Sent: 1}, ctx.Err()
	}
	if _, err := d.Do(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	d = newDesk(at) // the next command
	d.Limits = Limits{PriceIn: 1}
	done, _, err := d.does(t)
	testkit.Same(t, "spent by all", "0.000300", fmt.Sprintf("%.6f", done.Total), err)
}

// TestLongAnswers: of an answer that is none only the beginning is kept.
func TestLongAnswers(t *testing.T) {
	d := newDesk(rows(t, 4))
	long := strings.Repeat("word ", 1<<19)
	d.reply = func(n int, _ workspace.Record) (endpoint.Reply, error) {
		return endpoint.Reply{Outcome: []endpoint.Outcome{endpoint.OK, NotJSON}[n], Text: long}, nil
	}
	done, _, err := d.does(t)
	testkit.OK(t, err)
	for i, want := range []int{len(long), maxText} {
		a, _ := done.Answer(done.Questions[0], done.Rows[i])
		testkit.Same(t, "kept of "+a.Outcome, want, len(a.Text))
	}
}
