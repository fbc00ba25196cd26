package main

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/cmd/internal/console"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// helpFiles hold what help says of each command.
//
//go:embed help
var helpFiles embed.FS

// pageKey is where a command keeps what --help prints.
const pageKey = "rehydrate_page"

// newCommand makes the command of help/NAME.txt, which has its usage, a line that sums it up, and below them what --help
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
	flags           map[string]string // as pflag takes it: the value in backquotes, and what it is for
}

// asRun begins a paragraph of flags that rehydrate run has as well.
const asRun = "As in rehydrate run: "

func parsePage(text string) helpPage {
	page := helpPage{flags: map[string]string{}}
	var prose []string
	called := false
	for paragraph := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		switch more, also := strings.CutPrefix(paragraph, asRun); {
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
	flags, meanings := strings.Split(names, ", "), strings.Split(meaning, "; ")
	for i, flag := range flags {
		name, value, _ := strings.Cut(flag, " ")
		name, long := strings.CutPrefix(name, "--")
		if !long {
			continue
		}
		what := meaning
		if len(flags) > 1 && len(flags) == len(meanings) {
			what = meanings[i]
		}
		if value != "" {
			what = "`" + value + "` " + strings.TrimSpace(what)
		}
		p.flags[name] = strings.TrimSpace(what)
	}
}

// workspaceCommand makes a command that works in a workspace, which -w names.
func (c *command) workspaceCommand(name string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	cmd := newCommand(name, args, run)
	cmd.Flags().StringVarP(&c.workspace, "workspace", "w", defaultWorkspace, "`DIR`, the private folder with the images")
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
	// A command below another group, by its own name: rehydrate split.
	var elsewhere []string
	for _, other := range commandsOf(cmd.Root()) {
		if other.Name() == args[0] {
			elsewhere = append(elsewhere, other.CommandPath())
		}
	}
	if len(elsewhere) > 0 {
		otherwise = "did you mean " + strings.Join(elsewhere, " or ") + "?"
		names = nil
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
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, missing)
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

// unknownFlag is the error of a flag that a command does not have: which commands do, or the nearest of its own.
func unknownFlag(cmd *cobra.Command, missing *pflag.NotExistError) error {
	name, short := missing.GetSpecifiedName(), missing.GetSpecifiedShortnames()
	if short != "" {
		what := fmt.Sprintf("flag: -%s", name)
		if name == "w" {
			return unknown(what, cmd.CommandPath()+" works in no workspace: leave -w out", "", "", nil)
		}
		return unknown(what, usageHint, "", "", nil)
	}
	var own, others []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { own = append(own, f.Name) })
	otherwise := usageHint
	for _, other := range commandsOf(cmd.Root()) {
		if other.Flags().Lookup(name) != nil {
			others = append(others, other.CommandPath())
		}
		if other.Name() == name && !other.HasSubCommands() {
			otherwise = "did you mean " + other.CommandPath() + "?"
		}
	}
	const most = 4 // a flag of more commands than that says nothing
	if len(others) > 0 && len(others) <= most {
		otherwise = fmt.Sprintf("--%s is a flag of %s", name, strings.Join(others, ", "))
	}
	return unknown("flag: --"+name, otherwise, "--", name, own)
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
			return usageError("%s takes %s; got %s", cmd.CommandPath(), what, times(len(args), "argument", "arguments"))
		}
		return nil
	}
}

func exactArgs(n int, what string) cobra.PositionalArgs { return takes(n, n, what) }

// noArgs refuses arguments: most likely a workspace, which -w names.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%s takes no argument, not %s", cmd.CommandPath(), strconv.QuoteToGraphic(args[0]))
	if cmd.Flag("workspace") == nil {
		return &problem{err: err, code: exitUsage, hint: usageHint}
	}
	return &problem{err: fmt.Errorf("%w: name a workspace with -w", err), code: exitUsage,
		hint: fmt.Sprintf("%s -w %s", cmd.CommandPath(), args[0])}
}

// exitStatusTopic is the page of `rehydrate help exit-status`.
func exitStatusTopic() *cobra.Command {
	text := "How a command ends. Most end in 0, 1 or 2; the help of a command names what else has a meaning of its own there.\n"
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
		page := parsePage(cmd.Annotations[pageKey])
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { f.Usage = cmp.Or(page.flags[f.Name], f.Usage) })
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

// thisCommand stands in a hint for the command that was called, until it is known which.
const thisCommand = "{command}"

const usageHint = "see " + thisCommand + " --help"

const nameWhole = "name it from that folder, or by its whole path"

// missingHint says what to type instead of a path where there is nothing: the nearest name in its folder.
func missingHint(path string) string {
	dir, name := filepath.Split(filepath.Clean(path))
	list, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return nameWhole
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if near := manifest.Nearest(name, names); near != "" {
		return "did you mean " + strconv.QuoteToGraphic(dir+near) + "?"
	}
	return nameWhole
}

// mistaken says of an error about a workspace that a release was named as one.
func (c *command) mistaken(err error) error {
	if !errors.Is(err, workspace.ErrNoWorkspace) || !isReleaseFolder(c.workspace) {
		return err
	}
	return &problem{err: fmt.Errorf("%s is a release, not a workspace", c.workspace), code: exitUsage,
		hint: "name the folder that rehydrate run made: " + thisCommand + " -w DIR"}
}

func isReleaseFolder(path string) bool {
	_, err := os.Stat(filepath.Join(path, manifest.SettingsName))
	return err == nil
}
