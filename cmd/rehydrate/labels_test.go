package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/workspace"
)

// table8 is the made-up manifest with the label counts of FigSIM's Table 8, which is beside it.
const table8 = "../../manifest/testdata/annotations.csv"

// labelsRun runs a labels command in this process and gives its stdout.
func labelsRun(t *testing.T, want int, args ...string) string {
	t.Helper()
	s := &site{t: t}
	f := s.do(nil, append([]string{"labels"}, args...)...)
	if f.code != want {
		t.Fatalf("labels %v = exit %d, want %d\n%s%s", args, f.code, want, f.stderr, f.stdout)
	}
	return f.stdout
}

// TestTable8Printed reads the printed table back, and the CSV, and compares both with the paper's.
func TestTable8Printed(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{filepath.Dir(table8), "../../../shared/figsim"} {
		found, err := filepath.Glob(filepath.Join(dir, "*annotations.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			if dir == filepath.Dir(table8) {
				t.Fatal("the project's own manifest is gone")
			}
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, "table8.json"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Totals         map[string]int
			Figurative     map[string]map[string]int
			Severity       map[string]map[string]int
			RelatedContent map[string]map[string]int `json:"related_content"`
			Modality       map[string]map[string]int
			Context        map[string]map[string]int
		}
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(labelsRun(t, exitDone, "stats", found[0]), "\n")
		const head = "split F1 F2 F3 F4 SS1 SS2 SS3 SS4 SS5 SS6 SR1 SR2 SR3 SR4 SR5 SR6 M1 M2 M3 C1 C2 total" // as the paper orders them
		if got := strings.Join(strings.Fields(lines[0]), " "); got != head {
			t.Errorf("%s: heading %s", found[0], got)
		}
		codes := strings.Fields(head)
		for i, split := range []string{"train", "validation", "test"} {
			cells := []string{split}
			for _, code := range codes[1 : len(codes)-1] {
				for _, counts := range []map[string]map[string]int{want.Figurative, want.Severity, want.RelatedContent, want.Modality, want.Context} {
					if n, ok := counts[split][code]; ok {
						cells = append(cells, strconv.Itoa(n))
					}
				}
			}
			cells = append(cells, strconv.Itoa(want.Totals[split]))
			if diff := cmp.Diff(cells, strings.Fields(lines[1+i])); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", found[0], split, diff)
			}
		}
		records, err := csv.NewReader(strings.NewReader(labelsRun(t, exitDone, "stats", found[0], "--csv"))).ReadAll()
		if err != nil || len(records) != 1+3*21 {
			t.Fatalf("CSV of %d records, %v", len(records), err)
		}
		if diff := cmp.Diff([]string{"train", "figurative", "F3", strconv.Itoa(want.Figurative["train"]["F3"])}, records[3]); diff != "" {
			t.Errorf("third count (-want +got)\n%s", diff)
		}
	}
}

// TestStatsOfDataset: the dataset, one of its files, and the workspace have the counts of the
// manifest that they hold, galleries among them.
func TestStatsOfDataset(t *testing.T) {
	t.Parallel()
	r, err := manifest.Open(table8, withNames)
	if err != nil {
		t.Fatal(err)
	}
	var entries []manifest.Entry
	for e, err := range r.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	entries[1].Key = manifest.Key{ID: entries[0].ID, Image: 1}
	dir := t.TempDir()
	writeDataset(t, dir, r.Schema, entries)
	stats := func(args ...string) (s labels.Stats) {
		t.Helper()
		if err := json.Unmarshal([]byte(labelsRun(t, exitDone, append([]string{"stats", "--json"}, args...)...)), &s); err != nil {
			t.Fatal(err)
		}
		s.Schema = ""
		return s
	}
	want := stats(table8)
	if diff := cmp.Diff(want, stats(dir)); diff != "" {
		t.Errorf("the dataset (-manifest +dataset)\n%s", diff)
	}
	if got := stats(filepath.Join(dir, "data", "test-00000-of-00001.parquet"), "--release", table8); got.Entries != 208 || len(got.Splits) != 1 || got.Splits[0].Name != "test" {
		t.Errorf("one file: %d entries, splits %v", got.Entries, got.Splits)
	}

	train := filepath.Join(dir, "data", "train-00000-of-00001.parquet")
	for _, other := range []string{"train-00001-of-00002.parquet", "train-00000-of-00002.parquet", "train-00001-of-00001.parquet"} {
		if err := os.Rename(train, filepath.Join(dir, "data", other)); err != nil {
			t.Fatal(err)
		}
		labelsRun(t, exitUsage, "stats", dir)
		train = filepath.Join(dir, "data", other)
	}

	ws := filepath.Join(t.TempDir(), "ws")
	keepAll(t, ws, r, entries)
	if diff := cmp.Diff(want, stats(ws)); diff != "" {
		t.Errorf("the workspace (-manifest +workspace)\n%s", diff)
	}
}

func each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// writeDataset writes the Parquet files of a dataset with one picture for all rows.
func writeDataset(t *testing.T, dir string, schema manifest.Schema, entries []manifest.Entry) {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(picture.Bytes())
	rows := map[string][]dataset.Row{}
	for _, e := range entries {
		id := string(e.ID)
		if e.Image > 0 {
			id += fmt.Sprintf("/%d", e.Image)
		}
		rows[e.Split] = append(rows[e.Split], dataset.Row{ID: id, Image: picture.Bytes(), Width: 2, Height: 2, SHA256: hex.EncodeToString(digest[:]), Labels: e.Labels})
	}
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for split, list := range rows {
		f, err := os.Create(filepath.Join(dir, "data", split+"-00000-of-00001.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dataset.WriteParquet(f, schema, dataset.Provenance{}, false, each(list)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// keepAll makes a workspace that has kept the entries, and dropped one more.
func keepAll(t *testing.T, dir string, r *manifest.Release, entries []manifest.Entry) {
	t.Helper()
	ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	extra := entries[0]
	extra.Key, extra.Ordinal = manifest.Key{ID: "dropped"}, len(entries)
	all := append(entries, extra)
	b := workspace.Binding{Release: r.Name, ReleaseDigest: r.Digest, ManifestDigest: r.ManifestDigest, Schema: r.Schema, Splits: []string{"train", "validation", "test"}}
	if err := ws.Load(t.Context(), b, each(all), nil); err != nil {
		t.Fatal(err)
	}
	var results []manifest.Result
	for _, e := range all {
		x := manifest.Result{Key: e.Key, Split: e.Split, Outcome: manifest.Kept}
		if e.ID == "dropped" {
			x.Outcome, x.Reason = manifest.Gone, "http_404"
		}
		results = append(results, x)
	}
	if err := ws.SetResults(t.Context(), results); err != nil {
		t.Fatal(err)
	}
	if err := ws.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLabelsText: no number is -0.00, a file's name does not move the cursor, and a pipe is not
// waited for.
func TestLabelsText(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{-0.004: "0.00", -0.006: "-0.01", 0: "0.00", 10: "10.00"} {
		if got := decimal(&v, 2); got != want {
			t.Errorf("decimal(%v) = %s, want %s", v, got, want)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "\x1b[31mred.csv")
	if err := os.WriteFile(file, []byte("id,severity\n1wdfn2,SS2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := labelsRun(t, exitDone, "score", file, "--gold", table8, "--split", "all"); strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	pipe := filepath.Join(dir, "pipe.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	labelsRun(t, exitUsage, "agreement", pipe)
}

// TestSplitIsReadAgain: what split writes joins the manifest by id, and has its parts.
func TestSplitIsReadAgain(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "split.csv")
	var report splitReport
	if err := json.Unmarshal([]byte(labelsRun(t, exitDone, "split", table8, "--out", out, "--json")), &report); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	// A seed's split is for good: people publish with it. Another algorithm needs another name.
	const pinned = "518ab9c449d1e8b4bce4a4f63168652296a561c02332a0efe13234cb0f6bd9ca"
	if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != pinned {
		t.Errorf("the split of seed 1 has the digest %s, want %s", got, pinned)
	}
	records, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for _, record := range records[1:] {
		if _, err := manifest.ParsePostID(record[0]); err != nil {
			t.Error(err)
		}
		sizes[record[1]]++
	}
	if diff := cmp.Diff(map[string]int{"train": 629, "validation": 210, "test": 210}, sizes); diff != "" {
		t.Errorf("sizes (-want +got)\n%s", diff)
	}
	if report.Own == nil || report.Own.Worst.Off < 4 || report.Split.Worst.Off > 2 || report.Seed != 1 || report.Out != out {
		t.Errorf("%+v", report)
	}
	info, err := os.Stat(out)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
