package audit

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestLeftOfAKilledExport: an audit looks into what a killed export left, whether the record of the copy is open or was
// closed while the folder was out of reach.
func TestLeftOfAKilledExport(t *testing.T) {
	w := newWorld(t, false, false)
	left := filepath.Join(w.dir, ".given.rehydrate-unfinished")
	shown := filepath.Join(left, "train", goneJPEG+".jpg")
	testkit.OK(t, os.MkdirAll(filepath.Dir(shown), 0o700), os.WriteFile(shown, w.images[goneJPEG], 0o600))
	for told, open := range map[string]bool{"": false, "never finished": false, "it is away": true} {
		ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{Now: w.config.Now})
		testkit.OK(t, err)
		testkit.OK(t, ws.SetCopy(t.Context(), workspace.Copy{Path: filepath.Join(w.dir, "given"), Note: "a colleague",
			Format: "folder", Made: w.config.Now(), Told: told, Open: open}), ws.Close())
		r := w.audit(t, w.ws)
		at := slices.IndexFunc(r.Findings, func(f Finding) bool {
			return f.ID == goneJPEG && f.Where == filepath.ToSlash(shown) && f.Do == doPurge
		})
		testkit.Same(t, told+": verdict, found", []any{Fail, true}, []any{r.Verdict, at >= 0})
		for _, o := range r.Open {
			if strings.Contains(o.What, "is not there") {
				t.Errorf("%q: %+v", told, o)
			}
		}
	}
}

// TestCopyThatIsNamed: a registered copy, or the workspace, that the auditor names as well is looked at once.
func TestCopyThatIsNamed(t *testing.T) {
	w := newWorld(t, false, false)
	link := filepath.Join(w.dir, "link")
	testkit.OK(t, os.Symlink(w.copied, link))
	want := w.audit(t, w.ws)
	in := map[string]string{w.copied: "registered copy " + w.copied, link: "registered copy " + w.copied,
		filepath.Join(w.copied, "README.md"): "registered copy " + w.copied, w.ws: "workspace " + w.ws,
		filepath.Join(w.ws, state.ImagesDir): "workspace " + w.ws}
	for name, where := range in {
		r := w.audit(t, w.ws, name)
		testkit.Same(t, name+": places", want.Scope.Looked, r.Scope.Looked)
		if said := strings.Join(r.Notes, "\n"); !strings.Contains(said, "lies in the "+where) {
			t.Errorf("%s: notes %q", name, said)
		}
	}
}

// TestRowsThatThePolicyRefuses: rows of a copy whose images the policy refuses, by the last run or by what is on record
// of them, are a duty until the copy is closed. Removed posts are findings instead.
func TestRowsThatThePolicyRefuses(t *testing.T) {
	w := newWorld(t, false, false)
	for _, tt := range []struct {
		name, refused string
		side          int
		closed        bool
		want          []string
	}{
		{"nothing", "", 10000, false, nil},
		{"images that are too large", "", 1, false, []string{live1, live2}},
		{"a host that was refused", live2, 10000, false, []string{live2}},
		{"a closed copy", live2, 1, true, nil},
	} {
		ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{Now: w.config.Now})
		c := workspace.Copy{Path: filepath.Join(w.dir, "given"), Note: "a colleague", Format: "folder", Made: w.config.Now(),
			Rows: []string{live1, live2, goneJPEG}}
		if tt.closed {
			c.Told = "destroyed"
		}
		testkit.OK(t, err, ws.SetCopy(t.Context(), c))
		if tt.refused != "" {
			testkit.OK(t, ws.SetTrouble(t.Context(), manifest.Key{ID: manifest.PostID(tt.refused)}, workspace.Trouble{
				Beside: workspace.Out, Outcome: manifest.Refused, Reason: "host_not_allowed"}))
		}
		testkit.OK(t, ws.Close())
		w.config.Policy.Images.MaxSide = tt.side
		var got []string
		for _, d := range w.audit(t, w.ws).Duties {
			if d.Kind == DutyHeld {
				got = append(got, d.Posts...)
			}
		}
		testkit.Same(t, tt.name, tt.want, got)
	}
}

// TestRemovalThatWasCutOff: a file of the dataset or of a copy that a removal has written, and not put on record yet,
// is the one on record. Another one is not.
func TestRemovalThatWasCutOff(t *testing.T) {
	w := newWorld(t, false, false)
	const name, in = "README.md", "dataset/README.md"
	given, body := filepath.Join(w.dir, "given"), []byte("a card\n")
	testkit.OK(t, os.MkdirAll(given, 0o700), os.WriteFile(filepath.Join(given, name), body, 0o600))
	for _, next := range []string{state.SHA256(body), state.SHA256([]byte("another card\n"))} {
		ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{Now: w.config.Now})
		testkit.OK(t, err)
		_, err = ws.Replace(t.Context(), in, func(out io.Writer) error {
			_, err := out.Write(body)
			return err
		}, nil)
		was := workspace.File{Name: in, SHA256: state.SHA256([]byte("a card before\n")), Size: 14}
		of := was
		of.Name = name
		testkit.OK(t, err, state.WriteNote(t.Context(), ws, state.ExportNote{Files: []workspace.File{was},
			Next: map[string]string{in: next}}),
			ws.SetCopy(t.Context(), workspace.Copy{Path: given, Note: "a colleague", Format: "folder", Made: w.config.Now(),
				Files: []workspace.File{of}, Next: map[string]string{name: next}}), ws.Close())
		r := w.audit(t, w.ws)
		var got []string
		for _, f := range r.Findings {
			if slices.Contains(f.Kinds, FoundRecord) {
				got = append(got, f.Where)
			}
		}
		for _, o := range r.Open {
			if strings.Contains(o.What, "changed it since it was exported") {
				got = append(got, o.Where)
			}
		}
		want := []string{in, filepath.ToSlash(filepath.Join(given, name))}
		if next == state.SHA256(body) {
			want = nil
		}
		testkit.Same(t, "not as on record", want, got)
	}
}

// TestNamedAfterInACopy: an image of a post that stays, in a file with the name of one that must be gone, may be
// renamed where nobody keeps a record of files. In a copy that would leave it open.
func TestNamedAfterInACopy(t *testing.T) {
	w := newWorld(t, false, false)
	body, name := w.images[live1], "train/"+gonePNG+".webp"
	for _, tt := range []struct {
		what, in, recorded string
		want               string
	}{
		{"a file as it was exported", "given", state.SHA256(body), doPurge},
		{"one that somebody changed", "given", state.SHA256([]byte("before")), "delete the copy, and make a new one: no " +
			"purge changes a file that somebody changed"},
		{"one that somebody added", "given", "", "delete the file: no export wrote it, so no purge changes it"},
		{"found elsewhere", "found", "", "rename the file, or delete it"},
		{"added to the workspace", "ws", "", doAway},
	} {
		dir := map[string]string{"given": filepath.Join(w.dir, "given"), "found": t.TempDir(), "ws": w.ws}[tt.in]
		file := filepath.Join(dir, name)
		testkit.OK(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, body, 0o600))
		c := workspace.Copy{Path: filepath.Join(w.dir, "given"), Note: "a colleague", Format: "folder", Made: w.config.Now()}
		if tt.recorded != "" {
			c.Files = []workspace.File{{Name: name, SHA256: tt.recorded, Size: int64(len(body))}}
		}
		ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{Now: w.config.Now})
		testkit.OK(t, err, ws.SetCopy(t.Context(), c), ws.Close())
		var named []string
		if tt.in == "found" {
			named = []string{dir}
		}
		var got []string
		for _, f := range w.audit(t, w.ws, named...).Findings {
			if strings.Contains(f.Thing(), "an image of "+live1+", which stays") {
				got = append(got, f.Do)
			}
		}
		testkit.OK(t, os.Remove(file))
		testkit.Same(t, tt.what, []string{tt.want}, got)
	}
}
