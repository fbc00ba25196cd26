package console

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPlain: elsewhere than on a terminal, progress is a line every few seconds, between whole log lines.
func TestPlain(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	c := New("prog", &out, &out, "xterm", func() time.Time { return now })
	show := func(after time.Duration, task string, done int) {
		now = now.Add(after)
		c.Show(Progress{Task: task, Words: "words", Line: fmt.Sprintf("%s %d", task, done), Done: done, Total: 10})
	}
	show(0, "hash", 1)
	show(4*time.Second, "hash", 2)
	show(time.Second, "hash", 5)
	fmt.Fprintln(c, "a log line")
	show(4*time.Second, "hash", 6)
	show(time.Second, "hash", 10)
	show(time.Hour, "draw", 1) // its time begins now
	show(10*time.Second, "draw", 2)
	show(time.Minute, "draw", 0)
	c.Clear()
	c.Done()
	want := "prog: hash 5, about 5s left\na log line\nprog: hash 10\nprog: draw 2, about 40s left\nprog: draw 0\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestBar: on a terminal progress is a bar, which gives way to log lines, and which a full count does not end.
func TestBar(t *testing.T) {
	name := filepath.Join(t.TempDir(), "terminal")
	terminal, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	c := New("prog", terminal, terminal, "xterm", time.Now)
	if c.terminal != nil {
		t.Fatal("a file was taken for a terminal")
	}
	c.terminal = terminal
	c.Show(Progress{Words: "reading", Line: "a line", Done: 1, Total: 3})
	fmt.Fprintln(c, "a log line")
	c.Show(Progress{Words: "writing", Done: 3, Total: 3})
	if c.bar.IsFinished() {
		t.Error("a full bar is finished")
	}
	c.Done()
	screen, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(screen), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "reading") || !strings.HasSuffix(lines[0], "\ra log line") || strings.TrimSpace(lines[1]) != "" {
		t.Errorf("the screen:\n%q", screen)
	}
}
