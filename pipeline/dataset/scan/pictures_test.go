package scan

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"rehydrate/pipeline/attest"
)

type imageStruct struct {
	Bytes []byte `parquet:"bytes,optional"`
	Path  string `parquet:"path,optional"`
}

// pictureFile is a Parquet file of the rows.
func pictureFile[T any](t testing.TB, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	return save(t, parquetOf(t, rows, options...))
}

// allPictures reads a Parquet of pictures to its end.
func allPictures(path string, want PictureColumns) (columns PictureColumns, rows []PictureRow, err error) {
	p, err := OpenPictures(path, want)
	if err != nil {
		return columns, nil, err
	}
	defer p.Close()
	for {
		row, err := p.Next()
		if err == io.EOF {
			return p.Columns, rows, nil
		}
		if err != nil {
			return p.Columns, rows, err
		}
		rows = append(rows, row)
	}
}

type (
	hfRow struct {
		Label int64        `parquet:"label"`
		Image *imageStruct `parquet:"image,optional"`
		Text  *string      `parquet:"ocr_text,optional"`
	}
	bareRow struct {
		Pixels []byte   `parquet:"pixels,optional,dict"`
		Text   string   `parquet:"words"`
		Tags   []string `parquet:"tags,list"`
	}
	twoRow struct {
		Left  imageStruct `parquet:"left"`
		Right imageStruct `parquet:"right"`
	}
	namedRow struct {
		Image imageStruct `parquet:"image"`
		Mask  imageStruct `parquet:"mask"`
		Raw   []byte      `parquet:"raw"`
	}
	idRow struct {
		ID    string      `parquet:"id"`
		Image imageStruct `parquet:"image"`
	}
	listRow struct {
		Images []imageStruct `parquet:"images,list"`
		Name   string        `parquet:"name"`
	}
)

func TestOpenPictures(t *testing.T) {
	text := "two\nlines"
	hf := []hfRow{{1, &imageStruct{[]byte("one"), "a.jpg"}, &text}, {2, nil, nil}, {3, &imageStruct{nil, "only/a/path.jpg"}, &text}, {4, &imageStruct{[]byte("four"), ""}, nil}}
	hfWant := []PictureRow{{"a.jpg", []byte("one"), text, ""}, {}, {"only/a/path.jpg", nil, text, ""}, {"", []byte("four"), "", ""}}
	bare := []bareRow{{[]byte("x"), "w", []string{"a", "b"}}, {[]byte("x"), "", nil}, {nil, "v", nil}}
	for _, tt := range []struct {
		name        string
		path        string
		want        PictureColumns
		wantColumns PictureColumns
		wantRows    []PictureRow
	}{
		{"Hugging Face", pictureFile(t, hf), PictureColumns{}, PictureColumns{"image", "ocr_text"}, hfWant},
		{"row groups of one", pictureFile(t, hf, parquet.MaxRowsPerRowGroup(1), parquet.Compression(&parquet.Snappy)), PictureColumns{}, PictureColumns{"image", "ocr_text"}, hfWant},
		{"pages of version 2", pictureFile(t, hf, parquet.DataPageVersion(2), parquet.Compression(&parquet.Gzip)), PictureColumns{}, PictureColumns{"image", "ocr_text"}, hfWant},
		{"bytes", pictureFile(t, bare), PictureColumns{}, PictureColumns{"pixels", ""}, []PictureRow{{"", []byte("x"), "", ""}, {"", []byte("x"), "", ""}, {}}},
		{"bytes and text", pictureFile(t, bare), PictureColumns{"pixels", "words"}, PictureColumns{"pixels", "words"}, []PictureRow{{"", []byte("x"), "w", ""}, {"", []byte("x"), "", ""}, {"", nil, "v", ""}}},
		{"the one called image", pictureFile(t, []namedRow{{Image: imageStruct{[]byte("i"), "p"}, Mask: imageStruct{[]byte("m"), ""}, Raw: []byte("r")}}), PictureColumns{}, PictureColumns{"image", ""}, []PictureRow{{"p", []byte("i"), "", ""}}},
		{"one of several", pictureFile(t, []namedRow{{Image: imageStruct{[]byte("i"), "p"}, Raw: []byte("r")}}), PictureColumns{"raw", ""}, PictureColumns{"raw", ""}, []PictureRow{{"", []byte("r"), "", ""}}},
		{"ids", pictureFile(t, []idRow{{"1n6oiw/2", imageStruct{[]byte("i"), "p"}}}), PictureColumns{}, PictureColumns{"image", ""}, []PictureRow{{"p", []byte("i"), "", "1n6oiw/2"}}},
		{"no rows", pictureFile[hfRow](t, nil), PictureColumns{}, PictureColumns{"image", "ocr_text"}, nil},
	} {
		columns, rows, err := allPictures(tt.path, tt.want)
		attest.Same(t, tt.name, tt.wantColumns, columns, err)
		attest.Same(t, tt.name, tt.wantRows, rows)
	}
}

func TestOpenPicturesRefuses(t *testing.T) {
	list := pictureFile(t, []listRow{{Images: []imageStruct{{[]byte("x"), ""}}, Name: "n"}})
	two := pictureFile(t, []twoRow{{}})
	folder := t.TempDir()
	for _, tt := range []struct {
		name, path string
		want       PictureColumns
		message    string
	}{
		{"lists of pictures", list, PictureColumns{}, "no column of pictures"},
		{"a list by name", list, PictureColumns{Image: "images"}, `no column "images" of pictures`},
		{"several", two, PictureColumns{}, `"left", "right"`},
		{"a text column of pictures", two, PictureColumns{"left", "right"}, `no column "right" of text`},
		{"a folder", folder, PictureColumns{}, "not a regular file"},
		{"no file", folder + "/none", PictureColumns{}, "no such file"},
		{"another format", save(t, []byte("not parquet at all")), PictureColumns{}, "does not end as a Parquet file does"},
	} {
		if _, _, err := allPictures(tt.path, tt.want); err == nil || !strings.Contains(err.Error(), tt.message) {
			t.Errorf("%s: OpenPictures = %v, want %q", tt.name, err, tt.message)
		}
	}
}

// TestPicturesLargePages: a page of pictures may be larger than one of a manifest.
func TestPicturesLargePages(t *testing.T) {
	row := hfRow{Image: &imageStruct{Bytes: bytes.Repeat([]byte("picture "), int(tableLimits.page)/8+1)}}
	path := pictureFile(t, []hfRow{row}, parquet.SkipPageBounds("image", "bytes"), parquet.SkipPageStatistics("image", "bytes"))
	_, rows, err := allPictures(path, PictureColumns{})
	if err != nil || len(rows) != 1 || len(rows[0].Image) != len(row.Image.Bytes) {
		t.Errorf("a page of more than %d bytes: %d rows, %v", tableLimits.page, len(rows), err)
	}
}
