package models

import (
	"context"
	"slices"
	"unicode/utf8"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// A plan is what there is to do.
type plan struct {
	Done
	todo   []asking
	open   int // of todo, those without any answer, not even a failure
	stale  int // rows that may not be sent before Reddit answers about their posts
	absent int // of these, whose posts its last answer left out
}

// An asking is a question about one row.
type asking struct {
	Question
	rec    workspace.Record
	with   []workspace.Record // that are sent along
	digest string
	judge  *state.Judge // that let the rows be sent
}

// plan reads which rows may be sent, which answers are there, and what was spent.
func (w *Work) plan(ctx context.Context, ws *workspace.Workspace) (*plan, error) {
	judge, err := state.StoredJudge(ctx, ws, w.Now())
	if err == nil && w.Rules != nil {
		err = w.Rules(ctx, ws, &judge)
	}
	if err != nil {
		return nil, err
	}
	if err := ws.CheckCurrent(ctx); err != nil {
		return nil, err
	}
	if err := state.CheckMasked(ctx, ws, judge.Policy); err != nil {
		return nil, err
	}
	p := &plan{Done: Done{answers: map[string]workspace.Answer{}}}
	examples, err := w.rows(ctx, ws, p, judge)
	if err != nil || p.stale > 0 { // then the rows will be others
		return p, err
	}
	p.Questions, err = w.Questions(ctx, ws, examples)
	if err != nil {
		return nil, err
	}
	for _, q := range p.Questions {
		if err := p.readAnswers(ctx, ws, q); err != nil {
			return nil, err
		}
		p.ask(q, examples, &judge)
	}
	return p, w.readSpent(ctx, ws)
}

// rows finds the rows that are asked about, and returns those that can be examples.
func (w *Work) rows(
	ctx context.Context, ws *workspace.Workspace, p *plan, judge state.Judge,
) (examples []workspace.Record, err error) {
	b, _, err := ws.Binding(ctx)
	if err != nil {
		return nil, err
	}
	missing, stricter := 0, 0
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return nil, err
		}
		asked, example := w.Split == "" || rec.Split == w.Split, w.Examples != "" && rec.Split == w.Examples
		if (asked || example) && state.IsUnwritten(rec) {
			missing++
		}
		if !asked && !example {
			continue
		}
		if rec.Result == nil || rec.Result.Outcome != manifest.Kept {
			if w.had[rec.Key] && (state.Removes(judge.HandedOut(rec)) || rec.Post.State == manifest.StateHeld) {
				p.Hidden++ // Refresh, or another command, took it out meanwhile
			}
			continue
		}
		if asked && w.had != nil {
			w.had[rec.Key] = true
		}
		now := judge.HandedOut(rec)
		switch {
		case now.Outcome == state.Candidate:
		case now.Reason == "not_rechecked":
			p.stale++
			continue
		case now.Reason == "absent_once":
			p.stale++
			p.absent++
			continue
		case now.Reason == state.ReasonStricter:
			stricter++
			continue
		default: // gone since the last run
			if asked {
				p.Hidden++
			}
			continue
		}
		rec.Labels, _ = labels.Settle(b.Schema, rec.Labels)
		if asked {
			p.Rows = append(p.Rows, rec)
		}
		if example {
			examples = append(examples, rec)
		}
	}
	if missing > 0 { // the rest would pass for all
		return nil, &state.Unwritten{Rows: missing}
	}
	if stricter > 0 {
		return nil, &state.Stricter{Rows: stricter}
	}
	return examples, nil
}

// readAnswers reads the stored answers to a question.
func (p *plan) readAnswers(ctx context.Context, ws *workspace.Workspace, q Question) error {
	asked := map[string]bool{}
	for _, rec := range p.Rows {
		asked[q.Digest(rec)] = true
	}
	all, err := ws.Answers(ctx, q.Task)
	for _, a := range all {
		if asked[a.Asked] {
			p.answers[a.Asked] = q.again(a)
		}
	}
	return err
}

// again reads an answer as it is read now: it may be from a time when it was read in another way.
func (q Question) again(a workspace.Answer) workspace.Answer {
	cut := a.Outcome != string(endpoint.OK) && len(a.Text) > maxText-utf8.UTFMax // its rest is not known
	read := slices.Contains([]endpoint.Outcome{endpoint.OK, NotJSON, UnknownLabel}, endpoint.Outcome(a.Outcome))
	if q.Read != nil && read && !cut {
		outcome, detail := q.Read(a.Text)
		a.Outcome, a.Detail = string(outcome), detail
	}
	return a
}

// ask adds what is left to ask of a question.
func (p *plan) ask(q Question, examples []workspace.Record, judge *state.Judge) {
	var with []workspace.Record
	for _, rec := range examples {
		if slices.Contains(q.With, rec.Key) {
			with = append(with, rec)
		}
	}
	for _, rec := range p.Rows {
		digest := q.Digest(rec)
		if digest == "" {
			continue
		}
		a, ok := p.answers[digest]
		switch {
		case !ok:
			p.open++
		case a.Outcome != string(endpoint.Failed):
			p.Known++
			continue
		}
		p.todo = append(p.todo, asking{q, rec, with, digest, judge})
	}
}

// mayBeSent returns why a question may not be sent at this moment, or nil. It looks into the workspace: the row may
// have been erased, replaced or become too old since the plan, or an audit may have heard that it is gone.
func (w *Work) mayBeSent(ctx context.Context, a asking) error {
	now := w.Now()
	if w.Access != nil {
		if err := w.Access(now); err != nil {
			return err
		}
	}
	return w.Store.Read(ctx, func(ws *workspace.Workspace) error {
		judge, err := a.judge.Later(ctx, ws, now)
		if err != nil {
			return err
		}
		stones, err := state.HoldingTombstones(ctx, ws)
		if err != nil {
			return err
		}
		sent := append([]workspace.Record{a.rec}, a.with...)
		var ids []manifest.PostID
		for _, rec := range sent {
			ids = append(ids, rec.ID)
		}
		have := map[manifest.Key]workspace.Record{}
		for rec, err := range ws.Records(ctx, workspace.Select{Bare: true, IDs: ids}) {
			if err != nil {
				return err
			}
			have[rec.Key] = rec
		}
		for i, rec := range sent {
			_, gone := stones[rec.ID]
			problem := still(judge, rec, have[rec.Key])
			switch {
			case i == 0 && gone, i == 0 && problem == errGone:
				return errGone
			case gone, problem != nil: // other examples have to be chosen, or Reddit asked
				return errStale
			}
		}
		return nil
	})
}

// still returns errGone where a row that was planned is not kept any more, and errStale where it is too old or has
// another image.
func still(judge state.Judge, planned, now workspace.Record) error {
	if now.Image == nil || now.Result == nil || now.Result.Outcome != manifest.Kept {
		return errGone
	}
	if now.Image.SHA256 != planned.Image.SHA256 {
		return errStale
	}
	result := judge.HandedOut(now)
	switch {
	case result.Outcome == state.Candidate:
		return nil
	case result.Reason == "not_rechecked", result.Reason == "absent_once", result.Reason == state.ReasonStricter:
		return errStale
	}
	return errGone
}

// An Estimate says what a Work would ask. Tokens and cost are estimates: the answers as long as they may be.
type Estimate struct {
	Rows     int     `json:"rows"`
	Hidden   int     `json:"hidden,omitempty"` // rows that are gone or held back since the last job: not asked about
	Stale    int     `json:"to_recheck"`       // rows whose posts Reddit is asked about first: then the rest is not known
	Known    int     `json:"answered"`
	Requests int     `json:"requests"`
	In       int     `json:"tokens_in"`
	Out      int     `json:"tokens_out"`
	Cost     float64 `json:"cost,omitempty"`
}

// Plan says what Do would ask. It only reads.
func (w *Work) Plan(ctx context.Context) (e Estimate, err error) {
	var p *plan
	err = w.Store.Read(ctx, func(ws *workspace.Workspace) (err error) {
		p, err = w.plan(ctx, ws)
		return err
	})
	if err != nil {
		return e, err
	}
	e.Rows, e.Hidden, e.Stale, e.Known, e.Requests = len(p.Rows), p.Hidden, p.stale, p.Known, len(p.todo)
	for _, a := range p.todo {
		if a.Tokens != nil {
			in, out := a.Tokens(a.rec)
			e.In, e.Out = e.In+in, e.Out+out
		}
	}
	e.Cost = w.Limits.cost(e.In, e.Out)
	return e, nil
}
