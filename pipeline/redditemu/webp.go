package redditemu

import (
	"encoding/binary"
	"image"
	"math/bits"
	"slices"
)

// encodeWebP writes an opaque picture as lossless WebP (VP8L): green subtracted, each
// pixel predicted as the mean of its left and upper neighbour, the differences in one
// set of Huffman codes. No back references and no colour cache: photographs with grain
// gain little from them. metadata chunks go behind the picture, as WebP wants them.
func encodeWebP(img *image.RGBA, metadata []webpChunk) []byte {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	var b bitWriter
	b.write(0x2f, 8)
	b.write(uint64(w-1), 14)
	b.write(uint64(h-1), 14)
	b.write(0, 1+3) // no alpha, version 0

	const subtractGreen, predictor, meanLeftUp, tileBits = 2, 0, 7, 9
	b.write(1|subtractGreen<<1, 3)
	b.write(1|predictor<<1, 3)
	b.write(tileBits-2, 3)
	// The picture of modes, one pixel a tile: every code holds one symbol, so its pixels
	// take no bits at all.
	b.write(0, 1)
	for _, symbol := range []uint64{meanLeftUp, 0, 0, 0, 0} {
		b.single(symbol)
	}
	b.write(0, 1+1+1) // no further transform, no colour cache, one group of codes

	res := residuals(img)
	var freq [3][280]int // green (with the 24 lengths that are not used), red, blue
	for i := 0; i < len(res); i += 3 {
		freq[0][res[i]]++
		freq[1][res[i+1]]++
		freq[2][res[i+2]]++
	}
	codes := [3][]code{b.tree(freq[0][:]), b.tree(freq[1][:256]), b.tree(freq[2][:256])}
	b.single(0) // alpha: always as predicted
	b.single(0) // distance: not used
	for i := 0; i < len(res); i += 3 {
		for c := range 3 {
			k := codes[c][res[i+c]]
			b.write(uint64(k.bits), uint(k.len))
		}
	}
	return riff(w, h, b.bytes(), metadata)
}

// residuals returns green, red, blue of each pixel less their prediction.
func residuals(img *image.RGBA) []byte {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	px := make([]byte, 0, w*h*3) // green, red - green, blue - green
	for y := range h {
		row := img.Pix[y*img.Stride:]
		for x := range w {
			r, g, b := row[x*4], row[x*4+1], row[x*4+2]
			px = append(px, g, r-g, b-g)
		}
	}
	res := make([]byte, len(px))
	for i := range px {
		x, y := i/3%w, i/3/w
		var p byte
		switch {
		case x == 0 && y == 0:
		case y == 0:
			p = px[i-3]
		case x == 0:
			p = px[i-3*w]
		default:
			p = byte((int(px[i-3]) + int(px[i-3*w])) / 2)
		}
		res[i] = px[i] - p
	}
	return res
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

// A code is the Huffman code of one symbol, first bit lowest.
type code struct {
	bits uint16
	len  uint8
}

// tree writes a code for these frequencies and returns it.
func (b *bitWriter) tree(freq []int) []code {
	lens := codeLengths(freq)
	used := 0
	for _, l := range lens {
		if l > 0 {
			used++
		}
	}
	if used < 2 {
		symbol := max(0, slices.IndexFunc(lens, func(l uint8) bool { return l > 0 }))
		b.single(uint64(symbol))
		return make([]code, len(freq))
	}
	b.write(0, 1)    // not simple
	b.write(19-4, 4) // all 19 lengths of the code of lengths follow, in the order of the format
	for _, symbol := range []int{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} {
		if symbol < 16 {
			b.write(4, 3) // 0..15 have four bits each: the code is complete without repeats
		} else {
			b.write(0, 3)
		}
	}
	b.write(0, 1) // every symbol's length follows
	for _, l := range lens {
		b.write(uint64(bits.Reverse8(l<<4)), 4)
	}
	return canonical(lens)
}

// canonical assigns the codes that these lengths imply.
func canonical(lens []uint8) []code {
	codes := make([]code, len(lens))
	next := uint16(0)
	for l := uint8(1); l <= 15; l++ {
		next <<= 1
		for s, sl := range lens {
			if sl == l {
				codes[s] = code{bits: bits.Reverse16(next) >> (16 - l), len: l}
				next++
			}
		}
	}
	return codes
}

// codeLengths returns Huffman code lengths of at most 15 bits; 0 for unused symbols.
func codeLengths(freq []int) []uint8 {
	freq = slices.Clone(freq)
	for {
		lens := huffman(freq)
		if slices.Max(lens) <= 15 {
			return lens
		}
		// Flatter frequencies make a flatter tree.
		for i, f := range freq {
			if f > 0 {
				freq[i] = f/2 + 1
			}
		}
	}
}

func huffman(freq []int) []uint8 {
	type node struct {
		weight  int
		symbols []int
	}
	lens := make([]uint8, len(freq))
	var nodes []node
	for s, f := range freq {
		if f > 0 {
			nodes = append(nodes, node{f, []int{s}})
		}
	}
	if len(nodes) == 1 {
		lens[nodes[0].symbols[0]] = 1
	}
	byWeight := func(a, b node) int { return b.weight - a.weight }
	slices.SortStableFunc(nodes, byWeight)
	for len(nodes) > 1 {
		a, b := nodes[len(nodes)-1], nodes[len(nodes)-2]
		merged := node{a.weight + b.weight, slices.Concat(a.symbols, b.symbols)}
		for _, s := range merged.symbols {
			lens[s]++
		}
		nodes = nodes[:len(nodes)-2]
		at, _ := slices.BinarySearchFunc(nodes, merged, byWeight)
		nodes = slices.Insert(nodes, at, merged)
	}
	return lens
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
