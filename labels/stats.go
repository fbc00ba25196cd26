package labels

import (
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
	// Annotations counts the rows of a release that has several an image; 0 for another.
	Annotations int `json:"annotations,omitempty"`
}

// A SplitSize is a split and how many entries it has.
type SplitSize struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
}

// CategoryStats counts the labels of one category.
type CategoryStats struct {
	Name       string                `json:"name"`
	Title      string                `json:"title"`
	Kind       manifest.CategoryKind `json:"kind"`
	Labels     []LabelStats          `json:"labels"`                // in the order of the schema
	Unlabelled int                   `json:"unlabelled"`            // entries without a label of the category, even None, but for Differ
	NoAnswer   int                   `json:"no_answer,omitempty"`   // of Unlabelled, those without an answer: null, and no empty list
	Differ     int                   `json:"rows_differ,omitempty"` // entries whose rows give different labels: they count for none
	// Cardinality is the mean number of labels an entry, without exclusive ones (None); 0 where there is no entry.
	Cardinality float64 `json:"cardinality"`
}

// LabelStats counts the entries that have a label.
type LabelStats struct {
	Code      string `json:"code"`
	Name      string `json:"name"`
	Exclusive bool   `json:"exclusive,omitempty"`
	Count     int    `json:"count"`    // over all splits
	BySplit   []int  `json:"by_split"` // in the order of Stats.Splits
	// Annotations counts the rows that give the label, where an image has several; 0 elsewhere.
	Annotations int `json:"annotations,omitempty"`
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
		sum := 0
		for _, n := range row {
			sum += n
		}
		for _, n := range row {
			shares[i] = append(shares[i], float64(n)/float64(max(1, sum)))
		}
	}
	return shares
}

// Differing lists the categories in which the rows of some images differ.
func (s Stats) Differing() (all []Differing) {
	for _, c := range s.Categories {
		if c.Differ > 0 {
			all = append(all, Differing{c.Name, c.Differ})
		}
	}
	return all
}

// Count counts the labels of entries, the rows of a release or its images. It stops at their first error and returns
// it.
func Count(schema manifest.Schema, entries iter.Seq2[manifest.Entry, error]) (Stats, error) {
	c := NewCounter(schema)
	for e, err := range Images(schema, entries) {
		if err != nil {
			return Stats{}, err
		}
		c.Add(e)
	}
	return c.Stats(), nil
}

// A Counter counts the labels of images while they go by. Memory does not grow with them.
type Counter struct {
	schema manifest.Schema
	stats  Stats
}

// NewCounter makes a Counter of entries of a schema.
func NewCounter(schema manifest.Schema) *Counter {
	schema = OfImages(schema)
	c := &Counter{schema, Stats{Schema: schema.Name, Splits: []SplitSize{}, Categories: []CategoryStats{},
		Pairs: []Pair{}}}
	for i, rows := range schema.Categories {
		counted := CategoryStats{Name: rows.Name, Title: rows.Title, Kind: rows.Kind}
		for _, l := range rows.Labels {
			counted.Labels = append(counted.Labels,
				LabelStats{Code: l.Code, Name: l.Name, Exclusive: l.Exclusive, BySplit: []int{}})
		}
		c.stats.Categories = append(c.stats.Categories, counted)
		for _, columns := range schema.Categories[i+1:] {
			c.stats.Pairs = append(c.stats.Pairs, Pair{rows.Name, columns.Name, zeros(len(rows.Labels), len(columns.Labels))})
		}
	}
	return c
}

// split returns the place of a split. A new one is put in its place everywhere.
func (c *Counter) split(name string) int {
	at := slices.IndexFunc(c.stats.Splits, func(s SplitSize) bool { return s.Name == name })
	if at >= 0 {
		return at
	}
	// As in the paper's Table 8; others, with -1, come behind these.
	rank := func(name string) int { return slices.Index([]string{"test", "validation", "train"}, name) }
	at = slices.IndexFunc(c.stats.Splits, func(s SplitSize) bool { return rank(s.Name) < rank(name) })
	if at < 0 {
		at = len(c.stats.Splits)
	}
	c.stats.Splits = slices.Insert(c.stats.Splits, at, SplitSize{Name: name})
	for _, category := range c.stats.Categories {
		for l := range category.Labels {
			category.Labels[l].BySplit = slices.Insert(category.Labels[l].BySplit, at, 0)
		}
	}
	return at
}

// Add counts an entry: an image, with what all of its rows say (Images, or a row of a dataset).
func (c *Counter) Add(e manifest.Entry) {
	at := c.split(e.Split)
	given := e.Labels
	settled, differ := Settle(c.schema, given)
	c.annotate(given)
	e.Labels = settled
	c.stats.Entries++
	c.stats.Splits[at].Entries++
	pair := 0
	for i, labels := range e.Labels {
		category := &c.stats.Categories[i]
		switch {
		case differ != nil && differ[i]:
			category.Differ++
		case len(labels) == 0:
			category.Unlabelled++
			if labels == nil {
				category.NoAnswer++
			}
		}
		for _, l := range labels {
			category.Labels[l].Count++
			category.Labels[l].BySplit[at]++
		}
		for _, others := range e.Labels[i+1:] { // in the order in which NewCounter made the pairs
			for _, l := range labels {
				for _, other := range others {
					c.stats.Pairs[pair].Counts[l][other]++
				}
			}
			pair++
		}
	}
}

// annotate counts what the rows of an image say, where it may have several.
func (c *Counter) annotate(image [][]int) {
	if !c.schema.Many {
		return
	}
	rows := 0
	for i, given := range image {
		rows = max(rows, len(given)) // each row has one label of each category
		for _, l := range given {
			c.stats.Categories[i].Labels[l].Annotations++
		}
	}
	c.stats.Annotations += rows
}

// Stats gives what was counted. It ends the counting: an entry that is added later would change it.
func (c *Counter) Stats() Stats {
	for i, category := range c.stats.Categories {
		given := 0
		for _, label := range category.Labels {
			if !label.Exclusive {
				given += label.Count
			}
		}
		c.stats.Categories[i].Cardinality = float64(given) / float64(max(1, c.stats.Entries))
	}
	return c.stats
}
