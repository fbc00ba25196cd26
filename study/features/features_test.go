package features

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rehydrate/pipeline/language"
	"rehydrate/policy"
)

// vectors are colours with the H, S, V and grey that OpenCV 4.5.1 gives for them.
var vectors = []struct{ rgb, want [4]uint8 }{
	{[4]uint8{255, 0, 0}, [4]uint8{0, 255, 255, 76}}, {[4]uint8{0, 255, 0}, [4]uint8{60, 255, 255, 150}},
	{[4]uint8{0, 0, 255}, [4]uint8{120, 255, 255, 29}}, {[4]uint8{255, 255, 255}, [4]uint8{0, 0, 255, 255}},
	{[4]uint8{0, 0, 0}, [4]uint8{0, 0, 0, 0}}, {[4]uint8{128, 128, 128}, [4]uint8{0, 0, 128, 128}},
	{[4]uint8{255, 128, 0}, [4]uint8{15, 255, 255, 151}}, {[4]uint8{10, 200, 30}, [4]uint8{63, 242, 200, 124}},
	{[4]uint8{1, 2, 3}, [4]uint8{105, 170, 3, 2}}, {[4]uint8{200, 100, 50}, [4]uint8{10, 191, 200, 124}},
	{[4]uint8{255, 0, 1}, [4]uint8{0, 255, 255, 76}}, {[4]uint8{254, 255, 253}, [4]uint8{45, 2, 255, 254}},
	{[4]uint8{12, 34, 56}, [4]uint8{105, 200, 56, 30}}, {[4]uint8{255, 254, 255}, [4]uint8{150, 1, 255, 254}},
	{[4]uint8{37, 150, 190}, [4]uint8{98, 205, 190, 121}},
}

func TestConversions(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, len(vectors), 1))
	for x, v := range vectors {
		r, g, b := v.rgb[0], v.rgb[1], v.rgb[2]
		img.Set(x, 0, color.RGBA{r, g, b, 255})
		got := [4]uint8{}
		got[0], got[1], got[2] = hsvOf(r, g, b)
		got[3] = greyOf(r, g, b)
		if got != v.want {
			t.Errorf("%v gives H, S, V and grey %v, want %v", v.rgb, got, v.want)
		}
	}
	numbers, grey := Picture(img)
	want := []float64{118.266667, 83.517237, 187.8, 152.4, 51.4}
	if diff := cmp.Diff(want, numbers[:5], cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("the picture of all colours (-want +got):\n%s", diff)
	}
	if grey.Bounds() != img.Bounds() || grey.GrayAt(3, 0).Y != 255 {
		t.Errorf("its grey plane is %v", grey)
	}
}

// TestPictureExtremes: numbers that are not defined, or at the ends of their scales.
func TestPictureExtremes(t *testing.T) {
	fill := func(c ...color.Color) *image.NRGBA {
		img := image.NewNRGBA(image.Rect(3, 5, 103, 5+10*len(c)))
		for y := range 10 * len(c) {
			for x := range 100 {
				img.Set(3+x, 5+y, c[y/10])
			}
		}
		return img
	}
	nan := math.NaN()
	red, blueish := color.NRGBA{255, 0, 0, 255}, color.NRGBA{255, 0, 1, 255}
	for name, tt := range map[string]struct {
		img  image.Image
		want []float64
	}{
		"black and white": {fill(color.Black, color.White), []float64{127.5, 127.5, 127.5, 0, 0, nan, nan}},
		"grey":            {fill(color.Gray{77}), []float64{77, 0, 77, 0, 0, nan, nan}},
		"nothing at all":  {fill(color.Transparent), []float64{255, 0, 255, 0, 0, nan, nan}},
		"red at 0":        {fill(red), []float64{76, 0, 255, 255, 0, 0, 0}},
		"red at 179":      {fill(color.NRGBA{255, 0, 9, 255}, red), []float64{76.5, .5, 255, 255, 89.5, 359, .00015230}},
		"red over white":  {fill(color.NRGBA{255, 0, 0, 51}), []float64{219, 0, 255, 51, 0, 0, 0}},
		"red and cyan": {fill(red, color.NRGBA{0, 255, 255, 255}, blueish),
			[]float64{110 + 1./3, 48.554666, 255, 255, 30, 0, 2. / 3}},
	} {
		got, _ := Picture(tt.img)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-6), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDeviation: a contrast that floats would lose.
func TestDeviation(t *testing.T) {
	n := uint64(40_000_000) // pixels of 255, but one of 254
	got := deviation(n, 255*n-1, 255*255*n-255*255+254*254)
	if want := math.Sqrt(float64(n)-1) / float64(n); math.Abs(got-want) > 1e-15 {
		t.Errorf("deviation = %v, want %v", got, want)
	}
}

// handMade is a cascade of two stages: dark above bright, and darker on the left.
const handMade = `<opencv_storage><cascade><stageType>BOOST</stageType><featureType>HAAR</featureType><height>24</height><width>24</width>
<stages><_><stageThreshold>0.5</stageThreshold><weakClassifiers><_><internalNodes>0 -1 0 0.1</internalNodes><leafValues>0. 1.</leafValues></_></weakClassifiers></_>
<_><stageThreshold>0.5</stageThreshold><weakClassifiers><_><internalNodes>0 -1 1 0.05</internalNodes><leafValues>0. 1.</leafValues></_></weakClassifiers></_></stages>
<features><_><rects><_>0 0 24 24 -1.</_><_>0 12 24 12 2.</_></rects><tilted>0</tilted></_>
<_><rects><_>0 0 24 24 -1.</_><_>12 0 12 24 2.</_></rects><tilted>0</tilted></_></features></cascade></opencv_storage>`

func TestFaces(t *testing.T) {
	c, err := ReadCascade(strings.NewReader(handMade), "hand.xml")
	if err != nil {
		t.Fatal(err)
	}
	// A quarter that is bright on black: what the cascade looks for has its corner at the middle of the window.
	img := image.NewGray(image.Rect(0, 0, 90, 80))
	for y := 44; y < 80; y++ {
		for x := 52; x < 90; x++ {
			img.SetGray(x, y, color.Gray{200})
		}
	}
	d := Detection{Scale: 1.1, Neighbors: 3}
	faces := c.Faces(t.Context(), img, d)
	if len(faces) == 0 {
		t.Fatal("no window is found")
	}
	for _, f := range faces {
		if corner := image.Pt(52, 44); !corner.In(f.Inset(f.Dx() / 8)) {
			t.Errorf("%v is found, which does not have the corner in its middle", f)
		}
	}
	turned := image.NewGray(img.Rect)
	for i, v := range img.Pix {
		turned.Pix[len(img.Pix)-1-i] = v
	}
	for name, found := range map[string][]image.Rectangle{
		"bright above on the left":  c.Faces(t.Context(), turned, d),
		"one grey":                  c.Faces(t.Context(), image.NewGray(image.Rect(0, 0, 90, 80)), d),
		"smaller than the window":   c.Faces(t.Context(), image.NewGray(image.Rect(0, 0, 23, 80)), d),
		"windows of 81 pixels":      c.Faces(t.Context(), img, Detection{Scale: 1.1, Neighbors: 3, MinSize: 81}),
		"more neighbours than seen": c.Faces(t.Context(), img, Detection{Scale: 1.1, Neighbors: 5000}),
	} {
		if len(found) > 0 {
			t.Errorf("%s: %v is found", name, found)
		}
	}
}

func TestFrontalFace(t *testing.T) {
	c, err := FrontalFace()
	if err != nil {
		t.Fatal(err)
	}
	stumps := 0
	for _, s := range c.stages {
		stumps += len(s.stumps)
	}
	if c.SHA256 != "0f7d4527844eb514d4a4948e822da90fbb16a34a0bbbbc6adc6498747a5aafb0" || c.side != 24 ||
		len(c.stages) != 25 || stumps != 2913 {
		t.Errorf("the cascade has SHA-256 %s, %d pixels, %d stages, %d stumps", c.SHA256, c.side, len(c.stages), stumps)
	}
}

func TestReadCascadeRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"not XML":               {handMade, "%", "EOF"},
		"an old cascade":        {"cascade>", "haarcascade>", "no element cascade"},
		"local binary patterns": {"HAAR", "LBP", `"LBP"`},
		"a tree":                {"0 -1 0 0.1", "1 2 0 0.1 0 -1 1 0.2", "it is a tree"},
		"tilted":                {"<tilted>0", "<tilted>1", "tilted"},
		"out of the window":     {"0 12 24 12", "0 13 24 12", "leaves the window"},
		"an overflow":           {"0 12 24 12", "0 12 24 9e18", "leaves the window"},
		"another feature":       {"0 -1 1 0.05", "0 -1 2 0.05", "feature 2 of 2"},
		"not a number":          {"0. 1.", "0. x", `"x" is not a number`},
		"no stages":             {"stages>", "steps>", "no stages"},
		"a window of 0":         {"24</height><width>24", "0</height><width>0", "0 by 0"},
	} {
		_, err := ReadCascade(strings.NewReader(strings.ReplaceAll(handMade, tt.old, tt.new)), "f.xml")
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "f.xml") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func FuzzReadCascade(f *testing.F) {
	f.Add(handMade)
	grey := image.NewGray(image.Rect(0, 0, 40, 40))
	for i := range grey.Pix {
		grey.Pix[i] = uint8(i * i)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ReadCascade(strings.NewReader(text), "f.xml"); err == nil {
			c.Faces(t.Context(), grey, DefaultDetection())
		}
	})
}

func TestText(t *testing.T) {
	d := dictionaryOf(t, "%\n1\tsad\n2\tend\n%\ntears\t1\nend*\t2\nwant to\t1\t2\n", "d.dic")
	nan := math.NaN()
	for text, want := range map[string][]float64{ // words, sentences, wps, sixltr, dic, sad, end
		"":                                      {nan, nan, nan, nan, nan, nan, nan},
		"... !!! [user]":                        {nan, nan, nan, nan, nan, nan, nan},
		"ME WHEN\nTHE END":                      {4, 1, 4, 0, 25, 0, 25},
		"I want to. Endless tears… don't":       {6, 3, 2, 100. / 6, 4 * 100. / 6, 3 * 100. / 6, 3 * 100. / 6},
		"[user]: call [phone], don\u2019t [a]":  {3, 1, 3, 0, 0, 0, 0},
		"\xffstrange\xff bytes":                 {2, 1, 2, 50, 0, 0, 0},
		"doesn't 1234567 abc12345 haven\u2019t": {4, 1, 4, 0, 0, 0, 0}, // six letters at most
		"shouldn't abcdefg1 \u00fcberaus":       {3, 1, 3, 100, 0, 0, 0},
	} {
		got := Text(text, []*Dictionary{d}, false)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got := Text("endless tears want to", []*Dictionary{d}, true); !cmp.Equal(got,
		[]float64{4, 1, 4, 25, 100, 3, 3}) {
		t.Errorf("with counts: %v", got)
	}
	if got := TextColumns([]*Dictionary{d}); !cmp.Equal(got,
		[]string{"words", "sentences", "wps", "sixltr", "dic", "liwc.sad", "liwc.end"}) {
		t.Errorf("columns %v", got)
	}
	if got := Text("words", nil, false); len(got) != len(TextColumns(nil)) {
		t.Errorf("without a dictionary: %v", got)
	}
}

// TestMasks: what masking puts into a text does not count as a word.
func TestMasks(t *testing.T) {
	masked, n := language.MaskNames([][]string{{"u/somebody-1"}, {"mail", "a.b@example.org"},
		{"call", "+1", "212", "555", "0100"}})
	if n != 3 {
		t.Fatalf("masked %d of 3: %v", n, masked)
	}
	if got := Text(fmt.Sprint(masked), nil, false)[0]; got != 2 { // mail, call
		t.Errorf("%v has %v words, want 2", masked, got)
	}
}

func dictionaryOf(t testing.TB, text, name string) *Dictionary {
	t.Helper()
	d, err := ReadDictionary(strings.NewReader(text), name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestReadDictionary: the forms that are met, with their oddities, and what each token counts for.
func TestReadDictionary(t *testing.T) {
	const head = "%\n1\tsad\n2\tend\n%\n"
	for name, tt := range map[string]struct {
		file, text string
		categories []string
		want       string // form, entries, tokens of each category
		skipped    []Skip
	}{
		"tabs": {"d.dic", head + "tears\t1\nend\t1\t2\n", []string{"sad", "end"}, "dic 2 [2 1]", nil},
		"spaces": {"d.dic", "%\n1 sad\n2 end\n%\nat the end 2\ntears 1 2\n", []string{"sad", "end"},
			"dic 2 [1 4]", nil},
		"CR LF and a mark": {"d.dic", "\ufeff%\r\n1\tsad\r\n%\r\ntears\t1\r\n\r\n", []string{"sad"}, "dic 1 [1]", nil},
		"windows-1252":     {"d.dic", "%\n1\tm\xfcde\n%\ncaf\xe9*\t1\n", []string{"müde"}, "dic 1 [1]", nil},
		"a tree": {"d.dic", "%\n1\taffect\n\t2\tnegemo\n\t\t3\tsad mood\n%\ntears\t1\t2\t3\n",
			[]string{"affect", "negemo", "sad mood"}, "dic 1 [1 1 1]", nil},
		"twice": {"d.dic", head + "tears\t1\nTEARS\t2\n", []string{"sad", "end"}, "dic 1 [1 1]", nil},
		"conditions": {"d.dic", head + "end\t(02 134)125/464\t2\ntears\t<of>131/125\t1\n", []string{"sad", "end"},
			"dic 2 [1 1]",
			[]Skip{{"a category on a condition", 2, 5}}},
		"numbers that the head lacks": {"d.dic", head + "end\t2\t7\ntears\t9\n", []string{"sad", "end"}, "dic 1 [0 1]",
			[]Skip{{"a category that the head lacks", 2, 5}, {"an entry without letters, or in no category", 1, 6}}},
		"a head with notes": {"d.dic", "%\nmade by hand\n1\tsad\n%\ntears\t1\n", []string{"sad"}, "dic 1 [1]",
			[]Skip{{"a line of the head without number and name", 1, 2}}},
		"a star alone": {"d.dic", head + "*\t1\nend\t2\n", []string{"sad", "end"}, "dic 1 [0 1]",
			[]Skip{{"an entry without letters, or in no category", 1, 5}}},
		"exact before the beginning": {"d.dic", head + "e*\t1\nend\t2\n", []string{"sad", "end"}, "dic 2 [0 1]", nil},
		"the longest beginning":      {"d.dic", head + "t*\t1\ntea*\t2\n", []string{"sad", "end"}, "dic 2 [3 1]", nil},
		"the longest run": {"d.dic", head + "at\t1\nat the e*\t2\n", []string{"sad", "end"}, "dic 2 [0 3]",
			nil},
		"dicx": {"d.dicx", "DicTerm,sad,end\n\"tears\",X,\nend*,0,1\n", []string{"sad", "end"},
			"dicx 2 [1 1]", nil},
		"an early dicx": {"d.dicx", "Entry,sad\ntears,0.5\nend,\nbad \" quote,X\n", []string{"sad"},
			"dicx 1 [1]", []Skip{{"an entry without letters, or in no category", 1, 3},
				{"a line that does not fit the head", 1, 4}}},
		"EmoLex": {"n.txt", "A readme\n\ntears\tsadness\t1\ntears\tJoy\t0\nend\tsadness\t1\n",
			[]string{"sadness", "joy"}, "emolex 2 [2 0]", []Skip{{"a line that is not a word, a category and 0 or 1", 1, 1}}},
		"EmoLex in many languages": {"n.txt", "English Word\tanger\tsadness\tGerman\ntears\t0\t1\tTränen\nend\t1\n",
			[]string{"anger", "sadness"}, "emolex-wide 1 [0 1]", []Skip{{"a line that does not fit the head", 1, 3}}},
		"EmoLex, a file for a emotion": {"sadness-scores.txt", "tears\t1\nend\t0\n", []string{"sadness-scores"},
			"emolex-one 1 [1]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := dictionaryOf(t, tt.text, tt.file)
			tokens := []string{"tears", "at", "the", "end", "the", "café's", "table"}
			got := fmt.Sprintf("%s %d %v", d.Form, d.Entries, d.count(tokens, make([]bool, len(tokens))))
			if got != tt.want || !cmp.Equal(d.Categories, tt.categories) {
				t.Errorf("%s with %q, want %s with %q", got, d.Categories, tt.want, tt.categories)
			}
			if diff := cmp.Diff(tt.skipped, d.Skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
	union := dictionaryOf(t, head+"e*\t1\nen*\t2\nend\t1\n", "d.dic")
	union.Union = true
	if got := union.count([]string{"end", "ending"}, make([]bool, 2)); !cmp.Equal(got, []int{2, 2}) {
		t.Errorf("with union: %v, want 2 of each", got)
	}
}

// TestReadDictionaryRefuses: a file that is not a dictionary, or is too large, is an error with its line.
func TestReadDictionaryRefuses(t *testing.T) {
	many := func(n int, line string) string { // a line a number
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct{ file, want string }{
		"nothing":             {"", "it has no entries"},
		"prose":               {"Dear diary,\ntoday\n", "it has no entries"},
		"a head that goes on": {"%\n1\tsad\n", "line 2: the head does not end"},
		"a long line":         {"%\n1\tsad\n%\n" + strings.Repeat("a", 1<<20+1), "line 4: it is longer than 1048576 bytes"},
		"categories":          {"%\n" + many(1001, "%d\tc%[1]d\n"), "line 1002: it has more than 1000 categories"},
		"two columns":         {"DicTerm,sad,sad\n", "line 1: two columns have one name"},
	} {
		_, err := ReadDictionary(strings.NewReader(tt.file), "d.dic")
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "d.dic") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := ReadDictionary(strings.NewReader("%\n1\tsad\n%\n"+many(200_001, "w%d\t1\n")), "d.dic"); err == nil ||
		!strings.Contains(err.Error(), "more than 200000 entries") {
		t.Errorf("200,001 entries: %v", err)
	}
}

func FuzzReadDictionary(f *testing.F) {
	for _, seed := range []string{"%\n1\ta\n%\nb*\t1\n", "DicTerm,a\nb,X\n", "b\ta\t1\n",
		"English Word\tjoy\tX\nb\t1\tc\n", "b\t1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ReadDictionary(strings.NewReader(text), "d.txt")
		if err != nil {
			return
		}
		for _, v := range Text("b "+text, []*Dictionary{d}, false) {
			if v < 0 || math.IsInf(v, 0) {
				t.Errorf("a number is %v", v)
			}
		}
	})
}

// TestResume: rows that are finished are not computed once more, unless the picture, the dictionary or the columns
// changed.
func TestResume(t *testing.T) {
	dir, part := t.TempDir(), filepath.Join(t.TempDir(), "part")
	write := func(name string, c color.Color) {
		img, out := image.NewRGBA(image.Rect(0, 0, 30, 30)), new(bytes.Buffer)
		draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
		if err := png.Encode(out, img); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.png", color.White)
	write("b.png", color.White)
	config := Config{Paths: []string{dir}, Images: policy.Default().Images, Workers: 2}
	check := func(what string, known int, brightness ...float64) {
		t.Helper()
		table, err := Compute(t.Context(), config, part)
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, numbers := range table.All {
			got = append(got, numbers[0])
		}
		if table.Known != known || !cmp.Equal(got, brightness) {
			t.Errorf("%s: %d rows known, brightness %v; want %d and %v", what, table.Known, got, known, brightness)
		}
	}
	check("at first", 0, 255, 255)
	check("again", 2, 255, 255)
	write("b.png", color.Black)
	check("with another picture", 1, 255, 0)
	body, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, body[:len(body)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	check("cut off", 1, 255, 0)
	config.Dictionaries = []*Dictionary{dictionaryOf(t, "%\n1\tsad\n%\ntears\t1\n", "d.dic")}
	check("with a dictionary", 0, 255, 0)
	config.Dictionaries = []*Dictionary{dictionaryOf(t, "%\n1\tsad\n%\ntiers\t1\n", "d.dic")}
	check("with another one of the same size", 0, 255, 0)
	ctx, cancel := context.WithCancel(t.Context())
	config.Dictionaries, config.Workers = nil, 1
	config.Progress = func(int, int) { cancel() }
	if _, err := Compute(ctx, config, part); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted after the first picture: %v", err)
	}
	config.Progress = nil
	check("interrupted after the first", 1, 255, 0)
	if _, err := Compute(ctx, config, part); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestKinds: what a column is stands beside the table, and does not hang on its values.
func TestKinds(t *testing.T) {
	columns := append(PictureColumns(), "faces", "face_haar")
	dictionaries := []*Dictionary{{Name: "mini", Categories: []string{"death"}}}
	columns = append(columns, TextColumns(dictionaries)...)
	for counts, share := range map[bool]Kind{true: Count, false: Number} {
		want := map[string]Kind{"brightness": Number, "contrast": Number, "value": Number, "saturation": Number,
			"hue": Number, "hue_circular": Number,
			"hue_spread": Number, "faces": Count, "face_haar": YesNo, "words": Count, "sentences": Count,
			"wps": Number, "sixltr": Number,
			"dic": Number, "mini.death": share}
		c := Config{Dictionaries: dictionaries, Counts: counts}
		if diff := cmp.Diff(want, c.kinds(columns)); diff != "" {
			t.Errorf("counts %t (-want +got)\n%s", counts, diff)
		}
	}
}
