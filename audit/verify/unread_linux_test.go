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

// TestUnreadFolder: of a folder that cannot be read one line says that nothing in it was checked. Nothing else is said
// of what is in it.
func TestUnreadFolder(t *testing.T) {
	dir := filled(t)
	for _, sealed := range []bool{true, false} {
		if !sealed {
			testkit.OK(t, os.Remove(filepath.Join(dir, "audit/seal.json")))
		}
		for _, name := range []string{"images", "images/1q", "audit"} {
			for _, rights := range []os.FileMode{0, 0o400, 0o100} {
				path := filepath.Join(dir, name)
				testkit.OK(t, os.Chmod(path, rights))
				var r verify.Report
				var err error
				testkit.Forbidden(t, func() { r, err = verify.Workspace(t.Context(), dir) })
				testkit.OK(t, err, os.Chmod(path, 0o700))
				if len(r.Damage) != 1 || r.Whole || r.Damage[0].Where != name ||
					!strings.HasPrefix(r.Damage[0].What, "this folder cannot be read, so nothing in it was checked: ") ||
					!strings.HasPrefix(r.Damage[0].Mend, "keep it, and make it readable: check the rights of the folder") {
					t.Errorf("%s with the rights %o, sealed %t: %+v", name, rights, sealed, r)
				}
				for _, note := range r.Notes {
					if strings.Contains(note, name) {
						t.Errorf("%s with the rights %o, sealed %t: note %s", name, rights, sealed, note)
					}
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
