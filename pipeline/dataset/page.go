package dataset

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"iter"
	"strconv"
	"strings"

	"golang.org/x/image/draw"
)

// pageCSS is the one style sheet of all pages.
//
//go:embed page.css
var pageCSS string

// pageCSP lets a page show its own style and images that stand in it, and forbids all else: no
// script runs, and nothing is asked for over the network, whatever the page holds.
const pageCSP = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

// markup is the name of an element or attribute. Only constants of this package are markup: a
// string that came from anywhere else does not compile in its place.
type markup string

// An attr is an attribute of an element.
type attr struct {
	name  markup
	value string
}

// at is the attribute name="value".
func at(name markup, value string) attr { return attr{name, value} }

// A page writes one HTML document that opens from disk: no script, no file beside it, no request.
// Texts and attribute values are always escaped, and there is no way to write them raw. No
// attribute runs anything or leads out of the page: event handlers and styles are refused, href
// takes places in the page alone and src images in the page alone. html/template would escape as
// well; it makes the program 5 MB larger, because the linker then keeps every method.
//
// Errors are kept: close returns the first one. Not safe for concurrent use.
type page struct {
	w    *bufio.Writer
	open []markup
	err  error
}

// newPage begins a document: what follows stands in its <main>, below the title as <h1>.
func newPage(w io.Writer, title string) *page {
	p := &page{w: bufio.NewWriter(w)}
	p.raw("<!doctype html>\n")
	p.begin("html", at("lang", "en"))
	p.begin("head")
	p.void("meta", at("charset", "utf-8"))
	p.void("meta", at("http-equiv", "Content-Security-Policy"), at("content", pageCSP))
	p.void("meta", at("name", "viewport"), at("content", "width=device-width, initial-scale=1"))
	p.void("meta", at("name", "referrer"), at("content", "no-referrer"))
	p.el("title", title)
	p.raw("<style>\n" + pageCSS + "</style>\n")
	p.end()
	p.begin("body")
	p.begin("main")
	p.el("h1", title)
	return p
}

// close ends the document and returns the first error of writing it.
func (p *page) close() error {
	for len(p.open) > 0 {
		p.end()
	}
	p.raw("\n")
	if err := p.w.Flush(); p.err == nil {
		p.err = err
	}
	return p.err
}

// raw writes bytes of this program.
func (p *page) raw(s string) {
	if p.err == nil {
		_, p.err = p.w.WriteString(s)
	}
}

// begin opens an element, which end closes.
func (p *page) begin(tag markup, attrs ...attr) {
	p.tag(tag, attrs)
	p.open = append(p.open, tag)
}

// end closes the element that was opened last.
func (p *page) end() {
	last := len(p.open) - 1
	p.raw("</" + string(p.open[last]) + ">")
	p.open = p.open[:last]
	switch len(p.open) { // a new line in the file after each part of <main>
	case 2, 3, 4:
		p.raw("\n")
	}
}

// void writes an element that has no content: <meta>, <img>, <input>.
func (p *page) void(tag markup, attrs ...attr) { p.tag(tag, attrs) }

// el writes an element with a text.
func (p *page) el(tag markup, text string, attrs ...attr) {
	p.begin(tag, attrs...)
	p.text(text)
	p.end()
}

// text writes a text, escaped. Control characters but newline and tab, and those that turn the
// direction of writing, become U+FFFD.
func (p *page) text(s string) { p.raw(escapeText(s)) }

// textf is text of a format.
func (p *page) textf(format string, args ...any) { p.text(fmt.Sprintf(format, args...)) }

func (p *page) tag(tag markup, attrs []attr) {
	p.raw("<" + string(tag))
	for _, a := range attrs {
		if !a.harmless() {
			if p.err == nil {
				p.err = fmt.Errorf("write the page: the attribute %s of <%s> may not hold %.40q", a.name, tag, a.value)
			}
			return
		}
		p.raw(" " + string(a.name) + `="` + escapeText(a.value) + `"`)
	}
	p.raw(">")
}

// jpegURI is how the address of an image in the page begins.
const jpegURI = "data:image/jpeg;base64,"

// harmless reports whether the attribute neither runs anything nor leads out of the page.
func (a attr) harmless() bool {
	switch a.name {
	case "href":
		return strings.HasPrefix(a.value, "#")
	case "src":
		return strings.HasPrefix(a.value, jpegURI)
	case "style", "srcset", "srcdoc", "action", "formaction", "xlink:href", "data", "poster", "background", "ping":
		return false
	}
	return !strings.HasPrefix(string(a.name), "on")
}

// escapeText makes a text safe between tags and within double quotes.
func escapeText(s string) string {
	s = strings.Map(func(r rune) rune {
		control := r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
		turns := r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 // the direction of what follows
		if control || turns {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return html.EscapeString(s)
}

// A column is the head of a table's column.
type column struct {
	head   string
	number bool // aligned to the right
}

// table writes a table with a caption; the first cell of each row is its head.
func (p *page) table(caption string, columns []column, rows iter.Seq[[]string]) {
	class := func(i int) []attr {
		if columns[i].number {
			return []attr{at("class", "number")}
		}
		return nil
	}
	p.begin("div", at("class", "scroll"), at("tabindex", "0"), at("role", "region"), at("aria-label", caption))
	p.begin("table")
	p.el("caption", caption)
	p.begin("thead")
	p.begin("tr")
	for i, c := range columns {
		p.el("th", c.head, append(class(i), at("scope", "col"))...)
	}
	p.end()
	p.end()
	p.begin("tbody")
	for row := range rows {
		p.begin("tr")
		for i, cell := range row {
			if i == 0 {
				p.el("th", cell, append(class(i), at("scope", "row"))...)
			} else {
				p.el("td", cell, class(i)...)
			}
		}
		p.end()
	}
	p.end()
	p.end()
	p.end()
}

// thumbnailSide is the longer side of a thumbnail, in pixels: enough to recognise an image by.
const thumbnailSide = 200

// A Thumbnail is a small JPEG of an image, made from its pixels alone.
type Thumbnail struct {
	Name          string // what it shows, for those who do not see it: "image 1n6oiw"
	Width, Height int    // pixels
	jpeg          []byte
}

// NewThumbnail makes a thumbnail of a decoded image. Transparent parts turn white.
func NewThumbnail(img image.Image, name string) (Thumbnail, error) {
	size := img.Bounds().Size()
	if size.X < 1 || size.Y < 1 {
		return Thumbnail{}, fmt.Errorf("make a thumbnail of %s: it has no pixels", name)
	}
	t := Thumbnail{Name: name, Width: size.X, Height: size.Y}
	if longest := max(size.X, size.Y); longest > thumbnailSide {
		t.Width, t.Height = max(1, size.X*thumbnailSide/longest), max(1, size.Y*thumbnailSide/longest)
	}
	small := image.NewRGBA(image.Rect(0, 0, t.Width, t.Height))
	draw.Draw(small, small.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.ApproxBiLinear.Scale(small, small.Bounds(), img, img.Bounds(), draw.Over, nil)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, small, &jpeg.Options{Quality: 60}); err != nil {
		return Thumbnail{}, fmt.Errorf("make a thumbnail of %s: %w", name, err)
	}
	t.jpeg = b.Bytes()
	return t, nil
}

// thumbnail writes an image that is blurred until it is clicked, or focused and opened with Enter
// or Space; the same again hides it.
func (p *page) thumbnail(t Thumbnail) {
	p.begin("details", at("class", "veil"))
	p.begin("summary", at("aria-label", "show "+t.Name))
	p.void("img", at("loading", "lazy"), at("alt", t.Name), at("width", strconv.Itoa(t.Width)), at("height", strconv.Itoa(t.Height)),
		at("src", jpegURI+base64.StdEncoding.EncodeToString(t.jpeg)))
	p.end()
	p.end()
}
