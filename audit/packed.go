package audit

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/picture"
)

const (
	minEncoded  = 86   // characters: 64 bytes in base64
	minLine     = 40   // of a line of them that goes on in the next one: words are shorter
	maxCarved   = 1000 // places of one kind in a block
	encodedPart = " > encoded bytes"
)

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
	hex := true // so far
	for end = at; ; {
		from := end
		end = endOf(text, from, &isPacked)
		run = append(run, text[from:end]...)
		hex = hex && isAllHex(hexDigits(text[from:end]))
		between := text[end:min(len(text), end+100)]
		next := end + len(lineBreak.Find(between))
		if next == end && packedImage.Match(run) {
			next = end + len(listBreak.Find(between))
		}
		if end-from < minLine || next == end || next == len(text) || !isPacked[text[next]] ||
			bytes.HasPrefix(text[next:], []byte("--")) || // what parts a mail
			hex && !isAllHex(text[next:endOf(text, next, &isPacked)]) { // hex goes on in hex: that names what comes next
			return run, end
		}
		end = next
	}
}

var (
	// lineBreak finds what stands between two lines of encoded bytes, which may be quoted as in mail, or joined as in
	// programs, also where they are bytes of Python.
	lineBreak = regexp.MustCompile(`^(?:(?:[\s"',>+]*(?:\\?\n|\\[rn]))+[\s"',>]*(?:b['"])?|[ \t]+)`)
	// listBreak finds what stands between two parts of an image in a list; what does not begin as an image may be
	// anything.
	listBreak   = regexp.MustCompile(`^["'] *, *["']`)
	packedImage = regexp.MustCompile(`^(?:iVBOR|/9j/|R0lGOD|UklGR|(?i:89504e47|ffd8ff|47494638|52494646))`)
)

func isAllHex(text []byte) bool { return endOf(text, 0, &isHex) == len(text) }

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

// carve looks at images and at what zlib packed, as in PDF, anywhere in bytes of an unknown kind. It returns how often
// it found each image.
func (w walker) carve(p place, block []byte) map[digest]int {
	w.depth++
	images, found := 0, map[digest]int{} // where the last one ends
	for _, magic := range storedMagic {
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
				// PNG has sums, and GIF lengths, of which one fails. Of these two formats any bytes are a picture.
				if !seen && w.inexact != nil && (magic == picture.MagicJPEG || magic == picture.MagicRIFF) {
					*w.inexact = append(*w.inexact, s)
				}
				if w.carved != nil {
					w.carved[is] = true
				}
				images = max(images, at+len(stripped))
				found[s.digests[1]]++
			}
		})
	}
	w.carved, w.inexact = nil, nil // what was packed is another text
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
