package dataset

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit/duckdb"
)

// checkRows compares what an independent reader makes of testRows, as JSON with images in base64.
func checkRows(t *testing.T, got []map[string]any) {
	t.Helper()
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	single := func(ids []int) any {
		if len(ids) == 0 {
			return nil
		}
		return float64(ids[0])
	}
	var want []map[string]any
	for _, r := range testRows() {
		var figures any
		if r.Labels[2] != nil {
			list := []any{}
			for _, id := range r.Labels[2] {
				list = append(list, float64(id))
			}
			figures = list
		}
		want = append(want, map[string]any{
			"id": r.ID, "image": map[string]any{"bytes": base64.StdEncoding.EncodeToString(r.Image), "path": orNull(r.Path)},
			"ocr_text": r.Text, "ocr_confidence": r.Confidence, "width": float64(r.Width), "height": float64(r.Height),
			"sha256": r.SHA256, "phash": orNull(r.PHash), "filter": orNull(r.Filter), "kind": single(r.Labels[0]),
			"severity": single(r.Labels[1]), "figures, of speech": figures})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-written +read):\n%.3000s", diff)
	}
}

// DuckDB, which shares no code with the writer, reads every column back equal. So does arrow-go: see tools/arrow.
func TestDuckDB(t *testing.T) {
	path, _ := writeFile(t, true, all(testRows()))
	var got []map[string]any
	duckdb.Query(t, &got,
		`SELECT * REPLACE ({'bytes': to_base64(image.bytes), 'path': image.path} AS image) FROM read_parquet(`+duckdb.Quote(path)+")")
	checkRows(t, got)
}

// Several row groups, and filters: bounds are left out for the image and for ocr_text, and
// no reader may prune by the empty ones that stand in their place. A file without rows is one, too.
func TestDuckDBGroups(t *testing.T) {
	var rows []Row
	for i := range 320 {
		r := newRow(fmt.Sprint("r", i), picture(uint64(i), 20_000+i*100))
		r.Text = fmt.Sprint("text number ", i)
		rows = append(rows, r)
	}
	path, stats := writeFile(t, false, all(rows))
	empty, _ := writeFile(t, false, all(nil))
	var got []struct{ Rows, Good, Groups, ByText, ByImage, Empty int }
	duckdb.Query(t, &got, fmt.Sprintf(`SELECT (SELECT count(*) FROM %[1]s) AS Rows,
		(SELECT count(*) FROM %[1]s WHERE sha256(image.bytes) = sha256) AS Good,
		(SELECT num_row_groups FROM parquet_file_metadata(%[1]s)) AS Groups,
		(SELECT count(*) FROM %[1]s WHERE ocr_text = 'text number 317') AS ByText,
		(SELECT count(*) FROM %[1]s WHERE image.bytes = (SELECT image.bytes FROM %[1]s WHERE id = 'r5')) AS ByImage,
		(SELECT count(*) FROM %[2]s) AS Empty`, duckdb.Quote(path), duckdb.Quote(empty)))
	if g := got[0]; g.Rows != 320 || g.Good != 320 || g.Groups != 4 || g.ByText != 1 || g.ByImage != 1 || g.Empty != 0 {
		t.Errorf("read %+v, want 320 rows, all good, in 4 groups, each filter finding one", g)
	}
	if stats.Bytes > stats.ImageBytes*105/100 {
		t.Errorf("file %d bytes for %d of images", stats.Bytes, stats.ImageBytes)
	}
}
