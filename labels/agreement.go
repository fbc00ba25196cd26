package labels

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"rehydrate/manifest"
)

// Answers are what one annotator or model said of each entry. Labels are as in manifest.Entry, by the categories of the
// schema: nil means no answer.
type Answers map[manifest.Key][][]int

// Agreement says how far annotators agree. It names none of them: they are A, B, C... in the order
// in which they were given. Its JSON form is stable (docs/labels.md).
type Agreement struct {
	Annotators []string            `json:"annotators"`
	Pairs      []AnnotatorPair     `json:"pairs"` // those with entries in common
	Categories []CategoryAgreement `json:"categories"`
}

// Entries counts, over the pairs, the entries that both annotated.
func (a Agreement) Entries() (n int) {
	for _, p := range a.Pairs {
		n += p.Both
	}
	return n
}

// A BatchAgreement is how far annotators agree on the entries of one batch.
type BatchAgreement struct {
	Batch string `json:"batch"`
	// Agreement is nil where no two annotators have an entry of the batch in common.
	Agreement *Agreement `json:"agreement"`
}

// AgreeByBatch compares annotators batch by batch, in the order of the batches' numbers or names.
func AgreeByBatch(schema manifest.Schema, annotators []Answers, batches map[manifest.Key]string) (all []BatchAgreement) {
	names := slices.Sorted(maps.Values(batches))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) }) // 9 before 10
	for _, name := range slices.Compact(names) {
		part := make([]Answers, len(annotators))
		for i, of := range annotators {
			part[i] = Answers{}
			for key, answers := range of {
				if batches[key] == name {
					part[i][key] = answers
				}
			}
		}
		out := BatchAgreement{Batch: name}
		if a, err := Agree(schema, part); err == nil {
			out.Agreement = &a
		}
		all = append(all, out)
	}
	return all
}

// An AnnotatorPair is two annotators and what they have in common. Over more than two annotators
// every number of an Agreement is the mean over the pairs for which it is defined.
type AnnotatorPair struct {
	A     string `json:"a"`
	B     string `json:"b"`
	Both  int    `json:"both"` // entries that both annotated
	OnlyA int    `json:"only_a"`
	OnlyB int    `json:"only_b"`
}

// CategoryAgreement is the agreement in one category.
type CategoryAgreement struct {
	Name  string                `json:"name"`
	Title string                `json:"title"`
	Kind  manifest.CategoryKind `json:"kind"`
	// Entries counts, over the pairs, the entries that both gave an answer for, Unanswered those that lack one's.
	Entries    int              `json:"entries"`
	Unanswered int              `json:"unanswered"`
	Kappa      Kappa            `json:"kappa"`              // Cohen's; of a multi-label category the mean over its labels
	Observed   *float64         `json:"observed,omitempty"` // part of equal answers; nil in a multi-label category
	Jaccard    *float64         `json:"jaccard,omitempty"`  // mean similarity of the label sets of a multi-label category
	Labels     []LabelAgreement `json:"labels,omitempty"`   // of a multi-label category, without None
}

// LabelAgreement is the agreement on whether a label is given.
type LabelAgreement struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Kappa Kappa  `json:"kappa"`
}

// A Kappa is Cohen's kappa, or why it is undefined.
type Kappa struct {
	Value     *float64 `json:"value"`               // nil when it is undefined
	Undefined string   `json:"undefined,omitempty"` // "no entries", "no variation"
	Strength  string   `json:"strength,omitempty"`  // the word for the value
}

// strength gives the word of Landis and Koch (1977) for a kappa.
func strength(kappa float64) string {
	k := math.Round(100*kappa) / 100 // as it is printed: 0.604 and 0.60 have one word
	if k < 0 {
		return "poor"
	}
	for i, word := range []string{"slight", "fair", "moderate", "substantial"} {
		if k <= float64(i+1)/5 {
			return word
		}
	}
	return "almost perfect"
}

func kappaOf(value float64) Kappa { return Kappa{Value: &value, Strength: strength(value)} }

// cohen computes Cohen's kappa (Cohen 1960) of a square table: counts[i][j] entries were called i
// by one annotator and j by the other.
func cohen(counts [][]int) Kappa {
	n, same := 0, 0
	rows, columns := make([]int, len(counts)), make([]int, len(counts))
	for i, row := range counts {
		same += row[i]
		for j, x := range row {
			n += x
			rows[i] += x
			columns[j] += x
		}
	}
	if n == 0 {
		return Kappa{Undefined: "no entries"}
	}
	chance := 0.0
	for i := range rows {
		// Both gave every entry this label: chance agreement is 1, and kappa would be 0/0.
		if rows[i] == n && columns[i] == n {
			return Kappa{Undefined: "no variation"}
		}
		chance += float64(rows[i]) / float64(n) * float64(columns[i]) / float64(n)
	}
	return kappaOf((float64(same)/float64(n) - chance) / (1 - chance))
}

// mean is the mean of those kappas that are defined.
func mean(kappas []Kappa) Kappa {
	var values []float64
	for _, k := range kappas {
		if k.Value != nil {
			values = append(values, *k.Value)
		}
	}
	switch {
	case len(values) > 0:
		return kappaOf(average(values))
	case len(kappas) > 0:
		return kappas[0] // all are undefined: the first one's reason stands for them
	}
	return Kappa{Undefined: "no entries"}
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Annotator names annotator i, from 0: A1, A2 and so on.
func Annotator(i int) string { return fmt.Sprintf("A%d", i+1) }

// Agree compares annotators, every two of them. It fails when no two have an entry in common.
func Agree(schema manifest.Schema, annotators []Answers) (Agreement, error) {
	if len(annotators) < 2 {
		return Agreement{}, fmt.Errorf("agreement: %d annotators, and it takes two", len(annotators))
	}
	var out Agreement
	var pairs []annotated
	for i, b := range annotators {
		out.Annotators = append(out.Annotators, Annotator(i))
		for j, a := range annotators[:i] {
			common := inBoth(a, b)
			if len(common) == 0 {
				continue // the two read different parts of the dataset
			}
			out.Pairs = append(out.Pairs, AnnotatorPair{Annotator(j), Annotator(i),
				len(common), len(a) - len(common), len(b) - len(common)})
			pairs = append(pairs, annotated{a, b, common})
		}
	}
	if len(out.Pairs) == 0 {
		return Agreement{}, fmt.Errorf("agreement: no two annotators have an entry in common")
	}
	for c, category := range schema.Categories {
		out.Categories = append(out.Categories, agreeOn(category, c, pairs))
	}
	return out, nil
}

func inBoth(a, b Answers) []manifest.Key {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(a)), func(k manifest.Key) bool { return b[k] == nil })
	slices.SortFunc(keys, func(x, y manifest.Key) int {
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Image, y.Image)) // sums of floats depend on the order
	})
	return keys
}

// annotated is what two annotators have in common.
type annotated struct {
	a, b Answers
	keys []manifest.Key
}

// agreeOn gives the agreement on the category at place c of the schema: means over the pairs.
func agreeOn(category manifest.Category, c int, pairs []annotated) CategoryAgreement {
	out := CategoryAgreement{Name: category.Name, Title: category.Title, Kind: category.Kind}
	kappas := make([][]Kappa, max(1, len(category.Labels))) // [label][pair]; of a category that takes one label in [0]
	var alike []float64
	for _, p := range pairs {
		tables, sum, entries := p.compare(category, c)
		out.Entries += entries
		out.Unanswered += len(p.keys) - entries
		for i, table := range tables {
			kappas[i] = append(kappas[i], cohen(table))
		}
		if entries > 0 {
			alike = append(alike, sum/float64(entries))
		}
	}
	var observed *float64
	if len(alike) > 0 {
		observed = new(average(alike))
	}
	if category.Kind != manifest.Multi {
		out.Observed, out.Kappa = observed, mean(kappas[0])
		return out
	}
	out.Jaccard = observed
	var all []Kappa
	for l, label := range category.Labels {
		if !label.Exclusive { // None says again what the other labels say
			k := mean(kappas[l])
			all = append(all, k)
			out.Labels = append(out.Labels, LabelAgreement{Code: label.Code, Name: label.Name, Kappa: k})
		}
	}
	out.Kappa = mean(all)
	return out
}

// compare counts the answers to a category, [one's][the other's]: of a multi-label category in a table for each
// label, given or not. alike sums over the entries that both answered: equal answers, or the Jaccard similarity.
func (p annotated) compare(category manifest.Category, c int) (tables [][][]int, alike float64, entries int) {
	n, size := 1, len(category.Labels) // one table over all labels
	multi := category.Kind == manifest.Multi
	if multi {
		n, size = len(category.Labels), 2
	}
	for range n {
		tables = append(tables, zeros(size, size))
	}
	for _, key := range p.keys {
		a, b := p.a[key][c], p.b[key][c]
		if a == nil || b == nil || !multi && (len(a) != 1 || len(b) != 1) {
			continue
		}
		entries++
		if !multi {
			tables[0][a[0]][b[0]]++
			alike += float64(number(a[0] == b[0]))
			continue
		}
		union, shared := 0, 0
		for l := range n {
			inA, inB := number(slices.Contains(a, l)), number(slices.Contains(b, l))
			tables[l][inA][inB]++
			if !category.Labels[l].Exclusive {
				union += inA | inB
				shared += inA & inB
			}
		}
		if union == 0 { // None and None are the same answer
			union, shared = 1, 1
		}
		alike += float64(shared) / float64(union)
	}
	return tables, alike, entries
}

func zeros(rows, columns int) [][]int {
	table := make([][]int, rows)
	for i := range table {
		table[i] = make([]int, columns)
	}
	return table
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
