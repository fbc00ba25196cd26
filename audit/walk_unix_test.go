//go:build unix

package audit

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rehydrate/internal/testkit"
)

// A file that becomes a fifo once its name was seen is a gap, and the audit does not wait for a writer.
func TestFifoInPlaceOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.txt")
	testkit.OK(t, os.WriteFile(name, []byte("text"), 0o600))
	a := newAudit(Config{})
	_, err := a.eachBelow(t.Context(), name, func(s *source) {
		testkit.OK(t, os.Remove(name))
		testkit.OK(t, syscall.Mkfifo(name, 0o600))
		_, err := s.open()
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("a fifo: %v", err)
		}
	})
	testkit.OK(t, err)
}
