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

// A guess is what Init makes of the columns of a file: the settings, and a reason for each. The
// template of release.toml reads its exported fields.
type guess struct {
	columns  []*columnSurvey
	fields   [fieldSubreddit]fieldGuess
	taken    map[string]bool // columns in use
	redacted []string        // personal columns, which are not to be copied

	Name, Source, Manifest string // of the release, the file and its copy

	Categories []categoryGuess
	IsFigSIM   bool
	Separator  string
	LeftOut    []string // columns that do not hold labels, each with the reason
	Warnings   []string // what a person should look at before publishing
}

// A fieldGuess without a column says why a column of the usual name is not the field's.
type fieldGuess struct{ Name, Column, Why string }

type categoryGuess struct {
	Category
	Column, Why string
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
			names = append(names, c.name)
		}
		return nil, one(&Problem{File: source.ManifestPath, Line: 1, Message: message + "; the columns are " + quotedList(names), Hint: hint})
	}
	g.guessFields()
	if g.fields[fieldID].Column == "" {
		return refuse("no column looks like post ids", "give the column of ids, t3_ ids or permalinks the name id")
	}
	// FigSIM first: its columns would also do as categories with labels of their own.
	if !g.guessFigSIM(ctx, source) {
		g.guessCategories()
	}
	if len(g.Categories) == 0 {
		return refuse("no column looks like labels", "a label column has at most 50 different short values; more need a release.toml written by hand")
	}
	g.leaveOut(source.Format)
	return g, nil
}

// guessFields takes the columns with the usual names, if they have the usual values.
func (g *guess) guessFields() {
	for field, not := range [...]string{
		fieldID: "", fieldSplit: "its values are not split names", fieldImage: "does not hold image numbers",
		fieldSHA256: "not the values", fieldPHash: "not the values",
	} {
		found := &g.fields[field]
		// Of several names the likeliest decides, but an id column with other values, such as a row
		// number, leaves the field to the next name.
		for _, c := range g.named(field) {
			if why := c.holds(field); why != "" {
				*found = fieldGuess{fieldNames[field], c.name, "by its name; " + why}
				g.taken[c.name] = true
				if field == fieldImage && !c.zero && c.empty == 0 {
					g.Warnings = append(g.Warnings, fmt.Sprintf("the image column %s never is 0: images are counted from 0 here", quote(c.name)))
				}
			} else if not != "" {
				*found = fieldGuess{fieldNames[field], "", fmt.Sprintf("column %s has the name, but %s", quote(c.name), not)}
			}
			if found.Why != "" {
				break
			}
		}
	}
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
	for _, f := range g.Fields() {
		s.columns[f.Name], s.named[f.Column] = f.Column, f.Name
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
		g.Categories = append(g.Categories, categoryGuess{c, column, "all values are FigSIM's labels of this category"})
		g.taken[column] = true
	}
	g.IsFigSIM, g.Separator = true, r.plan.separator
	return true
}

// guessCategories makes a category of every column with few different short values.
func (g *guess) guessCategories() {
	free := func(c *columnSurvey) bool { return c.usable() && !g.taken[c.name] && !c.personal() }
	// The separator is the sign under which most columns are lists of labels.
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
	g.Separator = separators[sign]
	names := make(map[string]bool)
	for _, c := range g.columns {
		if !free(c) || len(g.Categories) == maxCategories {
			continue
		}
		made := categoryGuess{Column: c.name}
		labels := &c.whole
		switch {
		case c.isMulti(sign):
			labels, made.Kind = &c.parts[sign], Multi
			made.Why = fmt.Sprintf("%d different labels; a cell can hold several, separated by %q", len(labels.spelled), g.Separator)
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
		g.Categories = append(g.Categories, made)
	}
	// A column of yes and no for each of FigSIM's labels gives a category each.
	for _, c := range FigSIM().Categories {
		v, oneHot := newVocabulary(&c), []string(nil)
		for _, made := range g.Categories {
			if label, known := v.find(made.Column); known {
				oneHot = append(oneHot, fmt.Sprintf("%s = %s", c.Labels[label].Code, tomlText(made.Column)))
			}
		}
		if c.Kind == Multi && len(oneHot) > 1 {
			g.Warnings = append(g.Warnings, fmt.Sprintf(`%d columns are named as labels of FigSIM's category %s, and each was made a category: if they hold yes and no, `+
				`write schema = "figsim" in place of all [[category]] tables and, in place of their lines under [columns], %s = { %s }`, len(oneHot), c.Name, c.Name, strings.Join(oneHot, ", ")))
		}
	}
}

// labels orders labels as numbers where all are, else by text. "None" is then exclusive if
// noneAlone says that it never stands beside another.
func (l *labelSet) labels(noneAlone bool) []Label {
	texts := slices.Collect(maps.Values(l.spelled))
	key := fold
	if !slices.ContainsFunc(texts, func(s string) bool { return !digits(s) }) {
		key = func(s string) string { return strings.Repeat("0", maxGuessedText-len(s)) + s }
	}
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a, b)) })
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
			g.Warnings = append(g.Warnings, fmt.Sprintf("column %s may hold personal data: it was left out of the release's annotations", quote(c.name)))
		case c.personal():
			why = "it is about people or holds their words"
			g.Warnings = append(g.Warnings, fmt.Sprintf("column %s may hold personal data: take it out of the annotations before publishing", quote(c.name)))
		case c.nested:
			why = "some values are neither plain values nor lists of them"
		case c.filled == 0:
			why = "empty"
		}
		g.LeftOut = append(g.LeftOut, quote(c.name)+": "+why)
	}
	g.LeftOut = slices.Compact(g.LeftOut) // names that are the same when cut
}

// Fields gives the fields about which release.toml says something.
func (g *guess) Fields() []fieldGuess {
	return slices.DeleteFunc(slices.Clone(g.fields[:]), func(f fieldGuess) bool { return f.Why == "" })
}

// OneSplit reports whether the file has no column of splits.
func (g *guess) OneSplit() bool { return g.fields[fieldSplit].Column == "" }

// notes are the guesses for a person to read, one a line.
func (g *guess) notes() []string {
	var notes []string
	for _, f := range g.Fields() {
		is := "is column " + quote(f.Column)
		if f.Column == "" {
			is = "has no column"
		}
		notes = append(notes, fmt.Sprintf("%s %s: %s", f.Name, is, f.Why))
	}
	for _, c := range g.Categories {
		notes = append(notes, fmt.Sprintf("category %s (%s) is %s: %s", c.Name, c.Kind, quote(c.Column), c.Why))
	}
	for _, left := range g.LeftOut {
		notes = append(notes, "not used: "+left)
	}
	return notes
}
