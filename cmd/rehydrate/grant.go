package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/curate/publish"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

func (c *command) grantCommand() *cobra.Command {
	return newGroup("grant", c.grantShowCommand(), c.grantCheckCommand())
}

func (c *command) grantShowCommand() *cobra.Command {
	return newCommand("grant-show", exactArgs(1, "one FILE: a grant.json"), func(_ *cobra.Command, args []string) error {
		b, err := userfile.Read(args[0])
		if err != nil {
			return usageError("%w", err)
		}
		g, err := policy.ParseGrant(b, args[0])
		switch {
		case err != nil && !json.Valid(b):
			return &problem{err: fmt.Errorf("%s is not a grant: it is not valid JSON", args[0]), code: exitRejected,
				hint: "get the file again, byte for byte, or ask the release's maintainers for it"}
		case err != nil:
			return &problem{err: err, code: exitRejected}
		}
		return c.answer("grant-show", grantReport{Grant: &g, grantVerdict: verdictOf(g.Current(c.now())), File: args[0]})
	})
}

// A grantReport is what grant show and grant check print with --json.
type grantReport struct {
	grantVerdict
	Release     *policy.GrantedRelease `json:"release,omitempty"`  // the one that was checked
	Required    any                    `json:"required,omitempty"` // by its policy, a bool
	Grant       *policy.Grant          `json:"grant,omitempty"`
	Signer      *policy.Signer         `json:"signer,omitempty"`
	Revocations *policy.Revocations    `json:"revocations,omitempty"`
	Draft       bool                   `json:"draft,omitempty"` // the release was made by init, and not by publish
	File        string                 `json:"-"`               // of the grant
}

// A grantVerdict says whether a grant counts, and why not.
type grantVerdict struct {
	Valid  bool            `json:"valid"`
	Reason manifest.Reason `json:"reason,omitempty"`
	Detail string          `json:"detail,omitempty"`
	Hint   string          `json:"hint,omitempty"`
}

func verdictOf(f *policy.GrantFault) grantVerdict {
	if f == nil {
		return grantVerdict{Valid: true}
	}
	return grantVerdict{Reason: f.Reason, Detail: f.Detail, Hint: f.Hint}
}

func (c *command) grantCheckCommand() *cobra.Command {
	var file string
	cmd := c.workspaceCommand("grant-check", exactArgs(1, "one RELEASE: a release folder"),
		func(cmd *cobra.Command, args []string) error {
			return c.grantCheck(cmd.Context(), args[0], file)
		})
	cmd.Flags().StringVar(&file, "grant", "", "")
	return cmd
}

func (c *command) grantCheck(ctx context.Context, path, file string) error {
	rel, err := c.openManifest(ctx, path)
	if err != nil {
		return err
	}
	pol, err := policyOf(rel)
	if err != nil {
		return err
	}
	p, err := c.findGrant(ctx, rel, true, file)
	if err != nil {
		return err
	}
	fault := p.judge(c.now())
	report := grantReport{Release: &policy.GrantedRelease{Name: rel.Name, Digest: rel.Digest},
		Required:     pol.Access.GrantRequired,
		Draft:        isDraft(rel),
		grantVerdict: verdictOf(fault)}
	if g := p.grant; g != nil {
		report.Grant, report.Signer, report.Revocations = &g.Grant, &g.Signer, g.Revocations
	}
	return c.answerHolds("grant-check", report, fault == nil, exitRejected)
}

// isDraft reports whether a release folder is one that init made, and not publish: what publish makes has another
// digest.
func isDraft(rel *manifest.Release) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(rel.Dir, name))
		return err == nil
	}
	return rel.Dir != "" && has(publish.AnswersName) && !has(manifest.SumsName)
}

// A permit is the grant of a release, and what it is judged by.
type permit struct {
	name    string              // the id of the grant, or its file
	grant   *policy.SignedGrant // nil where there is none that can be trusted
	fault   *policy.GrantFault  // why not
	genuine *policy.Grant       // what a pinned signer signed, whatever the list of revocations looks like; nil for none
	release policy.GrantedRelease
	draft   string // what to do where the grant is for what publish made of this draft; "" where this is none
	seen    int64  // the highest serial of a revocation list seen before, 0 for none
}

// judge returns why the permit does not hold at a time; nil if it does.
func (p *permit) judge(now time.Time) *policy.GrantFault {
	if p.grant == nil {
		return p.fault
	}
	f := p.grant.Judge(p.release, p.seen, now)
	if f != nil && f.Reason == policy.WrongRelease && p.grant.Release.Name == p.release.Name && p.draft != "" {
		return &policy.GrantFault{Reason: f.Reason, Detail: f.Detail, Hint: p.draft}
	}
	return f
}

// allows is judge as a run asks: a grant that runs out stops it.
func (p *permit) allows(now time.Time) error {
	f := p.judge(now)
	switch {
	case f == nil:
		return nil // not f, which would be an error that holds nil
	case p.name == "":
		return f
	default:
		return fmt.Errorf("the grant %s is rejected (%s): %w", p.name, f.Reason, f)
	}
}

// access is allows, or nil where a job goes without a grant.
func (p *permit) access() func(time.Time) error {
	if p == nil {
		return nil
	}
	return p.allows
}

// useGrant decides whether a run may go on, before anything is asked or written. The permit is nil if it needs none.
func (c *command) useGrant(ctx context.Context, config pipeline.Config, f *releaseFlags) (*permit, error) {
	if f.rehearsal {
		return nil, nil // made-up posts need no permission
	}
	p, err := c.findGrant(ctx, config.Release, config.Policy.Access.GrantRequired, f.grant)
	if err != nil || p == nil {
		return nil, err
	}
	// A grant that is given must hold even where the policy does not require one.
	if err := p.allows(c.now()); err != nil {
		c.rememberList(ctx, p)
		return nil, err
	}
	named := p.grant.Approval.Reference
	if f.approval != "" && f.approval != named {
		return nil, usageError("--approval %s is not the approval that the grant names, %s: leave the flag out",
			strconv.QuoteToGraphic(f.approval), named)
	}
	f.approval = named
	return p, nil
}

// findGrant reads the grant that file names, or else the release folder's. Without either the permit is nil, unless one
// is required. Errors are about files that cannot be read, and the permit has what could be read by then; a grant that
// does not count is a fault of the permit.
func (c *command) findGrant(ctx context.Context, rel *manifest.Release, required bool, file string) (*permit, error) {
	p := &permit{name: file, release: policy.GrantedRelease{Name: rel.Name, Digest: rel.Digest}}
	if isDraft(rel) {
		p.draft = "name the folder that publish made of this draft:\n" +
			c.called.CommandPath() + " FOLDER" + repeated("--grant", file)
	}
	if file == "" && rel.Dir != "" {
		p.name = filepath.Join(rel.Dir, manifest.GrantName)
		if _, err := os.Lstat(p.name); errors.Is(err, fs.ErrNotExist) {
			p.name = ""
		}
	}
	switch {
	case p.name == "" && required && len(rel.Signers) == 0:
		p.fault = &policy.GrantFault{Reason: "no_signer",
			Detail: "this release names no signer, so no grant can be valid yet",
			Hint:   "its maintainers add a [[signer]] to release.toml, and then sign a grant for you: ask them"}
		return p, nil
	case p.name == "" && required:
		p.fault = &policy.GrantFault{Reason: "no_grant",
			Detail: fmt.Sprintf("no grant was given for the release %q with the digest %s", rel.Name, rel.Digest),
			Hint:   noGrantHint}
		return p, nil
	case p.name == "":
		return nil, nil
	}
	signers, err := policy.ParseSigners(rel.Signers)
	if err != nil {
		return p, usageError("%s: %w", filepath.Join(rel.Dir, manifest.SettingsName), err)
	}
	grant, err := readSigned(p.name)
	if err != nil {
		return p, usageError("%w", err)
	}
	if alone, fault := policy.OpenGrant(*grant, nil, signers); fault == nil {
		p.genuine = &alone.Grant
	}
	var revocations *policy.SignedFile
	if rel.RevocationsPath != "" {
		revocations, err = readSigned(rel.RevocationsPath)
		if err != nil {
			return p, usageError("read the release's revocation list: %w", err)
		}
	}
	p.grant, p.fault = policy.OpenGrant(*grant, revocations, signers)
	if p.fault != nil {
		return p, nil
	}
	p.name = p.grant.ID
	p.seen, err = reading(ctx, c, func(ws *workspace.Workspace) (int64,
		error) {
		return state.SeenRevocations(ctx, ws, rel.Name)
	})
	if errors.Is(err, workspace.ErrNoWorkspace) {
		err = nil // nothing was seen yet
	}
	return p, err
}

const noGrantHint = "if you have one, name it with --grant FILE, or put grant.json and grant.json.sig into the " +
	"release folder; else ask the release's maintainers for one"

// readSigned reads a file and the signature beside it, which may be missing.
func readSigned(path string) (*policy.SignedFile, error) {
	body, err := userfile.Read(path)
	if err != nil {
		return nil, err
	}
	signature, err := userfile.Read(path + manifest.SignatureSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &policy.SignedFile{Name: path, Body: body, Signature: signature}, nil
}

// rememberList is remember for a command that goes no further: what revoked its grant must not be forgotten with the
// list.
func (c *command) rememberList(ctx context.Context, p *permit) {
	err := c.inWorkspace(ctx, nil, func(ws *workspace.Workspace) error { return p.remember(ctx, ws, c.now()) })
	switch {
	case err == nil, is[*policy.GrantFault](err), errors.Is(err, workspace.ErrNoWorkspace), ctx.Err() != nil:
	default: // in use, say: the next command has it remembered
		c.log.Warn("the serial of the revocation list was not stored", "error", err)
	}
}

// remember stores the serial of a revocation list that its maintainers signed, whatever it says of the grant, so that
// an older list is refused later.
func (p *permit) remember(ctx context.Context, ws *workspace.Workspace, now time.Time) error {
	if p == nil {
		return nil
	}
	ours, err := belongs(ctx, ws, p.release.Name)
	if err != nil || !ours {
		return err // the run refuses the workspace of another release
	}
	// The serial is read again under the lock: another run may have seen a newer list meanwhile.
	p.seen, err = state.SeenRevocations(ctx, ws, p.release.Name)
	if err != nil {
		return err
	}
	if p.grant == nil {
		return p.allows(now)
	}
	if r := p.grant.Revocations; r != nil && r.Release == p.release.Name && r.Serial > p.seen {
		if err := state.WriteNote(ctx, ws, state.RevocationsNote(r.Serial)); err != nil {
			return err
		}
	}
	return p.allows(now)
}

// belongs reports whether a workspace is the release's, or nobody's yet.
func belongs(ctx context.Context, ws *workspace.Workspace, release string) (bool, error) {
	b, bound, err := ws.Binding(ctx)
	return err == nil && (!bound || b.Release == release), err
}
