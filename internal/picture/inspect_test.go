package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// webp1x1 is a lossless WebP of one pixel, as cwebp writes it.
const webp1x1 = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"

// usual are the limits of the default policy.
var usual = Limits{MaxBytes: 20 << 20, MaxPixels: 40_000_000, MaxSide: 16384}

func drawn(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7)
	}
	return img
}

func encode(t testing.TB, format string, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	testkit.OK(t, err)
	return b.Bytes()
}

// pngHeader is a PNG that says its size and has no pixels: all that a bomb needs.
func pngHeader(w, h uint32) []byte { return pngHead(int(w), int(h), 1, 0, false) }

func chunk(typed []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(typed)-4))
	b = append(b, typed...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(typed))
}

func TestGuardedRecovers(t *testing.T) {
	_, err := guarded(func() (int, error) { panic("index out of range") })
	if err == nil || !strings.Contains(err.Error(), "damaged data: index out of range") {
		t.Errorf("guarded = %v", err)
	}
}

// FuzzInspect: no body panics, each has a fault with a reason or a size within the
// limits, and what is passed and decodes has the size that was named.
func FuzzInspect(f *testing.F) {
	for _, format := range []string{"jpeg", "png", "gif"} {
		f.Add(encode(f, format, drawn(9, 7)))
	}
	f.Add([]byte(webp1x1))
	f.Add([]byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\x09\x00\x00\x09\x00\x00ALPH"))
	f.Add(pngHeader(130, 60))
	f.Add(drawnJPEG(true, 20, 20, "", 0x22, 0x11, 0x11))
	f.Add(drawnJPEG(false, 20, 20, "Adobe", 0x22, 0x11, 0x11, 0x22))
	f.Add(drawnPNG(20, 20, 16, 0, true, true))
	f.Add([]byte("<!doctype html>"))
	small := usual
	small.MaxPixels, small.MaxSide = 1<<16, 1<<12 // so that the fuzzer spends no time on large ones
	f.Fuzz(func(t *testing.T, body []byte) {
		info, fault := Inspect(body, small)
		if fault != nil {
			if fault.Reason == "" || fault.Detail == "" || info.DecodedBytes != 0 || (info.Format == "") != (info == Info{}) {
				t.Errorf("fault %+v with %v", fault, info)
			}
			return
		}
		if info.DecodedBytes <= 0 || info.DecodedBytes > small.MaxDecodedBytes() {
			t.Errorf("Inspect let %+v pass", info)
		}
		if info.Width <= 0 || info.Height <= 0 || info.Width*info.Height > 1<<16 {
			t.Errorf("Inspect let %v pass", info)
		}
		img, err := Decode(body)
		if err == nil && (img.Bounds().Dx() != info.Width || img.Bounds().Dy() != info.Height) {
			t.Errorf("decoded %v, the header says %v", img.Bounds(), info)
		}
	})
}
