package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// The duty to delete outlives the permission to hold: recheck and purge go on without a grant. They bring nothing in,
// and ask Reddit by whatever approval is still in force. Without one they remove what is known, and say that Reddit was
// not asked.

// A duty is by what leave recheck or purge works.
type duty struct {
	required bool    // the policy wants a grant
	permit   *permit // nil where none is given or needed
	unasked  error   // why Reddit cannot be asked; nil where it can
}

// forRemovals is resume for a job that only takes out what is gone. It reads no row of the manifest: a fault there must
// not keep a removal waiting, unless it shows that the folder is not as it was published.
func (c *command) forRemovals(ctx context.Context, path string, f *releaseFlags) (pipeline.Config, error) {
	var opened checkedRelease
	var err error
	opened.Release, err = c.openManifest(ctx, path)
	if err == nil {
		err = opened.readTombstones()
	}
	if err != nil {
		return pipeline.Config{}, err
	}
	config, err := c.configure(ctx, opened, f, "")
	if err != nil {
		return config, err
	}
	f.rehearsal, err = c.isRehearsal(ctx, config.Release)
	config.Rehearsal = f.rehearsal
	return config, err
}

// leaveFor finds the leave by which a job takes out what is gone, and makes the client where Reddit can be asked.
func (c *command) leaveFor(
	ctx context.Context, config *pipeline.Config, f *releaseFlags, r *redditFlags, offline bool,
) (*duty, error) {
	d := &duty{}
	if !f.rehearsal { // made-up posts need no permission
		d.required = config.Policy.Access.GrantRequired
		var err error
		d.permit, err = c.findGrant(ctx, config.Release, d.required, f.grant)
		if is[*userfile.Fault](err) {
			// Whoever takes a grant back may take the file away: the duty stays.
			c.log.Warn("the grant cannot be read, and counts as missing", "error", err)
			d.permit.grant, d.permit.fault = nil, &policy.GrantFault{Reason: "no_grant", Detail: err.Error(),
				Hint: noGrantHint}
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	if offline {
		return d, nil
	}
	if err := c.knowsPosts(ctx, f, r); err != nil {
		return nil, err
	}
	approval, none, err := c.approvalFor(ctx, d, f)
	if err != nil {
		return nil, err
	}
	if approval == "" {
		d.unasked = &problem{code: exitRejected,
			err: fmt.Errorf("no request went to Reddit: no approval is in force: %s", strings.Join(none, "; ")),
			hint: "what was known to be deleted is removed; for the rest name an approval that is in force: " +
				thisCommand + " RELEASE --approval REF"}
		return d, nil
	}
	config.Reddit, err = r.client(c, approval, config.Policy, c.getenv, config.Progress)
	if p, ok := errors.AsType[*problem](err); ok && p.code == exitRejected { // credentials are missing
		d.unasked = &problem{err: fmt.Errorf("no request went to Reddit: %w", p.err), code: p.code,
			hint: "what was known to be deleted is removed; for the rest " +
				cmp.Or(p.hint, "mend that, and run the same command again")}
		config.Reddit, err = nil, nil
	}
	return d, err
}

// knowsPosts refuses to ask Reddit about posts of the emulator: its answers say nothing about them, and would erase
// them all.
func (c *command) knowsPosts(ctx context.Context, f *releaseFlags, r *redditFlags) error {
	switch {
	case len(r.connectTo) > 0:
		return nil
	case f.approval == madeUp:
		return errMadeUp()
	}
	// A workspace that cannot be read is the job's own error.
	last, _ := reading(ctx, c, func(ws *workspace.Workspace) (state.ApprovalNote, error) {
		return state.ReadNote[state.ApprovalNote](ctx, ws)
	})
	if !f.rehearsal && last.Reference != madeUp {
		return nil
	}
	hint := emulatorHint
	if f.rehearsal {
		hint = rehearsedBy + " asks about them again: leave out none of its --delete\n" +
			"rehydrate purge RELEASE --offline asks nobody"
	}
	return &problem{code: exitUsage,
		err:  errors.New("the posts of this workspace are made up, and Reddit does not know them"),
		hint: hint + "\nFor real posts take another workspace: -w DIR"}
}

// approvalFor returns the approval by which Reddit is asked: of a genuine grant, even one that has ended, else of
// --approval, else of the last run. One that has ended counts as none. Without any it says why there is none.
func (c *command) approvalFor(
	ctx context.Context, d *duty, f *releaseFlags,
) (approval string, none []string, err error) {
	if f.rehearsal { // the emulator alone is asked, see knowsPosts
		return madeUp, nil, nil
	}
	now, given := c.now(), strings.TrimSpace(f.approval)
	if d.permit != nil && d.permit.genuine != nil {
		named := d.permit.genuine.Approval
		if !policy.Ended(named.Expires, now) {
			if given != "" && given != named.Reference {
				c.log.Warn("the approval of --approval is not used, for the grant names another one", "grant's",
					named.Reference)
			}
			return named.Reference, nil, nil
		}
		none = append(none, endedOn("the grant's", named.Reference, named.Expires))
	} else if d.permit != nil {
		none = append(none, "there is no genuine grant")
	}
	if given != "" {
		return given, nil, nil
	}
	none = append(none, "--approval names none")
	last, err := reading(ctx, c, func(ws *workspace.Workspace) (state.ApprovalNote, error) {
		return state.ReadNote[state.ApprovalNote](ctx, ws)
	})
	switch {
	case err != nil:
		return "", nil, err
	case last.Reference == "":
		none = append(none, "the workspace keeps none of a run")
	case policy.Ended(last.Ends, now):
		none = append(none, endedOn("the last run's", last.Reference, last.Ends))
	default:
		return last.Reference, nil, nil
	}
	return "", none, nil
}

func endedOn(whose, reference string, at time.Time) string {
	return fmt.Sprintf("%s, %s, ended on %s", whose, strconv.QuoteToGraphic(reference), at.Format(time.DateOnly))
}

// do does a job in the workspace, with the counts that its progress is measured by.
func (d *duty) do(
	ctx context.Context, c *command, config *pipeline.Config, job func(*workspace.Workspace) error,
) (*heldImages, error) {
	var h *heldImages
	err := c.usingRows(ctx, nil, func(ws *workspace.Workspace) error {
		if err := d.permit.remember(ctx, ws, c.now()); err != nil && !is[*policy.GrantFault](err) {
			return err
		}
		b, _, err := ws.Binding(ctx)
		if err == nil {
			config.Manifest.Splits = b.Splits
			config.Manifest.Entries, config.Manifest.Posts, err = ws.Counts(ctx)
		}
		if err != nil {
			return err
		}
		config.Workspace = ws
		err = job(ws)
		c.console.Done()
		if err == nil {
			h, err = d.held(ctx, ws, c.now())
		}
		return err
	})
	return h, err
}

// heldImages are what a workspace holds although the policy wants a grant and none is in force.
type heldImages struct {
	Images int             `json:"images"`
	Reason manifest.Reason `json:"reason"`
	Detail string          `json:"detail"`
	Hint   string          `json:"hint"`
}

// Over reports whether there was a grant that has ended.
func (h *heldImages) Over() bool {
	return h.Reason == "expired" || h.Reason == "approval_expired" || h.Reason == "revoked"
}

// held returns nil where a grant is in force, or none is needed.
func (d *duty) held(ctx context.Context, ws *workspace.Workspace, now time.Time) (*heldImages, error) {
	if !d.required {
		return nil, nil
	}
	fault := d.permit.judge(now)
	if fault == nil {
		return nil, nil
	}
	images, err := state.Held(ctx, ws)
	return &heldImages{images, fault.Reason, fault.Detail, fault.Hint}, err
}

// end is how the job ends that has answered with this status: that Reddit was not asked is said whatever else is.
func (d *duty) end(status error) error {
	if d.unasked != nil && (status == nil || is[exitCode](status)) {
		return d.unasked
	}
	return status
}
