package audit

import (
	"archive/tar"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rehydrate/internal/testkit"
)

func TestBudgetOf(t *testing.T) {
	for _, tt := range []struct {
		size int64
		nth  int
		want int64
	}{
		{0, 1, 128 << 20}, {1 << 20, 8, 128 << 20}, {10 << 20, 1, 1000 << 20},
		{1000, 16, 64 << 20}, {1000, 1000, 4 << 20}, {1 << 20, 1000, 100 << 20},
	} {
		testkit.Same(t, fmt.Sprintf("%d bytes, the %d. source", tt.size, tt.nth), tt.want, budgetOf(tt.size, tt.nth))
	}
	all := int64(0)
	for nth := range 1000 {
		all += budgetOf(20_000, nth+1)
	}
	if all > 8<<30 {
		t.Errorf("a thousand small files may unpack to %d bytes", all)
	}
}

// repeatedText is a row whose text stands once in a file, however many rows have it.
type repeatedText struct {
	ID   string `parquet:"id"`
	Text string `parquet:"text,dict"`
}

// bombs are small files that hold, or stand for, many times their size. Each may only be read in part, and says so.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	packed := func(n int) []byte { // letters, as a text
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := z.Write(bytes.Repeat([]byte("A"), n))
		testkit.OK(t, err)
		testkit.OK(t, z.Close())
		return b.Bytes()
	}
	rows := slices.Repeat([]repeatedText{{live1, strings.Repeat("word ", 40_000)}}, 1000)
	var wide []string
	for i := range 40 {
		wide = append(wide, fmt.Sprintf("b%d BLOB AS (zeroblob(900000000))", i))
	}
	const many = "; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 200) INSERT INTO t(id) SELECT '1live' || i FROM n"
	return map[string][]byte{
		"one.db":   sqliteOf(t, "CREATE TABLE t (id TEXT, b BLOB AS (zeroblob(900000000)))"+many),
		"forty.db": sqliteOf(t, "CREATE TABLE t (id TEXT, "+strings.Join(wide, ", ")+")"+many),
		"hex.db":   sqliteOf(t, "CREATE TABLE t (id TEXT, b TEXT AS (hex(zeroblob(50000000))))"+many),
		// The default of a column that was added later stands in no row.
		"added.db": sqliteOf(t, "CREATE TABLE t (id TEXT)"+strings.Replace(many, "200", "900", 1)+
			"; ALTER TABLE t ADD COLUMN b TEXT DEFAULT '"+strings.Repeat("word ", 40_000)+"'"),
		"dictionary.parquet": parquetOf(rows...),
		"iccp.png":           pngChunk("iCCP", append([]byte("x\x00\x00"), packed(60<<20)...)),
		"ztxt.png":           pngChunk("zTXt", append([]byte("Comment\x00\x00"), packed(60<<20)...)),
		"tiff.tif": append([]byte("MM\x00\x2a\x00\x00\x00\x08\x00\x01\x86\xb7\x00\x07\x00\x00\x00\x10\x00\x00\x00\x1a\x00\x00\x00\x00"),
			packed(60<<20)...),
		"letters.zip": zipOf("a.txt", bytes.Repeat([]byte("word "), 12<<20)),
		"nested.gz":   gzipOf(gzipOf(bytes.Repeat([]byte{'A'}, 60<<20))),
		"value.zip":   zipOf("a.json", slices.Concat([]byte(`["`), bytes.Repeat([]byte("a"), 20<<20), []byte(`"]`))),
		"windows.tar": windows(t, 400),
	}
}

// windows is an archive of empty frames of zstd, each of which claims a window of 128 MiB.
func windows(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	const frame = "\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00"
	for i := range n {
		testkit.OK(t, w.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Size: int64(len(frame))}))
		_, err := io.WriteString(w, frame)
		testkit.OK(t, err)
	}
	testkit.OK(t, w.Close())
	return b.Bytes()
}

// TestBombs reads bombs behind so many other files that each has the least budget: a gap names each of them.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	w, dir := newWorld(t, false, false), t.TempDir()
	crowd(t, dir)
	all, size := bombs(t), 0
	for name, body := range all {
		testkit.OK(t, os.Mkdir(filepath.Join(dir, "x"+name), 0o700)) // what is alike in a folder is said once
		testkit.OK(t, os.WriteFile(filepath.Join(dir, "x"+name, name), body, 0o600))
		size += len(body)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := w.audit(t, w.ws, dir)
	runtime.ReadMemStats(&after)
	for name := range all {
		if !slices.ContainsFunc(r.Open, func(g Open) bool { return strings.Contains(g.Where, "x"+name) }) {
			t.Errorf("%s: no gap names it", name)
		}
	}
	// What was ever allocated: some times what may come out of all.
	took := after.TotalAlloc - before.TotalAlloc
	if most := uint64(max(maxRatio*size, len(all)*leastMany)) * windowShare; took > most {
		t.Errorf("%d MB were allocated, at most %d were expected", took>>20, most>>20)
	}
	t.Logf("%d bytes, %d MB allocated", size, took>>20)
}

// TestSpent notes findings up to the budget, one of a source in any case, and says that there are more.
func TestSpent(t *testing.T) {
	a := newAudit(Config{})
	w := walker{audit: a, ctx: t.Context(), left: &atomic.Int64{}, found: &atomic.Bool{}, opened: &atomic.Bool{}}
	p := place{src: &source{where: "a.csv"}, path: "a.csv"}
	for range 10 {
		w.finding(FoundRow, "few003", p, "a row")
	}
	testkit.Same(t, "findings of a source without a budget", 1, len(a.found))
	testkit.Same(t, "gaps", 1, len(a.opens))
	w.left.Store(3 * noticeCost)
	for range 10 {
		w.finding(FoundRow, "few003", p, "a row")
	}
	testkit.Same(t, "findings in all", 4, len(a.found))
}

func TestPiecemeal(t *testing.T) {
	r := &piecemeal{Reader: strings.NewReader("0123456789"), most: 4}
	for _, step := range []struct {
		renew bool
		want  string
		err   error
	}{{true, "012", nil}, {false, "345", nil}, {false, "", errLong}, {true, "678", nil},
		{true, "9", io.ErrUnexpectedEOF}} {
		if step.renew {
			r.renew()
		}
		b := make([]byte, 3)
		n, err := io.ReadFull(r, b)
		testkit.Same(t, "read", step.want, string(b[:n]))
		if !errors.Is(err, step.err) {
			t.Errorf("%v, want %v", err, step.err)
		}
	}
}

// TestIDsWithoutEnd has a small archive of one id, many times over, behind so many other files that it has the least
// budget: what is noted of it is bounded.
func TestIDsWithoutEnd(t *testing.T) {
	w, dir := newWorld(t, false, false), t.TempDir()
	crowd(t, dir)
	const most = leastMany / noticeCost
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "ids.zip"), zipOf("ids.csv",
		append([]byte("id\n"), bytes.Repeat([]byte(goneJPEG+"\n"), 8*most)...)), 0o600))
	r := w.audit(t, w.ws, dir)
	testkit.Same(t, "verdict", Fail, r.Verdict)
	if n := len(r.Findings); n == 0 || n > most {
		t.Errorf("%d findings", n)
	}
	if !slices.ContainsFunc(r.Open, func(g Open) bool { return strings.Contains(g.Where, "ids.zip") }) {
		t.Errorf("no gap says that there are more: %+v", r.Open)
	}
}

// crowd puts so many empty files first in a folder that what lies behind them has the least budget.
func crowd(t *testing.T, dir string) {
	t.Helper()
	for i := range manyFiles / leastMany {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), nil, 0o600))
	}
}
