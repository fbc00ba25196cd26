package neardup

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"rehydrate/internal/csvcell"
	"rehydrate/internal/durable"
	"rehydrate/internal/page"
)

// The files of an answer.
const (
	groupsName     = "groups.csv"
	unreadableName = "unreadable.csv"
	sheetName      = "groups.html"
)

const unfinished = ".rehydrate-dedupe-" // begins the name of a file of an answer that has no name of its own yet

// write writes the answer and returns the names of its files.
func (s *Search) write(ctx context.Context, sheet contactSheet) ([]string, error) {
	type part struct {
		name string
		fill func(io.Writer) error
	}
	parts := []part{
		{sheetName, func(w io.Writer) error { return page.Write(w, sheetPage, sheet) }},
		{unreadableName, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(s.unreadableRecords()) }},
		{groupsName, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(s.groupRecords()) }},
	}
	if s.Pictures == 0 {
		parts = parts[1:]
	}
	if _, err := os.Lstat(s.Out); errors.Is(err, fs.ErrNotExist) {
		defer os.Remove(s.Out) // when nothing was published it is empty; else it stays
	}
	if err := durable.MkdirAll(ctx, s.Out, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Out)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir := durable.In(root)

	// What a killed search left goes first: it holds thumbnails, and this one may write no sheet.
	if err := dir.Remove(ctx, unfinished+sheetName, unfinished+unreadableName, unfinished+groupsName); err != nil {
		return nil, err
	}
	// All files are written and on the disk before one gets its name, so that an error up to here leaves the
	// earlier answer whole.
	var files []*durable.File
	for _, p := range parts {
		f, err := dir.Create(ctx, p.name, durable.Options{Temp: unfinished + p.name})
		if err != nil {
			return nil, err
		}
		defer f.Discard()
		b := bufio.NewWriter(f)
		if err := errors.Join(p.fill(b), b.Flush(), f.Sync()); err != nil {
			return nil, fmt.Errorf("write %s: %w", p.name, err)
		}
		files = append(files, f)
	}
	if err := vacant(s.Out, s.Force); err != nil {
		return nil, err
	}
	// groups.csv says that an answer is complete: the old one goes first and the new one comes last, so that it
	// never stands beside files of another answer.
	if err := dir.Remove(ctx, groupsName, sheetName, unreadableName); err != nil {
		return nil, err
	}
	var written []string
	for i, f := range files {
		if err := f.Publish(); err != nil {
			return nil, err
		}
		written = append(written, filepath.Join(s.Out, parts[i].name))
	}
	return written, nil
}

// groupRecords has a record for each picture of each group, the kept one first.
func (s *Search) groupRecords() [][]string {
	records := [][]string{{"group", "file", "kept", "duplicate_of", "hash_distance", "word_distance", "class", "phash"}}
	for i, group := range s.groups {
		for _, one := range group {
			record := []string{strconv.Itoa(i + 1), csvcell.Name(one.name), "true", "", "", "", "",
				fmt.Sprintf("%016x", one.item.Hash.Bits)}
			if d := one.found; one.of != nil {
				record[2], record[3], record[4], record[6] = "false", csvcell.Name(one.of.name), strconv.Itoa(d.HashDistance),
					d.Class
				if !s.Rule.ImageOnly {
					record[5] = strconv.Itoa(d.WordDistance)
				}
			}
			records = append(records, record)
		}
	}
	return records
}

// unreadableRecords has a record for each picture that could not be read.
func (s *Search) unreadableRecords() [][]string {
	records := [][]string{{"file", "reason", "detail"}}
	for _, one := range s.all {
		if one.fault != nil {
			records = append(records, []string{csvcell.Name(one.name), string(one.fault.Reason),
				csvcell.Name(one.fault.Detail)})
		}
	}
	return records
}

// vacant refuses a folder in which an answer cannot be written, or, without force, one that has an answer.
func vacant(dir string, force bool) error {
	for _, name := range []string{groupsName, unreadableName, sheetName} {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path) // a link that leads nowhere is there, too
		switch {
		case err == nil && info.IsDir():
			return fmt.Errorf("%s is a folder\n  hint: --out DIR names another place for the answer", path)
		case err == nil && !force:
			return fmt.Errorf("%s is there already\n  hint: --force writes over it, --out DIR names another folder", path)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("write into %s: %w", dir, err)
		}
	}
	return nil
}

// writable makes sure that files can be made in the folder of the answer, or where it will be made. It leaves nothing.
func writable(dir string) error {
	there := filepath.Clean(dir)
	for there != filepath.Dir(there) {
		if _, err := os.Lstat(there); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		there = filepath.Dir(there)
	}
	f, err := os.CreateTemp(there, unfinished+"*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("write into %s: %w", dir, err)
	}
	return nil
}
