package dataset

import (
	"github.com/parquet-go/parquet-go"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
)

// A column is one that every dataset has before its labels. It is all that writers, readers and the card know of it.
type column struct {
	Name     string
	Content  string       // what it holds, for the card
	DataType string       // Croissant's word for its type
	feature  scan.Feature // Hugging Face's
	few      bool         // it has few different values: the one kind that gains from a dictionary
	// the path of a leaf whose pages have no minimum and maximum in their headers: see writerOptions
	long   []string
	leaves []leaf // its columns in the Parquet: two of an image, else one
}

// A leaf is one value of a row.
type leaf struct {
	get func(*Row) parquet.Value  // null for none
	set func(*Row, parquet.Value) // of a value that is not null
}

// ImageName is the column of the images in a Parquet.
const ImageName = "image"

const fileName = "file_name" // of the images, which ImageFolder wants

// columnsOf are the columns before the labels of a format: filter is there in flag mode only, and the rows of a Folder
// name the files of their images. A WebDataset has the columns of a Parquet, its images as members of their own.
func columnsOf(f Format, flagged bool) []column {
	image := imageColumn()
	if f == Folder {
		image = textColumn(fileName, "the name of the image file, metadata stripped, pixels untouched",
			func(r *Row) *string { return &r.Path })
	}
	ocrText := textColumn("ocr_text", "what OCR read; empty where the image has no text",
		func(r *Row) *string { return &r.Text })
	ocrText.long = []string{ocrText.Name}
	columns := []column{
		textColumn("id", "Reddit post id; `/n` behind it for image n of a gallery",
			func(r *Row) *string { return &r.ID }),
		image,
		ocrText,
		confidenceColumn(),
		pixelsColumn("width", func(r *Row) *int { return &r.Width }),
		pixelsColumn("height", func(r *Row) *int { return &r.Height }),
		textColumn("sha256", "of the image file", func(r *Row) *string { return &r.SHA256 }),
		orNull(textColumn("phash", "perceptual hash, 16 hex digits", func(r *Row) *string { return &r.PHash })),
	}
	if flagged {
		filter := orNull(textColumn("filter", "why the filters would have dropped the row; null for the others",
			func(r *Row) *string { return &r.Filter }))
		filter.few = true
		columns = append(columns, filter)
	}
	return columns
}

// FactColumns names the columns before the labels that have one value a row, the one of flag mode among them.
func FactColumns() (names []string) {
	for _, c := range columnsOf(Parquet, true) {
		if c.Name != ImageName {
			names = append(names, c.Name)
		}
	}
	return names
}

func textColumn(name, content string, field func(*Row) *string) column {
	return column{Name: name, Content: content, DataType: "sc:Text", feature: valueOf("string"), leaves: []leaf{{
		get: func(r *Row) parquet.Value { return parquet.ByteArrayValue([]byte(*field(r))) },
		set: func(r *Row, v parquet.Value) { *field(r) = string(v.ByteArray()) },
	}}}
}

// orNull has a column of text be null where the text is empty.
func orNull(c column) column {
	get := c.leaves[0].get
	c.leaves[0].get = func(r *Row) parquet.Value {
		if v := get(r); len(v.ByteArray()) > 0 {
			return v
		}
		return parquet.NullValue()
	}
	return c
}

func imageColumn() column {
	bytes := leaf{
		get: func(r *Row) parquet.Value { return parquet.ByteArrayValue(r.Image) },
		set: func(r *Row, v parquet.Value) { r.Image = v.ByteArray() },
	}
	path := orNull(textColumn("path", "", func(r *Row) *string { return &r.Path }))
	return column{Name: ImageName, Content: "the image file, metadata stripped, pixels untouched",
		DataType: "sc:ImageObject", feature: scan.Feature{Type: "Image"}, long: []string{ImageName, "bytes"},
		leaves: append([]leaf{bytes}, path.leaves...)}
}

func confidenceColumn() column {
	return column{Name: "ocr_confidence", Content: "mean confidence of the words, 0 to 100; 0 where there are none",
		DataType: "sc:Float", feature: valueOf("float32"), leaves: []leaf{{
			get: func(r *Row) parquet.Value { return parquet.FloatValue(float32(r.Confidence)) },
			set: func(r *Row, v parquet.Value) { r.Confidence = float64(v.Float()) },
		}}}
}

func pixelsColumn(name string, field func(*Row) *int) column {
	return column{Name: name, Content: "pixels", DataType: "sc:Integer", feature: valueOf("int32"), leaves: []leaf{{
		get: func(r *Row) parquet.Value { return parquet.Int32Value(int32(*field(r))) },
		set: func(r *Row, v parquet.Value) { *field(r) = int(v.Int32()) },
	}}}
}

// valueOf is the feature of a plain value.
func valueOf(dtype string) scan.Feature { return scan.Feature{DType: dtype, Type: "Value"} }

// A layout is how the rows of a format lie in a Parquet file, and what is checked of each.
type layout struct {
	columns []column // before the labels
	check   func(*Row, manifest.Schema) error
}

func layoutOf(f Format, flagged bool) layout {
	l := layout{columnsOf(f, flagged), (*Row).check}
	if f == Folder {
		l.check = (*Row).checkLabels // its image is another file
	}
	return l
}

func (l layout) leaves() (all []leaf) {
	for _, c := range l.columns {
		all = append(all, c.leaves...)
	}
	return all
}
