// Package language decides whether the text of an image is English, is not, or is too
// little to judge. Short, noisy text in capitals is what it was made for.
//
// It owns the dictionary, the n-gram model, the lists of function words (all in data/) and the rule. A verdict depends
// on the words, the threshold and Fingerprint alone: no word list of the host, no C library, no state. Tokens are the
// runs of two and more letters in the words of confidence 60 and more. The rule, first match wins:
//
//	fewer than 8 letters or 2 words, no token, or
//	words of fewer than 3 letters on average       passes, no_text
//	most letters are of another script             not_english, other_script
//	the votes are for English                      passes
//	at most 3 words, and the votes are split       passes, short
//	less than .25 of the tokens in the dictionary,
//	no function words of another language          unreadable, low_dictionary_hit
//	otherwise                                      not_english, with the strongest vote
//	                                               against: foreign_words,
//	                                               low_dictionary_hit, foreign_spelling
//
// Three votes are cast. The dictionary votes for English from a share of known tokens on, the threshold, and against
// below. The model adds up what the n-grams of each token say, and votes for or against. Function words vote for the
// side that has more of them, or not at all. The majority decides; in a tie of two votes, the model.
//
// # Limitations
//
// The outcome of a rejection is a label, not evidence of the cause: an English OCR model reads a foreign text as
// noise, and noise looks foreign. The function words cover 14 languages in Latin script besides English, the model
// learned from 27. The dictionary is American. Texts of one to three words are judged on thin evidence.
package language

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"rehydrate/internal/word"
	"rehydrate/manifest"
)

const (
	ReasonNoText          manifest.Reason = "no_text"            // passes: no text to judge
	ReasonShort           manifest.Reason = "short"              // passes: too short for split votes to count
	ReasonOtherScript     manifest.Reason = "other_script"       // not English: most letters are not Latin
	ReasonForeignWords    manifest.Reason = "foreign_words"      // not English: another language's function words
	ReasonLowHit          manifest.Reason = "low_dictionary_hit" // too few tokens are in the dictionary
	ReasonForeignSpelling manifest.Reason = "foreign_spelling"   // not English: the n-grams of another language
)

// A Vote is one judge's opinion of a text.
type Vote string

const (
	VoteEnglish Vote = "english"
	VoteOther   Vote = "other"
	VoteNone    Vote = "" // no opinion, or no text to vote on
)

// Votes are what each judge says.
type Votes struct {
	Dictionary    Vote `json:"dictionary"`
	Model         Vote `json:"model"`
	FunctionWords Vote `json:"function_words"`
}

// A Verdict is the decision on one text with the votes and the numbers that it rests on.
type Verdict struct {
	Outcome manifest.Outcome `json:"outcome"` // NotEnglish, Unreadable, or "" when the text passes
	Reason  manifest.Reason  `json:"reason"`  // "" when plain English passes

	Letters  int     `json:"letters"` // letters in words of two and more letters
	Words    int     `json:"words"`   // words of two and more letters
	Tokens   int     `json:"tokens"`  // runs of two and more letters; an apostrophe does not end a run
	Hit      float64 `json:"known"`   // share of the tokens that are in the dictionary; 0 without tokens
	Score    float64 `json:"score"`   // what the model says: the log-odds of English, added up over the tokens
	English  int     `json:"english"` // tokens that are function words of English and of no other language
	Foreign  int     `json:"foreign"` // tokens that are function words of Language and not of English
	Language string  `json:"other"`   // with most function words, ISO 639-1 or "tl"; "" when none has one

	Votes Votes `json:"votes"` // none is cast without a text
}

// The constants of the rule.
const (
	// minConfidence: at 60 no blank template of 88 has text by the two bars below, at 50 six have.
	minConfidence = 60
	// minLetters and minWords: with 12 letters and 3 words 21 % of foreign memes would
	// pass as text-less, with these 7.7 %.
	minLetters, minWords = 8, 2
	// wordLength is the least mean length of a text's words. What OCR reads into patterns,
	// EE OE EEE ON AN, has less (17 of 19 readings of 380 blank pictures that have text
	// by the bars above), captions to tune on have 3.0 and more.
	wordLength = 3
	// modelBar is the score from which the model votes for English. On the captions to tune on, the lowest English meme
	// has -.5 as written and the highest foreign one -2.7; pieces of two words overlap.
	modelBar = -1
	// shortWords: up to here one odd word decides the share of dictionary words.
	shortWords = 3
	// unreadableHit is the share below which the text is taken for bad OCR rather than for another language.
	unreadableHit = .25
)

// rules is the version of everything in this package that is neither a list nor the
// model. Raise it with every change that can change a verdict or a mask.
const rules = 2

// Fingerprint names what makes the verdicts and the masks, apart from the threshold:
// those of another fingerprint are out of date.
func Fingerprint() string {
	return fmt.Sprintf("language rules %d, dictionary %s, function words %s, n-gram model %s",
		rules, DictionaryDigest, functionWordsDigest, weightsDigest)
}

// A Filter judges texts. It is safe for concurrent use.
type Filter struct {
	dictionary []string            // sorted
	languages  map[string][]string // of a function word: the languages that have it
}

// Judge decides on the text that the words make up, whatever their order. threshold is the share of dictionary words,
// 0..1, from which the dictionary votes for English. It never fails; bytes that are not UTF-8 separate tokens.
func (f *Filter) Judge(words []word.Word, threshold float64) Verdict {
	v, withLetters, latin := f.measure(words)
	// No text before any vote: what OCR reads into a pattern would be voted on as a foreign language.
	if v.Letters < minLetters || v.Words < minWords || v.Tokens == 0 || v.Letters < wordLength*v.Words {
		v.Reason = ReasonNoText
		return v
	}
	v.Votes = v.cast(threshold)
	switch {
	case 2*latin < v.Letters:
		v.Outcome, v.Reason = manifest.NotEnglish, ReasonOtherScript
	case v.Votes.english():
	case withLetters <= shortWords && slices.Contains(v.Votes.all(), VoteEnglish):
		v.Reason = ReasonShort
	case v.Hit < unreadableHit && v.Votes.FunctionWords != VoteOther: // bad OCR has no function words of a language
		v.Outcome, v.Reason = manifest.Unreadable, ReasonLowHit
	default:
		v.Outcome, v.Reason = manifest.NotEnglish, v.Votes.against()
	}
	return v
}

// cast asks the three judges.
func (v Verdict) cast(threshold float64) Votes {
	// The dictionary and the model always have an opinion; function words may be lacking, or as many on both sides.
	votes := Votes{VoteOther, VoteOther, VoteNone}
	if v.Hit >= threshold {
		votes.Dictionary = VoteEnglish
	}
	if v.Score >= modelBar {
		votes.Model = VoteEnglish
	}
	if v.English > v.Foreign {
		votes.FunctionWords = VoteEnglish
	} else if v.Foreign > v.English {
		votes.FunctionWords = VoteOther
	}
	return votes
}

func (v Votes) all() []Vote { return []Vote{v.Dictionary, v.Model, v.FunctionWords} }

func (v Votes) english() bool {
	balance := 0
	for _, vote := range v.all() {
		balance += map[Vote]int{VoteEnglish: 1, VoteOther: -1}[vote]
	}
	// The model breaks a tie: it errs least of the three.
	return balance > 0 || balance == 0 && v.Model == VoteEnglish
}

// against is the reason for which a text is not English.
func (v Votes) against() manifest.Reason {
	switch {
	case v.FunctionWords == VoteOther:
		return ReasonForeignWords
	case v.Dictionary == VoteOther:
		return ReasonLowHit
	}
	return ReasonForeignSpelling
}

// measure fills in the numbers of the verdict. withLetters counts the words that have a letter, latin those of the
// verdict's letters that are of Latin script.
func (f *Filter) measure(words []word.Word) (v Verdict, withLetters, latin int) {
	hits, score, foreign := 0, 0, map[string]int{}
	for _, w := range words {
		if !(w.Confidence >= minConfidence) { // NaN does not count as a confidence
			continue
		}
		all, ofLatin := letters(w.Text)
		if all > 0 {
			withLetters++
		}
		if all >= 2 {
			v.Words++
			v.Letters += all
			latin += ofLatin
		}
		for _, token := range Tokens(w.Text) {
			token = f.unstretched(token)
			v.Tokens++
			if f.has(token) { // before Plain, for the dictionary has accents: CAFÉ
				hits++
			}
			token = Plain(token)
			score += tokenScore(token)
			languages := f.languages[token]
			switch {
			case !slices.Contains(languages, english):
				for _, code := range languages {
					foreign[code]++
				}
			case len(languages) == 1: // a word that English shares (ME, NO) is evidence for no language
				v.English++
			}
		}
	}
	v.Score = float64(score) / Scale
	v.Hit = float64(hits) / float64(max(1, v.Tokens))
	v.Foreign, v.Language = most(foreign)
	return v, withLetters, latin
}

// most returns the language with most function words and their number; the lower code where two have as many.
func most(foreign map[string]int) (n int, language string) {
	for _, code := range slices.Sorted(maps.Keys(foreign)) { // a map's own order would change from run to run
		if foreign[code] > n {
			n, language = foreign[code], code
		}
	}
	return n, language
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

// Tokens cuts a text into runs of two and more letters, upper case, without apostrophes.
func Tokens(s string) []string {
	runs := strings.FieldsFunc(strings.ToUpper(apostrophes.Replace(s)), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.DeleteFunc(runs, func(run string) bool {
		_, size := utf8.DecodeRuneInString(run)
		return size == len(run)
	})
}
