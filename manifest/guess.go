package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A guess is what Init makes of a survey: the settings, and a reason for each.
type guess struct {
	survey *survey
	format Format

	fields     [len(fieldNames)]fieldGuess
	categories []categoryGuess
	isFigSIM   bool
	separator  int // place in separators

	taken    map[string]bool // columns in use
	leftOut  []string        // columns that hold no labels, each with the reason
	redacted []string        // of these, those that are personal and not to be copied
	warnings []string        // what a person should look at before publishing
}

type fieldGuess struct {
	column string
	off    bool // a column has the usual name but not the usual values
	why    string
}

type categoryGuess struct {
	category Category
	column   string
	oneHot   []string // by label, "" = none
	why      string
}

// newGuess fails only when there is nothing to build a release on.
func newGuess(s *survey, file string, format Format) (*guess, *Problem) {
	g := &guess{survey: s, format: format, taken: make(map[string]bool)}
	if !g.guessID() {
		return nil, &Problem{File: file, Line: 1, Message: "no column looks like post ids", Hint: "give the column of ids, t3_ ids or permalinks the name id"}
	}
	g.guessSplit()
	g.guessImage()
	g.guessHex(fieldSHA256, func(c *columnSurvey) int { return c.sha256 })
	g.guessHex(fieldPHash, func(c *columnSurvey) int { return c.phash })
	if !g.guessFigSIM() {
		g.guessSeparator()
		g.guessCategories()
	}
	if len(g.categories) == 0 {
		return nil, &Problem{File: file, Line: 1, Message: "no column looks like labels", Hint: "a label column has at most 50 different short values; more need a release.toml written by hand"}
	}
	return g, nil
}

// named gives the column with the likeliest usual name of a field, nil if none has one.
func (g *guess) named(field int) *columnSurvey {
	for _, alias := range aliases(field) {
		for _, c := range g.survey.columns {
			if c.usable() && plain(c.name) == alias && !g.taken[c.name] {
				return c
			}
		}
	}
	return nil
}

func (g *guess) take(field int, c *columnSurvey, why string) {
	g.fields[field] = fieldGuess{column: c.name, why: why}
	g.taken[c.name] = true
}

// guessID takes the column with a usual name and mostly ids (the rest is for the check
// to show), else the one whose values can hardly be anything else.
func (g *guess) guessID() bool {
	var best *columnSurvey
	for _, alias := range aliases(fieldID) {
		for _, c := range g.survey.columns {
			if c.usable() && plain(c.name) == alias && 2*c.ids > c.filled && (best == nil || c.ids > best.ids) {
				best = c
			}
		}
	}
	if best != nil {
		g.take(fieldID, best, fmt.Sprintf("by its name; %d of %d values are post ids", best.ids, best.filled))
		return true
	}
	for _, c := range g.survey.columns {
		// Ids are counted up in base 36: most hold both letters and digits. Words and
		// row numbers, which could be ids too, do not.
		likely := c.ids == c.filled && c.filled > 0 && (c.addresses == c.filled || 2*c.mixed > c.filled)
		if c.usable() && likely && (c.values.over || len(c.values.spelled) == c.filled) {
			g.take(fieldID, c, fmt.Sprintf("by its values: all %d are post ids and differ", c.filled))
			g.warnings = append(g.warnings, fmt.Sprintf("the id column %s was found by its values only", quote(c.name)))
			return true
		}
	}
	return false
}

func (g *guess) guessSplit() {
	if c := g.named(fieldSplit); c != nil {
		if c.words == c.filled && c.filled > 0 && c.empty == 0 && c.lists == 0 && !c.folded && !c.values.over {
			g.take(fieldSplit, c, fmt.Sprintf("by its name; the splits are %s", list(slices.Sorted(maps.Values(c.values.spelled)))))
			return
		}
		g.fields[fieldSplit] = fieldGuess{off: true, why: fmt.Sprintf("column %s has the name, but its values are no split names", quote(c.name))}
		return
	}
	for _, c := range g.survey.columns {
		if c.usable() && !g.taken[c.name] && c.empty == 0 && c.lists == 0 && !c.folded && c.isSingle() && standardSplits(c.values.spelled) {
			g.take(fieldSplit, c, "by its values: they are the usual split names")
			return
		}
	}
}

func standardSplits(values map[string]string) bool {
	for v := range values {
		if !slices.Contains([]string{"train", "training", "validation", "valid", "val", "dev", "test", "testing"}, v) {
			return false
		}
	}
	return len(values) > 1
}

func (g *guess) guessImage() {
	c := g.named(fieldImage)
	if c == nil {
		return
	}
	if c.filled == 0 || c.numbers != c.filled || c.lists > 0 || c.nested {
		g.fields[fieldImage] = fieldGuess{off: true, why: fmt.Sprintf("column %s has the name, but does not hold image numbers", quote(c.name))}
		return
	}
	g.take(fieldImage, c, "by its name; all values are small numbers")
	if c.zeros == 0 && c.empty == 0 {
		g.warnings = append(g.warnings, fmt.Sprintf("the image column %s never is 0: images are counted from 0 here", quote(c.name)))
	}
}

func (g *guess) guessHex(field int, count func(*columnSurvey) int) {
	c := g.named(field)
	if c == nil {
		return
	}
	if c.filled == 0 || count(c) != c.filled || c.nested {
		g.fields[field] = fieldGuess{off: true, why: fmt.Sprintf("column %s has the name, but not the values", quote(c.name))}
		return
	}
	g.take(field, c, "by its name; all values have the right digits")
}

// guessFigSIM looks for a column (or one-hot columns) for every FigSIM category, all
// under one separator.
func (g *guess) guessFigSIM() bool {
	for sign := range separators {
		var found []categoryGuess
		used := maps.Clone(g.taken)
		for i := range g.survey.schema.Categories {
			c, ok := g.figsimColumn(i, sign, used)
			if !ok {
				break
			}
			found = append(found, c)
		}
		if len(found) == len(g.survey.schema.Categories) {
			g.isFigSIM, g.categories, g.separator, g.taken = true, found, sign, used
			g.leaveOut()
			return true
		}
	}
	return false
}

// figsimColumn finds the column whose every value is of FigSIM's category i, first
// among those with its name, and marks it used.
func (g *guess) figsimColumn(i, sign int, used map[string]bool) (categoryGuess, bool) {
	category := &g.survey.schema.Categories[i]
	for _, byName := range []bool{true, false} {
		for _, c := range g.survey.columns {
			f := c.fits[i]
			isNamed := slices.Contains(categoryAliases(category), plain(c.name))
			if !c.usable() || used[c.name] || c.nested || f.filled == 0 || f.matched[sign] != f.filled || byName != isNamed {
				continue
			}
			used[c.name] = true
			return categoryGuess{category: *category, column: c.name, why: "all values are FigSIM's labels of this category"}, true
		}
	}
	return g.figsimOneHot(category, used)
}

func (g *guess) figsimOneHot(category *Category, used map[string]bool) (categoryGuess, bool) {
	v := newVocabulary(category)
	columns := make([]string, len(category.Labels))
	for _, c := range g.survey.columns {
		label, known := v.find(c.name)
		if known && c.usable() && !used[c.name] && columns[label] == "" && c.flags == c.filled && c.lists == 0 && !c.nested {
			columns[label] = c.name
		}
	}
	for label, name := range columns {
		if name == "" && !category.Labels[label].Exclusive || category.Kind != Multi {
			return categoryGuess{}, false
		}
	}
	for _, name := range columns {
		used[name] = true
	}
	return categoryGuess{category: *category, oneHot: columns, why: "each label has a column of yes and no"}, true
}

// guessSeparator takes the sign under which most columns are lists of labels.
func (g *guess) guessSeparator() {
	most := 0
	for sign := range separators {
		n := 0
		for _, c := range g.survey.columns {
			if g.free(c) && c.lists == 0 && c.isMulti(sign) {
				n++
			}
		}
		if n > most {
			g.separator, most = sign, n
		}
	}
}

func (g *guess) free(c *columnSurvey) bool {
	return c.usable() && !g.taken[c.name] && !c.personal()
}

// guessCategories makes a category of every column with few different short values.
func (g *guess) guessCategories() {
	names := make(map[string]bool)
	for _, c := range g.survey.columns {
		if !g.free(c) || len(g.categories) == maxCategories {
			continue
		}
		var made categoryGuess
		switch sign := separators[g.separator]; {
		case c.isMulti(g.separator):
			made = multiGuess(c, &c.parts[g.separator], sign)
		case c.isSingle():
			made = singleGuess(c)
		default:
			continue
		}
		base := slug(c.name)
		name := base
		for n := 2; names[name]; n++ {
			name = base + "_" + strconv.Itoa(n)
		}
		names[name] = true
		made.category.Name, made.category.Title, made.column = name, titleOf(c.name, name), c.name
		g.categories = append(g.categories, made)
		g.taken[c.name] = true
	}
	g.leaveOut()
}

func titleOf(column, name string) string {
	if title := strings.TrimSpace(column); validText(title, maxLabelText) {
		return title
	}
	return name
}

func singleGuess(c *columnSurvey) categoryGuess {
	return categoryGuess{
		category: Category{Kind: Single, Labels: labelsFrom(c.values, false)},
		why:      fmt.Sprintf("%d different values in %d cells", len(c.values.spelled), c.filled),
	}
}

func multiGuess(c *columnSurvey, p *partSurvey, sign string) categoryGuess {
	why := fmt.Sprintf("%d different labels; %d of %d cells hold several, parted by %q", len(p.words.spelled), p.several, c.filled, sign)
	if c.lists > 0 {
		why = fmt.Sprintf("lists of %d different labels", len(p.words.spelled))
	}
	return categoryGuess{category: Category{Kind: Multi, Labels: labelsFrom(p.words, !p.none)}, why: why}
}

// labelsFrom orders labels as numbers where all are, else by text. "None" is exclusive
// where it never stands beside another.
func labelsFrom(words wordSet, noneAlone bool) []Label {
	texts := slices.Collect(maps.Values(words.spelled))
	numbers := !slices.ContainsFunc(texts, func(s string) bool { return !digits(s) })
	slices.SortFunc(texts, func(a, b string) int {
		if numbers {
			if c := cmp.Compare(len(strings.TrimLeft(a, "0")), len(strings.TrimLeft(b, "0"))); c != 0 {
				return c
			}
			return cmp.Or(cmp.Compare(strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")), cmp.Compare(a, b))
		}
		return cmp.Or(cmp.Compare(fold(a), fold(b)), cmp.Compare(a, b))
	})
	labels := make([]Label, 0, len(texts))
	for _, text := range texts {
		labels = append(labels, Label{Code: text, Name: text, Exclusive: noneAlone && isNone(text)})
	}
	return labels
}

// leaveOut notes the columns that were not used, and warns of those that should go.
func (g *guess) leaveOut() {
	for _, c := range g.survey.columns {
		switch {
		case g.taken[c.name] || c.name == "":
		case c.personal() && g.format != Parquet:
			g.redacted = append(g.redacted, c.name)
			g.leftOut = append(g.leftOut, quote(c.name)+": tells of people or their words, and was not copied")
			g.warnings = append(g.warnings, fmt.Sprintf("column %s may hold personal data: it was left out of the release's annotations", quote(c.name)))
		case c.personal():
			g.leftOut = append(g.leftOut, quote(c.name)+": tells of people or their words")
			g.warnings = append(g.warnings, fmt.Sprintf("column %s may hold personal data: take it out of the annotations before publishing", quote(c.name)))
		case c.nested:
			g.leftOut = append(g.leftOut, quote(c.name)+": some values are neither plain values nor lists of them")
		case c.filled == 0:
			g.leftOut = append(g.leftOut, quote(c.name)+": empty")
		default:
			g.leftOut = append(g.leftOut, quote(c.name)+": its values are no short labels that repeat")
		}
	}
}
