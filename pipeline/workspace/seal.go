package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// sealName is the file with the digests that a workspace had when its last writer closed it.
const sealName = auditName + "/" + auditlog.SealName

// maxSeal bounds a seal, in bytes: it has room for some 300,000 files.
const maxSeal = 64 << 20

// A Seal has the digests of a workspace when its last writer closed it.
type Seal struct {
	Time  time.Time `json:"time"`
	Files []File    `json:"files"` // state.db and every other file but images, the lock and the seal itself, by name
	// Sum is the sha256 hex of the seal written with an empty Sum: a damaged seal does not match it.
	Sum string `json:"sum"`
}

// ReadSeal returns the seal; false when there is none: a writer is at work, or was killed.
func (w *Workspace) ReadSeal(context.Context) (s Seal, sealed bool, err error) {
	defer wrap(&err, "read %s", sealName)
	text, err := w.readSmall(sealName, maxSeal)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return Seal{}, false, err
	}
	// One byte that differs shows: also in the Sum itself, and in what json.Unmarshal forgives.
	again, err := s.encode()
	if err == nil && !bytes.Equal(again, text) {
		err = errors.New("it was changed: its sum does not fit")
	}
	if err != nil {
		return Seal{}, false, err
	}
	return s, true, nil
}

// encode writes a seal with its Sum.
func (s Seal) encode() ([]byte, error) {
	s.Sum = ""
	text, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		s.Sum = hexDigest(text)
		text, err = json.MarshalIndent(s, "", "  ")
	}
	return append(text, '\n'), err
}

// unseal removes the seal before the first change, and keeps its digests in memory. One that is of another state.db
// stays. One that is damaged counts as none: it says nothing of state.db.
func (w *Workspace) unseal(ctx context.Context) error {
	seal, sealed, err := w.ReadSeal(ctx)
	w.unfinished.Store(!sealed) // the last writer was killed, or nobody knows: Sweep comes before the next seal
	if err != nil {
		return w.unlink(ctx, sealName)
	}
	if !sealed {
		return nil
	}
	state, err := w.Stat(ctx, stateName)
	if err != nil {
		return err
	}
	// The digests of files that this writer does not replace go into the next seal, so that damage in between is
	// found.
	for _, f := range seal.Files {
		w.digests.Store(f.Name, f)
	}
	w.digests.Delete(stateName)
	// state.db came from a backup, or was changed: reconcile tells and notes which. The seal stays until then, for a
	// kill.
	w.like = slices.Contains(seal.Files, state)
	w.unlike = !w.like
	if w.unlike {
		return nil
	}
	return w.unlink(ctx, sealName)
}

// An Altered is a file that is not as the last command left it, although state.db is: it was damaged, or somebody
// changed it or put it there, and nobody can tell which.
type Altered struct {
	Name string
	Says string // what would be believed with it, "" for not told
}

func (e *Altered) Error() string {
	return e.Name + " in the workspace is not as the last command left it" + e.Says
}

// believed reports whether jobs go by what a file of that name says.
func believed(name string) bool {
	return name == manifest.TombstonesName || name == manifest.ListName || name == policyName
}

// CheckFile returns an *Altered where a file of the workspace is not as the seal has it, or is not in it, while
// state.db is as sealed. Where both are of another time, a part of the workspace came from a backup. A workspace
// without a seal does not know, and a file that is not there says nothing.
func (w *Workspace) CheckFile(ctx context.Context, name string) error {
	now, err := w.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.lock != nil { // the seal is gone since this writer opened it
		if was, known := w.digests.Load(name); w.like && (!known || was != now) {
			return &Altered{Name: name}
		}
		return nil
	}
	seal, sealed, _ := w.ReadSeal(ctx) // a damaged one counts as none
	if !sealed || slices.Contains(seal.Files, now) {
		return nil
	}
	state, err := w.Stat(ctx, stateName)
	if err == nil && slices.Contains(seal.Files, state) {
		err = &Altered{Name: name}
	}
	return err
}

// seal writes the seal; the database is closed.
func (w *Workspace) seal(ctx context.Context) error {
	seal := Seal{Time: w.now().UTC().Truncate(time.Second), Files: []File{}}
	// Images are not even looked for: a million of them would take longer than all the rest.
	top, err := fs.ReadDir(w.root.FS(), ".")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range top {
		if e.Name() == imagesName || e.Type()&fs.ModeSymlink != 0 { // Walk would follow a link that it begins with
			continue
		}
		under, err := w.Files(ctx, e.Name())
		if err != nil {
			return err
		}
		names = append(names, under...)
	}
	slices.Sort(names)
	for _, name := range names {
		if name == lockName || name == sealName {
			continue
		}
		known, ok := w.digests.Load(name) // as it was last written here or sealed
		if !ok && w.like && believed(name) {
			continue // somebody put it there: sealed, CheckFile would take it for one that a command left
		}
		if !ok {
			known, err = w.Stat(ctx, name)
			if err != nil {
				return err
			}
		}
		seal.Files = append(seal.Files, known.(File))
	}
	text, err := seal.encode()
	if err != nil {
		return err
	}
	return w.putBytes(ctx, sealName, text)
}

// CheckState has SQLite check state.db and returns its messages; none when it is whole.
func (w *Workspace) CheckState(ctx context.Context) (found []string, err error) {
	found, err = texts(ctx, w.db, `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'
		UNION ALL SELECT 'row ' || rowid || ' of ' || "table" || ' has no ' || parent FROM pragma_foreign_key_check`)
	err = w.explain(ctx, err)
	wrap(&err, "check %s", stateName)
	return found, err
}

// ForeignSchema returns what this package does not make in state.db, each as its type (table, index...) and name.
func (w *Workspace) ForeignSchema(ctx context.Context) ([]string, error) {
	// An index without a statement belongs to its table. With a parenthesis in its name, one table could pass for two.
	foreign, err := texts(ctx, w.db, `SELECT type || ' ' || name FROM sqlite_schema WHERE sql IS NOT NULL
		AND NOT (type = 'table' AND (name = ? OR instr(name, '(') = 0 AND instr(?, 'CREATE TABLE ' || name || ' (')))`,
		erasedTable, schemaSQL)
	err = w.explain(ctx, err)
	wrap(&err, "read the schema of %s", stateName)
	return foreign, err
}
