package unpack

import "encoding/binary"

const (
	magicZstd    = "\x28\xb5\x2f\xfd"
	widestWindow = 1 << 31                                      // of zstd --ultra --long=31
	wideFrom     = (widestWindow + maxExpansion) / maxExpansion // bytes: what has more can fill any window
	maxBlock     = 128 << 10
)

// narrow lowers the windows that the frames of a whole zstd file claim, to the smallest one of at least most bytes. No
// reference reaches further back than what a file becomes.
func narrow(file []byte, most uint64) {
	for len(file) >= 8 {
		magic := binary.LittleEndian.Uint32(file)
		switch {
		case magic&^0xf == 0x184d2a50: // a frame that is skipped
			file = file[min(8+uint64(binary.LittleEndian.Uint32(file[4:])), uint64(len(file))):]
		case magic == binary.LittleEndian.Uint32([]byte(magicZstd)):
			at := frameHeader(file, most)
			if at > len(file) {
				return
			}
			var whole bool
			file, whole = behindBlocks(file[at:], file[4]&4 != 0)
			if !whole {
				return
			}
		default:
			return // the decoder says what is wrong
		}
	}
}

// frameHeader lowers the window of a frame, and returns how long the frame's header is.
func frameHeader(frame []byte, most uint64) (n int) {
	flags := frame[4]
	single := flags&0x20 != 0 // it has no window but its content
	n = 5 + []int{0, 1, 2, 4}[flags&3] + []int{0, 2, 4, 8}[flags>>6]
	if single {
		if flags>>6 == 0 {
			n++
		}
		return n
	}
	base := uint64(1) << (10 + frame[5]>>3)
	if window := base + base/8*uint64(frame[5]&7); window > most {
		exponent := byte(0)
		for 1<<(10+exponent) < most {
			exponent++
		}
		frame[5] = min(frame[5], exponent<<3)
	}
	return n + 1
}

// behindBlocks returns what follows the blocks of a frame, and its checksum.
func behindBlocks(b []byte, checksum bool) (rest []byte, whole bool) {
	for len(b) >= 3 {
		head := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		size := int(head >> 3)
		if head>>1&3 == 1 { // one byte that is repeated
			size = 1
		}
		if 3+size > len(b) {
			return nil, false
		}
		b = b[3+size:]
		if head&1 != 0 {
			if checksum {
				b = b[min(4, len(b)):]
			}
			return b, true
		}
	}
	return nil, false
}
