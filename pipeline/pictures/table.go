package pictures

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/policy"
)

// Columns names the columns of a Parquet that hold pictures and their text.
type Columns struct {
	Image string // "" for the one there is
	Text  string // "" for ocr_text where the file has it
}

// openTable is for the pictures of any Parquet file: of a struct with bytes and perhaps path, as Hugging Face writes an
// Image, or of a column of bytes. A path is a name and nothing else: no file is opened by it.
func (s *Source) openTable(path string, want Columns) error {
	f, err := scan.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fields, err := find(f, path, want)
	if err != nil {
		return err
	}
	_, own := f.Footer("rehydrate.format")
	s.Most, s.TextColumn, s.OfDataset = f.NumRows(), fields.text, own || InWorkspace(filepath.Dir(path))
	s.All = func(yield func(Picture, error) bool) {
		f, err := scan.OpenFile(path)
		if err != nil {
			yield(Picture{}, err)
			return
		}
		defer f.Close()
		names := []string{fields.image}
		for _, name := range []string{fields.path, fields.text, fields.id} {
			if name != "" {
				names = append(names, name)
			}
		}
		i := 0
		for row, err := range f.Rows(names...) {
			if err != nil {
				err = fmt.Errorf("read %s, row %d: %w", path, i, err)
			}
			// A null has no bytes, and a field that the file lacks no value.
			value := func(name string) []byte {
				if at := slices.Index(names, name); err == nil && at >= 0 {
					return row[at].ByteArray()
				}
				return nil
			}
			p := Picture{Index: i, Path: string(value(fields.path)), ID: string(value(fields.id)), Text: string(value(fields.text))}
			p.Name = p.Path + "#" + strconv.Itoa(i)
			body := value(fields.image)
			p.Read = func() ([]byte, *policy.Fault) {
				if len(body) == 0 {
					return nil, invalid("no_image", "the row has no bytes of a picture")
				}
				return body, nil
			}
			i++
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
	return nil
}

// fields are the columns that are read, by their whole names; all but image may be empty.
type fields struct{ image, path, text, id string }

// find takes the column of that name, or the only one that can hold pictures, and one that is called image before others.
func find(f *scan.File, path string, want Columns) (found fields, err error) {
	columns := f.Layout()
	names := func(columns []scan.Column) string {
		const most = 20 // for a line of a terminal
		var quoted []string
		for _, c := range columns[:min(most, len(columns))] {
			quoted = append(quoted, strconv.QuoteToGraphic(c.Name))
		}
		if more := len(columns) - most; more > 0 {
			quoted = append(quoted, fmt.Sprintf("and %d more", more))
		}
		return strings.Join(quoted, ", ")
	}
	lacks := func(column, hint string) error {
		return &manifest.Problem{File: path, Message: "it has no column " + column + "; its columns are " + names(columns), Hint: hint}
	}
	bare := func(name string) bool {
		bytes, text := f.Bytes(name)
		return bytes && !text
	}
	isText := func(name string) bool {
		bytes, _ := f.Bytes(name)
		return bytes
	}
	var structs, flats []scan.Column
	for _, c := range columns {
		switch {
		case want.Image != "" && c.Name != want.Image:
		case bare(c.Name):
			flats = append(flats, c)
		case bare(c.Name + ".bytes"):
			structs = append(structs, c)
		}
	}
	// A struct says more than bare bytes: it is what Hugging Face writes for an image.
	images := structs
	if len(images) == 0 {
		images = flats
	}
	if i := slices.IndexFunc(images, func(c scan.Column) bool { return c.Name == "image" }); i >= 0 {
		images = images[i : i+1]
	}
	switch {
	case len(images) == 0 && want.Image != "":
		return found, lacks(strconv.QuoteToGraphic(want.Image)+" of pictures", "name a column of bytes, or a struct with a field bytes")
	case len(images) == 0:
		return found, lacks("of pictures", "pictures are read from a struct with a field bytes, as Hugging Face writes it, or from a column of bytes")
	case len(images) > 1:
		return found, &manifest.Problem{File: path, Message: "several columns can hold pictures: " + names(images), Hint: "name the one to read with --image-column"}
	}
	name := images[0].Name
	found.image = name
	if len(structs) > 0 {
		found.image += ".bytes"
		if isText(name + ".path") {
			found.path = name + ".path"
		}
	}
	if name != "id" && isText("id") {
		found.id = "id"
	}
	if text := cmp.Or(want.Text, "ocr_text"); isText(text) {
		found.text = text
	} else if want.Text != "" {
		return found, lacks(strconv.QuoteToGraphic(want.Text)+" of text", "name a column of strings")
	}
	return found, nil
}
