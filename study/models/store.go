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
	// Busy is called when Write fails with workspace.ErrInUse and is tried again, once in a row; may be nil.
	Busy func(err error)
}

const (
	storeMany  = 100             // so many answers are stored at once
	storeAfter = time.Minute     // or what came in this time
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
	return w.Store.Write(ctx, do)
}

// whenFree tries again while the workspace is in use, until a time has passed, stop is closed or ctx ends.
func (w *Work) whenFree(ctx context.Context, most time.Duration, stop <-chan struct{}, try func() error) error {
	end := time.Now().Add(most)
	for n := 0; ; n++ {
		err := try()
		if !errors.Is(err, workspace.ErrInUse) || !time.Now().Before(end) {
			return err
		}
		if n == 0 && w.Store.Busy != nil {
			w.Store.Busy(err)
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
	if len(w.held) >= storeMany || w.bytes >= storeBytes { // as enough says
		select {
		case w.full <- struct{}{}:
		default: // it has been said
		}
	}
}

// enough reports whether so much is held that it is to be stored now.
func (w *Work) enough() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held) >= storeMany || w.bytes >= storeBytes
}

// keepStoring stores answers as they gather, until ctx ends; then it closes done. Answers that cannot be stored because
// another command writes are tried again with later ones.
func (w *Work) keepStoring(ctx context.Context) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		minute := time.NewTicker(storeAfter)
		defer minute.Stop()
		busy := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.full:
				if !w.enough() { // they were stored meanwhile
					continue
				}
			case <-minute.C:
			}
			err := w.store(ctx, 0, nil)
			inUse := errors.Is(err, workspace.ErrInUse)
			if inUse && !busy && w.Store.Busy != nil {
				w.Store.Busy(err)
			}
			if err != nil && !inUse {
				w.stop(err)
			}
			busy = inUse
			if inUse {
				select {
				case <-ctx.Done():
				case <-time.After(tryAgain):
				}
			}
		}
	}()
	return ended
}

// store stores the answers that are held, as soon as no other command writes in the workspace, as whenFree waits for
// it.
func (w *Work) store(ctx context.Context, most time.Duration, stop <-chan struct{}) error {
	paid := context.WithoutCancel(ctx) // an interrupt keeps no answer from the disk that may have been paid for
	return w.whenFree(ctx, most, stop, func() error {
		w.mu.Lock()
		none := len(w.held) == 0 && w.unstored.Requests == 0
		w.mu.Unlock()
		if none {
			return nil
		}
		return w.tryWrite(paid, func(ws *workspace.Workspace) error { return w.storeIn(paid, ws) })
	})
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
	if err == nil {
		return w.halt
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err = fmt.Errorf("%d answers could not be stored: %w", len(w.held), err)
	if w.halt != nil && !errors.Is(w.halt, errLimit) && !errors.Is(w.halt, errStale) {
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
