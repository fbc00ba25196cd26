// Package manifest owns the release: the folder (or bare annotations file) that a dataset's maintainers publish, and
// the two tables kept beside it, outcomes.csv and tombstones.csv. It turns manifest rows into entries under a label
// schema and says exactly where a file is wrong.
//
//   - Nothing is guessed in silence: an unknown key, column, label or id form is a Problem with file, line, column
//     (in bytes, from 1; for Parquet row and number of the column) and a hint.
//   - Memory does not grow with the rows, except for one small record per post, which finds duplicates.
//   - Bad input never panics and never hangs; a check of a whole file is linear in it.
//   - Labels leave as they were released: same labels, same order, no correction.
//   - A release folder's files are opened inside the folder only, symlinks included.
//   - A file that is rewritten while it is read is noticed at its end (by digest), not before.
//
// The package reads no clock and no network and starts no process.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// SettingsName is the file that makes a folder a release.
const SettingsName = "release.toml"

// A Release is an opened release: what release.toml says, and where its files are. It holds no file open and no row
// in memory; its methods may be called again and from several goroutines.
type Release struct {
	Name, Version, Date, Homepage, License, Citation string

	Dir            string // the release folder, "" for a bare annotations file
	ManifestPath   string
	PolicyPath     string // "" when the release has none
	TombstonesPath string // "" when the release has none
	// RevocationsPath is the list of revoked grants, "" when the release has none. Its
	// signature lies beside it, under the same name with SignatureSuffix.
	RevocationsPath string
	Signers         []Signer // whose grants and revocation lists the release accepts
	Format          Format
	Schema          Schema

	ManifestDigest string // SHA-256 of the manifest's bytes, lower-case hex
	Digest         string // SHA-256 of release.toml's bytes and then ManifestDigest

	options      Options
	file         settingsFile
	toml         *Document           // release.toml, nil for a bare annotations file
	vocabularies []vocabulary        // of Schema.Categories, with the mapped spellings
	separator    string              // "": each cell has its own, one of separators
	isTable      bool                // of OpenTable: any categories will do, and ids may be ID/N
	columns      map[string]string   // fieldNames and categories -> column; "" = none
	oneHot       map[string][]string // category -> column by label, "" = none
	named        map[string]string   // column -> the key of release.toml that names it
}

func newRelease(o Options) *Release {
	return &Release{options: o, columns: make(map[string]string), oneHot: make(map[string][]string), named: make(map[string]string)}
}

func (r *Release) setSchema(schema Schema) {
	r.Schema = schema
	for i := range schema.Categories {
		r.vocabularies = append(r.vocabularies, newVocabulary(&schema.Categories[i]))
	}
}

// Options are what opening a release needs from outside.
type Options struct {
	OpenParquet OpenParquet // nil: Parquet manifests are refused
	// MayBeEmpty lets OpenTable open a file without rows, such as a split that kept none.
	MayBeEmpty bool
}

// Open opens a release folder (or its release.toml), or a bare annotations file with
// FigSIM's codes. It reads the settings, the digests and the manifest's header, not the
// rows: Check does. What is wrong with the files comes as *Problems.
func Open(path string, o Options) (*Release, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open release: %w", err)
	}
	if info.IsDir() {
		return openFolder(path, o)
	}
	if filepath.Base(path) == SettingsName {
		return openFolder(filepath.Dir(path), o)
	}
	r, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	r.setSchema(FigSIM())
	return r, r.bind(nil)
}

func openFolder(dir string, o Options) (*Release, error) {
	file := filepath.Join(dir, SettingsName)
	f, err := openInside(dir, SettingsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, one(&Problem{File: dir, Message: "the folder has no release.toml, so it is not a release",
			Hint: "rehydrate init DIR --manifest FILE makes a release of an annotations file"})
	}
	if err != nil {
		return nil, fmt.Errorf("open release: %w", err)
	}
	defer f.Close()
	// One byte too many shows that the file is too long.
	b, err := io.ReadAll(io.LimitReader(f, maxTOML+1))
	if err != nil {
		return nil, fmt.Errorf("open release: %w", err)
	}
	r, err := parseSettings(b, file, o)
	if err != nil {
		return nil, err
	}
	r.Dir = dir
	if err := r.findFiles(); err != nil {
		return nil, err
	}
	return r, r.bind(b)
}

// bind digests the manifest and finds its columns.
func (r *Release) bind(toml []byte) error {
	header, err := r.readHeader(toml)
	if err != nil {
		return err
	}
	return r.match(header)
}

func (r *Release) findFiles() error {
	for _, file := range []struct {
		key, usual string
		name, path *string
	}{
		{"manifest", "", &r.file.Manifest, &r.ManifestPath},
		{"policy", "policy.toml", &r.file.Policy, &r.PolicyPath},
		{"tombstones", TombstonesName, &r.file.Tombstones, &r.TombstonesPath},
		{"revocations", RevocationsName, &r.file.Revocations, &r.RevocationsPath},
	} {
		named := r.toml.Has(file.key)
		if !named {
			*file.name = file.usual
		}
		f, err := openInside(r.Dir, *file.name)
		if err == nil {
			// Opened only to see now, and not in the middle of a run, that it can be.
			f.Close()
			*file.path = filepath.Join(r.Dir, *file.name)
		} else if named || !errors.Is(err, fs.ErrNotExist) { // those with their usual names may be absent
			if path := (*fs.PathError)(nil); errors.As(err, &path) {
				err = path.Err // the message names the file already
			}
			r.toml.Add(file.key, fmt.Sprintf("%s %s cannot be opened: %s", file.key, quote(*file.name), err),
				"put the file into the release folder, or correct its name here")
		}
	}
	return r.toml.Err()
}

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
	return root.Open(name)
}

func (r *Release) open() (f *os.File, err error) {
	if r.Dir != "" {
		f, err = openInside(r.Dir, r.file.Manifest)
	} else if info, failed := os.Stat(r.ManifestPath); failed != nil {
		err = failed
	} else if !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", r.ManifestPath, errNotRegular)
	} else {
		f, err = os.Open(r.ManifestPath)
	}
	if err != nil {
		return nil, fmt.Errorf("open manifest: %w", err)
	}
	return f, nil
}

func (r *Release) sum() (string, error) {
	f, err := r.open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxFile { // before the digest of it, which takes seconds
		return "", one(&Problem{File: r.ManifestPath, Line: 1, Message: "the manifest is larger than 256 MiB",
			Hint: "keep ids, labels and digests only"})
	}
	h := sha256.New()
	// A file that grows meanwhile has another digest at the end.
	if _, err := io.Copy(h, io.LimitReader(f, maxFile)); err != nil {
		return "", fmt.Errorf("read %s: %w", r.ManifestPath, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unchanged fails when the manifest is not the one that was opened.
func (r *Release) unchanged() error {
	sum, err := r.sum()
	if err == nil && sum != r.ManifestDigest {
		err = fmt.Errorf("read %s: the file was changed while it was in use; start again", r.ManifestPath)
	}
	return err
}

// manifestRows are the rows of a manifest that is open.
type manifestRows struct {
	source
	io.Closer
}

// openRows opens the manifest's rows. want are the keys of JSONL to give as columns, and the columns of Parquet that are
// needed; nil are all, of JSONL as they are met.
func (r *Release) openRows(want []string) (*manifestRows, error) {
	rows := new(manifestRows)
	var err error
	if r.Format == Parquet {
		if r.options.OpenParquet == nil {
			return nil, one(&Problem{File: r.ManifestPath, Line: 1, Message: "Parquet manifests cannot be read here",
				Hint: "save the manifest as CSV"})
		}
		var p RowReader
		p, err = r.options.OpenParquet(r.ManifestPath, want)
		rows.source, rows.Closer = &parquetRows{RowReader: p}, p
	} else {
		f, failed := r.open()
		if failed != nil {
			return nil, failed
		}
		rows.Closer = f
		switch r.Format {
		case CSV:
			rows.source, err = newCSVRows(f, r.ManifestPath, ',')
		case TSV:
			rows.source, err = newCSVRows(f, r.ManifestPath, '\t')
		default:
			rows.source = newJSONRows(f, r.ManifestPath, want)
		}
	}
	if err == nil {
		return rows, nil
	}
	if rows.Closer != nil { // a Parquet file that failed to open has nothing to close
		rows.Close()
	}
	if p, ok := asProblem(err); ok {
		return nil, one(p)
	}
	return nil, fmt.Errorf("open manifest: %w", err)
}

// sampleRows is how many JSON lines tell which keys there are when release.toml does not.
const sampleRows = 1000

// readHeader digests the manifest and gives its columns: the header, or the keys of the first lines.
func (r *Release) readHeader(toml []byte) ([]string, error) {
	// The digest comes first: rows are held against it when they have been read.
	sum, err := r.sum()
	if err != nil {
		return nil, err
	}
	whole := sha256.Sum256(append(slices.Clip(toml), sum...))
	r.ManifestDigest, r.Digest = sum, hex.EncodeToString(whole[:])
	want := []string{}
	if r.Format == JSONL {
		want = nil
	}
	rows, err := r.openRows(want)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if r.Format != JSONL {
		return rows.Columns(), nil
	}
	// What is wrong with these lines is for the check to say, unless no key is found.
	var problems Problems
	for range sampleRows {
		_, err := rows.Next()
		if err == io.EOF {
			break
		}
		if p, ok := asProblem(err); ok {
			problems.add(*p)
		} else if err != nil {
			return nil, err
		}
	}
	if len(rows.Columns()) == 0 {
		problems.add(Problem{File: r.ManifestPath, Line: 1, Message: "no line holds a JSON object with keys",
			Hint: `write one whole object a line: {"id": "abc123", ...}`})
		return nil, &problems
	}
	return rows.Columns(), nil
}
