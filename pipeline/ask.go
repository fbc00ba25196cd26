package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/sweep"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A asker asks Reddit about posts, records the verdicts and settles what is gone, in one goroutine.
type asker struct {
	*run
	sweep      *sweep.Sweep[asked]
	live       int                                 // posts that were live when the run began, or later in it
	liveNow    int                                 // posts that are
	withheld   map[manifest.PostID]bool            // posts that waited for a confirmation when the run began
	waiting    map[manifest.PostID]workspace.Post  // posts that are withheld now
	back       map[manifest.PostID]bool            // posts that were withheld, or an image of theirs, and are live again
	erased     int                                 // posts and images that this run erased without a confirmation
	images     map[manifest.Key]workspace.Trouble  // images that were removed from posts that stay, and wait
	held       map[manifest.Key]bool               // those that waited for a confirmation when the run began
	parents    map[manifest.PostID]manifest.PostID // of the crossposts that this run found live
	abouts     map[string]manifest.Reason
	unasked    bool                               // Reddit refused to say what a community is: no other is asked about
	unanswered map[manifest.PostID]bool           // posts that Reddit gave no verdict on in this run
	warned     map[manifest.Reason]bool           // reasons of removals that are not known here
	laterOf    map[manifest.PostID][]manifest.Key // run.later, by their posts
	half       bool                               // not every post was asked about: what the asking found is not settled
}

// An asked is a post that the asker asks about, with the tombstone that it has after the answer.
type asked struct {
	workspace.Post
	stone *workspace.Tombstone
}

func newAsker(r *run) *asker {
	s := &asker{run: r, waiting: map[manifest.PostID]workspace.Post{}, images: map[manifest.Key]workspace.Trouble{},
		held: map[manifest.Key]bool{}, back: map[manifest.PostID]bool{}, abouts: map[string]manifest.Reason{},
		parents:    map[manifest.PostID]manifest.PostID{},
		unanswered: map[manifest.PostID]bool{}, warned: map[manifest.Reason]bool{}}
	s.sweep = &sweep.Sweep[asked]{Reddit: r.Reddit, ID: func(p asked) manifest.PostID { return p.ID },
		Pause: r.Policy.Reddit.SecondLookAfter,
		Stop:  r.Stop, Log: r.Log, OnWait: r.Progress.OnWait, Record: s.record}
	return s
}

// resolve asks about posts until each has an answer or none is to be had, and settles what is newly gone. Then the
// caller has the crossposts follow (followParents), once what was handed on is stored.
// handOn gets the posts with their answers while the asking goes on; it may be nil.
func (s *asker) resolve(ctx context.Context, posts iter.Seq2[asked, error],
	handOn func(context.Context, []sweep.Heard[asked]) error) error {
	s.live = max(s.live, s.liveNow)
	s.sweep.HandOn = handOn
	err := s.sweep.Run(ctx, posts)
	if errors.Is(err, sweep.ErrStopped) || err == nil && s.stopping() {
		// Half a sweep can't tell a mass removal from a few: what is gone stays withheld.
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if len(s.unanswered) > 0 {
		return nil
	}
	return s.Workspace.AllAsked(ctx)
}

// everyPost yields the posts in manifest order, and counts what the removals of the sweep are measured against.
func (s *asker) everyPost(ctx context.Context) iter.Seq2[asked, error] {
	return func(yield func(asked, error) bool) {
		s.withheld = map[manifest.PostID]bool{}
		if err := s.findWaiting(ctx); err != nil {
			yield(asked{}, err)
			return
		}
		for p, err := range s.Workspace.Posts(ctx) {
			if err != nil {
				yield(asked{}, err)
				return
			}
			s.count(p)
			if !yield(asked{Post: p}, nil) {
				return
			}
		}
		later, err := s.laterPosts(ctx)
		if err != nil {
			yield(asked{}, err)
			return
		}
		for _, p := range later {
			s.count(p)
			if !yield(asked{Post: p}, nil) {
				return
			}
		}
	}
}

// count counts a post before it is asked about.
func (s *asker) count(p workspace.Post) {
	if s.wasLive(p) {
		s.live++
		s.liveNow++
	}
	if p.Withheld {
		s.withheld[p.ID], s.waiting[p.ID] = p.Unconfirmed, p
	}
}

// laterPosts are the posts of image files whose entries are not in state.db. Only the next run can take these back, but
// they go with their posts. When such a post was seen live is not known; that it was, the file tells.
func (r *run) laterPosts(ctx context.Context) ([]workspace.Post, error) {
	posts := map[manifest.PostID]workspace.Post{}
	for _, l := range r.later {
		rec, err := r.stored(ctx, l.Key)
		if err != nil {
			return nil, err
		}
		if rec.Key != l.Key && !r.stones.Has(l.ID) {
			posts[l.ID] = workspace.Post{ID: l.ID, LiveAt: fetchedOnce("").Time}
		}
	}
	known, err := r.Workspace.PostsOfNoEntry(ctx, slices.Collect(maps.Keys(posts))...)
	if err != nil {
		return nil, err
	}
	for _, p := range known {
		if _, is := posts[p.ID]; is || p.Withheld {
			posts[p.ID] = p
		}
	}
	return slices.SortedFunc(maps.Values(posts), func(p, q workspace.Post) int { return cmp.Compare(p.ID, q.ID) }), nil
}

// duePosts yields the posts whose rows may not be exported as they are. A finished workspace has none.
func (s *asker) duePosts(ctx context.Context) iter.Seq2[asked, error] {
	return func(yield func(asked, error) bool) {
		// A run can take longer than the policy's recheck_within, and a post can be removed between the answer and the
		// download of its image.
		now := s.Now()
		for p, err := range s.Workspace.DuePosts(ctx, now.Add(-s.Policy.Reddit.RecheckWithin), now) {
			if err == nil && !p.Unseen && !s.Policy.Stale(p.LiveAt, now) {
				continue
			}
			if !yield(asked{Post: p}, err) {
				return
			}
		}
	}
}

// wasLive reports whether a removal of the post would take something away.
func (s *asker) wasLive(p workspace.Post) bool {
	return !s.stones.Has(p.ID) && (p.Withheld || !p.LiveAt.IsZero() && !p.State.Gone())
}

// record stores what was answers of posts.
func (s *asker) record(ctx context.Context, answers []sweep.Heard[asked]) error {
	now, found := s.Now().UTC().Truncate(time.Second), 0
	posts := make([]workspace.Post, len(answers))
	var gone []workspace.Post
	for i, h := range answers {
		p := h.Post.Post
		if s.wasLive(p) {
			s.liveNow--
		}
		delete(s.unanswered, p.ID)
		if p.Withheld && h.Found != nil && h.Verdict.State == manifest.StateLive {
			s.back[p.ID] = true
		}
		switch {
		case h.Found != nil:
			found++
			// Its picture goes with a parent that has a tombstone here, by request or of the release.
			answers[i].Found = h.Found.WithoutParent(s.stones.StateOf)
			s.noteParent(answers[i])
			posts[i] = s.found(p, h, now)
		case h.Absent:
			posts[i] = s.absent(p, now, h.Second)
		default:
			posts[i] = unknown(p, h.Verdict.Reason)
			s.unanswered[p.ID] = true
		}
		if p := posts[i]; p.State.Gone() && !p.Withheld {
			gone = append(gone, p) // it was never live here, so there is nothing to withhold
		}
		answers[i].Again = !posts[i].AbsentAt.IsZero() && posts[i].State != manifest.StateUnavailable
	}
	// The tombstone first: killed between the two, the post stays out all the same.
	if err := s.addTombstones(ctx, gone); err != nil {
		return err
	}
	images, bare, err := s.recordImages(ctx, answers)
	if err != nil {
		return err
	}
	if err := s.hearLater(ctx, answers); err != nil {
		return err
	}
	// One transaction: else a post could count as just seen live, and its row be handed out, while what the same answer
	// says of its images is lost.
	if err := s.Workspace.SetPosts(ctx, posts, images...); err != nil {
		return err
	}
	// And the other way round when a post comes back: live first, then its tombstone is suspended.
	if err := s.readmit(ctx, posts); err != nil {
		return err
	}
	if err := s.recordBare(ctx, bare); err != nil {
		return err
	}
	if err := s.explainAbsence(ctx, posts); err != nil {
		return err
	}
	for i, p := range posts {
		answers[i].Post = asked{Post: p}
		if stone, ok := s.stones[p.ID]; ok {
			answers[i].Post.stone = &stone
		}
		if s.wasLive(p) {
			s.liveNow++
		}
		delete(s.waiting, p.ID)
		if p.Withheld {
			s.waiting[p.ID] = p
			delete(s.back, p.ID)
		}
	}
	s.Progress.asked(found)
	return nil
}

// noteParent notes what a post that stays is a crosspost of, by an answer.
func (s *asker) noteParent(h sweep.Heard[asked]) {
	delete(s.parents, h.Post.ID)
	if h.Verdict.State.Gone() {
		return
	}
	for _, c := range h.Found.Images {
		if c.Parent != "" && !c.Removed() {
			s.parents[h.Post.ID] = c.Parent
		}
	}
}

// followParents settles the crossposts of posts that got their tombstone in this job, after what Reddit said of the
// crossposts themselves: its answers can show the image of a removed post for a while.
func (s *asker) followParents(ctx context.Context) error {
	var orphans []sweep.Heard[asked]
	for id, parent := range s.parents {
		if s.stones.Has(parent) {
			delete(s.parents, id)
			was := &reddit.Post{Images: []reddit.Candidate{{Parent: parent}}}
			orphans = append(orphans, sweep.Heard[asked]{Post: asked{Post: workspace.Post{ID: id}},
				Found: was.WithoutParent(s.stones.StateOf), Verdict: policy.Verdict{State: manifest.StateLive}})
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	images, bare, err := s.recordImages(ctx, orphans)
	if err != nil {
		return err
	}
	if err := s.Workspace.SetPosts(ctx, nil, images...); err != nil {
		return err
	}
	if err := s.recordBare(ctx, bare); err != nil {
		return err
	}
	return s.settle(ctx)
}

// found is the post p after an answer that held it.
func (s *asker) found(p workspace.Post, h sweep.Heard[asked], now time.Time) workspace.Post {
	v := h.Verdict
	after := workspace.Post{ID: p.ID, State: v.State, Reason: v.Reason, CheckedAt: now, LiveAt: p.LiveAt,
		Unseen: p.Unseen, Told: p.Told}
	if !v.State.Gone() { // where it was made is kept only to say later why it went
		after.Subreddit = manifest.Subreddit(h.Found.Subreddit)
	}
	if v.State == manifest.StateLive {
		after.LiveAt, after.Unseen = now, false
	}
	if strings.HasPrefix(string(v.Reason), policy.OtherReason) && !s.warned[v.Reason] {
		s.warned[v.Reason] = true // one for each post would bury what else is said
		s.Log.Warn("reddit gives a reason for a removal that is not known here; it counts as a removal",
			"id", p.ID, "reason", v.Reason)
	}
	return s.withhold(p, after)
}

// absent is the post p after an answer that held others but not p. A second absence after the policy's pause is
// believed.
func (s *asker) absent(p workspace.Post, now time.Time, second bool) workspace.Post {
	after := p
	switch {
	case p.State == manifest.StateUnavailable:
		after.CheckedAt = now
		return after
	case p.Withheld && p.State.Gone():
		return after // Reddit has said what became of it: that it is silent now says less
	case p.AbsentAt.IsZero():
		after.AbsentAt = now // until it is seen again, or missed again, no row of it is exported
		if p.State == "" || p.State == manifest.StateUnknown {
			after.State, after.Reason = manifest.StateUnknown, "absent_once"
		}
		return after
	case !second && now.Sub(p.AbsentAt) < s.Policy.Reddit.SecondLookAfter:
		return after
	}
	return s.withhold(p, workspace.Post{ID: p.ID, State: manifest.StateUnavailable, Reason: policy.ReasonAbsent,
		CheckedAt: now, LiveAt: p.LiveAt, AbsentAt: p.AbsentAt, Unseen: p.Unseen, Subreddit: p.Subreddit, Told: p.Told})
}

// unknown is the post p when there was no verdict: it keeps what was known of it.
func unknown(p workspace.Post, reason manifest.Reason) workspace.Post {
	if p.State == "" || p.State == manifest.StateUnknown {
		p.State, p.Reason = manifest.StateUnknown, reason
	}
	return p
}

// withhold withholds a post that was live and is gone.
func (s *asker) withhold(before, after workspace.Post) workspace.Post {
	// Only when the sweep is over settle knows how many there are.
	after.Withheld = after.State.Gone() && s.wasLive(before)
	after.Unconfirmed = after.Withheld && before.Unconfirmed
	return after
}

// explainAbsence asks whether the communities of unavailable posts are banned, private or open. It only says why: that
// Reddit refuses to answer keeps nothing else back.
func (s *asker) explainAbsence(ctx context.Context, posts []workspace.Post) error {
	var explained []workspace.Post
	for i, p := range posts {
		name := cmp.Or(p.Subreddit, p.Told)
		if p.State != manifest.StateUnavailable || p.Reason != policy.ReasonAbsent || name == "" {
			continue
		}
		about, known := s.abouts[name]
		if !known && !s.unasked {
			var err error
			about, err = s.Reddit.About(ctx, name)
			if ctx.Err() != nil {
				return errors.Join(fmt.Errorf("ask Reddit about the subreddit of %s: %w", p.ID, err),
					s.Workspace.SetPosts(context.WithoutCancel(ctx), explained))
			}
			if err != nil { // more questions of this kind would be refused, too
				s.unasked = true
				s.Log.Warn("reddit does not say why a post is unavailable", "id", p.ID, "error", err)
				continue
			}
			s.abouts[name], known = about, true
		}
		if !known || about == policy.CommunityUnknown {
			continue
		}
		p.Reason, p.Subreddit = about, "" // explained, it no longer needs its community
		posts[i] = p
		explained = append(explained, p)
	}
	return s.Workspace.SetPosts(ctx, explained)
}

// ask asks Reddit about every post and settles what is gone. Without a client it asks nobody.
func (r *run) ask(ctx context.Context, s *asker) error {
	if r.Reddit == nil {
		return r.settleKnown(ctx, s)
	}
	_, posts, err := r.Workspace.Counts(ctx)
	if err != nil {
		return err
	}
	later, err := r.laterPosts(ctx)
	if err != nil {
		return err
	}
	r.Progress.asking(posts + len(later))
	err = s.resolve(ctx, s.everyPost(ctx), nil)
	switch {
	case err != nil:
		return err
	case r.stopping():
		return state.ErrInterrupted
	}
	return s.followParents(ctx)
}

// settleUnasked is settleKnown of a job that ended before it had asked about every post, or that asks nobody. What it
// found itself stays withheld.
func (r *run) settleUnasked(ctx context.Context) error {
	if r.settled || ctx.Err() != nil {
		return nil
	}
	ctx, cancel := r.lastAct(ctx)
	defer cancel()
	s := newAsker(r)
	s.half = true
	err := r.settleKnown(ctx, s)
	if r.stopping() && errors.Is(err, context.DeadlineExceeded) {
		r.Log.Warn("what audits heard is not removed yet: the next job does it")
		return nil
	}
	return err
}

// confirms reports whether the operator's confirmation counts: who stops a job takes it back.
func (s *asker) confirms() bool { return s.confirmsRemovals() && !(s.half && s.stopping()) }

// settleKnown settles what the operator confirms and what audits heard, and asks nobody.
func (r *run) settleKnown(ctx context.Context, s *asker) error {
	if !s.confirms() && len(r.heard) == 0 {
		return nil
	}
	for _, err := range s.everyPost(ctx) { // for its counts
		if err != nil {
			return err
		}
	}
	// Half a sweep, of an earlier run or of an audit that was cut off, can't tell a mass removal from a few.
	maps.DeleteFunc(s.waiting, func(id manifest.PostID, p workspace.Post) bool {
		h := r.heard[id]
		return !p.Unconfirmed && (!h.State.Gone() || h.CutOff)
	})
	maps.DeleteFunc(s.images, func(k manifest.Key, t workspace.Trouble) bool {
		h := r.heard[k.ID]
		_, heard := h.Images[k.Image]
		return t.Beside == workspace.Waiting && (!heard || h.CutOff)
	})
	return s.settle(ctx)
}
