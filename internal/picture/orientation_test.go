package picture

import (
	"encoding/binary"
	"testing"
)

func TestOrientation(t *testing.T) {
	segment := func(order binary.AppendByteOrder, to uint16) []byte {
		exif := []byte("Exif\x00\x00" + map[bool]string{true: "MM", false: "II"}[order.String() == "BigEndian"])
		exif = order.AppendUint32(order.AppendUint16(exif, 42), 8)
		exif = order.AppendUint16(exif, 2)
		for _, tag := range [][2]uint16{{0x0100, 640}, {0x0112, to}} {
			exif = order.AppendUint16(order.AppendUint16(exif, tag[0]), 3)
			exif = order.AppendUint32(exif, 1)
			exif = order.AppendUint16(order.AppendUint16(exif, tag[1]), 0)
		}
		return exif
	}
	for o := uint16(0); o <= 9; o++ {
		for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
			want := int(o)
			if o == 9 { // not valid
				want = 0
			}
			if got := orientation(segment(order, o)); got != want {
				t.Errorf("orientation(%d, %v) = %d, want %d", o, order, got, want)
			}
		}
	}
	whole := segment(binary.LittleEndian, 6)
	for n := range len(whole) { // cut short anywhere: no panic, and no orientation before the tag is whole
		if got := orientation(whole[:n]); got != 0 {
			t.Errorf("Orientation of the first %d bytes = %d, want 0", n, got)
		}
	}
	// not EXIF, mixed order, another magic, type or count
	for at, b := range map[int]byte{0: 'e', 6: 'M', 8: 43, 13: 0xff, 30: 4, 32: 2} {
		broken := segment(binary.LittleEndian, 6)
		broken[at] = b
		if got := orientation(broken); got != 0 {
			t.Errorf("Orientation with byte %d changed = %d, want 0", at, got)
		}
	}
}
