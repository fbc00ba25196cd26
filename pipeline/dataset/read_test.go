package dataset

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
)

func tableOf(t testing.TB, data []byte) (*scan.Table, error) {
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
	return scan.OpenTable(f)
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
		want := scan.TableRow{ID: r.ID, SHA256: r.SHA256, PHash: r.PHash, Text: r.Text, Labels: wantLabels[i]}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("row %d: error %v (-want +got):\n%s", i, err, diff)
		}
	}
	if _, err := table.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}

// The dataset's own files are manifests as well: the image is left out.
func TestOpenManifestOwn(t *testing.T) {
	path, _ := writeFile(t, false, all(testRows()))
	r, err := scan.OpenManifest(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if diff := cmp.Diff([]string{"id", "ocr_text"}, r.Columns()[:2]); diff != "" {
		t.Fatalf("columns (-want +got):\n%s", diff)
	}
	list := func(ids []int) manifest.Cell {
		c := manifest.Cell{IsList: true, Null: ids == nil}
		for _, id := range ids {
			c.List = append(c.List, strconv.Itoa(id))
		}
		if ids != nil && c.List == nil {
			c.List = []string{}
		}
		return c
	}
	single := func(ids []int) manifest.Cell {
		if len(ids) == 0 {
			return manifest.Cell{Null: true}
		}
		return manifest.Cell{Text: strconv.Itoa(ids[0])}
	}
	for i, row := range testRows() { // label 0 is 0, and nil is not an empty list
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		want := []manifest.Cell{{Text: row.ID}, single(row.Labels[0]), single(row.Labels[1]), list(row.Labels[2])}
		if diff := cmp.Diff(want, append(got[:1:1], got[7:]...), cmpopts.IgnoreUnexported(manifest.Cell{})); diff != "" {
			t.Errorf("row %d (-written +read):\n%s", i, diff)
		}
	}
}

// TestFeatures: what the footer tells Hugging Face is read back.
func TestFeatures(t *testing.T) {
	data, _ := write(t, true, all(testRows()))
	f, err := scan.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]scan.Feature{}
	for _, c := range features(testSchema(), true) {
		want[c.Column] = c.Is
	}
	if diff := cmp.Diff(want, f.Features()); diff != "" {
		t.Errorf("features (-written +read):\n%s", diff)
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
			if len(row.Labels) != len(table.Labels()) || len(row.ID) > 100 {
				t.Fatalf("row %+v of %v", row, table.Labels())
			}
		}
	})
}

// TestReadOwn: the other readers take the dataset's own files as well: labels by their names, pictures with their texts.
func TestReadOwn(t *testing.T) {
	path, _ := writeFile(t, false, all(testRows()))
	labelled, err := scan.OpenLabelled(path, []string{"id", "severity"})
	if err != nil {
		t.Fatal(err)
	}
	defer labelled.Close()
	pictures, err := scan.OpenPictures(path, scan.PictureColumns{})
	if err != nil {
		t.Fatal(err)
	}
	defer pictures.Close()
	if !pictures.Own() || pictures.Rows() != 8 || pictures.Columns() != (scan.PictureColumns{Image: "image", Text: "ocr_text"}) {
		t.Errorf("own %t, %d rows, columns %+v", pictures.Own(), pictures.Rows(), pictures.Columns())
	}
	names := []string{"<High & up>", "None", "", "Low", "<High & up>", "<High & up>", "<High & up>", "<High & up>"}
	at := slices.Index(labelled.Columns(), "severity")
	for i, row := range testRows() {
		cells, err := labelled.Next()
		if err != nil || cells[0].Text != row.ID || cells[at].Text != names[i] || cells[at].Null != (names[i] == "") {
			t.Errorf("row %d: %v, %v, want %s with %q", i, cells, err, row.ID, names[i])
		}
		got, err := pictures.Next()
		if diff := cmp.Diff(scan.PictureRow{Path: row.Path, Image: row.Image, Text: row.Text}, got); diff != "" || err != nil {
			t.Errorf("row %d: %v (-written +read):\n%s", i, err, diff)
		}
	}
	if _, err := labelled.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}
