package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// tryEverything confines this process and prints what it can still do. Arguments: the
// folder allowed, a file outside, an address that listens.
func tryEverything(dir, outside, address string) {
	if err := confine(dir); err != nil {
		fmt.Println("confine:", err)
		return
	}
	if _, err := os.ReadFile(filepath.Join(dir, "model")); err == nil {
		fmt.Println("read the model")
	}
	if _, err := os.ReadFile(outside); err == nil {
		fmt.Println("read another file")
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err == nil {
		fmt.Println("wrote beside the model")
	}
	if err := os.WriteFile(outside, nil, 0o600); err == nil {
		fmt.Println("wrote another file")
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		fmt.Println("connected")
	}
}

func TestConfine(t *testing.T) {
	abi, err := llsyscall.LandlockGetABIVersion()
	if err != nil || abi < 4 { // 4 has the network
		t.Skipf("this kernel has Landlock version %d (%v), 4 is needed", abi, err)
	}
	dir, outside := t.TempDir(), writeFile(t, "other", []byte("secret"))
	if err := os.WriteFile(filepath.Join(dir, "model"), []byte("model"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, "try-everything", dir, outside, listener.Addr().String()).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	done := strings.Split(strings.TrimSpace(string(out)), "\n")
	if want := []string{"read the model"}; !slices.Equal(done, want) {
		t.Errorf("a confined process did %q, want %q alone", done, want)
	}
}
