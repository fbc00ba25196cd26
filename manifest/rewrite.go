package manifest

import (
	"bytes"
	"context"
	_ "embed"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"rehydrate/manifest/value"
)

// A Rewriting is a release as it is written once more: with the columns that its settings name, labels by their codes,
// and without the comments, spellings and columns that it does not need.
type Rewriting struct {
	Settings []byte // release.toml
	Manifest string // the name of its annotations

	schema    Schema
	format    Format
	separator string
	fields    []Field
}

//go:embed rewrite.toml.tmpl
var rewriteText string

var rewriteTemplate = template.Must(template.New(SettingsName).Funcs(template.FuncMap{"text": value.TOML}).Parse(rewriteText))

// Rewrite prepares to write the release with its id and split, and those of the other fields that are named.
func (r *Release) Rewrite(fields ...Field) (*Rewriting, error) {
	w := &Rewriting{schema: r.Schema, format: JSONL, fields: []Field{FieldSplit}}
	isList := func(c Column) bool { return c.List }
	// A cell of CSV is not told from an empty list, and a value of a list may hold any sign.
	if format := r.files[0].format; (format == CSV || format == TSV) && len(r.oneHot) == 0 &&
		!slices.ContainsFunc(r.Schema.Columns, isList) {
		w.format = CSV
	}
	for _, field := range Fields()[FieldImage:] {
		if slices.Contains(fields, field) {
			w.fields = append(w.fields, field)
		}
	}
	w.Manifest, w.separator = "annotations."+string(w.format), r.Schema.Separator()
	own := r.Schema.Categories
	if len(own) > 0 && reflect.DeepEqual(own, FigSIM().Categories) {
		own = nil
	}
	var text bytes.Buffer
	err := rewriteTemplate.Execute(&text, map[string]any{"Release": r, "Manifest": w.Manifest, "Own": own,
		"BuiltIn": len(own) < len(r.Schema.Categories),
		"Names":   w.Columns(), "Separator": w.separator})
	if err != nil {
		return nil, err
	}
	w.Settings = text.Bytes()
	return w, nil
}

// Columns are those of the annotations, in their order.
func (w *Rewriting) Columns() []string {
	return slices.Concat([]string{"id"}, each(w.fields, Field.String), w.schema.names(),
		each(w.schema.Columns, func(c Column) string { return c.Name }))
}

// Write writes annotations. change, if not nil, is made to each entry first.
func (w *Rewriting) Write(ctx context.Context, to io.Writer, r *Release, change func(*Entry)) error {
	out := NewWriter(to, w.format, w.schema, w.separator, w.fields...)
	for e, err := range r.Entries(ctx) {
		if err != nil {
			return err
		}
		if change != nil {
			change(&e)
		}
		out.Write(e)
	}
	return out.Flush()
}

// Separator is the first usual sign between labels that no label holds.
func (s Schema) Separator() string {
	holds := func(sign string) bool {
		return slices.ContainsFunc(s.Categories, func(c Category) bool {
			return slices.ContainsFunc(c.Labels, func(l Label) bool { return strings.Contains(l.Code, sign) })
		})
	}
	for _, sign := range []string{"|", ";", ",", "/", "&", "+", "~", "^"} {
		if !holds(sign) {
			return sign
		}
	}
	return "|||"
}
