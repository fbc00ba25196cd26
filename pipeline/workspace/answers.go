package workspace

import (
	"context"
	"encoding/json"
	"time"

	"rehydrate/manifest"
)

// An Answer is what a model said when it was asked about the image of an entry.
type Answer struct {
	manifest.Key
	Asked       string // sha256 hex of all that decides the answer: what was asked, and of which image
	ImageSHA256 string // Image.SHA256 of the image that was sent
	Task        string // what was asked for
	Run         int    // which time, from 1
	Outcome     string // what became of it
	Text        string // as it came
	Detail      string // why there is none, for people
	Model       string // as the server calls it
	In, Out     int    // tokens; below 0 for as many by estimate
	At          time.Time
}

// metaSpent is the key of meta of what models have cost: JSON, a Spending by model. It names no post, and stays when
// all are erased.
const metaSpent = "spent"

// A Spending is what the answers of one model have cost.
type Spending struct {
	Requests int     `json:"requests"`
	In       int     `json:"in"` // tokens
	Out      int     `json:"out"`
	Cost     float64 `json:"cost"` // at the prices that were given when it was asked
}

// Add adds what other answers have cost.
func (s *Spending) Add(o Spending) {
	s.Requests, s.In, s.Out, s.Cost = s.Requests+o.Requests, s.In+o.In, s.Out+o.Out, s.Cost+o.Cost
}

// SetAnswers stores answers, each in place of an older one to the same question, and adds what they cost to what was
// spent on a model. An answer is left out unless its ImageSHA256 names the image that is stored: what came late of an
// erased post does not come back. All is stored or nothing.
func (w *Workspace) SetAnswers(ctx context.Context, answers []Answer, model string, cost Spending) (err error) {
	defer wrap(&err, "store answers")
	ctx = context.WithoutCancel(ctx) // they may have been paid for
	return w.change(ctx, "write the rows", func(ctx context.Context, t *tx) {
		for _, a := range answers {
			t.exec(ctx, `
			INSERT OR REPLACE INTO answer (id, image, asked, image_sha256, task, run, outcome, text, detail, model, tokens_in, tokens_out, at)
			SELECT id, image, ?, sha256, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM image WHERE id = ? AND image = ? AND sha256 = ?`,
				a.Asked, a.Task, a.Run, a.Outcome, a.Text, a.Detail, a.Model, a.In, a.Out, seconds(a.At), a.ID, a.Image,
				a.ImageSHA256)
		}
		spent, text := map[string]Spending{}, ""
		t.get(ctx, "SELECT value FROM meta WHERE key = ?", []any{metaSpent}, &text)
		if text != "" {
			t.fail(json.Unmarshal([]byte(text), &spent))
		}
		sum := spent[model]
		sum.Add(cost)
		spent[model] = sum
		body, err := json.Marshal(spent)
		t.fail(err)
		t.setMeta(ctx, metaSpent, string(body))
	})
}

// Spent returns what the answers of each model have cost so far, by all commands.
func (w *Workspace) Spent(ctx context.Context) (map[string]Spending, error) {
	return readNote[map[string]Spending](ctx, w.db, metaSpent)
}

// Answers returns the stored answers for a task, by entry.
func (w *Workspace) Answers(ctx context.Context, task string) (all []Answer, err error) {
	defer wrap(&err, "read the answers")
	return list(ctx, w.db, func(a *Answer) []any {
		return []any{&a.ID, &a.Image, &a.Asked, &a.ImageSHA256, &a.Task, &a.Run, &a.Outcome, &a.Text, &a.Detail, &a.Model,
			&a.In, &a.Out,
			timestamp{&a.At}}
	}, `SELECT id, image, asked, image_sha256, task, run, outcome, text, detail, model, tokens_in, tokens_out, at FROM answer
		WHERE task = ? ORDER BY id, image, at, asked`, task)
}
