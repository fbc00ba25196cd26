package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"rehydrate/internal/testkit"
)

// arrowOf writes a table of a column of ids, one of bytes of images as Hugging Face keeps them, and one of lists of
// texts.
func arrowOf(t testing.TB, file bool, options []ipc.Option, id arrow.DataType, content arrow.DataType,
	rows ...[3]string) []byte {
	t.Helper()
	mem := memory.NewGoAllocator()
	image := arrow.StructOf(arrow.Field{Name: "bytes", Type: content, Nullable: true},
		arrow.Field{Name: "path", Type: arrow.BinaryTypes.String, Nullable: true})
	schema := arrow.NewSchema([]arrow.Field{{Name: "post_id", Type: id}, {Name: "image", Type: image},
		{Name: "texts", Type: arrow.ListOf(arrow.BinaryTypes.LargeString)}}, nil)
	b := array.NewRecordBuilder(mem, schema)
	ids, images, texts := b.Field(0), b.Field(1).(*array.StructBuilder), b.Field(2).(*array.ListBuilder)
	var out bytes.Buffer
	options = append(options, ipc.WithSchema(schema), ipc.WithAllocator(mem), ipc.WithDictionaryDeltas(true))
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	} = ipc.NewWriter(&out, options...)
	if file {
		f, err := ipc.NewFileWriter(&out, options...)
		testkit.OK(t, err)
		w = f
	}
	for n, row := range rows { // a batch each in a stream: a file has one dictionary
		testkit.OK(t, ids.AppendValueFromString(row[0]))
		images.Append(true)
		switch c := images.FieldBuilder(0).(type) {
		case *array.BinaryBuilder:
			c.Append([]byte(row[1]))
		}
		images.FieldBuilder(1).AppendNull()
		texts.Append(true)
		testkit.OK(t, texts.ValueBuilder().AppendValueFromString(row[2]))
		if !file || n == len(rows)-1 {
			testkit.OK(t, w.Write(b.NewRecordBatch()))
		}
	}
	testkit.OK(t, w.Close())
	return out.Bytes()
}

// TestArrow reads Arrow as it reads Parquet: both formats, however packed, ids, pictures and texts.
func TestArrow(t *testing.T) {
	w, fresh := newWorld(t, false, false), newWorld(t, true, false)
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for name, options := range map[string][]ipc.Option{"plain": nil, "LZ4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
		for _, file := range []bool{false, true} {
			for _, id := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, dictionary} {
				for _, content := range []arrow.DataType{arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary} {
					body := arrowOf(t, file, options, id, content, [3]string{live1, "", "a"},
						[3]string{goneDigits, "", "b"}, [3]string{live2, string(w.images[goneJPEG]),
							goneText + " for odut"})
					dir := t.TempDir()
					testkit.OK(t, os.WriteFile(filepath.Join(dir, "f.arrow"), body, 0o600))
					r := w.audit(t, w.ws, dir)
					has := func(r Report, id, where string, kind FindingKind) bool {
						return slices.ContainsFunc(r.Findings, func(f Finding) bool {
							return f.ID == id && slices.Contains(f.Kinds, kind) && strings.HasSuffix(f.Where, where)
						})
					}
					if !has(r, goneDigits, "f.arrow > row 2", FoundRow) ||
						!has(r, goneJPEG, "f.arrow > row 3", FoundImage) || len(r.Open) > 0 {
						t.Errorf("%s, file %v, %s, %s: %+v, open %+v", name, file, id, content, r.Findings, r.Open)
					}
					if r := fresh.audit(t, fresh.ws, dir); !has(r, goneJPEG, "f.arrow > row 3", FoundText) {
						t.Errorf("%s, file %v: no text in %+v", name, file, r.Findings)
					}
					clean := arrowOf(t, file, options, id, content, [3]string{live1, string(w.images[live1]), "a"})
					testkit.OK(t, os.WriteFile(filepath.Join(dir, "f.arrow"), clean, 0o600))
					if r := w.audit(t, w.ws, dir); r.Verdict != Pass {
						t.Errorf("%s, file %v: %s %+v", name, file, r.Verdict, r.Open)
					}
					testkit.OK(t, os.WriteFile(filepath.Join(dir, "f.arrow"), clean[:len(clean)*2/3], 0o600))
					if r := w.audit(t, w.ws, dir); r.Verdict != Undecided {
						t.Errorf("cut off, %s, file %v: %s", name, file, r.Verdict)
					}
				}
			}
		}
	}
}

// arrowWith writes batches of one column.
func arrowWith(t testing.TB, file bool, options []ipc.Option, field arrow.Field, batches ...arrow.Array) []byte {
	t.Helper()
	field.Name, field.Type, field.Nullable = "post_id", batches[0].DataType(), true
	schema, out := arrow.NewSchema([]arrow.Field{field}, nil), &bytes.Buffer{}
	options = append(options, ipc.WithSchema(schema))
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	} = ipc.NewWriter(out, options...)
	if file {
		f, err := ipc.NewFileWriter(out, options...)
		testkit.OK(t, err)
		w = f
	}
	for _, b := range batches {
		testkit.OK(t, w.Write(array.NewRecordBatch(schema, []arrow.Array{b}, int64(b.Len()))))
	}
	testkit.OK(t, w.Close())
	return out.Bytes()
}

// TestArrowBeside finds what Arrow keeps and no row has: levels of a category, values under nulls, what stands around
// lists; and names what no reader shows.
func TestArrowBeside(t *testing.T) {
	mem := memory.NewGoAllocator()
	texts := func(all ...string) arrow.Array {
		b := array.NewStringBuilder(mem)
		b.AppendValues(all, nil)
		return b.NewArray()
	}
	indexes := func(all ...int8) arrow.Array {
		b := array.NewInt8Builder(mem)
		b.AppendValues(all, nil)
		return b.NewArray()
	}
	category := func(values arrow.Array, at ...int8) arrow.Array {
		return array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8,
			ValueType: values.DataType()}, indexes(at...), values)
	}
	// of makes an array of the parts of another, with nulls where bits are not set.
	of := func(like arrow.ArrayData, typ arrow.DataType, n int, nulls byte, buffers []*memory.Buffer,
		children ...arrow.ArrayData) arrow.Array {
		if buffers == nil {
			buffers = like.Buffers()
		}
		buffers = slices.Concat([]*memory.Buffer{memory.NewBufferBytes([]byte{nulls})}, buffers[1:])
		return array.MakeFromData(array.NewData(typ, n, buffers, children, array.UnknownNullCount, 0))
	}
	ids := texts(live1, goneJPEG, live2)
	row := "row " + goneJPEG
	offsets := memory.NewBufferBytes([]byte{0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0})
	list := of(ids.Data(), arrow.ListOf(arrow.BinaryTypes.String), 2, 1, []*memory.Buffer{nil, offsets}, ids.Data())
	one := arrow.StructOf(arrow.Field{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true})
	pair := of(ids.Data(), one, 3, 0b101, []*memory.Buffer{nil}, ids.Data())
	whole := of(ids.Data(), one, 3, 0b111, []*memory.Buffer{nil}, ids.Data())
	views := array.NewStringViewBuilder(mem)
	views.AppendValues([]string{live1, "https://redd.it/" + goneJPEG, "https://redd.it/" + live2}, nil)
	view := views.NewArray().Data()
	shorter := array.NewData(view.DataType(), 1, view.Buffers(), nil, 0, 0)
	field := func(key string) arrow.Field {
		return arrow.Field{Metadata: arrow.NewMetadata([]string{"comment"}, []string{key})}
	}
	var cases []hiding
	for _, file := range []bool{false, true} {
		for packed, options := range map[string][]ipc.Option{"plain": nil, "zstd": {ipc.WithZstd()}} {
			add := func(name, want string, field arrow.Field, batches ...arrow.Array) {
				cases = append(cases, hiding{fmt.Sprintf("%s, %s, file %v", name, packed, file), "a.arrow", want,
					arrowWith(t, file, options, field, batches...)})
			}
			none := arrow.Field{}
			add("levels", row, none, category(ids, 0, 2))
			add("all levels", "none", none, category(texts(live1, live2), 1, 0))
			add("levels of which another batch has some", "none", none, category(texts(live1, live2), 1),
				category(texts(live1, live2), 0))
			add("levels of digits", "row "+goneDigits, none, category(texts(live1, goneDigits, live2), 0, 2))
			add("levels of a struct", row, none, category(whole, 0, 2))
			add("a null", row, none, of(ids.Data(), ids.DataType(), 3, 0b101, nil))
			add("a struct that is null", row, none, pair)
			add("a list that is null", row, none, list)
			add("beside views", "gap rows can be hidden there", none, array.MakeFromData(shorter))
			add("a comment of a field", row, field("see t3_"+goneJPEG), texts(live1))
		}
	}
	const unused = "gap a dictionary in it is used by no batch"
	two := func(options ...ipc.Option) []byte {
		return arrowWith(t, false, options, arrow.Field{}, category(texts(live1), 0),
			category(texts(live1, goneJPEG, live2), 2, 0))
	}
	parts := arrowParts(t, two()) // a schema, and a dictionary and a batch twice
	newWorld(t, false, false).finds(t, append(cases,
		hiding{"levels that are added", "a.arrow", row, two(ipc.WithDictionaryDeltas(true))},
		hiding{"levels that are others", "a.arrow", row, two()},
		hiding{"levels that are others at once", "a.arrow", unused, slices.Concat(parts[0], parts[3], parts[1], parts[2])},
		hiding{"levels without a row", "a.arrow", unused, slices.Concat(parts[0], parts[3])},
		hiding{"between columns", "a.arrow", "gap belong to no column",
			patched(arrowWith(t, false, nil, arrow.Field{}, texts(live1)), live1+"\x00\x00", 6, "ab")}))

	ends := []byte("\x02\x00\x00\x00\x04\x00\x00\x00")
	behind := array.NewData(arrow.BinaryTypes.String, 1,
		[]*memory.Buffer{nil, memory.NewBufferBytes(ends), memory.NewBufferBytes([]byte("a.bc.d"))}, nil, 0, 0)
	testkit.Same(t, "bytes of no text", [][]byte{[]byte("a."), []byte(".d")}, arrowLeft(array.MakeFromData(behind)))
}

// arrowParts cuts a stream into its messages.
func arrowParts(t testing.TB, stream []byte) (parts [][]byte) {
	t.Helper()
	for at := int64(0); ; {
		message, size, err := arrowMessage(bytes.NewReader(stream), at)
		testkit.OK(t, err)
		if message == nil {
			return parts
		}
		root := flatbuffers.Table{Bytes: message, Pos: flatbuffers.GetUOffsetT(message)}
		end := at + size + root.GetInt64Slot(10, 0)
		parts, at = append(parts, stream[at:end]), end
	}
}

// A field may stand in many others: a schema of a few hundred bytes names 2 to the 30th fields.
func TestArrowSchemaBomb(t *testing.T) {
	b := flatbuffers.NewBuilder(0)
	var at flatbuffers.UOffsetT
	vector := func(n int) flatbuffers.UOffsetT {
		b.StartVector(4, n, 4)
		for range n {
			b.PrependUOffsetT(at)
		}
		return b.EndVector(n)
	}
	b.StartObject(7)
	at = b.EndObject()
	for range 30 {
		children := vector(2)
		b.StartObject(7)
		b.PrependUOffsetTSlot(5, children, 0)
		at = b.EndObject()
	}
	fields := vector(1)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, fields, 0)
	schema := b.EndObject()
	b.StartObject(5)
	b.PrependUOffsetTSlot(2, schema, 0)
	b.PrependByteSlot(1, 1, 0)
	b.Finish(b.EndObject())
	message := b.FinishedBytes()
	body := append([]byte{255, 255, 255, 255, byte(len(message)), byte(len(message) >> 8), 0, 0}, message...)
	if err := boundSchema(bytes.NewReader(body)); err == nil || !strings.Contains(err.Error(), "too many fields") {
		t.Errorf("%d bytes: %v", len(body), err)
	}
}

// TestArrowLongMessage: a message that says it is longer than its file takes no memory.
func TestArrowLongMessage(t *testing.T) {
	stream := arrowOf(t, false, nil, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, [3]string{live1, "x", "y"})
	end := bytes.LastIndex(stream, []byte{255, 255, 255, 255, 0, 0, 0, 0}) // of the stream
	if end < 0 {
		t.Fatal("the stream has no end")
	}
	w, name := newWorld(t, false, false), filepath.Join(t.TempDir(), "a.arrow")
	testkit.OK(t, os.WriteFile(name, append(stream[:end:end], 255, 255, 255, 255, 0, 0, 0, 16), 0o600))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := w.audit(t, w.ws, name)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
		t.Errorf("%d MB were allocated", took>>20)
	}
	testkit.Same(t, "verdict", Undecided, r.Verdict)
}

// TestListsOfBytes finds an image that is a list of numbers in a Parquet or an Arrow file.
func TestListsOfBytes(t *testing.T) {
	w := newWorld(t, false, true)
	type small struct {
		ID    string  `parquet:"id"`
		Image []int32 `parquet:"image,list"`
	}
	type wide struct {
		ID    string  `parquet:"id"`
		Image []int64 `parquet:"image"`
	}
	for _, id := range []string{goneJPEG, gonePNG} {
		var narrow []int32
		var signed []int64
		for _, b := range w.images[id] {
			narrow, signed = append(narrow, int32(b)), append(signed, int64(int8(b)))
		}
		for name, body := range map[string][]byte{
			"a.parquet": parquetOf(small{"x1", narrow}), "b.parquet": parquetOf(wide{"x1", signed}),
			"c.arrow": arrowLists(t, w.images[id]),
		} {
			file := filepath.Join(t.TempDir(), name)
			testkit.OK(t, os.WriteFile(file, body, 0o600))
			testkit.Same(t, id+" in "+name, Fail, w.audit(t, w.ws, file).Verdict)
		}
	}
}

// arrowLists is a file of Arrow with bytes as a list of numbers.
func arrowLists(t *testing.T, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	schema := arrow.NewSchema([]arrow.Field{{Name: "image", Type: arrow.ListOf(arrow.PrimitiveTypes.Uint8)}}, nil)
	lists := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Uint8)
	lists.Append(true)
	lists.ValueBuilder().(*array.Uint8Builder).AppendValues(body, nil)
	file, err := ipc.NewFileWriter(&out, ipc.WithSchema(schema))
	testkit.OK(t, err)
	record := array.NewRecordBatch(schema, []arrow.Array{lists.NewArray()}, 1)
	testkit.OK(t, file.Write(record), file.Close())
	return out.Bytes()
}
