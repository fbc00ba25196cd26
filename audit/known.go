package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"path"
	"regexp"
	"slices"
	"strings"

	"rehydrate/audit/caption"
	"rehydrate/dedupe"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
)

// A digest is the first half of a SHA-256: no two contents share one by chance. Zero stands for none.
type digest [sha256.Size / 2]byte

// parseDigest reads a digest in hex, as records have it.
func parseDigest(text string) (d digest) {
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == sha256.Size {
		d = digest(raw)
	}
	return d
}

func digestOf(content []byte) digest {
	sum := sha256.Sum256(content)
	return digest(sum[:])
}

// known says what is known of the content of an entry, beside its digests.
type known struct {
	*evidence                // on its post
	next      *known         // of another entry of the post
	name      string         // of the entry
	format    string         // of its image in the workspace; empty for none
	image     digest         // of that
	looks     []clue[uint64] // its perceptual hashes
	read      bool           // the workspace has what was read off it
	pixels    bool           // a digest of those of its image is known
	marked    bool           // any digest of it is
}

// goneContent indexes what is known of posts that must be gone, to find it, and of others, to tell it from that.
type goneContent struct {
	all []*known

	ids    *[idSums]bool           // by their sum, of those that must be gone: most words are none of them
	marks  []clue[digest]          // of images
	looks  map[bool][]clue[uint64] // of those that must be gone (true), and of the others
	wide   []clue[dedupe.Hash256]  // of those that must be gone
	pixels bool                    // digests of pixels are known of an image whose hash is not
	// comparable says whether anything is known that recognises an image which must be gone.
	comparable bool

	read     []clue[string] // texts that were read off images, until they are in captions
	captions *caption.Index[*known]
	// recognisable is how many of these can be told in a text.
	recognisable int
}

// A clue recognises the content of an entry: a digest, a perceptual hash or a text.
type clue[T any] struct {
	is T
	of *known
}

func compareMarks(m, n clue[digest]) int {
	if c := bytes.Compare(m.is[:], n.is[:]); c != 0 {
		return c
	}
	switch {
	case m.of.MustGo == n.of.MustGo:
		return cmp.Compare(m.of.name, n.of.name)
	case m.of.MustGo: // behind what may stay, which can be as many as there are posts
		return 1
	}
	return -1
}

// known returns what is known of an entry, to be added to.
func (a *audit) known(id manifest.PostID, name string) *known {
	e := a.post(id)
	k := e.content
	for k != nil && k.name != name {
		k = k.next
	}
	if k == nil {
		k = &known{evidence: e, next: e.content, name: name}
		if lost := a.removed[name]; lost != nil && !e.MustGo {
			k.evidence = lost
		}
		e.content, a.gone.all = k, append(a.gone.all, k)
	}
	return k
}

// add takes digests of an image: two of files, and one of its pixels.
func (g *goneContent) add(k *known, digests ...digest) {
	k.pixels = k.pixels || len(digests) == 3 && digests[2] != digest{}
	for i, d := range digests {
		if d != (digest{}) && !slices.Contains(digests[:i], d) {
			g.marks = append(g.marks, clue[digest]{d, k})
		}
	}
}

// hash takes a perceptual hash, unless it identifies nothing.
func (k *known) hash(h uint64) {
	// The hash of a picture of one colour does not have half of its bits set.
	if bits.OnesCount64(h) == 32 {
		k.looks = append(k.looks, clue[uint64]{h, k})
	}
}

// owner returns the first entry by name that a digest is of, if it must be gone, or may stay; or nil. What one may keep
// stays.
func (g *goneContent) owner(d digest, mustGo bool) *known {
	at, found := slices.BinarySearchFunc(g.marks, d,
		func(m clue[digest], d digest) int { return bytes.Compare(m.is[:], d[:]) })
	if !found || g.marks[at].of.MustGo != mustGo {
		return nil
	}
	return g.marks[at].of
}

func (g *goneContent) stays(d digest) bool { return g.owner(d, false) != nil }

// idSums is how many sums of ids are told apart.
const idSums = 1 << 18

// indexIDs makes the ids of posts that must be gone, or an image of which must, fast to look for.
func (a *audit) indexIDs() {
	a.gone.ids = new([idSums]bool)
	add := func(id manifest.PostID) {
		sum := uint32(0)
		for _, b := range []byte(id) {
			sum = sum*31 + uint32(b|' ')
		}
		a.gone.ids[sum%idSums] = true
	}
	for _, e := range a.order {
		if e.MustGo {
			add(e.ID)
		}
	}
	for entry, e := range a.removed {
		if e.MustGo {
			add(dataset.PostOf(entry))
		}
	}
}

// index sorts what is known, once it is known which posts must be gone, and again when more is known.
func (g *goneContent) index() {
	slices.SortFunc(g.marks, compareMarks)
	g.marks = slices.Clone(slices.Compact(g.marks)) // one in two is there twice
	g.looks = map[bool][]clue[uint64]{}
	for _, m := range g.marks {
		m.of.digests, m.of.marked = true, true
	}
	for _, k := range g.all {
		k.hashes = k.hashes || len(k.looks) > 0
		g.comparable = g.comparable || k.MustGo && (k.digests || k.hashes)
		g.pixels = g.pixels || k.pixels && len(k.looks) == 0
		g.looks[k.MustGo] = append(g.looks[k.MustGo], k.looks...)
	}
	slices.SortFunc(g.looks[false], func(x, y clue[uint64]) int { return cmp.Compare(x.is, y.is) })
}

// indexCaptions makes what was read off images searchable. Many write one sentence: what a post that may stay has as
// well identifies nothing.
func (g *goneContent) indexCaptions() error {
	words, err := caption.Common()
	if err != nil {
		return err
	}
	b := caption.New[*known](words)
	for _, read := range g.read {
		b.Add(read.of, read.is, read.of.MustGo)
	}
	g.read, g.captions = nil, b.Build()
	for k, kind := range g.captions.All() {
		if kind == caption.Recognisable {
			k.texts = true
			g.recognisable++
		} else {
			k.weak = true
		}
	}
	return nil
}

// Known says of how many of the posts that must be gone something is known that recognises their content. A post that
// stays and lost images counts once.
type Known struct {
	MustGo  int            `json:"must_go"`
	States  map[string]int `json:"states"`  // of these: removed, deleted, unavailable or another
	Digests int            `json:"digests"` // an exact copy of each image is recognised
	Hashes  int            `json:"hashes"`  // a changed copy is recognised
	Texts   int            `json:"texts"`   // its caption is
	// Weak counts the others whose caption is too short or too common, or that of a post that may stay as well.
	Weak int `json:"weak_texts"`
	// Published is how many entries of the release have a digest of their image, of any post.
	Published int `json:"published_digests"`
	// Unproved are images that were taken for those of posts that stay by their names, rows or looks alone, while there
	// is a removed post of which no digest is published.
	Unproved int `json:"unproved_images"`
	// Icons are images of at most 64 pixels that were taken for icons, while there is such a post. Where there are more
	// than ten, none is.
	Icons int `json:"icons,omitempty"`
}

const (
	mayBeIDs  = "words or numbers in it are also ids of removed posts"
	lookAtIDs = "look up whether they mean these posts"
)

// record keeps what was found of an image until all sources are scanned.
func (a *audit) record(s *sighting) { add(a, &a.sightings, s) }

// matchHash is record for a perceptual hash in a table, unless it is that of an image that may stay: there are as many
// as rows.
func (w walker) matchHash(p place, hash uint64) {
	compare := func(l clue[uint64], h uint64) int { return cmp.Compare(l.is, h) }
	if _, stays := slices.BinarySearchFunc(w.gone.looks[false], hash, compare); !stays {
		w.record(&sighting{place: p, what: "its phash", hashes: []uint64{hash}})
	}
}

// lostImages is the evidence on the images that must be gone of posts that stay, and of entries that have another one,
// by post.
func (a *audit) lostImages() map[manifest.PostID][]*evidence {
	lost := map[manifest.PostID][]*evidence{}
	for entry, e := range a.removed {
		if e.MustGo && !a.postOf(entry).MustGo {
			lost[e.ID] = append(lost[e.ID], e)
		}
	}
	for _, e := range a.former {
		lost[e.ID] = append(lost[e.ID], e)
	}
	return lost
}

// postOf returns the evidence on the post of an entry, or nil.
func (a *audit) postOf(entry string) *evidence { return a.posts[dataset.PostOf(entry)] }

// claimed returns the first of the entries whose post must be gone; if gone is false, the first of the release that may
// stay.
func (a *audit) claimed(entries []string, gone bool) *known {
	for _, entry := range entries {
		e := a.postOf(entry)
		if e == nil {
			continue
		}
		if k := a.known(e.ID, entry); k.MustGo == gone && (gone || e.entry) {
			return k
		}
	}
	return nil
}

// resolve judges what was seen in all sources: what a row of a post that must be gone holds is searched for in all
// others.
func (a *audit) resolve(ctx context.Context) error {
	a.forgetTwice()
	gone := map[*sighting]*known{}
	for _, s := range a.sightings {
		k := a.claimed(s.claims(), true)
		if k == nil {
			continue
		}
		if s.byPostAlone(k.name) {
			continue // what it is says more than the id of a post that stays
		}
		gone[s] = k
		if a.storedAs(s.place) == nil {
			a.findClaimed(s, k)
		}
	}
	// First what rows of erased posts hold is learnt. Those rows, and what is named after such a post, are findings
	// already.
	learnt := a.learn(gone)
	a.sightings = slices.DeleteFunc(a.sightings, func(s *sighting) bool {
		rec := a.storedAs(s.place)
		// The first picture of an animation is often a title or black, and proves nothing of another one.
		if owner := cmp.Or(learnt[s], rec); s.wide != nil && !s.animated && owner != nil && owner.MustGo {
			a.gone.wide = append(a.gone.wide, clue[dedupe.Hash256]{*s.wide, owner})
		}
		return gone[s] != nil && rec == nil
	})
	a.gone.index()
	a.thumbnails = a.manyIcons()
	known := &a.report.Known
	for _, e := range a.order {
		if e.MustGo {
			known.count(e)
		}
	}
	for _, lost := range a.lostImages() {
		known.count(lost...)
	}
	for _, s := range a.sightings {
		if ctx.Err() == nil {
			a.decideImage(s)
		}
	}
	a.tellAlone()
	return ctx.Err()
}

// forgetTwice forgets what was seen in the text of a table and in a row of it: the row says more.
func (a *audit) forgetTwice() {
	type seen struct {
		digest
		in *source
	}
	rows := map[seen]bool{}
	for _, s := range a.sightings {
		for _, d := range s.digests {
			if s.table != nil && !s.text && d != (digest{}) {
				rows[seen{d, s.src}] = true
			}
		}
	}
	a.sightings = slices.DeleteFunc(a.sightings, func(s *sighting) bool {
		return s.text && slices.ContainsFunc(s.digests, func(d digest) bool { return rows[seen{d, s.src}] })
	})
}

// isIcon reports whether an image is as small as icons are.
func (s *sighting) isIcon() bool { return s.what == "" && s.side > 0 && s.side <= iconSide }

// manyIcons reports whether there are more than a few different images that are as small as icons: then they are rather
// thumbnails, and judged as any others.
func (a *audit) manyIcons() bool {
	const few = 10
	icons := map[digest]bool{}
	for _, s := range a.sightings {
		if s.isIcon() && !slices.ContainsFunc(s.digests, a.gone.stays) {
			icons[s.digests[0]] = true
		}
	}
	return len(icons) > few
}

// count counts a post by what is known of all of these: of the post, or of the images that it lost.
func (k *Known) count(all ...*evidence) {
	every := func(is func(*evidence) bool) bool {
		return !slices.ContainsFunc(all, func(e *evidence) bool { return !is(e) })
	}
	texts := every(func(e *evidence) bool { return e.texts })
	k.Digests += number(every(func(e *evidence) bool { return e.digests && e.allMarked() }))
	k.Hashes += number(every(func(e *evidence) bool { return e.hashes }))
	k.Texts += number(texts)
	k.Weak += number(!texts && slices.ContainsFunc(all, func(e *evidence) bool { return e.weak }))
}

// byPostAlone reports whether all that says that an image is of an entry is the id of its post, which stays.
func (p place) byPostAlone(entry string) bool {
	hits, _ := p.rowHits()
	return slices.ContainsFunc(hits, func(h hit) bool { return h.alone && h.entry() == entry })
}

// tellAlone says that ids of galleries which stay are in rows of which nothing was found, and that their first image
// must be gone.
func (a *audit) tellAlone() {
	rows := map[string]bool{}
	for _, f := range a.found {
		rows[f.where] = true
	}
	for _, p := range a.alone {
		if !rows[printable.Line(p.spot().where)] {
			a.open(p.String(), "check that the rows have nothing of these images; the ids may stay",
				"ids of galleries that stay, and whose first image must be gone: the rows can be of the posts alone")
		}
	}
}

// allMarked reports whether a digest is known of each image that the release has of a post: that of one says nothing of
// the others of a gallery.
func (e *evidence) allMarked() bool {
	for _, image := range e.bare {
		k, name := e.content, manifest.Key{ID: e.ID, Image: image}.String()
		for k != nil && k.name != name {
			k = k.next
		}
		if k == nil || !k.marked {
			return false
		}
	}
	return true
}

// findClaimed says of an image that has the name of a removed entry, or stands in its row, whether it is that entry's.
// The name or the row is a finding already, whatever the image is.
func (a *audit) findClaimed(s *sighting, k *known) {
	where := s.String()
	named := a.entryNamed(strings.TrimSpace(where[strings.LastIndex(where, ">")+1:])) == s.own // and not an image in it
	if s.what != "" || s.table == nil && !named {
		return
	}
	at := s.spot()
	owner, how := a.imageKnown(s, nil)
	like, apart := nearest(a.gone.looks[true], s.hashes)
	for _, d := range s.digests {
		if live := a.gone.owner(d, false); live != nil {
			if s.table == nil && !s.src.ofRelease() { // there, another name is a file that no record accounts for
				at.do = "rename the file, or delete it"
			}
			a.finding(FoundRow, k.name, at, "an image of %s, which stays", live.name)
			return
		}
	}
	switch {
	case owner != nil:
		a.finding(FoundImage, owner.name, at, "its image, %s", how)
	case like == k:
		a.finding(FoundImage, k.name, at, "an image that looks like its own (%d of 64 bits apart)", apart)
	case k.marked:
		a.finding(FoundImage, k.name, at, "an image that is not its own unchanged")
	default:
		a.finding(FoundImage, k.name, at, "an image that could not be compared")
	}
}

// decideImage judges an image by its record, by its bytes and by how it looks.
func (a *audit) decideImage(s *sighting) {
	claims, where, rec := s.claims(), s.String(), a.storedAs(s.place)
	if rec != nil {
		claims = []string{rec.name}
	}
	mine := a.claimed(claims, false)
	k, how := a.imageKnown(s, mine)
	like, rival, apart := a.looksLike(s, mine)
	in := a.doubtOf(s)
	switch {
	case rec != nil && rec.MustGo && !rec.waits:
		a.finding(FoundImage, rec.name, s.spot(), "its image, as it was stored")
	case k != nil:
		if len(claims) > 0 {
			how += ", said to be of " + claims[0]
		}
		a.finding(FoundImage, k.name, s.spot(), "%s, %s", cmp.Or(s.what, "its image"), how)
	case s.stored:
		a.decideStored(s, rec, like)
	case like != nil && rival != nil && rival == mine && !in.open(): // its name or row is believed
		a.report.Known.Unproved++
	case like != nil && rival != nil:
		a.openOf(like.name, where, "look at it, or find out where it comes from",
			"%s like the image of %s, which was removed, and as much like that of %s, which stays (%d of 64 bits apart)",
			cmp.Or(s.what, "it looks"), like.name, rival.name, apart)
	case like != nil:
		looks := "it looks"
		if s.what != "" {
			looks = s.what + " is"
		}
		a.openOf(like.name, where, "open it: it can be another caption on the same picture. The original is erased, so "+
			"compare its id and its time with those of the post, and write beside this report what you saw",
			"%s like the image of %s, which was removed (%d of 64 bits apart)", looks, like.name, apart)
	case s.unclear && s.what == "" && !slices.ContainsFunc(s.digests, a.gone.stays):
		a.openUnclear(s.place)
	case in.open():
		a.openOf(in.of.name, where, "look at it: an icon or an example may stay; if it is the image of the removed post, "+
			"delete it", "%s is %s", cmp.Or(s.what, "it"), in)
	case s.what != "" || slices.ContainsFunc(s.digests, a.gone.stays):
	case s.fault != "" && a.gone.comparable:
		a.open(where, "look at it", "its looks could not be compared: %s", s.fault)
	case s.unsure && mine == nil && a.report.Known.MustGo > 0:
		a.open(where, "look at it with the program that wrote it, or delete it",
			"an image that is spelled out in the text, and is none that is known: it may not have been read as it was written")
	// A workspace had no other images than those that it knows.
	case s.again && !s.text,
		a.Workspace != nil, a.report.Known.Digests == a.report.Known.MustGo:
	case s.isIcon() && !a.thumbnails:
		a.report.Known.Icons++
	// Whose name, row or looks an image has may keep it, so the image of another post under it is not seen.
	case mine != nil || a.looksLikeOneThatStays(s):
		a.report.Known.Unproved++
	case a.report.Known.Digests > 0:
		a.open(where, "look at it, or ask the maintainers whether they had the removed images",
			"an image; the release publishes no digest of %d of the %d removed posts to compare it with",
			a.report.Known.MustGo-a.report.Known.Digests, a.report.Known.MustGo)
	case a.report.Known.Published > 0:
		a.open(where, "look at it, or ask the maintainers whether they had the removed images",
			"an image; the release publishes no digest of a removed post's image to compare it with")
	default:
		a.open(where, doPublish, "an image; the release publishes no digests to compare it with")
	}
}

// decideStored judges an image of the workspace that is not one of a removed post. It has a record, or is a stray: its
// origin is never merely unknown. like is the removed entry whose image it looks like, or nil.
func (a *audit) decideStored(s *sighting, rec, like *known) {
	where, live, do := s.String(), a.gone.owner(s.digests[0], false), doAway
	if strings.HasPrefix(s.src.name, state.ImagesDir+"/") { // it can be one that an older state.db does not know
		do = doLoose
	}
	switch {
	case a.inMaking(s.src) || rec != nil && rec.image == s.digests[0]:
	case rec != nil && live != nil && live != rec:
		a.stray(rec.name, where, doFetch, "it is not the image that was stored there: it is that of "+live.name)
	case rec != nil:
		a.stray(rec.name, where, doFetch,
			"it is not the image that was stored there: cannot tell which post it belongs to")
	case live != nil:
		a.stray("", where, do, "a copy of the image of "+live.name+" that no record accounts for")
	case like != nil:
		a.stray(like.name, where, do, fmt.Sprintf("an image in the workspace that no record accounts for, "+
			"and it looks like that of %s, which was removed", like.name))
	default:
		a.stray("", where, do, "an image in the workspace that no record accounts for")
	}
}

// imageKnown returns the removed entry that an image belongs to, or nil, and how it is known. mine is what is known of
// the entry that claims the image.
func (a *audit) imageKnown(s *sighting, mine *known) (of *known, how string) {
	if a.ownImage(s, mine) {
		return nil, ""
	}
	// The digests stand in the order file, stripped, pixels: the first that matches says the most.
	for i, d := range s.digests {
		if k := a.gone.owner(d, true); k != nil {
			return k, []string{"byte for byte", "but for metadata", "the same pixels"}[min(i, 2)]
		}
	}
	if s.wide == nil || slices.ContainsFunc(s.digests, a.gone.stays) {
		return nil, ""
	}
	var best *known
	least := sureBits + 1
	for _, w := range a.gone.wide {
		d := w.is.Distance(*s.wide)
		if d < least || d == least && best != nil && w.of.name < best.name { // they come in no order
			best, least = w.of, d
		}
	}
	return best, fmt.Sprintf("saved again, %d of 256 bits apart", least)
}

// ownImage reports whether an image is one that its own entry has on record: it is that entry's, whatever it looks
// like.
func (a *audit) ownImage(s *sighting, mine *known) bool {
	return mine != nil && slices.ContainsFunc(s.digests, func(d digest) bool {
		_, own := slices.BinarySearchFunc(a.gone.marks, clue[digest]{d, mine}, compareMarks)
		return own
	})
}

// looksLike returns the removed entry whose image an image looks like, or nil, and the entry that stays whose image it
// looks like just as much, or nil. Templates are shared by many posts, so it need not be either image.
func (a *audit) looksLike(s *sighting, mine *known) (of, rival *known, apart int) {
	k, apart := nearest(a.gone.looks[true], s.hashes)
	if k == nil || a.ownImage(s, mine) || slices.ContainsFunc(s.digests, a.gone.stays) {
		return nil, nil, 0
	}
	// An image with no claimed entry may be of any post that stays; one with a claimed entry is that entry's if it is
	// as close to it.
	rivals, hashes := a.gone.looks[false], s.hashes
	if mine != nil {
		rivals, hashes = mine.looks, s.hashes[:1]
	}
	// Saving an image again mostly changes no bit, so it is of the closer one. If both are as close it can be either.
	rival, closer := nearest(rivals, hashes)
	switch {
	case closer < apart:
		return nil, nil, 0
	case closer > apart:
		rival = nil
	}
	return k, rival, apart
}

// looksLikeOneThatStays reports whether an image can be a changed copy of that of a post that stays.
func (a *audit) looksLikeOneThatStays(s *sighting) bool {
	k, _ := nearest(a.gone.looks[false], s.hashes)
	return k != nil
}

// entryNamed returns the entry of a known post that a file is named after, as 1n6oiw.jpg and 1n6oiw-1.jpg are; or "".
func (a *audit) entryNamed(name string) string {
	stem, _, _ := strings.Cut(path.Base(name), ".")
	// Images of a gallery are stored as ID-N, or ID_N. What else people write behind an id, as -copy, says nothing.
	id, number, mark := stem, "", 0
	if len(stem) > 3 && strings.EqualFold(stem[:3], "t3_") {
		mark = 3
	}
	if at := strings.IndexAny(stem[mark:], "-_"); at >= 0 {
		id, number = stem[:mark+at], stem[mark+at+1:]
	}
	key, err := manifest.ParseKey(id)
	if n, isNumber := manifest.ParseImage(number); err == nil && isNumber && key.Image == 0 {
		key.Image = n
	}
	if err != nil || a.posts[key.ID] == nil {
		return ""
	}
	return key.String()
}

// losesImages reports whether the post stays, and some of its images must be gone.
func (e *evidence) losesImages() bool {
	return !e.MustGo && slices.ContainsFunc(e.Images, func(i AuditedImage) bool { return i.MustGo })
}

// isUnclear reports whether a name, by which a file is of an entry, has more than its id that does not say which image
// of its post it is, while some of these must be gone and others not. rehydrate writes ID-N, and counts from 0; other
// programs write ID_N, and count from 0 or from 1, or 02 for either, and people ID_b. ID-copy is as good as ID.
func (a *audit) isUnclear(name, entry string) bool {
	e := a.postOf(entry)
	if e == nil || !e.losesImages() {
		return false
	}
	base := path.Base(name)
	rest := base[strings.Index(strings.ToLower(base), string(e.ID))+len(e.ID):]
	rest = strings.TrimSuffix(rest, path.Ext(rest))
	_, isNumber := manifest.ParseImage(strings.TrimPrefix(rest, "-"))
	return rest != "" && rest != "_0" && !isNumber && !isVariant.MatchString(rest)
}

// isVariant finds what people write behind the name of an image for another file of the same one.
var isVariant = regexp.MustCompile(`(?i)^[-_ .]*\(?(copy|thumb|thumbnail|preview|small|large|full|orig|original|raw|` +
	`resized|scaled|cropped|image|img|text|ocr)\)?$`)

// openUnclear notes that numbers behind ids do not say which images they mean: once, wherever in the file they are.
func (a *audit) openUnclear(p place) {
	if p.lists() {
		return
	}
	a.openOnce(p.src.where, p.String(), "look which image it is: programs count those of a post from 0 or from 1",
		"what stands beside ids of posts that stay, and of which some images must be gone, does not say which image is meant")
}

// placeNamed is the place of a file or member of that name: of an entry as entryNamed has it, unless the name does not
// say which image it is, or is any number or word, outside of the workspace and its copies: the file then counts as one
// of no post.
func (a *audit) placeNamed(p place, name string) place {
	entry := a.entryNamed(name)
	p.own, p.unclear = entry, a.isUnclear(name, entry)
	e := a.evidenceOn(entry)
	if p.unclear || e != nil && e.MustGo && !telling(e.ID) && !p.src.ofRelease() {
		p.own = ""
	}
	return p
}
