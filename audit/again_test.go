package audit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A writer changes a workspace while it is audited: it removes posts, each in two steps.
type writer struct {
	t  *testing.T
	w  *world
	ws *workspace.Workspace
}

// begin writes the tombstone of a post whose image is still there.
func (p *writer) begin(id manifest.PostID) {
	ctx, now := p.t.Context(), p.w.config.Now()
	if p.ws == nil {
		ws, err := workspace.Open(ctx, p.w.ws, workspace.Options{Now: p.w.config.Now})
		testkit.OK(p.t, err)
		p.ws = ws
	}
	stone := manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: now}
	testkit.OK(p.t,
		p.ws.SetPosts(ctx, []workspace.Post{{ID: id, State: stone.State, Reason: "moderator", CheckedAt: now}}),
		p.ws.AddTombstones(ctx, []workspace.Tombstone{{Tombstone: stone, Reason: "moderator"}}))
}

// finish erases the rest of it.
func (p *writer) finish(id manifest.PostID) { testkit.OK(p.t, p.ws.Erase(p.t.Context(), id)) }

func (p *writer) close() {
	testkit.OK(p.t, p.ws.Close())
	p.ws = nil
}

// TestAuditBesideACommand: what a command has half done while an audit looks is no finding, once it is whole at the
// next look, or another thing is half done then. What both looks found is one.
func TestAuditBesideACommand(t *testing.T) {
	for _, tt := range []struct {
		name   string
		during func(*writer)   // the first look
		before []func(*writer) // each look after it, and during that
		want   Verdict
		says   string
	}{
		{"it ends", func(p *writer) { p.begin(live1) }, []func(*writer){
			func(p *writer) { p.finish(live1); p.close() }}, Pass, ""},
		{"it goes on", func(p *writer) { p.begin(live1) }, []func(*writer){
			func(p *writer) { p.finish(live1); p.begin(live2) }}, Undecided, "a moment before this was not so"},
		{"it stays as it is", func(p *writer) { p.begin(live1) }, []func(*writer){func(*writer) {}}, Fail, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, false, false)
			p, looks := &writer{t: t, w: w}, 0
			c := w.config
			open := func(ctx context.Context) (*workspace.Workspace, error) {
				return workspace.Open(ctx, w.ws, workspace.Options{ReadOnly: true})
			}
			ws, err := open(t.Context())
			testkit.OK(t, err)
			defer ws.Close()
			c.Workspace = ws
			c.Now = func() time.Time {
				if looks == 0 {
					looks++
					tt.during(p)
				}
				return w.config.Now()
			}
			c.Reopen = func(ctx context.Context) (*workspace.Workspace, error) {
				if looks <= len(tt.before) {
					tt.before[looks-1](p)
				}
				looks++
				return open(ctx)
			}
			r, err := Audit(t.Context(), c)
			testkit.OK(t, err)
			said := ""
			for _, o := range r.Open {
				said += o.What + "\n"
			}
			testkit.Same(t, "what it says", r.Headline(), r.Says)
			testkit.Same(t, "what only looks like a removed post's", 0, len(r.Suspected()))
			if r.Verdict != tt.want || !strings.Contains(said, tt.says) {
				t.Errorf("%s after %d looks, want %s; findings %+v; open %+v", r.Verdict, looks, tt.want, r.Findings, r.Open)
			}
			if p.ws != nil {
				p.close()
			}
		})
	}
}

// TestAuditOfAWorkspaceThatIsReplaced: an audit that cannot open the workspace again says that a command is at work,
// and gives no verdict.
func TestAuditOfAWorkspaceThatIsReplaced(t *testing.T) {
	w := newWorld(t, false, false)
	p, opened := &writer{t: t, w: w}, 0
	ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{ReadOnly: true})
	testkit.OK(t, err)
	defer ws.Close()
	c := w.config
	c.Workspace = ws
	c.Now = func() time.Time {
		if p.ws == nil {
			p.begin(live1)
		}
		return w.config.Now()
	}
	c.Reopen = func(context.Context) (*workspace.Workspace, error) {
		opened++
		return nil, errors.New("it is being rewritten")
	}
	if r, err := Audit(t.Context(), c); !errors.Is(err, workspace.ErrInUse) || r.Verdict != "" || opened != maxLooks-1 {
		t.Errorf("%v, %q, opened %d times", err, r.Verdict, opened)
	}
	p.close()
}

// TestAnswersOfAnEarlierLook: what an earlier look was answered is of that time, also in the log. Where a job was
// answered something else since, Reddit is asked again, and what is on record of the older answer is taken back.
func TestAnswersOfAnEarlierLook(t *testing.T) {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later, last := first.Add(time.Hour), first.Add(2*time.Hour)
	deleted, live := &policy.Verdict{State: manifest.StateDeleted}, &policy.Verdict{State: manifest.StateLive}
	for _, tt := range []struct {
		name    string
		checked *time.Time // by the workspace, which has it as live
		known   liveAnswer
		told    *reddit.Post
		want    bool
	}{
		{"nobody was answered since", &first, liveAnswer{deleted, first}, nil, false},
		{"never asked by a job", nil, liveAnswer{deleted, first}, nil, false},
		{"another answer since", &later, liveAnswer{deleted, first}, nil, true},
		{"the same since", &later, liveAnswer{live, first}, nil, false},
		{"the same since, perhaps with an image", &later, liveAnswer{live, first}, &reddit.Post{}, true},
	} {
		a := newAudit(Config{Policy: policy.Default()})
		e := a.post("p1")
		e.State, e.Checked = manifest.StateLive, tt.checked
		if tt.told != nil {
			a.told["p1"] = tt.told
		}
		testkit.Same(t, tt.name, tt.want, a.contradicted(e, tt.known))
	}

	// A look that gets no answer has none of such a post, and keeps those that nothing contradicts.
	a := newAudit(Config{Policy: policy.Default()})
	a.told["p1"] = &reddit.Post{}
	a.answers = map[manifest.PostID]liveAnswer{"p1": {live, first}, "p2": {deleted, first}}
	for _, id := range []manifest.PostID{"p1", "p2"} {
		a.post(id).State, a.post(id).Checked = manifest.StateLive, &later
	}
	a.post("p2").Checked = &first
	testkit.Same(t, "asked again", true, slices.Equal([]*evidence{a.post("p1")}, a.reuseAnswers()))
	testkit.Same(t, "answers about images", 0, len(a.told))
	testkit.Same(t, "the answer behind it", manifest.StateDeleted, a.post("p2").live.State)

	a = newAudit(Config{Policy: policy.Default()})
	a.report.Time = last
	e := a.post("p1")
	e.State, e.Checked, e.live, e.liveAt = manifest.StateLive, &first, deleted, first
	a.decidePost(e, past{})
	a.report.Posts = append(a.report.Posts, &e.AuditedPost)
	records := a.report.Records("")
	testkit.Same(t, "when it was answered, in the log", first, records[0].Time)

	b := newAudit(Config{Policy: policy.Default()})
	b.removals.Add(records[0])
	b.post("p1").askedLive = later.Unix()
	testkit.OK(t, b.readHeard(t.Context()))
	testkit.Same(t, "what counts of it after a later answer", 0, len(b.removals.Heard))
}
