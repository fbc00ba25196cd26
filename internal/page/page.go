// Package page sets up the pages that people look at: HTML files that open from disk, without a script, without a file
// beside them, without a request. Each page is a template within the frame of base.html, with the style of page.css;
// chart.html has the charts.
package page

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/image/draw"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

//go:embed base.html chart.html page.css
var files embed.FS

// Parse returns the page of a template file, which defines "title" and "content".
func Parse(from fs.FS, name string) *template.Template {
	css, err := files.ReadFile("page.css")
	if err != nil {
		panic(err)
	}
	t := template.New(name).Funcs(template.FuncMap{
		"css":      func() template.CSS { return template.CSS(css) },
		"counted":  Counted,
		"hundred":  func(share float64) float64 { return 100 * share },
		"date":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") },
		"join":     strings.Join,
		"megabyte": func(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB" },
		"percent":  func(n, of int) string { return strconv.FormatFloat(Share(n, of), 'f', 1, 64) + " %" },
		"plus":     func(a, b float64) float64 { return a + b },
		"rounded":  func(d time.Duration) string { return d.Round(100 * time.Millisecond).String() },
		"series":   seriesClass,
	})
	// html/template escapes every text for its place.
	return template.Must(template.Must(t.ParseFS(files, "*.html")).ParseFS(from, name))
}

// A Figure is one number of the strip on top of a page, {{template "strip" figures}}.
type Figure struct {
	Value, Label string // "34 of 65", "kept"
	Tone         Tone
	Section      string // the id of the section that explains it; "" where there is none
}

// A Tone is what a number asks of the reader, the same on every page. Its value is a style of page.css.
type Tone string

// The tones, from nothing to do to something wrong.
const (
	Plain Tone = ""     // for information
	Good  Tone = "good" // as it should be
	Open  Tone = "open" // somebody has to look, or it cannot be told
	Bad   Tone = "bad"  // something is wrong, and somebody has to act
)

// If is a tone where a number is above zero, and Good where it is zero.
func (t Tone) If(n int) Tone {
	if n == 0 {
		return Good
	}
	return t
}

// Counted is n things in words: "1 image", "2 images".
func Counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// Share is n of all in percent.
func Share(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// Write writes a page of Parse. Control characters, and those that turn the direction of writing, become U+FFFD.
func Write(w io.Writer, t *template.Template, data any) error {
	out := transform.NewWriter(w, runes.Map(func(r rune) rune {
		control := r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
		turns := r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 // the direction of what follows
		if control || turns {
			return '\ufffd'
		}
		return r
	}))
	return errors.Join(t.ExecuteTemplate(out, "page", data), out.Close())
}

// thumbnailSide is the longer side of a thumbnail, in pixels: enough to recognise an image by.
const thumbnailSide = 200

// A Thumbnail is a small JPEG of an image, made from its pixels alone.
type Thumbnail struct {
	Name          string // what it shows, for those who do not see it: "image 1n6oiw"
	Width, Height int    // pixels
	Source        template.URL
}

// NewThumbnail makes a thumbnail of a decoded image. Transparent parts turn white.
func NewThumbnail(img image.Image, name string) (Thumbnail, error) {
	size := img.Bounds().Size()
	if size.X < 1 || size.Y < 1 {
		return Thumbnail{}, fmt.Errorf("make a thumbnail of %s: it has no pixels", name)
	}
	t := Thumbnail{Name: name, Width: size.X, Height: size.Y} // a small image is not made larger
	if longest := max(size.X, size.Y); longest > thumbnailSide {
		t.Width, t.Height = max(1, size.X*thumbnailSide/longest), max(1, size.Y*thumbnailSide/longest)
	}
	small := image.NewRGBA(image.Rect(0, 0, t.Width, t.Height))
	draw.Draw(small, small.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	// From the pixels alone: what else the file holds does not come along.
	draw.ApproxBiLinear.Scale(small, small.Bounds(), img, img.Bounds(), draw.Over, nil)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, small, &jpeg.Options{Quality: 60}); err != nil {
		return Thumbnail{}, fmt.Errorf("make a thumbnail of %s: %w", name, err)
	}
	t.Source = template.URL("data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(b.Bytes()))
	return t, nil
}
