package manifest

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// TombstonesName is the tombstones file as a release keeps it.
const TombstonesName = "tombstones.csv"

const tombstonesHeader = "id,state,time"

// ReadTombstones reads a tombstones file strictly: the header id,state,time, then one
// post a line, in lower case without t3_, with the state removed, deleted or
// unavailable and a time such as 2025-12-31T23:59:59Z. A file with the header alone is
// an empty list; a file without it is not, because a cut-off file must not bring posts
// back. The error is *Problems, or the reader's own; it does not name the file, which
// only the caller knows.
func ReadTombstones(r io.Reader) ([]Tombstone, error) {
	rows, err := openTable(r, tombstonesHeader)
	if p, ok := asProblem(err); ok {
		return nil, one(p)
	}
	if err != nil {
		return nil, err
	}
	var tombstones []Tombstone
	var problems Problems
	seen := make(seen)
	for {
		cells, err := rows.next()
		if err == io.EOF {
			break
		}
		var t Tombstone
		if err == nil {
			t, err = readTombstone(rows, cells, seen)
		}
		if p, ok := asProblem(err); ok {
			problems.add(*p)
			if rows.met > maxRows {
				break
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		tombstones = append(tombstones, t)
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return tombstones, nil
}

func readTombstone(rows *tableReader, cells []string, seen seen) (Tombstone, error) {
	t := Tombstone{ID: PostID(cells[0]), State: PostState(cells[1])}
	if !validID(cells[0]) {
		return t, rows.problem(0, fmt.Sprintf("%s is not a post id", quote(cells[0])), "ids stand here in lower case without t3_")
	}
	if !t.State.Gone() {
		return t, rows.problem(1, fmt.Sprintf("%s is not a state of a tombstone", quote(cells[1])), "it is removed, deleted or unavailable")
	}
	var err error
	t.Time, err = time.Parse(time.RFC3339, cells[2])
	if err != nil || t.Time.UTC().Format(time.RFC3339) != cells[2] {
		return t, rows.problem(2, fmt.Sprintf("%s is not a time in UTC, to the second", quote(cells[2])), "write it as 2025-12-31T23:59:59Z")
	}
	if first, twice := seen.add(Key{ID: t.ID}, rows.start); twice {
		return t, rows.problem(0, fmt.Sprintf("post %s is already on line %d", t.ID, first), "keep one of the lines")
	}
	return t, nil
}

// WriteTombstones writes the list in the order given, times in UTC to the second. It
// refuses what ReadTombstones would refuse; w may then hold a part of the file.
func WriteTombstones(w io.Writer, tombstones []Tombstone) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, tombstonesHeader)
	seen := make(seen)
	for i, t := range tombstones {
		at := t.Time.UTC().Truncate(time.Second)
		_, twice := seen.add(Key{ID: t.ID}, i)
		switch {
		case !validID(string(t.ID)):
			return fmt.Errorf("write tombstones: %s is not a post id", quote(string(t.ID)))
		case !t.State.Gone():
			return fmt.Errorf("write tombstones: post %s: state %s is not removed, deleted or unavailable", t.ID, quote(string(t.State)))
		case at.Year() < 1 || at.Year() > 9999:
			return fmt.Errorf("write tombstones: post %s: the year %d cannot be written", t.ID, at.Year())
		case twice:
			return fmt.Errorf("write tombstones: post %s stands twice", t.ID)
		}
		fmt.Fprintf(out, "%s,%s,%s\n", t.ID, t.State, at.Format(time.RFC3339))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write tombstones: %w", err)
	}
	return nil
}
