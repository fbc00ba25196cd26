package manifest

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// TombstonesName is the tombstones file as a release keeps it.
const TombstonesName = "tombstones.csv"

const tombstonesHeader = "id,state,time"

// ReadTombstones reads a tombstones file strictly. A file with the header alone is an empty list; a file without it is
// not, because a cut-off file must not bring posts back. The error is *Problems, which do not name the file, or the
// reader's own.
func ReadTombstones(r io.Reader) ([]Tombstone, error) {
	var tombstones []Tombstone
	var problems Problems
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
	id, state, at := rec.cells[0].Text, rec.cells[1].Text, rec.cells[2].Text
	t := Tombstone{ID: PostID(strings.Clone(id)), State: PostState(strings.Clone(state))}
	if !validID(id) {
		return t, rec.problem(0, quote(id)+" is not a post id", lowerCaseID)
	}
	if !t.State.Gone() {
		return t, rec.problem(1, quote(state)+" is not a state of a tombstone", "it is removed, deleted or unavailable")
	}
	var err error
	t.Time, err = time.Parse(time.RFC3339, at)
	if err != nil || t.Time.UTC().Format(time.RFC3339) != at {
		return t, rec.problem(2, quote(at)+" is not a time in UTC, to the second", "write it as 2025-12-31T23:59:59Z")
	}
	return t, rec.first(Key{ID: t.ID})
}

// WriteTombstones writes the list in the order given, times in UTC to the second. It
// refuses what ReadTombstones would refuse; w may then hold a part of the file.
func WriteTombstones(w io.Writer, tombstones []Tombstone) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, tombstonesHeader)
	seen := make(seen)
	for i, t := range tombstones {
		_, twice := seen.add(Key{ID: t.ID}, i)
		switch {
		case !validID(string(t.ID)):
			return fmt.Errorf("write tombstones: %s is not a post id", quote(string(t.ID)))
		case !t.State.Gone():
			return fmt.Errorf("write tombstones: post %s: %s is not a state of a tombstone", t.ID, quote(string(t.State)))
		case twice:
			return fmt.Errorf("write tombstones: post %s stands twice", t.ID)
		}
		fmt.Fprintf(out, "%s,%s,%s\n", t.ID, t.State, t.Time.UTC().Format(time.RFC3339))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write tombstones: %w", err)
	}
	return nil
}
