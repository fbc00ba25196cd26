package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/curate/annotate"
	"rehydrate/internal/durable"
	"rehydrate/internal/userfile"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// exportFlags are the flags of export.
type exportFlags struct {
	releaseFlags
	out, note, format   string
	digests             bool
	list                bool
	returned, destroyed string
	moved, adopt        string
}

func (c *command) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := c.workspaceCommand("export", f.check, func(cmd *cobra.Command, args []string) error {
		switch {
		case f.digests:
			return c.exportDigests(cmd.Context(), args[0], f)
		case f.list:
			return c.listCopies(cmd.Context())
		case f.returned != "":
			return c.closeCopy(cmd.Context(), f.returned, "returned", f.note)
		case f.destroyed != "":
			return c.closeCopy(cmd.Context(), f.destroyed, "destroyed", f.note)
		case f.adopt != "":
			return c.adoptCopy(cmd.Context(), f.adopt, f.note)
		case f.moved != "":
			return c.moveCopy(cmd.Context(), f.moved, args[0])
		}
		return c.export(cmd.Context(), args[0], f)
	})
	flags := cmd.Flags()
	registerOut(cmd, &f.out, "")
	flags.BoolVar(&f.digests, "digests", false, "")
	flags.StringVar(&f.note, "note", "", "")
	flags.StringVar(&f.format, "format", "parquet", "")
	flags.BoolVar(&f.list, "list", false, "")
	flags.StringVar(&f.returned, "returned", "", "")
	flags.StringVar(&f.destroyed, "destroyed", "", "")
	flags.StringVar(&f.moved, "moved", "", "")
	flags.StringVar(&f.adopt, "adopt", "", "")
	f.releaseFlags.register(cmd)
	return cmd
}

func (f *exportFlags) check(cmd *cobra.Command, args []string) error {
	asked := 0 // one thing at a time, or it is not clear which RELEASE and --note belong to
	for _, is := range []bool{f.out != "", f.list, f.returned != "", f.destroyed != "", f.moved != "", f.adopt != ""} {
		if is {
			asked++
		}
	}
	switch {
	case asked != 1:
		return usageError("%s needs one of --out DIR, --list, --moved OLD, --adopt PATH, --returned PATH and --destroyed PATH",
			cmd.CommandPath())
	case f.out != "" && len(args) != 1:
		return usageError("%s --out needs one RELEASE: a release folder or an annotations file", cmd.CommandPath())
	case f.out == "" && f.digests:
		return usageError("--digests needs a file to write: --out FILE.jsonl")
	case f.moved != "" && len(args) != 1:
		return usageError("--moved needs two paths: rehydrate export --moved OLD NEW")
	case f.moved != "":
		return nil
	case f.out == "" && len(args) > 0:
		return usageError("--list, --adopt, --returned and --destroyed take no RELEASE; leave it out")
	case !slices.Contains(copies.Formats(), f.format):
		return usageError("--format takes %s, not %q", strings.Join(copies.Formats(), ", "), f.format)
	case f.list, f.digests:
		return nil // they register nothing, so they need no note
	}
	if f.note == "" && f.returned+f.destroyed != "" {
		return &problem{code: exitUsage, err: fmt.Errorf("%s needs --note WHO: who told you so", cmd.CommandPath()),
			hint: "the log keeps it, such as --note 'A. Researcher, by mail'"}
	}
	if f.note == "" {
		return usageError("%s needs --note WHO: who has the copy", cmd.CommandPath())
	}
	if err := copies.CheckNote(f.note); err != nil {
		return usageError("--note: %w", err)
	}
	return nil
}

func (c *command) export(ctx context.Context, path string, f exportFlags) error {
	config, err := c.resume(ctx, path, &f.releaseFlags, "")
	if err != nil {
		return err
	}
	grant, err := c.useGrant(ctx, config, &f.releaseFlags)
	if err != nil {
		return err
	}
	return c.usingRows(ctx, grant, func(ws *workspace.Workspace) error {
		report, err := copies.Export(ctx, copies.Config{Release: config.Release, Tombstones: config.Tombstones,
			Policy: config.Policy, Workspace: ws,
			Now: c.now, Access: grant.access(), To: f.out, Note: f.note, Format: f.format})
		if err != nil {
			return exportProblem(err)
		}
		return c.answer("export", report)
	})
}

func exportProblem(err error) error {
	var not *copies.NotExportable
	switch {
	case errors.As(err, &not) && not.Waits:
		return &problem{err: err, code: exitRetry, hint: "settle what is held back first: if it is really gone, " +
			"rehydrate recheck RELEASE --confirm-removals; if not, rehydrate recheck RELEASE again later; " +
			"then run and export again"}
	case errors.As(err, &not):
		return &problem{err: err, code: exitRetry,
			hint: "update the dataset first: rehydrate run RELEASE; then export again"}
	case errors.Is(err, copies.ErrForeign):
		return &userfile.Fault{Err: err, Hint: "name a new folder: --out DIR"}
	case is[annotate.Misfit](err):
		return asUsage(err)
	}
	return err
}

// exportDigests writes the annotations with digests: nothing else of an image leaves the workspace.
func (c *command) exportDigests(ctx context.Context, path string, f exportFlags) error {
	config, err := c.prepare(ctx, path, &f.releaseFlags, "")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(f.out); err == nil { // it could be the release's own annotations
		return usageError("--out %s: the file exists; name a new one", f.out)
	}
	var wrote copies.DigestsWritten
	_, err = reading(ctx, c, func(ws *workspace.Workspace) (any, error) {
		return nil, durable.Write(ctx, f.out, 0o600, func(w io.Writer) (err error) {
			wrote, err = copies.WriteDigests(ctx, copies.Config{Release: config.Release, Tombstones: config.Tombstones,
				Policy: config.Policy, Workspace: ws, Now: c.now}, w)
			return err
		})
	})
	if err != nil {
		return exportProblem(err)
	}
	return c.answer("export-digests", digestsAnswer{f.out, wrote, config.Release.Schema.Many})
}

func (c *command) listCopies(ctx context.Context) error {
	list, err := reading(ctx, c, func(ws *workspace.Workspace) ([]state.CopyReport,
		error) {
		return copies.List(ctx, ws)
	})
	if err != nil {
		return err
	}
	// A script can poll --list: status 3 means that a copy still owes a removal.
	owes := slices.ContainsFunc(list, isOpen)
	away := slices.ContainsFunc(list, func(r state.CopyReport) bool {
		return isOpen(r) && r.Told != state.NotPurged && r.Told != state.NotAsked
	})
	return c.answerHolds("export-list", copiesAnswer{list, away}, !owes, exitRetry)
}

// copyProblem is an error about one registered copy; there says what to do about one that is still there.
func copyProblem(err error, there string) error {
	hint := ""
	switch {
	case errors.Is(err, copies.ErrNoCopy):
		hint = "rehydrate export --list shows the registered copies"
	case errors.Is(err, copies.ErrCopyThere):
		hint = there
	case errors.Is(err, copies.ErrForeign):
		hint = "move it to a folder that is in no other copy and not in the workspace, and name that one"
	case errors.Is(err, copies.ErrNotCopy):
		hint = "name the folder that has the files as they were exported"
	default:
		return err
	}
	return &problem{err: err, code: exitUsage, hint: hint}
}

// moveCopy notes that a copy lies elsewhere now.
func (c *command) moveCopy(ctx context.Context, from, to string) error {
	return c.inWorkspace(ctx, nil, func(ws *workspace.Workspace) error {
		report, err := copies.Move(ctx, ws, from, to, c.now())
		if err != nil {
			return copyProblem(err, "delete one of the two, or make the second copy with rehydrate export")
		}
		return c.answerHolds("export-moved", movedAnswer{from, to, report.Owed}, !isOpen(report), exitRetry)
	})
}

// adoptCopy registers a copy as it lies there.
func (c *command) adoptCopy(ctx context.Context, path, note string) error {
	return c.inWorkspace(ctx, nil, func(ws *workspace.Workspace) error {
		report, err := copies.Adopt(ctx, ws, path, note, c.now())
		switch {
		case errors.Is(err, copies.ErrNoEntry):
			return &problem{err: err, code: exitUsage, hint: "if the workspace came from a backup, rehydrate run first; " +
				"if it is a copy of another one, register it there with -w; else delete it, and export a new one"}
		case errors.Is(err, copies.ErrWaits):
			return &problem{err: err, code: exitUsage, hint: "rehydrate run first: it takes these images back"}
		case errors.Is(err, copies.ErrNotCopy), errors.Is(err, copies.ErrForeign):
			return &problem{err: err, code: exitUsage,
				hint: "name the folder of a copy that a command of rehydrate made, with nothing else in it"}
		case err != nil:
			return err
		}
		return c.answerHolds("export-adopted", report, !isOpen(report), exitRetry)
	})
}

func (c *command) closeCopy(ctx context.Context, path, how, note string) error {
	return c.inWorkspace(ctx, nil, func(ws *workspace.Workspace) error {
		err := copies.Close(ctx, ws, path, how, note, c.now())
		if err != nil {
			return copyProblem(err, "delete it first; or keep it, and rehydrate purge removes posts from it")
		}
		return c.answer("export-noted", closedAnswer{path, how})
	})
}

// What export prints besides a copy's report.
type (
	digestsAnswer struct {
		Written string `json:"written"`
		copies.DigestsWritten
		Many bool `json:"-"` // an image may have several rows, which init does not put together
	}
	copiesAnswer struct {
		Copies []state.CopyReport `json:"copies"`
		Away   bool               `json:"-"` // one is open for more than a purge: it may lie elsewhere
	}
	movedAnswer struct {
		From string   `json:"from"`
		To   string   `json:"to"`
		Owed []string `json:"owed"` // rows in it that must go
	}
	closedAnswer struct {
		Path  string `json:"path"`
		State string `json:"state"`
	}
)
