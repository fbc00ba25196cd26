package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A fault makes one system call fail in strace's hands. strace counts the calls of each thread by themselves.
type fault struct {
	calls string // as strace names them
	errno string
}

var faults = []fault{
	{"fsync,fdatasync", "EIO"},
	{"pwrite64", "ENOSPC"},
	{"pwrite64", "EIO"},
	{"?rename,renameat,renameat2", "EROFS"},
	{"?unlink,unlinkat", "EIO"},
	{"mkdirat", "ENOSPC"},
	{"ftruncate", "EIO"},
}

// said are the words of the program for an error: those of the system, or SQLite's.
var said = map[string]*regexp.Regexp{
	"EIO":    regexp.MustCompile(`input/output error|disk I/O error`),
	"ENOSPC": regexp.MustCompile(`no space left on device|database or disk is full`),
	"EROFS":  regexp.MustCompile(`read-only file system`),
}

// named finds the file: in the workspace, or by its whole path.
var named = regexp.MustCompile(`/ws\b|\b(images|dataset|audit)\b|\S+\.csv`)

// A when says which call of a thread fails: the n-th one, or all from it on.
type when struct {
	n     int
	lasts bool
}

func (w when) String() string {
	if w.lasts {
		return fmt.Sprint(w.n, "+")
	}
	return fmt.Sprint(w.n)
}

// whens chooses calls of each thread, the first among them.
func whens(random *rand.Rand) []when {
	if !full() {
		return []when{{1, true}, {2 + random.IntN(10), false}}
	}
	var all []when
	for n := 1; n <= 12; n++ {
		all = append(all, when{n, false})
	}
	for range 4 {
		all = append(all, when{13 + random.IntN(60), false})
	}
	return append(all, when{1, true}, when{2 + random.IntN(20), true}, when{20 + random.IntN(40), true})
}

// canStrace returns nil where strace can make the calls of a process fail.
func canStrace(t *testing.T) error {
	out, err := exec.CommandContext(t.Context(), "strace", "-f", "-qqq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync",
		"-e", "inject=fsync:error=EIO", "true").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// failing runs a command line whose calls fail; it returns those that did, as strace saw them.
func (c *chaosSite) failing(t *testing.T, f fault, w when, args []string) (finished, []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "strace")
	cmd := c.under(t.Context(), []string{"strace", "-f", "-qqq", "--seccomp-bpf", "-y", "-o", log, "-e", "signal=none", "-e", "trace=" + f.calls,
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%s", f.calls, f.errno, w), "--"}, args...)
	got := outcome(t, cmd)
	var hits []string
	for line := range strings.Lines(read(t, log)) {
		if strings.Contains(line, "(INJECTED)") {
			hits = append(hits, strings.TrimSpace(line))
		}
	}
	return got, hits
}

// outcome runs a command to its end.
func outcome(t *testing.T, cmd *exec.Cmd) finished {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return finished{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// TestChaosCallsFail makes calls of a run fail as a dying, a full and a read-only disk would: it ends with a status that
// says so and names the workspace, leaves nothing that is not whole, and is completed once the disk is well.
func TestChaosCallsFail(t *testing.T) {
	long(t)
	t.Parallel()
	orSkip(t, "strace", canStrace(t))
	random, _ := chance(t)
	c := newChaosSite(t)
	var hit strikes
	points := 0
	t.Run("of", func(t *testing.T) {
		for _, f := range faults {
			for _, w := range whens(random) {
				points++
				t.Run(fmt.Sprintf("%s %s %v", f.calls, f.errno, w), func(t *testing.T) {
					t.Parallel()
					c := c.at(t, c.place(t))
					got, hits := c.failing(t, f, w, c.runArgs())
					if len(hits) > 0 {
						hit.add(f.calls + " " + f.errno)
					}
					c.failed(t, f, got, hits)
					c.unsettled(t)
					c.finish(t)
					c.settled(t, c.want)
				})
			}
		}
	})
	t.Logf("%d of %d runs had calls that failed: %v", hit.sum(), points, hit.kinds)
	if hit.sum() < points/2 || len(hit.kinds) != len(faults) {
		t.Errorf("only %d of %d runs had calls that failed", hit.sum(), points)
	}
}

// failed asserts that a run whose calls failed says so.
func (c *chaosSite) failed(t *testing.T, f fault, got finished, hits []string) {
	t.Helper()
	if len(hits) == 0 {
		if got.code != exitDone {
			t.Errorf("nothing failed, and exit %d\n%s", got.code, got.stderr)
		}
		return
	}
	if got.code == exitDone {
		c.settled(t, c.want)
		// SQLite goes on where the folder of a new journal can't be synced.
		folder := func(hit string) bool {
			return strings.Contains(hit, "sync(") && strings.Contains(hit, "<"+c.workspace+">)")
		}
		if f.errno != "EIO" || slices.ContainsFunc(hits, func(hit string) bool { return !folder(hit) }) {
			t.Errorf("exit 0 although calls failed:\n%s", strings.Join(hits, "\n"))
		}
		return
	}
	if got.code != exitFailed || !named.MatchString(got.stderr) || !said[f.errno].MatchString(got.stderr) {
		t.Errorf("exit %d, want %d, the name of a file and %s:\n%s%s", got.code, exitFailed, f.errno, got.stderr, strings.Join(hits, "\n"))
	}
}

// canMount returns nil where a test may mount something in a namespace of its own.
func canMount(t *testing.T) error {
	out, err := exec.CommandContext(t.Context(), "unshare", "-r", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt").CombinedOutput()
	if err != nil {
		return fmt.Errorf("unshare: %w: %s", err, out)
	}
	return nil
}

// onSmallDisk runs, on a disk of size KiB, then on one that is large enough, and leaves copies of the workspace after
// both.
const onSmallDisk = `size=$1 disk=$2 out=$3; shift 3
mount -t tmpfs -o size=${size}k none "$disk" || exit 99
"$@"; code=$?
cp -a "$disk/ws" "$out/full" || exit 99
mount -o remount,size=64m "$disk" || exit 99
"$@" >/dev/null 2>"$out/cured.err"; echo $? >"$out/cured.code"
cp -a "$disk/ws" "$out/cured" || exit 99
exit $code`

// TestChaosFullDisk runs on disks that are too small: the run fails, names the workspace and says to free some space; what
// has its final name is whole; and with more space the next run goes on.
func TestChaosFullDisk(t *testing.T) {
	long(t)
	t.Parallel()
	orSkip(t, "unshare", canMount(t))
	random, _ := chance(t)
	c := newChaosSite(t)
	sizes := []int{16 + 4*random.IntN(10), 60 + 4*random.IntN(20), 140 + 4*random.IntN(15)}
	if full() {
		sizes = nil
		for size := 16; size <= 220; size += 4 {
			sizes = append(sizes, size)
		}
	}
	var hit strikes
	t.Run("of", func(t *testing.T) {
		for _, size := range sizes {
			t.Run(fmt.Sprint(size, "KiB"), func(t *testing.T) {
				t.Parallel()
				disk, out := t.TempDir(), t.TempDir()
				c := c.at(t, filepath.Join(disk, "ws"))
				got := outcome(t, c.under(t.Context(), []string{"unshare", "-r", "-m", "sh", "-c", onSmallDisk, "sh", fmt.Sprint(size), disk, out}, c.runArgs()...))
				if got.code != exitFailed || !strings.Contains(got.stderr, c.workspace) || !strings.Contains(got.stderr, "free some space") {
					t.Errorf("exit %d, want %d, the workspace's name and what to do:\n%s", got.code, exitFailed, got.stderr)
				} else {
					hit.add("full")
				}
				c.at(t, filepath.Join(out, "full")).unsettled(t)
				if code := strings.TrimSpace(read(t, filepath.Join(out, "cured.code"))); code != "0" {
					t.Fatalf("with more space: exit %s\n%s", code, read(t, filepath.Join(out, "cured.err")))
				}
				c.at(t, filepath.Join(out, "cured")).settled(t, c.want)
			})
		}
	})
	hit.check(t, len(sizes))
}

// TestChaosFewFiles runs with few open files allowed: it fails and says so, and goes on when it may open more.
func TestChaosFewFiles(t *testing.T) {
	long(t)
	t.Parallel()
	c := newChaosSite(t)
	var hit strikes
	limits := []int{9, 12, 15}
	if full() {
		limits = []int{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}
	}
	t.Run("of", func(t *testing.T) {
		for _, n := range limits {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				c := c.at(t, c.place(t))
				got := outcome(t, c.under(t.Context(), []string{"sh", "-c", fmt.Sprintf("ulimit -n %d && exec \"$@\"", n), "sh"}, c.runArgs()...))
				if got.code == exitDone || !strings.Contains(got.stderr, "too many open files") {
					t.Errorf("exit %d\n%s", got.code, got.stderr)
				} else {
					hit.add(fmt.Sprint("exit ", got.code))
				}
				if _, err := os.Stat(c.workspace); err == nil {
					c.unsettled(t)
				}
				c.finish(t)
				c.settled(t, c.want)
			})
		}
	})
	hit.check(t, len(limits))
}

// TestChaosReadOnly runs, and purges, in a folder that may only be read: both fail and name it, what reads works, and nothing is
// changed.
func TestChaosReadOnly(t *testing.T) {
	long(t)
	t.Parallel()
	orSkip(t, "unshare", canMount(t))
	c := newChaosSite(t)
	const readOnly = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"`
	in := func(folder string, args ...string) finished {
		return outcome(t, c.under(t.Context(), []string{"unshare", "-r", "-m", "sh", "-c", readOnly, "sh", folder}, args...))
	}
	before := everyFile(t, c.workspace)
	for _, args := range [][]string{c.runArgs(), c.purgeArgs(), {"report", "-w", c.workspace}} {
		if got := in(c.workspace, args...); got.code != exitFailed || !strings.Contains(got.stderr, c.workspace) || !strings.Contains(got.stderr, "read-only file system") {
			t.Errorf("%s = exit %d\n%s", args[0], got.code, got.stderr)
		}
	}
	for _, args := range [][]string{{"status", "-w", c.workspace}, {"verify", "-w", c.workspace}, {"explain", "chaos00", "-w", c.workspace}} {
		if got := in(c.workspace, args...); got.code != exitDone {
			t.Errorf("%s = exit %d\n%s", args[0], got.code, got.stderr)
		}
	}
	for name, b := range everyFile(t, c.workspace) {
		if string(before[name]) != string(b) {
			t.Errorf("%s was changed", name)
		}
	}
	fresh := c.at(t, c.place(t))
	if got := in(filepath.Dir(fresh.workspace), fresh.runArgs()...); got.code != exitFailed || !strings.Contains(got.stderr, fresh.workspace) {
		t.Errorf("run in a folder where none can be made = exit %d\n%s", got.code, got.stderr)
	}
	fresh.finish(t)
	fresh.settled(t, c.want)
}
