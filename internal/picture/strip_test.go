package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

const canary = "CANARY 52.5200N 13.4050E"

// pictures holds one small file per format and kind, without metadata.
func pictures(t testing.TB) map[string][]byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 24, 17))
	for y := range 17 {
		for x := range 24 {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x * 10), uint8(y * 15), uint8(x * y), uint8(255 - x)})
		}
	}
	paletted := image.NewPaletted(m.Rect, color.Palette{color.Black, color.White, color.NRGBA{200, 0, 0, 255},
		color.Transparent})
	draw.Draw(paletted, m.Rect, m, image.Point{}, draw.Src)
	grey := image.NewGray16(m.Rect)
	draw.Draw(grey, m.Rect, m, image.Point{}, draw.Src)
	var jpg, jpgGrey, pngAlpha, pngPalette, pngGrey, still, moving bytes.Buffer
	for _, err := range []error{
		jpeg.Encode(&jpg, m, nil), jpeg.Encode(&jpgGrey, grey, nil),
		png.Encode(&pngAlpha, m), png.Encode(&pngPalette, paletted), png.Encode(&pngGrey, grey),
		gif.Encode(&still, m, nil),
		gif.EncodeAll(&moving, &gif.GIF{Image: []*image.Paletted{paletted, paletted}, Delay: []int{5, 7}, LoopCount: 3,
			Disposal: []byte{gif.DisposalNone, gif.DisposalBackground}}),
	} {
		testkit.OK(t, err)
	}
	all := map[string][]byte{"jpeg/colour": jpg.Bytes(), "jpeg/grey": jpgGrey.Bytes(), "png/alpha": pngAlpha.Bytes(),
		"png/palette": pngPalette.Bytes(), "png/grey16": pngGrey.Bytes(), "gif/still": still.Bytes(),
		"gif/moving": moving.Bytes()}
	// The pictures of one pixel by which browsers are asked what they support: Go has no encoder.
	for name, text := range map[string]string{
		"webp/lossy":    "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
		"webp/lossless": "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==",
		"webp/alpha":    "UklGRkoAAABXRUJQVlA4WAoAAAAQAAAAAAAAAAAAQUxQSAwAAAARBxAR/Q9ERP8DAABWUDggGAAAABQBAJ0BKgEAAQAAAP4AAA3AAP7mtQAAAA==",
	} {
		b, err := base64.StdEncoding.DecodeString(text)
		testkit.OK(t, err)
		all[name] = b
	}
	return all
}

func segment(marker byte, data string) string {
	return string([]byte{0xFF, marker, byte((len(data) + 2) >> 8), byte(len(data) + 2)}) + data
}

// exif makes an EXIF segment's data with an orientation and a GPS text.
func exif(order binary.AppendByteOrder, orientation uint16) string {
	b := []byte("Exif\x00\x00MM\x00\x2a")
	if order.String() == "LittleEndian" {
		b = []byte("Exif\x00\x00II\x2a\x00")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	for _, field := range []struct{ tag, kind, value uint16 }{{0x010F, 2, 0}, {0x0112, 3, orientation}} {
		b = order.AppendUint16(order.AppendUint16(b, field.tag), field.kind)
		b = order.AppendUint32(b, 1)
		b = order.AppendUint16(order.AppendUint16(b, field.value), 0)
	}
	return string(order.AppendUint32(b, 0)) + canary
}

func pngChunk(kind, data string) string { return string(chunk([]byte(kind + data))) }

func riff(kind, data string) string {
	return kind + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + data + strings.Repeat("\x00",
		len(data)%2)
}

// plant puts metadata with the canary into every place of a file where its format allows it.
func plant(name string, b []byte) []byte {
	format, kind, _ := strings.Cut(name, "/")
	s := string(b)
	switch format {
	case "jpeg":
		extra := segment(0xE1, exif(binary.BigEndian, 6)) + segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00"+canary) +
			segment(0xE2, "ICC_PROFILE\x00\x01\x01"+canary) + segment(0xE2, "MPF\x00"+canary) + segment(0xED,
			"Photoshop 3.0\x008BIM"+canary) +
			segment(0xE0, "JFIF\x00\x01\x02\x01\x00\x48\x00\x48\x02\x02"+canary[:12]) + segment(0xEF,
			canary) + segment(0xFE, canary)
		cut := strings.Index(s, "\xFF\xDA")
		return []byte(s[:2] + extra + s[2:cut] + segment(0xFE, canary) + "stray" + canary + s[cut:] + "PK\x03\x04" + canary)
	case "png":
		extra := pngChunk("tEXt", "Author\x00"+canary) + pngChunk("zTXt", "A\x00\x00"+canary) + pngChunk("iTXt",
			"A\x00\x00\x00\x00\x00"+canary) +
			pngChunk("eXIf", exif(binary.BigEndian, 1)) + pngChunk("tIME", canary[:7]) + pngChunk("iCCP",
			"p\x00\x00"+canary) + pngChunk("sPLT", canary) +
			pngChunk("prVt", canary) + pngChunk("gAMA", canary) + pngChunk("gAMA", "\x00\x00\xb1\x8f")
		cut := strings.Index(s, "IDAT") - 4
		return []byte(s[:33] + extra + s[33:cut] + s[cut:len(s)-12] + pngChunk("tEXt", canary) + pngChunk("IDAT",
			canary) + s[len(s)-12:] + canary)
	case "gif":
		block := string(rune(len(canary))) + canary + "\x00"
		extra := "\x21\xFE" + block + "\x21\xFF\x0bXMP DataXMP" + block + "\x21\xFF\x0bNETSCAPE2.0\x03\x01\x03\x00" + block +
			"\x21\x01\x0c" + canary[:12] + block
		at := 13 + colourTable(b[10])
		return []byte(s[:at] + extra + s[at:len(s)-1] + extra + "\x3B<script>" + canary)
	case "webp":
		extra := riff("ICCP", canary) + riff("EXIF", canary+"!") + riff("XMP ", canary) + riff("junk", canary)
		body := s[12:]
		if kind == "lossy" || kind == "lossless" {
			body = riff("VP8X", "\x2c\xff\xff\xff\x00\x00\x00\x00\x00\x00") + body
		} else { // its own extended header: set the flags for metadata
			body = body[:8] + string([]byte{body[8] | 0x2c, 0xff}) + body[10:]
		}
		body = body[:18] + extra + body[18:] + extra
		return []byte(s[:4] + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)+4))) + "WEBP" + body + canary)
	}
	panic(format)
}

// pixels decodes a file and lists everything that it shows.
func pixels(format string, b []byte) (string, error) {
	if format != "gif" {
		m, err := Decode(b)
		return fmt.Sprintf("%T %v", m, m), err
	}
	g, err := gif.DecodeAll(bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	text := fmt.Sprint(g.Delay, g.LoopCount, g.Disposal, g.BackgroundIndex, g.Config.Width, g.Config.Height)
	for _, m := range g.Image {
		text += fmt.Sprint(m.Rect, m.Pix, m.Palette)
	}
	return text, nil
}

func TestStrip(t *testing.T) {
	for name, plain := range pictures(t) {
		t.Run(name, func(t *testing.T) {
			format, kind, _ := strings.Cut(name, "/")
			dirty := plant(name, plain)
			if bytes.Count(dirty, []byte(canary)) < 4 {
				t.Fatal("no metadata was planted")
			}
			clean, err := Strip(dirty, format)
			testkit.OK(t, err)
			for _, part := range []string{canary, canary[:12], canary[:7], "52.52", "stray", "PK\x03\x04", "XMP", "script"} {
				if bytes.Contains(clean, []byte(part)) {
					t.Errorf("%q is left", part)
				}
			}
			if format == "png" && !bytes.Contains(clean, []byte("gAMA\x00\x00\xb1\x8f")) {
				t.Error("the gamma is gone")
			}
			for what, b := range map[string][]byte{"what it returned": clean, "a plain file": plain} {
				if again, err := Strip(b, format); err != nil || !bytes.Equal(again, b) {
					t.Errorf("Strip of %s: %v, %d bytes, want the same %d", what, err, len(again), len(b))
				}
			}
			for state, b := range map[string][]byte{"dirty": dirty, "plain": plain} {
				want, err := pixels(format, b)
				if err != nil {
					t.Fatalf("%s: %v", state, err)
				}
				if kind == "still" {
					want = strings.Replace(want, "[0] -1 ", "[0] 3 ", 1) // the planted loop count
				}
				got, err := pixels(format, clean)
				if err != nil || got != want {
					t.Errorf("pixels differ from the %s file's: %v\n%.200s\n%.200s", state, err, got, want)
				}
			}
		})
	}
}

func TestStripKeepsOnlyOrientation(t *testing.T) {
	plain := pictures(t)["jpeg/colour"]
	for _, tt := range []struct {
		name, data string
		want       int
	}{
		{"big endian", exif(binary.BigEndian, 6), 6},
		{"little endian", exif(binary.LittleEndian, 8), 8},
		{"upright", exif(binary.BigEndian, 1), 0},
		{"out of range", exif(binary.BigEndian, 9), 0},
		{"no EXIF", "Exif\x00\x00", 0},
		{"directory far outside", "Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff", 0},
		{"directory cut short", exif(binary.BigEndian, 6)[:30], 0},
	} {
		want := string(plain)
		if tt.want > 0 { // the block that is left: 36 bytes with the orientation alone
			want = want[:2] + "\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" +
				string([]byte{byte(tt.want), 0, 0, 0, 0, 0, 0}) + want[2:]
		}
		got, err := Strip([]byte(string(plain[:2])+segment(0xE1, tt.data)+string(plain[2:])), "jpeg")
		testkit.Same(t, tt.name, want, string(got), err)
	}
}

// The colours of a JPEG hang on its APP segments: Adobe's transform and the JFIF header.
func TestStripKeepsColours(t *testing.T) {
	plain := string(pictures(t)["jpeg/colour"])
	adobe := func(transform string) string { return segment(0xEE, "Adobe\x00d\x80\x00\x00\x00"+transform+canary) }
	jfif, jfxx := segment(0xE0, "JFIF\x00"), segment(0xE0, "JFXX\x00"+canary)
	seen := map[string]bool{}
	for _, head := range []string{"", adobe("\x00"), adobe("\x01"), adobe("\x00") + jfif, adobe("\x00") + jfif + jfxx,
		jfxx + adobe("\x01") + jfif + jfxx + jfif, adobe("\x00") + segment(0xEE, "Adobe")} {
		dirty := []byte(plain[:2] + head + plain[2:])
		clean, err := Strip(dirty, "jpeg")
		testkit.OK(t, err)
		want, err := pixels("jpeg", dirty)
		testkit.OK(t, err)
		if got, err := pixels("jpeg", clean); got != want || err != nil {
			t.Errorf("APP segments %q: pixels differ: %v", head, err)
		}
		if bytes.Contains(clean, []byte("CANARY")) {
			t.Errorf("APP segments %q: the canary is left", head)
		}
		seen[want] = true
	}
	if len(seen) < 2 {
		t.Error("no APP segment made a difference: the test shows nothing")
	}
}

func TestStripRefusesMalformed(t *testing.T) {
	for name, plain := range pictures(t) {
		format, _, _ := strings.Cut(name, "/")
		for at := range 2 {
			other := bytes.Clone(plain)
			other[at] ^= 1
			if _, err := Strip(other, format); err == nil {
				t.Errorf("%s with another byte %d is accepted", name, at)
			}
		}
		for n := range len(plain) - 1 {
			got, err := Strip(plain[:n], format)
			_, gifErr := gif.DecodeAll(bytes.NewReader(got)) // a GIF that is cut after a whole frame is closed
			if err == nil && gifErr != nil {
				t.Errorf("%s cut to %d of %d bytes is accepted", name, n, len(plain))
			}
		}
	}
	for _, tt := range []struct{ format, body string }{
		{"tiff", "II*\x00"}, {"jpeg", ""}, {"jpeg", "\xFF\xD8\xFF\xD9"}, {"jpeg", "\xFF\xD8\xFF\xDA\x00\x01"},
		{"jpeg", "\xFF\xD8\xFF\x02\x00\x02\xFF\xD9"},
		{"png", MagicPNG + pngChunk("IHDR", "x")}, {"png", MagicPNG + pngChunk("IDAT", "")},
		{"png", MagicPNG + "\xff\xff\xff\xffIHDR\x00\x00\x00\x00"},
		{"png", MagicPNG + pngChunk("IHDR", strings.Repeat("x", 13)) + pngChunk("CgBI", "abcd")},
		{"png", MagicPNG + pngChunk("IHDR", strings.Repeat("x", 13)) + pngChunk("IEND", "")},
		{"gif", "GIF89a" + strings.Repeat("\x00", 7) + ";"}, {"gif", "GIF89a" + strings.Repeat("\x00", 7) + "\x00\x00"},
		{"webp", "RIFF\x00\x00\x00\x00WEBP"}, {"webp",
			"RIFF\xff\xff\xff\xffWEBP" + riff("ANMF", strings.Repeat("\x00", 16)+riff("VP8L", "x"))},
		{"webp", "RIFF\xff\xff\xff\xffWEBPVP8 \xff\xff\xff\xff"},
		{"webp", "RIFF\x0c\x00\x00\x00WEBPEXIF\x00\x00\x00\x00"},
	} {
		if got, err := Strip([]byte(tt.body), tt.format); err == nil {
			t.Errorf("Strip(%q, %s) = %q, want an error", tt.body, tt.format, got)
		}
	}
}

func FuzzStrip(f *testing.F) {
	for name, plain := range pictures(f) {
		format, _, _ := strings.Cut(name, "/")
		f.Add(plain, format)
		f.Add(plant(name, plain), format)
	}
	f.Fuzz(func(t *testing.T, b []byte, format string) {
		clean, err := Strip(b, format)
		if err != nil {
			return
		}
		if again, err := Strip(clean, format); err != nil || !bytes.Equal(again, clean) {
			t.Fatalf("Strip of what it returned: %v", err)
		}
		// Large images only take time.
		for _, b := range [][]byte{b, clean} {
			if info, fault := Inspect(b, usual); fault != nil || info.Format != format || info.Width*info.Height > 1<<14 {
				return
			}
		}
		want, err := pixels(format, b)
		if err != nil {
			return
		}
		if got, err := pixels(format, clean); err != nil || got != want {
			t.Fatalf("pixels differ: %v", err)
		}
	})
}
