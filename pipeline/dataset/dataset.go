// Package dataset writes what a run hands over: the shards of an image Parquet for each split,
// the dataset card and croissant.json, or the same rows as WebDataset tars or an image folder.
//
// It promises that one input gives one sequence of bytes, on any machine and with any number of processors; that
// memory stays flat however many rows there are; and that no row leaves whose image is not the one its sha256 names.
// No clock value is written. Temporary names, fsync and rename belong to pipeline/workspace; files of strangers are
// read by pipeline/dataset/scan.
package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"rehydrate/manifest"
)

// FormatVersion numbers the Parquet layout; it is in the footer as rehydrate.format.
//
//	1  id, image, ocr_text, ocr_confidence, width, height, sha256, phash, [filter], labels, [columns that pass through]
const FormatVersion = "1"

// A Format is how a dataset lies in its folder.
type Format string

// The formats.
const (
	Parquet    Format = "parquet"    // data/SPLIT-00000-of-00001.parquet and on, see WriteShards
	WebDataset Format = "webdataset" // SPLIT-000000.tar and on, see WriteWebDataset
	Folder     Format = "folder"     // SPLIT/KEY.jpg and SPLIT/metadata.parquet, see WriteFolder
)

// A Row is one row of the dataset. It is only read, and not after the next row has been asked for.
type Row struct {
	ID         string  // post id, "/n" behind it for the image n > 0 of a gallery
	Image      []byte  // the image file as stored: JPEG, PNG, GIF or WebP
	Path       string  // its file name, for the format and for display; "" is written as null
	Text       string  // what OCR read, in reading order with \n between lines; "" for an image without text
	Confidence float64 // mean confidence of the words, 0 to 100
	Width      int     // pixels, at least 1
	Height     int     // pixels, at least 1
	SHA256     string  // 64 lower-case hex digits, of Image
	PHash      string  // 16 lower-case hex digits; "" is written as null
	Filter     string  // flag mode only: why the row would have been dropped; "" is written as null
	// Labels holds, per category of the schema and in its order, indexes into Category.Labels. nil means that no label
	// was given, and is written as null, as empty is where the category takes one label.
	Labels [][]int
	// Values holds, per column of the schema and in its order, the values as manifest.Column writes them; nil is null.
	Values [][]string
}

// Provenance says what a dataset was made from and with. Every field goes into the footer
// as a key-value under rehydrate.*, an empty one too.
type Provenance struct {
	Release, Version              string
	ReleaseDigest, ManifestDigest string // sha256 hex
	PolicyDigest                  string // sha256 hex
	ToolVersion                   string
	OCREngine, OCRModel           string
	OCRParameters                 string
	Dedupe                        string // the thresholds
	HashKind                      string
	GoVersion                     string
}

// A pair is one thing known of how a dataset came to be: its footer key, the words that the card has for it, and
// the field.
type pair struct {
	Key, Title string
	Value      *string
}

func (p *Provenance) pairs() []pair {
	return []pair{
		{"release", "Release", &p.Release},
		{"release_version", "Release version", &p.Version},
		{"release_digest", "Release digest", &p.ReleaseDigest},
		{"manifest_digest", "Manifest digest", &p.ManifestDigest},
		{"policy_digest", "Policy digest", &p.PolicyDigest},
		{"tool_version", "rehydrate version", &p.ToolVersion},
		{"ocr_engine", "OCR engine", &p.OCREngine},
		{"ocr_model", "OCR model", &p.OCRModel},
		{"ocr_parameters", "OCR parameters", &p.OCRParameters},
		{"dedupe", "Duplicate rule", &p.Dedupe},
		{"hash_kind", "Perceptual hash", &p.HashKind},
		{"go_version", "Go version", &p.GoVersion},
	}
}

// Stats describes a Parquet file that was written.
type Stats struct {
	Rows       int
	RowGroups  int
	Bytes      int64  // length of the file
	ImageBytes int64  // sum of the lengths of the images
	SHA256     string // of the file, lower-case hex
}

// measure passes on to w what write writes, and notes its length and digest.
func (s *Stats) measure(w io.Writer, write func(io.Writer) error) error {
	count, sum := &counter{w: w}, sha256.New()
	err := write(io.MultiWriter(count, sum))
	s.Bytes, s.SHA256 = count.n, hex.EncodeToString(sum.Sum(nil))
	return err
}

// ofBareFile reports whether the dataset was made from an annotations file alone: the digest of a release is of its
// release.toml and then the manifest's digest (manifest.Release.Digest), and there was no release.toml.
func (p Provenance) ofBareFile() bool {
	alone := sha256.Sum256([]byte(p.ManifestDigest))
	return p.ManifestDigest != "" && p.ReleaseDigest == hex.EncodeToString(alone[:])
}

// What a dataset made from a bare file says of its release's policy.
const (
	noPolicy   = "none: it was rebuilt from a bare annotations file"
	listPolicy = "none: it was rebuilt from a list of ids"
)

// releasePolicy says that no policy of a release stands behind the dataset, "" where one may.
func (p Provenance) releasePolicy() string {
	switch {
	case !p.ofBareFile():
		return ""
	case manifest.IsListName(p.Release):
		return listPolicy
	}
	return noPolicy
}

// printable reports whether s is UTF-8 without control characters, line ends included.
func printable(s string) bool {
	// Such a character would break the YAML of the card, or act on a terminal.
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff'
	})
}

var hex16 = regexp.MustCompile(`^[0-9a-f]{16}$`)

// check refuses a row that would make the dataset wrong.
func (r *Row) check(s manifest.Schema) error {
	if err := r.checkFields(s); err != nil {
		return err
	}
	// A file that was spoilt on the disk would be handed over under the digest of the good one.
	if sum := sha256.Sum256(r.Image); hex.EncodeToString(sum[:]) != r.SHA256 {
		return errors.New("its image is not the one that its sha256 names: the stored file is damaged, verify the workspace")
	}
	return nil
}

// checkFields is check without the digest of the image.
func (r *Row) checkFields(s manifest.Schema) error {
	switch {
	case r.ID == "":
		return errors.New("it has no id")
	case len(r.Image) == 0:
		return errors.New("it has no image")
	case r.Width < 1 || r.Height < 1 || r.Width > math.MaxInt32 || r.Height > math.MaxInt32:
		return fmt.Errorf("its size is %d x %d pixels", r.Width, r.Height)
	case r.PHash != "" && !hex16.MatchString(r.PHash):
		return fmt.Errorf("its perceptual hash %q is not 16 lower-case hex digits", r.PHash)
	case !(r.Confidence >= 0 && r.Confidence <= 100): // NaN too
		return fmt.Errorf("its OCR confidence %v is outside 0 to 100", r.Confidence)
	}
	// Parquet's strings and JSON are UTF-8, and readers fail on a whole file for one that is not.
	for _, text := range []string{r.ID, r.Path, r.Text, r.Filter} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("its text %.40q is not UTF-8", text)
		}
	}
	return r.checkLabels(s)
}

func (r *Row) checkLabels(s manifest.Schema) error {
	if len(r.Values) != len(s.Columns) {
		return fmt.Errorf("it has values for %d columns, the schema has %d", len(r.Values), len(s.Columns))
	}
	for i, c := range s.Columns {
		if !c.List && len(r.Values[i]) > 1 {
			return fmt.Errorf("it has %d values in %q, which takes one", len(r.Values[i]), c.Name)
		}
		for _, text := range r.Values[i] {
			if _, err := parquetValue(c.Type, text); err != nil {
				return fmt.Errorf("its value in %q: %w", c.Name, err)
			}
		}
	}
	// One more or less would shift the labels into another column.
	if len(r.Labels) != len(s.Categories) {
		return fmt.Errorf("it has labels for %d categories, the schema has %d", len(r.Labels), len(s.Categories))
	}
	for i, c := range s.Categories {
		if c.Kind != manifest.Multi && len(r.Labels[i]) > 1 {
			return fmt.Errorf("it has %d labels in %q, which takes one", len(r.Labels[i]), c.Name)
		}
		for _, label := range r.Labels[i] {
			if label < 0 || label >= len(c.Labels) {
				return fmt.Errorf("its label %d in %q is outside 0 to %d", label, c.Name, len(c.Labels)-1)
			}
		}
	}
	return nil
}
