package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Purge takes the rows that copies must lose when these are erased and these tombstones hold (state.MustLeaveCopies)
// out of every registered copy that can be reached. It holds the files of each against their recorded digests, and
// opens an obligation for every copy that is not in order or out of reach. An error with one copy is in that copy's
// report. Copies of which only the log knows are reported behind the others.
func Purge(ctx context.Context, ws *workspace.Workspace, erased state.GoneSet, stones state.Holding,
	p policy.Policy) ([]state.CopyReport, error) {
	copies, err := ws.Copies(ctx)
	if err != nil {
		return nil, err
	}
	for i, c := range copies {
		if back := standsAgain(ctx, copies, c); back != nil {
			if err := reopen(ctx, ws, *back); err != nil {
				return nil, err
			}
			copies[i] = *back
		}
	}
	all, err := state.MustLeaveCopies(ctx, ws, erased, stones, p) // rows of the reopened copies among them
	if err != nil {
		return nil, err
	}
	reports := []state.CopyReport{}
	// The last path first: a copy inside another one is purged before the outer one is read.
	for _, c := range slices.Backward(copies) {
		gone := all.In(c)
		if state.StateOfCopy(c) == state.CopyClosed {
			err := removeLater(ctx, c)
			if err == nil {
				err = lacksGone(ctx, c, gone)
			}
			if err != nil {
				report := state.NewCopyReport(c)
				report.State, report.Told = state.CopyOpen, printable.Line(err.Error())
				reports = append(reports, report)
			}
			continue
		}
		report, err := purgeCopy(ctx, ws, c, others(copies, c), gone)
		if err != nil {
			return nil, fmt.Errorf("purge the copy %s: %w", c.Path, err)
		}
		reports = append(reports, report)
	}
	slices.Reverse(reports)
	if err := state.NoteHeld(ctx, ws, reports, all); err != nil {
		return nil, err
	}
	lost, err := state.LostCopies(ctx, ws)
	return append(reports, lost...), err
}

// removeLater removes the folder of an unfinished copy that is there although the copy was closed.
func removeLater(ctx context.Context, c workspace.Copy) error {
	if left := Leftover(ctx, c); left != "" {
		return discard(left)
	}
	return nil
}

// purgeCopy purges a copy that is not closed. The others are in its folder by right.
func purgeCopy(ctx context.Context, ws *workspace.Workspace, c workspace.Copy, others []string,
	gone state.GoneSet) (state.CopyReport, error) {
	ids, rows := state.Owed(c, gone), c.Rows
	removed, err := removeUnfinished(ctx, ws, &c)
	switch {
	case err != nil:
		c.Rows, c.Open, c.Told = rows, true, printable.Line(err.Error())
		report := state.NewCopyReport(c)
		report.Owed = ids
		return report, ws.SetCopy(ctx, c, purgedOf(c, ids, "open"))
	case removed:
		return state.NewCopyReport(c), nil
	}
	// A copy that owes nothing is compared and read all the same: somebody may have put back what a purge took out.
	p := &purging{copy: c, ws: ws, gone: gone, owes: len(ids) > 0, others: others}
	trouble := p.takeOut(ctx)
	switch {
	case ctx.Err() != nil:
		return state.CopyReport{}, ctx.Err()
	case trouble == nil && !p.owes && !c.Open:
		return state.NewCopyReport(c), nil
	}
	// One transaction has the record and its log event, also for a copy that could not be purged: an obligation
	// that is not on record is forgotten.
	verdict := ""
	p.copy.Open, p.copy.Told = false, ""
	if trouble != nil {
		p.copy.Open, p.copy.Told, verdict = true, printable.Line(trouble.Error()), "open"
	}
	event := purgedOf(p.copy, ids, verdict)
	// A file that somebody put beside them keeps the copy open, and no row that is out is owed again for it.
	if p.out {
		p.copy.Rows = slices.DeleteFunc(p.copy.Rows, gone.HasRow)
		maps.DeleteFunc(p.copy.Former, func(row string, _ workspace.Former) bool { return gone.HasRow(row) })
		p.copy.Next, p.copy.Taken = nil, p.copy.Taken+len(ids)
	}
	if err := ws.SetCopy(ctx, p.copy, event); err != nil {
		return state.CopyReport{}, err
	}
	report := state.NewCopyReport(p.copy)
	if p.out {
		report.Purged = ids
	} else {
		report.Owed = ids
	}
	return report, nil
}

// purgedOf is purged with the files that the copy has, and the posts of the rows that must go.
func purgedOf(c workspace.Copy, rows []string, verdict string) auditlog.Event {
	event := purged(c, verdict)
	event.Files = logFiles(c.Files)
	for _, row := range rows[:min(len(rows), auditlog.MaxPosts)] {
		event.Posts = append(event.Posts, auditlog.Post{ID: dataset.PostOf(row)})
	}
	return event
}

// A purging takes rows out of one copy.
type purging struct {
	copy   workspace.Copy
	root   *os.Root
	ws     *workspace.Workspace
	gone   state.GoneSet
	owes   bool     // one of its rows must go
	out    bool     // no file of the copy has such a row any more, nor any other file that can be read
	others []string // paths of other copies
}

// The files of a dataset folder that describe it name the digests of the others, which are wrong once a row is gone.
// The card stays without them: a copy never is without licence and terms.
const cardName, croissantName = "README.md", "croissant.json"

// takeOut takes the rows out and checks that they are gone. Its error is the trouble with the copy.
func (p *purging) takeOut(ctx context.Context) (err error) {
	p.root, err = openCopy(p.copy)
	if err != nil {
		return err
	}
	defer p.root.Close()
	var trouble []error
	var files []workspace.File
	away := map[string]workspace.File{}
	for i := range p.copy.Files {
		f := p.copy.Files[i]
		after, err := p.file(ctx, i)
		switch {
		case errors.Is(err, errWent):
			away[f.Name], after = f, &f
		case err != nil: // the other files are written all the same
			after, trouble = &f, append(trouble, fmt.Errorf("%s: %w", f.Name, err))
		}
		if after != nil {
			files = append(files, *after)
		}
	}
	// A killed purge takes away none but files that have to go. Where others are missing, too, the copy lies elsewhere,
	// as on a disk that is not mounted, and so do these.
	if !slices.ContainsFunc(trouble, func(err error) bool { return errors.Is(err, errNotThere) }) {
		files = slices.DeleteFunc(files, func(f workspace.File) bool { return away[f.Name] == f })
	}
	// The digests of the files that were rewritten count even when another file made trouble.
	p.copy.Files = files
	err = p.prove(ctx)
	// What a changed file has is the holder's to say, but a row in it that must go is named.
	if len(trouble) > 0 && !errors.As(err, new(*state.RowThere)) {
		err = nil
	}
	p.out = err == nil && len(trouble) == 0
	if err == nil && (p.owes || p.copy.Taken > 0) {
		err = noForeign(p.root, p.copy, p.others)
	}
	if err != nil {
		trouble = append(trouble, err)
	}
	return describe(trouble)
}

// tempName returns the base name of a file of a copy while it is written.
func tempName(name string) string { return ".tmp-rehydrate-" + path.Base(name) }

// errWent says of a file that has to go, or of the card, that it is not there.
var errWent = errors.New("it went")

// file takes rows out of the file i, and returns the new one; nil when it is no longer part of the copy.
func (p *purging) file(ctx context.Context, i int) (*workspace.File, error) {
	f := p.copy.Files[i]
	// The name is always the same, so that this finds the file of a purge that was killed.
	if err := p.root.Remove(path.Join(path.Dir(f.Name), tempName(f.Name))); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	image := dataset.ImageID(f.Name)
	goes := p.gone.HasRow(image) || p.owes && f.Name == croissantName
	now, err := stat(ctx, p.root, f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (goes || p.owes && f.Name == cardName):
		return nil, errWent
	case err != nil:
		return nil, orNotThere(err)
	case now == f && goes:
		return nil, durable.In(p.root).Remove(ctx, f.Name)
	case now != f && now.SHA256 != p.copy.Next[f.Name]:
		return nil, errChanged // whatever it is now, it is not ours to rewrite or to remove
	case now != f:
		// A purge that was killed had written it. Posts that are gone since then may be in it. It goes on record with
		// the digest of the next one.
		p.copy.Files[i] = now
	case !p.owes || !dataset.Holds(f.Name) && f.Name != cardName:
		return &f, nil
	}
	return p.rewrite(ctx, now)
}

// rewrite replaces a file by one without the rows.
func (p *purging) rewrite(ctx context.Context, f workspace.File) (*workspace.File, error) {
	old, err := durable.OpenRegular(p.root, f.Name)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	after, err := workspace.WriteFile(ctx, durable.In(p.root), f.Name, tempName(f.Name), func(w io.Writer) error {
		if f.Name == cardName {
			return dataset.WriteCardWithout(w, old, p.emptied())
		}
		return dataset.WriteWithout(w, f.Name, old, f.Size, p.gone.HasRow)
	}, func(made io.ReaderAt, after workspace.File) error {
		// It is read back before it gets the name: a copy that still shows a removed post would pass for purged.
		if err := state.LacksRows(ctx, made, after.Size, f.Name, p.gone); err != nil || after == f {
			return err
		}
		// The new digest is on record before the rename: after a kill between the two, the next purge recognizes
		// either file, and takes neither for one that was changed by hand.
		if p.copy.Next == nil {
			p.copy.Next = map[string]string{}
		}
		p.copy.Next[f.Name] = after.SHA256
		return p.ws.SetCopy(ctx, p.copy)
	})
	return &after, err
}

// emptied are the splits of an image folder that have no image left.
func (p *purging) emptied() (splits []string) {
	if p.copy.Format != string(dataset.Folder) {
		return nil
	}
	full := map[string]bool{}
	for _, f := range p.copy.Files {
		if image := dataset.ImageID(f.Name); image != "" && !p.gone.HasRow(image) {
			full[path.Dir(f.Name)] = true
		}
	}
	for _, f := range p.copy.Files {
		if split := path.Dir(f.Name); dataset.Holds(f.Name) && !full[split] {
			splits = append(splits, split)
		}
	}
	return splits
}

func (p *purging) open(name string) (*os.File, error) { return durable.OpenRegular(p.root, name) }

// prove reads every file in the copy's folder, also files that are not part of the copy.
func (p *purging) prove(ctx context.Context) error {
	return fs.WalkDir(p.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		image := dataset.ImageID(name)
		switch {
		case !e.Type().IsRegular():
			return nil
		case p.gone.HasRow(image):
			return fmt.Errorf("%s shows a post that must go: delete it: %w", name, &state.RowThere{ID: image})
		}
		err = state.FileLacksRows(ctx, p.open, name, p.gone)
		switch {
		case err == nil:
			return nil
		case slices.ContainsFunc(p.copy.Files, func(f workspace.File) bool { return f.Name == name }):
			return fmt.Errorf("%s: %w", name, err)
		}
		do := "check it, and delete it"
		if workspace.Unread(err) {
			do = "make it readable"
		}
		return fmt.Errorf("%s, which is not part of the copy: %w; %s", name, err, do)
	})
}
