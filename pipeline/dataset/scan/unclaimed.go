package scan

import (
	"cmp"
	"fmt"
	"slices"
)

// Unclaimed returns how many bytes of the file are of no column chunk, index or filter that its footer names,
// and where the first of them is. Zeros between the parts are padding, and do not count. A reader sees
// none of it, and rows can be hidden there.
func (f *File) Unclaimed() (at, n int64, err error) {
	defer recovered(&err)()
	parts := f.parts()
	slices.SortFunc(parts, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	pos, end := int64(len("PAR1")), f.guard.size-8-f.guard.footerBytes
	for _, p := range append(parts, span{end, end}) {
		if p.from > pos {
			first, more, err := f.unclaimedIn(pos, min(p.from, end))
			if err != nil {
				return 0, 0, err
			}
			if n == 0 {
				at = first
			}
			n += more
		}
		pos = max(pos, p.to)
	}
	return at, n, nil
}

// A span is a part of the file, from its first byte to behind its last.
type span struct{ from, to int64 }

// parts are what the footer names.
func (f *File) parts() []span {
	var parts []span
	add := func(at, n int64) {
		if at > 0 && n > 0 {
			parts = append(parts, span{at, at + n})
		}
	}
	for _, g := range f.parquet.Metadata().RowGroups {
		for i := range g.Columns {
			c, m := &g.Columns[i], &g.Columns[i].MetaData
			begin := m.DataPageOffset
			if m.DictionaryPageOffset > 0 {
				begin = min(begin, m.DictionaryPageOffset)
			}
			add(begin, m.TotalCompressedSize)
			add(c.ColumnIndexOffset, int64(c.ColumnIndexLength))
			add(c.OffsetIndexOffset, int64(c.OffsetIndexLength))
			add(m.BloomFilterOffset, int64(m.BloomFilterLength))
		}
	}
	return parts
}

// unclaimedIn counts the bytes from the first to the last one that is not zero, and says where they begin.
func (f *File) unclaimedIn(from, to int64) (at, n int64, err error) {
	block := make([]byte, 64<<10)
	var last int64
	for pos := from; pos < to; pos += int64(len(block)) {
		b := block[:min(int64(len(block)), to-pos)]
		if _, err := f.guard.r.ReadAt(b, pos); err != nil {
			return 0, 0, fmt.Errorf("read what lies between its parts: %w", err)
		}
		for i, c := range b {
			if c == 0 {
				continue
			}
			if at == 0 {
				at = pos + int64(i)
			}
			last = pos + int64(i) + 1
		}
	}
	if at == 0 {
		return 0, 0, nil
	}
	return at, last - at, nil
}
