// Package language decides whether the text of an image is English, is not, or is too
// little to judge. Short, noisy text in capitals is what it was made for.
//
// It owns the dictionary, the lists of function words (both in data/) and the rule. A
// verdict depends on the words, the threshold and Fingerprint alone: no word list of the
// host, no model, no state. The rule, first match wins, tokens being the runs of two and
// more letters in the words of confidence 60 and more:
//
//	fewer than 8 letters or 2 words, or no token   passes, no_text
//	most letters are of another script             not_english, other_script
//	two and more function words of one other
//	language, more than English ones, and less
//	than .9 of the tokens in the dictionary        not_english, foreign_words
//	a large enough share of tokens in the
//	dictionary: the threshold, or .2 less where
//	English function words say so                  passes
//	at most 3 tokens, one of 3 and more letters
//	in the dictionary: the evidence is split       passes, short
//	less than .25 of the tokens in the dictionary  unreadable, low_dictionary_hit
//	otherwise                                      not_english, low_dictionary_hit
//
// # Limitations
//
// The outcome of a rejection is a label, no evidence of the cause: an English OCR model
// reads a foreign text as noise, and noise looks foreign. The function words cover 14
// languages in Latin script besides English. The dictionary is American. Texts of one to
// three words pass on thin evidence.
package language

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"rehydrate/manifest"
)

// A Word is one word that OCR read, with its confidence, 0..100.
type Word struct {
	Text       string
	Confidence float64
}

// Reasons of verdicts.
const (
	ReasonNoText       manifest.Reason = "no_text"            // passes: no text to judge
	ReasonShort        manifest.Reason = "short"              // passes: too short for split evidence to count
	ReasonOtherScript  manifest.Reason = "other_script"       // not English: most letters are not Latin
	ReasonForeignWords manifest.Reason = "foreign_words"      // not English: another language's function words
	ReasonLowHit       manifest.Reason = "low_dictionary_hit" // too few tokens are in the dictionary
)

// A Verdict is the decision on one text with the numbers that it rests on.
type Verdict struct {
	Outcome manifest.Outcome // NotEnglish, Unreadable, or "" when the text passes
	Reason  manifest.Reason  // "" when plain English passes

	Letters  int     // letters in words of two and more letters
	Words    int     // words of two and more letters
	Tokens   int     // runs of two and more letters; an apostrophe does not end a run
	Hit      float64 // share of the tokens that are in the dictionary; 0 without tokens
	English  int     // tokens that are function words of English and of no other language
	Foreign  int     // tokens that are function words of Language and not of English
	Language string  // the other language with most function words, ISO 639-1 or "tl"; "" when none has one
}

// The constants of the rule. Rows of measured figures are for 549 real memes and 88
// blank templates read by three-pass OCR.
const (
	// minConfidence: at 60 no blank template has text by the two bars below, at 50 six have.
	minConfidence = 60
	// minLetters and minWords: with 12 letters and 3 words 21 % of foreign memes would
	// pass as text-less, with these 7.7 %.
	minLetters, minWords = 8, 2
	// dominant function words say what language a text is in; one may be a name (LA).
	dominant = 2
	// certainHit is a share of dictionary words that no caption of testdata/foreign.txt
	// comes near (.6 is the highest), so that LA LA LAND stays English.
	certainHit = .9
	// ease is what the threshold is lowered by where English function words, easeWords
	// or more, are at least twice as many as those of any other language. It is for
	// English with slang, names and slips of the OCR. The foreign dev captions have one
	// at most, by chance.
	ease, easeWords = .2, 2
	// shortTokens: up to here one odd word decides the share of dictionary words. Then a
	// single dictionary word counts as evidence for English, but not one of two letters,
	// of which nearly all are in the dictionary.
	shortTokens, evidentLetters = 3, 3
	// unreadableHit is the share below which the text is taken for bad OCR rather than
	// for another language.
	unreadableHit = .25
)

// rules is the version of everything in this package that is not a list. Raise it with
// every change that can change a verdict.
const rules = 1

// Fingerprint names what makes the verdicts, apart from the threshold: verdicts of
// another fingerprint are out of date.
func Fingerprint() string {
	return fmt.Sprintf("language rules %d, dictionary %s, function words %s", rules, dictionaryDigest, functionWordsDigest)
}

// A Filter judges texts. It is safe for concurrent use.
type Filter struct {
	dictionary []string            // sorted
	languages  map[string][]string // of a function word: the languages that have it
}

// New unpacks the lists, which takes some 20 ms and 4 MB: make one Filter for a run.
// The error says that they are not the lists this package was built for.
func New() (*Filter, error) {
	dictionary, err := loadDictionary(englishList)
	if err != nil {
		return nil, fmt.Errorf("english filter: %w", err)
	}
	languages, err := loadFunctionWords(functionWordList)
	if err != nil {
		return nil, fmt.Errorf("english filter: %w", err)
	}
	return &Filter{dictionary: dictionary, languages: languages}, nil
}

// Judge decides on the text that the words make up, whatever their order. threshold is
// the share of dictionary words, 0..1, from which a text counts as English. It never
// fails; bytes that are not UTF-8 separate tokens.
func (f *Filter) Judge(words []Word, threshold float64) Verdict {
	v, counts := f.measure(words)
	if v.Letters < minLetters || v.Words < minWords || v.Tokens == 0 {
		v.Reason = ReasonNoText
		return v
	}
	if v.English >= easeWords && v.English >= 2*v.Foreign {
		threshold -= ease
	}
	switch {
	case 2*counts.latin < v.Letters:
		v.Outcome, v.Reason = manifest.NotEnglish, ReasonOtherScript
	case v.Foreign >= dominant && v.Foreign > v.English && v.Hit < certainHit:
		v.Outcome, v.Reason = manifest.NotEnglish, ReasonForeignWords
	case v.Hit >= threshold:
	case v.Tokens <= shortTokens && counts.evident > 0:
		v.Reason = ReasonShort
	case v.Hit < unreadableHit:
		v.Outcome, v.Reason = manifest.Unreadable, ReasonLowHit
	default:
		v.Outcome, v.Reason = manifest.NotEnglish, ReasonLowHit
	}
	return v
}

// counts are the numbers of a text that only the rule needs.
type counts struct {
	latin   int // of Verdict.Letters, those of Latin script
	evident int // tokens of evidentLetters and more that are in the dictionary
}

// measure fills in the numbers of the verdict.
func (f *Filter) measure(words []Word) (Verdict, counts) {
	var v Verdict
	var c counts
	hits, foreign := 0, map[string]int{}
	for _, w := range words {
		if !(w.Confidence >= minConfidence) { // NaN is no confidence
			continue
		}
		if all, latin := letters(w.Text); all >= 2 {
			v.Words++
			v.Letters += all
			c.latin += latin
		}
		for _, token := range tokens(w.Text) {
			v.Tokens++
			if _, found := slices.BinarySearch(f.dictionary, token); found {
				hits++
				if utf8.RuneCountInString(token) >= evidentLetters {
					c.evident++
				}
			}
			v.English += f.count(token, foreign)
		}
	}
	if v.Tokens > 0 {
		v.Hit = float64(hits) / float64(v.Tokens)
	}
	for code, n := range foreign {
		// The lower code where two have as many: the order of a map must not show.
		if n > v.Foreign || n == v.Foreign && code < v.Language {
			v.Foreign, v.Language = n, code
		}
	}
	return v, c
}

// count adds a function word to the numbers of its languages and returns 1 if it is
// English. A word that English shares (ME, NO) counts for none.
func (f *Filter) count(token string, foreign map[string]int) int {
	languages := f.languages[plain.Replace(token)]
	if slices.Contains(languages, english) {
		if len(languages) == 1 {
			return 1
		}
		return 0
	}
	for _, code := range languages {
		foreign[code]++
	}
	return 0
}

// letters counts the letters of a word, and those of Latin script among them.
func letters(s string) (all, latin int) {
	for _, r := range s {
		if unicode.IsLetter(r) {
			all++
			if unicode.Is(unicode.Latin, r) {
				latin++
			}
		}
	}
	return all, latin
}

// apostrophes are dropped, so that DON'T is the DONT of the dictionary.
var apostrophes = strings.NewReplacer("'", "", "\u2018", "", "\u2019", "", "`", "")

// tokens cuts a word into runs of two and more letters, upper case.
func tokens(s string) []string {
	runs := strings.FieldsFunc(strings.ToUpper(apostrophes.Replace(s)), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.DeleteFunc(runs, func(run string) bool {
		_, size := utf8.DecodeRuneInString(run)
		return size == len(run)
	})
}
