package audit

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// What people write behind an id in the name of a file is not part of the entry, unless it is the number of an image.
func TestEntryNamed(t *testing.T) {
	a := newAudit(Config{})
	a.post("1bodut")
	for name, want := range map[string]string{"1bodut.jpg": "1bodut", "x/1bodut-2.jpg": "1bodut/2",
		"1bodut-copy.jpg": "1bodut", "1bodut-.jpg": "1bodut",
		"1bodut": "1bodut", "T3_1BODUT.png": "1bodut", "1boduu.jpg": "", "copy-1bodut.jpg": "", "": ""} {
		testkit.Same(t, name, want, a.entryNamed(name))
	}
}

// TestUnclearNames: a number that does not say which image it is makes a name that of no image, where some must be
// gone.
func TestUnclearNames(t *testing.T) {
	a := newAudit(Config{})
	a.post("1bodut").Images = []AuditedImage{{ID: "1bodut/2", MustGo: true}}
	a.post("1bodux")
	a.post("1boduy").Images = []AuditedImage{{ID: "1boduy/1"}}
	for name, want := range map[string]bool{"1bodut.jpg": false, "1bodut_0.jpg": false, "1bodut_2.jpg": true,
		"1bodut-2.jpg": false, "x/1bodut-0.jpg": false,
		"1bodut-copy.jpg": false, "1bodut-12.JPG": false, "1bodut_02.jpg": true, "1bodut.2.jpg": true, "1bodut__2.jpg": true,
		"1bodut_2of4.jpg": true, "1BODUT_img2.jpg": true, "t3_1bodut_02.jpg": true, "1bodut 2.jpg": false,
		"1bodut_b.jpg": true, "1bodut-second.jpg": true, "1bodut_thumb.jpg": false, "1bodut.orig.jpg": false,
		"1bodux_02.jpg": false, "1boduy_02.jpg": false} {
		testkit.Same(t, name, want, a.isUnclear(name, a.entryNamed(name)))
	}
	for text, want := range map[string]int{"2": 2, "2.0": 2, "02": 2, "0": 0, "00": 0, "": -1, "x": -1, "2.5": -1,
		"0x2": -1} {
		n, ok := placeIn(text)
		if !ok {
			n = -1
		}
		testkit.Same(t, text, want, n)
	}
}

// A JSON may open a million levels, and each has a path: what they take must not grow with their square.
func TestDeepJSON(t *testing.T) {
	a := newAudit(Config{})
	w := walker{audit: a, ctx: t.Context(), left: &atomic.Int64{}}
	text := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := w.json(place{src: &source{where: "f"}, path: "f"}, strings.NewReader(text)); err == nil ||
		!strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("20,000 levels: %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 10<<20 {
		t.Errorf("20,000 levels took %d bytes", n)
	}
}

// A column is one of ids by the names that package manifest lists, however they are spelled; an address can be of
// anything.
func TestIDColumns(t *testing.T) {
	byName := func(name string) bool { return newTable(place{src: &source{where: "f"}, path: "f"}).column(name).ids }
	for _, kind := range []manifest.NameKind{manifest.NameOfID, manifest.NameWithID, manifest.NameInDumps} {
		for _, name := range manifest.IDColumns(kind) {
			spaced := strings.ToUpper(strings.ReplaceAll(name, "_", " "))
			for _, spelled := range []string{name, spaced, " " + strings.ReplaceAll(name, "_", "-"), "data." + name,
				name + "[]", strings.ReplaceAll(name, "id", "ids")} {
				testkit.Same(t, spelled, true, byName(spelled))
			}
		}
	}
	for _, name := range append(manifest.IDColumns(manifest.NameOfAddress), "author", "idle", "") {
		testkit.Same(t, name, false, byName(name))
	}
	// Those that the audit knew before it took the list.
	for _, name := range []string{"id", "post_id", "postid", "reddit_id", "submission_id", "fullname", "permalink",
		"full_link", "link_id", "post", "t3"} {
		testkit.Same(t, name, true, byName(name))
	}
}

// TestSeparatorOf: also where quotes hide all but the separators.
func TestSeparatorOf(t *testing.T) {
	for _, c := range []struct {
		ext, text string
		want      rune
	}{
		{".csv", "id,text\na,b\n", ','},
		{".csv", "id\na\n", ','},
		{".csv", "Posts of 2026, all\nid;text\na;b\n", ';'},
		{".csv", "id;text\na;b, c\nd;e, f\n", ';'},
		{".csv", "id;image\na;data:image/png;base64,AAAA\nb;data:image/png;base64,BBBB\n", ';'},
		{".csv", "data:image/jpeg;base64,AAAA|a\ndata:image/jpeg;base64,BBBB|b\n", '|'},
		{".txt", "data:image/svg+xml;base64,AAAA\ta\ndata:image/png;base64,BBBB\tb\n", '\t'},
		{".csv", "data:image/jpeg;base64,AAAA,a\ndata:image/jpeg;base64,BBBB,b\n", ','},
		{".txt", "id|text\na|b\n", '|'},
		{".txt", "a text, no table\nand no other line\n", 0},
		{".csv", "\"id\";\"text\"\n\"a\";\"b, c\"\n", ';'},
		{".csv", "id,text\n \t \na,b\n\t\n", ','},
		{".tsv", "id\ttext\na\tb\n", '\t'},
		{".tsv", "\"id\"\t\"text\"\r\n\"a\"\t\"b, c\"\r\n", '\t'},
		{".csv", "\"id\"\t\"text\"\n\"a\"\t\"b\"\n", '\t'},
		{"", "\"id\"\t\"text\"\n\"a\"\t\"b\tc\"\n\t\n", '\t'},
		{".txt", "id\ttext\n\"a\"\t\"b\"\n", '\t'},
		{".txt", "\"id\"\t\"text\"\na\tb\n", '\t'},
		{".tsv", "id\ttext\tn\n\t\n\"a\"\t\"b\"\t\"1\"\n\n", '\t'},
		{".tsv", "Posts\n\"id\"\t\"text\"\n\"a\"\t\"b\"\n", '\t'},
		{"", "\n\n", 0},
		{".tsv", "id\na\nb\n", '\t'},
	} {
		got := separatorOf(c.ext, outlines(strings.NewReader(c.text), 64<<10, true))
		testkit.Same(t, c.ext+" "+c.text, string(c.want), string(got))
	}
}
