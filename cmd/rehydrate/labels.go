package main

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

	"github.com/spf13/cobra"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/workspace"
)

func (c *command) labelsCommand() *cobra.Command {
	return newGroup("labels", c.labelsStatsCommand(), c.labelsSplitCommand(), c.labelsAgreementCommand(), c.labelsScoreCommand(),
		c.labelsGroupsCommand(), c.labelsWeightsCommand())
}

const labelReleaseHelp = "the `release` whose labels, columns and spellings the files have (default: FigSIM's)"

var withNames = manifest.Options{OpenParquet: scan.OpenLabelled} // numbers that stand for labels are read as them

// statsOf counts a release, dataset or workspace. Faults of files are usage errors.
func (c *command) statsOf(ctx context.Context, path, release string) (labels.Stats, manifest.Schema, error) {
	info, err := os.Stat(path)
	if err != nil {
		return labels.Stats{}, manifest.Schema{}, asUsage(err)
	}
	// A folder with a release.toml is a release, even if it has a folder called data as well.
	_, err = os.Stat(filepath.Join(path, manifest.SettingsName))
	switch isFile := !info.IsDir(); {
	case err == nil || isFile && release == "" && !shardName.MatchString(filepath.Base(path)):
		r, err := manifest.Open(path, withNames)
		if err != nil {
			return labels.Stats{}, manifest.Schema{}, asUsage(err)
		}
		if len(r.Schema.Categories) == 0 {
			return labels.Stats{}, manifest.Schema{}, usageError("the release %s has no label category to count", path)
		}
		return count(r.Schema, r.Entries(ctx))
	case isFile:
		return statsOfFiles(ctx, release, []string{path})
	}
	shards, err := shardsOf(path)
	if err != nil {
		return labels.Stats{}, manifest.Schema{}, asUsage(err)
	}
	if len(shards) > 0 {
		return statsOfFiles(ctx, release, shards)
	}
	return statsOfWorkspace(ctx, path)
}

func count(schema manifest.Schema, entries iter.Seq2[manifest.Entry, error]) (labels.Stats, manifest.Schema, error) {
	stats, err := labels.Count(schema, entries)
	if err != nil {
		err = asUsage(err) // the error at the end of the entries lists every problem in the files
	}
	return stats, schema, err
}

// shardsOf lists the Parquet files of a dataset folder, in the order of their names.
func shardsOf(dir string) ([]string, error) {
	files, err := os.ReadDir(filepath.Join(dir, "data"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the folder is not a dataset
	}
	var shards []string
	for _, f := range files {
		if shardName.MatchString(f.Name()) {
			shards = append(shards, filepath.Join(dir, "data", f.Name()))
		}
	}
	if err == nil {
		err = wholeSplits(shards)
	}
	return shards, err
}

func wholeSplits(shards []string) error {
	have, of := make(map[string]int), make(map[string]string) // by split
	// With files missing, or files of two exports, every count would be too low or too high.
	for _, file := range shards {
		m := shardName.FindStringSubmatch(filepath.Base(file))
		split, total := m[1], m[3]
		if first, met := of[split]; met && first != total || m[2] >= total {
			return fmt.Errorf("%s does not go with the other files of split %s: are there files of two exports?", file, split)
		}
		have[split], of[split] = have[split]+1, total
	}
	for _, split := range slices.Sorted(maps.Keys(of)) {
		total := of[split]
		if n, err := strconv.Atoi(total); err != nil || n != have[split] {
			return fmt.Errorf("%s has %d of the %s files of split %s: download the others", filepath.Dir(shards[0]), have[split], strings.TrimLeft(total, "0"), split)
		}
	}
	return nil
}

// likeRelease returns the release that gives other files their labels and columns.
func likeRelease(ctx context.Context, path string) (*manifest.Release, error) {
	if path == "" {
		return manifest.BuiltIn(), nil
	}
	r, err := manifest.Open(path, withNames)
	if err == nil {
		_, err = r.Check(ctx) // all problems now, before other files are read by its schema
	}
	if err != nil {
		return nil, asUsage(err)
	}
	return r, nil
}

// shardName is the name of a dataset's Parquet file; it holds the split, the number of the file
// among those of the split, from 0, and how many they are.
var shardName = regexp.MustCompile(`^([A-Za-z0-9_]+)-(\d{5})-of-(\d{5})\.parquet$`)

// statsOfFiles counts the Parquet files of a dataset as one.
func statsOfFiles(ctx context.Context, release string, files []string) (labels.Stats, manifest.Schema, error) {
	var none labels.Stats
	like, err := likeRelease(ctx, release)
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
		split, options := manifest.DefaultSplit, withNames
		if m := shardName.FindStringSubmatch(filepath.Base(file)); m != nil {
			split, options.MayBeEmpty = m[1], true
		}
		table, err := manifest.OpenTable(file, like, options)
		if err != nil {
			return none, manifest.Schema{}, asUsage(explain(err))
		}
		tables, splits = append(tables, table), append(splits, split)
		// Labels are counted by the place of their category, so all files need the same categories.
		if !slices.EqualFunc(table.Schema.Categories, tables[0].Schema.Categories, func(a, b manifest.Category) bool { return a.Name == b.Name }) {
			return none, manifest.Schema{}, usageError("%s has other categories than %s", file, files[0])
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

// statsOfWorkspace counts the entries that are kept.
func statsOfWorkspace(ctx context.Context, path string) (stats labels.Stats, schema manifest.Schema, err error) {
	stats, err = reading(ctx, &command{workspace: path}, func(ws *workspace.Workspace) (labels.Stats, error) {
		binding, bound, err := ws.Binding(ctx)
		if err == nil && !bound { // made and never run
			err = workspace.ErrNoWorkspace
		}
		if err != nil {
			return labels.Stats{}, err
		}
		schema = binding.Schema
		return labels.Count(schema, func(yield func(manifest.Entry, error) bool) {
			for r, err := range ws.Records(ctx, workspace.Select{}) {
				if err == nil && (r.Result == nil || r.Result.Outcome != manifest.Kept) {
					continue
				}
				if !yield(r.Entry, err) || err != nil {
					return
				}
			}
		})
	})
	if errors.Is(err, workspace.ErrNoWorkspace) {
		err = usageError("%s is not a release (it has no %s), a dataset (no data/*.parquet) or a workspace", path, manifest.SettingsName)
	}
	return stats, schema, err
}

// readTable reads the labels of an annotator's or a model's file, under the schema of like.
func readTable(ctx context.Context, file string, like *manifest.Release) (map[manifest.Key][][]int, error) {
	table, err := manifest.OpenTable(file, like, withNames)
	if err != nil {
		return nil, asUsage(err)
	}
	place := make([]int, len(table.Schema.Categories)) // of each of the file's categories in the schema
	for i, category := range table.Schema.Categories {
		place[i] = slices.IndexFunc(like.Schema.Categories, func(c manifest.Category) bool { return c.Name == category.Name })
	}
	out := make(map[manifest.Key][][]int)
	for e, err := range table.Entries(ctx) {
		if err != nil {
			return nil, asUsage(err)
		}
		all := make([][]int, len(like.Schema.Categories)) // categories that the file lacks stay without an answer
		for i, given := range e.Labels {
			all[place[i]] = given
		}
		out[e.Key] = all
	}
	return out, nil
}

func decimal(v *float64, digits int) string {
	if v == nil { // a measure that is not defined
		return "-"
	}
	s := strconv.FormatFloat(*v, 'f', digits, 64)
	if bare := strings.TrimPrefix(s, "-"); strings.Trim(bare, "0.") == "" {
		return bare // -0.00
	}
	return s
}
