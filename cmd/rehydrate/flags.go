package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/cmd/internal/build"
	"rehydrate/internal/durable"
	"rehydrate/internal/polite"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
	"rehydrate/report"
)

// Several commands share these sets of flags, and embed those that they take.

// releaseFlags say under which policy and by whose leave a release is used.
type releaseFlags struct {
	policy    string
	grant     string
	approval  string // Reddit's, by the flag or the grant
	rehearsal bool   // the posts are the emulator's
}

func (f *releaseFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "", "")
	cmd.Flags().StringVar(&f.grant, "grant", "", "")
}

// readPolicy reads the policy under which a job works. text is that of a file that the release does not have.
func (f *releaseFlags) readPolicy(release *manifest.Release) (pol policy.Policy, text []byte, err error) {
	if f.policy == "" {
		pol, err = policyOf(release)
		return pol, nil, err
	}
	// A release folder's policy is the maintainers' decision: a flag cannot replace it.
	if release.Dir != "" {
		return pol, nil,
			usageError("--policy is for a bare annotations file; %s has its own policy.toml, so leave the flag out",
				release.Dir)
	}
	text, err = userfile.Read(f.policy)
	if err != nil {
		return pol, nil, usageError("read the policy: %w", err)
	}
	pol, err = policy.Parse(text, f.policy)
	if err != nil {
		return pol, nil, asUsage(err)
	}
	return pol, text, nil
}

// redditFlags say how Reddit is reached.
type redditFlags struct {
	connectTo []string
	cacert    string
}

func (f *redditFlags) register(cmd *cobra.Command, approval *string) {
	cmd.Flags().StringVar(approval, "approval", "", "")
	cmd.Flags().StringArrayVar(&f.connectTo, "connect-to", nil, "")
	cmd.Flags().StringVar(&f.cacert, "cacert", "", "")
}

// madeUp is the approval by which the emulator is asked.
const madeUp = "DEMO"

const emulatorHint = "name the emulator with --connect-to and --cacert, as rehydrate demo --serve prints them"

func errMadeUp() error {
	return &problem{err: fmt.Errorf("%s is an approval of the emulator, not of Reddit", madeUp), code: exitUsage,
		hint: emulatorHint}
}

// repeated are these flags as they were typed, each after a space.
func (f *redditFlags) repeated() string {
	text := ""
	for _, to := range f.connectTo {
		text += repeated("--connect-to", to)
	}
	return text + repeated("--cacert", f.cacert)
}

// repeated is a flag with its value as a shell takes them, after a space; "" without a value.
func repeated(flag, value string) string {
	if value == "" {
		return ""
	}
	return " " + flag + " " + shellWord(value)
}

func (f *redditFlags) client(c *command, approval string, pol policy.Policy, getenv func(string) string,
	progress *pipeline.Progress) (*reddit.Client, error) {
	o := reddit.Options{Approval: approval, Policy: pol, Version: build.Version(), Log: c.log, OnWait: progress.OnWait,
		Scrubber: c.scrubber}
	var err error
	o.ConnectTo, o.RootCAs, err = f.routes()
	if err != nil {
		return nil, err
	}
	o.Proxy, err = polite.ProxyFromEnv(getenv)
	if err != nil {
		return nil, asUsage(err)
	}
	// Without an approval no credential is even read.
	if o.Approval == "" {
		return nil, reddit.ErrNoApproval
	}
	if o.Approval == madeUp && len(o.ConnectTo) == 0 {
		return nil, errMadeUp()
	}
	o.Credentials, err = reddit.CredentialsFromEnv(getenv)
	if err != nil {
		return nil, badCredentials(getenv, err)
	}
	o.ImgurClientID, err = reddit.ImgurClientIDFromEnv(getenv)
	if err != nil {
		return nil, rejected(err, imgurHint)
	}
	return reddit.New(o)
}

// routes reads the flags that say where hosts are, and whom to trust.
func (f *redditFlags) routes() (to []polite.ConnectTo, roots *x509.CertPool, err error) {
	for _, s := range f.connectTo {
		one, err := polite.ParseConnectTo(s)
		if err != nil {
			return nil, nil, usageError("--%w", err)
		}
		to = append(to, one)
	}
	if f.cacert != "" {
		roots, err = readRoots("--cacert", f.cacert)
	}
	return to, roots, err
}

const (
	credentialsHint = "register an app with Reddit (docs/researcher.md), then set REDDIT_CLIENT_ID, " +
		"REDDIT_CLIENT_SECRET and REDDIT_USERNAME, " +
		"or the same names with _FILE for files of mode 0600"
	imgurHint = "set IMGUR_CLIENT_ID or IMGUR_CLIENT_ID_FILE to the id of an app registered with imgur, or neither"
)

// badCredentials is a fault of the credentials. How to get some helps only where one is missing.
func badCredentials(getenv func(string) string, fault error) error {
	if noCredentials(getenv) == nil {
		return rejected(fault, "")
	}
	return rejected(fault, credentialsHint)
}

func rejected(err error, hint string) error {
	return &problem{err: err, code: exitRejected, hint: hint}
}

// readRoots reads the certificate authorities that a flag names.
func readRoots(flag, file string) (*x509.CertPool, error) {
	pem, err := userfile.Read(file)
	if err != nil {
		return nil, usageError("%s: %w", flag, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(userfile.Unmarked(pem)) { // with an empty pool every connection would fail, and say less
		return nil, usageError("%s: %s holds no PEM certificate", flag, file)
	}
	return roots, nil
}

// tableFlags say how a table of numbers is printed, and where a page of it is written.
type tableFlags struct {
	csv  bool
	page pageFlags
}

func (f *tableFlags) register(cmd *cobra.Command, columns string) {
	cmd.Flags().BoolVar(&f.csv, "csv", false, "")
}

func (f *tableFlags) check(c *command) error {
	if f.csv && c.json {
		return usageError("--csv and --json exclude each other; leave one of them out")
	}
	return f.page.check()
}

// answer prints v by the template of that name, or by that of its CSV.
func (f *tableFlags) answer(c *command, name string, v any) error {
	if f.csv {
		w := bufio.NewWriter(c.stdout)
		defer w.Flush() // the stream remembers its error
		return c.render(w, name+"-csv", v)
	}
	return c.answer(name, v)
}

// valued refuses a list of values that is empty: a script whose variable is not set would purge nothing, and end well.
func valued(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "stringSlice" && f.Value.String() == "[]" {
			err = cmp.Or(err, usageError("--%s has no value", f.Name))
		}
	})
	return err
}

// writesOutside refuses what a command is to write into a workspace, and a file in a release, in a registered copy or
// in a folder that is not there: hours later it would be found out too late.
func (c *command) writesOutside(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := f.Value.String()
		if _, writes := f.Annotations[writtenFlag]; !writes || name == "" {
			return
		}
		err = cmp.Or(err, c.outsideWorkspace("--"+f.Name, name))
		if valueOf(f) == "FILE" {
			if dir := filepath.Dir(name); userfile.Exists(dir) != nil {
				err = cmp.Or(err, error(&problem{code: exitUsage,
					err:  fmt.Errorf("--%s %s: there is no folder %s", f.Name, name, dir),
					hint: "make it first, or name a file in a folder that is there"}))
			}
			if cmd.Parent().Name() != "tombstones" { // which writes over no other list than one of tombstones
				err = cmp.Or(err, keepsRelease("--"+f.Name, name))
			}
			err = cmp.Or(err, c.outsideCopies(cmd, "--"+f.Name, name))
		}
	})
	return err
}

// keepsRelease refuses to write over a file of a release: the manifest would be lost.
func keepsRelease(flag, file string) error {
	dir := filepath.Dir(file)
	_, none := os.Stat(filepath.Join(dir, manifest.SettingsName))
	if _, missing := os.Lstat(file); none != nil || missing != nil {
		return nil
	}
	return usageError("%s %s is a file of the release %s: name another place", flag, file, dir)
}

// outsideCopies refuses a file in a registered copy, which has no others than the register says. Of a workspace that
// cannot be opened the command itself speaks.
func (c *command) outsideCopies(cmd *cobra.Command, flag, file string) error {
	if cmd.Flag("workspace") == nil {
		return nil
	}
	copied, err := reading(cmd.Context(), c, func(ws *workspace.Workspace) (string, error) {
		return copies.Around(cmd.Context(), ws, file)
	})
	if err != nil || copied == "" {
		return nil
	}
	return usageError("%s %s lies in %s, a registered copy of the dataset; name a place outside it", flag, file, copied)
}

// outsideWorkspace refuses a file that lies in the workspace, or in any other.
func (c *command) outsideWorkspace(flag, file string) error {
	at := file
	for _, err := os.Stat(at); err != nil && at != filepath.Dir(at); _, err = os.Stat(at) { // it may be there only later
		at = filepath.Dir(at)
	}
	// Links are followed first, so that a link into the workspace is refused as well.
	at, err := filepath.EvalSymlinks(at)
	if err != nil {
		return usageError("%s %s: %w", flag, file, err)
	}
	ws, err := filepath.EvalSymlinks(c.workspace)
	if err != nil {
		ws = c.workspace // there is none; opening it reports that
	}
	at, err = filepath.Abs(at)
	if err == nil {
		ws, err = filepath.Abs(ws)
	}
	if err != nil {
		return err
	}
	if at == ws || strings.HasPrefix(at, ws+string(filepath.Separator)) || pictures.WorkspaceOf(at) != "" {
		return usageError("%s %s lies in a workspace, where only runs write; name a place outside it", flag, file)
	}
	return nil
}

// pageFlags say where a page of numbers is written.
type pageFlags struct {
	flag  string // that names the file
	file  string
	force bool
}

func (f *pageFlags) register(cmd *cobra.Command) {
	f.flag = "html"
	cmd.Flags().StringVar(&f.file, f.flag, "", "")
	markWritten(cmd, f.flag)
	cmd.Flags().BoolVar(&f.force, "force", false, "")
}

// check refuses a file that is there, before anything is computed.
func (f pageFlags) check() error { return newFile("--"+f.flag, f.file, f.force) }

// newFile refuses a file that is there, unless --force says to write over it.
func newFile(flag, file string, force bool) error {
	if force || !isThere(file) {
		return nil
	}
	return usageError("%s %s exists; name another file, or write over it with --force", flag, file)
}

// write writes the page, if one was asked for. It names no entry: a purge has nothing to take out of it.
func (f pageFlags) write(ctx context.Context, c *command, s report.Study) error {
	if f.file == "" {
		return nil
	}
	s.Tool, s.Made = build.Version(), c.now()
	if err := durable.Write(ctx, f.file, 0o600, func(w io.Writer) error { return report.WriteStudy(w, s) }); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// ocrFlags name the ocr program and how many of it work.
type ocrFlags struct {
	program string
	workers int
}

func (f *ocrFlags) register(cmd *cobra.Command) {
	registerProgram(cmd, &f.program)
	cmd.Flags().IntVar(&f.workers, "workers", runtime.NumCPU(), "")
	// Not the number on this machine: help and manual pages are the same everywhere.
	cmd.Flags().Lookup("workers").DefValue = "one for each processor"
}

func registerProgram(cmd *cobra.Command, program *string) {
	cmd.Flags().StringVar(program, "ocr", "", "")
}

func (f *ocrFlags) check() error {
	if f.workers < 1 {
		return usageError("--workers must be at least 1, not %d", f.workers)
	}
	return nil
}

// filterFlag is what becomes of rows that the filters drop.
type filterFlag string

func (f *filterFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(f), "filters", "", "")
}

func (f filterFlag) apply(pol *policy.Policy) error {
	switch mode := policy.Mode(f); mode {
	case "": // the policy decides
	case policy.Drop, policy.Flag:
		pol.Filter.Mode = mode
	default:
		return usageError("--filters takes drop or flag, not %q", string(f))
	}
	return nil
}
