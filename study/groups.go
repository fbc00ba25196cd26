package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/study/features"
)

// Grouping says what numbers are tested between which labels.
type Grouping struct {
	Gold, Split string
	By          string   // a category; empty for the first that is a scale
	ID          string   // the column of post ids; empty where it is to be found
	Features    []string // columns; nil for all that hold numbers
	YesNo       []string // columns whose 1 and 0 mean yes and no, beside those that the file declares
	Alpha       float64  // pairs whose corrected p is below are marked
}

// Groups are tests of whether numbers differ between labels.
type Groups struct {
	By      string             `json:"by"`
	Split   string             `json:"split"`
	Entries int                `json:"entries"` // of the split
	File    labels.FileScore   `json:"file"`
	Without int                `json:"without_label"` // entries of the file that have no answer for the category
	Differ  []labels.Differing `json:"rows_differ,omitempty"`
	Alpha   float64            `json:"alpha"`
	LeftOut []OtherColumn      `json:"left_out,omitempty"`
	Tests   []labels.GroupTest `json:"tests"`
}

// TestGroups tests the numbers of a file.
func TestGroups(ctx context.Context, file string, f Grouping) (out Groups, err error) {
	gold, err := openGold(ctx, f.Gold, f.Split)
	if err != nil {
		return out, err
	}
	by, err := gold.category(f.By)
	if err != nil {
		return out, err
	}
	numbers, err := ReadNumbers(ctx, file, f.ID, withParquet)
	if err != nil {
		return out, userfile.Faulty(err)
	}
	if err := f.declare(file, numbers); err != nil {
		return out, err
	}
	columns, err := f.choose(numbers)
	if err != nil {
		return out, err
	}
	rows := make(map[manifest.Key]int, len(numbers.Keys))
	for i, key := range numbers.Keys {
		rows[key] = i
	}
	out = Groups{By: gold.Schema.Categories[by].Name, Split: gold.split, Entries: len(gold.entries), Alpha: f.Alpha,
		File: labels.MatchIDs(file, gold.entries, gold.others, rows), LeftOut: numbers.Others}
	out.File.LeftOut = numbers.LeftOut
	out.Differ = gold.differing(out.By)
	tested := make([]labels.Feature, len(columns))
	for i, column := range columns {
		tested[i].Name, tested[i].YesNo = column.Name, column.YesNo
	}
	var entries []manifest.Entry
	for _, e := range gold.entries {
		row, ok := rows[e.Key]
		if !ok { // what a file says nothing about is not a missing value of each of its features
			continue
		}
		entries = append(entries, e)
		if e.Labels[by] == nil && !gold.Schema.Many { // else its rows differ: each of them has an answer
			out.Without++
		}
		for i, column := range columns {
			tested[i].Values = append(tested[i].Values, column.Values[row])
		}
	}
	if len(entries) == 0 {
		return out, userfile.Wrong("no row of %s is about an entry of split %s", file, gold.split)
	}
	out.Tests, err = labels.CompareGroups(gold.Schema, out.By, entries, tested)
	return out, err
}

// declare says of the columns whether they mean yes or no. What was declared counts, and never what the values happen
// to be: the kinds of the JSON file beside the table, which the command features writes, then the words in which values
// are written, and before all the columns named. A column that is tested and has numbers and words is an error where
// nothing declares it.
func (f Grouping) declare(file string, numbers Numbers) error {
	kinds, from, err := readKinds(file)
	if err != nil {
		return userfile.Faulty(err)
	}
	for _, name := range f.YesNo {
		if !slices.ContainsFunc(numbers.Columns, func(c labels.Feature) bool { return c.Name == name }) {
			return userfile.Wrong("--yes-no %s: the file has no such column of numbers", name)
		}
	}
	for i := range numbers.Columns {
		column, wrote := &numbers.Columns[i], numbers.Written[i]
		kind, declared := kinds[column.Name]
		by := from + " says that it is"
		if declared {
			column.YesNo = kind == features.YesNo
		}
		if slices.Contains(f.YesNo, column.Name) {
			column.YesNo, declared, by = true, true, "--yes-no says that it is"
		}
		if f.Features != nil && !slices.Contains(f.Features, column.Name) {
			continue
		}
		other := slices.IndexFunc(column.Values, func(v float64) bool { return v != 0 && v != 1 && !math.IsNaN(v) })
		switch {
		case column.YesNo && other >= 0:
			return userfile.Wrong("%s: line %d: column %s holds %g for %s, and %s yes or no", file,
				numbers.Lines[other], column.Name, column.Values[other], numbers.Keys[other], by)
		case declared && !column.YesNo && wrote.Word > 0:
			return userfile.Wrong("%s: line %d: column %s holds a word for yes or no, and %s a %s", file,
				wrote.Word, column.Name, by, kind)
		case !declared && wrote.Word > 0 && wrote.Number > 0:
			return userfile.Faulty(wrote.mixed(file, column.Name, "write it in one way; --yes-no "+column.Name+
				" says that 1 and 0 mean yes and no, --feature COLUMN tests other columns alone"))
		}
	}
	return nil
}

// readKinds reads the kinds of columns from the JSON file beside a table, and returns its name. A file that declares
// none, as that of another program, says nothing.
func readKinds(file string) (map[string]features.Kind, string, error) {
	name := strings.TrimSuffix(file, filepath.Ext(file)) + ".json"
	if name == file {
		return nil, "", nil
	}
	body, err := userfile.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	var about struct {
		Kinds map[string]features.Kind `json:"kinds"`
	}
	_, err = jsonscan.Decode(body)
	_, twice := errors.AsType[*jsonscan.Twice](err)
	err = json.Unmarshal(body, &about)
	switch {
	case twice && len(about.Kinds) > 0: // which of two kinds counts would be chance
		return nil, "", fmt.Errorf("%s, which says what the columns are, has a key twice: keep one", name)
	case err == nil:
	case filepath.Base(name) == dataset.NumbersName+".json":
		return nil, "",
			fmt.Errorf("%s, which says what the columns are, cannot be read: write the features again, or take it away",
				name)
	default:
		return nil, "", nil
	}
	for column, kind := range about.Kinds {
		if !slices.Contains([]features.Kind{features.Number, features.Count, features.YesNo}, kind) {
			return nil, "", fmt.Errorf("%s: column %q is of kind %q: it has to be number, count or yes_no", name, column,
				kind)
		}
	}
	return about.Kinds, name, nil
}

// choose gives the columns that are tested.
func (f Grouping) choose(numbers Numbers) ([]labels.Feature, error) {
	if f.Features == nil {
		return numbers.Columns, nil
	}
	var chosen []labels.Feature
	for _, name := range f.Features {
		for _, other := range numbers.Others {
			if other.Name == name {
				return nil, userfile.Wrong("--feature %s: the column does not hold numbers: %s", name, OtherText(other))
			}
		}
		i := slices.IndexFunc(numbers.Columns, func(c labels.Feature) bool { return c.Name == name })
		if i < 0 {
			return nil, userfile.Wrong("--feature %s: the file has no such column of numbers", name)
		}
		chosen = append(chosen, numbers.Columns[i])
	}
	return chosen, nil
}

// OtherText says what is in a column that does not hold numbers.
func OtherText(c OtherColumn) string {
	switch {
	case c.Unread != "":
		return manifest.Unread{Name: c.Name, Type: c.Unread}.Why()
	case c.Line == 0:
		return "it has no value at all"
	case c.Thousands:
		return fmt.Sprintf("on line %d a point that may part thousands, for other numbers have a decimal comma", c.Line)
	case c.Large:
		return fmt.Sprintf("on line %d a number too large to compute with exactly (integers only up to 2^53)", c.Line)
	}
	return fmt.Sprintf("a text on line %d", c.Line)
}
