package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/curate/neardup"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

func (c *command) dedupeCommand() *cobra.Command {
	defaults := policy.Default()
	f := neardup.Config{Images: defaults.Images}
	cmd := newCommand("dedupe", exactArgs(1, "one DIR of images or one PARQUET file"),
		func(cmd *cobra.Command, args []string) error {
			f.Path = args[0]
			if err := checkDedupe(f, cmd.Flags().Changed("words")); err != nil {
				return err
			}
			return c.dedupe(cmd.Context(), f)
		})
	flags := cmd.Flags()
	flags.IntVar(&f.Rule.Radius, "radius", defaults.Dedupe.HashRadius, "")
	flags.IntVar(&f.Rule.Words, "words", defaults.Dedupe.WordDifference, "")
	flags.BoolVar(&f.Rule.Guard, "guard", false, "")
	flags.BoolVar(&f.Rule.ImageOnly, "image-only", false, "")
	flags.StringVar(&f.Texts, "text", "", "")
	flags.StringVar(&f.Columns.Image, "image-column", "", "")
	flags.StringVar(&f.Columns.Text, "text-column", "", "")
	flags.IntVar(&f.Workers, "workers", runtime.NumCPU(), "")
	registerOut(cmd, &f.Out, "duplicates")
	flags.BoolVar(&f.Force, "force", false, "")
	flags.IntVar(&f.Pictures, "pictures", 500, "")
	return cmd
}

func checkDedupe(f neardup.Config, words bool) error {
	switch { // all of it before anything is read: a large folder takes minutes
	case f.Rule.Radius < 0 || f.Rule.Radius > 64:
		return usageError("--radius %d: a hash has 64 bits, give 0 to 64", f.Rule.Radius)
	case f.Rule.Words < 1:
		return usageError("--words %d: give 1 for texts that are the same, or more", f.Rule.Words)
	case f.Workers < 1:
		return usageError("--workers %d: give 1 or more", f.Workers)
	case f.Pictures < 0:
		return usageError("--pictures %d: give 0 for no page, or more", f.Pictures)
	case f.Out == "":
		return usageError("--out is empty: name a folder")
	case f.Rule.ImageOnly && (f.Texts != "" || f.Columns.Text != "" || f.Rule.Guard || words):
		return usageError("--image-only compares no text; leave --text, --text-column, --words and --guard out")
	case f.Texts != "" && f.Columns.Text != "":
		return usageError("--text and --text-column exclude each other; leave one of them out")
	}
	return nil
}

func (c *command) dedupe(ctx context.Context, f neardup.Config) error {
	if err := holdsImages(f.Path); err != nil {
		return err
	}
	f.Progress, f.Hidden = c.observePictures, hidesRows(ctx)
	search, err := neardup.Open(ctx, f)
	if err != nil {
		return asUsage(err)
	}
	s, err := search.Find(ctx)
	c.console.Done()
	if err != nil {
		return err
	}
	return c.answer("dedupe", dedupeAnswer{s, f.Pictures, s.Files - s.Unreadable, s.Groups + s.Duplicates})
}

// hidesRows reports of files which rows the workspace that they lie in does not show: by the id of a row, or where that
// is empty by the file of an image, which is named after its row. Workspaces are only read, each once.
func hidesRows(ctx context.Context) func(file, id string) (bool, error) {
	roots := map[string]string{} // by folder
	hidden := map[string]state.GoneSet{}
	return func(file, id string) (bool, error) {
		folder := filepath.Dir(file)
		root, met := roots[folder]
		if !met {
			root = pictures.WorkspaceOf(folder)
			roots[folder] = root
		}
		if root == "" {
			return false, nil
		}
		rows, met := hidden[root]
		if !met {
			var err error
			rows, err = notShown(ctx, root)
			if errors.Is(err, workspace.ErrBehind) {
				return false, fmt.Errorf("the workspace %s: %w", root, err)
			}
			if err != nil {
				return false, cmp.Or(ctx.Err(), error(&problem{code: exitFailed,
					err:  fmt.Errorf("which rows of the workspace %s are held back cannot be read: %v", root, err),
					hint: "rehydrate verify -w " + root + " says what is wrong; files that are of no workspace can lie elsewhere"}))
			}
			hidden[root] = rows
		}
		if id == "" {
			id = dataset.ImageID(filepath.ToSlash(file))
		}
		return rows.HasRow(id), nil
	}
}

// notShown returns the rows whose images the workspace at root does not show.
func notShown(ctx context.Context, root string) (state.GoneSet, error) {
	ws, err := workspace.Open(ctx, root, workspace.Options{ReadOnly: true})
	if err != nil {
		return state.GoneSet{}, err
	}
	defer ws.Close()
	return state.NotShown(ctx, ws)
}

// A dedupeAnswer is what dedupe prints.
type dedupeAnswer struct {
	neardup.Summary
	Pictures, Readable, Grouped int `json:"-"`
}

// holdsImages refuses a file that is certainly neither a folder of images nor a Parquet file.
func holdsImages(path string) error {
	if err := areThere([]string{path}); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jpg", ".jpeg", ".png", ".gif", ".webp":
		return &problem{err: fmt.Errorf("%s is one image, not a folder of images", path), code: exitUsage,
			hint: "name its folder: " + filepath.Dir(path)}
	case ".txt", ".csv", ".tsv", ".json", ".jsonl", ".md", ".zip", ".html":
		return &problem{err: fmt.Errorf("%s is neither a folder of images nor a Parquet file", path), code: exitUsage,
			hint: "name the folder that has the images: " + thisCommand + " FOLDER"}
	}
	return nil
}

// tally lists counts, the highest first.
func tally(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return strings.Join(names, ", ")
}
