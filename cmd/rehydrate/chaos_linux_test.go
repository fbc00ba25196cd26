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
	"sync/atomic"
	"testing"
)

// A fault makes one system call fail in strace's hands, or kills the process before it. strace counts the calls of each
// thread by themselves.
type fault struct {
	calls string // as strace names them
	errno string // or KILL
}

var faults = []fault{
	{"fsync,fdatasync", "EIO"},
	{"pwrite64", "ENOSPC"},
	{"pwrite64", "EIO"},
	{"?rename,renameat,renameat2", "EROFS"},
	{"?unlink,unlinkat", "EIO"},
	{"mkdirat", "ENOSPC"},
	{"ftruncate", "EIO"},
	{"fsync,fdatasync", "KILL"},
	{"pwrite64", "KILL"},
	{"?rename,renameat,renameat2", "KILL"},
	{"?unlink,unlinkat", "KILL"},
}

// said are the words of the program for an error: those of the system, or SQLite's.
var said = map[string]*regexp.Regexp{
	"EIO":    regexp.MustCompile(`input/output error|disk I/O error`),
	"ENOSPC": regexp.MustCompile(`no space left on device|database or disk is full`),
	"EROFS":  regexp.MustCompile(`read-only file system`),
}

// named finds the file: in the workspace, or by its whole path.
var named = regexp.MustCompile(`/ws\b|\b(images|dataset|audit)\b|\S+\.csv`)

// whens chooses calls of each thread, as strace writes them: the n-th one, or all from it on. No thread makes more than
// most.
func (f fault) whens(random *rand.Rand, most int) []string {
	any := func(from, n int) string { return fmt.Sprint(from + random.IntN(max(1, min(n, most-from+1)))) }
	switch {
	case f.errno == "KILL" && !full():
		return []string{any(1, 3), any(4, 12)}
	case !full():
		return []string{"1+", any(2, 10)}
	}
	var all []string
	for n := 1; n <= min(12, most); n++ {
		all = append(all, fmt.Sprint(n))
	}
	for range min(4, max(0, most-12)) {
		all = append(all, any(13, 60))
	}
	if f.errno != "KILL" {
		all = append(all, "1+", any(2, 20)+"+", any(min(20, most), 40)+"+")
	}
	return all
}

// works returns nil where a command line ends well.
func works(t *testing.T, line ...string) error {
	if out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line[0], err, out)
	}
	return nil
}

// TestCallsFail makes calls of a run fail as a dying, a full and a read-only disk would, and kills it before calls: it
// ends with a status that says so and names the workspace, leaves nothing that is not whole, and is completed once the
// disk is well.
func TestCallsFail(t *testing.T) {
	long(t)
	t.Parallel()
	orSkip(t, "strace", works(t, "strace", "-f", "-qqq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync",
		"-e", "inject=fsync:error=EIO", "true"))
	random, _ := chance(t)
	c := newChaosSite(t)
	var points, hits atomic.Int32
	most := map[string]int{}
	for _, f := range faults {
		if most[f.calls] == 0 {
			most[f.calls] = c.at(t, place(t)).most(t, f.calls)
		}
	}
	t.Run("of", func(t *testing.T) {
		for _, f := range faults {
			for _, when := range f.whens(random, most[f.calls]) {
				points.Add(1)
				t.Run(fmt.Sprint(f.calls, " ", f.errno, " ", when), func(t *testing.T) {
					t.Parallel()
					c := c.at(t, place(t))
					got, calls := c.failing(t, f, when)
					if len(calls) > 0 {
						hits.Add(1)
					}
					c.failed(t, f, got, calls)
					c.unsettled(t)
					c.finish(t)
					c.settled(t, c.want)
				})
			}
		}
	})
	t.Logf("%d of %d runs had calls that failed", hits.Load(), points.Load())
	if hits.Load() < points.Load()/2 {
		t.Error("too few runs had calls that failed")
	}
}

// most returns how many of the calls the thread makes that makes the most, in a run in which none fails.
func (c *chaosSite) most(t *testing.T, calls string) (most int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "strace")
	outcome(t, c.command(t.Context(), []string{"strace", "-f", "-qqq", "--seccomp-bpf", "-o", log, "-e", "signal=none",
		"-e", "trace=" + calls, "--"}, c.runArgs()...))
	of := map[string]int{}
	for line := range strings.Lines(read(t, log)) {
		thread, _, _ := strings.Cut(line, " ")
		of[thread]++
		most = max(most, of[thread])
	}
	return most
}

// failing runs the release while calls fail; it returns those that did, as strace saw them.
func (c *chaosSite) failing(t *testing.T, f fault, when string) (finished, []string) {
	t.Helper()
	how := "error=" + f.errno
	if f.errno == "KILL" {
		how = "signal=SIGKILL"
	}
	log := filepath.Join(t.TempDir(), "strace")
	got := outcome(t, c.command(t.Context(), []string{"strace", "-f", "-qqq", "--seccomp-bpf", "-y", "-o", log, "-e",
		"signal=none",
		"-e", "trace=" + f.calls, "-e", fmt.Sprintf("inject=%s:%s:when=%s", f.calls, how, when), "--"}, c.runArgs()...))
	var calls []string
	for line := range strings.Lines(read(t, log)) {
		if strings.Contains(line, "(INJECTED)") {
			calls = append(calls, strings.TrimSpace(line))
		}
	}
	if got.code == -1 {
		calls = []string{"killed"}
	}
	return got, calls
}

// failed asserts that a run whose calls failed says so.
func (c *chaosSite) failed(t *testing.T, f fault, got finished, calls []string) {
	t.Helper()
	switch {
	case f.errno == "KILL" && got.code == -1:
	case len(calls) == 0 || f.errno == "KILL":
		if got.code != exitDone {
			t.Errorf("nothing failed, and exit %d\n%s", got.code, got.stderr)
		}
	case got.code == exitDone:
		c.settled(t, c.want)
		// SQLite goes on where the folder of a new journal can't be synced.
		harmless := func(call string) bool {
			return strings.Contains(call, "sync(") && strings.Contains(call, "<"+c.workspace+">)")
		}
		if f.errno != "EIO" || slices.ContainsFunc(calls, func(call string) bool { return !harmless(call) }) {
			t.Errorf("exit 0 although calls failed:\n%s", strings.Join(calls, "\n"))
		}
	case got.code != exitFailed || !named.MatchString(got.stderr) || !said[f.errno].MatchString(got.stderr):
		t.Errorf("exit %d, want %d, the name of a file and %s:\n%s%s", got.code, exitFailed, f.errno, got.stderr,
			strings.Join(calls, "\n"))
	}
}

// onSmallDisk runs, on a disk of size KiB, then on one that is large enough, and leaves copies of the workspace after
// both.
const onSmallDisk = `size=$1 disk=$2 out=$3; shift 3
mount -t tmpfs -o size=${size}k none "$disk" || exit 99
"$@"; code=$?
cp -a "$disk/ws" "$out/full" || exit 99
mount -o remount,size=64m "$disk" || exit 99
"$@" >/dev/null 2>"$out/cured.err" || exit 98
cp -a "$disk/ws" "$out/cured" || exit 99
exit $code`

// TestFullDisk runs on disks that are too small: the run fails, names the workspace and says to free some space; what
// has its final name is whole; and with more space the next run goes on.
func TestFullDisk(t *testing.T) {
	long(t)
	t.Parallel()
	orSkip(t, "unshare", works(t, "unshare", "-r", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"))
	random, _ := chance(t)
	c := newChaosSite(t)
	sizes := []int{16 + 4*random.IntN(10), 60 + 4*random.IntN(20), 140 + 4*random.IntN(15)}
	for size := 16; full() && size <= 220; size += 4 {
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size, "KiB"), func(t *testing.T) {
			t.Parallel()
			disk, out := t.TempDir(), t.TempDir()
			c := c.at(t, filepath.Join(disk, "ws"))
			under := []string{"unshare", "-r", "-m", "sh", "-c", onSmallDisk, "sh", fmt.Sprint(size), disk, out}
			outcome(t, c.command(t.Context(), under, c.runArgs()...)).want(t, exitFailed, c.workspace, "free some space")
			c.at(t, filepath.Join(out, "full")).unsettled(t)
			c.at(t, filepath.Join(out, "cured")).settled(t, c.want)
		})
	}
}

// TestFewFiles runs with few open files allowed: it fails and says so, and goes on when it may open more.
func TestFewFiles(t *testing.T) {
	long(t)
	t.Parallel()
	c := newChaosSite(t)
	for n := 8; n <= 18; n += often(1, 4) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := c.at(t, place(t))
			got := outcome(t, c.command(t.Context(),
				[]string{"sh", "-c", fmt.Sprintf("ulimit -n %d && exec \"$@\"", n), "sh"}, c.runArgs()...))
			if got.code == exitDone || !strings.Contains(got.stderr, "too many open files") {
				t.Errorf("exit %d\n%s", got.code, got.stderr)
			}
			if _, err := os.Stat(c.workspace); err == nil {
				c.unsettled(t)
			}
			c.finish(t)
			c.settled(t, c.want)
		})
	}
}

// TestReadOnly works without a network in a folder that may only be read: what writes fails and names it, what reads
// works, and nothing is changed.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	orSkip(t, "right to make namespaces", works(t, "unshare", "-r", "-m", "-n", "true"))
	c := newChaosSite(t)
	const readOnly = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"`
	in := func(folder string, args ...string) finished {
		return outcome(t, c.command(t.Context(), []string{"unshare", "-r", "-m", "-n", "sh", "-c", readOnly, "sh",
			folder}, args...))
	}
	before := tree(t, c.workspace)
	for _, args := range [][]string{c.runArgs(), c.purgeArgs(), {"report", "-w", c.workspace}} {
		in(c.workspace, args...).want(t, exitFailed, c.workspace, "read-only file system")
	}
	for _, args := range [][]string{{"status"}, {"verify"}, {"explain", "1haos00"}, {"audit", c.release, "--offline"}} {
		f := in(c.workspace, append(args, "-w", c.workspace)...)
		f.want(t, exitDone)
		if args[0] == "audit" && (!strings.Contains(f.stdout, "\nPASS ") ||
			!strings.Contains(f.stderr, "not recorded in the log: ")) {
			t.Errorf("audit says\n%s%s", f.stdout, f.stderr)
		}
	}
	for name, text := range tree(t, c.workspace) {
		if before[name] != text {
			t.Errorf("%s was changed", name)
		}
	}
	fresh := c.at(t, place(t))
	in(filepath.Dir(fresh.workspace), fresh.runArgs()...).want(t, exitFailed, fresh.workspace)
}
