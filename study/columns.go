package study

import (
	"context"
	"maps"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/guess"
)

// A columnReading is what annotators answered who have a column each in one file.
type columnReading struct {
	like    *manifest.Release // of the one category that they are about
	answers []labels.Answers
	leftOut int    // rows that say that they are no answer
	several string // the sign between the labels of cells that were taken for one label, though they seem to hold several
}

func readColumns(ctx context.Context, a Annotations, like *manifest.Release) (out columnReading, err error) {
	switch {
	case len(a.Files) > 1:
		return out, userfile.Wrong("--columns names columns of one file, and there are %d files", len(a.Files))
	case len(a.Columns) < 2:
		return out, userfile.Wrong("--columns needs the columns of two annotators at least, as in --columns A,B")
	case a.Release == "" && a.Category != "":
		return out, userfile.Wrong("--category needs --release, the release that has the category")
	}
	values, err := differentValues(ctx, a.Files[0], a.Columns)
	if err != nil {
		return out, userfile.Faulty(err)
	}
	if a.Release == "" {
		out.like, err = labelled(values)
		out.several = severalSign(values)
	} else {
		out.like, err = ofCategory(like, values, a)
	}
	if err != nil {
		return out, err
	}
	category := out.like.Schema.Categories[0].Name
	for _, column := range a.Columns {
		answers, without, err := ReadAnswers(ctx, a.Files[0], out.like.Naming(map[string]string{category: column}))
		if err != nil {
			return out, err
		}
		out.answers, out.leftOut = append(out.answers, answers), max(out.leftOut, without) // the same rows for each
	}
	return out, nil
}

// differentValues gives the different cells of columns, in order.
func differentValues(ctx context.Context, file string, columns []string) (all []string, err error) {
	for _, column := range columns {
		values, err := ReadColumn(ctx, file, column, ofAnswers(new(int)))
		if err != nil {
			return nil, err
		}
		for _, text := range values {
			all = append(all, text)
		}
		slices.Sort(all)
		all = slices.Compact(all)
	}
	return all, nil
}

// mostOwnLabels is how many different cells at most are taken for labels.
const mostOwnLabels = 50

// labelled gives a release whose one category has each of the different values as a label, one a cell. Spellings that
// differ in case alone, or are one number, are one label.
func labelled(values []string) (*manifest.Release, error) {
	category, place := manifest.Category{Name: "label", Title: "Label", Kind: manifest.Single}, make(map[string]int)
	var spellings []manifest.Spelling
	for _, text := range values {
		key := guess.SharedLabel(text)
		if _, met := place[key]; !met {
			place[key] = len(category.Labels)
			category.Labels = append(category.Labels, manifest.Label{Code: text, Name: text})
		}
		spellings = append(spellings, manifest.Spelling{Text: text, Label: place[key]})
	}
	if n := len(category.Labels); n > mostOwnLabels {
		return nil, userfile.Wrong("the columns have %d different values, and at most %d are taken for labels: "+
			"name the release that has their labels with --release", n, mostOwnLabels)
	}
	return manifest.WithLabels(manifest.Schema{Categories: []manifest.Category{category}}).Spelling(spellings), nil
}

// CategoriesOf names the categories of a release that have all labels in columns of a file.
func CategoriesOf(ctx context.Context, file string, columns []string, release string) (all []string, err error) {
	values, err := differentValues(ctx, file, columns)
	if err != nil {
		return nil, err
	}
	r, err := like(ctx, release)
	if err != nil {
		return nil, err
	}
	for _, i := range categoriesWith(r, values) {
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
