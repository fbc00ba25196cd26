package dump

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"rehydrate/internal/durable"
)

// Vacant refuses a folder to write into that holds something.
func Vacant(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case err == nil && len(list) > 0:
		return fmt.Errorf("--out %s is not empty: it has %s; name a new folder", dir, list[0].Name())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// Write makes the folder with candidates.csv, whose first row has the names of the columns, and funnel.json. It returns
// the path of candidates.csv.
func Write(ctx context.Context, dir string, rows [][]string, f Funnel) (string, error) {
	name := filepath.Join(dir, "candidates.csv")
	err := durable.MkdirAll(ctx, dir, 0o700)
	if err == nil {
		// The funnel first: with candidates.csv the answer is complete.
		err = durable.Write(ctx, filepath.Join(dir, "funnel.json"), 0o600, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(f)
		})
	}
	if err == nil {
		err = durable.Write(ctx, name, 0o600, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(rows) })
	}
	return name, err
}

// Watch returns r, which ends with ctx and shows how many bytes of it were read.
func Watch(ctx context.Context, r io.Reader, show func(read int64)) io.Reader {
	return &watched{in: r, ctx: ctx, show: show}
}

type watched struct {
	in   io.Reader
	ctx  context.Context
	show func(read int64)
	read int64
}

func (w *watched) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.in.Read(b)
	w.read += int64(n)
	w.show(w.read)
	return n, err
}
