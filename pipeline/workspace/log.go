package workspace

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/policy"
)

// The log of a workspace lies in audit/. A record waits in the table log_queue until publish moves it there.
const (
	auditName  = "audit"
	logKeyName = "log.key" // beside audit/, not in it: audit/ is what an auditor gets
	maxLogKey  = 4096      // bytes; more than it has
)

// record stores records in the transaction of the change that they record.
func (w *Workspace) record(ctx context.Context, t *tx, events ...auditlog.Event) {
	if len(events) == 0 || t.err != nil {
		return
	}
	// Its number is in the line, so it gets one now, and not when it is published.
	next, err := nextRecord(ctx, t)
	t.fail(err)
	for _, e := range events {
		e.Seq = next
		if e.Time.IsZero() {
			e.Time = w.now().UTC().Truncate(time.Second)
		}
		line, err := e.Line()
		t.fail(err)
		t.exec(ctx, "INSERT INTO log_queue (seq, line) VALUES (?, ?)", next, string(line))
		next++
	}
	t.recorded += len(events)
}

// recordPosts stores records of one kind that name posts, as many as it takes.
func (w *Workspace) recordPosts(ctx context.Context, t *tx, e auditlog.Event, posts []auditlog.Post) {
	for some := range slices.Chunk(posts, auditlog.MaxPosts) {
		e.Posts = some
		w.record(ctx, t, e)
	}
}

// nextRecord returns the number of the next record: behind those that wait, or those that were published.
func nextRecord(ctx context.Context, q querier) (next int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT coalesce((SELECT max(seq) + 1 FROM log_queue),
		(SELECT value ->> 'size' FROM meta WHERE key = ?), 0)`, metaLogHead).Scan(&next)
	return next, err
}

// readHead returns the log as state.db knows it was published last.
func readHead(ctx context.Context, q querier) (auditlog.Checkpoint, error) {
	head, err := readNote[auditlog.Checkpoint](ctx, q, metaLogHead)
	if err == nil && head.Size < 0 {
		err = fmt.Errorf("%s: the note %s names %d records: the file is damaged", stateName, metaLogHead, head.Size)
	}
	return head, err
}

// readQueue returns the lines that are not published, at most limit from number first on; -1 for all.
func readQueue(ctx context.Context, q querier, first int64, limit int) ([][]byte, error) {
	type queued struct {
		seq  int64
		line []byte
	}
	rows, err := list(ctx, q, func(r *queued) []any { return []any{&r.seq, &r.line} },
		"SELECT seq, line FROM log_queue WHERE seq >= ? ORDER BY seq LIMIT ?", first, limit)
	// A gap would move every later record to another place of the log.
	lines := make([][]byte, len(rows))
	for i, r := range rows {
		if next := first + int64(i); r.seq != next {
			return nil, fmt.Errorf("%s: record %d is missing among those to be published: the file is damaged", stateName,
				next)
		}
		lines[i] = r.line
	}
	return lines, err
}

// readUnpublished returns what was published last and the lines that were not, at most limit, -1 for all.
func (w *Workspace) readUnpublished(ctx context.Context, limit int) (head auditlog.Checkpoint, lines [][]byte,
	err error) {
	// Both as they are at one moment: a writer may publish meanwhile.
	tx, err := w.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return head, nil, err
	}
	defer tx.Rollback()
	head, err = readHead(ctx, tx)
	if err == nil {
		lines, err = readQueue(ctx, tx, head.Size, limit)
	}
	return head, lines, err
}

// Note stores records that come with no change of the state, durably. It sets Seq, and Time where that is zero.
func (w *Workspace) Note(ctx context.Context, events ...auditlog.Event) error {
	return w.change(ctx, "note in the audit log", func(ctx context.Context, t *tx) { w.record(ctx, t, events...) })
}

// publishMany publishes once a batch of records waits: those of a million images would take half a minute at the end.
func (w *Workspace) publishMany(ctx context.Context, recorded int) {
	// Not while the workspace is being opened or closed, and not from a change that publish itself makes.
	if w.waiting.Add(int64(recorded)) < int64(w.batch) || w.finish == nil || !w.publishing.TryLock() {
		return
	}
	defer w.publishing.Unlock()
	w.waiting.Store(0)
	_ = w.publishAll(ctx) // a log that is damaged stops no change: closing the workspace says what is wrong
}

// publish moves the stored records into audit/. The error is *auditlog.Broken when the log there is damaged: the
// records stay stored until it is mended.
func (w *Workspace) publish(ctx context.Context) error {
	w.publishing.Lock()
	defer w.publishing.Unlock()
	return w.publishAll(ctx)
}

func (w *Workspace) publishAll(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			w.log = nil // what the disk has is read again
		}
		err = w.explain(ctx, err)
		wrap(&err, "publish the audit log")
	}()
	head, lines, err := w.readUnpublished(ctx, w.batch)
	if err != nil || len(lines) == 0 {
		return err
	}
	if w.log == nil {
		w.log, err = auditlog.Open(ctx, auditStore{w}, w.knownLog)
		if err != nil && !errors.Is(err, auditlog.ErrNoLog) {
			return err
		}
	}
	log := w.log
	key, err := w.logKey(ctx)
	for err == nil && len(lines) > 0 {
		// The queue goes only after audit/ has the records durably. Killed between the two, the next call finds both
		// and Append skips what is there.
		if err := log.Append(ctx, key, head.Size, lines); err != nil {
			return err
		}
		err = w.change(ctx, "note the published records", func(ctx context.Context, t *tx) {
			t.exec(ctx, "DELETE FROM log_queue WHERE seq < ?", log.Size())
			t.setMeta(ctx, metaLogHead, jsonColumn{log.Checkpoint()})
		})
		if err == nil {
			head, lines, err = w.readUnpublished(ctx, w.batch)
		}
	}
	return err
}

// LogKey returns the text of the key, which may be damaged.
func (w *Workspace) LogKey() ([]byte, error) { return w.readSmall(logKeyName, maxLogKey) }

// logKey returns the workspace's key, which it makes when there is none.
func (w *Workspace) logKey(ctx context.Context) (*auditlog.Key, error) {
	text, err := w.LogKey()
	if err == nil {
		return auditlog.ParseKey(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := auditlog.NewKey()
	if err != nil {
		return nil, err
	}
	return key, w.putBytes(ctx, logKeyName, key.Encode())
}

// knownLog returns what state.db knows of the log.
func (w *Workspace) knownLog(ctx context.Context) (auditlog.Known, error) {
	// One batch of the queue is enough: audit/ has at most one that state.db has not noted.
	head, queue, err := w.readUnpublished(ctx, w.batch)
	if err != nil {
		return auditlog.Known{}, err
	}
	known := auditlog.Known{Size: head.Size, Root: head.Root, Queue: queue}
	if head.Key != "" {
		known.Keys = []string{head.Key}
		// A lost key was replaced, and what it signed was not noted yet.
		if text, err := w.LogKey(); err == nil {
			if key, err := auditlog.ParseKey(text); err == nil && key.Public() != head.Key {
				known.Keys = append(known.Keys, key.Public())
			}
		}
	}
	return known, nil
}

// KeepStatement keeps a signed statement, which a record of the log names by its sha256, in audit/.
func (w *Workspace) KeepStatement(ctx context.Context, digest string, body, signature []byte) error {
	name := auditName + "/" + auditlog.StatementName(digest)
	// The statement first: cut off between the two, it lies there by its digest, and the log is whole. It counts once a
	// note names it.
	err := w.putBytes(ctx, name, body)
	if err == nil {
		err = w.putBytes(ctx, name+manifest.SignatureSuffix, signature)
	}
	wrap(&err, "keep a statement")
	return err
}

// LogReader opens the log. The error is auditlog.ErrNoLog when nothing was published yet, and *auditlog.Broken when its
// checkpoint is not the workspace's. Log.Verify checks the rest.
func (w *Workspace) LogReader(ctx context.Context) (*auditlog.Log, error) {
	log, err := auditlog.Open(ctx, auditStore{w}, w.knownLog)
	err = w.explain(ctx, err)
	wrap(&err, "open the audit log")
	return log, err
}

// Unpublished returns the records that are stored and not in audit/ yet: of a run under way, or of one that was killed.
func (w *Workspace) Unpublished(ctx context.Context) ([]auditlog.Event, error) {
	head, lines, err := w.readUnpublished(ctx, -1)
	// A writer that is killed may have published some, and not have noted it.
	if log, err := auditlog.Open(ctx, auditStore{w}, w.knownLog); err == nil {
		lines = lines[min(max(log.Size()-head.Size, 0), int64(len(lines))):]
	}
	var events []auditlog.Event
	if err == nil {
		events, err = parseLines(lines)
	}
	wrap(&err, "read the records to be published")
	return events, err
}

func parseLines(lines [][]byte) (events []auditlog.Event, err error) {
	for _, line := range lines {
		e, err := auditlog.ParseLine(line)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// LogNext returns the number of the next record. If the log has more records than that, state.db came from a backup.
func (w *Workspace) LogNext(ctx context.Context) (int64, error) { return nextRecord(ctx, w.db) }

// auditStore is the folder of the log.
type auditStore struct{ w *Workspace }

func (s auditStore) Open(name string) (io.ReadCloser, error) {
	return s.w.OpenFile(auditName + "/" + name)
}

func (s auditStore) Append(ctx context.Context, name string, at int64, data []byte) error {
	name = auditName + "/" + name
	s.w.digests.Delete(name) // the seal reads it again; the checkpoint shows any damage in between
	err := s.w.files.MkdirAll(ctx, auditName, dirMode)
	if err == nil {
		err = s.w.files.Append(ctx, name, at, data)
	}
	if err != nil {
		s.w.unfinished.Store(true)
	}
	return err
}

func (s auditStore) Replace(ctx context.Context, name string, data []byte) error {
	return s.w.putBytes(ctx, auditName+"/"+name, data)
}

func (s auditStore) List(ctx context.Context) ([]string, error) {
	all, err := s.w.Files(ctx, auditName)
	names := make([]string, 0, len(all))
	for _, name := range all {
		if name != sealName {
			names = append(names, strings.TrimPrefix(name, auditName+"/"))
		}
	}
	return names, err
}

// A restored says what came from a backup, and how state.db continues the log then.
type restored struct {
	what   string             // for the record; empty when nothing did
	lost   []auditlog.Event   // records that the checkpoint does not cover any more
	from   int64              // the queue follows from this record on
	gone   *auditlog.Removals // that state.db may lack, nil for none
	behind []auditlog.Event   // records behind the log that gone is of, too
	stones []Tombstone        // of these, those that come back into state.db
	former []Tombstone        // those that were not lifted, and whose posts have a later one among these
	copies []LostCopy         // that the log registers, nil for not known
	again  []auditlog.Event   // what state.db knows of lost records
}

// A LostCopy is a copy that the log registers, and a state.db that was put back from a backup does not.
type LostCopy struct {
	Path   string    `json:"path"` // its sha256 hex: the log has no more of it
	Format string    `json:"format"`
	Made   time.Time `json:"made"`
	Record int64     `json:"record"` // of the log
}

// LostCopies returns the copies that were lost with a state.db, but for those that are registered again.
func (w *Workspace) LostCopies(ctx context.Context) ([]LostCopy, error) {
	lost, err := readNote[[]LostCopy](ctx, w.db, metaNoCopy)
	if err == nil && w.lock == nil {
		lost, err = w.copiesBehind(ctx, lost)
	}
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	have, err := w.Copies(ctx)
	return slices.DeleteFunc(lost, func(l LostCopy) bool {
		// A record that is older, and closed, is of an earlier copy at this path.
		return slices.ContainsFunc(have, func(c Copy) bool {
			return hexDigest([]byte(c.Path)) == l.Path && (c.Open || len(c.Files) > 0 || !c.Made.Before(l.Made))
		})
	}), err
}

// copiesBehind returns the copies that a writer would find to be lost, with those on record as lost: state.db may be
// from a backup, and no writer has opened it since.
func (w *Workspace) copiesBehind(ctx context.Context, lost []LostCopy) ([]LostCopy, error) {
	r, err := w.behind(ctx)
	if err != nil || r.copies != nil {
		return r.copies, err
	}
	return lost, nil
}

// CheckCurrent returns ErrBehind for a reader if the log has what state.db does not know: nobody could tell what is to
// be hidden. A writer has taken that over.
func (w *Workspace) CheckCurrent(ctx context.Context) error {
	if w.lock != nil {
		return nil
	}
	r, err := w.behind(ctx)
	if err == nil && r.gone != nil {
		err = ErrBehind
	}
	return err
}

// behind finds for a reader what a state.db that is older than the log lacks. A damaged log is as none: verify and
// audit say so.
func (w *Workspace) behind(ctx context.Context) (r restored, err error) {
	log, broken := w.openOtherLog(ctx)
	switch {
	case errors.Is(broken, auditlog.ErrNoLog), log == nil && errors.As(broken, new(*auditlog.Broken)):
		return restored{}, nil
	case !errors.As(broken, new(*auditlog.Broken)):
		err = broken
	}
	for err == nil {
		head, err := readHead(ctx, w.db)
		last := log.Checkpoint()
		agree := last.Size == head.Size && last.Root == head.Root
		if err == nil && agree && broken == nil {
			agree, err = w.endsWith(last.Size)
		}
		if err != nil || agree { // nearly always
			return restored{}, err
		}
		r, err := w.compareWithBroken(ctx, head, log, broken)
		now, wrong := readHead(ctx, w.db)
		switch {
		case wrong != nil:
			return restored{}, wrong
		case now.Size != head.Size: // a writer is at work, and published meanwhile
			continue
		case errors.As(err, new(*auditlog.Broken)):
			return restored{}, nil
		}
		return r, err
	}
	return restored{}, err
}

// CheckLog says why the next command that writes could not publish its records: the log or its key is damaged. A log
// that came from a backup is not.
func (w *Workspace) CheckLog(ctx context.Context) error {
	text, err := w.LogKey()
	if err == nil {
		_, err = auditlog.ParseKey(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the next command makes one
		return err
	}
	log, err := w.openOtherLog(ctx)
	if err == nil {
		_, err = log.Root(ctx, log.Size())
	}
	if errors.Is(err, auditlog.ErrNoLog) {
		return nil
	}
	return w.explain(ctx, err)
}

// openOtherLog opens a log that may be of another age than state.db, and is not damaged for that.
func (w *Workspace) openOtherLog(ctx context.Context) (*auditlog.Log, error) {
	return auditlog.Open(ctx, auditStore{w}, func(ctx context.Context) (auditlog.Known, error) {
		known, err := w.knownLog(ctx)
		return auditlog.Known{Keys: known.Keys, Queue: known.Queue}, err
	})
}

// CloseLostCopy records the holder's word on a copy that was lost with a state.db.
func (w *Workspace) CloseLostCopy(ctx context.Context, closed LostCopy, event auditlog.Event) error {
	return w.change(ctx, "close the record of a copy", func(ctx context.Context, t *tx) {
		lost, err := readNote[[]LostCopy](ctx, t, metaNoCopy)
		t.fail(err)
		t.setMeta(ctx, metaNoCopy, jsonColumn{slices.DeleteFunc(lost, func(l LostCopy) bool { return l == closed })})
		w.record(ctx, t, event)
	})
}

// reconcile compares state.db with the log. One of them may have come from a backup: then a record says so, and nothing
// that was published is written over unseen. With leave it only notes that it is so.
func (w *Workspace) reconcile(ctx context.Context, leave bool) error {
	head, err := readHead(ctx, w.db)
	if err != nil {
		return err
	}
	log, err := w.openOtherLog(ctx)
	if errors.Is(err, auditlog.ErrNoLog) {
		if head.Size == 0 {
			return nil
		}
		err = nil // audit/ is gone: the log is as an older one
	}
	var r restored
	if err == nil || log != nil && head.Size > 0 && errors.As(err, new(*auditlog.Broken)) {
		r, err = w.compareWithBroken(ctx, head, log, err)
	}
	if errors.As(err, new(*auditlog.Broken)) {
		w.damaged = true
		return nil // left to publish, so that removals do not wait for it
	}
	if err == nil && r.what == "" && w.unlike {
		var noted bool
		noted, err = w.notedRestored(ctx, `"restored"`)
		if err == nil && !noted { // else a command was killed that had taken over the log
			r.what = auditlog.RestoredChanged
		}
	}
	if err == nil && r.what != "" && leave {
		w.apart = true
		return nil
	}
	if err == nil {
		err = w.checkRemovals(ctx, log, &r)
	}
	if err == nil && (r.what == auditlog.RestoredLog || r.what == auditlog.RestoredOther) {
		err = w.sayAgain(ctx, log, &r)
	}
	switch {
	case err != nil:
		return err
	case w.unlike:
		w.digests.Clear() // the seal is of another time, and describes other files
	}
	if r.what == "" && r.gone == nil {
		return nil
	}
	return w.change(ctx, "continue the audit log", func(ctx context.Context, t *tx) {
		if r.what != "" {
			w.continueLog(ctx, t, head, log, r)
		}
		// A removal that only the log still has must not be undone by a backup.
		t.dropFormer(ctx, r.former)
		w.addTombstones(ctx, t, r.stones)
		if r.gone != nil {
			t.addFormer(ctx, log, r.behind)
			t.addRemovals(ctx, r.gone)
		}
		w.since = nil
		if r.what != auditlog.RestoredCheckpoint && r.what != auditlog.RestoredKey {
			t.setMeta(ctx, metaUnsure, "1")
			t.setMeta(ctx, LaterKey, "-1")
		}
		if r.copies != nil {
			t.setMeta(ctx, metaNoCopy, jsonColumn{r.copies})
		}
	})
}

// continueLog has state.db go on from the log, and records why.
func (w *Workspace) continueLog(ctx context.Context, t *tx, head auditlog.Checkpoint, log *auditlog.Log, r restored) {
	last := log.Checkpoint()
	queue, err := readQueue(ctx, t, r.from, -1)
	t.fail(err)
	events, err := parseLines(queue)
	t.fail(err)
	note := auditlog.Event{Kind: auditlog.Restored, Verdict: r.what, Size: head.Size, Root: head.Root}
	t.noteContinued(ctx, log, r, note)
	last.Key = cmp.Or(last.Key, head.Key)
	// The queue gets new numbers behind the log. Only the records that no checkpoint covers keep theirs.
	t.exec(ctx, "DELETE FROM log_queue")
	t.setMeta(ctx, metaLogHead, jsonColumn{last})
	w.record(ctx, t, slices.Concat(r.lost, []auditlog.Event{note}, events, r.again)...)
}

// sayAgain finds what holds of removals, copies, stand-ins and images that a log which is older, or another one, and
// the records that wait behind it, do not say: the records of it were lost, and no job would write them again. What
// another log says was removed stays so.
func (w *Workspace) sayAgain(ctx context.Context, log *auditlog.Log, r *restored) error {
	queue, err := readQueue(ctx, w.db, r.from, -1)
	if err != nil {
		return err
	}
	behind, err := parseLines(queue)
	if err != nil {
		return err
	}
	said, err := readRemovals(ctx, log, behind)
	if err != nil {
		return err
	}
	open := map[string]auditlog.Event{} // copies, by the last word on each
	had := lastFetched{}
	err = replay(ctx, log, behind, func(e auditlog.Event) {
		had.add(e)
		if opened, closed := e.OfCopy(); opened {
			open[e.Path] = e
		} else if closed {
			delete(open, e.Path)
		}
	})
	if err != nil {
		return err
	}
	stones, err := w.Tombstones(ctx)
	if err != nil {
		return err
	}
	holds := r.sayStones(stones, said)
	copies, err := w.Copies(ctx)
	if err != nil {
		return err
	}
	r.sayCopies(copies, open)
	suspects, err := readNote[auditlog.Suspects](ctx, w.db, SuspectsKey)
	if err != nil {
		return err
	}
	for _, digest := range said.Suspects.Update(suspects) {
		r.again = append(r.again, suspects[digest].Events(digest)...)
	}
	origins, err := w.itemOrigins(ctx)
	if err != nil {
		return err
	}
	for rec, err := range w.Records(ctx, Select{Bare: true}) {
		if err != nil {
			return err
		}
		if !holds[rec.ID] {
			r.sayImage(rec, said, had, origins)
		}
	}
	return nil
}

// sayStones says the tombstones that a log does not have as they are, and returns the posts of which one holds.
func (r *restored) sayStones(stones []Tombstone, said *auditlog.Removals) (holds map[manifest.PostID]bool) {
	last := map[manifest.PostID]auditlog.Tombstone{}
	for _, t := range said.Tombstones {
		last[t.ID] = t
	}
	holds = map[manifest.PostID]bool{}
	for _, t := range stones {
		was, one := last[t.ID], []auditlog.Post{{ID: t.ID, State: t.State, Reason: auditlog.Word(t.Reason)}}
		buried := r.what == auditlog.RestoredOther && was.ID != "" && !was.Undone // by the other log
		holds[t.ID] = !t.Readmitted || buried
		if t.Readmitted && buried {
			continue
		}
		if was.Post != one[0] || !was.Since.Equal(t.Time) || was.Undone && !t.Readmitted {
			r.again = append(r.again, auditlog.Event{Kind: auditlog.Buried, Since: t.Time, Posts: one})
			was.Undone = false
		}
		if t.Readmitted && !was.Undone {
			r.again = append(r.again, auditlog.Event{Kind: auditlog.Readmitted, Posts: []auditlog.Post{{ID: t.ID}}})
		}
	}
	return holds
}

// sayCopies says which copies were registered or closed, where the log has it otherwise.
func (r *restored) sayCopies(copies []Copy, open map[string]auditlog.Event) {
	for _, c := range copies {
		e := auditlog.Event{Path: hexDigest([]byte(c.Path)), Format: c.Format}
		_, is := open[e.Path]
		switch {
		case is && c.Closed():
			e.Kind, e.Verdict = auditlog.CopyPurged, "told"
		case is || c.Closed():
			continue
		case len(c.Files) > 0:
			e.Kind, e.Time = auditlog.Copy, c.Made
		case !filepath.IsAbs(c.Path): // what was sent to a third party has no files here
			e.Kind, e.Time = auditlog.Disclosed, c.Made
		default: // an export that did not end
			continue
		}
		r.again = append(r.again, e)
	}
}

// sayImage says that an image was fetched, or was taken out of its post, where the log does not: while no record says
// so, nobody could tell it from one that was erased, or would know that it is not to be fetched again.
func (r *restored) sayImage(rec Record, said *auditlog.Removals, had lastFetched, origins map[itemImage]string) {
	_, left := said.Entries[rec.Key]
	leaves := rec.Trouble != nil && policy.LeftPost(rec.Trouble.Reason)
	digest, known := had.of(rec.Key)
	switch {
	case rec.Image == nil && leaves && rec.Trouble.Removed() && !left:
		r.again = append(r.again, auditlog.Event{Kind: auditlog.Erased, Posts: []auditlog.Post{{ID: rec.ID}},
			Image: rec.Key.Image, Verdict: string(auditlog.Word(rec.Trouble.Reason))})
	case rec.Image == nil || left && leaves || digest == rec.Image.SHA256:
	case digest == "" && known && r.what == auditlog.RestoredOther: // which says that it was erased
	default:
		if _, gone := said.Gone[rec.ID]; gone && !rec.Post.State.Gone() && r.what != auditlog.RestoredOther {
			r.again = append(r.again, auditlog.Event{Kind: auditlog.Verdicts, Time: rec.Post.LiveAt,
				Posts: []auditlog.Post{{ID: rec.ID, State: auditlog.Word(rec.Post.State)}}})
			delete(said.Gone, rec.ID)
		}
		e := fetched(rec.Key, *rec.Image)
		e.Source = origins[itemImage{rec.Key, e.SHA256}]
		e.Time = rec.Post.LiveAt // a state.db that is lost after this is told when the post was live by it
		r.again = append(r.again, e)
	}
}

// lastFetched has the images of posts as a log says that they were fetched last.
type lastFetched map[manifest.PostID][]fetchedImage

type fetchedImage struct {
	image  int
	sha256 string // "" once it was erased
}

func (l lastFetched) of(k manifest.Key) (sha256 string, known bool) {
	for _, f := range l[k.ID] {
		if f.image == k.Image {
			return f.sha256, true
		}
	}
	return "", false
}

// add takes the next record.
func (l lastFetched) add(e auditlog.Event) {
	for _, p := range e.Posts {
		for i, f := range l[p.ID] {
			k := manifest.Key{ID: p.ID, Image: f.image}
			if e.Erases(k) {
				l[p.ID][i].sha256 = ""
			}
			if e.Kind == auditlog.Fetch && f.image == e.Image {
				l[p.ID][i].sha256 = e.SHA256
			}
		}
		if _, known := l.of(manifest.Key{ID: p.ID, Image: e.Image}); e.Kind == auditlog.Fetch && !known {
			l[p.ID] = append(l[p.ID], fetchedImage{e.Image, e.SHA256})
		}
	}
}

// ExportUnsure reports whether state.db or the log was another one at the last export, since ExportSure: the log may
// not have that of the dataset as the last.
func (w *Workspace) ExportUnsure(ctx context.Context) (bool, error) {
	unsure, err := w.Meta(ctx, metaUnsure)
	return unsure != "", err
}

// LogDamaged reports whether the log was damaged when the workspace was opened: it could not tell whether state.db is
// an older one.
func (w *Workspace) LogDamaged() bool { return w.damaged }

// ExportSure notes that the last export of the log is that of the dataset.
func (w *Workspace) ExportSure(ctx context.Context) error { return w.SetMeta(ctx, metaUnsure, "") }

// compareLog compares state.db with a log that may be older or newer.
func (w *Workspace) compareLog(ctx context.Context, head auditlog.Checkpoint, log *auditlog.Log) (r restored,
	err error) {
	r.from = head.Size
	have := log.Size()
	if have < head.Size {
		// The log is older. If only its checkpoint is, the records behind it are there and nothing is lost.
		r.what = auditlog.RestoredLog
		r.lost, err = log.Recover(ctx, head.Size, head.Root)
		if len(r.lost) > 0 {
			r.what = auditlog.RestoredCheckpoint
			err = w.takeBeyond(ctx, log, head.Size, &r)
		}
		if err != nil || len(r.lost) > 0 {
			return r, err
		}
		began, err := w.beganAgain(ctx, log, head.Size)
		if err != nil || !began {
			return r, err
		}
		return r, w.takeOther(ctx, log, &r)
	}
	root, err := log.Root(ctx, head.Size)
	if err != nil {
		return r, err
	}
	if root != head.Root && head.Size > 0 { // a new state.db knows no log, and is older than any
		return r, w.takeOther(ctx, log, &r)
	}
	// A publish that was killed published records without noting it: then the log continues with the queue, and
	// the next publish skips them. Anything else means that state.db is older.
	queue, err := readQueue(ctx, w.db, head.Size, int(have-head.Size))
	if err != nil {
		return r, err
	}
	for e, err := range log.Records(ctx, head.Size) {
		if err != nil {
			return r, err
		}
		line, err := e.Line()
		if err != nil {
			return r, err
		}
		if i := e.Seq - head.Size; i >= int64(len(queue)) || !bytes.Equal(line, queue[i]) {
			r.what = auditlog.RestoredState
			r.lost, err = log.Beyond(ctx, have)
			if err != nil {
				return r, err
			}
			r.behind = r.lost
			return r, w.takeOver(ctx, log, r.from, &r)
		}
		r.from++
	}
	if err := w.takeBeyond(ctx, log, have, &r); err != nil || r.what != "" {
		return r, err
	}
	if _, err := w.LogKey(); have == 0 || !errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	// The key is gone, and publish will make a new one. An earlier writer may have noted it before it was killed.
	noted, err := w.notedRestored(ctx, `"restored","verdict":"key"`)
	if !noted {
		r.what = auditlog.RestoredKey
	}
	return r, err
}

// notedRestored reports whether a record of this kind waits to be published.
func (w *Workspace) notedRestored(ctx context.Context, kind string) (bool, error) {
	lines, err := texts(ctx, w.db, `SELECT line FROM log_queue WHERE instr(line, '"kind":' || ?) > 0`, kind)
	return len(lines) > 0, err
}

// endsWith reports whether the log has no more records than so many: behind its checkpoint there can be others.
func (w *Workspace) endsWith(size int64) (bool, error) {
	f, err := w.OpenFile(auditName + "/records.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	const longest = 64 << 10
	tail := make([]byte, min(info.Size(), 2*longest))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return false, err
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1] // what a kill left of a line is none
	if len(tail) == 0 {
		return true, nil
	}
	e, err := auditlog.ParseLine(tail[bytes.LastIndexByte(tail[:len(tail)-1], '\n')+1:])
	return err != nil || e.Seq < size, nil // one that is damaged is for verify to name
}

// compareWithBroken is compareLog where broken, nil for nothing, is what is wrong with the log. One whose checkpoint is
// missing is as it was where its records are those that state.db knows.
func (w *Workspace) compareWithBroken(ctx context.Context, head auditlog.Checkpoint, log *auditlog.Log, broken error) (
	restored, error) {
	r, err := w.compareLog(ctx, head, log)
	if err == nil && len(r.lost) == 0 && broken != nil {
		err = broken
	}
	return r, err
}

// takeBeyond takes over the records behind the first size, which no checkpoint covers, unless they are those that wait
// in state.db, as after a kill: then both are older.
func (w *Workspace) takeBeyond(ctx context.Context, log *auditlog.Log, size int64, r *restored) error {
	beyond, err := log.Beyond(ctx, size)
	if err != nil || len(beyond) == 0 {
		return err
	}
	queue, err := readQueue(ctx, w.db, size, len(beyond))
	if err != nil {
		return err
	}
	for i, e := range beyond {
		line, err := e.Line()
		if err != nil {
			return err
		}
		if i == len(queue) || !bytes.Equal(line, queue[i]) {
			r.what, r.from = auditlog.RestoredState, size+int64(i)
			r.lost = append(r.lost, beyond...)
			r.behind = r.lost
			return w.takeOver(ctx, log, r.from, r)
		}
	}
	return nil
}

// beganAgain reports whether a log took the place of one with so many records, or more, which was lost or is a longer
// one, and state.db does not know of it: it is older than that. The log says so itself.
func (w *Workspace) beganAgain(ctx context.Context, log *auditlog.Log, size int64) (bool, error) {
	known, err := readNote[[]continuation](ctx, w.db, metaContinued)
	if err != nil {
		return false, err
	}
	for e, err := range log.Records(ctx, 0) {
		if err != nil {
			return false, err
		}
		c := continuation{e.Size, e.Root}
		if e.Kind == auditlog.Restored && e.Size >= size && !slices.Contains(known, c) {
			return true, nil
		}
	}
	return false, nil
}

// A continuation is what a record restored says of the log that state.db knew.
type continuation struct {
	Size int64
	Root string
}

// noteContinued keeps of which continuations of a log state.db knows, with one more.
func (t *tx) noteContinued(ctx context.Context, log *auditlog.Log, r restored, last auditlog.Event) {
	known, err := readNote[[]continuation](ctx, t, metaContinued)
	t.fail(err)
	add := func(e auditlog.Event) {
		c := continuation{e.Size, e.Root}
		if e.Kind == auditlog.Restored && !slices.Contains(known, c) {
			known = append(known, c)
		}
	}
	t.fail(replay(ctx, log, r.behind, add))
	add(last)
	t.setMeta(ctx, metaContinued, jsonColumn{known})
}

// takeOther takes over another history: every tombstone of that log must hold here too.
func (w *Workspace) takeOther(ctx context.Context, log *auditlog.Log, r *restored) (err error) {
	r.what = auditlog.RestoredOther
	r.lost, err = log.Beyond(ctx, log.Size())
	if err != nil {
		return err
	}
	r.behind = r.lost
	return w.takeOver(ctx, log, 0, r)
}

// takeOver finds what a state.db that is older than record first lacks: the removals, and from that record on the
// tombstones and the copies.
func (w *Workspace) takeOver(ctx context.Context, log *auditlog.Log, first int64, r *restored) (err error) {
	r.copies, err = readNote[[]LostCopy](ctx, w.db, metaNoCopy) // that were lost before
	if err == nil {
		r.gone, err = readRemovals(ctx, log, r.behind)
	}
	if err != nil {
		return err
	}
	last := map[manifest.PostID]auditlog.Tombstone{}
	for _, t := range r.gone.Tombstones {
		last[t.ID] = t
	}
	for _, t := range r.gone.Tombstones {
		switch {
		case last[t.ID].Record < first:
		case t.Record < last[t.ID].Record && !t.Undone:
			r.former = append(r.former, tombstoneOf(t))
		case t.Record >= first:
			// Those that were lifted later, too: which lifts count is for the release to say, and it applies them again.
			r.stones = append(r.stones, tombstoneOf(t))
		}
	}
	return replay(ctx, log, r.behind, func(e auditlog.Event) {
		// The last word on a copy counts.
		opened, closed := e.OfCopy()
		if e.Seq >= first && (opened || closed) {
			r.copies = slices.DeleteFunc(r.copies, func(l LostCopy) bool { return l.Path == e.Path })
		}
		if e.Seq >= first && opened {
			r.copies = append(r.copies, LostCopy{Path: e.Path, Format: e.Format, Made: e.Time, Record: e.Seq})
		}
	})
}
