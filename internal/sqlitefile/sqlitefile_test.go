package sqlitefile

import (
	"bytes"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

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
	if _, what, err := Unused(t.Context(), db, section(b)); what != "" || err != nil {
		t.Errorf("%s, %v", what, err)
	}
	if _, err := db.Exec("PRAGMA secure_delete=OFF; DELETE FROM t"); err != nil {
		t.Fatal(err)
	}
	unused, what, err := Unused(t.Context(), db, section(b))
	if !strings.Contains(what, "free pages") || !bytes.Contains(unused, []byte("0000")) || err != nil {
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
	testkit.OK(t, Copy(section(b), func(db *sql.DB) error {
		testkit.Same(t, "names while it is read", 0, left())
		return db.QueryRow("SELECT a FROM t").Scan(&seven)
	}))
	testkit.Same(t, "its value", 7, seven)
	err = Copy(section(b[:50]), func(db *sql.DB) error { return db.QueryRow("SELECT a FROM t").Scan(&seven) })
	if err == nil || left() != 0 {
		t.Errorf("a damaged one: %v, and %d names are left", err, left())
	}
}
