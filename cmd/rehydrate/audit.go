package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rehydrate/audit"
	"rehydrate/cmd/internal/build"
	"rehydrate/cmd/internal/console"
	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	releaseFlags
	redditFlags
	offline    bool
	since      string
	checkpoint string
	html       string
	noRecord   bool
	details    bool
	force      bool
	statement  string
	sign       string
	key        []byte // of sign
	checked    string // a statement
	log        string
	stamp      stampFlags
	columns    audit.ScanColumns
}

func (c *command) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := c.workspaceCommand("audit", f.check, func(cmd *cobra.Command, args []string) error {
		named := cmd.Flags().Changed("workspace")
		switch {
		case f.checked != "":
			return c.checkStatement(cmd.Context(), f, named)
		case f.log != "":
			return c.checkLog(cmd.Context(), f)
		}
		return c.audit(cmd.Context(), args[0], args[1:], f, named)
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.offline, "offline", false, "")
	flags.StringVar(&f.since, "since", "", "")
	flags.StringVar(&f.checkpoint, "checkpoint", "", "")
	flags.StringVar(&f.html, "html", "", "")
	flags.StringVar(&f.statement, "statement", "", "")
	flags.StringVar(&f.sign, "sign", "", "")
	flags.StringVar(&f.stamp.url, "timestamp", "", "")
	flags.StringVar(&f.stamp.ca, "timestamp-ca", "", "")
	flags.StringVar(&f.checked, "check", "", "")
	flags.StringVar(&f.log, "log", "", "")
	flags.BoolVar(&f.details, "details", false, "")
	flags.BoolVar(&f.noRecord, "no-record", false, "")
	flags.BoolVar(&f.force, "force", false, "")
	flags.StringVar(&f.columns.ID, "id-column", "", "")
	flags.StringVar(&f.columns.PHash, "phash-column", "", "")
	for _, name := range []string{"checkpoint", "html", "statement"} {
		markWritten(cmd, name)
	}
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

// check holds flags and arguments against each other.
func (f *auditFlags) check(cmd *cobra.Command, args []string) error {
	alone := f.checked != "" || f.log != ""
	switch {
	case alone && len(args) > 0:
		return usageError("--check and --log take no RELEASE; leave %s out", strconv.QuoteToGraphic(args[0]))
	case alone && f.checkpoint != "":
		return usageError("--checkpoint writes the checkpoint of a workspace's log, which --check and --log do not read; " +
			"leave it out, or compare with a checkpoint that you kept: --log DIR --since FILE")
	case len(args) < 2 && f.columns != (audit.ScanColumns{}):
		return usageError("--id-column and --phash-column name columns of files: name those behind RELEASE")
	case len(args) == 0 && !alone:
		return usageError("%s needs a RELEASE, and then the files to check, if there are any", cmd.CommandPath())
	case f.sign != "" && f.statement == "":
		return usageError("--sign needs --statement FILE, which it signs")
	case f.stamp.url != "" && f.statement == "":
		return usageError("--timestamp needs --statement FILE, which it stamps")
	case f.force && f.statement == "" && f.html == "":
		return usageError("--force needs a file to write over: --statement FILE or --html FILE")
	}
	named := map[string]string{filepath.Clean(f.checkpoint): "--checkpoint"}
	for _, file := range f.reports() {
		name := filepath.Clean(file.name)
		if other := named[name]; other != "" && file.name != "" {
			return usageError("%s and %s both write %s; give each a file of its own", other, file.flag, file.name)
		}
		named[name] = file.flag
	}
	return nil
}

func (c *command) audit(ctx context.Context, path string, files []string, f auditFlags, named bool) error {
	if err := areThere(files); err != nil {
		return err
	}
	job, err := c.prepare(ctx, path, &f.releaseFlags, "")
	if ctx.Err() != nil {
		return state.ErrInterrupted
	}
	if err != nil {
		return err
	}
	config := audit.Config{Release: job.Release, Tombstones: job.Tombstones, Policy: job.Policy,
		Files: files, Columns: f.columns, Now: c.now, Log: c.log,
		Who: audit.Auditor{Tool: build.Version(), Mode: "live"}}
	config.Since, err = f.earlier()
	if err == nil {
		err = f.readKey()
	}
	if err != nil {
		return err
	}
	if err := c.checkAudited(ctx, len(files) == 0, named, f.checkpoint != ""); err != nil {
		return err
	}
	// An audit does not need a grant: a faulty one goes into the report and stops nothing.
	p, err := c.findGrant(ctx, config.Release, config.Policy.Access.GrantRequired, f.grant)
	if err != nil {
		return err
	}
	if p != nil {
		config.Access = p.judge(c.now())
	}
	if p != nil && p.grant != nil {
		if named := p.grant.Approval; f.approval == "" && policy.Ended(named.Expires, c.now()) {
			if !f.offline {
				c.log.Warn("no approval is in force: Reddit is not asked, and the audit judges by what was known before",
					"approval", endedOn("the grant's", named.Reference, named.Expires))
			}
			f.offline = true
		} else {
			f.approval = cmp.Or(f.approval, named.Reference)
		}
		config.Who.Grant, config.Who.Holder = p.grant.ID, p.grant.Holder.Organization
		config.Who.Fingerprint = p.grant.Signer.Fingerprint
	}
	config.Who.Approval = f.approval
	config.OnWait = job.Progress.OnWait
	if f.offline {
		config.Who.Mode = "offline"
	} else {
		if err := c.mayAudit(ctx, config.Release, &f); err != nil {
			return err
		}
		config.Reddit, err = f.client(c, f.approval, config.Policy, c.getenv, job.Progress)
		if errors.Is(err, reddit.ErrNoApproval) {
			return &problem{err: err, code: exitRejected,
				hint: "name the approval with --approval REF, or judge without asking Reddit: --offline"}
		}
		if err != nil {
			return err
		}
	}
	report, err := c.auditWorkspace(ctx, config)
	if ctx.Err() != nil {
		c.console.Done()
		if !c.json { // what reads that would take it for a report
			_ = c.answer("audit-interrupted", auditAnswer{Report: report}) // the stream remembers its error
		}
		return state.ErrInterrupted
	}
	if err != nil {
		return err
	}
	return c.concludeAudit(ctx, report, job.Manifest.Posts, f)
}

// mayAudit refuses to ask Reddit about made-up posts. A workspace that cannot be read, and one of another release, are
// for the report to name.
func (c *command) mayAudit(ctx context.Context, rel *manifest.Release, f *auditFlags) error {
	f.rehearsal, _ = c.isRehearsal(ctx, rel)
	err := c.knowsPosts(ctx, &f.releaseFlags, &f.redditFlags)
	if p, ok := errors.AsType[*problem](err); ok {
		p.hint = "judge without asking Reddit: rehydrate audit RELEASE --offline\n" + p.hint
	}
	return err
}

// checkAudited fails where an audit needs a workspace and there is none, before anything is asked. One that is damaged
// is a finding.
func (c *command) checkAudited(ctx context.Context, alone, named, checkpoint bool) error {
	_, err := reading(ctx, c, func(ws *workspace.Workspace) (string, error) { return ws.Dir(), nil })
	switch {
	case !errors.Is(err, workspace.ErrNoWorkspace):
		return nil
	case checkpoint && !alone:
		return usageError("--checkpoint writes the checkpoint of the log of a workspace, and there is no workspace %s; "+
			"name it with -w DIR, or leave --checkpoint out", c.workspace)
	case named || alone:
		return err
	}
	return nil
}

// earlier reads the checkpoint that the log must extend: that of --since, else the one that --checkpoint would replace.
// It also fails where a file would be replaced that the new one is not in the place of.
func (f *auditFlags) earlier() ([]byte, error) {
	signature, stamp := f.statement+manifest.SignatureSuffix, f.statement+audit.StampSuffix
	switch {
	case f.statement != "" && f.sign == "" && isThere(signature):
		return nil, usageError("--statement: %s signs the statement that is there; name another file, or write over both "+
			"with --force and --sign KEY", signature)
	case f.statement != "" && f.stamp.url == "" && isThere(stamp):
		return nil, usageError("--statement: %s stamps the statement that is there; name another file, or write over both "+
			"with --force and --timestamp URL", stamp)
	}
	for _, file := range f.reports() {
		if err := newFile(file.flag, file.name, f.force); err != nil {
			return nil, err
		}
	}
	since, err := readCheckpoint("--since", f.since)
	if err != nil || f.checkpoint == "" || !isThere(f.checkpoint) {
		return since, err
	}
	replaced, err := readCheckpoint("--checkpoint", f.checkpoint)
	if since != nil {
		return since, err
	}
	return replaced, err
}

// readKey reads the key of --sign, and tries it: Reddit is asked for hours, perhaps, before there is something to sign.
func (f *auditFlags) readKey() (err error) {
	if f.sign == "" {
		return nil
	}
	f.key, err = userfile.Read(f.sign)
	if err == nil {
		_, err = policy.Sign(f.key, policy.AuditNamespace, strings.NewReader(""))
	}
	if err != nil {
		return usageError("--sign: %w", err)
	}
	return nil
}

// A reportFile is one that an audit writes beside the checkpoint, which is replaced by a rule of its own.
type reportFile struct{ flag, name string }

// reports are the files that the audit writes: each may be the only proof of what an earlier one found.
func (f *auditFlags) reports() []reportFile {
	files := []reportFile{{"--html", f.html}, {"--statement", f.statement}}
	if f.sign != "" {
		files = append(files, reportFile{"--statement", f.statement + manifest.SignatureSuffix})
	}
	if f.stamp.url != "" {
		files = append(files, reportFile{"--statement", f.statement + audit.StampSuffix})
	}
	return files
}

// isThere reports whether there is something with that name.
func isThere(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// readCheckpoint reads a checkpoint that an auditor kept.
func readCheckpoint(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	b, err := userfile.Read(name)
	if err != nil {
		return nil, usageError("%s: %w", flag, err)
	}
	if !bytes.Contains(b, []byte("\n\n\u2014 ")) { // what begins a signature of a signed note
		return nil, usageError("%s: %s is not a checkpoint; name a file that --checkpoint wrote", flag, name)
	}
	return b, nil
}

func (c *command) auditWorkspace(ctx context.Context, config audit.Config) (audit.Report, error) {
	open := func(ctx context.Context) (*workspace.Workspace, error) {
		return workspace.Open(ctx, c.workspace, workspace.Options{ReadOnly: true})
	}
	ws, err := open(ctx)
	switch {
	case err == nil:
		defer ws.Close()
		c.noteKind(ctx, ws)
		config.Workspace, config.Reopen = ws, open
	case ctx.Err() != nil:
		return audit.Report{}, ctx.Err()
	case !errors.Is(err, workspace.ErrNoWorkspace):
		// The named files can still be audited; the report then says what was not read.
		config.Missing = err.Error()
	}
	return audit.Audit(ctx, config)
}

// keepCheckpoint writes the checkpoint of the log, where one is asked for: after the audit's own record, so that it
// contradicts a workspace that is put back to before the audit. One that the log contradicts stays: it is the proof.
func (c *command) keepCheckpoint(ctx context.Context, r audit.Report, f auditFlags) error {
	if f.checkpoint == "" {
		return nil
	}
	if r.Scope.Workspace == "" {
		return errors.New("write the checkpoint: the workspace could not be opened, as the report says")
	}
	if r.Log.Present && !r.Log.Consistent {
		return errors.New("write the checkpoint: the log is not consistent, as the report says")
	}
	replaces := isThere(f.checkpoint)
	if s := r.Log.Since; s != nil && !s.Holds && replaces {
		return fmt.Errorf("write the checkpoint: %s stays as it is, because the log does not continue from the earlier "+
			"checkpoint, as the report says; if the log was put back for a good reason, name a new file with --checkpoint",
			f.checkpoint)
	}
	ws, err := workspace.Open(ctx, r.Scope.Workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("write the checkpoint: %w", err)
	}
	defer ws.Close()
	l, err := ws.LogReader(ctx)
	if err != nil {
		return fmt.Errorf("write the checkpoint: %w", err)
	}
	if replaces {
		replaced, err := readCheckpoint("--checkpoint", f.checkpoint)
		if err == nil {
			_, err = l.Since(ctx, replaced)
		}
		if err != nil {
			return fmt.Errorf("write the checkpoint: %s stays as it is, because it is not known that the log continues from "+
				"it: %w; audit again with --since %[1]s", f.checkpoint, err)
		}
	}
	return c.writeOwn(ctx, "checkpoint", f.checkpoint, written(l.Checkpoint().Signed))
}

// writeOwn writes a file that the auditor keeps or hands on, and names it on stderr.
func (c *command) writeOwn(ctx context.Context, what, name string, write func(io.Writer) error) error {
	// The log records the audit for ever: a power cut must not leave it without the file.
	if err := durable.Write(ctx, name, 0o600, write); err != nil {
		return fmt.Errorf("write the %s %s: %w", what, name, err)
	}
	if c.quiet {
		return nil
	}
	keep := map[string]string{"checkpoint": "; keep it away from the workspace"}[what]
	c.console.Done()
	fmt.Fprintf(c.stderr, "rehydrate: wrote %s%s\n", printable.EscapedLine(name), keep)
	return nil
}

// concludeAudit prints the report, records it and returns the status of its verdict. The release has so many posts.
func (c *command) concludeAudit(ctx context.Context, r audit.Report, posts int, f auditFlags) error {
	c.console.Done()
	// The digest is of the exact bytes that --json prints, so an auditor can compare a kept report with the log.
	hash := sha256.New()
	if err := r.WriteJSON(hash); err != nil {
		return err
	}
	digest := [sha256.Size]byte(hash.Sum(nil))
	sum := hex.EncodeToString(digest[:])
	// What could not be written costs neither the record nor the report.
	var unwritten []error
	if f.statement != "" {
		err := c.writeStatement(ctx, r, f)
		if err == nil { // a service that does not answer must not cost the statement and its signature
			err = c.stamp(ctx, f.statement, digest, f.stamp)
		}
		unwritten = append(unwritten, err)
	}
	recorded := c.recordAudit(ctx, r, sum, f.noRecord)
	unwritten = append(unwritten, c.keepCheckpoint(ctx, r, f))
	proof := proofOf(r, sum, recorded)
	made := c.inRehearsal(ctx, r, posts, f.policy)
	typed := func(do, where string) string {
		path := console.Joint + joined(shellWord(where)) + console.Joint
		return strings.ReplaceAll(c.toType(made.Replace(do)), console.Joint+"PATH"+console.Joint, path)
	}
	said := r.For(typed)
	if f.html != "" {
		page := r.For(func(do, where string) string {
			return strings.ReplaceAll(typed(do, where), console.Joint, " ")
		})
		unwritten = append(unwritten, c.writeOwn(ctx, "page", f.html,
			func(w io.Writer) error { return page.WritePage(w, sum, proof) }))
	}
	c.said.object = r.WriteJSON // with --json
	// Before the report, which ends with what to do.
	fmt.Fprintf(c.stderr, "rehydrate: report sha256 %s; %s\n", sum, recorded)
	if !c.json {
		err := c.answer("audit", auditAnswer{said, sum, proof, f.details})
		if err != nil {
			return err
		}
	}
	unwritten = slices.DeleteFunc(unwritten, func(err error) bool { return err == nil })
	for _, err := range unwritten {
		fmt.Fprintf(c.stderr, "rehydrate: %s\n", printable.EscapedLine(err.Error()))
	}
	switch {
	case r.Verdict == audit.Fail:
		return exitCode(exitFound)
	case r.Verdict == audit.Undecided:
		return exitCode(exitUndecided)
	case r.Verdict == audit.Overdue:
		return exitCode(exitOverdue)
	case len(unwritten) > 0: // last: what was found matters more
		return exitCode(exitFailed)
	}
	return nil
}

// An auditAnswer is what audit prints.
type auditAnswer struct {
	audit.Report
	Digest, Proof string
	Details       bool
}

// Lead is the verdict with what it means.
func (a auditAnswer) Lead() (lines [][2]string) {
	name := string(a.Verdict)
	for _, text := range a.Headline() {
		lines = append(lines, [2]string{name, text})
		name = ""
	}
	return lines
}

// End is the verdict with what is to be done.
func (a auditAnswer) End() [][2]string { return [][2]string{{string(a.Verdict), a.Next()}} }

// An auditRow is a row of what an audit lists.
type auditRow struct {
	lead  string   // that a block of it begins with
	cells []string // of a table
}

// tableOrBlocks returns the lines of a table, if it fits into 80 columns beside an indentation of two. If it does not,
// each row is a block: its lead, and below it the last cells behind their names.
func tableOrBlocks(heads, names []string, rows []auditRow) (lines []string) {
	if len(rows) == 0 {
		return nil
	}
	table := strings.Join(heads, "\t") + "\n"
	for _, row := range rows {
		for i, cell := range row.cells {
			row.cells[i] = printable.EscapedLine(cell)
		}
		table += strings.Join(row.cells, "\t") + "\n"
	}
	lines = strings.Split(strings.TrimSuffix(aligned(table, 0), "\n"), "\n")
	if !slices.ContainsFunc(lines, func(line string) bool { return utf8.RuneCountInString(line) > 78 }) {
		return lines
	}
	lines = nil
	for _, row := range rows {
		for _, line := range broken([][2]string{{"", row.lead}}) {
			lines = append(lines, line[1])
		}
		width, cells := 0, [][2]string{}
		for i, name := range names {
			cells = append(cells, [2]string{"  " + name, row.cells[len(row.cells)-len(names)+i]})
			width = max(width, len(cells[i][0]))
		}
		for _, line := range broken(cells) {
			lines = append(lines, fmt.Sprintf("%-*s  %s", width, line[0], line[1]))
		}
	}
	return lines
}

// Alike lists what looks like a removed post's, the first of it.
func (a auditAnswer) Alike(few int) []string { return a.open("Looks removed", a.Suspected(), few) }

// Unchecked lists what could not be checked, the first of it.
func (a auditAnswer) Unchecked(few int) []string { return a.open("Not checked", a.Unread(), few) }

func (a auditAnswer) open(head string, list []audit.Open, few int) []string {
	var rows []auditRow
	for _, o := range a.ByFolder(list) {
		lead := head + ": " + o.Where
		if o.ID != "" {
			lead = "Looks like the removed post " + o.ID + ": " + o.Where
		}
		rows = append(rows, auditRow{lead, []string{o.Where, o.What, o.Do}})
	}
	return tableOrBlocks([]string{head, "Why", "What to do"}, []string{"why", "do"}, rows[:min(few, len(rows))])
}

// Found lists what was found, the first of it.
func (a auditAnswer) Found(few int) []string {
	var rows []auditRow
	for _, f := range a.Findings[:min(few, len(a.Findings))] {
		lead := f.Thing()
		if f.ID != "" {
			lead = f.ID + ": " + lead
		}
		rows = append(rows, auditRow{lead, []string{cmp.Or(f.ID, "-"), f.Thing(), f.Place(), f.Do}})
	}
	return tableOrBlocks([]string{"Post", "What was found", "Where", "What to do"}, []string{"where", "do"}, rows)
}

// Reasons lists why the posts that were found must go, the first of them.
func (a auditAnswer) Reasons(few int) []string {
	var rows []auditRow
	for _, r := range a.Removals() {
		rows = append(rows, auditRow{r[0] + ": " + r[1], r[:]})
	}
	return tableOrBlocks([]string{"Post", "Why it must go", "Known since", "Must be gone by"},
		[]string{"known since", "must be gone by"}, rows[:min(few, len(rows))])
}

// proofOf says in a line what vouches for a report.
func proofOf(r audit.Report, digest, recorded string) string {
	text := fmt.Sprintf("report %s is %s", digest[:8], recorded)
	l := r.Log
	switch {
	case l.Broken != nil:
		text += fmt.Sprintf("; the log breaks at record %d", *l.Broken)
	case l.Present && l.Consistent:
		text += fmt.Sprintf("; the log of %s is intact", times(int(l.Records), "record", "records"))
	}
	if l.Since != nil && l.Since.Holds {
		text += fmt.Sprintf(", and continues from your checkpoint of %s", times(int(l.Since.Records), "record", "records"))
	}
	return text
}

// writeStatement writes the report as a statement, and signs it.
func (c *command) writeStatement(ctx context.Context, r audit.Report, f auditFlags) error {
	var signature []byte
	if f.sign != "" {
		in, out := io.Pipe()
		go func() { out.CloseWithError(r.WriteJSON(out)) }()
		var err error
		signature, err = policy.Sign(f.key, policy.AuditNamespace, in)
		in.Close()      // an error may come before the end
		if err != nil { // before the statement: without its signature it is not what was asked for
			return fmt.Errorf("sign the statement: %w", err)
		}
	}
	if err := c.writeOwn(ctx, "statement", f.statement, r.WriteJSON); err != nil {
		return err // one that it should replace keeps what signed and stamped it
	}
	// Beside this one those would seem to be forged.
	for _, suffix := range []string{manifest.SignatureSuffix, audit.StampSuffix} {
		if err := os.Remove(f.statement + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replace the statement: %w", err)
		}
	}
	if signature == nil {
		return nil
	}
	return c.writeOwn(ctx, "signature", f.statement+manifest.SignatureSuffix, written(signature))
}

type stampFlags struct{ url, ca string }

// roots are the certificates that a time stamp must lead to.
func (f stampFlags) roots() (*x509.CertPool, error) {
	if f.ca == "" {
		return x509.SystemCertPool()
	}
	return readRoots("--timestamp-ca", f.ca)
}

// stamp writes the time stamp of a statement beside it, if one is asked for.
func (c *command) stamp(ctx context.Context, statement string, digest [sha256.Size]byte, f stampFlags) error {
	if f.url == "" {
		return nil
	}
	roots, err := f.roots()
	if err != nil {
		return err
	}
	answer, stamp, err := audit.RequestStamp(ctx, f.url, digest, roots)
	if err != nil {
		return err
	}
	if err := c.writeOwn(ctx, "time stamp", statement+audit.StampSuffix, written(answer)); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "rehydrate: time stamp of %s, %s\n", printable.EscapedLine(stamp.Authority),
		stamp.Time.Format(time.RFC3339))
	return nil
}

// checkStatement checks a statement, its signature and time stamp, and that a log records it.
func (c *command) checkStatement(ctx context.Context, f auditFlags, named bool) error {
	folder := f.log
	if folder == "" && named {
		folder = filepath.Join(c.workspace, "audit")
	}
	s, err := audit.CheckStatement(ctx, f.checked, folder, f.stamp.roots)
	if err != nil {
		return err
	}
	if s.What == "" && s.Unsigned {
		return c.answerHolds("statement", s, false, exitRetry)
	}
	return c.answerHolds("statement", s, s.Holds, exitFound)
}

// checkLog checks a log by itself.
func (c *command) checkLog(ctx context.Context, f auditFlags) error {
	since, err := readCheckpoint("--since", f.since)
	if err != nil {
		return err
	}
	log, err := auditlog.CheckFolder(ctx, f.log, since)
	if errors.Is(err, fs.ErrNotExist) {
		return usageError("--log: %w", err)
	}
	if err != nil {
		return err
	}
	return c.answerHolds("log", log, log.Log.Consistent, exitFound)
}

// recordAudit notes what the audit heard, records it in the workspace's log and returns a sentence on whether it could.
func (c *command) recordAudit(ctx context.Context, r audit.Report, digest string, no bool) string {
	store, done := state.RecordAudit, "recorded in the log"
	switch {
	case r.Scope.Workspace == "":
		return "not recorded: there is no workspace"
	case no:
		return "not recorded, as was asked"
	case r.Log.Present && !r.Log.Consistent: // what is gone by it must not be handed out all the same
		store, done = state.NoteAudit, "not recorded: nothing is added to an inconsistent log"
	}
	// A workspace that is in use or read-only cannot take the record: the verdict stands without it. What a backup
	// brought is the holder's to continue: an audit leaves what it found for the next one to find.
	ws, err := workspace.Open(ctx, r.Scope.Workspace, workspace.Options{Existing: true, Apart: true, Now: c.now})
	if err == nil {
		if ws.Apart() {
			store = state.NoteAudit
			done = "not recorded: the log or state.db came from a backup, or was changed; run or purge continues it first"
		}
		err = errors.Join(store(ctx, ws, r.Time, r.Records(digest)), ws.Close())
	}
	if err != nil {
		return "not recorded in the log: " + err.Error()
	}
	return done
}
