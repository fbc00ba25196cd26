package table

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"rehydrate/internal/jsonscan"
	"rehydrate/manifest/value"
)

// listing is the kind of a thing of Reddit's that holds others.
const listing = "Listing"

// The beginnings of what Reddit's API gives: a listing, and a list of some, as the page of a post is.
var (
	listingForm = regexp.MustCompile(`^\s*\{\s*(?:"kind"\s*:\s*"Listing"\s*,\s*)?` +
		`"data"\s*:\s*\{[^{}\[\]]*"children"\s*:\s*\[`)
	pagesForm   = regexp.MustCompile(`^\s*\[\s*\{\s*"kind"\s*:\s*"Listing"`)
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

// columnsForm is the beginning of a table as pandas writes it, by default or with orient="split": its columns, each
// with the values of all rows.
var columnsForm = regexp.MustCompile(`^\s*\{\s*"(?:(?:columns|index)"\s*:\s*\[|` +
	`(?:[^"\\]|\\.)*"\s*:\s*\{\s*"0"\s*:\s*["tfn\[0-9-])`)

// A mapKind says whether a file of JSON is an object whose values are records, and what their keys are.
type mapKind int

const (
	noMap    mapKind = iota
	byID             // ids: letters and digits, with a digit before a letter in one of the first, or t3_
	byNumber         // the numbers of the records, from 0 or 1 on
)

// mapIn tells the kind of a file that begins so, below a path of keys. There keys can be anything, and count as ids.
func mapIn(start []byte, path []string) mapKind {
	keys := mapKeys(start, path)
	if len(keys) == 0 {
		return noMap
	}
	first, err := strconv.Atoi(keys[0])
	numbered := err == nil && (first == 0 || first == 1)
	digits := len(path) > 0
	for i, key := range keys {
		numbered = numbered && key == strconv.Itoa(first+i)
		id := strings.TrimPrefix(key, "t3_")
		if len(path) == 0 && !numbered && (len(id) < 4 || len(id) > 13 ||
			strings.Trim(id, value.Digits+value.Lower) != "") {
			return noMap
		}
		digits = digits || id != key || digitInside.MatchString(id)
	}
	switch {
	case numbered:
		return byNumber
	case digits:
		return byID
	}
	return noMap
}

// mapKeys gives the first keys of an object below a path of keys, up to the first value that is no object; none where
// that is a list.
func mapKeys(start []byte, path []string) (keys []string) {
	in := json.NewDecoder(bytes.NewReader(start))
	for i := -1; i < len(path); i++ { // into the object, then into the value of each key
		if token, err := in.Token(); err != nil || token != json.Delim('{') {
			return nil
		}
		if i+1 < len(path) && !goTo(in, path[i+1]) {
			return nil
		}
	}
	for range 8 {
		token, err := in.Token()
		key, isKey := token.(string)
		if err != nil || !isKey { // the end of the object, or of what was looked at
			return keys
		}
		var record json.RawMessage
		err = in.Decode(&record)
		switch {
		case err == nil && record[0] == '[':
			return nil
		case err != nil, record[0] != '{': // it is longer than what was looked at, or no record
			return append(keys, key)
		}
		keys = append(keys, key)
	}
	return keys
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
