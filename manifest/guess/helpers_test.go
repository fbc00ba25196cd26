package guess

import (
	"testing"

	"rehydrate/manifest"
	"rehydrate/manifest/table/tabletest"
)

const (
	figsimHeader = "id,split,figurative,severity,related_content,modality,context\n"
	testRow      = "abc,train,F1,SS1,SR1,M1,C1\n"
	annotations  = "../testdata/annotations.csv" // made-up, with FigSIM's counts of labels
)

// Short names of what most tests use.
var (
	folder     = tabletest.Folder
	file       = tabletest.File
	places     = tabletest.Places
	wantPlaces = tabletest.WantPlaces
	text       = tabletest.Text
	items      = tabletest.Items
)

// parquet gives options that read these rows.
func parquet(columns string, err error, rows ...[]manifest.Cell) manifest.Options {
	return manifest.Options{OpenParquet: tabletest.Parquet(columns, err, rows...)}
}

// entries gives the good entries of a release, and how reading it ended.
func entries(t testing.TB, r *manifest.Release, err error) (list []manifest.Entry, _ error) {
	t.Helper()
	if err != nil {
		return nil, err
	}
	for e, err := range r.Entries(t.Context()) {
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
	return list, nil
}
