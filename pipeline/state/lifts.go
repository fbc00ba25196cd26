package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A lift is not believed because it happened: whoever holds the workspace can lift with a key and a release of their
// own. Its statement and signature stay in audit/lifts, and every command that names a release checks them again.

// CheckLift checks the kept statement with a sha256 against a release: one of the signers that it pins now signed
// it, for this name and digest. The fault says why it does not count.
func CheckLift(ws *workspace.Workspace, rel *manifest.Release, digest string, now time.Time) (policy.Lift, policy.Signer, *policy.GrantFault, error) {
	name := AuditDir + "/" + auditlog.StatementName(digest)
	body, err := readStatement(ws, name)
	if err != nil {
		return policy.Lift{}, policy.Signer{}, nil, err
	}
	signature, err := readStatement(ws, name+manifest.SignatureSuffix)
	if err != nil {
		return policy.Lift{}, policy.Signer{}, nil, err
	}
	if body == nil || SHA256(body) != digest {
		return policy.Lift{}, policy.Signer{}, &policy.GrantFault{Reason: policy.GrantMissing, Detail: "its statement is not in " + name,
			Hint: "lift again, with the statement"}, nil
	}
	signers, err := policy.ParseSigners(rel.Signers)
	if err != nil {
		return policy.Lift{}, policy.Signer{}, nil, err
	}
	l, signer, fault := policy.OpenLift(policy.SignedFile{Name: name, Body: body, Signature: signature}, signers,
		policy.GrantedRelease{Name: rel.Name, Digest: rel.Digest}, now)
	return l, signer, fault, nil
}

// readStatement reads a kept statement or signature, nil where there is none.
func readStatement(ws *workspace.Workspace, name string) ([]byte, error) {
	f, err := ws.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the statement of a lift: %w", err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 128<<10))
}

// checkedLifts returns the note of lifted tombstones, with what a release says of each lift.
func checkedLifts(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release, now time.Time) ([]TombstoneEntry, error) {
	lifted, err := ReadNote[LiftedNote](ctx, ws)
	if err != nil {
		return nil, err
	}
	for _, e := range lifted {
		l, signer, fault, err := CheckLift(ws, rel, e.Lifted.Statement, now)
		switch {
		case err != nil:
			return nil, err
		case fault != nil:
			e.Lifted.Refused = string(fault.Reason) + ": " + fault.Detail
		// The note is the workspace's own word: only what the statement says counts.
		case !slices.Contains(l.IDs, e.ID) || e.Lifted.Held && e.Time.After(l.Asserted) || e.Lifted.Asserted.After(l.Asserted):
			e.Lifted.Refused = "the statement does not name the post, or is older than the tombstone"
		default:
			e.Lifted.Signer = signer.Name
		}
	}
	return lifted, nil
}

// Returned lists the tombstones that do not hold in a workspace: suspended because a moderator's removal ended and
// the policy lets the post come back, or lifted by a statement. With a release each lift is checked against it, and
// Lifted.Refused says why one does not count; without one (nil) none is checked.
func Returned(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release, now time.Time) ([]TombstoneEntry, error) {
	list, err := ListTombstones(ctx, ws)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e TombstoneEntry) bool { return e.Status == TombstoneHolds })
	if rel == nil {
		return list, nil
	}
	lifted, err := checkedLifts(ctx, ws, rel, now)
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		at := slices.IndexFunc(lifted, func(l TombstoneEntry) bool { return l.ID == e.ID })
		if e.Status == TombstoneLifted && at >= 0 {
			list[i] = lifted[at]
		}
	}
	return list, nil
}

// A Lifting is what became of the posts of a maintainer's statement.
type Lifting struct {
	Lifted []manifest.PostID `json:"lifted"`
	// Newer have a tombstone that is younger than the statement, which says nothing of it.
	Newer []manifest.PostID `json:"newer"`
	None  []manifest.PostID `json:"none"` // have no tombstone here
}

// Lift takes away the tombstones that a maintainer's statement names and that are no younger than it, and keeps the
// statement. The caller has verified it. What Reddit says of the posts decides again from the next run on, while
// the release that is run accepts the statement.
func Lift(ctx context.Context, ws *workspace.Workspace, l policy.Lift, signer policy.Signer, file policy.SignedFile) (Lifting, error) {
	out := Lifting{Lifted: []manifest.PostID{}, Newer: []manifest.PostID{}, None: []manifest.PostID{}}
	stones, err := ws.Tombstones(ctx)
	if err != nil {
		return out, err
	}
	have := map[manifest.PostID]workspace.Tombstone{}
	for _, t := range stones {
		have[t.ID] = t
	}
	lifted, err := ReadNote[LiftedNote](ctx, ws)
	if err != nil {
		return out, err
	}
	digest := SHA256(file.Body)
	for _, id := range l.IDs {
		e := TombstoneEntry{ID: id, State: manifest.StateRemoved, Time: l.Asserted, Status: TombstoneLifted}
		held := false
		t, ok := have[id]
		at := slices.IndexFunc(lifted, func(e TombstoneEntry) bool { return e.ID == id })
		switch {
		case ok:
			e.State, e.Time, e.Reason, held = t.State, t.Time, t.Reason, true
		case at >= 0: // lifted before: what holds again, should the statements not count, is that tombstone
			e.State, e.Time, e.Reason, held = lifted[at].State, lifted[at].Time, lifted[at].Reason, lifted[at].Lifted.Held
		}
		switch {
		case e.Time.After(l.Asserted):
			out.Newer = append(out.Newer, id)
			continue
		case ok:
			out.Lifted = append(out.Lifted, id)
		default:
			out.None = append(out.None, id)
		}
		e.Lifted = &LiftNote{Asserted: l.Asserted, Statement: digest, Why: l.Why, Signer: signer.Name, Held: held}
		lifted = append(slices.DeleteFunc(lifted, func(e TombstoneEntry) bool { return e.ID == id }), e)
	}
	// The statement before all else: a lift without one counts for no release. Then the note: killed between the
	// two, the tombstones hold, and the same command goes on.
	if err := ws.KeepStatement(ctx, digest, file.Body, file.Signature); err != nil {
		return out, err
	}
	if err := WriteNote(ctx, ws, lifted); err != nil {
		return out, err
	}
	if err := ws.LiftTombstones(ctx, digest, out.Lifted...); err != nil {
		return out, err
	}
	return out, WriteTombstones(ctx, ws)
}
