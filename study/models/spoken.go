package models

import (
	"fmt"
	"regexp"
	"strings"

	"rehydrate/internal/jsonscan"
)

// What may stand before and after an answer that is the object alone: white space, a code fence with the name of a
// language that the object can be in, the marks by which models begin and end a turn of their own, and tags of an
// answer. Another word in a fence or a mark is a word beside the object, such as that it is wrong, or of another
// role.
var (
	lead = regexp.MustCompile("^(?:[\\s\ufeff]|" + beginnings + "|<(answer|response)>)*" +
		"(?i:(?:`{3,}|~{3,})(?:jsonc|json5|json|text|none)?)?\\s*")
	tail = regexp.MustCompile("^\\s*(?:`{3,}|~{3,})?(?:\\s|" + endings + "|</(answer|response)>)*$")
)

const (
	beginnings = `<\|im_start\|>\s*assistant\b|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>|` +
		`<\|start\|>assistant|<start_of_turn>model\b|<\|(?i:assistant|message|begin_of_box|begin_of_text|start_response)\|>`
	endings = `<\|(?i:end|return|im_end|eot_id|eom_id|eot|endoftext|end_of_text|end_of_box|end_response|end_of_turn_token|` +
		`end_of_turn|end_of_sentence|assistant_end)\|>|</s>|<eos>|<end_of_turn>|<turn\|>`
)

// valueOf finds the value of a key, in whichever case, in a text that is a JSON object with this key alone. The object
// may lack its last brace, which a stop sequence takes away; nothing else is put in. why says why the text is something
// else.
//
// Words beside the object are not looked through for what they mean: "I cannot help with that. {}" and "The answer is
// not {}" look as "Here it is: {}" does, and a lost answer costs less than a wrong label. For the same reason no other
// key may stand in the object, where a model can say that it did not see the picture.
func valueOf(text, key string) (value any, why string) {
	before := lead.FindStringSubmatch(text)
	text = text[len(before[0]):]
	object, length, cut := jsonscan.ObjectAt(text)
	switch {
	case cut:
		return nil, "its JSON object is cut"
	case object == nil && strings.HasPrefix(text, "{"):
		return nil, "its JSON object cannot be read"
	case object == nil && !strings.Contains(text, "{"):
		return nil, "it holds no JSON object"
	case object == nil:
		return nil, "it is not the JSON object alone"
	}
	after := tail.FindStringSubmatch(text[length:])
	if differ := after != nil && before[1] != "" && after[1] != "" && before[1] != after[1]; differ || after == nil {
		return nil, "it is not the JSON object alone"
	}
	read, err := jsonscan.Decode(object)
	if err != nil {
		return nil, "its JSON object cannot be read: " + err.Error()
	}
	values, why := under(read, key, nil)
	fields, _ := read.(map[string]any)
	switch {
	case why != "":
		return nil, why
	case len(fields) != 1 || len(values) != 1: // it has others, or the key stands deeper
		return nil, fmt.Sprintf("its JSON object does not have the key %q alone", key)
	}
	for name, of := range fields {
		if !strings.EqualFold(name, key) {
			return nil, fmt.Sprintf("its JSON object has no key %q", key)
		}
		value = of
	}
	return value, ""
}

// maxBraces is how many braces that begin no JSON object a text may have: what follows each is looked at.
const maxBraces = 100

// valuesOf finds what the JSON objects of a text with words around them have under a key, in whichever case and at any
// depth. Braces that begin no object are prose, unless they give the key a value. An object that the text ends in may
// lack its last brace, which a stop sequence takes away; nothing else is put in. why says why the text cannot be read
// in one way; without it there is a value.
func valuesOf(text, key string) (values []any, why string) {
	prose, objects := 0, 0
	named := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(key) + `\W*[:=]`)
	for {
		begin := strings.IndexByte(text, '{')
		if begin < 0 {
			break
		}
		text = text[begin:]
		object, length, cut := jsonscan.ObjectAt(text)
		switch {
		case cut:
			return nil, "its JSON object is cut"
		case object == nil:
			inside, _, _ := strings.Cut(text, "}")
			prose++
			if prose > maxBraces || named.MatchString(inside) {
				return nil, "its JSON object cannot be read"
			}
			text = text[1:]
			continue
		}
		read, err := jsonscan.Decode(object)
		if err != nil {
			return nil, "its JSON object cannot be read: " + err.Error()
		}
		values, why = under(read, key, values)
		if why != "" {
			return nil, why
		}
		objects++
		text = text[length:]
	}
	switch {
	case len(values) > 0:
		return values, ""
	case objects > 0:
		return nil, fmt.Sprintf("its JSON object has no key %q", key)
	}
	return nil, "it holds no JSON object"
}

// under adds what a JSON value, and all that it holds, has under a key.
func under(value any, key string, found []any) (_ []any, why string) {
	switch v := value.(type) {
	case []any:
		for _, of := range v {
			found, why = under(of, key, found)
			if why != "" {
				return nil, why
			}
		}
	case map[string]any:
		spelled := 0
		for name, of := range v {
			if strings.EqualFold(name, key) {
				found = append(found, of)
				spelled++
			}
			found, why = under(of, key, found)
			if why != "" {
				return nil, why
			}
		}
		switch {
		case spelled > 1:
			return nil, fmt.Sprintf("its JSON object has several keys that spell %q", key)
		case spelled == 1 && len(v) > 1:
			return nil, fmt.Sprintf("its JSON object does not have the key %q alone", key)
		}
	}
	return found, ""
}
