package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// frames writes a GIF of n frames, each a pixel but the first, which fills the canvas.
func frames(t testing.TB, n, w, h int) []byte {
	t.Helper()
	pal := color.Palette{color.Black, color.White}
	g := &gif.GIF{Config: image.Config{ColorModel: pal, Width: w, Height: h}}
	for i := range n {
		frame := image.NewPaletted(image.Rect(0, 0, 1, 1), pal)
		if i == 0 {
			frame = image.NewPaletted(image.Rect(0, 0, w, h), pal)
			frame.Pix[0] = 1
		}
		g.Image, g.Delay = append(g.Image, frame), append(g.Delay, 1)
	}
	var b bytes.Buffer
	testkit.OK(t, gif.EncodeAll(&b, g))
	return b.Bytes()
}

// withChunks puts chunks behind a PNG's header.
func withChunks(b []byte, typed ...[]byte) []byte {
	const header = 8 + 12 + 13
	out := bytes.Clone(b[:header])
	for _, c := range typed {
		out = append(out, chunk(c)...)
	}
	return append(out, b[header:]...)
}

// zTXt is a text chunk of n bytes, packed.
func zTXt(n int) []byte {
	var b bytes.Buffer
	b.WriteString("zTXtComment\x00\x00")
	packed := zlib.NewWriter(&b)
	for range n >> 20 {
		packed.Write(make([]byte, 1<<20))
	}
	packed.Close()
	return b.Bytes()
}

// apng makes an animated PNG of one: the picture itself and one more frame, of its own size.
func apng(b []byte) []byte {
	control := func(sequence uint32, w, h uint32) []byte {
		c := binary.BigEndian.AppendUint32([]byte("fcTL"), sequence)
		c = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(c, w), h)
		return append(c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 10, 0, 0)
	}
	out := withChunks(b, append([]byte("acTL"), 0, 0, 0, 2, 0, 0, 0, 0), control(0, 40, 30))
	end := bytes.LastIndex(out, []byte("IEND")) - 4
	second := append(append(bytes.Clone(out[:end]), chunk(control(1, 65535, 65535))...),
		chunk(append([]byte("fdAT\x00\x00\x00\x02"), "not pixels"...))...)
	return append(second, out[end:]...)
}

// scans writes a progressive JPEG of n scans, all of them of the first coefficients.
func scans(n int) []byte {
	b := drawnJPEG(true, 40, 30, "", 0x11)
	at := bytes.Index(b, []byte("\xFF\xDA"))
	scan := b[at : len(b)-2]
	return append(append(bytes.Clone(b[:at]), bytes.Repeat(scan, n)...), "\xFF\xD9"...)
}

// spoiled flips a bit of the byte at i from the end.
func spoiled(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[len(b)-i] ^= 1
	return b
}

// jpegSegment puts a segment behind the start of a JPEG.
func jpegSegment(b []byte, marker byte, content string) []byte {
	return slices.Concat(b[:2], []byte(segment(marker, content)), b[2:])
}

// TestImageClasses takes each class of hostile or odd file through the gate: it is refused for a named reason, or
// cannot be decoded, or is decoded to the size that was named, within the memory that was estimated.
func TestImageClasses(t *testing.T) {
	const decoded, undecodable, large = "decoded", "undecodable", "large" // other wants are reasons
	small := drawn(40, 30)
	png, jpg, gif1 := encode(t, "png", small), encode(t, "jpeg", small), encode(t, "gif", small)
	zeroFrame := []byte("GIF89a\x28\x00\x1e\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x00\x00\x1e\x00\x00\x02\x01\x2c\x00;")
	// Its width is the start of a comment in JavaScript, "/*".
	script := append([]byte("GIF89a/*\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00"), ";*/=1;alert(1)"...)
	mp4 := "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"
	tests := []struct {
		name string
		body []byte
		want string
	}{
		{"bomb: 30 000 by 30 000 of 1 bit", pngHead(30000, 30000, 1, 0, false), "side_too_long"},
		{"bomb: 20 000 by 20 000 RGBA", pngHead(20000, 20000, 8, 6, false), "side_too_long"},
		{"bomb: 65 535 by 65 535", pngHead(65535, 65535, 1, 0, false), "side_too_long"},
		{"bomb: jpeg 65 535 wide", drawnJPEG(false, 65535, 1, "", 0x11), "side_too_long"},
		{"bomb: gif with a canvas of 65 535 by 65 535", []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), "side_too_long"},
		{"bomb: webp of 16 383 by 16 383",
			[]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\xfe\xbf\xff\x0f\x07\x10\x11\x11\x88\x88\xfe\x07\x00"),
			"too_many_pixels"},
		{"bomb: small canvas, large lossless webp",
			[]byte("RIFF\x2c\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x09\x00\x00VP8L\x0d\x00\x00\x00\x2f\xfe\xbf\xff\x0f\x07\x10\x11\x11\x88\x88\xfe\x07\x00"), undecodable},
		{"bomb: 16 bits, interlaced", pngHead(5000, 5000, 16, 6, true), "too_many_bytes_decoded"},
		{"bomb: 16 MB of packed text", withChunks(png, zTXt(16<<20)), decoded},
		{"bomb: scans", scans(1000), "too_many_scans"},
		{"100 scans", scans(100), decoded},
		{"gif of 1 000 frames", frames(t, 1000, 400, 300), decoded},
		{"gif of one frame", gif1, decoded},
		{"gif whose first frame has no pixels", zeroFrame, undecodable},
		{"gif of no frames", []byte("GIF89a\x28\x00\x1e\x00\x00\x00\x00;"), undecodable},
		{"gif whose frame leaves the canvas",
			[]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x02\x44\x01\x00;"), undecodable},
		{"apng", apng(png), decoded},
		{"animated webp",
			[]byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x09\x00\x00\x09\x00\x00ANIM"),
			"animated_webp"},
		{"animated webp that does not say so",
			[]byte("RIFF\x26\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x09\x00\x00ANIM\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00"), undecodable},
		{"png of no height", pngHead(5, 0, 8, 0, false), "bad_header"},
		{"jpeg of no height", drawnJPEG(false, 8, 0, "", 0x11), "bad_header"},
		{"jpeg of no width", drawnJPEG(false, 0, 8, "", 0x11), "bad_header"},
		{"gif of no height", []byte("GIF89a\x28\x00\x00\x00\x00\x00\x00"), "bad_header"},
		{"cmyk", drawnJPEG(false, 40, 30, "Adobe", 0x11, 0x11, 0x11, 0x11), decoded},
		{"cmyk that does not say how", drawnJPEG(false, 40, 30, "", 0x11, 0x11, 0x11, 0x11), undecodable},
		{"grey", drawnJPEG(false, 40, 30, "", 0x11), decoded},
		{"16 bits", drawnPNG(40, 30, 16, 6, false, false), decoded},
		{"16 bits, grey", drawnPNG(40, 30, 16, 0, false, false), decoded},
		{"palette", drawnPNG(40, 30, 8, 3, false, false), decoded},
		{"1 bit", drawnPNG(40, 30, 1, 0, false, false), decoded},
		{"interlaced", drawnPNG(40, 30, 8, 6, true, false), decoded},
		{"checksum of the header", spoiled(pngHead(40, 30, 8, 6, false), 1), "bad_header"},
		{"checksum of the pixels", spoiled(png, 13), undecodable},
		{"polyglot: gif and script", script, decoded},
		{"polyglot: jpeg and zip", append(bytes.Clone(jpg), "PK\x03\x04\x14\x00"...), decoded},
		{"polyglot: jpeg with a page in a comment", jpegSegment(jpg, 0xFE, "<html><script>alert(1)</script>"), decoded},
		{"polyglot: jpeg and pdf", append(bytes.Clone(jpg), "%PDF-1.7"...), decoded},
		{"polyglot: pdf first", append([]byte("%PDF-1.7\n"), jpg...), "not_an_image_pdf"},
		{"exif", jpegSegment(jpg, 0xE1, "Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x00"), decoded},
		{"svg", []byte("<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>"),
			"not_an_image_svg"},
		{"html", []byte("<!DOCTYPE html><title>Blocked</title>"), "not_an_image_html"},
		{"xml with an entity",
			[]byte("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>"),
			"not_an_image_xml"},
		{"pdf", []byte("%PDF-1.7\n"), "not_an_image_pdf"},
		{"zip", []byte("PK\x03\x04\x14\x00"), "not_an_image_zip"},
		{"mp4", []byte(mp4), "not_an_image_mp4"},
		{"quicktime", []byte(strings.Replace(mp4, "mp42", "qt  ", 1)), "not_an_image_mp4"},
		{"webm", []byte("\x1aE\xdf\xa3\x01"), "not_an_image_webm"},
		{"ico", []byte("\x00\x00\x01\x00\x01\x00"), "not_an_image_ico"},
		{"tiff", []byte("II*\x00\x08\x00"), "not_an_image_tiff"},
		{"tiff, the other way round", []byte("MM\x00*\x00\x00"), "not_an_image_tiff"},
		{"bmp", []byte("BM\x36\x00"), "not_an_image_bmp"},
		{"list of paths", []byte("/etc/passwd\n/etc/shadow\n"), "not_an_image"},
		{"list of URLs", []byte("https://example.org/a.png\nfile:///etc/passwd\n"), "not_an_image"},
		{"webp", []byte(webp1x1), decoded},
		{"cut webp", []byte(webp1x1[:30]), undecodable},
		{"widest allowed", pngHeader(16384, 2441), large},
		{"one column too many", pngHeader(16385, 1), "side_too_long"},
		{"too many pixels", pngHeader(16384, 2442), "too_many_pixels"},
		{"largest there is", pngHeader(1<<31-1, 1<<31-1), "bad_header"},
		{"huge webp with alpha",
			[]byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\xff\x3f\x00\xff\x3f\x00ALPH"),
			"too_many_pixels"},
		// 234 KB that took 592 MB to decode, and its like.
		{"progressive jpeg", drawnJPEG(true, 6320, 6320, "", 0x11, 0x11, 0x11), "too_many_bytes_decoded"},
		{"rgb jpeg", drawnJPEG(false, 6000, 6000, "RGB", 0x11, 0x11, 0x11), "too_many_bytes_decoded"},
		{"png of 16 bits", pngHead(6320, 6320, 16, 6, false), "too_many_bytes_decoded"},
		{"progressive, 20 megapixels", drawnJPEG(true, 5200, 3900, "", 0x22, 0x11, 0x11), large},
		{"baseline, 39 megapixels", drawnJPEG(false, 6240, 6240, "", 0x11, 0x11, 0x11), large},
		{"png of 40 megapixels", pngHead(8000, 5000, 8, 6, false), large},
		{"20 MiB", append(bytes.Clone(jpg), make([]byte, 20<<20-len(jpg))...), decoded},
		{"html after blanks", []byte(" \r\n<!DOCTYPE html><p>"), "not_an_image_html"},
		{"html after a byte order mark", []byte("\xef\xbb\xbf<HTML>"), "not_an_image_html"},
		{"svg after a declaration", []byte("<?xml version='1.0'?><svg xmlns=''/>"), "not_an_image_svg"},
		{"json", []byte(`{"data":{"error":"over capacity"}}`), "not_an_image_json"},
		{"json, a list", []byte(`[1]`), "not_an_image_json"},
		{"gzip", []byte("\x1f\x8b\x08"), "not_an_image_gzip"},
		{"jxl", []byte("\x00\x00\x00\x0cJXL \r\n\x87\n"), "not_an_image_jxl"},
		{"jxl, bare", []byte("\xff\x0a\x7a"), "not_an_image_jxl"},
		{"jp2", []byte("\x00\x00\x00\x0cjP  \r\n\x87\n"), "not_an_image_jp2"},
		{"jp2, bare", []byte("\xff\x4f\xff\x51\x00"), "not_an_image_jp2"},
		{"avif", []byte("\x00\x00\x00\x18ftypavif"), "not_an_image_avif"},
		{"heic", []byte("\x00\x00\x00\x18ftypheic"), "not_an_image_heic"},
		{"blanks", []byte("   \n"), "not_an_image"},
		{"webp cut before its flags", []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"), "bad_header"},
		{"jpeg cut in its header", jpg[:20], "bad_header"},
		{"png of no width", pngHeader(0, 5), "bad_header"},
		{"no byte", nil, "empty_body"},
		{"20 MiB and a byte", append(bytes.Clone(jpg), make([]byte, 20<<20+1-len(jpg))...), "too_large"},
	}
	for _, tt := range tests {
		if got := classify(t, tt.name, tt.body); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// classify takes a body through the gate and holds what is promised of each way out of it.
func classify(t *testing.T, name string, body []byte) string {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	info, f := Inspect(body, usual)
	if f != nil {
		if f.Detail == "" || info.DecodedBytes != 0 {
			t.Errorf("%s: %v and %+v, want a detail and no estimate", name, f, info)
		}
		return f.Reason
	}
	if info.Width*info.Height > 4<<20 {
		return "large" // decoding it would take the test seconds
	}
	img, err := Decode(body)
	runtime.ReadMemStats(&after)
	const buffers = 400 << 10 // of the readers, for the header and for the pixels
	if got := int64(after.TotalAlloc - before.TotalAlloc); got > info.DecodedBytes+buffers {
		t.Errorf("%s: %d bytes allocated, %d announced", name, got, info.DecodedBytes)
	}
	if err != nil {
		return "undecodable"
	}
	if b := img.Bounds(); b != image.Rect(0, 0, info.Width, info.Height) || info.Format != Format(body) ||
		info.DecodedBytes <= 0 {
		t.Errorf("%s: decoded to %v, the header says %+v", name, b, info)
	}
	return "decoded"
}

// TestCutImages: a file that ends early, wherever it does, is refused or cannot be decoded,
// and half a picture never passes for one.
func TestCutImages(t *testing.T) {
	whole := map[string][]byte{"webp": []byte(webp1x1)}
	for _, format := range []string{"png", "jpeg", "gif"} {
		whole[format] = encode(t, format, drawn(40, 30))
	}
	for format, body := range whole {
		for tenth := range 10 {
			cut := body[:len(body)*tenth/10]
			if got := classify(t, fmt.Sprintf("%s cut at %d tenths", format, tenth), cut); got == "decoded" {
				t.Errorf("%s cut to %d of %d bytes is decoded", format, len(cut), len(body))
			}
		}
	}
}

// TestFirstFrame: of an animation, the frame that is shown first is the picture, in its place on the canvas.
func TestFirstFrame(t *testing.T) {
	still := encode(t, "png", drawn(40, 30))
	pal := color.Palette{color.Black, color.White}
	part := image.NewPaletted(image.Rect(2, 3, 6, 5), pal)
	copy(part.Pix, "\x01\x01\x01\x01\x01\x01\x01\x01")
	var b bytes.Buffer
	err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{part, image.NewPaletted(image.Rect(0, 0, 10, 8), pal)},
		Delay: []int{1, 1}, Config: image.Config{ColorModel: pal, Width: 10, Height: 8}})
	testkit.OK(t, err)
	for _, tt := range []struct {
		name string
		body []byte
		at   image.Point
		want color.NRGBA
	}{
		{"animated png, a corner", apng(still), image.Pt(39, 29), drawn(40, 30).At(39, 29).(color.NRGBA)},
		{"animated png, inside", apng(still), image.Pt(7, 11), drawn(40, 30).At(7, 11).(color.NRGBA)},
		{"gif of 100 frames, where only the first is white", frames(t, 100, 40, 30), image.Pt(0, 0),
			color.NRGBA{255, 255, 255, 255}},
		{"gif, part of the canvas", b.Bytes(), image.Pt(2, 3), color.NRGBA{255, 255, 255, 255}},
		{"gif, beside that part", b.Bytes(), image.Pt(0, 0), color.NRGBA{}},
	} {
		img, err := Decode(tt.body)
		testkit.OK(t, err)
		if got := color.NRGBAModel.Convert(img.At(tt.at.X, tt.at.Y)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if _, err := Decode([]byte("<html>")); err == nil || !strings.Contains(err.Error(), "the bytes are html, not JPEG") {
		t.Errorf("Decode of a page: %v", err)
	}
}
