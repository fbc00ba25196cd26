package hostile

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"slices"

	"golang.org/x/image/webp"

	"rehydrate/internal/picture"
	"rehydrate/pipeline/redditemu"
)

// CanaryMetadata stands in the metadata of every drawn picture, and in whatever a file of the corpus hides beside its
// pixels.
const CanaryMetadata = "canary-metadata-zq87"

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

// Plant puts metadata of all kinds that its format has into a picture. What is not one gives nil.
func Plant(file []byte) []byte {
	switch picture.Format(file) {
	case "jpeg":
		return plantJPEG(file)
	case "png":
		return plantPNG(file)
	case "gif":
		return plantGIF(file)
	}
	return plantWebP(file)
}

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
	return redditemu.InsertPNG(b,
		redditemu.PNGChunk("tEXt", []byte("Author\x00"+CanaryMetadata)),
		redditemu.PNGChunk("iTXt", append([]byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"), xmp...)),
		redditemu.PNGChunk("eXIf", exif),
		redditemu.PNGChunk("tIME", []byte{7, 227, 4, 1, 12, 0, 0}))
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

// plantWebP puts EXIF and XMP behind the picture, as WebP wants it, and a header that announces them in front.
func plantWebP(b []byte) []byte {
	c, err := webp.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil // the test that planted it has no picture then, and fails
	}
	const hasEXIF, hasXMP = 1 << 3, 1 << 2
	w, h := c.Width-1, c.Height-1
	out := slices.Clone(b[:12])
	chunk := func(id string, data []byte) {
		out = binary.LittleEndian.AppendUint32(append(out, id...), uint32(len(data)))
		out = append(out, data...)
		if len(data)%2 == 1 {
			out = append(out, 0)
		}
	}
	chunk("VP8X", []byte{hasEXIF | hasXMP, 0, 0, 0, byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8),
		byte(h >> 16)})
	out = append(out, b[12:]...)
	chunk("EXIF", exif)
	chunk("XMP ", xmp)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}
