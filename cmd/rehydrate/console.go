package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"rehydrate/pipeline"
)

// plainEvery is how often progress is told where stderr is no terminal: often enough for
// somebody who follows a log, seldom enough not to fill it.
const plainEvery = 5 * time.Second

// A console owns stderr while a command runs: the progress bar and the log lines are
// written by it alone, so that they never land inside one another. It is safe for
// concurrent use.
type console struct {
	out io.Writer
	now func() time.Time
	// The bar asks its writer for the width of the screen, so it is given the terminal itself. It
	// shows words of this program and numbers, nothing that came from outside.
	terminal *os.File // nil where stderr is none, or one that can't redraw a line
	quiet    bool     // set before the first observation

	mu    sync.Mutex // guards what follows
	bar   *progressbar.ProgressBar
	began time.Time
	last  time.Time // when progress was last told in plain lines
	stage string
}

// newConsole writes to out, which hands on to stderr, a terminal of a kind (TERM) if it is
// one. Nothing here is coloured, so that NO_COLOR has nothing to turn off.
func newConsole(out, stderr io.Writer, kind string, now func() time.Time) *console {
	c := &console{out: out, now: now}
	if f, ok := stderr.(*os.File); ok && kind != "dumb" && term.IsTerminal(int(f.Fd())) {
		c.terminal = f
	}
	return c
}

// Write writes log lines: the bar is cleared first and drawn again below them.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	n, err := c.out.Write(b)
	if c.bar != nil && bytes.HasSuffix(b, []byte("\n")) {
		_ = c.bar.RenderBlank()
	}
	return n, err
}

// clear takes the bar off the screen. A terminal that can't be written to is no reason to
// stop a run: errors of drawing are dropped here and below.
func (c *console) clear() {
	if c.bar != nil {
		_ = c.bar.Clear()
	}
}

// observe shows the state of a run: one bar over the entries on a terminal, a line every
// few seconds elsewhere. A wait is always said, at once.
func (c *console) observe(s pipeline.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Total == 0 || c.quiet {
		return
	}
	if c.began.IsZero() {
		c.began = c.now()
		c.last = c.began
	}
	if s.Wait != nil {
		c.clear()
		fmt.Fprintf(c.out, "rehydrate: waiting %s for %s: %s\n", s.Wait.For.Round(time.Second), s.Wait.Host, s.Wait.Reason)
	}
	if c.terminal != nil {
		c.draw(s)
		return
	}
	if now := c.now(); now.Sub(c.last) >= plainEvery {
		c.last = now
		fmt.Fprintf(c.out, "rehydrate: %s%s\n", describe(s), c.remaining(s))
	}
}

func (c *console) draw(s pipeline.Snapshot) {
	if c.bar == nil {
		c.bar = progressbar.NewOptions(s.Total, progressbar.OptionSetWriter(c.terminal),
			progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionShowCount())
	}
	if s.Stage != c.stage {
		c.stage = s.Stage
		_ = c.bar.RenderBlank()
	}
	// Short, so that a narrow screen has room for the bar.
	words := s.Stage
	if s.Failed > 0 {
		words += fmt.Sprintf(", %d to retry", s.Failed)
	}
	c.bar.Describe(words)
	// A full bar would take itself off the screen while dedupe and export still run.
	if s.Done < s.Total {
		_ = c.bar.Set(s.Done)
	}
}

// describe is the progress line without the bar.
func describe(s pipeline.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d entries, %d fetched, %d read, %d not to be had", s.Stage, s.Done, s.Total, s.Fetched, s.Read, s.Gone)
	if s.Failed > 0 {
		fmt.Fprintf(&b, ", %d to retry", s.Failed)
	}
	return b.String()
}

// remaining guesses the time left from the entries done so far.
func (c *console) remaining(s pipeline.Snapshot) string {
	if s.Done == 0 || s.Done >= s.Total {
		return ""
	}
	left := time.Duration(float64(c.now().Sub(c.began)) / float64(s.Done) * float64(s.Total-s.Done))
	return ", about " + left.Round(time.Second).String() + " left"
}

// done takes the bar off the screen for good.
func (c *console) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.bar = nil
}
