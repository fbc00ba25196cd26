package audit

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"database/sql"
	"encoding/ascii85"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"mime/quotedprintable"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"rehydrate/internal/testkit"
)

func warp(w, h int, at func(x, y int) color.Color) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.Set(i%w, i/w, at(i%w, i/w))
	}
	return img
}

func tarWith(h tar.Header, body string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h.Mode, h.Size = 0o600, int64(len(body))
	_ = w.WriteHeader(&h)
	_, _ = w.Write([]byte(body))
	_ = w.Close()
	return b.Bytes()
}

func zipWith(h zip.FileHeader, body []byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, _ := w.CreateHeader(&h)
	_, _ = f.Write(body)
	_ = w.Close()
	return b.Bytes()
}

// commentedZip is a zip of one member with comments.
func commentedZip(of, member string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	_, _ = w.CreateHeader(&zip.FileHeader{Name: "x", Comment: member})
	_ = w.SetComment(of)
	_ = w.Close()
	return b.Bytes()
}

// betweenZip puts bytes into a zip, at the last place where its mark stands.
func betweenZip(at string, zipped []byte, with string) []byte {
	from := bytes.LastIndex(zipped, []byte(at))
	directory := bytes.Index(zipped, []byte("PK\x01\x02")) + len(with)
	return patched(slices.Concat(zipped[:from], []byte(with), zipped[from:]), "PK\x05\x06", 16,
		string(binary.LittleEndian.AppendUint32(nil, uint32(directory))))
}

func gzipWith(h gzip.Header, body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Header = h
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}

func wide(order binary.AppendByteOrder, s string) (b []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

func listed(b []byte, format, between string) string {
	parts := make([]string, len(b))
	for i, c := range b {
		parts[i] = fmt.Sprintf(format, c)
	}
	return strings.Join(parts, between)
}

// signed is listed for bytes as numbers from -128 to 127.
func signed(b []byte, format, between string) string {
	parts := make([]string, len(b))
	for i, c := range b {
		parts[i] = fmt.Sprintf(format, int8(c))
	}
	return strings.Join(parts, between)
}

func repr(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		switch {
		case c == '\n':
			s.WriteString(`\n`)
		case c == '\'' || c == '\\':
			s.WriteString(`\` + string(rune(c)))
		case c < ' ' || c > '~':
			fmt.Fprintf(&s, `\x%02x`, c)
		default:
			s.WriteByte(c)
		}
	}
	return "b'" + s.String() + "'"
}

func framesOf(images ...image.Image) []byte {
	g, palette := gif.GIF{}, color.Palette{}
	for i := range 256 {
		palette = append(palette, color.RGBA{uint8(i), uint8(i / 2), uint8(255 - i), 255})
	}
	for _, img := range images {
		p := image.NewPaletted(img.Bounds(), palette)
		for i := range p.Pix {
			p.Set(i%p.Rect.Dx(), i/p.Rect.Dx(), img.At(i%p.Rect.Dx(), i/p.Rect.Dx()))
		}
		g.Image, g.Delay = append(g.Image, p), append(g.Delay, 5)
	}
	var b bytes.Buffer
	_ = gif.EncodeAll(&b, &g)
	return b.Bytes()
}

// patched replaces bytes of a file; marks are those that a format keeps twice or more.
func patched(b []byte, mark string, at int, with string) []byte {
	b = bytes.Clone(b)
	for i := 0; ; i++ {
		n := bytes.Index(b[i:], []byte(mark))
		if n < 0 {
			return b
		}
		i += n
		copy(b[i+at:], with)
	}
}

func walOf(t testing.TB, statements ...string) []byte {
	name := filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", name)
	testkit.OK(t, err)
	db.SetMaxOpenConns(1)
	for _, s := range append([]string{"PRAGMA journal_mode=WAL"}, statements...) {
		_, err = db.ExecContext(t.Context(), s)
		testkit.OK(t, err)
	}
	b, err := os.ReadFile(name + "-wal")
	testkit.OK(t, err, db.Close())
	return b
}

func unbase64(s string) []byte { b, _ := base64.StdEncoding.DecodeString(s); return b }

type packedRow struct {
	ID     string `parquet:"id"`
	Dict   string `parquet:"dict,dict,snappy"`
	Delta  string `parquet:"delta,delta,gzip"`
	Brotli []byte `parquet:"brotli,brotli"`
}

// strayBound is a Parquet of a row with a text, whose footer says that the largest text is another.
func strayBound(text, bound string) []byte {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[textRow](&b, parquet.Compression(&parquet.Uncompressed))
	_, _ = w.Write([]textRow{{1, text}})
	_ = w.Close()
	copy(b.Bytes()[bytes.LastIndex(b.Bytes(), []byte(text)):], bound)
	return b.Bytes()
}

type namedRow struct {
	ID string `parquet:"id"`
	N  int64  `parquet:"t3_1bodut"`
}

// digits is wanted of an id of digits with nothing of Reddit's beside it: in a file of somebody else it is open, among
// files of the release it is a finding.
const digits = "gap " + mayBeIDs

// formCases are files in the forms that programs write. They were written by a reader of the design who had not read
// the audit.
func formCases(t testing.TB, w *world) []hiding {
	j, p, live := w.images[goneJPEG], w.images[gonePNG], w.images[live1]
	pic, row, img, pg, like := drawn(1), "row 1bodut", "image 1bodut", "image 1bf0nv", "like 1bodut"
	half := warp(48, 40, func(x, y int) color.Color { return pic.At(2*x, 2*y) })
	sum := sha256.Sum256(j)
	link, id := "https://redd.it/1bodut", []byte("t3_1bodut")
	mime := wrapped(b64(j), 76)
	var qp, tif, bm, nb bytes.Buffer
	q := quotedprintable.NewWriter(&qp)
	_, _ = q.Write([]byte(strings.Repeat("=", 22) + " t3_1bodut"))
	testkit.OK(t, q.Close(), tiff.Encode(&tif, pic, &tiff.Options{Compression: tiff.Deflate, Predictor: true}),
		bmp.Encode(&bm, pic))
	testkit.OK(t,
		json.NewEncoder(&nb).Encode(map[string]any{"cells": []any{map[string]any{"outputs": []any{map[string]any{"data": map[string]any{"image/jpeg": strings.SplitAfter(mime+"\n", "\n")}}}}}}))
	two := [2]*image.RGBA{pic, drawn(9)}
	collage := warp(192, 80, func(x, y int) color.Color { return two[x/96].At(x%96, y) })
	ghost := image.NewNRGBA(pic.Bounds())
	for i := range pic.Pix {
		ghost.Pix[i] = pic.Pix[i] * byte(min(1, 3-i%4)) // the pixels are there, each of them transparent
	}
	seven := []byte(link)
	for range 8 {
		seven = zipOf("a.zip", seven)
	}
	pdfString := func(s string) []byte { return pdfOf("", []byte("BT ("+s+") Tj ET")) }
	ole := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
		append(make([]byte, 504), wide(binary.LittleEndian, "see "+link+" there")...)...)
	docx := func(s string) []byte {
		return zipOf("word/document.xml", []byte("<w:document><w:p>"+s+"</w:p></w:document>"))
	}
	cell := func(r, v string) string { return `<c r="` + r + `"><v>` + v + `</v></c>` }
	var cases []hiding
	add := func(name, file, want string, body []byte) { cases = append(cases, hiding{name, file, want, body}) }
	text := func(name, file, want, body string) { add(name, file, want, []byte(body)) }

	// Ids, in every spelling.
	for i, s := range []string{"t3_1bodut", "T3_1BODUT", link, "REDD.IT/1BODUT", "/r/x/comments/1bodut/a_title/",
		"https://old.reddit.com/comments/1bodut.json?limit=5", "https://www.reddit.com/gallery/1bodut",
		"https%3A%2F%2Freddit.com%2Fcomments%2F1bodut", "t3%5F1bodut", "reddit.com/tb/1bodut", "reddit.com/1bodut",
		"by_id/t3_1live1,t3_1bodut", "#thing_t3_1bodut", `<div id="siteTable_t3_1bodut">`,
		"t3&#95;1bodut", "t3&#x5f;1bodut", "comments&#47;1bodut", "comments&sol;1bodut&sol;", `\u00743_1bodut`,
		`t3\x5f1bodut`, `\/comments\/1bodut\/`, "t3\\_1bodut", "t3_\u200b1bodut",
		"\uff54\uff13\uff3f\uff11\uff42\uff4f\uff44\uff55\uff54", "reddit://comments/1bodut",
		"the post 1bodut is funny", "[1bodut]", "img_1bodut_small.png", "t3\u20111bodut t3-1bodut",
		"see comments/\n1bodut/"} {
		text(fmt.Sprintf("spelling %d: %q", i, s), "s.txt", row, "look at "+s+" once\n")
	}
	for i, s := range []string{"n,link_id\n1,t3_136748\n", "a\nredd.it/136748\n", "1live1\n1live2\n136748\n"} {
		text(fmt.Sprintf("digits that are Reddit's %d: %q", i, s), "d.csv", "row 136748", s)
	}
	for i, s := range []string{"id\n136748\n", "id;n\n136748;1\n", "n\tpost_id\n1\t136748\n", "\ufeffid,n\n136748,1\n",
		"\ufeff\"id\",\"n\"\n\"136748\",\"1\"\n", "\"id\",\"n\"\n\"136748\",\"1\"\n", "submission_id|n\n136748|1\n",
		"id\n136748.0\n", "id,n\n'136748,2\n", "ID\r\n 136748 \r\n", "sep=;\nid;n\n136748;1\n",
		"# made by a tool\nid,n\n136748,1\n", "| id | n |\n|---|---|\n| 136748 | 1 |\n", "- id: 136748\n  n: 1\n"} {
		text(fmt.Sprintf("digits %d: %q", i, s), "d.csv", digits, s)
	}
	for i, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		add(fmt.Sprintf("UTF-16 %d", i), "u.txt", row, wide(order, "\ufefflook at "+link+" now"))
		add(fmt.Sprintf("UTF-16 %d without a mark", i), "u.txt", "some", wide(order, "look at "+link+" now"))
	}

	// Names.
	for _, name := range []string{"1bodut.txt", "1BODUT.JPG", "t3_1bodut", "1bodut/note.txt", "IMG-1bodut-small.txt",
		"comments_1bodut.html", "posts/t3_1bodut/a.txt", "1bodut~", ".1bodut.swp", "1bodut (1).txt", "t3%5F1bodut.txt"} {
		text("the name "+name, name, "any 1bodut", "a note of nothing much\n")
	}
	text("a name of digits", "136748.jpg", "some", "a note of nothing much\n")

	// Archives.
	xz := unbase64("/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQAec2VlIGh0dHBzOi8vcmVkZC5pdC8xYm9kdXQgbm93CgAAEFkTf99idA4AATcf6hiJPR+2830BAAAAAARZWg==")
	before, hidden := zipOf("x", []byte("hi")), deflated(j)
	end := bytes.Index(before, []byte("PK\x01\x02"))
	start := string(binary.LittleEndian.AppendUint32(nil, uint32(end+len(hidden))))
	add("packed between a zip and its directory", "a.zip", "some",
		patched(slices.Concat(before[:end], hidden, before[end:]), "PK\x05\x06", 16, start))
	add("packed behind a zip", "a.zip", "some", append(bytes.Clone(before), hidden...))
	add("packed before a zip", "a.zip", "some", slices.Concat([]byte("PK\x03\x04"), hidden, before))
	lzma := "XQAAgAD//////////wA5mWxAaDwGKT/LHn5HXwJQupixQsg1hThDza6Wxj2orRF9///IGAAA"
	for magic, name := range map[string]string{"7z\xbc\xaf\x27\x1c\x00\x04": "7-zip", "Rar!\x1a\x07\x01\x00": "rar",
		"ARROW1\x00\x00": "arrow", "MSCF\x00\x00\x00\x00": "cab", "ORC": "orc",
		"Obj\x01\x04\x14avro.codec\x0edeflate": "avro", "\x89HDF\r\n\x1a\n": "hdf5", "PAR1": "parquet",
		"LZIP\x01\x0c": "lzip", "\x1f\x9d\x90": "compress", "-----BEGIN PGP MESSAGE-----\n\n": "pgp",
		"age-encryption.org/v1\n": "age", "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00": "avif",
		"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00": "heic", "\xff\x0a\xfa\x7f": "jpeg xl", "hsqs": "squashfs",
		"8BPS\x00\x01": "psd", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00": "mp4", "\x1aE\xdf\xa3": "matroska"} {
		add("the format "+name, "f.bin", map[bool]string{true: "gap " + name,
			false: "some"}[name == "7-zip" || name == "rar" || name == "arrow"],
			append([]byte(magic), deflated([]byte(mime))...))
	}

	// Tables of other tools.
	for _, s := range [][2]string{{row,
		"CREATE TABLE x (y TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO x VALUES ('t3_1bodut')"},
		{row, "CREATE TABLE x (y); CREATE VIEW v AS SELECT y FROM x WHERE y = 't3_1bodut'"},
		{row, "CREATE TABLE x (y); CREATE INDEX i ON x (y) WHERE y = 't3_1bodut'"},
		{row, "CREATE TABLE x (y DEFAULT 't3_1bodut')"},
		{row, "CREATE TABLE x (t3_1bodut)"},
		{row, "CREATE TABLE t3_1bodut (y)"},
		{"some", "CREATE TABLE x (y); INSERT INTO x VALUES ('https://redd.it/1bodut'); DELETE FROM x"},
		{"some", "CREATE TABLE x (y); INSERT INTO x VALUES ('https://redd.it/1bodut'); DROP TABLE x"},
		{row, "PRAGMA encoding='UTF-16le'; CREATE TABLE x (y); INSERT INTO x VALUES ('https://redd.it/1bodut')"},
		{digits, "CREATE TABLE x (id INTEGER PRIMARY KEY, y); INSERT INTO x VALUES (136748, 1)"},
		{digits, "CREATE TABLE x (post_id INT); INSERT INTO x VALUES (136748)"},
		{row, "CREATE TABLE x (y); INSERT INTO x VALUES (CAST('t3_1bodut' AS BLOB))"},
		{row, "CREATE TABLE x (a, b AS ('t3_' || a)); INSERT INTO x (a) VALUES ('1bodut')"},
		{"row 136748", "CREATE TABLE x (a, b AS ('t3_' || a)); INSERT INTO x (a) VALUES (136748)"},
		{row, "CREATE TABLE x (y); INSERT INTO x VALUES ('a'); UPDATE x SET y = jsonb('{\"k\":\"t3_1bodut\"}')"},
		{row, "PRAGMA page_size=512; CREATE TABLE x (y); INSERT INTO x VALUES (printf('%9000s', 't3_1bodut'))"}} {
		add("SQLite: "+s[1], "a.db", s[0], sqliteOf(t, s[1]))
	}

	// Bytes as texts.
	for i, s := range []string{"data:image/jpeg;base64," + strings.NewReplacer("/", "%2F", "+", "%2B", "=",
		"%3D").Replace(b64(j)), `{"i":"` + strings.ReplaceAll(b64(j), "/", `\/`) + `"}`,
		`{"i":"` + strings.NewReplacer("/", `\u002f`, "+", `\u002B`, "=", `\u003d`).Replace(b64(j)) + `"}`,
		`{"i":"` + strings.ReplaceAll(mime, "\n", `\n`) + `"}`, `{"i":"` + strings.ReplaceAll(mime, "\n", `\r\n`) + `"}`,
		strings.ReplaceAll(mime, "\n", "\r\n"), "PHOTO;ENCODING=B:\n " + strings.ReplaceAll(mime, "\n", "\n "),
		"<data>\n\t\t" + strings.ReplaceAll(mime, "\n", "\n\t\t") + "\n</data>",
		"jpegPhoto:: " + strings.ReplaceAll(mime, "\n", "\n "), "> " + strings.ReplaceAll(mime, "\n", "\n> "),
		"\"" + strings.ReplaceAll(mime, "\n", "\" +\n\"") + "\"",
		"<d>" + strings.ReplaceAll(mime, "\n", "&#10;") + "</d>",
		base64.RawURLEncoding.EncodeToString(j), strings.ToUpper(hex.EncodeToString(j)),
		wrapped(hex.EncodeToString(j), 64), "INSERT INTO x VALUES (X'" + hex.EncodeToString(j) + "');",
		`\\x` + hex.EncodeToString(j), "0x" + hex.EncodeToString(j),
		`{\rtf1{\pict\jpegblip ` + wrapped(hex.EncodeToString(j), 128) + "}}", "id,image\n7,\"" + mime + "\"\n",
		strings.Join(strings.SplitAfter(listed([]byte(b64(j)), "%c", ""), "====="), ""), nb.String()} {
		text(fmt.Sprintf("bytes as text %d: %.16q", i, s), "b.txt", img, s)
	}
	for _, c := range [][3]string{
		{"a Buffer of Node", img, `{"type":"Buffer","data":[` + listed(j, "%d", ",") + `]}`},
		{"a list of Java", img, "[" + signed(j, "%d", ",") + "]"},
		{"a list of Java that was read as numbers", pg, `[{"photo":[` + signed(p, "%d.0", ",") + "]}]"},
		{"a list of Python", pg, "[" + listed(p, "%d", ", ") + "]\n"},
		{"JSON in lines", img, "{\n  \"image\": [\n" + listed(j, "    %d", ",\n") + "\n  ]\n}\n"},
		{"much of it", img, `{"n":"` + strings.Repeat("a line ", 149_790) + `","image":[` + listed(j, "%d", ", ") + "]}"},
		{"escapes of C", img, `"` + listed(j, `\x%02x`, "") + `"`},
		{"octal escapes", pg, listed(p, `\%03o`, "")},
		{"repr of Python", img, repr(j)},
		{"repr of a GIF", like, repr(framesOf(pic))},
		{"an address", img, "data:image/jpeg," + url.PathEscape(string(j))},
		{"every byte escaped", pg, listed(p, "%%%02x", "")},
	} {
		text("bytes spelled out: "+c[0], "b.txt", c[1], c[2])
	}
	a85 := make([]byte, ascii85.MaxEncodedLen(len(j)))
	for i, s := range []string{hex.EncodeToString(sum[:]), strings.ToUpper(hex.EncodeToString(sum[:])),
		"sha256:" + hex.EncodeToString(sum[:]), "sha256-" + b64(sum[:]), base64.RawURLEncoding.EncodeToString(sum[:]),
		`{"h":"` + hex.EncodeToString(sum[:]) + `"}`, hex.EncodeToString(sum[:]) + "  a.jpg",
		"img_" + hex.EncodeToString(sum[:]) + ".jpg", `{"h":"` + strings.ReplaceAll(b64(sum[:]), "/", `\/`) + `"}`} {
		text(fmt.Sprintf("a digest %d", i), "h.txt", "any 1bodut", s+"\n")
	}

	// Images.
	for name, i := range map[string]image.Image{"another quality": pic, "half the size": half,
		"double":                warp(192, 160, func(x, y int) color.Color { return pic.At(x/2, y/2) }),
		"mirrored":              warp(96, 80, func(x, y int) color.Color { return pic.At(95-x, y) }),
		"upside down":           warp(96, 80, func(x, y int) color.Color { return pic.At(x, 79-y) }),
		"turned":                warp(80, 96, func(x, y int) color.Color { return pic.At(y, 79-x) }),
		"turned back":           warp(80, 96, func(x, y int) color.Color { return pic.At(95-y, x) }),
		"half a turn":           warp(96, 80, func(x, y int) color.Color { return pic.At(95-x, 79-y) }),
		"a turned mirror image": warp(80, 96, func(x, y int) color.Color { return pic.At(y, x) }),
		"cropped by a pixel":    warp(94, 78, func(x, y int) color.Color { return pic.At(x+1, y+1) }),
		"gray":                  warp(96, 80, func(x, y int) color.Color { return color.GrayModel.Convert(pic.At(x, y)) }),
		"bright": warp(96, 80, func(x, y int) color.Color {
			c := pic.RGBAAt(x, y)
			c.R, c.G, c.B = c.R/2+100, c.G/2+100, c.B/2+100
			return c
		}), "another shape": warp(96, 160, func(x, y int) color.Color { return pic.At(x, y/2) })} {
		add("an image, "+name, "i.jpg", like, encodeJPEG(i, 45))
		add("a PNG, "+name, "i.png", like, encodePNG(i))
	}
	for _, c := range []struct {
		name, want string
		body       []byte
	}{
		{"GIF", like, framesOf(pic)},
		{"a later frame", like, framesOf(drawn(9), pic)},
		{"a later frame of a GIF that loops", like, framesOf(drawn(9), drawn(8), half)},
		{"behind an image", img, append(bytes.Clone(live), j...)},
		{"behind a PNG", pg, append(pngChunk("tEXt", []byte("a\x00b")), p...)},
		{"a thumbnail in Exif", like, withSegment(live, 0xe1, "Exif\x00\x00II*\x00"+string(encodeJPEG(half, 60)))},
		{"a comment", img, withSegment(live, 0xfe, mime)},
		{"a profile", img, withSegment(live, 0xe2, "ICC_PROFILE\x00\x01\x01"+string(j))},
		{"XMP", img, withSegment(live, 0xe1, "http://ns.adobe.com/xap/1.0/\x00<xmpGImg:image>"+
			strings.ReplaceAll(mime, "\n", "&#xA;")+"</xmpGImg:image>")},
		{"a chunk", img, pngChunk("prVt", j)},
		{"zTXt", img, pngChunk("zTXt", append([]byte("c\x00\x00"), deflated([]byte(mime))...))},
		{"iCCP", img, pngChunk("iCCP", append([]byte("c\x00\x00"), deflated(j)...))},
		{"raw profile", img, pngChunk("tEXt",
			[]byte("Raw profile type APP1\x00\nexif\n 99\n"+wrapped(hex.EncodeToString(j), 72)))},
		{"an icon", like,
			append([]byte("\x00\x00\x01\x00\x01\x00\x60\x50\x00\x00\x01\x00\x20\x00\xff\xff\x00\x00\x16\x00\x00\x00"),
				encodePNG(pic)...)},
		{"an SVG", img, []byte(`<svg><image href="data:image/jpeg;base64,` + b64(j) + `"/></svg>`)},
		{"an SVGZ", img, gzipOf([]byte(`<svg><image href='data:image/jpeg;base64,` + b64(j) + `'/></svg>`))},
		{"a sound with a cover", img,
			append([]byte("ID3\x03\x00\x00\x00\x00\x20\x00APIC\x00\x00\x20\x00\x00\x00\x00image/jpeg\x00\x03\x00"),
				j...)},
	} {
		add("an image: "+c.name, "i.dat", c.want, c.body)
	}
	for name, b := range map[string][]byte{"COM": withSegment(live, 0xfe, link),
		"XMP":      withSegment(live, 0xe1, "http://ns.adobe.com/xap/1.0/\x00<dc:source>"+link+"</dc:source>"),
		"tEXt":     pngChunk("tEXt", []byte("Source\x00"+link)),
		"zTXt":     pngChunk("zTXt", append([]byte("c\x00\x00"), deflated([]byte(link))...)),
		"iTXt":     pngChunk("iTXt", append([]byte("c\x00\x01\x00\x00\x00"), deflated([]byte(link))...)),
		"a GIF":    patched(framesOf(drawn(3)), "\x21\xf9\x04", 0, "\x21\xfe\x16"+link+"\x00"),
		"trailing": append(bytes.Clone(live), link...)} {
		add("an id in an image: "+name, "i.dat", row, b)
	}

	// Documents.
	for name, s := range map[string]string{"CBOR": "\xa1djustit3_1bodut",
		"a binary property list": "bplist00\xd1\x01\x02CabcYt3_1bodut\x08", "Smile": ":)\n\x05\xfa\x80kHt3_1bodut\xfb",
		"MessagePack":      "\x81\xa1k\xa9t3_1bodut",
		"pickle":           "\x80\x04\x95\x0d\x00\x00\x00\x00\x00\x00\x00\x8c\x09t3_1bodut\x94.",
		"protocol buffers": "\x0a\x09t3_1bodut\x10\x01",
		"BSON":             "\x18\x00\x00\x00\x02k\x00\x0a\x00\x00\x00t3_1bodut\x00\x00",
		"PHP":              "a:1:{s:1:\"k\";s:9:\"t3_1bodut\";}",
		"TFRecord":         "\x0b\x00\x00\x00\x00\x00\x00\x00abcd\x0a\x09t3_1bodut\x8a\x01\x9f\x00"} {
		text("an id in "+name, "a.bin", row, s)
	}
	whole := goneText + "\nfor 1bodut"
	for i, s := range []string{whole, strings.ToUpper(whole), strings.ReplaceAll(goneText, " ", "\n"),
		"n,caption\n1,\"" + whole + "\"\n", `{"t":"` + strings.ReplaceAll(whole, "\n", `\n`) + `"}`,
		"<p>" + strings.ReplaceAll(whole, " ", "</span> <span>") + "</p>",
		string(wide(binary.LittleEndian, "\ufeff"+whole)), b64([]byte(whole + strings.Repeat(" ", 30))), goneText,
		"<p>" + strings.ReplaceAll(goneText, " ", "&nbsp;") + "</p>", strings.ReplaceAll(goneText, " ", "\u00a0"),
		`{"t":"` + listed([]byte(goneText), `\u%04x`, "") + `"}`} {
		text(fmt.Sprintf("a text %d: %.20q", i, s), "t.txt", "text", s)
	}
	oldTar := patched(tarOf("x", j), "ustar\x0000", 0, strings.Repeat("\x00", 8))
	total := 8 * int(' ')
	for _, c := range append(bytes.Clone(oldTar[:148]), oldTar[156:512]...) {
		total += int(c)
	}
	copy(oldTar[148:], fmt.Sprintf("%06o\x00 ", total))
	for i, s := range []string{"       id  n\n0  136748  1\n", "n\tid\r1\t136748\r", "n,id\n1\n2,136748\n",
		"n,id\n\"a\nb\",136748\n", `{"id":{"0":"136748"}}`, `{"columns":["id","n"],"data":[["136748",1]]}`,
		`{"name":"id","value":"136748"}`} {
		text(fmt.Sprintf("digits that may be an id %d: %q", i, s), "d.json", "some", s)
	}
	for i, s := range []string{"reddit id,n\n136748,1\n", "name,n\nt3_136748,1\n"} {
		text(fmt.Sprintf("more digits that are Reddit's %d: %q", i, s), "d.tsv", "row 136748", s)
	}
	for i, s := range []string{"Post ID,n\n136748,1\n", "post-id,n\n136748,1\n", "My posts\n\nid,n\n136748,1\n",
		"caf\xe9,id\n1,136748\n", "id,n\n136748;1live1,2\n", "id,n\n\"['136748']\",2\n", "n,file_name\n1,136748.jpg\n",
		"images/136748.jpg\n", "?id=136748&x=1\n"} {
		text(fmt.Sprintf("more digits %d: %q", i, s), "d.tsv", digits, s)
	}
	for i, s := range []string{`[{"id": "136748", "x": NaN}]`, `window.data = {"id":"136748"};`,
		"\ufeff{\"id\":\"136748\"}", "\ufeff{\"id\":\"\\u003136748\"}", `{"raw":"{\"id\":\"136748\"}"}`,
		`{"id":["136748"]}`, `{'id': '136748'}`, "{\"n\":1}\n{broken\n{\"id\":\"136748\"}\n",
		`{"file_name":"136748.jpg"}`, "[post]\nid = \"136748\"\n", "<post><id>136748</id></post>", `<post id="136748"/>`,
		`{"id":"136748","x":1,}`, "// a comment\n{\"id\":\"136748\"}"} {
		text(fmt.Sprintf("digits under a key %d: %q", i, s), "k.json", digits, s)
	}
	for name, order := range map[string]binary.AppendByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
		exif := "Exif\x00\x00II*\x00\x08\x00\x00\x00\x00\x00\x00\x00"
		for what, s := range map[string]string{"an id": link + "/", "a bare id": "1bodut",
			"a title": "don\u2019t look: t3_1bodut"} {
			of := string(wide(order, s))
			add(what+" in a comment of Exif, "+name, "i.jpg", row, withSegment(live, 0xe1, exif+"UNICODE\x00"+of))
			add(what+" in a title of Windows, "+name, "i.jpg", row, withSegment(live, 0xe1, exif+of+"\x00\x00"))
			add(what+" in Photoshop's, "+name, "i.jpg", row,
				withSegment(live, 0xed, "Photoshop 3.0\x008BIM\x04\x04\x00\x00\x00\x00\x00"+of))
		}
		add("a text in a comment of Exif, "+name, "i.jpg", "text",
			withSegment(live, 0xe1, exif+"UNICODE\x00"+string(wide(order, goneText))))
		add("a text in a title of Windows, "+name, "i.jpg", "text",
			withSegment(live, 0xe1, exif+string(wide(order, "\u201c"+goneText+"\u201d \U0001f642"))+"\x00\x00"))
	}
	postgres := func(b []byte) string {
		var s strings.Builder
		for _, c := range b {
			switch {
			case c == '\\':
				s.WriteString(`\\\\`)
			case c < ' ' || c > '~':
				fmt.Fprintf(&s, `\\%03o`, c)
			default:
				s.WriteByte(c)
			}
		}
		return s.String()
	}
	text("bytes spelled out by PostgreSQL: COPY", "a.sql", img,
		"COPY public.memes (n, image) FROM stdin;\n1\t"+postgres(j)+"\n2\t"+postgres(live)+"\n\\.\n")
	text("bytes spelled out by PostgreSQL: COPY of a PNG", "a.sql", pg,
		"COPY public.memes (image) FROM stdin;\n"+postgres(p)+"\n\\.\n")
	text("bytes spelled out by PostgreSQL: a literal", "a.sql", img,
		"INSERT INTO memes VALUES (1, E'"+strings.ReplaceAll(postgres(j), "'", "''")+"'::bytea);\n")
	for i, s := range []string{"\x1b[01;31m\x1b[K1bodut\x1b[m\x1b[K,train,A\n1live1,train,B\n",
		"https://redd.it/\x1b[01;31m\x1b[K1bodut\x1b[m\x1b[K",
		"\x1b[01;35m1bodut.png\x1b[0m\n\x1b[01;35m1live1.png\x1b[0m\n", "t\bt3\b3_\b_1\b1b\bbo\bod\bdu\but\bt",
		"1bo\x1b]0;a title\adut", "\x1b(Bt3_1b\x1b]8;;x\x1b\\odut", "n,id\n1,\x1b[31m1bodut\x1b[0m\n",
		`{"log":"\u001b[31m1bodut\u001b[0m"}`, "1bodua\b\but", "_\b1_\bb_\bo_\bd_\bu_\bt"} {
		text(fmt.Sprintf("colours of a terminal %d: %q", i, s), "c.txt", row, s)
	}
	colours := "\x1b[32m" + strings.ReplaceAll(goneText, " ", "\x1b[0m \x1b[32m") + "\x1b[0m"
	text("a text in colours", "c.txt", "text", colours)
	text("a text in colours in a table", "c.csv", "text", "n,caption\n1,"+colours+"\n")
	text("a text struck over", "c.txt", "text",
		strings.Join(strings.SplitAfter(strings.ReplaceAll(goneText, "e", "e\be"), ""), ""))
	text("colours of a live id", "c.txt", "none", "\x1b[31m1live1\x1b[0m and \x1b[31m1bodutx\x1b[0m\n")
	cases = append(cases, []hiding{
		// The first four hold nothing.
		{"a note", "note.txt", "none", []byte("hi there\n")},
		{"a table of a live post", "live.csv", "none", []byte("id,score\n1live1,4\n")},
		{"a live image", "fine.jpg", "none", live},
		{"a number that is an id", "size.json", "none", []byte(`{"size": 136748, "n": [136748]}`)},
		{"digits beside an id of the release", "k.json", "row 136748", []byte(`{"id":"136748"}{"id":"1live1"}`)},
		{"digits in JSON", "d.json", digits, []byte(`{"a":{"post_id":"136748"}}`)},
		{"a number under id in JSON", "d.json", digits, []byte(`{"posts":[{"id":136748}]}`)},
		{"keys of a map", "k.json", row, []byte(`{"captions":{"1bodut":{"score":3}}}`)},
		{"digits as keys of a map", "k.json", "row 136748", []byte(`{"posts":{"1live1":1,"1live2":2,"136748":3}}`)},
		{"the id as a number", "n.csv", "some", []byte("id,score\n80079653,4\n")},
		{"UTF-16 CSV", "u.csv", digits, wide(binary.LittleEndian, "\ufeffid\tn\r\n136748\t1\r\n")},
		{"UTF-32, as numpy writes it", "a.npy", "some",
			[]byte("\x93NUMPY\x01\x00v\x00{'descr': '<U9', 'fortran_order': False, 'shape': (1,), }\n" + listed(id, "%c",
				"\x00\x00\x00") + "\x00\x00\x00")},
		{"a quoted-printable mail", "m.eml", row,
			[]byte("Content-Transfer-Encoding: quoted-printable\n\n" + strings.ReplaceAll(qp.String(), "_", "=5F"))},
		{"a soft break in a mail", "m.eml", row,
			[]byte("Content-Transfer-Encoding: quoted-printable\n\nsee https://www.reddit.com/r/x/comments/1bo=\ndut/ now\n")},
		{"a link in base64", "l.txt", row,
			[]byte(b64([]byte("a rather long line about nothing at all, and then " + link + " and so on")))},
		{"base64 of base64", "l.txt", img, []byte(b64([]byte(b64(j))))},
		{"a folder in a zip", "a.zip", row, zipWith(zip.FileHeader{Name: "posts/1bodut/"}, nil)},
		{"a stored member", "a.cbz", img, zipWith(zip.FileHeader{Name: "x", Method: zip.Store}, j)},
		{"an encrypted zip", "a.zip", "some",
			patched(patched(zipOf("x", j), "PK\x03\x04", 6, "\x09"), "PK\x01\x02", 8, "\x09")},
		{"a zip of an unknown method", "a.zip", "some",
			patched(patched(zipOf("x", j), "PK\x03\x04", 8, "\x0e"), "PK\x01\x02", 10, "\x0e")},
		{"half of a zip", "a.zip", "some", zipOf("x", []byte(mime))[:1500]},
		{"the second half of a tgz", "a.tgz.002", "some", gzipOf(tarOf("x", []byte(mime)))[1500:]},
		{"half of a gzip", "a.gz", "some", gzipOf([]byte(mime))[:1500]},
		{"nine zips deep", "a.zip", "some", zipOf("a.zip", seven)},
		{"a zip behind a program", "setup.exe", "some",
			append([]byte("MZ\x90\x00 this program cannot be run in DOS mode "), zipOf("x", j)...)},
		{"a link in a tar", "a.tar", row, tarWith(tar.Header{Name: "x", Typeflag: tar.TypeSymlink,
			Linkname: "../t3_1bodut.jpg"}, "")},
		{"a long name in a tar", "a.tar", row, tarWith(tar.Header{Name: strings.Repeat("folder/", 30) + "1bodut.txt",
			Format: tar.FormatGNU}, "hi")},
		{"the name in a gzip", "a.gz", row, gzipWith(gzip.Header{Name: "t3_1bodut.txt"}, []byte("hi"))},
		{"the comment of a gzip", "a.gz", row, gzipWith(gzip.Header{Comment: link}, []byte("hi"))},
		{"the extra of a gzip", "a.gz", row, gzipWith(gzip.Header{Extra: append([]byte{'a', 'b', 22, 0}, link...)},
			[]byte("hi"))},
		{"the second member of a gzip", "a.gz", img, append(gzipOf([]byte("hi")), gzipOf(j)...)},
		{"behind a gzip", "a.gz", img, append(gzipOf([]byte("hi")), j...)},
		{"an image over two members of a gzip", "a.gz", img, append(gzipOf(j[:900]), gzipOf(j[900:])...)},
		{"the second frame of zstd", "a.zst", img, append(zstdOf([]byte("hi")), zstdOf(j)...)},
		{"behind zstd", "a.zst", "some", append(zstdOf([]byte("hi")), j...)},
		{"bzip2", "a.bz2", row,
			unbase64("QlpoOTFBWSZTWWYbzAAAAAxZgAAQQAGgEBZh3oAgACKaGgyHqbUKZMTIMjDqG1TMoZbhIV9pzzvAJUgfF3JFOFCQZhvMAA==")},
		{"the second stream of bzip2", "a.dat", row,
			unbase64("QlpoOTFBWSZTWb+HtY4AAALBgAAQAOGEACAAIg09AhgOINkou5IpwoSF/D2scEJaaDkxQVkmU1lmG8wAAAAMWYAAEEABoBAWYd6AIAAimhoMh6m1CmTEyDIw6htUzKGW4SFfac87wCVIHxdyRThQkGYbzAA=")},
		{"a tar in bzip2", "a.tbz", row,
			unbase64("QlpoOTFBWSZTWV1SEUIAAHJbgMqQQAH9kAAIdmHewAgIIAB1ETSaNqGQxG1AZHqCSiA0AaA0AH3VA1CCaNCEW83Tl9LpkCGDGHjYVQ1ziwe4RCCgNagWx0s4Ta02VYEn7wjQZlHgeqYHtVPkFHEj/nvkySQfi7kinChILqkIoQA=")},
		{"the comment of a zip", "a.zip", row, commentedZip("see 1bodut there", "")},
		{"the comment of a member of a zip", "a.zip", row, commentedZip("", "see 1bodut there")},
		{"the extra of a member of a zip", "a.zip", row, zipWith(zip.FileHeader{Name: "x",
			Extra: append([]byte{'a', 'b', 22, 0}, link...)}, []byte("hi"))},
		{"a note between a zip and its directory", "a.zip", "some", betweenZip("PK\x01\x02",
			zipOf("x", []byte("hi")), "see 1bodut there")},
		{"a note before a member of a zip", "a.zip", row,
			betweenZip("PK\x03\x04", append([]byte("\n"), zipOf("x", []byte("hi"))...), "see 1bodut there")},
		{"the owner in a tar", "a.tar", row, tarWith(tar.Header{Name: "x", Uname: "1bodut"}, "hi")},
		{"a comment in a tar", "a.tar", row, tarWith(tar.Header{Name: "x", Format: tar.FormatPAX,
			PAXRecords: map[string]string{"comment": "see " + link}}, "hi")},
		{"behind the end of a member of a tar", "a.tar", row,
			patched(tarOf("x", []byte("hello")), "hello\x00", 5, "\n"+link+"\n")},
		{"a short packed text", "a.bin", row, append([]byte("\x00\x01junk\x03"), deflated(id)...)},
		{"xz", "a.bin", "gap xz", xz},
		{"xz in a tar", "a.tar", "gap xz", tarOf("x", xz)},
		{"lzma", "a.lzma", "some", unbase64(lzma)},
		{"LZ4", "a.lz4", "gap lz4", append([]byte("\x04\x22\x4d\x18\x60\x40\x82"), deflated(j)...)},
		{"a session of Firefox", "recovery.jsonlz4", "some",
			[]byte("mozLz40\x00\x22\x00\x00\x00\xf1\x08{\"url\":\"t3_1live1\",\"b\":\x10\x00\x70bodut\"}")},
		{"a line of a log in zstd in a tar in bzip2's place", "a.bz2", row,
			zstdOf(tarOf("x.csv", gzipOf([]byte("id\n1bodut\n"))))},
		{"a zlib stream, as git keeps one", "objects/0f3a", "some", deflated(append([]byte("blob 9\x00"), id...))},
		{"an ar with a gzip", "a.deb", "some",
			append([]byte("!<arch>\ndata.tar.gz     0           0     0     100644  200       `\n"),
				gzipOf(tarOf("x", j))...)},
		{"the key of a map in a Parquet", "a.parquet", row,
			parquetOf(struct{ M map[string]int64 }{map[string]int64{"1bodut": 1}})},
		{"a map of images in a Parquet", "a.parquet", img,
			parquetOf(struct{ M map[string][]byte }{map[string][]byte{"x": j}})},
		{"a dictionary in a Parquet", "a.parquet", row, parquetOf(packedRow{Dict: link})},
		{"a dictionary in a Parquet, no row of which has it", "a.parquet", row, unusedLevel(t, "1bodut")},
		{"digits in a dictionary in a Parquet, no row of which has them", "a.parquet", "some", unusedLevel(t, "136748")},
		{"a bound of a column of a Parquet, which no row has", "a.parquet", row,
			strayBound("see t3_1live1", "see t3_1bodut")},
		{"deltas in a Parquet", "a.parquet", "some",
			parquetOf(packedRow{Delta: "https://redd.it/1bodua"}, packedRow{Delta: link})},
		{"the second of two columns of one name in a Parquet", "a.parquet", img,
			bytes.ReplaceAll(parquetOf([]struct{ Aa, Bb []byte }{{nil, []byte{0}}, {nil, j}, {nil, []byte{255, 255}}}...),
				[]byte("\x02Bb"), []byte("\x02Aa"))},
		{"brotli in a Parquet", "a.parquet", "some", parquetOf(packedRow{Brotli: j})},
		{"the name of a column of a Parquet", "a.parquet", row, parquetOf(namedRow{"1live1", 1})},
		{"a column of integers", "a.parquet", digits, parquetOf(struct{ Id int64 }{136748})},
		{"a column of fixed width", "a.parquet", row, parquetOf(struct{ Post [9]byte }{[9]byte(id)})},
		{"a column of floats", "a.parquet", "some", parquetOf(struct{ Post_id float64 }{136748})},
		{"a Parquet in a Parquet", "a.parquet", img, parquetOf(blobRow{1, parquetOf(blobRow{1, j})})},
		{"two Parquets in one", "a.parquet", "some", append(parquetOf(blobRow{1, j}), parquetOf(blobRow{2, nil})...)},
		{"bare ids under another name", "a.parquet", "row 136748",
			parquetOf([]struct{ X string }{{"136748"},
				{"1live1"},
				{"1live2"}}...)},
		{"digits in a list under a name of ids", "a.parquet", "row 136748",
			parquetOf(struct{ Post_ids []string }{[]string{"136748", "1live1"}})},
		{"digits in a list under id", "a.parquet", digits, parquetOf(struct{ Id []string }{[]string{"136748"}})},
		{"an encrypted Parquet", "a.parquet", "some",
			[]byte("PARE" + string(deflated([]byte(mime))) + "\x20\x00\x00\x00PARE")},
		{"a deleted image", "a.db", "some", sqliteOf(t, "CREATE TABLE x (y); INSERT INTO x VALUES (?); DELETE FROM x",
			j)},
		{"a deflated cell", "a.db", "some",
			sqliteOf(t, "CREATE TABLE x (y); INSERT INTO x VALUES (?)", deflated(j))},
		{"base64 in a cell", "a.db", img, sqliteOf(t,
			"PRAGMA page_size=512; CREATE TABLE x (y); INSERT INTO x VALUES (?)", b64(j))},
		{"a journal alone", "a.db-wal", row, walOf(t, "CREATE TABLE x (y)", "INSERT INTO x VALUES ('t3_1bodut')")},
		{"an image in a journal alone", "a.db-wal", "some",
			walOf(t, "CREATE TABLE x (y)", "INSERT INTO x VALUES (x'"+hex.EncodeToString(j)+"')")},
		{"ascii85", "b.txt", "none", a85[:ascii85.Encode(a85, j)]},
		{"base64 in UTF-16", "b.txt", img,
			wide(binary.LittleEndian, "\ufeff<img src=\"data:image/jpeg;base64,"+b64(j)+"\">")},
		{"base64 of gzip in JSON", "b.json", img, []byte(`{"z":"` + b64(gzipOf(j)) + `"}`)},
		{"a mail with a zip", "m.mbox", img,
			[]byte("From a\nContent-Type: application/zip\nContent-Transfer-Encoding: base64\n\n" + wrapped(b64(zipOf("x",
				j)), 76) + "\n\n--b--\n")},
		{"a digest as a name", "cache/" + hex.EncodeToString(sum[:]), "any 1bodut", []byte("nothing here\n")},
		{"a digest of 32 bytes", "a.parquet", "some", parquetOf(blobRow{1, sum[:]})},
		{"a small frame of a GIF", "i.gif", like, framesOf(half)},
		{"a small frame over another", "i.gif", like, framesOf(drawn(9), half)},
		{"a TIFF", "i.tif", "some", tif.Bytes()},
		{"a BMP", "i.bmp", "some", bm.Bytes()},
		{"a cut JPEG", "i.jpg", "some", j[:len(j)*2/3]},
		{"a cut PNG", "i.png", "some", p[:len(p)*2/3]},
		{"a JPEG without its start", "i.bin", "some", j[2:]},
		{"a PNG with a wrong sum", "i.png", "some",
			patched(p, "IDAT", 4, "\x78\x9c"+string(p[bytes.Index(p, []byte("IDAT"))+6:][:20])+"\xff")},
		{"a WebP", "i.webp", "some", append([]byte("RIFF\x80\x00\x00\x00WEBPVP8 \x74\x00\x00\x00"),
			j[:116]...)},
		{"an image in a thin frame", "i.png", "none", encodePNG(warp(100, 84,
			func(x, y int) color.Color { return pic.At(x-2, y-2) }))},
		{"a collage", "i.png", "none", encodePNG(collage)},
		{"a transparent image", "i.png", "none",
			encodePNG(ghost)},
		{"a PPM", "i.ppm", "some", append([]byte("P6 96 80 255\n"), pic.Pix...)},
		{"pixels of numpy", "a.npy", "some",
			append([]byte("\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (80, 96, 4), }\n"),
				pic.Pix...)},
		{"pixels in a PDF", "a.pdf", "some",
			pdfOf("/Subtype /Image /Width 96 /Height 80 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /FlateDecode",
				deflated(pic.Pix))},
		{"a JPEG in a PDF", "a.pdf", img, pdfOf("/Subtype /Image /Filter /DCTDecode", j)},
		{"a JPEG in base 85 in a PDF", "a.pdf", "some",
			pdfOf("/Filter [/ASCII85Decode /DCTDecode]", append(a85[:ascii85.Encode(a85, j)], "~>"...))},
		{"a JPEG in hex in a PDF", "a.pdf", "some",
			pdfOf("/Filter [/ASCIIHexDecode /DCTDecode]", []byte(wrapped(hex.EncodeToString(j), 70)+">"))},
		{"a link in a PDF", "a.pdf", row, pdfOf("/Filter /FlateDecode", deflated([]byte("/URI ("+link+")")))},
		{"an octal link in a PDF", "a.pdf", "some", pdfString(`t3\1371bodut`)},
		{"a kerned text in a PDF", "a.pdf", "some", pdfOf("", []byte("BT [(t3_1b) -20 (odut)] TJ ET"))},
		{"a hex string in a PDF", "a.pdf", "some", pdfOf("", []byte("BT <"+hex.EncodeToString(id)+"> Tj ET"))},
		{"a title of a PDF", "a.pdf", "some", pdfOf("/Title <FEFF"+hex.EncodeToString(wide(binary.BigEndian, link))+">",
			nil)},
		{"a file in a PDF", "a.pdf", "some", pdfOf("/Type /EmbeddedFile /Filter /FlateDecode", deflated(zipOf("x", j)))},
		{"docx", "a.docx", row, docx("<w:t>" + link + "</w:t>")},
		{"docx in runs", "a.docx", row,
			docx("<w:r><w:t>https://redd.it/1bo</w:t></w:r><w:r><w:rPr/><w:t>dut</w:t></w:r>")},
		{"docx with an image", "a.docx", like, zipOf("word/media/image1.jpeg", encodeJPEG(half, 60))},
		{"pptx", "a.pptx", row, zipOf("ppt/notesSlides/notesSlide1.xml", []byte("<a:t>t3_1bodut</a:t>"))},
		{"odt with a thumbnail", "a.odt", like, zipOf("Thumbnails/thumbnail.png", encodePNG(half))},
		{"xlsx", "a.xlsx", row, zipOf("xl/sharedStrings.xml",
			[]byte("<sst><si><t>id</t></si><si><t>1bodut</t></si></sst>"))},
		{"xlsx of digits", "a.xlsx", "some", zipOf("xl/worksheets/sheet1.xml",
			[]byte(`<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c></row><row r="2">`+cell("A2",
				"136748")+"</row></sheetData>"))},
		{"xlsx with a cell in parts", "a.xlsx", row, zipOf("xl/sharedStrings.xml", []byte("<sst><si><t>id</t></si>"+
			"<si><r><t>1bo</t></r><r><rPr><b/></rPr><t>dut</t></r></si><si><t>note</t></si></sst>"))},
		{"xlsx with an inline string in parts", "a.xlsx", row, zipOf("xl/worksheets/sheet1.xml",
			[]byte(`<x:row r="1"><x:c r="A1" t="inlineStr"><x:is><x:t>id</x:t></x:is></x:c></x:row><x:row r="2">`+
				`<x:c r="A2" t="inlineStr"><x:is><x:r><x:t>1bo</x:t></x:r><x:r><x:rPr/><x:t>dut</x:t></x:r></x:is></x:c>`+
				`<x:c r="B2"><x:v>3</x:v></x:c></x:row>`))},
		{"ods with a cell in parts", "a.ods", row, zipOf("content.xml", []byte("<table:table-row><table:table-cell>"+
			"<text:p>id</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>1bo"+
			"<text:span text:style-name=\"T1\">dut</text:span></text:p></table:table-cell><table:table-cell><text:p>n"+
			"</text:p></table:table-cell></table:table-row>"))},
		{"a cell in parts in HTML", "a.html", row,
			[]byte("<table><tr><th>id<th>n</tr><TR><TD>1bo<b>dut</b></TD><TD>3</TD></TR></table>")},
		{"a cell in parts in CSV", "a.csv", row, []byte("id,n\n1bo<b>dut</b>,3\n")},
		{"cells beside each other", "a.html", "none", []byte("<tr><td>1bo</td><td>dut</td></tr>")},
		{"lines below each other", "a.html", "none", []byte("<p>1bo<br/>dut</p>")},
		{"a space of OpenDocument", "a.ods", "none",
			zipOf("content.xml", []byte("<text:p>1bo<text:s text:c=\"2\"/>dut</text:p>"))},
		{"an old Word file", "a.doc", "some", ole},
		{"RTF", "a.rtf", "none", []byte(`{\rtf1 see t3\'5f1bodut}`)},
		{"a text in other letters", "t.txt", "none", []byte(strings.ReplaceAll(goneText, "a", "\u0430"))},
		{"HTML with tags", "a.html", "some", []byte("<p>https://redd.it/<b>1bod</b>ut</p>")},
		{"a table in HTML", "a.html", "some",
			[]byte("<table><tr><th>id</th><th>n</th></tr><tr><td>136748</td><td>3</td></tr></table>")},
		{"SQL", "a.sql", "some", []byte("INSERT INTO posts (id, n) VALUES (136748, 1);\n")},
		{"COPY of SQL", "a.sql", "some", []byte("COPY posts (id, n) FROM stdin;\n136748\t1\n\\.\n")},
		{"a text in a docx", "a.docx", "text", docx("<w:t>" + strings.ReplaceAll(goneText, " ",
			" </w:t><w:t>") + "</w:t>")},
		{"a text in a Parquet", "a.parquet", "text", parquetOf(textRow{1, goneText})},
		{"a text in a dictionary in a Parquet, no row of which has it", "a.parquet", "text", unusedLevel(t, goneText)},
		{"the name of an empty file", "1bodut.jpg", "any 1bodut", []byte("")},
		{"a digit name in a zip", "a.zip", "some", zipOf("136748.jpg", []byte("hi"))},
		{"a folder that has bytes", "a.zip", "some", patched(zipOf("folder0", j), "folder0", 6, "/")},
		{"a tar of old", "a.tar", img, oldTar},
		{"the path of an image in a Parquet", "a.parquet", "some",
			parquetOf(struct{ Path string }{"136748.jpg"})},
		{"JSON in a Parquet", "a.parquet", digits, parquetOf(struct{ Raw string }{`{"id":"136748"}`})},
		{"JSON in a cell", "a.db", digits, sqliteOf(t, `CREATE TABLE x (y); INSERT INTO x VALUES ('{"id":"136748"}')`)},
		{"keys and values in a database", "a.db", "some",
			sqliteOf(t, `CREATE TABLE x (key, value); INSERT INTO x VALUES ('id', '136748')`)},
		{"an image after a text", "a.txt", img, append([]byte("a note\n\n"), j...)},
		{"an image after much of nothing", "a.iso", img, append(make([]byte, 40000), j...)},
		{"an image with other line ends", "i.jpg", "some", bytes.ReplaceAll(j, []byte("\n"), []byte("\r\n"))},
		{"an upright image by Exif", "i.jpg", like,
			withSegment(encodeJPEG(warp(80, 96, func(x, y int) color.Color { return pic.At(95-y, x) }), 70), 0xe1,
				"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")},
		{"a text in a notebook", "n.ipynb", "text",
			[]byte(`{"cells":[{"source":["when the meeting could have\n","been an email again"]}]}`)},
		{"a text as a name", goneText + ".txt", "text", []byte("hi")},
		{"a text in Markdown", "t.md", "text", []byte("*when* the **meeting** could\n> have been an _email_ again")},
		{"a text in capitals of HTML", "t.html", "text",
			[]byte("WHEN&#32;THE&#32;MEETING&#x20;COULD HAVE BEEN AN EMAIL AGAIN")},
		{"a text with soft breaks", "t.eml", "text", []byte("when the meet=\ning could have been an em=\nail again")},
	}...)
	return cases
}

// TestFoundInEveryForm finds the ids, images and captions of removed posts however a program spelt, changed, packed or
// named them, or says that it cannot read the file; and accuses no file that has nothing of one.
func TestFoundInEveryForm(t *testing.T) {
	published, fresh := newWorld(t, false, true), newWorld(t, true, true)
	cases, captions := []hiding{}, []hiding{}
	for _, c := range formCases(t, published) {
		if strings.HasPrefix(c.want, "text") {
			captions = append(captions, c)
		} else {
			cases = append(cases, c)
		}
	}
	if len(cases)+len(captions) < 350 {
		t.Errorf("only %d cases", len(cases)+len(captions))
	}
	published.finds(t, cases)
	fresh.finds(t, captions)
}

// TestFolders judges the names of folders in which nothing lies, and of those that were named, as names of files are;
// in the workspace it names each.
func TestFolders(t *testing.T) {
	w, fresh := newWorld(t, false, false), newWorld(t, true, false)
	ordinary := []string{"empty", "1live1", "posts/136748", "images/1b"}
	for _, name := range append([]string{"1bodut", "t3_1bodut", "posts/1bodut.jpg",
		strings.ReplaceAll(goneText, " ", "-")}, ordinary...) {
		in, kind := w, FoundRow
		if strings.HasPrefix(name, "when-") {
			in, kind = fresh, FoundText
		}
		found := filepath.Join(t.TempDir(), "found")
		for _, dir := range []string{found, in.copied, in.ws, ""} {
			folder, top := filepath.Join(dir, name), strings.Split(name, "/")[0]
			files := []string{found}
			if dir == "" { // it is named itself, and has a file
				folder = filepath.Join(t.TempDir(), name)
				files = []string{folder}
			}
			testkit.OK(t, os.MkdirAll(found, 0o700), os.MkdirAll(folder, 0o700))
			if dir == "" {
				testkit.OK(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("hi"), 0o600))
			}
			r := in.audit(t, in.ws, files...)
			if dir != "" && (dir != in.ws || top != "images") {
				testkit.OK(t, os.RemoveAll(filepath.Join(dir, top)))
			}
			hit := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return strings.HasSuffix(f.Where, name) && slices.Contains(f.Kinds, kind) &&
					(kind == FoundText || f.ID == goneJPEG)
			})
			if want := !slices.Contains(ordinary, name); hit != want && (want || dir == found || dir == "") {
				t.Errorf("%s in %q: %s, findings %+v", name, dir, r.Verdict, r.Findings)
			}
			noted := slices.ContainsFunc(r.Notes,
				func(n string) bool { return strings.HasPrefix(n, name+" is an empty folder") })
			if want := dir == in.ws && top != "images"; noted != want {
				t.Errorf("%s in %q: notes %q", name, dir, r.Notes)
			}
		}
	}
}
