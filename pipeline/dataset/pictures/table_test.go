package pictures

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/testkit"
	"rehydrate/policy"
)

type imageStruct struct {
	Bytes []byte `parquet:"bytes,optional"`
	Path  string `parquet:"path,optional"`
}

// pictureFile is a Parquet file of the rows.
func pictureFile[T any](t testing.TB, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, parquet.Write(&b, rows, options...))
	return save(t, b.Bytes())
}

func save(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.parquet")
	testkit.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

// A pictureRow is what is read of a row.
type pictureRow struct {
	Path  string
	Image []byte
	Text  string
	ID    string
}

// allPictures reads a Parquet of pictures to its end, and says whether it has a column of text.
func allPictures(t testing.TB, path string, want Columns) (text string, rows []pictureRow, err error) {
	s, err := Open(t.Context(), path, want, policy.Default().Images, Without{})
	if err != nil {
		return "", nil, err
	}
	for p, err := range s.All {
		if err != nil {
			return s.TextColumn, rows, err
		}
		body, _ := p.Read()
		rows = append(rows, pictureRow{p.Path, body, p.Text, p.ID})
	}
	if s.Most != len(rows) {
		t.Errorf("%d rows are announced, and %d read", s.Most, len(rows))
	}
	return s.TextColumn, rows, nil
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
	hf := []hfRow{{1, &imageStruct{[]byte("one"), "a.jpg"}, &text}, {2, nil, nil},
		{3, &imageStruct{nil, "only/a/path.jpg"}, &text}, {4, &imageStruct{[]byte("four"), ""}, nil}}
	hfWant := []pictureRow{{"a.jpg", []byte("one"), text, ""}, {}, {"only/a/path.jpg", nil, text, ""},
		{"", []byte("four"), "", ""}}
	bare := []bareRow{{[]byte("x"), "w", []string{"a", "b"}}, {[]byte("x"), "", nil}, {nil, "v", nil}}
	for _, tt := range []struct {
		name     string
		path     string
		want     Columns
		wantText string
		wantRows []pictureRow
	}{
		{"Hugging Face", pictureFile(t, hf), Columns{}, "ocr_text", hfWant},
		{"row groups of one", pictureFile(t, hf, parquet.MaxRowsPerRowGroup(1), parquet.Compression(&parquet.Snappy)),
			Columns{}, "ocr_text", hfWant},
		{"pages of version 2", pictureFile(t, hf, parquet.DataPageVersion(2), parquet.Compression(&parquet.Gzip)),
			Columns{}, "ocr_text", hfWant},
		{"bytes", pictureFile(t, bare), Columns{}, "",
			[]pictureRow{{"", []byte("x"), "", ""}, {"", []byte("x"), "", ""}, {}}},
		{"bytes and text", pictureFile(t, bare), Columns{"pixels", "words"}, "words",
			[]pictureRow{{"", []byte("x"), "w", ""}, {"", []byte("x"), "", ""}, {"", nil, "v", ""}}},
		{"the one called image", pictureFile(t, []namedRow{{Image: imageStruct{[]byte("i"), "p"},
			Mask: imageStruct{[]byte("m"), ""}, Raw: []byte("r")}}), Columns{}, "", []pictureRow{{"p", []byte("i"), "", ""}}},
		{"one of several", pictureFile(t, []namedRow{{Image: imageStruct{[]byte("i"), "p"}, Raw: []byte("r")}}),
			Columns{"raw", ""}, "", []pictureRow{{"", []byte("r"), "", ""}}},
		{"ids", pictureFile(t, []idRow{{"1n6oiw/2", imageStruct{[]byte("i"), "p"}}}), Columns{}, "",
			[]pictureRow{{"p", []byte("i"), "", "1n6oiw/2"}}},
		{"no rows", pictureFile[hfRow](t, nil), Columns{}, "ocr_text", nil},
	} {
		text, rows, err := allPictures(t, tt.path, tt.want)
		testkit.Same(t, tt.name, tt.wantText, text, err)
		testkit.Same(t, tt.name, tt.wantRows, rows)
	}
}

func TestOpenPicturesRefuses(t *testing.T) {
	list := pictureFile(t, []listRow{{Images: []imageStruct{{[]byte("x"), ""}}, Name: "n"}})
	two := pictureFile(t, []twoRow{{}})
	folder := t.TempDir()
	for _, tt := range []struct {
		name, path string
		want       Columns
		message    string
	}{
		{"lists of pictures", list, Columns{}, "no column of pictures"},
		{"a list by name", list, Columns{Image: "images"}, `no column "images" of pictures`},
		{"several", two, Columns{}, `"left", "right"`},
		{"a text column of pictures", two, Columns{"left", "right"}, `no column "right" of text`},
		{"no file", folder + "/none", Columns{}, "no such file"},
		{"another format", save(t, []byte("not parquet at all")), Columns{}, "does not end as a Parquet file does"},
	} {
		if _, _, err := allPictures(t, tt.path, tt.want); err == nil || !strings.Contains(err.Error(), tt.message) {
			t.Errorf("%s: OpenPictures = %v, want %q", tt.name, err, tt.message)
		}
	}
}

// TestPicturesLargePages: a page of pictures may be larger than one of a manifest.
func TestPicturesLargePages(t *testing.T) {
	row := hfRow{Image: &imageStruct{Bytes: bytes.Repeat([]byte("picture "), 4<<20+1)}}
	path := pictureFile(t, []hfRow{row}, parquet.SkipPageBounds("image", "bytes"),
		parquet.SkipPageStatistics("image", "bytes"))
	_, rows, err := allPictures(t, path, Columns{})
	if err != nil || len(rows) != 1 || len(rows[0].Image) != len(row.Image.Bytes) {
		t.Errorf("a page of more than 32 MiB: %d rows, %v", len(rows), err)
	}
}
