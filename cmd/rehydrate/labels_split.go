package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/durable"
)

// splitFlags are the flags of `labels split`.
type splitFlags struct {
	ratios, names, out string
	seed               uint64
	force              bool
}

func (c *command) labelsSplitCommand() *cobra.Command {
	var f splitFlags
	cmd := newCommand("labels-split", exactArgs(1, "one RELEASE: a release folder or an annotations file"), func(cmd *cobra.Command, args []string) error {
		return c.labelsSplit(cmd.Context(), args[0], f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.ratios, "ratios", "60:20:20", "the `ratios` of the splits")
	flags.StringVar(&f.names, "names", "", "the `names` of the splits, separated by commas (default: train,validation,test, or train,test for two)")
	flags.Uint64Var(&f.seed, "seed", 1, "the `number` that ties are broken by")
	flags.StringVar(&f.out, "out", "", "write id,split to this CSV `file`")
	flags.BoolVar(&f.force, "force", false, "write over the file of --out")
	return cmd
}

// shares reads --ratios and --names.
func (f splitFlags) shares() ([]labels.Share, error) {
	parts := strings.Split(f.ratios, ":")
	names := strings.Split(f.names, ",")
	switch {
	case f.names != "":
	case len(parts) == 2:
		names = []string{"train", "test"}
	case len(parts) == 3:
		names = []string{"train", "validation", "test"}
	default:
		return nil, usageError("--ratios %s has %d parts: name the splits with --names", f.ratios, len(parts))
	}
	if len(names) != len(parts) || len(parts) < 2 || len(parts) > 64 {
		return nil, usageError("--ratios has %d parts and --names %d: give 2 to 64 of both", len(parts), len(names))
	}
	var shares []labels.Share
	for i, part := range parts {
		ratio, err := strconv.ParseFloat(part, 64)
		if err != nil || !(ratio > 0) || ratio > 1e9 { // not <= 0, which NaN passes
			return nil, usageError("--ratios takes positive numbers such as 60:20:20, not %q", part)
		}
		if !splitName.MatchString(names[i]) {
			return nil, usageError("--names: %q cannot name a split: it has letters, digits and _, at most 32", names[i])
		}
		// A split names a file of the dataset, and some disks do not tell Test from test.
		if slices.ContainsFunc(shares, func(s labels.Share) bool { return strings.EqualFold(s.Name, names[i]) }) {
			return nil, usageError("--names: %q stands twice", names[i])
		}
		shares = append(shares, labels.Share{Name: names[i], Ratio: ratio})
	}
	return shares, nil
}

// splitName is what the dataset and its file names take.
var splitName = regexp.MustCompile(`^[0-9A-Za-z_]{1,32}$`)

// splitReport is what `labels split --json` prints.
type splitReport struct {
	Seed  uint64            `json:"seed"`
	Split labels.Deviation  `json:"split"`
	Own   *labels.Deviation `json:"own"` // of the release's own split; null when it has other splits
	Out   string            `json:"out,omitempty"`
}

func (c *command) labelsSplit(ctx context.Context, path string, f splitFlags) error {
	shares, err := f.shares()
	if err != nil {
		return err
	}
	// Refused now, not after minutes of splitting.
	if _, err := os.Lstat(f.out); err == nil && !f.force {
		return usageError("%s exists: name another file, or write over it with --force", f.out)
	}
	release, err := manifest.Open(path, withNames)
	if err != nil {
		return asUsage(err)
	}
	var entries []manifest.Entry
	for e, err := range release.Entries(ctx) {
		if err != nil {
			return asUsage(err)
		}
		entries = append(entries, e)
	}
	a, err := labels.Split(ctx, release.Schema, entries, shares, f.seed)
	if err != nil {
		return err
	}
	report, err := measure(release.Schema, entries, shares, a)
	if err != nil {
		return err
	}
	report.Seed, report.Out = f.seed, f.out
	if f.out != "" {
		if err := durable.Write(ctx, f.out, 0o600, func(w io.Writer) error { return writeSplit(w, a) }); err != nil {
			return fmt.Errorf("write the split: %w", err)
		}
	}
	return c.answer("labels-split", report)
}

// measure counts a split, and the release's own where it has the same splits.
func measure(schema manifest.Schema, entries []manifest.Entry, shares []labels.Share, a labels.Assignment) (splitReport, error) {
	deviation := func() (labels.Deviation, error) {
		stats, err := labels.Count(schema, func(yield func(manifest.Entry, error) bool) {
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		})
		if err == nil && len(stats.Splits) != len(shares) {
			err = errors.New("the release has other splits")
		}
		if err != nil {
			return labels.Deviation{}, err
		}
		return stats.Deviate(shares)
	}
	var report splitReport
	if own, err := deviation(); err == nil { // before the entries get their new splits
		report.Own = &own
	}
	split := make(map[manifest.PostID]string, len(a.Posts))
	for i, id := range a.Posts {
		split[id] = a.Splits[i]
	}
	for i := range entries {
		entries[i].Split = split[entries[i].ID]
	}
	var err error
	report.Split, err = deviation()
	return report, err
}

func writeSplit(out io.Writer, a labels.Assignment) error {
	// Ids and names of splits hold only letters, digits and _, so no cell can be a formula.
	rows := [][]string{{"id", "split"}}
	for i, id := range a.Posts {
		rows = append(rows, []string{string(id), a.Splits[i]})
	}
	return csv.NewWriter(out).WriteAll(rows)
}
