// Package sweep asks Reddit about all posts of a release, as many at a time as one request takes. It keeps the rule
// that makes an absence evidence: a post is gone when two answers, at least Pause apart, hold other posts and leave it
// out. An answer that holds no post at all says nothing. Its posts are asked about once more beside a witness, a post
// that Reddit has answered for, and have no verdict when there is none.
package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/polite"
	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/policy"
)

// ErrStopped is the error of a Run that Stop ended before every post was asked about.
var ErrStopped = errors.New("stopped before every post was asked about")

// ahead is how many requests' answers wait for HandOn, while the images of earlier ones are still being fetched.
const ahead = 16

// An Asker asks about up to policy.MaxAsk posts. *reddit.Client is one.
type Asker interface {
	Ask(context.Context, []manifest.PostID) (reddit.Answer, error)
}

// A Heard is one post and what Reddit said of it.
type Heard[P any] struct {
	Post    P              // as Run was given it, or as Record left it
	Found   *reddit.Post   // what the answer holds of it
	Absent  bool           // the answer held other posts, but not this one
	Verdict policy.Verdict // of Found's facts; unavailable if the post was absent twice; without a state, the reason why there is none

	Second bool // the post was absent in this sweep before, at least Pause ago: absent again, it is gone
	Again  bool // for Record to set: the post is asked about a second time before it is handed on
}

// A Sweep asks about posts of the caller's type P. Reddit, ID, Log, OnWait and Record are required. It is not safe for
// concurrent use; several Runs of one Sweep share its witness.
type Sweep[P any] struct {
	Reddit Asker
	ID     func(P) manifest.PostID
	Pause  time.Duration   // between the two absences
	Stop   <-chan struct{} // closed, it ends a Run after the request being made; may be nil
	Log    *slog.Logger
	OnWait func(polite.Wait) // called before a pause of more than 2 s

	// Record takes in one answer. It may change the posts, and sets Again.
	Record func(context.Context, []Heard[P]) error
	// HandOn takes recorded posts on, in their order, while asking goes on until it is 16 answers behind. It may be nil.
	HandOn func(context.Context, []Heard[P]) error

	// Asked counts the requests, of all Runs.
	Asked int

	witness manifest.PostID // a post that Reddit has answered for, "" when there is none
	live    bool            // the witness is live
}

// round is what one Run has to come back to.
type round[P any] struct {
	silent []P       // posts of answers that held no post at all, asked for without a witness
	again  []P       // posts that were absent once
	since  time.Time // when the last of them was found to be absent
	handOn chan<- []Heard[P]
}

// Run asks about each of the posts until it has an answer or none is to be had, and every post has been handed on.
func (s *Sweep[P]) Run(ctx context.Context, posts iter.Seq2[P, error]) error {
	g, running := errgroup.WithContext(ctx)
	queue := make(chan []Heard[P], ahead)
	safely.Go(g, func() error {
		for batch := range queue {
			if s.HandOn == nil {
				continue
			}
			if err := s.HandOn(running, batch); err != nil {
				return err
			}
		}
		return nil
	})
	var stopped error
	safely.Go(g, func() error {
		defer close(queue)
		err := s.askAll(running, posts, &round[P]{handOn: queue})
		if err == ErrStopped { // not an error of the group yet: what was heard until then is still handed on
			stopped, err = err, nil
		}
		return err
	})
	err := g.Wait() // before stopped is read: Go may evaluate a variable ahead of a call
	return cmp.Or(err, stopped)
}

func (s *Sweep[P]) askAll(ctx context.Context, posts iter.Seq2[P, error], r *round[P]) error {
	// A full request has no room for the witness. That is well: an answer to so many posts is seldom empty, and if it
	// is, they are asked about once more below.
	batch := make([]P, 0, policy.MaxAsk)
	for p, err := range posts {
		if err != nil {
			return err
		}
		batch = append(batch, p)
		if len(batch) < policy.MaxAsk {
			continue
		}
		if err := s.ask(ctx, r, batch, false); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if err := s.ask(ctx, r, batch, false); err != nil {
		return err
	}
	var err error
	if s.witness == "" { // nothing can be concluded from silence: they stay without a verdict
		err = r.pass(ctx, s.read(r.silent, reddit.Answer{}, reddit.ReasonEmptyListing, false))
	} else {
		err = s.askBeside(ctx, r, r.silent, false)
	}
	if err != nil || len(r.again) == 0 {
		return err
	}
	// HandOn works on during the pause: images are being fetched.
	pause := s.Pause - time.Since(r.since)
	if pause > 2*time.Second {
		s.OnWait(polite.Wait{Host: "oauth.reddit.com", Reason: "second look at absent posts", For: pause})
	}
	select {
	case <-time.After(pause):
		return s.askBeside(ctx, r, r.again, true)
	case <-s.Stop:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askBeside asks about posts with room for the witness in every request.
func (s *Sweep[P]) askBeside(ctx context.Context, r *round[P], posts []P, second bool) error {
	for batch := range slices.Chunk(posts, policy.MaxAsk-1) {
		if err := s.ask(ctx, r, batch, second); err != nil {
			return err
		}
	}
	return nil
}

// ask makes one request, has the answer recorded, and passes on the posts that it need not come back to.
func (s *Sweep[P]) ask(ctx context.Context, r *round[P], batch []P, second bool) error {
	if len(batch) == 0 {
		return nil
	}
	select {
	case <-s.Stop:
		return ErrStopped
	default:
	}
	var ids []manifest.PostID
	for _, p := range batch {
		ids = append(ids, s.ID(p))
	}
	beside := s.witness != "" && len(ids) < policy.MaxAsk
	if beside {
		ids = append(ids, s.witness) // its own answer is not used again
	}
	s.Asked++
	answer, err := s.Reddit.Ask(ctx, ids)
	reason := manifest.Reason("unclear")
	none, ok := errors.AsType[*reddit.Unanswered](err)
	switch {
	case ok:
		answer, reason = reddit.Answer{}, none.Reason // whatever came with it is evidence of nothing
		s.Log.Warn("no verdict", "posts", len(ids), "reason", reason, "detail", none.Detail)
	case err != nil:
		return fmt.Errorf("ask Reddit about %d posts: %w", len(ids), err)
	}
	heard := s.read(batch, answer, reason, second)
	if err := s.Record(ctx, heard); err != nil {
		return err
	}
	// Silence beside a witness is final, and so is what the second look finds.
	silent := reason == reddit.ReasonEmptyListing && !beside && !second
	settled := heard[:0]
	for _, h := range heard {
		switch {
		case silent:
			r.silent = append(r.silent, h.Post)
		case h.Again && !second:
			r.again, r.since = append(r.again, h.Post), time.Now()
		default:
			settled = append(settled, h)
		}
	}
	return r.pass(ctx, settled)
}

// read says what an answer says of each post of a batch; reason says why it says nothing.
func (s *Sweep[P]) read(batch []P, answer reddit.Answer, reason manifest.Reason, second bool) []Heard[P] {
	heard := make([]Heard[P], len(batch))
	for i, p := range batch {
		id := s.ID(p)
		h := Heard[P]{Post: p, Absent: slices.Contains(answer.Absent, id), Second: second}
		found, ok := answer.Posts[id]
		switch {
		case ok:
			h.Found, h.Verdict = &found, policy.Judge(found.Facts)
			if s.witness == "" || !s.live { // a live post is the better witness: it stays longest
				s.witness, s.live = id, h.Verdict.State == manifest.StateLive
			}
		case h.Absent && second:
			h.Verdict = policy.Verdict{State: manifest.StateUnavailable, Reason: policy.ReasonAbsent}
		case h.Absent:
			h.Verdict.Reason = "absent_once"
		default:
			h.Verdict.Reason = cmp.Or(answer.Unclear[id], reason)
		}
		heard[i] = h
	}
	return heard
}

// pass hands posts on, unless the sweep ends first.
func (r *round[P]) pass(ctx context.Context, posts []Heard[P]) error {
	if len(posts) == 0 {
		return nil
	}
	select {
	case r.handOn <- posts:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
