package dataset

import (
	"archive/tar"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
)

// Holds reports whether the file called name is one that holds rows, as WriteParquet, WriteWebDataset and
// WriteFolder name them; the images of WriteFolder are each a row's own.
func Holds(name string) bool {
	return rewriterOf(name) != nil
}

// A rewriter is what is done with a file that holds rows, by its ending.
type rewriter struct {
	without func(w io.Writer, r io.ReaderAt, size int64, gone func(manifest.PostID) bool) error
	ids     func(ctx context.Context, r io.ReaderAt, size int64) iter.Seq2[string, error]
}

func rewriterOf(name string) *rewriter {
	switch {
	case path.Ext(name) == ".parquet":
		return &rewriter{parquetWithout, parquetIDs}
	case path.Ext(name) == ".tar":
		return &rewriter{tarWithout, tarIDs}
	case path.Base(name) == "metadata.csv":
		return &rewriter{tableWithout, tableIDs}
	}
	return nil
}

// WriteWithout writes the file called name, which this package made, once more without the rows of the
// posts that gone names. Everything else is as it was: the rows that stay, their order and the footer.
// It fails for a file of another origin.
func WriteWithout(w io.Writer, name string, r io.ReaderAt, size int64, gone func(manifest.PostID) bool) error {
	how := rewriterOf(name)
	if how == nil {
		return fmt.Errorf("rewrite %s: it is not a kind of file that holds rows", name)
	}
	if err := how.without(w, r, size, gone); err != nil {
		return fmt.Errorf("rewrite %s: %w", name, err)
	}
	return nil
}

// RowIDs yields the ids of the rows in the file called name, in the file's order. It reads what is
// there and believes nothing of it: a Parquet may be anybody's, as long as its ids are in a column id.
func RowIDs(ctx context.Context, name string, r io.ReaderAt, size int64) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		how := rewriterOf(name)
		if how == nil {
			yield("", fmt.Errorf("read the ids of %s: it is not a kind of file that holds rows", name))
			return
		}
		for id, err := range how.ids(ctx, r, size) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield("", fmt.Errorf("read the ids of %s: %w", name, err))
				return
			}
			if !yield(id, nil) {
				return
			}
		}
	}
}

func parquetWithout(w io.Writer, r io.ReaderAt, size int64, gone func(manifest.PostID) bool) error {
	own, err := openOwn(r, size)
	if err != nil {
		return err
	}
	stay := func(yield func(Row, error) bool) {
		for values, err := range own.file.Rows() {
			row := own.row(values)
			if err == nil && gone(PostOf(row.ID)) {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
	_, err = WriteParquet(w, own.schema, own.provenance, own.flagged, stay)
	return err
}

func parquetIDs(ctx context.Context, r io.ReaderAt, size int64) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		file, err := scan.Open(r, size)
		if err != nil {
			yield("", err)
			return
		}
		for v, err := range file.Values(ctx, "id") {
			if !yield(string(v.Bytes), err) || err != nil {
				return
			}
		}
	}
}

// keyID is fileKey the other way round: ids have no - of their own.
func keyID(name string) string {
	key, _, _ := strings.Cut(path.Base(name), ".")
	return strings.ReplaceAll(key, "-", "/")
}

// ImageID is the id of the row whose image WriteFolder called name; "" for another file of a folder.
func ImageID(name string) string {
	if !slices.Contains([]string{".jpg", ".png", ".gif", ".webp"}, path.Ext(name)) {
		return ""
	}
	return keyID(name)
}

func tarWithout(w io.Writer, r io.ReaderAt, size int64, gone func(manifest.PostID) bool) error {
	out := tar.NewWriter(w)
	for h, body := range tarMembers(r, size) {
		if h.err != nil {
			return h.err
		}
		if gone(PostOf(keyID(h.Name))) {
			continue
		}
		h.Format = tar.FormatUSTAR
		if err := out.WriteHeader(h.Header); err != nil {
			return err
		}
		if _, err := io.Copy(out, body); err != nil {
			return err
		}
	}
	return out.Close()
}

// A tarHeader is the header of a member, or the error that ends the tar.
type tarHeader struct {
	*tar.Header
	err error
}

func tarMembers(r io.ReaderAt, size int64) iter.Seq2[tarHeader, io.Reader] {
	return func(yield func(tarHeader, io.Reader) bool) {
		members := tar.NewReader(io.NewSectionReader(r, 0, size))
		for {
			h, err := members.Next()
			if errors.Is(err, io.EOF) || !yield(tarHeader{h, err}, members) || err != nil {
				return
			}
		}
	}
}

// tarIDs yields an id for every member, a row's own twice.
func tarIDs(_ context.Context, r io.ReaderAt, size int64) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for h := range tarMembers(r, size) {
			if h.err != nil {
				yield("", h.err)
				return
			}
			if !yield(keyID(h.Name), nil) {
				return
			}
		}
	}
}

func tableWithout(w io.Writer, r io.ReaderAt, size int64, gone func(manifest.PostID) bool) error {
	out := csv.NewWriter(w)
	for cells, err := range tableRows(r, size) {
		if err != nil {
			return err
		}
		if gone(PostOf(cells[1])) {
			continue
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// tableRows yields the rows of a metadata.csv, its header first.
func tableRows(r io.ReaderAt, size int64) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		table := csv.NewReader(io.NewSectionReader(r, 0, size))
		for first := true; ; first = false {
			cells, err := table.Read()
			if errors.Is(err, io.EOF) && !first {
				return
			}
			if err == nil && first && (len(cells) < 2 || cells[0] != "file_name" || cells[1] != "id") {
				err = errors.New("its columns are not those of a metadata.csv of rehydrate's")
			}
			if !yield(cells, err) || err != nil {
				return
			}
		}
	}
}

func tableIDs(_ context.Context, r io.ReaderAt, size int64) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		header := true
		for cells, err := range tableRows(r, size) {
			if err != nil {
				yield("", err)
				return
			}
			if !header && !yield(cells[1], nil) {
				return
			}
			header = false
		}
	}
}

// PostOf is the post of a row's id, which has /n behind it for the image n of a gallery.
func PostOf(rowID string) manifest.PostID {
	id, _, _ := strings.Cut(rowID, "/")
	return manifest.PostID(id)
}

// ReadProvenance reads what a Parquet file that WriteParquet made says of its origin.
func ReadProvenance(r io.ReaderAt, size int64) (Provenance, error) {
	own, err := openOwn(r, size)
	if err != nil {
		return Provenance{}, fmt.Errorf("read the Parquet: %w", err)
	}
	return own.provenance, nil
}

// An own file is one that WriteParquet made, with what its footer says.
type own struct {
	file       *scan.File
	schema     manifest.Schema // as far as the columns show it: no codes, and ordinal is single
	provenance Provenance
	flagged    bool
}

func openOwn(r io.ReaderAt, size int64) (*own, error) {
	f, err := scan.Open(r, size)
	if err != nil {
		return nil, err
	}
	if version, ok := f.Footer("rehydrate.format"); !ok || version != FormatVersion {
		return nil, fmt.Errorf("it is not one of rehydrate's in the layout %s", FormatVersion)
	}
	o := &own{file: f}
	for i, p := range o.provenance.fields() {
		value, ok := f.Footer("rehydrate." + o.provenance.pairs()[i].Key)
		if !ok {
			return nil, fmt.Errorf("its footer has no rehydrate.%s", o.provenance.pairs()[i].Key)
		}
		*p = value
	}
	if err := o.readFeatures(f.Features()); err != nil {
		return nil, fmt.Errorf("the features in its footer: %w", err)
	}
	if want := parquetSchema(o.schema, o.flagged); want.String() != o.file.Schema().String() {
		return nil, errors.New("its columns are not those that its footer describes")
	}
	return o, nil
}

// fields are where pairs has its values from, in its order.
func (p *Provenance) fields() []*string {
	return []*string{&p.Release, &p.Version, &p.ReleaseDigest, &p.ManifestDigest, &p.PolicyDigest, &p.ToolVersion,
		&p.OCREngine, &p.OCRModel, &p.OCRParameters, &p.Dedupe, &p.HashKind, &p.GoVersion}
}

// readFeatures finds the label categories in the columns and the names of their labels in the
// Hugging Face features.
func (o *own) readFeatures(features map[string]scan.Feature) error {
	columns := o.file.Schema().Fields()
	_, o.flagged = features["filter"]
	base := len(baseColumns(o.flagged))
	if len(columns) < base {
		return fmt.Errorf("%d columns are too few", len(columns))
	}
	for _, column := range columns[base:] {
		c := manifest.Category{Name: column.Name(), Kind: manifest.Single}
		f := features[c.Name]
		if f.Feature != nil {
			c.Kind, f = manifest.Multi, *f.Feature
		}
		for _, name := range f.Names {
			c.Labels = append(c.Labels, manifest.Label{Name: name})
		}
		o.schema.Categories = append(o.schema.Categories, c)
	}
	return nil
}

// row is appendRow the other way round.
func (o *own) row(values parquet.Row) Row {
	base := len(baseColumns(o.flagged)) + 1 // image has two leaves
	r := Row{Labels: make([][]int, len(o.schema.Categories))}
	text := []*string{0: &r.ID, 2: &r.Path, 3: &r.Text, 7: &r.SHA256, 8: &r.PHash, 9: &r.Filter}
	for _, v := range values {
		switch c := v.Column(); {
		case c >= base:
			o.label(&r, c-base, v)
		case v.IsNull():
		case c == 1:
			r.Image = v.ByteArray()
		case c == 4:
			r.Confidence = float64(v.Float())
		case c == 5:
			r.Width = int(v.Int32())
		case c == 6:
			r.Height = int(v.Int32())
		default:
			*text[c] = string(v.ByteArray())
		}
	}
	return r
}

func (o *own) label(r *Row, category int, v parquet.Value) {
	labels := &r.Labels[category]
	switch {
	case !v.IsNull():
		*labels = append(*labels, int(v.Int64()))
	case v.DefinitionLevel() == 1: // the empty list
		*labels = []int{}
	}
}
