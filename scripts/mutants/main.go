// Mutants changes one thing at a time in a package and sees whether its tests notice: what they hold, where
// coverage says only what they run.
//
//	go run ./scripts/mutants [-n 150] [-seed 1] [-j 2] [-short=false] PACKAGE...
//
// It draws n mutants that some test executes, compiles each by way of an overlay, so that no file of the tree
// changes, and runs the tests that execute the changed place. A mutant is killed when they fail, or take more than
// five times as long as before and ten seconds. Mutants that do not compile do not count. The same seed draws
// the same mutants of the same code. The exit status does not depend on how many survive.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memory bounds a mutant that allocates without end, in kB of address space.
const memory = 6 << 20

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

// A target is the package whose mutants are tried, as `go list` describes it.
type target struct {
	Dir, ImportPath                              string
	GoFiles, CgoFiles, TestImports, XTestImports []string

	tests []test
	temp  string
}

// A test is one of the package's tests with the places that it executes.
type test struct {
	name  string
	took  time.Duration
	spans []span
}

// A span is a stretch of a file that coverage counts as one; the columns are bytes, from 1.
type span struct {
	file                               string
	line, col, lastLine, lastCol, hits int
}

func try(ctx context.Context, path string) error {
	listed, err := exec.CommandContext(ctx, "go", "list", "-json", path).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	var p target
	if err := json.Unmarshal(listed, &p); err != nil {
		return err
	}
	p.temp, err = os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.temp)
	if err := p.measure(ctx); err != nil {
		return err
	}
	var all []mutant
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		found, err := mutantsOf(name, source)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return p.tryAll(ctx, all)
}

// measure runs each test alone and notes how long it takes and what it executes.
func (p *target) measure(ctx context.Context) error {
	binary := filepath.Join(p.temp, "covered.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-cover", "-o", binary, p.ImportPath).CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests: %w\n%s", err, out)
	}
	list, err := p.command(ctx, binary, "-test.list=.").Output()
	if err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	for _, name := range strings.Fields(string(list)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		profile := filepath.Join(p.temp, "profile")
		began := time.Now()
		out, err := p.command(ctx, binary, "-test.run=^"+name+"$", "-test.coverprofile="+profile).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s fails without a mutant: %w\n%s", name, err, out)
		}
		t := test{name: name, took: time.Since(began)}
		counts, err := os.ReadFile(profile)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(counts)) {
			var s span
			file, rest, _ := strings.Cut(line, ".go:")
			_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &s.line, &s.col, &s.lastLine, &s.lastCol, new(int), &s.hits)
			if err == nil && s.hits > 0 { // the first line names the mode
				s.file = filepath.Base(file) + ".go"
				t.spans = append(t.spans, s)
			}
		}
		p.tests = append(p.tests, t)
	}
	return nil
}

func (t *test) executes(m mutant) bool {
	return slices.ContainsFunc(t.spans, func(s span) bool {
		return s.file == m.file && (s.line < m.line || s.line == m.line && s.col <= m.col) &&
			(m.line < s.lastLine || m.line == s.lastLine && m.col < s.lastCol)
	})
}

// command runs a test binary where `go test` would, in a process group of its own, so that children of a test
// end with it.
func (p *target) command(ctx context.Context, binary string, args ...string) *exec.Cmd {
	if *short {
		args = append(args, "-test.short")
	}
	if slices.Contains(slices.Concat(p.TestImports, p.XTestImports), "pgregory.net/rapid") {
		args = append(args, "-rapid.nofailfile") // else each failure is written into the tree
	}
	limited := fmt.Sprintf(`ulimit -v %d; exec "$@"`, memory)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, "sh", binary}, args...)...)
	cmd.Dir = p.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// tryAll tries mutants, in order, until enough that compile have been executed, and prints those that survive.
func (p *target) tryAll(ctx context.Context, all []mutant) error {
	var mu sync.Mutex
	var failed error
	next, idle, killed, executed := 0, 0, 0, 0
	worker := func(number int) {
		mu.Lock()
		defer mu.Unlock()
		for next < len(all) && (*sample == 0 || executed < *sample) && failed == nil {
			m := all[next]
			next++
			var names []string
			timeout := 10 * time.Second
			for _, t := range p.tests {
				if t.executes(m) {
					names = append(names, regexp.QuoteMeta(t.name))
					timeout += 5 * t.took
				}
			}
			if names == nil {
				idle++
				continue
			}
			executed++ // so that the others do not draw one too many
			mu.Unlock()
			dead, err := p.kills(ctx, m, number, names, timeout)
			mu.Lock()
			switch {
			case errors.Is(err, errNotCompiled):
				executed--
				continue
			case err != nil:
				failed = err
				continue
			}
			if dead {
				killed++
				continue
			}
			fmt.Fprintf(os.Stdout, "survived %s/%s:%d: %s: %s (%d tests)\n", p.ImportPath, m.file, m.line, m.kind, m.change(), len(names))
		}
	}
	var workers sync.WaitGroup
	for number := range max(1, *jobs) {
		workers.Go(func() { worker(number) })
	}
	workers.Wait()
	if failed != nil {
		return failed
	}
	fmt.Fprintf(os.Stdout, "%s: %d killed of %d executed (%.1f %%), %d more not executed, drawn of %d by seed %d\n",
		p.ImportPath, killed, executed, 100*float64(killed)/float64(max(1, executed)), idle, len(all), *seed)
	return nil
}

var errNotCompiled = errors.New("the mutant does not compile")

// kills reports whether one of the tests of those names fails with the mutant.
func (p *target) kills(ctx context.Context, m mutant, worker int, names []string, timeout time.Duration) (bool, error) {
	temp := func(name string) string { return filepath.Join(p.temp, fmt.Sprintf("%d-%s", worker, name)) }
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(p.Dir, m.file): temp("mutant.go")}})
	if err != nil {
		return false, err
	}
	if err := errors.Join(os.WriteFile(temp("mutant.go"), m.apply(), 0o600), os.WriteFile(temp("overlay"), overlay, 0o600)); err != nil {
		return false, err
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", temp("overlay"), "-o", temp("test"), p.ImportPath)
	if out, err := build.CombinedOutput(); err != nil {
		if ctx.Err() == nil && (bytes.Contains(out, []byte("mutant.go:")) || bytes.Contains(out, []byte(m.file+":"))) {
			return false, errNotCompiled
		}
		return false, fmt.Errorf("build a mutant: %w\n%s", err, out)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = p.command(limited, temp("test"), "-test.failfast", "-test.run=^("+strings.Join(names, "|")+")$").Run()
	return err != nil, ctx.Err()
}
