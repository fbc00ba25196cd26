package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"io"
	"math"
	"strings"

	"rehydrate/pipeline/ocr"
)

// newHOCR writes one hOCR document (hOCR 1.2, as XHTML) with a page for each image that
// was read. It holds the accepted words, in reading order. The document is well formed
// however the run ends.
func newHOCR(out io.Writer, engine ocr.Engine) output {
	d := hocrDocument{out: out, engine: engine}
	return output{d.write, d.close}
}

type hocrDocument struct {
	out    io.Writer
	engine ocr.Engine
	pages  int
	begun  bool
}

func (o *hocrDocument) begin() error {
	if o.begun {
		return nil
	}
	o.begun = true
	return toStdout(o.out, `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">
 <head>
  <title>Text of images</title>
  <meta http-equiv="Content-Type" content="text/html;charset=utf-8" />
  <meta name="ocr-system" content="`+escaped(system(o.engine))+`" />
  <meta name="ocr-capabilities" content="ocr_page ocr_line ocrx_word" />
 </head>
 <body>
`)
}

func (o *hocrDocument) write(r result) error {
	if r.err != nil {
		return nil // told on stderr
	}
	if err := o.begin(); err != nil {
		return err
	}
	o.pages++
	var b strings.Builder
	name := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(shown(r.name))
	fmt.Fprintf(&b, "  <div class=\"ocr_page\" id=\"page_%d\" title=\"%s\">\n", o.pages,
		escaped(fmt.Sprintf(`image "%s"; bbox 0 0 %d %d; ppageno %d`, name, r.width, r.height, o.pages-1)))
	for n, line := range acceptedLines(r.Words) {
		var all image.Rectangle
		for _, w := range line {
			all = all.Union(w.Box)
		}
		fmt.Fprintf(&b, "   <span class=\"ocr_line\" id=\"line_%d_%d\" title=\"%s\">\n", o.pages, n+1, bbox(all))
		for i, w := range line {
			fmt.Fprintf(&b, "    <span class=\"ocrx_word\" id=\"word_%d_%d_%d\" title=\"%s; x_wconf %.0f\">%s</span>\n",
				o.pages, n+1, i+1, bbox(w.Box), math.Floor(w.Confidence), escaped(w.Text))
		}
		b.WriteString("   </span>\n")
	}
	b.WriteString("  </div>\n")
	return toStdout(o.out, b.String())
}

func (o *hocrDocument) close(bool) error {
	if err := o.begin(); err != nil {
		return err
	}
	return toStdout(o.out, " </body>\n</html>\n")
}

// acceptedLines groups the accepted words by their line.
func acceptedLines(words []ocr.Word) [][]ocr.Word {
	var lines [][]ocr.Word
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

func bbox(r image.Rectangle) string {
	return fmt.Sprintf("bbox %d %d %d %d", r.Min.X, r.Min.Y, r.Max.X, r.Max.Y)
}

// escaped is s as XML text or as an attribute's value; what XML cannot hold becomes U+FFFD.
func escaped(s string) string {
	var b bytes.Buffer
	// A buffer takes every write.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
