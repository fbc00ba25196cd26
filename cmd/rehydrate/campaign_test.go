package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/audit/verify"
	"rehydrate/cmd/rehydrate/testdata/fakeocr"
	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/state"
	"rehydrate/report"
)

// fullVar set to "full" makes every campaign take all its points: kills, failing calls, flipped bits, secrets, the day,
// FigSIM. Without it each takes a sample (docs/testing.md). scripts/check full sets it.
const fullVar = "REHYDRATE_TEST"

// seedVar repeats the sample and the random moments of an earlier run, which printed its seed.
const seedVar = "REHYDRATE_TEST_SEED"

// full reports whether campaigns take every point.
func full() bool { return os.Getenv(fullVar) == "full" }

// long leaves a test out of -short.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes too long for -short; scripts/test runs it")
	}
}

// often is all of a campaign, or a sample of it.
func often(all, sample int) int {
	if full() {
		return all
	}
	return sample
}

// chance is the randomness of a campaign; the seed is printed.
func chance(t *testing.T) (random *rand.Rand, seed uint64) {
	t.Helper()
	seed = uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVar); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	t.Logf("seed %d (repeat with %s=%d)", seed, seedVar, seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// A chaosSite is a small site of which every run is quick, with what a run that nothing disturbed makes of it.
type chaosSite struct {
	*site
	want map[string]string
}

// chaosPosts are a dozen posts: a gallery, two near-duplicates, a text that is not English, one post that is
// removed and one that its author deleted.
func chaosPosts() []redditemu.Post {
	one := func(caption int, shade uint8) []redditemu.Image {
		return []redditemu.Image{sketch(caption, uint64(caption), shade, "png")}
	}
	var posts []redditemu.Post
	for i := range 6 {
		posts = append(posts, redditemu.Post{Images: one(fakeocr.FirstOwn+i, 0)})
	}
	posts = append(posts,
		redditemu.Post{Images: one(fakeocr.FirstOwn+1, 4)}, // again 1haos01
		redditemu.Post{Kind: redditemu.KindGallery,
			Images: append(one(fakeocr.FirstOwn+7, 0), one(fakeocr.FirstOwn+8, 0)...)},
		redditemu.Post{Images: one(german, 0)},
		redditemu.Post{Images: one(fakeocr.FirstOwn+10, 0)},
		redditemu.Post{Condition: redditemu.Removed},
		redditemu.Post{Condition: redditemu.Deleted})
	for i := range posts {
		posts[i].ID = manifest.PostID(fmt.Sprintf("1haos%02d", i))
	}
	return posts
}

// purgedIDs are the posts that the campaign removes: the kept one of two near-duplicates, and one that is nobody's
// duplicate. purgedWord is of the text of the second.
const (
	purgedIDs  = "1haos01,1haos03"
	purgedWord = "CONSTELLATION"
)

func newChaosSite(t *testing.T) *chaosSite {
	t.Helper()
	posts := chaosPosts()
	var rows strings.Builder
	rows.WriteString("id,image,split,figurative,severity,related_content,modality,context\n")
	for i, p := range posts {
		for image := range max(len(p.Images), 1) {
			fmt.Fprintf(&rows, "%s,%d,%s,F1|F3,SS6,SR3,M1,C1\n", p.ID, image, []string{"train", "validation", "test"}[i%3])
		}
	}
	// Hundreds of runs ask one emulator, which limits tokens by the window as well.
	o := redditemu.Options{Seed: 1, RequestsPerWindow: 1 << 20, Window: 10 * time.Second}
	c := &chaosSite{site: newSiteOn(t, o, rows.String(), patient("mass_removal_share = 1.0"), posts...)}
	c.workspace = place(t)
	c.finish(t)
	c.want = c.made()
	want := "kept/ kept/ kept/ kept/ kept/ kept/ duplicate/same_text kept/ kept/ not_english/foreign_words kept/ removed/moderator deleted/author"
	var got []string
	for _, r := range c.outcomes() {
		got = append(got, fmt.Sprintf("%s/%s", r.Outcome, r.Reason))
	}
	if strings.Join(got, " ") != want {
		t.Fatalf("a whole run has the outcomes %q, want %q", got, want)
	}
	return c
}

// place is a name for a new workspace, in memory where there is a folder for that: then a sync costs nothing,
// and is called all the same.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rehydrate-chaos-")
	if err != nil {
		return filepath.Join(t.TempDir(), "ws")
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "ws")
}

// at is the site with another workspace.
func (c *chaosSite) at(t *testing.T, workspace string) *chaosSite {
	other := *c
	other.site = c.on(t, workspace)
	return &other
}

// runArgs are those of a run, and purgeArgs those of a purge that asks nobody.
func (c *chaosSite) runArgs() []string { return c.args("--workers", "1") }

func (c *chaosSite) purgeArgs() []string {
	return []string{"purge", c.release, "-w", c.workspace, "--offline", "--id", purgedIDs}
}

// finish runs the release to its end.
func (c *chaosSite) finish(t *testing.T) {
	t.Helper()
	c.do(c.env(), c.runArgs()...).want(t, exitDone)
}

// made is what the workspace has to show: outcomes and dataset, the names of the images, and no more than
// names of all the rest but the log.
func (c *chaosSite) made() map[string]string {
	made := map[string]string{}
	for name, text := range tree(c.t, c.workspace) {
		switch {
		case name == "outcomes.csv" || strings.HasPrefix(name, "dataset/") || strings.HasPrefix(name, "images/"):
			made[name] = text
		case !strings.HasPrefix(name, "audit/"):
			made[name] = ""
		}
	}
	return made
}

// settled asserts that the workspace is as one that nothing disturbed: the same files with the same bytes, no other
// file, whole and sealed, and nobody's.
func (c *chaosSite) settled(t *testing.T, want map[string]string) {
	t.Helper()
	brief := cmp.Transformer("brief", func(s string) string {
		return fmt.Sprintf("%d bytes, %.300s", len(s),
			strconv.QuoteToASCII(s))
	})
	if made := c.made(); !cmp.Equal(want, made) {
		t.Errorf("files (-undisturbed +this one):\n%s", cmp.Diff(want, made, brief))
	}
	if r := c.verify(exitDone); !r.Whole || !r.Sealed || len(r.Notes) != 0 {
		t.Errorf("verify: %+v", r)
	}
	if c.inUse() {
		t.Error("the lock is held")
	}
}

// unsettled asserts what must hold of a workspace at any moment: whatever has its final name is whole, as far
// as anything is on record, and a killed process holds no lock. What a killed removal left is all that may be wrong.
func (c *chaosSite) unsettled(t *testing.T) {
	t.Helper()
	if c.inUse() {
		t.Error("the lock of a killed process is not free")
	}
	info, err := os.Stat(filepath.Join(c.workspace, "state.db"))
	if err != nil || info.Size() == 0 {
		return // there is nothing yet that could be damaged
	}
	f := c.do(nil, "verify", "-w", c.workspace, "--json")
	var report verify.Report
	check(t, json.Unmarshal([]byte(f.stdout), &report))
	unfinished := func(d verify.Damage) bool { return strings.HasSuffix(d.What, "a removal was not finished") }
	if (f.code == exitDone) != (len(report.Damage) == 0) || slices.ContainsFunc(report.Damage, func(d verify.Damage) bool {
		return !unfinished(d)
	}) {
		t.Errorf("verify = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
}

// copied is the folder of the registered copies of a workspace.
func (c *chaosSite) copied() string { return filepath.Join(filepath.Dir(c.workspace), "copies") }

// killed does a command, and has look see its workspace and the folder of its copies as they are before each step, or
// some steps, that changes the disk, as a kill there would leave them.
func (c *chaosSite) killed(t *testing.T, share int, command func(), look func(i int, step string)) {
	t.Helper()
	root, steps, names := t.TempDir(), 0, []string(nil)
	shot := func(n int) string { return filepath.Join(root, fmt.Sprint(n)) }
	c.step = func(step, name string) error {
		if steps++; steps%share == 0 {
			check(t, os.CopyFS(filepath.Join(shot(len(names)), "ws"), os.DirFS(c.workspace)))
			check(t, os.CopyFS(filepath.Join(shot(len(names)), "copies"), os.DirFS(c.copied())))
			names = append(names, step+" "+name)
		}
		return nil
	}
	command()
	c.step = nil
	t.Logf("killed at %d of %d steps", len(names), steps)
	if len(names) < 3 {
		t.Fatal("too few steps were seen")
	}
	for i, name := range names {
		// A registered copy has its path: so the folders take the place of those that the command made.
		for _, dir := range []string{"ws", "copies"} {
			to := filepath.Join(filepath.Dir(c.workspace), dir)
			check(t, os.RemoveAll(to))
			check(t, os.CopyFS(to, os.DirFS(filepath.Join(shot(i), dir))))
		}
		look(i, name)
		if t.Failed() {
			t.Fatalf("killed before %s", name)
		}
		check(t, os.RemoveAll(shot(i)))
	}
}

// TestCutOffExport: files that a run wrote before it failed accuse nobody: an audit decides nothing about them until a
// run has ended well, whatever recheck came between.
func TestCutOffExport(t *testing.T) {
	t.Parallel()
	c := newChaosSite(t)
	audit := []string{"audit", c.release, "--offline", "-w", c.workspace}
	c.step = func(step, name string) error {
		if strings.Contains(name, "validation-00000") && step == "rename" {
			return errors.New("the disk is gone")
		}
		return nil
	}
	c.do(c.env(), append(c.runArgs(), "--filters", "flag")...).want(t, exitFailed, "the disk is gone")
	c.step = nil
	c.do(nil, audit...).want(t, exitUndecided, "NOT DECIDED")
	c.do(c.env(), c.job("recheck")...).want(t, exitRetry)
	c.do(nil, audit...).want(t, exitUndecided, "a run that did not end well may have written it", "do   rehydrate run -w ")
	c.do(c.env(), append(c.runArgs(), "--filters", "flag")...).want(t, exitDone)
	c.do(nil, audit...).want(t, exitDone, "PASS")
}

// TestPurgeKilled kills a purge before the steps that change the disk. No state in between has a file that was written
// with a row that goes, hands out such a row, or passes an audit with one; and the next purge completes each.
func TestPurgeKilled(t *testing.T) {
	long(t)
	t.Parallel()
	for _, asks := range []bool{false, true} {
		t.Run(fmt.Sprint("asks ", asks), func(t *testing.T) {
			t.Parallel()
			c := newChaosSite(t)
			args := c.purgeArgs()
			if asks {
				args = slices.Concat([]string{"purge", c.release, "-w", c.workspace, "--approval", "TEST-1"}, c.reddit())
				for id := range strings.SplitSeq(purgedIDs, ",") {
					c.becomes(redditemu.Deleted, redditemu.Post{ID: manifest.PostID(id)})
				}
			}
			c.do(nil, "report", "-w", c.workspace).want(t, exitDone)
			copied := filepath.Join(c.copied(), "copy")
			check(t, os.Mkdir(c.copied(), 0o700))
			c.copyTo(copied).want(t, exitDone)
			before := map[string]string{}
			for name, text := range onlyParquet(tree(t, c.workspace)) {
				before[path.Base(name)] = text
			}
			var want, wantCopy map[string]string
			c.killed(t, often(1, 9), func() {
				c.do(c.env(), args...).want(t, exitDone)
				want, wantCopy = c.made(), tree(t, copied)
			}, func(i int, _ string) {
				c.unsettled(t)
				c.between(t, before, i%5 == 0)
				c.do(c.env(), args...).want(t, exitDone)
				if asks { // the card counts how often Reddit was asked
					c.settled(t, want)
				} else if !cmp.Equal(onlyParquet(want), onlyParquet(c.made())) {
					t.Error("the dataset is another one")
				}
				if i%5 != 0 && !cmp.Equal(wantCopy, tree(t, copied)) {
					t.Error("the copy is another one")
				}
				c.grep(purgedWord, "a word of a purged post")
				c.on(t, copied).grep(purgedWord, "a word of a purged post")
				if list := c.copies(exitDone); list[0].State != state.CopyGood || len(list[0].Owed) > 0 {
					t.Errorf("the copy: %+v", list)
				}
			})
		})
	}
}

// between asserts what must hold at any moment of a purge.
func (c *chaosSite) between(t *testing.T, before map[string]string, export bool) {
	t.Helper()
	gone, left := strings.Split(purgedIDs, ","), false
	for _, dir := range []string{c.workspace, c.copied()} {
		for name, text := range onlyParquet(tree(t, dir)) {
			if strings.HasPrefix(path.Base(name), ".tmp-") { // what has no final name may be cut short
				continue
			}
			values := strings.Fields(string(parquetValues(t, []byte(text))))
			has := slices.ContainsFunc(gone, func(id string) bool { return slices.Contains(values, id) })
			left = left || has
			if has && text != before[path.Base(name)] {
				t.Errorf("%s in %s was written with the row of a post that goes", name, dir)
			}
		}
	}
	known := slices.DeleteFunc(gone, func(id string) bool {
		x := printed[report.Explanation](c.site, exitDone, "explain", id, "-w", c.workspace)
		return !x.Post.State.Gone() && x.Tombstone == nil
	})
	if len(known) == 0 {
		return
	}
	f := c.do(nil, "audit", c.release, "-w", c.workspace, "--offline", "--no-record")
	// What was found gone is held back until it is known how many went: the audit names all of them, and none goes out.
	waits := f.code == exitUndecided &&
		strings.Contains(f.stdout, fmt.Sprintf("held back (%s)", strings.Join(known, ", ")))
	if left && f.code != exitFound && !waits {
		t.Errorf("rows of %v are left, and audit = exit %d\n%.3000s", known, f.code, f.stdout)
	}
	if !export && !waits {
		return
	}
	other := c.at(t, place(t)) // what opens it for writing must not help the purge
	check(t, os.CopyFS(other.workspace, os.DirFS(c.workspace)))
	to := filepath.Join(filepath.Dir(other.workspace), "handed-out")
	f = other.copyTo(to)
	for _, id := range rowsOf(t, filepath.Join(to, "data")) {
		if slices.Contains(known, id) {
			t.Errorf("export handed out %s (exit %d)", id, f.code)
		}
	}
}

// TestEndKilled kills purge --all before the steps that change the disk. No state in between is damaged, and the same
// command completes each: nothing that was held is left, and what was removed stays removed.
func TestEndKilled(t *testing.T) {
	long(t)
	t.Parallel()
	c := newChaosSite(t)
	c.do(nil, "report", "-w", c.workspace).want(t, exitDone)
	check(t, os.Mkdir(c.copied(), 0o700))
	for _, format := range []string{"parquet", "folder"} {
		c.do(nil, "export", c.release, "-w", c.workspace, "--out", filepath.Join(c.copied(), format), "--note", "a test",
			"--format", format).
			want(t, exitDone)
	}
	stones := c.do(nil, "tombstones", "export", "-w", c.workspace).stdout
	args := []string{"purge", "--all", "--confirm-removals", "-w", c.workspace}
	c.killed(t, often(1, 5), func() { c.do(nil, args...).want(t, exitDone) }, func(int, string) {
		c.unsettled(t)
		if began := printed[statusReport](c.site, exitDone, "status", "-w", c.workspace).Ended; began != nil {
			c.do(nil, "export", c.release, "-w", c.workspace, "--out", filepath.Join(c.copied(), "late"), "--note", "a test").
				want(t, exitUsage)
		}
		c.do(nil, args...).want(t, exitDone, "Ended: ")
		for _, dir := range []string{c.workspace, c.copied()} {
			for name, b := range everyFile(t, dir) {
				if bytes.Contains(b, []byte(purgedWord)) || filepath.Ext(name) == ".parquet" || filepath.Ext(name) == ".jpg" {
					t.Errorf("%s is left in %s", name, dir)
				}
			}
		}
		for _, copied := range c.copies(exitDone) {
			if copied.State != state.CopyClosed {
				t.Errorf("the copy: %+v", copied)
			}
		}
		if left := tree(t, c.copied()); len(left) > 0 {
			t.Errorf("%d files are left of the copies", len(left))
		}
		c.do(nil, "status", "-w", c.workspace, "--exit-code").want(t, exitDone, "This workspace was ended on ")
		if r := c.verify(exitDone); !r.Whole || !r.Sealed || len(r.Notes) != 0 {
			t.Errorf("verify: %+v", r)
		}
		c.do(nil, "audit", c.release, "-w", c.workspace, "--offline", "--no-record").want(t, exitDone)
		if got := c.do(nil, "tombstones", "export", "-w", c.workspace).stdout; got != stones ||
			!strings.Contains(got, "deleted") {
			t.Errorf("the tombstones are\n%s, and were\n%s", got, stones)
		}
	})
	c.finish(t)
	if made := c.made(); !cmp.Equal(onlyParquet(c.want), onlyParquet(made)) {
		t.Error("the dataset of a run after the end is another one")
	}
}

// TestExportKilled kills an export before the steps that change the disk: no half copy has its name, none is unknown,
// and the next purge removes what is left.
func TestExportKilled(t *testing.T) {
	long(t)
	t.Parallel()
	c := newChaosSite(t)
	mine := filepath.Join(c.copied(), "mine.txt")
	c.write(mine, "mine")
	copied := filepath.Join(c.copied(), "copy")
	var whole map[string]string
	c.killed(t, often(1, 4), func() {
		c.copyTo(copied).want(t, exitDone)
		whole = tree(t, copied)
	}, func(int, string) {
		c.unsettled(t)
		_, err := os.Lstat(copied)
		named := err == nil
		if named && !cmp.Equal(whole, tree(t, copied)) {
			t.Error("a copy that is not whole has its name")
		}
		list, left := c.copies(exitDone), len(tree(t, c.copied()))
		if left > 1 && len(list) != 1 {
			t.Errorf("%d files are there, and %d copies are on record", left, len(list))
		}
		c.do(nil, "purge", c.release, "-w", c.workspace, "--offline").want(t, exitDone)
		if left := tree(t, c.copied()); !named && len(left) != 1 || left["mine.txt"] != "mine" {
			t.Errorf("the next purge left %d files", len(left))
		}
		if list := c.copies(exitDone); !named && len(list) > 0 && list[0].State != state.CopyClosed {
			t.Errorf("on record as %s, %q", list[0].State, list[0].Told)
		}
	})
}

// TestInterrupted sends a signal in the middle of a run and goes on.
func TestInterrupted(t *testing.T) {
	long(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			interrupted(t, signal)
		})
	}
}

func interrupted(t *testing.T, signal os.Signal) {
	t.Helper()
	posts := fewPosts(60)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	asked := make(chan struct{}, 1000)
	s.emulator.OnRequest(func(r hostile.Request) {
		if r.Host == "i.redd.it" {
			asked <- struct{}{}
		}
	})
	var stderr strings.Builder
	cmd := s.command(t.Context(), nil, s.args()...)
	cmd.Stderr = &stderr
	check(t, cmd.Start())
	for range 5 {
		<-asked
	}
	check(t, cmd.Process.Signal(signal))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Fatalf("exit %d, want %d\n%s", code, exitInterrupted, &stderr)
	}
	if first := len(s.imageRequests()); first >= len(posts) {
		t.Errorf("%d image requests before the interrupt: it was not in the middle", first)
	}
	s.run(exitDone)
	whole := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	whole.run(exitDone)
	if !cmp.Equal(whole.dataset(), s.dataset()) {
		t.Error("the dataset of an interrupted run is another one")
	}
}

// wholeSite has a workspace with a report, in which everything that verify reads is there.
func wholeSite(t *testing.T) *site {
	t.Helper()
	posts := fewPosts(6)
	posts[4].Condition = redditemu.Removed
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.do(nil, "report", "-w", s.workspace).want(t, exitDone)
	return s
}

// TestBitFlips flips random bits of everything in a sealed workspace but the lock, one at a time, and has
// verify find each, in the file in which it is.
func TestBitFlips(t *testing.T) {
	long(t)
	t.Parallel()
	s := wholeSite(t)
	random, _ := chance(t)
	files := tree(t, s.workspace)
	delete(files, "lock")
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, want := range []string{"state.db", "report.html", "outcomes.csv", "audit/seal.json", "audit/checkpoint",
		"log.key", "dataset/data/train-00000-of-00001.parquet"} {
		if !slices.Contains(names, want) {
			t.Fatalf("there is no %s among %q", want, names)
		}
	}
	for i := range often(1000, 30) {
		name := names[i%len(names)] // every file in turn, so that the small ones have theirs
		b := []byte(files[name])
		at := random.IntN(8 * len(b))
		b[at/8] ^= 1 << (at % 8)
		s.write(filepath.Join(s.workspace, name), string(b))
		r := s.verify(exitDamaged)
		if !slices.ContainsFunc(r.Damage, func(d verify.Damage) bool { return d.Where == name && d.Mend != "" }) {
			t.Errorf("bit %d of %s: verify names %+v", at, name, r.Damage)
		}
		s.write(filepath.Join(s.workspace, name), files[name])
	}
	s.verify(exitDone)
}
