// Mutants changes one thing at a time in a package and sees whether its tests notice: what they hold, where
// coverage says only what they run.
//
//	go -C tools build -o ../bin/ ./mutants && bin/mutants [-n 150] [-seed 1] [-j 2] [-short=false] PACKAGE...
//
// It draws n mutants that the tests execute, compiles each by way of an overlay, so that no file of the tree
// changes, and runs the tests. A mutant is killed when they fail, or take more than five times as long as before
// and ten seconds. Mutants that do not compile do not count. The same seed draws the same mutants of the same
// code, but for those that run last. The exit status does not depend on how many survive.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/cover"
)

var (
	sample = flag.Int("n", 150, "how many executed mutants to try in each package; 0: all")
	seed   = flag.Uint64("seed", 1, "what the sample is drawn by")
	jobs   = flag.Int("j", runtime.NumCPU(), "how many mutants to try at a time")
	short  = flag.Bool("short", true, "run the tests with -short")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, path := range flag.Args() {
		if err := try(ctx, path); err != nil {
			fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

// try prints the mutants of a package that survive, and how many were killed.
func try(ctx context.Context, path string) error {
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	files, err := exec.CommandContext(ctx, "go", "list", "-f", "{{range .GoFiles}}{{$.Dir}}/{{.}}\n{{end}}",
		path).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	var all []mutant
	for file := range strings.FieldsSeq(string(files)) {
		found, err := mutantsOf(file)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	began, profile := time.Now(), filepath.Join(temp, "profile")
	if out, err := goTest(ctx, path, "-coverprofile="+profile).CombinedOutput(); err != nil {
		return fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
	}
	// A mutant may have made a loop endless.
	timeout := 10*time.Second + 5*time.Since(began)
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return err
	}
	// What no test runs survives by itself, and says nothing of the tests.
	covered := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !m.executed(profiles) })
	r := rand.New(rand.NewPCG(*seed, 0))
	r.Shuffle(len(covered), func(i, j int) { covered[i], covered[j] = covered[j], covered[i] })

	var killed, executed atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(max(1, *jobs))
	for i, m := range covered {
		if ctx.Err() != nil || *sample > 0 && executed.Load() >= int64(*sample) {
			break
		}
		executed.Add(1) // now, so that no worker draws one too many
		workers.Go(func() error {
			dead, err := m.kills(ctx, path, filepath.Join(temp, fmt.Sprint(i)), timeout)
			switch {
			case errors.Is(err, errNotCompiled):
				executed.Add(-1)
				return nil
			case dead:
				killed.Add(1)
			case err == nil:
				fmt.Fprintf(os.Stdout, "survived %s/%s:%d: %s\n", path, filepath.Base(m.file), m.line, &m)
			}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	k, n := killed.Load(), executed.Load()
	fmt.Fprintf(os.Stdout, "%s: %d killed of %d executed (%.1f %%), drawn of %d by seed %d; %d more are not executed\n",
		path, k, n, 100*float64(k)/float64(max(1, n)), len(covered), *seed, len(all)-len(covered))
	return nil
}

// executed reports whether the tests execute the mutant, by their coverage profile.
func (m *mutant) executed(profiles []*cover.Profile) bool {
	for _, p := range profiles {
		for _, b := range p.Blocks {
			if filepath.Base(p.FileName) == filepath.Base(m.file) && b.Count > 0 &&
				(b.StartLine < m.line || b.StartLine == m.line && b.StartCol <= m.col) &&
				(m.line < b.EndLine || m.line == b.EndLine && m.col < b.EndCol) {
				return true
			}
		}
	}
	return false
}

func goTest(ctx context.Context, path string, flags ...string) *exec.Cmd {
	// In 8 GB of address space, for mutants that allocate without end.
	args := append([]string{"-c", `ulimit -v 8388608; exec "$@"`, "sh", "go", "test", fmt.Sprintf("-short=%v", *short),
		"-count=1", "-failfast", "-vet=off"}, flags...)
	cmd := exec.CommandContext(ctx, "sh", append(args, path)...)
	cmd.Env = append(cmd.Environ(), "RAPID_NOFAILFILE=1") // else each failure is written into the tree
	// In a process group of its own, so that children of a test end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

var errNotCompiled = errors.New("the mutant does not compile")

// kills reports whether the tests fail with the mutant.
func (m *mutant) kills(ctx context.Context, path, temp string, timeout time.Duration) (bool, error) {
	source, overlay := temp+".go", temp+".json"
	replace := fmt.Appendf(nil, `{"Replace": {%q: %q}}`, m.file, source)
	if err := errors.Join(os.WriteFile(source, m.apply(), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := goTest(limited, path, "-overlay="+overlay).CombinedOutput()
	if bytes.Contains(out, []byte("[build failed]")) {
		return false, errNotCompiled
	}
	return err != nil, ctx.Err()
}
