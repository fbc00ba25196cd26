package audit

import (
	"bytes"
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
	testkit.OK(t, r.WritePage(&b, "d1gest", "the log"))
	return b.String()
}

// TestPage: the page says what the report holds, and escapes it.
func TestPage(t *testing.T) {
	at, record := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), int64(7)
	due := at.Add(48 * time.Hour)
	evil := `"><script>`
	full := written(t, Report{Verdict: Fail, Time: at.Add(time.Hour), Scope: Scope{Release: evil,
		Files: []*AuditedFile{{Name: evil, Size: 9, Rows: 3, SHA256: SHA256{0xab, 0xc0}}}},
		Findings: []Finding{{Where: evil + " > row 3", Kinds: []FindingKind{FoundImage, FoundRow}, ID: "p1",
			What: []string{"its image, byte for byte", itsRow}, By: "removed, by the log", Do: "delete it",
			Removal: Removal{"taken down on request", &at, &due}}},
		Open: []Open{{Where: "w", ID: "p2", What: "no answer", Do: "ask"}},
		Duties: []Duty{{What: "a copy owes", Do: "purge it", Due: &at,
			Late: true}}, Limits: []string{"a limit"}, Notes: []string{"a note"},
		Known: Known{MustGo: 1}, Totals: map[string]int{"live": 2, "held": 1, "removed": 1},
		Posts: []*AuditedPost{{ID: "p1", Standing: Standing{State: "removed", Reason: "moderator", Because: "reddit",
			MustGo: true}, LastLive: &at, Record: &record},
			{ID: "p2", Standing: Standing{}}, {ID: "p4", Standing: Standing{State: "held", Reason: "quarantine"}},
			{ID: "p3", Standing: Standing{State: "live", MustGo: true}}}})
	text := regexp.MustCompile(`\s+`).ReplaceAllString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(full, " "), " ")
	for _, want := range []string{"Audit of &#34;&gt;&lt;script&gt;",
		"FAIL 1 removed post is still here, in 1 place: 1 image. 1 thing looks like a removed post&#39;s. Settle this first",
		"1 removed post found, in 1 place 1 files or other things not decided 1 overdue",
		"0 of 1 removed posts looked for by image too 1 files looked at",
		"p1 taken down on request 2 Jan 2026, 03:04 UTC 4 Jan 2026, 03:04 UTC",
		"id 1 of 1 its unchanged image 0 of 1 its changed image 0 of 1",
		"row 3 of &#34;&gt;&lt;script&gt; p1 its row, with its image, byte for byte removed, by the log delete it",
		"w p2 no answer ask",
		"a copy owes 2026-01-02T03:04:05Z late purge it", "Can&#39;t be told a limit", "Note a note", "On record the log",
		"live 2 of these with a tombstone 1 removed 1",
		"&#34;&gt;&lt;script&gt; 9 3 abc0000000000000000000000000000000000000000000000000000000000000",
		"statement sha256 d1gest", "show 4 rows",
		"p1 removed (moderator) reddit yes 2026-01-02T03:04:05Z 7 p2 never asked", "p4 refused (quarantine)",
		"refused (it is there, but the policy does not allow it, as in quarantine) 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(full, "<script") || !strings.Contains(full, `class="bad">FAIL`) {
		t.Errorf("the page:\n%s", full)
	}
	for _, heading := range []string{"Record of this audit", "What was found", "Every file that was looked at"} {
		if strings.Count(text, heading) != 1 {
			t.Errorf("the page says %q twice", heading)
		}
	}
	if clear := written(t, Report{Verdict: Pass}); !strings.Contains(clear, `class="good">PASS`) ||
		strings.Contains(clear, "What was found") || strings.Contains(clear, "What is open") {
		t.Errorf("the page of an audit without findings:\n%s", clear)
	}
}

// TestBrowser looks at pages in Chromium: the edge of a verdict has its colour, and digests and paths of any length
// fit.
func TestBrowser(t *testing.T) {
	chromium := browser.Start(t)
	long := Finding{Where: strings.Repeat("a_long_folder/", 9) + "train-00000-of-00001.parquet", ID: "p1",
		Kinds: []FindingKind{FoundImage},
		What:  []string{"sha256 " + strings.Repeat("0123456789abcdef", 4)}}
	file := &AuditedFile{Name: long.Where, Size: 9, Rows: 3, SHA256: SHA256{1: 0xff}}
	for verdict, edge := range map[Verdict]color.RGBA{Fail: {0xa3, 0x2a, 0x2a, 255}, Pass: {0x2b, 0x6e, 0x3f, 255},
		Undecided: {0xb4, 0x55, 0x2d, 255}} {
		r := Report{Verdict: verdict, Scope: Scope{Release: "R", Files: []*AuditedFile{file}},
			Posts:    []*AuditedPost{{ID: "p1", Standing: Standing{State: "removed"}}},
			Findings: []Finding{long}, Open: []Open{{Where: long.Where,
				What: long.What[0]}}, Duties: []Duty{{What: long.Where}}, Totals: map[string]int{"live": 2}}
		name := filepath.Join(t.TempDir(), strings.ReplaceAll(string(verdict), " ", "")+".html")
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
