package copies

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A Disclosure says to whom rows are sent, and why.
type Disclosure struct {
	Name string // of the third party, in the operator's words
	Note string // why, in the operator's words
	Host string // that is asked; the log gets its digest alone
}

// Check refuses a name or a note that is not a line of plain text.
func (d Disclosure) Check() error {
	if CheckNote(d.Name) != nil || len(d.Name) > 60 || strings.ContainsAny(d.Name, `/\`) {
		return errors.New("the name of a third party is one line of 1 to 60 bytes of plain text without slashes")
	}
	if CheckNote(d.Note) != nil {
		return errors.New("a note is one line of 1 to 200 bytes of plain text that says why rows go to the third party")
	}
	return nil
}

// Disclose puts on record that rows are about to be sent. For the workspace the third party has a copy that no purge
// can reach: an open obligation until Close.
func Disclose(ctx context.Context, ws *workspace.Workspace, d Disclosure, rows []string, now time.Time) error {
	if err := d.Check(); err != nil {
		return err
	}
	copies, err := ws.Copies(ctx)
	if err != nil {
		return err
	}
	c := workspace.Copy{Path: state.ThirdPartyPath(d.Name), Made: now.UTC().Truncate(time.Second)}
	for _, have := range copies {
		// What was said of an earlier disclosure holds for the rows of that one.
		if have.Path == c.Path && state.StateOfCopy(have) != state.CopyClosed {
			c = have
		}
	}
	c.Note, c.Format, c.Open, c.Told = d.Note, state.ThirdParty, true, errDisclosed.Error()
	c.Rows = slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.Rows, rows))))
	var events []auditlog.Event
	for some := range slices.Chunk(rows, auditlog.MaxPosts) {
		event := auditlog.Event{Kind: auditlog.Disclosed, Path: state.SHA256([]byte(c.Path)), Format: c.Format,
			SHA256: state.SHA256([]byte(d.Host))}
		for _, row := range some {
			event.Posts = append(event.Posts, auditlog.Post{ID: dataset.PostOf(row)})
		}
		event.Posts = slices.Compact(event.Posts) // a gallery has several rows
		events = append(events, event)
	}
	return ws.SetCopy(ctx, c, events...)
}

// errDisclosed is the trouble with rows that were sent to a third party.
var errDisclosed = errors.New("sent to a third party, where no purge reaches it: have it deleted there, then say so with --destroyed")
