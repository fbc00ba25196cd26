package audit

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPage: the page says what the report holds, and escapes it.
func TestPage(t *testing.T) {
	at, record := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), int64(7)
	write := func(r Report) string {
		var b bytes.Buffer
		if err := r.WritePage(&b, "d1gest"); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	evil := `"><script>`
	full := write(Report{Verdict: Fail, Scope: Scope{Release: evil, Files: []AuditedFile{{Name: evil, Size: 9, Rows: 3, SHA256: "abc"}}},
		Findings: []Finding{{Where: evil, Kind: FoundRow, ID: "p1", What: "a row"}}, Gaps: []Finding{{Where: "w", ID: "p2", What: "no answer"}},
		Obligations: []Finding{{Where: "copy", What: "purge it", Due: &at}}, Notes: []string{"a note"}, Totals: map[string]int{"live": 2, "removed": 1},
		Posts: []AuditedPost{{ID: "p1", State: "removed", Reason: "moderator", Because: "reddit", MustGo: true, LastLive: &at, Record: &record}, {ID: "p2"}}})
	text := regexp.MustCompile(`\s+`).ReplaceAllString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(full, " "), " ")
	for _, want := range []string{"Audit of &#34;&gt;&lt;script&gt;", "FAIL 1 finding", "&#34;&gt;&lt;script&gt; row p1 a row", "w p2 no answer",
		"copy purge it 2026-01-02T03:04:05Z", "a note", "live 2 removed 1", "&#34;&gt;&lt;script&gt; 9 3 abc", "statement, sha256 d1gest", "Nothing is known of any post: ask Reddit", "show 2 rows",
		"p1 removed (moderator) reddit yes 2026-01-02T03:04:05Z 7 p2 never asked"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(full, "<script") || !strings.Contains(full, `class="bad">FAIL`) {
		t.Errorf("the page:\n%s", full)
	}
	if clear := write(Report{Verdict: Pass}); !strings.Contains(clear, `class="good">PASS`) || strings.Count(clear, "None.") != 3 || strings.Contains(clear, "Notes") {
		t.Errorf("the page of an audit without findings:\n%s", clear)
	}
}
