package auditlog

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Append adds records: line i becomes record from+i, and must say so. Lines that the log has already are
// passed over; one that it has otherwise is *Broken, and so is a gap. The checkpoint, signed with
// key, is written last: until then readers see the old log, and the same call made again after a
// kill does the same. It returns the log as it is now.
func (l *Log) Append(ctx context.Context, key *Key, from int64, lines [][]byte) (*Log, error) {
	if from > l.tree.N {
		return nil, &Broken{Record: l.tree.N, What: fmt.Sprintf("it is missing, and record %d is to be added", from)}
	}
	fresh, err := l.fresh(ctx, from, lines)
	if err != nil {
		return nil, err
	}
	if len(fresh) == 0 {
		return l, nil
	}
	a := &addition{ctx: ctx, old: l, size: l.tree.N, hashes: map[int64]tlog.Hash{}}
	for _, line := range fresh {
		if err := a.add(line); err != nil {
			return nil, err
		}
	}
	next := &Log{store: l.store, known: l.known, tree: tlog.Tree{N: a.size}, key: key.Public()}
	if next.tree.Hash, err = tlog.TreeHash(a.size, a); err != nil {
		return nil, err
	}
	if next.last, err = key.sign(next.tree); err != nil {
		return nil, err
	}
	if err := a.writeRecords(fresh); err != nil {
		return nil, err
	}
	if err := a.writeTiles(); err != nil {
		return nil, err
	}
	public := []byte(key.Public() + "\n")
	if have, err := l.store.Read(ctx, KeyName); err != nil || !bytes.Equal(have, public) {
		if err := l.store.Replace(ctx, KeyName, public); err != nil {
			return nil, err
		}
	}
	return next, l.store.Replace(ctx, CheckpointName, next.last.Signed)
}

// fresh returns the lines that the log does not have yet.
func (l *Log) fresh(ctx context.Context, from int64, lines [][]byte) ([][]byte, error) {
	for i, line := range lines {
		if _, err := parseRecord(line, from+int64(i)); err != nil {
			return nil, fmt.Errorf("add to the audit log: %w", err)
		}
	}
	for n := from / tileWidth; n*tileWidth < l.tree.N && len(lines) > 0; n++ {
		have, err := l.bundle(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, line := range have[from-n*tileWidth:] {
			if len(lines) == 0 {
				break
			}
			if !bytes.Equal(line, lines[0]) {
				return nil, &Broken{Record: from, What: "it is there already, and is another one"}
			}
			from, lines = from+1, lines[1:]
		}
	}
	return lines, nil
}

// An addition is a log with the records that are being added to it, in memory.
type addition struct {
	ctx    context.Context // of the one call of Append
	old    *Log
	size   int64
	hashes map[int64]tlog.Hash // those that the old log does not have, by stored index
}

func (a *addition) add(line []byte) error {
	stored, err := tlog.StoredHashes(a.size, line, a)
	if err != nil {
		return err
	}
	at := tlog.StoredHashIndex(0, a.size)
	for i, h := range stored {
		a.hashes[at+int64(i)] = h
	}
	a.size++
	return nil
}

// ReadHashes returns new hashes, and old ones that the old checkpoint proves.
func (a *addition) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	var old, where []int64
	for i, index := range indexes {
		h, ok := a.hashes[index]
		if !ok {
			old, where = append(old, index), append(where, int64(i))
		}
		hashes[i] = h
	}
	if len(old) == 0 {
		return hashes, nil
	}
	found, err := a.old.hashes(a.ctx).ReadHashes(old)
	if err != nil {
		return nil, a.old.locate(a.ctx, err)
	}
	for i, h := range found {
		hashes[where[i]] = h
		a.hashes[old[i]] = h
	}
	return hashes, nil
}

// writeRecords writes the files of records that change, each whole.
func (a *addition) writeRecords(fresh [][]byte) error {
	for n := a.old.tree.N / tileWidth; n*tileWidth < a.size; n++ {
		var lines [][]byte
		if n*tileWidth < a.old.tree.N {
			var err error
			if lines, err = a.old.bundle(a.ctx, n); err != nil {
				return err
			}
		}
		room := min(tileWidth-len(lines), len(fresh))
		lines, fresh = append(lines, fresh[:room]...), fresh[room:]
		if err := a.old.store.Replace(a.ctx, recordsName(n), slices.Concat(lines...)); err != nil {
			return err
		}
	}
	return nil
}

// writeTiles writes the tiles that change, each whole.
func (a *addition) writeTiles() error {
	for _, t := range tlog.NewTiles(tileHeight, a.old.tree.N, a.size) {
		data, err := tlog.ReadTileData(t, a)
		if err != nil {
			return err
		}
		if err := a.old.store.Replace(a.ctx, tileName(t), data); err != nil {
			return err
		}
	}
	return nil
}

// Recover returns the lines that lie beyond the checkpoint and make, with the records before them, a
// log of that size and root: what is left of one whose checkpoint alone was rolled back. None when they do not.
func (l *Log) Recover(ctx context.Context, size int64, root string) ([][]byte, error) {
	a := &addition{ctx: ctx, old: l, size: l.tree.N, hashes: map[int64]tlog.Hash{}}
	var lines [][]byte
	for n := l.tree.N / tileWidth; a.size < size; n++ {
		have, err := l.lines(ctx, n)
		if err != nil {
			return nil, err
		}
		skip := max(0, l.tree.N-n*tileWidth)
		if int64(len(have)) <= skip {
			return nil, nil
		}
		for _, line := range have[skip:min(int64(len(have)), size-n*tileWidth)] {
			if _, err := parseRecord(line, a.size); err != nil {
				return nil, nil
			}
			if err := a.add(line); err != nil {
				return nil, err
			}
			lines = append(lines, line)
		}
	}
	h, err := tlog.TreeHash(a.size, a)
	if err != nil || h.String() != root {
		return nil, err
	}
	return lines, nil
}
