package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// TestOwnListsMayNamePosts lays lists of this program beside the workspace, and under a temporary name into it: removed
// posts stand there by right, and anything else in them is found.
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
	outcomes := header + goneJPEG + ",0,train,removed,moderator,,\n" + live1 + ",0,train,kept,,,\n"
	for _, c := range []struct {
		what, body       string
		beside, inMaking bool // whether it accuses there
	}{
		{"outcomes", outcomes, false, false},
		{"outcomes by which a removed post is kept", strings.Replace(outcomes, "removed,moderator", "kept,", 1), true,
			true},
		{"outcomes with a line of another kind", outcomes + "t3_" + goneJPEG + "\n", true, true},
		{"outcomes cut off in a line", outcomes + goneJPEG + ",0,tr", true, false},
		{"tombstones", "id,state,time\n" + goneJPEG + ",removed,2030-01-02T03:04:05Z\n", false, false},
		{"records of the log", string(log), false, false},
		{"records of the log with a line of another kind", string(log) + "t3_" + goneJPEG + "\n", true, true},
		{"a statement", statement.String(), false, false},
		{"a statement with another key", strings.Replace(statement.String(), "{\n", "{\n  \"t3_"+goneJPEG+"\": 1,\n",
			1), true,
			true},
		{"ids alone", "t3_" + goneJPEG + "\n", true, true},
	} {
		for _, inMaking := range []bool{false, true} {
			name, want := filepath.Join(t.TempDir(), "list"), c.beside
			files := []string{name}
			if inMaking {
				name, want, files = filepath.Join(w.ws, ".tmp-list"), c.inMaking, nil
			}
			testkit.OK(t, os.WriteFile(name, []byte(c.body), 0o600))
			r := w.audit(t, w.ws, files...)
			testkit.OK(t, os.Remove(name))
			got := slices.ContainsFunc(r.Findings,
				func(f Finding) bool { return strings.Contains(f.Where, filepath.Base(name)) })
			if got != want {
				t.Errorf("%s, in making %t: accused %t, want %t: %+v", c.what, inMaking, got, want, r.Findings)
			}
		}
	}
}
