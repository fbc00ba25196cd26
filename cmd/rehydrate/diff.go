package main

import (
	"errors"
	"fmt"
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
	if err := areThere(args); err != nil {
		return err
	}
	report, err := diff.Compare(cmd.Context(), args[0], args[1])
	if err != nil {
		return err
	}
	return c.answer("diff", report)
}

// areThere refuses names of nothing: mistakes of typing, while all other faults are the file's.
func areThere(names []string) error {
	for _, name := range names {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return usageError("found no file or folder %s", strconv.QuoteToGraphic(name))
		}
	}
	return nil
}

// describeChange says on one line what changed of an entry, with the words if verbose.
func describeChange(c diff.Change, verbose bool) string {
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
			text = strings.Join(append([]string{"text"}, w.Gained...), " +")
			text = oneTerminalLine(strings.Join(append([]string{text}, w.Lost...), " -"))
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
	return strings.Join(parts, "; ")
}

func labelList(list []string) string {
	if list == nil { // an empty list says that no label fits
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

func keyText(s string) string {
	if s == "" {
		return "none"
	}
	const most = 70 // a value of the footer may be long, and comes from anybody
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	text := strconv.QuoteToGraphic(s)
	return text[1 : len(text)-1]
}
