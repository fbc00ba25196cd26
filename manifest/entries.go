package manifest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// Entries gives the manifest's good entries in file order. It goes on after a problem, and ends with an error if it met
// any (*Problems), if ctx ended, or if the manifest is no longer the one that was opened: the entries before it then
// are not all, or not those of the release.
func (r *Release) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		stopped := false
		_, err := r.scan(ctx, func(e Entry) bool {
			stopped = !yield(e, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(Entry{}, err)
		}
	}
}

// Check reads the whole manifest as Entries does. Its error is *Problems when entries are wrong,
// and the Summary then counts the good ones.
func (r *Release) Check(ctx context.Context) (Summary, error) {
	return r.scan(ctx, func(Entry) bool { return true })
}

// A Summary counts what a manifest holds.
type Summary struct {
	Entries int
	Posts   int      // different post ids
	Splits  []string // in order of first appearance
}

// scan gives the good entries to emit until that returns false.
func (r *Release) scan(ctx context.Context, emit func(Entry) bool) (Summary, error) {
	var counted Summary
	rows, err := r.openRows(r.used(), false)
	if err != nil {
		return counted, err
	}
	defer rows.Close()
	d, err := newDecoder(r, rows.Columns())
	if err != nil {
		return counted, err
	}
	var problems Problems
	d.report = func(cell int, message, hint string) {
		line, column := rows.at(cell)
		problems.add(Problem{File: r.ManifestPath, Line: line, Column: column, Message: message, Hint: hint})
	}
	ofFile := func(message, hint string) {
		problems.add(Problem{File: r.ManifestPath, Line: 1, Message: message, Hint: hint})
	}
	seen := make(seen)
	for met := 0; ; met++ {
		if err := ctx.Err(); err != nil {
			return counted, err
		}
		cells, err := rows.Next()
		if err == io.EOF {
			if met == 0 && !r.options.MayBeEmpty {
				ofFile("the manifest has no entries",
					"each line below the header is an entry: a post id and its labels")
			}
			break
		}
		if met == maxRows {
			d.report(-1, "the manifest has more than 1,000,000 rows; the rest was not read", "part the release")
			break
		}
		if p, ok := asProblem(err); ok {
			problems.add(*p)
			continue
		}
		if err != nil {
			return counted, fmt.Errorf("read %s: %w", r.ManifestPath, err)
		}
		found := problems.count()
		e := d.entry(cells)
		e.Line, _ = rows.at(-1)
		// A row that is wrong in another way still holds its key.
		if first, twice := seen.add(e.Key, e.Line); twice {
			d.report(d.fields[fieldID], fmt.Sprintf("post %s, image %d, is already on line %d", e.ID, e.Image, first),
				"keep one of the rows; rows for further images of a post are told apart by an image column")
		}
		if problems.count() > found {
			continue
		}
		e.Ordinal = counted.Entries
		counted.Entries++
		if !slices.Contains(counted.Splits, e.Split) {
			counted.Splits = append(counted.Splits, e.Split)
		}
		if !emit(e) {
			return counted, nil
		}
	}
	counted.Posts = len(seen)
	// What only a whole reading shows.
	if j, isJSON := rows.source.(*jsonRows); isJSON && slices.Contains(j.met, true) {
		for i, met := range j.met {
			if !met {
				ofFile("no line has the key "+quote(j.keys[i]),
					"name the key as the lines spell it, under [columns] of release.toml")
			}
		}
	}
	// The problems of another file would not help.
	if err := r.unchanged(); err != nil {
		return counted, err
	}
	return counted, problems.err()
}

// seen remembers where each key stood first, by post: most have one image.
type seen map[PostID][]place

type place struct {
	line  int32
	image int16
}

// add notes a key; of one that it has already it gives the line. An empty id is not noted.
func (s seen) add(k Key, line int) (first int, twice bool) {
	for _, p := range s[k.ID] {
		if int(p.image) == k.Image {
			return int(p.line), true
		}
	}
	if k.ID != "" {
		id := PostID(strings.Clone(string(k.ID))) // which does not keep its row
		s[id] = append(s[id], place{int32(line), int16(k.Image)})
	}
	return 0, false
}
