package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
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
	Reason manifest.Reason    `json:"reason"` // empty when the release says so
	Status TombstoneStatus    `json:"status"`
	Lifted *LiftNote          `json:"lifted,omitempty"`
}

// A LiftNote says by what a tombstone was lifted.
type LiftNote struct {
	Asserted  time.Time `json:"asserted"`  // when the maintainers wrote the statement
	Statement string    `json:"statement"` // its sha256, hex; it lies in audit/lifts with its signature
	Why       string    `json:"why"`
	Signer    string    `json:"signer"`
	Held      bool      `json:"held"` // false when it was written before this workspace had a tombstone of the post
	// Refused is why the lift does not count for the release that it was checked against, "" when it counts or was
	// not checked. Then the tombstone holds.
	Refused string `json:"refused,omitempty"`
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
	lifted, err := ReadNote[LiftedNote](ctx, ws)
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

// Holds returns the tombstones of a list that hold, as tombstones.csv has them.
func Holds(list []TombstoneEntry) []manifest.Tombstone {
	var stones []manifest.Tombstone
	for _, e := range list {
		if e.Status == TombstoneHolds {
			stones = append(stones, manifest.Tombstone{ID: e.ID, State: e.State, Time: e.Time})
		}
	}
	return stones
}

// WriteTombstones writes tombstones.csv of the workspace: those that hold, as a release publishes them. It
// is there to be kept elsewhere, and for a state.db that comes back from a backup.
func WriteTombstones(ctx context.Context, ws *workspace.Workspace) error {
	list, err := ListTombstones(ctx, ws)
	if err != nil {
		return err
	}
	_, err = ws.Replace(ctx, manifest.TombstonesName, func(w io.Writer) error { return manifest.WriteTombstones(w, Holds(list)) })
	return err
}

// A Holding has the tombstones that hold, by post.
type Holding map[manifest.PostID]workspace.Tombstone

// Has reports whether the post has a tombstone that holds.
func (h Holding) Has(id manifest.PostID) bool { _, ok := h[id]; return ok }

// HoldingTombstones returns the tombstones of a workspace that hold: all but those of readmitted posts.
func HoldingTombstones(ctx context.Context, ws *workspace.Workspace) (Holding, error) {
	all, err := ws.Tombstones(ctx)
	if err != nil {
		return nil, err
	}
	hold := make(Holding, len(all))
	for _, t := range all {
		if !t.Readmitted {
			hold[t.ID] = t
		}
	}
	return hold, nil
}

// OtherTombstones returns those that state.db need not have: the published ones of the release and, where
// state.db has none of the post, those of the workspace's own file and those that were lifted by a statement that
// the release does not accept. Those that an accepted statement lifted are left out.
func OtherTombstones(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release, published []manifest.Tombstone, now time.Time) ([]workspace.Tombstone, error) {
	own, err := readOwnTombstones(ws)
	if err != nil {
		return nil, err
	}
	lifted, err := checkedLifts(ctx, ws, rel, now)
	if err != nil {
		return nil, err
	}
	known, err := ws.Tombstones(ctx)
	if err != nil {
		return nil, err
	}
	have := map[manifest.PostID]bool{}
	for _, t := range known {
		have[t.ID] = true
	}
	var add []workspace.Tombstone
	until := map[manifest.PostID]time.Time{}
	for _, e := range lifted {
		switch {
		case e.Lifted.Refused == "":
			until[e.ID] = e.Lifted.Asserted
		case e.Lifted.Held && !have[e.ID]:
			add = append(add, workspace.Tombstone{Tombstone: manifest.Tombstone{ID: e.ID, State: e.State, Time: e.Time}, Reason: e.Reason})
		}
	}
	for _, t := range own {
		if !have[t.ID] && t.Time.After(until[t.ID]) {
			add = append(add, workspace.Tombstone{Tombstone: t})
		}
	}
	for _, t := range published {
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
