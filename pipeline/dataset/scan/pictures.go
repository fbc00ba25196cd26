package scan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
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
	ID    string // of a column id that has strings; any bytes
}

// A PictureReader reads the pictures of any Parquet file, row by row: of a struct with
// bytes and perhaps path, as Hugging Face writes an Image, or of a column of bytes. A path
// is a name and nothing else: no file is opened by it.
type PictureReader struct {
	rows                  rows
	image, path, text, id *cursor // all but image nil for none

	Columns PictureColumns // those that are read; Text is "" where there is none
	Rows    int64          // how many the file says it has
	Own     bool           // the file is a dataset that this tool exported
}

// OpenPictures opens a Parquet file whose pictures are to be read. A file that cannot be
// read, or that has no such column, gives a *manifest.Problem.
func OpenPictures(path string, want PictureColumns) (*PictureReader, error) {
	p := &PictureReader{}
	return p, p.rows.open(path, pictureLimits, func() error {
		root := p.rows.parquet.Root()
		p.Rows = max(p.rows.parquet.NumRows(), 0)
		_, p.Own = p.rows.Footer("rehydrate.format")
		if err := p.findImage(root, want.Image); err != nil {
			return err
		}
		if id := root.Column("id"); isByteArray(id) && p.Columns.Image != "id" {
			p.id = p.rows.read(id)
		}
		return p.findText(root, want.Text)
	})
}

// Close closes the file.
func (p *PictureReader) Close() error { return p.rows.Close() }

// Next returns the next row, io.EOF after the last. The row is the caller's. After an error,
// which says that the file is damaged, there are no more rows.
func (p *PictureReader) Next() (PictureRow, error) {
	var values [4][]byte
	for i, c := range []*cursor{p.image, p.path, p.text, p.id} {
		if c == nil {
			continue
		}
		err := c.row(func(v parquet.Value) {
			if v.DefinitionLevel() == c.leaf.MaxDefinitionLevel() {
				values[i] = bytes.Clone(v.ByteArray())
			}
		})
		if err != nil {
			return PictureRow{}, err
		}
	}
	return PictureRow{Image: values[0], Path: string(values[1]), Text: string(values[2]), ID: string(values[3])}, nil
}

// findImage takes the column of that name, or the only one that can hold pictures, and one that is called image
// before others.
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
	if i := slices.IndexFunc(found, func(c *parquet.Column) bool { return c.Name() == "image" }); i >= 0 {
		found = found[i : i+1]
	}
	switch {
	case len(found) == 0 && name != "":
		return lacks(root, strconv.QuoteToGraphic(name)+" of pictures", "name a column of bytes, or a struct with a field bytes")
	case len(found) == 0:
		return lacks(root, "of pictures", "pictures are read from a struct with a field bytes, as Hugging Face writes it, or from a column of bytes")
	case len(found) > 1:
		return hinted{fmt.Errorf("several columns can hold pictures: %s", columnNames(found)), "name the one to read with --image-column"}
	}
	p.Columns.Image = found[0].Name()
	p.image = p.rows.read(cmp.Or(child(found[0], "bytes"), found[0]))
	if path := child(found[0], "path"); isByteArray(path) {
		p.path = p.rows.read(path)
	}
	return nil
}

func (p *PictureReader) findText(root *parquet.Column, name string) error {
	column := child(root, cmp.Or(name, "ocr_text"))
	if isByteArray(column) {
		p.Columns.Text, p.text = column.Name(), p.rows.read(column)
	} else if name != "" {
		return lacks(root, strconv.QuoteToGraphic(name)+" of text", "name a column of strings")
	}
	return nil
}

func lacks(root *parquet.Column, column, hint string) error {
	return hinted{fmt.Errorf("it has no column %s; its columns are %s", column, columnNames(root.Columns())), hint}
}

// child is the field of that name, nil for none.
func child(c *parquet.Column, name string) *parquet.Column {
	// In a list of structs the fields have several values a row.
	if c == nil || c.Leaf() || c.Repeated() {
		return nil
	}
	return c.Column(name)
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
	const most = 20 // for a line of a terminal
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
