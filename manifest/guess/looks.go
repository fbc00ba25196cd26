package guess

import (
	"slices"
	"strings"

	"rehydrate/manifest/value"
)

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
			looks[i] = "is in no dictionary"
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
	c := &surveyed{name: name}
	switch {
	case c.privateName() != "":
		return "may be about people"
	case c.ofGivers():
		return "may tell of people who were asked"
	case mayNameSomebody(name, known):
		return "may name somebody"
	}
	return LookOfText(strings.ReplaceAll(name, "_", " "), known)
}

// says gives what a text looks like by its form, by a given name in it or by a word like the name of an account.
func (j *accountJudge) says(text string) string {
	kind := NamesSomebody(text)
	if kind == "" && j.look(text) == mixedWord {
		kind = "the name of an account"
	}
	if kind == "" {
		return ""
	}
	return "looks like " + kind
}

// newAccountJudge judges labels that stand together. known is that of Options.
func newAccountJudge(labels []string, known func(word string) bool) *accountJudge {
	j := &accountJudge{known: known, shared: make(map[string]int)}
	for _, label := range labels {
		for _, word := range slices.Compact(slices.Sorted(slices.Values(value.Words(label)))) {
			j.shared[word]++
		}
	}
	return j
}
