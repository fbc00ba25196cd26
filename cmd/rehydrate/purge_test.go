package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/dataset/duckdbtest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/report"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// purge runs purge with --json and returns its report; any status but want ends the test.
func (s *site) purge(want int, more ...string) pipeline.PurgeReport {
	s.t.Helper()
	var report pipeline.PurgeReport
	s.into(&report, want, append([]string{"purge", s.release, "-w", s.workspace, "--approval", "TEST-1",
		"--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert}, more...)...)
	return report
}

// offline is purge --offline, without credentials.
func (s *site) offline(want int, more ...string) pipeline.PurgeReport {
	s.t.Helper()
	var report pipeline.PurgeReport
	s.intoAs(nil, &report, want, append([]string{"purge", s.release, "-w", s.workspace, "--offline"}, more...)...)
	return report
}

// into runs a command with --json and reads what it prints.
func (s *site) into(v any, want int, args ...string) {
	s.t.Helper()
	s.intoAs(s.env(), v, want, args...)
}

func (s *site) intoAs(env map[string]string, v any, want int, args ...string) {
	s.t.Helper()
	f := s.do(env, append(args, "--json")...)
	if f.code != want {
		s.t.Fatalf("%s = exit %d, want %d\n%s%s", strings.Join(args, " "), f.code, want, f.stderr, f.stdout)
	}
	if err := json.Unmarshal([]byte(f.stdout), v); err != nil {
		s.t.Fatalf("%s --json: %v\n%s", strings.Join(args, " "), err, f.stdout)
	}
}

// copyTo makes a registered copy.
func (s *site) copyTo(to string, more ...string) finished {
	s.t.Helper()
	return s.do(s.env(), append([]string{"export", s.release, "-w", s.workspace, "--to", to, "--note", "a test"}, more...)...)
}

// copies lists the registered copies.
func (s *site) copies(want int) []state.CopyReport {
	s.t.Helper()
	var list []state.CopyReport
	s.into(&list, want, "export", "--list", "-w", s.workspace)
	return list
}

// pixels are the digests of the images in the dataset's Parquet, by row, computed from the bytes.
func (s *site) pixels() map[string]string {
	s.t.Helper()
	var got []struct{ ID, SHA string }
	duckdbtest.Query(s.t, &got, `SELECT id AS "ID", sha256(image.bytes) AS "SHA" FROM read_parquet(`+
		duckdbtest.Quote(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))+`)`)
	out := map[string]string{}
	for _, g := range got {
		out[g.ID] = g.SHA
	}
	return out
}

// twins are posts of which the first three show the same picture in different files.
func twins(n int) []redditemu.Post {
	posts := fewPosts(n)
	for i, format := range []string{"png", "jpeg", "webp"} {
		posts[i].Images = []redditemu.Image{{Spec: redditemu.Spec{Seed: 7, Caption: "when the twins both say the same thing", Format: format}}}
	}
	return posts
}

func twinSite(t *testing.T) (*site, []redditemu.Post) {
	t.Helper()
	posts := twins(6)
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	for i, want := range []string{"kept/", "duplicate/", "duplicate/", "kept/"} {
		if got := s.outcomeOf(posts[i].ID); !strings.HasPrefix(got, want) {
			t.Fatalf("post %d before the purge: %s, want %s", i, got, want)
		}
	}
	return s, posts
}

// TestPurgeGroups removes the kept one of a group of near-duplicates, a dropped one, and all of them: the right
// pixels go, and the next run has nothing to change.
func TestPurgeGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		gone []int
		left []int  // rows of the group afterwards
		next string // the successor, "" for none
	}{
		{"the winner", []int{0}, []int{1}, "few001"},
		{"a loser", []int{1}, []int{0}, ""},
		{"the winner and its first loser", []int{0, 1}, []int{2}, "few002"},
		{"all of them", []int{0, 1, 2}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, posts := twinSite(t)
			before := s.pixels()
			for _, i := range c.gone {
				s.becomes(redditemu.Deleted, posts[i])
			}
			s.emulator.ForgetRequests()
			report := s.purge(exitDone)
			want := map[string]bool{"few003": true, "few004": true, "few005": true}
			for _, i := range c.left {
				want[string(posts[i].ID)] = true
			}
			got := s.pixels()
			for id := range want {
				if sha, ok := got[id]; !ok || before[id] != "" && sha != before[id] {
					t.Errorf("row %s has the picture %q, before %q", id, sha, before[id])
				}
			}
			if len(got) != len(want) {
				t.Errorf("rows %v, want %v", got, want)
			}
			if len(report.Erased) != len(c.gone) || len(s.imageRequests()) != 0 {
				t.Errorf("erased %v with %d image requests, want %d posts and none", report.Erased, len(s.imageRequests()), len(c.gone))
			}
			switch {
			case c.next == "" && len(report.Successors) > 0:
				t.Errorf("successors %v, want none", report.Successors)
			case c.next != "" && (len(report.Successors) != 1 || report.Successors[0] != pipeline.Successor{Gone: "few000", ID: c.next, Stored: true}):
				t.Errorf("successors %v, want %s", report.Successors, c.next)
			}
			for _, i := range c.gone {
				if found, _ := filepath.Glob(filepath.Join(s.workspace, "images", "*", string(posts[i].ID)+"*")); len(found) > 0 {
					t.Errorf("%v is still there", found)
				}
			}
			if sum := s.run(exitDone); !sum.Unchanged {
				t.Error("the run after the purge wrote another dataset")
			}
		})
	}
}

// TestPurgeSuccessorWithoutGrant: without a grant no row comes into the dataset, and rows that must go
// leave it all the same.
func TestPurgeSuccessorWithoutGrant(t *testing.T) {
	t.Parallel()
	s, posts := twinSite(t)
	s.write(filepath.Join(s.release, "policy.toml"), quick("mass_removal_share = 1.0")+"\n[access]\ngrant = \"required\"\n")
	s.becomes(redditemu.Removed, posts[0])
	report := s.purge(exitDone)
	if rows := s.rows(); len(rows) != 3 || slices.Contains(rows, "few001") {
		t.Errorf("rows %v, want the three that are no twins", rows)
	}
	if len(report.Successors) != 1 || report.Successors[0].Stored {
		t.Errorf("successors %v, want one that is for the next run", report.Successors)
	}
	if f := s.copyTo(filepath.Join(t.TempDir(), "copy")); f.code != exitRejected {
		t.Errorf("export without a grant: exit %d, want %d", f.code, exitRejected)
	}
}

// TestPurgeOffline purges by request, without credentials or grant, a week after the last run: the other rows
// stay, and the post stays out although Reddit shows it live.
func TestPurgeOffline(t *testing.T) {
	t.Parallel()
	posts := fewPosts(5)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	text := readText(t, s, "few002")
	if len(text) < 10 {
		t.Fatalf("the post has too little text to look for: %q", text)
	}
	s.now = func() time.Time { return time.Now().Add(7 * 24 * time.Hour) }
	s.emulator.ForgetRequests()
	f := s.do(nil, "purge", s.release, "-w", s.workspace, "--id", "t3_few002", "--dry-run")
	f.want(t, exitDone, "few002", "removed, takedown", "Nothing was changed")
	if len(s.rows()) != 5 || len(s.images()) != 5 {
		t.Fatal("a dry run changed something")
	}
	report := s.offline(exitDone, "--id", "t3_few002")
	if diff := cmp.Diff([]state.GonePost{{ID: "few002", State: manifest.StateRemoved, Reason: "takedown"}}, report.Erased); diff != "" {
		t.Errorf("erased (-want +got):\n%s", diff)
	}
	if rows := s.rows(); len(rows) != 4 || slices.Contains(rows, "few002") || len(s.images()) != 4 {
		t.Errorf("rows %v and %d images, want the four others", rows, len(s.images()))
	}
	if len(s.emulator.Requests()) != 0 {
		t.Error("somebody was asked")
	}
	s.grep(text, "the text of a purged post")
	if got := s.outcomeOf("few002"); got != "removed/takedown" {
		t.Errorf("outcome %s, want removed/takedown", got)
	}
	if again := s.offline(exitDone); len(again.Erased)+len(again.Rows)+len(again.Files) != 0 {
		t.Errorf("a second purge found more: %+v", again)
	}
	s.now = time.Now
	s.run(exitDone)
	if got := s.outcomeOf("few002"); got != "removed/takedown" || len(s.imageRequests()) != 0 {
		t.Errorf("after a run: %s with %d image requests, want it to stay out", got, len(s.imageRequests()))
	}
}

// TestPurgeMassRemoval: a purge withholds a mass removal like a run, with a clock that is seen, and erases it when
// it is confirmed, offline too.
func TestPurgeMassRemoval(t *testing.T) {
	t.Parallel()
	posts := fewPosts(8)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	copied := filepath.Join(t.TempDir(), "copy")
	s.copyTo(copied).want(t, exitDone)
	s.becomes(redditemu.Removed, posts[:4]...)
	found := time.Now()
	report := s.purge(exitRetry)
	if sum := report.Summary; sum.Withheld != 4 || !sum.MassRemoval || len(report.Erased) != 0 || len(s.images()) != 8 {
		t.Errorf("withheld %d, erased %v, %d images, want 4, none and 8", sum.Withheld, report.Erased, len(s.images()))
	}
	if len(s.rows()) != 4 {
		t.Errorf("%d rows, want 4: withheld means not in the dataset", len(s.rows()))
	}
	if by := report.Summary.SettleBy; by == nil || by.Sub(found).Round(time.Hour) != 48*time.Hour {
		t.Errorf("to be settled by %v, want 48 hours after %v", by, found)
	}
	if list := s.copies(exitDone); list[0].Rows != 8 {
		t.Errorf("withheld posts were taken out of a copy: %+v", list)
	}
	s.do(nil, "status", "-w", s.workspace).want(t, exitRetry, "Withheld since "+report.Summary.WithheldSince.Format(time.RFC3339), report.Summary.SettleBy.Format(time.RFC3339))
	again := s.purge(exitRetry)
	if !again.Summary.SettleBy.Equal(*report.Summary.SettleBy) {
		t.Errorf("the clock was set back from %v to %v", report.Summary.SettleBy, again.Summary.SettleBy)
	}
	if report = s.offline(exitRetry); len(report.Erased) != 0 {
		t.Errorf("offline, without a confirmation: erased %v", report.Erased)
	}
	if report = s.offline(exitDone, "--confirm-removals"); len(report.Erased) != 4 || len(s.images()) != 4 {
		t.Errorf("confirmed: erased %v, %d images left, want 4 and 4", report.Erased, len(s.images()))
	}
	if list := s.copies(exitDone); list[0].Rows != 4 {
		t.Errorf("the copy after the confirmation: %+v", list)
	}
}

// copyFolder copies a folder.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredBackup brings back the workspace of before the purges, whole and in parts: nothing comes back, of
// those posts either that Reddit shows live again.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	backup, kept := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "tombstones.csv")
	copyFolder(t, s.workspace, backup)
	s.becomes(redditemu.Deleted, posts[0])
	s.becomes(redditemu.Removed, posts[1])
	s.purge(exitDone, "--id", "few002")
	s.do(nil, "tombstones", "export", kept, "-w", s.workspace).want(t, exitDone, "3 tombstones")
	s.becomes(redditemu.Live, posts[0]) // only the tombstones know now
	out := func(when string) {
		t.Helper()
		if rows := s.rows(); len(rows) != 3 || len(s.images()) != 3 {
			t.Errorf("%s: rows %v and %d images, want 3", when, rows, len(s.images()))
		}
	}
	out("purged")

	restore := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.RemoveAll(filepath.Join(s.workspace, name)); err != nil {
				t.Fatal(err)
			}
			from, err := os.Stat(filepath.Join(backup, name))
			if err == nil && !from.IsDir() {
				s.write(filepath.Join(s.workspace, name), read(t, filepath.Join(backup, name)))
			} else if err == nil {
				copyFolder(t, filepath.Join(backup, name), filepath.Join(s.workspace, name))
			}
		}
	}
	restore("state.db", "images", "dataset")
	s.offline(exitDone)
	out("state, images and dataset restored, purged offline")
	s.run(exitDone)
	out("and a run")

	restore("dataset", "images")
	s.run(exitDone)
	out("dataset and images restored, and a run")

	for i, take := range []func(){
		func() { s.offline(exitDone, "--tombstones", kept) },
		func() { s.write(filepath.Join(s.release, "tombstones.csv"), read(t, kept)); s.run(exitDone) },
	} {
		if err := os.RemoveAll(s.workspace); err != nil {
			t.Fatal(err)
		}
		copyFolder(t, backup, s.workspace)
		take()
		if i == 0 {
			s.purge(exitDone)
		}
		out(fmt.Sprint("everything restored, way ", i))
	}
	moved := s.workspace + "-renamed"
	if err := os.Rename(s.workspace, moved); err != nil {
		t.Fatal(err)
	}
	s.workspace = moved
	s.run(exitDone)
	out("renamed")
	s.write(filepath.Join(s.release, "annotations.csv"), fewAnnotations(posts[:5]))
	s.write(filepath.Join(s.release, "tombstones.csv"), "id,state,time\n")
	s.run(exitDone, "--confirm-removals")
	s.write(filepath.Join(s.release, "annotations.csv"), fewAnnotations(posts))
	s.run(exitDone)
	out("a manifest without a post, and with it again")
}

// TestPurgeLeavesNoText purges many posts: no text of theirs is in any byte of the workspace, nor any
// image.
func TestPurgeLeavesNoText(t *testing.T) {
	t.Parallel()
	posts := fewPosts(24)
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	s.do(s.env(), "ocr", s.release, "-w", s.workspace, "--ocr", s.ocrPath(), "--force").want(t, exitDone)
	texts := map[manifest.PostID]string{}
	for _, p := range posts[:18] {
		text, _, _ := strings.Cut(readText(t, s, p.ID), "\n")
		if len(text) >= 12 {
			texts[p.ID] = text
		}
	}
	if len(texts) < 10 {
		t.Fatalf("only %d posts have a text to look for", len(texts))
	}
	pictures := map[manifest.PostID][]byte{}
	for _, name := range s.images() {
		id := manifest.PostID(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
		pictures[id] = []byte(read(t, name))[64:192]
	}
	s.write(filepath.Join(s.workspace, "report.html"), "<p>"+texts[posts[0].ID])
	s.becomes(redditemu.Deleted, posts[:18]...)
	s.purge(exitDone)
	left := texts
	for _, p := range posts[18:] { // what stays may say the same
		stays := readText(t, s, p.ID)
		for id, text := range left {
			if strings.Contains(stays, text) {
				delete(left, id)
			}
		}
	}
	if len(left) < 8 {
		t.Fatalf("only %d texts are of purged posts alone", len(left))
	}
	for id, text := range left {
		s.grep(text, "the text of "+string(id))
		for word := range strings.FieldsSeq(text) {
			if len(word) > 9 && !strings.Contains(fmt.Sprint(left), word) {
				s.grep(word, "a word of "+string(id))
			}
		}
	}
	for _, p := range posts[:18] {
		if b := pictures[p.ID]; len(b) > 0 {
			s.grep(string(b), "a picture of "+string(p.ID))
		}
	}
	if len(s.images()) != 6 {
		t.Errorf("%d images left, want 6", len(s.images()))
	}
}

// A killPoint is a workspace with its copy as they were before a step.
type killPoint struct{ step, workspace, copied string }

// TestPurgeKilledAtEveryStep keeps the folders as they are before each step of a purge that changes the disk,
// as a kill there would leave them. From each the purge completes, and none of them exports a removed row.
func TestPurgeKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	posts := twins(7)
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	root := t.TempDir()
	copied := filepath.Join(root, "copy")
	s.copyTo(copied).want(t, exitDone)
	gone := []string{"few000", "few004"}
	text := readText(t, s, "few004")
	s.becomes(redditemu.Deleted, posts[0], posts[4])

	var shots []killPoint
	s.step = func(step, name string) error {
		n := len(shots)
		shot := killPoint{fmt.Sprint(n, " ", step, " ", name), filepath.Join(root, fmt.Sprint("ws", n)), filepath.Join(root, fmt.Sprint("copy", n))}
		copyFolder(t, s.workspace, shot.workspace)
		copyFolder(t, copied, shot.copied)
		shots = append(shots, shot)
		return nil
	}
	live := s.workspace
	s.purge(exitDone)
	s.step = nil
	want, wantCopy := s.dataset(), tree(t, copied)
	if len(shots) < 30 {
		t.Fatalf("only %d steps were seen", len(shots))
	}
	t.Logf("%d steps", len(shots))
	for i, shot := range shots {
		s.workspace = shot.workspace
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(shot.copied, copied); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 { // no state in between hands out a removed row
			to := filepath.Join(root, fmt.Sprint("exported", i))
			f := s.copyTo(to)
			for _, id := range gone {
				if rowsOf(t, filepath.Join(to, "data"))[id] && knows(s, id) {
					t.Errorf("killed before %s: export handed out %s (exit %d)", shot.step, id, f.code)
				}
			}
		}
		same := func(files map[string]string) map[string]string { return files }
		if i%4 == 0 {
			s.purge(exitDone)
		} else { // asked for, instead of asking: without the pause between two requests; the card counts them otherwise
			s.offline(exitDone, "--id", strings.Join(gone, ","))
			same = onlyParquet
		}
		if diff := cmp.Diff(same(want), same(s.dataset())); diff != "" {
			t.Errorf("killed before %s: the dataset is another one", shot.step)
		}
		if i%5 != 0 {
			if diff := cmp.Diff(wantCopy, tree(t, copied)); diff != "" {
				t.Errorf("killed before %s: the copy is another one", shot.step)
			}
		}
		s.grep(text, "the text of a purged post, killed before "+shot.step)
		if t.Failed() {
			break
		}
		for _, dir := range []string{shot.workspace, shot.copied} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.workspace = live
}

// knows reports whether the workspace knows that a post is gone.
func knows(s *site, id string) bool {
	s.t.Helper()
	var x report.Explanation
	s.into(&x, exitDone, "explain", id, "-w", s.workspace)
	return x.Post.State.Gone() || x.Tombstone != nil
}

// tree returns the bytes of all files in a folder, by name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name] = read(t, path)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

// rowsOf are the ids in the Parquet files of a folder, none where there is no such folder.
func rowsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	found, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		for id := range bytes.FieldsSeq(parquetValues(t, []byte(read(t, name)))) {
			ids[string(id)] = true
		}
	}
	return ids
}

// TestLift lifts a tombstone by a maintainer's statement: it stays listed as lifted, and Reddit's word decides.
func TestLift(t *testing.T) {
	t.Parallel()
	s := figSIMSite(t, 4)
	s.signed(s.grantPath(), policy.GrantNamespace, grantText(t, s.release, nil))
	s.granted().want(t, exitDone)
	posts := fewPosts(4)
	s.offline(exitDone, "--id", "few001,few002")
	statement := filepath.Join(t.TempDir(), "lift.json")
	lift := func(namespace string, asserted time.Time, ids ...string) finished {
		rel, err := manifest.Open(s.release, manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(map[string]any{"v": 1, "type": "rehydrate-lift", "release": map[string]any{"name": rel.Name, "digest": rel.Digest},
			"ids": ids, "why": "asked for by the author", "asserted": asserted.UTC().Format(time.RFC3339)})
		if err != nil {
			t.Fatal(err)
		}
		s.signed(statement, namespace, string(b))
		return s.do(nil, "tombstones", "lift", s.release, "--statement", statement, "-w", s.workspace)
	}
	now := time.Now().Add(2 * time.Second)
	lift(policy.GrantNamespace, now, "few001").want(t, exitRejected, "wrong_namespace")
	lift(policy.LiftNamespace, now.Add(-time.Hour), "few001").want(t, exitDone, "lifted: 0 tombstones", "younger than the statement")
	if s.status("few001") != state.TombstoneHolds {
		t.Error("a statement that is older than the tombstone lifted it")
	}
	lift(policy.LiftNamespace, now, "few001", "few003").want(t, exitDone, "lifted: 1 tombstone,", "few003: has no tombstone here")
	if got := s.status("few001"); got != state.TombstoneLifted {
		t.Errorf("tombstone of few001 is %q, want it listed as lifted", got)
	}
	s.granted().want(t, exitDone)
	if got := s.outcomeOf("few001"); got != "kept/" {
		t.Errorf("lifted, and live at Reddit: %s, want kept", got)
	}
	if got := s.outcomeOf("few002"); got != "removed/takedown" {
		t.Errorf("not lifted: %s, want removed/takedown", got)
	}
	// What the release still publishes is as old as before; what is removed later is buried again.
	s.write(filepath.Join(s.release, "tombstones.csv"), "id,state,time\nfew001,removed,2026-01-01T00:00:00Z\n")
	s.granted().want(t, exitDone)
	if got := s.outcomeOf("few001"); got != "kept/" {
		t.Errorf("lifted, and still in the release's old list: %s, want kept", got)
	}
	s.now = func() time.Time { return time.Now().Add(time.Minute) }
	s.becomes(redditemu.Deleted, posts[1])
	s.granted().want(t, exitDone)
	if got, status := s.outcomeOf("few001"), s.status("few001"); !strings.HasPrefix(got, "deleted/") || status != state.TombstoneHolds {
		t.Errorf("deleted later: %s with a tombstone that %s, want deleted and holds", got, status)
	}
}

// status is that of a post's tombstone, "" where there is none.
func (s *site) status(id manifest.PostID) state.TombstoneStatus {
	s.t.Helper()
	var list []state.TombstoneEntry
	s.into(&list, exitDone, "tombstones", "show", "-w", s.workspace)
	for _, t := range list {
		if t.ID == id {
			return t.Status
		}
	}
	return ""
}
