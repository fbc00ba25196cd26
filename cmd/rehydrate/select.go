package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/console"
	"rehydrate/curate/dump"
	"rehydrate/internal/printable"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// selectFlags are the flags of select.
type selectFlags struct {
	dump.Wish
	from, until string
	policy      string
	out         string
	after       bool
}

func (c *command) selectCommand() *cobra.Command {
	var f selectFlags
	cmd := c.workspaceCommand("select", f.check, func(cmd *cobra.Command, args []string) error {
		if f.after {
			return c.selectKept(cmd.Context(), f)
		}
		return c.selectFrom(cmd.Context(), args, f)
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Subreddits, "subreddit", nil, "")
	flags.StringVar(&f.from, "from", "", "")
	flags.StringVar(&f.until, "until", "", "")
	flags.IntVar(&f.N, "n", 0, "")
	flags.StringVar(&f.Seed, "seed", "1", "")
	flags.StringVar(&f.policy, "policy", "", "")
	flags.BoolVar(&f.after, "after", false, "")
	registerOut(cmd, &f.out, "candidates")
	return cmd
}

func (f *selectFlags) check(cmd *cobra.Command, args []string) (err error) {
	parse := func(flag, text string, to *dump.Month) error {
		if text == "" {
			return nil
		}
		*to, err = dump.ParseMonth(text)
		if err != nil {
			return usageError("--%s: %w", flag, err)
		}
		return nil
	}
	switch {
	case f.after && (len(args) > 0 || len(f.Subreddits) > 0 || f.from != "" || f.until != "" || f.policy != ""):
		return usageError("--after draws from the posts that a workspace kept; leave DUMP, --subreddit, --from, --until and --policy out")
	case f.after && f.N == 0:
		return usageError("--after needs --n N, the number of posts to draw")
	case !f.after && len(args) == 0:
		return usageError("%s needs a dump of Reddit submissions, or - for standard input", cmd.CommandPath())
	case f.N < 0 || f.N == 0 && cmd.Flags().Changed("n"):
		return usageError("--n takes 1 or more, not %d", f.N)
	}
	err = errors.Join(parse("from", f.from, &f.From), parse("until", f.until, &f.To))
	months := func(m dump.Month) int { return 12*m.Year + int(m.Month) }
	if err == nil && f.from != "" && f.until != "" && months(f.From) > months(f.To) {
		err = usageError("--from %s is after --until %s", f.from, f.until)
	}
	return err
}

func (c *command) selectFrom(ctx context.Context, paths []string, f selectFlags) error {
	p, err := readPolicy(f.policy)
	if err != nil {
		return err
	}
	f.Host = func(name string) bool { _, ok := p.Host(name); return ok }
	f.Today = c.now()
	if err := dump.Vacant(f.out); err != nil {
		return usageError("%w", err)
	}
	if c.getenv("GOMEMLIMIT") == "" {
		// A dump's window alone takes more than the limit that serves the other commands: the collector would never rest.
		debug.SetMemoryLimit(math.MaxInt64)
	}
	chooser := dump.New(f.Wish)
	for _, path := range paths {
		if err := c.readDump(ctx, chooser, path); err != nil {
			c.console.Done()
			if is[*userfile.Missing](err) {
				return err
			}
			err = fmt.Errorf("read the dump %s: %w", path, err)
			if errors.Is(err, dump.ErrComments) || errors.Is(err, dump.ErrNoDump) {
				return &userfile.Fault{Err: err, Hint: "name a file of submissions, such as RS_2020-06.zst"}
			}
			return err
		}
	}
	c.console.Done()
	if n := chooser.Funnel; n.Candidates == 0 {
		return &userfile.Fault{Hint: "check --subreddit, --from and --until, and that the dump has submissions; nothing was written",
			Err: fmt.Errorf("no candidate among %d lines: %d damaged, %d of other subreddits, %d of other months, %d removed, "+
				"%d without an image", n.Lines, n.Damaged, n.Other, n.Outside, n.Removed+n.Elsewhere, n.NoImage)}
	}
	rows := [][]string{{"id", "month", "subreddit"}}
	for _, one := range chooser.Chosen() {
		rows = append(rows, []string{string(one.ID), one.Month.String(), one.Subreddit})
	}
	return c.writeCandidates(ctx, f, rows, selectAnswer{Funnel: chooser.Funnel})
}

func (c *command) readDump(ctx context.Context, chooser *dump.Chooser, path string) error {
	if path == "-" {
		return chooser.Read(c.watched(ctx, c.stdin, "standard input", 0))
	}
	file, size, err := userfile.Open(path)
	if err != nil {
		return asUsage(err)
	}
	defer file.Close()
	return chooser.Read(c.watched(ctx, file, filepath.Base(path), size))
}

func (c *command) watched(ctx context.Context, r io.Reader, name string, size int64) io.Reader {
	const mega = 1 << 20
	return dump.Watch(ctx, r, func(read int64) {
		if !c.quiet && size > 0 {
			c.console.Show(console.Progress{Task: name, Words: "MB of " + printable.EscapedLine(name), Done: int(read / mega),
				Total: int(size/mega) + 1,
				Line:  fmt.Sprintf("%s: %d of %d MB", printable.EscapedLine(name), read/mega, size/mega+1)})
		}
	})
}

// selectKept chooses among the kept posts of a workspace.
func (c *command) selectKept(ctx context.Context, f selectFlags) error {
	if err := dump.Vacant(f.out); err != nil {
		return usageError("%w", err)
	}
	kept, err := reading(ctx, c, func(ws *workspace.Workspace) (keptPosts, error) { return findKept(ctx, ws) })
	if err != nil {
		return err
	}
	if len(kept.ids) == 0 {
		return userfile.Wrong("the workspace %s kept no post to choose among, but for %d that a filter marked and %d that "+
			"are gone or held back", c.workspace, kept.marked, kept.gone)
	}
	drawn := dump.Sample(kept.ids, f.N, f.Seed)
	funnel := dump.Funnel{Lines: len(kept.ids), Candidates: len(kept.ids), Chosen: len(drawn)}
	rows := [][]string{{"id"}}
	for _, id := range drawn {
		for _, row := range kept.rows[id] {
			rows = append(rows, []string{row})
		}
	}
	return c.writeCandidates(ctx, f, rows, selectAnswer{Funnel: funnel, Marked: kept.marked, Gone: kept.gone})
}

// keptPosts are the posts of a workspace that select draws from.
type keptPosts struct {
	ids    []manifest.PostID
	rows   map[manifest.PostID][]string // the ids of their images that are drawn with them
	marked int                          // others that a filter marked: another workspace would have left them out
	gone   int                          // others that are held back, or that an audit heard is gone
}

// findKept finds the posts that select draws from: those with a kept image that may be shown.
func findKept(ctx context.Context, ws *workspace.Workspace) (k keptPosts, err error) {
	if err := refuseEnded(ctx, ws); err != nil {
		return k, err
	}
	if err := state.CheckWritten(ctx, ws); err != nil { // else the sample would be of what happens to be written
		return k, err
	}
	hidden, err := state.MustHideNow(ctx, ws)
	if err != nil {
		return k, err
	}
	k.rows = map[manifest.PostID][]string{}
	marks, hides := map[manifest.PostID]bool{}, map[manifest.PostID]bool{}
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return k, err
		}
		switch {
		case rec.Result == nil || rec.Result.Outcome != manifest.Kept:
		case hidden.HasRow(rec.Key.String()): // people would be asked to look at it
			hides[rec.ID] = true
		case rec.Result.Flagged():
			marks[rec.ID] = true
		default:
			if k.rows[rec.ID] == nil {
				k.ids = append(k.ids, rec.ID)
			}
			k.rows[rec.ID] = append(k.rows[rec.ID], rec.Key.String())
		}
	}
	maps.DeleteFunc(marks, func(id manifest.PostID, _ bool) bool { return k.rows[id] != nil })
	maps.DeleteFunc(hides, func(id manifest.PostID, _ bool) bool { return k.rows[id] != nil || marks[id] })
	k.marked, k.gone = len(marks), len(hides)
	return k, nil
}

// writeCandidates writes the posts that were chosen, and completes the answer that it prints.
func (c *command) writeCandidates(ctx context.Context, f selectFlags, rows [][]string, answer selectAnswer) error {
	name, err := dump.Write(ctx, f.out, rows, answer.Funnel)
	if err != nil {
		return err
	}
	answer.Out, answer.After, answer.Wanted = name, f.after, f.N
	return c.answer("select", answer)
}

// A selectAnswer is what select prints.
type selectAnswer struct {
	dump.Funnel
	Out    string `json:"out"`
	After  bool   `json:"after"`
	Wanted int    `json:"wanted,omitempty"`
	// Marked counts, with After, the posts that a filter marked: they are not drawn.
	Marked int `json:"marked,omitempty"`
	// Gone counts, with After, the posts whose removal is held back or was heard by an audit: they are not drawn.
	Gone int `json:"gone,omitempty"`
}
