package study

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
)

// A Split is a new split of a release, and how far it and the release's own are from the exact shares.
type Split struct {
	Seed       uint64             `json:"seed"`
	Split      labels.Deviation   `json:"split"`
	Own        *labels.Deviation  `json:"own"` // of the release's own split; null when it has other splits
	Out        string             `json:"out,omitempty"`
	Differ     []labels.Differing `json:"rows_differ,omitempty"`
	Assignment labels.Assignment  `json:"-"`
}

// Shares reads ratios such as 60:20:20 and the names of their splits, separated by commas; "" names two or three as
// usual.
func Shares(ratios, list string) ([]labels.Share, error) {
	parts := strings.Split(ratios, ":")
	names := strings.Split(list, ",")
	switch {
	case list != "":
	case len(parts) == 2:
		names = []string{"train", "test"}
	case len(parts) == 3:
		names = []string{"train", "validation", "test"}
	default:
		return nil, userfile.Wrong("--ratios %s has %d parts: name the splits with --names", ratios, len(parts))
	}
	if len(names) != len(parts) || len(parts) < 2 || len(parts) > 64 {
		return nil, userfile.Wrong("--ratios has %d parts and --names %d: give 2 to 64 of both", len(parts), len(names))
	}
	var shares []labels.Share
	for i, part := range parts {
		ratio, err := strconv.ParseFloat(part, 64)
		if err != nil || !(ratio > 0) || ratio > 1e9 { // not <= 0, which NaN passes
			return nil, userfile.Wrong("--ratios takes positive numbers such as 60:20:20, not %q", part)
		}
		if !splitName.MatchString(names[i]) {
			return nil, userfile.Wrong("--names: %q cannot name a split: it has letters, digits and _, at most 32", names[i])
		}
		// A split names a file of the dataset, and some disks do not tell Test from test.
		if slices.ContainsFunc(shares, func(s labels.Share) bool { return strings.EqualFold(s.Name, names[i]) }) {
			return nil, userfile.Wrong("--names: %q stands twice", names[i])
		}
		shares = append(shares, labels.Share{Name: names[i], Ratio: ratio})
	}
	return shares, nil
}

// splitName is what the dataset and its file names take.
var splitName = regexp.MustCompile(`^[0-9A-Za-z_]{1,32}$`)

// Divide splits a release, stratified by its labels.
func Divide(ctx context.Context, path string, shares []labels.Share, seed uint64) (out Split, err error) {
	gold, err := openGold(ctx, path, All)
	if err != nil {
		return out, err
	}
	out.Seed, out.Differ = seed, gold.differing()
	out.Assignment, err = labels.Split(ctx, gold.Schema, gold.entries, shares, seed)
	if err != nil {
		return out, err
	}
	if own, err := gold.deviate(shares); err == nil { // before the entries get their new splits
		out.Own = &own
	}
	split := make(map[manifest.PostID]string, len(out.Assignment.Posts))
	for i, id := range out.Assignment.Posts {
		split[id] = out.Assignment.Splits[i]
	}
	for i, e := range gold.entries {
		gold.entries[i].Split = split[e.ID]
	}
	out.Split, err = gold.deviate(shares)
	return out, err
}

// deviate measures the splits of the entries.
func (g gold) deviate(shares []labels.Share) (labels.Deviation, error) {
	counter := labels.NewCounter(g.Schema)
	for _, e := range g.entries {
		counter.Add(e)
	}
	stats := counter.Stats()
	if len(stats.Splits) != len(shares) {
		return labels.Deviation{}, errors.New("the release has other splits")
	}
	return stats.Deviate(shares)
}
