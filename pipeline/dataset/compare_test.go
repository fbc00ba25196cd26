package dataset

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tableOf(t testing.TB, data []byte) (*Table, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return OpenTable(f)
}

func TestTable(t *testing.T) {
	rows := testRows()
	data, _ := write(t, true, all(rows))
	table, err := tableOf(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kind", "severity", "figures, of speech"}, table.Labels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if c := table.Columns(); len(c) != 12 || c["image"] != "struct" || c["figures, of speech"] != "list of int(64,true)" {
		t.Errorf("columns %v", c)
	}
	if p := table.Provenance(); p["ocr_engine"] != "tesseract 5.3.0" || p["format"] != FormatVersion {
		t.Errorf("provenance %v", p)
	}
	wantLabels := [][][]string{
		{{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"None"}, {"Métaphore"}}, {nil, nil, nil}, {nil, {"Low"}, {}},
		{{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"<High & up>"}, {"0", "Métaphore"}},
		{{"Irony/Sarcasm"}, {"<High & up>"}, {"Hyperbole", "0", "Métaphore"}},
	}
	for i, r := range rows {
		got, err := table.Next()
		want := TableRow{ID: r.ID, SHA256: r.SHA256, PHash: r.PHash, Text: r.Text, Labels: wantLabels[i]}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("row %d: error %v (-want +got):\n%s", i, err, diff)
		}
	}
	if _, err := table.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}

// Whatever a file claims, it is refused or read, with bounded memory and without a panic.
func FuzzTable(f *testing.F) {
	var b bytes.Buffer
	if _, err := WriteParquet(&b, testSchema(), testProvenance(), true, all(testRows()[:3])); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:len(b.Bytes())/2])
	f.Add([]byte("PAR1PAR1PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := tableOf(t, data)
		if err != nil {
			return
		}
		for range 10_000 {
			row, err := table.Next()
			if err != nil {
				return
			}
			if len(row.Labels) != len(table.Labels()) || len(row.ID) > maxRowID {
				t.Fatalf("row %+v of %v", row, table.Labels())
			}
		}
	})
}
