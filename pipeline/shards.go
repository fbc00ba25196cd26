package pipeline

import (
	"context"

	"rehydrate/manifest"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// plan is what shards of this run are read by.
func (r *run) plan() cluster.Plan {
	return cluster.Plan{Format: cluster.Format, Shards: r.Shards, Release: r.Release.Digest, Manifest: r.Release.ManifestDigest,
		Tool: r.Version, Policy: r.Policy}
}

// split ends a run that leaves the reading to shards.
func (r *run) split(ctx context.Context, s *resolver) error {
	r.Progress.stage("split into shards")
	r.out.Looks = &state.Looks{Resolve: s.sweep.Asked}
	// No row comes in before it is read and its post asked about again, but those of posts that are gone leave now.
	if err := r.withdraw(ctx); err != nil {
		return err
	}
	items, err := cluster.Split(ctx, r.Workspace, r.plan(), r.stones)
	r.Log.Debug("split into shards", "images", items, "shards", r.Shards)
	return err
}

// checkShards finds what stands against a merge before anything is asked or changed.
func (r *run) checkShards() (shards int, err error) {
	engine, shards, err := cluster.Check(r.Workspace, r.plan())
	r.made = engineProvenance(engine, r.Policy, r.Version)
	return shards, err
}

// batch is how many readings one transaction stores: each costs the disk a sync.
const batch = 200

// takeIn stores what the shards read.
func (r *run) takeIn(ctx context.Context, shards int) error {
	r.Progress.stage("take in the shards")
	keepTexts, err := r.Workspace.Rereading(ctx)
	if err != nil {
		return err
	}
	g := r.newGatherer(keepTexts)
	var waiting []workspace.NewReading
	for i := range shards {
		for result, err := range cluster.Results(r.Workspace, i) {
			if err != nil {
				return err
			}
			fresh, err := g.takeResult(ctx, result)
			if err != nil {
				return err
			}
			waiting = append(waiting, fresh...)
			if len(waiting) >= batch {
				if err := r.Workspace.SetReadings(ctx, waiting...); err != nil {
					return err
				}
				waiting = waiting[:0]
			}
			if r.stopping() {
				return state.ErrInterrupted
			}
		}
	}
	return r.Workspace.SetReadings(ctx, waiting...)
}

// takeResult returns the reading to store of one result, if its image is still here.
func (g *gatherer) takeResult(ctx context.Context, result cluster.Result) ([]workspace.NewReading, error) {
	for rec, err := range g.Workspace.Records(ctx, workspace.Select{IDs: []manifest.PostID{result.ID}}) {
		if err != nil {
			return nil, err
		}
		switch {
		case rec.Key != result.Key() || rec.Image == nil || rec.Image.SHA256 != result.Stored.SHA256:
			continue
		case result.Fault != nil:
			f := result.Fault
			return nil, g.failed(ctx, rec.Key, "", &policy.Fault{Outcome: f.Outcome, Reason: f.Reason, Detail: f.Detail})
		case rec.Image.HashKind != result.Stored.HashKind:
			if err := g.Workspace.SetHash(ctx, rec.Key, result.Stored); err != nil {
				return nil, err
			}
		}
		g.Progress.read()
		return []workspace.NewReading{g.newReading(rec, result.Reading)}, nil
	}
	return nil, nil
}

// dropFromShards takes what must go out of what shards have to read, and of what they read.
func (r *run) dropFromShards(ctx context.Context) error {
	names, err := r.Workspace.Files(ctx, state.ShardsDir)
	if err != nil || len(names) == 0 {
		return err
	}
	gone, err := state.MustGo(ctx, r.Workspace, r.stones)
	if err != nil {
		return err
	}
	return cluster.Drop(ctx, r.Workspace, func(id manifest.PostID) bool { return gone.Has(id) })
}
