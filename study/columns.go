package study

import (
	"context"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/guess"
)

// readColumns reads the answers of annotators who have a column each in one file. It returns them with a release of the
// one category that they are about, and how many rows say that they are no answer.
func readColumns(ctx context.Context, a Annotations, like *manifest.Release) (*manifest.Release, []labels.Answers, int,
	error) {
	switch {
	case len(a.Files) > 1:
		return nil, nil, 0, userfile.Wrong("--columns names columns of one file, and there are %d files", len(a.Files))
	case len(a.Columns) < 2:
		return nil, nil, 0, userfile.Wrong("--columns needs the columns of two annotators at least, as in --columns A,B")
	case a.Release == "" && a.Category != "":
		return nil, nil, 0, userfile.Wrong("--category needs --release, the release that has the category")
	}
	values, err := differentValues(ctx, a.Files[0], a.Columns)
	if err != nil {
		return nil, nil, 0, userfile.Faulty(err)
	}
	if a.Release == "" {
		like, err = labelled(values)
	} else {
		like, err = ofCategory(like, values, a)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	category := like.Schema.Categories[0].Name
	var all []labels.Answers
	left := 0
	for _, column := range a.Columns {
		answers, without, err := ReadAnswers(ctx, a.Files[0], like.Naming(map[string]string{category: column}))
		if err != nil {
			return nil, nil, 0, err
		}
		all, left = append(all, answers), max(left, without) // the same rows for each
	}
	return like, all, left, nil
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

// ofCategory gives the release with the one category that the values are labels of.
func ofCategory(r *manifest.Release, values []string, a Annotations) (*manifest.Release, error) {
	var fit, all []string
	found := -1
	for i, c := range r.Schema.Categories {
		all = append(all, c.Name)
		isLabel := func(text string) bool {
			_, p := r.Labels(i, r.SplitLabels(i, text, r.Schema.Separator()))
			return p == nil
		}
		switch {
		case a.Category == c.Name:
			return r.Only(i), nil
		case a.Category == "" && !slices.ContainsFunc(values, func(text string) bool { return !isLabel(text) }):
			fit, found = append(fit, c.Name), i
		}
	}
	switch {
	case a.Category != "":
		return nil, userfile.Wrong("--category: the release has no category %q; it has %s", a.Category,
			strings.Join(all, ", "))
	case len(fit) == 1:
		return r.Only(found), nil
	case len(fit) > 1:
		return nil, userfile.Wrong("the columns have labels of %s: name one with --category", strings.Join(fit, ", "))
	}
	return nil,
		userfile.Wrong("no category of the release has all labels of the columns: name the one that is meant with "+
			"--category (%s)", strings.Join(all, ", "))
}
