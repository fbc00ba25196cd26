package dataset

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/pipeline/dataset/duckdbtest"
)

// What a reader that shares no code with the writer sees, row by row.
func TestDuckDB(t *testing.T) {
	rows := testRows()
	path, stats := writeFile(t, true, all(rows))
	file := "read_parquet(" + duckdbtest.Quote(path) + ")"

	type read struct {
		ID         string   `json:"id"`
		Hex        string   `json:"image"`
		Path       *string  `json:"path"`
		Text       *string  `json:"ocr_text"`
		Confidence *float64 `json:"ocr_confidence"`
		Width      int      `json:"width"`
		Height     int      `json:"height"`
		SHA256     string   `json:"sha256"`
		PHash      *string  `json:"phash"`
		Filter     *string  `json:"filter"`
		Kind       *int     `json:"kind"`
		Severity   *int     `json:"severity"`
		Figures    *[]int   `json:"figures"`
		SameDigest bool     `json:"same"`
	}
	var got []read
	duckdbtest.Query(t, &got, `SELECT id, image.bytes AS image, image.path AS path, ocr_text, ocr_confidence, width, height, sha256,
		phash, filter, kind, severity, "figures, of speech" AS figures, sha256(image.bytes) = sha256 AS same FROM `+file)

	orNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	single := func(ids []int) *int {
		if len(ids) == 0 {
			return nil
		}
		return &ids[0]
	}
	var want []read
	for _, r := range rows {
		w := read{ID: r.ID, Hex: fmt.Sprintf("%x", r.Image), Path: orNull(r.Path), Text: &r.Text, Confidence: &r.Confidence, Width: r.Width,
			Height: r.Height, SHA256: r.SHA256, PHash: orNull(r.PHash), Filter: orNull(r.Filter), Kind: single(r.Labels[0]), Severity: single(r.Labels[1]),
			SameDigest: true}
		if r.Labels[2] != nil {
			w.Figures = &r.Labels[2]
		}
		want = append(want, w)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-written +read):\n%s", diff)
	}
	if len(got) != stats.Rows {
		t.Errorf("DuckDB reads %d rows of %d", len(got), stats.Rows)
	}
}

// TestLabelZero guards traps of parquet-go v0.32.0: optional value types turn the label
// id 0 and the text "" into null, and a list without its tag loses nil against empty.
func TestLabelZero(t *testing.T) {
	rows := testRows()
	path, _ := writeFile(t, false, all(rows))
	var zeros, wantZeros, nulls, empties int
	for _, r := range rows {
		for i, ids := range r.Labels {
			for _, id := range ids {
				if id == 0 {
					wantZeros++
				}
			}
			if i == 2 && ids == nil {
				nulls++
			} else if i == 2 && len(ids) == 0 {
				empties++
			}
		}
	}
	var got []struct{ Zeros, Nulls, Empties, NullElements, NullTexts, EmptyTexts int }
	duckdbtest.Query(t, &got, `WITH f AS (SELECT *, "figures, of speech" AS fig FROM read_parquet(`+duckdbtest.Quote(path)+`))
		SELECT count(*) FILTER (kind = 0) + count(*) FILTER (severity = 0) + sum(len(list_filter(coalesce(fig, []), lambda x: x = 0))) AS Zeros,
			count(*) FILTER (fig IS NULL) AS Nulls, count(*) FILTER (len(fig) = 0) AS Empties,
			sum(len(list_filter(coalesce(fig, []), lambda x: x IS NULL))) AS NullElements,
			count(*) FILTER (ocr_text IS NULL) AS NullTexts, count(*) FILTER (ocr_text = '') AS EmptyTexts
		FROM f`)
	zeros = got[0].Zeros
	if zeros != wantZeros || wantZeros < 3 {
		t.Errorf("%d labels with id 0 read, %d written", zeros, wantZeros)
	}
	if g := got[0]; g.Nulls != nulls || g.Empties != empties || nulls == 0 || empties == 0 {
		t.Errorf("read %d null and %d empty lists, wrote %d and %d", g.Nulls, g.Empties, nulls, empties)
	}
	if g := got[0]; g.NullElements != 0 || g.NullTexts != 0 || g.EmptyTexts != 1 {
		t.Errorf("read %d null elements, %d null texts, %d empty texts; want 0, 0, 1", g.NullElements, g.NullTexts, g.EmptyTexts)
	}
}

func TestDuckDBSchema(t *testing.T) {
	for _, rows := range [][]Row{testRows(), nil} {
		path, stats := writeFile(t, true, all(rows))
		file := duckdbtest.Quote(path)
		var schema []struct {
			Name       string  `json:"name"`
			Repetition *string `json:"repetition_type"`
			Type       *string `json:"type"`
		}
		duckdbtest.Query(t, &schema, "SELECT name, repetition_type, type FROM parquet_schema("+file+")")
		if len(schema) != 1+12+2+2 { // root, columns, children of image and of the list
			t.Errorf("DuckDB sees %d schema elements: %v", len(schema), schema)
		}
		for _, e := range schema[1:] {
			if e.Repetition == nil || *e.Repetition != "OPTIONAL" && e.Name != "list" {
				t.Errorf("DuckDB: %s is not nullable", e.Name)
			}
		}

		var kv []struct{ Key, Value string }
		duckdbtest.Query(t, &kv, "SELECT decode(key) AS Key, decode(value) AS Value FROM parquet_kv_metadata("+file+")")
		have := map[string]string{}
		for _, p := range kv {
			have[p.Key] = p.Value
		}
		if !strings.HasPrefix(have["huggingface"], `{"info":{"features":{"id":`) || have["rehydrate.policy_digest"] != strings.Repeat("c", 64) ||
			len(have) != 2+len(testProvenance().pairs()) {
			t.Errorf("DuckDB: key-values %v", have)
		}

		var count []struct{ N int }
		duckdbtest.Query(t, &count, "SELECT count(*) AS N FROM read_parquet("+file+")")
		if count[0].N != len(rows) || stats.Rows != len(rows) {
			t.Errorf("DuckDB counts %d rows, %d written", count[0].N, len(rows))
		}
	}
}

// Several row groups, and filters: bounds are left out for the image and for ocr_text, and
// no reader may prune by the empty ones that stand in their place.
func TestDuckDBGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	var rows []Row
	for i := range 320 {
		r := newRow(fmt.Sprint("r", i), picture(rng, 20_000+rng.IntN(40_000)))
		r.Text = fmt.Sprint("text number ", i)
		rows = append(rows, r)
	}
	path, stats := writeFile(t, false, all(rows))
	file := "read_parquet(" + duckdbtest.Quote(path) + ")"
	var got []struct{ Rows, Good, Groups, ByText, ByImage int }
	duckdbtest.Query(t, &got, fmt.Sprintf(`SELECT (SELECT count(*) FROM %[1]s) AS Rows,
		(SELECT count(*) FROM %[1]s WHERE sha256(image.bytes) = sha256) AS Good,
		(SELECT num_row_groups FROM parquet_file_metadata(%[2]s)) AS Groups,
		(SELECT count(*) FROM %[1]s WHERE ocr_text = 'text number 317') AS ByText,
		(SELECT count(*) FROM %[1]s WHERE image.bytes = (SELECT image.bytes FROM %[1]s WHERE id = 'r5')) AS ByImage`,
		file, duckdbtest.Quote(path)))
	if g := got[0]; g.Rows != 320 || g.Good != 320 || g.Groups != 4 || g.ByText != 1 || g.ByImage != 1 {
		t.Errorf("read %+v, want 320 rows, all good, in 4 groups, each filter finding one", g)
	}
	if stats.Bytes > stats.ImageBytes*105/100 {
		t.Errorf("file %d bytes for %d of images", stats.Bytes, stats.ImageBytes)
	}
}
