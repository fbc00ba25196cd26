package pipeline

import (
	"context"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A PurgePlan is what a purge would remove by what is known now.
type PurgePlan struct {
	Posts    []PlannedPost      `json:"posts"`           // that the workspace has content of
	Rows     []string           `json:"rows"`            // of the dataset
	Same     []string           `json:"same_as_removed"` // entries that show the same picture as one that was taken down
	Copies   []state.CopyReport `json:"copies"`
	Withheld int                `json:"withheld"` // posts that are gone, and stay until that is confirmed
	// Unknown are posts of the request that the manifest of the last run does not have.
	Unknown []manifest.PostID `json:"unknown"`
}

// A PlannedPost is a post that would be erased.
type PlannedPost struct {
	state.GonePost
	Images int `json:"images"`
	Texts  int `json:"texts"`
}

// PlanPurge says what Purge would remove offline. It only reads: Config.Workspace need not be locked.
func PlanPurge(ctx context.Context, c Config, q PurgeRequest) (PurgePlan, error) {
	plan := PurgePlan{Posts: []PlannedPost{}, Rows: []string{}, Same: []string{}, Copies: []state.CopyReport{},
		Unknown: append([]manifest.PostID{}, q.IDs...)}
	r := newRun(c)
	gone, err := r.wouldGo(ctx, q)
	if err != nil {
		return plan, err
	}
	had, err := takeStock(ctx, r)
	if err != nil {
		return plan, err
	}
	taken, err := r.findTaken(ctx)
	if err != nil {
		return plan, err
	}
	planned, withheld, known := map[manifest.PostID]int{}, map[manifest.PostID]bool{}, map[manifest.PostID]bool{}
	for rec, err := range c.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return plan, err
		}
		name := rec.Key.String()
		why, goes := gone.Of(name)
		known[rec.ID] = true
		if rec.Post.Withheld && !goes {
			withheld[rec.ID] = true
		}
		same := !goes && rec.Image != nil && taken.refuses(r.Policy, rec.ID, *rec.Image) != nil
		if same {
			plan.Same = append(plan.Same, name)
		}
		if (goes || same) && had.rows[name] {
			plan.Rows = append(plan.Rows, name)
		}
		if !goes || rec.Image == nil {
			continue
		}
		at, have := planned[rec.ID]
		if !have {
			at = len(plan.Posts)
			planned[rec.ID] = at
			plan.Posts = append(plan.Posts, PlannedPost{GonePost: why})
		}
		plan.Posts[at].Images++
		if rec.Reading != nil && rec.Reading.Text != "" {
			plan.Posts[at].Texts++
		}
	}
	plan.Withheld = len(withheld)
	plan.Unknown = slices.DeleteFunc(plan.Unknown, func(id manifest.PostID) bool { return known[id] })
	for _, name := range plan.Same { // the copies lose these rows, too
		gone.Entries[name] = state.GonePost{ID: dataset.PostOf(name), State: manifest.StateRemoved, Reason: policy.SameAsRemoved}
	}
	list, err := state.OwingCopies(ctx, c.Workspace, gone)
	for _, reported := range list {
		if reported.State != state.CopyClosed && (reported.State != state.CopyGood || len(reported.Owed) > 0) {
			plan.Copies = append(plan.Copies, reported)
		}
	}
	return plan, err
}

// wouldGo are the posts that would be gone after an offline purge.
func (r *run) wouldGo(ctx context.Context, q PurgeRequest) (state.GoneSet, error) {
	var err error
	r.stones, err = state.Stones(ctx, r.Workspace, r.Release, r.Tombstones, r.Now())
	if err != nil {
		return state.GoneSet{}, err
	}
	for _, t := range q.tombstones(r.Now()) {
		r.stones[t.ID] = t
	}
	gone, err := state.MustGo(ctx, r.Workspace, r.stones)
	if err != nil || !r.ConfirmRemovals {
		return gone, err
	}
	confirmed, err := state.GonePosts(ctx, r.Workspace, true)
	maps.Copy(gone.Posts, confirmed.Posts)
	maps.Copy(gone.Entries, confirmed.Entries)
	return gone, err
}
