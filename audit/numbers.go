package audit

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"rehydrate/internal/picture"
)

const (
	fewBytes   = 128                   // numbers: no image has fewer bytes
	manyPixels = iconSide*iconSide + 1 // numbers: a picture of fewer pixels is known by nobody
)

// A byteList is a list of numbers that may be bytes.
type byteList struct {
	raw         []byte
	all         int // numbers, and what else is listed
	least, most int64
}

// add adds a number, which is no byte below -128 and above 255: languages whose bytes have a sign write those above 127
// as negative numbers.
func (l *byteList) add(n int64) {
	if n >= math.MinInt8 && n <= math.MaxUint8 && len(l.raw) < maxImage {
		l.raw, l.least, l.most = append(l.raw, byte(n)), min(l.least, n), max(l.most, n)
	}
}

// list looks at the bytes that a list spells.
func (w walker) list(p place, l byteList) error {
	if len(l.raw) < fewBytes { // as most lists
		return nil
	}
	whole := len(l.raw) == l.all && (l.least == 0 || l.most <= math.MaxInt8)
	return w.numbers(p, section(l.raw), whole, l.least < 0)
}

// numbers looks at the bytes that a list of numbers spells: as at any others if they are content, and else for images
// and plain text.
func (w walker) numbers(p place, spelled *io.SectionReader, whole, signed bool) error {
	p = p.in("spelled bytes")
	content, err := w.content(p, spelled, whole, signed)
	if content || err != nil || spelled.Size() < fewBytes {
		return err
	}
	body, err := readAll(io.NewSectionReader(spelled, 0, min(spelled.Size(), maxImage)), maxImage)
	w.depth++
	w.carve(p, body)
	w.ids(p, body, true, true)
	w.lines(p, body)
	return err
}

// content looks at the bytes that a list of numbers spells if they are content like any other, and reports whether they
// are: they begin as a format does, are a text, or go on as pixels or packed bytes do. Others, such as labels, scores
// and counts, are no gap. whole says that all numbers fit into a byte, and signed that some may be below zero.
func (w walker) content(p place, spelled *io.SectionReader, whole, signed bool) (is bool, err error) {
	if spelled.Size() < fewBytes {
		return false, nil
	}
	is = beginsAsFormat(spelled)
	if !is {
		is, err = isText(spelled)
		p.label = p.label || is // its encoded bytes may be numbers that are letters by chance
	}
	if err == nil && whole && !is {
		is, err = isContent(spelled, signed)
	}
	if is && err == nil {
		w.depth++
		w.scan(p, spelled)
	}
	return is, err
}

// A notation is a way in which programs write bytes as numbers.
type notation int

const (
	decimals  notation = iota // those above 127 may be below zero
	indexed                   // each behind its place: {"0":255,"1":216}
	hexMarked                 // 0xff
	hexPairs                  // ff
)

// written looks at images whose bytes stand in a text as numbers: in the code of programs, in logs, in dumps, and in
// JSON that is a part of something else.
func (w walker) written(p place, text []byte) {
	for done := 0; ; {
		at, n := nextWritten(text[done:])
		at += done
		if at == len(text) {
			return
		}
		raw, size := n.bytes(text[at:], nil, maxImage)
		done = at + size
		if len(raw) < fewBytes { // it is only the beginning of one
			continue
		}
		found := w.carve(p.in("spelled bytes"), raw)
		within := bytes.ContainsAny(text[max(0, at-8):at], "0123456789") // other numbers, by chance
		if len(found) == 0 && len(raw) >= spelledMarks && !within {
			w.unreadImage(p)
		}
	}
}

// writtenFrom returns where the image begins that a text has as numbers and that may go on behind its end; the end if
// there is none.
func writtenFrom(text []byte) int {
	for done := 0; ; {
		at, n := nextWritten(text[done:])
		at += done
		if at == len(text) {
			return at
		}
		_, size := n.bytes(text[at:], nil, maxImage)
		done = at + size
		if len(text)-done < longestGap {
			return at
		}
	}
}

// mayBeWritten reports whether a text has the beginning of an image as numbers.
func mayBeWritten(all *io.SectionReader) (bool, error) {
	const beginning = 4 * longestGap // with its first bytes
	for at := int64(0); at < all.Size(); at += searchBlock {
		block, err := readAll(io.NewSectionReader(all, at, min(searchBlock+beginning, all.Size()-at)), searchBlock+beginning)
		if err != nil {
			return false, err
		}
		if begin, _ := nextWritten(block); begin < len(block) {
			return true, nil
		}
	}
	return false, nil
}

// nextWritten returns where the first image begins that a text has as numbers, and in which notation; the end if there
// is none.
func nextWritten(text []byte) (at int, n notation) {
	for at = range text {
		switch string(text[at:min(len(text), at+2)]) { // of nearly all numbers others
		case "25", "-1", "13", "71", "82", "07", "08":
			n = decimals
		case "0x", "0X":
			n = hexMarked
		case "ff", "FF", "fF", "Ff", "89", "47", "52":
			n = hexPairs
		default:
			continue
		}
		if at > 0 && (isID[text[at-1]] || strings.IndexByte("-._", text[at-1]) >= 0) {
			continue
		}
		if n.begins(text[at:]) {
			return at, n
		}
		if n == decimals && indexed.begins(text[at:]) {
			return at, indexed
		}
	}
	return len(text), decimals
}

// begins reports whether a text begins with an image.
func (n notation) begins(text []byte) bool {
	var first [len(picture.MagicGIF)]byte
	raw, _ := n.bytes(text, first[:0], len(first))
	// Behind its mark, a JPEG has another one: three numbers may be the colour of a pixel.
	return isMagic(raw) && (raw[0] != 0xff || len(raw) == len(first) && raw[len(first)-1] >= 0xc0)
}

// bytes reads the bytes with which a text begins, and returns how much of the text they take.
func (n notation) bytes(text, raw []byte, most int) (read []byte, end int) {
	for at := 0; len(raw) < most; {
		b, size := n.byte(text[at:])
		if size == 0 {
			break
		}
		raw, end = append(raw, b), at+size
		gap := n.gap(text[end:])
		at = end + gap
		if n == indexed && gap > 0 {
			size := endOf(text, at, &isDigit) - at
			if place, err := strconv.Atoi(string(text[at : at+size])); err != nil || place != len(raw) {
				break
			}
			gap = n.gap(text[at+size:])
			at += size + gap
		}
		if gap == 0 {
			break
		}
	}
	return raw, end
}

// byte reads a byte as a number, and returns how long that is: 0 for none.
func (n notation) byte(text []byte) (b byte, size int) {
	digits, is, base, sign := text[:min(len(text), len("-128.0")+1)], &isDigit, 10, 0
	switch {
	case n == hexMarked && len(digits) > 1 && digits[0] == '0' && digits[1]|' ' == 'x':
		is, base, sign = &isHex, 16, 2
	case n == hexMarked:
		return 0, 0
	case n == hexPairs:
		is, base = &isHex, 16
	case len(digits) > 0 && digits[0] == '-':
		sign = 1
	}
	size = endOf(digits, sign, is)
	number, err := strconv.ParseInt(string(digits[sign:size]), base, 16)
	if base == 10 {
		number -= 2 * number * int64(sign)
		size += len(digits[size:]) - len(bytes.TrimPrefix(digits[size:], []byte(".0")))
	}
	if err != nil || number < math.MinInt8 || number > math.MaxUint8 || n == hexPairs && size != 2 ||
		size < len(digits) && isID[digits[size]] && strings.IndexByte("uUL", digits[size]) < 0 {
		return 0, 0
	}
	return byte(number), size
}

// longestGap is how much programs write between two bytes.
const longestGap = 64

// gap returns how much of a text stands before its next number; 0 if there is none near. The place of a line in a dump
// is none.
func (n notation) gap(text []byte) (at int) {
	text = text[:min(len(text), longestGap)]
	switch n {
	case hexMarked:
		at = bytes.Index(text, []byte("0x"))
		if at < 0 {
			at = bytes.Index(text, []byte("0X"))
		}
		return max(0, at)
	case hexPairs:
		for at < len(text) && !isID[text[at]] && text[at] < utf8.RuneSelf && text[at] != '|' {
			at++
		}
		if at < len(text) && text[at] == '|' { // the characters beside
			at = bytes.IndexByte(text, '\n') + 1
		}
	default:
		for at = 1; at < len(text) && !(isDigit[text[at]] && !isID[text[at-1]]); at++ {
		}
		if at > 1 && at < len(text) && text[at-1] == '-' {
			at--
		}
	}
	if at >= len(text) {
		return 0
	}
	if place := endOf(text, at, &isHex); place-at >= len("00010") && bytes.IndexByte(text[:at], '\n') >= 0 {
		next := n.gap(text[place:])
		return (place + next) * min(1, next)
	}
	return at
}

// isText reports whether bytes are a text in UTF-8, and not numbers that happen to be those of letters: these are next
// to one another, and do not leap from signs to small letters.
func isText(all *io.SectionReader) (bool, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(all, 0, all.Size()), 64<<10)
	small, signs := int64(0), false
	for {
		r, size, err := in.ReadRune()
		switch {
		case err == io.EOF:
			return signs && small*4 >= all.Size(), nil
		case err != nil:
			return false, err
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf && isNoText[r]:
			return false, nil
		case r >= 'a' && r <= 'z':
			small++
		}
		signs = signs || r < '0'
	}
}

// beginsAsFormat reports whether bytes begin as those of a format do, and as no ordinary numbers do by chance: labels
// of zeros and ones begin as a font or an icon, and one vector in 65,536 has two bytes that stand for gzip.
func beginsAsFormat(all *io.SectionReader) bool {
	const bzip2Block, gzipFlags = "1AY&SY", 0x1f
	kind, magic := sniffed(all)
	head, _ := readAll(io.NewSectionReader(all, 0, min(all.Size(), 12)), 12)
	switch {
	case len(head) < 12 || kind == "":
		return false
	case kind == "gzip": // the method and the flags that there are
		return head[2] == 8 && head[3] <= gzipFlags
	case kind == isPickle && head[0] == 0x80: // a frame, or what the protocols before begin an object with
		return head[1] >= 4 && head[2] == '\x95' || head[1] < 4 && strings.IndexByte("]})(cXUKMJG\x8a\x88\x89N", head[2]) >= 0
	case kind == "bzip2":
		return string(head[4:10]) == bzip2Block
	case kind == arrowStream: // the size of the schema, and where in it its table begins
		size, table := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
		return size > 0 && size%8 == 0 && int64(size) < all.Size() && table > 0 && table%4 == 0 && table < size
	case magic == "":
		return true // it has more than its first bytes
	}
	seldom := 0
	for _, b := range []byte(magic) {
		if b > 1 && b < math.MaxUint8 {
			seldom++
		}
	}
	return seldom >= 3 && len(magic) >= 4
}

// isContent reports whether numbers from 0 to 255, or from -128 to 127, are rather pixels, or packed or encrypted
// bytes, than numbers of a table: neighbours of pixels are alike, and go up and down between dark and light; of packed
// bytes each value is as frequent as any other, and so is each step from one to the next.
func isContent(all *io.SectionReader, signed bool) (bool, error) {
	if all.Size() < minGap {
		return false, nil
	}
	// Pixels are grey, or of three or four colours each of which has its own values.
	lags := [...]int64{1, 3, 4}
	var classes [len(lags)][4]histogram
	var apart [len(lags)]int64 // the sums of how far each value is from the one before
	var steps histogram
	var last [4]byte
	falls, in := int64(0), bufio.NewReaderSize(io.NewSectionReader(all, 0, all.Size()), 64<<10)
	for n := range all.Size() {
		b, err := in.ReadByte()
		if err != nil {
			return false, err
		}
		for i, lag := range lags {
			classes[i][n%lag][b]++
			if n >= lag {
				apart[i] += int64(max(b, last[(n-lag)%4]) - min(b, last[(n-lag)%4]))
			}
		}
		if before := last[(n+3)%4]; n > 0 {
			steps[b-before]++
			if b < before {
				falls++
			}
		}
		last[n%4] = b
	}
	values := &classes[0][0]
	if values.even() && steps.even() {
		return true, nil
	}
	if all.Size() < manyPixels || falls*128 < all.Size() || !values.fromBlackToWhite(signed) {
		return false, nil
	}
	for i, lag := range lags {
		mean := 0.0
		for c := range lag {
			mean += classes[i][c].apart()
		}
		if 2*float64(apart[i]) < mean {
			return true, nil
		}
	}
	return false, nil
}

// A histogram has how often each byte occurs.
type histogram [math.MaxUint8 + 1]int64

func (h *histogram) total() (n int64) {
	for _, c := range h {
		n += c
	}
	return n
}

// even reports whether the bytes are as evenly distributed as packed ones: the squares of what they deviate by are
// those of chance, but for little.
func (h *histogram) even() bool {
	const little = 1.0 / 16
	n, squares := float64(h.total()), 0.0
	for _, c := range h {
		squares += float64(c) * float64(c)
	}
	return float64(len(h))*squares/(n*n)-1 < float64(len(h))/n+little
}

// fromBlackToWhite reports whether there are many different bytes, dark and light ones: so they are in pictures, and
// seldom in a series of numbers.
func (h *histogram) fromBlackToWhite(signed bool) bool {
	const many, dark, light = 32, 31, 224
	var seen []int
	for value, c := range h {
		if c > 0 && signed {
			value = int(int8(value)) - math.MinInt8
		}
		if c > 0 {
			seen = append(seen, value)
		}
	}
	return len(seen) >= many && slices.Min(seen) <= dark && slices.Max(seen) >= light
}

// apart returns how far each byte is from the one before if they come in any order, in sum.
func (h *histogram) apart() (sum float64) {
	n, below := h.total(), int64(0)
	for _, c := range h {
		below += c
		sum += 2 * float64(below) * float64(n-below)
	}
	return sum / float64(max(n, 1))
}
