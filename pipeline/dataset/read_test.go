package dataset

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/pipeline/dataset/scan"
)

func tableOf(t testing.TB, data []byte) (*scan.Table, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := scan.OpenTable(name)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { table.Close() })
	return table, nil
}

func TestTable(t *testing.T) {
	rows := testRows()
	data, _ := write(t, true, all(rows))
	table, err := tableOf(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kind", "severity", "figures, of speech"}, table.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if c := table.Columns; len(c) != 12 || c["image"] != "struct" || c["figures, of speech"] != "list of int(64,true)" {
		t.Errorf("columns %v", c)
	}
	if p := table.Provenance; p["ocr_engine"] != "tesseract 5.3.0" || p["format"] != FormatVersion {
		t.Errorf("provenance %v", p)
	}
	wantLabels := [][][]string{
		{{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"None"}, {"Métaphore"}}, {nil, nil, nil}, {nil, {"Low"}, {}},
		{{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"<High & up>"}, {"0", "Métaphore"}},
		{{"Irony/Sarcasm"}, {"<High & up>"}, {"Hyperbole", "0", "Métaphore"}},
	}
	for i, r := range rows {
		got, err := table.Next()
		want := scan.TableRow{ID: r.ID, SHA256: r.SHA256, PHash: r.PHash, Text: r.Text, Labels: wantLabels[i]}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("row %d: error %v (-want +got):\n%s", i, err, diff)
		}
	}
	if _, err := table.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}

// TestReadOwn: pictures are read from the dataset's own files as well, with their texts.
func TestReadOwn(t *testing.T) {
	path, _ := writeFile(t, false, all(testRows()))
	pictures, err := scan.OpenPictures(path, scan.PictureColumns{})
	if err != nil {
		t.Fatal(err)
	}
	defer pictures.Close()
	if !pictures.Own || pictures.Rows != 8 || pictures.Columns != (scan.PictureColumns{Image: "image", Text: "ocr_text"}) {
		t.Errorf("own %t, %d rows, columns %+v", pictures.Own, pictures.Rows, pictures.Columns)
	}
	for i, row := range testRows() {
		got, err := pictures.Next()
		if diff := cmp.Diff(scan.PictureRow{ID: row.ID, Path: row.Path, Image: row.Image, Text: row.Text}, got); diff != "" || err != nil {
			t.Errorf("row %d: %v (-written +read):\n%s", i, err, diff)
		}
	}
}
