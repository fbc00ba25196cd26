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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
)

// A finding is one line of doctor.
type finding struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Hint  string `json:"hint,omitempty"` // how to get what is missing
}

// An examination collects findings.
type examination struct {
	*command
	release  string // "" for none
	program  string // ocr
	findings []finding
}

func (c *command) doctorCommand() *cobra.Command {
	var program string
	cmd := newCommand("doctor", takes(0, 1, "at most one RELEASE"), func(cmd *cobra.Command, args []string) error {
		x := &examination{command: c, program: program}
		if len(args) == 1 {
			x.release = args[0]
		}
		return x.run(cmd.Context())
	})
	registerProgram(cmd, &program)
	return cmd
}

func (x *examination) run(ctx context.Context) error {
	x.found("program", fmt.Sprintf("rehydrate %s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
	for _, check := range []func(context.Context){x.reader, x.sandbox, x.credentials, x.disk, x.clock, x.space, x.releaseFiles} {
		check(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	sick := slices.ContainsFunc(x.findings, func(f finding) bool { return !f.OK })
	err := x.answer("doctor", map[string]any{"ok": !sick, "checks": x.findings})
	if err == nil && sick {
		return exitCode(exitFailed)
	}
	return err
}

func (x *examination) found(name, what string) {
	x.findings = append(x.findings, finding{Name: name, OK: true, Found: what})
}

func (x *examination) missing(name string, err error, hint string) {
	_, known := diagnose(err)
	if known == usageHint {
		known = "" // doctor's own hint says more than "see --help"
	}
	x.findings = append(x.findings, finding{Name: name, Found: err.Error(), Hint: cmp.Or(known, hint)})
}

// ocrDoctorTime bounds `ocr doctor`, which starts a worker and reads one caption.
const ocrDoctorTime = time.Minute

// reader asks the ocr program for its own examination.
func (x *examination) reader(ctx context.Context) {
	program, err := x.findOCR(x.program)
	if err != nil {
		x.missing("ocr", err, "")
		return
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
	failed := cmd.Run()
	var report struct {
		Checks []finding `json:"checks"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Checks) == 0 {
		x.missing("ocr", fmt.Errorf("%s doctor: %w: %.200s", program, cmp.Or(failed, errors.New("no report")), bytes.TrimSpace(errs.Bytes())),
			"install Tesseract with scripts/setup, then: go build -o bin/ ./cmd/ocr")
		return
	}
	x.found("ocr", program)
	for _, f := range report.Checks {
		f.Name = "ocr " + f.Name
		x.findings = append(x.findings, f)
	}
}

// sandbox reports whether the kernel can confine the workers.
func (x *examination) sandbox(context.Context) {
	if abi := landlockABI(); abi > 0 {
		x.found("sandbox", fmt.Sprintf("landlock, version %d: OCR workers reach no file and no network", abi))
		return
	}
	x.found("sandbox", "this kernel has no landlock: OCR workers run without it, and are still given pixels alone")
}

// credentials reports whether each one is there, never its value.
func (x *examination) credentials(context.Context) {
	if _, err := reddit.CredentialsFromEnv(x.getenv); err != nil {
		x.missing("credentials", err, "register an app with Reddit (docs/operations.md), then set REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET and REDDIT_USERNAME, "+
			"or the same names with _FILE for files of mode 0600")
	} else {
		x.found("credentials", "REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET and REDDIT_USERNAME are set and well-formed; whether Reddit takes them, a run shows")
	}
	switch id, err := reddit.ImgurClientIDFromEnv(x.getenv); {
	case err != nil:
		x.missing("imgur", err, "set IMGUR_CLIENT_ID to the id of an app registered with imgur, or unset it")
	case id.Empty():
		x.found("imgur", "IMGUR_CLIENT_ID is not set: links to imgur's pages and albums stay refused")
	default:
		x.found("imgur", "IMGUR_CLIENT_ID is set")
	}
}

// leastDisk is what a small release needs; 1,000 images take about 200 MB, twice while the dataset
// is written.
const leastDisk = 1 << 30

func (x *examination) disk(context.Context) {
	dir, err := filepath.Abs(x.workspace)
	if err != nil {
		x.missing("disk", err, "")
		return
	}
	// The workspace may not exist yet: its nearest existing parent is on the disk that it will use.
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		x.missing("disk", fmt.Errorf("ask how much room there is in %s: %w", dir, err), "")
		return
	}
	free := int64(s.Bavail) * int64(s.Bsize)
	if free < leastDisk {
		x.missing("disk", fmt.Errorf("%s free in %s, and images want room", size(free), dir), "make room, or name a folder on another disk with -w")
		return
	}
	x.found("disk", fmt.Sprintf("%s free in %s", size(free), dir))
}

// born is before every release of the program: a clock that says less is wrong.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock reports whether the clock is plausible.
func (x *examination) clock(ctx context.Context) {
	now := x.now()
	const hint = "set the clock (timedatectl set-ntp true): how long ago a post was seen live decides whether it may be exported"
	if now.Before(born) || now.After(born.AddDate(20, 0, 0)) {
		x.missing("clock", fmt.Errorf("it says %s", now.UTC().Format(time.RFC3339)), hint)
		return
	}
	ws, err := workspace.Open(ctx, x.workspace, workspace.Options{ReadOnly: true})
	if err == nil {
		defer ws.Close()
		for p, err := range ws.Posts(ctx) {
			if err != nil {
				break // the workspace's own finding says so
			}
			// An answer from the future means that the clock was set back since.
			if p.CheckedAt.Sub(now) > time.Minute {
				x.missing("clock", fmt.Errorf("it says %s, and the workspace was told something at %s", now.UTC().Format(time.RFC3339), p.CheckedAt.Format(time.RFC3339)), hint)
				return
			}
		}
	}
	x.found("clock", now.UTC().Format(time.RFC3339))
}

func (x *examination) space(ctx context.Context) {
	info, err := os.Stat(x.workspace)
	if errors.Is(err, fs.ErrNotExist) {
		x.found("workspace", x.workspace+" is not there yet: run makes it")
		return
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		x.missing("workspace", fmt.Errorf("others can read %s (mode %v)", x.workspace, info.Mode().Perm()), "chmod 700 "+x.workspace)
		return
	}
	ws, err := workspace.Open(ctx, x.workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		x.missing("workspace", err, "")
		return
	}
	defer ws.Close()
	b, bound, err := ws.Binding(ctx)
	switch {
	case err != nil:
		x.missing("workspace", err, "rehydrate verify says what is damaged")
	case !bound:
		x.found("workspace", x.workspace+" is empty")
	default:
		x.found("workspace", fmt.Sprintf("%s holds %q, layout %d", x.workspace, b.Release, workspace.Layout))
	}
}

func (x *examination) releaseFiles(ctx context.Context) {
	if x.release == "" {
		return
	}
	opened, err := openRelease(ctx, x.release)
	if err != nil {
		x.missing("release", err, "")
		return
	}
	x.found("release", fmt.Sprintf("%s: %d entries of %d posts", opened.Name, opened.summary.Entries, opened.summary.Posts))
	pol, err := readPolicy(opened.PolicyPath)
	if err != nil {
		x.missing("policy", err, "")
		return
	}
	need := "no grant is needed"
	if pol.Access.GrantRequired {
		need = "a grant is needed: rehydrate grant check says whether there is one"
	}
	x.found("policy", "sha256 "+pol.Digest()+"; "+need)
}
