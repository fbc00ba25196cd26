package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// A Twice is the error of an object that has a key twice.
type Twice struct{ Key string }

// Error names the key.
func (e *Twice) Error() string { return fmt.Sprintf("the key %.80q stands twice in one object", e.Key) }

// errNotJSON is the error of a text that is not one JSON value. It shows nothing of the text.
var errNotJSON = errors.New("it is not JSON")

// Decode reads one JSON value as encoding/json does, with a json.Number for each number, if it has one meaning: of two
// members with one key encoding/json takes the last, other readers the first. Its error is a *Twice, or says that the
// text is not JSON.
func Decode(text []byte) (any, error) {
	if !json.Valid(text) { // it also bounds the depth
		return nil, errNotJSON
	}
	d := decoder{text: string(text) + " "} // so that something stands behind a number
	return d.value()
}

// A decoder reads a valid text from at on, once.
type decoder struct {
	text string
	at   int
}

// next skips to the next value, key or closing bracket, and gives its first byte.
func (d *decoder) next() byte {
	d.at = Skip(d.text, d.at)
	return d.text[d.at]
}

func (d *decoder) value() (any, error) {
	switch d.next() {
	case '[':
		list := []any{}
		for d.at++; d.next() != ']'; {
			v, err := d.value()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		d.at++
		return list, nil
	case '{':
		object := map[string]any{}
		for d.at++; d.next() != '}'; {
			key := d.string()
			if _, twice := object[key]; twice {
				return nil, &Twice{key}
			}
			v, err := d.value()
			if err != nil {
				return nil, err
			}
			object[key] = v
		}
		d.at++
		return object, nil
	case '"':
		return d.string(), nil
	}
	word := d.word()
	switch word {
	case "null":
		return nil, nil
	case "true", "false":
		return word == "true", nil
	}
	return json.Number(word), nil
}

func (d *decoder) word() string {
	from := d.at
	d.at = end(d.text, from)
	return d.text[from:d.at]
}

// string reads a string, with U+FFFD for each byte that is not UTF-8.
func (d *decoder) string() (text string) {
	quoted := d.word()
	if utf8.ValidString(quoted) {
		return String(quoted)
	}
	_ = json.Unmarshal([]byte(quoted), &text) // it is valid
	return text
}

// ObjectAt reads the JSON object that a text begins with, nil where none begins there, and how long it is. The object
// that the text ends in may lack its last brace, which a stop sequence of a model takes away. cut reports that one
// begins, and that more than that is missing.
func ObjectAt(text string) (object json.RawMessage, length int, cut bool) {
	d := json.NewDecoder(strings.NewReader(text))
	err := d.Decode(&object)
	switch {
	case err == nil:
		return object, int(d.InputOffset()), false
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, false
	}
	object = json.RawMessage(strings.TrimSpace(text) + "}")
	if !json.Valid(object) {
		return nil, 0, true
	}
	return object, len(text), false
}

// Strings gives the strings in a JSON value, which must be valid, and whether each is a key.
func Strings(text string) iter.Seq2[string, bool] {
	return func(yield func(text string, isKey bool) bool) {
		for {
			begin := strings.IndexByte(text, '"')
			if begin < 0 {
				return
			}
			text = text[begin:]
			stop := end(text, 0)
			rest := strings.TrimLeft(text[stop:], " \t\r\n")
			if !yield(String(text[:stop]), strings.HasPrefix(rest, ":")) {
				return
			}
			text = rest
		}
	}
}
