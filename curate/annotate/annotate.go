// Package annotate carries an annotation round out of a workspace and back: images go out as a dataset for Argilla,
// answers come back from there, or from tables, and become a manifest with labels. Annotators are numbers, in the order
// in which they come. No answer of theirs goes out again, and no label that an entry has is shown to them.
package annotate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rehydrate/internal/draw"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/workspace"
	"rehydrate/study"
)

// Scheme returns the labels that annotators give: those of the file, or for "" of the release itself.
func Scheme(file string, rel *manifest.Release) (*manifest.Release, error) {
	if file != "" {
		scheme, err := manifest.OpenScheme(file)
		if err != nil {
			return nil, fmt.Errorf("--scheme: %w", err)
		}
		rel = scheme
	}
	switch {
	case len(rel.Schema.Categories) == 0:
		return nil,
			errors.New("the release has no labels to ask for: name a file of [[category]] tables with --scheme FILE")
	case rel.Schema.Many:
		return nil,
			errors.New("several rows of the release are about one image, and annotators answer for an image once: name other labels with --scheme FILE")
	}
	return rel, nil
}

// A Pick says which of the kept images are annotated, and in which order.
type Pick struct {
	Seed string
	Only map[manifest.Key]string // keys of those that are asked for; nil for all
}

var withParquet = manifest.Options{OpenParquet: scan.OpenManifest}

// NewPick reads which images are asked for: those that a table names, or for "" all.
func NewPick(ctx context.Context, seed, table string) (p Pick, err error) {
	p.Seed = seed
	if table != "" {
		p.Only, err = study.ReadColumn(ctx, table, "id", withParquet)
	}
	return p, err
}

// A Post is an image to annotate.
type Post struct {
	manifest.Key
	Image workspace.Image
}

// Absent are the images that are asked for and not annotated. No list is longer than maxListed.
type Absent struct {
	Hidden    int      `json:"not_in_dataset"` // of the release, and not kept
	HiddenOf  []string `json:"not_in_dataset_ids,omitempty"`
	Unknown   int      `json:"unknown"` // that the release does not have
	UnknownOf []string `json:"unknown_ids,omitempty"`
}

const maxListed = 20

// newAbsent counts ids; nil for none.
func newAbsent(hidden, unknown []string) *Absent {
	if len(hidden)+len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown) // they come in the order of a map
	return &Absent{len(hidden), hidden[:min(len(hidden), maxListed)], len(unknown), unknown[:min(len(unknown), maxListed)]}
}

// String says it as messages do.
func (a *Absent) String() string {
	listed := func(n int, ids []string) string {
		if len(ids) < n {
			ids = append(slices.Clone(ids), "...")
		}
		return " (" + strings.Join(ids, ", ") + ")"
	}
	var parts []string
	if a.Hidden > 0 {
		parts = append(parts, fmt.Sprintf("%d not in the dataset", a.Hidden)+listed(a.Hidden, a.HiddenOf))
	}
	if a.Unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown to the release", a.Unknown)+listed(a.Unknown, a.UnknownOf))
	}
	return "images of --only that are left out: " + strings.Join(parts, ", ")
}

// none is the error of a pick without any image.
func (a *Absent) none() error {
	if a == nil {
		return misfit("there is no image to annotate")
	}
	return misfit("there is no image to annotate; %v", a)
}

// Posts returns the kept images of a workspace in the order of the sample that the seed draws: adding images moves no
// others. absent are those that are asked for and not among them, nil for none. Without any image the error is a
// Misfit.
func Posts(ctx context.Context, ws *workspace.Workspace, pick Pick) (posts []Post, absent *Absent, err error) {
	var hidden, unknown []string
	rest := maps.Clone(pick.Only)
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return nil, nil, err
		}
		_, asked := pick.Only[rec.Key]
		delete(rest, rec.Key)
		kept := rec.Result != nil && rec.Result.Outcome == manifest.Kept && rec.Image != nil
		switch {
		case kept && (asked || pick.Only == nil):
			posts = append(posts, Post{rec.Key, *rec.Image})
		case asked:
			hidden = append(hidden, rec.Key.String())
		}
	}
	for key := range rest {
		unknown = append(unknown, key.String())
	}
	absent = newAbsent(hidden, unknown)
	if len(posts) == 0 {
		return nil, absent, absent.none()
	}
	ranks := map[manifest.PostID]draw.Rank{}
	for _, p := range posts {
		ranks[p.ID] = draw.RankOf(pick.Seed, p.ID)
	}
	slices.SortFunc(posts, func(a, b Post) int {
		return cmp.Or(ranks[a.ID].Compare(ranks[b.ID]), cmp.Compare(a.Key.Image, b.Key.Image))
	})
	return posts, absent, nil
}
