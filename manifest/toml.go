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

// DecodeTOML reads a TOML file of at most 512 KiB into v, a pointer to a struct whose fields
// have toml tags. A key that is missing leaves its field as it is. The name of the file is
// used in messages only.
//
// The error is *Problems when the file is not TOML or a value has another type than its field.
// Unknown keys are not an error yet: Document.Err reports them, together with the problems that
// the caller adds.
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
	// The keys are looked at first: the library accepts keys in any case, stops at the first value
	// that does not fit, and takes minutes for some files of this size.
	w := tomlWalker{Document: t, root: reflect.TypeOf(v).Elem(), lists: make(map[string]int)}
	w.parser.Reset(data)
	if err := w.walk(); err != nil {
		line, column := t.position(w.last)
		return refuse(line, column, err.Error(), "give settings only, a few words a key")
	}
	if w.misfit {
		return nil, t.Err()
	}
	if err := toml.Unmarshal(data, v); err != nil {
		line, column := 1, 0
		if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
			line, column = decode.Position()
		}
		return refuse(line, column, "not valid TOML: "+strings.TrimPrefix(err.Error(), "toml: "), `a line is key = "text", [table] or # comment`)
	}
	return t, nil
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

// A tomlWalker compares the keys of a file with the struct that they are read into.
type tomlWalker struct {
	*Document
	parser unstable.Parser
	root   reflect.Type
	lists  map[string]int // list of tables -> how many [[headers]] it had
	misfit bool           // a value has another type than its field
	last   int            // place of the last key
}

// walk notes the place of every key, and the problems of unknown keys and of values. A nil type
// stands for a value that may be anything. The error is that the file is beyond the limits.
func (w *tomlWalker) walk() error {
	table, in := "", w.root
	for w.parser.NextExpression() {
		e := w.parser.Expression()
		if e.Kind == unstable.KeyValue {
			if err := w.pair(table, in, e); err != nil {
				return err
			}
			continue
		}
		var err error
		table, in, err = w.key("", w.root, e.Key())
		if err != nil {
			return err
		}
		if e.Kind == unstable.Table {
			in = w.want(table, in, reflect.Struct, reflect.Map)
			continue
		}
		in = itemType(w.want(table, in, reflect.Slice))
		w.lists[table]++
		table = fmt.Sprintf("%s[%d]", table, w.lists[table]-1)
		if _, err := w.note(table, int(e.Child().Raw.Offset)); err != nil {
			return err
		}
	}
	return nil // the library says what is not TOML
}

func (w *tomlWalker) pair(table string, in reflect.Type, e *unstable.Node) error {
	key, of, err := w.key(table, in, e.Key())
	if err != nil {
		return err
	}
	return w.value(key, of, e.Value())
}

// key adds the parts of a dotted key to the table's name, and gives the type of its field.
func (w *tomlWalker) key(table string, in reflect.Type, parts unstable.Iterator) (string, reflect.Type, error) {
	for parts.Next() {
		if n := w.lists[table]; n > 0 { // [list.key] is a key of the list's last table
			table, in = fmt.Sprintf("%s[%d]", table, n-1), itemType(in)
		}
		part := string(parts.Node().Data)
		key := tomlKey(table, part)
		first, err := w.note(key, int(parts.Node().Raw.Offset))
		if err != nil {
			return "", nil, err
		}
		in = w.want(table, in, reflect.Struct, reflect.Map)
		switch {
		case in == nil:
		case in.Kind() == reflect.Map:
			in = settled(in.Elem())
		default:
			keys := tomlKeys(in)
			if i := slices.Index(keys, part); i >= 0 {
				in = settled(in.Field(i).Type)
				break
			}
			in = nil
			if first {
				hint := keyHint(part, keys)
				if other := tableWith(w.root, "", part); other != "" {
					hint = "it is a key of [" + other + "]"
				}
				w.Add(key, unknownKey(part, table), hint)
			}
		}
		table = key
	}
	return table, in, nil
}

func (w *tomlWalker) value(key string, in reflect.Type, value *unstable.Node) error {
	children := value.Children()
	switch value.Kind {
	case unstable.InlineTable:
		in = w.want(key, in, reflect.Struct, reflect.Map)
		for children.Next() {
			if err := w.pair(key, in, children.Node()); err != nil {
				return err
			}
		}
	case unstable.Array:
		in = itemType(w.want(key, in, reflect.Slice))
		for i := 0; children.Next(); i++ {
			item, node := fmt.Sprintf("%s[%d]", key, i), children.Node()
			at := int(node.Raw.Offset)
			if node.Kind == unstable.InlineTable && node.Child() != nil { // it stands where its first key does
				first := node.Child().Key()
				first.Next()
				at = int(first.Node().Raw.Offset)
			}
			if at == 0 { // the library does not say where a list in a list is
				at = w.places[key]
			}
			if _, err := w.note(item, at); err != nil {
				return err
			}
			if err := w.value(item, in, node); err != nil {
				return err
			}
		}
	case unstable.String:
		w.want(key, in, reflect.String)
	case unstable.Bool:
		w.want(key, in, reflect.Bool)
	case unstable.Integer:
		w.want(key, in, reflect.Int, reflect.Int64, reflect.Float64)
	case unstable.Float:
		w.want(key, in, reflect.Float64)
	default:
		w.want(key, in)
	}
	return nil
}

// note gives the key its place, if it has none yet.
func (w *tomlWalker) note(key string, at int) (first bool, err error) {
	w.last = at
	if w.Has(key) {
		return false, nil
	}
	if len(w.places) == maxTOMLKeys || len(key) > maxTOMLPath || strings.Count(key, ".")+strings.Count(key, "[") > maxTOMLDepth {
		return false, errors.New("the file has too many keys, or a key is too long or nested too deep")
	}
	w.places[key] = at
	return true, nil
}

// want gives the type back if it is of one of the kinds that the value can be stored in, and nil,
// with a problem, if it is not.
func (w *tomlWalker) want(key string, in reflect.Type, kinds ...reflect.Kind) reflect.Type {
	if in == nil || slices.Contains(kinds, in.Kind()) {
		return in
	}
	w.misfit = true
	name := key[strings.LastIndexByte(key, '.')+1:]
	switch in.Kind() {
	case reflect.String:
		w.Add(key, name+" is not a text", fmt.Sprintf(`write %s = "..."`, name))
	case reflect.Bool:
		w.Add(key, name+" is not true or false", fmt.Sprintf("write %s = true", name))
	case reflect.Slice:
		w.Add(key, name+" is not a list of tables", fmt.Sprintf("write %s = [{...}, {...}]", name))
	case reflect.Struct, reflect.Map:
		w.Add(key, name+" is not a table", fmt.Sprintf("write [%s] on a line, and its keys below", key))
	default:
		w.Add(key, name+" is not a number", fmt.Sprintf("write %s = 1", name))
	}
	return nil
}

// itemType is the type of a list's items.
func itemType(list reflect.Type) reflect.Type {
	if list == nil || list.Kind() != reflect.Slice {
		return nil
	}
	return settled(list.Elem())
}

// settled is the type behind a pointer, nil for a type that may be anything.
func settled(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Interface {
		return nil
	}
	return t
}

// tomlKeys gives the keys of a struct's fields.
func tomlKeys(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i] = t.Field(i).Tag.Get("toml")
	}
	return keys
}

// tableWith finds a table under t that has the key, "" for none.
func tableWith(t reflect.Type, table, key string) string {
	for i, name := range tomlKeys(t) {
		of := settled(t.Field(i).Type)
		if of != nil && of.Kind() == reflect.Slice {
			of = itemType(of)
		}
		if of == nil || of.Kind() != reflect.Struct {
			continue
		}
		sub := tomlKey(table, name)
		if slices.Contains(tomlKeys(of), key) {
			return sub
		}
		if found := tableWith(of, sub, key); found != "" {
			return found
		}
	}
	return ""
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
