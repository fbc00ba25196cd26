package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/cmd/internal/console"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// What is wrong is told in one form: a line that begins with the program's name and says what happened to what, and
// below
// it, indented, what to type.

// thisCommand stands in a hint for the command that was called, until it is known which.
const thisCommand = "{command}"

// usageHint stands for what the help of the command says: see wayOut.
const usageHint = "{usage}"

// hintLine begins the hint at the end of an error about one place of a file.
const hintLine = "\n  hint: "

// errorLines are an error and its hint as they are printed. Of several errors about places of files, each has its own
// hint,
// or all have the last.
func errorLines(text, hint string) string {
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimRight(line, "\n")
		if own, ok := strings.CutPrefix("\n"+line, hintLine); ok {
			fmt.Fprintf(&b, "  %s\n", asSentence(own))
		} else if line != "" {
			fmt.Fprintf(&b, "rehydrate: %s\n", line)
		}
	}
	if hint != "" {
		fmt.Fprintf(&b, "  %s\n", asSentence(strings.ReplaceAll(hint, "\n", "\n  ")))
	}
	return b.String()
}

// splitHint takes the hint out of an error about places of files, if all places have the same, and puts it before
// another one.
func splitHint(text, hint string) (string, string) {
	hints := map[string]bool{}
	var rest []string
	for line := range strings.SplitSeq(text, "\n") {
		if own, ok := strings.CutPrefix("\n"+line, hintLine); ok {
			hints[own] = true
		} else {
			rest = append(rest, line)
		}
	}
	if len(hints) != 1 {
		return text, hint
	}
	for own := range hints {
		hint = strings.TrimSuffix(own+"\n"+strings.TrimSuffix(hint, usageHint), "\n")
	}
	return strings.Join(rest, "\n"), hint
}

// asSentence begins a hint with a capital letter, unless it is something to type.
func asSentence(hint string) string {
	first, rest, _ := strings.Cut(strings.ReplaceAll(hint, console.Joint, " "), " ")
	typed := first == "rehydrate" || first == "chmod" || first == "id" || first == "" ||
		strings.ContainsAny(first, `"/_.-`)
	if typed || rest == "" {
		return hint
	}
	letters := []rune(hint)
	letters[0] = unicode.ToUpper(letters[0])
	return string(letters)
}

var namedFlag = regexp.MustCompile(`--[a-z][a-z-]*`)

// wayOut is what to type after a wrong usage: what the help says of the flags that the error names, or how the
// command is
// called.
func wayOut(cmd *cobra.Command, text string) string {
	const most = 3
	var lines []string
	for _, name := range namedFlag.FindAllString(text, -1) {
		f := cmd.Flags().Lookup(name[2:])
		if f == nil || len(lines) == most {
			continue
		}
		row := strings.TrimRight("--"+f.Name+" "+valueOf(f), " ") + ": " + f.Usage
		if !slices.Contains(lines, row) {
			lines = append(lines, row)
		}
	}
	if len(lines) > 0 {
		return strings.Join(lines, "\n")
	}
	usage := "usage: " + cmd.UseLine()
	if example, _, _ := strings.Cut(strings.ReplaceAll(cmd.Example, "\\\n", ""), "\n"); example != "" {
		usage += "\nFor example: " + strings.Join(strings.Fields(example), " ")
	}
	return usage
}

// onlyCommands refuses a word that is not one of a command's own.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := namesOf(cmd)
	path, word := cmd.CommandPath(), strconv.QuoteToGraphic(args[0])
	text, otherwise := "unknown command "+word, "rehydrate --help lists the commands"
	if cmd.HasParent() && len(names) > 0 {
		text, otherwise = fmt.Sprintf("%s has no command %s", path, word), "its commands are "+strings.Join(names, ", ")
		if _, err := os.Stat(args[0]); err == nil {
			otherwise = "name the command first: " + path + " " + strings.Join(names, "|") + " " + args[0]
		}
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
	if meant := otherCommands[args[0]]; slices.Contains(names, meant) {
		return unknown(text, "did you mean "+path+" "+meant+"?", "", "", nil)
	}
	// One that undoes removals is nothing that a slip may lead to.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "lift" })
	return unknown(text, otherwise, path+" ", args[0], names)
}

// otherCommands are commands as other programs call them.
var otherCommands = map[string]string{"list": "show", "ls": "show", "view": "show", "print": "show"}

// namesOf are the names of the commands below one.
func namesOf(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}

// unknown is the error of a name that is not one of those there are. The hint is the nearest of them, behind what goes
// before a name, or otherwise.
func unknown(text, otherwise, before, name string, names []string) error {
	hint := otherwise
	if near := manifest.Nearest(name, names); near != "" {
		hint = "did you mean " + before + near + "?"
	}
	return &problem{err: errors.New(text), code: exitUsage, hint: hint}
}

// flagError says for people what the flags' package says for programmers.
func flagError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, missing)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError("--%s needs a value", missing.GetFlag().Name)
	}
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usageError("%w", err)
	}
	flag := wrong.GetFlag()
	kinds := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 on",
		"float64": "a number", "bool": "true or false", "duration": "a time such as 30s or 5m",
		"intSlice":    "whole numbers, separated by commas",
		"stringSlice": "words, separated by commas, without stray quotation marks"}
	return usageError(
		"--%s takes %s, not %q",
		flag.Name,
		cmp.Or(kinds[flag.Value.Type()], flag.Value.Type()),
		wrong.GetValue(),
	)
}

// otherNames are flags as other programs call them, or as people guess them.
var otherNames = map[string]string{
	"to":        "out",
	"output":    "out",
	"dest":      "out",
	"gold":      "release",
	"study":     "release",
	"dataset":   "workspace",
	"dir":       "workspace",
	"overwrite": "force",
	"jobs":      "workers",
	"threads":   "workers",
}

// unknownFlag is the error of a flag that a command does not have: which commands do, or the nearest of its own.
func unknownFlag(cmd *cobra.Command, missing *pflag.NotExistError) error {
	name, path := missing.GetSpecifiedName(), cmd.CommandPath()
	text := fmt.Sprintf("%s has no flag --%s", path, name)
	if short := missing.GetSpecifiedShortnames(); short != "" {
		text = fmt.Sprintf("%s has no flag -%s", path, name)
		switch {
		case name == "w" && !cmd.HasParent():
			return unknown(text, "name the command first: rehydrate status -w DIR", "", "", nil)
		case name == "w" && cmd.HasSubCommands():
			return unknown(text, "choose: "+strings.Join(namesOf(cmd), ", "), "", "", nil)
		case name == "w":
			return unknown(text, path+" needs no workspace: leave -w out", "", "", nil)
		}
		name = short // -shards is meant as --shards
	}
	var own, others []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { own = append(own, f.Name) })
	otherwise := path + " --help lists its flags"
	for _, other := range commandsOf(cmd.Root()) {
		if len(name) > 1 && other.Flags().Lookup(name) != nil {
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
	if meant := otherNames[name]; slices.Contains(own, meant) {
		return unknown(text, "did you mean --"+meant+"?", "", "", nil)
	}
	return unknown(text, otherwise, "--", name, own)
}

// takes is how many arguments a command takes, and what they are.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		path := cmd.CommandPath()
		switch {
		case len(args) < least:
			return usageError("%s needs %s", path, what)
		case len(args) > most:
			return usageError("%s takes %s; %s is one too many", path, what, strconv.QuoteToGraphic(args[most]))
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
	path, word := cmd.CommandPath(), strconv.QuoteToGraphic(args[0])
	if cmd.Flag("workspace") == nil {
		return usageError("%s takes no argument, not even %s", path, word)
	}
	return &problem{
		err:  fmt.Errorf("%s takes no argument; name a workspace with -w, not as %s", path, word),
		code: exitUsage,
		hint: fmt.Sprintf("%s -w %s", path, args[0]),
	}
}

const nameWhole = "check the spelling, or give the whole path"

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

// mistaken says of an error about a workspace what was named as one.
func (c *command) mistaken(err error) error {
	if !errors.Is(err, workspace.ErrNoWorkspace) {
		return err
	}
	info, failed := os.Stat(c.workspace)
	switch {
	case isReleaseFolder(c.workspace):
		return &problem{err: fmt.Errorf("%s is a release, not a workspace", c.workspace), code: exitUsage,
			hint: "name the folder that a run made: " + thisCommand + " -w DIR"}
	case failed != nil:
		return &problem{err: fmt.Errorf("there is no workspace %s", c.workspace), code: exitUsage,
			hint: c.noWorkspaceHint()}
	case info.IsDir() && errors.Is(err, workspace.ErrEmpty):
		return &problem{err: fmt.Errorf("the workspace %s holds nothing yet", c.workspace), code: exitUsage,
			hint: "rehydrate run RELEASE"}
	}
	if _, why, found := strings.Cut(err.Error(), workspace.ErrNoWorkspace.Error()+": "); found {
		return &problem{err: fmt.Errorf("%s is not a workspace: %s", c.workspace, why), code: exitUsage,
			hint: "name yours with -w DIR, or make one: rehydrate run RELEASE -w DIR"}
	}
	return err
}

// noWorkspaceHint says what to do where there is no workspace.
func (c *command) noWorkspaceHint() string {
	hint := "name yours with -w DIR, or make one: rehydrate run RELEASE"
	if c.called == nil {
		return hint
	}
	switch c.called.Name() {
	case "audit":
		return "name the FILE to audit, or a workspace with -w DIR"
	case "purge":
		return hint + "\nMaintainers without one add the line ID,removed,TIME to tombstones.csv of their draft, " +
			"and publish it"
	}
	return hint
}

// named is -w with the workspace, where it is not the usual one.
func (c *command) named() string {
	if c.workspace == defaultWorkspace {
		return ""
	}
	return repeated("-w", c.workspace)
}

func isReleaseFolder(path string) bool {
	_, err := os.Stat(filepath.Join(path, manifest.SettingsName))
	return err == nil
}
