// Package strictjson reads JSON that has one meaning: no object in it has a key twice. encoding/json takes the last of
// two, other readers the first.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A Twice is the error of an object that has a key twice.
type Twice struct{ Key string }

// Error names the key.
func (e *Twice) Error() string { return fmt.Sprintf("the key %.80q stands twice in one object", e.Key) }

// errNotJSON is the error of a text that is not one JSON value. It shows nothing of the text.
var errNotJSON = errors.New("it is not JSON")

// Decode reads one JSON value as encoding/json does, with a json.Number for each number. Its error is a *Twice, or
// says that the text is not JSON.
func Decode(text []byte) (any, error) {
	if !json.Valid(text) { // it also bounds the depth
		return nil, errNotJSON
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return value(d)
}

func value(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errNotJSON
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, errNotJSON
			}
			key, _ := name.(string) // always: the text is valid
			if _, twice := object[key]; twice {
				return nil, &Twice{key}
			}
			object[key], err = value(d)
			if err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return object, err
	}
	return t, nil
}
