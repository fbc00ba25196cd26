package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rehydrate/internal/testkit"
)

// TestUnread tells trouble with the rights or the disk from trouble with what is in a file.
func TestUnread(t *testing.T) {
	stateOf := func(name string, make func(name string) error) error {
		dir := filepath.Dir(open(t, filepath.Join(t.TempDir(), "w")).dir) + "/w"
		_ = os.Remove(filepath.Join(dir, name))
		testkit.OK(t, make(filepath.Join(dir, name)))
		w, err := Open(t.Context(), dir, Options{ReadOnly: true})
		if err == nil {
			_, err = w.CheckState(t.Context())
			w.Close()
		}
		return err
	}
	of := func(err error) error { return fmt.Errorf("read x: %w", &fs.PathError{Op: "read", Path: "x", Err: err}) }
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":         {nil, false},
		"rights":          {of(syscall.EACCES), true},
		"rights and more": {errors.Join(errors.New("x"), of(syscall.EPERM)), true},
		"a disk":          {of(syscall.EIO), true},
		"a network disk":  {of(syscall.ESTALE), true},
		"missing":         {of(syscall.ENOENT), false},
		"a file above it": {of(syscall.ENOTDIR), false},
		"its content":     {&Damaged{}, false},
		"a journal that does not open": {stateOf(journalName, func(name string) error { return os.Mkdir(name, 0o700) }),
			true},
		"no database": {stateOf(stateName, func(name string) error {
			return os.WriteFile(name, make([]byte, 5000), 0o600)
		}), false},
	} {
		if got := Unread(test.err); got != test.want {
			t.Errorf("%s: %t of %v", name, got, test.err)
		}
	}
}
