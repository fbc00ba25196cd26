// Package pictures reads the pictures of any folder or Parquet file, one by one, for commands that look at pictures of
// any origin. Files are hostile: each is checked before it is decoded, and memory is bounded.
package pictures

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"rehydrate/internal/picture"
	"rehydrate/internal/safely"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// A Picture is one of a source.
type Picture struct {
	Index int
	Name  string // below the folder, or path#row; no other picture of the source has it
	Path  string // as the row calls it, or with the folder
	ID    string // of its row; "" for a file
	Text  string // of the column of text
	Read  func() ([]byte, *policy.Fault)
}

// A Source has pictures in an order of its own.
type Source struct {
	All        iter.Seq2[Picture, error] // can be ranged over again
	Names      []string                  // of all pictures of a folder
	Most       int                       // how many pictures, as far as that is known before
	Skipped    int                       // files of a folder that are no pictures
	Hidden     int                       // pictures that Without.Hidden names; of a Parquet once All was ranged over
	TextColumn string                    // "" for none
	Size       int64                     // of a Parquet, in bytes
	OfDataset  bool                      // some of the pictures go when their posts are removed

	images policy.Images
	memory *semaphore.Weighted // bytes of decoded pictures at once
}

// Without says what a source leaves out. The zero value is nothing.
type Without struct {
	Folder string // which may lie in the one that is searched
	// Hidden reports whether a picture is left out, by its file, or the Parquet and the id of its row; may be nil.
	Hidden func(file, id string) (bool, error)
}

// Open finds the pictures of a folder, searched to the bottom, or of a Parquet file.
func Open(ctx context.Context, path string, columns Columns, images policy.Images, without Without) (*Source, error) {
	info, err := os.Stat(path)
	s := &Source{images: images, memory: semaphore.NewWeighted(2 * images.MaxDecodedBytes())}
	if without.Hidden == nil {
		without.Hidden = func(string, string) (bool, error) { return false, nil }
	}
	switch {
	case err != nil:
	case info.IsDir() && columns != (Columns{}):
		err = fmt.Errorf("%s is a folder: only a Parquet file has columns", path)
	case info.IsDir():
		err = s.openFolder(ctx, path, without)
	case info.Mode().IsRegular():
		s.Size = info.Size()
		err = s.openTable(path, columns, without.Hidden)
	default:
		err = fmt.Errorf("%s: it is neither a folder nor a file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("find the pictures: %w", err)
	}
	return s, nil
}

// Each calls the functions that pick, called for the pictures in their order, returns: so many at once, none for nil.
// An error ends it.
func (s *Source) Each(ctx context.Context, workers int, pick func(context.Context, Picture) func() error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(workers, 1))
	err := safely.Do(func() error { // the pictures of a foreign Parquet come from a decoder
		for p, err := range s.All {
			if err := cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			if do := pick(ctx, p); do != nil {
				safely.Go(group, do) // waits until a worker is free
			}
		}
		return nil
	})
	return cmp.Or(group.Wait(), err)
}

// Decode waits until there is memory for a picture, decodes it and passes it on.
func (s *Source) Decode(ctx context.Context, body []byte, use func(image.Image) error) *policy.Fault {
	info, fault := policy.Policy{Images: s.images}.InspectImage(body)
	if fault != nil {
		return fault
	}
	// Hashing and measuring make a copy of four bytes a pixel. A picture that weighs more than there is would wait for
	// ever.
	weight := min(info.DecodedBytes+4*int64(info.Width)*int64(info.Height), 2*s.images.MaxDecodedBytes())
	if s.memory.Acquire(ctx, weight) != nil {
		return nil // the caller sees that ctx is done
	}
	defer s.memory.Release(weight)
	img, err := picture.Decode(body)
	if err == nil {
		err = use(img)
	}
	if err != nil {
		return invalid("undecodable", err.Error())
	}
	return nil
}

// imageNames are the extensions of pictures. A file that has one and is not a picture, or of a format that is
// not read here, is unreadable; without such a name it is skipped.
var imageNames = []string{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic",
	".heif", ".avif", ".jxl"}

// openFolder walks a folder to the bottom. What is a picture is decided by the first bytes. Links are not
// followed, but for the folder itself, and pipes and devices are never opened.
func (s *Source) openFolder(ctx context.Context, path string, without Without) error {
	s.OfDataset = InWorkspace(path)
	var names []string
	out, _ := os.Stat(without.Folder) // nil when it does not exist
	pathOf := func(name string) string { return filepath.Join(path, name) }
	err := fs.WalkDir(os.DirFS(path), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == ".":
			return err
		case err != nil: // a folder that may not be read, or that went: reading it fails once more, and says why
			names = append(names, name)
		case d.IsDir():
			// An earlier answer holds thumbnails.
			if info, err := d.Info(); name != "." && err == nil && out != nil && os.SameFile(info, out) {
				return fs.SkipDir
			}
			s.OfDataset = s.OfDataset || isWorkspace(pathOf(name))
		case d.Type().IsRegular() && (slices.Contains(imageNames, strings.ToLower(filepath.Ext(name))) ||
			picture.Format(readHead(pathOf(name))) != ""):
			hidden, err := without.Hidden(pathOf(name), "")
			switch {
			case err != nil:
				return err
			case hidden:
				s.Hidden++
			default:
				names = append(names, name)
			}
		default:
			s.Skipped++
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	s.Names, s.Most = names, len(names)
	s.All = func(yield func(Picture, error) bool) {
		for i, name := range names {
			read := func() ([]byte, *policy.Fault) { return readPicture(pathOf(name), s.images.MaxBytes) }
			if !yield(Picture{Index: i, Name: name, Path: pathOf(name), Read: read}, nil) {
				return
			}
		}
	}
	return nil
}

// readHead returns the first bytes of a file; none when it cannot be read.
func readHead(path string) []byte {
	f, _, err := userfile.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, picture.SniffBytes))
	return head
}

// readPicture reads a file of at most so many bytes.
func readPicture(path string, most int64) ([]byte, *policy.Fault) {
	f, size, err := userfile.Open(path)
	if err != nil {
		return nil, fileFault(path, err)
	}
	defer f.Close()
	if size > most {
		return nil, invalid("too_large", fmt.Sprintf("%d bytes, at most %d are read", size, most))
	}
	// InspectImage refuses one that grew meanwhile.
	body, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fileFault(path, err)
	}
	return body, nil
}

// fileFault is the trouble of the file path, which cannot be read.
func fileFault(path string, err error) *policy.Fault {
	if errors.Is(err, fs.ErrNotExist) {
		return invalid("not_found", "no such file")
	}
	// The name stands in a column of its own.
	if within, ok := errors.AsType[*fs.PathError](err); ok {
		err = within.Err
	}
	return invalid("unreadable_file", strings.TrimPrefix(err.Error(), path+" "))
}

func invalid(reason manifest.Reason, detail string) *policy.Fault {
	return &policy.Fault{Outcome: manifest.Invalid, Reason: reason, Detail: detail}
}

// InWorkspace reports whether a folder lies in a workspace.
func InWorkspace(path string) bool { return WorkspaceOf(path) != "" }

// isWorkspace reports whether a folder is a workspace.
func isWorkspace(path string) bool {
	is := func(name string) bool { _, err := os.Stat(filepath.Join(path, name)); return err == nil }
	// A state.db alone is somebody's backup.
	return is("state.db") && (is("lock") || is("audit") || is("images"))
}

// WorkspaceBelow returns the first workspace in a folder, at any depth, which Open would find pictures in; "" for none.
func WorkspaceBelow(ctx context.Context, folder string) (found string, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && d.IsDir() && isWorkspace(filepath.Join(folder, name)):
			found = filepath.Join(folder, name)
			return fs.SkipAll
		}
		return nil // Open says what cannot be read
	})
	return found, err
}

// WorkspaceOf returns the workspace that a path is, or lies in, also by a link; "" for none.
func WorkspaceOf(path string) string {
	path, err := filepath.Abs(path)
	if real, failed := filepath.EvalSymlinks(path); failed == nil { // else it is not there yet
		path = real
	}
	for err == nil {
		if isWorkspace(path) {
			return path
		}
		if path == filepath.Dir(path) {
			return ""
		}
		path = filepath.Dir(path)
	}
	return ""
}
