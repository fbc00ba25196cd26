package features

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/testkit"
	"rehydrate/policy"
)

// pngOf is a picture of one grey.
func pngOf(t *testing.T, grey uint8) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 30, 30))
	for i := range img.Pix {
		img.Pix[i] = grey
	}
	var b bytes.Buffer
	testkit.OK(t, png.Encode(&b, img))
	return b.Bytes()
}

// folderOf is a folder with files.
func folderOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		testkit.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), body, 0o600))
	}
	return dir
}

// TestTable: a row for each picture, in the order of the sources; a picture that cannot be read has no numbers, two
// files of one stem have their whole names, and what decides the numbers is said.
func TestTable(t *testing.T) {
	c, err := ReadCascade(strings.NewReader(handMade), "hand.xml")
	testkit.OK(t, err)
	first := folderOf(t, map[string][]byte{"a.jpg": pngOf(t, 10), "a.png": pngOf(t, 20), "b.png": []byte("no picture")})
	second := folderOf(t, map[string][]byte{"c.png": pngOf(t, 30)})
	steps := ""
	config := Config{Paths: []string{first, second}, Images: policy.Default().Images, Workers: 1, Cascade: c,
		Detection: DefaultDetection(), Progress: func(done, total int) { steps += fmt.Sprintf("%d/%d ", done, total) }}
	for _, part := range []string{"", filepath.Join(t.TempDir(), "part")} {
		steps = ""
		table, err := Compute(t.Context(), config, part)
		testkit.OK(t, err)
		testkit.Same(t, "ids", []string{"a", "a.png", "b", "c"}, table.IDs())
		nan := math.NaN()
		var got [][]float64
		for _, numbers := range table.All {
			got = append(got, []float64{numbers[0], numbers[7], numbers[8]})
		}
		want := [][]float64{{10, 0, 0}, {20, 0, 0}, {nan, nan, nan}, {30, 0, 0}} // brightness, faces, face_haar
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("numbers (-want +got):\n%s", diff)
		}
		testkit.Same(t, "columns", append(PictureColumns(), "faces", "face_haar"), table.Columns)
		testkit.Same(t, "faults", map[string]int{"not_an_image": 1}, table.FaultCounts())
		testkit.Same(t, "counts", [3]int{4, 4, 0}, [3]int{table.Pictures, table.NoText, table.Known})
		testkit.Same(t, "progress", "1/4 2/4 3/4 4/4 ", steps)
		testkit.Same(t, "texts", false, table.Texts)
	}
	for id := range (&Table{Rows: []Row{{ID: "a"}, {ID: "b"}}}).All {
		testkit.Same(t, "the first row alone", "a", id)
		break
	}
	config.Paths = []string{filepath.Join(first, "none")}
	if _, err := Compute(t.Context(), config, ""); err == nil {
		t.Error("a folder that is not there is computed")
	}
	config.Paths = []string{first}
	if _, err := Compute(t.Context(), config, filepath.Join(first, "none", "part")); err == nil {
		t.Error("rows are kept in a folder that is not there")
	}
}

// TestFacesInTheTable: what the cascade sees in a picture is counted in its row.
func TestFacesInTheTable(t *testing.T) {
	c, err := ReadCascade(strings.NewReader(handMade), "hand.xml")
	testkit.OK(t, err)
	img := image.NewGray(image.Rect(0, 0, 90, 80))
	for y := 44; y < 80; y++ {
		for x := 52; x < 90; x++ {
			img.SetGray(x, y, color.Gray{200})
		}
	}
	d := Detection{Scale: 1.1, Neighbors: 3}
	var b bytes.Buffer
	testkit.OK(t, png.Encode(&b, img))
	table, err := Compute(t.Context(), Config{Paths: []string{folderOf(t, map[string][]byte{"a.png": b.Bytes()})},
		Images: policy.Default().Images, Workers: 1, Cascade: c, Detection: d}, "")
	testkit.OK(t, err)
	faces := len(c.Faces(t.Context(), img, d))
	testkit.Same(t, "faces, and whether there is one", []float64{float64(faces), 1}, table.Rows[0].Numbers[7:])
}

// TestLossyWebP has the numbers of the pixels that libwebp gives, as numpy computes them.
func TestLossyWebP(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"black.webp", "odd.webp", "white.webp"} {
		body, err := os.ReadFile(filepath.Join("../../internal/picture/testdata", name))
		testkit.OK(t, err)
		files[name] = body
	}
	table, err := Compute(t.Context(), Config{Paths: []string{folderOf(t, files)}, Images: policy.Default().Images,
		Workers: 1}, "")
	testkit.OK(t, err)
	var got [][]float64
	for _, numbers := range table.All {
		got = append(got, numbers[:4])
	}
	want := [][]float64{{0, 0, 0, 0}, {57.308802308802306, 48.34269078408016, 94.71139971139971, 192.17893217893217},
		{255, 0, 255, 0}} // brightness, contrast, value, saturation
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
}

// TestTexts: the texts of a Parquet file have numbers beside those of its pictures; a row without a word has none, and
// one whose text changed is computed again.
func TestTexts(t *testing.T) {
	type row struct {
		ID    string `parquet:"id"`
		Image []byte `parquet:"image"`
		Text  string `parquet:"ocr_text"`
	}
	path, part := filepath.Join(t.TempDir(), "p.parquet"), filepath.Join(t.TempDir(), "part")
	rows := []row{{"few001", pngOf(t, 10), "TEARS at the end"}, {"few002", pngOf(t, 20), "..."},
		{"few003", []byte("no picture"), "tears"}}
	config := Config{Paths: []string{path}, Images: policy.Default().Images, Workers: 1,
		Dictionaries: []*Dictionary{dictionaryOf(t, "%\n1\tsad\n%\ntears\t1\n", "d.dic")}}
	nan := math.NaN()
	want := [][]float64{{10, 4, 1, 4, 0, 25, 25}, {20, nan, nan, nan, nan, nan, nan}, {nan, 1, 1, 1, 0, 100, 100}}
	for _, known := range []int{0, 3, 2} {
		if known == 2 {
			rows[0].Text = "tears"
			want[0] = []float64{10, 1, 1, 1, 0, 100, 100}
		}
		testkit.OK(t, parquet.WriteFile(path, rows))
		table, err := Compute(t.Context(), config, part)
		testkit.OK(t, err)
		var got [][]float64
		for _, numbers := range table.All {
			got = append(got, append([]float64{numbers[0]}, numbers[len(PictureColumns()):]...))
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("numbers (-want +got):\n%s", diff)
		}
		testkit.Same(t, "ids", []string{"few001", "few002", "few003"}, table.IDs())
		testkit.Same(t, "columns", append(PictureColumns(), TextColumns(config.Dictionaries)...), table.Columns)
		testkit.Same(t, "pictures, without words, known", [3]int{3, 1, known},
			[3]int{table.Pictures, table.NoText, table.Known})
		testkit.Same(t, "texts", true, table.Texts)
	}
}

// TestMade: the line that says how numbers were made names the cascade with its setting, each dictionary, and counts.
func TestMade(t *testing.T) {
	const pixels = "pixels upright, over white, first frame; lossy WebP as libwebp; " +
		"grey and HSV as OpenCV's 8-bit conversions"
	d := &Dictionary{Name: "mini", Form: "dic", SHA256: "2", Entries: 3, Categories: []string{"a", "b"}, Union: true}
	for want, c := range map[string]Config{
		pixels: {},
		pixels + "; faces by f.xml (SHA-256 1, scale factor 1.1, min neighbors 5, min size 30": {
			Cascade: &Cascade{Name: "f.xml", SHA256: "1"}, Detection: DefaultDetection()},
		pixels + "; dictionary mini (dic, SHA-256 2, 3 entries, 2 categories, union true)": {Dictionaries: []*Dictionary{d}},
		pixels + "; tokens of a category counted":                                          {Counts: true},
	} {
		want = strings.Replace(want, "SHA-256 1,", "SHA-256 1),", 1)
		testkit.Same(t, "how", want, (&Table{How: c.how()}).Made())
	}
}

// TestSources: of a dataset or a workspace its Parquet files are taken, of a folder without any the folder, whatever
// signs its name has.
func TestSources(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"a workspace", "dataset/data/a.parquet", "dataset/data/a.parquet"},
		{"a dataset", "data/a.parquet", "data/a.parquet"},
		{"Parquet files", "a.parquet", "a.parquet"},
		{"pictures", "a.png", ""},
	} {
		for _, folder := range []string{"plain", "a[b]*?c"} {
			dir := folderOf(t, map[string][]byte{folder + "/" + test.file: nil})
			got, err := Sources(filepath.Join(dir, folder))
			testkit.Same(t, test.name, []string{filepath.Join(dir, folder, test.want)}, got, err)
		}
	}
	file := filepath.Join(folderOf(t, map[string][]byte{"x.parquet": nil}), "x.parquet")
	got, err := Sources(file)
	testkit.Same(t, "a file", []string{file}, got, err)
	if _, err := Sources(file + ".gone"); err == nil || !strings.HasSuffix(err.Error(), ".gone: no such file or folder") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestOpenDictionaries: a dictionary is called as its user or its form says; two that share a column are refused.
func TestOpenDictionaries(t *testing.T) {
	dir := folderOf(t, map[string][]byte{"a.dic": []byte("%\n1\tsad\n%\ntears\t1\n"),
		"b.dic": []byte("%\n1\tsad\n2\tend\n%\nend\t2\n"), "bad.dic": []byte("prose")})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, test := range []struct {
		name string
		args []string
		want string // names, or what is in the error
	}{
		{"none", nil, ""},
		{"one", []string{at("a.dic")}, "liwc "},
		{"one with a name", []string{"mine=" + at("a.dic")}, "mine "},
		{"two with names", []string{"mine=" + at("a.dic"), at("b.dic")}, "mine liwc "},
		{"two with one column", []string{at("a.dic"), at("b.dic")},
			at("a.dic") + " and " + at("b.dic") + " both have liwc.sad: name one of them, " +
				"as in --dictionary NAME=" + at("b.dic")},
		{"one that is none", []string{at("a.dic"), at("bad.dic")}, "it has no entries"},
		{"one that is not there", []string{at("c.dic")}, "c.dic"},
	} {
		list, err := OpenDictionaries(test.args, true)
		got := ""
		for _, d := range list {
			got += d.Name + " "
			testkit.Same(t, test.name+": union", true, d.Union)
		}
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != test.want || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestReadCascadeLimits: a cascade at the ends of what is read is read, and one beyond them refused.
func TestReadCascadeLimits(t *testing.T) {
	third := `<_>0 12 24 12 2.</_>`
	for _, test := range []struct{ name, old, new, want string }{
		{"as it is", "", "", ""},
		{"three rectangles", third, third + third, ""},
		{"four rectangles", third, third + third + third, "other than two or three rectangles"},
		{"one rectangle", third, "", "other than two or three rectangles"},
		{"a rectangle to the edge", "0 12 24 12 2.", "23 23 1 1 2.", ""},
		{"one beyond the right", "0 12 24 12 2.", "23 23 2 1 2.", "leaves the window"},
		{"one beyond the left", "0 12 24 12 2.", "-1 12 2 2 2.", "leaves the window"},
		{"one beyond the top", "0 12 24 12 2.", "1 -1 2 2 2.", "leaves the window"},
		{"one without width", "0 12 24 12 2.", "0 12 0 12 2.", "leaves the window"},
		{"one without height", "0 12 24 12 2.", "0 12 12 0 2.", "leaves the window"},
		{"four numbers", "0 12 24 12 2.", "0 12 24 12", "does not have five numbers"},
		{"six numbers", "0 12 24 12 2.", "0 12 24 12 2. 1", "does not have five numbers"},
		{"a window of 100", "24</height><width>24", "100</height><width>100", ""},
		{"a window of 101", "24</height><width>24", "101</height><width>101", "101 by 101"},
		{"a window of 2", "24</height><width>24", "2</height><width>2", "2 by 2"},
		{"a window that is no square", "24</height><width>24", "24</height><width>25", "25 by 24"},
		{"a boost of another kind", "BOOST", "GENTLE", `"GENTLE"`},
		{"a feature before the first", "0 -1 1 0.05", "0 -1 -1 0.05", "feature -1 of 2"},
		{"a node that is no number", "0 -1 1 0.05", "0 -1 1 x", `classifier 0 of stage 1: "x" is not a number`},
		{"another left child", "0 -1 1 0.05", "1 -1 1 0.05", "it is a tree"},
		{"another right child", "0 -1 1 0.05", "0 1 1 0.05", "it is a tree"},
		{"three leaves", "0. 1.", "0. 1. 2.", "it is a tree"},
		{"a stage without classifiers", "weakClassifiers", "others", "stage 0 has no classifiers"},
	} {
		text := strings.ReplaceAll(handMade, test.old, test.new)
		if test.old == "" {
			text = handMade
		}
		c, err := ReadCascade(strings.NewReader(text), "f.xml")
		if got := fmt.Sprint(err); (test.want == "") != (err == nil) || !strings.Contains(got, test.want) {
			t.Errorf("%s: %+v, %v, want %q", test.name, c, err, test.want)
		}
	}
	if _, err := ReadCascade(strings.NewReader(handMade+strings.Repeat(" ", maxCascade)), "f.xml"); err == nil ||
		!strings.Contains(err.Error(), "it is larger than 16 MiB") {
		t.Errorf("a large one: %v", err)
	}
	broken := errors.New("broken")
	if _, err := ReadCascade(iotest.ErrReader(broken), "f.xml"); !errors.Is(err, broken) {
		t.Errorf("one that breaks: %v", err)
	}
	half := io.MultiReader(strings.NewReader("%\n"), iotest.ErrReader(broken))
	if _, err := ReadDictionary(half, "d.dic"); !errors.Is(err, broken) {
		t.Errorf("a dictionary that breaks: %v", err)
	}
}

// TestGroup: windows that are alike are one face, the mean of them, where they are more than so many; a group within a
// better supported one is none.
func TestGroup(t *testing.T) {
	square := func(x, y, side int) image.Rectangle { return image.Rect(x, y, x+side, y+side) }
	times := func(n int, r image.Rectangle) (all []image.Rectangle) {
		for range n {
			all = append(all, r)
		}
		return all
	}
	join := func(lists ...[]image.Rectangle) (all []image.Rectangle) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, test := range []struct {
		name      string
		windows   []image.Rectangle
		neighbors int
		want      []image.Rectangle
	}{
		{"none", nil, 1, nil},
		{"as many as neighbours", times(2, square(0, 0, 50)), 2, nil},
		{"one more", times(3, square(0, 0, 50)), 2, []image.Rectangle{square(0, 0, 50)}},
		{"the mean", []image.Rectangle{square(0, 0, 50), square(10, 4, 50)}, 1, []image.Rectangle{square(5, 2, 50)}},
		{"the mean of sizes", []image.Rectangle{square(0, 0, 50), square(0, 0, 54)}, 1,
			[]image.Rectangle{square(0, 0, 52)}},
		{"just alike", []image.Rectangle{square(0, 0, 50), square(10, 10, 50)}, 1, []image.Rectangle{square(5, 5, 50)}},
		{"too far to the right", []image.Rectangle{square(0, 0, 50), square(11, 0, 50)}, 1, nil},
		{"too far below", []image.Rectangle{square(0, 0, 50), square(0, 11, 50)}, 1, nil},
		{"too wide", []image.Rectangle{square(0, 0, 50), image.Rect(0, 0, 61, 50)}, 1, nil},
		{"too high", []image.Rectangle{square(0, 0, 50), image.Rect(0, 0, 50, 61)}, 1, nil},
		{"a chain", []image.Rectangle{square(0, 0, 50), square(18, 0, 50), square(9, 0, 50)}, 2,
			[]image.Rectangle{square(9, 0, 50)}},
		{"two faces", join(times(2, square(0, 0, 50)), times(2, square(100, 0, 50))), 1,
			[]image.Rectangle{square(0, 0, 50), square(100, 0, 50)}},
		{"a weak one inside", join(times(4, square(0, 0, 100)), times(2, square(30, 30, 20))), 1,
			[]image.Rectangle{square(0, 0, 100)}},
		{"a weak one in the margin", join(times(4, square(20, 20, 100)), times(2, square(0, 0, 20))), 1,
			[]image.Rectangle{square(20, 20, 100)}},
		{"a weak one beyond the margin", join(times(4, square(21, 21, 100)), times(2, square(0, 0, 20))), 1,
			[]image.Rectangle{square(21, 21, 100), square(0, 0, 20)}},
		{"one as strong inside", join(times(4, square(0, 0, 100)), times(4, square(30, 30, 20))), 1,
			[]image.Rectangle{square(0, 0, 100), square(30, 30, 20)}},
		{"one of three inside three", join(times(3, square(0, 0, 100)), times(3, square(30, 30, 20))), 1,
			[]image.Rectangle{square(0, 0, 100), square(30, 30, 20)}},
		{"one of two inside two", join(times(2, square(0, 0, 100)), times(2, square(30, 30, 20))), 1,
			[]image.Rectangle{square(0, 0, 100)}},
	} {
		if diff := cmp.Diff(test.want, group(test.windows, test.neighbors)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestIntegrate: the sum of any rectangle of the shrunk picture is that of its pixels, and of their squares.
func TestIntegrate(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 13, 9))
	for i := range grey.Pix {
		grey.Pix[i] = uint8(i * 37)
	}
	s := scaled{}
	for _, size := range []image.Point{{13, 9}, {7, 5}, {13, 9}} { // and the memory is used again
		s.integrate(grey, size.X, size.Y)
		for _, r := range []image.Rectangle{{Max: size}, image.Rect(1, 2, 4, 5), image.Rect(3, 1, size.X, size.Y)} {
			var sum int32
			var squares uint32
			for y := r.Min.Y; y < r.Max.Y; y++ {
				for x := r.Min.X; x < r.Max.X; x++ {
					v := s.small[y*size.X+x]
					sum, squares = sum+int32(v), squares+uint32(v)*uint32(v)
				}
			}
			corners := rectCorners(r.Min.X, r.Min.Y, r.Dx(), r.Dy(), size.X+1)
			testkit.Same(t, fmt.Sprint(size, r), [2]uint32{uint32(sum), squares},
				[2]uint32{uint32(rectSum(s.sums, corners)), rectSum(s.squares, corners)})
		}
	}
	testkit.Same(t, "a picture of its own size stays", grey.Pix, s.small)
}

// TestSearch: the windows that the cascade made by hand sees of one corner, at the smallest size, and at twice that
// at every pixel.
func TestSearch(t *testing.T) {
	c, err := ReadCascade(strings.NewReader(handMade), "hand.xml")
	testkit.OK(t, err)
	img := image.NewGray(image.Rect(0, 0, 60, 60))
	for y := 30; y < 60; y++ {
		for x := 30; x < 60; x++ {
			img.SetGray(x, y, color.Gray{200})
		}
	}
	s := scaled{cascade: c}
	counted := map[float32]int{}
	for _, factor := range []float32{1, 2} {
		odd := false
		for _, r := range s.search(img, factor, nil) {
			counted[factor]++
			odd = odd || r.Min.X/int(factor)%2 == 1
			testkit.Same(t, "the side", image.Pt(24*int(factor), 24*int(factor)), r.Size())
			if !image.Pt(30, 30).In(r) || !r.In(img.Rect) {
				t.Errorf("%v does not hold the corner", r)
			}
		}
		testkit.Same(t, fmt.Sprintf("a window at an odd pixel, by the factor %v", factor), factor == 2, odd)
	}
	if counted[1] == 0 || counted[2] == 0 {
		t.Errorf("windows by factor: %v", counted)
	}
}

// TestContrast: what a window must show is measured against its own contrast, and one that is almost flat shows
// nothing.
func TestContrast(t *testing.T) {
	c, err := ReadCascade(strings.NewReader(handMade), "hand.xml")
	testkit.OK(t, err)
	s := scaled{cascade: c}
	// A sum that just reaches the threshold of its stage passes, though its file has rounded that.
	reached, err := ReadCascade(strings.NewReader(strings.ReplaceAll(handMade, ">0.5<", ">1.000005<")), "hand.xml")
	testkit.OK(t, err)
	for _, test := range []struct {
		width, height int   // of what is bright, in the lower right corner of the window
		bright        uint8 // on black
		found         bool
	}{
		{12, 12, 200, true}, {12, 12, 24, true}, {12, 12, 23, false}, // a standard deviation of 10 is flat
		{12, 22, 200, false}, {12, 20, 200, true}, // a tenth of the contrast, between below and above
		{23, 12, 200, false}, {22, 12, 200, true}, // a twentieth, between right and left
		{0, 0, 200, false}, {24, 24, 200, false},
	} {
		img := image.NewGray(image.Rect(0, 0, 24, 24))
		for y := 24 - test.height; y < 24; y++ {
			for x := 24 - test.width; x < 24; x++ {
				img.SetGray(x, y, color.Gray{test.bright})
			}
		}
		testkit.Same(t, fmt.Sprint(test), test.found, len(s.search(img, 1, nil)) == 1)
		testkit.Same(t, fmt.Sprint(test, " just reached"), test.found,
			len((&scaled{cascade: reached}).search(img, 1, nil)) == 1)
	}
}

// TestThirdRectangle: a feature of three rectangles is the sum of all, and what was asked for in vain finds nothing.
func TestThirdRectangle(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 90, 80))
	for y := 44; y < 80; y++ {
		for x := 52; x < 90; x++ {
			img.SetGray(x, y, color.Gray{200})
		}
	}
	read := func(below string) *Cascade {
		c, err := ReadCascade(strings.NewReader(strings.Replace(handMade, "<_>0 12 24 12 2.</_>", below, 1)), "f.xml")
		testkit.OK(t, err)
		return c
	}
	d := Detection{Scale: 1.1, Neighbors: 3}
	two := read("<_>0 12 24 12 2.</_>").Faces(t.Context(), img, d)
	testkit.Same(t, "halves of one", two, read("<_>0 12 24 12 1.5</_><_>0 12 24 12 0.5</_>").Faces(t.Context(), img, d))
	none := read("<_>0 12 24 12 2.</_><_>0 12 24 12 -2.</_>").Faces(t.Context(), img, d)
	testkit.Same(t, "faces, none without the lower half, and some", [2]bool{false, true},
		[2]bool{len(none) > 0, len(two) > 0})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if found := read("<_>0 12 24 12 2.</_>").Faces(ended, img, d); found != nil {
		t.Errorf("after the end: %v", found)
	}
}

// TestDictionaryLines: which lines of each form are entries, which are skipped, and at which size it is too large.
func TestDictionaryLines(t *testing.T) {
	many := func(n int, line string) string { // a line a number
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	const dic = "%\n1\tsad\n2\tend\n%\n"
	for _, test := range []struct{ name, text, want string }{ // form, categories, entries and skipped lines, or the error
		{"pairs", "tears\tsad\t1\n", "emolex [sad] 1 0"},
		{"a pair of one cell", "1\ntears\tsad\t1\n", "emolex [sad] 1 1"},
		{"a pair of four cells", "a\tb\tc\t1\ntears\tsad\t1\n", "emolex [sad] 1 1"},
		{"a pair that is neither 0 nor 1", "a\tb\t2\ntears\tsad\t1\n", "emolex [sad] 1 1"},
		{"a pair of 0", "a\tjoy\t0\ntears\tsad\t1\n", "emolex [joy sad] 1 0"},
		{"blank lines before and between", "\n \ntears\tsad\t1\n\n", "emolex [sad] 1 0"},
		{"too many categories in pairs", many(1001, "w\tc%d\t1\n"), "line 1001: it has more than 1000 categories"},
		{"as many as may be", many(1000, "w\tc%d\t1\n"), "emolex 1000 1 0"},
		{"too many entries in pairs", many(200_001, "w%d\tsad\t1\n"), "line 200001: it has more than 200000 entries"},
		{"as many entries as may be", many(200_000, "w%d\tsad\t1\n"), "emolex [sad] 200000 0"},
		{"dic", dic + "tears\t1\n", "dic [sad end] 1 0"},
		{"a phrase that ends in a number", dic + "catch 22 1\n", "dic [sad end] 1 1"},
		{"a number alone", dic + "1\ntears\t1\n", "dic [sad end] 1 1"},
		{"an entry of signs", dic + "!!\t1\ntears\t1\n", "dic [sad end] 1 1"},
		{"a beginning and its word", dic + "tear*\t1\ntear\t2\n", "dic [sad end] 2 0"},
		{"dicx", "DicTerm,sad\ntears,X\n", "dicx [sad] 1 0"},
		{"dicx, a row with a cell too many", "DicTerm,sad\ntears,X,X\nend,X\n", "dicx [sad] 1 1"},
		{"dicx, a row without cells", "DicTerm,sad\ntears\nend,X\n", "dicx [sad] 1 1"},
		{"dicx, a blank line", "DicTerm,sad\n\nend,X\n", "dicx [sad] 1 0"},
		{"dicx, a head that is broken", "DicTerm,\"sad\n", "line 1: "},
		{"dicx, too many categories", "Entry" + many(1001, ",c%d") + "\n", "line 1: it has more than 1000 categories"},
		{"wide", "English Word\tAnger\tTrust\tGerman\ntears\t0\t1\tTränen\n", "emolex-wide [anger trust] 1 0"},
		{"wide, too many entries", "English Word\tjoy\n" + many(200_001, "w%d\t1\n"),
			"line 200002: it has more than 200000 entries"},
		{"wide, without translations", "English Word\tanger\ntears\t1\n", "emolex-wide [anger] 1 0"},
		{"wide, a row with a cell too few", "English Word\tanger\tjoy\ntears\t1\nend\t1\t1\n",
			"emolex-wide [anger joy] 1 1"},
		{"wide, an emotion after a translation",
			"English Word\tanger\tGerman\tjoy\ntears\t1\tx\t1\n", "emolex-wide [anger] 1 0"},
	} {
		d, err := ReadDictionary(strings.NewReader(test.text), "d.txt")
		got := fmt.Sprint(err)
		if err == nil {
			skipped := 0
			for _, s := range d.Skipped {
				skipped += s.Lines
			}
			categories := any(d.Categories)
			if len(d.Categories) > 10 {
				categories = len(d.Categories)
			}
			got = fmt.Sprint(d.Form, " ", categories, " ", d.Entries, " ", skipped)
		}
		if err == nil && got != test.want || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestLongWords: a word is long with more than six letters, whatever bytes they have.
func TestLongWords(t *testing.T) {
	for text, want := range map[string]float64{"tränen": 0, "sechser": 100, "einsam ängstlich": 50, "äöüäöü": 0} {
		testkit.Same(t, text, want, Text(text, nil, false)[3])
	}
}
