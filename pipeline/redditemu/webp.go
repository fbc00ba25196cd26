package redditemu

import (
	"encoding/binary"
	"image"
	"math/bits"
)

// EncodeWebP writes an opaque picture as lossless WebP (VP8L) without compressing it: no transform,
// no references back, and codes of eight bits for each channel. Planted metadata goes behind the
// picture, as WebP wants it.
func EncodeWebP(img *image.RGBA, planted bool) []byte {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	var b bitWriter
	b.write(0x2f, 8)
	b.write(uint64(w-1), 14)
	b.write(uint64(h-1), 14)
	b.write(0, 1+3)   // no alpha, version 0
	b.write(0, 1+1+1) // no transform, no colour cache, one group of codes
	b.plain(256 + 24) // green, with the 24 lengths that are not used
	b.plain(256)      // red
	b.plain(256)      // blue
	b.single(255)     // alpha
	b.single(0)       // distance: not used
	for y := range h {
		row := img.Pix[y*img.Stride:]
		for x := range w {
			for _, v := range []uint8{row[x*4+1], row[x*4], row[x*4+2]} {
				b.write(uint64(bits.Reverse8(v)), 8)
			}
		}
	}
	var metadata []webpChunk
	if planted {
		metadata = []webpChunk{{"EXIF", exif}, {"XMP ", xmp}}
	}
	return riff(w, h, b.bytes(), metadata)
}

// A bitWriter packs bits, least significant first.
type bitWriter struct {
	out []byte
	acc uint64
	n   uint
}

func (b *bitWriter) write(v uint64, n uint) {
	b.acc |= v << b.n
	b.n += n
	for b.n >= 8 {
		b.out = append(b.out, byte(b.acc))
		b.acc >>= 8
		b.n -= 8
	}
}

func (b *bitWriter) bytes() []byte {
	if b.n > 0 {
		return append(b.out, byte(b.acc))
	}
	return b.out
}

// single writes a code with one symbol below 256, which takes no bits.
func (b *bitWriter) single(symbol uint64) {
	b.write(1|0<<1|1<<2, 3) // simple, one symbol, of 8 bits
	b.write(symbol, 8)
}

// plain writes a code in which each of the first 256 symbols has its own eight bits, first bit
// highest, and further ones have none.
func (b *bitWriter) plain(symbols int) {
	b.write(0, 1)    // not simple
	b.write(12-4, 4) // of the code of lengths the first 12 lengths follow, in the order of the format:
	for _, length := range []uint64{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8} {
		if length == 0 || length == 8 {
			b.write(1, 3) // 0 is the bit 0 and 8 the bit 1
		} else {
			b.write(0, 3)
		}
	}
	b.write(0, 1) // every symbol's length follows
	for s := range symbols {
		b.write(uint64(1-s/256), 1)
	}
}

// A webpChunk is one RIFF chunk of metadata: EXIF, "XMP " or ICCP.
type webpChunk struct {
	id   string
	data []byte
}

// riff wraps a VP8L stream. With metadata it is the extended form, VP8X first.
func riff(w, h int, vp8l []byte, metadata []webpChunk) []byte {
	out := []byte("RIFF\x00\x00\x00\x00WEBP")
	chunk := func(id string, data []byte) {
		out = append(out, id...)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, data...)
		if len(data)%2 == 1 {
			out = append(out, 0)
		}
	}
	if len(metadata) > 0 {
		flags := map[string]byte{"XMP ": 1 << 2, "EXIF": 1 << 3}
		head := make([]byte, 10)
		for _, m := range metadata {
			head[0] |= flags[m.id]
		}
		putUint24(head[4:], w-1)
		putUint24(head[7:], h-1)
		chunk("VP8X", head)
	}
	chunk("VP8L", vp8l)
	for _, m := range metadata {
		chunk(m.id, m.data)
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}

func putUint24(b []byte, v int) { b[0], b[1], b[2] = byte(v), byte(v>>8), byte(v>>16) }
