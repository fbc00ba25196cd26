package audit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"index/suffixarray"
	"maps"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	hashes  []uint64
	text    string // as sameText makes it
	lines   []string
}

// goneContent indexes what is known of posts: of those that must be gone, to find it, and of those that may stay, to
// tell it from that.
type goneContent struct {
	all     map[string]*known // by entry, of all posts
	posts   map[manifest.PostID]bool
	digests map[string]*known
	hashes  []hashOf
	lines   map[string][]lineOf // by their first letters

	staying       map[string]bool // digests
	stayingHashes []hashOf
	stayingTexts  map[uint64]bool
	shared        int // texts that a post that may stay has as well
}

type hashOf struct {
	bits uint64
	of   *known
}

type lineOf struct {
	line []byte
	of   *known
}

// prefixLen is how many bytes of a text find it in the index. No text that is searched for is shorter.
const prefixLen = 15

func (g *goneContent) of(id manifest.PostID, name string) *known {
	if g.all == nil {
		g.all, g.posts = map[string]*known{}, map[manifest.PostID]bool{}
	}
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
	if h, err := strconv.ParseUint(e.PHash, 16, 64); err == nil && len(e.PHash) == 16 {
		k.hash(h)
	}
}

// digest takes digests of an image: of its file, of the file without metadata, or of its pixels.
func (k *known) digest(sha256 ...string) {
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

// read takes a text, unless it is too short to identify a post.
func (k *known) read(text string) {
	if k.text == "" {
		k.text = sameText(text)
	}
	for line := range strings.Lines(text) {
		line = sameText(line)
		if line != "" {
			k.lines = append(k.lines, line)
		}
	}
}

func (k *known) has(digests []string) bool {
	return slices.ContainsFunc(digests, func(d string) bool { return slices.Contains(k.digests, d) })
}

// sameText makes texts comparable, as fold does. It is empty for a text too short to identify a post.
func sameText(text string) string {
	s := string(fold([]byte(text)))
	if !distinctive(s) {
		return ""
	}
	return s
}

// distinctive reports whether a text is too long for two posts to share it by chance.
func distinctive(s string) bool { return len(s) >= prefixLen && strings.Count(s, " ") >= 2 }

// mustGo marks a post: its content is searched for.
func (g *goneContent) mustGo(id manifest.PostID) {
	if g.posts == nil {
		g.of(id, string(id))
	}
	g.posts[id] = true
}

// stays returns what is known of the entry if its post may stay, else nil.
func (g *goneContent) stays(entry string) *known {
	if k := g.all[entry]; k != nil && !g.posts[k.id] {
		return k
	}
	return nil
}

var seed = maphash.MakeSeed()

func textHash(folded string) uint64 { return maphash.String(seed, folded) }

// index collects what is known. It is called again when more is known.
func (g *goneContent) index() {
	g.hashes, g.stayingHashes, g.lines, g.shared = nil, nil, map[string][]lineOf{}, 0
	g.digests, g.staying, g.stayingTexts = map[string]*known{}, map[string]bool{}, map[uint64]bool{}
	// Many post one picture or one sentence: content that a post that may stay has as well identifies nothing.
	said := bytes.Buffer{}
	for _, k := range g.all {
		if g.posts[k.id] {
			continue
		}
		for _, d := range k.digests {
			g.staying[d] = true
		}
		for _, h := range k.hashes {
			g.stayingHashes = append(g.stayingHashes, hashOf{h, k})
		}
		for _, text := range append(k.lines, k.text) {
			g.stayingTexts[textHash(text)] = true
		}
		said.WriteString(k.text)
		said.WriteByte(0)
	}
	// Searching all texts that stay for each text that is gone would be quadratic, so a suffix array answers. It
	// is built only if there is a text to search for.
	texts := sync.OnceValue(func() *suffixarray.Index { return suffixarray.New(said.Bytes()) })
	for _, name := range slices.Sorted(maps.Keys(g.all)) {
		k := g.all[name]
		if !g.posts[k.id] {
			continue
		}
		for _, d := range k.digests {
			if !g.staying[d] {
				g.digests[d] = k
			}
		}
		for _, h := range k.hashes {
			g.hashes = append(g.hashes, hashOf{h, k})
		}
		for _, line := range append(k.lines, k.text) {
			switch {
			case line == "":
			case len(texts().Lookup([]byte(line), 1)) > 0:
				g.shared++
			default:
				g.lines[line[:prefixLen]] = append(g.lines[line[:prefixLen]], lineOf{[]byte(line), k})
			}
		}
	}
}

// Known says of how many of the posts that must be gone something is known that recognises their content.
type Known struct {
	MustGo  int `json:"must_go"`
	Digests int `json:"digests"` // an exact copy of the image is recognised
	Hashes  int `json:"hashes"`  // a changed copy is recognised
	Texts   int `json:"texts"`
}

// wantsTexts reports whether texts have to be looked at.
func (g *goneContent) wantsTexts() bool { return len(g.posts) > 0 }

func (g *goneContent) known() Known {
	digests, hashes, texts := map[manifest.PostID]bool{}, map[manifest.PostID]bool{}, map[manifest.PostID]bool{}
	for _, k := range g.all {
		if g.posts[k.id] {
			digests[k.id] = digests[k.id] || len(k.digests) > 0
			hashes[k.id] = hashes[k.id] || len(k.hashes) > 0
			texts[k.id] = texts[k.id] || k.text != "" || len(k.lines) > 0
		}
	}
	count := func(m map[manifest.PostID]bool) (n int) {
		for _, yes := range m {
			if yes {
				n++
			}
		}
		return n
	}
	return Known{MustGo: len(g.posts), Digests: count(digests), Hashes: count(hashes), Texts: count(texts)}
}

// storedContent is the content that the records of a workspace account for.
type storedContent struct {
	images, rows int
	files        map[string]workspace.Record // by name of the image file
	dataset      map[string]string           // the digest on record of each file of the dataset
	logged       map[string]string           // the digest that the log has of each
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
	if a.gone.stayingTexts[h] {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p.src.lines++
	if p.src.lines <= maxTexts {
		a.texts = append(a.texts, textSeen{place: p, hash: h})
	} else {
		p.src.texts.add(p.String())
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
		if k := a.gone.stays(entry); k != nil {
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
		a.judgeImage(ctx, s, known)
	}
	for _, t := range a.said {
		claims := t.claims()
		if _, e := a.mustGoOf(claims); e != nil {
			continue // its row is a finding already
		}
		if mine := a.staying(claims); mine == nil || mine.text != t.of.text {
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
		if n := s.texts; n.n > 0 {
			a.gap("", s.where, "%d texts of unknown origin (the first: %s) could be those of %d posts that must be gone, whose text is not known: "+
				"read them, or name a workspace from before the purge", n.n, n.first, known.MustGo-known.Texts)
		}
	}
	return nil
}

// judgeImage judges an image by its record, by its bytes and by how it looks.
func (a *audit) judgeImage(ctx context.Context, s *sighting, known Known) {
	claims, where := s.claims(), s.String()
	rec, recorded := a.stored.files[s.src.name]
	recorded = recorded && s.stored
	if recorded {
		claims = []string{rec.Key.String()}
		if e := a.posts[rec.ID]; a.mustBeGone(e) {
			a.finding(FoundImage, rec.Key.String(), where, "an image of a post that must be gone: %s", e.why())
			return
		}
	} else if _, e := a.mustGoOf(claims); e != nil {
		return // its row or its name is a finding already
	}
	mine := a.staying(claims)
	k, how := a.imageKnown(s, mine)
	if k != nil && s.what == "its phash" && len(claims) > 0 && (mine == nil || len(mine.hashes) == 0) {
		return // a template is shared by many, and the image of the row's post is not known
	}
	if k != nil && len(claims) > 0 && (mine == nil || len(mine.hashes) == 0) && strings.Contains(how, "bits") {
		a.gap(claims[0], where, "the image looks like that of %s, which must be gone, and is said to be of %s, whose image is not known: compare them", k.name, claims[0])
		return
	}
	if k != nil {
		what := cmp.Or(s.what, "the image")
		if len(claims) > 0 {
			how += ", said to be of " + claims[0]
		}
		a.finding(FoundImage, k.name, where, "%s of %s (%s), which must be gone: %s", what, k.name, how, a.posts[k.id].why())
		return
	}
	if s.stored {
		a.judgeStored(ctx, s, rec, recorded)
		return
	}
	if s.what != "" || known.MustGo == 0 || slices.ContainsFunc(s.digests, func(d string) bool { return a.gone.staying[d] }) {
		return
	}
	if s.fault != "" {
		a.gap("", where, "an image's looks could not be compared: %s", s.fault)
		return
	}
	if _, apart := nearest(a.gone.stayingHashes, s.hashes[:min(1, len(s.hashes))]); known.Hashes < known.MustGo && apart > sameBits {
		s.src.images.add(where)
	}
}

// sameBits is how many bits differ at most between an image and its thumbnail.
const sameBits = 4

// imageKnown returns the erased entry that an image belongs to, or nil. mine is what is known of the entry that
// claims the image.
func (a *audit) imageKnown(s *sighting, mine *known) (of *known, how string) {
	// An image that its own entry has on record is that entry's, whatever it looks like.
	if mine != nil && mine.has(s.digests) {
		return nil, ""
	}
	for i, d := range s.digests {
		if k := a.gone.digests[d]; k != nil {
			return k, []string{"byte for byte", "but for metadata", "the same pixels"}[min(i, 2)]
		}
	}
	k, apart := nearest(a.gone.hashes, s.hashes)
	if k == nil || slices.ContainsFunc(s.digests, func(d string) bool { return a.gone.staying[d] }) {
		return nil, ""
	}
	// Memes on one template are close to each other. An image with no claimed entry may match any post that
	// stays; one with a claimed entry is that entry's if it is closer to it.
	if mine == nil {
		if other, closer := nearest(a.gone.stayingHashes, s.hashes); other != nil && closer <= apart {
			return nil, ""
		}
	} else if own := slices.MinFunc(append([]uint64{^s.hashes[0]}, mine.hashes...), func(x, y uint64) int {
		return cmp.Compare(bits.OnesCount64(x^s.hashes[0]), bits.OnesCount64(y^s.hashes[0]))
	}); bits.OnesCount64(own^s.hashes[0]) <= apart {
		return nil, ""
	}
	return k, fmt.Sprintf("%d of 64 bits apart", apart)
}

// judgeStored judges an image file of the workspace that matches no erased image: it must be the one that the state
// has on record, or one that a run has stored since the records were read.
func (a *audit) judgeStored(ctx context.Context, s *sighting, rec workspace.Record, recorded bool) {
	switch {
	case recorded && s.digests[0] != rec.Image.SHA256 && !a.onRecord(ctx, rec, s.digests[0]):
		a.finding(FoundImage, rec.Key.String(), s.String(), "it is not the image that was stored there: cannot tell which post it belongs to")
	case recorded || a.byRecord(s.digests[0]) || a.underWay(ctx, s.src.name):
	default:
		a.finding(FoundImage, "", s.String(), "an image in the workspace that no record accounts for: cannot tell which post it belongs to")
	}
}

// byRecord reports whether a digest is that of a stored image of a post that may stay.
func (a *audit) byRecord(digest string) bool {
	for _, rec := range a.stored.files {
		if rec.Image.SHA256 == digest {
			return !a.mustBeGone(a.posts[rec.ID])
		}
	}
	return false
}

// onRecord reports whether a run that is at work has stored another image of the entry since the records
// were read.
func (a *audit) onRecord(ctx context.Context, was workspace.Record, digest string) bool {
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{ID: was.ID}) {
		if err != nil {
			return false
		}
		if rec.Key == was.Key && rec.Image != nil && rec.Image.SHA256 == digest {
			return true
		}
	}
	return false
}

// underWay reports whether a run that is at work has stored the image since the records were read.
func (a *audit) underWay(ctx context.Context, name string) bool {
	id, _ := entryOf(name)
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{ID: id}) {
		if id != "" && err == nil && rec.Image != nil && a.Workspace.ImageName(rec.Key, rec.Image.Format) == name {
			return true
		}
		if id == "" || err != nil {
			return false
		}
	}
	return strings.HasPrefix(path.Base(name), ".tmp-")
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
