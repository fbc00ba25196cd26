package redditemu

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever is asked, the ids that come out are well-formed and no more than were named.
func FuzzAskedIDs(f *testing.F) {
	for _, s := range []string{"t3_a,t3_b", " ,t1_a t5_2zmfe", "t3_", "t3_A", "t3_12345678901234", "\x00_\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		links, n := AskedIDs(s)
		if len(links) > n {
			t.Errorf("AskedIDs(%q) = %d links of %d names", s, len(links), n)
		}
		for _, id := range links {
			if _, err := manifestID(string(id)); err != nil {
				t.Errorf("AskedIDs(%q): %v", s, err)
			}
		}
	})
}

// Entities must leave JSON as JSON whose strings unescape to what they were.
func FuzzEntities(f *testing.F) {
	back := strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")
	for _, s := range []string{`{"a":"<&>"}`, `["&amp;", 1e400, null]`, `{`, `"x" "y"`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := entities(raw)
		if json.Valid(raw) && !json.Valid(out) {
			t.Errorf("entities(%q) = %q", raw, out)
		}
		var before, after string
		if json.Unmarshal(raw, &before) == nil && json.Unmarshal(out, &after) == nil && back.Replace(after) != before {
			t.Errorf("entities(%q) = %q", raw, out)
		}
	})
}
