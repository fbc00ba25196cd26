package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a small JSON file: a grant has about 1 kB.
const (
	maxJSON     = 64 << 10
	maxJSONText = 500 // bytes of a text
)

// DecodeJSON reads a JSON file of at most 64 KiB into v, a pointer to a struct with json tags. Every key must be there,
// once and in its own case, but those tagged omitempty; null is refused. A text is one line of plain text, a number 1
// or more, a time to the second: what a signature is for must have one meaning. The error is *Problems.
func DecodeJSON(file string, data []byte, v any) (*Document, error) {
	t := &Document{file: file, data: data, places: make(map[string]int)}
	refuse := func(offset int, message, hint string) (*Document, error) {
		line, column := t.position(offset)
		return nil, one(&Problem{File: file, Line: line, Column: column, Message: message, Hint: hint})
	}
	if len(data) > maxJSON {
		return refuse(0, fmt.Sprintf("the file is longer than %d bytes", maxJSON), "is it the right file?")
	}
	if message, hint := byteOrderMark(data); message != "" {
		return refuse(0, message, hint)
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		return refuse(max(0, int(syntax.Offset)-1), "not valid JSON: "+syntax.Error(),
			"one JSON object, and nothing after it")
	}
	start := jsonNext(string(data), 0)
	if data[start] != '{' {
		return refuse(0, "not a JSON object", "it starts with { and ends with }")
	}
	t.jsonObject("", reflect.TypeOf(v).Elem(), start, string(data[start:]))
	if err := t.Err(); err != nil {
		return nil, err
	}
	return t, json.Unmarshal(data, v)
}

// jsonObject compares the keys and values of an object with the struct that it is read into. The
// object is valid JSON, and starts at the offset at.
func (t *Document) jsonObject(key string, of reflect.Type, at int, object string) {
	fields := make(map[string]reflect.Type)
	var names, required []string
	for _, f := range reflect.VisibleFields(of) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue // an embedded struct, whose fields are here too
		}
		fields[name], names = f.Type, append(names, name)
		if option != "omitempty" {
			required = append(required, name)
		}
	}
	for m := range members(object) {
		full := strings.TrimPrefix(key+"."+m.key, ".")
		twice := t.Has(full)
		t.places[full] = at + m.from
		if twice {
			t.Add(full, fmt.Sprintf("the key %s stands twice", quote(m.key)), "keep one of them")
		}
		if in := fields[m.key]; in != nil {
			t.jsonValue(full, in, at+m.at, m.value)
		} else {
			t.Add(full, "unknown key "+quote(full), keyHint(m.key, names))
		}
	}
	for _, name := range required {
		if full := strings.TrimPrefix(key+"."+name, "."); !t.Has(full) {
			t.Add(full, full+" is missing", "it has to be there")
		}
	}
}

func (t *Document) jsonValue(key string, of reflect.Type, at int, value string) {
	switch {
	case of.Kind() == reflect.Struct && of != reflect.TypeFor[time.Time]() && value[0] == '{':
		t.jsonObject(key, of, at, value)
		return
	case of.Kind() == reflect.Slice && value[0] == '[':
		n := 0
		for from, item := range jsonItems(value) {
			place := fmt.Sprintf("%s[%d]", key, n)
			t.places[place] = at + from
			t.jsonValue(place, of.Elem(), at+from, item)
			n++
		}
		return
	}
	into := reflect.New(of)
	fits := value != "null" && json.Unmarshal([]byte(value), into.Interface()) == nil
	want := ""
	switch of.Kind() {
	case reflect.Struct:
		moment, isTime := into.Elem().Interface().(time.Time)
		fits, want = isTime && fits && moment.Nanosecond() == 0 && moment.Year() >= 2000, "an object, { ... }"
		if isTime {
			want = `a time to the second, such as "2027-12-31T23:59:59Z"`
		}
	case reflect.Slice:
		fits, want = false, "a list, [ ... ]"
	case reflect.String:
		s := into.Elem().String()
		fits, want = fits && validText(s, maxJSONText) && !strings.ContainsRune(s, utf8.RuneError),
			fmt.Sprintf("one line of plain text of 1 to %d bytes", maxJSONText)
	case reflect.Bool:
		want = "true or false"
	default:
		fits, want = fits && into.Elem().Int() >= 1, "a whole number of 1 or more"
	}
	if !fits {
		t.Add(key, key+" is not "+want, "")
	}
}
