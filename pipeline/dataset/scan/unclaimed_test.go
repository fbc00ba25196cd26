package scan

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"rehydrate/pipeline/attest"
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
		_, err := w.Write([]row{{"few00" + string(rune('0'+i)), int64(i)}, {"few009", 9}})
		attest.OK(t, err, w.Flush())
	}
	attest.OK(t, w.Close())
	whole := b.Bytes()
	footer := len(whole) - 8 - int(whole[len(whole)-8]) - int(whole[len(whole)-7])<<8
	with := func(between string) []byte {
		return append(append(bytes.Clone(whole[:footer]), between...), whole[footer:]...)
	}
	for name, c := range map[string]struct {
		file []byte
		want []Span
	}{
		"whole":   {whole, nil},
		"hidden":  {with("\x00\x00few003\x00\x00"), []Span{{int64(footer), int64(footer) + 10}}},
		"another": {with(string(whole)), []Span{{int64(footer), int64(footer + len(whole))}}},
	} {
		attest.Same(t, name, c.want, opened(t, c.file).Unclaimed(), nil)
	}
}

// TestFooter finds the footer, and its key-values.
func TestFooter(t *testing.T) {
	file := scannedFile(t, 5, parquet.KeyValueMetadata("a key", "a value"))
	f := opened(t, file)
	at := f.FooterAt()
	footer := string(file[at.From:at.To])
	for _, want := range []string{"a key", "a value", "id0", "image"} {
		if !strings.Contains(footer, want) {
			t.Errorf("the footer lacks %q", want)
		}
	}
	for _, kv := range f.KeyValues() {
		key, value := kv.Key, kv.Value
		if key != "a key" || value != "a value" {
			t.Errorf("%q: %q", key, value)
		}
	}
}
