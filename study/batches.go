package study

import (
	"context"

	"rehydrate/labels"
	"rehydrate/manifest"
)

// Batches say of which batch an entry is, by the files of all annotators. The first file that names a batch of an entry
// counts: those who decide on some entries later get them in batches that are numbered anew.
type Batches struct {
	of    map[manifest.Key]string
	other map[manifest.Key]bool // entries of which a later file names another batch
}

// Of gives the batch of each entry that has one.
func (b *Batches) Of() map[manifest.Key]string { return b.of }

// Add takes what the next file says.
func (b *Batches) Add(of map[manifest.Key]string) {
	if b.of == nil {
		b.of, b.other = map[manifest.Key]string{}, map[manifest.Key]bool{}
	}
	for key, batch := range of {
		known, is := b.of[key]
		switch {
		case !is:
			b.of[key] = batch
		case known != batch:
			b.other[key] = true
		}
	}
}

// Read takes the column of an annotator's file that names batches, of the rows that are answers. lacks is the error of
// a file without the column, which others may have.
func (b *Batches) Read(ctx context.Context, file, column string) (lacks, err error) {
	of, lacks, err := readColumn(ctx, file, column, ofAnswers(new(int)))
	b.Add(of)
	return lacks, err
}

// SetBatches takes the agreement by batch, and counts the entries that were compared and are of no batch.
func (a *Agreement) SetBatches(by []labels.BatchAgreement, batches Batches) {
	a.Batches = by
	if len(by) == 0 {
		return
	}
	for key := range batches.other {
		if _, is := batches.of[key]; is { // and not taken out, as what the release does not have
			a.OtherBatch++
		}
	}
	a.WithoutBatch = a.Entries
	for _, batch := range by {
		if batch.Agreement != nil {
			a.WithoutBatch -= batch.Agreement.Entries
		}
	}
}
