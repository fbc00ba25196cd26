package dedupe

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corona10/goimagehash"
	"github.com/google/go-cmp/cmp"
)

// The tests of this file name faults of the library underneath and of other tools for
// near-duplicates, each as it was reported or reproduced, and show that they are not
// faults here.

// raw is the library's own hash, without anything of this package around it.
func raw(t *testing.T, img image.Image) uint64 {
	t.Helper()
	h, err := goimagehash.PerceptionHash(img)
	if err != nil {
		t.Fatal(err)
	}
	return h.GetHash()
}

// goimagehash v1.1.0 reads transparent pixels as black: two different drawings in black
// on transparency are both 0.
func TestGoimagehashTransparent(t *testing.T) {
	for _, shape := range []image.Rectangle{image.Rect(40, 30, 110, 160), image.Rect(100, 80, 190, 120)} {
		img := image.NewNRGBA(image.Rect(0, 0, 200, 200))
		draw.Draw(img, shape, image.Black, image.Point{}, draw.Src)
		white := image.NewRGBA(img.Rect)
		draw.Draw(white, white.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(white, shape, image.Black, image.Point{}, draw.Src)
		if bare := raw(t, img); bare != 0 {
			t.Fatalf("the library gives %x: it has got over its fault, and the guard can go", bare)
		}
		if got, want := mustHash(t, img), mustHash(t, white); got != want || got.Bits == 0 {
			t.Errorf("black on transparency is %+v, black on white %+v", got, want)
		}
	}
}

// goimagehash v1.1.0 answers an image without pixels with what its pooled buffer held
// last.
func TestGoimagehashEmpty(t *testing.T) {
	empty := image.NewRGBA(image.Rectangle{})
	mustHash(t, photo(4, 200, 200))
	if _, err := goimagehash.PerceptionHash(empty); err != nil {
		t.Fatalf("the library refuses it: %v; the guard can go", err)
	}
	if h, err := HashImage(empty); err == nil {
		t.Errorf("an image without pixels is %+v, want an error", h)
	}
}

// goimagehash v1.1.0 takes a 64x64 part of a larger image for black unless it begins at
// (0, 0).
func TestGoimagehashSubImage(t *testing.T) {
	whole := photo(4, 300, 300)
	part := whole.SubImage(image.Rect(100, 90, 164, 154)).(*image.RGBA)
	moved := image.NewRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(moved, moved.Rect, part, part.Rect.Min, draw.Src)
	if bare := raw(t, part); bare == raw(t, moved) {
		t.Fatalf("the library gives %x for both: it has got over its fault", bare)
	}
	if got, want := mustHash(t, part), mustHash(t, moved); got != want || got.Flat {
		t.Errorf("a part of an image is %+v, the same pixels alone %+v", got, want)
	}
}

// goimagehash v1.1.0, and imagehash (issue 134), give the same hash to pictures of one
// colour, whatever the colour.
func TestGoimagehashFlat(t *testing.T) {
	var items []Item
	for i, c := range []color.Color{color.White, color.Gray{128}, color.RGBA{0, 0, 255, 255}, color.White} {
		img := image.NewRGBA(image.Rect(0, 0, 90, 90))
		draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
		if bare := raw(t, img); bare != 1<<63 {
			t.Fatalf("the library gives %x: it has got over its fault", bare)
		}
		items = append(items, Item{Hash: mustHash(t, img), Wide: new(mustHash256(t, img)), Content: fmt.Sprint("colour ", i%3)})
	}
	got, err := KeepFirst(t.Context(), items, Rule{Radius: 8, Words: 3})
	kept := Decision{Of: -1}
	if diff := cmp.Diff([]Decision{kept, kept, kept, {Of: 0, Class: ClassFlat}}, got); diff != "" || err != nil {
		t.Errorf("white, grey, blue and white again: error %v (-want +got):\n%s", err, diff)
	}
}

// TestGoimagehashPublished: the distances that goimagehash publishes for the pictures that
// it carries, in the tests beside them. They are read where the module is, not carried.
func TestGoimagehashPublished(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/corona10/goimagehash").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	var library, ours [5]uint64
	for i := 1; i <= 4; i++ {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "_examples", fmt.Sprintf("sample%d.jpg", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		img, _, err := image.Decode(f)
		if err != nil {
			t.Fatal(err)
		}
		library[i], ours[i] = raw(t, img), mustHash(t, img).Bits
		if d := bits.OnesCount64(library[i] ^ ours[i]); d > 2 {
			t.Errorf("sample %d: %x is %d bits from the library's %x, want 2 or fewer", i, ours[i], d, library[i])
		}
	}
	if library[2] != 0x95274a996be4349e {
		t.Errorf("the library gives %x for sample 2, want 95274a996be4349e", library[2])
	}
	for _, p := range []struct{ a, b, distance int }{{1, 2, 32}, {1, 3, 2}, {1, 4, 30}, {2, 3, 34}, {2, 4, 20}} {
		if d := bits.OnesCount64(library[p.a] ^ library[p.b]); d != p.distance {
			t.Errorf("samples %d and %d: %d bits in the library, published %d", p.a, p.b, d, p.distance)
		}
		if d := bits.OnesCount64(ours[p.a] ^ ours[p.b]); d < p.distance-4 || d > p.distance+4 {
			t.Errorf("samples %d and %d: %d bits, published %d", p.a, p.b, d, p.distance)
		}
	}
}

// TestHashByHand: a picture whose hash can be worked out with a pencil. It is a black and
// a white half: in the cosine transform of a step at the middle only the odd
// frequencies of the first row are not zero, and they alternate in sign from minus.
// Columns 0 (the mean), 3 and 7 are above the median of 0, so the first row of the hash is
// 10010001, the other rows are 0, and with 3 ones it says of itself that it is flat.
func TestHashByHand(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 640, 640))
	draw.Draw(img, image.Rect(320, 0, 640, 640), image.White, image.Point{}, draw.Src)
	if got := mustHash(t, img); got.Bits>>56 != 0b10010001 || !got.Flat {
		t.Errorf("black and white halves are %016x (flat %v), want 91 in the first row, flat", got.Bits, got.Flat)
	}
}

// says is an item with text, h one hash that the tests vary.
const h = 0x0f0f_3355_aa33_cc0f

func says(bits uint64, text string) Item {
	return Item{Hash: Hash{Bits: bits}, Tokens: strings.Fields(text)}
}

func keptOf(t *testing.T, rule Rule, items ...Item) []int {
	t.Helper()
	decisions, err := KeepFirst(t.Context(), items, rule)
	if err != nil {
		t.Fatal(err)
	}
	var kept []int
	for i, d := range decisions {
		if d.Kept() {
			kept = append(kept, i)
		}
	}
	return kept
}

var literal = Rule{Radius: 8, Words: 3}

// imagededup issue 195: transparent icons drawn in black all match.
func TestImagededupTransparentIcons(t *testing.T) {
	var items []Item
	for seed := range 6 {
		img := image.NewNRGBA(image.Rect(0, 0, 128, 128))
		for i, src := 0, photo(5*seed+2, 128, 128); i < len(img.Pix); i += 4 {
			img.Pix[i+3] = src.Pix[i]
		}
		items = append(items, Item{Hash: mustHash(t, img), Wide: new(mustHash256(t, img)), Content: fmt.Sprint(seed)})
	}
	if kept := keptOf(t, literal, items...); len(kept) != len(items) {
		t.Errorf("of %d different icons %v are kept", len(items), kept)
	}
}

// TestPeers has pairs that other tools merge, or keep both of.
func TestPeers(t *testing.T) {
	for name, test := range map[string]struct {
		a, b Item
		kept int
	}{
		// 64 bits are few for white screenshots; without text the wide hash tells them apart.
		"czkawka issue 429: unrelated images are merged":       {Item{Hash: Hash{Bits: h}, Wide: &Hash256{}}, Item{Hash: Hash{Bits: h ^ 3}, Wide: &Hash256{0xfffff}}, 2},
		"pdq_ocr: nearly any text passes a limit in percent":   {says(h, "when the coffee kicks in"), says(h, "when your code compiles first"), 2},
		"pdq_ocr: an empty text fails":                         {says(h, ""), says(h, "when the coffee kicks in"), 2},
		"cleanvision: a copy two bits away is missed":          {says(h, "some words here"), says(h^5, "some words here"), 1},
		"RedditRepostSleuth issue 287: a template is a repost": {says(h, "one does not simply walk"), says(h, "one does not merely dance around"), 2},
	} {
		if kept := keptOf(t, literal, test.a, test.b); len(kept) != test.kept {
			t.Errorf("%s: kept %v, want %d", name, kept, test.kept)
		}
	}
}

// fastdup issues 302 and 306, and the other tools that drop by connected components: pairs
// far from each other in one component, of which one item is kept.
func TestComponentsChain(t *testing.T) {
	var chain []Item
	for i := range 24 {
		chain = append(chain, says(h^(1<<min(63, 2*i)-1), "one same text"))
	}
	decisions, err := KeepFirst(t.Context(), chain, literal)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for i, d := range decisions {
		if d.Kept() {
			kept++
		} else if d.HashDistance > 8 || d.HashDistance != bits.OnesCount64(chain[i].Hash.Bits^chain[d.Of].Hash.Bits) {
			t.Errorf("item %d is dropped for %d, %d bits away", i, d.Of, d.HashDistance)
		}
	}
	if kept < 4 {
		t.Errorf("a chain of 24 items, 46 bits from end to end: %d kept, want more than a few", kept)
	}
}
