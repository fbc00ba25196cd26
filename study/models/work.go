// Package models asks a model about every kept row of a workspace, and stores what it answers there.
//
// A Work does it, for any kind of question: a Classification makes one for each task and run, a Moderation one.
//
// What it promises:
//
//   - Only a row is sent that is kept, and whose post was seen live within the policy's recheck_within: with Refresh,
//     Reddit is asked before the first request, and between two requests when the work takes longer than that. Each
//     attempt looks again at what is known by then.
//   - The workspace is locked for moments alone, so that other commands work beside it. An answer is stored at once, or
//     with others 2 seconds after the last were stored; later where storing takes longer, so that it takes a twentieth
//     of the time at most; sooner where a hundred wait. A killed process loses what was not stored by then.
//   - Where answers cannot be stored, no further question is sent. The error says how many are lost.
//   - A question with a stored answer is not asked again, by whichever command; one that failed is, by the next.
//   - Answers go with their post, and with their image. One that comes after they went is not stored.
package models

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
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
	// Digest is the sha256, in hex, of all that decides the answer about a row: what is sent, and Run. "" leaves a row
	// out.
	Digest func(workspace.Record) string
	With   []manifest.Key // rows that are sent along, as examples
	// Ask sends the question, and repeats it, if check lets it when its turn has come (endpoint.Server.Checked). The
	// trouble of one row is the outcome of its reply; an error ends the work.
	Ask func(ctx context.Context, rec workspace.Record, check func(sent int) error) (endpoint.Reply, error)
	// Read finds what an answer with text comes to, and why it is not OK. It reads stored answers again, so that all
	// are read by one rule. nil takes them as they are.
	Read func(text string) (outcome endpoint.Outcome, detail string)
	// Tokens estimates how many the question has, and at most the answer; nil for neither.
	Tokens func(workspace.Record) (in, out int)
}

// counted is how many tokens an answer about a row has cost, whatever came of it. What the server did not count is as
// much as Tokens says, here, in sums, limits and files alike, and estimated says so: a request that was sent costs,
// also one without an answer. A count below 0 is an estimate that was made when it was asked.
func (q Question) counted(rec workspace.Record, text string, u endpoint.Usage) (in, out int, estimated bool) {
	in, out = u.Prompt, u.Completion
	if in < 0 || out < 0 {
		return max(in, -in), max(out, -out), true
	}
	if q.Tokens == nil {
		return in, out, false
	}
	most, answer := q.Tokens(rec)
	if in == 0 && most > 0 {
		in, estimated = most, true
	}
	if out == 0 && answer > 0 && (text != "" || estimated) { // an answer without text can have none
		out, estimated = answer, true
	}
	return in, out, estimated
}

// cost is counted for a reply and for all requests that were sent for it: those that were repeated cost the estimate.
// What a server counts in two ways is an estimate too.
// Usage is how it is stored.
func (q Question) cost(rec workspace.Record, reply endpoint.Reply) (in, out int, stored endpoint.Usage) {
	in, out, estimated := q.counted(rec, reply.Text, reply.Usage)
	estimated = estimated || reply.Contradicts
	if repeated := reply.Sent - 1; repeated > 0 && q.Tokens != nil {
		moreIn, moreOut := q.Tokens(rec)
		in, out, estimated = in+repeated*moreIn, out+repeated*moreOut, true
	}
	if estimated {
		return in, out, endpoint.Usage{Prompt: -in, Completion: -out}
	}
	return in, out, endpoint.Usage{Prompt: in, Completion: out}
}

// A Work is the asking of questions about the kept rows of a workspace.
type Work struct {
	Store Store
	Model string // that is asked, by which the workspace sums up what was spent
	Now   func() time.Time
	Split string // of the rows that are asked about; "" for all
	// Examples is the split of the rows that Questions gets; "" for none.
	Examples string
	// Begin is called before anything else, with the workspace open for writing; may be nil.
	Begin func(context.Context, *workspace.Workspace) error
	// Questions makes the questions, given the rows of the split Examples that may be sent. It is called again when
	// rows may have gone.
	Questions func(ctx context.Context, ws *workspace.Workspace, examples []workspace.Record) ([]Question, error)
	// Refresh asks Reddit about the posts again, with the workspace open for writing, and says of how many it got no
	// answer. It is called before the first question, and when rows have become too old. nil makes rows that were seen
	// live too long ago an error, *Stale.
	Refresh func(context.Context, *workspace.Workspace) (unverified int, err error)
	// Rules changes what the last run judged by into what holds now; nil changes nothing.
	Rules  func(context.Context, *workspace.Workspace, *state.Judge) error
	Access func(now time.Time) error // says whether rows may be used at a time; nil if no grant is needed
	// Before is called before rows are sent, with their ids and the workspace open for writing; may be nil.
	Before      func(ctx context.Context, ws *workspace.Workspace, rows []string) error
	Concurrency int // requests at once, at least 1
	Limits      Limits
	Stop        <-chan struct{} // closed, it makes Do wait for what was asked, and return state.ErrInterrupted
	Progress    func(Progress)  // is called after every answer, one call at a time; may be nil

	had        map[manifest.Key]bool // rows that this call of Do has seen kept; nil before any
	refreshed  bool                  // Refresh was called, by this call of Do
	unverified int                   // posts that got no answer then, the most of all times
	came       chan struct{}         // has a value when an answer waits to be stored
	full       chan struct{}         // has one when enough answers do

	telling sync.Mutex      // of Before, and guards what follows
	told    map[string]bool // rows for which Before was called, by this call of Do
	ahead   int             // for how many questions it is called at once

	mu       sync.Mutex // guards what follows
	halt     error      // why no further question is asked
	cannot   error      // why answers could not be stored, whatever has halted the work before
	progress Progress
	requests int                // that are sent, or about to be
	reserved float64            // the cost at most of what is being asked
	dearest  float64            // what one request has cost at most
	failed   int                // questions in a row without an answer
	held     []workspace.Answer // not stored yet
	bytes    int                // of their text
	unstored workspace.Spending // of those that are held
	spent    float64            // as the workspace has it, on all models

	writing sync.Mutex // of Store.Write, and guards what follows
	busy    bool       // it found the workspace in use
}

// Limits end a work early. 0 is without limit. Prices are of a million tokens.
type Limits struct {
	Requests          int     // of this call of Do, also those that repeat a question
	Cost              float64 // of this call of Do
	Total             float64 // of all that the workspace knows of
	PriceIn, PriceOut float64
}

func (l Limits) cost(in, out int) float64 {
	return (float64(in)*l.PriceIn + float64(out)*l.PriceOut) / 1e6
}

// Progress is how far a work is. It counts what this call of Do asked, not what was answered before.
type Progress struct {
	Asked, Total  int
	Outcomes      map[endpoint.Outcome]int
	In, Out       int // tokens, by estimate where the server does not count them
	Contradicting int // answers whose counts of tokens contradict each other
	Cost          float64
	Elapsed       time.Duration
}

// Done is what is known when a work has ended.
type Done struct {
	Questions []Question
	Rows      []workspace.Record // that are asked about, in manifest order
	// Hidden is how many rows are gone or held back since the last job before Do, also those that Refresh found: they are
	// not asked about.
	Hidden int
	// posts that Reddit gave no answer about before their rows were sent, if they were seen live shortly before
	Unverified int
	Asked      int // questions that were asked now
	// of those, the answers whose counts of tokens contradict each other: the larger ones hold
	Contradicting int
	Known         int // that had been answered before
	Left          int // that were not asked, for the reason Limit
	Limit         string
	Raise         string  // the flag to give more to, where the same work would ask nothing; "" where it goes on
	Passed        string  // which limit was passed and by how much, "" for none: an answer can be dearer than any before it
	Cost          float64 // of those asked now
	Total         float64 // of all that the workspace knows of
	answers       map[string]workspace.Answer
}

// Answer returns the stored answer to a question about a row.
func (d *Done) Answer(q Question, rec workspace.Record) (workspace.Answer, bool) {
	a, ok := d.answers[q.Digest(rec)]
	return a, ok
}

// Stale is the error of rows that may not be sent before Reddit answers about their posts: they were last seen live too
// long ago, or its last answer left them out.
type Stale struct {
	Rows   int
	Absent int  // of these, whose posts the last answer left out
	Asked  bool // whether Reddit was asked by this work, in vain
}

func (e *Stale) Error() string {
	old := fmt.Sprintf("the posts of %d rows were last seen live too long ago to send them", e.Rows-e.Absent)
	absent := fmt.Sprintf("%d of the rows are of posts that Reddit's last answer left out", e.Absent)
	switch e.Absent {
	case 0:
		return old
	case e.Rows:
		return absent
	}
	return old + "; " + absent
}

// Failing is the error of an endpoint that gives no usable answer to one question after the other.
type Failing struct {
	Detail string
	Page   bool // the last answer was a web page
}

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
	errStale = errors.New("rows have become too old to be sent, or were changed") // the plan does not hold
	errGone  = errors.New("the row is gone")
	errLimit = errors.New("a limit is reached")
)

// A Conclusion makes something of what is known in the end, while the workspace is open for writing.
type Conclusion func(context.Context, *workspace.Workspace, *Done) error

// Do asks all questions that have no answer yet. When nothing is left to ask, or a limit ended it, it calls conclude
// with what is known then and the workspace open for writing; nil is allowed. What was answered is stored when it
// returns. The errors are state.ErrInterrupted, *Stale, *Failing, workspace.ErrInUse, and those of Questions,
// Refresh, Access, Ask, conclude and the workspace.
func (w *Work) Do(ctx context.Context, conclude Conclusion) (*Done, error) {
	w.halt, w.progress, w.failed = nil, Progress{Outcomes: map[endpoint.Outcome]int{}}, 0
	w.requests, w.reserved, w.dearest = 0, 0, 0
	w.told, w.ahead, w.refreshed, w.unverified = map[string]bool{}, 1, false, 0
	w.had = map[manifest.Key]bool{}
	w.came, w.full = make(chan struct{}, 1), make(chan struct{}, 1)
	if w.Begin != nil {
		if err := w.write(ctx, w.Begin); err != nil {
			return nil, err
		}
	}
	known, began := -1, w.Now()
	for {
		p, err := w.fresh(ctx)
		if err != nil {
			return nil, err
		}
		if known < 0 {
			known = p.Known
		}
		w.progress.Total = w.progress.Asked + len(p.todo)
		err = w.pass(ctx, p.todo, began)
		switch {
		case errors.Is(err, errStale):
			w.halt, w.cannot = nil, nil
			continue
		case err != nil && !errors.Is(err, errLimit):
			return nil, err
		}
		done, err := w.conclude(ctx, known, conclude)
		if !errors.Is(err, errStale) { // else, with the last answers, nothing is known of what is gone by now
			return done, err
		}
		w.halt, w.cannot = nil, nil
	}
}

// fresh is the plan of rows that may be sent. Reddit is asked once where some may not, and before any is sent: what it
// says was deleted since the last job goes to nobody, however short ago that job was.
func (w *Work) fresh(ctx context.Context) (*plan, error) {
	for refreshed := false; ; refreshed = true {
		var p *plan
		err := w.Store.Read(ctx, func(ws *workspace.Workspace) (err error) {
			p, err = w.plan(ctx, ws)
			return err
		})
		if err != nil {
			return nil, err
		}
		first := w.Refresh != nil && !w.refreshed && len(p.todo) > 0
		switch {
		case p.stale == 0 && !first:
			return p, nil
		case w.Refresh == nil || refreshed:
			return nil, &Stale{p.stale, p.absent, refreshed}
		}
		err = w.write(ctx, func(ctx context.Context, ws *workspace.Workspace) error {
			unverified, err := w.Refresh(ctx, ws)
			w.unverified = max(w.unverified, unverified)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("ask Reddit again before rows are sent: %w", err)
		}
		w.refreshed = true
	}
}

// conclude plans once more under the lock, so that no row goes between the plan and what is made of it. It fails with
// errStale where rows have become too old, or there are questions that were not asked.
func (w *Work) conclude(ctx context.Context, known int, conclude Conclusion) (*Done, error) {
	limit, raise := "", ""
	if w.halt != nil {
		limit, raise = w.limit()
	}
	var done *Done
	err := w.write(ctx, func(ctx context.Context, ws *workspace.Workspace) error {
		p, err := w.plan(ctx, ws)
		switch {
		case err != nil:
			return err
		// An example that went while the last answers came makes other questions of all.
		case p.stale > 0, p.open > 0 && limit == "":
			return errStale
		}
		done = &p.Done
		done.Asked, done.Known, done.Cost = w.progress.Asked, known, w.progress.Cost
		done.Limit, done.Raise, done.Unverified = limit, raise, w.unverified
		done.Total, done.Passed, done.Contradicting = w.spent, w.passed(), w.progress.Contradicting
		if limit != "" {
			done.Left = w.progress.Total - w.progress.Asked
		}
		if conclude == nil {
			return nil
		}
		return conclude(ctx, ws, done)
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// limit says which limit was reached, and which flag has to be raised where the same work would reach it at once again.
func (w *Work) limit() (reached, raise string) {
	l := w.Limits
	if l.Requests > 0 && w.requests >= l.Requests {
		return fmt.Sprintf("%d requests are made", l.Requests), ""
	}
	const next = ", and the next answer could go beyond "
	if l.Total > 0 && (l.Cost == 0 || l.Total-w.spent <= l.Cost-w.progress.Cost) {
		return Amount(w.spent, limitDecimals) + " is spent by all commands" + next + Amount(l.Total, limitDecimals),
			"--max-cost-total"
	}
	if w.progress.Asked == 0 && w.progress.Cost == 0 { // else the same work has as much again
		raise = "--max-cost"
	}
	return Amount(w.progress.Cost, limitDecimals) + " is spent" + next + Amount(l.Cost, limitDecimals), raise
}

// limitDecimals are those of a limit and of what is compared with it.
const limitDecimals = 4

// Amount writes a sum of money with some decimals, and with more where fewer digits than that would tell it from 0.
func Amount(sum float64, decimals int) string {
	text := strconv.FormatFloat(sum, 'f', decimals, 64)
	if sum <= 0 || sum >= 0.1 {
		return text
	}
	more := strconv.FormatFloat(sum, 'f', decimals-1-int(math.Floor(math.Log10(sum))), 64)
	return more[:max(len(text), len(strings.TrimRight(more, "0")))]
}

// passed says which limit of cost was passed, and by how much; "" for none.
func (w *Work) passed() string {
	says := func(limit, spent float64, of string) string {
		return fmt.Sprintf("the limit of %s for %s is passed: %s is spent, %s more", Amount(limit, limitDecimals), of,
			Amount(spent, limitDecimals), Amount(spent-limit, limitDecimals))
	}
	l := w.Limits
	switch {
	case l.Cost > 0 && w.progress.Cost > l.Cost:
		return says(l.Cost, w.progress.Cost, "this command")
	case l.Total > 0 && w.progress.Cost > 0 && w.spent > l.Total:
		return says(l.Total, w.spent, "all commands")
	}
	return ""
}

// pass asks questions until all are asked or something halts it, waits for the answers, and stores them. It returns
// what halted it.
func (w *Work) pass(ctx context.Context, todo []asking, began time.Time) error {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-asking.Done():
		case <-w.Stop:
			time.AfterFunc(grace, cancel)
		}
	}()
	stored := w.keepStoring(asking)
	w.askAll(asking, todo, began)
	cancel()
	<-stored
	return w.storeRest(ctx)
}

func (w *Work) askAll(ctx context.Context, todo []asking, began time.Time) {
	// One row's failure must not cancel the others, whose answers may be paid for.
	var group errgroup.Group
	group.SetLimit(max(w.Concurrency, 1))
	within := len(todo) // questions that the limit of requests lets be asked if each is sent once
	if most := w.Limits.Requests; most > 0 {
		within = min(len(todo), most-w.requests)
	}
	for i, a := range todo {
		if w.halted() {
			break
		}
		if err := w.room(ctx); err != nil {
			w.stop(err)
			break
		}
		one := func() error {
			cost, ok := w.begin(ctx, a)
			if !ok {
				return nil
			}
			var reply endpoint.Reply
			err := safely.Do(func() (err error) {
				// Only a question that has begun is surely within the limits: one that was not sent leaves room for one
				// behind the first that they let through.
				if err := w.before(ctx, todo[i:max(within, i+1)], cost); err != nil {
					return err
				}
				reply, err = w.ask(ctx, a, &cost)
				return err
			})
			w.end(a, reply, cost, began, err)
			return nil
		}
		if w.costUnknown() {
			_ = one() // which returns no error
			continue
		}
		group.Go(one) // waits until there is room
	}
	_ = group.Wait() // what went wrong stands in w.halt
}

// costUnknown reports whether a limit is set on what answers cost, and none has told yet how much that is: others that
// are sent beside the first could go far beyond it.
func (w *Work) costUnknown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Limits.Cost+w.Limits.Total > 0 && w.dearest == 0
}

// stop halts the work, unless something has halted it.
func (w *Work) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.halt == nil {
		w.halt = err
	}
}

// before calls Before for the rows of the first question, which has begun, and of some that follow it, if each may cost
// as much as the first.
func (w *Work) before(ctx context.Context, todo []asking, cost float64) error {
	if w.Before == nil {
		return nil
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	if len(w.untold(todo[:1])) == 0 {
		return nil
	}
	n := min(w.ahead, len(todo), 1+w.affordable(cost))
	// It begins with one: of an endpoint that never answers, that one alone is said to have been sent.
	w.ahead = min(2*w.ahead, maxAhead)
	rows := w.untold(todo[:n])
	err := w.write(ctx, func(ctx context.Context, ws *workspace.Workspace) error { return w.Before(ctx, ws, rows) })
	if err != nil {
		return err
	}
	for _, row := range rows {
		w.told[row] = true
	}
	return nil
}

// affordable is how many questions of a cost the limits of cost have room for, beside those that have begun.
func (w *Work) affordable(cost float64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	room := math.Inf(1)
	if w.Limits.Cost > 0 {
		room = w.Limits.Cost - w.progress.Cost - w.reserved
	}
	if w.Limits.Total > 0 {
		room = min(room, w.Limits.Total-w.spent-w.unstored.Cost-w.reserved)
	}
	if room >= maxAhead*cost {
		return maxAhead
	}
	return max(0, int(room/cost))
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

// estimate is what a request for the question costs as far as can be known before.
func (w *Work) estimate(a asking) float64 {
	if a.Tokens == nil {
		return 0
	}
	return w.Limits.cost(a.Tokens(a.rec))
}

// exceeds reports whether one more request, and what it may cost beside all that is reserved, would exceed a limit. The
// caller has w.mu.
func (w *Work) exceeds(cost float64) bool {
	l := w.Limits
	return l.Requests > 0 && w.requests >= l.Requests ||
		l.Cost > 0 && w.progress.Cost+w.reserved+cost > l.Cost ||
		l.Total > 0 && w.spent+w.unstored.Cost+w.reserved+cost > l.Total
}

// begin reports whether the question may be asked now, and what its first request costs at most.
func (w *Work) begin(ctx context.Context, a asking) (cost float64, ok bool) {
	cost = w.estimate(a)
	w.mu.Lock()
	defer w.mu.Unlock()
	cost = max(cost, w.dearest) // an estimate can be too low
	switch {
	case w.halt != nil:
	case w.stopped():
		w.halt = state.ErrInterrupted
	case ctx.Err() != nil:
		w.halt = ctx.Err()
	case w.exceeds(cost):
		w.halt = errLimit
	}
	if w.halt != nil {
		return 0, false
	}
	w.progress.Asked++
	w.requests++
	w.reserved += cost
	return cost, true
}

// repeat counts one more request for a question for which some were sent, and adds to what is reserved for it, or fails
// with errLimit where none may be sent. What was sent costs the estimate (Question.cost).
func (w *Work) repeat(a asking, sent int, reserved *float64) error {
	estimate := w.estimate(a)
	w.mu.Lock()
	defer w.mu.Unlock()
	more := max(float64(sent)*estimate+max(estimate, w.dearest)-*reserved, 0)
	if w.exceeds(more) {
		return errLimit
	}
	w.requests++
	w.reserved += more
	*reserved += more
	return nil
}

// stopped reports whether Stop is closed.
func (w *Work) stopped() bool {
	select {
	case <-w.Stop:
		return true
	default:
		return false
	}
}

// keepsBack returns why a question may not be sent at this moment, or nil.
func (w *Work) keepsBack(ctx context.Context, a asking) error {
	if w.stopped() {
		return state.ErrInterrupted
	}
	if err := w.storable(); err != nil {
		return err
	}
	return w.mayBeSent(ctx, a)
}

// ask asks one question, for which so much is reserved.
func (w *Work) ask(ctx context.Context, a asking, reserved *float64) (endpoint.Reply, error) {
	begun := false
	var kept error // why it was not sent, or not once more
	// Its turn can come hours after it began: a server asks for pauses, and few requests a minute may be wanted.
	reply, err := a.Ask(ctx, a.rec, func(sent int) error {
		kept = w.keepsBack(ctx, a)
		switch {
		case kept != nil:
		case begun:
			kept = w.repeat(a, sent, reserved)
		default: // begin counted this one
			begun = true
		}
		return kept
	})
	if err != nil && !begun {
		w.mu.Lock()
		w.requests--
		w.mu.Unlock()
	}
	if _, missing := errors.AsType[*workspace.Damaged](err); missing {
		// The image's post may have been erased meanwhile.
		if gone := w.mayBeSent(ctx, a); gone != nil {
			err = gone
		}
	}
	switch {
	case errors.Is(err, context.Canceled) && w.stopped(): // nobody waits any longer
		return reply, state.ErrInterrupted
	case kept != nil: // what was sent before may have cost something
	case err != nil && ctx.Err() == nil: // the server did not take it, or was not asked
		reply.Sent = 0
	}
	if err != nil {
		return reply, fmt.Errorf("ask about %s: %w", a.rec.Key, err)
	}
	if reply.Outcome == endpoint.OK && a.Read != nil {
		reply.Outcome, reply.Detail = a.Read(reply.Text)
	}
	if reply.Outcome != endpoint.OK {
		reply.Text = strings.ToValidUTF8(reply.Text[:min(len(reply.Text), maxText)], "")
	}
	return reply, nil
}

// end counts an answer, and holds it until it is stored.
func (w *Work) end(a asking, reply endpoint.Reply, reserved float64, began time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserved -= reserved
	if err != nil {
		if reply.Sent > 0 { // the interrupt came first, and the question may be paid for all the same
			w.spend(a, reply)
		}
		w.progress.Asked--
		if errors.Is(err, errGone) {
			w.progress.Total--
			return
		}
		if w.halt == nil || errors.Is(w.halt, errLimit) || errors.Is(w.halt, errStale) ||
			errors.Is(w.halt, state.ErrInterrupted) && !errors.Is(err, errStale) {
			w.halt = err
		}
		return
	}
	p := &w.progress
	p.Outcomes[reply.Outcome]++
	if reply.Contradicts {
		p.Contradicting++
	}
	reply.Usage = w.spend(a, reply)
	w.hold(a, reply)
	p.Elapsed = w.Now().Sub(began)
	w.failed++
	if reply.Outcome != endpoint.Failed {
		w.failed = 0
	}
	if w.failed >= maxFailed && w.halt == nil {
		w.halt = &Failing{reply.Detail, reply.Page}
	}
	if w.Progress != nil {
		w.Progress(*p)
	}
}

// spend counts what a question has cost, and returns how it is stored. The caller has w.mu.
func (w *Work) spend(a asking, reply endpoint.Reply) endpoint.Usage {
	p := &w.progress
	in, out, stored := a.cost(a.rec, reply)
	cost := w.Limits.cost(in, out)
	p.In, p.Out, p.Cost = p.In+in, p.Out+out, p.Cost+cost
	w.unstored.Add(workspace.Spending{Requests: 1, In: in, Out: out, Cost: cost})
	answerIn, answerOut, _ := a.counted(a.rec, reply.Text, reply.Usage)
	w.dearest = max(w.dearest, w.Limits.cost(answerIn, answerOut))
	return stored
}
