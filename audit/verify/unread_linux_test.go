package verify_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rehydrate/audit/verify"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
)

// TestUnread: what merely cannot be read is to be made readable. Nothing is given up for it, and nothing is said of
// other files that only it accounts for.
func TestUnread(t *testing.T) {
	dir := filled(t)
	for _, sealed := range []bool{true, false} {
		if !sealed {
			testkit.OK(t, os.Remove(filepath.Join(dir, "audit/seal.json")))
		}
		before, err := verify.Workspace(t.Context(), dir)
		testkit.OK(t, err)
		for _, name := range []string{"state.db", "images/1q/1q2wbv.png", "outcomes.csv", "log.key",
			"report.html", "audit/seal.json", "audit/records.jsonl", "audit/checkpoint", "audit/log.pub"} {
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			if err != nil || !sealed && name == "report.html" { // without a seal nothing knows it
				continue
			}
			testkit.OK(t, os.Chmod(path, 0))
			var r verify.Report
			testkit.Forbidden(t, func() { r, err = verify.Workspace(t.Context(), dir) })
			testkit.OK(t, err, os.Chmod(path, info.Mode()))
			if r.Whole {
				t.Errorf("%s, sealed %t: whole", name, sealed)
			}
			for _, d := range r.Damage {
				if giveUp.MatchString(d.Mend) || !strings.HasPrefix(d.Mend, "keep it, and make it readable") {
					t.Errorf("%s, sealed %t: %+v", name, sealed, d)
				}
			}
			for _, note := range r.Notes {
				if giveUp.MatchString(note) && !slices.Contains(before.Notes, note) {
					t.Errorf("%s, sealed %t: %s", name, sealed, note)
				}
			}
		}
	}
}

// giveUp matches advice that costs a file.
var giveUp = regexp.MustCompile(`delete|move|takes it away|writes it again|put back`)

// filled returns a sealed workspace with an image, an outcome and a log.
func filled(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
	testkit.OK(t, err)
	entry := manifest.Entry{Key: manifest.Key{ID: "1q2wbv"}, Line: 2, Split: "train"}
	testkit.OK(t, ws.Load(t.Context(), workspace.Binding{Release: "r", ReleaseDigest: "r", ManifestDigest: "m"},
		func(yield func(manifest.Entry, error) bool) { yield(entry, nil) }, nil))
	testkit.OK(t, ws.StoreImage(t.Context(), entry.Key, []byte("an image"), workspace.Image{Format: "png"}))
	testkit.OK(t, ws.Note(t.Context(), auditlog.Event{Kind: auditlog.Run, Phase: auditlog.Started}))
	for name, text := range map[string]string{"report.html": "a report",
		manifest.OutcomesName: "id,image,split,outcome,reason,detail,duplicate_of\n"} {
		write := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
		_, err := ws.Replace(t.Context(), name, write, nil)
		testkit.OK(t, err)
	}
	testkit.OK(t, ws.Close())
	r, err := verify.Workspace(t.Context(), dir)
	testkit.OK(t, err)
	if !r.Whole || r.Images != 1 {
		t.Fatalf("%+v", r)
	}
	return dir
}
