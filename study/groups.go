package study

import (
	"context"
	"fmt"
	"slices"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
)

// Grouping says what numbers are tested between which labels.
type Grouping struct {
	Gold, Split string
	By          string   // a category; empty for the first that is a scale
	ID          string   // the column of post ids; empty where it is to be found
	Features    []string // columns; nil for all that hold numbers
	Alpha       float64  // pairs whose corrected p is below are marked
}

// Groups are tests of whether numbers differ between labels.
type Groups struct {
	By      string             `json:"by"`
	Split   string             `json:"split"`
	Entries int                `json:"entries"` // of the split
	File    labels.FileScore   `json:"file"`
	Without int                `json:"without_label"` // entries of the file that have no answer for the category
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
	features := make([]labels.Feature, len(columns))
	for i, column := range columns {
		features[i].Name = column.Name
	}
	var entries []manifest.Entry
	for _, e := range gold.entries {
		row, ok := rows[e.Key]
		if !ok { // what a file says nothing about is not a missing value of each of its features
			continue
		}
		entries = append(entries, e)
		if e.Labels[by] == nil {
			out.Without++
		}
		for i, column := range columns {
			features[i].Values = append(features[i].Values, column.Values[row])
		}
	}
	if len(entries) == 0 {
		return out, userfile.Wrong("no row of %s is about an entry of split %s", file, gold.split)
	}
	out.Tests, err = labels.CompareGroups(gold.Schema, out.By, entries, features)
	return out, err
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
	if c.Line == 0 {
		return "it has no value at all"
	}
	return fmt.Sprintf("a text on line %d", c.Line)
}
