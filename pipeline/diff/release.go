package diff

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
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
// about one image the lists of what they say, as in a dataset. It has no images and no texts. Beside a dataset, types,
// labels and values are those that a run writes of the release. The release is checked first, so that its rows cannot
// fail.
func openRelease(ctx context.Context, folder string, besideDataset bool) (*table, error) {
	r, err := manifest.Open(folder, manifest.Options{OpenParquet: scan.OpenManifest})
	if err == nil {
		_, err = r.Check(ctx)
	}
	if err != nil {
		return nil, userfile.Faulty(err)
	}
	t := &table{path: folder, isRelease: true, ordered: r.Schema.Many, has: map[string]bool{},
		provenance: map[string]string{"release": r.Name, "manifest_digest": r.ManifestDigest}}
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
	schema := r.Schema.Joined()
	for _, c := range schema.Categories {
		t.labels = append(t.labels, c.Name)
	}
	for _, c := range schema.Columns {
		t.labels = append(t.labels, c.Name)
	}
	rows := &entryReader{columns: slices.Concat([]string{"split", "id"}, t.labels)}
	if besideDataset {
		err = t.asDataset(r, rows)
	} else {
		t.asRelease(r, rows)
	}
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", folder, err)
	}
	t.columns = rows.columns
	for _, name := range t.columns {
		t.has[name] = true
	}
	rows.next, rows.stop = iter.Pull2(labels.Images(r.Schema, r.Entries(ctx)))
	t.reader = rows
	return t, nil
}

// asDataset has a release be compared by what a run writes of it.
func (t *table) asDataset(r *manifest.Release, rows *entryReader) error {
	file, cells, err := dataset.AsRead(r.Schema.Joined())
	if err != nil {
		return err
	}
	rows.cells, t.features, t.types = cells, file.Features(), typesOf(file)
	t.provenance["release_version"], t.provenance["release_digest"] = r.Version, r.Digest
	if policyDigest := t.besides["policy_digest"]; policyDigest != "" {
		t.provenance["policy_digest"] = policyDigest
	}
	t.names = map[string]map[string]string{}
	for _, c := range r.Schema.Categories {
		t.names[c.Name] = map[string]string{}
		for _, l := range c.Labels {
			t.names[c.Name][l.Code] = l.Name
		}
	}
	return nil
}

// asRelease has a release be compared by its own words, labels by their codes.
func (t *table) asRelease(r *manifest.Release, rows *entryReader) {
	schema := r.Schema.Joined()
	t.provenance["version"] = r.Version
	t.features, t.types = map[string]scan.Feature{}, map[string]string{}
	for i, c := range schema.Categories {
		t.types[c.Name] = string(r.Schema.Categories[i].Kind)
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
	for _, c := range schema.Columns {
		t.types[c.Name] = c.String()
	}
	rows.cells = func(e manifest.Entry) []manifest.Cell {
		cells := []manifest.Cell{{Text: e.Key.String()}}
		list := func(values []string, none bool) {
			cells = append(cells, manifest.Cell{List: values, IsList: true, Null: none})
		}
		for i, c := range schema.Categories {
			list(c.Codes(e.Labels[i]), e.Labels[i] == nil)
		}
		for _, values := range e.Values {
			list(values, values == nil)
		}
		return cells
	}
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
	columns []string
	next    func() (manifest.Entry, error, bool)
	stop    func()
	cells   func(manifest.Entry) []manifest.Cell // but for that of the split, which comes before them
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
	return append([]manifest.Cell{{Text: e.Split}}, r.cells(e)...), nil
}

func (r *entryReader) Close() error {
	r.stop()
	return nil
}
