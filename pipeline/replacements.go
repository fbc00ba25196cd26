package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Where Reddit names another place for an image that is stored, what lies there is kept beside the stored one until the
// fetching ends. The stored one stays: it is the one that was labelled, or was fetched nearer to that time. Another one
// takes its place only where release or policy do not take the stored one, or it is suspected to stand for a missing
// one, its host was in no trouble, no other entry has the same bytes, or had that item of the gallery, and it is not as
// small as what stands in for missing pictures, nor somewhere else than Reddit said. The one that a digest of the
// release names needs no such proof. Where it is the same file, and no item of another entry, only the place is noted.

// replacements are images that may take the place of stored ones.
type replacements struct {
	mu  sync.Mutex
	all []replacement
}

type replacement struct {
	*workspace.Staged
	job fetchJob
}

// stage keeps an image beside the one that is stored.
func (r *replacements) stage(ctx context.Context, ws *workspace.Workspace, j fetchJob, body []byte,
	img workspace.Image) error {
	s, err := ws.Stage(ctx, j.entry.Key, body, img)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, replacement{s, j})
	return nil
}

// discard forgets all of them. What it cannot remove the next Sweep does.
func (r *replacements) discard(ctx context.Context) {
	for _, s := range r.all {
		s.Discard(ctx)
	}
	r.all = nil
}

// settleReplacements decides which of them take the place of the stored ones, and reads those.
func (g *gatherer) settleReplacements(ctx context.Context) error {
	same := map[string]int{}
	for _, o := range g.replacements.all {
		same[o.PixelsSHA256]++
	}
	read, err := g.noteItems(ctx)
	if err != nil {
		return err
	}
	// In an order that no worker decides.
	slices.SortFunc(g.replacements.all, func(a, b replacement) int { return a.job.entry.Ordinal - b.job.entry.Ordinal })
	for _, o := range g.replacements.all {
		f, err := g.refuses(ctx, o, same[o.PixelsSHA256])
		if err != nil {
			return err
		}
		if f != nil {
			if err := g.noImage(ctx, o.job, f); err != nil {
				return err
			}
			continue
		}
		if err := o.Store(ctx); err != nil {
			return err
		}
		g.Progress.fetched()
		read = append(read, o.ID)
	}
	g.replacements.discard(ctx)
	if err := g.noteInstead(ctx); err != nil {
		return err
	}
	return g.readMore(ctx, read)
}

// noteItems notes from which item of its gallery a stored image came where that is not known, as once state.db and the
// log were put back from before it came, and returns the posts. Places shift when Reddit drops an item, so that its
// bytes come for another entry; where they come for one alone, and are of one alone, they tell the item.
func (g *gatherer) noteItems(ctx context.Context) (noted []manifest.PostID, err error) {
	type file struct {
		post   manifest.PostID
		sha256 string
	}
	came := map[file]int{}
	for _, o := range g.replacements.all {
		came[file{o.ID, o.SHA256}]++
	}
	for _, o := range g.replacements.all {
		of := map[manifest.Key]bool{}
		for _, i := range o.job.gallery {
			if i.Stripped == o.SHA256 {
				of[i.Key] = true
			}
		}
		_, known := o.job.itemOf()
		if known || len(of) != 1 || came[file{o.ID, o.SHA256}] != 1 || !g.known.byHost[o.job.candidate.Host].sound() {
			continue
		}
		for k := range of {
			rec, err := g.stored(ctx, k)
			if err != nil {
				return nil, err
			}
			out := rec.Trouble != nil && rec.Trouble.Beside == workspace.Out
			if k == o.Key || out || rec.Image == nil || rec.Image.Source != "" || rec.Image.SHA256 != o.SHA256 {
				continue
			}
			if err := o.StoreFor(ctx, k); err != nil {
				return nil, err
			}
			noted = append(noted, k.ID)
		}
	}
	return noted, nil
}

// noteInstead notes what came in place of stored images, from how many places, and who had it before the first time.
// What this run stored where there was none, or one that was cut off, was nobody's before, and its place counts.
func (g *gatherer) noteInstead(ctx context.Context) error {
	came, err := g.Workspace.InsteadOfStored(ctx)
	if err != nil || len(came) == 0 {
		return err
	}
	known, err := state.ReadNote[state.StandInsNote](ctx, g.Workspace)
	if err != nil {
		return err
	}
	last, err := state.ReadNote[state.ExportNote](ctx, g.Workspace)
	if err != nil {
		return err
	}
	have, err := g.Workspace.ImagesThatCame(ctx, slices.Sorted(maps.Keys(came)))
	if err != nil {
		return err
	}
	all := state.StandInsNote{}
	for digest := range came {
		all[digest] = auditlog.Suspect{Before: known[digest].Before}
	}
	for _, rec := range have {
		digest := rec.Image.OriginalSHA256
		s := all[digest]
		_, now := g.storedNow.Load(rec.Key)
		switch {
		case now || last.Card != nil && !wasJudged(rec):
			came[digest] = append(came[digest], rec.Image.Source)
		case known[digest].Replaced == 0:
			s.Before = append(s.Before, rec.Key.String())
		}
		all[digest] = s
	}
	for digest, places := range came {
		s := all[digest]
		s.Replaced = len(slices.Compact(slices.Sorted(slices.Values(places))))
		all[digest] = s
	}
	return state.AddStandIns(ctx, g.Workspace, all)
}

// wasJudged reports whether the stored image of an entry was there when outcomes were last decided.
func wasJudged(rec workspace.Record) bool {
	return rec.Result != nil && slices.Contains([]manifest.Fate{manifest.FateKept, manifest.FateFiltered,
		manifest.FateUnavailable}, rec.Result.Outcome.Fate())
}

// refuses says why an image, which came for so many entries in this run, does not take the place of the stored one; nil
// if it does.
func (g *gatherer) refuses(ctx context.Context, o replacement, times int) (*policy.Fault, error) {
	stored, err := g.stored(ctx, o.Key)
	if err != nil {
		return nil, err
	}
	img, t := stored.Image, stored.Trouble
	stays := img != nil && (t == nil || t.Beside != workspace.Out) && !g.terms.suspected[o.Key]
	if !stays && state.Proven(o.job.entry, o.Image) {
		return nil, nil
	}
	if !g.known.byHost[o.job.candidate.Host].sound() {
		return &policy.Fault{Outcome: manifest.Failed, Reason: reasonNoImages,
			Detail: o.job.candidate.Host + " sent no image to anybody"}, nil
	}
	of, known := o.job.itemOf()
	others := known && of != o.Key
	shared, err := g.isShared(ctx, o)
	why := ""
	switch {
	case err != nil:
		return nil, err
	case img != nil && (img.OriginalSHA256 == o.OriginalSHA256 || img.SHA256 == o.SHA256) && !others:
		return nil, nil
	case stays:
		why = "the stored one stays"
	case shared || others || times > 1:
		why = "other entries have the same one"
	case o.job.candidate.Media != "" && img != nil && img.Source != "" && !o.job.candidate.IsFrom(img.Source):
		why = "it is another item of the gallery"
	case o.Redirected || max(o.Width, o.Height) < state.SmallSide && !g.terms.suspected[o.Key]:
		why = "it may be a picture for what is missing"
	default:
		return nil, nil
	}
	if !stays { // its outcome says why the stored one is no row, and nothing of this one
		g.Log.Warn("another image does not take the place of one that is refused", "entry", o.Key.String(), "because", why)
	}
	return &policy.Fault{Outcome: manifest.Changed, Reason: "another_image",
		Detail: "Reddit names another image now: " + why}, nil
}

// isShared reports whether another entry has the image already, or had it in the same gallery.
func (g *gatherer) isShared(ctx context.Context, o replacement) (bool, error) {
	if _, other := o.job.ofAnother(o.Image); other {
		return true, nil
	}
	for rec, err := range g.Workspace.Records(ctx, workspace.Select{Bare: true, Digests: []string{o.PixelsSHA256}}) {
		if err != nil || rec.Key != o.Key {
			return err == nil, err
		}
	}
	return false, nil
}
