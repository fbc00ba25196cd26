package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"rehydrate/pipeline/workspace"
)

// Durable file work in the folder of a registered copy, which lies outside the workspace. All of it
// goes through an os.Root, so that no link in the folder leads out of it.

// tempName is the name of a file of a copy while it is written. It is the same each time, so that
// what a killed purge left is found.
func tempName(name string) string {
	return path.Join(path.Dir(name), ".tmp-rehydrate-"+path.Base(name))
}

// writeIn makes a new file and syncs it.
func writeIn(ctx context.Context, root *os.Root, name string, write func(*os.File) error) (workspace.File, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return workspace.File{}, err
	}
	defer f.Close()
	if err := errors.Join(write(f), ctx.Err()); err != nil {
		return workspace.File{}, err
	}
	if err := f.Sync(); err != nil {
		return workspace.File{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return workspace.File{}, err
	}
	return digestOf(ctx, f, name)
}

// statIn reads a regular file whole.
func statIn(ctx context.Context, root *os.Root, name string) (workspace.File, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return workspace.File{}, err
	}
	if !info.Mode().IsRegular() {
		return workspace.File{}, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return workspace.File{}, err
	}
	defer f.Close()
	return digestOf(ctx, f, name)
}

func digestOf(ctx context.Context, f io.Reader, name string) (workspace.File, error) {
	sum := sha256.New()
	size, err := io.Copy(sum, contextReader{ctx, f})
	return workspace.File{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size}, err
}

// A contextReader reads until the context of the one call that made it ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

func syncIn(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
