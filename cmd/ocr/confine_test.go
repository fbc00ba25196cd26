package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"rehydrate/internal/testkit"
)

// tryEverything is a process that tries all that a worker must not do, confined if confined is "confined".
func tryEverything(confined, tessdata, where string) {
	var o outside
	if err := json.Unmarshal([]byte(where), &o); err != nil {
		fmt.Println(err)
		return
	}
	var did confinement
	if confined == "confined" {
		var err error
		if did, err = confine(tessdata); err != nil {
			fmt.Println("confine:", err)
			return
		}
	}
	if err := tryOutside(o, did, os.Stdout); err != nil {
		fmt.Println(err)
	}
}

// try has a process make every attempt, with somebody at the other end of each.
func try(t *testing.T, confined string) (got trial, became bool) {
	t.Helper()
	dir := t.TempDir()
	o := outside{File: self(t).Path, Dir: dir, Unix: filepath.Join(dir, "socket"), Parent: os.Getpid()}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	local, err := net.Listen("unix", o.Unix)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	o.TCP, o.UDP = netip.MustParseAddrPort(tcp.Addr().String()), netip.MustParseAddrPort(udp.LocalAddr().String())
	where, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := self(t, "try-everything", confined, t.TempDir(), string(where)).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said, rest, _ := strings.Cut(string(out), "\n")
	if err := json.Unmarshal([]byte(said), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return got, strings.Contains(rest, becameAnother)
}

// TestConfine: whatever a worker tries after confine is refused, though somebody listens wherever it reaches for.
func TestConfine(t *testing.T) {
	if !listedCalls {
		t.Skip("no list of calls for this system")
	}
	got, became := try(t, "confined")
	abi, err := llsyscall.LandlockGetABIVersion()
	if err != nil {
		abi = 0
	}
	want := trial{Confinement: confinement{Landlock: abi, Seccomp: true}, Tried: len(attempts)}
	testkit.Same(t, "a confined process", want, got)
	if became {
		t.Error("a confined process started a program")
	}
	// The same attempts succeed without it: what is refused above is refused by the confinement.
	free, became := try(t, "free")
	for _, name := range []string{"read a file", "write a file", "look up a file", "connect by TCP", "listen by TCP",
		"send by UDP",
		"connect to a UNIX socket", "open a netlink socket", "make a pair of sockets", "fork", "signal a process",
		"make a file in memory"} {
		if !slices.Contains(free.Done, name) {
			t.Errorf("a free process could not %s: it could %q", name, free.Done)
		}
	}
	if !became {
		t.Error("a free process could not start a program")
	}
}

// TestTrial: what doctor says is what was tried.
func TestTrial(t *testing.T) {
	for _, tt := range []struct {
		trial
		want string
	}{
		{trial{confinement{7, true}, 25, nil},
			"landlock, version 7, and seccomp: a worker tried 25 ways to reach files, the network " +
				"and other processes, and was refused each"},
		{trial{confinement{7, false}, 25, []string{"send by UDP", "fork"}},
			"landlock, version 7, without seccomp: of 25 ways to reach " +
				"files, the network and other processes, a worker had 2: it could send by UDP, fork"},
		{trial{confinement{0, true}, 25, []string{"fork"}},
			"seccomp, without landlock: of 25 ways to reach files, the network and other " +
				"processes, a worker had 1: it could fork"},
		{trial{confinement{}, 25, []string{"read a file"}},
			"this kernel has neither landlock nor seccomp for this program, and OCR workers " +
				"run without them: of 25 ways to reach files, the network and other processes, a worker had 1: it could read a file"},
		{trial{Tried: 1, Done: []string{"start a program"}},
			"OCR workers are confined on Linux alone: here they can reach files and the " +
				"network, and are given pixels alone"},
	} {
		testkit.Same(t, tt.Confinement.String(), tt.want, tt.trial.String())
	}
}
