package labels

import (
	"math/bits"
	"slices"

	"rehydrate/manifest"
)

// An Alpha is Krippendorff's alpha (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability), or why it is
// undefined. It takes any number of annotators, who need not have answered for the same entries. No words are defined
// for it.
type Alpha struct {
	Value     *float64  `json:"value"`               // nil when it is undefined
	Undefined string    `json:"undefined,omitempty"` // "no entries", "no variation", "too many different answers"
	Distance  string    `json:"distance"`            // of two answers: nominal, ordinal, MASI
	Interval  *Interval `json:"interval,omitempty"`
}

// Distances of two answers.
const (
	nominalDistance = "nominal" // 0 where they are equal, else 1
	ordinalDistance = "ordinal" // by how many answers lie between them on the scale
	masiDistance    = "MASI"    // of sets (Passonneau 2006)
)

const (
	// mostValues bounds the different answers of which alpha compares every two.
	mostValues = 10_000
	// mostResampled bounds them for the intervals, for which they are compared thousands of times.
	mostResampled = 1_000
)

// A distance tells how far two values are apart, given how often each value was answered. It is 0 for a value and
// itself.
type distance func(answered []float64) func(a, b int) float64

func nominal([]float64) func(a, b int) float64 {
	return func(a, b int) float64 { return float64(number(a != b)) }
}

// ordinal takes the values for the ranks of a scale.
func ordinal(answered []float64) func(a, b int) float64 {
	below := make([]float64, len(answered)+1)
	for v, n := range answered {
		below[v+1] = below[v] + n
	}
	return func(a, b int) float64 {
		if a > b {
			a, b = b, a
		}
		apart := below[b+1] - below[a] - (answered[a]+answered[b])/2
		return apart * apart
	}
}

// A set has the labels of an answer, by bits.
type set []uint64

func (s set) size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// masi is the distance of sets by their places in a list.
func masi(sets []set) distance {
	return func([]float64) func(a, b int) float64 {
		return func(a, b int) float64 { return masiOf(sets[a], sets[b]) }
	}
}

// masiOf is 1 less the Jaccard similarity of two sets times what of one is in the other: 1 for equal sets, 2/3 where
// one contains the other, 1/3 where each has something of its own. Two empty sets are equal.
func masiOf(a, b set) float64 {
	shared := 0
	for i := range a {
		shared += bits.OnesCount64(a[i] & b[i])
	}
	sizeA, sizeB := a.size(), b.size()
	union := sizeA + sizeB - shared
	switch {
	case shared == union:
		return 0
	case shared == min(sizeA, sizeB):
		return 1 - float64(shared)/float64(union)*2/3
	}
	return 1 - float64(shared)/float64(union)/3
}

// A scale has the values that were answered to a question.
type scale struct {
	name     string
	values   int
	distance distance
	units    []unit
	of       []int // the unit of each row of a survey
	known    map[string]int
}

// A unit has the values that an entry was given by two annotators or more. It is empty of those that were not.
type unit struct {
	values []int     // each value once
	times  []float64 // how often
	all    float64   // the sum of times
}

// add adds the values of the next row.
func (s *scale) add(values []int) {
	if len(values) < 2 {
		values = nil // nothing to hold it against
	}
	slices.Sort(values)
	var name []byte
	for _, v := range values {
		name = appendNumber(name, v)
	}
	at, met := s.known[string(name)]
	if !met {
		at = len(s.units)
		s.known[string(name)] = at
		u := unit{all: float64(len(values))}
		for i, v := range values {
			if i == 0 || v != values[i-1] {
				u.values, u.times = append(u.values, v), append(u.times, 0)
			}
			u.times[len(u.times)-1]++
		}
		s.units = append(s.units, u)
	}
	s.of = append(s.of, at)
}

// newScale reads the answers to a category, by the rows of a survey. None of a multi-label category is the empty set.
func newScale(s survey, category manifest.Category, c int) scale {
	out := scale{name: nominalDistance, values: len(category.Labels), distance: nominal, known: map[string]int{}}
	switch category.Kind {
	case manifest.Ordinal:
		out.name, out.distance = ordinalDistance, ordinal
	case manifest.Multi:
		return setScale(s, category, c)
	}
	for _, row := range s.rows {
		var values []int
		for _, given := range row {
			if labels := given.labels[c]; len(labels) == 1 {
				values = append(values, labels[0])
			}
		}
		out.add(values)
	}
	return out
}

func setScale(s survey, category manifest.Category, c int) scale {
	var sets []set
	known := map[string]int{}
	out := scale{name: masiDistance, known: map[string]int{}}
	for _, row := range s.rows {
		var values []int
		for _, given := range row {
			if given.labels[c] == nil {
				continue
			}
			is, key := make(set, (len(category.Labels)+63)/64), make([]byte, len(category.Labels))
			for _, l := range given.labels[c] {
				if !category.Labels[l].Exclusive {
					is[l/64] |= 1 << (l % 64)
					key[l] = 1
				}
			}
			v, met := known[string(key)]
			if !met {
				v = len(sets)
				known[string(key)], sets = v, append(sets, is)
			}
			values = append(values, v)
		}
		out.add(values)
	}
	out.values, out.distance = len(sets), masi(sets)
	return out
}

// ofLabel is the scale on which one label of the category is given or not.
func ofLabel(s survey, c, label int) scale {
	out := scale{name: nominalDistance, values: 2, distance: nominal, known: map[string]int{}}
	for _, row := range s.rows {
		var values []int
		for _, given := range row {
			if given.labels[c] != nil {
				values = append(values, number(slices.Contains(given.labels[c], label)))
			}
		}
		out.add(values)
	}
	return out
}

// count counts the entries of each unit, where counts says how many have each row of the survey.
func (s scale) count(counts []int) []float64 {
	n := make([]float64, len(s.units))
	for r, unit := range s.of {
		n[unit] += float64(counts[r])
	}
	return n
}

// entries counts the entries with two answers or more.
func (s scale) entries(counts []int) int {
	n := 0.0
	for i, of := range s.count(counts) {
		if s.units[i].all > 0 {
			n += of
		}
	}
	return int(n)
}

// alpha compares the answers of entries, where counts says how many have each row of the survey.
func (s scale) alpha(counts []int) Alpha {
	out := Alpha{Distance: s.name}
	if s.values > mostValues {
		out.Undefined = tooMany
		return out
	}
	n := s.count(counts)
	answered, all := make([]float64, s.values), 0.0
	for i, u := range s.units {
		for j, v := range u.values {
			answered[v] += u.times[j] * n[i]
		}
		all += u.all * n[i]
	}
	between := s.distance(answered)
	seen := 0.0 // distances within entries, each pair of values once
	for k, u := range s.units {
		for i, a := range u.values {
			for j, b := range u.values[:i] {
				seen += between(a, b) * u.times[i] * u.times[j] / (u.all - 1) * n[k]
			}
		}
	}
	var present []int
	for v, n := range answered {
		if n > 0 {
			present = append(present, v)
		}
	}
	chance := 0.0 // distances of all answers, were they given to entries at random
	for i, a := range present {
		for _, b := range present[:i] {
			chance += between(a, b) * answered[a] * answered[b]
		}
	}
	switch {
	case all == 0:
		out.Undefined = noEntries
	case chance == 0:
		out.Undefined = noVariation
	default:
		out.Value = new(1 - (all-1)*seen/chance)
	}
	return out
}
