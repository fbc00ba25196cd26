package labels

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
)

// A Decider says which annotator decides where others differ: annotator N, from 1, or one of these.
type Decider int

const (
	// Nobody decides.
	Nobody Decider = 0
	// LastOfThree decides where three annotators answered: the last of them, in the order in which annotators come.
	LastOfThree Decider = -1
)

// ParseDecider reads the name of an annotator, such as A3, or none.
func ParseDecider(text string) (Decider, error) {
	if text == "none" {
		return Nobody, nil
	}
	digits, isName := strings.CutPrefix(text, "A")
	n, err := strconv.Atoi(digits)
	if !isName || err != nil || n < 1 || Annotator(n-1) != text {
		return 0, fmt.Errorf("name an annotator, such as A3, or none, not %q", text)
	}
	return Decider(n), nil
}

// Of is who decides of those, in their order, who answered; -1 for nobody.
func (d Decider) Of(answered []int) int {
	switch {
	case len(answered) < 3:
		return -1
	case d > 0 && slices.Contains(answered, int(d)-1):
		return int(d) - 1
	case d == LastOfThree && len(answered) == 3:
		return answered[2]
	}
	return -1
}

// among lists the annotators who decide and do nothing else: who was named, or the last of three, who come last of
// every three that answered and are never one of four. Where some come last for one entry and not for another, as in a
// pool of annotators, nobody is left out.
func (d Decider) among(annotators []Answers) (deciders []int, err error) {
	switch {
	case int(d) > len(annotators):
		return nil, fmt.Errorf("%s cannot decide: there are %d annotators", Annotator(int(d)-1), len(annotators))
	case d > 0:
		return []int{int(d) - 1}, nil
	case d == Nobody:
		return nil, nil
	}
	last, beside := map[int]bool{}, map[int]bool{}
	for _, who := range answeredBy(annotators) {
		judge := d.Of(who)
		for _, i := range who {
			if i == judge {
				last[i] = true
			} else if len(who) > 2 {
				beside[i] = true
			}
		}
	}
	deciders = slices.Sorted(maps.Keys(last))
	if slices.ContainsFunc(deciders, func(i int) bool { return beside[i] }) {
		return nil, nil
	}
	return deciders, nil
}

// answeredBy lists who answered for each entry.
func answeredBy(annotators []Answers) map[manifest.Key][]int {
	by := map[manifest.Key][]int{}
	for i, of := range annotators {
		for key := range of {
			by[key] = append(by[key], i)
		}
	}
	return by
}

// A survey has the answers to entries that two annotators or more answered for; entries with the same answers are one
// row.
type survey struct {
	rows   [][]given // in the order of the ids of the first entry with these answers
	counts []int     // how many entries have them
	of     []int     // the row of each entry
}

// A given is what one annotator answered for an entry.
type given struct {
	who    int
	labels [][]int // by category
}

// newSurvey reads the answers of all annotators but some.
func newSurvey(annotators []Answers, without []int) (s survey) {
	by := answeredBy(annotators)
	for key, who := range by {
		by[key] = slices.DeleteFunc(who, func(i int) bool { return slices.Contains(without, i) })
		if len(by[key]) < 2 {
			delete(by, key)
		}
	}
	// Sums of floats depend on their order, and the last digits must not depend on that of a map.
	keys := slices.SortedFunc(maps.Keys(by), func(x, y manifest.Key) int {
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Image, y.Image))
	})
	known := map[string]int{}
	var name []byte
	for _, key := range keys {
		var row []given
		name = name[:0]
		for _, i := range by[key] {
			row = append(row, given{i, annotators[i][key]})
			name = appendAnswers(appendNumber(name, i), annotators[i][key])
		}
		r, met := known[string(name)]
		if !met {
			r = len(s.rows)
			known[string(name)] = r
			s.rows, s.counts = append(s.rows, row), append(s.counts, 0)
		}
		s.counts[r]++
		s.of = append(s.of, r)
	}
	return s
}

// appendAnswers writes answers so that different ones are different bytes.
func appendAnswers(b []byte, answers [][]int) []byte {
	for _, labels := range answers {
		if labels == nil {
			b = append(b, '-')
		}
		for _, l := range labels {
			b = appendNumber(b, l)
		}
		b = append(b, ';')
	}
	return b
}

func appendNumber(b []byte, n int) []byte { return append(strconv.AppendInt(b, int64(n), 10), ' ') }

// A pair is two annotators and the rows for which both answered.
type pair struct {
	a, b int
	rows []pairRow
}

// A pairRow is a row of the survey, and the places of the two annotators in it.
type pairRow struct{ row, a, b int }

// pairs lists those with entries in common.
func (s survey) pairs() []pair {
	var all []pair
	place := map[[2]int]int{}
	for r, row := range s.rows {
		for j := range row {
			for i := range row[:j] {
				who := [2]int{row[j].who, row[i].who}
				at, met := place[who]
				if !met {
					at = len(all)
					place[who], all = at, append(all, pair{a: who[1], b: who[0]})
				}
				all[at].rows = append(all[at].rows, pairRow{r, i, j})
			}
		}
	}
	slices.SortFunc(all, func(x, y pair) int { return cmp.Or(cmp.Compare(x.b, y.b), cmp.Compare(x.a, y.a)) })
	return all
}

// both counts the entries that both annotated.
func (p pair) both(s survey) (n int) {
	for _, r := range p.rows {
		n += s.counts[r.row]
	}
	return n
}

// A Bootstrap says how intervals were made: entries are drawn anew, as many as there are, and the numbers computed of
// those.
type Bootstrap struct {
	Resamples int     `json:"resamples"`
	Seed      uint64  `json:"seed"`
	Level     float64 `json:"level"`
}

const (
	resamples = 2000
	level     = .95
	// mostUndefined bounds the part of the resamples in which a number is undefined. What is left of more would be a
	// selection.
	mostUndefined = .05
)

// An Interval has the quantiles of a number over the resamples in which it is defined.
type Interval struct {
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Resamples int     `json:"resamples"` // in which the number is defined
}

// String writes an interval with two digits, - for none.
func (i *Interval) String() string {
	if i == nil {
		return "-"
	}
	return digits(&i.Low) + " to " + digits(&i.High)
}

// A statistic is a number of entries, of which counts says how many have each row of a survey; nil where it is
// undefined.
type statistic func(counts []int) *float64

// bootstrap gives the interval of each statistic, nil where it is undefined for too many of the resamples. One seed
// gives one result.
func (s survey) bootstrap(seed uint64, statistics []statistic) []*Interval {
	random := rand.NewPCG(seed, 0x7265687964726174)
	values := make([][]float64, len(statistics))
	counts := make([]int, len(s.rows))
	for range resamples {
		clear(counts)
		for range s.of {
			// Not rand.IntN: the intervals of a seed must not depend on how a library draws numbers.
			entry, _ := bits.Mul64(random.Uint64(), uint64(len(s.of)))
			counts[s.of[entry]]++
		}
		for i, statistic := range statistics {
			if v := statistic(counts); v != nil {
				values[i] = append(values[i], *v)
			}
		}
	}
	intervals := make([]*Interval, len(statistics))
	for i, of := range values {
		if float64(len(of)) < (1-mostUndefined)*resamples {
			continue
		}
		slices.Sort(of)
		intervals[i] = &Interval{quantile(of, (1-level)/2), quantile(of, (1+level)/2), len(of)}
	}
	return intervals
}
