package diff

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
)

func diffSchema() manifest.Schema {
	return manifest.Schema{Name: "t", Categories: []manifest.Category{
		{Name: "kind", Kind: manifest.Single, Labels: []manifest.Label{{Code: "A", Name: "Alpha"},
			{Code: "B", Name: "Beta"}}},
		{Name: "many", Kind: manifest.Multi, Labels: []manifest.Label{{Code: "X", Name: "None"}, {Code: "Y", Name: "Why"}}},
	}}
}

func diffRow(id, text string, change func(*dataset.Row)) dataset.Row {
	r := dataset.Row{ID: id, Image: []byte("\xff\xd8\xff " + id), Path: id + ".jpg", Text: text, Width: 1, Height: 1,
		PHash:  "00000000000000ff",
		Labels: [][]int{{0}, {0, 1}}}
	if change != nil {
		change(&r)
	}
	r.SHA256 = fmt.Sprintf("%x", sha256.Sum256(r.Image))
	return r
}

// writeSide makes the folder of a dataset: splits of rows, and outcomes if there are some.
func writeSide(t *testing.T, s manifest.Schema, engine string, splits map[string][]dataset.Row,
	outcomes []manifest.Result) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, write func(io.Writer) error) error {
		name = filepath.Join(dir, filepath.FromSlash(name))
		var b bytes.Buffer
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), write(&b)); err != nil {
			return err
		}
		return os.WriteFile(name, b.Bytes(), 0o600)
	}
	for split, rows := range splits {
		plan := []int{len(rows) / 2, len(rows) - len(rows)/2} // always two shards
		if _, err := dataset.WriteShards(put, s, dataset.Provenance{Release: "t", OCREngine: engine}, false, split, plan,
			func(yield func(dataset.Row, error) bool) {
				for _, r := range rows {
					if !yield(r, nil) {
						return
					}
				}
			}); err != nil {
			t.Fatal(err)
		}
	}
	if outcomes != nil {
		if err := put(manifest.OutcomesName, func(w io.Writer) error {
			return manifest.WriteOutcomes(w, func(yield func(manifest.Result, error) bool) {
				for _, r := range outcomes {
					if !yield(r, nil) {
						return
					}
				}
			})
		}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func showsAll(string, string) (bool, error) { return false, nil }

func compared(t *testing.T, older, newer string) (Summary, map[string]Change) {
	t.Helper()
	report, err := Compare(t.Context(), older, newer, showsAll)
	testkit.OK(t, err)
	changes := map[string]Change{}
	for _, c := range report.Changes {
		if _, twice := changes[c.ID]; twice {
			t.Errorf("%s is told twice", c.ID)
		}
		changes[c.ID] = c
	}
	return report.Summary, changes
}

func result(id string, o manifest.Outcome, reason manifest.Reason) manifest.Result {
	return manifest.Result{Key: manifest.Key{ID: manifest.PostID(id)}, Split: "train", Outcome: o, Reason: reason}
}

func TestCompare(t *testing.T) {
	equal := diffRow("same", "one two", nil)
	older := writeSide(t, diffSchema(), "tesseract 1", map[string][]dataset.Row{
		"train": {equal, diffRow("lost", "x", nil), diffRow("text", "the cat sat", nil), diffRow("image", "i", nil),
			diffRow("label", "l", nil)},
		"test": {diffRow("moved", "m", nil)},
	}, []manifest.Result{result("same", manifest.Kept, ""), result("lost", manifest.Kept, ""),
		result("new", manifest.Failed, "http_500"), result("other", manifest.Failed, "http_500"),
		result("still", manifest.Removed, "moderator")})
	newer := writeSide(t, diffSchema(), "tesseract 2", map[string][]dataset.Row{
		"train": {diffRow("label", "l", func(r *dataset.Row) { r.Labels = [][]int{{1}, nil} }), diffRow("new", "n", nil),
			diffRow("image", "i", func(r *dataset.Row) {
				r.Image, r.PHash = []byte("\xff\xd8\xff other"),
					"000000000000000f"
			}),
			diffRow("text", "the dog sat \x1b[31mred", nil), equal, diffRow("moved", "m", nil)},
	}, []manifest.Result{result("same", manifest.Kept, ""), result("lost", manifest.Deleted, ""),
		result("new", manifest.Kept, ""), result("other", manifest.Gone, "http_404"),
		result("still", manifest.Removed, "moderator")})
	d, changes := compared(t, older, newer)

	four := 4
	conclude := func(o manifest.Outcome, r manifest.Reason) *state.Conclusion {
		return &state.Conclusion{Outcome: o, Reason: r}
	}
	image := func(body string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte("\xff\xd8\xff "+body))) }
	want := map[string]Change{
		"lost": {ID: "lost", Kind: "lost", Old: conclude(manifest.Kept, ""), New: conclude(manifest.Deleted, "")},
		"new":  {ID: "new", Kind: "gained", Old: conclude(manifest.Failed, "http_500"), New: conclude(manifest.Kept, "")},
		"other": {ID: "other", Kind: "outcome", Old: conclude(manifest.Failed, "http_500"),
			New: conclude(manifest.Gone, "http_404")},
		"moved": {ID: "moved", Kind: "changed", Split: &[2]string{"test", "train"}},
		"image": {ID: "image", Kind: "changed", Image: &ImageChange{Old: image("image"), New: image("other"),
			Distance: &four}},
		"text": {ID: "text", Kind: "changed", Text: &WordChange{Gained: []string{"dog", "[31mred"},
			Lost: []string{"cat"}}},
		"label": {ID: "label", Kind: "changed", Labels: map[string]LabelChange{"kind": {[]string{"Alpha"},
			[]string{"Beta"}}, "many": {[]string{"None", "Why"}, nil}}},
	}
	testkit.Same(t, "changes", want, changes)
	if d.Old.Rows != 6 || d.New.Rows != 6 || d.Gained != 1 || d.Lost != 1 || d.Images != 1 || d.Texts != 1 ||
		d.Labels != 1 || d.Splits != 1 || d.Outcomes != 1 || !d.Changed || d.Step != "major" {
		t.Errorf("summary %+v", d)
	}
	if diff := cmp.Diff([]KeyChange{{"ocr_engine", "tesseract 1", "tesseract 2"}}, d.Provenance); diff != "" ||
		len(d.Schema) != 0 || len(d.NotCompared) != 0 {
		t.Errorf("provenance (-want +got):\n%s\nschema %v, not compared %v", diff, d.Schema, d.NotCompared)
	}
	testkit.Same(t, "why lost", []WhyCount{{conclude(manifest.Kept, ""), conclude(manifest.Deleted, ""), 1}}, d.WhyLost)
}

// TestCompareHides: of a row that the workspace of either side does not show, that it is another is told, and not what
// it says or looks like.
func TestCompareHides(t *testing.T) {
	other := func(r *dataset.Row) {
		r.Image, r.PHash, r.Labels = []byte("\xff\xd8\xff o"), "000000000000000f", [][]int{{1}, nil}
	}
	side := func(text string, change func(*dataset.Row)) string {
		return writeSide(t, diffSchema(), "", map[string][]dataset.Row{"train": {
			diffRow("gone", "private "+text, change), diffRow("live", "words "+text, nil)}}, nil)
	}
	older, newer := side("one", nil), side("two", other)
	for _, in := range []string{older, newer} {
		report, err := Compare(t.Context(), older, newer, func(file, row string) (bool, error) {
			return strings.HasPrefix(file, in) && row == "gone", nil
		})
		testkit.OK(t, err)
		gone, live := report.Changes[0], report.Changes[1]
		if !gone.Hidden || gone.Text != nil || gone.Labels != nil || gone.Image == nil || gone.Image.Distance != nil {
			t.Errorf("hidden by %s: %+v", in, gone)
		}
		testkit.Same(t, "live", &WordChange{Gained: []string{"two"}, Lost: []string{"one"}}, live.Text)
		testkit.Same(t, "texts and labels", [2]int{2, 1}, [2]int{report.Summary.Texts, report.Summary.Labels})
	}
}

func TestCompareSteps(t *testing.T) {
	a, b := diffRow("a", "x", nil), diffRow("b", "x", nil)
	side := func(s manifest.Schema, engine string, rows ...dataset.Row) string {
		return writeSide(t, s, engine, map[string][]dataset.Row{"train": rows}, nil)
	}
	// Of a workspace the dataset counts, and nothing that somebody put beside it.
	ws := t.TempDir()
	testkit.OK(t, os.CopyFS(filepath.Join(ws, "dataset"), os.DirFS(side(diffSchema(), "1", a, b))))
	for _, name := range []string{"state.db", "dataset/data/mine.parquet", "other.parquet"} {
		testkit.OK(t, os.WriteFile(filepath.Join(ws, name), []byte("not for this"), 0o600))
	}
	renamed := diffSchema()
	renamed.Categories[0].Labels[1].Name = "Gamma"
	more := diffSchema()
	more.Categories = append(more.Categories, manifest.Category{Name: "third", Kind: manifest.Single,
		Labels: []manifest.Label{{Code: "T", Name: "T"}}})
	third := diffRow("a", "x", func(r *dataset.Row) { r.Labels = append(r.Labels, []int{0}) })
	base := side(diffSchema(), "1", a)
	for name, c := range map[string]struct {
		newer, step string
		changed     bool
	}{
		"the same":        {base, "none", false},
		"another file":    {side(diffSchema(), "1", a), "none", false},
		"another engine":  {side(diffSchema(), "2", a), "patch", true},
		"a row more":      {side(diffSchema(), "1", a, b), "minor", true},
		"in a workspace":  {ws, "minor", true},
		"a row less":      {side(diffSchema(), "1"), "major", true},
		"a column more":   {side(more, "1", third), "minor", true},
		"a label renamed": {side(renamed, "1", a), "major", true},
	} {
		d, changes := compared(t, base, c.newer)
		if d.Step != c.step || d.Changed != c.changed || !c.changed && len(changes) > 0 {
			t.Errorf("%s: step %s, changed %v, want %s, %v; %+v", name, d.Step, d.Changed, c.step, c.changed, d)
		}
	}
}

// Outcomes alone are compared by what is kept; what is not there is said.
func TestCompareOutcomesOnly(t *testing.T) {
	older := filepath.Join(writeSide(t, diffSchema(), "", nil,
		[]manifest.Result{result("a", manifest.Kept, ""), result("b", manifest.Removed, "moderator")}),
		manifest.OutcomesName)
	newer := filepath.Join(writeSide(t, diffSchema(), "", nil,
		[]manifest.Result{result("a", manifest.Duplicate, "near_text"), result("b", manifest.Kept, "")}),
		manifest.OutcomesName)
	d, changes := compared(t, older, newer)
	if d.Lost != 1 || d.Gained != 1 || changes["a"].Kind != "lost" || changes["b"].Kind != "gained" ||
		len(d.NotCompared) != 1 || d.Step != "major" {
		t.Errorf("summary %+v, changes %+v", d, changes)
	}
}

// Beside a dataset outcomes stand in for rows, whichever side has them.
func TestCompareDatasetWithOutcomes(t *testing.T) {
	rows := writeSide(t, diffSchema(), "", map[string][]dataset.Row{"train": {diffRow("a", "", nil),
		diffRow("b", "", nil)}}, nil)
	outcomes := filepath.Join(writeSide(t, diffSchema(), "", nil,
		[]manifest.Result{result("a", manifest.Kept, ""), result("b", manifest.Removed, "moderator"),
			result("c", manifest.Kept, "")}), manifest.OutcomesName)
	for _, tt := range [][4]string{{rows, outcomes, "lost", "gained"}, {outcomes, rows, "gained", "lost"}} {
		_, changes := compared(t, tt[0], tt[1])
		if len(changes) != 2 || changes["b"].Kind != tt[2] || changes["c"].Kind != tt[3] {
			t.Errorf("changes %+v", changes)
		}
	}
}

// TestCompareOrder: changes come in the order of the old rows, then of the new ones; an id that a row has
// again, and a row without one, are counted alone.
func TestCompareOrder(t *testing.T) {
	type row struct {
		ID   string `parquet:"id,optional"` // "" is null
		Text string `parquet:"ocr_text"`
	}
	side := func(rows ...row) string {
		name := filepath.Join(t.TempDir(), "any.parquet")
		testkit.OK(t, parquet.WriteFile(name, rows))
		return name
	}
	report, err := Compare(t.Context(), side(row{"b", ""}, row{"a", ""}, row{"c", "other"}, row{"a", ""}, row{}),
		side(row{"d", ""}, row{"c", ""}, row{"b", ""}, row{"c", ""}, row{"e", ""}), showsAll)
	testkit.OK(t, err)
	var got []string
	for _, change := range report.Changes {
		got = append(got, change.Kind+" "+change.ID)
	}
	testkit.Same(t, "changes", []string{"lost a", "changed c", "gained d", "gained e"}, got)
	older, newer := report.Summary.Old, report.Summary.New
	if older.Rows != 5 || older.Repeated != 1 || older.WithoutID != 1 || newer.Rows != 5 || newer.Repeated != 1 ||
		newer.WithoutID != 0 {
		t.Errorf("counts: %+v, %+v", older, newer)
	}
}

// A hash that is none has no distance, a side that names no split has not moved a row, and beside data/ no other
// Parquet file counts.
func TestCompareForeignFiles(t *testing.T) {
	type row struct {
		ID     string `parquet:"id"`
		SHA256 string `parquet:"sha256"`
		PHash  string `parquet:"phash"`
	}
	older, newer := filepath.Join(t.TempDir(), "any.parquet"), t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(newer, "data"), 0o700),
		parquet.WriteFile(older, []row{{"a", "1", "00000000000000ff"}, {"b", "1", "f"}}),
		parquet.WriteFile(filepath.Join(newer, "data", "test-00000-of-00001.parquet"),
			[]row{{"a", "2", "000000000000000f"}, {"b", "2", "e"}}),
		parquet.WriteFile(filepath.Join(newer, "other.parquet"), []row{{"c", "", ""}}))
	report, err := Compare(t.Context(), older, newer, showsAll)
	testkit.Same(t, "changes", []Change{
		{ID: "a", Kind: "changed", Image: &ImageChange{Old: "1", New: "2", Distance: new(4)}},
		{ID: "b", Kind: "changed", Image: &ImageChange{Old: "1", New: "2"}},
	}, report.Changes, err)
}

// Decimals are compared. Columns of both sides whose values are not read are named; images are compared by digests.
func TestCompareTypes(t *testing.T) {
	type row struct {
		ID    string            `parquet:"id"`
		Score int32             `parquet:"score,decimal(1:9)"`
		Notes map[string]string `parquet:"notes"`
		Image struct {
			Bytes []byte `parquet:"bytes"`
		} `parquet:"image"`
	}
	type later struct {
		row
		More map[string]string `parquet:"more"`
	}
	older, newer := filepath.Join(t.TempDir(), "a.parquet"), filepath.Join(t.TempDir(), "b.parquet")
	testkit.OK(t, parquet.WriteFile(older, []row{{ID: "a", Score: 15}, {ID: "b", Score: 20}}),
		parquet.WriteFile(newer, []later{{row: row{ID: "a", Score: 16}}, {row: row{ID: "b", Score: 20}}}))
	report, err := Compare(t.Context(), older, newer, showsAll)
	testkit.Same(t, "changes", []Change{{ID: "a", Kind: "changed",
		Labels: map[string]LabelChange{"score": {Old: []string{"1.5"}, New: []string{"1.6"}}}}}, report.Changes, err)
	testkit.Same(t, "not compared", []string{"sha256: not both sides have the column",
		"ocr_text: not both sides have the column",
		"outcomes: not both sides have an outcomes.csv, so why a row went may not be known",
		"notes: its Parquet type, map, is not read"}, report.Summary.NotCompared)
}

// TestCompareGaps: the lists of the rows about an image are compared with the places that have no value.
func TestCompareGaps(t *testing.T) {
	schema := manifest.Schema{Name: "t", Many: true, Columns: []manifest.Column{{Name: "rater", Type: manifest.TypeText},
		{Name: "score", Type: manifest.TypeInteger}}}.Joined()
	side := func(raters, scores []string) string {
		return writeSide(t, schema, "", map[string][]dataset.Row{"train": {diffRow("a", "",
			func(r *dataset.Row) { r.Labels, r.Values = nil, [][]string{raters, scores} })}}, nil)
	}
	none := manifest.NoValue
	older := side([]string{"ann", none, "ben"}, []string{none, "2", none})
	for _, test := range []struct {
		newer string
		want  map[string]LabelChange
	}{
		{side([]string{"ann", none, "ben"}, []string{none, "2", none}), nil},
		{side([]string{"ann", "ben", none}, []string{none, "2", none}),
			map[string]LabelChange{"rater": {[]string{"ann", "", "ben"}, []string{"ann", "ben", ""}}}},
		{side([]string{"ann", "", "ben"}, []string{none, "2", "3"}), map[string]LabelChange{
			"rater": {[]string{"ann", "", "ben"}, []string{"ann", "", "ben"}}, "score": {[]string{"", "2", ""},
				[]string{"", "2", "3"}}}},
	} {
		d, changes := compared(t, older, test.newer)
		testkit.Same(t, "labels", test.want, changes["a"].Labels)
		if d.Changed != (test.want != nil) {
			t.Errorf("%+v", d)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	good := writeSide(t, diffSchema(), "", map[string][]dataset.Row{"train": {diffRow("a", "", nil)}}, nil)
	more := diffSchema()
	more.Categories = more.Categories[:1]
	mixed := writeSide(t, more, "", map[string][]dataset.Row{"test": {diffRow("b", "",
		func(r *dataset.Row) { r.Labels = r.Labels[:1] })}}, nil)
	testkit.OK(t, os.CopyFS(filepath.Join(mixed, "data", "more"), os.DirFS(filepath.Join(good, "data"))))
	for _, shard := range []string{"train-00000-of-00002.parquet", "train-00001-of-00002.parquet"} {
		testkit.OK(t, os.Rename(filepath.Join(mixed, "data", "more", shard), filepath.Join(mixed, "data", shard)))
	}
	empty := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(empty, "state.db"), nil, 0o600))
	bad := filepath.Join(t.TempDir(), "x.parquet")
	outcomes := filepath.Join(t.TempDir(), "x.csv")
	if err := errors.Join(os.WriteFile(bad, []byte("PAR1 but not whole"), 0o600),
		os.WriteFile(outcomes, []byte("id\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	long, broken := filepath.Join(t.TempDir(), "long.parquet"), filepath.Join(t.TempDir(), "broken.parquet")
	type idRow struct {
		ID string `parquet:"id"`
	}
	testkit.OK(t, parquet.WriteFile(long, []idRow{{strings.Repeat("a", maxRowID)}, {strings.Repeat("b", maxRowID+1)}}),
		parquet.WriteFile(broken, []idRow{{"a\xff"}}))
	type there struct {
		ID   string `parquet:"id"`
		A, B string
	}
	type here struct {
		ID   string `parquet:"id"`
		B, A string
	}
	turned := t.TempDir()
	testkit.OK(t, parquet.WriteFile(filepath.Join(turned, "a.parquet"), []there{{"a", "1", "2"}}),
		parquet.WriteFile(filepath.Join(turned, "b.parquet"), []here{{"b", "2", "1"}}))
	for name, want := range map[string]string{
		turned:                                "in another order",
		long:                                  "long.parquet:2: the id has 101 bytes, and at most 100 are taken\n  hint: rows",
		broken:                                "broken.parquet:1: the value of column \"id\" has a text that is not UTF-8\n  hint: mend",
		t.TempDir():                           "neither a workspace, a release nor Parquet files",
		filepath.Join(t.TempDir(), "nothing"): "no such file",
		empty:                                 "a workspace without a dataset",
		bad:                                   "not a Parquet file",
		outcomes:                              "x.csv",
		os.DevNull:                            "neither a file nor a folder",
		mixed:                                 "other columns",
	} {
		for _, sides := range [][2]string{{good, name}, {name, good}} {
			_, err := Compare(t.Context(), sides[0], sides[1], showsAll)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Compare(%s) = %v, want %q", sides, err, want)
			}
		}
	}
	// Rows whose like has come take no room any more.
	full := comparison{sides: [2]*side{{table: &table{}}, {table: &table{}}}, ids: map[string]known{},
		waiting: map[string]row{}, held: maxHeld - 1500}
	large := strings.Repeat("x", 700)
	testkit.OK(t, full.add(before, row{id: "a", text: large}), full.add(after, row{id: "a", text: large}),
		full.add(after, row{id: "b", text: large}))
	if err := full.add(before, row{id: "c", text: large}); err == nil || !strings.Contains(err.Error(), "too large") ||
		len(full.waiting) != 2 {
		t.Errorf("with %d rows waiting: %v", len(full.waiting), err)
	}
}
