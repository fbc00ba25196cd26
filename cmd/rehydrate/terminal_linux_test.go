package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// terminal returns a terminal of so many columns to write to, and what it got once that is closed.
func terminal(t testing.TB, columns uint16) (tty *os.File, screen <-chan string) {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	t.Cleanup(func() { ptmx.Close() })
	fd := int(ptmx.Fd())
	check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	check(t, err)
	check(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	got := make(chan string, 1)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, ptmx) // ends with an error when the last writer is gone
		got <- strings.ReplaceAll(b.String(), "\r\n", "\n")
	}()
	return tty, got
}

// onTerminal runs a command with stdout and stderr on a terminal of so many columns, and returns what the terminal got.
func (s *site) onTerminal(columns uint16, args ...string) string {
	s.t.Helper()
	tty, screen := terminal(s.t, columns)
	env := s.env()
	env["TERM"] = "xterm"
	run(s.t.Context(), process{args: args, getenv: func(k string) string { return env[k] }, stdin: strings.NewReader(""),
		stdout: tty, stderr: tty, executable: os.Executable, now: s.now, stop: s.stop})
	check(s.t, tty.Close())
	return <-screen
}

// TestColumns: on a terminal of 80 columns no line is longer, and no word is broken.
func TestColumns(t *testing.T) {
	s := newSite(t, fewAnnotations(fewPosts(3)), fastPolicy, fewPosts(3)...)
	run := s.onTerminal(80, s.args()...)
	frames := 0
	for line := range strings.SplitSeq(run, "\r") {
		line, _, _ = strings.Cut(line, "\x1b[0K") // behind it the line is erased
		if strings.Contains(line, "% |") {
			frames++
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("the bar has %d columns: %q", n, line)
			}
		}
	}
	if frames < 2 {
		t.Errorf("%d bars were drawn\n%q", frames, run)
	}
	commands := [][]string{{"status", "-w", s.workspace}, {"explain", "few001", "-w", s.workspace},
		{"doctor", s.release, "-w", s.workspace},
		{"verify", "-w", s.workspace}, {"labels", "stats", s.release}, {"recheck", "--retry", "gone", "x"}, {"run", "-w"},
		{"audit", s.release, "--offline", "-w", s.workspace}, {"version"},
		{"status", "-w", s.workspace + "/a/folder/that/is not/there"}}
	for _, cmd := range allCommands() {
		if !cmd.Hidden {
			commands = append(commands, append(strings.Fields(cmd.CommandPath())[1:], "--help"))
		}
	}
	for _, args := range commands {
		screen, plain := s.onTerminal(80, args...), s.do(s.env(), args...)
		for line := range strings.Lines(screen) {
			words := len(strings.Fields(line))
			// A command that is to be typed is whole on a line of its own, however long its paths are.
			command := strings.TrimSpace(line)
			typed := strings.HasPrefix(command, "rehydrate ") && strings.Contains(plain.stdout+plain.stderr, command)
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 && words > 1 && !typed {
				t.Errorf("%q: %d columns: %s", args, n, line)
			}
		}
		if args[0] == "doctor" || args[0] == "audit" { // they tell the time
			continue
		}
		if got, want := strings.Fields(screen), strings.Fields(plain.stdout+plain.stderr); !slices.Equal(got, want) {
			t.Errorf("%q: other words than in a pipe:\n%s\n%s", args, screen, plain.stdout+plain.stderr)
		}
		// Help has the same lines wherever it goes.
		if slices.Contains(args, "--help") && screen != plain.stdout {
			t.Errorf("%q differs in a pipe:\n%s", args, plain.stdout)
		}
	}
}
