package redditemu

import (
	_ "embed"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// What is planted, each with CanaryMetadata in it, and a place on the open sea in exif.
var (
	//go:embed embedded/exif.tiff
	exif []byte // a TIFF structure with artist, copyright, comment and place
	//go:embed embedded/icc.bin
	icc []byte // a colour profile that says who made it and little else
	//go:embed embedded/iptc.bin
	iptc []byte // a Photoshop resource block with a by-line
	//go:embed embedded/xmp.xml
	xmp []byte // a creator
)

// plantJPEG puts EXIF (with artist and a place), XMP, an ICC profile, IPTC and a
// comment behind the start marker, each with CanaryMetadata in it.
func plantJPEG(b []byte) []byte {
	var meta []byte
	segment := func(marker byte, data []byte) {
		meta = append(meta, 0xff, marker)
		meta = binary.BigEndian.AppendUint16(meta, uint16(len(data)+2))
		meta = append(meta, data...)
	}
	segment(0xe1, append([]byte("Exif\x00\x00"), exif...))
	segment(0xe1, append([]byte("http://ns.adobe.com/xap/1.0/\x00"), xmp...))
	segment(0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), icc...))
	segment(0xed, iptc)
	segment(0xfe, []byte(CanaryMetadata+" comment"))
	return slices.Concat(b[:2], meta, b[2:])
}

// plantPNG puts text in its three forms, EXIF and a time in front of the pixels.
func plantPNG(b []byte) []byte {
	return InsertPNG(b,
		PNGChunk("tEXt", []byte("Author\x00"+CanaryMetadata)),
		PNGChunk("iTXt", append([]byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"), xmp...)),
		PNGChunk("eXIf", exif),
		PNGChunk("tIME", []byte{7, 227, 4, 1, 12, 0, 0}))
}

// InsertPNG puts chunks directly behind the header chunk, which must be the first.
func InsertPNG(b []byte, chunks ...[]byte) []byte {
	const header = 8 + 12 + 13
	return slices.Concat(b[:header], slices.Concat(chunks...), b[header:])
}

func PNGChunk(kind string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// plantGIF puts a comment and an XMP block behind the global colour table.
func plantGIF(b []byte) []byte {
	at := 13
	if b[10]&0x80 != 0 {
		at += 3 << (b[10]&7 + 1)
	}
	comment := append([]byte{0x21, 0xfe}, subBlocks([]byte(CanaryMetadata+" comment"))...)
	app := append([]byte{0x21, 0xff, 11}, "XMP DataXMP"...)
	app = append(app, subBlocks(xmp)...)
	return slices.Concat(b[:at], comment, app, b[at:])
}

// subBlocks splits data into GIF's blocks of at most 255 bytes. 64 a block would cut
// canaries; the longest that fits keeps them whole in all but unlucky places.
func subBlocks(data []byte) []byte {
	var out []byte
	for block := range slices.Chunk(data, 255) {
		out = append(out, byte(len(block)))
		out = append(out, block...)
	}
	return append(out, 0)
}
