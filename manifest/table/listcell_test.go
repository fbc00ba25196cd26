package table_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"rehydrate/manifest/table"
)

// TestParseLiteral: what programs write into a cell in place of a list or object, and texts that only begin alike.
func TestParseLiteral(t *testing.T) {
	const none, list, bare, object = table.NoLiteral, table.ListLiteral, table.BareList, table.ObjectLiteral
	for _, c := range []struct {
		text string
		kind table.Literal
		want string // the items with | between them
	}{
		{`['a', 'b']`, list, "a|b"}, {`["a","b"]`, list, "a|b"}, {` ['a'] `, list, "a"}, {"[]", list, ""},
		{`['a', "it's"]`, list, "a|it's"}, {`['it\'s']`, list, "it's"},
		{`[u'a', u'b']`, list, "a|b"}, {"['a' 'b'\n 'c']", list, "a|b|c"},
		{"array(['a', 'b'], dtype=object)", list, "a|b"}, {`{'a', 'b'}`, list, "a|b"}, {`('a', 'b')`, list, "a|b"},
		{`('a',)`, list, "a"}, {"frozenset({'a'})", list, "a"}, {"[1, 2]", list, "1|2"}, {"[0.1 0.2]", list, "0.1|0.2"},
		{"[True, False]", list, "True|False"}, {`["\u00e9", "\ud83d\ude00"]`, list, "é|😀"},
		{`['a\nb']`, list, "a\nb"}, {`['\d']`, list, `\d`}, {`["a\/b"]`, list, "a/b"}, {`['a, b']`, list, "a, b"},
		{`["a]"]`, list, "a]"}, {`['','b']`, list, "|b"},
		{"[a, b]", bare, "a|b"}, {"[deleted]", bare, "deleted"}, {"{a,b}", bare, "a|b"},
		{`{'a': 1}`, object, ""}, {`{"a": "b"}`, object, ""}, {"{}", object, ""}, {"['a', None]", object, ""},
		{"[null]", object, ""}, {"[['a'], ['b']]", object, ""}, {`[{"a": 1}]`, object, ""},
		{"", none, ""}, {"a", none, ""}, {"[", none, ""}, {"(none)", none, ""}, {"()", none, ""}, {"(1)", none, ""},
		{"['a'", none, ""}, {"['a'b']", none, ""}, {"['a''b']", none, ""},
		{"[it's]", none, ""}, {`["\ud83d"]`, none, ""}, {`['\u12']`, none, ""}, {"[a] and [b]", none, ""},
		{`"a"`, none, ""}, {"[']", none, ""}, {`["\ud83d\ud83d"]`, none, ""},
	} {
		items, kind := table.ParseLiteral(c.text)
		if kind == object {
			items = nil
		}
		if got := strings.Join(items, "|"); kind != c.kind || got != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.text, kind, got, c.kind, c.want)
		}
	}
}

// FuzzParseLiteral: no text makes the reader fail, and a list that is written again is read again.
func FuzzParseLiteral(f *testing.F) {
	for _, text := range []string{`['a', "b"]`, "[1 2]", `{"a":[1]}`, `["\ud83d\ude00"]`, "array(['x'])", "[\"\\"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		items, kind := table.ParseLiteral(text)
		if kind != table.ListLiteral || strings.Join(items, "") == "" || !utf8.ValidString(text) {
			return
		}
		var again []string
		for _, item := range items {
			again = append(again, fmt.Sprintf("%q", item))
		}
		written := "[" + strings.Join(again, ", ") + "]"
		if got, _ := table.ParseLiteral(written); strings.Join(got, "|") != strings.Join(items, "|") {
			t.Errorf("%q was read as %q, and %s as %q", text, items, written, got)
		}
	})
}
