package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Images can be removed from posts that stay. The engine takes such removals over from the log into state.db, and
// refuses the same picture as one that was taken down; an audit goes by the same log and the same digests, whatever
// state.db says: it may be older, or changed. What Reddit answers this audit counts as it does for a post: the next
// recheck judges an answer alike.

// A lostImage says of an image that it was removed from a post that stays, or that its removal is withheld.
type lostImage struct {
	reason  manifest.Reason
	because string    // as Standing.Because
	said    string    // who says so, where that is not the record
	since   time.Time // of the first source that said so; zero if none has a time
	heard   time.Time // an audit heard so, and the job that took it over did not settle it; zero for none
	waits   bool      // as of evidence
	many    bool
}

// lackImages are the posts of which an image is known to be removed, or is withheld.
func (a *audit) lackImages() map[manifest.PostID]bool {
	posts := map[manifest.PostID]bool{}
	for k := range a.goneImages {
		posts[k.ID] = true
	}
	for id, h := range a.removals.Heard {
		posts[id] = posts[id] || len(h.Images) > 0
	}
	return posts
}

// mayLackImages reports whether an answer can say that an image was removed from the post. What its parent has for a
// tombstone is not known yet.
func (a *audit) mayLackImages(p *reddit.Post) bool {
	return slices.ContainsFunc(p.Images, func(c reddit.Candidate) bool {
		return c.Removed() || c.Parent != "" && a.posts[c.Parent] != nil
	})
}

// leftNow says why an image was removed from its post by Reddit's answers in this audit, if it was.
func (a *audit) leftNow(k manifest.Key) (why manifest.Reason, left bool) {
	if p := a.told[k.ID]; p != nil {
		if c := a.imageNow(p, k); c.Removed() {
			return c.Fault.Reason, true
		}
	}
	return "", false
}

// shownNow reports whether Reddit's answers in this audit show an image again that was removed from its post for a
// reason.
func (a *audit) shownNow(k manifest.Key, why manifest.Reason) bool {
	if v := a.post(k.ID).live; v == nil || v.State != manifest.StateLive && v.State != manifest.StateHeld {
		return false
	}
	p := a.told[k.ID]
	return p == nil || a.imageNow(p, k).Shows(why, a.sources.Of(k))
}

// imageNow is the image of an entry in an answer of this audit about its post.
func (a *audit) imageNow(p *reddit.Post, k manifest.Key) reddit.Candidate {
	return p.WithoutParent(a.tombstoneOf).ImageFrom(k.Image, a.sources.Of(k), a.sources.Beside(k))
}

// tombstoneOf is the state of the tombstone of a post, if one holds or will once a job has taken it over.
func (a *audit) tombstoneOf(id manifest.PostID) (manifest.PostState, bool) {
	e := a.posts[id]
	if e == nil || !e.MustGo {
		return "", false
	}
	return e.goneAs, e.Because == "tombstone" || e.Because == "release" || e.Because == "log" && a.past[id].stone != nil
}

// findRemoved finds the images that were removed from posts that stay, by what is known of the posts.
func (a *audit) findRemoved(ctx context.Context) error {
	if err := a.learnSources(ctx); err != nil {
		return err
	}
	a.tellLostInWorkspace()
	a.findLogged()
	a.findHeard()
	if err := a.findAnswered(ctx); err != nil {
		return err
	}
	for k, l := range a.goneImages {
		a.removed[k.String()] = a.withoutImage(a.post(k.ID), l)
	}
	if err := a.findSame(ctx); err != nil {
		return err
	}
	if err := a.findFormer(ctx); err != nil {
		return err
	}
	for _, entry := range slices.Sorted(maps.Keys(a.removed)) {
		e, lost := a.postOf(entry), a.removed[entry]
		if e.MustGo {
			continue
		}
		k := a.known(e.ID, entry)
		k.evidence = lost
		key, _ := manifest.ParseKey(entry)
		e.Images = append(e.Images, AuditedImage{ID: entry, Reason: lost.imageGone, Because: lost.Because,
			MustGo: lost.MustGo, Withheld: lost.Withheld, number: key.Image})
	}
	return nil
}

// learnSources reads where the stored images of the posts came from that the answers can say something of.
func (a *audit) learnSources(ctx context.Context) error {
	if a.Workspace == nil || len(a.told) == 0 {
		return nil
	}
	var err error
	a.sources, err = a.Workspace.Origins(ctx, slices.Collect(maps.Keys(a.told)))
	return err
}

// tellLostInWorkspace notes the images whose removal the workspace withholds. One that Reddit shows again, or says once
// more is gone, is judged as a post is.
func (a *audit) tellLostInWorkspace() {
	for k, l := range a.goneImages {
		if !l.waits {
			continue
		}
		e := a.post(k.ID)
		if l.many {
			l.since = earliest(l.since, a.past[k.ID].imageHeld)
		}
		if l.since.IsZero() && e.Checked != nil {
			l.since = *e.Checked
		}
		shown := a.shownNow(k, l.reason)
		switch {
		case e.waits || e.MustGo: // it goes with its post
		case shown:
			a.back = append(a.back, k.String())
		case !l.heard.IsZero():
			l.waits, l.because, l.said = false, "log", anAuditHeard(l.heard)
		default:
			a.noteWithheld(k.String(), l.since)
		}
		if shown {
			delete(a.goneImages, k)
			continue
		}
		if why, left := a.leftNow(k); left && !l.many {
			l.reason, l.because, l.said = why, "live", redditSays
		}
		a.goneImages[k] = l
	}
}

// findLogged adds what the log has of removals.
func (a *audit) findLogged() {
	for k, left := range a.removals.Entries {
		l, known := a.goneImages[k]
		if !known || l.waits {
			l = lostImage{reason: left.Reason, because: "log", since: l.since}
		}
		l.since = earliest(l.since, left.Since)
		a.goneImages[k] = l
	}
}

// findHeard adds what earlier audits heard.
func (a *audit) findHeard() {
	for id, h := range a.removals.Heard {
		e := a.post(id)
		for i, img := range h.Images {
			k := manifest.Key{ID: id, Image: i}
			l, known := a.goneImages[k]
			_, left := a.leftNow(k)
			switch {
			case known:
				l.since = earliest(l.since, img.Since)
			case a.shownNow(k, img.Reason):
				e.takenBack = true
				continue
			case left: // findAnswered has it, but for its time
				l = lostImage{reason: img.Reason, because: "live", said: redditSays, since: img.Since}
			default:
				l = lostImage{reason: img.Reason, because: "log", said: anAuditHeard(h.At), since: img.Since}
			}
			a.goneImages[k] = l
		}
	}
}

// findAnswered adds what Reddit answered this audit.
func (a *audit) findAnswered(ctx context.Context) error {
	if len(a.told) == 0 {
		return nil
	}
	note := func(k manifest.Key) {
		if _, known := a.goneImages[k]; known {
			return
		}
		if why, left := a.leftNow(k); left {
			a.goneImages[k] = lostImage{reason: why, because: "live", said: redditSays, since: a.post(k.ID).liveAt}
		}
	}
	for id := range a.told {
		for k := a.post(id).content; k != nil; k = k.next {
			key, _ := manifest.ParseKey(k.name)
			note(key)
		}
	}
	for e, err := range a.Release.Entries(ctx) {
		if err != nil {
			return fmt.Errorf("read the release: %w", err)
		}
		note(e.Key)
	}
	return nil
}

// withoutImage is the evidence on an entry of a post that stays, of which this is known.
func (a *audit) withoutImage(e *evidence, l lostImage) *evidence {
	one := *e
	one.bare = nil
	one.digests, one.hashes, one.texts, one.weak, one.waits, one.many = false, false, false, false, l.waits, l.many
	s := &one.Standing
	s.Because, s.imageGone = l.because, l.reason
	s.Withheld = l.waits && l.because == "workspace"
	s.MustGo = !s.Withheld
	if s.MustGo {
		s.Stale = false
		s.why = strings.TrimSuffix("its image was removed from the post, "+string(l.reason)+", "+l.said, ", ")
		s.removal = Removal{Why: whyImageGone(l.reason), Since: moment(l.since)}
		if !l.since.IsZero() {
			s.removal.Due = moment(policy.GoneBy(l.since, a.report.Time))
		}
	}
	return &one
}

// findSame adds images that show the same picture as one that was taken down.
func (a *audit) findSame(ctx context.Context) error {
	down := a.takenDown()
	var same []*known // entries of other posts that had such a picture, or have it
	since := map[*known]*time.Time{}
	for _, m := range a.gone.marks {
		if by := down[m.is]; by != nil && !m.of.MustGo && !slices.Contains(a.Policy.Images.AllowSame, m.of.ID) {
			same, since[m.of] = append(same, m.of), by.removal.Since
		}
	}
	shown, err := a.shown(ctx, same)
	if err != nil {
		return err
	}
	another := map[*known]bool{}
	for _, k := range same {
		now, stored := shown[k.name]
		if !stored { // what it showed last is what copies have of it
			now, stored = a.lastShown[k.name]
		}
		is := func(d digest) bool { return down[d] != nil }
		lost := a.removed[k.name]
		switch {
		case lost != nil && lost.MustGo:
		case stored && !slices.ContainsFunc(now, is):
			another[k] = true
		default:
			l := lostImage{reason: policy.SameAsRemoved, because: "workspace"}
			if t := since[k]; t != nil {
				l.since = *t
			}
			a.removed[k.name] = a.withoutImage(a.posts[k.ID], l)
		}
	}
	// What took the place of such a picture is the entry's own. The picture itself is that of no post that stays.
	a.gone.marks = slices.DeleteFunc(a.gone.marks,
		func(m clue[digest]) bool { return another[m.of] && down[m.is] != nil })
	return nil
}

// findFormer finds the pictures that were removed from posts that stay, and of which the entry has another one since:
// the entry is kept, and the picture is to be found nowhere.
func (a *audit) findFormer(ctx context.Context) error {
	erased := map[*known][]digest{}
	var entries []*known
	for _, img := range a.erased {
		_, again := a.removals.Fetched[img.Key]
		if entry := img.Key.String(); again && !a.post(img.ID).MustGo && a.removed[entry] == nil {
			k := a.known(img.ID, entry)
			entries = append(entries, k)
			erased[k] = append(erased[k], parseDigest(img.File), parseDigest(img.Stripped), parseDigest(img.Pixels))
		}
	}
	shown, err := a.shown(ctx, entries)
	if err != nil {
		return err
	}
	former := map[clue[digest]]*known{}
	for k, digests := range erased {
		key, _ := manifest.ParseKey(k.name)
		left := a.removals.Fetched[key]
		a.former[k.name] = a.withoutImage(k.evidence, lostImage{reason: left.Reason, because: "log", since: left.Since})
		was := &known{evidence: a.former[k.name], name: k.name}
		a.gone.all = append(a.gone.all, was)
		for _, d := range digests {
			if !slices.Contains(shown[k.name], d) {
				former[clue[digest]{d, k}] = was
			}
		}
	}
	for i, m := range a.gone.marks {
		if was := former[m]; was != nil {
			a.gone.marks[i].of = was
		}
	}
	return nil
}

// takenDown are the digests of images of posts whose removal is about the picture, with the posts.
func (a *audit) takenDown() map[digest]*evidence {
	logged := map[manifest.PostID]auditlog.Tombstone{}
	for _, t := range a.removals.Tombstones {
		logged[t.ID] = t
	}
	down := map[digest]*evidence{}
	for _, m := range a.gone.marks {
		e := a.posts[m.of.ID] // and not that on the entry, whose image may have been removed alone
		if !e.MustGo {
			continue
		}
		state, reason := e.goneAs, manifest.Reason("")
		t, inLog := logged[e.ID]
		switch {
		case e.Because == "tombstone" && e.stone != nil:
			reason = e.stone.Reason
		case e.Because == "tombstone": // of tombstones.csv
			reason = e.kept.Reason
		case e.Because == "log" && inLog:
			state, reason = t.State, t.Reason
		case e.Because != "release": // an answer of Reddit alone, which the next job that asks makes a tombstone
			reason = e.Reason
		}
		if policy.TakenDown(state, reason) {
			down[m.is] = e
		}
	}
	return down
}

// shown are the digests of the images that the workspace has of entries, by their names.
func (a *audit) shown(ctx context.Context, of []*known) (map[string][]digest, error) {
	shown := map[string][]digest{}
	if a.Workspace == nil || len(of) == 0 {
		return shown, nil
	}
	var ids []manifest.PostID
	for _, k := range of {
		ids = append(ids, k.ID)
	}
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{Bare: true, IDs: ids}) {
		if err != nil {
			return nil, err
		}
		if img := rec.Image; img != nil {
			shown[rec.Key.String()] = []digest{parseDigest(img.OriginalSHA256), parseDigest(img.SHA256),
				parseDigest(img.PixelsSHA256)}
		}
	}
	return shown, nil
}
