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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return LogCheck{}, err
	}
	defer root.Close()
	c := LogCheck{Folder: dir, Kinds: map[string]int{}, Statements: []string{}}
	l, err := auditlog.Open(ctx, logFolder{root}, func(context.Context) (auditlog.Known, error) { return auditlog.Known{}, nil })
	if err == nil {
		p := l.Checkpoint()
		c.Log = LogReport{Present: true, Records: l.Size(), Root: p.Root, Origin: p.Origin, Checkpoint: string(p.Signed), Consistent: true}
		err = l.Verify(ctx)
	}
	// The checkpoint counts only against a log that is whole in itself.
	if err == nil && since != nil {
		earlier, wrong := l.Since(ctx, since)
		c.Log.Since = &Since{Records: earlier.Size, Holds: wrong == nil}
		err = wrong
	}
	if err != nil {
		var broken *auditlog.Broken
		if !errors.As(err, &broken) && !errors.Is(err, auditlog.ErrNoLog) || ctx.Err() != nil {
			return c, err
		}
		c.Log.Consistent, c.What = false, err.Error()
		if broken != nil {
			c.Log.Broken = &broken.Record
		}
		return c, nil
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
type logFolder struct{ root *os.Root }

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

var errOnlyRead = errors.New("the log is open for reading only")

func (logFolder) Replace(context.Context, string, []byte) error { return errOnlyRead }

func (logFolder) Append(context.Context, string, int64, []byte) error { return errOnlyRead }
