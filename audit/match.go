package audit

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
	"html"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"rehydrate/audit/caption"
	"rehydrate/internal/picture"
	"rehydrate/manifest"
)

const (
	searchBlock   = 1 << 20
	searchOverlap = 64 << 10 // the longest text that two blocks share
	minEncoded    = 86       // characters: 64 bytes in base64
	minLine       = 40       // of a line of them that goes on in the next one: words are shorter
	maxCarved     = 1000     // places of one kind in a block
	maxCell       = 64 << 10 // bytes of a cell that is searched for captions with the others of its column
	columnsMemory = 32 << 20 // bytes that those of a table take together; the cells of others are searched one by one
	minGap        = 1 << 10  // encoded bytes of an unknown kind are said from here on
	encodedPart   = " > encoded bytes"
	softHyphen    = '\u00ad'
)

// bytes searches bytes of any kind for all that a text may hold, and for images where they are no text, which is a gap.
func (w walker) bytes(p place, all *io.SectionReader) error {
	binary, blank, held, foreign := false, true, []byte(nil), int64(0)
	image := -1 // where the last image begins, in what is held, that a text spells out
	for at := int64(0); at < all.Size(); at += searchBlock {
		block, err := readAll(io.NewSectionReader(all, at, min(searchBlock, all.Size()-at)), searchBlock)
		if err := cmp.Or(err, w.ctx.Err()); err != nil {
			return err
		}
		seen := max(0, len(held)-spelledLeast)
		held = append(held, block...)
		if begun := beginnings(held[seen:], 0); len(begun) > 0 {
			image = seen + begun[len(begun)-1]
		}
		blank = blank && len(bytes.TrimLeft(block, "\x00")) == 0
		binary = binary || hasNoText(block)
		foreign += noUTF8(block)
		// Encoded bytes that may go on in the next block wait for their end.
		open := len(held) - packedFrom(held)
		last := at+searchBlock >= all.Size()
		if last {
			open = 0
		}
		if int64(open) > p.atOnce(2*maxImage) {
			return fmt.Errorf("encoded bytes of more than %d characters", open)
		}
		// So does an image that is spelled out.
		if n := len(held) - image; image >= 0 && !last && !binary && int64(n) <= p.atOnce(2*maxImage) && goesOn(held) {
			open = max(open, n)
		} else {
			image = -1
		}
		// Blocks overlap, so that what lies across two of them is seen whole once.
		w.search(p, held[:len(held)-open], at == 0, last)
		if binary {
			w.carve(p, held)
			w.search(p.in("UTF-16"), wideTexts(held), at == 0, last)
		}
		if last {
			break
		}
		done := max(0, len(held)-open-searchOverlap)
		for range 2 { // the rest of a line, and the lines behind it, are a part of what was seen whole
			line := len(held) - len(bytes.TrimLeft(held[done:], aroundLines+"\n"))
			if _, end := packedRun(held, line); end <= len(held)-open {
				done = end
			}
		}
		held, image = bytes.Clone(held[done:]), max(-1, image-done)
	}
	// A rule of dashes decodes as base64, too, and what comes out is in no encoding.
	if !binary && foreign > all.Size()/3 && !p.label && !strings.HasSuffix(p.part, encodedPart) {
		return errEncoding
	}
	// Zeros alone hold nothing: an archive of tar without a file, or what a disk lost.
	if !binary || blank || p.label || w.inMaking(p.src) ||
		strings.HasSuffix(p.part, encodedPart) && all.Size() < minGap {
		return nil
	}
	return &unreadFormat{"unknown binary format: only searched for plain text and images",
		"open it with its own program, or delete it"}
}

// packedFrom returns where the encoded characters begin with which a text ends, in one line or in several, which may be
// indented or quoted.
func packedFrom(text []byte) int {
	for from, last := len(text), true; ; last = false {
		end := from
		if !last {
			end-- // its end of line
		}
		begin := bytes.LastIndexByte(text[:end], '\n') + 1
		line := bytes.Trim(text[begin:end], aroundLines)
		packed := endOf(line, 0, &isPacked) == len(line)
		if packed && begin > 0 && (last || len(line) >= minLine) {
			from = begin
			continue
		}
		at := begin + len(bytes.TrimRight(text[begin:end], aroundLines))
		for tail := at; at > begin && isPacked[text[at-1]]; at-- {
			if last || tail-at >= minLine {
				from = at - 1
			}
		}
		return from
	}
}

// aroundLines is what may stand at both ends of a line of encoded characters.
const aroundLines = " \t\r\"',>+"

// errEncoding is the trouble with a text whose letters may be any, as in EBCDIC.
var errEncoding = &unreadFormat{"text in an unknown encoding: only searched for plain text", "save it as UTF-8"}

// noUTF8 counts the bytes that are no UTF-8. Of a text in Latin-1 they are few.
func noUTF8(block []byte) (n int64) {
	if utf8.Valid(block) {
		return 0
	}
	for len(block) > 0 {
		r, size := utf8.DecodeRune(block)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		block = block[size:]
	}
	return n
}

// A byteSet has the bytes of a kind: tables are several times as fast as functions, and all text goes through them.
type byteSet [256]bool

func setOf(bytes string) (s byteSet) {
	for _, b := range []byte(bytes) {
		s[b] = true
	}
	return s
}

const idBytes = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

var (
	isID     = setOf(idBytes)
	isPacked = setOf(idBytes + "+/-_") // in base64 of either alphabet, and so in hex
	isHex    = setOf("0123456789abcdefABCDEF")
	isOctal  = setOf("01234567")
	isNoText = setOf("\x00\x01\x02\x03\x04\x05\x06\x07\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1c\x1d\x1e\x1f")
)

// hasNoText reports whether bytes do not occur in text: compressed and other binary files have them.
func hasNoText(text []byte) bool {
	for _, b := range text {
		if isNoText[b] {
			return true
		}
	}
	return false
}

// endOf returns where characters of a kind end that begin at a place.
func endOf(text []byte, at int, is *byteSet) int {
	for at < len(text) && is[text[at]] {
		at++
	}
	return at
}

// words searches a text that stands beside the content of a container.
func (w walker) words(p place, text string) {
	p.label = true
	w.search(p, []byte(text), true, true)
}

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

// search searches a text. first and last say whether it is whole at its ends: a word there may be cut off.
func (w walker) search(p place, text []byte, first, last bool) {
	text = plainHex(text)
	w.ids(p, text, first, last)
	rest, plain := w.encoded(p, text), unescaped(text)
	if !bytes.Equal(plain, text) {
		w.ids(p, plain, first, last)
		rest = w.encoded(p, plain)
	}
	// A tag may stand within an address.
	if bytes.IndexByte(plain, '<') >= 0 {
		w.ids(p, withoutTags(plain), first, last)
	}
	w.lines(p, rest)
	w.parted(p, text, plain)
	w.spelled(p, text)
}

// plainHex gives bytes in hex, of which PostgreSQL prints all behind one mark, the mark that is no escape.
func plainHex(text []byte) []byte {
	var out []byte
	for at := bytes.Index(text, []byte(`\x`)); at >= 0; {
		end := endOf(text, at+2, &isHex)
		if end-at-2 >= minEncoded {
			if out == nil {
				out = bytes.Clone(text)
			}
			out[at] = '0'
		}
		next := bytes.Index(text[end:], []byte(`\x`))
		if next < 0 {
			break
		}
		at = end + next
	}
	if out == nil {
		return text
	}
	return out
}

// An escape is a way in which programs write what a text may not have.
type escape struct {
	mark byte
	size func(text []byte) int // of the escape that a text begins with, behind its mark; 0 for none
}

// escapes are those in addresses, C and JSON, HTML, and mail with its soft breaks. Programs write any bytes in the
// first two ways.
var escapes = []escape{{'%', percentSize}, {'\\', backslashSize}, {'&', entitySize}, {'=', quotedSize}}

func percentSize(b []byte) int {
	if len(b) >= 3 && isHex[b[1]] && isHex[b[2]] {
		return 3
	}
	return 0
}

func backslashSize(b []byte) int {
	digits := func(n int, is *byteSet) bool { return len(b) >= n && endOf(b[:n], 2, is) == n }
	switch {
	case len(b) < 2 || b[1] == '\n':
		return 0
	case b[1] == 'u' && digits(6, &isHex):
		return 6
	case b[1] == 'x' && digits(4, &isHex):
		return 4
	case b[1] == 'u' && bracedEscape.Match(b):
		return bytes.IndexByte(b, '}') + 1
	case isOctal[b[1]] && digits(4, &isOctal):
		return 4
	}
	_, size := utf8.DecodeRune(b[1:])
	return 1 + size
}

// bracedEscape is how JavaScript and Rust write a character by its number.
var bracedEscape = regexp.MustCompile(`^\\u\{[0-9A-Fa-f]{1,6}\}`)

func entitySize(b []byte) int {
	at := 1
	if len(b) > 1 && b[1] == '#' {
		at++
	}
	end := endOf(b[:min(len(b), at+9)], at, &isID)
	if end == at || end > at+8 || end == len(b) || b[end] != ';' {
		return 0
	}
	return end + 1
}

func quotedSize(b []byte) int {
	switch {
	case len(b) >= 3 && isHex[b[1]] && isHex[b[2]] && b[1] < 'a' && b[2] < 'a':
		return 3
	case len(b) >= 2 && b[1] == '\n':
		return 2
	case len(b) >= 3 && b[1] == '\r' && b[2] == '\n':
		return 3
	}
	return 0
}

// replace puts something in place of each escape of a text.
func (e escape) replace(text []byte, with func(escape []byte) []byte) []byte {
	var out []byte
	done := 0
	for at := bytes.IndexByte(text, e.mark); at >= 0 && at < len(text); {
		next := at + 1
		if n := e.size(text[at:]); n > 0 {
			out = append(append(out, text[done:at]...), with(text[at:at+n])...)
			done, next = at+n, at+n
		}
		at = bytes.IndexByte(text[next:], e.mark)
		if at >= 0 {
			at += next
		}
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// unescaped resolves escapes, what a terminal acts on, and letters in other forms.
func unescaped(text []byte) []byte {
	text = onTerminal(text)
	letters := func(escape []byte) []byte {
		if b := resolve(escape); !hasNoText(b) {
			return b
		}
		return []byte(" ")
	}
	for _, e := range escapes {
		text = e.replace(text, letters)
	}
	if bytes.ContainsFunc(text[firstWide(text):],
		func(r rune) bool { return (r >= 0x2000 || r == softHyphen) && r != utf8.RuneError }) {
		return bytes.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // it is not seen, and stands within words
				return -1
			}
			return r
		}, norm.NFKC.Bytes(text))
	}
	return text
}

// firstWide returns where the first character stands that is not ASCII, or the end.
func firstWide(text []byte) int {
	for i, b := range text {
		if b >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}

// withoutTags returns a text as it is seen without what stands in angle brackets, up to so much as programs write
// there: a tag at which a cell, a paragraph or a line begins or ends parts words, as a space does, and any other joins
// them.
func withoutTags(text []byte) []byte {
	const longest = 1000
	out := make([]byte, 0, len(text))
	for {
		open := bytes.IndexByte(text, '<')
		if open < 0 {
			return append(out, text...)
		}
		out, text = append(out, text[:open]...), text[open:]
		end := bytes.IndexAny(text[1:min(len(text), longest+2)], "<>")
		if end < 0 || text[1+end] == '<' {
			out, text = append(out, '<'), text[1:]
			continue
		}
		if partsWords(text[1 : 1+end]) {
			out = append(out, ' ')
		}
		text = text[2+end:]
	}
}

// partsWords reports whether the element of a tag is one of partingTags.
func partsWords(tag []byte) bool {
	tag = bytes.TrimPrefix(tag, []byte("/"))
	var name [32]byte // none of them is longer, with its namespace
	n := 0
	for n < len(tag) && n < len(name) && (isID[tag[n]] || tag[n] == '-' || tag[n] == ':') {
		name[n] = tag[n] | ' ' // in lower case; the signs have the bit already
		n++
	}
	if partingTags[string(name[:n])] {
		return true
	}
	_, local, _ := bytes.Cut(name[:n], []byte(":"))
	return partingTags[string(local)]
}

// partingTags are the elements that a reader sees apart from what stands beside them, in any namespace: of HTML, of
// Office and OpenDocument texts, spreadsheets and slides, and of SVG.
var partingTags = func() map[string]bool {
	tags := map[string]bool{}
	for name := range strings.FieldsSeq(`address article aside blockquote body br button caption center dd details dialog
		div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol
		optgroup option p pre script section select style summary table tbody td textarea tfoot th thead title tr ul
		c cell comment cr f is row rph si tab tc v
		covered-table-cell h line-break list-item text:s table-cell table-row
		desc text`) {
		tags[name] = true
	}
	return tags
}()

// resolve returns what an escape stands for.
func resolve(escape []byte) []byte {
	s := string(escape)
	switch s[0] {
	case '=', '%':
		raw, _ := hex.DecodeString(s[1:])
		return raw // nothing for a soft break
	case '&':
		return []byte(html.UnescapeString(s))
	}
	if strings.HasPrefix(s, `\u{`) {
		n, _ := strconv.ParseUint(s[3:len(s)-1], 16, 32) // of so few digits
		return []byte(string(rune(n)))
	}
	c, wide, _, err := strconv.UnquoteChar(s, 0)
	switch {
	case err != nil: // \' and the like
		return escape[1:]
	case wide:
		return []byte(string(c))
	}
	return []byte{byte(c)}
}

// resolveByte is resolve in what spells bytes: JavaScript, YAML and others have short marks for some of them.
func resolveByte(escape []byte) []byte {
	switch string(escape) {
	case `\0`:
		return []byte{0}
	case `\e`:
		return []byte{0x1b}
	case `\N`:
		return []byte{0x85}
	case `\_`:
		return []byte{0xa0}
	}
	return resolve(escape)
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
	// lineBreak finds what stands between two lines of encoded bytes, which may be quoted as in mail, or joined as in
	// programs, also where they are bytes of Python.
	lineBreak = regexp.MustCompile(`^(?:(?:[\s"',>+]*(?:\\?\n|\\[rn]))+[\s"',>]*(?:b['"])?|[ \t]+)`)
	// listBreak finds what stands between two parts of an image in a list; what does not begin as an image may be
	// anything.
	listBreak   = regexp.MustCompile(`^["'] *, *["']`)
	packedImage = regexp.MustCompile(`^(?:iVBOR|/9j/|R0lGOD|UklGR|(?i:89504e47|ffd8ff|47494638|52494646))`)
	packed      = regexp.MustCompile(`[A-Za-z0-9+/]{86,}`)
	imageTag    = regexp.MustCompile(`<img [^>]*>`)
)

// keyEnd is what stands between a key and its value.
const keyEnd = `["'\\ ]{0,3}[:=>][>"'\\ \[({]{0,6}`

// matchDigest compares a digest that stands in a text.
func (w walker) matchDigest(p place, d digest) {
	if w.gone.owner(d, true) != nil && !p.lists() {
		w.record(&sighting{place: p, what: "its sha256", digests: []digest{d}})
	}
}

// lines searches for captions of removed posts. Those in cells of a table are searched for by column.
func (w walker) lines(p place, text []byte) {
	if !w.captions() || p.table != nil && p.col != nil && p.col.text != nil && len(text) <= maxCell {
		return
	}
	w.running(p, text)
}

// parted searches for captions where characters without width part words, and not only letters of one, and where the
// runs of a document do not part them.
func (w walker) parted(p place, text, plain []byte) {
	if !w.captions() {
		return
	}
	if spaced := withSpaces(text); spaced != nil {
		w.running(p, spaced)
	}
	if bytes.Contains(plain, []byte(":t>")) || bytes.Contains(plain, []byte("</t></r>")) {
		w.running(p, withoutTags(plain))
	}
}

// withSpaces returns a text with a space for each character without width, but for soft hyphens; nil if it has none.
func withSpaces(text []byte) []byte {
	parts := func(r rune) bool { return r != softHyphen && unicode.Is(unicode.Cf, r) }
	at := firstWide(text)
	if !bytes.ContainsFunc(text[at:], parts) {
		return nil
	}
	return bytes.Map(func(r rune) rune {
		if parts(r) {
			return ' '
		}
		return r
	}, text)
}

// running searches a text for captions, wherever it stands.
func (w walker) running(p place, text []byte) {
	t := w.texts.Get().(*caption.Text[*known])
	defer w.texts.Put(t)
	t.Write(text)
	w.recordCaptions(p, t)
}

// captions reports whether there are any that can be recognised.
func (a *audit) captions() bool { return a.gone.recognisable > 0 }

// recordCaptions notes the captions in a text.
func (w walker) recordCaptions(p place, t *caption.Text[*known]) {
	for _, hit := range t.End() {
		if p.table != nil {
			p = p.table.at(hit.At, p.col)
		}
		what := "its caption"
		if hit.Words < hit.Of {
			what = fmt.Sprintf("%d of the %d words of its caption", hit.Words, hit.Of)
		}
		w.finding(FoundText, hit.Owner.name, p, "%s", what)
	}
}

// encoded looks at bytes that stand in a text as base64, in one line or many, or as hex, and returns the rest of it.
func (w walker) encoded(p place, text []byte) (rest []byte) {
	done := 0
	for at, end := 0, 0; at < len(text); at = end + 1 {
		end = endOf(text, at, &isPacked)
		if end-at < minLine {
			continue
		}
		var run []byte
		run, end = packedRun(text, at)
		if isWords(text[at:end]) {
			continue
		}
		if n := len(run); n < minEncoded {
			// It may be a digest, behind a name of it as in sha256-...
			if raw := unpackText(run[max(0, n-43):]); len(raw) == 32 {
				w.matchDigest(p, digest(raw))
			}
			continue
		}
		rest, done = append(append(rest, text[done:at]...), ' '), end
		raw := unpackText(run)
		_, err := (meter{w}).Write(raw)
		inner := w
		inner.depth++
		w.lost(p, err)
		if err == nil && raw != nil {
			p := p
			p.label = p.label || listsDigests(text[at:end])
			p.part = strings.TrimSuffix(p.part, encodedPart) + encodedPart
			inner.scan(p, section(raw))
		}
	}
	return append(rest, text[done:]...)
}

// isWords reports whether characters that may be encoded bytes are words with signs between them, as in addresses and
// names of files: encoded bytes have capitals and digits anywhere.
func isWords(run []byte) bool {
	const most, few = 32, 5
	pieces, letters := 0, 0
	for piece := range bytes.FieldsFuncSeq(run, func(r rune) bool { return strings.ContainsRune("+/-_\r\n", r) }) {
		pieces++
		rest := bytes.TrimLeft(piece[1:], lowerLetters)
		if len(piece) <= most && (len(rest) == 0 || len(bytes.Trim(piece, upperLetters)) == 0) {
			letters += len(piece)
		}
	}
	return pieces >= few && letters*5 >= len(run)*3
}

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	upperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// listsDigests reports whether encoded bytes are digests in hex, one a line.
func listsDigests(run []byte) bool {
	line, _, more := bytes.Cut(run, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	_, err := hex.DecodeString(string(line))
	return more && err == nil && slices.Contains([]int{40, 56, 64, 96, 128}, len(line))
}

// packedRun returns the encoded characters from at on, without the breaks of long lines, and where they end.
func packedRun(text []byte, at int) (run []byte, end int) {
	for end = at; ; {
		from := end
		end = endOf(text, from, &isPacked)
		run = append(run, text[from:end]...)
		between := text[end:min(len(text), end+100)]
		next := end + len(lineBreak.Find(between))
		if next == end && packedImage.Match(run) {
			next = end + len(listBreak.Find(between))
		}
		if end-from < minLine || next == end || next == len(text) || !isPacked[text[next]] ||
			!isPart(run, text[next:endOf(text, next, &isPacked)]) {
			return run, end
		}
		end = next
	}
}

// isPart reports whether a line goes on with what is encoded in the lines before: hex does so only in hex. Else it is
// the name of what comes next.
func isPart(run, line []byte) bool {
	run = hexDigits(run)
	return endOf(run, 0, &isHex) < len(run) || endOf(line, 0, &isHex) == len(line)
}

// hexDigits is what is encoded in hex, without its mark.
func hexDigits(run []byte) []byte {
	return bytes.TrimPrefix(bytes.TrimPrefix(run, []byte("0x")), []byte("x"))
}

// unpackText decodes base64 of either alphabet, or hex; nil for neither.
func unpackText(run []byte) []byte {
	// Hex first: every text in hex is base64 as well, of other bytes.
	digits := hexDigits(run)
	if raw, err := hex.DecodeString(string(digits[:len(digits)&^1])); err == nil {
		return raw
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(string(run)))
	if err != nil && len(raw) < len(run)/2 {
		return nil
	}
	return raw
}

// carve looks at images and at what zlib packed, as in PDF, anywhere in bytes of an unknown kind. It returns how often
// it found each image.
func (w walker) carve(p place, block []byte) map[digest]int {
	w.depth++
	images, found := 0, map[digest]int{} // where the last one ends
	// The image formats that a run stores: only they can be images of erased posts as they were published.
	for _, magic := range []string{picture.MagicJPEG, picture.MagicPNG, picture.MagicGIF, picture.MagicRIFF} {
		w.each(p, block, magic, func(at int) {
			// Strip ends where the image does, so what follows in the block does not count.
			stripped, err := picture.Strip(block[at:], picture.Format(block[at:]))
			s := &sighting{place: p.in("image in it"), digests: []digest{{}, digestOf(stripped)}}
			// It is one if it can be decoded.
			is := carved{s.digests[1], p.text}
			if seen := err == nil && w.carved[is]; seen || err == nil && w.matchLooks(s, stripped) == nil && s.fault == "" {
				if !seen {
					w.record(s)
				}
				if w.carved != nil {
					w.carved[is] = true
				}
				images = max(images, at+len(stripped))
				found[s.digests[1]]++
			}
		})
	}
	for _, magic := range []string{"\x78\x01", "\x78\x5e", "\x78\x9c", "\x78\xda"} {
		w.each(p, block, magic, func(at int) {
			if at >= images || !bytes.HasSuffix(block[:at], []byte("IDAT")) { // else it is in an image that was looked at
				w.inflated(p, block[at+2:])
			}
		})
	}
	return found
}

// each hands on where some bytes begin in a block.
func (w walker) each(p place, block []byte, magic string, look func(at int)) {
	for at, n := 0, 0; ; at, n = at+1, n+1 {
		next := bytes.Index(block[at:], []byte(magic))
		if next < 0 {
			return
		}
		if n == maxCarved { // decoys would take days
			w.lost(p, fmt.Errorf("more than %d places in a block look like the beginning of an image or of packed bytes: "+
				"the others were not looked at", n))
			return
		}
		at += next
		look(at)
	}
}

// inflated looks at what comes out of bytes that begin as packed ones do, if it is more than chance gives.
func (w walker) inflated(p place, packed []byte) {
	in := bytes.NewReader(packed)
	out, end, err := w.unpack(flate.NewReader(in))
	defer end.Close()
	spent := errors.Is(err, errSpent)
	if spent {
		w.lost(p, err)
	}
	if (out.Size() >= 16 || err == nil && summed(out, in)) &&
		(err == nil || spent || errors.Is(err, io.ErrUnexpectedEOF)) {
		w.scan(p.in("packed bytes"), out)
	}
}

// summed reports whether behind packed bytes the sum stands of what came out of them, as zlib has it.
func summed(out *io.SectionReader, behind io.Reader) bool {
	sum, stands := adler32.New(), make([]byte, adler32.Size)
	_, err := io.Copy(sum, io.NewSectionReader(out, 0, out.Size()))
	_, cut := io.ReadFull(behind, stands)
	return err == nil && cut == nil && out.Size() > 0 && bytes.Equal(sum.Sum(nil), stands)
}
