package near

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"rehydrate/dedupe"
	"rehydrate/pipeline/dataset"
)

// The files of an answer.
const (
	GroupsName     = "groups.csv"
	UnreadableName = "unreadable.csv"
	SheetName      = "groups.html"
)

// mostOfGroup bounds the pictures of one group on the contact sheet, so that a large group
// leaves room for the others.
const mostOfGroup = 24

// A sheet is what the contact sheet shows.
type sheet struct {
	groups [][]int // those of the pictures' places that are shown, group by group
	thumbs map[int]dataset.SheetPicture
}

// drawSheet looks at the pictures again that the contact sheet shows, and makes them small.
func (f *Search) drawSheet(ctx context.Context, near nearGroups) (sheet, error) {
	s := sheet{thumbs: map[int]dataset.SheetPicture{}}
	wanted := map[int]bool{}
	for _, group := range near.groups {
		room := f.Pictures - len(wanted)
		if room < 2 { // a group shows the kept picture and another one
			break
		}
		shown := group[:min(len(group), room, mostOfGroup)]
		s.groups = append(s.groups, shown)
		for _, place := range shown {
			wanted[place] = true
		}
	}
	if len(wanted) == 0 {
		return s, nil
	}
	draw := func(ctx context.Context, p picture, was *looked) error {
		shown := f.draw(ctx, p, was, near.decisions[p.index])
		f.telling.Lock()
		defer f.telling.Unlock()
		s.thumbs[p.index] = shown
		return ctx.Err()
	}
	err := f.each(ctx, walk{stage: "draw", total: len(wanted), wanted: func(i int) bool { return wanted[i] },
		slot: func(p picture) *looked { return f.list[p.index] }, do: draw})
	return s, err
}

var errOtherNow = errors.New("it changed while it was looked at")

// draw makes a picture small. It may be another one by now, or none.
func (f *Search) draw(ctx context.Context, p picture, was *looked, d dedupe.Decision) dataset.SheetPicture {
	shown := dataset.SheetPicture{Name: ShownName(was.name), Near: f.nearness(d)}
	body, fault := p.encoded()
	if fault == nil {
		fault = f.decoded(ctx, body, func(img image.Image) error {
			hash, err := dedupe.HashImage(img)
			if err == nil && hash != was.item.Hash {
				err = errOtherNow
			}
			if err == nil {
				shown.Thumb, err = dataset.NewThumbnail(img, shown.Name)
			}
			return err
		})
	}
	if fault != nil {
		shown.Trouble = fault.Detail
	}
	return shown
}

// classWords say of a class why a picture is near the one that is kept, where texts were compared.
var classWords = map[string]string{
	dedupe.ClassSameText: "same text",
	dedupe.ClassNearText: "nearly the same text",
	dedupe.ClassNoText:   "neither has text",
	dedupe.ClassOneEmpty: "one has no text",
	dedupe.ClassFlat:     "one colour, the same bytes",
}

// nearness says in words how near a picture is to the one that is kept; "" of a kept one.
func (f *Search) nearness(d dedupe.Decision) string {
	if d.Kept() {
		return ""
	}
	s := fmt.Sprintf("%d of 64 bits differ", d.HashDistance)
	if words, ok := classWords[d.Class]; ok {
		s += fmt.Sprintf(", %d words: %s", d.WordDistance, words)
	}
	return s
}

// RuleWords says in a sentence when two pictures count as near.
func RuleWords(r dedupe.Rule) string {
	if r.ImageOnly {
		return fmt.Sprintf("Pictures alone are compared: two are near when their 64-bit perceptual hashes differ in at most %d bits; pictures of one colour when their bytes are the same.", r.Radius)
	}
	s := fmt.Sprintf("Two pictures are near when their 64-bit perceptual hashes differ in at most %d bits and their texts in fewer than %d words; two without text when they pass a stricter test of the picture; pictures of one colour when their bytes are the same.", r.Radius, r.Words)
	if r.Guard {
		s += " Texts of which half or more differs are not near."
	}
	return s
}

// write writes the answer and returns the names of its files.
func (f *Search) write(ctx context.Context, near nearGroups, s sheet, sum Summary) (written []string, err error) {
	a, err := newAnswer(f.Out, f.Force)
	if err != nil {
		return nil, err
	}
	defer a.discard()
	if f.Pictures > 0 {
		err = a.file(SheetName, func(w io.Writer) error { return f.writeSheet(w, near, s, sum) })
	}
	if err == nil {
		err = a.file(UnreadableName, f.writeUnreadable)
	}
	if err == nil {
		err = a.file(GroupsName, func(w io.Writer) error { return f.writeGroups(w, near) })
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return a.publish()
}

func (f *Search) writeSheet(w io.Writer, near nearGroups, s sheet, sum Summary) error {
	head := dataset.Sheet{Source: ShownName(f.Path), Rule: RuleWords(f.Rule), Files: sum.Files, Unreadable: sum.Unreadable,
		Groups: sum.Groups, Duplicates: sum.Duplicates, ShownGroups: len(s.groups), ShownPictures: len(s.thumbs), TotalInAll: sum.Groups + sum.Duplicates}
	groups := func(yield func(dataset.SheetGroup, error) bool) {
		for i, places := range s.groups {
			g := dataset.SheetGroup{Number: i + 1, More: len(near.groups[i]) - len(places)}
			for _, place := range places {
				g.Pictures = append(g.Pictures, s.thumbs[place])
			}
			if !yield(g, nil) {
				return
			}
		}
	}
	return dataset.WriteSheet(w, head, iter.Seq2[dataset.SheetGroup, error](groups))
}

// writeGroups writes a record for each picture of each group, the kept one first.
func (f *Search) writeGroups(w io.Writer, near nearGroups) error {
	out := csv.NewWriter(w)
	header := []string{"group", "file", "kept", "duplicate_of", "hash_distance", "word_distance", "class", "phash"}
	if err := out.Write(header); err != nil {
		return err
	}
	for i, group := range near.groups {
		for _, place := range group {
			one, d := f.list[place], near.decisions[place]
			record := []string{strconv.Itoa(i + 1), cell(one.name), "true", "", "", "", "", fmt.Sprintf("%016x", one.item.Hash.Bits)}
			if !d.Kept() {
				record[2], record[3], record[6] = "false", cell(f.list[d.Of].name), d.Class
				record[4], record[5] = strconv.Itoa(d.HashDistance), strconv.Itoa(d.WordDistance)
				if f.Rule.ImageOnly {
					record[5] = ""
				}
			}
			if err := out.Write(record); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// writeUnreadable writes a record for each picture that could not be read.
func (f *Search) writeUnreadable(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"file", "reason", "detail"}); err != nil {
		return err
	}
	for _, one := range f.list {
		if one.fault == nil {
			continue
		}
		if err := out.Write([]string{cell(one.name), string(one.fault.Reason), cell(shownText(one.fault.Detail))}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// ShownName makes a file's name fit for a table, a page and a terminal: as it is where all of
// it can be printed, else in quotes with escapes, as Go writes it. So is a name that begins
// with a quote, and no two names come out the same.
func ShownName(name string) string {
	if strings.HasPrefix(name, `"`) || shownText(name) != name {
		return strconv.QuoteToGraphic(name)
	}
	return name
}

// shownText replaces what cannot be printed: control and format characters, bytes that are no
// UTF-8.
func shownText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !strconv.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// cell is a name as a cell of a table that a spreadsheet does not run as a formula: one that
// starts with = + - @ gets a ' in front, and one that has that already gets another.
func cell(name string) string {
	name = ShownName(name)
	if rest := strings.TrimLeft(name, "'"); rest != "" && strings.ContainsRune("=+-@", rune(rest[0])) {
		return "'" + name
	}
	return name
}

// unfinished begins the name of a file of an answer that has not got its name yet.
const unfinished = ".rehydrate-dedupe-"

// An answer is a set of files. groups.csv says that it is complete: it comes last, and the one of
// an earlier answer goes first, so that files of two answers never stand beside one.
type answer struct {
	dir   string
	made  bool // the folder was not there before
	force bool
	temps map[string]string // by name
	names []string          // in the order in which they are published
}

func newAnswer(dir string, force bool) (*answer, error) {
	_, err := os.Lstat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the answer: %w", err)
	}
	// What a killed search left holds thumbnails.
	left, err := filepath.Glob(filepath.Join(globbed(dir), unfinished+"*"))
	for _, path := range left {
		err = errors.Join(err, removed(path))
	}
	if err != nil {
		return nil, fmt.Errorf("remove what an unfinished search left: %w", err)
	}
	return &answer{dir: dir, made: made, force: force, temps: map[string]string{}}, nil
}

// globbed is a path as a pattern that matches it alone.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// file writes one file, complete and on the disk, under a name that is not yet its own.
func (a *answer) file(name string, fill func(io.Writer) error) error {
	f, err := os.CreateTemp(a.dir, unfinished+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	a.temps[name] = f.Name()
	a.names = append(a.names, name)
	w := bufio.NewWriter(f)
	err = fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// publish names the files, groups.csv last. What an earlier answer had goes before: it would not
// fit.
func (a *answer) publish() ([]string, error) {
	if err := vacant(a.dir, a.force); err != nil {
		return nil, err
	}
	for _, name := range []string{GroupsName, SheetName, UnreadableName} {
		if err := removed(filepath.Join(a.dir, name)); err != nil {
			return nil, fmt.Errorf("remove the earlier answer: %w", err)
		}
	}
	if err := syncFolder(a.dir); err != nil {
		return nil, err
	}
	var written []string
	for _, name := range a.names {
		path := filepath.Join(a.dir, name)
		if name == GroupsName {
			if err := syncFolder(a.dir); err != nil {
				return nil, err
			}
		}
		if err := os.Rename(a.temps[name], path); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		delete(a.temps, name)
		written = append(written, path)
	}
	a.made = false
	return written, syncFolder(a.dir)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("write the folder %s to disk: %w", dir, err)
	}
	return nil
}

// discard removes what was not published. What is wrong with files that go is of no interest.
func (a *answer) discard() {
	for _, temp := range a.temps {
		os.Remove(temp)
	}
	if a.made {
		os.Remove(a.dir) // only where it is empty
	}
}

// vacant reports what an answer cannot be written over, and without force what it would be.
func vacant(dir string, force bool) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("write into %s: it is not a folder", dir)
	}
	for _, name := range []string{GroupsName, UnreadableName, SheetName} {
		info, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case err == nil && info.IsDir():
			return fmt.Errorf("%s is a folder: --out DIR names another place for the answer", filepath.Join(dir, name))
		case err == nil && force:
		case err == nil:
			return fmt.Errorf("%s is there already: --force writes over it, --out DIR names another folder", filepath.Join(dir, name))
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("write into %s: %w", dir, err)
		}
	}
	return nil
}

// writable makes sure that files can be made in the folder of the answer, or where it will be made:
// to learn it when all pictures have been looked at is late. It leaves nothing.
func writable(dir string) error {
	there := filepath.Clean(dir)
	for {
		if _, err := os.Lstat(there); !errors.Is(err, fs.ErrNotExist) || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	f, err := os.CreateTemp(there, unfinished+"*")
	if err != nil {
		return fmt.Errorf("write into %s: %w", dir, err)
	}
	return errors.Join(f.Close(), removed(f.Name()))
}

// removed removes a file; one that went already is gone too.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
