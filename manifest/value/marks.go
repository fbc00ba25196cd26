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
