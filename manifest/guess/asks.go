package guess

import "slices"

// asksWho reports whether the words of a column's name ask somebody for a name, an id or a code, as forms do: What is
// your name? Enter your code. Which annotator are you? Wie heißt du?
func asksWho(words []string) bool {
	has := func(kind string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return peopleWords[kind][word] })
	}
	isPerson := func(word string) bool { return peopleWords["person"][person(word)] }
	switch {
	case has("identity") && (has("you") || peopleWords["request"][words[0]]):
		return true
	case len(words) > 1 && has("called"):
		return true
	}
	last := words[len(words)-1]
	return (words[0] == "which" || words[0] == "what") && peopleWords["you"][last] && slices.ContainsFunc(words,
		isPerson)
}
