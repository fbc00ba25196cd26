package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
)

// Tasks say what is scored or weighted, where it is not what the schema says.
type Tasks struct {
	Names    []string // of categories; nil for the schema's tasks
	Merge    []string // codes of one class, such as SS4+SS5
	LeaveOut []string
	ErrorsBy []string
	By       string
	// whether merge, leave-out, by or errors-by replaces what the schema says; nil for none
	Overrides func(flag string) bool
}

// of gives the tasks of a schema.
func (f Tasks) of(schema manifest.Schema) ([]labels.Task, error) {
	tasks := schema.Tasks()
	if len(f.Names) > 0 {
		known := tasks
		tasks = nil
		for _, name := range f.Names {
			i := slices.IndexFunc(known, func(t manifest.Task) bool { return t.Category == name })
			if i < 0 { // a category that is not a task of the schema can be scored too
				known, i = append(known, manifest.Task{Category: name}), len(known)
			}
			if slices.ContainsFunc(tasks, func(t manifest.Task) bool { return t.Category == name }) {
				return nil, userfile.Wrong("--task %s stands twice", name)
			}
			tasks = append(tasks, known[i])
		}
	}
	for i := range tasks {
		if f.Overrides == nil {
			break
		}
		if f.Overrides("merge") {
			tasks[i].Merge = nil
		}
		if f.Overrides("leave-out") {
			tasks[i].LeaveOut = nil
		}
		if f.Overrides("by") {
			tasks[i].By = f.By
		}
		if f.Overrides("errors-by") {
			tasks[i].ErrorsBy = slices.DeleteFunc(slices.Clone(f.ErrorsBy), func(name string) bool { return name == "" })
		}
	}
	if f.By != "" && !slices.ContainsFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == f.By }) {
		return nil, userfile.Wrong("--by: the release has no category %q", f.By)
	}
	for _, flag := range []struct {
		name   string
		groups []string
		add    func(*manifest.Task, []string)
	}{
		{"--merge", f.Merge, func(t *manifest.Task, codes []string) { t.Merge = append(t.Merge, codes) }},
		{"--leave-out", f.LeaveOut, func(t *manifest.Task, codes []string) { t.LeaveOut = append(t.LeaveOut, codes...) }},
	} {
		for _, group := range flag.groups {
			if group == "" {
				continue
			}
			codes := strings.Split(group, "+")
			category, err := categoryOf(schema, codes[0])
			if err != nil {
				return nil, err
			}
			i := slices.IndexFunc(tasks, func(t manifest.Task) bool { return t.Category == category })
			if i < 0 {
				return nil, userfile.Wrong("%s %s: category %s is not scored; add it with --task %s", flag.name, group,
					category, category)
			}
			flag.add(&tasks[i], codes)
		}
	}
	var out []labels.Task
	for _, t := range tasks {
		task, err := labels.NewTask(schema, t)
		if err != nil {
			return nil, userfile.Wrong("%w", err)
		}
		out = append(out, task)
	}
	return out, nil
}

// named are the categories of tasks.
func named(tasks []labels.Task) (categories []string) {
	for _, t := range tasks {
		categories = append(categories, t.Category)
	}
	return categories
}

// categoryOf is the one category that has a label with the code.
func categoryOf(schema manifest.Schema, code string) (string, error) {
	var found, codes []string
	for _, c := range schema.Categories {
		for _, l := range c.Labels {
			codes = append(codes, l.Code)
			if l.Code == code {
				found = append(found, c.Name)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0: // most likely misspelt
		fault := &userfile.Fault{Err: fmt.Errorf("no category has a label with the code %q", code), Flag: true}
		if near := manifest.Nearest(code, codes); near != "" {
			fault.Flag, fault.Hint = false, "did you mean "+near+"?"
		}
		return "", fault
	}
	return "", userfile.Wrong("code %q stands for labels of both %s and %s", code, found[0], found[1])
}

// A Weighting has the class weights of tasks over a split.
type Weighting struct {
	Split  string               `json:"split"`
	Differ []labels.Differing   `json:"rows_differ,omitempty"`
	Tasks  []labels.TaskWeights `json:"tasks"`
}

// Weights computes what a loss takes against rare classes.
func Weights(ctx context.Context, path, split string, f Tasks) (out Weighting, err error) {
	gold, err := openGold(ctx, path, split)
	if err != nil {
		return out, err
	}
	tasks, err := f.of(gold.Schema)
	return Weighting{gold.split, gold.differing(named(tasks)...), labels.Weights(tasks, gold.entries)}, err
}

// Scoring says how predictions are scored.
type Scoring struct {
	Tasks
	Gold, Split string
	// Columns name the columns that hold the predictions, as CATEGORY=COLUMN, or COLUMN where it can only be one
	// category's.
	Columns       []string
	Probabilities bool   // files hold probabilities, not labels
	TuneOn        string // the split on which their thresholds are found
}

// Scores are what files of predictions are worth.
type Scores struct {
	Split  string             `json:"split"`
	Differ []labels.Differing `json:"rows_differ,omitempty"`
	labels.Scores
	Mapped     []Mapped     `json:"mapped,omitempty"`
	Thresholds []Thresholds `json:"thresholds,omitempty"` // of probabilities
	Ties       []Ties       `json:"ties,omitempty"`       // of probabilities

	Missing []MissingWords `json:"missing_words,omitempty"`
}

// Mapped are the predictions of a file that name a class of several labels, where these are told apart: they count as
// the first of them.
type Mapped struct {
	File     string `json:"file"`
	Category string `json:"category"`
	Class    string `json:"class"`
	Name     string `json:"name"` // of the class
	Code     string `json:"code"`
	Rows     int    `json:"rows"`
}

// Ties are the rows of a file in which several labels of a task are likeliest: they predict none.
type Ties struct {
	File     string `json:"file"`
	Category string `json:"category"`
	Rows     int    `json:"rows"`
}

// Thresholds were found for a task on a file's own probabilities.
type Thresholds struct {
	File     string             `json:"file"`
	Category string             `json:"category"`
	Split    string             `json:"tuned_on"`
	Labels   []labels.Threshold `json:"labels"`
}

// A Comparison sets models against each other.
type Comparison struct {
	Split   string             `json:"split"`
	Entries int                `json:"entries"`
	Differ  []labels.Differing `json:"rows_differ,omitempty"`
	Models  []ModelScore       `json:"models"`
	// Unlike are the tasks for which the models did not answer the same entries: their scores are not comparable.
	Unlike []string `json:"not_comparable,omitempty"`
	Tasks  []string `json:"-"`
}

// A ModelScore is what the files of one model are worth.
type ModelScore struct {
	Name string `json:"name"`
	Scores
}

// A scorer scores files against the gold labels of a release.
type scorer struct {
	Scoring
	gold
	tasks   []labels.Task
	read    *manifest.Release   // by which predictions are read: they may name the classes of the tasks
	columns map[string]string   // that hold the predictions of a category, where they were named
	apart   map[string][]Mapped // by category, classes of the schema's own task whose labels are told apart
	tuneOn  []manifest.Entry    // of probabilities
}

func (f Scoring) scorer(ctx context.Context) (s scorer, err error) {
	s.Scoring = f
	s.gold, err = openGold(ctx, f.Gold, f.Split)
	if err != nil {
		return s, err
	}
	s.tasks, err = f.Tasks.of(s.Schema)
	var classes []manifest.Spelling
	for _, t := range s.tasks {
		classes = append(classes, t.Spellings()...)
	}
	if err == nil {
		s.columns, err = f.columnsOf(s.Release, s.tasks)
	}
	s.read, s.apart = s.Spelling(classes).Naming(s.columns), map[string][]Mapped{}
	for _, t := range s.tasks {
		s.apart[t.Category] = toldApart(s.Schema, t)
	}
	if err != nil || !f.Probabilities {
		return s, err
	}
	tune, err := openGold(ctx, f.Gold, f.TuneOn)
	if err == nil && (s.split == tune.split || s.split == All || tune.split == All) {
		err = userfile.Wrong("--tune-on %s: thresholds that were tuned on what is scored make the scores too high; "+
			"name two splits, one with --split and another with --tune-on", f.TuneOn)
	}
	s.tuneOn, s.TuneOn = tune.entries, tune.split
	return s, err
}

// Score scores files of predictions.
func Score(ctx context.Context, files []string, f Scoring) (Scores, error) {
	s, err := f.scorer(ctx)
	if err != nil {
		return Scores{}, err
	}
	return s.score(ctx, files)
}

func (s scorer) score(ctx context.Context, files []string) (out Scores, err error) {
	if err := distinct(files); err != nil {
		return out, err
	}
	var predictions []labels.Predictions
	left := make([]int, len(files))
	for i, file := range files {
		p := labels.Predictions{File: file}
		if s.Probabilities {
			p.Labels, err = s.decide(ctx, file, &out, &left[i])
		} else {
			p.Labels, err = s.predictions(ctx, file, &out, &left[i])
		}
		if err != nil {
			return out, err
		}
		predictions = append(predictions, p)
	}
	out.Split, out.Differ = s.split, s.differing(named(s.tasks)...)
	out.Scores, err = labels.Score(s.Schema, s.tasks, s.entries, s.others, predictions)
	if err != nil {
		return out, userfile.Faulty(err)
	}
	for i, n := range left {
		out.Files[i].LeftOut = n
	}
	return out, nil
}

// decide reads a file of probabilities and decides by them, with thresholds tuned on the entries of another split. It
// adds these, and the ties, to out, and the rows that are no answer to left.
func (s scorer) decide(ctx context.Context, file string, out *Scores, left *int) (labels.Answers, error) {
	numbers, err := ReadNumbers(ctx, file, "", ofAnswers(left))
	if err != nil {
		return nil, userfile.Faulty(err)
	}
	for i, wrote := range numbers.Written {
		if wrote.Word > 0 && wrote.Number > 0 {
			err := wrote.mixed(file, numbers.Columns[i].Name, "a probability is a number from 0 to 1")
			return nil, userfile.Faulty(err)
		}
	}
	answers := labels.Answers{}
	for _, t := range s.tasks {
		p, err := t.Probabilities(s.Schema, numbers.Keys, numbers.Columns)
		if odd, ok := errors.AsType[*labels.Improbable](err); ok {
			return nil, userfile.Faulty(&manifest.Problems{List: []manifest.Problem{{File: file,
				Line:    numbers.Lines[odd.Row],
				Message: odd.Error(),
				Hint:    "logits have to go through softmax (one label) or sigmoid (several), log-probabilities through exp"}}})
		}
		if err != nil {
			return nil, userfile.Wrong("%s: %w", file, err)
		}
		if p == nil { // a file of other tasks
			continue
		}
		var thresholds []labels.Threshold
		if t.Kind == manifest.Multi {
			if !slices.ContainsFunc(s.tuneOn, func(e manifest.Entry) bool { return p[e.Key] != nil }) {
				return nil,
					userfile.Wrong("%s has no row of split %s, on which thresholds are found: add its rows, or name another split with --tune-on", file, s.TuneOn)
			}
			thresholds = t.Tune(s.tuneOn, p)
			out.Thresholds = append(out.Thresholds, Thresholds{file, t.Category, s.TuneOn, thresholds})
		}
		ties, err := t.Decide(s.Schema, p, thresholds, answers)
		if err != nil {
			return nil, err
		}
		if ties > 0 {
			out.Ties = append(out.Ties, Ties{file, t.Category, ties})
		}
	}
	if len(answers) == 0 {
		return nil, userfile.Wrong("%s has no column of probabilities: name them after category and code, such as %s",
			file, s.tasks[0].Column(s.tasks[0].Classes[0].Code))
	}
	return answers, nil
}

// Compare scores models, each given as NAME=FILE,FILE by a flag, which errors name.
func Compare(ctx context.Context, flag string, models []string, f Scoring) (Comparison, error) {
	s, err := f.scorer(ctx)
	out := Comparison{Split: s.split, Entries: len(s.entries)}
	if err != nil {
		return out, err
	}
	out.Tasks = named(s.tasks)
	out.Differ = s.differing(out.Tasks...)
	for _, model := range models {
		name, files, named := strings.Cut(model, "=")
		if !named || name == "" || files == "" {
			return out, userfile.Wrong("--%s takes NAME=FILE or NAME=FILE,FILE, not %q", flag, model)
		}
		if slices.ContainsFunc(out.Models, func(m ModelScore) bool { return m.Name == name }) {
			return out, userfile.Wrong("--%s: %q stands twice; give all its files at once: NAME=FILE,FILE", flag, name)
		}
		scores, err := s.score(ctx, strings.Split(files, ","))
		if err != nil {
			return out, fmt.Errorf("--%s %s: %w", flag, name, err)
		}
		out.Models = append(out.Models, ModelScore{name, scores})
	}
	out.Unlike = slices.DeleteFunc(slices.Clone(out.Tasks), out.areComparable)
	return out, nil
}

// Without counts the entries that no model was scored on for a task, because the release has no label of them.
func (c Comparison) Without(task string) int {
	for _, m := range c.Models {
		if of := m.Task(task); of != nil {
			return of.Without
		}
	}
	return 0
}

// areComparable reports whether all models that answer a task answer the same entries.
func (c Comparison) areComparable(task string) bool {
	var first *labels.TaskScore
	for _, m := range c.Models {
		of := m.Task(task)
		if first == nil {
			first = of
		}
		if of != nil && !first.SameEntries(*of) {
			return false
		}
	}
	return true
}
