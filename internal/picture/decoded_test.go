package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"runtime"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
)

// drawnJPEG writes a plain grey JPEG in which every block is a bit or two. factors are
// those of the components, horizontal and vertical; as is "RGB" for components of these
// names, "Adobe" for a segment that says there is no YCbCr, or "".
func drawnJPEG(progressive bool, w, h int, as string, factors ...byte) []byte {
	b := []byte("\xFF\xD8")
	segment := func(marker byte, content ...byte) {
		b = append(b, 0xFF, marker)
		b = binary.BigEndian.AppendUint16(b, uint16(len(content)+2))
		b = append(b, content...)
	}
	if as == "Adobe" {
		segment(0xEE, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00")...)
	} else if as == "" {
		segment(0xE0, []byte("JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")...)
	}
	segment(0xDB, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	frame := []byte{8, byte(h >> 8), byte(h), byte(w >> 8), byte(w), byte(len(factors))}
	scan := []byte{byte(len(factors))}
	maxH, maxV, perMCU := 1, 1, 0
	for i, hv := range factors {
		name := byte(i + 1)
		if len(as) == len(factors) {
			name = as[i]
		}
		frame, scan = append(frame, name, hv, 0), append(scan, name, 0)
		if len(factors) == 1 {
			hv = 0x11
		}
		maxH, maxV, perMCU = max(maxH, int(hv>>4)), max(maxV, int(hv&15)), perMCU+int(hv>>4)*int(hv&15)
	}
	bits := perMCU * ((w + 8*maxH - 1) / (8 * maxH)) * ((h + 8*maxV - 1) / (8 * maxV))
	table := append(make([]byte, 17), 0) // the code 0, of one bit, means 0
	table[1] = 1
	segment(0xC4, table...)
	if progressive {
		segment(0xC2, frame...)
		scan = append(scan, 0, 0, 0) // the first coefficients only
	} else {
		segment(0xC0, frame...)
		segment(0xC4, append([]byte{0x10}, table[1:]...)...)
		scan = append(scan, 0, 63, 0)
		bits *= 2
	}
	segment(0xDA, scan...)
	b = append(b, make([]byte, bits/8+1)...)
	return append(b, 0xFF, 0xD9)
}

// pngHead is the start of a PNG, up to where the pixels follow.
func pngHead(w, h, depth, colour int, interlaced bool) []byte {
	ihdr := binary.BigEndian.AppendUint32([]byte("IHDR"), uint32(w))
	ihdr = append(binary.BigEndian.AppendUint32(ihdr, uint32(h)), byte(depth), byte(colour), 0, 0, 0)
	if interlaced {
		ihdr[len(ihdr)-1] = 1
	}
	return append([]byte("\x89PNG\r\n\x1a\n"), chunk(ihdr)...)
}

// drawnPNG writes a black PNG.
func drawnPNG(w, h, depth, colour int, interlaced, transparent bool) []byte {
	channels := map[int]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
	passes := [][4]int{{0, 0, 1, 1}} // x, y, and their steps
	if interlaced {
		passes = [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
	}
	var data bytes.Buffer
	data.WriteString("IDAT")
	packed := zlib.NewWriter(&data)
	for _, p := range passes {
		cols, rows := (w-p[0]+p[2]-1)/p[2], (h-p[1]+p[3]-1)/p[3]
		for range rows {
			packed.Write(make([]byte, 1+(cols*channels*depth+7)/8))
		}
	}
	packed.Close()
	b := pngHead(w, h, depth, colour, interlaced)
	if colour == 3 {
		b = append(b, chunk([]byte("PLTE\x00\x00\x00"))...)
	}
	if transparent {
		b = append(b, chunk([]byte("tRNS\x00\x01"))...)
	}
	b = append(b, chunk(data.Bytes())...)
	return append(b, chunk([]byte("IEND"))...)
}

// TestDecodedBytes holds the estimate against what the decoders allocate: it may not be
// below that, and where it is far above, images are refused without need.
func TestDecodedBytes(t *testing.T) {
	const w, h = 1003, 700
	var part bytes.Buffer
	err := gif.EncodeAll(&part, &gif.GIF{Image: []*image.Paletted{image.NewPaletted(image.Rect(0, 0, w-1, h),
		color.Palette{color.Black, color.White})},
		Delay: []int{1}, Config: image.Config{Width: w, Height: h}})
	testkit.OK(t, err)
	for _, tt := range []struct {
		name string
		body []byte
		over float64 // the estimate may be this many times too high
	}{
		{"jpeg, grey", drawnJPEG(false, w, h, "", 0x11), 1.1},
		{"jpeg, 4:4:4", drawnJPEG(false, w, h, "", 0x11, 0x11, 0x11), 1.1},
		{"jpeg, 4:2:0", drawnJPEG(false, w, h, "", 0x22, 0x11, 0x11), 1.1},
		{"jpeg, 4:1:1", drawnJPEG(false, w, h, "", 0x41, 0x11, 0x11), 1.1},
		{"jpeg, RGB", drawnJPEG(false, w, h, "RGB", 0x11, 0x11, 0x11), 1.1},
		{"jpeg, RGB by Adobe", drawnJPEG(false, w, h, "Adobe", 0x11, 0x11, 0x11), 1.1},
		{"jpeg, CMYK", drawnJPEG(false, w, h, "Adobe", 0x11, 0x11, 0x11, 0x11), 1.1},
		{"progressive, grey", drawnJPEG(true, w, h, "", 0x11), 1.1},
		{"progressive, 4:2:0", drawnJPEG(true, w, h, "", 0x22, 0x11, 0x11), 1.1},
		{"progressive, CMYK", drawnJPEG(true, w, h, "Adobe", 0x11, 0x11, 0x11, 0x11), 1.1},
		{"png, 1 bit", drawnPNG(w, h, 1, 0, false, false), 1.1},
		{"png, grey", drawnPNG(w, h, 8, 0, false, false), 1.1},
		{"png, grey of 16 bits", drawnPNG(w, h, 16, 0, false, false), 1.1},
		{"png, grey of 16 bits, transparent", drawnPNG(w, h, 16, 0, false, true), 1.1},
		{"png, grey and alpha of 16 bits", drawnPNG(w, h, 16, 4, false, false), 1.1},
		{"png, palette", drawnPNG(w, h, 8, 3, false, false), 1.1},
		{"png, RGB", drawnPNG(w, h, 8, 2, false, false), 1.1},
		{"png, RGBA", drawnPNG(w, h, 8, 6, false, false), 1.1},
		{"png, RGB of 16 bits", drawnPNG(w, h, 16, 2, false, false), 1.1},
		{"png, RGBA of 16 bits", drawnPNG(w, h, 16, 6, false, false), 1.1},
		{"png, RGBA, interlaced", drawnPNG(w, h, 8, 6, true, false), 1.1},
		{"png, its header not first", slices.Insert(drawnPNG(w, h, 8, 6, false, false), 8,
			chunk(append([]byte("aaAa"), make([]byte, 13)...))...), 4.1},
		{"gif", encode(t, "gif", drawn(w, h)), 6},
		{"gif, part of the canvas", part.Bytes(), 1.5},
		{"webp", []byte(webp1x1), 100},
	} {
		info, f := Inspect(tt.body, usual)
		if f != nil {
			t.Errorf("%s: Inspect: %v", tt.name, f)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Decode(tt.body); err != nil {
			t.Errorf("%s: Decode: %v", tt.name, err)
		}
		runtime.ReadMemStats(&after)
		const buffers = 100 << 10 // of the readers, for any size
		got := float64(after.TotalAlloc - before.TotalAlloc)
		if estimate := float64(info.DecodedBytes); got > estimate+buffers || estimate > got*tt.over {
			t.Errorf("%s: DecodedBytes = %.0f, decoding allocates %.0f", tt.name, estimate, got)
		}
	}
}

// TestDecodedBytesWebP holds the factors by kind; nothing here writes such files.
func TestDecodedBytesWebP(t *testing.T) {
	for head, want := range map[string]int64{
		"VP8 ": 2, "VP8L": 6, "VP8X\x0a\x00\x00\x00\x00": 6, "VP8X\x0a\x00\x00\x00\x10": 9, "JUNK": 9, "": 9,
	} {
		body := append([]byte("RIFF\x1e\x00\x00\x00WEBP"+head), make([]byte, 9*min(1, len(head)))...)
		if got := decodedBytes("webp", body, 17, 16); got != 32*16*want {
			t.Errorf("decodedBytes of %q = %d, want %d", head, got, 32*16*want)
		}
	}
}

// TestJPEGFrame: the frame header must be the one that the decoder finds.
func TestJPEGFrame(t *testing.T) {
	plain := drawnJPEG(true, 100, 50, "", 0x11)
	at := bytes.Index(plain, []byte("\xFF\xC2"))
	want := plain[at+4 : at+4+9]
	for name, inserted := range map[string]string{
		"plain": "", "fill bytes": "\xFF\xFF\xFF", "stray bytes": "abc", "an escaped byte": "\xFF\x00",
		"a restart": "\xFF\xD3", "the first restart": "\xFF\xD0", "an empty segment": "\xFF\xE5\x00\x02",
		"the last restart":              "\xFF\xD7",
		"a comment with a header in it": "\xFF\xFE\x00\x0d\xFF\xC0\x00\x0b\x08\x00\x01\x00\x01\x01\x01",
	} {
		body := append(append(bytes.Clone(plain[:at]), inserted...), plain[at:]...)
		cfg, err := codecs["jpeg"].config(bytes.NewReader(body))
		frame, progressive := jpegFrame(body)
		if err != nil || cfg.Width != 100 || !bytes.Equal(frame, want) || !progressive {
			t.Errorf("%s: jpegFrame = %x, %v; the decoder finds %d by %d pixels, %v", name, frame, progressive, cfg.Width,
				cfg.Height, err)
		}
	}
	for _, cut := range [][]byte{plain[:at+5], plain[:at+4+8], []byte("\xFF\xD8\xFF\xC0\x00\x01ab")} {
		if frame, _ := jpegFrame(cut); frame != nil {
			t.Errorf("jpegFrame of a cut file = %x", frame)
		}
	}
	if frame, _ := jpegFrame(plain[:at+4+9]); !bytes.Equal(frame, want) {
		t.Errorf("jpegFrame of a file that ends behind its frame header = %x", frame)
	}
	liar := bytes.Clone(plain)
	liar[at+4+5] = 3 // components, and there is room for one
	for name, body := range map[string][]byte{"without a frame header": plain[:at+5], "with too short a one": liar} {
		if got, want := decodedBytes("jpeg", body, 10, 10), int64(1900); got != want {
			t.Errorf("decodedBytes %s = %d, want the worst, %d", name, got, want)
		}
	}
}

// TestDecodedJPEG holds the estimate by hand: 17 by 33 pixels are 3 by 5 blocks of 8 by 8, and 2 by 3 of
// 16 by 16 with 6 times 64 samples each.
func TestDecodedJPEG(t *testing.T) {
	adobe := drawnJPEG(false, 17, 33, "Adobe", 0x11, 0x11, 0x11)
	for name, test := range map[string]struct {
		body []byte
		want int64
	}{
		"grey":               {drawnJPEG(false, 17, 33, "", 0x11), 3 * 5 * 64},
		"4:2:0":              {drawnJPEG(false, 17, 33, "", 0x22, 0x11, 0x11), 2 * 3 * 6 * 64},
		"4:2:0, progressive": {drawnJPEG(true, 17, 33, "", 0x22, 0x11, 0x11), 5 * 2 * 3 * 6 * 64},
		"RGB":                {drawnJPEG(false, 17, 33, "RGB", 0x11, 0x11, 0x11), 3*5*3*64 + 4*17*33},
		"RGB by Adobe":       {adobe, 3*5*3*64 + 4*17*33},
		"YCbCr by Adobe": {bytes.Replace(adobe, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00"),
			[]byte("Adobe\x00\x64\x00\x00\x00\x00\x01"), 1), 3 * 5 * 3 * 64},
		"Adobe in a comment": {bytes.Replace(adobe, []byte{0xFF, 0xEE}, []byte{0xFF, 0xFE}, 1), 3 * 5 * 3 * 64},
		"Adobe cut short": {bytes.Replace(adobe, []byte("\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"),
			[]byte("\x00\x0dAdobe\x00\x64\x00\x00\x00\x00"), 1), 3 * 5 * 3 * 64},
		"grey, of any factor": {drawnJPEG(false, 17, 33, "", 0x22), 3 * 5 * 64},
		"R and B, but no G":   {drawnJPEG(false, 17, 33, "RXB", 0x11, 0x11, 0x11), 3 * 5 * 3 * 64},
		"R and G, but no B":   {drawnJPEG(false, 17, 33, "RGX", 0x11, 0x11, 0x11), 3 * 5 * 3 * 64},
		"G and B, but no R":   {drawnJPEG(false, 17, 33, "XGB", 0x11, 0x11, 0x11), 3 * 5 * 3 * 64},
		"CMYK":                {drawnJPEG(false, 17, 33, "", 0x11, 0x11, 0x11, 0x11), 3*5*4*64 + 4*17*33},
		"4:2:0 on its side":   {drawnJPEG(false, 17, 33, "", 0x12, 0x11, 0x11), 3 * 3 * 4 * 64},
	} {
		if got := decodedBytes("jpeg", test.body, 17, 33); got != test.want {
			t.Errorf("%s: %d bytes, want %d", name, got, test.want)
		}
	}
	if got := decodedBytes("jpeg", drawnJPEG(false, 16, 32, "", 0x11), 16, 32); got != 2*4*64 {
		t.Errorf("whole blocks: %d bytes, want %d", got, 2*4*64)
	}
}

// TestSmallLimits: with a tiny MaxPixels the rounding to blocks refuses nothing.
func TestSmallLimits(t *testing.T) {
	tiny := usual
	tiny.MaxPixels = 1
	if info, f := Inspect(drawnJPEG(true, 1, 1, "", 0x22, 0x11, 0x11), tiny); f != nil {
		t.Errorf("Inspect of one pixel = %+v, %v", info, f)
	}
}
