package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit/modelserver"
	"rehydrate/pipeline/redditemu"
)

// A sessionPage is a page whose sessions TestSessions types, in the folder that scripts/sample makes.
type sessionPage struct {
	least int               // commands, so that none can be lost unseen
	demo  bool              // the folder has rehydrate-demo, as `rehydrate demo` leaves it
	asks  []string          // commands that ask the emulator in place of Reddit
	model map[string]string // a server for each address of the page, by the dialect that it speaks
	built bool              // scripts/demo is there, and has set up and built before
}

var sessionPages = map[string]sessionPage{
	"../README.md": {least: 1, built: true},

	"annotate.md": {least: 5, demo: true},
	"author.md":   {least: 1},
	"dedupe.md":   {least: 3, demo: true},
	"features.md": {least: 3, demo: true},
	"labels.md":   {least: 10},
	"models.md":   {least: 5, demo: true, model: map[string]string{"http://127.0.0.1:8000/v1": "vllm"}},
	"ocr.md":      {least: 6, demo: true},
	"publish.md":  {least: 3},
	"scale.md":    {least: 4, demo: true, asks: []string{"cluster split", "cluster merge"}},
	"select.md":   {least: 2},
}

// TestSessions types every line of a page that begins with "$ ", in the order in which the lines stand, and compares
// what they print with the lines below. Only times, dates and progress may differ; a line of three dots stands for any
// lines. A line ends in "# exit status N" where the status is not 0. With -update the page gets what is printed now.
func TestSessions(t *testing.T) {
	long(t)
	t.Parallel()
	for name, page := range sessionPages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell := newSessionShell(t, page)
			if n := holdPage(t, name, shell.typed, func(want []string, printed string) bool {
				return matchesOutput(want, linesOf(printed))
			}); n < page.least {
				t.Errorf("%d commands were found, want %d at least", n, page.least)
			}
		})
	}
}

// holdPage types the commands of a page of docs one after another, and holds what they print, and how they end, against
// the page. With -update it writes into the page what differs. It returns how many commands there are.
func holdPage(
	t *testing.T, name string,
	typed func(t testing.TB, command string, shows []string) (printed string, status int),
	matches func(shows []string, printed string) bool,
) int {
	t.Helper()
	file := filepath.Join(sourceDir, "../../docs", name)
	lines := strings.Split(read(t, file), "\n")
	calls := sessions(lines)
	printed := map[int]string{} // by those that print something else than the page shows
	for i, c := range calls {
		shows := c.printed(lines)
		out, status := typed(t, c.command, shows)
		if status != c.status {
			t.Errorf("docs/%s:%d: $ %s\nends with %d, and the page says %d:\n%s", name, c.line, c.command, status, c.status,
				out)
		}
		switch {
		case matches(shows, out):
		case *update:
			printed[i] = out
		default:
			t.Errorf("docs/%s:%d: $ %s (-page +printed)\n%s", name, c.line, c.command, cmp.Diff(shows, linesOf(out)))
		}
	}
	if *update {
		check(t, os.WriteFile(file, []byte(strings.Join(updated(lines, calls, printed), "\n")), 0o644))
	}
	return len(calls)
}

// linesOf are the lines of what a command printed; none of nothing.
func linesOf(printed string) []string {
	if printed = strings.TrimRight(printed, "\n"); printed == "" {
		return nil
	}
	return strings.Split(printed, "\n")
}

// updated are the lines of a page with what some of its commands printed now.
func updated(lines []string, calls []sessionCall, printed map[int]string) []string {
	for i := len(calls) - 1; i >= 0; i-- { // from the end, so that the places of the others stay
		out, ok := printed[i]
		if !ok {
			continue
		}
		var shows []string
		for _, line := range linesOf(strings.TrimLeft(out, "\n")) {
			shows = append(shows, strings.TrimRight("    "+line, " "))
		}
		lines = slices.Replace(lines, calls[i].output, calls[i].end, shows...)
	}
	return lines
}

// A sessionCall is a command of a page and where its output stands.
type sessionCall struct {
	line        int // of the page, from 1
	command     string
	status      int
	output, end int // the lines from output up to end, from 0, are what it prints
}

var statedStatus = regexp.MustCompile(` +# exit status (\d+)$`)

// sessions finds the commands of indented blocks that begin with "$ ".
func sessions(lines []string) []sessionCall {
	var calls []sessionCall
	for i := 0; i < len(lines); i++ {
		text, ok := strings.CutPrefix(lines[i], "    $ ")
		if !ok {
			continue
		}
		c := sessionCall{line: i + 1, command: text}
		for strings.HasSuffix(lines[i], `\`) {
			i++
			c.command += "\n" + lines[i]
		}
		if m := statedStatus.FindStringSubmatch(c.command); m != nil {
			c.status, _ = strconv.Atoi(m[1])
		}
		c.output, c.end = i+1, i+1
		for j := i + 1; j < len(lines) && (lines[j] == "" || strings.HasPrefix(lines[j], "    ")); j++ {
			if strings.HasPrefix(lines[j], "    $ ") {
				break
			}
			if lines[j] != "" {
				c.end = j + 1
			}
		}
		calls = append(calls, c)
	}
	return calls
}

func (c sessionCall) printed(lines []string) []string {
	var printed []string
	for _, line := range lines[c.output:c.end] {
		printed = append(printed, strings.TrimPrefix(line, "    "))
	}
	return printed
}

// What may differ from one run to the next, and what stands for it.
var sessionVaries = []struct {
	varies *regexp.Regexp
	as     string
}{
	{regexp.MustCompile(`\b(\d+ ?(m|min) ?)?\d+(\.\d+)? ?m?s\b`), "TIME"},
	{regexp.MustCompile(`\b\d+ [A-Z][a-z]+ 20\d\d, \d\d:\d\d UTC( \(.* ago\))?`), "DATE"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?`), "DATE"},
	{regexp.MustCompile(`\b\d+ tokens/s\b`), "RATE"},
}

// matchesOutput reports whether a command printed what a page shows.
func matchesOutput(want, got []string) bool {
	same := func(a, b string) bool {
		for _, v := range sessionVaries {
			a, b = v.varies.ReplaceAllString(a, v.as), v.varies.ReplaceAllString(b, v.as)
		}
		return strings.TrimRight(a, " ") == strings.TrimRight(b, " ")
	}
	switch {
	case len(want) == 0:
		return len(got) == 0
	case strings.TrimSpace(want[0]) == "...":
		for i := range len(got) + 1 {
			if matchesOutput(want[1:], got[i:]) {
				return true
			}
		}
		return false
	default:
		return len(got) > 0 && same(want[0], got[0]) && matchesOutput(want[1:], got[1:])
	}
}

// A sessionShell types commands in a folder of made-up files.
type sessionShell struct {
	dir      string
	env      []string
	servers  *strings.Replacer // the page's addresses of models become those of the servers
	original *strings.Replacer
}

// demoFolder holds what `rehydrate demo` leaves, made once with Tesseract.
var demoFolder = sync.OnceValues(func() (string, error) {
	bin, err := sessionPrograms()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(bin, "demo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	demo := exec.Command(filepath.Join(bin, "rehydrate"), "demo")
	demo.Dir = dir
	if out, err := demo.CombinedOutput(); err != nil {
		return "", fmt.Errorf("rehydrate demo: %w\n%s", err, out)
	}
	return filepath.Join(dir, "rehydrate-demo"), nil
})

// sessionPrograms is a folder with rehydrate and ocr beside it, as a user has them.
var sessionPrograms = sync.OnceValues(func() (string, error) {
	reader, err := buildOCR()
	if err != nil {
		return "", err
	}
	self, err := exec.LookPath("rehydrate")
	if err != nil {
		return "", err
	}
	script, err := rememberedOCR(reader)
	if err != nil {
		return "", err
	}
	bin := filepath.Join(filepath.Dir(self), "sessions")
	return bin, errors.Join(os.Mkdir(bin, 0o700), copyProgram(self, filepath.Join(bin, "rehydrate")),
		os.WriteFile(filepath.Join(bin, "ocr"), []byte(script), 0o700))
})

// copyProgram makes a program that looks for others in its own folder.
func copyProgram(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700)
}

func newSessionShell(t *testing.T, page sessionPage) *sessionShell {
	t.Helper()
	bin, err := sessionPrograms()
	check(t, err)
	home := t.TempDir()
	s := &sessionShell{dir: filepath.Join(home, "study"), env: append(os.Environ(), "HOME="+home, "TERM=dumb", "TZ=UTC",
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(sourceDir, "../../scripts/sample"),
		s.dir).CombinedOutput(); err != nil {
		t.Fatalf("scripts/sample: %v\n%s", err, out)
	}
	if page.demo {
		demo, err := demoFolder()
		check(t, err)
		check(t, exec.CommandContext(t.Context(), "cp", "-a", demo, s.dir).Run())
	}
	if page.built {
		script := filepath.Join(s.dir, "scripts", "demo")
		check(t, os.Mkdir(filepath.Dir(script), 0o700))
		check(t, os.WriteFile(script, []byte("#!/bin/sh\nexec rehydrate demo \"$@\"\n"), 0o700))
	}
	if len(page.asks) > 0 {
		s.askEmulator(t, page.asks, home, bin)
	}
	there, back := []string(nil), []string{home, "/home/you"}
	for address, dialect := range page.model {
		m := modelserver.New(t, dialect)
		m.Answer = func(r modelserver.Request) string { return cannedAnswer(r) }
		there, back = append(there, address, m.URL), append(back, m.URL, address)
	}
	s.servers, s.original = strings.NewReplacer(there...), strings.NewReplacer(back...)
	return s
}

// askEmulator has the commands ask an emulator of the demo's posts, by a program rehydrate that adds the flags for it.
func (s *sessionShell) askEmulator(t *testing.T, commands []string, home, bin string) {
	t.Helper()
	_, posts := redditemu.Demo(demoSeed)
	site := newSiteOn(t, redditemu.Options{Seed: demoSeed}, "", "", posts...)
	program := filepath.Join(home, "bin", "rehydrate")
	site.write(program,
		fmt.Sprintf("#!/bin/sh\ncase \"$1 $2\" in %s) set -- \"$@\" --approval DEMO %s;; esac\nexec %s \"$@\"\n",
			"'"+strings.Join(commands, "'|'")+"'", strings.Join(site.reddit(), " "), filepath.Join(bin, "rehydrate")))
	check(t, os.Chmod(program, 0o700))
	s.env = append(s.env,
		"PATH="+filepath.Dir(program)+string(filepath.ListSeparator)+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for k, v := range site.env() {
		s.env = append(s.env, k+"="+v)
	}
}

// cannedAnswer is what the model of the pages says: mostly labels, now and then something else.
func cannedAnswer(r modelserver.Request) string {
	h := fnv.New32a()
	h.Write(r.Body)
	n := int(h.Sum32() >> 4)
	switch {
	case strings.HasSuffix(r.Path, "/moderations"):
		return fmt.Sprintf(`{"self-harm": 0.%d, "violence": 0.%d}`, n%10, n/10%10)
	case strings.Contains(string(r.Body), "Llama-Guard"):
		return []string{"safe", "unsafe\nS11", "safe"}[n%3]
	case n%9 == 0:
		return "I would rather not say."
	case strings.Contains(string(r.Body), `"severity"`):
		return fmt.Sprintf(`{"severity": "SS%d"}`, 1+n%3)
	case strings.Contains(string(r.Body), `"related_content"`):
		return `{"related_content": ["SR4"]}`
	default:
		return `{"figurative": ["F3"]}`
	}
}

// typed runs a command and returns what it prints on both streams, without progress, and its exit status.
func (s *sessionShell) typed(t testing.TB, command string, _ []string) (printed string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", s.servers.Replace(command))
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(linesOf(s.original.Replace(string(out))), sessionProgress.MatchString)
	return strings.Join(lines, "\n"), cmd.ProcessState.ExitCode()
}

// sessionProgress is what is printed only where a machine is slow.
var sessionProgress = regexp.MustCompile(
	`^(rehydrate|ocr): (\w+: [\d,]+ of [\d,]+ |.*(\babout .* left|so far|waiting ))`)

// TestMatchesOutput: a page that is wrong is seen to be.
func TestMatchesOutput(t *testing.T) {
	for _, tt := range []struct {
		page, printed string
		want          bool
	}{
		{"", "", true},
		{"a\nb", "a\nb", true},
		{"a\nb", "a\nc", false},
		{"a", "a\nb", false},
		{"a\nb", "a", false},
		{"a\n...", "a", true},
		{"a\n...\nd", "a\nb\nc\nd", true},
		{"a\n...\nd", "a\nb\nc", false},
		{"31 entries in 3.1s", "31 entries in 1m10.5s", true},
		{"31 entries in 3.1s", "30 entries in 3.1s", false},
	} {
		if got := matchesOutput(strings.Split(tt.page, "\n"), strings.Split(tt.printed, "\n")); got != tt.want {
			t.Errorf("matchesOutput(%q, %q) = %v, want %v", tt.page, tt.printed, got, tt.want)
		}
	}
	page := strings.Split("Text.\n\n    $ a \\\n        b  # exit status 3\n    out\n\n    more\n\nText.\n    $ c",
		"\n")
	want := []sessionCall{{line: 3, command: "a \\\n        b  # exit status 3", status: 3, output: 4, end: 7},
		{line: 10, command: "c", output: 10, end: 10}}
	if diff := cmp.Diff(want, sessions(page), cmp.AllowUnexported(sessionCall{})); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}
