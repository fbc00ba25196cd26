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
