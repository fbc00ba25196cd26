package endpoint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"rehydrate/internal/jsonscan"
)

// Where servers write an answer a second time, beside the message of a choice: as JSON that they read themselves, or
// in the form of another interface (Ollama's, OpenAI's Responses). Under the words of the second list often stands
// something else, such as "ok".
var (
	answerKeys = []string{"parsed", "output", "outputtext", "response", "answer", "completion"}
	maybeKeys  = []string{"message", "result", "text", "generatedtext"}
)

// otherAnswer names the field of an object that holds another answer than a text, "" for none.
func otherAnswer(object map[string]any, text string) string {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		key := folded(name)
		sure := slices.Contains(answerKeys, key)
		if !sure && !slices.Contains(maybeKeys, key) {
			continue
		}
		for _, other := range answersIn(object[name]) {
			words, isText := other.(string)
			if (sure || isText && strings.Contains(words, "{")) && says(other) && !sameAnswer(text, other,
				key == "parsed") {
				return name
			}
		}
	}
	return ""
}

// sameAnswer reports whether another answer says what a text does: in each of its objects, or in words where neither
// has one. An object that is no text and has no key of the text's is about something else, unless it is the parsed
// answer.
func sameAnswer(text string, other any, parsed bool) bool {
	said, _ := Spoken(text, "")
	objects := objectsIn(said)
	isSaid := func(object any) bool {
		return slices.ContainsFunc(objects, func(of any) bool { return reflect.DeepEqual(of, object) })
	}
	words, isText := other.(string)
	if !isText {
		return isSaid(other) || !parsed && !shareKey(objects, other)
	}
	words, _ = Spoken(words, "")
	found := objectsIn(words)
	for _, object := range found {
		if !isSaid(object) {
			return false
		}
	}
	return len(objects)+len(found) > 0 || strings.TrimSpace(words) == strings.TrimSpace(said)
}

// shareKey reports whether an object has a key of one of the others.
func shareKey(objects []any, other any) bool {
	fields, _ := other.(map[string]any)
	return slices.ContainsFunc(objects, func(of any) bool {
		said, _ := of.(map[string]any)
		for key := range said {
			if _, has := fields[key]; has {
				return true
			}
		}
		return false
	})
}

func otherwise(name string) string {
	return fmt.Sprintf("the answer stands twice, and what stands in %.40q is another", name)
}

// answersIn are the texts of a field that holds an answer in some form: the text itself, the content of a message, its
// parts. An object of another form is an answer that the server has read.
func answersIn(value any) (all []any) {
	switch v := value.(type) {
	case string:
		return []any{v}
	case []any:
		for _, of := range v {
			all = append(all, answersIn(of)...)
		}
	case map[string]any:
		known := false
		for name, of := range v {
			key := folded(name)
			switch {
			case slices.Contains([]string{"content", "text", "outputtext", "message", "parsed", "choices"}, key):
				known = true
				all = append(all, answersIn(of)...)
			case slices.Contains([]string{"type", "role", "id"}, key):
				known = true
			}
		}
		if !known {
			all = append(all, v)
		}
	}
	return all
}

// maxObjects bounds how many braces of a text are tried as the beginning of an object: each reads what follows it.
const maxObjects = 100

// objectsIn are the JSON objects of a text, outermost ones alone. The last may lack its last brace, which a stop
// sequence takes away.
func objectsIn(text string) (all []any) {
	for range maxObjects {
		begin := strings.IndexByte(text, '{')
		if begin < 0 {
			break
		}
		text = text[begin:]
		raw, length, _ := jsonscan.ObjectAt(text)
		v, err := jsonscan.Decode(raw)
		if err != nil {
			text = text[1:]
			continue
		}
		all, text = append(all, v), text[length:]
	}
	return all
}
