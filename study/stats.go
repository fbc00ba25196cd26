package study

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// Stats counts the labels of a release, a dataset or a workspace; release gives the files of a dataset their labels
// (default: FigSIM's). It also returns the schema by which they were read.
func Stats(ctx context.Context, path, release string) (none labels.Stats, _ manifest.Schema, _ error) {
	info, err := os.Stat(path)
	if err != nil {
		return none, manifest.Schema{}, userfile.Faulty(err)
	}
	// A folder with a release.toml is a release, even if it has a folder called data as well.
	_, err = os.Stat(filepath.Join(path, manifest.SettingsName))
	isFile := !info.IsDir()
	switch {
	case err == nil || isFile && release == "" && !shardName.MatchString(filepath.Base(path)):
		r, err := manifest.Open(path, withParquet)
		if err != nil {
			return none, manifest.Schema{}, userfile.Faulty(err)
		}
		if err := countable("release", path, r.Schema); err != nil {
			return none, manifest.Schema{}, err
		}
		entries := r.Entries(ctx)
		if isFile && r.ColumnOf(manifest.FieldSplit.String()) == "" {
			entries = inSplit(unknown, entries)
		}
		return count(r.Schema, entries)
	case isFile:
		return ofFiles(ctx, release, []string{path})
	}
	shards, err := shardsOf(path)
	if err != nil {
		return none, manifest.Schema{}, userfile.Faulty(err)
	}
	if len(shards) > 0 {
		return ofFiles(ctx, release, shards)
	}
	return ofWorkspace(ctx, path)
}

// countable refuses what has no labels.
func countable(what, path string, s manifest.Schema) error {
	if len(s.Categories) > 0 {
		return nil
	}
	return userfile.Wrong("the %s %s has no label category to count", what, path)
}

func count(schema manifest.Schema, entries iter.Seq2[manifest.Entry, error]) (labels.Stats, manifest.Schema, error) {
	stats, err := labels.Count(schema, entries)
	if err != nil {
		err = userfile.Faulty(err) // the error at the end of the entries lists every problem in the files
	}
	return stats, schema, err
}

// unknown is the split of entries of a file that tells none: a file alone may be of any split.
const unknown = ""

// inSplit gives entries a split.
func inSplit(split string, entries iter.Seq2[manifest.Entry, error]) iter.Seq2[manifest.Entry, error] {
	return func(yield func(manifest.Entry, error) bool) {
		for e, err := range entries {
			e.Split = split
			if !yield(e, err) {
				return
			}
		}
	}
}

// shardName is the name of a dataset's Parquet file; it holds the split, the number of the file
// among those of the split, from 0, and how many they are.
var shardName = regexp.MustCompile(`^([A-Za-z0-9_]+)-(\d{5})-of-(\d{5})\.parquet$`)

// shardsOf lists the Parquet files of a dataset folder, in the order of their names.
func shardsOf(dir string) (shards []string, _ error) {
	files, err := os.ReadDir(filepath.Join(dir, "data"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the folder is not a dataset
	}
	if err != nil {
		return nil, err
	}
	have, of := make(map[string]int), make(map[string]string) // by split
	// With files missing, or files of two exports, every count would be too low or too high.
	for _, f := range files {
		m := shardName.FindStringSubmatch(f.Name())
		switch {
		case m != nil:
		case strings.EqualFold(filepath.Ext(f.Name()), ".parquet"):
			return nil, fmt.Errorf("%s: its name does not say of which split it is (SPLIT-00000-of-00001.parquet): "+
				"name it so, or take it away", filepath.Join(dir, "data", f.Name()))
		default:
			continue
		}
		file, split, total := filepath.Join(dir, "data", f.Name()), m[1], m[3]
		if first, met := of[split]; met && first != total || m[2] >= total {
			return nil, fmt.Errorf("%s does not go with the other files of split %s: are there files of two exports?", file,
				split)
		}
		have[split], of[split] = have[split]+1, total
		shards = append(shards, file)
	}
	for _, split := range slices.Sorted(maps.Keys(of)) {
		total := of[split]
		if n, err := strconv.Atoi(total); err != nil || n != have[split] {
			return nil, fmt.Errorf("%s has %d of the %s files of split %s: download the others", filepath.Join(dir, "data"),
				have[split],
				strings.TrimLeft(total, "0"), split)
		}
	}
	if len(shards) == 0 {
		return nil, nil
	}
	return shards, asListed(dir, shards)
}

// asListed returns an error where the files of a dataset are not those that its own Croissant file lists, or, without
// one, not of the splits that its card names: a split without any file would not be missed otherwise.
func asListed(dir string, shards []string) error {
	listed, err := listing(dir)
	if err != nil {
		return err
	}
	for _, want := range listed.want {
		if !slices.ContainsFunc(shards, func(file string) bool { return listed.key(file) == want }) {
			return fmt.Errorf("%s lacks %s, which its %s lists: download it", filepath.Join(dir, "data"), want,
				listed.from)
		}
	}
	for _, file := range shards {
		if len(listed.want) > 0 && !slices.Contains(listed.want, listed.key(file)) {
			return fmt.Errorf("%s is not one of the files that the dataset's %s lists: take it away, or is it of another export?",
				file, listed.from)
		}
	}
	return nil
}

// A listed is what a dataset says of its own files.
type listed struct {
	from string                   // the file that says so
	want []string                 // names of files, or of splits
	key  func(file string) string // what want has of a file
}

const croissantName, cardName = "croissant.json", "README.md"

// cardSplit is how a dataset card names a split of its data files.
var cardSplit = regexp.MustCompile(`(?m)^ *- split: *"?([A-Za-z0-9_]+)"? *$`)

// listing reads which files a dataset has; nothing is wanted where it does not tell.
func listing(dir string) (none listed, _ error) {
	l := listed{from: croissantName, key: filepath.Base}
	body, err := userfile.Read(filepath.Join(dir, l.from))
	if err == nil {
		var croissant struct {
			Distribution []struct {
				URL string `json:"contentUrl"`
			} `json:"distribution"`
		}
		if err := json.Unmarshal(body, &croissant); err != nil {
			return none, fmt.Errorf("%s, which lists the files of the dataset, is not JSON: download it again",
				filepath.Join(dir, l.from))
		}
		for _, file := range croissant.Distribution {
			if name := path.Base(file.URL); shardName.MatchString(name) {
				l.want = append(l.want, name)
			}
		}
		return l, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return none, err
	}
	l.from, l.key = cardName, func(file string) string { return shardName.FindStringSubmatch(filepath.Base(file))[1] }
	body, err = userfile.Read(filepath.Join(dir, l.from))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if header, _, ends := bytes.Cut(bytes.TrimPrefix(userfile.Unmarked(body), []byte("---")), []byte("\n---")); ends {
		for _, m := range cardSplit.FindAllSubmatch(header, -1) {
			l.want = append(l.want, string(m[1]))
		}
	}
	return l, err
}

// ofFiles counts the Parquet files of a dataset as one.
func ofFiles(ctx context.Context, release string, files []string) (none labels.Stats, _ manifest.Schema, _ error) {
	like, err := like(ctx, release)
	if err != nil {
		return none, manifest.Schema{}, err
	}
	explain := func(err error) error {
		if err != nil && release == "" {
			err = fmt.Errorf("%w\nThe file was read with FigSIM's labels; another dataset's need --release RELEASE", err)
		}
		return err
	}
	var tables []*manifest.Release
	var splits []string
	for _, file := range files {
		split, options := unknown, withParquet
		if m := shardName.FindStringSubmatch(filepath.Base(file)); m != nil {
			split, options.MayBeEmpty = m[1], true
		}
		table, err := manifest.OpenTable(file, like.Joined(), options)
		if err != nil {
			return none, manifest.Schema{}, userfile.Faulty(explain(err))
		}
		tables, splits = append(tables, table), append(splits, split)
		// Labels are counted by the place of their category, so all files need the same categories.
		if !slices.EqualFunc(table.Schema.Categories, tables[0].Schema.Categories,
			func(a, b manifest.Category) bool { return a.Name == b.Name }) {
			return none, manifest.Schema{}, userfile.Wrong("%s has other categories than %s", file, files[0])
		}
	}
	return count(tables[0].Schema, func(yield func(manifest.Entry, error) bool) {
		in := map[manifest.Key]int{} // of several files
		for i, table := range tables {
			for e, err := range inSplit(splits[i], table.Entries(ctx)) {
				if other, met := in[e.Key]; err == nil && met && other != i {
					err = userfile.Wrong("%s is in both %s and %s, and would count twice", e.Key, files[other],
						files[i])
				}
				if err == nil && len(tables) > 1 {
					in[e.Key] = i
				}
				if !yield(e, explain(err)) || err != nil {
					return
				}
			}
		}
	})
}

// ofWorkspace counts the entries that are kept.
func ofWorkspace(ctx context.Context, path string) (none labels.Stats, _ manifest.Schema, _ error) {
	var binding workspace.Binding
	var bound bool
	ws, err := workspace.Open(ctx, path, workspace.Options{ReadOnly: true})
	if err == nil {
		defer ws.Close()
		binding, bound, err = ws.Binding(ctx)
		if err == nil && !bound { // made and never run
			err = workspace.ErrNoWorkspace
		}
	}
	if errors.Is(err, workspace.ErrNoWorkspace) {
		err = userfile.Wrong("%s is not a release (it has no %s), a dataset (no data/*.parquet) or a workspace", path,
			manifest.SettingsName)
	}
	if err == nil {
		err = countable("workspace", path, binding.Schema)
	}
	if err == nil {
		err = ws.CheckCurrent(ctx)
	}
	if err != nil {
		return none, manifest.Schema{}, err
	}
	stats, err := labels.Count(binding.Schema, func(yield func(manifest.Entry, error) bool) {
		for r, err := range ws.Records(ctx, workspace.Select{}) {
			if err == nil && (r.Result == nil || r.Result.Outcome != manifest.Kept) {
				continue
			}
			if !yield(r.Entry, err) || err != nil {
				return
			}
		}
	})
	return stats, binding.Schema, err
}
