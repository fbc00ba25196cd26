package scratch

import (
	"io"
	"os"
	"testing"

	"rehydrate/internal/testkit"
)

// TestFile writes a file, reads it back, and finds no name of it after it was closed.
func TestFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR")) // that of Windows
	f, err := File("scratch-")
	testkit.OK(t, err)
	_, err = f.WriteString("content")
	testkit.OK(t, err)
	got, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
	testkit.Same(t, "content", "content", string(got), err)
	testkit.OK(t, f.Close())
	left, err := os.ReadDir(os.TempDir())
	testkit.Same(t, "names that are left", 0, len(left), err)
}
