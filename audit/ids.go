package audit

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"strconv"
	"strings"

	"rehydrate/manifest"
)

// names judges a file or member by its name: the bytes of few003/1.jpg may match nothing that is known.
func (w walker) names(p place, name, kind string) {
	if p.part == "" && (p.src.mayName || w.storedAs(p) != nil) { // its record decides
		return
	}
	p.kin = map[bool]FindingKind{true: FoundImage, false: FoundRow}[kind == isImage]
	entry := w.entryNamed(name)
	if e := w.postOf(entry); e != nil {
		w.sees(p, e)
	}
	if p.unclear && kind != isImage { // else its bytes tell
		w.openUnclear(p)
	}
	if e := w.evidenceOn(entry); e != nil && e.MustGo && !p.unclear {
		switch {
		case p.own != "" && (telling(e.ID) || p.src.name != "" || isImageName.MatchString(path.Ext(name))):
			w.finding(FoundRow, entry, p, "its id as the file's name")
			return
		case p.own == "" && isImageName.MatchString(path.Ext(name)):
			w.openIDs(p)
		}
	}
	w.words(p, name)
}

// ids searches for ids and digests of posts that must be gone.
func (w walker) ids(p place, text []byte, first, last bool) {
	if w.report.Known.MustGo == 0 {
		return
	}
	// A page that lists outcomes names erased posts by right; only images in it can be wrong.
	if p.kin == "" && p.lists() {
		p.kin, first, last = FoundImage, true, true
		text = packed.ReplaceAll(bytes.Join(imageTag.FindAll(text, -1), []byte(" ")), []byte(" "))
	}
	for at, end := 0, 0; at < len(text); at = end + 1 {
		sum := uint32(0)
		for end = at; end < len(text) && isID[text[end]]; end++ {
			sum = sum*31 + uint32(text[end]|' ') // in lower case; the set has nothing else that would change
		}
		n := end - at
		switch {
		case at == 0 && !first || end == len(text) && !last:
		case n == 64: // a SHA-256 in hex, alone among other characters
			w.matchDigest(p, parseDigest(string(text[at:end])))
		case n >= 4 && n <= 13 && w.gone.ids[sum%idSums]: // as ids have; a word that is longer only contains one
			if e := w.posts[manifest.PostID(bytes.ToLower(text[at:end]))]; e != nil {
				entry, behind := string(e.ID), text[end:]
				before := text[max(0, at-beforeID):at]
				if e.losesImages() && (isUnclearNumber.Match(behind) || isNumberBefore.Match(before) && isFileName.Match(behind)) {
					if !p.unclear {
						w.openUnclear(p)
					}
					continue
				}
				if !e.MustGo { // an image of it may have to
					entry, behind = imageOf(e.ID, behind)
					e = w.removed[entry]
				}
				if e != nil && e.MustGo {
					w.matchWord(p, e, entry, before, behind)
				}
			}
		}
	}
}

// imageNumber finds that what stands behind an id makes it one image of a gallery, as 1n6oiw/2, 1n6oiw-2 and 1n6oiw_0
// are.
var imageNumber = regexp.MustCompile(`^[/_-](0|[1-9][0-9]{0,3})([^A-Za-z0-9]|$)`)

// isNumberBefore finds a number before an id in a name, as of who saves images in their order.
var isNumberBefore = regexp.MustCompile(`(?i)((^|[^A-Za-z0-9])([0-9]{1,3}(of[0-9]{1,3})?|first|second|third|last)` +
	`[ _.-]+(of[ _.-]+)?|[0-9][^\s/\\,;"'>=]{0,60}[ _.-]+)$`)

// isFileName finds the rest of the name of an image.
var isFileName = regexp.MustCompile(`(?i)^[^\s/\\]{0,40}\.(jpe?g|jpe|jfif|png|gif|webp|bmp|tiff?|avif)([^A-Za-z0-9]|$)`)

// isUnclearNumber finds one that does not: see isUnclear.
var isUnclearNumber = regexp.MustCompile(`^(_[1-9]|_0_[0-9]|[/_-]0[0-9])[0-9]{0,3}([^A-Za-z0-9]|$)`)

// imageOf returns the entry whose image the id of a post that stays names in a text, and what stands behind it; ""
// where only the post is named.
func imageOf(id manifest.PostID, behind []byte) (entry string, rest []byte) {
	m := imageNumber.FindSubmatchIndex(behind)
	switch {
	case m == nil && isImageName.Match(behind):
		return string(id), behind
	case m == nil:
		return "", behind
	}
	number, _ := strconv.Atoi(string(behind[m[2]:m[3]])) // of so few digits
	return manifest.Key{ID: id, Image: number}.String(), behind[m[3]:]
}

// matchWord judges the id of a removed post, or of one of its images, in a text, by what stands before and behind it.
func (w walker) matchWord(p place, e *evidence, entry string, before, behind []byte) {
	named := isKey.Match(before) || isImageName.Match(behind) || p.col != nil && p.col.ids
	switch {
	case telling(e.ID) || isReddit.Match(before) || named && p.src.ofRelease():
		what := itsID
		switch {
		case p.table != nil && p.row >= 0:
			what = itsRow
		case p.kin == FoundImage:
			what = "an image with its id in the name"
		case p.kin != "":
			what = "its id in the name"
		}
		w.finding(cmp.Or(p.kin, FoundRow), entry, p, "%s", what)
	// A column says what its numbers are, and so does the name of a file; but a copy of an image is often named so.
	case !p.label && (named || p.table == nil && !isFraction.Match(before)),
		p.label && p.kin == FoundImage && strings.ContainsAny(string(e.ID), "0123456789"):
		w.openIDs(p)
	}
}

// openIDs notes that words or numbers of a file are also ids of removed posts: once, wherever in the file they are.
func (w walker) openIDs(p place) {
	w.openOnce(p.src.where, p.String(), lookAtIDs, mayBeIDs)
}

// telling reports whether an id has digits and letters beyond hex, as no number and no word has: it does not stand
// somewhere by chance. Any other needs something of Reddit's, or other ids, beside it.
func telling(id manifest.PostID) bool {
	return strings.ContainsAny(string(id), "0123456789") && strings.ContainsAny(string(id), "ghijklmnopqrstuvwxyz")
}

// beforeID is how much is read of what stands before an id.
const beforeID = 100

var (
	// isReddit finds that what stands before an id is Reddit's: t3_, one of its addresses, or a key that names it. An
	// address may be a path alone; the host before it, if there is one, must be Reddit's or a mirror's of its paths.
	isReddit = regexp.MustCompile(`(?i)((^|[^a-z0-9])t3_` +
		`|(^|[^a-z0-9.-])(www\.)?redd\.it\\?/` +
		`|(^|[^a-z0-9-])reddit\.com\\?/([a-z0-9_-]+\\?/){0,2}(comments|gallery|tb)\\?/` +
		`|(^|[^a-z0-9./\\-])\\?/?(r|u|user)\\?/[a-z0-9_-]{1,21}\\?/comments\\?/` +
		`|reddit[_ -]?(post[_ -]?)?ids?` + keyEnd + `)$`)
	// isKey finds that what stands before an id is a key of ids.
	isKey = regexp.MustCompile(`(?i)(comments\\?/|gallery\\?/` +
		`|(^|[^a-z])((post|submission|link)[_ -]?)?ids?` + keyEnd + `)$`)
	// isImageName finds that what follows an id makes it the name of an image.
	isImageName = regexp.MustCompile(`(?i)^\.(jpe?g|png|gif|webp)\b`)
	// isFraction finds that digits are what follows the point of a number.
	isFraction = regexp.MustCompile(`[0-9]\.$`)
	packed     = regexp.MustCompile(`[A-Za-z0-9+/]{86,}`)
	imageTag   = regexp.MustCompile(`<img [^>]*>`)
)

// keyEnd is what stands between a key and its value.
const keyEnd = `["'\\ ]{0,3}[:=>][>"'\\ \[({]{0,6}`

// matchDigest compares a digest that stands in a text.
func (w walker) matchDigest(p place, d digest) {
	if w.gone.owner(d, true) != nil && !p.lists() {
		w.record(&sighting{place: p, what: "its sha256", digests: []digest{d}})
	}
}
