package userfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRead: a pipe is not waited for, a folder is not read, and a file that is too large is not taken into memory.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(syscall.Mkfifo(at("pipe"), 0o600), os.WriteFile(at("file"), []byte("text"), 0o600),
		os.WriteFile(at("large"), nil, 0o600), os.Truncate(at("large"), mostSmall+1))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"pipe": "not a regular file", ".": "is a folder, not a file",
		"none":  "there is no file or folder",
		"large": "more than 64 MiB", "file": ""} {
		b, err := Read(at(name))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) ||
			err == nil && string(b) != "text" {
			t.Errorf("Read(%s) = %d bytes, %v, want %q", name, len(b), err, want)
		}
	}
}

// TestMissing: a name of nothing is told from a file that cannot be read, and with the folder that it was looked for
// in.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var missing *Missing
	err := Exists("none\x1b.csv")
	if !errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) ||
		err.Error() != `there is no file or folder "none\x1b.csv" in `+dir {
		t.Errorf("Exists(none) = %v", err)
	}
	if err := Exists(filepath.Join(dir, "none")); !errors.As(err, &missing) || missing.In != "" {
		t.Errorf("Exists of a whole path = %v", err)
	}
	if err := Exists(dir); err != nil {
		t.Errorf("Exists(%s) = %v", dir, err)
	}
	if _, _, err := Open(dir); err == nil || errors.As(err, &missing) {
		t.Errorf("Open of a folder = %v", err)
	}
}

func TestFaulty(t *testing.T) {
	stopped := fmt.Errorf("read: %w", context.Canceled)
	var fault *Fault
	if err := Faulty(stopped); err != stopped {
		t.Errorf("what was stopped is %#v", err)
	}
	if err := Faulty(fs.ErrNotExist); !errors.As(err, &fault) || !errors.Is(err, fs.ErrNotExist) || fault.Flag {
		t.Errorf("a fault of a file is %#v", err)
	}
	if err := Wrong("--a: %w", fs.ErrExist); !errors.As(err, &fault) || !errors.Is(err, fs.ErrExist) || !fault.Flag {
		t.Errorf("a fault of a flag is %#v", err)
	}
}
