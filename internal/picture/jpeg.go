package picture

import (
	"encoding/binary"
	"iter"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	mSOF0, mSOF2, mDHT, mJPG, mDAC = 0xC0, 0xC2, 0xC4, 0xC8, 0xCC
	mRST0, mRST7                   = 0xD0, 0xD7
	mSOI, mEOI, mSOS, mDRI         = 0xD8, 0xD9, 0xDA, 0xDD
	mAPP0, mAPP1, mAPP14           = 0xE0, 0xE1, 0xEE
	mAPP15, mCOM                   = 0xEF, 0xFE
)

// jpegFrame returns the content of the frame header, as the decoder will find it, and whether the file is progressive;
// nil when there is none.
func jpegFrame(b []byte) (frame []byte, progressive bool) {
	for marker, content := range jpegSegments(b) {
		if marker >= mSOF0 && marker <= mSOF2 {
			return content, marker == mSOF2 // the decoder takes one frame header only
		}
	}
	return nil, false
}

// jpegSegments yields the content of each segment of a JPEG with its marker, as decoders find them.
func jpegSegments(b []byte) iter.Seq2[byte, []byte] {
	return func(yield func(byte, []byte) bool) {
		for i := 2; i+1 < len(b); {
			marker := b[i+1]
			switch {
			case b[i] != 0xFF, marker == 0xFF: // stray bytes; fill bytes
				i++
				continue
			case marker == 0, mRST0 <= marker && marker <= mRST7: // no segment
				i += 2
				continue
			case i+4 > len(b):
				return
			}
			from, to := i+4, i+2+int(binary.BigEndian.Uint16(b[i+2:]))
			if to < from || to > len(b) || !yield(marker, b[from:to]) {
				return
			}
			i = to
		}
	}
}

// jpegMarker finds the next marker at or after b[i] and the place after it, -1 when there is
// none. Stray bytes before it are passed over, as decoders do.
func jpegMarker(b []byte, i int) (marker byte, next int) {
	for ; i+1 < len(b); i++ {
		if b[i] == 0xFF && b[i+1] != 0xFF && b[i+1] != 0 {
			return b[i+1], i + 2
		}
	}
	return 0, -1
}

// scanEnd returns where the entropy-coded data that starts at b[i] ends: before the first
// marker that is not a restart marker.
func scanEnd(b []byte, i int) int {
	for ; i+1 < len(b); i++ {
		if b[i] == 0xFF && b[i+1] != 0 && (b[i+1] < mRST0 || b[i+1] > mRST7) {
			return i
		}
	}
	return len(b)
}
