package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// A tomlFile is a TOML file that is read key by key, so that every key nobody asked
// for, and every value of a wrong type, is a Problem with its line.
type tomlFile struct {
	file  string
	lines keyLines
	root  map[string]any
	found []Problem // in the order of reading
}

func parseTOML(b []byte, file string) (*tomlFile, *Problem) {
	bad := func(line, column int, message, hint string) *Problem {
		return &Problem{File: file, Line: line, Column: column, Message: message, Hint: hint}
	}
	if len(b) > maxTOML {
		return nil, bad(1, 0, "the file is larger than 512 KiB", "it holds settings only; the entries stand in the manifest")
	}
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return nil, bad(1, 1, "the file starts with a byte order mark", `save it as "UTF-8", without BOM`)
	}
	if line, ok := tomlShape(string(b)); !ok {
		return nil, bad(line, 0, "a key is too long or brackets are nested too deep", "release.toml needs keys of a few words, and tables in lists at most")
	}
	t := &tomlFile{file: file}
	_, err := toml.Decode(string(b), &t.root)
	var parse toml.ParseError
	switch {
	case errors.As(err, &parse):
		lines := strings.Split(string(b), "\n")
		line := min(max(parse.Position.Line, 1), len(lines))
		column := max(parse.Position.Col, 0)
		if column > len(lines[line-1])+1 { // of a key that stands twice the parser gives no place in the line
			column = 0
		}
		return nil, bad(line, column, "not valid TOML: "+parse.Message, `a line is key = "text", [table] or # comment`)
	case err != nil:
		return nil, bad(1, 0, "not valid TOML: "+err.Error(), `a line is key = "text", [table] or # comment`)
	}
	t.lines = findKeys(string(b))
	return t, nil
}

// add notes a problem at a key.
func (t *tomlFile) add(at keyPath, message, hint string) {
	t.found = append(t.found, Problem{File: t.file, Line: t.lines.of(at), Message: message, Hint: hint})
}

// problems gives what was noted, in file order; nil when nothing was.
func (t *tomlFile) problems() *Problems {
	if len(t.found) == 0 {
		return nil
	}
	slices.SortStableFunc(t.found, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	var p Problems
	for _, x := range t.found {
		p.add(x)
	}
	return &p
}

// A table is one TOML table being read. Reading a key takes it out, so that what is
// left at the end is unknown.
type table struct {
	file    *tomlFile
	path    keyPath
	section string // the path as a person reads it: without the places in lists
	keys    map[string]any
	known   []string
}

func (t *tomlFile) table(path keyPath, section string, keys map[string]any) *table {
	return &table{file: t, path: path, section: section, keys: maps.Clone(keys)}
}

func (t *table) add(key, message, hint string) { t.file.add(t.path.key(key), message, hint) }

func (t *table) take(key string) (any, bool) {
	t.known = append(t.known, key)
	v, ok := t.keys[key]
	delete(t.keys, key)
	return v, ok
}

// text reads a string; given tells whether the key is there (with the right type).
func (t *table) text(key string) (value string, given bool) {
	v, ok := t.take(key)
	if !ok {
		return "", false
	}
	s, isText := v.(string)
	if !isText {
		t.add(key, fmt.Sprintf("%s is not a text", key), fmt.Sprintf(`write %s = "..."`, key))
	}
	return s, isText
}

// date reads a day, as text or as a TOML date, and gives it as YYYY-MM-DD.
func (t *table) date(key string) string {
	v, ok := t.take(key)
	if !ok {
		return ""
	}
	switch d := v.(type) {
	case time.Time:
		return d.Format(time.DateOnly)
	case string:
		if _, err := time.Parse(time.DateOnly, d); err == nil || d == "" {
			return d
		}
	}
	t.add(key, fmt.Sprintf("%s is not a date", key), fmt.Sprintf("write %s = 2025-12-31", key))
	return ""
}

func (t *table) flag(key string) bool {
	v, ok := t.take(key)
	if !ok {
		return false
	}
	b, isBool := v.(bool)
	if !isBool {
		t.add(key, fmt.Sprintf("%s is not true or false", key), fmt.Sprintf("write %s = true", key))
	}
	return b
}

// sub reads a table; a missing one is empty.
func (t *table) sub(key string) *table {
	v, ok := t.take(key)
	section := key
	if t.section != "" {
		section = t.section + "." + key
	}
	keys, isTable := v.(map[string]any)
	if ok && !isTable {
		t.add(key, fmt.Sprintf("%s is not a table", key), fmt.Sprintf("write [%s] on a line, and its keys below", section))
	}
	return t.file.table(t.path.key(key), section, keys)
}

// tables reads an array of tables, written [[key]] or [{...}, {...}].
func (t *table) tables(key string) []map[string]any {
	v, ok := t.take(key)
	if !ok {
		return nil
	}
	switch list := v.(type) {
	case []map[string]any:
		return list
	case []any:
		all := make([]map[string]any, 0, len(list))
		for _, item := range list {
			if m, isTable := item.(map[string]any); isTable {
				all = append(all, m)
			}
		}
		if len(all) == len(list) {
			return all
		}
	}
	t.add(key, fmt.Sprintf("%s is not a list of tables", key), fmt.Sprintf("write %s = [{...}, {...}]", key))
	return nil
}

// done reports every key that nobody took.
func (t *table) done() {
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		where := ""
		if t.section != "" {
			where = " in [" + t.section + "]"
		}
		hint := "the keys here are " + list(t.known)
		if near := Nearest(key, t.known); near != "" {
			hint = "did you mean " + near + "?"
		}
		t.add(key, fmt.Sprintf("unknown key %s%s", quote(key), where), hint)
	}
}
