// Package console owns stderr while a command runs: log lines and progress are written by it alone, so that they
// never land inside one another.
package console

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

// A Console is safe for concurrent use.
type Console struct {
	name string
	out  io.Writer
	now  func() time.Time
	// The bar asks its writer for the width of the screen, so it is given the terminal itself. It shows words of
	// this program and numbers, nothing that came from outside.
	terminal *os.File // nil where stderr is not one, or one that cannot redraw a line

	mu    sync.Mutex // guards what follows
	bar   *progressbar.ProgressBar
	task  string
	words string
	began time.Time // of the task
	last  time.Time // when progress was last printed as a line
}

// A Progress is how far a command is.
type Progress struct {
	Task        string // another task begins a new bar, with a new estimate of the time left
	Words       string // beside the bar; short, so that a narrow screen has room for both
	Line        string // without a bar
	Done, Total int
}

// New returns the console of a program. It writes to out, which passes everything on to stderr; kind is that of
// the terminal (TERM), if stderr is one.
func New(name string, out, stderr io.Writer, kind string, now func() time.Time) *Console {
	c := &Console{name: name, out: out, now: now}
	if f, ok := stderr.(*os.File); ok && kind != "dumb" && term.IsTerminal(int(f.Fd())) {
		c.terminal = f
	}
	return c
}

// Write writes lines: the bar is cleared first and drawn again below them.
func (c *Console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	n, err := c.out.Write(b)
	if c.bar != nil && bytes.HasSuffix(b, []byte("\n")) {
		_ = c.bar.RenderBlank() // a command goes on where the terminal cannot be drawn on
	}
	return n, err
}

// Clear makes room for a line on stdout, which may be the same terminal.
func (c *Console) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

// Done takes the bar off the screen for good.
func (c *Console) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.bar = nil
}

func (c *Console) clear() {
	if c.bar != nil {
		_ = c.bar.Clear()
	}
}

// Show shows progress: a bar on a terminal, a line every few seconds elsewhere.
func (c *Console) Show(p Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.began.IsZero() || p.Task != c.task {
		c.clear()
		c.bar, c.task, c.began, c.last = nil, p.Task, now, now
	}
	if c.terminal != nil {
		c.draw(p)
		return
	}
	if now.Sub(c.last) < 5*time.Second { // often enough for somebody who follows a log, seldom enough not to fill it
		return
	}
	c.last = now
	left := "" // nothing to estimate by before the first is done
	if p.Done > 0 && p.Done < p.Total {
		perUnit := float64(now.Sub(c.began)) / float64(p.Done)
		left = ", about " + time.Duration(perUnit*float64(p.Total-p.Done)).Round(time.Second).String() + " left"
	}
	fmt.Fprintf(c.out, "%s: %s%s\n", c.name, p.Line, left)
}

func (c *Console) draw(p Progress) {
	if c.bar == nil {
		c.bar = progressbar.NewOptions(p.Total, progressbar.OptionSetWriter(c.terminal),
			progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionShowCount())
	}
	if p.Words != c.words {
		c.words = p.Words
		c.bar.Describe(p.Words)
		_ = c.bar.RenderBlank() // at once: the next step may be long
	}
	// A full bar takes itself off the screen, and there may be work left that is not counted.
	if p.Done < p.Total {
		_ = c.bar.Set(p.Done)
	}
}
