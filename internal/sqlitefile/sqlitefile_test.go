package sqlitefile

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

// made returns the bytes of a database that statements make.
func made(t testing.TB, statements ...string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "some.db")
	db, err := sql.Open("sqlite", name)
	testkit.OK(t, err)
	for _, s := range statements {
		_, err := db.Exec(s)
		testkit.OK(t, err)
	}
	testkit.OK(t, db.Close())
	b, err := os.ReadFile(name)
	testkit.OK(t, err)
	return b
}

// dump returns what Read gives of a database: its tables, each with its rows, of which no more than most are read.
func dump(t testing.TB, b []byte, most int) (lines []string, err error) {
	t.Helper()
	err = Read(t.Context(), section(b), func(db *Database) error {
		tables, wrong := db.Tables(t.Context())
		for _, table := range tables {
			lines = append(lines, fmt.Sprint(table.Name, " ", table.Columns, " without ", table.Computed))
			for values, err := range db.Rows(t.Context(), table) {
				if err != nil {
					wrong = errors.Join(wrong, err)
					break
				}
				for i, v := range values {
					if b, ok := v.([]byte); ok {
						values[i] = string(b)
					}
				}
				if lines = append(lines, strings.TrimSpace(fmt.Sprintln(values...))); len(lines) == most {
					return errors.New("too many")
				}
			}
		}
		return wrong
	})
	return lines, err
}

// TestRead reads stored values alone, from tables alone.
func TestRead(t *testing.T) {
	const rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000)"
	for _, tt := range []struct {
		name string
		b    []byte
		want []string
	}{
		{"a table", made(t, `CREATE TABLE "a ""b" (x, "y ""z")`, `INSERT INTO "a ""b" VALUES (1, 'one'), (NULL, x'00')`),
			[]string{`a "b [x y "z] without []`, "1 one", "<nil> \x00"}},
		{"in the mode of a write-ahead log", made(t, "PRAGMA journal_mode=WAL", "CREATE TABLE t (x)",
			"INSERT INTO t VALUES (7)"),
			[]string{"t [x] without []", "7"}},
		{"without row ids", made(t, "CREATE TABLE t (x PRIMARY KEY, y) WITHOUT ROWID", "INSERT INTO t VALUES ('k', 7)"),
			[]string{"t [x y] without []", "k 7"}},
		{"a computed column", made(t, "CREATE TABLE t (x, y AS (zeroblob(900000000)), z AS (x || 's') STORED)",
			"INSERT INTO t(x) VALUES ('a')"),
			[]string{"t [x z] without [y]", "a as"}},
		{"an index of expressions", made(t, "CREATE TABLE t (x)", "INSERT INTO t VALUES (3), (1)",
			"CREATE INDEX i ON t (x, hex(x))"),
			[]string{"t [x] without []", "3", "1"}},
		{"a view and a trigger", made(t, "CREATE TABLE t (x)", "CREATE VIEW v AS "+
			"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT * FROM n",
			"CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT count(*) FROM v; END"), []string{"t [x] without []"}},
		{"a virtual table", made(t, "CREATE VIRTUAL TABLE f USING fts5(x)"), nil},
		{"many pages", made(t, "CREATE TABLE t (x)", rows+" INSERT INTO t SELECT hex(zeroblob(1500)) FROM n",
			"CREATE INDEX i ON t (x)",
			"DELETE FROM t WHERE rowid <> 500"), []string{"t [x] without []", strings.Repeat("0", 3000)}},
	} {
		got, err := dump(t, tt.b, 10)
		testkit.OK(t, err)
		if tt.name == "a virtual table" { // the tables that it keeps its rows in are read
			testkit.Same(t, tt.name, false, slices.ContainsFunc(got,
				func(l string) bool { return strings.HasPrefix(l, "f ") }))
			got = nil
		}
		testkit.Same(t, tt.name, strings.Join(tt.want, "\n"), strings.Join(got, "\n"))
	}
}

// TestReadLies reads databases whose pages say what no program writes. Each has some kilobytes, and would have rows, or
// values, without end.
func TestReadLies(t *testing.T) {
	// The root of t is page 2. Its first cell stands at the end of the page.
	small := made(t, "PRAGMA page_size=4096", "CREATE TABLE t (x)", "INSERT INTO t VALUES (hex(zeroblob(1000)))")
	deep := made(t, "PRAGMA page_size=512", "CREATE TABLE t (x)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100) INSERT INTO t SELECT hex(zeroblob(100)) FROM n")
	long := made(t, "PRAGMA page_size=512", "CREATE TABLE t (x)",
		"INSERT INTO t VALUES (hex(zeroblob(1798))), (hex(zeroblob(1798)))")
	patch := func(b []byte, change func([]byte)) []byte {
		b = bytes.Clone(b)
		change(b)
		return b
	}
	second := func(size int, b []byte) []byte { return b[size : 2*size] }
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"one cell a thousand times", patch(small, func(b []byte) {
			page := second(4096, b)
			cell := page[8:10]
			binary.BigEndian.PutUint16(page[3:], 900)
			for i := range 900 {
				copy(page[8+2*i:], bytes.Clone(cell))
			}
		}), "lie upon each other"},
		{"a page below itself", patch(deep, func(b []byte) {
			page := second(512, b)
			for i := range int(binary.BigEndian.Uint16(page[3:])) {
				binary.BigEndian.PutUint32(page[binary.BigEndian.Uint16(page[12+2*i:]):], 3)
			}
		}), "page 3 is in two places"},
		{"two rows that share a value", patch(long, func(b []byte) {
			page := second(512, b)
			one, two := int(binary.BigEndian.Uint16(page[8:])), int(binary.BigEndian.Uint16(page[10:]))
			copy(page[two+3:one], page[one+3:one+3+one-two])
		}), "in two places"},
	} {
		_, err := dump(t, tt.b, 2000)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestRowsComputed computes what is cheap, and refuses the rest.
func TestRowsComputed(t *testing.T) {
	for _, tt := range []struct{ columns, want, wrong string }{
		{"y AS ('t3_' || x)", "[t3_7]", ""},
		{"y AS (x + 1), z AS (hex(x)) STORED, zz AS (json_extract('[5]', '$[0]'))", "[8 5]", ""},
		{"y AS (zeroblob(900000000))", "", "too big"},
		{"y AS (hex(zeroblob(4000)))", "", "too big"},
		{"y AS (printf('%900000000d', x))", "", "too big"},
		{"y AS (replace(x, 'a', 'b'))", "", "the function replace"},
		{"y AS (x GLOB '*a*a*a*b')", "", "the function glob"},
		{"y AS (x || x), z AS (y || y)", "", "from each other"},
	} {
		b := made(t, "CREATE TABLE t (x, "+tt.columns+")", "INSERT INTO t(x) VALUES (7)")
		got := ""
		err := Read(t.Context(), section(b), func(db *Database) error {
			tables, err := db.Tables(t.Context())
			testkit.OK(t, err)
			for values, err := range db.RowsComputed(t.Context(), tables[0]) {
				if err != nil {
					return err
				}
				got += fmt.Sprint(values)
			}
			for values, err := range db.Rows(t.Context(), SchemaTable) { // the limits are as before
				testkit.Same(t, "columns of the schema", 5, len(values), err)
			}
			return nil
		})
		if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %s, %v", tt.columns, got, err)
		}
	}
}

// TestLimit refuses a value that is longer than its file, whatever computes it.
func TestLimit(t *testing.T) {
	err := Read(t.Context(), section(made(t, "CREATE TABLE t (x)")), func(db *Database) error {
		_, err := db.conn.ExecContext(t.Context(), "SELECT hex(zeroblob(900000))")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("%v, want that it is too big", err)
	}
}

// Pages that rows were erased from and that SQLite took back into use leave their numbers in its list of free pages:
// that is not content.
func TestUnusedPagesOfALivelyDatabase(t *testing.T) {
	const insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) INSERT INTO t SELECT hex(zeroblob(1500)) FROM n"
	lively := []string{"PRAGMA secure_delete=ON", "CREATE TABLE t (a)", insert, "DELETE FROM t",
		strings.Replace(insert, "300", "100", 1)}
	for _, tt := range []struct {
		name string
		b    []byte
		what string
	}{
		{"rows that were erased", made(t, lively...), ""},
		{"rows that were deleted", made(t, append(lively, "PRAGMA secure_delete=OFF", "DELETE FROM t")...),
			"in 100 of its free pages and in 0 bytes"},
		{"behind the end", append(made(t, "CREATE TABLE t (a)"), "erased"...), "6 bytes behind its last"},
	} {
		testkit.OK(t, Read(t.Context(), section(tt.b), func(db *Database) error {
			what, err := db.Unused(t.Context())
			if !strings.Contains(what, tt.what) || tt.what == "" && what != "" {
				t.Errorf("%s: %q", tt.name, what)
			}
			return err
		}))
	}
}

// A database may hold erased content: no copy of it is made on the disk, and none is left of one that is damaged.
func TestReadMakesNoCopy(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := made(t, "CREATE TABLE t (a)", "INSERT INTO t VALUES (7)")
	left := func() int {
		names, err := os.ReadDir(os.TempDir())
		testkit.OK(t, err)
		return len(names)
	}
	testkit.OK(t, Read(t.Context(), section(b), func(*Database) error {
		testkit.Same(t, "files while it is read", 0, left())
		return nil
	}))
	for _, n := range []int{50, 100, 4000, len(b) - 1} {
		_, err := dump(t, b[:n], 100)
		if err == nil && n < 4000 || left() != 0 {
			t.Errorf("cut off at %d: %v, and %d files are left", n, err, left())
		}
	}
}

// FuzzRead opens files as databases, and reads what they claim to hold.
func FuzzRead(f *testing.F) {
	good := made(f, "PRAGMA page_size=512", "CREATE TABLE t (x, y)",
		"INSERT INTO t VALUES (1, 'one'), (x'00', hex(zeroblob(600)))",
		"CREATE INDEX i ON t (y)")
	for _, b := range [][]byte{good, good[:700], nil, []byte("SQLite format 3\x00"),
		made(f, "PRAGMA page_size=512", "CREATE TABLE t (x, y AS (zeroblob(900000000)), z AS (hex(x)) STORED)",
			"INSERT INTO t(x) VALUES ('a')"),
		made(f, "PRAGMA page_size=512", "CREATE TABLE t (x PRIMARY KEY, y) WITHOUT ROWID", "INSERT INTO t VALUES ('k', 7)"),
		made(f, "PRAGMA page_size=512", "CREATE TABLE t (x)", "INSERT INTO t VALUES (hex(zeroblob(3000)))",
			"DROP TABLE t")} {
		f.Add(b)
	}
	damaged := bytes.Clone(good)
	copy(damaged[512:], bytes.Repeat([]byte{0xff}, 40))
	f.Add(damaged)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		held := 0
		_ = Read(t.Context(), section(b), func(db *Database) error {
			tables, _ := db.Tables(t.Context())
			for _, table := range append(tables, SchemaTable) {
				for values, err := range db.Rows(t.Context(), table) {
					if err != nil {
						break
					}
					for _, v := range values {
						if text, ok := v.([]byte); ok {
							held += len(text)
						}
					}
				}
				for _, err := range db.RowsComputed(t.Context(), table) {
					if err != nil || len(table.Computed) == 0 {
						break
					}
				}
			}
			_, _ = db.Unused(t.Context()) // of a damaged file it may say anything
			return nil
		})
	})
}
