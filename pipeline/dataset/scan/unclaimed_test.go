package scan

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestUnclaimed finds what lies in a Parquet beside the parts that its footer names, and nothing in a
// file that has indexes, filters and several row groups.
func TestUnclaimed(t *testing.T) {
	type row struct {
		ID string `parquet:"id,dict"`
		N  int64  `parquet:"n"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.BloomFilters(parquet.SplitBlockFilter(10, "id")))
	for i := range 3 {
		if _, err := w.Write([]row{{"few00" + string(rune('0'+i)), int64(i)}, {"few009", 9}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	footer := len(whole) - 8 - int(whole[len(whole)-8]) - int(whole[len(whole)-7])<<8
	with := func(between string) []byte {
		return append(append(bytes.Clone(whole[:footer]), between...), whole[footer:]...)
	}
	for name, c := range map[string]struct {
		file  []byte
		at, n int64
	}{
		"whole":   {whole, 0, 0},
		"padded":  {with("\x00\x00\x00\x00\x00\x00\x00\x00"), 0, 0},
		"hidden":  {with("\x00\x00few003\x00\x00"), int64(footer) + 2, 6},
		"another": {with(string(whole)), int64(footer), int64(len(whole))},
	} {
		s, err := Open(bytes.NewReader(c.file), int64(len(c.file)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		at, n, err := s.Unclaimed()
		if err != nil || n != c.n || at != c.at {
			t.Errorf("%s: %d bytes at %d (%v), want %d at %d", name, n, at, err, c.n, c.at)
		}
	}
}
