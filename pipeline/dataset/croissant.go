package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// WriteCroissant writes croissant.json, which conforms to Croissant 1.1: the files with their digests, the columns, the
// labels as enumerations, the splits, and where it all comes from. datePublished is the release's date; a release
// without one gives a document without one, which a strict validator will mark.
func WriteCroissant(w io.Writer, c Card) error {
	var b, indented bytes.Buffer
	full, err := c.render(&b, "croissant.tmpl")
	if err == nil && full.Format != Parquet {
		err = fmt.Errorf("it describes Parquet files, not the format %q", c.Format)
	}
	if err == nil {
		err = json.Indent(&indented, b.Bytes(), "", "  ")
	}
	if err == nil {
		// Indent keeps the line end of the template.
		_, err = indented.WriteTo(w)
	}
	if err != nil {
		return fmt.Errorf("write croissant.json: %w", err)
	}
	return nil
}

// MissingData counts the entries that have no row, by outcome.
func (c card) MissingData() string {
	parts := []string{fmt.Sprintf("the release names %d images, %d are here", c.Entries(), c.Rows())}
	for _, o := range c.Missing() {
		parts = append(parts, fmt.Sprintf("%d %s: %s", c.Count(o), o, c.Why(o)))
	}
	return strings.Join(parts, "; ")
}

// Filtered says what became of the rows that a filter caught.
func (c card) Filtered() string {
	if c.Flagged {
		return "marked in the column filter"
	}
	return "dropped"
}

var spdxID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

// LicenseURL is the address of the licence, "" where the release gives neither one nor an SPDX identifier.
func (c card) LicenseURL() string {
	text := oneLine(c.License)
	switch {
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://"):
		return text
	case spdxID.MatchString(text):
		return "https://spdx.org/licenses/" + text + ".html"
	}
	return ""
}

// SplitsHaveURLs reports whether Croissant has a name for every split.
func (c card) SplitsHaveURLs() bool {
	// Readers want all rows of inline data to have the same members.
	return !slices.ContainsFunc(c.Splits, func(s Split) bool { return splitURL(s.Name) == "" })
}

// splitURL is Croissant's name for a split, "" where it has none.
func splitURL(split string) string {
	return map[string]string{"train": "cr:TrainingSplit", "validation": "cr:ValidationSplit",
		"test": "cr:TestSplit"}[manifest.UsualSplit(split)]
}

// SplitPattern reads the split off a file's name.
func (c card) SplitPattern() string {
	var names []string
	for _, s := range c.Splits { // a name may hold a dash of its own
		names = append(names, regexp.QuoteMeta(s.Name))
	}
	return "^(" + strings.Join(names, "|") + `)-.*\.parquet$`
}
