package diff

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// isRelease reports whether a folder is a release.
func isRelease(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, manifest.SettingsName))
	return err == nil
}

// openRelease opens a release as a table: a row for each image, with its split, labels and columns; of several rows
// about one image the lists of what they say, as in a dataset. It has no images and no texts. The release is checked
// first, so that its rows cannot fail.
func openRelease(ctx context.Context, folder string) (*table, error) {
	r, err := manifest.Open(folder, manifest.Options{OpenParquet: scan.OpenManifest})
	if err == nil {
		_, err = r.Check(ctx)
	}
	if err != nil {
		return nil, userfile.Faulty(err)
	}
	t := &table{path: folder, isRelease: true, ordered: r.Schema.Many, has: map[string]bool{}, features: map[string]scan.Feature{},
		types: map[string]string{}, provenance: map[string]string{"release": r.Name, "version": r.Version,
			"manifest_digest": r.ManifestDigest}}
	t.gone, err = tombstones(r)
	if err != nil {
		return nil, err
	}
	pol, err := policyDigest(r)
	if err != nil {
		return nil, err
	}
	t.besides = map[string]string{"tombstones": strconv.Itoa(len(t.gone)), "policy_digest": pol}
	for id, why := range t.gone { // as many can come as were lifted
		t.besides["tombstones: "+string(id)] = string(why.Outcome)
	}
	t.standard = map[string]*string{"id": &t.last.id, "split": &t.last.split}
	t.columns = []string{"id", "split"}
	for _, c := range r.Schema.Categories {
		t.columns, t.types[c.Name] = append(t.columns, c.Name), string(c.Kind)
		if r.Schema.Many {
			t.types[c.Name] = "list of " + t.types[c.Name]
		}
		var codes []string
		for _, l := range c.Labels {
			codes = append(codes, l.Code)
		}
		t.features[c.Name] = scan.Feature{Type: "ClassLabel", Names: codes}
	}
	for _, f := range manifest.Fields() { // such as digests, whose values are not compared
		if name := f.String(); r.ColumnOf(name) != "" && t.standard[name] == nil {
			t.types[name] = "text"
		}
	}
	for _, c := range r.Schema.Joined().Columns {
		t.columns, t.types[c.Name] = append(t.columns, c.Name), c.String()
	}
	for _, name := range t.columns {
		t.has[name] = true
	}
	t.labels = t.columns[len(t.standard):]
	rows := &entryReader{release: r, columns: t.columns}
	rows.next, rows.stop = iter.Pull2(labels.Images(r.Schema, r.Entries(ctx)))
	t.reader = rows
	return t, nil
}

// tombstones gives why the posts are gone that a release has a tombstone of.
func tombstones(r *manifest.Release) (gone map[manifest.PostID]*state.Conclusion, err error) {
	if r.TombstonesPath == "" {
		return nil, nil
	}
	f, _, err := userfile.Open(r.TombstonesPath)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	defer f.Close()
	stones, err := manifest.ReadTombstones(f)
	if err != nil {
		return nil, userfile.Faulty(fmt.Errorf("compare %s: %w", r.TombstonesPath, err))
	}
	gone = make(map[manifest.PostID]*state.Conclusion)
	for _, stone := range stones {
		gone[stone.ID] = &state.Conclusion{Outcome: manifest.Outcome(stone.State)}
	}
	return gone, nil
}

// policyDigest is that of a release's policy, "" for a release without one.
func policyDigest(r *manifest.Release) (string, error) {
	if r.PolicyPath == "" {
		return "", nil
	}
	b, err := userfile.Read(r.PolicyPath)
	if err != nil {
		return "", fmt.Errorf("compare: %w", err)
	}
	p, err := policy.Parse(b, r.PolicyPath)
	if err != nil {
		return "", userfile.Faulty(err)
	}
	return p.Digest(), nil
}

// An entryReader reads the entries of a release as the rows of a table.
type entryReader struct {
	release *manifest.Release
	columns []string
	next    func() (manifest.Entry, error, bool)
	stop    func()
}

func (r *entryReader) Columns() []string         { return r.columns }
func (r *entryReader) Unread() []manifest.Unread { return nil }

func (r *entryReader) Next() ([]manifest.Cell, error) {
	e, err, more := r.next()
	if !more {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	cells := []manifest.Cell{{Text: e.Key.String()}, {Text: e.Split}}
	list := func(values []string, none bool) {
		cells = append(cells, manifest.Cell{List: values, IsList: true, Null: none})
	}
	for i, c := range r.release.Schema.Categories {
		list(c.Codes(e.Labels[i]), e.Labels[i] == nil)
	}
	for _, values := range e.Values {
		list(values, values == nil)
	}
	return cells, nil
}

func (r *entryReader) Close() error {
	r.stop()
	return nil
}
