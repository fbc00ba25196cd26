package scratch

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

// nameless leaves the removal to the system, which does it when the process ends, too.
func nameless(dir string) (*os.File, error) {
	name := filepath.Join(dir, "rehydrate-"+rand.Text())
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|windows.FILE_FLAG_DELETE_ON_CLOSE, 0o600)
}

// lockFolder makes the file "lock" in a folder, which the system removes when the process ends.
func lockFolder(path string) (*os.File, error) {
	return os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE|os.O_EXCL|windows.FILE_FLAG_DELETE_ON_CLOSE,
		0o600)
}

// ours reports whether a folder may be removed: those of Windows' folder for temporary files are the user's. One that
// was just made may not be locked yet.
func ours(info fs.FileInfo) bool { return time.Since(info.ModTime()) > time.Minute }
