package audit

import (
	"cmp"
	"slices"
)

// A table has rows, and what stands in one is about the ids in it. JSON has records in records: each value of JSON
// Lines, each element of a list, and each value of an object whose keys count. An object under another key is a part of
// its record, as a.b is of a row. What is in a record without an id is about those of the one around it, and never about
// those of another one beside it: a list of live posts says nothing of the images in the next list.

// Records are consecutive records of a list, numbered from first on, which are all in the record around, -1 for none.
type records struct {
	first, around int64
	number        int64 // of the first one for a reader, from 0
	counted       bool  // the others have the next numbers; else all are in the one that has this number
}

const (
	manyRecords = 1 << 16 // that are not one after the other
	recordsCost = 64      // of each more
	mostRecords = 1 << 22 // behind these each record is in none
)

// A mapped object is one whose members are columns, as pandas has it: {"id":{"0":"a","1":"b"},"text":{"0":..,"1":..}}.
// Its records are those of the first column, which has so many values under the keys 0, 1 and on.
type mapped struct{ first, n int64 }

// beginRecord begins a record in the one that is being read. Of the outermost list it is the nth; another one has the
// number of that around it.
func (w walker) beginRecord(t *table, around, nth int64, outermost bool) error {
	t.row = t.next
	t.next++
	number := nth
	if !outermost {
		number = t.number(around)
	}
	if n := len(t.records); n > 0 {
		last := t.records[n-1]
		follows := last.number == number
		if last.counted {
			follows = last.number+t.row-last.first == number
		}
		if follows && last.around == around && last.counted == outermost {
			return nil
		}
	}
	if len(t.records) == mostRecords {
		return nil
	}
	if len(t.records)+1 == mostRecords {
		around, outermost = -1, true
	}
	t.records = append(t.records, records{t.row, around, number, outermost})
	if len(t.records) > manyRecords {
		return w.charge(recordsCost)
	}
	return nil
}

// recordsOf returns those that have this row.
func (t *table) recordsOf(row int64) records {
	behind, _ := slices.BinarySearchFunc(t.records, row+1, func(r records, row int64) int { return cmp.Compare(r.first, row) })
	return t.records[behind-1]
}

// around is the record around one, -1 for none, as around each row of a table that is flat.
func (t *table) around(row int64) int64 {
	if len(t.records) == 0 || row < 0 {
		return -1
	}
	return t.recordsOf(row).around
}

// number is the number of a record, from 0, as a reader counts in the outermost list.
func (t *table) number(row int64) int64 {
	r := t.recordsOf(row)
	if r.counted {
		return r.number + row - r.first
	}
	return r.number
}

// shown is the number of a row, from 0, as a reader counts: of JSON Lines the line.
func (t *table) shown(row int64) int64 {
	if len(t.records) == 0 {
		return row
	}
	for around := t.around(row); t.values > 1 && around >= 0; around = t.around(row) {
		row = around
	}
	return t.number(row)
}
