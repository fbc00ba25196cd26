package scan

import (
	"fmt"
	"strconv"

	"rehydrate/manifest"
)

// OpenLabelled is OpenManifest for a dataset: where the footer says that the numbers of a column
// are ClassLabels, as Hugging Face datasets and WriteParquet have it, the column's cells hold the
// names of the labels. The number -1, which datasets writes for no label, is null.
func OpenLabelled(path string, want []string) (manifest.RowReader, error) {
	t, err := openRows(path, want)
	if err != nil {
		return nil, err
	}
	return &labelledReader{t, labelNames(t.file.Features())}, nil
}

// A labelledReader puts names in the place of numbers.
type labelledReader struct {
	*tableReader
	names map[string][]string // by column
}

func (l *labelledReader) Next() ([]manifest.Cell, error) {
	cells, err := l.tableReader.Next()
	if err != nil {
		return nil, err
	}
	for i := range cells {
		if names := l.names[l.tableReader.names[i]]; names != nil {
			named(&cells[i], names)
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
		// What datasets writes for no label.
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
