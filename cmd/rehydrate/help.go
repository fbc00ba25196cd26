package main

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/cmd/internal/console"
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
	cmd := newCommand(name, onlyCommands, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(commands...)
	return cmd
}

// onlyCommands refuses a word that is not one of a command's own.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	otherwise := usageHint
	if cmd.HasParent() && len(names) > 0 {
		otherwise = "there are " + strings.Join(names, ", ")
	}
	path := cmd.CommandPath()
	return unknown(fmt.Sprintf("command %q of %s", args[0], path), otherwise, path+" ", args[0], names)
}

// unknown is the error of a name that is not one of those there are. The hint is the nearest of them, behind what goes
// before a name, or otherwise.
func unknown(what, otherwise, before, name string, names []string) error {
	hint := otherwise
	if near := manifest.Nearest(name, names); near != "" {
		hint = "did you mean " + before + near + "?"
	}
	return &problem{err: errors.New("unknown " + what), code: exitUsage, hint: hint}
}

// flagError says for people what the flags' package says for programmers.
func flagError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok && missing.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return unknown("flag: --"+missing.GetSpecifiedName(), usageHint, "--", missing.GetSpecifiedName(), names)
	}
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usageError("%w", err)
	}
	flag := wrong.GetFlag()
	kinds := map[string]string{"int": "a whole number", "uint64": "a whole number from 0 on", "float64": "a number",
		"bool": "true or false"}
	kind, known := kinds[flag.Value.Type()]
	if !known {
		return usageError("--%s %q: %w", flag.Name, wrong.GetValue(), wrong.Unwrap())
	}
	return usageError("--%s takes %s, not %q", flag.Name, kind, wrong.GetValue())
}

// asksJSON reports whether --json is among arguments, other flags of which are wrong.
func asksJSON(args []string) (asked bool) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	flags.BoolVar(&asked, "json", false, "")
	flags.BoolP("help", "h", false, "") // else the flags end at it
	err := flags.Parse(args)
	return err == nil && asked
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
	root.SetHelpFunc(console.Help(c.stdout))
	for _, cmd := range commandsOf(root)[1:] {
		// Cobra's own commands bring no examples and no statuses; how a shell takes its completions stands in their texts.
		switch {
		case cmd.Name() == "help":
			cmd.Long = "Print the help of a command." + exitHelp(exitDone, exitUsage)
			cmd.Example = "  rehydrate help run"
			cmd.Args = func(_ *cobra.Command, args []string) error {
				topic, rest, err := root.Find(args)
				return errors.Join(err, onlyCommands(topic, rest))
			}
		case cmd.Name() == "completion":
			cmd.Long = "Print what a shell completes commands, flags and values with." + exitHelp(exitDone, exitUsage)
			cmd.Example = "  rehydrate completion bash"
			cmd.Args, cmd.RunE = onlyCommands, root.RunE
		case cmd.Parent().Name() == "completion":
			cmd.Long = strings.TrimRight(cmd.Long, "\n") + exitHelp(exitDone, exitFailed, exitUsage)
			cmd.Example = "  " + cmd.CommandPath()
		}
		c.complete(cmd)
	}
	_ = root.MarkPersistentFlagDirname("workspace")
}

// usageHint stands for the help of the command that was called, until it is known which.
const usageHint = "see rehydrate --help"
