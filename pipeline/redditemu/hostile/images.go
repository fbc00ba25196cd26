package hostile

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

// Images returns the image files of the corpus. trap is the address, HOST:PORT, of a
// listener that no client may connect to: some of the files name it. Whatever a file hides beside
// its pixels holds CanaryMetadata.
func Images(trap string) []Case {
	return slices.Concat(bombs(), sizes(), damaged(), truncated(), unusual(), strangers(trap), polyglots(), loaded())
}

// whole makes a case of bytes that are cheap to make.
func whole(name string, o manifest.Outcome, r manifest.Reason, body func() []byte) Case {
	return Case{Name: name, Outcome: o, Reason: r, Write: func(w io.Writer) error {
		_, err := w.Write(body())
		return err
	}}
}

func invalid(name string, r manifest.Reason, body func() []byte) Case {
	return whole(name, manifest.Invalid, r, body)
}

// usable makes a case of a picture that is odd and sound. n sets its picture apart.
func usable(name string, body func() []byte) Case {
	return whole(name, manifest.Kept, textless, body)
}

// bombs are small files that are large when decoded.
func bombs() []Case {
	const grey, rgba = 0, 6
	return []Case{
		invalid("bomb_png_30000_1_bit", "side_too_long", func() []byte { return flatPNG(30000, 30000, 1, grey, 0) }),
		invalid("bomb_png_20000_rgba", "side_too_long", func() []byte { return flatPNG(20000, 20000, 8, rgba, 0) }),
		invalid("bomb_png_65535_1_bit", "side_too_long", func() []byte { return flatPNG(65535, 65535, 1, grey, 0) }),
		invalid("bomb_png_10000_grey", "too_many_pixels", func() []byte { return flatPNG(10000, 10000, 8, grey, 0) }),
		invalid("bomb_png_6000_interlaced", "too_many_bytes_decoded",
			func() []byte { return flatPNG(6000, 6000, 8, rgba, 1) }),
		invalid("bomb_png_6000_16_bit", "too_many_bytes_decoded",
			func() []byte { return flatPNG(6000, 6000, 16, rgba, 0) }),
		invalid("bomb_webp_16383", "too_many_pixels", func() []byte { return flatWebP(16383, 16383, 0) }),
		invalid("bomb_webp_6300", "too_many_bytes_decoded", func() []byte { return flatWebP(6300, 6300, 0) }),
		invalid("bomb_gif_65535", "side_too_long", func() []byte { return gifFrames(65535, 65535, 1, 0) }),
		invalid("bomb_gif_6000_canvas", "too_many_bytes_decoded", func() []byte { return gifFrames(6000, 6000, 1, 0) }),
		invalid("bomb_jpeg_65500", "side_too_long",
			func() []byte { return rawJPEG(jpegPlan{w: 65500, h: 65500, components: 1, empty: true}) }),
		invalid("bomb_jpeg_6000_progressive", "too_many_bytes_decoded", func() []byte {
			return rawJPEG(jpegPlan{w: 6000, h: 6000, components: 3, progressive: true, empty: true})
		}),
		invalid("jpeg_1000_scans", "too_many_scans", func() []byte {
			return rawJPEG(jpegPlan{w: 64, h: 64, components: 3, progressive: true, scans: 1000})
		}),
		usable("gif_10000_frames", func() []byte { return gifFrames(120, 90, 10000, 11) }),
		usable("largest_allowed_webp", func() []byte { return flatWebP(5000, 5000, 1) }),
		usable("png_small_ztxt_bomb", func() []byte {
			return redditemu.InsertPNG(picturePNG(12),
				redditemu.PNGChunk("zTXt", append([]byte("Comment\x00\x00"), zlibZeros(100<<20)...)))
		}),
		usable("png_small_itxt_bomb", func() []byte {
			return redditemu.InsertPNG(picturePNG(13),
				redditemu.PNGChunk("iTXt", append([]byte("Comment\x00\x01\x00\x00\x00"), zlibZeros(100<<20)...)))
		}),
		usable("png_small_iccp_bomb", func() []byte {
			return redditemu.InsertPNG(picturePNG(14),
				redditemu.PNGChunk("iCCP", append([]byte("profile\x00\x00"), zlibZeros(100<<20)...)))
		}),
	}
}

// sizes are files whose length or dimensions are at or past a limit.
func sizes() []Case {
	const limit = 20 << 20
	return []Case{
		invalid("no_bytes", "empty_body", func() []byte { return nil }),
		{Name: "20_mib_and_1", Outcome: manifest.Invalid, Reason: "too_large", Write: paddedPNG(15, limit+1)},
		{Name: "20_mib", Outcome: manifest.Kept, Reason: textless, Write: paddedPNG(16, limit)},
		{Name: "png_100_mb_ztxt", Outcome: manifest.Invalid, Reason: "too_large", Write: paddedPNG(17, 100<<20)},
		invalid("png_zero_width", "bad_header", func() []byte { return flatPNG(0, 10, 8, 0, 0) }),
		invalid("png_zero_by_zero", "bad_header", func() []byte { return flatPNG(0, 0, 8, 0, 0) }),
		invalid("png_negative_width", "bad_header", func() []byte { return flatPNG(1<<31+5, 10, 8, 0, 0) }),
		invalid("gif_zero_by_zero", "bad_header", func() []byte { return gifFrames(0, 0, 1, 0) }),
		invalid("jpeg_zero_width", "bad_header", func() []byte {
			return rawJPEG(jpegPlan{w: 0, h: 16, components: 1,
				empty: true})
		}),
		invalid("jpeg_zero_height", "bad_header",
			func() []byte { return rawJPEG(jpegPlan{w: 16, h: 0, components: 1, empty: true}) }),
		invalid("webp_zero_by_zero", "bad_header", func() []byte {
			return riffFile("VP8 ", []byte{0x10, 0, 0, 0x9d, 0x01, 0x2a, 0, 0, 0, 0, 0, 0})
		}),
	}
}

// damaged are files with a wrong byte or a broken structure.
func damaged() []Case {
	flip := func(body []byte, at int) []byte {
		b := bytes.Clone(body)
		b[at] ^= 0xff
		return b
	}
	chunkEnd := func(body []byte, kind string) int { // the last byte of a chunk's checksum
		at := bytes.Index(body, []byte(kind))
		return at + 4 + int(binary.BigEndian.Uint32(body[at-4:])) + 3
	}
	flipCRC := func(kind string) func() []byte {
		return func() []byte { b := picturePNG(20); return flip(b, chunkEnd(b, kind)) }
	}
	return []Case{
		invalid("png_crc_of_header", "bad_header", flipCRC("IHDR")),
		invalid("png_crc_of_pixels", "bad_container", flipCRC("IDAT")),
		invalid("png_crc_of_end", "bad_container", flipCRC("IEND")),
		invalid("png_crc_of_text", "bad_container", func() []byte {
			b := redditemu.InsertPNG(picturePNG(21), redditemu.PNGChunk("tEXt", []byte("Author\x00"+CanaryMetadata)))
			return flip(b, chunkEnd(b, "tEXt"))
		}),
		invalid("png_deflate_broken", "undecodable", func() []byte {
			return pngOf(64, 64, 8, 0, 0, []byte("\x78\x9c this is not a deflate stream"))
		}),
		invalid("png_too_few_rows", "undecodable", func() []byte { return pngOf(64, 64, 8, 0, 0, zlibZeros(65*10)) }),
		invalid("png_chunk_of_4_gb", "bad_container", func() []byte {
			b := picturePNG(22)
			binary.BigEndian.PutUint32(b[33:], math.MaxUint32)
			return b
		}),
		invalid("jpeg_no_tables", "undecodable", func() []byte {
			return rawJPEG(jpegPlan{w: 64, h: 64, components: 3,
				noTables: true})
		}),
		invalid("gif_code_size_99", "undecodable", func() []byte {
			return bytes.Replace(gifFrames(10, 10, 1, 0), []byte("\x02\x02\x44\x01\x00"), []byte("\x63\x02\x44\x01\x00"), 1)
		}),
		invalid("webp_transform_bomb", "undecodable",
			func() []byte { return riffFile("VP8L", []byte{0x2f, 0x3f, 0xc0, 0x0f, 0x00, 0xff, 0xff, 0xff}) }),
	}
}

// truncated are sound files of each format, cut at ten places.
func truncated() []Case {
	formats := []struct {
		name string
		body func() []byte
		// How many of the cuts leave no magic bytes, and how many end before the header does.
		magic, header int
	}{
		{"jpeg", func() []byte { return pictureJPEG(30) }, 2, 5},
		{"png", func() []byte { return picturePNG(31) }, 1, 3},
		{"gif", func() []byte { return pictureGIF(32) }, 3, 5},
		{"webp", func() []byte { return pictureWebP(33) }, 1, 2},
	}
	var all []Case
	for _, f := range formats {
		for i, share := range []float64{0, 0.0005, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.95, 1} {
			reason := manifest.Reason("bad_container")
			switch {
			case i < f.magic:
				reason = "not_an_image"
			case i < f.header:
				reason = "bad_header"
			}
			all = append(all, invalid(fmt.Sprintf("%s_cut_%d", f.name, i), reason, func() []byte {
				b := f.body()
				return b[:max(2, int(float64(len(b)-3)*share))]
			}))
		}
	}
	return all
}

// unusual are sound pictures in forms that decoders of other programs have failed on.
func unusual() []Case {
	return []Case{
		invalid("jpeg_cmyk_without_adobe", "undecodable",
			func() []byte { return rawJPEG(jpegPlan{w: 160, h: 120, components: 4, seed: 40}) }),
		usable("jpeg_cmyk_adobe", func() []byte {
			return rawJPEG(jpegPlan{w: 160, h: 120, components: 4, adobe: 0, hasAdobe: true, seed: 41})
		}),
		usable("jpeg_ycck", func() []byte {
			return rawJPEG(jpegPlan{w: 160, h: 120, components: 4, adobe: 2, hasAdobe: true, seed: 42})
		}),
		usable("jpeg_grey", func() []byte { return rawJPEG(jpegPlan{w: 160, h: 120, components: 1, seed: 43}) }),
		usable("png_16_bit", func() []byte { return encodePNG(sixteenBit(redditemu.Photo(44, 120, 90))) }),
		usable("png_palette", func() []byte { return encodePNG(paletted(redditemu.Photo(45, 120, 90))) }),
		usable("png_transparent", func() []byte {
			img := image.NewNRGBA(image.Rect(0, 0, 120, 90))
			for i, src := 0, redditemu.Photo(46, 120, 90); i < len(img.Pix); i += 4 {
				copy(img.Pix[i:i+3], src.Pix[i:i+3])
				img.Pix[i+3] = byte(i / 170)
			}
			return encodePNG(img)
		}),
		usable("png_animated", animatedPNG),
		usable("gif_frame_off_canvas_centre", func() []byte { return gifFrames(160, 120, 2, 47) }),
		usable("one_pixel_png", func() []byte { return encodePNG(image.NewGray(image.Rect(0, 0, 1, 1))) }),
		invalid("webp_animated", "animated_webp", animatedWebP),
	}
}

// strangers are files that are not a picture of the four formats.
func strangers(trap string) []Case {
	text := func(s string) func() []byte { return func() []byte { return []byte(s) } }
	is := func(name, kind string, body func() []byte) Case {
		return invalid(name, manifest.Reason(strings.TrimSuffix("not_an_image_"+kind, "_")), body)
	}
	return []Case{
		is("svg", "svg",
			text(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><image href="http://`+trap+`/trap.png"/></svg>`)),
		is("svg_bare", "svg", text(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)),
		is("html", "html", text(`<!doctype html><title>x</title><img src="http://`+trap+`/trap.png">`)),
		is("xml", "xml", text(`<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>`)),
		is("pdf", "pdf", text("%PDF-1.7\n1 0 obj\n<</Type/Catalog>>\nendobj\n")),
		is("zip", "zip", zipFile),
		is("gzip", "gzip", text("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00")),
		is("json", "json", text(`{"message": "Not Found", "error": 404}`)),
		is("mp4", "mp4", text("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom\x00\x00\x00\x08mdat")),
		is("avif", "avif", text("\x00\x00\x00\x18ftypavif\x00\x00\x00\x00avifmif1")),
		is("heic", "heic", text("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00heicmif1")),
		is("webm", "webm", text("\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01")),
		is("ico", "ico", text("\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00\x01\x00\x20\x00\x68\x04\x00\x00\x16\x00\x00\x00")),
		is("tiff_little", "tiff", text("II*\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00")),
		is("tiff_big", "tiff", text("MM\x00*\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00")),
		is("bmp", "bmp",
			text("BM\x3a\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x18\x00")),
		is("path_list", "", text("/etc/passwd\n/etc/hostname\n/proc/self/environ\n")),
		is("url_list", "", text("http://"+trap+"/trap.png\nhttps://169.254.169.254/latest/meta-data/\n")),
		is("postscript", "", text("%!PS-Adobe-3.0\n(/etc/passwd) (r) file\n")),
		is("pnm", "", text("P6\n99999 99999\n255\n")),
		is("nul_bytes", "", func() []byte { return make([]byte, 4096) }),
		is("noise", "", func() []byte {
			noise := [32]byte{1}
			var b []byte
			for range 128 {
				noise = sha256.Sum256(noise[:])
				b = append(b, noise[:]...)
			}
			return append([]byte{0}, b...)
		}),
	}
}

// polyglots are sound pictures that another program would take for something else.
func polyglots() []Case {
	payload := func(s string) string { return s + "/* " + CanaryMetadata + " */" }
	return []Case{
		usable("gif_and_javascript", func() []byte {
			b := gifFrames(int('*')<<8|int('/'), 90, 1, 50) // the width spells the start of a comment
			at := 13 + 3<<(b[10]&7+1)
			text := payload("*/=1;alert(1);")
			comment := append([]byte{0x21, 0xfe, byte(len(text))}, text+"\x00"...)
			return slices.Concat(b[:at], comment, b[at:])
		}),
		usable("jpeg_and_zip", func() []byte { return append(pictureJPEG(51), zipFile()...) }),
		usable("png_and_zip", func() []byte { return append(picturePNG(52), zipFile()...) }),
		usable("png_and_php", func() []byte {
			return redditemu.InsertPNG(picturePNG(53),
				redditemu.PNGChunk("tEXt", []byte("Comment\x00"+payload("<?php system($_GET[0]); ?>"))))
		}),
		usable("webp_and_html", func() []byte { return append(pictureWebP(54), payload("<script>alert(1)</script>")...) }),
	}
}

// loaded are pictures full of metadata.
func loaded() []Case {
	return []Case{
		usable("jpeg_exif_gps_xmp_iptc", planted(60, "jpeg")),
		usable("png_exif_gps_xmp", planted(61, "png")),
		usable("gif_xmp_comment", planted(62, "gif")),
		usable("webp_exif_xmp", planted(63, "webp")),
	}
}

// planted makes a picture with metadata of all kinds.
func planted(seed uint64, format string) func() []byte {
	return func() []byte {
		// a style and formats that it has
		drawn, _ := redditemu.Draw(redditemu.Spec{Seed: seed, Style: redditemu.StyleBare, Format: format})
		return Plant(drawn.Body)
	}
}

// The plain pictures: small photographs, one for each seed.

func pictureJPEG(seed uint64) []byte {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, redditemu.Photo(seed, 160, 120), nil) // a bytes.Buffer takes everything
	return b.Bytes()
}

func picturePNG(seed uint64) []byte { return encodePNG(redditemu.Photo(seed, 120, 90)) }

func pictureGIF(seed uint64) []byte {
	var b bytes.Buffer
	_ = gif.Encode(&b, redditemu.Photo(seed, 120, 90), nil) // a bytes.Buffer takes everything
	return b.Bytes()
}

func pictureWebP(seed uint64) []byte {
	return redditemu.EncodeWebP(redditemu.Photo(seed, 120, 90))
}

func encodePNG(img image.Image) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a bytes.Buffer takes everything
	return b.Bytes()
}

func sixteenBit(src *image.RGBA) image.Image {
	dst := image.NewRGBA64(src.Rect)
	for y := range src.Rect.Dy() {
		for x := range src.Rect.Dx() {
			dst.Set(x, y, src.At(x, y))
		}
	}
	return dst
}

func paletted(src *image.RGBA) *image.Paletted {
	var greys color.Palette
	for i := range 64 {
		greys = append(greys, color.Gray{Y: byte(i * 4)})
	}
	dst := image.NewPaletted(src.Rect, greys)
	for y := range src.Rect.Dy() {
		for x := range src.Rect.Dx() {
			dst.Set(x, y, src.At(x, y))
		}
	}
	return dst
}

// animatedPNG is a picture with the chunks of an animation of two frames.
func animatedPNG() []byte {
	b := picturePNG(48)
	control := make([]byte, 26)
	binary.BigEndian.PutUint32(control[4:], 120)
	binary.BigEndian.PutUint32(control[8:], 90)
	b = redditemu.InsertPNG(b, redditemu.PNGChunk("acTL", []byte{0, 0, 0, 2, 0, 0, 0, 0}),
		redditemu.PNGChunk("fcTL", control))
	end := len(b) - 12
	frame := append([]byte{0, 0, 0, 2}, zlibZeros(90*(120*3+1))...)
	control[3] = 1
	return slices.Concat(b[:end], redditemu.PNGChunk("fcTL", control), redditemu.PNGChunk("fdAT", frame), b[end:])
}

// animatedWebP is an animation of two frames of one colour each.
func animatedWebP() []byte {
	out := []byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x0f\x00\x00\x0f\x00\x00ANIM\x06\x00\x00\x00\xff\xff\xff\xff\x00\x00")
	for i := range uint64(2) {
		frame := append(make([]byte, 6), 15, 0, 0, 15, 0, 0, 100, 0, 0, 0)
		frame = append(frame, flatWebP(16, 16, i)[12:]...)
		out = append(append(out, "ANMF"...), binary.LittleEndian.AppendUint32(nil, uint32(len(frame)))...)
		out = append(out, frame...)
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}

func zipFile() []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"../../escape.txt", "payload.txt"} {
		w, _ := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		_, _ = io.WriteString(w, CanaryMetadata) // into memory
	}
	_ = z.Close()
	return b.Bytes()
}
