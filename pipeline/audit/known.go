package audit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// known identifies the content of an entry. Unknown fields are empty.
type known struct {
	id      manifest.PostID
	name    string // of the entry
	digests []string
	pixels  bool // one of them is of the pixels
	hashes  []uint64
	texts   []string // folded and distinctive: the whole text, then the lines of it
}

// goneContent indexes what is known of posts: of those that must be gone, to find it, and of those that may stay, to
// tell it from that.
type goneContent struct {
	all   map[string]*known // by entry, of all posts
	posts map[manifest.PostID]bool

	gone, stay   []*known
	digests      map[string]*known // of images that must be gone
	staying      map[string]bool   // digests of images that may stay
	lines        map[string][]*lineOf
	stayingTexts map[uint64]bool
	pixels       bool // digests of pixels are known
	shared       int  // texts that a post that may stay has as well
}

// A lineOf is a text that must be gone, unless it is shared with a post that may stay.
type lineOf struct {
	text   string
	of     *known
	shared bool
}

// prefixLen is how many bytes of a text find it in the index. No text that is searched for is shorter.
const prefixLen = 15

func newGone() goneContent {
	return goneContent{all: map[string]*known{}, posts: map[manifest.PostID]bool{}}
}

func (g *goneContent) of(id manifest.PostID, name string) *known {
	k := g.all[name]
	if k == nil {
		k = &known{id: id, name: name}
		g.all[name] = k
	}
	return k
}

// entry takes the digests that the release has of an image.
func (g *goneContent) entry(e manifest.Entry) {
	k := g.of(e.ID, e.Key.String())
	k.digest(e.SHA256, e.StrippedSHA256, e.PixelsSHA256)
	// A manifest is written by others: a hash of another length is of another kind.
	if h, err := strconv.ParseUint(e.PHash, 16, 64); err == nil && len(e.PHash) == 16 {
		k.hash(h)
	}
}

// digest takes digests of an image: of its file, of the file without metadata, and third of its pixels.
func (k *known) digest(sha256 ...string) {
	k.pixels = k.pixels || len(sha256) == 3 && sha256[2] != ""
	for _, d := range sha256 {
		if d != "" && !slices.Contains(k.digests, d) {
			k.digests = append(k.digests, d)
		}
	}
}

// hash takes a perceptual hash, unless it identifies nothing.
func (k *known) hash(h uint64) {
	// The hash of a picture of one colour does not have half of its bits set.
	if bits.OnesCount64(h) == 32 {
		k.hashes = append(k.hashes, h)
	}
}

// read takes a text and the lines of it, but for those that are too short to identify a post.
func (k *known) read(text string) {
	// Copies often keep a single line of a meme, so each line counts by itself.
	for _, part := range append([]string{text}, strings.Split(text, "\n")...) {
		folded := string(fold([]byte(part)))
		if distinctive(folded) && !slices.Contains(k.texts, folded) {
			k.texts = append(k.texts, folded)
		}
	}
}

// distinctive reports whether a folded text is too long for two posts to share it by chance.
func distinctive(s string) bool { return len(s) >= prefixLen && strings.Count(s, " ") >= 2 }

// image returns the entry of an image that must be gone, by a digest of it; nil for none.
func (g *goneContent) image(digest string) *known {
	if g.staying[digest] { // many post one picture
		return nil
	}
	return g.digests[digest]
}

// stayed reports whether one of the digests is of an image that may stay.
func (g *goneContent) stayed(digests []string) bool {
	return slices.ContainsFunc(digests, func(d string) bool { return g.staying[d] })
}

var seed = maphash.MakeSeed()

func textHash(folded string) uint64 { return maphash.String(seed, folded) }

// index sorts what is known by what must be gone and what may stay. It is called again when more is known.
func (g *goneContent) index() {
	g.gone, g.stay, g.lines, g.shared = nil, nil, map[string][]*lineOf{}, 0
	g.digests, g.staying, g.stayingTexts = map[string]*known{}, map[string]bool{}, map[uint64]bool{}
	for _, k := range g.all {
		g.pixels = g.pixels || k.pixels
		if !g.posts[k.id] {
			g.stay = append(g.stay, k)
			for _, d := range k.digests {
				g.staying[d] = true
			}
			for _, text := range k.texts {
				g.stayingTexts[textHash(text)] = true
			}
			continue
		}
		g.gone = append(g.gone, k)
		for _, d := range k.digests {
			// Of two erased posts with one image the first by name is named, so that reports stay equal.
			if have := g.digests[d]; have == nil || k.name < have.name {
				g.digests[d] = k
			}
		}
		for _, text := range k.texts {
			g.lines[text[:prefixLen]] = append(g.lines[text[:prefixLen]], &lineOf{text: text, of: k})
		}
	}
	// Many write one sentence: what a post that may stay has as well identifies nothing.
	for _, k := range g.stay {
		for _, l := range g.linesIn([]byte(strings.Join(k.texts[:min(1, len(k.texts))], ""))) {
			l.shared = true
			g.shared++
		}
	}
}

// linesIn returns the texts that must be gone in a folded text.
func (g *goneContent) linesIn(folded []byte) (found []*lineOf) {
	for at := 0; at+prefixLen <= len(folded); at++ {
		if at > 0 && folded[at-1] != ' ' { // lines begin with a word
			continue
		}
		for _, l := range g.lines[string(folded[at:at+prefixLen])] {
			if !l.shared && bytes.HasPrefix(folded[at:], []byte(l.text)) {
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

func (g *goneContent) known() Known {
	// A post of several images counts once.
	count := func(has func(*known) bool) int {
		posts := map[manifest.PostID]bool{}
		for _, k := range g.gone {
			if has(k) {
				posts[k.id] = true
			}
		}
		return len(posts)
	}
	return Known{
		MustGo:  len(g.posts),
		Digests: count(func(k *known) bool { return len(k.digests) > 0 }),
		Hashes:  count(func(k *known) bool { return len(k.hashes) > 0 }),
		Texts:   count(func(k *known) bool { return len(k.texts) > 0 }),
	}
}

// storedContent is the content that the records of a workspace account for.
type storedContent struct {
	images, rows int
	entries      []storedEntry          // with an image or a text
	files        map[string]storedEntry // by name of the image file
	dataset      map[string]string      // the digest on record of each file of the dataset
	logged       map[string]string      // the digest that the log has of each
}

// A storedEntry is what a workspace has of an entry.
type storedEntry struct {
	id          manifest.PostID
	name        string // of the entry
	sha256      string // of its image
	image, text bool
}

// A textSeen is a text of unknown origin.
type textSeen struct {
	place
	hash uint64
	of   *known // the post that it was read off, if that is known
}

// maxTexts bounds the texts of a source that are kept for comparison.
const maxTexts = 300_000

// saw keeps what was seen of an image until all sources were looked at.
func (a *audit) saw(s *sighting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sightings = append(a.sightings, s)
}

// sawWords keeps a text that may be one of a post that must be gone.
func (a *audit) sawWords(p place, folded string) {
	h := textHash(folded)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.gone.stayingTexts[h]:
	// Beyond the bound texts are counted as of unknown origin: memory ends before honesty does.
	case p.src.lines == maxTexts:
		p.src.texts.add(p.String())
	default:
		p.src.lines++
		a.texts = append(a.texts, textSeen{place: p, hash: h})
	}
}

// sawText keeps a text that must be gone.
func (a *audit) sawText(p place, k *known) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, textSeen{place: p, of: k})
}

// postOf returns the evidence on the post of an entry, or nil.
func (a *audit) postOf(entry string) *evidence { return a.posts[dataset.PostOf(entry)] }

// staying returns what is known of the first of the entries that may stay; nil for none.
func (a *audit) staying(entries []string) *known {
	for _, entry := range entries {
		if k := a.gone.all[entry]; k != nil && !a.gone.posts[k.id] {
			return k
		}
	}
	return nil
}

// mustGoOf returns the first of the entries whose post must be gone.
func (a *audit) mustGoOf(entries []string) (entry string, e *evidence) {
	for _, entry := range entries {
		if e := a.postOf(entry); e != nil && e.MustGo {
			return entry, e
		}
	}
	return "", nil
}

// resolve judges what was seen in all sources together: what a row of a post that must be gone holds is searched for
// in all others.
func (a *audit) resolve(ctx context.Context) error {
	learnt := map[uint64]*known{}
	// First what rows of erased posts hold is learnt, then everything is judged with it.
	for _, s := range a.sightings {
		if entry, e := a.mustGoOf(s.claims()); e != nil {
			k := a.gone.of(e.ID, entry)
			k.digest(s.digests...)
			if len(s.hashes) > 0 {
				k.hash(s.hashes[0])
			}
		}
	}
	for _, t := range a.texts {
		if entry, e := a.mustGoOf(t.claims()); e != nil {
			learnt[t.hash] = a.gone.of(e.ID, entry)
		}
	}
	known := a.gone.known()
	a.gone.index()
	for _, s := range a.sightings {
		if err := a.stopped(ctx); err != nil {
			return err
		}
		a.judgeImage(s, known)
	}
	for _, t := range a.said {
		claims := t.claims()
		if _, e := a.mustGoOf(claims); e != nil {
			continue // its row is a finding already
		}
		// A post that may stay has its own text, though an erased one said the same.
		if mine := a.staying(claims); mine == nil || !slices.Equal(mine.texts, t.of.texts) {
			a.finding(FoundText, t.of.name, t.String(), "text read off %s, which must be gone: %s", t.of.name, a.posts[t.of.id].why())
		}
	}
	for _, t := range a.texts {
		switch k := learnt[t.hash]; {
		case k != nil:
			if _, e := a.mustGoOf(t.claims()); e != nil {
				continue // its row is a finding already
			}
			a.finding(FoundText, k.name, t.String(), "a text of %s, which must be gone: %s", k.name, a.posts[k.id].why())
		case known.Texts < known.MustGo:
			t.src.texts.add(t.String())
		}
	}
	for _, s := range a.sources {
		if n := s.images; n.n > 0 {
			a.gap("", s.where, "%d images of unknown origin (the first: %s) could be changed copies of those of %d posts that must be gone, of which no perceptual hash is known: "+
				"look at them, or name a release with phash, or a workspace from before the purge", n.n, n.first, known.MustGo-known.Hashes)
		}
		if n := s.ids; n.n > 0 {
			a.gap("", s.where, "%d words or numbers that are also ids of posts that must be gone (the first: %s): look whether they name them", n.n, n.first)
		}
		if n := s.texts; n.n > 0 {
			a.gap("", s.where, "%d texts of unknown origin (the first: %s) could be those of %d posts that must be gone, whose text is not known: "+
				"read them, or name a workspace from before the purge", n.n, n.first, known.MustGo-known.Texts)
		}
	}
	return nil
}

// judgeImage judges an image by its record, by its bytes and by how it looks.
func (a *audit) judgeImage(s *sighting, known Known) {
	claims, where := s.claims(), s.String()
	rec, recorded := a.stored.files[s.src.name]
	recorded = recorded && s.stored
	if recorded {
		claims = []string{rec.name}
		if e := a.post(rec.id); a.mustBeGone(e) {
			a.finding(FoundImage, claims[0], where, "an image of a post that must be gone: %s", e.why())
			return
		}
	} else if _, e := a.mustGoOf(claims); e != nil {
		return // its row or its name is a finding already
	}
	mine := a.staying(claims)
	unseen := len(claims) > 0 && (mine == nil || len(mine.hashes) == 0) // the image of its post is not known
	k, how, looks := a.imageKnown(s, mine)
	switch {
	case k != nil && looks && unseen && s.what != "": // a template is shared by many
	case k != nil && looks && unseen:
		a.gap(claims[0], where, "the image looks like that of %s, which must be gone, and is said to be of %s, whose image is not known: compare them", k.name, claims[0])
	case k != nil:
		if len(claims) > 0 {
			how += ", said to be of " + claims[0]
		}
		a.finding(FoundImage, k.name, where, "%s of %s (%s), which must be gone: %s", cmp.Or(s.what, "the image"), k.name, how, a.posts[k.id].why())
	// A file of the workspace has a record, or is a stray: its origin is never merely unknown.
	case s.stored:
		a.judgeStored(s, rec, recorded)
	case s.what != "" || known.MustGo == 0 || a.gone.stayed(s.digests):
	case s.fault != "":
		a.gap("", where, "an image's looks could not be compared: %s", s.fault)
	case known.Hashes < known.MustGo:
		// A thumbnail of an image that may stay is of known origin.
		if _, apart := nearest(a.gone.stay, s.hashes[:min(1, len(s.hashes))]); apart > sameBits {
			s.src.images.add(where)
		}
	}
}

// sameBits is how many bits differ at most between an image and its thumbnail.
const sameBits = 4

// imageKnown returns the erased entry that an image belongs to, or nil; how it is known, and whether only by its looks.
// mine is what is known of the entry that claims the image.
func (a *audit) imageKnown(s *sighting, mine *known) (of *known, how string, looks bool) {
	// An image that its own entry has on record is that entry's, whatever it looks like.
	if mine != nil && slices.ContainsFunc(s.digests, func(d string) bool { return slices.Contains(mine.digests, d) }) {
		return nil, "", false
	}
	// The digests stand in the order file, stripped, pixels: the first that matches says the most.
	for i, d := range s.digests {
		if k := a.gone.image(d); k != nil {
			return k, []string{"byte for byte", "but for metadata", "the same pixels"}[min(i, 2)], false
		}
	}
	// Looks decide only where no digest does: they are shared by templates.
	k, apart := nearest(a.gone.gone, s.hashes)
	if k == nil || a.gone.stayed(s.digests) {
		return nil, "", false
	}
	// Memes on one template are close to each other. An image with no claimed entry may match any post that
	// stays; one with a claimed entry is that entry's if it is closer to it.
	rivals, hashes := a.gone.stay, s.hashes
	if mine != nil {
		rivals, hashes = []*known{mine}, s.hashes[:1]
	}
	if rival, closer := nearest(rivals, hashes); rival != nil && closer <= apart {
		return nil, "", false
	}
	return k, fmt.Sprintf("%d of 64 bits apart", apart), true
}

// judgeStored judges an image file of the workspace that matches no erased image: a record must account for it.
func (a *audit) judgeStored(s *sighting, rec storedEntry, recorded bool) {
	digest := s.digests[0]
	switch {
	case recorded && digest == rec.sha256, a.gone.staying[digest], strings.HasPrefix(path.Base(s.src.name), ".tmp-"):
	case !a.sealed: // the records may be older than the file
		a.gap("", s.String(), "an image that no record accounts for: a run is storing it, or was killed; run, then audit again")
	case recorded:
		a.finding(FoundImage, rec.name, s.String(), "it is not the image that was stored there: cannot tell which post it belongs to")
	default:
		a.finding(FoundImage, "", s.String(), "an image in the workspace that no record accounts for: cannot tell which post it belongs to")
	}
}

// named returns the entry of a known post that a file is named after; empty for none.
func (a *audit) entryNamed(name string) string {
	id, entry := entryOf(name)
	if a.posts[id] == nil {
		return ""
	}
	return entry
}

// entryOf returns the entry that a file is named after: 1n6oiw.jpg, 1n6oiw-1.jpg.
func entryOf(name string) (id manifest.PostID, entry string) {
	stem, _, _ := strings.Cut(path.Base(name), ".")
	// Images of a gallery are stored as ID-N.
	text, number, later := strings.Cut(stem, "-")
	id, err := manifest.ParsePostID(text)
	if err != nil {
		return "", ""
	}
	if later {
		return id, string(id) + "/" + number
	}
	return id, string(id)
}

// mayName reports whether a file of the workspace may name posts that are gone, as lists of outcomes do.
func (a *audit) mayName(name string) bool {
	switch {
	case name == manifest.OutcomesName, name == manifest.TombstonesName, name == workspace.ReportName, strings.HasPrefix(name, state.AuditDir+"/"):
		return true
	}
	return a.stored.dataset[name] != ""
}
