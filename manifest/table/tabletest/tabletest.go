// Package tabletest has what tests of readers of tables share: files, rows of a Parquet, and problems with their
// places.
package tabletest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest/table"
)

// Folder writes files (name -> text) into a new folder.
func Folder(t testing.TB, files map[string]string) string {
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

// File writes one file and gives its path.
func File(t testing.TB, name, text string) string {
	t.Helper()
	return filepath.Join(Folder(t, map[string]string{name: text}), name)
}

// Places gives each problem of err as "file:line:column message", the file as its base
// name, and fails the test if one has no line or no hint.
func Places(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var problems *table.Problems
	if !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Fatalf("error %v is not a *table.Problems", err)
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

// WantPlaces compares the problems of err with the beginnings that they should have.
func WantPlaces(t testing.TB, name string, err error, want ...string) {
	t.Helper()
	got := Places(t, err)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%.150q: problems %.900q\nwant %q", name, got, want)
	}
}

// parquet gives the rows that it holds.
type parquet struct {
	columns []string
	unread  []table.Unread
	rows    [][]table.Cell
	err     error // after the rows, instead of io.EOF
	next    int
}

func (f *parquet) Columns() []string      { return f.columns }
func (f *parquet) Unread() []table.Unread { return f.unread }
func (f *parquet) Close() error           { return nil }
func (f *parquet) Next() ([]table.Cell, error) {
	if f.next == len(f.rows) && f.err == nil {
		return nil, io.EOF
	}
	if f.next == len(f.rows) {
		return nil, f.err
	}
	f.next++
	return f.rows[f.next-1], nil
}

// Parquet gives what opens a Parquet file with these columns, separated by commas, and rows; err comes after them, nil
// for none. notes:map is a column of a type that is not read.
func Parquet(columns string, err error, rows ...[]table.Cell) func(string, []string) (table.RowReader, error) {
	return func(string, []string) (table.RowReader, error) {
		f := &parquet{rows: rows, err: err}
		for column := range strings.SplitSeq(strings.TrimSpace(columns), ",") {
			if name, typ, unread := strings.Cut(column, ":"); unread {
				f.unread = append(f.unread, table.Unread{Name: name, Type: typ})
			} else {
				f.columns = append(f.columns, name)
			}
		}
		return f, nil
	}
}

// Text is a plain cell.
func Text(s string) table.Cell { return table.Cell{Text: s} }

// Items is a cell with a list.
func Items(list ...string) table.Cell { return table.Cell{IsList: true, List: list} }
