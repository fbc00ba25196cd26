package guess

import (
	"encoding/json"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
)

// objects reports whether the column passes through as JSON: it has objects, or lists with more than plain values.
func (c *surveyed) objects() bool { return c.nested > 0 && !c.faulty }

// addObject notes whether a value of JSON tells who somebody is, by a key in it or by a text.
func (c *surveyed) addObject(cell manifest.Cell) {
	c.nested++
	if !c.kept || c.inside != "" {
		return
	}
	for text, isKey := range stringsIn(cell.JSON) {
		switch {
		case !isKey:
			c.inside = personalValue(text)
		case (&surveyed{}).privateAs(text, false) != "":
			c.inside = "the key " + table.Quote(text)
		}
		if c.inside != "" {
			return
		}
	}
}

// stringsIn gives the strings in a value of JSON, and whether each is a key.
func stringsIn(text string) func(yield func(text string, isKey bool) bool) {
	return func(yield func(string, bool) bool) {
		in := json.NewDecoder(strings.NewReader(text))
		var open []bool // the brackets around: whether they are those of an object
		key := false    // a key comes next
		for {
			token, err := in.Token()
			if err != nil { // at the end
				return
			}
			isKey := key
			switch t := token.(type) {
			case json.Delim:
				if t == '{' || t == '[' {
					open = append(open, t == '{')
				} else {
					open = open[:len(open)-1]
				}
				key = len(open) > 0 && open[len(open)-1]
				continue
			case string:
				if !yield(t, isKey) {
					return
				}
			}
			key = len(open) > 0 && open[len(open)-1] && !isKey
		}
	}
}
