package endpoint

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A second answer is found by its form: wherever it stands in a body, and under whichever key.

// What is no answer, by its key in the folded form: thoughts, what was asked and how, tools, logs, counts, and what a
// filter or an error says, which often has a severity.
var noAnswer = key(`think|thought|reason|analysis|scratchpad|prompt|request|input|schema|` +
	`(?:response|output)format|setting|param|^options?$|config|example|shots|tool|function|^logs?$|logprob|debug|trace|` +
	`usage|filter|safety|rating|moderat|guard|warn|error|diagnos`)

// noVerdict are the keys under which a moderation's answer has no verdict on the whole.
var noVerdict = key(`request|prompt|^(?:input|text|content)$|categor|setting|param|^options?$|config|` +
	`example|debug|trace`)

// everywhere are the keys, in lower case, that answers and their parts have whatever they say.
var everywhere = []string{"id", "object", "model", "type", "kind", "status", "state", "role", "name", "index",
	"provider",
	"content", "text", "message", "language"}

// secondAnswer names the field of a body in which an object of the form of one of a text's gives other labels, "" for
// none.
func secondAnswer(fields map[string]any, text string) (name string) {
	said, _ := Spoken(text, "")
	objects := objectsIn(said)
	if len(objects) == 0 {
		return ""
	}
	eachObject("", withoutContent(fields), noAnswer, func(of string, object map[string]any) bool {
		formed, same := "", false
		for _, o := range objects {
			answer, _ := o.(map[string]any)
			isFormed, isSame := compare(answer, object)
			if isFormed {
				formed = slices.Min(slices.Collect(maps.Keys(answer)))
			}
			same = same || isSame
		}
		if formed != "" && !same {
			name = cmp.Or(of, formed)
		}
		return name == ""
	})
	return name
}

// compare reports whether an object has the form of an answer, labels under each of its keys, and whether they are the
// same. Labels are a text, or a list of texts. Of an object that has other keys too, what says nothing is no label, and
// neither is what stands everywhere.
func compare(answer, object map[string]any) (formed, same bool) {
	same = true
	for key, value := range answer {
		said, isSaid := labelsIn(value)
		other, isOther := []string(nil), false
		for name, of := range object {
			none := !says(of) || slices.Contains(everywhere, strings.ToLower(name))
			if strings.EqualFold(name, key) && !(none && len(object) > len(answer)) {
				other, isOther = labelsIn(of)
			}
		}
		if !isSaid || !isOther {
			return false, false
		}
		same = same && slices.Equal(said, other)
	}
	return len(answer) > 0, len(answer) > 0 && same
}

// labelsIn are the labels that a value holds, in lower case and sorted.
func labelsIn(value any) (labels []string, ok bool) {
	several, isList := value.([]any)
	if !isList {
		several = []any{value}
	}
	for _, of := range several {
		text, isText := of.(string)
		if !isText {
			return nil, false
		}
		labels = append(labels, strings.ToLower(strings.TrimSpace(text)))
	}
	slices.Sort(labels)
	return slices.Compact(labels), true
}

// withoutContent is a chat's answer without the content of its messages.
func withoutContent(fields map[string]any) map[string]any {
	rest := maps.Clone(fields)
	choices, _ := fields["choices"].([]any)
	var bare []any
	for _, c := range choices {
		choice, _ := c.(map[string]any)
		message, _ := choice["message"].(map[string]any)
		choice, message = maps.Clone(choice), maps.Clone(message)
		if message != nil {
			message["content"], choice["message"] = nil, message
		}
		bare = append(bare, choice)
	}
	rest["choices"] = bare
	return rest
}

// eachObject yields the objects in a value, those of JSON in texts among them, with the key under which each stands,
// and stops when yield returns false. Keys that aside finds are passed over, and so are messages of others than the
// model; of a conversation, the last message counts alone.
func eachObject(name string, value any, aside *regexp.Regexp, yield func(name string,
	object map[string]any) bool) bool {
	switch v := value.(type) {
	case string:
		text, _ := Spoken(v, "")
		for _, of := range objectsIn(text) {
			if !eachObject(name, of, aside, yield) {
				return false
			}
		}
	case []any:
		if slices.ContainsFunc(v, func(of any) bool { m, _ := of.(map[string]any); return m["role"] != nil }) {
			v = v[len(v)-1:]
		}
		for _, of := range v {
			if !eachObject(name, of, aside, yield) {
				return false
			}
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		if !isAssistant(v["role"]) || noAnswer.MatchString(folded(kind)) {
			return true
		}
		if !yield(name, v) {
			return false
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !aside.MatchString(folded(key)) && !eachObject(key, v[key], aside, yield) {
				return false
			}
		}
	}
	return true
}

// flags finds the keys of a verdict, in the folded form.
var flags = key(`^(?:is|was|has|hasbeen)?flagged$`)

// otherVerdict names what contradicts the verdict of a moderation's one result, "" for nothing: another verdict on the
// whole, or that a part is flagged where the whole is not.
func otherVerdict(fields, result map[string]any) (name string) {
	flagged := result["flagged"] == true
	look := func(object map[string]any, whole bool) bool {
		for key, value := range object {
			n, isNumber := numeral(value)
			yes, no := isTrue(value) || isNumber && n == 1, isFalse(value) || isNumber && n == 0
			if flags.MatchString(folded(key)) && (yes && !flagged || no && flagged && whole) {
				name = key
			}
		}
		return name == ""
	}
	if look(fields, true) && look(result, true) {
		eachObject("", fields, noVerdict, func(_ string, object map[string]any) bool { return look(object, false) })
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("the answer has two verdicts, and what stands in %.40q is another", name)
}
