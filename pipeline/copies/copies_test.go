package copies

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// ids are the posts of the tests' dataset; the last is of the split test.
var ids = []manifest.PostID{"few001", "few002", "few003"}

// word is a text that only the row of a post has.
func word(id manifest.PostID) string { return "HIPPOPOTAMUS" + string(id) }

// digest stands for one of an image.
func digest(of string, id manifest.PostID) string { return state.SHA256([]byte(of + string(id))) }

// A site is a workspace with a dataset of three rows, and a folder for copies.
type site struct {
	*testing.T
	ws  *workspace.Workspace
	rel *manifest.Release
	dir string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir()}
	release := filepath.Join(t.TempDir(), "set")
	testkit.OK(t, os.Mkdir(release, 0o700))
	rows := "id,split,tone\n"
	for i, id := range ids {
		rows += string(id) + "," + []string{"train", "train", "test"}[i] + ",a\n"
	}
	testkit.OK(t, os.WriteFile(filepath.Join(release, "annotations.csv"), []byte(rows), 0o600),
		os.WriteFile(filepath.Join(release, "release.toml"), []byte("name = \"Set\"\nmanifest = \"annotations.csv\"\n"+
			"[[category]]\nname = \"tone\"\nkind = \"single\"\nlabels = [{code = \"a\"}, {code = \"b\"}]\n"), 0o600))
	var err error
	s.rel, err = manifest.Open(release, manifest.Options{})
	testkit.OK(t, err)
	s.ws = s.open()
	s.fill()
	return s
}

// open opens a new workspace.
func (s *site) open() *workspace.Workspace {
	s.Helper()
	ws, err := workspace.Open(s.Context(), filepath.Join(s.TempDir(), "ws"), workspace.Options{})
	testkit.OK(s, err)
	s.Cleanup(func() { ws.Close() })
	return ws
}

// fill does what a run does: entries, verdicts, images, texts, outcomes and the dataset.
func (s *site) fill() {
	s.Helper()
	ctx := s.Context()
	bind := workspace.Binding{Release: "Set", ReleaseDigest: s.rel.Digest, ManifestDigest: s.rel.ManifestDigest,
		Schema: s.rel.Schema,
		Splits: []string{"train", "test"}}
	testkit.OK(s, s.ws.Load(ctx, bind, s.rel.Entries(ctx), nil))
	var posts []workspace.Post
	var results []manifest.Result
	for i, id := range ids {
		key, img := manifest.Key{ID: id}, image.NewGray(image.Rect(0, 0, 40+i, 30))
		for p := range img.Pix {
			img.Pix[p] = uint8(p * (i + 3))
		}
		var b bytes.Buffer
		testkit.OK(s, png.Encode(&b, img))
		stored := workspace.Image{SHA256: state.SHA256(b.Bytes()), OriginalSHA256: digest("original", id),
			PixelsSHA256: digest("pixels", id), Format: "png", Limits: policy.Default().ImageLimits(),
			Width: 40 + i, Height: 30, Bytes: int64(b.Len()), PHash: uint64(i) << 40}
		testkit.OK(s, s.ws.StoreImage(ctx, key, b.Bytes(), stored), s.ws.SetReadings(ctx, workspace.NewReading{Key: key,
			Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: stored.SHA256,
				Text: word(id) + " MADE THE WHOLE OFFICE LAUGH", Confidence: 95}}))
		posts = append(posts, workspace.Post{ID: id, State: manifest.StateLive, CheckedAt: now, LiveAt: now})
		results = append(results, manifest.Result{Key: key, Split: bind.Splits[i/2], Outcome: manifest.Kept})
	}
	testkit.OK(s, s.ws.SetPosts(ctx, posts), s.ws.SetResults(ctx, results))
	s.export(bind)
}

// export writes the dataset as a run does.
func (s *site) export(bind workspace.Binding) {
	s.Helper()
	ctx, note := s.Context(), state.ExportNote{Inputs: "x"}
	sink := func(name string, write func(io.Writer) error) error {
		f, err := s.ws.Replace(ctx, path.Join(state.DatasetDir, name), write, nil)
		note.Files = append(note.Files, f)
		return err
	}
	card := dataset.Card{Name: "Set", Schema: bind.Schema, Provenance: dataset.Provenance{Release: "Set",
		OCRParameters: "psm=3, names masked " + strconv.Itoa(language.MaskVersion)}}
	kept := map[string]int{}
	for rec, err := range s.ws.Records(ctx, workspace.Select{}) {
		testkit.OK(s, err)
		if rec.Result.Outcome == manifest.Kept {
			kept[rec.Result.Split]++
		}
	}
	for _, split := range bind.Splits {
		written, err := dataset.WriteShards(sink, bind.Schema, card.Provenance, false, split, []int{kept[split]},
			state.Rows(ctx, s.ws, policy.Default(), split))
		testkit.OK(s, err)
		card.Splits = append(card.Splits, written)
	}
	note.Card = &card
	testkit.OK(s, sink("README.md", func(w io.Writer) error { return dataset.WriteCard(w, card) }),
		sink("croissant.json", func(w io.Writer) error { return dataset.WriteCroissant(w, card) }),
		state.WriteNote(ctx, s.ws, note))
}

// showsSame has the image of one post be the one of another, as the record has it.
func (s *site) showsSame(id, other manifest.PostID) {
	s.Helper()
	ctx := s.Context()
	for rec, err := range s.ws.Records(ctx, workspace.Select{IDs: []manifest.PostID{id}}) {
		testkit.OK(s, err)
		img := *rec.Image
		body, err := s.ws.ReadImage(ctx, rec.Key, img)
		img.OriginalSHA256 = digest("original", other)
		testkit.OK(s, err, s.ws.StoreImage(ctx, rec.Key, body, img),
			s.ws.SetReadings(ctx, workspace.NewReading{Key: rec.Key, Reading: *rec.Reading}),
			s.ws.SetPosts(ctx, []workspace.Post{{ID: id, State: manifest.StateLive, CheckedAt: now, LiveAt: now}}))
	}
}

// config is an export of the dataset to a folder of the site.
func (s *site) config(name, format string) Config {
	return Config{Release: s.rel, Policy: policy.Default(), Workspace: s.ws, Now: func() time.Time { return now },
		To:   filepath.Join(s.dir, name),
		Note: "the lab", Format: format}
}

// copy exports the dataset.
func (s *site) copy(name, format string) state.CopyReport {
	s.Helper()
	report, err := Export(s.Context(), s.config(name, format))
	testkit.OK(s, err)
	return report
}

// gone has posts removed, as Reddit says.
func (s *site) gone(posts ...manifest.PostID) state.GoneSet {
	s.Helper()
	set := state.GoneSet{Posts: map[manifest.PostID]state.GonePost{}}
	for _, id := range posts {
		set.Posts[id] = state.GonePost{ID: id, State: manifest.StateRemoved}
		testkit.OK(s, s.ws.SetPosts(s.Context(), []workspace.Post{{ID: id, State: manifest.StateRemoved,
			Reason: "moderator", CheckedAt: now}}))
	}
	return set
}

// purge purges all copies, and returns the report on the one of a name.
func (s *site) purge(name string, gone state.GoneSet) state.CopyReport {
	s.Helper()
	reports, err := purge(s.Context(), s.ws, gone)
	testkit.OK(s, err)
	return find(s.T, reports, filepath.Join(s.dir, name))
}

func find(t *testing.T, reports []state.CopyReport, path string) state.CopyReport {
	t.Helper()
	at := slices.IndexFunc(reports, func(r state.CopyReport) bool { return r.Path == path })
	if at < 0 {
		t.Fatalf("no report on %s in %+v", path, reports)
	}
	return reports[at]
}

// list is what List says of the copy of a name.
func (s *site) list(name string) state.CopyReport {
	s.Helper()
	reports, err := List(s.Context(), s.ws)
	testkit.OK(s, err)
	return find(s.T, reports, filepath.Join(s.dir, name))
}

// record is what the workspace knows of a copy.
func (s *site) record(name string) workspace.Copy {
	s.Helper()
	all, err := s.ws.Copies(s.Context())
	testkit.OK(s, err)
	for _, c := range all {
		if c.Path == filepath.Join(s.dir, name) {
			return c
		}
	}
	s.Fatalf("no record of %s", name)
	return workspace.Copy{}
}

// events are the log's records of copies since the first.
func (s *site) events(kinds ...auditlog.Kind) (all []auditlog.Event) {
	s.Helper()
	waiting, err := s.ws.Unpublished(s.Context())
	testkit.OK(s, err)
	if log, err := s.ws.LogReader(s.Context()); err == nil { // there is none before the first records are published
		for e, err := range log.Records(s.Context(), 0) {
			testkit.OK(s, err)
			all = append(all, e)
		}
	}
	return slices.DeleteFunc(append(all, waiting...),
		func(e auditlog.Event) bool { return !slices.Contains(kinds, e.Kind) })
}

// holds reports which posts a folder still shows, in a name or in what its files hold.
func (s *site) holds(name string) (shown []manifest.PostID) {
	s.Helper()
	var all bytes.Buffer
	testkit.OK(s, filepath.WalkDir(filepath.Join(s.dir, name), func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		all.WriteString(file + "\n")
		if filepath.Ext(file) == ".parquet" {
			f, err := os.Open(file)
			testkit.OK(s, err)
			defer f.Close()
			info, err := f.Stat()
			testkit.OK(s, err)
			for id, err := range dataset.RowIDs(s.Context(), file, f, info.Size()) {
				testkit.OK(s, err)
				all.WriteString(id + "\n")
			}
			return nil
		}
		body, err := os.ReadFile(file)
		all.Write(body)
		return err
	}))
	for _, id := range ids {
		if strings.Contains(all.String(), string(id)) {
			shown = append(shown, id)
		}
	}
	return shown
}

// purge is Purge where no tombstone is of a picture.
func purge(ctx context.Context, ws *workspace.Workspace, erased state.GoneSet) ([]state.CopyReport, error) {
	return Purge(ctx, ws, erased, nil, policy.Default())
}
