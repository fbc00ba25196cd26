package auditlog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"rehydrate/manifest"
)

// A Store is the folder of a log.
type Store interface {
	Open(name string) (io.ReadCloser, error) // fs.ErrNotExist when there is none
	List(ctx context.Context) ([]string, error)
	// Replace makes a file hold data, durably: readers see the old bytes or the new ones.
	Replace(ctx context.Context, name string, data []byte) error
	// Append writes data after the first at bytes of a file, durably, and drops what followed them.
	Append(ctx context.Context, name string, at int64, data []byte) error
}

// The names in the folder of a log.
// RecordsName is the file with the records.
const RecordsName = "records.jsonl"

const keyName = "log.pub"

// CheckpointName is the file with the size and root of the log, signed. Where there is a log, it is there.
const CheckpointName = "checkpoint"

// SealName is a file of the workspace that lies in the folder of its log. A Store does not list it.
const SealName = "seal.json"

// StatementName is the name of a signed statement that a record names by its sha256. With .sig it is its signature's.
func StatementName(digest string) string { return "lifts/" + digest + ".json" }

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

// rewritten is what is wrong with a log whose first records are others now.
const rewritten = "records 0 to %d are not all those %s: the log was written again"

func brokenAt(record int64, what string, args ...any) error {
	return &Broken{Record: record, What: fmt.Sprintf(what, args...)}
}

// Known is what is known of a log from another source, which a change of its files does not reach.
type Known struct {
	Keys  []string // verifier keys that may have signed it; none means the key of log.pub
	Size  int64    // how many records it had at least
	Root  string   // its root hash when it had that many, base64
	Queue [][]byte // lines that may be added next, the first as record Size: some may be there already
}

// A Log is a log as it is at one checkpoint, for one goroutine.
type Log struct {
	store Store
	find  func(context.Context) (Known, error)
	known Known
	last  Checkpoint

	checked bool
	tree    hashes // of the records that count, once they are checked
	bytes   int64  // their length
	beyond  []byte // what follows them, as far as it can matter
}

// Open opens the log in s. Known returns what is known of it by now. Without files, and with nothing known, it returns
// a log without records and ErrNoLog. The error is *Broken when the checkpoint is missing or is not signed with one of
// the keys. Open does not check the records: see Verify.
func Open(ctx context.Context, s Store, known func(context.Context) (Known, error)) (*Log, error) {
	l := &Log{store: s, find: known}
	var err error
	l.known, err = known(ctx)
	if err != nil {
		return nil, err
	}
	signed, err := l.readSmall(CheckpointName)
	if errors.Is(err, fs.ErrNotExist) {
		err := l.check(ctx)
		if err == nil && len(l.beyond) > 0 && len(l.known.Queue) == 0 { // a first Append that was killed has a queue
			err = &Broken{What: CheckpointName + " is missing, and there are records"}
		}
		return l, cmp.Or(err, ErrNoLog)
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
	l.last, err = parseCheckpoint(signed, keys...)
	if err != nil {
		return nil, brokenAt(0, "%s vouches for nothing: %v", CheckpointName, err)
	}
	return l, nil
}

// Size returns the number of records.
func (l *Log) Size() int64 { return l.last.Size }

// Checkpoint returns the checkpoint of the log.
func (l *Log) Checkpoint() Checkpoint { return l.last }

// Verify checks every record and its place, all of them against the checkpoint and what is known from elsewhere, and
// that nothing else is there but records that were about to be added. The error is *Broken if they do not agree. A
// writer that is at work meanwhile does no harm.
func (l *Log) Verify(ctx context.Context) error {
	for _, err := range l.Records(ctx, 0) {
		if err != nil {
			return err
		}
	}
	key, err := l.publicKey()
	if err != nil {
		return err
	}
	// A writer stores its queue and its key before it writes here. So what is known now, after the records and
	// log.pub were read, explains all that a writer added to them.
	now, err := l.find(ctx)
	if err != nil {
		return err
	}
	if key != l.last.Key && !slices.Contains(now.Keys, key) {
		return &Broken{What: keyName + " is not the key that the log is signed with"}
	}
	// Once a later checkpoint was published, the queue of this one is gone, and what follows it is not judged.
	if done := l.Size() - now.Size; done >= 0 {
		queue := bytes.Join(now.Queue[min(done, int64(len(now.Queue))):], nil)
		if !bytes.HasPrefix(queue, l.beyond) {
			return brokenAt(l.Size(), "it lies beyond %s, which is an older one or was never to cover it",
				CheckpointName)
		}
	}
	// Another file in the folder could carry content to whoever gets the log.
	names, err := l.store.List(ctx)
	for _, name := range names {
		if !slices.Contains([]string{RecordsName, CheckpointName, keyName}, name) && !l.isStatement(name) {
			return brokenAt(l.Size(), "%q does not belong to the log", name)
		}
	}
	return err
}

// isStatement reports whether a file is a statement that has its digest for a name, or the signature beside one.
func (l *Log) isStatement(name string) bool {
	statement := strings.TrimSuffix(name, manifest.SignatureSuffix)
	f, err := l.store.Open(statement)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return err == nil && statement == StatementName(hex.EncodeToString(sum.Sum(nil)))
}

// check holds the records that count against the checkpoint and what is known, once.
func (l *Log) check(ctx context.Context) error {
	// Reading all of them takes long, and what is added later does not change what was checked.
	if l.checked {
		return nil
	}
	if l.Size() < l.known.Size {
		return brokenAt(l.Size(), "%s has %d records, and %d were published: it is missing or an older one",
			CheckpointName,
			l.Size(), l.known.Size)
	}
	var tree hashes
	var n, end int64
	var beyond []byte
	for line, err := range l.lines(ctx) {
		if err != nil {
			return err
		}
		if n < l.Size() {
			tree.add(n, line)
			end += int64(len(line))
			n++
			continue
		}
		// Verify compares these bytes with the queue: one byte more than the queue has is enough.
		beyond = append(beyond, line...)
		if len(beyond) > len(l.known.Queue)*maxLine {
			break
		}
	}
	if n < l.Size() || tree.root(n) != l.last.Root {
		// The first record that is malformed or out of its place is where the log breaks.
		for _, err := range l.parsed(ctx, 0) {
			if err != nil {
				return err
			}
		}
		if n < l.Size() {
			return brokenAt(n, "it is missing")
		}
		// All are well formed: a changed one cannot be distinguished from the rest.
		return brokenAt(0, "records 0 to %d are not all those that %s vouches for", n-1, CheckpointName)
	}
	if tree.root(l.known.Size) != l.known.Root {
		return brokenAt(0, rewritten, l.known.Size-1, "that were published")
	}
	l.checked, l.tree, l.bytes, l.beyond = true, tree, end, beyond
	return nil
}

// parsed yields the records that count from number first on, not held against the checkpoint.
func (l *Log) parsed(ctx context.Context, first int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seq := int64(0)
		for line, err := range l.lines(ctx) {
			if seq == l.Size() {
				return
			}
			var e Event
			if err == nil && seq >= first { // what is before it was parsed when it was added
				e, err = parseRecord(line, seq)
			}
			// The first error is the place where the log breaks: every reader stops there.
			if (seq >= first || err != nil) && !yield(e, err) {
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

// Root returns the root hash of the first n records, base64, once all are checked; empty for none. n is at most Size.
func (l *Log) Root(ctx context.Context, n int64) (string, error) {
	if err := l.check(ctx); err != nil {
		return "", err
	}
	return l.tree.root(n), nil
}

// Records yields the records from number first on. The error is *Broken, and nothing is yielded, when any does not
// agree with the checkpoint.
func (l *Log) Records(ctx context.Context, first int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := l.check(ctx); err != nil {
			yield(Event{}, err)
			return
		}
		l.parsed(ctx, first)(yield)
	}
}

// Since proves that the log continues an earlier checkpoint that an auditor kept, signed with the same key. The error
// is *Broken when it does not.
func (l *Log) Since(ctx context.Context, earlier []byte) (Checkpoint, error) {
	c, err := parseCheckpoint(earlier, l.last.Key)
	switch {
	case errors.Is(err, errOtherKey) && originOf(earlier) != l.last.Origin:
		return c, brokenAt(0, "the earlier checkpoint is of another log: of another workspace, or from "+
			"before this one got a new key")
	case errors.Is(err, errOtherKey):
		return c, brokenAt(0, "the earlier checkpoint is signed with another key than the log is now")
	case err != nil:
		return c, fmt.Errorf("read the earlier checkpoint: %w", err)
	case c.Size > l.Size():
		return c, brokenAt(l.Size(), "the earlier checkpoint has %d records, the log has %d", c.Size, l.Size())
	}
	root, err := l.Root(ctx, c.Size)
	if err == nil && root != c.Root {
		err = brokenAt(0, rewritten, c.Size-1, "of the earlier checkpoint")
	}
	return c, err
}

// Append adds records: line i becomes record from+i, and must say so. Lines that the log has already are
// skipped; a line that differs from the log's is *Broken, and so is a gap.
func (l *Log) Append(ctx context.Context, key *Key, from int64, lines [][]byte) error {
	if from > l.Size() {
		return brokenAt(l.Size(), "it is missing, and record %d is to be added", from)
	}
	if err := l.check(ctx); err != nil {
		return err
	}
	// Hashes are only added: the log's own tree is as long as before until everything is written.
	tree := l.tree
	var data []byte
	for i, line := range lines {
		seq := from + int64(i)
		if _, err := parseRecord(line, seq); err != nil {
			return fmt.Errorf("add to the audit log: %w", err)
		}
		if seq >= l.Size() {
			tree.add(seq, line)
			data = append(data, line...)
		} else if tree[tlog.StoredHashIndex(0, seq)] != tlog.RecordHash(line) {
			return brokenAt(seq, "it is there already, and is another one")
		}
	}
	if len(data) == 0 {
		return nil
	}
	size := from + int64(len(lines))
	last, err := key.sign(size, tree.root(size))
	if err != nil {
		return err
	}
	// The checkpoint comes last: until then readers see the old log, and after a kill the same call does the same.
	if err := l.store.Append(ctx, RecordsName, l.bytes, data); err != nil {
		return err
	}
	// A lost key was replaced. Readers accept either until the checkpoint is there.
	if have, err := l.publicKey(); err != nil || have != key.public {
		if err := l.store.Replace(ctx, keyName, []byte(key.public+"\n")); err != nil {
			return err
		}
	}
	if err := l.store.Replace(ctx, CheckpointName, last.Signed); err != nil {
		return err
	}
	l.last, l.tree, l.bytes, l.beyond = last, tree, l.bytes+int64(len(data)), nil
	return nil
}

// Recover returns the records behind the checkpoint if they and those before them make a log of that size and
// root, else none.
func (l *Log) Recover(ctx context.Context, size int64, root string) ([]Event, error) {
	// If they do, the checkpoint alone was rolled back.
	whole := &Log{store: l.store, last: Checkpoint{Size: size, Root: root}}
	var lost []Event
	for e, err := range whole.Records(ctx, l.Size()) {
		if errors.As(err, new(*Broken)) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		lost = append(lost, e)
	}
	return lost, nil
}

// Beyond returns the records behind the first n, as far as they are whole and in their places: what was added before the
// checkpoint was lost, or rolled back. Nothing vouches for them.
func (l *Log) Beyond(ctx context.Context, n int64) (events []Event, err error) {
	seq := int64(0)
	for line, err := range l.lines(ctx) {
		if err != nil {
			return nil, err
		}
		if seq >= n {
			e, wrong := parseRecord(line, seq)
			if wrong != nil {
				break
			}
			events = append(events, e)
		}
		seq++
	}
	return events, nil
}

// lines yields the lines of the file of records, each with its line end and valid until the next; none without a file.
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
		r := bufio.NewReaderSize(f, maxLine)
		for {
			line, err := r.ReadSlice('\n')
			if len(line) > 0 && !yield(line, nil) || errors.Is(err, io.EOF) {
				return
			}
			// A line that is longer than a record comes in parts, each malformed: it may have no end.
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
	b, err := l.readSmall(keyName)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Broken{What: keyName + " is missing"}
	}
	key, whole := bytes.CutSuffix(b, []byte("\n"))
	if err == nil && !whole {
		return "", &Broken{What: keyName + " does not hold a key"}
	}
	return string(key), err
}

// readSmall reads the checkpoint or the key.
func (l *Log) readSmall(name string) ([]byte, error) {
	f, err := l.store.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than either may have is enough to refuse it.
	return io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
}

// hashes are those of the Merkle tree of RFC 6962, section 2.1, as tlog stores them: 64 bytes a record.
type hashes []tlog.Hash

// ReadHashes is for tlog.
func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	read := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		read[i] = h[at]
	}
	return read, nil
}

// add adds record n, the next one.
func (h *hashes) add(n int64, line []byte) {
	stored, _ := tlog.StoredHashes(n, line, *h) // an error could only come from ReadHashes, which has none
	*h = append(*h, stored...)
}

// root returns the root hash of the first n records, base64; empty for none.
func (h hashes) root(n int64) string {
	if n == 0 {
		return ""
	}
	hash, _ := tlog.TreeHash(n, h)
	return hash.String()
}
