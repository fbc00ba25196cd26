package language

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaskVersion numbers the rules of MaskNames: also raise it with every change that can change a mask. What was masked
// under another one has to be read again, for the text as it was is not kept.
const MaskVersion = 1

// MaskNames puts [user], [email] and [phone] in place of what leads to a person: u/name, "u/ name" and @name; e-mail
// addresses; telephone numbers with a country code, in the forms of the United States, or after a word such as "call".
// r/subreddit, hashtags, "@ home", prices, years, scores, dates and times stay. lines are the words of a text, as OCR
// divides them; they are left as they are, and masking what is masked changes nothing. n is how many names were masked.
//
// masked has the shape of lines, so that word i is still the one of box i. Where a name was read as several words of a
// line, the first of them has the mask and the others are "": drop those.
func MaskNames(lines [][]string) (masked [][]string, n int) {
	for _, line := range lines {
		words := slices.Clone(line)
		// Repeated, because a mask can separate a name from its neighbours. It ends: masks match no rule.
		for again := true; again; {
			again = false
			for _, r := range maskRules {
				for r.maskOne(words) {
					n++
					again = true
				}
			}
		}
		masked = append(masked, words)
	}
	return masked, n
}

// IsMask reports whether a word stands in place of what was masked, with what punctuation it had: it is a word of no
// language.
func IsMask(word string) bool {
	return slices.ContainsFunc(maskRules, func(r maskRule) bool { return strings.Contains(word, r.mask) })
}

// A maskRule finds one kind of name in a line whose words are joined by spaces.
type maskRule struct {
	mask   string // matches no rule
	find   *regexp.Regexp
	accept func(before, match, after string) bool // has the last word; nil accepts
}

// name is a Reddit name, or one of a service that takes other letters, too.
const name = `[\p{L}\p{N}_-]`

// maskRules are applied in this order: an address holds what looks like @name. No mask
// is more than three bytes longer than what it stands for.
var maskRules = []maskRule{
	{"[email]", regexp.MustCompile(`@?[\p{L}\p{N}._%+-]*[\p{L}\p{N}][._%+-]*@\p{L}[\p{L}\p{N}-]+` +
		`(?:\.[\p{L}\p{N}-]+)*`), nil},
	// As OCR divides it; only before endings that are common, because of "see @jo.smith".
	{"[email]", regexp.MustCompile(`(?i)[\p{L}\p{N}._%+-]*[\p{L}\p{N}] ?@ ?[\p{L}\p{N}][\p{L}\p{N}.-]*\.(?:` +
		`com|net|org|edu|gov|info|io|me|co|uk|us|ca|au|in|de|fr|es|it|nl|br|mx|ru|pl|se)\b`), nil},
	{"[user]", regexp.MustCompile(`(?i)(?:/u(?:ser)?/|u/) ?` + name + `{3,}`), startsName},
	{"[user]", regexp.MustCompile(`@` + name + `(?:[\p{L}\p{N}_.-]*` + name + `)`), namesSomebody},
	{"[phone]", regexp.MustCompile(`(?:\+ ?[1-9]|\b00(?:[2-9]\d|1[.-]\d))(?:[ .()/-]{0,2}\d){7,14}`), countryCode},
	{"[phone]", regexp.MustCompile(`(?:\b1[ .-]?)?(?:\(\d{3}\) ?|\b\d{3}[ .-])\d{3}[ .-]\d{4}\b|\b1?[2-9]\d{9}\b`),
		standsAlone},
	{"[phone]", regexp.MustCompile(`\(?\d(?:[ .()/-]{0,2}\d){6,14}`), afterCall},
}

// startsName refuses u/ at the end of another word: you/them.
func startsName(before, match, after string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return match[0] == '/' || !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-/", r))
}

// namesSomebody refuses @5pm, @2nd and @100.
func namesSomebody(before, match, after string) bool {
	r, _ := utf8.DecodeRuneInString(match[1:])
	if !unicode.IsDigit(r) {
		return true
	}
	letters := 0
	for _, r := range match {
		if unicode.IsLetter(r) || r == '_' {
			letters++
		}
	}
	return letters >= 3
}

// countryCode wants ten digits where nothing divides them, +10000000 being points, and refuses the dots of thousands.
func countryCode(before, match, after string) bool {
	return standsAlone(before, match, after) && !thousands.MatchString(match) &&
		(strings.ContainsAny(match, " .()/-") || len(match) > 10)
}

var thousands = regexp.MustCompile(`^\+ ?\d{1,3}(?:\.\d{3})+$`)

// standsAlone refuses a part of a longer number, a price and a share.
func standsAlone(before, match, after string) bool {
	return !touchesBefore.MatchString(before) && !touchesAfter.MatchString(after)
}

var (
	touchesBefore = regexp.MustCompile(`(?:\d[.,:-]?|[$€£¥#] ?)$`)
	touchesAfter  = regexp.MustCompile(`^(?:[.,:-]?\d| ?[%$€£¥])`)
)

// afterCall takes shorter numbers, and those of other countries, where the words before
// say what they are. Dates are refused.
func afterCall(before, match, after string) bool {
	return call.MatchString(before) && standsAlone("", match, after) && !date.MatchString(match)
}

var (
	call = regexp.MustCompile(`(?i)(?:^|[^\p{L}\[])(?:call|dial|text|phone|tel|cell|mobile|fax|whatsapp)\b\W{0,3}` +
		`(?:\b(?:me|us|him|her|at|on|now|number|no)\b\W{1,3}){0,3}$`)
	date = regexp.MustCompile(`^(?:\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})$`)
)

// maskOne masks the first match of the rule in the words of a line, in place, and reports whether there was one.
func (r maskRule) maskOne(words []string) bool {
	var line strings.Builder
	var index, starts []int // of the words that are not ""
	for i, w := range words {
		if w == "" {
			continue
		}
		if len(index) > 0 {
			line.WriteByte(' ')
		}
		index, starts = append(index, i), append(starts, line.Len())
		line.WriteString(w)
	}
	from, to, found := r.first(line.String())
	if !found {
		return false
	}
	wordAt := func(at int) int { return sort.SearchInts(starts, at+1) - 1 } // the last that starts by then
	first, last := wordAt(from), wordAt(to-1)
	end := starts[last] + len(words[index[last]])
	words[index[first]] = line.String()[starts[first]:from] + r.mask + line.String()[to:max(to, end)]
	for _, i := range index[first+1 : last+1] {
		words[i] = ""
	}
	return true
}

// first returns where the first match that is accepted lies.
func (r maskRule) first(line string) (from, to int, found bool) {
	for start := 0; start < len(line); {
		loc := r.find.FindStringIndex(line[start:])
		if loc == nil {
			return 0, 0, false
		}
		from, to = start+loc[0], start+loc[1]
		if r.accept == nil || r.accept(line[:from], line[from:to], line[to:]) {
			return from, to, true
		}
		start = from + 1
	}
	return 0, 0, false
}
