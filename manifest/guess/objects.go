package guess

import (
	"rehydrate/internal/jsonscan"
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
	for text, isKey := range jsonscan.Strings(cell.JSON) {
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
