package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"rehydrate/audit/caption"
)

const (
	searchBlock   = 1 << 20
	searchOverlap = 64 << 10 // the longest text that two blocks share
	minGap        = 1 << 10  // encoded bytes of an unknown kind are said from here on
)

// bytes searches bytes of any kind for all that a text may hold, and for images where they are no text, which is a gap.
func (w walker) bytes(p place, all *io.SectionReader) error {
	binary, blank, held, foreign := false, true, []byte(nil), int64(0)
	images := noneBegun
	for at := int64(0); at < all.Size(); at += searchBlock {
		block, err := readAll(io.NewSectionReader(all, at, min(searchBlock, all.Size()-at)), searchBlock)
		if err := cmp.Or(err, w.ctx.Err()); err != nil {
			return err
		}
		seen, last := max(0, len(held)-spelledLeast), at+searchBlock >= all.Size()
		held = append(held, block...)
		blank = blank && len(bytes.TrimLeft(block, "\x00")) == 0
		binary = binary || hasNoText(block)
		foreign += noUTF8(block)
		// Encoded bytes that may go on in the next block wait for their end.
		open := len(held) - packedFrom(held)
		if last {
			open = 0
		}
		if int64(open) > p.atOnce(2*maxImage) {
			return fmt.Errorf("encoded bytes of more than %d characters", open)
		}
		// So does an image that is spelled out.
		if !last && !binary {
			images = images.in(held, seen)
		}
		if n := images.open(held); last || binary || int64(n) > p.atOnce(2*maxImage) {
			images = noneBegun
		} else {
			open = max(open, n)
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
		held, images = bytes.Clone(held[done:]), images.behind(done)
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

// A begun is where the last image begins in a text that spells it out, and the first one that it has as numbers, which
// may go on behind its end; -1 for none.
type begun struct{ spelled, written int }

var noneBegun = begun{-1, -1}

// in looks at what is new in a text.
func (b begun) in(text []byte, seen int) begun {
	if at := beginnings(text[seen:], 0); len(at) > 0 {
		b.spelled = seen + at[len(at)-1]
	}
	if b.spelled >= 0 && !goesOn(text) {
		b.spelled = -1
	}
	if b.written < 0 {
		b.written = seen
	}
	b.written += writtenFrom(text[b.written:])
	if b.written == len(text) {
		b.written = -1
	}
	return b
}

// open returns how much of a text the images take.
func (b begun) open(text []byte) int {
	from := len(text)
	for _, at := range []int{b.spelled, b.written} {
		if at >= 0 {
			from = min(from, at)
		}
	}
	return len(text) - from
}

// behind is where they begin in a text without its beginning.
func (b begun) behind(done int) begun {
	return begun{max(-1, b.spelled-done), max(-1, b.written-done)}
}

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
	isDigit  = setOf("0123456789")
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
	w.written(p, text)
}

// words searches a text that stands beside the content of a container.
func (w walker) words(p place, text string) {
	p.label = true
	w.search(p, []byte(text), true, true)
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
