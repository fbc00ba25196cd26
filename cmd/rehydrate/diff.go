package main

import (
	"os"
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
	report, err := diff.Compare(cmd.Context(), args[0], args[1])
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
