package dataset

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

func testCard() Card {
	return Card{Name: "Memes & <Co>", Version: "1.2.0", Date: "2026-03-01", Homepage: "https://example.org/memes",
		License:  "CC-BY-4.0",
		Citation: "@misc{memes,\n  title = {Memes ``` and more}\n}", Schema: testSchema(), Provenance: testProvenance(),
		Flagged: true,
		Splits: []Split{
			{Name: "train", Rows: 4810, Bytes: 621_000_000,
				Shards: []Stats{{Rows: 4000, Bytes: 500_000_000, SHA256: strings.Repeat("1", 64)},
					{Rows: 810, Bytes: 121_000_000, SHA256: strings.Repeat("4", 64)}}},
			{Name: "validation", Rows: 90, Bytes: 13_000_000,
				Shards: []Stats{{Rows: 90, Bytes: 13_000_000, SHA256: strings.Repeat("2", 64)}}},
			{Name: "test", Rows: 0, Bytes: 3000, Shards: []Stats{{Bytes: 3000, SHA256: strings.Repeat("3", 64)}}}},
		Outcomes: map[string]map[manifest.Outcome]int{
			"train":      {manifest.Kept: 4810, manifest.Removed: 31, manifest.Duplicate: 4},
			"validation": {manifest.Kept: 90, manifest.Deleted: 7},
			"test":       {manifest.Failed: 2},
		}}
}

func render(t *testing.T, write func(io.Writer, Card) error, c Card) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", path, diff)
	}
}

func TestCard(t *testing.T) {
	for range 5 { // maps inside
		golden(t, "README.md", render(t, WriteCard, testCard()))
	}
	for _, f := range []Format{Parquet, WebDataset, Folder} {
		c := testCard()
		c.Format = f
		for _, want := range []string{"`streaming=True`", "`cache_dir`", "Do not pass it on", "**Content warning.**"} {
			if card := render(t, WriteCard, c); !strings.Contains(card, want) {
				t.Errorf("the card of %s does not have %s", f, want)
			}
		}
	}
}

// A release's texts may not break out of the places where they stand.
func TestCardHostile(t *testing.T) {
	c := testCard()
	c.Name, c.Homepage, c.License = "x\n---\nevil: true | <script>", "javascript:alert(1)", "a\nb: [c]"
	c.Provenance.OCRParameters = "a|b\n# head"
	c.Schema.Categories[0].Title = "| `x` <img src=x>"
	card := render(t, WriteCard, c)
	if n := len(regexp.MustCompile(`(?m)^---$`).FindAllString(card, -1)); n != 2 {
		t.Errorf("%d lines of ---, want 2", n)
	}
	for _, bad := range []string{"<script>", "javascript:", "<img", "\n# head", "\nevil"} {
		if strings.Contains(strings.SplitN(card, "---\n", 3)[2], bad) {
			t.Errorf("the card has %q as it is", bad)
		}
	}
}

func TestCardEmpty(t *testing.T) {
	for name, write := range map[string]func(io.Writer, Card) error{"card": WriteCard, "croissant": WriteCroissant} {
		if text := render(t, write, Card{}); text == "" {
			t.Errorf("%s of nothing is empty", name)
		}
		if err := write(failingWriter{}, testCard()); err == nil {
			t.Errorf("%s: failed write passed", name)
		}
	}
}

func TestLink(t *testing.T) {
	for home, want := range map[string]bool{"https://a.org/b": true, "http://a.org": true, "ftp://a.org": false,
		"https:///b": false,
		"a.org":      false, "https://a.org/b c": false, "https://a.org/<b>": false, "": false} {
		if got := (card{Card{Homepage: home}}).Link(); (got == home) != want && home != "" {
			t.Errorf("the link to %q is %q", home, got)
		}
	}
}

func TestSizeCategory(t *testing.T) {
	for rows, want := range map[int]string{0: "n<1K", 999: "n<1K", 1000: "1K<n<10K", 1049: "1K<n<10K",
		10_000: "10K<n<100K", 1_000_000: "1M<n<10M"} {
		if got := (card{Card{Splits: []Split{{Rows: rows}}}}).SizeCategory(); got != want {
			t.Errorf("sizeCategory(%d) = %q, want %q", rows, got, want)
		}
	}
}

func TestCroissant(t *testing.T) {
	text := render(t, WriteCroissant, testCard())
	golden(t, "croissant.json", text)
	var doc struct {
		Context      map[string]any `json:"@context"`
		IsLive       *bool          `json:"isLiveDataset"`
		License      map[string]string
		UsageInfo    map[string]string
		Distribution []struct{ ContentURL, Includes string }
		RecordSet    []struct {
			Field []struct {
				ID         string `json:"@id"`
				DataType   any
				References map[string]map[string]string
				Source     struct{ Transform struct{ Regex string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	// mlcroissant's rules: core/constants.py and core/rdf.py (https://schema.org/), Appendix 1 of the specification 1.1.
	for key, want := range map[string]any{"@vocab": "https://schema.org/", "sc": "https://schema.org/",
		"cr": "http://mlcommons.org/croissant/"} {
		if doc.Context[key] != want {
			t.Errorf("@context has %s as %v, want %v", key, doc.Context[key], want)
		}
	}
	for _, key := range strings.Fields(`annotation arrayShape citeAs column conformsTo containedIn data dataType equivalentProperty examples
		excludes extract field fileProperty fileObject fileSet format includes isArray isLiveDataset jsonPath key md5 parentField recordSet references
		regex readLines sdVersion separator source subField transform unArchive value`) {
		if doc.Context[key] == nil {
			t.Errorf("@context has no %s", key)
		}
	}
	if doc.IsLive == nil || doc.License["name"] != "annotations-cc-by-4.0" ||
		!strings.Contains(doc.UsageInfo["text"], "Do not pass it on") {
		t.Errorf("isLiveDataset %v, license %v, usageInfo %v", doc.IsLive, doc.License, doc.UsageInfo)
	}
	// nodes/field.py: a known data type each; operations/join.py: one join.
	for _, set := range doc.RecordSet {
		joins := 0
		for _, f := range set.Field {
			if !regexp.MustCompile(`^\[?sc:(Text|Integer|Float|URL|ImageObject)\b`).MatchString(fmt.Sprint(f.DataType)) {
				t.Errorf("%s has the data type %v", f.ID, f.DataType)
			}
			if f.References != nil {
				joins++
				if f.References["field"]["@id"] != "splits/name" {
					t.Errorf("%s references %v", f.ID, f.References)
				}
			}
		}
		if joins > 1 {
			t.Errorf("%d fields of a record set are joined", joins)
		}
	}
	// datasets.py, _regex_from_value and _regex_to_glob: records(filters={"default/split": "train"}) reads the train
	// files.
	split := doc.RecordSet[len(doc.RecordSet)-1].Field[0]
	glob := regexp.MustCompile(`\(.*\)`).ReplaceAllString(split.Source.Transform.Regex, "train")
	glob = "data/" + strings.NewReplacer("^", "", "$", "", `\.`, ".", ".*", "*").Replace(glob)
	for _, file := range doc.Distribution {
		if ok, _ := path.Match(glob, file.ContentURL); ok != strings.HasPrefix(file.ContentURL, "data/train-") {
			t.Errorf("%s takes or leaves %s of %s", glob, file.ContentURL, split.ID)
		}
	}
}

// TestOtherReaders: hyparquet reads the rows that were written, and jsonld finds an IRI for every key of
// croissant.json.
func TestOtherReaders(t *testing.T) {
	rows := testRows()
	file, _ := writeFile(t, false, all(rows))
	var got []struct {
		ID     string
		Image  struct{ Bytes, Path *string }
		Width  int
		SHA256 string
		Kind   *int
	}
	testkit.Node(t, &got, "hyparquet", "pipeline/dataset/testdata/readers.mjs", "", "parquet", file)
	if len(got) != len(rows) {
		t.Fatalf("hyparquet reads %d rows of %d", len(got), len(rows))
	}
	for i, r := range rows {
		g := got[i]
		if g.ID != r.ID || g.Image.Bytes == nil || *g.Image.Bytes != hex.EncodeToString(r.Image) || g.Width != r.Width ||
			g.SHA256 != r.SHA256 ||
			(g.Kind == nil) != (len(r.Labels[0]) == 0) || g.Kind != nil && *g.Kind != r.Labels[0][0] {
			t.Errorf("hyparquet reads %s otherwise than it was written, as %d pixels and the label %v", r.ID, g.Width, g.Kind)
		}
	}
	croissant := filepath.Join(t.TempDir(), "croissant.json")
	if err := os.WriteFile(croissant, []byte(render(t, WriteCroissant, testCard())), 0o600); err != nil {
		t.Fatal(err)
	}
	var expanded []map[string]any
	testkit.Node(t, &expanded, "jsonld", "pipeline/dataset/testdata/readers.mjs", "", "jsonld", croissant)
	for _, key := range []string{"https://schema.org/license", "https://schema.org/distribution",
		"http://mlcommons.org/croissant/recordSet"} {
		if len(expanded) != 1 || expanded[0][key] == nil {
			t.Errorf("jsonld finds no %s", key)
		}
	}
}
