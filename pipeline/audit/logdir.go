package audit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
)

// A LogCheck is what a log says of itself, without the workspace that it comes from.
type LogCheck struct {
	Folder     string         `json:"folder"`
	Log        LogReport      `json:"log"`
	Kinds      map[string]int `json:"records_by_kind"`
	Statements []string       `json:"statements"` // the digests of the audits that it records, oldest first
	What       string         `json:"what"`       // what is wrong with it; empty if nothing is
}

// CheckLog checks the log in a folder, such as a copy of audit/ that was handed on: its records against its checkpoint,
// and both against an earlier checkpoint. It writes nothing.
func CheckLog(ctx context.Context, dir string, since []byte) (LogCheck, error) {
	c := LogCheck{Folder: dir, Kinds: map[string]int{}, Statements: []string{}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return c, err
	}
	defer root.Close()
	l, err := auditlog.Open(ctx, logFolder{root: root}, func(context.Context) (auditlog.Known, error) { return auditlog.Known{}, nil })
	c.Log, err = verifyLog(ctx, l, err, since)
	switch s := c.Log.Since; {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case c.Log.Broken != nil || errors.Is(err, auditlog.ErrNoLog):
		c.What = err.Error()
		return c, nil
	case err != nil:
		return c, err
	case s != nil && !s.Holds:
		c.What, c.Log.Consistent = "it does not go on from the checkpoint that was kept: "+s.What, false
	}
	for e, err := range l.Records(ctx, 0) {
		if err != nil {
			return c, err
		}
		c.Kinds[string(e.Kind)]++
		// A statement that was handed on is matched to the log by its digest.
		if e.Kind == auditlog.Audit {
			c.Statements = append(c.Statements, e.SHA256)
		}
	}
	return c, nil
}

// A logFolder is the folder of a log, for reading.
type logFolder struct {
	auditlog.Store // nil: whoever checks a log writes nothing
	root           *os.Root
}

func (f logFolder) Open(name string) (io.ReadCloser, error) { return f.root.Open(name) }

func (f logFolder) List(ctx context.Context) (names []string, err error) {
	err = fs.WalkDir(f.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && name != path.Base(state.SealFile) {
			names = append(names, name)
		}
		return errors.Join(err, ctx.Err())
	})
	return names, err
}
