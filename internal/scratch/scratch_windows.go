package scratch

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// nameless leaves the removal to the system, which does it when the process ends, too.
func nameless(prefix string) (*os.File, error) {
	name := filepath.Join(os.TempDir(), prefix+rand.Text())
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|windows.FILE_FLAG_DELETE_ON_CLOSE, 0o600)
}

// unname does nothing: SQLite opens files so that nobody may remove them.
func unname(string) error { return nil }
