package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// Entries gives the manifest's entries in file order, reading as it is ranged over. It
// stops with an error at the first problem (*Problems), when ctx ends, or when the
// manifest is no longer the one that was opened; entries given before stand.
func (r *Release) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		_, err := r.scan(ctx.Err,
			func(e Entry) error {
				if !yield(e, nil) {
					return errStop
				}
				return nil
			},
			func(p Problem) error { return one(&p) })
		if err != nil && err != errStop {
			yield(Entry{}, err)
		}
	}
}

// errStop ends a scan whose reader has seen enough.
var errStop = errors.New("stop")

// A Summary counts what a manifest holds.
type Summary struct {
	Entries int
	Posts   int            // different post ids
	Splits  []string       // in order of first appearance
	Sizes   map[string]int // split -> entries
	// Counts is split -> category name -> label code -> entries with the label. Every
	// label of the schema is there, with 0 if need be.
	Counts map[string]map[string]map[string]int
}

// Check reads the whole manifest and goes on after a problem. Its error is *Problems
// when entries are wrong, and the Summary then counts the good ones.
func (r *Release) Check(ctx context.Context) (Summary, error) { return r.check(ctx.Err) }

func (r *Release) check(stopped func() error) (Summary, error) {
	t := tally{schema: r.Schema, splits: make(map[string]*splitTally)}
	var problems Problems
	posts, err := r.scan(stopped, t.add, func(p Problem) error {
		problems.add(p)
		return nil
	})
	s := t.summary()
	s.Posts = posts
	if err != nil {
		return s, err
	}
	return s, problems.err()
}

// A tally counts by number what Summary tells by name.
type tally struct {
	schema  Schema
	entries int
	order   []string
	splits  map[string]*splitTally
}

type splitTally struct {
	entries int
	labels  [][]int // by category and label
}

func (t *tally) add(e Entry) error {
	s := t.splits[e.Split]
	if s == nil {
		s = &splitTally{}
		for _, c := range t.schema.Categories {
			s.labels = append(s.labels, make([]int, len(c.Labels)))
		}
		t.splits[e.Split] = s
		t.order = append(t.order, e.Split)
	}
	t.entries++
	s.entries++
	for c, labels := range e.Labels {
		for _, l := range labels {
			s.labels[c][l]++
		}
	}
	return nil
}

func (t *tally) summary() Summary {
	s := Summary{Entries: t.entries, Splits: t.order, Sizes: make(map[string]int), Counts: make(map[string]map[string]map[string]int)}
	for split, counted := range t.splits {
		s.Sizes[split] = counted.entries
		byCategory := make(map[string]map[string]int)
		for c, category := range t.schema.Categories {
			byCode := make(map[string]int)
			for l, label := range category.Labels {
				byCode[label.Code] = counted.labels[c][l]
			}
			byCategory[category.Name] = byCode
		}
		s.Counts[split] = byCategory
	}
	return s
}

// scan reads the manifest once and gives the number of posts. Good entries go to emit,
// problems to report; an error of either, or of stopped, ends the scan and is returned.
func (r *Release) scan(stopped func() error, emit func(Entry) error, report func(Problem) error) (posts int, err error) {
	rows, closeRows, err := r.rows(r.plan.names(), false)
	if err != nil {
		return 0, err
	}
	defer closeRows()
	d, err := newDecoder(&r.plan, r.vocabularies, rows.Columns())
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", r.ManifestPath, err)
	}
	s := scanner{file: r.ManifestPath, rows: rows, decoder: d, emit: emit, report: report}
	if err := s.run(stopped); err != nil {
		return 0, err
	}
	return s.seen.posts(), r.unchanged()
}

// unchanged compares the manifest with the one that was opened.
func (r *Release) unchanged() error {
	sum, err := r.sum()
	if err != nil {
		return err
	}
	if sum != r.ManifestDigest {
		return fmt.Errorf("read %s: the file was changed while it was in use; start again", r.ManifestPath)
	}
	return nil
}

// A scanner is one reading of a manifest.
type scanner struct {
	file    string
	rows    source
	decoder *decoder
	emit    func(Entry) error
	report  func(Problem) error

	met     int // rows, good or not
	entries int
	seen    seen
}

func (s *scanner) run(stopped func() error) error {
	for {
		if err := stopped(); err != nil {
			return err
		}
		cells, err := s.rows.Next()
		if err == io.EOF {
			return s.atEnd()
		}
		if s.met++; s.met > maxRows {
			line, _ := s.rows.at(-1)
			return s.report(Problem{File: s.file, Line: line, Message: "the manifest has more than 1,000,000 rows; the rest was not read", Hint: "part the release"})
		}
		var p *Problem
		if errors.As(err, &p) {
			err = s.report(*p)
		} else if err == nil {
			err = s.row(cells)
		}
		if err != nil {
			return err
		}
	}
}

// row decodes one row and gives it on if it is good.
func (s *scanner) row(cells []Cell) error {
	var wrong []Problem
	s.decoder.report = func(cell int, message, hint string) {
		line, column := s.rows.at(cell)
		wrong = append(wrong, Problem{File: s.file, Line: line, Column: column, Message: message, Hint: hint})
	}
	e := s.decoder.entry(cells)
	e.Line, _ = s.rows.at(-1)
	if e.ID != "" {
		if first, twice := s.seen.add(e.Key, e.Line); twice {
			s.decoder.report(s.decoder.fields[fieldID], fmt.Sprintf("post %s, image %d, is already on line %d", e.ID, e.Image, first), "keep one of the rows; rows for further images of a post are told apart by an image column")
		}
	}
	for _, p := range wrong {
		if err := s.report(p); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return nil
	}
	e.Ordinal = s.entries
	s.entries++
	return s.emit(e)
}

// atEnd tells of what only a whole reading shows.
func (s *scanner) atEnd() error {
	if s.met == 0 {
		return s.report(Problem{File: s.file, Line: 1, Message: "the manifest has no entries", Hint: "each line below the header is an entry: a post id and its labels"})
	}
	j, isJSON := s.rows.(*jsonRows)
	if !isJSON || !slices.Contains(j.met, true) {
		return nil
	}
	for i, met := range j.met {
		if met {
			continue
		}
		err := s.report(Problem{File: s.file, Line: 1, Message: fmt.Sprintf("no line has the key %s", quote(j.keys[i])), Hint: "name the key as the lines spell it, under [columns] of release.toml"})
		if err != nil {
			return err
		}
	}
	return nil
}

// seen remembers where each key stood first, in little memory and without pointers.
type seen struct {
	first map[postKey]firstRow
	more  map[imageKey]int32 // keys of posts that stand with several images
}

type postKey [maxIDLength]byte

type imageKey struct {
	post  postKey
	image int16
}

type firstRow struct {
	line  int32
	image int16
}

// add notes a key; for one that is there already it tells where.
func (s *seen) add(k Key, line int) (first int, twice bool) {
	if s.first == nil {
		s.first, s.more = make(map[postKey]firstRow), make(map[imageKey]int32)
	}
	var post postKey
	copy(post[:], k.ID)
	image := int16(k.Image)
	row, known := s.first[post]
	if !known {
		s.first[post] = firstRow{line: int32(line), image: image}
		return 0, false
	}
	if row.image == image {
		return int(row.line), true
	}
	key := imageKey{post, image}
	if at, known := s.more[key]; known {
		return int(at), true
	}
	s.more[key] = int32(line)
	return 0, false
}

func (s *seen) posts() int { return len(s.first) }
