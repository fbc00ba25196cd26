package scratch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rehydrate/internal/testkit"
)

// childVar makes the test binary a process that holds a folder until it is killed.
const childVar = "REHYDRATE_TEST_SCRATCH"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	f, err := NewFolder()
	if err == nil {
		err = os.WriteFile(filepath.Join(f.Path, "state.db"), []byte("erased"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(f.Path)
	time.Sleep(time.Hour) // with nothing to wait for it would end as a deadlock
}

func names(t *testing.T) (all []string) {
	t.Helper()
	found, err := os.ReadDir(os.TempDir())
	testkit.OK(t, err)
	for _, e := range found {
		all = append(all, e.Name())
	}
	return all
}

func inTemp(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR")) // that of Windows
}

// TestFile writes a file, reads it back, and finds no name of it after it was closed.
func TestFile(t *testing.T) {
	inTemp(t)
	f, err := File()
	testkit.OK(t, err)
	_, err = f.WriteString("content")
	testkit.OK(t, err)
	got, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
	testkit.Same(t, "content", "content", string(got), err)
	testkit.OK(t, f.Close())
	testkit.Same(t, "names that are left", 0, len(names(t)))
}

// TestSweep finds what a process holds that lives, and removes it once the process was killed; nothing else goes.
func TestSweep(t *testing.T) {
	inTemp(t)
	for _, other := range []string{"rehydrate-demo-1", "rehydrate-private", "x" + prefix} {
		testkit.OK(t, os.Mkdir(filepath.Join(os.TempDir(), other), 0o700))
	}
	aside := filepath.Join(t.TempDir(), "aside")
	testkit.OK(t, os.WriteFile(aside, []byte("not ours to remove"), 0o600))
	testkit.OK(t, os.Symlink(filepath.Dir(aside), filepath.Join(os.TempDir(), prefix+"link")))
	mine, err := NewFolder()
	testkit.OK(t, err)
	before := names(t)

	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVar+"=1")
	out, err := child.StdoutPipe()
	testkit.OK(t, err)
	testkit.OK(t, child.Start())
	path, err := bufio.NewReader(out).ReadString('\n')
	testkit.OK(t, err)
	path = path[:len(path)-1]
	testkit.OK(t, Sweep())
	_, err = os.Stat(filepath.Join(path, "state.db"))
	testkit.Same(t, "what a process holds that lives", nil, err)

	testkit.OK(t, child.Process.Kill())
	_ = child.Wait() // its error says that it was killed
	testkit.OK(t, Sweep())
	testkit.Same(t, "names that are left", before, names(t))
	testkit.OK(t, mine.Remove())
	testkit.Same(t, "once the folder is removed", len(before)-1, len(names(t)))
	_, err = os.Stat(aside)
	testkit.Same(t, "what a link leads to", nil, err)
}
