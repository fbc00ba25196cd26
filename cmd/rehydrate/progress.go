package main

import (
	"fmt"
	"time"

	"rehydrate/cmd/internal/console"
	"rehydrate/pipeline"
	"rehydrate/pipeline/near"
)

// observe shows the state of a run: one bar over the entries, whatever the stage.
func (c *command) observe(s pipeline.Snapshot) {
	if s.Total == 0 || c.quiet {
		return
	}
	if s.Wait != nil { // on a line of its own, at once: a waiting bar looks like a hang
		fmt.Fprintf(c.console, "rehydrate: waiting %s for %s: %s\n", s.Wait.For.Round(time.Second), s.Wait.Host, s.Wait.Reason)
	}
	retry := ""
	if s.Failed > 0 {
		retry = fmt.Sprintf(", %d to retry", s.Failed)
	}
	c.console.Show(console.Progress{Words: s.Stage + retry, Done: s.Done, Total: s.Total,
		Line: fmt.Sprintf("%s: %d of %d entries, %d fetched, %d read, %d not to be had%s", s.Stage, s.Done, s.Total, s.Fetched, s.Read, s.Gone, retry)})
}

// observePictures shows how far a search for near-duplicates is.
func (c *command) observePictures(p near.Progress) {
	if !c.quiet {
		c.console.Show(console.Progress{Task: p.Stage, Words: p.Stage, Done: p.Done, Total: p.Total,
			Line: fmt.Sprintf("%s: %d of %d pictures", p.Stage, p.Done, p.Total)})
	}
}
