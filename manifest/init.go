package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A Draft is a release that Init made of an annotations file, before it is written.
type Draft struct {
	Name     string
	Manifest string   // name of the manifest in the release folder
	Settings []byte   // release.toml
	Summary  Summary  // of the annotations under these settings
	Notes    []string // what was guessed and why, one line each
	Warnings []string // what to look at before publishing

	release  *Release
	redacted []string // columns that are not copied
}

// Init guesses the columns and labels of an annotations file (CSV, TSV, JSONL, Parquet)
// from all its rows. Columns of ids, splits, images and digests are found by their usual names,
// as are FigSIM's categories; otherwise a category is made of every column with few different
// short values. A draft it returns has passed Check; when the file has problems, or nothing to
// build on, the error is *Problems.
//
// The draft's copy of the file goes without columns whose names say that they are about people
// or hold their words (author, title, selftext...), unless they hold the ids; a Parquet file is
// copied as it is, with a warning.
func Init(ctx context.Context, path string, o Options) (*Draft, error) {
	format, p := formatOf(path)
	if p != nil {
		return nil, one(p)
	}
	g, err := newGuess(ctx, &Release{ManifestPath: path, Format: format, openParquet: o.OpenParquet})
	if err != nil {
		return nil, err
	}
	d := &Draft{Name: stem(path), Manifest: "annotations." + string(format), Notes: g.notes(), Warnings: g.warnings, redacted: g.redacted}
	if !validText(d.Name, maxLabelText) {
		d.Name = "annotations"
	}
	if d.Settings, err = g.toml(d.Name, filepath.Base(path), d.Manifest); err != nil {
		return nil, err
	}
	// The draft is read as Open and Check will read it, with the manifest where it is now.
	s, err := parseSettings(d.Settings, SettingsName)
	if err != nil {
		return nil, fmt.Errorf("the release.toml that was guessed cannot be read: %w", err)
	}
	d.release = newRelease(s, o)
	d.release.ManifestPath = path
	if err := d.release.bind(s, d.Settings); err != nil {
		return nil, err
	}
	d.Summary, err = d.release.Check(ctx)
	return d, err
}

// Write makes the release folder dir: a copy of the annotations, the extra files (name
// -> bytes: policy.toml, tombstones.csv), and release.toml last, so that a folder with
// a release.toml is whole. Each file is made durable under another name and then
// renamed. It returns the paths, and refuses a dir that exists and is not empty. After
// an error nothing that it wrote is left.
func (d *Draft) Write(dir string, extra map[string][]byte) ([]string, error) {
	names := slices.Sorted(maps.Keys(extra))
	for _, name := range names {
		if filepath.Base(name) != name || !localName(name) || name == SettingsName || name == d.Manifest {
			return nil, fmt.Errorf("write release: %q cannot be the name of a further file", name)
		}
	}
	made, err := emptyFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("write release: %w", err)
	}
	var paths []string
	put := func(name string, fill func(io.Writer) error) {
		if err != nil {
			return
		}
		if err = writeFile(dir, name, fill); err == nil {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	put(d.Manifest, d.copyManifest)
	for _, name := range names {
		put(name, write(extra[name]))
	}
	put(SettingsName, write(d.Settings))
	if err == nil {
		err = syncFolders(dir, made)
	}
	if err != nil {
		for _, path := range paths {
			os.Remove(path)
		}
		if made {
			os.Remove(dir)
		}
		return nil, fmt.Errorf("write release: %w", err)
	}
	return paths, nil
}

func write(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// emptyFolder makes dir, or accepts one that is empty; made tells which.
func emptyFolder(dir string) (made bool, err error) {
	files, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, os.MkdirAll(dir, 0o755)
	case err != nil:
		return false, err
	case len(files) > 0:
		return false, &Problem{File: dir, Message: "the folder exists and is not empty", Hint: "choose a new folder, or empty this one first"}
	}
	return false, nil
}

// copyManifest copies the annotations that were checked, and no others, without the
// columns that are not to be copied.
func (d *Draft) copyManifest(w io.Writer) error {
	f, err := d.release.open()
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	in := io.TeeReader(io.LimitReader(f, maxFile+1), h)
	if len(d.redacted) > 0 {
		err = redact(w, in, d.release.ManifestPath, d.release.Format, d.redacted)
		w = io.Discard // nothing is left, or else the copy is of no use; but all is digested
	}
	if _, failed := io.Copy(w, in); failed != nil {
		return fmt.Errorf("copy %s: %w", d.release.ManifestPath, failed)
	}
	if hex.EncodeToString(h.Sum(nil)) != d.release.ManifestDigest {
		return fmt.Errorf("copy %s: the file was changed while it was in use; start again", d.release.ManifestPath)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", d.release.ManifestPath, err)
	}
	return nil
}

// writeFile makes a whole, durable file under its name, or none.
func writeFile(dir, name string, fill func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = fill(f); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

// syncFolders makes the names durable: those in dir, and dir's own if it is new.
func syncFolders(dir string, made bool) error {
	folders := []string{dir}
	if made {
		folders = append(folders, filepath.Dir(filepath.Clean(dir)))
	}
	for _, folder := range folders {
		f, err := os.Open(folder)
		if err != nil {
			return err
		}
		err = f.Sync()
		f.Close()
		if err != nil {
			return fmt.Errorf("sync %s: %w", folder, err)
		}
	}
	return nil
}
