package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

// beAsked is what the environment asks of a child besides to be rehydrate.
func beAsked() {
	if os.Getenv(tracedVar) != "" {
		if err := announceDiskCalls(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// chaosPosts are a dozen posts: a gallery, two near-duplicates, a text that is not English, one post that is
// removed and one that its author deleted.
func chaosPosts() []redditemu.Post {
	one := func(caption int, shade uint8) []redditemu.Image {
		return []redditemu.Image{sketch(caption, uint64(caption), shade, "png")}
	}
	var posts []redditemu.Post
	for i := range 6 {
		posts = append(posts, redditemu.Post{Images: one(firstOwn+i, 0)})
	}
	posts = append(posts,
		redditemu.Post{Images: one(firstOwn+1, 4)}, // again chaos01
		redditemu.Post{Kind: redditemu.KindGallery, Images: append(one(firstOwn+7, 0), one(firstOwn+8, 0)...)},
		redditemu.Post{Images: one(german, 0)},
		redditemu.Post{Images: one(firstOwn+10, 0)},
		redditemu.Post{Condition: redditemu.Removed},
		redditemu.Post{Condition: redditemu.Deleted})
	for i := range posts {
		posts[i].ID = manifest.PostID(fmt.Sprintf("chaos%02d", i))
	}
	return posts
}

// A chaosSite is a small site of which every run is quick, with what a run that nothing disturbed makes of it.
type chaosSite struct {
	*site
	want map[string]string
}

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
	c := &chaosSite{site: newSiteOn(t, o, rows.String(), quick("mass_removal_share = 1.0"), posts...)}
	c.workspace = c.place(t)
	c.finish(t)
	c.want = c.made(t)
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
func (c *chaosSite) place(t *testing.T) string {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err != nil || !info.IsDir() {
		return filepath.Join(t.TempDir(), "ws")
	}
	dir, err := os.MkdirTemp("/dev/shm", "rehydrate-chaos-")
	if err != nil {
		t.Fatal(err)
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

// runArgs are those of a run.
func (c *chaosSite) runArgs() []string { return c.args("--workers", "1") }

// purgedIDs are the posts that purges of the chaos tests remove: the kept one of two near-duplicates, and one
// that is nobody's duplicate. purgedWords are of their texts.
const purgedIDs = "chaos01,chaos03"

var purgedWords = []string{"CONSTELLATION"}

// purgeArgs are those of a purge that asks nobody.
func (c *chaosSite) purgeArgs() []string {
	return []string{"purge", c.release, "-w", c.workspace, "--offline", "--id", purgedIDs}
}

// command is a command line in a process of its own.
func (c *chaosSite) command(ctx context.Context, args ...string) *exec.Cmd {
	return c.under(ctx, nil, args...)
}

// under is command by another program, whose arguments end with the command line.
func (c *chaosSite) under(ctx context.Context, program []string, args ...string) *exec.Cmd {
	line := slices.Concat(program, []string{os.Args[0]}, args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), childVar+"=1")
	for k, v := range c.env() {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// finish runs the release to its end.
func (c *chaosSite) finish(t *testing.T) {
	t.Helper()
	c.do(c.env(), c.runArgs()...).want(t, exitDone)
}

// made is what the workspace has to show: outcomes and dataset, the names of the images, and no more than
// names of all the rest but the log.
func (c *chaosSite) made(t *testing.T) map[string]string {
	t.Helper()
	made := map[string]string{}
	for name, text := range tree(t, c.workspace) {
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
	made := c.made(t)
	if diff := cmp.Diff(names(want), names(made)); diff != "" {
		t.Errorf("files (-undisturbed +this one):\n%s", diff)
	}
	for name, text := range made {
		if had, ok := want[name]; ok && had != text {
			t.Errorf("%s is not the one of an undisturbed run", name)
			if strings.HasSuffix(name, ".csv") {
				t.Log(cmp.Diff(had, text))
			}
		}
	}
	if r := c.verify(exitDone); !r.Whole || !r.Sealed || len(r.Notes) != 0 {
		t.Errorf("verify: %+v", r)
	}
	if c.inUse() {
		t.Error("the lock is held")
	}
}

func names(files map[string]string) []string {
	var list []string
	for name := range files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// unsettled asserts what must hold of a workspace at any moment: whatever has its final name is whole, as far
// as anything is on record, and a killed process holds no lock.
func (c *chaosSite) unsettled(t *testing.T) {
	t.Helper()
	if c.inUse() {
		t.Error("the lock of a killed process is not free")
	}
	f := c.do(nil, "verify", "-w", c.workspace)
	_, err := os.Stat(filepath.Join(c.workspace, "state.db"))
	if young := err != nil || fileSize(t, filepath.Join(c.workspace, "state.db")) == 0; young {
		return // there is nothing yet that could be damaged
	}
	if f.code != exitDone {
		t.Errorf("verify = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
}
