package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/page/chromiumtest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/workspace"
)

// outcomeRow matches a row of the funnel's table as a browser gives it back.
var outcomeRow = regexp.MustCompile(`<tr><th scope="row">([a-z_]+)</th><td class="number">(\d+)</td><td class="number">[\d.]+ %</td></tr>`)

// demoReport opens the report in a browser: its numbers are those of outcomes.csv, and it asks for nothing.
func demoReport(t *testing.T, s *site, _ []redditemu.Post) {
	if f := s.do(nil, "report", "-w", s.workspace); f.code != exitDone {
		t.Fatalf("report = exit %d\n%s", f.code, f.stderr)
	}
	want := map[string]int{}
	for _, o := range manifest.Outcomes() {
		want[string(o)] = 0
	}
	for _, r := range s.outcomes() {
		want[string(r.Outcome)]++
	}
	v := chromiumtest.Open(t, filepath.Join(s.workspace, "report.html"))
	if len(v.Console) > 0 || len(v.Requests) > 0 {
		t.Errorf("console %q, requests %q, want none", v.Console, v.Requests)
	}
	got := map[string]int{}
	for _, m := range outcomeRow.FindAllStringSubmatch(v.DOM, -1) {
		got[m[1]], _ = strconv.Atoi(m[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-outcomes.csv +report):\n%s", diff)
	}
	for _, sure := range []string{"It ended on", "http_503", "run the same command again", "Figurative", "same_text"} {
		if !strings.Contains(v.DOM, sure) {
			t.Errorf("the report does not say %q", sure)
		}
	}
	if strings.Contains(v.DOM, "<img") {
		t.Error("an image is in a report that was not asked for any")
	}
	s.reportElsewhere(t)
	s.retryMisspelt(t)
}

// reportElsewhere makes a report with content, which must not land in the workspace, beside a
// process that holds the workspace.
func (s *site) reportElsewhere(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"--thumbnails"}, {"--texts"}, {"--thumbnails", "--out", filepath.Join(s.workspace, "look.html")},
		{"--out", filepath.Join(s.workspace, "images", "look.html")}} {
		if f := s.do(nil, append([]string{"report", "-w", s.workspace}, args...)...); f.code != exitUsage {
			t.Errorf("report %v = exit %d, want %d: nothing may be written into the workspace", args, f.code, exitUsage)
		}
	}
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if f := s.do(nil, "report", "-w", s.workspace); f.code != exitInUse || !strings.Contains(f.stderr, "--out FILE") {
		t.Errorf("report of a workspace in use = exit %d\n%s", f.code, f.stderr)
	}
	out := filepath.Join(t.TempDir(), "look.html")
	if f := s.do(nil, "report", "-w", s.workspace, "--out", out, "--thumbnails", "--texts"); f.code != exitDone {
		t.Fatalf("report --out = exit %d\n%s", f.code, f.stderr)
	}
	page, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, r := range s.outcomes() {
		if r.Outcome == manifest.Kept {
			kept++
		}
	}
	if n := strings.Count(string(page), "<img loading=\"lazy\""); n != kept {
		t.Errorf("%d thumbnails, want one for each of the %d kept images", n, kept)
	}
	if !strings.Contains(string(page), "delete it when it has been read") {
		t.Error("a report with content does not say that it has to be deleted")
	}
}

// retryMisspelt retries a reason that nothing ended in: it is refused before anything is asked.
func (s *site) retryMisspelt(t *testing.T) {
	t.Helper()
	asked := len(s.emulator.Requests())
	f := s.do(s.env(), s.args("--retry", "htp_404")...)
	if f.code != exitUsage || !strings.Contains(f.stderr, "htp_404") || !strings.Contains(f.stderr, "http_503") || len(s.emulator.Requests()) != asked {
		t.Errorf("run --retry htp_404 = exit %d after %d requests\n%s", f.code, len(s.emulator.Requests())-asked, f.stderr)
	}
}
