package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/policy"
)

const wrongFile = "testdata/wrong.txt"

// programmers are words of Go and its libraries, which no user should have to read.
var programmers = regexp.MustCompile(
	`no such file or directory|invalid syntax|strconv|unknown (shorthand )?flag|flag needs an argument|` +
		`^stat |: stat |\bopen [^w]|EOF|unmarshal|\bjson: |invalid character|is a directory|bad flag|accepts \d+ arg|parse error|regexp|panic|nil\b|%!`,
)

// TestWrongUsage holds, for each command line of testdata/wrong.txt, what it answers: what happened, to which
// argument, and
// below that, indented, what to type. -update writes the answers of now.
func TestWrongUsage(t *testing.T) {
	text := read(t, wrongFile)
	here := wrongFolder(t)
	var out strings.Builder
	calls := 0
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		first, _, _ := strings.Cut(block, "\n")
		call, ok := strings.CutPrefix(first, "$ rehydrate")
		if !ok {
			fmt.Fprintf(&out, "%s\n\n", block) // a heading
			continue
		}
		calls++
		args, _ := shellWords(strings.TrimSpace(call))
		var stdout, stderr bytes.Buffer
		code := run(
			t.Context(),
			process{args: append([]string{}, args...), getenv: func(name string) string { return here.env[name] },
				stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: here.now,
				stop:       make(chan struct{}),
				executable: func() (string, error) { return filepath.Join(here.dir, "rehydrate"), nil }},
		)
		said := strings.ReplaceAll(stderr.String(), here.dir, "HERE")
		said = regexp.MustCompile(`\b[0-9a-f]{64}\b`).ReplaceAllString(said, "DIGEST")
		lines := strings.Split(strings.TrimRight(said, "\n"), "\n")
		t.Run(call, func(t *testing.T) {
			switch {
			case code == exitDone || stdout.Len() > 0:
				t.Errorf("exit status %d, and on stdout %q", code, &stdout)
			case !strings.HasPrefix(lines[0], "rehydrate: "):
				t.Errorf("it does not begin with the program's name: %q", lines[0])
			case len(lines) < 2 || !strings.HasPrefix(lines[len(lines)-1], "  "):
				t.Errorf("it does not say what to type:\n%s", said)
			}
			if word := programmers.FindString(said); word != "" {
				t.Errorf("%q is for programmers:\n%s", word, said)
			}
		})
		status := ""
		if code != exitUsage {
			status = fmt.Sprintf("  [exit status %d]", code)
		}
		fmt.Fprintf(&out, "%s\n%s%s\n\n", first, strings.Join(lines, "\n"), status)
	}
	if *update {
		check(t, os.WriteFile(filepath.Join(sourceDir, wrongFile), []byte(strings.TrimSpace(out.String())+"\n"), 0o644))
		return
	}
	if diff := cmp.Diff(strings.Split(text, "\n"),
		strings.Split(strings.TrimSpace(out.String())+"\n", "\n")); diff != "" {
		t.Errorf("(-%s +now)\n%s", wrongFile, diff)
	}
	if calls < 105 {
		t.Errorf("%d wrong usages, want 105 at least", calls)
	}
}

// A wrongPlace is a folder to make mistakes in.
type wrongPlace struct {
	dir string
	env map[string]string
	now func() time.Time
}

// wrongFolder is the present folder, with a release figsim that wants a grant, a release memes of four posts, its
// workspace
// rehydrated, a copy of it, and files of many kinds.
func wrongFolder(t *testing.T) wrongPlace {
	t.Helper()
	s := newSite(t, fewAnnotations(fewPosts(4)), quick(""), fewPosts(4)...)
	s.do(s.env(), s.args()...).want(t, exitDone)
	f := figSIMSite(t, 4)
	f.signed(f.grantPath(), policy.GrantNamespace, grantText(t, f.release, func(map[string]any) {}))
	published, err := filepath.Abs(figSIMFolder)
	check(t, err)
	// Named as the sentences should name them, whatever the folders of tests are called.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	t.Chdir(dir)
	for from, to := range map[string]string{f.release: "figsim", s.release: "memes", s.workspace: "rehydrated",
		published: "published"} {
		check(t, os.CopyFS(to, os.DirFS(from)))
	}
	check(t, os.Rename("figsim/grant.json", "grant.json"))
	check(t, os.Rename("figsim/grant.json.sig", "grant.json.sig"))
	check(t, os.Chmod("rehydrated", 0o700))
	for name, text := range map[string]string{
		"annotations.csv": "id,split,figurative,severity,related_content,modality,context\nfew000,train,F1,SS6,SR3,M1,C1\n",
		"answers.csv":     "id,figurative\nfew000,F1\n",
		"notes.txt":       "hello\n",
		"empty.csv":       "",
		"damaged.csv":     "id,label\n6.60E+05,a\n",
		"numbers.csv":     "id,width\nfew000,3\n",
		"words.jsonl":     "{\"text\":1}\n",
		"broken.json":     "{\"id\":",
		"policy.toml":     "[reddit]\nrequests = 3\n",
		"full/README.md":  "here\n",
		"picture.jpg":     "\xff\xd8\xff",
		"key.pub":         "ssh-ed25519 AAAA\n",
		"checkpoint":      "no checkpoint\n",
		"cluster.sh":      "#!/bin/sh\n",
	} {
		s.write(filepath.Join(dir, name), text)
	}
	check(t, os.Mkdir("nothing", 0o755))
	return wrongPlace{dir, map[string]string{"PATH": ""}, s.now}
}
