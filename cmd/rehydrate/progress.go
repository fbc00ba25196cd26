package main

import (
	"fmt"

	"rehydrate/cmd/internal/console"
	"rehydrate/curate/neardup"
	"rehydrate/pipeline"
)

// observe shows the state of a run: one bar over the entries, whatever the stage.
func (c *command) observe(s pipeline.Snapshot) {
	if c.quiet {
		return
	}
	if s.Wait != nil { // at once: a bar that stands still looks like a hang
		c.console.Wait(fmt.Sprintf("for %s: %s", s.Wait.Host, s.Wait.Reason), s.Wait.For)
	}
	if s.Total == 0 {
		return
	}
	retry := ""
	if s.Failed > 0 {
		retry = fmt.Sprintf(", %d to retry", s.Failed)
	}
	p := console.Progress{Words: s.Stage + retry, Done: s.Done, Total: s.Total,
		Line: fmt.Sprintf("%s: %d of %d images, %d downloaded, %d read, %d not available%s", s.Stage, s.Done, s.Total,
			s.Fetched, s.Read, s.Gone, retry)}
	if s.Posts > 0 {
		p = console.Progress{Task: s.Stage, Words: s.Stage, Done: s.Asked, Total: s.Posts,
			Line: fmt.Sprintf("%s: %d of %d posts", s.Stage, s.Asked, s.Posts)}
	}
	c.console.Show(p)
}

// observePictures shows how far a command is that looks at pictures.
func (c *command) observePictures(p neardup.Progress) {
	if !c.quiet {
		c.console.Show(console.Progress{Task: p.Stage, Words: p.Stage, Done: p.Done, Total: p.Total,
			Line: fmt.Sprintf("%s: %d of %d images", p.Stage, p.Done, p.Total)})
	}
}
