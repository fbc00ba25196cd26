package labels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"rehydrate/manifest"
)

// A Task is a manifest.Task that was found in a schema: what the labels of its category count as.
type Task struct {
	Category string
	Kind     manifest.CategoryKind
	Classes  []Class // in the order of the schema; for an ordinal category from lowest to highest
	By       string  // see manifest.Task

	place    int   // of the category in the schema
	classOf  []int // label -> class, -1 for one that is left out
	errorsBy []int // places of categories
}

// A Class is a label, or several that count as one.
type Class struct {
	Code string // of several: joined by +
	Name string // of several: joined by /
}

// NewTask finds a task's labels in the schema. It fails on codes that are not there, and on labels to be merged that do
// not stand side by side in an ordinal category.
func NewTask(schema manifest.Schema, t manifest.Task) (Task, error) {
	place := slices.IndexFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == t.Category })
	if place < 0 {
		return Task{}, fmt.Errorf("the release has no category %q", t.Category)
	}
	category := schema.Categories[place]
	out := Task{Category: t.Category, Kind: category.Kind, By: t.By, place: place}
	group := make(map[string]int) // code -> place in t.Merge, -1 for one that is left out
	for n, codes := range append([][]string{t.LeaveOut}, t.Merge...) {
		for _, code := range codes {
			if !slices.ContainsFunc(category.Labels, func(l manifest.Label) bool { return l.Code == code }) {
				return Task{}, fmt.Errorf("category %s has no label %q", t.Category, code)
			}
			if _, twice := group[code]; twice {
				return Task{}, fmt.Errorf("label %s of category %s is merged or left out twice", code, t.Category)
			}
			group[code] = n - 1
		}
	}
	classOf := make(map[int]int) // place in t.Merge -> class, once it has one
	for _, l := range category.Labels {
		g, grouped := group[l.Code]
		class, met := classOf[g]
		switch {
		case grouped && g < 0, l.Exclusive && category.Kind == manifest.Multi: // no label predicted is what None says
			class = -1
		case grouped && met:
			// Between them would lie a label that is higher than one of the merged and lower than another.
			if category.Kind == manifest.Ordinal && class != len(out.Classes)-1 {
				return Task{}, fmt.Errorf("labels %s of category %s do not stand side by side on its scale",
					strings.Join(t.Merge[g], "+"), t.Category)
			}
			out.Classes[class].Code += "+" + l.Code
			out.Classes[class].Name += "/" + l.Name
		default:
			class = len(out.Classes)
			out.Classes = append(out.Classes, Class{l.Code, l.Name})
			if grouped {
				classOf[g] = class
			}
		}
		out.classOf = append(out.classOf, class)
	}
	for _, name := range t.ErrorsBy {
		by := slices.IndexFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == name })
		if by < 0 {
			return Task{}, fmt.Errorf("the release has no category %q", name)
		}
		out.errorsBy = append(out.errorsBy, by)
	}
	if len(out.Classes) < 2 && category.Kind != manifest.Multi || len(out.Classes) == 0 {
		return Task{}, fmt.Errorf("category %s has %d labels left to tell apart", t.Category, len(out.Classes))
	}
	return out, nil
}

// Spellings are the codes and names of the classes that are made of several labels. Each means the first of these
// labels, which counts as the class.
func (t Task) Spellings() (all []manifest.Spelling) {
	for label, class := range t.classOf {
		if class < 0 || slices.Index(t.classOf, class) != label || !t.merged(label) {
			continue
		}
		for _, text := range []string{t.Classes[class].Code, t.Classes[class].Name} {
			all = append(all, manifest.Spelling{Text: text, Category: t.place, Label: label})
		}
	}
	return all
}

// merged reports whether a label counts as one class with another.
func (t Task) merged(label int) bool {
	class := t.classOf[label]
	first := slices.Index(t.classOf, class)
	return class >= 0 && slices.Contains(t.classOf[first+1:], class)
}

// ClassOf gives the class that a label counts as, by its place in the category, -1 for one that is left out.
func (t Task) ClassOf(label int) int { return t.classOf[label] }

// ClassesOf gives an entry's classes, each once; nil for no answer, which no label at all is where one must be.
func (t Task) ClassesOf(labels [][]int) []int {
	if labels == nil || labels[t.place] == nil || t.Kind != manifest.Multi && len(labels[t.place]) == 0 {
		return nil
	}
	out := []int{}
	for _, l := range labels[t.place] {
		if c := t.classOf[l]; c >= 0 && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// Predictions are one file's answers, under the schema of the gold labels.
type Predictions struct {
	File   string
	Labels Answers
}

// Scores are what predictions are worth. Their JSON form is stable (docs/labels.md); scores are parts of 1.
type Scores struct {
	Entries int         `json:"entries"` // with gold labels
	Files   []FileScore `json:"files"`
	Tasks   []TaskScore `json:"tasks"` // those that at least one file answers
	// Unanswered are the categories of the other tasks, but for those of which no entry has a label (Unlabelled).
	Unanswered []string `json:"unanswered,omitempty"`
	Unlabelled []string `json:"unlabelled,omitempty"`
}

// Task gives the score of a task, nil where no file answers it.
func (s Scores) Task(category string) *TaskScore {
	for i, t := range s.Tasks {
		if t.Category == category {
			return &s.Tasks[i]
		}
	}
	return nil
}

// A FileScore says how a file's ids fit the gold labels. No list is longer than maxListed.
type FileScore struct {
	File      string   `json:"file"`
	LeftOut   int      `json:"left_out,omitempty"` // rows that say that they are no answer; set by who reads the file
	Predicted int      `json:"predicted"`          // entries of the file that are scored
	Missing   int      `json:"missing"`            // gold entries that the file lacks: not scored
	MissingOf []string `json:"missing_ids,omitempty"`
	Elsewhere int      `json:"other_splits"` // ids of the release that are not in the split scored
	Unknown   int      `json:"unknown"`      // ids that the release does not have
	UnknownOf []string `json:"unknown_ids,omitempty"`
}

const maxListed = 20

// A Spread is a number over several files: the mean, and the sample standard deviation (n-1), nil for a single file.
type Spread struct {
	Mean float64   `json:"mean"`
	SD   *float64  `json:"sd"`
	Each []float64 `json:"each"` // by the files that answer the task
}

// Percent writes a score, with its standard deviation over several files.
func (s Spread) Percent() string {
	if s.SD == nil {
		return fmt.Sprintf("%.2f", 100*s.Mean)
	}
	return fmt.Sprintf("%.2f ± %.2f", 100*s.Mean, 100**s.SD)
}

func spread(each []float64) Spread {
	if len(each) == 1 {
		return Spread{Mean: each[0], Each: each}
	}
	m, sd := stat.MeanStdDev(each, nil)
	return Spread{Mean: m, SD: &sd, Each: each}
}

// A TaskScore is the score of one task.
type TaskScore struct {
	Category   string       `json:"category"`
	Files      []string     `json:"files"`            // that have answers
	Silent     []string     `json:"silent,omitempty"` // files that have none, and so no part in the scores
	Without    int          `json:"without_label"`    // gold entries without a label of the category: not scored
	Scored     []int        `json:"scored"`           // entries that were scored, by Files
	NoAnswer   []int        `json:"no_answer"`        // entries of the file without an answer for this task: not scored
	Answered   [][]bool     `json:"-"`                // by Files and gold entries: which were scored
	MacroF1    Spread       `json:"macro_f1"`
	WeightedF1 Spread       `json:"weighted_f1"` // weighted by the number of gold labels
	Labels     []LabelScore `json:"labels"`
	Bias       *Bias        `json:"bias,omitempty"`   // of an ordinal category: where predictions are too high or too low
	Errors     []ErrorsBy   `json:"errors,omitempty"` // by the labels of other categories: FigSIM, Appendix F
}

// ErrorsBy counts wrong predictions by the labels of a category, summed over the files. A prediction is wrong where its
// classes are not exactly those of the gold labels, also where several can be given.
type ErrorsBy struct {
	Category string       `json:"category"`
	Labels   []ErrorShare `json:"labels"`
	Without  int          `json:"without_label,omitempty"` // predictions for entries without a label of the category
}

// An ErrorShare counts the scored entries with a label.
type ErrorShare struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Wrong int    `json:"wrong"`
	All   int    `json:"all"`
}

// SameEntries reports whether all files of both scores were scored on the same entries, without which they are not
// comparable.
func (t TaskScore) SameEntries(other TaskScore) bool {
	all := slices.Concat(t.Answered, other.Answered)
	return !slices.ContainsFunc(all, func(of []bool) bool { return !slices.Equal(of, all[0]) })
}

// A LabelScore is the F1 of a label: 0 where it is neither given nor predicted anywhere.
type LabelScore struct {
	Code     string `json:"code"`
	Name     string `json:"name"`
	Support  int    `json:"support"`  // gold entries with the label, among those that every file scored
	Supports []int  `json:"supports"` // gold entries with the label that each file scored
	F1       Spread `json:"f1"`
	FP       Spread `json:"false_positives"`
	FN       Spread `json:"false_negatives"`
}

// Nowhere are the labels that no entry has and no prediction names. They count as 0 in the macro F1.
func (t TaskScore) Nowhere() (codes []string) {
	for _, l := range t.Labels {
		if l.Support == 0 && (len(l.Supports) == 0 || slices.Max(l.Supports) == 0) && l.FP.Mean == 0 {
			codes = append(codes, l.Code)
		}
	}
	return codes
}

// True writes how many entries have the label, by file where they scored others.
func (l LabelScore) True() string {
	if len(l.Supports) == 0 {
		return strconv.Itoa(l.Support)
	}
	if slices.Min(l.Supports) == slices.Max(l.Supports) {
		return strconv.Itoa(l.Supports[0])
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(l.Supports), "[]"), " ", ", ")
}

// A Bias counts the entries of an ordinal task whose prediction is higher or lower on the scale
// than the gold label, summed over the files.
type Bias struct {
	ByTrue  []BiasRow `json:"by_true"`            // by gold label: FigSIM, Figure 4
	ByLabel []BiasBy  `json:"by_label,omitempty"` // by the labels of another category: FigSIM, Table 12
	// Right is ByLabel over those predictions that are right about the label: FigSIM, section 5.3. nil where no file
	// answers the other category.
	Right []BiasBy `json:"by_label_right,omitempty"`
	// Without are predictions for entries that have no answer for the other category: they are in ByTrue alone.
	Without int `json:"without_label,omitempty"`
}

// A BiasRow counts the entries of one kind.
type BiasRow struct {
	Code    string `json:"code"`
	Name    string `json:"name"`
	Over    int    `json:"over"`
	Under   int    `json:"under"`
	Correct int    `json:"correct"`
}

// Wrong is how many were predicted too high or too low.
func (b BiasRow) Wrong() int { return b.Over + b.Under }

// A BiasBy sets entries without a label beside those with it.
type BiasBy struct {
	Code    string  `json:"code"`
	Name    string  `json:"name"`
	Absent  BiasRow `json:"absent"`
	Present BiasRow `json:"present"`
}

// Score scores predictions against the entries of gold. others are the ids of the release that are not to be scored. A
// gold entry that a file lacks is not scored, as the paper does with what a model refused to answer, but counted.
func Score(schema manifest.Schema, tasks []Task, gold []manifest.Entry, others map[manifest.Key]bool,
	files []Predictions) (Scores, error) {
	if len(gold) == 0 || len(files) == 0 {
		return Scores{}, fmt.Errorf("score: no entry has gold labels, or no file has predictions")
	}
	out := Scores{Entries: len(gold)}
	for _, f := range files {
		out.Files = append(out.Files, MatchIDs(f.File, gold, others, f.Labels))
	}
	for _, t := range tasks {
		ts, answered := t.score(schema, tasks, gold, files)
		switch {
		case answered:
			out.Tasks = append(out.Tasks, ts)
		case !slices.ContainsFunc(gold, func(e manifest.Entry) bool { return t.ClassesOf(e.Labels) != nil }):
			out.Unlabelled = append(out.Unlabelled, t.Category)
		default:
			out.Unanswered = append(out.Unanswered, t.Category)
		}
	}
	switch {
	case len(out.Tasks) > 0:
	case len(out.Unanswered) == 0:
		return out, fmt.Errorf("score: none of the %d entries has a label of %s in the release", len(gold),
			strings.Join(out.Unlabelled, ", "))
	default:
		first := out.Files[0]
		return out, fmt.Errorf("score: no file has an answer to a task for an entry with gold labels "+
			"(of the first file's ids %d are such entries, %d are of other splits and %d are unknown)",
			first.Predicted, first.Elsewhere, first.Unknown)
	}
	return out, nil
}

// MatchIDs says how the rows of a file fit the gold entries. others are the ids of the release that are not looked at.
func MatchIDs[V any](file string, gold []manifest.Entry, others map[manifest.Key]bool,
	rows map[manifest.Key]V) FileScore {
	fs := FileScore{File: file}
	known := make(map[manifest.Key]bool, len(gold))
	var missing, unknown []string
	for _, e := range gold {
		known[e.Key] = true
		if _, ok := rows[e.Key]; !ok {
			missing = append(missing, e.Key.String())
		}
	}
	for key := range rows {
		switch {
		case known[key]:
		case others[key]:
			fs.Elsewhere++
		default:
			unknown = append(unknown, key.String())
		}
	}
	slices.Sort(unknown) // they come in the order of a map
	fs.Predicted, fs.Missing, fs.Unknown = len(gold)-len(missing), len(missing), len(unknown)
	fs.MissingOf, fs.UnknownOf = missing[:min(len(missing), maxListed)], unknown[:min(len(unknown), maxListed)]
	return fs
}

// A tallied is one file's counts for one task.
type tallied struct {
	scored, noAnswer int
	by               []hits // by class
	entries          []bool // which of gold were scored
}

type hits struct{ hit, fp, fn int } // true positives, false positives and false negatives

func (h hits) support() int { return h.hit + h.fn }

// f1 is 0 where there is nothing to count, as scikit-learn has it when all labels are named to it.
func (h hits) f1() float64 { return float64(2*h.hit) / float64(max(1, 2*h.hit+h.fp+h.fn)) }

func (t Task) tally(gold []manifest.Entry, f Predictions) tallied {
	out := tallied{by: make([]hits, len(t.Classes)), entries: make([]bool, len(gold))}
	for i, e := range gold {
		given := t.ClassesOf(e.Labels)
		labels, ok := f.Labels[e.Key]
		if !ok || given == nil || t.Kind != manifest.Multi && len(given) == 0 {
			continue // without a prediction, without a gold label, or with one that is left out
		}
		predicted := t.ClassesOf(labels)
		if predicted == nil {
			out.noAnswer++
			continue
		}
		out.scored++
		out.entries[i] = true
		for c := range out.by {
			g, p := slices.Contains(given, c), slices.Contains(predicted, c)
			switch {
			case g && p:
				out.by[c].hit++
			case p:
				out.by[c].fp++
			case g:
				out.by[c].fn++
			}
		}
	}
	return out
}

// averages gives the macro and the weighted F1.
func (x tallied) averages() (macro, weighted float64) {
	support := 0
	for _, h := range x.by {
		macro += h.f1()
		weighted += h.f1() * float64(h.support())
		support += h.support()
	}
	return macro / float64(len(x.by)), weighted / float64(max(1, support))
}

func (t Task) score(schema manifest.Schema, tasks []Task, gold []manifest.Entry, files []Predictions) (TaskScore,
	bool) {
	ts := TaskScore{Category: t.Category, Without: Without(schema, t.place, gold)}
	var tallies []tallied
	var macro, weighted []float64
	for _, f := range files {
		x := t.tally(gold, f)
		if x.scored == 0 { // a file of other tasks, or of a model that answered nothing
			ts.Silent = append(ts.Silent, f.File)
			continue
		}
		m, w := x.averages()
		macro, weighted, tallies = append(macro, m), append(weighted, w), append(tallies, x)
		ts.Files = append(ts.Files, f.File)
		ts.Scored, ts.NoAnswer = append(ts.Scored, x.scored), append(ts.NoAnswer, x.noAnswer)
		ts.Answered = append(ts.Answered, x.entries)
	}
	if len(tallies) == 0 {
		return ts, false
	}
	ts.MacroF1, ts.WeightedF1 = spread(macro), spread(weighted)
	common := t.common(gold, tallies)
	for c, class := range t.Classes {
		var f1, fp, fn []float64
		label := LabelScore{Code: class.Code, Name: class.Name, Support: common[c]}
		for _, x := range tallies {
			h := x.by[c]
			f1, fp, fn = append(f1, h.f1()), append(fp, float64(h.fp)), append(fn, float64(h.fn))
			label.Supports = append(label.Supports, h.support())
		}
		label.F1, label.FP, label.FN = spread(f1), spread(fp), spread(fn)
		ts.Labels = append(ts.Labels, label)
	}
	if t.Kind == manifest.Ordinal {
		ts.Bias = t.bias(schema, tasks, gold, files)
	}
	for _, by := range t.errorsBy {
		ts.Errors = append(ts.Errors, t.errors(schema.Categories[by], by, gold, files))
	}
	return ts, true
}

// common counts by class the gold entries that all have scored.
func (t Task) common(gold []manifest.Entry, tallies []tallied) []int {
	counts := make([]int, len(t.Classes))
	for i, e := range gold {
		if slices.ContainsFunc(tallies, func(x tallied) bool { return !x.entries[i] }) {
			continue
		}
		for _, c := range t.ClassesOf(e.Labels) {
			counts[c]++
		}
	}
	return counts
}

// errors counts wrong predictions by the labels of the category at place by.
func (t Task) errors(category manifest.Category, by int, gold []manifest.Entry, files []Predictions) ErrorsBy {
	out := ErrorsBy{Category: category.Name}
	for _, l := range category.Labels {
		out.Labels = append(out.Labels, ErrorShare{Code: l.Code, Name: l.Name})
	}
	for _, f := range files {
		for _, e := range gold {
			given, predicted := t.ClassesOf(e.Labels), t.ClassesOf(f.Labels[e.Key])
			if given == nil || predicted == nil || t.Kind != manifest.Multi && len(given) == 0 {
				continue
			}
			right := len(given) == len(predicted) &&
				!slices.ContainsFunc(given, func(c int) bool { return !slices.Contains(predicted, c) })
			if len(e.Labels[by]) == 0 {
				out.Without++
			}
			for _, l := range e.Labels[by] {
				out.Labels[l].All++
				if !right {
					out.Labels[l].Wrong++
				}
			}
		}
	}
	return out
}

// bias counts, over all files, on which side of the gold label predictions fall. tasks are all that are scored.
func (t Task) bias(schema manifest.Schema, tasks []Task, gold []manifest.Entry, files []Predictions) *Bias {
	b := &Bias{}
	for _, c := range t.Classes {
		b.ByTrue = append(b.ByTrue, BiasRow{Code: c.Code, Name: c.Name})
	}
	by := slices.IndexFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == t.By })
	var places []int // in the other category, by ByLabel
	if by >= 0 {
		for place, l := range schema.Categories[by].Labels {
			if !l.Exclusive {
				row := BiasRow{Code: l.Code, Name: l.Name}
				b.ByLabel, places = append(b.ByLabel, BiasBy{l.Code, l.Name, row, row}), append(places, place)
			}
		}
	}
	right := slices.Clone(b.ByLabel)
	for _, f := range files {
		for _, e := range gold {
			given, predicted := t.ClassesOf(e.Labels), t.ClassesOf(f.Labels[e.Key])
			if len(given) == 0 || len(predicted) == 0 {
				continue
			}
			b.ByTrue[given[0]].count(given[0], predicted[0])
			if by < 0 {
				continue
			}
			if e.Labels[by] == nil {
				b.Without++
				continue
			}
			other := f.Labels[e.Key][by]
			if other != nil {
				b.Right = right
			}
			for at, place := range places {
				has := slices.Contains(e.Labels[by], place)
				b.ByLabel[at].side(has).count(given[0], predicted[0])
				if other != nil && slices.Contains(other, place) == has {
					right[at].side(has).count(given[0], predicted[0])
				}
			}
		}
	}
	// A prediction of a class does not say which of its labels is meant, so that none of them was predicted right.
	if other := slices.IndexFunc(tasks, func(t Task) bool { return t.place == by }); other >= 0 && b.Right != nil {
		b.Right = nil
		for at, place := range places {
			if !tasks[other].merged(place) {
				b.Right = append(b.Right, right[at])
			}
		}
	}
	return b
}

func (b *BiasBy) side(present bool) *BiasRow {
	if present {
		return &b.Present
	}
	return &b.Absent
}

func (b *BiasRow) count(given, predicted int) {
	switch {
	case predicted > given:
		b.Over++
	case predicted < given:
		b.Under++
	default:
		b.Correct++
	}
}
