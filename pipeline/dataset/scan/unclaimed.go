package scan

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// A Span is a part of a file, from its first byte to behind its last.
type Span struct{ From, To int64 }

// Unclaimed returns the parts of the file that belong to no column chunk, index or filter that its footer names.
// A reader sees none of them, and rows can be hidden there. Zeros are padding.
func (f *File) Unclaimed() (unclaimed []Span) {
	end := f.guard.size - 8 - f.guard.footerBytes
	parts := []Span{{0, int64(len("PAR1"))}, {end, end}}
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
	slices.SortFunc(parts, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	pos := int64(0)
	for _, p := range parts {
		if from := min(p.From, end); from > pos {
			unclaimed = append(unclaimed, Span{pos, from})
		}
		pos = max(pos, p.To)
	}
	return unclaimed
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
