package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/page"
	"rehydrate/labels"
)

// A Study is what a paper prints of a dataset: counts, tests and scores, without an entry among them. Parts that are
// nil are left out.
type Study struct {
	Title      string
	Tool       string // version of the program
	Made       time.Time
	Counts     *labels.Stats
	Together   []string // the categories of Counts whose labels are set against one another
	Agreement  *labels.Agreement
	Tests      *Tests
	Moderation *labels.ModerationTable
	Models     []Model
	Notes      []string // parts and answers that are left out, and why
	Schema     string   // name of the release's label schema
}

// A Part is a section of the page of a study, or a heading within the section above it.
type Part struct {
	ID, Name string
	Within   bool
}

// Contents are the sections of the page, with the features and models in them.
func (s Study) Contents() (parts []Part) {
	section := func(id, name string) { parts = append(parts, Part{ID: id, Name: name}) }
	within := func(id string, i int, name string) {
		parts = append(parts, Part{ID: id + "-" + strconv.Itoa(i), Name: name, Within: true})
	}
	if s.Counts != nil {
		section("counts", "Labels")
	}
	if s.Agreement != nil {
		section("agreement", "Agreement of annotators")
	}
	if s.Tests != nil {
		section("tests", "Differences by "+s.Tests.By)
		for i, t := range s.Tests.Tests {
			within("feature", i, strings.TrimSuffix(t.Feature+", "+t.Label, ", "))
		}
	}
	if s.Moderation != nil {
		section("moderation", "Moderation services")
	}
	if len(s.Models) > 0 {
		section("models", "Predictions")
		for i, m := range s.Models {
			if len(m.Scores.Tasks) > 0 {
				within("model", i, m.Name)
			}
		}
	}
	return parts
}

// Paper names the tables and figures of FigSIM's paper that have the numbers of a part; "" for other schemas.
func (s Study) Paper(part string) string {
	if s.Schema != "figsim" {
		return ""
	}
	return map[string]string{
		"counts":     "FigSIM: Table 8, Figures 2 and 6",
		"agreement":  "FigSIM: Tables 1, 5, 6 and 7",
		"tests":      "FigSIM: section 4.3",
		"moderation": "FigSIM: Table 2, Figure 3",
		"models":     "FigSIM: Table 3",
		"labels":     "FigSIM: Table 4, Figures 7 and 8",
		"scale":      "FigSIM: Tables 4 and 12, Figure 4", // labels with an order
	}[part]
}

// Strip is the study in a few numbers: of the labels, and of each part that is there.
func (s Study) Strip() (strip []page.Figure) {
	if s.Counts != nil {
		strip = append(strip, page.Figure{Value: strconv.Itoa(s.Counts.Entries), Label: "entries", Section: "counts"},
			page.Figure{Value: strconv.Itoa(len(s.Counts.Categories)), Label: "label categories", Section: "counts"})
	}
	if s.Agreement != nil {
		strip = append(strip, s.agreed())
	}
	if s.Tests != nil {
		strip = append(strip, s.Tests.strip()...)
	}
	if s.Moderation != nil {
		strip = append(strip, page.Figure{Value: strconv.Itoa(len(s.Moderation.Services)), Label: "moderation services",
			Section: "moderation"})
	}
	if len(s.Models) > 0 {
		strip = append(strip, s.comparable())
	}
	return strip
}

// goodAlpha is from where on Krippendorff calls annotations reliable.
const goodAlpha = 0.8

// agreed is how many categories reach goodAlpha.
func (s Study) agreed() page.Figure {
	reached, all := 0, 0
	for _, c := range s.Agreement.Categories {
		if c.Entries == 0 {
			continue
		}
		all++
		if v := c.Alpha.Value; v != nil && *v >= goodAlpha {
			reached++
		}
	}
	return page.Figure{Value: fmt.Sprintf("%d of %d", reached, all),
		Label: fmt.Sprintf("categories with alpha of %.1f or more", goodAlpha),
		Tone:  page.Open.If(all - reached), Section: "agreement"}
}

// comparable is how many scores of models can be set side by side.
func (s Study) comparable() page.Figure {
	unlike, all := 0, 0
	for _, row := range s.ModelRows() {
		if row.Macro == "-" { // the model does not answer the task
			continue
		}
		all++
		if row.Unlike != "" {
			unlike++
		}
	}
	return page.Figure{Value: fmt.Sprintf("%d of %d", all-unlike, all), Label: "scores of models are comparable",
		Tone: page.Open.If(unlike), Section: "models"}
}

// A Model is what the predictions of a model are worth.
type Model struct {
	Name   string
	Scores labels.Scores
}

// TaskNames are the tasks that some model answers.
func (s Study) TaskNames() (names []string) {
	for _, m := range s.Models {
		for _, t := range m.Scores.Tasks {
			if !slices.Contains(names, t.Category) {
				names = append(names, t.Category)
			}
		}
	}
	return names
}

// A ModelRow is what a model's files are worth for a task, and what they answered: counts by file where these differ.
type ModelRow struct {
	Task, Model               string
	Files                     int
	Scored, NoAnswer, Missing string
	Macro, Weighted           string
	Unlike                    string // why the scores are not comparable with the others of the task; "" where they are
}

// ModelRows are the rows of all tasks and models, "-" for a model that does not answer a task.
func (s Study) ModelRows() (rows []ModelRow) {
	for _, task := range s.TaskNames() {
		most := s.mostAnswers(task)
		for _, m := range s.Models {
			row := ModelRow{task, m.Name, len(m.Scores.Files), "-", "-", "-", "-", "-", ""}
			t := m.Scores.Task(task)
			if t == nil {
				rows = append(rows, row)
				continue
			}
			row.Scored, row.NoAnswer, row.Missing = counts(t.Scored), counts(t.NoAnswer), counts(missing(m.Scores,
				t.Files))
			row.Macro, row.Weighted = t.MacroF1.Percent(), t.WeightedF1.Percent()
			best := most.Scores.Task(task)
			switch {
			case !t.SameEntries(*t):
				row.Unlike = "its files answered different entries"
			case !t.SameEntries(labels.TaskScore{Answered: best.Answered[:min(1, len(best.Answered))]}):
				row.Unlike = "not comparable with " + most.Name + ", which answered other entries"
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// ModelCharts draw, for each task, the macro F1 of each model: its mean, and the range over the model's files.
func (s Study) ModelCharts() (charts []page.Chart) {
	for _, task := range s.TaskNames() {
		c := page.Spans{Caption: fmt.Sprintf("Macro F1 on %s in percent, by model: the mean, and the range over its files", task),
			Series: []string{"macro F1"}, To: 100, Table: page.Table{Head: []string{"model", "mean", "from", "to"}}}
		for _, m := range s.Models {
			t := m.Scores.Task(task)
			if t == nil {
				continue
			}
			f1 := t.MacroF1
			low, high := 100*f1.Mean, 100*f1.Mean
			for _, each := range f1.Each {
				low, high = min(low, 100*each), max(high, 100*each)
			}
			mean := 100 * f1.Mean
			c.Groups = append(c.Groups, page.SpanGroup{Label: m.Name, Value: f1.Percent(),
				Spans: []*page.Span{{Low: low, Q1: mean, Middle: mean, Q3: mean, High: high}}})
			c.Table.Rows = append(c.Table.Rows,
				[]string{m.Name, fmt.Sprintf("%.2f", mean), fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)})
		}
		charts = append(charts, c.Chart())
	}
	return charts
}

// mostAnswers is the model one of whose files answers the most entries of a task.
func (s Study) mostAnswers(task string) (most Model) {
	best := -1
	for _, m := range s.Models {
		if t := m.Scores.Task(task); t != nil && slices.Max(append([]int{0}, t.Scored...)) > best {
			most, best = m, slices.Max(append([]int{0}, t.Scored...))
		}
	}
	return most
}

// missing are the entries that each of some files lacks.
func missing(s labels.Scores, files []string) (all []int) {
	for _, f := range s.Files {
		if slices.Contains(files, f.File) {
			all = append(all, f.Missing)
		}
	}
	return all
}

// counts writes numbers by file, once where they are equal.
func counts(numbers []int) string {
	switch {
	case len(numbers) == 0:
		return "-"
	case slices.Min(numbers) == slices.Max(numbers):
		return strconv.Itoa(numbers[0])
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// Decimal writes a number that may be undefined.
func (s Study) Decimal(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

// Shares are a category's labels as shares of the entries.
func (s Study) Shares(c labels.CategoryStats) page.Chart {
	bars := page.Counts{Caption: fmt.Sprintf("%s: entries with each label", c.Title), Of: "label",
		Series: []string{"entries"}}
	for _, l := range c.Labels {
		bars.Groups = append(bars.Groups, page.Group{Label: l.Code + " " + l.Name, Counts: []int{l.Count},
			All: []int{s.Counts.Entries}})
	}
	return bars.Bars()
}

// Heatmaps show how often labels stand together.
func (s Study) Heatmaps() (all []page.Heatmap) {
	codes := map[string][]string{}
	for _, c := range s.Counts.Categories {
		for _, l := range c.Labels {
			codes[c.Name] = append(codes[c.Name], l.Code)
		}
	}
	for _, p := range s.Counts.Pairs {
		if slices.Contains(s.Together, p.Rows) && slices.Contains(s.Together, p.Columns) {
			all = append(all, page.Heatmap{Caption: fmt.Sprintf("%s by %s, shares of each row", p.Rows, p.Columns),
				Rows:    codes[p.Rows],
				Columns: codes[p.Columns], Counts: p.Counts, Shares: p.Shares()})
		}
	}
	return all
}

// Calibration draws, of an ordinal task, the predictions of each true label that are too low, right and too high.
func (s Study) Calibration(b labels.Bias) page.Chart {
	c := page.Counts{Caption: "Predictions of each true label, summed over the files", Of: "true label",
		Series: []string{"too low", "right", "too high"}}
	for _, r := range b.ByTrue {
		c.Groups = append(c.Groups, page.Group{Label: r.Code + " " + r.Name, Counts: []int{r.Under, r.Correct, r.Over}})
	}
	return c.Stacked()
}

// Tests are those of features between the labels of a category.
type Tests struct {
	By    string
	File  string
	Alpha float64 // below it a corrected p counts as a difference
	Tests []labels.GroupTest
}

// strip is how many features were tested, and how many of them differ: by their own H, corrected for how many they are.
// A pair of groups that differs within a feature is no such claim, for that correction does not count the features.
func (t Tests) strip() []page.Figure {
	differ, untested := 0, 0
	for _, test := range t.Tests {
		switch {
		case test.Result == nil:
			untested++
		case test.Result.PHolm < t.Alpha:
			differ++
		}
	}
	tested := len(t.Tests) - untested
	return []page.Figure{
		{Value: fmt.Sprintf("%d of %d", differ, tested), Label: "features differ by " + t.By + " (Holm)", Section: "tests"},
		{Value: strconv.Itoa(untested), Label: "features not tested", Tone: page.Open.If(untested), Section: "tests"},
	}
}

// WriteStudy writes a study as a page.
func WriteStudy(w io.Writer, s Study) error {
	return page.Write(w, page.Parse(files, "study.html"), s)
}

// Differ are the pairs of a test that differ.
func (t Tests) Differ(r *labels.RankResult) []labels.PairTest { return r.Differ(t.Alpha) }

// Chart draws a box for each group; of a yes/no feature the share of yes with Wilson's interval.
func (t Tests) Chart(test labels.GroupTest) page.Chart {
	s := page.Spans{Caption: fmt.Sprintf("%s by %s: median, quartiles, and whiskers of at most 1.5 interquartile ranges; what lies beyond is not drawn", test.Feature, t.By),
		Series: []string{test.Feature}, Table: page.Table{Head: []string{"group", "n", "missing", "Q1", "median", "Q3",
			"mean", "mean rank"}}}
	if test.YesNo {
		s.Caption, s.From, s.To = fmt.Sprintf("%s by %s: the share of yes, with Wilson's interval of 95 %%", test.Feature,
			t.By), 0, 1
	}
	for _, g := range test.Groups {
		group := page.SpanGroup{Label: strings.TrimSpace(g.Code + " " + g.Name), Value: "no values",
			Spans: []*page.Span{nil}}
		row := []string{group.Label, strconv.Itoa(g.N), strconv.Itoa(g.Missing), "", "", "", "", ""}
		if v := g.Values; v != nil {
			group.Value = fmt.Sprintf("median %.4g, n %d", v.Median, g.N)
			group.Spans[0] = &page.Span{Low: v.Low, Q1: v.Q1, Middle: v.Median, Q3: v.Q3, High: v.High}
			for i, n := range []float64{v.Q1, v.Median, v.Q3, v.Mean, v.MeanRank} {
				row[3+i] = strconv.FormatFloat(n, 'g', 5, 64)
			}
			if test.YesNo {
				yes := labels.NewRate(int(v.Mean*float64(g.N)+0.5), g.N)
				group.Value = fmt.Sprintf("%.3f, n %d", *yes.Rate, g.N)
				group.Spans[0] = point(yes)
			}
		}
		s.Groups = append(s.Groups, group)
		s.Table.Rows = append(s.Table.Rows, row)
	}
	return s.Chart()
}

// point draws a share with its interval; nil where there is nothing to count.
func point(r labels.Rate) *page.Span {
	if r.Rate == nil {
		return nil
	}
	return &page.Span{Low: *r.Low, Q1: *r.Rate, Middle: *r.Rate, Q3: *r.Rate, High: *r.High}
}

// Rates are the two charts of a moderation table: what is flagged as self-harm, and at all.
func (s Study) Rates() []page.Chart {
	draw := func(caption string, of func(labels.LabelRate) labels.Rate) page.Chart {
		c := page.Spans{Caption: caption, To: 1, Table: page.Table{Head: []string{s.Moderation.By}}}
		for _, service := range s.Moderation.Services {
			c.Series = append(c.Series, service.Name)
			c.Table.Head = append(c.Table.Head, service.Name, "flagged", "n", "from", "to")
		}
		for i, l := range s.Moderation.Services[0].Labels {
			group := page.SpanGroup{Label: l.Code + " " + l.Name}
			row, values := []string{group.Label}, []string{}
			for _, service := range s.Moderation.Services {
				r := of(service.Labels[i])
				group.Spans = append(group.Spans, point(r))
				if r.Rate == nil {
					row = append(row, "-", "0", "0", "", "")
					continue
				}
				values = append(values, fmt.Sprintf("%s %.3f", service.Name, *r.Rate))
				row = append(row, fmt.Sprintf("%.3f", *r.Rate), strconv.Itoa(r.Flagged), strconv.Itoa(r.N),
					fmt.Sprintf("%.3f", *r.Low), fmt.Sprintf("%.3f", *r.High))
			}
			group.Value = strings.Join(values, "\n")
			c.Groups = append(c.Groups, group)
			c.Table.Rows = append(c.Table.Rows, row)
		}
		return c.Chart()
	}
	return []page.Chart{
		draw("Flagged as self-harm: share of the entries with an answer, with Wilson's interval of 95 %",
			func(l labels.LabelRate) labels.Rate { return l.SelfHarm }),
		draw("Flagged at all", func(l labels.LabelRate) labels.Rate { return l.Overall })}
}

// Means are a chart for each service that tells severities: their means, of all and with and without a label beside.
func (s Study) Means() (charts []page.Chart) {
	names := map[string]string{"all": "all", "with": "with " + s.Moderation.Beside,
		"without": "without " + s.Moderation.Beside}
	for _, service := range s.Moderation.Services {
		if !slices.ContainsFunc(service.Labels, func(l labels.LabelRate) bool { return l.Severity != nil }) {
			continue
		}
		c := page.Spans{Caption: "Mean severity of self-harm: " + service.Name,
			Table: page.Table{Head: []string{s.Moderation.By}}}
		for _, m := range service.Labels[0].Severity {
			c.Series = append(c.Series, names[m.Group])
			c.Table.Head = append(c.Table.Head, names[m.Group], "n")
		}
		for _, l := range service.Labels {
			group := page.SpanGroup{Label: l.Code + " " + l.Name}
			row, values := []string{group.Label}, []string{}
			for _, m := range l.Severity {
				if m.Mean == nil {
					group.Spans, row = append(group.Spans, nil), append(row, "-", "0")
					continue
				}
				v := *m.Mean
				c.To = max(c.To, v)
				group.Spans = append(group.Spans, &page.Span{Q3: v, Middle: v, High: v}) // a bar from 0
				values = append(values, fmt.Sprintf("%s %.2f", names[m.Group], v))
				row = append(row, fmt.Sprintf("%.2f", v), strconv.Itoa(m.N))
			}
			group.Value = strings.Join(values, "\n")
			c.Groups = append(c.Groups, group)
			c.Table.Rows = append(c.Table.Rows, row)
		}
		charts = append(charts, c.Chart())
	}
	return charts
}
