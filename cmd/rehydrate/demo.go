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

	"rehydrate/audit"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

const demoSeed = 1

// servedFolder begins the name of the folder that has the emulator's certificate, as long as it serves.
const servedFolder = "rehydrate-demo-"

// isServed reports whether a certificate is one of an emulator that serves.
func isServed(cacert string) bool {
	return strings.HasPrefix(filepath.Base(filepath.Dir(cacert)), servedFolder)
}

var (
	//go:embed demo/release.toml
	demoRelease string
	//go:embed demo/policy.toml
	demoPolicy string // asks faster than a policy for Reddit should: the emulator is on this machine
)

// demoFlags are the flags of demo.
type demoFlags struct {
	runFlags
	release string   // empty for the built-in one
	sample  int      // of its posts; 0 takes all
	deleted []string // posts that their authors deleted
	serve   bool
}

func (c *command) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := c.workspaceCommand("demo", noArgs, func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("workspace") {
			c.workspace = f.folder()
		}
		sampled := cmd.Flags().Changed("posts")
		switch {
		case sampled && f.release == "":
			return usageError("--posts needs --release RELEASE, of which it takes a sample")
		case sampled && f.serve:
			return usageError("--posts and --serve exclude each other; leave one of them out")
		case sampled && f.sample < 1:
			return usageError("--posts takes a number from 1 on, not %d", f.sample)
		}
		f.rehearsal = true
		return c.demo(cmd.Context(), f)
	})
	f.register(cmd)
	cmd.Flags().StringVar(&f.release, "release", "", "")
	cmd.Flags().IntVar(&f.sample, "posts", 0, "")
	cmd.Flags().StringSliceVar(&f.deleted, "delete", nil, "")
	cmd.Flags().StringVar(&f.policy, "policy", "", "")
	cmd.Flags().BoolVar(&f.serve, "serve", false, "")
	return cmd
}

// folder is the workspace without -w: never that of a real run, for what is made up must not end among what is real,
// nor that of a rehearsal of another sort, release or sample. Releases whose folders or files have the same name share
// one: a workspace refuses a release that has another name in its release.toml, and takes one that has the same name
// for a new version of it.
func (f *demoFlags) folder() string {
	name := "rehearsal"
	switch {
	case f.serve:
		name = "served"
	case f.release == "":
		name = "rehydrated"
	}
	if f.release != "" {
		name += "-" + f.stem()
	}
	if f.sample > 0 { // of other posts than those of another sample
		name += fmt.Sprint("-", f.sample)
	}
	return filepath.Join("rehydrate-demo", name)
}

// stem is what the release is called as a folder, or as a file without the ending.
func (f *demoFlags) stem() string {
	at := filepath.Clean(f.release)
	if whole, err := filepath.Abs(at); err == nil { // "." has a name, too
		at = whole
	}
	at = filepath.Base(at)
	if !isReleaseFolder(f.release) { // it is a file
		at = strings.TrimSuffix(at, filepath.Ext(at))
	}
	return at
}

func (c *command) demo(ctx context.Context, f demoFlags) error {
	if f.release != "" {
		c.rehearsed = f.stem()
	}
	posts, path, err := c.demoPosts(ctx, &f)
	if err == nil {
		err = f.deleteByAuthors(posts)
	}
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
	folder, err := os.MkdirTemp("", servedFolder)
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
	f.approval = madeUp
	env := map[string]string{"REDDIT_CLIENT_ID": emulator.ClientID, "REDDIT_CLIENT_SECRET": emulator.Secret,
		"REDDIT_USERNAME": "demo_user",
		"IMGUR_CLIENT_ID": emulator.ImgurClientID}
	if f.serve {
		return c.serve(ctx, f, env, path)
	}
	fmt.Fprintf(c.stdout, "demo: %d made-up posts on the built-in emulator at %s; nothing leaves this machine\n%s",
		len(posts), emulator.Addr(), f.rehearsed)
	for _, id := range f.deleted {
		fmt.Fprintf(c.stdout, "%s was deleted by its author\n", id)
	}
	fmt.Fprintln(c.stdout)
	return c.rehearse(ctx, f, env, path)
}

// deleteByAuthors has the authors of some posts delete them.
func (f *demoFlags) deleteByAuthors(posts []redditemu.Post) error {
	of := "release"
	if f.rehearsed.isSample() {
		of = fmt.Sprintf("sample of %d posts", len(posts))
	}
	for _, text := range f.deleted {
		id, err := manifest.ParsePostID(text)
		if err != nil {
			return usageError("--delete: %w", err)
		}
		i := slices.IndexFunc(posts, func(p redditemu.Post) bool { return p.ID == id })
		if i < 0 {
			return usageError("--delete: the %s has no post %s", of, id)
		}
		posts[i].Condition, posts[i].RemovedBy = redditemu.Deleted, ""
	}
	return nil
}

// rehearse runs the release on the emulator, and says what to look at.
func (c *command) rehearse(ctx context.Context, f demoFlags, env map[string]string, path string) error {
	getenv := func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		if _, ok := env[strings.TrimSuffix(name, "_FILE")]; ok {
			return "" // the user's own credentials must not reach the emulator
		}
		return c.getenv(name)
	}
	summary, err := c.rehydrate(ctx, path, f.runFlags, getenv)
	if err == nil {
		err = c.conclude(summary, "", true)
	}
	var status exitCode
	if err != nil && !errors.As(err, &status) {
		return err
	}
	look := demoLook{Path: shellWord(path), BuiltIn: f.release == "", List: manifest.IsList(path), Deleted: f.deleted,
		Failed: summary.Retry > 0}
	release, failed := c.openManifest(ctx, path)
	if failed != nil {
		return failed
	}
	pol, failed := policyOf(release)
	if failed != nil {
		return failed
	}
	look.Granted = pol.Access.GrantRequired
	if len(f.deleted) == 0 {
		id, failed := c.loneRow(ctx)
		if failed != nil {
			return failed
		}
		if id != "" {
			look.Again = c.again("--delete " + string(id))
		}
	}
	if failed := c.render(c.stdout, "demo", look); failed != nil {
		return failed
	}
	if look.BuiltIn && status == exitRetry {
		// One post of the demo has an image host that always fails, to show what that
		// looks like: a demo that shows it has succeeded.
		return nil
	}
	return err
}

// A demoLook is what a demo says last.
type demoLook struct {
	Path    string // of the release, as a shell takes it
	BuiltIn bool   // the release is the built-in one
	List    bool   // it is a list of ids, without labels
	Deleted []string
	Failed  bool   // some images can be retried
	Granted bool   // a run of the release needs a grant
	Again   string // the command with one more post deleted; empty where that would show nothing
}

// loneRow returns a post in the dataset whose deletion would take out one row and let none in; "" for none.
func (c *command) loneRow(ctx context.Context) (manifest.PostID, error) {
	var kept []manifest.PostID
	other := map[manifest.PostID]bool{"": true} // posts with near-duplicates or other images
	_, err := reading(ctx, c, func(ws *workspace.Workspace) (any, error) {
		for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
			switch {
			case err != nil:
				return nil, err
			case rec.Result == nil:
				continue
			case rec.Key.Image > 0:
				other[rec.ID] = true
			case rec.Result.Outcome == manifest.Kept:
				kept = append(kept, rec.ID)
			}
			other[rec.Result.DuplicateOf.ID] = true
		}
		return nil, nil
	})
	kept = append(slices.DeleteFunc(kept, func(id manifest.PostID) bool { return other[id] }), "")
	return kept[0], err
}

// demoPosts are the posts to emulate, and the path of the release to run.
func (c *command) demoPosts(ctx context.Context, f *demoFlags) ([]redditemu.Post, string, error) {
	if f.release == "" {
		annotations, posts := redditemu.Demo(demoSeed)
		path, err := writeDemoRelease(builtInRelease(), annotations)
		return posts, path, err
	}
	rel, err := c.openRelease(ctx, f.release)
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
	if f.sample > 0 && f.sample < len(ids) {
		// By chance, which is always the same: every tenth post could be one of a kind.
		order := slices.SortedFunc(slices.Values(ids), func(a, b manifest.PostID) int {
			return cmp.Compare(redditemu.Hash64(string(a)), redditemu.Hash64(string(b)))
		})
		for _, id := range order[f.sample:] {
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
	return redditemu.Rehearsal(ids, f.rehearsed.images, demoSeed), f.release, nil
}

// A rehearsal is a release as the emulator answers for it.
type rehearsal struct {
	images  map[manifest.PostID]int // of the posts that are rehearsed, how many images of each
	posts   int                     // of the release
	entries int                     // that are rehearsed
	digests int                     // entries whose digests are ignored
}

// isSample reports whether it is one of some posts of the release.
func (r *rehearsal) isSample() bool { return r != nil && len(r.images) < r.posts }

// change makes a run of the release into one of its rehearsal.
func (r *rehearsal) change(config *pipeline.Config) {
	config.Entry = func(e manifest.Entry) (manifest.Entry, bool) {
		e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash = "", "", "", ""
		return e, r.images[e.Key.ID] > 0
	}
	if r.isSample() { // another sample of the same release is loaded again
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
	if r.isSample() {
		text += fmt.Sprintf("a sample of %d of the release's %d posts: %s\n", len(r.images), r.posts,
			times(r.entries, "entry", "entries"))
	}
	if r.digests > 0 {
		text += fmt.Sprintf("digests are ignored (%s): made-up images have others\n",
			times(r.digests, "entry has some", "entries have some"))
	}
	return text
}

// inRehearsal puts commands that work into the advice of an audit where the posts of the workspace are made up, for
// Reddit does not know them. The release has so many posts, and the rehearsal a sample of them or all. Posts that are
// held back are deleted there, too: else the emulator would call them live.
func (c *command) inRehearsal(ctx context.Context, r audit.Report, posts int, policy string) *strings.Replacer {
	again, err := reading(ctx, c, func(ws *workspace.Workspace) (string, error) {
		b, _, err := ws.Binding(ctx)
		if err != nil || !state.IsRehearsal(b.Release) {
			return "", err
		}
		text := "rehydrate demo"
		if filepath.Clean(c.release) != builtInRelease() {
			text += repeated("--release", c.release)
			_, rehearsed, err := ws.Counts(ctx)
			if err != nil {
				return "", err
			}
			if rehearsed < posts {
				text += fmt.Sprintf(" --posts %d", rehearsed)
			}
		}
		var gone []string
		for _, d := range r.Duties {
			if d.Kind == audit.DutyConfirm {
				gone = append(gone, d.Posts...)
			}
		}
		return text + repeated("--delete", strings.Join(gone, ",")) + repeated("--policy", policy) + c.named(), nil
	})
	if err != nil || again == "" { // the report says what is wrong with the workspace
		return strings.NewReplacer()
	}
	var words []string
	for _, job := range []string{"recheck", "run"} {
		asks := "rehydrate " + job + " RELEASE"
		words = append(words, asks+" "+confirms, joined(again+" "+confirms), asks, joined(again))
	}
	return strings.NewReplacer(append(words, "rehydrate purge RELEASE", "rehydrate purge RELEASE --offline")...)
}

// builtInRelease is the folder of the release that is rehearsed without --release.
func builtInRelease() string { return filepath.Join("rehydrate-demo", "release") }

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
func (c *command) serve(ctx context.Context, f demoFlags, env map[string]string, release string) error {
	self, err := c.executable()
	if err != nil {
		self = "rehydrate" // then it is on PATH
	}
	leave, note, err := c.servedLeave(ctx, release)
	if err != nil {
		return err
	}
	there := f.redditFlags.repeated() + repeated("-w", c.workspace)
	run := shellWord(self) + " run " + shellWord(release) + leave + there
	recheck := "" // where there is something to find
	if len(f.deleted) > 0 {
		recheck = shellWord(self) + " recheck " + shellWord(release) + leave + there
	}
	if c.json {
		_, err = c.bare.Write(toJSON(map[string]any{"environment": env, "run": run, "recheck": recheck}))
		c.said.delivered = true // now: what comes later is only that it ends
	} else {
		fmt.Fprintln(c.stderr, "rehydrate: in another terminal, type these lines; Ctrl-C here ends the emulator")
		for _, name := range slices.Sorted(maps.Keys(env)) {
			fmt.Fprintf(c.bare, "export %s=%s\n", name, env[name])
		}
		_, err = fmt.Fprintln(c.bare, cmp.Or(recheck, run)) // not folded: it is to be copied
	}
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintf(c.stderr, "rehydrate: %s\n", note)
	}
	select {
	case <-c.stop:
	case <-ctx.Done():
	}
	return nil
}

// servedLeave returns the flags by which a run of a served release has leave, as for Reddit, and what to do where the
// release's grant does not count.
func (c *command) servedLeave(ctx context.Context, release string) (flags, note string, err error) {
	rel, err := c.openManifest(ctx, release)
	if err != nil {
		return "", "", err
	}
	pol, err := policyOf(rel)
	if err != nil {
		return "", "", err
	}
	permit, err := c.findGrant(ctx, rel, pol.Access.GrantRequired, "")
	if err != nil {
		return "", "", err
	}
	if permit == nil {
		return " --approval " + madeUp, "", nil
	}
	fault := permit.judge(c.now()) // a grant names its approval
	switch {
	case fault == nil:
		return "", "", nil
	case fault.Reason == "no_grant":
		return " --grant grant.json",
			"this release asks for a grant, also here: put the file of yours in place of grant.json", nil
	}
	return "", fmt.Sprintf("this release asks for a grant, also here (%s): %s", fault.Reason, fault.Detail), nil
}
