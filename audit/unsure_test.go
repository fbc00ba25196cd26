package audit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// releaseOf makes a release with digests of these images, by row, and without those of rows whose image is nil.
func releaseOf(t *testing.T, images map[string][]byte) *manifest.Release {
	t.Helper()
	rows := []string{"id,image,split,figurative,severity,related_content,modality,context," +
		"sha256,sha256_stripped,sha256_pixels,phash"}
	for row, body := range images {
		key, err := manifest.ParseKey(row)
		testkit.OK(t, err)
		digests := ",,,"
		if body != nil {
			d, h, err := identify(body)
			testkit.OK(t, err)
			digests = fmt.Sprintf("%s,%s,%s,%016x", d.File, d.Stripped, d.Pixels, h.Bits)
		}
		rows = append(rows, fmt.Sprintf("%s,%d,train,F1,SS6,SR3,M1,C1,%s", key.ID, key.Image, digests))
	}
	dir := t.TempDir()
	testkit.OK(t,
		os.WriteFile(filepath.Join(dir, "annotations.csv"), []byte(strings.Join(rows, "\n")+"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "release.toml"),
			[]byte("name = \"Demo\"\nversion = \"1.0\"\nmanifest = \"annotations.csv\"\nschema = \"figsim\"\n"), 0o600))
	r, err := manifest.Open(dir, manifest.Options{})
	testkit.OK(t, err)
	_, err = r.Check(t.Context())
	testkit.OK(t, err)
	return r
}

// TestImagesThatNobodyCanTell: an image may be of a removed post, and nothing shows whether it is: NOT DECIDED, with
// what is known. What an unchanged image, its name or its looks show to be of a post that stays is no question.
func TestImagesThatNobodyCanTell(t *testing.T) {
	removed, template := drawn(2), drawn(2)
	template.Set(3, 3, color.White) // other pixels, the same looks
	other := drawn(5)
	digests := map[string][]byte{gonePNG: encodePNG(removed), live1: encodePNG(template), live2: encodePNG(other)}
	nobodys := base64.StdEncoding.EncodeToString(encodePNG(drawn(9)))
	for _, tt := range []struct {
		name  string
		file  string
		body  []byte
		lacks string // a row of a removed post of which the release lacks the digest
		want  Verdict
		says  string // in what is open, or in the limits
	}{
		{"a copy of one of two that look the same", "a.jpg", encodeJPEG(removed, 75), "", Undecided,
			"and as much like that of " + live1 + ", which stays"},
		{"a copy of the other", "a.jpg", encodeJPEG(template, 75), "", Undecided, gonePNG},
		{"a copy that is named", live1 + ".jpg", encodeJPEG(template, 75), "", Pass, "1 image"},
		{"the one that stays", "a.png", encodePNG(template), "", Pass, ""},
		{"the one that was removed", "a.png", encodePNG(removed), "", Fail, ""},
		{"a picture of nobody's", "me.png", encodePNG(drawn(9)), "", Pass, ""},
		{"a picture of nobody's, not all are known", "me.png", encodePNG(drawn(9)), goneJPEG, Undecided,
			"no digest of 1 of the 2 removed posts"},
		{"a picture of nobody's, one of a gallery is not known", "me.png", encodePNG(drawn(9)), gonePNG + "/1", Undecided,
			"no digest of 1 of the 2 removed posts"},
		{"a copy of one that stays, not all are known", "a.jpg", encodeJPEG(other, 75), goneJPEG, Pass, "1 image"},
		{"one in the first line of a table, not all are known", "a.csv", []byte(nobodys + ",99\n" + nobodys + "," + live1),
			goneJPEG, Undecided, "no digest of 1 of the 2 removed posts"},
		{"one above a table, not all are known", "a.csv", []byte("# " + nobodys + "\nimage,id\n" + nobodys + "," + live1),
			goneJPEG, Undecided, "no digest of 1 of the 2 removed posts"},
		{"one that names a column, not all are known", "a.db", sqliteOf(t, fmt.Sprintf(
			"CREATE TABLE t (id TEXT, %q TEXT); INSERT INTO t VALUES ('%s', '')", nobodys, live1)),
			goneJPEG, Undecided, "no digest of 1 of the 2 removed posts"},
		{"one that names a table, not all are known", "a.db", sqliteOf(t, fmt.Sprintf(
			"CREATE TABLE %q (id TEXT); INSERT INTO %[1]q VALUES ('%s')", nobodys, live1)),
			goneJPEG, Undecided, "no digest of 1 of the 2 removed posts"},
		{"bytes as Python prints them in a table without a header", "a.csv", []byte(quotedBytes(removed)), "", Fail, ""},
		{"in a page", "a.html", []byte("<td>" + html.EscapeString(printedBytesOf(removed)) + "</td>"), "", Fail, ""},
		{"in an SQL dump", "a.sql", []byte("INSERT INTO t VALUES (99, '" +
			strings.ReplaceAll(printedBytesOf(removed), "'", "''") + "');"), "", Fail, ""},
		{"in pieces", "a.txt", []byte(pieces(printedBytesOf(removed))), "", Fail, ""},
		{"one in lines between the rows, not all are known", "a.csv", []byte("image,id\nx," + live1 + "\n" +
			regexp.MustCompile(".{76}").ReplaceAllString(nobodys, "$0\n") + "\nx," + live1 + "\n"), goneJPEG, Undecided,
			"no digest of 1 of the 2 removed posts"},
		{"one in the row of another, not all are known", "a.csv", []byte("image,id\n" + nobodys + "," + live1),
			goneJPEG, Pass, "1 image"},
		{"one that is named, not all are known", live2 + ".png", encodePNG(drawn(9)), goneJPEG, Pass, "1 image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, images := t.TempDir(), map[string][]byte{goneJPEG: encodePNG(drawn(7))}
			for id, body := range digests {
				images[id] = body
			}
			if tt.lacks != "" {
				images[tt.lacks] = nil
			}
			testkit.OK(t, os.WriteFile(filepath.Join(dir, tt.file), tt.body, 0o600))
			now := func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }
			r, err := Audit(t.Context(), Config{Release: releaseOf(t, images), Policy: policy.Default(), Now: now,
				Files: []string{dir}, Tombstones: []manifest.Tombstone{
					{ID: gonePNG, State: manifest.StateRemoved, Time: now()},
					{ID: goneJPEG, State: manifest.StateRemoved, Time: now()}}})
			testkit.OK(t, err)
			said := append([]string{}, r.Limits...)
			for _, o := range r.Open {
				said = append(said, o.ID+" "+o.What)
			}
			if r.Verdict != tt.want || !strings.Contains(strings.Join(said, "\n"), tt.says) {
				t.Errorf("%s, want %s with %q; findings %+v; said:\n%s", r.Verdict, tt.want, tt.says, r.Findings,
					strings.Join(said, "\n"))
			}
		})
	}
}

// printedBytesOf is an image as Python prints its bytes.
func printedBytesOf(m image.Image) string { return printedAs(encodePNG(m)) }

// printedAs are bytes as Python prints them.
func printedAs(body []byte) string {
	var b strings.Builder
	quote := "'"
	if bytes.IndexByte(body, '\'') >= 0 && bytes.IndexByte(body, '"') < 0 { // as Python does
		quote = `"`
	}
	for _, c := range body {
		switch {
		case string(c) == quote || c == '\\':
			b.WriteString("\\" + string(c))
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "\\x%02x", c)
		default:
			b.WriteByte(c)
		}
	}
	return "b" + quote + b.String() + quote
}

// quotedBytes are these in one cell of a table of text, with a quote among them.
func quotedBytes(m image.Image) string {
	return `"` + strings.ReplaceAll("{'note': '\"', 'bytes': "+printedBytesOf(m)+"}", `"`, `""`) + `"` + "\n"
}

// pieces is the text of bytes as Python breaks it.
func pieces(text string) string {
	var b strings.Builder
	b.WriteString("{'image': ")
	parts := strings.SplitAfter(text[2:len(text)-1], "\\x00")
	for i, part := range parts {
		if i > 0 {
			b.WriteString("\n          ")
		}
		b.WriteString("b'" + part + "'")
	}
	return b.String() + "}\n"
}

// TestThumbnails: without digests a few small images are icons, and the report says so; many are thumbnails.
func TestThumbnails(t *testing.T) {
	w := newWorld(t, false, true)
	w.config.Tombstones = append(w.config.Tombstones, // without digests
		manifest.Tombstone{ID: goneUnseen, State: manifest.StateRemoved, Time: w.config.Now()})
	for _, n := range []int{3, 12} {
		dir := t.TempDir()
		for i := range n {
			small := encodePNG(warp(64, 64, func(x, y int) color.Color { return color.Gray{uint8(x * y / (i + 1))} }))
			testkit.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.png", i)), small, 0o600))
		}
		config := w.config
		config.Files = []string{dir}
		r, err := Audit(t.Context(), config)
		testkit.OK(t, err)
		if n == 3 {
			testkit.Same(t, "icons", Pass, r.Verdict)
			testkit.Same(t, "number of icons", 3, r.Known.Icons)
			testkit.Same(t, "said", true, strings.Contains(strings.Join(r.Limits, "\n"), "3 images of at most 64 pixels"))
			continue
		}
		testkit.Same(t, "thumbnails", Undecided, r.Verdict)
	}
}
