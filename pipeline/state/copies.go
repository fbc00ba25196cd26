package state

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/workspace"
)

// A CopyState is what is known of a registered copy.
type CopyState string

// The states of a copy.
const (
	CopyGood       CopyState = "good"       // nothing in it must go
	CopyOpen       CopyState = "open"       // an open obligation: rows in it must go, and a purge could not reach them
	CopyUnfinished CopyState = "unfinished" // an export that was killed; the next export or purge removes it
	CopyClosed     CopyState = "closed"     // returned, destroyed or never finished
)

// ThirdParty is the format of a copy that is what was sent to a third party. It has no files here.
const ThirdParty = "third_party"

// ThirdPartyPath stands in place of the path of a copy for what a third party was sent.
func ThirdPartyPath(name string) string {
	return "third-party:" + name // no path of a copy: those are absolute
}

// A CopyReport is a registered copy, and what became of it.
type CopyReport struct {
	Path   string           `json:"path"` // or ThirdPartyPath; of LostCopies sha256: and the first digits of its digest
	Note   string           `json:"note"` // who has it, in the operator's words
	Format string           `json:"format"`
	Made   time.Time        `json:"made"`
	Files  []workspace.File `json:"files"`
	Rows   int              `json:"rows"`
	State  CopyState        `json:"state"`
	Told   string           `json:"told"` // why it is closed, or why it is open
	Owed   []string         `json:"owed"` // rows in it that must go
	// Held are rows in it of posts that are held back: they stay until that is decided.
	Held []string `json:"held_back,omitempty"`
	// Heard are rows in it that an audit heard are gone: the next job that asks takes them out, or holds them back.
	Heard []string `json:"heard_gone,omitempty"`
	// Purged are the rows that this purge took out of it.
	Purged []string `json:"purged"`
}

// StateOfCopy says in which state a copy is by its record alone.
func StateOfCopy(c workspace.Copy) CopyState {
	switch {
	case c.Open:
		return CopyOpen
	case len(c.Files) > 0:
		return CopyGood
	case c.Closed():
		return CopyClosed
	}
	return CopyUnfinished
}

// HasRows reports whether a file of a copy has rows, or is the image of one. The others describe the copy.
func HasRows(name string) bool { return dataset.Holds(name) || dataset.ImageID(name) != "" }

// NewCopyReport is the report on a copy by its record alone.
func NewCopyReport(c workspace.Copy) CopyReport {
	return CopyReport{Path: c.Path, Note: c.Note, Format: c.Format, Made: c.Made,
		Files: append([]workspace.File{}, c.Files...),
		Rows:  len(c.Rows), State: StateOfCopy(c), Told: c.Told, Owed: []string{}, Purged: []string{}}
}

// NotAsked is told of a copy that is good but for rows which an audit heard are gone.
const NotAsked = "run rehydrate recheck RELEASE"

// NotPurged is told of a copy in its place that no purge has read since rows of it have to go, or since it is back.
const NotPurged = "not purged yet: run rehydrate purge RELEASE"

// ListCopies returns all registered copies, by path, closed ones too. It reads the workspace alone and no copy.
func ListCopies(ctx context.Context, ws *workspace.Workspace) ([]CopyReport, error) {
	gone, err := MustLeaveCopiesNow(ctx, ws)
	if err != nil {
		return nil, err
	}
	list, err := OwingCopies(ctx, ws, gone)
	for i, c := range list {
		// It was good at the last purge, or its export was killed, and rows of it have to go since.
		if (c.State == CopyGood || c.State == CopyUnfinished) && len(c.Owed) > 0 {
			list[i].State, list[i].Told = CopyOpen, NotPurged
		}
	}
	return list, err
}

// OwingCopies returns all registered copies, and behind them the LostCopies, with the rows that they owe when these
// rows must go.
func OwingCopies(ctx context.Context, ws *workspace.Workspace, gone CopySet) ([]CopyReport, error) {
	lost, err := LostCopies(ctx, ws)
	if err != nil {
		return nil, err
	}
	copies, err := ws.Copies(ctx)
	if err != nil || len(copies) == 0 {
		return lost, err
	}
	list := []CopyReport{}
	for _, c := range copies {
		report := NewCopyReport(c)
		report.Owed = Owed(c, gone.In(c))
		list = append(list, report)
	}
	return append(list, lost...), NoteHeld(ctx, ws, list, gone)
}

// NoteHeld adds to reports the rows of posts that are held back, but for those that must go anyway.
func NoteHeld(ctx context.Context, ws *workspace.Workspace, list []CopyReport, gone CopySet) error {
	waits, err := Withheld(ctx, ws)
	if err != nil || len(waits.Posts)+len(waits.Entries) == 0 {
		return err
	}
	copies, err := ws.Copies(ctx)
	for r, c := range unclosed(list, copies) {
		gone := gone.In(c)
		for _, row := range Owed(c, waits) {
			if !gone.HasRow(row) {
				r.Held = append(r.Held, row)
			}
		}
	}
	return err
}

// Reported yields copies with their reports. The two lists may be of different moments: another command that registers
// a copy between them moves all behind it, and its own has no report.
func Reported(list []CopyReport, copies []workspace.Copy) iter.Seq2[*CopyReport, workspace.Copy] {
	return func(yield func(*CopyReport, workspace.Copy) bool) {
		for _, c := range copies {
			i := slices.IndexFunc(list, func(r CopyReport) bool { return r.Path == c.Path })
			if i >= 0 && !yield(&list[i], c) {
				return
			}
		}
	}
}

// unclosed yields the reports of copies that are not closed, each with its copy.
func unclosed(list []CopyReport, copies []workspace.Copy) iter.Seq2[*CopyReport, workspace.Copy] {
	return func(yield func(*CopyReport, workspace.Copy) bool) {
		for r, c := range Reported(list, copies) {
			if r.State != CopyClosed && !yield(r, c) {
				return
			}
		}
	}
}

// NoteHeard adds to reports the rows that audits heard are gone. A copy that has such rows is not good.
func NoteHeard(ctx context.Context, ws *workspace.Workspace, list []CopyReport) error {
	heard, err := Heard(ctx, ws)
	if err != nil || heard.Empty() {
		return err
	}
	copies, err := ws.Copies(ctx)
	for r, c := range unclosed(list, copies) {
		r.Heard = Owed(c, heard)
		if len(r.Heard) > 0 && r.State == CopyGood {
			r.State, r.Told = CopyOpen, NotAsked
		}
	}
	return err
}

// HeldPosts counts the posts that are held back and have rows in the copy.
func (r CopyReport) HeldPosts() int { return countPosts(r.Held) }

// HeardPosts counts the posts that have rows in the copy and are gone, or lost an image, by what an audit heard.
func (r CopyReport) HeardPosts() int { return countPosts(r.Heard) }

func countPosts(rows []string) int {
	posts := map[manifest.PostID]bool{}
	for _, row := range rows {
		posts[dataset.PostOf(row)] = true
	}
	return len(posts)
}

// LostCopies reports the copies that the log registers, and a state.db from a backup does not: open obligations, for no
// purge finds them.
func LostCopies(ctx context.Context, ws *workspace.Workspace) ([]CopyReport, error) {
	lost, err := ws.LostCopies(ctx)
	list := []CopyReport{}
	for _, l := range lost {
		list = append(list, CopyReport{Path: "sha256:" + l.Path[:min(16, len(l.Path))], Note: "unknown",
			Format: l.Format, Made: l.Made,
			Files: []workspace.File{}, State: CopyOpen, Owed: []string{}, Purged: []string{},
			Told: fmt.Sprintf("the log has it (record %d, of %s), and state.db, which was put back from a backup, lacks it: "+
				"put back a newer state.db, or delete the copy and say so with --destroyed", l.Record,
				l.Made.Format(time.RFC3339))})
	}
	return list, err
}

// Owed returns the rows of a copy that must go.
func Owed(c workspace.Copy, gone GoneSet) []string {
	return slices.DeleteFunc(append([]string{}, c.Rows...), func(row string) bool { return !gone.HasRow(row) })
}

// openCopies counts the registered copies that owe a removal.
func openCopies(ctx context.Context, ws *workspace.Workspace) (int, error) {
	copies, err := ws.Copies(ctx)
	if err != nil {
		return 0, err
	}
	lost, err := ws.LostCopies(ctx)
	// Most workspaces have none, and need not be scanned for what must go.
	if err != nil || len(copies)+len(lost) == 0 {
		return 0, err
	}
	list, err := ListCopies(ctx, ws)
	open := 0
	for _, c := range list {
		if c.State == CopyOpen {
			open++
		}
	}
	return open, err
}
