package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/parquet-go/parquet-go"

	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/workspace"
)

// Layouts of a Parquet that hide something.
type (
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
	base36 struct {
		ID int64 `parquet:"id"`
	}
	besides struct {
		ID     string `parquet:"id"`
		Backup []byte `parquet:"backup"`
	}
)

// inBase36 is a post id as the number that some tools keep.
func inBase36(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 36, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// hiddenGroup is a Parquet with a second row group that the footer does not name: the bytes of one file
// before the footer of another.
func hiddenGroup(t *testing.T, shown, hidden string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[onlyID](&b)
	for _, id := range []string{shown, hidden} {
		if _, err := w.Write([]onlyID{{id}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	var first bytes.Buffer
	f := parquet.NewGenericWriter[onlyID](&first)
	if _, err := f.Write([]onlyID{{shown}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	footer := first.Bytes()[first.Len()-8-int(binary.LittleEndian.Uint32(first.Bytes()[first.Len()-8:])):]
	return append(bytes.Clone(b.Bytes()), footer...)
}

func utf16Of(s string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// padded puts something harmless before a data address, so that the image of a page lies across two blocks.
func padded(n int, body []byte) []byte {
	return append(bytes.Repeat([]byte("<p>nothing</p>\n"), n/15), `<img src="data:image/jpeg;base64,`+base64.StdEncoding.EncodeToString(body)+`">`...)
}

// noisy is an image of more bytes than two blocks of a file share.
func noisy(t *testing.T, seed uint32) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 300, 300))
	for i := range img.Pix {
		seed = seed*1664525 + 1013904223
		img.Pix[i] = byte(seed >> 24)
	}
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cheats are what an operator would try who knows how an audit looks.
var cheats = []planted{
	{name: "a stash in the lock", kind: audit.FoundImage, id: wasRemoved, where: "lock",
		do: func(p *plot) []string { return p.put("lock", p.images[wasRemoved]) }},
	{name: "a recompressed image in place of a live post's, its hash long gone", kind: audit.FoundImage, id: staysLive, where: "images/fe/" + staysLive + ".jpg",
		do: func(p *plot) []string {
			return p.put("images/fe/"+staysLive+".jpg", again(p.t, p.images[wasRemoved], false))
		}},
	{name: "a table in the dataset folder", kind: audit.FoundRow, id: wasRemoved, where: "dataset/rows.csv",
		do: func(p *plot) []string { return p.put("dataset/rows.csv", []byte("id,label\n"+wasRemoved+",F1\n")) }},
	{name: "an id in upper case", kind: audit.FoundRow, id: wasRemoved, where: "rows.csv",
		do: func(p *plot) []string {
			return p.put("rows.csv", []byte("ID,LABEL\nT3_"+strings.ToUpper(wasRemoved)+",F1\n"))
		}},
	{name: "withheld by hand, without a clock", kind: audit.FoundOverdue, id: staysLive, where: "state.db",
		do: func(p *plot) []string {
			return p.sql("UPDATE post SET state = 'removed', withheld = 1, gone_at = 0, checked_at = checked_at - 49*3600 WHERE id = '" + staysLive + "'")
		}},
	{name: "the id in another column", kind: audit.FoundRow, id: wasRemoved, where: "two.parquet > row 0",
		do: func(p *plot) []string {
			return []string{p.outside("two.parquet", parquetOf(p.t, twoIDs{staysLive, wasRemoved}))}
		}},
	{name: "the id beside a row number", kind: audit.FoundRow, id: wasRemoved, where: "numbered.parquet > row 1",
		do: func(p *plot) []string {
			return []string{p.outside("numbered.parquet", parquetOf(p.t, numbered{0, staysLive}, numbered{1, wasRemoved}))}
		}},
	{name: "the id as a number", kind: audit.FoundRow, id: wasRemoved, where: "n.parquet > row 0",
		do: func(p *plot) []string {
			return []string{p.outside("n.parquet", parquetOf(p.t, base36{inBase36(p.t, wasRemoved)}))}
		}},
	{name: "the id early in a list", kind: audit.FoundRow, id: wasRemoved, where: "list.parquet > row 0",
		do: func(p *plot) []string {
			return []string{"--id-column", "posts.list.element", p.outside("list.parquet", parquetOf(p.t, listed{[]string{wasRemoved, staysLive}}))}
		}},
	{name: "an image in a column of another name", kind: audit.FoundImage, id: wasRemoved, where: "besides.parquet > row 0",
		do: func(p *plot) []string {
			return []string{p.outside("besides.parquet", parquetOf(p.t, besides{staysLive, p.images[wasRemoved]}))}
		}},
	{name: "an image under a folder that is named after the post", kind: audit.FoundImage, id: wasRemoved, where: wasRemoved + "/1.jpg",
		do: func(p *plot) []string {
			return []string{p.folder(wasRemoved+"/1.jpg", again(p.t, p.images[wasRemoved], false))}
		}},
	{name: "an image of a page that lies across what is read at a time", kind: audit.FoundImage, id: wasRemoved, where: "page.html",
		do: func(p *plot) []string {
			big := noisy(p.t, 1)
			dir := p.folder("page.html", padded(1<<20-20<<10, big))
			if err := os.WriteFile(filepath.Join(dir, "a.parquet"), parquetOf(p.t, withImage{wasRemoved, picture{big, "a.jpg"}}), 0o600); err != nil {
				p.t.Fatal(err)
			}
			return []string{dir}
		}},
	{name: "a sidecar that is named after the post", kind: audit.FoundRow, id: wasRemoved, where: wasRemoved + ".json",
		do: func(p *plot) []string { return []string{p.folder(wasRemoved+".json", []byte(`{"label":"F1"}`))} }},
	{name: "an image in JSON", kind: audit.FoundImage, id: wasRemoved, where: "rows.jsonl",
		do: func(p *plot) []string {
			return []string{p.outside("rows.jsonl", []byte(`{"id":"x1","image":"`+base64.StdEncoding.EncodeToString(p.images[wasRemoved])+`"}`+"\n"))}
		}},
	{name: "a tar of an old kind", kind: audit.FoundImage, id: wasRemoved, where: "v7.tar > 000.jpg",
		do: func(p *plot) []string {
			return []string{p.outside("v7.tar", oldTar(p.t, "000.jpg", p.images[wasRemoved]))}
		}},
	{name: "a contiguous file in a tar", kind: audit.FoundImage, id: wasRemoved, where: "cont.tar > 000.jpg",
		do: func(p *plot) []string {
			return []string{p.outside("cont.tar", retyped(tarOf(p.t, "000.jpg", p.images[wasRemoved]), tar.TypeCont))}
		}},
	{name: "a tar behind a tar", kind: audit.FoundImage, id: wasRemoved, where: "two.tar > bytes from 2048 > b.jpg",
		do: func(p *plot) []string {
			return []string{p.outside("two.tar", append(tarOf(p.t, "a.txt", []byte("x")), tarOf(p.t, "b.jpg", p.images[wasRemoved])...))}
		}},
	{name: "a table in UTF-16", kind: audit.FoundRow, id: wasRemoved, where: "rows.csv > row 0",
		do: func(p *plot) []string { return []string{p.outside("rows.csv", utf16Of("id\n"+wasRemoved+"\n"))} }},
	{name: "a row behind a link that leads nowhere", kind: audit.FoundRow, id: wasRemoved, where: "rows.csv",
		do: func(p *plot) []string {
			dir := p.folder("rows.csv", []byte("id\n"+wasRemoved+"\n"))
			if err := os.Symlink("/nonexistent", filepath.Join(dir, "a")); err != nil {
				p.t.Fatal(err)
			}
			return []string{dir}
		}},
	{name: "a text in JSON, its lines short", live: true, kind: audit.FoundText, id: nowRemoved, where: "note.json",
		do: func(p *plot) []string {
			b, err := json.Marshal(map[string]string{"words": strings.ReplaceAll(p.texts[nowRemoved], " ", "\n")})
			if err != nil {
				p.t.Fatal(err)
			}
			return []string{p.outside("note.json", b)}
		}},
	{name: "a text in capitals", live: true, kind: audit.FoundText, id: nowRemoved, where: "note.txt",
		do: func(p *plot) []string {
			return []string{p.outside("note.txt", []byte("seen: "+strings.ToUpper(p.texts[nowRemoved])))}
		}},
}

// opaque are what an audit cannot look into: it says so, and there is no PASS.
var opaque = []planted{
	{name: "a stash in a journal", where: "state.db-journal",
		do: func(p *plot) []string { return p.put("state.db-journal", p.images[wasRemoved]) }},
	{name: "a row group that the footer hides", where: "hidden.parquet",
		do: func(p *plot) []string {
			return []string{"--id-column", "post", p.outside("hidden.parquet", hiddenGroup(p.t, staysLive, wasRemoved))}
		}},
	{name: "a compressed file that is damaged", where: "rows.csv.zst",
		do: func(p *plot) []string {
			return []string{p.outside("rows.csv.zst", []byte("\x28\xb5\x2f\xfd\x04\x00rest"))}
		}},
	{name: "an image of a format that is not read", where: "a.bmp",
		do: func(p *plot) []string {
			return []string{p.outside("a.bmp", []byte("BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00"))}
		}},
	{name: "ids of no release in a compressed Parquet", where: "p.gz > gzip",
		do: func(p *plot) []string {
			return []string{"--id-column", "post", p.outside("p.gz", gzipOf(p.t, parquetOf(p.t, onlyID{"zzz999"})))}
		}},
	{name: "an open obligation that is out of reach", where: "gone-away",
		do: func(p *plot) []string {
			ws, err := workspace.Open(p.t.Context(), p.ws, workspace.Options{})
			if err != nil {
				p.t.Fatal(err)
			}
			defer ws.Close()
			if err := ws.SetCopy(p.t.Context(), workspace.Copy{Path: "/nonexistent/gone-away", Note: "a colleague", Format: "parquet", Made: time.Now(), Open: true, Told: "1 row must go"}); err != nil {
				p.t.Fatal(err)
			}
			return nil
		}},
	{name: "content without a grant", where: "grant",
		do: func(p *plot) []string {
			p.changeRelease(func(dir string) {
				p.write(filepath.Join(dir, "policy.toml"), fastPolicy+"\n[access]\ngrant = \"required\"\n")
			})
			return nil
		}},
	{name: "a seal that is gone", where: "audit/seal.json", do: func(p *plot) []string { p.remove("audit/seal.json"); return nil }},
	{name: "a write-ahead log beside state.db", where: "state.db-wal", do: func(p *plot) []string { return p.put("state.db-wal", []byte("\x37\x7f\x06\x82rest")) }},
	{name: "a copy that somebody changed", where: "p.parquet", do: copyRecordedAs("p.parquet")},
	{name: "a copy of which a file was moved away", where: "moved.parquet", do: copyRecordedAs("moved.parquet")},
	{name: "an image that cannot be decoded", live: true, where: "cut.jpg",
		do: func(p *plot) []string {
			return []string{p.outside("cut.jpg", p.images[nowRemoved][:len(p.images[nowRemoved])/2])}
		}},
}

// harmless is what an audit must leave alone.
var harmless = []planted{
	{name: "the list of tombstones",
		do: func(p *plot) []string { return []string{p.folder("tombstones.csv", p.held("tombstones.csv"))} }},
	{name: "row numbers beside the ids",
		do: func(p *plot) []string {
			return []string{p.outside("numbered.parquet", parquetOf(p.t, numbered{0, staysLive}, numbered{1, "few002"}))}
		}},
	{name: "a permalink beside the id",
		do: func(p *plot) []string {
			return []string{p.outside("two.parquet", parquetOf(p.t, twoIDs{staysLive, "t3_" + staysLive}))}
		}},
	{name: "an unfinished file of a killed run",
		do: func(p *plot) []string { return p.put("dataset/data/.tmp-123", nil) }},
	{name: "a live post's image under any name",
		do: func(p *plot) []string { return []string{p.folder("a.jpg", p.images[staysLive])} }},
	{name: "a live post's image in a page",
		do: func(p *plot) []string { return []string{p.outside("a.html", padded(100, p.images[staysLive]))} }},
	{name: "a Parquet of another writer",
		do: func(p *plot) []string {
			return []string{"--id-column", "post", p.outside("p.parquet", parquetOf(p.t, onlyID{staysLive}))}
		}},
}

// beside are harmless things beside a row that must go: nothing is said of them.
var beside = []planted{
	{name: "a live post has the very image", where: "live.jpg",
		do: func(p *plot) []string {
			dir := p.folder("live.jpg", p.images[staysLive])
			row := parquetOf(p.t, withImage{wasRemoved, picture{p.images[staysLive], "a.jpg"}})
			if err := os.WriteFile(filepath.Join(dir, "a.parquet"), row, 0o600); err != nil {
				p.t.Fatal(err)
			}
			return []string{dir}
		}},
	{name: "a live post has the very text", where: "live.txt",
		do: func(p *plot) []string {
			dir := p.folder("live.txt", []byte(p.texts[staysLive]))
			row := parquetOf(p.t, withText{wasRemoved, p.texts[staysLive]})
			if err := os.WriteFile(filepath.Join(dir, "a.parquet"), row, 0o600); err != nil {
				p.t.Fatal(err)
			}
			return []string{"--text-column", "words", dir}
		}},
}

// folder writes a file into a folder that is not in the workspace and returns the folder.
func (p *plot) folder(name string, body []byte) string {
	p.t.Helper()
	dir := p.t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return dir
}

func (p *plot) held(name string) []byte {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.ws, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// retyped gives the first member of a tar another type.
func retyped(b []byte, kind byte) []byte {
	b[156] = kind
	return rechecked(b)
}

// oldTar is a tar as of before POSIX.
func oldTar(t *testing.T, name string, body []byte) []byte {
	t.Helper()
	b := tarOf(t, name, body)
	clear(b[257:345])
	return rechecked(b)
}

func rechecked(b []byte) []byte {
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:156], []byte(strconv.FormatInt(1<<18+int64(sum), 8)[1:]+"\x00 "))
	return b
}

// TestAuditCheats has the audit find what somebody hides who knows how it looks, say what it cannot look into,
// and leave alone what is harmless.
func TestAuditCheats(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAudited(t)
	try := func(t *testing.T, v planted, want int, good func(r audit.Report) bool) {
		copied := *a
		copied.site = a.site.on(t, "")
		p := &plot{audited: &copied, t: t, ws: copyTree(t, a.workspace)}
		more := v.do(p)
		if !v.live {
			more = append(more, "--offline")
		}
		p.site.workspace, p.site.t = p.ws, t
		f := p.site.do(p.site.env(), append([]string{"audit", p.release, "-w", p.ws, "--json", "--no-record", "--approval", "TEST-1", "--connect-to", p.emulator.ConnectTo(), "--cacert", p.cacert}, more...)...)
		var r audit.Report
		if err := json.Unmarshal([]byte(f.stdout), &r); err != nil || (!v.live || want == exitFound) && f.code != want || !good(r) {
			t.Errorf("exit %d, want %d (%v): %s %+v %+v %s", f.code, want, err, r.Verdict, r.Findings[:min(len(r.Findings), 6)], r.Gaps, shorten(f.stderr))
		}
	}
	for _, v := range cheats {
		t.Run("cheat: "+v.name, func(t *testing.T) {
			t.Parallel()
			try(t, v, exitFound, func(r audit.Report) bool {
				return slices.ContainsFunc(r.Findings, func(f audit.Finding) bool {
					return f.Kind == v.kind && f.ID == v.id && strings.Contains(f.Where, v.where)
				})
			})
		})
	}
	for _, v := range opaque {
		t.Run("opaque: "+v.name, func(t *testing.T) {
			t.Parallel()
			try(t, v, exitIncomplete, func(r audit.Report) bool {
				return slices.ContainsFunc(r.Gaps, func(g audit.Gap) bool { return g.ID == v.id && strings.Contains(g.Where, v.where) })
			})
		})
	}
	for _, v := range harmless {
		t.Run("harmless: "+v.name, func(t *testing.T) {
			t.Parallel()
			try(t, v, exitDone, func(r audit.Report) bool { return r.Verdict == audit.Pass })
		})
	}
	for _, v := range beside {
		t.Run("beside: "+v.name, func(t *testing.T) {
			t.Parallel()
			try(t, v, exitFound, func(r audit.Report) bool {
				return !slices.ContainsFunc(r.Findings, func(f audit.Finding) bool { return strings.Contains(f.Where, v.where) })
			})
		})
	}
}

// TestVerifyStash has verify see what is kept in the lock, and what a seal that was made since covers.
func TestVerifyStash(t *testing.T) {
	t.Parallel()
	s := wholeSite(t)
	p := &plot{audited: &audited{site: s}, t: t, ws: s.workspace}
	lock := p.held("lock")
	p.put("lock", bytes.Repeat([]byte("x"), 99))
	if r := s.verify(exitDamaged); len(r.Damage) != 1 || r.Damage[0].Where != "lock" {
		t.Errorf("%+v", r.Damage)
	}
	p.put("lock", lock)
	p.put("dataset/rows.csv", []byte("id\nfew001\n"))
	if r := s.verify(exitDamaged); len(r.Damage) != 1 || r.Damage[0].Where != "dataset/rows.csv" {
		t.Errorf("%+v", r.Damage)
	}
	if f := s.do(nil, "report", "-w", s.workspace); f.code != exitDone {
		t.Fatalf("report = exit %d\n%s", f.code, f.stderr)
	}
	if r := s.verify(exitDone); !strings.Contains(strings.Join(r.Notes, "\n"), "dataset/rows.csv is on no record") {
		t.Errorf("the seal of the report hides it: %+v", r)
	}
}

// copyRecordedAs registers a copy whose record has another file than the p.parquet that is there.
func copyRecordedAs(name string) func(p *plot) []string {
	return func(p *plot) []string {
		dir := p.folder("p.parquet", parquetOf(p.t, withText{staysLive, "x"}))
		ws, err := workspace.Open(p.t.Context(), p.ws, workspace.Options{})
		if err != nil {
			p.t.Fatal(err)
		}
		defer ws.Close()
		if err := ws.SetCopy(p.t.Context(), workspace.Copy{Path: dir, Note: "a colleague", Format: "parquet", Made: time.Now(),
			Files: []workspace.File{{Name: name, SHA256: strings.Repeat("0", 64), Size: 1}}}); err != nil {
			p.t.Fatal(err)
		}
		return nil
	}
}
