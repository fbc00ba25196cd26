package audit

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/unicode/utf32"
)

var numpyHeader = regexp.MustCompile(`^\{'descr': '([<>|=])([USa])(\d{1,9})', .*'shape': \(([0-9, ]*)\)`)
var numpyNumbers = regexp.MustCompile(`^\{'descr': '[<>|=][iufb]\d{1,2}', .*'shape': \(([0-9]*,?)\)`)

// numpy looks at an array of texts, each of which is a row. A list of numbers says nothing; arrays of more dimensions
// may be pictures.
func (w walker) numpy(p place, all *io.SectionReader) error {
	unread := &unreadFormat{"it is NumPy of numbers or objects, which is not read here", todo[isNumPy]}
	start, err := readAll(io.NewSectionReader(all, 0, min(all.Size(), 64<<10)), 64<<10)
	if err != nil || len(start) < 12 {
		return unread
	}
	from := 10 + int(binary.LittleEndian.Uint16(start[8:]))
	if start[6] > 1 { // of version 2 and 3
		from = 12 + int(min(binary.LittleEndian.Uint32(start[8:]), 64<<10))
	}
	if from > len(start) {
		return unread
	}
	header := string(start[10:from])
	header = header[max(0, strings.IndexByte(header, '{')):] // version 2 has a longer length before it
	if numpyNumbers.MatchString(header) {
		return nil
	}
	array := numpyHeader.FindStringSubmatch(header)
	if array == nil {
		return unread
	}
	width, err := strconv.Atoi(array[3])
	if array[2] == "U" {
		width *= 4
	}
	if err != nil || width == 0 || int64(width) > p.atOnce(maxImage) {
		return unread
	}
	order := utf32.LittleEndian
	if array[1] == ">" {
		order = utf32.BigEndian
	}
	decoder, value := utf32.UTF32(order, utf32.IgnoreBOM).NewDecoder(), make([]byte, width)
	t, in := newTable(p), bufio.NewReader(io.NewSectionReader(all, int64(from), all.Size()-int64(from)))
	t.typed = false
	c := t.column("")
	for ; ; t.rows++ {
		_, err = io.ReadFull(in, value)
		if err != nil {
			break
		}
		text := value
		if array[2] == "U" {
			text, err = decoder.Bytes(value)
			if err != nil {
				break
			}
		}
		err = w.charge(rowCost + int64(width))
		if err != nil {
			break
		}
		w.scanValue(t, c, t.rows, strings.TrimRight(string(text), "\x00"))
	}
	w.finish(t)
	if err != io.EOF {
		return fmt.Errorf("row %d: %w", t.rows+1, err)
	}
	return w.ctx.Err()
}
