package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
)

// finish gives every command what it has in common with all others: cobra's own commands get
// examples and exit statuses too, and the shell is told what completes an argument.
func (c *command) finish(root *cobra.Command) {
	root.Example = "  rehydrate demo\n  rehydrate run figsim/ --grant grant.json -w figsim-rehydrated\n  rehydrate status -w figsim-rehydrated"
	root.Long += exitHelp(exitDone, exitUsage)
	root.InitDefaultHelpCmd()
	root.SetOut(c.stdout) // the completion commands take it when they are made
	root.InitDefaultCompletionCmd()
	for _, cmd := range commandsOf(root)[1:] {
		switch {
		case cmd.Name() == "help":
			cmd.Long += exitHelp(exitDone, exitUsage)
			cmd.Example = "  rehydrate help run"
		case cmd.Name() == "completion":
			cmd.Long += exitHelp(exitDone, exitUsage)
			cmd.Example = "  rehydrate completion bash"
		case cmd.HasParent() && cmd.Parent().Name() == "completion":
			cmd.Long = strings.TrimRight(cmd.Long, "\n") + exitHelp(exitDone, exitFailed, exitUsage)
			cmd.Example = completionExamples[cmd.Name()]
		case cmd.HasSubCommands():
			group(cmd)
		}
		complete(cmd)
	}
	_ = root.MarkPersistentFlagDirname("workspace")
}

// group completes the help of a command that only holds others: its examples are the first of each.
func group(cmd *cobra.Command) {
	if !strings.Contains(cmd.Long, exitHelp()) {
		cmd.Long += exitHelp(exitDone, exitUsage)
	}
	if cmd.Example != "" {
		return
	}
	var lines []string
	for _, sub := range cmd.Commands() {
		line, _, _ := strings.Cut(sub.Example, "\n")
		lines = append(lines, line)
	}
	cmd.Example = strings.Join(lines, "\n")
}

// commandGroup is a command that only holds others.
func commandGroup(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	var names []string
	for _, sub := range commands {
		names = append(names, sub.Name())
	}
	cmd := &cobra.Command{Use: use, Short: short, Long: long,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				last := len(names) - 1
				return usageError("%s has the commands %s and %s, not %q", use, strings.Join(names[:last], ", "), names[last], args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// completionExamples say how each shell takes its completions for this session.
var completionExamples = map[string]string{
	"bash":       "  source <(rehydrate completion bash)",
	"zsh":        "  source <(rehydrate completion zsh)",
	"fish":       "  rehydrate completion fish | source",
	"powershell": "  rehydrate completion powershell | Out-String | Invoke-Expression",
}

// complete says what completes a command's arguments and flags. Paths do where a command takes
// one; ids are not completed.
func complete(cmd *cobra.Command) {
	takesPath := false
	for _, word := range []string{"RELEASE", "DIR", "FILE", "PATH", "PARQUET", "OLD", "PREDICTIONS", "DATASET"} {
		takesPath = takesPath || strings.Contains(cmd.Use, word)
	}
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !takesPath {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for name, words := range map[string][]string{"filters": {"drop", "flag"}, "retry": retryOutcomes()} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// retryOutcomes are the outcomes that --retry takes: those with which a download can end.
func retryOutcomes() []string {
	var words []string
	for _, o := range []manifest.Outcome{manifest.Gone, manifest.Placeholder, manifest.Invalid, manifest.Changed, manifest.Refused, manifest.Failed} {
		words = append(words, string(o))
	}
	return words
}

// usageHint stands for the help of the command that was called, until it is known which.
const usageHint = "see rehydrate --help"

// hintFor names the command in a hint to its help.
func hintFor(hint string, cmd *cobra.Command) string {
	if hint != usageHint || cmd == nil {
		return hint
	}
	return fmt.Sprintf("see %s --help", cmd.CommandPath())
}
