package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/cmd/internal/console"
	"rehydrate/internal/polite"
	"rehydrate/pipeline"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
)

// A doctorAnswer is what doctor prints.
type doctorAnswer struct {
	OK     bool              `json:"ok"`
	Checks []console.Finding `json:"checks"`
	Failed []string          `json:"-"` // the names of the checks that did
	Run    string            `json:"-"` // the run that can be typed where all is well
}

// An examination is what doctor looks at. Each of its checks says what it found, nothing where there is nothing to look
// at, what it cannot check or need not find as an unchecked, or what is missing, if need be as a problem whose hint
// says how to get it.
type examination struct {
	*command
	program string // ocr
	release string // empty for none
	grant   string // its file; empty for that of the release folder
	opened  checkedRelease
	unread  error             // why the release could not be opened
	parts   []console.Finding // what ocr found
	granted bool              // a grant is in force, which names the approval
}

// An unchecked is what doctor cannot check, or what is missing and need not be there.
type unchecked struct{ error }

func (c *command) doctorCommand() *cobra.Command {
	x := &examination{command: c}
	cmd := c.workspaceCommand("doctor", takes(0, 1, "at most one RELEASE"),
		func(cmd *cobra.Command, args []string) error {
			x.release = strings.Join(args, "")
			return x.run(cmd.Context())
		})
	registerProgram(cmd, &x.program)
	cmd.Flags().StringVar(&x.grant, "grant", "", "")
	return cmd
}

func (x *examination) run(ctx context.Context) error {
	if x.release != "" { // first, for what the workspace is to hold
		x.opened, x.unread = x.openRelease(ctx, x.release)
	}
	if x.unread != nil {
		x.release = "" // it has no policy to look at
	}
	var findings []console.Finding
	sick := func(f console.Finding) bool { return !f.OK }
	status := exitRejected // where credentials are all that is missing
	for _, check := range []struct {
		name string
		look func(context.Context) (string, error)
	}{
		{"program", x.self}, {"ocr", x.reader}, {"credentials", x.credentials}, {"imgur", x.imgur},
		{"proxy", x.proxy}, {"disk", x.disk}, {"cache", x.cache}, {"clock", x.clock}, {"workspace", x.space},
		{"release", x.releaseFiles}, {"policy", x.releasePolicy}, {"approval", x.approval},
	} {
		found, err := check.look(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case is[unchecked](err):
			findings = append(findings, console.Finding{Name: check.name, OK: true, Note: true, Found: err.Error()})
		case err != nil:
			code, hint := diagnose(err)
			if code != exitRejected {
				status = exitFailed
			}
			if hint == usageHint {
				hint = "" // help on doctor mends nothing
			}
			what, hint := splitHint(err.Error(), hint)
			findings = append(findings, console.Finding{Name: check.name, Found: what, Hint: x.toType(hint)})
		case found != "":
			findings = append(findings, console.Finding{Name: check.name, OK: true, Found: found})
		}
		if slices.ContainsFunc(x.parts, sick) {
			status = exitFailed
		}
		findings, x.parts = append(findings, x.parts...), nil
	}
	answer := doctorAnswer{Checks: findings, Run: x.toRun()}
	for _, f := range findings {
		if sick(f) {
			answer.Failed = append(answer.Failed, f.Name)
		}
	}
	answer.OK = answer.Failed == nil
	return x.answerHolds("doctor", answer, answer.OK, exitCode(status))
}

// toRun is the run for which doctor looked.
func (x *examination) toRun() string {
	run := "rehydrate run RELEASE"
	if x.opened.Release != nil {
		run = "rehydrate run " + shellWord(x.release)
	}
	if !x.granted {
		run += " --approval REF"
	}
	return run + repeated("--grant", x.grant) + x.named()
}

// missing is an error with the way to get what is missing.
func missing(hint string, err error) (string, error) {
	return "", &problem{err: err, code: exitFailed, hint: hint}
}

func (x *examination) self(context.Context) (string, error) {
	return fmt.Sprintf("rehydrate %s, %s, %s/%s", build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH), nil
}

// ocrDoctorTime bounds `ocr doctor`, which starts a worker and reads one caption.
const ocrDoctorTime = time.Minute

// reader asks the ocr program for its own examination.
func (x *examination) reader(ctx context.Context) (string, error) {
	program, err := x.findOCR(x.program)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, ocrDoctorTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "doctor", "--json")
	cmd.Env = []string{} // no credentials
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "TMPDIR", "TESSDATA_PREFIX"} {
		if v := x.getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	failed := cmd.Run() // the report counts: it says what is missing, and the status only that something is
	var report struct {
		Checks []console.Finding `json:"checks"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Checks) == 0 {
		return missing("install Tesseract with scripts/setup, then: go build -o bin/ ./cmd/ocr",
			fmt.Errorf("%s doctor: %w: %.200s", program, cmp.Or(failed, errors.New("no report")),
				bytes.TrimSpace(errs.Bytes())))
	}
	for _, f := range report.Checks {
		f.Name = "ocr " + f.Name
		x.parts = append(x.parts, f)
	}
	return program, nil
}

// credentials reports whether each one is there, never its value.
func (x *examination) credentials(context.Context) (string, error) {
	if _, err := reddit.CredentialsFromEnv(x.getenv); err != nil {
		return "", badCredentials(x.getenv, err)
	}
	return "REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET and REDDIT_USERNAME are set and well-formed; whether Reddit takes them, a run shows", nil
}

func (x *examination) imgur(context.Context) (string, error) {
	id, err := reddit.ImgurClientIDFromEnv(x.getenv)
	switch {
	case err != nil:
		return "", rejected(err, imgurHint)
	case id.Empty():
		return "", unchecked{errors.New("IMGUR_CLIENT_ID is not set: links to imgur's pages and albums stay refused")}
	}
	return "IMGUR_CLIENT_ID is set", nil
}

// proxy names the variable that names a proxy, and not its value, which can hold a password.
func (x *examination) proxy(context.Context) (string, error) {
	p, err := polite.ProxyFromEnv(x.getenv)
	switch {
	case err != nil:
		return missing("", err)
	case p.IsSet():
		return "HTTPS_PROXY is set: Reddit and image hosts are asked through it, and it alone sees which addresses their names have", nil
	case cmp.Or(x.getenv("ALL_PROXY"), x.getenv("all_proxy")) != "":
		return "ALL_PROXY is set and not used: HTTPS_PROXY names a proxy for Reddit and image hosts", nil
	}
	return "", nil
}

// cache names the folder in which Hugging Face datasets may have copies of the images.
func (x *examination) cache(context.Context) (string, error) {
	dir := x.datasetsCache()
	if dir == "" {
		return "", nil
	}
	return dir + ": load_dataset without streaming=True leaves a copy of every image there, which no purge reaches", nil
}

// datasetsCache is where Hugging Face datasets converts what it loads (HF_DATASETS_CACHE in its config.py). It is empty
// where that folder does not exist.
func (c *command) datasetsCache() string {
	home := cmp.Or(c.getenv("HF_HOME"), filepath.Join(cmp.Or(c.getenv("XDG_CACHE_HOME"), "~/.cache"), "huggingface"))
	dir := cmp.Or(c.getenv("HF_DATASETS_CACHE"), filepath.Join(home, "datasets"))
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		dir = filepath.Join(c.getenv("HOME"), rest)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// leastDisk is what a small release needs; 1,000 images take about 200 MB, twice while the dataset is written.
const leastDisk = 1 << 30

func (x *examination) disk(context.Context) (string, error) {
	free, dir, err := x.freeSpace()
	if err != nil {
		return "", err
	}
	if free < leastDisk {
		return missing("make room, or name a folder on another disk with -w",
			fmt.Errorf("%s free in %s, and images want room", size(free), dir))
	}
	return fmt.Sprintf("%s free in %s", size(free), dir), nil
}

// freeSpace is how much room there is for the workspace, and in which folder.
func (c *command) freeSpace() (free int64, dir string, err error) {
	dir, err = filepath.Abs(c.workspace)
	if err != nil {
		return 0, dir, err
	}
	// The workspace may not exist yet: its nearest existing parent is on the disk that it will use.
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err = freeBytes(dir)
	if err != nil {
		return 0, dir, fmt.Errorf("ask how much room there is in %s: %w", dir, err)
	}
	return free, dir, nil
}

// born is before every release of the program: a clock that says less is wrong.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock reports whether the clock is plausible.
func (x *examination) clock(ctx context.Context) (string, error) {
	now := x.now()
	says := now.UTC().Format(time.RFC3339)
	const hint = "set the clock (timedatectl set-ntp true): how long ago a post was seen live decides whether it may be exported"
	if now.Before(born) || now.After(born.AddDate(20, 0, 0)) {
		return missing(hint, fmt.Errorf("it says %s", says))
	}
	// Faults of the workspace are for its own finding, so that errors of reading it count for nothing here.
	later, _ := reading(ctx, x.command, func(ws *workspace.Workspace) (later time.Time, _ error) {
		for p, err := range ws.Posts(ctx) {
			if err == nil && p.CheckedAt.After(later) {
				later = p.CheckedAt
			}
		}
		return later, nil
	})
	// An answer from the future means that the clock was set back since.
	if later.Sub(now) > time.Minute {
		return missing(hint, fmt.Errorf("it says %s, and the workspace was told something at %s", says,
			later.Format(time.RFC3339)))
	}
	return says, nil
}

func (x *examination) space(ctx context.Context) (string, error) {
	info, err := os.Stat(x.workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return x.workspace + " is not there yet: run makes it", nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return missing("chmod 700 "+x.workspace, fmt.Errorf("others can read %s (mode %v)", x.workspace,
			info.Mode().Perm()))
	}
	return reading(ctx, x.command, func(ws *workspace.Workspace) (string, error) {
		b, bound, err := ws.Binding(ctx)
		switch {
		case err != nil:
			return missing("rehydrate verify says what is damaged", err)
		case !bound:
			return x.workspace + " is empty", nil
		}
		if err := x.begins(ctx, ws); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s holds %q, layout %d", x.workspace, b.Release, workspace.Layout), nil
	})
}

// begins says why a run would not begin in the workspace, or not end well.
func (x *examination) begins(ctx context.Context, ws *workspace.Workspace) error {
	if err := errors.Join(ws.CheckLinks(ctx), ws.CheckLog(ctx)); err != nil {
		return err
	}
	if x.opened.Release == nil {
		return nil
	}
	config, err := x.configure(ctx, x.opened, &releaseFlags{grant: x.grant}, "")
	switch {
	case errors.As(err, new(*workspace.Altered)):
		return err
	case err != nil:
		return nil // the finding of the policy says so
	}
	config.Workspace = ws
	return pipeline.CheckRun(ctx, config)
}

func (x *examination) releaseFiles(context.Context) (string, error) {
	switch {
	case x.unread != nil:
		return "", x.unread
	case x.release == "":
		return "", nil
	}
	return fmt.Sprintf("%s: %d entries of %d posts", x.opened.Name, x.opened.summary.Entries, x.opened.summary.Posts), nil
}

func (x *examination) releasePolicy(context.Context) (string, error) {
	if x.release == "" {
		return "", nil
	}
	pol, err := policyOf(x.opened.Release)
	if err != nil {
		return "", err
	}
	need := "no grant is needed"
	if pol.Access.GrantRequired {
		need = "a grant is needed"
	}
	return "sha256 " + pol.Digest()[:16] + "; " + need, nil // short, so that it fits a line
}

// approval looks for the grant of the release, which names Reddit's approval. Without one only the user knows of it.
func (x *examination) approval(ctx context.Context) (string, error) {
	if x.opened.Release != nil {
		pol, err := policyOf(x.opened.Release)
		if err != nil {
			return "", nil // the finding of the policy says so
		}
		permit, err := x.findGrant(ctx, x.opened.Release, pol.Access.GrantRequired, x.grant)
		if err != nil {
			return "", err
		}
		if permit != nil {
			if fault := permit.judge(x.now()); fault != nil {
				return "", fault
			}
			x.granted = true
			return fmt.Sprintf("the grant %s names it: %s", permit.name, permit.grant.Approval.Reference), nil
		}
	}
	return "", unchecked{errors.New("not checked: run needs --approval REF, the reference that Reddit gave your study " +
		"(docs/researcher.md, step 1)")}
}
