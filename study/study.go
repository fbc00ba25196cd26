// Package study computes the numbers that a paper prints of a dataset, from files. It opens a release and what lies
// beside it (annotators' tables, predictions, numbers of features, answers of moderation services), chooses entries,
// columns and tasks, and has package labels compute. What is wrong with a file or flag is a *userfile.Fault; results
// have the JSON form of docs/labels.md.
package study

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/pipeline/dataset/scan"
)

var withParquet = manifest.Options{OpenParquet: scan.OpenManifest}

// like returns the release that gives other files their labels and columns: the one at path, or else FigSIM's.
func like(ctx context.Context, path string) (*manifest.Release, error) {
	if path == "" {
		return manifest.BuiltIn(), nil
	}
	r, err := manifest.Open(path, withParquet)
	if err == nil {
		_, err = r.Check(ctx) // all problems now, before other files are read by its schema
	}
	if err != nil {
		return nil, userfile.Faulty(err)
	}
	return r, nil
}

// All as a split stands for all of them.
const All = "all"

// testSplit is what predictions are scored on.
const testSplit = "test"

// A gold is a release with the entries of a split, one for each image (labels.Images), whose labels are taken for true.
type gold struct {
	*manifest.Release
	split   string
	entries []manifest.Entry
	others  map[manifest.Key]bool // the entries of other splits
	differ  []int                 // by category, entries whose rows differ: they have no label of it
}

// differing lists those of the categories that some entries have no label of, because their rows differ; of all of them
// for no category.
func (g gold) differing(categories ...string) (all []labels.Differing) {
	for i, n := range g.differ {
		name := g.Schema.Categories[i].Name
		if n > 0 && (len(categories) == 0 || slices.Contains(categories, name)) {
			all = append(all, labels.Differing{Category: name, Entries: n})
		}
	}
	return all
}

// openGold reads the entries of a split; for "" of the only one, or of test. Where none of several is called test, what
// was trained on would be scored: the split has to be named.
func openGold(ctx context.Context, path, split string) (g gold, err error) {
	g.Release, err = manifest.Open(path, withParquet)
	if err != nil {
		return g, userfile.Faulty(err)
	}
	var splits []string
	for e, err := range labels.Images(g.Schema, g.Entries(ctx)) {
		if err != nil {
			return g, userfile.Faulty(err)
		}
		g.entries = append(g.entries, e)
		if !slices.Contains(splits, e.Split) {
			splits = append(splits, e.Split)
		}
	}
	g.others = make(map[manifest.Key]bool)
	if split == All || split == "" && len(splits) < 2 {
		g.split = All
		g.settle()
		return g, nil
	}
	g.split = manifest.SplitNamed(splits, cmp.Or(split, testSplit))
	switch {
	case g.split == "" && split == "":
		return g,
			userfile.Wrong("the release has the splits %s, and none of them alone is called test: name the one to score "+
				"with --split, or --split all", strings.Join(splits, ", "))
	case g.split == "":
		return g, userfile.Wrong("--split: the release has no split %q; it has %s", split, strings.Join(splits, ", "))
	}
	g.entries = slices.DeleteFunc(g.entries, func(e manifest.Entry) bool {
		if e.Split != g.split {
			g.others[e.Key] = true
		}
		return e.Split != g.split
	})
	g.settle()
	return g, nil
}

// settle gives each entry the labels in which its rows agree, and counts where they do not.
func (g *gold) settle() {
	g.differ = make([]int, len(g.Schema.Categories))
	for i := range g.entries {
		var differ []bool
		g.entries[i].Labels, differ = labels.Settle(g.Schema, g.entries[i].Labels)
		for c, differs := range differ {
			if differs {
				g.differ[c]++
			}
		}
	}
}

// category gives the place of a category; for "" of the first that is a scale.
func (g gold) category(name string) (int, error) {
	var names []string
	for i, c := range g.Schema.Categories {
		if c.Name == name || name == "" && c.Kind == manifest.Ordinal {
			return i, nil
		}
		names = append(names, c.Name)
	}
	if name == "" {
		return 0, userfile.Wrong("no category is a scale: name one of %s with --by", strings.Join(names, ", "))
	}
	return 0, userfile.Wrong("--by: the release has no category %q; it has %s", name, strings.Join(names, ", "))
}

// distinct refuses a file that is named twice: it would count as two annotators, runs or services that agree.
func distinct(files []string) error {
	for i, file := range files {
		for _, other := range files[:i] {
			a, err := os.Stat(file)
			b, err2 := os.Stat(other)
			if err == nil && err2 == nil && os.SameFile(a, b) {
				return userfile.Wrong("%s and %s are one file, which would count twice: name it once", other, file)
			}
		}
	}
	return nil
}

// A Reading is what a file of answers says.
type Reading struct {
	Answers labels.Answers
	LeftOut int            // rows that say that they are no answer, such as drafts (manifest.NoAnswer)
	Missing []MissingWords // by category; they name no annotator and no file
}

// MissingWords are the cells of a category that hold a word for a missing value, such as NA, and so are no answer.
type MissingWords struct {
	Annotator string `json:"annotator,omitempty"` // of whom answers are compared: A1, A2...
	File      string `json:"file,omitempty"`      // of predictions
	Category  string `json:"category"`
	Cells     int    `json:"cells"`
	As        string `json:"as"` // the first such word
}

// String says it as messages do.
func (m MissingWords) String() string {
	hold, count := "cells hold", "count"
	if m.Cells == 1 {
		hold, count = "cell holds", "counts"
	}
	return fmt.Sprintf("%s, %s: %d %s a word for a missing value, such as %s, and %s as no answer",
		cmp.Or(m.File, m.Annotator), m.Category, m.Cells, hold, table.Quote(m.As), count)
}

// of says whose answers were read, or of which file.
func (r Reading) of(annotator, file string) []MissingWords {
	all := slices.Clone(r.Missing)
	for i := range all {
		all[i].Annotator, all[i].File = annotator, file
	}
	return all
}

// MissingOf gives the words for missing values in the answers of annotator i, from 0.
func (r Reading) MissingOf(i int) []MissingWords { return r.of(labels.Annotator(i), "") }

// missing adds a cell that holds such a word.
func (r *Reading) missing(category, word string) {
	i := slices.IndexFunc(r.Missing, func(m MissingWords) bool { return m.Category == category })
	if i < 0 {
		i, r.Missing = len(r.Missing), append(r.Missing, MissingWords{Category: category, As: strings.Clone(word)})
	}
	r.Missing[i].Cells++
}

// ReadAnswers reads an annotator's file, under the schema of a release, without the entries that were skipped.
func ReadAnswers(ctx context.Context, file string, like *manifest.Release) (Reading, error) {
	read, err := readTable(ctx, file, like)
	maps.DeleteFunc(read.Answers, func(_ manifest.Key, given [][]int) bool { return isNone(given) })
	return read, err
}

// isNone reports whether there is no answer to any category.
func isNone(given [][]int) bool {
	return !slices.ContainsFunc(given, func(labels []int) bool { return labels != nil })
}

// ofAnswers reads a table of people's or models' answers, and counts the rows that say that they are none.
func ofAnswers(left *int) manifest.Options {
	o := withParquet
	o.Unanswered = func() { *left++ }
	return o
}

// classesOf are the spellings of the classes that the tasks of a schema make of several labels: models are asked for
// them, so that files have them. Each means the first of its labels.
func classesOf(schema manifest.Schema) (all []manifest.Spelling) {
	for _, t := range schema.Tasks() {
		if task, err := labels.NewTask(schema, t); err == nil { // else it has no classes
			all = append(all, task.Spellings()...)
		}
	}
	return all
}

// oneColumnEach refuses a file with two columns that are called as one category, such as Tone and tone: which of them
// has the answers is not for a program to say.
func oneColumnEach(opened *manifest.Release, file string) error {
	rows, err := opened.Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	for _, c := range opened.Schema.Categories {
		own := opened.ColumnOf(c.Name)
		for _, other := range rows.Columns() {
			if own == "" || manifest.FoldColumn(other) != manifest.FoldColumn(own) || opened.Uses(other) {
				continue
			}
			return table.One(&manifest.Problem{File: file, Line: 1, Hint: "keep one of them, or rename the other",
				Message: fmt.Sprintf("columns %s and %s could both be %s", table.Quote(own), table.Quote(other), c.Name)})
		}
	}
	return nil
}

// readTable reads a file of answers, under the schema of a release. An image whose rows differ has no answer. An empty
// list is the answer "no label". Cells cannot say so: where every answer would have a label, as with None or a category
// of one, a line of empty cells is one that was skipped, and has no answer.
func readTable(ctx context.Context, file string, like *manifest.Release) (read Reading, err error) {
	o := ofAnswers(&read.LeftOut)
	o.Missing = read.missing
	opened, err := manifest.OpenTable(file, like.Spelling(classesOf(like.Schema)), o)
	if err != nil {
		return Reading{}, userfile.Faulty(err)
	}
	if err := oneColumnEach(opened, file); err != nil {
		return Reading{}, userfile.Faulty(err)
	}
	has := opened.Schema.Categories
	place := make([]int, len(has)) // of each of the file's categories in the schema
	for i, category := range has {
		place[i] = slices.IndexFunc(like.Schema.Categories,
			func(c manifest.Category) bool { return c.Name == category.Name })
	}
	format, _ := table.FormatOf(file)
	isNamed := (format == table.CSV || format == table.TSV) && slices.ContainsFunc(has, func(c manifest.Category) bool {
		return c.Kind != manifest.Multi || slices.ContainsFunc(c.Labels, func(l manifest.Label) bool { return l.Exclusive })
	})
	read.Answers = make(labels.Answers)
	for e, err := range labels.Images(opened.Schema, opened.Entries(ctx)) {
		if err != nil {
			return Reading{}, userfile.Faulty(err)
		}
		e.Labels, _ = labels.Settle(opened.Schema, e.Labels)
		all := make([][]int, len(like.Schema.Categories)) // categories that the file lacks stay without an answer
		skipped := isNamed && !slices.ContainsFunc(e.Labels, func(given []int) bool { return len(given) > 0 })
		for i, given := range e.Labels {
			if !skipped {
				all[place[i]] = given
			}
		}
		read.Answers[e.Key] = all
	}
	return read, nil
}
