package pipeline

import (
	"context"
	"errors"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/sweep"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// assign gives every entry of posts that were asked about its next step.
func (g *gatherer) assign(ctx context.Context, answered []sweep.Heard[asked]) error {
	of, ids := map[manifest.PostID]sweep.Heard[asked]{}, make([]manifest.PostID, len(answered))
	for i, h := range answered {
		ids[i], of[h.Post.ID] = h.Post.ID, h
	}
	// One question for all of them: it waits for the images that are being stored. Of a gallery all that is stored is
	// known before the first entry has its step.
	galleries := map[manifest.PostID][]workspace.Record{}
	origins, err := g.Workspace.Origins(ctx, ids)
	if err != nil {
		return err
	}
	for rec, err := range g.Workspace.Records(ctx, workspace.Select{IDs: ids}) {
		if err != nil {
			return err
		}
		h := of[rec.ID]
		gallery := h.Found != nil &&
			slices.ContainsFunc(h.Found.Images, func(c reddit.Candidate) bool { return c.Media != "" })
		if gallery {
			galleries[rec.ID] = append(galleries[rec.ID], rec)
		} else if err := g.assignEntry(ctx, h, rec, nil, origins); err != nil {
			return err
		}
	}
	for _, id := range ids {
		for _, rec := range galleries[id] {
			if err := g.assignEntry(ctx, of[id], rec, galleries[id], origins); err != nil {
				return err
			}
		}
	}
	return nil
}

// assignEntry is assign for one entry. In a gallery, beside are all entries of its post. origins say where images came
// from.
func (g *gatherer) assignEntry(ctx context.Context, h sweep.Heard[asked], rec workspace.Record,
	beside []workspace.Record, origins workspace.Origins) error {
	c, a := g.answerOf(h, rec, beside, origins)
	s := next(g.terms, rec, a)
	if s.gone {
		j := state.Judge{Policy: g.Policy, Now: g.Now()}
		if h.Post.stone != nil {
			j.Tombstones = state.Holding{rec.ID: *h.Post.stone}
		}
		res := j.Outcome(rec)
		s.outcome, s.reason = res.Outcome, res.Reason
	}
	return g.do(ctx, rec, c, s)
}

// answerOf is what Reddit said of the image of an entry, as next takes it. What came from another entry's item of the
// gallery is not its own, wherever that is listed now; nor is any item but its own, once it had one.
func (g *gatherer) answerOf(h sweep.Heard[asked], rec workspace.Record, beside []workspace.Record,
	origins workspace.Origins) (reddit.Candidate, answer) {
	a := answer{live: h.Post.stone == nil && h.Post.State == manifest.StateLive}
	if h.Found == nil {
		return reddit.Candidate{}, a
	}
	source := sourceOf(rec, origins)
	c := h.Found.ImageFrom(rec.Key.Image, source, origins.Beside(rec.Key))
	switch {
	case c.Fault == nil && g.fetch[c.Host] == nil:
		c.Fault = &policy.Fault{Outcome: manifest.Refused, Reason: "host_not_allowed"}
	case c.Fault == nil && rec.Image == nil && leftGallery(rec) && source != "" && !c.IsFrom(source):
		c.Fault = reddit.AnotherImage("the one that was taken out of the gallery is not in its place")
	case c.Fault == nil && rec.Image == nil && c.Media != "" && !rec.Named(): // a digest of the release decides
		of := slices.IndexFunc(beside, func(r workspace.Record) bool {
			return r.Image != nil && c.IsFrom(origins.Of(r.Key))
		})
		switch {
		case source != "" && !c.IsFrom(source):
			c.Fault = reddit.AnotherImage("the one that was stored is not in its place in the gallery")
		case of >= 0 && beside[of].Key != rec.Key:
			c.Fault = reddit.AnotherImage("the gallery has the image of " + beside[of].Key.String() + " in its place")
		}
	}
	a.place = &place{c.Source(), c.Fault}
	return c, a
}

// do does the step of an entry, whose image lies at c.
func (g *gatherer) do(ctx context.Context, rec workspace.Record, c reddit.Candidate, s step) error {
	// Where an image comes from, or came, that shows what the host sends.
	t := rec.Trouble
	odd := t != nil && t.Beside == workspace.Odd
	has := rec.Image != nil && !s.drop && !s.gone && c.Fault == nil && c.Host != ""
	switch {
	case s.same:
		g.known.lies(rec, c)
	case has && (s.fetch || odd && t.Outcome == manifest.Changed):
		g.known.moves(rec, c)
	case has && odd:
		g.known.gaveNone(rec, c)
	}
	if s.inspect {
		fetch, before := s.fetch, s.before
		var err error
		s, err = g.inspect(ctx, rec, s)
		if err != nil {
			return err
		}
		s.fetch, s.before = fetch, before
	}
	if err := g.note(ctx, rec, s); err != nil {
		return err
	}
	stored := rec.Image != nil && !s.drop
	switch {
	case s.read:
		if err := send(ctx, g.run, g.read, readJob{Record: rec}); err != nil {
			return err
		}
	case !s.fetch || stored:
		g.settled(rec.Key, manifest.Result{Outcome: s.outcome, Reason: s.reason})
	}
	if !s.fetch {
		return nil
	}
	erased, err := g.leftBehind(ctx, rec)
	if err != nil {
		return err
	}
	var gallery []workspace.ItemImage
	if c.Media != "" {
		gallery, err = g.Workspace.ItemImages(ctx, rec.ID)
		if err != nil {
			return err
		}
	}
	return send(ctx, g.run, g.fetch[c.Host], fetchJob{entry: rec.Entry, candidate: c,
		source: c.Source(), before: s.before, stored: stored, erased: erased, gallery: gallery,
		refused: stored && s.outcome != "",
		removed: leftPost(rec) || s.drop && s.note.Reason == policy.SameAsRemoved})
}

// itemOf returns the entry that had the item of the gallery which came for this one: this one, if it had it. known is
// false where it is not known that any entry had it.
func (j fetchJob) itemOf() (of manifest.Key, known bool) {
	for _, i := range j.gallery {
		if j.candidate.IsFrom(i.Source) && (!known || i.Key == j.entry.Key) {
			of, known = i.Key, true
		}
	}
	return of, known
}

// ofAnother returns the entry whose image in the gallery it is that came for this one; ok is false where it is nobody
// else's. Where Reddit drops an item, places shift. The media id tells items apart, which can show the same picture;
// only where it is not known from which item the image of the other entry came, the bytes do. What a digest of the
// release names, and what the entry itself had, is its own.
func (j fetchJob) ofAnother(img workspace.Image) (of manifest.Key, ok bool) {
	of, ok = j.itemOf()
	if of == j.entry.Key || state.Proven(j.entry, img) {
		return of, false
	}
	for _, i := range j.gallery {
		same := i.File == img.OriginalSHA256 || i.Stripped == img.SHA256 || i.Pixels == img.PixelsSHA256
		switch {
		case same && i.Key == j.entry.Key:
			return i.Key, false
		case same && !ok && i.Source == "":
			of, ok = i.Key, true
		}
	}
	return of, ok
}

// leftBehind returns the digests of the image of an entry that was taken out of its gallery where nothing else tells it
// from another one there: state.db was put back, and its log, of an earlier version, has no source. Else it returns
// nil.
func (g *gatherer) leftBehind(ctx context.Context, rec workspace.Record) (*workspace.Digests, error) {
	if !leftGallery(rec) {
		return nil, nil
	}
	origins, err := g.Workspace.Origins(ctx, []manifest.PostID{rec.ID})
	if err != nil || sourceOf(rec, origins) != "" {
		return nil, err
	}
	all, err := g.Workspace.FormerImages(ctx, []manifest.PostID{rec.ID})
	for _, f := range all {
		if f.Key == rec.Key && f.Erased {
			return &f.Digests, err
		}
	}
	return nil, err
}

// inspect reads the file of an image that was stored under other limits: what the policy allows now is decided from the
// bytes.
func (g *gatherer) inspect(ctx context.Context, rec workspace.Record, s step) (step, error) {
	_, _, err := g.load(ctx, rec)
	if f, ok := errors.AsType[*policy.Fault](err); ok {
		return g.terms.refused(rec, s.source, f), nil
	}
	if err == nil && s.same { // else it is not known from which host it came
		err = g.Workspace.SetLimits(ctx, rec.Key, g.terms.limits)
	}
	return s, err
}

// note stores what a step says of the entry's image.
func (g *gatherer) note(ctx context.Context, rec workspace.Record, s step) error {
	switch {
	case s.drop:
		return g.Workspace.DropImage(ctx, rec.Key, *s.note, s.note.Reason == policy.SameAsRemoved)
	case s.note != nil:
		if rec.Image != nil && policy.IsOfPlaceholder(s.note.Reason) {
			if err := g.noteNamed(ctx, rec.Image.OriginalSHA256); err != nil {
				return err
			}
		}
		return g.setTrouble(ctx, rec.Key, *s.note, rec.Image != nil)
	case s.clear:
		return g.Workspace.ClearTrouble(ctx, rec.Key)
	}
	return nil
}

// trouble is a fault as the workspace keeps it, of what no place and no policy decided.
func trouble(f *policy.Fault) workspace.Trouble {
	return workspace.Trouble{Outcome: f.Outcome, Reason: f.Reason, Detail: f.Detail}
}

// dropImage removes a stored image, and says why.
func (r *run) dropImage(ctx context.Context, k manifest.Key, f *policy.Fault) error {
	return r.Workspace.DropImage(ctx, k, trouble(f), f.Reason == policy.SameAsRemoved)
}

// noImage notes that a download brought no image. One that is stored stays, and is no row where it was none before; one
// that was removed stays so.
func (g *gatherer) noImage(ctx context.Context, j fetchJob, f *policy.Fault) error {
	if j.removed {
		return nil
	}
	t := trouble(f)
	t.Source = g.terms.attempt(j.entry, j.source, f.Reason)
	if j.stored {
		rec, err := g.stored(ctx, j.entry.Key)
		if err != nil {
			return err
		}
		t.Beside = workspace.Odd
		if is := rec.Trouble; is != nil && is.Beside == workspace.Out {
			source := t.Source
			t = *is
			if !f.Outcome.Retryable() { // else the place is asked again
				t.Source = source
			}
		}
	}
	return g.setTrouble(ctx, j.entry.Key, t, j.stored)
}

// setTrouble notes trouble. Where an image is removed that is not stored, what models said of one that was goes too.
func (g *gatherer) setTrouble(ctx context.Context, k manifest.Key, t workspace.Trouble, stored bool) error {
	if !stored && t.Removed() && slices.Contains(policy.ImageRemovals(), t.Reason) {
		return g.Workspace.DropImage(ctx, k, t, true)
	}
	return g.Workspace.SetTrouble(ctx, k, t)
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

// settled counts an entry that needs nothing more, or nothing that this run can do.
func (g *gatherer) settled(k manifest.Key, res manifest.Result) {
	g.Log.Debug("entry settled", "id", k.ID, "image", k.Image, "outcome", res.Outcome, "reason", res.Reason)
	g.Progress.settled(res.Outcome)
}
