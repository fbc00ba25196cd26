package scan

import (
	"cmp"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// A Span is a part of a file, from its first byte to behind its last.
type Span struct{ From, To int64 }

// Unclaimed returns the parts of the file that belong to no column chunk, index or filter that its footer names.
// A reader sees none of them, and rows can be hidden there. Zeros are padding.
func (f *File) Unclaimed() (unclaimed []Span) {
	end := f.FooterAt().From
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

// FooterAt returns where the footer lies. It names the columns, and has key-values and bounds of what the columns hold.
func (f *File) FooterAt() Span {
	end := f.guard.size - 8
	return Span{end - f.guard.footerBytes, end}
}

// KeyValues are those of the footer. A key may stand there twice.
func (f *File) KeyValues() []format.KeyValue { return f.parquet.Metadata().KeyValueMetadata }
