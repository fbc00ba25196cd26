package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/curate/neardup"
	"rehydrate/internal/userfile"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
	"rehydrate/study/features"
)

// featureFlags are the flags of features.
type featureFlags struct {
	features.Config
	out, note, format string
	noFaces, union    bool
	cascade           string
	dictionaries      []string
}

func (c *command) featuresCommand() *cobra.Command {
	f := featureFlags{Config: features.Config{Images: policy.Default().Images, Detection: features.DefaultDetection()}}
	cmd := c.workspaceCommand("features", takes(0, 1,
		"at most one FOLDER of images or one PARQUET file; without one it measures the workspace of -w"),
		func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if len(args) > 0 && cmd.Flags().Changed("workspace") {
				return usageError("%s takes a FOLDER or PARQUET, or the workspace of -w; leave one of them out",
					cmd.CommandPath())
			}
			return c.features(cmd.Context(), strings.Join(args, ""), f)
		})
	flags := cmd.Flags()
	registerOut(cmd, &f.out, "features")
	flags.StringVar(&f.format, "format", "csv", "")
	flags.StringVar(&f.note, "note", "numbers of its images and texts", "")
	flags.BoolVar(&f.noFaces, "no-faces", false, "")
	flags.StringVar(&f.cascade, "cascade", "", "")
	flags.Float64Var(&f.Detection.Scale, "scale-factor", f.Detection.Scale, "")
	flags.IntVar(&f.Detection.Neighbors, "min-neighbors", f.Detection.Neighbors, "")
	flags.IntVar(&f.Detection.MinSize, "min-size", f.Detection.MinSize, "")
	flags.StringArrayVar(&f.dictionaries, "dictionary", nil, "")
	flags.BoolVar(&f.union, "union", false, "")
	flags.BoolVar(&f.Counts, "counts", false, "")
	flags.StringVar(&f.Columns.Image, "image-column", "", "")
	flags.StringVar(&f.Columns.Text, "text-column", "", "")
	flags.IntVar(&f.Workers, "workers", runtime.NumCPU(), "")
	return cmd
}

func (f *featureFlags) check() error {
	d := f.Detection
	switch {
	case !slices.Contains([]string{"csv", "parquet"}, f.format):
		return usageError("--format takes csv or parquet, not %q", f.format)
	case f.Workers < 1:
		return usageError("--workers %d: give 1 or more", f.Workers)
	case !(d.Scale >= 1.01 && d.Scale <= 10):
		return usageError("--scale-factor %g: give 1.01 to 10; OpenCV's default is 1.1", d.Scale)
	case d.Neighbors < 1 || d.MinSize < 0:
		return usageError("--min-neighbors takes 1 or more, --min-size 0 or more")
	case f.noFaces && f.cascade != "":
		return usageError("--no-faces and --cascade exclude each other; leave one of them out")
	case f.out == "":
		return usageError("--out is empty: name a folder")
	}
	return copies.CheckNote(f.note)
}

func (c *command) features(ctx context.Context, source string, f featureFlags) error {
	err := f.readCascade()
	if err == nil {
		f.Dictionaries, err = features.OpenDictionaries(f.dictionaries, f.union)
	}
	if err != nil {
		return asUsage(err)
	}
	if source == "" {
		return c.featuresOfWorkspace(ctx, f)
	}
	if err := holdsImages(source); err != nil {
		return err
	}
	f.Paths, err = features.Sources(source)
	if err != nil {
		return asUsage(err)
	}
	if root := pictures.WorkspaceOf(f.Paths[0]); root != "" {
		return &problem{err: fmt.Errorf("%s is in the workspace %s", source, root), code: exitUsage,
			hint: fmt.Sprintf("%s -w %s", thisCommand, root)}
	}
	// No purge would take the rows of its images out of a table that is not registered.
	root, err := pictures.WorkspaceBelow(ctx, f.Paths[0])
	if err != nil {
		return err
	}
	if root != "" {
		return &problem{err: fmt.Errorf("%s has the workspace %s in it", source, root), code: exitUsage,
			hint: fmt.Sprintf("name a folder without it; or measure its dataset: %s -w %s", thisCommand, shellWord(root))}
	}
	copied, err := reading(ctx, c, func(ws *workspace.Workspace) (string, error) {
		return copies.Met(ctx, ws, f.Paths[0])
	})
	if err == nil && copied != "" { // of a workspace that cannot be opened no copy is known
		return &problem{code: exitUsage,
			err:  fmt.Errorf("%s has images of %s, a registered copy of the workspace %s", source, copied, c.workspace),
			hint: fmt.Sprintf("measure the dataset that it was made of: %s -w %s", thisCommand, shellWord(c.workspace))}
	}
	return c.derive(ctx, nil, f)
}

// featuresOfWorkspace computes the numbers of a workspace's dataset into a registered copy.
func (c *command) featuresOfWorkspace(ctx context.Context, f featureFlags) error {
	return c.usingRows(ctx, nil, func(ws *workspace.Workspace) (err error) {
		if err := state.CheckWritten(ctx, ws); err != nil {
			return err
		}
		shards, err := state.Shards(ctx, ws)
		if err != nil {
			return err
		}
		if len(shards) == 0 { // the folder of images has also what no dataset may have
			return &problem{err: fmt.Errorf("the workspace %s has no dataset", c.workspace), code: exitRetry,
				hint: "rehydrate run RELEASE writes it, or cluster merge RELEASE; then run the same command"}
		}
		f.Paths = nil
		for _, shard := range shards {
			f.Paths = append(f.Paths, filepath.Join(ws.Dir(), shard.Name))
		}
		hidden, err := state.MustHideNow(ctx, ws)
		if err != nil {
			return err
		}
		f.Hidden = hidden.HasRow
		return c.derive(ctx, ws, f)
	})
}

// finishedRows is the file of rows that an interrupted command goes on from.
const finishedRows = "finished-rows.jsonl"

// derive computes the numbers into the folder, which is a registered copy if the pictures are of a workspace.
func (c *command) derive(ctx context.Context, ws *workspace.Workspace, f featureFlags) error {
	f.Progress = func(done, total int) { c.observePictures(neardup.Progress{Stage: "measure", Done: done, Total: total}) }
	name := dataset.NumbersName + "." + f.format
	var table *features.Table
	err := copies.Derive(ctx, ws, copies.Derived{To: f.out, Note: f.note, Format: string(dataset.Numbers), Made: c.now(),
		Part: finishedRows,
		Fill: func(ctx context.Context, temp string, sink func(string, func(io.Writer) error) error) (_ []string,
			err error) {
			part := filepath.Join(temp, finishedRows)
			table, err = features.Compute(ctx, f.Config, part)
			c.console.Done()
			if err != nil {
				return nil, err
			}
			err = errors.Join(
				sink(name, func(w io.Writer) error {
					return dataset.WriteNumbers(w, name, table.Columns, table.Made(), table.All)
				}),
				sink(dataset.NumbersName+".json", func(w io.Writer) error { return json.NewEncoder(w).Encode(table) }))
			if err == nil {
				err = os.Remove(part)
			}
			return table.IDs(), err
		}})
	switch {
	case errors.Is(err, copies.ErrForeign):
		return asUsage(err)
	case errors.Is(err, context.Canceled):
		return state.ErrInterrupted
	case err != nil:
		return err
	}
	return c.answer("features", featuresAnswer{table, filepath.Join(f.out, name), ws != nil, f.Dictionaries})
}

// A featuresAnswer is what features prints.
type featuresAnswer struct {
	*features.Table
	Out          string                 `json:"out"`
	Registered   bool                   `json:"registered"`
	Dictionaries []*features.Dictionary `json:"dictionaries,omitempty"`
}

func (f *featureFlags) readCascade() (err error) {
	switch {
	case f.noFaces:
	case f.cascade == "":
		f.Cascade, err = features.FrontalFace()
	default:
		var file *os.File
		file, _, err = userfile.Open(f.cascade)
		if err == nil {
			defer file.Close()
			f.Cascade, err = features.ReadCascade(file, filepath.Base(f.cascade))
		}
	}
	return err
}
