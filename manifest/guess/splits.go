package guess

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// splitWords are the words that names of splits are made of.
var splitWords = set(`all batch calibration cv cross dev development eval evaluation extra final fold full gold hard heldout hidden held holdout in
	ho id iteration k kfold labeled labelled main ood out part pass phase pilot private public round sample seen set shard silver split subset
	test testing train training trn tst unlabeled unlabelled unseen val valid validate validation warmup wave week of no nr`)

// A splitLook says how far the name of a split looks like one.
type splitLook int

const (
	usualSplit splitLook = iota // train, fold_3, test_unseen
	oddSplit                    // other words of the dictionary, and single letters: news, A
	namedSplit                  // what may name somebody: anna, J_Smith, jkim545
)

// lookOfSplit judges the name of a split. A split is known by few words, so any other that is in no dictionary may name
// somebody. known is that of Options.
func lookOfSplit(name string, known func(word string) bool) splitLook {
	look, letters, others := usualSplit, 0, 0
	for _, word := range value.Words(name) {
		switch {
		case value.IsDigits(word), splitWords[word]:
		case len([]rune(word)) == 1:
			letters++
			look = max(look, oddSplit)
		case isGivenName(word), isFamily(word), known != nil && !known(word):
			return namedSplit
		default:
			others++
			look = max(look, oddSplit)
		}
	}
	if personalValue(name) != "" || letters > 0 && others > 0 { // J_Smith
		return namedSplit
	}
	return look
}

// looksOfSplits judges names of splits that stand together. One that is written as a name, beside usual ones in small
// letters, may name somebody: train, test, Jana.
func looksOfSplits(names []string, known func(word string) bool) []splitLook {
	looks, small := make([]splitLook, len(names)), false
	for i, name := range names {
		looks[i] = lookOfSplit(name, known)
		small = small || looks[i] == usualSplit && strings.Trim(name, value.Lower+value.Digits+"_") == "" &&
			strings.ContainsAny(name, value.Lower)
	}
	for i, name := range names {
		if small && looks[i] == oddSplit && surnameForm().MatchString(name) {
			looks[i] = namedSplit
		}
	}
	return looks
}

// judgeSplits says which of some names of splits may name somebody, and which are none of the usual ones.
func judgeSplits(names []string, known func(word string) bool) (named, odd []string) {
	for i, look := range looksOfSplits(names, known) {
		switch look {
		case namedSplit:
			named = append(named, names[i])
		case oddSplit:
			odd = append(odd, names[i])
		}
	}
	return named, odd
}

// refuseSplits leaves a column of splits out if a value of it may name somebody, unless it is one to keep. It says so,
// and does not repeat the value.
func (d *guesser) refuseSplits(c *surveyed) bool {
	keep := "--keep " + table.Quote(c.name) + " takes it as the split"
	named, _ := judgeSplits(c.values(), d.Known)
	if len(named) == 0 {
		return false
	}
	at := c.places[slices.IndexFunc(c.cells, func(cell []string) bool { return slices.Contains(cell, named[0]) })]
	if slices.Contains(d.Keep, c.name) {
		d.lookAt("column %s was taken for the split although the value at %s may name somebody, because --keep names it",
			table.Quote(c.name), at)
		return false
	}
	d.leaveLookAt(c, "it would be the split, but a value may name somebody; "+keep,
		fmt.Sprintf("would be the split, but the value at %s may name somebody (%s)", at, keep))
	return true
}

// lookAtSplits says which names of splits are none of the usual ones.
func (d *guesser) lookAtSplits(c *surveyed) {
	if _, odd := judgeSplits(c.values(), d.Known); len(odd) > 0 {
		d.lookAt("column %s was taken for the split, but %s is no usual name of one (train, dev, test, fold_1)",
			table.Quote(c.name), table.Quote(odd[0]))
	}
}

// NamedParts says of which splits or batches (what) the names may name somebody, one line each, which does not repeat
// the name. known is that of Options.
func NamedParts(what string, names []string, known func(word string) bool) (found []string) {
	for i, look := range looksOfSplits(names, known) {
		if look == namedSplit {
			found = append(found, fmt.Sprintf("the name of %s %d of %d (%d letters) may name somebody", what, i+1,
				len(names), utf8.RuneCountInString(names[i])))
		}
	}
	return found
}

// LooksOfSplits says of each of the names of splits or batches what to look at, as LooksOfValues does.
func LooksOfSplits(names []string, known func(word string) bool) []string {
	looks := make([]string, len(names))
	for i, look := range looksOfSplits(names, known) {
		looks[i] = map[splitLook]string{namedSplit: "may name somebody",
			oddSplit: "is no usual name of a split or batch"}[look]
	}
	return looks
}
