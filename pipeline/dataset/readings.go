package dataset

import (
	"io"

	"github.com/parquet-go/parquet-go"
)

// ReadingsVersion numbers the layout of a Parquet of readings; it is in the footer as
// ocr.format.
//
//	1  file, text, confidence, width, height, sha256, words, error, reason
const ReadingsVersion = "1"

// A ReadingRow is one picture that `ocr` was given, with what it read there or why it could not. Its texts are
// UTF-8. Fields are pointers because the library would write a zero that is optional as null; nil is null.
type ReadingRow struct {
	File       string        `parquet:"file,plain"` // as it was named or found
	Text       *string       `parquet:"text,plain"` // "" for a picture without text
	Confidence *float32      `parquet:"confidence"`
	Width      *int32        `parquet:"width"` // pixels of the upright picture
	Height     *int32        `parquet:"height"`
	SHA256     *string       `parquet:"sha256,plain"` // 64 lower-case hex digits, of the file
	Words      []ReadingWord `parquet:"words,list"`
	Error      *string       `parquet:"error,plain"` // nil for a picture that was read
	Reason     *string       `parquet:"reason,plain"`
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

// NewReadingsWriter starts a Parquet of pictures and their text on w, in the order in which they come. provenance goes
// into the footer, each key under ocr.*: what read the pictures. The same rows give the same bytes. The file is whole
// once Close has returned nil.
func NewReadingsWriter(w io.Writer, toolVersion string,
	provenance map[string]string) *parquet.GenericWriter[ReadingRow] {
	options := []parquet.WriterOption{
		// The name of the root is a part of the bytes, and would be that of the Go type.
		parquet.NewSchema("readingColumns", parquet.SchemaOf(ReadingRow{})),
		parquet.Compression(&parquet.Zstd),
		// The writer holds one row group, and a picture's words take some kilobytes.
		parquet.MaxRowsPerRowGroup(10_000),
		parquet.DataPageVersion(1),
		parquet.CreatedBy("rehydrate", toolVersion, ""),
		parquet.SkipPageBounds("text"),
		parquet.SkipPageStatistics("text"),
		parquet.KeyValueMetadata("ocr.format", ReadingsVersion),
	}
	for key, value := range provenance {
		options = append(options, parquet.KeyValueMetadata("ocr."+key, value))
	}
	return parquet.NewGenericWriter[ReadingRow](w, options...)
}
