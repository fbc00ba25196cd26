package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Most manifests of these tests start so.
const (
	figsimHeader = "id,split,figurative,severity,related_content,modality,context\n"
	testRow      = "abc,train,F1,SS1,SR1,M1,C1\n"
	figsimTOML   = "name = \"x\"\nmanifest = \"a.csv\"\nschema = \"figsim\"\n" // three lines
)

// folder writes files (name -> text) into a new folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// file writes one file and gives its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	return filepath.Join(folder(t, map[string]string{name: text}), name)
}

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

// places gives each problem of err as "file:line:column message", the file as its base
// name, and fails the test if one has no line or no hint.
func places(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Fatalf("error %v is not a *Problems", err)
	}
	var all []string
	for _, p := range problems.List {
		if p.Line < 1 || p.Column < 0 || p.Hint == "" || p.File == "" || p.Message == "" {
			t.Errorf("problem %+v lacks a file, line, message or hint", p)
		}
		all = append(all, fmt.Sprintf("%s:%d:%d %s", filepath.Base(p.File), p.Line, p.Column, p.Message))
	}
	return all
}

// wantPlaces compares the problems of err with the beginnings that they should have.
func wantPlaces(t testing.TB, name string, err error, want ...string) {
	t.Helper()
	got := places(t, err)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%.150q: problems %.900q\nwant %q", name, got, want)
	}
}

// fakeParquet gives the rows it holds.
type fakeParquet struct {
	columns []string
	rows    [][]Cell
	err     error // after the rows, instead of io.EOF
	next    int
}

func (f *fakeParquet) Columns() []string { return f.columns }
func (f *fakeParquet) Close() error      { return nil }
func (f *fakeParquet) Next() ([]Cell, error) {
	if f.next == len(f.rows) && f.err == nil {
		return nil, io.EOF
	}
	if f.next == len(f.rows) {
		return nil, f.err
	}
	f.next++
	return f.rows[f.next-1], nil
}

// parquet gives Options that read these rows.
func parquet(columns string, err error, rows ...[]Cell) Options {
	return Options{OpenParquet: func(string, []string) (RowReader, error) {
		return &fakeParquet{columns: strings.Split(strings.TrimSpace(columns), ","), rows: rows, err: err}, nil
	}}
}

// text is a plain cell, items a list cell.
func text(s string) Cell        { return Cell{Text: s} }
func items(list ...string) Cell { return Cell{IsList: true, List: list} }
