package redditemu

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
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
	segment(0xe1, append([]byte("Exif\x00\x00"), exif()...))
	segment(0xe1, append([]byte("http://ns.adobe.com/xap/1.0/\x00"), xmp()...))
	segment(0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), icc()...))
	segment(0xed, iptc())
	segment(0xfe, []byte(CanaryMetadata+" comment"))
	return slices.Concat(b[:2], meta, b[2:])
}

// plantPNG puts text in its three forms, EXIF and a time in front of the pixels.
func plantPNG(b []byte) []byte {
	return insertPNG(b,
		pngChunk("tEXt", []byte("Author\x00"+CanaryMetadata)),
		pngChunk("iTXt", append([]byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"), xmp()...)),
		pngChunk("eXIf", exif()),
		pngChunk("tIME", []byte{7, 227, 4, 1, 12, 0, 0}))
}

// insertPNG puts chunks directly behind the header chunk, which must be the first.
func insertPNG(b []byte, chunks ...[]byte) []byte {
	const header = 8 + 12 + 13
	return slices.Concat(b[:header], slices.Concat(chunks...), b[header:])
}

func pngChunk(kind string, data []byte) []byte {
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
	app = append(app, subBlocks(xmp())...)
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

func webpMetadata() []webpChunk {
	return []webpChunk{{"EXIF", exif()}, {"XMP ", xmp()}}
}

func xmp() []byte {
	return []byte(`<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">` +
		`<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:creator>` + CanaryMetadata +
		`</dc:creator></rdf:Description></rdf:RDF></x:xmpmeta>`)
}

// iptc is a Photoshop resource block with an IPTC by-line.
func iptc() []byte {
	record := []byte{0x1c, 2, 80, 0, byte(len(CanaryMetadata))}
	record = append(record, CanaryMetadata...)
	out := []byte("Photoshop 3.0\x008BIM\x04\x04\x00\x00")
	out = binary.BigEndian.AppendUint32(out, uint32(len(record)))
	out = append(out, record...)
	if len(record)%2 == 1 {
		out = append(out, 0)
	}
	return out
}

// icc is a colour profile that says who made it and little else.
func icc() []byte {
	text := append([]byte("text\x00\x00\x00\x00"), CanaryMetadata+" profile\x00"...)
	const at = 128 + 4 + 2*12
	out := make([]byte, 128, at+len(text))
	copy(out[4:], "none\x02\x10\x00\x00mntrRGB XYZ ")
	copy(out[36:], "acsp")
	out = binary.BigEndian.AppendUint32(out, 2)
	for _, tag := range []string{"desc", "cprt"} {
		out = append(out, tag...)
		out = binary.BigEndian.AppendUint32(out, at)
		out = binary.BigEndian.AppendUint32(out, uint32(len(text)))
	}
	out = append(out, text...)
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	return out
}

// A tiffField is one field of a TIFF directory.
type tiffField struct {
	tag, kind uint16
	count     uint32
	data      []byte
}

const (
	tiffASCII     = 2
	tiffShort     = 3
	tiffLong      = 4
	tiffRational  = 5
	tiffUndefined = 7
)

func ascii(tag uint16, s string) tiffField {
	return tiffField{tag, tiffASCII, uint32(len(s) + 1), append([]byte(s), 0)}
}

func long(tag uint16, v int) tiffField {
	return tiffField{tag, tiffLong, 1, binary.LittleEndian.AppendUint32(nil, uint32(v))}
}

func degrees(tag uint16, d, m, s uint32) tiffField {
	var b []byte
	for _, v := range []uint32{d, 1, m, 1, s, 1} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return tiffField{tag, tiffRational, 3, b}
}

// exif is a TIFF structure with an artist, a comment and a place on the open sea.
func exif() []byte {
	comment := append([]byte("ASCII\x00\x00\x00"), CanaryMetadata+" user comment"...)
	inner := []tiffField{
		ascii(0x9003, "2019:04:01 12:00:00"),
		{0x9286, tiffUndefined, uint32(len(comment)), comment},
	}
	gps := []tiffField{
		ascii(0x0001, "N"), degrees(0x0002, 0, 7, 41), ascii(0x0003, "W"), degrees(0x0004, 25, 1, 59),
		ascii(0x001d, "2019:04:01"),
	}
	root := func(innerAt, gpsAt int) []tiffField {
		return []tiffField{
			ascii(0x010e, CanaryMetadata+" description"), ascii(0x010f, "Emulated Camera"),
			{0x0112, tiffShort, 1, []byte{1, 0}}, ascii(0x013b, CanaryMetadata+" artist"),
			ascii(0x8298, CanaryMetadata+" copyright"), long(0x8769, innerAt), long(0x8825, gpsAt),
		}
	}
	head := []byte("II\x2a\x00\x08\x00\x00\x00")
	innerAt := len(head) + len(directory(root(0, 0), 0))
	gpsAt := innerAt + len(directory(inner, 0))
	return slices.Concat(head, directory(root(innerAt, gpsAt), len(head)), directory(inner, innerAt), directory(gps, gpsAt))
}

// directory writes a TIFF directory that stands at offset, its long values behind it.
func directory(fields []tiffField, offset int) []byte {
	var dir, values bytes.Buffer
	le := binary.LittleEndian
	dir.Write(le.AppendUint16(nil, uint16(len(fields))))
	valuesAt := offset + 2 + 12*len(fields) + 4
	for _, f := range fields {
		dir.Write(le.AppendUint32(le.AppendUint16(le.AppendUint16(nil, f.tag), f.kind), f.count))
		if len(f.data) <= 4 {
			dir.Write(append(f.data, 0, 0, 0, 0)[:4])
			continue
		}
		dir.Write(le.AppendUint32(nil, uint32(valuesAt+values.Len())))
		values.Write(f.data)
		if len(f.data)%2 == 1 {
			values.WriteByte(0)
		}
	}
	dir.Write(make([]byte, 4)) // no next directory
	return append(dir.Bytes(), values.Bytes()...)
}
