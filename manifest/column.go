package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A Column passes through: its values go from the manifest into the dataset as they are. Its Name is that in the
// Parquet.
type Column struct {
	Name string     `toml:"name"`
	Type ColumnType `toml:"type"`
	List bool       `toml:"list" json:",omitempty"` // a row has a list of such values
	// Timezone is where times stand that do not say it: Europe/Berlin, UTC, +02:00. Without it such a time is refused.
	Timezone string `toml:"timezone" json:",omitempty"`
}

// A ColumnType says what the values of a column are.
type ColumnType string

// The types. Values are written as text: integers and numbers in decimals, booleans as true and false, times as RFC
// 3339 in UTC, to the millisecond.
const (
	TypeText      ColumnType = "text"
	TypeInteger   ColumnType = "integer"
	TypeNumber    ColumnType = "number"
	TypeBoolean   ColumnType = "boolean"
	TypeTimestamp ColumnType = "timestamp"
	// TypeJSON is any value of JSON, such as an object or a list of objects, as compact text.
	TypeJSON ColumnType = "json"
)

// ColumnTypes lists the types in the order of messages.
func ColumnTypes() []ColumnType {
	return []ColumnType{TypeText, TypeInteger, TypeNumber, TypeBoolean, TypeTimestamp, TypeJSON}
}

// String gives the type as people read it.
func (c Column) String() string {
	name := string(c.Type)
	if c.Type == TypeJSON {
		name = "JSON as text"
	}
	if c.List {
		return "list of " + name
	}
	return name
}

// NoValue stands in a list for a row that has none, so that the lists of an image's rows have one length.
const NoValue = "\x00"

// TimeForm is how a timestamp is written.
const TimeForm = "2006-01-02T15:04:05.999Z"

// read gives a value as it is kept, "" for none; false for one of another type. zone is where times stand that do not
// say it, nil where nobody does.
func (t ColumnType) read(text string, zone *time.Location) (string, bool) {
	if t == TypeText {
		return text, true
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", true
	}
	switch t {
	case TypeJSON:
		return compact(text)
	case TypeInteger:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10), true
		}
		// Programs that know no missing integer write all of them as 4.0.
		if v, ok := value.Number(text); ok && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10), true
		}
		return "", false
	case TypeNumber:
		v, ok := value.Number(text)
		return strconv.FormatFloat(v, 'g', -1, 64), ok
	case TypeBoolean:
		yes, ok := value.Flag(text)
		return strconv.FormatBool(yes), ok
	}
	at, ok := value.Time(text, zone)
	return at.Format(TimeForm), ok && at.Year() >= 0 && at.Year() <= 9999
}

// compact gives a value of JSON without spaces around its parts, false for what is none.
func compact(text string) (string, bool) {
	var b bytes.Buffer
	err := json.Compact(&b, []byte(text))
	return b.String(), err == nil
}

// jsonText gives the text of a cell of JSON as compact reads it. Of a string that holds an object or a list it is
// these.
func jsonText(c Cell) string {
	text := strings.TrimSpace(c.Text)
	holds := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	if c.JSON == "" || !c.Nested && !c.IsList && holds && json.Valid([]byte(text)) {
		return text
	}
	return c.JSON
}

// fault gives what is wrong with a column that release.toml defines, or "".
func (c *Column) fault() (message, hint string) {
	message, hint = nameFault("column", c.Name)
	if message != "" {
		return message, hint
	}
	if c.Type == TypeJSON && c.List {
		return fmt.Sprintf("column %s is a list of type json", c.Name), "leave list out: a value of JSON can be a list"
	}
	if _, ok := value.Zone(c.Timezone); c.Timezone != "" && (!ok || c.Type != TypeTimestamp) {
		return fmt.Sprintf("column %s has timezone %s", c.Name, table.Quote(c.Timezone)),
			`timezone is for type = "timestamp": Europe/Berlin, UTC or +02:00`
	}
	for _, t := range ColumnTypes() {
		if c.Type == t {
			return "", ""
		}
	}
	return fmt.Sprintf("column %s has type %s", c.Name, table.Quote(string(c.Type))),
		"type is one of " + List(each(ColumnTypes(), func(t ColumnType) string { return string(t) }))
}

// values reads the cell of a column.
func (d *decoder) values(c int, cells []Cell) []string {
	i, column := d.passed[c], d.Schema.Columns[c]
	cell := cells[i]
	if !d.usable(i, cell) || cell.Null || column.Type != TypeText && d.blank(cell) {
		return nil
	}
	if column.Type == TypeJSON && !column.List {
		cell = Cell{Text: jsonText(cell)}
	}
	if cell.Nested && cell.IsList && column.List {
		d.report(i, fmt.Sprintf("the list of column %s holds something other than values", column.Name), plainList)
		return nil
	}
	if cell.Nested || cell.IsList && !column.List {
		d.report(i, fmt.Sprintf("column %s wants %s, not a list or an object", column.Name, column),
			"list = true in its [[column]] takes a list of values")
		return nil
	}
	parts := cell.List
	if !cell.IsList {
		parts = []string{cell.Text}
		if column.List && strings.TrimSpace(cell.Text) != "" && d.separator != "" {
			parts = strings.Split(cell.Text, d.separator)
		}
	}
	values := []string{}
	for _, part := range parts {
		if strings.Contains(part, NoValue) {
			d.report(i, "a value of column "+column.Name+" has a NUL character", "take the character out")
			return nil
		}
		text, ok := column.Type.read(part, d.zones[c])
		if !ok && column.Type == TypeTimestamp && value.Naive(part) {
			d.report(i, fmt.Sprintf("%s names no time zone, and column %s takes times", table.Quote(part), column.Name),
				`write timezone = "..." into its [[column]] (Europe/Berlin, UTC or +02:00), or type = "text"`)
			return nil
		}
		if !ok {
			d.report(i, fmt.Sprintf("%s is not a value of column %s (%s)", table.Quote(part), column.Name, column.Type),
				"correct it, leave the cell empty, or change the column's type")
			return nil
		}
		if text == "" && !cell.IsList && len(parts) == 1 { // an empty cell
			return nil
		}
		if text == "" && (column.Type != TypeText || !cell.IsList) { // no value, as null in a list of JSON
			hint := `take out the separator too many; type = "text" without list = true keeps such a cell as it stands`
			if cell.IsList {
				hint = "leave the item out, or write null in place of the whole list"
			}
			d.report(i, fmt.Sprintf("the list of column %s has an empty item", column.Name), hint)
			return nil
		}
		values = append(values, strings.Clone(text))
	}
	return values
}
