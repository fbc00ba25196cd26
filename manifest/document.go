package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/userfile"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// Limits of TOML and JSON files. The TOML library compares every key with all that came before: 40,000
// keys take it a second, and a schema of 15,000 labels has 30,000. A grant has about 1 kB.
const (
	maxTOML     = 512 << 10
	maxTOMLKeys = 40_000
	maxTOMLPath = 600 // bytes of a key and of the tables that it stands in
	maxJSON     = 64 << 10
	maxJSONText = 500 // bytes of a text
	maxDepth    = 10  // keys and lists that a key stands in
)

// A Document is a TOML or JSON file that was read strictly into a struct: it knows the place of
// every key, and gathers the problems of the file.
type Document struct {
	file     string
	data     []byte
	tag      string         // of the struct's fields: toml or json
	places   map[string]int // key -> offset
	problems []Problem
}

func newDocument(file string, data []byte, tag string, most int) (*Document, error) {
	t := &Document{file: file, data: userfile.Unmarked(data), tag: tag, places: make(map[string]int)}
	if len(data) > most {
		return nil, t.refuse(1, 0, fmt.Sprintf("the file is larger than %d KiB", most>>10), "is it the right file?")
	}
	if table.IsUTF16(data) {
		return nil, t.refuse(1, 1, table.UTF16, table.SaveAsUTF8)
	}
	return t, nil
}

func (t *Document) refuse(line, column int, message, hint string) error {
	return table.One(&Problem{File: t.file, Line: line, Column: column, Message: message, Hint: hint})
}

// DecodeTOML reads a TOML file of at most 512 KiB into v, a pointer to a struct whose fields have toml tags; a missing
// key leaves its field as it is. The error is *Problems when the file is not TOML or a value has another type than
// its field. Unknown keys are reported by Document.Err, together with the problems that the caller adds.
func DecodeTOML(file string, data []byte, v any) (*Document, error) {
	t, err := newDocument(file, data, "toml", maxTOML)
	if err != nil {
		return nil, err
	}
	// The keys are counted first: the library takes minutes for some files of this size.
	w := tomlWalker{Document: t, lists: make(map[string]int)}
	data = t.data
	w.parser.Reset(data)
	w.walk()
	if w.beyond {
		line, column := t.position(w.last)
		return nil, t.refuse(line, column, "the file has too many keys, or a key is too long or nested too deep",
			"give settings only, a few words a key")
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		line, column := 1, 0
		if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
			line, column = decode.Position()
		}
		message := "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")
		return nil, t.refuse(line, column, message, `a line is key = "text", [table] or # comment`)
	}
	// The library alone, with DisallowUnknownFields, would let NAME replace name, stop at the first value that does not
	// fit, and say so in types of Go.
	if !t.fit("", reflect.TypeOf(v).Elem(), tree) {
		return nil, t.Err()
	}
	if err := toml.Unmarshal(data, v); err != nil { // of a key in another case, which is unknown
		return nil, cmp.Or(t.Err(), err)
	}
	return t, nil
}

// DecodeJSON reads a JSON file of at most 64 KiB into v, a pointer to a struct with json tags. Every key must be there,
// once and in its own case, but those tagged omitempty; null is refused. A text is one line of plain text, a number 1
// or more, a time to the second: what a signature is for must have one meaning. The error is *Problems.
func DecodeJSON(file string, data []byte, v any) (*Document, error) {
	t, err := newDocument(file, data, "json", maxJSON)
	if err != nil {
		return nil, err
	}
	data = t.data
	// All of it is checked before any of it is read, so what follows meets valid JSON only.
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		line, column := t.position(max(0, int(syntax.Offset)-1))
		return nil, t.refuse(line, column, "not valid JSON: "+syntax.Error(), "one JSON object, and nothing after it")
	}
	start := jsonscan.Skip(string(data), 0)
	if data[start] != '{' {
		return nil, t.refuse(1, 1, "not a JSON object", "it starts with { and ends with }")
	}
	t.fit("", reflect.TypeOf(v).Elem(), t.jsonTree("", start, string(data[start:]), 0))
	if err := t.Err(); err != nil {
		return nil, err
	}
	return t, json.Unmarshal(data, v)
}

// jsonTree gives a value as the TOML library would: maps, lists, texts and numbers. It notes the places of the keys.
func (t *Document) jsonTree(key string, at int, text string, depth int) any {
	switch {
	case depth > maxDepth: // no file of ours goes there, and every level is read once more for each around it
		return nil
	case text[0] == '{':
		tree := make(map[string]any)
		for m := range jsonscan.Members(text) {
			full := tomlKey(key, m.Key)
			_, twice := tree[m.Key]
			t.places[full] = at + m.From
			if twice {
				t.Add(full, fmt.Sprintf("the key %s stands twice", table.Quote(m.Key)), "keep one of them")
			}
			tree[m.Key] = t.jsonTree(full, at+m.At, m.Value, depth+1)
		}
		return tree
	case text[0] == '[':
		items := []any{}
		for from, item := range jsonscan.Items(text) {
			full := fmt.Sprintf("%s[%d]", key, len(items))
			t.places[full] = at + from
			items = append(items, t.jsonTree(full, at+from, item, depth+1))
		}
		return items
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil { // 1.0 is not a whole number, and 1e99 has no room
		return n
	}
	var value any
	_ = json.Unmarshal([]byte(text), &value) // it is valid
	return value
}

// tomlKey names a key for Has and Add: the table's name (such as "images.host[1]", "" for the
// file itself), then the key, in quotes where it needs them.
func tomlKey(table, key string) string {
	if !value.IsWord(strings.ReplaceAll(key, "-", "_"), maxTOMLPath) {
		key = value.TOML(key)
	}
	return strings.TrimPrefix(table+"."+key, ".")
}

// Has reports whether the file has the key.
func (t *Document) Has(key string) bool {
	_, ok := t.places[key]
	return ok
}

// Add notes a problem at the key, or at the table that lacks it.
func (t *Document) Add(key, message, hint string) {
	// A key that is missing has no place of its own.
	for key != "" && !t.Has(key) {
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	p := Problem{File: t.file, Line: 1, Message: message, Hint: hint}
	if key != "" {
		p.Line, p.Column = t.position(t.places[key])
	}
	t.problems = append(t.problems, p)
}

// Err returns the problems in the order of the file as *Problems, nil where there are none.
func (t *Document) Err() error {
	all := t.found()
	return all.Err()
}

func (t *Document) found() (all Problems) {
	// Keys were met in the order of maps, which changes.
	slices.SortStableFunc(t.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all.Add(t.problems...)
	return all
}

func (t *Document) position(offset int) (line, column int) {
	before := t.data[:offset]
	return 1 + bytes.Count(before, []byte("\n")), offset - bytes.LastIndexByte(before, '\n')
}

// fit notes the unknown keys of a value, and reports whether it and all that it holds have the types of their fields.
func (t *Document) fit(key string, of reflect.Type, found any) bool {
	name, isTOML := key, t.tag == "toml"
	if isTOML {
		name = key[strings.LastIndexByte(key, '.')+1:] // as it stands on its line
	}
	fits, ok := true, true // the parts, the value itself
	var want, strict, write string
	kind := of.Kind()
	switch {
	case kind == reflect.Interface: // anything
	case kind == reflect.String:
		var text string
		text, ok = found.(string)
		// U+FFFD stands for what was not UTF-8: two files with other bytes would say the same.
		ok = ok && (isTOML || value.IsLine(text, maxJSONText) && !strings.ContainsRune(text, utf8.RuneError))
		want, strict, write = "a text", fmt.Sprintf("one line of plain text of 1 to %d bytes", maxJSONText), name+` = "..."`
	case kind == reflect.Bool:
		_, ok = found.(bool)
		want, strict, write = "true or false", "true or false", name+" = true"
	case kind == reflect.Slice:
		var items []any
		items, ok = found.([]any)
		want, strict, write = "a list of tables", "a list, [ ... ]", name+" = [{...}, {...}]"
		for i, item := range items {
			fits = t.fit(fmt.Sprintf("%s[%d]", key, i), of.Elem(), item) && fits
		}
	case of == reflect.TypeFor[time.Time]():
		text, _ := found.(string)
		var moment time.Time
		// An earlier year is that of a clock that was not set.
		ok = moment.UnmarshalText([]byte(text)) == nil && moment.Nanosecond() == 0 && moment.Year() >= 2000
		strict = `a time to the second, such as "2027-12-31T23:59:59Z"`
	case kind == reflect.Map || kind == reflect.Struct:
		var table map[string]any
		table, ok = found.(map[string]any)
		want, strict, write = "a table", "an object, { ... }", "["+key+"] on a line, and its keys below"
		fits = t.fitTable(key, of, table)
	default:
		n, isWhole := found.(int64)
		_, isFloat := found.(float64)
		ok = isWhole && (isTOML || n >= 1) || isFloat && kind == reflect.Float64
		want, strict, write = "a number", "a whole number of 1 or more", name+" = 1"
	}
	switch {
	case ok:
	case isTOML:
		t.Add(key, name+" is not "+want, "write "+write)
	default:
		t.Add(key, name+" is not "+strict, "")
	}
	return ok && fits
}

func (t *Document) fitTable(key string, of reflect.Type, table map[string]any) bool {
	fits, fields := true, make(map[string]reflect.Type)
	var names []string
	if of.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(of) {
			name, option, _ := strings.Cut(f.Tag.Get(t.tag), ",")
			if name == "" {
				continue // an embedded struct, whose fields are here too
			}
			fields[name], names = f.Type, append(names, name)
			// What is signed leaves nothing to a default.
			if _, given := table[name]; !given && table != nil && t.tag == "json" && option != "omitempty" {
				t.Add(tomlKey(key, name), tomlKey(key, name)+" is missing", "it has to be there")
			}
		}
	}
	for part, item := range table {
		in, known := fields[part]
		if of.Kind() == reflect.Map {
			in, known = of.Elem(), true
		}
		if known {
			fits = t.fit(tomlKey(key, part), in, item) && fits
		} else {
			t.Add(tomlKey(key, part), unknownKey(part, key), keyHint(part, names))
		}
	}
	return fits
}

func unknownKey(key, section string) string {
	if section == "" {
		return "unknown key " + table.Quote(key)
	}
	return fmt.Sprintf("unknown key %s in [%s]", table.Quote(key), listPlace.ReplaceAllString(section, ""))
}

func keyHint(key string, keys []string) string {
	if near := Nearest(key, keys); near != "" {
		return "did you mean " + near + "?"
	}
	return "the keys here are " + List(keys)
}

var listPlace = regexp.MustCompile(`\[\d+\]`)

// A tomlWalker notes the place of every key, within the limits.
type tomlWalker struct {
	*Document
	parser unstable.Parser
	lists  map[string]int // list of tables -> how many [[headers]] it had
	last   int            // place of the last key
	beyond bool           // the last key is beyond the limits: nothing after it counts
}

func (w *tomlWalker) walk() {
	table := ""
	for !w.beyond && w.parser.NextExpression() {
		e := w.parser.Expression()
		if e.Kind == unstable.KeyValue {
			w.value(w.key(table, e.Key()), e.Value())
			continue
		}
		table = w.key("", e.Key())
		if e.Kind == unstable.ArrayTable {
			w.lists[table]++
			table = fmt.Sprintf("%s[%d]", table, w.lists[table]-1)
			w.note(table, int(e.Child().Raw.Offset))
		}
	}
}

func (w *tomlWalker) key(table string, parts unstable.Iterator) string {
	for !w.beyond && parts.Next() { // a key of a whole file's length would take long to build
		if n := w.lists[table]; n > 0 { // [list.key] is a key of the list's last table
			table = fmt.Sprintf("%s[%d]", table, n-1)
		}
		table = tomlKey(table, string(parts.Node().Data))
		w.note(table, int(parts.Node().Raw.Offset))
	}
	return table
}

func (w *tomlWalker) value(key string, value *unstable.Node) {
	children := value.Children()
	for i := 0; !w.beyond && children.Next(); i++ {
		node := children.Node()
		if value.Kind == unstable.InlineTable {
			w.value(w.key(key, node.Key()), node.Value())
			continue
		}
		at := int(node.Raw.Offset)
		if at == 0 { // the library does not say where a table or a list in a list is
			at = w.places[key]
		}
		item := fmt.Sprintf("%s[%d]", key, i)
		w.note(item, at)
		w.value(item, node)
	}
}

func (w *tomlWalker) note(key string, at int) {
	w.last = at
	// A [[list]] is named again for each of its tables; the place of the first counts.
	if w.Has(key) {
		return
	}
	w.beyond = len(w.places) >= maxTOMLKeys || len(key) > maxTOMLPath ||
		strings.Count(key, ".")+strings.Count(key, "[") > maxDepth
	w.places[key] = at
}
