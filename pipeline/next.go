package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Terms decide, with what is stored of an entry and what Reddit says of it, what the entry still needs.
type terms struct {
	policy  policy.Policy
	limits  string // what the policy allows of images, as Image.Limits has it
	retry   []string
	removed state.RemovedPictures
	reader  *reading.Reader // nil where the job reads no image
	// suspected are the entries whose stored image stands for a missing one.
	suspected map[manifest.Key]bool
}

// newTerms are those of a job that reads by reader, nil where it reads nothing.
func newTerms(c Config, removed state.RemovedPictures, reader *reading.Reader) terms {
	return terms{policy: c.Policy, limits: c.Policy.ImageLimits(), retry: c.Retry, removed: removed, reader: reader}
}

// An answer is what is known of an entry's post when its next step is decided.
type answer struct {
	live  bool   // the post is live, and no tombstone holds
	place *place // of the image; nil where Reddit gave no verdict this time
}

// A place is where Reddit says that an image lies.
type place struct {
	source string        // as Image.Source
	fault  *policy.Fault // why there is none
}

// A step is what one entry still needs, and what becomes of what is stored of it.
type step struct {
	fetch   bool            // download the image
	before  manifest.Reason // of a download: why the same one failed in an earlier run, if it did
	read    bool            // read the stored image
	inspect bool            // before that, check the file of the stored image: it was stored under other limits
	source  string          // of the place that a fault of the file would be noted with
	drop    bool            // remove the stored image, for the reason in note
	clear   bool            // nothing is the matter any more
	note    *workspace.Trouble
	same    bool // the image lies where the stored one was fetched
	gone    bool // the post is: its outcome follows from that
	// How the entry ends if nothing is to be done; the zero value if it can become a row.
	outcome manifest.Outcome
	reason  manifest.Reason
}

// done is the step of an entry that needs nothing more.
func done(o manifest.Outcome, reason manifest.Reason) step { return step{outcome: o, reason: reason} }

// next says what one entry still needs: a download, a reading or nothing. It asks nobody, reads no file and changes
// nothing: the job does what it says, and a plan counts it. An image that is stored stays, whatever is odd about the
// answer.
func next(t terms, rec workspace.Record, a answer) step {
	switch {
	case !a.live || a.place == nil && rec.Image == nil:
		return step{gone: true}
	case a.place == nil: // without a verdict the row can stay, and then it is read as all others are
		return step{read: t.stale(rec)}
	case t.staysAway(rec, *a.place), rec.Trouble != nil && rec.Trouble.Withheld(): // settle deals with what waits
		return done(rec.Trouble.Outcome, rec.Trouble.Reason)
	case a.place.fault != nil:
		return t.withoutPlace(rec, *a.place)
	}
	source := a.place.source
	// The place is that of the stored image: the host is not asked again on every run.
	if rec.Image != nil && rec.Image.Source == source {
		s := t.stay(rec, source, nil)
		s.same = true
		s.fetch = t.wantsAnother(rec)
		return s
	}
	last := rec.Trouble
	// A final answer stays final while nothing that led to it has changed.
	if last != nil && last.Source == t.attempt(rec.Entry, source, last.Reason) && !t.again(*last) &&
		!t.wantsAnother(rec) {
		if rec.Image == nil {
			return done(last.Outcome, last.Reason)
		}
		return t.stay(rec, source, &policy.Fault{Outcome: last.Outcome, Reason: last.Reason, Detail: last.Detail})
	}
	var s step
	if rec.Image != nil { // read beside the download, which may come to nothing
		s = t.stay(rec, "", nil)
	}
	s.fetch = true
	if last != nil && last.Source == t.attempt(rec.Entry, source, "") && last.Outcome == manifest.Failed {
		s.before = last.Reason
	}
	return s
}

// wantsAnother reports whether somebody wants to know whether the labelled image can be had now, in place of one that
// is another, or that many got.
func (t terms) wantsAnother(rec workspace.Record) bool {
	if rec.Image == nil {
		return false
	}
	f := state.Compare(t.policy, rec.Entry, *rec.Image)
	if f == nil && t.suspected[rec.Key] {
		f = &policy.Fault{Outcome: manifest.Placeholder, Reason: state.ReasonSuspected}
	}
	return f != nil && t.retries(f.Outcome, f.Reason)
}

// retries reports whether an outcome is to be tried again.
func (t terms) retries(o manifest.Outcome, r manifest.Reason) bool {
	return slices.Contains(t.retry, string(o)) || slices.Contains(t.retry, string(r))
}

// findSuspected finds the stored images that another one may replace, as stand-ins. Where from many of them came is not
// known, as after a lost state.db, only who asks for them again says that they are none of their posts'.
func (t *terms) findSuspected(ctx context.Context, ws *workspace.Workspace) (err error) {
	find := state.NotedStandIns
	if t.retries(manifest.Placeholder, state.ReasonSuspected) {
		find = state.StandIns
	}
	t.suspected, err = find(ctx, ws, t.policy)
	return err
}

// staysAway reports whether the image of an entry was removed from its live post. It stays away, as posts do, until
// somebody asks for it by name and Reddit shows it.
func (t terms) staysAway(rec workspace.Record, p place) bool {
	return leftPost(rec) && (p.fault != nil || !slices.Contains(t.retry, string(rec.Trouble.Reason)))
}

// leftPost reports whether the image of an entry was removed from its live post.
func leftPost(rec workspace.Record) bool {
	return rec.Image == nil && rec.Trouble != nil && policy.LeftPost(rec.Trouble.Reason)
}

// leftGallery reports whether the image of an entry was taken out of its gallery by the author.
func leftGallery(rec workspace.Record) bool {
	return leftPost(rec) && rec.Trouble.Reason == policy.LeftGallery
}

// withoutPlace is next where Reddit names no place that may be asked.
func (t terms) withoutPlace(rec workspace.Record, p place) step {
	f := p.fault
	switch {
	case rec.Image == nil:
		s := done(f.Outcome, f.Reason)
		source := ""
		if f.Reason == policy.LeftGallery { // another image in its place is not it
			source = p.source
		}
		s.note = t.noted(rec, "", source, f)
		return s
	case slices.Contains(policy.ImageRemovals(), f.Reason):
		return done(f.Outcome, f.Reason) // settle deals with it
	case f.Outcome == manifest.Refused && rec.Image.Limits != t.limits:
		s := done(f.Outcome, f.Reason) // the policy that it was stored under named the host
		return s.noting(rec, t.noted(rec, workspace.Out, "", f))
	}
	return t.stay(rec, "", f)
}

// stay is the step of an entry whose stored image stays, with what is odd about the answer to it, nil for nothing.
// Where release or policy no longer take the image, it is no row; where it may not be here, it goes.
func (t terms) stay(rec workspace.Record, source string, odd *policy.Fault) step {
	if f := t.unfit(rec); f != nil {
		return t.refused(rec, source, f)
	}
	s := step{read: t.stale(rec), inspect: rec.Image.Limits != t.limits, source: source}
	if odd == nil {
		s.clear = rec.Trouble != nil
		return s
	}
	return s.noting(rec, t.noted(rec, workspace.Odd, source, odd))
}

// unfit holds a stored image against what release and policy say now, as far as its record tells: the same release
// gives the same answers, whatever was there before. It says why the image is not good, or returns nil.
func (t terms) unfit(rec workspace.Record) *policy.Fault {
	img := *rec.Image
	if f := state.Compare(t.policy, rec.Entry, img); f != nil {
		return f
	}
	if f := t.removed.Refuses(t.policy, rec.ID, img); f != nil {
		return f
	}
	header := picture.Info{Format: img.Format, Width: img.Width, Height: img.Height}
	if f := t.policy.PlaceholderOf(img.OriginalSHA256, "", header, img.OriginalBytes); f != nil {
		return f
	}
	if img.Limits != t.limits && img.OriginalBytes > t.policy.Images.MaxBytes {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "too_large",
			Detail: fmt.Sprintf("%d bytes, %d are allowed", img.OriginalBytes, t.policy.Images.MaxBytes)}
	}
	return nil
}

// refused is the step of an entry whose stored image release or policy do not take.
func (t terms) refused(rec workspace.Record, source string, f *policy.Fault) step {
	s := done(f.Outcome, f.Reason)
	if f.Reason == policy.SameAsRemoved || f.Reason == state.ReasonDamaged {
		s.drop, s.note = true, t.noted(rec, "", source, f)
		return s
	}
	return s.noting(rec, t.noted(rec, workspace.Out, source, f))
}

// noting adds a note to a step, unless it is there already.
func (s step) noting(rec workspace.Record, t *workspace.Trouble) step {
	if rec.Trouble == nil || *rec.Trouble != *t {
		s.note = t
	}
	return s
}

// noted is a fault as the workspace keeps it of an entry.
func (t terms) noted(rec workspace.Record, beside workspace.Beside, source string, f *policy.Fault) *workspace.Trouble {
	return &workspace.Trouble{Beside: beside, Source: t.attempt(rec.Entry, source, f.Reason), Outcome: f.Outcome,
		Reason: f.Reason, Detail: f.Detail}
}

// stale reports whether a stored image has to be read: its reading is not of the present engine.
func (t terms) stale(rec workspace.Record) bool {
	return t.reader != nil && !t.reader.Current(*rec.Image, rec.Reading)
}

// again reports whether a download that ended in trouble is to be tried once more.
func (t terms) again(last workspace.Trouble) bool {
	return last.Outcome.Retryable() || slices.Contains(t.retry, string(last.Outcome)) ||
		slices.Contains(t.retry, string(last.Reason))
}

// attempt names all that decides how a download ends: the place, and behind a space what release and policy say of it.
// When none of it changed, neither does an answer that was final. For a picture that was taken down elsewhere it is
// also what was taken down, so that a later decision about one of the two posts has the image fetched again; for one
// that its host keeps out of datasets, the hosts of which the policy respects that.
func (t terms) attempt(e manifest.Entry, source string, reason manifest.Reason) string {
	by := []any{t.limits, e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash, t.policy.Dedupe.HashRadius}
	switch reason {
	case policy.SameAsRemoved:
		by = append(by, slices.Contains(t.policy.Images.AllowSame, e.ID), t.removed.Digests())
	case policy.RobotsTag: // another policy may take it
		var respected []string
		for _, h := range t.policy.Images.Hosts {
			if h.RespectRobotsTag {
				respected = append(respected, h.Name)
			}
		}
		slices.Sort(respected)
		by = append(by, respected)
	}
	return source + " " + state.SHA256(fmt.Appendln(nil, by...))
}

// supposed is what a plan takes for the answer about an entry: its post is live unless it is known to be gone, and its
// image lies where it was asked for last; somewhere new if it never was, or if another policy may take what Reddit
// names.
func (t terms) supposed(rec workspace.Record, stones state.Holding) answer {
	a := answer{live: !stones.Has(rec.ID) && !rec.Post.State.Gone(), place: &place{source: "somewhere"}}
	if rec.Image != nil && rec.Image.Source != "" {
		a.place.source = rec.Image.Source
	}
	last := rec.Trouble
	if last == nil {
		return a
	}
	source, _, _ := strings.Cut(last.Source, " ")
	switch {
	case source != "":
		a.place.source = source
	case last.Source == t.attempt(rec.Entry, "", last.Reason) && !t.again(*last) && last.Beside != workspace.Out:
		a.place.fault = &policy.Fault{Outcome: last.Outcome, Reason: last.Reason, Detail: last.Detail}
	}
	return a
}
