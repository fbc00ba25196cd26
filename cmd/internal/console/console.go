// Package console is what the programs know of terminals. A Console owns stderr while a command runs: log lines and
// progress are written by it alone, so that they never land inside one another.
package console

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A Console is safe for concurrent use.
type Console struct {
	name string
	out  io.Writer
	now  func() time.Time
	// The bar goes to the terminal itself: it shows words of this program, names of hosts and numbers.
	screen io.Writer  // nil where stderr is not a terminal, or one that cannot redraw a line
	width  func() int // of the screen

	mu      sync.Mutex // guards what follows
	shown   Progress
	bar     *progressbar.ProgressBar // of the task, on a terminal
	began   time.Time                // of the task
	last    time.Time                // when progress was last drawn, or printed as a line
	wait    string                   // what is waited for
	until   time.Time                // so long
	redraws chan struct{}            // closed when the bar is gone for good; nil while there is none
	hidden  bool                     // until the next progress
}

// A Progress is how far a command is.
type Progress struct {
	Task        string // another task begins with a new estimate of the time left
	Words       string // before the bar; short, so that a narrow screen has room for both
	Line        string // without a bar
	Done, Total int
}

// New returns the console of a program. It writes to out, which passes everything on to stderr; kind is that of
// the terminal (TERM), if stderr is one.
func New(name string, out, stderr io.Writer, kind string, now func() time.Time) *Console {
	c := &Console{name: name, out: out, now: now}
	if width := widthOf(stderr); width != nil && kind != "dumb" {
		c.screen, c.width = stderr, width
	}
	return c
}

// Write writes lines: the bar is cleared first and drawn again below them.
func (c *Console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	n, err := c.out.Write(b)
	if bytes.HasSuffix(b, []byte("\n")) {
		c.draw()
	}
	return n, err
}

// Clear makes room for a line on stdout, which may be the same terminal; the next progress brings the bar back.
func (c *Console) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.hidden = true
}

// Done takes the bar off the screen for good.
func (c *Console) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.redraws != nil {
		c.clear()
		close(c.redraws)
		c.redraws = nil
	}
}

// Show shows progress: a bar on a terminal, a line every few seconds elsewhere.
func (c *Console) Show(p Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, was := c.now(), c.shown
	if c.began.IsZero() || p.Task != was.Task {
		c.began, c.last = now, now
	}
	c.shown = p
	if c.screen != nil {
		c.setBar(p, was)
		// A change of words is shown at once: the next step may be long.
		if c.start() || c.hidden || p.Words != was.Words || now.Sub(c.last) >= 100*time.Millisecond {
			c.hidden = false
			c.draw()
		}
		return
	}
	if now.Sub(c.last) < 5*time.Second { // often enough for somebody who follows a log, seldom enough not to fill it
		return
	}
	c.last = now
	left := "" // nothing to estimate by before the first is done
	if d, known := c.left(now); known {
		left = ", about " + d.String() + " left"
	}
	fmt.Fprintf(c.out, "%s: %s%s\n", c.name, p.Line, left)
}

// Wait shows what is waited for, and how long still: below the bar on a terminal, as a line elsewhere.
func (c *Console) Wait(what string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.screen == nil {
		fmt.Fprintf(c.out, "%s: waiting %s %s\n", c.name, d.Round(time.Second), what)
	}
	until := c.now().Add(d)
	if !until.After(c.until) { // of several waits at once, that which ends last
		return
	}
	c.wait, c.until = what, until
	if c.screen != nil {
		c.start()
		c.draw()
	}
}

// left estimates how long the task still takes: never less than what is waited for.
func (c *Console) left(now time.Time) (d time.Duration, known bool) {
	p := c.shown
	if p.Done <= 0 || p.Done >= p.Total {
		return 0, false
	}
	perUnit := float64(now.Sub(c.began)) / float64(p.Done)
	d = max(time.Duration(perUnit*float64(p.Total-p.Done)), c.until.Sub(now))
	return max(d.Round(time.Second), time.Second), true
}

// parts is how many parts of a bar a unit is. One more part is never done, so that the bar does not end before the
// task.
const parts = 100

// setBar makes the bar of a task.
func (c *Console) setBar(p, was Progress) {
	switch {
	case p.Total <= 0:
		c.bar = nil
	case c.bar == nil || p.Task != was.Task:
		c.bar = progressbar.NewOptions(parts*p.Total+1, progressbar.OptionSetWriter(c.screen),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionSetMaxDetailRow(1))
		c.bar.StartWithoutRender()
	}
}

// start begins to draw every second, so that a wait does not look like a hang.
func (c *Console) start() (now bool) {
	if c.redraws != nil {
		return false
	}
	done := make(chan struct{})
	c.redraws = done
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				c.mu.Lock()
				if c.redraws == done {
					c.draw()
				}
				c.mu.Unlock()
			}
		}
	}()
	return true
}

func (c *Console) clear() {
	if c.redraws != nil {
		// A command continues where the terminal cannot be drawn on.
		_, _ = io.WriteString(c.screen, "\r\x1b[J")
	}
}

// draw draws the bar, and what is waited for below it.
func (c *Console) draw() {
	if c.redraws == nil || c.hidden {
		return
	}
	now := c.now()
	c.last = now
	wait := ""
	if rest := c.until.Sub(now); rest > 0 {
		wait = cut(fmt.Sprintf("waiting %s %s", clock(rest.Round(time.Second)), c.wait), c.width()-1)
	}
	// Below a bar that a narrower screen has broken, all is erased first.
	_, _ = io.WriteString(c.screen, "\r\x1b[J")
	if c.bar == nil {
		_, _ = io.WriteString(c.screen, wait)
	} else {
		// An error is one of the terminal, and stops no command.
		c.bar.ChangeMax(parts*c.shown.Total + 1)
		_ = c.bar.Set(parts * c.shown.Done)
		c.bar.Describe(c.words(now))
		if wait != "" {
			_ = c.bar.AddDetail(wait)
		}
	}
	// The cursor rests where the bar begins. There it stays when a narrower screen breaks the lines.
	_, _ = io.WriteString(c.screen, "\r")
}

// words stand before the bar: what is done, how much of it, and the time left. The bar itself needs 20 columns.
func (c *Console) words(now time.Time) string {
	text := fmt.Sprintf("%s %d of %d", c.shown.Words, c.shown.Done, c.shown.Total)
	if d, known := c.left(now); known {
		text += ", " + clock(d) + " left"
	}
	return cut(text, c.width()-20)
}

// cut shortens a line of one-column letters.
func cut(s string, width int) string {
	r := []rune(s)
	return string(r[:min(len(r), max(width, 0))])
}

// clock is a time as a clock counts it: 0:07, 12:30, 1:00:00.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
