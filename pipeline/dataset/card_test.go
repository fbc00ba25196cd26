package dataset

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

func testCard() Card {
	return Card{Name: "Memes & <Co>", Version: "1.2.0", Date: "2026-03-01", Homepage: "https://example.org/memes", License: "CC-BY-4.0",
		Citation: "@misc{memes,\n  title = {Memes ``` and more}\n}", Schema: testSchema(), Provenance: testProvenance(), Flagged: true,
		Splits: []Split{
			{Name: "train", Rows: 4810, Bytes: 621_000_000, Shards: []Stats{{Rows: 4000, Bytes: 500_000_000, SHA256: strings.Repeat("1", 64)},
				{Rows: 810, Bytes: 121_000_000, SHA256: strings.Repeat("4", 64)}}},
			{Name: "validation", Rows: 90, Bytes: 13_000_000, Shards: []Stats{{Rows: 90, Bytes: 13_000_000, SHA256: strings.Repeat("2", 64)}}},
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
}

func TestCardHead(t *testing.T) {
	card := render(t, WriteCard, testCard())
	_, head, _ := strings.Cut(card, "---\n")
	head, _, ok := strings.Cut(head, "---\n")
	if !ok {
		t.Fatalf("no YAML head in:\n%s", card)
	}
	for _, key := range []string{"pretty_name", "language", "license", "license_name", "size_categories", "task_categories", "source_datasets", "configs", "dataset_info"} {
		if !regexp.MustCompile(`(?m)^` + key + `:`).MatchString(head) {
			t.Errorf("the head lacks %s", key)
		}
	}
	for _, want := range []string{"          '0': \"No\"\n", "          '1': \"0\"\n", "    sequence:\n      class_label:", "path: \"data/validation-*\"", "size_categories:\n- 1K<n<10K\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("the head lacks %q:\n%s", want, head)
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
		bad := Card{Schema: manifest.Schema{Categories: []manifest.Category{{Name: "image"}}}}
		if err := write(io.Discard, bad); err == nil {
			t.Errorf("%s took a category named image", name)
		}
		if err := write(failingWriter{}, testCard()); err == nil {
			t.Errorf("%s: failed write passed", name)
		}
	}
}

func TestWhyCoversOutcomes(t *testing.T) {
	for _, o := range manifest.Outcomes() {
		if o != manifest.Kept && whyWords[o] == "" {
			t.Errorf("no words for %s", o)
		}
	}
}

func TestSizeCategory(t *testing.T) {
	for rows, want := range map[int]string{0: "n<1K", 999: "n<1K", 1000: "1K<n<10K", 1049: "1K<n<10K", 10_000: "10K<n<100K", 1_000_000: "1M<n<10M"} {
		if got := sizeCategory(rows); got != want {
			t.Errorf("sizeCategory(%d) = %q, want %q", rows, got, want)
		}
	}
}

func TestCroissant(t *testing.T) {
	text := render(t, WriteCroissant, testCard())
	golden(t, "croissant.json", text)
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"@context", "@type", "conformsTo", "name", "description", "license", "url", "creator", "datePublished", "version", "distribution", "recordSet",
		"prov:wasDerivedFrom", "prov:wasGeneratedBy", "rai:dataCollectionMissingData"} {
		if v, ok := doc[key]; !ok || v == "" {
			t.Errorf("croissant.json lacks %s", key)
		}
	}
	if doc["@type"] != "sc:Dataset" || doc["datePublished"] != "2026-03-01" {
		t.Errorf("type %v, datePublished %v", doc["@type"], doc["datePublished"])
	}
}

// Every id is there once, and every reference has its target.
func TestCroissantIDs(t *testing.T) {
	c := testCard()
	c.Splits = append(c.Splits, Split{Name: "extra"})
	var doc map[string]any
	if err := json.Unmarshal([]byte(render(t, WriteCroissant, c)), &doc); err != nil {
		t.Fatal(err)
	}
	defined, used := map[string]int{}, map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if id, ok := v["@id"].(string); ok && len(v) == 1 {
				used[id] = true
			} else if ok {
				defined[id]++
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc["distribution"])
	walk(doc["recordSet"])
	for id, n := range defined {
		if n != 1 {
			t.Errorf("@id %s is defined %d times", id, n)
		}
	}
	for id := range used {
		if defined[id] == 0 {
			t.Errorf("@id %s is referred to and not defined", id)
		}
	}
	if defined["default/figures, of speech"] == 0 || defined["data/train-00001-of-00002.parquet"] == 0 {
		t.Errorf("columns or files are missing: %v", defined)
	}
}

// What the specification of Croissant 1.1 requires and recommends, and what its RAI extension names, in the
// shape that it gives them.
func TestCroissantShape(t *testing.T) {
	c := testCard()
	var doc map[string]any
	if err := json.Unmarshal([]byte(render(t, WriteCroissant, c)), &doc); err != nil {
		t.Fatal(err)
	}
	is := func(where string, node map[string]any, kinds map[string]string) {
		t.Helper()
		for key, kind := range kinds {
			if got := jsonKind(node[key]); !strings.Contains(kind, got) || got == "" {
				t.Errorf("%s: %s is %q, want %s", where, key, got, kind)
			}
		}
	}
	is("dataset", doc, map[string]string{"@context": "object", "@type": "text", "conformsTo": "text texts", "description": "text", "license": "text object", "name": "text",
		"url": "text", "creator": "object", "datePublished": "text", "keywords": "texts", "version": "text", "inLanguage": "text", "citeAs": "text", "distribution": "objects", "recordSet": "objects",
		"rai:dataCollection": "text", "rai:dataCollectionType": "texts", "rai:dataCollectionMissingData": "text", "rai:dataPreprocessingProtocol": "texts", "rai:machineAnnotationTools": "texts",
		"rai:personalSensitiveInformation": "text", "rai:dataBiases": "text", "rai:dataUseCases": "text", "rai:dataLimitations": "text", "rai:dataReleaseMaintenancePlan": "text"})
	conforms := doc["conformsTo"].([]any)
	if doc["@type"] != "sc:Dataset" || conforms[0] != "http://mlcommons.org/croissant/1.1" || conforms[1] != "http://mlcommons.org/croissant/RAI/1.0" ||
		!regexp.MustCompile(`^\d{4}-\d\d-\d\d$`).MatchString(doc["datePublished"].(string)) || !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(doc["version"].(string)) {
		t.Errorf("type %v, conformsTo %v, date %v, version %v", doc["@type"], conforms, doc["datePublished"], doc["version"])
	}
	kinds := map[string]int{}
	for _, v := range doc["distribution"].([]any) {
		f := v.(map[string]any)
		kinds[f["@type"].(string)]++
		is("distribution", f, map[string]string{"@type": "text", "@id": "text", "name": "text", "encodingFormat": "text"})
		if f["@type"] == "cr:FileObject" {
			is("file", f, map[string]string{"contentUrl": "text", "contentSize": "text", "sha256": "text"})
		} else {
			is("file set", f, map[string]string{"includes": "text"})
		}
	}
	if kinds["cr:FileObject"] != 4 || kinds["cr:FileSet"] != 1 || len(kinds) != 2 {
		t.Errorf("distribution has %v", kinds)
	}
	for _, v := range doc["recordSet"].([]any) {
		set := v.(map[string]any)
		is("record set", set, map[string]string{"@type": "text", "@id": "text", "name": "text", "key": "object", "field": "objects"})
		inline := set["data"] != nil
		if want := map[bool]string{true: "text", false: ""}[inline]; jsonKind(set["dataType"]) != want {
			t.Errorf("%s: dataType %v, inline data %v", set["@id"], set["dataType"], inline)
		}
		for _, v := range set["field"].([]any) {
			field := v.(map[string]any)
			is("field", field, map[string]string{"@type": "text", "@id": "text", "name": "text", "dataType": "text texts"})
			if !strings.HasPrefix(field["@id"].(string), set["@id"].(string)+"/") {
				t.Errorf("field %v is not named after its record set %v", field["@id"], set["@id"])
			}
			if inline {
				continue
			}
			is("field "+field["@id"].(string), field, map[string]string{"source": "object"})
			is("source", field["source"].(map[string]any), map[string]string{"fileSet": "object", "extract": "object"})
			if array, shape := field["isArray"] == true, field["arrayShape"] == "-1"; array != shape || array != (field["@id"] == "default/figures, of speech") {
				t.Errorf("%v: isArray %v, arrayShape %v", field["@id"], field["isArray"], field["arrayShape"])
			}
		}
		for _, v := range anyList(set["data"]) {
			if row := v.(map[string]any); len(row) != len(set["field"].([]any)) {
				t.Errorf("%s: inline row %v has not the fields of its set", set["@id"], row)
			}
		}
	}
	context := doc["@context"].(map[string]any)
	for _, prefix := range []string{"@vocab", "sc", "cr", "rai", "dct", "prov"} {
		if context[prefix] == nil {
			t.Errorf("the context lacks %s", prefix)
		}
	}
}

func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}

// jsonKind is text, texts, object or objects; "" for what is empty or another thing.
func jsonKind(v any) string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return "text"
		}
	case map[string]any:
		if len(v) > 0 {
			return "object"
		}
	case []any:
		if len(v) > 0 && jsonKind(v[0]) != "" {
			return jsonKind(v[0]) + "s"
		}
	}
	return ""
}
