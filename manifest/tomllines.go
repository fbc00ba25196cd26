package manifest

import (
	"strconv"
	"strings"
)

// maxPaths is how many bytes of paths are kept. A long file of long keys has more; a
// problem in it may then have the line of its table.
const maxPaths = 8 << 20

// A keyPath names a key of a TOML file: its parts, each with a NUL after it. An item of
// a list is a part too: its number, from 0.
type keyPath string

func (p keyPath) key(name string) keyPath { return p + keyPath(name) + "\x00" }

func (p keyPath) item(n int) keyPath { return p.key(strconv.Itoa(n)) }

// parent is the path without its last part.
func (p keyPath) parent() keyPath {
	return p[:strings.LastIndexByte(strings.TrimSuffix(string(p), "\x00"), 0)+1]
}

// keyLines tells on which line, from 1, a key stands first.
type keyLines map[keyPath]int

// of gives the line of a key; of the table that lacks it where there is none; of the
// file's start where there is no table either.
func (k keyLines) of(at keyPath) int {
	for ; at != ""; at = at.parent() {
		if line, ok := k[at]; ok {
			return line
		}
	}
	return 1
}

// findKeys finds the lines of all keys, which the parser does not tell. s is a file that
// the parser has accepted: of another one, the lines may be wrong.
func findKeys(s string) keyLines {
	f := keyFinder{s: s, line: 1, lines: make(keyLines), items: make(map[keyPath]int)}
	for table := keyPath(""); ; {
		f.space()
		switch {
		case f.i >= len(s):
			return f.lines
		case s[f.i] == '[':
			table = f.header()
		default:
			f.pair(table)
		}
	}
}

// A keyFinder walks over a TOML file. Each of its steps goes on by a byte at least.
type keyFinder struct {
	s       string
	i, line int
	lines   keyLines
	items   map[keyPath]int // of each list of tables, how many [[headers]] it had
	noted   int             // bytes of the paths in lines
}

// skip goes on to i, and counts the lines.
func (f *keyFinder) skip(i int) {
	i = min(i, len(f.s))
	f.line += strings.Count(f.s[f.i:i], "\n")
	f.i = i
}

// skipTo goes on to the next of the signs, or to the end.
func (f *keyFinder) skipTo(signs string) {
	if n := strings.IndexAny(f.s[f.i:], signs); n >= 0 {
		f.skip(f.i + n)
		return
	}
	f.skip(len(f.s))
}

// space skips white space, line ends and comments.
func (f *keyFinder) space() {
	for f.i < len(f.s) && strings.IndexByte(" \t\r\n#", f.s[f.i]) >= 0 {
		if f.s[f.i] == '#' {
			f.skipTo("\n")
			continue
		}
		f.skip(f.i + 1)
	}
}

// is tells of the present byte.
func (f *keyFinder) is(c byte) bool { return f.i < len(f.s) && f.s[f.i] == c }

// header reads [table] or [[table]] and gives its path.
func (f *keyFinder) header() keyPath {
	list := strings.HasPrefix(f.s[f.i:], "[[")
	f.skip(f.i + 1)
	if list {
		f.skip(f.i + 1)
	}
	path := f.key("")
	if list {
		f.items[path]++
		path = path.item(f.items[path] - 1)
		f.note(path)
	}
	f.skipTo("\n")
	return path
}

// pair reads key = value in the table.
func (f *keyFinder) pair(table keyPath) {
	path := f.key(table)
	if !f.is('=') {
		f.skip(f.i + 1) // no TOML
		return
	}
	f.skip(f.i + 1)
	f.value(path)
}

// key reads a key with its dots, and notes the line of each of its parts.
func (f *keyFinder) key(path keyPath) keyPath {
	for {
		f.space()
		path = path.key(f.part())
		f.note(path)
		f.space()
		if !f.is('.') {
			return path
		}
		f.skip(f.i + 1)
		if n := f.items[path]; n > 0 { // [list.key] is a key of the list's last table
			path = path.item(n - 1)
		}
	}
}

func (f *keyFinder) note(path keyPath) {
	if _, known := f.lines[path]; !known && f.noted+len(path) <= maxPaths {
		f.lines[path] = f.line
		f.noted += len(path)
	}
}

func (f *keyFinder) part() string {
	start := f.i
	if f.is('"') || f.is('\'') {
		f.skip(f.i + stringLength(f.s[f.i:]))
		text := f.s[start:f.i]
		if plain, err := strconv.Unquote(text); err == nil && text[0] == '"' {
			return plain
		}
		return strings.Trim(text, text[:1])
	}
	f.skipTo(" \t\r\n.=]")
	return f.s[start:f.i]
}

// value reads a value, and notes the keys in it.
func (f *keyFinder) value(path keyPath) {
	f.space()
	switch {
	case f.is('"'), f.is('\''):
		f.skip(f.i + stringLength(f.s[f.i:]))
	case f.is('{'):
		f.each('}', func(int) { f.pair(path) })
	case f.is('['):
		f.each(']', func(n int) {
			f.note(path.item(n))
			f.value(path.item(n))
		})
	default:
		f.skipTo(",]}\n#")
	}
}

// each reads the items up to the closing bracket.
func (f *keyFinder) each(end byte, item func(n int)) {
	f.skip(f.i + 1)
	for n := 0; ; n++ {
		f.space()
		if f.is(end) || f.i >= len(f.s) {
			break
		}
		start := f.i
		item(n)
		f.space()
		if f.is(',') || f.i == start {
			f.skip(f.i + 1)
		}
	}
	f.skip(f.i + 1)
}
