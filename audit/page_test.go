package audit

import (
	"bytes"
	"encoding/json"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/browser"
)

func written(t *testing.T, r Report) string {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, r.WritePage(&b, "d1gest"))
	return b.String()
}

// TestWriteJSON: a statement is what encoding/json makes of the report, though its files and posts are written one by one.
func TestWriteJSON(t *testing.T) {
	files := []*AuditedFile{{Name: `"files": null`, Size: 9}, {Name: "<b>"}}
	posts := []*AuditedPost{{ID: "p1", Standing: &Standing{State: "removed", Reason: `"posts": null`, MustGo: true}}, {ID: "p2", Standing: &Standing{}}}
	for _, r := range []Report{
		{Scope: Scope{Files: []*AuditedFile{}}, Posts: []*AuditedPost{}},
		{Scope: Scope{Release: `"files": null`, Files: files[:1]}, Findings: []Finding{{What: `"files": null, "posts": null`}}, Posts: posts},
		{Scope: Scope{Files: files}, Notes: []string{`"posts": null`}, Posts: posts[:1]},
	} {
		want, err := json.MarshalIndent(r, "", "  ")
		testkit.OK(t, err)
		var b bytes.Buffer
		testkit.OK(t, r.WriteJSON(&b))
		testkit.Same(t, "the statement", string(want)+"\n", b.String())
	}
}

// TestPage: the page says what the report holds, and escapes it.
func TestPage(t *testing.T) {
	at, record := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), int64(7)
	evil := `"><script>`
	full := written(t, Report{Verdict: Fail, Scope: Scope{Release: evil, Files: []*AuditedFile{{Name: evil, Size: 9, Rows: 3, SHA256: SHA256{0xab, 0xc0}}}},
		Findings: []Finding{{Where: evil, Kind: FoundRow, ID: "p1", What: "a row"}}, Gaps: []Finding{{Where: "w", ID: "p2", What: "no answer"}},
		Obligations: []Finding{{Where: "copy", What: "purge it", Due: &at}}, Notes: []string{"a note"}, Totals: map[string]int{"live": 2, "removed": 1},
		Posts: []*AuditedPost{{ID: "p1", Standing: &Standing{State: "removed", Reason: "moderator", Because: "reddit", MustGo: true}, LastLive: &at, Record: &record},
			{ID: "p2", Standing: &Standing{}}}})
	text := regexp.MustCompile(`\s+`).ReplaceAllString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(full, " "), " ")
	for _, want := range []string{"Audit of &#34;&gt;&lt;script&gt;", "FAIL 1 finding", "&#34;&gt;&lt;script&gt; row p1 a row", "w p2 no answer",
		"copy purge it 2026-01-02T03:04:05Z", "a note", "live 2 removed 1", "&#34;&gt;&lt;script&gt; 9 3 abc0000000000000000000000000000000000000000000000000000000000000", "statement, sha256 d1gest", "Nothing is known of any post: ask Reddit", "show 2 rows",
		"p1 removed (moderator) reddit yes 2026-01-02T03:04:05Z 7 p2 never asked"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(full, "<script") || strings.Contains(full, "<caption") || !strings.Contains(full, `class="bad">FAIL`) {
		t.Errorf("the page:\n%s", full)
	}
	for _, heading := range []string{"Who, when and what", "Findings", "Every file that was looked at"} {
		if strings.Count(text, heading) != 1 {
			t.Errorf("the page says %q twice", heading)
		}
	}
	if clear := written(t, Report{Verdict: Pass}); !strings.Contains(clear, `class="good">PASS`) || strings.Count(clear, "None.") != 3 || strings.Contains(clear, "Notes") {
		t.Errorf("the page of an audit without findings:\n%s", clear)
	}
}

// TestBrowser looks at pages in Chromium: the edge of a verdict has its colour, and digests and paths of any length fit.
func TestBrowser(t *testing.T) {
	chromium := browser.Start(t)
	long := Finding{Where: strings.Repeat("a_long_folder/", 9) + "train-00000-of-00001.parquet", ID: "p1", What: "sha256 " + strings.Repeat("0123456789abcdef", 4)}
	file := &AuditedFile{Name: long.Where, Size: 9, Rows: 3, SHA256: SHA256{1: 0xff}}
	for verdict, edge := range map[Verdict]color.RGBA{Fail: {0xa3, 0x2a, 0x2a, 255}, Pass: {0x2b, 0x6e, 0x3f, 255}, Incomplete: {0xb4, 0x55, 0x2d, 255}} {
		r := Report{Verdict: verdict, Scope: Scope{Release: "R", Files: []*AuditedFile{file}}, Posts: []*AuditedPost{{ID: "p1", Standing: &Standing{State: "removed"}}},
			Findings: []Finding{long}, Gaps: []Finding{long}, Obligations: []Finding{long}, Totals: map[string]int{"live": 2}}
		name := filepath.Join(t.TempDir(), string(verdict)+".html")
		testkit.OK(t, os.WriteFile(name, []byte(written(t, r)), 0o600))
		img := chromium.Screenshot(t, name, browser.View{Width: 1280})
		seen := false
		for y := range img.Bounds().Dy() {
			seen = seen || color.RGBAModel.Convert(img.At(146, y)) == edge // the left edge of the notice
		}
		if !seen {
			t.Errorf("the edge of %s is not %v", verdict, edge)
		}
		if verdict == Fail {
			testkit.Same(t, "faults of the page", []string(nil), chromium.Faults(t, name))
		}
	}
}
