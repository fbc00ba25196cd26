package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/endpoint"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
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
	statement  string
	sign       string
	check      string
	log        string
	stamp      stampFlags
	columns    audit.ScanColumns
}

func (c *command) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit RELEASE [FILE...]",
		Short: "Look for what must be gone: in a workspace, its copies and any file",
		Long: `Ask Reddit about every post of a release, under your own credentials and approval, and look
for rows, images and texts of posts that must be gone: in the workspace (-w), where there is one,
in the copies that it knows of, and in the files that you name, whoever made them: folders, archives
(tar, zip, gzip, zstd, bzip2), Parquet, SQLite, CSV, JSON, PDF and Office files, texts, images.

The report says first what it can recognise with what you have, and what to ask the maintainer for:
with the workspace everything that is known; of a found copy, with nothing but a release that
publishes digests (sha256, sha256_stripped, sha256_pixels, phash), ids and images; with another
release ids alone, and images and texts of unknown origin are then INCOMPLETE.

With --offline it opens no socket but that of --timestamp, and judges from the workspace, its audit log and the
tombstones. A workspace may be read-only, and audit needs neither Tesseract nor a grant.

The verdict is PASS, FAIL (erased content was found, or the audit log is inconsistent) or
INCOMPLETE (nothing was found, but not everything could be asked, read or recognised). Keep the
checkpoint of the log (--checkpoint FILE), and give it to the next audit (--since FILE): a log that was
rewritten in between contradicts it. --log DIR checks a log by itself: a copy of a workspace's audit/.

--statement FILE writes the report as JSON, for you to hand on, and --sign KEY signs it into FILE.sig:
ssh-keygen -Y verify -n rehydrate-audit checks that, and audit --check FILE does, with -w or --log
also whether the log records it. --timestamp URL asks a time-stamping authority (RFC 3161), which sees its
SHA-256 alone, to say when it was there, into FILE.tsr: openssl ts -verify checks that, and --check.

Contacts www.reddit.com and oauth.reddit.com, and the URL of --timestamp, no image host. Writes the files that --html,
--statement and --checkpoint name, and one record into the log of a workspace that is writable and free.` +
			exitHelp(exitDone, exitFailed, exitUsage, exitFound, exitRejected, exitIncomplete, exitInterrupted),
		Example: `  rehydrate audit figsim/ -w figsim-rehydrated --approval RFR-2026-0123 --html audit.html
  rehydrate audit figsim/ -w figsim-rehydrated --offline --since checkpoint.old --checkpoint checkpoint.new
  rehydrate audit figsim/ found.zip --offline              # a found copy; figsim/ publishes digests
  rehydrate audit figsim/ found.parquet --id-column post --approval RFR-2026-0123
  rehydrate audit figsim/ -w figsim-rehydrated --statement audit.json --sign ~/.ssh/id_ed25519
  rehydrate audit --check audit.json --log handed-over/audit`,
		Args: func(cmd *cobra.Command, args []string) error {
			if alone := f.check != "" || f.log != ""; alone && len(args) > 0 {
				return usageError("--check and --log take no RELEASE")
			} else if len(args) == 0 && !alone {
				return usageError("%s takes one RELEASE, and the files to audit besides", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.live && f.offline:
				return usageError("--live and --offline exclude each other")
			case f.sign != "" && f.statement == "":
				return usageError("--sign wants --statement FILE, which it signs")
			case f.stamp.url != "" && f.statement == "":
				return usageError("--timestamp wants --statement FILE, which it stamps")
			case f.check != "":
				return c.checkStatement(cmd.Context(), f, cmd.Flags().Changed("workspace"))
			case f.log != "":
				return c.checkLog(cmd.Context(), f)
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
	flags.StringVar(&f.statement, "statement", "", "write the report as JSON, for you to hand on, to this `file`")
	flags.StringVar(&f.sign, "sign", "", "sign the statement with this SSH private `key`, into its name with .sig")
	flags.StringVar(&f.stamp.url, "timestamp", "", "have the statement time-stamped by the RFC 3161 authority at this `URL`, into its name with .tsr")
	flags.StringVar(&f.stamp.ca, "timestamp-ca", "", "trust time stamps of the authorities in this PEM `file` instead of the system's")
	flags.StringVar(&f.check, "check", "", "check a `statement` and its signature")
	flags.StringVar(&f.log, "log", "", "check the log in this `folder`, a copy of audit/, by itself")
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
		if errors.Is(err, reddit.ErrNoApproval) {
			return &problem{err: err, code: exitRejected, hint: "name the approval with --approval, or judge without asking Reddit: --offline"}
		}
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
	if !bytes.Contains(b, []byte("\n\n\u2014 ")) { // what begins a signature of a signed note
		return nil, usageError("--since: %s is not a checkpoint: name a file that --checkpoint wrote", name)
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
	sum := state.SHA256(body.Bytes())
	if err := c.writeStatement(ctx, body.Bytes(), f); err != nil {
		return err
	}
	unstamped := c.stamp(ctx, f.statement, body.Bytes(), f.stamp)
	recorded := c.recordAudit(ctx, r, sum, f.noRecord)
	if f.html != "" {
		var page bytes.Buffer
		if err := r.WritePage(&page, sum); err != nil {
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
		err = c.printAudit(r, sum)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "rehydrate: report sha256 %s; %s\n", sum, recorded)
	if unstamped != nil {
		fmt.Fprintf(c.stderr, "rehydrate: %s\n", oneTerminalLine(unstamped.Error()))
	}
	switch {
	case r.Verdict == audit.Fail:
		return exitCode(exitFound)
	case r.Verdict == audit.Incomplete:
		return exitCode(exitIncomplete)
	case unstamped != nil:
		return exitCode(exitFailed)
	}
	return nil
}

// writeStatement writes the report as a statement, and signs it.
func (c *command) writeStatement(ctx context.Context, body []byte, f auditFlags) error {
	if f.statement == "" {
		return nil
	}
	var signature []byte
	if f.sign != "" {
		key, err := readRegular(f.sign)
		if err == nil {
			signature, err = policy.SignStatement(key, body)
		}
		if err != nil {
			return usageError("--sign: %w", err)
		}
	}
	if err := writeOwn(ctx, f.statement, body); err != nil {
		return fmt.Errorf("write the statement: %w", err)
	}
	if signature == nil {
		return nil
	}
	if err := writeOwn(ctx, f.statement+manifest.SignatureSuffix, signature); err != nil {
		return fmt.Errorf("write the signature: %w", err)
	}
	return nil
}

// A statementCheck says what holds of a statement that was handed on.
type statementCheck struct {
	Statement string          `json:"statement"`
	SHA256    string          `json:"sha256"`
	Verdict   audit.Verdict   `json:"verdict"`
	Time      time.Time       `json:"time"`
	Key       string          `json:"key_fingerprint"` // that signed it; empty without a signature
	Stamp     *endpoint.Stamp `json:"time_stamp,omitempty"`
	Recorded  *bool           `json:"recorded,omitempty"`
	Holds     bool            `json:"holds"`
	What      string          `json:"what"` // what does not hold
}

// checkStatement checks a statement, its signature, and that a log records it.
func (c *command) checkStatement(ctx context.Context, f auditFlags, named bool) error {
	body, err := readRegular(f.check)
	if err != nil {
		return usageError("--check: %w", err)
	}
	var r audit.Report
	if err := json.Unmarshal(body, &r); err != nil || r.Format != audit.StatementFormat {
		return usageError("--check: %s is not a statement of the format %s", f.check, audit.StatementFormat)
	}
	s := statementCheck{Statement: f.check, SHA256: state.SHA256(body), Verdict: r.Verdict, Time: r.Time, Holds: true}
	doubt := func(format string, args ...any) {
		if s.Holds {
			s.Holds, s.What = false, fmt.Sprintf(format, args...)
		}
	}
	signature, err := readRegular(f.check + manifest.SignatureSuffix)
	if err == nil {
		s.Key, err = policy.CheckStatement(signature, body)
	}
	if err != nil {
		doubt("its signature: %v", err)
	}
	s.Stamp, err = checkStamp(f.check, body, f.stamp)
	if err != nil {
		doubt("its time stamp: %v", err)
	}
	folder := f.log
	if folder == "" && named {
		folder = filepath.Join(c.workspace, "audit")
	}
	if folder != "" {
		log, err := audit.CheckLog(ctx, folder, nil)
		if err != nil {
			return err
		}
		recorded := slices.Contains(log.Statements, s.SHA256)
		s.Recorded = &recorded
		if !log.Log.Consistent {
			doubt("the log: %s", log.What)
		} else if !recorded {
			doubt("the log does not record it")
		}
	}
	if c.json {
		err = c.printJSON(s)
	} else {
		err = c.printStatement(s)
	}
	if err == nil && !s.Holds {
		return exitCode(exitFound)
	}
	return err
}

func (c *command) printStatement(s statementCheck) error {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s of %s\nsha256\t%s\n", oneTerminalLine(s.Statement), s.Verdict, s.Time.Format(time.RFC3339), s.SHA256)
	if s.Key != "" {
		fmt.Fprintf(w, "signed\twith the key %s: check that its owner is the one you expect\n", s.Key)
	}
	if s.Stamp != nil {
		fmt.Fprintf(w, "stamped\t%s by %s\n", s.Stamp.Time.Format(time.RFC3339), oneTerminalLine(s.Stamp.Authority))
	}
	if s.Recorded != nil && *s.Recorded {
		fmt.Fprintf(w, "log\trecords it\n")
	}
	if !s.Holds {
		fmt.Fprintf(w, "wrong\t%s\n", oneTerminalLine(s.What))
	}
	return w.Flush()
}

// checkLog checks a log by itself.
func (c *command) checkLog(ctx context.Context, f auditFlags) error {
	since, err := readCheckpoint(f.since)
	if err != nil {
		return err
	}
	log, err := audit.CheckLog(ctx, f.log, since)
	if errors.Is(err, fs.ErrNotExist) {
		return usageError("--log: %w", err)
	}
	if err != nil {
		return err
	}
	if c.json {
		err = c.printJSON(log)
	} else {
		verdict := "the log holds"
		if !log.Log.Consistent {
			verdict = "the log does not hold: " + log.What
		}
		_, err = fmt.Fprintf(c.stdout, "%s: %s\n%d records, root %s\n%d audits are recorded\n", oneTerminalLine(log.Folder), oneTerminalLine(verdict),
			log.Log.Records, log.Log.Root, len(log.Statements))
	}
	if err == nil && !log.Log.Consistent {
		return exitCode(exitFound)
	}
	return err
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
func (c *command) printAudit(r audit.Report, digest string) error {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n\n", r.Verdict, r.Meaning())
	for _, line := range r.Explains() {
		fmt.Fprintf(w, "%s\n", line)
	}
	fmt.Fprintf(w, "\nstatement\tsha256 %s\n", digest)
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
