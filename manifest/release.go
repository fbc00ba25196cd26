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
	"time"

	"rehydrate/manifest/table"
)

// SettingsName is the file that makes a folder a release.
const SettingsName = "release.toml"

// A Release is an opened release: what release.toml says, and where its files are. It holds no file open and no row
// in memory; its methods may be called again and from several goroutines.
type Release struct {
	Name, Version, Date, Homepage, License, Citation string

	Dir            string // the release folder, "" for a bare annotations file
	ManifestPath   string // the first file of the manifest
	PolicyPath     string // "" when the release has none
	TombstonesPath string // "" when the release has none
	// RevocationsPath is the list of revoked grants, "" when the release has none. Its
	// signature lies beside it, under the same name with SignatureSuffix.
	RevocationsPath string
	Signers         []Signer // whose grants and revocation lists the release accepts
	Schema          Schema

	ManifestDigest string // SHA-256 of the manifest's bytes, lower-case hex; of several files of what sha256sum prints of them
	Digest         string // SHA-256 of release.toml's bytes and then ManifestDigest

	options      Options
	file         settingsFile
	files        []inputFile       // of the manifest, in the order in which they are read
	sums         *sums             // nil unless the files have to be as they are listed
	records      string            // the path of keys to the records in JSON
	toml         *Document         // release.toml, nil for a bare annotations file
	vocabularies []vocabulary      // of Schema.Categories, with the mapped spellings
	separator    string            // "": each cell has its own, one of separators
	isTable      bool              // of OpenTable: any categories will do
	numbered     bool              // ids may be ID/N
	builtIn      bool              // of BuiltIn, and of a table that is read by it
	without      Without           // of a Source: which rows are left out
	splits       map[string]string // of a Source: spelling -> split
	lists        []string          // of a Source: columns whose texts stand for lists
	// of a Source: words for a missing value count as empty cells, but in columns of text, or where they are labels
	blanks  bool
	columns map[string]string   // fieldNames and categories -> column; "" = none
	oneHot  map[string][]string // category -> column by label, "" = none
	asides  []string            // columns beside fields and categories that are read
	unread  []Unread            // columns of the first file whose values cannot be read
	named   map[string]string   // column -> the key of release.toml that names it
}

func newRelease(o Options) *Release {
	return &Release{options: o, columns: make(map[string]string), oneHot: make(map[string][]string),
		named: make(map[string]string)}
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
	// Unanswered makes OpenTable and OpenKeyed leave out the rows that say that they are no answer (NoAnswer), and is
	// called for each of them; nil reads them all.
	Unanswered func()
	// Missing is called, where OpenTable is read, for each cell of labels that holds a word for a missing value
	// (value.Missing), and so counts as empty.
	Missing func(category, word string)
	// Known reports whether a word is in the dictionary: what is in none can be a name, and what is in it no id. With
	// nil nothing is told by that.
	Known func(word string) bool
	// AsPublished holds what is read of a release folder against its SHA256SUMS, if it has one, and refuses what differs
	// or is missing: a folder that came damaged or incomplete says other things of posts than its maintainers do.
	AsPublished bool
	// Today is the day by which PostID.TooNew tells ids of comments from those of posts; zero where it is not known.
	Today time.Time
}

// InFolder is the error of Open for a file that lies in a release folder: by itself it would be read without what
// release.toml says of it, and pass by the release's policy.
type InFolder struct{ File, Dir string }

func (e *InFolder) Error() string {
	return fmt.Sprintf("%s is part of the release in the folder %s", e.File, e.Dir)
}

// alone refuses a file of a release folder, whether it is named there or by a link.
func alone(path string) error {
	at := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		at = append(at, real)
	}
	for _, name := range at {
		dir := filepath.Dir(name)
		if _, err := os.Stat(filepath.Join(dir, SettingsName)); err == nil {
			return &InFolder{File: path, Dir: dir}
		}
	}
	return nil
}

// Open opens a release folder (or its release.toml), or a bare annotations file with
// FigSIM's codes, which is refused with *InFolder where a release.toml lies beside it. It reads the settings, the
// digests and the manifest's header, not the rows: Check does. What is wrong with the files comes as *Problems.
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
	if err := alone(path); err != nil {
		return nil, err
	}
	r, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	r.setSchema(FigSIM())
	return r, r.bind(nil)
}

// OpenScheme reads which labels annotators may give: the label schema of a release folder or of a TOML file with
// [[category]] tables, such as a release.toml, whose manifest need not be there yet. "figsim" is the built-in one. The
// error is *Problems, or the file cannot be read.
func OpenScheme(path string) (*Release, error) {
	if path == "figsim" {
		return BuiltIn(), nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, SettingsName)
	}
	dir, name := filepath.Split(path)
	b, err := readSmall(dir, name, maxTOML)
	if err != nil {
		return nil, err
	}
	r := newRelease(Options{})
	r.separator = Separators()[0]
	r.toml, err = DecodeTOML(path, b, &r.file)
	if err != nil {
		return nil, err
	}
	r.readSchema()
	r.readColumns()
	r.readLabels()
	if len(r.Schema.Categories) == 0 {
		r.toml.Add("category", "it names no labels to give",
			"write a [[category]] table with name, kind and labels for each question")
	}
	return r, r.toml.Err()
}

// readSmall reads a file of a folder, and one byte too many of one that is longer than most.
func readSmall(dir, name string, most int64) ([]byte, error) {
	f, err := openInside(filepath.Clean(dir), name)
	if err != nil {
		return nil, fmt.Errorf("open release: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("open release: %w", err)
	}
	return b, nil
}

func openFolder(dir string, o Options) (*Release, error) {
	var listed *sums
	if o.AsPublished {
		var err error
		listed, err = readSums(dir)
		if err != nil {
			return nil, err
		}
	}
	b, err := readSmall(dir, SettingsName, maxTOML)
	if errors.Is(err, fs.ErrNotExist) && listed.has(SettingsName) {
		p := listed.missing(SettingsName)
		return nil, table.One(&p)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, table.One(&Problem{File: dir, Message: "the folder has no release.toml, so it is not a release",
			Hint: "rehydrate init DIR --manifest FILE makes a release of an annotations file"})
	}
	if err != nil {
		return nil, err
	}
	if err := listed.checkSettings(b); err != nil {
		return nil, err
	}
	r, err := parseSettings(b, filepath.Join(dir, SettingsName), o)
	if err != nil {
		return nil, err
	}
	r.Dir, r.sums = dir, listed
	if err := r.sums.checkFiles(r); err != nil {
		return nil, err
	}
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
	if err := r.match(header); err != nil {
		return err
	}
	r.findAsides(header)
	return nil
}

// A besideFile is one that a release has beside release.toml and annotations.
type besideFile struct {
	key    string
	name   string
	named  bool    // by release.toml; one with its usual name may be absent
	signed bool    // its signature lies beside it
	path   *string // where the release says that it is there
}

func (r *Release) beside() []besideFile {
	files := []besideFile{
		{key: "policy", name: r.file.Policy, path: &r.PolicyPath},
		{key: "tombstones", name: r.file.Tombstones, path: &r.TombstonesPath},
		{key: "revocations", name: r.file.Revocations, path: &r.RevocationsPath, signed: true},
	}
	for i, usual := range []string{"policy.toml", TombstonesName, RevocationsName} {
		files[i].named = r.toml.Has(files[i].key)
		if !files[i].named {
			files[i].name = usual
		}
	}
	return files
}

func (r *Release) findFiles() error {
	r.findManifest()
	for _, file := range r.beside() {
		f, err := openInside(r.Dir, file.name)
		if err == nil {
			// Opened only to see now, and not in the middle of a run, that it can be.
			f.Close()
			*file.path = filepath.Join(r.Dir, file.name)
		} else if file.named || !errors.Is(err, fs.ErrNotExist) {
			r.cannotOpen(file.key, file.name, err)
		}
	}
	return r.toml.Err()
}

func (r *Release) cannotOpen(key, name string, err error) {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // the message names the file already
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("there is no such file")
	}
	r.toml.Add(key, fmt.Sprintf("%s %s cannot be opened: %s", key, table.Quote(name), err),
		"put the file into the release folder, or correct its name here")
}

// namedFiles are the files, folders and patterns that release.toml names as the manifest.
func (r *Release) namedFiles() []manifestFile {
	if len(r.file.Files) > 0 {
		return r.file.Files
	}
	return []manifestFile{{Path: r.file.Manifest}}
}

// findManifest finds the files that manifest or the [[file]] tables name.
func (r *Release) findManifest() {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		r.cannotOpen("manifest", r.Dir, err)
		return
	}
	defer root.Close()
	for i, file := range r.namedFiles() {
		key := "manifest"
		if len(r.file.Files) > 0 {
			key = fmt.Sprintf("file[%d].path", i)
		}
		if file.Path == "" { // which is said already
			continue
		}
		names, err := expand(root.FS(), file.Path)
		if err == nil && len(names) == 0 {
			err = errors.New("it is a folder without files of annotations")
		}
		if err != nil {
			r.cannotOpen(key, file.Path, err)
			continue
		}
		for _, name := range names {
			in := inputFile{path: filepath.Join(r.Dir, name), inside: name, split: file.Split, format: r.file.Format}
			same := func(o inputFile) bool { return o.inside == name }
			var p *Problem
			if in.format == "" {
				in.format, p = table.FormatOf(name)
			}
			f, err := openInside(r.Dir, name)
			switch {
			case p != nil:
				r.toml.Add(key, p.Message, p.Hint)
			case err != nil:
				r.cannotOpen(key, name, err)
			case len(r.files) == maxFiles:
				r.toml.Add(key, fmt.Sprintf("the manifest has more than %d files", maxFiles), "put several into one")
				return
			case slices.ContainsFunc(r.files, same):
				r.toml.Add(key, "file "+table.Quote(name)+" is named twice", "keep it in one place")
			default:
				f.Close()
				r.files = append(r.files, in)
			}
		}
	}
	if len(r.files) > 0 {
		r.ManifestPath = r.files[0].path
	}
}

// setDigest sets the digest of the manifest, and with it that of the release.
func (r *Release) setDigest(toml []byte, ofManifest string) {
	whole := sha256.Sum256(append(slices.Clip(toml), ofManifest...))
	r.ManifestDigest, r.Digest = ofManifest, hex.EncodeToString(whole[:])
}

// sampleRows is how many JSON lines tell which keys there are when release.toml does not.
const sampleRows = 1000

// hasKeys reports whether the first file's columns are keys, which show only as they are met.
func (r *Release) hasKeys() bool { return r.files[0].format == JSONL || r.files[0].format == JSON }

// readHeader digests the manifest and gives its columns: those of the first file, or the keys of its first records.
func (r *Release) readHeader(toml []byte) ([]string, error) {
	// The digest comes first: rows are held against it when they have been read.
	if err := r.digest(); err != nil {
		return nil, err
	}
	if err := r.sums.checkManifest(r); err != nil {
		return nil, err
	}
	r.setDigest(toml, r.ManifestDigest)
	want := []string{}
	if r.hasKeys() {
		want = nil
	}
	rows, err := r.openRows(want)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !r.hasKeys() {
		r.unread = rows.Unread()
		return rows.source.Columns(), nil
	}
	// What is wrong with these lines is for the check to say, unless no key is found.
	var problems Problems
	for range sampleRows {
		_, err := rows.Next()
		if err == io.EOF {
			break
		}
		if p, ok := table.AsProblem(err); ok {
			problems.Add(*p)
		} else if err != nil {
			return nil, err
		}
	}
	if len(rows.Columns()) > 0 {
		return rows.Columns(), nil
	}
	if problems.Count() == 0 {
		problems.Add(Problem{File: r.ManifestPath, Line: 1, Message: "no record holds a JSON object with keys",
			Hint: table.WholeObject})
	}
	return nil, &problems
}
