package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rehydrate/internal/unpack"
	"rehydrate/internal/userfile"
	"rehydrate/manifest/table"
)

// An inputFile is one file of a manifest.
type inputFile struct {
	path   string // to open it, and for messages
	from   string // to open it, where path is for messages alone: that of standard input
	bare   bool   // it has no header
	inside string // the name below the release folder, empty outside of one
	split  string // of all its rows, empty where a column or nothing says it
	named  string // the split that its name says, where a column says those of its rows
	format Format
	sum    string // SHA-256 of its bytes, lower-case hex
}

const maxFiles = 4096 // files of a manifest

var errNotRegular = errors.New("not a regular file")

// openInside opens a file below dir; a symbolic link cannot lead out of it.
func openInside(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait forever
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become one
}

func (r *Release) open(in inputFile) (f *os.File, err error) {
	if in.inside != "" {
		f, err = openInside(r.Dir, in.inside)
	} else if info, failed := os.Stat(cmp.Or(in.from, in.path)); failed != nil {
		err = failed
	} else if !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", in.path, errNotRegular)
	} else {
		f, _, err = userfile.Open(cmp.Or(in.from, in.path)) // it may have become a pipe
	}
	if err != nil {
		return nil, fmt.Errorf("open manifest: %w", err)
	}
	return f, nil
}

// expand gives the files that a name means below a folder: the file of that name, the files of the folder of that
// name whose endings say a format, or those that match it as a pattern. They stand in order of their names.
func expand(root fs.FS, name string) ([]string, error) {
	name = filepath.ToSlash(filepath.Clean(name))
	if !filepath.IsLocal(name) {
		return nil, errors.New("path escapes the release folder")
	}
	info, err := fs.Stat(root, name)
	if err == nil && !info.IsDir() {
		return []string{name}, nil
	}
	pattern := name
	if err == nil {
		pattern = strings.TrimPrefix(name+"/*", "./")
	}
	matches, failed := fs.Glob(root, pattern)
	if failed != nil {
		return nil, failed
	}
	if pattern != name { // beside the data a folder may have a README
		matches = slices.DeleteFunc(matches, func(path string) bool { _, p := table.FormatOf(path); return p != nil })
	}
	if len(matches) == 0 && err != nil {
		return nil, err
	}
	return matches, nil
}

// digest sets the sums of the files and the manifest's digest: the sum of a single file, or the SHA-256 of what
// sha256sum prints of several.
func (r *Release) digest() error {
	list := sha256.New()
	for i := range r.files {
		in := &r.files[i]
		var err error
		in.sum, err = r.sum(*in)
		if err != nil {
			return err
		}
		fmt.Fprintf(list, "%s  %s\n", in.sum, filepath.ToSlash(cmp.Or(in.inside, filepath.Base(in.path))))
	}
	r.ManifestDigest = r.files[0].sum
	if len(r.files) > 1 {
		r.ManifestDigest = hex.EncodeToString(list.Sum(nil))
	}
	return nil
}

// HasFile reports whether a file with this SHA-256, in lower-case hex, is one of the manifest, or the copy of a list
// that a workspace has.
func (r *Release) HasFile(sum string) bool {
	return sum == r.ManifestDigest || slices.ContainsFunc(r.files, func(in inputFile) bool { return in.sum == sum })
}

func (r *Release) sum(in inputFile) (string, error) {
	f, err := r.open(in)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", in.path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A fileReader gives the bytes of a file of text, unpacked, and digests the file as it is read.
type fileReader struct {
	*unpack.Reader
	disk io.Closer
	raw  io.Reader // the file, which the digest sees
	hash hash.Hash
	path string
}

func openText(f *os.File, path string) (*fileReader, error) {
	t := &fileReader{disk: f, hash: sha256.New(), path: path}
	t.raw = io.TeeReader(f, t.hash)
	var err error
	t.Reader, err = unpack.NewReader(t.raw)
	if err != nil {
		return nil, t.damaged(err)
	}
	return t, nil
}

const damagedFile = "it is damaged or cut off: copy it again, or unpack it with the program that packed it"

func (t *fileReader) damaged(err error) error {
	if e := (*unpack.Error)(nil); errors.As(err, &e) {
		return &Problem{File: t.path, Line: 1, Message: e.Error(), Hint: damagedFile}
	}
	return err
}

// Read gives what is wrong with a packed file as a *Problem.
func (t *fileReader) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	return n, t.damaged(err)
}

// Close closes the file.
func (t *fileReader) Close() error {
	t.Reader.Close()
	return t.disk.Close()
}

// sum reads what is left of the file and gives the digest of all of it.
func (t *fileReader) sum() (string, error) {
	_, err := io.Copy(io.Discard, t.raw)
	return hex.EncodeToString(t.hash.Sum(nil)), err
}

// Rows are the rows of the files of a manifest, one file after the other. It belongs to one reading, and is closed
// after it.
type Rows struct {
	release *Release
	want    []string // as openRows has it
	next    int      // the file after the present one
	count   int      // rows that were met, also those that are wrong

	source table.Source // of the present file
	closer io.Closer
	text   *fileReader // nil for Parquet

	columns []string
	index   map[string]int
	met     []bool // whether any row had the column
	unread  []Unread
	from    []int // column of the source -> column, -1 for one that is not wanted
	cells   []Cell
}

// Rows opens the manifest's rows with all columns that its files have, as they name them.
func (r *Release) Rows() (*Rows, error) { return r.openRows(nil) }

// openRows opens the manifest's rows. want are the columns to give; nil are all, as they are met.
func (r *Release) openRows(want []string) (*Rows, error) {
	m := &Rows{release: r, want: want, index: make(map[string]int)}
	for _, name := range want {
		m.column(name)
	}
	return m, m.advance()
}

func (m *Rows) column(name string) int {
	m.index[name] = len(m.columns)
	m.columns = append(m.columns, name)
	m.met = append(m.met, false)
	m.cells = append(m.cells, Cell{Null: true})
	return len(m.columns) - 1
}

// Columns gives the columns of the files so far, in the order in which they were met; a record of JSON can add some.
func (m *Rows) Columns() []string { return m.columns }

// Unread gives the columns of the files so far whose values cannot be read, and which are not among Columns for them.
func (m *Rows) Unread() []Unread { return m.unread }

// file is the one that the last row stood in.
func (m *Rows) file() inputFile { return m.release.files[m.next-1] }

// advance goes to the next file. Its errors are *Problems or those of the disk.
func (m *Rows) advance() error {
	m.Close()
	in := m.release.files[m.next]
	m.next++
	m.from, m.text, m.closer = nil, nil, nil
	err := m.openFile(in)
	if err == nil {
		m.join()
		return m.lacks(in)
	}
	m.Close()
	if p, ok := table.AsProblem(err); ok {
		return table.One(p)
	}
	return fmt.Errorf("open manifest: %w", err)
}

func (m *Rows) openFile(in inputFile) (err error) {
	f, err := m.release.open(in)
	if err != nil {
		return err
	}
	m.closer = f
	if err := standIn(f, in.path); err != nil {
		return err
	}
	if in.format == Parquet {
		return m.openParquet(in)
	}
	m.text, err = openText(f, in.path)
	if err != nil {
		return err
	}
	m.closer = m.text
	switch in.format {
	case CSV, TSV:
		open := table.NewCSV
		if in.bare {
			open = table.NewBareCSV
		}
		m.source, err = open(m.text, in.path, commaOf(in.format))
	case table.List:
		isHeader := m.release.options.isListHeader
		if in.bare {
			isHeader = func(string) (bool, *Problem) { return false, nil }
		}
		m.source, err = table.NewList(m.text, in.path, FieldID.String(), isHeader)
	case JSON:
		m.source, err = table.NewJSON(m.text, in.path, m.want, m.release.records)
	default:
		m.source = table.NewJSONL(m.text, in.path, m.want)
	}
	return err
}

// openParquet opens a file by its path, which its reader wants. The file that was open before is closed.
func (m *Rows) openParquet(in inputFile) error {
	m.Close()
	m.closer = nil
	if m.release.options.OpenParquet == nil {
		return &Problem{File: in.path, Line: 1, Message: "Parquet manifests cannot be read here",
			Hint: "save the manifest as CSV"}
	}
	p, err := m.release.options.OpenParquet(in.path, m.want)
	if err == nil {
		m.source, m.closer = table.NewParquet(p), p
		m.unread = append(m.unread, p.Unread()...)
	}
	return err
}

// join gives the columns that the file has a place among all.
func (m *Rows) join() {
	for _, name := range m.source.Columns()[len(m.from):] {
		i, known := m.index[name]
		if !known && m.want == nil {
			i, known = m.column(name), true
		}
		if !known {
			i = -1
		}
		m.from = append(m.from, i)
	}
}

// lacks finds a column that is wanted and that the file does not have. Keys of JSON need not be in the first record:
// they are looked for to the end.
func (m *Rows) lacks(in inputFile) error {
	if in.format == JSON || in.format == JSONL {
		return nil
	}
	for i, name := range m.want {
		has := slices.Contains(m.from, i)
		m.met[i] = m.met[i] || has
		if !has && slices.Contains(m.release.asides, name) {
			continue
		}
		// the header was checked when a release was opened, but not of a Source
		if !has && m.next == 1 && !m.release.blanks {
			return fmt.Errorf("read %s: the manifest no longer has column %s", in.path, table.Quote(name))
		}
		if !has {
			return table.One(&Problem{File: in.path, Line: 1,
				Message: "the file has no column " + table.Quote(name) + ", which another file of the manifest has",
				Hint:    "all files of a manifest have the same columns"})
		}
	}
	return nil
}

// Next gives the cells of the next row, in the order of Columns, which are valid until the following call; a column
// that the row's file lacks is Null. At the end of the last file the error is io.EOF. After a *Problem, which is about
// one row, the next row can be read; another error ends the reading, such as that a file was changed since the release
// was opened.
func (m *Rows) Next() ([]Cell, error) {
	cells, err := m.source.Next()
	for err == io.EOF {
		if err := m.finish(); err != nil {
			return nil, err
		}
		if m.next == len(m.release.files) {
			return nil, io.EOF
		}
		if err := m.advance(); err != nil {
			return nil, err
		}
		clear(m.cells)
		for i := range m.cells {
			m.cells[i].Null = true
		}
		cells, err = m.source.Next()
	}
	if err != nil {
		return nil, err
	}
	if len(cells) > len(m.from) {
		m.join() // a record of JSON may have further keys
	}
	for i, to := range m.from {
		if to >= 0 {
			m.cells[to] = cells[i]
			m.met[to] = m.met[to] || !cells[i].Absent
		}
	}
	return m.cells, nil
}

// finish notes the digest of the file that was read.
func (m *Rows) finish() error {
	in := m.file()
	sum, err := "", error(nil)
	if m.text != nil {
		sum, err = m.text.sum()
	} else {
		sum, err = m.release.sum(in)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", in.path, err)
	}
	if sum != in.sum {
		return fmt.Errorf("read %s: the file was changed while it was in use; start again", in.path)
	}
	return nil
}

// Place gives the file, line and column of cell i of the last row; of the row itself for -1. See Problem.
func (m *Rows) Place(i int) (file string, line, column int) {
	if i >= 0 {
		i = slices.Index(m.from, i)
	}
	line, column = m.source.At(i)
	return m.file().path, line, column
}

// Close closes the file that is open.
func (m *Rows) Close() error {
	if m.closer == nil {
		return nil
	}
	return m.closer.Close()
}
