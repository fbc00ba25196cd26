package dataset

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/jsonscan"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
)

// Where a row group ends. The writer holds one group.
const (
	maxGroupRows       = 100      // what the Hub's viewer reads best: one row costs its whole group
	maxGroupImageBytes = 32 << 20 // an image is at most 20 MiB, so a group stays well below 100 MB
)

// WriteParquet writes the rows as one Parquet file, and returns what it wrote. With flagged, the file has the column
// filter. No rows give a valid file with the full schema. After an error w holds a torso that the caller has to throw
// away.
func WriteParquet(w io.Writer, s manifest.Schema, p Provenance, flagged bool, rows iter.Seq2[Row, error]) (Stats,
	error) {
	return writeTable(w, s, p, layoutOf(Parquet, flagged), rows)
}

// writeTable is WriteParquet in any layout.
func writeTable(w io.Writer, s manifest.Schema, p Provenance, l layout, rows iter.Seq2[Row, error]) (stats Stats,
	err error) {
	var digest Stats
	err = digest.measure(w, func(w io.Writer) error {
		stats, err = writeParquet(w, s, p, l, rows)
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("write parquet: %w", err)
	}
	stats.Bytes, stats.SHA256 = digest.Bytes, digest.SHA256
	return stats, nil
}

// writeParquet is writeTable without the digests.
func writeParquet(w io.Writer, s manifest.Schema, p Provenance, l layout, rows iter.Seq2[Row, error]) (stats Stats,
	err error) {
	options, err := writerOptions(s, p, l.columns)
	if err != nil {
		return stats, err
	}
	pw := parquet.NewGenericWriter[any](w, options...)
	groupBytes := int64(0)
	buf := make(parquet.Row, 0, 16+len(s.Categories))
	for row, err := range rows {
		if err != nil {
			return stats, fmt.Errorf("after %d rows: %w", stats.Rows, err)
		}
		err = l.check(&row, s)
		if err == nil {
			buf = appendRow(buf[:0], s, l.columns, &row)
			_, err = pw.WriteRows([]parquet.Row{buf})
		}
		if err != nil {
			return stats, fmt.Errorf("row %d (%q): %w", stats.Rows+1, row.ID, err)
		}
		stats.Rows++
		stats.ImageBytes += int64(len(row.Image))
		groupBytes += int64(len(row.Image))
		if stats.Rows%maxGroupRows == 0 || groupBytes >= maxGroupImageBytes {
			if err := pw.Flush(); err != nil {
				return stats, fmt.Errorf("row group that ends with row %d: %w", stats.Rows, err)
			}
			groupBytes = 0
		}
	}
	if err := pw.Close(); err != nil {
		return stats, fmt.Errorf("footer: %w", err)
	}
	// The library may end a group by itself, too.
	stats.RowGroups = len(pw.File().Metadata().RowGroups)
	return stats, nil
}

// counter counts what passes through.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func writerOptions(s manifest.Schema, p Provenance, base []column) ([]parquet.WriterOption, error) {
	hub, err := jsonText(object{{"info", object{{"features", features(s, base)}}}})
	if err != nil {
		return nil, err
	}
	options := []parquet.WriterOption{
		parquetSchema(s, base),
		parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(maxGroupRows),
		// Version 1 pages are what every reader takes, the old ones too.
		parquet.DataPageVersion(1),
		// The default is taken from the build information of the program, which would make
		// the bytes depend on how it was built.
		parquet.CreatedBy("rehydrate", p.ToolVersion, ""),
		parquet.KeyValueMetadata("huggingface", hub),
		parquet.KeyValueMetadata("rehydrate.format", FormatVersion),
	}
	// Without both, page headers and chunk statistics hold whole images and texts as minimum and maximum: 822 MB for
	// 300 MB of images.
	skip := func(path []string) {
		options = append(options, parquet.SkipPageBounds(path...), parquet.SkipPageStatistics(path...))
	}
	for _, c := range base {
		if c.long != nil {
			skip(c.long)
		}
	}
	for _, c := range s.Columns {
		if c.Type == manifest.TypeText || c.Type == manifest.TypeJSON { // as long as a text that OCR read
			skip(leafOf(c))
		}
	}
	for _, kv := range p.pairs() {
		options = append(options, parquet.KeyValueMetadata("rehydrate."+kv.Key, *kv.Value))
	}
	if none := p.releasePolicy(); none != "" {
		options = append(options, parquet.KeyValueMetadata("rehydrate.release_policy", none))
	}
	return options, nil
}

func leafOf(c manifest.Column) []string {
	if c.List {
		return []string{c.Name, "list", "element"}
	}
	return []string{c.Name}
}

// group is a parquet.Group whose fields keep their order; parquet.Group sorts them.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g group) Fields() []parquet.Field { return g.fields }

func (g *group) add(name string, n parquet.Node) {
	if g.Group == nil {
		g.Group = parquet.Group{}
	}
	g.Group[name] = n
	// The only way to a Field from outside the library: as the single one of a Group.
	g.fields = append(g.fields, parquet.Group{name: n}.Fields()[0])
}

// parquetSchema lays out the columns as their features say.
func parquetSchema(s manifest.Schema, base []column) *parquet.Schema {
	var root group
	for i, column := range features(s, base) {
		n := node(column.Value.(scan.Feature))
		if i < len(base) && base[i].few {
			n = parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary))
		}
		root.add(column.Name, n)
	}
	return parquet.NewSchema("schema", root)
}

func node(f scan.Feature) parquet.Node {
	// Everything is optional, list elements too: datasets keeps a declared feature only where the Arrow field equals
	// the one it expects, which is nullable throughout.
	// Plain strings, as every reader knows them; the library's own choice is DELTA_LENGTH_BYTE_ARRAY.
	text := parquet.Optional(parquet.Encoded(parquet.String(), &parquet.Plain))
	switch {
	case f.Type == "Image":
		var image group
		plain := parquet.Encoded(parquet.Leaf(parquet.ByteArrayType), &parquet.Plain)
		image.add("bytes", parquet.Optional(parquet.Compressed(plain, &parquet.Uncompressed)))
		image.add("path", text)
		return parquet.Optional(image)
	case f.Type == "ClassLabel", f.DType == "int64":
		return parquet.Optional(parquet.Leaf(parquet.Int64Type))
	case f.Type == "Sequence":
		return parquet.Optional(parquet.List(node(*f.Feature)))
	case f.DType == "float64":
		return parquet.Optional(parquet.Leaf(parquet.DoubleType))
	case f.DType == "bool":
		return parquet.Optional(parquet.Leaf(parquet.BooleanType))
	case f.DType == timestampType:
		return parquet.Optional(parquet.Timestamp(parquet.Millisecond))
	case f.DType == "float32":
		return parquet.Optional(parquet.Leaf(parquet.FloatType))
	case f.DType == "int32":
		return parquet.Optional(parquet.Leaf(parquet.Int32Type))
	}
	return text
}

// appendRow turns a row into values with their levels, in column order.
func appendRow(out parquet.Row, s manifest.Schema, base []column, r *Row) parquet.Row {
	// The levels are set by hand: the library's way from Go values turns 0 and "" into null.
	for _, c := range base {
		for _, leaf := range c.leaves {
			v, definition := leaf.get(r), len(c.leaves) // 2 is that of a member of the image
			if v.IsNull() {
				definition--
			}
			out = append(out, v.Level(0, definition, columnAfter(out)))
		}
	}
	for i, c := range s.Categories {
		out = appendCell(out, r.Labels[i], c.Kind == manifest.Multi,
			func(id int) parquet.Value { return parquet.Int64Value(int64(id)) })
	}
	for i, c := range s.Columns {
		out = appendCell(out, r.Values[i], c.List, func(text string) parquet.Value {
			v, _ := parquetValue(c.Type, text) // check has seen it
			return v
		})
	}
	return out
}

// appendCell writes a value or a list of values; nil is null, and so is a value that is missing outside a list.
func appendCell[T any](out parquet.Row, values []T, isList bool, value func(T) parquet.Value) parquet.Row {
	column := columnAfter(out)
	// The definition levels of an optional list of optional elements are 0 for a null list, 1 for an empty list, 2 for a
	// null element, and 3 for an element.
	switch {
	case values == nil || len(values) == 0 && !isList:
		return append(out, parquet.NullValue().Level(0, 0, column))
	case len(values) == 0:
		return append(out, parquet.NullValue().Level(0, 1, column))
	case !isList:
		return append(out, value(values[0]).Level(0, 1, column))
	}
	for i, v := range values {
		element, definition := value(v), 3
		if element.IsNull() {
			definition = 2
		}
		out = append(out, element.Level(min(i, 1), definition, column))
	}
	return out
}

const timestampType = "timestamp[ms, tz=UTC]"

// dtypes are Hugging Face's names of the types of columns that pass through.
var dtypes = map[manifest.ColumnType]string{manifest.TypeText: "string", manifest.TypeInteger: "int64",
	manifest.TypeNumber: "float64", manifest.TypeBoolean: "bool", manifest.TypeTimestamp: timestampType,
	manifest.TypeJSON: "string"}

// parquetValue reads a value as manifest.Column writes it; valueText is the other way round.
func parquetValue(t manifest.ColumnType, text string) (v parquet.Value, err error) {
	if text == manifest.NoValue {
		return parquet.NullValue(), nil
	}
	switch t {
	case manifest.TypeInteger:
		n, failed := strconv.ParseInt(text, 10, 64)
		v, err = parquet.Int64Value(n), failed
	case manifest.TypeNumber:
		n, failed := strconv.ParseFloat(text, 64)
		v, err = parquet.DoubleValue(n), failed
	case manifest.TypeBoolean:
		yes, failed := strconv.ParseBool(text)
		v, err = parquet.BooleanValue(yes), failed
	case manifest.TypeTimestamp:
		at, failed := time.Parse(manifest.TimeForm, text)
		v, err = parquet.Int64Value(at.UnixMilli()), failed
	default:
		if !utf8.ValidString(text) {
			err = fmt.Errorf("its text %.40q is not UTF-8", text)
		}
		v = parquet.ByteArrayValue([]byte(text))
	}
	return v, err
}

func valueText(t manifest.ColumnType, v parquet.Value) string {
	if v.IsNull() {
		return manifest.NoValue
	}
	switch t {
	case manifest.TypeInteger:
		return strconv.FormatInt(v.Int64(), 10)
	case manifest.TypeNumber:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case manifest.TypeBoolean:
		return strconv.FormatBool(v.Boolean())
	case manifest.TypeTimestamp:
		return time.UnixMilli(v.Int64()).UTC().Format(manifest.TimeForm)
	}
	return string(v.ByteArray())
}

// AsRead gives what a reader of the dataset finds for the entries of a release with that schema (Schema.Joined): the
// columns, as a file without rows has them, and what gives the cells of an entry in them, of the id first.
func AsRead(s manifest.Schema) (*scan.File, func(manifest.Entry) []manifest.Cell, error) {
	id := columnsOf(Parquet, false)[:1]
	var empty bytes.Buffer
	_, err := writeParquet(&empty, s, Provenance{}, layout{columns: id}, func(func(Row, error) bool) {})
	if err != nil {
		return nil, nil, fmt.Errorf("write parquet: %w", err)
	}
	f, err := scan.Open(bytes.NewReader(empty.Bytes()), int64(empty.Len()))
	if err != nil {
		return nil, nil, fmt.Errorf("read the parquet that was written: %w", err)
	}
	cells := f.AsRead()
	return f, func(e manifest.Entry) []manifest.Cell {
		return cells(appendRow(nil, s, id, &Row{ID: e.Key.String(), Labels: e.Labels, Values: e.Values}))
	}, nil
}

func columnAfter(row parquet.Row) int {
	if len(row) == 0 {
		return 0
	}
	return row[len(row)-1].Column() + 1
}

// features are the Hugging Face features of the columns, a scan.Feature each.
func features(s manifest.Schema, base []column) (out object) {
	for _, c := range base {
		out = append(out, member{c.Name, c.feature})
	}
	for _, c := range s.Categories {
		f := scan.Feature{Type: "ClassLabel"}
		for _, l := range c.Labels {
			f.Names = append(f.Names, l.Name)
		}
		if c.Kind == manifest.Multi {
			f = scan.Feature{Feature: new(f), Type: "Sequence"}
		}
		out = append(out, member{c.Name, f})
	}
	for _, c := range s.Columns {
		f := valueOf(dtypes[c.Type])
		if c.List {
			f = scan.Feature{Feature: new(f), Type: "Sequence"}
		}
		out = append(out, member{c.Name, f})
	}
	return out
}

// An object is a JSON object whose members are columns of a file, and keep their order.
type object []member

type member struct {
	Name  string
	Value any
}

func (o object) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for i, m := range o {
		value, err := jsonText(m.Value)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", m.Name, err)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quoted(m.Name)+":"+value...)
	}
	return append(b, '}'), nil
}

func jsonText(v any) (string, error) {
	text, err := jsonscan.Marshal(v)
	return string(text), err
}

// quoted returns s in double quotes, good as JSON and as YAML.
func quoted(s string) string {
	text, err := jsonText(s)
	if err != nil { // a string always encodes
		panic(err)
	}
	return text
}
