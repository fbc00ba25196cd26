package audit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
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
