package picture

import "bytes"

// SniffBytes is how many bytes from the start of a file Format looks at.
const SniffBytes = 16

// Format names the format of a file by its first SniffBytes bytes: jpeg, png, gif or webp, "" for everything else.
// The rest of the file may be anything: see Inspect.
func Format(head []byte) string {
	if format := sniff(head); Decodes(format) {
		return format
	}
	return ""
}

// Decodes reports whether Decode reads files of a format: jpeg, png, gif and webp.
func Decodes(format string) bool { return codecs[format].decode != nil }

// First bytes of image formats, for those who look for images inside other bytes. 7a or 9a follows those of a GIF.
// A WebP is a RIFF file, as other files are, with WEBP at byte 8.
const (
	MagicJPEG   = "\xFF\xD8\xFF"
	MagicPNG    = "\x89PNG\r\n\x1a\n"
	MagicGIF    = "GIF8"
	MagicRIFF   = "RIFF"
	MagicBMP    = "BM"
	MagicTIFF   = "II*\x00" // little-endian
	MagicTIFFBE = "MM\x00*" // big-endian
	MagicICO    = "\x00\x00\x01\x00"
	MagicJXL    = "\xFF\x0A"
)

// magics are the first bytes of the formats that are worth naming, the codecs' and others; ? is any byte. The first
// that fits counts.
var magics = []struct{ format, magic string }{
	{"jpeg", MagicJPEG}, {"png", MagicPNG}, {"gif", MagicGIF + "7a"}, {"gif", MagicGIF + "9a"},
	{"webp", MagicRIFF + "????WEBP"},
	{"pdf", "%PDF-"}, {"zip", "PK\x03\x04"}, {"zip", "PK\x05\x06"}, {"gzip", "\x1f\x8b"},
	{"avif", "????ftypavif"}, {"avif", "????ftypavis"}, {"heic", "????ftyphei"}, {"heic", "????ftypmif1"},
	{"mp4", "????ftyp"}, {"webm", "\x1aE\xdf\xa3"}, {"tiff", MagicTIFF}, {"tiff", MagicTIFFBE}, {"bmp", MagicBMP},
	{"ico", MagicICO}, {"jxl", MagicJXL}, {"jxl", "\x00\x00\x00\x0CJXL \r\n\x87\n"},
	{"jp2", "\xFF\x4F\xFF\x51"}, {"jp2", "\x00\x00\x00\x0CjP  \r\n\x87\n"},
}

// texts are the starts of the kinds of text that hosts send in place of an image.
var texts = []struct{ format, start string }{
	{"html", "<!doctype html"}, {"html", "<head"}, {"html", "<body"}, {"html", "<script"},
	{"xml", "<"}, {"json", "{"}, {"json", "["},
}

// sniff names what the bytes are by their first ones; "" stands for an unknown format.
func sniff(b []byte) string {
	for _, m := range magics {
		i := 0
		for i < len(m.magic) && i < len(b) && (m.magic[i] == '?' || m.magic[i] == b[i]) {
			i++
		}
		if i == len(m.magic) {
			return m.format
		}
	}
	// Pages and answers of an API begin with a byte order mark or blanks at times, and are in any case.
	text := bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	text = bytes.ToLower(bytes.TrimLeft(text[:min(len(text), 1024)], " \t\r\n"))
	for _, format := range []string{"svg", "html"} { // these may follow an XML declaration or a comment
		if bytes.Contains(text, []byte("<"+format)) {
			return format
		}
	}
	for _, t := range texts {
		if bytes.HasPrefix(text, []byte(t.start)) {
			return t.format
		}
	}
	return ""
}
