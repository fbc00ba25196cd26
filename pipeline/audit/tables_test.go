package audit

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
