package endpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"rehydrate/internal/strictjson"
)

// What servers say of an answer beside it, each under names of their own, is found by what names and values mean, not
// by a list of places: a key that speaks of a refusal or of a cut, a reason that is one, a warning that something was
// left out. Nothing of it makes an answer good; it can only take away that it is.
var (
	refusalKey = regexp.MustCompile(`refus|block|filtered|reject`)
	cutKey     = regexp.MustCompile(`truncat|incomplete|partial|cutoff`)
	skippedKey = regexp.MustCompile(`^(?:is|was)?skipped$`)
	wholeKey   = regexp.MustCompile(`^(?:is)?(?:done|complete|completed|finished|final)$`) // false says that it is not
	reasonKey  = regexp.MustCompile(`reason|finish|stop|status|state|type|kind|outcome`)
	warningKey = regexp.MustCompile(`warn`)
	// lost finds a warning that a part of the question or the answer was not read or not sent; that of a parameter that
	// a server does not know is none.
	lost = regexp.MustCompile(`(?i)truncat|shorten|cut (?:off|short)|` + lossOf + `.*` + losing + `|` + losing +
		`.*` + lossOf)
)

const (
	lossOf = `(?:image|picture|photo|prompt|input|message|content|context|answer|output)`
	losing = `(?:drop|discard|omit|ignor|skip|remov|exceed|not (?:seen|read|support|us))`
)

// unsaid are values under which a key says nothing, in the folded form.
var unsaid = []string{"", "false", "no", "none", "null", "disabled", "auto", "unspecified", "blockreasonunspecified"}

// inside are the keys of what a model said, of what it was asked, and of numbers: none of them is about the answer.
var inside = []string{"content", "text", "reasoning", "reasoningcontent", "reasoningdetails", "thinking", "arguments",
	"prompt", "usage", "categories", "categoryscores", "categoryappliedinputtypes"}

// Marked returns what the JSON of an answer that somebody kept says of itself: OK where it says nothing, else Refused,
// Truncated or Failed, and why.
func Marked(body []byte) (Outcome, string) {
	v, err := strictjson.Decode(body)
	if err != nil {
		return Failed, "the answer cannot be read: " + err.Error()
	}
	return marked(v)
}

// marked returns what an answer, or a part of it, says of itself anywhere: Refused before Truncated before Failed, and
// OK where it says nothing. why is for people.
func marked(value any) (found Outcome, why string) {
	found = OK
	switch v := value.(type) {
	case []any:
		for _, of := range v {
			found, why = worse(found, why)(marked(of))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			key := folded(name)
			if slices.Contains(inside, key) {
				continue
			}
			found, why = worse(found, why)(keyMark(key, name, v[name]))
			found, why = worse(found, why)(marked(v[name]))
		}
	}
	return found, why
}

// worse chooses between what was found and what is found next.
func worse(found Outcome, why string) func(Outcome, string) (Outcome, string) {
	return func(next Outcome, reason string) (Outcome, string) {
		rank := []Outcome{OK, Failed, Truncated, Refused}
		if slices.Index(rank, next) > slices.Index(rank, found) {
			return next, reason
		}
		return found, why
	}
}

// keyMark returns what one field says of the answer.
func keyMark(key, name string, value any) (Outcome, string) {
	says := states(value)
	_, isNumber := value.(json.Number)
	_, isText := value.(string)
	_, isBool := value.(bool)
	isPlain := isText || isBool
	switch {
	case key == "refusal" && says, key == "filtered" && says, key == "blocked" && says:
		return Refused, fmt.Sprintf("the server says that the question or the answer was held back (%.40q)", name)
	case refusalKey.MatchString(key) && isPlain && says:
		return Refused, fmt.Sprintf("the server says that the question or the answer was held back (%.40q)", name)
	case cutKey.MatchString(key) && !isNumber && says, cutKey.MatchString(key) && value == json.Number("1"):
		if incomplete, reason := marked(value); incomplete == Refused {
			return Refused, reason
		}
		return Truncated, fmt.Sprintf("the server says that the question or the answer is cut (%.40q)", name)
	case wholeKey.MatchString(key) && value == false:
		return Truncated, fmt.Sprintf("the server says that the answer is not whole (%.40q)", name)
	case skippedKey.MatchString(key) && says:
		return Failed, fmt.Sprintf("the server says that it left something out (%.40q)", name)
	case warningKey.MatchString(key) && loses(value):
		return Truncated, fmt.Sprintf("the server warns that a part was left out (%.40q)", name)
	case reasonKey.MatchString(key) && isText:
		return reasonMark(name, value.(string))
	}
	return OK, ""
}

// reasonMark returns what a reason, a status or a type says of the answer. One that is not known says nothing: vLLM's
// stop_reason is the stop sequence.
func reasonMark(name, text string) (Outcome, string) {
	switch ended, _ := endOf(text); {
	case ended == Refused:
		return Refused, fmt.Sprintf("the answer ends for a reason that is a refusal (%.40q)", name)
	case ended == Truncated:
		return Truncated, fmt.Sprintf("the answer has as many tokens as were allowed (%.40q)", name)
	case slices.Contains(unfinished, strings.ToLower(strings.TrimSpace(text))):
		return Failed, fmt.Sprintf("the answer has the %.40s %.40q", name, text)
	}
	return OK, ""
}

// states reports whether a field says something: what says does, but for words that mean nothing of it.
func states(value any) bool {
	text, isText := value.(string)
	return says(value) && !(isText && slices.Contains(unsaid, folded(text)))
}

// loses reports whether a warning, in whichever form, says that a part was left out.
func loses(warning any) bool {
	switch v := warning.(type) {
	case string:
		return lost.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, loses)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), loses)
	}
	return false
}

// folded is a name without case and signs.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
