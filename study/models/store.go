package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// A Store is how a Work comes to its workspace, which it holds for moments alone.
type Store struct {
	// Read opens the workspace for reading, while others may write.
	Read func(ctx context.Context, do func(*workspace.Workspace) error) error
	// Write opens it for writing. It fails with workspace.ErrInUse while another command has it open for that.
	Write func(ctx context.Context, do func(*workspace.Workspace) error) error
	// Busy is called when Write fails with workspace.ErrInUse, once until it does not; may be nil.
	Busy func(err error)
}

const (
	storeAfter = 2 * time.Second // an answer is stored at once, or so long after the last ones were stored
	storeRest  = 20              // or this many times as long after them as storing them took
	storeMany  = 100             // or when so many are held
	storeBytes = 8 << 20         // or when their text is so long
	holdMost   = 1000            // more answers are not held: no further question is asked until they are stored
	holdBytes  = 64 << 20        // nor longer text
	tryAgain   = 2 * time.Second // between two attempts to write in a workspace that is in use
	patience   = 12 * time.Hour  // a run of a large release takes hours
)

// write does something in the workspace as soon as no other command writes there.
func (w *Work) write(ctx context.Context, do func(context.Context, *workspace.Workspace) error) error {
	return w.whenFree(ctx, patience, w.Stop, func() error {
		return w.tryWrite(ctx, func(ws *workspace.Workspace) error { return do(ctx, ws) })
	})
}

// tryWrite is Store.Write for one goroutine at a time: a second one would find the workspace in use by this very
// process.
func (w *Work) tryWrite(ctx context.Context, do func(*workspace.Workspace) error) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	err := w.Store.Write(ctx, do)
	inUse := errors.Is(err, workspace.ErrInUse)
	if inUse && !w.busy && w.Store.Busy != nil {
		w.Store.Busy(err)
	}
	w.busy = inUse
	return err
}

// whenFree tries again while the workspace is in use, until a time has passed, stop is closed or ctx ends.
func (w *Work) whenFree(ctx context.Context, most time.Duration, stop <-chan struct{}, try func() error) error {
	end := time.Now().Add(most)
	for {
		err := try()
		if !errors.Is(err, workspace.ErrInUse) || !time.Now().Before(end) {
			return err
		}
		select {
		case <-time.After(tryAgain):
		case <-stop:
			return state.ErrInterrupted
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hold keeps an answer until it is stored. The caller has w.mu.
func (w *Work) hold(a asking, reply endpoint.Reply) {
	w.held = append(w.held, workspace.Answer{Key: a.rec.Key, Asked: a.digest, ImageSHA256: a.rec.Image.SHA256,
		Task: a.Task,
		Run:  a.Run, Outcome: string(reply.Outcome), Text: reply.Text, Detail: reply.Detail, Model: reply.Model,
		In: reply.Usage.Prompt, Out: reply.Usage.Completion, At: w.Now()})
	w.bytes += len(reply.Text)
	say(w.came)
	if len(w.held) >= storeMany || w.bytes >= storeBytes { // as enough says
		say(w.full)
	}
}

// say leaves word in a channel that has room for one.
func say(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // it has been said
	}
}

// enough reports whether so much is held that it is to be stored now.
func (w *Work) enough() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held) >= storeMany || w.bytes >= storeBytes
}

// keepStoring stores answers as they come, until ctx ends or they cannot be stored; then it closes done. Answers that
// cannot be stored because another command writes are tried again with later ones.
func (w *Work) keepStoring(ctx context.Context) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The first is stored at once: where that fails, few are paid for in vain.
		for pause := time.Duration(0); w.gather(ctx, pause); {
			began := time.Now()
			err := w.store(ctx, 0, nil)
			pause = max(storeAfter, storeRest*time.Since(began))
			switch {
			case errors.Is(err, workspace.ErrInUse):
				select {
				case <-ctx.Done():
				case <-time.After(tryAgain):
				}
				pause = 0
				say(w.came)
			case err != nil: // store has halted the work; storeRest tries once more
				return
			}
		}
	}()
	return ended
}

// gather waits for an answer to store, and then until the pause is over or enough is held. It reports whether ctx has
// not ended.
func (w *Work) gather(ctx context.Context, pause time.Duration) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-w.came:
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-over.C:
			return true
		case <-w.full:
			if w.enough() { // else they were stored meanwhile
				return true
			}
		}
	}
}

// An unstorable is why answers could not be stored, for a reason that does not pass by itself.
type unstorable struct{ error }

func (u unstorable) Unwrap() error { return u.error }

// store stores the answers that are held, as soon as no other command writes in the workspace, as whenFree waits for
// it. It halts the work where they cannot be stored: what is asked from then on would be paid for in vain.
func (w *Work) store(ctx context.Context, most time.Duration, stop <-chan struct{}) error {
	paid := context.WithoutCancel(ctx) // an interrupt keeps no answer from the disk that may have been paid for
	return w.whenFree(ctx, most, stop, func() error {
		w.mu.Lock()
		none := len(w.held) == 0 && w.unstored.Requests == 0
		w.mu.Unlock()
		if none {
			return nil
		}
		err := w.tryWrite(paid, func(ws *workspace.Workspace) error { return w.storeIn(paid, ws) })
		if err != nil && !errors.Is(err, workspace.ErrInUse) {
			w.mu.Lock()
			w.cannot = unstorable{err}
			w.mu.Unlock()
			w.stop(w.cannot)
		}
		return err
	})
}

// storable returns why answers could not be stored; nil for none. A question that waits for its turn is then not sent.
func (w *Work) storable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cannot
}

// storeIn stores the answers that are held in the open workspace.
func (w *Work) storeIn(ctx context.Context, ws *workspace.Workspace) error {
	w.mu.Lock()
	answers, cost := slices.Clone(w.held), w.unstored
	w.mu.Unlock()
	err := ws.SetAnswers(ctx, answers, w.Model, cost)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.held = w.held[len(answers):]
	for _, a := range answers {
		w.bytes -= len(a.Text)
	}
	w.unstored.Add(workspace.Spending{Requests: -cost.Requests, In: -cost.In, Out: -cost.Out, Cost: -cost.Cost})
	w.mu.Unlock()
	return w.readSpent(ctx, ws)
}

// room waits until no more answers are held than may be.
func (w *Work) room(ctx context.Context) error {
	w.mu.Lock()
	room := len(w.held) < holdMost && w.bytes < holdBytes
	w.mu.Unlock()
	if room {
		return nil
	}
	return w.store(ctx, patience, w.Stop)
}

// storeRest stores what is held when the asking has ended, and returns what halted it. An interrupted work waits for
// the lock a little while, any other as long as it has patience.
func (w *Work) storeRest(ctx context.Context) error {
	err := w.store(ctx, patience, w.Stop)
	if errors.Is(err, state.ErrInterrupted) {
		w.stop(err)
		err = w.store(ctx, grace, nil)
	}
	_, cannot := errors.AsType[unstorable](w.halt)
	switch {
	case err == nil && cannot:
		return fmt.Errorf("asking stopped when an answer could not be stored, which it is now: %w", w.halt)
	case err == nil:
		return w.halt
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n := len(w.held); n {
	case 0: // of no answer, but of what was spent
	case 1:
		err = fmt.Errorf("1 answer could not be stored; it is lost, and the next command asks and pays for it again: %w",
			err)
	default:
		err = fmt.Errorf("%d answers could not be stored; they are lost, and the next command asks and pays for them "+
			"again: %w", n, err)
	}
	if w.halt != nil && !cannot && !errors.Is(w.halt, errLimit) && !errors.Is(w.halt, errStale) {
		err = fmt.Errorf("%w; %w", w.halt, err)
	}
	return err
}

// readSpent reads what was spent on all models. What was asked of w.Model counts at the present prices where they
// make it dearer.
func (w *Work) readSpent(ctx context.Context, ws *workspace.Workspace) error {
	all, err := ws.Spent(ctx)
	total := 0.0
	for model, s := range all {
		if model == w.Model {
			s.Cost = max(s.Cost, w.Limits.cost(s.In, s.Out))
		}
		total += s.Cost
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent = total
	return err
}
