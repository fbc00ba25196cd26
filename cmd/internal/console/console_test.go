package console

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
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

// TestBar: on a terminal progress is a bar with named numbers. It is drawn again every second, with what is waited for,
// at the width that the terminal has by then; it gives way to log lines, and a full count does not end it.
func TestBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		width := 80
		c := New("prog", &out, &out, "xterm", time.Now)
		if c.screen != nil {
			t.Fatal("a buffer was taken for a terminal")
		}
		c.screen, c.width = &out, func() int { return width }
		// The bar draws by itself every second, with c.mu held: so does the test look at it, and change the screen.
		drawn := func() string {
			c.mu.Lock()
			defer c.mu.Unlock()
			return out.String()
		}
		resize := func(columns int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			width = columns
		}
		shows := func(want string) {
			t.Helper()
			frames := strings.Split(drawn(), "\r\x1b[J")
			if diff := cmp.Diff(want, frames[len(frames)-1]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		}
		after := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		c.Show(Progress{Words: "reading", Total: 30})
		shows("reading   0% |" + strings.Repeat(" ", 33) + "| (0/30) 0:00 so far, --:-- left\r")
		c.Show(Progress{Words: "reading", Done: 1, Total: 30}) // at once again: the next drawing has it
		after(7 * time.Second)
		shows("reading   3% |█" + strings.Repeat(" ", 33) + "| (1/30) 0:07 so far, 3:23 left\r")
		c.Wait("for a: it asks for it", 90*time.Second)
		c.Wait("for b: not as long", 9*time.Second)
		resize(60)
		after(30 * time.Second)
		shows("reading   3% |" + strings.Repeat(" ", 13) + "| (1/30) 0:37 so far, 17:53 left\x1b[K\nwaiting 1:00 for a: it asks for it\r\x1b[A")
		resize(30)
		after(30 * time.Second)
		shows("reading   3% || (1/30) 1:07 s\x1b[K\nwaiting 0:30 for a: it asks f\r\x1b[A")
		resize(80)
		fmt.Fprintln(c, "a log line")
		if got := drawn(); !strings.Contains(got, "\r\x1b[Ja log line\n\r\x1b[Jreading") {
			t.Errorf("the log line is not between two bars: %q", got)
		}
		after(time.Hour)
		c.Show(Progress{Words: "writing", Done: 30, Total: 30})
		shows("writing 100% |" + strings.Repeat("█", 29) + "| (30/30) 1:01:07 so far, --:-- left\r")
		c.Clear()
		after(5 * time.Second)
		shows("")
		c.Done()
		c.Done()
	})
}

func TestFold(t *testing.T) {
	var out bytes.Buffer
	f := &Folder{out: &out, width: func() int { return 20 }}
	fmt.Fprint(f, "short\n  kept  10  in the da")
	fmt.Fprint(f, "taset, for good\n")
	fmt.Fprintln(f, "  a paragraph  whose last cell begins late and goes on")
	fmt.Fprintln(f, "sha256  0123456789abcdef0123456789")
	fmt.Fprintln(f, "exactly twenty long.")
	f.Stop()
	fmt.Fprintln(f, "a line that is let through")
	want := `short
  kept  10  in the
            dataset,
            for good
  a paragraph  whose
  last cell begins
  late and goes on
sha256
0123456789abcdef0123456789
exactly twenty long.
a line that is let through
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
