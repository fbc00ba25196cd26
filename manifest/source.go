package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rehydrate/manifest/table"
)

// A SourceFile is a file of annotations that belongs to no release yet.
type SourceFile struct {
	Path   string
	Format Format
	Split  string // of all its rows; "" where a column says it, or nothing does
	From   string // the file to open where Path is for messages alone; "" for Path
	Bare   bool   // it has no header: its first line is a row
}

func (f SourceFile) input() inputFile {
	return inputFile{path: f.Path, from: f.From, format: f.Format, split: f.Split, bare: f.Bare}
}

// Stdin gives what came on standard input, and is kept in a file, as a source of the name -. Its beginning tells
// whether it is JSON, a table or a list.
func Stdin(file string) (SourceFile, error) {
	format, err := sniff("-", file, "")
	return SourceFile{Path: "-", From: file, Format: format}, err
}

// FindSources gives the files that a path means: the file of that name, those in the folder of that name whose endings
// say a format, or those that match it as a pattern, in the order of their names. There is one at least. A text file of
// one column is a list. An error about the ending of a file is *Problems.
func FindSources(path string) ([]SourceFile, error) {
	names, err := []string{path}, error(nil)
	if info, failed := os.Stat(path); failed == nil && info.IsDir() {
		path = ofDataset(path)
		names, err = expand(os.DirFS(path), ".")
		names = each(names, func(name string) string { return filepath.Join(path, name) })
	} else if failed != nil {
		names, _ = filepath.Glob(path)
		if len(names) == 0 {
			err = failed
		}
	}
	if err == nil && len(names) == 0 {
		err = errors.New("the folder has no files of annotations (.csv, .tsv, .jsonl, .json, .parquet)")
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	var files []SourceFile
	for _, name := range names {
		format, isText := textFormat(name)
		var p *Problem
		if isText {
			format, err = sniff(name, name, format)
			p, _ = table.AsProblem(err)
		} else {
			format, p = table.FormatOf(name)
		}
		if p != nil {
			return nil, table.One(p)
		}
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		files = append(files, SourceFile{Path: name, Format: format})
	}
	return files, nil
}

// ofDataset gives the folder with the data of a dataset, as a run makes them and as Hugging Face has them: data in a
// folder with a description of the dataset. It gives any other folder as it is.
func ofDataset(folder string) string {
	data := filepath.Join(folder, "data")
	_, err := os.Stat(filepath.Join(folder, "croissant.json"))
	if info, failed := os.Stat(data); err == nil && failed == nil && info.IsDir() {
		return data
	}
	return folder
}

// SkippedSources gives the names of what FindSources leaves out of a folder and may be annotations: folders, and files
// with other endings than those of a format. Documents and hidden files are not named.
func SkippedSources(path string) (names []string) {
	list, err := os.ReadDir(ofDataset(path))
	if err != nil { // it is no folder
		return nil
	}
	for _, entry := range list {
		name := entry.Name()
		_, p := table.FormatOf(name)
		ending := strings.ToLower(filepath.Ext(name))
		switch {
		case strings.HasPrefix(name, "."), !entry.IsDir() && (p == nil || slices.Contains(documents, ending)):
		case entry.IsDir():
			names = append(names, name+"/")
		default:
			names = append(names, name)
		}
	}
	return names
}

// documents are endings of files that stand beside annotations and hold none; "" is that of LICENSE.
var documents = []string{"", ".md", ".rst", ".toml", ".yaml", ".yml", ".py", ".ipynb", ".sh", ".r", ".pdf", ".html",
	".jpg", ".jpeg", ".png", ".gif", ".webp", ".cff", ".sig", ".log"}

// A Source is files of annotations that are one manifest and belong to no release yet. It holds no file open and no row
// in memory. Every reading of it notices a file that was changed since OpenSource.
type Source struct{ files *Release }

// OpenSource digests one file or more. records is the path of keys to the records in JSON, "" to look for it.
func OpenSource(files []SourceFile, records string, o Options) (*Source, error) {
	r := newRelease(o)
	r.records = records
	for _, file := range files {
		if len(r.files) == maxFiles {
			return nil, table.One(&Problem{File: file.Path, Line: 1,
				Message: fmt.Sprintf("these are more than %d files", maxFiles), Hint: "put several into one"})
		}
		r.files = append(r.files, file.input())
	}
	r.ManifestPath = r.files[0].path
	return &Source{r}, r.digest()
}

// Rows opens the rows of the files with all their columns, as the files name them.
func (s *Source) Rows() (*Rows, error) { return s.files.Rows() }

// A Meaning is what release.toml says of a manifest's columns.
type Meaning struct {
	Schema Schema
	// Columns names the file's column of each field, category or column of Schema; what is missing has none.
	Columns map[string]string
	// OneHot names the columns of a category that has one for each label, in order of the labels.
	OneHot    map[string][]string
	Separator string // between the labels of a cell
	// Separators gives that of a category by its name; what is missing has Separator.
	Separators map[string]string
	// Splits gives the name of each split as the files spell it; what is missing is spelled as it is named.
	Splits  map[string]string
	Lists   []string // columns of the files whose texts are read as the lists that they stand for
	Without Without  // the rows that are left out
}

// A Without says which rows of a source are left out: those of which Is is true, given the texts of Columns, "" for no
// value.
type Without struct {
	Columns []string
	Is      func(texts []string) bool
}

// Texts gives the texts of a row by which Is decides; "" for those of columns that are not among these.
func (w Without) Texts(columns []string, cells []Cell) []string {
	texts := make([]string, len(w.Columns))
	for i, name := range w.Columns {
		if at := slices.Index(columns, name); at >= 0 {
			texts[i] = cells[at].Plain()
		}
	}
	return texts
}

// Release gives the files as a release whose columns mean that. An id may be ID/N. A word for a missing value (nan, NA)
// is an empty cell, but in a column of text.
func (s *Source) Release(m Meaning) *Release {
	r := newRelease(s.files.options)
	r.Name, r.ManifestPath, r.ManifestDigest = m.Schema.Name, s.files.ManifestPath, s.files.ManifestDigest
	r.records, r.separator, r.numbered, r.without, r.splits, r.lists = s.files.records, m.Separator, true, m.Without,
		m.Splits, m.Lists
	r.blanks = true
	for _, field := range fieldNames {
		r.columns[field] = ""
	}
	for key, column := range m.Columns {
		r.columns[key], r.named[column] = column, key
	}
	r.oneHot = m.OneHot
	r.files = slices.Clone(s.files.files)
	for i := range r.files {
		if r.columns[FieldSplit.String()] != "" { // which says more than the name of a file
			r.files[i].split, r.files[i].named = "", r.files[i].split
		}
	}
	r.setSchema(m.Schema)
	for i, c := range m.Schema.Categories {
		r.vocabularies[i].separator = m.Separators[c.Name]
	}
	return r
}
