package hostile

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/webp"

	"rehydrate/manifest"
)

const noTrap = "127.0.0.1:1"

// sound decodes a file with the decoder of its format; files of none are an error.
func sound(b []byte) (image.Image, error) {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xd8")):
		return jpeg.Decode(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte("\x89PNG")):
		return png.Decode(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte("GIF8")):
		return gif.Decode(bytes.NewReader(b))
	}
	return webp.Decode(bytes.NewReader(b))
}

// TestHostileImages holds the corpus to what it says of itself: enough cases, each named once
// and written the same every time, and what is to be kept is a picture.
func TestHostileImages(t *testing.T) {
	all := Images(noTrap)
	if len(all) < 60 {
		t.Errorf("%d images, want 60 or more", len(all))
	}
	name, seen := regexp.MustCompile(`^[a-z0-9_]+$`), map[string]bool{}
	for _, h := range all {
		if !name.MatchString(h.Name) || seen[h.Name] || h.Reason == "" || h.Outcome == "" {
			t.Errorf("%q: a bad or repeated name, or no outcome and reason", h.Name)
		}
		seen[h.Name] = true
		var once, twice bytes.Buffer
		if err := h.Write(&once); err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		if err := h.Write(&twice); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Errorf("%s: not the same bytes twice (%v)", h.Name, err)
		}
		if h.Outcome != manifest.Kept {
			continue
		}
		if _, err := sound(once.Bytes()); err != nil {
			t.Errorf("%s is to be kept, and is not a picture: %v", h.Name, err)
		}
	}
}

// TestBombs shows that the bombs are real: what they unfold to is as large as they say, so that
// a client that refuses them refuses them for the right reason.
func TestBombs(t *testing.T) {
	const n = 70<<20 + 12345
	z, err := zlib.NewReader(bytes.NewReader(zlibZeros(n)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.Copy(io.Discard, z); got != n || err != nil {
		t.Errorf("zlibZeros(%d) unfolds to %d bytes, %v", int64(n), got, err)
	}
	var b bytes.Buffer
	if err := gzipBomb(&b, ' ', n); err != nil {
		t.Fatal(err)
	}
	if b.Len() > n/500 {
		t.Errorf("a gzip bomb of %d bytes is %d long", int64(n), b.Len())
	}
	g, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.Copy(io.Discard, g); got != n || err != nil {
		t.Errorf("gzipBomb(%d) unfolds to %d bytes, %v", int64(n), got, err)
	}
	if img, err := sound(flatPNG(3000, 3000, 1, 0, 0)); err != nil || img.Bounds().Dx() != 3000 {
		t.Errorf("flatPNG: %v", err)
	}
	if img, err := sound(flatWebP(3000, 3000, 0)); err != nil || img.Bounds().Dx() != 3000 {
		t.Errorf("flatWebP: %v", err)
	}
	if img, err := sound(rawJPEG(jpegPlan{w: 64, h: 64, components: 3, progressive: true, scans: 1000})); err != nil ||
		img.Bounds().Dx() != 64 {
		t.Errorf("a JPEG of 1000 scans: %v", err)
	}
	if all, err := gif.DecodeAll(bytes.NewReader(gifFrames(120, 90, 10000, 1))); err != nil || len(all.Image) != 10000 {
		t.Errorf("a GIF of 10000 frames: %v", err)
	}
}

// TestHostileAnswers holds the answers to what they say of themselves.
func TestHostileAnswers(t *testing.T) {
	all := Answers(noTrap)
	if n := len(all) + len(Images(noTrap)); n < 70 {
		t.Errorf("the corpus has %d cases, want 70 or more", n)
	}
	seen := map[string]bool{}
	for _, h := range all {
		if seen[h.Name] || h.Reason == "" || h.Outcome == "" || h.Kind.String() == "" {
			t.Errorf("%q: a repeated name, no outcome and reason, or no kind", h.Name)
		}
		seen[h.Name] = true
	}
}

// TestPlant: what is planted stands in the file, and the picture is the same with it and without.
func TestPlant(t *testing.T) {
	for name, b := range map[string][]byte{"jpeg": pictureJPEG(1), "png": picturePNG(1), "gif": pictureGIF(1),
		"webp": pictureWebP(1)} {
		planted := Plant(b)
		want, err := sound(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sound(planted)
		if err != nil || !cmp.Equal(want, got) || bytes.Contains(b, []byte("canary")) ||
			!bytes.Contains(planted, []byte(CanaryMetadata)) {
			t.Errorf("%s: %v, or no canary, or another picture", name, err)
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
	if d, one, m := le.Uint32(lat), le.Uint32(lat[4:]),
		le.Uint32(lat[8:]); d != 0 || one != 1 || m != 7 || len(gps) != 5 {
		t.Errorf("latitude %d/%d %d', %d GPS fields", d, one, m, len(gps))
	}
	if inner := fields(root[0x8769]); !bytes.HasPrefix(b[inner[0x9286]:], []byte("ASCII\x00\x00\x00"+CanaryMetadata)) {
		t.Errorf("user comment at %d", inner[0x9286])
	}
}
