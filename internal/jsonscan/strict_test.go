package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	for text, want := range map[string]any{
		`{"a":[1,{"b":null},true],"c":"d"}`: map[string]any{"a": []any{json.Number("1"), map[string]any{"b": nil}, true},
			"c": "d"},
		`[{"a":1},{"a":2}]`: []any{map[string]any{"a": json.Number("1")},
			map[string]any{"a": json.Number("2")}},
		`{"a":{"a":{}}}`:                map[string]any{"a": map[string]any{"a": map[string]any{}}},
		`{"A":1,"a":2}`:                 map[string]any{"A": json.Number("1"), "a": json.Number("2")},
		` null `:                        nil,
		`[]`:                            []any{},
		`{"a":1,"a":1}`:                 `the key "a" stands twice in one object`,
		`{"a":1,"\u0061":2}`:            `the key "a" stands twice in one object`,
		`[[{"x":{"b":1,"c":2,"b":3}}]]`: `the key "b" stands twice in one object`,
		`{"a":null,"a":null}`:           `the key "a" stands twice in one object`,
		`{"a":1}{"a":2}`:                "it is not JSON",
		`{"a":NaN}`:                     "it is not JSON",
		`{"a":`:                         "it is not JSON",
		``:                              "it is not JSON",
		strings.Repeat("[", 1<<20):      "it is not JSON",
		strings.Repeat(`{"a":`, 1<<18):  "it is not JSON",
		"\xef\xbb\xbf{}":                "it is not JSON",
		`{"` + strings.Repeat("k", 200) + `":1}}`: "it is not JSON",
	} {
		got, err := Decode([]byte(text))
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Decode(%.60s) (-want +got):\n%s", text, diff)
		}
	}
}

// FuzzDecode: what encoding/json reads is read alike, or has a key twice.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\ud800",{"b":null}]}`, `{"a":1,"a":2}`, `[`, `"x"`, `1e400`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Decode(text)
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		var want any
		bad := !json.Valid(text) || d.Decode(&want) != nil
		_, twice := err.(*Twice)
		switch {
		case bad != (err != nil && !twice):
			t.Errorf("error %v, and encoding/json says %v", err, !bad)
		case err == nil && !cmp.Equal(want, got):
			t.Errorf("%v, want %v", got, want)
		}
	})
}
