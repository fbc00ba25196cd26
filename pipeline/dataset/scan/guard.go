package scan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/internal/unpack"
)

// What the guard lets through. parquet-go allocates what a file claims: a footer length, a list length, the values of a
// page, the length of a run (six bytes can claim 2 GiB). Decoding takes up to twice what is counted.
const (
	maxFooterBytes   = 32 << 20
	maxFooterStructs = 1 << 19
	maxHeaderBytes   = 256 << 10 // a page header holds two bounds of its column
	maxChunkValues   = 1 << 24
	maxRowValues     = 1 << 20 // which are in memory together
	maxDepth         = 16      // of Thrift values in one another
	maxPathNames     = 1 << 21 // that the paths of all columns have
	maxPathBytes     = 32 << 20
)

// What a page may take, decompressed, in bytes; all that are held at a time take twice that. Writers that look at the
// size of a page once in 1,024 values put hundreds of pictures into one.
const (
	mostOfTable    = 32 << 20
	mostOfPictures = 256 << 20
	// Pictures shrink little: a small file that claims such pages wants memory, and has no pictures.
	mostRatio = 16
)

// mostOfFile is what a page of a file of so many bytes may take.
func mostOfFile(size int64) int64 { return min(mostOfPictures, max(mostOfTable, mostRatio*size)) }

// A guard checks every count that a Parquet file claims against what the file holds.
type guard struct {
	r    io.ReaderAt
	size int64
	most int64 // bytes of a page

	// The bounds of texts, that footer and pages say which were checked: false for the beginning of a value that was read.
	bounds  map[string]bool
	longest map[int]int // of each column: one that was cut short is as long as that
}

// longestBound is how much of a bound is kept: some writers do not cut them short, and a picture may be one.
const longestBound = 4 << 10

// leastCut is how long a bound is at least that counts as cut short: one that is no longer can be an id or a digest.
const leastCut = 65

// note keeps the bounds of a column of texts.
func (g *guard) note(col *parquet.Column, s format.Statistics) {
	if kind := col.Type().Kind(); kind != parquet.ByteArray && kind != parquet.FixedLenByteArray {
		return
	}
	for _, b := range [][]byte{s.Min, s.Max, s.MinValue, s.MaxValue} {
		bound := string(b[:min(len(b), longestBound)])
		if _, known := g.bounds[bound]; !known && bound != "" {
			g.bounds[bound] = true
		}
		g.longest[col.Index()] = max(g.longest[col.Index()], len(bound))
	}
}

// stands takes the beginning of a value that was read from the bounds of its column, for it says nothing that the value
// does not: also with its last byte one higher, as an upper bound has it.
func (g *guard) stands(col *parquet.Column, value parquet.Value) {
	n := g.longest[col.Index()]
	if n < leastCut || len(value.ByteArray()) <= n {
		return
	}
	begin := bytes.Clone(value.ByteArray()[:n])
	for range 2 {
		if g.bounds[string(begin)] {
			g.bounds[string(begin)] = false
		}
		begin[n-1]++
	}
}

func (g *guard) read(pos, n int64) ([]byte, error) {
	b := make([]byte, n)
	_, err := g.r.ReadAt(b, pos)
	if err != nil {
		return nil, fmt.Errorf("read %d bytes at byte %d: %w", n, pos, err)
	}
	return b, nil
}

// footer checks the length of the footer and the lists in it, and returns where it lies.
func (g *guard) footer() (at Span, err error) {
	if g.size < 12 {
		return at, errors.New("too short for a Parquet file")
	}
	tail, err := g.read(g.size-8, 8)
	if err != nil {
		return at, err
	}
	if string(tail[4:]) != "PAR1" {
		return at, errors.New("it does not end as a Parquet file does: it is another format, encrypted or cut off")
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > min(g.size-12, maxFooterBytes) {
		return at, fmt.Errorf("footer of %d bytes in a file of %d", n, g.size)
	}
	at = Span{g.size - 8 - n, g.size - 8}
	footer, err := g.read(at.From, n)
	if err == nil {
		// The library makes room for every list as long as the footer says it is, before it reads one.
		// The objects of a footer have 6 bytes and more, and take hundreds each in memory.
		_, err = object(footer, min(maxFooterStructs, 1024+int(n/4)))
	}
	var l layout
	if err == nil {
		err = thrift.Unmarshal(new(thrift.CompactProtocol), footer, &l)
	}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		err = fmt.Errorf("footer: %w", err)
	}
	return at, err
}

// A layout is what a footer says of its columns and row groups, as far as the library makes room for it at once.
type layout struct {
	Schema []struct {
		Type     thrift.Null[int32] `thrift:"1,optional"`
		Name     string             `thrift:"4,required"`
		Children thrift.Null[int32] `thrift:"5,optional"`
	} `thrift:"2,required"`
	RowGroups []struct {
		Columns []struct{} `thrift:"1,required"`
	} `thrift:"4,required"`
}

// check checks that each row group has every column, and how much the paths of the columns take: each has the names of
// all groups around it, so that a short footer can have paths without end.
func (l *layout) check() error {
	type group struct {
		left  int32 // children that are still to come
		bytes int   // of the path to it
	}
	var open []group // those around the column
	columns, names, size := 0, 0, 0
	for _, c := range l.Schema {
		if c.Type.Valid {
			columns++
		}
		path := len(c.Name) + 1
		if len(open) > 0 {
			path += open[len(open)-1].bytes
		}
		names += len(open) + 1
		size += path
		if len(open) > parquet.MaxColumnDepth || names > maxPathNames || size > maxPathBytes {
			return errors.New("columns nested too deep")
		}
		if c.Children.V > 0 {
			open = append(open, group{c.Children.V, path})
			continue
		}
		for ; len(open) > 0; open = open[:len(open)-1] {
			last := &open[len(open)-1]
			last.left--
			if last.left > 0 {
				break
			}
		}
	}
	for i, g := range l.RowGroups {
		if len(g.Columns) != columns {
			return fmt.Errorf("row group %d has %d columns, and the file %d", i, len(g.Columns), columns)
		}
	}
	return nil
}

// span returns where the pages of a column chunk lie.
func (g *guard) span(meta *format.ColumnMetaData) (at Span, err error) {
	at.From = meta.DataPageOffset
	// Old writers leave the offset 0 where there is no dictionary.
	if meta.DictionaryPageOffset != 0 { // where the library starts to read
		at.From = meta.DictionaryPageOffset
	}
	at.To = at.From + meta.TotalCompressedSize
	if at.From < 4 || meta.TotalCompressedSize < 0 || at.To < at.From || at.To > g.size-8 {
		err = fmt.Errorf("its pages are said to be at %d, %d bytes long, in a file of %d", at.From,
			meta.TotalCompressedSize, g.size)
	}
	return at, err
}

// hasDictionary reports whether a column chunk begins with a dictionary.
func (g *guard) hasDictionary(meta *format.ColumnMetaData) (bool, error) {
	in, err := g.span(meta)
	if err != nil || in.From == in.To {
		return false, err
	}
	p, err := g.page(in.From, in.To)
	return err == nil && p.header.Type == format.DictionaryPage, err
}

// chunk checks all pages of a column chunk. It returns a bound of the memory that reading it takes, and how many values
// each data page has at most that are not null.
func (g *guard) chunk(col *parquet.Column, meta *format.ColumnMetaData) (cost int64, rooms []int64, err error) {
	in, err := g.span(meta)
	if err != nil {
		return 0, nil, err
	}
	pos, end := in.From, in.To
	if meta.NumValues < 0 || meta.NumValues > maxChunkValues {
		return 0, nil, fmt.Errorf("%d values in one row group, at most %d are read", meta.NumValues, maxChunkValues)
	}
	g.note(col, meta.Statistics)
	var dictionary, largest, values int64
	for pos < end {
		p, err := g.page(pos, end)
		if err == nil {
			err = p.check(col, meta.Codec)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("page at byte %d: %w", pos, err)
		}
		g.note(col, p.header.DataPageHeader.V.Statistics)
		g.note(col, p.header.DataPageHeaderV2.V.Statistics)
		// 8 bytes a value is what indexes and levels take once they are decoded.
		memory := int64(len(p.body)) + int64(p.header.UncompressedPageSize) + 8*p.values
		// A dictionary is held as long as the chunk is read, of the other pages one at a time.
		if p.header.Type == format.DictionaryPage {
			if pos > in.From { // who looks for the values of a dictionary looks there
				return 0, nil, fmt.Errorf("page at byte %d: a dictionary behind other pages", pos)
			}
			dictionary += memory
		} else {
			largest, values, rooms = max(largest, memory), values+p.values, append(rooms, p.room)
		}
		// The pages together may not hold more than was counted: a row more would shift all that follow.
		if values > meta.NumValues {
			return 0, nil, fmt.Errorf("page at byte %d: more values than the %d that the footer counts", pos, meta.NumValues)
		}
		pos = p.end
	}
	return dictionary + largest, rooms, nil
}

// A rawPage is a page as it stands in the file.
type rawPage struct {
	header   format.PageHeader
	encoding format.Encoding // of its values; a dictionary's are plain
	values   int64           // how many it claims
	room     int64           // how many its bytes hold at most
	body     []byte
	end      int64
}

// page reads the page at pos of a chunk that ends at end.
func (g *guard) page(pos, end int64) (p *rawPage, err error) {
	// Where pages hold pictures, so may the bounds in a header: some writers do not cut them short.
	longest := min(end-pos, max(maxHeaderBytes, g.most))
	var head []byte
	// How long a header is stands nowhere: it is read until its object ends.
	for n := int64(512); ; n *= 8 {
		head, err = g.read(pos, min(n, longest))
		if err == nil {
			head, err = object(head, 100)
		}
		if n >= longest || !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
	}
	p = &rawPage{}
	if err == nil {
		err = thrift.Unmarshal(new(thrift.CompactProtocol), head, &p.header)
	}
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	switch h := p.header; h.Type {
	case format.DictionaryPage:
		p.values = int64(h.DictionaryPageHeader.V.NumValues)
	case format.DataPage:
		p.values, p.encoding = int64(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
	case format.DataPageV2:
		p.values, p.encoding = int64(h.DataPageHeaderV2.V.NumValues), h.DataPageHeaderV2.V.Encoding
	default:
		return nil, fmt.Errorf("unknown page type %d", h.Type)
	}
	if p.values < 0 || p.values > maxChunkValues {
		return nil, fmt.Errorf("it claims %d values", p.values)
	}
	pos += int64(len(head))
	packed, unpacked := int64(p.header.CompressedPageSize), int64(p.header.UncompressedPageSize)
	p.end = pos + packed
	if packed < 0 || p.end > end || unpacked < 0 || max(packed, unpacked) > g.most {
		return nil, fmt.Errorf("it claims %d bytes, %d decompressed; %d are left, and at most %d are read", packed,
			unpacked, end-pos, g.most)
	}
	// Only now, as it is known to lie inside the file.
	p.body, err = g.read(pos, packed)
	return p, err
}

// check looks at the counts inside a page: what decompresses, runs of levels and dictionary indexes, totals of deltas.
func (p *rawPage) check(col *parquet.Column, codec format.CompressionCodec) error {
	repetition, definition := bits.Len(uint(col.MaxRepetitionLevel())), bits.Len(uint(col.MaxDefinitionLevel()))
	w, n, packed := walker{data: p.body}, p.values, true
	if p.header.Type == format.DataPageV2 { // its levels are never compressed
		h2 := p.header.DataPageHeaderV2.V
		w.runs(w.take(uint64(h2.RepetitionLevelsByteLength)), repetition, n)
		w.runs(w.take(uint64(h2.DefinitionLevelsByteLength)), definition, n)
		packed = !h2.IsCompressed.Valid || h2.IsCompressed.V
	}
	if packed && w.err == nil {
		w.data, w.err = p.decompress(codec, w.data, int64(len(p.body)-len(w.data)))
	}
	for _, width := range []int{repetition, definition} {
		if p.header.Type == format.DataPage && width > 0 { // of no width there are none
			w.runs(w.prefixed(), width, n)
		}
	}
	p.room = w.values(p.encoding, col.Type(), n)
	if p.header.Type == format.DictionaryPage && n > p.room {
		w.fail("dictionary of %d values, and it holds %d", n, p.room)
	}
	return w.err
}

// decompress gives the data of a page if it is as long as the header says; levels are the bytes that are never
// compressed.
func (p *rawPage) decompress(codec format.CompressionCodec, data []byte, levels int64) ([]byte, error) {
	most := int64(p.header.UncompressedPageSize) - levels
	switch codec {
	case format.Uncompressed:
	case format.Snappy: // starts with its length, which the decoder holds it to
		if n, k := binary.Uvarint(data); len(data) > 0 && (k <= 0 || n > uint64(max(most, 0))) {
			return nil, fmt.Errorf("it decompresses to %d bytes, its header says %d", n, most)
		}
		return parquet.Snappy.Decode(nil, data)
	case format.Gzip, format.Zstd:
		in, err := unpack.NewReader(bytes.NewReader(data))
		if err == nil {
			// One byte too many tells a bomb, and is all that is read of it.
			data, err = io.ReadAll(io.LimitReader(in, most+1))
		}
		in.Close()
		// the library would unpack what stands behind a frame that zstd skips
		if err == nil && len(data) > 0 && in.Plain() {
			err = errors.New("it does not begin as packed bytes do")
		}
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
	default:
		return nil, fmt.Errorf("compression %v is not read here: write the file with zstd, snappy, gzip or none", codec)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it decompresses to more than the %d bytes that its header says", most)
	}
	return data, nil
}

// A walker goes over bytes and never beyond their end: err says what is wrong with them, and nothing is taken after it.
type walker struct {
	data    []byte // what is left
	structs int    // objects that may still come
	err     error
}

func (w *walker) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *walker) take(n uint64) []byte {
	if n > uint64(len(w.data)) {
		w.fail("%w", io.ErrUnexpectedEOF)
	}
	if w.err != nil {
		return nil
	}
	taken := w.data[:n]
	w.data = w.data[n:]
	return taken
}

// prefixed takes bytes that have their length before them.
func (w *walker) prefixed() []byte {
	if length := w.take(4); length != nil {
		return w.take(uint64(binary.LittleEndian.Uint32(length)))
	}
	return nil
}

func (w *walker) byte() byte {
	if b := w.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (w *walker) uvarint() uint64 {
	v, n := binary.Uvarint(w.data)
	if n <= 0 {
		w.fail("%w", io.ErrUnexpectedEOF)
		return 0
	}
	w.take(uint64(n))
	return v
}

// values goes over the values of a data page, n with its nulls, and returns how many it holds at most.
func (w *walker) values(e format.Encoding, of parquet.Type, n int64) (room int64) {
	switch e {
	case format.Plain, format.ByteStreamSplit:
		return w.plain(of)
	case format.RLE: // booleans
		return w.runs(w.prefixed(), 1, n)
	case format.Encoding(2), format.RLEDictionary: // as old writers name it, and new ones
		if len(w.data) == 0 {
			return 0
		}
		width := int(w.byte())
		if width > 32 {
			w.fail("indexes of %d bits", width)
		}
		return w.runs(w.data, width, n)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		if len(w.data) == 0 && n == 0 {
			return 0
		}
		w.uvarint()
		w.uvarint()
		total := w.uvarint() // how many values follow
		if total > uint64(n) {
			w.fail("%d deltas for %d values", total, n)
		}
		return int64(total)
	}
	// DELTA_BYTE_ARRAY: a few bytes can stand for gigabytes
	w.fail("encoding %v is not read here: write the file with dictionary or plain encoding", e)
	return 0
}

// plain returns how many values of a type the bytes hold one behind the other.
func (w *walker) plain(of parquet.Type) (room int64) {
	size := 64 // bits
	switch of.Kind() {
	case parquet.ByteArray:
		for ; len(w.data) > 0 && w.err == nil; room++ {
			w.prefixed()
		}
		return room
	case parquet.FixedLenByteArray:
		size = max(1, 8*of.Length())
	case parquet.Boolean:
		size = 1
	case parquet.Int32, parquet.Float:
		size = 32
	case parquet.Int96:
		size = 96
	}
	return 8 * int64(len(w.data)) / int64(size)
}

// runs adds up the lengths of the runs in RLE/bit-packed data, for n values.
func (w *walker) runs(data []byte, width int, n int64) (total int64) {
	in := walker{data: data, err: w.err}
	for len(in.data) > 0 && in.err == nil {
		head := in.uvarint()
		count, size := head>>1, uint64(width+7)/8
		// Before it is multiplied, so that nothing overflows.
		if count > maxChunkValues {
			in.fail("a run of %d", count)
			break
		}
		if head&1 == 1 { // so many groups of eight values, bit-packed
			count, size = count*8, count*uint64(width)
		}
		in.take(size)
		total += int64(count)
		// The last bit-packed run may be padded; no writer pads by more than 504.
		if total > n+504 {
			in.fail("runs of more than the %d values of the page", n)
		}
	}
	w.err = in.err
	return total
}

// object returns the Thrift object in the compact protocol with which data begins, of at most so many structs.
// Every list is found no longer than the bytes that are left.
func object(data []byte, structs int) ([]byte, error) {
	w := walker{data: data, structs: structs}
	w.value(thrift.STRUCT, 0)
	return data[:len(data)-len(w.data)], w.err
}

// value goes over one value of Thrift.
func (w *walker) value(kind thrift.Type, depth int) {
	// The library recurses as deep as a file has it, and Go's stack ends the program.
	if depth > maxDepth {
		w.fail("nested too deep")
	}
	switch kind {
	case thrift.TRUE, thrift.FALSE, thrift.I8:
		w.take(1)
	case thrift.I16, thrift.I32, thrift.I64:
		w.uvarint()
	case thrift.DOUBLE:
		w.take(8)
	case thrift.BINARY:
		w.take(w.uvarint())
	case thrift.LIST, thrift.SET:
		head := w.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = w.uvarint()
		}
		// The library makes room for all of them before it reads one.
		if n > uint64(len(w.data)) {
			w.fail("a list of %d items in %d bytes: %w", n, len(w.data), io.ErrUnexpectedEOF)
		}
		for ; n > 0 && w.err == nil; n-- {
			w.value(thrift.Type(head&0xf), depth+1)
		}
	case thrift.STRUCT:
		w.structs--
		if w.structs < 0 {
			w.fail("too many objects")
		}
		for head := w.byte(); head != 0; head = w.byte() {
			if head>>4 == 0 { // the field id follows if it is not a small step
				w.uvarint()
			}
			if kind := thrift.Type(head & 0xf); kind != thrift.TRUE && kind != thrift.FALSE { // they are their own value
				w.value(kind, depth+1)
			}
		}
	default: // maps too: Parquet has none
		w.fail("a value of type %d", kind)
	}
}
