package workspace

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/policy"
)

// A Post is what is known of a post. Times are UTC, to the second; zero means never.
type Post struct {
	ID        manifest.PostID
	State     manifest.PostState // empty when never asked
	Reason    manifest.Reason
	CheckedAt time.Time // last well-formed answer
	LiveAt    time.Time // last seen live
	AbsentAt  time.Time // first unconfirmed absence
	Withheld  bool      // its removal waits: do not export it, do not erase it
	// GoneAt is when the post was first found gone or absent while content was stored here, or a copy could have it as its
	// removal waits: that must go in time. SetPosts sets it.
	GoneAt    time.Time
	Unseen    bool   // an image was stored since the last answer: StoreImage sets it, a live answer clears it
	Subreddit string // where it was made, as Reddit said while it was there; Erase forgets it
	Told      string // the subreddit that the manifest names; not stored by SetPosts
	// Unconfirmed says of what is Withheld that it was one of too many at once: it waits until it is confirmed or live
	// again. Without it the end of a sweep decides.
	Unconfirmed bool
}

// A Tombstone is a post that must not come back, with what only this workspace knows of it.
type Tombstone struct {
	manifest.Tombstone
	Reason     manifest.Reason // why it went; empty for a tombstone of the release
	Readmitted bool            // it came back and the policy lets it: the tombstone does not hold for now
	// Pictures are digests that an edition of the release names of the post which no run has loaded; not stored.
	Pictures []Digests
}

// An Image describes a stored image file.
type Image struct {
	Source         string // sha256 hex of the URL it came from; the URL itself is never stored
	Item           bool   // of a gallery, so that the log has Source; not filled by Records
	Limits         string // the caller's name for the limits it was held against
	OriginalSHA256 string // sha256 hex of the bytes as downloaded
	OriginalBytes  int64  // their length
	SHA256         string // sha256 hex of the stored bytes, which picture.Strip made
	PixelsSHA256   string // picture.PixelDigest
	Format         string // jpeg, png, gif or webp
	Width, Height  int    // pixels
	Bytes          int64  // length of the stored file
	PHash          uint64
	Flat           bool
	HashKind       string // fingerprint of what made PHash
	Redirected     bool   // the host led somewhere else for it
}

// A Trouble says why an entry has no image, what is the matter with the one that it has, or why its OCR failed.
type Trouble struct {
	Source  string // the caller's name for all that decided it, such as the place and the policy
	Outcome manifest.Outcome
	Reason  manifest.Reason
	Detail  string
	Beside  Beside    `json:",omitzero"` // empty where there is no image
	At      time.Time `json:",omitzero"` // when it was found, of a removal
}

// Removed reports whether an image that trouble is about is no longer to be anywhere, if the trouble is a removal.
func (t Trouble) Removed() bool { return t.Beside == "" || t.Beside == Going }

// Withheld reports whether the removal of the image waits.
func (t Trouble) Withheld() bool { return t.Beside == Waiting || t.Beside == Unconfirmed }

// A Beside says what trouble means for an image that is stored.
type Beside string

// What trouble means for an image that is stored.
const (
	Odd     Beside = "odd"      // image and row stay: what Reddit or a host says now is no reason to lose them
	Out     Beside = "out"      // the image stays, and is no row: a policy or the manifest refuses it now
	Waiting Beside = "withheld" // the image goes when it is known how many do: until then it is no row
	Going   Beside = "going"    // the image was removed, and DropImage is not done with it
	// Unconfirmed is Waiting for a confirmation: it was one of too many at once.
	Unconfirmed Beside = "unconfirmed"
)

// A Reading is the result of OCR on an image.
type Reading struct {
	Fingerprint string   // of engine, model and parameters
	ImageSHA256 string   // Image.SHA256 of the image that was read
	Failed      *Trouble // why OCR failed, nil when it did not
	Text        string
	Confidence  float64
	Masked      int         // names that were masked in Text and Words
	Words       []word.Word //  only when asked for with Select.WithWords
	Wide        *[4]uint64  // 256-bit hash of an image without text
}

// A Record is everything known of one entry. Nil parts are not known.
type Record struct {
	manifest.Entry
	Post    Post // State is empty when never asked
	Image   *Image
	Trouble *Trouble
	Reading *Reading
	Result  *manifest.Result // of the last completed run
	Earlier Earlier          // only when asked for with Select.WithEarlier
}

// Select narrows Records.
type Select struct {
	WithWords   bool              // fill Reading.Words
	Bare        bool              // leave out labels, values that pass through, and texts, which take most of the time
	WithEarlier bool              // fill Earlier
	IDs         []manifest.PostID // only entries of these posts; nil for all
	Split       string            // only entries of this split; empty for all
	Digests     []string          // only entries whose image has one of these, of whatever kind; nil for all
	Troubles    []manifest.Reason // only entries with trouble for one of these reasons; nil for all
}

const recordsSQL = `
SELECT e.ordinal, e.id, e.image, e.line, e.split, CASE WHEN NOT ?1 THEN e.labels END, e.sha256, e.phash, e.subreddit, e.sha256_stripped, e.sha256_pixels,
  ` + postNames + `,
  i.source, i.original_sha256, i.sha256, i.format, i.width, i.height, i.bytes, i.phash, i.flat, i.hash_kind, i.original_bytes, i.limits, i.pixels_sha256, i.redirected,
  t.source, t.outcome, t.reason, t.detail, t.beside, t.at,
  r.fingerprint, r.image_sha256, r.failed, CASE WHEN NOT ?1 THEN r.text END, r.confidence, CASE WHEN ?2 THEN r.words END, CASE WHEN NOT ?1 THEN r.wide END, r.masked,
  o.outcome, o.reason, o.detail, o.duplicate_id, o.duplicate_image,
  q.text, s.outcome, s.reason
FROM entry e
LEFT JOIN post p ON p.id = e.id
LEFT JOIN image i ON i.id = e.id AND i.image = e.image
LEFT JOIN trouble t ON t.id = e.id AND t.image = e.image
LEFT JOIN reading r ON r.id = e.id AND r.image = e.image
LEFT JOIN result o ON o.id = e.id AND o.image = e.image
LEFT JOIN earlier_reading q ON ?3 AND q.id = e.id AND q.image = e.image
LEFT JOIN earlier_result s ON ?3 AND s.id = e.id AND s.image = e.image
WHERE TRUE`

// Records yields the entries in manifest order with all that is known of them. The loop may write, but a page of
// entries is read at once: a change to one of the same page is not seen.
func (w *Workspace) Records(ctx context.Context, o Select) iter.Seq2[Record, error] {
	query, args := recordsSQL, []any{o.Bare, o.WithWords, o.WithEarlier}
	// Only what is asked for gets into the query, so that an index can serve it.
	narrow := func(condition string, by ...any) {
		query, args = query+" AND "+condition, append(args, by...)
	}
	const list = "(SELECT value FROM json_each(?))" // looked up in an index, each value
	if o.IDs != nil {
		narrow("e.id IN "+list, jsonColumn{o.IDs})
	}
	if o.Split != "" {
		narrow("e.split = ?", o.Split)
	}
	if o.Digests != nil {
		d := jsonColumn{o.Digests}
		narrow("(i.original_sha256 IN "+list+" OR i.sha256 IN "+list+" OR i.pixels_sha256 IN "+list+")", d, d, d)
	}
	if o.Troubles != nil {
		narrow("t.reason IN "+list, jsonColumn{o.Troubles})
	}
	return pages(ctx, w, "read entries", query, args, scanRecord)
}

// fill sets the parts that are there: whose first column that is never empty is not null.
func (r *Record) fill(img *Image, trouble *Trouble, reading *Reading, result *manifest.Result) {
	if img.SHA256 != "" {
		r.Image = img
	}
	if trouble.Outcome != "" {
		r.Trouble = trouble
	}
	if result.Outcome != "" {
		result.Key, result.Split, r.Result = r.Key, r.Split, result
	}
	if reading.ImageSHA256 != "" {
		r.Reading = reading
	}
}

// Posts yields the distinct posts of the manifest in order of their first entry, paged as Records is.
func (w *Workspace) Posts(ctx context.Context) iter.Seq2[Post, error] {
	return pages(ctx, w, "read posts", postsSQL, nil, scanPost)
}

// DuePosts yields those of Posts that are live, but were last seen so not after since, after now, or before an image
// was stored.
func (w *Workspace) DuePosts(ctx context.Context, since, now time.Time) iter.Seq2[Post, error] {
	return pages(ctx, w, "read posts", postsSQL+" AND p.state = 'live' AND (p.unseen OR p.live_at <= ? OR p.live_at > ?)",
		[]any{since.Unix(), now.Unix()}, scanPost)
}

// PostsNotLive yields those of Posts that an answer says are not live: few, where Posts reads them all.
func (w *Workspace) PostsNotLive(ctx context.Context) iter.Seq2[Post, error] {
	return pages(ctx, w, "read posts", postsSQL+" AND p.state <> 'live'", nil, scanPost)
}

// PostsOfNoEntry returns the posts on record that the manifest has no entry of and that are not simply live or are among
// these, in order of their ids.
func (w *Workspace) PostsOfNoEntry(ctx context.Context, these ...manifest.PostID) (posts []Post, err error) {
	defer wrap(&err, "read posts")
	return list(ctx, w.db, func(p *Post) []any { return append([]any{&p.ID}, p.targets()...) },
		"SELECT p.id, "+postNames+" FROM post p WHERE (p.state <> 'live' OR p.absent_at > 0 "+
			"OR p.id IN (SELECT value FROM json_each(?))) AND p.id NOT IN (SELECT id FROM entry) ORDER BY p.id",
		jsonColumn{these})
}

const postsSQL = `
SELECT e.ordinal, e.id, e.subreddit, ` + postNames + `
FROM entry e LEFT JOIN post p ON p.id = e.id
WHERE NOT EXISTS (SELECT 1 FROM entry f WHERE f.id = e.id AND f.ordinal < e.ordinal)`

// scanPost reads a row of postsSQL.
func scanPost(rows *sql.Rows, ordinal *int) (p Post, err error) {
	err = rows.Scan(append([]any{ordinal, &p.ID, &p.Told}, p.targets()...)...)
	return p, err
}

// pages yields the rows of a query over entries e, some at a time: no query is open while it yields.
func pages[T any](ctx context.Context, w *Workspace, what, query string, args []any,
	scan func(rows *sql.Rows, ordinal *int) (T, error)) iter.Seq2[T, error] {
	query += " AND e.ordinal > ? ORDER BY e.ordinal LIMIT ?"
	return func(yield func(T, error) bool) {
		for last := -1; ; {
			items, err := scanned(ctx, w.compiled, func(rows *sql.Rows) (T, error) { return scan(rows, &last) },
				query, append(slices.Clone(args), last, w.limit)...)
			if err != nil {
				var zero T
				yield(zero, fmt.Errorf("%s: %w", what, w.explain(ctx, err)))
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if len(items) < w.limit {
				return
			}
		}
	}
}

// An EntryTrouble is the trouble of an entry; nil for none.
type EntryTrouble struct {
	manifest.Key
	*Trouble
}

// SetPosts stores posts, and what the same answers say of images as SetTrouble and ClearTrouble do, in one transaction.
// A change of anything of a post but Withheld goes into the log as a verdict.
func (w *Workspace) SetPosts(ctx context.Context, posts []Post, images ...EntryTrouble) error {
	return w.change(ctx, "store post states", func(ctx context.Context, t *tx) {
		var said []auditlog.Post
		since := w.sinceByLog(ctx, t)
		for _, p := range posts {
			if !validID(p.ID) {
				t.fail(fmt.Errorf("%q is not a post id", string(p.ID)))
			}
			gone := p.AbsentAt // what may not come back goes from the first sign on
			if p.State.Gone() && (gone.IsZero() || p.CheckedAt.Before(gone)) {
				gone = p.CheckedAt
			}
			gone = earlier(earlier(gone, w.now()), since.Posts[p.ID]) // a clock that was ahead gives nobody more time
			// Before the row changes: the log gets only what was not stored yet.
			said = append(said, t.newVerdict(ctx, p)...)
			t.exec(ctx, `
				INSERT INTO post (id, state, reason, checked_at, live_at, absent_at, withheld, unseen, subreddit, gone_at)
				VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
				  CASE WHEN ?7 > 0 OR EXISTS (SELECT 1 FROM image WHERE id = ?1) THEN ?10 ELSE 0 END)
				ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, checked_at = excluded.checked_at,
				  live_at = excluded.live_at, absent_at = excluded.absent_at, withheld = excluded.withheld,
				  unseen = excluded.unseen, subreddit = excluded.subreddit,
				  gone_at = CASE WHEN excluded.gone_at > 0 AND post.gone_at > 0 THEN min(post.gone_at, excluded.gone_at)
				    ELSE excluded.gone_at END`,
				p.ID, p.State, p.Reason, seconds(p.CheckedAt), seconds(p.LiveAt), seconds(p.AbsentAt), withheld{&p}, p.Unseen,
				p.Subreddit, seconds(gone))
			if p.State.Gone() && !p.Withheld {
				t.dropValues(ctx, "id = ? AND "+goneSQL, p.ID)
			}
		}
		for _, e := range images {
			if e.Trouble == nil {
				t.clearTrouble(ctx, e.Key)
			} else {
				w.putTrouble(ctx, t, e.Key, *e.Trouble)
			}
		}
		w.recordPosts(ctx, t, auditlog.Event{Kind: auditlog.Verdicts}, said)
	})
}

// newVerdict returns the post for the log if p differs from the stored row, else none.
func (t *tx) newVerdict(ctx context.Context, p Post) []auditlog.Post {
	var q Post
	t.get(ctx, "SELECT "+postNames+" FROM post p WHERE id = ?", []any{p.ID}, q.targets()...)
	absent := seconds(p.AbsentAt) != seconds(q.AbsentAt)
	switch {
	// An absence that is not confirmed yet is unknown to an auditor.
	case absent && !p.AbsentAt.IsZero() && p.State != manifest.StateUnavailable:
		return []auditlog.Post{{ID: p.ID, State: manifest.StateUnknown, Reason: "absent_once"}}
	case absent || p.State != q.State || p.Reason != q.Reason || p.Unseen != q.Unseen ||
		seconds(p.CheckedAt) != seconds(q.CheckedAt) || seconds(p.LiveAt) != seconds(q.LiveAt):
		return []auditlog.Post{{ID: p.ID, State: auditlog.Word(p.State), Reason: auditlog.Word(p.Reason)}}
	}
	return nil
}

// Tombstones returns all tombstones, oldest first.
func (w *Workspace) Tombstones(ctx context.Context) (ts []Tombstone, err error) {
	defer wrap(&err, "read tombstones")
	return list(ctx, w.db, func(t *Tombstone) []any {
		return []any{&t.ID, &t.State, timestamp{&t.Time}, &t.Reason, &t.Readmitted}
	}, "SELECT id, state, time, reason, readmitted FROM tombstone ORDER BY time, id")
}

// AddTombstones stores tombstones that hold, in one transaction, and records changes in the log. The first tombstone of
// a post wins, but for StateDeleted (the author's own wish), a readmitted post that is gone again, and a new reason,
// also an empty one; but policy.Outweighs comes before all that. One that says only that the post was unavailable gives
// way to every other, and changes the reason of none; that of a crosspost which its author deleted gives way to another
// removal than by an author. What is withheld of the post waits no longer: a tombstone needs no confirmation. Only
// LiftTombstones takes one back.
func (w *Workspace) AddTombstones(ctx context.Context, ts []Tombstone) error {
	return w.change(ctx, "store tombstones", func(ctx context.Context, t *tx) { w.addTombstones(ctx, t, ts) })
}

func (w *Workspace) addTombstones(ctx context.Context, t *tx, ts []Tombstone) {
	fresh := map[time.Time][]auditlog.Post{}
	for _, s := range ts {
		if !validID(s.ID) || !s.State.Gone() {
			t.fail(fmt.Errorf("%q with state %q is not a tombstone", string(s.ID), string(s.State)))
		}
		said := s.Reason
		var was Tombstone
		t.get(ctx, "SELECT state, reason, readmitted FROM tombstone WHERE id = ?", []any{s.ID},
			&was.State, &was.Reason, &was.Readmitted)
		if !was.Readmitted && policy.Outweighs(was.State, was.Reason, s.State, s.Reason) {
			s.State, s.Reason = was.State, was.Reason
		}
		stored := t.exec(ctx, `
			INSERT INTO tombstone (id, state, time, reason) VALUES (?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET state = excluded.state, time = excluded.time, reason = excluded.reason, readmitted = 0
			WHERE excluded.state = 'deleted' AND tombstone.state <> 'deleted' OR tombstone.readmitted
			OR excluded.state = 'removed' AND tombstone.state = 'unavailable'`,
			s.ID, s.State, seconds(s.Time), s.Reason)
		// A post must not be readmitted for a reason that no longer holds.
		changed := t.exec(ctx,
			`UPDATE tombstone SET reason = ?1 WHERE id = ?2 AND reason <> ?1
			AND (state = ?3 OR ?3 <> 'unavailable' AND (reason = ?4 OR ?1 = ''))`,
			s.Reason, s.ID, s.State, policy.CrosspostAuthor)
		// The tombstone takes the time of the last one with a reason: a statement written before that does not lift it.
		younger := t.exec(ctx, "UPDATE tombstone SET time = ?1 WHERE id = ?2 AND time < ?1 AND ?3 <> ''",
			seconds(s.Time), s.ID, said)
		t.exec(ctx, endHold, s.ID)
		t.dropValues(ctx, "id = ? AND "+goneSQL, s.ID)
		if stored+changed+younger > 0 {
			// The record has what holds now: who reads the log goes by the last one.
			is := Tombstone{Tombstone: manifest.Tombstone{ID: s.ID}}
			t.get(ctx, "SELECT state, time, reason FROM tombstone WHERE id = ?", []any{s.ID},
				&is.State, timestamp{&is.Time}, &is.Reason)
			fresh[is.Time] = append(fresh[is.Time], auditlog.Post{ID: is.ID, State: is.State,
				Reason: auditlog.Word(is.Reason)})
		}
	}
	for _, since := range slices.SortedFunc(maps.Keys(fresh), time.Time.Compare) {
		w.recordPosts(ctx, t, auditlog.Event{Kind: auditlog.Buried, Since: since}, fresh[since])
	}
}

// endHold ends the wait of a post for a confirmation; its entries need none, as they go with it.
const endHold = `UPDATE post SET withheld = 0,
	gone_at = CASE WHEN EXISTS (SELECT 1 FROM image WHERE id = ?1) THEN gone_at ELSE 0 END
	WHERE id = ?1 AND withheld > 0`

// SetReadmitted suspends the tombstones of posts that came back and that the policy allows, or ends the suspension.
func (w *Workspace) SetReadmitted(ctx context.Context, readmitted bool, ids ...manifest.PostID) error {
	event := auditlog.Event{Kind: auditlog.Readmitted}
	statements := []string{"UPDATE tombstone SET readmitted = ?2 WHERE id = ?1 AND readmitted <> ?2"}
	if !readmitted {
		event.Verdict = auditlog.Revoked
		statements = append(statements, endHold)
	}
	return w.changeTombstones(ctx, "readmit posts", event, statements, ids, readmitted)
}

// LiftTombstones removes the tombstones of posts that a signed statement names; digest is its sha256, in hex.
func (w *Workspace) LiftTombstones(ctx context.Context, digest string, ids ...manifest.PostID) error {
	return w.changeTombstones(ctx, "lift tombstones", auditlog.Event{Kind: auditlog.Lifted, SHA256: digest},
		[]string{"DELETE FROM tombstone WHERE id = ?1", // what had left the post before is not back with it
			`UPDATE former_image SET erased = 0 WHERE id = ?1
				AND image NOT IN (SELECT image FROM trouble WHERE id = ?1 AND ` + leftSQL + ")"}, ids)
}

// changeTombstones runs statements for each post, and records in the log the posts that the first one changed.
func (w *Workspace) changeTombstones(ctx context.Context, what string, event auditlog.Event, statements []string,
	ids []manifest.PostID, args ...any) error {
	return w.change(ctx, what, func(ctx context.Context, t *tx) {
		var posts []auditlog.Post
		for _, id := range ids { // one without a tombstone is left alone
			if t.exec(ctx, statements[0], append([]any{id}, args...)...) == 0 {
				continue
			}
			posts = append(posts, auditlog.Post{ID: id})
			for _, more := range statements[1:] {
				t.exec(ctx, more, id)
			}
		}
		w.recordPosts(ctx, t, event, posts)
	})
}

// A SharedImage is one that came from many places.
type SharedImage struct {
	Places int // of live posts; one that is not known, as after state.db was lost, is another one for each entry
	Known  int // of these, those that are known
}

// SharedImages returns the digests of the images that came, byte for byte, from at least that many places: such an
// image may be a host's picture for "not here".
func (w *Workspace) SharedImages(ctx context.Context, places int) (_ map[string]SharedImage, err error) {
	defer wrap(&err, "read shared images")
	type image struct {
		digest string
		SharedImage
	}
	// Few are left to be joined and told apart. SQLite sorts the others in memory: half as much, if it is a part of
	// each digest, and if a limit keeps the rest of it out.
	found, err := list(ctx, w.db, func(i *image) []any { return []any{&i.digest, &i.Places, &i.Known} }, `
		SELECT i.original_sha256,
		  count(DISTINCT CASE i.source WHEN '' THEN i.id || '/' || i.image ELSE i.source END) AS places,
		  count(DISTINCT nullif(i.source, ''))
		FROM image i JOIN post p ON p.id = i.id
		WHERE substr(i.original_sha256, 1, 12) IN (
		  SELECT part FROM (SELECT substr(original_sha256, 1, 12) AS part FROM image LIMIT -1)
		  GROUP BY part HAVING count(*) >= ?1)
		  AND p.state = 'live' AND p.absent_at = 0 AND p.id NOT IN (SELECT id FROM tombstone WHERE NOT readmitted)
		GROUP BY i.original_sha256 HAVING places >= ?1`, places)
	shared := make(map[string]SharedImage, len(found))
	for _, i := range found {
		shared[i.digest] = i.SharedImage
	}
	return shared, err
}

// ImagesThatCame returns the entries whose stored image came as a file with one of these digests, with the digests of
// the manifest, the image, the text where it was read, and the outcome where there is one.
func (w *Workspace) ImagesThatCame(ctx context.Context, digests []string) (_ []Record, err error) {
	defer wrap(&err, "read images")
	type came struct {
		Record
		read    bool
		text    string
		outcome manifest.Outcome
	}
	found, err := list(ctx, w.db, func(r *came) []any {
		r.Image = &Image{}
		i := r.Image
		return []any{&r.ID, &r.Key.Image, &r.SHA256, &r.StrippedSHA256, &r.PixelsSHA256, &i.OriginalSHA256, &i.SHA256,
			&i.PixelsSHA256, &i.Source, &i.Width, &i.Height, &i.Redirected, &r.read, &r.text, &r.outcome}
	}, `SELECT e.id, e.image, e.sha256, e.sha256_stripped, e.sha256_pixels, i.original_sha256, i.sha256, i.pixels_sha256,
		i.source, i.width, i.height, i.redirected, r.text IS NOT NULL AND r.failed IS NULL, coalesce(r.text, ''),
		coalesce(res.outcome, '')
		FROM image i JOIN entry e USING (id, image) LEFT JOIN reading r USING (id, image)
		LEFT JOIN result res USING (id, image)
		WHERE i.original_sha256 IN (SELECT value FROM json_each(?))`, jsonColumn{digests})
	records := make([]Record, len(found))
	for n, r := range found {
		records[n] = r.Record
		if r.read {
			records[n].Reading = &Reading{Text: r.text}
		}
		if r.outcome != "" {
			records[n].Result = &manifest.Result{Key: r.Key, Outcome: r.outcome}
		}
	}
	return records, err
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// A nullable scans a column into p, null as the zero value.
type nullable[T any] struct{ p *T }

func null[T any](p *T) nullable[T] { return nullable[T]{p} }

func (n nullable[T]) Scan(value any) error {
	var v sql.Null[T]
	err := v.Scan(value)
	*n.p = v.V
	return err
}

// A timestamp scans unix seconds into a time.
type timestamp struct{ *time.Time }

func (t timestamp) Scan(value any) error {
	var s int64
	err := null(&s).Scan(value)
	if s != 0 {
		*t.Time = time.Unix(s, 0).UTC()
	}
	return err
}

// postNames are the columns of a post, in the order of its targets; all null when the post was never asked about.
const postNames = "p.state, p.reason, p.checked_at, p.live_at, p.absent_at, p.withheld, p.unseen, p.subreddit, p.gone_at"

func (p *Post) targets() []any {
	return []any{null(&p.State), null(&p.Reason), timestamp{&p.CheckedAt}, timestamp{&p.LiveAt}, timestamp{&p.AbsentAt},
		withheld{p}, null(&p.Unseen), null(&p.Subreddit), timestamp{&p.GoneAt}}
}

// withheld is the column of a post that has Withheld and Unconfirmed: 0, 1 with the one and 2 with both.
type withheld struct{ *Post }

// Scan leaves the post alone where there is none.
func (w withheld) Scan(value any) error {
	var n int
	err := null(&n).Scan(value)
	w.Withheld, w.Unconfirmed = n > 0, n > 1
	return err
}

// Value is what is stored.
func (w withheld) Value() (driver.Value, error) {
	switch {
	case w.Withheld && w.Unconfirmed:
		return int64(2), nil
	case w.Withheld:
		return int64(1), nil
	}
	return int64(0), nil
}

// A jsonColumn is a value that is stored as compact JSON, given as a pointer. Null stands for a nil one.
type jsonColumn struct{ value any }

// Scan leaves the value alone where there is none.
func (c jsonColumn) Scan(value any) error {
	var text string
	if err := null(&text).Scan(value); err != nil || text == "" {
		return err
	}
	return json.Unmarshal([]byte(text), c.value)
}

// Value returns the text, or null.
func (c jsonColumn) Value() (driver.Value, error) {
	text, err := json.Marshal(c.value)
	if err != nil || string(text) == "null" {
		return nil, err
	}
	return string(text), nil
}

// scanRecord reads a row of recordsSQL.
func scanRecord(rows *sql.Rows, ordinal *int) (Record, error) {
	var (
		r       Record
		img     Image
		trouble Trouble
		reading Reading
		result  manifest.Result
		wide    string
		phash   int64
		earlier sql.Null[string]
		given   cells
	)
	targets := []any{&r.Ordinal, &r.ID, &r.Key.Image, &r.Line, &r.Split, jsonColumn{&given}, &r.SHA256, &r.PHash,
		&r.Subreddit, &r.StrippedSHA256, &r.PixelsSHA256}
	targets = append(targets, r.Post.targets()...)
	targets = append(targets, null(&img.Source), null(&img.OriginalSHA256), null(&img.SHA256), null(&img.Format),
		null(&img.Width), null(&img.Height), null(&img.Bytes), null(&phash), null(&img.Flat), null(&img.HashKind),
		null(&img.OriginalBytes), null(&img.Limits), null(&img.PixelsSHA256), null(&img.Redirected),
		null(&trouble.Source), null(&trouble.Outcome), null(&trouble.Reason), null(&trouble.Detail), null(&trouble.Beside),
		timestamp{&trouble.At},
		null(&reading.Fingerprint), null(&reading.ImageSHA256), jsonColumn{&reading.Failed}, null(&reading.Text),
		null(&reading.Confidence), jsonColumn{&reading.Words}, null(&wide), null(&reading.Masked),
		null(&result.Outcome), null(&result.Reason), null(&result.Detail), null(&result.DuplicateOf.ID),
		null(&result.DuplicateOf.Image),
		&earlier, null(&r.Earlier.Outcome), null(&r.Earlier.Reason))
	if err := rows.Scan(targets...); err != nil {
		return r, err
	}
	*ordinal = r.Ordinal
	r.Labels, r.Values = given.Labels, given.Values
	r.Post.ID, r.Post.Told = r.ID, r.Subreddit
	r.Earlier.Read, r.Earlier.Text = earlier.Valid, earlier.V
	img.PHash = uint64(phash)
	r.fill(&img, &trouble, &reading, &result)
	if wide != "" {
		reading.Wide = new([4]uint64)
		h := reading.Wide
		if _, err := fmt.Sscanf(wide, wideFormat, &h[0], &h[1], &h[2], &h[3]); err != nil {
			return r, fmt.Errorf("entry %s: its 256-bit hash: %w", r.Key, err)
		}
	}
	return r, nil
}

const wideFormat = "%016x%016x%016x%016x"

func wideText(h *[4]uint64) sql.Null[string] {
	if h == nil {
		return sql.Null[string]{}
	}
	return sql.Null[string]{V: fmt.Sprintf(wideFormat, h[0], h[1], h[2], h[3]), Valid: true}
}

// A Copy is a copy of the dataset outside the workspace that was registered.
type Copy struct {
	Path   string    `json:"-"` // absolute; what names the copy
	Note   string    `json:"-"` // who has it
	Format string    `json:"-"`
	Made   time.Time `json:"-"` // UTC, to the second
	Files  []File    `json:"-"` // of the copy, names relative to Path
	Open   bool      `json:"-"` // it has rows that must go and could not be removed here: an open obligation
	Told   string    `json:"-"` // what the operator said of it

	// What follows is stored together, as JSON.
	Rows []string          `json:"rows"`           // ids of its rows
	Next map[string]string `json:"next,omitempty"` // digests by name of files to be replaced: a killed purge finds either
	// Taken is how many rows were taken out of it: somebody can put them back.
	Taken int `json:"taken,omitempty"`
	// Was is what a closed copy had: somebody can put it back.
	Was *ClosedCopy `json:"was,omitempty"`
	// Ended are the rows that it had when the workspace was ended: it must lose them, also where a run began that anew.
	Ended []string `json:"ended_rows,omitempty"`
	// Former are pictures that it holds in rows of entries which have another one by now.
	Former map[string]Former `json:"former,omitempty"`
	// Back is the path that it was moved to before it was found again at this one. The record there stays until the
	// operator says what became of it.
	Back string `json:"back,omitempty"`
}

// A Former is a picture that an entry had when a copy was made, and has no more.
type Former struct {
	Digests
	// Left is why it had been removed from its post, which stays; empty if it had not.
	Left manifest.Reason `json:",omitempty"`
}

// A ClosedCopy is what a copy had when it was closed.
type ClosedCopy struct {
	Files []File   `json:"files"`
	Rows  []string `json:"rows"`
	To    string   `json:"to,omitempty"` // the path that it was moved to
}

// Closed reports whether the copy was closed, and is no other one since.
func (c Copy) Closed() bool { return len(c.Files) == 0 && !c.Open && c.Told != "" }

// Close forgets what the copy has, but for Was. told says why.
func (c *Copy) Close(told string) {
	if len(c.Files) > 0 {
		c.Was = &ClosedCopy{Files: c.Files, Rows: c.Rows}
	}
	c.Files, c.Open, c.Rows, c.Next, c.Back, c.Told = nil, false, nil, nil, "", told
}

// SetCopy registers a copy, or replaces its record, and stores events in the same transaction.
func (w *Workspace) SetCopy(ctx context.Context, c Copy, events ...auditlog.Event) error {
	return w.change(ctx, "register the copy "+c.Path, func(ctx context.Context, t *tx) {
		t.putCopy(ctx, c)
		w.record(ctx, t, events...)
	})
}

// MoveCopy stores the records of a copy at its old place and at its new one, and events, in one transaction: a kill
// leaves it registered at one of the two.
func (w *Workspace) MoveCopy(ctx context.Context, from, to Copy, events ...auditlog.Event) error {
	return w.change(ctx, "register the copy "+to.Path, func(ctx context.Context, t *tx) {
		t.putCopy(ctx, to)
		t.putCopy(ctx, from)
		w.record(ctx, t, events...)
	})
}

func (t *tx) putCopy(ctx context.Context, c Copy) {
	t.exec(ctx, `INSERT OR REPLACE INTO copy (path, note, format, made_at, files, open, told, rows)
		VALUES (?, ?, ?, ?, coalesce(?, 'null'), ?, ?, ?)`,
		c.Path, c.Note, c.Format, seconds(c.Made), jsonColumn{c.Files}, c.Open, c.Told, jsonColumn{c})
}

// Copies returns the registered copies by path.
func (w *Workspace) Copies(ctx context.Context) (copies []Copy, err error) {
	defer wrap(&err, "read the registered copies")
	return listCopies(ctx, w.db, "")
}

// listCopies returns the copies that a clause selects, by path.
func listCopies(ctx context.Context, q querier, clause string, args ...any) ([]Copy, error) {
	return list(ctx, q, func(c *Copy) []any {
		return []any{&c.Path, &c.Note, &c.Format, timestamp{&c.Made}, jsonColumn{&c.Files}, &c.Open, &c.Told, jsonColumn{c}}
	}, "SELECT path, note, format, made_at, files, open, told, rows FROM copy "+clause+" ORDER BY path", args...)
}

// noteFormer notes which picture the copies hold that have a row of an entry, before another one becomes the entry's: a
// copy can owe the row for it, whatever the entry shows then. The same picture takes the note back.
func (t *tx) noteFormer(ctx context.Context, k manifest.Key, next Image) {
	var was Former // what is stored, or what went last: no copy was made with another one since
	t.get(ctx, `SELECT original_sha256, sha256, pixels_sha256 FROM (
		SELECT 1 AS stored, rowid AS nth, original_sha256, sha256, pixels_sha256 FROM image WHERE id = ?1 AND image = ?2
		UNION ALL SELECT 0, rowid, original_sha256, sha256, pixels_sha256 FROM former_image WHERE id = ?1 AND image = ?2)
		ORDER BY stored DESC, nth DESC LIMIT 1`, []any{k.ID, k.Image}, &was.File, &was.Stripped, &was.Pixels)
	if t.err != nil || was.Stripped == "" { // as nearly all that come
		return
	}
	t.get(ctx, "SELECT reason FROM trouble WHERE id = ? AND image = ? AND beside IN ('', ?) AND reason IN (?, ?)",
		[]any{k.ID, k.Image, Going, policy.LeftGallery, policy.CrosspostParent}, &was.Left)
	row := k.String()
	clause := "WHERE instr(rows, ?) > 0"
	if was.Stripped == next.SHA256 { // it came back, and a copy without notes has none to take back
		clause += ` AND instr(rows, '"former"') > 0`
	}
	copies, err := listCopies(ctx, t, clause, `"`+row+`"`)
	t.fail(err)
	for _, c := range copies {
		former, noted := c.Former[row]
		switch {
		case noted && former.Stripped == next.SHA256:
			delete(c.Former, row)
		case !noted && was.Stripped != next.SHA256:
			if c.Former == nil {
				c.Former = map[string]Former{}
			}
			c.Former[row] = was
		default:
			continue
		}
		t.putCopy(ctx, c)
	}
}
