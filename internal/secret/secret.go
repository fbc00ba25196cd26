// Package secret keeps credentials out of what a program prints: they are read from the environment or from private
// files, never shown by fmt, log or JSON, and taken out of all that is written.
package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"rehydrate/internal/userfile"
)

// A Secret is a string that is never printed: fmt and slog show it as [redacted], encoding/json as nothing.
type Secret struct {
	value *string // of which fmt prints an address, where it may not call the methods of an unexported field
}

const redacted = "[redacted]"

// New wraps a secret string.
func New(s string) Secret { return Secret{&s} }

// Reveal returns the string itself.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Format writes [redacted] for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// Empty reports whether the secret is empty.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// FromEnv returns what getenv (os.Getenv) has under name, or the private file that name with _FILE added names. It may
// be missing. Errors name the variable, never the value.
func FromEnv(getenv func(string) string, name string) (string, error) {
	value, path := strings.TrimSpace(getenv(name)), getenv(name+"_FILE")
	switch {
	case value != "" && path != "":
		return "", fmt.Errorf("both %s and %s_FILE are set; unset one of them", name, name)
	case path == "":
		return value, nil
	}
	value, err := readPrivate(path)
	if err == nil && value == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("the file that %s_FILE names: %w", name, err)
	}
	return value, nil
}

// readPrivate reads a short file that only its owner may read.
func readPrivate(path string) (string, error) {
	const most = 4096
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would hang
	if err != nil {
		// The path is left out: people put the secret itself where its file belongs.
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return "", err
	}
	defer f.Close()
	// Of the open file, which cannot be exchanged between check and read.
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	mode := info.Mode()
	switch {
	case !mode.IsRegular():
		return "", errors.New("it is not a regular file")
	case mode.Perm()&0o077 != 0:
		return "", fmt.Errorf("it can be read by others (mode %v): %w; run chmod 600 on it", mode.Perm(), fs.ErrPermission)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || len(b) > most {
		return "", fmt.Errorf("it cannot be read, or is longer than %d bytes; is it the right file?", most)
	}
	return strings.TrimSpace(string(userfile.Unmarked(b))), nil
}
