package main

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/cmd/internal/console"
)

// helpFiles hold what help says of each command.
//
//go:embed help
var helpFiles embed.FS

// pageKey is where a command keeps what --help prints.
const pageKey = "rehydrate_page"

// newCommand makes the command of help/NAME.txt, which has its usage, a line that sums it up, and below them what
// --help
// prints.
func newCommand(name string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	b, err := helpFiles.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // the name is written wrong in this program, and no command works
	}
	head, text, _ := strings.Cut(string(b), "\n\n")
	use, short, _ := strings.Cut(head, "\n")
	page := parsePage(text)
	return &cobra.Command{Use: use, Short: short, Long: page.prose, Example: page.examples, Args: args, RunE: run,
		Annotations: map[string]string{pageKey: text}}
}

// A helpPage is the text of --help in its parts, for shells and manual pages.
type helpPage struct {
	prose, examples string
	flags           map[string]flagText
}

// A flagText is what a help says of a flag: its value, empty for a switch, and what it is for.
type flagText struct{ value, usage string }

// valueKey is where a flag keeps what its help calls its value.
const valueKey = "rehydrate_value"

// valueOf is what the help calls the value of a flag.
func valueOf(f *pflag.Flag) string { return strings.Join(f.Annotations[valueKey], "") }

// asRun begins a paragraph of flags that rehydrate run has as well.
const asRun = "As in rehydrate run: "

func parsePage(text string) helpPage {
	page := helpPage{flags: map[string]flagText{}}
	var prose []string
	called := false
	for paragraph := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		more, also := strings.CutPrefix(paragraph, asRun)
		switch {
		case strings.HasPrefix(paragraph, "Usage: "):
			called = true
		case called && page.examples == "":
			page.examples = paragraph
		case also:
			page.addFlags(strings.Join(strings.Fields(more), " "), "as in rehydrate run")
		case strings.Contains("\n"+paragraph, "\n  -"):
			page.addRows(paragraph)
		case paragraph != commandList:
			prose = append(prose, paragraph)
		}
	}
	page.prose = strings.Join(prose, "\n\n")
	return page
}

// addRows adds a group of flags: a line for each, with what it is for behind two spaces and on the lines below.
func (p *helpPage) addRows(group string) {
	names, meaning := "", ""
	for line := range strings.SplitSeq(group, "\n") {
		row, begins := strings.CutPrefix(line, "  -")
		if !begins {
			meaning += " " + strings.TrimSpace(line)
			continue
		}
		p.addFlags(names, meaning)
		names, meaning, _ = strings.Cut("-"+row, "  ")
	}
	p.addFlags(names, meaning)
}

// addFlags adds flags such as "-o, --out DIR": one meaning of all, or one of each between semicolons.
func (p *helpPage) addFlags(names, meaning string) {
	isShort := func(flag string) bool { return !strings.HasPrefix(flag, "--") }
	flags, meanings := slices.DeleteFunc(strings.Split(names, ", "), isShort), strings.Split(meaning, "; ")
	for i, flag := range flags {
		name, value, _ := strings.Cut(flag, " ")
		what := meaning
		if len(flags) > 1 && len(flags) == len(meanings) {
			what = meanings[i]
		}
		p.flags[name[2:]] = flagText{value, strings.TrimSpace(what)}
	}
}

// workspaceCommand makes a command that works in a workspace, which -w names.
func (c *command) workspaceCommand(
	name string,
	args cobra.PositionalArgs,
	run func(*cobra.Command, []string) error,
) *cobra.Command {
	cmd := newCommand(name, args, run)
	cmd.Flags().
		StringVarP(&c.workspace, "workspace", "w", defaultWorkspace,
			"your workspace, the private folder with the images")
	_ = cmd.MarkFlagDirname("workspace")
	return cmd
}

// registerOut registers -o, the file or folder that a command writes.
func registerOut(cmd *cobra.Command, out *string, value string) {
	cmd.Flags().StringVarP(out, "out", "o", value, "")
	markWritten(cmd, "out")
}

// writtenFlag marks flags that name what a command writes.
const writtenFlag = "rehydrate_writes"

// markWritten says that a flag names a file or folder that the command writes: it may not lie in a workspace, where no
// record would account for it.
func markWritten(cmd *cobra.Command, flag string) {
	_ = cmd.Flags().SetAnnotation(flag, writtenFlag, nil) // it is there
}

// newGroup makes a command that only holds others.
func newGroup(name string, commands ...*cobra.Command) *cobra.Command {
	cmd := newCommand(name, onlyCommands, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(commands...)
	return cmd
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

// exitStatusTopic is the page of `rehydrate help exit-status`.
func exitStatusTopic() *cobra.Command {
	text := "The exit statuses of all commands. Most end with 0, 1 or 2; the help of a command names\nthose that mean something of its own.\n"
	for _, m := range exitMeanings {
		text += fmt.Sprintf("\n  %-4d %s", m.code, m.meaning)
	}
	return &cobra.Command{Use: "exit-status", Short: "Exit statuses of all commands", Long: text}
}

func (c *command) finish(root *cobra.Command, chapters []chapter) {
	root.InitDefaultHelpCmd()
	root.SetOut(c.stdout) // the completion commands take it when they are made
	root.InitDefaultCompletionCmd()
	root.Example = "  rehydrate demo"
	help := console.Help(c.stdout)
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd.Annotations[pageKey] == "" { // cobra's own
			help(cmd, args)
			return
		}
		fmt.Fprint(c.stdout, printedHelp(cmd, chapters))
	})
	for _, cmd := range commandsOf(root) {
		for name, text := range parsePage(cmd.Annotations[pageKey]).flags {
			if f := cmd.Flags().Lookup(name); f != nil { // those of all commands are the program's own
				f.Usage = text.usage
				_ = cmd.Flags().SetAnnotation(name, valueKey, []string{text.value}) // it is there
			}
		}
	}
	for _, cmd := range commandsOf(root)[1:] {
		// Cobra's own commands bring no examples; how a shell takes its completions stands in their texts.
		switch {
		case cmd.Name() == "help":
			cmd.Long = "Print the help of a command, or what exit statuses mean."
			cmd.Example = "  rehydrate help run\n  rehydrate help exit-status"
			cmd.Args = func(_ *cobra.Command, args []string) error {
				topic, rest, err := root.Find(args)
				return errors.Join(err, onlyCommands(topic, rest))
			}
		case cmd.Name() == "completion":
			cmd.Long = "Print what a shell completes commands, flags and values with."
			cmd.Example = "  rehydrate completion bash"
			cmd.Args, cmd.RunE = onlyCommands, root.RunE
		case cmd.Parent().Name() == "completion":
			cmd.Long = strings.TrimRight(cmd.Long, "\n")
			cmd.Example = "  " + cmd.CommandPath()
		}
		c.complete(cmd)
	}
}

// commandList stands in a help page for the commands below it.
const commandList = "{commands}"

// printedHelp is the help page of a command. That of the program itself lists all commands by chapter.
func printedHelp(cmd *cobra.Command, chapters []chapter) string {
	var list strings.Builder
	if cmd.HasParent() {
		chapters = []chapter{{"Commands", cmd.Commands()}}
	}
	for _, ch := range chapters {
		fmt.Fprintf(&list, "%s\n", ch.title)
		for _, sub := range ch.commands {
			fmt.Fprintf(&list, "  %-11s %s\n", sub.Name(), sub.Short)
		}
		list.WriteString("\n")
	}
	text := strings.Replace(cmd.Annotations[pageKey], commandList, strings.TrimRight(list.String(), "\n"), 1)
	switch {
	case !cmd.HasParent():
		return text
	case cmd.Flag("workspace") != nil:
		return text + "\nCommon flags: -w DIR (your workspace), --json, -q (quiet), -v (verbose)\n"
	}
	return text + "\nCommon flags: --json, -q (quiet), -v (verbose)\n"
}
