package value

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// lettersWithMarks are letters that Unicode does not take apart into one of a to z and a mark.
var lettersWithMarks = strings.NewReplacer("ß", "ss", "ø", "o", "Ø", "O", "ł", "l", "Ł", "L", "ı", "i", "đ", "d", "Đ",
	"D", "æ", "ae", "Æ", "AE", "œ", "oe", "Œ", "OE")

// WithoutMarks takes the marks off letters (é is e) and makes plain letters of wide ones.
func WithoutMarks(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return text
	}
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
	return lettersWithMarks.Replace(norm.NFC.String(text))
}

// Words gives the words of a column's name in lower case: author_id, Author ID, author-id and authorID have the same
// ones, and so have Prénom and prenom.
func Words(name string) []string {
	var words []string
	letters := []rune(WithoutMarks(name))
	is := func(i int, kind func(rune) bool) bool { return i >= 0 && i < len(letters) && kind(letters[i]) }
	from := 0
	for i := range len(letters) + 1 {
		inside := is(i, unicode.IsLetter) || is(i, unicode.IsDigit)
		begins := is(i, unicode.IsUpper) && (is(i-1, unicode.IsLower) || is(i-1, unicode.IsUpper) &&
			is(i+1, unicode.IsLower)) ||
			is(i, unicode.IsDigit) != is(i-1, unicode.IsDigit)
		if inside && !begins {
			continue
		}
		if i > from {
			words = append(words, strings.ToLower(string(letters[from:i])))
		}
		from = i
		if !inside {
			from++
		}
	}
	return words
}
