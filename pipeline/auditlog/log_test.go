package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"rehydrate/manifest"
)

// memory is a folder in memory. With left above 0, that many Replace calls succeed, and no more.
type memory struct {
	files  map[string][]byte
	left   int
	onRead func(name string)
}

var errKilled = errors.New("killed")

func newMemory() *memory { return &memory{files: map[string][]byte{}, left: 1 << 30} }

func (m *memory) Read(_ context.Context, name string) ([]byte, error) {
	if m.onRead != nil {
		m.onRead(name)
	}
	b, ok := m.files[name]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return b, nil
}

func (m *memory) Replace(_ context.Context, name string, data []byte) error {
	if m.left--; m.left < 0 {
		return errKilled
	}
	m.files[name] = bytes.Clone(data)
	return nil
}

func (m *memory) List(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(m.files)), nil
}

func (m *memory) copy() *memory { return &memory{files: maps.Clone(m.files), left: 1 << 30} }

func testKey(t testing.TB, seed byte) *Key {
	t.Helper()
	k, err := NewKey(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// line is record n of a test log.
func line(t testing.TB, n int64, id string) []byte {
	t.Helper()
	e := Event{Seq: n, Time: time.Unix(1.7e9+n, 0).UTC(), Kind: Fetch, Posts: []Post{{ID: manifest.PostID(id)}},
		SHA256: fmt.Sprintf("%064x", n)}
	b, err := e.Line()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func lines(t testing.TB, from, to int64) [][]byte {
	t.Helper()
	var all [][]byte
	for n := from; n < to; n++ {
		all = append(all, line(t, n, fmt.Sprintf("p%d", n)))
	}
	return all
}

// written makes a log of n records and returns its folder.
func written(t testing.TB, n int64) (*memory, *Log) {
	t.Helper()
	m := newMemory()
	l, err := New(m).Append(t.Context(), testKey(t, 1), 0, lines(t, 0, n))
	if err != nil {
		t.Fatal(err)
	}
	return m, l
}

func TestAppendInAnySteps(t *testing.T) {
	const total = 700 // three files of records, one of them full twice over
	want, _ := written(t, total)
	for _, step := range []int64{1, 7, 255, 256, 257, 512, 699} {
		m := newMemory()
		l := New(m)
		for at := int64(0); at < total; at += step {
			var err error
			if l, err = l.Append(t.Context(), testKey(t, 1), at, lines(t, at, min(at+step, total))); err != nil {
				t.Fatalf("steps of %d: record %d: %v", step, at, err)
			}
		}
		if diff := cmp.Diff(want.files, m.files); diff != "" {
			t.Errorf("steps of %d: the files differ (-at once +in steps)\n%.500s", step, diff)
		}
	}
	names := slices.Sorted(maps.Keys(want.files))
	if diff := cmp.Diff([]string{"checkpoint", "log.pub", "records/000.jsonl", "records/001.jsonl", "records/002.jsonl",
		"tile/8/0/000", "tile/8/0/001", "tile/8/0/002", "tile/8/1/000"}, names); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}

// TestKnownRoots holds the tree against roots computed by RFC 6962's own definition.
func TestKnownRoots(t *testing.T) {
	var root func(records [][]byte) tlog.Hash
	root = func(records [][]byte) tlog.Hash {
		if len(records) == 1 {
			return tlog.RecordHash(records[0])
		}
		k := 1
		for 2*k < len(records) {
			k *= 2
		}
		return tlog.NodeHash(root(records[:k]), root(records[k:]))
	}
	for _, n := range []int64{1, 2, 3, 255, 256, 257, 600} {
		_, l := written(t, n)
		if want := root(lines(t, 0, n)).String(); l.Checkpoint().Root != want {
			t.Errorf("root of %d records is %s, want %s", n, l.Checkpoint().Root, want)
		}
	}
}

func TestAppendIsIdempotent(t *testing.T) {
	ctx := t.Context()
	m, l := written(t, 300)
	before := m.copy()
	if _, err := l.Append(ctx, testKey(t, 1), 250, lines(t, 250, 300)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.files, m.files); diff != "" {
		t.Errorf("adding what is there changed files:\n%.300s", diff)
	}
	other := [][]byte{line(t, 299, "other"), line(t, 300, "p300")}
	var broken *Broken
	if _, err := l.Append(ctx, testKey(t, 1), 299, other); !errors.As(err, &broken) || broken.Record != 299 {
		t.Errorf("adding another record 299: %v", err)
	}
	if _, err := l.Append(ctx, testKey(t, 1), 301, lines(t, 301, 302)); !errors.As(err, &broken) || broken.Record != 300 {
		t.Errorf("leaving out record 300: %v", err)
	}
	if _, err := l.Append(ctx, testKey(t, 1), 300, lines(t, 301, 302)); err == nil {
		t.Error("record 301 was added as record 300")
	}
	if diff := cmp.Diff(before.files, m.files); diff != "" {
		t.Errorf("what was refused changed files:\n%.300s", diff)
	}
}

// TestAppendKilled stops an Append at each of its writes: the log is what it was, what lies beyond it
// is known for what it is, and the same call made again completes it.
func TestAppendKilled(t *testing.T) {
	ctx := t.Context()
	want, _ := written(t, 600)
	kills := 0
	for n := 0; ; n++ {
		m, l := written(t, 200)
		m.left = n
		_, err := l.Append(ctx, testKey(t, 1), 200, lines(t, 200, 600))
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		kills++
		m.left = 1 << 30
		queue := lines(t, 200, 650) // more may have come since
		again, err := Open(ctx, m, Known{Size: 200, Root: l.Checkpoint().Root, Queue: queue})
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Verify(ctx); err != nil {
			t.Errorf("killed at write %d: %v", n, err)
		}
		if _, err := again.Append(ctx, testKey(t, 1), 200, lines(t, 200, 600)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.files, m.files); diff != "" {
			t.Errorf("killed at write %d, and completed (-want +got)\n%.300s", n, diff)
		}
	}
	if kills < 8 {
		t.Errorf("only %d kills", kills)
	}
}

// flip changes one byte of a file.
func flip(m *memory, name string, at int) {
	b := bytes.Clone(m.files[name])
	b[at] ^= 1
	m.files[name] = b
}

// edit rewrites the lines of a file of records.
func edit(m *memory, name string, change func([][]byte) [][]byte) {
	m.files[name] = slices.Concat(change(slices.Collect(bytes.Lines(m.files[name])))...)
}

// rewrite makes the folder that of a whole log with other records, signed with a key.
func rewrite(t *testing.T, m *memory, key *Key, records [][]byte) {
	t.Helper()
	clear(m.files)
	if _, err := New(m).Append(t.Context(), key, 0, records); err != nil {
		t.Fatal(err)
	}
}

// TestTampering does to a log of 600 records what somebody could do, and wants it named.
func TestTampering(t *testing.T) {
	older, _ := written(t, 400)
	for _, tt := range []struct {
		name   string
		do     func(t *testing.T, m *memory)
		record int64
		says   string
	}{
		{"record edited", func(t *testing.T, m *memory) {
			edit(m, "records/001.jsonl", func(l [][]byte) [][]byte { l[5] = line(t, 261, "other"); return l })
		}, 261, "not the record that was logged"},
		{"one bit of a record", func(t *testing.T, m *memory) { flip(m, "records/002.jsonl", 3) }, 512, "not the record that was logged"},
		{"record and its hash edited", func(t *testing.T, m *memory) {
			edit(m, "records/000.jsonl", func(l [][]byte) [][]byte { l[9] = line(t, 9, "other"); return l })
			h := tlog.RecordHash(line(t, 9, "other"))
			tile := bytes.Clone(m.files["tile/8/0/000"])
			copy(tile[9*32:], h[:])
			m.files["tile/8/0/000"] = tile
		}, 0, "tile/8/1/000 does not hold its hash"}, // the first of those below that hash
		{"record taken out", func(t *testing.T, m *memory) {
			edit(m, "records/000.jsonl", func(l [][]byte) [][]byte { return slices.Delete(l, 77, 78) })
		}, 77, "not the record that was logged"},
		{"record put in", func(t *testing.T, m *memory) {
			edit(m, "records/002.jsonl", func(l [][]byte) [][]byte { return slices.Insert(l, 3, line(t, 515, "new")) })
		}, 515, "not the record that was logged"},
		{"records swapped", func(t *testing.T, m *memory) {
			edit(m, "records/001.jsonl", func(l [][]byte) [][]byte { l[10], l[11] = l[11], l[10]; return l })
		}, 266, "not the record that was logged"},
		{"tail dropped", func(t *testing.T, m *memory) {
			edit(m, "records/002.jsonl", func(l [][]byte) [][]byte { return l[:40] })
		}, 552, "missing"},
		{"file of records gone", func(t *testing.T, m *memory) { delete(m.files, "records/001.jsonl") }, 256, "missing"},
		{"half a line", func(t *testing.T, m *memory) {
			m.files["records/002.jsonl"] = m.files["records/002.jsonl"][:len(m.files["records/002.jsonl"])-9]
		}, 599, "not the record that was logged"},
		{"tile edited", func(t *testing.T, m *memory) { flip(m, "tile/8/0/001", 33*32) }, 289, "tile/8/0/001 does not hold its hash"},
		{"upper tile edited", func(t *testing.T, m *memory) { flip(m, "tile/8/1/000", 40) }, 256, "tile/8/1/000 does not hold its hash"},
		{"tile gone", func(t *testing.T, m *memory) { delete(m.files, "tile/8/0/002") }, 512, "tile/8/0/002 does not hold its hash"},
		{"tile too long", func(t *testing.T, m *memory) {
			m.files["tile/8/0/002"] = append(bytes.Clone(m.files["tile/8/0/002"]), make([]byte, 32)...)
		}, 600, "tile/8/0/002 does not hold its hash"},
		{"checkpoint rolled back", func(t *testing.T, m *memory) { m.files[CheckpointName] = older.files[CheckpointName] }, 400, "older one"},
		{"all rolled back", func(t *testing.T, m *memory) { m.files = maps.Clone(older.files) }, 400, "older one"},
		{"all rolled back but for records", func(t *testing.T, m *memory) {
			kept := maps.Clone(m.files)
			m.files = maps.Clone(older.files)
			m.files["records/001.jsonl"] = kept["records/001.jsonl"]
		}, 400, "older one"},
		{"record after the end", func(t *testing.T, m *memory) {
			edit(m, "records/002.jsonl", func(l [][]byte) [][]byte { return append(l, line(t, 600, "new")) })
		}, 600, "beyond checkpoint"},
		{"checkpoint edited", func(t *testing.T, m *memory) { flip(m, CheckpointName, 30) }, 0, "vouches for nothing"},
		{"checkpoint gone", func(t *testing.T, m *memory) { delete(m.files, CheckpointName) }, 0, "missing"},
		{"signed anew with another key", func(t *testing.T, m *memory) { rewrite(t, m, testKey(t, 2), lines(t, 0, 600)) }, 0, "another key"},
		{"key exchanged", func(t *testing.T, m *memory) { m.files[KeyName] = []byte(testKey(t, 2).Public() + "\n") }, 0, "log.pub is not the key"},
		{"written anew with the same key", func(t *testing.T, m *memory) {
			records := lines(t, 0, 600)
			records[300] = line(t, 300, "other")
			rewrite(t, m, testKey(t, 1), records)
		}, 0, "written anew"},
		{"a file too many", func(t *testing.T, m *memory) { m.files["notes.txt"] = nil }, 600, "no file of the log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, l := written(t, 600)
			tt.do(t, m)
			err := check(t.Context(), m, Known{Keys: []string{l.Key()}, Size: 600, Root: l.Checkpoint().Root})
			var broken *Broken
			if !errors.As(err, &broken) || broken.Record != tt.record || !strings.Contains(broken.What, tt.says) {
				t.Errorf("got %v; want record %d, saying %q", err, tt.record, tt.says)
			}
		})
	}
	m, l := written(t, 600)
	if err := check(t.Context(), m, Known{Keys: []string{l.Key()}, Size: 600, Root: l.Checkpoint().Root}); err != nil {
		t.Errorf("the log as it was written: %v", err)
	}
}

func check(ctx context.Context, m *memory, known Known) error {
	l, err := Open(ctx, m, known)
	if err != nil {
		return err
	}
	return l.Verify(ctx)
}

// TestEveryBit flips bits of every file: each is found, and named no later than where it is.
func TestEveryBit(t *testing.T) {
	m, l := written(t, 300)
	known := Known{Keys: []string{l.Key()}, Size: 300, Root: l.Checkpoint().Root}
	random := rand.New(rand.NewPCG(7, 7))
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		for range 15 {
			at := random.IntN(len(m.files[name]))
			damaged := m.copy()
			flip(damaged, name, at)
			var broken *Broken
			if err := check(t.Context(), damaged, known); !errors.As(err, &broken) {
				t.Errorf("byte %d of %s flipped: %v", at, name, err)
			}
		}
	}
}

// TestRecordsOfDamagedLog reads a damaged log: what comes before the damage is read, and the damage named.
func TestRecordsOfDamagedLog(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(m *memory)
		before int64
	}{
		{"record", func(m *memory) {
			edit(m, "records/001.jsonl", func(l [][]byte) [][]byte { l[5] = line(t, 261, "other"); return l })
		}, 261},
		{"tail", func(m *memory) {
			edit(m, "records/001.jsonl", func(l [][]byte) [][]byte { return l[:20] })
		}, 276},
		{"tile", func(m *memory) { flip(m, "tile/8/0/001", 64) }, 0}, // without it no record is proven
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := written(t, 300)
			tt.do(m)
			l, err := Open(t.Context(), m, Known{})
			if err != nil {
				t.Fatal(err)
			}
			read := int64(0)
			for e, err := range l.Records(t.Context(), 0) {
				var broken *Broken
				if err != nil {
					if !errors.As(err, &broken) {
						t.Errorf("error %v, want *Broken", err)
					}
					break
				}
				if e.Seq != read {
					t.Fatalf("record %d after %d", e.Seq, read-1)
				}
				read++
			}
			if read != tt.before {
				t.Errorf("%d records were read, want %d", read, tt.before)
			}
		})
	}
}

func TestSince(t *testing.T) {
	ctx := t.Context()
	m := newMemory()
	l := New(m)
	kept := map[int64][]byte{}
	for at := int64(0); at < 600; at += 100 {
		var err error
		if l, err = l.Append(ctx, testKey(t, 1), at, lines(t, at, at+100)); err != nil {
			t.Fatal(err)
		}
		kept[l.Size()] = l.Checkpoint().Signed
	}
	for size, checkpoint := range kept {
		c, err := l.Since(ctx, checkpoint)
		if err != nil || c.Size != size {
			t.Errorf("since %d: %+v, %v", size, c, err)
		}
		proof, err := l.Consistency(ctx, size)
		root, _ := parseRoot(c.Root)
		if err != nil || tlog.CheckTree(proof, l.Size(), l.tree.Hash, size, root) != nil {
			t.Errorf("proof since %d: %v", size, err)
		}
	}
	for _, seq := range []int64{0, 255, 256, 599} {
		proof, err := l.Prove(ctx, seq)
		if err != nil || tlog.CheckRecord(proof, l.Size(), l.tree.Hash, seq, tlog.RecordHash(line(t, seq, fmt.Sprintf("p%d", seq)))) != nil {
			t.Errorf("proof of record %d: %v", seq, err)
		}
	}
	changed := lines(t, 0, 700)
	changed[150] = line(t, 150, "other")
	_, longer := written(t, 900)
	for _, tt := range []struct {
		name    string
		log     func() *Log
		earlier []byte
		record  int64
		says    string
	}{
		{"written anew", func() *Log { n := newMemory(); rewrite(t, n, testKey(t, 1), changed); return reopen(t, n) }, kept[300], 0, "records 0 to 299"},
		{"cut", func() *Log { return l }, longer.Checkpoint().Signed, 600, "tells of 900 records"},
		{"another key", func() *Log { n := newMemory(); rewrite(t, n, testKey(t, 2), lines(t, 0, 600)); return reopen(t, n) }, kept[300], 0, "another key"},
	} {
		_, err := tt.log().Since(ctx, tt.earlier)
		var broken *Broken
		if !errors.As(err, &broken) || broken.Record != tt.record || !strings.Contains(broken.What, tt.says) {
			t.Errorf("%s: %v; want record %d, saying %q", tt.name, err, tt.record, tt.says)
		}
	}
	if _, err := l.Since(ctx, []byte("no checkpoint")); err == nil || errors.As(err, new(*Broken)) {
		t.Errorf("a file that is no checkpoint: %v, want an error that is no damage of the log", err)
	}
	// Before the change the rewritten log goes on from the old one.
	n := newMemory()
	rewrite(t, n, testKey(t, 1), changed)
	if _, err := reopen(t, n).Since(ctx, kept[100]); err != nil {
		t.Errorf("since 100, with a change at 150: %v", err)
	}
}

func reopen(t *testing.T, m *memory) *Log {
	t.Helper()
	l, err := Open(t.Context(), m, Known{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOpen(t *testing.T) {
	ctx := t.Context()
	if _, err := Open(ctx, newMemory(), Known{}); !errors.Is(err, ErrNoLog) {
		t.Errorf("an empty folder: %v", err)
	}
	m, _ := written(t, 10)
	delete(m.files, CheckpointName)
	var broken *Broken
	if _, err := Open(ctx, m, Known{}); !errors.As(err, &broken) {
		t.Errorf("records without a checkpoint: %v", err)
	}
	if _, err := Open(ctx, m, Known{Queue: lines(t, 0, 10)}); !errors.Is(err, ErrNoLog) {
		t.Errorf("a killed first Append: %v", err)
	}
}

// TestRecover puts a checkpoint back to an older one of the same log.
func TestRecover(t *testing.T) {
	older, _ := written(t, 200)
	m, l := written(t, 600)
	m.files[CheckpointName] = older.files[CheckpointName]
	lost, err := reopen(t, m).Recover(t.Context(), 600, l.Checkpoint().Root)
	if diff := cmp.Diff(lines(t, 200, 600), lost); diff != "" || err != nil {
		t.Errorf("recovered: %v\n%.300s", err, diff)
	}
	flip(m, "records/002.jsonl", 200)
	if lost, err := reopen(t, m).Recover(t.Context(), 600, l.Checkpoint().Root); lost != nil || err != nil {
		t.Errorf("recovered %d records with a changed one among them, %v", len(lost), err)
	}
}

// TestAnyTwoHistories holds that a checkpoint agrees with a log exactly when it is of a beginning of it.
func TestAnyTwoHistories(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		same := rapid.Int64Range(0, 300).Draw(r, "same")
		old := same + rapid.Int64Range(0, 40).Draw(r, "old")
		now := same + rapid.Int64Range(0, 300).Draw(r, "now")
		if old == 0 || now == 0 {
			r.Skip("a log has a record")
		}
		first := append(lines(t, 0, same), others(t, same, old)...)
		a, err := New(newMemory()).Append(t.Context(), testKey(t, 1), 0, first)
		if err != nil {
			r.Fatal(err)
		}
		b, err := New(newMemory()).Append(t.Context(), testKey(t, 1), 0, lines(t, 0, now))
		if err != nil {
			r.Fatal(err)
		}
		_, err = b.Since(t.Context(), a.Checkpoint().Signed)
		if want := old == same; (err == nil) != want {
			r.Fatalf("%d records in common, %d then, %d now: %v", same, old, now, err)
		}
	})
}

func others(t testing.TB, from, to int64) [][]byte {
	var all [][]byte
	for n := from; n < to; n++ {
		all = append(all, line(t, n, "other"))
	}
	return all
}

func TestKey(t *testing.T) {
	k := testKey(t, 1)
	if again := testKey(t, 1); again.Public() != k.Public() {
		t.Error("the same randomness makes another key")
	}
	for _, verb := range []string{"%v", "%+v", "%s", "%#v", "%q"} {
		if text := fmt.Sprintf(verb, k); strings.Contains(text, "PRIVATE") || !strings.Contains(text, k.Public()) {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	again, err := ParseKey(k.Encode())
	if err != nil || again.Public() != k.Public() {
		t.Errorf("read back: %v", err)
	}
	private, _, _ := strings.Cut(string(k.Encode()), "\n")
	for _, bad := range []string{"", private + "\n", private + "\n" + testKey(t, 2).Public() + "\n", string(k.Encode()) + "x"} {
		if _, err := ParseKey([]byte(bad)); err == nil || strings.Contains(err.Error(), private) {
			t.Errorf("%d bytes that are no key: %v", len(bad), err)
		}
	}
}

// TestVerifyWhileAdded looks at a log that is added to between Open and Verify, before and after the checkpoint
// of that: it is whole. One that is written anew meanwhile is not.
func TestVerifyWhileAdded(t *testing.T) {
	ctx, key := t.Context(), testKey(t, 1)
	for left := range 5 {
		m, _ := written(t, 300)
		now := Known{Size: 300, Root: reopen(t, m).Checkpoint().Root}
		first := now
		first.Anew = func(context.Context) (Known, error) { return now, nil }
		l, err := Open(ctx, m, first)
		if err != nil {
			t.Fatal(err)
		}
		now.Queue = lines(t, 300, 310)
		m.left = left // files that the writer gets to write: records, tile, checkpoint
		if _, err := reopen(t, m).Append(ctx, key, 300, now.Queue); (err == nil) != (left >= 3) {
			t.Fatalf("%d files written: %v", left, err)
		}
		if err := l.Verify(ctx); err != nil {
			t.Errorf("%d files written: %v", left, err)
		}
	}
	m, l := written(t, 300)
	l.known.Anew = func(context.Context) (Known, error) { return Known{}, nil }
	rewrite(t, m, key, others(t, 0, 310))
	var broken *Broken
	if err := l.Verify(ctx); !errors.As(err, &broken) {
		t.Errorf("a log written anew: %v", err)
	}
}

// TestImpossibleSize signs checkpoints of more records than any log has: near the end of int64 a tree has no end.
func TestImpossibleSize(t *testing.T) {
	key := testKey(t, 1)
	for _, size := range []int64{1<<40 + 1, 1 << 62, 1<<63 - 1} {
		c, err := key.sign(tlog.Tree{N: size})
		if err != nil {
			t.Fatal(err)
		}
		m, _ := written(t, 3)
		m.files[CheckpointName] = c.Signed
		var broken *Broken
		if _, err := Open(t.Context(), m, Known{}); !errors.As(err, &broken) {
			t.Errorf("%d records: %v", size, err)
		}
	}
}

// TestEndlessRecords puts more behind a log than can be waiting: Verify reads no further than that.
func TestEndlessRecords(t *testing.T) {
	m, l := written(t, 256)
	for n := int64(1); n < 100; n++ {
		m.files[recordsName(n)] = bytes.Repeat([]byte{'x'}, 100)
	}
	read := 0
	m.onRead = func(name string) {
		if strings.HasPrefix(name, "records/") {
			read++
		}
	}
	var broken *Broken
	if err := l.Verify(t.Context()); !errors.As(err, &broken) || broken.Record != 256 || read > 3 {
		t.Errorf("%v after %d files", err, read)
	}
}

// TestNewKeyKilled kills the first Append with a new key before its checkpoint: the log is whole.
func TestNewKeyKilled(t *testing.T) {
	ctx, next := t.Context(), testKey(t, 2)
	m, l := written(t, 3)
	known := Known{Keys: []string{l.Key(), next.Public()}, Size: 3, Root: l.Checkpoint().Root, Queue: lines(t, 3, 4)}
	m.left = 3 // records, tile, log.pub
	if _, err := l.Append(ctx, next, 3, known.Queue); err == nil {
		t.Fatal("nothing was killed")
	}
	if err := check(ctx, m, known); err != nil {
		t.Error(err)
	}
	m.files[KeyName] = []byte(testKey(t, 3).Public() + "\n")
	var broken *Broken
	if err := check(ctx, m, known); !errors.As(err, &broken) {
		t.Errorf("with a third key: %v", err)
	}
}
