package features

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"rehydrate/dedupe"
	"rehydrate/internal/word"
)

var (
	stops = regexp.MustCompile(`[.!?]+`)
	// masks are what language.MaskNames puts in place of names. They do not count as words.
	masks = regexp.MustCompile(`\[(?:user|email|phone)\]`)
)

// TextColumns names the numbers of Text, in its order:
//
//	words      tokens: runs of letters and digits with the apostrophes inside them, case-folded
//	sentences  parts that end at a run of . ! ? or at the end, and have a token
//	wps        words a sentence. Texts in capitals without stops count as one sentence, and OCR drops stops: it is rough
//	sixltr     tokens of more than six letters, in percent of all; digits and apostrophes are no letters
//
// and, with dictionaries, dic (tokens in any category, in percent) and a column for each category.
func TextColumns(dictionaries []*Dictionary) []string {
	columns := []string{"words", "sentences", "wps", "sixltr"}
	if len(dictionaries) > 0 {
		columns = append(columns, "dic")
	}
	for _, d := range dictionaries {
		for _, c := range d.Categories {
			columns = append(columns, d.Name+"."+c)
		}
	}
	return columns
}

// Text returns the numbers of a text. Those of each category are percent of all tokens, or tokens with counts. A text
// without a token has none: all are NaN.
func Text(text string, dictionaries []*Dictionary, counts bool) []float64 {
	var tokens []string
	sentences := 0
	// Normalised first: a single sign can stand for three stops.
	for _, part := range stops.Split(norm.NFKC.String(strings.ToValidUTF8(masks.ReplaceAllString(text, " "), " ")), -1) {
		found := dedupe.Tokens([]word.Word{{Text: part, Confidence: 100}})
		if len(found) > 0 {
			sentences++
		}
		tokens = append(tokens, found...)
	}
	n := float64(len(tokens))
	share := func(of int) float64 { return 100 * float64(of) / n }
	long := 0
	for _, t := range tokens {
		if letters(t) > 6 {
			long++
		}
	}
	list := []float64{n, float64(sentences), n / float64(sentences), share(long)}
	inAny := make([]bool, len(tokens))
	var categories []float64
	for _, d := range dictionaries {
		for _, count := range d.count(tokens, inAny) {
			if counts {
				categories = append(categories, float64(count))
			} else {
				categories = append(categories, share(count))
			}
		}
	}
	if len(dictionaries) > 0 {
		listed := 0
		for _, in := range inAny {
			if in {
				listed++
			}
		}
		list = append(append(list, share(listed)), categories...)
	}
	if len(tokens) == 0 {
		for i := range list {
			list[i] = math.NaN()
		}
	}
	return list
}

func letters(token string) (n int) {
	for _, r := range token {
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n
}
