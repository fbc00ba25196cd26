package guess

import "strings"

// british respells a British word as American English, which is what the dictionary has: humour becomes humor,
// organised organized.
var british = strings.NewReplacer("our", "or", "ise", "ize", "isa", "iza", "isi", "izi", "yse", "yze", "ysi", "yzi")

// Parts that make words of others: suicidality, nonhateful, selfharm.
var (
	wordStarts = strings.Fields("anti cross cyber hash hyper meta micro multi non over post pre self semi sub super " +
		"trans under up")
	wordEnds = strings.Fields("ality ation ful ification ism ist istic ity ization less list ly ness set speech tag")
)

// withField gives a dictionary with the words of known, their British spellings, words made of them, and the words of
// the field that name nobody; nil for nil. known may be given several times.
func withField(known func(word string) bool) func(word string) bool {
	if known == nil {
		return nil
	}
	return func(word string) bool {
		word = strings.ToLower(word)
		return known(word) || peopleWords["field"][word] || peopleWords["field"][singular(word)] ||
			known(british.Replace(word)) || isMade(word, known)
	}
}

// isMade reports whether a word is one of known with a part before or behind it that makes words.
func isMade(word string, known func(word string) bool) bool {
	const shortest = 4 // of the other word
	for _, start := range wordStarts {
		if stem, found := strings.CutPrefix(word, start); found && len(stem) >= shortest && known(stem) {
			return true
		}
	}
	for _, end := range wordEnds {
		if stem, found := strings.CutSuffix(word, end); found && len(stem) >= shortest && known(stem) {
			return true
		}
	}
	return false
}
