package policy

import (
	"bytes"
	"encoding/binary"
)

// Orientation returns how a picture is to be turned, 1 to 8, as the content of a JPEG's APP1 segment says in the
// first directory of its EXIF; 0 when it does not say so. See EXIF 2.32, 4.6.4, tag 0x0112.
func Orientation(segment []byte) int {
	tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.BigEndian
	if string(tiff[:2]) == "II" {
		order = binary.LittleEndian
	} else if string(tiff[:2]) != "MM" {
		return 0
	}
	at := int64(order.Uint32(tiff[4:]))
	if order.Uint16(tiff[2:]) != 42 || at+2 > int64(len(tiff)) {
		return 0
	}
	const tagOrientation, typeShort = 0x0112, 3
	entries := tiff[at+2:]
	for n := int(order.Uint16(tiff[at:])); n > 0 && len(entries) >= 12; n-- {
		if order.Uint16(entries) == tagOrientation && order.Uint16(entries[2:]) == typeShort &&
			order.Uint32(entries[4:]) == 1 {
			if o := int(order.Uint16(entries[8:])); 1 <= o && o <= 8 {
				return o
			}
			return 0
		}
		entries = entries[12:]
	}
	return 0
}
