package scan

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// PictureColumns names the columns of a Parquet that hold pictures and their text.
type PictureColumns struct {
	Image string // "" for the one there is
	Text  string // "" for ocr_text where the file has it
}

// A PictureRow is one row of a Parquet of pictures.
type PictureRow struct {
	Path  string // as the row calls its picture; empty if it has no name
	Image []byte // the encoded picture, not checked; nil for null
	Text  string // any bytes; empty for null and without a column of text
}

// A PictureReader reads the pictures of any Parquet file, row by row: of a struct with
// bytes and perhaps path, as Hugging Face writes an Image, or of a column of bytes. A path
// is a name and nothing else: no file is opened by it. Memory is bounded by a page of each column.
type PictureReader struct {
	table   *tableReader
	columns PictureColumns
	path    int // place in table.columns, -1 for none
	text    int
}

// OpenPictures opens a Parquet file whose pictures are to be read. A file that cannot be
// read, or that has no such column, gives a *manifest.Problem.
func OpenPictures(path string, want PictureColumns) (*PictureReader, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	p, err := openPictures(f, want)
	if err != nil {
		f.Close()
		return nil, asProblem(path, err)
	}
	return p, nil
}

// openRegular refuses what is not a regular file before it opens it: a pipe would wait for ever.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("open parquet %s: %w", path, err)
	}
	return os.Open(path)
}

func openPictures(f *os.File, want PictureColumns) (p *PictureReader, err error) {
	defer recovered(&err)()
	t, err := openTableReader(f, pictureLimits)
	if err != nil {
		return nil, err
	}
	p = &PictureReader{table: t, path: -1, text: -1}
	if err := p.findImage(t.file.parquet.Root(), want.Image); err != nil {
		return nil, err
	}
	if err := p.findText(t.file.parquet.Root(), want.Text); err != nil {
		return nil, err
	}
	return p, t.checkCodecs()
}

// Columns are the columns that are read. Text is "" where there is none.
func (p *PictureReader) Columns() PictureColumns { return p.columns }

// Rows is how many rows the file says it has.
func (p *PictureReader) Rows() int64 { return max(p.table.file.parquet.NumRows(), 0) }

// Own reports whether the file is a dataset that this tool exported.
func (p *PictureReader) Own() bool {
	_, own := p.table.file.Footer("rehydrate.format")
	return own
}

// Close closes the file.
func (p *PictureReader) Close() error { return p.table.Close() }

// Next returns the next row, io.EOF after the last. The row is the caller's. After an error,
// which says that the file is damaged, there are no more rows.
func (p *PictureReader) Next() (PictureRow, error) {
	if p.table.err != nil {
		return PictureRow{}, p.table.err
	}
	row, err := p.next()
	if err != nil {
		p.table.err = err
	}
	return row, err
}

func (p *PictureReader) next() (row PictureRow, err error) {
	defer recovered(&err)()
	if err := p.table.advance(); err != nil {
		return PictureRow{}, err
	}
	for i := range p.table.columns {
		c := &p.table.columns[i]
		value, err := c.bytes(p.table.cursors[i])
		switch {
		case err != nil:
			return PictureRow{}, fmt.Errorf("column %q: %w", c.name, err)
		// What is neither name nor text is the picture.
		case i == p.path:
			row.Path = string(value)
		case i == p.text:
			row.Text = string(value)
		default:
			row.Image = value
		}
	}
	return row, nil
}

// bytes reads a copy of the column's value of the next row, nil for null.
func (t *tableColumn) bytes(c *cursor) ([]byte, error) {
	v, err := c.first()
	if err != nil || v.DefinitionLevel() < t.leaf.MaxDefinitionLevel() {
		return nil, err
	}
	return bytes.Clone(v.ByteArray()), nil
}

// findImage takes the column of that name, or the only one that can hold pictures: a struct
// with bytes before a column of bytes, and one that is called image before others.
func (p *PictureReader) findImage(root *parquet.Column, name string) error {
	var structs, flats []*parquet.Column
	for _, c := range root.Columns() {
		switch {
		case name != "" && c.Name() != name:
		case holdsBytes(c):
			flats = append(flats, c)
		case holdsBytes(child(c, "bytes")):
			structs = append(structs, c)
		}
	}
	// A struct says more than bare bytes: it is what Hugging Face writes for an image.
	found := structs
	if len(found) == 0 {
		found = flats
	}
	for _, c := range found {
		if c.Name() == "image" {
			found = []*parquet.Column{c}
			break
		}
	}
	switch {
	case len(found) == 0 && name != "":
		return hinted{fmt.Errorf("it has no column %s of pictures; its columns are %s", strconv.QuoteToGraphic(name), columnNames(root.Columns())),
			"name a column of bytes, or a struct with a field bytes"}
	case len(found) == 0:
		return hinted{fmt.Errorf("it has no column of pictures; its columns are %s", columnNames(root.Columns())),
			"pictures are read from a struct with a field bytes, as Hugging Face writes it, or from a column of bytes"}
	case len(found) > 1:
		return hinted{fmt.Errorf("several columns can hold pictures: %s", columnNames(found)), "name the one to read with --image-column"}
	}
	p.columns.Image = found[0].Name()
	if found[0].Leaf() {
		p.read(found[0])
		return nil
	}
	p.read(child(found[0], "bytes"))
	if path := child(found[0], "path"); isByteArray(path) {
		p.path = p.read(path)
	}
	return nil
}

func (p *PictureReader) findText(root *parquet.Column, name string) error {
	column := child(root, name)
	if name == "" {
		column = child(root, "ocr_text")
	}
	switch {
	case isByteArray(column):
		p.columns.Text = column.Name()
		p.text = p.read(column)
	case name != "":
		return hinted{fmt.Errorf("it has no column %s of text; its columns are %s", strconv.QuoteToGraphic(name), columnNames(root.Columns())), "name a column of strings"}
	}
	return nil
}

func (p *PictureReader) read(leaf *parquet.Column) int {
	return p.table.read(tableColumn{name: strings.Join(leaf.Path(), "."), leaf: leaf})
}

// child is the field of that name, nil for none.
func child(c *parquet.Column, name string) *parquet.Column {
	if c == nil || c.Leaf() || c.Repeated() {
		return nil
	}
	for _, field := range c.Columns() {
		if field.Name() == name {
			return field
		}
	}
	return nil
}

// holdsBytes reports whether a column holds one string of bytes a row, and not text.
func holdsBytes(c *parquet.Column) bool {
	if !isByteArray(c) {
		return false
	}
	if lt := c.Type().LogicalType(); lt != nil {
		return lt.Value == nil
	}
	return c.Type().ConvertedType() == nil
}

// isByteArray reports whether a column holds one string of bytes a row. It may be a text: some writers do not
// say of a string that it is one.
func isByteArray(c *parquet.Column) bool {
	return c != nil && c.Leaf() && c.MaxRepetitionLevel() == 0 && c.Type().Kind() == parquet.ByteArray
}

func columnNames(columns []*parquet.Column) string {
	const most = 20
	var names []string
	for i, c := range columns {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(columns)-i))
			break
		}
		names = append(names, strconv.QuoteToGraphic(c.Name()))
	}
	return strings.Join(names, ", ")
}
