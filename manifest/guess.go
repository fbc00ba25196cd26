package manifest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A guess is what Init makes of the columns of a file: the settings, and a reason for each.
type guess struct {
	columns []*columnSurvey

	fields     [fieldSubreddit]fieldGuess
	categories []categoryGuess
	isFigSIM   bool
	separator  string

	taken    map[string]bool // columns in use
	leftOut  []string        // columns that do not hold labels, each with the reason
	redacted []string        // of these, those that are personal and not to be copied
	warnings []string        // what a person should look at before publishing
}

type fieldGuess struct {
	column string
	off    bool // a column has the usual name but not the usual values
	why    string
}

type categoryGuess struct {
	Category
	Column string
	Why    string
}

// newGuess guesses what the columns of the source mean. It fails only when there is nothing to
// build a release on.
func newGuess(ctx context.Context, source *Release) (*guess, error) {
	columns, err := source.survey()
	if err != nil {
		return nil, err
	}
	g := &guess{columns: columns, taken: make(map[string]bool)}
	refuse := func(message, hint string) (*guess, error) {
		var names []string
		for _, c := range columns {
			names = append(names, quote(c.name))
		}
		return nil, one(&Problem{File: source.ManifestPath, Line: 1, Message: message + "; the columns are " + list(names), Hint: hint})
	}
	g.guessFields()
	if g.fields[fieldID].column == "" {
		return refuse("no column looks like post ids", "give the column of ids, t3_ ids or permalinks the name id")
	}
	if !g.guessFigSIM(ctx, source) {
		g.guessCategories()
	}
	if len(g.categories) == 0 {
		return refuse("no column looks like labels", "a label column has at most 50 different short values; more need a release.toml written by hand")
	}
	g.leaveOut(source.Format)
	return g, nil
}

// guessFields takes the columns with the usual names, if they have the usual values.
func (g *guess) guessFields() {
	for _, f := range []struct {
		field int
		why   func(*columnSurvey) string // "" if the values are not the usual ones
		not   string
	}{
		{fieldID, func(c *columnSurvey) string {
			if 2*c.ids <= c.different { // the rest is for the check to show
				return ""
			}
			return fmt.Sprintf("by its name; %d of %d values are post ids", c.ids, c.different)
		}, ""},
		{fieldSplit, func(c *columnSurvey) string {
			if c.splits < c.different || c.empty > 0 || c.whole.bad || c.whole.folded {
				return ""
			}
			return fmt.Sprintf("by its name; the splits are %s", list(slices.Sorted(maps.Values(c.whole.spelled))))
		}, "its values are not split names"},
		{fieldImage, func(c *columnSurvey) string {
			if c.images < c.different {
				return ""
			}
			return "by its name; all values are small numbers"
		}, "does not hold image numbers"},
		{fieldSHA256, func(c *columnSurvey) string { return allDigits(c, c.sha256) }, "not the values"},
		{fieldPHash, func(c *columnSurvey) string { return allDigits(c, c.phash) }, "not the values"},
	} {
		for _, c := range g.named(f.field) {
			if why := f.why(c); why != "" && c.different > 0 && c.lists == 0 && !c.nested {
				g.fields[f.field] = fieldGuess{column: c.name, why: why}
				g.taken[c.name] = true
				break
			}
			if f.not != "" {
				g.fields[f.field] = fieldGuess{off: true, why: fmt.Sprintf("column %s has the name, but %s", quote(c.name), f.not)}
				break
			}
		}
	}
	image := g.fields[fieldImage].column
	if i := slices.IndexFunc(g.columns, func(c *columnSurvey) bool { return image != "" && c.name == image }); i >= 0 && !g.columns[i].zero && g.columns[i].empty == 0 {
		g.warnings = append(g.warnings, fmt.Sprintf("the image column %s never is 0: images are counted from 0 here", quote(image)))
	}
}

func allDigits(c *columnSurvey, n int) string {
	if n < c.different {
		return ""
	}
	return "by its name; all values have the right digits"
}

// named gives the columns with a usual name of the field, the likeliest first.
func (g *guess) named(field int) []*columnSurvey {
	var named []*columnSurvey
	for _, alias := range aliases(field) {
		for _, c := range g.columns {
			if c.usable() && plain(c.name) == alias {
				named = append(named, c)
			}
		}
	}
	return named
}

// guessFigSIM reports whether the file can be read with FigSIM's labels: it has a column for
// each category, by its name, and the rows pass the check.
func (g *guess) guessFigSIM(ctx context.Context, source *Release) bool {
	s := figsimSettings("", source.Format)
	for field, f := range g.fields {
		if f.column != "" || f.off {
			s.columns[fieldNames[field]], s.named[f.column] = f.column, fieldNames[field]
		}
	}
	r := newRelease(s, Options{OpenParquet: source.openParquet})
	r.ManifestPath = source.ManifestPath
	if r.bind(s, nil) != nil || r.guessSeparator() != nil {
		return false
	}
	if _, err := r.Check(ctx); err != nil {
		return false
	}
	for i, c := range r.Schema.Categories {
		column := r.plan.categories[i].column
		g.categories = append(g.categories, categoryGuess{c, column, "all values are FigSIM's labels of this category"})
		g.taken[column] = true
	}
	g.isFigSIM, g.separator = true, r.plan.separator
	return true
}

// guessCategories makes a category of every column with few different short values. The
// separator is the sign under which most columns are lists of labels.
func (g *guess) guessCategories() {
	free := func(c *columnSurvey) bool { return c.usable() && !g.taken[c.name] && !c.personal() }
	sign, most := 0, 0
	for i := range separators {
		n := 0
		for _, c := range g.columns {
			if free(c) && c.lists == 0 && c.isMulti(i) {
				n++
			}
		}
		if n > most {
			sign, most = i, n
		}
	}
	g.separator = separators[sign]
	names := make(map[string]bool)
	for _, c := range g.columns {
		if !free(c) || len(g.categories) == maxCategories {
			continue
		}
		made := categoryGuess{Column: c.name}
		labels := &c.whole
		switch {
		case c.isMulti(sign):
			labels, made.Kind = &c.parts[sign], Multi
			made.Why = fmt.Sprintf("%d different labels; a cell can hold several, separated by %q", len(labels.spelled), g.separator)
			if c.lists > 0 {
				made.Why = fmt.Sprintf("lists of %d different labels", len(labels.spelled))
			}
		case c.isSingle():
			made.Kind = Single
			made.Why = fmt.Sprintf("%d different values in %d cells", len(labels.spelled), c.filled)
		default:
			continue
		}
		made.Labels = labels.labels(made.Kind == Multi && !labels.none)
		made.Name, made.Title = slug(c.name), strings.TrimSpace(c.name)
		for n := 2; names[made.Name]; n++ {
			made.Name = slug(c.name) + "_" + strconv.Itoa(n)
		}
		if !validText(made.Title, maxLabelText) {
			made.Title = made.Name
		}
		names[made.Name], g.taken[c.name] = true, true
		g.categories = append(g.categories, made)
	}
}

// labels orders labels as numbers where all are, else by text. "None" is exclusive
// where it never stands beside another.
func (l *labelSet) labels(noneAlone bool) []Label {
	texts := slices.Collect(maps.Values(l.spelled))
	numbers := !slices.ContainsFunc(texts, func(s string) bool { return !digits(s) })
	slices.SortFunc(texts, func(a, b string) int {
		if numbers {
			x, y := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
		}
		return cmp.Or(cmp.Compare(fold(a), fold(b)), cmp.Compare(a, b))
	})
	labels := make([]Label, 0, len(texts))
	for _, text := range texts {
		labels = append(labels, Label{Code: text, Name: text, Exclusive: noneAlone && fold(text) == "none"})
	}
	return labels
}

// leaveOut notes the columns that were not used, and warns of those that should go.
func (g *guess) leaveOut(format Format) {
	for _, c := range g.columns {
		why := "its values are not short labels that repeat"
		switch {
		case g.taken[c.name] || c.name == "":
			continue
		case c.personal() && format != Parquet:
			why = "it is about people or holds their words, and was not copied"
			g.redacted = append(g.redacted, c.name)
			g.warnings = append(g.warnings, fmt.Sprintf("column %s may hold personal data: it was left out of the release's annotations", quote(c.name)))
		case c.personal():
			why = "it is about people or holds their words"
			g.warnings = append(g.warnings, fmt.Sprintf("column %s may hold personal data: take it out of the annotations before publishing", quote(c.name)))
		case c.nested:
			why = "some values are neither plain values nor lists of them"
		case c.filled == 0:
			why = "empty"
		}
		g.leftOut = append(g.leftOut, quote(c.name)+": "+why)
	}
}

// notes are the guesses for a person to read, one a line.
func (g *guess) notes() []string {
	var notes []string
	for field, f := range g.fields {
		switch {
		case f.column != "":
			notes = append(notes, fmt.Sprintf("%s is column %s: %s", fieldNames[field], quote(f.column), f.why))
		case f.off:
			notes = append(notes, fmt.Sprintf("%s has no column: %s", fieldNames[field], f.why))
		}
	}
	for _, c := range g.categories {
		notes = append(notes, fmt.Sprintf("category %s (%s) is %s: %s", c.Name, c.Kind, quote(c.Column), c.Why))
	}
	for _, left := range g.leftOut {
		notes = append(notes, "not used: "+left)
	}
	return notes
}
