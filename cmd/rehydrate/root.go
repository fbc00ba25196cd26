package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/cmd/internal/console"
	"rehydrate/internal/fileversion"
	"rehydrate/internal/safely"
	"rehydrate/internal/scratch"
	"rehydrate/internal/secret"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
	"rehydrate/study/endpoint"
	"rehydrate/study/models"
)

// A process is what a command gets of the world.
type process struct {
	args           []string
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	executable     func() (string, error) // where this program lies: ocr is looked for beside it
	now            func() time.Time
	stop           <-chan struct{} // closed when the user asks to stop, or the terminal is gone
	hungUp         func() bool     // reports whether stop was closed because the terminal is gone; nil = never
	lastAct        time.Duration   // pipeline.Config's: a script whose machine is slow gives more
	// changes the policy of a job on a release: a measurement asks faster; nil = leaves it
	adjust func(*policy.Policy)
}

// The exit statuses that the commands here can end in.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRetry       = 3
	exitFound       = 4
	exitDamaged     = 5
	exitInUse       = 6
	exitRejected    = 7
	exitUndecided   = 8
	exitOverdue     = 9
	exitInterrupted = 130
)

// exitMeanings are what help exit-status says of each status.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitDone, "done"},
	{exitFailed, "failed: the error says why"},
	{exitUsage,
		"wrong usage: a flag, a release or a file is wrong, or publish waits for --checked; nothing was written"},
	{exitRetry, "done, but something is left to do: posts can be retried, Reddit gave no answer, removals wait for " +
		"--confirm-removals, the workspace or a copy still has removed posts, or answers are missing"},
	{exitFound, "audit found a removed post, or something that is not as recorded"},
	{exitDamaged, "verify found damage"},
	{exitInUse, "the workspace is in use by another command"},
	{exitRejected, "credentials, approval or grant are missing or rejected"},
	{exitUndecided, "audit found nothing for certain, but something is open"},
	{exitOverdue, "audit found nothing, but a duty is late"},
	{exitInterrupted, "interrupted: run the same command again to resume"},
}

// A problem is an error with the exit status it leads to and what to try.
type problem struct {
	err  error
	code int
	hint string
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

func usageError(format string, args ...any) error {
	return userfile.Wrong(format, args...)
}

// diagnose finds the exit status and the hint for an error that ends a command.
func diagnose(err error) (code int, hint string) {
	var p *problem
	var noOCR *ocr.StartError
	var grant *policy.GrantFault
	var fault *userfile.Fault
	var missing *userfile.Missing
	var inside *manifest.InFolder
	var denied *endpoint.Denied
	var unsupported *endpoint.Unsupported
	var nobody *endpoint.Unreachable
	var failing *models.Failing
	var stale *models.Stale
	var altered *workspace.Altered
	var unmerged *cluster.Unmerged
	switch {
	case is[*safely.Panic](err): // first: an error joined to a panic must not hide it
		return exitFailed,
			"this is a mistake in rehydrate: please report it, with the command and what it prints with -v\n" +
				"what was stored is whole, and the same command resumes"
	case errors.As(err, &p):
		return p.code, p.hint
	case errors.As(err, &altered):
		return exitUsage, alteredHint(altered.Name)
	case errors.As(err, &missing):
		return exitUsage, missingHint(missing.Path)
	case errors.As(err, &inside):
		return exitUsage, "name the folder: " + thisCommand + " " + inside.Dir
	case errors.As(err, &fault) && fault.Flag:
		return exitUsage, usageHint
	case errors.As(err, &fault):
		return exitUsage, fault.Hint
	case errors.Is(err, state.ErrInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted, ""
	case is[*manifest.Problems](err):
		return exitUsage, ""
	case is[*reddit.Denied](err):
		return exitRejected, "" // the error itself says what to do
	case errors.As(err, &grant):
		return exitRejected, grant.Hint
	case is[*reddit.Unreachable](err):
		return exitRetry, "" // the error itself says what to do
	case errors.As(err, &noOCR):
		return exitFailed, noOCR.Hint
	case errors.Is(err, reddit.ErrNoApproval):
		return exitRejected,
			"Reddit asks for approval before any use of its API, research included: apply to Reddit for Researchers\n" +
				"(docs/researcher.md, step 1), then name the approval with --approval REF"
	case errors.Is(err, endpoint.ErrNotLocal):
		return exitUsage,
			"images stay on this machine unless you say who gets them and why: --third-party NAME --note WHY"
	case errors.As(err, &denied):
		return exitRejected, denied.Hint
	case errors.As(err, &unsupported):
		return exitUsage, unsupported.Hint()
	case errors.As(err, &nobody):
		return exitRetry, serverHint(nobody.Nobody)
	case errors.As(err, &failing):
		return exitRetry, serverHint(failing.Page)
	case errors.As(err, &stale) && stale.Asked:
		return exitRetry,
			"Reddit was asked just now, and did not say what became of these posts: run the same command again later"
	case is[*models.Stale](err):
		return exitRetry,
			"name the release, so that Reddit is asked again first: --release RELEASE\nor: rehydrate recheck RELEASE"
	case is[*state.Unwritten](err):
		return exitRetry, "rehydrate run RELEASE writes them again; then run the same command"
	case is[*state.Stricter](err), errors.Is(err, state.ErrNotMasked):
		return exitRetry, "update the dataset first: rehydrate run RELEASE; then run the same command"
	case errors.Is(err, workspace.ErrBehind):
		return exitRetry, "rehydrate purge RELEASE --offline takes it over; then run the same command"
	case errors.Is(err, copies.ErrBusy):
		return exitInUse, "wait for the other command, or name another folder"
	case errors.Is(err, workspace.ErrInUse):
		return exitInUse, "wait for the other run, or give this one another workspace with -w DIR"
	case is[*workspace.Linked](err):
		return exitFailed,
			"move what it points to into its place; to keep it on another disk, move the whole workspace there, and name it with -w"
	case is[*fileversion.Other](err):
		return exitFailed, "" // the error itself says what to do
	case errors.Is(err, workspace.ErrNoWorkspace):
		return exitUsage, "name your workspace with -w DIR, or make one: rehydrate run RELEASE"
	case workspace.NotWhole(err):
		return exitFailed, "rehydrate verify says what is damaged, and how to repair it"
	case workspace.NotOpened(err):
		return exitFailed,
			"check the rights of the workspace and the disk, and that the whole path of the workspace is shorter than 500 bytes"
	case errors.Is(err, fs.ErrPermission):
		return exitFailed, "check the rights of the file, and of the folders that it lies in"
	case errors.As(err, &unmerged):
		return exitUsage, unmergedHint(unmerged.Waiting)
	case is[*pipeline.UnknownRetry](err):
		return exitUsage, "--retry takes outcomes (" + strings.Join(retryOutcomes,
			", ") + ") and the reasons that rehydrate status shows"
	case is[*pipeline.MissingError](err):
		return exitFailed,
			"mount the disk, or put the files back\nif they are lost: rehydrate run RELEASE --confirm-removals takes what it can from the dataset, and downloads the rest"
	case is[*pipeline.LossError](err):
		return exitUsage,
			"nothing was changed: check that these are the right annotations\n" +
				"if those images are to be removed: rehydrate run RELEASE --confirm-removals"
	case is[*pipeline.WaitingError](err):
		return exitUsage,
			"ask Reddit about them first: rehydrate recheck RELEASE\n" +
				"if it holds them back again and the removals are right: rehydrate recheck RELEASE --confirm-removals"
	case is[*workspace.OtherRelease](err):
		return exitUsage, "give each release its own workspace: -w DIR"
	default:
		return exitFailed, ""
	}
}

// alteredHint is what to do with a file of the workspace that no command left as it is.
func alteredHint(name string) string {
	const changed = "\nif you changed it yourself, copy it out of the workspace, and name the copy"
	switch name {
	case manifest.ListName:
		return "nothing was changed: name the list that you keep, or put back " + name + " from a backup" + changed
	case state.PolicyFile:
		return "nothing was changed: name the policy that you keep with --policy FILE, or put back " + name +
			" from a backup" + changed
	}
	return "nothing was changed: move it out of the workspace, then run the same command: state.db has the list\n" +
		"if you put it there, or restored a backup, remove those posts with it from its new place: " +
		"rehydrate purge RELEASE --offline --tombstones FILE"
}

// serverHint is what to try when a server of models gave no answer; elsewhere says that another URL could mend it.
func serverHint(elsewhere bool) string {
	const again = "the same command continues where it was"
	if elsewhere {
		return "is the server running, and --endpoint its base, mostly with /v1? Then " + again
	}
	return again
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// exitCode is an exit status that needs no error message: the command has said it all.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// defaultWorkspace is where a command works without -w.
const defaultWorkspace = "rehydrated"

// command is what all subcommands share: the process and the global flags.
type command struct {
	process
	called    *cobra.Command // with its flags; nil before it is known
	cancel    func()         // ends its context
	release   string         // that it was given, as it was typed; empty for none
	workspace string
	ended     bool   // purge --all ended the workspace, as far as it was opened
	madeUp    bool   // its posts are, as far as it was opened
	listName  string // of --name, for a list of ids
	rehearsed string // the name of a list in a workspace that demo makes
	json      bool
	verbose   bool
	quiet     bool
	scrubber  *secret.Scrubber // takes the operator's secrets out of all that is written
	bare      io.Writer        // stdout as it is, for the made-up credentials of the emulator alone
	said      *answers         // stdout, which c.stdout writes to
	console   *console.Console
	log       *slog.Logger
}

// answers is stdout: text at once, or with --json one object when all is known.
type answers struct {
	*secret.ScrubbingWriter
	fold   *console.Folder
	json   *bool
	text   bytes.Buffer          // what would have been printed without --json
	err    error                 // the first
	object func(io.Writer) error // writes the answer of the command, if it has one

	delivered bool
}

func (a *answers) Write(p []byte) (int, error) {
	if *a.json {
		return a.text.Write(p)
	}
	return a.print(p)
}

func (a *answers) print(p []byte) (int, error) {
	n, err := a.ScrubbingWriter.Write(p)
	a.err = cmp.Or(a.err, err)
	return n, err
}

// deliver prints the one object of --json: the answer, or else the text, or what went wrong, with the answer that was
// there by then.
func (a *answers) deliver(failed map[string]any) {
	object := a.object
	switch {
	case a.delivered:
		return
	case failed != nil:
		if object != nil {
			var answer bytes.Buffer
			_ = object(&answer) // a buffer takes everything
			failed["answer"] = json.RawMessage(answer.Bytes())
		}
		body, _ := json.Marshal(failed) // strings and numbers, and what was JSON before
		object = written(append(body, '\n'))
	case object == nil:
		object = written(toJSON(map[string]string{"text": a.text.String()}))
	}
	a.fold.Stop() // a line break would break a string
	// If stdout cannot be written, the exit status reports it.
	_ = object(printer{a})
}

// A printer prints what is written to it, with --json too.
type printer struct{ *answers }

func (p printer) Write(b []byte) (int, error) { return p.print(b) }

// written gives what writes these bytes.
func written(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

func toJSON(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // a type is wrong, whatever the data are
	}
	return append(b, '\n')
}

// run is the whole program: it returns the exit status.
func run(ctx context.Context, p process) int {
	// net/http writes to it what a host sends unasked, the bytes of images among it, and has no setting for that.
	// The program itself never writes there.
	log.SetOutput(io.Discard)
	// What a killed command left may be private, and may be all there is of an erased post. That it cannot be removed
	// is no reason to refuse this command.
	_ = scratch.Sweep()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &command{process: p, cancel: cancel, workspace: defaultWorkspace, scrubber: new(secret.Scrubber), bare: p.stdout}
	out, errs := console.Fold(p.stdout), console.Fold(p.stderr)
	stderr := c.scrubber.Writer(errs)
	c.said = &answers{ScrubbingWriter: c.scrubber.Writer(out), fold: out, json: &c.json}
	defer func() {
		// The last call of the program: an error has nowhere to be reported.
		_ = errors.Join(c.said.Flush(), out.Flush(), stderr.Flush(), errs.Flush())
	}()
	c.stdout, c.stderr, c.console = c.said, stderr, console.New("rehydrate", stderr, p.stderr, p.getenv("TERM"), p.now)
	// A panic becomes an error: deferred calls close the workspace, and the message is scrubbed.
	err := safely.Do(func() (err error) {
		// Before anything is printed: an error about arguments repeats them.
		c.scrubber.LearnEnv(c.getenv)
		root := c.root()
		root.SetArgs(c.args)
		root.SetIn(c.stdin)
		root.SetErr(c.stderr)
		c.called, err = root.ExecuteContextC(ctx)
		return err
	})
	c.console.Done() // the bar goes before an error is printed
	var quiet exitCode
	said := err == nil || errors.As(err, &quiet) // all there is to say, but for the status
	if c.json && said {
		c.said.deliver(nil)
	}
	// A full disk under stdout is found here, once, so that what prints need not look for it.
	if c.said.err != nil && said {
		err, said = fmt.Errorf("print the answer: %w", c.said.err), false
	}
	if said {
		return int(quiet)
	}
	err = c.mistaken(err)
	code, hint := diagnose(err)
	text := err.Error()
	text, hint = splitHint(text, hint)
	if c.called != nil {
		if hint == usageHint {
			hint = wayOut(c.called, text)
		} else {
			hint = c.toType(strings.ReplaceAll(hint, thisCommand, c.called.CommandPath()))
		}
	}
	fmt.Fprint(c.stderr, errorLines(text, hint))
	var internal *safely.Panic
	if c.verbose && errors.As(err, &internal) {
		fmt.Fprintf(c.stderr, "%s\n", internal.Stack) // for whoever looks for the mistake
	}
	if c.json { // as well, so that a script finds an object whatever happened
		c.said.deliver(map[string]any{"error": text, "hint": hint, "exit": code})
	}
	return code
}

// endsByItself reports whether a command finishes what is in flight when the user asks to stop. Any other has nothing
// to finish, and ends with its context.
func endsByItself(cmd *cobra.Command) bool {
	first := cmd
	for first.HasParent() && first.Parent().HasParent() {
		first = first.Parent()
	}
	return slices.Contains([]string{"demo", "run", "recheck", "purge", "ocr", "cluster", "classify", "moderate"},
		first.Name()) || first.Name() == "annotate" && cmd.Name() == "review"
}

// untilStopped is a context that ends when the user asks to stop.
func (c *command) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c.whenStopped(ctx, cancel)
	return ctx, cancel
}

// whenStopped calls cancel when the user asks to stop, unless ctx ends before.
func (c *command) whenStopped(ctx context.Context, cancel func()) {
	select {
	case <-c.stop:
		cancel() // at once, without waiting for the goroutine below
	default:
	}
	go func() {
		select {
		case <-c.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
}

// A chapter is a group of commands in the root's help.
type chapter struct {
	title    string
	commands []*cobra.Command
}

// chapters are the commands, in the order in which the root's help lists them.
func (c *command) chapters() []chapter {
	return []chapter{
		{"Start here", []*cobra.Command{c.demoCommand(), c.doctorCommand(), c.initCommand()}},
		{"Rebuild a dataset", []*cobra.Command{c.runCommand(), c.statusCommand(), c.explainCommand(), c.reportCommand(),
			c.verifyCommand(),
			c.clusterCommand()}},
		{"Deletions and copies", []*cobra.Command{c.recheckCommand(), c.purgeCommand(), c.auditCommand(), c.exportCommand(),
			c.tombstonesCommand()}},
		{"Make a dataset", []*cobra.Command{c.selectCommand(), c.annotateCommand(), c.publishCommand(), c.ocrCommand(),
			c.grantCommand()}},
		{"Study", []*cobra.Command{c.labelsCommand(), c.featuresCommand(), c.classifyCommand(), c.moderateCommand(),
			c.dedupeCommand(),
			c.diffCommand()}},
	}
}

func (c *command) root() *cobra.Command {
	chapters := c.chapters()
	root := newGroup("rehydrate", c.versionCommand(), c.manCommand(), exitStatusTopic())
	for _, ch := range chapters {
		root.AddCommand(ch.commands...)
	}
	root.Version, root.SilenceErrors, root.SilenceUsage = build.Version(), true, true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		c.called = cmd
		if c.quiet && c.verbose {
			return usageError("--quiet and --verbose exclude each other; leave one of them out")
		}
		level := slog.LevelWarn
		if c.verbose {
			level = slog.LevelDebug
		}
		c.log = slog.New(newWarnings(c.console, level))
		if !endsByItself(cmd) {
			c.whenStopped(cmd.Context(), c.cancel)
		}
		if err := valued(cmd); err != nil {
			return err
		}
		return c.writesOutside(cmd)
	}
	flags := root.PersistentFlags()
	flags.BoolVar(&c.json, "json", false, "print one JSON object on stdout instead of text")
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "say more on stderr: retries, waits, each image")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "show no progress on stderr, only warnings and errors")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		c.json = c.json || asksJSON(c.args)
		return flagError(cmd, err)
	})
	c.finish(root, chapters)
	return root
}
