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
	"slices"
	"strings"

	"rehydrate/internal/durable"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
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
}

// goneContent indexes what is known of posts that must be gone, to find it, and of others, to tell it from that.
type goneContent struct {
	all []*known

	marks  []clue[digest]            // of images and of folded texts
	looks  map[bool][]clue[uint64]   // of those that must be gone (true), and of the others
	lines  map[string][]clue[string] // of those that must be gone, by their first bytes
	pixels bool                      // digests of pixels are known of an image whose hash is not
	shared int                       // texts that a post that may stay has as well

	longest int // lines of a text of a post that may stay

	read []clue[string] // texts that were read off images, until they are in marks and lines
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
		e.content, a.gone.all = k, append(a.gone.all, k)
	}
	return k
}

// mark takes digests of an image: two of files, and one of its pixels.
func (g *goneContent) mark(k *known, digests ...digest) {
	k.pixels = k.pixels || len(digests) == 3 && digests[2] != digest{}
	for i, d := range digests {
		if d != (digest{}) && !slices.Contains(digests[:i], d) {
			k.digests = true
			g.marks = append(g.marks, clue[digest]{d, k})
		}
	}
}

// hash takes a perceptual hash, unless it identifies nothing.
func (k *known) hash(h uint64) {
	// The hash of a picture of one colour does not have half of its bits set.
	if bits.OnesCount64(h) == 32 {
		k.hashes = true
		k.looks = append(k.looks, clue[uint64]{h, k})
	}
}

// foldedText returns a text and the lines of it, but for those that are too short to identify a post.
func foldedText(text string) (parts []string) {
	// Copies often keep a single line of a meme, so each line counts by itself.
	for _, part := range append([]string{text}, strings.Split(text, "\n")...) {
		folded := string(fold(unescaped([]byte(part))))
		if distinctive(folded) && !slices.Contains(parts, folded) {
			parts = append(parts, folded)
		}
	}
	return parts
}

// Before a folded text these mark the first line of one, and a whole one. No folded text has them.
const markStart, markWhole = "\x01", "\x02"

// foldedLines returns the folded lines of a text that have a letter or a digit.
func foldedLines(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		if folded := fold(unescaped(line)); len(folded) > 0 {
			lines = append(lines, string(folded))
		}
	}
	return lines
}

// wholeIn reports of each of the folded lines whether it is of a whole text of a post that may stay.
func (g *goneContent) wholeIn(lines []string) []bool {
	const longest = 16 << 10 // bytes
	whole := make([]bool, len(lines))
	for i, line := range lines {
		whole[i] = whole[i] || g.stays(digestOf([]byte(markWhole+line)))
		if !g.stays(digestOf([]byte(markStart + line))) {
			continue
		}
		joined := markWhole
		for j := i; j < min(i+g.longest, len(lines)) && len(joined) < longest; j++ {
			if j > i {
				joined += " "
			}
			joined += lines[j]
			for k := i; k <= j && g.stays(digestOf([]byte(joined))); k++ {
				whole[k] = true
			}
		}
	}
	return whole
}

// distinctive reports whether a folded text is too long for two posts to share it by chance.
func distinctive(s string) bool { return len(s) >= prefixLen && strings.Count(s, " ") >= 2 }

// owner returns the first entry by name that a digest is of, if it must be gone, or may stay; or nil. What one may keep stays.
func (g *goneContent) owner(d digest, mustGo bool) *known {
	at, found := slices.BinarySearchFunc(g.marks, d, func(m clue[digest], d digest) int { return bytes.Compare(m.is[:], d[:]) })
	if !found || g.marks[at].of.MustGo != mustGo {
		return nil
	}
	return g.marks[at].of
}

func (g *goneContent) stays(d digest) bool { return g.owner(d, false) != nil }

// index sorts what is known, once it is known which posts must be gone, and again when more is known.
func (g *goneContent) index() {
	for _, read := range g.read {
		for _, text := range foldedText(read.is) {
			if read.of.MustGo {
				read.of.texts = true
				g.lines[text[:prefixLen]] = append(g.lines[text[:prefixLen]], clue[string]{text, read.of})
			} else {
				g.marks = append(g.marks, clue[digest]{digestOf([]byte(text)), read.of})
			}
		}
		if lines := foldedLines([]byte(read.is)); len(lines) > 0 && !read.of.MustGo {
			g.marks = append(g.marks, clue[digest]{digestOf([]byte(markStart + lines[0])), read.of},
				clue[digest]{digestOf([]byte(markWhole + strings.Join(lines, " "))), read.of})
			g.longest = max(g.longest, len(lines))
		}
	}
	// Many write one sentence: what a post that may stay has as well identifies nothing.
	for _, read := range slices.DeleteFunc(g.read, func(read clue[string]) bool { return read.of.MustGo }) {
		for _, l := range g.linesIn(fold(unescaped([]byte(read.is)))) {
			at := l.is[:prefixLen]
			g.lines[at] = slices.DeleteFunc(g.lines[at], func(other clue[string]) bool { return other == l })
			g.shared++
		}
	}
	g.read = nil
	slices.SortFunc(g.marks, compareMarks)
	g.marks = slices.Clone(slices.Compact(g.marks)) // one in two is there twice
	g.looks = map[bool][]clue[uint64]{}
	for _, k := range g.all {
		g.pixels = g.pixels || k.pixels && len(k.looks) == 0
		g.looks[k.MustGo] = append(g.looks[k.MustGo], k.looks...)
	}
	slices.SortFunc(g.looks[false], func(x, y clue[uint64]) int { return cmp.Compare(x.is, y.is) })
}

// linesIn returns the texts that must be gone in a folded text.
func (g *goneContent) linesIn(folded []byte) (found []clue[string]) {
	for at := 0; at+prefixLen <= len(folded); at++ {
		if at > 0 && folded[at-1] != ' ' { // lines begin with a word
			continue
		}
		for _, l := range g.lines[string(folded[at:at+prefixLen])] {
			if bytes.HasPrefix(folded[at:], []byte(l.is)) {
				found = append(found, l)
			}
		}
	}
	return found
}

// Known says of how many of the posts that must be gone something is known that recognises their content.
type Known struct {
	MustGo  int `json:"must_go"`
	Digests int `json:"digests"` // an exact copy of the image is recognised
	Hashes  int `json:"hashes"`  // a changed copy is recognised
	Texts   int `json:"texts"`
}

// A textSeen is a text that must be gone, or one of unknown origin that may be learnt to be so.
type textSeen struct {
	place
	clue[digest] // of the post that it was read off, if that is known
}

const unknownTexts = "texts of unknown origin could be those of posts that must be gone, whose text is not known: " +
	"read them, or name a workspace from before the purge"

const mayBeIDs = "words or numbers are also ids of posts that must be gone: look whether they name them"

// saw keeps what was seen of an image until all sources were looked at.
func (a *audit) saw(s *sighting) { add(a, &a.sightings, s) }

// sawHash is saw for a perceptual hash in a table, unless it is that of an image that may stay: there are as many as rows.
func (w walker) sawHash(p place, hash uint64) {
	compare := func(l clue[uint64], h uint64) int { return cmp.Compare(l.is, h) }
	if _, stays := slices.BinarySearchFunc(w.gone.looks[false], hash, compare); !stays {
		w.saw(&sighting{place: p, what: "its phash", hashes: []uint64{hash}})
	}
}

// sawText keeps a text that is of an entry, or, where that is nil, may be of a post that must be gone.
func (a *audit) sawText(p place, of *known, folded string) {
	// Beyond the bound texts are counted as of unknown origin: memory ends before honesty does.
	if of == nil && p.src.lines.Add(1) > maxTexts {
		a.gap(p.String(), unknownTexts)
		return
	}
	add(a, &a.texts, textSeen{p, clue[digest]{digestOf([]byte(folded)), of}})
}

// postOf returns the evidence on the post of an entry, or nil.
func (a *audit) postOf(entry string) *evidence { return a.posts[dataset.PostOf(entry)] }

// claimed returns the first of the entries whose post must be gone; if gone is false, the first of the release that may stay.
func (a *audit) claimed(entries []string, gone bool) *known {
	for _, entry := range entries {
		e := a.postOf(entry)
		if e == nil {
			continue
		}
		must, k := e.MustGo, a.known(e.ID, entry)
		if lost := a.removed[entry]; lost != nil && !must {
			must, k.evidence = true, lost
		}
		if must == gone && (gone || e.entry) {
			return k
		}
	}
	return nil
}

// resolve judges what was seen in all sources: what a row of a post that must be gone holds is searched for in all others.
func (a *audit) resolve(ctx context.Context) error {
	// First what rows of erased posts hold is learnt. Those rows, and what is named after such a post, are findings already.
	a.sightings = slices.DeleteFunc(a.sightings, func(s *sighting) bool {
		k := a.claimed(s.claims(), true)
		if k != nil {
			a.gone.mark(k, s.digests...)
			if len(s.hashes) > 0 {
				k.hash(s.hashes[0])
			}
		}
		return k != nil && a.storedAs(s.place) == nil
	})
	a.texts = slices.DeleteFunc(a.texts, func(t textSeen) bool {
		k := a.claimed(t.claims(), true)
		if k != nil && t.of == nil {
			a.gone.marks = append(a.gone.marks, clue[digest]{t.is, k})
		}
		return k != nil
	})
	a.gone.index()
	counts := []*int{&a.report.Known.Digests, &a.report.Known.Hashes, &a.report.Known.Texts}
	for _, e := range a.order {
		for i, some := range []bool{e.digests, e.hashes, e.texts} {
			if some && e.MustGo {
				*counts[i]++
			}
		}
	}
	for _, s := range a.sightings {
		if ctx.Err() == nil {
			a.judgeImage(s)
		}
	}
	for _, t := range a.texts {
		if k := cmp.Or(t.of, a.gone.owner(t.is, true)); k != nil {
			a.finding(FoundText, k.name, t.String(), "a text of %s, which must be gone: %s", k.name, k.why)
		} else if a.report.Known.Texts < a.report.Known.MustGo {
			a.gap(t.String(), unknownTexts)
		}
	}
	return ctx.Err()
}

// judgeImage judges an image by its record, by its bytes and by how it looks.
func (a *audit) judgeImage(s *sighting) {
	claims, where, rec := s.claims(), s.String(), a.storedAs(s.place)
	if rec != nil {
		claims = []string{rec.name}
	}
	mine := a.claimed(claims, false)
	unseen := len(claims) > 0 && (mine == nil || len(mine.looks) == 0) // the image of its post is not known
	k, how, looks := a.imageKnown(s, mine)
	switch {
	case rec != nil && rec.MustGo && !rec.waits:
		a.finding(FoundImage, rec.name, where, "an image of a post that must be gone: %s", rec.why)
	case k != nil && looks && unseen && s.what != "": // a template is shared by many
	case k != nil && looks && unseen:
		a.say(&a.report.Gaps, Finding{ID: claims[0], Where: where}, "the image looks like that of %s, which must be gone, and is said to be of %s, "+
			"whose image is not known: compare them", k.name, claims[0])
	case k != nil:
		if len(claims) > 0 {
			how += ", said to be of " + claims[0]
		}
		a.finding(FoundImage, k.name, where, "%s of %s (%s), which must be gone: %s", cmp.Or(s.what, "the image"), k.name, how, k.why)
	// A file of the workspace has a record, or is a stray: its origin is never merely unknown.
	case s.stored && (a.gone.stays(s.digests[0]) || durable.IsTemp(path.Base(s.src.name))):
	case s.stored && rec == nil:
		a.stray(FoundImage, "", where, "an image in the workspace that no record accounts for: cannot tell which post it belongs to")
	case s.stored && s.digests[0] != rec.image:
		a.stray(FoundImage, rec.name, where, "it is not the image that was stored there: cannot tell which post it belongs to")
	case s.stored:
	case s.what != "" || a.report.Known.MustGo == 0 || slices.ContainsFunc(s.digests, a.gone.stays):
	case s.fault != "":
		a.gap(where, "an image's looks could not be compared: %s", s.fault)
	case a.report.Known.Hashes < a.report.Known.MustGo:
		// A thumbnail of an image that may stay is of known origin.
		if _, apart := nearest(a.gone.looks[false], s.hashes[:min(1, len(s.hashes))]); apart > sameBits {
			a.gap(where, "images of unknown origin could be changed copies of those of posts that must be gone, of which no perceptual hash is known: "+
				"look at them, or name a release with phash, or a workspace from before the purge")
		}
	}
}

// imageKnown returns the erased entry that an image belongs to, or nil; how it is known, and whether only by its looks.
// mine is what is known of the entry that claims the image.
func (a *audit) imageKnown(s *sighting, mine *known) (of *known, how string, looks bool) {
	// An image that its own entry has on record is that entry's, whatever it looks like.
	if mine != nil && slices.ContainsFunc(s.digests, func(d digest) bool {
		_, own := slices.BinarySearchFunc(a.gone.marks, clue[digest]{d, mine}, compareMarks)
		return own
	}) {
		return nil, "", false
	}
	// The digests stand in the order file, stripped, pixels: the first that matches says the most.
	for i, d := range s.digests {
		if k := a.gone.owner(d, true); k != nil {
			return k, []string{"byte for byte", "but for metadata", "the same pixels"}[min(i, 2)], false
		}
	}
	// Looks decide only where no digest does: they are shared by templates.
	k, apart := nearest(a.gone.looks[true], s.hashes)
	if k == nil || slices.ContainsFunc(s.digests, a.gone.stays) {
		return nil, "", false
	}
	// Memes on one template are close to each other. An image with no claimed entry may match any post that
	// stays; one with a claimed entry is that entry's if it is closer to it.
	rivals, hashes := a.gone.looks[false], s.hashes
	if mine != nil {
		rivals, hashes = mine.looks, s.hashes[:1]
	}
	if _, closer := nearest(rivals, hashes); closer <= apart {
		return nil, "", false
	}
	return k, fmt.Sprintf("%d of 64 bits apart", apart), true
}

// entryNamed returns the entry of a known post that a file is named after, as 1n6oiw.jpg and 1n6oiw-1.jpg are; or "".
func (a *audit) entryNamed(name string) string {
	stem, _, _ := strings.Cut(path.Base(name), ".")
	// Images of a gallery are stored as ID-N. What else people write behind an id, as -copy, says nothing.
	id, number, _ := strings.Cut(stem, "-")
	key, err := manifest.ParseKey(id + "/" + number)
	if err != nil {
		key, err = manifest.ParseKey(id)
	}
	if err != nil || a.posts[key.ID] == nil {
		return ""
	}
	return key.String()
}
