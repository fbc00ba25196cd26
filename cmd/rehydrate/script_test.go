package main

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs every script of testdata/script. Beside testscript's own commands there is
//
//	exits STATUS COMMAND [ARG...]
//
// which fails unless the command ends with exactly that status.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				got := 0
				var status *exec.ExitError
				switch err := ts.Exec(args[1], args[2:]...); {
				case errors.As(err, &status):
					got = status.ExitCode()
				default:
					ts.Check(err)
				}
				if got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
		},
	})
}
