package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rehydrate/cmd/internal/console"
)

// TestToType: a command that is printed to be typed has what the one that prints it was given.
func TestToType(t *testing.T) {
	const asked = " --grant g.json --connect-to a:1:b:2"
	const demo = "the rehydrate demo that you typed"
	for _, tt := range []struct{ typed, text, want string }{
		{"purge rel -w ws --all", "rehydrate purge --all --confirm-removals",
			"rehydrate purge --all --confirm-removals -w ws"},
		{"purge rel --all", "rehydrate purge --all", "rehydrate purge --all"},
		{"export -w ws", "rehydrate export --list says why.", "rehydrate export --list -w ws says why."},
		{"export -w ws", "If so: rehydrate export --moved OLD NEW", "If so: rehydrate export --moved OLD NEW -w ws"},
		{"run rel -w ws" + asked, "rehydrate recheck RELEASE: it asks", "rehydrate recheck rel -w ws" + asked + ": it asks"},
		{"run rel" + asked, "rehydrate status, rehydrate run RELEASE", "rehydrate status, rehydrate run rel" + asked},
		{"run rel" + asked, "rehydrate run RELEASE --grant mine.json",
			"rehydrate run rel --connect-to a:1:b:2 --grant mine.json"},
		{"purge rel --approval A-1 -w ws", "rehydrate run RELEASE, or", "rehydrate run rel -w ws --approval A-1, or"},
		{"run x.csv --policy p.toml", "rehydrate run RELEASE", "rehydrate run rel --policy p.toml"},
		{"status -w ws", "rehydrate run RELEASE -w DIR", "rehydrate run RELEASE -w DIR"},
		{"purge rel --approval A-1", "rehydrate run RELEASE -w ws", "rehydrate run rel --approval A-1 -w ws"},
		{"status -w ws", "rehydrate tombstones show lists them", "rehydrate tombstones show -w ws lists them"},
		{"status -w ws", "rehydrate init DIR --manifest FILE", "rehydrate init DIR --manifest FILE"},
		{"status -w ws", "rehydrate demo --release DIR", "rehydrate demo --release DIR"},
		{"status -w made-up", "rehydrate run RELEASE tries again", demo + " tries again"},
		{"status -w made-up", "so rehydrate run: it", "so " + demo + ": it"},
		{"status -w made-up", "rehydrate run RELEASE --confirm-removals does", demo + ", with --confirm-removals does"},
		{"recheck rel -w made-up" + asked, "rehydrate run RELEASE", "rehydrate run rel -w made-up" + asked},
		{"status -w made-up", "rehydrate purge RELEASE", "rehydrate purge RELEASE -w made-up"},
		{"status -w ws", "only rehydrate can, and rehydrate 2", "only rehydrate can, and rehydrate 2"},
	} {
		c := &command{workspace: defaultWorkspace}
		words := strings.Fields(tt.typed)
		called, _, err := c.root().Find(words)
		check(t, err)
		check(t, called.ParseFlags(words[1:]))
		c.called = called
		c.madeUp = c.workspace == "made-up"
		if called.Flags().NArg() > 0 {
			c.release = "rel"
		}
		if got := strings.ReplaceAll(c.toType(tt.text), console.Joint, " "); got != tt.want {
			t.Errorf("after %q: %q became %q, want %q", tt.typed, tt.text, got, tt.want)
		}
	}
}

// TestScreensAreToType: no screen prints a command that works in a workspace without saying in which.
func TestScreensAreToType(t *testing.T) {
	files, err := filepath.Glob("screens/*.txt")
	check(t, err)
	root := (&command{}).root()
	// What these print is about another folder than the workspace.
	another := []string{"screens/annotate.txt", "screens/demo.txt", "screens/init.txt", "screens/publish.txt"}
	for _, name := range files {
		text, err := os.ReadFile(name)
		check(t, err)
		for line := range strings.Lines(string(text)) {
			plain := regexp.MustCompile(`\{\{toType "[^"]*"\}\}`).ReplaceAllString(line, "")
			for _, found := range regexp.MustCompile(`rehydrate [a-z]+( [a-z]+)?`).FindAllString(plain, -1) {
				called, _, err := root.Find(strings.Fields(found)[1:])
				if err == nil && called.Flags().Lookup("workspace") != nil && called.Name() != "demo" &&
					!strings.Contains(plain, "{{named}}") && !strings.Contains(plain, " DIR") && !slices.Contains(another, name) {
					t.Errorf("%s: %q does not say in which workspace: {{toType ...}}", name, found)
				}
			}
		}
	}
}

// TestIsServed: what an emulator prints works as long as it serves, and is nothing to schedule.
func TestIsServed(t *testing.T) {
	for name, want := range map[string]bool{"/tmp/rehydrate-demo-12/ca.pem": true, "/etc/ssl/ca.pem": false, "": false} {
		if isServed(name) != want {
			t.Errorf("isServed(%q) is %v", name, !want)
		}
	}
}
