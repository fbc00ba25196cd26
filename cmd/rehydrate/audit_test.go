package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/workspace"
)

// audit audits with --json; any status but want ends the test.
func (s *site) audit(want int, more ...string) audit.Report {
	s.t.Helper()
	args := append([]string{"audit", s.release, "-w", s.workspace, "--json", "--no-record"}, more...)
	if !strings.Contains(strings.Join(more, " "), "--offline") {
		args = append(args, "--approval", "TEST-1", "--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert)
	}
	f := s.do(s.env(), args...)
	var r audit.Report
	if err := json.Unmarshal([]byte(f.stdout), &r); err != nil || f.code != want {
		s.t.Fatalf("audit %q = exit %d (%v), want %d\n%s%s", more, f.code, err, want, f.stderr, shorten(f.stdout))
	}
	return r
}

func shorten(s string) string { return s[:min(len(s), 4000)] }

// on is the site with another workspace.
func (s *site) on(t *testing.T, ws string) *site {
	other := *s
	other.t, other.workspace = t, ws
	return &other
}

// copyTree copies a folder to a new one.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// An audited site has a workspace from which posts went, and a backup from before.
type audited struct {
	*site
	backup  string // of the workspace, while everything was live
	images  map[string][]byte
	texts   map[string]string
	digests map[string]string
	hashes  map[string]uint64
	kept    string // a checkpoint of the log, from the end
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
	a := &audited{site: newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...), images: map[string][]byte{}, texts: map[string]string{},
		digests: map[string]string{}, hashes: map[string]uint64{}}
	a.run(exitDone)
	for _, rec := range a.records() {
		if rec.Image == nil || rec.Reading == nil {
			t.Fatalf("%s has no image", rec.ID)
		}
		id := string(rec.ID)
		body, err := os.ReadFile(filepath.Join(a.workspace, "images", "fe", id+"."+map[string]string{"jpeg": "jpg"}[rec.Image.Format]+strings.TrimPrefix(rec.Image.Format, "jpeg")))
		if err != nil {
			t.Fatal(err)
		}
		a.images[id], a.texts[id], a.digests[id], a.hashes[id] = body, rec.Reading.Text, rec.Image.SHA256, rec.Image.PHash
	}
	a.backup = copyTree(t, a.workspace)
	a.becomes(redditemu.Removed, redditemu.Post{ID: wasRemoved})
	a.becomes(redditemu.Deleted, redditemu.Post{ID: wasDeleted})
	a.becomes(redditemu.Absent, redditemu.Post{ID: wasAbsent})
	a.run(exitDone)
	a.kept = filepath.Join(t.TempDir(), "checkpoint")
	if r := a.audit(exitDone, "--offline", "--checkpoint", a.kept); r.Verdict != audit.Pass || len(r.Posts) != len(posts) || r.Totals["removed"] != 1 || !r.Log.Consistent {
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

// A planted violation of one workspace: what is done to it, and what has to be found.
type planted struct {
	name string
	live bool
	// do plants it into the workspace and returns further arguments.
	do    func(p *plot) []string
	kind  audit.FindingKind
	id    string
	where string // a part of it
}

// A plot is the copy of the workspace that something is planted in.
type plot struct {
	*audited
	t  *testing.T
	ws string
}

func (p *plot) put(name string, body []byte) []string {
	p.t.Helper()
	path := filepath.Join(p.ws, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return nil
}

// outside writes a file that is not in the workspace and returns its name.
func (p *plot) outside(name string, body []byte) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *plot) old(name string) []byte {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.backup, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// restore puts a part of the backup back.
func (p *plot) restore(name string) {
	p.t.Helper()
	path := filepath.Join(p.ws, name)
	if err := os.RemoveAll(path); err != nil {
		p.t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(p.backup, name))
	if err != nil {
		p.t.Fatal(err)
	}
	if !info.IsDir() {
		p.put(name, p.old(name))
		return
	}
	if err := os.CopyFS(path, os.DirFS(filepath.Join(p.backup, name))); err != nil {
		p.t.Fatal(err)
	}
}

// exec changes state.db in ways that are not counted in rows.
func (p *plot) exec(statements ...string) []string {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.ws, "state.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.ExecContext(p.t.Context(), s); err != nil {
			p.t.Fatal(err)
		}
	}
	return nil
}

func (p *plot) sql(query string) []string {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.ws, "state.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	done, err := db.ExecContext(p.t.Context(), query)
	if err != nil {
		p.t.Fatal(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		p.t.Fatalf("%s changed nothing (%v)", query, err)
	}
	return nil
}

// edit changes a file of the workspace.
func (p *plot) edit(name string, change func([]byte) []byte) []string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.ws, name))
	if err != nil {
		p.t.Fatal(err)
	}
	after := change(bytes.Clone(b))
	if bytes.Equal(after, b) {
		p.t.Fatalf("%s was not changed", name)
	}
	return p.put(name, after)
}

// again compresses a picture once more, half as large.
func again(t *testing.T, body []byte, asPNG bool) []byte {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	size := img.Bounds().Size()
	small := image.NewRGBA(image.Rect(0, 0, size.X/2, size.Y/2))
	for y := range size.Y / 2 {
		for x := range size.X / 2 {
			small.Set(x, y, img.At(img.Bounds().Min.X+2*x, img.Bounds().Min.Y+2*y))
		}
	}
	var b bytes.Buffer
	if asPNG {
		err = png.Encode(&b, small)
	} else {
		err = jpeg.Encode(&b, small, &jpeg.Options{Quality: 55})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// parquetOf writes rows as other programs do.
func parquetOf[T any](t *testing.T, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(&parquet.Zstd))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t *testing.T, name string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(body)), Format: tar.FormatUSTAR}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t *testing.T, name string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The layouts of somebody else's Parquet.
type (
	onlyID struct {
		Post string `parquet:"post"`
	}
	picture struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	}
	withImage struct {
		ID    string  `parquet:"id"`
		Image picture `parquet:"image"`
	}
	withDigest struct {
		ID     string `parquet:"id"`
		Digest []byte `parquet:"digest"`
	}
	withHash struct {
		ID    string `parquet:"id"`
		PHash int64  `parquet:"h"`
	}
	withText struct {
		ID      string `parquet:"id"`
		Caption string `parquet:"words"`
	}
)

// trainOf is the Parquet of the split that a post of fewPosts is in.
func splitParquet(id string) string {
	var n int
	if _, err := fmt.Sscanf(id, "few%d", &n); err != nil {
		panic(err)
	}
	return "dataset/data/" + []string{"train", "validation", "test"}[n%3] + "-00000-of-00001.parquet"
}

var violations = []planted{
	{name: "an image at its old place", kind: audit.FoundImage, id: wasRemoved, where: "images/fe/" + wasRemoved,
		do: func(p *plot) []string { return p.put("images/fe/"+wasRemoved+".jpg", p.images[wasRemoved]) }},
	{name: "an image in a subfolder", kind: audit.FoundImage, id: wasDeleted, where: "images/fe/old/",
		do: func(p *plot) []string { return p.put("images/fe/old/"+wasDeleted+".jpg", p.images[wasDeleted]) }},
	{name: "an image of a post that Reddit no longer knows", kind: audit.FoundImage, id: wasAbsent, where: "keep/",
		do: func(p *plot) []string { return p.put("keep/"+wasAbsent+".jpg", p.images[wasAbsent]) }},
	{name: "a renamed image", kind: audit.FoundImage, id: wasRemoved, where: "holiday.jpg",
		do: func(p *plot) []string { return p.put("holiday.jpg", p.images[wasRemoved]) }},
	{name: "an image without an extension", kind: audit.FoundImage, id: wasRemoved, where: "dataset/x",
		do: func(p *plot) []string { return p.put("dataset/x", p.images[wasRemoved]) }},
	{name: "an image as a second one of a live post", kind: audit.FoundImage, id: wasRemoved, where: "images/fe/" + staysLive + "-1.jpg",
		do: func(p *plot) []string { return p.put("images/fe/"+staysLive+"-1.jpg", p.images[wasRemoved]) }},
	{name: "an image in place of a live post's", kind: audit.FoundImage, id: wasRemoved, where: "images/fe/" + staysLive + ".jpg",
		do: func(p *plot) []string { return p.put("images/fe/"+staysLive+".jpg", p.images[wasRemoved]) }},
	{name: "an image in an unfinished file", kind: audit.FoundImage, id: wasRemoved, where: ".tmp-",
		do: func(p *plot) []string { return p.put("images/fe/.tmp-AAAA", p.images[wasRemoved]) }},
	{name: "an image beside the log", kind: audit.FoundImage, id: wasRemoved, where: "audit/",
		do: func(p *plot) []string { return p.put("audit/x.jsonl", p.images[wasRemoved]) }},
	{name: "a recompressed image, its hash long gone", kind: audit.FoundImage, where: "small.jpg",
		do: func(p *plot) []string { return p.put("small.jpg", again(p.t, p.images[wasRemoved], false)) }},
	{name: "an image as PNG under a live post's name", kind: audit.FoundImage, where: "images/fe/" + staysLive + ".png",
		do: func(p *plot) []string {
			return p.put("images/fe/"+staysLive+".png", again(p.t, p.images[wasRemoved], true))
		}},
	{name: "an image in a zip", kind: audit.FoundImage, id: wasRemoved, where: "a.zip > b/c.jpg",
		do: func(p *plot) []string { return p.put("a.zip", zipOf(p.t, "b/c.jpg", p.images[wasRemoved])) }},
	{name: "an image in a tar", kind: audit.FoundImage, id: wasRemoved, where: "shard.tar > " + wasRemoved,
		do: func(p *plot) []string { return p.put("shard.tar", tarOf(p.t, wasRemoved+".jpg", p.images[wasRemoved])) }},
	{name: "an image in a compressed tar, renamed", kind: audit.FoundImage, id: wasRemoved, where: "shard.tgz > gzip > 000.jpg",
		do: func(p *plot) []string {
			return p.put("shard.tgz", gzipOf(p.t, tarOf(p.t, "000.jpg", p.images[wasRemoved])))
		}},
	{name: "an image in a page", kind: audit.FoundImage, id: wasRemoved, where: "report.html",
		do: func(p *plot) []string {
			return p.put("report.html", []byte(`<html><img src="data:image/jpeg;base64,`+base64.StdEncoding.EncodeToString(p.images[wasRemoved])+`"></html>`))
		}},
	{name: "a thumbnail in a report, by its name", kind: audit.FoundImage, id: wasRemoved, where: "report.html",
		do: func(p *plot) []string {
			return p.put("report.html", []byte(`<html><img alt="image `+wasRemoved+`" src="data:image/jpeg;base64,AAAA"></html>`))
		}},
	{name: "what describes an image, in state.db", kind: audit.FoundImage, id: wasRemoved, where: "state.db",
		do: func(p *plot) []string {
			return p.sql("INSERT INTO image SELECT '" + wasRemoved + "', 0, source, original_sha256, sha256, format, width, height, bytes, phash, flat, hash_kind, original_bytes, limits, pixels_sha256 FROM image WHERE id = '" + staysLive + "'")
		}},

	{name: "last week's Parquet under its name", kind: audit.FoundRow, id: wasRemoved, where: splitParquet(wasRemoved) + " > row",
		do: func(p *plot) []string { return p.put(splitParquet(wasRemoved), p.old(splitParquet(wasRemoved))) }},
	{name: "last week's Parquet is not the exported one", kind: audit.FoundExport, where: splitParquet(wasRemoved),
		do: func(p *plot) []string { return p.put(splitParquet(wasRemoved), p.old(splitParquet(wasRemoved))) }},
	{name: "last week's Parquet under another name", kind: audit.FoundCopy, where: "dataset/data/more.parquet",
		do: func(p *plot) []string { return p.put("dataset/data/more.parquet", p.old(splitParquet(wasDeleted))) }},
	{name: "a row in a Parquet without an extension", kind: audit.FoundRow, id: wasDeleted, where: "stash/p > row",
		do: func(p *plot) []string { return p.put("stash/p", p.old(splitParquet(wasDeleted))) }},
	{name: "a Parquet within a compressed file", kind: audit.FoundRow, id: wasAbsent, where: "stash/p.gz > gzip > row",
		do: func(p *plot) []string { return p.put("stash/p.gz", gzipOf(p.t, p.old(splitParquet(wasAbsent)))) }},
	{name: "a row in a Parquet that was handed over", kind: audit.FoundRow, id: wasAbsent, where: "handed.parquet > row",
		do: func(p *plot) []string { return []string{p.outside("handed.parquet", p.old(splitParquet(wasAbsent)))} }},
	{name: "a row in somebody's Parquet of ids", kind: audit.FoundRow, id: wasRemoved, where: "ids.parquet > row 1",
		do: func(p *plot) []string {
			return []string{"--id-column", "post", p.outside("ids.parquet", parquetOf(p.t, onlyID{"t3_" + staysLive}, onlyID{"T3_" + strings.ToUpper(wasRemoved)}))}
		}},
	{name: "a row in somebody's Parquet of permalinks", kind: audit.FoundRow, id: wasRemoved, where: "links.parquet > row 0",
		do: func(p *plot) []string {
			return []string{"--id-column", "post", p.outside("links.parquet", parquetOf(p.t, onlyID{"https://www.reddit.com/r/x/comments/" + wasRemoved + "/y/"}))}
		}},
	{name: "an image in the row of a live post", kind: audit.FoundImage, id: wasRemoved, where: "swapped.parquet > row 0",
		do: func(p *plot) []string {
			return []string{p.outside("swapped.parquet", parquetOf(p.t, withImage{staysLive, picture{p.images[wasRemoved], "a.jpg"}}))}
		}},
	{name: "a digest in the row of a live post", kind: audit.FoundImage, id: wasRemoved, where: "digests.parquet > row 0",
		do: func(p *plot) []string {
			return []string{"--sha256-column", "digest", p.outside("digests.parquet", parquetOf(p.t, withDigest{staysLive, []byte(p.digests[wasRemoved])}))}
		}},
	{name: "a row in a folder that was handed over", kind: audit.FoundRow, id: wasRemoved, where: "folder/deep/p > row",
		do: func(p *plot) []string {
			dir := filepath.Join(p.t.TempDir(), "folder")
			if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o700); err != nil {
				p.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "deep", "p"), p.old(splitParquet(wasRemoved)), 0o600); err != nil {
				p.t.Fatal(err)
			}
			return []string{dir}
		}},
	{name: "a line in a table", kind: audit.FoundRow, id: wasRemoved, where: "rows.csv",
		do: func(p *plot) []string { return p.put("rows.csv", []byte("id,label\n"+wasRemoved+",F1\n")) }},
	{name: "a line in JSON", kind: audit.FoundRow, id: wasRemoved, where: "rows.jsonl",
		do: func(p *plot) []string { return p.put("rows.jsonl", []byte(`{"post":"t3_`+wasRemoved+`"}`+"\n")) }},
	{name: "outcomes.csv says kept", kind: audit.FoundRow, id: wasRemoved, where: "outcomes.csv",
		do: func(p *plot) []string {
			return p.edit("outcomes.csv", func(b []byte) []byte {
				return regexp.MustCompile(`(?m)^`+wasRemoved+`,.*$`).ReplaceAll(b, []byte(wasRemoved+",0,train,kept,,,"))
			})
		}},

	{name: "a backup of the database", kind: audit.FoundRow, id: wasRemoved, where: "state.bak > table reading > row",
		do: func(p *plot) []string { return p.put("state.bak", p.old("state.db")) }},
	{name: "a backup of the database has hashes", kind: audit.FoundRow, id: wasDeleted, where: "old/db > table image > row",
		do: func(p *plot) []string { return p.put("old/db", p.old("state.db")) }},
	{name: "a compressed backup of the database", kind: audit.FoundRow, id: wasRemoved, where: "state.db.gz > gzip > table reading",
		do: func(p *plot) []string { return p.put("state.db.gz", gzipOf(p.t, p.old("state.db"))) }},
	{name: "a backup of the database outside", kind: audit.FoundRow, id: wasRemoved, where: "backup.db > table reading > row",
		do: func(p *plot) []string { return []string{p.outside("backup.db", p.old("state.db"))} }},
	{name: "last week's state.db", kind: audit.FoundTombstone, id: wasRemoved, where: "state.db",
		do: func(p *plot) []string { p.restore("state.db"); return nil }},
	{name: "last week's state.db knows fewer records", kind: audit.FoundLog, where: "state.db",
		do: func(p *plot) []string { p.restore("state.db"); return nil }},
	{name: "last week's state.db and images", kind: audit.FoundImage, id: wasRemoved, where: "images/fe/" + wasRemoved,
		do: func(p *plot) []string { p.restore("state.db"); p.restore("images"); return nil }},
	{name: "last week's workspace, against a checkpoint", kind: audit.FoundLog, where: "--since",
		do: func(p *plot) []string { p.ws = copyTree(p.t, p.backup); return []string{"--since", p.kept} }},

	{name: "a dropped tombstone", kind: audit.FoundTombstone, id: wasRemoved, where: "state.db",
		do: func(p *plot) []string { return p.sql("DELETE FROM tombstone WHERE id = '" + wasRemoved + "'") }},
	{name: "a suspended tombstone", kind: audit.FoundTombstone, id: wasDeleted, where: "state.db",
		do: func(p *plot) []string {
			return p.sql("UPDATE tombstone SET readmitted = 1 WHERE id = '" + wasDeleted + "'")
		}},
	{name: "a post made live by hand", kind: audit.FoundLog, id: wasAbsent, where: "state.db",
		do: func(p *plot) []string {
			return p.sql("UPDATE post SET state = 'live', checked_at = checked_at - 9, live_at = checked_at - 9 WHERE id = '" + wasAbsent + "'")
		}},
	{name: "an edited record", kind: audit.FoundLog, where: "audit",
		do: func(p *plot) []string {
			return p.edit("audit/records.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte(`"removed"`), []byte(`"held"`), 1) })
		}},
	{name: "a log cut short", kind: audit.FoundLog, where: "audit",
		do: func(p *plot) []string {
			return p.edit("audit/records.jsonl", func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] })
		}},
	{name: "records in another order", kind: audit.FoundLog, where: "audit",
		do: func(p *plot) []string {
			return p.edit("audit/records.jsonl", func(b []byte) []byte {
				lines := bytes.SplitAfter(b, []byte("\n"))
				lines[3], lines[4] = lines[4], lines[3]
				return bytes.Join(lines, nil)
			})
		}},
	{name: "a log that is gone", kind: audit.FoundLog, where: "audit",
		do: func(p *plot) []string {
			if err := os.RemoveAll(filepath.Join(p.ws, "audit")); err != nil {
				p.t.Fatal(err)
			}
			return nil
		}},
	{name: "last week's log", kind: audit.FoundLog, where: "audit",
		do: func(p *plot) []string { p.restore("audit"); return nil }},

	{name: "a registered copy has the row", kind: audit.FoundRow, id: wasRemoved, where: "given/p.parquet > row",
		do: func(p *plot) []string { return p.register("parquet", "p.parquet", p.old(splitParquet(wasRemoved))) }},
	{name: "a registered copy of webdataset has the image", kind: audit.FoundImage, id: wasRemoved, where: "given/train.tar > " + wasRemoved,
		do: func(p *plot) []string {
			return p.register("webdataset", "train.tar", tarOf(p.t, wasRemoved+".jpg", p.images[wasRemoved]))
		}},
	{name: "the release buries a post that is kept", kind: audit.FoundRow, id: staysLive, where: splitParquet(staysLive) + " > row",
		do: func(p *plot) []string { p.bury(staysLive); return nil }},
	{name: "the release buries a post whose image is kept", kind: audit.FoundImage, id: staysLive, where: "images/fe/" + staysLive,
		do: func(p *plot) []string { p.bury(staysLive); return nil }},
	{name: "a tombstone that no statement lifted", kind: audit.FoundRow, id: staysLive, where: splitParquet(staysLive) + " > row",
		do: func(p *plot) []string {
			p.bury(staysLive)
			return p.sql(`INSERT INTO meta (key, value) VALUES ('lifted', '[{"id":"` + staysLive + `","state":"removed","time":"2026-01-01T00:00:00Z",` +
				`"lifted":{"asserted":"2030-01-01T00:00:00Z"}}]')`)
		}},
	{name: "rows that nobody looked after for 49 hours", kind: audit.FoundStale, id: staysLive, where: splitParquet(staysLive) + " > row",
		do: func(p *plot) []string {
			p.now = func() time.Time { return time.Now().Add(49 * time.Hour) }
			return nil
		}},
	{name: "a row of a post that is withheld", kind: audit.FoundWithheld, id: staysLive, where: splitParquet(staysLive) + " > row",
		do: func(p *plot) []string {
			return p.sql("UPDATE post SET state = 'removed', withheld = 1, gone_at = checked_at WHERE id = '" + staysLive + "'")
		}},
	{name: "a removal that waited for 49 hours", kind: audit.FoundOverdue, id: staysLive, where: "state.db",
		do: func(p *plot) []string {
			return p.sql("UPDATE post SET state = 'removed', withheld = 1, gone_at = checked_at - 49*3600 WHERE id = '" + staysLive + "'")
		}},
	{name: "a table of somebody's in state.db", kind: audit.FoundRow, id: wasRemoved, where: "state.db > table stash > row 0",
		do: func(p *plot) []string {
			return p.exec("CREATE TABLE stash (x)", "INSERT INTO stash VALUES ('t3_"+wasRemoved+"')")
		}},
	{name: "a table in state.db is not ours", kind: audit.FoundCopy, where: "state.db",
		do: func(p *plot) []string { return p.exec("CREATE TABLE stash (x)") }},
	{name: "an image in state.db, as base64 in a note of ours", kind: audit.FoundImage, id: wasRemoved, where: "state.db > table meta",
		do: func(p *plot) []string {
			return p.exec("INSERT INTO meta (key, value) VALUES ('x', '" + base64.StdEncoding.EncodeToString(p.images[wasRemoved]) + "')")
		}},
	{name: "a text in the free pages of state.db", kind: audit.FoundCopy, where: "state.db",
		do: func(p *plot) []string {
			return p.exec("PRAGMA secure_delete=OFF", "CREATE TABLE z (x)", "INSERT INTO z VALUES ('"+strings.Repeat("words that were erased ", 900)+"')", "DROP TABLE z")
		}},
	{name: "something behind the end of state.db", kind: audit.FoundCopy, where: "state.db",
		do: func(p *plot) []string {
			return p.edit("state.db", func(b []byte) []byte { return append(b, "t3_"+wasRemoved...) })
		}},
	{name: "what lies behind the end of state.db", kind: audit.FoundRow, id: wasRemoved, where: "state.db > free pages",
		do: func(p *plot) []string {
			return p.edit("state.db", func(b []byte) []byte { return append(b, "t3_"+wasRemoved...) })
		}},
	{name: "last seen live in a year that is yet to come", kind: audit.FoundStale, id: staysLive, where: splitParquet(staysLive) + " > row",
		do: func(p *plot) []string {
			return p.sql("UPDATE post SET live_at = 2650000000 WHERE id = '" + staysLive + "'")
		}},

	{name: "removed since", live: true, kind: audit.FoundRow, id: nowRemoved, where: splitParquet(nowRemoved) + " > row"},
	{name: "deleted since, the image", live: true, kind: audit.FoundImage, id: nowDeleted, where: "images/fe/" + nowDeleted},
	{name: "absent twice, the text", live: true, kind: audit.FoundText, id: nowAbsent, where: "state.db"},
	{name: "quarantined since", live: true, kind: audit.FoundRow, id: nowQuarantined, where: splitParquet(nowQuarantined) + " > row"},
	{name: "a text in the row of a live post", live: true, kind: audit.FoundText, id: nowRemoved, where: "texts.parquet > row 0",
		do: func(p *plot) []string {
			return []string{"--text-column", "words", p.outside("texts.parquet", parquetOf(p.t, withText{staysLive, strings.ToUpper(p.texts[nowRemoved])}))}
		}},
	{name: "a text in a note", live: true, kind: audit.FoundText, id: nowRemoved, where: "note.txt",
		do: func(p *plot) []string { return p.put("note.txt", []byte("as seen:\n"+p.texts[nowRemoved]+"\n")) }},
	{name: "a perceptual hash under a made-up id", live: true, kind: audit.FoundImage, id: nowRemoved, where: "hashes.parquet > row 0",
		do: func(p *plot) []string {
			return []string{"--phash-column", "h", p.outside("hashes.parquet", parquetOf(p.t, withHash{"not an id", int64(p.hashes[nowRemoved] ^ 5)}))}
		}},
	{name: "a recompressed image that was handed over", live: true, kind: audit.FoundImage, id: nowRemoved, where: "some.jpg",
		do: func(p *plot) []string {
			return []string{p.outside("some.jpg", again(p.t, p.images[nowRemoved], false))}
		}},
	{name: "a recompressed image in a row of another post", live: true, kind: audit.FoundImage, id: nowRemoved, where: "re.parquet > row 0",
		do: func(p *plot) []string {
			return []string{p.outside("re.parquet", parquetOf(p.t, withImage{staysLive, picture{again(p.t, p.images[nowRemoved], false), "a.jpg"}}))}
		}},
	{name: "a consistent backup of last week", live: true, kind: audit.FoundRow, id: wasRemoved, where: splitParquet(wasRemoved) + " > row",
		do: func(p *plot) []string { p.ws = copyTree(p.t, p.backup); return nil }},
}

// register registers a copy outside the workspace that holds a file.
func (p *plot) register(format, name string, body []byte) []string {
	p.t.Helper()
	dir := filepath.Join(p.t.TempDir(), "given")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
		p.t.Fatal(err)
	}
	ws, err := workspace.Open(p.t.Context(), p.ws, workspace.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer ws.Close()
	if err := ws.SetCopy(p.t.Context(), workspace.Copy{Path: dir, Note: "a colleague", Format: format, Made: time.Now()}); err != nil {
		p.t.Fatal(err)
	}
	return nil
}

// changeRelease gives the plot a release of its own.
func (p *plot) changeRelease(change func(dir string)) {
	p.t.Helper()
	other := *p.audited
	other.site = p.site.on(p.t, p.ws)
	other.release = copyTree(p.t, p.release)
	p.audited = &other
	change(p.release)
}

// bury has the release publish a tombstone.
func (p *plot) bury(id string) {
	p.t.Helper()
	p.changeRelease(func(dir string) {
		p.write(filepath.Join(dir, "release.toml"), demoRelease+"tombstones = \"tombstones.csv\"\n")
		p.write(filepath.Join(dir, "tombstones.csv"), "id,state,time\n"+id+",removed,2026-01-01T00:00:00Z\n")
	})
}

// TestAuditFindsPlanted plants violations of every kind, each in a copy of one clean workspace, and
// has the audit find each.
func TestAuditFindsPlanted(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAudited(t)
	if len(violations) < 40 {
		t.Errorf("only %d violations", len(violations))
	}
	for _, v := range violations {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			copied := *a
			copied.site = a.site.on(t, "")
			p := &plot{audited: &copied, t: t, ws: copyTree(t, a.workspace)}
			var more []string
			if v.do != nil {
				more = v.do(p)
			}
			if !v.live {
				more = append(more, "--offline")
			}
			p.site.workspace, p.site.t = p.ws, t
			r := p.audit(exitFound, more...)
			for _, f := range r.Findings {
				if f.Kind == v.kind && f.ID == v.id && strings.Contains(f.Where, v.where) {
					return
				}
			}
			t.Errorf("not found: %s of %q at %q; found:\n%+v", v.kind, v.id, v.where, r.Findings)
		})
	}
}

// the clean workspace stays clean beside files that are harmless.
func TestAuditLeavesAlone(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	live := s.records()[1]
	body, err := os.ReadFile(filepath.Join(s.workspace, "images", "fe", "few001.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	s.write(filepath.Join(outside, "a.jpg"), string(body))
	s.write(filepath.Join(outside, "rows.parquet"), string(parquetOf(t, withText{string(live.ID), live.Reading.Text})))
	for _, mode := range [][]string{{"--offline"}, nil} {
		if r := s.audit(exitDone, append(mode, "--text-column", "words", outside)...); len(r.Findings)+len(r.Gaps) > 0 || r.Verdict != audit.Pass {
			t.Errorf("%q: %+v %+v", mode, r.Findings, r.Gaps)
		}
	}
	if n := len(s.imageRequests()); n != 6 {
		t.Errorf("%d requests to image hosts, and all but the run's 6 are the audit's", n)
	}
	// Of a post that is not in the release only Reddit can say something.
	s.write(filepath.Join(outside, "rows.parquet"), string(parquetOf(t, onlyID{"nosuch1"})))
	if r := s.audit(exitIncomplete, "--offline", "--id-column", "post", outside); r.Verdict != audit.Incomplete {
		t.Errorf("%+v", r)
	}
}
