package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/report"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

func (c *command) explainCommand() *cobra.Command {
	return newCommand("explain", exactArgs(1, "one ID: that of an entry, such as 1n6oiw or 1n6oiw/1"), func(cmd *cobra.Command, args []string) error {
		key, err := parseKey(args[0])
		if err != nil {
			return err
		}
		filter, err := language.New()
		if err != nil {
			return err
		}
		var x report.Explanation
		err = c.reading(cmd.Context(), func(ws *workspace.Workspace) (err error) {
			x, err = report.Explain(cmd.Context(), ws, filter, key, c.now())
			return err
		})
		var unknown *report.UnknownEntry
		switch {
		case errors.As(err, &unknown):
			return &problem{err: err, code: exitUsage, hint: unknownHint(unknown)}
		case err != nil:
			return err
		}
		return c.show(x, func() { printExplanation(c.stdout, x) })
	})
}

// parseKey reads the name of an entry as outcomes.csv and the dataset have it.
func parseKey(s string) (manifest.Key, error) {
	text, number, later := strings.Cut(s, "/")
	image := 0
	if later {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || strconv.Itoa(n) != number {
			return manifest.Key{}, usageError("%s names no entry: write the id of a post, and /1 behind it for its second image", strconv.QuoteToGraphic(s))
		}
		image = n
	}
	id, err := manifest.ParsePostID(text)
	if err != nil {
		return manifest.Key{}, asUsage(err)
	}
	return manifest.Key{ID: id, Image: image}, nil
}

func unknownHint(e *report.UnknownEntry) string {
	if len(e.Others) > 0 {
		return "of this post it has " + strings.Join(e.Others, ", ")
	}
	return "ids stand in the manifest and in outcomes.csv; another release has another workspace (-w)"
}

// printExplanation prints a table for people: headings at the left, their values beside them.
func printExplanation(out io.Writer, x report.Explanation) {
	w := table(out, 0)
	e := explainer{w}
	e.row(x.ID, describeOutcome(x.Outcome))
	if x.Last != nil {
		e.row("", "at the end of the last run: "+describeOutcome(*x.Last))
	}
	e.row("manifest", fmt.Sprintf("line %d, split %s", x.Line, strconv.QuoteToGraphic(x.Split)))
	for _, category := range slices.Sorted(maps.Keys(x.Labels)) {
		e.row("", category+" "+strings.Join(x.Labels[category], ", "))
	}
	e.post(x.Post)
	if t := x.Tombstone; t != nil {
		text := fmt.Sprintf("%s since %s", withReason(string(t.State), t.Reason), t.Time.Format(time.RFC3339))
		if t.Readmitted {
			text += "; suspended, the post came back and the policy lets it"
		}
		e.row("tombstone", text)
	}
	e.image(x)
	if x.Reading != nil {
		e.reading(*x.Reading)
	}
	if x.Language != nil {
		e.language(*x.Language)
	}
	for _, n := range x.Near {
		e.near(n)
	}
	for i, h := range x.History {
		name := ""
		if i == 0 {
			name = "history"
		}
		e.row(name, describeEvidence(h))
	}
	if x.LogBroken != "" {
		e.row("", "the audit log cannot be trusted beyond this point: "+x.LogBroken)
	}
	w.Flush()
}

// An explainer writes the parts of an explanation as rows of two columns.
type explainer struct{ io.Writer }

func (e explainer) row(name, text string) { fmt.Fprintf(e, "%s\t%s\n", name, text) }

func withReason(what string, reason manifest.Reason) string {
	if reason == "" {
		return what
	}
	return what + ", " + string(reason)
}

func describeOutcome(o state.Conclusion) string {
	text := withReason(string(o.Outcome), o.Reason)
	if o.DuplicateOf != "" {
		text += ", near " + o.DuplicateOf
	}
	if o.Detail != "" {
		text += " (" + oneTerminalLine(o.Detail) + ")"
	}
	return text
}

func describeEvidence(h report.Evidence) string {
	text := fmt.Sprintf("%s record %d: %s", h.Time.Format(time.RFC3339), h.Record, h.Kind)
	if h.State != "" {
		text += " " + withReason(string(h.State), h.Reason)
	}
	if h.Image > 0 {
		text += fmt.Sprintf(" of image %d", h.Image)
	}
	if h.SHA256 != "" {
		text += " sha256 " + h.SHA256
	}
	if h.Pending {
		text += " (to be published when the run ends)"
	}
	return text
}

// oneTerminalLine keeps a text from breaking the table or moving the cursor.
func oneTerminalLine(s string) string {
	quoted := strconv.QuoteToGraphic(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func (e explainer) post(p report.PostStory) {
	if p.State == "" {
		e.row("post", "Reddit was never asked about it")
		return
	}
	e.row("post", withReason(string(p.State), p.Reason))
	at := func(t *time.Time) string {
		if t == nil {
			return "never"
		}
		return t.Format(time.RFC3339)
	}
	e.row("", "last answer "+at(p.Asked)+", last seen live "+at(p.Live))
	for _, more := range []struct {
		is   bool
		text string
	}{
		{p.Absent != nil, "absent from an answer since " + at(p.Absent) + ", not confirmed"},
		{p.Subreddit != "", "in r/" + p.Subreddit},
		{p.Withheld, "withheld from the dataset: its removal waits for confirmation, or for the next run"},
		{p.Unseen, "not seen live since its image was fetched: the next run looks"},
		{p.Stale, "last seen live longer ago than the policy's recheck_within: the next run looks"},
	} {
		if more.is {
			e.row("", more.text)
		}
	}
}

func (e explainer) image(x report.Explanation) {
	if t := x.Trouble; t != nil {
		e.row("image", "none: "+describeOutcome(*t))
		return
	}
	i := x.Image
	if i == nil {
		e.row("image", "none")
		return
	}
	e.row("image", fmt.Sprintf("%s, %d x %d pixels, %s", i.Format, i.Width, i.Height, size(i.Bytes)))
	e.row("", i.File)
	e.row("", "sha256 "+i.SHA256)
	phash := "phash " + i.PHash
	if i.Flat {
		phash += ", one colour"
	}
	e.row("", phash)
}

func (e explainer) reading(r report.ReadingStory) {
	if r.Failed != nil {
		e.row("ocr", describeOutcome(*r.Failed))
		return
	}
	if r.Hidden {
		e.row("ocr", "read; the words are not shown, for the post is not live by what is known")
		e.row("", "engine "+r.Fingerprint)
		return
	}
	accepted := 0
	var lines []string
	last := -1
	for _, w := range r.Words {
		text := fmt.Sprintf("%s %.0f", w.Text, w.Confidence)
		if w.Accepted {
			accepted++
		} else {
			text = "(" + text + ")"
		}
		if w.Line != last {
			lines, last = append(lines, ""), w.Line
		}
		lines[len(lines)-1] += text + "  "
	}
	e.row("ocr", fmt.Sprintf("%d words in the text, mean confidence %.1f; %d too uncertain, in brackets", accepted, r.Confidence, len(r.Words)-accepted))
	for _, line := range lines {
		e.row("", "  "+strings.TrimSpace(line))
	}
	if r.Masked > 0 {
		e.row("", times(r.Masked, "name was masked", "names were masked"))
	}
	e.row("", "engine "+r.Fingerprint)
}

func (e explainer) language(l report.LanguageStory) {
	verdict := withReason("passes", l.Reason)
	if !l.Passes {
		verdict = withReason(string(l.Outcome), l.Reason)
	}
	switch {
	case l.Passes:
	case l.Mode == "flag":
		verdict += "; the policy keeps such a row and marks it"
	default:
		verdict += "; the policy drops such a row"
	}
	e.row("language", verdict)
	e.row("", fmt.Sprintf("%d words, %d letters", l.Words, l.Letters))
	vote := func(v language.Vote) string { return cmp.Or(string(v), "no vote") }
	e.row("", fmt.Sprintf("dictionary: %s (%.0f %% of %d words are in it, %.0f %% are English)", vote(l.Votes.Dictionary), 100*l.Known, l.Tokens, 100*l.Threshold))
	e.row("", fmt.Sprintf("n-grams: %s (score %.1f)", vote(l.Votes.Model), l.Score))
	other := ""
	if l.Other != "" {
		other = fmt.Sprintf(", %d of %q", l.Foreign, l.Other)
	}
	e.row("", fmt.Sprintf("function words: %s (%d of English%s)", vote(l.Votes.FunctionWords), l.English, other))
}

func (e explainer) near(n report.Near) {
	what := "was dropped or marked as its duplicate"
	if n.Kept {
		what = "came first and is near"
	}
	if n.Holds {
		what += fmt.Sprintf(" (%s: %d of 64 bits and %d words apart)", n.Class, n.Bits, n.Words)
	} else {
		what += " in the last run, and is not by what is known now"
	}
	e.row("near", n.ID+" "+what)
}
