package workspace

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// The log of a workspace lies in audit/. A record is stored first in the table log_queue, with its
// number, in the transaction of the change it tells of; SealLog takes the queue over into audit/.
const (
	auditName  = "audit"
	logKeyName = "log.key" // beside audit/, not in it: audit/ is what an auditor gets
	maxLogKey  = 4096      // bytes; more than it has
)

// A logHead is the log as state.db knows it was published last.
type logHead struct {
	Size int64  `json:"size"`
	Root string `json:"root"`
	Key  string `json:"key"` // that verifies it
}

// A querier is the database, or a transaction of it.
type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// record stores records within the transaction of the change that they tell of.
func (w *Workspace) record(ctx context.Context, tx *sql.Tx, events ...auditlog.Event) error {
	if len(events) == 0 {
		return nil
	}
	next, err := nextRecord(ctx, tx)
	if err != nil {
		return err
	}
	for _, e := range events {
		e.Seq = next
		if e.Time.IsZero() {
			e.Time = w.now().UTC().Truncate(time.Second)
		}
		line, err := e.Line()
		if err != nil {
			return err
		}
		if err := enqueue(ctx, tx, next, line); err != nil {
			return err
		}
		next++
	}
	return putMeta(ctx, tx, metaLogNext, strconv.FormatInt(next, 10))
}

func enqueue(ctx context.Context, tx *sql.Tx, seq int64, line []byte) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO log_queue (seq, line) VALUES (?, ?)", seq, string(line))
	return err
}

// recordPosts stores records of one kind that name posts, as many as it takes.
func (w *Workspace) recordPosts(ctx context.Context, tx *sql.Tx, e auditlog.Event, posts []auditlog.Post) error {
	for len(posts) > 0 {
		n := min(len(posts), auditlog.MaxPosts)
		e.Posts, posts = posts[:n], posts[n:]
		if err := w.record(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

// nextRecord returns the number of the next record.
func nextRecord(ctx context.Context, q querier) (int64, error) {
	text, err := readMeta(ctx, q, metaLogNext)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: the number of records %q makes no sense: the file is damaged", stateName, text)
	}
	return n, nil
}

func readHead(ctx context.Context, q querier) (logHead, error) {
	var h logHead
	text, err := readMeta(ctx, q, metaLogHead)
	if err != nil || text == "" {
		return h, err
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return h, fmt.Errorf("%s: the note of the log cannot be read: %w", stateName, err)
	}
	return h, nil
}

func putHead(ctx context.Context, tx *sql.Tx, h logHead) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return putMeta(ctx, tx, metaLogHead, string(text))
}

// readQueue returns the lines that are not published, at most limit from number first on; -1 for all.
func readQueue(ctx context.Context, q querier, first int64, limit int) ([][]byte, error) {
	rows, err := q.QueryContext(ctx, "SELECT seq, line FROM log_queue WHERE seq >= ? ORDER BY seq LIMIT ?", first, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines [][]byte
	for rows.Next() {
		var seq int64
		var line string
		if err := rows.Scan(&seq, &line); err != nil {
			return nil, err
		}
		if seq != first+int64(len(lines)) {
			return nil, fmt.Errorf("%s: record %d is missing among those to be published: the file is damaged", stateName, first+int64(len(lines)))
		}
		lines = append(lines, []byte(line))
	}
	return lines, rows.Err()
}

// readUnpublished returns what was published last and the lines that were not, at most limit, -1 for all,
// as they are at one moment: a writer may publish meanwhile.
func (w *Workspace) readUnpublished(ctx context.Context, limit int) (head logHead, lines [][]byte, err error) {
	tx, err := w.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return head, nil, err
	}
	defer tx.Rollback()
	if head, err = readHead(ctx, tx); err != nil {
		return head, nil, err
	}
	lines, err = readQueue(ctx, tx, head.Size, limit)
	return head, lines, err
}

// Note stores records of their own, in one durable transaction: what is no change of the state and
// still belongs into the log. Time is set where it is zero, Seq always. SealLog and Close publish them.
func (w *Workspace) Note(ctx context.Context, events ...auditlog.Event) error {
	if len(events) == 0 {
		return nil
	}
	return w.change(ctx, "note in the audit log", func(tx *sql.Tx) error { return w.record(ctx, tx, events...) })
}

// SealLog publishes the records that were stored into audit/: records, tiles and a signed
// checkpoint. Close does it too. Killed anywhere it goes on where it was, and no record is
// lost or doubled. The error is *auditlog.Broken when the log there is damaged: the records stay
// stored until it is mended.
func (w *Workspace) SealLog(ctx context.Context) error {
	if err := w.writable(ctx); err != nil {
		return fmt.Errorf("publish the audit log: %w", err)
	}
	w.publishing.Lock()
	defer w.publishing.Unlock()
	for {
		more, err := w.publish(ctx)
		if err != nil {
			return fmt.Errorf("publish the audit log: %w", w.explain(ctx, err))
		}
		if !more {
			return nil
		}
	}
}

// publish publishes one batch and reports whether there may be more.
func (w *Workspace) publish(ctx context.Context) (more bool, err error) {
	head, err := readHead(ctx, w.db)
	if err != nil {
		return false, err
	}
	lines, err := readQueue(ctx, w.db, head.Size, w.batch)
	if err != nil || len(lines) == 0 {
		return false, err
	}
	old, err := w.openLog(ctx)
	if errors.Is(err, auditlog.ErrNoLog) {
		old, err = auditlog.New(auditStore{w}), nil
	}
	if err != nil {
		return false, err
	}
	key, err := w.logKey(ctx)
	if err != nil {
		return false, err
	}
	log, err := old.Append(ctx, key, head.Size, lines)
	if err != nil {
		return false, err
	}
	return len(lines) == w.batch, w.change(ctx, "note what was published", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM log_queue WHERE seq < ?", log.Size()); err != nil {
			return err
		}
		return putHead(ctx, tx, logHead{Size: log.Size(), Root: log.Checkpoint().Root, Key: log.Key()})
	})
}

// logKey returns the workspace's key, which it makes when there is none.
func (w *Workspace) logKey(ctx context.Context) (*auditlog.Key, error) {
	text, err := w.readSmall(logKeyName, maxLogKey)
	if err == nil {
		return auditlog.ParseKey(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := auditlog.NewKey(w.random)
	if err != nil {
		return nil, err
	}
	_, err = w.replace(ctx, logKeyName, func(f io.Writer) error {
		_, err := f.Write(key.Encode())
		return err
	}, nil)
	return key, err
}

// openLog opens the log with all that state.db knows of it.
func (w *Workspace) openLog(ctx context.Context) (*auditlog.Log, error) {
	known, err := w.knownLog(ctx)
	if err != nil {
		return nil, err
	}
	known.Anew = w.knownLog
	return auditlog.Open(ctx, auditStore{w}, known)
}

// knownLog returns what state.db knows of the log. Of the records to be published that is one batch: no more can lie in
// audit/ before they are noted.
func (w *Workspace) knownLog(ctx context.Context) (auditlog.Known, error) {
	head, queue, err := w.readUnpublished(ctx, w.batch)
	if err != nil {
		return auditlog.Known{}, err
	}
	known := auditlog.Known{Size: head.Size, Root: head.Root, Queue: queue}
	if head.Key != "" {
		known.Keys = []string{head.Key}
		// A lost key was replaced, and what it signed was not noted yet.
		if text, err := w.readSmall(logKeyName, maxLogKey); err == nil {
			if key, err := auditlog.ParseKey(text); err == nil && key.Public() != head.Key {
				known.Keys = append(known.Keys, key.Public())
			}
		}
	}
	return known, nil
}

// LogReader opens the log for reading, also of a read-only workspace. The error is auditlog.ErrNoLog when
// nothing was published yet, and *auditlog.Broken when its checkpoint is missing or signed with
// another key than the workspace's. Log.Verify looks at the rest, with what state.db knows.
func (w *Workspace) LogReader(ctx context.Context) (*auditlog.Log, error) {
	log, err := w.openLog(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", w.explain(ctx, err))
	}
	return log, nil
}

// Unpublished returns the records that are stored and not in audit/ yet: of a run under way, or of one that was killed.
func (w *Workspace) Unpublished(ctx context.Context) ([]auditlog.Event, error) {
	head, lines, err := w.readUnpublished(ctx, -1)
	if err != nil {
		return nil, fmt.Errorf("read the records to be published: %w", err)
	}
	// A writer that is killed may have published some, and not have noted it.
	if log, err := w.openLog(ctx); err == nil {
		lines = lines[min(max(log.Size()-head.Size, 0), int64(len(lines))):]
	}
	var events []auditlog.Event
	for _, line := range lines {
		e, err := auditlog.ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("read the records to be published: %w", err)
		}
		events = append(events, e)
	}
	return events, nil
}

// LogNext returns the number that the next record gets. A log of more records than that is
// ahead of a state.db that came from a backup; the next writer notes that it was restored.
func (w *Workspace) LogNext(ctx context.Context) (int64, error) { return nextRecord(ctx, w.db) }

// auditStore is the folder of the log.
type auditStore struct{ w *Workspace }

func (s auditStore) Read(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.w.OpenFile(auditName + "/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, auditlog.MaxFile))
}

func (s auditStore) Replace(ctx context.Context, name string, data []byte) error {
	_, err := s.w.replace(ctx, auditName+"/"+name, func(f io.Writer) error {
		_, err := f.Write(data)
		return err
	}, nil)
	return err
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

// readSmall reads a file of this package whole, which has limit bytes at most.
func (w *Workspace) readSmall(name string, limit int64) ([]byte, error) {
	f, err := w.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: it is damaged", name, limit)
	}
	return b, err
}

// reconcile compares state.db with the log when a writer opens the workspace. One of them may have come
// from a backup; then a record says so, and nothing that was published is written over unseen. A log
// that can't be opened is left to SealLog, so that removals do not wait for it.
func (w *Workspace) reconcile(ctx context.Context) error {
	head, err := readHead(ctx, w.db)
	if err != nil {
		return err
	}
	m := &meeting{w: w, head: head}
	m.log, err = w.openLog(ctx)
	var broken *auditlog.Broken
	switch {
	case errors.As(err, &broken):
		names, err := auditStore{w}.List(ctx)
		if err != nil || len(names) > 0 || head.Size == 0 {
			return err
		}
		m.log = auditlog.New(auditStore{w}) // audit/ is gone
	case errors.Is(err, auditlog.ErrNoLog):
		return nil
	case err != nil:
		return err
	}
	err = m.settle(ctx)
	if errors.As(err, &broken) {
		return nil
	}
	return err
}

// A meeting is that of a state.db and a log that need not be of the same age.
type meeting struct {
	w    *Workspace
	head logHead
	log  *auditlog.Log
}

func (m *meeting) settle(ctx context.Context) error {
	have := m.log.Size()
	if have < m.head.Size {
		lost, err := m.log.Recover(ctx, m.head.Size, m.head.Root)
		if err != nil {
			return err
		}
		if lost != nil {
			return m.goOn(ctx, lost, m.head.Size, auditlog.RestoredCheckpoint, nil)
		}
		return m.goOn(ctx, nil, m.head.Size, auditlog.RestoredLog, nil)
	}
	root, err := m.log.Root(ctx, m.head.Size)
	if err != nil {
		return err
	}
	if root != m.head.Root {
		stones, err := m.tombstones(ctx, 0)
		if err != nil {
			return err
		}
		return m.goOn(ctx, nil, m.head.Size, auditlog.RestoredOther, stones)
	}
	same, err := m.agree(ctx)
	if err != nil {
		return err
	}
	if same < have {
		stones, err := m.tombstones(ctx, same)
		if err != nil {
			return err
		}
		return m.goOn(ctx, nil, same, auditlog.RestoredState, stones)
	}
	// What a killed SealLog published and could not note is passed over by the next one.
	return m.checkKey(ctx)
}

// agree returns up to which record the log has what state.db has published or is to publish.
func (m *meeting) agree(ctx context.Context) (same int64, err error) {
	same = m.head.Size
	var queue [][]byte
	for e, err := range m.log.Records(ctx, same) {
		if err != nil {
			return 0, err
		}
		line, err := e.Line()
		if err != nil {
			return 0, err
		}
		if len(queue) == 0 {
			if queue, err = readQueue(ctx, m.w.db, same, m.w.batch); err != nil {
				return 0, err
			}
		}
		if len(queue) == 0 || !bytes.Equal(line, queue[0]) {
			break
		}
		same, queue = same+1, queue[1:]
	}
	return same, nil
}

// tombstones returns those that the log tells of from a record on, but for those that it says were lifted.
func (m *meeting) tombstones(ctx context.Context, first int64) ([]Tombstone, error) {
	var order []manifest.PostID
	stones := map[manifest.PostID]Tombstone{}
	for e, err := range m.log.Records(ctx, first) {
		if err != nil {
			return nil, err
		}
		for _, p := range e.Posts {
			switch {
			case e.Kind == auditlog.Buried && p.State.Gone():
				order = append(order, p.ID)
				stones[p.ID] = Tombstone{Tombstone: manifest.Tombstone{ID: p.ID, State: p.State, Time: e.Time}, Reason: p.Reason}
			case e.Kind == auditlog.Lifted:
				delete(stones, p.ID)
			}
		}
	}
	var list []Tombstone
	for _, id := range order {
		if t, ok := stones[id]; ok {
			list = append(list, t)
			delete(stones, id)
		}
	}
	return list, nil
}

// goOn makes state.db go on from the log as it is: what was lost and the queue, from one of its records on,
// follow it, after a record of what was restored, and the tombstones of the log come back.
func (m *meeting) goOn(ctx context.Context, lost [][]byte, from int64, what string, stones []Tombstone) error {
	w, size := m.w, m.log.Size()
	return w.change(ctx, "go on from the audit log", func(tx *sql.Tx) error {
		queue, err := readQueue(ctx, tx, from, -1)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM log_queue"); err != nil {
			return err
		}
		key := m.log.Key()
		if size == 0 {
			key = m.head.Key
		}
		if err := putHead(ctx, tx, logHead{Size: size, Root: m.log.Checkpoint().Root, Key: key}); err != nil {
			return err
		}
		if err := putMeta(ctx, tx, metaLogNext, strconv.FormatInt(size, 10)); err != nil {
			return err
		}
		event := auditlog.Event{Kind: auditlog.Restored, Verdict: what, Size: m.head.Size, Root: m.head.Root}
		// A recovered queue fills the numbers that it had.
		last := what == auditlog.RestoredCheckpoint
		if !last {
			if err := w.record(ctx, tx, event); err != nil {
				return err
			}
		}
		for _, line := range append(lost, queue...) {
			e, err := auditlog.ParseLine(line)
			if err != nil {
				return err
			}
			if err := w.record(ctx, tx, e); err != nil {
				return err
			}
		}
		if last {
			if err := w.record(ctx, tx, event); err != nil {
				return err
			}
		}
		return w.addTombstones(ctx, tx, stones)
	})
}

// checkKey notes that the key is gone, once, before there is a new one.
func (m *meeting) checkKey(ctx context.Context) error {
	if m.log.Size() == 0 {
		return nil
	}
	if _, err := m.w.readSmall(logKeyName, maxLogKey); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	queue, err := readQueue(ctx, m.w.db, m.head.Size, -1)
	if err != nil {
		return err
	}
	for _, line := range queue {
		if e, err := auditlog.ParseLine(line); err == nil && e.Kind == auditlog.Restored && e.Verdict == auditlog.RestoredKey {
			return nil
		}
	}
	return m.w.Note(ctx, auditlog.Event{Kind: auditlog.Restored, Verdict: auditlog.RestoredKey, Size: m.head.Size, Root: m.head.Root})
}
