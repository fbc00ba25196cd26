package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/pipeline/ocr"
)

// outside is what a confined worker reaches for when it tries what it can do. None of it is the worker's.
type outside struct {
	File     string         // a program: a file that can be read, and started
	Dir      string         // a folder that can be written
	Unix     string         // where a UNIX socket may listen
	TCP, UDP netip.AddrPort // where something may listen, on this machine
	Parent   int            // a process of the same user
}

// A trial is what a confined worker says of itself.
type trial struct {
	Confinement confinement `json:"confinement"`
	Tried       int         `json:"tried"`
	Done        []string    `json:"done"` // the attempts that were not refused
}

// becameAnother is what a worker's process prints where it could start another program.
const becameAnother = "became another program"

// trySandbox is a worker that tries to do what it must not, in place of reading. It is confined as any worker is. self
// is the program that it tries to start.
func trySandbox(env []string, self string, stdout io.Writer) (err error) {
	r, did, err := startEngine(env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	nobody := netip.MustParseAddrPort("127.0.0.1:9") // the port for what is to be discarded
	o := outside{File: self, Dir: os.TempDir(), Unix: os.TempDir() + "/none", TCP: nobody, UDP: nobody,
		Parent: os.Getppid()}
	return tryOutside(o, did, stdout)
}

// tryOutside makes every attempt and prints the trial, then tries to become the program o.File.
func tryOutside(o outside, did confinement, stdout io.Writer) error {
	t := trial{Confinement: did}
	t.Tried, t.Done = tryAll(o)
	if err := json.NewEncoder(stdout).Encode(t); err != nil {
		return fmt.Errorf("say what was tried: %w", err)
	}
	// The last attempt, since what was printed is all that is left of this process where it is not refused.
	_ = become(o.File, "became")
	return nil
}

// becameCommand is what a worker becomes that can start programs.
func becameCommand(stdout io.Writer) *cobra.Command {
	return &cobra.Command{Use: "became", Hidden: true, Args: noArgs, RunE: func(*cobra.Command, []string) error {
		return toStdout(stdout, becameAnother+"\n")
	}}
}

// sandboxCommand is what doctor starts in place of a worker.
func sandboxCommand(env []string, stdout io.Writer) *cobra.Command {
	return &cobra.Command{Use: "sandbox PROGRAM", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return trySandbox(env, args[0], stdout)
		}}
}

// sandbox has a worker try what it can do, and says what came of it.
func sandbox(ctx context.Context, c ocr.Config) (string, error) {
	cmd := exec.CommandContext(ctx, c.Command[0], "sandbox", c.Command[0])
	cmd.Env = c.Environment()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	said, rest, _ := strings.Cut(out.String(), "\n")
	var t trial
	if unread := json.Unmarshal([]byte(said), &t); err != nil || unread != nil {
		return "", fmt.Errorf("have a worker try its confinement: %w: %.200s", cmp.Or(err, unread),
			bytes.TrimSpace(errs.Bytes()))
	}
	t.Tried++
	if strings.Contains(rest, becameAnother) {
		t.Done = append(t.Done, "start a program")
	}
	return t.String(), nil
}

// String says what a worker could do, and why.
func (t trial) String() string {
	by := t.Confinement.String()
	switch {
	case t.Tried <= 1: // what is tried on any system is to start a program
		return "OCR workers are confined on Linux alone: here they can reach files and the network, and are given pixels alone"
	case len(t.Done) == 0:
		return fmt.Sprintf("%s: a worker tried %d ways to reach files, the network and other processes, and was refused each", by, t.Tried)
	default:
		return fmt.Sprintf("%s: of %d ways to reach files, the network and other processes, a worker had %d: it could %s",
			by, t.Tried, len(t.Done), strings.Join(t.Done, ", "))
	}
}
