package audit

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"rehydrate/audit/caption"
	"rehydrate/audit/verify"
	"rehydrate/dedupe"
	"rehydrate/internal/picture"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// The posts of the world: two whose image was purged, one with an id of digits, one of which nothing was ever stored,
// and three that may stay.
const (
	goneJPEG, gonePNG, goneDigits, goneUnseen = "1bodut", "1bf0nv", "136748", "1nosee"
	live1, live2                              = "1live1", "1live2"
)

const (
	goneText = "when the meeting could have been an email again"
	liveText = "the cat sat down on the new white keyboard"
)

// A world is a release with a workspace, and a registered copy of it.
type world struct {
	dir, ws, copied string
	config          Config
	images          map[string][]byte // as their hosts sent them
}

// drawn makes an image that has a hash of its own.
func drawn(seed uint32) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, 96, 80))
	cells := [48]uint8{}
	for i := range cells {
		seed = seed*1664525 + 1013904223
		cells[i] = byte(seed >> 24)
	}
	for y := range 80 {
		for x := range 96 {
			v := cells[y/14*8+x/12]
			img.Set(x, y, color.RGBA{v, v / 2, 255 - v, 255})
		}
	}
	return img
}

func encodeJPEG(img image.Image, quality int) []byte {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, img, &jpeg.Options{Quality: quality})
	return b.Bytes()
}

func encodePNG(img image.Image) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, img)
	return b.Bytes()
}

// newWorld makes a world. A fresh one still has the content of the posts that must be gone, as before a purge; a
// published one has a manifest with the digests of its images.
func newWorld(t *testing.T, fresh, published bool) *world {
	t.Helper()
	dir, ctx := t.TempDir(), t.Context()
	w := &world{dir: dir, ws: filepath.Join(dir, "ws"), copied: filepath.Join(dir, "copy"), images: map[string][]byte{
		goneJPEG: withSegment(encodeJPEG(drawn(1), 85), 0xe1, "Exif\x00\x00 taken with a phone"), gonePNG: encodePNG(drawn(2)),
		live1: encodeJPEG(drawn(3), 85), live2: encodePNG(drawn(4))}}
	rows := []string{"id,split,figurative,severity,related_content,modality,context,sha256,sha256_stripped,sha256_pixels,phash"}
	for _, id := range []string{goneJPEG, gonePNG, goneDigits, goneUnseen, live1, live2} {
		row := id + ",train,F1,SS6,SR3,M1,C1,,,,"
		if body := w.images[id]; body != nil && published {
			d, h, err := identify(body)
			testkit.OK(t, err)
			row = fmt.Sprintf("%s,train,F1,SS6,SR3,M1,C1,%s,%s,%s,%016x", id, d.File, d.Stripped, d.Pixels, h.Bits)
		}
		rows = append(rows, row)
	}
	release := filepath.Join(dir, "release")
	testkit.OK(t, os.MkdirAll(release, 0o700))
	testkit.OK(t, os.Mkdir(w.copied, 0o700))
	testkit.OK(t, os.WriteFile(filepath.Join(release, "annotations.csv"), []byte(strings.Join(rows, "\n")+"\n"), 0o600))
	testkit.OK(t, os.WriteFile(filepath.Join(release, "release.toml"), []byte("name = \"Demo\"\nversion = \"1.0\"\nmanifest = \"annotations.csv\"\nschema = \"figsim\"\n"), 0o600))
	r, err := manifest.Open(release, manifest.Options{})
	testkit.OK(t, err)
	_, err = r.Check(ctx)
	testkit.OK(t, err)
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	ws, err := workspace.Open(ctx, w.ws, workspace.Options{Now: clock})
	testkit.OK(t, err)
	testkit.OK(t, ws.Load(ctx, workspace.Binding{Release: r.Name, ReleaseDigest: r.Digest, ManifestDigest: r.ManifestDigest, Schema: r.Schema, Splits: []string{"train"}}, r.Entries(ctx), nil))
	for _, id := range []manifest.PostID{goneJPEG, gonePNG, live1, live2} {
		testkit.OK(t, ws.SetPosts(ctx, []workspace.Post{{ID: id, State: manifest.StateLive, CheckedAt: now, LiveAt: now}}))
		w.store(t, ws, id)
	}
	testkit.OK(t, ws.SetPosts(ctx, []workspace.Post{{ID: live1, State: manifest.StateLive, CheckedAt: now, LiveAt: now}, {ID: live2, State: manifest.StateLive, CheckedAt: now, LiveAt: now}}))
	for _, id := range []manifest.PostID{goneJPEG, gonePNG, goneDigits, goneUnseen} {
		testkit.OK(t, ws.SetPosts(ctx, []workspace.Post{{ID: id, State: manifest.StateRemoved, Reason: "moderator", CheckedAt: now}}))
		testkit.OK(t, ws.AddTombstones(ctx, []workspace.Tombstone{{Tombstone: manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: now}, Reason: "moderator"}}))
		if !fresh {
			testkit.OK(t, ws.Erase(ctx, id))
		}
	}
	testkit.OK(t, os.WriteFile(filepath.Join(w.copied, "README.md"), []byte("hi"), 0o600))
	testkit.OK(t, ws.SetCopy(ctx, workspace.Copy{Path: w.copied, Note: "a colleague", Format: "parquet", Made: now,
		Files: []workspace.File{{Name: "README.md", Size: 2, SHA256: state.SHA256([]byte("hi"))}}}))
	testkit.OK(t, ws.Close())
	w.config = Config{Release: r, Policy: policy.Default(), Now: clock}
	return w
}

// store stores an image and a text as a run does.
func (w *world) store(t *testing.T, ws *workspace.Workspace, id manifest.PostID) {
	t.Helper()
	body, ctx := w.images[string(id)], t.Context()
	d, h, err := identify(body)
	testkit.OK(t, err)
	format := picture.Format(body)
	stripped, err := picture.Strip(body, format)
	testkit.OK(t, err)
	key := manifest.Key{ID: id}
	testkit.OK(t, ws.StoreImage(ctx, key, stripped, workspace.Image{Source: state.SHA256([]byte(id)), OriginalSHA256: d.File, OriginalBytes: int64(len(body)), PixelsSHA256: d.Pixels,
		Format: format, Width: 96, Height: 80, PHash: h.Bits, Flat: h.Flat, HashKind: dedupe.HashKind(), Limits: "l"}))
	text := liveText + " of " + string(id)
	if id == goneJPEG || id == gonePNG {
		text = goneText + "\nfor " + string(id)
	}
	testkit.OK(t, ws.SetReadings(ctx, workspace.NewReading{Key: key, Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: state.SHA256(stripped), Text: text}}))
}

// audit audits the workspace, offline, and the files that are named.
func (w *world) audit(t *testing.T, ws string, files ...string) Report {
	t.Helper()
	opened, err := workspace.Open(t.Context(), ws, workspace.Options{ReadOnly: true})
	testkit.OK(t, err)
	defer opened.Close()
	c := w.config
	c.Workspace, c.Files = opened, files
	r, err := Audit(t.Context(), c)
	testkit.OK(t, err)
	return r
}

// Builders of files as other programs write them.

func withSegment(b []byte, marker byte, data string) []byte {
	segment := append([]byte{0xff, marker, byte((len(data) + 2) >> 8), byte(len(data) + 2)}, data...)
	return bytes.Join([][]byte{b[:2], segment, b[2:]}, nil)
}

// withSegments makes a JPEG at least so large, by segments of noise that no decoder reads.
func withSegments(b []byte, size int) []byte {
	noise := make([]byte, 60_000)
	for i := range noise {
		noise[i] = byte(i*i*7 + i>>3)
	}
	for len(b) < size {
		b = withSegment(b, 0xfe, string(noise[:min(len(noise), size)]))
	}
	return b
}

func wide32(order binary.AppendByteOrder, s string) (b []byte) {
	for _, r := range s {
		b = order.AppendUint32(b, uint32(r))
	}
	return b
}

func number36(id string) int64 { n, _ := strconv.ParseInt(id, 36, 64); return n }

// csvOf writes a table as pandas does: quoted where it must be.
func csvOf(sep string, rows ...[]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Comma = rune(sep[0])
	_ = w.WriteAll(rows)
	return b.Bytes()
}

func tarOf(name string, body []byte) []byte { return tarWith(tar.Header{Name: name}, string(body)) }

func zipOf(name string, body []byte) []byte {
	return zipWith(zip.FileHeader{Name: name, Method: zip.Deflate}, body)
}

// storedZip is a zip of one member that is not packed.
func storedZip(body []byte) []byte {
	return zipWith(zip.FileHeader{Name: "x", Method: zip.Store}, body)
}

// hiddenZip is a zip whose directory names only the last of its members.
func hiddenZip(name string, body []byte) []byte {
	first := zipOf(name, body)
	return append(first[:bytes.Index(first, []byte("PK\x01\x02"))], zipOf("readme", []byte("hi"))...)
}

func gzipOf(body []byte) []byte { return gzipWith(gzip.Header{}, body) }

func zstdOf(body []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(body, nil)
}

func skippableZstd(body []byte) []byte {
	return append(append(binary.LittleEndian.AppendUint32([]byte("\x50\x2a\x4d\x18"), uint32(len(body))), body...), zstdOf([]byte("hi"))...)
}

func parquetOf[T any](rows ...T) []byte {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(&parquet.Zstd))
	_, _ = w.Write(rows)
	_ = w.Close()
	return b.Bytes()
}

// unusedLevel is a Parquet of three rows, in whose dictionary a text is that no row has.
func unusedLevel(t testing.TB, text string) []byte {
	type row struct {
		ID    string `parquet:"id"`
		Title string `parquet:"title,dict"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Uncompressed))
	_, err := w.Write([]row{{live1, "one"}, {live2, text}, {"1live9", "two"}})
	testkit.OK(t, err, w.Close())
	// Each row says which value it has, in a run of its own.
	return testkit.ForgePage(t, b.Bytes(), "\x02\x02\x00\x02\x01\x02\x02", "\x02\x02\x00\x02\x00\x02\x02")
}

func pdfOf(dictionary string, stream []byte) []byte {
	return []byte(fmt.Sprintf("%%PDF-1.4\n%%\xe2\xe3\xcf\xd3\n1 0 obj\n<< %s /Length %d >>\nstream\n%s\nendstream\nendobj\n%%%%EOF\n", dictionary, len(stream), stream))
}

func deflated(body []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}

func pngChunk(kind string, data []byte) []byte {
	b := encodePNG(drawn(3))
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), kind...)
	return bytes.Join([][]byte{b[:33], chunk, data, {0, 0, 0, 0}, b[33:]}, nil)
}

func sqliteOf(t testing.TB, make string, values ...any) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", name)
	testkit.OK(t, err)
	for _, statement := range strings.Split(make, ";") {
		_, err = db.ExecContext(t.Context(), statement, values[:strings.Count(statement, "?")]...)
		testkit.OK(t, err)
	}
	testkit.OK(t, db.Close())
	body, err := os.ReadFile(name)
	testkit.OK(t, err)
	return body
}

func wrapped(s string, n int) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + "\n")
		s = s[n:]
	}
	return b.String() + s
}

type blobRow struct {
	N    int64  `parquet:"n"`
	Data []byte `parquet:"data"`
}

type nestedRow struct {
	A []struct {
		B [][]byte `parquet:"b,list"`
	} `parquet:"a,list"`
}

type textRow struct {
	N    int64  `parquet:"n"`
	Link string `parquet:"full_link"`
}

var b64 = base64.StdEncoding.EncodeToString

// wraps are the ways in which bytes lie in a file. Each is given a name in which nothing tells the post.
var wraps = []struct {
	name string
	wrap func(t testing.TB, body []byte) []byte
}{
	{"as it is", func(_ testing.TB, b []byte) []byte { return b }},
	{"in a tar", func(_ testing.TB, b []byte) []byte { return tarOf("000.jpg", b) }},
	{"in a tgz", func(_ testing.TB, b []byte) []byte { return gzipOf(tarOf("000.jpg", b)) }},
	{"in a zip", func(_ testing.TB, b []byte) []byte { return zipOf("word/media/image1.jpeg", b) }},
	{"in a zip in a zip", func(_ testing.TB, b []byte) []byte { return zipOf("a.zip", zipOf("x", b)) }},
	{"in a zip whose record says stored", func(_ testing.TB, b []byte) []byte { return patched(zipOf("x", b), "PK\x03\x04", 8, "\x00") }},
	{"in a zip whose record says packed", func(_ testing.TB, b []byte) []byte { return patched(storedZip(b), "PK\x03\x04", 8, "\x08") }},
	{"in a zip whose record is short", func(_ testing.TB, b []byte) []byte {
		return patched(patched(storedZip(b), "PK\x03\x04", 6, "\x00"), "PK\x03\x04", 18, "\x20\x00\x00\x00")
	}},
	{"before a zip", func(_ testing.TB, b []byte) []byte { return append(bytes.Clone(b), zipOf("x", []byte("hi"))...) }},
	{"in zstd", func(_ testing.TB, b []byte) []byte { return zstdOf(b) }},
	{"in a part that zstd skips", func(_ testing.TB, b []byte) []byte { return skippableZstd(b) }},
	{"in a Parquet", func(_ testing.TB, b []byte) []byte { return parquetOf(blobRow{1, b}) }},
	{"in a list in a struct of a Parquet", func(_ testing.TB, b []byte) []byte {
		var r nestedRow
		r.A = append(r.A, struct {
			B [][]byte `parquet:"b,list"`
		}{B: [][]byte{b}})
		return parquetOf(r)
	}},
	{"as base64 in a Parquet", func(_ testing.TB, b []byte) []byte { return parquetOf(textRow{1, b64(b)}) }},
	{"as gzip in a Parquet", func(_ testing.TB, b []byte) []byte { return parquetOf(blobRow{1, gzipOf(b)}) }},
	{"in the footer of a Parquet", func(_ testing.TB, b []byte) []byte {
		var out bytes.Buffer
		w := parquet.NewGenericWriter[textRow](&out, parquet.KeyValueMetadata("note", b64(b)))
		_ = w.Close()
		return out.Bytes()
	}},
	{"in a database", func(t testing.TB, b []byte) []byte {
		return sqliteOf(t, "CREATE TABLE x (y); INSERT INTO x VALUES (?)", b)
	}},
	{"behind a database", func(t testing.TB, b []byte) []byte { return append(sqliteOf(t, "CREATE TABLE x (y)"), b...) }},
	{"in JSON", func(_ testing.TB, b []byte) []byte { return []byte(`{"a":{"b":["x","` + b64(b) + `"]}}`) }},
	{"in JSON Lines", func(_ testing.TB, b []byte) []byte { return []byte("{\"n\":1}\n{\"i\":\"" + b64(b) + "\"}\n") }},
	{"in CSV", func(_ testing.TB, b []byte) []byte { return []byte("n,data\n1,x\n2," + b64(b) + "\n") }},
	{"as a data address", func(_ testing.TB, b []byte) []byte {
		return []byte(`<html><img src="data:image/jpeg;base64,` + b64(b) + `">`)
	}},
	{"as base64 in lines", func(_ testing.TB, b []byte) []byte { return []byte("begin\n" + wrapped(b64(b), 76) + "\nend\n") }},
	{"as base64 for addresses", func(_ testing.TB, b []byte) []byte {
		return []byte("x = '" + base64.RawURLEncoding.EncodeToString(b) + "'")
	}},
	{"as hex", func(_ testing.TB, b []byte) []byte { return []byte("blob: 0x" + hex.EncodeToString(b)) }},
	{"in a dictionary of a Parquet, in no row", func(t testing.TB, b []byte) []byte {
		return unusedLevel(t, string(b))
	}},
	{"as hex in a Parquet", func(_ testing.TB, b []byte) []byte {
		return parquetOf(textRow{1, strings.ToUpper(hex.EncodeToString(b))})
	}},
	{"in bytes of no kind", func(_ testing.TB, b []byte) []byte { return append([]byte("\x00\x01\x02junk\x03"), b...) }},
	{"behind another image", func(_ testing.TB, b []byte) []byte { return append(encodeJPEG(drawn(3), 85), b...) }},
	{"in a segment of another image", func(_ testing.TB, b []byte) []byte { return withSegment(encodeJPEG(drawn(3), 85), 0xe2, string(b)) }},
	{"in a chunk of another image", func(_ testing.TB, b []byte) []byte { return pngChunk("eXIf", b) }},
	{"in a packed chunk of another image", func(_ testing.TB, b []byte) []byte {
		return pngChunk("zTXt", append([]byte("k\x00\x00"), deflated([]byte(b64(b)))...))
	}},
	{"in a PDF", func(_ testing.TB, b []byte) []byte { return pdfOf("/Subtype /Image /Filter /DCTDecode", b) }},
	{"packed in a PDF", func(_ testing.TB, b []byte) []byte { return pdfOf("/Filter [/FlateDecode /DCTDecode]", deflated(b)) }},
}

// holders are the ways in which a text lies in a file.
var holders = []struct {
	name string
	hold func(t testing.TB, text string) []byte
}{
	{"in a note", func(_ testing.TB, s string) []byte { return []byte("seen: " + s + "\n") }},
	{"in CSV", func(_ testing.TB, s string) []byte { return []byte("n,link\n1," + s + "\n") }},
	{"in JSON", func(_ testing.TB, s string) []byte { b, _ := json.Marshal(map[string]any{"a": []any{1, s}}); return b }},
	{"in a Parquet", func(_ testing.TB, s string) []byte { return parquetOf(textRow{1, s}) }},
	{"in a database", func(t testing.TB, s string) []byte {
		return sqliteOf(t, "CREATE TABLE x (y); INSERT INTO x VALUES (?)", s)
	}},
	{"in the free pages of a database", func(t testing.TB, s string) []byte {
		return sqliteOf(t, "CREATE TABLE x (y); PRAGMA secure_delete=OFF; CREATE TABLE z (y); INSERT INTO z VALUES (?); DROP TABLE z", s)
	}},
	{"in a comment of an image", func(_ testing.TB, s string) []byte { return withSegment(encodeJPEG(drawn(3), 85), 0xfe, s) }},
}

// containerCases are files that hold an image, an id or a caption of a removed post in the forms of wraps and holders,
// and in tables, for a world whose content was purged; those of published and fresh hold what is recognised by the
// hashes that a release publishes, and by what is held before a purge.
func containerCases(t testing.TB, w *world) (purged, published, fresh []hiding) {
	jpg := w.images[goneJPEG]
	decoded, err := picture.Decode(jpg)
	testkit.OK(t, err)
	stripped, err := picture.Strip(jpg, "jpeg")
	testkit.OK(t, err)
	const img, row, unseen, said = "image " + goneJPEG, "row " + goneDigits, "row " + goneUnseen, "text " + goneJPEG
	add := func(name, file, want string, body []byte) { purged = append(purged, hiding{name, file, want, body}) }
	text := func(name, file, want, body string) { add(name, file, want, []byte(body)) }
	for _, wrap := range wraps {
		add("the image as it was sent, "+wrap.name, "f", img, wrap.wrap(t, jpg))
		add("another picture's bytes, "+wrap.name, "f", "image "+gonePNG, wrap.wrap(t, w.images[gonePNG]))
	}
	add("the image without its EXIF", "f", img, stripped)
	add("the image with a comment", "f", img, withSegment(jpg, 0xfe, "hello"))
	add("the image with a byte behind it", "f", img, append(bytes.Clone(jpg), 'x'))
	add("the image with 4 KB behind it", "f", img, append(bytes.Clone(jpg), make([]byte, 4096)...))
	add("the image as PNG, pixel for pixel", "f", img, encodePNG(decoded))

	lines := func(before, between, after string) string {
		return before + strings.ReplaceAll(wrapped(b64(jpg), 76), "\n", between) + after
	}
	text("base64 in lines behind tabs", "f", img, lines("<img src=\"data:image/jpeg;base64,\n\t\t", "\n\t\t", "\">\n"))
	text("base64 in a list in one line", "f", img, lines(`{"a": ["`, `", "`, `"]}`))
	text("base64 in lines that a program joins", "f", img, lines("x = \"", "\\\n", "\"\n"))
	text("base64 in strings behind tabs", "f", img, lines("char *a =\n\t\"", "\"\n\t\"", "\";\n"))
	text("base64 in arguments", "f", img, lines("x <- paste0(\"", "\",\n\"", "\")\n"))

	base36 := number36(goneUnseen)
	type numbered struct {
		ID int64 `parquet:"id"`
	}
	type withGaps struct { // a column with gaps is one of floating-point numbers to pandas
		ID   string   `parquet:"id"`
		Post *float64 `parquet:"post_id"`
	}
	text("an id with a second image", "f", unseen+"/1", "id,n\n"+goneUnseen+"/1,2\n")
	text("an id with a zero-width space in it", "f", unseen, "see 1no\u200bsee there\n")
	text("an id with a soft hyphen in it, in CSV", "f", unseen, "id,n\n1no\u00adsee,2\n")
	add("an id as a number in base 36", "f", unseen, parquetOf(numbered{base36}))
	add("an id as a floating-point number", "f", unseen,
		parquetOf(withGaps{ID: live1}, withGaps{live2, new(float64(base36))}))
	add("an id as a floating-point number in a database", "f", unseen,
		sqliteOf(t, fmt.Sprintf("CREATE TABLE x (id TEXT, post_id REAL); INSERT INTO x VALUES ('%s', NULL), ('%s', %d)",
			live1, live2, base36)))
	text("an id as a floating-point number in JSON", "f", unseen,
		fmt.Sprintf(`[{"id": %q, "post_id": null}, {"id": %q, "post_id": %d.0}]`, live1, live2, base36))
	type decimals struct {
		Name string `parquet:"name"`
		Post int64  `parquet:"post_id,decimal(2:18)"`
	}
	type singles struct {
		Name string  `parquet:"name"`
		Post float32 `parquet:"post_id"`
	}
	add("an id of digits as a decimal number", "f", "gap "+mayBeIDs, parquetOf(decimals{"x", 13674800}))
	add("an id of digits as a number of single precision", "f", "gap "+mayBeIDs, parquetOf(singles{"x", 136748}))
	text("an id of digits with decimals in JSON", "f", "gap "+mayBeIDs, `[{"post_id": `+goneDigits+`.00}]`)
	text("an id of digits in thousands", "f.csv", row, "post_id,n\n\"777,777\",1\n\"136,748\",2\n")
	text("an id of digits behind a zero", "f.csv", row, "post_id,n\n"+live1+",1\n0"+goneDigits+",2\n")
	// An id that is a word, beside a cell that is longer than what a first look reads.
	for _, size := range []int{800, 80_000} {
		add(fmt.Sprintf("an id of digits beside a cell of %d bytes", size), "f.csv", row,
			csvOf(",", []string{"post_id", "data"}, []string{live1, strings.Repeat("ab ", size/3)},
				[]string{goneDigits, "x"}))
	}
	purged = append(append(purged, pandasCases(jpg)...), numpyCases()...)

	// By their looks alone.
	for in, cases := range map[string]*[]hiding{"hash": &published, "workspace": &fresh} {
		like := func(name string, body []byte) {
			*cases = append(*cases, hiding{"the image " + name + ", by its " + in, "f", "like " + goneJPEG, body})
		}
		like("recompressed", encodeJPEG(decoded, 40))
		like("mirrored", encodeJPEG(warp(96, 80, func(x, y int) color.Color { return decoded.At(95-x, y) }), 80))
		like("in a GIF's frame", framesOf(drawn(3), decoded))
	}
	caption := goneText + " for " + goneJPEG[1:]
	for _, holder := range holders {
		fresh = append(fresh, hiding{"a text " + holder.name, "f", said, holder.hold(t, caption)})
	}
	names, cells := make([]string, 2000), slices.Repeat([]string{"words of no post"}, 2000)
	for i := range names {
		names[i] = "column" + strconv.Itoa(i)
	}
	cells[len(cells)-1] = caption
	fresh = append(fresh,
		hiding{"a text in the last of very many columns", "f", said, csvOf(",", names, cells)},
		hiding{"a text in capitals, in a document", "f", said,
			[]byte("<w:t>when the MEET</w:t><w:t>ING could have been an email again</w:t>")})
	return purged, published, fresh
}

// pandasCases are what df.to_csv() writes of a column of images: the bytes as Python prints them, as large as they are.
func pandasCases(jpg []byte) (cases []hiding) {
	for _, size := range []int{3 << 10, 25 << 10, 1500 << 10} {
		bytesOf := repr(withSegments(jpg, size))
		for name, row := range map[string][]string{
			"alone":       {"0", bytesOf},
			"in a record": {"0", "{'bytes': " + bytesOf + ", 'path': None}", "x"},
			"twice":       {"0", bytesOf, "a note, with \"quotes\"", bytesOf, "0.5"},
		} {
			for sep, ext := range map[string]string{",": "csv", ";": "txt", "\t": "tsv"} {
				if size > 25<<10 && sep+name != ",in a record" { // it takes seconds
					continue
				}
				head := append([]string{""}, strings.Split("image,b,c,d", ",")[:len(row)-1]...)
				cases = append(cases, hiding{fmt.Sprintf("an image of %d KiB as pandas writes it to %s, %s", size>>10, ext,
					name),
					"f." + ext, "image " + goneJPEG, csvOf(sep, head, row, row, row)})
			}
		}
	}
	return cases
}

// numpyCases are arrays of ids, and of texts that name one.
func numpyCases() (cases []hiding) {
	wide := func(order binary.AppendByteOrder) func(string) []byte {
		return func(s string) []byte { return wide32(order, s) }
	}
	numbers := slices.Concat(npyOf("<f4", 4, make([]byte, 16)), npyOf("|S8", 1, []byte("a\x00\x00\x00\x00\x00\x00\x00")))
	pixels := bytes.Replace(npyOf("|u1", 80, drawn(1).Pix), []byte("(80,), }    "), []byte("(80,96,4,),}"), 1)
	for name, body := range map[string][]byte{
		"pixels behind numbers":  append(bytes.Clone(numbers), pixels...),
		"an array that is short": npyOf("<f4", 5, make([]byte, 16)),
	} {
		cases = append(cases, hiding{"numpy: " + name, "f.npy", "some", body})
	}
	for id, texts := range map[string][]string{
		goneDigits: {live1, live2, "1live9", goneDigits},
		goneUnseen: {"see https://redd.it/" + goneUnseen, "x"},
	} {
		for descr, encode := range map[string]func(string) []byte{
			"<U": wide(binary.LittleEndian), ">U": wide(binary.BigEndian), "|S": func(s string) []byte { return []byte(s) },
		} {
			width, data := len(texts[0]), []byte{}
			for _, text := range texts {
				data = append(data, encode(text+strings.Repeat("\x00", width-len(text)))...)
			}
			body := npyOf(descr+strconv.Itoa(width), len(texts), data)
			cases = append(cases, hiding{"an array of numpy, " + descr + " " + id, "f.npy", "row " + id, body},
				hiding{"an archive of numpy, " + descr + " " + id, "f.npz", "row " + id, zipOf("ids.npy", body)},
				hiding{"a later array of numpy, " + descr + " " + id, "f.npy", "row " + id, slices.Concat(numbers, body)},
				hiding{"a later array in an archive of numpy, " + descr + " " + id, "f.npz", "row " + id,
					zipOf("ids.npy", slices.Concat(numbers, body))})
		}
	}
	return cases
}

// TestFoundInEveryContainer finds an image, an id and a caption of a removed post wherever programs keep one: in
// archives, tables, documents, other images, and as text.
func TestFoundInEveryContainer(t *testing.T) {
	world := newWorld(t, false, false)
	purged, published, fresh := containerCases(t, world)
	world.finds(t, purged)
	newWorld(t, false, true).finds(t, published)
	newWorld(t, true, false).finds(t, fresh)
}

// TestCaptionForms finds a caption in the forms in which programs keep one: with other signs between its words, in names,
// a word in each column, in runs of a document that break words, with characters of no width, and cut by soft breaks.
func TestCaptionForms(t *testing.T) {
	w := newWorld(t, true, false)
	ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{Now: w.config.Now})
	testkit.OK(t, err)
	const long = "borrowed chocolate rivers whisper about purple elephants beneath the crooked staircase while " +
		"grandmother painted enormous sunflowers yesterday"
	stored, err := picture.Strip(w.images[goneJPEG], "jpeg")
	testkit.OK(t, err)
	read := workspace.Reading{Fingerprint: "g", ImageSHA256: state.SHA256(stored), Text: long}
	testkit.OK(t, ws.SetReadings(t.Context(), workspace.NewReading{Key: manifest.Key{ID: goneJPEG}, Reading: read}), ws.Close())
	words := strings.Fields(long)
	runs := ""
	for _, word := range words {
		runs += "<w:r><w:t>" + word[:3] + "</w:t></w:r><w:r><w:rPr/><w:t xml:space=\"preserve\">" + word[3:] + " </w:t></w:r>"
	}
	columns := make([]string, len(words))
	for i := range columns {
		columns[i] = "w" + strconv.Itoa(i)
	}
	for name, file := range map[string]struct {
		name string
		body []byte
	}{
		"form-encoded":        {"a.txt", []byte("q=" + strings.Join(words, "+") + "&x=1")},
		"form-encoded in CSV": {"a.csv", []byte("n,url\n1,https://example.org/s?q=" + strings.Join(words, "+") + "\n")},
		"hyphens":             {"a.txt", []byte(strings.Join(words, "-"))},
		"underscores":         {"a.txt", []byte("see " + strings.Join(words, "_") + " there")},
		"a name":              {strings.Join(words, "-") + ".txt", []byte("hello")},
		"a name in a zip":     {"a.zip", zipOf(strings.Join(words, "_")+".txt", []byte("hello"))},
		"capitals":            {"a.txt", []byte(strings.ToUpper(strings.Join(words, "-")))},
		"zero-width spaces":   {"a.txt", []byte(strings.Join(words, "\u200b"))},
		"zero-width, in CSV":  {"a.csv", []byte("n,t\n1," + strings.Join(words, "\u200b") + "\n")},
		"runs of a document":  {"a.docx", zipOf("word/document.xml", []byte("<w:p>"+runs+"</w:p>"))},
		"cut by a comma": {"a.csv", []byte("n,t\n1,the caption of a post with more words " +
			strings.Join(words[:len(words)/2], " ") + "," + strings.Join(words[len(words)/2:], " ") +
			" and is cut at the comma in it\n")},
		"a word a column":       {"a.csv", []byte("n," + strings.Join(columns, ",") + "\n7," + strings.Join(words, ",") + "\n")},
		"a word a column, tabs": {"a.tsv", []byte(strings.Join(columns, "\t") + "\n" + strings.Join(words, "\t") + "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.OK(t, os.WriteFile(filepath.Join(dir, file.name), file.body, 0o600))
			r := w.audit(t, w.ws, dir)
			if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.ID == goneJPEG && slices.Contains(f.Kinds, FoundText) && strings.Contains(f.Where, dir)
			}) {
				t.Errorf("%s: %+v", r.Verdict, r.Open)
			}
		})
	}
	body := "https://www.reddit.com/r/memes/comme=\nnts/1no=\nsee/t/\nhttps://example.org/b2\n"
	dir := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "a.eml"), []byte(body), 0o600))
	if r := w.audit(t, w.ws, dir); !slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.ID == goneUnseen && strings.Contains(f.Where, dir)
	}) {
		t.Errorf("an id with a soft break: %+v, open %+v", r.Findings, r.Open)
	}
}

// TestUnclaimed says that a container has more in it than what programs show: what that is, nobody looks at.
func TestUnclaimed(t *testing.T) {
	w := newWorld(t, false, false)
	b := w.images[goneJPEG]
	twice := patched(patched(storedZip(b), "PK\x03\x04", 8, "\x08"), "PK\x01\x02", 10, "\x08")
	short := patched(patched(storedZip(b), "PK\x03\x04", 6, "\x00"), "PK\x03\x04", 18, "\x20\x00\x00\x00")
	table := parquetOf(textRow{1, "words"})
	for name, body := range map[string][]byte{
		"a zip that hides a member":     hiddenZip("x", b),
		"a zip that says packed twice":  twice,
		"a zip that is short twice":     patched(short, "PK\x01\x02", 20, "\x20\x00\x00\x00"),
		"bytes behind a zip":            append(zipOf("x", []byte("hi")), b...),
		"bytes behind a tar":            append(tarOf("x", []byte("hi")), b...),
		"two tars in one":               append(tarOf("x", []byte("hi")), tarOf("y", b)...),
		"bytes in front of the columns": slices.Concat(table[:4], b, table[4:]),
	} {
		file := filepath.Join(t.TempDir(), "f")
		testkit.OK(t, os.WriteFile(file, body, 0o600))
		r := w.audit(t, w.ws, file)
		if !slices.ContainsFunc(r.Open, func(g Open) bool { return strings.Contains(g.Where, file) }) {
			t.Errorf("%s: %s, findings %+v, open %+v", name, r.Verdict, r.Findings, r.Open)
		}
	}
}

// TestBounds says what lies beyond the bounds of a search: neither decoys nor a great heap before an image make a PASS.
func TestBounds(t *testing.T) {
	w := newWorld(t, false, false)
	const dropped = "; CREATE TABLE x (y); PRAGMA secure_delete=OFF; CREATE TABLE z (y); INSERT INTO z VALUES (?); DROP TABLE z"
	deep := []byte(`{"a": "` + base64.StdEncoding.EncodeToString(w.images[goneJPEG]) + `"}`)
	for range 5 {
		deep = zipOf("x", deep)
	}
	for what, body := range map[string][]byte{
		"in a block":                  sqliteOf(t, "PRAGMA user_version = 1"+dropped, append(bytes.Repeat([]byte("\xff\xd8\xff"), 1100), w.images[goneJPEG]...)),
		"containers in containers":    deep,
		"pages and in 0 bytes behind": sqliteOf(t, fmt.Sprint("PRAGMA application_id = ", ourDatabase)+dropped, append(bytes.Repeat([]byte{7}, maxHeld), w.images[goneJPEG]...)),
	} {
		name := filepath.Join(t.TempDir(), "f")
		testkit.OK(t, os.WriteFile(name, body, 0o600))
		if r := w.audit(t, w.ws, name); !slices.ContainsFunc(r.Open,
			func(g Open) bool { return strings.Contains(g.What, what) }) {
			t.Errorf("%s: %s, findings %+v, open %+v", what, r.Verdict, r.Findings, r.Open)
		}
	}
}

// TestClean finds nothing where nothing is: the verdict is PASS, or NOT DECIDED for a reason that a person can act on.
func TestClean(t *testing.T) {
	purged, published := newWorld(t, false, false), newWorld(t, false, true)
	stored := func(id string) []byte {
		b, _ := picture.Strip(purged.images[id], picture.Format(purged.images[id]))
		return b
	}
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(i*i*7 + i>>3)
	}
	type other struct {
		ID    string `parquet:"id"`
		Count int64  `parquet:"count"`
	}
	picture3 := drawn(3)
	thumb := encodeJPEG(warp(72, 60, func(x, y int) color.Color { return picture3.At(x*4/3, y*4/3) }), 80)
	const foreignGap, binaryGap = "ids of another release", "only searched for plain text"
	for _, c := range []struct {
		name, gap string
		body      []byte
		in        *world
	}{
		{name: "an empty file"},
		{name: "a live post's image as it was sent", body: purged.images[live1]},
		{name: "a live post's image as it is stored", body: stored(live1)},
		{name: "a live post's image in a tar", body: tarOf("a.jpg", stored(live1))},
		{name: "a live post's image in a Parquet", body: parquetOf(blobRow{1, stored(live1)})},
		{name: "a live post's image with a comment", body: withSegment(purged.images[live1], 0xfe, "hello")},
		{name: "a live post's image with the header of JFIF", body: withSegment(purged.images[live1], 0xe0, "JFIF\x00\x01\x01\x01\x00\x48\x00\x48\x00\x00")},
		{name: "a live post's image as PNG", body: encodePNG(func() image.Image { i, _ := picture.Decode(purged.images[live1]); return i }())},
		{name: "a live post's image, a little smaller", body: thumb},
		{name: "a live post's image in HTML", body: []byte(`<p>hi</p><img alt="1live1" src="data:image/jpeg;base64,` + b64(thumb) + `">`)},
		{name: "a live post's image in a database", body: sqliteOf(t, "CREATE TABLE x (id, y); INSERT INTO x VALUES ('1live1', ?)", stored(live1))},
		{name: "an image of nobody", body: encodePNG(drawn(9))},
		{name: "an image of nobody, every hash published but one", body: encodePNG(drawn(9)), in: published},
		{name: "an image that cannot be decoded", body: purged.images[live1][:900], gap: "looks could not be compared"},
		{name: "a row of a live post", body: []byte("id,label\n" + live1 + ",F1\n")},
		{name: "a row of a live post in a Parquet", body: parquetOf(other{live1, 136748})},
		{name: "a live post's text", body: []byte("id,t\n" + live1 + "," + liveText + " of " + live1 + "\n")},
		{name: "a text of nobody", body: []byte("it rains on the roof of the small house\n")},
		{name: "a text too short to tell a post", body: []byte("nice one\n")},
		{name: "a number that is an id", body: []byte(`{"size": 136748}`)},
		{name: "numbers that are ids, many times", body: []byte("[" + strings.TrimSuffix(strings.Repeat("136748,", 9), ",") + "]")},
		{name: "a number in CSV", body: []byte("a,b\n1,136748\n2,136748\n3,136748\n")},
		{name: "a number in a text", body: []byte("136748 times\n"), gap: "also ids of removed posts"},
		{name: "ids as floating-point numbers in CSV",
			body: []byte("id,post_id\n" + live1 + ",\n" + live2 + ",86123456.0\n")},
		{name: "ids that a spreadsheet damaged", body: []byte("id,n\n" + live1 + ",1\n1.20E+46,2\n12e45,3\n"),
			gap: "2 values in column id can be ids that a spreadsheet took for numbers, the first is 1.20E+46"},
		{name: "a longer id that a spreadsheet damaged", body: []byte("id,n\n" + live1 + ",1\n12E+45,3\n"), gap: "12E+45"},
		{name: "an id as a number in base 36, in CSV",
			body: []byte(fmt.Sprintf("id,n\n%s,1\n%d,2\n", live1, number36(goneUnseen))), gap: mayBeIDs},
		{name: "sizes as floating-point numbers in CSV", body: []byte("id,size\n" + live1 + ",136748.0\n")},
		{name: "scores beside ids", body: parquetOf(struct {
			ID    string  `parquet:"id"`
			Score float64 `parquet:"score"`
		}{live1, 136748.5})},
		{name: "row numbers under the name id", body: parquetOf(struct {
			ID int64 `parquet:"id"`
		}{3})},
		{name: "another dataset", body: parquetOf(other{"1zzzz1", 1}, other{"1zzzz2", 2}), gap: foreignGap},
		{name: "another dataset in CSV", body: []byte("id,n\n1zzzz1,1\n1zzzz2,2\n"), gap: foreignGap},
		{name: "another dataset in JSON Lines", body: []byte("{\"id\":\"1zzzz1\"}\n{\"id\":\"1zzzz2\"}\n"),
			gap: foreignGap},
		{name: "one object with an id", body: []byte(`{"id": "chart1", "width": 3}`)},
		{name: "a word that is longer than an id", body: []byte("x1nosee 1noseex\n")},
		{name: "an id of which nothing is known", body: []byte("t3_zzz9\n")},
		{name: "an empty zip", body: zipOf("a/", nil)},
		{name: "a zip without members", body: []byte("PK\x05\x06" + strings.Repeat("\x00", 18))},
		{name: "a tar of nothing", body: make([]byte, 1024)},
		{name: "a gzip of a row", body: gzipOf([]byte("id\n" + live1 + "\n"))},
		{name: "a PDF", body: pdfOf("", []byte("BT (hi) Tj ET")), gap: "it is a PDF"},
		{name: "an xz", body: []byte("\xfd7zXZ\x00\x00\x04rest"), gap: "it is xz"},
		{name: "an Arrow file that is damaged", body: []byte("ARROW1\x00\x00rest"), gap: "it is Arrow"},
		{name: "a pickle of protocol 2", body: []byte("\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01K\x01u."),
			gap: "a Python pickle"},
		{name: "a pickle of protocol 0 with bytes", body: []byte("ccopy_reg\n_reconstructor\n\x01\x02."),
			gap: "a Python pickle"},
		{name: "safetensors", body: []byte("\x40\x00\x00\x00\x00\x00\x00\x00" + fmt.Sprintf("%-64s",
			`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`) + "\x00\x00\x80\x3f"), gap: "safetensors"},
		{name: "HDF5", body: []byte("\x89HDF\r\n\x1a\n\x00\x00"), gap: "HDF5"},
		{name: "a film", body: []byte("\x1aE\xdf\xa3\x01\x00\x00\x00"), gap: "Matroska"},
		{name: "JPEG 2000", body: []byte("\x00\x00\x00\x0cjP  \r\n\x87\n"), gap: "JPEG 2000"},
		{name: "a PPM", body: []byte("P6\n1 1\n255\n\x00\x01\x02"), gap: "PPM"},
		{name: "a program", body: []byte("\x7fELF\x02\x01\x01\x00"), gap: "a program"},
		{name: "a font", body: []byte("\x00\x01\x00\x00\x00\x10\x01\x00"), gap: "a font"},
		{name: "a text in EBCDIC", body: []byte("\xa3\x88\x85@\xf1\x95\x96\xa2\x85\x85@\xa2\x81\x89\x84"), gap: "unknown encoding"},
		{name: "a text in Latin-1", body: []byte("caf\xe9 ol\xe9")},
		{name: "bytes of no kind", body: noise, gap: binaryGap},
		{name: "long base64 of nothing that is known", body: []byte("sig: " + b64(noise)), gap: binaryGap},
		{name: "a short key in base64", body: []byte("key: " + b64(noise[:300]))},
		{name: "a rule of dashes", body: []byte("Title\n" + strings.Repeat("-", 300) + "\n")},
		{name: "digests of others", body: []byte(many("%064x\n", 50))},
		{name: "the release's manifest", body: func() []byte { b, _ := os.ReadFile(purged.config.Release.ManifestPath); return b }()},
		{name: "a list of tombstones", body: []byte("id,state,time\n" + goneUnseen + ",removed,2026-01-01T00:00:00Z\n")},
		{name: "a row of a live post, deep", gap: "more than", body: func() []byte {
			b := []byte("id\n" + live1 + "\n")
			for range 8 {
				b = gzipOf(b)
			}
			return b
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.in == nil {
				c.in = purged
			}
			dir := t.TempDir()
			testkit.OK(t, os.WriteFile(filepath.Join(dir, "f"), c.body, 0o600))
			r := c.in.audit(t, c.in.ws, dir)
			if len(r.Findings) > 0 || (c.gap == "") != (r.Verdict == Pass) || c.gap != "" &&
				(len(r.Open) != 1 || !strings.Contains(r.Open[0].What, c.gap)) {
				t.Errorf("%s: %+v %+v %+v, want %q", r.Verdict, r.Findings, r.Open, r.Duties, c.gap)
			}
		})
	}
}

// TestWithheld: what waits for a confirmation is a duty, and after two days a late one.
func TestWithheld(t *testing.T) {
	w := newWorld(t, false, false)
	now := w.config.Now()
	ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{Now: w.config.Now})
	testkit.OK(t, err)
	testkit.OK(t, ws.SetPosts(t.Context(), []workspace.Post{{ID: live1, State: manifest.StateRemoved, Reason: "moderator", CheckedAt: now, LiveAt: now, Withheld: true}}))
	testkit.OK(t, ws.Close())
	r := w.audit(t, w.ws)
	waits := slices.IndexFunc(r.Duties, func(d Duty) bool { return d.Kind == DutyConfirm })
	if r.Verdict != Pass || waits < 0 || r.Duties[waits].Late || !slices.Equal(r.Duties[waits].Posts, []string{live1}) {
		t.Errorf("%s: %+v %+v", r.Verdict, r.Findings, r.Duties)
	}
	w.config.Now = func() time.Time { return now.Add(49 * time.Hour) }
	if r := w.audit(t, w.ws); r.Verdict != Overdue || len(r.Findings) > 0 {
		t.Errorf("two days later %s: %+v %+v", r.Verdict, r.Findings, r.Duties)
	}
}

// TestCheckedLater: times of checks that no answer in the log bears are a change of the record, whoever sealed state.db.
func TestCheckedLater(t *testing.T) {
	w := newWorld(t, false, false)
	late := w.config.Now().Add(72 * time.Hour)
	w.config.Now = func() time.Time { return late }
	r := w.audit(t, w.ws) // images alone are enough for a duty to ask
	testkit.Same(t, "three days later", Overdue, r.Verdict)
	if len(r.Duties) != 1 || r.Duties[0].Kind != DutyRecheck || !slices.Equal(r.Duties[0].Posts, []string{live1, live2}) {
		t.Errorf("three days later: %+v", r.Duties)
	}
	for _, c := range [][2]string{{"checked_at", "live_at"}, {"live_at", "checked_at"}} {
		column, other := c[0], c[1]
		change := fmt.Sprintf("UPDATE post SET %s = %d WHERE state = 'live'", column, late.Unix())
		testkit.OK(t, resealed(t, w, change))
		r := w.audit(t, w.ws)
		if r.Verdict != Fail || len(r.Findings) != 1 || !slices.Contains(r.Findings[0].Kinds, FoundRecord) ||
			!strings.Contains(r.Findings[0].What[0], "2 posts") || !strings.Contains(r.Findings[0].What[0], live1) {
			t.Errorf("%s: %s: %+v, open %+v", column, r.Verdict, r.Findings, r.Open)
		}
		testkit.OK(t, resealed(t, w, fmt.Sprintf("UPDATE post SET %s = %s WHERE state = 'live'", column, other)))
	}
}

// resealed changes state.db, and seals the workspace as if nothing had been changed.
func resealed(t *testing.T, w *world, change string) error {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.ws, state.StateFile))
	testkit.OK(t, err)
	_, err = db.ExecContext(t.Context(), change)
	testkit.OK(t, err, db.Close())
	body, err := os.ReadFile(filepath.Join(w.ws, state.StateFile))
	testkit.OK(t, err)
	name := filepath.Join(w.ws, state.SealFile)
	seal, err := os.ReadFile(name)
	testkit.OK(t, err)
	var s workspace.Seal
	testkit.OK(t, json.Unmarshal(seal, &s))
	for i, f := range s.Files {
		if f.Name == state.StateFile {
			s.Files[i].Size, s.Files[i].SHA256 = int64(len(body)), state.SHA256(body)
		}
	}
	s.Sum = ""
	seal, err = json.MarshalIndent(s, "", "  ")
	testkit.OK(t, err)
	s.Sum = state.SHA256(seal)
	seal, err = json.MarshalIndent(s, "", "  ")
	testkit.OK(t, err)
	return os.WriteFile(name, append(seal, '\n'), 0o600)
}

// TestByFolder says once what is to be said of many files of a folder, with how many they are and the first by
// name; each is listed.
func TestByFolder(t *testing.T) {
	w := newWorld(t, false, false)
	for n, want := range map[int]int{3: 3, 4: 1, 12: 1} {
		dir := t.TempDir()
		for i := range n {
			testkit.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.xz", i)),
				[]byte("\xfd7zXZ\x00\x00\x04rest"), 0o600))
		}
		r := w.audit(t, w.ws, dir)
		testkit.Same(t, "open", n, len(r.Open))
		groups := r.ByFolder(r.Open)
		where := fmt.Sprintf("%d in %s: %s/00.xz, %s/01.xz, %s/02.xz, ...", n, dir, dir, dir, dir)
		if len(groups) != want || want == 1 && groups[0].Where != where {
			t.Errorf("%d files: %+v", n, groups)
		}
	}
}

// TestHead says what is known, and whom to ask for what is not.
func TestHead(t *testing.T) {
	for name, c := range map[string]struct {
		in   *world
		want Known
		says string
	}{
		"purged": {newWorld(t, false, false), Known{MustGo: 4, Digests: 2},
			"changed images of 2 of the 4 removed posts"},
		"published": {newWorld(t, false, true), Known{MustGo: 4, Digests: 2, Hashes: 2, Published: 4},
			"the images of 2 of the 4 removed posts: there is nothing to compare with"},
		"fresh": {newWorld(t, true, false), Known{MustGo: 4, Digests: 2, Hashes: 2, Texts: 2},
			"the captions of 2 of the 4 removed posts"},
	} {
		r := c.in.audit(t, c.in.ws)
		c.want.States = map[string]int{"removed": 4}
		testkit.Same(t, name, c.want, r.Known)
		if said := strings.Join(r.Limits, "\n"); !strings.Contains(said, c.says) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestShared does not look for a caption that a post that may stay has as well.
func TestShared(t *testing.T) {
	a := newAudit(Config{})
	const many = "my plants after a week of holidays in the kitchen window"
	a.gone.read = []clue[string]{{many, a.known(gonePNG, gonePNG)}, {goneText, a.known(goneJPEG, goneJPEG)},
		{many, a.known(live1, live1)}}
	a.post(gonePNG).Standing = Standing{MustGo: true}
	a.post(goneJPEG).Standing = Standing{MustGo: true}
	testkit.OK(t, a.gone.indexCaptions())
	testkit.Same(t, "shared", 1, a.gone.captions.Count(caption.Shared))
	if hits := a.gone.captions.Find([]byte(many)); len(hits) > 0 {
		t.Errorf("%+v", hits)
	}
	if hits := a.gone.captions.Find([]byte(goneText)); len(hits) != 1 || hits[0].Owner.name != goneJPEG {
		t.Errorf("%+v", hits)
	}
}

// TestMisplaced: in the workspace, the image of a live post is on record at its own place alone. Under another name it
// is a stray, as an image of nobody is.
func TestMisplaced(t *testing.T) {
	for _, c := range []struct{ name, id, file, what string }{
		{"in the place of another image", live2, "images/1l/" + live2 + ".png", "it is that of " + live1},
		{"under a name of its own", "", "images/1l/" + live1 + "_crop.jpg", "a copy of the image of " + live1},
		{"under the name of another format", "", "images/1l/" + live1 + ".png", "a copy of the image of " + live1},
		{"beside the images", "", live1 + ".jpg", "a copy of the image of " + live1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, published := range []bool{false, true} {
				w := newWorld(t, false, published)
				testkit.OK(t, resealed(t, w, "PRAGMA user_version"))
				testkit.Same(t, "before", Pass, w.audit(t, w.ws).Verdict)
				body, err := os.ReadFile(filepath.Join(w.ws, "images/1l", live1+".jpg"))
				testkit.OK(t, err, os.WriteFile(filepath.Join(w.ws, c.file), body, 0o600))
				r := w.audit(t, w.ws)
				if r.Verdict != Fail || len(r.Findings) != 1 || r.Findings[0].ID != c.id ||
					!strings.HasPrefix(r.Findings[0].Where, c.file) ||
					!strings.Contains(strings.Join(r.Findings[0].What, " "), c.what) {
					t.Errorf("published %t: %s %+v %+v", published, r.Verdict, r.Findings, r.Open)
				}
			}
		})
	}
}

// TestOwnDataset: a dataset whose rows are all of live posts is in order, with the workspace and with the release
// alone; a picture that says of no post to be its, and a row of a removed one, are not.
func TestOwnDataset(t *testing.T) {
	w, dir := newWorld(t, false, false), t.TempDir()
	type row struct {
		ID    string `parquet:"id"`
		Image []byte `parquet:"image"`
	}
	write := func(rows ...row) {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, "train.parquet"), parquetOf(rows...), 0o600))
	}
	alone := func() Verdict {
		c := w.config
		c.Files = []string{dir}
		for _, id := range []manifest.PostID{goneJPEG, gonePNG} {
			c.Tombstones = append(c.Tombstones, manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: c.Now()})
		}
		r, err := Audit(t.Context(), c)
		testkit.OK(t, err)
		return r.Verdict
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("# Demo\n\nA dataset of memes.\n"), 0o600))
	write(row{live1, w.images[live1]}, row{live2, w.images[live2]})
	testkit.Same(t, "with the workspace", Pass, w.audit(t, w.ws, dir).Verdict)
	testkit.Same(t, "with the release alone", Pass, alone())
	write(row{live1, w.images[live1]}, row{"", w.images[live2]})
	testkit.Same(t, "a picture of nobody, with the release alone", Undecided, alone())
	write(row{live1, w.images[live1]}, row{gonePNG, nil})
	testkit.Same(t, "a removed post's row, with the release alone", Fail, alone())
}

// TestInterrupted: an audit that is stopped says what it found up to then, and gives no verdict.
func TestInterrupted(t *testing.T) {
	w := newWorld(t, true, false)
	ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{ReadOnly: true})
	testkit.OK(t, err)
	defer ws.Close()
	ctx, stop := context.WithCancel(t.Context())
	c, asked := w.config, 0
	c.Workspace = ws
	c.Reddit, c.Files = nil, nil
	c.Tombstones = []manifest.Tombstone{{ID: live1, State: manifest.StateRemoved, Time: c.Now()}}
	clock := c.Now
	c.Now = func() time.Time {
		asked++
		if asked == 2 { // while the workspace is read
			stop()
		}
		return clock()
	}
	r, err := Audit(ctx, c)
	if !errors.Is(err, context.Canceled) || r.Verdict != "" || r.Scope.Release != "Demo" {
		t.Errorf("%v, %s of %q", err, r.Verdict, r.Scope.Release)
	}
}

// TestWritesNothing audits and verifies a workspace beside a write-ahead log that somebody put there.
func TestWritesNothing(t *testing.T) {
	w := newWorld(t, false, false)
	testkit.OK(t, os.WriteFile(filepath.Join(w.ws, "state.db-wal"), []byte("\x37\x7f\x06\x82 and the rest"), 0o600))
	list := func() (names string) {
		testkit.OK(t, filepath.WalkDir(w.dir, func(name string, e os.DirEntry, err error) error {
			info, _ := e.Info()
			names += fmt.Sprintln(name, info.Size(), info.ModTime())
			return err
		}))
		return names
	}
	before := list()
	if r := w.audit(t, w.ws); r.Verdict != Undecided {
		t.Errorf("%s: %+v", r.Verdict, r.Findings)
	}
	if r, err := verify.Workspace(t.Context(), w.ws); err != nil || r.Whole {
		t.Errorf("%+v, %v", r, err)
	}
	if after := list(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// FuzzLook has any bytes end in a report, whatever they claim to be.
func FuzzLook(f *testing.F) {
	for _, wrap := range wraps {
		f.Add(wrap.wrap(f, encodePNG(drawn(2))))
	}
	f.Add(framesOf(drawn(1), drawn(2)))
	for _, file := range []bool{true, false} {
		f.Add(arrowOf(f, file, nil, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, [3]string{live1, "abc", "d"}))
		f.Add(arrowOf(f, file, []ipc.Option{ipc.WithLZ4()},
			&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8,
				ValueType: arrow.BinaryTypes.String}, arrow.BinaryTypes.LargeBinary, [3]string{live1, "abc", "d"}))
	}
	f.Add(npyOf("<U1", 2, make([]byte, 8)))
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x33" + string(deflated([]byte("abc")))))
	f.Add(deflated([]byte("blob 3\x00abc")))
	printed := printedAs(encodeJPEG(drawn(1), 60))
	for _, text := range []string{printed, strconv.Quote(printed), strings.ReplaceAll("'"+printed+"'", "'", "''"),
		html.EscapeString(printed), strings.ReplaceAll(printed, " ", "\n  "), url.QueryEscape(printed),
		strings.ReplaceAll(printed, `\`, `\textbackslash `)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := newAudit(Config{Policy: policy.Default()})
		a.post(goneUnseen).Standing = Standing{MustGo: true}
		a.report.Known.MustGo = 1
		a.gone.index()
		a.indexIDs()
		w := walker{audit: a, ctx: t.Context(), left: &atomic.Int64{}, found: &atomic.Bool{}, opened: &atomic.Bool{}}
		w.left.Store(64 << 20)
		w.scan(place{src: &source{where: "f", rel: "f", file: &AuditedFile{}}, path: "f"}, section(body))
		testkit.OK(t, a.resolve(t.Context()))
	})
}

// identify makes the digests of an image as docs/files.md defines them, and its hash, by another way than the walker's.
func identify(body []byte) (d workspace.Digests, h dedupe.Hash, err error) {
	stripped, err := picture.Strip(body, picture.Format(body))
	if err != nil {
		return d, h, err
	}
	img, err := picture.Decode(body)
	if err != nil {
		return d, h, err
	}
	h, err = dedupe.HashImage(img)
	return workspace.Digests{File: state.SHA256(body), Stripped: state.SHA256(stripped), Pixels: picture.PixelDigest(picture.Upright(img, body))}, h, err
}
