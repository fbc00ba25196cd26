package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// stone is a tombstone of a time in hours after noon.
func stone(id manifest.PostID, hours int, reason manifest.Reason) workspace.Tombstone {
	return workspace.Tombstone{Reason: reason,
		Tombstone: manifest.Tombstone{ID: id, State: manifest.StateRemoved,
			Time: noon.Add(time.Duration(hours) * time.Hour)}}
}

// heldBy are the posts in a set of tombstones, in order.
func heldBy(h Holding) string {
	var ids []string
	for id := range h {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// listed are tombstones with their statuses, in the order of a list.
func listed(list []TombstoneEntry) string {
	var all []string
	for _, e := range list {
		all = append(all, string(e.ID)+" "+string(e.Status))
	}
	return strings.Join(all, ", ")
}

// TestTombstonesThatHold: of state.db, of tombstones.csv beside it, of the release, and without those of readmitted
// posts.
func TestTombstonesThatHold(t *testing.T) {
	ctx := t.Context()
	ws := sameImages(t, noon, "aaa1", "bbb2")
	testkit.OK(t, ws.AddTombstones(ctx, []workspace.Tombstone{stone("aaa1", 0, "moderator"),
		stone("back2", 1, "moderator")}),
		ws.SetReadmitted(ctx, true, "back2"))
	hold, err := HoldingTombstones(ctx, ws)
	testkit.Same(t, "without a file", "aaa1", heldBy(hold), err)
	list, err := ListTombstones(ctx, ws, nil, noon)
	testkit.Same(t, "list", "aaa1 holds, back2 suspended", listed(list), err)

	// A file of a state that was lost since.
	testkit.OK(t, os.WriteFile(filepath.Join(ws.Dir(), manifest.TombstonesName),
		[]byte("id,state,time,reason\naaa1,removed,2026-01-10T12:00:00Z,\n"+
			"file3,deleted,2026-01-10T12:00:00Z,crosspost_author\n"), 0o600))
	hold, err = HoldingTombstones(ctx, ws)
	testkit.Same(t, "with one", "aaa1 file3", heldBy(hold), err)
	hold, err = StoredTombstones(ctx, ws)
	testkit.Same(t, "by state.db alone", "aaa1", heldBy(hold), err)
	kept, err := KeptTombstones(ctx, ws)
	testkit.Same(t, "of the file alone", []workspace.Tombstone{{Tombstone: manifest.Tombstone{ID: "file3",
		State: manifest.StateDeleted, Time: noon}, Reason: policy.CrosspostAuthor}}, kept, err)
	hold, err = Stones(ctx, ws, nil, []manifest.Tombstone{stone("pub4", 0, "").Tombstone,
		stone("back2", 5, "").Tombstone}, policy.Default(), noon)
	testkit.Same(t, "with the release's", "aaa1 back2 file3 pub4", heldBy(hold), err)
	lenient := policy.Policy{Reddit: policy.Reddit{Readmit: policy.ReadmitModerator}}
	for want, p := range map[string]policy.Policy{"aaa1 file3": lenient, "aaa1 back2 file3": policy.Default()} {
		hold, err = Stones(ctx, ws, nil, nil, p, noon)
		testkit.Same(t, "where readmit is "+string(p.Reddit.Readmit), want, heldBy(hold), err)
	}
	list, err = ListTombstones(ctx, ws, nil, noon)
	testkit.Same(t, "list with the file", "aaa1 holds, back2 suspended, file3 holds", listed(list), err)
	testkit.Same(t, "those that hold", 2, len(Holds(list)))
	back, err := Returned(ctx, ws, nil, noon)
	testkit.Same(t, "those that do not", "back2 suspended", listed(back), err)
	testkit.OK(t, WriteTombstones(ctx, ws))
	body, err := os.ReadFile(filepath.Join(ws.Dir(), manifest.TombstonesName))
	testkit.Same(t, "tombstones.csv",
		"id,state,time,reason\naaa1,removed,2026-01-10T12:00:00Z,moderator\n"+
			"file3,deleted,2026-01-10T12:00:00Z,crosspost_author\n", string(body), err)

	testkit.OK(t, os.WriteFile(filepath.Join(ws.Dir(), manifest.TombstonesName), []byte("id,state\nwhat"), 0o600))
	if _, err := HoldingTombstones(ctx, ws); err == nil ||
		!strings.Contains(err.Error(), "delete it if state.db did not come from a backup") {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestListedReasons: a list has the reasons that this program gives, and a reader takes no other.
func TestListedReasons(t *testing.T) {
	for reason, want := range map[manifest.Reason]manifest.Reason{"moderator": "moderator", "author": "author",
		"takedown": "takedown", "takedown_court_order": "takedown_court_order", "other_new": "other_new", "": "",
		"takedown_": "", "other_": "", "moderater": "", "absent_twice": ""} {
		list := Holds([]TombstoneEntry{
			{ID: "aaa1", State: manifest.StateRemoved, Time: noon, Reason: reason, Status: TombstoneHolds}})
		testkit.Same(t, "written of "+string(reason), want, list[0].Reason)
		_, err := ReadTombstones(strings.NewReader(
			"id,state,time,reason\naaa1,removed,2026-01-10T12:00:00Z," + string(reason) + "\n"))
		testkit.Same(t, "read of "+string(reason), reason == want, err == nil)
	}
}

// TestLift takes a tombstone away by a statement: it stays away, whatever older lists say, until a release that is
// checked does not accept the statement.
func TestLift(t *testing.T) {
	ctx := t.Context()
	ws := sameImages(t, noon, "aaa1", "bbb2")
	testkit.OK(t, ws.AddTombstones(ctx, []workspace.Tombstone{stone("aaa1", 0, "moderator"),
		stone("bbb2", 3, "author")}))
	testkit.OK(t, WriteTombstones(ctx, ws))
	name := func(id manifest.PostID, hours int) policy.NamedTombstone {
		return policy.NameTombstone(id, noon.Add(time.Duration(hours)*time.Hour))
	}
	statement := policy.Lift{Why: "an error", Asserted: noon,
		Tombstones: []policy.NamedTombstone{name("aaa1", 0), name("bbb2", 1), name("new3", 0)}}
	file := policy.SignedFile{Body: []byte("the statement"), Signature: []byte("signed")}
	published := []manifest.Tombstone{stone("aaa1", 0, "").Tombstone, stone("aaa1", 7, "").Tombstone,
		stone("other", 0, "").Tombstone}
	out, err := Lift(ctx, ws, statement, policy.Signer{Name: "Office"}, file, published)
	testkit.Same(t, "lifting", Lifting{Lifted: []policy.NamedTombstone{name("aaa1", 0)},
		None: []policy.NamedTombstone{name("bbb2", 1), name("new3", 0)},
		Stay: []policy.NamedTombstone{name("aaa1", 7), name("bbb2", 3)}}, out, err)
	hold, err := HoldingTombstones(ctx, ws)
	testkit.Same(t, "what holds", "bbb2", heldBy(hold), err)
	list, err := ListTombstones(ctx, ws, nil, noon)
	testkit.Same(t, "list", "bbb2 holds, aaa1 lifted, new3 lifted", listed(list), err)
	testkit.Same(t, "how it was", LiftNote{Asserted: noon, Statement: SHA256(file.Body), Why: "an error",
		Signer: "Office", Held: true}, *list[1].Lifted)
	testkit.Same(t, "what it was", manifest.Reason("moderator"), list[1].Reason)
	testkit.Same(t, "of one that never was here", false, list[2].Lifted.Held)

	// The release's own list and an older file do not bring it back; another tombstone of the post does.
	more, err := OtherTombstones(ctx, ws, nil, published, noon)
	testkit.Same(t, "of the release", []string{"aaa1", "other"}, []string{string(more[0].ID), string(more[1].ID)}, err)
	testkit.Same(t, "which of the post's", noon.Add(7*time.Hour), more[0].Time)
	testkit.OK(t, os.WriteFile(filepath.Join(ws.Dir(), manifest.TombstonesName),
		[]byte("id,state,time\naaa1,removed,2026-01-10T12:00:00Z\n"), 0o600))
	kept, err := KeptTombstones(ctx, ws)
	testkit.Same(t, "of an older file", 0, len(kept), err)

	// The same statement again changes nothing.
	again, err := Lift(ctx, ws, statement, policy.Signer{Name: "Office"}, file, published)
	testkit.Same(t, "lifted again", []policy.NamedTombstone{}, again.Lifted, err)
	testkit.Same(t, "never here", []policy.NamedTombstone{name("bbb2", 1), name("new3", 0)}, again.None)
	list, err = ListTombstones(ctx, ws, nil, noon)
	testkit.Same(t, "list", "bbb2 holds, aaa1 lifted, bbb2 lifted, new3 lifted",
		"bbb2 holds, "+listed(list[1:2])+", bbb2 lifted, "+listed(list[2:]), err)

	// Beside a list that somebody changed nothing is lifted.
	testkit.OK(t, WriteTombstones(ctx, ws), ws.Note(ctx, auditlog.Event{Kind: auditlog.Audit, Verdict: "pass"}),
		ws.Close(), os.WriteFile(filepath.Join(ws.Dir(), manifest.TombstonesName),
			[]byte("id,state,time\nbbb3,removed,2026-01-10T12:00:00Z\n"), 0o600))
	ws, err = workspace.Open(ctx, ws.Dir(), workspace.Options{})
	testkit.OK(t, err)
	defer ws.Close()
	statement.Tombstones = []policy.NamedTombstone{name("bbb2", 3)}
	if _, err := Lift(ctx, ws, statement, policy.Signer{Name: "Office"}, file, nil); !errors.As(err,
		new(*workspace.Altered)) {
		t.Errorf("beside a list that was changed: %v", err)
	}
	hold, err = HoldingTombstones(ctx, ws)
	testkit.Same(t, "what holds beside it", "bbb2 bbb3", heldBy(hold), err)
	testkit.OK(t, os.Remove(filepath.Join(ws.Dir(), manifest.TombstonesName)))

	// A release that pins no signer accepts nothing: what was held here holds again.
	rel := &manifest.Release{}
	rel.Name, rel.Digest = "R", "d"
	_, _, err = CheckLift(ws, rel, SHA256(file.Body), noon)
	if fault, ok := errors.AsType[*policy.GrantFault](err); !ok || fault.Reason == "no_statement" {
		t.Errorf("a statement that nobody signed: %v", err)
	}
	for _, digest := range []string{SHA256([]byte("another")), "../../release"} {
		_, _, err = CheckLift(ws, rel, digest, noon)
		if fault, ok := errors.AsType[*policy.GrantFault](err); !ok || fault.Reason != "no_statement" {
			t.Errorf("a statement that is not there: %v", err)
		}
	}
	more, err = OtherTombstones(ctx, ws, rel, nil, noon)
	testkit.Same(t, "what holds again", []workspace.Tombstone{stone("aaa1", 0, "moderator")}, more, err)
	hold, err = Stones(ctx, ws, rel, nil, policy.Default(), noon)
	testkit.Same(t, "all that hold", "aaa1 bbb2", heldBy(hold), err)
	list, err = ListTombstones(ctx, ws, rel, noon)
	testkit.OK(t, err)
	if i := slices.IndexFunc(list, func(e TombstoneEntry) bool { return e.ID == "aaa1" && e.Lifted != nil }); i < 0 ||
		list[i].Lifted.Refused == "" {
		t.Errorf("the list does not say that the lift is refused: %+v", list)
	}

	// The tombstone comes again: then it is not listed as lifted.
	testkit.OK(t, ws.AddTombstones(ctx, []workspace.Tombstone{stone("aaa1", 9, "author")}))
	list, err = ListTombstones(ctx, ws, nil, noon)
	testkit.Same(t, "list when it came again", "bbb2 holds, aaa1 holds, new3 lifted", listed(list), err)
}
