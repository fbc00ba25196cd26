package main

import (
	"fmt"
	"net"
	"os"
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
	dir, outside := writeTree(t, map[string][]byte{"model": []byte("model")}), writeFile(t, "other", []byte("secret"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	out, err := self(t, "try-everything", dir, outside, listener.Addr().String()).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	done := strings.Split(strings.TrimSpace(string(out)), "\n")
	if want := []string{"read the model"}; !slices.Equal(done, want) {
		t.Errorf("a confined process did %q, want %q alone", done, want)
	}
}
