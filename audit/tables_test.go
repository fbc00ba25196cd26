package audit

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// Pages that rows were erased from and that SQLite took back into use leave their numbers in its list of free pages: that
// is not content.
func TestUnusedPagesOfALivelyDatabase(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lively.db")
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=secure_delete(ON)")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE t (a)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) INSERT INTO t SELECT hex(zeroblob(1500)) FROM n",
		"DELETE FROM t",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100) INSERT INTO t SELECT hex(zeroblob(1500)) FROM n",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, what, err := unusedPages(t.Context(), db, section(b)); what != "" || err != nil {
		t.Errorf("%s, %v", what, err)
	}
	if _, err := db.Exec("PRAGMA secure_delete=OFF; DELETE FROM t"); err != nil {
		t.Fatal(err)
	}
	if unused, what, err := unusedPages(t.Context(), db, section(b)); !strings.Contains(what, "free pages") || !bytes.Contains(unused, []byte("0000")) || err != nil {
		t.Errorf("rows that were deleted: %q, %v", what, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// The copy of a database, which may hold erased content, has no name while it is read, and none is left of one that is damaged.
func TestCopyOfADatabaseHasNoName(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	name := filepath.Join(t.TempDir(), "some.db")
	db, err := sql.Open("sqlite", name)
	testkit.OK(t, err)
	_, err = db.Exec("CREATE TABLE t (a); INSERT INTO t VALUES (7)")
	testkit.OK(t, errors.Join(err, db.Close()))
	b, err := os.ReadFile(name)
	testkit.OK(t, err)
	left := func() int {
		names, err := os.ReadDir(os.TempDir())
		testkit.OK(t, err)
		return len(names)
	}
	seven := 0
	testkit.OK(t, inCopy(section(b), func(db *sql.DB) error {
		testkit.Same(t, "names while it is read", 0, left())
		return db.QueryRow("SELECT a FROM t").Scan(&seven)
	}))
	testkit.Same(t, "its value", 7, seven)
	err = inCopy(section(b[:50]), func(db *sql.DB) error { return db.QueryRow("SELECT a FROM t").Scan(&seven) })
	if err == nil || left() != 0 {
		t.Errorf("a damaged one: %v, and %d names are left", err, left())
	}
}

// What people write behind an id in the name of a file is not part of the entry, unless it is the number of an image.
func TestEntryNamed(t *testing.T) {
	a := newAudit(Config{})
	a.post("1bodut")
	for name, want := range map[string]string{"1bodut.jpg": "1bodut", "x/1bodut-2.jpg": "1bodut/2", "1bodut-copy.jpg": "1bodut", "1bodut-.jpg": "1bodut",
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
	if err := w.json(place{src: &source{where: "f"}, path: "f"}, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("20,000 levels: %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 10<<20 {
		t.Errorf("20,000 levels took %d bytes", n)
	}
}

// A column is one of ids by the names that package manifest lists, however they are spelled; an address can be of anything.
func TestIDColumns(t *testing.T) {
	byName := func(name string) bool { return newTable(place{src: &source{where: "f"}, path: "f"}).column(name).ids }
	for _, kind := range []manifest.NameKind{manifest.NameOfID, manifest.NameWithID, manifest.NameInDumps} {
		for _, name := range manifest.IDColumns(kind) {
			spaced := strings.ToUpper(strings.ReplaceAll(name, "_", " "))
			for _, spelled := range []string{name, spaced, " " + strings.ReplaceAll(name, "_", "-"), "data." + name, name + "[]", strings.ReplaceAll(name, "id", "ids")} {
				testkit.Same(t, spelled, true, byName(spelled))
			}
		}
	}
	for _, name := range append(manifest.IDColumns(manifest.NameOfAddress), "author", "idle", "") {
		testkit.Same(t, name, false, byName(name))
	}
	// Those that the audit knew before it took the list.
	for _, name := range []string{"id", "post_id", "postid", "reddit_id", "submission_id", "fullname", "permalink", "full_link", "link_id", "post", "t3"} {
		testkit.Same(t, name, true, byName(name))
	}
}
