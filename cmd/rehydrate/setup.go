package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rehydrate/pipeline"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// setUp finds the grant by which a run works, and refuses a run that lacks something, before anything is asked or
// written.
// What is missing is told at once: the grant or the approval, the credentials and the ocr program.
func (c *command) setUp(
	ctx context.Context,
	path string,
	config pipeline.Config,
	f *runFlags,
	getenv func(string) string,
) (*permit, error) {
	_, _, err := f.routes()
	if err == nil {
		err = c.ownWorkspace(ctx, config, f)
	}
	if err != nil {
		return nil, err
	}
	grant, err := c.useGrant(ctx, config, &f.releaseFlags)
	fault, isFault := errors.AsType[*policy.GrantFault](err)
	switch {
	case isFault && err == error(fault) && fault.Reason == "no_signer":
		return nil, &problem{code: exitRejected,
			err: fmt.Errorf(
				"%s cannot be rebuilt yet: it asks for a grant, and names no key that could sign one",
				config.Release.Name,
			),
			hint: "only its maintainers can change that: they add a [[signer]] to release.toml, and then sign a grant\n" +
				"until then, rehearse on made-up images: rehydrate demo --release " + path}
	case err != nil && !(isFault && err == error(fault) && fault.Reason == "no_grant"):
		return nil, err
	}
	var first error
	var missing []string
	lacks := func(err error, what string) {
		if err != nil {
			first = errors.Join(first, err)
			missing = append(missing, "- "+what)
		}
	}
	switch {
	case err != nil:
		lacks(
			err,
			"a grant, signed by the release's maintainers: put grant.json and grant.json.sig into the release folder, "+
				"or --grant FILE",
		)
	case f.approval == "":
		lacks(reddit.ErrNoApproval,
			"Reddit's approval of your use: --approval REF (docs/researcher.md, step 1)")
	}
	lacks(
		noCredentials(getenv),
		"a Reddit app, in REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET, REDDIT_USERNAME (or each with _FILE)",
	)
	if f.reads() {
		_, err := c.findOCR(f.program)
		lacks(err, "the ocr program: scripts/setup and go build -o bin/ ./cmd/... build it, or --ocr PROGRAM")
	}
	const all = "rehydrate doctor RELEASE checks the whole setup"
	switch len(missing) {
	case 0:
		return grant, nil
	case 1:
		code, hint := diagnose(first)
		return nil, &problem{err: first, code: code, hint: strings.TrimPrefix(hint+"\n", "\n") + all}
	}
	return nil, &problem{
		err: &lacking{
			first,
			[]string{2: "two", 3: "three"}[len(missing)] + " things are missing before this release can be rebuilt",
		},
		code: exitRejected,
		hint: strings.Join(append(missing, all), "\n"),
	}
}

// A lacking is several errors, told as one.
type lacking struct {
	error
	text string
}

func (l *lacking) Error() string { return l.text }
func (l *lacking) Unwrap() error { return l.error }

// noCredentials reports that a credential is named nowhere. What is in them is not looked at.
func noCredentials(getenv func(string) string) error {
	var missing []string
	for _, name := range []string{"REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "REDDIT_USERNAME"} {
		if getenv(name) == "" && getenv(name+"_FILE") == "" {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return rejected(fmt.Errorf("credentials for Reddit are missing: %s", strings.Join(missing, ", ")), credentialsHint)
}

// ownWorkspace refuses the workspace of another release, and words of --retry that mean nothing in it.
func (c *command) ownWorkspace(ctx context.Context, config pipeline.Config, f *runFlags) error {
	if f.rehearsal {
		return nil
	}
	_, err := reading(ctx, c, func(ws *workspace.Workspace) (any, error) {
		b, bound, err := ws.Binding(ctx)
		if err == nil && bound && b.Release != config.Release.Name {
			err = &workspace.OtherRelease{Have: b.Release, Want: config.Release.Name}
		}
		if err == nil && len(f.retry) > 0 {
			err = pipeline.CheckRetry(ctx, ws, f.retry)
		}
		return nil, err
	})
	if is[*workspace.OtherRelease](err) || is[*pipeline.UnknownRetry](err) {
		return err
	}
	return c.knowsPosts(ctx, &f.releaseFlags, &f.redditFlags) // a workspace that cannot be read is the run's own error
}

// findOCR finds the ocr program: as it was named, next to this one, or on PATH.
func (c *command) findOCR(named string) (string, error) {
	const build = "build it: scripts/setup installs Tesseract, then go build -o bin/ ./cmd/...\n" +
		"or name it with --ocr PROGRAM"
	if named != "" {
		if _, err := exec.LookPath(named); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return "", &problem{err: fmt.Errorf("--ocr: there is no program %s", named), code: exitFailed, hint: build}
		}
		return named, nil
	}
	// What was built together goes together: another ocr on PATH may be of another version.
	if self, err := c.executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "ocr")
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	if path, err := exec.LookPath("ocr"); err == nil {
		return path, nil
	}
	return "", &problem{
		err:  errors.New("the ocr program is neither next to rehydrate nor on PATH"),
		code: exitFailed,
		hint: build,
	}
}
