package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"rehydrate/internal/durable"
)

// A Report says how far a log could be believed.
type Report struct {
	Present    bool   `json:"present"`
	Records    int64  `json:"records"`
	Pending    int    `json:"unpublished"` // that the workspace has stored, and not put into the log yet
	Root       string `json:"root"`
	Origin     string `json:"origin"`
	Checkpoint string `json:"checkpoint"`
	Consistent bool   `json:"consistent"`
	Broken     *int64 `json:"broken_at,omitempty"` // the first record that can't be believed
	Since      *Since `json:"since,omitempty"`
}

// A Since says whether the log continues a checkpoint that an auditor kept.
type Since struct {
	Records int64  `json:"records"`
	Holds   bool   `json:"holds"`
	Broken  *int64 `json:"broken_at,omitempty"`
	What    string `json:"what,omitempty"`
}

// NewReport verifies a log that Open returned with an error, and compares it with an earlier checkpoint; nil for none.
// The error is what is wrong with the log in itself.
func NewReport(ctx context.Context, l *Log, err error, since []byte) (r Report, _ error) {
	if err == nil {
		c := l.Checkpoint()
		r = Report{Present: true, Records: l.Size(), Root: c.Root, Origin: c.Origin, Checkpoint: string(c.Signed)}
		err = l.Verify(ctx)
		if since != nil {
			earlier, wrong := l.Since(ctx, since)
			r.Since = &Since{Records: earlier.Size, Holds: wrong == nil}
			if broken, ok := errors.AsType[*Broken](wrong); ok {
				r.Since.Broken, r.Since.What = &broken.Record, broken.What
			} else if wrong != nil {
				r.Since.What = wrong.Error()
			}
		}
	}
	if broken, ok := errors.AsType[*Broken](err); ok {
		r.Present, r.Broken = true, &broken.Record
	}
	r.Consistent = err == nil
	return r, err
}

// A FolderReport is what a log says of itself, without the workspace that it comes from.
type FolderReport struct {
	Folder     string         `json:"folder"`
	Log        Report         `json:"log"`
	Kinds      map[string]int `json:"records_by_kind"`
	Statements []string       `json:"statements"` // the digests of the audits that it records, oldest first
	What       string         `json:"what"`       // what is wrong with it; empty if nothing is
	// Behind are records that its checkpoint does not cover: of a command that is at work, or that was killed.
	Behind int `json:"behind_checkpoint,omitempty"`
}

// CheckFolder checks the log in a folder, such as a copy of audit/ that was handed on: its records against its
// checkpoint, and both against an earlier checkpoint. It writes nothing.
func CheckFolder(ctx context.Context, dir string, since []byte) (FolderReport, error) {
	c := FolderReport{Folder: dir, Kinds: map[string]int{}, Statements: []string{}}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() { // opening a pipe would wait for ever
		err = fmt.Errorf("%s is not a folder", dir)
	}
	if err != nil {
		return c, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return c, err
	}
	defer root.Close()
	f := folder{root: root}
	l, err := Open(ctx, f, f.known)
	c.Log, err = NewReport(ctx, l, err, since)
	s := c.Log.Since
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case c.Log.Broken != nil || errors.Is(err, ErrNoLog):
		c.What = err.Error()
		return c, nil
	case err != nil:
		return c, err
	case s != nil && !s.Holds:
		c.What, c.Log.Consistent = "it does not go on from the checkpoint that was kept: "+s.What, false
	}
	for range bytes.Lines(l.beyond) {
		c.Behind++
	}
	for e, err := range l.Records(ctx, 0) {
		if err != nil {
			return c, err
		}
		c.Kinds[string(e.Kind)]++
		// A statement that was handed on is matched to the log by its digest. An audit that heard much has more records.
		if n := len(c.Statements); e.Kind == Audit && (n == 0 || c.Statements[n-1] != e.SHA256) {
			c.Statements = append(c.Statements, e.SHA256)
		}
	}
	return c, nil
}

// A folder is a Store for reading.
type folder struct {
	Store // nil: whoever checks a log writes nothing
	root  *os.Root
}

// known is what a folder tells of records that its checkpoint does not cover yet: those may follow that have the next
// numbers, and the last may be cut off. A writer adds them before it writes the checkpoint.
func (f folder) known(ctx context.Context) (known Known, _ error) {
	l := Log{store: f}
	signed, err := l.readSmall(CheckpointName)
	if err != nil {
		return known, nil // Open says so
	}
	text, _, _ := strings.Cut(string(signed), "\n\n")
	last, err := parseBody(text + "\n")
	if err != nil {
		return known, nil
	}
	known.Size, known.Root = last.Size, last.Root
	n := int64(0)
	for line, err := range l.lines(ctx) {
		if err != nil {
			return known, err
		}
		if n >= last.Size {
			if _, err := parseRecord(line, n); err != nil && !isCutOff(line, n) {
				break // Verify says so
			}
			known.Queue = append(known.Queue, bytes.Clone(line))
		}
		n++
	}
	return known, nil
}

// isCutOff reports whether a line can be the beginning of record n whose rest was never written.
func isCutOff(line []byte, n int64) bool {
	begins := fmt.Appendf(nil, `{"seq":%d,"time":"`, n)
	return len(line) < maxLine && !bytes.HasSuffix(line, []byte("\n")) &&
		(bytes.HasPrefix(line, begins) || bytes.HasPrefix(begins, line))
}

func (f folder) Open(name string) (io.ReadCloser, error) { return durable.OpenRegular(f.root, name) }

func (f folder) List(ctx context.Context) (names []string, err error) {
	err = fs.WalkDir(f.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && name != SealName {
			names = append(names, name)
		}
		return errors.Join(err, ctx.Err())
	})
	return names, err
}
