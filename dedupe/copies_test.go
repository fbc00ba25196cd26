package dedupe

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"testing"

	xdraw "golang.org/x/image/draw"

	"rehydrate/internal/word"
	"rehydrate/pipeline/redditemu"
)

// The kinds of pictures in a set of copies, besides the originals.
const (
	recompressed = "recompressed"
	resized      = "resized"
	brightened   = "brightened"       // by a twentieth and a tenth
	muchBrighter = "brightened-fifth" // by a fifth, which burns out what is light
	recaptioned  = "recaptioned"      // another caption on the same photograph: no copy
)

// A drawnItem is an item and what is known of it: items of the same subject are copies of
// each other.
type drawnItem struct {
	Item
	kind    string // "" for an original
	subject int
}

// drawSet draws memes of every style with their copies, and on the photographs of those
// with text two more captions each. The texts are what is drawn, so that the hash is
// measured and not OCR.
func drawSet(t testing.TB, originals int) []drawnItem {
	var set []drawnItem
	styles := []redditemu.Style{redditemu.StyleOutline, redditemu.StylePanel, redditemu.StyleScreenshot,
		redditemu.StyleBare}
	for i := range originals {
		spec := redditemu.Spec{Seed: uint64(1000 + i), Style: styles[i%len(styles)], Template: uint64(1 + i)}
		img, words := drawn(t, spec)
		subject := len(set)
		add := func(kind string, img image.Image) {
			set = append(set, drawnItem{Item: itemDrawn(t, img, words), kind: kind, subject: subject})
		}
		add("", img)
		for _, quality := range []int{70, 40} {
			add(recompressed, asJPEG(t, img, quality))
		}
		for _, scale := range []float64{0.5, 0.75, 1.5} {
			add(resized, asJPEG(t, scaled(img, scale), 85))
		}
		for _, factor := range []float64{1.05, 1.1} {
			add(brightened, asJPEG(t, brighter(img, factor), 85))
		}
		add(muchBrighter, asJPEG(t, brighter(img, 1.2), 85))
		if spec.Style == redditemu.StyleBare || spec.Style == redditemu.StyleScreenshot {
			continue // neither has a photograph under a caption
		}
		for k := range 2 {
			other := spec
			other.Seed += uint64(10_000 * (k + 1))
			img, words = drawn(t, other)
			subject = len(set)
			add(recaptioned, img)
		}
	}
	return set
}

func drawn(t testing.TB, spec redditemu.Spec) (image.Image, []string) {
	t.Helper()
	d, err := redditemu.Draw(spec)
	if err != nil {
		t.Fatal(err)
	}
	img, _, err := image.Decode(bytes.NewReader(d.Body))
	if err != nil {
		t.Fatal(err)
	}
	return img, d.Words
}

func itemDrawn(t testing.TB, img image.Image, words []string) Item {
	t.Helper()
	var read []word.Word
	for _, w := range words {
		read = append(read, word.Word{Text: w, Confidence: 95})
	}
	it := Item{Tokens: Tokens(read)}
	var err error
	it.Hash, err = HashImage(img)
	if err != nil {
		t.Fatal(err)
	}
	if len(it.Tokens) > 0 {
		return it // the wide hash is for items without text
	}
	wide, err := HashImage256(img)
	if err != nil {
		t.Fatal(err)
	}
	it.Wide = &wide
	return it
}

func asJPEG(t testing.TB, img image.Image, quality int) image.Image {
	t.Helper()
	var file bytes.Buffer
	if err := jpeg.Encode(&file, img, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	decoded, err := jpeg.Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func scaled(img image.Image, scale float64) image.Image {
	b := img.Bounds()
	dst := image.NewRGBA(image.Rect(0, 0, int(float64(b.Dx())*scale), int(float64(b.Dy())*scale)))
	xdraw.ApproxBiLinear.Scale(dst, dst.Rect, img, b, xdraw.Src, nil)
	return dst
}

func brighter(img image.Image, factor float64) image.Image {
	b := img.Bounds()
	dst := image.NewRGBA(b)
	xdraw.Draw(dst, b, img, b.Min, xdraw.Src)
	for i, v := range dst.Pix {
		if i%4 < 3 {
			dst.Pix[i] = uint8(min(255, math.Round(float64(v)*factor)))
		}
	}
	return dst
}

// A found counts what a rule finds in a set of copies.
type found struct {
	copies, near   map[string]int // by kind: all copies, and those near their original
	pairs, correct int            // near pairs, and those of one subject
	recaptioned    int            // items with another caption that are dropped
}

func look(t testing.TB, set []drawnItem, rule Rule) found {
	t.Helper()
	items := make([]Item, len(set))
	for i := range set {
		items[i] = set[i].Item
	}
	decisions, err := KeepFirst(t.Context(), items, rule)
	if err != nil {
		t.Fatal(err)
	}
	f := found{copies: map[string]int{}, near: map[string]int{}}
	for i, it := range set {
		if it.kind == recaptioned && !decisions[i].Kept() {
			f.recaptioned++
		}
		if it.kind != "" {
			f.copies[it.kind]++
		}
		for j := range i {
			if near(items[j], items[i], rule) == "" {
				continue
			}
			f.pairs++
			if set[j].subject == it.subject {
				f.correct++
			}
			if j == it.subject {
				f.near[it.kind]++
			}
		}
	}
	return f
}

func (f found) recall(kinds ...string) float64 {
	near, all := 0, 0
	for _, k := range kinds {
		near, all = near+f.near[k], all+f.copies[k]
	}
	return 100 * float64(near) / float64(all)
}

func (f found) precision() float64 { return 100 * float64(f.correct) / float64(max(1, f.pairs)) }

// TestCopies: what the stage is for, on drawn memes. Copies are found, and other captions
// on the same photograph are kept.
func TestCopies(t *testing.T) {
	f := look(t, drawSet(t, 4), Rule{Radius: 8, Words: 3})
	for _, kind := range []string{recompressed, resized, brightened} {
		if f.near[kind] != f.copies[kind] {
			t.Errorf("%s: %d of %d copies are near their original", kind, f.near[kind], f.copies[kind])
		}
	}
	if f.recaptioned > 0 || f.correct != f.pairs {
		t.Errorf("%d memes with other captions are dropped, and %d of %d near pairs are none", f.recaptioned,
			f.pairs-f.correct, f.pairs)
	}
}

// BenchmarkRecall measures recall and precision over the radius. scripts/bench dedupe makes
// the table of it.
func BenchmarkRecall(b *testing.B) {
	set := drawSet(b, 80)
	for radius := 2; radius <= 12; radius += 2 {
		b.Run(fmt.Sprint(radius), func(b *testing.B) {
			var f, images found
			for b.Loop() {
				f = look(b, set, Rule{Radius: radius, Words: 3})
				images = look(b, set, Rule{Radius: radius, ImageOnly: true})
			}
			for _, kind := range []string{recompressed, resized, brightened, muchBrighter} {
				b.ReportMetric(f.recall(kind), kind+"%")
			}
			b.ReportMetric(f.precision(), "precision%")
			b.ReportMetric(float64(f.recaptioned), "recaptioned-dropped")
			b.ReportMetric(float64(f.copies[recaptioned]), "recaptioned")
			b.ReportMetric(float64(len(set)), "pictures")
			b.ReportMetric(images.recall(recompressed, resized, brightened, muchBrighter), "image-recall%")
			b.ReportMetric(images.precision(), "image-precision%")
			b.ReportMetric(float64(images.recaptioned), "image-recaptioned-dropped")
		})
	}
}
