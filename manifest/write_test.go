package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest/table"
)

// TestWriterLines holds that a line of the manifest stays one that the reader takes.
func TestWriterLines(t *testing.T) {
	s := Schema{Columns: []Column{{Name: "caption", Type: TypeText}}}
	for n, fits := range map[int]bool{30000: true, table.MaxRecord: false} {
		var b strings.Builder
		w := NewWriter(&b, JSONL, s, "|")
		w.Write(Entry{Key: Key{ID: "abc"}, Values: [][]string{{strings.Repeat("<", n)}}})
		if err := w.Flush(); (err == nil) != fits || fits && b.Len() > n+50 {
			t.Errorf("%d signs: %d bytes, %v", n, b.Len(), err)
		}
	}
}

// TestListGaps: an empty item of a list is refused, in a cell of CSV as in a list of JSON, where an empty text of a
// list of texts is one. So is a NUL, which stands for no value.
func TestListGaps(t *testing.T) {
	d := &decoder{Release: &Release{Schema: Schema{Columns: []Column{{Name: "n", List: true}}}}, passed: []int{0},
		zones: []*time.Location{nil}}
	d.separator = "|"
	said := ""
	d.report = func(_ int, what, _ string) { said = what }
	list := func(items ...string) Cell { return Cell{IsList: true, List: items} }
	const empty = "the list of column n has an empty item"
	for _, test := range []struct {
		kind ColumnType
		cell Cell
		want []string
		said string
	}{
		{TypeInteger, text("1|3"), []string{"1", "3"}, ""},
		{TypeInteger, text("1||3"), nil, empty},
		{TypeInteger, text("1|3|"), nil, empty},
		{TypeInteger, list("1", "", "3"), nil, empty},
		{TypeInteger, list(), []string{}, ""},
		{TypeText, text("a|b"), []string{"a", "b"}, ""},
		{TypeText, text("a||b"), nil, empty},
		{TypeText, text("|a"), nil, empty},
		{TypeText, text(""), nil, ""},
		{TypeText, list("a", "", "b"), []string{"a", "", "b"}, ""},
		{TypeText, text("a|\x00"), nil, "a value of column n has a NUL character"},
	} {
		d.Schema.Columns[0].Type, said = test.kind, ""
		got := d.values(0, []Cell{test.cell})
		if diff := cmp.Diff(test.want, got); diff != "" || said != test.said {
			t.Errorf("%s %+v: told %q, want %q; values (-want +got):\n%s", test.kind, test.cell, said, test.said, diff)
		}
	}
}

// TestNoValues holds that only a column of lists is written as an empty list.
func TestNoValues(t *testing.T) {
	s := Schema{Columns: []Column{{Name: "text", Type: TypeText}, {Name: "json", Type: TypeJSON},
		{Name: "list", Type: TypeText, List: true}}}
	var b strings.Builder
	w := NewWriter(&b, JSONL, s, "|")
	w.Write(Entry{Key: Key{ID: "a"}, Values: [][]string{{}, {}, {}}})
	w.Write(Entry{Key: Key{ID: "b"}, Values: make([][]string, 3)})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `{"id":"a","text":null,"json":null,"list":[]}` + "\n" + `{"id":"b","text":null,"json":null,"list":null}` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestWriterJSON: a value of JSON stands in a line as itself, in a list of those of an image's rows too.
func TestWriterJSON(t *testing.T) {
	s := Schema{Many: true, Columns: []Column{{Name: "meta", Type: TypeJSON}}}.Joined()
	for want, values := range map[string][]string{
		`[{"a":1}]`:                {`{"a":1}`},
		`[{"a":1},null,["b"],"c"]`: {`{"a":1}`, NoValue, `["b"]`, `"c"`},
	} {
		var b strings.Builder
		w := NewWriter(&b, JSONL, s, "")
		w.Write(Entry{Key: Key{ID: "abc"}, Values: [][]string{values}})
		if err := w.Flush(); err != nil || b.String() != `{"id":"abc","meta":`+want+"}\n" {
			t.Errorf("%q, %v, want %s", b.String(), err, want)
		}
	}
}
