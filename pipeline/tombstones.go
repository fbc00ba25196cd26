package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"rehydrate/manifest"
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
	State  manifest.PostState `json:"state"`
	Time   time.Time          `json:"time"`
	Reason manifest.Reason    `json:"reason"` // "" when the release says so
	Status TombstoneStatus    `json:"status"`
	Lifted *LiftNote          `json:"lifted,omitempty"`
}

// A LiftNote says by what a tombstone was lifted.
type LiftNote struct {
	Asserted  time.Time `json:"asserted"`  // when the maintainers wrote the statement
	Statement string    `json:"statement"` // its sha256, hex
	Why       string    `json:"why"`
}

// ListTombstones returns all tombstones of a workspace, oldest first, and behind them those that were lifted.
func ListTombstones(ctx context.Context, ws *workspace.Workspace) ([]TombstoneEntry, error) {
	stones, err := ws.Tombstones(ctx)
	if err != nil {
		return nil, err
	}
	list := []TombstoneEntry{}
	again := map[manifest.PostID]bool{}
	for _, t := range stones {
		e := TombstoneEntry{ID: t.ID, State: t.State, Time: t.Time, Reason: t.Reason, Status: TombstoneHolds}
		if t.Readmitted {
			e.Status = TombstoneSuspended
		}
		list, again[t.ID] = append(list, e), true
	}
	lifted, err := liftedTombstones(ctx, ws)
	if err != nil {
		return nil, err
	}
	for _, e := range lifted {
		if !again[e.ID] {
			list = append(list, e)
		}
	}
	return list, nil
}

// Holding returns the tombstones of a list that hold, as tombstones.csv has them.
func Holding(list []TombstoneEntry) []manifest.Tombstone {
	var stones []manifest.Tombstone
	for _, e := range list {
		if e.Status == TombstoneHolds {
			stones = append(stones, manifest.Tombstone{ID: e.ID, State: e.State, Time: e.Time})
		}
	}
	return stones
}

// liftedKey is the workspace's note of the tombstones that were lifted, in the order of the lifting.
const liftedKey = "lifted"

func liftedTombstones(ctx context.Context, ws *workspace.Workspace) ([]TombstoneEntry, error) {
	var list []TombstoneEntry
	text, err := ws.Meta(ctx, liftedKey)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read the note of lifted tombstones: %w", err)
	}
	return list, nil
}

// liftedUntil says of posts up to when their tombstones were lifted.
func liftedUntil(ctx context.Context, ws *workspace.Workspace) (map[manifest.PostID]time.Time, error) {
	lifted, err := liftedTombstones(ctx, ws)
	until := map[manifest.PostID]time.Time{}
	for _, e := range lifted {
		until[e.ID] = e.Lifted.Asserted
	}
	return until, err
}

// A Lifting is what became of the posts of a maintainer's statement.
type Lifting struct {
	Lifted []manifest.PostID `json:"lifted"`
	// Newer have a tombstone that is younger than the statement, which says nothing of it.
	Newer []manifest.PostID `json:"newer"`
	None  []manifest.PostID `json:"none"` // have no tombstone here
}

// Lift takes away the tombstones that a maintainer's statement names and that are no younger than it. The
// caller has verified the statement, whose sha256 is digest. What Reddit says of the posts decides again
// from the next run on.
func Lift(ctx context.Context, ws *workspace.Workspace, l policy.Lift, digest string) (Lifting, error) {
	out := Lifting{Lifted: []manifest.PostID{}, Newer: []manifest.PostID{}, None: []manifest.PostID{}}
	stones, err := ws.Tombstones(ctx)
	if err != nil {
		return out, err
	}
	have := map[manifest.PostID]workspace.Tombstone{}
	for _, t := range stones {
		have[t.ID] = t
	}
	lifted, err := liftedTombstones(ctx, ws)
	if err != nil {
		return out, err
	}
	for _, id := range l.IDs {
		t, ok := have[id]
		switch {
		case !ok:
			out.None = append(out.None, id)
			t = workspace.Tombstone{Tombstone: manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: l.Asserted}}
		case t.Time.After(l.Asserted):
			out.Newer = append(out.Newer, id)
			continue
		default:
			out.Lifted = append(out.Lifted, id)
		}
		lifted = slices.DeleteFunc(lifted, func(e TombstoneEntry) bool { return e.ID == id })
		lifted = append(lifted, TombstoneEntry{ID: id, State: t.State, Time: t.Time, Reason: t.Reason, Status: TombstoneLifted,
			Lifted: &LiftNote{Asserted: l.Asserted, Statement: digest, Why: l.Why}})
	}
	// The note first: killed between the two, the tombstones hold, and the same command goes on.
	text, err := json.Marshal(lifted)
	if err != nil {
		return out, err
	}
	if err := ws.SetMeta(ctx, liftedKey, string(text)); err != nil {
		return out, err
	}
	if err := ws.LiftTombstones(ctx, digest, out.Lifted...); err != nil {
		return out, err
	}
	return out, writeTombstones(ctx, ws)
}

// writeTombstones writes tombstones.csv of the workspace: those that hold, as a release publishes them. It is
// there to be kept elsewhere, and for a state.db that comes back from a backup.
func writeTombstones(ctx context.Context, ws *workspace.Workspace) error {
	list, err := ListTombstones(ctx, ws)
	if err != nil {
		return err
	}
	_, err = ws.Replace(ctx, manifest.TombstonesName, func(w io.Writer) error { return manifest.WriteTombstones(w, Holding(list)) })
	return err
}

// takeOver adds tombstones from elsewhere.
func (r *run) takeOver(ctx context.Context) error {
	add, err := r.elsewhere(ctx)
	if err != nil {
		return err
	}
	if err := r.Workspace.AddTombstones(ctx, add); err != nil {
		return fmt.Errorf("take over the release's tombstones: %w", err)
	}
	return nil
}

// elsewhere are tombstones that state.db need not have: the release's and, where it has none of the post, those
// of the workspace's own file, but for those that a later statement lifted.
func (r *run) elsewhere(ctx context.Context) ([]workspace.Tombstone, error) {
	own, err := readOwnTombstones(r.Workspace)
	if err != nil {
		return nil, err
	}
	until, err := liftedUntil(ctx, r.Workspace)
	if err != nil {
		return nil, err
	}
	known, err := r.Workspace.Tombstones(ctx)
	if err != nil {
		return nil, err
	}
	have := map[manifest.PostID]bool{}
	for _, t := range known {
		have[t.ID] = true
	}
	var add []workspace.Tombstone
	for _, t := range own {
		if !have[t.ID] && t.Time.After(until[t.ID]) {
			add = append(add, workspace.Tombstone{Tombstone: t})
		}
	}
	for _, t := range r.Tombstones {
		if t.Time.After(until[t.ID]) {
			add = append(add, workspace.Tombstone{Tombstone: t})
		}
	}
	return add, nil
}

func readOwnTombstones(ws *workspace.Workspace) ([]manifest.Tombstone, error) {
	f, err := ws.OpenFile(manifest.TombstonesName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the workspace's tombstones: %w", err)
	}
	defer f.Close()
	stones, err := manifest.ReadTombstones(f)
	if err != nil {
		return nil, fmt.Errorf("%s in the workspace is damaged: %w; delete it if state.db did not come from a backup: then that has the same list", manifest.TombstonesName, err)
	}
	return stones, nil
}
