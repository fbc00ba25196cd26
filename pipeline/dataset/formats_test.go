package dataset

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/duckdb"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
)

// files is a sink that keeps what it is given.
type files map[string][]byte

func (f files) sink(name string, write func(io.Writer) error) error {
	if _, twice := f[name]; twice {
		return fmt.Errorf("%s is made twice", name)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	f[name] = b.Bytes()
	return nil
}

func TestPlanShards(t *testing.T) {
	const half = ShardBytes / 2
	for name, c := range map[string]struct {
		sizes []int64
		want  []int
	}{
		"no rows":              {nil, []int{0}},
		"one":                  {[]int64{5}, []int{1}},
		"exactly full":         {[]int64{half, half}, []int{2}},
		"one too many":         {[]int64{half, half, 1}, []int{2, 1}},
		"each larger than one": {[]int64{ShardBytes + 1, ShardBytes + 1}, []int{1, 1}},
		"large between small":  {[]int64{1, ShardBytes, 1}, []int{1, 1, 1}},
	} {
		if got := PlanShards(slices.Values(c.sizes)); !slices.Equal(got, c.want) {
			t.Errorf("%s: PlanShards = %v, want %v", name, got, c.want)
		}
	}
}

// The shards hold all rows in order, and are the files that each would be alone.
func TestWriteShards(t *testing.T) {
	rows := testRows()
	for _, plan := range [][]int{{8}, {3, 5}, {1, 6, 1}} {
		out := files{}
		split, err := WriteShards(out.sink, testSchema(), testProvenance(), true, "train", plan, all(rows))
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, n := range plan {
			alone, want := write(t, true, all(rows[at:at+n]))
			name := FileName("train", i, len(plan))
			if !bytes.Equal(out[name], alone) || split.Shards[i] != want {
				t.Errorf("plan %v: %s is not what its rows alone give", plan, name)
			}
			at += n
		}
		if split.Rows != 8 || len(out) != len(plan) {
			t.Errorf("plan %v: %d rows in %d files", plan, split.Rows, len(out))
		}
	}
	for name, plan := range map[string][]int{"rows left": {7}, "rows missing": {9}, "a shard without rows": {8, 1}} {
		if _, err := WriteShards(files{}.sink, testSchema(), testProvenance(), true, "train", plan, all(rows)); err == nil {
			t.Errorf("%s: plan %v was carried out", name, plan)
		}
	}
}

// tarOf reads a tar: the names in their order, and the members.
func tarOf(t *testing.T, data []byte) ([]string, map[string][]byte) {
	t.Helper()
	var names []string
	members := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names, members
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Format != tar.FormatUSTAR || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Mode != 0o644 || !h.ModTime.Equal(time.Unix(0, 0)) || h.Typeflag != tar.TypeReg {
			t.Errorf("header %+v", h)
		}
		if key, _, _ := strings.Cut(h.Name, "."); strings.ContainsAny(key, "./") {
			t.Errorf("key %q", key)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, members[h.Name] = append(names, h.Name), body
	}
}

func formatRows() []Row {
	rows := testRows()
	rows[1].Path, rows[6].Path = "id1.png", "id6.webp" // a row needs a file name here
	return rows
}

func TestWebDataset(t *testing.T) {
	rows := formatRows()
	out := files{}
	stats, err := WriteWebDataset(out.sink, testSchema(), true, "train", all(rows))
	data := out["train-000000.tar"]
	if err != nil || stats.Rows != 8 || stats.Bytes != int64(len(data)) || len(out) != 1 || stats.Shards[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256(data)) {
		t.Fatalf("stats %+v, %d files, %d bytes, error %v", stats, len(out), len(data), err)
	}
	names, members := tarOf(t, out["train-000000.tar"])
	if !slices.Equal(names[:4], []string{"id0.jpg", "id0.json", "id1.jpg", "id1.json"}) || names[14] != "id7-1.jpg" {
		t.Errorf("members %v", names)
	}
	wantJSON := `{"id":"id3","ocr_text":"a text","ocr_confidence":91.5,"width":640,"height":480,"sha256":"` + rows[3].SHA256 +
		`","phash":"0123456789abcdef","filter":null,"kind":null,"severity":"Low","figures, of speech":[]}` + "\n"
	if got := string(members["id3.json"]); got != wantJSON {
		t.Errorf("id3.json = %s\nwant %s", got, wantJSON)
	}
	if got := string(members["id2.json"]); !strings.Contains(got, `"figures, of speech":null`) {
		t.Errorf("no label given = %s", got)
	}
}

// A shard ends before it is too large; the rows that follow stand in the next one. A split
// without rows has one shard.
func TestWebDatasetShards(t *testing.T) {
	image := bytes.Repeat([]byte("\xff\xd8\xff\xe0"), 15<<20) // 60 MiB
	row := newRow("a", image)
	rows := func(yield func(Row, error) bool) {
		for i := range 9 {
			row.ID = fmt.Sprint("a", i)
			if !yield(row, nil) {
				return
			}
		}
	}
	var names []string
	var sizes []int64
	sink := func(name string, write func(io.Writer) error) error {
		n := &counter{w: io.Discard}
		err := write(n)
		names, sizes = append(names, name), append(sizes, n.n)
		return err
	}
	stats, err := WriteWebDataset(sink, testSchema(), true, "train", rows)
	if err != nil || !slices.Equal(names, []string{"train-000000.tar", "train-000001.tar"}) || stats.Rows != 9 {
		t.Fatalf("files %v, stats %+v, error %v", names, stats, err)
	}
	if sizes[0] > ShardBytes || sizes[0]+sizes[1] != stats.Bytes {
		t.Errorf("sizes %v, stats %+v", sizes, stats)
	}
	out := files{}
	if _, err := WriteWebDataset(out.sink, testSchema(), true, "test", all(nil)); err != nil || len(out["test-000000.tar"]) != tarEnd {
		t.Errorf("no rows: %d files, %d bytes, error %v", len(out), len(out["test-000000.tar"]), err)
	}
}

// TestWebDatasetLoads reads the tars with Python's tarfile by the rules of Hugging Face datasets, packaged_modules/webdataset:
// the first five examples have the same keys; an image's key is that of an image; without a column of its own in the
// features that the card declares (else those five have to have every type), a key is dropped.
func TestWebDatasetLoads(t *testing.T) {
	out := files{}
	split, err := WriteWebDataset(out.sink, testSchema(), false, "train", all(formatRows()))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-c", `
import io, json, re, sys, tarfile
examples = {}
for member in (tar := tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()))):
    key, field = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", member.name).groups()
    body = tar.extractfile(member).read()
    examples.setdefault(key, {})[field] = json.loads(body) if field == "json" else len(body)
print(json.dumps(list(examples.values())))`)
	cmd.Stdin = bytes.NewReader(out["train-000000.tar"])
	text, err := cmd.Output()
	var examples []struct {
		JPG  int
		JSON map[string]any
	}
	if err := errors.Join(err, json.Unmarshal(text, &examples)); err != nil {
		t.Fatal(err)
	}
	c := Card{Format: WebDataset, Schema: testSchema(), Splits: []Split{split}}
	var head struct {
		Info struct {
			Features []struct {
				Name   string
				Dtype  any
				Struct []map[string]any
			}
		} `yaml:"dataset_info"`
	}
	if err := yaml.Unmarshal([]byte(strings.Split(render(t, WriteCard, c), "\n---\n")[0]), &head); err != nil {
		t.Fatal(err)
	}
	f := head.Info.Features
	if len(f) != 4 || f[0].Name != "jpg" || f[0].Dtype != "image" || f[1].Name != "json" || f[2].Name != "__key__" || f[3].Name != "__url__" {
		t.Fatalf("features %v", f)
	}
	var declared []string
	for _, column := range f[1].Struct {
		declared = append(declared, column["name"].(string))
	}
	slices.Sort(declared)
	for i, e := range examples {
		if !slices.Equal(slices.Sorted(maps.Keys(e.JSON)), declared) || e.JSON["id"] != formatRows()[i].ID || e.JPG != len(formatRows()[i].Image) {
			t.Errorf("example %d has an image of %d bytes and %v, declared are %s", i, e.JPG, e.JSON, declared)
		}
	}
}

// TestFolder reads metadata.parquet with DuckDB, and holds the rules of ImageFolder (packaged_modules/folder_based_builder
// of datasets): the same features in each split, also in one that has no value in a column, and file_name a string.
func TestFolder(t *testing.T) {
	rows := formatRows()
	out := files{}
	split, err := WriteFolder(out.sink, testSchema(), testProvenance(), true, "train", all(rows))
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, b := range out {
		total += int64(len(b))
	}
	if split.Rows != 8 || split.Bytes != total || len(out) != 9 {
		t.Errorf("%+v; %d files of %d bytes", split, len(out), total)
	}
	if _, err := WriteFolder(out.sink, testSchema(), testProvenance(), true, "test", all(rows[2:3])); err != nil {
		t.Fatal(err)
	}
	footers := map[string]string{}
	var want []map[string]any
	labels := []string{"0 2 [1,0]", "0 0 [0]", "null null null", "null 1 []", "0 2 [1,0]", "0 2 [1,0]", "0 2 [1,0]", "2 2 [2,1,0]"}
	for i, r := range rows {
		name := strings.ReplaceAll(r.ID, "/", "-") + filepath.Ext(r.Path)
		if !bytes.Equal(out["train/"+name], r.Image) {
			t.Errorf("train/%s is another image", name)
		}
		want = append(want, map[string]any{"file": name, "id": r.ID, "text": r.Text, "filter": r.Filter, "labels": labels[i]})
	}
	for name := range out {
		if path.Base(name) == "metadata.parquet" {
			f, err := scan.Open(bytes.NewReader(out[name]), int64(len(out[name])))
			if err != nil {
				t.Fatal(err)
			}
			footers[name], _ = f.Footer("huggingface")
		}
	}
	if f := footers["test/metadata.parquet"]; f != footers["train/metadata.parquet"] || !strings.Contains(f, `"file_name":{"dtype":"string","_type":"Value"}`) ||
		!strings.Contains(f, `"severity":{"names":["None","Low","<High & up>"],"_type":"ClassLabel"}`) || !strings.Contains(f, `"filter":{"dtype":"string"`) {
		t.Errorf("features %v", footers)
	}
	file := filepath.Join(t.TempDir(), "metadata.parquet")
	if err := os.WriteFile(file, out["train/metadata.parquet"], 0o600); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	duckdb.Query(t, &got, `SELECT file_name AS file, id, ocr_text AS text, coalesce(filter, '') AS filter,
		concat_ws(' ', coalesce(kind::text, 'null'), coalesce(severity::text, 'null'),
		coalesce(replace("figures, of speech"::text, ' ', ''), 'null')) AS labels FROM read_parquet(`+duckdb.Quote(file)+")")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata.parquet (-want +got):\n%s", diff)
	}
}

// What either format refuses, before a wrong file is made.
func TestFormatsRefuse(t *testing.T) {
	writers := map[string]func(Sink, string, Row) error{
		"webdataset": func(s Sink, split string, r Row) error {
			_, err := WriteWebDataset(s, testSchema(), true, split, all([]Row{r}))
			return err
		},
		"folder": func(s Sink, split string, r Row) error {
			_, err := WriteFolder(s, testSchema(), testProvenance(), true, split, all([]Row{r}))
			return err
		},
	}
	full := errors.New("disk full")
	for format, run := range writers {
		for name, c := range map[string]struct {
			split  string
			change func(*Row)
		}{
			"dot in the id":     {"train", func(r *Row) { r.ID = "a.b" }},
			"path in the id":    {"train", func(r *Row) { r.ID = "../../x" }},
			"no file name":      {"train", func(r *Row) { r.Path = "" }},
			"not an image file": {"train", func(r *Row) { r.Path = "a.exe" }},
			"damaged image":     {"train", func(r *Row) { r.Image = append(slices.Clone(r.Image), 0) }},
			"path in the split": {"../train", func(*Row) {}},
			"no split":          {"", func(*Row) {}},
		} {
			row := newRow("abc", []byte("\xff\xd8\xff image"))
			c.change(&row)
			if err := run(files{}.sink, c.split, row); err == nil {
				t.Errorf("%s: %s was written", format, name)
			}
		}
		row := newRow("abc", []byte("\xff\xd8\xff image"))
		if err := run(func(string, func(io.Writer) error) error { return full }, "train", row); !errors.Is(err, full) {
			t.Errorf("%s: error of the sink came back as %v", format, err)
		}
		if err := run(func(_ string, write func(io.Writer) error) error { return write(failingWriter{}) }, "train", row); err == nil {
			t.Errorf("%s: failed write passed", format)
		}
	}
}

// TestCardYAML reads the head of the card with a YAML parser, also where labels are YAML's own words.
func TestCardYAML(t *testing.T) {
	words := manifest.Category{Name: "on", Kind: manifest.Single}
	for _, name := range []string{"null", "~", "yes", "No", "1e3", "0x1f", "- a", "a: b", "#", "'", "2001-01-01", "🙂", "a\\b"} {
		words.Labels = append(words.Labels, manifest.Label{Code: name, Name: name})
	}
	for format, pattern := range map[Format]string{Parquet: "data/train-*", WebDataset: "train-*.tar", Folder: "train/**"} {
		c := testCard()
		c.Format = format
		c.Schema.Categories = append(c.Schema.Categories, words)
		_, head, _ := strings.Cut(render(t, WriteCard, c), "---\n")
		head, _, _ = strings.Cut(head, "\n---\n")
		var got map[string]any
		if err := yaml.Unmarshal([]byte(head), &got); err != nil {
			t.Fatalf("%s: %v\n%s", format, err, head)
		}
		info, _ := got["dataset_info"].(map[string]any)
		if (info != nil) != (format != Folder) {
			t.Errorf("%s: dataset_info = %v", format, info)
		}
		if format == Parquet {
			columns := info["features"].([]any)
			column := columns[len(columns)-1].(map[string]any)
			names := column["dtype"].(map[string]any)["class_label"].(map[string]any)["names"].(map[string]any)
			for i, l := range words.Labels {
				if got := names[fmt.Sprint(i)]; got != l.Name || len(columns) != 13 { // a bare No would be a boolean
					t.Errorf("label %d of %d columns is %v, want %s", i, len(columns), got, l.Name)
				}
			}
		}
		for key, want := range map[string]any{"pretty_name": "Memes & <Co> 1.2.0", "license": "other", "license_name": "annotations-cc-by-4.0",
			"license_link": "https://example.org/memes", "size_categories": []any{"1K<n<10K"}, "language": []any{"en"},
			"annotations_creators": []any{"found"}, "tags": []any{"not-for-all-audiences"}} {
			if diff := cmp.Diff(want, got[key]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", format, key, diff)
			}
		}
		// The split test has no rows: datasets would take its lone metadata.parquet for a data set of another kind.
		files := got["configs"].([]any)[0].(map[string]any)["data_files"].([]any)
		if diff := cmp.Diff(map[string]any{"split": "train", "path": pattern}, files[0]); diff != "" || (len(files) != 3) != (format == Folder) {
			t.Errorf("%s: %d data_files (-want +got):\n%s", format, len(files), diff)
		}
	}
	c := testCard()
	c.Format = Folder
	if err := WriteCroissant(io.Discard, c); err == nil {
		t.Error("croissant.json of an image folder was written: it would describe files that are not there")
	}
}

// TestCardColumns: the card declares a column that passes through, and a list of them, as the footer does.
func TestCardColumns(t *testing.T) {
	c := testCard()
	want := map[string]any{"figures, of speech": map[string]any{"class_label": map[string]any{
		"names": map[string]any{"0": "Métaphore", "1": "0", "2": "Hyperbole"}}}}
	for columnType, dtype := range dtypes {
		one, list := "one "+string(columnType), "list of "+string(columnType)
		c.Schema.Columns = append(c.Schema.Columns, manifest.Column{Name: one, Type: columnType},
			manifest.Column{Name: list, Type: columnType, List: true})
		want[one], want[list] = dtype, "sequence of "+dtype
	}
	for _, c.Format = range []Format{Parquet, WebDataset} {
		_, head, _ := strings.Cut(render(t, WriteCard, c), "---\n")
		head, _, _ = strings.Cut(head, "\n---\n")
		type feature struct {
			Name            string
			DType, Sequence any
			Struct          []feature
		}
		var card struct {
			Info struct{ Features []feature } `yaml:"dataset_info"`
		}
		if err := yaml.Unmarshal([]byte(head), &card); err != nil {
			t.Fatalf("%s: %v\n%s", c.Format, err, head)
		}
		got := make(map[string]any)
		for _, f := range card.Info.Features {
			for _, f := range append(f.Struct, f) {
				switch {
				case want[f.Name] == nil:
				case f.Sequence == nil:
					got[f.Name] = f.DType
				case f.Name == "figures, of speech":
					got[f.Name] = f.Sequence
				default:
					got[f.Name] = fmt.Sprint("sequence of ", f.Sequence)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Format, diff)
		}
	}
}

// TestFormatsHaveTheColumnsOfTheDataset: a copy in another format has the columns of the Parquet, filter in flag mode only, and
// the file of a folder is recognised as ours in either.
func TestFormatsHaveTheColumnsOfTheDataset(t *testing.T) {
	columnsOf := func(b []byte) (names []string) {
		own, err := openOwn(bytes.NewReader(b), int64(len(b)))
		testkit.OK(t, err)
		for _, column := range own.file.Schema().Fields() {
			if name := column.Name(); name != "image" && name != fileName {
				names = append(names, name)
			}
		}
		return names
	}
	for _, flagged := range []bool{false, true} {
		var table bytes.Buffer
		_, err := WriteParquet(&table, testSchema(), testProvenance(), flagged, all(testRows()))
		testkit.OK(t, err)
		want := columnsOf(table.Bytes())
		if slices.Contains(want, "filter") != flagged {
			t.Fatalf("flagged %v: the Parquet has the columns %q", flagged, want)
		}
		out := files{}
		_, err = WriteFolder(out.sink, testSchema(), testProvenance(), flagged, "train", all(formatRows()))
		testkit.OK(t, err)
		testkit.Same(t, "the columns of a folder", want, columnsOf(out["train/metadata.parquet"]))
		_, err = WriteWebDataset(out.sink, testSchema(), flagged, "train", all(formatRows()))
		testkit.OK(t, err)
		_, members := tarOf(t, out["train-000000.tar"])
		var row map[string]any
		testkit.OK(t, json.Unmarshal(members["id3.json"], &row))
		slices.Sort(want)
		testkit.Same(t, "the columns of a WebDataset", want, slices.Sorted(maps.Keys(row)))
		card := testCard()
		for _, card.Format = range []Format{Parquet, WebDataset, Folder} {
			card.Flagged = flagged
			if got := strings.Contains(render(t, WriteCard, card), "| `filter` |"); got != flagged {
				t.Errorf("flagged %v: the card of a %s has the column filter: %v", flagged, card.Format, got)
			}
		}
	}
}

// TestBareFile: a dataset that was made from an annotations file alone says that no release's policy applies to it, in the
// footer, in the card and in croissant.json, and a copy that lost rows still says it.
func TestBareFile(t *testing.T) {
	for _, says := range []string{"", noPolicy, listPolicy} {
		card, bare := testCard(), says != ""
		inCard := "no release's policy applies to it, and no grant was asked for"
		if says == listPolicy {
			card.Name, card.Provenance.Release = "mine (list of ids)", "mine (list of ids)"
			inCard = "no release and no policy of one stands behind it, and no grant was asked for"
		}
		if bare {
			sum := sha256.Sum256([]byte(card.Provenance.ManifestDigest)) // what manifest.Open gives a bare file
			card.Provenance.ReleaseDigest = fmt.Sprintf("%x", sum)
		}
		var table, less bytes.Buffer
		_, err := WriteParquet(&table, testSchema(), card.Provenance, false, all(testRows()))
		testkit.OK(t, err)
		testkit.OK(t, WriteWithout(&less, "train.parquet", bytes.NewReader(table.Bytes()), int64(table.Len()),
			func(row string) bool { return row == "id3" }))
		for what, b := range map[string][]byte{"whole": table.Bytes(), "without a row": less.Bytes()} {
			f, err := scan.Open(bytes.NewReader(b), int64(len(b)))
			testkit.OK(t, err)
			if got, _ := f.Footer("rehydrate.release_policy"); got != says {
				t.Errorf("%s: the footer says %q of the release's policy, want %q", what, got, says)
			}
		}
		if got := strings.Contains(render(t, WriteCard, card), inCard); got != bare {
			t.Errorf("%q: the card says so: %v", says, got)
		}
		if got := strings.Contains(render(t, WriteCroissant, card), inCard); got != bare {
			t.Errorf("%q: croissant.json says so: %v", says, got)
		}
	}
}
