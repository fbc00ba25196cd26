package hostile

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"math/big"
	"slices"

	"rehydrate/internal/picture"
	"rehydrate/pipeline/redditemu"
)

// zlibZeros packs n zeros as zlib does, without ever holding them.
func zlibZeros(n int64) []byte {
	var b bytes.Buffer
	b.WriteString("\x78\x9c")
	_ = repeatDeflated(&b, 0, n) // a bytes.Buffer takes everything
	// Adler-32 of zeros: the first sum stays 1, the second counts them.
	return binary.BigEndian.AppendUint32(b.Bytes(), uint32(n%65521)<<16|1)
}

// gzipBomb writes n times fill, packed with gzip.
func gzipBomb(w io.Writer, fill byte, n int64) error {
	if _, err := io.WriteString(w, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03"); err != nil {
		return err
	}
	if err := repeatDeflated(w, fill, n); err != nil {
		return err
	}
	sum, block := uint32(0), bytes.Repeat([]byte{fill}, 1<<20)
	for left := n; left > 0; left -= int64(len(block)) {
		sum = crc32.Update(sum, crc32.IEEETable, block[:min(left, int64(len(block)))])
	}
	tail := binary.LittleEndian.AppendUint32(nil, sum)
	_, err := w.Write(binary.LittleEndian.AppendUint32(tail, uint32(n)))
	return err
}

// repeatDeflated writes a deflate stream of n times fill. What the second block of 1 MiB
// packs to refers to the bytes just before it alone, so it is packed once and repeated.
func repeatDeflated(w io.Writer, fill byte, n int64) error {
	const size = 1 << 20
	block := bytes.Repeat([]byte{fill}, size)
	var packed bytes.Buffer
	f, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return err
	}
	take := func(b []byte, end func() error) []byte {
		packed.Reset()
		_, _ = f.Write(b) // into memory
		_ = end()
		return bytes.Clone(packed.Bytes())
	}
	if n > size {
		first := take(block, f.Flush)
		again := take(block, f.Flush)
		for ; n > size; n -= size {
			if _, err := w.Write(first); err != nil {
				return err
			}
			first = again
		}
	}
	_, err = w.Write(take(block[:n], f.Close))
	return err
}

// flatPNG is a sound PNG of zeros of any size. colour is the format's colour type.
func flatPNG(w, h int64, depth, colour, interlace byte) []byte {
	channels := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
	rows := h * (1 + (w*channels*int64(depth)+7)/8)
	if interlace != 0 {
		rows = min(rows, 1<<20) // refused before the rows count
	}
	return pngOf(uint32(w), uint32(h), depth, colour, interlace, zlibZeros(min(rows, 4<<30)))
}

// pngOf is a PNG with this header and these packed pixels.
func pngOf(w, h uint32, depth, colour, interlace byte, pixels []byte) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	head = append(head, depth, colour, 0, 0, interlace)
	return slices.Concat([]byte(picture.MagicPNG), redditemu.PNGChunk("IHDR", head), redditemu.PNGChunk("IDAT", pixels),
		redditemu.PNGChunk("IEND", nil))
}

// paddedPNG writes a picture with a compressed text chunk that makes it exactly size bytes
// long. The chunk is made while it is written.
func paddedPNG(seed uint64, size int64) func(io.Writer) error {
	const header = 8 + 12 + 13
	return func(w io.Writer) error {
		picture := picturePNG(seed)
		length := size - int64(len(picture)) - 12
		sum := crc32.NewIEEE()
		if _, err := w.Write(binary.BigEndian.AppendUint32(picture[:header:header], uint32(length))); err != nil {
			return err
		}
		both := io.MultiWriter(w, sum)
		if _, err := io.WriteString(both, "zTXtComment\x00\x00"); err != nil {
			return err
		}
		block := bytes.Repeat([]byte(CanaryMetadata+" "), 1<<10)
		for left := length - 9; left > 0; left -= int64(len(block)) {
			if _, err := both.Write(block[:min(left, int64(len(block)))]); err != nil {
				return err
			}
		}
		_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, sum.Sum32()), picture[header:]...))
		return err
	}
}

// gifFrames is a GIF of a canvas and so many frames: the first a photograph of 120 by 90
// where there is room for one and seed is not zero, every other one pixel.
func gifFrames(w, h, frames int, seed uint64) []byte {
	out := []byte("GIF89a\x00\x00\x00\x00\xf0\x00\x00\x00\x00\x00\xff\xff\xff")
	if seed != 0 {
		out = pictureGIF(seed)
		out = out[:len(out)-1] // without the trailer
		frames--
	}
	binary.LittleEndian.PutUint16(out[6:], uint16(w))
	binary.LittleEndian.PutUint16(out[8:], uint16(h))
	pixel := []byte("\x21\xf9\x04\x00\x01\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00")
	for range frames {
		out = append(out, pixel...)
	}
	return append(out, 0x3b)
}

// flatWebP is a sound lossless WebP of one colour: with one symbol in each code its pixels
// take no bits, so that 30 bytes are any size.
func flatWebP(w, h int, shade uint64) []byte {
	var bits big.Int
	n := uint(0)
	write := func(v uint64, width uint) { // the lowest bit first
		bits.Or(&bits, new(big.Int).Lsh(new(big.Int).SetUint64(v), n))
		n += width
	}
	write(0x2f, 8)
	write(uint64(w-1), 14)
	write(uint64(h-1), 14)
	write(0, 1+3+1+1+1) // no alpha, version 0, no transform, no colour cache, one group of codes
	for _, symbol := range []uint64{40 + shade, 80, 120, 255, 0} {
		write(1|0<<1|1<<2, 3) // a simple code with one symbol, of 8 bits
		write(symbol, 8)
	}
	stream := bits.FillBytes(make([]byte, (n+7)/8))
	slices.Reverse(stream)
	return riffFile("VP8L", stream)
}

// riffFile is a WebP of one chunk.
func riffFile(kind string, data []byte) []byte {
	if len(data)%2 == 1 {
		data = append(data, 0)
	}
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+8+len(data)))
	out = append(append(out, "WEBP"...), kind...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(data))), data...)
}

// A jpegPlan is a JPEG in a form that image/jpeg does not write: each block of 8 by 8 pixels
// has one colour, on a smooth surface.
type jpegPlan struct {
	w, h        int
	components  int // 1 grey, 3 YCbCr, 4 CMYK or YCCK
	progressive bool
	scans       int // of a progressive file; further ones refine what is zero anyway
	hasAdobe    bool
	adobe       byte // the transform that the Adobe segment names
	noTables    bool // leave the tables of codes out
	empty       bool // header and one scan without data
	seed        uint64
}

// rawJPEG writes a plan. Codes of DC values have 4 bits, that of AC one: only the end of a
// block, or of a run of 64 blocks, is ever said.
func rawJPEG(p jpegPlan) []byte {
	var out []byte
	segment := func(marker byte, data ...byte) {
		out = append(out, 0xff, marker)
		out = binary.BigEndian.AppendUint16(out, uint16(len(data)+2))
		out = append(out, data...)
	}
	out = append(out, 0xff, 0xd8)
	if p.hasAdobe {
		segment(0xee, append([]byte("Adobe\x00\x64\x00\x00\x00\x00"), p.adobe)...)
	}
	segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{8}, 64)...)...) // a DC value is the brightness itself
	frame := []byte{8, byte(p.h >> 8), byte(p.h), byte(p.w >> 8), byte(p.w), byte(p.components)}
	for c := range p.components {
		frame = append(frame, byte(c+1), 0x11, 0)
	}
	kind, endOfBlocks := byte(0xc0), byte(0x00)
	if p.progressive {
		kind, endOfBlocks = 0xc2, 0x60 // the end of 64 blocks
	}
	segment(kind, frame...)
	if !p.noTables {
		segment(0xc4, slices.Concat([]byte{0x00, 0, 0, 0, 12}, make([]byte, 12),
			[]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})...)
		segment(0xc4, slices.Concat([]byte{0x10, 1}, make([]byte, 15), []byte{endOfBlocks})...)
	}
	scan := []byte{byte(p.components)}
	for c := range p.components {
		scan = append(scan, byte(c+1), 0)
	}
	if last := byte(63); !p.progressive {
		segment(0xda, append(scan, 0, last, 0)...)
	} else {
		segment(0xda, append(scan, 0, 0, 0)...)
	}
	if !p.empty {
		out = append(out, p.blocks()...)
	}
	for _, s := range p.refinements() {
		segment(0xda, s...)
		out = append(out, 0x01) // one code, six bits of the run's length, padding
	}
	return append(out, 0xff, 0xd9)
}

// refinements are the headers of the scans after the first, for pictures of 64 blocks: band
// by band, each first coarse and then finer, as the format wants them.
func (p jpegPlan) refinements() [][]byte {
	var all [][]byte
	for c := range byte(p.components) {
		for band := byte(1); band < 64; band++ {
			for high := byte(6); high > 0; high-- {
				from := high % 6 << 4 // nothing was sent before the first
				all = append(all, []byte{1, c + 1, 0, band, band, from | (high - 1)})
			}
		}
	}
	return all[:max(0, min(p.scans-1, len(all)))]
}

// blocks is the first scan: the DC value of each block, and for a plain file its end.
func (p jpegPlan) blocks() []byte {
	var b jpegBits
	before := make([]int, p.components)
	for y := range (p.h + 7) / 8 {
		for x := range (p.w + 7) / 8 {
			for c := range p.components {
				turn := float64(p.seed) + float64(c)
				v := int(90 * math.Sin(turn+float64(x)/(4+math.Mod(turn, 5))) * math.Cos(turn+float64(y)/6))
				b.value(v - before[c])
				before[c] = v
				if !p.progressive {
					b.write(0, 1)
				}
			}
		}
	}
	return b.bytes()
}

// jpegBits packs bits, most significant first, with a zero after each byte of ones.
type jpegBits struct {
	out []byte
	acc uint32
	n   int
}

func (b *jpegBits) write(v uint32, n int) {
	for i := n - 1; i >= 0; i-- {
		b.acc, b.n = b.acc<<1|v>>i&1, b.n+1
		if b.n == 8 {
			b.out = append(b.out, byte(b.acc))
			if byte(b.acc) == 0xff {
				b.out = append(b.out, 0)
			}
			b.acc, b.n = 0, 0
		}
	}
}

// value writes a difference: the number of its bits, then these.
func (b *jpegBits) value(d int) {
	bits := 0
	for m := max(d, -d); m > 0; m >>= 1 {
		bits++
	}
	b.write(uint32(bits), 4)
	if d < 0 {
		d += 1<<bits - 1
	}
	b.write(uint32(d), bits)
}

func (b *jpegBits) bytes() []byte {
	for b.n != 0 {
		b.write(1, 1)
	}
	return b.out
}
