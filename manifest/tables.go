package manifest

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/csvcell"
	"rehydrate/internal/printable"
	"rehydrate/internal/userfile"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

const outcomesHeader = "id,image,split,outcome,reason,detail,duplicate_of"

const maxDetail = 2000 // characters of a detail; people read it, and a line has a limit

// WriteOutcomes writes outcomes.csv, one record per result, in the order given. It stops at the first error of
// results, and refuses a result that no reader would take. A cell that a spreadsheet would run as a formula gets a '
// in front; a detail loses broken UTF-8 and characters that a terminal acts on, and is cut at 2000 characters.
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
		if _, message, _ := r.fault(); message != "" {
			return fmt.Errorf("write outcomes, entry %d: %s", row, message)
		}
		cells := []string{string(r.ID), strconv.Itoa(r.Image), r.Split, string(r.Outcome), string(r.Reason), r.Detail,
			r.DuplicateOf.String()}
		_ = out.Write(each(cells, csvcell.Cell))
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

func cleanDetail(s string) string { return fmt.Sprintf("%.*s", maxDetail, printable.Drop(s, "\n\t")) }

func (r Result) key() Key { return r.Key }

// fault says which cell of a result cannot stand in outcomes.csv.
func (r Result) fault() (cell int, message, hint string) {
	of, reason := r.DuplicateOf, string(r.Reason)
	switch {
	case !validID(string(r.ID)):
		return 0, table.Quote(string(r.ID)) + " is not a post id", lowerCaseID
	case r.Image < 0 || r.Image > maxImage:
		return 1, "the image is not the number of one", "images are numbered from 0"
	case !value.IsWord(r.Split, MaxSplit):
		return 2, table.Quote(r.Split) + " cannot name a split", splitForm
	case !slices.Contains(Outcomes(), r.Outcome):
		names := strings.Trim(strings.ReplaceAll(fmt.Sprint(Outcomes()), " ", ", "), "[]")
		return 3, table.Quote(string(r.Outcome)) + " is not an outcome", "the outcomes are " + names
	case reason != "" && !isReason(reason):
		return 4, table.Quote(reason) + " is not a reason", "a reason has lower-case letters, digits and _"
	case of != (Key{}) && (!validID(string(of.ID)) || of.Image < 0 || of.Image > maxImage):
		return 6, "duplicate_of does not name an entry", "it is an id, or id/N for an image other than the first"
	}
	return 0, "", ""
}

// isReason reports whether a reason has the form of one.
func isReason(s string) bool { return value.IsWord(s, MaxName) && value.FoldASCII(s) == s }

// What several messages say.
const (
	lowerCaseID = "ids stand here in lower case without t3_"
	splitForm   = "a split name has letters, digits and _, at most 32"
)

// BeginsOutcomes reports whether a file can be one of outcomes, by its first bytes.
func BeginsOutcomes(head []byte) bool {
	return bytes.HasPrefix(userfile.Unmarked(head), []byte(outcomesHeader))
}

// ReadOutcomes reads what WriteOutcomes wrote, strictly, as it is ranged over. A *Problem is about a
// line that is wrong, or that names an entry again; it does not name the file, which only the caller knows.
func ReadOutcomes(r io.Reader) iter.Seq2[Result, error] {
	return records(r, []string{outcomesHeader}, func(cells []string) Result {
		cells = each(cells, csvcell.FromCell)
		result := Result{Split: cells[2], Outcome: Outcome(cells[3]), Reason: Reason(cells[4]), Detail: cells[5]}
		result.ID = PostID(cells[0])
		var isNumber bool
		result.Image, isNumber = ParseImage(cells[1])
		if !isNumber {
			result.Image = -1 // which is at fault
		}
		id, number, several := strings.Cut(cells[6], "/")
		result.DuplicateOf.ID = PostID(id)
		result.DuplicateOf.Image, _ = ParseImage(number)
		if several && result.DuplicateOf.Image == 0 {
			result.DuplicateOf.Image = -1
		}
		return result
	})
}

// ParseImage reads the number of an image, from 0, as strconv.Itoa writes it; what is not one is 0 and false.
func ParseImage(s string) (int, bool) {
	if s == "" { // of most, and the error that says so takes time
		return 0, false
	}
	n, err := strconv.Atoi(s)
	// Another spelling, such as 01, would make a second entry of the same image.
	if err != nil || n < 0 || n > maxImage || strconv.Itoa(n) != s {
		return 0, false
	}
	return n, true
}

// A row of a table of ours is about an entry. It says which of its cells cannot stand in the file.
type row interface {
	key() Key
	fault() (cell int, message, hint string)
}

// records reads the lines of a CSV file with one of the headers. A *Problem is about one line, and the next can be
// read; another error ends the file.
func records[T row](r io.Reader, headers []string, read func(cells []string) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := table.NewCSV(r, "", ',')
		if err == nil && !slices.Contains(headers, strings.Join(rows.Columns(), ",")) {
			err = &Problem{Line: 1, Message: "the header is not the one that this file has",
				Hint: "the first line is " + strings.Join(headers, " or ")}
		}
		if err != nil {
			yield(none, err)
			return
		}
		seen := make(seen)
		for {
			cells, err := rows.Next()
			if err == io.EOF {
				return
			}
			value := none
			if err == nil {
				value = read(each(cells, func(c Cell) string { return strings.Clone(c.Text) })) // which do not keep the row
				cell, message, hint := value.fault()
				key := value.key()
				if message != "" {
					err = rows.Problem(cell, message, hint)
				} else if first, twice := seen.add(key, rows.Start()); twice {
					err = rows.Problem(0, fmt.Sprintf("post %s, image %d, is already on line %d", key.ID, key.Image, first),
						"keep one of the lines")
				}
			}
			if _, isProblem := table.AsProblem(err); !yield(value, err) || err != nil && !isProblem {
				return
			}
		}
	}
}

// TombstonesName is the tombstones file as a release keeps it.
const TombstonesName = "tombstones.csv"

// The list of a workspace tells reasons, and that of a release does not: they would say who removed what.
const (
	tombstonesHeader = "id,state,time"
	reasonsHeader    = tombstonesHeader + ",reason"
)

// BeginsTombstones reports whether a file can be one of tombstones, with reasons or without, by its first bytes.
func BeginsTombstones(head []byte) bool {
	return bytes.HasPrefix(userfile.Unmarked(head), []byte(tombstonesHeader))
}

// ReadTombstones is ReadReasons for who does not go by reasons: it leaves them out, and takes every word for one.
func ReadTombstones(r io.Reader) ([]Tombstone, error) {
	list, err := ReadReasons(r, func(Reason) bool { return true })
	var tombstones []Tombstone
	for _, t := range list {
		tombstones = append(tombstones, t.Tombstone)
	}
	return tombstones, err
}

// ReadReasons reads a tombstones file strictly, with the reasons if it has them, of which known must report that it
// knows each. A file with the header alone is an empty list. The error is *Problems, which do not name the file, or the
// reader's own.
func ReadReasons(r io.Reader, known func(Reason) bool) ([]ReasonedTombstone, error) {
	var tombstones []ReasonedTombstone
	var problems Problems
	read := func(cells []string) tombstoneRow { return readTombstone(cells, known) }
	// A file without the header is refused: a cut-off one must not bring posts back.
	for t, err := range records(r, []string{tombstonesHeader, reasonsHeader}, read) {
		if p, ok := table.AsProblem(err); ok {
			problems.Add(*p)
		} else if err != nil {
			return nil, err
		}
		tombstones = append(tombstones, t.ReasonedTombstone)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return tombstones, nil
}

// A tombstoneRow is a line of a tombstones file.
type tombstoneRow struct {
	ReasonedTombstone
	unknown bool // the reason
}

func readTombstone(cells []string, known func(Reason) bool) tombstoneRow {
	at, _ := time.Parse(time.RFC3339, cells[2])
	if at.UTC().Format(time.RFC3339) != cells[2] {
		at = time.Unix(1<<40, 0) // which is at fault
	}
	var t tombstoneRow
	t.Tombstone = Tombstone{ID: PostID(cells[0]), State: PostState(cells[1]), Time: at}
	if len(cells) > 3 {
		t.Reason = Reason(cells[3])
		t.unknown = t.Reason != "" && !known(t.Reason)
	}
	return t
}

func (t tombstoneRow) key() Key { return Key{ID: t.ID} }

// fault says which cell of a tombstone cannot stand in the file.
func (t tombstoneRow) fault() (cell int, message, hint string) {
	reason := string(t.Reason)
	switch {
	case !validID(string(t.ID)):
		return 0, table.Quote(string(t.ID)) + " is not a post id", lowerCaseID
	case !t.State.Gone():
		return 1, table.Quote(string(t.State)) + " is not a state of a tombstone", "it is removed, deleted or unavailable"
	case t.Time.UTC().Year() > 9999: // RFC 3339 has no such year
		return 2, "the time is not one in UTC, to the second", "write it as 2025-12-31T23:59:59Z"
	case t.Time.IsZero() || t.Time.Unix() == 0:
		return 2, "the time is what programs write for a missing one",
			"write when the post was removed, or when you learned of it"
	case reason != "" && !isReason(reason), t.unknown:
		return 3, table.Quote(reason) + " is not a reason for a removal",
			"it is a word such as moderator or takedown, as it was exported; leave it empty if nobody knows"
	}
	return 0, "", ""
}

// WriteTombstones writes the list of a release, in the order given, times in UTC to the second. It refuses what
// ReadTombstones would refuse; w may then hold a part of the file.
func WriteTombstones(w io.Writer, tombstones []Tombstone) error {
	return writeTombstones(w, tombstonesHeader, func(yield func(ReasonedTombstone, string) bool) {
		for _, t := range tombstones {
			if !yield(ReasonedTombstone{Tombstone: t}, "") {
				return
			}
		}
	})
}

// WriteReasons is WriteTombstones for the list of a workspace, which has reasons.
func WriteReasons(w io.Writer, tombstones []ReasonedTombstone) error {
	return writeTombstones(w, reasonsHeader, func(yield func(ReasonedTombstone, string) bool) {
		for _, t := range tombstones {
			if !yield(t, ","+string(t.Reason)) {
				return
			}
		}
	})
}

// writeTombstones writes a list, each line with what ends it.
func writeTombstones(w io.Writer, header string, tombstones iter.Seq2[ReasonedTombstone, string]) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, header)
	seen := make(seen)
	for t, end := range tombstones {
		_, message, _ := tombstoneRow{ReasonedTombstone: t}.fault()
		if _, twice := seen.add(Key{ID: t.ID}, 0); twice {
			message = "stands twice"
		}
		if message != "" {
			return fmt.Errorf("write tombstones: post %s: %s", table.Quote(string(t.ID)), message)
		}
		fmt.Fprintf(out, "%s,%s,%s%s\n", t.ID, t.State, t.Time.UTC().Format(time.RFC3339), end)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write tombstones: %w", err)
	}
	return nil
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
