package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// figsimHeader starts most manifests of these tests.
const figsimHeader = "id,split,figurative,severity,related_content,modality,context\n"

// folder writes files (name -> text) into a new folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bare opens text as an annotations file of that name.
func bare(t testing.TB, name, text string) (*Release, error) {
	t.Helper()
	return Open(filepath.Join(folder(t, map[string]string{name: text}), name), Options{})
}

// checked opens and checks text as an annotations file of that name.
func checked(t testing.TB, name, text string) (Summary, error) {
	t.Helper()
	r, err := bare(t, name, text)
	if err != nil {
		return Summary{}, err
	}
	return r.Check(t.Context())
}

// entries reads text as an annotations file of that name.
func entries(t testing.TB, name, text string) []Entry {
	t.Helper()
	r, err := bare(t, name, text)
	if err != nil {
		t.Fatal(err)
	}
	return all(t, r)
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

// matchPlaces compares problems with the beginnings that they should have.
func matchPlaces(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("no problem %q", want[i])
		case i >= len(want):
			t.Errorf("problem %q, want none", got[i])
		case !strings.HasPrefix(got[i], want[i]):
			t.Errorf("problem %q, want %q", got[i], want[i])
		}
	}
}

// all reads every entry.
func all(t testing.TB, r *Release) []Entry {
	t.Helper()
	var entries []Entry
	for e, err := range r.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
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
	if f.next == len(f.rows) {
		if f.err != nil {
			return nil, f.err
		}
		return nil, io.EOF
	}
	f.next++
	return f.rows[f.next-1], nil
}

// text is a plain cell, items a list cell.
func text(s string) Cell        { return Cell{Text: s} }
func items(list ...string) Cell { return Cell{IsList: true, List: list} }
