package study

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/guess"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A columnReading is what annotators answered who have a column each in one file.
type columnReading struct {
	like    *manifest.Release // of the one category that they are about
	answers []labels.Answers
	leftOut int    // rows that say that they are no answer
	several string // the sign between the labels of cells that were taken for one label, though they seem to hold several
	missing []MissingWords
	asOne   []Spellings // of labels of their own
}

// Spellings are those of one label, in order, each with its cells.
type Spellings []Spelling

// A Spelling is a text that stands in cells.
type Spelling struct {
	Text  string `json:"text"`
	Cells int    `json:"cells"`
}

// String gives the spellings as messages have them.
func (s Spellings) String() string {
	var all []string
	for i, of := range s {
		cells := ""
		switch {
		case i == 0 && of.Cells == 1:
			cells = " cell"
		case i == 0:
			cells = " cells"
		}
		all = append(all, fmt.Sprintf("%s in %d%s", table.Quote(of.Text), of.Cells, cells))
	}
	return strings.Join(all, " and ")
}

func readColumns(ctx context.Context, a Annotations, like *manifest.Release) (out columnReading, err error) {
	switch {
	case len(a.Files) > 1:
		return out, userfile.Wrong("--columns names columns of one file, and there are %d files", len(a.Files))
	case len(a.Columns) < 2:
		return out, userfile.Wrong("--columns needs the columns of two annotators at least, as in --columns A,B")
	case len(slices.Compact(slices.Sorted(slices.Values(a.Columns)))) < len(a.Columns):
		return out, userfile.Wrong("--columns names a column twice, which would count as two annotators: name it once")
	case a.Release == "" && a.Category != "":
		return out, userfile.Wrong("--category needs --release, the release that has the category")
	}
	by, cells, err := differentValues(ctx, a.Files[0], a.Columns)
	if err != nil {
		return out, userfile.Faulty(err)
	}
	values := allOf(by)
	if a.Release == "" {
		out.like, out.asOne, err = ownLabels(a.Columns, by, cells)
		out.several = severalSign(values)
	} else {
		out.like, err = ofCategory(like, values, a)
	}
	if err != nil {
		return out, err
	}
	category := out.like.Schema.Categories[0].Name
	for i, column := range a.Columns {
		read, err := ReadAnswers(ctx, a.Files[0], out.like.Naming(map[string]string{category: column}))
		if err != nil {
			return out, err
		}
		out.answers, out.leftOut = append(out.answers, read.Answers), max(out.leftOut, read.LeftOut) // the same rows for each
		out.missing = append(out.missing, read.MissingOf(i)...)
	}
	return out, nil
}

// differentValues gives the different cells of each column, in order, but for words for a missing value, and how many
// cells of all columns are the same.
func differentValues(ctx context.Context, file string, columns []string) (by [][]string, cells map[string]int,
	err error) {
	cells = make(map[string]int)
	for _, column := range columns {
		values, err := ReadColumn(ctx, file, column, ofAnswers(new(int)))
		if err != nil {
			return nil, nil, err
		}
		for _, text := range values {
			cells[text]++
		}
		all := slices.Sorted(maps.Values(values))
		by = append(by, slices.DeleteFunc(slices.Compact(all), value.Missing))
	}
	return by, cells, nil
}

// allOf gives the different cells of all columns, in order.
func allOf(by [][]string) []string {
	all := slices.Concat(by...)
	slices.Sort(all)
	return slices.Compact(all)
}

// mostOwnLabels is how many different cells at most are taken for labels.
const mostOwnLabels = 50

// ownLabels gives a release whose one category has each of the different values of the columns as a label, one a cell.
// Spellings that differ in case alone, or are one number, are one label; where all are words for yes and no, they are
// these two. Columns of which no two share a label are about different things, or spell one thing in two ways. cells
// says how many have each value; asOne are the labels of several spellings.
func ownLabels(columns []string, by [][]string, cells map[string]int) (r *manifest.Release, asOne []Spellings,
	err error) {
	values, label := allOf(by), guess.SharedLabel
	if read := flagOf(values); read != nil {
		label = func(text string) string { yes, _ := read(text); return strconv.FormatBool(yes) }
	}
	category, place := manifest.Category{Name: "label", Title: "Label", Kind: manifest.Single}, make(map[string]int)
	var spellings []manifest.Spelling
	for _, text := range values {
		key := label(text)
		if _, met := place[key]; !met {
			place[key] = len(category.Labels)
			category.Labels = append(category.Labels, manifest.Label{Code: text, Name: text})
		}
		spellings = append(spellings, manifest.Spelling{Text: text, Label: place[key]})
	}
	if n := len(category.Labels); n > mostOwnLabels {
		return nil, nil, userfile.Wrong("the columns have %d different values, and at most %d are taken for labels: "+
			"name the release that has their labels with --release", n, mostOwnLabels)
	}
	for label := range category.Labels {
		var of Spellings
		for _, s := range spellings {
			if s.Label == label {
				of = append(of, Spelling{s.Text, cells[s.Text]})
			}
		}
		if len(of) > 1 {
			asOne = append(asOne, of)
		}
	}
	if err := sharing(columns, by, label); err != nil {
		return nil, nil, err
	}
	r = manifest.WithLabels(manifest.Schema{Categories: []manifest.Category{category}}).Spelling(spellings)
	return r, asOne, nil
}

// flagOf gives how all values are read as words for yes and no, nil where one is none. The letters of true and false
// stand beside no others: of T, F and N, the last is neither.
func flagOf(values []string) func(text string) (yes, ok bool) {
	has := func(letters ...string) bool {
		return slices.ContainsFunc(values, func(text string) bool { return slices.Contains(letters, value.Fold(text)) })
	}
	for _, read := range []func(string) (yes, ok bool){value.Flag, value.YesNo} {
		if !slices.ContainsFunc(values, func(text string) bool { _, ok := read(text); return !ok }) &&
			!(has("t", "f") && has("y", "j", "n")) {
			return read
		}
	}
	return nil
}

// sharing refuses columns of which no two have a label in common.
func sharing(columns []string, by [][]string, label func(text string) string) error {
	met := make(map[string]int) // by a label, the column that has it
	var filled []int
	for i, values := range by {
		for _, text := range values {
			if of, has := met[label(text)]; has && of != i {
				return nil
			}
			met[label(text)] = i
		}
		if len(values) > 0 {
			filled = append(filled, i)
		}
	}
	if len(filled) < 2 {
		return nil // which compares nothing, and is said
	}
	a, b := filled[0], filled[1]
	return userfile.Wrong("no two of the columns have a label in common: %s has %s, and %s has %s; spell the labels in "+
		"one way, or name the release that has them with --release", table.Quote(columns[a]), manifest.QuotedList(by[a]),
		table.Quote(columns[b]), manifest.QuotedList(by[b]))
}

// CategoriesOf names the categories of a release that have all labels in columns of a file.
func CategoriesOf(ctx context.Context, file string, columns []string, release string) (all []string, err error) {
	by, _, err := differentValues(ctx, file, columns)
	if err != nil {
		return nil, err
	}
	r, err := like(ctx, release)
	if err != nil {
		return nil, err
	}
	for _, i := range categoriesWith(r, allOf(by)) {
		all = append(all, r.Schema.Categories[i].Name)
	}
	return all, nil
}

// categoriesWith gives the places of the categories that have all values as labels.
func categoriesWith(r *manifest.Release, values []string) (places []int) {
	for i := range r.Schema.Categories {
		isNone := func(text string) bool {
			_, p := r.Labels(i, r.SplitLabels(i, text, r.Schema.Separator()))
			return p != nil
		}
		if !slices.ContainsFunc(values, isNone) {
			places = append(places, i)
		}
	}
	return places
}

// ofCategory gives the release with the one category that the values are labels of.
func ofCategory(r *manifest.Release, values []string, a Annotations) (*manifest.Release, error) {
	var all, fit []string
	for i, c := range r.Schema.Categories {
		if c.Name == a.Category {
			return r.Only(i), nil
		}
		all = append(all, c.Name)
	}
	if a.Category != "" {
		return nil, userfile.Wrong("--category: the release has no category %q; it has %s", a.Category,
			strings.Join(all, ", "))
	}
	found := categoriesWith(r, values)
	for _, i := range found {
		fit = append(fit, all[i])
	}
	switch len(found) {
	case 0:
		return nil,
			userfile.Wrong("no category of the release has all labels of the columns: name the one that is meant with "+
				"--category (%s)", strings.Join(all, ", "))
	case 1:
		return r.Only(found[0]), nil
	}
	return nil, userfile.Wrong("the columns have labels of %s: name one with --category", strings.Join(fit, ", "))
}

// severalSign gives the sign between the labels of cells that seem to hold several, of which one stands in another cell
// too; "" for none.
func severalSign(values []string) string {
	for _, sign := range manifest.Separators() {
		cells := make(map[string]int) // by a label, how many have it
		several := false
		for _, text := range values {
			parts := strings.Split(text, sign)
			for i := range parts {
				parts[i] = guess.SharedLabel(parts[i])
			}
			slices.Sort(parts)
			for _, part := range slices.Compact(parts) {
				cells[part]++
			}
			several = several || len(parts) > 1 && !slices.Contains(parts, "")
		}
		if several && slices.Max(slices.Collect(maps.Values(cells))) > 1 {
			return sign
		}
	}
	return ""
}
