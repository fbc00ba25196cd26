package main

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
	"rehydrate/study/models"
)

// trainSplit is where examples are from: they must not be of what is asked about.
const trainSplit = "train"

// classifyFlags are the flags of classify.
type classifyFlags struct {
	modelFlags
	tasks       []string
	prompts     string
	shots, runs int
	seed        int64
	maxTokens   int
	temperature float64
	topP        float64
	showPrompt  bool
	thinkEnd    string
	prose       bool
	stop        []string
}

func (c *command) classifyCommand() *cobra.Command {
	var f classifyFlags
	cmd := c.workspaceCommand("classify", noArgs, func(cmd *cobra.Command, _ []string) error {
		if f.showPrompt {
			f.dryRun, f.model = true, "none"
		}
		if err := f.check(cmd); err != nil {
			return err
		}
		chat := f.chat(cmd)
		chat.Decoding = endpoint.Decoding{MaxTokens: f.maxTokens, Temperature: &f.temperature, TopP: &f.topP, Stop: f.stop}
		return c.inModelsWorkspace(cmd.Context(), &f.modelFlags, func(w *models.Work, b workspace.Binding) error {
			return c.classify(cmd.Context(), w, b, &f, chat)
		})
	})
	flags := cmd.Flags()
	f.register(cmd, "predictions")
	flags.StringSliceVar(&f.tasks, "task", []string{models.AllTasks}, "")
	flags.IntVar(&f.shots, "shots", 0, "")
	flags.Int64Var(&f.seed, "seed", 1, "")
	flags.IntVar(&f.runs, "runs", 1, "")
	flags.StringVar(&f.prompts, "prompts", "", "")
	flags.BoolVar(&f.showPrompt, "show-prompt", false, "")
	flags.IntVar(&f.maxTokens, "max-tokens", 128, "")
	flags.StringVar(&f.thinkEnd, "think-end", "", "")
	flags.BoolVar(&f.prose, "prose", false, "")
	flags.StringArrayVar(&f.stop, "stop", nil, "")
	flags.Float64Var(&f.temperature, "temperature", 0, "")
	flags.Float64Var(&f.topP, "top-p", 1, "")
	return cmd
}

func (f *classifyFlags) check(cmd *cobra.Command) error {
	switch {
	case f.shots < 0 || f.shots > 64:
		return usageError("--shots %d: give 0 to 64", f.shots)
	case f.runs < 1 || f.runs > 100:
		return usageError("--runs %d: give 1 to 100", f.runs)
	case f.maxTokens < 1:
		return usageError("--max-tokens %d: give 1 or more", f.maxTokens)
	case len(f.stop) > 0 && f.thinkEnd != "":
		return usageError("--stop and --think-end exclude each other; leave one of them out")
	case slices.Contains(f.stop, "") || len(f.stop) > 4:
		return usageError("--stop takes at most four texts that are not empty")
	case !(f.temperature >= 0 && f.temperature <= 2) || !(f.topP > 0 && f.topP <= 1):
		return usageError("--temperature takes 0 to 2, --top-p more than 0 up to 1")
	}
	return f.modelFlags.check(cmd)
}

func (c *command) classify(ctx context.Context, w *models.Work, b workspace.Binding, f *classifyFlags,
	chat endpoint.Chat) error {
	if f.prompts == "" && f.releaseDir != "" {
		f.prompts = filepath.Join(f.releaseDir, "prompts")
	}
	train := manifest.SplitNamed(b.Splits, trainSplit)
	tasks, err := models.Tasks(b.Schema, f.tasks, f.prompts)
	switch {
	case err != nil:
		return asUsage(err)
	case f.showPrompt:
		return c.answer("prompts", promptsAnswer{tasks})
	case f.shots > 0 && (w.Split == "" || train == "" || w.Split == train):
		return usageError("--shots takes its examples from the split %s; ask about another one: --split test",
			trainSplit)
	}
	for i := range tasks {
		tasks[i].ThinkEnd, tasks[i].Prose = f.thinkEnd, f.prose
	}
	work := &models.Classification{Tasks: tasks, Chat: chat, Shots: f.shots, Seed: f.seed, Runs: f.runs, Split: w.Split,
		Pictures: &models.Pictures{Store: w.Store, MaxSide: f.maxSide}, Warn: c.warnOnce()}
	w.Questions = work.Questions
	if f.shots > 0 {
		w.Examples = train
	}
	return c.askModel(ctx, w, b, &f.modelFlags, "classify", work, &work.Server)
}

// warnOnce prints each warning once: the questions are made again when Reddit was asked again.
func (c *command) warnOnce() func(string) {
	said := map[string]bool{}
	return func(text string) {
		if !said[text] {
			said[text] = true
			c.log.Warn(text)
		}
	}
}

// A promptsAnswer is what --show-prompt prints.
type promptsAnswer struct {
	Prompts []models.Task `json:"prompts"`
}
