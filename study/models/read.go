package models

import (
	"fmt"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/study/endpoint"
)

// What an answer with text can turn out to be, beside the outcomes of package endpoint.
const (
	NotJSON      endpoint.Outcome = "not_json"      // without the object that was asked for, or with several that differ
	UnknownLabel endpoint.Outcome = "unknown_label" // names something that is not a label of the task, or more labels than one
)

// Outcomes are all outcomes of an answer, in the order of tables.
func Outcomes() []endpoint.Outcome {
	return []endpoint.Outcome{endpoint.OK, endpoint.Refused, endpoint.Truncated, endpoint.Empty, NotJSON, UnknownLabel,
		endpoint.TooLarge,
		endpoint.Failed}
}

// Read finds the classes of a model's answer, as places in t.Classes. They mean something for endpoint.OK alone; any
// other outcome comes with a reason for people. No label is guessed: an answer that cannot be read in exactly one way
// is none. Thoughts before the answer end at t.ThinkEnd and at the marks of known models; after them it is the object
// that was asked for and nothing else, or with t.Prose all objects say the same.
func (t *Task) Read(text string) (classes []int, outcome endpoint.Outcome, why string) {
	text, why = endpoint.Spoken(text, t.ThinkEnd)
	if why != "" {
		return nil, NotJSON, why
	}
	var values []any
	if t.Prose {
		values, why = valuesOf(text, t.Category)
	} else {
		values = make([]any, 1)
		values[0], why = valueOf(text, t.Category)
	}
	if why != "" {
		return nil, NotJSON, why
	}
	for i, value := range values {
		found, result, reason := t.classes(value)
		switch {
		case result != endpoint.OK && len(values) == 1:
			return nil, result, reason
		case result != endpoint.OK, i > 0 && !slices.Equal(found, classes):
			return nil, NotJSON, fmt.Sprintf("it has %d JSON objects with the key %q, and they do not say the same",
				len(values), t.Category)
		}
		classes = found
	}
	return classes, endpoint.OK, ""
}

// classes reads the value of the task's key: one label, or a list of labels. The classes are sorted.
func (t *Task) classes(value any) (classes []int, outcome endpoint.Outcome, why string) {
	several, ok := value.([]any)
	if !ok {
		several = []any{value} // one label without brackets
	}
	words := t.words()
	classes, none := []int{}, false
	for _, v := range several {
		name, ok := v.(string)
		if !ok {
			return nil, UnknownLabel, fmt.Sprintf("a label of %s is a text", t.Category)
		}
		class, known := words[strings.ToLower(strings.TrimSpace(name))]
		switch {
		case !known:
			return nil, UnknownLabel, fmt.Sprintf("%.80q is not a label of %s", name, t.Category)
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
	slices.Sort(classes)
	return classes, endpoint.OK, ""
}
