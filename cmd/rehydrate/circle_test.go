package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit/browser"
	"rehydrate/manifest"
)

// TestCircle goes the way of scripts/circle: a made-up dump becomes a release that is published, and that somebody else
// rebuilds. In between an annotator answers for 20 images in Chromium, by keyboard.
func TestCircle(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../../scripts/circle")
	check(t, err)
	dir := filepath.Join(t.TempDir(), "circle")
	circle := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), script, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("scripts/circle %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := circle("kept", dir, "300", "32"); !strings.Contains(out, "\n120 candidates\n32 chosen\n") {
		t.Errorf("the candidates:\n%s", out)
	}
	t.Run("page", func(t *testing.T) { answerInChromium(t, dir, 20) })
	out := circle("published", dir)
	if !strings.Contains(out, "\nPASS ") {
		t.Errorf("the audit of what somebody else rebuilt:\n%s", out)
	}

	rel, err := manifest.Open(filepath.Join(dir, "published"), manifest.Options{})
	check(t, err)
	labelled := 0
	for e, err := range rel.Entries(t.Context()) {
		check(t, err)
		if labelled++; e.SHA256 == "" || len(e.Labels) != 2 || len(e.Labels[0]) != 1 {
			t.Errorf("published: %+v", e)
		}
	}
	rows := rowsOf(t, filepath.Join(dir, "rebuilt/dataset/data"))
	kept := rowsOf(t, filepath.Join(dir, "kept/dataset/data"))
	if labelled < 20 || len(rows) != labelled-1 ||
		!slices.Equal(slices.Sorted(slices.Values(rows)), slices.Sorted(slices.Values(kept))) {
		t.Errorf("%d published, of which one was taken out since; rebuilt\n%v\nwhere there was\n%v", labelled, rows, kept)
	}
	check(t, os.Remove(filepath.Join(dir, "dump.jsonl")))
	for name, text := range everyFile(t, dir) {
		if bytes.Contains(bytes.ToLower(text), []byte("canary")) {
			t.Errorf("%s holds words of the dump", name)
		}
	}
}

// answerInChromium answers for the first n images as A1, the same for each.
func answerInChromium(t *testing.T, dir string, n int) {
	chromium := browser.Start(t)
	review := exec.CommandContext(t.Context(), "rehydrate", "annotate", "review", "-w", "kept", "--scheme",
		"labels.toml", "--batches", fmt.Sprint(n))
	review.Dir = dir
	stderr, err := review.StderrPipe()
	check(t, err)
	check(t, review.Start())
	said, err := bufio.NewReader(stderr).ReadString('\n')
	check(t, err)
	found := regexp.MustCompile(`http://([0-9.:]+)/\S*`).FindStringSubmatch(said)
	if found == nil {
		t.Fatalf("no address of the page: %s", said)
	}
	chromium.Lead(found[1], found[1])
	chromium.Open(t, found[0])
	for i := range n {
		chromium.Until(t, `image.complete && image.naturalWidth > 0`)
		for _, key := range strings.Fields("2 Enter 1 Enter") {
			chromium.Press(t, key)
		}
		if i+2 <= n {
			chromium.Until(t, fmt.Sprintf(`said.textContent == "Saved. Image %d of %d."`, i+2, n))
		}
	}
	chromium.Until(t, `work.hidden`)
	check(t, review.Process.Signal(os.Interrupt))
	check(t, review.Wait())
	line := `{"batch":"1","care":false,"id":"`
	if got := strings.Count(read(t, filepath.Join(dir, "answers/A1.jsonl")), line); got != n {
		t.Errorf("%d answers, want %d", got, n)
	}
}
