package copies

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// cutOff kills an export to usb/x when its first image has its name, and takes the disk away: an empty folder is where
// it was mounted. It returns the path of the unfinished folder.
func (s *site) cutOff() (left string) {
	s.Helper()
	disk := filepath.Join(s.dir, "usb")
	testkit.OK(s, os.Mkdir(disk, 0o700))
	left, image := unfinishedPath(filepath.Join(disk, "x")), "few001.png"
	made := func() bool { _, err := os.Stat(filepath.Join(left, "train", image)); return err == nil }
	for n := 1; !made(); n++ {
		if !s.killed(n, func(ctx context.Context) error {
			_, err := Export(ctx, s.config("usb/x", "folder"))
			return err
		}) {
			s.Fatalf("%d steps, and no image", n)
		}
	}
	s.unmount()
	return left
}

func (s *site) unmount() {
	s.Helper()
	disk := filepath.Join(s.dir, "usb")
	testkit.OK(s, os.Rename(disk, disk+"-away"), os.Mkdir(disk, 0o700))
}

func (s *site) mount() {
	s.Helper()
	disk := filepath.Join(s.dir, "usb")
	testkit.OK(s, os.Remove(disk), os.Rename(disk+"-away", disk))
}

// opens fails unless List and Glance say that the copy usb/x is open, owes these rows, and say why.
func (s *site) opens(when, why string, owed ...string) {
	s.Helper()
	for name, look := range map[string]func(context.Context, *workspace.Workspace) ([]state.CopyReport, error){
		"list": List, "glance": Glance} {
		all, err := look(s.Context(), s.ws)
		testkit.OK(s, err)
		r := find(s.T, all, filepath.Join(s.dir, "usb/x"))
		if r.State != state.CopyOpen || !strings.Contains(r.Told, why) || !slices.Equal(r.Owed, owed) {
			s.Errorf("%s: %s has %+v, want it open because %q", when, name, r, why)
		}
	}
}

// TestCutOffCopyOutOfReachStaysOpen: what a killed export left on a disk that is away is an open obligation until a
// purge finds and removes it, although the folder in which the disk is mounted is there.
func TestCutOffCopyOutOfReachStaysOpen(t *testing.T) {
	s := newSite(t)
	left := s.cutOff()
	s.opens("before a purge", "is not there")
	gone := s.gone("few001")
	for range 2 {
		r := s.purge("usb/x", gone)
		testkit.Same(t, "purged out of reach", []any{state.CopyOpen, []string{"few001"}}, []any{r.State, r.Owed})
		s.opens("out of reach", "is not there", "few001")
	}
	if _, err := Export(t.Context(), s.config("usb/x", "parquet")); !errors.Is(err, ErrForeign) {
		t.Errorf("another export takes its record: %v", err)
	}
	s.mount()
	s.opens("in reach again", "its export was never finished, and left "+left+": rehydrate purge deletes it", "few001")
	r := s.purge("usb/x", gone)
	testkit.Same(t, "purged", []any{state.CopyClosed, 0}, []any{r.State, len(r.Owed)})
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder stays: %v", err)
	}
	testkit.Same(t, "listed", state.CopyClosed, s.list("usb/x").State)
}

// TestCutOffCopyIsNotToldAway: the operator's word closes the record of a cut-off copy only where its folder is not,
// and a folder that comes back is found and removed.
func TestCutOffCopyIsNotToldAway(t *testing.T) {
	s := newSite(t)
	left := s.cutOff()
	s.gone("few001")
	tell := func() error { return Close(t.Context(), s.ws, filepath.Join(s.dir, "usb/x"), "destroyed", "n", now) }
	s.mount()
	if err := tell(); !errors.Is(err, ErrCopyThere) {
		t.Errorf("said of a folder that is there: %v", err)
	}
	s.unmount()
	testkit.OK(t, tell())
	testkit.Same(t, "said", state.CopyClosed, s.list("usb/x").State)
	s.mount()
	s.opens("back", "stands there again: rehydrate purge deletes it")
	if err := tell(); !errors.Is(err, ErrCopyThere) {
		t.Errorf("said again: %v", err)
	}
	_, err := purge(t.Context(), s.ws, state.GoneSet{})
	testkit.OK(t, err)
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder stays: %v", err)
	}
	testkit.Same(t, "listed", state.CopyClosed, s.list("usb/x").State)
}

// TestCutOffCopyThatOwesIsOpen: an unfinished folder in reach with a row that has to go is an open obligation.
func TestCutOffCopyThatOwesIsOpen(t *testing.T) {
	s := newSite(t)
	s.cutOff()
	s.mount()
	testkit.Same(t, "owes nothing", state.CopyUnfinished, s.list("usb/x").State)
	s.gone("few001")
	s.opens("owes a row", "its export was never finished", "few001")
}

// TestUnfinishedCopyWithItsFilesComesBack: an export that was killed before its last step left a whole copy without a
// name. A purge removes it, and once more when it is put back.
func TestUnfinishedCopyWithItsFilesComesBack(t *testing.T) {
	s := newSite(t)
	s.copy("x", "folder")
	left, kept := unfinishedPath(filepath.Join(s.dir, "x")), filepath.Join(t.TempDir(), "kept")
	testkit.OK(t, os.Rename(filepath.Join(s.dir, "x"), left), os.CopyFS(kept, os.DirFS(left)))
	testkit.Same(t, "at first", state.CopyUnfinished, s.list("x").State)
	for range 2 {
		_, err := purge(t.Context(), s.ws, state.GoneSet{})
		testkit.Same(t, "purged", state.CopyClosed, s.list("x").State, err)
		list, err := os.ReadDir(s.dir)
		testkit.Same(t, "left", 0, len(list), err)
		testkit.OK(t, os.CopyFS(left, os.DirFS(kept)))
		if r := s.list("x"); r.State != state.CopyOpen || !strings.Contains(r.Told, left+" stands there again") {
			t.Errorf("put back: %+v", r)
		}
	}
}

// TestStoppedExportClosesItsRecord: an export that fails or is interrupted takes its folder away and says so, so that
// no later purge asks for it.
func TestStoppedExportClosesItsRecord(t *testing.T) {
	for name, stop := range map[string]func(cancel func()) error{
		"failed":      func(func()) error { return errors.New("the disk is full") },
		"interrupted": func(cancel func()) error { cancel(); return context.Canceled },
	} {
		s := newSite(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx = context.WithValue(ctx, durable.HookKey{}, func(at, file string) error {
			if at == "rename" && strings.HasSuffix(file, "few002.png") {
				return stop(cancel)
			}
			return nil
		})
		if _, err := Export(ctx, s.config("x", "folder")); err == nil {
			t.Fatalf("%s: no error", name)
		}
		testkit.Same(t, name, state.CopyClosed, s.list("x").State)
		left, err := os.ReadDir(s.dir)
		testkit.Same(t, name+": left", 0, len(left), err)
	}
}

// TestFolderThatWent: a folder that another process has renamed, removed or replaced while its lock was waited for is
// not taken for the one at the path.
func TestFolderThatWent(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(at string) error
		want error
	}{
		{"nothing", func(string) error { return nil }, nil},
		{"renamed", func(at string) error { return os.Rename(at, at+"-named") }, fs.ErrNotExist},
		{"replaced", func(at string) error { return errors.Join(os.Rename(at, at+"-named"), os.Mkdir(at, 0o700)) }, ErrBusy},
		{"a link to it", func(at string) error {
			return errors.Join(os.Rename(at, at+"-named"), os.Symlink(at+"-named", at))
		}, ErrBusy},
	} {
		at := filepath.Join(t.TempDir(), "x")
		u, err := claim(at)
		testkit.OK(t, err)
		testkit.OK(t, test.do(at))
		if err := u.liesAt(at); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		u.Close()
		if err := u.liesAt(at); err == nil {
			t.Errorf("%s: a folder that was given up is at its path", test.name)
		}
	}
}
