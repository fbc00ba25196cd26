package guess

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"rehydrate/manifest"
)

// Names in running text: behind a title, and of an account.
var (
	titleInText   = pattern(`(?:^|[^\pL])(?:(?:Mr|Mrs|Ms|Mx|Dr|Prof|Hr|Fr)\.|(?:Mr|Mrs|Ms|Dr|Prof|Professor|Herr|Frau|Monsieur|Madame|Señor|Señora)) \p{Lu}\p{Ll}`)
	accountInText = pattern(`(?:^|[\s(,;:])@[\pL\d_]{2,}|(?:^|[^\pL\d/])/?u/[\pL\d_-]{3,}`)
)

// personalProse says what in running text tells who somebody is, "" for nothing.
func personalProse(text string) string {
	plain := plainSigns(text)
	kind := personalValue(text)
	switch {
	case kind != "":
		return kind
	case accountInText().MatchString(plain):
		return "the name of an account"
	case titleInText().MatchString(plain):
		return "the name of a person"
	}
	for _, word := range strings.FieldsFunc(plain,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		first, _ := utf8.DecodeRuneInString(word)
		if !unicode.IsLower(first) && isGivenName(word) {
			return "the name of a person"
		}
	}
	return ""
}

// NamesSomebody says what in a short text, such as a title, tells who somebody is, "" for nothing.
func NamesSomebody(text string) string { return cmp.Or(personalProse(text), oneName(text)) }

// UnfitTexts says in which texts of a schema, its titles, codes, names and descriptions, somebody is named, one line
// each, which does not repeat the text. Those of categories to keep are not judged.
func UnfitTexts(s manifest.Schema, keep func(category string) bool) (found []string) {
	for _, c := range s.Categories {
		if keep(c.Name) {
			continue
		}
		note := func(of, what, kind string) {
			if kind != "" {
				found = append(found, fmt.Sprintf("the %s of %s holds %s", what, of, kind))
			}
		}
		category := fmt.Sprintf("category %q", c.Name)
		note(category, "title", NamesSomebody(c.Title))
		note(category, "description", personalProse(c.Description))
		for i, l := range c.Labels {
			of := fmt.Sprintf("label %d of %s", i+1, category)
			note(of, "description", personalProse(l.Description))
			note(of, "code", NamesSomebody(l.Code))
			if l.Name != l.Code {
				note(of, "name", NamesSomebody(l.Name))
			}
		}
	}
	return found
}
