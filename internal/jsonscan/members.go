package jsonscan

import (
	"encoding/json"
	"iter"
	"strings"
)

// A Member is a key of an object and its value. Offsets are those of key and value in the text.
type Member struct {
	Key, Value string
	From, At   int
}

// Members gives the members of a JSON object, which must be valid.
func Members(text string) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := Skip(text, strings.IndexByte(text, '{')+1)
		for text[i] != '}' {
			from, stop := i, end(text, i)
			at := Skip(text, stop)
			key := String(text[from:stop])
			stop = end(text, at)
			if !yield(Member{key, text[at:stop], from, at}) {
				return
			}
			i = Skip(text, stop)
		}
	}
}

// Items gives the items of a JSON list, which must be valid, and where they start.
func Items(list string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := Skip(list, 1); list[i] != ']'; {
			stop := end(list, i)
			if !yield(i, list[i:stop]) {
				return
			}
			i = Skip(list, stop)
		}
	}
}

// Skip skips white space, commas and colons from i on.
func Skip(text string, i int) int {
	for strings.IndexByte(" \t\r\n,:", text[i]) >= 0 {
		i++
	}
	return i
}

// end gives the end of the value that starts at i, in the object or list that holds it.
func end(text string, i int) int {
	if open := text[i]; open != '"' && open != '[' && open != '{' {
		return i + strings.IndexAny(text[i:], ",]} \t\r\n")
	}
	// The value is valid, so it is enough to count brackets outside strings.
	for depth := 0; ; i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// String gives the text of a string with its quotes.
func String(quoted string) string {
	text := quoted[1 : len(quoted)-1]
	// Few have escapes, and the library takes its time.
	if strings.IndexByte(text, '\\') >= 0 {
		_ = json.Unmarshal([]byte(quoted), &text) // it is valid
	}
	return text
}
