package copies

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestPurgeTakesRowsOutOfEveryFormat: a row leaves every file of a copy, whatever its format; the others stay.
func TestPurgeTakesRowsOutOfEveryFormat(t *testing.T) {
	for _, format := range Formats() {
		s := newSite(t)
		s.copy("x", format)
		r := s.purge("x", s.gone("few001"))
		testkit.Same(t, format+" after the purge of one", ids[1:], s.holds("x"))
		testkit.Same(t, format+" purged", []string{"few001"}, r.Purged)
		images := func() int {
			list, err := filepath.Glob(filepath.Join(s.dir, "x", "*", "*.png"))
			testkit.OK(t, err)
			return len(list)
		}
		folder := map[string]int{"folder": 1}[format]
		testkit.Same(t, format+" images that stay", 2*folder, images())
		testkit.Same(t, format+" owed", []string{}, r.Owed)
		testkit.Same(t, format+" state", state.CopyGood, r.State)
		record := s.record("x")
		testkit.Same(t, "rows on record", []string{"few002", "few003"}, record.Rows)
		if record.Next != nil || record.Open {
			t.Errorf("%s: the record keeps what is done: %+v", format, record)
		}
		if got := s.list("x"); got.State != state.CopyGood {
			t.Errorf("%s is listed as %+v", format, got)
		}
		card, err := os.ReadFile(filepath.Join(s.dir, "x", cardName))
		if err != nil || !strings.Contains(string(card), "Set") {
			t.Errorf("%s: a copy without its card: %v", format, err)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "x", croissantName)); err == nil {
			t.Errorf("%s: digests of files that are no more stay", format)
		}
		log := s.events(auditlog.CopyPurged)
		testkit.Same(t, "the log", []auditlog.Post{{ID: "few001"}}, log[0].Posts)
		testkit.Same(t, "the log's verdict", "", log[0].Verdict)
		testkit.Same(t, "files in the log", logFiles(record.Files), log[0].Files)

		// A purge of the same finds nothing to do, and one of all leaves no row.
		again := s.purge("x", s.gone("few001"))
		testkit.Same(t, format+" purged again", []string{}, again.Purged)
		testkit.Same(t, format+" events", 1, len(s.events(auditlog.CopyPurged)))
		testkit.Same(t, format+" record", record, s.record("x"))
		last := s.purge("x", s.gone(ids...))
		testkit.Same(t, format+" purged at last", []string{"few002", "few003"}, last.Purged)
		testkit.Same(t, format+" at last", []manifest.PostID(nil), s.holds("x"))
		testkit.Same(t, format+" images at last", 0, images())
	}
}

// TestCardNamesNoEmptySplit: a split whose images have all gone leaves the card of a folder, and the others stay.
func TestCardNamesNoEmptySplit(t *testing.T) {
	s := newSite(t)
	s.copy("x", "folder")
	named := func() (splits []string) {
		card, err := os.ReadFile(filepath.Join(s.dir, "x", cardName))
		testkit.OK(t, err)
		for _, split := range []string{"train", "test"} {
			if strings.Contains(string(card), "split: \""+split+"\"") {
				splits = append(splits, split)
			}
		}
		return splits
	}
	testkit.Same(t, "at first", []string{"train", "test"}, named())
	s.purge("x", s.gone("few003"))
	testkit.Same(t, "without its last image", []string{"train"}, named())
}

// TestUnreachableCopyIsAnObligation: what the purge does not know it neither rewrites nor removes. The copy is an open
// obligation until the owner has put it in order.
func TestUnreachableCopyIsAnObligation(t *testing.T) {
	const shard = "data/train-00000-of-00001.parquet"
	theirs := t.TempDir()
	for _, tt := range []struct {
		name, want string
		do         func(s *site, at func(string) string) error
		mend       func(s *site, at func(string) string) error
	}{
		{"a file was changed", shard + ": somebody changed it",
			func(_ *site, at func(string) string) error { return os.WriteFile(at(shard), []byte("theirs"), 0o600) }, nil},
		{"a file that holds no row was changed", "README.md: somebody changed it",
			func(_ *site, at func(string) string) error {
				return os.WriteFile(at("README.md"), []byte("theirs"), 0o600)
			}, nil},
		{"a file is missing", shard + ": it is not there any more",
			func(_ *site, at func(string) string) error { return os.Rename(at(shard), at("../kept")) },
			func(_ *site, at func(string) string) error { return os.Rename(at("../kept"), at(shard)) }},
		{"a link to a file", shard + ": " + shard + " is not a regular file", func(_ *site, at func(string) string) error {
			return errors.Join(os.Rename(at(shard), filepath.Join(theirs, "shard")),
				os.Symlink(filepath.Join(theirs, "shard"), at(shard)))
		}, func(_ *site, at func(string) string) error {
			return errors.Join(os.Remove(at(shard)), os.Rename(filepath.Join(theirs, "shard"), at(shard)))
		}},
		{"a pipe", "is not a regular file", func(_ *site, at func(string) string) error {
			return errors.Join(os.Rename(at(shard), at("../kept")), syscall.Mkfifo(at(shard), 0o600))
		}, func(_ *site, at func(string) string) error { return os.Rename(at("../kept"), at(shard)) }},
		{"a link to a folder", "data", func(_ *site, at func(string) string) error {
			return errors.Join(os.Rename(at("data"), filepath.Join(theirs, "data")),
				os.Symlink(filepath.Join(theirs, "data"), at("data")))
		}, func(_ *site, at func(string) string) error {
			return errors.Join(os.Remove(at("data")), os.Rename(filepath.Join(theirs, "data"), at("data")))
		}},
		{"the folder was moved", "it is not there any more",
			func(_ *site, at func(string) string) error { return os.Rename(at(""), at("../away")) },
			func(_ *site, at func(string) string) error { return os.Rename(at("../away"), at("")) }},
		{"a file in the place of its parent", "it is not there any more",
			func(s *site, _ func(string) string) error {
				return errors.Join(os.Rename(s.dir, s.dir+"-away"), os.WriteFile(s.dir, nil, 0o600))
			},
			func(s *site, _ func(string) string) error {
				return errors.Join(os.Remove(s.dir), os.Rename(s.dir+"-away", s.dir))
			}},
		{"its parent was moved", "it is not there any more",
			func(s *site, _ func(string) string) error { return os.Rename(s.dir, s.dir+"-away") },
			func(s *site, _ func(string) string) error { return os.Rename(s.dir+"-away", s.dir) }},
		{"a file in its place", "something else lies in its place", func(_ *site, at func(string) string) error {
			return errors.Join(os.Rename(at(""), at("../away")), os.WriteFile(at("../x"), nil, 0o600))
		}, func(_ *site, at func(string) string) error {
			return errors.Join(os.Remove(at("../x")), os.Rename(at("../away"), at("")))
		}},
		{"a link in its place", "something else lies in its place", func(_ *site, at func(string) string) error {
			return errors.Join(os.Rename(at(""), at("../away")), os.Symlink("away", at("../x")))
		}, func(_ *site, at func(string) string) error {
			return errors.Join(os.Remove(at("../x")), os.Rename(at("../away"), at("")))
		}},
		{"a second file with the row",
			"data/mine.parquet, which is not part of the copy: the row of few001 is still in it; check it, and delete it",
			func(s *site, at func(string) string) error {
				body, err := os.ReadFile(at(shard))
				return errors.Join(err, os.WriteFile(at("data/mine.parquet"), body, 0o600))
			}, func(_ *site, at func(string) string) error { return os.Remove(at("data/mine.parquet")) }},
		{"an image of the post", "few001.png shows a post that must go: delete it",
			func(_ *site, at func(string) string) error { return os.WriteFile(at("few001.png"), nil, 0o600) },
			func(_ *site, at func(string) string) error { return os.Remove(at("few001.png")) }},
		{"a file that nobody can read", "data/mine.parquet", func(_ *site, at func(string) string) error {
			return os.WriteFile(at("data/mine.parquet"), []byte("PAR1"), 0o600)
		},
			func(_ *site, at func(string) string) error { return os.Remove(at("data/mine.parquet")) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.copy("x", "parquet")
			at := func(name string) string { return filepath.Join(s.dir, "x", name) }
			testkit.OK(t, tt.do(s, at))
			gone := s.gone("few001")
			r := s.purge("x", gone)
			if r.State != state.CopyOpen || !strings.Contains(r.Told, tt.want) ||
				!slices.Equal(r.Owed, []string{"few001"}) || len(r.Purged) > 0 {
				t.Errorf("the purge reports %+v, want %q", r, tt.want)
			}
			record := s.record("x")
			if !record.Open || !slices.Contains(record.Rows, "few001") {
				t.Errorf("on record is %+v", record)
			}
			log := s.events(auditlog.CopyPurged)
			if len(log) != 1 || log[0].Verdict != "open" {
				t.Errorf("the log has %+v", log)
			}
			if got := s.list("x"); got.State != state.CopyOpen || got.Told == "" {
				t.Errorf("it is listed as %+v", got)
			}
			if tt.mend == nil {
				file, _, _ := strings.Cut(tt.want, ":")
				testkit.Same(t, "nothing else is said of it", file+": "+errChanged.Error(), r.Told)
				after, err := os.ReadFile(at(file))
				testkit.Same(t, "the changed file", "theirs", string(after), err)
				return
			}
			testkit.OK(t, tt.mend(s, at))
			r = s.purge("x", gone)
			if r.State != state.CopyGood || !slices.Equal(r.Purged, []string{"few001"}) {
				// The shards that could be read were purged the first time.
				t.Errorf("mended, the purge reports %+v", r)
			}
			testkit.Same(t, "rows that stay", ids[1:], s.holds("x"))
			if got := s.list("x"); got.State != state.CopyGood {
				t.Errorf("mended, it is listed as %+v", got)
			}
		})
	}
}

// TestForeignFileIsAnObligation: what no export wrote can hold a row under any name and in any form, so a copy with
// such a file owes what went until the file is moved away. Nothing is done to the file.
func TestForeignFileIsAnObligation(t *testing.T) {
	const shard = "data/train-00000-of-00001.parquet"
	for _, name := range []string{"data/mine.bin", "x.parquet.bak", "data/.hidden", "copy of few001.png",
		"deep/er/notes"} {
		s := newSite(t)
		s.copy("x", "parquet")
		at := func(name string) string { return filepath.Join(s.dir, "x", name) }
		body, err := os.ReadFile(at(shard))
		testkit.OK(t, err, os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), body, 0o600))
		testkit.Same(t, name+" before anything went", state.CopyGood, s.purge("x", state.GoneSet{}).State)
		testkit.Same(t, name+" before anything went, listed", state.CopyGood, s.list("x").State)
		gone := s.gone("few001")
		owes := func(what string, r state.CopyReport) {
			t.Helper()
			if r.State != state.CopyOpen || !strings.Contains(r.Told,
				name+", which is not part of the copy (any more), may hold") {
				t.Errorf("%s, %s: %+v", name, what, r)
			}
		}
		// The rows in its own files are out, and nothing but the file keeps it open.
		for i, taken := range [][]string{{"few001"}, {}} {
			r := s.purge("x", gone)
			owes("purged", r)
			testkit.Same(t, name+", taken out", [2][]string{taken, {}}, [2][]string{r.Purged, r.Owed})
			listed := s.list("x")
			owes("listed", listed)
			testkit.Same(t, name+", owed and left", [2]int{0, 2}, [2]int{len(listed.Owed), listed.Rows})
			log := s.events(auditlog.CopyPurged)
			testkit.Same(t, "the log", []any{"open", len(taken)}, []any{log[i].Verdict, len(log[i].Posts)})
		}
		after, err := os.ReadFile(at(name))
		testkit.Same(t, "the file", string(body), string(after), err)
		testkit.OK(t, os.Remove(at(name)))
		testkit.Same(t, "rows in its own files", ids[1:], s.holds("x"))
		if r := s.purge("x", gone); r.State != state.CopyGood || len(r.Purged) > 0 {
			t.Errorf("%s was moved away: %+v", name, r)
		}
		testkit.OK(t, os.WriteFile(at(name), nil, 0o600))
		testkit.Same(t, "an empty file", state.CopyGood, s.purge("x", gone).State)
		testkit.OK(t, os.WriteFile(at(name), body, 0o600))
		owes("listed, put back", s.list("x"))
		owes("purged, put back", s.purge("x", gone))
		testkit.OK(t, os.Remove(at(name)), os.Symlink(shard, at(name)))
		owes("a link", s.purge("x", gone))
		testkit.OK(t, os.Remove(at(name)))
		testkit.Same(t, "without it", state.CopyGood, s.purge("x", gone).State)
	}
}

// TestOwnFilePutBackIsNotForeign: a file that an export wrote and a purge took out is not called somebody else's when
// it is put back.
func TestOwnFilePutBackIsNotForeign(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	at := filepath.Join(s.dir, "x", croissantName)
	body, err := os.ReadFile(at)
	testkit.OK(t, err)
	gone := s.gone("few001")
	testkit.Same(t, "purged", state.CopyGood, s.purge("x", gone).State)
	testkit.OK(t, os.WriteFile(at, body, 0o600))
	if r := s.purge("x", gone); r.State != state.CopyOpen ||
		!strings.HasPrefix(r.Told, croissantName+", which is not part of the copy (any more), may hold a row") {
		t.Errorf("put back: %+v", r)
	}
}

// TestMountPoint: while the disk with a copy is away and an empty folder stands in its place, no file leaves its
// record. When it is there again, untouched, a purge takes out what must go, and nothing is left to complain of.
func TestMountPoint(t *testing.T) {
	for _, format := range Formats() {
		s := newSite(t)
		s.copy("x", format)
		at, away := filepath.Join(s.dir, "x"), filepath.Join(s.dir, "away")
		testkit.OK(t, os.Rename(at, away), os.Mkdir(at, 0o700))
		before := s.record("x")
		gone := s.gone("few001")
		r := s.purge("x", gone)
		testkit.Same(t, format+", an empty folder", state.CopyOpen, r.State)
		testkit.Same(t, format+", rows that it owes", []string{"few001"}, r.Owed)
		testkit.Same(t, format+", files on record", before.Files, s.record("x").Files)
		testkit.OK(t, os.Remove(at), os.Rename(away, at))
		r = s.purge("x", gone)
		testkit.Same(t, format+", there again", state.CopyGood, r.State)
		testkit.Same(t, format+", there again: told", "", r.Told)
		testkit.Same(t, format+", rows", ids[1:], s.holds("x"))
		testkit.Same(t, format+", listed", state.CopyGood, s.list("x").State)
	}
}

// TestEndClosesNoCopyWithAForeignFile: the end of a workspace closes no copy in which a file lies that no export wrote.
func TestEndClosesNoCopyWithAForeignFile(t *testing.T) {
	s := newSite(t)
	s.copy("x", "folder")
	s.copy("y", "folder")
	theirs := filepath.Join(s.dir, "x", "keep", "t.parquet.old")
	testkit.OK(t, os.Mkdir(filepath.Dir(theirs), 0o700), os.WriteFile(theirs, []byte("rows"), 0o600))
	reports := must(End(t.Context(), s.ws, now))
	testkit.Same(t, "another copy", state.CopyClosed, find(t, reports, filepath.Join(s.dir, "y")).State)
	report := find(t, reports, filepath.Join(s.dir, "x"))
	if report.State != state.CopyOpen || !strings.Contains(report.Told,
		"keep/t.parquet.old, which is not part of the copy (any more)") || len(report.Owed) > 0 || len(report.Purged) != len(ids) {
		t.Errorf("the end reports %+v", report)
	}
	testkit.Same(t, "rows in its own files", []manifest.PostID(nil), s.holds("x"))
	body, err := os.ReadFile(theirs)
	testkit.Same(t, "the file", "rows", string(body), err)
	testkit.OK(t, os.Remove(theirs))
	testkit.Same(t, "without it", state.CopyClosed,
		find(t, must(End(t.Context(), s.ws, now)), filepath.Join(s.dir, "x")).State)
}

// TestEndedRowsStayOwed: a copy owes the rows that it had when the workspace was ended, also once it was adopted at its
// path, and none of those that it gets after a run began the workspace anew.
func TestEndedRowsStayOwed(t *testing.T) {
	all := []string{"few001", "few002", "few003"}
	s := newSite(t)
	s.copy("x", "parquet")
	testkit.OK(t, os.Rename(s.dir+"/x", s.dir+"/away"))
	must(End(t.Context(), s.ws, now))
	testkit.OK(t, os.Rename(s.dir+"/away", s.dir+"/x"))
	report, err := s.adopt("x")
	testkit.Same(t, "owed after it was adopted", all, report.Owed, err)
	testkit.Same(t, "taken out", all, s.purge("x", state.GoneSet{}).Purged)

	s = newSite(t)
	s.copy("x", "parquet")
	must(End(t.Context(), s.ws, now))
	testkit.OK(t, os.Mkdir(s.dir+"/x", 0o700))
	s.copy("x/new", "parquet")
	for _, r := range must(purge(t.Context(), s.ws, state.GoneSet{})) {
		testkit.Same(t, r.Path+" in the place of a closed one", state.CopyGood, r.State)
	}

	s = newSite(t)
	d := Disclosure{Name: "a model", Note: "to classify", Host: "api.example.org"}
	testkit.OK(t, Disclose(t.Context(), s.ws, d, []string{"few001", "few002"}, now))
	must(End(t.Context(), s.ws, now))
	testkit.OK(t, Disclose(t.Context(), s.ws, d, []string{"few002", "few003"}, now))
	testkit.Same(t, "owed by a third party", []string{"few001", "few002"},
		find(t, must(List(t.Context(), s.ws)), state.ThirdPartyPath(d.Name)).Owed)
}

// TestFilesBehindLinksStay: what a link in a copy leads to is neither read nor removed, though it has the name of an
// image that must go.
func TestFilesBehindLinksStay(t *testing.T) {
	s := newSite(t)
	r := s.copy("x", "folder")
	at := slices.IndexFunc(r.Files, func(f workspace.File) bool { return strings.Contains(f.Name, "few001") })
	image, theirs := filepath.Join(s.dir, "x", r.Files[at].Name), filepath.Join(t.TempDir(), "few001.png")
	testkit.OK(t, os.Rename(image, theirs), os.Symlink(theirs, image))
	if r := s.purge("x", s.gone("few001")); r.State != state.CopyOpen ||
		!strings.Contains(r.Told, "is not a regular file") {
		t.Errorf("the purge reports %+v", r)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
	// Put back, it goes.
	testkit.OK(t, os.Remove(image), os.Rename(theirs, image))
	testkit.Same(t, "put back", state.CopyGood, s.purge("x", s.gone("few001")).State)
	testkit.Same(t, "rows that stay", ids[1:], s.holds("x"))
}

// TestRowPutBackIsFound: a copy that owes nothing is read all the same: what a purge took out and somebody put back is
// found.
func TestRowPutBackIsFound(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	shard := filepath.Join(s.dir, "x", "data/train-00000-of-00001.parquet")
	body, err := os.ReadFile(shard)
	testkit.OK(t, err)
	gone := s.gone("few001")
	s.purge("x", gone)
	testkit.OK(t, os.WriteFile(shard, body, 0o600))
	if r := s.purge("x", gone); r.State != state.CopyOpen || !strings.Contains(r.Told, "somebody changed it") ||
		!strings.Contains(r.Told, "the row of few001") {
		t.Errorf("a row that was put back: %+v", r)
	}
}

// TestPurgeKilled: killed before any step, a purge is finished by the next one, which takes nothing for a file that was
// changed; posts that are gone by then go too.
func TestPurgeKilled(t *testing.T) {
	for _, format := range Formats() {
		for n := 1; ; n++ {
			if testing.Short() && n%3 != 0 && n < 12 {
				continue
			}
			s := newSite(t)
			s.copy("x", format)
			gone := s.gone("few001")
			if !s.killed(n, func(ctx context.Context) error { _, err := purge(ctx, s.ws, gone); return err }) {
				if n < 5 {
					t.Errorf("a purge of %d steps", n)
				}
				break
			}
			for _, all := range [][]state.CopyReport{must(List(t.Context(), s.ws)), must(Glance(t.Context(), s.ws))} {
				got := find(t, all, filepath.Join(s.dir, "x"))
				if got.State == state.CopyClosed || strings.Contains(got.Told, "somebody") ||
					strings.Contains(got.Told, "part of the copy") {
					t.Errorf("%s, killed at step %d: %+v", format, n, got)
				}
			}
			r := s.purge("x", s.gone("few001", "few002"))
			if r.State != state.CopyGood || r.Told != "" {
				t.Errorf("%s, killed at step %d: %+v", format, n, r)
			}
			testkit.Same(t, "rows that stay", ids[2:], s.holds("x"))
			testkit.Same(t, "rows on record", []string{"few003"}, s.record("x").Rows)
			testkit.Same(t, "listed", state.CopyGood, s.list("x").State)
			left, err := filepath.Glob(filepath.Join(s.dir, "x", "*", ".tmp-*"))
			testkit.Same(t, "temporary files", 0, len(left), err)
		}
	}
}

// TestSecondWorkspaceFindsThePurgedCopyChanged: of two workspaces with the same copy on record, the second finds that
// it was changed, and says so.
func TestSecondWorkspaceFindsThePurgedCopyChanged(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	second := newSite(t)
	second.dir = s.dir
	testkit.OK(t, second.ws.SetCopy(t.Context(), s.record("x")))
	testkit.Same(t, "the first", state.CopyGood, s.purge("x", s.gone("few001")).State)
	if r := second.purge("x", second.gone("few001")); r.State != state.CopyOpen ||
		!strings.Contains(r.Told, "changed it") {
		t.Errorf("the second reports %+v", r)
	}
	testkit.Same(t, "rows that stay", ids[1:], s.holds("x"))
}

// TestNestedCopiesArePurgedFromWithin: a copy inside another one, as an earlier version registered it, is purged, and
// the outer one after it.
func TestNestedCopiesArePurgedFromWithin(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	s.copy("y", "parquet")
	c := s.record("y")
	c.Path = filepath.Join(s.dir, "x/y")
	testkit.OK(t, os.Rename(filepath.Join(s.dir, "y"), c.Path), s.ws.SetCopy(t.Context(), c),
		Close(t.Context(), s.ws, filepath.Join(s.dir, "y"), "returned", "n", now))
	reports, err := purge(t.Context(), s.ws, s.gone("few001"))
	testkit.OK(t, err)
	var paths []string
	for _, r := range reports {
		paths = append(paths, r.Path)
		testkit.Same(t, r.Path, state.CopyGood, r.State)
	}
	testkit.Same(t, "the order of reports", []string{filepath.Join(s.dir, "x"), c.Path}, paths)
	testkit.Same(t, "rows that stay", ids[1:], s.holds("x"))
	// What an export to the inner one that was killed left is no file of somebody's in the outer one.
	testkit.OK(t, os.Rename(c.Path, unfinishedPath(c.Path)))
	testkit.Same(t, "the outer one", state.CopyGood, s.list("x").State)
	testkit.Same(t, "the inner one", state.CopyUnfinished, s.list("x/y").State)
	testkit.OK(t, os.WriteFile(c.Path, []byte("rows"), 0o600))
	if r := s.list("x"); r.State != state.CopyOpen || !strings.Contains(r.Told, "y, which is not part of the copy") {
		t.Errorf("with a file in the place of the inner one: %+v", r)
	}
}

// TestOperatorClosesAnObligation: the operator's word ends an obligation, of a copy that is not there.
func TestOperatorClosesAnObligation(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	path := filepath.Join(s.dir, "x")
	if err := Close(t.Context(), s.ws, filepath.Join(s.dir, "y"), "returned", "n", now); !errors.Is(err, ErrNoCopy) {
		t.Errorf("a copy that is not on record: %v", err)
	}
	if err := Close(t.Context(), s.ws, path, "destroyed", "n", now); !errors.Is(err, ErrCopyThere) {
		t.Errorf("a copy that is there: %v", err)
	}
	testkit.OK(t, os.RemoveAll(path))
	s.purge("x", s.gone("few001"))
	before := s.record("x")
	for range 2 { // the second time it is closed already
		testkit.OK(t, Close(t.Context(), s.ws, path, "destroyed", "shredded", now))
	}
	want := workspace.Copy{Path: path, Note: "the lab", Format: "parquet", Made: now,
		Told: "destroyed 2026-01-10: shredded",
		Was:  &workspace.ClosedCopy{Files: before.Files, Rows: before.Rows}}
	testkit.Same(t, "the record", want, s.record("x"))
	log := s.events(auditlog.CopyPurged)
	testkit.Same(t, "the log", []string{"open", "told"}, []string{log[0].Verdict, log[len(log)-1].Verdict})
	testkit.Same(t, "events", 2, len(log))
	theirs := filepath.Join(unfinishedPath(path), "theirs") // of an export of another workspace to the same path
	testkit.OK(t, os.Mkdir(filepath.Dir(theirs), 0o700), os.WriteFile(theirs, nil, 0o600))
	reports, err := purge(t.Context(), s.ws, s.gone("few002"))
	testkit.Same(t, "reports on what is closed", 0, len(reports), err)
	testkit.Same(t, "listed", state.CopyClosed, s.list("x").State)
	_, err = os.Stat(theirs)
	testkit.OK(t, err)
}

// TestClosedCopyThatStandsAgainIsReopened: a copy that was closed and put back is a copy again. An earlier state of it
// is not taken for it, but a row that must go is found there; what somebody else puts there is not looked at further.
func TestClosedCopyThatStandsAgainIsReopened(t *testing.T) {
	for _, how := range []string{"destroyed", "ended"} {
		s := newSite(t)
		s.copy("x", "parquet")
		path, kept := filepath.Join(s.dir, "x"), filepath.Join(t.TempDir(), "kept")
		testkit.OK(t, os.CopyFS(kept, os.DirFS(path)))
		if how == "ended" {
			testkit.Same(t, "ended", state.CopyClosed, find(t, must(End(t.Context(), s.ws, now)), path).State)
		} else {
			testkit.OK(t, os.RemoveAll(path), Close(t.Context(), s.ws, path, how, "shredded", now))
		}
		testkit.Same(t, "listed", state.CopyClosed, s.list("x").State)
		testkit.OK(t, os.CopyFS(path, os.DirFS(kept)))
		if r := s.list("x"); r.State != state.CopyOpen || !strings.Contains(r.Told, "it stands there again") ||
			r.Rows != len(ids) {
			t.Errorf("%s, it is listed as %+v", how, r)
		}
		if err := Close(t.Context(), s.ws, path, "destroyed", "n", now); !errors.Is(err, ErrCopyThere) {
			t.Errorf("%s, said again: %v", how, err)
		}
		purged, stay := []string{"few001"}, ids[1:]
		if how == "ended" { // it owes all that the end promised to take
			purged, stay = []string{"few001", "few002", "few003"}, nil
		}
		if r := s.purge("x", s.gone("few001")); r.State != state.CopyGood || !slices.Equal(r.Purged, purged) {
			t.Errorf("%s, the purge reports %+v", how, r)
		}
		testkit.Same(t, "rows that stay", stay, s.holds("x"))
		testkit.Same(t, "listed as a copy again", state.CopyGood, s.list("x").State)
	}
	s := newSite(t)
	s.copy("x", "parquet")
	path, kept := filepath.Join(s.dir, "x"), filepath.Join(t.TempDir(), "kept")
	testkit.OK(t, os.CopyFS(kept, os.DirFS(path)))
	gone := s.gone("few001")
	s.purge("x", gone)
	card := must(os.ReadFile(filepath.Join(path, cardName)))
	shard := must(os.ReadFile(filepath.Join(path, "data/train-00000-of-00001.parquet")))
	testkit.OK(t, os.RemoveAll(path), Close(t.Context(), s.ws, path, "destroyed", "shredded", now))
	testkit.OK(t, os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "notes.txt"), []byte("theirs"), 0o600))
	reports, err := purge(t.Context(), s.ws, gone)
	testkit.Same(t, "somebody else's folder", 0, len(reports), err)
	testkit.Same(t, "somebody else's folder is listed as", state.CopyClosed, s.list("x").State)
	testkit.OK(t, os.WriteFile(filepath.Join(path, cardName), card, 0o600))
	testkit.Same(t, "a card alone stands there", state.CopyClosed, s.list("x").State)
	testkit.OK(t, os.RemoveAll(path), os.MkdirAll(filepath.Join(path, "data"), 0o700),
		os.WriteFile(filepath.Join(path, "data/train-00000-of-00001.parquet"), shard, 0o600))
	if r := s.list("x"); r.State != state.CopyOpen || !strings.Contains(r.Told, "it stands there again") {
		t.Errorf("a shard alone stands there: %+v", r)
	}
	testkit.OK(t, os.RemoveAll(path), os.CopyFS(path, os.DirFS(kept)),
		os.Remove(filepath.Join(path, "data/test-00000-of-00001.parquet")))
	for what, r := range map[string]state.CopyReport{"the purge": s.purge("x", gone), "the list": s.list("x")} {
		if r.State != state.CopyOpen || !strings.Contains(r.Told, "something stands there again") ||
			!strings.Contains(r.Told, "the row of few001") {
			t.Errorf("%s of an earlier state: %+v", what, r)
		}
	}
}

// TestEndTakesUpWhatStandsAgain: the end of a workspace ends a copy that was closed and put back as any other: a file
// of somebody's keeps it open, and put back once more it is known.
func TestEndTakesUpWhatStandsAgain(t *testing.T) {
	s := newSite(t)
	s.copy("x", "folder")
	path, kept := filepath.Join(s.dir, "x"), filepath.Join(t.TempDir(), "kept")
	testkit.OK(t, os.Rename(path, kept), Close(t.Context(), s.ws, path, "destroyed", "n", now),
		os.CopyFS(path, os.DirFS(kept)), os.WriteFile(filepath.Join(path, "theirs"), []byte("rows"), 0o600))
	r := find(t, must(End(t.Context(), s.ws, now)), path)
	if r.State != state.CopyOpen || !strings.Contains(r.Told, "theirs, which is not part of the copy") {
		t.Errorf("with a file of somebody's: %+v", r)
	}
	testkit.Same(t, "rows in its own files", []manifest.PostID(nil), s.holds("x"))
	testkit.OK(t, os.Remove(filepath.Join(path, "theirs")))
	testkit.Same(t, "without it", state.CopyClosed, find(t, must(End(t.Context(), s.ws, now)), path).State)
	left, err := os.ReadDir(s.dir)
	testkit.Same(t, "what is left", 0, len(left), err)

	s.copy("y", "folder")
	path = filepath.Join(s.dir, "y")
	testkit.OK(t, os.RemoveAll(path), Close(t.Context(), s.ws, path, "destroyed", "n", now),
		os.CopyFS(path, os.DirFS(kept)))
	for range 2 {
		testkit.Same(t, "ended", state.CopyClosed, find(t, must(End(t.Context(), s.ws, now)), path).State)
		testkit.OK(t, os.CopyFS(path, os.DirFS(kept)))
		if r := s.list("y"); r.State != state.CopyOpen || !strings.Contains(r.Told, "it stands there again") {
			t.Errorf("put back after the end: %+v", r)
		}
	}
}

// TestEndRemovesFoldersInFolders: of an emptied copy no folder is left, however deep its files lay.
func TestEndRemovesFoldersInFolders(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	deep := filepath.Join(s.dir, "y/a/b/c/d/e")
	testkit.OK(t, os.MkdirAll(filepath.Dir(deep), 0o700),
		os.Rename(filepath.Join(s.dir, "x", "data"), deep), os.RemoveAll(filepath.Join(s.dir, "x")),
		Close(t.Context(), s.ws, filepath.Join(s.dir, "x"), "destroyed", "n", now))
	_, err := s.adopt("y")
	testkit.OK(t, err)
	testkit.Same(t, "ended", state.CopyClosed,
		find(t, must(End(t.Context(), s.ws, now)), filepath.Join(s.dir, "y")).State)
	left, err := os.ReadDir(s.dir)
	testkit.Same(t, "what is left", 0, len(left), err)
}

// TestFileThatTheDiskSpoils: a file without the rows that is not on the disk as it was written does not take the place
// of the one with them, which the next purge rewrites.
func TestFileThatTheDiskSpoils(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	gone := s.gone("few001")
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, name string) error {
		if step == "sync" && strings.Contains(name, "train") {
			return os.WriteFile(filepath.Join(s.dir, "x", name), []byte("PAR1"), 0o600)
		}
		return nil
	})
	reports, err := purge(ctx, s.ws, gone)
	testkit.OK(t, err)
	if r := reports[0]; r.State != state.CopyOpen || !strings.HasPrefix(r.Told, "data/train-00000-of-00001.parquet: ") {
		t.Errorf("the purge reports %+v", r)
	}
	testkit.Same(t, "purged again", state.CopyGood, s.purge("x", gone).State)
	testkit.Same(t, "rows that stay", ids[1:], s.holds("x"))
}

// TestPurgeKilledTwice: a purge that was killed when a file had its name and no record yet is gone on with, although
// more posts are gone by then, and the next one, killed at any step, too.
func TestPurgeKilledTwice(t *testing.T) {
	const shard = "data/train-00000-of-00001.parquet"
	cutOff := func() *site {
		s := newSite(t)
		s.copy("x", "parquet")
		gone := s.gone("few001")
		for n := 1; ; n++ {
			if !s.killed(n, func(ctx context.Context) error { _, err := purge(ctx, s.ws, gone); return err }) {
				t.Fatalf("%d steps, and the shard was never rewritten", n)
			}
			body := must(os.ReadFile(filepath.Join(s.dir, "x", shard)))
			if next := s.record("x").Next[shard]; next != "" && next == state.SHA256(body) {
				return s
			}
		}
	}
	for n := 1; ; n++ {
		s := cutOff()
		gone := s.gone("few001", "few002")
		killed := s.killed(n, func(ctx context.Context) error { _, err := purge(ctx, s.ws, gone); return err })
		r := s.purge("x", gone)
		testkit.Same(t, "afterwards", []any{state.CopyGood, ""}, []any{r.State, r.Told})
		testkit.Same(t, "rows that stay", ids[2:], s.holds("x"))
		if !killed {
			break
		}
	}
}

// TestDisclosedRowsAreAnObligation: rows that were sent to somebody are an obligation that no purge can meet, until the
// operator says otherwise.
func TestDisclosedRowsAreAnObligation(t *testing.T) {
	s := newSite(t)
	d := Disclosure{Name: "a model", Note: "to classify", Host: "api.example.org"}
	testkit.OK(t, Disclose(t.Context(), s.ws, d, []string{"few002", "few001/1", "few001"}, now),
		Disclose(t.Context(), s.ws, d, []string{"few002", "few003"}, now))
	report := func() state.CopyReport { return find(t, must(List(t.Context(), s.ws)), state.ThirdPartyPath(d.Name)) }
	if r := report(); r.Rows != 4 || r.State != state.CopyOpen || r.Note != d.Note ||
		!strings.Contains(r.Told, "no purge reaches it") {
		t.Errorf("it is listed as %+v", r)
	}
	reports, err := purge(t.Context(), s.ws, s.gone("few001"))
	testkit.OK(t, err)
	for what, r := range map[string]state.CopyReport{"a purge": reports[0], "the list": report()} {
		if r.State != state.CopyOpen || !strings.Contains(r.Told, "no purge reaches it") ||
			!slices.Equal(r.Owed, []string{"few001", "few001/1"}) {
			t.Errorf("%s reports %+v", what, r)
		}
	}
	log := s.events(auditlog.Disclosed)
	testkit.Same(t, "the log", []auditlog.Post{{ID: "few002"}, {ID: "few001"}}, log[0].Posts)
	testkit.Same(t, "the host", state.SHA256([]byte(d.Host)), log[0].SHA256)
	testkit.OK(t, Close(t.Context(), s.ws, state.ThirdPartyPath(d.Name), "destroyed", "they said so", now))
	testkit.Same(t, "closed", state.CopyClosed, report().State)
	// A later disclosure is another one: what was said of the first is not said of it.
	later := now.Add(24 * time.Hour)
	testkit.OK(t, Disclose(t.Context(), s.ws, d, []string{"few003"}, later))
	if r := report(); r.State != state.CopyOpen || r.Rows != 1 || !r.Made.Equal(later) {
		t.Errorf("disclosed again it is listed as %+v", r)
	}
	for _, bad := range []Disclosure{{Name: "", Note: "n"}, {Name: "a/b", Note: "n"}, {Name: `a\b`, Note: "n"},
		{Name: strings.Repeat("x", 61), Note: "n"},
		{Name: "a\x1b", Note: "n"}, {Name: "a", Note: ""}, {Name: "a", Note: "two\nlines"},
		{Name: "a", Note: strings.Repeat("x", 201)}, {Name: "a", Note: "\xff"}} {
		if Disclose(t.Context(), s.ws, bad, nil, now) == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	testkit.OK(t, Disclosure{Name: strings.Repeat("x", 60), Note: strings.Repeat("x", 200)}.Check())
}

// TestCopiesLoseRowsThatLeftTheManifest: nobody asks any more about a post that the manifest dropped, so its row leaves
// the copies, gone or live. What cannot be reached owes it, and what a third party has.
func TestCopiesLoseRowsThatLeftTheManifest(t *testing.T) {
	for _, isGone := range []bool{true, false} {
		s := newSite(t)
		s.copy("x", "parquet")
		s.copy("away", "parquet")
		away := filepath.Join(s.dir, "away")
		testkit.OK(t, os.Rename(away, away+"-"), Disclose(t.Context(), s.ws,
			Disclosure{Name: "a model", Note: "to classify"}, []string{"few001", "few002"}, now))
		if isGone {
			s.gone("few001")
		}
		next, _, err := s.ws.Binding(t.Context())
		testkit.OK(t, err)
		next.ReleaseDigest, next.ManifestDigest = "r", "m"
		entries := func(yield func(manifest.Entry, error) bool) {
			for i, id := range ids[1:] {
				if !yield(manifest.Entry{Key: manifest.Key{ID: id}, Ordinal: i, Line: i + 2, Split: "train",
					Labels: make([][]int, 1)}, nil) {
					return
				}
			}
		}
		testkit.OK(t, s.ws.Load(t.Context(), next, entries, nil))
		owed := []string{"few001"}
		for _, path := range []string{filepath.Join(s.dir, "x"), away, state.ThirdPartyPath("a model")} {
			if got := find(t, must(List(t.Context(), s.ws)), path); got.State != state.CopyOpen ||
				!slices.Equal(got.Owed, owed) {
				t.Errorf("%s is listed as %+v", path, got)
			}
		}
		r := s.purge("x", state.GoneSet{})
		testkit.Same(t, "taken out", ids[1:], s.holds("x"))
		if r.State != state.CopyGood || !slices.Equal(r.Purged, owed) {
			t.Errorf("the purge reports %+v", r)
		}
		name := "away"
		if isGone { // it lies elsewhere now
			name = "away-"
			report, err := Move(t.Context(), s.ws, away, away+"-", now)
			testkit.Same(t, "owed where it lies now", owed, report.Owed, err)
		} else {
			testkit.OK(t, os.Rename(away+"-", away))
		}
		testkit.Same(t, "in reach again", state.CopyGood, s.purge(name, state.GoneSet{}).State)
		testkit.Same(t, "taken out of it", ids[1:], s.holds(name))
	}
}

// TestPlantedInPlaceOfUnfinished: what somebody puts where an unfinished copy would be is removed where an export was
// killed, and is nobody's business where the copy has its name. It is not followed.
func TestPlantedInPlaceOfUnfinished(t *testing.T) {
	for _, finished := range []bool{true, false} {
		s := newSite(t)
		theirs, at := t.TempDir(), filepath.Join(s.dir, "x")
		testkit.OK(t, os.WriteFile(filepath.Join(theirs, "theirs"), nil, 0o600), os.Symlink(theirs, unfinishedPath(at)))
		want := state.CopyClosed
		if finished {
			want = state.CopyGood
			testkit.OK(t, os.Remove(unfinishedPath(at)))
			s.copy("x", "parquet")
			testkit.OK(t, os.Symlink(theirs, unfinishedPath(at)))
		} else {
			testkit.OK(t, s.ws.SetCopy(t.Context(), workspace.Copy{Path: at, Format: "parquet", Made: now}))
		}
		_, err := purge(t.Context(), s.ws, state.GoneSet{})
		testkit.Same(t, "listed as", want, s.list("x").State, err)
		_, err = os.Lstat(unfinishedPath(at))
		testkit.Same(t, "the link stays", finished, err == nil)
		_, err = os.Lstat(filepath.Join(theirs, "theirs"))
		testkit.OK(t, err)
	}
}

// TestEndKilledBeforeItDeletes: what became of an emptied copy between its end and the next one is no trouble, and
// what is somebody's by now stays.
func TestEndKilledBeforeItDeletes(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(at string) error
		left      []string
	}{
		"nothing":         {func(string) error { return nil }, nil},
		"the folder went": {os.RemoveAll, nil},
		"a file went":     {func(at string) error { return os.Remove(filepath.Join(at, cardName)) }, nil},
		"a file is theirs": {func(at string) error {
			return os.WriteFile(filepath.Join(at, cardName), []byte("x"), 0o600)
		}, []string{cardName}},
		"a new file": {func(at string) error { return os.WriteFile(filepath.Join(at, "data", "mine"), nil, 0o600) },
			[]string{"data"}},
	} {
		s := newSite(t)
		s.copy("x", "parquet")
		at := filepath.Join(s.dir, "x")
		killed := errors.New("killed")
		ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, name string) error {
			if step == "unlink" && !strings.HasSuffix(name, croissantName) {
				return killed
			}
			return nil
		})
		if _, err := End(ctx, s.ws, now); !errors.Is(err, killed) {
			t.Errorf("%s: %v", name, err)
		}
		testkit.OK(t, test.meanwhile(at))
		report := find(t, must(End(t.Context(), s.ws, now)), at)
		testkit.Same(t, name+": state", state.CopyClosed, report.State)
		testkit.Same(t, name+": owed", 0, len(report.Owed))
		remembered := map[string]int{"the folder went": 3}[name] // it may lie on a disk that is away
		testkit.Same(t, name+": files to delete on record", remembered, len(s.record("x").Next))
		var left []string
		list, _ := os.ReadDir(at) // it may be gone
		for _, f := range list {
			left = append(left, f.Name())
		}
		testkit.Same(t, name+": left", test.left, left)
	}
}

// TestEndBrokenOffWhileItDeletes: an emptied copy of which the end deleted some files is no copy that stands there
// again: the next end deletes the others.
func TestEndBrokenOffWhileItDeletes(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	s.purge("x", s.gone(ids...))
	broken, n := errors.New("broken off"), 0
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, _ string) error {
		if step == "unlink" {
			n++
		}
		if n == 2 {
			return broken
		}
		return nil
	})
	if _, err := End(ctx, s.ws, now); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	testkit.Same(t, "listed", state.CopyClosed, s.list("x").State)
	report := find(t, must(End(t.Context(), s.ws, now)), filepath.Join(s.dir, "x"))
	testkit.Same(t, "ended", state.CopyClosed, report.State)
	left, err := os.ReadDir(s.dir)
	testkit.Same(t, "left", 0, len(left), err)
}

// TestUnfinishedCopyElsewhereIsNotForgotten: an unfinished copy on a disk that is not mounted is not forgotten.
func TestUnfinishedCopyElsewhereIsNotForgotten(t *testing.T) {
	s := newSite(t)
	disk := filepath.Join(s.dir, "disk")
	testkit.OK(t, os.Mkdir(disk, 0o700), s.ws.SetCopy(t.Context(),
		workspace.Copy{Path: filepath.Join(disk, "x"), Note: "n", Format: "parquet", Made: now, Rows: []string{"few001"}}))
	left := unfinishedPath(filepath.Join(disk, "x"))
	testkit.OK(t, os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "few001.png"), nil, 0o600),
		os.Rename(disk, disk+"-away"))
	if r := s.purge("disk/x", s.gone("few001")); r.State != state.CopyOpen ||
		!slices.Equal(r.Owed, []string{"few001"}) || !strings.Contains(r.Told, "killed export") {
		t.Errorf("the purge reports %+v", r)
	}
	// What somebody else puts at its path is not the copy, and its rows are nobody's business.
	theirs := filepath.Join(disk, "x", "few001.png")
	testkit.OK(t, os.MkdirAll(filepath.Dir(theirs), 0o700), os.WriteFile(theirs, nil, 0o600),
		Close(t.Context(), s.ws, filepath.Join(disk, "x"), "returned", "n", now))
	reports, err := purge(t.Context(), s.ws, s.gone("few001"))
	testkit.Same(t, "reports on what was never finished", 0, len(reports), err)
	testkit.OK(t, os.RemoveAll(disk), os.Rename(disk+"-away", disk))
	c := s.record("disk/x")
	c.Told = neverFinished
	testkit.OK(t, s.ws.SetCopy(t.Context(), c))
	at := must(openUnfinished(left)) // as another export there has it
	if r := s.purge("disk/x", state.GoneSet{}); r.State != state.CopyOpen || !strings.Contains(r.Told, ErrBusy.Error()) {
		t.Errorf("while it is in use: %+v", r)
	}
	at.Close()
	for range 2 {
		reports, err := purge(t.Context(), s.ws, state.GoneSet{})
		testkit.Same(t, "reports", 0, len(reports), err)
		if _, err := os.Lstat(left); err == nil {
			t.Error("it stays when the disk is there again")
		}
		testkit.OK(t, os.Symlink(disk, left)) // so does a link in its place, which is not followed
	}
}

// TestEndedRowsOfAClosedCopyAreNotOwed: a copy that is adopted at the path of one that the end closed owes none of the
// rows of that one, also those that it has again.
func TestEndedRowsOfAClosedCopyAreNotOwed(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	testkit.OK(t, os.CopyFS(s.dir+"/anew", os.DirFS(s.dir+"/x")))
	testkit.Same(t, "at the end", state.CopyClosed,
		find(t, must(End(t.Context(), s.ws, now)), filepath.Join(s.dir, "x")).State)
	testkit.OK(t, os.RemoveAll(s.dir+"/x"), os.Rename(s.dir+"/anew", s.dir+"/x"))
	report, err := s.adopt("x")
	testkit.Same(t, "owed after it was adopted", 0, len(report.Owed), err)
}
