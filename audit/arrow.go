package audit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"rehydrate/internal/safely"
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
	t := newTable(p)
	t.parquet = true
	// The library trusts offsets that a damaged file has.
	err := safely.Do(func() error { return w.arrowRows(t, in) })
	w.finish(t)
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

// arrowRows looks at the rows of a stream, batch by batch.
func (w walker) arrowRows(t *table, in *io.SectionReader) error {
	if err := boundSchema(in); err != nil {
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
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// arrowValue looks at a value of a column, and at all in it.
func (w walker) arrowValue(t *table, name string, values arrow.Array, i int) error {
	if err := w.charge(valueCost); err != nil || values.IsNull(i) {
		return err
	}
	var value any
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
		for at := from; at < to; at++ {
			if err := w.arrowValue(t, name+"[]", a.ListValues(), int(at)); err != nil {
				return err
			}
		}
		return nil
	case *array.Struct:
		for n := range a.NumField() {
			field := name + "." + a.DataType().(*arrow.StructType).Field(n).Name
			if err := w.arrowValue(t, field, a.Field(n), i); err != nil {
				return err
			}
		}
		return nil
	case *array.FixedSizeBinary:
		value = a.Value(i)
	case interface{ Value(int) string }:
		value = a.Value(i)
	case interface{ Value(int) []byte }:
		value = a.Value(i)
	case interface{ Value(int) int64 }:
		value = a.Value(i)
	case interface{ Value(int) int32 }:
		value = int64(a.Value(i))
	case interface{ Value(int) int16 }:
		value = int64(a.Value(i))
	case interface{ Value(int) uint64 }:
		value = int64(a.Value(i)) // as hashes of images are kept
	case interface{ Value(int) uint32 }:
		value = int64(a.Value(i))
	case interface{ Value(int) uint16 }:
		value = int64(a.Value(i))
	case interface{ Value(int) float64 }:
		value = a.Value(i)
	case interface{ Value(int) float32 }:
		value = float64(a.Value(i))
	default:
		return nil
	}
	if err := w.charge(costOf(value)); err != nil {
		return err
	}
	w.scanValue(t, t.column(name), t.rows, value)
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
	var head [8]byte
	if _, err := in.ReadAt(head[:], 0); err != nil {
		return err
	}
	size, from := binary.LittleEndian.Uint32(head[4:]), int64(8)
	if binary.LittleEndian.Uint32(head[:]) != arrowNothing { // as it was written until 2019
		size, from = binary.LittleEndian.Uint32(head[:]), 4
	}
	if size < 8 || size > arrowSchema {
		return fmt.Errorf("a schema of %d bytes", size)
	}
	message := make([]byte, size)
	if _, err := in.ReadAt(message, from); err != nil {
		return err
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
