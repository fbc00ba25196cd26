package labels

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// TaskWeights are the weights that a loss takes against rare classes. Their JSON form is stable (docs/labels.md).
type TaskWeights struct {
	Category string `json:"category"`
	// Rule is balanced: entries / (classes x count), for a category that takes one label, where the classes are those
	// that an entry has, as scikit-learn counts them; pos_weight: entries without the label / entries with it, for one
	// that takes several.
	Rule    string        `json:"rule"`
	Entries int           `json:"entries"` // that have an answer which is not left out
	Labels  []ClassWeight `json:"labels"`
}

// A ClassWeight is the weight of a class, nil where no entry has it.
type ClassWeight struct {
	Code   string   `json:"code"`
	Name   string   `json:"name"`
	Count  int      `json:"count"`
	Weight *float64 `json:"weight"`
}

// Weights computes the class weights of tasks over entries.
func Weights(tasks []Task, entries []manifest.Entry) (all []TaskWeights) {
	for _, t := range tasks {
		w := TaskWeights{Category: t.Category, Rule: "balanced"}
		counts := make([]int, len(t.Classes))
		for _, e := range entries {
			classes := t.ClassesOf(e.Labels)
			if classes == nil || t.Kind != manifest.Multi && len(classes) == 0 {
				continue
			}
			w.Entries++
			for _, c := range classes {
				counts[c]++
			}
		}
		classes := 0 // that an entry has
		for _, n := range counts {
			classes += min(1, n)
		}
		for c, class := range t.Classes {
			label := ClassWeight{class.Code, class.Name, counts[c], nil}
			weight := float64(w.Entries) / float64(max(1, classes*counts[c]))
			if t.Kind == manifest.Multi {
				w.Rule = "pos_weight"
				weight = float64(w.Entries-counts[c]) / float64(max(1, counts[c]))
			}
			if counts[c] > 0 {
				label.Weight = &weight
			}
			w.Labels = append(w.Labels, label)
		}
		all = append(all, w)
	}
	return all
}

// Probabilities are a model's probabilities of each class of a task, by entry and class. NaN stands for none.
type Probabilities map[manifest.Key][]float64

// A Threshold is the probability from which a class is predicted.
type Threshold struct {
	Code  string  `json:"code"`
	Name  string  `json:"name"`
	Value float64 `json:"threshold"`
	// F1 is that of the entries it was tuned on; nil where none of them has the class, and the threshold is 0.5.
	F1 *float64 `json:"f1"`
}

// Column names the column of a class in a table of probabilities: figurative.F1.
func (t Task) Column(class string) string { return t.Category + "." + class }

// codes gives, for each class, the codes of its labels.
func (t Task) codes(schema manifest.Schema) [][]string {
	codes := make([][]string, len(t.Classes))
	for l, c := range t.classOf {
		if c >= 0 {
			codes[c] = append(codes[c], schema.Categories[t.place].Labels[l].Code)
		}
	}
	return codes
}

// An Improbable is the error of a number that is no probability.
type Improbable struct {
	Column string
	Row    int // place among the keys
	Value  float64
}

func (e *Improbable) Error() string {
	return fmt.Sprintf("%s is %g, and a probability is from 0 to 1", e.Column, e.Value)
}

// rounding is how far beyond 0 and 1 the numbers of a float32 may be.
const rounding = 1e-6

// Probabilities gives the probabilities of a task's classes, nil where a table has no column of the task. Each of
// numbers has a value for each key; one that cannot be a probability is *Improbable. A class of several labels has a
// column of its own (severity.SS4+SS5), or the sum of its labels' where one of them must be right, else the largest.
func (t Task) Probabilities(schema manifest.Schema, keys []manifest.Key, numbers []Feature) (Probabilities, error) {
	values := make(map[string][]float64, len(numbers))
	for _, c := range numbers {
		values[c.Name] = c.Values
	}
	columns := make([][][]float64, len(t.Classes)) // those to put together
	var missing []string
	met := false
	for i, codes := range t.codes(schema) {
		if values[t.Column(t.Classes[i].Code)] != nil {
			codes = []string{t.Classes[i].Code}
		}
		for _, code := range codes {
			part := values[t.Column(code)]
			if part == nil {
				missing = append(missing, t.Column(code))
			}
			odd := slices.IndexFunc(part, func(p float64) bool { return p < -rounding || p > 1+rounding })
			if odd >= 0 {
				return nil, &Improbable{t.Column(code), odd, part[odd]}
			}
			columns[i], met = append(columns[i], part), met || part != nil
		}
	}
	switch {
	case !met:
		return nil, nil
	case len(missing) > 0:
		return nil, fmt.Errorf("it lacks the columns of numbers %s", strings.Join(missing, ", "))
	}
	p := Probabilities{}
	for row, key := range keys {
		of := make([]float64, len(columns))
		for class, parts := range columns {
			for _, part := range parts {
				if t.Kind == manifest.Multi {
					of[class] = math.Max(of[class], part[row])
				} else {
					of[class] += part[row]
				}
			}
		}
		p[key] = of
	}
	return p, nil
}

// Tune finds for each class of a task that takes several labels the threshold with the highest F1 over entries; of
// equal ones the highest.
func (t Task) Tune(entries []manifest.Entry, p Probabilities) (thresholds []Threshold) {
	for c, class := range t.Classes {
		type scored struct {
			p     float64
			given bool
		}
		var all []scored
		positives := 0
		for _, e := range entries {
			given, of := t.ClassesOf(e.Labels), p[e.Key]
			if given == nil || of == nil || math.IsNaN(of[c]) {
				continue
			}
			all = append(all, scored{of[c], slices.Contains(given, c)})
			if all[len(all)-1].given {
				positives++
			}
		}
		out := Threshold{Code: class.Code, Name: class.Name, Value: 0.5}
		slices.SortFunc(all, func(a, b scored) int {
			switch {
			case a.p > b.p:
				return -1
			case a.p < b.p:
				return 1
			}
			return 0
		})
		hit, best := 0, 0.0
		for i, s := range all {
			if s.given {
				hit++
			}
			last := i == len(all)-1 || all[i+1].p != s.p // entries with one probability are predicted alike
			if f1 := (hits{hit, i + 1 - hit, positives - hit}).f1(); last && f1 > best {
				best, out.Value = f1, s.p
			}
		}
		if positives > 0 {
			out.F1 = &best
		}
		thresholds = append(thresholds, out)
	}
	return thresholds
}

// Decide turns probabilities into predictions, in the answers' place of the task: the classes at or above their
// thresholds, or the likeliest of a category that takes one label. An entry that lacks a probability gets no answer,
// and none where several are likeliest, which ties counts.
func (t Task) Decide(
	schema manifest.Schema, p Probabilities, thresholds []Threshold, answers Answers,
) (ties int, _ error) {
	for key, of := range p {
		if len(of) != len(t.Classes) {
			return 0, fmt.Errorf("%s has %d probabilities for %d classes of %s", key, len(of), len(t.Classes),
				t.Category)
		}
		if answers[key] == nil {
			answers[key] = make([][]int, len(schema.Categories))
		}
		if slices.ContainsFunc(of, math.IsNaN) {
			continue
		}
		predicted := []int{}
		likeliest, tied := 0, false
		for c, v := range of {
			switch {
			case v > of[likeliest]:
				likeliest, tied = c, false
			case c > 0 && v == of[likeliest]:
				tied = true
			}
			if t.Kind == manifest.Multi && v >= thresholds[c].Value {
				predicted = append(predicted, slices.Index(t.classOf, c))
			}
		}
		switch {
		case t.Kind == manifest.Multi:
		case tied:
			ties++
			continue
		default:
			predicted = []int{slices.Index(t.classOf, likeliest)}
		}
		answers[key][t.place] = predicted
	}
	return ties, nil
}
