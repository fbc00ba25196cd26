package endpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rehydrate/internal/jsonscan"
)

// What servers say of an answer beside it, each under names of their own, is found by what names and values mean, not
// by a list of places. Nothing of it makes an answer good; it can only take away that it is.

// A mark is what a field can say of an answer. Names are compared without case and signs.
type mark struct {
	outcome Outcome
	key     *regexp.Regexp
	says    func(value any) bool
	what    string // that the server says, for people
	// judges is true for words in which a moderation also gives its verdict.
	judges bool
	// pictures is true for what has a meaning only where a picture was sent.
	pictures bool
}

// The words of which keys are made.
const (
	refusal = `refus|block|filtered|reject`
	image   = `(?:image|picture|photo|vision|visual|media|attachment|multimodal)`
	losing  = `(?:drop|discard|omit|ignor|skip|remov|strip|exclud|unsupported|unread|unused|missing|lost|fail)`
	taken   = `(?:process|seen|used|read|load|decod|receiv|accept|includ|embed|encod)`
	parts   = `(?:token|char|word|byte|message|turn|content|context|prompt|input)`
)

// marks are looked through for each field of an answer. The worst that one of them says counts.
var marks = []mark{
	{Refused, key(`^(?:is|was)?(?:refusal|filtered|blocked)$`), states, heldBack, false, false},
	{Refused, key(refusal), saysPlainly, heldBack, false, false},
	{Refused, key(`^(?:is|was)?(?:censored|(?:policy|content)?violat(?:ed|ions?|edpolicies))$`), states, heldBack,
		true, false},
	{Refused, key(`censored|violat|^(?:is|has|input|output|content|prompt)*sensitive$`), saysPlainly, heldBack, true,
		false},
	{Refused, key(`(?:action|decision|verdict|disposition)$`), oneOf(held), heldBack, true, false},
	{Refused, key(endings), ends(Refused), "the answer ends for a reason that is a refusal", false, false},

	{Truncated, key(`truncat|incomplete|partial|cutoff`), saysNoNumber, isCut, false, false},
	{Truncated, key(`truncated|cutoff|incomplete|partial`), isOne, isCut, false, false},
	{Truncated,
		key(`truncated|trimmed|evicted|(?:drop|discard|remov|omit)[a-z]*` + parts + `|` + parts + `s?(?:drop|discard|remov|omit)`),
		isCount, isCut, false, false},
	{Truncated, key(`^(?:is|was)?(?:done|complete|completed|finished|final|whole|eosreached|reachedeos)$`), isFalse,
		"the server says that the answer is not whole", false, false},
	{Truncated, key(`(?:stopped|hit|reached|exceed|over)[a-z]*(?:limit|length|maxtokens)|` +
		`(?:limit|length|maxtokens)(?:was|is)?(?:reached|hit|exceeded)`), isTrue, isCut, false, false},
	{Truncated, key(`overflow`), func(value any) bool { return isTrue(value) || isCount(value) }, isCut, false, false},
	{Truncated, key(`^(?:is|was|did|has)?(?:context|ctx)shift(?:s|ed)?$`), isTrueOrCount, isCut, false, false},
	{Truncated, key(endings), ends(Truncated), "the answer has as many tokens as were allowed", false, false},

	{Truncated, key(`warn`), loses, "the server warns that a part was left out", false, false},
	{Truncated, key(`^(?:message|msg|statusmsg|statusmessage|notes?|notices?|info|details?|remarks?|diagnostics?)$`),
		notesLoss,
		"the server says that a part was left out", false, false},
	{Truncated, key(image + `.*` + losing + `|` + losing + `.*` + image), isTrueOrCount, unseen, false, false},
	{Truncated, key(losing), namesImage, unseen, false, false},
	{Truncated,
		key(image + `.*` + taken + `|` + taken + `.*` + image + `|^(?:supports|has|is)?(?:vision|multimodal|images?)` +
			`(?:enabled|supported|support)?$`), isFalseOrZero, unseen, false, true},

	{Failed,
		key(`^(?:is|was)?(?:cancell?ed|interrupted|abort(?:ed)?|timed?out|expired|killed|preempted|disconnected|failed|errored)$|` +
			`^(?:has|is)errors?$`), isTrue, "the server says that the answer was broken off", false, false},
	{Failed, key(`^(?:is|was)?(?:success|successful|succeeded|ok)$`), isFalse, "the server says that it failed",
		false, false},
	{Failed, key(`^(?:errors?|err|exception|failure|(?:error|err|failure)(?:message|msg|reason|code|no))$`), isError,
		"the server reports an error in its answer", false, false},
	{Failed, key(`^(?:code|status|(?:status|http|httpstatus|ret|return|result)code)$`), isBadCode,
		"the server reports the code of an error", false, false},
	{Failed, key(`^(?:is|was)?skipped$`), states, "the server says that it left something out", false, false},
	{Failed, key(endings), oneOf(unfinished), "the answer is in a state in which it is not whole", false, false},
}

// endings are the keys of reasons, states and types in which a word that is known says that an answer is none.
const endings = `reason|finish|stop|status|state|type|kind|outcome`

const (
	heldBack = "the server says that the question or the answer was held back"
	isCut    = "the server says that the question or the answer is cut"
	unseen   = "the server says that the image was not read"
)

// held are the values of an action, in the folded form, by which an answer is held back.
var held = []string{"block", "blocked", "deny", "denied", "refuse", "refused", "reject", "rejected", "filter",
	"filtered", "censor",
	"censored", "withhold", "withheld", "intervene", "intervened", "guardrailintervened"}

// unfinished are the states, in the folded form, in which an answer is not whole.
var unfinished = []string{"incomplete", "failed", "cancelled", "canceled", "inprogress", "queued", "pending",
	"running", "abort", "aborted",
	"interrupted", "timeout", "timedout", "expired", "error", "errored"}

// unsaid are values under which a key says nothing, in the folded form.
var unsaid = []string{"", "false", "no", "none", "null", "disabled", "auto", "unspecified", "blockreasonunspecified",
	"ok", "success"}

// inside are the keys of what a model said, of what it was asked and how, and of numbers: none of them is about the
// answer.
var inside = []string{"content", "text", "reasoning", "reasoningcontent", "reasoningdetails", "thinking", "arguments",
	"prompt", "categories", "categoryscores", "categoryappliedinputtypes", "generationsettings", "settings",
	"parameters", "params",
	"options", "config", "request", "knowledgecutoff", "trainingcutoff"}

func key(words string) *regexp.Regexp { return regexp.MustCompile(words) }

// A look says what an answer that is looked through was asked for.
type look struct {
	judges   bool // it is a moderation's
	pictures bool // a picture was sent
	counts   bool // it is a usage that is looked through
	// elsewhere is true within objects whose states are not those of the answer.
	elsewhere bool
	stops     []string // the stop sequences that were sent
}

// Marked returns what the JSON of a moderation's answer that somebody kept says of itself: OK where it says nothing,
// else Refused, Truncated or Failed, and why.
func Marked(body []byte) (Outcome, string) {
	v, err := jsonscan.Decode(body)
	if err != nil {
		return Failed, "the answer cannot be read: " + err.Error()
	}
	return look{judges: true}.marked(v)
}

// marked returns what an answer, or a part of it, says of itself anywhere: Refused before Truncated before Failed, and
// OK where it says nothing. why is for people.
func (l look) marked(value any) (found Outcome, why string) {
	found = OK
	switch v := value.(type) {
	case []any:
		for _, of := range v {
			found, why = worse(found, why)(l.marked(of))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			key := folded(name)
			switch {
			case slices.Contains(inside, key):
			case !l.counts && slices.Contains(usages, key):
				found, why = worse(found, why)(l.usage(v[name]))
			case key == "contentfilterresults": // an error there is the filter's, not the answer's
				if held, reason := l.marked(v[name]); held == Refused {
					found, why = worse(found, why)(held, reason)
				}
			default:
				of := l
				of.pictures = l.pictures && !(l.counts && elsewhere.MatchString(key))
				found, why = worse(found, why)(of.field(key, name, v[name]))
				of.elsewhere = l.elsewhere || !ofAnswer.MatchString(key)
				found, why = worse(found, why)(of.marked(v[name]))
			}
		}
	}
	return found, why
}

// usages are the keys of what an answer took, in the folded form.
var usages = []string{"usage", "usagemetadata"}

// elsewhere finds the keys, within a usage, of counts that are not of what was sent: those of the answer, of a cache
// and of a bill. A bare number of images can be any of them.
var elsewhere = key(`output|completion|candidate|response|generat|cach|cost|price|bill|^images?$`)

// usage returns what a usage says of the answer: what it would say elsewhere, and that no token was the picture's.
func (l look) usage(usage any) (found Outcome, why string) {
	l.counts = true
	found, why = l.marked(usage)
	fields, _ := usage.(map[string]any)
	if l.pictures && isTextAlone(fields, countOf(fields, promptCounts)) {
		found, why = worse(found, why)(Truncated, unseen+": its counts say that all of the prompt was text")
	}
	return found, why
}

// isTextAlone reports whether the parts of a prompt, in a usage or an object in it, are counted as text alone: none as
// image, and all of the prompt, where the whole is counted, as text. Some servers write image_tokens 0 whatever they
// read, so that it alone says nothing.
func isTextAlone(counts map[string]any, prompt int) bool {
	images, counted := 0, false
	for name, value := range counts {
		key := folded(name)
		switch {
		case elsewhere.MatchString(key):
		case key == "imagetokens":
			n, ok := numeral(value)
			images, counted = max(images, int(n)), counted || ok
		default:
			if parts, _ := value.(map[string]any); isTextAlone(parts, prompt) {
				return true
			}
		}
	}
	text := countOf(counts, []string{"texttokens"})
	return counted && images == 0 && text > 0 && text >= prompt
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

// field returns what one field says of the answer.
func (l look) field(key, name string, value any) (found Outcome, why string) {
	found = OK
	for _, m := range marks {
		if m.judges && l.judges || m.pictures && !l.pictures || !m.key.MatchString(key) || !m.says(value) {
			continue
		}
		found, why = worse(found, why)(m.outcome, fmt.Sprintf("%s (%.40q)", m.what, name))
	}
	if word := l.otherEnd(key, value); word != "" {
		says := fmt.Sprintf("%.40q is %.40q, which does not say that the answer is whole", name, word)
		return worse(found, why)(Failed, says)
	}
	return found, why
}

// states reports whether a field says something: what says does, but for words that mean nothing of it.
func states(value any) bool {
	text, isText := value.(string)
	return says(value) && !(isText && slices.Contains(unsaid, folded(text)))
}

func saysPlainly(value any) bool {
	_, isText := value.(string)
	return states(value) && (isText || value == true)
}

func saysNoNumber(value any) bool {
	_, isNumber := value.(json.Number)
	return states(value) && !isNumber
}

func isOne(value any) bool   { return value == json.Number("1") }
func isTrue(value any) bool  { return value == true || isWord(value, "true", "yes") }
func isFalse(value any) bool { return value == false || isWord(value, "false", "no") }

func isWord(value any, words ...string) bool {
	text, isText := value.(string)
	return isText && slices.Contains(words, folded(text))
}

func oneOf(words []string) func(any) bool {
	return func(value any) bool { return isWord(value, words...) }
}

// ends says of a reason what endOf does.
func ends(as Outcome) func(any) bool {
	return func(value any) bool {
		_, isText := value.(string)
		ended, _ := endOf(value)
		return isText && ended == as
	}
}

// isCount reports whether a field is a number above 0, or its text.
func isCount(value any) bool {
	n, ok := numeral(value)
	return ok && n > 0
}

// isTrueOrCount also takes a list of what was lost, and words about it.
func isTrueOrCount(value any) bool {
	n, isNumber := numeral(value)
	return states(value) && (!isNumber || n > 0)
}

func isFalseOrZero(value any) bool {
	n, isNumber := numeral(value)
	return isFalse(value) || isNumber && n == 0
}

// isError reports whether the field of an error has one.
func isError(value any) bool {
	n, isNumber := numeral(value)
	return states(value) && (!isNumber || n != 0)
}

// isBadCode reports whether a code is that of an error: what has none is 0 or 1, a status of HTTP below 300, or 20000,
// which some Chinese services write.
func isBadCode(value any) bool {
	n, isNumber := numeral(value)
	return isNumber && n != 0 && n != 1 && n != 20000 && (n < 100 || n >= 300)
}

// numeral is a number, or a text that is one.
func numeral(value any) (float64, bool) {
	text, isText := value.(string)
	if number, ok := value.(json.Number); ok {
		text, isText = number.String(), true
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, isText && err == nil
}

// lost finds words that say that a part of the question or the answer was not read or not sent. That of a parameter
// that a server does not know is none.
var lost = regexp.MustCompile(`(?i)truncat|shorten|cut (?:off|short)|` +
	lossOf + `.*` + lossBy + `|` + lossBy + `.*` + lossOf + `|` + imageWord + `.*` + unread + `|` + unread + `.*` + imageWord)

const (
	lossOf    = `(?:image|picture|photo|prompt|input|message|content|context|answer|output)`
	lossBy    = `(?:drop|discard|omit|ignor|skip|remov|exceed|not (?:seen|read|support|us))`
	imageWord = `(?:image|picture|photo|vision|attachment)`
	unread    = `(?:strip|fail|unable|unsupported|unreadable|corrupt|could ?n[o']t|can ?n[o']t|not be|n't|` +
		`not (?:decod|fetch|load|process|download|open|access|receiv)|no (?:vision|image|picture))`
)

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

// notesLoss does the same for words that need not be a warning. An object under such a name is the model's message.
func notesLoss(note any) bool {
	switch v := note.(type) {
	case string:
		return lost.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, notesLoss)
	}
	return false
}

var ofImage = regexp.MustCompile(`(?i)` + imageWord)

// namesImage reports whether a text, or one that a value holds, speaks of the image, as a list of what was dropped
// does.
func namesImage(value any) bool {
	switch v := value.(type) {
	case string:
		return ofImage.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, namesImage)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), namesImage)
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
