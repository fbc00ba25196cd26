package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/report"
)

func (c *command) explainCommand() *cobra.Command {
	return c.workspaceCommand("explain", exactArgs(1, "one ID: that of an entry, such as 1n6oiw or 1n6oiw/1"),
		func(cmd *cobra.Command, args []string) error {
			key, err := parseKey(args[0])
			if err != nil {
				return err
			}
			filter, err := dictionary()
			if err != nil {
				return err
			}
			x, err := reading(cmd.Context(), c, func(ws *workspace.Workspace) (report.Explanation, error) {
				return report.Explain(cmd.Context(), ws, filter, key, c.now())
			})
			var unknown *report.UnknownEntry
			if errors.As(err, &unknown) {
				err = &problem{err: err, code: exitUsage, hint: unknownHint(unknown)}
			}
			if err != nil {
				return err
			}
			return c.answer("explain", x)
		})
}

// parseKey reads the id of an entry as outcomes.csv has it.
func parseKey(s string) (manifest.Key, error) {
	text, number, later := strings.Cut(s, "/")
	image := 0
	if later {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || strconv.Itoa(n) != number { // one entry has one name: not /01, not /+1
			return manifest.Key{},
				usageError("%s is not the id of an image; write the id of a post, or ID/1 for its second image",
					strconv.QuoteToGraphic(s))
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
		return "of this post there are " + strings.Join(e.Others, ", ")
	}
	return "outcomes.csv lists all ids; if the post belongs to another release, name its workspace with -w DIR"
}

// seenWords are the words of a reading as lines for people, those that are not in the text in brackets.
type seenWords struct {
	Accepted, Uncertain int
	Confidence          float64
	Lines               []string
}

func bracketed(r report.ReadingStory) seenWords {
	seen := seenWords{Confidence: r.Confidence}
	last := -1
	for _, w := range r.Words {
		text := fmt.Sprintf("%s %.0f", w.Text, w.Confidence)
		if w.Accepted {
			seen.Accepted++
		} else {
			seen.Uncertain++
			text = "(" + text + ")"
		}
		if w.Line == last {
			seen.Lines[len(seen.Lines)-1] += "  " + text
		} else {
			seen.Lines, last = append(seen.Lines, text), w.Line
		}
	}
	return seen
}
