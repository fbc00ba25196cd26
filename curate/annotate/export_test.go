package annotate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// keys are the images of the tests' workspace, those of a gallery among them. The last one is not kept, the one before
// has no image.
var keys = []manifest.Key{{ID: "aaaa"}, {ID: "bbbb"}, {ID: "bbbb", Image: 2}, {ID: "cccc"}, {ID: "dddd"}, {ID: "eeee"},
	{ID: "ffff"}}

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// body stands for the file of an image.
func body(key manifest.Key) []byte { return []byte("the image of " + key.String()) }

// newOrder is an order of the moods for the images of a workspace that a run has filled.
func newOrder(t *testing.T) Order {
	t.Helper()
	ctx, r := t.Context(), newRound(t)
	rows := "id,image\n"
	for _, key := range keys {
		rows += fmt.Sprintf("%s,%d\n", key.ID, key.Image)
	}
	r.write("ids.csv", rows)
	rel, err := manifest.Open(r.dir, manifest.Options{})
	testkit.OK(t, err)
	ws, err := workspace.Open(ctx, filepath.Join(t.TempDir(), "ws"), workspace.Options{})
	testkit.OK(t, err)
	t.Cleanup(func() { ws.Close() })
	testkit.OK(t, ws.Load(ctx, workspace.Binding{Release: rel.Name, ReleaseDigest: rel.Digest,
		ManifestDigest: rel.ManifestDigest, Splits: []string{"train"}}, rel.Entries(ctx), nil))
	var posts []workspace.Post
	var results []manifest.Result
	for i, key := range keys {
		img := workspace.Image{SHA256: state.SHA256(body(key)), Format: "png", Width: 300, Height: 300,
			Bytes: int64(len(body(key))), PHash: uint64(i) << 40, OriginalSHA256: state.SHA256([]byte(key.String())),
			PixelsSHA256: state.SHA256([]byte("pixels" + key.String()))}
		if key.ID != "eeee" {
			testkit.OK(t, ws.StoreImage(ctx, key, body(key), img), ws.SetReadings(ctx, workspace.NewReading{Key: key,
				Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "THE WHOLE OFFICE",
					Confidence: 95}}))
		}
		posts = append(posts, workspace.Post{ID: key.ID, State: manifest.StateLive, CheckedAt: now, LiveAt: now})
		outcome := manifest.Kept
		if key.ID >= "eeee" {
			outcome = manifest.Duplicate
		}
		results = append(results, manifest.Result{Key: key, Split: "train", Outcome: outcome})
	}
	posts = slices.CompactFunc(posts, func(a, b workspace.Post) bool { return a.ID == b.ID })
	testkit.OK(t, ws.SetPosts(ctx, posts), ws.SetResults(ctx, results))
	// The dataset, which a run writes last.
	note := state.ExportNote{Inputs: "x", Card: &dataset.Card{Name: rel.Name,
		Provenance: dataset.Provenance{Release: rel.Name,
			OCRParameters: "psm=3, names masked " + strconv.Itoa(language.MaskVersion)}}}
	sink := func(name string, write func(io.Writer) error) error {
		f, err := ws.Replace(ctx, path.Join(state.DatasetDir, name), write, nil)
		note.Files = append(note.Files, f)
		return err
	}
	split, err := dataset.WriteShards(sink, rel.Schema, note.Card.Provenance, false, "train", []int{5},
		state.Rows(ctx, ws, policy.Default(), "train"))
	note.Card.Splits = []dataset.Split{split}
	testkit.OK(t, err, state.WriteNote(ctx, ws, note))
	return Order{Config: copies.Config{Release: rel, Policy: policy.Default(), Workspace: ws,
		Now: func() time.Time { return now }, To: filepath.Join(t.TempDir(), "round one"), Note: "the raters"},
		Scheme: r.Scheme.Schema, Pick: Pick{Seed: "1"}, Overlap: 2}
}

// only picks the images of ids.
func only(keys ...manifest.Key) map[manifest.Key]string {
	picked := map[manifest.Key]string{}
	for _, key := range keys {
		picked[key] = ""
	}
	return picked
}

// TestPosts: of the kept images with a file those that are asked for are annotated, the images of a gallery one after
// the other, and whoever is taken away moves no others.
func TestPosts(t *testing.T) {
	o := newOrder(t)
	drawn := func(pick Pick) (all []string) {
		posts, _, err := Posts(t.Context(), o.Workspace, pick)
		testkit.OK(t, err)
		for _, p := range posts {
			all = append(all, p.Key.String())
			testkit.Same(t, "the image of "+p.Key.String(), state.SHA256(body(p.Key)), p.Image.SHA256)
		}
		return all
	}
	first := drawn(Pick{Seed: "1"})
	testkit.Same(t, "those that are kept and have an image", []string{"aaaa", "bbbb", "bbbb/2", "cccc", "dddd"},
		slices.Sorted(slices.Values(first)))
	testkit.Same(t, "the same again", first, drawn(Pick{Seed: "1"}))
	testkit.Same(t, "a gallery", slices.Index(first, "bbbb")+1, slices.Index(first, "bbbb/2"))
	fewer := drawn(Pick{Seed: "1", Only: only(keys[4], keys[2], keys[0])})
	testkit.Same(t, "fewer", slices.DeleteFunc(slices.Clone(first),
		func(id string) bool { return id == "bbbb" || id == "cccc" }), fewer)
	orders := map[string]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5"} {
		orders[strings.Join(drawn(Pick{Seed: seed}), " ")] = true
	}
	if len(orders) < 3 {
		t.Errorf("five seeds draw %v", orders)
	}
}

// TestAbsent: what is asked for and cannot be annotated is counted and named, up to a number.
func TestAbsent(t *testing.T) {
	o := newOrder(t)
	for _, test := range []struct {
		name string
		only map[manifest.Key]string
		want *Absent
	}{
		{"all", nil, nil},
		{"all that are asked for", only(keys[0], keys[2]), nil},
		{"some", only(keys[0], manifest.Key{ID: "eeee"}, manifest.Key{ID: "aaaa", Image: 2}, manifest.Key{ID: "zzzz"}),
			&Absent{Hidden: 1, HiddenOf: []string{"eeee"}, Unknown: 2, UnknownOf: []string{"aaaa/2", "zzzz"}}},
	} {
		_, absent, err := Posts(t.Context(), o.Workspace, Pick{Seed: "1", Only: test.only})
		testkit.OK(t, err)
		testkit.Same(t, test.name, test.want, absent)
	}
	many := make([]string, maxListed+1)
	testkit.Same(t, "many", "images of --only that are left out: 21 unknown to the release ("+
		strings.Repeat(", ", maxListed)+"...)", newAbsent(nil, many).String())
}

// TestNewPick: a table names what is asked for, and without one all is.
func TestNewPick(t *testing.T) {
	table := filepath.Join(t.TempDir(), "some.csv")
	testkit.OK(t, os.WriteFile(table, []byte("id,image\naaaa,0\nbbbb,2\n"), 0o600))
	for _, test := range []struct {
		name, table string
		want        []manifest.Key
		fails       bool
	}{
		{"all", "", nil, false},
		{"those of a table", table, []manifest.Key{{ID: "aaaa"}, {ID: "bbbb", Image: 2}}, false},
		{"a table that is not there", table + "x", nil, true},
	} {
		p, err := NewPick(t.Context(), "7", test.table)
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", test.name, err)
		}
		var got []manifest.Key
		for key := range p.Only {
			got = append(got, key)
		}
		slices.SortFunc(got, func(a, b manifest.Key) int { return strings.Compare(a.String(), b.String()) })
		testkit.Same(t, test.name, test.want, got)
		testkit.Same(t, test.name+": the seed", "7", p.Seed)
	}
}

// TestScheme: the labels to ask for are the file's, else the release's, and ones that nobody can be asked for are
// refused.
func TestScheme(t *testing.T) {
	r := newRound(t)
	file := filepath.Join(r.dir, "moods.toml")
	many := *r.Scheme
	many.Schema.Many = true
	for _, test := range []struct {
		name, file string
		of         *manifest.Release
		want       string // categories, or a part of the error
	}{
		{"of a file", file, r.Release, "mood tags"},
		{"of the release", "", r.Scheme, "mood tags"},
		{"of neither", "", r.Release, "the release has no labels to ask for"},
		{"a release with several rows an image", "", &many, "several rows of the release are about one image"},
		{"a file in place of such a release", file, &many, "mood tags"},
		{"a file that is not there", file + "x", r.Release, "--scheme: "},
	} {
		scheme, err := Scheme(test.file, test.of)
		got := fmt.Sprint(err)
		if err == nil {
			var names []string
			for _, c := range scheme.Schema.Categories {
				names = append(names, c.Name)
			}
			got = strings.Join(names, " ")
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestExport: a round has the images of its batches in the order of the draw, each with its batch and no answer, and is
// on record as a copy of exactly those.
func TestExport(t *testing.T) {
	for _, test := range []struct {
		name    string
		batches []int
		only    map[manifest.Key]string
		want    []string // the batch of each record
		left    int
	}{
		{"one batch of all", nil, nil, []string{"1", "1", "1", "1", "1"}, 0},
		{"two batches", []int{1, 2}, nil, []string{"1", "2", "2"}, 2},
		{"batches of all", []int{4, 1}, nil, []string{"1", "1", "1", "1", "2"}, 0},
		{"those that are asked for", nil, only(keys[0], keys[2]), []string{"1", "1"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOrder(t)
			o.Batches, o.Only = test.batches, test.only
			posts, _, err := Posts(t.Context(), o.Workspace, o.Pick)
			testkit.OK(t, err)
			sent, err := Export(t.Context(), o)
			testkit.OK(t, err)
			text, err := os.ReadFile(filepath.Join(o.To, dataset.RecordsName))
			testkit.OK(t, err)
			var got, want []dataset.Record
			testkit.OK(t, json.Unmarshal(text, &got))
			var rows []string
			for i, batch := range test.want {
				uri := "data:image/png;base64," + base64.StdEncoding.EncodeToString(body(posts[i].Key))
				want = append(want, dataset.Record{ID: posts[i].Key.String(),
					Fields: map[string]any{"image": map[string]any{"data": uri}}, Metadata: map[string]string{"batch": batch}})
				rows = append(rows, posts[i].Key.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			sizes := test.batches
			if sizes == nil {
				sizes = []int{len(want)}
			}
			testkit.Same(t, "the batches", sizes, sent.Batches)
			testkit.Same(t, "the questions", []string{"mood", "tags"}, sent.Questions)
			testkit.Same(t, "left out", test.left, sent.Left)
			testkit.Same(t, "the name in Argilla", datasetName("Set", "round one"), sent.Dataset)
			registered, err := o.Workspace.Copies(t.Context())
			testkit.OK(t, err)
			slices.Sort(rows)
			testkit.Same(t, "on record", rows, slices.Sorted(slices.Values(registered[0].Rows)))
			testkit.Same(t, "the format on record", string(dataset.Argilla), registered[0].Format)
			var named struct{ Name, Status string }
			text, err = os.ReadFile(filepath.Join(o.To, ".argilla", "dataset.json"))
			testkit.OK(t, err, json.Unmarshal(text, &named))
			testkit.Same(t, "dataset.json", sent.Dataset+" draft", named.Name+" "+named.Status)
			made, err := settingsOf(o.Scheme, "Set", 2)
			testkit.OK(t, err)
			var settings settings
			text, err = os.ReadFile(filepath.Join(o.To, ".argilla", "settings.json"))
			testkit.OK(t, err, json.Unmarshal(text, &settings))
			testkit.Same(t, "settings.json", made.Questions, settings.Questions)
		})
	}
}

// TestExportRefuses: an order that cannot be carried out makes no folder and no record, and says what is at fault.
func TestExportRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*testing.T, *Order)
		want   string
		misfit bool
	}{
		{"more images than there are", func(_ *testing.T, o *Order) { o.Batches = []int{3, 3} },
			"the batches take 6 images, and there are 5 to annotate", true},
		{"none of the images", func(_ *testing.T, o *Order) { o.Only = only() },
			"there is no image to annotate", true},
		{"none that can be shown", func(_ *testing.T, o *Order) {
			o.Only = only(manifest.Key{ID: "zzzz"}, manifest.Key{ID: "yyyy"}, keys[len(keys)-1])
		}, "there is no image to annotate; images of --only that are left out: " +
			"1 not in the dataset (" + keys[len(keys)-1].String() + "), 2 unknown to the release (yyyy, zzzz)", true},
		{"a question that Argilla refuses", func(_ *testing.T, o *Order) { o.Scheme.Categories[0].Name = "count" },
			"no question of Argilla may be called count", true},
		{"a folder that holds something", func(t *testing.T, o *Order) {
			testkit.OK(t, os.Mkdir(o.To, 0o700), os.WriteFile(filepath.Join(o.To, "mine"), nil, 0o600))
		}, "a copy needs a new or an empty folder", false},
		{"an image whose file is damaged", func(t *testing.T, o *Order) {
			name := filepath.Join(o.Workspace.Dir(), filepath.FromSlash(o.Workspace.ImageName(keys[0], "png")))
			testkit.OK(t, os.WriteFile(name, []byte("another one"), 0o600))
		}, "aaaa", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOrder(t)
			test.change(t, &o)
			_, err := Export(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if _, is := err.(Misfit); is != test.misfit {
				t.Errorf("a misfit: %t, of %v", is, err)
			}
			if _, err := os.Stat(filepath.Join(o.To, dataset.RecordsName)); err == nil {
				t.Error("there are records")
			}
		})
	}
}
