// Package models asks a model about every kept row of a workspace, and stores what it answers there.
//
// A Work does it, for any kind of question: a Classification makes one for each task and run, a Moderation one.
//
// What it promises:
//
//   - Only a row is sent that is kept, and whose post was seen live within the policy's recheck_within: Reddit is asked
//     again before the first request, and between two requests when the work takes longer.
//   - An answer is stored before it counts. A question that was answered is not asked again, by whichever command; one
//     that failed is, by the next.
//   - Answers go with their post, and with their image.
package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// A Question is asked about every row of a split.
type Question struct {
	Task string // what the answers are stored under
	Run  int    // which time it is asked, from 1
	// Digest is the sha256, in hex, of all that decides the answer about a row: what is sent, and Run. "" leaves a row out.
	Digest func(workspace.Record) string
	With   []manifest.Key // rows that are sent along, as examples
	// Ask sends the question, if check lets it when its turn has come (endpoint.Server.Checked). The trouble of one row is the
	// outcome of its reply; an error ends the work.
	Ask func(ctx context.Context, rec workspace.Record, check func() error) (endpoint.Reply, error)
	// Tokens estimates how many the question has, and at most the answer; nil for neither.
	Tokens func(workspace.Record) (in, out int)
}

// A Work is the asking of questions about the kept rows of a workspace.
type Work struct {
	Workspace *workspace.Workspace // locked by this process, but for Plan
	Now       func() time.Time
	Split     string // of the rows that are asked about; "" for all
	Examples  string // of the rows that Questions gets; "" for none
	// Questions makes the questions, given the rows of the split Examples that may be sent. It is called again when Reddit
	// was asked again: rows may have gone.
	Questions func(ctx context.Context, examples []workspace.Record) ([]Question, error)
	// Refresh asks Reddit about the posts again. nil makes rows that were seen live too long ago an error, *Stale.
	Refresh func(context.Context) error
	// Rules changes what the last run judged by into what holds now; nil changes nothing.
	Rules  func(context.Context, *state.Judge) error
	Access func(now time.Time) error // says whether rows may be used at a time; nil if no grant is needed
	// Before is called before rows are sent, with their ids; may be nil.
	Before      func(ctx context.Context, rows []string) error
	Concurrency int // requests at once, at least 1
	Limits      Limits
	Stop        <-chan struct{} // closed, it makes Do wait for what was asked, and return state.ErrInterrupted
	Progress    func(Progress)  // is called after every answer, one call at a time; may be nil

	told  map[string]bool // rows for which Before was called, by this call of Do
	ahead int             // for how many questions it is called at once

	mu       sync.Mutex // guards what follows
	halt     error      // why no further question is asked
	progress Progress
	reserved float64 // the cost at most of what is being asked
	dearest  float64 // what one question has cost at most
	failed   int     // questions in a row without an answer
}

// Limits end a work early. 0 is without limit. Prices are of a million tokens.
type Limits struct {
	Requests          int
	Cost              float64
	PriceIn, PriceOut float64
}

func (l Limits) cost(in, out int) float64 {
	return (float64(in)*l.PriceIn + float64(out)*l.PriceOut) / 1e6
}

// Progress is how far a work is. It counts what this call of Do asked, not what was answered before.
type Progress struct {
	Asked, Total int
	Outcomes     map[endpoint.Outcome]int
	In, Out      int // tokens
	Cost         float64
	Elapsed      time.Duration
}

// Done is what is known when a work has ended.
type Done struct {
	Questions []Question
	Rows      []workspace.Record // that are asked about, in manifest order
	Asked     int                // questions that were asked now
	Known     int                // that had been answered before
	Left      int                // that were not asked, for the reason Limit
	Limit     string
	Cost      float64 // of those asked now
	answers   map[string]workspace.Answer
}

// Answer returns the stored answer to a question about a row.
func (d *Done) Answer(q Question, rec workspace.Record) (workspace.Answer, bool) {
	a, ok := d.answers[q.Digest(rec)]
	return a, ok
}

// Stale is the error of rows that may not be sent because Reddit was asked about their posts too long ago.
type Stale struct{ Rows int }

func (e *Stale) Error() string {
	return fmt.Sprintf("the posts of %d rows were last seen live too long ago to send them", e.Rows)
}

// Failing is the error of an endpoint that gives no usable answer to one question after the other.
type Failing struct{ Detail string }

func (e *Failing) Error() string {
	return fmt.Sprintf("the endpoint gave no usable answer to %d questions in a row; the last: %s", maxFailed, e.Detail)
}

const (
	maxFailed = 10               // as many failures in a row are the endpoint's, not the rows'
	maxAhead  = 100              // as many rows as a record of the log has room for
	maxText   = 32 << 10         // bytes that are kept of an answer that is not ok: all answers are in memory at once
	grace     = 30 * time.Second // a stopped work waits so long for answers: a model on a small machine takes seconds
)

var (
	errStale = errors.New("rows have become too old to be sent")
	errLimit = errors.New("a limit is reached")
)

// Do asks all questions that have no answer yet. It returns what is known in the end also when a limit ended it.
// The errors are state.ErrInterrupted, *Stale, *Failing, and those of Questions, Refresh, Access, Ask and the workspace.
func (w *Work) Do(ctx context.Context) (*Done, error) {
	w.halt, w.progress, w.failed = nil, Progress{Outcomes: map[endpoint.Outcome]int{}}, 0
	w.reserved, w.dearest = 0, 0
	w.told, w.ahead = map[string]bool{}, 1
	refreshed, known, began := false, -1, w.Now()
	for {
		p, err := w.plan(ctx)
		if err != nil {
			return nil, err
		}
		if p.stale > 0 {
			if w.Refresh == nil || refreshed {
				return nil, &Stale{p.stale}
			}
			if err := w.Refresh(ctx); err != nil {
				return nil, fmt.Errorf("ask Reddit again before rows are sent: %w", err)
			}
			refreshed = true
			continue
		}
		if known < 0 {
			known = p.Known
		}
		w.progress.Total = w.progress.Asked + len(p.todo)
		w.pass(ctx, p.todo, began)
		refreshed = false
		switch err := w.halt; {
		case errors.Is(err, errStale):
			w.halt = nil
			continue
		case err != nil && !errors.Is(err, errLimit):
			return nil, err
		}
		limit := ""
		if w.halt != nil {
			limit = w.limit()
		}
		p, err = w.plan(ctx)
		switch {
		case err != nil:
			return nil, err
		case p.stale > 0: // with the last answers: nothing is known of what is gone by now
			w.halt = nil
			continue
		}
		p.Asked, p.Known, p.Cost, p.Limit = w.progress.Asked, known, w.progress.Cost, limit
		if limit != "" {
			p.Left = w.progress.Total - w.progress.Asked
		}
		return &p.Done, nil
	}
}

// limit says which limit was reached.
func (w *Work) limit() string {
	if w.Limits.Requests > 0 && w.progress.Asked >= w.Limits.Requests {
		return fmt.Sprintf("%d requests are made", w.Limits.Requests)
	}
	return fmt.Sprintf("%.4f is spent, and the next answer could go beyond %.4f", w.progress.Cost, w.Limits.Cost)
}

// A plan is what there is to do.
type plan struct {
	Done
	todo  []asking
	stale int // rows that may not be sent because they were last seen live too long ago
}

// An asking is a question about one row.
type asking struct {
	Question
	rec    workspace.Record
	digest string
	fresh  time.Time // until then the row, and what is sent along, may be sent
}

// plan reads which rows may be sent, and which answers are there.
func (w *Work) plan(ctx context.Context) (*plan, error) {
	judge, err := state.StoredJudge(ctx, w.Workspace, w.Now())
	if err == nil && w.Rules != nil {
		err = w.Rules(ctx, &judge)
	}
	if err != nil {
		return nil, err
	}
	p := &plan{Done: Done{answers: map[string]workspace.Answer{}}}
	var examples []workspace.Record
	live := map[manifest.Key]time.Time{} // of examples
	for rec, err := range w.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return nil, err
		}
		asked, example := w.Split == "" || rec.Split == w.Split, w.Examples != "" && rec.Split == w.Examples
		if !asked && !example || rec.Result == nil || rec.Result.Outcome != manifest.Kept {
			continue
		}
		switch now := judge.HandedOut(rec); {
		case now.Outcome == state.Candidate:
		case now.Reason == "not_rechecked":
			p.stale++
			continue
		default: // gone since the last run
			continue
		}
		if asked {
			p.Rows = append(p.Rows, rec)
		}
		if example {
			examples, live[rec.Key] = append(examples, rec), rec.Post.LiveAt
		}
	}
	if p.stale > 0 { // the rows will be others
		return p, nil
	}
	p.Questions, err = w.Questions(ctx, examples)
	if err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for _, q := range p.Questions {
		if !read[q.Task] {
			all, err := w.Workspace.Answers(ctx, q.Task)
			if err != nil {
				return nil, err
			}
			for _, a := range all {
				p.answers[a.Asked] = a
			}
			read[q.Task] = true
		}
		for _, rec := range p.Rows {
			digest := q.Digest(rec)
			if digest == "" {
				continue
			}
			if a, ok := p.answers[digest]; ok && a.Outcome != string(endpoint.Failed) {
				p.Known++
				continue
			}
			oldest := rec.Post.LiveAt
			for _, key := range q.With {
				if at, ok := live[key]; ok && at.Before(oldest) {
					oldest = at
				}
			}
			p.todo = append(p.todo, asking{q, rec, digest, oldest.Add(judge.Policy.Reddit.RecheckWithin)})
		}
	}
	return p, nil
}

// pass asks questions until all are asked or something halts it, and waits for the answers.
func (w *Work) pass(ctx context.Context, todo []asking, began time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-w.Stop:
			time.AfterFunc(grace, cancel)
		}
	}()
	// One row's failure must not cancel the others, whose answers may be paid for.
	var group errgroup.Group
	group.SetLimit(max(w.Concurrency, 1))
	sent := todo // as far as a limit lets them
	if most := w.Limits.Requests; most > 0 {
		sent = todo[:min(len(todo), most-w.progress.Asked)]
	}
	for i, a := range todo {
		if w.halted() {
			break
		}
		if err := w.before(ctx, sent[min(i, len(sent)):]); err != nil {
			w.mu.Lock()
			w.halt = err
			w.mu.Unlock()
			break
		}
		group.Go(func() error { // waits until there is room
			cost, ok := w.begin(ctx, a)
			if !ok {
				return nil
			}
			var reply endpoint.Reply
			err := safely.Do(func() (err error) { reply, err = w.ask(ctx, a); return err })
			w.end(reply, cost, began, err)
			return nil
		})
	}
	_ = group.Wait() // what went wrong stands in w.halt
}

// before calls Before for the rows of the first question and of some that follow it.
func (w *Work) before(ctx context.Context, todo []asking) error {
	if w.Before == nil || len(w.untold(todo[:min(1, len(todo))])) == 0 {
		return nil
	}
	n := min(w.ahead, len(todo))
	// It begins with one: of an endpoint that never answers, that one alone is said to have been sent.
	w.ahead = min(2*w.ahead, maxAhead)
	rows := w.untold(todo[:n])
	for _, row := range rows {
		w.told[row] = true
	}
	return w.Before(ctx, rows)
}

// untold are the rows that questions send and that Before was not called for.
func (w *Work) untold(questions []asking) (rows []string) {
	for _, a := range questions {
		for _, key := range append([]manifest.Key{a.rec.Key}, a.With...) {
			if row := key.String(); !w.told[row] && !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func (w *Work) halted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.halt != nil
}

// begin reports whether the question may be asked now, and what it costs at most.
func (w *Work) begin(ctx context.Context, a asking) (cost float64, ok bool) {
	if a.Tokens != nil {
		cost = w.Limits.cost(a.Tokens(a.rec))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	cost = max(cost, w.dearest) // an estimate can be too low
	stopped := false
	select {
	case <-w.Stop:
		stopped = true
	default:
	}
	switch {
	case w.halt != nil:
	case stopped:
		w.halt = state.ErrInterrupted
	case ctx.Err() != nil:
		w.halt = ctx.Err()
	case w.Limits.Requests > 0 && w.progress.Asked >= w.Limits.Requests,
		w.Limits.Cost > 0 && w.progress.Cost+w.reserved+cost > w.Limits.Cost:
		w.halt = errLimit
	default:
		w.halt = w.mayBeSent(a)
	}
	if w.halt != nil {
		return 0, false
	}
	w.progress.Asked++
	w.reserved += cost
	return cost, true
}

// mayBeSent returns why a question may not be sent at this moment, or nil.
func (w *Work) mayBeSent(a asking) error {
	now := w.Now()
	switch {
	case now.After(a.fresh):
		return errStale
	case w.Access != nil:
		return w.Access(now)
	}
	return nil
}

// ask asks one question and stores the answer.
func (w *Work) ask(ctx context.Context, a asking) (endpoint.Reply, error) {
	// Its turn can come hours after it began: a server asks for pauses, and few requests a minute may be wanted.
	reply, err := a.Ask(ctx, a.rec, func() error { return w.mayBeSent(a) })
	if err != nil {
		return reply, fmt.Errorf("ask about %s: %w", a.rec.Key, err)
	}
	if reply.Outcome != endpoint.OK { // of which nothing is read again
		reply.Text = strings.ToValidUTF8(reply.Text[:min(len(reply.Text), maxText)], "")
	}
	return reply, w.Workspace.SetAnswer(ctx, workspace.Answer{Key: a.rec.Key, Asked: a.digest, ImageSHA256: a.rec.Image.SHA256, Task: a.Task,
		Run: a.Run, Outcome: string(reply.Outcome), Text: reply.Text, Detail: reply.Detail, Model: reply.Model,
		In: reply.Usage.Prompt, Out: reply.Usage.Completion, At: w.Now()})
}

// end counts an answer.
func (w *Work) end(reply endpoint.Reply, reserved float64, began time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserved -= reserved
	if err != nil {
		w.progress.Asked--
		interrupted := errors.Is(w.halt, state.ErrInterrupted) && (errors.Is(err, context.Canceled) || errors.Is(err, errStale))
		if w.halt == nil || errors.Is(w.halt, errLimit) || errors.Is(w.halt, errStale) || errors.Is(w.halt, state.ErrInterrupted) && !interrupted {
			w.halt = err
		}
		return
	}
	p := &w.progress
	p.Outcomes[reply.Outcome]++
	p.In, p.Out = p.In+reply.Usage.Prompt, p.Out+reply.Usage.Completion
	cost := w.Limits.cost(reply.Usage.Prompt, reply.Usage.Completion)
	if reply.Usage == (endpoint.Usage{}) && reply.Outcome != endpoint.Failed {
		cost = reserved // the server does not say
	}
	p.Cost, w.dearest = p.Cost+cost, max(w.dearest, cost)
	p.Elapsed = w.Now().Sub(began)
	w.failed++
	if reply.Outcome != endpoint.Failed {
		w.failed = 0
	}
	if w.failed >= maxFailed && w.halt == nil {
		w.halt = &Failing{reply.Detail}
	}
	if w.Progress != nil {
		w.Progress(*p)
	}
}

// An Estimate says what a Work would ask. Tokens and cost are estimates: the answers as long as they may be.
type Estimate struct {
	Rows     int     `json:"rows"`
	Stale    int     `json:"to_recheck"` // rows about whose posts Reddit has to be asked first; nothing else is known then
	Known    int     `json:"answered"`
	Requests int     `json:"requests"`
	In       int     `json:"tokens_in"`
	Out      int     `json:"tokens_out"`
	Cost     float64 `json:"cost,omitempty"`
}

// Plan says what Do would ask. It only reads.
func (w *Work) Plan(ctx context.Context) (e Estimate, err error) {
	p, err := w.plan(ctx)
	if err != nil {
		return e, err
	}
	e.Rows, e.Stale, e.Known, e.Requests = len(p.Rows), p.stale, p.Known, len(p.todo)
	for _, a := range p.todo {
		if a.Tokens != nil {
			in, out := a.Tokens(a.rec)
			e.In, e.Out = e.In+in, e.Out+out
		}
	}
	e.Cost = w.Limits.cost(e.In, e.Out)
	return e, nil
}
