package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// Lists of this program name removed posts by right, wherever somebody lays or packs them: outcomes.csv, the records of
// an audit log and statements of audits are handed to auditors, and a list of tombstones is published so that others
// can take out what it names. A file counts as one only if all of it is read as one, so that it has no room for
// anything else but details and notes, which are searched for texts and images as ever.

// isOwnList reports whether a file is a list of this program that names removed posts by right. Under a temporary name
// of the workspace it may be cut off: a run is writing it, or was killed. What a small file unpacks to is none if it is
// long, as reading it takes memory.
func (a *audit) isOwnList(p place, all *io.SectionReader, temporary bool) bool {
	most := p.atOnce(maxImage)
	head, err := readAll(io.NewSectionReader(all, 0, min(all.Size(), 64)), 64)
	switch {
	case err != nil:
		return false
	case manifest.BeginsOutcomes(head):
		return all.Size() <= max(most, p.src.size) && a.listsOutcomes(all, temporary)
	case manifest.BeginsTombstones(head):
		return temporary || all.Size() <= most && listsTombstones(all)
	case bytes.HasPrefix(head, []byte(`{"seq":`)):
		return listsRecords(all)
	}
	return bytes.HasPrefix(head, []byte(`{`)) && bytes.Contains(head, []byte(StatementFormat)) &&
		isStatement(all, most)
}

// listsOutcomes reports whether a file is a list of outcomes by which no image of a removed post is held.
func (a *audit) listsOutcomes(all *io.SectionReader, temporary bool) bool {
	for r, err := range manifest.ReadOutcomes(io.NewSectionReader(all, 0, all.Size())) {
		if err != nil {
			end := make([]byte, 1)
			_, _ = all.ReadAt(end, all.Size()-1)
			return temporary && end[0] != '\n' // cut off within a line
		}
		if e := a.posts[r.ID]; e != nil && e.MustGo && holds(r) {
			return false
		}
	}
	return true
}

// holds reports whether a result says that the image of its entry is in the workspace.
func holds(r manifest.Result) bool {
	return r.Outcome == manifest.Kept || r.Outcome == manifest.Duplicate
}

// listsTombstones reports whether a file is a list of tombstones.
func listsTombstones(all *io.SectionReader) bool {
	_, err := manifest.ReadTombstones(io.NewSectionReader(all, 0, all.Size()))
	return err == nil
}

// listsRecords reports whether a file has the records of an audit log, and nothing else.
func listsRecords(all *io.SectionReader) bool {
	in := bufio.NewReader(io.NewSectionReader(all, 0, all.Size()))
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return n > 0
		}
		if _, wrong := auditlog.ParseLine(line); err != nil || wrong != nil {
			return false
		}
	}
}

// isStatement reports whether a file of so many bytes at most is the statement of an audit, as this program writes it.
func isStatement(all *io.SectionReader, most int64) bool {
	body, err := readAll(all, most)
	var r Report
	if err != nil || json.Unmarshal(body, &r) != nil {
		return false
	}
	// What the reader forgives shows when it is written again: unknown and doubled keys.
	var again bytes.Buffer
	err = r.WriteJSON(&again)
	return err == nil && bytes.Equal(again.Bytes(), body)
}
