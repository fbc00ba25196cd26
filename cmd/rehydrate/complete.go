package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/manifest"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// retryOutcomes are the outcomes that --retry takes: those with which a download can end.
var retryOutcomes = []string{string(manifest.Gone), string(manifest.Placeholder), string(manifest.Invalid),
	string(manifest.Changed), string(manifest.Refused), string(manifest.Failed)}

// complete says what a shell offers: values where there are few, paths where one is taken, else nothing.
func (c *command) complete(cmd *cobra.Command) {
	fixed := func(words ...string) valuesFunc {
		return func(*cobra.Command, string) ([]string, error) { return words, nil }
	}
	values := map[string]valuesFunc{"filters": fixed("drop", "flag"), "format": fixed(copies.Formats()...),
		"server": fixed("openai", "vllm", "ollama", "llama.cpp"),
		"retry":  c.retries, "id": c.ids, "split": c.goldSplits}
	if cmd.Name() == "features" {
		values["format"] = fixed("csv", "parquet")
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		kind := valueOf(f)
		if values[f.Name] != nil && (f.Name != "split" ||
			cmd.HasParent() && cmd.Parent().Name() == "labels" && cmd.Flag("release") != nil) {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, values[f.Name].offer)
		} else if !slices.Contains([]string{"FILE", "FILE,...", "DIR", "[NAME=]FILE", "NAME=FILE,...", "KEY", "PATH",
			"OLD", "PROGRAM", "RELEASE"}, kind) {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	paths := []string{"RELEASE", "DIR", "FILE", "PATH", "PARQUET", "OLD", "PREDICTIONS", "DATASET",
		"FEATURES", "SCORES", "DUMP"}
	takesPath := slices.ContainsFunc(paths, func(word string) bool { return strings.Contains(cmd.Use, word) })
	switch {
	case cmd.Name() == "explain":
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return valuesFunc(c.ids).offer(cmd, args, begun)
		}
	case cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !takesPath:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// A valuesFunc lists values, all or those that begin in a way.
type valuesFunc func(cmd *cobra.Command, begun string) ([]string, error)

func (f valuesFunc) offer(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	all, err := f(cmd, begun)
	if err != nil { // a shell has no place for it
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offered := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, begun) })
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// ids are the entries of the workspace.
func (c *command) ids(cmd *cobra.Command, begun string) ([]string, error) {
	return reading(cmd.Context(), c, func(ws *workspace.Workspace) (ids []string, _ error) {
		for rec, err := range ws.Records(cmd.Context(), workspace.Select{}) {
			if err != nil {
				return nil, err
			}
			id := rec.Key.String()
			if cmd.Name() == "purge" { // which takes whole posts
				id = string(rec.Key.ID)
			}
			if strings.HasPrefix(id, begun) && !slices.Contains(ids[max(len(ids)-1, 0):], id) {
				ids = append(ids, id)
			}
		}
		return ids, nil
	})
}

// retries are the outcomes and reasons that --retry takes.
func (c *command) retries(cmd *cobra.Command, _ string) ([]string, error) {
	words := slices.Clone(retryOutcomes)
	s, err := reading(cmd.Context(), c, func(ws *workspace.Workspace) (state.Summary, error) {
		return state.Status(cmd.Context(), ws, c.now())
	})
	if err != nil { // without a workspace there are no reasons yet
		return words, nil
	}
	for _, n := range s.Reasons {
		if slices.Contains(retryOutcomes, string(n.Outcome)) && n.Reason != "" {
			words = append(words, string(n.Reason))
		}
	}
	return words, nil
}

// goldSplits are the splits of the release with the true labels.
func (c *command) goldSplits(cmd *cobra.Command, _ string) ([]string, error) {
	opened, err := c.openDraft(cmd.Context(), cmd.Flag("release").Value.String())
	return append(opened.summary.Splits, "all"), err
}
