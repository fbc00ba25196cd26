package pipeline

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Split asks and fetches as Run does, takes out what is gone, and splits what is to be read into shards, which other
// processes read. It needs no OCR. The errors are those of Run.
func Split(ctx context.Context, c Config, shards int) (state.Summary, error) {
	r := newRun(c)
	if err := r.mayFetch(ctx); err != nil {
		return state.Summary{}, err
	}
	// What stands against a split is found before anything is asked or changed.
	if err := cluster.CheckSplit(r.Workspace, r.plan(shards)); err != nil {
		return state.Summary{}, err
	}
	return r.doAsking(ctx, r.load, func(ctx context.Context, s *asker) error {
		r.Progress.stage("download")
		if err := r.gather(ctx, s); err != nil {
			return err
		}
		r.Progress.stage("split into shards")
		r.out.Looks = &state.Looks{Resolve: s.sweep.Asked}
		// What is gone leaves before the shards are made: they must not have it either.
		if err := r.takeOut(ctx); err != nil {
			return err
		}
		items, err := cluster.Split(ctx, r.Workspace, r.plan(shards), r.stones)
		r.Log.Debug("split into shards", "images", items, "shards", shards)
		return err
	})
}

// Merge takes in what the shards read, asks about every post again and writes, as Run does. It needs no OCR. The errors
// are those of Run and of cluster.Check.
func Merge(ctx context.Context, c Config) (state.Summary, error) {
	r := newRun(c)
	if err := r.access(); err != nil {
		return state.Summary{}, err
	}
	// What stands against a merge is found before anything is asked or changed.
	engine, shards, err := cluster.Check(r.Workspace, r.plan(0))
	if err != nil {
		return state.Summary{}, err
	}
	r.made = engineProvenance(engine, r.Policy, r.Version)
	return r.doAsking(ctx, r.load, func(ctx context.Context, s *asker) error {
		if err := r.storeResults(ctx, shards, state.ReadingFingerprint(engine.Fingerprint(), r.Policy)); err != nil {
			return err
		}
		if err := r.askAndDraft(ctx, s); err != nil {
			return err
		}
		if err := r.publish(ctx, s); err != nil {
			return err
		}
		// The shards last: killed before, the same command takes them in once more.
		if err := r.takeOut(ctx); err != nil || !r.cleared {
			return err
		}
		return cluster.Clear(ctx, r.Workspace)
	})
}

// plan is what shards are read by.
func (r *run) plan(shards int) cluster.Plan {
	return cluster.Plan{Format: cluster.Format, Shards: shards, Release: r.Release.Digest,
		Manifest: r.Release.ManifestDigest,
		Tool:     r.Version, Policy: r.Policy}
}

// askAndDraft asks about every post, and meanwhile drafts the outcomes: no image is read from here on, and asking
// leaves time. After the last answer only what answers change is to be read.
func (r *run) askAndDraft(ctx context.Context, s *asker) error {
	group, running := errgroup.WithContext(ctx)
	safely.Go(group, func() error { return r.ask(running, s) })
	safely.Go(group, func() (err error) {
		r.draft, err = state.DraftAll(running, r.Workspace, r.Language, r.Policy)
		return err
	})
	return group.Wait()
}

// batch is how many readings one transaction stores: each costs the disk a sync.
const batch = 200

// storeResults stores what the shards read, whose readings have this fingerprint.
func (r *run) storeResults(ctx context.Context, shards int, fingerprint string) error {
	r.Progress.stage("collect the shards")
	keepTexts, err := r.Workspace.Rereading(ctx)
	if err != nil {
		return err
	}
	g := r.newGatherer(nil, keepTexts)
	var waiting []workspace.NewReading
	for i := range shards {
		for result, err := range cluster.Results(r.Workspace, i) {
			if err != nil {
				return err
			}
			fresh, err := g.storeResult(ctx, result, fingerprint)
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

// storeResult returns the reading to store of one result, if its image is still here.
func (g *gatherer) storeResult(ctx context.Context, result cluster.Result, fingerprint string) (
	[]workspace.NewReading, error) {
	for rec, err := range g.Workspace.Records(ctx, workspace.Select{IDs: []manifest.PostID{result.ID}}) {
		if err != nil {
			return nil, err
		}
		switch {
		case rec.Key != result.Key() || rec.Image == nil || rec.Image.SHA256 != result.Stored.SHA256:
			continue
		case result.Fault != nil:
			return g.storeFault(ctx, rec, *result.Fault, fingerprint)
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

// storeFault refuses an image that a shard could not read. Whether its file is damaged this process finds out itself: a
// worker may see another disk, and the dataset may have the bytes. The reading of another engine is then none: the
// dataset says which engine read its texts. The next run reads the image.
func (g *gatherer) storeFault(ctx context.Context, rec workspace.Record, t workspace.Trouble, fingerprint string) (
	[]workspace.NewReading, error) {
	fault := &policy.Fault{Outcome: t.Outcome, Reason: t.Reason, Detail: t.Detail}
	if t.Reason == state.ReasonDamaged {
		_, _, err := g.load(ctx, rec)
		if err == nil {
			g.Log.Warn("a shard could not read an image whose file is whole here: the next run reads it", "id", rec.ID,
				"image", rec.Key.Image)
			if rec.Reading == nil || rec.Reading.Fingerprint == fingerprint {
				return nil, nil
			}
			return []workspace.NewReading{g.newReading(rec, workspace.Reading{ImageSHA256: rec.Image.SHA256,
				Failed: &workspace.Trouble{Outcome: manifest.Pending, Reason: reasonNotRead}})}, nil
		}
		var own bool
		fault, own = errors.AsType[*policy.Fault](err)
		if !own {
			return nil, err
		}
	}
	return nil, g.refuse(ctx, rec, fault)
}

// reasonNotRead is why an image waits that a shard did not see.
const reasonNotRead manifest.Reason = "not_read"
