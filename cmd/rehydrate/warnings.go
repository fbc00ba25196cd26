package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"rehydrate/internal/printable"
)

// warnings prints log records for people: a warning is a sentence, as an error is. What -v adds stays as slog writes
// it.
type warnings struct {
	slog.Handler
	out   io.Writer
	attrs []slog.Attr // of the logger
}

func newWarnings(out io.Writer, level slog.Level) *warnings {
	return &warnings{Handler: slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}), out: out}
}

// Handle implements slog.Handler.
func (w *warnings) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return w.Handler.Handle(ctx, r)
	}
	attrs := slices.Clone(w.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	// In one piece: other goroutines warn, too.
	_, err := fmt.Fprintf(w.out, "rehydrate: warning: %s\n", printable.EscapedLine(sentence(r.Message, attrs)))
	return err
}

// WithAttrs implements slog.Handler.
func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{w.Handler.WithAttrs(attrs), w.out, slices.Concat(w.attrs, attrs)}
}

// WithGroup implements slog.Handler. A sentence has no groups.
func (w *warnings) WithGroup(name string) slog.Handler {
	return &warnings{w.Handler.WithGroup(name), w.out, w.attrs}
}

// sentences are for warnings whose message needs its values inside; {KEY} stands for the value of an attribute.
var sentences = map[string]string{
	"reddit gives a reason for a removal that is not known here; it counts as a removal": "post {id} was removed " +
		"for a reason this version does not know ({reason}); treated as removed",
	"mass removal withheld": "{gone} of {were_live} live posts are gone at once: they are held back, " +
		"and nothing of them is erased",
	"mass removal withheld, with images of live posts": "{gone} of {were_live} live posts are gone or lost images at " +
		"once: what is gone is held back, and nothing of it is erased",
	"no verdict":                             "Reddit gave no usable answer about {posts} posts ({reason}): {detail}",
	"a stored image is damaged and left out": "the stored image {file} is damaged and left out: {what}",
	"lost an OCR worker":                     "an OCR worker was lost after {images} images: {error}",
}

// sentence puts the values of a warning into its sentence, or behind it: (KEY VALUE, ...), and an error at the end.
func sentence(message string, attrs []slog.Attr) string {
	if form, ok := sentences[message]; ok {
		var pairs []string
		for _, a := range attrs {
			pairs = append(pairs, "{"+a.Key+"}", a.Value.String())
		}
		return strings.TrimSuffix(strings.TrimSpace(strings.NewReplacer(pairs...).Replace(form)), ":")
	}
	var more []string
	why := ""
	for _, a := range attrs {
		if a.Key == "error" {
			why = ": " + a.Value.String()
			continue
		}
		more = append(more, strings.ReplaceAll(a.Key, "_", " ")+" "+a.Value.String())
	}
	if len(more) > 0 {
		message += " (" + strings.Join(more, ", ") + ")"
	}
	return message + why
}
