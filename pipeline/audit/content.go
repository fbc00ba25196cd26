package audit

import (
	"bytes"
	"context"
	"fmt"
	"index/suffixarray"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// storedContent is the content that the records of a workspace account for.
type storedContent struct {
	images, rows int
	files        map[string]workspace.Record // by name of the image file
	dataset      map[string]string           // the digest on record of each file of the dataset
	logged       map[string]string           // the digest that the log has of each
}

// exported stores the files of an export that the log records.
func (s *storedContent) exported(e auditlog.Event) {
	if s.logged == nil {
		s.logged = map[string]string{}
	}
	for _, f := range e.Files {
		s.logged[f.Name] = f.SHA256
	}
}

// known identifies the content of an entry. Unknown fields are empty.
type known struct {
	id      manifest.PostID
	name    string // of the entry
	digests []string
	hashes  []uint64
	stored  bool   // the workspace has its image
	text    string // as sameText makes it
	lines   []string
}

// goneContent indexes what is still known about posts that must be gone: digests, hashes and texts.
type goneContent struct {
	all     map[string]*known // by entry, of all posts
	posts   map[manifest.PostID]bool
	digests map[string]*known
	hashes  []hashOf
	staying []hashOf // of posts that may stay
	texts   map[string]*known
	lines   []lineOf
}

type hashOf struct {
	bits uint64
	of   *known
}

type lineOf struct {
	line []byte
	of   *known
}

func (g *goneContent) of(id manifest.PostID, name string) *known {
	if g.all == nil {
		g.all = map[string]*known{}
		g.posts, g.digests, g.texts = map[manifest.PostID]bool{}, map[string]*known{}, map[string]*known{}
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
	if e.SHA256 != "" {
		k.digests = append(k.digests, e.SHA256)
	}
	if h, err := strconv.ParseUint(e.PHash, 16, 64); err == nil && len(e.PHash) == 16 {
		k.hash(h)
	}
}

// digest takes a digest of a post's image that the log has.
func (g *goneContent) digest(id manifest.PostID, sha256 string) {
	if sha256 != "" {
		k := g.of(id, string(id))
		k.digests = append(k.digests, sha256)
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

// sameText makes texts comparable, as fold does. It is empty for a text too short to identify a post.
func sameText(text string) string {
	s := string(fold([]byte(text)))
	if !distinctive(s) {
		return ""
	}
	return s
}

// distinctive reports whether a text is too long for two posts to share it by chance.
func distinctive(s string) bool { return len(s) >= 15 && strings.Count(s, " ") >= 2 }

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

// index collects what is known of the posts that must be gone. It is called again when more is known.
func (g *goneContent) index() {
	g.hashes, g.staying, g.lines = nil, nil, nil
	g.digests, g.texts = map[string]*known{}, map[string]*known{}
	// Many post one picture or one sentence: content that a post that may stay has as well identifies nothing.
	shared, said := map[string]bool{}, bytes.Buffer{}
	for _, k := range g.all {
		if g.posts[k.id] || !k.stored {
			continue
		}
		for _, d := range k.digests {
			shared[d] = true
		}
		for _, h := range k.hashes {
			g.staying = append(g.staying, hashOf{h, k})
		}
		said.WriteString(k.text)
		said.WriteByte(0)
	}
	// Searching all texts that stay for each text that is gone would be quadratic, so a suffix array answers. It
	// is built only if there is a text to search for.
	texts := sync.OnceValue(func() *suffixarray.Index { return suffixarray.New(said.Bytes()) })
	others := func(text string) bool { return len(texts().Lookup([]byte(text), 1)) > 0 }
	for _, name := range slices.Sorted(maps.Keys(g.all)) {
		k := g.all[name]
		if !g.posts[k.id] {
			continue
		}
		for _, d := range k.digests {
			if !shared[d] {
				g.digests[d] = k
			}
		}
		for _, h := range k.hashes {
			g.hashes = append(g.hashes, hashOf{h, k})
		}
		if k.text != "" && !others(k.text) {
			g.texts[k.text] = k
		}
		for _, line := range k.lines {
			if !others(line) {
				g.lines = append(g.lines, lineOf{[]byte(line), k})
			}
		}
	}
}

// nearBits is how many of the 64 bits may differ between an image and a copy of it that was made
// smaller or compressed again.
const nearBits = 8

// nearest returns the entry with the hash closest to h, of equals the first by name; nil for none.
func nearest(list []hashOf, h uint64) (best *known, apart int) {
	apart = nearBits + 1
	for _, known := range list {
		d := bits.OnesCount64(known.bits ^ h)
		if d < apart || d == apart && best != nil && known.of.name < best.name {
			best, apart = known.of, d
		}
	}
	return best, apart
}

// readRecords reads the records of every entry, and the files of the last export.
func (a *audit) readRecords(ctx context.Context) error {
	ws, s := a.Workspace, &a.stored
	s.files, s.dataset = map[string]workspace.Record{}, map[string]string{}
	for rec, err := range ws.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return err
		}
		k := a.gone.of(rec.ID, rec.Key.String())
		if img := rec.Image; img != nil {
			s.images++
			s.files[ws.ImageName(rec.Key, img.Format)] = rec
			k.digests, k.stored = append(k.digests, img.SHA256, img.OriginalSHA256), true
			if !img.Flat && img.HashKind == dedupe.HashKind() {
				k.hash(img.PHash)
			}
		}
		if rec.Reading != nil {
			k.read(rec.Reading.Text)
		}
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept {
			s.rows++
		}
	}
	files, err := lastExport(ctx, ws)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.gap("", "state.db", "the note of the last export cannot be read: %v", err)
	}
	maps.Copy(s.dataset, files)
	return nil
}

// lastExport returns the digest of each file of the last export on record.
func lastExport(ctx context.Context, ws *workspace.Workspace) (map[string]string, error) {
	last, err := state.ReadNote[state.ExportNote](ctx, ws)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, f := range last.Files {
		files[f.Name] = f.SHA256
	}
	return files, nil
}

// checkState finds what state.db still has of posts that must be gone.
func (a *audit) checkState(ctx context.Context) error {
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return err
		}
		e, name := a.posts[rec.ID], rec.Key.String()
		if e == nil || !a.mustBeGone(e) {
			continue
		}
		if rec.Image != nil {
			a.finding(FoundImage, name, "state.db", "the description of an image, with its hashes, of a post that must be gone: %s", e.why())
		}
		if rec.Reading != nil && (rec.Reading.Text != "" || rec.Reading.Failed == nil) || rec.Earlier.Read {
			a.finding(FoundText, name, "state.db", "text read off an image of a post that must be gone: %s", e.why())
		}
	}
	return nil
}

// mustBeGone reports whether stored content of a post is a finding.
func (a *audit) mustBeGone(e *evidence) bool {
	// Content that is withheld until a mass removal is confirmed is an open obligation, for 48 hours.
	if !e.workspace.Withheld || !e.workspace.State.Gone() || e.Because == "release" || e.Because == "tombstone" {
		return e.MustGo
	}
	return false
}

// imageKnown returns the erased entry that an image belongs to, or nil. own names the entry that claims the
// image, and is empty when none does. An image that cannot be compared by its looks is a gap at where.
func (a *audit) imageKnown(where string, body []byte, own string) (of *known, how string) {
	digest, mine := state.SHA256(body), a.gone.stays(own)
	if k := a.gone.digests[digest]; k != nil && (mine == nil || !mine.has(digest)) {
		return k, "byte for byte"
	}
	// An image that its own entry has on record is that entry's, whatever it looks like.
	if mine != nil && mine.has(digest) || len(a.gone.hashes) == 0 {
		return nil, ""
	}
	p := a.policy
	p.Images = policy.Default().Images
	if _, fault := p.InspectImage(body); fault != nil {
		if fault.Outcome != manifest.Placeholder {
			a.gap("", where, "an image's looks could not be compared: %s", fault.Reason)
		}
		return nil, ""
	}
	img, err := policy.DecodeImage(body)
	if err != nil {
		a.gap("", where, "an image's looks could not be compared: it cannot be decoded")
		return nil, ""
	}
	h, err := dedupe.HashImage(img)
	if err != nil {
		a.gap("", where, "an image's looks could not be compared: %v", err)
	}
	if err != nil || h.Flat {
		return nil, ""
	}
	return a.hashKnown(h.Bits, mine)
}

// hashKnown is imageKnown by a perceptual hash alone.
func (a *audit) hashKnown(h uint64, mine *known) (*known, string) {
	k, apart := nearest(a.gone.hashes, h)
	if k == nil {
		return nil, ""
	}
	// Memes on one template are close to each other. An image with no claimed entry may match any post that
	// stays; one with a claimed entry is that entry's if it is closer to it.
	if other, closer := nearest(a.gone.staying, h); mine == nil && other != nil && closer <= apart {
		return nil, ""
	}
	if mine != nil {
		for _, own := range mine.hashes {
			if bits.OnesCount64(own^h) <= apart {
				return nil, ""
			}
		}
	}
	return k, fmt.Sprintf("%d of 64 bits apart", apart)
}

func (k *known) has(digest string) bool {
	for _, d := range k.digests {
		if d == digest {
			return true
		}
	}
	return false
}

// readAll reads up to limit bytes of a file; more is an error.
func readAll(r io.ReaderAt, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("%d bytes, and at most %d are read", size, limit)
	}
	var b bytes.Buffer
	_, err := b.ReadFrom(io.NewSectionReader(r, 0, size))
	return b.Bytes(), err
}
