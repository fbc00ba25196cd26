package audit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"rehydrate/internal/safely"
	"rehydrate/pipeline/dataset/scan"
)

const (
	arrowMagic   = "ARROW1"
	arrowFile    = "Arrow"
	arrowStream  = "an Arrow stream"
	arrowSchema  = 1 << 20     // bytes of a schema, and of the description of a batch
	arrowAtOnce  = 256 << 20   // bytes of a batch, unpacked
	arrowNothing = 0xffff_ffff // stands before each message
)

var errArrow = &unreadFormat{"it is Arrow that could not be read to its end: the rest was only searched for plain text and images", "have it written again, or save it as Parquet"}

// arrow looks at every column of a file of Arrow, of its two formats: Feather and what Hugging Face caches are among
// them.
func (w walker) arrow(p place, kind string, all *io.SectionReader) error {
	in := io.NewSectionReader(all, 0, all.Size())
	if kind == arrowFile { // a stream lies in it, between a mark and an index
		in = io.NewSectionReader(all, 8, max(0, all.Size()-8))
	}
	t := &arrowTable{table: newTable(p), reached: map[arrow.ArrayData][]bool{}, kept: map[string]arrowDictionary{}}
	t.parquet = true
	// The library trusts offsets that a damaged file has.
	err := safely.Do(func() error { return w.arrowRows(t, in) })
	w.finish(t.table)
	if p.part == "" {
		p.src.file.Rows = int(t.rows)
	}
	at, _ := in.Seek(0, io.SeekCurrent)
	left, footer := in.Size()-at, make([]byte, 10)
	if kind == arrowFile && err == nil {
		_, _ = in.ReadAt(footer, max(0, in.Size()-10))
		index, unread := readAll(io.NewSectionReader(in, at, max(0, left)), p.atOnce(arrowSchema*16))
		w.words(p, string(index))
		left -= int64(binary.LittleEndian.Uint32(footer)) + 10
		err = unread
	}
	if err == nil && left <= 0 {
		return w.ctx.Err()
	}
	w.raw(p, all)
	if err != nil && w.ctx.Err() == nil {
		return fmt.Errorf("%w (%v)", errArrow, err)
	}
	return cmp.Or(w.ctx.Err(), error(errArrow))
}

// An arrowTable is a table that is read batch by batch.
type arrowTable struct {
	*table
	reached map[arrow.ArrayData][]bool // the values that rows have, of each array that is looked at
	element                            // of lists of a row, which is being looked at
	kept    map[string]arrowDictionary // by where they are in the schema: the next batch may use them, too
}

// An arrowDictionary has values that rows refer to.
type arrowDictionary struct {
	name   string // of its column
	values arrow.Array
}

// arrowRows looks at the rows of a stream, batch by batch, and at what it has beside them.
func (w walker) arrowRows(t *arrowTable, in *io.SectionReader) error {
	if err := cmp.Or(boundSchema(in), w.arrowMessages(t.outer, in)); err != nil {
		return err
	}
	most := t.atOnce(arrowAtOnce)
	mem := &arrowMemory{walker: w, most: most}
	// No message is longer than the file, whatever it says. NewReader would not hand the limits on to what reads
	// messages.
	options := []ipc.Option{ipc.WithAllocator(mem), ipc.WithMetadataSizeLimit(min(arrowSchema, in.Size())),
		ipc.WithBodySizeLimit(min(most, in.Size())), ipc.WithEnsureNativeEndian(true)}
	r, err := ipc.NewReaderFromMessageReader(ipc.NewMessageReader(in, options...), options...)
	if err != nil {
		return err
	}
	defer r.Release()
	schema := r.Schema()
	for i, key := range schema.Metadata().Keys() {
		w.scan(t.in("key "+key), section([]byte(schema.Metadata().Values()[i])))
	}
	for r.Next() && w.ctx.Err() == nil {
		batch := r.RecordBatch()
		for row := range int(batch.NumRows()) {
			if t.rows == maxRows {
				return fmt.Errorf("more than %d rows: the rest were not checked", maxRows)
			}
			if err := w.charge(rowCost); err != nil {
				return err
			}
			for i, values := range batch.Columns() {
				if err := w.arrowValue(t, schema.Field(i).Name, values, row); err != nil {
					return err
				}
			}
			t.rows++
		}
		for i, values := range batch.Columns() {
			if err := w.arrowBeside(t, strconv.Itoa(i), schema.Field(i).Name, values); err != nil {
				return err
			}
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for len(t.kept) > 0 {
		for at, d := range t.kept {
			delete(t.kept, at)
			if err := w.arrowBeside(t, at+" ", d.name, d.values); err != nil {
				return err
			}
		}
	}
	return w.ctx.Err()
}

// arrowMessages looks at the descriptions of all that is in a stream, with the names of its columns, and names what no
// reader shows: bytes between what they describe, and dictionaries that another one replaces before a batch uses them.
func (w walker) arrowMessages(p place, in *io.SectionReader) error {
	const kind, header, length, id, data, delta, buffers = 6, 8, 10, 4, 6, 8, 8 // slots of a message and of what is in it
	const isDictionary, isBatch = 2, 3
	waiting := map[int64]bool{} // dictionaries since the last batch
	for at := int64(0); ; {
		message, size, err := arrowMessage(in, at)
		if err != nil || message == nil {
			if len(waiting) > 0 {
				w.open(p.String(), doWriteAgain, "a dictionary in it is used by no batch of rows, and was not checked")
			}
			return err
		}
		if err := cmp.Or(w.charge(rowCost+size), w.ctx.Err()); err != nil {
			return err
		}
		w.words(p, string(message))
		root := flatbuffers.Table{Bytes: message, Pos: flatbuffers.GetUOffsetT(message)}
		from := at + size
		at = from + root.GetInt64Slot(length, 0)
		if at < from || at > in.Size() {
			return io.ErrUnexpectedEOF
		}
		batch := flatbuffers.Table{Bytes: message}
		if slot := root.Offset(header); slot != 0 {
			root.Union(&batch, flatbuffers.UOffsetT(slot))
		}
		switch root.GetByteSlot(kind, 0) {
		case isBatch:
			clear(waiting)
		case isDictionary:
			n, more := batch.GetInt64Slot(id, 0), batch.GetBoolSlot(delta, false)
			if waiting[n] && !more {
				w.open(p.String(), doWriteAgain, "a dictionary in it is used by no batch of rows, and was not checked")
			}
			waiting[n] = true
			if slot := batch.Offset(data); slot != 0 {
				batch.Pos = batch.Indirect(flatbuffers.UOffsetT(slot) + batch.Pos)
			}
		default:
			continue
		}
		var parts []scan.Span
		if slot := flatbuffers.UOffsetT(batch.Offset(buffers)); slot != 0 {
			for i, start := 0, batch.Vector(slot); i < batch.VectorLen(slot); i++ {
				begins := from + batch.GetInt64(start+flatbuffers.UOffsetT(16*i))
				parts = append(parts, scan.Span{From: begins, To: begins + batch.GetInt64(start+flatbuffers.UOffsetT(16*i+8))})
			}
		}
		for _, left := range scan.Between(parts, from, at) {
			if n, at := unclaimed(in, left.From, left.To); n > 0 {
				w.open(p.String(), doWriteAgain, "%d bytes at offset %d belong to no column: rows can be hidden there", n, at)
			}
		}
	}
}

const doWriteAgain = "have it written again"

// arrowMessage returns the description of what is in a stream at a place, and how long it is with its mark and length;
// nil at the end.
func arrowMessage(in io.ReaderAt, at int64) (message []byte, size int64, err error) {
	var head [8]byte
	n, err := in.ReadAt(head[:], at)
	if n < 4 {
		return nil, 0, nil // a stream may lack its end
	}
	length, from := binary.LittleEndian.Uint32(head[4:]), int64(8)
	if binary.LittleEndian.Uint32(head[:]) != arrowNothing { // as it was written until 2019
		length, from = binary.LittleEndian.Uint32(head[:]), 4
	}
	switch {
	case length == 0:
		return nil, 0, nil
	case n < len(head):
		return nil, 0, err
	case length < 8 || length > arrowSchema:
		return nil, 0, fmt.Errorf("a description of %d bytes", length)
	}
	message = make([]byte, length)
	_, err = in.ReadAt(message, at+from)
	return message, from + int64(length), err
}

// arrowBeside looks at what a column of a batch has beside what its rows have: values under nulls, in dictionaries, and
// around lists. at says where in the schema it is.
func (w walker) arrowBeside(t *arrowTable, at, name string, values arrow.Array) error {
	part := func(n int, name string, values arrow.Array) error {
		return w.arrowBeside(t, at+"."+strconv.Itoa(n), name, values)
	}
	switch a := values.(type) {
	case array.ExtensionArray:
		return part(0, name, a.Storage())
	case *array.Dictionary:
		return w.arrowDictionary(t, at, arrowDictionary{name, a.Dictionary()})
	case *array.RunEndEncoded:
		return part(0, name, a.Values())
	case array.Union:
		for n := range a.NumFields() {
			if err := part(n, name, a.Field(n)); err != nil {
				return err
			}
		}
		return nil
	case array.ListLike:
		return part(0, name+"[]", a.ListValues())
	case *array.Struct:
		for n := range a.NumField() {
			if err := part(n, fieldName(name, a, n), a.Field(n)); err != nil {
				return err
			}
		}
		return nil
	}
	reached := t.reached[values.Data()]
	delete(t.reached, values.Data())
	for i := range values.Len() {
		if i < len(reached) && reached[i] {
			continue
		}
		value, looked := arrowUnder(values, i)
		if !looked {
			break
		}
		if err := cmp.Or(w.charge(costOf(value)), w.ctx.Err()); err != nil {
			return err
		}
		if value != nil {
			w.scanValue(t.table, t.column(name), t.unused(), value)
		}
	}
	for _, left := range arrowLeft(values) {
		p := t.outer.in("bytes of column " + name + " that no value has")
		w.raw(p, section(left))
		w.open(p.String(), doWriteAgain, "%d bytes: rows can be hidden there", len(left))
	}
	return nil
}

// arrowDictionary looks at a dictionary that another one replaces, and keeps the other.
func (w walker) arrowDictionary(t *arrowTable, at string, d arrowDictionary) error {
	was, known := t.kept[at]
	if known && was.values.Data() == d.values.Data() {
		return nil
	}
	d.values.Retain()
	t.kept[at] = d
	if !known {
		return nil
	}
	defer was.values.Release()
	n := int64(was.values.Len())
	if n > int64(d.values.Len()) || !array.SliceEqual(was.values, 0, n, d.values, 0, n) {
		return w.arrowBeside(t, at+" ", was.name, was.values)
	}
	// It is the same one with more values.
	for i, reached := range t.reached[was.values.Data()] {
		if reached {
			t.reach(d.values, i)
		}
	}
	delete(t.reached, was.values.Data())
	return nil
}

// reach notes that a row has a value.
func (t *arrowTable) reach(values arrow.Array, i int) {
	reached := t.reached[values.Data()]
	if reached == nil {
		reached = make([]bool, values.Len())
		t.reached[values.Data()] = reached
	}
	reached[i] = true
}

// arrowUnder returns what stands at the place of a value, whether it is null or not; nil for nothing. It reports
// whether values of that type are looked at.
func arrowUnder(values arrow.Array, i int) (value any, looked bool) {
	// What a view of a null says may be anything.
	if safely.Do(func() error { value = arrowData(values, i); return nil }) != nil {
		return nil, true
	}
	empty := false
	switch v := value.(type) {
	case string:
		empty = strings.Trim(v, "\x00") == ""
	case []byte:
		empty = len(bytes.Trim(v, "\x00")) == 0
	case int64:
		empty = v == 0
	case float64:
		empty = v == 0 || math.IsNaN(v)
	}
	if empty {
		return nil, true
	}
	return value, value != nil
}

// arrowLeft returns the bytes of an array of values that belong to none of them, if they are not all zero.
func arrowLeft(values arrow.Array) (left [][]byte) {
	data := values.Data()
	add := func(b []byte) {
		if len(bytes.Trim(b, "\x00")) > 0 {
			left = append(left, b)
		}
	}
	buffer := func(n int) []byte {
		if n >= len(data.Buffers()) || data.Buffers()[n] == nil {
			return nil
		}
		return data.Buffers()[n].Bytes()
	}
	end := data.Offset() + data.Len()
	switch typ := data.DataType().(type) {
	case arrow.BinaryViewDataType:
		var parts []scan.Span
		for n := 2; n < len(data.Buffers()); n++ {
			parts = parts[:0]
			for i := range data.Len() {
				v := values.(array.ViewLike).ValueHeader(i)
				if from := int64(v.BufferOffset()); !v.IsInline() && int(v.BufferIndex()) == n-2 {
					parts = append(parts, scan.Span{From: from, To: from + int64(v.Len())})
				}
			}
			for _, s := range scan.Between(parts, 0, int64(len(buffer(n)))) {
				add(buffer(n)[s.From:s.To])
			}
		}
	case arrow.OffsetsDataType:
		size, from, to := typ.OffsetTypeTraits().BytesRequired(1), 0, 0
		if offsets := buffer(1); len(offsets) >= (end+1)*size {
			offset := func(i int) int {
				if size == 8 {
					return int(binary.LittleEndian.Uint64(offsets[8*i:]))
				}
				return int(binary.LittleEndian.Uint32(offsets[4*i:]))
			}
			from, to = offset(data.Offset()), offset(end)
			add(offsets[(end+1)*size:])
		}
		bytes := buffer(2)
		add(bytes[:min(from, len(bytes))])
		add(bytes[min(to, len(bytes)):])
	case arrow.FixedWidthDataType:
		bytes := buffer(1)
		add(bytes[min((end*typ.BitWidth()+7)/8, len(bytes)):])
	}
	return left
}

// fieldName is the name of a member of a struct as the name of a column.
func fieldName(name string, a *array.Struct, n int) string {
	return name + "." + a.DataType().(*arrow.StructType).Field(n).Name
}

// arrowValue looks at a value of a column, and at all in it.
func (w walker) arrowValue(t *arrowTable, name string, values arrow.Array, i int) error {
	if err := w.charge(valueCost); err != nil || values.IsNull(i) {
		return err
	}
	switch a := values.(type) {
	case array.ExtensionArray:
		return w.arrowValue(t, name, a.Storage(), i)
	case *array.Dictionary:
		return w.arrowValue(t, name, a.Dictionary(), a.GetValueIndex(i))
	case *array.RunEndEncoded:
		return w.arrowValue(t, name, a.Values(), a.GetPhysicalIndex(i))
	case *array.SparseUnion:
		return w.arrowValue(t, name, a.Field(a.ChildID(i)), i)
	case *array.DenseUnion:
		return w.arrowValue(t, name, a.Field(a.ChildID(i)), int(a.ValueOffset(i)))
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		if err := w.list(t.at(t.rows, t.column(name)), arrowBytes(a.ListValues(), int(from), int(to))); err != nil {
			return err
		}
		around := t.element
		defer func() { t.element = around }()
		for at := from; at < to; at++ {
			if around.list == 0 { // of lists in lists, the outermost one says what belongs together
				t.element = element{1, int32(at - from), int32(to - from)}
			}
			if err := w.arrowValue(t, name+"[]", a.ListValues(), int(at)); err != nil {
				return err
			}
		}
		return nil
	case *array.Struct:
		for n := range a.NumField() {
			if err := w.arrowValue(t, fieldName(name, a, n), a.Field(n), i); err != nil {
				return err
			}
		}
		return nil
	}
	value := arrowData(values, i)
	if err := w.charge(costOf(value)); err != nil || value == nil {
		return err
	}
	t.reach(values, i)
	c := t.column(name)
	c.in = t.element
	if c.in.list > 0 {
		c.in.list = c.number
	}
	w.scanValue(t.table, c, t.rows, value)
	return nil
}

// arrowBytes returns the whole numbers from one place to another.
func arrowBytes(values arrow.Array, from, to int) (l byteList) {
	l.all = to - from
	if l.all < fewBytes {
		return l
	}
	for i := from; i < to; i++ {
		switch a := values.(type) {
		case *array.Uint8:
			l.add(int64(a.Value(i)))
		case *array.Int8:
			l.add(int64(a.Value(i)))
		default:
			n, is := arrowData(values, i).(int64)
			if !is { // as of all others
				return l
			}
			l.add(n)
		}
	}
	return l
}

// arrowData returns a value as text, bytes or a number; nil for any other.
func arrowData(values arrow.Array, i int) any {
	switch a := values.(type) {
	case *array.FixedSizeBinary:
		return a.Value(i)
	case interface{ Value(int) string }:
		return a.Value(i)
	case interface{ Value(int) []byte }:
		return a.Value(i)
	case interface{ Value(int) int64 }:
		return a.Value(i)
	case interface{ Value(int) int32 }:
		return int64(a.Value(i))
	case interface{ Value(int) int16 }:
		return int64(a.Value(i))
	case interface{ Value(int) uint64 }:
		return int64(a.Value(i)) // as hashes of images are kept
	case interface{ Value(int) uint32 }:
		return int64(a.Value(i))
	case interface{ Value(int) uint16 }:
		return int64(a.Value(i))
	case interface{ Value(int) float64 }:
		return a.Value(i)
	case interface{ Value(int) float32 }:
		return float64(a.Value(i))
	}
	return nil
}

// An arrowMemory bounds what the library takes for a stream, by what it holds at a time and by the budget of the
// source.
type arrowMemory struct {
	walker
	most, held int64
}

var _ memory.Allocator = &arrowMemory{}

// Allocate panics when there is no more: the library turns that into an error of the stream.
func (m *arrowMemory) Allocate(size int) []byte {
	if size < 0 || m.held+int64(size) > m.most {
		panic(errLong)
	}
	if err := m.charge(int64(size)); err != nil {
		panic(err)
	}
	m.held += int64(size)
	return make([]byte, size)
}

// Reallocate grows or cuts bytes.
func (m *arrowMemory) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	out := m.Allocate(size)
	copy(out, b)
	m.Free(b)
	return out
}

// Free counts bytes as given back. They may still be looked at.
func (m *arrowMemory) Free(b []byte) { m.held = max(0, m.held-int64(cap(b))) }

// boundSchema refuses a schema of more fields than are told apart. A field may stand in many others, so that a few
// hundred bytes can name more of them than any memory holds.
func boundSchema(in io.ReaderAt) error {
	message, _, err := arrowMessage(in, 0)
	if err != nil {
		return err
	}
	if message == nil {
		return errors.New("no schema")
	}
	const header, fields, children = 8, 6, 14 // slots of a message, of a schema and of a field
	left := maxColumns
	var count func(of flatbuffers.Table, slot flatbuffers.VOffsetT, level int) error
	count = func(of flatbuffers.Table, slot flatbuffers.VOffsetT, level int) error {
		at := flatbuffers.UOffsetT(of.Offset(slot))
		if at == 0 {
			return nil
		}
		n, start := of.VectorLen(at), of.Vector(at)
		left -= n
		if left < 0 || level > maxLevels {
			return errors.New("a schema of too many fields")
		}
		for i := range n {
			field := flatbuffers.Table{Bytes: of.Bytes, Pos: of.Indirect(start + flatbuffers.UOffsetT(4*i))}
			if err := count(field, children, level+1); err != nil {
				return err
			}
		}
		return nil
	}
	root := flatbuffers.Table{Bytes: message, Pos: flatbuffers.GetUOffsetT(message)}
	schema := flatbuffers.Table{Bytes: message}
	at := root.Offset(header)
	if at == 0 {
		return errors.New("no schema")
	}
	root.Union(&schema, flatbuffers.UOffsetT(at))
	return count(schema, fields, 0)
}
