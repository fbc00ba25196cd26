package dataset

import (
	"bytes"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// TestWriteWithout takes rows out of a file: what comes out is, byte for byte, what would have been
// written without them.
func TestWriteWithout(t *testing.T) {
	for _, flagged := range []bool{false, true} {
		for _, gone := range [][]manifest.PostID{{}, {"id0"}, {"id7"}, {"id1", "id2", "id3", "id4", "id5", "id6"}, {"id0", "id1", "id2", "id3", "id4", "id5", "id6", "id7"}} {
			isGone := func(id manifest.PostID) bool { return slices.Contains(gone, id) }
			rows := testRows()
			before, _ := write(t, flagged, all(rows))
			want, _ := write(t, flagged, all(slices.DeleteFunc(rows, func(r Row) bool { return isGone(PostOf(r.ID)) })))
			var got bytes.Buffer
			if err := WriteWithout(&got, "data/train-00000-of-00001.parquet", bytes.NewReader(before), int64(len(before)), isGone); err != nil {
				t.Fatalf("without %v: %v", gone, err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("without %v, flagged %t: %d bytes, want %d", gone, flagged, got.Len(), len(want))
			}
		}
	}
}

func TestReadProvenance(t *testing.T) {
	data, _ := write(t, false, all(testRows()))
	got, err := ReadProvenance(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testProvenance(), got); diff != "" {
		t.Errorf("provenance (-written +read):\n%s", diff)
	}
}

// TestWriteWithoutRefuses: a file of another origin, or a damaged one, is not rewritten as if
// it were whole.
func TestWriteWithoutRefuses(t *testing.T) {
	data, _ := write(t, false, all(testRows()))
	inImage := bytes.Index(data, testRows()[3].Image) + 100
	var other bytes.Buffer
	w := NewReadingsWriter(&other, "v0", nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	changed := func(at int) []byte {
		b := bytes.Clone(data)
		b[at] ^= 1
		return b
	}
	for name, b := range map[string][]byte{
		"empty":              {},
		"cut off":            data[:len(data)-9],
		"another's":          other.Bytes(),
		"an image is spoilt": changed(inImage),
	} {
		if err := WriteWithout(new(bytes.Buffer), "x.parquet", bytes.NewReader(b), int64(len(b)), func(manifest.PostID) bool { return false }); err == nil {
			t.Errorf("%s: written, want an error", name)
		}
	}
}

// TestOtherFormatsWithout: what is taken out of a tar or a folder's table gives the bytes that would have been
// written without it, and the ids that are left are those of the rows that stay.
func TestOtherFormatsWithout(t *testing.T) {
	for format, write := range map[string]func(Sink, manifest.Schema, string, iter.Seq2[Row, error]) (Split, error){
		"webdataset": WriteWebDataset, "folder": func(sink Sink, s manifest.Schema, split string, rows iter.Seq2[Row, error]) (Split, error) {
			return WriteFolder(sink, s, testProvenance(), split, rows)
		}} {
		rows := formatRows()
		isGone := func(id manifest.PostID) bool { return id == "id2" || id == "id7" }
		before, want, got := files{}, files{}, files{}
		if _, err := write(before.sink, testSchema(), "train", all(rows)); err != nil {
			t.Fatal(err)
		}
		stay := slices.DeleteFunc(rows, func(r Row) bool { return isGone(PostOf(r.ID)) })
		if _, err := write(want.sink, testSchema(), "train", all(stay)); err != nil {
			t.Fatal(err)
		}
		for name, b := range before {
			if !Holds(name) {
				if !isGone(PostOf(ImageID(name))) {
					got[name] = b
				}
				continue
			}
			var out bytes.Buffer
			if err := WriteWithout(&out, name, bytes.NewReader(b), int64(len(b)), isGone); err != nil {
				t.Fatal(err)
			}
			got[name] = out.Bytes()
			left := map[string]bool{}
			for id, err := range RowIDs(t.Context(), name, bytes.NewReader(out.Bytes()), int64(out.Len())) {
				if err != nil {
					t.Fatal(err)
				}
				left[id] = true
			}
			if len(left) != 6 || left["id2"] || left["id7/1"] || !left["id0"] {
				t.Errorf("%s: ids left in %s: %v", format, name, left)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// TestRowIDs reads the ids of a file that could not be rewritten, too.
func TestRowIDs(t *testing.T) {
	data, _ := write(t, true, all(testRows()))
	data[bytes.Index(data, testRows()[3].Image)+100] ^= 1
	var got []string
	for id, err := range RowIDs(t.Context(), "x.parquet", bytes.NewReader(data), int64(len(data))) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	for range RowIDs(t.Context(), "x.parquet", bytes.NewReader(data), int64(len(data))) {
		break // without more to come
	}
	if diff := cmp.Diff([]string{"id0", "id1", "id2", "id3", "id4", "id5", "id6", "id7/1"}, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if PostOf("id7/1") != "id7" || PostOf("id7") != "id7" {
		t.Errorf("posts %q and %q", PostOf("id7/1"), PostOf("id7"))
	}
}
