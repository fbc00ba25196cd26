package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/pipeline/diff"
	"rehydrate/pipeline/state"
)

func (c *command) diffCommand() *cobra.Command {
	return newCommand("diff", exactArgs(2, "two datasets, OLD and NEW"), c.diff)
}

func (c *command) diff(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
			return usageError("compare: %w", err)
		}
	}
	report, err := diff.Compare(cmd.Context(), args[0], args[1])
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(report)
	}
	var b strings.Builder
	shown := report.Changes
	if !c.verbose {
		shown = shown[:min(len(shown), fewChanges)]
	}
	for _, change := range shown {
		printChange(&b, change, c.verbose)
	}
	if more := len(report.Changes) - len(shown); more > 0 {
		fmt.Fprintf(&b, "and %d more: -v lists them all, and the words\n", more)
	}
	if len(shown) > 0 {
		fmt.Fprintln(&b)
	}
	// The summary comes last, so that the version step is the last line.
	printDiff(&b, report.Summary)
	_, err = io.WriteString(c.stdout, b.String())
	return err
}

// printChange prints one changed entry on a line, with words and labels if verbose.
func printChange(out io.Writer, c diff.Change, verbose bool) {
	var parts []string
	if c.Split != nil {
		parts = append(parts, fmt.Sprintf("split %s -> %s", oneTerminalLine(c.Split[0]), oneTerminalLine(c.Split[1])))
	}
	if i := c.Image; i != nil {
		text := "another image"
		if i.Distance != nil {
			text += fmt.Sprintf(", %d of 64 bits of its hash", *i.Distance)
		}
		parts = append(parts, text)
	}
	if w := c.Text; w != nil {
		text := fmt.Sprintf("text +%d -%d words", len(w.Gained), len(w.Lost))
		if verbose {
			text = "text" + oneTerminalLine(signed(" +", w.Gained)+signed(" -", w.Lost))
		}
		parts = append(parts, text)
	}
	for _, category := range slices.Sorted(maps.Keys(c.Labels)) {
		l := c.Labels[category]
		parts = append(parts, fmt.Sprintf("%s %s -> %s", oneTerminalLine(category), labelList(l.Old), labelList(l.New)))
	}
	if c.Kind != "changed" && (c.Old != nil || c.New != nil) {
		parts = append(parts, whyText(c.Old, c.New))
	}
	fmt.Fprintf(out, "%-7s  %s  %s\n", c.Kind, oneTerminalLine(c.ID), strings.Join(parts, "; "))
}

func labelList(list []string) string {
	if list == nil {
		return "none given"
	}
	return "[" + oneTerminalLine(strings.Join(list, ", ")) + "]"
}

func whyText(was, is *state.Conclusion) string {
	side := func(c *state.Conclusion) string {
		if c == nil {
			return "not known"
		}
		return withReason(string(c.Outcome), c.Reason)
	}
	return side(was) + " -> " + side(is)
}

func printDiff(out io.Writer, d diff.Summary) {
	line := func(name, text string) { fmt.Fprintf(out, "%-14s  %s\n", name, text) }
	side := func(name string, s diff.SideCount) {
		text := times(s.Rows, "row", "rows")
		if s.Entries > 0 {
			text += " of " + times(s.Entries, "entry", "entries")
		}
		if s.Repeated+s.WithoutID > 0 {
			text += fmt.Sprintf(" (not compared: %d with the id of another, %d without one)", s.Repeated, s.WithoutID)
		}
		line(name, text+", "+oneTerminalLine(s.Path))
	}
	side("old", d.Old)
	side("new", d.New)
	count := func(name string, n int, why []diff.WhyCount) {
		line(name, strconv.Itoa(n))
		for _, w := range why {
			if w.Old != nil || w.New != nil {
				line("", fmt.Sprintf("%d  %s", w.Count, whyText(w.Old, w.New)))
			}
		}
	}
	count("gained", d.Gained, d.WhyGained)
	count("lost", d.Lost, d.WhyLost)
	count("image changed", d.Images, nil)
	count("text changed", d.Texts, nil)
	count("labels changed", d.Labels, nil)
	count("split changed", d.Splits, nil)
	count("other outcome", d.Outcomes, d.WhyElse)
	for _, k := range append(slices.Clone(d.Schema), d.Provenance...) {
		line(oneTerminalLine(k.Key), keyText(k.Old)+" -> "+keyText(k.New))
	}
	for _, n := range d.NotCompared {
		line("not compared", oneTerminalLine(n))
	}
	line("version step", d.Step)
}

// keyText is a value of the footer, which may be long and comes from anybody.
func keyText(s string) string {
	if s == "" {
		return "none"
	}
	const most = 70
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	text := strconv.QuoteToGraphic(s)
	return text[1 : len(text)-1]
}
