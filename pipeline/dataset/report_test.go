package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/chromiumtest"
)

// hostile is a text that a page must show and not obey.
const hostile = `</script></style></title><script>alert(1)</script><img src=x onerror="alert('2')"><!--` + "\x1b]0;x\x07\u202e"

// shown is hostile as it stands in a page's source.
const shown = `&lt;/script&gt;&lt;/style&gt;&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=`

// hostileReport has a hostile text in every place that takes one, and numbers in all others.
func hostileReport(t *testing.T) ReportData {
	t.Helper()
	schema := manifest.Schema{Name: hostile}
	for i, kind := range []manifest.CategoryKind{manifest.Single, manifest.Multi} {
		c := manifest.Category{Name: fmt.Sprint(i, hostile), Title: fmt.Sprint(i, hostile), Kind: kind}
		for j := range 3 {
			c.Labels = append(c.Labels, manifest.Label{Code: fmt.Sprint("L", j, hostile), Name: fmt.Sprint(j, hostile)})
		}
		schema.Categories = append(schema.Categories, c)
	}
	count := func(n int) labels.Stats {
		s, err := labels.Count(schema, func(yield func(manifest.Entry, error) bool) {
			for i := range n {
				if !yield(manifest.Entry{Key: manifest.Key{ID: manifest.PostID(fmt.Sprint("p", i))}, Split: "train", Labels: [][]int{{i % 3}, {i % 2, 2}}}, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	img := image.NewGray(image.Rect(0, 0, 300, 200))
	thumb, err := NewThumbnail(img, hostile)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return ReportData{
		Release: hostile, Schema: schema, Tool: hostile, Made: now, Entries: 40, Posts: 39,
		Reasons: []ReportReason{{manifest.Kept, "", 25, hostile}, {manifest.Removed, hostile, 10, hostile}, {manifest.Failed, hostile, 5, hostile}},
		BySplit: []ReportSplit{{Name: hostile, Entries: 40, Outcomes: map[manifest.Outcome]int{manifest.Kept: 25, manifest.Removed: 10, manifest.Failed: 5}}},
		Flagged: 1, Withheld: 2, Unverified: 3, OldestLook: &now, Stale: true, Masked: 4, MaskedImages: 5,
		Labels: count(40), Rebuilt: count(25),
		Drift: []labels.Drift{{Category: hostile, Label: hostile, Chi2: 12, Freedom: 1, P: 0.0001, CramersV: .5, Merged: []string{hostile}, Small: true},
			{Category: hostile, Untested: hostile}},
		Images:     ReportImages{Formats: []ReportFormat{{hostile, 25, 1 << 20}}, Sides: []int{0, 1, 2, 3, 4, 15}},
		Confidence: ReportConfidence{Tenths: [10]int{9: 20, 4: 3}, Textless: 2},
		Groups: ReportGroups{Sizes: map[int]int{2: 3, 5: 1}, Classes: map[string]int{hostile: 4},
			Straddling: []ReportGroup{{Kept: hostile, Others: []string{hostile}, Splits: []string{hostile, "test"}}}},
		Last:       &ReportRun{At: now, Elapsed: time.Minute, Waited: time.Second, Retries: 7, Requests: []ReportRequests{{hostile, 8}}},
		Reread:     &ReportReread{At: now, Read: 11, Changed: 12, Gained: 13, Lost: 14, Outcomes: 15},
		Thumbnails: func(yield func(Thumbnail, error) bool) { yield(thumb, nil) },
		Texts:      func(yield func(ReportText, error) bool) { yield(ReportText{hostile, hostile, 50}, nil) },
	}
}

func writeReport(t *testing.T, d ReportData) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteReport(&b, d); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

var tagsOfPage = regexp.MustCompile(`<(/?[a-zA-Z!][^\s>/]*)`)

// A page has the elements that this package writes and no other, whatever the texts hold.
func TestReportHostile(t *testing.T) {
	d := hostileReport(t)
	source, err := os.ReadFile(writeReport(t, d))
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"!doctype": true}
	for _, tag := range strings.Fields(`html head meta title style body main h1 h2 h3 p nav ul li a section figure figcaption div svg rect text g
		table caption thead tbody tr th td details summary img`) {
		allowed[tag], allowed["/"+tag] = true, true
	}
	for _, m := range tagsOfPage.FindAllSubmatch(source, -1) {
		if !allowed[string(m[1])] {
			t.Fatalf("the page has a <%s>", m[1])
		}
	}
	if strings.ContainsAny(string(source), "\x1b\x07\u202e") {
		t.Error("a control character stands in the page")
	}
	v := chromiumtest.Open(t, writeReport(t, d))
	if len(v.Console) > 0 || len(v.Requests) > 0 {
		t.Errorf("console %q, requests %q, want none", v.Console, v.Requests)
	}
	if n := strings.Count(v.DOM, "<img"); n != 1 {
		t.Errorf("%d images stand in the page, want the thumbnail", n)
	}
	if n := strings.Count(v.DOM, shown); n < 25 {
		t.Errorf("the hostile text is shown %d times, want it wherever it was given", n)
	}
	if strings.Contains(v.DOM, "<script") {
		t.Error("the page has a script")
	}
}

// The browser test sees a page that does ask and complain.
func TestChromiumSees(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bad.html")
	bad := `<!doctype html><title>bad</title><script>console.error("complaint")</script><img src="http://pictures.invalid/x.png"><p>&lt;p&gt;`
	if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	v := chromiumtest.Open(t, name)
	if !strings.Contains(strings.Join(v.Console, "\n"), "complaint") {
		t.Errorf("console = %q, want the complaint", v.Console)
	}
	if !strings.Contains(strings.Join(v.Requests, "\n"), "http://pictures.invalid/x.png") {
		t.Errorf("requests = %q, want the picture", v.Requests)
	}
}

// Both themes are themes: the page's ground is light in one and dark in the other.
func TestReportThemes(t *testing.T) {
	name := writeReport(t, hostileReport(t))
	for _, dark := range []bool{false, true} {
		img := chromiumtest.Screenshot(t, name, dark)
		r, g, b, _ := img.At(2, 2).RGBA()
		if level := (r + g + b) / 3 >> 8; dark != (level < 60) || dark == (level > 200) {
			t.Errorf("dark %t: the page's ground has the brightness %d of 255", dark, level)
		}
	}
}

// No image and no text is in a report without them, and an error of a source is the report's.
func TestReportContent(t *testing.T) {
	d := hostileReport(t)
	d.Thumbnails, d.Texts = nil, nil
	source, err := os.ReadFile(writeReport(t, d))
	if err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"<img", "data:image", "Texts of kept", "Delete it"} {
		if bytes.Contains(source, []byte(never)) {
			t.Errorf("a report without content has %q", never)
		}
	}
	damaged := errors.New("damaged")
	d.Thumbnails = func(yield func(Thumbnail, error) bool) { yield(Thumbnail{}, damaged) }
	if err := WriteReport(new(bytes.Buffer), d); !errors.Is(err, damaged) {
		t.Errorf("WriteReport with a damaged image = %v, want its error", err)
	}
	d = hostileReport(t)
	d.Texts = func(yield func(ReportText, error) bool) { yield(ReportText{}, damaged) }
	if err := WriteReport(new(bytes.Buffer), d); !errors.Is(err, damaged) {
		t.Errorf("WriteReport with a damaged text = %v, want its error", err)
	}
}

// The drill-down and the drift table say what the numbers mean.
func TestReportNumbers(t *testing.T) {
	source, err := os.ReadFile(writeReport(t, hostileReport(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"25 of 40 entries are in the dataset (62.5 %)", "No: in 1 of 1 tests", ">1e-04<", ">differs<", ">not tested<",
		"the post is there: 30", "it is settled: 25", "4097 and more: 15", "1.0 MB", "had to repeat: 7"} {
		if !bytes.Contains(source, []byte(want)) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

func TestHolm(t *testing.T) {
	tests := []struct {
		name string
		p    []float64
		want []bool
	}{
		{"none", nil, []bool{}},
		{"one", []float64{.04}, []bool{true}},
		{"one too large", []float64{.051}, []bool{false}},
		{"the smallest must be below level/m", []float64{.04, .03}, []bool{false, false}},
		{"later ones have it easier", []float64{.04, .01, .024}, []bool{true, true, true}},
		{"after a failure none passes", []float64{.026, .01, .027, .028}, []bool{false, true, false, false}},
	}
	for _, test := range tests {
		var drift []labels.Drift
		for _, p := range test.p {
			drift = append(drift, labels.Drift{P: p})
		}
		if diff := cmp.Diff(test.want, holm(drift, .05)); diff != "" {
			t.Errorf("%s: holm(%v) (-want +got):\n%s", test.name, test.p, diff)
		}
	}
}

func TestPageRefuses(t *testing.T) {
	tests := []struct {
		attr attr
		ok   bool
	}{
		{at("href", "#funnel"), true},
		{at("href", "https://example.org/"), false},
		{at("href", "javascript:alert(1)"), false},
		{at("src", "data:image/jpeg;base64,AAAA"), true},
		{at("src", "data:image/svg+xml,<svg/>"), false},
		{at("src", "x.png"), false},
		{at("onclick", "alert(1)"), false},
		{at("style", "background: url(x)"), false},
		{at("class", `"><script>`), true}, // escaped
	}
	for _, test := range tests {
		var b bytes.Buffer
		p := newPage(&b, "test")
		p.el("p", "text", test.attr)
		err := p.close()
		if (err == nil) != test.ok {
			t.Errorf("%s=%q: close = %v, want ok %t", test.attr.name, test.attr.value, err, test.ok)
		}
		if strings.Contains(b.String(), "<script") {
			t.Errorf("%s=%q broke out of its quotes", test.attr.name, test.attr.value)
		}
	}
}
