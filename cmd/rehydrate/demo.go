package main

import (
	"context"
	_ "embed" // the files of the demo
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
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
		serve   bool
	)
	cmd := newCommand("demo", exactArgs(0, "no arguments"), func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("workspace") {
			// Never the folder of a real run: what is made up must not end among what is real.
			c.workspace = filepath.Join("rehydrate-demo", "rehydrated")
			switch {
			case serve:
				c.workspace = filepath.Join("rehydrate-demo", "served")
			case release != "":
				c.workspace = filepath.Join("rehydrate-demo", "rehearsal")
			}
		}
		f.rehearsal = true
		return c.demo(cmd.Context(), f, release, serve)
	})
	f.register(cmd)
	cmd.Flags().StringVar(&release, "release", "", "rehearse this `release` instead of the built-in one")
	cmd.Flags().StringVar(&f.policy, "policy", "", "the policy `file` for a bare annotations file")
	cmd.Flags().BoolVar(&serve, "serve", false, "only run the emulator, and say how to reach it")
	return cmd
}

func (c *command) demo(ctx context.Context, f runFlags, release string, serve bool) error {
	posts, path, err := c.demoPosts(ctx, release)
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
	env := map[string]string{"REDDIT_CLIENT_ID": emulator.ClientID, "REDDIT_CLIENT_SECRET": emulator.Secret, "REDDIT_USERNAME": "demo_user",
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
	if !c.json {
		fmt.Fprintf(c.stdout, "demo: %d made-up posts on the built-in emulator at %s; nothing leaves this machine\n\n", len(posts), emulator.Addr())
	}
	err = c.rehydrate(ctx, path, f, getenv)
	var status exitCode
	if err != nil && !errors.As(err, &status) {
		return err
	}
	if !c.json {
		fmt.Fprintf(c.stdout, demoLook, filepath.Join(c.workspace, "outcomes.csv"), filepath.Join(c.workspace, "dataset"), path, c.workspace)
	}
	if release == "" && status == exitRetry {
		// One post of the demo has an image host that always fails, to show what that
		// looks like: a demo that shows it has succeeded.
		return nil
	}
	return err
}

// demoPosts are the posts to emulate, and the path of the release to run.
func (c *command) demoPosts(ctx context.Context, release string) ([]redditemu.Post, string, error) {
	if release == "" {
		annotations, posts := redditemu.Demo(demoSeed)
		path, err := writeDemoRelease(filepath.Join("rehydrate-demo", "release"), annotations)
		return posts, path, err
	}
	rel, err := openRelease(ctx, release)
	if err != nil {
		return nil, "", err
	}
	var ids []manifest.PostID
	seen := map[manifest.PostID]bool{}
	for e, err := range rel.Entries(ctx) {
		if err != nil {
			return nil, "", err
		}
		if !seen[e.Key.ID] { // a gallery has an entry for each of its images
			seen[e.Key.ID] = true
			ids = append(ids, e.Key.ID)
		}
	}
	return redditemu.Scenario(ids, demoSeed), release, nil
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
	for _, name := range []string{"REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "REDDIT_USERNAME", "IMGUR_CLIENT_ID"} {
		fmt.Fprintf(c.bare, "export %s=%s\n", name, env[name])
	}
	self, err := c.executable()
	if err != nil {
		self = "rehydrate" // then it is on PATH
	}
	fmt.Fprintf(c.stdout, "%s run %s --approval DEMO --connect-to %s --cacert %s -w %s\n", self, release, f.connectTo[0], f.cacert, c.workspace)
	fmt.Fprintln(c.stderr, "rehydrate: the emulator answers until you press Ctrl-C")
	select {
	case <-c.stop:
	case <-ctx.Done():
	}
	return nil
}
