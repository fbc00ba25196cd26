package page

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func parse(content string) fstest.MapFS {
	return fstest.MapFS{"x.html": {Data: []byte(`{{define "title"}}T{{end}}{{define "content"}}` + content + `{{end}}`)}}
}

// TestThumbnail looks at pixels: a thumbnail shows the image, smaller, white where that is transparent.
func TestThumbnail(t *testing.T) {
	red, blue := color.RGBA{220, 20, 20, 255}, color.RGBA{20, 20, 220, 255}
	tests := []struct {
		name          string
		bounds        image.Rectangle
		width, height int
	}{
		{"shrunk", image.Rect(0, 0, 400, 300), 200, 150},
		{"of another origin", image.Rect(-50, 10, 350, 310), 200, 150},
		{"as small as it is", image.Rect(0, 0, 80, 60), 80, 60},
		{"high", image.Rect(0, 0, 40, 8000), 1, 200},
	}
	for _, test := range tests {
		// Red above at the left, blue at the right, transparent below.
		img, b := image.NewRGBA(test.bounds), test.bounds
		mid := image.Pt((b.Min.X+b.Max.X)/2, (b.Min.Y+b.Max.Y)/2)
		draw.Draw(img, image.Rect(b.Min.X, b.Min.Y, mid.X, mid.Y), image.NewUniform(red), image.Point{}, draw.Src)
		draw.Draw(img, image.Rect(mid.X, b.Min.Y, b.Max.X, mid.Y), image.NewUniform(blue), image.Point{}, draw.Src)
		got, err := NewThumbnail(img, test.name)
		if err != nil {
			t.Fatal(err)
		}
		code, ok := strings.CutPrefix(string(got.Source), "data:image/jpeg;base64,")
		body, err := base64.StdEncoding.DecodeString(code)
		if err != nil || !ok {
			t.Fatalf("%s: source %.40q, %v", test.name, got.Source, err)
		}
		small, err := jpeg.Decode(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if size := small.Bounds().Size(); size != image.Pt(test.width, test.height) ||
			size != image.Pt(got.Width, got.Height) {
			t.Errorf("%s: %v, said to be %d x %d, want %d x %d", test.name, size, got.Width, got.Height, test.width,
				test.height)
		}
		if test.width == 1 {
			continue
		}
		for _, want := range []struct {
			x, y  int // quarters
			color color.RGBA
		}{{1, 1, red}, {3, 1, blue}, {1, 3, color.RGBA{255, 255, 255, 255}}} {
			r, g, b, _ := small.At(want.x*test.width/4, want.y*test.height/4).RGBA()
			for i, v := range []uint32{r, g, b} {
				if d := int(v>>8) - int([]uint8{want.color.R, want.color.G, want.color.B}[i]); d < -25 || d > 25 {
					t.Errorf("%s: at %d/4, %d/4 it is %d %d %d, want about %v", test.name, want.x, want.y, r>>8, g>>8, b>>8,
						want.color)
					break
				}
			}
		}
	}
	if _, err := NewThumbnail(image.NewGray(image.Rect(0, 0, 0, 5)), "empty"); err == nil {
		t.Error("an image without pixels made a thumbnail")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWrite(t *testing.T) {
	tmpl := Parse(parse(`<p title="{{.}}">{{.}}</p><a href="{{.}}">x</a>`), "x.html")
	var b bytes.Buffer
	if err := Write(&b, tmpl, "a\x00\x1b[31m\u202e\u2066\xff\x85\n\té\"<script>javascript:"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"default-src 'none'", "<title>T</title>", "<h1>T</h1>", "color-scheme", "a\ufffd",
		"\n\té", "&lt;script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.ContainsAny(page, "\x00\x1b\u202e\u2066\u0085") || strings.Contains(page, "<script") ||
		strings.Contains(page, "\xff") {
		t.Errorf("what moves or runs is in the page:\n%q", page)
	}
	b.Reset()
	if err := Write(&b, tmpl, "javascript:alert(1)"); err != nil || !strings.Contains(b.String(), `href="#ZgotmplZ"`) {
		t.Errorf("a link runs a script: %v\n%s", err, b.String())
	}
	if err := Write(full{}, tmpl, "x"); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Write to a full disk = %v", err)
	}
}

func TestFunctions(t *testing.T) {
	tests := []struct{ content, want string }{
		{`{{counted 1 "image"}}, {{counted 2 "image"}}`, "1 image, 2 images"},
		{`{{percent 1 3}}, {{percent 0 0}}`, "33.3 %, 0.0 %"},
		{`{{megabyte 1500000}}`, "1.5 MB"},
		{`{{rounded .D}} {{date .T}}`, "1.2s 2026-01-02 02:04 UTC"},
		{`{{template "strip" .F}}`,
			`<li class="good"><a href="#kept"><b>1 of 2</b> kept&lt;</a></li>` + "\n" + `<li class="open"><span><b>3</b> open</span></li>` +
				"\n" + `<li class="good"><span><b>0</b> late</span></li>` + "\n" + `<li><span><b>4</b> files</span></li>`},
		{`{{template "table" "C<"}}<tbody></tbody>{{template "end-table"}}`,
			"aria-label=\"C&lt;\">\n<table>\n<caption>C&lt;</caption><tbody></tbody></table>\n</div>"},
	}
	data := struct {
		D time.Duration
		T time.Time
		F []Figure
	}{1234 * time.Millisecond, time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)),
		[]Figure{{"1 of 2", "kept<", Good, "kept"}, {"3", "open", Open.If(3), ""}, {"0", "late", Bad.If(0), ""},
			{"4", "files", Plain, ""}}}
	for _, test := range tests {
		var b bytes.Buffer
		if err := Write(&b, Parse(parse(test.content), "x.html"), data); err != nil ||
			!strings.Contains(b.String(), test.want) {
			t.Errorf("%s: %v, want %q in\n%s", test.content, err, test.want, b.String())
		}
	}
}
