package redditemu

import (
	"encoding/binary"
	"image"
	"math/bits"
)

// EncodeWebP writes an opaque picture as lossless WebP (VP8L) without compressing it: no transform,
// no references back, and codes of eight bits for each channel.
func EncodeWebP(img *image.RGBA) []byte {
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
	data := b.bytes()
	if len(data)%2 == 1 {
		data = append(data, 0)
	}
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len("WEBPVP8L")+4+len(data)))
	out = binary.LittleEndian.AppendUint32(append(out, "WEBPVP8L"...), uint32(len(data)))
	return append(out, data...)
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
