package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A sweep is one round of asking Reddit about every post. The resolver alone owns it.
type sweep struct {
	absent int              // posts absent for the first time
	silent []workspace.Post // posts in answers that held nothing at all
	// witness is a post that Reddit answered for in this sweep, a live one if there is any.
	// An answer that holds it shows that what else was asked for is missing.
	witness *workspace.Post
}

// wasLive reports whether a removal of the post would take something away: it was live here,
// and nobody has settled since that it is gone.
func (r *run) wasLive(p workspace.Post) bool {
	_, buried := r.buried[p.ID]
	return !buried && (p.Withheld || !p.LiveAt.IsZero() && !p.State.Gone())
}

// takeStock notes what the removals of this run are measured against: how many posts were
// live when it began, and which were withheld already.
func (r *run) takeStock(ctx context.Context) error {
	r.withheld = map[manifest.PostID]bool{}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		if r.wasLive(p) {
			r.live++
		}
		if p.Withheld {
			r.withheld[p.ID] = true
		}
	}
	return nil
}

// resolve asks about every post in manifest order, hands the entries of live posts on, asks
// again about those that were absent, and settles what is newly gone.
func (r *run) resolve(ctx context.Context) error {
	r.Progress.stage("ask, fetch and read")
	s := &sweep{}
	if err := r.takeStock(ctx); err != nil {
		return err
	}
	if err := r.askAll(ctx, s, everyPost, r.handOn); err != nil {
		return err
	}
	r.Progress.stage("fetch and read")
	if err := r.askSilent(ctx, s); err != nil {
		return err
	}
	if err := r.lookAgain(ctx, s); err != nil {
		return err
	}
	if r.stopping() {
		// Half a sweep can't tell a mass removal from a few: what is gone stays withheld.
		return nil
	}
	return r.settle(ctx)
}

func everyPost(workspace.Post) bool { return true }

// A nextStep takes a post that was asked about to whatever comes next. The answer is
// empty when there was none.
type nextStep func(context.Context, workspace.Post, reddit.Answer) error

// A look is one kind of asking.
type look struct {
	// second says that a first absence was at least the policy's pause ago.
	second bool
	then   nextStep
}

// askAll asks about the posts that want selects, as many as one request takes at a time.
func (r *run) askAll(ctx context.Context, s *sweep, want func(workspace.Post) bool, then nextStep) error {
	batch := make([]workspace.Post, 0, reddit.MaxLook)
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
		if batch = append(batch, p); len(batch) < reddit.MaxLook {
			continue
		}
		if err := r.ask(ctx, s, batch, look{then: then}); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if len(batch) == 0 || r.stopping() {
		return nil
	}
	return r.ask(ctx, s, batch, look{then: then})
}

// askSilent asks once more about the posts whose answer held nothing at all, now beside the
// witness. Without a witness nothing can be concluded, and they stay without a verdict.
func (r *run) askSilent(ctx context.Context, s *sweep) error {
	silent := s.silent
	s.silent = nil
	for len(silent) > 0 && !r.stopping() {
		n := min(len(silent), reddit.MaxLook-1)
		batch := silent[:n]
		silent = silent[n:]
		if s.witness != nil {
			if err := r.ask(ctx, s, batch, look{then: r.handOn}); err != nil {
				return err
			}
			continue
		}
		for _, p := range batch {
			if err := r.handOn(ctx, p, reddit.Answer{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAgain asks a second time about the posts that were absent, after the policy's pause.
func (r *run) lookAgain(ctx context.Context, s *sweep) error {
	if s.absent == 0 || r.stopping() {
		return nil
	}
	if err := r.pause(ctx, r.Policy.Reddit.SecondLookAfter); err != nil {
		return err
	}
	batch := make([]workspace.Post, 0, reddit.MaxLook)
	flush := func() error {
		if len(batch) == 0 || r.stopping() {
			return nil
		}
		err := r.ask(ctx, s, batch, look{second: true, then: r.handOn})
		batch = batch[:0]
		return err
	}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		if !awaitsSecondLook(p) {
			continue
		}
		if batch = append(batch, p); len(batch) == reddit.MaxLook-1 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
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

// ask asks about one batch, records what was said, and takes each post to its next step. Where
// there is room the witness is asked about as well; its answer is not used again.
func (r *run) ask(ctx context.Context, s *sweep, batch []workspace.Post, l look) error {
	ids := make([]manifest.PostID, 0, len(batch)+1)
	for _, p := range batch {
		ids = append(ids, p.ID)
	}
	if s.witness != nil && len(ids) < reddit.MaxLook {
		ids = append(ids, s.witness.ID)
	}
	answer, err := r.Reddit.Look(ctx, ids)
	var none *reddit.Unanswered
	switch {
	case errors.As(err, &none):
		r.Log.Warn("no verdict", "posts", len(ids), "reason", none.Reason, "detail", none.Detail)
	case err != nil:
		return fmt.Errorf("ask Reddit about %d posts: %w", len(ids), err)
	}
	// Only when the witness was not in it may an empty answer mean that all are absent.
	silent := !l.second && none != nil && none.Reason == reddit.ReasonEmptyListing && len(ids) == len(batch)
	updated := r.judgeBatch(s, batch, answer, none, l.second)
	if err := r.record(ctx, updated); err != nil {
		return err
	}
	r.Progress.asked(len(answer.Posts))
	if silent {
		s.silent = append(s.silent, updated...)
		return nil
	}
	for _, p := range updated {
		if !l.second && awaitsSecondLook(p) {
			continue
		}
		if err := l.then(ctx, p, answer); err != nil {
			return err
		}
	}
	return nil
}

// judgeBatch returns the posts of a batch as they are after the answer.
func (r *run) judgeBatch(s *sweep, batch []workspace.Post, answer reddit.Answer, none *reddit.Unanswered, second bool) []workspace.Post {
	absent := make(map[manifest.PostID]bool, len(answer.Absent))
	for _, id := range answer.Absent {
		absent[id] = true
	}
	now := r.Now().UTC().Truncate(time.Second)
	updated := make([]workspace.Post, len(batch))
	for i, p := range batch {
		delete(r.unanswered, p.ID)
		switch found, ok := answer.Posts[p.ID]; {
		case ok:
			updated[i] = r.seen(s, p, policy.Judge(found.Facts), now)
		case absent[p.ID]:
			updated[i] = r.missing(s, p, now, second)
		case none != nil:
			updated[i] = unknown(p, none.Reason)
			r.unanswered[p.ID] = true
		default:
			updated[i] = unknown(p, answer.Unclear[p.ID])
			r.unanswered[p.ID] = true
		}
	}
	return updated
}

// seen is the post p after an answer that held it.
func (r *run) seen(s *sweep, p workspace.Post, v policy.Verdict, now time.Time) workspace.Post {
	after := workspace.Post{ID: p.ID, State: v.State, Reason: v.Reason, CheckedAt: now, LiveAt: p.LiveAt}
	if v.State == manifest.StateLive {
		after.LiveAt = now
	}
	if s.witness == nil || s.witness.State != manifest.StateLive {
		s.witness = &after
	}
	return r.weigh(p, after)
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
	return r.weigh(p, workspace.Post{ID: p.ID, State: manifest.StateUnavailable, Reason: "absent_twice",
		CheckedAt: now, LiveAt: p.LiveAt, AbsentAt: p.AbsentAt})
}

// awaitsSecondLook reports whether p was absent and is to be asked about again.
func awaitsSecondLook(p workspace.Post) bool {
	return !p.AbsentAt.IsZero() && p.State != manifest.StateUnavailable
}

// unknown is the post p when there was no verdict: it keeps what was known of it.
func unknown(p workspace.Post, reason manifest.Reason) workspace.Post {
	if p.State == "" || p.State == manifest.StateUnknown {
		p.State, p.Reason = manifest.StateUnknown, reason
	}
	return p
}

// weigh withholds a post that was live and is gone, until the sweep is over and settle knows
// how many there are.
func (r *run) weigh(before, after workspace.Post) workspace.Post {
	after.Withheld = after.State.Gone() && r.wasLive(before)
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
		if p.State.Gone() && !p.Withheld {
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
		if p.State == manifest.StateUnavailable || have && (old.State == p.State || old.State == manifest.StateDeleted) {
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

// massRemovalKey is the workspace's note of a mass removal that waits for confirmation: how
// many posts it would take.
const massRemovalKey = "mass_removal"

// settle erases what is gone and was live, or leaves it withheld when it is, with what this
// run has erased already, more than one post and more than the policy's share of the posts that
// were live: that much at once looks like an outage, a single post does not. The operator's
// confirmation covers the posts that were withheld when the run began, and no others.
//
// The tombstone is written first: a run killed after it erases the rest when it opens the
// workspace again.
func (r *run) settle(ctx context.Context) error {
	var confirmed, fresh []workspace.Post
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		switch _, buried := r.buried[p.ID]; {
		case !p.Withheld || !p.State.Gone() || buried:
		case r.ConfirmRemovals && r.withheld[p.ID]:
			confirmed = append(confirmed, p)
		default:
			fresh = append(fresh, p)
		}
	}
	going, note := append(confirmed, fresh...), ""
	limit := max(1, r.Policy.Reddit.MassRemovalShare*float64(r.live))
	if n := len(fresh); n > 0 && float64(n+r.erased) > limit {
		r.Log.Warn("mass removal withheld", "gone", n, "were_live", r.live)
		going, note = confirmed, strconv.Itoa(n)
	} else {
		r.erased += n
	}
	if err := r.noteMassRemoval(ctx, note); err != nil {
		return err
	}
	if err := r.bury(ctx, going); err != nil {
		return err
	}
	for i := range going {
		going[i].Withheld = false
	}
	if err := r.Workspace.SetPosts(ctx, going); err != nil {
		return err
	}
	for _, p := range going {
		if err := r.Workspace.Erase(ctx, p.ID); err != nil {
			return fmt.Errorf("erase %s: %w", p.ID, err)
		}
	}
	return nil
}

// noteMassRemoval stores massRemovalKey where it changes.
func (r *run) noteMassRemoval(ctx context.Context, note string) error {
	last, err := r.Workspace.Meta(ctx, massRemovalKey)
	if err != nil || last == note {
		return err
	}
	return r.Workspace.SetMeta(ctx, massRemovalKey, note)
}
