package labels

import (
	"cmp"
	"iter"
	"slices"

	"rehydrate/manifest"
)

// Stats counts the labels of a set of entries: the paper's Table 8, its label cardinality and
// the counts behind its Figure 6. Its JSON form is stable (docs/labels.md).
type Stats struct {
	Schema     string          `json:"schema"`
	Entries    int             `json:"entries"`
	Splits     []SplitSize     `json:"splits"`     // train, validation, test, then others in order of first appearance
	Categories []CategoryStats `json:"categories"` // in the order of the schema
	// Pairs holds every two categories of the schema, the earlier one as rows: (0,1), (0,2), ...
	Pairs []Pair `json:"pairs"`
}

// A SplitSize is a split and how many entries it has.
type SplitSize struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
}

// CategoryStats counts the labels of one category.
type CategoryStats struct {
	Name   string                `json:"name"`
	Title  string                `json:"title"`
	Kind   manifest.CategoryKind `json:"kind"`
	Labels []LabelStats          `json:"labels"` // in the order of the schema
	// Unlabelled is how many entries have no label of the category, not even None.
	Unlabelled int `json:"unlabelled"`
	// Cardinality is the mean number of labels an entry, with exclusive labels (None) not
	// counted and every entry in the denominator; 0 where there is no entry.
	Cardinality float64 `json:"cardinality"`
}

// LabelStats counts the entries that have a label.
type LabelStats struct {
	Code      string `json:"code"`
	Name      string `json:"name"`
	Exclusive bool   `json:"exclusive,omitempty"`
	Count     int    `json:"count"`    // over all splits
	BySplit   []int  `json:"by_split"` // in the order of Stats.Splits
}

// A Pair counts the entries that have a label of one category beside a label of another.
type Pair struct {
	Rows    string  `json:"rows"`    // a category's name
	Columns string  `json:"columns"` // a later category's name
	Counts  [][]int `json:"counts"`  // [label of Rows][label of Columns], in the order of the schema
}

// Shares gives the counts normalized by row, as the paper's Figure 6 shows them: each row sums
// to 1, or holds only 0 where the label never occurs.
func (p Pair) Shares() [][]float64 {
	shares := make([][]float64, len(p.Counts))
	for i, row := range p.Counts {
		shares[i] = make([]float64, len(row))
		sum := 0
		for _, n := range row {
			sum += n
		}
		for j, n := range row {
			if sum > 0 {
				shares[i][j] = float64(n) / float64(sum)
			}
		}
	}
	return shares
}

// usualPlace orders splits: these come first, as in the paper's Table 8.
func usualPlace(split string) int {
	usual := []string{"train", "validation", "test"}
	if i := slices.Index(usual, split); i >= 0 {
		return i
	}
	return len(usual)
}

// Count counts the labels of entries. It stops at their first error and returns it.
func Count(schema manifest.Schema, entries iter.Seq2[manifest.Entry, error]) (Stats, error) {
	c := NewCounter(schema)
	for e, err := range entries {
		if err != nil {
			return Stats{}, err
		}
		c.Add(e)
	}
	return c.Stats(), nil
}

// A Counter counts the labels of entries while they go by. Memory does not grow with them.
type Counter struct {
	schema manifest.Schema
	order  []string                // splits by first appearance
	splits map[string]*splitCounts // of each split
	pairs  []Pair
	none   []int // entries without a label, by category
}

type splitCounts struct {
	entries int
	labels  [][]int // [category][label]
}

// NewCounter makes a Counter of entries of a schema.
func NewCounter(schema manifest.Schema) *Counter {
	c := &Counter{schema: schema, splits: make(map[string]*splitCounts), none: make([]int, len(schema.Categories))}
	for i, rows := range schema.Categories {
		for _, columns := range schema.Categories[i+1:] {
			p := Pair{Rows: rows.Name, Columns: columns.Name, Counts: make([][]int, len(rows.Labels))}
			for l := range p.Counts {
				p.Counts[l] = make([]int, len(columns.Labels))
			}
			c.pairs = append(c.pairs, p)
		}
	}
	return c
}

func (c *Counter) split(name string) *splitCounts {
	s := c.splits[name]
	if s == nil {
		s = &splitCounts{labels: make([][]int, len(c.schema.Categories))}
		for i, category := range c.schema.Categories {
			s.labels[i] = make([]int, len(category.Labels))
		}
		c.splits[name] = s
		c.order = append(c.order, name)
	}
	return s
}

// Add counts an entry.
func (c *Counter) Add(e manifest.Entry) {
	s := c.split(e.Split)
	s.entries++
	pair := 0
	for i, labels := range e.Labels {
		if len(labels) == 0 {
			c.none[i]++
		}
		for _, l := range labels {
			s.labels[i][l]++
		}
		for _, others := range e.Labels[i+1:] {
			for _, l := range labels {
				for _, other := range others {
					c.pairs[pair].Counts[l][other]++
				}
			}
			pair++
		}
	}
}

// Stats gives what was counted so far.
func (c *Counter) Stats() Stats {
	s := Stats{Schema: c.schema.Name, Splits: []SplitSize{}, Pairs: c.pairs}
	order := slices.Clone(c.order)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(usualPlace(a), usualPlace(b)) })
	for _, name := range order {
		s.Splits = append(s.Splits, SplitSize{Name: name, Entries: c.splits[name].entries})
		s.Entries += c.splits[name].entries
	}
	for i, category := range c.schema.Categories {
		s.Categories = append(s.Categories, c.category(i, category, s))
	}
	return s
}

func (c *Counter) category(i int, category manifest.Category, s Stats) CategoryStats {
	out := CategoryStats{Name: category.Name, Title: category.Title, Kind: category.Kind, Unlabelled: c.none[i]}
	given := 0
	for l, label := range category.Labels {
		counted := LabelStats{Code: label.Code, Name: label.Name, Exclusive: label.Exclusive, BySplit: []int{}}
		for _, split := range s.Splits {
			n := c.splits[split.Name].labels[i][l]
			counted.BySplit = append(counted.BySplit, n)
			counted.Count += n
		}
		if !label.Exclusive {
			given += counted.Count
		}
		out.Labels = append(out.Labels, counted)
	}
	if s.Entries > 0 {
		out.Cardinality = float64(given) / float64(s.Entries)
	}
	return out
}
