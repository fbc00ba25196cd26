package caption

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxLetters = 32   // bytes of a folded word: a longer one equals no word of a caption
	maxTag     = 1000 // bytes of a tag: what is longer is text
	foldedTo   = 0x3000
)

// Classes of bytes. A class from '0' on is a letter or a digit, which the class is in lower case.
const (
	between byte = iota
	joins        // an apostrophe
	opens        // <, which may open a tag
	slash        // \, before a letter that may stand for a line break
	wide         // a byte of a rune beyond ASCII
)

// classes of all bytes.
var classes = func() (c [256]byte) {
	for b := range c {
		switch {
		case b >= 'A' && b <= 'Z':
			c[b] = byte(b) + 'a' - 'A'
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9':
			c[b] = byte(b)
		case b >= utf8.RuneSelf:
			c[b] = wide
		}
	}
	c['\''], c['<'], c['\\'] = joins, opens, slash
	return c
}()

// A folded is what a rune beyond ASCII becomes: n bytes of text, in which a space stands for whatever parts words.
type folded struct {
	text  [10]byte
	n     uint8
	alone bool // its script has no spaces: every rune counts as a word
}

// folds has the runes below foldedTo, in which most alphabets are.
type folds [foldedTo]folded

func newFolds() *folds {
	f := new(folds)
	for r := rune(utf8.RuneSelf); r < foldedTo; r++ {
		f[r] = foldRune(r)
	}
	return f
}

// foldRune folds a rune: compatible forms become the plain one, letters small, and marks, such as accents, go.
func foldRune(r rune) (f folded) {
	switch {
	case unicode.Is(unicode.Cf, r), isApostrophe(r): // within a word, and not part of it
		return f
	case r == 'ß':
		return spell("ss")
	case r == 'œ' || r == 'Œ':
		return spell("oe")
	case r == 'æ' || r == 'Æ':
		return spell("ae")
	}
	var buf [utf8.UTFMax]byte
	plain := buf[:utf8.EncodeRune(buf[:], r)]
	if d := norm.NFKD.Properties(plain).Decomposition(); d != nil {
		plain = d
	}
	for len(plain) > 0 && int(f.n)+utf8.UTFMax <= len(f.text) {
		d, size := utf8.DecodeRune(plain)
		plain = plain[size:]
		switch {
		case d == '\'' || unicode.Is(unicode.Mn, d):
		case unicode.IsLetter(d) || unicode.IsDigit(d) || unicode.Is(unicode.Mc, d):
			d = unicode.ToLower(d)
			if d == 'ς' {
				d = 'σ'
			}
			f.alone = f.alone || isAlone(d)
			f.n += uint8(utf8.EncodeRune(f.text[f.n:], d))
		default:
			f.text[f.n] = ' '
			f.n++
		}
	}
	return f
}

func spell(letters string) (f folded) {
	f.n = uint8(copy(f.text[:], letters))
	return f
}

func isApostrophe(r rune) bool {
	switch r {
	case '\u2019', '\u2018', '\u02bc', '\u02b9', '\u2032', '\u00b4', '\uff07':
		return true
	}
	return false
}

// isAlone reports whether a letter is of a script that is written without spaces.
func isAlone(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r <= 0x0eff, // Thai, Lao
		r >= 0x1000 && r <= 0x109f, // Burmese
		r >= 0x1780 && r <= 0x17ff, // Khmer
		r >= 0x3005 && r <= 0x30ff, // Japanese
		r >= 0x31f0 && r <= 0x31ff,
		r >= 0x3400 && r <= 0x9fff, // Chinese
		r >= 0xf900 && r <= 0xfaff,
		r >= 0x20000 && r <= 0x3ffff:
		return true
	}
	return false
}

// A word is a folded word of a text.
type word struct {
	letters [maxLetters]byte
	n       int32  // bytes of it; more than letters holds for a word that is too long
	hash    uint32 // of the letters
	at      int64  // where it begins
	number  bool   // it has digits alone
}

func (w *word) text() []byte { return w.letters[:min(int(w.n), maxLetters)] }

const hashStart, hashPrime = 2166136261, 16777619 // FNV-1a

func (w *word) add(letter byte) {
	w.letters[w.n%maxLetters] = letter
	w.hash = (w.hash ^ uint32(letter)) * hashPrime
	w.n = min(w.n+1, maxLetters+1)
	w.number = w.number && letter <= '9'
}

// newWord returns a word of letters that are folded.
func newWord(letters string) (w word) {
	w.hash = hashStart
	for _, letter := range []byte(letters) {
		w.add(letter)
	}
	return w
}

// A scanner finds the words of a text that comes in pieces.
type scanner struct {
	folds *folds
	emit  func(*word)

	word    word
	open    bool  // word has letters
	slashed bool  // the last byte was a backslash
	at      int64 // of the next byte
	fixed   bool  // all words stand at at
	cut     [utf8.UTFMax]byte
	nCut    int // bytes of a rune that the last piece cut off
	inTag   bool
	tag     []byte // what was read since its <
}

// write reads a piece of the text.
func (s *scanner) write(p []byte) {
	if s.nCut > 0 {
		p = s.joinCut(p)
	}
	for len(p) > 0 {
		if s.inTag {
			p = s.readTag(p)
			continue
		}
		n := s.plain(p, true)
		p = p[n:]
		if n == 0 { // the beginning of a rune, which the next piece ends
			s.nCut = copy(s.cut[:], p)
			return
		}
	}
}

// joinCut reads the rune that the last piece cut off, and returns the rest of this piece.
func (s *scanner) joinCut(p []byte) []byte {
	n := copy(s.cut[s.nCut:], p)
	all := s.cut[:s.nCut+n]
	if !utf8.FullRune(all) {
		s.nCut += n
		return nil
	}
	_, size := utf8.DecodeRune(all)
	used := max(0, size-s.nCut)
	joined := append([]byte(nil), all[:max(size, s.nCut)]...)
	s.nCut = 0
	s.raw(joined)
	return p[used:]
}

// raw reads bytes of which nothing more follows, whether in a tag or not.
func (s *scanner) raw(p []byte) {
	for len(p) > 0 {
		if s.inTag {
			p = s.readTag(p)
			continue
		}
		n := s.plain(p, true)
		if n == 0 { // half a rune
			s.end()
			s.skip(1)
			n = 1
		}
		p = p[n:]
	}
}

// plain reads text up to a tag, if tags may be in it, or up to a rune that p cuts off, and returns how much it read.
func (s *scanner) plain(p []byte, tags bool) (n int) {
	if s.slashed && len(p) > 0 {
		n = escape(p)
	}
	s.slashed = false
	for n < len(p) {
		k := classes[p[n]]
		switch {
		case k >= '0':
			s.begin(n)
			n += s.ascii(p[n:])
		case k == between:
			s.end()
			for n++; n < len(p) && classes[p[n]] == between; n++ {
			}
		case k == wide:
			r, size := utf8.DecodeRune(p[n:])
			if r == utf8.RuneError && !utf8.FullRune(p[n:]) {
				s.skip(n)
				return n
			}
			s.rune(r, n)
			n += size
		case k == opens && tags:
			s.end()
			s.inTag, s.tag = true, append(s.tag[:0], '<')
			s.skip(n + 1)
			return n + 1
		case k == joins:
			n++
		case k == slash:
			s.end()
			n++
			s.slashed = n == len(p)
			n += escape(p[n:])
		default: // a < in a tag that is none
			s.end()
			n++
		}
	}
	s.skip(n)
	return n
}

// escape returns how many letters there are of what programs write for white space, behind its backslash.
func escape(p []byte) int {
	if len(p) > 0 && (p[0] == 'n' || p[0] == 'r' || p[0] == 't') {
		return 1
	}
	return 0
}

// ascii reads the letters that p begins with, and returns how many.
func (s *scanner) ascii(p []byte) (n int) {
	w, length, hash, all := &s.word, int(s.word.n), s.word.hash, byte(0)
	for n < len(p) {
		k := classes[p[n]]
		if k < '0' {
			break
		}
		w.letters[(length+n)%maxLetters] = k
		hash = (hash ^ uint32(k)) * hashPrime
		all |= k // 0x40 is in letters alone
		n++
	}
	w.n, w.hash = int32(min(length+n, maxLetters+1)), hash
	w.number = w.number && all&0x40 == 0
	return n
}

// rune reads a rune beyond ASCII that begins behind bytes behind at.
func (s *scanner) rune(r rune, behind int) {
	var f folded
	switch {
	case r == utf8.RuneError:
		s.end()
		return
	case r < foldedTo:
		f = s.folds[r]
	default:
		f = foldRune(r)
	}
	if f.alone {
		s.end()
	}
	for _, b := range f.text[:f.n] {
		if b == ' ' {
			s.end()
			continue
		}
		s.begin(behind)
		s.word.add(b)
	}
	if f.alone {
		s.end()
	}
}

func (s *scanner) skip(n int) {
	if !s.fixed {
		s.at += int64(n)
	}
}

// begin begins a word, if none is open, that begins behind bytes behind at.
func (s *scanner) begin(behind int) {
	if s.open {
		return
	}
	s.open = true
	s.word.n, s.word.hash, s.word.number, s.word.at = 0, hashStart, true, s.at
	if !s.fixed {
		s.word.at += int64(behind)
	}
}

func (s *scanner) end() {
	if !s.open {
		return
	}
	s.open = false
	if !s.word.number {
		s.emit(&s.word)
	}
}

// readTag reads on in what may be a tag, and returns what is behind it.
func (s *scanner) readTag(p []byte) []byte {
	if len(s.tag) == 1 && !('a' <= p[0]|0x20 && p[0]|0x20 <= 'z' || p[0] == '/' || p[0] == '?') { // as in a < b
		s.inTag = false
		return p
	}
	room := min(len(p), maxTag-len(s.tag))
	end := bytes.IndexAny(p[:room], "<>")
	switch {
	case end >= 0 && p[end] == '>':
		s.tag = append(s.tag, p[:end]...)
		s.inTag = false
		s.skip(end + 1)
		s.attributes(s.tag)
		return p[end+1:]
	case end >= 0 || room < len(p): // it was none
		end = max(end, 0)
		s.tag = append(s.tag, p[:end]...)
		s.skip(end)
		s.noTag()
		return p[end:]
	}
	s.tag = append(s.tag, p...)
	s.skip(len(p))
	return nil
}

// noTag reads what looked like a tag as the text that it is.
func (s *scanner) noTag() {
	s.inTag = false
	s.inside(s.tag[1:], len(s.tag)-1)
}

// inside reads a piece that begins back bytes before at. It is whole: no rune of it goes on behind it.
func (s *scanner) inside(piece []byte, back int) {
	at := s.at
	if !s.fixed {
		s.at -= int64(back)
	}
	for len(piece) > 0 {
		n := s.plain(piece, false)
		if n == 0 {
			s.end()
			s.skip(1)
			n = 1
		}
		piece = piece[n:]
	}
	s.at = at
}

// shown are the attributes whose values are words that a reader sees, or that an OCR program read.
var shown = []string{
	"content", "alt", "title", "text", "value", "label", "aria-label", "caption", "placeholder", "summary",
}

// attributes reads the values of a tag's attributes that are words. hOCR has coordinates in title.
func (s *scanner) attributes(tag []byte) {
	for rest := tag; ; {
		eq := bytes.IndexByte(rest, '=')
		if eq < 0 {
			return
		}
		name := bytes.TrimRight(rest[:eq], " \t\r\n")
		name = name[bytes.LastIndexAny(name, " \t\r\n\"'/")+1:]
		rest = bytes.TrimLeft(rest[eq+1:], " \t\r\n")
		end, quoted := bytes.IndexAny(rest, " \t\r\n"), 0
		if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
			end, quoted = bytes.IndexByte(rest[1:], rest[0])+1, 1
		}
		if end < quoted || end <= 0 {
			end = len(rest)
		}
		value := rest[min(quoted, len(rest)):end]
		if isShown(name) && !bytes.HasPrefix(value, []byte("bbox ")) && !bytes.HasPrefix(value, []byte("image ")) {
			s.end()
			s.inside(value, len(rest)-quoted+1)
			s.end()
		}
		rest = rest[end:]
	}
}

func isShown(name []byte) bool {
	return slices.ContainsFunc(shown, func(of string) bool { return bytes.EqualFold(name, []byte(of)) })
}

// flush ends the text.
func (s *scanner) flush() {
	if s.inTag {
		s.noTag()
	}
	s.end()
	s.slashed = false
	s.skip(s.nCut) // bytes that are no rune
	s.nCut = 0
}
