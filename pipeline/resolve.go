package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
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
	then   nextStep         // where a post goes when its answer is recorded
}

// wasLive reports whether a removal of the post would take something away: it was live here,
// and nobody has settled since that it is gone.
func (r *run) wasLive(p workspace.Post) bool {
	_, buried := r.buried[p.ID]
	return !buried && (p.Withheld || !p.LiveAt.IsZero() && !p.State.Gone())
}

// takeStock notes what the removals of a sweep are measured against: how many posts were live when
// it began, or an earlier one of this run did, and which were withheld when the run began.
func (r *run) takeStock(ctx context.Context) error {
	live := 0
	first := r.withheld == nil
	if first {
		r.withheld = map[manifest.PostID]bool{}
	}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		if r.wasLive(p) {
			live++
		}
		if p.Withheld && first {
			r.withheld[p.ID] = true
		}
	}
	r.live = max(r.live, live)
	return nil
}

// resolve asks about every post in manifest order, hands the entries of live posts on, asks
// again about those that were absent, and settles what is newly gone.
func (r *run) resolve(ctx context.Context) error {
	r.Progress.stage("ask, fetch and read")
	return r.sweep(ctx, &sweep{then: r.handOn}, everyPost)
}

// sweep asks about the posts that want selects until each has an answer or none is to be had,
// and settles what is newly gone.
func (r *run) sweep(ctx context.Context, s *sweep, want func(workspace.Post) bool) error {
	for _, part := range []func() error{
		func() error { return r.takeStock(ctx) },
		func() error { return r.askAll(ctx, s, want) },
		func() error { return r.askSilent(ctx, s) },
		func() error { return r.lookAgain(ctx, s) },
	} {
		if err := part(); err != nil {
			return err
		}
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

// askAll asks about the posts that want selects, as many as one request takes at a time.
func (r *run) askAll(ctx context.Context, s *sweep, want func(workspace.Post) bool) error {
	batch := make([]workspace.Post, 0, reddit.MaxAsk)
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
		if batch = append(batch, p); len(batch) < reddit.MaxAsk {
			continue
		}
		if err := r.ask(ctx, s, batch, false); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if len(batch) == 0 || r.stopping() {
		return nil
	}
	return r.ask(ctx, s, batch, false)
}

// askSilent asks once more about the posts whose answer held nothing at all, now beside the
// witness. Without a witness nothing can be concluded, and they stay without a verdict.
func (r *run) askSilent(ctx context.Context, s *sweep) error {
	silent := s.silent
	s.silent = nil
	for len(silent) > 0 && !r.stopping() {
		n := min(len(silent), reddit.MaxAsk-1)
		batch := silent[:n]
		silent = silent[n:]
		if r.witness != nil {
			if err := r.ask(ctx, s, batch, false); err != nil {
				return err
			}
			continue
		}
		for _, p := range batch {
			if err := s.then(ctx, p, reddit.Answer{}); err != nil {
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
	batch := make([]workspace.Post, 0, reddit.MaxAsk)
	flush := func() error {
		if len(batch) == 0 || r.stopping() {
			return nil
		}
		err := r.ask(ctx, s, batch, true)
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
		if batch = append(batch, p); len(batch) == reddit.MaxAsk-1 {
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
// there is room the witness is asked about as well; its answer is not used again. second says
// that a first absence was at least the policy's pause ago.
func (r *run) ask(ctx context.Context, s *sweep, batch []workspace.Post, second bool) error {
	ids := make([]manifest.PostID, 0, len(batch)+1)
	for _, p := range batch {
		ids = append(ids, p.ID)
	}
	if r.witness != nil && len(ids) < reddit.MaxAsk {
		ids = append(ids, r.witness.ID)
	}
	r.looks++
	answer, err := r.Reddit.Ask(ctx, ids)
	var none *reddit.Unanswered
	switch {
	case errors.As(err, &none):
		r.Log.Warn("no verdict", "posts", len(ids), "reason", none.Reason, "detail", none.Detail)
	case err != nil:
		return fmt.Errorf("ask Reddit about %d posts: %w", len(ids), err)
	}
	// Only when the witness was not in it may an empty answer mean that all are absent.
	silent := !second && none != nil && none.Reason == reddit.ReasonEmptyListing && len(ids) == len(batch)
	updated := r.judgeBatch(s, batch, answer, none, second)
	if err := r.record(ctx, updated); err != nil {
		return err
	}
	if err := r.explainAbsence(ctx, updated); err != nil {
		return err
	}
	r.Progress.asked(len(answer.Posts))
	if silent {
		s.silent = append(s.silent, updated...)
		return nil
	}
	for _, p := range updated {
		if !second && awaitsSecondLook(p) {
			continue
		}
		if err := s.then(ctx, p, answer); err != nil {
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
			updated[i] = r.seen(p, found, now)
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

// seen is the post p after an answer that held it. Where it was made is kept only while it is
// not gone.
func (r *run) seen(p workspace.Post, found reddit.Post, now time.Time) workspace.Post {
	v := policy.Judge(found.Facts)
	after := workspace.Post{ID: p.ID, State: v.State, Reason: v.Reason, CheckedAt: now, LiveAt: p.LiveAt, Unseen: p.Unseen, Told: p.Told}
	if !v.State.Gone() {
		after.Subreddit, _ = manifest.Subreddit(found.Subreddit)
	}
	if v.State == manifest.StateLive {
		after.LiveAt, after.Unseen = now, false
	}
	if strings.HasPrefix(string(v.Reason), policy.OtherReason) {
		r.Log.Warn("reddit gives a reason for a removal that is not known here; it counts as a removal", "id", p.ID, "reason", v.Reason)
	}
	if r.witness == nil || r.witness.State != manifest.StateLive {
		r.witness = &after
	}
	return r.weigh(p, after)
}

// missing is the post p after an answer that held others but not p. One absence is noted
// and withholds the post; a second one, at least the policy's pause later, is believed.
func (r *run) missing(s *sweep, p workspace.Post, now time.Time, second bool) workspace.Post {
	after := p
	switch {
	case p.State == manifest.StateUnavailable:
		after.CheckedAt = now
		return after
	case p.Withheld && p.State.Gone():
		return after // Reddit has said what became of it: that it is silent now says less
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
	return r.weigh(p, workspace.Post{ID: p.ID, State: manifest.StateUnavailable, Reason: policy.ReasonAbsent,
		CheckedAt: now, LiveAt: p.LiveAt, AbsentAt: p.AbsentAt, Unseen: p.Unseen, Subreddit: p.Subreddit, Told: p.Told})
}

// explainAbsence asks, for each unavailable post that nobody could tell of why, and of which it is
// known where it was made, whether that place is banned, private or open. It only says why. An
// explained post no longer needs to be known for where it was made.
func (r *run) explainAbsence(ctx context.Context, posts []workspace.Post) error {
	var explained []workspace.Post
	for i, p := range posts {
		name := cmp.Or(p.Subreddit, p.Told)
		if p.State != manifest.StateUnavailable || p.Reason != policy.ReasonAbsent || name == "" {
			continue
		}
		about, asked := r.abouts[name]
		if !asked {
			var err error
			if about, err = r.Reddit.About(ctx, name); err != nil {
				return errors.Join(fmt.Errorf("ask Reddit about the subreddit of %s: %w", p.ID, err), r.Workspace.SetPosts(context.WithoutCancel(ctx), explained))
			}
			r.abouts[name] = about
		}
		if about == policy.CommunityUnknown {
			continue
		}
		p.Reason, p.Subreddit = policy.JudgeAbsent(about).Reason, ""
		posts[i] = p
		explained = append(explained, p)
	}
	return r.Workspace.SetPosts(ctx, explained)
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
	var fresh []workspace.Post
	for _, p := range posts {
		if p.State.Gone() && !p.Withheld {
			fresh = append(fresh, p)
		}
	}
	// The tombstone first: killed between the two, the post stays out all the same.
	if err := r.bury(ctx, fresh); err != nil {
		return err
	}
	if err := r.Workspace.SetPosts(ctx, posts); err != nil {
		return err
	}
	return r.readmit(ctx, posts)
}
