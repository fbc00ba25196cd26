package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// plainEvery is how often progress is told where stderr is no terminal.
const plainEvery = 5 * time.Second

// A console owns stderr: the progress bar and the lines are written by it alone, so that
// they never land inside one another. It is safe for concurrent use.
type console struct {
	out      io.Writer
	now      func() time.Time
	terminal *os.File // for the bar; nil for plain lines

	mu    sync.Mutex // guards what follows
	bar   *progressbar.ProgressBar
	began time.Time
	last  time.Time // when progress was last told in plain lines
}

// newConsole shows a bar where stderr is a terminal.
func newConsole(stderr io.Writer, now func() time.Time) *console {
	c := &console{out: stderr, now: now, began: now(), last: now()}
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.terminal = f
	}
	return c
}

// Write writes lines: the bar is cleared first and drawn again below them.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
	n, err := c.out.Write(b)
	if c.bar != nil && bytes.HasSuffix(b, []byte("\n")) {
		_ = c.bar.RenderBlank()
	}
	return n, err
}

// wipe takes the bar off the screen. A terminal that can't be written to is no reason to
// stop: errors of drawing are dropped here and below.
func (c *console) wipe() {
	if c.bar != nil {
		_ = c.bar.Clear()
	}
}

// clear makes room for a line on stdout, which may be the same terminal.
func (c *console) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
}

// progress tells how far the reading is: nothing for a single image, a bar on a terminal, a
// line every few seconds elsewhere.
func (c *console) progress(n counts, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := n.read + n.failed
	if total < 2 {
		return
	}
	if c.terminal != nil {
		c.draw(n, done, total)
		return
	}
	now := c.now()
	if now.Sub(c.last) < plainEvery || done == total {
		return
	}
	c.last = now
	left := time.Duration(float64(now.Sub(c.began)) / float64(done) * float64(total-done))
	fmt.Fprintf(c.out, "ocr: %s, about %s left\n", described(n, total), left.Round(time.Second))
}

func described(n counts, total int) string {
	s := fmt.Sprintf("%d of %d images", n.read+n.failed, total)
	if n.failed > 0 {
		s += fmt.Sprintf(", %d could not be read", n.failed)
	}
	return s
}

func (c *console) draw(n counts, done, total int) {
	if c.bar == nil {
		c.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(c.terminal),
			progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetElapsedTime(true))
	}
	c.bar.Describe(described(n, total))
	_ = c.bar.Set(done)
}

// done takes the bar off the screen for good.
func (c *console) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
	c.bar = nil
}
