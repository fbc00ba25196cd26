package main

import (
	"cmp"
	"context"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

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
	case n.Reason == policy.LeftGallery, n.Reason == policy.CrosspostParent:
		return "nothing: it was removed, and stays out"
	case n.Reason == policy.SameAsRemoved:
		return "a picture that was taken down elsewhere: a maintainer can allow it (images.allow_same_as_removed)"
	case n.Reason == policy.RobotsTag:
		return "its host keeps it out of datasets (X-Robots-Tag): the policy decides by respect_robots_tag"
	case n.Reason == "not_rechecked":
		return "run the same command again: Reddit has to say first that the post is still there"
	case n.Outcome == manifest.Failed && reddit.NoImage(n.Reason):
		return "run the same command again: the image host sent no images"
	case n.Reason == "imgur_page":
		return "set IMGUR_CLIENT_ID to ask imgur's API"
	}
	return advice[n.Outcome]
}

func (c *command) statusCommand() *cobra.Command {
	var exit bool
	cmd := c.workspaceCommand("status", noArgs, func(cmd *cobra.Command, _ []string) error {
		s, err := reading(cmd.Context(), c, func(ws *workspace.Workspace) (s statusReport, err error) {
			s.Summary, err = state.Status(cmd.Context(), ws, c.now())
			if err == nil {
				s.Running, err = ws.Holder()
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
		if s.Ended != nil { // nothing is to be retried in it
			s.Retry = 0
		}
		if err := c.answer("status", s); err != nil || !exit {
			return err
		}
		if s.Ended != nil && s.Ended.Unfinished {
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

func (c *command) conclude(s state.Summary) error {
	if err := c.answer("summary", s); err != nil {
		return err
	}
	return statusOf(s)
}

func statusOf(s state.Summary) error {
	// A recheck retries no download, so that what waits for a run is not its trouble.
	if s.Retry > 0 && !s.Recheck || s.Unwritten > 0 || s.Withheld > 0 || s.Unverified > 0 || s.OpenCopies > 0 ||
		len(s.Stay)+len(s.Hosts)+len(s.FilesGone)+len(s.FilesMissing) > 0 || state.TooMany(entries(s.Odd),
		rowsBefore(s)) {
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

func filtered(s state.Summary) int {
	return s.Outcomes[manifest.Duplicate] + s.Outcomes[manifest.NotEnglish] + s.Outcomes[manifest.Unreadable]
}
