package audit

import (
	"bytes"
	"hash/maphash"
	"html"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"rehydrate/internal/picture"
)

// Texts spell images out in more ways than can be told: each program that writes a text into another one quotes,
// escapes or breaks it once more. What is done to them usually is undone, in any order. Where an image begins and none
// can be read, the audit says so: a text that it cannot read is no text without an image.

const (
	fewEscapes   = 16   // escapes: the text of an image has at least these
	spelledLeast = 2000 // bytes: the text of an image is longer than these
	spelledMarks = 250  // of these bytes: less than any image has, and more than what is printed of its beginning
	endOfImage   = 16 << 10
	longLine     = 64 << 10 // bytes: of an image that is broken into lines, one ends before
	undoDepth    = 3        // things that were done to a text one after the other
	mostForms    = 64       // texts that come of it
)

// spelled looks at images whose bytes a text spells out: with escapes, or with a character for each byte as JavaScript
// and Latin-1 have it.
func (w walker) spelled(p place, text []byte) {
	if countMarks(text) < fewEscapes { // nearly always
		return
	}
	if hasNoText(text) {
		w.narrow(p, text)
		return
	}
	w.carved, w.inexact = map[carved]bool{}, &[]*sighting{}
	read, most := map[digest]int{}, 0
	count := func(is func(digest) bool) (n int) {
		for d, times := range read {
			if is(d) {
				n += times
			}
		}
		return n
	}
	for form := range formsOf(text) {
		p := p
		if bytes.Contains(form.text, []byte(`""`)) { // if they are doubled, this is another image, which is in no row
			p.text = false
		}
		for d, n := range w.spelledIn(p, form) {
			if !form.guessed || w.isKnown(d) {
				read[d] = max(read[d], n)
			}
		}
		most = max(most, len(form.begun))
		// An image that is not known may be another one only because it was not read as it was written.
		if most > 0 && count(w.isKnown) >= most {
			return
		}
	}
	if most > count(func(digest) bool { return true }) {
		w.unreadImage(p)
		return
	}
	// What stands in a table is judged by its rows.
	others := slices.DeleteFunc(*w.inexact, func(s *sighting) bool { return w.isKnown(s.digests[1]) })
	if most > count(w.isKnown)+w.exact(read, others) && !p.text && !(p.label && !p.again) {
		for _, s := range others {
			s.unsure = true
		}
	}
}

// exact counts what was read and is in a format that would have shown if it had not been read as it was written.
func (w walker) exact(read map[digest]int, others []*sighting) (n int) {
	for d, times := range read {
		if !w.isKnown(d) && !slices.ContainsFunc(others, func(s *sighting) bool { return s.digests[1] == d }) {
			n += times
		}
	}
	return n
}

// unreadImage notes that an image begins in a text which cannot be read. A name may be cut off, and so is a cell of a
// text at its commas: it is looked at as a whole, too.
func (w walker) unreadImage(p place) {
	if cut := p.label && !p.again || p.table != nil && !p.table.typed; w.report.Known.MustGo > 0 && !cut {
		w.openOnce(p.src.where, p.String(), "look at it with the program that wrote it, or delete it",
			"an image that is spelled out in the text, in a way that cannot be read")
	}
}

// A carved is an image that was looked at, and whether as one that stands in a text.
type carved struct {
	digest
	text bool
}

// isKnown reports whether a digest is that of an entry's image.
func (a *audit) isKnown(d digest) bool { return a.gone.owner(d, true) != nil || a.gone.stays(d) }

// spelledIn looks at the images that a text spells out as it stands, and returns how often it found each.
func (w walker) spelledIn(p place, f form) map[digest]int {
	found := map[digest]int{}
	take := func(in map[digest]int) {
		for d, n := range in {
			found[d] = max(found[d], n)
		}
	}
	for _, e := range escapes[:2] {
		if bytes.Count(f.text, []byte{e.mark}) >= fewEscapes {
			take(w.carve(p.in("spelled bytes"), e.replace(f.closed(), resolveByte)))
		}
	}
	take(w.narrow(p, f.text))
	return found
}

// A form is a text as it stands, or as it was before something was done to it.
type form struct {
	text    []byte
	begun   []int // where images begin
	guessed bool  // other things may have been done to it than were undone
}

// closed returns the text with the end of a JPEG wherever an image cannot go on: at the end of a line, which no program
// that escapes bytes leaves in one, and where the quotes end in which an image begins. One that goes on there all the
// same was not read as it was written, and is none then: the other formats have sums, or lengths, that fail.
func (f form) closed() []byte {
	const end = "\xff\xd9"
	var out []byte
	done := 0
	for _, at := range f.begun {
		if at < max(done, 1) || !strings.ContainsRune(`'"`, rune(f.text[at-1])) || at > 1 && f.text[at-2] == '\\' {
			continue
		}
		close := at + endOfQuoted(f.text[at:], f.text[at-1])
		out, done = append(append(out, f.text[done:close]...), end...), close
	}
	return bytes.ReplaceAll(append(out, f.text[done:]...), []byte("\n"), []byte(end+"\n"))
}

// endOfQuoted returns where a text ends in a quote that is not escaped.
func endOfQuoted(text []byte, quote byte) int {
	for at := 0; ; at++ {
		next := bytes.IndexByte(text[at:], quote)
		if next < 0 {
			return len(text)
		}
		at += next
		if slashes := len(text[:at]) - len(bytes.TrimRight(text[:at], `\`)); slashes%2 == 0 {
			return at
		}
	}
}

// isMark has the bytes of which the text of an image has many: those of escapes, and of letters for bytes from 128 on.
var isMark = func() (s byteSet) {
	s['\\'], s['%'], s['&'] = true, true, true
	for b := utf8.RuneSelf; b < len(s); b++ {
		s[b] = true
	}
	return s
}()

func countMarks(text []byte) (n int) {
	for _, b := range text {
		if isMark[b] {
			n++
		}
	}
	return n
}

// goesOn reports whether an image that a text spells out may go on behind its end.
func goesOn(text []byte) bool {
	tail := text[max(0, len(text)-endOfImage):]
	return countMarks(tail)*spelledLeast >= len(tail)*spelledMarks
}

// beginnings returns where a text begins to spell out images, with so many marks in the bytes that follow, up to the
// next one.
func beginnings(text []byte, marks int) []int {
	var all, at []int
	for i, b := range text {
		ofRun := b == '\\' && i > 0 && text[i-1] == b
		if (isMark[b] || b == 'G' || b == 'R') && !ofRun && beginsImage(text[i:]) {
			all = append(all, i)
		}
	}
	for n, i := range all {
		end := min(len(text), i+spelledLeast)
		if n+1 < len(all) {
			end = min(end, all[n+1])
		}
		if countMarks(text[i:end]) >= marks {
			at = append(at, i)
		}
	}
	return at
}

// beginsImage reports whether a text begins as one does that spells out an image of a format that a run stores.
func beginsImage(text []byte) bool {
	if !mayBegin(text) {
		return false
	}
	var spelled []byte
	for range len(picture.MagicGIF) {
		b, size := spelledByte(text)
		if size == 0 {
			break
		}
		spelled, text = append(spelled, b), text[size:]
		if isMagic(spelled) {
			return true
		}
	}
	return false
}

// isMagic reports whether bytes begin as a format that a run stores.
func isMagic(b []byte) bool {
	return slices.ContainsFunc(storedMagic[:], func(magic string) bool {
		return bytes.HasPrefix(b, []byte(magic[:min(len(magic), len(picture.MagicGIF))]))
	})
}

// storedMagic has how the formats begin that a run stores: only they can be images of erased posts as they were
// published.
var storedMagic = [...]string{picture.MagicJPEG, picture.MagicPNG, picture.MagicGIF, picture.MagicRIFF}

// mayBegin is beginsImage by the first bytes alone, which nearly always tell that it does not.
func mayBegin(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	switch text[0] {
	case '\\':
		at := 1
		for at < len(text)-1 && text[at] == '\\' {
			at++
		}
		return text[at] == 'x' || text[at] == 'u' || isOctal[text[at]]
	case '%':
		return isHex[text[1]]
	case '&':
		return text[1] == '#' || text[1] == 'y' // an entity of its own
	case 'G', 'R':
		return text[1] == 'I'
	}
	letter := string(text[:2])
	return letter == "\u00ff" || letter == "\u0089" || letter == "\u2030"[:2] // as Windows-1252 has 0x89
}

// spelledByte returns the byte that a text begins to spell, however often its escape was escaped, and how much of the
// text that takes: 0 for none.
func spelledByte(text []byte) (b byte, size int) {
	if len(text) == 0 {
		return 0, 0
	}
	switch text[0] {
	case '\\':
		at := 1
		for at < len(text) && text[at] == '\\' {
			at++
		}
		n := backslashSize(text[at-1:])
		if n == 0 {
			return 0, 0
		}
		return escapedByte(text[at-1:at-1+n], at-1+n)
	case '%':
		at := 1
		for bytes.HasPrefix(text[at:], []byte("25")) {
			at += 2
		}
		if at+2 > len(text) || !isHex[text[at]] || !isHex[text[at+1]] {
			return 0, 0
		}
		return escapedByte(slices.Concat([]byte{'%'}, text[at:at+2]), at+2)
	case '&':
		n := entitySize(text)
		r, _ := utf8.DecodeRuneInString(html.UnescapeString(string(text[:n])))
		if b, is := byteOf(r); n > 0 && is {
			return b, n
		}
		return 0, 0
	}
	r, n := utf8.DecodeRune(text)
	if b, is := byteOf(r); is {
		return b, n
	}
	return 0, 0
}

// byteOf returns the byte that a character stands for in Latin-1, or in Windows-1252, which browsers take it for.
func byteOf(r rune) (b byte, is bool) {
	if r <= 0xff {
		return byte(r), true
	}
	return charmap.Windows1252.EncodeRune(r)
}

// escapedByte returns the byte that an escape stands for, with where it ends; 0 for none.
func escapedByte(escape []byte, end int) (b byte, size int) {
	raw := resolveByte(escape)
	r, _ := utf8.DecodeRune(raw)
	if b, is := byteOf(r); len(raw) > 1 && is {
		return b, end
	}
	if len(raw) != 1 {
		return 0, 0
	}
	return raw[0], end
}

// formsOf yields a text, and what it was before things were done to it that undoings undo: several one after the other
// where an image begins in it. It holds few at a time: they can be long.
func formsOf(text []byte) iter.Seq[form] {
	return func(yield func(form) bool) {
		whole := form{text: text, begun: beginnings(text, spelledMarks)}
		if !yield(whole) {
			return
		}
		seed := maphash.MakeSeed()
		seen := map[uint64]bool{maphash.Bytes(seed, text): true}
		for ways := [][]undoing{nil}; len(ways) > 0; ways = ways[1:] {
			f := whole
			for _, u := range ways[0] {
				f = u.of(f)
			}
			for _, u := range undoings {
				before := u.of(f)
				sum := maphash.Bytes(seed, before.text)
				if seen[sum] {
					continue
				}
				seen[sum] = true
				if !yield(before) || len(seen) == mostForms {
					return
				}
				if len(before.begun) > 0 && len(ways[0])+1 < undoDepth {
					ways = append(ways, append(slices.Clone(ways[0]), u))
				}
			}
		}
	}
}

// An undoing undoes what is done to the text of bytes before it is written. It returns the text that it gets where it
// has nothing to undo.
type undoing struct {
	undo    func(text []byte, begun []int) []byte
	guesses bool // another one may be what was done
}

func (u undoing) of(f form) form {
	plain := u.undo(f.text, f.begun)
	if len(plain) == 0 || len(plain) == len(f.text) && &plain[0] == &f.text[0] {
		return f
	}
	return form{plain, beginnings(plain, spelledMarks), f.guessed || u.guesses}
}

// undoings are for tables of text, SQL and YAML, which write a quote twice, shells, LaTeX as pandas writes it, pages,
// which have entities, strings within strings, which are escaped once more, lines that YAML or a terminal breaks, and
// the pieces of a long text in Python.
var undoings = []undoing{
	{undo: quoted(`""`)}, {undo: quotedOnceLess}, {undo: quoted(`'\''`)}, {undo: ofLaTeX},
	{undo: withoutEntities}, {undo: ofSurrogates}, {undo: escapedOnceLess}, {undo: unfolded}, {undo: inOnePiece},
	{undo: inOneLine},
	{undo: blanksForPlus, guesses: true}, {undo: withBlanks, guesses: true}, {undo: withoutEnds, guesses: true},
}

// quoted is the undoing of a quote that is written in this way within its like. What begins behind such quotes
// themselves ends at no quote any more.
func quoted(so string) func([]byte, []int) []byte {
	return func(text []byte, begun []int) []byte {
		if !bytes.Contains(text, []byte(so)) {
			return text
		}
		text = bytes.Clone(text)
		for _, at := range begun {
			if at > 0 && text[at-1] == so[0] && !bytes.HasSuffix(text[:at], []byte(so)) {
				text[at-1] = ' '
			}
		}
		return bytes.ReplaceAll(text, []byte(so), []byte(so[:1]))
	}
}

// quotedOnceLess gives a text with a quote for two, where the text of bytes is quoted so: in an image two quotes are
// two bytes.
func quotedOnceLess(text []byte, begun []int) []byte {
	if !quotedTwice.Match(text) {
		return text
	}
	return quoted("''")(text, begun)
}

var plainLaTeX = strings.NewReplacer(`\textbackslash `, `\`, `\textbackslash{}`, `\`, `\textasciitilde `, `~`,
	`\textasciicircum `, `^`, `\_`, `_`)

func ofLaTeX(text []byte, _ []int) []byte {
	if !bytes.Contains(text, []byte(`\textbackslash`)) {
		return text
	}
	return []byte(plainLaTeX.Replace(string(text)))
}

// ofSurrogates gives a text in which Python had surrogates for bytes that are no UTF-8 (PEP 383), with escapes for
// these bytes and as it stands else: there, \x85 is no byte, but a character.
func ofSurrogates(text []byte, _ []int) []byte {
	if !hasOne(text, `\udc`, `\uDC`, `\uDc`, `\udC`) { // nearly always
		return text
	}
	number := func(digits []byte) rune {
		n, _ := strconv.ParseUint(string(digits), 16, 16) // there is nothing else
		return rune(n)
	}
	return surrogates.ReplaceAllFunc(text, func(escape []byte) []byte {
		switch len(escape) {
		case len(`\xff`):
			return []byte(string(number(escape[2:])))
		case len(`\udcff`):
			return slices.Concat([]byte(`\x`), escape[4:])
		case len(`\ud83d\ude00`): // a character beyond them
			return []byte(string(utf16.DecodeRune(number(escape[2:6]), number(escape[8:]))))
		}
		return escape // an escaped backslash
	})
}

// escapedOnceLess gives a text as the one that it is a string of, if images in it were escaped more than once.
func escapedOnceLess(text []byte, begun []int) []byte {
	for _, at := range begun {
		first := text[at:min(len(text), at+spelledLeast)] // a GIF begins with letters
		if i := bytes.IndexByte(first, '\\'); i >= 0 && bytes.HasPrefix(first[i:], []byte(`\\`)) {
			return escapes[1].replace(text, resolve)
		}
		if i := bytes.IndexByte(first, '%'); i >= 0 && bytes.HasPrefix(first[i:], []byte("%25")) {
			return bytes.ReplaceAll(text, []byte("%25"), []byte("%"))
		}
	}
	return text
}

// blanksForPlus gives a text of an address, or of a form, in which a plus may stand for a blank.
func blanksForPlus(text []byte, begun []int) []byte {
	if len(begun) == 0 || !hasOne(text, "%FF%D8", "%ff%d8", "%89PNG", "GIF8", "RIFF") {
		return text
	}
	return bytes.ReplaceAll(text, []byte("+"), []byte("%20"))
}

// withBlanks joins the lines of images as YAML does, which breaks a line where a blank is.
func withBlanks(text []byte, begun []int) []byte {
	if !isBroken(text, begun) {
		return text
	}
	return endOfLine.ReplaceAll(text, []byte(" "))
}

// withoutEnds joins lines of images that were broken anywhere.
func withoutEnds(text []byte, begun []int) []byte {
	if !isBroken(text, begun) {
		return text
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r"), nil), []byte("\n"), nil)
}

// isBroken reports whether an image that a text spells out goes over the end of a line: none does as it is printed.
func isBroken(text []byte, begun []int) bool {
	for i, at := range begun {
		end := min(len(text), at+longLine)
		if i+1 < len(begun) {
			end = min(end, begun[i+1])
		}
		if brokenLine.Match(text[at:end]) {
			return true
		}
	}
	return false
}

func withoutEntities(text []byte, _ []int) []byte {
	if bytes.IndexByte(text, '&') < 0 {
		return text
	}
	return []byte(html.UnescapeString(string(text)))
}

func inOnePiece(text []byte, _ []int) []byte {
	if !hasOne(text, " b'", "\nb'", "\tb'", ` b"`, "\nb\"", "\tb\"") { // nearly always
		return text
	}
	return betweenPieces.ReplaceAll(text, nil)
}

func inOneLine(text []byte, _ []int) []byte {
	if !hasOne(text, `\n"`) || !hasOne(text, "b'", `b\"`, `b"`) {
		return text
	}
	return betweenLines.ReplaceAll(text, nil)
}

// unfolded joins the lines of a string that YAML or JavaScript goes on with behind a backslash. YAML does not count the
// blanks at the beginning of a line, unless they are escaped.
func unfolded(text []byte, _ []int) []byte {
	if !hasOne(text, "\\\n", "\\\r\n") { // nearly always
		return text
	}
	return foldedLine.ReplaceAll(text, []byte("$1"))
}

func hasOne(text []byte, of ...string) bool {
	return slices.ContainsFunc(of, func(s string) bool { return bytes.Contains(text, []byte(s)) })
}

var (
	quotedTwice = regexp.MustCompile(`''(?:\\|%)|'b"|''[^'"]{0,40}b"\\|'[\[({<A-Za-z][^'":,]{0,30}b"\\` +
		`|[\s,(=]E'\\|_binary '`)
	surrogates = regexp.MustCompile(`(?i)\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\udc[89a-f][0-9a-f]` +
		`|\\x[89a-f][0-9a-f]`)
	endOfLine     = regexp.MustCompile(`[ \t]*\r?\n[ \t]*`)
	brokenLine    = regexp.MustCompile(`[^'"\\,\s][ \t]*\r?\n[ \t]*[^'"\s]`)
	betweenPieces = regexp.MustCompile(`['"]\s+b['"]`)
	foldedLine    = regexp.MustCompile(`\\\r?\n[ \t]*(?:\\( ))?`)
	// Of a list of lines in JSON, as a notebook has it, each ends as a string does. A quote that was an entity has no
	// backslash.
	betweenLines = regexp.MustCompile(`(?:'|\\?")\s*\\n"\s*,\s*"\s*b(?:'|\\?")`)
)

// narrow looks at images of which a text has a character for each byte, as JavaScript and Latin-1 have it, and returns
// how often it found each.
func (w walker) narrow(p place, text []byte) map[digest]int {
	letters := 0 // from 128 on
	for at := 0; at+1 < len(text) && letters < fewEscapes; at++ {
		switch text[at] {
		case 0xc2, 0xc3, 0xe2:
			letters++
		case '\\':
			escape := text[at+1 : min(len(text), at+5)]
			if len(escape) == 4 && (bytes.HasPrefix(escape, []byte("u00")) && escape[3] > '7' || string(escape) == "U000" ||
				(escape[0] == 'u' || escape[0] == 'x') && escape[1] == '{' && escape[2] > '7') {
				letters++
			}
		}
	}
	if letters < fewEscapes { // nearly always
		return nil
	}
	p = p.in("bytes as letters")
	var out []byte
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if n := backslashSize(text[at:]); text[at] == '\\' && n > 0 {
			size = n
			raw := resolveByte(text[at : at+n])
			r, _ = utf8.DecodeRune(raw)
			if len(raw) == 1 {
				r = rune(raw[0])
			}
		}
		if b, is := byteOf(r); is {
			out = append(out, b)
		} else {
			out = append(out, text[at:at+size]...)
		}
		at += size
	}
	return w.carve(p, out)
}
