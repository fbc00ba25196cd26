package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/pipeline"
	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/workspace"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	releaseFlags
	redditFlags
	live       bool
	offline    bool
	since      string
	checkpoint string
	html       string
	noRecord   bool
	columns    audit.ScanColumns
}

func (c *command) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit RELEASE [PARQUET...]",
		Short: "Look for what must be gone: in a workspace, its copies and any Parquet",
		Long: `Ask Reddit about every post of a release, under your own credentials and approval, and look
for rows, images and texts of posts that must be gone: in the workspace (-w), where there is one,
in the copies that it knows of, and in the files that you name. A file can come from anyone: a
Parquet needs no more than a column of post ids; folders and archives (tar, zip, gzip) are
scanned as well. Images are recognised by their name, their digest, and by their perceptual hash
where it is still known.

With --offline it opens no socket, and judges from the workspace, its audit log and the
tombstones. A workspace may be read-only, and audit needs neither Tesseract nor a grant.

The verdict is PASS, FAIL (erased content was found, or the audit log is inconsistent) or
INCOMPLETE (nothing was found, but not everything could be asked or read). Keep the checkpoint of the
log (--checkpoint FILE), and give it to the next audit (--since FILE): a log that was rewritten in
between contradicts it.

Contacts www.reddit.com and oauth.reddit.com, no image host. Writes the files that --html and
--checkpoint name, and one record into the log of a workspace that is writable and free.` +
			exitHelp(exitDone, exitFailed, exitUsage, exitFound, exitRejected, exitIncomplete, exitInterrupted),
		Example: `  rehydrate audit figsim/ -w figsim-rehydrated --approval RFR-2026-0123 --html audit.html
  rehydrate audit figsim/ -w figsim-rehydrated --offline --since checkpoint.old --checkpoint checkpoint.new
  rehydrate audit figsim/ somebodys.parquet --id-column post --image-column picture --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("%s takes one RELEASE, and the files to audit besides", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.live && f.offline {
				return usageError("--live and --offline exclude each other")
			}
			return c.audit(cmd.Context(), args[0], args[1:], f, cmd.Flags().Changed("workspace"))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.live, "live", false, "ask Reddit about every post (the default)")
	flags.BoolVar(&f.offline, "offline", false, "send no request: judge from the workspace, its log and the tombstones")
	flags.StringVar(&f.since, "since", "", "prove that the log goes on from the checkpoint in this `file`, which you kept")
	flags.StringVar(&f.checkpoint, "checkpoint", "", "write the log's checkpoint, for you to keep, to this `file`")
	flags.StringVar(&f.html, "html", "", "write the report as one page, without scripts, to this `file`")
	flags.BoolVar(&f.noRecord, "no-record", false, "leave no record of this audit in the workspace's log")
	flags.StringVar(&f.columns.ID, "id-column", "", "the `column` of the post ids in the named files (default: id, post_id...)")
	flags.StringVar(&f.columns.Image, "image-column", "", "the `column` of the images' bytes (default: image)")
	flags.StringVar(&f.columns.SHA256, "sha256-column", "", "the `column` of the images' digests (default: sha256)")
	flags.StringVar(&f.columns.PHash, "phash-column", "", "the `column` of the perceptual hashes (default: phash)")
	flags.StringVar(&f.columns.Text, "text-column", "", "the `column` of the images' text (default: ocr_text, text)")
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

func (c *command) audit(ctx context.Context, path string, files []string, f auditFlags, named bool) error {
	opened, err := openRelease(ctx, path)
	if err != nil {
		return err
	}
	config := audit.Config{Release: opened.Release, Manifest: opened.summary, Tombstones: opened.tombstones, Files: files,
		Columns: f.columns, Now: c.now, Stop: c.stop, Log: c.log, Who: audit.Auditor{Tool: version(), Mode: "live"}}
	config.Policy, err = f.readPolicy(opened.Release)
	if err != nil {
		return err
	}
	config.Since, err = readCheckpoint(f.since)
	if err != nil {
		return err
	}
	if err := c.auditGrant(ctx, &config, &f); err != nil {
		return err
	}
	progress := pipeline.NewProgress(c.observe)
	config.OnWait = progress.OnWait
	if f.offline {
		config.Who.Mode = "offline"
	} else {
		config.Reddit, err = f.client(c, f.approval, config.Policy, c.getenv, progress)
		if err != nil {
			return err
		}
	}
	report, err := c.auditWorkspace(ctx, config, f, named)
	if err != nil {
		return err
	}
	return c.concludeAudit(ctx, report, f)
}

// readCheckpoint reads a checkpoint that an auditor kept.
func readCheckpoint(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	b, err := readRegular(name)
	if err != nil {
		return nil, usageError("--since: %w", err)
	}
	return b, nil
}

func (c *command) auditGrant(ctx context.Context, config *audit.Config, f *auditFlags) error {
	p, err := c.findGrant(ctx, config.Release, f.grant)
	// An audit does not need a grant: a faulty one goes into the report and stops nothing.
	fault := asGrantFault(err)
	if err != nil && fault == nil {
		return err
	}
	switch {
	case p != nil:
		config.Who.Grant, config.Who.Holder, config.Who.Fingerprint = p.grant.ID, p.grant.Holder.Organization, p.grant.Signer.Fingerprint
		if f.approval == "" {
			f.approval = p.grant.Approval.Reference
		}
		config.Access = p.judge(c.now())
	case fault != nil:
		config.Access = fault
	case config.Policy.Access.GrantRequired:
		config.Access = noGrant(config.Release)
	}
	config.Who.Approval = f.approval
	return nil
}

func (c *command) auditWorkspace(ctx context.Context, config audit.Config, f auditFlags, named bool) (audit.Report, error) {
	ws, err := workspace.Open(ctx, c.workspace, workspace.Options{ReadOnly: true})
	switch {
	case err == nil:
		defer ws.Close()
		config.Workspace = ws
	case ctx.Err() != nil:
		return audit.Report{}, ctx.Err()
	case errors.Is(err, workspace.ErrNoWorkspace) && (named || len(config.Files) == 0):
		return audit.Report{}, err
	case !errors.Is(err, workspace.ErrNoWorkspace):
		// The named files can still be audited; the report then says what was not read.
		config.Missing = err.Error()
	}
	report, err := audit.Audit(ctx, config)
	if err != nil || ws == nil {
		return report, err
	}
	return report, c.writeCheckpoint(ctx, ws, f.checkpoint)
}

func (c *command) writeCheckpoint(ctx context.Context, ws *workspace.Workspace, name string) error {
	if name == "" {
		return nil
	}
	l, err := ws.LogReader(ctx)
	if err != nil {
		return &problem{err: fmt.Errorf("write the checkpoint: %w", err), code: exitFailed, hint: "the report says what is wrong with the log; leave --checkpoint out"}
	}
	if err := writeOwn(ctx, name, l.Checkpoint().Signed); err != nil {
		return fmt.Errorf("write the checkpoint: %w", err)
	}
	return nil
}

// writeOwn makes a file of the auditor's hold data, and survive a power cut.
func writeOwn(ctx context.Context, name string, data []byte) error {
	return durable.Write(ctx, name, 0o600, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// concludeAudit prints the report, records it and returns the status of its verdict.
func (c *command) concludeAudit(ctx context.Context, r audit.Report, f auditFlags) error {
	c.console.Done()
	// The digest is of the exact bytes that --json prints, so an auditor can compare a kept report with the log.
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	sum := sha256.Sum256(body.Bytes())
	recorded := c.recordAudit(ctx, r, hex.EncodeToString(sum[:]), f.noRecord)
	if f.html != "" {
		var page bytes.Buffer
		if err := r.WritePage(&page); err != nil {
			return err
		}
		if err := writeOwn(ctx, f.html, page.Bytes()); err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
	}
	var err error
	if c.json {
		_, err = body.WriteTo(c.stdout)
	} else {
		err = c.printAudit(r)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "rehydrate: report sha256 %x; %s\n", sum, recorded)
	switch r.Verdict {
	case audit.Fail:
		return exitCode(exitFound)
	case audit.Incomplete:
		return exitCode(exitIncomplete)
	}
	return nil
}

// recordAudit notes the audit in the workspace's log and returns a sentence on whether it could.
func (c *command) recordAudit(ctx context.Context, r audit.Report, digest string, no bool) string {
	switch {
	case r.Scope.Workspace == "":
		return "there is no workspace to record it in"
	case no:
		return "not recorded, as was asked"
	case r.Log.Present && !r.Log.Consistent:
		return "not recorded: nothing is added to an inconsistent log"
	}
	// A workspace that is in use or read-only cannot take the record: the verdict stands without it.
	ws, err := workspace.Open(ctx, r.Scope.Workspace, workspace.Options{})
	if err == nil {
		err = errors.Join(ws.Note(ctx, r.Recorded(digest)), ws.Close())
	}
	if err != nil {
		return "not recorded in the log: " + err.Error()
	}
	return "recorded in the log"
}

// fewFindings is how many findings and gaps are printed without -v.
const fewFindings = 40

// printAudit prints the report for people.
func (c *command) printAudit(r audit.Report) error {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n\n", r.Verdict, r.Meaning())
	for _, f := range r.Facts() {
		fmt.Fprintf(w, "%s\t%s\n", f.Name, oneTerminalLine(f.Value))
	}
	for i, f := range r.Findings {
		if i == 0 {
			fmt.Fprintf(w, "\nfindings\n")
		}
		if i == fewFindings && !c.verbose {
			fmt.Fprintf(w, "  and %d more: -v or --json lists them all\n", len(r.Findings)-i)
			break
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", f.Kind, f.ID, oneTerminalLine(f.Where), oneTerminalLine(f.What))
	}
	for i, g := range r.Gaps {
		if i == 0 {
			fmt.Fprintf(w, "\nnot judged\n")
		}
		if i == fewFindings && !c.verbose {
			fmt.Fprintf(w, "  and %d more: -v or --json lists them all\n", len(r.Gaps)-i)
			break
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", g.ID, oneTerminalLine(g.Where), oneTerminalLine(g.What))
	}
	for i, o := range r.Obligations {
		if i == 0 {
			fmt.Fprintf(w, "\nopen obligations\n")
		}
		due := ""
		if o.Due != nil {
			due = "until " + o.Due.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", oneTerminalLine(o.Where), oneTerminalLine(o.What), due)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "\nnote\t%s\n", oneTerminalLine(n))
	}
	return w.Flush()
}
