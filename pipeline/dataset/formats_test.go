package dataset

import (
	"archive/tar"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

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

func sizesOf(sizes ...int64) func(func(int64, error) bool) {
	return func(yield func(int64, error) bool) {
		for _, s := range sizes {
			if !yield(s, nil) {
				return
			}
		}
	}
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
		got, err := PlanShards(sizesOf(c.sizes...))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: PlanShards = %v, %v, want %v", name, got, err, c.want)
		}
	}
	boom := errors.New("boom")
	if _, err := PlanShards(func(yield func(int64, error) bool) { yield(0, boom) }); !errors.Is(err, boom) {
		t.Errorf("error of the sizes came back as %v", err)
	}
}

// The shards hold all rows in order, and are the files that each would be alone.
func TestWriteShards(t *testing.T) {
	rows := testRows()
	for _, plan := range [][]int{{8}, {3, 5}, {1, 6, 1}} {
		out := files{}
		stats, err := WriteShards(out.sink, testSchema(), testProvenance(), true, "train", plan, all(rows))
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, n := range plan {
			alone, want := write(t, true, all(rows[at:at+n]))
			name := FileName("train", i, len(plan))
			if !bytes.Equal(out[name], alone) || stats[i] != want {
				t.Errorf("plan %v: %s is not what its rows alone give", plan, name)
			}
			at += n
		}
		if split := NewSplit("train", stats); split.Rows != 8 || len(out) != len(plan) {
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
	rows[6].Path = "id6.webp" // a row needs a file name here
	return rows
}

func TestWebDataset(t *testing.T) {
	rows := formatRows()
	var before files
	for range 2 {
		out := files{}
		stats, err := WriteWebDataset(out.sink, testSchema(), true, "train", all(rows))
		if err != nil {
			t.Fatal(err)
		}
		data := out["train-000000.tar"]
		if stats.Rows != 8 || stats.Bytes != int64(len(data)) || len(out) != 1 {
			t.Errorf("stats %+v, %d files, %d bytes", stats, len(out), len(data))
		}
		if before != nil && !maps.EqualFunc(before, out, bytes.Equal) {
			t.Error("one input gave two tars")
		}
		before = out
	}
	names, members := tarOf(t, before["train-000000.tar"])
	if !slices.Equal(names[:4], []string{"id0.jpg", "id0.json", "id1.jpg", "id1.json"}) || names[14] != "id7-1.jpg" {
		t.Errorf("members %v", names)
	}
	for i, r := range rows {
		key := names[2*i]
		if !bytes.Equal(members[key], r.Image) {
			t.Errorf("%s is another image", key)
		}
		var got map[string]any
		if err := json.Unmarshal(members[names[2*i+1]], &got); err != nil || got["id"] != r.ID || got["sha256"] != r.SHA256 || got["ocr_text"] != r.Text {
			t.Errorf("%s = %v, %v", names[2*i+1], got, err)
		}
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

// What GNU tar and other readers of USTAR make of it.
func TestWebDatasetWithTar(t *testing.T) {
	program, err := exec.LookPath("tar")
	if err != nil {
		t.Fatal(err) // part of every Unix
	}
	out := files{}
	if _, err := WriteWebDataset(out.sink, testSchema(), false, "test", all(formatRows())); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "test-000000.tar")
	if err := os.WriteFile(name, out["test-000000.tar"], 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command(program, "tvf", name).CombinedOutput()
	if err != nil || strings.Count(string(list), "\n") != 16 || !strings.Contains(string(list), "id7-1.json") {
		t.Errorf("tar tvf: %v\n%s", err, list)
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
	stats, err := WriteWebDataset(sink, testSchema(), false, "train", rows)
	if err != nil || !slices.Equal(names, []string{"train-000000.tar", "train-000001.tar"}) || stats.Rows != 9 {
		t.Fatalf("files %v, stats %+v, error %v", names, stats, err)
	}
	if sizes[0] > ShardBytes || sizes[0]+sizes[1] != stats.Bytes {
		t.Errorf("sizes %v, stats %+v", sizes, stats)
	}
	out := files{}
	if _, err := WriteWebDataset(out.sink, testSchema(), false, "test", all(nil)); err != nil || len(out["test-000000.tar"]) != tarEnd {
		t.Errorf("no rows: %d files, %d bytes, error %v", len(out), len(out["test-000000.tar"]), err)
	}
}

func TestFolder(t *testing.T) {
	rows := formatRows()
	rows[1].Text = "=HYPERLINK(\"x\")" // no ' in front: see WriteFolder
	out := files{}
	stats, err := WriteFolder(out.sink, testSchema(), true, "train", all(rows))
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, b := range out {
		total += int64(len(b))
	}
	if stats.Rows != 8 || stats.Bytes != total || len(out) != 9 {
		t.Errorf("stats %+v; %d files of %d bytes", stats, len(out), total)
	}
	table, err := csv.NewReader(bytes.NewReader(out["train/metadata.csv"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"file_name", "id", "ocr_text", "ocr_confidence", "width", "height", "sha256", "phash", "filter", "kind", "severity", "figures, of speech"}}
	cells := [][]string{{"0", "2", "[1,0]"}, {"0", "0", "[0]"}, {"", "", ""}, {"", "1", "[]"}, {"0", "2", "[1,0]"}, {"0", "2", "[1,0]"}, {"0", "2", "[1,0]"}, {"2", "2", "[2,1,0]"}}
	for i, r := range rows {
		name := strings.ReplaceAll(r.ID, "/", "-") + filepath.Ext(r.Path)
		if !bytes.Equal(out["train/"+name], r.Image) {
			t.Errorf("train/%s is another image", name)
		}
		want = append(want, append([]string{name, r.ID, r.Text, fmt.Sprint(r.Confidence), "640", "480", r.SHA256, r.PHash, r.Filter}, cells[i]...))
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("metadata.csv (-want +got):\n%s", diff)
	}
}

// What either format refuses, before a wrong file is made.
func TestFormatsRefuse(t *testing.T) {
	writers := map[string]func(Sink, string, Row) error{
		"webdataset": func(s Sink, split string, r Row) error {
			_, err := WriteWebDataset(s, testSchema(), false, split, all([]Row{r}))
			return err
		},
		"folder": func(s Sink, split string, r Row) error {
			_, err := WriteFolder(s, testSchema(), false, split, all([]Row{r}))
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

// The head of the card, as a YAML parser reads it.
func TestCardYAML(t *testing.T) {
	for _, format := range []Format{Parquet, WebDataset, Folder} {
		c := testCard()
		c.Format = format
		_, head, _ := strings.Cut(render(t, WriteCard, c), "---\n")
		head, _, _ = strings.Cut(head, "\n---\n")
		var got struct {
			PrettyName         string   `yaml:"pretty_name"`
			Language, Tags     []string `yaml:",omitempty"`
			License            string
			LicenseName        string            `yaml:"license_name"`
			LicenseLink        string            `yaml:"license_link"`
			AnnotationsCreator []string          `yaml:"annotations_creators"`
			LanguageCreators   []string          `yaml:"language_creators"`
			Sizes              []string          `yaml:"size_categories"`
			Sources            []string          `yaml:"source_datasets"`
			Tasks              []string          `yaml:"task_categories"`
			Prompt             string            `yaml:"extra_gated_prompt"`
			Fields             map[string]string `yaml:"extra_gated_fields"`
			Configs            []struct {
				Name  string              `yaml:"config_name"`
				Files []map[string]string `yaml:"data_files"`
			}
			Info map[string]any `yaml:"dataset_info"`
		}
		d := yaml.NewDecoder(strings.NewReader(head))
		d.KnownFields(true)
		if err := d.Decode(&got); err != nil {
			t.Fatalf("%s: %v\n%s", format, err, head)
		}
		if got.PrettyName != "Memes & <Co> 1.2.0" || got.License != "other" || got.LicenseName != "annotations-cc-by-4.0" || got.LicenseLink != "https://example.org/memes" ||
			!slices.Equal(got.Sizes, []string{"1K<n<10K"}) || !slices.Equal(got.Language, []string{"en"}) || len(got.Fields) != 6 || got.Prompt == "" ||
			!slices.Equal(got.AnnotationsCreator, []string{"found"}) || !slices.Equal(got.Tags, []string{"not-for-all-audiences"}) {
			t.Errorf("%s: head = %+v", format, got)
		}
		pattern := map[Format]string{Parquet: "data/train-*", WebDataset: "train-*.tar", Folder: "train/**"}[format]
		if f := got.Configs[0].Files; len(f) != 3 || f[0]["split"] != "train" || f[0]["path"] != pattern {
			t.Errorf("%s: data_files = %v", format, f)
		}
		if (got.Info != nil) != (format == Parquet) {
			t.Errorf("%s: dataset_info = %v", format, got.Info)
		}
		if format == Parquet {
			testCardFeatures(t, got.Info)
		}
	}
	c := testCard()
	c.Format = Folder
	if err := WriteCroissant(io.Discard, c); err == nil {
		t.Error("croissant.json of an image folder was written: it would describe files that are not there")
	}
}

// testCardFeatures compares the features of the card with those of the Parquet's footer: by the
// rules of datasets' _from_yaml_list, ids of labels are texts from '0' on, without gaps.
func testCardFeatures(t *testing.T, info map[string]any) {
	t.Helper()
	names := func(v any) []string {
		label := v.(map[string]any)["class_label"].(map[string]any)["names"].(map[string]any)
		out := make([]string, len(label))
		for id, name := range label {
			i := -1
			if _, err := fmt.Sscan(id, &i); err != nil || i < 0 || i >= len(out) || fmt.Sprint(i) != id {
				t.Fatalf("label id %q of %d", id, len(out))
			}
			out[i] = name.(string) // a bare No would be a boolean
		}
		return out
	}
	var got []namedFeature
	for _, v := range info["features"].([]any) {
		column := v.(map[string]any)
		f := namedFeature{Column: column["name"].(string)}
		switch dtype := column["dtype"].(type) {
		case string:
			f.Is = scan.Feature{DType: dtype, Type: "Value"}
			if dtype == "image" {
				f.Is = scan.Feature{Type: "Image"}
			}
		case map[string]any:
			f.Is = scan.Feature{Names: names(dtype), Type: "ClassLabel"}
		default:
			f.Is = scan.Feature{Feature: &scan.Feature{Names: names(column["sequence"]), Type: "ClassLabel"}, Type: "Sequence"}
		}
		got = append(got, f)
	}
	if diff := cmp.Diff(features(testSchema(), true), got); diff != "" {
		t.Errorf("features of card and footer (-footer +card):\n%s", diff)
	}
	rows := 0
	for _, s := range info["splits"].([]any) {
		rows += s.(map[string]any)["num_examples"].(int)
	}
	if rows != 4900 {
		t.Errorf("%d rows in dataset_info.splits, want 4900", rows)
	}
}

// A category whose labels are all single spellings of YAML's own words survives.
func TestCardYAMLWords(t *testing.T) {
	var labels []manifest.Label
	for _, name := range []string{"null", "~", "yes", "No", "1e3", "0x1f", "- a", "a: b", "#", "'", "2001-01-01", "🙂", "a\\b"} {
		labels = append(labels, manifest.Label{Code: name, Name: name})
	}
	c := Card{Name: "x", Schema: manifest.Schema{Categories: []manifest.Category{{Name: "on", Kind: manifest.Single, Labels: labels}}}}
	_, head, _ := strings.Cut(render(t, WriteCard, c), "---\n")
	head, _, _ = strings.Cut(head, "\n---\n")
	var got struct {
		Info struct {
			Features []struct {
				Name  string
				DType any `yaml:"dtype"`
			}
		} `yaml:"dataset_info"`
	}
	if err := yaml.Unmarshal([]byte(head), &got); err != nil {
		t.Fatal(err)
	}
	f := got.Info.Features[len(got.Info.Features)-1]
	have := f.DType.(map[string]any)["class_label"].(map[string]any)["names"].(map[string]any)
	for i, l := range labels {
		if f.Name != "on" || have[fmt.Sprint(i)] != l.Name {
			t.Errorf("column %q, label %d = %#v, want %q", f.Name, i, have[fmt.Sprint(i)], l.Name)
		}
	}
}
