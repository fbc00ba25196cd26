package redditemu

import (
	"bytes"
	"image"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/webp"

	"rehydrate/internal/testkit"
)

func TestDrawFormats(t *testing.T) {
	for _, format := range []string{"jpeg", "png", "gif", "webp"} {
		s := Spec{Seed: 7, Style: StyleOutline, Format: format}
		a, err := Draw(s)
		testkit.OK(t, err)
		b, err := Draw(s)
		if err != nil || !bytes.Equal(a.Body, b.Body) || !slices.Equal(a.Words, b.Words) {
			t.Errorf("Draw(%s) twice differs (error %v)", format, err)
		}
		img, got, err := image.Decode(bytes.NewReader(a.Body))
		if err != nil || got != format {
			t.Fatalf("Decode(%s) = %q, %v", format, got, err)
		}
		w, h := s.Size()
		if img.Bounds() != image.Rect(0, 0, w, h) {
			t.Errorf("Draw(%s): bounds %v, Size %dx%d", format, img.Bounds(), w, h)
		}
	}
}

func TestDrawTemplate(t *testing.T) {
	size := func(s Spec) (image.Point, []string) {
		d, err := Draw(s)
		testkit.OK(t, err)
		c, _, err := image.DecodeConfig(bytes.NewReader(d.Body))
		testkit.OK(t, err)
		return image.Pt(c.Width, c.Height), d.Words
	}
	one, words := size(Spec{Seed: 1, Template: 50, Style: StyleOutline, Caption: Caption(1)})
	two, others := size(Spec{Seed: 2, Template: 50, Style: StyleOutline, Caption: Caption(2)})
	if one != two || slices.Equal(words, others) {
		t.Errorf("one template: %v %q and %v %q", one, words, two, others)
	}
	original := Spec{Seed: 3, Language: "ru"}
	w, h := original.Size()
	if half, words := size(Spec{CopyOf: &original, Scale: 0.5, Quality: 40}); half != image.Pt(w/2, h/2) ||
		len(words) == 0 {
		t.Errorf("copy of %dx%d is %v with words %q", w, h, half, words)
	}
}

func TestDrawErrors(t *testing.T) {
	copied := Spec{CopyOf: &Spec{Seed: 1}}
	for _, s := range []Spec{
		{Style: "comic"}, {Format: "bmp"}, {Language: "xx"}, {Caption: "日本語"},
		{Style: StyleOutline, Caption: strings.Repeat("a", 400)}, {CopyOf: &copied},
	} {
		if d, err := Draw(s); err == nil {
			t.Errorf("Draw(%+v) gave %d bytes and no error", s, len(d.Body))
		}
	}
}

// Lossless WebP must give the pixels back, also where a code has one symbol and where
// the picture of predictors has more than one tile.
func TestWebPIsLossless(t *testing.T) {
	flat := image.NewRGBA(image.Rect(0, 0, 3, 5))
	for i := range flat.Pix {
		flat.Pix[i] = 255
	}
	one := image.NewRGBA(image.Rect(0, 0, 1, 1))
	one.Pix = []byte{1, 2, 3, 255}
	for name, want := range map[string]*image.RGBA{"photo": Photo(4, 600, 530), "flat": flat, "one": one} {
		got, err := webp.Decode(bytes.NewReader(EncodeWebP(want)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n, ok := got.(*image.NRGBA)
		if !ok || n.Rect != want.Rect || !bytes.Equal(n.Pix, want.Pix) {
			t.Errorf("%s: the pixels differ (%T %v)", name, got, got.Bounds())
		}
	}
}
