package guess

import (
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/value"
)

// NoWord is what LooksOfValues says of a value that looks like nothing else, but is in no dictionary.
const NoWord = "is no word that this program knows: is it a name?"

// LooksOfValues says of each of the values of a column or of a category what it may tell of somebody, to go on from the
// value: "looks like the name of an account"; "" for nothing. It suspects more than Files leaves out, for a person who
// reads the list. known is that of Options.
func LooksOfValues(values []string, known func(word string) bool) []string {
	j, looks, unknown := newAccountJudge(values, known), make([]string, len(values)), 0
	for i, text := range values {
		looks[i] = j.says(text)
		if j.look(text) != likeLabel {
			unknown++
		}
	}
	for i, text := range values {
		isWord := strings.IndexFunc(text, betweenAccounts) < 0
		// else they are in another language
		if looks[i] == "" && isWord && 2*unknown <= len(values) && j.look(text) == noWord {
			looks[i] = NoWord
		}
	}
	return looks
}

// LookOfText says the same of a running text, such as a title.
func LookOfText(text string, known func(word string) bool) string {
	return newAccountJudge(nil, known).says(text)
}

// LookOfName says the same of the name of a column or category.
func LookOfName(name string, known func(word string) bool) string {
	known = withField(known)
	c := &surveyed{name: name}
	switch {
	case c.privateName() != "":
		return "may be about people"
	case c.ofGivers(), c.mayBeOfGivers():
		return "may tell of people who were asked"
	case mayNameSomebody(name, known):
		return "may name somebody"
	}
	if look := LookOfText(strings.ReplaceAll(name, "_", " "), known); look != "" || unknownWord(name, known) == "" {
		return look
	}
	return "may be a person's name: this program does not know all its words"
}

// LookOfLabels says of a category of a schema that it may hold the answers of an annotator: its labels are those of
// others, and its name is not of words for labels alone. It says so as well where most labels are no words. "" is for
// nothing. known is that of Options.
func LookOfLabels(c manifest.Category, s manifest.Schema, known func(word string) bool) string {
	var same []string
	for _, other := range s.Categories {
		if other.Name != c.Name && sameCodes(c, other) {
			same = append(same, other.Name)
		}
	}
	if same != nil && slices.ContainsFunc(value.Words(c.Name), isOther) {
		return "has the labels of " + manifest.List(same) + ": are they the answers of annotators?"
	}
	j, unknown := newAccountJudge(codes(c.Labels), known), 0
	for _, l := range c.Labels {
		if j.look(l.Code) != likeLabel {
			unknown++
		}
	}
	if unknown > 1 && 2*unknown > len(c.Labels) {
		return "has labels that are mostly no words that this program knows: are they names?"
	}
	return ""
}

// sameCodes reports whether two categories have the same labels, as columns have them; what is yes and no is said of
// different things.
func sameCodes(a, b manifest.Category) bool {
	flags := true
	count := func(c manifest.Category) map[string]int {
		counts := make(map[string]int)
		for _, l := range c.Labels {
			_, isFlag := value.YesNo(l.Code)
			flags = flags && isFlag
			counts[SharedLabel(l.Code)] = 1
		}
		return counts
	}
	same := haveSameLabels(count(a), count(b))
	return same && !flags
}

// says gives what a text looks like by its form, by a name or the initials of one in it, or by a word like the name of
// an account.
func (j *accountJudge) says(text string) string {
	kind := NamesSomebody(text)
	switch {
	case kind != "":
		return "looks like " + kind
	case j.look(text) == mixedWord && isIDLike(text):
		return "looks like an id, or the name of an account"
	case j.look(text) == mixedWord:
		return "looks like the name of an account"
	case mayNamePerson(text):
		return "may name somebody"
	}
	return ""
}

// newAccountJudge judges labels that stand together. known is that of Options.
func newAccountJudge(labels []string, known func(word string) bool) *accountJudge {
	j := &accountJudge{known: withField(known), shared: make(map[string]int), coded: areCoded(labels)}
	for _, label := range labels {
		for _, word := range slices.Compact(slices.Sorted(slices.Values(value.Words(label)))) {
			j.shared[word]++
		}
	}
	return j
}
