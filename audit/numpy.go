package audit

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/unicode/utf32"
)

// numpyHeader finds the type, the bytes of a value (letters of U) and the shape of an array of texts or numbers.
var numpyHeader = regexp.MustCompile(`^\{'descr': '([<>|=])([USaiufb])(\d{1,9})', .*'shape': \(([0-9, ]*)\)`)

const maxNumber = 16 // bytes

// A numpyArray is what the header of an array says.
type numpyArray struct {
	kind  string // U and S for texts, and others
	order utf32.Endianness
	width int64 // bytes of a value
	flat  bool  // it is a list, or one value
	from  int64 // where its values begin
	many  int64 // values
}

// numpyAt reads the header of the array that begins at a place. It reports false where the header names no texts or
// numbers.
func numpyAt(all io.ReaderAt, at int64) (a numpyArray, ok bool) {
	const longest = 64 << 10
	start := make([]byte, longest)
	n, err := all.ReadAt(start, at)
	start = start[:n]
	if err != nil && err != io.EOF || n < 12 {
		return a, false
	}
	size := 10 + int(binary.LittleEndian.Uint16(start[8:]))
	if start[6] > 1 { // of version 2 and 3
		size = 12 + int(min(binary.LittleEndian.Uint32(start[8:]), longest))
	}
	if size > n {
		return a, false
	}
	header := string(start[10:size])
	header = header[max(0, strings.IndexByte(header, '{')):] // version 2 has a longer length before it
	says := numpyHeader.FindStringSubmatch(header)
	if says == nil {
		return a, false
	}
	a = numpyArray{kind: says[2], order: utf32.LittleEndian, from: at + int64(size), many: 1}
	if says[1] == ">" {
		a.order = utf32.BigEndian
	}
	a.width, err = strconv.ParseInt(says[3], 10, 64)
	if a.kind == "U" {
		a.width *= 4
	}
	lengths := strings.FieldsFunc(says[4], func(r rune) bool { return r == ',' || r == ' ' })
	a.flat = len(lengths) < 2
	for _, length := range lengths {
		n, wrong := strconv.ParseInt(length, 10, 64)
		if wrong != nil || n > 0 && a.many > math.MaxInt64/n {
			return a, false
		}
		a.many *= n
	}
	return a, err == nil && a.width > 0 && a.many <= math.MaxInt64/a.width
}

// numpy looks at arrays of texts, each of which is a row, and at the bytes that a list of numbers spells: several may
// lie in a file, one behind the other. Arrays of more dimensions may be pictures.
func (w walker) numpy(p place, all *io.SectionReader) error {
	file, at := p, int64(0)
	for n := 1; at < all.Size(); n++ {
		rest := io.NewSectionReader(all, at, all.Size()-at)
		if n > 1 {
			p = file.in("array " + strconv.Itoa(n))
			if sniff(rest) != isNumPy {
				w.scan(file.in("behind its arrays"), rest)
				return nil
			}
		}
		a, ok := numpyAt(all, at)
		texts := strings.Contains("USa", a.kind)
		if !ok || !texts && (!a.flat || a.width > maxNumber) || texts && a.width > p.atOnce(maxImage) {
			w.raw(p, rest)
			return &unreadFormat{"it is NumPy of numbers or objects, which is not read here", todo[isNumPy]}
		}
		size := a.width * a.many
		if size > all.Size()-a.from {
			w.raw(p, rest)
			return fmt.Errorf("an array of %d bytes, of which %d are there", size, all.Size()-a.from)
		}
		if err := cmp.Or(w.charge(rowCost), w.ctx.Err()); err != nil {
			return err
		}
		w.raw(p, io.NewSectionReader(all, at, a.from-at))
		values, look := io.NewSectionReader(all, a.from, size), w.numpyNumbers
		if texts {
			w.raw(p, values)
			look = w.numpyTexts
		}
		if err := look(p, a, values); err != nil {
			return err
		}
		at = a.from + size
	}
	return nil
}

// numpyTexts looks at an array of texts.
func (w walker) numpyTexts(p place, a numpyArray, values *io.SectionReader) error {
	decoder, value := utf32.UTF32(a.order, utf32.IgnoreBOM).NewDecoder(), make([]byte, a.width)
	t, in := newTable(p), bufio.NewReader(values)
	t.typed = false
	c := t.column("")
	var err error
	for ; t.rows < a.many; t.rows++ {
		_, err = io.ReadFull(in, value)
		if err != nil {
			break
		}
		text := value
		if a.kind == "U" {
			text, err = decoder.Bytes(value)
			if err != nil {
				break
			}
		}
		err = w.charge(rowCost + a.width)
		if err != nil {
			break
		}
		w.scanValue(t, c, t.rows, strings.TrimRight(string(text), "\x00"))
	}
	w.finish(t)
	if err != nil {
		return fmt.Errorf("row %d: %w", t.rows+1, err)
	}
	return w.ctx.Err()
}

// numpyNumbers looks at the bytes that an array of numbers is of, and at those that its numbers are one by one.
func (w walker) numpyNumbers(p place, a numpyArray, values *io.SectionReader) error {
	content, err := w.content(p.in("spelled bytes"), values, a.width == 1, a.kind == "i")
	if content || err != nil {
		return err
	}
	w.raw(p, values)
	if a.width == 1 {
		return nil
	}
	numbers := &smallNumbers{numpyArray: a, in: bufio.NewReader(values), value: make([]byte, a.width)}
	spelled, end, err := w.unpack(numbers)
	defer end.Close()
	if errors.Is(err, errNoByte) {
		return nil
	}
	return cmp.Or(err, w.numbers(p, spelled, true, numbers.least < 0))
}

// smallNumbers reads the numbers of an array as bytes, as long as all of them fit into bytes with a sign, or all into
// bytes without.
type smallNumbers struct {
	numpyArray
	in          io.Reader
	value       []byte
	least, most int64
}

var errNoByte = errors.New("a number that is no byte")

func (s *smallNumbers) Read(out []byte) (n int, err error) {
	for ; n < len(out); n++ {
		if _, err := io.ReadFull(s.in, s.value); err != nil {
			return n, err
		}
		number := s.small(s.value)
		s.least, s.most = min(s.least, number), max(s.most, number)
		if s.least < math.MinInt8 || s.most > math.MaxUint8 || s.least < 0 && s.most > math.MaxInt8 {
			return n, errNoByte
		}
		out[n] = byte(number)
	}
	return n, nil
}

// small returns a value that is a small whole number, and a large number for any other.
func (a numpyArray) small(value []byte) int64 {
	if a.width > 8 {
		return math.MaxInt64
	}
	var bits uint64
	for i := range value {
		at := i
		if a.order == utf32.BigEndian {
			at = len(value) - 1 - i
		}
		bits |= uint64(value[at]) << (8 * i)
	}
	unused := 64 - 8*a.width
	switch {
	case a.kind == "i":
		return int64(bits<<unused) >> unused
	case a.kind == "f":
		number := math.Float64frombits(bits)
		if a.width == 4 {
			number = float64(math.Float32frombits(uint32(bits)))
		}
		if a.width >= 4 && number == math.Trunc(number) && math.Abs(number) <= math.MaxUint8 {
			return int64(number)
		}
		return math.MaxInt64
	}
	return int64(min(bits, math.MaxInt64))
}
