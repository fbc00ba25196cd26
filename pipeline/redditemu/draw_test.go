package redditemu

import (
	"bytes"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"
)

func TestDrawLook(t *testing.T) {
	dir := os.Getenv("REDDITEMU_LOOK")
	if dir == "" {
		t.Skip("set REDDITEMU_LOOK to a folder to look at drawn pictures")
	}
	for i := range 12 {
		for _, style := range []Style{StyleOutline, StylePanel, StyleScreenshot, StyleBare} {
			d, err := Draw(Spec{Seed: uint64(i) + 1, Style: style, Language: append([]string{"en", "en", "en", "en", "salad"}, Languages()...)[i%11]})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%02d.jpg", style, i)), d.Body, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

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
		if img.Bounds() != image.Rect(0, 0, w, h) || a.Width != w || a.Height != h {
			t.Errorf("Draw(%s): bounds %v, Drawn %dx%d, Size %dx%d", format, img.Bounds(), a.Width, a.Height, w, h)
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

func BenchmarkDraw(b *testing.B) {
	for _, format := range []string{"jpeg", "png", "gif", "webp"} {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := Draw(Spec{Seed: uint64(i % 64), Format: format}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
