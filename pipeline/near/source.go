package near

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/policy"
)

// A picture is one of a source.
type picture struct {
	index int
	name  string   // no other picture of the source has it
	keys  []string // what a file of texts may call it, the first that it has counts
	text  string   // of the column of text
	read  func() ([]byte, *policy.Fault)
}

// A source has pictures in an order of its own.
type source struct {
	pictures   iter.Seq2[picture, error] // can be ranged over again
	most       int                       // how many pictures, as far as that is known before
	skipped    int
	textColumn string       // "" for none
	fit        func(*texts) // settles what the texts call the pictures
	ofDataset  bool
}

func openSource(ctx context.Context, c Config) (source, error) {
	info, err := os.Stat(c.Path)
	var s source
	switch {
	case err != nil:
	case info.IsDir() && c.Columns != (scan.PictureColumns{}):
		err = fmt.Errorf("%s is a folder: only a Parquet file has columns", c.Path)
	case info.IsDir():
		s, err = openFolder(ctx, c)
	case info.Mode().IsRegular():
		s, err = openTable(c)
	default:
		err = fmt.Errorf("%s: it is neither a folder nor a file", c.Path)
	}
	if err != nil {
		return source{}, fmt.Errorf("find the pictures: %w", err)
	}
	return s, nil
}

// openTable is for the pictures of a Parquet file.
func openTable(c Config) (source, error) {
	rows, err := scan.OpenPictures(c.Path, c.Columns)
	if err != nil {
		return source{}, err
	}
	defer rows.Close()
	columns := rows.Columns
	s := source{most: int(rows.Rows), textColumn: columns.Text, fit: func(*texts) {},
		ofDataset: rows.Own || inWorkspace(filepath.Dir(c.Path))}
	s.pictures = func(yield func(picture, error) bool) {
		rows, err := scan.OpenPictures(c.Path, columns)
		if err != nil {
			yield(picture{}, err)
			return
		}
		defer rows.Close()
		for i := 0; ; i++ {
			row, err := rows.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				err = fmt.Errorf("read %s, row %d: %w", c.Path, i, err)
			}
			name := row.Path + "#" + strconv.Itoa(i)
			p := picture{index: i, name: name, keys: []string{name, row.Path}, text: row.Text}
			p.read = func() ([]byte, *policy.Fault) {
				if len(row.Image) == 0 {
					return nil, invalid("no_image", "the row has no bytes of a picture")
				}
				return row.Image, nil
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
	return s, nil
}

// imageNames are the extensions of pictures. A file that has one and is not a picture, or of a format that is
// not read here, is unreadable; without such a name it is skipped.
var imageNames = []string{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic",
	".heif", ".avif", ".jxl"}

// openFolder walks a folder to the bottom. What is a picture is decided by the first bytes. Links are not
// followed, but for the folder itself, and pipes and devices are never opened.
func openFolder(ctx context.Context, c Config) (source, error) {
	s := source{ofDataset: inWorkspace(c.Path)}
	var names []string
	out, _ := os.Stat(c.Out) // nil when it does not exist
	pathOf := func(name string) string { return filepath.Join(c.Path, name) }
	err := fs.WalkDir(os.DirFS(c.Path), ".", func(name string, d fs.DirEntry, err error) error {
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
		case d.Type().IsRegular() && (slices.Contains(imageNames, strings.ToLower(filepath.Ext(name))) ||
			policy.ImageFormat(readHead(pathOf(name))) != ""):
			names = append(names, name)
		default:
			s.skipped++
		}
		return nil
	})
	if err != nil {
		return source{}, err
	}
	slices.Sort(names) // the order decides which picture of a group is kept
	s.most = len(names)
	key := func(name string) string { return name }
	// The texts call a picture by its name below the folder or by its path, whichever finds more texts. It is one
	// way for all pictures: in a/a/x.jpg below a, one picture's name is the other one's path.
	s.fit = func(t *texts) {
		found := func(call func(string) string) (n int) {
			for _, name := range names {
				if t.has(call(name)) {
					n++
				}
			}
			return n
		}
		if found(pathOf) > found(key) {
			key = pathOf
		}
	}
	s.pictures = func(yield func(picture, error) bool) {
		for i, name := range names {
			read := func() ([]byte, *policy.Fault) { return readPicture(pathOf(name), c.Images.MaxBytes) }
			if !yield(picture{index: i, name: name, keys: []string{key(name)}, read: read}, nil) {
				return
			}
		}
	}
	return s, nil
}

// readHead returns the first bytes of a file; none when it cannot be read.
func readHead(path string) []byte {
	f, _, err := openFile(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, policy.SniffBytes))
	return head
}

// openFile opens a regular file.
func openFile(path string) (f *os.File, size int64, err error) {
	// One that has become a pipe since it was found is not waited for.
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// readPicture reads a file of at most so many bytes.
func readPicture(path string, most int64) ([]byte, *policy.Fault) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, fileFault(err)
	}
	defer f.Close()
	if size > most {
		return nil, invalid("too_large", fmt.Sprintf("%d bytes, at most %d are read", size, most))
	}
	// InspectImage refuses one that grew meanwhile.
	body, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fileFault(err)
	}
	return body, nil
}

// fileFault is the trouble of a file that cannot be read.
func fileFault(err error) *policy.Fault {
	if errors.Is(err, fs.ErrNotExist) {
		return invalid("not_found", "no such file")
	}
	// The name stands in a column of its own.
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return invalid("unreadable_file", err.Error())
}

func invalid(reason manifest.Reason, detail string) *policy.Fault {
	return &policy.Fault{Outcome: manifest.Invalid, Reason: reason, Detail: detail}
}

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
