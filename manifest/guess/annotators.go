package guess

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A sheet with a column for each annotator has the annotators' names as the names of its columns. No list has all names
// of people, so these columns are known by what they share: the same labels.

// A labelGroup is columns that have the same labels.
type labelGroup struct {
	columns []*surveyed
	counts  map[string]int // of the cells of all, by label
	flags   bool           // the labels are yes and no, which columns of different meanings share
	// The columns by what their names are.
	named    []*surveyed // of a person, by a given name, a family name of several, or what a person is reached by
	roles    []*surveyed // otherwise about people: annotator_1
	unknown  []*surveyed // with a word that is in no dictionary
	namelike []*surveyed // a family name, and words that are given names as well: Grace; beside a family name also King
	families []*surveyed // words that are family names as well, where no other family name is: King, White
	words    []*surveyed // other words
	alike    bool        // all of the names have a word in common
}

// groupLabels finds the columns that have the same labels, also of those whose names are about people.
func (d *guesser) groupLabels() {
	var groups []*labelGroup
	for _, c := range d.columns {
		of := d.countLabels(c)
		if of == nil {
			continue
		}
		flags := c.flags()
		i := slices.IndexFunc(groups, func(g *labelGroup) bool { return g.flags == flags && haveSameLabels(of, g.counts) })
		if i < 0 {
			groups, i = append(groups, &labelGroup{flags: flags, counts: make(map[string]int)}), len(groups)
		}
		groups[i].columns = append(groups[i].columns, c)
		for label, n := range of {
			groups[i].counts[label] += n
		}
	}
	for _, g := range groups {
		if len(g.columns) > 1 {
			d.sortNames(g)
			d.groups = append(d.groups, g)
		}
	}
}

// countLabels counts the cells that have each of the labels of a column, by the label as columns share it; nil where
// the column can be no category, whatever its name.
func (d *guesser) countLabels(c *surveyed) map[string]int {
	if c.used || !c.usable() || !c.shaped() || c.all(formPost) || lookLikeNames(c.values(), d.Known) != "" {
		return nil
	}
	sign := d.signOf(c)
	if d.Many || c.labels(sign) == nil {
		sign = ""
	}
	if c.labels(sign) == nil {
		return nil
	}
	counts := make(map[string]int)
	for i, cell := range c.cells {
		if sign != "" && !c.lists {
			cell = strings.Split(cell[0], sign)
		}
		for _, label := range cell {
			counts[SharedLabel(label)] += c.rows[i]
		}
	}
	return counts
}

// SharedLabel gives a label as it is the same in all columns, by the rules of sameLabel.
func SharedLabel(text string) string {
	text = strings.TrimSpace(text)
	if n, isNumber := value.Number(text); isNumber && !isCode(text) {
		return strconv.FormatFloat(n+0, 'g', -1, 64) // -0 is 0
	}
	return value.Fold(plainSigns(text))
}

// haveSameLabels reports whether two columns share two labels at least, and all but rare ones: at most a tenth of the
// answers of each are labels that the other lacks, for not every annotator gives every label. Of labels in words one
// column may lack any that the other has; a scale in numbers is another where it is longer.
func haveSameLabels(a, b map[string]int) bool {
	mostOf := func(of, other map[string]int) (shared int, most, all bool) {
		answers, both, words := 0, 0, false
		for label, n := range of {
			_, isNumber := value.Number(label)
			words = words || !isNumber
			answers += n
			if other[label] > 0 {
				shared, both = shared+1, both+n
			}
		}
		return shared, 10*both >= 9*answers, words && shared == len(of)
	}
	shared, most, all := mostOf(a, b)
	_, mostToo, allToo := mostOf(b, a)
	return shared > 1 && (most && mostToo || all || allToo)
}

// sortNames sorts the columns of a group by their names. Words that all of the names have (label_, tone_) say nothing.
// A family name alone may stand for anything; beside another, also one that is a word (King), it is a person's.
func (d *guesser) sortNames(g *labelGroup) {
	inAll := func(word string) bool {
		return !slices.ContainsFunc(g.columns, func(c *surveyed) bool {
			return !slices.Contains(value.Words(c.name),
				word)
		})
	}
	g.alike = slices.ContainsFunc(value.Words(g.columns[0].name), inAll)
	var families []*surveyed // called by a family name that is no other word
	for _, c := range g.columns {
		words := slices.DeleteFunc(value.Words(c.name), inAll)
		isName := slices.ContainsFunc(words, func(word string) bool { return peopleWords["namelike"][word] })
		isWord := slices.ContainsFunc(words, isWordToo)
		switch {
		case slices.ContainsFunc(words, isGivenName), personalName(c.name) != "":
			g.named = append(g.named, c)
		case c.privateName() != "":
			g.roles = append(g.roles, c)
		case !slices.ContainsFunc(words, isOther):
		case slices.ContainsFunc(words, isFamily):
			families = append(families, c)
		case slices.ContainsFunc(words, func(word string) bool { return isUnknown(word, 2, d.Known) }):
			g.unknown = append(g.unknown, c)
		case isName:
			g.namelike = append(g.namelike, c)
		case isWord:
			g.families = append(g.families, c)
		default:
			g.words = append(g.words, c)
		}
	}
	switch {
	case len(families) == 0:
	case len(families)+len(g.families) > 1:
		g.named = append(g.named, families...)
		g.namelike, g.families = append(g.namelike, g.families...), nil
	default:
		g.namelike = append(g.namelike, families...)
	}
}

// isWordToo reports whether a family name is a word that may be the name of a label.
func isWordToo(word string) bool { return peopleWords["wordname"][word] }

// isOther reports whether a word in the name of a column is none for labels (final, sentiment) and none of the field.
func isOther(word string) bool {
	return !slices.ContainsFunc([]string{word, singular(word)},
		func(word string) bool { return peopleWords["label"][word] || peopleWords["field"][word] })
}

// isUnknown reports whether a word of so many letters at least is in no dictionary. known is that of Options.
func isUnknown(word string, least int, known func(word string) bool) bool {
	return known != nil && utf8.RuneCountInString(word) >= least && !value.IsDigits(word) && !known(word)
}

// unknownWord gives the first word of a name that is in no dictionary, "" for none.
func unknownWord(name string, known func(word string) bool) string {
	words := value.Words(name)
	i := slices.IndexFunc(words, func(word string) bool { return isStrange(word, 3, known) })
	if i < 0 {
		return ""
	}
	return words[i]
}

// people lists the columns that were taken for annotators', in the order of the file. Where one is called after a
// person, all are but those with words for labels; so are they where half of the names are no words. Columns of yes and
// no have nothing else in common: of them those that are no words follow one that is called after a person, and the
// others where both together are half. Words that are names as well are words beside others: joy, hope, anger.
func (g *labelGroup) people() []*surveyed {
	rest := slices.Concat(g.unknown, g.namelike, g.families, g.words)
	named, unknown, odd, all := len(g.named), len(g.unknown), len(g.unknown)+len(g.namelike), len(g.named)+len(rest)
	switch {
	case g.flags && named > 0 && 2*(named+odd) < all:
		rest = g.unknown
	case g.flags && named == 0, named == 0 && unknown == 0 && odd < all, named == 0 && 2*unknown < all && 2*odd <= all:
		rest = nil
	}
	people := slices.Concat(g.named, g.roles, rest)
	slices.SortFunc(people, func(a, b *surveyed) int { return a.place - b.place })
	return people
}

// answers reports whether the columns hold answers, and not who gave some: one is not about people by its name, they
// are words or yes and no, or small numbers in columns of one name.
func (g *labelGroup) answers() bool {
	return g.flags || slices.ContainsFunc(g.columns, func(c *surveyed) bool {
		return c.privateName() == "" || c.ordinary || g.alike && c.all(formInteger)
	})
}

// leaveAnnotators leaves out the columns that were taken for annotators', but those that --keep names. It asks about
// others that have the same labels.
func (d *guesser) leaveAnnotators() {
	for _, g := range d.groups {
		var left []string
		for _, c := range g.people() {
			switch {
			case c.used || !g.answers():
			case !slices.Contains(d.Keep, c.name):
				d.leave(c, g.whyLeft(c)+"; --keep "+table.Quote(c.name)+" publishes it")
				left = append(left, c.name)
			case c.private() == "":
				d.again = append(d.again, c)
			}
		}
		switch {
		case len(left) > 1:
			d.annotators = append(d.annotators, left)
			d.lookAt("columns %s have the same labels, and were taken for the answers of annotators: they were left "+
				"out of the release's annotations", manifest.QuotedList(left))
		case len(left) > 0:
			d.lookAt("column %s has the labels of other columns, and was taken for the answers of an annotator: it was "+
				"left out of the release's annotations", table.Quote(left[0]))
		}
		d.askOfAnnotators(g)
	}
}

// askOfAnnotators asks about the other columns of a group. Those whose names are words for labels need no question, nor
// do columns of yes and no but beside one that is called after a person, or where all may be.
func (d *guesser) askOfAnnotators(g *labelGroup) {
	asks := func(c *surveyed) bool { return !c.used && !c.unfit() && !slices.Contains(d.Keep, c.name) }
	rest := slices.DeleteFunc(slices.Clone(g.columns), func(c *surveyed) bool { return !asks(c) })
	mayBe := len(g.named) > 0 || len(g.namelike)+len(g.families) > 1 && len(g.words) == 0
	if len(rest) > 1 && (!g.flags || mayBe) &&
		slices.ContainsFunc(slices.Concat(g.unknown, g.namelike, g.families, g.words), asks) {
		d.lookAt("columns %s have the same labels: are they the answers of annotators? Their names are published",
			manifest.QuotedList(names(rest)))
	}
}

// whyLeft says why a column of the group was taken for an annotator's, to go on from the column.
func (g *labelGroup) whyLeft(c *surveyed) string {
	if slices.Contains(g.roles, c) {
		return "its name is about people, and its labels are those of other columns"
	}
	return "its labels are those of other columns, and its name may be a person's"
}

// surnameForm is a word or two as names are written: Okafor, Van Dyk.
var surnameForm = pattern(`^\p{Lu}[\p{Ll}'’-]+(?:[ -]\p{Lu}[\p{Ll}'’]+)?$`)

// firstSurname gives the place of the first value that is written as a name and is in no dictionary, where most of the
// values are; else the zero place.
func (d *guesser) firstSurname(c *surveyed) (first place) {
	names := 0
	for i, cell := range c.cells {
		for _, text := range cell {
			if !surnameForm().MatchString(text) || unknownWord(text, d.Known) == "" {
				continue
			}
			names++
			if names == 1 {
				first = c.places[i]
			}
		}
	}
	if names < 2 || 2*names <= len(c.values()) {
		return place{}
	}
	return first
}

// lookAtNames asks about the names of categories and columns that may be somebody's, or have a word that is in no
// dictionary.
func (d *guesser) lookAtNames() {
	var odd []string
	for _, g := range d.guesses {
		if g.Category == nil && g.Passed == nil {
			continue
		}
		what := "was taken for labels"
		if g.Passed != nil {
			what = "passes through"
		}
		for _, name := range g.names() {
			if mayNameSomebody(name, d.Known) {
				d.lookAt("column %s has a name that may be somebody's: it %s", table.Quote(name), what)
			}
		}
		if unknownWord(g.Column, d.Known) != "" {
			odd = append(odd, g.Column)
		}
	}
	if len(odd) > 0 {
		d.lookAt("names of columns that are published, with words that this program does not know (is one a person's?): %s",
			manifest.QuotedList(odd))
	}
}

func names(columns []*surveyed) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}
