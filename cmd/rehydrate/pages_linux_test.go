package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

// asPrinted are what differs from run to run and from machine to machine, and the word that stands for it where a page
// and a command are compared.
var asPrinted = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`SHA256:[A-Za-z0-9+/]{43}`), "FINGERPRINT"},
	{regexp.MustCompile(`\bAAAA[A-Za-z0-9+/]{40,}=*`), "KEY"},
	{regexp.MustCompile(`\b[0-9a-f]{8}\b`), "DIGEST"},
	{regexp.MustCompile(`[A-Za-z0-9+/]{43}=`), "DIGEST"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b\d{1,2} [A-Z][a-z]+ 20\d\d(, \d\d:\d\d UTC)?`), "TIME"},
	{regexp.MustCompile(`\(\d+ \w+ ago\)`), "(AGO)"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d[\d.]*(ms|s)\b`), "TAKEN"},
	{regexp.MustCompile(`\b(\d+ min )?\d+ (min|s)\b`), "TAKEN"},
	{regexp.MustCompile(`\b\d[\d.]* (B|[kMG]i?B)\b`), "SIZE"},
	{regexp.MustCompile(`\b\d+ (records|requests|files)\b`), "N $1"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+\b`), "ADDRESS"},
}

// steadyWords are the words of a text as they are compared: how a line is broken depends on the length of a date.
func steadyWords(text string) string {
	for _, p := range asPrinted {
		text = p.what.ReplaceAllString(text, p.word)
	}
	return strings.Join(strings.Fields(text), " ")
}

// alike reports whether a command printed what a page shows, where a line "..." stands for any lines.
func alike(page []string, printed string) bool {
	parts := []string{""}
	for _, line := range page {
		if strings.TrimSpace(line) == "..." {
			parts = append(parts, "")
			continue
		}
		parts[len(parts)-1] += line + "\n"
	}
	pattern := ""
	for i, part := range parts {
		if i > 0 {
			pattern += `(?: .*?)?`
		}
		if shown := steadyWords(part); shown != "" {
			pattern += " " + regexp.QuoteMeta(shown)
		}
	}
	return regexp.MustCompile(`^` + pattern + ` ?$`).MatchString(" " + steadyWords(printed))
}

// A pageWorld is where the commands of a page are run: a folder, an emulated Reddit, and a `rehydrate` that reaches it.
type pageWorld struct {
	*site
	dir, bin string
	env      []string
	// before is done before the first command that begins so. What the page shows under it may be a file to write.
	before map[string]func(printed []string)
}

// newPageWorld has the release of the demo in the folder memes, and what it was made of as annotations.csv.
func newPageWorld(t *testing.T) *pageWorld {
	t.Helper()
	annotations, posts := redditemu.Demo(demoSeed)
	s := newSite(t, string(annotations), demoPolicy, posts...).real()
	short, err := os.MkdirTemp("", "p") // a long path would break other lines of a table than a page shows
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(short)) })
	w := &pageWorld{site: s, dir: filepath.Join(short, "srv"), bin: t.TempDir(), before: map[string]func([]string){}}
	s.write(filepath.Join(w.dir, "annotations.csv"), string(annotations))
	for _, name := range []string{"annotations.csv", "policy.toml", "release.toml"} {
		text := strings.Replace(read(t, filepath.Join(s.release, name)), `"Demo"`, `"Memes"`, 1)
		s.write(filepath.Join(w.dir, "memes", name), text)
	}
	self, err := os.Executable()
	check(t, err)
	// What a reader types reaches Reddit; here it reaches the emulator.
	program := fmt.Sprintf(`#!/bin/sh
be='%s=1 %s'
case " $* " in *" --offline "*|*" --dry-run "*|*" --help "*|*" --check "*|*" --log "*) exec env $be "$@" ;; esac
case "$1" in run|recheck|purge|audit) exec env $be "$@" %s ;; esac
exec env $be "$@"
`, childVar, self, strings.Join(s.reddit(), " "))
	writeAs(t, filepath.Join(w.bin, "rehydrate"), program, 0o700)
	reader, err := rememberedOCR(s.reader)
	check(t, err)
	writeAs(t, filepath.Join(w.bin, "ocr"), reader, 0o700)
	w.env = []string{"PATH=" + w.bin + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"),
		"LC_ALL=C.UTF-8",
		"TERM=dumb"}
	for name, value := range s.env() {
		w.env = append(w.env, name+"="+value)
	}
	return w
}

var bareCommand = regexp.MustCompile(`(?m)^    rehydrate .*$`)

var progressLine = regexp.MustCompile(`(?m)^rehydrate: (waiting|ask, fetch|[A-Za-z, ]+: \d+ of \d+).*\n`)

var emulatorFlags = regexp.MustCompile(`\s+--connect-to\s+\S+\s+--cacert\s+\S+`)

// do runs a command of a page and returns what it printed, as a terminal of 80 columns has it, without progress, and
// its exit status.
func (w *pageWorld) do(t testing.TB, command string, shows []string) (printed string, status int) {
	t.Helper()
	for prefix, f := range w.before {
		if strings.HasPrefix(command, prefix) {
			delete(w.before, prefix)
			f(shows)
		}
	}
	tty, screen := terminal(t, 80)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, w.env, tty, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	check(t, tty.Close())
	printed = <-screen + progressLine.ReplaceAllString(stderr.String(), "")
	printed = emulatorFlags.ReplaceAllString(printed, "") // which the reader did not type
	return strings.ReplaceAll(printed, w.dir, "/srv"), cmd.ProcessState.ExitCode()
}

// TestPages runs every command that the pages for readers show, in the order of each page, against the emulator, and
// holds what it prints against what the page shows. With -update it writes into the page what differs.
func TestPages(t *testing.T) {
	long(t)
	t.Parallel()
	for name, prepare := range pageWorlds {
		t.Run(name, func(t *testing.T) { // one after another: each keeps the processors busy
			if m := bareCommand.FindString(read(t, filepath.Join("../../docs", name))); m != "" {
				t.Errorf("docs/%s shows %q without a $, so that it is not run", name, m)
			}
			w := newPageWorld(t)
			if prepare != nil {
				prepare(w)
			}
			if holdPage(t, name, w.do, alike) == 0 {
				t.Errorf("docs/%s shows no command", name)
			}
			for prefix := range w.before {
				t.Errorf("docs/%s has no command that begins with %q", name, prefix)
			}
		})
	}
}

// TestShown holds how TestPages compares and writes a page, and that it can fail.
func TestShown(t *testing.T) {
	page := "# A\n\n    $ one a  # exit status 3\n    first\n\n      second\n    $ two\n\nText.\n\n    no command\n"
	lines := strings.Split(page, "\n")
	written := strings.Replace(page, "    first\n\n      second\n", "    other\n", 1)
	got := strings.Join(updated(lines, sessions(lines), map[int]string{0: "\nother \n"}), "\n")
	if diff := cmp.Diff(written, got); diff != "" {
		t.Errorf("the page with another output (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		page, printed string
		want          bool
	}{
		{"", "", true},
		{"", "a\n", false},
		{"a b", "a\nb\n", true},
		{"a b", "a b c\n", false},
		{"a\n...", "a\nb\nc\n", true},
		{"...\nc", "a\nb\nc\n", true},
		{"...\nb\n...", "a\nb\nc\n", true},
		{"...\nd\n...", "a\nb\nc\n", false},
		{"a\n...\nc", "a\nc\n", true},
		{"c\n...\na", "a\nb\nc\n", false},
		{"12 May 2026, 10:11 UTC (1 minute ago)", "1 June 2027, 09:00 UTC (2 minutes ago)\n", true},
		{"3.3 MB in 4.7s, 3 rows", "515 kB in 300ms, 3 rows\n", true},
		{"3.3 MB in 4.7s, 3 rows", "515 kB in 300ms, 4 rows\n", false},
		{"in 4.7s", "in 1m7.1s\n", true},
	} {
		if got := alike(strings.Split(c.page, "\n"), c.printed); got != c.want {
			t.Errorf("alike(%q, %q) = %t", c.page, c.printed, got)
		}
	}
}

// pageWorlds are the pages whose commands TestPages runs, and what each has before its first one.
var pageWorlds = map[string]func(w *pageWorld){
	"files.md": nil,
	"researcher.md": func(w *pageWorld) {
		with := w.env
		w.env = with[:4] // credentials are there from the line on that sets them
		w.before["export REDDIT_CLIENT_ID="] = func([]string) { w.env = with }
		w.file("ids.txt")
		w.deleted("rehydrate recheck", "10t7wq")
		w.deleted("mv shared/shards", "127mp9")
	},
	"auditor.md": func(w *pageWorld) {
		for _, command := range []string{
			"rehydrate run memes -w lab --approval RFR-2026-0123",
			"rehydrate export memes -w lab --digests --out digests.jsonl",
			"rehydrate init published --manifest digests.jsonl && cp memes/policy.toml published",
			"mkdir photos && cp lab/images/12/127mp9.* photos/17.jpg && tar cf found.tar photos",
			"ssh-keygen -q -t ed25519 -N '' -C auditor -f auditor_key",
		} {
			if out, status := w.do(w.t, command, nil); status != exitDone && status != exitRetry {
				w.t.Fatalf("%s: exit status %d\n%s", command, status, out)
			}
		}
		w.write(filepath.Join(w.dir, "backup.7z"), "7z\xbc\xaf\x27\x1c and what it holds")
		w.deleted("rehydrate audit published", "127mp9")
	},
	"maintainer.md": func(w *pageWorld) {
		w.annotated()
		w.before["rehydrate run memes"] = func([]string) {
			w.write(filepath.Join(w.dir, "memes/policy.toml"),
				demoPolicy)
		}
		w.file("grant.json")
		w.file("guarded/revocations.json")
	},
}

// deleted has authors delete posts on Reddit before a command.
func (w *pageWorld) deleted(before string, ids ...manifest.PostID) {
	w.before[before] = func([]string) {
		for _, id := range ids {
			w.becomes(redditemu.Deleted, redditemu.Post{ID: id})
		}
	}
}

var (
	shownPast   = regexp.MustCompile(`("(?:asserted|not_before|issued|at)": )"[^"]+"`)
	shownFuture = regexp.MustCompile(`("(?:expires|next_update)": )"[^"]+"`)
	shownDigest = regexp.MustCompile(`"[0-9a-f]{64}"`)
)

// file writes a file as the page shows it before `cat` does: with the digest of the release guarded-1, and with times
// around now.
func (w *pageWorld) file(name string) {
	w.before["cat "+name] = func(printed []string) {
		text := strings.Join(printed, "\n") + "\n"
		if shownDigest.MatchString(text) {
			rel, err := manifest.Open(filepath.Join(w.dir, "guarded-1"), manifest.Options{})
			check(w.t, err)
			text = shownDigest.ReplaceAllString(text, fmt.Sprintf("%q", rel.Digest))
		}
		now := time.Now().UTC()
		text = shownPast.ReplaceAllString(text, fmt.Sprintf("${1}%q", now.Format(time.RFC3339)))
		text = shownFuture.ReplaceAllString(text, fmt.Sprintf("${1}%q", now.AddDate(0, 0, 7).Format(time.RFC3339)))
		w.write(filepath.Join(w.dir, name), text)
	}
}

// annotated has annotations of the demo's posts, of a category of its own, and no release yet.
func (w *pageWorld) annotated() {
	check(w.t, os.RemoveAll(filepath.Join(w.dir, "memes")))
	rows := "id,split,tone,title,annotator\n"
	file := filepath.Join(w.dir, "annotations.csv")
	for i, line := range strings.Split(strings.TrimSpace(read(w.t, file)), "\n")[1:] {
		cells := strings.Split(line, ",")
		tone, annotator := []string{"light", "dark", "neither"}[i%3], []string{"anna", "bert"}[i%2]
		rows += fmt.Sprintf("%s,%s,%s,a title of six or seven words,%s\n", cells[0], cells[1], tone, annotator)
	}
	w.write(file, rows)
}
