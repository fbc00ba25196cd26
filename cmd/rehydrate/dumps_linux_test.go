package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rehydrate/internal/testkit"
)

// TestNoDumps: the memory of a running rehydrate, and the environment that it was started with, are in no crash dump,
// and no other process of the user can read them. The kernel then gives what /proc shows of them to root, whoever
// started it.
func TestNoDumps(t *testing.T) {
	self, err := exec.LookPath("rehydrate")
	testkit.OK(t, err)
	dir := t.TempDir()
	program := filepath.Join(dir, "rehydrate")
	testkit.OK(t, copyProgram(self, program))
	cmd := exec.CommandContext(t.Context(), program, "demo", "--serve", "-w", filepath.Join(dir, "ws"))
	if os.Getuid() == 0 {
		const nobody = 65534
		testkit.OK(t, os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, nobody, nobody),
			os.Chown(program, nobody, nobody))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	testkit.OK(t, err)
	cmd.Stderr = cmd.Stdout
	testkit.OK(t, cmd.Start())
	said := bufio.NewScanner(out)
	for said.Scan() && !strings.Contains(said.Text(), "--connect-to") {
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
	testkit.OK(t, err)
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("user %d can read the memory of rehydrate", uid)
	}
	testkit.OK(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // an interrupt is no success
}
