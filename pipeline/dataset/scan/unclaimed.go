package scan

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
)

// A Span is a part of a file, from its first byte to behind its last.
type Span struct{ From, To int64 }

// Unclaimed returns the parts of the file that belong to no column chunk, index or filter that its footer names.
// Zeros at the ends of a part are padding, and left out. A reader sees none of it, and rows can be hidden there.
func (f *File) Unclaimed() (unclaimed []Span, err error) {
	defer recovered(&err)()
	parts := f.parts()
	slices.SortFunc(parts, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	pos, end := int64(len("PAR1")), f.guard.size-8-f.guard.footerBytes
	for _, p := range append(parts, Span{end, end}) {
		if p.From > pos {
			part, err := f.unclaimedIn(pos, min(p.From, end))
			if err != nil {
				return nil, err
			}
			if part.To > part.From {
				unclaimed = append(unclaimed, part)
			}
		}
		pos = max(pos, p.To)
	}
	return unclaimed, nil
}

// parts are what the footer names.
func (f *File) parts() []Span {
	var parts []Span
	add := func(at, n int64) {
		if at > 0 && n > 0 {
			parts = append(parts, Span{at, at + n})
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

// unclaimedIn returns the part from the first to the last byte that is not zero.
func (f *File) unclaimedIn(from, to int64) (part Span, err error) {
	const block = 64 << 10 // the part may be as long as the file
	for pos := from; pos < to; pos += block {
		b, err := f.guard.read(pos, min(block, to-pos))
		if err != nil {
			return Span{}, err
		}
		left := bytes.TrimLeft(b, "\x00")
		if len(left) == 0 {
			continue
		}
		if part.To == 0 {
			part.From = pos + int64(len(b)-len(left))
		}
		part.To = pos + int64(len(bytes.TrimRight(b, "\x00")))
	}
	return part, nil
}

// Notes yields what a footer holds beside rows: its key-values, the name of the program that wrote it, and the least
// and greatest value of each column chunk, each with a name for people.
func (f *File) Notes() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		meta := f.parquet.Metadata()
		more := yield("created_by", []byte(meta.CreatedBy))
		note := func(name string, value []byte) {
			more = more && (len(value) == 0 || yield(name, value))
		}
		for _, kv := range meta.KeyValueMetadata {
			note("key of the footer", []byte(kv.Key))
			note("key "+kv.Key, []byte(kv.Value))
		}
		for _, g := range meta.RowGroups {
			for _, c := range g.Columns {
				name := strings.Join(c.MetaData.PathInSchema, ".")
				for _, kv := range c.MetaData.KeyValueMetadata {
					note("key "+kv.Key+" of column "+name, []byte(kv.Value))
				}
				bounds := c.MetaData.Statistics
				for _, bound := range [][]byte{bounds.Min, bounds.Max, bounds.MinValue, bounds.MaxValue} {
					note("bound of column "+name, bound)
				}
			}
		}
	}
}
