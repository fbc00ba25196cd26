package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/policy"
)

func (c *command) initCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "init DIR --manifest FILE",
		Short: "Make a release of somebody's CSV, JSONL or Parquet",
		Long: `Make a release folder of an annotations file: a commented release.toml with guesses
at what the columns and labels mean, the default policy.toml, an empty
tombstones.csv, and a copy of the file. Read release.toml and correct it: a guess
is a guess. Asks nobody; writes only DIR, which must not exist or be empty.` +
			exitHelp(exitDone, exitFailed, exitUsage),
		Example: "  rehydrate init my-release --manifest annotations.csv",
		Args:    exactArgs(1, "one DIR to make"),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.init(args[0], file)
		},
	}
	cmd.Flags().StringVar(&file, "manifest", "", "the annotations `file`: CSV, TSV, JSONL or Parquet")
	return cmd
}

func (c *command) init(dir, file string) error {
	if file == "" {
		return usageError("init needs the annotations file: --manifest FILE")
	}
	draft, err := manifest.Init(file, manifest.Options{OpenParquet: dataset.OpenManifest})
	if err != nil {
		return asUsage(err)
	}
	var tombstones bytes.Buffer
	if err := manifest.WriteTombstones(&tombstones, nil); err != nil {
		return err
	}
	written, err := draft.Write(dir, map[string][]byte{
		"policy.toml": policy.DefaultTOML(), manifest.TombstonesName: tombstones.Bytes()})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"written": written, "guesses": draft.Notes, "warnings": draft.Warnings})
	}
	for _, note := range draft.Notes {
		fmt.Fprintf(c.stdout, "guess: %s\n", note)
	}
	for _, warning := range draft.Warnings {
		fmt.Fprintf(c.stdout, "look at: %s\n", warning)
	}
	for _, f := range written {
		fmt.Fprintf(c.stdout, "wrote %s\n", f)
	}
	fmt.Fprintf(c.stdout, "\nRead release.toml, correct its guesses, and fill in name, license and citation. Rehearse it on made-up\n"+
		"posts: rehydrate demo --release %s. Then: rehydrate run %s --approval REF\n", dir, dir)
	return nil
}
