package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/curate/publish"
	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/manifest/guess"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/language"
	"rehydrate/policy"
	"rehydrate/study"
)

func (c *command) initCommand() *cobra.Command {
	var (
		files   []string
		signers []string
		o       guess.Options
	)
	cmd := newCommand("init", exactArgs(1, "one DIR to make"), func(cmd *cobra.Command, args []string) error {
		return c.init(cmd.Context(), args[0], files, signers, o)
	})
	cmd.Flags().StringArrayVar(&files, "manifest", nil, "")
	cmd.Flags().StringVar(&o.Name, "name", "", "")
	cmd.Flags().StringVar(&o.Timezone, "timezone", "", "")
	cmd.Flags().BoolVar(&o.NoHeader, "no-header", false, "")
	cmd.Flags().StringVar(&o.ID, "id", "", "")
	cmd.Flags().StringVar(&o.Records, "records", "", "")
	cmd.Flags().StringArrayVar(&o.Keep, "keep", nil, "")
	cmd.Flags().BoolVar(&o.PostsOnly, "posts-only", false, "")
	cmd.Flags().BoolVar(&o.SkipDamaged, "skip-damaged", false, "")
	cmd.Flags().BoolVar(&o.Many, "many", false, "")
	cmd.Flags().StringArrayVar(&signers, "signer", nil, "")
	return cmd
}

func (c *command) init(ctx context.Context, dir string, files, signers []string, o guess.Options) error {
	if len(files) == 0 {
		return usageError("rehydrate init needs your annotations: --manifest FILE")
	}
	if err := c.outsideWorkspace("DIR", dir); err != nil { // where a job can delete it
		return err
	}
	if o.Name == "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		o.Name = filepath.Base(whole)
	}
	if slices.Contains(files, "-") {
		kept, err := c.keepStdin()
		if err != nil {
			return err
		}
		defer os.Remove(kept)
		o.Stdin = kept
	}
	for _, file := range files {
		if file != "-" && !strings.ContainsAny(file, `*?[\`) { // not a pattern
			if err := areThere([]string{file}); err != nil {
				return err
			}
			if err := noTombstones(file); err != nil && len(o.Keep) == 0 { // who keeps columns knows what they are
				return err
			}
		}
	}
	leftOut := filepath.Clean(dir) + "-left-out.csv" // beside the release, which is published
	if _, err := os.Lstat(leftOut); err == nil && o.SkipDamaged {
		return usageError("%s exists, and would list the rows that are left out; choose another DIR, or delete that file%s",
			leftOut, map[bool]string{true: " and the folder " + dir}[userfile.Exists(dir) == nil])
	}
	pins, pol, err := readSigners(signers)
	if err != nil {
		return err
	}
	english, err := language.New()
	if err != nil {
		return err
	}
	o.Signers, o.OpenParquet, o.Known, o.Today = pins, scan.OpenManifest, english.Knows, c.now()
	draft, err := guess.Files(ctx, files, o)
	if err != nil {
		return asUsage(err)
	}
	var tombstones bytes.Buffer
	if err := manifest.WriteTombstones(&tombstones, nil); err != nil {
		return err
	}
	written, err := draft.Write(ctx, dir, map[string][]byte{
		"policy.toml": pol, manifest.TombstonesName: tombstones.Bytes(), publish.AnswersName: publish.Questions()})
	if is[*manifest.Problems](err) || is[*manifest.Problem](err) {
		return asUsage(err)
	}
	listed := ""
	if err == nil && len(draft.LeftOut) > 0 {
		err, listed = durable.Write(ctx, leftOut, 0o644, draft.WriteLeftOut), leftOut
		written = append(written, leftOut)
	}
	if err != nil {
		return err
	}
	answer := initAnswer{Guesses: draft.Notes, Warnings: draft.Warnings, Written: written, Example: draft.Example,
		Compare: comparisons(ctx, files, draft.Annotators, dir), Dir: dir, LeftOut: listed, Signed: len(signers) > 0,
		Labelled: draft.Labelled, Unused: draft.Unused}
	for _, a := range answer.Compare {
		answer.Agreement = append(answer.Agreement, a.commands()...)
	}
	return c.answer("init", answer)
}

// A comparison is the command that compares annotators whose columns were left out.
type comparison struct {
	Command    string   // with CATEGORY as its last word where there are categories to choose from
	Categories []string // of the release that have all their labels; empty unless there are several
}

// commands are those that can be typed as they are, one for each category.
func (a comparison) commands() (all []string) {
	if a.Categories == nil {
		return []string{a.Command}
	}
	for _, name := range a.Categories {
		all = append(all, strings.TrimSuffix(a.Command, chosen)+typed(name))
	}
	return all
}

// chosen stands for the category that the annotators were asked about.
const chosen = "CATEGORY"

// comparisons compare the annotators whose columns were left out, by the labels of the release in dir where it has
// them. Each is about one file.
func comparisons(ctx context.Context, files []string, annotators [][]string, dir string) (all []comparison) {
	if len(files) > 1 || files[0] == "-" {
		return nil
	}
	for _, columns := range annotators {
		var list bytes.Buffer
		w := csv.NewWriter(&list)
		w.Write(columns) // to memory
		w.Flush()
		args := []string{"rehydrate", "labels", "agreement", files[0], "--columns", strings.TrimSuffix(list.String(), "\n")}
		// Where the file cannot be read so, the command says why.
		of, err := study.CategoriesOf(ctx, files[0], columns, dir)
		if err == nil && len(of) > 0 {
			args = append(args, "--release", dir)
		}
		var a comparison
		if len(of) > 1 {
			args, a.Categories = append(args, "--category", chosen), of
		}
		a.Command = typed(args...)
		all = append(all, a)
	}
	return all
}

// cell shows a cell in at most 20 signs, of which the last three say that it is longer.
func cell(text string) string {
	const most = 20
	shown := []rune(printable.EscapedLine(text))
	if len(shown) > most {
		return string(shown[:most-3]) + "..."
	}
	return string(shown)
}

// An initAnswer is what init prints.
type initAnswer struct {
	Guesses  []string   `json:"guesses"`
	Warnings []string   `json:"warnings"`
	Written  []string   `json:"written"`
	Example  [][]string `json:"example"`
	// Agreement has the commands that compare annotators whose columns were left out.
	Agreement []string     `json:"agreement,omitempty"`
	Compare   []comparison `json:"-"` // Agreement for people
	Dir       string       `json:"-"`
	LeftOut   string       `json:"-"` // the list of rows that were left out; empty for none
	Signed    bool         `json:"-"` // whether a run needs a grant
	Labelled  bool         `json:"-"` // whether the release has labels
	Unused    bool         `json:"-"` // whether a column was left out
}

// keepStdin keeps what comes on standard input in a file, for it is read several times. The caller removes the file.
func (c *command) keepStdin() (name string, err error) {
	f, err := os.CreateTemp("", "rehydrate-stdin-") // of mode 0600
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, c.stdin)
	err = errors.Join(err, f.Close())
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return f.Name(), nil
}

// readSigners reads the signers that release.toml is to name, and gives the policy.toml that
// goes with them: one that requires a grant where there are any.
func readSigners(files []string) (pins []manifest.Signer, pol []byte, err error) {
	for _, file := range files {
		b, err := userfile.Read(file)
		var pin manifest.Signer
		if err == nil {
			pin, err = policy.ReadSigner(b, file)
		}
		if err != nil {
			return nil, nil, usageError("--signer %s: %w", file, err)
		}
		pins = append(pins, pin)
	}
	if len(pins) == 0 {
		return nil, policy.DefaultTOML(), nil
	}
	return pins, policy.RequiringGrant(), nil
}
