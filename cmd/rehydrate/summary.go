package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// nextOf is what can be done about images of a fate.
var nextOf = map[manifest.Fate]string{
	manifest.FateKept:        "in the dataset",
	manifest.FateDeleted:     "nothing: they stay out",
	manifest.FateUnavailable: "nothing now: every run asks again",
	manifest.FateFiltered:    "--filters flag keeps them, marked in a column",
	manifest.FateLost:        "nothing, or try again: --retry WORD, a word of its row, such as gone",
	manifest.FateNotAllowed:  "the rules of the release decide: ask its maintainers",
	manifest.FateRetry:       "rehydrate run RELEASE tries again",
}

// adviceFor is what a user can do about images of an outcome and reason.
func adviceFor(n state.Count) string {
	return cmp.Or(specialAdvice(n), nextOf[n.Outcome.Fate()])
}

// specialAdvice is what can be done about a reason, where that differs from its outcome; else "".
func specialAdvice(n state.Count) string {
	switch {
	case (manifest.Result{Outcome: n.Outcome, Reason: n.Reason}).Flagged():
		return "in the dataset, marked in the filter column"
	case n.Reason == state.ReasonSuspected:
		return "look at one: if it is a real image, raise images.suspect_after in policy.toml"
	case policy.LeftPost(n.Reason):
		return "nothing: the image was removed, and stays out"
	case n.Reason == policy.SameAsRemoved:
		return "its image was deleted elsewhere; a maintainer can allow it (images.allow_same_as_removed)"
	case n.Reason == policy.RobotsTag:
		return "its host keeps it out of datasets (X-Robots-Tag); respect_robots_tag decides"
	case n.Reason == "not_rechecked":
		return "run the same command again: Reddit was not asked yet whether it is still there"
	case n.Outcome == manifest.Failed && reddit.NoImage(n.Reason):
		return "run the same command again: the image host sent no images"
	case n.Reason == "imgur_page":
		return "set IMGUR_CLIENT_ID to ask imgur's API"
	}
	return ""
}

// what says in a few words what became of images of an outcome and reason.
func what(n state.Count) string {
	reasons := map[manifest.Reason]string{
		"moderator":            "by moderators",
		policy.LeftGallery:     "taken out of their gallery",
		policy.CrosspostParent: "original post deleted",
		policy.SameAsRemoved:   "same image as a deleted one",
		policy.RobotsTag:       "by their host (X-Robots-Tag)",
		"imgur_page":           "pages of imgur",
	}
	reason := strings.ReplaceAll(strings.Replace(string(n.Reason), "http_", "HTTP ", 1), "_", " ")
	if n.Reason == "tombstone" {
		reason = "kept out by tombstones"
	}
	if _, asked := state.IsRequest(n.Reason); asked {
		return "on request"
	}
	return cmp.Or(reasons[n.Reason], n.Outcome.Short(), reason, string(n.Outcome))
}

// A groupRow is a line of a summary.
type groupRow struct {
	Name  string
	Count int
	What  string // the parts, the most frequent first
}

// groupRows are the groups that have images.
func groupRows(s state.Summary) (rows []groupRow) {
	const most = 54 // columns for the parts
	for _, fate := range manifest.Fates() {
		row := groupRow{Name: string(fate)}
		parts := map[string]int{}
		for _, n := range s.Reasons {
			if n.Outcome.Fate() == fate {
				row.Count += n.Entries
				parts[what(n)] += n.Entries
			}
		}
		switch {
		case row.Count == 0:
			continue
		case fate == manifest.FateKept:
			if s.Flagged > 0 {
				row.What = fmt.Sprintf("%d of them marked by the filters", s.Flagged)
			}
		default:
			row.What = shares(parts, most)
		}
		rows = append(rows, row)
	}
	return rows
}

// shares lists counts by name, the highest first, in so many columns; what has no room is counted as others.
func shares(parts map[string]int, columns int) string {
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b))
	})
	if len(names) == 1 {
		return names[0]
	}
	text := ""
	for i, name := range names {
		part := fmt.Sprintf("%s %s", name, humanize.Comma(int64(parts[name])))
		room := columns
		if i < len(names)-1 {
			room -= len(", others 99")
		}
		if i > 0 && len(text)+len(", ")+len(part) > room {
			others := 0
			for _, rest := range names[i:] {
				others += parts[rest]
			}
			return fmt.Sprintf("%s, others %s", text, humanize.Comma(int64(others)))
		}
		text = strings.TrimPrefix(text+", "+part, ", ")
	}
	return text
}

// removedList counts posts that were removed, and names the first ten with the reasons, of those that stay the images;
// "" for none.
func removedList(posts []state.RemovedPost) string {
	if len(posts) == 0 {
		return ""
	}
	named := posts[:min(len(posts), 10)]
	var reasons []string
	of := map[string][]string{}
	for _, p := range named {
		why := whyRemoved(p)
		if len(of[why]) == 0 {
			reasons = append(reasons, why)
		}
		of[why] = append(of[why], p.Names()...)
	}
	for i, why := range reasons {
		reasons[i] = fmt.Sprintf("%s (%s)", strings.Join(of[why], ", "), why)
	}
	text := times(len(posts), "post, ", "posts, ") + strings.Join(reasons, "; ")
	if more := len(posts) - len(named); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// whyRemoved says why a post was removed, in words that fit one post and several.
func whyRemoved(p state.RemovedPost) string {
	reasons := map[manifest.Reason]string{
		"moderator":        "removed by moderators",
		policy.LeftGallery: "image taken out of the gallery", policy.CrosspostParent: "original post deleted",
		policy.SameAsRemoved: "same image as a deleted post", "": "removed, or on request",
	}
	word, asked := state.IsRequest(p.Reason)
	switch {
	case asked && word != "":
		return fmt.Sprintf("on request, %s", word)
	case asked:
		return "on request"
	}
	switch p.State {
	case manifest.StateDeleted:
		return "deleted by its author"
	case manifest.StateUnavailable:
		return "missing from Reddit's answers"
	}
	return cmp.Or(reasons[p.Reason], fmt.Sprintf("removed, %s", p.Reason))
}

// A reasonRow is a line of the table of reasons: in the words of people, and in those of outcomes.csv.
type reasonRow struct {
	Name  string
	Count int
	Word  string
}

func reasonRows(counts []state.Count) (rows []reasonRow) {
	for _, n := range counts {
		rows = append(rows, reasonRow{string(n.Outcome.Fate()), n.Entries, because(n.Outcome, n.Reason)})
	}
	return rows
}

// A todo is what can be done about images of a group, or of a reason.
type todo struct{ What, Do string }

// todos says once for each group what can be done, and for each reason that differs from its group.
func (c *command) todos(counts []state.Count) (list []todo) {
	for _, n := range counts {
		fate := n.Outcome.Fate()
		t := todo{string(fate), nextOf[fate]}
		if special := specialAdvice(n); special != "" {
			t = todo{string(cmp.Or(n.Reason, manifest.Reason(n.Outcome))), special}
		}
		if n.Outcome == manifest.Pending && cluster.WaitingIn(c.workspace).Shards > 0 {
			t = todo{string(n.Outcome), "see to its shards first: the last line says how"}
		}
		if t.What != string(manifest.FateKept) && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// because is an outcome and its reason.
func because(what any, reason manifest.Reason) string {
	if reason == "" {
		return fmt.Sprint(what)
	}
	return fmt.Sprintf("%s, %s", what, reason)
}

// span is how long something took.
func span(d time.Duration) string {
	s := int(math.Ceil(d.Seconds()))
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
}

// asked counts the requests to Reddit of a run.
func asked(s state.Summary) int {
	return s.Looks.Resolve + s.Looks.Last + s.Calls.About + s.Calls.Token
}

func (c *command) statusCommand() *cobra.Command {
	var exit bool
	cmd := c.workspaceCommand("status", noArgs, func(cmd *cobra.Command, _ []string) error {
		s, err := reading(cmd.Context(), c, func(ws *workspace.Workspace) (s statusReport, err error) {
			s.Summary, err = state.Status(cmd.Context(), ws, c.now())
			if err == nil { // nothing that is stored of a post tells that the last job got no answer about it
				var last state.LastRun
				last, err = state.ReadNote[state.LastRun](cmd.Context(), ws)
				s.Unverified = last.Unverified
			}
			var before string // a command that ends meanwhile may have finished what was found
			if err == nil {
				before, err = ws.Holder()
			}
			if err == nil {
				err = s.FindRemnants(cmd.Context(), ws)
			}
			if err == nil {
				s.Running, err = ws.Holder()
				s.Running = cmp.Or(s.Running, before)
			}
			if err == nil {
				s.Ended, err = readEnded(cmd.Context(), ws)
			}
			if err == nil {
				s.OpenCopies, err = openNow(cmd.Context(), ws, exit)
			}
			return s, err
		})
		if err != nil {
			return err
		}
		if s.Ended != nil { // nothing is to be retried in it, nor asked about
			s.Retry, s.Unverified, s.Stale = 0, 0, false
		}
		if err := c.answer("status", s); err != nil || !exit {
			return err
		}
		if s.Ended != nil && s.Ended.Unfinished || s.Stale {
			return exitCode(exitRetry)
		}
		return statusOf(s.Summary)
	})
	cmd.Flags().BoolVar(&exit, "exit-code", false, "")
	return cmd
}

// openNow counts the registered copies that are open as they lie there. It reads their files only if that is asked for.
func openNow(ctx context.Context, ws *workspace.Workspace, read bool) (open int, err error) {
	look := copies.Glance
	if read {
		look = copies.List
	}
	list, err := look(ctx, ws)
	for _, c := range list {
		if isOpen(c) {
			open++
		}
	}
	return open, err
}

// A statusReport is what status prints.
type statusReport struct {
	state.Summary
	Ended *endedReport `json:"ended,omitempty"`
}

// Rows are the lines of the table of reasons. What a run would try again is no more than away where the workspace was
// ended.
func (s statusReport) Rows() (rows []reasonRow) {
	away := reasonRow{"not here", 0, "the workspace was ended"}
	for _, row := range reasonRows(s.Reasons) {
		if s.Ended != nil && row.Name == string(manifest.FateRetry) {
			away.Count += row.Count
		} else {
			rows = append(rows, row)
		}
	}
	if away.Count > 0 {
		rows = append(rows, away)
	}
	return rows
}

// A runAnswer is what run prints.
type runAnswer struct {
	state.Summary
	Next     string `json:"-"` // the recheck that is to be scheduled; empty where nothing is to be typed next
	Emulated bool   `json:"-"` // its posts are the emulator's
}

// conclude prints what a run did, and the recheck to type next, if any.
func (c *command) conclude(s state.Summary, next string, emulated bool) error {
	if err := c.answer("run", runAnswer{s, next, emulated}); err != nil {
		return err
	}
	return statusOf(s)
}

// nextRecheck is the recheck that follows a run. It has the flags of the run without which it would ask elsewhere, or
// by another leave. A list is rechecked by the copy in the workspace, which every run renews.
func (c *command) nextRecheck(path string, f *runFlags) string {
	if manifest.IsList(path) {
		path = filepath.Join(c.workspace, manifest.ListName)
	}
	return "rehydrate recheck " + shellWord(path) + c.named() + f.repeated()
}

func statusOf(s state.Summary) error {
	// A recheck retries no download, so that what waits for a run is not its trouble.
	if s.Retry > 0 && !s.Recheck || s.Unwritten > 0 || s.Withheld+s.Heard > 0 || s.Unverified > 0 || s.OpenCopies > 0 ||
		len(s.Stay)+len(s.Hosts)+len(s.FilesGone)+len(s.FilesMissing)+len(s.Unfinished)+len(s.Strays) > 0 ||
		s.Behind || s.Later > 0 || state.TooMany(entries(s.Odd), rowsBefore(s)) {
		return exitCode(exitRetry)
	}
	return nil
}

// entries counts those of a table.
func entries(counts []state.Count) (n int) {
	for _, c := range counts {
		n += c.Entries
	}
	return n
}

// rowsBefore are those that the dataset had when the run began, or has.
func rowsBefore(s state.Summary) int { return cmp.Or(s.Before, s.Outcomes[manifest.Kept]) }

func size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }
