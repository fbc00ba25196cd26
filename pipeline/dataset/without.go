package dataset

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/csvcell"
	"rehydrate/internal/fileversion"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
)

// Holds reports whether the file called name is one that holds rows, as WriteParquet, WriteWebDataset and
// WriteFolder name them, and as classify and moderate do; the images of WriteFolder are each a row's own.
func Holds(name string) bool { return removerOf(name) != nil }

// A remover writes a file once more without the rows whose id is gone. An error of gone ends it.
type remover func(w io.Writer, r io.ReaderAt, size int64, gone func(id string) (bool, error)) error

func removerOf(name string) remover {
	switch {
	case path.Ext(name) == ".parquet":
		return parquetWithout
	case path.Ext(name) == ".tar":
		return tarWithout
	case path.Base(name) == NumbersName+".csv":
		return tableWithout
	case isAnswers(path.Base(name)):
		return linesWithout
	case path.Base(name) == RecordsName:
		return recordsWithout
	}
	return nil
}

// isAnswers reports whether a file is named as those of what models say of rows, an object a line with the row's id.
func isAnswers(name string) bool {
	stem, isLines := strings.CutSuffix(name, ".jsonl")
	return isLines && (strings.HasPrefix(stem, "predictions") || strings.HasPrefix(stem, "scores") || stem == "examples")
}

var errNoRows = errors.New("it is not a kind of file that holds rows")

// WriteWithout writes the file called name, which this package made, once more without the rows that gone names.
// Everything else is as it was, to the byte. It fails for a file of another origin.
func WriteWithout(w io.Writer, name string, r io.ReaderAt, size int64, gone func(row string) bool) error {
	err := errNoRows
	if without := removerOf(name); without != nil {
		err = without(w, r, size, func(id string) (bool, error) { return gone(id), nil })
	}
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", name, err)
	}
	return nil
}

// RowIDs yields the ids of the rows in the file called name, in the file's order; those of a tar twice, once for
// each member. A Parquet may be anybody's, as long as its ids are in a column id.
func RowIDs(ctx context.Context, name string, r io.ReaderAt, size int64) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		enough := errors.New("no more ids are wanted")
		take := func(id string) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if !yield(id, nil) {
				return false, enough
			}
			return true, nil
		}
		err := errNoRows
		// What cannot be rewritten may still have to be found.
		if path.Ext(name) == ".parquet" {
			err = parquetIDs(r, size, take)
		} else if without := removerOf(name); without != nil {
			// Without any of its rows: what is written is not looked at.
			err = without(io.Discard, r, size, take)
		}
		if err != nil && !errors.Is(err, enough) {
			yield("", fmt.Errorf("read the ids of %s: %w", name, err))
		}
	}
}

func parquetIDs(r io.ReaderAt, size int64, take func(id string) (bool, error)) error {
	f, err := scan.Open(r, size)
	if err != nil {
		return err
	}
	ids := f.Named("id")
	if ids == nil {
		return errors.New("it has no column id")
	}
	for id, err := range f.Rows(ids) {
		if err == nil && !id[0].IsNull() {
			_, err = take(string(id[0].ByteArray()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parquetWithout(w io.Writer, r io.ReaderAt, size int64, gone func(id string) (bool, error)) error {
	f, err := scan.Open(r, size)
	if err != nil {
		return err
	}
	if made, ok := f.Footer(numbersKey); ok {
		return numbersWithout(w, f, made, gone)
	}
	own, err := readOwn(f)
	if err != nil {
		return err
	}
	stay := func(yield func(Row, error) bool) {
		for values, err := range own.file.Rows(own.file.Columns...) {
			row, drop := own.row(values), false
			if err == nil {
				drop, err = gone(row.ID)
			}
			if !drop && !yield(row, err) {
				return
			}
		}
	}
	// Written by the same code, so that the rows that stay give the bytes that they would have given alone.
	_, err = writeTable(w, own.schema, own.provenance, own.layout, stay)
	return err
}

// keyID is the id of the row that a file is named after.
func keyID(name string) string {
	// Ids have no - of their own.
	key, _, _ := strings.Cut(path.Base(name), ".")
	return strings.ReplaceAll(key, "-", "/")
}

// ImageID is the id of the row whose image WriteFolder called name; "" for another file of a folder.
func ImageID(name string) string {
	if !slices.Contains(imageEndings, strings.TrimPrefix(path.Ext(name), ".")) {
		return ""
	}
	return keyID(name)
}

func tarWithout(w io.Writer, r io.ReaderAt, size int64, gone func(id string) (bool, error)) error {
	out, members := tar.NewWriter(w), tar.NewReader(io.NewSectionReader(r, 0, size))
	for {
		h, err := members.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		drop, err := gone(keyID(h.Name))
		if err != nil {
			return err
		}
		if drop {
			continue
		}
		// The bytes are to be those that WriteWebDataset writes.
		h.Format = tar.FormatUSTAR
		err = out.WriteHeader(h)
		if err == nil {
			_, err = io.Copy(out, members)
		}
		if err != nil {
			return err
		}
	}
}

func tableWithout(w io.Writer, r io.ReaderAt, size int64, gone func(id string) (bool, error)) error {
	out, table := csv.NewWriter(w), csv.NewReader(io.NewSectionReader(r, 0, size))
	id := 0
	for header := true; ; header = false {
		// Row by row: the texts of a million memes do not fit into the memory.
		cells, err := table.Read()
		switch {
		case errors.Is(err, io.EOF) && !header:
			out.Flush()
			return out.Error()
		case err != nil:
			return err
		}
		drop := false
		if header {
			id = slices.Index(cells, "id")
		} else {
			drop, err = gone(csvcell.FromCell(cells[id]))
		}
		// Whose id stands elsewhere would stay.
		if id < 0 {
			return errors.New("it has no column id")
		}
		if err == nil && !drop {
			err = out.Write(cells)
		}
		if err != nil {
			return err
		}
	}
}

// linesWithout copies lines as they are.
func linesWithout(w io.Writer, r io.ReaderAt, size int64, gone func(id string) (bool, error)) error {
	lines := bufio.NewScanner(io.NewSectionReader(r, 0, size))
	lines.Buffer(nil, maxAnswerLine)
	for lines.Scan() {
		var row struct{ ID string }
		err := json.Unmarshal(lines.Bytes(), &row)
		if err == nil && row.ID == "" { // whose id stands elsewhere would stay
			err = errors.New("a line has no id")
		}
		drop := false
		if err == nil {
			drop, err = gone(row.ID)
		}
		if err == nil && !drop {
			_, err = w.Write(append(lines.Bytes(), '\n'))
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// maxAnswerLine bounds a line of a file of answers, in bytes: an answer has at most 4 MiB.
const maxAnswerLine = 16 << 20

// PostOf is the post of a row's id, which has /n behind it for the image n of a gallery.
func PostOf(rowID string) manifest.PostID {
	id, _, _ := strings.Cut(rowID, "/")
	return manifest.PostID(id)
}

// ReadOwn yields the rows of a Parquet file that WriteParquet made, as they were written but for the codes of labels. A
// row is only read, and not after the next one has been asked for.
func ReadOwn(r io.ReaderAt, size int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		own, err := openOwn(r, size)
		if err != nil {
			yield(Row{}, fmt.Errorf("read the Parquet: %w", err))
			return
		}
		for values, err := range own.file.Rows(own.file.Columns...) {
			if err != nil {
				yield(Row{}, fmt.Errorf("read the Parquet: %w", err))
				return
			}
			if !yield(own.row(values), nil) {
				return
			}
		}
	}
}

// ReadProvenance reads what a Parquet file that WriteParquet made says of its origin.
func ReadProvenance(r io.ReaderAt, size int64) (Provenance, error) {
	own, err := openOwn(r, size)
	if err != nil {
		return Provenance{}, fmt.Errorf("read the Parquet: %w", err)
	}
	return own.provenance, nil
}

// An own file is one that WriteParquet made, with what its footer says.
type own struct {
	file       *scan.File
	schema     manifest.Schema // as far as the columns show it
	provenance Provenance
	layout     layout
	leaves     []leaf // of the layout
}

func openOwn(r io.ReaderAt, size int64) (*own, error) {
	f, err := scan.Open(r, size)
	if err != nil {
		return nil, err
	}
	return readOwn(f)
}

func readOwn(f *scan.File) (*own, error) {
	version, ok := f.Footer("rehydrate.format")
	if !ok {
		return nil, errors.New("it is none that rehydrate wrote: its footer has no rehydrate.format")
	}
	err := fileversion.Check("the Parquet", version, FormatVersion, "make it again: rehydrate run, or export for a copy")
	if err != nil {
		return nil, err
	}
	o := &own{file: f}
	for _, p := range o.provenance.pairs() {
		value, ok := f.Footer("rehydrate." + p.Key)
		if !ok {
			return nil, fmt.Errorf("its footer has no rehydrate.%s", p.Key)
		}
		*p.Value = value
	}
	if err := o.readFeatures(f.Features()); err != nil {
		return nil, fmt.Errorf("the features in its footer: %w", err)
	}
	// A file that another program wrote over ours keeps its footer, perhaps, but not its columns.
	if want := parquetSchema(o.schema, o.layout.columns); want.String() != o.file.Schema().String() {
		return nil, errors.New("its columns are not those that its footer describes")
	}
	return o, nil
}

// readFeatures finds the label categories in the columns and the names of their labels in the
// Hugging Face features.
func (o *own) readFeatures(features map[string]scan.Feature) error {
	columns := o.file.Schema().Fields()
	// The file is anybody's until its layout has been compared with the one that follows from this.
	_, flagged := features["filter"]
	o.layout = layoutOf(Parquet, flagged)
	if _, ok := features[fileName]; ok {
		o.layout = layoutOf(Folder, flagged)
	}
	o.leaves = o.layout.leaves()
	base := len(o.layout.columns)
	if len(columns) < base {
		return fmt.Errorf("%d columns are too few", len(columns))
	}
	for _, column := range columns[base:] {
		c := manifest.Category{Name: column.Name(), Kind: manifest.Single}
		f := features[c.Name]
		// Codes and the order of an ordinal are not in the file, and nothing that is written depends on them.
		if f.Feature != nil {
			c.Kind, f = manifest.Multi, *f.Feature
		}
		if kind, ok := typeOf(f); ok {
			o.schema.Columns = append(o.schema.Columns,
				manifest.Column{Name: c.Name, Type: kind, List: c.Kind == manifest.Multi})
			continue
		}
		for _, name := range f.Names {
			c.Labels = append(c.Labels, manifest.Label{Name: name})
		}
		o.schema.Categories = append(o.schema.Categories, c)
	}
	return nil
}

// typeOf is the type of a column that passes through.
func typeOf(f scan.Feature) (manifest.ColumnType, bool) {
	for _, kind := range manifest.ColumnTypes() {
		if f.Type == "Value" && f.DType == dtypes[kind] {
			return kind, true
		}
	}
	return "", false
}

// row is appendRow the other way round.
func (o *own) row(values parquet.Row) Row {
	base := len(o.leaves)
	r := Row{Labels: make([][]int, len(o.schema.Categories)), Values: make([][]string, len(o.schema.Columns))}
	passed := base + len(o.schema.Categories)
	for _, v := range values {
		c := v.Column()
		switch {
		case c >= passed:
			kind := o.schema.Columns[c-passed].Type
			addCell(&r.Values[c-passed], v, func(v parquet.Value) string { return valueText(kind, v) })
		case c >= base:
			if v.IsNull() && v.DefinitionLevel() == 2 {
				continue // which no row of ours has
			}
			addCell(&r.Labels[c-base], v, func(v parquet.Value) int { return int(v.Int64()) })
		case !v.IsNull():
			o.leaves[c].set(&r, v)
		}
	}
	return r
}

// addCell adds what a leaf holds to a cell.
func addCell[T any](cell *[]T, v parquet.Value, value func(parquet.Value) T) {
	switch {
	case !v.IsNull(), v.DefinitionLevel() == 2: // or an element of a list that is null
		*cell = append(*cell, value(v))
	case v.DefinitionLevel() == 1: // the empty list
		*cell = []T{}
	}
}
