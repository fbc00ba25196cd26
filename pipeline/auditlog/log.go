package auditlog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sync/atomic"

	"golang.org/x/mod/sumdb/tlog"
)

// A Store is the folder of a log. Readers may see a log that a writer adds to.
type Store interface {
	// Open opens a file for reading; fs.ErrNotExist when there is none.
	Open(name string) (io.ReadCloser, error)
	// List returns the names of all files.
	List(ctx context.Context) ([]string, error)
	// Replace makes a file hold data, durably: readers see the old bytes or the new ones.
	Replace(ctx context.Context, name string, data []byte) error
	// Append writes data after the first at bytes of a file, durably, and drops what followed them.
	Append(ctx context.Context, name string, at int64, data []byte) error
}

// Names in the folder of a log.
const (
	RecordsName    = "records.jsonl"
	CheckpointName = "checkpoint"
	KeyName        = "log.pub"
)

// ErrNoLog means that the folder holds no log yet.
var ErrNoLog = errors.New("there is no audit log yet")

// Broken is the error of a log that was changed or damaged.
type Broken struct {
	Record int64  // the first record that can't be believed; 0 when that may be any
	What   string // what is wrong with it
}

func (e *Broken) Error() string {
	return fmt.Sprintf("the audit log breaks at record %d: %s", e.Record, e.What)
}

// Known is what is known of a log from another source, which a change of its files does not reach.
type Known struct {
	Keys  []string // verifier keys that may have signed it; none means the key of log.pub
	Size  int64    // how many records it had at least
	Root  string   // its root hash when it had that many, base64
	Queue [][]byte // lines that may be added next, the first as record Size: some may be there already
}

// A Log is a log as it is at one checkpoint. It is safe for use by several goroutines.
type Log struct {
	store Store
	find  func(context.Context) (Known, error)
	known Known
	last  Checkpoint
	key   string
	end   atomic.Pointer[position] // once the records are checked
}

// A position is the end of the records that count.
type position struct {
	tree   tree
	bytes  int64
	beyond []byte // the bytes that follow, as far as they can matter
}

// Open opens the log in s. Known returns what is known of it by now. Without files, and with nothing known, the
// error is ErrNoLog; it is *Broken when the checkpoint is missing or is not signed with one of the keys. Open
// does not check the records: see Verify.
func Open(ctx context.Context, s Store, known func(context.Context) (Known, error)) (*Log, error) {
	l := &Log{store: s, find: known}
	var err error
	l.known, err = known(ctx)
	if err != nil {
		return nil, err
	}
	signed, err := l.readSmall(CheckpointName)
	if errors.Is(err, fs.ErrNotExist) {
		end, err := l.walk(ctx, nil)
		if err == nil && len(end.beyond) > 0 && len(l.known.Queue) == 0 { // a first Append that was killed has a queue
			err = &Broken{What: CheckpointName + " is missing, and there are records"}
		}
		return nil, cmp.Or(err, ErrNoLog)
	}
	if err != nil {
		return nil, err
	}
	keys := l.known.Keys
	if len(keys) == 0 {
		key, err := l.publicKey()
		if err != nil {
			return nil, err
		}
		keys = []string{key}
	}
	l.last, l.key, err = ParseCheckpoint(signed, keys...)
	if err != nil {
		return nil, &Broken{What: fmt.Sprintf("%s vouches for nothing: %v", CheckpointName, err)}
	}
	return l, nil
}

// New returns a log without records in s, for Append.
func New(s Store) *Log { return &Log{store: s} }

// Size returns the number of records.
func (l *Log) Size() int64 { return l.last.Size }

// Checkpoint returns the checkpoint that the log was opened with.
func (l *Log) Checkpoint() Checkpoint { return l.last }

// Key returns the verifier key that its checkpoint is signed with.
func (l *Log) Key() string { return l.key }

// Verify checks the whole log: every record and its place, all of them against the checkpoint and against what
// is known from elsewhere, and that nothing else is there but records that were about to be added. The error is
// *Broken if they do not agree.
func (l *Log) Verify(ctx context.Context) error {
	const rounds = 20 // a writer that publishes all the while has to be faster than the check each time
	// A log that grew meanwhile is checked again. It must continue this one: its first records have this root.
	now, err := l, l.verify(ctx)
	for range rounds {
		if !errors.As(err, new(*Broken)) {
			return err
		}
		next, opening := Open(ctx, l.store, l.find)
		if opening != nil || next.Size() < now.Size() || next.Size() == now.Size() && next.waiting() <= now.waiting() {
			return err
		}
		now, err = next, next.verify(ctx)
		if err == nil && l.Size() > 0 {
			if root, err := now.Root(ctx, l.Size()); err != nil || root != l.last.Root {
				return &Broken{What: fmt.Sprintf("records 0 to %d are not those that they were a moment ago: the log was written again", l.Size()-1)}
			}
		}
	}
	return err
}

// waiting returns the number that follows the last record of the queue.
func (l *Log) waiting() int64 { return l.known.Size + int64(len(l.known.Queue)) }

// verify is Verify of a log without a writer.
func (l *Log) verify(ctx context.Context) error {
	end, err := l.walk(ctx, func(t *tree, line []byte) error {
		_, err := parseRecord(line, t.size-1)
		return err
	})
	if err != nil {
		return err
	}
	// A new key is there a moment before the first checkpoint that it signs.
	key, err := l.publicKey()
	if err != nil {
		return err
	}
	if key != l.key && !slices.Contains(l.known.Keys, key) {
		return &Broken{What: KeyName + " is not the key that the log is signed with"}
	}
	// A writer may have appended a part of the queue: its checkpoint comes after.
	next := l.known.Queue[min(l.Size()-l.known.Size, int64(len(l.known.Queue))):]
	if !bytes.HasPrefix(bytes.Join(next, nil), end.beyond) {
		return &Broken{Record: l.Size(), What: fmt.Sprintf("it lies beyond %s, which is an older one or was never to cover it", CheckpointName)}
	}
	names, err := l.store.List(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != RecordsName && name != CheckpointName && name != KeyName {
			return &Broken{Record: l.Size(), What: fmt.Sprintf("%q does not belong to the log", name)}
		}
	}
	return nil
}

// walk hands the records that count to visit, each with the tree that ends with it, and checks them against the
// checkpoint and what is known.
func (l *Log) walk(ctx context.Context, visit func(t *tree, line []byte) error) (*position, error) {
	if l.Size() < l.known.Size {
		return nil, &Broken{Record: l.Size(), What: fmt.Sprintf("%s has %d records, and %d were published: it is missing or an older one", CheckpointName, l.Size(), l.known.Size)}
	}
	var end position
	t, published := &end.tree, true
	for line, err := range l.lines(ctx) {
		if err != nil {
			return nil, err
		}
		if t.size == l.Size() {
			// verify compares these bytes with the queue: one byte more than the queue has is enough.
			end.beyond = append(end.beyond, line...)
			if len(end.beyond) > len(l.known.Queue)*MaxLine {
				break
			}
			continue
		}
		t.add(line)
		end.bytes += int64(len(line))
		published = published && (t.size != l.known.Size || t.root() == l.known.Root)
		if err := visit(t, line); err != nil {
			return nil, err
		}
	}
	switch {
	case t.size < l.Size() || t.root() != l.last.Root:
		return nil, l.locate(ctx)
	case !published:
		return nil, &Broken{What: fmt.Sprintf("records 0 to %d are not all those that were published: the log was written again", l.known.Size-1)}
	}
	l.end.Store(&end)
	return &end, nil
}

// locate finds where the log breaks when its records do not have the root of its checkpoint.
func (l *Log) locate(ctx context.Context) error {
	seq := int64(0)
	for e, err := range l.parsed(ctx) {
		if err != nil {
			return err
		}
		seq = e.Seq + 1
	}
	if seq < l.Size() {
		return &Broken{Record: seq, What: "it is missing"}
	}
	// All are well formed: a changed one cannot be distinguished from the rest.
	return &Broken{What: fmt.Sprintf("records 0 to %d are not all those that %s vouches for", l.Size()-1, CheckpointName)}
}

// parsed yields the records that count, unchecked.
func (l *Log) parsed(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seq := int64(0)
		for line, err := range l.lines(ctx) {
			if seq == l.Size() {
				return
			}
			var e Event
			if err == nil {
				e, err = parseRecord(line, seq)
			}
			if !yield(e, err) || err != nil {
				return
			}
			seq++
		}
	}
}

func parseRecord(line []byte, seq int64) (Event, error) {
	e, err := ParseLine(line)
	if err == nil && e.Seq != seq {
		err = fmt.Errorf("it stands in the place of record %d", e.Seq)
	}
	if err != nil {
		return Event{}, &Broken{Record: seq, What: err.Error()}
	}
	return e, nil
}

// Root returns the root hash of the first n records, base64, once all are checked; empty for none.
func (l *Log) Root(ctx context.Context, n int64) (root string, err error) {
	if n < 0 || n > l.Size() {
		return "", fmt.Errorf("root of %d records: the audit log has %d", n, l.Size())
	}
	_, err = l.walk(ctx, func(t *tree, _ []byte) error {
		if t.size == n {
			root = t.root()
		}
		return nil
	})
	return root, err
}

// Records yields the records from number first on, once all are checked. The error is *Broken, and nothing is
// yielded, when they do not agree with the checkpoint.
func (l *Log) Records(ctx context.Context, first int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if _, err := l.checked(ctx); err != nil {
			yield(Event{}, err)
			return
		}
		for e, err := range l.parsed(ctx) {
			if (e.Seq >= first || err != nil) && !yield(e, err) {
				return
			}
		}
	}
}

// checked checks the records, once.
func (l *Log) checked(ctx context.Context) (*position, error) {
	if end := l.end.Load(); end != nil {
		return end, nil
	}
	return l.walk(ctx, func(*tree, []byte) error { return nil })
}

// Since proves that the log continues an earlier checkpoint that an auditor kept: the same key signed it, and its
// records are the first ones of this log. The error is *Broken when it does not.
func (l *Log) Since(ctx context.Context, earlier []byte) (Checkpoint, error) {
	c, _, err := ParseCheckpoint(earlier, l.key)
	switch {
	case errors.Is(err, errOtherKey):
		return c, &Broken{What: "the earlier checkpoint is signed with another key than the log is now"}
	case err != nil:
		return c, fmt.Errorf("read the earlier checkpoint: %w", err)
	case c.Size > l.Size():
		return c, &Broken{Record: l.Size(), What: fmt.Sprintf("the earlier checkpoint has %d records, the log has %d", c.Size, l.Size())}
	}
	root, err := l.Root(ctx, c.Size)
	if err == nil && c.Size > 0 && root != c.Root {
		err = &Broken{What: fmt.Sprintf("records 0 to %d are not all those of the earlier checkpoint: the log was written again", c.Size-1)}
	}
	return c, err
}

// Append adds records: line i becomes record from+i, and must say so. Lines that the log has already are
// skipped; a line that differs from the log's is *Broken, and so is a gap. It returns the longer log.
func (l *Log) Append(ctx context.Context, key *Key, from int64, lines [][]byte) (*Log, error) {
	if from > l.Size() {
		return nil, &Broken{Record: l.Size(), What: fmt.Sprintf("it is missing, and record %d is to be added", from)}
	}
	for i, line := range lines {
		if _, err := parseRecord(line, from+int64(i)); err != nil {
			return nil, fmt.Errorf("add to the audit log: %w", err)
		}
	}
	end, err := l.checked(ctx)
	if err == nil && from < l.Size() {
		_, err = l.walk(ctx, func(t *tree, line []byte) error {
			if i := t.size - 1 - from; i >= 0 && i < int64(len(lines)) && !bytes.Equal(line, lines[i]) {
				return &Broken{Record: t.size - 1, What: "it is there already, and is another one"}
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	lines = lines[min(l.Size()-from, int64(len(lines))):]
	if len(lines) == 0 {
		return l, nil
	}
	data := bytes.Join(lines, nil)
	after := &position{tree: tree{end.tree.size, slices.Clone(end.tree.full)}, bytes: end.bytes + int64(len(data))}
	for _, line := range lines {
		after.tree.add(line)
	}
	next := &Log{store: l.store, find: l.find, known: l.known, key: key.Public()}
	next.end.Store(after)
	next.last, err = key.sign(&after.tree)
	if err != nil {
		return nil, err
	}
	// The checkpoint comes last: until then readers see the old log, and after a kill the same call does the same.
	if err := l.store.Append(ctx, RecordsName, end.bytes, data); err != nil {
		return nil, err
	}
	if have, err := l.publicKey(); err != nil || have != next.key {
		if err := l.store.Replace(ctx, KeyName, []byte(next.key+"\n")); err != nil {
			return nil, err
		}
	}
	return next, l.store.Replace(ctx, CheckpointName, next.last.Signed)
}

// Recover returns the lines behind the checkpoint if they and the records before them make a log of that size and
// root: then the checkpoint alone was rolled back. Otherwise it returns none.
func (l *Log) Recover(ctx context.Context, size int64, root string) ([][]byte, error) {
	var t tree
	var lost [][]byte
	for line, err := range l.lines(ctx) {
		if err != nil {
			return nil, err
		}
		if t.size == size {
			break
		}
		if t.size >= l.Size() {
			lost = append(lost, bytes.Clone(line))
		}
		t.add(line)
	}
	if t.size < size || t.root() != root {
		return nil, nil
	}
	return lost, nil
}

// lines yields the lines of the file of records, each with its line end and valid until the next; none without a
// file. A line that is longer than a record comes in parts.
func (l *Log) lines(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := l.store.Open(RecordsName)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(nil, err)
			}
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, MaxLine)
		for {
			line, err := r.ReadSlice('\n')
			if len(line) > 0 && !yield(line, nil) || errors.Is(err, io.EOF) {
				return
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				err = nil
			}
			if err := errors.Join(err, ctx.Err()); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// publicKey reads log.pub.
func (l *Log) publicKey() (string, error) {
	b, err := l.readSmall(KeyName)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Broken{What: KeyName + " is missing"}
	}
	key, whole := bytes.CutSuffix(b, []byte("\n"))
	if err == nil && !whole {
		return "", &Broken{What: KeyName + " does not hold a key"}
	}
	return string(key), err
}

// readSmall reads the checkpoint or the key, at most one byte more than either may have.
func (l *Log) readSmall(name string) ([]byte, error) {
	f, err := l.store.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
}

// A tree is the Merkle tree of RFC 6962, section 2.1, over the records so far.
type tree struct {
	size int64
	full []tlog.Hash // roots of its full subtrees, the largest first
}

func (t *tree) add(line []byte) {
	h := tlog.RecordHash(line)
	for n := t.size; n&1 == 1; n >>= 1 { // a subtree of the same height stands before it
		last := len(t.full) - 1
		h, t.full = tlog.NodeHash(t.full[last], h), t.full[:last]
	}
	t.full = append(t.full, h)
	t.size++
}

// root returns the root hash, base64; empty for none.
func (t *tree) root() string {
	if t.size == 0 {
		return ""
	}
	last := len(t.full) - 1
	h := t.full[last]
	for _, left := range slices.Backward(t.full[:last]) {
		h = tlog.NodeHash(left, h)
	}
	return h.String()
}
