package manifest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"rehydrate/pipeline/clean"
)

const outcomesHeader = "id,image,split,outcome,reason,detail,duplicate_of"

const maxDetail = 2000 // bytes of a detail; people read it, and a line has a limit

// WriteOutcomes writes outcomes.csv: the header id,image,split,outcome,reason,detail,
// duplicate_of, then one record per result, in the order given. duplicate_of is the
// kept entry's id, or id/N for an image other than the first. It stops at the first
// error of results, and refuses a result that no reader would take.
//
// A cell that a spreadsheet would run as a formula (it starts with = + - @, TAB or CR)
// gets a ' in front, which ReadOutcomes takes off. A detail keeps its text, but loses
// NUL and broken UTF-8, ends lines with LF, and is cut at 2000 bytes.
func WriteOutcomes(w io.Writer, results iter.Seq2[Result, error]) error {
	out := csv.NewWriter(w)
	if err := out.Write(strings.Split(outcomesHeader, ",")); err != nil {
		return fmt.Errorf("write outcomes: %w", err)
	}
	row := 0
	for r, err := range results {
		if err != nil {
			return fmt.Errorf("write outcomes: %w", err)
		}
		row++
		r.Detail = cleanDetail(r.Detail)
		if p := r.fault(); p != nil {
			return fmt.Errorf("write outcomes, entry %d: %w", row, p)
		}
		cells := []string{string(r.ID), strconv.Itoa(r.Image), r.Split, string(r.Outcome), string(r.Reason), r.Detail, r.DuplicateOf.String()}
		for i := range cells {
			cells[i] = clean.Cell(cells[i])
		}
		if err := out.Write(cells); err != nil {
			return fmt.Errorf("write outcomes: %w", err)
		}
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
	s = strings.ReplaceAll(strings.ToValidUTF8(cut(s, maxDetail), "\uFFFD"), "\x00", "")
	lines := strings.Split(s, "\n")
	for i := range lines[:len(lines)-1] {
		lines[i] = strings.TrimRight(lines[i], "\r")
	}
	return strings.Join(lines, "\n")
}

// fault tells why a result cannot stand in outcomes.csv.
func (r *Result) fault() *Problem {
	switch {
	case !validID(string(r.ID)):
		return &Problem{Message: fmt.Sprintf("%s is not a post id", quote(string(r.ID))), Hint: "ids stand here in lower case without t3_"}
	case r.Image < 0 || r.Image > maxImage:
		return &Problem{Message: fmt.Sprintf("%d is not the number of an image", r.Image), Hint: "images of a post are numbered from 0"}
	case !validWord(r.Split, maxSplit):
		return &Problem{Message: fmt.Sprintf("%s cannot name a split", quote(r.Split)), Hint: "a split name has letters, digits and _, at most 32"}
	case !slices.Contains(Outcomes(), r.Outcome):
		return &Problem{Message: fmt.Sprintf("%s is not an outcome", quote(string(r.Outcome))), Hint: "the outcomes are " + strings.ReplaceAll(strings.Trim(fmt.Sprint(Outcomes()), "[]"), " ", ", ")}
	case r.Reason != "" && (!validWord(string(r.Reason), maxName) || foldASCII(string(r.Reason)) != string(r.Reason)):
		return &Problem{Message: fmt.Sprintf("%s is not a reason", quote(string(r.Reason))), Hint: "a reason has lower-case letters, digits and _"}
	case r.DuplicateOf != (Key{}) && (!validID(string(r.DuplicateOf.ID)) || r.DuplicateOf.Image < 0 || r.DuplicateOf.Image > maxImage):
		return &Problem{Message: fmt.Sprintf("%s does not name an entry", quote(r.DuplicateOf.String())), Hint: "duplicate_of is an id, or id/N for an image other than the first"}
	}
	return nil
}

// ReadOutcomes reads what WriteOutcomes wrote, strictly, as it is ranged over. It ends
// with a *Problem at the first line that is wrong, or that names an entry again; it does
// not name the file, which only the caller knows.
func ReadOutcomes(r io.Reader) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		rows, err := openTable(r, outcomesHeader)
		if err != nil {
			yield(Result{}, err)
			return
		}
		seen := make(seen)
		for {
			cells, err := rows.next()
			if err == io.EOF {
				return
			}
			var result Result
			if err == nil {
				result, err = readResult(rows, cells, seen)
			}
			if !yield(result, err) || err != nil {
				return
			}
		}
	}
}

func readResult(rows *tableReader, cells []string, seen seen) (Result, error) {
	r := Result{Split: strings.Clone(clean.FromCell(cells[2])), Outcome: Outcome(clean.FromCell(cells[3])), Reason: Reason(clean.FromCell(cells[4])), Detail: clean.FromCell(cells[5])}
	r.ID = PostID(clean.FromCell(cells[0]))
	image, ok := imageNumber(cells[1])
	if !ok {
		return Result{}, rows.problem(1, fmt.Sprintf("%s is not the number of an image", quote(cells[1])), "images of a post are numbered from 0")
	}
	r.Image = image
	if text := clean.FromCell(cells[6]); text != "" {
		id, number, several := strings.Cut(text, "/")
		r.DuplicateOf.ID = PostID(id)
		r.DuplicateOf.Image, ok = imageNumber(number)
		if several && (!ok || r.DuplicateOf.Image == 0) || r.DuplicateOf.ID == "" {
			return Result{}, rows.problem(6, fmt.Sprintf("%s does not name an entry", quote(text)), "duplicate_of is an id, or id/N for an image other than the first")
		}
	}
	if p := r.fault(); p != nil {
		return Result{}, rows.problem(-1, p.Message, p.Hint)
	}
	if first, twice := seen.add(r.Key, rows.start); twice {
		return Result{}, rows.problem(0, fmt.Sprintf("post %s, image %d, is already on line %d", r.ID, r.Image, first), "an entry has one outcome; was the file edited?")
	}
	return r, nil
}

// imageNumber reads a number as strconv.Itoa writes it.
func imageNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n <= maxImage && strconv.Itoa(n) == s
}

// A tableReader reads a CSV file of ours, which has a fixed header.
type tableReader struct {
	*csvRows
	met  int
	text []string
}

// openTable checks the header. Errors are *Problem or the reader's own.
func openTable(r io.Reader, header string) (*tableReader, error) {
	rows, err := newCSVRows(r, "", ',')
	if err != nil {
		return nil, err
	}
	if !slices.Equal(rows.Columns(), strings.Split(header, ",")) {
		return nil, &Problem{Line: 1, Message: "the header is not the one that this file has", Hint: "the first line is " + header}
	}
	return &tableReader{csvRows: rows}, nil
}

func (t *tableReader) next() ([]string, error) {
	cells, err := t.Next()
	if err != nil {
		return nil, err
	}
	t.met++
	if t.met > maxRows {
		return nil, t.problem(-1, "the file has more than 1,000,000 rows", "no manifest has as many")
	}
	t.text = t.text[:0]
	for _, c := range cells {
		t.text = append(t.text, c.Text)
	}
	return t.text, nil
}

// asProblem gives the *Problem in err, if that is what it is.
func asProblem(err error) (*Problem, bool) {
	var p *Problem
	ok := errors.As(err, &p)
	return p, ok
}
