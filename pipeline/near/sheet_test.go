package near

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"io"
	"iter"
	"regexp"
	"strings"
	"testing"

	"rehydrate/pipeline/page"
)

// sheetGroups are n groups of two pictures with names that would do harm in a page.
func sheetGroups(t testing.TB, n int, name string) iter.Seq[shownGroup] {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 400, 300))
	for i := range 300 {
		img.SetRGBA(i, i, color.RGBA{200, 10, 10, 255})
	}
	thumb, err := page.NewThumbnail(img, name)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(shownGroup) bool) {
		for i := range n {
			g := shownGroup{Number: i + 1, Pictures: []shownPicture{{Name: name, Thumb: thumb}, {Name: name, Near: name, Thumb: thumb}, {Name: name, Near: "x", Trouble: name}}, More: i}
			if !yield(g) {
				return
			}
		}
	}
}

var (
	tagPattern   = regexp.MustCompile(`<[^>]*>`)
	quotedValues = regexp.MustCompile(`"[^"]*"`)
)

// TestSheetEscapes: whatever a name holds, the page has the tags that it has for a harmless name.
func TestSheetEscapes(t *testing.T) {
	write := func(name string) string {
		var b bytes.Buffer
		s := contactSheet{Source: name, Rule: name, Summary: Summary{Files: 9, Groups: 2, Duplicates: 4}, All: sheetGroups(t, 2, name)}
		if err := s.write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	skeleton := func(page string) string {
		_, body, _ := strings.Cut(page, "</style>")
		return quotedValues.ReplaceAllString(strings.Join(tagPattern.FindAllString(body, -1), "\n"), `""`)
	}
	plain := skeleton(write("plain.jpg"))
	if !strings.Contains(plain, `<summary aria-label="">`) || strings.Count(plain, "<img ") != 4 || strings.Count(plain, "<details class=\"\">") != 4 {
		t.Fatalf("the page has other parts than this test knows:\n%s", plain)
	}
	for _, name := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onfocus='x`, `&lt;b&gt;`, "a\x00b\x1b[31m", "\xff<", `</figcaption></style><iframe src="https://example.com">`,
		`javascript:alert(1)`, "-->", `{{.}}`} {
		page := write(name)
		if got := skeleton(page); got != plain {
			t.Errorf("%q: the page has other tags:\n%s", name, got)
		}
		if strings.ContainsAny(page, "\x00\x1b") || strings.Contains(page, "\xff") {
			t.Errorf("%q: a control character, or a byte that is no UTF-8, is in the page", name)
		}
	}
}

// TestSheetOffline: no script, no style on an element, nothing that leads out of the page, every picture
// veiled, loaded when it is looked at, and with a name for who cannot see it.
func TestSheetOffline(t *testing.T) {
	var b bytes.Buffer
	full := contactSheet{Source: "folder", Rule: "rule.", Summary: Summary{Files: 9, Unreadable: 1, Groups: 3, Duplicates: 6},
		ShownGroups: 3, ShownPictures: 6, Grouped: 9, All: sheetGroups(t, 3, "p.jpg")}
	if err := full.write(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, tag := range tagPattern.FindAllString(page, -1) {
		for _, bad := range []string{"<script", "<link", "<iframe", "<a ", "http:", "https:", " on", " style=", " open", "<object", "<form"} {
			if strings.Contains(tag, bad) {
				t.Errorf("the page has %.80s", tag)
			}
		}
		if strings.HasPrefix(tag, "<img ") && (!strings.Contains(tag, `src="data:image/jpeg;base64,`) || !strings.Contains(tag, `loading="lazy"`) || !strings.Contains(tag, ` alt="p.jpg"`)) {
			t.Errorf("a picture is written as %.120s", tag)
		}
	}
	if veiled := strings.Count(page, `<details class="veil"><summary aria-label="show p.jpg"><img `); veiled != 6 || strings.Count(page, "<img ") != 6 {
		t.Errorf("%d of %d pictures are veiled, want 6 of 6", veiled, strings.Count(page, "<img "))
	}
	for _, want := range []string{`lang="en"`, "default-src 'none'", "can be distressing", "9 pictures, 1 of them unreadable; 3 groups, which hold 6 duplicates", "rule.",
		"Shown: 6 of 9 grouped pictures in 3 of 3 groups", "no picture: p.jpg", "And 1 more picture that", "And 2 more pictures that", `<h2 id="group-3">Group 3</h2>`, `<strong>kept</strong>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestSheetEmpty(t *testing.T) {
	var b bytes.Buffer
	empty := contactSheet{Source: "folder", Summary: Summary{Files: 1}, All: sheetGroups(t, 0, "x")}
	if err := empty.write(&b); err != nil || !strings.Contains(b.String(), "No picture is near another one.") || !strings.HasSuffix(b.String(), "</html>\n") {
		t.Errorf("writeSheet = %v:\n%s", err, b.String())
	}
}

// TestSheetErrors: a page that could not be written is an error.
func TestSheetErrors(t *testing.T) {
	want := errors.New("disk full")
	r, w := io.Pipe()
	r.CloseWithError(want)
	s := contactSheet{Summary: Summary{Groups: 40}, All: sheetGroups(t, 40, "x")}
	if err := s.write(w); !errors.Is(err, want) {
		t.Errorf("the sheet on a full disk: %v", err)
	}
}
