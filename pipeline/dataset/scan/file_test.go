package scan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/internal/testkit"
)

type scanned struct {
	ID    string `parquet:"ID"`
	Image struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	} `parquet:"image"`
	Hash   int64    `parquet:"hash"`
	Labels []string `parquet:"labels,list"`
	Score  float64  `parquet:"score"`
	Note   *string  `parquet:"note,optional"`
}

func scannedFile(t testing.TB, rows int, options ...parquet.WriterOption) []byte {
	t.Helper()
	var all []scanned
	for i := range rows {
		row := scanned{ID: fmt.Sprintf("id%d", i), Hash: int64(i), Labels: []string{"a", "b"}[:i%3%2+1]}
		row.Image.Bytes = bytes.Repeat([]byte{byte(i)}, 300)
		if i == 4 {
			row.Note = new("a note")
		}
		all = append(all, row)
	}
	return parquetOf(t, all, append(options, parquet.MaxRowsPerRowGroup(3))...)
}

func opened(t testing.TB, file []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	testkit.OK(t, err)
	return f
}

// values are what a column holds, as text with the row before it.
func values(t testing.TB, file []byte, column string) (got []string, err error) {
	t.Helper()
	s, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.Columns, func(c *Column) bool { return c.Name == column })
	row := 0
	for values, err := range s.Rows(s.Columns[i]) {
		if err != nil {
			return got, err
		}
		for _, v := range values {
			if n, ok := s.Columns[i].Data(v).(int64); ok {
				got = append(got, fmt.Sprintf("%d:%d", row, n))
			} else if !v.IsNull() {
				got = append(got, fmt.Sprintf("%d:%.8q", row, s.Columns[i].Data(v)))
			}
		}
		row++
	}
	return got, nil
}

// TestScan reads columns of every kind over several row groups.
func TestScan(t *testing.T) {
	file := scannedFile(t, 5)
	var columns []Column
	for _, c := range opened(t, file).Columns {
		columns = append(columns, Column{Name: c.Name, Top: c.Top, Type: c.Type, Bytes: c.Bytes, Text: c.Text,
			Valued: c.Valued})
	}
	if diff := cmp.Diff([]Column{
		{Name: "ID", Top: "ID", Type: "string", Bytes: true, Text: true, Valued: true},
		{Name: "image.bytes", Top: "image", Type: "struct", Bytes: true, Valued: true},
		{Name: "image.path", Top: "image", Type: "struct", Bytes: true, Text: true, Valued: true},
		{Name: "hash", Top: "hash", Type: "int(64,true)", Valued: true},
		{Name: "labels.list.element", Top: "labels", Type: "list of string", Valued: true},
		{Name: "score", Top: "score", Type: "double", Valued: true},
		{Name: "note", Top: "note", Type: "string", Bytes: true, Text: true, Valued: true},
	}, columns, cmpopts.IgnoreUnexported(Column{})); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for column, want := range map[string][]string{
		"ID":                  {`0:"id0"`, `1:"id1"`, `2:"id2"`, `3:"id3"`, `4:"id4"`},
		"hash":                {"0:0", "1:1", "2:2", "3:3", "4:4"},
		"note":                {`4:"a note"`},
		"labels.list.element": {`0:"a"`, `1:"a"`, `1:"b"`, `2:"a"`, `3:"a"`, `4:"a"`, `4:"b"`},
	} {
		got, err := values(t, file, column)
		testkit.Same(t, column, want, got, err)
	}
}

// TestLists knows the lists of every writer, and takes nothing else for one.
func TestLists(t *testing.T) {
	text := parquet.String()
	once, repeated := parquet.Group{"a": text}, parquet.Repeated(text)
	var b bytes.Buffer
	testkit.OK(t, parquet.NewWriter(&b, parquet.NewSchema("lists", parquet.Group{
		"bare": repeated, "newer": parquet.List(text), "null": parquet.Optional(parquet.List(parquet.Optional(text))),
		"older": parquet.Group{"array": repeated}, "deep": parquet.List(once), "lists": parquet.List(parquet.List(text)),
		"map":    parquet.Map(text, text),
		"single": once, "structs": parquet.Repeated(once), "within": parquet.Group{"a": parquet.Group{"b": repeated}},
	})).Close())
	types := map[string]string{}
	for _, c := range opened(t, b.Bytes()).Columns {
		types[c.Top] = c.Type
	}
	testkit.Same(t, "types", map[string]string{"bare": "list of string", "newer": "list of string",
		"null": "list of string", "older": "list of string",
		"deep": "list of lists or structs", "lists": "list of lists or structs", "map": "map", "single": "struct",
		"structs": "struct", "within": "struct"}, types)
}

// TestTwins reads both of two columns that have one name: a row could be hidden in the second.
func TestTwins(t *testing.T) {
	type row struct {
		ID    string `parquet:"id"`
		Other string `parquet:"xx"`
	}
	f := opened(t, bytes.ReplaceAll(parquetOf(t, []row{{"first", "second"}}), []byte("\x02xx"), []byte("\x02id")))
	var got []string
	for _, c := range f.Columns {
		for row, err := range f.Rows(c) {
			testkit.OK(t, err)
			got = append(got, fmt.Sprintf("%s: %s", c.Name, row[0].ByteArray()))
		}
	}
	testkit.Same(t, "values", []string{"id: first", "id: second"}, got)
}

// TestRowsWithoutColumns: a file without columns has no rows, and not rows without end.
func TestRowsWithoutColumns(t *testing.T) {
	var file bytes.Buffer
	testkit.OK(t, parquet.NewWriter(&file, parquet.NewSchema("none", parquet.Group{})).Close())
	f := opened(t, file.Bytes())
	for row, err := range f.Rows(f.Columns...) {
		t.Fatalf("row %v, %v", row, err)
	}
}

// TestScanRefuses finds no column that is not there or has no bytes, and has every file that is cut short end in an
// error.
func TestScanRefuses(t *testing.T) {
	file := scannedFile(t, 5)
	for _, column := range []string{"nosuch", "score", ""} {
		if got := opened(t, file).Named(column); got != nil {
			t.Errorf("column %q = %v, want none", column, got)
		}
	}
	for n := range len(file) {
		if got, err := values(t, file[:n], "ID"); err == nil {
			t.Errorf("the first %d of %d bytes hold %v, want an error", n, len(file), got)
		}
	}
}

// TestLongFooter: a footer with long notes, as writers of maps and tables add them, does not keep a file from being
// read.
func TestLongFooter(t *testing.T) {
	f := opened(t, scannedFile(t, 5, parquet.KeyValueMetadata("note", string(make([]byte, 17<<20)))))
	if note, ok := f.Footer("note"); !ok || len(note) != 17<<20 {
		t.Errorf("a note of %d bytes, %v", len(note), ok)
	}
}

// TestDeepColumn reads a column however many groups are around it.
func TestDeepColumn(t *testing.T) {
	var node parquet.Node = parquet.String()
	for range 100 {
		node = parquet.Group{"a": node}
	}
	var b bytes.Buffer
	w := parquet.NewWriter(&b, parquet.NewSchema("deep", parquet.Group{"top": node}))
	_, err := w.WriteRows([]parquet.Row{{parquet.ByteArrayValue([]byte("found")).Level(0, 0, 0)}})
	testkit.OK(t, errors.Join(err, w.Close()))
	got, err := values(t, b.Bytes(), "top"+strings.Repeat(".a", 100))
	testkit.Same(t, "values", []string{`0:"found"`}, got, err)
}

// TestFooterWithoutEnd refuses short footers of which the library makes gigabytes.
func TestFooterWithoutEnd(t *testing.T) {
	group := func(name string, children int) (e format.SchemaElement) {
		e.Name = name
		e.NumChildren.V, e.NumChildren.Valid = int32(children), true
		return e
	}
	leaf := format.SchemaElement{Name: "x"}
	leaf.Type.Valid = true
	leaves := slices.Repeat([]format.SchemaElement{leaf}, 1e4)
	for name, c := range map[string]struct {
		schema []format.SchemaElement
		groups int
		want   string
	}{
		"groups in groups": {append(slices.Repeat([]format.SchemaElement{group("a", 1)}, 1e5), leaf), 0,
			"nested too deep"},
		"a long name above": {append([]format.SchemaElement{group("a", 1), group(strings.Repeat("a", 1e5), 1e4)},
			leaves...), 0, "nested too deep"},
		"many row groups": {append([]format.SchemaElement{group("a", 1e4)}, leaves...), 1e4,
			"row group 0 has 0 columns, and the file 10000"},
	} {
		footer, err := thrift.Marshal(new(thrift.CompactProtocol), &format.FileMetaData{Schema: c.schema,
			RowGroups: make([]format.RowGroup, c.groups)})
		testkit.OK(t, err)
		file := binary.LittleEndian.AppendUint32(append([]byte("PAR1"), footer...), uint32(len(footer)))
		file = append(file, "PAR1"...)
		_, err = Open(bytes.NewReader(file), int64(len(file)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want: %s", name, err, c.want)
		}
	}
}

// TestUnclaimed finds what lies in a Parquet beside the parts that its footer names, and nothing in a
// file that has indexes, filters and several row groups.
func TestUnclaimed(t *testing.T) {
	type row struct {
		ID string `parquet:"id,dict"`
		N  int64  `parquet:"n"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.BloomFilters(parquet.SplitBlockFilter(10, "id")))
	for i := range 3 {
		_, err := w.Write([]row{{"few00" + string(rune('0'+i)), int64(i)}, {"few009", 9}})
		testkit.OK(t, err, w.Flush())
	}
	testkit.OK(t, w.Close())
	whole := b.Bytes()
	footer := len(whole) - 8 - int(whole[len(whole)-8]) - int(whole[len(whole)-7])<<8
	with := func(between string) []byte {
		return append(append(bytes.Clone(whole[:footer]), between...), whole[footer:]...)
	}
	for name, c := range map[string]struct {
		file []byte
		want []Span
	}{
		"whole":   {whole, nil},
		"hidden":  {with("\x00\x00few003\x00\x00"), []Span{{int64(footer), int64(footer) + 10}}},
		"another": {with(string(whole)), []Span{{int64(footer), int64(footer + len(whole))}}},
	} {
		testkit.Same(t, name, c.want, opened(t, c.file).Unclaimed(), nil)
	}
}

// TestKeyValues finds what the footer says beside.
func TestKeyValues(t *testing.T) {
	f := opened(t, scannedFile(t, 5, parquet.KeyValueMetadata("a key", "a value")))
	var pairs []string
	for _, kv := range f.KeyValues() {
		pairs = append(pairs, kv.Key+"="+kv.Value)
	}
	testkit.Same(t, "key-values", []string{"a key=a value"}, pairs, nil)
}

// TestLackingValues refuses pages that claim more values than they hold: the library takes the rest from memory that
// another page had.
func TestLackingValues(t *testing.T) {
	type row struct {
		A *int32   `parquet:"a"`
		B *int64   `parquet:"b"`
		C *bool    `parquet:"c"`
		D *float64 `parquet:"d"`
		E *string  `parquet:"e"`
		F string   `parquet:"f,optional,dict"`
		G int64    `parquet:"g,optional,delta"`
	}
	whole := parquetOf(t, make([]row, 10), parquet.DataPageVersion(1))
	// 10 levels: runs of 8 and of 2, in four bytes.
	nulls, values := []byte{4, 0, 0, 0, 8 << 1, 0, 2 << 1, 0}, []byte{4, 0, 0, 0, 8 << 1, 1, 2 << 1, 1}
	checksum := func(page []byte) []byte { return binary.AppendVarint(nil, int64(int32(crc32.ChecksumIEEE(page)))) }
	file := bytes.ReplaceAll(whole, nulls, values)
	for at := range whole {
		for n := len(nulls); bytes.HasPrefix(whole[at:], nulls) && n < 20; n++ {
			file = bytes.ReplaceAll(file, checksum(whole[at:at+n]), checksum(file[at:at+n]))
		}
	}
	forged := opened(t, file)
	for _, c := range forged.Columns {
		n := 0
		for row, err := range forged.Rows(c) {
			n++
			if n > 1 || err == nil || !strings.Contains(err.Error(), "a page of 10 values, and it holds 0") {
				t.Errorf("column %s: %v, %v", c.Name, row, err)
			}
		}
		if n == 0 {
			t.Errorf("column %s has no rows", c.Name)
		}
	}
	for row, err := range opened(t, whole).Rows(forged.Columns[:1]...) {
		if err != nil || !row[0].IsNull() {
			t.Errorf("the whole file: %v, %v", row, err)
		}
	}
}

// TestUnused gives what stands in a dictionary and in no row, as it is written where levels of a category are kept.
func TestUnused(t *testing.T) {
	type row struct {
		ID   string   `parquet:"id,dict"`
		Tags []string `parquet:"tags,list,dict"`
		Note *string  `parquet:"note,dict,optional"`
		N    int64    `parquet:"n"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Uncompressed))
	for group := range 2 {
		_, err := w.Write([]row{{"a1", []string{"x", "y"}, nil, 1}, {"b2", nil, new("one"), 2},
			{fmt.Sprint("c", group), []string{"z"}, new("two"), 3}})
		testkit.OK(t, err, w.Flush())
	}
	testkit.OK(t, w.Close())
	body := b.Bytes()
	for _, swap := range [][2]string{ // runs of one index each: none says that a row has the second value, or the last
		{"\x02\x02\x00\x02\x01\x02\x02", "\x02\x02\x00\x02\x00\x02\x02"},
		{"\x01\x02\x02\x00\x02\x01\x02\x02", "\x01\x02\x02\x00\x02\x01\x02\x01"},
		{"\x02\x00\x04\x01\x01\x02\x00\x02\x01", "\x02\x00\x04\x01\x01\x02\x00\x02\x00"},
	} {
		body = testkit.ForgePage(t, body, swap[0], swap[1])
	}
	f, err := Open(bytes.NewReader(body), int64(len(body)))
	testkit.OK(t, err)
	got := map[string][]string{}
	for _, c := range f.Columns {
		for v, err := range f.Unused(c) {
			testkit.OK(t, err)
			got[c.Name] = append(got[c.Name], string(v.([]byte)))
		}
	}
	testkit.Same(t, "unused", map[string][]string{"id": {"b2"}, "tags.list.element": {"z"}, "note": {"two"}}, got)
}

// TestNotes gives the bounds of columns, which only the bytes of a file have where they are of other rows.
func TestNotes(t *testing.T) {
	type row struct {
		ID string `parquet:"id,plain"`
		N  int64  `parquet:"n"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Uncompressed),
		parquet.CreatedBy("a program", "1", "2"))
	_, err := w.Write([]row{{"aaa", 1}, {"mmm", 2}, {"zzz", 3}})
	testkit.OK(t, err, w.Close())
	whole, places := b.Bytes(), 0
	for at := range whole {
		if !bytes.HasPrefix(whole[at:], []byte("\x03zzz")) { // the value itself has a longer length
			continue
		}
		places++
		body := bytes.Clone(whole)
		copy(body[at+1:], "yyy")
		f := opened(t, body)
		for _, c := range f.Columns {
			for _, err := range f.Rows(c) {
				testkit.OK(t, err)
			}
		}
		var all []string
		for note, err := range f.Notes() {
			testkit.OK(t, err)
			all = append(all, note)
		}
		if notes := strings.Join(all, "\n"); !strings.Contains(notes, "yyy") || !strings.Contains(notes, "a program") {
			t.Errorf("byte %d: %q", at, notes)
		}
	}
	if places < 4 { // at the head of the page, in the index, and in the footer
		t.Errorf("%d places", places)
	}
}

// TestCutBounds leaves out the bounds that are cut short and begin a value of the column, as programs write them, and
// gives all others, also those that only differ from one by a byte.
func TestCutBounds(t *testing.T) {
	type row struct {
		Text string `parquet:"text,plain"`
	}
	long := func(letter string, n int) string { return strings.Repeat(letter, n) }
	for name, c := range map[string]struct {
		values []string
		bound  string // in place of those of the column
		said   bool
	}{
		"the beginning of a value":                {[]string{long("a", 300), long("m", 300)}, long("m", 256), false},
		"its last byte is one higher":             {[]string{long("a", 300), long("m", 300)}, long("m", 255) + "n", false},
		"its last byte is two higher":             {[]string{long("a", 300), long("m", 300)}, long("m", 255) + "o", true},
		"another byte is higher":                  {[]string{long("a", 300), long("m", 300)}, long("m", 254) + "nm", true},
		"as long as the value":                    {[]string{long("a", 300), long("m", 256)}, long("m", 256), true},
		"in a value":                              {[]string{long("a", 300), "x" + long("m", 300)}, long("m", 256), true},
		"as short as a digest":                    {[]string{long("a", 300), long("m", 300)}, long("m", 64), true},
		"the beginning of a value of another row": {[]string{long("z", 300), long("m", 300)}, long("m", 256), false},
	} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Uncompressed), parquet.SkipPageStatistics("text"))
		for _, v := range c.values {
			_, err := w.Write([]row{{v}})
			testkit.OK(t, err)
		}
		testkit.OK(t, w.Close())
		f := opened(t, b.Bytes())
		meta := &f.parquet.Metadata().RowGroups[0].Columns[0].MetaData
		meta.Statistics = format.Statistics{MinValue: []byte(c.bound), MaxValue: []byte(c.bound)}
		for _, col := range f.Columns {
			for _, err := range f.Rows(col) {
				testkit.OK(t, err)
			}
		}
		said := false
		for note, err := range f.Notes() {
			testkit.OK(t, err)
			said = said || note == c.bound
		}
		testkit.Same(t, name, c.said, said)
	}
}
