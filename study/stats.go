package study

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
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

// Stats counts the labels of a release, a dataset or a workspace; release gives the files of a dataset their labels (default:
// FigSIM's). It also returns the schema by which they were read.
func Stats(ctx context.Context, path, release string) (none labels.Stats, _ manifest.Schema, _ error) {
	info, err := os.Stat(path)
	if err != nil {
		return none, manifest.Schema{}, userfile.Faulty(err)
	}
	// A folder with a release.toml is a release, even if it has a folder called data as well.
	_, err = os.Stat(filepath.Join(path, manifest.SettingsName))
	switch isFile := !info.IsDir(); {
	case err == nil || isFile && release == "" && !shardName.MatchString(filepath.Base(path)):
		r, err := manifest.Open(path, withParquet)
		if err != nil {
			return none, manifest.Schema{}, userfile.Faulty(err)
		}
		if len(r.Schema.Categories) == 0 {
			return none, manifest.Schema{}, userfile.Wrong("the release %s has no label category to count", path)
		}
		return count(r.Schema, r.Entries(ctx))
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

func count(schema manifest.Schema, entries iter.Seq2[manifest.Entry, error]) (labels.Stats, manifest.Schema, error) {
	stats, err := labels.Count(schema, entries)
	if err != nil {
		err = userfile.Faulty(err) // the error at the end of the entries lists every problem in the files
	}
	return stats, schema, err
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
		if m == nil {
			continue
		}
		file, split, total := filepath.Join(dir, "data", f.Name()), m[1], m[3]
		if first, met := of[split]; met && first != total || m[2] >= total {
			return nil, fmt.Errorf("%s does not go with the other files of split %s: are there files of two exports?", file, split)
		}
		have[split], of[split] = have[split]+1, total
		shards = append(shards, file)
	}
	for _, split := range slices.Sorted(maps.Keys(of)) {
		total := of[split]
		if n, err := strconv.Atoi(total); err != nil || n != have[split] {
			return nil, fmt.Errorf("%s has %d of the %s files of split %s: download the others", filepath.Join(dir, "data"), have[split],
				strings.TrimLeft(total, "0"), split)
		}
	}
	return shards, nil
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
		split, options := manifest.DefaultSplit, withParquet
		if m := shardName.FindStringSubmatch(filepath.Base(file)); m != nil {
			split, options.MayBeEmpty = m[1], true
		}
		table, err := manifest.OpenTable(file, like.Joined(), options)
		if err != nil {
			return none, manifest.Schema{}, userfile.Faulty(explain(err))
		}
		tables, splits = append(tables, table), append(splits, split)
		// Labels are counted by the place of their category, so all files need the same categories.
		if !slices.EqualFunc(table.Schema.Categories, tables[0].Schema.Categories, func(a, b manifest.Category) bool { return a.Name == b.Name }) {
			return none, manifest.Schema{}, userfile.Wrong("%s has other categories than %s", file, files[0])
		}
	}
	return count(tables[0].Schema, func(yield func(manifest.Entry, error) bool) {
		for i, table := range tables {
			for e, err := range table.Entries(ctx) {
				e.Split = splits[i]
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
		err = userfile.Wrong("%s is not a release (it has no %s), a dataset (no data/*.parquet) or a workspace", path, manifest.SettingsName)
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
