package dataset

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/policy"
)

func TestReadLabelled(t *testing.T) {
	rows := testRows()
	path, _ := writeFile(t, true, all(rows))
	table, err := scan.OpenManifest(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	columns := table.Columns()
	if diff := cmp.Diff([]string{"kind", "severity", "figures, of speech"}, columns[len(columns)-3:]); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantLabels := [][][]string{
		{{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"None"}, {"Métaphore"}}, {nil, nil, nil},
		{nil, {"Low"}, {}},
		{{"No"}, {"<High & up>"}, {"0", "Métaphore"}}, {{"No"}, {"<High & up>"}, {"0", "Métaphore"}},
		{{"No"}, {"<High & up>"}, {"0", "Métaphore"}},
		{{"Irony/Sarcasm"}, {"<High & up>"}, {"Hyperbole", "0", "Métaphore"}},
	}
	for i, r := range rows {
		cells, err := table.Next()
		if err != nil {
			t.Fatal(err)
		}
		got := Row{}
		labels := [][]string{}
		for i, cell := range cells {
			switch {
			case columns[i] == "id":
				got.ID = cell.Text
			case columns[i] == "sha256":
				got.SHA256 = cell.Text
			case columns[i] == "ocr_text":
				got.Text = cell.Text
			case i < len(columns)-3:
			case cell.Null:
				labels = append(labels, nil)
			case cell.IsList:
				labels = append(labels, cell.List)
			default:
				labels = append(labels, []string{cell.Text})
			}
		}
		if diff := cmp.Diff(Row{ID: r.ID, SHA256: r.SHA256, Text: r.Text}, got) + cmp.Diff(wantLabels[i],
			labels); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}
	if _, err := table.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}

// TestReadOwn: pictures are read from the dataset's own files as well, with their texts.
func TestReadOwn(t *testing.T) {
	path, _ := writeFile(t, false, all(testRows()))
	source, err := pictures.Open(t.Context(), path, pictures.Columns{}, policy.Default().Images, pictures.Without{})
	if err != nil {
		t.Fatal(err)
	}
	if !source.OfDataset || source.Most != 8 || source.TextColumn != "ocr_text" {
		t.Errorf("%+v", source)
	}
	rows := testRows()
	for p, err := range source.All {
		image, _ := p.Read()
		row := rows[p.Index]
		if diff := cmp.Diff(Row{ID: row.ID, Path: row.Path, Image: row.Image, Text: row.Text},
			Row{ID: p.ID, Path: p.Path, Image: image, Text: p.Text}); diff != "" || err != nil {
			t.Errorf("row %d: %v (-written +read):\n%s", p.Index, err, diff)
		}
	}
}
