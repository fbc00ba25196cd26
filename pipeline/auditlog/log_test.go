package auditlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/mod/sumdb/note"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// memory is a folder in memory. After left writes one fails, and all that follow, unless it fails once; of an Append
// that fails the first half lands.
type memory struct {
	files map[string][]byte
	left  int
	once  bool
	bad   string // a file that can't be read, or opened
}

var (
	errKilled = errors.New("killed")
	errDisk   = errors.New("input/output error")
)

func newMemory() *memory { return &memory{files: map[string][]byte{}, left: 1 << 30} }

func (m *memory) Open(name string) (io.ReadCloser, error) {
	b, ok := m.files[name]
	if m.bad == "open "+name {
		return nil, errDisk
	}
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	if name == m.bad {
		return io.NopCloser(iotest.ErrReader(errDisk)), nil
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (m *memory) Replace(_ context.Context, name string, data []byte) error {
	if m.fails() {
		return errKilled
	}
	m.files[name] = bytes.Clone(data)
	return nil
}

func (m *memory) Append(_ context.Context, name string, at int64, data []byte) error {
	if m.fails() {
		m.files[name] = slices.Concat(m.files[name][:at], data[:len(data)/2])
		return errKilled
	}
	m.files[name] = slices.Concat(m.files[name][:at], data)
	return nil
}

func (m *memory) fails() bool {
	m.left--
	return m.left == -1 || m.left < 0 && !m.once
}

func (m *memory) List(context.Context) ([]string, error) {
	if m.bad == "list" {
		return nil, errDisk
	}
	return slices.Sorted(maps.Keys(m.files)), nil
}

// known is what is known of a log, and stays so.
func known(k Known) func(context.Context) (Known, error) {
	return func(context.Context) (Known, error) { return k, nil }
}

func (m *memory) copy() *memory { return &memory{files: maps.Clone(m.files), left: 1 << 30} }

// testKey is the key of that number.
func testKey(t testing.TB, n int) *Key {
	t.Helper()
	for len(testKeys) <= n {
		k, err := NewKey()
		testkit.OK(t, err)
		testKeys = append(testKeys, k)
	}
	return testKeys[n]
}

var testKeys []*Key

// line is record n of a test log.
func line(t testing.TB, n int64, id string) []byte {
	t.Helper()
	e := Event{Seq: n, Time: time.Unix(1.7e9+n, 0).UTC(), Kind: Fetch, Posts: []Post{{ID: manifest.PostID(id)}},
		SHA256: fmt.Sprintf("%064x", n)}
	b, err := e.Line()
	testkit.OK(t, err)
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
	l := &Log{store: m, find: known(Known{})}
	testkit.OK(t, l.Append(t.Context(), testKey(t, 1), 0, lines(t, 0, n)))
	return m, l
}

func TestAppendInAnySteps(t *testing.T) {
	const total = 70
	want, _ := written(t, total)
	for _, step := range []int64{1, 7, 69} {
		m := newMemory()
		l := &Log{store: m}
		for at := int64(0); at < total; at += step {
			if at > total/2 { // another process goes on
				l = reopen(t, m)
			}
			testkit.OK(t, l.Append(t.Context(), testKey(t, 1), at, lines(t, at, min(at+step, total))))
		}
		testkit.Same(t, fmt.Sprintf("files in steps of %d", step), want.files, m.files)
	}
	testkit.Same(t, "files", []string{CheckpointName, keyName, RecordsName}, slices.Sorted(maps.Keys(want.files)))
}

func TestAppendIsIdempotent(t *testing.T) {
	ctx := t.Context()
	m, _ := written(t, 300)
	l := reopen(t, m)
	before := m.copy()
	for _, part := range [][2]int64{{0, 300}, {250, 300}, {299, 300}, {300, 300}, {250, 260}} {
		testkit.OK(t, l.Append(ctx, testKey(t, 1), part[0], lines(t, part[0], part[1])))
	}
	other := [][]byte{line(t, 299, "other"), line(t, 300, "p300")}
	breaks(t, l.Append(ctx, testKey(t, 1), 299, other), 299, "another one")
	breaks(t, l.Append(ctx, testKey(t, 1), 301, lines(t, 301, 302)), 300, "missing")
	breaks(t, l.Append(ctx, testKey(t, 1), 300, lines(t, 301, 302)), 300, "in the place of record 301")
	testkit.Same(t, "files after records that were there, or were refused", before.files, m.files)
}

// TestAppendKilled stops an Append at each of its writes, or lets that write fail alone: the log is what it was, what
// lies beyond it is known for what it is, and the same call made again completes it.
func TestAppendKilled(t *testing.T) {
	ctx := t.Context()
	want := newMemory()
	rewrite(t, want, testKey(t, 2), lines(t, 0, 60))
	for _, once := range []bool{false, true} {
		for n := range 3 { // the records, log.pub, the checkpoint
			m, l := written(t, 20)
			m.left, m.once = n, once
			if err := l.Append(ctx, testKey(t, 2), 20, lines(t, 20, 60)); !errors.Is(err, errKilled) || l.Size() != 20 {
				t.Fatalf("write %d failed: %d records, %v", n, l.Size(), err)
			}
			m.left = 1 << 30
			// More may have come since.
			k := Known{Keys: []string{l.Checkpoint().Key, testKey(t, 2).Public()}, Size: 20, Root: l.Checkpoint().Root,
				Queue: lines(t, 20, 65)}
			again, err := Open(ctx, m, known(k))
			testkit.OK(t, err, again.Verify(ctx))
			testkit.Same(t, "records", int64(20), again.Size())
			testkit.OK(t, again.Append(ctx, testKey(t, 2), 20, lines(t, 20, 60)))
			testkit.Same(t, fmt.Sprintf("files after write %d failed, and then completed", n), want.files, m.files)
		}
	}
}

// breaks wants the error of a log that breaks at a record.
func breaks(t *testing.T, err error, record int64, says string) {
	t.Helper()
	var broken *Broken
	if !errors.As(err, &broken) || broken.Record != record || !strings.Contains(broken.What, says) {
		t.Errorf("got %v; want record %d, saying %q", err, record, says)
	}
}

// flip changes one byte of a file.
func flip(m *memory, name string, at int) {
	b := bytes.Clone(m.files[name])
	b[at] ^= 1
	m.files[name] = b
}

// edit rewrites the records.
func edit(m *memory, change func([][]byte) [][]byte) {
	m.files[RecordsName] = slices.Concat(change(slices.Collect(bytes.Lines(m.files[RecordsName])))...)
}

// rewrite makes the folder that of a whole log with other records, signed with a key.
func rewrite(t *testing.T, m *memory, key *Key, records [][]byte) {
	t.Helper()
	clear(m.files)
	testkit.OK(t, (&Log{store: m}).Append(t.Context(), key, 0, records))
}

// TestTampering does to a log of 600 records what somebody could do, and wants it named.
func TestTampering(t *testing.T) {
	type list = [][]byte
	older, _ := written(t, 400)
	edited := func(change func(list) list) func(*memory) { return func(m *memory) { edit(m, change) } }
	put := func(name string, b []byte) func(*memory) { return func(m *memory) { m.files[name] = b } }
	again := func(key int, records list) func(*memory) {
		return func(m *memory) { rewrite(t, m, testKey(t, key), records) }
	}
	other := lines(t, 0, 600)
	other[300] = line(t, 300, "other")
	for _, tt := range []struct {
		name   string
		do     func(m *memory)
		record int64
		says   string
	}{
		{"nothing", func(*memory) {}, 0, ""},
		{"record edited", edited(func(l list) list { l[61] = line(t, 61, "other"); return l }), 0,
			"not all those that checkpoint vouches for"},
		{"one bit of a record", func(m *memory) { flip(m, RecordsName, 3) }, 0, "read a record"},
		{"record taken out", edited(func(l list) list { return slices.Delete(l, 77, 78) }), 77,
			"stands in the place of record 78"},
		{"record put in", edited(func(l list) list { return slices.Insert(l, 515, line(t, 515, "new")) }), 516,
			"in the place of record 515"},
		{"records swapped", edited(func(l list) list { l[10], l[11] = l[11], l[10]; return l }), 10,
			"stands in the place of record 11"},
		{"tail dropped", edited(func(l list) list { return l[:552] }), 552, "missing"},
		{"records gone", func(m *memory) { delete(m.files, RecordsName) }, 0, "missing"},
		{"half a line", edited(func(l list) list { l[599] = l[599][:50]; return l }), 599, "unexpected end"},
		{"a line without an end", edited(func(l list) list { return append(l[:7], make([]byte, 3*maxLine)) }), 7,
			"65536 bytes"},
		{"checkpoint rolled back", put(CheckpointName, older.files[CheckpointName]), 400, "older one"},
		{"all rolled back", func(m *memory) { m.files = maps.Clone(older.files) }, 400, "older one"},
		{"record after the end", edited(func(l list) list { return append(l, line(t, 600, "new")) }), 600,
			"beyond checkpoint"},
		{"checkpoint edited", func(m *memory) { flip(m, CheckpointName, 30) }, 0, "vouches for nothing"},
		{"checkpoint gone", func(m *memory) { delete(m.files, CheckpointName) }, 0, "missing"},
		{"signed again with another key", again(3, lines(t, 0, 600)), 0, "another key"},
		{"key gone", func(m *memory) { delete(m.files, keyName) }, 0, "log.pub is missing"},
		{"key cut", put(keyName, []byte("rehydrate")), 0, "log.pub does not hold a key"},
		{"the next key", put(keyName, []byte(testKey(t, 2).Public()+"\n")), 0, ""},
		{"key exchanged", put(keyName, []byte(testKey(t, 3).Public()+"\n")), 0, "log.pub is not the key"},
		{"written again with the same key", again(1, other), 0, "written again"},
		{"a file too many", put("notes.txt", nil), 600, "does not belong to the log"},
		{"a statement", put(StatementName(fmt.Sprintf("%x", sha256.Sum256(nil))), nil), 0, ""},
		{"another statement", put(StatementName(strings.Repeat("0a", 32)), nil), 600, "does not belong to the log"},
	} {
		m, l := written(t, 600)
		tt.do(m)
		keys := []string{l.Checkpoint().Key, testKey(t, 2).Public()}
		err := check(t.Context(), m, Known{Keys: keys, Size: 600, Root: l.Checkpoint().Root})
		if err != nil || tt.says != "" {
			t.Log(tt.name)
			breaks(t, err, tt.record, tt.says)
		}
	}
}

func check(ctx context.Context, m *memory, k Known) error {
	l, err := Open(ctx, m, known(k))
	if err != nil {
		return err
	}
	return l.Verify(ctx)
}

// TestRecordsFromAnyNumberOn yields what is there from any record on, and nothing of a log that does not hold.
func TestRecordsFromAnyNumberOn(t *testing.T) {
	m, l := written(t, 9)
	for first := range int64(11) {
		var got []int64
		for e, err := range l.Records(t.Context(), first) {
			testkit.OK(t, err)
			got = append(got, e.Seq)
		}
		if int64(len(got)) != max(9-first, 0) || len(got) > 0 && got[0] != first {
			t.Errorf("from %d on: %v", first, got)
		}
	}
	for range l.Records(t.Context(), 0) {
		break
	}
	edit(m, func(l [][]byte) [][]byte { l[8] = line(t, 8, "other"); return l })
	for e, err := range reopen(t, m).Records(t.Context(), 0) {
		if !errors.As(err, new(*Broken)) {
			t.Errorf("record %d of a log that does not hold: %v", e.Seq, err)
		}
	}
	edit(m, func(l [][]byte) [][]byte { return slices.Delete(l, 3, 4) })
	_, err := reopen(t, m).Root(t.Context(), 2)
	breaks(t, err, 3, "in the place of record 4")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := reopen(t, m).Verify(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify, cancelled: %v", err)
	}
}

func TestSince(t *testing.T) {
	ctx := t.Context()
	_, then := written(t, 300)
	_, l := written(t, 300)
	testkit.OK(t, l.Append(ctx, testKey(t, 1), 300, lines(t, 300, 600)))
	for _, earlier := range []*Log{then, l} {
		if c, err := l.Since(ctx, earlier.Checkpoint().Signed); err != nil || c.Size != earlier.Size() {
			t.Errorf("since %d: %+v, %v", earlier.Size(), c, err)
		}
	}
	// changed is another history from record 299 on.
	changed := newMemory()
	rewrite(t, changed, testKey(t, 1), append(lines(t, 0, 299), line(t, 299, "other"), line(t, 300, "p300")))
	_, err := reopen(t, changed).Since(ctx, then.Checkpoint().Signed)
	breaks(t, err, 0, "records 0 to 299 are not all those of the earlier checkpoint")
	_, same := written(t, 299)
	if _, err := reopen(t, changed).Since(ctx, same.Checkpoint().Signed); err != nil {
		t.Errorf("since 299, with a change at 299: %v", err)
	}
	_, err = then.Since(ctx, l.Checkpoint().Signed)
	breaks(t, err, 300, "has 600 records")
	rewrite(t, changed, testKey(t, 2), lines(t, 0, 600))
	_, err = reopen(t, changed).Since(ctx, then.Checkpoint().Signed)
	breaks(t, err, 0, "is of another log: of another workspace")
	if _, err := l.Since(ctx, []byte("no checkpoint")); err == nil || errors.As(err, new(*Broken)) {
		t.Errorf("a file that is not a checkpoint: %v, want an error other than damage of the log", err)
	}
	for n, want := range map[int64]string{0: "", 300: then.Checkpoint().Root, 600: l.Checkpoint().Root} {
		root, err := l.Root(ctx, n)
		testkit.Same(t, fmt.Sprintf("the root of %d records", n), want, root, err)
	}
}

func reopen(t *testing.T, m *memory) *Log {
	t.Helper()
	l, err := Open(t.Context(), m, known(Known{}))
	testkit.OK(t, err)
	return l
}

func TestOpenRefusesWhatIsNoLog(t *testing.T) {
	ctx := t.Context()
	if _, err := Open(ctx, newMemory(), known(Known{})); !errors.Is(err, ErrNoLog) {
		t.Errorf("an empty folder: %v", err)
	}
	m, _ := written(t, 10)
	delete(m.files, CheckpointName)
	_, err := Open(ctx, m, known(Known{}))
	breaks(t, err, 0, "checkpoint is missing, and there are records")
	if _, err := Open(ctx, m, known(Known{Queue: lines(t, 0, 10)})); !errors.Is(err, ErrNoLog) {
		t.Errorf("a killed first Append: %v", err)
	}
}

// TestRecover puts a checkpoint back to an older one of the same log.
func TestRecover(t *testing.T) {
	older, _ := written(t, 200)
	m, l := written(t, 600)
	m.files[CheckpointName] = older.files[CheckpointName]
	root := l.Checkpoint().Root
	lost, err := reopen(t, m).Recover(t.Context(), 600, root)
	if len(lost) != 400 || lost[0].Seq != 200 || err != nil {
		t.Errorf("recovered %d records: %v", len(lost), err)
	}
	if lost, err := reopen(t, m).Recover(t.Context(), 601, root); lost != nil || err != nil {
		t.Errorf("recovered %d of 601 records, %v", len(lost), err)
	}
	edit(m, func(l [][]byte) [][]byte { l[300] = line(t, 300, "other"); return l })
	if lost, err := reopen(t, m).Recover(t.Context(), 600, root); lost != nil || err != nil {
		t.Errorf("recovered %d records with another one among them, %v", len(lost), err)
	}
}

func TestKeyIsNeverPrinted(t *testing.T) {
	k := testKey(t, 1)
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
	for _, bad := range []string{"", private + "\n", private + "\n" + testKey(t, 2).Public() + "\n",
		string(k.Encode()) + "x"} {
		if _, err := ParseKey([]byte(bad)); err == nil || strings.Contains(err.Error(), private) {
			t.Errorf("%d bytes that are no key: %v", len(bad), err)
		}
	}
}

// TestVerifyWhileAdded verifies a log that grows between Open and Verify, before and after the checkpoint
// of that: it is whole. One that is rewritten meanwhile is not.
func TestVerifyWhileAdded(t *testing.T) {
	ctx, key := t.Context(), testKey(t, 1)
	for left := range 5 {
		m, _ := written(t, 300)
		now := Known{Size: 300, Root: reopen(t, m).Checkpoint().Root}
		l, err := Open(ctx, m, func(context.Context) (Known, error) { return now, nil })
		testkit.OK(t, err)
		now.Queue = lines(t, 300, 310)
		m.left = left // what the writer gets to write: records, checkpoint
		if err := reopen(t, m).Append(ctx, key, 300, now.Queue); (err == nil) != (left >= 2) {
			t.Fatalf("%d files written: %v", left, err)
		}
		if err := l.Verify(ctx); err != nil {
			t.Errorf("%d files written: %v", left, err)
		}
	}
	m, _ := written(t, 3)
	l := reopen(t, m)
	rewrite(t, m, key, [][]byte{line(t, 0, "other"), line(t, 1, "p1"), line(t, 2, "p2"), line(t, 3, "p3")})
	breaks(t, l.Verify(ctx), 0, "records 0 to 2 are not all those that checkpoint vouches for")
}

// TestEndlessRecords puts more behind a log than can be waiting: Verify reads no further than that.
func TestEndlessRecords(t *testing.T) {
	for _, endless := range []string{"x\n", "x", string(line(t, 3, "p3")) + "x\n"} {
		m, _ := written(t, 3)
		l, err := Open(t.Context(), m, known(Known{Queue: lines(t, 0, 4)}))
		testkit.OK(t, err)
		m.files[RecordsName] = append(m.files[RecordsName], strings.Repeat(endless, 1<<20/len(endless))...)
		if err := l.check(t.Context()); err != nil || len(l.beyond) > 5*maxLine {
			t.Errorf("%d bytes, %v", len(l.beyond), err)
		}
		breaks(t, l.Verify(t.Context()), 3, "beyond checkpoint")
	}
}

// TestForged: whoever has the key cannot make a record of what Line would not write.
func TestForged(t *testing.T) {
	m, _ := written(t, 3)
	var tree hashes
	tree.add(0, line(t, 0, "p0"))
	tree.add(1, []byte("{}\n"))
	c, err := testKey(t, 1).sign(2, tree.root(2))
	testkit.OK(t, err)
	m.files[CheckpointName], m.files[RecordsName] = c.Signed, append(line(t, 0, "p0"), "{}\n"...)
	breaks(t, check(t.Context(), m, Known{}), 1, "read a record")
}

// TestPublished: records that were published are still there, whatever follows them.
func TestPublished(t *testing.T) {
	_, short := written(t, 5)
	at5 := Known{Size: 5, Root: short.Checkpoint().Root}
	m, _ := written(t, 9)
	if err := check(t.Context(), m, at5); err != nil {
		t.Error(err)
	}
	records := lines(t, 0, 9)
	records[2] = line(t, 2, "other")
	rewrite(t, m, testKey(t, 1), records)
	breaks(t, check(t.Context(), m, at5), 0, "records 0 to 4 are not all those that were published")
}

// TestUnreadable: a disk that fails is not a log that is broken.
func TestUnreadable(t *testing.T) {
	ctx := t.Context()
	for what, try := range map[string]struct {
		reads []string
		do    func(l *Log) error
	}{
		"Open": {[]string{CheckpointName, keyName, "known"},
			func(l *Log) error { _, err := Open(ctx, l.store, l.find); return err }},
		"Verify":  {[]string{RecordsName, keyName, "list", "known"}, func(l *Log) error { return l.Verify(ctx) }},
		"Append":  {[]string{RecordsName}, func(l *Log) error { return l.Append(ctx, testKey(t, 1), 9, lines(t, 9, 10)) }},
		"Recover": {[]string{RecordsName}, func(l *Log) error { _, err := l.Recover(ctx, 10, ""); return err }},
		"Since":   {[]string{RecordsName}, func(l *Log) error { _, err := l.Since(ctx, l.last.Signed); return err }},
		"Root":    {[]string{RecordsName}, func(l *Log) error { _, err := l.Root(ctx, 3); return err }},
	} {
		for _, name := range []string{RecordsName, CheckpointName, keyName, "list", "known"} {
			for _, bad := range []string{name, "open " + name} {
				m, _ := written(t, 9)
				l := reopen(t, m)
				m.bad = bad
				if bad == "known" {
					l.find = func(context.Context) (Known, error) { return Known{}, errDisk }
				}
				wanted := slices.Contains(try.reads, name) && (m.files[name] != nil || bad == name)
				if err := try.do(l); wanted != errors.Is(err, errDisk) || errors.As(err, new(*Broken)) {
					t.Errorf("%s can't be read: %s: %v", bad, what, err)
				}
			}
		}
	}
}

// TestCheckpointSaysOnlyWhatItMay holds what a checkpoint may say.
func TestCheckpointSaysOnlyWhatItMay(t *testing.T) {
	root := base64.StdEncoding.EncodeToString(make([]byte, 32))
	if c, err := parseBody("x\n7\n" + root + "\n"); err != nil || c.Size != 7 || c.Root != root || c.Origin != "x" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"", "x", "x\n7\n", "x\n-1\n" + root + "\n", "x\n07\n" + root + "\n", "x\n7\n" + root,
		"x\n7\n" + root + "\nmore\n",
		"x\n7\n" + root[4:] + "\n", "x\n7\n" + root[:42] + "B=\n", "x\n7\n" + strings.ToUpper(root) + "!\n",
		"x\n9223372036854775808\n" + root + "\n"} {
		if c, err := parseBody(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, c)
		}
	}
	key := testKey(t, 1)
	text := "rehydrate/another\n7\n" + root + "\n"
	signed, err := note.Sign(&note.Note{Text: text}, key.signer)
	testkit.OK(t, err)
	if _, err := parseCheckpoint(signed, key.Public()); err == nil ||
		!strings.Contains(err.Error(), "rehydrate/another") {
		t.Errorf("a checkpoint of another log: %v", err)
	}
	if _, err := parseCheckpoint(signed, "no key"); err == nil || errors.Is(err, errOtherKey) {
		t.Errorf("a key that is none: %v", err)
	}
	if _, err := parseCheckpoint(append(signed, make([]byte, maxCheckpoint)...), key.Public()); err == nil ||
		!strings.Contains(err.Error(), "more than 4096") {
		t.Errorf("an endless checkpoint: %v", err)
	}
}

// TestOutsider runs the check of docs/auditor.md, which needs nothing of this program.
func TestOutsider(t *testing.T) {
	for _, program := range []string{"python3", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			testkit.Lacking(t, program, err)
		}
	}
	text, err := os.ReadFile("../../docs/auditor.md")
	testkit.OK(t, err)
	_, script, _ := strings.Cut(string(text), "```python\n")
	script, _, found := strings.Cut(script, "```")
	if !found {
		t.Fatal("docs/auditor.md has no script")
	}
	for name, do := range map[string]func(m *memory){
		"": func(*memory) {},
		"AssertionError": func(m *memory) {
			edit(m,
				func(l [][]byte) [][]byte { l[3] = line(t, 3, "other"); return l })
		},
		"Signature":            func(m *memory) { flip(m, CheckpointName, 40) },
		"the log holds: 11 re": func(m *memory) { m.files[RecordsName] = append(m.files[RecordsName], "half a line"...) },
	} {
		m, _ := written(t, 11)
		do(m)
		dir := t.TempDir()
		for file, data := range m.files {
			testkit.OK(t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
		}
		c := exec.CommandContext(t.Context(), "python3", "-c", script)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if good := !strings.HasPrefix(name, "A") && !strings.HasPrefix(name, "S"); (err == nil) != good ||
			!strings.Contains(string(out), name) {
			t.Errorf("%q: %v\n%s", name, err, out)
		}
	}
}
