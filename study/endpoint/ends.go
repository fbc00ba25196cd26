package endpoint

import (
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/value"
)

// Keys, in the folded form, that say how an answer ended. Of their words those of whole answers are known: any other
// says that the answer may not be whole.
var (
	endReasons = key(`(?:finish|stop|done|end|completion|termination)reason$|^stoptype$`)
	endStates  = key(`^(?:response|answer|completion|generation|message|choice|output|result|task|run|job|request|` +
		`finish)?(?:status|state)$`)
	// ofAnswer are the keys of objects whose states are those of the answer. Those of a cache, a tool or
	// the caller's metadata are not.
	ofAnswer = key(`^(?:choices?|messages?|results?|outputs?|alternatives|response|answer|completion|generation|stats)$`)
	// endPrefix stands before the words of enumerations: FINISH_REASON_STOP, ALTERNATIVE_STATUS_FINAL.
	endPrefix = regexp.MustCompile(`(?i)^(?:[a-z]+_)?(?:reason|status|state)_`)
	endWord   = regexp.MustCompile(`^[A-Za-z][A-Za-z _-]*$`)
)

// verdicts are what a moderation can give as its status, in the folded form, beside what is held: they are no ends.
var verdicts = []string{"flagged", "safe", "unsafe", "clean", "allow", "allowed", "pass", "passed"}

// otherEnd gives the word of a field that says how an answer ended, where it is not one of whole answers; "" for any
// other field or word. What is no word, such as a code or the stop sequence that vLLM gives as stop_reason, says
// nothing.
func (l look) otherEnd(key string, said any) string {
	isReason := endReasons.MatchString(key)
	if object, is := said.(map[string]any); is && isReason { // SGLang's
		said = object["type"]
	}
	text, _ := said.(string)
	text = strings.TrimSpace(text)
	word := endPrefix.ReplaceAllString(text, "")
	isVerdict := l.judges && (slices.Contains(verdicts, folded(text)) || slices.Contains(held, folded(text)))
	switch {
	case !endWord.MatchString(text), value.Absent(text) && key != "stoptype", value.IsWholeEnd(word):
	case isReason && !(key == "stopreason" && slices.Contains(l.stops, text)),
		!isReason && !l.elsewhere && endStates.MatchString(key) && !isVerdict && !manifest.IsAnswered(word):
		return text
	}
	return ""
}
