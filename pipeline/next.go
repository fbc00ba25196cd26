package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/sweep"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// handOn gives every entry of posts that were asked about its next step.
func (g *gatherer) handOn(ctx context.Context, heard []sweep.Heard[asked]) error {
	of, ids := map[manifest.PostID]sweep.Heard[asked]{}, make([]manifest.PostID, len(heard))
	for i, h := range heard {
		ids[i], of[h.Post.ID] = h.Post.ID, h
	}
	// One question for all of them: it waits for the images that are being stored.
	for rec, err := range g.Workspace.Records(ctx, workspace.Select{IDs: ids}) {
		if err != nil {
			return err
		}
		switch h := of[rec.ID]; {
		case h.Post.stone != nil || h.Post.State != manifest.StateLive || h.Found == nil && rec.Image == nil:
			j := state.Judge{Policy: g.Policy, Now: g.Now()}
			if h.Post.stone != nil {
				j.Tombstones = state.Holding{rec.ID: *h.Post.stone}
			}
			g.settled(rec.Key, j.Outcome(rec))
		case h.Found == nil: // without a verdict the row can stay, and then it is read as all others are
			err = g.readIfStale(ctx, rec)
		default:
			err = g.assign(ctx, rec, *h.Found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// assign decides what one entry of a live post still needs: a download, a reading or nothing. An image that is stored
// stays, whatever is odd about the answer.
func (g *gatherer) assign(ctx context.Context, rec workspace.Record, post reddit.Post) error {
	c := post.Image(rec.Key.Image)
	if c.Fault == nil && g.fetch[c.Host] == nil {
		c.Fault = &policy.Fault{Outcome: manifest.Refused, Reason: "host_not_allowed"}
	}
	// What was removed stays away, as posts do, until somebody asks for it by name.
	if t := rec.Trouble; t != nil && rec.Image == nil && slices.Contains(policy.ImageRemovals(), t.Reason) &&
		t.Reason != policy.SameAsRemoved && !slices.Contains(g.Retry, string(t.Reason)) {
		g.settled(rec.Key, manifest.Result{Outcome: t.Outcome, Reason: t.Reason})
		return nil
	}
	if f := c.Fault; f != nil {
		switch {
		case rec.Image == nil:
			return g.failed(ctx, rec.Key, "", f)
		case slices.Contains(policy.ImageRemovals(), f.Reason):
			g.settled(rec.Key, manifest.Result{Outcome: f.Outcome, Reason: f.Reason}) // the resolver deals with it
			return nil
		}
		// the policy that it was stored under named the host
		if f.Outcome == manifest.Refused && rec.Image.Limits != g.limits {
			g.settled(rec.Key, manifest.Result{Outcome: f.Outcome, Reason: f.Reason})
			return g.beside(ctx, rec, workspace.Out, "", f)
		}
		return g.keep(ctx, rec, "", f)
	}
	source, attempt := state.SHA256([]byte(c.URL)), g.attempt(rec.Entry, c)
	// The place is that of the stored image: the host is not asked again on every run.
	if rec.Image != nil && rec.Image.Source == source {
		if judged(rec) {
			g.known.stored(c)
		} else {
			g.known.left(rec.ID, c, rec.Image.PixelsSHA256)
		}
		return g.keep(ctx, rec, attempt, nil)
	}
	// A final answer stays final while nothing that led to it has changed.
	if t := rec.Trouble; t != nil && t.Source == g.taken.source(g.Policy, rec.ID, attempt, t.Reason) && !g.again(*t) {
		if rec.Image != nil {
			return g.keep(ctx, rec, attempt, &policy.Fault{Outcome: t.Outcome, Reason: t.Reason, Detail: t.Detail})
		}
		g.settled(rec.Key, manifest.Result{Outcome: t.Outcome, Reason: t.Reason})
		return nil
	}
	j := fetchJob{entry: rec.Entry, candidate: c, source: source, stored: rec.Image != nil}
	if t := rec.Trouble; t != nil && t.Source == attempt && t.Outcome == manifest.Failed {
		j.before = t.Reason
	}
	if j.stored { // read beside the download, which may come to nothing
		if err := g.keep(ctx, rec, "", nil); err != nil {
			return err
		}
	}
	return send(ctx, g.run, g.fetch[c.Host], j)
}

// judged reports whether a run that stored an image, or one after it, came to its end.
func judged(rec workspace.Record) bool {
	return rec.Result != nil && rec.Result.Outcome != manifest.Pending && rec.Result.Outcome != manifest.Failed
}

// keep reads the stored image of a record, if need be, and notes what is odd about the answer to it, nil for nothing.
// Where release or policy no longer take the image, it is no row; where it may not be here, it goes.
func (g *gatherer) keep(ctx context.Context, rec workspace.Record, attempt string, odd *policy.Fault) error {
	err := g.stillGood(ctx, rec)
	if fault, ok := errors.AsType[*policy.Fault](err); ok {
		source := g.taken.source(g.Policy, rec.ID, attempt, fault.Reason)
		g.settled(rec.Key, manifest.Result{Outcome: fault.Outcome, Reason: fault.Reason})
		if fault.Reason == policy.SameAsRemoved || fault.Reason == state.ReasonDamaged {
			return g.dropImage(ctx, rec.Key, source, fault, fault.Reason == policy.SameAsRemoved)
		}
		return g.beside(ctx, rec, workspace.Out, source, fault)
	}
	if err != nil {
		return err
	}
	if err := g.beside(ctx, rec, workspace.Odd, attempt, odd); err != nil {
		return err
	}
	return g.readIfStale(ctx, rec)
}

// attempt names all that decides how a download ends: when none of it changed, neither does an answer that was final.
func (g *gatherer) attempt(e manifest.Entry, c reddit.Candidate) string {
	return state.SHA256(fmt.Appendln(nil, c.URL, g.limits, e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash,
		g.Policy.Dedupe.HashRadius))
}

// again reports whether a download that ended in t is to be tried once more.
func (g *gatherer) again(t workspace.Trouble) bool {
	return t.Outcome.Retryable() || slices.Contains(g.Retry, string(t.Outcome)) || slices.Contains(g.Retry,
		string(t.Reason))
}

// stillGood holds a stored image against what release and policy say now: the same release gives the same answers,
// whatever was there before. A *policy.Fault says why it is not good.
func (g *gatherer) stillGood(ctx context.Context, rec workspace.Record) error {
	img := *rec.Image
	header := picture.Info{Format: img.Format, Width: img.Width, Height: img.Height}
	if f := cmp.Or(g.compare(rec.Entry, img), g.taken.refuses(g.Policy, rec.ID, img),
		g.Policy.PlaceholderOf(img.OriginalSHA256, "", header, img.OriginalBytes)); f != nil {
		return f
	}
	if img.Limits == g.limits {
		return nil
	}
	if img.OriginalBytes > g.Policy.Images.MaxBytes {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "too_large",
			Detail: fmt.Sprintf("%d bytes, %d are allowed", img.OriginalBytes, g.Policy.Images.MaxBytes)}
	}
	// Other limits than when it was stored: what the policy allows now is decided from the bytes.
	_, _, err := g.load(ctx, rec)
	return err
}

// readIfStale sends a stored image to the readers unless its reading is of the present engine.
func (g *gatherer) readIfStale(ctx context.Context, rec workspace.Record) error {
	if g.OCR == nil || g.reader.Current(*rec.Image, rec.Reading) {
		g.settled(rec.Key, manifest.Result{})
		return nil
	}
	return send(ctx, g.run, g.read, readJob{Record: rec})
}

// trouble is a fault as the workspace keeps it.
func trouble(source string, f *policy.Fault) workspace.Trouble {
	return workspace.Trouble{Source: source, Outcome: f.Outcome, Reason: f.Reason, Detail: f.Detail}
}

// beside notes what is the matter with the image that an entry has, or with the last answer to it; nothing for a nil f.
func (r *run) beside(ctx context.Context, rec workspace.Record, what workspace.Beside, source string,
	f *policy.Fault) error {
	if f == nil {
		if rec.Trouble == nil {
			return nil
		}
		return r.Workspace.ClearTrouble(ctx, rec.Key)
	}
	t := trouble(source, f)
	t.Beside = what
	if rec.Trouble != nil && *rec.Trouble == t {
		return nil
	}
	return r.Workspace.SetTrouble(ctx, rec.Key, t)
}

// dropImage removes a stored image, and says why.
func (r *run) dropImage(ctx context.Context, k manifest.Key, source string, f *policy.Fault, removed bool) error {
	return r.Workspace.DropImage(ctx, k, trouble(source, f), removed)
}

// noImage notes that a download brought no image. One that is stored stays, and is no row where it was none before.
func (r *run) noImage(ctx context.Context, j fetchJob, source string, f *policy.Fault) error {
	t := trouble(source, f)
	if j.stored {
		rec, err := r.stored(ctx, j.entry.Key)
		if err != nil {
			return err
		}
		t.Beside = workspace.Odd
		if is := rec.Trouble; is != nil && is.Beside == workspace.Out {
			t = *is
			t.Source = source
		}
	}
	return r.Workspace.SetTrouble(ctx, j.entry.Key, t)
}

// stored is what is stored of an entry.
func (r *run) stored(ctx context.Context, k manifest.Key) (workspace.Record, error) {
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true, IDs: []manifest.PostID{k.ID}}) {
		if err != nil || rec.Key == k {
			return rec, err
		}
	}
	return workspace.Record{}, nil
}

// failed settles an entry that has no image.
func (g *gatherer) failed(ctx context.Context, k manifest.Key, source string, f *policy.Fault) error {
	if err := g.Workspace.SetTrouble(ctx, k, trouble(source, f)); err != nil {
		return err
	}
	g.settled(k, manifest.Result{Outcome: f.Outcome, Reason: f.Reason})
	return nil
}

// settled counts an entry that needs nothing more, or nothing that this run can do.
func (g *gatherer) settled(k manifest.Key, res manifest.Result) {
	g.Log.Debug("entry settled", "id", k.ID, "image", k.Image, "outcome", res.Outcome, "reason", res.Reason)
	g.Progress.settled(res.Outcome)
}
