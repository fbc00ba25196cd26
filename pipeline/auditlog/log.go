package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// A Store is the folder that a log lies in. Names are slash-separated and relative to it.
type Store interface {
	// Read returns a file whole; fs.ErrNotExist when there is none. What follows the first MaxFile
	// bytes may be left out: no file of a log is so long.
	Read(ctx context.Context, name string) ([]byte, error)
	// Replace makes a file hold data, durably: readers see the old bytes or the new ones.
	Replace(ctx context.Context, name string, data []byte) error
	// List returns the names of all files, in byte order.
	List(ctx context.Context) ([]string, error)
}

// Names in the folder of a log.
const (
	CheckpointName = "checkpoint"
	KeyName        = "log.pub"
)

// MaxFile is more than any file of a log has, in bytes.
const MaxFile = tileWidth * MaxLine

// tileHeight makes tiles of 256 hashes, and files of as many records.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
)

// ErrNoLog means that the folder holds no log yet.
var ErrNoLog = errors.New("there is no audit log yet")

// Broken is the error of a log that is not what it was.
type Broken struct {
	Record int64  // the first record that can't be believed
	What   string // what is wrong with it
}

func (e *Broken) Error() string {
	return fmt.Sprintf("the audit log breaks at record %d: %s", e.Record, e.What)
}

// Known is what is known of a log from elsewhere: whoever changed its files did not change that.
type Known struct {
	Keys  []string // verifier keys that may have signed it; none for that of log.pub
	Size  int64    // how many records it had at least
	Root  string   // its root hash when it had that many, base64
	Queue [][]byte // lines that may be added next, the first as record Size: some of them may lie there already
	// Anew returns what is known by now, where somebody may be adding to the log; nil where nobody is.
	Anew func(context.Context) (Known, error)
}

// A Log is a log as it is at one checkpoint. The zero size is a log that has none yet. It is safe for use by
// several goroutines.
type Log struct {
	store Store
	known Known
	tree  tlog.Tree
	last  Checkpoint
	key   string
}

// Open opens the log that lies in s. Without files, and with nothing known of it, the error is ErrNoLog; it is
// *Broken when the checkpoint is missing or is not signed with a key that it may be signed with. Whether the rest
// agrees is not looked at: see Verify.
func Open(ctx context.Context, s Store, known Known) (*Log, error) {
	l := &Log{store: s, known: known}
	signed, err := s.Read(ctx, CheckpointName)
	if errors.Is(err, fs.ErrNotExist) {
		names, err := s.List(ctx)
		switch {
		case err != nil:
			return nil, err
		case known.Size > 0:
			return nil, &Broken{What: fmt.Sprintf("%s is missing, and %d records were published", CheckpointName, known.Size)}
		}
		for _, name := range names {
			if strings.HasPrefix(name, "records/") && len(known.Queue) == 0 {
				return nil, &Broken{What: CheckpointName + " is missing, and there are records"}
			}
		}
		return nil, ErrNoLog
	}
	if err != nil {
		return nil, err
	}
	keys := known.Keys
	if len(keys) == 0 {
		text, err := l.publicKey(ctx)
		if err != nil {
			return nil, err
		}
		keys = []string{text}
	}
	if l.last, l.key, err = ParseCheckpoint(signed, keys...); err != nil {
		return nil, &Broken{What: fmt.Sprintf("%s vouches for nothing: %v", CheckpointName, err)}
	}
	root, err := parseRoot(l.last.Root)
	l.tree = tlog.Tree{N: l.last.Size, Hash: root}
	return l, err
}

// publicKey reads log.pub.
func (l *Log) publicKey(ctx context.Context) (string, error) {
	b, err := l.store.Read(ctx, KeyName)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Broken{What: KeyName + " is missing"}
	}
	key, whole := strings.CutSuffix(string(b), "\n")
	if err == nil && !whole {
		return "", &Broken{What: KeyName + " does not hold a key"}
	}
	return key, err
}

// New is a log without records in s, to be appended to.
func New(s Store) *Log { return &Log{store: s} }

// Size returns the number of records.
func (l *Log) Size() int64 { return l.tree.N }

// Checkpoint returns the checkpoint that the log was opened with.
func (l *Log) Checkpoint() Checkpoint { return l.last }

// Key returns the verifier key that its checkpoint is signed with.
func (l *Log) Key() string { return l.key }

// Root returns the root hash of the first n records, base64, proven by the checkpoint; "" for none.
func (l *Log) Root(ctx context.Context, n int64) (string, error) {
	switch {
	case n < 0 || n > l.tree.N:
		return "", fmt.Errorf("root of %d records: the audit log has %d", n, l.tree.N)
	case n == 0:
		return "", nil
	}
	h, err := tlog.TreeHash(n, l.hashes(ctx))
	if err != nil {
		return "", l.locate(ctx, err)
	}
	return h.String(), nil
}

// Records yields the records from number first on. Each is checked against the checkpoint before it is
// yielded; the error that is yielded last is *Broken for one that does not agree. A damaged tile can
// leave nothing to check against: then none is yielded, and the error says where Verify finds it.
func (l *Log) Records(ctx context.Context, first int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for n := max(first, 0) / tileWidth; n*tileWidth < l.tree.N; n++ {
			lines, err := l.bundle(ctx, n)
			for i, line := range lines {
				seq := n*tileWidth + int64(i)
				if seq < first {
					continue
				}
				e, bad := parseRecord(line, seq)
				if !yield(e, bad) || bad != nil {
					return
				}
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

func parseRecord(line []byte, seq int64) (Event, error) {
	e, err := ParseLine(line)
	if err != nil {
		return Event{}, &Broken{Record: seq, What: err.Error()}
	}
	if e.Seq != seq {
		return Event{}, &Broken{Record: seq, What: fmt.Sprintf("it stands in the place of record %d", e.Seq)}
	}
	return e, nil
}

// bundle returns the lines of one file of records that count, those before an error in any case.
func (l *Log) bundle(ctx context.Context, n int64) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	width := min(l.tree.N-n*tileWidth, tileWidth)
	indexes := make([]int64, width)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, n*tileWidth+int64(i))
	}
	hashes, err := l.hashes(ctx).ReadHashes(indexes)
	if err != nil {
		return nil, l.locate(ctx, err)
	}
	lines, err := l.lines(ctx, n)
	if err != nil {
		return nil, err
	}
	for i, h := range hashes {
		seq := n*tileWidth + int64(i)
		switch {
		case i >= len(lines):
			return lines, &Broken{Record: seq, What: "it is missing"}
		case tlog.RecordHash(lines[i]) != h:
			return lines[:i], &Broken{Record: seq, What: "it is not the record that was logged"}
		}
	}
	return lines[:width], nil
}

// lines reads one file of records, what lies beyond the checkpoint too; none when there is no file.
func (l *Log) lines(ctx context.Context, n int64) ([][]byte, error) {
	b, err := l.store.Read(ctx, recordsName(n))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var lines [][]byte
	for line := range bytes.Lines(b) {
		lines = append(lines, line)
	}
	return lines, nil
}

// recordsName is the name of a file of records.
func recordsName(n int64) string {
	name := tlog.Tile{H: tileHeight, L: 0, N: n, W: tileWidth}.Path()
	return "records/" + strings.TrimPrefix(name, fmt.Sprintf("tile/%d/0/", tileHeight)) + ".jsonl"
}

// tileName is the name of the file of a tile, whole or not.
func tileName(t tlog.Tile) string {
	t.W = tileWidth
	return t.Path()
}

// hashes reads hashes that the checkpoint proves.
func (l *Log) hashes(ctx context.Context) tlog.HashReader {
	return tlog.TileHashReader(l.tree, &tiles{ctx: ctx, store: l.store})
}

// tiles reads tiles from their files, which may hold more by now than the tree that is asked for.
type tiles struct {
	ctx   context.Context // of the one call that it is made for
	store Store
}

func (t *tiles) Height() int                     { return tileHeight }
func (t *tiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (t *tiles) ReadTiles(want []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(want))
	for i, tile := range want {
		b, err := t.store.Read(t.ctx, tileName(tile))
		if err != nil {
			return nil, err
		}
		if len(b) < tile.W*tlog.HashSize {
			return nil, fmt.Errorf("%s has %d bytes, and %d are to be there", tileName(tile), len(b), tile.W*tlog.HashSize)
		}
		data[i] = b[:tile.W*tlog.HashSize]
	}
	return data, nil
}

// locate finds the record at which a log breaks of which err says that a hash can't be had.
func (l *Log) locate(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if verr := l.verify(ctx); verr != nil {
		return verr
	}
	return err
}

// Prove returns the proof of RFC 6962 that a record is in the log.
func (l *Log) Prove(ctx context.Context, seq int64) (tlog.RecordProof, error) {
	if seq < 0 || seq >= l.tree.N {
		return nil, fmt.Errorf("prove record %d: the audit log has %d", seq, l.tree.N)
	}
	proof, err := tlog.ProveRecord(l.tree.N, seq, l.hashes(ctx))
	if err != nil {
		return nil, l.locate(ctx, err)
	}
	return proof, nil
}

// Consistency returns the proof of RFC 6962 that the first n records, at least one, are a beginning of the log.
func (l *Log) Consistency(ctx context.Context, n int64) (tlog.TreeProof, error) {
	if n < 1 || n > l.tree.N {
		return nil, fmt.Errorf("prove the first %d records: the audit log has %d", n, l.tree.N)
	}
	proof, err := tlog.ProveTree(l.tree.N, n, l.hashes(ctx))
	if err != nil {
		return nil, l.locate(ctx, err)
	}
	return proof, nil
}

// Since proves that the log goes on from an earlier checkpoint, a signed note that somebody kept: the
// same key signed it, and its records are the first ones of this log. The error is *Broken when the
// log does not go on from there.
func (l *Log) Since(ctx context.Context, earlier []byte) (Checkpoint, error) {
	c, _, err := ParseCheckpoint(earlier, l.key)
	switch {
	case errors.Is(err, errOtherKey):
		return c, &Broken{What: "the earlier checkpoint is signed with another key than the log is now"}
	case err != nil:
		return c, fmt.Errorf("read the earlier checkpoint: %w", err)
	case c.Size > l.tree.N:
		return c, &Broken{Record: l.tree.N, What: fmt.Sprintf("the earlier checkpoint tells of %d records, the log has %d", c.Size, l.tree.N)}
	case c.Size == 0:
		return c, nil
	}
	root, err := parseRoot(c.Root)
	if err != nil {
		return c, err
	}
	proof, err := l.Consistency(ctx, c.Size)
	if err != nil {
		return c, err
	}
	if err := tlog.CheckTree(proof, l.tree.N, l.tree.Hash, c.Size, root); err != nil {
		return c, &Broken{What: fmt.Sprintf("records 0 to %d are not all those of the earlier checkpoint: the log was written anew", c.Size-1)}
	}
	return c, nil
}

// readOrNone reads a file, nothing when there is none.
func readOrNone(ctx context.Context, s Store, name string) ([]byte, error) {
	b, err := s.Read(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}
