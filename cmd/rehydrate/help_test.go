package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/cmd/internal/console"
	"rehydrate/curate/neardup"
	"rehydrate/internal/polite"
	"rehydrate/pipeline"
)

// TestHelp: every command's help fits into 60 lines of 80 columns, calls the command as it is called, shows it at work,
// and has each of its flags, with its default value.
func TestHelp(t *testing.T) {
	for _, cmd := range allCommands() {
		path := cmd.CommandPath()
		t.Run(path, func(t *testing.T) {
			var out bytes.Buffer
			args := strings.Fields(path)[1:]
			code := run(
				t.Context(),
				process{args: append(args, "--help"), getenv: func(string) string { return "" }, stdout: &out,
					stderr: &out,
					now:    time.Now},
			)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if code != exitDone || len(lines) > 60 {
				t.Errorf("exit status %d, %d lines, want at most 60", code, len(lines))
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 80 || strings.TrimRight(line, " ") != line {
					t.Errorf("%q is longer than 80 columns, or ends in a space", line)
				}
			}
			text := cmd.Annotations[pageKey]
			if cmd.Short == "" || strings.Count(cmd.Short, " ") > 12 {
				t.Errorf("the summary is %q", cmd.Short)
			}
			if text == "" || !cmd.HasParent() {
				return // cobra's own, and the list of all
			}
			if usage := "Usage: " + path; !strings.Contains(text, usage+" ") {
				t.Errorf("the help has no %q", usage)
			}
			if !strings.Contains(cmd.Example, path) {
				t.Errorf("its example %q does not call it", cmd.Example)
			}
			page := parsePage(text)
			ownFlags(cmd).VisitAll(func(f *pflag.Flag) {
				text, told := page.flags[f.Name]
				usage := text.usage
				takes := f.Value.Type() != "bool"
				switch {
				case !told:
					t.Errorf("--%s is not in the help", f.Name)
				case takes != (text.value != ""):
					t.Errorf("--%s has the value %q", f.Name, text.value)
				case takes && !slices.Contains([]string{"", "0", "[]"}, f.DefValue) &&
					!strings.Contains(usage, "(default: ") &&
					!strings.Contains(usage, "; default: "):
					t.Errorf("--%s has the default %q, of which the help says nothing", f.Name, f.DefValue)
				}
				delete(page.flags, f.Name)
			})
			for name := range page.flags {
				t.Errorf("there is no --%s", name)
			}
		})
	}
}

// TestHelpExamples: the program takes the commands that its helps show.
func TestHelpExamples(t *testing.T) {
	for _, cmd := range allCommands() {
		for _, c := range scriptCalls(strings.ReplaceAll(cmd.Example, " && ", "\n")) {
			if err := c.parse(); err != nil {
				t.Errorf("%s: rehydrate %s: %v", cmd.CommandPath(), strings.Join(c.args, " "), err)
			}
		}
	}
}

// ownFlags are a command's flags without those that all have.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != "workspace" {
			own.AddFlag(f)
		}
	})
	return own
}

// TestRootHelp: the help of the program fits on one screen, and lists every command that people call.
func TestRootHelp(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), process{args: []string{}, getenv: func(string) string { return "" }, stdout: &out,
		stderr: &out, now: time.Now}); code != exitDone {
		t.Fatalf("exit %d\n%s", code, &out)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) > 40 {
		t.Errorf("%d lines, and a screen has 40", len(lines))
	}
	listed := map[string]bool{}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%q is longer than 80 columns", line)
		}
		if name, ok := strings.CutPrefix(line, "  "); ok {
			listed[strings.Fields(name)[0]] = true
		}
	}
	for _, cmd := range (&command{}).root().Commands() {
		other := slices.Contains([]string{"version", "completion", "help", "exit-status", "man"}, cmd.Name())
		if listed[cmd.Name()] == other {
			t.Errorf("%s: listed %t", cmd.Name(), listed[cmd.Name()])
		}
	}
}

// TestGrammar: one spelling of the release, of the workspace and of what is written.
func TestGrammar(t *testing.T) {
	for _, cmd := range allCommands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "workspace" && f.Shorthand != "w", f.Name == "out" && f.Shorthand != "o":
				t.Errorf("%s: --%s has no short form", cmd.CommandPath(), f.Name)
			case slices.Contains([]string{"to", "gold", "study", "live", "recheck"}, f.Name):
				t.Errorf("%s has --%s, which is spelled otherwise now", cmd.CommandPath(), f.Name)
			}
		})
	}
}

// Progress is plain lines in a pipe, and nothing at all when quiet; a wait is said at once.
func TestObserve(t *testing.T) {
	now := time.Unix(0, 0)
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		c := &command{quiet: quiet, console: console.New("rehydrate", &out, &out, "xterm", func() time.Time { return now })}
		c.observe(pipeline.Snapshot{Stage: "read", Total: 10, Done: 1})
		now = now.Add(time.Minute)
		c.observe(pipeline.Snapshot{Stage: "read", Total: 10, Done: 5, Failed: 2})
		c.observe(
			pipeline.Snapshot{
				Stage: "read",
				Total: 10,
				Done:  5,
				Wait:  &polite.Wait{For: 3 * time.Second, Host: "i.redd.it", Reason: "it is in trouble"},
			},
		)
		c.observe(pipeline.Snapshot{Stage: "ask", Total: 10, Posts: 8})
		now = now.Add(time.Minute)
		c.observe(pipeline.Snapshot{Stage: "ask", Total: 10, Posts: 8, Asked: 4})
		c.observePictures(neardup.Progress{Stage: "hash", Total: 6})
		now = now.Add(time.Minute)
		c.observePictures(neardup.Progress{Stage: "hash", Total: 6, Done: 3})
		want := "rehydrate: read: 5 of 10 images, 0 downloaded, 0 read, 0 not available, 2 to retry, about 1m0s left\n" +
			"rehydrate: waiting 3s for i.redd.it: it is in trouble\n" +
			"rehydrate: ask: 4 of 8 posts, about 1m0s left\n" +
			"rehydrate: hash: 3 of 6 images, about 1m0s left\n"
		if quiet {
			want = ""
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("quiet %t (-want +got):\n%s", quiet, diff)
		}
	}
}

func TestDecimal(t *testing.T) {
	for v, want := range map[float64]string{-0.004: "0.00", -0.006: "-0.01", 0: "0.00", 10: "10.00"} {
		if got := decimal(&v, 2); got != want {
			t.Errorf("decimal(%v) = %s, want %s", v, got, want)
		}
	}
}
