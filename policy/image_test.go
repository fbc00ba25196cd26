package policy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// webp1x1 is a lossless WebP of one pixel, as cwebp writes it.
const webp1x1 = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"

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
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pngHeader is a PNG that says its size and has no pixels: all that a bomb needs.
func pngHeader(w, h uint32) []byte { return pngHead(int(w), int(h), 1, 0, false) }

func chunk(typed []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(typed)-4))
	b = append(b, typed...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(typed))
}

// padPNG puts a chunk that decoders skip behind the header, so that the file has exactly
// length bytes.
func padPNG(t testing.TB, b []byte, length int) []byte {
	t.Helper()
	const header = 8 + 12 + 13
	fill := length - len(b) - 12
	if fill < 0 {
		t.Fatalf("a PNG of %d bytes cannot be padded to %d", len(b), length)
	}
	pad := chunk(append([]byte("prVt"), make([]byte, fill)...))
	return append(append(append([]byte{}, b[:header]...), pad...), b[header:]...)
}

func TestInspectImage(t *testing.T) {
	p := Default()
	small := encode(t, "jpeg", drawn(40, 30))
	tests := []struct {
		name   string
		body   []byte
		format string // "" when a fault is wanted
		w, h   int
		want   Fault
	}{
		{name: "jpeg", body: small, format: "jpeg", w: 40, h: 30},
		{name: "png", body: encode(t, "png", drawn(40, 30)), format: "png", w: 40, h: 30},
		{name: "gif", body: encode(t, "gif", drawn(40, 30)), format: "gif", w: 40, h: 30},
		{name: "webp", body: []byte(webp1x1), format: "webp", w: 1, h: 1},
		{name: "jpeg with a zip behind it", body: append(bytes.Clone(small), "PK\x03\x04"...), format: "jpeg", w: 40, h: 30},
		{name: "widest allowed", body: pngHeader(16384, 2441), format: "png", w: 16384, h: 2441},
		{name: "as long as allowed", body: append(bytes.Clone(small), make([]byte, 20<<20-len(small))...), format: "jpeg", w: 40, h: 30},
		{name: "empty", body: nil, want: Fault{manifest.Invalid, "empty_body", ""}},
		{name: "one byte too long", body: make([]byte, 20<<20+1), want: Fault{manifest.Invalid, "too_large", ""}},
		{name: "html", body: []byte(" \r\n<!DOCTYPE html><p>"), want: Fault{manifest.Invalid, "not_an_image_html", ""}},
		{name: "html after a byte order mark", body: []byte("\xef\xbb\xbf<HTML>"), want: Fault{manifest.Invalid, "not_an_image_html", ""}},
		{name: "svg", body: []byte("<?xml version='1.0'?><svg xmlns=''/>"), want: Fault{manifest.Invalid, "not_an_image_svg", ""}},
		{name: "xml", body: []byte("<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"), want: Fault{manifest.Invalid, "not_an_image_xml", ""}},
		{name: "json", body: []byte(`{"data":{"error":"over capacity"}}`), want: Fault{manifest.Invalid, "not_an_image_json", ""}},
		{name: "pdf", body: []byte("%PDF-1.7"), want: Fault{manifest.Invalid, "not_an_image_pdf", ""}},
		{name: "zip", body: []byte("PK\x03\x04...."), want: Fault{manifest.Invalid, "not_an_image_zip", ""}},
		{name: "gzip", body: []byte("\x1f\x8b\x08"), want: Fault{manifest.Invalid, "not_an_image_gzip", ""}},
		{name: "mp4", body: []byte("\x00\x00\x00\x18ftypmp42"), want: Fault{manifest.Invalid, "not_an_image_mp4", ""}},
		{name: "avif", body: []byte("\x00\x00\x00\x18ftypavif"), want: Fault{manifest.Invalid, "not_an_image_avif", ""}},
		{name: "heic", body: []byte("\x00\x00\x00\x18ftypheic"), want: Fault{manifest.Invalid, "not_an_image_heic", ""}},
		{name: "webm", body: []byte("\x1aE\xdf\xa3"), want: Fault{manifest.Invalid, "not_an_image_webm", ""}},
		{name: "tiff", body: []byte("II*\x00"), want: Fault{manifest.Invalid, "not_an_image_tiff", ""}},
		{name: "bmp", body: []byte("BM1234"), want: Fault{manifest.Invalid, "not_an_image_bmp", ""}},
		{name: "ico", body: []byte("\x00\x00\x01\x00"), want: Fault{manifest.Invalid, "not_an_image_ico", ""}},
		{name: "list of paths", body: []byte("/etc/passwd\n/etc/shadow\n"), want: Fault{manifest.Invalid, "not_an_image", ""}},
		{name: "blanks", body: []byte("   \n"), want: Fault{manifest.Invalid, "not_an_image", ""}},
		{name: "jpeg cut in its header", body: small[:20], want: Fault{manifest.Invalid, "bad_header", ""}},
		{name: "png of no width", body: pngHeader(0, 5), want: Fault{manifest.Invalid, "bad_header", ""}},
		{name: "gif of no size", body: []byte("GIF89a\x00\x00\x00\x00\x00\x00\x00"), want: Fault{manifest.Invalid, "bad_header", ""}},
		{name: "30 000 a side", body: pngHeader(30000, 30000), want: Fault{manifest.Invalid, "side_too_long", ""}},
		{name: "one column too many", body: pngHeader(16385, 1), want: Fault{manifest.Invalid, "side_too_long", ""}},
		{name: "too many pixels", body: pngHeader(16384, 2442), want: Fault{manifest.Invalid, "too_many_pixels", ""}},
		{name: "largest there is", body: pngHeader(1<<31-1, 1<<31-1), want: Fault{manifest.Invalid, "", ""}},
		{name: "thousand scans", body: append(bytes.Clone(small), bytes.Repeat([]byte{0xff, 0xda}, 1000)...), want: Fault{manifest.Invalid, "too_many_scans", ""}},
		{name: "animated webp", body: []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x09\x00\x00\x09\x00\x00ANIM"), want: Fault{manifest.Invalid, "animated_webp", ""}},
		{name: "huge webp", body: []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\xff\x3f\x00\xff\x3f\x00ALPH"), want: Fault{manifest.Invalid, "too_many_pixels", ""}},
		// 234 KB that took 592 MB to decode, and its like.
		{name: "progressive jpeg", body: drawnJPEG(true, 6320, 6320, "", 0x11, 0x11, 0x11), want: Fault{manifest.Invalid, "too_many_bytes_decoded", ""}},
		{name: "rgb jpeg", body: drawnJPEG(false, 6000, 6000, "RGB", 0x11, 0x11, 0x11), want: Fault{manifest.Invalid, "too_many_bytes_decoded", ""}},
		{name: "png of 16 bits", body: pngHead(6320, 6320, 16, 6, false), want: Fault{manifest.Invalid, "too_many_bytes_decoded", ""}},
		{name: "progressive jpeg of 20 megapixels", body: drawnJPEG(true, 5200, 3900, "", 0x22, 0x11, 0x11), format: "jpeg", w: 5200, h: 3900},
		{name: "baseline jpeg of 39 megapixels", body: drawnJPEG(false, 6240, 6240, "", 0x11, 0x11, 0x11), format: "jpeg", w: 6240, h: 6240},
		{name: "png of 39 megapixels", body: pngHead(6240, 6240, 8, 6, false), format: "png", w: 6240, h: 6240},
		{name: "reddit's grey picture", body: padPNG(t, pngHeader(130, 60), 1048), want: Fault{manifest.Placeholder, "known_placeholder", ""}},
		{name: "of its size in pixels only", body: padPNG(t, pngHeader(130, 60), 1049), format: "png", w: 130, h: 60},
		{name: "imgur's removed.png", body: padPNG(t, pngHeader(161, 81), 503), want: Fault{manifest.Placeholder, "known_placeholder", ""}},
		{name: "imgur's region block", body: padPNG(t, pngHeader(336, 478), 34641), want: Fault{manifest.Failed, "region_block", ""}},
	}
	for _, tt := range tests {
		info, f := p.InspectImage(tt.body)
		if tt.format != "" {
			want := ImageInfo{tt.format, tt.w, tt.h, info.DecodedBytes} // held by TestDecodedBytes
			if f != nil || info != want || info.DecodedBytes <= 0 {
				t.Errorf("%s: InspectImage = %+v, %v; want %+v", tt.name, info, f, want)
			}
			continue
		}
		if f == nil || f.Outcome != tt.want.Outcome || tt.want.Reason != "" && f.Reason != tt.want.Reason || f.Detail == "" {
			t.Errorf("%s: InspectImage = %v, %+v; want %s/%s", tt.name, info, f, tt.want.Outcome, tt.want.Reason)
		}
	}
}

func TestDecodeImage(t *testing.T) {
	p := Default()
	for _, format := range []string{"jpeg", "png", "gif"} {
		img, err := DecodeImage(encode(t, format, drawn(40, 30)))
		if err != nil || img.Bounds() != image.Rect(0, 0, 40, 30) {
			t.Errorf("DecodeImage(%s) = %v, %v", format, img, err)
		}
	}
	if img, err := DecodeImage([]byte(webp1x1)); err != nil || img.Bounds() != image.Rect(0, 0, 1, 1) {
		t.Errorf("DecodeImage(webp) = %v, %v", img, err)
	}
	for name, body := range map[string][]byte{
		"nothing": nil, "html": []byte("<html>"), "cut png": pngHeader(10, 10), "cut webp": []byte(webp1x1[:30]),
		"cut jpeg": encode(t, "jpeg", drawn(40, 30))[:300],
	} {
		if img, err := DecodeImage(body); err == nil {
			t.Errorf("DecodeImage(%s) = %v, want an error", name, img.Bounds())
		}
	}
	// Only the first frame of an animation counts, in its place on the canvas.
	pal := color.Palette{color.Black, color.White}
	first := image.NewPaletted(image.Rect(2, 3, 6, 5), pal)
	for i := range first.Pix {
		first.Pix[i] = 1
	}
	var b bytes.Buffer
	err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{first, image.NewPaletted(image.Rect(0, 0, 10, 8), pal)},
		Delay: []int{1, 1}, Config: image.Config{ColorModel: pal, Width: 10, Height: 8}})
	if err != nil {
		t.Fatal(err)
	}
	img, err := DecodeImage(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	info, f := p.InspectImage(b.Bytes())
	if f != nil || img.Bounds() != image.Rect(0, 0, info.Width, info.Height) {
		t.Errorf("the first frame is %v on a canvas of %v, %v", img.Bounds(), info, f)
	}
	if r, _, _, a := img.At(2, 3).RGBA(); r != 0xffff || a != 0xffff {
		t.Errorf("a pixel of the frame = %v", img.At(2, 3))
	}
	if _, _, _, a := img.At(0, 0).RGBA(); a != 0 {
		t.Errorf("a pixel beside the frame = %v, want a clear one", img.At(0, 0))
	}
}

func TestGuardedRecovers(t *testing.T) {
	_, err := guarded(func() (int, error) { panic("index out of range") })
	if !errors.Is(err, errPanic) || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("guarded = %v", err)
	}
}

// FuzzInspectImage: no body panics, each has a fault with a reason or a size within the
// limits, and what is passed and decodes has the size that was named.
func FuzzInspectImage(f *testing.F) {
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
	p := Default()
	p.Images.MaxPixels, p.Images.MaxSide = 1<<16, 1<<12 // so that the fuzzer spends no time on large ones
	f.Fuzz(func(t *testing.T, body []byte) {
		info, fault := p.InspectImage(body)
		if fault != nil {
			if fault.Reason == "" || fault.Outcome == "" || info != (ImageInfo{}) {
				t.Errorf("fault %+v with %v", fault, info)
			}
			return
		}
		if info.DecodedBytes <= 0 || info.DecodedBytes > p.Images.MaxDecodedBytes() {
			t.Errorf("InspectImage let %+v pass", info)
		}
		if info.Width <= 0 || info.Height <= 0 || info.Width*info.Height > 1<<16 {
			t.Errorf("InspectImage let %v pass", info)
		}
		img, err := DecodeImage(body)
		if err == nil && (img.Bounds().Dx() != info.Width || img.Bounds().Dy() != info.Height) {
			t.Errorf("decoded %v, the header says %v", img.Bounds(), info)
		}
	})
}
