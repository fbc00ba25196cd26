package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// advice is what a user can do about an outcome.
var advice = map[manifest.Outcome]string{
	manifest.Kept:        "in the dataset",
	manifest.Duplicate:   "nothing: an earlier entry shows the same; --filters flag keeps it, marked",
	manifest.NotEnglish:  "--filters flag keeps it, marked",
	manifest.Unreadable:  "--filters flag keeps it, marked",
	manifest.Removed:     "nothing: it stays out",
	manifest.Deleted:     "nothing: it stays out",
	manifest.Unavailable: "nothing now: every run asks again",
	manifest.NoMedia:     "check the id: the post has no image",
	manifest.Gone:        "nothing: the image host no longer has it",
	manifest.Placeholder: "nothing: the host has only a stand-in",
	manifest.Invalid:     "nothing: the host's file is not a safe image",
	manifest.Changed:     "nothing: it is not the image that was labelled",
	manifest.Refused:     "the policy does not allow it: a question for the release's maintainer",
	manifest.Failed:      "run the same command again",
	manifest.Pending:     "run the same command again",
}

// adviceFor is what a user can do about entries of an outcome and reason.
func adviceFor(n state.Count) string {
	switch {
	case (manifest.Result{Outcome: n.Outcome, Reason: n.Reason}).Flagged():
		return "in the dataset, marked in the filter column"
	case n.Reason == "suspected_placeholder":
		return "look at one: if it is not a stand-in, raise images.suspect_after in the policy"
	case n.Reason == policy.SameAsRemoved:
		return "a picture that was taken down elsewhere: a maintainer can allow it (images.allow_same_as_removed)"
	case n.Reason == "imgur_page":
		return "set IMGUR_CLIENT_ID to ask imgur's API"
	}
	return advice[n.Outcome]
}

func (c *command) statusCommand() *cobra.Command {
	return newCommand("status", exactArgs(0, "no arguments"), func(cmd *cobra.Command, _ []string) error {
		return c.reading(cmd.Context(), func(ws *workspace.Workspace) error {
			summary, err := state.Status(cmd.Context(), ws, c.now())
			if err != nil {
				return err
			}
			return c.conclude(summary)
		})
	})
}

// conclude prints what became of every entry and returns the exit status that it means.
func (c *command) conclude(s state.Summary) error {
	if err := c.show(s, func() { c.printSummary(s) }); err != nil {
		return err
	}
	return statusOf(s)
}

// statusOf is the exit status that a summary means, or nil.
func statusOf(s state.Summary) error {
	// A recheck retries no download, so that what waits for a run is not its trouble.
	if s.Retry > 0 && !s.Recheck || s.Withheld > 0 || s.Unverified > 0 || s.OpenCopies > 0 {
		return exitCode(exitRetry)
	}
	return nil
}

func (c *command) printSummary(s state.Summary) {
	title := fmt.Sprintf("%s: %d entries", s.Release, s.Entries)
	if s.Elapsed > 0 {
		title += " in " + s.Elapsed.Round(100*time.Millisecond).String()
	}
	fmt.Fprintf(c.stdout, "%s\n\n", title)
	printReasons(c.stdout, s)
	if s.Masked.Names > 0 {
		fmt.Fprintf(c.stdout, "\nnames masked: %d in %s\n", s.Masked.Names, times(s.Masked.Images, "image", "images"))
	}
	if s.GuardSpares > 0 {
		fmt.Fprintf(c.stdout, "\nof the duplicates, %d changed by half their words or more: dedupe.guard in the policy would keep them\n", s.GuardSpares)
	}
	if s.Calls != nil && s.Looks != nil {
		c.printCalls(s)
	}
	if len(s.Files) > 0 {
		c.printFiles(s)
	}
	printCopies(c.stdout, s.Copies)
	for _, line := range nextSteps(s) {
		fmt.Fprintf(c.stdout, "\n%s\n", line)
	}
}

// printCalls says what the run asked of whom, and how long it waited.
func (c *command) printCalls(s state.Summary) {
	fmt.Fprintf(c.stdout, "\nasked Reddit %s to resolve %s (%.1f per 1,000)", times(s.Looks.Resolve, "time", "times"),
		times(s.Posts, "post", "posts"), 1000*float64(s.Looks.Resolve)/float64(max(s.Posts, 1)))
	for _, more := range []struct {
		n         int
		one, many string
	}{{s.Looks.Last, "time for the last look before the export", "times for the last look before the export"},
		{s.Calls.About, "time about a subreddit", "times about subreddits"}, {s.Calls.Token, "time for a token", "times for a token"},
		{s.Calls.Images, "request to image hosts", "requests to image hosts"},
		{s.Calls.ImageAPI, "request to an image host's API", "requests to an image host's API"}} {
		if more.n > 0 {
			fmt.Fprintf(c.stdout, ", %s", times(more.n, more.one, more.many))
		}
	}
	if s.Calls.Retries > 0 {
		fmt.Fprintf(c.stdout, "; %s", times(s.Calls.Retries, "request had to be repeated", "requests had to be repeated"))
	}
	if s.Calls.Waited >= time.Second {
		fmt.Fprintf(c.stdout, "; waited %v in all for limits and retries", s.Calls.Waited.Round(time.Second))
	}
	fmt.Fprintln(c.stdout)
}

func times(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func printReasons(out io.Writer, s state.Summary) {
	w := table(out, 0)
	fmt.Fprintf(w, "  outcome\tentries\treason\twhat to do\n")
	for _, r := range s.Reasons {
		fmt.Fprintf(w, "  %s\t%d\t%s\t%s\n", r.Outcome, r.Entries, r.Reason, adviceFor(r))
	}
	w.Flush()
}

func (c *command) printFiles(s state.Summary) {
	state := "written"
	if s.Unchanged {
		state = "unchanged"
	}
	fmt.Fprintf(c.stdout, "\n%s in %s:\n", state, c.workspace)
	for _, f := range s.Files {
		fmt.Fprintf(c.stdout, "  %-50s %9s\n", filepath.FromSlash(f.Name), size(f.Size))
	}
	fmt.Fprintf(c.stdout, "  %-50s %9s\n", manifest.OutcomesName, "one row an entry")
}

// nextSteps lists what the user may want to do now.
func nextSteps(s state.Summary) []string {
	var lines []string // the most urgent first
	if s.Unverified > 0 {
		lines = append(lines, fmt.Sprintf("Reddit gave no verdict on %d posts in this run. What is known of them is from an earlier one: run again.", s.Unverified))
	}
	lines = append(lines, withheldLines(s)...)
	if s.OpenCopies > 0 {
		lines = append(lines, fmt.Sprintf("%s not in order or out of reach, and may hold rows that must go: rehydrate export --list says why.",
			times(s.OpenCopies, "registered copy is", "registered copies are")))
	}
	if n := len(s.Returned); n > 0 {
		lines = append(lines, times(n, "tombstone does not hold", "tombstones do not hold")+", lifted or suspended: rehydrate tombstones show lists them.")
	}
	switch {
	case s.Retry > 0 && s.Recheck:
		lines = append(lines, fmt.Sprintf("To retry: %d of %d entries. Run without --recheck.", s.Retry, s.Entries))
	case s.Retry > 0:
		lines = append(lines, fmt.Sprintf("To retry: %d of %d entries. Run the same command again.", s.Retry, s.Entries))
	}
	if dropped := s.Outcomes[manifest.Duplicate] + s.Outcomes[manifest.NotEnglish] + s.Outcomes[manifest.Unreadable]; dropped > 0 {
		lines = append(lines, fmt.Sprintf("The filters dropped %d labelled entries. `--filters flag` keeps them and marks them in a column.", dropped))
	}
	if s.Stale {
		lines = append(lines, fmt.Sprintf("The dataset was last checked against Reddit on %s: run again before you use it.", s.OldestAsk.Format(time.DateOnly)))
	}
	return lines
}

// withheldLines report posts that are gone but not erased, and the deadline for that.
func withheldLines(s state.Summary) []string {
	var lines []string
	switch {
	case s.MassRemoval:
		lines = append(lines, fmt.Sprintf("%d posts that were live are gone, more than %.0f %% at once. That looks like an outage, so they are withheld\n"+
			"from the dataset and nothing was erased. If they are really gone, run again with --confirm-removals;\n"+
			"if not, run again later.", s.Withheld, 100*s.MassRemovalShare))
	case s.Withheld > 0:
		lines = append(lines, fmt.Sprintf("%d posts are gone, and the run ended before it could erase them. They are withheld: run again.", s.Withheld))
	}
	if s.SettleBy != nil {
		lines = append(lines, fmt.Sprintf("Withheld since %s. It must be erased, or be live again, by %s.", s.WithheldSince.Format(time.RFC3339), s.SettleBy.Format(time.RFC3339)))
	}
	return lines
}

// size is a file size for people.
func size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }
