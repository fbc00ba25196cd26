package main

import (
	"archive/tar"
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"rehydrate/audit"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// audit audits with --json; any status but want ends the test.
func (s *site) audit(want int, more ...string) audit.Report {
	s.t.Helper()
	args := append([]string{"audit", s.release, "-w", s.workspace, "--no-record"}, more...)
	if !slices.Contains(more, "--offline") {
		args = slices.Concat(args, []string{"--approval", "TEST-1"}, s.reddit())
	}
	return printed[audit.Report](s, want, args...)
}

// on is the site with another workspace.
func (s *site) on(t *testing.T, ws string) *site {
	other := *s
	other.t, other.workspace = t, ws
	return &other
}

// copyTree copies a folder to a new one.
func copyTree(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	check(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// An audited site has a workspace from which posts went, and a backup from before.
type audited struct {
	*site
	backup string                      // of the workspace, while everything was live
	was    map[string]workspace.Record // of then
	kept   string                      // a checkpoint of the log, from the end
}

// The posts of the audited site: two that went while the workspace was looked after, one that Reddit
// no longer knows, and four that went since.
const (
	wasRemoved, wasDeleted, wasAbsent                 = "few003", "few007", "few010"
	nowRemoved, nowDeleted, nowAbsent, nowQuarantined = "few020", "few021", "few022", "few023"
	staysLive                                         = "few001"
)

func newAudited(t *testing.T) *audited {
	t.Helper()
	posts := fewPosts(26)
	a := &audited{site: newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...),
		was: map[string]workspace.Record{}}
	a.run(exitDone)
	for _, rec := range a.records() {
		a.was[string(rec.ID)] = rec
	}
	a.backup = copyTree(t, a.workspace)
	a.becomes(redditemu.Removed, redditemu.Post{ID: wasRemoved})
	a.becomes(redditemu.Deleted, redditemu.Post{ID: wasDeleted})
	a.becomes(redditemu.Absent, redditemu.Post{ID: wasAbsent})
	a.run(exitDone)
	a.kept = filepath.Join(t.TempDir(), "checkpoint")
	if r := a.audit(exitDone, "--offline", "--checkpoint", a.kept); r.Verdict != audit.Pass ||
		len(r.Posts) != len(posts) || r.Totals["removed"] != 1 || !r.Log.Consistent {
		t.Fatalf("the workspace is not clean before anything is planted: %+v", r)
	}
	if r := a.audit(exitDone); r.Verdict != audit.Pass || r.Coverage.Answered != len(posts) {
		t.Fatalf("the live audit: %+v", r)
	}
	a.becomes(redditemu.Removed, redditemu.Post{ID: nowRemoved})
	a.becomes(redditemu.Deleted, redditemu.Post{ID: nowDeleted})
	a.becomes(redditemu.Absent, redditemu.Post{ID: nowAbsent})
	a.becomes(redditemu.Quarantined, redditemu.Post{ID: nowQuarantined})
	return a
}

// plot is the site with a copy of its workspace, in which something can be planted.
func (a *audited) plot(t *testing.T) *audited {
	p := *a
	p.site = a.on(t, copyTree(t, a.workspace))
	return &p
}

func (p *audited) path(name string) string { return filepath.Join(p.workspace, name) }

// restore puts parts of the backup back.
func (p *audited) restore(names ...string) []string {
	p.t.Helper()
	for _, name := range names {
		check(p.t, os.RemoveAll(p.path(name)))
		if info, err := os.Stat(filepath.Join(p.backup, name)); err == nil && info.IsDir() {
			check(p.t, os.CopyFS(p.path(name), os.DirFS(filepath.Join(p.backup, name))))
		} else {
			p.write(p.path(name), read(p.t, filepath.Join(p.backup, name)))
		}
	}
	return nil
}

func (p *audited) remove(names ...string) {
	p.t.Helper()
	for _, name := range names {
		check(p.t, os.RemoveAll(p.path(name)))
	}
}

// sql changes state.db.
func (p *audited) sql(statements ...string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", p.path("state.db"))
	check(p.t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		_, err := db.ExecContext(p.t.Context(), s)
		check(p.t, err)
	}
	check(p.t, db.Close())
	sealAgain(p.t, p.path("."))
}

// sealAgain seals state.db as it is now, as somebody does who changes it and knows how.
func sealAgain(t testing.TB, dir string) {
	t.Helper()
	name := filepath.Join(dir, "audit", "seal.json")
	text, err := os.ReadFile(name)
	check(t, err)
	var seal workspace.Seal
	check(t, json.Unmarshal(text, &seal))
	body, err := os.ReadFile(filepath.Join(dir, "state.db"))
	check(t, err)
	at := slices.IndexFunc(seal.Files, func(f workspace.File) bool { return f.Name == "state.db" })
	seal.Files[at].Size, seal.Files[at].SHA256 = int64(len(body)), state.SHA256(body)
	seal.Sum = ""
	text, err = json.MarshalIndent(seal, "", "  ")
	check(t, err)
	seal.Sum = state.SHA256(text)
	text, err = json.MarshalIndent(seal, "", "  ")
	check(t, errors.Join(err, os.WriteFile(name, append(text, '\n'), 0o600)))
}

// edit changes a file of the workspace.
func (p *audited) edit(name string, change func(string) string) {
	p.t.Helper()
	before := read(p.t, p.path(name))
	after := change(before)
	if after == before {
		p.t.Fatalf("%s was not changed", name)
	}
	p.write(p.path(name), after)
}

// changeRelease gives the plot a release of its own, in which a file is another, and more settings.
func (p *audited) changeRelease(name, text, settings string) {
	p.t.Helper()
	p.release = copyTree(p.t, p.release)
	p.write(filepath.Join(p.release, "release.toml"), demoRelease+settings)
	p.write(filepath.Join(p.release, name), text)
}

// open changes the workspace as a program of ours does. What a backup brought back is noted then.
func (p *audited) open(change func(ws *workspace.Workspace) error) {
	p.t.Helper()
	ws, err := workspace.Open(p.t.Context(), p.workspace, workspace.Options{})
	check(p.t, err)
	defer func() { check(p.t, ws.Close()) }()
	check(p.t, change(ws))
}

// A planted violation: what has to be found, and what is done to a workspace, which returns further arguments.
type planted struct {
	name  string
	kind  audit.FindingKind
	id    string
	where string // a part of it
	do    plant
}

type (
	plant   func(p *audited) []string
	bytesOf func(p *audited) []byte // of a file
)

// in writes a file into the workspace.
func in(name string, b bytesOf) plant {
	return func(p *audited) []string { p.write(p.path(name), string(b(p))); return nil }
}

// hand writes a file into a folder outside, which is handed over with flags.
func hand(name string, b bytesOf, flags ...string) plant {
	return func(p *audited) []string {
		dir := p.t.TempDir()
		p.write(filepath.Join(dir, name), string(b(p)))
		return append(slices.Clone(flags), dir)
	}
}

func both(one, other plant) plant {
	return func(p *audited) []string { return append(one(p), other(p)...) }
}

func doing(f func(p *audited)) plant { return func(p *audited) []string { f(p); return nil } }

func query(statements ...string) plant { return doing(func(p *audited) { p.sql(statements...) }) }

func edited(name string, change func(string) string) plant {
	return doing(func(p *audited) { p.edit(name, change) })
}

func restored(names ...string) plant { return func(p *audited) []string { return p.restore(names...) } }

// registered registers a copy outside the workspace, which holds a file; on record are others, if any.
func registered(format, name string, b bytesOf, record ...workspace.File) plant {
	return doing(func(p *audited) {
		dir := filepath.Join(p.t.TempDir(), "given")
		p.write(filepath.Join(dir, name), string(b(p)))
		p.open(func(ws *workspace.Workspace) error {
			return ws.SetCopy(p.t.Context(), workspace.Copy{Path: dir, Note: "a colleague", Format: format,
				Made: time.Now(), Files: record})
		})
	})
}

// buried has the release publish a tombstone, and changes state.db.
func buried(id string, statements ...string) plant {
	return doing(func(p *audited) {
		p.changeRelease("tombstones.csv", "id,state,time\n"+id+",removed,2026-01-01T00:00:00Z\n",
			"tombstones = \"tombstones.csv\"\n")
		p.sql(statements...)
	})
}

func text(s string) bytesOf { return func(*audited) []byte { return []byte(s) } }

// old is a file of the backup, and img the image of a post.
func old(name string) bytesOf {
	return func(p *audited) []byte { return []byte(read(p.t, filepath.Join(p.backup, name))) }
}

func img(id string) bytesOf { return old("images/fe/" + id + ".jpg") }

// words are the text of a post.
func words(id string, change func(string) string) bytesOf {
	return func(p *audited) []byte { return []byte(change(p.was[id].Reading.Text)) }
}

// again is the image of a post compressed once more, half as large.
func again(id string) bytesOf {
	return func(p *audited) []byte {
		whole, _, err := image.Decode(bytes.NewReader(img(id)(p)))
		check(p.t, err)
		size := whole.Bounds().Size()
		small := image.NewRGBA(image.Rect(0, 0, size.X/2, size.Y/2))
		for y := range size.Y / 2 {
			for x := range size.X / 2 {
				small.Set(x, y, whole.At(2*x, 2*y))
			}
		}
		var b bytes.Buffer
		check(p.t, jpeg.Encode(&b, small, &jpeg.Options{Quality: 55}))
		return b.Bytes()
	}
}

// table are rows as other programs write them.
func table[T any](rows ...T) bytesOf {
	return func(p *audited) []byte { return parquetOf(p.t, rows...) }
}

func parquetOf[T any](t testing.TB, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(&parquet.Zstd))
	_, err := w.Write(rows)
	check(t, err)
	check(t, w.Close())
	return b.Bytes()
}

// The layouts of somebody else's Parquet.
type (
	onlyID struct {
		Post string `parquet:"post"`
	}
	withImage struct {
		ID    string `parquet:"id"`
		Image []byte `parquet:"image"`
	}
	withDigest struct {
		ID     string `parquet:"id"`
		Digest string `parquet:"digest"`
	}
	withHash struct {
		ID    string `parquet:"id"`
		PHash int64  `parquet:"h"`
	}
	withText struct {
		ID      string `parquet:"id"`
		Caption string `parquet:"words"`
	}
	twoIDs struct {
		ID     string `parquet:"id"`
		PostID string `parquet:"post_id"`
	}
	numbered struct {
		ID     int64  `parquet:"id"`
		PostID string `parquet:"post_id"`
	}
	listed struct {
		Posts []string `parquet:"posts,list"`
	}
)

// withGroup is a Parquet with a second row group that the footer does not name: the bytes of one file before the footer
// of another.
func withGroup(shown, hidden string) bytesOf {
	return func(p *audited) []byte {
		var b, first bytes.Buffer
		w, f := parquet.NewGenericWriter[onlyID](&b), parquet.NewGenericWriter[onlyID](&first)
		for _, id := range []string{shown, hidden} {
			_, err := w.Write([]onlyID{{id}})
			check(p.t, err)
			check(p.t, w.Flush())
		}
		_, err := f.Write([]onlyID{{shown}})
		check(p.t, err)
		check(p.t, f.Close())
		end := first.Len() - 8
		return append(b.Bytes(), first.Bytes()[end-int(binary.LittleEndian.Uint32(first.Bytes()[end:])):]...)
	}
}

// tarOf is a tar with one file.
func tarOf(name string, body bytesOf) bytesOf {
	return func(p *audited) []byte {
		content, file := body(p), bytes.Buffer{}
		w := tar.NewWriter(&file)
		check(p.t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}))
		_, err := w.Write(content)
		check(p.t, err)
		check(p.t, w.Close())
		return file.Bytes()
	}
}

// noisy is an image of more bytes than two blocks of a file share.
func noisy(p *audited) []byte {
	img, seed := image.NewRGBA(image.Rect(0, 0, 300, 300)), uint32(1)
	for i := range img.Pix {
		seed = seed*1664525 + 1013904223
		img.Pix[i] = byte(seed >> 24)
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	var b bytes.Buffer
	check(p.t, png.Encode(&b, img))
	return b.Bytes()
}

// padded puts something harmless before a data address, so that the image of a page lies across two blocks.
func padded(n int, body bytesOf) bytesOf {
	return func(p *audited) []byte {
		return append(bytes.Repeat([]byte("<p>nothing</p>\n"), n/15),
			`<img src="data:image/jpeg;base64,`+base64.StdEncoding.EncodeToString(body(p))+`">`...)
	}
}

// shard is the Parquet of the split that a post of fewPosts is in.
func shard(id string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "few"))
	return "dataset/data/" + []string{"train", "validation", "test"}[n%3] + "-00000-of-00001.parquet"
}

const (
	live = "images/fe/" + staysLive
	// An answer that is newer than the log's record of it, however long the run took to write that: else the log is
	// believed.
	withheld = "UPDATE post SET state = 'removed', withheld = 1, checked_at = checked_at + 60, "
	thatLive = " WHERE id = '" + staysLive + "'"
)

// violations are found without Reddit. What lies in a file, however it is wrapped or spelled, audit has.
var violations = []planted{
	{"an image at its old place", audit.FoundImage, wasRemoved, "images/fe/" + wasRemoved,
		in("images/fe/"+wasRemoved+".jpg", img(wasRemoved))},
	{"an image of a post that Reddit no longer knows", audit.FoundImage, wasAbsent, "keep/",
		in("keep/x.jpg", img(wasAbsent))},
	{"an image as a second one of a live post", audit.FoundImage, wasRemoved, live + "-1.jpg",
		in(live+"-1.jpg", img(wasRemoved))},
	{"an image in place of a live post's", audit.FoundImage, wasRemoved, live + ".jpg", in(live+".jpg", img(wasRemoved))},
	{"a recompressed image in place of a live post's", audit.FoundRecord, staysLive, live + ".jpg",
		in(live+".jpg", again(wasRemoved))},
	{"a recompressed image, its hash long gone", audit.FoundRecord, "", "small.jpg",
		in("small.jpg", again(wasRemoved))},
	{"an image in an unfinished file", audit.FoundImage, wasRemoved, ".tmp-", in("images/fe/.tmp-AAAA", img(wasRemoved))},
	{"a recompressed image in a file that only seems unfinished", audit.FoundRecord, "", "images/fe/.tmp-AAAB",
		in("images/fe/.tmp-AAAB", again(wasRemoved))},
	{"a Parquet that only seems unfinished", audit.FoundRecord, "", "dataset/data/.tmp-b",
		in("dataset/data/.tmp-b", table(withText{staysLive, "x"}))},
	{"an image beside the log", audit.FoundImage, wasRemoved, "audit/", in("audit/x.jsonl", img(wasRemoved))},
	{"an image in the lock", audit.FoundImage, wasRemoved, "lock", in("lock", img(wasRemoved))},
	{"a thumbnail in a report, by its name", audit.FoundImage, wasRemoved, "report.html",
		in("report.html", text(`<html><img alt="image `+wasRemoved+`" src="data:image/jpeg;base64,AAAA"></html>`))},
	{"an image under a folder that is named after the post", audit.FoundImage, wasRemoved, wasRemoved + "/1.jpg",
		hand(wasRemoved+"/1.jpg", again(wasRemoved))},
	{"an image of a page that lies across what is read at a time", audit.FoundImage, wasRemoved, "page.html",
		both(hand("page.html", padded(1<<20-20<<10, noisy)),
			func(p *audited) []string { return hand("a.parquet", table(withImage{wasRemoved, noisy(p)}))(p) })},
	{"a sidecar that is named after the post", audit.FoundRow, wasRemoved, wasRemoved + ".json",
		hand(wasRemoved+".json", text(`{"label":"F1"}`))},
	{"a row beside a link that leads nowhere", audit.FoundRow, wasRemoved, "rows.csv", func(p *audited) []string {
		dir := hand("rows.csv", text("id\n"+wasRemoved+"\n"))(p)
		check(p.t, os.Symlink("/nonexistent", filepath.Join(dir[0], "a")))
		return dir
	}},

	{"last week's Parquet under its name", audit.FoundRow, wasRemoved, shard(wasRemoved) + " > row",
		restored(shard(wasRemoved))},
	{"last week's Parquet is not the exported one", audit.FoundRecord, "", shard(wasRemoved),
		restored(shard(wasRemoved))},
	{"last week's Parquet under another name", audit.FoundRecord, "", "dataset/data/more.parquet",
		in("dataset/data/more.parquet", old(shard(wasDeleted)))},
	{"a row in a Parquet that was handed over", audit.FoundRow, wasAbsent, "handed.parquet > row",
		hand("handed.parquet", old(shard(wasAbsent)))},
	{"a row in somebody's Parquet of ids", audit.FoundRow, wasRemoved, "ids.parquet > row 2",
		hand("ids.parquet", table(onlyID{"t3_" + staysLive}, onlyID{"T3_" + strings.ToUpper(wasRemoved)}), "--id-column",
			"post")},
	{"the id early in a list", audit.FoundRow, wasRemoved, "list.parquet > row 1",
		hand("list.parquet", table(listed{[]string{wasRemoved, staysLive}}), "--id-column", "posts.list.element")},
	{"the id in another column", audit.FoundRow, wasRemoved, "two.parquet > row 1",
		hand("two.parquet", table(twoIDs{staysLive, wasRemoved}))},
	{"the id beside a row number", audit.FoundRow, wasRemoved, "n.parquet > row 2",
		hand("n.parquet", table(numbered{0, staysLive}, numbered{1, wasRemoved}))},
	{"a digest in the row of a live post", audit.FoundImage, wasRemoved, "digests.parquet > row 1",
		func(p *audited) []string {
			return hand("digests.parquet", table(withDigest{staysLive, p.was[wasRemoved].Image.SHA256}))(p)
		}},
	{"outcomes.csv says kept", audit.FoundRow, wasRemoved, "outcomes.csv", edited("outcomes.csv", func(s string) string {
		return regexp.MustCompile(`(?m)^`+wasRemoved+`,.*$`).ReplaceAllString(s, wasRemoved+",0,train,kept,,,")
	})},

	{"a backup of the database", audit.FoundRow, wasRemoved, "state.bak > table reading > row",
		in("state.bak", old("state.db"))},
	{"last week's state.db", audit.FoundRecord, wasRemoved, "state.db", restored("state.db")},
	{"last week's state.db knows fewer records", audit.FoundRecord, "", "state.db", restored("state.db")},
	{"last week's state.db and images", audit.FoundImage, wasRemoved, "images/fe/" + wasRemoved,
		restored("state.db", "images")},
	{"last week's workspace, against a checkpoint", audit.FoundRecord, "", "--since", func(p *audited) []string {
		p.workspace = copyTree(p.t, p.backup)
		return []string{"--since", p.kept}
	}},
	{"what describes an image, in state.db", audit.FoundImage, wasRemoved, "state.db",
		query("INSERT INTO image SELECT '" + wasRemoved + "', 0, source, original_sha256, " +
			"sha256, format, width, height, bytes, phash, flat, hash_kind, original_bytes, limits, pixels_sha256, redirected, next FROM image" + thatLive)},
	{"a dropped tombstone", audit.FoundRecord, wasRemoved, "state.db",
		query("DELETE FROM tombstone WHERE id = '" + wasRemoved + "'")},
	{"a suspended tombstone", audit.FoundRecord, wasDeleted, "state.db",
		query("UPDATE tombstone SET readmitted = 1 WHERE id = '" + wasDeleted + "'")},
	{"a post made live by hand", audit.FoundRecord, wasAbsent, "state.db",
		query("UPDATE post SET state = 'live', checked_at = checked_at - 9, live_at = checked_at - 9 WHERE id = '" + wasAbsent + "'")},
	{"an edited record", audit.FoundRecord, "", "audit",
		edited("audit/records.jsonl", func(s string) string { return strings.Replace(s, `"removed"`, `"held"`, 1) })},
	{"a log cut short", audit.FoundRecord, "", "audit",
		edited("audit/records.jsonl", func(s string) string {
			return s[:strings.LastIndexByte(s[:len(s)-1],
				'\n')+1]
		})},
	{"records in another order", audit.FoundRecord, "", "audit", edited("audit/records.jsonl", func(s string) string {
		lines := strings.SplitAfter(s, "\n")
		lines[3], lines[4] = lines[4], lines[3]
		return strings.Join(lines, "")
	})},
	{"a log that is gone", audit.FoundRecord, "", "audit", doing(func(p *audited) { p.remove("audit") })},
	{"last week's log", audit.FoundRecord, "", "audit", restored("audit")},

	{"a registered copy has the row", audit.FoundRow, wasRemoved, "given/p.parquet > row",
		registered("parquet", "p.parquet", old(shard(wasRemoved)))},
	{"a registered copy of webdataset has the image", audit.FoundImage, wasRemoved, "given/train.tar > " + wasRemoved,
		registered("webdataset", "train.tar", tarOf(wasRemoved+".jpg", img(wasRemoved)))},
	{"the release buries a post that is kept", audit.FoundRow, staysLive, shard(staysLive) + " > row", buried(staysLive)},
	{"the release buries a post whose image is kept", audit.FoundImage, staysLive, live, buried(staysLive)},
	{"a tombstone that no statement lifted", audit.FoundRow, staysLive, shard(staysLive) + " > row",
		buried(staysLive,
			`INSERT INTO meta (key, value) VALUES ('lifted', '[{"id":"`+staysLive+`","state":"removed","time":"2026-01-01T00:00:00Z",`+
				`"lifted":{"asserted":"2030-01-01T00:00:00Z"}}]')`)},
	{"a table of somebody's in state.db", audit.FoundRow, wasRemoved, "state.db > table stash > row 1",
		query("CREATE TABLE stash (x)", "INSERT INTO stash VALUES ('t3_"+wasRemoved+"')")},
	{"a table in state.db is not ours", audit.FoundRecord, "", "state.db", query("CREATE TABLE stash (x)")},
	{"an image in state.db, as base64 in a note of ours", audit.FoundImage, wasRemoved, "state.db > table meta",
		doing(func(p *audited) {
			p.sql("INSERT INTO meta (key, value) VALUES ('x', '" + base64.StdEncoding.EncodeToString(img(wasRemoved)(p)) + "')")
		})},
	{"a text in the free pages of state.db", audit.FoundRecord, "", "state.db",
		query("PRAGMA secure_delete=OFF", "CREATE TABLE z (x)",
			"INSERT INTO z VALUES ('"+strings.Repeat("words that were erased ", 900)+"')", "DROP TABLE z")},
	{"last seen live in a year that is yet to come", audit.FoundRecord, "", "state.db",
		query("UPDATE post SET live_at = 2650000000" + thatLive)},
	{"something behind the end of state.db", audit.FoundRecord, "", "state.db",
		edited("state.db", func(s string) string { return s + "t3_" + wasRemoved })},
}

// looks is the kind of what only looks like an image that was removed.
const looks audit.FindingKind = "looks"

// since are found by asking Reddit.
var since = []planted{
	{"removed since", audit.FoundRow, nowRemoved, shard(nowRemoved) + " > row", query()},
	{"deleted since, the image", audit.FoundImage, nowDeleted, "images/fe/" + nowDeleted, query()},
	{"quarantined since", "", nowQuarantined, "held", query()},
	{"absent twice, the text", audit.FoundText, nowAbsent, "state.db", query()},
	{"a text in the row of a live post", audit.FoundText, nowRemoved, "texts.parquet > row 1",
		func(p *audited) []string {
			return hand("texts.parquet", table(withText{staysLive, strings.ToUpper(p.was[nowRemoved].Reading.Text)}))(p)
		}},
	{"a text in JSON, its lines short", audit.FoundText, nowRemoved, "note.json",
		hand("note.json", words(nowRemoved, func(s string) string {
			b, _ := json.Marshal(map[string]string{"words": strings.ReplaceAll(s, " ", "\n")})
			return string(b)
		}))},
	{"a perceptual hash under a made-up id", looks, nowRemoved, "hashes.parquet > row 1", func(p *audited) []string {
		return hand("hashes.parquet", table(withHash{"not an id", int64(p.was[nowRemoved].Image.PHash ^ 5)}),
			"--phash-column", "h")(p)
	}},
	{"a recompressed image in a row of another post", looks, nowRemoved, "re.parquet > row 1",
		func(p *audited) []string {
			return hand("re.parquet", table(withImage{staysLive, again(nowRemoved)(p)}))(p)
		}},
	{"a consistent backup of last week", audit.FoundRow, wasRemoved, shard(wasRemoved) + " > row",
		doing(func(p *audited) { p.workspace = copyTree(p.t, p.backup) })},
}

// late are duties that are overdue, where nothing is found.
var late = []planted{
	{"rows that nobody looked after for 49 hours", "", staysLive, "recheck",
		doing(func(p *audited) { p.now = func() time.Time { return time.Now().Add(49 * time.Hour) } })},
	{"a row of a post that is withheld", "", staysLive, "held", query(withheld + "gone_at = checked_at" + thatLive)},
	{"a removal that waited for 49 hours", "", staysLive, "confirm",
		query(withheld + "gone_at = checked_at - 49*3600" + thatLive)},
	{"withheld by hand, without a clock", "", staysLive, "confirm",
		query("UPDATE post SET state = 'removed', withheld = 1, gone_at = 0, checked_at = checked_at - 49*3600" +
			thatLive)},
	{"an open obligation in reach", "", "", "copy", doing(func(p *audited) {
		path := filepath.Join(p.t.TempDir(), "in-reach")
		p.open(func(ws *workspace.Workspace) error {
			return errors.Join(os.Mkdir(path, 0o700),
				ws.SetCopy(p.t.Context(),
					workspace.Copy{Path: path, Note: "a colleague", Format: "parquet", Made: time.Now(), Open: true,
						Told: "mine.bin may hold a row that went"}))
		})
	})},
}

// opaque are what an audit cannot look into: it says so, and there is no PASS.
var opaque = []planted{
	{"a stash in a journal", "", "", "state.db-journal", in("state.db-journal", img(wasRemoved))},
	{"a row group that the footer hides", "", "", "hidden.parquet",
		hand("hidden.parquet", withGroup(staysLive, wasRemoved), "--id-column", "post")},
	{"a compressed file that is damaged", "", "", "rows.csv.zst",
		hand("rows.csv.zst", text("\x28\xb5\x2f\xfd\x04\x00rest"))},
	{"an image of a format that is not read", "", "", "a.bmp",
		hand("a.bmp", text("BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00"))},
	{"bytes in a file that only seems unfinished", "", "", "dataset/.tmp-c",
		in("dataset/.tmp-c", text(strings.Repeat("\x01\x02\xff\x00", 1000)))},
	{"an open obligation that is out of reach", "", "", "gone-away", doing(func(p *audited) {
		p.open(func(ws *workspace.Workspace) error {
			return ws.SetCopy(p.t.Context(), workspace.Copy{Path: "/nonexistent/gone-away", Note: "a colleague",
				Format: "parquet", Made: time.Now(), Open: true, Told: "1 row must go"})
		})
	})},
	{"content without a grant", "", "", "grant", doing(func(p *audited) {
		p.changeRelease("policy.toml", fastPolicy+"\n[access]\ngrant = \"required\"\n", "")
	})},
	{"a seal that is gone", "", "", "audit/seal.json", doing(func(p *audited) { p.remove("audit/seal.json") })},
	{"a seal that was changed", "", "", "audit/seal.json",
		doing(func(p *audited) {
			p.edit("audit/seal.json", func(seal string) string { return strings.Replace(seal, "1", "2", 1) })
		})},
	{"a write-ahead log beside state.db", "", "", "state.db-wal", in("state.db-wal", text("\x37\x7f\x06\x82rest"))},
	{"a copy that somebody changed", "", "", "p.parquet",
		registered("parquet", "p.parquet", table(withText{staysLive, "x"}),
			workspace.File{Name: "p.parquet", SHA256: strings.Repeat("0", 64), Size: 1})},
	{"a copy of which a file was moved away", "", "", "moved.parquet",
		registered("parquet", "p.parquet", table(withText{staysLive, "x"}),
			workspace.File{Name: "moved.parquet", SHA256: strings.Repeat("0", 64), Size: 1})},
}

// harmless is what an audit must leave alone.
var harmless = []planted{
	{"row numbers beside the ids", "", "", "", hand("n.parquet", table(numbered{0, staysLive}, numbered{1, "few002"}))},
	{"a permalink beside the id", "", "", "", hand("two.parquet", table(twoIDs{staysLive, "t3_" + staysLive}))},
	{"an unfinished file of a killed run", "", "", "", in("dataset/data/.tmp-123", text(""))},
	{"a live post's image in a page", "", "", "", hand("a.html", padded(100, img(staysLive)))},
}

// beside are harmless things beside a row that must go: nothing is said of them.
var beside = []planted{
	{"a live post has the very image", "", "", "live.jpg", both(hand("live.jpg", img(staysLive)),
		func(p *audited) []string {
			return hand("a.parquet", table(withImage{wasRemoved, img(staysLive)(p)}))(p)
		})},
	{"a live post has the very text", "", "", "live.txt",
		both(hand("live.txt", words(staysLive, strings.Clone)), func(p *audited) []string {
			return hand("a.parquet", table(withText{wasRemoved, p.was[staysLive].Reading.Text}))(p)
		})},
}

// TestAuditFindsPlanted plants violations of every kind, each in a copy of one clean workspace, and has the audit find
// each, say what it cannot look into, and leave alone what is harmless.
func TestAuditFindsPlanted(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAudited(t)
	due := func(r audit.Report, v planted, late bool) bool {
		return slices.ContainsFunc(r.Duties, func(d audit.Duty) bool {
			return d.Late == late && string(d.Kind) == v.where && (v.id == "" || slices.Contains(d.Posts, v.id))
		})
	}
	overdue := func(r audit.Report, v planted) bool { return due(r, v, true) }
	found := func(r audit.Report, v planted) bool {
		switch v.kind {
		case "": // since now: the holder has time
			return due(r, v, false)
		case looks:
			return slices.ContainsFunc(r.Open,
				func(o audit.Open) bool { return o.ID == v.id && strings.Contains(o.Where, v.where) })
		}
		return slices.ContainsFunc(r.Findings, func(f audit.Finding) bool {
			return slices.Contains(f.Kinds, v.kind) && f.ID == v.id && strings.Contains(f.Where, v.where)
		})
	}
	for _, group := range []struct {
		name  string
		cases []planted
		args  []string
		want  int
		good  func(audit.Report, planted) bool
	}{
		{"found", violations, []string{"--offline"}, exitFound, found},
		{"found live", since, nil, exitFound, found},
		{"opaque", opaque, []string{"--offline"}, exitUndecided, func(r audit.Report, v planted) bool {
			return slices.ContainsFunc(r.Open,
				func(g audit.Open) bool { return g.ID == v.id && strings.Contains(g.Where, v.where) })
		}},
		{"late", late, []string{"--offline"}, exitOverdue, overdue},
		{"harmless", harmless, []string{"--offline"}, exitDone,
			func(r audit.Report, _ planted) bool { return r.Verdict == audit.Pass }},
		{"beside", beside, []string{"--offline"}, exitFound, func(r audit.Report, v planted) bool {
			return !slices.ContainsFunc(r.Findings, func(f audit.Finding) bool { return strings.Contains(f.Where, v.where) })
		}},
	} {
		for _, v := range group.cases {
			t.Run(group.name+": "+v.name, func(t *testing.T) {
				t.Parallel()
				p := a.plot(t)
				more := v.do(p)
				if r := p.audit(group.want, append(more, group.args...)...); !group.good(r, v) {
					t.Errorf("%s of %q at %q: %s\n%+v\n%+v", v.kind, v.id, v.where, r.Verdict, r.Findings, r.Open)
				}
			})
		}
	}
}

// TestFindingsFit: no list of an audit is a table that a terminal of 80 columns would break: what is wider is a block
// for each row.
func TestFindingsFit(t *testing.T) {
	at := time.Date(2026, 11, 26, 19, 31, 0, 0, time.UTC)
	short := audit.Report{Verdict: audit.Fail, Time: at,
		Open: []audit.Open{{Where: "b.7z", What: "it is 7-Zip", Do: "unpack it"}},
		Findings: []audit.Finding{{ID: "127mp9", Kinds: []audit.FindingKind{audit.FoundImage}, Where: "found.tar > 17.jpg",
			What: []string{"its image"}, Do: "delete the picture in it",
			Removal: audit.Removal{Why: "deleted by its author", Since: &at, Due: &at}}}}
	short.Open = append(short.Open, audit.Open{ID: "10t7wq", Where: "b.png", What: "it looks so", Do: "open it"})
	long := short
	long.Open = []audit.Open{{Where: "b.7z", What: "it is 7-Zip, which is not read here",
		Do: "unpack or convert it, and " +
			"name what comes out; or delete it"}}
	long.Findings = []audit.Finding{{ID: "10t7wq", Kinds: []audit.FindingKind{audit.FoundRow},
		Where: "old/test-00000-of-00001.parquet > row 1", What: []string{"its row"}, Do: "delete it, or name its new place",
		Removal: audit.Removal{Why: "its author took the image out of the post", Since: &at}},
		{Kinds: []audit.FindingKind{audit.FoundRecord}, Where: "old/test.parquet",
			What: []string{"a Parquet in the workspace that no record accounts for"}, Do: "delete it"}}
	for _, c := range []struct {
		report audit.Report
		want   string
	}{
		{short, `
  Looks removed  Why          What to do
  b.png          it looks so  open it

  Not checked  Why          What to do
  b.7z         it is 7-Zip  unpack it

  Post    What was found  Where                What to do
  127mp9  its image       17.jpg in found.tar  delete the picture in it

  Post    Why it must go         Known since             Must be gone by
  127mp9  deleted by its author  26 Nov 2026, 19:31 UTC  26 Nov 2026, 19:31 UTC
`},
		{long, `
  Not checked: b.7z
    why  it is 7-Zip, which is not read here
    do   unpack or convert it, and name what comes out; or delete it

  10t7wq: its row
    where  row 1 of old/test-00000-of-00001.parquet
    do     delete it, or name its new place
  a Parquet in the workspace that no record accounts for
    where  old/test.parquet
    do     delete it

  10t7wq: its author took the image out of the post
    known since      26 Nov 2026, 19:31 UTC
    must be gone by  not known
`},
	} {
		for screen, v := range map[string]any{"audit": auditAnswer{Report: c.report},
			"audit-interrupted": auditAnswer{Report: c.report}} {
			var out strings.Builder
			cmd := &command{process: process{stdout: &out}, workspace: defaultWorkspace}
			check(t, cmd.answer(screen, v))
			for line := range strings.Lines(out.String()) {
				inList := strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "      ")
				if n := len(strings.TrimSuffix(line, "\n")); inList && n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			lists := strings.Split(c.want, "\n\n")
			if screen == "audit-interrupted" {
				lists = lists[len(lists)-2 : len(lists)-1]
			}
			if !strings.Contains(out.String(), strings.Join(lists, "\n\n")) {
				t.Errorf("%s lacks these lists:\n%s\n%s", screen, c.want, out.String())
			}
		}
	}
}

// TestVerifyStash has verify see what is kept in the lock, and what a seal that was made since covers.
func TestVerifyStash(t *testing.T) {
	t.Parallel()
	p := &audited{site: wholeSite(t)}
	lock := read(t, p.path("lock"))
	p.write(p.path("lock"), strings.Repeat("x", 99))
	if r := p.verify(exitDamaged); len(r.Damage) != 1 || r.Damage[0].Where != "lock" {
		t.Errorf("%+v", r.Damage)
	}
	p.write(p.path("lock"), lock)
	p.write(p.path("dataset/rows.csv"), "id\nfew001\n")
	if r := p.verify(exitDamaged); len(r.Damage) != 1 || r.Damage[0].Where != "dataset/rows.csv" {
		t.Errorf("%+v", r.Damage)
	}
	p.do(nil, "report", "-w", p.workspace).want(t, exitDone)
	if r := p.verify(exitDone); !strings.Contains(strings.Join(r.Notes, "\n"), "dataset/rows.csv is on no record") {
		t.Errorf("the seal of the report hides it: %+v", r)
	}
}
