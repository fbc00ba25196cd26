package main

import (
	"context"
	_ "embed"
	"fmt"
	"image"
	"io"
	"path/filepath"
	"strings"
	"text/template"

	"rehydrate/internal/printable"
	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
)

//go:embed hocr.tmpl
var hocrText string

var hocrParts = template.Must(template.New("").Funcs(template.FuncMap{
	"bbox":  bbox,
	"inc":   func(i int) int { return i + 1 },
	"whole": func(confidence float64) int { return int(confidence) },
}).Parse(hocrText))

// hocrOutput prints one document with a page for each image.
func hocrOutput(out io.Writer) output {
	return output{begin: func(_ context.Context, e ocr.Engine) (sink, error) {
		h := hocr{out: out, engine: e}
		return sink{h.write, func(bool) error { return h.end() }}, nil
	}}
}

// hocrFiles writes a document of each image into a folder.
func hocrFiles(folder string, force bool) output {
	fileOf := func(in input) string { return filepath.Join(folder, in.rel+".hocr") }
	return output{folder, fileOf, func(ctx context.Context, e ocr.Engine) (sink, error) {
		return fileOfEach(ctx, force, fileOf, func(w io.Writer, r result) error {
			h := hocr{out: w, engine: e}
			if err := h.write(r); err != nil {
				return err
			}
			return h.end()
		}), nil
	}}
}

// An hocr is one hOCR document (hOCR 1.2, as XHTML) with a page for each image that was read. It holds the accepted
// words, in reading order.
type hocr struct {
	out    io.Writer
	engine ocr.Engine
	begun  bool
	pages  int
}

func (h *hocr) part(name string, data any) error {
	var b strings.Builder // whole or not at all, should the template fail
	if err := hocrParts.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	return toStdout(h.out, b.String())
}

func (h *hocr) begin() error {
	if h.begun {
		return nil
	}
	h.begun = true
	return h.part("head", system(h.engine))
}

func (h *hocr) write(r result) error {
	if r.err != nil {
		return nil // told on stderr
	}
	if err := h.begin(); err != nil {
		return err
	}
	h.pages++
	name := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable.EscapedLine(r.name))
	return h.part("page", struct {
		Number int
		Title  string
		Lines  [][]word.Word
	}{h.pages, fmt.Sprintf(`image "%s"; bbox 0 0 %d %d; ppageno %d`, name, r.width, r.height, h.pages-1),
		acceptedLines(r.Words)})
}

// end ends the document, also after an interrupt and for no page at all: it is well formed however the run ends.
func (h *hocr) end() error {
	if err := h.begin(); err != nil {
		return err
	}
	return h.part("end", nil)
}

// acceptedLines groups the accepted words by their line.
func acceptedLines(words []word.Word) [][]word.Word {
	var lines [][]word.Word
	last := -1
	for _, w := range words {
		if !w.Accepted {
			continue
		}
		if w.Line != last {
			lines, last = append(lines, nil), w.Line
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], w)
	}
	return lines
}

// bbox is the box around words.
func bbox(words []word.Word) string {
	var r image.Rectangle
	for _, w := range words {
		r = r.Union(w.Box())
	}
	return fmt.Sprintf("bbox %d %d %d %d", r.Min.X, r.Min.Y, r.Max.X, r.Max.Y)
}
