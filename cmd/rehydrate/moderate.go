package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"rehydrate/pipeline/workspace"
	"rehydrate/study"
	"rehydrate/study/models"
)

// moderateFlags are the flags of moderate.
type moderateFlags struct {
	modelFlags
	guard bool
	send  []string
}

func (c *command) moderateCommand() *cobra.Command {
	var f moderateFlags
	cmd := c.workspaceCommand("moderate", noArgs, func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		work := &models.Moderation{Guard: f.guard, Send: f.send, Chat: f.chat(cmd)}
		return c.inModelsWorkspace(cmd.Context(), &f.modelFlags, func(w *models.Work, b workspace.Binding) error {
			return c.moderate(cmd.Context(), w, b, &f, work)
		})
	})
	flags := cmd.Flags()
	f.register(cmd, "scores")
	flags.BoolVar(&f.guard, "guard", false, "")
	flags.StringSliceVar(&f.send, "send", nil, "")
	return cmd
}

func (f *moderateFlags) check(cmd *cobra.Command) error {
	for _, what := range f.send {
		if what != models.SendImage && what != models.SendText {
			return usageError("--send takes image, text or image,text, not %q", what)
		}
	}
	switch {
	case f.guard && study.HasOtherCodes(f.model):
		return usageError("--guard reads the codes of Llama Guard 3 and 4 (S11 is self-harm), and those of %s mean others",
			f.model)
	case len(f.send) > 0:
	case f.guard:
		f.send = []string{models.SendText}
	default:
		f.send = []string{models.SendImage, models.SendText}
	}
	f.split = cmp.Or(f.split, "all") // Table 2 is of all rows
	return f.modelFlags.check(cmd)
}

func (c *command) moderate(ctx context.Context, w *models.Work, b workspace.Binding, f *moderateFlags,
	work *models.Moderation) error {
	work.Pictures, work.Split = &models.Pictures{Store: w.Store, MaxSide: f.maxSide}, w.Split
	w.Questions = work.Questions
	return c.askModel(ctx, w, b, &f.modelFlags, "moderate", work, &work.Server)
}
