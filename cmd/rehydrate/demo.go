package main

import (
	"cmp"
	"context"
	_ "embed" // the files of the demo
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
)

const demoSeed = 1

var (
	//go:embed demo/release.toml
	demoRelease string
	//go:embed demo/policy.toml
	demoPolicy string // asks faster than a policy for Reddit should: the emulator is on this machine
	//go:embed demo/look.txt
	demoLook string // what a demo prints last
)

func (c *command) demoCommand() *cobra.Command {
	var (
		f       runFlags
		release string
		sample  int
		serve   bool
	)
	cmd := c.workspaceCommand("demo", noArgs, func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("workspace") {
			// Never the folder of a real run: what is made up must not end among what is real.
			c.workspace = filepath.Join("rehydrate-demo", "rehydrated")
			switch {
			case serve:
				c.workspace = filepath.Join("rehydrate-demo", "served")
			case sample > 0: // of other posts than those of another sample
				c.workspace = filepath.Join("rehydrate-demo", fmt.Sprint("rehearsal-", sample))
			case release != "":
				c.workspace = filepath.Join("rehydrate-demo", "rehearsal")
			}
		}
		switch sampled := cmd.Flags().Changed("posts"); {
		case sampled && release == "":
			return usageError("--posts needs --release RELEASE, of which it takes a sample")
		case sampled && serve:
			return usageError("--posts and --serve exclude each other; leave one of them out")
		case sampled && sample < 1:
			return usageError("--posts takes a number from 1 on, not %d", sample)
		}
		f.rehearsal = true
		return c.demo(cmd.Context(), f, release, sample, serve)
	})
	f.register(cmd)
	cmd.Flags().StringVar(&release, "release", "", "")
	cmd.Flags().IntVar(&sample, "posts", 0, "")
	cmd.Flags().StringVar(&f.policy, "policy", "", "")
	cmd.Flags().BoolVar(&serve, "serve", false, "")
	return cmd
}

func (c *command) demo(ctx context.Context, f runFlags, release string, sample int, serve bool) error {
	posts, path, err := c.demoPosts(ctx, release, sample, &f)
	if err != nil {
		return err
	}
	// Always the same seed, so that what the README shows is what a user gets.
	emulator, err := redditemu.Start(redditemu.Options{Seed: demoSeed})
	if err != nil {
		return fmt.Errorf("start the emulator: %w", err)
	}
	defer emulator.Close()
	if err := emulator.Put(posts...); err != nil {
		return fmt.Errorf("load the emulator: %w", err)
	}
	folder, err := os.MkdirTemp("", "rehydrate-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	f.cacert = filepath.Join(folder, "ca.pem")
	if err := os.WriteFile(f.cacert, emulator.CAPEM(), 0o600); err != nil {
		return err
	}
	// From here on the demo is a run: only the addresses and the credentials differ.
	f.connectTo = []string{emulator.ConnectTo()}
	f.approval = "DEMO"
	env := map[string]string{"REDDIT_CLIENT_ID": emulator.ClientID, "REDDIT_CLIENT_SECRET": emulator.Secret,
		"REDDIT_USERNAME": "demo_user",
		"IMGUR_CLIENT_ID": emulator.ImgurClientID}
	if serve {
		return c.serve(ctx, f, env, path)
	}
	getenv := func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		if _, ok := env[strings.TrimSuffix(name, "_FILE")]; ok {
			return "" // the user's own credentials must not reach the emulator
		}
		return c.getenv(name)
	}
	fmt.Fprintf(c.stdout, "demo: %d made-up posts on the built-in emulator at %s; nothing leaves this machine\n%s\n",
		len(posts), emulator.Addr(), f.rehearsed)
	summary, err := c.rehydrate(ctx, path, f, getenv)
	if err == nil {
		err = c.conclude(summary, "")
	}
	var status exitCode
	if err != nil && !errors.As(err, &status) {
		return err
	}
	fmt.Fprintf(c.stdout, demoLook, filepath.Join(c.workspace, "outcomes.csv"), filepath.Join(c.workspace, "dataset"),
		path, c.workspace)
	if release == "" && status == exitRetry {
		// One post of the demo has an image host that always fails, to show what that
		// looks like: a demo that shows it has succeeded.
		return nil
	}
	return err
}

// demoPosts are the posts to emulate, and the path of the release to run.
func (c *command) demoPosts(ctx context.Context, release string, sample int, f *runFlags) ([]redditemu.Post, string,
	error) {
	if release == "" {
		annotations, posts := redditemu.Demo(demoSeed)
		path, err := writeDemoRelease(filepath.Join("rehydrate-demo", "release"), annotations)
		return posts, path, err
	}
	rel, err := c.openRelease(ctx, release)
	if err != nil {
		return nil, "", err
	}
	type named struct{ images, entries, digests int }
	var ids []manifest.PostID
	of := map[manifest.PostID]named{}
	for e, err := range rel.Entries(ctx) {
		if err != nil {
			return nil, "", err
		}
		n, seen := of[e.Key.ID]
		if !seen {
			ids = append(ids, e.Key.ID)
		}
		n.images, n.entries = max(n.images, e.Key.Image+1), n.entries+1
		if e.SHA256+e.StrippedSHA256+e.PixelsSHA256+e.PHash != "" {
			n.digests++
		}
		of[e.Key.ID] = n
	}
	if sample > 0 && sample < len(ids) {
		// By chance, which is always the same: every tenth post could be one of a kind.
		order := slices.SortedFunc(slices.Values(ids), func(a, b manifest.PostID) int {
			return cmp.Compare(redditemu.Hash64(string(a)), redditemu.Hash64(string(b)))
		})
		for _, id := range order[sample:] {
			delete(of, id)
		}
		ids = slices.DeleteFunc(ids, func(id manifest.PostID) bool { return of[id].entries == 0 })
	}
	f.rehearsed = &rehearsal{images: map[manifest.PostID]int{}, posts: rel.summary.Posts}
	for id, n := range of {
		f.rehearsed.images[id] = n.images
		f.rehearsed.entries += n.entries
		f.rehearsed.digests += n.digests
	}
	return redditemu.Rehearsal(ids, f.rehearsed.images, demoSeed), release, nil
}

// A rehearsal is a release as the emulator answers for it.
type rehearsal struct {
	images  map[manifest.PostID]int // of the posts that are rehearsed, how many images of each
	posts   int                     // of the release
	entries int                     // that are rehearsed
	digests int                     // entries whose digests are ignored
}

// change makes a run of the release into one of its rehearsal.
func (r *rehearsal) change(config *pipeline.Config) {
	config.Entry = func(e manifest.Entry) (manifest.Entry, bool) {
		e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash = "", "", "", ""
		return e, r.images[e.Key.ID] > 0
	}
	if len(r.images) < r.posts { // another sample of the same release is loaded again
		config.Manifest.Entries, config.Manifest.Posts = r.entries, len(r.images)
		config.Release.Digest = state.SHA256(fmt.Append(nil, config.Release.Digest, " ", len(r.images)))
	}
	// The emulator is on this machine: at the pace for Reddit and imgur, thousands of posts would take hours.
	p := &config.Policy
	p.Reddit.RequestsPerMinute, p.Reddit.SecondLookAfter = 100, min(p.Reddit.SecondLookAfter, time.Second)
	p.Images.Hosts = slices.Clone(p.Images.Hosts)
	for i := range p.Images.Hosts {
		p.Images.Hosts[i].RequestsPerSecond = 50
	}
}

// String says in what a rehearsal differs from the release.
func (r *rehearsal) String() string {
	if r == nil {
		return ""
	}
	text := "the pace of the release's rules is for Reddit, so it is not kept here\n"
	if len(r.images) < r.posts {
		text += fmt.Sprintf("a sample of %d of the release's %d posts: %s\n", len(r.images), r.posts,
			times(r.entries, "entry", "entries"))
	}
	if r.digests > 0 {
		text += fmt.Sprintf("digests are ignored (%s): made-up images have others\n",
			times(r.digests, "entry has some", "entries have some"))
	}
	return text
}

func writeDemoRelease(dir string, annotations []byte) (string, error) {
	// release.toml is written last, so its presence means that the folder is complete.
	if _, err := os.Stat(filepath.Join(dir, "release.toml")); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for _, f := range []struct{ name, text string }{
		{"annotations.csv", string(annotations)}, {"policy.toml", demoPolicy}, {"release.toml", demoRelease}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600); err != nil {
			return "", fmt.Errorf("write the demo's release: %w", err)
		}
	}
	return dir, nil
}

// serve keeps the emulator up until the user stops it.
func (c *command) serve(ctx context.Context, f runFlags, env map[string]string, release string) error {
	self, err := c.executable()
	if err != nil {
		self = "rehydrate" // then it is on PATH
	}
	run := fmt.Sprintf("%s run %s --approval DEMO --connect-to %s --cacert %s -w %s",
		self, release, f.connectTo[0], f.cacert, c.workspace)
	if c.json {
		_, err = c.bare.Write(toJSON(map[string]any{"environment": env, "run": run}))
		c.said.delivered = true // now: what comes later is only that it ends
	} else {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			fmt.Fprintf(c.bare, "export %s=%s\n", name, env[name])
		}
		_, err = fmt.Fprintln(c.bare, run) // not folded: it is to be copied
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, "rehydrate: the emulator answers until you press Ctrl-C")
	select {
	case <-c.stop:
	case <-ctx.Done():
	}
	return nil
}
