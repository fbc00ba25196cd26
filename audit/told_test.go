package audit

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestTold: what became of a post is known by an answer that says so, and by none that Reddit failed to give.
func TestTold(t *testing.T) {
	live := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name  string
		state manifest.PostState
		live  *time.Time
		told  bool
	}{
		{"never asked", "", nil, false},
		{"asked in an outage, or absent once", manifest.StateUnknown, nil, false},
		{"live, and absent once since", manifest.StateUnknown, &live, true},
		{"live", manifest.StateLive, &live, true},
		{"gone before it was ever live here", manifest.StateDeleted, nil, true},
		{"held", manifest.StateHeld, nil, true},
	} {
		e := evidence{AuditedPost: AuditedPost{Standing: Standing{State: c.state}, LastLive: c.live}}
		testkit.Same(t, c.name, c.told, e.told())
	}
}

// TestOldAnswers: of a post that stands in a file, and in no row of the workspace, an answer of Reddit is not good for
// ever; files that no post of the release is in do not ask for it.
func TestOldAnswers(t *testing.T) {
	for _, c := range []struct {
		name, rows string
		age        time.Duration
		want       Verdict
	}{
		{"fresh", "id,tone\n" + live1 + ",1\n", time.Hour, Pass},
		{"old", "id,tone\n" + live1 + ",1\n", policy.Default().Reddit.RecheckWithin + time.Hour, Overdue},
		{"old, and not in the file", "word,tone\nlight,1\n", policy.Default().Reddit.RecheckWithin + time.Hour, Pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, false, false)
			ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{Now: w.config.Now})
			testkit.OK(t, err)
			for _, id := range []manifest.PostID{live1, live2} { // an image asks for answers by itself
				testkit.OK(t, ws.Erase(t.Context(), id))
			}
			testkit.OK(t, ws.Close())
			file := filepath.Join(t.TempDir(), "found.csv")
			testkit.OK(t, os.WriteFile(file, []byte(c.rows), 0o600))
			now := w.config.Now().Add(c.age)
			w.config.Now = func() time.Time { return now }
			r := w.audit(t, w.ws, file)
			if r.Verdict != c.want {
				t.Errorf("%s, want %s; open %+v, duties %+v", r.Verdict, c.want, r.Open, r.Duties)
			}
		})
	}
}

// TestDueByTheHolder: an audit that asks Reddit takes no row out, so both audits count from when the holder asked.
func TestDueByTheHolder(t *testing.T) {
	within := policy.Default().Reddit.RecheckWithin
	held := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		held *time.Time
		age  time.Duration
		late bool
	}{
		{"in time", &held, within - time.Hour, false},
		{"late", &held, within + time.Hour, true},
		{"never live", nil, time.Hour, true},
		{"live in the future", &held, -time.Hour, true},
	} {
		var duties [][]Duty
		for _, live := range []*policy.Verdict{nil, {State: manifest.StateLive}} {
			a := newAudit(Config{Policy: policy.Default()})
			a.report.Time = held.Add(c.age)
			e := a.post("p1")
			e.State, e.LastLive, e.Checked, e.heldAsked = manifest.StateLive, c.held, c.held, c.held
			e.live, e.liveAt = live, a.report.Time
			a.decidePost(e, past{})
			a.holdsRow(e, false)
			a.tellRows()
			duties = append(duties, a.report.Duties)
		}
		testkit.Same(t, "what is due, "+c.name, duties[0], duties[1])
		if len(duties[0]) != 1 || duties[0][0].Late != c.late {
			t.Errorf("%s: %+v", c.name, duties[0])
		}
	}
}

// TestDueOfWhatIsNotLive: what is held back, or held by the policy, was asked about although nobody saw it live, and
// what only this audit hears leaves the holder the time until the next recheck.
func TestDueOfWhatIsNotLive(t *testing.T) {
	within := policy.Default().Reddit.RecheckWithin
	live := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	asked := live.Add(within / 2)
	at := func(p workspace.Post) workspace.Post {
		p.ID, p.LiveAt, p.CheckedAt = live1, live, cmp.Or(p.CheckedAt, asked)
		return p
	}
	waits := at(workspace.Post{State: manifest.StateRemoved, Reason: "moderator", Withheld: true, Unconfirmed: true})
	absent := at(workspace.Post{State: manifest.StateLive, CheckedAt: live, AbsentAt: asked})
	held := at(workspace.Post{State: manifest.StateHeld, Reason: "quarantine"})
	fine := at(workspace.Post{State: manifest.StateLive, CheckedAt: live})
	shown, quarantined := policy.Verdict{State: manifest.StateLive}, policy.Verdict{State: manifest.StateHeld}
	for _, c := range []struct {
		name string
		post workspace.Post
		says policy.Verdict
		row  bool // or else an image
		now  time.Time
		want map[DutyKind]bool // late ones
	}{
		{"held back, and shown again", waits, shown, true, asked.Add(within - time.Hour),
			map[DutyKind]bool{DutyRecheck: false}},
		{"likewise, an image", waits, shown, false, asked.Add(within - time.Hour),
			map[DutyKind]bool{DutyRecheck: false}},
		{"held back, shown again, and not asked", waits, shown, true, asked.Add(within + time.Hour),
			map[DutyKind]bool{DutyRecheck: true}},
		{"absent once, and shown again", absent, shown, true, asked.Add(within - time.Hour),
			map[DutyKind]bool{DutyRecheck: false}},
		{"held by the policy", held, quarantined, true, asked, map[DutyKind]bool{DutyHeld: true}},
		{"likewise, an image", held, quarantined, false, asked.Add(within - time.Hour),
			map[DutyKind]bool{DutyRecheck: false}},
		{"likewise, and not asked", held, quarantined, false, asked.Add(within + time.Hour),
			map[DutyKind]bool{DutyRecheck: true}},
		{"held by what this audit hears", fine, quarantined, true, live.Add(within - time.Hour),
			map[DutyKind]bool{DutyHeld: false, DutyRecheck: false}},
		{"likewise, and not asked", fine, quarantined, true, live.Add(within + time.Hour),
			map[DutyKind]bool{DutyHeld: false, DutyRecheck: true}},
		{"live", fine, shown, false, live.Add(within - time.Hour), map[DutyKind]bool{DutyRecheck: false}},
	} {
		a := newAudit(Config{Policy: policy.Default()})
		a.report.Time = c.now
		e := a.post(live1)
		a.readPost(c.post)
		e.live, e.liveAt = &c.says, c.now
		a.decidePost(e, a.past[live1])
		if c.row {
			a.holdsRow(e, true)
		} else {
			a.known(live1, live1).format = "png"
		}
		a.tellRows()
		got := map[DutyKind]bool{}
		for _, d := range a.report.Duties {
			got[d.Kind] = d.Late
		}
		testkit.Same(t, c.name, c.want, got)
	}
}
