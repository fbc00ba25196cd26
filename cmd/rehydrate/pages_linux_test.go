package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

// A shown command is one that a page shows behind "    $ ", with what the page says that it prints.
type shown struct {
	line    int // of the page, from 0
	command string
	prints  []string // without the indent
}

// shownCommands returns the commands of a page in their order. The lines under a command, up to the next one or the end
// of its block, are what it prints; a command goes on behind a backslash.
func shownCommands(page string) []shown {
	var all []shown
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "    $ ")
		if !ok {
			continue
		}
		c := shown{line: i, command: command}
		for strings.HasSuffix(c.command, `\`) && i+1 < len(lines) {
			i++
			c.command = strings.TrimSuffix(c.command, `\`) + strings.TrimSpace(lines[i])
		}
		blank := 0 // lines that belong to the output only if more of it follows
		for i+1 < len(lines) && (lines[i+1] == "" || strings.HasPrefix(lines[i+1], "    ")) && !strings.HasPrefix(lines[i+1], "    $ ") {
			i++
			c.prints = append(c.prints, strings.TrimPrefix(lines[i], "    "))
			if blank++; lines[i] != "" {
				blank = 0
			}
		}
		c.prints = c.prints[:len(c.prints)-blank]
		all = append(all, c)
	}
	return all
}

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
	{regexp.MustCompile(`\b[A-Za-z0-9+/]{43}=`), "DIGEST"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b\d{1,2} [A-Z][a-z]+ 20\d\d(, \d\d:\d\d UTC)?`), "TIME"},
	{regexp.MustCompile(`\(\d+ \w+ ago\)`), "(AGO)"},
	{regexp.MustCompile(`\b\d[\d.]* ?(ms|s|min|h|hours)\b`), "TAKEN"},
	{regexp.MustCompile(`\bTAKEN TAKEN\b`), "TAKEN"},
	{regexp.MustCompile(`\b\d[\d.]* (B|[kMG]i?B)\b`), "SIZE"},
	{regexp.MustCompile(`\b\d+ (records|requests|files)\b`), "N $1"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+\b`), "ADDRESS"},
}

// words are the words of a text as they are compared: how a line is broken depends on the length of a date.
func (w *pageWorld) words(text string) string {
	text = strings.ReplaceAll(text, w.dir, "/srv")
	for _, p := range asPrinted {
		text = p.what.ReplaceAllString(text, p.word)
	}
	return strings.Join(strings.Fields(text), " ")
}

// alike reports whether a command printed what a page shows, where a line "..." stands for any lines.
func (w *pageWorld) alike(page []string, printed string) bool {
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
			pattern += ` .*?`
		}
		if words := w.words(part); words != "" {
			pattern += " " + regexp.QuoteMeta(words)
		}
	}
	return regexp.MustCompile(`^` + pattern + ` ?$`).MatchString(" " + w.words(printed))
}

// A pageWorld is where the commands of a page are run: a folder, an emulated Reddit, and a `rehydrate` that reaches it.
type pageWorld struct {
	*site
	dir, bin string
	env      []string
	status   int // of the last command
	// before is done before a command that begins so, once; the command's output as the page shows it may be a file to write.
	before map[string]func(c shown)
}

// newPageWorld has the release of the demo in the folder memes, and what it was made of as annotations.csv.
func newPageWorld(t *testing.T) *pageWorld {
	t.Helper()
	annotations, posts := redditemu.Demo(demoSeed)
	s := newSite(t, string(annotations), demoPolicy, posts...).real()
	short, err := os.MkdirTemp("", "p") // a long path would break other lines of a table than a page shows
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(short)) })
	w := &pageWorld{site: s, dir: filepath.Join(short, "srv"), bin: t.TempDir(), before: map[string]func(shown){}}
	s.write(filepath.Join(w.dir, "annotations.csv"), string(annotations))
	for _, name := range []string{"annotations.csv", "policy.toml", "release.toml"} {
		text := strings.Replace(read(t, filepath.Join(s.release, name)), `"Demo"`, `"Memes"`, 1)
		s.write(filepath.Join(w.dir, "memes", name), text)
	}
	// What a reader types reaches Reddit; here it reaches the emulator.
	program := fmt.Sprintf(`#!/bin/sh
be='%s=1 %s'
case " $* " in *" --offline "*|*" --dry-run "*|*" --help "*|*" --check "*|*" --log "*) exec env $be "$@" ;; esac
case "$1" in run|recheck|purge|audit) exec env $be "$@" %s ;; esac
exec env $be "$@"
`, childVar, os.Args[0], strings.Join(s.reddit(), " "))
	writeAs(t, filepath.Join(w.bin, "rehydrate"), program, 0o700)
	check(t, os.Symlink(s.reader, filepath.Join(w.bin, "ocr")))
	w.env = []string{"PATH=" + w.bin + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"), "LC_ALL=C.UTF-8", "TERM=dumb"}
	for name, value := range s.env() {
		w.env = append(w.env, name+"="+value)
	}
	return w
}

var bareCommand = regexp.MustCompile(`(?m)^    rehydrate .*$`)

var progressLine = regexp.MustCompile(`(?m)^rehydrate: (waiting|ask, fetch|[a-z, ]+: \d+ of \d+).*\n`)

// do runs a command of a page and returns what it printed, as a terminal of 80 columns has it, without progress.
func (w *pageWorld) do(c shown) string {
	w.t.Helper()
	for prefix, f := range w.before {
		if strings.HasPrefix(c.command, prefix) {
			delete(w.before, prefix)
			f(c)
		}
	}
	screen, tty := w.terminal()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(w.t.Context(), "bash", "-c", fmt.Sprintf("(exit %d)\n%s", w.status, c.command))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, w.env, tty, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	w.status = cmd.ProcessState.ExitCode()
	check(w.t, tty.Close())
	return strings.ReplaceAll(<-screen, "\r\n", "\n") + progressLine.ReplaceAllString(stderr.String(), "")
}

// terminal returns a terminal of 80 columns, and what it got once it is closed.
func (w *pageWorld) terminal() (<-chan string, *os.File) {
	w.t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check(w.t, err)
	fd := int(ptmx.Fd())
	check(w.t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	check(w.t, err)
	check(w.t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	check(w.t, err)
	screen := make(chan string, 1)
	go func() {
		defer ptmx.Close()
		var b bytes.Buffer
		_, _ = io.Copy(&b, ptmx) // it ends with an error when the last writer is gone
		screen <- b.String()
	}()
	return screen, tty
}

// TestPages runs every command that the pages for readers show, in the order of each page, against the emulator, and
// holds what it prints against what the page shows. With -update it writes into the page what differs.
func TestPages(t *testing.T) {
	long(t)
	t.Parallel()
	for name, prepare := range pageWorlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("../../docs", name)
			page := read(t, file)
			if m := bareCommand.FindString(page); m != "" {
				t.Errorf("docs/%s shows %q without a $, so that it is not run", name, m)
			}
			w := newPageWorld(t)
			if prepare != nil {
				prepare(w)
			}
			lines := strings.Split(page, "\n")
			all := shownCommands(page)
			var written []string
			end := 0
			for _, c := range all {
				printed := w.do(c)
				if w.alike(c.prints, printed) {
					continue
				}
				if !*update {
					t.Errorf("docs/%s:%d: $ %s\nprinted:\n%s\nthe page shows:\n%s\nas words: %s", name, c.line+1, c.command, printed,
						strings.Join(c.prints, "\n"), w.words(printed))
					continue
				}
				first := c.line + 1
				for strings.HasSuffix(lines[first-1], `\`) {
					first++
				}
				written = append(written, lines[end:first]...)
				for _, line := range strings.Split(strings.TrimRight(strings.ReplaceAll(printed, w.dir, "/srv"), "\n"), "\n") {
					if line = strings.TrimRight("    "+line, " "); line != "" || len(written) > 0 && written[len(written)-1] != "" {
						written = append(written, line)
					}
				}
				end = first + len(c.prints)
			}
			t.Logf("%d commands", len(all))
			if *update && end > 0 {
				check(t, os.WriteFile(file, []byte(strings.Join(append(written, lines[end:]...), "\n")), 0o644))
			}
			for prefix := range w.before {
				t.Errorf("docs/%s has no command that begins with %q", name, prefix)
			}
		})
	}
}

// pageWorlds are the pages whose commands TestPages runs, and what each has before its first one.
var pageWorlds = map[string]func(w *pageWorld){
	"files.md": nil,
	"researcher.md": func(w *pageWorld) {
		with := w.env
		w.env = with[:4] // credentials are there from the line on that sets them
		w.before["export REDDIT_CLIENT_ID="] = func(shown) { w.env = with }
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
			w.do(shown{command: command})
		}
		w.write(filepath.Join(w.dir, "backup.7z"), "7z\xbc\xaf\x27\x1c and what it holds")
		w.deleted("rehydrate audit published", "127mp9")
	},
	"maintainer.md": func(w *pageWorld) {
		w.annotated()
		w.before["rehydrate run memes"] = func(shown) { w.write(filepath.Join(w.dir, "memes/policy.toml"), demoPolicy) }
		w.file("grant.json")
		w.file("guarded/revocations.json")
	},
}

// deleted has authors delete posts on Reddit before a command.
func (w *pageWorld) deleted(before string, ids ...manifest.PostID) {
	w.before[before] = func(shown) {
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

// file writes a file as the page shows it before `cat` does: with the digest of the release guarded, and with times
// around now.
func (w *pageWorld) file(name string) {
	w.before["cat "+name] = func(c shown) {
		text := strings.Join(c.prints, "\n") + "\n"
		if shownDigest.MatchString(text) {
			rel, err := manifest.Open(filepath.Join(w.dir, "guarded"), manifest.Options{})
			check(w.t, err)
			text = shownDigest.ReplaceAllString(text, fmt.Sprintf("%q", rel.Digest))
		}
		text = shownPast.ReplaceAllString(text, fmt.Sprintf("${1}%q", time.Now().UTC().Format(time.RFC3339)))
		text = shownFuture.ReplaceAllString(text, fmt.Sprintf("${1}%q", time.Now().UTC().AddDate(0, 0, 7).Format(time.RFC3339)))
		w.write(filepath.Join(w.dir, name), text)
	}
}

// annotated has annotations of the demo's posts, of a category of its own, and no release yet.
func (w *pageWorld) annotated() {
	check(w.t, os.RemoveAll(filepath.Join(w.dir, "memes")))
	rows := "id,split,tone,title,annotator\n"
	for i, line := range strings.Split(strings.TrimSpace(read(w.t, filepath.Join(w.dir, "annotations.csv"))), "\n")[1:] {
		cells := strings.Split(line, ",")
		rows += fmt.Sprintf("%s,%s,%s,a title of six or seven words,%s\n", cells[0], cells[1], []string{"light", "dark", "neither"}[i%3], []string{"anna", "bert"}[i%2])
	}
	w.write(filepath.Join(w.dir, "annotations.csv"), rows)
}
