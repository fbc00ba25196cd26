package rehydrate_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNotices: what is handed out in programs goes with the licence of each module that is compiled into them.
func TestNotices(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the licences of all modules")
	}
	out, err := exec.CommandContext(t.Context(), "scripts/notices").Output()
	if err != nil {
		t.Fatalf("scripts/notices: %v", err)
	}
	_, notices, _ := strings.Cut(string(out), "\n")
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}",
		"./cmd/rehydrate", "./cmd/ocr")
	modules, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.FieldsFuncSeq(string(modules), func(r rune) bool { return r == '\n' }) {
		_, text, found := strings.Cut(notices, "\n"+module+": ")
		text, _, _ = strings.Cut(text, "\n\n====")
		if !found || len(text) < 200 {
			t.Errorf("%s has the notice %q", module, text)
		}
	}
}
