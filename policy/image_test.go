package policy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
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

// padPNG puts a chunk that decoders skip behind the header, so that the file has exactly length bytes.
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
	for _, tt := range []struct {
		name string
		body []byte
		want string // format and size, or the fault
	}{
		{"jpeg", small, "jpeg 40x30"},
		{"png", encode(t, "png", drawn(40, 30)), "png 40x30"},
		{"gif", encode(t, "gif", drawn(40, 30)), "gif 40x30"},
		{"webp", []byte(webp1x1), "webp 1x1"},
		{"widest allowed", pngHeader(16384, 2441), "png 16384x2441"},
		{"as long as allowed", append(bytes.Clone(small), make([]byte, 20<<20-len(small))...), "jpeg 40x30"},
		{"one byte too long", make([]byte, 20<<20+1), "invalid/too_large"},
		{"html after blanks", []byte(" \r\n<!DOCTYPE html><p>"), "invalid/not_an_image_html"},
		{"html after a byte order mark", []byte("\xef\xbb\xbf<HTML>"), "invalid/not_an_image_html"},
		{"svg", []byte("<?xml version='1.0'?><svg xmlns=''/>"), "invalid/not_an_image_svg"},
		{"xml", []byte("<?xml version='1.0'?><Error/>"), "invalid/not_an_image_xml"},
		{"json", []byte(`{"data":{"error":"over capacity"}}`), "invalid/not_an_image_json"},
		{"json, a list", []byte(`[1]`), "invalid/not_an_image_json"},
		{"gzip", []byte("\x1f\x8b\x08"), "invalid/not_an_image_gzip"},
		{"avif", []byte("\x00\x00\x00\x18ftypavif"), "invalid/not_an_image_avif"},
		{"heic", []byte("\x00\x00\x00\x18ftypheic"), "invalid/not_an_image_heic"},
		{"blanks", []byte("   \n"), "invalid/not_an_image"},
		{"jpeg cut in its header", small[:20], "invalid/bad_header"},
		{"png of no width", pngHeader(0, 5), "invalid/bad_header"},
		{"one column too many", pngHeader(16385, 1), "invalid/side_too_long"},
		{"too many pixels", pngHeader(16384, 2442), "invalid/too_many_pixels"},
		{"largest there is", pngHeader(1<<31-1, 1<<31-1), "invalid/bad_header"},
		{"huge webp", []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\xff\x3f\x00\xff\x3f\x00ALPH"),
			"invalid/too_many_pixels"},
		// 234 KB that took 592 MB to decode, and its like.
		{"progressive jpeg", drawnJPEG(true, 6320, 6320, "", 0x11, 0x11, 0x11), "invalid/too_many_bytes_decoded"},
		{"rgb jpeg", drawnJPEG(false, 6000, 6000, "RGB", 0x11, 0x11, 0x11), "invalid/too_many_bytes_decoded"},
		{"png of 16 bits", pngHead(6320, 6320, 16, 6, false), "invalid/too_many_bytes_decoded"},
		{"progressive, 20 megapixels", drawnJPEG(true, 5200, 3900, "", 0x22, 0x11, 0x11), "jpeg 5200x3900"},
		{"baseline, 39 megapixels", drawnJPEG(false, 6240, 6240, "", 0x11, 0x11, 0x11), "jpeg 6240x6240"},
		{"png of 39 megapixels", pngHead(6240, 6240, 8, 6, false), "png 6240x6240"},
		{"reddit's grey picture", padPNG(t, pngHeader(130, 60), 1048), "placeholder/known_placeholder"},
		{"of its size in pixels only", padPNG(t, pngHeader(130, 60), 1049), "png 130x60"},
		{"imgur's removed.png", padPNG(t, pngHeader(161, 81), 503), "placeholder/known_placeholder"},
		{"imgur's region block", padPNG(t, pngHeader(336, 478), 34641), "failed/region_block"},
	} {
		info, f := p.InspectImage(tt.body)
		got := fmt.Sprintf("%s %dx%d", info.Format, info.Width, info.Height)
		if f != nil {
			got = fmt.Sprintf("%s/%s", f.Outcome, f.Reason)
		}
		if got != tt.want || f != nil && f.Detail == "" || f == nil && info.DecodedBytes <= 0 {
			t.Errorf("%s: InspectImage = %+v, %v; want %s", tt.name, info, f, tt.want)
		}
	}
}

func TestDecodeImage(t *testing.T) {
	p := Default()
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
	if err == nil || !strings.Contains(err.Error(), "damaged data: index out of range") {
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
