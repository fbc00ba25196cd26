package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/sweep"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// addTombstones puts a tombstone on each post that was removed or deleted.
func (r *run) addTombstones(ctx context.Context, posts []workspace.Post) error {
	var stones []workspace.Tombstone
	for _, p := range posts {
		old, have := r.stones[p.ID]
		// An unavailable post gets none: a private community can open again.
		if p.State == manifest.StateUnavailable || have && !stricter(old, p) {
			continue
		}
		stones = append(stones, workspace.Tombstone{Reason: p.Reason,
			Tombstone: manifest.Tombstone{ID: p.ID, State: p.State, Time: p.CheckedAt}})
	}
	if len(stones) == 0 {
		return nil
	}
	if err := r.Workspace.AddTombstones(ctx, stones); err != nil {
		return err
	}
	for _, t := range stones {
		r.stones[t.ID] = t
	}
	return nil
}

// stricter reports whether what Reddit says of a post now asks for more than its tombstone.
func stricter(old workspace.Tombstone, p workspace.Post) bool {
	was, is := policy.TakenDown(old.State, old.Reason), policy.TakenDown(p.State, p.Reason)
	switch {
	case old.State == manifest.StateUnavailable: // by a list: what a moderator removed must not be readmitted for it
		return is
	case old.State == manifest.StateDeleted: // a crosspost by its author, and now its image
		return p.State != manifest.StateDeleted && is && !was
	case p.State == manifest.StateDeleted: // by its author
		return is || !was
	case is && !was:
		return true
	}
	// A removal that a policy may let come back became one that none may.
	return mostLenient().Readmits(old.State, old.Reason) && !mostLenient().Readmits(p.State, p.Reason)
}

// mostLenient lets every post come back that any policy does.
func mostLenient() policy.Policy {
	return policy.Policy{Reddit: policy.Reddit{Readmit: policy.ReadmitModerator}}
}

// readmit suspends the tombstones of the posts that were just seen live where the policy lets them come back.
func (r *run) readmit(ctx context.Context, posts []workspace.Post) error {
	var back []manifest.PostID
	for _, p := range posts {
		stone, ok := r.stones[p.ID]
		if ok && p.State == manifest.StateLive && r.Policy.Readmits(stone.State, stone.Reason) {
			back = append(back, p.ID)
		}
	}
	if err := r.Workspace.SetReadmitted(ctx, true, back...); err != nil {
		return err
	}
	// In memory last: an error above leaves the tombstones holding.
	for _, id := range back {
		r.Log.Info("a post that a moderator had removed is back", "id", id)
		delete(r.stones, id)
	}
	return nil
}

// holdTombstones reads the tombstones that hold: all but those of readmitted posts.
func (r *run) holdTombstones(ctx context.Context) error {
	all, err := r.Workspace.Tombstones(ctx)
	if err != nil {
		return err
	}
	r.stones = make(state.Holding, len(all))
	var again []manifest.PostID
	for _, t := range all {
		if state.Suspended(t, r.Policy) {
			continue
		}
		if t.Readmitted { // the policy no longer lets it come back
			again = append(again, t.ID)
		}
		r.stones[t.ID] = t
	}
	return r.Workspace.SetReadmitted(ctx, false, again...)
}

// takeListed stores the tombstones of newListed.
func (r *run) takeListed(ctx context.Context) error {
	listed, err := r.newListed(ctx)
	if err != nil || len(listed) == 0 {
		return err
	}
	if err := r.Workspace.AddTombstones(ctx, listed); err != nil {
		return fmt.Errorf("take over the tombstones that were named: %w", err)
	}
	return r.holdTombstones(ctx)
}

// newListed returns the tombstones of Listed that ask for more than those that hold. One that was suspended or lifted
// since is none.
func (r *run) newListed(ctx context.Context) (add []workspace.Tombstone, err error) {
	if len(r.Listed) == 0 {
		return nil, nil
	}
	returned, err := state.Returned(ctx, r.Workspace, nil, r.Now())
	lifts, wrong := state.Lifts(ctx, r.Workspace, r.Release, r.Now())
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	have := maps.Clone(r.stones) // the lists can have a post twice
	for _, l := range r.Listed {
		t := workspace.Tombstone{Tombstone: l.Tombstone, Reason: l.Reason}
		if isLifted(lifts, t) {
			continue
		}
		settled := func(e state.TombstoneEntry) bool { return settles(e, t) }
		old, holds := have[t.ID]
		if old.Reason == policy.CrosspostAuthor && t.Reason != "" && !policy.ByAuthor(t.Reason) {
			t.State = manifest.StateRemoved // its image was, later than its author deleted the crosspost
		}
		if holds && asksMore(old, t) || !holds && !slices.ContainsFunc(returned, settled) {
			add, have[t.ID] = append(add, t), t
		}
	}
	return add, nil
}

// asksMore reports whether a tombstone of a list asks for more than the one that the post has. Without a reason it
// counts as a request.
func asksMore(old, t workspace.Tombstone) bool {
	switch {
	case t.Reason != "" && stricter(old, workspace.Post{State: t.State, Reason: t.Reason}):
		return true
	case t.Reason == "":
		return t.State != old.State || !t.Time.Equal(old.Time)
	}
	return t.State == old.State && t.Reason == old.Reason && t.Time.After(old.Time)
}

// isLifted reports whether a tombstone of a list was lifted, whatever other one its post has since.
func isLifted(lifts map[policy.NamedTombstone]bool, t workspace.Tombstone) bool {
	return lifts[policy.NameTombstone(t.ID, t.Time)]
}

// settles reports whether the post of a tombstone of a list came back after that: by a tombstone that was suspended.
func settles(e state.TombstoneEntry, t workspace.Tombstone) bool {
	if e.Status != state.TombstoneSuspended {
		return false
	}
	same := e.ID == t.ID && e.Time.Equal(t.Time)
	was := workspace.Tombstone{Tombstone: manifest.Tombstone{ID: e.ID, State: e.State, Time: e.Time}, Reason: e.Reason}
	return same && t.Reason == "" || e.ID == t.ID && t.Reason != "" && !asksMore(was, t)
}

// takeHeard takes over what audits heard of posts and images: what was live is withheld, until the job settles what is
// gone: with what its own sweep finds, or at its end.
func (r *run) takeHeard(ctx context.Context) (err error) {
	r.heard, err = state.ReadNote[state.HeardNote](ctx, r.Workspace)
	if err != nil || len(r.heard) == 0 {
		return err
	}
	lost, err := r.takeHeardImages(ctx)
	if err != nil {
		return err
	}
	posts, err := r.heardLater(ctx)
	if err != nil {
		return err
	}
	var never []workspace.Post
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		h, gone := r.heard.Of(p)
		if !gone {
			if lost[p.ID] && h.State == manifest.StateLive && !h.Later { // the answer that the image is gone said so of the post
				p.CheckedAt, p.LiveAt, p.AbsentAt = h.At, h.At, time.Time{}
				posts = append(posts, p)
			}
			continue
		}
		p = asHeard(p, h)
		p.Withheld = !r.stones.Has(p.ID) && !p.LiveAt.IsZero()
		posts = append(posts, p)
		if !p.Withheld {
			never = append(never, p)
		}
	}
	if err := r.addTombstones(ctx, never); err != nil {
		return err
	}
	return r.Workspace.SetPosts(ctx, posts)
}

// asHeard is a post by what an audit heard of it, which is gone.
func asHeard(p workspace.Post, h auditlog.HeardPost) workspace.Post {
	p.State, p.Reason, p.CheckedAt, p.AbsentAt, p.Subreddit = h.State, h.Reason, h.At, time.Time{}, ""
	return p
}

// heardLater returns, withheld, the posts of laterPosts that an audit heard are gone.
func (r *run) heardLater(ctx context.Context) (posts []workspace.Post, err error) {
	later, err := r.laterPosts(ctx)
	for _, p := range later {
		if h, gone := r.heard.Of(p); gone {
			p = asHeard(p, h)
			p.Withheld = true
			posts = append(posts, p)
		}
	}
	return posts, err
}

// takeHeardImages is takeHeard for images of posts that stay. It returns the posts that lost one.
func (r *run) takeHeardImages(ctx context.Context) (lost map[manifest.PostID]bool, err error) {
	var ids []manifest.PostID
	for id, h := range r.heard {
		if len(h.Images) > 0 {
			ids = append(ids, id)
		}
	}
	lost = map[manifest.PostID]bool{}
	if len(ids) == 0 {
		return lost, nil
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true, IDs: ids}) {
		if err != nil {
			return nil, err
		}
		after, gone := r.heard.Applied(rec)
		t := rec.Trouble
		switch {
		case !gone:
			continue
		case r.cameBackWithout(rec):
			err = r.Workspace.DropImage(ctx, rec.Key, *after.Trouble, true)
		case !hasImage(rec):
			continue
		// What waits stays as it is, and what a killed job began to erase is erased.
		case t != nil && (t.Withheld() || t.Beside == workspace.Going):
			continue
		default:
			err = r.Workspace.SetTrouble(ctx, rec.Key, *after.Trouble)
		}
		if err != nil {
			return nil, err
		}
		lost[rec.ID] = true
	}
	return lost, nil
}

// hasImage reports whether a removal of the image of an entry would take something away: an image, a row here, or one
// that copies have, as where the image was lost while its removal waits. What this job has removed already has its row
// until the job ends.
func hasImage(rec workspace.Record) bool {
	t := rec.Trouble
	if rec.Image != nil || t != nil && t.Withheld() {
		return true
	}
	return rec.Result != nil && rec.Result.Outcome == manifest.Kept && !(t != nil && policy.LeftPost(t.Reason))
}

// sourceOf is where the image of an entry came from, as Candidate.Source has it: the one that is stored, that was taken
// out of its gallery, or that was there last; "" if that is not known. origins are those of the post.
func sourceOf(rec workspace.Record, origins workspace.Origins) string {
	if t := rec.Trouble; rec.Image == nil && t != nil && t.Reason == policy.LeftGallery {
		source, _, _ := strings.Cut(t.Source, " ") // as terms.attempt names it
		return cmp.Or(source, origins.Of(rec.Key))
	}
	return origins.Of(rec.Key)
}

// troubleOf is that an image, which came from source, was removed from its post, with what tells it from others of its
// gallery.
func troubleOf(source string, c reddit.Candidate) workspace.Trouble {
	t := trouble(c.Fault)
	if t.Reason == policy.LeftGallery {
		t.Source = cmp.Or(source, c.Source())
	}
	return t
}

// cameBackWithout reports whether the removal of the image of an entry out of its live post is news, and takes nothing
// away: there was no such image, or it was erased while its post was away. Then nothing of it waits, as nothing of a
// post that was never live does.
func (r *run) cameBackWithout(rec workspace.Record) bool { return isBare(rec) && !r.stones.Has(rec.ID) }

// isBare reports whether an entry has no image, and is not on record as one whose image was removed from a live post.
func isBare(rec workspace.Record) bool { return !hasImage(rec) && !isNoted(rec) }

// isNoted reports whether an entry is on record as one whose image was removed from a live post.
func isNoted(rec workspace.Record) bool {
	t := rec.Trouble
	return t != nil && t.Removed() && policy.LeftPost(t.Reason)
}

// findWaiting finds the images whose removal from a live post waits for a confirmation.
func (s *asker) findWaiting(ctx context.Context) error {
	for rec, err := range s.Workspace.Records(ctx, workspace.Select{Bare: true, Troubles: policy.ImageRemovals()}) {
		if err != nil {
			return err
		}
		if rec.Trouble.Withheld() {
			s.images[rec.Key], s.held[rec.Key] = *rec.Trouble, rec.Trouble.Beside == workspace.Unconfirmed
		}
	}
	return nil
}

// recordImages returns what answers say of images of posts that stay which were removed: out of a gallery by its
// author, or with the post that a crosspost shows. A post that is held, as in quarantine, has its images here too. Like
// posts, those that are stored wait until it is known how many there are. Of the others, which have none here, bare has
// those that this is news of.
func (s *asker) recordImages(ctx context.Context, answers []sweep.Heard[asked]) (said []workspace.EntryTrouble,
	bare []workspace.EntryTrouble, err error) {
	found, live := map[manifest.PostID]reddit.Post{}, map[manifest.PostID]bool{}
	var ids []manifest.PostID // of posts that an image was removed from, now or earlier
	for _, h := range answers {
		if h.Found == nil || h.Verdict.State.Gone() {
			continue
		}
		removed := slices.ContainsFunc(h.Found.Images, reddit.Candidate.Removed)
		for k := range s.images {
			removed = removed || k.ID == h.Post.ID
		}
		if removed {
			ids, found[h.Post.ID] = append(ids, h.Post.ID), *h.Found
			live[h.Post.ID] = h.Verdict.State == manifest.StateLive
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	origins, err := s.Workspace.Origins(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for rec, err := range s.Workspace.Records(ctx, workspace.Select{Bare: true, IDs: ids}) {
		if err != nil {
			return nil, nil, err
		}
		t, waits := s.images[rec.Key]
		// A post with a tombstone is erased, though it has its rows until the job ends.
		has := hasImage(rec) && !s.stones.Has(rec.ID)
		now := s.Now().UTC().Truncate(time.Second)
		source := sourceOf(rec, origins)
		c := found[rec.ID].ImageFrom(rec.Key.Image, source, origins.Beside(rec.Key))
		switch {
		case c.Removed() && has && !waits:
			t = troubleOf(source, c)
			t.Beside, t.At = workspace.Waiting, now
			s.images[rec.Key] = t
			said = append(said, workspace.EntryTrouble{Key: rec.Key, Trouble: &t})
		case c.Removed() && !waits && !isNoted(rec):
			t = troubleOf(source, c)
			bare = append(bare, workspace.EntryTrouble{Key: rec.Key, Trouble: &t})
		case waits && c.Shows(t.Reason, source):
			if live[rec.ID] {
				s.back[rec.ID] = true
			}
			delete(s.images, rec.Key)
			said = append(said, workspace.EntryTrouble{Key: rec.Key})
		case waits && t.At.After(now): // a clock that was ahead gives nobody more time
			t.At = now
			s.images[rec.Key] = t
			said = append(said, workspace.EntryTrouble{Key: rec.Key, Trouble: &t})
		}
	}
	return said, bare, nil
}

// hearLater notes what answers say of images of posts that stay whose entries state.db does not have, as if an audit
// had heard it: a run takes out what was removed, though Reddit's list may not have it any more by then.
func (s *asker) hearLater(ctx context.Context, answers []sweep.Heard[asked]) error {
	if s.laterOf == nil {
		s.laterOf = map[manifest.PostID][]manifest.Key{}
		for _, l := range s.later {
			s.laterOf[l.ID] = append(s.laterOf[l.ID], l.Key)
		}
	}
	changed := false
	for _, h := range answers {
		if h.Found == nil || h.Verdict.State.Gone() {
			continue
		}
		for _, k := range s.laterOf[h.Post.ID] {
			news, err := s.hearLaterImage(ctx, k, h)
			if err != nil {
				return err
			}
			changed = changed || news
		}
	}
	if !changed {
		return nil
	}
	return state.WriteNote(ctx, s.Workspace, s.heard)
}

// hearLaterImage is hearLater of one image, and reports whether the answer is news.
func (s *asker) hearLaterImage(ctx context.Context, k manifest.Key, h sweep.Heard[asked]) (news bool, err error) {
	rec, err := s.stored(ctx, k)
	if err != nil || rec.Key == k {
		return false, err
	}
	origins, err := s.Workspace.Origins(ctx, []manifest.PostID{k.ID})
	if err != nil {
		return false, err
	}
	if s.heard == nil {
		s.heard = state.HeardNote{}
	}
	source := origins.Of(k)
	c := h.Found.ImageFrom(k.Image, source, origins.Beside(k))
	was, waits := s.heard[k.ID].Images[k.Image]
	switch {
	case c.Removed() && !waits:
		s.heard.HearLater(k, h.Verdict.State, c.Fault.Reason, s.Now())
		return true, nil
	case waits && c.Shows(was.Reason, source):
		delete(s.heard[k.ID].Images, k.Image)
		return true, nil
	}
	return false, nil
}

// recordBare notes the removal of images that are not here out of posts that are.
func (s *asker) recordBare(ctx context.Context, bare []workspace.EntryTrouble) error {
	for _, e := range bare {
		if s.stones.Has(e.ID) {
			continue
		}
		if err := s.Workspace.DropImage(ctx, e.Key, *e.Trouble, true); err != nil {
			return err
		}
	}
	return nil
}

// settle erases the posts that were live and are gone, and the images that left live posts. When they are too many it
// leaves them withheld: from then on each of them stays until it is confirmed or live again, however few are left.
func (s *asker) settle(ctx context.Context) error {
	s.settled = true // also where it fails: what it has withheld by then would pass for what is confirmed
	posts, found, waits := s.sortPosts()
	images, foundImages, waitImages := s.sortImages()
	n := len(found) + len(foundImages)
	all := n + len(waits) + len(waitImages) // each image as a post: one odd answer can call all of a gallery deleted
	// What is confirmed was not live any more, and is neither new: the rest is judged as if it had gone before.
	s.live -= len(posts)
	// Many gone at once look like an outage; a single one never does. What waits counts, and what this run erased before.
	limit := max(1, s.Policy.Reddit.MassRemovalShare*float64(s.live))
	if n > 0 && float64(all+s.erased) > limit {
		said := "mass removal withheld"
		if len(foundImages)+len(waitImages) > 0 {
			said += ", with images of live posts"
		}
		gone := postsOf(slices.Concat(found, waits), slices.Concat(foundImages, waitImages))
		s.Log.Warn(said, "gone", len(gone), "were_live", s.live)
		if err := s.withholdMany(ctx, found, foundImages); err != nil {
			return err
		}
		found, foundImages, n = nil, nil, 0
	}
	s.erased += n
	// The log first: what it says is in the state or will be, and an auditor finds no erasure without its
	// cause.
	if err := s.notePosts(ctx, auditlog.Confirmed, posts); err != nil {
		return err
	}
	if err := s.erase(ctx, slices.Concat(posts, found), slices.Concat(images, foundImages)); err != nil {
		return err
	}
	return s.settleHeard(ctx)
}

// settleHeard clears what audits heard, which is settled, too, but for what only a run can settle: of images whose
// entries an older state.db does not have.
func (r *run) settleHeard(ctx context.Context) error {
	left, err := r.heard.OfNoEntry(ctx, r.Workspace)
	if err != nil {
		return err
	}
	if len(left) > 0 && !r.loads {
		return state.WriteNote(ctx, r.Workspace, left)
	}
	return state.ClearNote[state.HeardNote](ctx, r.Workspace)
}

// postsOf are the posts among these and those that lost one of the images: each once, however many of its images went.
func postsOf(posts []workspace.Post, images []manifest.Key) map[manifest.PostID]bool {
	ids := map[manifest.PostID]bool{}
	for _, p := range posts {
		ids[p.ID] = true
	}
	for _, k := range images {
		ids[k.ID] = true
	}
	return ids
}

// sortPosts returns the posts that are withheld whose removal is confirmed, those that this sweep has to decide about,
// and those that wait for a confirmation.
func (s *asker) sortPosts() (confirmed, found, waits []workspace.Post) {
	for _, id := range slices.Sorted(maps.Keys(s.waiting)) {
		p := s.waiting[id]
		switch {
		case !p.State.Gone():
		// A confirmation covers what an earlier job withheld as many at once, and said so: nothing that this job found, that
		// only an audit heard, or that a job saw which did not end.
		case s.confirms() && s.withheld[p.ID] && p.Unconfirmed:
			confirmed = append(confirmed, p)
		case p.Unconfirmed:
			waits = append(waits, p)
		default:
			found = append(found, p)
		}
	}
	return confirmed, found, waits
}

// sortImages is sortPosts for images.
func (s *asker) sortImages() (confirmed, found, waits []manifest.Key) {
	for _, k := range slices.SortedFunc(maps.Keys(s.images), func(a, b manifest.Key) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Image, b.Image))
	}) {
		_, gone := s.waiting[k.ID]
		switch {
		case gone: // with its post, or not
		case s.confirms() && s.held[k] && s.images[k].Beside == workspace.Unconfirmed:
			confirmed = append(confirmed, k)
		case s.images[k].Beside == workspace.Unconfirmed:
			waits = append(waits, k)
		default:
			found = append(found, k)
		}
	}
	return confirmed, found, waits
}

// withholdMany has posts and images wait for a confirmation, and the log say so.
func (s *asker) withholdMany(ctx context.Context, posts []workspace.Post, images []manifest.Key) error {
	noted := slices.Clone(posts)
	for _, k := range images {
		noted = append(noted, workspace.Post{ID: k.ID, Reason: s.images[k].Reason}) // as the log has them
	}
	if err := s.notePosts(ctx, auditlog.Withheld, noted); err != nil {
		return err
	}
	if err := state.WriteNote(ctx, s.Workspace, state.MassRemovalNote(s.Policy.Reddit.MassRemovalShare)); err != nil {
		return err
	}
	for i := range posts {
		posts[i].Unconfirmed = true
		s.waiting[posts[i].ID] = posts[i]
	}
	if err := s.Workspace.SetPosts(ctx, posts); err != nil {
		return err
	}
	for _, k := range images {
		t := s.images[k]
		t.Beside = workspace.Unconfirmed
		if err := s.Workspace.SetTrouble(ctx, k, t); err != nil {
			return err
		}
		s.images[k] = t
	}
	return nil
}

// erase erases posts that were withheld, and images that left their posts.
func (s *asker) erase(ctx context.Context, posts []workspace.Post, images []manifest.Key) error {
	// The tombstone first: a run killed from here on erases the rest when it opens the workspace again.
	if err := s.addTombstones(ctx, posts); err != nil {
		return err
	}
	for i := range posts {
		posts[i].Withheld = false
	}
	if err := s.Workspace.SetPosts(ctx, posts); err != nil {
		return err
	}
	for _, p := range posts {
		if err := s.Workspace.Erase(ctx, p.ID); err != nil {
			return fmt.Errorf("erase %s: %w", p.ID, err)
		}
		delete(s.waiting, p.ID)
		maps.DeleteFunc(s.images, func(k manifest.Key, _ workspace.Trouble) bool { return k.ID == p.ID })
		s.liveNow--
	}
	for _, k := range images {
		if err := s.Workspace.DropImage(ctx, k, s.images[k], true); err != nil {
			return err
		}
		delete(s.images, k)
	}
	return nil
}

// notePosts records posts in the log, in as many records as it takes.
func (s *asker) notePosts(ctx context.Context, kind auditlog.Kind, posts []workspace.Post) error {
	// The workspace writes most records with the change they record; what is withheld and confirmed changes nothing.
	var events []auditlog.Event
	for chunk := range slices.Chunk(posts, auditlog.MaxPosts) {
		e := auditlog.Event{Kind: kind}
		for _, p := range chunk {
			e.Posts = append(e.Posts, auditlog.Post{ID: p.ID, State: p.State, Reason: auditlog.Word(p.Reason)})
		}
		events = append(events, e)
	}
	return s.Workspace.Note(ctx, events...)
}
