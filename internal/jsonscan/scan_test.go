package jsonscan

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStrings(t *testing.T) {
	type found struct {
		Text  string
		IsKey bool
	}
	for text, want := range map[string][]found{
		`{"a": [1, "b\"", {"c" : null}], "d": "\u00e9"}`: {{"a", true}, {`b"`, false}, {"c", true}, {"d", true},
			{"é", false}},
		`"a"`:       {{"a", false}},
		`["", ":"]`: {{"", false}, {":", false}},
		`{}`:        nil,
		`12`:        nil,
	} {
		var got []found
		for text, isKey := range Strings(text) {
			got = append(got, found{text, isKey})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Strings(%s) (-want +got):\n%s", text, diff)
		}
	}
}

func TestObjectAt(t *testing.T) {
	for text, want := range map[string]struct {
		Object string
		Length int
		Cut    bool
	}{
		`{"a":1} and more`: {`{"a":1}`, 7, false},
		`{"a":1 `:          {`{"a":1}`, 7, false},
		`{"a":{"b":1`:      {"", 0, true},
		`{"a":`:            {"", 0, true},
		`{a}`:              {"", 0, false},
		``:                 {"", 0, false},
	} {
		object, length, cut := ObjectAt(text)
		if string(object) != want.Object || length != want.Length || cut != want.Cut {
			t.Errorf("ObjectAt(%s) = %s, %d, %t, want %v", text, object, length, cut, want)
		}
	}
}

// FuzzStrings: the strings of a value are those that encoding/json meets.
func FuzzStrings(f *testing.F) {
	f.Add(`{"a":[1,"\ud800\"",{"b":null}],"c":":"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return
		}
		keys, strings := 0, 0
		for _, isKey := range Strings(text) {
			strings++
			if isKey {
				keys++
			}
		}
		if _, err := Decode([]byte(text)); err != nil { // a key that stands twice
			return
		}
		wantKeys, want := count(value)
		if keys != wantKeys || strings != want {
			t.Errorf("%d keys and %d strings, want %d and %d", keys, strings, wantKeys, want)
		}
	})
}

func count(value any) (keys, strings int) {
	switch v := value.(type) {
	case string:
		return 0, 1
	case []any:
		for _, of := range v {
			k, s := count(of)
			keys, strings = keys+k, strings+s
		}
	case map[string]any:
		for _, of := range v {
			k, s := count(of)
			keys, strings = keys+k+1, strings+s+1
		}
	}
	return keys, strings
}
