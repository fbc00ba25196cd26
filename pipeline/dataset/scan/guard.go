package scan

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/manifest/unpack"
)

// What the guard lets through. parquet-go allocates what a file claims: a footer length, a list length, the values of a
// page, the length of a run (six bytes can claim 2 GiB). Decoding takes up to twice what is counted.
const (
	maxFooterBytes   = 32 << 20
	maxFooterStructs = 1 << 19
	maxHeaderBytes   = 256 << 10 // a page header holds two bounds of its column
	maxChunkValues   = 1 << 24
	maxDepth         = 16
)

// A guard checks every count that a Parquet file claims against what the file holds.
type guard struct {
	r    io.ReaderAt
	size int64
	most limits

	footerBytes int64 // how long the footer is, once it was read
}

// limits are what reading a file may take, in bytes.
type limits struct {
	page  int64 // a page, decompressed
	group int64 // the pages that are held at a time, of all columns
}

// Writers that look at the size of a page once in 1,024 values put hundreds of pictures into one.
var (
	tableLimits   = limits{page: 32 << 20, group: 64 << 20}
	pictureLimits = limits{page: 256 << 20, group: 512 << 20}
)

func (g *guard) read(pos, n int64) ([]byte, error) {
	b := make([]byte, n)
	_, err := g.r.ReadAt(b, pos)
	if err != nil {
		return nil, fmt.Errorf("read %d bytes at byte %d: %w", n, pos, err)
	}
	return b, nil
}

// footer checks the length of the footer and the lists in it.
func (g *guard) footer() error {
	if g.size < 12 {
		return errors.New("too short for a Parquet file")
	}
	tail, err := g.read(g.size-8, 8)
	if err != nil {
		return err
	}
	if string(tail[4:]) != "PAR1" {
		return errors.New("it does not end as a Parquet file does: it is another format, encrypted or cut off")
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > g.size-12 || n > maxFooterBytes {
		return fmt.Errorf("footer of %d bytes in a file of %d", n, g.size)
	}
	footer, err := g.read(g.size-8-n, n)
	if err != nil {
		return err
	}
	// The library makes room for every list as long as the footer says it is, before it reads one.
	if _, err := object(footer, maxFooterStructs); err != nil {
		return fmt.Errorf("footer: %w", err)
	}
	g.footerBytes = n
	return nil
}

// chunk checks all pages of a column chunk and returns a bound of the memory that reading
// it takes.
func (g *guard) chunk(col *parquet.Column, meta *format.ColumnMetaData) (cost int64, err error) {
	pos := meta.DataPageOffset
	// Old writers leave the offset 0 where there is no dictionary.
	if meta.DictionaryPageOffset != 0 { // where the library starts to read
		pos = meta.DictionaryPageOffset
	}
	end := pos + meta.TotalCompressedSize
	if pos < 4 || meta.TotalCompressedSize < 0 || end < pos || end > g.size-8 {
		return 0, fmt.Errorf("%w: its pages are said to be at %d, %d bytes long, in a file of %d", parquet.ErrCorrupted, pos, meta.TotalCompressedSize, g.size)
	}
	if meta.NumValues < 0 || meta.NumValues > maxChunkValues {
		return 0, fmt.Errorf("%d values in one row group, at most %d are read", meta.NumValues, maxChunkValues)
	}
	var dictionary, largest, values int64
	for pos < end {
		p, err := g.page(pos, end)
		if err != nil {
			return 0, fmt.Errorf("page at byte %d: %w", pos, err)
		}
		n, memory, err := p.check(col, meta.Codec)
		if err != nil {
			return 0, fmt.Errorf("page at byte %d: %w", pos, err)
		}
		// A dictionary is held as long as the chunk is read, of the other pages one at a time.
		if p.header.Type == format.DictionaryPage {
			dictionary += memory
		} else {
			largest, values = max(largest, memory), values+n
		}
		// The pages together may not hold more than was counted: a row more would shift all that follow.
		if values > meta.NumValues || dictionary > g.most.group {
			return 0, fmt.Errorf("%w: page at byte %d: more values than the %d that the footer counts", parquet.ErrCorrupted, pos, meta.NumValues)
		}
		pos = p.end
	}
	return dictionary + largest, nil
}

// A rawPage is a page as it stands in the file.
type rawPage struct {
	header format.PageHeader
	body   []byte
	end    int64
	most   int64 // bytes of a page
}

func (g *guard) page(pos, end int64) (p *rawPage, err error) {
	// Where pages hold pictures, so may the bounds in a header: some writers do not cut them short.
	longest := min(end-pos, max(maxHeaderBytes, g.most.page))
	var head []byte
	// How long a header is stands nowhere: it is read until its object ends.
	for n := min(longest, 512); ; n = min(longest, 8*n) {
		head, err = g.read(pos, n)
		if err != nil {
			return nil, err
		}
		length, err := object(head, 100)
		if err == nil {
			head = head[:length]
			break
		}
		if n == longest || !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("header: %w", err)
		}
	}
	p = &rawPage{most: g.most.page}
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), head, &p.header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	start, n := pos+int64(len(head)), int64(p.header.CompressedPageSize)
	p.end = start + n
	if n < 0 || p.end > end || n > p.most || p.header.UncompressedPageSize < 0 || int64(p.header.UncompressedPageSize) > p.most {
		return nil, fmt.Errorf("%w: it claims %d bytes, %d decompressed; %d are left, and at most %d are read", parquet.ErrCorrupted, n,
			p.header.UncompressedPageSize, end-start, p.most)
	}
	// Only now, as n is known to lie inside the file.
	p.body, err = g.read(start, n)
	return p, err
}

// check looks at the counts inside a page: what decompresses, the runs of its levels and of its dictionary indexes, the
// totals of delta encodings. It returns how many values it holds, and a bound of the memory that decoding takes.
func (p *rawPage) check(col *parquet.Column, codec format.CompressionCodec) (n, memory int64, err error) {
	h1, h2 := p.header.DataPageHeader.V, p.header.DataPageHeaderV2.V
	var r, d int64 // lengths of the levels of a page of version 2, which are never compressed
	packed, encoding := true, h1.Encoding
	switch p.header.Type {
	case format.DictionaryPage:
		n = int64(p.header.DictionaryPageHeader.V.NumValues)
	case format.DataPage:
		n = int64(h1.NumValues)
	case format.DataPageV2:
		n, r, d = int64(h2.NumValues), int64(h2.RepetitionLevelsByteLength), int64(h2.DefinitionLevelsByteLength)
		packed, encoding = !h2.IsCompressed.Valid || h2.IsCompressed.V, h2.Encoding
	default:
		return 0, 0, fmt.Errorf("%w: unknown page type %d", parquet.ErrCorrupted, p.header.Type)
	}
	if n < 0 || n > maxChunkValues {
		return 0, 0, fmt.Errorf("%w: it claims %d values", parquet.ErrCorrupted, n)
	}
	if r < 0 || d < 0 || r+d > int64(len(p.body)) {
		return 0, 0, fmt.Errorf("%w: levels of %d and %d bytes in a page of %d", parquet.ErrCorrupted, r, d, len(p.body))
	}
	data := p.body[r+d:]
	if packed {
		data, err = p.decompress(codec, data, r+d)
	}
	repetition, definition := bits.Len(uint(col.MaxRepetitionLevel())), bits.Len(uint(col.MaxDefinitionLevel()))
	switch {
	case err != nil:
	case p.header.Type == format.DictionaryPage:
		if n > 8*int64(len(data)) {
			err = fmt.Errorf("%w: dictionary of %d values in %d bytes", parquet.ErrCorrupted, n, len(data))
		}
	case p.header.Type == format.DataPage: // its levels are packed with the values
		data, err = prefixedRuns(data, repetition, n)
		if err == nil {
			data, err = prefixedRuns(data, definition, n)
		}
		err = cmp.Or(err, checkValues(encoding, data, n))
	default:
		err = cmp.Or(runs(p.body[:r], repetition, n), runs(p.body[r:r+d], definition, n), checkValues(encoding, data, n))
	}
	// 8 bytes a value is what indexes and levels take once they are decoded.
	return n, int64(len(p.body)) + int64(p.header.UncompressedPageSize) + 8*n, err
}

// decompress gives the data of a page if it is no longer than the header says; levels are
// the bytes of the page that are never compressed.
func (p *rawPage) decompress(codec format.CompressionCodec, data []byte, levels int64) ([]byte, error) {
	most := int64(p.header.UncompressedPageSize) - levels
	switch codec {
	case format.Uncompressed:
	case format.Snappy: // starts with its length, which the decoder holds it to
		if n, k := binary.Uvarint(data); len(data) > 0 && (k <= 0 || n > uint64(max(most, 0))) {
			return nil, fmt.Errorf("%w: it decompresses to %d bytes, its header says %d", parquet.ErrCorrupted, n, most)
		}
		return parquet.Snappy.Decode(nil, data)
	case format.Gzip, format.Zstd:
		in, err := unpack.NewReader(bytes.NewReader(data))
		if err == nil {
			// One byte too many tells a bomb, and is all that is read of it.
			data, err = io.ReadAll(io.LimitReader(in, most+1))
		}
		in.Close()
		if err == nil && len(data) > 0 && in.Plain() { // the library would unpack what stands behind a frame that zstd skips
			err = errors.New("it does not begin as packed bytes do")
		}
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
	default:
		return nil, fmt.Errorf("compression %v is not read here: write the file with zstd, snappy, gzip or none", codec)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%w: it decompresses to more than the %d bytes that its header says", parquet.ErrCorrupted, most)
	}
	return data, nil
}

// plainDictionary is how old writers name dictionary indexes in data pages.
const plainDictionary = format.Encoding(2)

func checkValues(e format.Encoding, data []byte, n int64) error {
	var err error
	switch e {
	case format.Plain, format.ByteStreamSplit:
	case format.RLE: // booleans
		_, err = prefixedRuns(data, 1, n)
	case plainDictionary, format.RLEDictionary:
		if len(data) > 0 && data[0] <= 32 {
			err = runs(data[1:], int(data[0]), n)
		} else if len(data) > 0 {
			err = fmt.Errorf("%w: indexes of %d bits", parquet.ErrCorrupted, data[0])
		}
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		err = deltaTotal(data, n)
	default: // DELTA_BYTE_ARRAY: a few bytes can stand for gigabytes
		return fmt.Errorf("encoding %v is not read here: write the file with dictionary or plain encoding", e)
	}
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	return nil
}

// deltaTotal checks the third number of a delta-packed block: how many values follow.
func deltaTotal(data []byte, n int64) error {
	if len(data) == 0 && n == 0 {
		return nil
	}
	w := walker{data: data}
	w.uvarint()
	w.uvarint()
	total := w.uvarint()
	if w.err == nil && total > uint64(n) {
		return fmt.Errorf("%w: %d deltas for %d values", parquet.ErrCorrupted, total, n)
	}
	return w.err
}

// prefixedRuns checks runs that have their length before them, and gives what follows.
func prefixedRuns(data []byte, width int, n int64) ([]byte, error) {
	if width == 0 {
		return data, nil
	}
	if len(data) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	w := walker{data: data[4:]}
	levels := w.take(uint64(binary.LittleEndian.Uint32(data)))
	return w.data, errors.Join(w.err, runs(levels, width, n))
}

// runs adds up the lengths of the runs in RLE/bit-packed data.
func runs(data []byte, width int, n int64) error {
	w := walker{data: data}
	for total := uint64(0); len(w.data) > 0; {
		head := w.uvarint()
		count, size := head>>1, uint64(width+7)/8
		// Before it is multiplied, so that nothing overflows.
		if count > maxChunkValues {
			return fmt.Errorf("%w: a run of %d", parquet.ErrCorrupted, count)
		}
		if head&1 == 1 { // so many groups of eight values, bit-packed
			count, size = count*8, count*uint64(width)
		}
		w.take(size)
		if w.err != nil {
			return w.err
		}
		total += count
		// The last bit-packed run may be padded; no writer pads by more than 504.
		if total > uint64(n)+504 {
			return fmt.Errorf("%w: runs of more than the %d values of the page", parquet.ErrCorrupted, n)
		}
	}
	return nil
}

// A walker goes over bytes and never beyond their end: err says that it would have.
type walker struct {
	data    []byte // what is left
	structs int    // objects that may still come
	err     error
}

func (w *walker) take(n uint64) []byte {
	if w.err == nil && n > uint64(len(w.data)) {
		w.err = io.ErrUnexpectedEOF
	}
	if w.err != nil {
		return nil
	}
	taken := w.data[:n]
	w.data = w.data[n:]
	return taken
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
		w.err = cmp.Or(w.err, io.ErrUnexpectedEOF)
		return 0
	}
	w.data = w.data[n:]
	return v
}

// object goes over one Thrift object in the compact protocol, of at most so many structs, and returns its length.
// Every list is found no longer than the bytes that are left.
func object(data []byte, structs int) (length int, err error) {
	w := walker{data: data, structs: structs}
	w.value(thrift.STRUCT, 0)
	return len(data) - len(w.data), w.err
}

// value goes over one value.
func (w *walker) value(kind thrift.Type, depth int) {
	// The library recurses as deep as a file has it, and Go's stack ends the program.
	if depth > maxDepth {
		w.err = cmp.Or(w.err, fmt.Errorf("%w: nested too deep", parquet.ErrCorrupted))
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
			w.err = cmp.Or(w.err, fmt.Errorf("a list of %d items in %d bytes: %w", n, len(w.data), io.ErrUnexpectedEOF))
		}
		for ; n > 0 && w.err == nil; n-- {
			w.value(thrift.Type(head&0xf), depth+1)
		}
	case thrift.STRUCT:
		w.structs--
		if w.structs < 0 {
			w.err = cmp.Or(w.err, fmt.Errorf("%w: too many objects", parquet.ErrCorrupted))
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
		w.err = cmp.Or(w.err, fmt.Errorf("%w: a value of type %d", parquet.ErrCorrupted, kind))
	}
}
