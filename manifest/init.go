package manifest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"rehydrate/internal/durable"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// InitOptions are what a maintainer says of the files; what is empty is guessed.
type InitOptions struct {
	Options
	Signers   []Signer
	ID        string   // the column of post ids
	Records   string   // the path of keys to the records in JSON
	Keep      []string // columns to pass through although they hold words, addresses or people
	PostsOnly bool     // leave out the rows about comments
	Many      bool     // several rows are about one image
}

// A Draft is a release that Init made of annotations, before it is written.
type Draft struct {
	Settings []byte     // release.toml
	Notes    []string   // what was guessed and why, one line each
	Warnings []string   // what to look at before publishing
	Example  [][]string // after Write: a header and the first ten rows, for a person to judge

	source *Release // the files as they were guessed to be
	format Format   // of the annotations in the release folder
	fields []Field  // those that they have beside the id
}

// Init guesses the columns and labels of annotations from all their rows. The files of a folder and those that match a
// pattern count as one manifest. When there is nothing to build on, or a person has to decide, the error is *Problems.
func Init(ctx context.Context, paths []string, o InitOptions) (*Draft, error) {
	source, err := sources(paths, o)
	if err != nil {
		return nil, err
	}
	if err := source.digest(); err != nil {
		return nil, err
	}
	g := &guesser{InitOptions: o, names: make(map[string]bool)}
	var rows int
	g.columns, g.differ, rows, err = source.survey(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.guess(source.ManifestPath); err != nil {
		return nil, err
	}
	d := &Draft{source: source, format: JSONL, Notes: g.notes, Warnings: g.warnings}
	if format := source.files[0].format; format == CSV || format == TSV {
		d.format = CSV
	}
	if err := source.adopt(g); err != nil {
		return nil, err
	}
	for _, field := range Fields()[FieldSplit:] {
		if source.columns[field.String()] != "" && !g.names[field.String()] || field == FieldSplit && source.files[0].split != "" ||
			field == FieldImage && g.column(g.columnOf("id")).forms[formGallery] > 0 {
			d.fields = append(d.fields, field)
		}
	}
	if !value.IsLine(source.Name, maxLabelText) {
		source.Name = "annotations"
	}
	var text bytes.Buffer
	err = draftTemplate.Execute(&text, map[string]any{"Name": source.Name, "Files": each(source.files, func(in inputFile) string { return filepath.Base(in.path) }),
		"Rows": rows, "Manifest": d.manifest(), "Many": o.Many, "Fields": append([]string{"id"}, each(d.fields, Field.String)...), "Guesses": g.guesses, "IsFigSIM": g.isFigSIM,
		"LeftOut": g.leftOut, "Warnings": d.Warnings, "Signers": o.Signers, "Separator": d.source.Schema.separator()})
	if err != nil {
		return nil, err
	}
	d.Settings = text.Bytes()
	// It is read as Open will read it.
	if _, err := parseSettings(d.Settings, SettingsName, o.Options); err != nil {
		return nil, fmt.Errorf("the release.toml that was guessed cannot be read: %w", err)
	}
	return d, nil
}

func (d *Draft) manifest() string { return "annotations." + string(d.format) }

// sources finds the files, and the split of each where their names say it.
func sources(paths []string, o InitOptions) (*Release, error) {
	r := newRelease(o.Options)
	r.records, r.separator = o.Records, separators[0]
	for _, path := range paths {
		names, err := []string{path}, error(nil)
		if info, failed := os.Stat(path); failed == nil && info.IsDir() {
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
		for _, name := range names {
			format, p := table.FormatOf(name)
			if p != nil {
				return nil, table.One(p)
			}
			if len(r.files) == maxFiles {
				return nil, table.One(&Problem{File: name, Line: 1, Message: fmt.Sprintf("these are more than %d files", maxFiles), Hint: "put several into one"})
			}
			r.files = append(r.files, inputFile{path: name, format: format, split: splitOf(name)})
		}
	}
	r.ManifestPath = r.files[0].path
	r.Name = table.Stem(r.ManifestPath)
	// A split counts where every file has one, and they differ.
	alike := func(in inputFile) bool { return in.split == "" || len(r.files) == 1 }
	if slices.ContainsFunc(r.files, alike) {
		for i := range r.files {
			r.files[i].split = ""
		}
	}
	return r, nil
}

// splitOf gives the split that a file's name says, "" for none.
func splitOf(path string) string {
	for _, word := range strings.FieldsFunc(value.Fold(table.Stem(path)), func(r rune) bool { return !value.IsWord(string(r), 4) || r == '_' }) {
		if slices.Contains([]string{"train", "training", "val", "valid", "validate", "validation", "dev", "test", "testing"}, word) {
			return word
		}
	}
	return ""
}

// adopt takes the guesses as the columns and labels of the release.
func (r *Release) adopt(g *guesser) error {
	r.separator, r.numbered = g.separator, true
	if g.comments != nil {
		r.onlyWithout = g.comments.name
	}
	schema := Schema{Name: r.Name, Many: g.Many}
	for _, field := range fieldNames {
		r.columns[field] = ""
	}
	for _, guess := range g.guesses {
		r.columns[guess.Name], r.named[guess.Column] = guess.Column, guess.Name
		switch {
		case guess.Category != nil:
			schema.Categories = append(schema.Categories, *guess.Category)
		case guess.Passed != nil:
			schema.Columns = append(schema.Columns, *guess.Passed)
		}
	}
	if r.columns["split"] != "" {
		for i := range r.files {
			r.files[i].split = ""
		}
	}
	r.setSchema(schema)
	return r.match(each(g.columns, func(c *surveyed) string { return c.name }))
}

// Write makes the release folder dir, with the annotations and the extra files (name -> bytes: policy.toml,
// tombstones.csv). It returns the paths, and refuses a dir that exists and is not empty. Rows that are wrong come as
// *Problems. After an error nothing that it wrote is left.
func (d *Draft) Write(ctx context.Context, dir string, extra map[string][]byte) (paths []string, err error) {
	files, err := os.ReadDir(dir)
	if len(files) > 0 {
		return nil, fmt.Errorf("write release: %w", &Problem{File: dir, Message: "the folder exists and is not empty", Hint: "choose a new folder, or empty this one first"})
	}
	made := errors.Is(err, fs.ErrNotExist) // then it goes again after an error
	if err := durable.MkdirAll(ctx, dir, 0o755); err != nil {
		return nil, fmt.Errorf("write release: %w", err)
	}
	texts := map[string][]byte{SettingsName: d.Settings}
	maps.Copy(texts, extra)
	// release.toml is written last, so that a folder that has one is whole.
	for _, name := range slices.Concat([]string{d.manifest()}, slices.Sorted(maps.Keys(extra)), []string{SettingsName}) {
		path := filepath.Join(dir, name)
		err := durable.Write(ctx, path, 0o644, func(w io.Writer) error {
			if name == d.manifest() {
				return d.copyManifest(ctx, w)
			}
			_, err := w.Write(texts[name])
			return err
		})
		if err != nil {
			for _, path := range paths {
				os.Remove(path)
			}
			if made {
				os.Remove(dir)
			}
			if problems := (*Problems)(nil); errors.As(err, &problems) {
				return nil, problems
			}
			return nil, fmt.Errorf("write release: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// copyManifest writes the entries of the source as the release's manifest.
func (d *Draft) copyManifest(ctx context.Context, w io.Writer) error {
	s := d.source.Schema
	out := NewWriter(w, d.format, s, d.source.Schema.separator(), d.fields...)
	d.Example = [][]string{slices.Concat(each(out.fields, Field.String), s.names(), each(s.Columns, func(c Column) string { return c.Name }))}
	for e, err := range d.source.Entries(ctx) {
		if err != nil {
			return err
		}
		out.Write(e)
		if len(d.Example) > 10 {
			continue
		}
		row := each(out.fields, func(f Field) string { return f.Of(e) })
		for i, c := range s.Categories {
			row = append(row, strings.Join(c.Codes(e.Labels[i]), separators[0]))
		}
		for _, values := range e.Values {
			row = append(row, strings.Join(values, separators[0]))
		}
		d.Example = append(d.Example, row)
	}
	return out.Flush()
}

//go:embed release.toml.tmpl
var draftText string

// draftTemplate writes release.toml for a guess, with the reason beside each setting.
var draftTemplate = template.Must(template.New(SettingsName).Funcs(template.FuncMap{"text": value.TOML, "quote": table.Quote, "list": QuotedList,
	"has": slices.Contains[[]string]}).Parse(draftText))
