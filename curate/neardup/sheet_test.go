package neardup

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rehydrate/internal/page"
	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/browser"
	"rehydrate/pipeline/redditemu"
)

// sheetGroups are n groups of two pictures with names that would do harm in a page.
func sheetGroups(t testing.TB, n int, name string) (all []shownGroup) {
	t.Helper()
	thumb, err := page.NewThumbnail(redditemu.Photo(1, 400, 300), name)
	testkit.OK(t, err)
	for i := range n {
		all = append(all, shownGroup{Number: i + 1, More: i,
			Pictures: []*shownPicture{{Name: name, Thumb: thumb}, {Name: name, Near: name, Thumb: thumb},
				{Name: name, Near: "x", Trouble: name}}})
	}
	return all
}

func written(t *testing.T, c contactSheet) string {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, page.Write(&b, sheetPage, c))
	return b.String()
}

var (
	tagPattern   = regexp.MustCompile(`<[^>]*>`)
	quotedValues = regexp.MustCompile(`"[^"]*"`)
)

// TestSheetEscapes: whatever a name holds, the page has the tags that it has for a harmless name.
func TestSheetEscapes(t *testing.T) {
	write := func(name string) string {
		return written(t, contactSheet{Source: name, Summary: Summary{Files: 9, Groups: 2, Duplicates: 4},
			All: sheetGroups(t, 2, name)})
	}
	skeleton := func(page string) string {
		_, body, _ := strings.Cut(page, "</style>")
		return quotedValues.ReplaceAllString(strings.Join(tagPattern.FindAllString(body, -1), "\n"), `""`)
	}
	plain := skeleton(write("plain.jpg"))
	if !strings.Contains(plain, `<summary aria-label="">`) || strings.Count(plain, "<img ") != 4 ||
		strings.Count(plain, "<details class=\"\">") != 4 {
		t.Fatalf("the page has other parts than this test knows:\n%s", plain)
	}
	for _, name := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onfocus='x`,
		`&lt;b&gt;`, "a\x00b\x1b[31m", "\xff<", `</figcaption></style><iframe src="https://example.com">`,
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
	page := written(t, contactSheet{Source: "folder", Grouped: 9, All: sheetGroups(t, 3, "p.jpg"),
		Summary: Summary{Files: 9, Unreadable: 1, Groups: 3, Duplicates: 6, Shown: 6, Radius: 8, Words: 3, Guard: true}})
	for _, tag := range tagPattern.FindAllString(page, -1) {
		for _, bad := range []string{"<script", "<link", "<iframe", "http:", "https:", " on", " style=", " open",
			"<object", "<form"} {
			if strings.Contains(tag, bad) {
				t.Errorf("the page has %.80s", tag)
			}
		}
		if strings.HasPrefix(tag, "<a ") && tag != `<a href="#group-1">` {
			t.Errorf("the page has the link %.80s", tag)
		}
		if strings.HasPrefix(tag, "<img ") && (!strings.Contains(tag, `src="data:image/jpeg;base64,`) ||
			!strings.Contains(tag, `loading="lazy"`) || !strings.Contains(tag, ` alt="thumbnail of p.jpg"`)) {
			t.Errorf("a picture is written as %.120s", tag)
		}
	}
	if veiled := strings.Count(page, `<details class="veil"><summary aria-label="show p.jpg"><img `); veiled != 6 ||
		strings.Count(page, "<img ") != 6 {
		t.Errorf("%d of %d pictures are veiled, want 6 of 6", veiled, strings.Count(page, "<img "))
	}
	for _, want := range []string{`lang="en"`, "default-src 'none'", "can be distressing",
		"9 pictures, 1 of them unreadable; 3 groups, which hold 6 duplicates",
		"in at most 8 bits and their texts in fewer than 3 words", "Texts that differ by half",
		"Shown: 6 of 9 grouped pictures in 3 of 3 groups", "no picture: p.jpg", "And 1 more picture that",
		"And 2 more pictures that", `<h2 id="group-3">Group 3</h2>`, `<strong>kept</strong>`,
		`<li class="open"><a href="#group-1"><b>3</b> groups of near-duplicates</a></li>`,
		`<li class="open"><span><b>1</b> unreadable</span></li>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestSheetContents: a sheet of many groups leads to each of them.
func TestSheetContents(t *testing.T) {
	for groups, want := range map[int]int{6: 0, 7: 1} {
		if page := written(t, contactSheet{All: sheetGroups(t, groups, "p.jpg")}); strings.Count(page,
			`<li><a href="#group-7">Group 7</a></li>`) != want {
			t.Errorf("the contents of %d groups:\n%s", groups, page)
		}
	}
}

func TestSheetEmpty(t *testing.T) {
	page := written(t, contactSheet{Source: "folder", Summary: Summary{Files: 1, Mode: ModeImage, Radius: 4}})
	if !strings.Contains(page, "No picture is near another one.") ||
		!strings.Contains(page,
			"alone are compared: two are near when their 64-bit perceptual hashes differ in at most 4 bits") ||
		!strings.Contains(page, "look before you delete") {
		t.Error(page)
	}
}

// TestBrowser looks at the page in Chromium.
func TestBrowser(t *testing.T) {
	name := filepath.Join(t.TempDir(), "groups.html")
	page := written(t, contactSheet{Source: strings.Repeat("folder_", 30), Grouped: 6,
		All:     sheetGroups(t, 2, strings.Repeat("a_name_", 30)+".jpg"),
		Summary: Summary{Files: 9, Groups: 2, Duplicates: 4, Mode: ModeImage, Radius: 4}})
	testkit.OK(t, os.WriteFile(name, []byte(page), 0o600))
	testkit.Same(t, "faults of the page", []string(nil), browser.Start(t).Faults(t, name))
}
