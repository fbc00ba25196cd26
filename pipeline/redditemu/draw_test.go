package redditemu

import (
	"bytes"
	"encoding/binary"
	"image"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/webp"
)

func TestDrawFormats(t *testing.T) {
	for _, format := range []string{"jpeg", "png", "gif", "webp"} {
		s := Spec{Seed: 7, Style: StyleOutline, Format: format}
		a, err := Draw(s)
		if err != nil {
			t.Fatalf("Draw(%s): %v", format, err)
		}
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
		if !bytes.Contains(a.Body, []byte(CanaryMetadata)) {
			t.Errorf("Draw(%s) has no canary", format)
		}
		s.Clean = true
		clean, err := Draw(s)
		if err != nil || bytes.Contains(clean.Body, []byte("canary")) {
			t.Errorf("Draw(clean %s) has a canary (error %v)", format, err)
		}
		t.Logf("%s %dx%d: %d bytes, %q", format, w, h, len(a.Body), strings.Join(a.Words, " "))
	}
}

func TestDrawTemplate(t *testing.T) {
	size := func(s Spec) (image.Point, []string) {
		d, err := Draw(s)
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := image.DecodeConfig(bytes.NewReader(d.Body))
		if err != nil {
			t.Fatal(err)
		}
		return image.Pt(c.Width, c.Height), d.Words
	}
	one, words := size(Spec{Seed: 1, Template: 50, Style: StyleOutline, Caption: Caption(1)})
	two, others := size(Spec{Seed: 2, Template: 50, Style: StyleOutline, Caption: Caption(2)})
	if one != two || slices.Equal(words, others) {
		t.Errorf("one template: %v %q and %v %q", one, words, two, others)
	}
	original := Spec{Seed: 3, Language: "ru"}
	w, h := original.Size()
	if half, words := size(Spec{CopyOf: &original, Scale: 0.5, Quality: 40}); half != image.Pt(w/2, h/2) || len(words) == 0 {
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
		got, err := webp.Decode(bytes.NewReader(EncodeWebP(want, true)))
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

// The planted EXIF must be EXIF that a reader understands, or a test that it is gone
// proves little.
func TestEXIF(t *testing.T) {
	b := exif
	le := binary.LittleEndian
	fields := func(at uint32) map[uint16]uint32 {
		m := map[uint16]uint32{}
		for i := range uint32(le.Uint16(b[at:])) {
			f := b[at+2+12*i:]
			m[le.Uint16(f)] = le.Uint32(f[8:])
		}
		return m
	}
	root := fields(le.Uint32(b[4:]))
	artist := b[root[0x013b]:]
	if got, _, _ := strings.Cut(string(artist), "\x00"); got != CanaryMetadata+" artist" {
		t.Errorf("artist = %q", got)
	}
	gps := fields(root[0x8825])
	lat := b[gps[2]:]
	if d, one, m := le.Uint32(lat), le.Uint32(lat[4:]), le.Uint32(lat[8:]); d != 0 || one != 1 || m != 7 || len(gps) != 5 {
		t.Errorf("latitude %d/%d %d', %d GPS fields", d, one, m, len(gps))
	}
	if inner := fields(root[0x8769]); !bytes.HasPrefix(b[inner[0x9286]:], []byte("ASCII\x00\x00\x00"+CanaryMetadata)) {
		t.Errorf("user comment at %d", inner[0x9286])
	}
}
