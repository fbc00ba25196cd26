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

// DecodeJSON reads a JSON file of at most 64 KiB into v, a pointer to a struct of texts, flags,
// whole numbers, times, structs and lists whose fields have json tags. Every key must be there,
// once and in its own case, but those tagged omitempty. A text is one line of plain text, a
// number 1 or more, a time to the second. The name of the file is used in messages only.
//
// Unlike encoding/json it takes neither null nor a key in another case, nor the last of two
// equal keys: what a signature is for must have one meaning. The error is *Problems.
func DecodeJSON(file string, data []byte, v any) (*Document, error) {
	w := jsonWalker{Document: &Document{file: file, data: data, places: make(map[string]int)}}
	refuse := func(offset int, message, hint string) (*Document, error) {
		line, column := w.position(offset)
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
		return refuse(max(0, int(syntax.Offset)-1), "not valid JSON: "+syntax.Error(), "one JSON object, and nothing after it")
	}
	w.dec = json.NewDecoder(strings.NewReader(string(data)))
	if data[w.next()] != '{' {
		return refuse(0, "not a JSON object", "it starts with { and ends with }")
	}
	if err := errors.Join(w.object("", reflect.TypeOf(v).Elem()), w.Err()); err != nil {
		return nil, err
	}
	return w.Document, json.Unmarshal(data, v)
}

// A jsonWalker compares the keys and values of a valid JSON text with the struct that it is read
// into. Its errors are those of the decoder, which cannot happen then.
type jsonWalker struct {
	*Document
	dec *json.Decoder
}

// next is where the next key or value starts.
func (w *jsonWalker) next() int {
	return jsonNext(string(w.data), int(w.dec.InputOffset()))
}

func (w *jsonWalker) object(key string, of reflect.Type) error {
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
	if _, err := w.dec.Token(); err != nil {
		return err
	}
	for w.dec.More() {
		at := w.next()
		token, err := w.dec.Token()
		if err != nil {
			return err
		}
		name := fmt.Sprint(token)
		full := strings.TrimPrefix(key+"."+name, ".")
		twice := w.Has(full)
		w.places[full] = at
		if twice {
			w.Add(full, fmt.Sprintf("the key %s stands twice", quote(name)), "keep one of them")
		}
		in := fields[name]
		if in == nil {
			w.Add(full, "unknown key "+quote(full), keyHint(name, names))
			err = w.dec.Decode(new(json.RawMessage))
		} else {
			err = w.value(full, in)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range required {
		if full := strings.TrimPrefix(key+"."+name, "."); !w.Has(full) {
			w.Add(full, full+" is missing", "it has to be there")
		}
	}
	_, err := w.dec.Token()
	return err
}

func (w *jsonWalker) value(key string, of reflect.Type) error {
	at := w.next()
	first := w.data[at]
	switch {
	case of.Kind() == reflect.Struct && of != reflect.TypeFor[time.Time]() && first == '{':
		return w.object(key, of)
	case of.Kind() == reflect.Slice && first == '[':
		if _, err := w.dec.Token(); err != nil {
			return err
		}
		for i := 0; w.dec.More(); i++ {
			item := fmt.Sprintf("%s[%d]", key, i)
			w.places[item] = w.next()
			if err := w.value(item, of.Elem()); err != nil {
				return err
			}
		}
		_, err := w.dec.Token()
		return err
	}
	var raw json.RawMessage
	if err := w.dec.Decode(&raw); err != nil {
		return err
	}
	into := reflect.New(of)
	fits := string(raw) != "null" && json.Unmarshal(raw, into.Interface()) == nil
	want := ""
	switch of.Kind() {
	case reflect.Struct:
		t, isTime := into.Elem().Interface().(time.Time)
		fits, want = isTime && fits && t.Nanosecond() == 0 && t.Year() >= 2000, "an object, { ... }"
		if isTime {
			want = `a time to the second, such as "2027-12-31T23:59:59Z"`
		}
	case reflect.Slice:
		fits, want = false, "a list, [ ... ]"
	case reflect.String:
		s := into.Elem().String()
		fits, want = fits && validText(s, maxJSONText) && !strings.ContainsRune(s, utf8.RuneError), fmt.Sprintf("one line of plain text of 1 to %d bytes", maxJSONText)
	case reflect.Bool:
		want = "true or false"
	default:
		fits, want = fits && into.Elem().Int() >= 1, "a whole number of 1 or more"
	}
	if !fits {
		w.Add(key, key+" is not "+want, "")
	}
	return nil
}
