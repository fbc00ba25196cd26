package manifest

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/pipeline/clean"
)

const outcomesHeader = "id,image,split,outcome,reason,detail,duplicate_of"

const maxDetail = 2000 // characters of a detail; people read it, and a line has a limit

// WriteOutcomes writes outcomes.csv, one record per result, in the order given. It stops at the first error of
// results, and refuses a result that no reader would take. A cell that a spreadsheet would run as a formula gets a '
// in front; a detail loses NUL, CR and broken UTF-8, and is cut at 2000 characters.
func WriteOutcomes(w io.Writer, results iter.Seq2[Result, error]) error {
	out := csv.NewWriter(w)
	_ = out.Write(strings.Split(outcomesHeader, ",")) // a failed write is remembered until the end
	row := 0
	for r, err := range results {
		if err != nil {
			return fmt.Errorf("write outcomes: %w", err)
		}
		row++
		r.Detail = cleanDetail(r.Detail)
		// One record that no reader takes would cost all after it.
		if p := r.fault(); p != nil {
			return fmt.Errorf("write outcomes, entry %d: %w", row, p)
		}
		cells := []string{string(r.ID), strconv.Itoa(r.Image), r.Split, string(r.Outcome), string(r.Reason), r.Detail, r.DuplicateOf.String()}
		_ = out.Write(each(cells, clean.Cell))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write outcomes: %w", err)
	}
	return nil
}

// String gives a key as tables show it: id, or id/N for an image other than the first.
func (k Key) String() string {
	if k.Image == 0 {
		return string(k.ID)
	}
	return fmt.Sprintf("%s/%d", k.ID, k.Image)
}

func cleanDetail(s string) string {
	// A CSV reader takes CR LF for LF.
	s = strings.NewReplacer("\x00", "", "\r", "").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	return fmt.Sprintf("%.*s", maxDetail, s)
}

// fault says why a result cannot stand in outcomes.csv, nil when it can.
func (r *Result) fault() *Problem {
	of := r.DuplicateOf
	switch {
	case !validID(string(r.ID)):
		return &Problem{Message: quote(string(r.ID)) + " is not a post id", Hint: lowerCaseID}
	case r.Image < 0 || r.Image > maxImage:
		return &Problem{Message: fmt.Sprintf("%d is not the number of an image", r.Image), Hint: "images are numbered from 0"}
	case !validWord(r.Split, maxSplit):
		return &Problem{Message: quote(r.Split) + " cannot name a split", Hint: splitForm}
	case !slices.Contains(Outcomes(), r.Outcome):
		names := strings.Trim(strings.ReplaceAll(fmt.Sprint(Outcomes()), " ", ", "), "[]")
		return &Problem{Message: quote(string(r.Outcome)) + " is not an outcome", Hint: "the outcomes are " + names}
	case r.Reason != "" && (!validWord(string(r.Reason), maxName) || foldASCII(string(r.Reason)) != string(r.Reason)):
		return &Problem{Message: quote(string(r.Reason)) + " is not a reason", Hint: "a reason has lower-case letters, digits and _"}
	case of != (Key{}) && (!validID(string(of.ID)) || of.Image < 0 || of.Image > maxImage):
		return &Problem{Message: quote(of.String()) + " does not name an entry", Hint: keyForm}
	}
	return nil
}

// What several messages say.
const (
	lowerCaseID = "ids stand here in lower case without t3_"
	splitForm   = "a split name has letters, digits and _, at most 32"
	keyForm     = "duplicate_of is an id, or id/N for an image other than the first"
)

// ReadOutcomes reads what WriteOutcomes wrote, strictly, as it is ranged over. A *Problem is about a
// line that is wrong, or that names an entry again; it does not name the file, which only the caller knows.
func ReadOutcomes(r io.Reader) iter.Seq2[Result, error] {
	return records(r, outcomesHeader, func(rec *record) (Result, error) {
		cell := func(i int) string { return strings.Clone(clean.FromCell(rec.cells[i].Text)) }
		result := Result{Split: cell(2), Outcome: Outcome(cell(3)), Reason: Reason(cell(4)), Detail: cell(5)}
		result.ID = PostID(cell(0))
		var ok bool
		result.Image, ok = imageNumber(rec.cells[1].Text)
		if !ok {
			return result, rec.problem(1, quote(rec.cells[1].Text)+" is not the number of an image",
				"images are numbered from 0")
		}
		if text := cell(6); text != "" {
			id, number, several := strings.Cut(text, "/")
			result.DuplicateOf.ID = PostID(id)
			result.DuplicateOf.Image, _ = imageNumber(number)
			if id == "" || several && result.DuplicateOf.Image == 0 {
				return result, rec.problem(6, quote(text)+" does not name an entry", keyForm)
			}
		}
		if p := result.fault(); p != nil {
			return result, rec.problem(-1, p.Message, p.Hint)
		}
		return result, rec.first(result.Key)
	})
}

// imageNumber reads a number as strconv.Itoa writes it; what is not one is 0.
func imageNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	// Another spelling, such as 01, would make a second entry of the same image.
	if err != nil || n < 0 || n > maxImage || strconv.Itoa(n) != s {
		return 0, false
	}
	return n, true
}

// A record is a line of a CSV file of ours, which has a fixed header.
type record struct {
	*csvRows
	cells []Cell
	seen  seen
}

// records reads the lines of such a file. A *Problem is about one line, and the next can be read; another
// error ends the file.
func records[T any](r io.Reader, header string, read func(*record) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := newCSVRows(r, "", ',')
		if err == nil && !slices.Equal(rows.Columns(), strings.Split(header, ",")) {
			err = &Problem{Line: 1, Message: "the header is not the one that this file has", Hint: "the first line is " + header}
		}
		if err != nil {
			yield(none, err)
			return
		}
		rec := record{csvRows: rows, seen: make(seen)}
		for n := 1; ; n++ {
			rec.cells, err = rows.Next()
			if err == io.EOF {
				return
			}
			if n > maxRows { // this row is one too many, whatever it holds
				yield(none, rec.problem(-1, "the file has more than 1,000,000 rows", "no manifest has as many"))
				return
			}
			value := none
			if err == nil {
				value, err = read(&rec)
			}
			if _, isProblem := asProblem(err); !yield(value, err) || err != nil && !isProblem {
				return
			}
		}
	}
}

// first reports a key that an earlier line has.
func (rec *record) first(k Key) error {
	if first, twice := rec.seen.add(k, rec.start); twice {
		return rec.problem(0, fmt.Sprintf("post %s, image %d, is already on line %d", k.ID, k.Image, first),
			"keep one of the lines")
	}
	return nil
}

func asProblem(err error) (*Problem, bool) {
	var p *Problem
	ok := errors.As(err, &p)
	return p, ok
}

// TombstonesName is the tombstones file as a release keeps it.
const TombstonesName = "tombstones.csv"

const tombstonesHeader = "id,state,time"

// ReadTombstones reads a tombstones file strictly. A file with the header alone is an empty list. The error is *Problems,
// which do not name the file, or the reader's own.
func ReadTombstones(r io.Reader) ([]Tombstone, error) {
	var tombstones []Tombstone
	var problems Problems
	// A file without the header is refused: a cut-off one must not bring posts back.
	for t, err := range records(r, tombstonesHeader, readTombstone) {
		if p, ok := asProblem(err); ok {
			problems.add(*p)
		} else if err != nil {
			return nil, err
		}
		tombstones = append(tombstones, t)
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return tombstones, nil
}

func readTombstone(rec *record) (Tombstone, error) {
	at := rec.cells[2].Text
	t := Tombstone{ID: PostID(strings.Clone(rec.cells[0].Text)), State: PostState(strings.Clone(rec.cells[1].Text))}
	var err error
	t.Time, err = time.Parse(time.RFC3339, at)
	if cell, message, hint := t.fault(); message != "" {
		return t, rec.problem(cell, message, hint)
	}
	if err != nil || t.Time.UTC().Format(time.RFC3339) != at {
		return t, rec.problem(2, quote(at)+" is not a time in UTC, to the second", "write it as 2025-12-31T23:59:59Z")
	}
	return t, rec.first(Key{ID: t.ID})
}

// fault says which cell of a tombstone cannot stand in the file.
func (t Tombstone) fault() (cell int, message, hint string) {
	if !validID(string(t.ID)) {
		return 0, quote(string(t.ID)) + " is not a post id", lowerCaseID
	}
	if !t.State.Gone() {
		return 1, quote(string(t.State)) + " is not a state of a tombstone", "it is removed, deleted or unavailable"
	}
	return 0, "", ""
}

// WriteTombstones writes the list in the order given, times in UTC to the second. It
// refuses what ReadTombstones would refuse; w may then hold a part of the file.
func WriteTombstones(w io.Writer, tombstones []Tombstone) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, tombstonesHeader)
	seen := make(seen)
	for i, t := range tombstones {
		_, message, _ := t.fault()
		if _, twice := seen.add(Key{ID: t.ID}, i); twice {
			message = "stands twice"
		}
		if message != "" {
			return fmt.Errorf("write tombstones: post %s: %s", quote(string(t.ID)), message)
		}
		fmt.Fprintf(out, "%s,%s,%s\n", t.ID, t.State, t.Time.UTC().Format(time.RFC3339))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write tombstones: %w", err)
	}
	return nil
}
