package console

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpWidth = 80

// Help prints the help of commands to out, wherever that goes in the columns of a usual terminal: what a command does,
// how it is called, examples, its subcommands and its own flags. The flags that all commands share take one line.
// Paragraphs are filled; one with an indented line keeps its lines, which are broken where they are too long.
func Help(out io.Writer) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, _ []string) {
		for paragraph := range strings.SplitSeq(cmd.Long, "\n\n") {
			if !strings.Contains("\n"+paragraph, "\n ") {
				paragraph = strings.Join(strings.Fields(paragraph), " ")
			}
			wrapLines(out, paragraph+"\n\n")
		}
		if cmd.Runnable() {
			wrapLines(out, "Usage:\n  "+cmd.UseLine()+"\n")
		}
		if cmd.Example != "" {
			wrapLines(out, "\nExamples:\n"+cmd.Example+"\n")
		}
		if cmd.HasAvailableSubCommands() {
			wrapLines(out, "\nCommands:\n"+listed(cmd.Commands()))
		}
		if flags := ownFlags(cmd).FlagUsages(); flags != "" {
			const noise = "[=true|false]" // pflag puts it behind every switch
			wrapLines(out, "\nFlags:\n"+strings.ReplaceAll(flags, noise, strings.Repeat(" ", len(noise))))
		}
		if cmd.Runnable() {
			wrapLines(out, commonFlags(cmd))
		}
	}
}

func listed(commands []*cobra.Command) string {
	var b strings.Builder
	for _, sub := range commands {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	return b.String()
}

// ownFlags are a command's flags without those of commonFlags.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != "workspace" {
			own.AddFlag(f)
		}
	})
	return own
}

// commonFlags names in one line the flags that a command shares with all others: the root's help explains them.
func commonFlags(cmd *cobra.Command) string {
	var names []string
	name := func(f *pflag.Flag) {
		text := "--" + f.Name
		if f.Shorthand != "" {
			text = "-" + f.Shorthand + "/" + text
		}
		names = append(names, text)
	}
	if f := cmd.Flags().Lookup("workspace"); f != nil {
		name(f)
	}
	cmd.InheritedFlags().VisitAll(name)
	if len(names) == 0 {
		return ""
	}
	return "\nCommon flags: " + strings.Join(names, ", ") + "\n"
}

func wrapLines(out io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(out, wrap(strings.TrimRight(line, " \n"), helpWidth)) // a stream of help remembers its error
	}
}
