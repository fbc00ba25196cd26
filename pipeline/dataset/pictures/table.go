package pictures

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

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
func (s *Source) openTable(path string, want Columns, hidden func(file, id string) (bool, error)) error {
	f, found, err := openColumns(path, want)
	if err != nil {
		return err
	}
	defer f.Close()
	_, own := f.Footer("rehydrate.format")
	s.Most, s.OfDataset = f.NumRows(), own || InWorkspace(filepath.Dir(path))
	if text := found[2]; text != nil {
		s.TextColumn = text.Name
	}
	s.All = func(yield func(Picture, error) bool) {
		f, found, err := openColumns(path, want)
		if err != nil {
			yield(Picture{}, err)
			return
		}
		defer f.Close()
		i, left := 0, 0
		for row, err := range f.Rows(found[:]...) {
			if err != nil {
				yield(Picture{}, fmt.Errorf("read %s, row %d: %w", path, i, err))
				return
			}
			text := func(i int) string { return string(row[i].ByteArray()) } // a null has no bytes
			p := Picture{Index: i - left, Path: text(1), Text: text(2), ID: text(3), Name: text(1) + "#" + strconv.Itoa(i)}
			out, err := hidden(path, p.ID)
			if err != nil {
				yield(Picture{}, err)
				return
			}
			if out {
				i, left = i+1, left+1
				s.Hidden = max(s.Hidden, left)
				continue
			}
			p.Read = func() ([]byte, *policy.Fault) {
				body := row[0].ByteArray()
				if len(body) == 0 {
					return nil, invalid("no_image", "the row has no bytes of a picture")
				}
				return body, nil
			}
			i++
			if !yield(p, nil) {
				return
			}
		}
	}
	return nil
}

// openColumns opens a Parquet and finds the column of that name, or the one called image, or the only one of pictures;
// then those of its path, its text and its id, or nil.
func openColumns(path string, want Columns) (f *scan.File, found [4]*scan.Column, err error) {
	f, err = scan.OpenFile(path)
	if err != nil {
		return nil, found, err
	}
	found, err = find(f, path, want)
	if err != nil {
		f.Close()
	}
	return f, found, err
}

func find(f *scan.File, path string, want Columns) (found [4]*scan.Column, err error) {
	lacks := func(column, hint string) error {
		message := "it has no column " + column + "; its columns are " + namesOf(f.Columns)
		return &manifest.Problem{File: path, Message: message, Hint: hint}
	}
	pick := func(field string) []*scan.Column {
		return slices.DeleteFunc(slices.Clone(f.Columns), func(c *scan.Column) bool {
			return !c.Bytes || c.Text || c.Name != c.Top+field || want.Image != "" && want.Image != c.Top
		})
	}
	// A struct says more than bare bytes: it is what Hugging Face writes for an image.
	images := pick(".bytes")
	if len(images) == 0 {
		images = pick("")
	}
	if i := slices.IndexFunc(images, func(c *scan.Column) bool { return c.Top == "image" }); i >= 0 {
		images = images[i : i+1]
	}
	switch {
	case len(images) == 0 && want.Image != "":
		return found, lacks(strconv.QuoteToGraphic(want.Image)+" of pictures",
			"name a column of bytes, or a struct with a field bytes")
	case len(images) == 0:
		return found,
			lacks("of pictures",
				"pictures are read from a struct with a field bytes, as Hugging Face writes it, or from a column of bytes")
	case len(images) > 1:
		return found, &manifest.Problem{File: path, Message: "several columns can hold pictures: " + namesOf(images),
			Hint: "name the one to read with --image-column"}
	}
	found = [4]*scan.Column{images[0], f.Named(images[0].Top + ".path"), f.Named(cmp.Or(want.Text, "ocr_text")),
		f.Named("id")}
	if found[3] == found[0] {
		found[3] = nil
	}
	if found[2] == nil && want.Text != "" {
		return found, lacks(strconv.QuoteToGraphic(want.Text)+" of text", "name a column of strings")
	}
	return found, nil
}

// namesOf lists columns for a line of a terminal.
func namesOf(columns []*scan.Column) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Top)
	}
	return manifest.QuotedList(slices.Compact(names)) // a struct has several columns
}
