package pipeline

import (
	"context"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/safely"
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

// split asks and fetches, and leaves the reading to shards.
func (r *run) split(ctx context.Context, s *resolver) error {
	if err := r.gather(ctx, s); err != nil {
		return err
	}
	r.Progress.stage("split into shards")
	r.out.Looks = &state.Looks{Resolve: s.sweep.Asked}
	// What is gone leaves before the shards are made: they must not have it either.
	if err := r.takeOut(ctx); err != nil {
		return err
	}
	items, err := cluster.Split(ctx, r.Workspace, r.plan(), r.stones)
	r.Log.Debug("split into shards", "images", items, "shards", r.Shards)
	return err
}

// merge takes in what the shards read, asks again and writes.
func (r *run) merge(ctx context.Context, s *resolver, shards int) error {
	if err := r.takeIn(ctx, shards); err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	safely.Go(group, func() error { return r.ask(running, s) })
	// No image is read from here on, and asking leaves time: after the last answer only what answers change is to be read.
	safely.Go(group, func() (err error) {
		r.draft, err = state.DraftAll(running, r.Workspace, r.Language, r.Policy)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return r.publish(ctx, s)
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
