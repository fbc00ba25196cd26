package main

import (
	_ "embed"
	"fmt"
	"image"
	"io"
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

// newHOCR writes one hOCR document (hOCR 1.2, as XHTML) with a page for each image that
// was read. It holds the accepted words, in reading order.
func newHOCR(out io.Writer, engine ocr.Engine) output {
	pages := 0
	part := func(name string, data any) error {
		var b strings.Builder // whole or not at all, should the template fail
		if err := hocrParts.ExecuteTemplate(&b, name, data); err != nil {
			return err
		}
		return toStdout(out, b.String())
	}
	begin := func() error {
		if pages > 0 {
			return nil
		}
		return part("head", system(engine))
	}
	write := func(r result) error {
		if r.err != nil {
			return nil // told on stderr
		}
		if err := begin(); err != nil {
			return err
		}
		pages++
		name := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable.EscapedLine(r.name))
		return part("page", struct {
			Number int
			Title  string
			Lines  [][]word.Word
		}{pages, fmt.Sprintf(`image "%s"; bbox 0 0 %d %d; ppageno %d`, name, r.width, r.height, pages-1),
			acceptedLines(r.Words)})
	}
	// Also after an interrupt, and for no page at all: the document is well formed however the run ends.
	end := func(bool) error {
		if err := begin(); err != nil {
			return err
		}
		return part("end", nil)
	}
	return output{write, end}
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
