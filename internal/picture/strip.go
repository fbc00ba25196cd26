package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// Strip returns a copy of an image file (jpeg, png, gif or webp that is not animated) without anything that is not
// needed to show it: it keeps an allow-list of blocks, and of EXIF in a JPEG the orientation alone. The decoded samples
// stay equal, but without its ICC profile an image may look paler. A malformed container is an error. It cannot see
// bytes hidden in the compressed pixel data, and names that are part of the picture.
func Strip(body []byte, format string) ([]byte, error) {
	return Split(body, format, func(string, []byte) {})
}

// Split is Strip, and calls left with every part that is not kept as it is: a segment, a chunk, a comment, and what
// follows the end of the image. Of a malformed file it calls left with the parts before the fault.
func Split(body []byte, format string, left func(name string, part []byte)) ([]byte, error) {
	split := map[string]func([]byte, func(string, []byte)) ([]byte, error){
		"jpeg": splitJPEG, "png": splitPNG, "gif": splitGIF, "webp": splitWebP}[format]
	if split == nil {
		return nil, fmt.Errorf("strip metadata: format %q is not jpeg, png, gif or webp", format)
	}
	out, err := split(body, left)
	if err != nil {
		return nil, fmt.Errorf("strip metadata: malformed %s: %w", format, err)
	}
	return out, nil
}

// Behind names what follows the end of an image.
const Behind = "bytes behind the image"

var errCutShort = errors.New("it ends too early")

func splitJPEG(b []byte, left func(string, []byte)) ([]byte, error) {
	if len(b) < 2 || b[0] != 0xFF || b[1] != mSOI {
		return nil, errors.New("it does not start as one")
	}
	out := append(make([]byte, 0, len(b)), 0xFF, mSOI)
	scans, kept := 0, appSegments{}
	for i := 2; ; {
		marker, next := jpegMarker(b, i)
		if next < 0 {
			return nil, errCutShort
		}
		i = next
		if marker == mEOI {
			if scans == 0 {
				return nil, errors.New("it has no scan")
			}
			left(Behind, b[i:])
			return append(out, 0xFF, mEOI), nil
		}
		if mRST0 <= marker && marker <= mRST7 {
			continue // a restart marker after the last interval: harmless and needless
		}
		if len(b)-i < 2 {
			return nil, errCutShort
		}
		size := int(binary.BigEndian.Uint16(b[i:]))
		if size < 2 || size > len(b)-i {
			return nil, fmt.Errorf("segment %#x has length %d", marker, size)
		}
		data := b[i+2 : i+size]
		i += size
		switch {
		case mAPP0 <= marker && marker <= mAPP15 || marker == mCOM:
			left(fmt.Sprintf("segment %02x", marker), data)
			out = kept.add(out, marker, data)
		case marker >= mSOF0 && marker <= mDRI && marker != mJPG && marker != mSOI:
			out = append(out, 0xFF, marker)
			out = append(out, b[i-size:i]...)
		default:
			return nil, fmt.Errorf("segment %#x is unknown", marker)
		}
		if marker == mSOS {
			end := scanEnd(b, i)
			out = append(out, b[i:end]...)
			i, scans = end, scans+1
		}
	}
}

// appSegments are the segments of applications that stand in an image that is stripped, so far.
type appSegments struct{ header, oriented bool }

// add adds what stays of such a segment: what says how the pixels are to be read, with nothing else in it.
func (s *appSegments) add(out []byte, marker byte, data []byte) []byte {
	switch {
	case marker == mAPP0 && bytes.HasPrefix(data, []byte(jfif)):
		s.header = true
		fields := []byte{1, 1, 0, 0, 1, 0, 1} // version 1.01, no unit, aspect 1:1
		copy(fields, data[len(jfif):])
		return appendSegment(out, mAPP0, jfif+string(fields)+"\x00\x00") // no thumbnail
	case marker == mAPP0 && s.header && len(data) >= 5:
		// image/jpeg guesses the colour space by whether the last APP0 segment is a JFIF header, not by whether any is:
		// after a header another segment keeps its name.
		return appendSegment(out, mAPP0, "JFXX\x00")
	case marker == mAPP1 && !s.oriented:
		if o := orientation(data); o > 1 {
			s.oriented = true
			return appendSegment(out, mAPP1, exifOrientation+string([]byte{byte(o), 0, 0, 0, 0, 0, 0}))
		}
	case marker == mAPP14 && len(data) >= 12 && bytes.HasPrefix(data, []byte("Adobe")):
		// Version 100, no flags, the colour transform.
		return appendSegment(out, mAPP14, "Adobe\x00\x64\x00\x00\x00\x00"+string(data[11:12]))
	}
	return out
}

const (
	jfif = "JFIF\x00"
	// exifOrientation begins an EXIF block that holds the orientation, which follows, and nothing else.
	exifOrientation = "Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"
)

func appendSegment(out []byte, marker byte, data string) []byte {
	out = binary.BigEndian.AppendUint16(append(out, 0xFF, marker), uint16(2+len(data)))
	return append(out, data...)
}

// keptPNG has the chunks that are kept, each with the greatest length it can have when well formed: a longer one is
// dropped. Where it may stand is left to the decoder.
var keptPNG = map[string]int64{"IHDR": 13, "PLTE": 1 << 31, "IDAT": 1 << 31, "IEND": 0, "tRNS": 256,
	"cHRM": 32, "fcTL": 26, "pHYs": 9, "acTL": 8, "bKGD": 6, "gAMA": 4, "sBIT": 4, "cICP": 4, "sRGB": 1, "fdAT": 1 << 30}

func splitPNG(b []byte, left func(string, []byte)) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte(MagicPNG)) {
		return nil, errors.New("it does not start as one")
	}
	out := append(make([]byte, 0, len(b)), MagicPNG...)
	last, pixels := "", false
	for i := len(MagicPNG); ; {
		if len(b)-i < 12 {
			return nil, errCutShort
		}
		size, kind := int64(binary.BigEndian.Uint32(b[i:])), string(b[i+4:i+8])
		if size > int64(len(b)-i-12) {
			return nil, errCutShort
		}
		chunk := b[i : i+12+int(size)]
		i += len(chunk)
		limit, known := keptPNG[kind]
		// Pixel data that resumes after another chunk is not part of the image.
		if known && size <= limit && (kind != "IDAT" || !pixels || last == kind) {
			out = append(out, chunk...)
		} else {
			left("chunk "+kind, chunk[8:8+size])
		}
		pixels = pixels || kind == "IDAT"
		switch {
		case crc32.ChecksumIEEE(chunk[4:8+size]) != binary.BigEndian.Uint32(chunk[8+size:]):
			return nil, fmt.Errorf("the checksum of chunk %q is wrong", kind)
		case last == "" && (kind != "IHDR" || size != 13):
			return nil, errors.New("it does not begin with a header")
		case !known && kind[0]&0x20 == 0:
			return nil, fmt.Errorf("critical chunk %q is unknown", kind)
		case kind == "IEND" && (!pixels || size != 0):
			return nil, errors.New("it has no pixels")
		case kind == "IEND":
			left(Behind, b[i:])
			return out, nil
		}
		last = kind
	}
}

// Blocks of GIF89a.
const (
	gifExtension, gifImage, gifTrailer = 0x21, 0x2C, 0x3B
	gifControl, gifApplication         = 0xF9, 0xFF
)

func splitGIF(b []byte, left func(string, []byte)) ([]byte, error) {
	if len(b) < 13 || string(b[:6]) != MagicGIF+"7a" && string(b[:6]) != MagicGIF+"9a" {
		return nil, errors.New("it does not start as one")
	}
	i := 13 + colourTable(b[10])
	if i > len(b) {
		return nil, errCutShort
	}
	out := append(make([]byte, 0, len(b)), b[:i]...)
	for frames := 0; ; {
		// Many GIFs in the wild lack the trailer; all their frames are whole nevertheless.
		if i == len(b) && frames > 0 || i < len(b) && b[i] == gifTrailer {
			if frames == 0 {
				return nil, errors.New("it has no image")
			}
			left(Behind, b[min(i+1, len(b)):])
			return append(out, gifTrailer), nil
		}
		if len(b)-i < 2 {
			return nil, errCutShort
		}
		var end int
		var err error
		switch b[i] {
		case gifExtension:
			end, err = subBlocks(b, i+2)
			if err == nil {
				out, err = appendExtension(out, b[i:end], left)
			}
		case gifImage:
			if len(b)-i < 10 {
				return nil, errCutShort
			}
			end, err = subBlocks(b, i+10+colourTable(b[i+9])+1) // the byte is the minimum code size
			if err == nil {
				out = append(out, b[i:end]...)
			}
			frames++
		default:
			err = fmt.Errorf("block %#x is unknown", b[i])
		}
		if err != nil {
			return nil, err
		}
		i = end
	}
}

// GIFPictures returns each picture of a GIF twice as a GIF of its own: on the screen, which it may cover a part of, and
// by itself. It ends where the GIF is damaged.
func GIFPictures(b []byte) (pictures [][]byte) {
	if len(b) < 13 {
		return nil
	}
	head := 13 + colourTable(b[10])
	var control []byte
	for i := head; i+10 <= len(b) && (b[i] == gifImage || b[i] == gifExtension); {
		data := i + 2
		if b[i] == gifImage {
			data = i + 10 + colourTable(b[i+9]) + 1
		}
		end, err := subBlocks(b, data)
		if err != nil { // a part of it may be shown all the same
			end = len(b)
		}
		switch {
		case b[i] == gifImage:
			one := slices.Concat(b[:head], control, b[i:end], []byte{gifTrailer})
			alone, at := bytes.Clone(one), head+len(control)
			copy(alone[6:10], one[at+5:at+9])
			clear(alone[at+1 : at+5])
			pictures, control = append(pictures, one, alone), nil
		case b[i+1] == gifControl:
			control = b[i:end]
		}
		i = end
	}
	return pictures
}

// appendExtension appends what is kept of an extension: graphic control, and the loop count.
func appendExtension(out, block []byte, left func(string, []byte)) ([]byte, error) {
	const netscape = "\x0bNETSCAPE2.0\x03\x01"
	data := block[2:]
	loop, ok := bytes.CutPrefix(data, []byte(netscape))
	switch {
	// With another length, what follows could be read as content.
	case block[1] == gifControl && (len(data) != 6 || data[0] != 4):
		return nil, errors.New("a graphic control block has a wrong length")
	case block[1] == gifControl:
		out = append(out, block...)
	case block[1] == gifApplication && ok && len(loop) > 2:
		out = append(append(out, gifExtension, gifApplication), netscape...)
		out = append(out, loop[0], loop[1], 0)
	default:
		var text []byte
		for n := 0; n+1 < len(data); n += 1 + int(data[n]) {
			text = append(text, data[n+1:n+1+int(data[n])]...)
		}
		left("comment", text)
	}
	return out, nil
}

// colourTable returns the length of the colour table that packed fields announce.
func colourTable(fields byte) int {
	if fields&0x80 == 0 {
		return 0
	}
	return 3 << (fields&7 + 1)
}

// subBlocks returns where the chain of data sub-blocks that starts at b[i] ends.
func subBlocks(b []byte, i int) (int, error) {
	for i < len(b) {
		size := int(b[i])
		i += 1 + size
		if size == 0 {
			return i, nil
		}
	}
	return 0, errCutShort
}

func splitWebP(b []byte, left func(string, []byte)) ([]byte, error) {
	if len(b) < 12 || string(b[:4]) != MagicRIFF || string(b[8:12]) != "WEBP" {
		return nil, errors.New("it does not start as one")
	}
	out := append(make([]byte, 0, len(b)), b[:12]...)
	if size := max(12, int64(binary.LittleEndian.Uint32(b[4:]))+8); size < int64(len(b)) {
		left(Behind, b[size:])
		b = b[:size]
	}
	for b = b[12:]; len(b) >= 8; {
		kind, size := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		if size > int64(len(b)-8) {
			return nil, errCutShort
		}
		data := b[8 : 8+size]
		b = b[min(8+size+size%2, int64(len(b))):]
		switch kind {
		case "VP8X":
			if len(out) > 12 || size != 10 {
				return nil, errors.New("its extended header is wrong")
			}
			// Only the flag for alpha stays; the reserved bytes become zero.
			data = append([]byte{data[0] & 0x10, 0, 0, 0}, data[4:]...)
		case "ALPH", "VP8 ", "VP8L":
		default:
			left("chunk "+kind, data)
			continue // also the frames of an animation, which Inspect refuses
		}
		out = append(out, kind...)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, data...)
		if len(data)%2 == 1 {
			out = append(out, 0)
		}
		// What follows the pixels is not part of the image.
		if kind != "VP8X" && kind != "ALPH" {
			binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
			left(Behind, b)
			return out, nil
		}
	}
	return nil, errors.New("it has no image")
}
