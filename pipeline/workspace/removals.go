package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/policy"
)

// What the log has of removals holds, whatever became of state.db: a state.db that is new, older than the log or
// changed takes over all of them. Tombstones are of posts. What was removed from a post that stays is trouble of its
// entry, and waits in a note while the manifest does not have the entry. A post that is gone without a tombstone is so
// again. An image that was held back is found by the next job that asks, and keeps the time of the log: that a backup
// came back gives nobody more time. What audits heard is as the log has it, unless state.db knows later. What state.db
// has as held back and Reddit showed since, by the log, no confirmation erases before a job asks. The digests of all
// images that were ever stored are as those of the log.

// readRemovals reads the removals of a log, and of records behind it.
func readRemovals(ctx context.Context, log *auditlog.Log, behind []auditlog.Event) (*auditlog.Removals, error) {
	gone := auditlog.NewRemovals()
	for _, take := range []func(auditlog.Event){gone.Add, gone.Learn} {
		if err := replay(ctx, log, behind, take); err != nil {
			return nil, err
		}
	}
	return gone, nil
}

// replay gives the records of a log to take, and those behind it.
func replay(ctx context.Context, log *auditlog.Log, behind []auditlog.Event, take func(auditlog.Event)) error {
	for e, err := range log.Records(ctx, 0) {
		if err != nil {
			return err
		}
		take(e)
	}
	for _, e := range behind {
		take(e)
	}
	return nil
}

// addFormer takes over where items of galleries came from, and the digests of all images that a log says were fetched
// and that are not stored, in the order in which they were: whatever became of an image, an audit knows it by that
// record. What was nobody's image is not among them.
func (t *tx) addFormer(ctx context.Context, log *auditlog.Log, behind []auditlog.Event) {
	t.fail(replay(ctx, log, behind, func(e auditlog.Event) {
		for _, p := range e.Posts {
			if e.Kind == auditlog.Erased && e.Verdict == auditlog.StandIn {
				t.exec(ctx, `DELETE FROM former_image
					WHERE (id, image, original_sha256, sha256, pixels_sha256) = (?, ?, ?, ?, ?) AND NOT erased`,
					p.ID, e.Image, e.Original, e.SHA256, e.Pixels)
				t.exec(ctx, "DELETE FROM origin WHERE (id, image, sha256) = (?, ?, ?)", p.ID, e.Image, e.SHA256)
			}
			if e.Kind != auditlog.Fetch {
				continue
			}
			if e.Source != "" {
				t.noteOrigin(ctx, manifest.Key{ID: p.ID, Image: e.Image}, e)
			}
			t.exec(ctx, `INSERT OR REPLACE INTO former_image (id, image, original_sha256, sha256, pixels_sha256, erased)
				SELECT ?1, ?2, ?3, ?4, ?5, EXISTS (SELECT 1 FROM former_image
				  WHERE (id, image, original_sha256, sha256, pixels_sha256) = (?1, ?2, ?3, ?4, ?5) AND erased)
				WHERE NOT EXISTS (SELECT 1 FROM image
				  WHERE (id, image, original_sha256, sha256, pixels_sha256) = (?1, ?2, ?3, ?4, ?5))`,
				p.ID, e.Image, e.Original, e.SHA256, e.Pixels)
		}
	}))
}

// checkRemovals finds the removals that a state.db lacks which is as old as the log: somebody changed it, or an earlier
// version, which did not take over all of them, was the last to compare the two.
func (w *Workspace) checkRemovals(ctx context.Context, log *auditlog.Log, r *restored) error {
	if r.gone != nil || r.what == auditlog.RestoredLog || r.what == auditlog.RestoredCheckpoint {
		return nil // it is older, or the log is, which may lack what undid a removal
	}
	done, err := w.Meta(ctx, metaTaken)
	if err != nil || done == takenOver && r.what != auditlog.RestoredChanged {
		return err
	}
	queue, err := readQueue(ctx, w.db, r.from, -1)
	if err != nil {
		return err
	}
	r.behind, err = parseLines(queue)
	if err != nil {
		return err
	}
	r.gone, err = readRemovals(ctx, log, r.behind)
	if err != nil {
		return err
	}
	have, err := w.Tombstones(ctx)
	if err != nil {
		return err
	}
	last := map[manifest.PostID]auditlog.Tombstone{}
	for _, t := range r.gone.Tombstones {
		last[t.ID] = t
	}
	for _, t := range have {
		if !t.Readmitted {
			delete(last, t.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		if t := last[id]; !t.Undone {
			r.stones = append(r.stones, tombstoneOf(t))
		}
	}
	return nil
}

func tombstoneOf(t auditlog.Tombstone) Tombstone {
	return Tombstone{Tombstone: manifest.Tombstone{ID: t.ID, State: t.State, Time: t.Since}, Reason: t.Reason}
}

// dropFormer deletes tombstones of which a log has later ones, and none of which was lifted. Each record of a tombstone
// says what held of those before it: to weigh them again could give another answer, such as a crosspost that its author
// deleted for a request since.
func (t *tx) dropFormer(ctx context.Context, former []Tombstone) {
	for _, f := range former {
		var is Tombstone
		t.get(ctx, "SELECT state, time, reason FROM tombstone WHERE id = ?", []any{f.ID},
			&is.State, timestamp{&is.Time}, &is.Reason)
		// That of a crosspost gives way to each other one, whenever it was noted.
		sameTime := is.Time.Equal(f.Time) || f.Reason == policy.CrosspostAuthor
		if is.State == f.State && sameTime && auditlog.Word(is.Reason) == f.Reason {
			t.exec(ctx, "DELETE FROM tombstone WHERE id = ?", f.ID)
		}
	}
}

// leftImages are images that were removed from posts that stay, by the names of their entries, which the manifest does
// not have.
type leftImages map[string]leftImage

// A leftImage is what is known of the removal of an image.
type leftImage struct {
	Reason manifest.Reason
	Source string `json:",omitempty"` // as Trouble.Source
}

// UnmarshalJSON also reads the reason alone, as an earlier version wrote it.
func (l *leftImage) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("{")) {
		type plain leftImage // without this method
		return json.Unmarshal(text, (*plain)(l))
	}
	return json.Unmarshal(text, &l.Reason)
}

// addRemovals takes over what a log has of removals, but for tombstones.
func (t *tx) addRemovals(ctx context.Context, gone *auditlog.Removals) {
	if t.err != nil {
		return
	}
	for id, images := range gone.Images {
		for image, all := range images {
			for _, d := range all {
				t.exec(ctx, `INSERT INTO former_image (id, image, original_sha256, sha256, pixels_sha256, erased)
					SELECT ?1, ?2, ?3, ?4, ?5, 1 WHERE NOT EXISTS (SELECT 1 FROM image WHERE id = ?1 AND image = ?2 AND sha256 = ?4)
					ON CONFLICT DO UPDATE SET erased = 1`, id, image, d.Original, d.SHA256, d.Pixels)
			}
		}
	}
	left := leftImages{}
	for k, was := range gone.Entries {
		left[k.String()] = leftImage{Reason: was.Reason}
	}
	t.addLeft(ctx, left)
	for k, was := range gone.Entries {
		t.exec(ctx, "UPDATE trouble SET at = ? WHERE id = ? AND image = ? AND reason = ? AND at = 0", seconds(was.Since),
			k.ID, k.Image, was.Reason)
	}
	since := sinceNote{map[manifest.PostID]time.Time{}, gone.Held}
	for id, g := range gone.Gone {
		since.Posts[id] = g.Since
		t.takeGone(ctx, id, g)
	}
	for id, b := range gone.Back {
		t.takeBack(ctx, id, b)
	}
	t.updateHeard(ctx, gone.Heard)
	t.addSuspects(ctx, gone.Suspects)
	if len(since.Posts)+len(since.Images) > 0 {
		t.setMeta(ctx, metaSince, jsonColumn{since})
	}
	t.setMeta(ctx, metaTaken, takenOver)
}

// NoteSuspects adds to the pictures that may be stand-ins, and records what is new.
func (w *Workspace) NoteSuspects(ctx context.Context, add auditlog.Suspects) error {
	if len(add) == 0 {
		return nil
	}
	known, err := readNote[auditlog.Suspects](ctx, w.db, SuspectsKey)
	if known == nil {
		known = auditlog.Suspects{}
	}
	if err != nil || len(known.Update(add)) == 0 { // nearly always, and nothing is written
		return err
	}
	return w.change(ctx, "note what may stand in for missing pictures", func(ctx context.Context, t *tx) {
		all, more := t.addSuspects(ctx, add)
		for _, digest := range more {
			w.record(ctx, t, all[digest].Events(digest)...)
		}
	})
}

// addSuspects adds to the note.
func (t *tx) addSuspects(ctx context.Context, add auditlog.Suspects) (all auditlog.Suspects, more []string) {
	all, err := readNote[auditlog.Suspects](ctx, t, SuspectsKey)
	t.fail(err)
	if all == nil {
		all = auditlog.Suspects{}
	}
	more = all.Update(add)
	if t.err == nil && len(more) > 0 {
		t.setMeta(ctx, SuspectsKey, jsonColumn{all})
	}
	return all, more
}

// updateHeard takes over what audits heard by a log.
func (t *tx) updateHeard(ctx context.Context, log auditlog.Heard) {
	heard, err := readNote[auditlog.Heard](ctx, t, HeardKey)
	t.fail(err)
	if t.err != nil || len(heard)+len(log) == 0 {
		return
	}
	if heard == nil {
		heard = auditlog.Heard{}
	}
	heard.Update(log)
	t.setMeta(ctx, HeardKey, jsonColumn{heard})
}

// takeGone takes over that a post is gone where state.db knows less, or nothing: what the log says was erased is to go,
// and anything else that was here is held back until a job asks. A tombstone needs none of it.
func (t *tx) takeGone(ctx context.Context, id manifest.PostID, g auditlog.GonePost) {
	held := withheld{&Post{Withheld: !g.Erased, Unconfirmed: g.Withheld && !g.Erased}}
	// Of an image without a row, which can be here all the same, addFormer has the digests.
	t.exec(ctx, `INSERT INTO post (id, state, reason, checked_at, live_at, absent_at, withheld, gone_at)
		SELECT ?1, ?2, ?3, ?4, 0, 0, CASE WHEN ?5 > 1 OR EXISTS (SELECT 1 FROM image WHERE id = ?1)
		  OR EXISTS (SELECT 1 FROM former_image WHERE id = ?1) THEN ?5 ELSE 0 END, ?6
		WHERE NOT EXISTS (SELECT 1 FROM tombstone WHERE id = ?1 AND NOT readmitted)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, checked_at = excluded.checked_at,
		  absent_at = 0, subreddit = '', withheld = CASE WHEN post.live_at > 0 THEN ?5 ELSE excluded.withheld END,
		  gone_at = CASE WHEN post.gone_at > 0 THEN min(post.gone_at, excluded.gone_at) ELSE excluded.gone_at END
		WHERE post.state NOT IN ('removed', 'deleted', 'unavailable') AND post.checked_at <= excluded.checked_at`,
		id, g.State, g.Reason, seconds(g.At), held, seconds(g.Since))
	if g.Erased || g.Withheld { // of one that state.db has as held back already, what was decided since
		t.exec(ctx, "UPDATE post SET withheld = ?2 WHERE id = ?1 AND withheld > 0 AND checked_at <= ?3", id, held, seconds(g.At))
	}
	t.dropValues(ctx, "id = ? AND "+goneSQL+" AND NOT EXISTS (SELECT 1 FROM post p WHERE p.id = entry.id AND p.withheld)", id)
}

// WasLive notes that a post was live at a time, for only images of live posts are stored, where state.db does not know
// that it ever was: else its removal would be that of a post that was never here, which erases nothing and counts for
// no mass removal. Nobody asked about it, so the log has no verdict of it. What is held back stays so.
func (w *Workspace) WasLive(ctx context.Context, id manifest.PostID, at time.Time) error {
	return w.change(ctx, "note that "+string(id)+" was live", func(ctx context.Context, t *tx) {
		t.exec(ctx, `INSERT INTO post (id, state, reason, checked_at, live_at, absent_at, withheld)
			VALUES (?1, ?2, '', ?3, ?3, 0, 0)
			ON CONFLICT (id) DO UPDATE SET live_at = excluded.live_at,
			  state = CASE WHEN post.withheld THEN post.state ELSE excluded.state END,
			  reason = CASE WHEN post.withheld THEN post.reason ELSE excluded.reason END,
			  checked_at = CASE WHEN post.withheld THEN post.checked_at ELSE excluded.checked_at END
			WHERE post.live_at = 0`, id, manifest.StateLive, seconds(at))
	})
}

// takeBack takes over that Reddit showed a post since state.db had it as held back, or as away without a tombstone.
// Which of its images it showed, the log does not say: those that are held back wait for the answer of a job, unless
// state.db knows that one.
func (t *tx) takeBack(ctx context.Context, id manifest.PostID, b auditlog.BackPost) {
	t.exec(ctx, `UPDATE trouble SET beside = ?2 WHERE id = ?1 AND beside = ?3 AND at <= ?4
		AND EXISTS (SELECT 1 FROM post WHERE id = ?1 AND checked_at < ?4)`, id, Waiting, Unconfirmed, seconds(b.At))
	t.exec(ctx, `UPDATE post SET state = ?2, reason = ?3, checked_at = ?4, absent_at = 0, withheld = 0, gone_at = 0
		WHERE id = ?1 AND checked_at <= ?4 AND (withheld > 0
		  OR state = ?5 AND id NOT IN (SELECT id FROM tombstone WHERE NOT readmitted))`,
		id, b.State, b.Reason, seconds(b.At), manifest.StateUnavailable)
}

// A sinceNote says since when posts are gone by the log that state.db may not know as such, and since when images are
// held back of posts.
type sinceNote struct{ Posts, Images map[manifest.PostID]time.Time }

// earlier is the earlier of two times, of which first may be zero for none; zero if now is.
func earlier(now, first time.Time) time.Time {
	if !now.IsZero() && !first.IsZero() && first.Before(now) {
		return first
	}
	return now
}

// sinceByLog returns the note since. It is large where a large state.db was restored, and asked for with every batch of
// posts: it is read once.
func (w *Workspace) sinceByLog(ctx context.Context, t *tx) sinceNote {
	if w.since == nil {
		since, err := readNote[sinceNote](ctx, t, metaSince)
		if err != nil {
			t.fail(err)
			return sinceNote{}
		}
		w.since = &since
	}
	return *w.since
}

// AllAsked notes that every post was asked about: what is held back has its time in state.db.
func (w *Workspace) AllAsked(ctx context.Context) error {
	last, err := w.Meta(ctx, metaSince)
	if err != nil || last == "" {
		return err
	}
	return w.change(ctx, "every post was asked about", func(ctx context.Context, t *tx) {
		t.setMeta(ctx, metaSince, "")
		w.since = nil
	})
}

// addLeft has images that were removed from posts that stay be removed, and notes those of which there is no entry.
func (t *tx) addLeft(ctx context.Context, more leftImages) {
	left, err := readNote[leftImages](ctx, t, metaLeft)
	t.fail(err)
	if t.err != nil || len(left)+len(more) == 0 {
		return
	}
	rest := leftImages{}
	maps.Copy(rest, more)
	maps.Copy(rest, left) // which has the source
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		k, err := manifest.ParseKey(name)
		t.fail(err)
		entries := 0
		t.get(ctx, "SELECT count(*) FROM entry WHERE id = ? AND image = ?", []any{k.ID, k.Image}, &entries)
		if t.err != nil || entries == 0 {
			continue
		}
		// What is on record already keeps its detail.
		t.exec(ctx, `INSERT OR REPLACE INTO trouble (id, image, source, outcome, reason, detail, beside, at)
			SELECT ?1, ?2, ?6, ?3, ?4, '',
			  CASE WHEN EXISTS (SELECT 1 FROM image WHERE id = ?1 AND image = ?2) THEN ?5 ELSE '' END, 0
			WHERE NOT EXISTS (SELECT 1 FROM trouble WHERE id = ?1 AND image = ?2 AND reason = ?4 AND beside IN ('', ?5))`,
			k.ID, k.Image, manifest.Gone, rest[name].Reason, Going, rest[name].Source)
		delete(rest, name)
	}
	t.setMeta(ctx, metaLeft, jsonColumn{rest})
}

// keepLeft notes the images that were removed from their posts, of entries that the manifest has no more.
func (t *tx) keepLeft(ctx context.Context) {
	type row struct {
		manifest.Key
		leftImage
	}
	rows, err := list(ctx, t, func(r *row) []any { return []any{&r.ID, &r.Image, &r.Reason, &r.Source} },
		`SELECT id, image, reason, source FROM trouble JOIN entry USING (id, image)
			WHERE ordinal < 0 AND beside IN ('', ?) AND `+leftSQL, Going)
	t.fail(err)
	left, err := readNote[leftImages](ctx, t, metaLeft)
	t.fail(err)
	if t.err != nil || len(rows) == 0 {
		return
	}
	all := leftImages{}
	maps.Copy(all, left)
	for _, r := range rows {
		all[r.Key.String()] = r.leftImage
	}
	t.setMeta(ctx, metaLeft, jsonColumn{all})
}
