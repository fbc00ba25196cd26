package dedupe

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rehydrate/internal/word"
)

func TestTokens(t *testing.T) {
	sure := func(texts ...string) []word.Word {
		var words []word.Word
		for _, s := range texts {
			words = append(words, word.Word{Text: s, Confidence: 95})
		}
		return words
	}
	for _, test := range []struct {
		name  string
		words []word.Word
		want  []string
	}{
		{"none", nil, nil},
		{"no letters", sure("--", "'", "!?"), nil},
		{"case", sure("WHEN", "Straße"), []string{"when", "strasse"}},
		{"apostrophe", sure("DON'T", "don’t", "'quoted'", "dogs'", "rock'n'roll"),
			[]string{"don't", "don't", "quoted", "dogs", "rock'n'roll"}},
		{"two apostrophes", sure("a''b"), []string{"a", "b"}},
		{"runs", sure("one-two", "3.50$", "a_b"), []string{"one", "two", "3", "50", "a", "b"}},
		{"compatibility forms", sure("ﬁne", "ＷＩＤＥ", "x²"), []string{"fine", "wide", "x2"}},
		{"composed", sure("cafe\u0301"), []string{"café"}},
		{"confidence", []word.Word{{Text: "low", Confidence: 79.9}, {Text: "bar", Confidence: 80},
			{Text: "nan", Confidence: math.NaN()},
			{Text: "high", Confidence: 100}}, []string{"bar", "high"}},
		{"bad UTF-8", sure("go\xffod"), []string{"go", "od"}},
	} {
		if diff := cmp.Diff(test.want, Tokens(test.words)); diff != "" {
			t.Errorf("%s: Tokens(%v) differs (-want +got):\n%s", test.name, test.words, diff)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"", "Don’t PANIC", "ﬀ ǅ ß İ", "\xff'a'\x80", "''''a'''", "1st², ½"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tokens := Tokens([]word.Word{{Text: s, Confidence: 100}})
		for _, token := range tokens {
			// An apostrophe has a letter or a digit on each side.
			for _, run := range strings.Split(token, "'") {
				if run == "" || !utf8.ValidString(run) || tokenForm.FindString(run) != run {
					t.Errorf("Tokens(%q) has the token %q", s, token)
				}
			}
		}
		if got := Tokens([]word.Word{{Text: s, Confidence: 79}}); got != nil {
			t.Errorf("Tokens of %q at confidence 79 = %q, want none", s, got)
		}
	})
}

// levenshtein is the textbook table, over strings.
func levenshtein(a, b []string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j], rows[i][j-1], rows[i-1][j-1])
			}
		}
	}
	return rows[len(a)][len(b)]
}

// drawTexts draws a text and one that is like it after some random edits. Token i of
// the vocabulary collides in the signature with token i+64.
func drawTexts(t *rapid.T) (a, b []string) {
	token := rapid.SampledFrom([]string{"a", "b", "c", "it's", "the", "cat"})
	if rapid.Bool().Draw(t, "many words") {
		token = rapid.Map(rapid.IntRange(0, 199), func(n int) string { return "w" + string(rune('0'+n)) })
	}
	a = rapid.SliceOfN(token, 0, rapid.SampledFrom([]int{4, 12, 70}).Draw(t, "longest")).Draw(t, "a")
	b = append(b, a...)
	for range rapid.IntRange(0, 6).Draw(t, "edits") {
		at := rapid.IntRange(0, len(b)).Draw(t, "at")
		edit := rapid.IntRange(0, 2).Draw(t, "edit")
		switch {
		case edit == 0 || at == len(b):
			b = append(b[:at:at], append([]string{token.Draw(t, "new")}, b[at:]...)...)
		case edit == 1:
			b = append(b[:at:at], b[at+1:]...)
		default:
			b[at] = token.Draw(t, "other")
		}
	}
	return a, b
}

// TestWordDistance: the distances are those of the definitions, and neither signatures nor rare words lose texts that
// are near.
func TestWordDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTexts(t)
		limit := rapid.IntRange(0, 6).Draw(t, "limit")
		seen := rapid.SliceOfN(rapid.SampledFrom(append([]string{"x"}, a...)), 0, 80).Draw(t, "seen before")
		texts := newTexts([]Item{{Tokens: seen}, {Tokens: a}, {Tokens: b}}, limit)
		x, y := texts.of(1), texts.of(2)
		want, bag := levenshtein(a, b), bagApart(a, b)
		if word, got := wordDistance(x, y), bagDistance(x, y); word != want || got != bag || got > want {
			t.Errorf("%q and %q are %d words apart, as bags %d; want %d and %d", a, b, word, got, want, bag)
		}
		if got := texts.within(1, 2); got != (want <= limit) {
			t.Errorf("%q and %q are %d words apart, within %d: %v", a, b, want, limit, got)
		}
		rare, other := texts.rarest(nil, 1), texts.rarest(nil, 2)
		common := slices.ContainsFunc(rare, func(id uint32) bool { return slices.Contains(other, id) })
		if want <= limit && max(len(a), len(b)) > limit && !common {
			t.Errorf("%q and %q are %d words apart, within %d, and have none of their rarest words in common", a, b, want,
				limit)
		}
	})
}
