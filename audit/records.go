package audit

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
)

// A table has rows, and what stands in one is about the ids in it. JSON has records in records: each value of JSON
// Lines, each element of a list, each value of an object whose keys count or are ids, and each other object, which is a
// part of the record around it. What is in a record is about its own ids, else about those of its parts, as an image is
// beside {"post":{"id":"1n6oiw"}}, else about those of the record around it, and never about those of another one
// beside it: a list of live posts says nothing of the images in the next list, and the post of a question nothing of a
// list of answers.

// Records are consecutive records of a list, numbered from first on, which are all in the record around, -1 for none. A
// table can have millions of these.
type records struct {
	first, around int32
	number        int32 // of the first one for a reader, from 0: the others have the next ones; ^number: all have this one
	part          bool  // of the record around, and no list
}

const (
	manyRecords = 1 << 16 // that are not one after the other
	recordsCost = 64      // of each more
	mostRecords = 1 << 22 // behind these, what is in an outermost record is all in that one
)

// A mapped object is one whose members are columns, as pandas has it: {"id":{"0":"a","1":"b"},"text":{"0":..,"1":..}}.
// Its records are those of the first column, which has so many values under the keys 0, 1 and on.
type mapped struct{ first, n int64 }

// beginRecord begins a record in the one that is being read. Of the outermost list it is the nth; another one has the
// number of that around it. part is an object that is a part of the record around it.
func (w walker) beginRecord(t *table, around, nth int64, outermost, part bool) error {
	if !outermost && len(t.records) >= mostRecords-1 {
		return nil
	}
	t.row = t.next
	t.next++
	number := int32(min(nth, math.MaxInt32))
	if !outermost {
		number = ^int32(t.number(around))
	}
	n := len(t.records)
	if n > 0 {
		last := t.records[n-1]
		follows := last.number == number
		if outermost {
			follows = last.number >= 0 && int64(last.number)+t.row-int64(last.first) == nth
		}
		if follows && int64(last.around) == around && last.part == part {
			return nil
		}
	}
	if n == mostRecords || t.row > math.MaxInt32-1 {
		return nil
	}
	t.records = append(t.records, records{int32(t.row), int32(around), number, part})
	if n >= manyRecords {
		return w.charge(recordsCost)
	}
	return nil
}

// recordsOf returns those that have this row.
func (t *table) recordsOf(row int64) records {
	behind, _ := slices.BinarySearchFunc(t.records, row+1, func(r records, row int64) int {
		return cmp.Compare(int64(r.first), row)
	})
	return t.records[behind-1]
}

// around is the record around one, -1 for none, as around each row of a table that is flat. part says whether it is a
// part of that.
func (t *table) around(row int64) (around int64, part bool) {
	if len(t.records) == 0 || row < 0 {
		return -1, false
	}
	r := t.recordsOf(row)
	return int64(r.around), r.part
}

// number is the number of a record, from 0, as a reader counts in the outermost list.
func (t *table) number(row int64) int64 {
	r := t.recordsOf(row)
	if r.number >= 0 {
		return int64(r.number) + row - int64(r.first)
	}
	return int64(^r.number)
}

// shown is the number of a row, from 0, as a reader counts: of JSON Lines the line.
func (t *table) shown(row int64) int64 {
	if len(t.records) == 0 {
		return row
	}
	for around, _ := t.around(row); t.values > 1 && around >= 0; around, _ = t.around(row) {
		row = around
	}
	return t.number(row)
}

// whole reports whether a row is the only value of a JSON, or in it without a list: it has no number of its own, and
// can have all posts of the file.
func (t *table) whole(row int64) bool {
	if !t.json || t.values > 1 || slices.Contains([]string{".jsonl", ".ndjson"}, strings.ToLower(path.Ext(t.path))) {
		return false
	}
	for row > 0 && t.recordsOf(row).number < 0 {
		row, _ = t.around(row)
	}
	return row == 0
}

// manyLetters is the length of a text that can be an image.
const manyLetters = 256

// A lending is an id that a part of a record has, which can be about what is beside the part.
type lending struct {
	column *column
	hit    int32
	row    int64 // the record that has it, or that it is lent to
	doubt  bool  // the part has what can be an image of its own
}

// lend has the object that ends lend its ids, those behind the first so many, to the record around it, if it is a part
// of that.
func (w walker) lend(t *table, first int, around int64) error {
	own := t.lends[first:]
	t.lends = t.lends[:first]
	if t.row == around {
		return nil
	}
	for _, l := range own {
		if l.row != t.row {
			continue
		}
		l.row, l.doubt = around, l.doubt || t.holds
		t.lends, t.lent = append(t.lends, l), append(t.lent, l)
		if err := w.charge(hitCost); err != nil {
			return err
		}
	}
	return nil
}

// lendHits gives the records of a table that is read the ids that their parts lend.
func (t *table) lendHits() {
	for _, l := range t.lent {
		h := l.column.hits[l.hit]
		h.row, h.lent, h.doubt = l.row, true, l.doubt
		l.column.also = append(l.column.also, h)
	}
	t.lent = nil
	slices.Sort(t.strangers)
}

// hitsAbout returns the ids that what stands in a row is about. That an image is of a live post is believed only where
// one post alone can be meant, and no id of an unknown one stands nearer; of what must be gone any id says so.
func (t *table) hitsAbout(row int64) (hits []hit) {
	strange, beside := false, true // what a part lends is about what is beside it, and about no list there
	for {
		all := slices.DeleteFunc(t.hitsOf(row), func(h hit) bool { return h.lent && !beside })
		own := slices.ContainsFunc(all, func(h hit) bool { return !h.lent })
		others := own || slices.ContainsFunc(all, func(h hit) bool { return h.doubt || h.post != all[0].post })
		_, stranger := slices.BinarySearch(t.strangers, row)
		hits = slices.DeleteFunc(all, func(h hit) bool {
			return !h.gone && (strange || h.key && stranger || h.lent && others)
		})
		strange = strange || stranger
		around, part := t.around(row)
		row, beside = around, beside && part
		if row < 0 || len(hits) > 0 {
			return hits
		}
	}
}
