package dataset

import (
	"encoding/json"
	"fmt"
	"strconv"

	"rehydrate/manifest"
)

// OpenLabelled is OpenManifest for a dataset: where the footer says that the numbers of a column
// are ClassLabels, as Hugging Face datasets and WriteParquet have it, the column's cells hold the
// names of the labels. The number -1, which datasets writes for no label, is null.
func OpenLabelled(path string, want []string) (manifest.RowReader, error) {
	rows, err := OpenManifest(path, want)
	if err != nil {
		return nil, err
	}
	t, isTable := rows.(*tableReader)
	if !isTable {
		return rows, nil
	}
	text, _ := t.parquet.Lookup("huggingface")
	names := classLabels([]byte(text))
	l := &labelledReader{RowReader: rows}
	for _, column := range rows.Columns() {
		l.names = append(l.names, names[column])
	}
	return l, nil
}

// classLabels gives the names of each column's labels, for those columns that have some. Text
// that is not as datasets writes it has none.
func classLabels(text []byte) map[string][]string {
	var footer struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal(text, &footer) != nil {
		return nil
	}
	out := make(map[string][]string)
	for column, raw := range footer.Info.Features {
		var list []json.RawMessage // the short form of a list: [feature]
		if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
			raw = list[0]
		}
		var f feature
		if json.Unmarshal(raw, &f) != nil {
			continue
		}
		if f.Feature != nil {
			f = *f.Feature
		}
		if f.Type == "ClassLabel" && len(f.Names) > 0 {
			out[column] = f.Names
		}
	}
	return out
}

// A labelledReader puts names in the place of numbers.
type labelledReader struct {
	manifest.RowReader
	names [][]string // by column; nil: leave it as it is
}

func (l *labelledReader) Next() ([]manifest.Cell, error) {
	cells, err := l.RowReader.Next()
	if err != nil {
		return nil, err
	}
	for i := range cells {
		if l.names[i] != nil {
			named(&cells[i], l.names[i])
		}
	}
	return cells, nil
}

func named(c *manifest.Cell, names []string) {
	if c.Null || c.Fault != "" {
		return
	}
	name := func(text string) (string, bool) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(names) {
			*c = manifest.Cell{Fault: fmt.Sprintf("is the label number %q, and the file's footer names %d labels", text, len(names))}
			return "", false
		}
		return names[n], true
	}
	if !c.IsList {
		if c.Text == "-1" {
			*c = manifest.Cell{Null: true}
		} else if text, ok := name(c.Text); ok {
			c.Text = text
		}
		return
	}
	for i := range c.List {
		text, ok := name(c.List[i])
		if !ok {
			return
		}
		c.List[i] = text
	}
}
