package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// storedContent is what the records of a workspace account for.
type storedContent struct {
	images, rows int
	files        map[string]workspace.Record // by name of the image file
	own          map[string]*known           // by entry
	dataset      map[string]string           // the digest on record of each file of the dataset
	logged       map[string]string           // the same by the log
}

// exported notes the files of an export that the log tells of.
func (s *storedContent) exported(e auditlog.Event) {
	if s.logged == nil {
		s.logged = map[string]string{}
	}
	for _, f := range e.Files {
		s.logged[f.Name] = f.SHA256
	}
}

// known is what tells the content of an entry from that of others. What it does not know is empty.
type known struct {
	id      manifest.PostID
	name    string // of the entry
	digests []string
	hashes  []uint64
	text    string // as sameText makes it
	raw     []string
}

// goneContent is the content that is looked for: of posts that must be gone, as far as anything of it
// is still known.
type goneContent struct {
	all     map[string]*known // by entry, of all posts
	posts   map[manifest.PostID]bool
	digests map[string]*known
	hashes  []hashOf
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
	k := g.of(e.ID, entryName(e.Key))
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

// hash takes a perceptual hash, unless it says nothing: that of a picture of one colour does not
// have half of its bits set.
func (k *known) hash(h uint64) {
	if bits.OnesCount64(h) == 32 {
		k.hashes = append(k.hashes, h)
	}
}

// read takes a text, unless it is too short to tell whose it is.
func (k *known) read(text string) {
	if k.text == "" {
		k.text = sameText(text)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); telling(line) {
			k.raw = append(k.raw, line)
		}
	}
}

// sameText makes texts comparable: lower case, single spaces; "" for one too short to tell.
func sameText(s string) string {
	s = strings.ToLower(strings.Join(strings.Fields(s), " "))
	if !telling(s) {
		return ""
	}
	return s
}

// telling reports whether a text is long enough to be nobody else's by chance.
func telling(s string) bool { return len(s) >= 15 && strings.Count(s, " ") >= 2 }

// mustGo marks a post as one whose content is looked for.
func (g *goneContent) mustGo(id manifest.PostID) {
	if g.posts == nil {
		g.of(id, string(id))
	}
	g.posts[id] = true
}

// index gathers what is known of the posts that must be gone. Called again when more is known.
func (g *goneContent) index() {
	g.hashes, g.lines = nil, nil
	for _, name := range slices.Sorted(maps.Keys(g.all)) {
		k := g.all[name]
		if !g.posts[k.id] {
			continue
		}
		for _, d := range k.digests {
			g.digests[d] = k
		}
		for _, h := range k.hashes {
			g.hashes = append(g.hashes, hashOf{h, k})
		}
		if k.text != "" {
			g.texts[k.text] = k
		}
		for _, line := range k.raw {
			g.lines = append(g.lines, lineOf{[]byte(line), k})
		}
	}
}

// nearBits is how many of the 64 bits may differ between an image and a copy of it that was made
// smaller or compressed again.
const nearBits = 8

// near returns what must be gone and has a hash close to h, the closest first in name; nil for none.
func (g *goneContent) near(h uint64) (best *known, apart int) {
	apart = nearBits + 1
	for _, known := range g.hashes {
		d := bits.OnesCount64(known.bits ^ h)
		if d < apart || d == apart && best != nil && known.of.name < best.name {
			best, apart = known.of, d
		}
	}
	return best, apart
}

// readRecords takes what the state has of every entry, and the files of the last export.
func (a *audit) readRecords(ctx context.Context) error {
	ws, s := a.Workspace, &a.stored
	s.files, s.own, s.dataset = map[string]workspace.Record{}, map[string]*known{}, map[string]string{}
	for rec, err := range ws.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return err
		}
		k := a.gone.of(rec.ID, entryName(rec.Key))
		if img := rec.Image; img != nil {
			s.images++
			s.files[ws.ImageName(rec.Key, img.Format)] = rec
			k.digests = append(k.digests, img.SHA256, img.OriginalSHA256)
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
		s.own[k.name] = k
	}
	note, err := ws.Meta(ctx, exportKey)
	if err != nil || note == "" {
		return err
	}
	var last export
	if err := json.Unmarshal([]byte(note), &last); err != nil {
		a.gap("", "state.db", "the note of the last export cannot be read: %v", err)
		return nil
	}
	for _, f := range last.Files {
		s.dataset[f.Name] = f.SHA256
	}
	return nil
}

// lookAtState finds what state.db still has of posts that must be gone.
func (a *audit) lookAtState(ctx context.Context) error {
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return err
		}
		e, name := a.posts[rec.ID], entryName(rec.Key)
		if e == nil || !a.mustBeGone(e) {
			continue
		}
		if rec.Image != nil {
			a.finding(FoundImage, name, "state.db", "what describes an image, its hashes among it, of a post that must be gone: %s", e.why())
		}
		if rec.Reading != nil && (rec.Reading.Text != "" || rec.Reading.Failed == nil) || rec.Earlier.Read {
			a.finding(FoundText, name, "state.db", "what was read off an image of a post that must be gone: %s", e.why())
		}
	}
	return nil
}

// mustBeGone reports whether stored content of a post is a finding. What is withheld until somebody
// confirms a mass removal is an open obligation, for 48 hours.
func (a *audit) mustBeGone(e *evidence) bool {
	if !e.workspace.Withheld || !e.workspace.State.Gone() || e.Because == "release" || e.Because == "tombstone" {
		return e.MustGo
	}
	return false
}

// imageKnown says whose an image is, of what must be gone; nil for none. own is the entry that it is
// said to be of, "" for none: an image that is that entry's by record is its own.
func (a *audit) imageKnown(body []byte, own string) (of *known, how string) {
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	mine := a.stored.own[own]
	if k := a.gone.digests[digest]; k != nil && (mine == nil || !mine.has(digest)) {
		return k, "byte for byte"
	}
	if mine != nil && mine.has(digest) || len(a.gone.hashes) == 0 {
		return nil, ""
	}
	p := a.policy
	p.Images = policy.Default().Images
	if _, fault := p.InspectImage(body); fault != nil {
		return nil, ""
	}
	img, err := policy.DecodeImage(body)
	if err != nil {
		return nil, ""
	}
	h, err := dedupe.HashImage(img)
	if err != nil || h.Flat {
		return nil, ""
	}
	return a.hashKnown(h.Bits, mine)
}

// hashKnown is imageKnown by a perceptual hash alone. Memes on one template are close to each other,
// so an image that is closer to its own entry's is that.
func (a *audit) hashKnown(h uint64, mine *known) (*known, string) {
	k, apart := a.gone.near(h)
	if k == nil || mine != nil && mine == k {
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
		return nil, fmt.Errorf("%d bytes, and at most %d are looked through", size, limit)
	}
	var b bytes.Buffer
	_, err := b.ReadFrom(io.NewSectionReader(r, 0, size))
	return b.Bytes(), err
}
