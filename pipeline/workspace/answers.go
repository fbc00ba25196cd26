package workspace

import (
	"context"
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
	In, Out     int    // tokens
	At          time.Time
}

// SetAnswer stores an answer, in place of an older one to the same question. It fails with ErrNoImage unless a.ImageSHA256
// names the image that is stored.
func (w *Workspace) SetAnswer(ctx context.Context, a Answer) (err error) {
	defer wrap(&err, "store the answer for %s", a.Key)
	ctx = context.WithoutCancel(ctx) // it may have been paid for
	return w.change(ctx, "write the row", func(t *tx) {
		stored := t.exec(`
			INSERT OR REPLACE INTO answer (id, image, asked, image_sha256, task, run, outcome, text, detail, model, tokens_in, tokens_out, at)
			SELECT id, image, ?, sha256, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM image WHERE id = ? AND image = ? AND sha256 = ?`,
			a.Asked, a.Task, a.Run, a.Outcome, a.Text, a.Detail, a.Model, a.In, a.Out, seconds(a.At), a.ID, a.Image, a.ImageSHA256)
		if stored == 0 {
			t.fail(ErrNoImage)
		}
	})
}

// Answers returns the stored answers for a task, by entry.
func (w *Workspace) Answers(ctx context.Context, task string) (all []Answer, err error) {
	defer wrap(&err, "read the answers")
	return list(ctx, w.db, func(a *Answer) []any {
		return []any{&a.ID, &a.Image, &a.Asked, &a.ImageSHA256, &a.Task, &a.Run, &a.Outcome, &a.Text, &a.Detail, &a.Model, &a.In, &a.Out,
			timestamp{&a.At}}
	}, `SELECT id, image, asked, image_sha256, task, run, outcome, text, detail, model, tokens_in, tokens_out, at FROM answer
		WHERE task = ? ORDER BY id, image, at, asked`, task)
}
