package near

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/policy"
)

// A picture is one to look at.
type picture struct {
	index int
	name  string // no other picture of the source has it
	keys  []string
	text  string // of the column of text
	body  []byte // nil: load has it
	load  func() ([]byte, *policy.Fault)
}

// encoded returns the bytes of the picture, or why there are none.
func (p picture) encoded() ([]byte, *policy.Fault) {
	if p.load == nil {
		return p.body, nil
	}
	return p.load()
}

// A pictureSource has pictures in an order of its own.
type pictureSource interface {
	// pictures yields them in order, those alone that wanted names where it is not nil. It
	// can be called again.
	pictures(ctx context.Context, wanted func(index int) bool, yield func(picture) error) error
	most() int // pictures, as far as can be told before
	skipped() int
	textColumn() string // "" for none
	fit(*pictureTexts)  // settles what the texts call the pictures
	ofDataset() bool
	Close() error
}

var errNeither = errors.New("it is neither a folder nor a file")

func openSource(ctx context.Context, c Config) (pictureSource, error) {
	info, err := os.Stat(c.Path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find the pictures: %w", err)
	case info.IsDir():
		if c.Columns != (dataset.PictureColumns{}) {
			return nil, fmt.Errorf("find the pictures: %s is a folder: only a Parquet file has columns", c.Path)
		}
		return findPictures(ctx, c)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("find the pictures: %s: %w", c.Path, errNeither)
	}
	rows, err := dataset.OpenPictures(c.Path, c.Columns)
	if err != nil {
		return nil, fmt.Errorf("find the pictures: %w", err)
	}
	return &rowSource{path: c.Path, columns: rows.Columns(), rows: rows, count: int(rows.Rows()), own: rows.Own()}, nil
}

// A folderSource has the pictures below a folder.
type folderSource struct {
	root   string
	names  []found // in the byte order of the names
	others int
	own    bool
	byPath bool // the texts call a picture by its path, not by its name below the root

	maxBytes int64 // of a picture
}

type found struct {
	name  string // below the root, with slashes
	fault *policy.Fault
}

// imageNames are the extensions of files that somebody took for a picture: one that is none,
// or of a format that is not read here, is told of.
var imageNames = []string{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl"}

// findPictures walks the folder to the bottom. What is a picture is decided by the first bytes;
// a file that is called like one and is none is unreadable. Links are not followed, but for the
// folder itself, and pipes and devices are never opened. The folder of the answer is left out.
func findPictures(ctx context.Context, c Config) (*folderSource, error) {
	s := &folderSource{root: c.Path, own: inWorkspace(c.Path), maxBytes: c.Images.MaxBytes}
	out, _ := os.Stat(c.Out) // where it is not there, nothing is it
	root := c.Path + string(filepath.Separator)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rel, relErr := filepath.Rel(root, path)
		switch {
		case relErr != nil:
			return relErr
		case err != nil && path == root:
			return err
		case err != nil: // a folder that may not be read, or that went
			s.names = append(s.names, found{filepath.ToSlash(rel), fileFault(err)})
		case d.IsDir():
			if info, err := d.Info(); path != root && err == nil && out != nil && os.SameFile(info, out) {
				return filepath.SkipDir
			}
		case !d.Type().IsRegular():
			s.others++
		default:
			s.add(path, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the pictures in %s: %w", c.Path, err)
	}
	slices.SortFunc(s.names, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

func (s *folderSource) add(path, name string) {
	head, err := readHead(path)
	called := slices.Contains(imageNames, strings.ToLower(filepath.Ext(name)))
	switch {
	case err != nil && called:
		s.names = append(s.names, found{name, fileFault(err)})
	case err == nil && (called || policy.ImageFormat(head) != ""):
		s.names = append(s.names, found{name: name})
	default:
		s.others++
	}
}

func readHead(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, policy.SniffBytes))
}

var errNoFile = errors.New("it is no regular file any more")

// openFile opens a regular file. One that has become a pipe since it was found is not waited for.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, errNoFile)
	}
	return f, nil
}

// fileFault is the trouble of a file that cannot be read. It does not repeat the name.
func fileFault(err error) *policy.Fault {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "not_found", Detail: "no such file"}
	}
	return &policy.Fault{Outcome: manifest.Invalid, Reason: "unreadable_file", Detail: err.Error()}
}

func (s *folderSource) pictures(ctx context.Context, wanted func(int) bool, yield func(picture) error) error {
	for i, one := range s.names {
		if wanted != nil && !wanted(i) {
			continue
		}
		path := s.pathOf(one)
		p := picture{index: i, name: one.name, keys: []string{one.name}}
		if s.byPath {
			p.keys[0] = s.pathOf(one)
		}
		p.load = func() ([]byte, *policy.Fault) {
			if one.fault != nil {
				return nil, one.fault
			}
			return readPicture(path, s.maxBytes)
		}
		if err := yield(p); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *folderSource) pathOf(one found) string {
	return filepath.Join(s.root, filepath.FromSlash(one.name))
}

// fit takes the way of naming that finds more texts, for all pictures alike: in a/a/x.jpg below a,
// one picture's name is the other one's path.
func (s *folderSource) fit(t *pictureTexts) {
	names, paths := 0, 0
	for _, one := range s.names {
		if t.has(one.name) {
			names++
		}
		if t.has(s.pathOf(one)) {
			paths++
		}
	}
	s.byPath = paths > names
}

// readPicture reads a file of at most so many bytes; what grows beyond while it is read is for
// InspectImage to refuse.
func readPicture(path string, most int64) ([]byte, *policy.Fault) {
	f, err := openFile(path)
	if err != nil {
		return nil, fileFault(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fileFault(err)
	case info.Size() > most:
		return nil, &policy.Fault{Outcome: manifest.Invalid, Reason: "too_large", Detail: fmt.Sprintf("%d bytes, at most %d are read", info.Size(), most)}
	}
	var body bytes.Buffer
	body.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := body.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, fileFault(err)
	}
	return body.Bytes(), nil
}

func (s *folderSource) most() int          { return len(s.names) }
func (s *folderSource) skipped() int       { return s.others }
func (s *folderSource) textColumn() string { return "" }
func (s *folderSource) ofDataset() bool    { return s.own }
func (s *folderSource) Close() error       { return nil }

// inWorkspace reports whether a folder lies in a workspace.
func inWorkspace(path string) bool {
	path, err := filepath.Abs(path)
	for err == nil {
		if _, err := os.Stat(filepath.Join(path, "state.db")); err == nil {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
		path = filepath.Dir(path)
	}
	return false
}

// A rowSource has the pictures of a Parquet file.
type rowSource struct {
	path    string
	columns dataset.PictureColumns
	rows    *dataset.PictureReader // open and unread; nil once its rows are used
	count   int
	own     bool
}

func (s *rowSource) pictures(ctx context.Context, wanted func(int) bool, yield func(picture) error) error {
	if s.rows == nil {
		rows, err := dataset.OpenPictures(s.path, s.columns)
		if err != nil {
			return err
		}
		s.rows = rows
	}
	defer s.Close()
	for i := 0; ; i++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := s.rows.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read %s, row %d: %w", s.path, i, err)
		case wanted != nil && !wanted(i):
			continue
		}
		p := picture{index: i, name: row.Path + "#" + strconv.Itoa(i), body: row.Image, text: row.Text}
		p.keys = []string{p.name, row.Path}
		if len(row.Image) == 0 {
			p.load = func() ([]byte, *policy.Fault) {
				return nil, &policy.Fault{Outcome: manifest.Invalid, Reason: "no_image", Detail: "the row has no bytes of a picture"}
			}
		}
		if err := yield(p); err != nil {
			return err
		}
	}
}

func (s *rowSource) fit(*pictureTexts)  {}
func (s *rowSource) most() int          { return s.count }
func (s *rowSource) skipped() int       { return 0 }
func (s *rowSource) textColumn() string { return s.columns.Text }
func (s *rowSource) ofDataset() bool    { return s.own || inWorkspace(filepath.Dir(s.path)) }

func (s *rowSource) Close() error {
	if s.rows == nil {
		return nil
	}
	err := s.rows.Close()
	s.rows = nil
	return err
}
