package state

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A TombstoneStatus says whether a tombstone holds.
type TombstoneStatus string

// The statuses of a tombstone.
const (
	TombstoneHolds     TombstoneStatus = "holds"
	TombstoneSuspended TombstoneStatus = "suspended" // the post came back, and the policy lets it
	TombstoneLifted    TombstoneStatus = "lifted"    // a maintainer's statement took it away
)

// A TombstoneEntry is one tombstone of a workspace, lifted ones among them.
type TombstoneEntry struct {
	ID     manifest.PostID    `json:"id"`
	State  manifest.PostState `json:"state"` // empty for one that was lifted and never here
	Time   time.Time          `json:"time"`
	Reason manifest.Reason    `json:"reason"` // empty when the release says so
	Status TombstoneStatus    `json:"status"`
	Lifted *LiftNote          `json:"lifted,omitempty"`
}

func (e TombstoneEntry) name() policy.NamedTombstone { return policy.NameTombstone(e.ID, e.Time) }

// A LiftNote says by what a tombstone was lifted.
type LiftNote struct {
	Asserted  time.Time `json:"asserted"`  // when the maintainers wrote the statement
	Statement string    `json:"statement"` // its sha256, hex; it lies in audit/lifts with its signature
	Why       string    `json:"why"`
	Signer    string    `json:"signer"`
	Held      bool      `json:"held"` // false when this workspace never had that tombstone
	// Refused is why the lift does not count for the release that it was checked against, "" when it counts or was
	// not checked. Then the tombstone holds.
	Refused string `json:"refused,omitempty"`
	// OtherEdition is whether it does not count only because the statement is for another edition of the release.
	OtherEdition bool `json:"-"`
}

// ListTombstones returns all tombstones of a workspace, oldest first, behind them those that only its tombstones.csv
// has, and those that were lifted. Each lift is checked against the release, unless that is nil.
func ListTombstones(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release,
	now time.Time) ([]TombstoneEntry, error) {
	list, lifted, err := storedTombstones(ctx, ws, rel, now)
	if err != nil {
		return nil, err
	}
	kept, err := KeptTombstones(ctx, ws)
	for _, t := range kept {
		list = append(list, TombstoneEntry{ID: t.ID, State: t.State, Time: t.Time, Reason: t.Reason, Status: TombstoneHolds})
	}
	return append(list, lifted...), err
}

// storedTombstones lists the tombstones of state.db, and those that were lifted.
func storedTombstones(
	ctx context.Context, ws *workspace.Workspace, rel *manifest.Release, now time.Time,
) (list, lifted []TombstoneEntry, err error) {
	stones, err := ws.Tombstones(ctx)
	if err != nil {
		return nil, nil, err
	}
	lifted, err = checkedLifts(ctx, ws, rel, now)
	if err != nil {
		return nil, nil, err
	}
	list = []TombstoneEntry{}
	for _, t := range stones {
		e := TombstoneEntry{ID: t.ID, State: t.State, Time: t.Time, Reason: t.Reason, Status: TombstoneHolds}
		if t.Readmitted {
			e.Status = TombstoneSuspended
		}
		list = append(list, e)
		// It was lifted, and came again since.
		lifted = slices.DeleteFunc(lifted, func(e TombstoneEntry) bool { return e.ID == t.ID })
	}
	return list, lifted, nil
}

// Returned lists, as ListTombstones does, the tombstones that do not hold.
func Returned(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release, now time.Time) ([]TombstoneEntry,
	error) {
	list, lifted, err := storedTombstones(ctx, ws, rel, now)
	return slices.DeleteFunc(append(list, lifted...),
		func(e TombstoneEntry) bool { return e.Status == TombstoneHolds }), err
}

// Lifts are the tombstones that statements lifted which a release accepts. None of them holds any more, whatever
// tombstone its post has since.
func Lifts(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release,
	now time.Time) (map[policy.NamedTombstone]bool, error) {
	lifted, err := checkedLifts(ctx, ws, rel, now)
	return acceptedOf(lifted), err
}

func acceptedOf(lifted []TombstoneEntry) map[policy.NamedTombstone]bool {
	names := map[policy.NamedTombstone]bool{}
	for _, e := range lifted {
		if e.Lifted.Refused == "" {
			names[e.name()] = true
		}
	}
	return names
}

// Holds returns the tombstones of a list that hold, as tombstones.csv of a workspace has them for ReadTombstones.
func Holds(list []TombstoneEntry) []manifest.ReasonedTombstone {
	var stones []manifest.ReasonedTombstone
	for _, e := range list {
		if e.Status != TombstoneHolds {
			continue
		}
		t := manifest.ReasonedTombstone{Tombstone: manifest.Tombstone{ID: e.ID, State: e.State, Time: e.Time}}
		if isKnown(e.Reason) { // else the list could not be read
			t.Reason = e.Reason
		}
		stones = append(stones, t)
	}
	return stones
}

// ReadTombstones reads a list of tombstones of a workspace: what manifest.WriteReasons wrote of Holds, or a list
// without reasons.
func ReadTombstones(r io.Reader) ([]manifest.ReasonedTombstone, error) {
	return manifest.ReadReasons(r, isKnown)
}

// WriteTombstones writes those that hold to tombstones.csv of the workspace, with their reasons.
func WriteTombstones(ctx context.Context, ws *workspace.Workspace) error {
	if err := CheckTombstones(ctx, ws); err != nil { // it would pass for a list of the program's own from now on
		return err
	}
	// To be kept elsewhere, and for a state.db that comes back from a backup: OtherTombstones reads it.
	list, err := ListTombstones(ctx, ws, nil, time.Time{})
	if err != nil {
		return err
	}
	_, err = ws.Replace(ctx, manifest.TombstonesName,
		func(w io.Writer) error { return manifest.WriteReasons(w, Holds(list)) }, nil)
	return err
}

// A Holding has tombstones by post.
type Holding map[manifest.PostID]workspace.Tombstone

// Has reports whether the post has one of the tombstones.
func (h Holding) Has(id manifest.PostID) bool { _, ok := h[id]; return ok }

// StateOf is the state of the tombstone of a post, if it has one.
func (h Holding) StateOf(id manifest.PostID) (manifest.PostState, bool) {
	t, ok := h[id]
	return t.State, ok
}

// HoldingTombstones returns the tombstones of a workspace that hold: all but those of readmitted posts, and those that
// only its tombstones.csv has.
func HoldingTombstones(ctx context.Context, ws *workspace.Workspace) (Holding, error) {
	hold, err := StoredTombstones(ctx, ws)
	if err != nil {
		return nil, err
	}
	kept, err := KeptTombstones(ctx, ws)
	for _, t := range kept {
		hold[t.ID] = t
	}
	return hold, err
}

// StoredTombstones is HoldingTombstones by state.db alone.
func StoredTombstones(ctx context.Context, ws *workspace.Workspace) (Holding, error) {
	hold, err := tombstonesByPost(ctx, ws)
	maps.DeleteFunc(hold, func(_ manifest.PostID, t workspace.Tombstone) bool { return t.Readmitted })
	return hold, err
}

// KeptTombstones returns those of tombstones.csv of the workspace that its state.db lacks, as where that came from a
// backup, and that no lift on record took away. A file that cannot be read is an error that says what to do.
func KeptTombstones(ctx context.Context, ws *workspace.Workspace) ([]workspace.Tombstone, error) {
	have, err := tombstonesByPost(ctx, ws)
	if err != nil {
		return nil, err
	}
	lifted, err := Lifts(ctx, ws, nil, time.Time{})
	if err != nil {
		return nil, err
	}
	return keptTombstones(ws, have, lifted)
}

// CheckTombstones returns a *workspace.Altered where tombstones.csv of the workspace has tombstones that state.db lacks
// and no command left there: a post must not be erased, or barred for good, by a line that was damaged. What only hides
// posts goes by that line all the same.
func CheckTombstones(ctx context.Context, ws *workspace.Workspace) error {
	kept, err := KeptTombstones(ctx, ws)
	if err != nil || len(kept) == 0 {
		return err
	}
	err = ws.CheckFile(ctx, manifest.TombstonesName)
	if altered, ok := errors.AsType[*workspace.Altered](err); ok {
		var posts []string
		for _, t := range kept {
			posts = append(posts, string(t.ID))
		}
		altered.Says = ", and would remove posts of which state.db has no tombstone: " + manifest.List(posts)
	}
	return err
}

// keptTombstones are those that have lacks, and that were not lifted.
func keptTombstones(ws *workspace.Workspace, have Holding,
	lifted map[policy.NamedTombstone]bool) ([]workspace.Tombstone, error) {
	file, err := readKept(ws, manifest.TombstonesName, math.MaxInt64)
	if err != nil || file == nil {
		return nil, err
	}
	own, err := ReadTombstones(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s in the workspace is damaged: %w; delete it if state.db did not come from a backup: "+
			"then that has the same list", manifest.TombstonesName, err)
	}
	var kept []workspace.Tombstone
	for _, t := range own {
		if !have.Has(t.ID) && !lifted[policy.NameTombstone(t.ID, t.Time)] {
			kept = append(kept, workspace.Tombstone{Tombstone: t.Tombstone, Reason: t.Reason})
		}
	}
	return kept, nil
}

// Suspended reports whether a tombstone does not hold under a policy: its post came back, and the policy lets it.
func Suspended(t workspace.Tombstone, p policy.Policy) bool {
	return t.Readmitted && p.Readmits(t.State, t.Reason)
}

// Stones returns the tombstones that hold when a release is worked on: those of the workspace, with the suspended ones
// that the release's policy does not let come back, and OtherTombstones, which count unless policy.Outweighs.
func Stones(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release,
	published []manifest.Tombstone, p policy.Policy, now time.Time) (Holding, error) {
	hold, err := tombstonesByPost(ctx, ws)
	if err != nil {
		return nil, err
	}
	more, err := OtherTombstones(ctx, ws, rel, published, now)
	return hold.with(more, p), err
}

// StonesToPublish returns the tombstones that hold where an edition of a release is made, and those that were lifted. A
// lift counts that is for any edition: a statement can't name the digest of one that is not made yet. It takes nothing
// out of the release's own list, which whoever publishes can change.
func StonesToPublish(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release,
	published []manifest.Tombstone, p policy.Policy, now time.Time) (Holding, []TombstoneEntry, error) {
	hold, err := tombstonesByPost(ctx, ws)
	if err != nil {
		return nil, nil, err
	}
	lifted, err := checkedLifts(ctx, ws, rel, now)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range lifted {
		if e.Lifted.OtherEdition {
			e.Lifted.Refused = ""
		}
	}
	more, _, err := notLifted(ws, hold, lifted)
	for _, t := range published {
		more = append(more, workspace.Tombstone{Tombstone: t})
	}
	return hold.with(more, p), lifted, err
}

// with are those of state.db that a policy does not suspend, and more, which count unless policy.Outweighs.
func (h Holding) with(more []workspace.Tombstone, p policy.Policy) Holding {
	maps.DeleteFunc(h, func(_ manifest.PostID, t workspace.Tombstone) bool { return Suspended(t, p) })
	for _, t := range more {
		if was, ok := h[t.ID]; !ok || !policy.Outweighs(was.State, was.Reason, t.State, t.Reason) {
			h[t.ID] = t
		}
	}
	return h
}

// NamePictures adds the digests that a release, nil for none, names of the posts, where it is another edition than the
// one that the workspace has.
func (h Holding) NamePictures(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release) error {
	b, _, err := ws.Binding(ctx)
	if err != nil || rel == nil || len(h) == 0 ||
		b.ReleaseDigest == rel.Digest && b.ManifestDigest == rel.ManifestDigest {
		return err
	}
	named := map[manifest.PostID][]workspace.Digests{}
	for e, err := range rel.Entries(ctx) {
		if err != nil {
			return fmt.Errorf("read the release: %w", err)
		}
		d := workspace.Digests{File: e.SHA256, Stripped: e.StrippedSHA256, Pixels: e.PixelsSHA256}
		if h.Has(e.ID) && d != (workspace.Digests{}) {
			named[e.ID] = append(named[e.ID], d)
		}
	}
	for id, pictures := range named {
		t := h[id]
		t.Pictures = pictures
		h[id] = t
	}
	return nil
}

func tombstonesByPost(ctx context.Context, ws *workspace.Workspace) (Holding, error) {
	all, err := ws.Tombstones(ctx)
	byPost := make(Holding, len(all))
	for _, t := range all {
		byPost[t.ID] = t
	}
	return byPost, err
}

// OtherTombstones returns those that state.db need not have: the published ones, those of the workspace's own file, and
// those that were lifted by a statement that the release does not accept.
func OtherTombstones(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release,
	published []manifest.Tombstone, now time.Time) ([]workspace.Tombstone, error) {
	have, err := tombstonesByPost(ctx, ws)
	if err != nil {
		return nil, err
	}
	lifted, err := checkedLifts(ctx, ws, rel, now)
	if err != nil {
		return nil, err
	}
	add, accepted, err := notLifted(ws, have, lifted)
	for _, t := range published {
		if !accepted[policy.NameTombstone(t.ID, t.Time)] {
			add = append(add, workspace.Tombstone{Tombstone: t})
		}
	}
	return add, err
}

// notLifted returns the tombstones beside those of state.db: of those that were lifted the ones whose lift is refused,
// and those of the workspace's own file. accepted names the tombstones whose lift counts.
func notLifted(ws *workspace.Workspace, have Holding, lifted []TombstoneEntry) (add []workspace.Tombstone,
	accepted map[policy.NamedTombstone]bool, err error) {
	for _, e := range lifted {
		if e.Lifted.Refused != "" && e.Lifted.Held && !have.Has(e.ID) { // the lift is void: what it took away holds again
			add = append(add, workspace.Tombstone{Tombstone: manifest.Tombstone{ID: e.ID, State: e.State,
				Time: e.Time}, Reason: e.Reason})
		}
	}
	accepted = acceptedOf(lifted)
	kept, err := keptTombstones(ws, have, accepted)
	return append(add, kept...), accepted, err
}

// readKept reads a file of the workspace, up to most bytes of it, nil where there is none.
func readKept(ws *workspace.Workspace, name string, most int64) ([]byte, error) {
	f, err := ws.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of the workspace: %w", name, err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

const maxStatement = 128 << 10 // bytes

// CheckLift checks the kept statement with a sha256 against a release. A *policy.GrantFault says why it does not count.
func CheckLift(ws *workspace.Workspace, rel *manifest.Release, digest string, now time.Time) (l policy.Lift,
	signer policy.Signer, err error) {
	file := policy.SignedFile{Name: AuditDir + "/" + auditlog.StatementName(digest)}
	if fs.ValidPath(file.Name) { // else somebody changed the note
		file.Body, err = readKept(ws, file.Name, maxStatement)
		if err == nil {
			file.Signature, err = readKept(ws, file.Name+manifest.SignatureSuffix, maxStatement)
		}
		if err != nil {
			return l, signer, err
		}
	}
	if file.Body == nil || SHA256(file.Body) != digest {
		return l, signer, &policy.GrantFault{Reason: "no_statement", Detail: "its statement is not in " + file.Name,
			Hint: "lift again, with the statement"}
	}
	// The keys that the release pins now: one that was taken out since lifts nothing any more.
	signers, err := policy.ParseSigners(rel.Signers)
	if err != nil {
		return l, signer, err
	}
	l, signer, fault := policy.OpenLift(file, signers, policy.GrantedRelease{Name: rel.Name, Digest: rel.Digest}, now)
	if fault != nil { // a nil fault in err would be an error
		return l, signer, fault
	}
	return l, signer, nil
}

// checkedLifts returns the note of lifted tombstones, with what a release (nil for none) says of each lift.
func checkedLifts(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release,
	now time.Time) ([]TombstoneEntry, error) {
	lifted, err := ReadNote[LiftedNote](ctx, ws)
	for i := range lifted {
		lifted[i].Lifted = cmp.Or(lifted[i].Lifted, &LiftNote{}) // a note that was changed by hand
	}
	if err != nil || rel == nil {
		return lifted, err
	}
	// A lift is not believed because it happened: whoever holds the workspace can lift with a key and a release of
	// their own.
	for _, e := range lifted {
		l, signer, err := CheckLift(ws, rel, e.Lifted.Statement, now)
		fault, refused := errors.AsType[*policy.GrantFault](err)
		names := slices.Contains(l.Tombstones, e.name())
		switch {
		case refused:
			e.Lifted.Refused = string(fault.Reason) + ": " + fault.Detail
			e.Lifted.OtherEdition = names && l.OfOtherEdition(fault, rel.Name)
		case err != nil:
			return nil, err
		// The note is the workspace's own word: only what the statement says counts.
		case !names:
			e.Lifted.Refused = "the statement does not name this tombstone"
		default:
			e.Lifted.Signer = signer.Name
		}
	}
	return lifted, nil
}

// A Lifting is what became of the tombstones that a maintainer's statement names.
type Lifting struct {
	Lifted []policy.NamedTombstone `json:"lifted"`
	None   []policy.NamedTombstone `json:"none"` // never were in this workspace
	// Stay are other tombstones of the same posts, here or in the release's list: the statement does not name them.
	Stay []policy.NamedTombstone `json:"stay"`
}

// Lift takes away the tombstones that a maintainer's statement names, and keeps the statement, which the caller has
// verified. What Reddit says of the posts decides again from the next run on. published is the release's own list.
func Lift(ctx context.Context, ws *workspace.Workspace, l policy.Lift, signer policy.Signer, file policy.SignedFile,
	published []manifest.Tombstone) (Lifting, error) {
	out := Lifting{Lifted: []policy.NamedTombstone{}, None: []policy.NamedTombstone{}, Stay: []policy.NamedTombstone{}}
	if err := CheckTombstones(ctx, ws); err != nil { // before anything is lifted: the list is written again in the end
		return out, err
	}
	have, err := tombstonesByPost(ctx, ws)
	if err != nil {
		return out, err
	}
	lifted, err := ReadNote[LiftedNote](ctx, ws)
	if err != nil {
		return out, err
	}
	digest := SHA256(file.Body)
	var posts []manifest.PostID
	for _, name := range l.Tombstones {
		e := TombstoneEntry{ID: name.ID, Time: name.Time}
		isIt := func(e TombstoneEntry) bool { return e.name() == name }
		// Lifted before: what holds again, should the statements not count, is that tombstone.
		held := false
		if at := slices.IndexFunc(lifted, isIt); at >= 0 {
			e, held = lifted[at], lifted[at].Lifted != nil && lifted[at].Lifted.Held
		}
		t, ok := have[name.ID]
		if ok && policy.NameTombstone(t.ID, t.Time) == name {
			e.State, e.Reason, held = t.State, t.Reason, true
			posts = append(posts, name.ID)
			out.Lifted = append(out.Lifted, name)
		} else if !held {
			out.None = append(out.None, name)
		}
		e.Status = TombstoneLifted
		e.Lifted = &LiftNote{Asserted: l.Asserted, Statement: digest, Why: l.Why, Signer: signer.Name, Held: held}
		lifted = append(slices.DeleteFunc(lifted, isIt), e)
	}
	out.Stay = othersOf(l.Tombstones, lifted, have, published)
	// The statement before all else: a lift without one counts for no release. Then the note: killed between the
	// two, the tombstones hold, and the same command goes on.
	if err := ws.KeepStatement(ctx, digest, file.Body, file.Signature); err != nil {
		return out, err
	}
	if err := WriteNote(ctx, ws, lifted); err != nil {
		return out, err
	}
	if err := ws.LiftTombstones(ctx, digest, posts...); err != nil {
		return out, err
	}
	return out, WriteTombstones(ctx, ws)
}

// othersOf lists the tombstones of the named posts, here and in the release's list, that nothing lifted.
func othersOf(names []policy.NamedTombstone, lifted LiftedNote, have Holding,
	published []manifest.Tombstone) []policy.NamedTombstone {
	all := slices.Clone(published)
	for _, name := range names {
		if t, ok := have[name.ID]; ok {
			all = append(all, t.Tombstone)
		}
	}
	others := []policy.NamedTombstone{}
	for _, t := range all {
		other := policy.NameTombstone(t.ID, t.Time)
		named := slices.ContainsFunc(names, func(n policy.NamedTombstone) bool { return n.ID == t.ID })
		gone := slices.ContainsFunc(lifted, func(e TombstoneEntry) bool { return e.name() == other })
		if named && !gone && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	return others
}
