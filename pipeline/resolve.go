package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// askAtOnce is how many ids one request of Reddit's /api/info takes.
const askAtOnce = 100

// A sweep is one round of asking Reddit about every post. The resolver alone owns it.
type sweep struct {
	wasLive int              // posts that were live before the sweep
	gone    []workspace.Post // of those, the ones that no longer are; recorded as withheld
	absent  int              // posts absent for the first time
	witness *workspace.Post  // a post seen live in this sweep
}

// resolve asks about every post in manifest order, hands the entries of live posts on, asks
// again about those that were absent, and settles what is newly gone.
func (r *run) resolve(ctx context.Context) error {
	r.Progress.stage("ask, fetch and read")
	var s sweep
	if err := r.askAll(ctx, &s, everyPost, r.handOn); err != nil {
		return err
	}
	r.Progress.stage("fetch and read")
	if err := r.lookAgain(ctx, &s); err != nil {
		return err
	}
	if r.stopping() {
		// Half a sweep can't tell a mass removal from a few: what is gone stays withheld.
		return nil
	}
	return r.settle(ctx, &s)
}

func everyPost(workspace.Post) bool { return true }

// A nextStep takes a post that was asked about to whatever comes next. The answer is
// empty when there was none.
type nextStep func(context.Context, workspace.Post, reddit.Answer) error

// askAll asks about the posts that want selects, askAtOnce at a time.
func (r *run) askAll(ctx context.Context, s *sweep, want func(workspace.Post) bool, then nextStep) error {
	batch := make([]workspace.Post, 0, askAtOnce)
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		if r.stopping() {
			return nil
		}
		if !want(p) {
			continue
		}
		if batch = append(batch, p); len(batch) < askAtOnce {
			continue
		}
		if err := r.ask(ctx, s, batch, nil, then); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if len(batch) == 0 || r.stopping() {
		return nil
	}
	return r.ask(ctx, s, batch, nil, then)
}

// lookAgain asks a second time about the posts that were absent, after the policy's pause
// and beside a post that was seen live: only an answer that holds the witness shows that
// the others are missing from it.
func (r *run) lookAgain(ctx context.Context, s *sweep) error {
	if s.absent == 0 || r.stopping() {
		return nil
	}
	if err := r.pause(ctx, r.Policy.Reddit.SecondLookAfter); err != nil {
		return err
	}
	again := *s
	again.absent = 0
	batch := make([]workspace.Post, 0, askAtOnce)
	flush := func() error {
		if len(batch) == 0 || r.stopping() {
			return nil
		}
		err := r.ask(ctx, &again, batch, s.witness, r.handOn)
		batch = batch[:0]
		return err
	}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		if p.AbsentAt.IsZero() || p.State == manifest.StateUnavailable {
			continue
		}
		if batch = append(batch, p); len(batch) == askAtOnce-1 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	err := flush()
	s.gone = again.gone
	return err
}

// pause waits for d, visibly, or until the run is stopped.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	if d > 2*time.Second {
		r.Progress.OnWait(reddit.Wait{Host: "oauth.reddit.com", Reason: "second look at absent posts", For: d})
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.Stop:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask asks about one batch, records what was said, and takes each post to its next step.
// On a second look witness is asked about as well, and its answer only shows that Reddit
// was answering.
func (r *run) ask(ctx context.Context, s *sweep, batch []workspace.Post, witness *workspace.Post, then nextStep) error {
	ids := make([]manifest.PostID, 0, len(batch)+1)
	for _, p := range batch {
		ids = append(ids, p.ID)
	}
	if witness != nil {
		ids = append(ids, witness.ID)
	}
	answer, err := r.Reddit.Look(ctx, ids)
	var none *reddit.Unanswered
	switch {
	case errors.As(err, &none):
		r.Log.Warn("no verdict", "posts", len(ids), "reason", none.Reason, "detail", none.Detail)
	case err != nil:
		return fmt.Errorf("ask Reddit about %d posts: %w", len(ids), err)
	}
	absent := make(map[manifest.PostID]bool, len(answer.Absent))
	for _, id := range answer.Absent {
		absent[id] = true
	}
	now := r.Now().UTC().Truncate(time.Second)
	second := witness != nil
	updated := make([]workspace.Post, len(batch))
	for i, p := range batch {
		switch found, ok := answer.Posts[p.ID]; {
		case ok:
			updated[i] = r.seen(s, p, policy.Judge(found.Facts), now)
		case absent[p.ID]:
			updated[i] = r.missing(s, p, now, second)
		case none != nil:
			updated[i] = unknown(p, none.Reason)
		default:
			updated[i] = unknown(p, answer.Unclear[p.ID])
		}
	}
	if err := r.record(ctx, updated); err != nil {
		return err
	}
	r.Progress.asked(len(answer.Posts))
	for i := range updated {
		if !second && r.awaitsSecondLook(updated[i]) {
			continue
		}
		if err := then(ctx, updated[i], answer); err != nil {
			return err
		}
	}
	return nil
}

// seen is the post p after an answer that held it.
func (r *run) seen(s *sweep, p workspace.Post, v policy.Verdict, now time.Time) workspace.Post {
	after := workspace.Post{ID: p.ID, State: v.State, Reason: v.Reason, CheckedAt: now, LiveAt: p.LiveAt}
	if v.State == manifest.StateLive {
		after.LiveAt = now
		if _, buried := r.buried[p.ID]; !buried && s.witness == nil {
			s.witness = &after
		}
	}
	return s.weigh(p, after)
}

// missing is the post p after an answer that held others but not p. One absence is noted
// and withholds the post; a second one, at least the policy's pause later, is believed.
func (r *run) missing(s *sweep, p workspace.Post, now time.Time, second bool) workspace.Post {
	after := p
	switch {
	case p.State == manifest.StateUnavailable && !p.Withheld:
		after.CheckedAt = now
		return after
	case p.AbsentAt.IsZero():
		after.AbsentAt = now
		if p.State == "" || p.State == manifest.StateUnknown {
			after.State, after.Reason = manifest.StateUnknown, "absent_once"
		}
		s.absent++
		return after
	case !second && now.Sub(p.AbsentAt) < r.Policy.Reddit.SecondLookAfter:
		s.absent++
		return after
	}
	after = workspace.Post{ID: p.ID, State: manifest.StateUnavailable, Reason: "absent_twice",
		CheckedAt: now, LiveAt: p.LiveAt, AbsentAt: p.AbsentAt, Withheld: p.Withheld}
	return s.weigh(p, after)
}

// awaitsSecondLook reports whether p was absent and will be asked about again in this run.
func (r *run) awaitsSecondLook(p workspace.Post) bool {
	return !p.AbsentAt.IsZero() && p.State != manifest.StateUnavailable
}

// unknown is the post p when there was no verdict: it keeps what was known of it.
func unknown(p workspace.Post, reason manifest.Reason) workspace.Post {
	if p.State == "" || p.State == manifest.StateUnknown {
		p.State, p.Reason = manifest.StateUnknown, reason
	}
	return p
}

// gone reports whether a post in this state must not be in the dataset.
func gone(s manifest.PostState) bool {
	return s == manifest.StateRemoved || s == manifest.StateDeleted || s == manifest.StateUnavailable
}

// weigh notes a post that was live and is gone. It is withheld until the sweep is over,
// when settle knows how many there are.
func (s *sweep) weigh(before, after workspace.Post) workspace.Post {
	was := before.Withheld || before.State == manifest.StateLive
	if was {
		s.wasLive++
	}
	if was && gone(after.State) {
		after.Withheld = true
		s.gone = append(s.gone, after)
	}
	return after
}

// record stores a batch. A post that is gone and was never live here is buried at once:
// there is nothing to withhold.
func (r *run) record(ctx context.Context, posts []workspace.Post) error {
	if err := r.Workspace.SetPosts(ctx, posts); err != nil {
		return err
	}
	var fresh []workspace.Post
	for _, p := range posts {
		if gone(p.State) && !p.Withheld {
			fresh = append(fresh, p)
		}
	}
	return r.bury(ctx, fresh)
}

// bury puts a tombstone on each post that was removed or deleted. An unavailable post gets
// none: a private community can open again.
func (r *run) bury(ctx context.Context, posts []workspace.Post) error {
	var stones []manifest.Tombstone
	for _, p := range posts {
		old, have := r.buried[p.ID]
		if p.State == manifest.StateUnavailable || have && old.State == p.State {
			continue
		}
		stones = append(stones, manifest.Tombstone{ID: p.ID, State: p.State, Time: p.CheckedAt})
	}
	if len(stones) == 0 {
		return nil
	}
	if err := r.Workspace.AddTombstones(ctx, stones); err != nil {
		return err
	}
	for _, t := range stones {
		if _, have := r.buried[t.ID]; !have || t.State == manifest.StateDeleted {
			r.buried[t.ID] = t
		}
	}
	return nil
}

// settle erases what is newly gone, or leaves it withheld when it is more than the policy's
// share of the posts that were live: that much at once looks like an outage.
//
// The tombstone is written first: a run killed after it erases the rest when it opens the
// workspace again.
func (r *run) settle(ctx context.Context, s *sweep) error {
	if len(s.gone) == 0 {
		return nil
	}
	limit := r.Policy.Reddit.MassRemovalShare * float64(s.wasLive)
	if float64(len(s.gone)) > limit && !r.ConfirmRemovals {
		r.Log.Warn("mass removal withheld", "gone", len(s.gone), "were_live", s.wasLive)
		return nil
	}
	if err := r.bury(ctx, s.gone); err != nil {
		return err
	}
	for i := range s.gone {
		s.gone[i].Withheld = false
	}
	if err := r.Workspace.SetPosts(ctx, s.gone); err != nil {
		return err
	}
	for _, p := range s.gone {
		if err := r.Workspace.Erase(ctx, p.ID); err != nil {
			return fmt.Errorf("erase %s: %w", p.ID, err)
		}
	}
	return nil
}
