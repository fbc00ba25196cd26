//go:build unix

package scratch

import (
	"errors"
	"os"
)

func nameless(prefix string) (*os.File, error) {
	f, err := os.CreateTemp("", prefix)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func unname(name string) error { return os.Remove(name) }
