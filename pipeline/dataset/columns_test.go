package dataset

import (
	"testing"

	"rehydrate/manifest"
)

// TestColumnsAreReserved holds that no label and no column that passes through is named as one that a dataset has.
func TestColumnsAreReserved(t *testing.T) {
	for _, f := range []Format{Parquet, WebDataset, Folder} {
		for _, c := range columnsOf(f, true) {
			if !manifest.Reserved(c.Name) {
				t.Errorf("a release may name a category %q, which is a column of the format %s", c.Name, f)
			}
		}
	}
}
