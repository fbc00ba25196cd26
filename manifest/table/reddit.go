package table

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"rehydrate/internal/jsonscan"
	"rehydrate/manifest/value"
)

// listing is the kind of a thing of Reddit's that holds others.
const listing = "Listing"

// The beginnings of what Reddit's API gives: a listing, and the page of a post, which are two.
var (
	listingForm = regexp.MustCompile(`^\s*\{\s*(?:"kind"\s*:\s*"Listing"\s*,\s*)?` +
		`"data"\s*:\s*\{[^{}\[\]]*"children"\s*:\s*\[`)
	pageForm    = regexp.MustCompile(`^\s*\[\s*\{\s*"kind"\s*:\s*"Listing"`)
	digitInside = regexp.MustCompile(`[0-9][a-z]`) // train1 and fold2 are no ids
	thingKind   = regexp.MustCompile(`^t[1-6]$`)
)

// A thing is what Reddit wraps a post or comment in: {"kind": "t3", "data": {...}}.
type thing struct {
	kind, data string
	at         int // where data starts
}

// thingIn gives the thing that a record is, false for one that is none.
func thingIn(record string) (t thing, ok bool) {
	for m := range jsonscan.Members(record) {
		switch {
		case m.Key == "kind" && m.Value[0] == '"':
			t.kind = jsonscan.String(m.Value)
		case m.Key == "data" && m.Value[0] == '{':
			t.data, t.at = m.Value, m.At
		default:
			return t, false
		}
	}
	return t, t.data != "" && (t.kind == listing || thingKind.MatchString(t.kind))
}

// isMap reports whether a file of JSON that begins so is an object whose values are records, below a path of keys.
// Their keys are ids: letters and digits, with a digit before a letter in one of the first, or t3_; below a path they
// can be anything.
func isMap(start []byte, path []string) bool {
	in := json.NewDecoder(bytes.NewReader(start))
	for i := -1; i < len(path); i++ { // into the object, then into the value of each key
		if token, err := in.Token(); err != nil || token != json.Delim('{') {
			return false
		}
		if i+1 < len(path) && !goTo(in, path[i+1]) {
			return false
		}
	}
	digits := len(path) > 0
	for range 8 {
		token, err := in.Token()
		key, isKey := token.(string)
		if err != nil || !isKey {
			return digits && token == json.Delim('}')
		}
		id := strings.TrimPrefix(key, "t3_")
		if len(path) == 0 && (len(id) < 4 || len(id) > 13 || strings.Trim(id, value.Digits+value.Lower) != "") {
			return false
		}
		digits = digits || id != key || digitInside.MatchString(id)
		var record json.RawMessage
		err = in.Decode(&record)
		if err != nil { // it is longer than what was looked at
			return digits
		}
		if record[0] != '{' {
			return digits && len(path) == 0 && record[0] != '['
		}
	}
	return digits
}

// goTo skips the members of an object up to the value of a key.
func goTo(in *json.Decoder, wanted string) bool {
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return false
		}
		if token == wanted {
			return true
		}
		var skipped json.RawMessage
		if in.Decode(&skipped) != nil {
			return false
		}
	}
	return false
}
