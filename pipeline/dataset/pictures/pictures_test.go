package pictures

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestReadPictureGone: a file that went, or became a pipe, after it was found, and one that is too large.
func TestReadPictureGone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.jpg")
	testkit.OK(t, syscall.Mkfifo(pipe, 0o600))
	large := filepath.Join(t.TempDir(), "large.jpg")
	testkit.OK(t, errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<20+1)))
	for path, want := range map[string]manifest.Reason{large: "too_large", pipe: "unreadable_file",
		pipe + "x": "not_found", t.TempDir(): "unreadable_file"} {
		body, fault := readPicture(path, 1<<20)
		if fault == nil || fault.Reason != want || body != nil || strings.Contains(fault.Detail, path) {
			t.Errorf("readPicture(%s) = %d bytes, %v; want %s", path, len(body), fault, want)
		}
	}
}
