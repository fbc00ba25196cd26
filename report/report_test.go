package report

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/page"
	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/browser"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/pipeline/state"
)

// hostile is a text that a page must show and not obey.
const hostile = `</script></style></title><script>alert(1)</script><img src=x onerror="alert('2')"><!--` + "\x1b]0;x\x07\u202e"

// shown is hostile as it stands in a page's source.
const shown = `&lt;/script&gt;&lt;/style&gt;&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=`

// dataWith has a text in every place that takes one, and numbers in all others.
func dataWith(t *testing.T, text string) data {
	t.Helper()
	schema := manifest.Schema{Name: text}
	for i, kind := range []manifest.CategoryKind{manifest.Single, manifest.Multi} {
		c := manifest.Category{Name: fmt.Sprint(i, text), Title: fmt.Sprint("title ", i, text), Kind: kind}
		for j := range 3 {
			c.Labels = append(c.Labels, manifest.Label{Code: fmt.Sprint("L", j, text), Name: fmt.Sprint("name ", j, text)})
		}
		schema.Categories = append(schema.Categories, c)
	}
	count := func(n int) labels.Stats {
		s, err := labels.Count(schema, func(yield func(manifest.Entry, error) bool) {
			for i := range n {
				if !yield(manifest.Entry{Key: manifest.Key{ID: manifest.PostID(fmt.Sprint("p", i))}, Split: "train",
					Labels: [][]int{{i % 3}, {i % 2, 2}}}, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	thumb, err := page.NewThumbnail(image.NewGray(image.Rect(0, 0, 300, 200)), text)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := data{
		Summary: state.Summary{Release: text, Entries: 40, Posts: 39, Flagged: 1, Withheld: 2, Unverified: 3,
			OldestAsk: &now, Stale: true,
			Masked:   state.Masked{Names: 4, Images: 5},
			Outcomes: map[manifest.Outcome]int{manifest.Kept: 25, manifest.Removed: 10, manifest.Failed: 5},
			Reasons: []state.Count{{Outcome: manifest.Kept, Entries: 24},
				{Outcome: manifest.Kept, Reason: manifest.Reason(manifest.NotEnglish), Entries: 1},
				{Outcome: manifest.Removed, Reason: manifest.Reason(text), Entries: 10},
				{Outcome: manifest.Failed, Reason: manifest.Reason(text), Entries: 5}}},
		Schema: schema, Tool: text, Made: now, Advice: func(state.Count) string { return "advice " + text },
		BySplit: []split{{Name: "train " + text, Entries: 30,
			Outcomes: map[manifest.Outcome]int{manifest.Kept: 18, manifest.Removed: 8, manifest.Failed: 4}},
			{Name: "test", Entries: 10, Outcomes: map[manifest.Outcome]int{manifest.Kept: 7, manifest.Removed: 2,
				manifest.Failed: 1}}},
		DateColumn: text, Undated: 4, ByMonth: map[time.Time]map[manifest.Outcome]int{
			month(2023, 11): {manifest.Kept: 20, manifest.Deleted: 1, manifest.Removed: 9},
			month(2024, 2):  {manifest.Kept: 5, manifest.Failed: 5}},
		Labels: count(40), Rebuilt: count(25),
		Drift: []labels.Drift{{Category: text, Label: text, A: 15, B: 25, Chi2: 12.345, Freedom: 1, P: 0.0001,
			CramersV: .5, Merged: []string{text}, Small: true}, {Category: text, A: 15, B: 25, Untested: text},
			{Category: "calm", A: 15, B: 25, Chi2: 1, Freedom: 2, P: 0.6065, CramersV: .1}},
		Formats: []format{{text, 25, 1 << 20}}, Sides: [6]int{0, 1, 2, 3, 4, 15}, Tenths: [10]int{9: 20, 4: 3}, Textless: 2,
		GroupSizes: map[int]int{2: 3, 5: 1}, GroupClasses: map[string]int{text: 4},
		Straddling: []group{{Kept: text, Others: []string{text, "o2"}, Splits: []string{text, "test"}}},
		LastRun: state.LastRun{At: now, Elapsed: time.Minute,
			Calls: calls.Counts{Info: 8, Waited: 1234 * time.Millisecond, Retries: 7}},
		Reread: state.LastReread{At: now, Read: 11, Changed: 12, Gained: 13, Lost: 14, Outcomes: 15},
	}
	d.Thumbnails = func(yield func(page.Thumbnail) bool) { yield(thumb) }
	d.Texts = func(yield func(readText) bool) { yield(readText{text, text, 50}) }
	return d
}

func source(t *testing.T, d data) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func onDisk(t *testing.T, d data) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(name, []byte(source(t, d)), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

var (
	tagPattern   = regexp.MustCompile(`<[^>]*>`)
	quotedValues = regexp.MustCompile(`"[^"]*"`)
	spaces       = regexp.MustCompile(`\s+`)
)

// skeleton is the tags of a page, without the values of attributes.
func skeleton(page string) string {
	_, body, _ := strings.Cut(page, "</style>")
	return quotedValues.ReplaceAllString(strings.Join(tagPattern.FindAllString(body, -1), "\n"), `""`)
}

// words is what a page says: its source without tags.
func words(page string) string {
	_, body, _ := strings.Cut(page, "</style>")
	return spaces.ReplaceAllString(tagPattern.ReplaceAllString(body, " "), " ")
}

// TestHostile: whatever a text holds, the page has the tags that it has for a harmless one, runs nothing and
// asks for nothing.
func TestHostile(t *testing.T) {
	evil, plain := source(t, dataWith(t, hostile)), source(t, dataWith(t, "plain"))
	if diff := cmp.Diff(skeleton(plain), skeleton(evil)); diff != "" {
		t.Errorf("with a hostile text the page has other tags (-plain +hostile):\n%s", diff)
	}
	if strings.ContainsAny(evil, "\x1b\x07\u202e") {
		t.Error("a control character stands in the page")
	}
}

// TestBrowser looks at the pages in Chromium.
func TestBrowser(t *testing.T) {
	chromium := browser.Start(t)
	evil := onDisk(t, dataWith(t, hostile))
	v := chromium.Open(t, evil)
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
	reread, study := filepath.Join(t.TempDir(), "reread.html"), filepath.Join(t.TempDir(), "study.html")
	testkit.OK(t, os.WriteFile(reread, []byte(writeReread(t, rereadWith("text"))), 0o600),
		os.WriteFile(study, []byte(writeStudy(t, someStudy(hostile))), 0o600))
	for _, file := range []string{evil, reread, study} {
		testkit.Same(t, "faults of the page", []string(nil), chromium.Faults(t, file))
	}
	t.Run("bars", func(t *testing.T) { testBars(t, chromium) })
}

// TestSteps: every outcome but kept is lost at one step of the funnel, so that its last bar is what was kept.
func TestSteps(t *testing.T) {
	lost := map[manifest.Outcome]int{}
	for _, s := range steps {
		for _, o := range s.lost {
			lost[o]++
		}
	}
	for _, o := range manifest.Outcomes() {
		if want := 1; o != manifest.Kept && lost[o] != want || o == manifest.Kept && lost[o] != 0 {
			t.Errorf("%s is lost at %d steps, want %d", o, lost[o], want)
		}
	}
}

// TestSays: the numbers of the report, section by section.
func TestSays(t *testing.T) {
	page := source(t, dataWith(t, "x"))
	if !strings.Contains(page, `style="--share: 0.28">28 % <small>7`) &&
		!strings.Contains(page, `style="--share: 0.2777777777777778">28 % <small>5`) {
		t.Error("a cell of the heatmap is not as dark as its share")
	}
	text := words(page)
	for _, want := range []string{
		"25 of 40 kept 10 &#43; 0 deleted &#43; unavailable 0 image lost, or not allowed " +
			"0 filtered, 1 kept and marked 5 to retry no balanced?",
		"Images 1 to 1", "Texts 1 to 1", "25 of 40 entries are in the dataset (62.5 %)", "from 39 posts",
		"seen live on 2026-01-02 03:04 UTC or later",
		"last seen live longer ago than the policy allows", "not erased yet: 2.", "delete it when it has been read",
		"in the manifest 40 the post is there 30 the policy allows it 30 it has its image 30 nothing is left to retry 25 " +
			"it is English or without text 24 it is no near-duplicate 24 kept, with those that the filters marked 25",
		"It is no proof that deleted posts are gone: rehydrate audit looks for them.",
		"kept 25 62.5 % it is in the dataset duplicate 0 0.0 % nearly", "removed 10 25.0 % the post was removed by",
		"gone 0 0.0 % the post is there, its image is not", "removed, deleted, unavailable, 10 in all",
		"removed x 10 advice x",
		"marked in the filter column: 1.", "failed x 5 advice x", "no verdict on in the last run: 3.",
		"train x 18 of 30 kept (60.0\u00a0%) test 7 of 10 kept (70.0\u00a0%)",
		"outcome train x test entries 30 10 kept 18 7 removed 8 2 failed 4 1",
		"by the month of x kept post gone refused",
		"2023-11 20 10 0 0 0 0 0 2023-12 0 0 0 0 0 0 0 2024-01 0 0 0 0 0 0 0 2024-02 5 0 0 0 5 0 0 Entries without a date: 4.",
		"L0x name 0x release 14 (35.0\u00a0%) rebuilt 9 (36.0\u00a0%)", "L0x name 0x 14 9",
		"title 1x Entries with each label. Labels an entry on average, without None: 2.00 in the release, 2.00 rebuilt",
		"No: in 1 of 2 tests the label distributions differ between rebuilt and missing entries. " +
			"The other tests have too few rows to tell: with 25 rebuilt and 15 missing entries they see a difference only from",
		"x x 12.35 1 1e-04 0.50 differs rare labels counted as one: x. Few entries",
		"x not tested x", "calm 1.00 2 0.607 0.10 too few to tell",
		"Release: title 0x by title 1x L0x L1x L2x L0x 25 % 7 25 % 7 50 % 14",
		"Rebuilt: title 0x by title 1x L0x L1x L2x L0x 28 % 5 22 % 4 50 % 9",
		"x 25 1.0 MB", "up to 256 0 up to 512 1", "more 15", "40 to 50 3", "90 to 100 20",
		"In 2 kept images no word was read. 4 names",
		"read again on 2026-01-02 03:04 UTC: 11 images. Changed texts: 12; words gained 13, lost 14. Entries with another outcome: 15.",
		"2 entries 3 (75.0\u00a0%) 5 entries 1 (25.0\u00a0%)", "group groups 2 entries 3 5 entries 1",
		"class entries x 4", "in more than one split: 1.", "x x, o2 x, test",
		"had to repeat: 7. It waited 1.2s", "about posts (up to 100 a request) 8", "entry confidence text x 50.0 x",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	d := dataWith(t, "x")
	d.Summary = state.Summary{Entries: 40, Outcomes: map[manifest.Outcome]int{manifest.Kept: 40}}
	d.ByMonth = nil
	d.Thumbnails, d.Texts, d.Drift, d.GroupSizes, d.Straddling, d.LastRun, d.Reread = nil, nil, nil, nil, nil,
		state.LastRun{}, state.LastReread{}
	empty := source(t, d)
	for _, want := range []string{"Nothing: every entry has its answer.", "There is nothing to compare", "0 filtered ",
		"it is no near-duplicate: kept 40", "No entry is a near-duplicate", "no run of this version has ended"} {
		if !strings.Contains(words(empty), want) {
			t.Errorf("an empty report does not say %q", want)
		}
	}
	for _, never := range []string{"<img", "data:image", "Texts of kept", "elete it", "read again on",
		"Outcomes by date", "without a date", `class="notice"`} {
		if strings.Contains(empty, never) {
			t.Errorf("an empty report has %q", never)
		}
	}
}

// testBars measures the page in both themes: the bars of the funnel are as long as their numbers and stand one below
// the other.
func testBars(t *testing.T, chromium *browser.Browser) {
	d := dataWith(t, "x")
	d.Entries, d.Stale, d.Withheld, d.Thumbnails, d.Texts = 40, false, 0, nil, nil
	name := onDisk(t, d)
	for dark, bar := range map[bool]color.RGBA{false: {0x2f, 0x66, 0x90, 255}, true: {0x7f, 0xb4, 0xdc, 255}} {
		img := chromium.Screenshot(t, name, browser.View{Width: 1100, Dark: dark})
		r, g, b, _ := img.At(2, 2).RGBA()
		if level := (r + g + b) / 3 >> 8; dark != (level < 60) || dark == (level > 200) {
			t.Errorf("dark %t: the page's ground has the brightness %d of 255", dark, level)
		}
		got := runs(img, bar)
		want := []float64{1, .75, .75, .75, .625, .6, .6, .625} // of the funnel's 40
		if len(got) < len(want) {
			t.Fatalf("dark %t: %d bars are seen, want those of the funnel: %v", dark, len(got), got)
		}
		for i, share := range want {
			if length := float64(got[i].Dx()) / float64(got[0].Dx()); length < share-.02 || length > share+.02 ||
				got[i].Min.X != got[0].Min.X {
				t.Errorf("dark %t: bar %d is %v, %.3f of the longest, want %.3f", dark, i, got[i], length, share)
			}
			if i > 0 && got[i].Min.Y < got[i-1].Max.Y+4 {
				t.Errorf("dark %t: bar %d at %v stands on the one before, %v", dark, i, got[i], got[i-1])
			}
		}
	}
}

// runs finds the rectangles of a colour that are at least 60 wide, from top to bottom.
func runs(img image.Image, c color.RGBA) []image.Rectangle {
	var found []image.Rectangle
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			end := x
			for end < b.Max.X && color.RGBAModel.Convert(img.At(end, y)) == c {
				end++
			}
			if end-x < 60 {
				x = max(x, end)
				continue
			}
			if n := len(found); n > 0 && found[n-1].Max.Y == y && found[n-1].Min.X == x {
				found[n-1].Max.Y++
			} else {
				found = append(found, image.Rect(x, y, end, y+1))
			}
			x = end
		}
	}
	// Lower ones are the lines below links.
	return slices.DeleteFunc(found, func(r image.Rectangle) bool { return r.Dy() < 4 })
}

// TestFolds: a long list is cut into parts of fifty, none of them empty, and nothing of it is left out.
func TestFolds(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "1-1 ", 50: "1-50 ", 51: "1-50 51-51 ", 120: "1-50 51-100 101-120 "} {
		got, next := "", 0
		for f := range folds(slices.Values(slices.Collect(func(yield func(int) bool) {
			for i := 0; i < n && yield(i); i++ {
			}
		}))) {
			got += fmt.Sprintf("%d-%d ", f.From, f.To)
			for _, item := range f.Items {
				if item != next {
					t.Errorf("%d items: item %d is at the place of %d", n, item, next)
				}
				next++
			}
		}
		if got != want || next != n {
			t.Errorf("%d items are cut into %s, of %d, want %s", n, got, next, want)
		}
	}
}

// TestYears: dates over more than twenty years are counted by year.
func TestYears(t *testing.T) {
	d := dataWith(t, "x")
	d.ByMonth = map[time.Time]map[manifest.Outcome]int{month(1999, 5): {manifest.Kept: 1},
		month(1999, 7): {manifest.Kept: 2}, month(2019, 6): {manifest.Gone: 3}}
	chart := d.Months()
	rows := chart.Table.Rows
	testkit.Same(t, "the first and the last year",
		[][]string{{"1999", "3", "0", "0", "0", "0", "0", "0"}, {"2019", "0", "0", "0", "3", "0", "0", "0"}},
		[][]string{rows[0], rows[len(rows)-1]})
	if len(rows) != 21 || !strings.Contains(chart.Caption, "by the year of x") {
		t.Errorf("%d rows of %q, want 21 years", len(rows), chart.Caption)
	}
}

// TestBalanced: what the report says of the balance rests on how much could be seen.
func TestBalanced(t *testing.T) {
	alike, differs := labels.Drift{P: .6}, labels.Drift{P: .0001}
	tests := []struct {
		rebuilt, all int
		drift        []labels.Drift
		want         string
	}{
		{20, 40, nil, "There is nothing to compare"},
		{20, 40, []labels.Drift{{Untested: "no variation"}}, "Too few rows to tell"},
		{20, 40, []labels.Drift{alike},
			"Too few rows to tell: with 20 rebuilt and 20 missing entries these tests see a difference only from about 44 percentage points"},
		{1039, 1040, []labels.Drift{alike},
			"Too few rows to tell: with 1039 rebuilt and 1 missing entries these tests see a difference only from about 100 percentage"},
		{20, 40, []labels.Drift{alike, differs}, "No: in 1 of 2 tests"},
		{99, 197, []labels.Drift{alike},
			"Yes, as far as these tests can tell: the labels of rebuilt and of missing entries are distributed alike. A difference of 20 percentage"},
		{500, 1000, []labels.Drift{alike, alike, alike, alike},
			"A difference of 11 percentage points or more between the shares of a label would probably be seen"},
		{500, 1000, []labels.Drift{alike, {P: .6, A: 10, B: 500}, {P: .6, A: 4, B: 500}},
			"in 2 of 3 tests: with 500 rebuilt and 4 missing entries these tests see a difference only from about 81 "},
		{500, 1000, []labels.Drift{{P: .0001, A: 4, B: 9}, alike, {P: .6, A: 10, B: 500}},
			"Some of the other tests have too few rows to tell: with 500 rebuilt and 10 missing entries they see a"},
		{500, 1000, []labels.Drift{{Category: "tone", P: .6, A: 10, B: 500}},
			"tone 0.00 0 0.600 0.00 too few to tell 500 rebuilt and 10 missing compared."},
		{500, 1000, []labels.Drift{{Category: "tone", Untested: "no entries", B: 500}},
			"not tested no entries (500 rebuilt and 0 missing compared)"},
	}
	for _, test := range tests {
		d := dataWith(t, "x")
		d.Rebuilt.Entries, d.Labels.Entries, d.Drift = test.rebuilt, test.all, test.drift
		for i, x := range d.Drift {
			if x.A+x.B == 0 { // all entries have an answer
				d.Drift[i].A, d.Drift[i].B = test.all-test.rebuilt, test.rebuilt
			}
		}
		if text := words(source(t, d)); !strings.Contains(text, test.want) {
			_, text, _ = strings.Cut(text, "still balanced? Labels")
			t.Errorf("%d of %d rebuilt: %q is not in %.900s", test.rebuilt, test.all, test.want, text)
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

func writeReread(t *testing.T, d RereadPage) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteReread(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// rereadWith has a text in every place that takes one.
func rereadWith(text string) RereadPage {
	kept, other := state.Conclusion{Outcome: manifest.Kept}, state.Conclusion{Outcome: manifest.Outcome(text)}
	return RereadPage{Tool: text, Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Reread: state.Reread{
		Summary: state.Summary{Release: text, Masked: state.Masked{Names: 1}}, Read: 7, Gained: 3, Lost: 1,
		Texts: []state.TextChange{{ID: "few001", Gained: []string{text, "HOMEWORK", "now"}, Lost: []string{text}},
			{ID: text}},
		Outcomes: []state.OutcomeChange{{ID: "few001", Old: other, New: kept}, {ID: "few002", Old: other, New: kept},
			{ID: text, Old: kept, New: other}}}}
}

// TestReread: the page shows every change, and whatever a text holds, it has the tags that it has
// for a harmless one.
func TestReread(t *testing.T) {
	plain, evil := writeReread(t, rereadWith("plain")), writeReread(t, rereadWith(hostile))
	for _, want := range []string{"Read again: 7 images. Changed texts: 2; words gained 3, lost 1. " +
		"A text in which only names were masked counts as unchanged. Entries with another outcome: 3.",
		"few001 plain plain HOMEWORK now", "before now entries plain kept 2 kept plain 1", "few002 plain kept",
		"Made 2026-01-02 03:04 UTC", "delete it when it has been read"} {
		if !strings.Contains(words(plain), want) {
			t.Errorf("the page does not say %q:\n%s", want, words(plain))
		}
	}
	if diff := cmp.Diff(skeleton(plain), skeleton(evil)); diff != "" {
		t.Errorf("with a hostile text the page has other tags (-plain +hostile):\n%s", diff)
	}
	if !strings.Contains(evil, shown) || strings.ContainsAny(evil, "\x1b\x07\u202e") {
		t.Error("the hostile text is not shown, or with its control characters")
	}
	if page := writeReread(t, RereadPage{}); strings.Contains(page, "<table") ||
		strings.Count(page, "<p>None.</p>") != 2 {
		t.Errorf("nothing changed, and the page is\n%s", page)
	}
	full := errors.New("full")
	if err := WriteReread(writerFunc(func([]byte) (int, error) { return 0, full }), RereadPage{}); !errors.Is(err, full) {
		t.Errorf("WriteReread to a full disk = %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
