package labels

import (
	"iter"
	"slices"

	"rehydrate/manifest"
)

// The unit of every count, test, score and drift is an image, however many rows of a release are about it
// (manifest.Schema.Many). An image has a label where all of its rows give this one. Where they differ it has no label
// of the category: which of them is right is not for a program to say. It is then left out there, and counted as
// Differing.

// A Differing counts the images whose rows differ in a category.
type Differing struct {
	Category string `json:"category"`
	Entries  int    `json:"entries"`
}

// Without counts the images that have no answer for the category at a place of the schema. Those whose rows differ are
// Differing: each of their rows has one.
func Without(schema manifest.Schema, place int, images []manifest.Entry) (n int) {
	for _, e := range images {
		given := e.Labels[place]
		if !schema.Many && (given == nil || schema.Categories[place].Kind != manifest.Multi && len(given) == 0) {
			n++
		}
	}
	return n
}

// Images gives the entries of a release one for each image. Those of several rows hold the lists of what the rows say
// in labels and columns, in their order, as a dataset does (manifest.Schema.Joined). It stops at the first error and
// yields it.
func Images(schema manifest.Schema, rows iter.Seq2[manifest.Entry, error]) iter.Seq2[manifest.Entry, error] {
	if !schema.Many {
		return rows
	}
	return func(yield func(manifest.Entry, error) bool) {
		var all []manifest.Entry
		place := map[manifest.Key]int{}
		for e, err := range rows {
			if err != nil {
				yield(manifest.Entry{}, err)
				return
			}
			at, met := place[e.Key]
			if !met {
				place[e.Key] = len(all)
				e.Labels, e.Values = slices.Clone(e.Labels), e.RowValues()
				all = append(all, e)
				continue
			}
			for i, given := range e.Labels {
				all[at].Labels[i] = append(slices.Clip(all[at].Labels[i]), given...)
			}
			for i, values := range e.RowValues() {
				all[at].Values[i] = append(slices.Clip(all[at].Values[i]), values...)
			}
		}
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// OfImages is the schema of images whose labels were settled: where the rows of an image each have one label of a
// category, the image has one at most.
func OfImages(s manifest.Schema) manifest.Schema {
	if !s.Many {
		return s
	}
	s.Categories = slices.Clone(s.Categories)
	for i := range s.Categories {
		if s.Categories[i].Kind == manifest.Multi { // as a dataset has the lists
			s.Categories[i].Kind = manifest.Single
		}
	}
	return s
}

// Settle gives an image the label of each category in which all of its rows agree, nil for one in which they differ.
// differ says which these are; it is nil where there are none. What Images gave is not changed.
func Settle(schema manifest.Schema, image [][]int) (settled [][]int, differ []bool) {
	if !schema.Many {
		return image, nil
	}
	settled = make([][]int, len(image))
	for i, given := range image {
		rest := slices.Compact(slices.Clone(given))
		switch {
		case len(rest) < 2:
			settled[i] = rest
		case differ == nil:
			differ = make([]bool, len(image))
			fallthrough
		default:
			differ[i] = true
		}
	}
	return settled, differ
}
