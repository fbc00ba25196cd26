package audit

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
)

// TestOwnListsMayNamePosts lays lists of this program beside the workspace, as they are and packed, and under a
// temporary name into one whose last run was killed: removed posts stand there by right, and anything else in them is
// found.
func TestOwnListsMayNamePosts(t *testing.T) {
	w := newWorld(t, false, false)
	log, err := os.ReadFile(filepath.Join(w.ws, "audit", "records.jsonl"))
	testkit.OK(t, err)
	if !bytes.Contains(log, []byte(goneJPEG)) {
		t.Fatalf("the log does not name %s", goneJPEG)
	}
	var statement bytes.Buffer
	r := w.audit(t, w.ws)
	r.Posts = append(r.Posts, &AuditedPost{ID: goneJPEG})
	testkit.OK(t, r.WriteJSON(&statement))
	const header = "id,image,split,outcome,reason,detail,duplicate_of\n"
	const tombstones = "id,state,time\n" + goneJPEG + ",removed,2030-01-02T03:04:05Z\n"
	outcomes := header + goneJPEG + ",0,train,removed,moderator,,\n" + live1 + ",0,train,kept,,,\n"
	killed := *w
	killed.ws = filepath.Join(t.TempDir(), "ws")
	testkit.OK(t, os.CopyFS(killed.ws, os.DirFS(w.ws)), os.Remove(filepath.Join(killed.ws, state.SealFile)))
	for _, c := range []struct {
		what, body       string
		beside, inMaking bool // whether it accuses there
	}{
		{"outcomes", outcomes, false, false},
		{"outcomes by which a removed post is kept", strings.Replace(outcomes, "removed,moderator", "kept,", 1), true,
			true},
		{"outcomes with a line of another kind", outcomes + "t3_" + goneJPEG + "\n", true, true},
		{"outcomes cut off in a line", outcomes + goneJPEG + ",0,tr", true, false},
		{"tombstones", tombstones, false, false},
		{"a table of other states", strings.Replace(tombstones, "removed", "live", 1), true, false},
		{"a table with a column more", strings.NewReplacer("time\n", "time,title\n", "Z\n", "Z,a\n").Replace(tombstones),
			true, false},
		{"tombstones with a line of another kind", tombstones + "t3_" + goneJPEG + "\n", true, false},
		{"tombstones with an image behind them", tombstones + b64(w.images[goneJPEG]) + "\n", true, true},
		{"records of the log", string(log), false, false},
		{"records of the log with a line of another kind", string(log) + "t3_" + goneJPEG + "\n", true, true},
		{"a statement", statement.String(), false, false},
		{"a statement with another key", strings.Replace(statement.String(), "{\n", "{\n  \"t3_"+goneJPEG+"\": 1,\n",
			1), true,
			true},
		{"ids alone", "t3_" + goneJPEG + "\n", true, true},
	} {
		for _, place := range []string{"as it is", "packed", "in making"} {
			w, name, want, body := w, filepath.Join(t.TempDir(), "list"), c.beside, []byte(c.body)
			files := []string{name}
			switch place {
			case "packed":
				body = zipOf("lists.tgz", gzipOf(tarOf("list.csv", body)))
			case "in making":
				w, want, files = &killed, c.inMaking, nil
				name = filepath.Join(w.ws, ".tmp-list")
			}
			testkit.OK(t, os.WriteFile(name, body, 0o600))
			r := w.audit(t, w.ws, files...)
			testkit.OK(t, os.Remove(name))
			got := slices.ContainsFunc(r.Findings,
				func(f Finding) bool { return strings.Contains(f.Where, filepath.Base(name)) })
			if got != want {
				t.Errorf("%s, %s: accused %t, want %t: %+v", c.what, place, got, want, r.Findings)
			}
		}
	}
}

// TestListsElsewhere finds a list of this program where it is no file: in a cell, and in an archive that somebody laid
// into the workspace; and finds the name of a removed post over one.
func TestListsElsewhere(t *testing.T) {
	w := newWorld(t, false, false)
	const tombstones = "id,state,time\n" + goneJPEG + ",removed,2030-01-02T03:04:05Z\n"
	found := t.TempDir()
	for name, body := range map[string][]byte{
		filepath.Join(found, "cell.csv"):  []byte("n,list\n1,\"" + tombstones + "\"\n"),
		filepath.Join(found, "named.zip"): zipOf(goneJPEG+".csv", []byte(tombstones)),
		filepath.Join(w.ws, "old.zip"):    zipOf("tombstones.csv", []byte(tombstones)),
	} {
		testkit.OK(t, os.WriteFile(name, body, 0o600))
		r := w.audit(t, w.ws, found)
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.ID == goneJPEG && strings.Contains(f.Where, filepath.Base(name))
		}) {
			t.Errorf("%s: %+v", filepath.Base(name), r.Findings)
		}
	}
}

// TestPackedWorkspace finds nothing in a copy of a workspace in an archive, of which every removed post is purged.
func TestPackedWorkspace(t *testing.T) {
	w, name := newWorld(t, false, false), filepath.Join(t.TempDir(), "ws.tar")
	file, err := os.Create(name)
	testkit.OK(t, err)
	out := tar.NewWriter(file)
	testkit.OK(t, out.AddFS(os.DirFS(w.ws)), out.Close(), file.Close())
	r := w.audit(t, w.ws, name)
	for _, f := range r.Findings {
		if strings.Contains(f.Where, name) {
			t.Errorf("found %+v", f)
		}
	}
}
