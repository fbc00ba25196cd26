package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// ReadingsVersion numbers the layout of a Parquet of readings; it is in the footer as
// ocr.format.
//
//	1  file, text, confidence, width, height, sha256, words, error, reason
const ReadingsVersion = "1"

// A ReadingRow is one picture that `ocr` was given, with what it read there or why it could not.
type ReadingRow struct {
	File       string // as it was named or found
	Text       string // "" for a picture without text
	Confidence float64
	Width      int // pixels of the upright picture
	Height     int
	SHA256     string // 64 lower-case hex digits, of the file
	Words      []ReadingWord
	// Error is "" for a picture that was read. With an error, everything but File is written
	// as null, Words as an empty list.
	Error, Reason string
}

// A ReadingWord is one word of a picture, its box in pixels of the upright picture.
type ReadingWord struct {
	Text       string  `parquet:"text,plain"`
	Confidence float32 `parquet:"confidence"`
	X          int32   `parquet:"x"`
	Y          int32   `parquet:"y"`
	Width      int32   `parquet:"w"`
	Height     int32   `parquet:"h"`
	Line       int32   `parquet:"line"`
	Accepted   bool    `parquet:"accepted"`
}

// readingColumns is a ReadingRow as the library writes it. Pointers, because with the option
// "optional" a value that is zero becomes null.
type readingColumns struct {
	File       string        `parquet:"file,plain"`
	Text       *string       `parquet:"text,plain"`
	Confidence *float32      `parquet:"confidence"`
	Width      *int32        `parquet:"width"`
	Height     *int32        `parquet:"height"`
	SHA256     *string       `parquet:"sha256,plain"`
	Words      []ReadingWord `parquet:"words,list"`
	Error      *string       `parquet:"error,plain"`
	Reason     *string       `parquet:"reason,plain"`
}

// A ReadingsWriter writes pictures and their text as one Parquet file, in the order in which
// they come. It holds at most one row group. The same rows give the same bytes.
type ReadingsWriter struct {
	w    *parquet.GenericWriter[readingColumns]
	rows int
}

// maxReadingsGroup bounds the rows of one row group: a picture's words take some kilobytes.
const maxReadingsGroup = 10_000

// NewReadingsWriter starts a Parquet of readings on w. provenance goes into the footer, each
// key under ocr.*: what read the pictures. The file is whole once Close has returned nil;
// temporary names and the rename belong to the caller.
func NewReadingsWriter(w io.Writer, toolVersion string, provenance map[string]string) *ReadingsWriter {
	options := []parquet.WriterOption{
		parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(maxReadingsGroup),
		parquet.DataPageVersion(1),
		parquet.CreatedBy("rehydrate", toolVersion, ""),
		parquet.SkipPageBounds("text"),
		parquet.SkipPageStatistics("text"),
		parquet.KeyValueMetadata("ocr.format", ReadingsVersion),
	}
	for key, value := range provenance {
		options = append(options, parquet.KeyValueMetadata("ocr."+key, value))
	}
	return &ReadingsWriter{w: parquet.NewGenericWriter[readingColumns](w, options...)}
}

// Write adds one row. A row that would make the file wrong is an error; nothing of it is
// written then.
func (r *ReadingsWriter) Write(row ReadingRow) error {
	if err := row.check(); err != nil {
		return fmt.Errorf("write parquet: row %d (%q): %w", r.rows+1, row.File, err)
	}
	if _, err := r.w.Write([]readingColumns{row.columns()}); err != nil {
		return fmt.Errorf("write parquet: row %d (%q): %w", r.rows+1, row.File, err)
	}
	r.rows++
	return nil
}

// Close writes the footer.
func (r *ReadingsWriter) Close() error {
	if err := r.w.Close(); err != nil {
		return fmt.Errorf("write parquet: footer: %w", err)
	}
	return nil
}

func (r ReadingRow) columns() readingColumns {
	c := readingColumns{File: r.File}
	if r.Error != "" {
		c.Error, c.Reason = &r.Error, &r.Reason
		return c
	}
	confidence, width, height := float32(r.Confidence), int32(r.Width), int32(r.Height)
	c.Text, c.Confidence, c.Width, c.Height, c.SHA256, c.Words = &r.Text, &confidence, &width, &height, &r.SHA256, r.Words
	return c
}

var hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (r ReadingRow) check() error {
	texts := []string{r.File, r.Text, r.Error, r.Reason}
	for _, w := range r.Words {
		texts = append(texts, w.Text)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("its text %.40q is not UTF-8", text)
		}
	}
	switch {
	case r.File == "":
		return errors.New("it has no file name")
	case r.Error != "":
		return nil
	case r.Width < 1 || r.Height < 1 || r.Width > math.MaxInt32 || r.Height > math.MaxInt32:
		return fmt.Errorf("its size is %d x %d pixels", r.Width, r.Height)
	case !(r.Confidence >= 0 && r.Confidence <= 100): // NaN too
		return fmt.Errorf("its confidence %v is outside 0 to 100", r.Confidence)
	case !hex64.MatchString(r.SHA256):
		return fmt.Errorf("its sha256 %q is not 64 lower-case hex digits", r.SHA256)
	}
	return nil
}
