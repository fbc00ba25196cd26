package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A host in trouble sends a page, a login, a refusal, files that are cut or one picture for all in place of every
// image, and no entry may be lost for that. So what a host answers is not final until it has sent an image: of its own
// in this run, or of a post that is live and whose image is stored (a witness). A host that sent none is in trouble
// when a witness gets none either or, without one, when it was asked for the images of askedEnough posts. So it stays,
// however few are asked later, until it sends an image or troubleLasts has passed. Where one image is all that it sent,
// a witness that gets this one in place of its own says that it is for everybody, however long that lasts.
//
// What a run stored that was cut off before it judged its hosts (state.UnjudgedNote) can be what a host in trouble
// sent, where several entries have the same, or one picture is all of a host. It is removed when its places have other
// pictures now: two of them, or its only one, of a host that works. So it is when a witness gets it in place of its
// own. While the host is in trouble otherwise it is no row, and whatever else comes it is an image: a stored one is
// lost only by a removal.

const (
	askedEnough  = 8 // posts
	troubleLasts = 24 * time.Hour
)

// reasonNoImages is the reason of entries whose host sends no images to anybody.
const reasonNoImages manifest.Reason = auditlog.StandIn

// A refusal is what a host sent in place of an image.
type refusal struct {
	job   fetchJob
	fault policy.Fault
	body  string // digest of what came, where that can be what a host in trouble sends
}

// hosts are the image hosts of one run.
type hosts struct {
	mu       sync.Mutex
	byHost   map[string]*host
	unjudged bool // an earlier run was cut off before it judged them
	waits    bool // and this one could not
}

// A host is what one image host sent in this run.
type host struct {
	witnesses     []witness                // from this host, stored perhaps in this run
	moved         []witness                // stored, and this host is where Reddit says now that the image lies
	none          []witness                // the same, where it gave no image when it was asked last
	was           state.SickHost           // its trouble in an earlier run
	asked         map[manifest.PostID]bool // up to askedEnough
	first         string                   // digest of the pixels of the first image that it sent
	firstFor      map[manifest.PostID]bool // posts that it sent that one for, up to two
	several       bool                     // it sent another image, too
	forAll        bool                     // it sent its only image to a stored post as well
	lied          bool                     // it sent its only image to a witness, in place of the stored one
	open, settled []refusal                // since it last sent an image, and before
	left          map[string]*leftImage    // that it sent in a run which was cut off, by the digest of their pixels
}

// A witness is a live post whose image is stored.
type witness struct {
	candidate reddit.Candidate
	post      manifest.PostID
	digest    string // of the pixels of that image
}

// A leftImage is a picture that is stored by a run which did not come to judge its host.
type leftImage struct {
	jobs  []fetchJob        // of up to two places where it lay
	posts []manifest.PostID // that it is stored for, up to askedEnough
}

// several reports whether the picture lay at several places.
func (l *leftImage) several() bool { return l != nil && len(l.jobs) > 1 }

// canBeForAll reports whether a picture that was left can be what the host sent to everybody then.
func (h *host) canBeForAll(l *leftImage) bool { return l.several() || len(h.left) == 1 }

// sound reports whether the host sent images: not one for everybody.
func (h *host) sound() bool {
	return h.several || h.first != "" && h.first != h.was.Picture && (len(h.firstFor) < 2 || !h.askedEnough())
}

// askedEnough reports whether it can be told of a host that it sends no images. A witness that has the only picture
// that came tells nothing: it has it from a host that works, too. Nor does one whose image moved of itself.
func (h *host) askedEnough() bool {
	return len(h.asked) >= askedEnough || h.forAll || slices.ContainsFunc(h.toAsk(), func(w witness) bool {
		itself := h.asked[w.post] && len(h.asked) == 1
		return w.digest != h.first && len(h.asked) > 0 && !itself
	})
}

// oneForAll is the digest of the only image that a host sent, for several posts or, as in an earlier run, for
// everybody.
func (h *host) oneForAll() string {
	if h.several || len(h.firstFor) < 2 && h.first != h.was.Picture {
		return ""
	}
	return h.first
}

// on changes what is known of a host.
func (s *hosts) on(name string, change func(*host)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHost[name] == nil {
		s.byHost[name] = &host{asked: map[manifest.PostID]bool{}, firstFor: map[manifest.PostID]bool{}}
	}
	change(s.byHost[name])
}

// lies notes that the stored image of a record lies where it lay.
func (s *hosts) lies(rec workspace.Record, c reddit.Candidate) {
	if !s.unjudged || isTaken(rec) {
		s.stored(witness{c, rec.ID, rec.Image.PixelsSHA256})
		return
	}
	s.left(rec, c)
}

// isTaken reports whether a run that came to its end took the stored image of a record for one.
func isTaken(rec workspace.Record) bool {
	return rec.Result != nil && slices.Contains(manifest.OutcomesOf(manifest.FateKept, manifest.FateFiltered),
		rec.Result.Outcome)
}

// stored notes an image that is stored and lies where it lay.
func (s *hosts) stored(w witness) {
	s.on(w.candidate.Host, func(h *host) { h.witnesses = addWitness(h.witnesses, w) })
}

// moves notes that Reddit names another place than before for a stored image, or the first one that state.db knows.
func (s *hosts) moves(rec workspace.Record, c reddit.Candidate) {
	if s.unjudged && !isTaken(rec) {
		return
	}
	w := witness{c, rec.ID, rec.Image.PixelsSHA256}
	s.on(c.Host, func(h *host) { h.moved = addWitness(h.moved, w) })
}

// gaveNone notes that a host gave no image where Reddit says that a stored one lies now: it may give one today.
func (s *hosts) gaveNone(rec workspace.Record, c reddit.Candidate) {
	w := witness{c, rec.ID, rec.Image.PixelsSHA256}
	s.on(c.Host, func(h *host) { h.none = addWitness(h.none, w) })
}

const enoughWitnesses = 3 // as one of them can have trouble of its own

// addWitness adds a witness. The last few are enough, if each has another picture.
func addWitness(all []witness, w witness) []witness {
	all = append(slices.DeleteFunc(all, func(o witness) bool { return o.digest == w.digest }), w)
	return all[max(0, len(all)-enoughWitnesses):]
}

// toAsk are the witnesses, the best first. One whose image has moved tells that a host sends no images, but not alone
// that what it sends is for everybody: that can be an image which took the place of the stored one.
func (h *host) toAsk() []witness {
	all := slices.Concat(h.moved, h.witnesses)
	slices.Reverse(all)
	return all
}

// left notes an image that is stored by a run which did not come to judge its host.
func (s *hosts) left(rec workspace.Record, c reddit.Candidate) {
	digest := rec.Image.PixelsSHA256
	s.on(c.Host, func(h *host) {
		if h.left == nil {
			h.left = map[string]*leftImage{}
		}
		if h.left[digest] == nil {
			h.left[digest] = &leftImage{}
		}
		l := h.left[digest]
		if len(l.jobs) == 0 || len(l.jobs) == 1 && l.jobs[0].candidate.URL != c.URL {
			l.jobs = append(l.jobs, fetchJob{entry: rec.Entry, candidate: c})
		}
		if len(l.posts) < askedEnough && !slices.Contains(l.posts, rec.ID) {
			l.posts = append(l.posts, rec.ID)
		}
	})
}

// asks notes that a host is asked for an image.
func (s *hosts) asks(j fetchJob) {
	s.on(j.candidate.Host, func(h *host) {
		if len(h.asked) < askedEnough {
			h.asked[j.entry.ID] = true
		}
	})
}

// sent notes that a host sent an image.
func (s *hosts) sent(j fetchJob, digest string) {
	s.on(j.candidate.Host, func(h *host) {
		if h.first == "" {
			h.first = digest
		}
		if digest != h.first {
			h.several = true
		} else if len(h.firstFor) < 2 {
			h.firstFor[j.entry.ID] = true
		}
		if digest != h.first || len(h.firstFor) < 2 { // what it sends to everybody must not crowd out the stored ones
			h.witnesses = addWitness(h.witnesses, witness{j.candidate, j.entry.ID, digest})
		}
		h.open, h.settled = nil, append(h.settled, h.open...)
	})
}

// answered notes an answer without an image, and returns the fault that it is for now.
func (s *hosts) answered(a refusal) *policy.Fault {
	now := a.fault
	s.on(a.job.candidate.Host, func(h *host) {
		if now.Reason == policy.RobotsTag { // an image came, which the policy does not take
			h.several = true
			h.open, h.settled = nil, append(h.settled, h.open...)
			return
		}
		final := !now.Outcome.Retryable()
		// A picture that was taken down can be what the host sends to everybody, as in an earlier run.
		aboutImage := h.sound() && !reddit.NoImage(now.Reason) && now.Reason != policy.SameAsRemoved
		switch {
		case aboutImage && h.several:
			return
		case aboutImage: // unless the only picture so far turns out to be one for everybody
			h.settled = append(h.settled, a)
		default:
			h.open = append(h.open, a)
		}
		if final {
			now = policy.Fault{Outcome: manifest.Failed, Reason: now.Reason, Detail: now.Detail}
		}
	})
	return &now
}

// settleHosts makes the answers final that are about an image, and not trouble of its host.
func (g *gatherer) settleHosts(ctx context.Context) error {
	noted, err := state.ReadNote[state.HostsNote](ctx, g.Workspace)
	if err != nil {
		return err
	}
	trouble := maps.Clone(noted)
	if trouble == nil {
		trouble = state.HostsNote{}
	}
	for _, name := range slices.Sorted(maps.Keys(g.known.byHost)) {
		h := g.known.byHost[name]
		now := g.Now().UTC().Truncate(time.Second)
		h.was = noted[name]
		if policy.Ahead(h.was.Since, now) { // a clock was wrong
			h.was.Since = now
			trouble[name] = h.was
		}
		if err := g.judgeLeft(ctx, name, h); err != nil {
			return err
		}
		sick, err := g.isInTrouble(ctx, h)
		if err != nil {
			return err
		}
		late := !h.was.Since.IsZero() && now.Sub(h.was.Since) >= troubleLasts
		switch {
		case sick && h.was.Since.IsZero():
			trouble[name] = state.SickHost{Since: now, Picture: h.oneForAll()}
		case sick && late && !h.lied:
			delete(trouble, name) // it does not pass: what is final by itself becomes final
			sick = false
			h.settled, h.open = append(h.settled, h.open...), nil
			// But not for what waited no day. It can be another trouble, with nobody asking in between. A stored image that
			// is refused has no note of why it waits.
			h.settled = slices.DeleteFunc(h.settled, func(a refusal) bool {
				return a.job.before != reasonNoImages && !a.job.refused
			})
		case !sick && h.sound():
			delete(trouble, name)
		}
		if sick {
			err = g.blameHost(ctx, name, h, trouble[name].Since, late)
		} else {
			err = g.settleAnswers(ctx, h)
		}
		if err != nil {
			return err
		}
	}
	g.reportGivenUp()
	if !maps.Equal(trouble, noted) {
		if err := state.WriteNote(ctx, g.Workspace, trouble); err != nil {
			return err
		}
	}
	if g.known.waits {
		return nil
	}
	return state.ClearNote[state.UnjudgedNote](ctx, g.Workspace)
}

// judgeLeft asks once more for pictures that a host may have sent to everybody in a run which was cut off. When two of
// their places have two other ones now, or the only place has another image, it was in place of all of them.
func (g *gatherer) judgeLeft(ctx context.Context, name string, h *host) error {
	if g.access() != nil {
		g.known.waits = g.known.unjudged
		return nil
	}
	for _, digest := range slices.Sorted(maps.Keys(h.left)) {
		l := h.left[digest]
		if !h.canBeForAll(l) {
			g.known.stored(witness{l.jobs[0].candidate, l.jobs[0].entry.ID, digest})
			continue
		}
		lies, others, err := g.lookAgain(ctx, digest, l)
		if err != nil {
			return err
		}
		for _, id := range l.posts {
			j := fetchJob{entry: manifest.Entry{Key: manifest.Key{ID: id}}, candidate: l.jobs[0].candidate}
			g.known.asks(j)
			if lies {
				g.known.sent(j, digest)
			}
		}
		detail, replaced := name+" sent the same picture to everybody", len(others) == 2
		switch {
		case lies || l.several():
		case len(others) == 0:
			g.known.stored(witness{l.jobs[0].candidate, l.jobs[0].entry.ID, digest})
		default:
			if err := g.proveOnlyImage(ctx, h); err != nil {
				return err
			}
			detail, replaced = name+" sent another picture in its place before", h.several
		}
		if replaced {
			if err := g.dropOneForAll(ctx, detail, digest, map[manifest.PostID]bool{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAgain downloads what lies at two places of a picture now. It reports whether the picture lies at one of them, and
// else the digests of what does.
func (g *gatherer) lookAgain(ctx context.Context, digest string, l *leftImage) (lies bool, others map[string]bool,
	err error) {
	others = map[string]bool{}
	for _, j := range l.jobs {
		now, err := g.download(ctx, j.candidate)
		if _, none := errors.AsType[*policy.Fault](err); none {
			continue
		}
		if err != nil {
			return false, nil, err
		}
		if now == digest {
			return true, nil, nil
		}
		others[now] = true
		g.known.sent(j, now)
	}
	return false, others, nil
}

// reportGivenUp adds the hosts that the client left alone after a while: when they say, or that while later, it asks
// again.
func (g *gatherer) reportGivenUp() {
	for _, up := range g.Reddit.GivenUp() {
		posts := 0
		if h := g.known.byHost[up.Host]; h != nil {
			failed := map[manifest.PostID]bool{}
			for _, a := range slices.Concat(h.settled, h.open) {
				failed[a.job.entry.ID] = true
			}
			posts = len(failed)
		}
		at := slices.IndexFunc(g.hosts, func(t state.HostTrouble) bool { return t.Host == up.Host })
		if at < 0 {
			g.hosts = append(g.hosts, state.HostTrouble{Host: up.Host, Posts: posts, Next: up.Until})
		} else {
			g.hosts[at].Next = up.Until
		}
	}
}

// isInTrouble reports whether a host that should have sent images sent none, and sends none for its witness.
func (g *gatherer) isInTrouble(ctx context.Context, h *host) (bool, error) {
	if err := g.proveOnlyImage(ctx, h); err != nil {
		return false, err
	}
	if h.sound() && len(h.open) == 0 {
		return false, nil
	}
	suspect := !h.sound() && (h.askedEnough() || len(h.asked) > 0 && !h.was.Since.IsZero())
	text := slices.ContainsFunc(h.open, func(a refusal) bool { return reddit.NoImage(a.fault.Reason) })
	if !suspect && !text || g.access() != nil {
		return suspect, nil
	}
	// One image more, whose post is live, says whether the host works. Nothing but an image does.
	moved := 0
	for i, w := range h.toAsk() {
		digest, err := g.download(ctx, w.candidate)
		if _, ok := errors.AsType[*policy.Fault](err); ok {
			continue
		}
		if err != nil {
			return false, err
		}
		if one := h.oneForAll(); one != "" && digest == one {
			switch {
			case digest == w.digest:
			case i < len(h.witnesses):
				h.lied = true
			default:
				moved++
			}
			h.lied = h.lied || moved == enoughWitnesses
			continue
		}
		h.several = true // so it is sound
		h.open, h.settled = nil, append(h.settled, h.open...)
		return false, nil
	}
	return suspect, nil
}

// proveOnlyImage asks a witness where one image for one post is all that a host sent: nothing else tells it from one
// that the host sends to everybody. Those that got no image last are asked after the others, and tell nothing else.
func (g *gatherer) proveOnlyImage(ctx context.Context, h *host) error {
	if h.several || len(h.firstFor) != 1 || g.access() != nil {
		return nil
	}
	for _, w := range slices.Concat(h.toAsk(), h.none) {
		if h.firstFor[w.post] || w.digest == h.first { // it would get this image from a host that works, too
			continue
		}
		digest, err := g.download(ctx, w.candidate)
		if _, none := errors.AsType[*policy.Fault](err); none {
			continue
		}
		if err != nil {
			return err
		}
		if digest == h.first {
			h.firstFor[w.post], h.forAll = true, true
		} else {
			h.several = true
		}
		return nil
	}
	return nil
}

// download downloads an image, and returns the digest of its pixels.
func (g *gatherer) download(ctx context.Context, c reddit.Candidate) (digest string, err error) {
	d, err := g.Reddit.Download(ctx, c)
	if err != nil {
		return "", err
	}
	body, info, pic, err := g.examine(ctx, d)
	if err != nil {
		return "", err
	}
	defer pic.Free()
	return picture.ShownDigest(body, info.Format, pic.Upright), nil
}

// blameHost has the entries of a host in trouble wait for it. Those whose images are stored wait no longer than
// troubleLasts.
func (g *gatherer) blameHost(ctx context.Context, name string, h *host, since time.Time, late bool) error {
	posts := map[manifest.PostID]bool{}
	for _, a := range slices.Concat(h.settled, h.open) {
		posts[a.job.entry.ID] = true
		detail := fmt.Sprintf("%s sent no image to anybody; here it answered %s", name, a.fault.Reason)
		f := &policy.Fault{Outcome: manifest.Failed, Reason: reasonNoImages, Detail: detail}
		if err := g.noImage(ctx, a.job, f); err != nil {
			return err
		}
	}
	if one := h.oneForAll(); one != "" && (h.lied || !h.left[one].several()) {
		if err := g.dropOneForAll(ctx, name+" sent the same picture to everybody", one, posts); err != nil {
			return err
		}
	}
	if late {
		since = g.Now().UTC().Truncate(time.Second)
	} else if err := g.holdLeft(ctx, name, h, posts); err != nil {
		return err
	}
	g.hosts = append(g.hosts, state.HostTrouble{Host: name, Posts: len(posts), Next: since.Add(troubleLasts)})
	g.Log.Warn("an image host sent no image to anybody: its entries are asked for again",
		"host", name, "posts", len(posts))
	return nil
}

// holdLeft has the images wait that a host in trouble may have sent to everybody in a run which was cut off: the first
// run that can judge them does.
func (g *gatherer) holdLeft(ctx context.Context, name string, h *host, posts map[manifest.PostID]bool) error {
	var digests []string
	for digest, l := range h.left {
		if h.canBeForAll(l) && !(h.lied && digest == h.oneForAll()) { // which is gone
			digests = append(digests, digest)
		}
	}
	if len(digests) == 0 {
		return nil
	}
	g.known.waits = true
	for rec, err := range g.Workspace.Records(ctx, workspace.Select{Bare: true, Digests: digests}) {
		if err != nil {
			return err
		}
		if isTaken(rec) || rec.Trouble != nil && rec.Trouble.Beside != workspace.Odd {
			continue
		}
		posts[rec.ID] = true
		t := workspace.Trouble{Beside: workspace.Out, Outcome: manifest.Failed, Reason: reasonNoImages,
			Detail: name + " sends no images now, and sent the same picture for other entries"}
		if err := g.Workspace.SetTrouble(ctx, rec.Key, t); err != nil {
			return err
		}
	}
	return nil
}

// dropOneForAll forgets the picture that a host sends in place of all, where it came in place of none that was stored.
// An image that was taken back without its state.db has no source yet.
func (g *gatherer) dropOneForAll(ctx context.Context, detail, digest string, posts map[manifest.PostID]bool) error {
	for rec, err := range g.Workspace.Records(ctx, workspace.Select{Digests: []string{digest}}) {
		if err != nil {
			return err
		}
		if isTaken(rec) || rec.Image.Source == "" {
			continue
		}
		posts[rec.ID] = true
		f := &policy.Fault{Outcome: manifest.Failed, Reason: reasonNoImages, Detail: detail}
		if err := g.Workspace.ForgetImage(ctx, rec.Key, trouble(f)); err != nil {
			return err
		}
	}
	return nil
}

// settleAnswers makes the answers of a host final that came before one of its images. Where images.suspect_after URLs
// have the same text in place of an image, it has to come in two runs.
func (g *gatherer) settleAnswers(ctx context.Context, h *host) error {
	urls := map[string]map[string]bool{} // by body
	for _, a := range slices.Concat(h.settled, h.open) {
		if !reddit.NoImage(a.fault.Reason) {
			continue
		}
		if urls[a.body] == nil {
			urls[a.body] = map[string]bool{}
		}
		urls[a.body][a.job.source] = true
	}
	final := h.settled
	for _, a := range h.open { // a host in trouble sends text, and what else it answers is about the image
		if !reddit.NoImage(a.fault.Reason) {
			final = append(final, a)
		}
	}
	for _, a := range final {
		if a.fault.Outcome.Retryable() {
			continue // as it is stored
		}
		if n := g.Policy.Images.SuspectAfter; n > 0 && reddit.NoImage(a.fault.Reason) && len(urls[a.body]) >= n &&
			a.job.before != a.fault.Reason {
			continue
		}
		if err := g.noImage(ctx, a.job, &a.fault); err != nil {
			return err
		}
	}
	return nil
}
