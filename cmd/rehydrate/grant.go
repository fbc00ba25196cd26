package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

func (c *command) grantCommand() *cobra.Command {
	return newGroup("grant", c.grantShowCommand(), c.grantCheckCommand())
}

func (c *command) grantShowCommand() *cobra.Command {
	return newCommand("grant-show", exactArgs(1, "one FILE: a grant.json"), c.grantShow)
}

func (c *command) grantShow(_ *cobra.Command, args []string) error {
	path := args[0]
	b, err := readRegular(path)
	if err != nil {
		return usageError("read the grant: %w", err)
	}
	g, err := policy.ParseGrant(b, path)
	if err != nil {
		return &problem{err: err, code: exitRejected}
	}
	fault := g.Current(c.now())
	report := grantReport{Grant: &g, grantVerdict: verdictOf(fault)}
	return c.show(report, func() {
		c.print("grant-show", struct {
			grantReport
			File string
		}{report, path})
	})
}

// A grantReport is what grant show and grant check print with --json.
type grantReport struct {
	grantVerdict
	Release     *policy.GrantedRelease `json:"release,omitempty"`  // the one that was checked
	Required    *bool                  `json:"required,omitempty"` // by its policy
	Grant       *policy.Grant          `json:"grant,omitempty"`
	Signer      *policy.Signer         `json:"signer,omitempty"`
	Revocations *policy.Revocations    `json:"revocations,omitempty"`
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
	cmd := newCommand("grant-check", exactArgs(1, "one RELEASE: a release folder"), func(cmd *cobra.Command, args []string) error {
		return c.grantCheck(cmd.Context(), args[0], file)
	})
	cmd.Flags().StringVar(&file, "grant", "", grantFlagHelp)
	return cmd
}

func (c *command) grantCheck(ctx context.Context, path, file string) error {
	rel, err := manifest.Open(path, manifest.Options{OpenParquet: scan.OpenManifest})
	if err != nil {
		return asUsage(err)
	}
	pol, err := readPolicy(rel.PolicyPath)
	if err != nil {
		return err
	}
	report := grantReport{Release: &policy.GrantedRelease{Name: rel.Name, Digest: rel.Digest}, Required: &pol.Access.GrantRequired}
	p, err := c.findGrant(ctx, rel, file)
	fault := asGrantFault(err)
	if err != nil && fault == nil {
		return err
	}
	if p != nil {
		report.Grant, report.Signer, report.Revocations = &p.grant.Grant, &p.grant.Signer, p.grant.Revocations
		fault = p.judge(c.now())
	} else if err == nil {
		fault = noGrant(rel)
	}
	report.grantVerdict = verdictOf(fault)
	err = c.show(report, func() {
		c.print("grant-check", struct {
			grantReport
			NotNeeded bool
		}{report, !pol.Access.GrantRequired})
	})
	if err != nil {
		return err
	}
	if fault != nil {
		return exitCode(exitRejected)
	}
	return nil
}

// A permit is a grant, read and its signature verified, with what it is judged by.
type permit struct {
	grant *policy.SignedGrant
	scope policy.GrantScope
}

func (p *permit) judge(now time.Time) *policy.GrantFault { return p.grant.Judge(p.scope, now) }

// allows is judge as a run asks: a grant that runs out stops it.
func (p *permit) allows(now time.Time) error {
	if f := p.judge(now); f != nil {
		return fmt.Errorf("the grant %s is rejected (%s): %w", p.grant.ID, f.Reason, f)
	}
	return nil
}

// access is allows, or nil where the run goes without a grant.
func (p *permit) access() func(time.Time) error {
	if p == nil {
		return nil
	}
	return p.allows
}

// useGrant decides whether a run may go on, before anything is asked or written. It returns
// nil when no grant is needed and none is given.
func (c *command) useGrant(ctx context.Context, config pipeline.Config, f *releaseFlags) (*permit, error) {
	if f.rehearsal {
		return nil, nil // made-up posts need no permission
	}
	p, err := c.findGrant(ctx, config.Release, f.grant)
	switch {
	case err != nil:
		return nil, err
	case p == nil && config.Policy.Access.GrantRequired:
		return nil, noGrant(config.Release)
	case p == nil:
		return nil, nil
	}
	// A grant that is given must hold even where the policy does not require one.
	if err := p.allows(c.now()); err != nil {
		return nil, err
	}
	named := p.grant.Approval.Reference
	if f.approval != "" && f.approval != named {
		return nil, usageError("--approval %s is not the approval that the grant names, %s: leave the flag out", strconv.QuoteToGraphic(f.approval), named)
	}
	f.approval = named
	return p, nil
}

func noGrant(rel *manifest.Release) *policy.GrantFault {
	return &policy.GrantFault{Reason: policy.GrantMissing,
		Detail: fmt.Sprintf("no grant was given for the release %q with the digest %s", rel.Name, rel.Digest),
		Hint: "ask its maintainers for a grant, then put grant.json and grant.json.sig into the release folder, " +
			"or name it with --grant FILE"}
}

// findGrant reads the grant that file names, or else the release folder's; nil without one.
func (c *command) findGrant(ctx context.Context, rel *manifest.Release, file string) (*permit, error) {
	if file == "" {
		if rel.Dir == "" {
			return nil, nil
		}
		file = filepath.Join(rel.Dir, manifest.GrantName)
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	signers, err := policy.ParseSigners(rel.Signers)
	if err != nil {
		return nil, usageError("%s: %w", filepath.Join(rel.Dir, manifest.SettingsName), err)
	}
	grant, err := readSigned(file)
	if err != nil {
		return nil, usageError("read the grant: %w", err)
	}
	var revocations *policy.SignedFile
	if rel.RevocationsPath != "" {
		revocations, err = readSigned(rel.RevocationsPath)
		if err != nil {
			return nil, usageError("read the release's revocation list: %w", err)
		}
	}
	signed, fault := policy.OpenGrant(*grant, revocations, signers)
	if fault != nil {
		return nil, fmt.Errorf("the grant %s is rejected (%s): %w", file, fault.Reason, fault)
	}
	p := &permit{grant: signed, scope: policy.GrantScope{Revocations: signed.Revocations,
		Release: policy.GrantedRelease{Name: rel.Name, Digest: rel.Digest}}}
	p.scope.SeenSerial, err = c.seenSerial(ctx, rel.Name)
	return p, err
}

// asGrantFault finds the fault in an error of findGrant.
func asGrantFault(err error) *policy.GrantFault {
	var f *policy.GrantFault
	errors.As(err, &f)
	return f
}

// readSigned reads a file and the signature beside it, which may be missing.
func readSigned(path string) (*policy.SignedFile, error) {
	body, err := readRegular(path)
	if err != nil {
		return nil, err
	}
	signature, err := readRegular(path + manifest.SignatureSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &policy.SignedFile{Name: path, Body: body, Signature: signature}, nil
}

// readRegular reads the first 128 KiB of a regular file.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for ever
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// More than any grant, key or signature may have: a wrong, large file costs little.
	return io.ReadAll(io.LimitReader(f, 128<<10))
}

// seenSerial is the serial of the last revocation list that a run of the release saw in this
// workspace, 0 where there is none.
func (c *command) seenSerial(ctx context.Context, release string) (serial int64, err error) {
	serial, err = reading(ctx, c, func(ws *workspace.Workspace) (int64, error) { return state.SeenRevocations(ctx, ws, release) })
	if errors.Is(err, workspace.ErrNoWorkspace) {
		return 0, nil
	}
	return serial, err
}

// remember stores the serial of the run's revocation list, so that an older list is refused later.
func (p *permit) remember(ctx context.Context, ws *workspace.Workspace, now time.Time) error {
	if p == nil {
		return nil
	}
	b, bound, err := ws.Binding(ctx)
	if err != nil || bound && b.Release != p.scope.Release.Name {
		return err // the run refuses the workspace of another release
	}
	// The serial is read again under the lock: another run may have seen a newer list meanwhile.
	p.scope.SeenSerial, err = state.SeenRevocations(ctx, ws, p.scope.Release.Name)
	if err != nil {
		return err
	}
	if err := p.allows(now); err != nil {
		return err
	}
	if r := p.scope.Revocations; r != nil && r.Serial > p.scope.SeenSerial {
		return state.WriteNote(ctx, ws, state.RevocationsNote(r.Serial))
	}
	return nil
}
