package models

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/study/endpoint"
)

// What an answer with text can turn out to be, beside the outcomes of package endpoint.
const (
	NotJSON      endpoint.Outcome = "not_json"      // without the object that was asked for
	UnknownLabel endpoint.Outcome = "unknown_label" // names something that is not a label of the task, or more labels than one
)

// Outcomes are all outcomes of an answer, in the order of tables.
func Outcomes() []endpoint.Outcome {
	return []endpoint.Outcome{endpoint.OK, endpoint.Refused, endpoint.Truncated, endpoint.Empty, NotJSON, UnknownLabel, endpoint.TooLarge,
		endpoint.Failed}
}

// Read finds the classes of a model's answer, as places in t.Classes. They mean something for endpoint.OK alone; any other
// outcome comes with a reason for people. No label is guessed: what cannot be read as the object that the prompt asks for is no
// answer.
func (t *Task) Read(text string) (classes []int, outcome endpoint.Outcome, why string) {
	value, why := t.value(text)
	if why != "" {
		return nil, NotJSON, why
	}
	var several []json.RawMessage
	if err := json.Unmarshal(value, &several); err != nil || several == nil {
		several = []json.RawMessage{value} // one label without brackets
	}
	words := t.words()
	classes, none := []int{}, false
	for _, v := range several {
		var name *string
		if json.Unmarshal(v, &name) != nil || name == nil {
			return nil, UnknownLabel, fmt.Sprintf("%.40s is not a label", v)
		}
		class, known := words[strings.ToLower(strings.TrimSpace(*name))]
		switch {
		case !known:
			return nil, UnknownLabel, fmt.Sprintf("%.80q is not a label of %s", *name, t.Category)
		case class < 0:
			none = true
		case !slices.Contains(classes, class):
			classes = append(classes, class)
		}
	}
	switch {
	case none && len(classes) > 0:
		return nil, UnknownLabel, "the label for none stands beside others"
	case t.Kind != manifest.Multi && len(classes) != 1:
		return nil, UnknownLabel, fmt.Sprintf("%d labels, where one is asked for", len(classes))
	}
	return classes, endpoint.OK, ""
}

// value finds what the first object of a text has under the task's name.
func (t *Task) value(text string) (value json.RawMessage, why string) {
	// What a model thinks before it answers is not the answer.
	if _, after, thought := strings.Cut(text, "</think>"); thought {
		text = after
	} else if strings.Contains(text, "<think>") {
		return nil, "it ends while the model still thinks"
	}
	_, text, found := strings.Cut(text, "{")
	if !found {
		return nil, "it holds no JSON object"
	}
	text = "{" + text
	whole, ok := object(text)
	// A stop sequence is not part of the answer: } as one takes the brace away. A list that only begins says nothing yet.
	open := strings.TrimSpace(text)
	for _, end := range []string{"}", "]}"} {
		if !ok && !strings.HasSuffix(open, "[") && json.Valid([]byte(open+end)) {
			whole, ok = open+end, true
		}
	}
	var fields map[string]json.RawMessage
	if !ok || json.Unmarshal([]byte(whole), &fields) != nil {
		return nil, "its JSON object cannot be read"
	}
	spelled := 0
	for key, v := range fields {
		if strings.EqualFold(key, t.Category) {
			value = v
			spelled++
		}
	}
	if v, exact := fields[t.Category]; exact { // also where another spelling stands beside it
		value, spelled = v, 1
	}
	switch spelled {
	case 0:
		return nil, fmt.Sprintf("its JSON object has no key %q", t.Category)
	case 1:
		return value, ""
	}
	return nil, fmt.Sprintf("its JSON object has several keys that spell %q", t.Category)
}

// object cuts the object that a text begins with off the text.
func object(text string) (string, bool) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 {
			return text[:i+1], true
		}
	}
	return "", false
}
