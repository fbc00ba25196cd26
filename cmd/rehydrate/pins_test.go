package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/redditemu"
	"rehydrate/policy"
)

var update = flag.Bool("update", false,
	"write the outputs of now to testdata/pins.txtar, or to the pages of docs that have sessions")

const pinsFile = "testdata/pins.txtar"

// TestPins holds what may not change unnoticed, against testdata/pins.txtar: digests of every kind of file that is
// published, and the members of what every command prints with --json, which programs read.
// (go test -run '^TestPins$' ./cmd/rehydrate -update)
// The pictures are drawn here, the text is that of the fake ocr program, the clock stands still within a command.
func TestPins(t *testing.T) {
	t.Parallel()
	p := &pins{t: t, clock: time.Date(2033, 6, 1, 12, 0, 0, 0, time.UTC), seen: map[string]bool{},
		texts: map[string]string{}}
	dropped := p.site("drop", pinnedPosts(), quick("mass_removal_share = 1.0"))
	flagged := p.site("flag", pinnedPosts(),
		quick("mass_removal_share = 1.0")+"\n[filter]\nmode = \"flag\"\n[dedupe]\nguard = true\n")
	galleries := p.site("galleries", pinnedGalleries(), quick("mass_removal_share = 1.0"))
	for _, s := range []*site{dropped, flagged, galleries} {
		p.run(s)
	}
	p.read(dropped, flagged)
	p.labels(dropped)
	p.copies(galleries)
	p.signed(dropped)
	p.purge(galleries)
	p.machine()
	p.study(dropped)
	p.again(galleries) // last, because every command moves the clock

	var leaves []string
	for _, cmd := range allCommands() {
		if cmd.Runnable() && !p.noJSON(cmd) && !p.seen[cmd.CommandPath()] {
			leaves = append(leaves, cmd.CommandPath())
		}
	}
	if len(leaves) > 0 {
		t.Errorf("no --json output of these commands is pinned: %q", leaves)
	}
	if *update {
		var a txtar.Archive
		for _, name := range slices.Sorted(maps.Keys(p.texts)) {
			a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(p.texts[name])})
		}
		check(t, os.WriteFile(pinsFile, txtar.Format(&a), 0o644))
	}
	a, err := txtar.ParseFile(pinsFile)
	check(t, err)
	want := map[string]string{}
	for _, f := range a.Files {
		want[f.Name] = string(f.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if diff := cmp.Diff(strings.Split(want[name], "\n"), strings.Split(p.texts[name], "\n")); diff != "" {
			t.Errorf("%s (-pinned +now):\n%s", name, diff)
		}
	}
	for name := range p.texts {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not pinned yet", name)
		}
	}
}

// noJSON reports whether a command has nothing to say in JSON: it only groups others, or writes pages or scripts.
func (p *pins) noJSON(cmd *cobra.Command) bool {
	path := cmd.CommandPath()
	return cmd.HasSubCommands() || path == "rehydrate man" || path == "rehydrate help" ||
		strings.HasPrefix(path, "rehydrate completion")
}

// pins collects outputs by name.
type pins struct {
	t     *testing.T
	clock time.Time
	seen  map[string]bool // paths of commands
	sites []*site
	texts map[string]string
}

// pinnedPosts are posts in every state, with near-duplicates, and texts that the filters drop.
func pinnedPosts() []redditemu.Post {
	one := func(img redditemu.Image) redditemu.Post { return redditemu.Post{Images: []redditemu.Image{img}} }
	commented := sketch(1, 2, 0, "jpg")
	commented.Body = slices.Concat(commented.Body[:2], []byte("\xff\xfe\x00\x0asecrets!"), commented.Body[2:])
	posts := []redditemu.Post{
		one(sketch(0, 1, 0, "png")),
		one(commented),
		one(sketch(0, 1, 4, "jpg")), // as the first, recompressed
		one(sketch(7, 1, 0, "png")), // as the first, in other words
		one(sketch(2, 3, 0, "gif")),
		one(sketch(3, 4, 0, "png")), // no text
		one(sketch(3, 4, 2, "jpg")), // the same, recompressed
		one(sketch(4, 5, 0, "png")), // not English
		one(sketch(5, 6, 0, "jpg")), // names to mask
		one(sketch(6, 7, 0, "png")), // hardly readable
		{Condition: redditemu.Removed},
		{Condition: redditemu.Deleted},
		{Condition: redditemu.AbsentBanned},
		{Condition: redditemu.Quarantined},
		{Kind: redditemu.KindSelf},
		{Kind: redditemu.KindLink, Link: "https://example.com/picture.jpg"},
		one(redditemu.Image{Serve: redditemu.ServeNotFound}),
		one(redditemu.Image{Serve: redditemu.ServePlaceholder}),
		one(redditemu.Image{Body: []byte("this is not a picture"), Ext: "jpg"}),
		{Kind: redditemu.KindCrosspost, Images: []redditemu.Image{sketch(8, 9, 0, "png")}},
		{Kind: redditemu.KindImgur, Images: []redditemu.Image{sketch(1, 10, 0, "png")}},
		{Kind: redditemu.KindVideo},
	}
	for i := range posts {
		posts[i].ID = manifest.PostID(fmt.Sprintf("pin%02d", i))
	}
	return posts
}

// pinnedGalleries are galleries that share images with one another, within themselves, and with a post.
func pinnedGalleries() []redditemu.Post {
	gallery := func(images ...redditemu.Image) redditemu.Post {
		return redditemu.Post{Kind: redditemu.KindGallery, Images: images}
	}
	posts := []redditemu.Post{
		gallery(sketch(0, 1, 0, "png"), sketch(1, 2, 0, "jpg"), sketch(0, 1, 3, "png")),
		gallery(sketch(2, 3, 0, "png"), redditemu.Image{Status: "failed"}, sketch(1, 2, 5, "png")),
		{Images: []redditemu.Image{sketch(2, 3, 6, "jpg")}},
		gallery(sketch(8, 4, 0, "png")),
		{Images: []redditemu.Image{sketch(5, 8, 0, "png")}},
	}
	for i := range posts {
		posts[i].ID = manifest.PostID(fmt.Sprintf("gal%02d", i))
	}
	return posts
}

// site makes a site of the posts, whose labels go round.
func (p *pins) site(name string, posts []redditemu.Post, pol string) *site {
	p.t.Helper()
	var rows strings.Builder
	rows.WriteString("id,image,split,figurative,severity,related_content,modality,context\n")
	n := 0
	for _, post := range posts {
		for i := range max(len(post.Images), 1) {
			fmt.Fprintf(&rows, "%s,%d,%s,%s,SS%d,SR%d,M%d,C%d\n", post.ID, i,
				[]string{"train", "validation", "train", "test", "train"}[n%5],
				[]string{"F1", "F1|F3", "F4", "F2"}[n%4], 1+n%6, 1+n%5, 1+n%3, 1+n%2)
			n++
		}
	}
	s := newSite(p.t, rows.String(), pol, posts...)
	s.write(filepath.Join(s.release, "release.toml"),
		strings.Replace(demoRelease, `"Demo"`, `"Pins `+name+`"`, 1)+pin(testSigner(p.t, "rehydrate test signer")))
	s.now, s.reader = func() time.Time { return p.clock }, fakeOCRPath(p.t)
	p.sites = append(p.sites, s)
	return s
}

// json runs a command and keeps the shape of what it prints with --json under a name: the members of its objects.
func (p *pins) json(s *site, name string, want int, args ...string) {
	p.t.Helper()
	p.clock = p.clock.Add(time.Minute)
	f := s.do(s.env(), append(args, "--json")...)
	f.want(p.t, want)
	cmd, _, err := (&command{}).root().Find(args)
	check(p.t, err)
	p.seen[cmd.CommandPath()] = true
	members := map[string]map[string]string{}
	shape(members, ".", oneObject(p.t, f))
	var b strings.Builder
	for _, at := range slices.Sorted(maps.Keys(members)) {
		var kinds []string
		for _, name := range slices.Sorted(maps.Keys(members[at])) {
			kinds = append(kinds, name+" "+members[at][name])
		}
		fmt.Fprintf(&b, "%s: %s\n", at, strings.Join(kinds, ", "))
	}
	p.texts["json/"+name] = b.String()
}

// shape adds the members of all objects in v, and the kinds of what they hold, to those of the objects at the same
// place: "files[].id".
func shape(members map[string]map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if members[at] == nil {
			members[at] = map[string]string{}
		}
		for name, x := range v {
			kinds := strings.Split(members[at][name]+"/"+kindOf(x), "/")
			slices.Sort(kinds)
			members[at][name] = strings.TrimPrefix(strings.Join(slices.Compact(kinds), "/"), "/")
			shape(members, strings.TrimPrefix(at+"."+name, ".."), x)
		}
	case []any:
		for _, x := range v {
			shape(members, at+"[]", x)
		}
	}
}

// kindOf names the kind of a value of JSON.
func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case bool:
		return "bool"
	case nil:
		return "null"
	case string:
		return "text"
	}
	return "number"
}

// files keeps the digests of all files below a folder.
func (p *pins) files(name, root string) {
	p.t.Helper()
	var b strings.Builder
	files := tree(p.t, root)
	if len(files) == 0 {
		p.t.Errorf("%s holds no file", root)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, ".html") {
			continue // a page for people, which names the folder it was made of
		}
		fmt.Fprintf(&b, "%x %s\n", sha256.Sum256([]byte(files[file])), file)
	}
	p.texts[name] = b.String()
}

// run rehydrates a site and keeps all that is published of it.
func (p *pins) run(s *site) {
	name := fmt.Sprint(slices.Index(p.sites, s))
	p.json(s, "run-"+name, exitDone, s.args()...)
	p.files("dataset-"+name, filepath.Join(s.workspace, "dataset"))
	p.files("images-"+name, filepath.Join(s.workspace, "images"))
	p.texts["outcomes-"+name] = fmt.Sprintf("%x outcomes.csv\n",
		sha256.Sum256([]byte(read(p.t, filepath.Join(s.workspace, "outcomes.csv")))))
	p.json(s, "status-"+name, exitDone, "status", "-w", s.workspace)
}

// read keeps what the commands say that write nothing into a workspace, or only a report.
func (p *pins) read(s, flagged *site) {
	t, w := p.t, s.workspace
	for _, id := range []string{"pin00", "pin02", "pin08", "pin10"} {
		p.json(s, "explain-"+id, exitDone, "explain", id, "-w", w)
	}
	p.json(s, "report", exitDone, "report", "-w", w)
	p.json(s, "verify", exitDone, "verify", "-w", w)
	p.json(s, "audit-offline", exitDone, "audit", s.release, "--offline", "-w", w)
	p.json(s, "audit", exitDone, "audit", s.release, "-w", w, "--approval", "TEST-1", "--connect-to",
		s.emulator.ConnectTo(), "--cacert", s.cacert, "--no-record")
	p.json(s, "diff-dataset", exitDone, "diff", w, flagged.workspace)
	p.json(s, "diff-outcomes", exitDone, "diff", filepath.Join(w, "outcomes.csv"),
		filepath.Join(flagged.workspace, "outcomes.csv"))
	near := filepath.Join(t.TempDir(), "near")
	p.json(s, "dedupe-folder", exitDone, "dedupe", filepath.Join(w, "images"), "--out", near, "--image-only")
	p.files("dedupe-folder", near)
	p.json(s, "ocr-plan", exitDone, "ocr", s.release, "-w", w, "--ocr", s.reader, "--dry-run")
	p.json(s, "ocr", exitDone, "ocr", s.release, "-w", w, "--ocr", s.reader, "--force")
	p.json(s, "init", exitDone, "init", filepath.Join(filepath.Dir(s.release), "another"), "--manifest",
		filepath.Join(s.release, "annotations.csv"))
	p.json(s, "refused", exitRejected, "run", s.release, "-w", w)
	demo := p.site("demo", nil, quick(""))
	demo.write(filepath.Join(demo.release, "annotations.csv"), fewAnnotations(fewPosts(4)))
	p.json(demo, "demo", exitDone, "demo", "--release", demo.release, "-w", demo.workspace, "--ocr", s.reader)
}

// labels keeps what the commands about labels compute.
func (p *pins) labels(s *site) {
	t := p.t
	file := filepath.Join(s.release, "annotations.csv")
	other := filepath.Join(t.TempDir(), "second.csv")
	text := strings.NewReplacer("SS2", "SS3", "F2", "F1", "SR4", "SR5").Replace(read(t, file))
	s.write(other, text)
	p.json(s, "labels-stats", exitDone, "labels", "stats", s.release)
	p.json(s, "labels-stats-dataset", exitDone, "labels", "stats", filepath.Join(s.workspace, "dataset"))
	p.json(s, "labels-split", exitDone, "labels", "split", s.release)
	p.json(s, "labels-agreement", exitDone, "labels", "agreement", file, other, "--release", s.release)
	merged := filepath.Join(t.TempDir(), "merged.jsonl")
	p.json(s, "annotate-merge", exitRetry, "annotate", "merge", file, other, "--release", s.release, "--out", merged)
	p.json(s, "labels-score", exitDone, "labels", "score", other, "--release", s.release, "--split", "all")
}

// study keeps what is computed of numbers and scores.
func (p *pins) study(s *site) {
	numbers := filepath.Join(p.t.TempDir(), "numbers.csv")
	rows, answers := "id,width\n", ""
	for i, line := range strings.Split(strings.TrimSpace(read(p.t, filepath.Join(s.release, "annotations.csv"))),
		"\n")[1:] {
		id, _, _ := strings.Cut(line, ",")
		rows += fmt.Sprintf("%s,%d\n", id, i*i%7)
		answers += fmt.Sprintf(`{"id":%q,"categories":{"self-harm":%t},"severities":{"SelfHarm":%d}}`+"\n", id, i%2 == 0,
			i%5)
	}
	s.write(numbers, rows)
	scores := filepath.Join(p.t.TempDir(), "scores.jsonl")
	s.write(scores, answers)
	p.json(s, "labels-groups", exitDone, "labels", "groups", numbers, "--release", s.release)
	p.json(s, "features", exitDone, "features", "-w", s.workspace, "--no-faces", "--note", "a colleague", "-o",
		filepath.Join(p.t.TempDir(), "numbers"))
	model := modelserver.New(p.t, "vllm")
	model.Answer = func(modelserver.Request) string { return `{"severity": "Suicide ideation"}` }
	p.json(s, "classify", exitDone, "classify", "-w", s.workspace, "--endpoint", model.URL, "--model", "m", "--split",
		"all", "--note", "a colleague",
		"--price-in", "1", "--price-out", "2", "-o", filepath.Join(filepath.Dir(s.release), "answers"))
	model = modelserver.New(p.t, "openai")
	model.Answer = func(modelserver.Request) string { return `{"self-harm": 0.75}` }
	p.json(s, "moderate", exitDone, "moderate", "-w", s.workspace, "--endpoint", model.URL, "--model", "m", "--note",
		"a colleague", "-o", filepath.Join(p.t.TempDir(), "scores"))
	p.json(s, "labels-weights", exitDone, "labels", "weights", s.release, "--split", "all")
	going := s.stop
	s.stop = make(chan struct{})
	close(s.stop)
	p.json(s, "annotate-review", exitDone, "annotate", "review", "-w", s.workspace, "--answers",
		filepath.Join(filepath.Dir(s.release), "answers"))
	s.stop = going
	p.json(s, "select", exitDone, "select", "--after", "-w", s.workspace, "--n", "2", "-o",
		filepath.Join(p.t.TempDir(), "chosen"))
	published := filepath.Join(p.t.TempDir(), "published")
	p.json(s, "publish-review", exitUsage, "publish", s.release, "-w", s.workspace, "--digests", "--out", published)
	p.json(s, "publish", exitDone, "publish", s.release, "-w", s.workspace, "--digests", "--out", published, "--checked")
	p.files("published", published)
	p.json(s, "labels-moderation", exitDone, "labels", "moderation", scores, "--release", s.release)
}

// copies keeps copies in every format.
func (p *pins) copies(s *site) {
	folder, near := filepath.Join(filepath.Dir(s.release), "copies"), filepath.Join(p.t.TempDir(), "near")
	check(p.t, os.Mkdir(folder, 0o700))
	for _, format := range copies.Formats() {
		to := filepath.Join(folder, format)
		p.json(s, "export-"+format, exitDone, "export", s.release, "-w", s.workspace, "--out", to, "--format", format,
			"--note", "a test")
		p.files("copy-"+format, to)
	}
	p.json(s, "annotate-export", exitDone, "annotate", "export", s.release, "-w", s.workspace, "--out",
		filepath.Join(folder, "argilla"), "--batches", "1,2")
	p.files("copy-argilla", filepath.Join(folder, "argilla"))
	p.json(s, "export-list", exitDone, "export", "--list", "-w", s.workspace)
	p.json(s, "dedupe-parquet", exitDone, "dedupe",
		filepath.Join(s.workspace, "dataset", "data", "train-00000-of-00001.parquet"), "--out", near)
	p.files("dedupe-parquet", near)
}

// purge takes posts down, at Reddit and by request, and keeps what becomes of the copies.
func (p *pins) purge(s *site) {
	s.update("gal01", func(post *redditemu.Post) { post.Condition = redditemu.Removed })
	p.json(s, "purge-plan", exitDone, "purge", s.release, "-w", s.workspace, "--dry-run", "--id", "gal03")
	p.json(s, "purge", exitDone, "purge", s.release, "-w", s.workspace, "--id", "gal03", "--approval", "TEST-1",
		"--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert)
	p.files("dataset-purged", filepath.Join(s.workspace, "dataset"))
	p.files("copies-purged", filepath.Join(filepath.Dir(s.release), "copies"))
	p.json(s, "status-purged", exitDone, "status", "-w", s.workspace)
	p.json(s, "tombstones-show", exitDone, "tombstones", "show", "-w", s.workspace)
	p.json(s, "tombstones-export", exitDone, "tombstones", "export", "--out",
		filepath.Join(filepath.Dir(s.release), "tombstones.csv"), "-w", s.workspace)
	statement := filepath.Join(filepath.Dir(s.release), "lift.json")
	s.signed(statement, policy.LiftNamespace, liftText(p.t, s.release, p.clock.Format(time.RFC3339),
		s.named("gal00@2033-01-01T00:00:00Z", "gal03")...))
	p.json(s, "tombstones-lift", exitDone, "tombstones", "lift", s.release, "--statement", statement, "-w", s.workspace)
	p.json(s, "cluster-split", exitDone, s.job("cluster split", "--shards", "1")...)
	p.json(s, "cluster-work", exitDone, "cluster", "work", "--shard", "0/1", "-w", s.workspace, "--ocr", s.reader)
	p.json(s, "cluster-merge", exitDone, s.job("cluster merge")...)
	p.files("dataset-lifted", filepath.Join(s.workspace, "dataset"))
	p.json(s, "audit-purged", exitDone, "audit", s.release, "--offline", "-w", s.workspace, "--no-record")
}

// again rechecks a dataset, and makes it as a cluster does.
func (p *pins) again(s *site) {
	p.json(s, "recheck", exitDone, s.job("recheck")...)
	p.json(s, "cluster-run", exitDone, s.job("cluster run", "--engine", "local", "--shards", "1", "--ocr", s.reader)...)
}

// signed shows and checks a grant.
func (p *pins) signed(s *site) {
	at := func(d time.Duration) string { return p.clock.Add(d).Format(time.RFC3339) }
	s.signed(s.grantPath(), policy.GrantNamespace, grantText(p.t, s.release, func(g map[string]any) {
		g["asserted"], g["not_before"], g["expires"] = at(-time.Hour), at(-time.Hour), at(24*time.Hour)
		g["platform_approval"].(map[string]any)["expires"] = at(48 * time.Hour)
	}))
	p.json(s, "grant-show", exitDone, "grant", "show", s.grantPath())
	p.json(s, "grant-check", exitDone, "grant", "check", s.release)
}

// machine keeps the shape of what is said of this machine.
func (p *pins) machine() {
	s := p.sites[0]
	p.json(s, "version", exitDone, "version")
	p.json(s, "doctor", exitDone, "doctor", s.release, "-w", s.workspace)
}
