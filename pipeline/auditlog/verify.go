package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Verify checks the whole log: every record against its hash, its place and the checkpoint, every
// tile, what is known of the log from elsewhere, and that nothing lies beyond the end but what was about
// to be added. The error is *Broken for what does not agree. A log that is added to meanwhile is looked at
// anew, and has to go on from this one. It holds 64 bytes a record in memory.
func (l *Log) Verify(ctx context.Context) error {
	const rounds = 20 // a writer that publishes all the while has each time to be faster than a look
	now, err := l, l.verify(ctx)
	for range rounds {
		var broken *Broken
		if l.known.Anew == nil || !errors.As(err, &broken) {
			return err
		}
		next, moved := now.anew(ctx)
		if !moved {
			return err
		}
		if now, err = next, next.verify(ctx); err != nil {
			continue
		}
		if root, rerr := now.Root(ctx, l.tree.N); l.tree.N > 0 && (rerr != nil || root != l.last.Root) {
			return &Broken{What: fmt.Sprintf("records 0 to %d are not those that they were a moment ago: the log was written anew", l.tree.N-1)}
		}
	}
	return err
}

// anew opens the log as it is by now, and reports whether it, or what is to be added to it, has grown.
func (l *Log) anew(ctx context.Context) (next *Log, moved bool) {
	known, err := l.known.Anew(ctx)
	if err != nil {
		return nil, false
	}
	known.Anew = l.known.Anew
	next, err = Open(ctx, l.store, known)
	if err != nil || next.tree.N < l.tree.N {
		return nil, false
	}
	end := func(l *Log) int64 { return l.known.Size + int64(len(l.known.Queue)) }
	return next, next.tree.N > l.tree.N || next.known.Size > l.known.Size || end(next) > end(l)
}

// verify is Verify of a log that nobody adds to.
func (l *Log) verify(ctx context.Context) error {
	if l.tree.N < l.known.Size {
		return &Broken{Record: l.tree.N, What: fmt.Sprintf("%s tells of %d records, and %d were published: it is an older one", CheckpointName, l.tree.N, l.known.Size)}
	}
	v := &verification{log: l, ctx: ctx, found: &forest{}}
	if err := v.readRecords(); err != nil {
		return err
	}
	root, err := v.found.root(l.tree.N)
	if err != nil {
		return err
	}
	if root != l.tree.Hash {
		return v.blame()
	}
	if err := v.checkKnown(); err != nil {
		return err
	}
	v.addQueue()
	if err := v.checkBeyond(); err != nil {
		return err
	}
	return v.checkTiles()
}

// A forest is the hashes of a tree, in memory, by stored index.
type forest struct {
	hashes []tlog.Hash
	size   int64
}

func (f *forest) add(line []byte) {
	// Only reading can fail, and forest.ReadHashes fails only for hashes that are not there yet.
	stored, err := tlog.StoredHashes(f.size, line, f)
	if err != nil {
		panic(err)
	}
	f.hashes = append(f.hashes, stored...)
	f.size++
}

func (f *forest) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(f.hashes)) {
			return nil, fmt.Errorf("there is no hash %d", index)
		}
		hashes[i] = f.hashes[index]
	}
	return hashes, nil
}

func (f *forest) root(n int64) (tlog.Hash, error) { return tlog.TreeHash(n, f) }

// A verification is one call of Verify.
type verification struct {
	ctx   context.Context // of that call
	log   *Log
	found *forest  // of the records that lie there
	extra [][]byte // lines beyond the checkpoint
}

// readRecords hashes the records that count and puts aside what lies beyond them. A record that is
// missing, or is not one, is where the log breaks, unless one before it was changed: blame sees to that.
func (v *verification) readRecords() error {
	size := v.log.tree.N
	var broken error
	for n := int64(0); len(v.extra) <= len(v.log.known.Queue); n++ { // after one too many there is no end to what may follow
		if err := v.ctx.Err(); err != nil {
			return err
		}
		lines, err := v.log.lines(v.ctx, n)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if v.found.size == size {
				v.extra = append(v.extra, line)
				continue
			}
			if broken == nil {
				_, broken = parseRecord(line, v.found.size)
			}
			v.found.add(line)
		}
		if len(lines) < tileWidth && n*tileWidth+int64(len(lines)) < size || len(lines) > tileWidth {
			break // the next file can't make up for it
		}
		if len(lines) == 0 {
			break
		}
	}
	if v.found.size < size {
		if err := v.firstChange(); err != nil {
			return err
		}
		return &Broken{Record: v.found.size, What: "it is missing"}
	}
	if broken != nil {
		if err := v.firstChange(); err != nil {
			return err
		}
	}
	return broken
}

// firstChange returns the first record that is not the one its tile has the hash of, if any.
func (v *verification) firstChange() error {
	for n := int64(0); n*tileWidth < v.found.size; n++ {
		data, err := v.tile(tlog.Tile{H: tileHeight, L: 0, N: n})
		if err != nil {
			return err
		}
		for i := int64(0); i < tileWidth && n*tileWidth+i < v.found.size; i++ {
			seq := n*tileWidth + i
			have := v.found.hashes[tlog.StoredHashIndex(0, seq)]
			if at := i * tlog.HashSize; int64(len(data)) >= at+tlog.HashSize && !bytes.Equal(data[at:at+tlog.HashSize], have[:]) {
				return &Broken{Record: seq, What: "it is not the record that was logged"}
			}
		}
	}
	return nil
}

// blame names where records that do not make the checkpoint's root begin to differ.
func (v *verification) blame() error {
	if err := v.firstChange(); err != nil {
		return err
	}
	// The records agree with their hashes: those were changed with them, or the checkpoint is another log's.
	if err := v.checkTiles(); err != nil {
		return err
	}
	return &Broken{What: fmt.Sprintf("records 0 to %d are not all those that %s vouches for", v.log.tree.N-1, CheckpointName)}
}

// checkKnown compares with what is known of the log from elsewhere.
func (v *verification) checkKnown() error {
	known := v.log.known
	if known.Size > 0 {
		root, err := v.found.root(known.Size)
		if err != nil {
			return err
		}
		if root.String() != known.Root {
			return &Broken{What: fmt.Sprintf("records 0 to %d are not all those that were published: the log was written anew", known.Size-1)}
		}
	}
	// A new key is there a moment before the first checkpoint that it signs.
	key, err := v.log.publicKey(v.ctx)
	if err == nil && key != v.log.key && !slices.Contains(known.Keys, key) {
		err = &Broken{What: KeyName + " is not the key that the log is signed with"}
	}
	return err
}

// addQueue adds the lines that a killed Append may have written already.
func (v *verification) addQueue() {
	done := min(v.log.tree.N-v.log.known.Size, int64(len(v.log.known.Queue)))
	for _, line := range v.log.known.Queue[done:] {
		v.found.add(line)
	}
}

// checkBeyond compares what lies beyond the checkpoint with what was about to be added.
func (v *verification) checkBeyond() error {
	for i, line := range v.extra {
		seq := v.log.tree.N + int64(i)
		if seq >= v.found.size || v.found.hashes[tlog.StoredHashIndex(0, seq)] != tlog.RecordHash(line) {
			return &Broken{Record: seq, What: fmt.Sprintf("it lies beyond %s, which is an older one or was never to cover it", CheckpointName)}
		}
	}
	return nil
}

// tile reads the file of a tile; nothing when there is none.
func (v *verification) tile(t tlog.Tile) ([]byte, error) {
	return readOrNone(v.ctx, v.log.store, tileName(t))
}

// checkTiles compares every tile with the hashes of the records, and the files with those that are to be there.
func (v *verification) checkTiles() error {
	names, err := v.log.store.List(v.ctx)
	if err != nil {
		return err
	}
	expected := map[string]bool{CheckpointName: true, KeyName: true}
	for n := int64(0); n*tileWidth < v.found.size; n++ {
		expected[recordsName(n)] = true
	}
	need := map[string]int{}
	for _, t := range tlog.NewTiles(tileHeight, 0, v.log.tree.N) {
		need[tileName(t)] = t.W
	}
	for _, t := range tlog.NewTiles(tileHeight, 0, v.found.size) {
		expected[tileName(t)] = true
		if err := v.checkTile(t, need[tileName(t)]); err != nil {
			return err
		}
	}
	for _, name := range names {
		if !expected[name] {
			return &Broken{Record: v.log.tree.N, What: fmt.Sprintf("%q is no file of the log", name)}
		}
	}
	return nil
}

// checkTile compares one tile, which has to hold need hashes and may hold all of t.
func (v *verification) checkTile(t tlog.Tile, need int) error {
	data, err := v.tile(t)
	if err != nil {
		return err
	}
	want, err := tlog.ReadTileData(t, v.found)
	if err != nil {
		return err
	}
	span := int64(1) << (tileHeight * t.L) // records under a hash of the tile
	for i := range max(need, (len(data)+tlog.HashSize-1)/tlog.HashSize) {
		at := i * tlog.HashSize
		if at+tlog.HashSize > min(len(data), len(want)) || !bytes.Equal(data[at:at+tlog.HashSize], want[at:at+tlog.HashSize]) {
			return &Broken{Record: (t.N*tileWidth + int64(i)) * span, What: fmt.Sprintf("%s does not hold its hash", tileName(t))}
		}
	}
	return nil
}
