package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/internal/printable"
	"rehydrate/internal/userfile"
	"rehydrate/pipeline/diff"
)

func (c *command) diffCommand() *cobra.Command {
	return newCommand("diff", exactArgs(2, "two datasets, OLD and NEW"), c.diff)
}

func (c *command) diff(cmd *cobra.Command, args []string) error {
	if err := areThere(args); err != nil {
		return err
	}
	report, err := diff.Compare(cmd.Context(), args[0], args[1], hidesRows(cmd.Context()))
	if err != nil {
		return err
	}
	return c.answer("diff", report)
}

// areThere refuses names of nothing: mistakes of typing, while all other faults are the file's.
func areThere(names []string) error {
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil && userfile.Exists(name) != nil {
			return usageError("%s is a link to %s, where nothing is; repair the link, or leave it out", name, to)
		}
		if err := userfile.Exists(name); err != nil {
			return err
		}
	}
	return nil
}

// labelList writes labels of one side of a change.
func labelList(list []string) string {
	if list == nil { // an empty list says that no label fits
		return "none given"
	}
	return "[" + printable.EscapedLine(strings.Join(list, ", ")) + "]"
}

// keyLine is the line, or two where one is too wide, about something that is said of a dataset as a whole. Of values
// that are too long it has the part from where they differ.
func keyLine(k diff.KeyChange) string {
	const most = 64 // fit a terminal of 80 columns beside the key, as digests do
	old, now := []rune(k.Old), []rune(k.New)
	if len(old) > most || len(now) > most {
		same := 0
		for same < min(len(old), len(now)) && old[same] == now[same] {
			same++
		}
		if from := same - 8; from > 0 { // with a little of what is before it
			old, now = append([]rune("..."), old[from:]...), append([]rune("..."), now[from:]...)
		}
	}
	shown := func(r []rune) string {
		if len(r) == 0 {
			return "none"
		}
		if len(r) > most {
			r = append(slices.Clone(r[:most-3]), []rune("...")...)
		}
		text := strconv.QuoteToGraphic(string(r))
		return text[1 : len(text)-1]
	}
	before, after := shown(old), shown(now)
	key := fmt.Sprintf("%-14s  ", printable.EscapedLine(k.Key))
	if len(key)+len(before)+len(after)+4 > 80 {
		return key + before + "\n             -> " + after
	}
	return key + before + " -> " + after
}
