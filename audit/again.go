package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
)

// maxLooks is how often an audit looks while a command changes the workspace.
const maxLooks = 3

// Audit searches for content that must be gone. It changes nothing. Its error is one that keeps it from judging: the
// context's, *reddit.Denied, an unreadable release, workspace.ErrInUse. A file that is only partly readable is open in
// the report. With an error of the context comes what was found up to then, without a verdict.
//
// A command may change the workspace meanwhile: then records and files are of two moments, and what does not fit
// together is nobody's fault. An audit during which the seal changed, or that finds something where there is no seal,
// looks again, and asks Reddit a second time only about posts of which that command was answered something else. What
// two looks in a row did not both find is open.
func Audit(ctx context.Context, c Config) (Report, error) {
	var last *audit // the look before
	moved := false
	for look := 1; ; look++ {
		a, err := lookOnce(ctx, c, last)
		moved = moved || a.moved
		_, denied := errors.AsType[*reddit.Denied](err)
		switch {
		case ctx.Err() != nil, denied, a.steady(), err == nil && !a.accuses():
			return a.report, err
		case err != nil && look >= maxLooks && moved:
			return a.report, fmt.Errorf("%w: a command changed it while it was audited: %w", workspace.ErrInUse, err)
		case err != nil && look >= maxLooks:
			return a.report, err
		case err != nil:
		case last != nil && (look >= maxLooks || !a.moved):
			return a.agreed(last.report), nil
		default:
			last = a
		}
	}
}

// lookOnce audits once, with the answers of Reddit that an earlier look has.
func lookOnce(ctx context.Context, c Config, earlier *audit) (*audit, error) {
	if earlier != nil && c.Reopen != nil {
		ws, err := c.Reopen(ctx)
		if err != nil {
			return &audit{Config: c, moved: true}, err
		}
		defer ws.Close()
		c.Workspace = ws
	}
	a := newAudit(c)
	if earlier != nil {
		a.answers = map[manifest.PostID]liveAnswer{}
		for _, e := range earlier.order {
			if e.live != nil {
				a.answers[e.ID] = liveAnswer{e.live, e.liveAt}
			}
		}
		a.told = maps.Clone(earlier.told)
	}
	a.seal = a.sealNow(ctx)
	err := a.run(ctx)
	a.moved = a.sealNow(ctx) != a.seal
	return a, err
}

// sealNow names the seal that the workspace has now; "" for none.
func (a *audit) sealNow(ctx context.Context) string {
	if a.Workspace == nil {
		return ""
	}
	seal, _, _ := a.Workspace.ReadSeal(ctx) // what cannot be read, the audit says
	return seal.Sum
}

// steady reports whether nothing can have changed the workspace meanwhile.
func (a *audit) steady() bool { return a.Workspace == nil || a.seal != "" && !a.moved }

// accuses reports whether the report says that something is wrong.
func (a *audit) accuses() bool {
	return a.report.Verdict == Fail || slices.ContainsFunc(a.report.Duties, func(d Duty) bool { return d.Late })
}

// agreed is the report with what an earlier one found as well; what only this one found is open.
func (a *audit) agreed(earlier Report) Report {
	const (
		changes = "; a command changed the workspace, and a moment before this was not so"
		wait    = "audit again when no other command is at work on the workspace"
	)
	r := a.report
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		same := func(was Finding) bool { return was.ID == f.ID && was.Where == f.Where }
		if slices.ContainsFunc(earlier.Findings, same) {
			return false
		}
		what := f.What[0]
		if f.ID != "" {
			what = string(f.ID) + ": " + what // not in Open.ID, which is for what looks like a removed post's
		}
		r.Open = append(r.Open, Open{"", f.Where, what + changes, wait})
		return true
	})
	for i, d := range r.Duties {
		same := func(was Duty) bool { return was.Late && was.Kind == d.Kind && was.Where == d.Where }
		if d.Late && !slices.ContainsFunc(earlier.Duties, same) {
			r.Duties[i].Late = false
			r.Open = append(r.Open, Open{"", d.Where, d.What + changes, wait})
		}
	}
	sortOpen(r.Open)
	r.Verdict = verdictOf(r.Findings, r.Open, r.Duties)
	r.Says = r.Headline()
	return r
}
