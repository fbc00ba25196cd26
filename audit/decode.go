package audit

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// wideTexts returns the texts in UTF-16 of either order that lie in bytes of any kind, each on a line: those that begin
// with four letters of an alphabet of Europe, digits or signs.
func wideTexts(held []byte) (texts []byte) {
	const least, lastLetter = 4, 0x5ff
	// The mark of a text in Exif ends as a letter in UTF-16 does.
	held = bytes.ReplaceAll(held, []byte("UNICODE\x00"), []byte("UNICODE\a"))
	end := func(order binary.ByteOrder, at int) int {
		for n := 0; at+1 < len(held); n++ {
			r := rune(order.Uint16(held[at:]))
			if n < least && r > lastLetter || !unicode.IsPrint(r) && !unicode.IsSpace(r) &&
				!utf16.IsSurrogate(r) && !unicode.Is(unicode.Cf, r) {
				break
			}
			at += 2
		}
		return at
	}
	done := 0
	for at := 0; at+2*least <= len(held); {
		// Most bytes begin no text: the upper byte of its second and third letter stands at the same place of both, and
		// the second letter is not zero.
		second := held[at+2 : at+5]
		big, little := max(second[0], second[2]), max(second[1], held[at+5])
		if min(big, little) > lastLetter>>8 || second[0]|second[1]|second[2] == 0 {
			at++
			continue
		}
		// Latin letters of one order read the same in the other, a byte later; other signs do not.
		from, to, order := at, end(binary.BigEndian, at), binary.ByteOrder(binary.BigEndian)
		if to-from < 2*least || end(binary.LittleEndian, at+1) > to+1 {
			for _, start := range []int{at, at + 1} {
				if n := end(binary.LittleEndian, start); n-start > to-from {
					from, to, order = start, n, binary.LittleEndian
				}
			}
		}
		if to-from < 2*least {
			at++
			continue
		}
		// A word that the bytes cut off stays cut off.
		if from > 1 {
			texts = append(texts, '\n')
		}
		var units []uint16
		for ; from < to; from += 2 {
			units = append(units, order.Uint16(held[from:]))
		}
		texts = append(texts, string(utf16.Decode(units))...)
		at, done = to, to
	}
	if done < len(held)-1 {
		texts = append(texts, '\n')
	}
	return texts
}

const (
	escapeKey = '\x1b'
	backspace = '\b'
)

// onTerminal returns a text as a terminal shows it: without colours and titles, and without letters that others are
// written over.
func onTerminal(text []byte) []byte {
	at := bytes.IndexAny(text, "\x1b\b")
	if at < 0 {
		return text
	}
	out := bytes.Clone(text[:at])
	for at < len(text) {
		switch c := text[at]; c {
		case escapeKey:
			at += terminalSize(text[at:])
		case backspace:
			if r, size := utf8.DecodeLastRune(out); r != '\n' {
				out = out[:len(out)-size]
			}
			at++
		default:
			out = append(out, c)
			at++
		}
	}
	return out
}

// terminalSize returns the size of the control sequence of ECMA-48 that a text begins with.
func terminalSize(text []byte) int {
	const longest = 64 // bytes of a sequence without a text in it
	if len(text) < 2 {
		return len(text)
	}
	ends := func(at int, is func(b byte) bool) int {
		for ; at < min(len(text), longest); at++ {
			if b := text[at]; !is(b) {
				if b >= '0' && b <= '~' {
					return at + 1
				}
				break
			}
		}
		return 1
	}
	switch text[1] {
	case '[':
		return ends(2, func(b byte) bool { return b >= ' ' && b <= '?' })
	case ']', 'P', 'X', '^', '_': // a text up to its mark
		end := 2 + bytes.IndexAny(text[2:], "\a\x1b\n")
		switch {
		case end < 2 || text[end] == '\n':
			return 2
		case text[end] == escapeKey && end+1 < len(text) && text[end+1] == '\\':
			return end + 2
		case text[end] == escapeKey:
			return end
		default:
			return end + 1
		}
	}
	return ends(1, func(b byte) bool { return b >= ' ' && b <= '/' })
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
	case b[1] == 'U' && digits(10, &isHex):
		return 10
	case (b[1] == 'u' || b[1] == 'x') && bracedEscape.Match(b):
		return bytes.IndexByte(b, '}') + 1
	case isOctal[b[1]] && digits(4, &isOctal):
		return 4
	}
	_, size := utf8.DecodeRune(b[1:])
	return 1 + size
}

// bracedEscape is how JavaScript and Rust, and Perl with an x, write a character by its number.
var bracedEscape = regexp.MustCompile(`^\\[ux]\{[0-9A-Fa-f]{1,6}\}`)

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
	if len(s) > 3 && s[2] == '{' {
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
	// Python has a surrogate for a byte that is no UTF-8 (PEP 383).
	if len(escape) == len(`\udc80`) && strings.EqualFold(string(escape[:4]), `\udc`) && escape[4] > '7' {
		b, _ := hex.DecodeString(string(escape[4:]))
		return b
	}
	return resolve(escape)
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

const softHyphen = '\u00ad'

// firstWide returns where the first character stands that is not ASCII, or the end.
func firstWide(text []byte) int {
	for i, b := range text {
		if b >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
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
