package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Limits of a TOML file. The library compares every key with all that came before: 40,000
// keys take it a second, and a schema of 15,000 labels has 30,000.
const (
	maxTOML      = 512 << 10
	maxTOMLKeys  = 40_000
	maxTOMLPath  = 600 // bytes of a key and of the tables that it stands in
	maxTOMLDepth = 10  // keys and lists that a key stands in
)

// A Document is a TOML or JSON file that was read strictly into a struct: it knows the place of
// every key, and gathers the problems of the file.
type Document struct {
	file     string
	data     []byte
	places   map[string]int // key -> offset
	problems []Problem
}

// DecodeTOML reads a TOML file of at most 512 KiB into v, a pointer to a struct whose fields have toml tags; a missing
// key leaves its field as it is. The error is *Problems when the file is not TOML or a value has another type than
// its field. Unknown keys are reported by Document.Err, together with the problems that the caller adds.
func DecodeTOML(file string, data []byte, v any) (*Document, error) {
	t := &Document{file: file, data: data, places: make(map[string]int)}
	refuse := func(line, column int, message, hint string) (*Document, error) {
		return nil, one(&Problem{File: file, Line: line, Column: column, Message: message, Hint: hint})
	}
	if len(data) > maxTOML {
		return refuse(1, 0, "the file is larger than 512 KiB", "it holds settings only")
	}
	if message, hint := byteOrderMark(data); message != "" {
		return refuse(1, 1, message, hint)
	}
	// The keys are counted first: the library takes minutes for some files of this size.
	w := tomlWalker{Document: t, lists: make(map[string]int)}
	w.parser.Reset(data)
	w.walk()
	if w.beyond {
		line, column := t.position(w.last)
		return refuse(line, column, "the file has too many keys, or a key is too long or nested too deep",
			"give settings only, a few words a key")
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		line, column := 1, 0
		if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
			line, column = decode.Position()
		}
		message := "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")
		return refuse(line, column, message, `a line is key = "text", [table] or # comment`)
	}
	// The library would accept keys in any case, and stop at the first value that does not fit.
	if !t.fit("", reflect.TypeOf(v).Elem(), tree) {
		return nil, t.Err()
	}
	return t, toml.Unmarshal(data, v)
}

// tomlKey names a key for Has and Add: the table's name (such as "images.host[1]", "" for the
// file itself), then the keys, in quotes where they need them.
func tomlKey(table string, keys ...string) string {
	for _, key := range keys {
		if !validWord(strings.ReplaceAll(key, "-", "_"), maxTOMLPath) {
			key = tomlText(key)
		}
		table = strings.TrimPrefix(table+"."+key, ".")
	}
	return table
}

// Has reports whether the file has the key.
func (t *Document) Has(key string) bool {
	_, ok := t.places[key]
	return ok
}

// Add notes a problem at the key, or at the table that lacks it.
func (t *Document) Add(key, message, hint string) {
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
	return all.err()
}

func (t *Document) found() (all Problems) {
	slices.SortStableFunc(t.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all.add(t.problems...)
	return all
}

func (t *Document) position(offset int) (line, column int) {
	before := t.data[:offset]
	return 1 + bytes.Count(before, []byte("\n")), offset - bytes.LastIndexByte(before, '\n')
}

// A tomlWalker notes the place of every key, within the limits.
type tomlWalker struct {
	*Document
	parser unstable.Parser
	lists  map[string]int // list of tables -> how many [[headers]] it had
	last   int            // place of the last key
	beyond bool           // the last key is beyond the limits: nothing after it counts
}

// walk goes through the file as far as it is TOML and within the limits.
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

// key adds the parts of a dotted key to the table's name.
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

// note gives the key its place, if it has none yet.
func (w *tomlWalker) note(key string, at int) {
	if w.beyond {
		return
	}
	w.last = at
	if w.Has(key) {
		return
	}
	w.beyond = len(w.places) == maxTOMLKeys || len(key) > maxTOMLPath ||
		strings.Count(key, ".")+strings.Count(key, "[") > maxTOMLDepth
	w.places[key] = at
}

// fit notes the unknown keys of a value, and reports whether it and all that it holds have the types of
// their fields.
func (t *Document) fit(key string, of reflect.Type, value any) bool {
	name := key[strings.LastIndexByte(key, '.')+1:]
	fits, ok := true, true // the parts, the value itself
	var want, write string
	switch of.Kind() {
	case reflect.Interface: // anything
	case reflect.String:
		_, ok = value.(string)
		want, write = "a text", name+` = "..."`
	case reflect.Bool:
		_, ok = value.(bool)
		want, write = "true or false", name+" = true"
	case reflect.Slice:
		var items []any
		items, ok = value.([]any)
		want, write = "a list of tables", name+" = [{...}, {...}]"
		for i, item := range items {
			fits = t.fit(fmt.Sprintf("%s[%d]", key, i), of.Elem(), item) && fits
		}
	case reflect.Map, reflect.Struct:
		var table map[string]any
		table, ok = value.(map[string]any)
		want, write = "a table", "["+key+"] on a line, and its keys below"
		for part, item := range table {
			full := tomlKey(key, part)
			if of.Kind() == reflect.Map {
				fits = t.fit(full, of.Elem(), item) && fits
			} else if i := slices.Index(tomlKeys(of), part); i >= 0 {
				fits = t.fit(full, of.Field(i).Type, item) && fits
			} else {
				t.Add(full, unknownKey(part, key), keyHint(part, tomlKeys(of)))
			}
		}
	default:
		_, ok = value.(int64)
		if _, isFloat := value.(float64); isFloat && of.Kind() == reflect.Float64 {
			ok = true
		}
		want, write = "a number", name+" = 1"
	}
	if !ok {
		t.Add(key, name+" is not "+want, "write "+write)
	}
	return ok && fits
}

// tomlKeys gives the keys of a struct's fields.
func tomlKeys(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i] = t.Field(i).Tag.Get("toml")
	}
	return keys
}

// unknownKey and keyHint word the problem of a key that its table does not have.
func unknownKey(key, table string) string {
	if table == "" {
		return "unknown key " + quote(key)
	}
	return fmt.Sprintf("unknown key %s in [%s]", quote(key), listPlace.ReplaceAllString(table, ""))
}

func keyHint(key string, keys []string) string {
	if near := Nearest(key, keys); near != "" {
		return "did you mean " + near + "?"
	}
	return "the keys here are " + list(keys)
}

var listPlace = regexp.MustCompile(`\[\d+\]`)
