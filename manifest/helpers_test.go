package manifest

import (
	"strings"
	"testing"

	"rehydrate/manifest/table/tabletest"
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

// Most manifests of these tests start so.
const (
	figsimHeader = "id,split,figurative,severity,related_content,modality,context\n"
	testRow      = "abc,train,F1,SS1,SR1,M1,C1\n"
	figsimTOML   = "name = \"x\"\nmanifest = \"a.csv\"\nschema = \"figsim\"\n" // three lines
)

// release opens a release of release.toml and a.csv or, if the text starts with {, a.jsonl.
func release(t testing.TB, toml, rows string) (*Release, error) {
	t.Helper()
	name := "a.csv"
	if strings.HasPrefix(rows, "{") {
		name = "a.jsonl"
	}
	return Open(folder(t, map[string]string{SettingsName: toml, name: rows}), Options{})
}

// checked opens and checks text as an annotations file of that name.
func checked(t testing.TB, name, text string) (Summary, error) {
	t.Helper()
	r, err := Open(file(t, name, text), Options{})
	if err != nil {
		return Summary{}, err
	}
	return r.Check(t.Context())
}

// entries gives the good entries of a release, and how reading it ended.
func entries(t testing.TB, r *Release, err error) (list []Entry, _ error) {
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

// bare reads text as an annotations file of that name, in which nothing is wrong.
func bare(t testing.TB, name, text string) []Entry {
	t.Helper()
	r, err := Open(file(t, name, text), Options{})
	list, err := entries(t, r, err)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// parquet gives Options that read these rows.
func parquet(columns string, err error, rows ...[]Cell) Options {
	return Options{OpenParquet: tabletest.Parquet(columns, err, rows...)}
}
