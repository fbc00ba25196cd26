package models

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// A Report says how answers were got, and what became of them: run.json (docs/files.md).
type Report struct {
	Tool       string          `json:"tool"` // version of rehydrate
	Release    string          `json:"release"`
	Digest     string          `json:"release_sha256"`
	Model      string          `json:"model"`
	Server     string          `json:"server"`      // the dialect
	Host       string          `json:"host_sha256"` // of the endpoint's host, which is not written down
	Parameters json.RawMessage `json:"parameters"`  // as they were sent, of the first task and run
	Pictures   string          `json:"pictures"`    // how they were prepared
	Split      string          `json:"split"`
	Rows       int             `json:"rows"`
	Shots      int             `json:"shots"`
	Seed       int64           `json:"seed"`
	Runs       int             `json:"runs"`
	Sent       []string        `json:"sent,omitempty"`             // what of a row, by a moderation: image, text
	Flagged    *int            `json:"flagged,omitempty"`          // rows, by a moderation
	TextOnly   int             `json:"picture_not_used,omitempty"` // answers of a moderation that say so, though it was sent
	Tasks      []TaskReport    `json:"tasks"`
	Scores     []MeanScore     `json:"scores,omitempty"` // over the runs, of tasks that rows have labels for
	In         int             `json:"tokens_in"`
	Out        int             `json:"tokens_out"`
	Estimated  int             `json:"estimated"`      // answers whose tokens the server did not count, so that an estimate is in the sums
	Cost       float64         `json:"cost,omitempty"` // at the prices given
}

// A TaskReport is of one task in one run.
type TaskReport struct {
	Task      string                   `json:"task"`
	Run       int                      `json:"run"`
	Prompt    string                   `json:"prompt,omitempty"` // built-in, or the name of its file
	PromptID  string                   `json:"prompt_sha256,omitempty"`
	Examples  string                   `json:"examples_sha256,omitempty"` // of their ids, images and answers
	Asked     string                   `json:"asked_sha256"`              // of all that decides an answer but the picture
	Models    map[string]int           `json:"models"`                    // answers by the model that the server says has answered
	Outcomes  map[endpoint.Outcome]int `json:"outcomes"`                  // not_asked beside those of an answer
	In        int                      `json:"tokens_in"`
	Out       int                      `json:"tokens_out"`
	Estimated int                      `json:"estimated"`
	First     time.Time                `json:"first,omitzero"` // answer
	Last      time.Time                `json:"last,omitzero"`
	Macro     *float64                 `json:"macro_f1"` // parts of 1, as labels score; nil where no row has a label or an answer
	Weighted  *float64                 `json:"weighted_f1"`
}

// A MeanScore is what the answers of a task are worth, as labels score computes it.
type MeanScore struct {
	Task       string        `json:"task"`
	MacroF1    labels.Spread `json:"macro_f1"`
	WeightedF1 labels.Spread `json:"weighted_f1"`
}

// OK counts the answers that are ok.
func (t TaskReport) OK() int { return t.Outcomes[endpoint.OK] }

// NotOK counts the others by their outcome.
func (t TaskReport) NotOK() map[string]int {
	counts := map[string]int{}
	for o, n := range t.Outcomes {
		if o != endpoint.OK {
			counts[string(o)] = n
		}
	}
	return counts
}

// OtherModels are the names that the server gave the model that has answered, where they are not the one that was
// asked.
func (r Report) OtherModels() []string {
	names := map[string]bool{}
	for _, t := range r.Tasks {
		for name := range t.Models {
			if name != r.Model {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// NotAsked counts rows that a limit kept from being asked about.
const NotAsked endpoint.Outcome = "not_asked"

// Report sums up the answers of a classification. Tool, release and host are the caller's to add.
func (c *Classification) Report(done *Done, schema manifest.Schema, prices Limits) (Report, error) {
	r := Report{Model: c.Chat.Model, Server: string(c.Chat.Dialect), Pictures: c.Pictures.How(), Split: c.Split,
		Rows:  len(done.Rows),
		Shots: c.Shots, Seed: c.Seed, Runs: c.Runs, Scores: []MeanScore{}}
	scores := c.score(done, schema)
	for _, t := range scores.Tasks {
		r.Scores = append(r.Scores, MeanScore{t.Category, t.MacroF1, t.WeightedF1})
	}
	for i, p := range c.parts {
		if i == 0 {
			body, err := p.chat.Body()
			if err == nil {
				r.Parameters, err = parameters(body)
			}
			if err != nil {
				return r, err
			}
		}
		t := p.report(done)
		if score := scores.Task(p.Task); score != nil {
			if at := slices.Index(score.Files, runName(p.Run)); at >= 0 {
				t.Macro, t.Weighted = &score.MacroF1.Each[at], &score.WeightedF1.Each[at]
			}
		}
		r.In, r.Out, r.Estimated = r.In+t.In, r.Out+t.Out, r.Estimated+t.Estimated
		r.Tasks = append(r.Tasks, t)
	}
	r.Cost = prices.cost(r.In, r.Out)
	return r, nil
}

// parameters are the fields of a request but for what its task decides.
func parameters(body []byte) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	for _, name := range []string{"model", "messages", "response_format", "input"} {
		delete(fields, name)
	}
	return json.Marshal(fields)
}

func (p *part) report(done *Done) TaskReport {
	t := TaskReport{Task: p.Task, Run: p.Run, Prompt: filepath.Base(p.task.From),
		PromptID: state.SHA256([]byte(p.task.Prompt)), Asked: p.digest}
	if len(p.examples) > 0 {
		var all []byte
		for _, rec := range p.examples {
			all = fmt.Appendf(all, "%s %s %s\n", rec.Key, rec.Image.SHA256, p.task.answer(rec))
		}
		t.Examples = state.SHA256(all)
	}
	t.count(done, p.Question)
	return t
}

// count counts the answers to the question.
func (t *TaskReport) count(done *Done, q Question) {
	t.Models, t.Outcomes = map[string]int{}, map[endpoint.Outcome]int{}
	for _, rec := range done.Rows {
		a, ok := done.Answer(q, rec)
		if !ok {
			t.Outcomes[NotAsked]++
			continue
		}
		t.Outcomes[endpoint.Outcome(a.Outcome)]++
		in, out, estimated := q.counted(rec, a.Text, endpoint.Usage{Prompt: a.In, Completion: a.Out})
		t.In, t.Out = t.In+in, t.Out+out
		if estimated {
			t.Estimated++
		}
		if a.Model != "" {
			t.Models[a.Model]++
		}
		if t.First.IsZero() || a.At.Before(t.First) {
			t.First = a.At
		}
		if a.At.After(t.Last) {
			t.Last = a.At
		}
	}
}

// The names of the files of a classification. A purge knows them (package dataset).
const (
	PredictionsName = "predictions"
	ExamplesName    = "examples.jsonl"
	RunName         = "run.json"
)

// A Sink writes one file.
type Sink func(name string, write func(io.Writer) error) error

// Write writes the predictions of each run, the ids of the examples and the report, and returns the ids that the files
// have.
func (c *Classification) Write(sink Sink, done *Done, r Report) (ids []string, err error) {
	named := map[string]bool{}
	for run := range c.Runs {
		name := PredictionsName + ".jsonl"
		if c.Runs > 1 {
			name = fmt.Sprintf("%s-%d.jsonl", PredictionsName, run+1)
		}
		err := sink(name, func(w io.Writer) error {
			for _, rec := range done.Rows {
				named[rec.Key.String()] = true
				if _, err := w.Write(c.prediction(done, rec, run+1)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if c.Shots > 0 {
		err := sink(ExamplesName, func(w io.Writer) error { return c.writeExamples(w, named) })
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(named)), writeReport(sink, r)
}

func writeReport(sink Sink, r Report) error {
	return sink(RunName, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	})
}

// prediction is the line of a row: its id, and by task the codes of the classes that the model gave, null for no
// answer. A class of several labels has the code of all of them: the model was not asked which.
func (c *Classification) prediction(done *Done, rec workspace.Record, run int) []byte {
	line := append([]byte(`{"id":`), compact(rec.Key.String())...)
	for _, p := range c.parts {
		if p.Run != run {
			continue
		}
		line = append(append(append(line, ','), compact(p.Task)...), ':')
		given := p.given(done, rec)
		codes := []string{}
		for _, label := range given {
			codes = append(codes, p.task.Classes[p.task.ClassOf(label)].Code)
		}
		switch {
		case given == nil:
			line = append(line, "null"...)
		case p.task.Kind == manifest.Multi:
			line = append(line, compact(codes)...)
		default:
			line = append(line, compact(codes[0])...)
		}
	}
	return append(line, "}\n"...)
}

func (c *Classification) writeExamples(w io.Writer, named map[string]bool) error {
	for _, p := range c.parts {
		for i, rec := range p.examples {
			named[rec.Key.String()] = true
			line := fmt.Appendf(nil, `{"id":%s,"task":%s,"run":%d,"place":%d,"answer":%s}`+"\n", compact(rec.Key.String()),
				compact(p.Task), p.Run, i+1,
				p.task.answer(rec))
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
	}
	return nil
}
