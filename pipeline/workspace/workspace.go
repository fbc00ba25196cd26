// Package workspace owns the private folder that a run works in: its lock, its state database, the images and every
// other file in it. Nothing else in the program touches that folder. It makes these promises:
//
//   - One writer at a time: Open takes a kernel lock (flock), which is gone the moment its holder is. Windows has no such
//     lock and no mode 0700: there a workspace opens for reading only.
//   - A final name means a whole file (see package durable), and the row of a file is written only after that. A file
//     leaves in the mirror order. The next Sweep repairs a workspace after a kill at any point.
//   - Erased content is gone from the bytes of state.db too when the workspace is closed, or after a kill opened again.
//   - No image keeps metadata if it went through Strip, and no URL is stored, only its digest.
//   - Answers, downloads, tombstones and erasures are recorded for the audit log in the same transaction, and published
//     into audit/ in batches and when the workspace is closed, which then is sealed: audit/seal.json has the digests of all but images.
//   - All file work goes through one os.Root: no symbolic link leads out. A workspace with one in it is opened for reading
//     only, for a removal would take away the link alone; CheckImages looks among the image files too, before a job that
//     lists them. Files are 0600, folders 0700.
//
// A read-only workspace takes no lock and writes nothing. It may be read while a run works. A Workspace is safe for use
// by several goroutines. Unlinked blocks are not overwritten on the medium: put the folder on an encrypted volume.
package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/pipeline/auditlog"
)

// Names at the top of a workspace that belong to this package.
const (
	lockName    = "lock"
	stateName   = "state.db"
	journalName = stateName + "-journal"
	imagesName  = "images"
	policyName  = "policy.toml"
)

// ReportName is the report of a workspace. It can show any stored image, so Erase removes it.
const ReportName = "report.html"

const (
	fileMode = 0o600
	dirMode  = 0o700
)

// Errors that callers branch on. All are wrapped with the folder's name.
var (
	ErrInUse       = errors.New("workspace is in use") // by another process; the message names its pid
	ErrNoWorkspace = errors.New("not a workspace")
	ErrEmpty       = errors.New("nothing is stored in it yet") // with ErrNoWorkspace, after a kill of the first writer
	ErrReadOnly    = errors.New("workspace is open for reading only")
	ErrBehind      = errors.New("the audit log has records that state.db does not know, as after a restored backup: " +
		"what was removed since would be shown")
)

// Options say how to open a workspace.
type Options struct {
	Existing bool // never make one
	ReadOnly bool // an existing one, without lock and without writing anything: on a read-only mount too, and beside a run
	// FilesOnly, beside ReadOnly, leaves state.db closed, which may be damaged. Only Dir, Walk, OpenFile, Stat,
	// ReadSeal, LogKey and Close may be called.
	FilesOnly bool
	// Apart leaves a log and a state.db of which one came from a backup, or was changed, as they are, for another writer
	// to continue: see Workspace.Apart.
	Apart bool
	// Now dates records of the log and the seal; nil for the clock of the machine.
	Now func() time.Time
}

// A Workspace is an open workspace folder. Close it.
type Workspace struct {
	dir      string
	root     *os.Root
	files    *durable.Folder // writes below root
	db       *sql.DB
	compiled *compiled // db, for queries that run often
	lock     *os.File  // nil when read-only
	limit    int       // entries per page of an iterator
	batch    int       // records that publish holds in memory
	// finish does a writer's last work, whether its context is over or not.
	finish func() error

	posts [1024]sync.Mutex // guard the image files of posts and their rows: the two change one after the other; see post

	turn  sync.Mutex // of a change
	since *sinceNote // as sinceByLog read it, by turn; nil before

	now        func() time.Time // dates the records of the log
	waiting    atomic.Int64     // records that were stored since records were published
	publishing sync.Mutex       // guards the log
	log        *auditlog.Log    // as this writer published it last; nil before

	digests sync.Map // Files by name, as they were last written here or sealed
	like    bool     // state.db was as the seal has it when this writer opened it
	unlike  bool     // it was not; without a seal neither is known
	apart   bool     // log and state.db are of two times, and stay so: Options.Apart
	damaged bool     // the log was, when this writer compared it with state.db

	// unfinished is set when a change of the disk failed half-way: the workspace must not be sealed before a Sweep
	// has repaired it.
	unfinished atomic.Bool
}

// Open opens the workspace in dir, takes the lock unless o.ReadOnly, and makes a missing one where o allows. A symbolic
// link, and a folder that holds anything but a workspace, are refused.
func Open(ctx context.Context, dir string, o Options) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w := &Workspace{dir: dir, limit: 256, batch: 5000, now: o.Now}
	if w.now == nil {
		w.now = time.Now
	}
	if err := w.open(ctx, o); err != nil {
		w.Close()
		return nil, fmt.Errorf("open workspace %s: %w", dir, err)
	}
	return w, nil
}

func (w *Workspace) open(ctx context.Context, o Options) error {
	if !o.ReadOnly {
		if err := writable(); err != nil {
			return err
		}
	}
	mustExist := o.Existing || o.ReadOnly
	if _, err := os.Lstat(w.dir); errors.Is(err, fs.ErrNotExist) && !mustExist {
		if err := durable.MkdirAll(ctx, w.dir, dirMode); err != nil {
			return err
		}
	}
	if err := w.openRoot(); err != nil || o.FilesOnly {
		return err
	}
	if err := w.recognize(mustExist); err != nil {
		return err
	}
	if o.ReadOnly {
		return w.openStateReadOnly(ctx)
	}
	if err := w.takeLock(); err != nil {
		return err
	}
	if err := CheckFolders(ctx, w.root); err != nil {
		return err
	}
	if err := w.root.Chmod(".", dirMode); err != nil {
		return fmt.Errorf("make the folder private: %w", err)
	}
	if err := w.openState(ctx); err != nil {
		return err
	}
	if err := w.reconcile(ctx, o.Apart); err != nil {
		return fmt.Errorf("compare %s with the audit log: %w", stateName, err)
	}
	if w.unlike && !w.apart {
		err := w.unlink(ctx, sealName)
		if err != nil {
			return err
		}
	}
	w.finish = func() error { return w.conclude(context.WithoutCancel(ctx)) }
	return nil
}

// openRoot opens the folder itself, and refuses a symbolic link in its place.
func (w *Workspace) openRoot() error {
	seen, err := os.Lstat(w.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no such folder; `rehydrate run` makes it", ErrNoWorkspace)
	case err != nil:
		return err
	case seen.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%w: it is a symbolic link; name the folder it points to", ErrNoWorkspace)
	case !seen.IsDir():
		return fmt.Errorf("%w: it is not a folder", ErrNoWorkspace)
	}
	w.root, err = os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	w.files = durable.In(w.root)
	opened, err := w.root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(seen, opened) {
		return fmt.Errorf("%w: it was replaced while it was opened", ErrNoWorkspace)
	}
	return nil
}

// recognize refuses a folder that is neither empty nor a workspace.
func (w *Workspace) recognize(mustExist bool) error {
	for _, name := range []string{stateName, journalName, lockName} {
		info, err := w.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%w: %s is not a regular file", ErrNoWorkspace, name)
		}
		if name == stateName {
			return nil
		}
	}
	if mustExist {
		return fmt.Errorf("%w: it has no %s", ErrNoWorkspace, stateName)
	}
	// Where there is a log, state.db was lost, and a new one goes on from that. A first Open that was killed leaves
	// only names of this package: that counts as empty.
	if _, err := w.root.Lstat(path.Join(auditName, auditlog.CheckpointName)); err == nil {
		return nil
	}
	if _, err := w.root.Lstat(path.Join(auditName, auditlog.RecordsName)); err == nil {
		return fmt.Errorf("%w any more: it lost %s and %s/%s; put one of them back from a backup", ErrNoWorkspace, stateName,
			auditName, auditlog.CheckpointName)
	}
	list, err := fs.ReadDir(w.root.FS(), ".")
	for _, e := range list {
		if e.Name() != lockName && !durable.IsTemp(e.Name()) {
			return fmt.Errorf("%w: it holds other files (%s); name an empty or a new folder", ErrNoWorkspace, e.Name())
		}
	}
	return err
}

// takeLock takes the kernel's lock and writes the pid for the message of a process that is refused.
func (w *Workspace) takeLock() error {
	f, err := w.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	err = lockForOne(f)
	for tries := 0; errors.Is(err, errLocked) && tries < 200; tries++ {
		// It may only be a Holder that looks, or a writer that stores a little and goes.
		time.Sleep(5 * time.Millisecond)
		err = lockForOne(f)
	}
	if errors.Is(err, errLocked) {
		defer f.Close()
		return fmt.Errorf("%w by %s; wait for it, or name another folder", ErrInUse, holder(f))
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("lock: %w", err)
	}
	// Close leaves the file: removing it would let two processes lock two files of one name.
	w.lock = f
	_, err = f.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0) // as long as that of any earlier holder
	wrap(&err, "lock")
	return err
}

// holder names who wrote the lock file.
func holder(f *os.File) string {
	pid := 0
	if _, err := fmt.Fscan(f, &pid); err != nil { // it has not written it yet
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}

// Holder names the process that works in the workspace, "" for none. It is for a workspace that is open for reading.
func (w *Workspace) Holder() (string, error) {
	f, err := durable.OpenRegular(w.root, lockName)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("lock: %w", err)
	}
	defer f.Close() // and with it the lock
	err = lockForMany(f)
	if errors.Is(err, errLocked) {
		return holder(f), nil
	}
	return "", err
}

// conclude is the last work of a writer: it publishes the log, scrubs and closes state.db, and seals the workspace.
func (w *Workspace) conclude(ctx context.Context) error {
	// Both are done whatever the other returns: trouble with the log must not keep erased content in state.db. The
	// seal comes last, and only when all went well.
	var published error
	if !w.apart { // else they go behind the record of what came from a backup
		published = w.publish(ctx)
	}
	scrubbed := w.scrub(ctx)
	if err := errors.Join(published, scrubbed); err != nil {
		return err
	}
	err := w.db.Close()
	w.db = nil
	if err == nil && !w.unfinished.Load() && !(w.apart && w.unlike) { // a seal of another state.db tells of that
		err = w.seal(ctx)
	}
	wrap(&err, "seal the workspace")
	return err
}

// Apart reports whether Options.Apart left the log and state.db as they were found: nothing can be recorded now.
func (w *Workspace) Apart() bool { return w.apart }

// Close publishes the log, scrubs and closes state.db, seals the workspace and gives the lock back. No other call may
// be under way. Calling it again does nothing.
func (w *Workspace) Close() error {
	var errs []error
	if w.finish != nil {
		errs = append(errs, w.finish())
	}
	if w.db != nil {
		errs = append(errs, w.db.Close())
	}
	if w.root != nil {
		errs = append(errs, w.root.Close())
	}
	// The lock goes last: its next holder must find the database closed. Closing the file is not enough to release
	// it: a child that was just forked has it open too, until it execs.
	if w.lock != nil {
		errs = append(errs, unlock(w.lock))
		errs = append(errs, w.lock.Close())
	}
	w.finish, w.db, w.root, w.lock = nil, nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close workspace %s: %w", w.dir, err)
	}
	return nil
}

// Dir returns the absolute path of the workspace folder.
func (w *Workspace) Dir() string { return w.dir }
