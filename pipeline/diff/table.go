package diff

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
)

// A table is what two datasets are compared by of a Parquet file that anybody may have written: everything but the
// images.
type table struct {
	reader  manifest.RowReader
	path    string
	row     int      // that was read last, counted from 1
	last    row      // that one
	columns []string // of the cells

	isRelease bool // and no Parquet file: there are no images and texts
	ordered   bool // a list of labels has a place for each row of a release about the image
	// Of a release: why posts are gone, and what stands beside release.toml and annotations, of which the digest does
	// not depend.
	gone    map[manifest.PostID]*state.Conclusion
	besides map[string]string
	names   map[string]map[string]string // beside a dataset: by column, the names of labels by their codes

	standard   map[string]*string      // where the text of these columns goes; all others are of labels
	has        map[string]bool         // whether a column of that name is read
	labels     []string                // the label columns, in the file's order: every column that is not a standard one
	features   map[string]scan.Feature // of the columns, as far as the file tells them
	types      map[string]string       // of every column, of those that are not read too
	unread     []manifest.Unread       // the columns that are not read
	provenance map[string]string       // what the footer says of the file's origin, by the keys of rehydrate.*
}

// A row is one of a table.
type row struct {
	id                         string // "" where the row has none
	sha256, phash, text, split string // empty for null and without such a column
	notCompared                string
	// labels has, for each label column of the table, the values. nil means that no label was given.
	labels [][]string
}

// maxRowID is the longest id that is taken, in bytes.
const maxRowID = 100

// openTable opens a Parquet file that has its rows' ids in a column id.
func openTable(path string) (*table, error) {
	f, err := scan.OpenFile(path)
	if err != nil {
		return nil, err
	}
	t := &table{path: path, has: map[string]bool{}, features: f.Features(), types: typesOf(f),
		provenance: map[string]string{}}
	r := &t.last
	t.standard = map[string]*string{}
	for _, name := range dataset.FactColumns() {
		t.standard[name] = &r.notCompared
	}
	maps.Copy(t.standard, map[string]*string{"id": &r.id, "sha256": &r.sha256, "phash": &r.phash, "ocr_text": &r.text,
		"split": &r.split})
	t.unread = f.Unread()
	for _, kv := range f.KeyValues() {
		if key, ours := strings.CutPrefix(kv.Key, "rehydrate."); ours {
			t.provenance[key] = kv.Value
		}
	}
	t.reader, err = f.Cells()
	if err != nil {
		return nil, err
	}
	t.columns = slices.Clone(t.reader.Columns())
	for i, name := range t.columns {
		// The first of two columns of one name counts.
		if t.has[name] {
			t.columns[i] = ""
			continue
		}
		t.has[name] = true
		if t.standard[name] == nil {
			t.labels = append(t.labels, name)
		}
	}
	if !t.has["id"] {
		t.reader.Close()
		return nil, &manifest.Problem{File: path, Message: "it has no column id, by which rows could be compared",
			Hint: "name a dataset that rehydrate wrote, or a Parquet with such a column"}
	}
	return t, nil
}

// typesOf gives the types of a file's columns.
func typesOf(f *scan.File) map[string]string {
	types := map[string]string{}
	for _, c := range f.Columns {
		types[c.Top] = c.Type
	}
	return types
}

// next returns the next row, io.EOF after the last. Every other error is final.
func (t *table) next() (row, error) {
	cells, err := t.reader.Next()
	if err == io.EOF {
		return row{}, err
	}
	t.row++
	t.last = row{}
	if err != nil {
		return row{}, scan.Damaged(t.path, fmt.Errorf("row %d: %w", t.row, err))
	}
	for i, name := range t.columns {
		cell, field := cells[i], t.standard[name]
		switch {
		case name == "", field == &t.last.notCompared:
		// A cell that cannot be used would pass as a difference between two datasets.
		case cell.Fault != "":
			return row{}, &manifest.Problem{File: t.path, Line: t.row,
				Message: fmt.Sprintf("the value of column %q %s", name, cell.Fault),
				Hint:    "mend the value, or compare copies of both files without the column"}
		case field != nil:
			*field = cell.Text
		case cell.Null:
			t.last.labels = append(t.last.labels, nil)
		case cell.IsList:
			t.last.labels = append(t.last.labels, cell.List)
		default:
			t.last.labels = append(t.last.labels, []string{cell.Text})
		}
	}
	// Ids are kept for all rows of a file.
	if len(t.last.id) > maxRowID {
		return row{}, &manifest.Problem{File: t.path, Line: t.row,
			Message: fmt.Sprintf("the id has %d bytes, and at most %d are taken", len(t.last.id), maxRowID),
			Hint:    "rows are compared by a column id; an id of Reddit is shorter, such as 1abc or 1abc/2"}
	}
	return t.last, nil
}
