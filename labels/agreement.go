package labels

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// Answers are what one annotator or model said of each entry. Labels are as in manifest.Entry, by the categories of the
// schema: nil means no answer.
type Answers map[manifest.Key][][]int

// Comparing says which annotators are compared, and how intervals are drawn.
type Comparing struct {
	Decider Decider // whose answers are left out; by default nobody's
	Seed    uint64  // of the resamples of entries
}

// Agreement says how far annotators agree. It names none of them: they are A1, A2, A3... in the order
// in which they were given. Its JSON form is stable (docs/labels.md).
type Agreement struct {
	Annotators []string            `json:"annotators"` // that are compared
	Deciders   []string            `json:"deciders"`   // who decide where others differ, and are left out
	Entries    int                 `json:"entries"`    // that two or more of them annotated
	Pairs      []AnnotatorPair     `json:"pairs"`      // those with entries in common
	Categories []CategoryAgreement `json:"categories"`
	Bootstrap  *Bootstrap          `json:"bootstrap,omitempty"` // how the intervals were made; nil where there are none
}

// Several reports whether more than two annotators are compared, so that alpha is what is read first.
func (a Agreement) Several() bool { return len(a.Annotators) > 2 }

// A BatchAgreement is how far annotators agree on the entries of one batch. It has no intervals.
type BatchAgreement struct {
	Batch string `json:"batch"`
	// Agreement is nil where no two annotators have an entry of the batch in common.
	Agreement *Agreement `json:"agreement"`
}

// mostBatches bounds how many are told apart. More are no batches, but ids or times.
const mostBatches = 1000

// AgreeByBatch compares annotators batch by batch, in the order of the batches' numbers or names. Who decides over all
// is left out of each. It fails where there are more batches than anybody makes.
func AgreeByBatch(schema manifest.Schema, annotators []Answers, batches map[manifest.Key]string,
	how Comparing) (all []BatchAgreement, err error) {
	deciders, err := how.Decider.among(annotators)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Values(batches))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) }) // 9 before 10
	names = slices.Compact(names)
	if len(names) > mostBatches {
		return nil,
			fmt.Errorf("agreement by batch: there are %d batches, and %d are the most: is it another column that names them?",
				len(names), mostBatches)
	}
	byBatch := map[string]map[int]Answers{}
	for i, of := range annotators {
		for key, answers := range of {
			batch, ok := batches[key]
			if !ok {
				continue
			}
			if byBatch[batch] == nil {
				byBatch[batch] = map[int]Answers{}
			}
			if byBatch[batch][i] == nil {
				byBatch[batch][i] = Answers{}
			}
			byBatch[batch][i][key] = answers
		}
	}
	for _, name := range names {
		out := BatchAgreement{Batch: name}
		part := make([]Answers, len(annotators))
		for i, of := range byBatch[name] {
			part[i] = of
		}
		if compared, err := compare(schema, part, deciders); err == nil {
			out.Agreement = &compared.Agreement
		}
		all = append(all, out)
	}
	return all, nil
}

// An AnnotatorPair is two annotators and what they have in common.
type AnnotatorPair struct {
	A     string `json:"a"`
	B     string `json:"b"`
	Both  int    `json:"both"` // entries that both annotated
	OnlyA int    `json:"only_a"`
	OnlyB int    `json:"only_b"`
}

// CategoryAgreement is the agreement in one category. Over more than two annotators Kappa, Observed and Jaccard are the
// mean over the pairs for which they are defined; a pair weighs as much as the entries that both answered.
type CategoryAgreement struct {
	Name    string                `json:"name"`
	Title   string                `json:"title"`
	Kind    manifest.CategoryKind `json:"kind"`
	Entries int                   `json:"entries"` // that two or more gave an answer for
	// PairEntries counts, over the pairs, the entries that both gave an answer for, Unanswered those that lack one's.
	PairEntries int              `json:"pair_entries"`
	Unanswered  int              `json:"unanswered"`
	Alpha       Alpha            `json:"alpha"`              // of all annotators at once
	Kappa       Kappa            `json:"kappa"`              // Cohen's; of a multi-label category the mean over its labels
	Observed    *float64         `json:"observed,omitempty"` // part of equal answers; nil in a multi-label category
	Jaccard     *float64         `json:"jaccard,omitempty"`  // mean similarity of the label sets of a multi-label category
	Labels      []LabelAgreement `json:"labels,omitempty"`   // of a multi-label category, without None
}

// LabelAgreement is the agreement on whether a label is given.
type LabelAgreement struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Alpha Alpha  `json:"alpha"`
	Kappa Kappa  `json:"kappa"`
}

// A Kappa is Cohen's kappa, or why it is undefined.
type Kappa struct {
	Value     *float64  `json:"value"`               // nil when it is undefined
	Undefined string    `json:"undefined,omitempty"` // one of the reasons below
	Strength  string    `json:"strength,omitempty"`  // the word for the value
	Interval  *Interval `json:"interval,omitempty"`  // of two annotators
}

// Digits writes a kappa as it is printed, - where it is undefined.
func (k Kappa) Digits() string { return digits(k.Value) }

// Digits writes an alpha as it is printed, - where it is undefined.
func (a Alpha) Digits() string { return digits(a.Value) }

func digits(value *float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", math.Round(100**value)/100+0) // not -0.00
}

// Why a number is undefined.
const (
	noEntries   = "no entries"
	noVariation = "no variation" // every entry has one answer: agreement cannot be told from chance
	tooMany     = "too many different answers"
)

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
		return Kappa{Undefined: noEntries}
	}
	chance := 0.0
	for i := range rows {
		// Both gave every entry this label: chance agreement is 1, and kappa would be 0/0.
		if rows[i] == n && columns[i] == n {
			return Kappa{Undefined: noVariation}
		}
		chance += float64(rows[i]) / float64(n) * float64(columns[i]) / float64(n)
	}
	return kappaOf((float64(same)/float64(n) - chance) / (1 - chance))
}

// A mean is that of numbers, each with a weight.
type mean struct {
	sum, weight float64
	undefined   string // why a kappa is
}

func (m *mean) add(value, weight float64) {
	m.sum += value * weight
	m.weight += weight
}

func (m *mean) addKappa(k Kappa, weight float64) {
	switch {
	case k.Value != nil:
		m.add(*k.Value, weight)
	case m.undefined != noVariation:
		m.undefined = k.Undefined
	}
}

// value is nil where there is no number.
func (m *mean) value() *float64 {
	if m.weight == 0 {
		return nil
	}
	return new(m.sum / m.weight)
}

func (m *mean) kappa() Kappa {
	if v := m.value(); v != nil {
		return kappaOf(*v)
	}
	return Kappa{Undefined: cmp.Or(m.undefined, noEntries)}
}

// Annotator names annotator i, from 0: A1, A2 and so on.
func Annotator(i int) string { return fmt.Sprintf("A%d", i+1) }

// mostAnnotators bounds how many annotators are compared: of every two of them something is said.
const mostAnnotators = 500

// Agree compares annotators, but who decides. It fails when no two have an entry in common.
func Agree(schema manifest.Schema, annotators []Answers, how Comparing) (Agreement, error) {
	deciders, err := how.Decider.among(annotators)
	if err != nil {
		return Agreement{}, fmt.Errorf("agreement: %w", err)
	}
	out, err := compare(schema, annotators, deciders)
	if err == nil {
		out.resample(how.Seed)
	}
	return out.Agreement, err
}

// A comparison is an Agreement, and what its intervals are made of.
type comparison struct {
	Agreement
	survey     survey
	statistics []statistic
	intervals  []**Interval // where those of statistics go
	work       int          // of computing statistics once
}

func compare(schema manifest.Schema, annotators []Answers, deciders []int) (out comparison, err error) {
	n := len(annotators)
	switch {
	case n < 2:
		return out, fmt.Errorf("agreement takes two annotators, and there is %d", n)
	case n > mostAnnotators:
		return out, fmt.Errorf("agreement: there are %d annotators, and %d are the most that are compared", n,
			mostAnnotators)
	}
	out.Deciders = []string{}
	for i := range annotators {
		if slices.Contains(deciders, i) {
			out.Deciders = append(out.Deciders, Annotator(i))
		} else {
			out.Annotators = append(out.Annotators, Annotator(i))
		}
	}
	out.survey = newSurvey(annotators, deciders)
	out.Entries = len(out.survey.of)
	pairs := out.survey.pairs()
	for _, p := range pairs {
		both := p.both(out.survey)
		out.Pairs = append(out.Pairs, AnnotatorPair{Annotator(p.a), Annotator(p.b), both,
			len(annotators[p.a]) - both, len(annotators[p.b]) - both})
	}
	switch {
	case len(pairs) == 0 && len(deciders) > 0:
		return out, fmt.Errorf("agreement: no two annotators have an entry in common, once %s, who decides, is left out",
			strings.Join(out.Deciders, ", "))
	case len(pairs) == 0:
		return out, fmt.Errorf("agreement: no two annotators have an entry in common")
	}
	out.Categories = make([]CategoryAgreement, len(schema.Categories))
	for c, category := range schema.Categories {
		out.agreeOn(&out.Categories[c], category, c, pairs)
	}
	return out, nil
}

// agreeOn gives the agreement on the category at place c of the schema.
func (out *comparison) agreeOn(to *CategoryAgreement, category manifest.Category, c int, pairs []pair) {
	to.Name, to.Title, to.Kind = category.Name, category.Title, category.Kind
	counts := out.survey.counts
	scale := newScale(out.survey, category, c)
	to.Entries = scale.entries(counts)
	to.Alpha = out.alpha(scale, &to.Alpha.Interval)

	kappas := make([]mean, len(category.Labels)) // of a category that takes one label the first
	var alike mean
	var last calls
	for _, p := range pairs {
		last = newCalls(out.survey, p, category, c)
		sum, entries := last.alike(counts)
		to.PairEntries += entries
		to.Unanswered += p.both(out.survey) - entries
		if entries > 0 {
			alike.add(sum/float64(entries), float64(entries))
		}
		for i := range last.cells {
			kappas[i].addKappa(last.kappa(i, counts), float64(entries))
		}
	}
	if category.Kind != manifest.Multi {
		to.Observed, to.Kappa = alike.value(), kappas[0].kappa()
	} else {
		to.Jaccard, to.Kappa = alike.value(), out.agreeOnLabels(to, category, c, kappas)
	}
	if len(pairs) == 1 {
		out.trackKappas(to, category, last)
	}
}

// trackKappas has the intervals of the kappas of two annotators made.
func (out *comparison) trackKappas(to *CategoryAgreement, category manifest.Category, of calls) {
	mean := func(counts []int) *float64 { return of.mean(category, counts).Value }
	out.track(&to.Kappa.Interval, len(out.survey.rows)*len(of.cells), mean)
	at := 0
	for l, label := range category.Labels {
		if category.Kind != manifest.Multi || label.Exclusive {
			continue
		}
		out.track(&to.Labels[at].Kappa.Interval, 0, func(counts []int) *float64 { return of.kappa(l, counts).Value })
		at++
	}
}

// agreeOnLabels gives the agreement on each label but None, which says again what the others say, and returns the mean
// of the kappas.
func (out *comparison) agreeOnLabels(to *CategoryAgreement, category manifest.Category, c int, kappas []mean) Kappa {
	var all mean
	to.Labels = make([]LabelAgreement, 0, len(category.Labels))
	for l, label := range category.Labels {
		if label.Exclusive {
			continue
		}
		to.Labels = append(to.Labels, LabelAgreement{Code: label.Code, Name: label.Name, Kappa: kappas[l].kappa()})
		of := &to.Labels[len(to.Labels)-1]
		of.Alpha = out.alpha(ofLabel(out.survey, c, l), &of.Alpha.Interval)
		all.addKappa(of.Kappa, 1)
	}
	return all.kappa()
}

// alpha computes an alpha, whose interval goes to the place given.
func (out *comparison) alpha(s scale, to **Interval) Alpha {
	if s.values <= mostResampled {
		out.track(to, s.values*s.values/2, func(counts []int) *float64 { return s.alpha(counts).Value })
	}
	return s.alpha(out.survey.counts)
}

// track has the interval of a statistic made; work is what it takes beside a look at every row.
func (out *comparison) track(to **Interval, work int, s statistic) {
	out.statistics, out.intervals = append(out.statistics, s), append(out.intervals, to)
	out.work += work + len(out.survey.rows)
}

// mostWork bounds what each resample looks at: beyond it there are no intervals, for they would take minutes.
const mostWork = 2_000_000

// resample fills the intervals.
func (out *comparison) resample(seed uint64) {
	if out.work > mostWork {
		return
	}
	out.Bootstrap = &Bootstrap{Resamples: resamples, Seed: seed, Level: level}
	for i, interval := range out.survey.bootstrap(seed, out.statistics) {
		*out.intervals[i] = interval
	}
}

// calls are the answers of two annotators to a category: one table, or for a multi-label category one for each label.
type calls struct {
	size  int       // of a table
	rows  []int     // of the survey, that both answered
	cells [][]int   // of each table: the place of each of rows in it
	same  []float64 // of each of rows: whether the answers are equal, or the Jaccard similarity of the label sets
}

func newCalls(s survey, p pair, category manifest.Category, c int) calls {
	multi := category.Kind == manifest.Multi
	out := calls{size: len(category.Labels), cells: make([][]int, 1)}
	if multi {
		out.size, out.cells = 2, make([][]int, len(category.Labels))
	}
	for _, r := range p.rows {
		a, b := s.rows[r.row][r.a].labels[c], s.rows[r.row][r.b].labels[c]
		if a == nil || b == nil || !multi && (len(a) != 1 || len(b) != 1) {
			continue
		}
		out.rows = append(out.rows, r.row)
		if !multi {
			out.cells[0] = append(out.cells[0], a[0]*out.size+b[0])
			out.same = append(out.same, float64(number(a[0] == b[0])))
			continue
		}
		union, shared := 0, 0
		for l, label := range category.Labels {
			inA, inB := number(slices.Contains(a, l)), number(slices.Contains(b, l))
			out.cells[l] = append(out.cells[l], inA*out.size+inB)
			if !label.Exclusive {
				union += inA | inB
				shared += inA & inB
			}
		}
		if union == 0 { // None and None are the same answer
			union, shared = 1, 1
		}
		out.same = append(out.same, float64(shared)/float64(union))
	}
	return out
}

// kappa is that of a table, where counts says how many entries have each row of the survey.
func (k calls) kappa(table int, counts []int) Kappa {
	called := make([]int, k.size*k.size)
	for i, cell := range k.cells[table] {
		called[cell] += counts[k.rows[i]]
	}
	return cohen(slices.Collect(slices.Chunk(called, k.size)))
}

// mean is the kappa of the category.
func (k calls) mean(category manifest.Category, counts []int) Kappa {
	if category.Kind != manifest.Multi {
		return k.kappa(0, counts)
	}
	var all mean
	for l, label := range category.Labels {
		if !label.Exclusive {
			all.addKappa(k.kappa(l, counts), 1)
		}
	}
	return all.kappa()
}

// alike sums, over the entries that both answered, how much alike the answers are.
func (k calls) alike(counts []int) (sum float64, entries int) {
	for i, r := range k.rows {
		sum += k.same[i] * float64(counts[r])
		entries += counts[r]
	}
	return sum, entries
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
