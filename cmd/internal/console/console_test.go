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

// TestPlainWait: the time left is never less than the waits that were announced.
func TestPlainWait(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	c := New("prog", &out, &out, "xterm", func() time.Time { return now })
	show := func(after time.Duration, done int) {
		now = now.Add(after)
		c.Show(Progress{Words: "words", Line: fmt.Sprint("read ", done), Done: done, Total: 10})
	}
	show(0, 0)
	show(10*time.Second, 5)
	c.Wait("for a: it is in trouble", 4*time.Minute)
	c.Wait("for b: not as long", 9*time.Second)
	show(10*time.Second, 6)
	show(4*time.Minute, 9) // the wait is over
	want := "prog: read 5, about 10s left\nprog: waiting 4m0s for a: it is in trouble\nprog: waiting 9s for b: not as long\n" +
		"prog: read 6, about 3m50s left\nprog: read 9, about 29s left\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestBar: on a terminal progress is one bar for each task. It is drawn again every second, with what is waited for;
// the time left is never less than that. It gives way to log lines, and a full count does not end it.
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
		// The last drawing has these texts: the bar is the library's, so that not all bytes of it are held.
		shows := func(texts ...string) {
			t.Helper()
			frames := strings.Split(drawn(), "\r\x1b[J")
			for _, text := range texts {
				if last := frames[len(frames)-1]; !strings.Contains(last, text) {
					t.Errorf("want %q in %q", text, last)
				}
			}
		}
		after := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		c.Show(Progress{Words: "reading", Total: 30})
		shows("reading 0 of 30", "   0% |"+strings.Repeat(" ", 49)+"|  [0s]")
		c.Show(Progress{Words: "reading", Done: 1, Total: 30}) // at once again: the next drawing has it
		after(7 * time.Second)
		shows("reading 1 of 30, 3:23 left", "   3% |█"+strings.Repeat(" ", 37)+"|  [7s]")
		c.Wait("for a: it asks for it", 1000*time.Second)
		c.Wait("for b: not as long", 9*time.Second)
		after(30 * time.Second)
		// Never less than the wait.
		shows("reading 1 of 30, 17:53 left", "waiting 16:10 for a: it asks for it\n")
		after(400 * time.Second)
		shows("reading 1 of 30, 3:31:13 left", "waiting 9:30 for a: it asks for it\n")
		c.Show(Progress{Words: "reading", Done: 29, Total: 30})
		after(time.Second)
		shows("reading 29 of 30, 9:29 left", "waiting 9:29 for a: it asks for it\n")
		resize(40)
		after(time.Second)
		shows("reading 29 of 30, 9:", "waiting 9:28 for a: it asks for it\n")
		resize(80)
		fmt.Fprintln(c, "a log line")
		if got := drawn(); !strings.Contains(got, "\r\x1b[Ja log line\n\r\x1b[J\rreading") {
			t.Errorf("the log line is not between two bars: %q", got)
		}
		after(time.Hour)
		bar := c.bar
		c.Show(Progress{Words: "writing", Done: 30, Total: 30})
		shows("writing 30 of 30", "  99% |"+strings.Repeat("█", 42)+" |  [1h7m19s]")
		if c.bar != bar {
			t.Error("the task has got another bar")
		}
		c.Clear()
		after(5 * time.Second)
		if !strings.HasSuffix(drawn(), "\r\x1b[J") {
			t.Errorf("a cleared bar is drawn: %q", drawn())
		}
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
