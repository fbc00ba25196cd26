package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/csv"
	"encoding/json"
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

	"rehydrate/pipeline/durable"
)

// A Draft is a release that Init made of an annotations file, before it is written.
type Draft struct {
	Settings []byte   // release.toml
	Notes    []string // what was guessed and why, one line each
	Warnings []string // what to look at before publishing

	release   *Release
	manifest  string // its name in the release folder
	columns   []*surveyed
	guesses   []columnGuess
	isFigSIM  bool
	separator string
	leftOut   []string // columns that do not hold labels, each with the reason
	redacted  []string // columns that are not copied
}

// Init guesses the columns and labels of an annotations file from all its rows, for a release with these signers. A
// draft has passed Check; when the file has problems, or nothing to build on, the error is *Problems. The draft's copy goes
// without columns whose names say that they are about people or hold their words; a Parquet file is copied whole, with a warning.
func Init(ctx context.Context, path string, signers []Signer, o Options) (*Draft, error) {
	source, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	d := &Draft{manifest: "annotations." + string(source.Format)}
	if err := d.guess(ctx, source); err != nil {
		return nil, err
	}
	if !validText(source.Name, maxLabelText) {
		source.Name = "annotations"
	}
	var text bytes.Buffer
	err = draftTemplate.Execute(&text, map[string]any{"Name": source.Name, "Source": filepath.Base(path), "Manifest": d.manifest,
		"HasSplit": d.columnOf("split") != "", "Guesses": d.guesses, "IsFigSIM": d.isFigSIM, "Separator": d.separator,
		"LeftOut": d.leftOut, "Warnings": d.Warnings, "Signers": signers})
	if err != nil {
		return nil, err
	}
	d.Settings = text.Bytes()
	// The draft is read as Open and Check will read it, with the manifest where it is now.
	d.release, err = parseSettings(d.Settings, SettingsName, o)
	if err != nil {
		return nil, fmt.Errorf("the release.toml that was guessed cannot be read: %w", err)
	}
	d.release.ManifestPath = path
	if err := d.release.bind(d.Settings); err != nil {
		return nil, err
	}
	_, err = d.release.Check(ctx)
	return d, err
}

// Write makes the release folder dir, with the annotations and the extra files (name -> bytes:
// policy.toml, tombstones.csv). It returns the paths, and refuses a dir that exists and is not
// empty. After an error nothing that it wrote is left.
func (d *Draft) Write(ctx context.Context, dir string, extra map[string][]byte) (paths []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write release: %w", err)
		}
	}()
	files, err := os.ReadDir(dir)
	if len(files) > 0 {
		return nil, &Problem{File: dir, Message: "the folder exists and is not empty", Hint: "choose a new folder, or empty this one first"}
	}
	made := errors.Is(err, fs.ErrNotExist) // then it goes again after an error
	if err := durable.MkdirAll(ctx, dir, 0o755); err != nil {
		return nil, err
	}
	texts := map[string][]byte{SettingsName: d.Settings}
	maps.Copy(texts, extra)
	// release.toml is written last, so that a folder that has one is whole.
	for _, name := range slices.Concat([]string{d.manifest}, slices.Sorted(maps.Keys(extra)), []string{SettingsName}) {
		path := filepath.Join(dir, name)
		err := durable.Write(ctx, path, 0o644, func(w io.Writer) error {
			if name == d.manifest {
				return d.copyManifest(w)
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
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// copyManifest copies the annotations that were checked, and no others, without the columns that are not to be copied.
func (d *Draft) copyManifest(w io.Writer) error {
	r := d.release
	f, err := r.open()
	if err != nil {
		return err
	}
	defer f.Close()
	if len(d.redacted) > 0 {
		err = redact(w, f, r.ManifestPath, r.Format, d.redacted)
	} else {
		_, err = io.Copy(w, f)
	}
	if err := cmp.Or(r.unchanged(), err); err != nil { // a change explains what then failed
		return fmt.Errorf("copy %s: %w", r.ManifestPath, err)
	}
	return nil
}

// redact copies a CSV, TSV or JSONL file, which Check accepted, without the columns named. The
// values of the other columns stay the same.
func redact(w io.Writer, r io.Reader, file string, f Format, without []string) error {
	if f == JSONL {
		return redactJSON(w, r, file, without)
	}
	// The library is enough here: Check has found nothing wrong with the file.
	in, out := csv.NewReader(r), csv.NewWriter(w)
	if f == TSV {
		in.Comma, out.Comma = '\t', '\t'
	}
	header, err := in.Read()
	for i := range header {
		// As the survey has the names.
		header[i] = strings.TrimSpace(header[i])
	}
	for record := header; err == nil; record, err = in.Read() {
		var stay []string
		for i, cell := range record {
			if !slices.Contains(without, header[i]) {
				stay = append(stay, cell)
			}
		}
		_ = out.Write(stay) // a failed write is remembered until the end
	}
	out.Flush()
	if err != io.EOF {
		return err
	}
	return out.Error()
}

func redactJSON(w io.Writer, r io.Reader, file string, without []string) error {
	rows := newJSONRows(r, file, nil)
	out := bufio.NewWriter(w)
	for {
		text, err := rows.nextObject()
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		var stay []string // members with their bytes
		for m := range members(string(text)) {
			if !slices.Contains(without, m.key) {
				stay = append(stay, string(text[m.from:m.at+len(m.value)]))
			}
		}
		if _, err := fmt.Fprintf(out, "{%s}\n", strings.Join(stay, ",")); err != nil {
			return err
		}
	}
}

//go:embed release.toml.tmpl
var draftText string

// draftTemplate writes release.toml for a guess, with the reason beside each setting.
var draftTemplate = template.Must(template.New(SettingsName).Funcs(template.FuncMap{"text": tomlText, "quote": quote}).Parse(draftText))

// tomlText writes a text as a TOML string, which is a JSON string but for one character.
func tomlText(text any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // of a string it does not fail
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}
