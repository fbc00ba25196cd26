package labels

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"rehydrate/manifest"
)

// A Judgement is what a moderation service says of an entry; nil stands for what it does not say.
type Judgement struct {
	SelfHarm *bool
	Overall  *bool
	Severity *float64 // of self-harm, on the service's own scale
	// Against reports that the service says not flagged, and that a score or a severity of it is a flag by the rules.
	Against bool
}

// ModerationRules say what counts as a flag.
type ModerationRules struct {
	// SelfHarm names the categories of self-harm. Case and signs do not count: self-harm is SelfHarm. Empty: all
	// categories count, so that every flag is one of self-harm.
	SelfHarm []string
	Severity float64 // the least severity that is a flag, of a category that has no flag
	Score    float64 // the least score that is a flag, of a category that has neither
}

// Judgements are a file of a service's answers.
type Judgements struct {
	File     string
	Of       map[manifest.Key]Judgement
	Unjudged map[manifest.Key]bool // entries whose line has an error or no answer
}

// A Verdict is the answer of a moderation service about an entry. Its maps hold no nil where Judge takes it.
type Verdict struct {
	Flagged    *bool               `json:"flagged,omitempty"`
	Categories map[string]*bool    `json:"categories,omitempty"` // null is what a table's missing value is written as
	Scores     map[string]*float64 `json:"scores,omitempty"`
	Severities map[string]*float64 `json:"severities,omitempty"`
}

// maxSeverity bounds severities: Azure's go to 7, and a mean of wild numbers is not one.
const maxSeverity = 100

// Sound returns why a verdict cannot be one, or nil: it is not flagged, and a category of it is; a score or a severity
// is outside its scale; or two spellings of one category, which Judge takes for one, say different things.
func (v Verdict) Sound() error {
	if err := errors.Join(alike(v.Categories), alike(v.Scores), alike(v.Severities)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(v.Categories)) {
		if yes := v.Categories[name]; yes != nil && *yes && v.Flagged != nil && !*v.Flagged {
			return fmt.Errorf("it is not flagged, and its category %.40q is", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Scores)) {
		if score := v.Scores[name]; score != nil && !(*score >= 0 && *score <= 1) {
			return fmt.Errorf("the score of %.40q is %v, and not from 0 to 1", name, *score)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Severities)) {
		if severity := v.Severities[name]; severity != nil && !(*severity >= 0 && *severity <= maxSeverity) {
			return fmt.Errorf("a severity is %v, and not from 0 to %d", *severity, maxSeverity)
		}
	}
	return nil
}

// alike refuses names that differ in case and signs alone, and in what they say.
func alike[V bool | float64](of map[string]*V) error {
	first := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		other, met := first[bareName(name)]
		if met && of[name] != nil && of[other] != nil && *of[name] != *of[other] {
			return fmt.Errorf("the categories %.40q and %.40q are one, and do not say the same", other, name)
		}
		first[bareName(name)] = name
	}
	return nil
}

// bareName is a category's name without case and signs.
func bareName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// Judge applies the rules to an answer: its own flags first, then severities, then scores.
func (r ModerationRules) Judge(v Verdict) (j Judgement) {
	flags := map[string]bool{}
	for name, score := range v.Scores {
		flags[name] = *score >= r.Score
	}
	for name, severity := range v.Severities {
		flags[name] = *severity >= r.Severity
	}
	for name, flag := range v.Categories {
		flags[name] = *flag
	}
	overall := v.Flagged
	for name, flag := range flags {
		j.Against = j.Against || flag && v.Flagged != nil && !*v.Flagged
		if overall == nil || v.Flagged == nil && flag {
			overall = &flag
		}
		if r.isSelfHarm(name) && (j.SelfHarm == nil || flag) {
			j.SelfHarm = &flag
		}
	}
	j.Overall = overall
	if len(r.SelfHarm) == 0 {
		j.SelfHarm = overall
	}
	for name, severity := range v.Severities {
		if (bareName(name) == "selfharm" || r.isSelfHarm(name)) && (j.Severity == nil || *severity > *j.Severity) {
			j.Severity = severity
		}
	}
	return j
}

func (r ModerationRules) isSelfHarm(name string) bool {
	return slices.ContainsFunc(r.SelfHarm, func(s string) bool { return bareName(s) == bareName(name) })
}

// A ModerationTable is how often services flag entries, by label (FigSIM, Table 2), and how severe they find them
// (Figure 3). Its JSON form is stable (docs/labels.md).
type ModerationTable struct {
	By       string       `json:"by"`
	Beside   string       `json:"beside,omitempty"` // the category that means are told by as well
	Entries  int          `json:"entries"`
	Without  int          `json:"without_label"` // entries that have no answer for By: under no label
	Services []ServiceRow `json:"services"`
}

// A ServiceRow is one file's part of the table.
type ServiceRow struct {
	Name     string    `json:"name"`
	File     FileScore `json:"file"`
	Unjudged int       `json:"unjudged"` // entries looked at whose line has an error or no answer
	// Against are entries that the service does not flag, and of which a score or severity is a flag by the rules: they
	// count as flagged for self-harm, if it is of that category, and as not flagged overall.
	Against int `json:"flags_against_overall,omitempty"`
	// InNeither are entries with a severity and without an answer for the category of which means are told: they are in
	// the mean of all, and neither with nor without a label of it.
	InNeither int         `json:"in_neither_group,omitempty"`
	Labels    []LabelRate `json:"labels"`
}

// A LabelRate is what a service says of the entries with one label.
type LabelRate struct {
	Code     string         `json:"code"`
	Name     string         `json:"name"`
	Entries  int            `json:"entries"`
	SelfHarm Rate           `json:"self_harm"`
	Overall  Rate           `json:"overall"`
	Severity []SeverityMean `json:"severity,omitempty"` // where the service tells severities
}

// A Rate is a share with Wilson's (1927) interval of 95 %, nil where there is nothing to count.
type Rate struct {
	Flagged int      `json:"flagged"`
	N       int      `json:"n"`
	Rate    *float64 `json:"rate"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
}

// A SeverityMean is the mean severity of a label's entries: of all, of those with a label of the other category, and of
// those that it gives None.
type SeverityMean struct {
	Group string   `json:"group"` // all, with, without
	N     int      `json:"n"`
	Mean  *float64 `json:"mean"`
	// P is of Kruskal's and Wallis's test of with against without, which is Mann's and Whitney's; nil where it was not
	// asked for or cannot be told.
	P *float64 `json:"p,omitempty"`
}

func (r *Rate) count(flag *bool) {
	if flag != nil {
		r.N++
		if *flag {
			r.Flagged++
		}
	}
}

// NewRate is the share of n entries that were flagged, with its interval.
func NewRate(flagged, n int) Rate {
	r := Rate{Flagged: flagged, N: n}
	if n == 0 {
		return r
	}
	const z = 1.959963984540054
	all, share := float64(n), float64(flagged)/float64(n)
	middle := (share + z*z/(2*all)) / (1 + z*z/all)
	half := z / (1 + z*z/all) * math.Sqrt(share*(1-share)/all+z*z/(4*all*all))
	low, high := max(0, middle-half), min(1, middle+half)
	switch flagged { // exactly, where rounding falls short of it
	case 0:
		low = 0
	case n:
		high = 1
	}
	r.Rate, r.Low, r.High = &share, &low, &high
	return r
}

// TabulateModeration counts the flags of services by the labels of a category that takes one, and takes means of their
// severities, with and without a label of the category beside, if that is not "". test asks for the test of the two.
func TabulateModeration(schema manifest.Schema, by, beside string, test bool, gold []manifest.Entry,
	others map[manifest.Key]bool,
	files []Judgements) (ModerationTable, error) {
	place := func(name string) int {
		return slices.IndexFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == name })
	}
	rows, groups := place(by), place(beside)
	switch {
	case rows < 0 || schema.Categories[rows].Kind == manifest.Multi:
		return ModerationTable{}, fmt.Errorf("%q is not a category that takes one label", by)
	case groups < 0 && beside != "":
		return ModerationTable{}, fmt.Errorf("the release has no category %q", beside)
	}
	out := ModerationTable{By: by, Beside: beside, Entries: len(gold), Without: Without(schema, rows, gold)}
	for _, f := range files {
		s := ServiceRow{Name: f.File, File: MatchIDs(f.File, gold, others, f.lines())}
		for _, l := range schema.Categories[rows].Labels {
			s.Labels = append(s.Labels, LabelRate{Code: l.Code, Name: l.Name})
		}
		severities := make([][3][]float64, len(s.Labels)) // of all, with, without
		for _, e := range gold {
			if f.Unjudged[e.Key] {
				s.Unjudged++
			}
			if len(e.Labels[rows]) == 0 {
				continue
			}
			at := e.Labels[rows][0]
			row := &s.Labels[at]
			row.Entries++
			j := f.Of[e.Key]
			if j.Against {
				s.Against++
			}
			row.SelfHarm.count(j.SelfHarm)
			row.Overall.count(j.Overall)
			if j.Severity == nil {
				continue
			}
			severities[at][0] = append(severities[at][0], *j.Severity)
			if groups >= 0 && e.Labels[groups] == nil {
				s.InNeither++
			}
			if groups < 0 || e.Labels[groups] == nil {
				continue
			}
			group := 2
			if slices.ContainsFunc(e.Labels[groups],
				func(l int) bool { return !schema.Categories[groups].Labels[l].Exclusive }) {
				group = 1
			}
			severities[at][group] = append(severities[at][group], *j.Severity)
		}
		told := slices.ContainsFunc(severities, func(s [3][]float64) bool { return len(s[0]) > 0 })
		for i := range s.Labels {
			l := &s.Labels[i]
			l.SelfHarm, l.Overall = NewRate(l.SelfHarm.Flagged, l.SelfHarm.N), NewRate(l.Overall.Flagged, l.Overall.N)
			if told {
				s.Labels[i].Severity = severityMeans(severities[i], groups >= 0, test)
			}
		}
		out.Services = append(out.Services, s)
	}
	return out, nil
}

// lines are the ids that the file has.
func (j Judgements) lines() map[manifest.Key]bool {
	all := make(map[manifest.Key]bool, len(j.Of)+len(j.Unjudged))
	for key := range j.Of {
		all[key] = true
	}
	for key := range j.Unjudged {
		all[key] = true
	}
	return all
}

func severityMeans(values [3][]float64, beside, test bool) (means []SeverityMean) {
	for i, group := range []string{"all", "with", "without"} {
		if i > 0 && !beside {
			break
		}
		m := SeverityMean{Group: group, N: len(values[i])}
		if m.N > 0 {
			sum := 0.0
			for _, v := range values[i] {
				sum += v
			}
			sum /= float64(m.N)
			m.Mean = &sum
		}
		means = append(means, m)
	}
	if !beside || !test {
		return means
	}
	with := len(values[1])
	t := testRanks(slices.Concat(values[1], values[2]), make([]Group, 2), func(i int) int {
		if i < with {
			return 0
		}
		return 1
	})
	if t.Result != nil {
		means[1].P, means[2].P = &t.Result.P, &t.Result.P
	}
	return means
}
