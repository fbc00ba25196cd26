package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rehydrate/manifest"
)

// Bounds of the JSON files that carry grants. A grant has about 1 kB and objects in objects.
const (
	maxJSON      = 64 << 10
	maxJSONDepth = 4
	maxLineText  = 500 // bytes of a text
)

// A jsonFile is a JSON file that is read key by key, so that every key nobody asked for,
// every one that stands twice and every value of a wrong form is a problem with its line.
type jsonFile struct {
	name  string
	body  []byte
	found []manifest.Problem
}

// A jsonValue is a value and the line it stands on.
type jsonValue struct {
	line  int
	value any // map[string]jsonValue, []jsonValue, string, json.Number, bool or nil
}

func (f *jsonFile) add(line int, message, hint string) {
	f.found = append(f.found, manifest.Problem{File: f.name, Line: line, Message: message, Hint: hint})
}

// err gives the problems in the order of their lines, nil when there is none.
func (f *jsonFile) err() error {
	if len(f.found) == 0 {
		return nil
	}
	slices.SortStableFunc(f.found, func(a, b manifest.Problem) int { return cmp.Compare(a.Line, b.Line) })
	n := min(len(f.found), manifest.MaxProblems)
	return &manifest.Problems{List: f.found[:n], More: len(f.found) - n}
}

func (f *jsonFile) line(offset int64) int {
	return 1 + bytes.Count(f.body[:min(max(offset, 0), int64(len(f.body)))], []byte("\n"))
}

// parseJSON reads a file whose top is an object. What stops it is noted, and ok is false.
func parseJSON(b []byte, name string) (f *jsonFile, top *jsonObject, ok bool) {
	f = &jsonFile{name: name, body: b}
	if !f.checkBytes() {
		return f, nil, false
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(b, new(json.RawMessage)); errors.As(err, &syntax) {
		f.add(f.line(syntax.Offset-1), "not valid JSON: "+syntax.Error(), "one JSON object, and nothing after it")
		return f, nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, err := f.read(dec, 0)
	if err != nil {
		return f, nil, false
	}
	keys, isObject := v.value.(map[string]jsonValue)
	if !isObject {
		f.add(1, "not a JSON object", `it starts with { and ends with }`)
		return f, nil, false
	}
	return f, &jsonObject{file: f, line: v.line, keys: keys}, true
}

// checkBytes refuses what can't be a JSON text of ours, whatever it says.
func (f *jsonFile) checkBytes() bool {
	n := len(f.found)
	switch nul := bytes.IndexByte(f.body, 0); {
	case len(f.body) > maxJSON:
		f.add(1, fmt.Sprintf("the file is longer than %d bytes", maxJSON), "is it the right file?")
	case bytes.HasPrefix(f.body, []byte("\xef\xbb\xbf")):
		f.add(1, "the file starts with a byte order mark", `save it as "UTF-8", without BOM`)
	case nul >= 0:
		f.add(f.line(int64(nul)), "the file holds a NUL byte", "save it as UTF-8 text")
	case !utf8.Valid(f.body):
		f.add(f.line(int64(invalidAt(f.body))), "not valid UTF-8", "save it as UTF-8 text")
	}
	return len(f.found) == n
}

// invalidAt is the place of the first byte that is not UTF-8.
func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(b)
}

var errNoted = errors.New("noted as a problem")

// read reads the next value of a text whose syntax is right.
func (f *jsonFile) read(dec *json.Decoder, depth int) (jsonValue, error) {
	token, err := dec.Token()
	if err != nil {
		f.add(f.line(dec.InputOffset()), "not valid JSON: "+err.Error(), "")
		return jsonValue{}, errNoted
	}
	v := jsonValue{line: f.line(dec.InputOffset()), value: token}
	delim, nested := token.(json.Delim)
	if !nested {
		return v, nil
	}
	if depth == maxJSONDepth {
		f.add(v.line, fmt.Sprintf("more than %d levels of { and [", maxJSONDepth), "is it the right file?")
		return v, errNoted
	}
	if delim == '{' {
		v.value, err = f.readObject(dec, depth)
	} else {
		v.value, err = f.readList(dec, depth)
	}
	if err == nil {
		_, err = dec.Token() // the closing bracket
	}
	return v, err
}

func (f *jsonFile) readObject(dec *json.Decoder, depth int) (map[string]jsonValue, error) {
	keys := map[string]jsonValue{}
	for dec.More() {
		token, err := dec.Token()
		key, isText := token.(string)
		if err != nil || !isText {
			return nil, errors.Join(errNoted, err)
		}
		line := f.line(dec.InputOffset())
		v, err := f.read(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if _, twice := keys[key]; twice {
			f.add(line, fmt.Sprintf("the key %s stands twice", shown(key)), "keep one of them")
		}
		keys[key] = v
	}
	return keys, nil
}

func (f *jsonFile) readList(dec *json.Decoder, depth int) ([]jsonValue, error) {
	list := []jsonValue{}
	for dec.More() {
		v, err := f.read(dec, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// shown makes a text from a file safe to print, and short.
func shown(s string) string {
	if r := []rune(s); len(r) > 60 {
		return strconv.QuoteToGraphic(string(r[:60])) + "..."
	}
	return strconv.QuoteToGraphic(s)
}

// A jsonObject is one object being read. Reading a key takes it out, so that what is left
// at the end is unknown.
type jsonObject struct {
	file  *jsonFile
	path  string // "" at the top, else as "holder."
	line  int
	keys  map[string]jsonValue
	known []string
	// optional are the keys that may be missing; every other one that is asked for may not.
	optional []string
}

// take gives the value of a key.
func (o *jsonObject) take(key string) (jsonValue, bool) {
	o.known = append(o.known, key)
	v, ok := o.keys[key]
	delete(o.keys, key)
	if !ok && !slices.Contains(o.optional, key) {
		o.file.add(o.line, fmt.Sprintf("%s%s is missing", o.path, key), "it has to be there")
	}
	return v, ok
}

func (o *jsonObject) wrong(v jsonValue, key, want string) {
	o.file.add(v.line, fmt.Sprintf("%s%s is not %s", o.path, key, want), "")
}

// text reads one line of text that shows what it is: no control characters, no marks that
// turn the direction of writing, no spaces at its ends.
func (o *jsonObject) text(key string) string {
	return o.form(key, fmt.Sprintf("one line of plain text of 1 to %d bytes", maxLineText), plainText)
}

func plainText(s string) bool {
	if s == "" || len(s) > maxLineText || strings.TrimSpace(s) != s {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
}

// form reads a text that must have a certain form.
func (o *jsonObject) form(key, want string, ok func(string) bool) string {
	v, given := o.take(key)
	s, isText := v.value.(string)
	switch {
	case !given:
		return ""
	case !isText || !ok(s):
		o.wrong(v, key, want)
		return ""
	}
	return s
}

func (o *jsonObject) flag(key string) bool {
	v, ok := o.take(key)
	b, isFlag := v.value.(bool)
	if ok && !isFlag {
		o.wrong(v, key, "true or false")
	}
	return b
}

// number reads a whole number of 1 or more.
func (o *jsonObject) number(key string) int64 {
	v, ok := o.take(key)
	if !ok {
		return 0
	}
	text, _ := v.value.(json.Number)
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 {
		o.wrong(v, key, "a whole number of 1 or more")
		return 0
	}
	return n
}

func (o *jsonObject) time(key string) time.Time {
	v, ok := o.take(key)
	if !ok {
		return time.Time{}
	}
	text, _ := v.value.(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Nanosecond() != 0 || t.Year() < 2000 || len(text) > len("2006-01-02T15:04:05-07:00") {
		o.wrong(v, key, `a time to the second, such as "2027-12-31T23:59:59Z"`)
		return time.Time{}
	}
	return t.UTC()
}

// ordered notes a problem unless one time is before another. Times that were not read are
// problems already.
func (o *jsonObject) ordered(early, late string, a, b time.Time) {
	if !a.IsZero() && !b.IsZero() && !a.Before(b) {
		o.file.add(o.line, fmt.Sprintf("%s%s is not before %s%s", o.path, early, o.path, late), "")
	}
}

// sub reads an object.
func (o *jsonObject) sub(key string) *jsonObject {
	v, ok := o.take(key)
	keys, isObject := v.value.(map[string]jsonValue)
	if ok && !isObject {
		o.wrong(v, key, "an object, { ... }")
	}
	if !isObject { // its keys are not missing one by one
		return &jsonObject{file: &jsonFile{body: o.file.body}}
	}
	return &jsonObject{file: o.file, path: o.path + key + ".", line: v.line, keys: keys}
}

// objects reads a list of objects.
func (o *jsonObject) objects(key string) []*jsonObject {
	v, ok := o.take(key)
	list, isList := v.value.([]jsonValue)
	if ok && !isList {
		o.wrong(v, key, "a list, [ ... ]")
	}
	var all []*jsonObject
	for i, item := range list {
		keys, isObject := item.value.(map[string]jsonValue)
		if !isObject {
			o.wrong(item, fmt.Sprintf("%s[%d]", key, i), "an object, { ... }")
			continue
		}
		all = append(all, &jsonObject{file: o.file, path: fmt.Sprintf("%s%s[%d].", o.path, key, i), line: item.line, keys: keys})
	}
	return all
}

// texts reads a list of at least one text, each with its line. What a text must look like is
// the caller's to check.
func (o *jsonObject) texts(key string) []jsonValue {
	v, ok := o.take(key)
	list, isList := v.value.([]jsonValue)
	if ok && (!isList || len(list) == 0) {
		o.wrong(v, key, "a list of one text or more, [ ... ]")
	}
	return list
}

// done reports every key that nobody took.
func (o *jsonObject) done() {
	for _, key := range slices.Sorted(maps.Keys(o.keys)) {
		hint := "the keys here are " + strings.Join(o.known, ", ")
		if near := manifest.Nearest(key, o.known); near != "" {
			hint = "did you mean " + near + "?"
		}
		o.file.add(o.keys[key].line, fmt.Sprintf("unknown key %s", shown(o.path+key)), hint)
	}
}
