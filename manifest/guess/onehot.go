package guess

import (
	"fmt"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// fewestOneHot is how many columns of yes or no with a common prefix are taken for one category.
const fewestOneHot = 5

// partsNames are the signs between the words of a column's name.
const partsNames = "_.-/: "

// asking are first words of names of columns of yes or no that say different things: is_video, has_text.
var asking = set("is are was were has have had can could may should will did does do allow allows contains no not")

// guessOneHot takes columns of yes or no with a common prefix for one category of several labels, which are what stands
// behind the prefix. Where as many others with the prefix have fractions, as probabilities do, all are numbers.
func (d *guesser) guessOneHot() {
	if d.Many { // a row has one label there
		return
	}
	var prefixes []string
	groups, fractions := make(map[string][]*surveyed), make(map[string]int)
	for _, c := range d.columns {
		first, _, found := cutName(c.name)
		if !found || asking[value.Fold(first)] {
			continue
		}
		if c.fractional() {
			fractions[first]++
		}
		if !d.oneOfHot(c) {
			continue
		}
		if groups[first] == nil {
			prefixes = append(prefixes, first)
		}
		groups[first] = append(groups[first], c)
	}
	for _, first := range prefixes {
		columns := groups[first]
		switch {
		case fractions[first] >= max(len(columns), 2):
			for _, c := range columns {
				c.measured = true
			}
		case len(columns) >= fewestOneHot:
			d.takeOneHot(columns)
		}
	}
}

// fractional reports whether the column has numbers some of which are not whole.
func (c *surveyed) fractional() bool {
	return !c.odd && !c.lists && c.all(formNumber) && !c.all(formInteger)
}

// cutName parts the first word of a name from the others; of a path into a nested record all but its last part.
func cutName(name string) (first, rest string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 || strings.Contains(name, " ") {
		i = strings.IndexAny(name, partsNames)
	}
	if i <= 0 {
		return "", "", false
	}
	rest = strings.TrimLeft(name[i:], partsNames)
	return name[:i], rest, rest != ""
}

// oneOfHot reports whether a column can be that of one label: it says yes or no in each row.
func (d *guesser) oneOfHot(c *surveyed) bool {
	if !c.usable() || c.used || c.unfit() || c.empty || c.odd || c.lists || c.filled == 0 ||
		slices.Contains(d.Keep, c.name) {
		return false
	}
	return !slices.ContainsFunc(c.values(), func(text string) bool { _, ok := value.Flag(text); return !ok })
}

// takeOneHot takes columns for a category, if what stands behind their prefix can be labels.
func (d *guesser) takeOneHot(columns []*surveyed) {
	prefix := commonPrefix(columns)
	category := &manifest.Category{Kind: manifest.Multi, Title: strings.TrimRight(prefix, partsNames)}
	var names []string
	numbered, raters := true, make(map[string]bool)
	for _, c := range columns {
		code := strings.TrimSpace(c.name[len(prefix):])
		same := func(l manifest.Label) bool { return sameLabel(l.Code, code) }
		if notLabel(code, manifest.Separators()[0]) != "" || slices.ContainsFunc(category.Labels, same) {
			return
		}
		numbered = numbered && value.IsDigits(code)
		raters[raterOf(code)] = true
		category.Labels = append(category.Labels, manifest.Label{Code: code, Name: code})
		names = append(names, c.name)
	}
	last := category.Title[strings.LastIndexAny(category.Title, partsNames)+1:]
	numbered = numbered || len(raters) == 1 && !raters[""]
	if numbered || asking[value.Fold(last)] || !value.IsLine(category.Title, manifest.MaxLabelText) ||
		lookLikeNames(codes(category.Labels), d.Known) != "" {
		return
	}
	title := category.Title
	if slug(title) == manifest.FieldSubreddit.String() { // which has a column of its own
		title += "_label"
	}
	category.Name = d.name(title, "_label")
	for _, c := range columns {
		c.used = true
	}
	d.lookAt("%d columns of yes or no, from %s to %s, were taken for one category, %s, whose labels are what stands "+
		"behind %s: "+
		"--keep COLUMN keeps one apart", len(names), table.Quote(names[0]), table.Quote(names[len(names)-1]),
		category.Name, table.Quote(prefix))
	d.take(columnGuess{Name: category.Name, Column: names[0], OneHot: names, Category: category,
		Why: fmt.Sprintf("%d columns of yes or no, to %s", len(names), table.Quote(names[len(names)-1]))})
}

// raterForm is a number behind a letter or word for somebody who gives labels: a1, rater2. Labels are counted in
// capitals.
var raterForm = pattern(`^([a-z]+)[0-9]+$`)

// raterOf gives that letter or word of what could be a label, and counts those who voted on one label; "" for none.
func raterOf(code string) string {
	found := raterForm().FindStringSubmatch(code)
	if found == nil || len(found[1]) > 1 && !peopleWords["person"][found[1]] && !peopleWords["weak"][found[1]] {
		return ""
	}
	return found[1]
}

// commonPrefix is what the names of columns begin with, up to a sign between words.
func commonPrefix(columns []*surveyed) string {
	prefix := columns[0].name
	for _, c := range columns[1:] {
		for !strings.HasPrefix(c.name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix[:strings.LastIndexAny(prefix, partsNames)+1]
}
