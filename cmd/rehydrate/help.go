package main

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
)

// helpFiles hold what help says of each command.
//
//go:embed help
var helpFiles embed.FS

// newCommand makes the command of help/NAME.txt, which has its usage, a line that sums it up, what it does, its exit
// statuses and examples.
func newCommand(name string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	b, err := helpFiles.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // the name is written wrong in this program, and no command works
	}
	head, rest, _ := strings.Cut(string(b), "\n\n")
	use, short, _ := strings.Cut(head, "\n")
	long, rest, _ := strings.Cut(rest, "\n\nExit status: ")
	statuses, examples, _ := strings.Cut(rest, "\n\n")
	var codes []int
	for field := range strings.FieldsSeq(statuses) {
		code, _ := strconv.Atoi(field)
		codes = append(codes, code)
	}
	return &cobra.Command{Use: use, Short: short, Long: long + exitHelp(codes...), Example: strings.TrimRight(examples, "\n"),
		Args: args, RunE: run}
}

// newGroup makes a command that only holds others.
func newGroup(name string, commands ...*cobra.Command) *cobra.Command {
	var names []string
	for _, sub := range commands {
		names = append(names, sub.Name())
	}
	cmd := newCommand(name, func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			last := len(names) - 1
			if last == 0 {
				return usageError("%s has the command %s, not %q", name, names[0], args[0])
			}
			return usageError("%s has the commands %s and %s, not %q", name, strings.Join(names[:last], ", "), names[last], args[0])
		}
		return nil
	}, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(commands...)
	return cmd
}

// takes is how many arguments a command takes, and what they are.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usageError("%s takes %s; got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

func exactArgs(n int, what string) cobra.PositionalArgs { return takes(n, n, what) }

func exitHelp(codes ...int) string {
	text := "\n\nExit status:"
	for _, m := range exitMeanings {
		if slices.Contains(codes, m.code) {
			text += fmt.Sprintf("\n  %-4d %s", m.code, m.meaning)
		}
	}
	return text
}

func (c *command) finish(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.SetOut(c.stdout) // the completion commands take it when they are made
	root.InitDefaultCompletionCmd()
	for _, cmd := range commandsOf(root)[1:] {
		// Cobra's own commands bring no examples and no statuses; how a shell takes its completions stands in their texts.
		if example, ok := map[string]string{"help": "help run", "completion": "completion bash"}[cmd.Name()]; ok {
			cmd.Long += exitHelp(exitDone, exitUsage)
			cmd.Example = "  rehydrate " + example
		} else if cmd.Parent().Name() == "completion" {
			cmd.Long = strings.TrimRight(cmd.Long, "\n") + exitHelp(exitDone, exitFailed, exitUsage)
			cmd.Example = "  " + cmd.CommandPath()
		}
		complete(cmd)
	}
	_ = root.MarkPersistentFlagDirname("workspace")
}

func complete(cmd *cobra.Command) {
	// Paths complete where a command takes one. Ids do not: a release has thousands.
	takesPath := slices.ContainsFunc([]string{"RELEASE", "DIR", "FILE", "PATH", "PARQUET", "OLD", "PREDICTIONS", "DATASET", "FEATURES", "SCORES"},
		func(word string) bool { return strings.Contains(cmd.Use, word) })
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !takesPath {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for name, words := range map[string][]string{"filters": {"drop", "flag"}, "retry": retryOutcomes} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// retryOutcomes are the outcomes that --retry takes: those with which a download can end.
var retryOutcomes = []string{string(manifest.Gone), string(manifest.Placeholder), string(manifest.Invalid), string(manifest.Changed),
	string(manifest.Refused), string(manifest.Failed)}

// usageHint stands for the help of the command that was called, until it is known which.
const usageHint = "see rehydrate --help"
