package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/curate/publish"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/study"
)

// publishFlags are the flags of publish.
type publishFlags struct {
	out, split, answers, sign, batch, decides string
	digests, checked                          bool
	annotators, columns, keep                 []string
}

func (c *command) publishCommand() *cobra.Command {
	var f publishFlags
	cmd := c.workspaceCommand("publish", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		switch {
		case f.out == "":
			return usageError("%s needs --out DIR, the folder to make", cmd.CommandPath())
		case f.batch != "" && len(f.annotators) == 0:
			return usageError("--batch needs --annotators, whose batches it compares")
		case len(f.columns) > 0 && len(f.annotators) == 0:
			return usageError("--columns needs --annotators FILE, the file with the columns")
		case f.decides != "" && len(f.annotators) == 0:
			return usageError("--decides needs --annotators, one of whom it leaves out")
		}
		return c.publish(cmd.Context(), args[0], f, cmd.Flags().Changed("workspace") || f.digests)
	})
	flags := cmd.Flags()
	registerOut(cmd, &f.out, "")
	flags.BoolVar(&f.digests, "digests", false, "")
	flags.StringVar(&f.split, "split", "", "")
	flags.StringSliceVar(&f.annotators, "annotators", nil, "")
	flags.StringSliceVar(&f.columns, "columns", nil, "")
	flags.StringVar(&f.batch, "batch", "", "")
	flags.StringVar(&f.decides, "decides", "", "")
	flags.StringVar(&f.answers, "datasheet", "", "")
	flags.StringArrayVar(&f.keep, "keep", nil, "")
	flags.BoolVar(&f.checked, "checked", false, "")
	flags.StringVar(&f.sign, "sign", "", "")
	return cmd
}

func (c *command) publish(ctx context.Context, path string, f publishFlags, wantsWorkspace bool) error {
	opened, err := c.openDraft(ctx, path)
	if err != nil {
		return err
	}
	config := publish.Config{Release: opened.Release, Tombstones: opened.tombstones, To: f.out, Digests: f.digests,
		Keep: f.keep, Tool: build.Version(), Now: c.now()}
	config.Policy, err = policyOf(opened.Release)
	if err == nil {
		config.Answers, err = readAnswers(opened.Release, f.answers)
	}
	if err == nil && f.sign != "" {
		config.Key, err = userfile.Read(f.sign)
	}
	if err == nil && f.split != "" {
		config.Splits, err = readSplit(ctx, f.split)
	}
	if err != nil {
		return asUsage(err)
	}
	if len(f.annotators) > 0 {
		agreement, err := study.Agree(ctx, study.Annotations{Files: f.annotators, Columns: f.columns, Release: path,
			Batch: f.batch, Decides: f.decides, Seed: usualSeed})
		if err != nil {
			return err
		}
		config.Agreement = &agreement
	}
	// What a workspace knows of removals and words is taken into account if it is there, whether it was named or not.
	rehearsal, err := c.isRehearsal(ctx, opened.Release)
	if rehearsal {
		err = &problem{err: &workspace.OtherRelease{Have: "a rehearsal of " + opened.Name, Want: opened.Name},
			code: exitUsage,
			hint: "a rehearsal's workspace cannot be published from: to try that, use rehydrate demo --serve"}
	}
	hand := c.examine
	if f.checked {
		hand = c.handOut
	}
	switch {
	case err == nil:
		_, err = reading(ctx, c, func(ws *workspace.Workspace) (struct{}, error) {
			config.Workspace = ws
			return struct{}{}, hand(ctx, config)
		})
	case !wantsWorkspace && (errors.Is(err, workspace.ErrNoWorkspace) || is[*workspace.OtherRelease](err)):
		err = hand(ctx, config)
	}
	if is[*publish.Refused](err) {
		return &problem{err: err, code: exitUsage, hint: "correct the files of the release, and publish again"}
	}
	return err
}

// examine prints what would be published, for a person to read.
func (c *command) examine(ctx context.Context, config publish.Config) error {
	review, err := publish.Examine(ctx, config)
	if err != nil {
		return err
	}
	review.Next = c.again("--checked")
	return c.answerHolds("publish-review", review, false, exitUsage)
}

// handOut makes the folder.
func (c *command) handOut(ctx context.Context, config publish.Config) error {
	report, err := publish.Publish(ctx, config)
	if err != nil {
		return err
	}
	return c.answer("publish", report)
}

// publishedRows are the parts of a release as a person reads them: what to look at first, and everything.
func publishedRows(items []publish.Item) (rows struct{ First, All [][2]string }) {
	for _, item := range items {
		var looks []string
		for _, look := range item.Looks {
			looks = append(looks, strings.TrimSpace(look.Value+" "+look.Like))
		}
		if looks != nil {
			rows.First = append(rows.First, [2]string{item.What, strings.Join(looks, "; ")})
		}
		holds := item.Holds
		if item.Different > 1 {
			holds += fmt.Sprintf(", %d", item.Different)
		}
		rest := ""
		n := item.Different - len(item.Values)
		switch {
		case item.Others != "":
			rest = fmt.Sprintf("; and %d more, which are not shown: read that column of %s before you hand it out", n,
				item.Others)
		case n > 0:
			holds += ", such as"
		}
		rows.All = append(rows.All, [2]string{item.What, holds + ": " + strings.Join(item.Values, ", ") + rest})
	}
	return rows
}

// again is the command that was typed, with some flags more, and without others, as a shell takes it.
func (c *command) again(more string, without ...string) string {
	return retyped(c.args, more, without...)
}

// onRelease is the command that was typed with a workspace, or a file in it, in the place of its release, as it names
// both.
func (c *command) onRelease(path, within string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err == nil && real == within {
		within = path // as it was typed
	}
	var args []string
	for i := 0; i < len(c.args); i++ {
		arg := c.args[i]
		switch {
		case arg == path:
			args = append(args, "RELEASE")
		case arg == "-w", arg == "--workspace":
			i++ // with its value
		case !strings.HasPrefix(arg, "-w") && !strings.HasPrefix(arg, "--workspace="):
			args = append(args, arg)
		}
	}
	return retyped(args, "-w "+shellWord(within))
}

// retyped is again for these arguments.
func retyped(args []string, more string, without ...string) string {
	words, after := []string{"rehydrate"}, []string{}
	for i, arg := range args {
		if arg == "--" { // behind it nothing is a flag
			for _, rest := range args[i:] {
				after = append(after, shellWord(rest))
			}
			break
		}
		if !slices.Contains(without, arg) {
			words = append(words, shellWord(arg))
		}
	}
	if more != "" {
		words = append(words, more)
	}
	return joined(strings.Join(append(words, after...), " "))
}

// shellWord is an argument as a shell takes it.
func shellWord(arg string) string {
	if plainArg.MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// typed gives the words of a command as a shell takes them.
func typed(words ...string) string {
	for i, word := range words {
		words[i] = shellWord(word)
	}
	return strings.Join(words, " ")
}

// plainArg is an argument in which a shell sees nothing but itself.
var plainArg = regexp.MustCompile(`^[\pL\pN_./:=,@%+-]+$`)

// readAnswers reads the maintainers' answers for the datasheet, if there are any.
func readAnswers(rel *manifest.Release, name string) (publish.Answers, error) {
	usual := name == ""
	if usual {
		name = filepath.Join(rel.Dir, publish.AnswersName)
	}
	b, err := userfile.Read(name)
	if usual && (rel.Dir == "" || errors.Is(err, fs.ErrNotExist)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return publish.ParseAnswers(name, b)
}

func readSplit(ctx context.Context, name string) (map[manifest.PostID]string, error) {
	of, err := study.ReadColumn(ctx, name, "split", manifest.Options{})
	splits := make(map[manifest.PostID]string, len(of))
	for key, split := range of {
		if other, has := splits[key.ID]; has && other != split {
			return nil, fmt.Errorf("%s: the images of post %s are in several splits", name, key.ID)
		}
		splits[key.ID] = split
	}
	return splits, err
}
