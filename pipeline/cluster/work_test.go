package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rehydrate/dedupe"
	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A reader is an engine that reads the width of a picture. It fails on those of failing, and calls during as it begins.
type reader struct {
	name    string
	failing map[int]error
	during  func()

	mu    sync.Mutex
	reads int
}

func (r *reader) Engine() ocr.Engine { return ocr.Engine{Name: r.name, Model: "eng"} }

func (r *reader) Read(_ context.Context, img image.Image) (layout.Reading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if r.during != nil {
		r.during()
	}
	width := img.Bounds().Dx()
	text := fmt.Sprint("width ", width)
	words := []word.Word{{Text: text, Confidence: 90, W: 8, H: 8, Accepted: true}}
	return layout.Reading{Text: text, Confidence: 90, Words: words}, r.failing[width]
}

// posts are those of the tests' workspace: of the first there are two images, the fourth is not live, the fifth has no
// image, the sixth has a tombstone. The widths of their pictures are 200, 201 and so on.
var posts = []manifest.Key{{ID: "few001"}, {ID: "few001", Image: 1}, {ID: "few002"}, {ID: "few003"}, {ID: "few004"},
	{ID: "few005"}, {ID: "few006"}}

// A fleet is a workspace of posts that is read in shards.
type fleet struct {
	*testing.T
	ws     *workspace.Workspace
	engine *reader
	plan   Plan
	stones state.Holding
}

func newFleet(t *testing.T, shards int) *fleet {
	t.Helper()
	f, now := &fleet{T: t, ws: openWorkspace(t), engine: &reader{name: "fake"}, plan: thePlan(),
		stones: state.Holding{"few006": {}}}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.plan.Shards = shards
	testkit.OK(t, f.ws.Load(t.Context(), workspace.Binding{Release: "x", ReleaseDigest: "r", ManifestDigest: "m",
		Splits: []string{"train"}}, func(yield func(manifest.Entry, error) bool) {
		for i, key := range posts {
			if !yield(manifest.Entry{Ordinal: i, Key: key, Split: "train"}, nil) {
				return
			}
		}
	}, nil))
	var stored []workspace.Post
	for i, key := range posts {
		post := workspace.Post{ID: key.ID, State: manifest.StateLive, CheckedAt: now, LiveAt: now}
		if key.ID == "few004" {
			post.State, post.Reason = manifest.StateRemoved, "moderator"
		}
		if key.ID != "few005" {
			var b bytes.Buffer
			testkit.OK(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 200+i, 200))))
			testkit.OK(t, f.ws.StoreImage(t.Context(), key, b.Bytes(), workspace.Image{SHA256: state.SHA256(b.Bytes()),
				OriginalSHA256: state.SHA256(b.Bytes()), PixelsSHA256: state.SHA256(b.Bytes()), Format: "png",
				Width: 200 + i, Height: 200, Bytes: int64(b.Len()), HashKind: dedupe.HashKind()}))
		}
		stored = append(stored, post)
	}
	testkit.OK(t, f.ws.SetPosts(t.Context(), slices.CompactFunc(stored,
		func(a, b workspace.Post) bool { return a.ID == b.ID })))
	return f
}

func (f *fleet) split() (items int) {
	f.Helper()
	items, err := Split(f.Context(), f.ws, f.plan, f.stones)
	testkit.OK(f, err)
	return items
}

func (f *fleet) job(shard int) Job {
	return Job{Workspace: f.ws.Dir(), Shard: shard, Shards: f.plan.Shards, Tool: f.plan.Tool, OCR: f.engine, Workers: 2,
		Progress: func(int, int) {}}
}

// results are what a shard read, each as id, width and text, or why it failed.
func (f *fleet) results(shard int) (all []string) {
	f.Helper()
	for r, err := range Results(f.ws, shard) {
		testkit.OK(f, err)
		line := fmt.Sprint(r.Key(), ": ", r.Reading.Text)
		for _, trouble := range []*workspace.Trouble{r.Fault, r.Reading.Failed} {
			if trouble != nil {
				line = fmt.Sprint(r.Key(), " ", trouble.Outcome, " ", trouble.Reason)
			}
		}
		all = append(all, line)
	}
	return all
}

// image is the file of an image.
func (f *fleet) image(key manifest.Key) string {
	return filepath.Join(f.ws.Dir(), f.ws.ImageName(key, "png"))
}

// TestWork: what is split, read and merged is every image of a live post, once, in the order of the manifest, and what
// the same engine has read before is not read again.
func TestWork(t *testing.T) {
	current := reading.New(&reader{name: "fake"}, policy.Default()).Fingerprint
	all := []string{"few001: width 200", "few001/1: width 201", "few002: width 202", "few003: width 203"}
	for _, test := range []struct {
		name   string
		change func(f *fleet)
		want   []string
		counts string // read, current, failed
	}{
		{"all of it", func(*fleet) {}, all, "4 0 0"},
		{"one that this engine read", func(f *fleet) { f.readBefore(posts[2], current, false) },
			slices.Delete(slices.Clone(all), 2, 3),
			"3 1 0"},
		{"one that another engine read", func(f *fleet) { f.readBefore(posts[2], "other", false) }, all, "4 0 0"},
		{"one that this engine could not read", func(f *fleet) { f.readBefore(posts[2], current, true) }, all, "4 0 0"},
		{"one that it fails at", func(f *fleet) {
			f.engine.failing = map[int]error{202: &ocr.Failure{Reason: ocr.ReasonTimeout, Detail: "slow"}}
		}, []string{all[0], all[1], "few002 failed " + string(ocr.ReasonTimeout), all[3]}, "3 0 1"},
		{"a file that is gone", func(f *fleet) { testkit.OK(f, os.Remove(f.image(posts[0]))) },
			[]string{"few001 failed damaged_file", all[1], all[2], all[3]}, "3 0 1"},
		{"another file in its place", func(f *fleet) {
			body, err := os.ReadFile(f.image(posts[3]))
			testkit.OK(f, err, os.WriteFile(f.image(posts[0]), body, 0o600))
		}, []string{"few001 failed damaged_file", all[1], all[2], all[3]}, "3 0 1"},
		{"an image that the policy does not allow", func(f *fleet) { f.plan.Policy.Images.MaxSide = 202 },
			[]string{all[0], all[1], all[2], "few003 invalid side_too_long"}, "3 0 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFleet(t, 1)
			test.change(f)
			testkit.Same(t, "items", 4, f.split())
			j, calls := f.job(0), []int{}
			j.Progress = func(done, items int) { calls = append(calls, done, items) }
			side, err := Work(t.Context(), j)
			testkit.OK(t, err)
			testkit.Same(t, "read, current, failed", test.counts, fmt.Sprint(side.Read, side.Current, side.Failed))
			testkit.Same(t, "the progress", []int{1, 4, 2, 4, 3, 4, 4, 4}, calls)
			engine, shards, err := Check(f.ws, f.plan)
			testkit.Same(t, "the engine", "fake", engine.Name, err)
			testkit.Same(t, "the shards", 1, shards)
			testkit.Same(t, "results", test.want, f.results(0))
			names, err := f.ws.Files(t.Context(), state.ShardsDir)
			testkit.Same(t, "files", []string{"shards/plan.json", "shards/result-00000.json", "shards/result-00000.jsonl",
				"shards/work-00000.jsonl"}, names, err)
		})
	}
}

// readBefore stores a reading of an image.
func (f *fleet) readBefore(key manifest.Key, fingerprint string, failed bool) {
	body, err := os.ReadFile(f.image(key))
	r := workspace.Reading{Fingerprint: fingerprint, ImageSHA256: state.SHA256(body), Text: "before"}
	if failed {
		r.Text, r.Failed = "", &workspace.Trouble{Outcome: manifest.Failed, Reason: "timeout"}
	}
	testkit.OK(f, err, f.ws.SetReadings(f.Context(), workspace.NewReading{Key: key, Reading: r}))
}

// TestWorkAgain: a shard that is done is left as it is; one that another engine, plan or version read, or whose results
// are not whole, is read again.
func TestWorkAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(f *fleet)
		again  bool
	}{
		{"nothing changed", func(*fleet) {}, false},
		{"another engine", func(f *fleet) { f.engine.name = "other" }, true},
		{"results that are cut", func(f *fleet) { put(f.T, f.ws.Dir(), resultName(0), "") }, true},
		{"a sidecar that is cut", func(f *fleet) { put(f.T, f.ws.Dir(), sidecarName(0), "{") }, true},
		{"split again for another version", func(f *fleet) { f.plan.Tool = "2"; f.split() }, true},
		{"split again for the same", func(f *fleet) { f.split() }, false},
	} {
		f := newFleet(t, 1)
		f.split()
		first, err := Work(t.Context(), f.job(0))
		testkit.OK(t, err)
		test.change(f)
		side, err := Work(t.Context(), f.job(0))
		testkit.OK(t, err)
		testkit.Same(t, test.name+": images that were read", map[bool]int{false: 4, true: 8}[test.again], f.engine.reads)
		if same := side == first; same == (f.engine.name == "other" || f.plan.Tool == "2") {
			t.Errorf("%s: the sidecar is %+v, and was %+v", test.name, side, first)
		}
		if _, _, err := Check(f.ws, f.plan); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestWorkAgainAfterDamage: a shard with a file that was damaged is read again once that is whole, and not before.
func TestWorkAgainAfterDamage(t *testing.T) {
	for _, harm := range []func(name string) error{os.Remove, func(name string) error { return os.Truncate(name, 7) }} {
		f := newFleet(t, 1)
		body, err := os.ReadFile(f.image(posts[2]))
		testkit.OK(t, err, harm(f.image(posts[2])))
		f.split()
		f.work(0, 0)
		testkit.Same(t, "images that were read", 3, f.engine.reads)
		testkit.OK(t, os.WriteFile(f.image(posts[2]), body, 0o600))
		f.work(0, 0)
		testkit.Same(t, "images that were read with it", 7, f.engine.reads)
		testkit.Same(t, "its result", "few002: width 202", f.results(0)[2])
	}
}

// TestWorkFails: a shard that cannot be read says why, and does not count as done.
func TestWorkFails(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(f *fleet, j *Job)
		want   string
		is     error
	}{
		{"another number of shards", func(_ *fleet, j *Job) { j.Shards = 2 }, "into 1 shards, not 2", ErrOtherPlan},
		{"another version", func(_ *fleet, j *Job) { j.Tool = "2" }, "by rehydrate 1, and this is 2", ErrOtherPlan},
		{"no plan", func(f *fleet, _ *Job) { testkit.OK(f, clear(f.Context(), f.ws)) }, "no work was split", ErrNoPlan},
		{"no folder", func(_ *fleet, j *Job) { j.Workspace += "-none" }, "no such file", os.ErrNotExist},
		{"no list", func(f *fleet, _ *Job) { testkit.OK(f, f.ws.RemoveFile(f.Context(), "shards/"+workName(0))) },
			"read the work of shard 0: ", os.ErrNotExist},
		{"a damaged list", func(f *fleet, _ *Job) { put(f.T, f.ws.Dir(), workName(0), "{}\n{\n") },
			"work-00000.jsonl, line 2", nil},
		{"an engine that ends", func(f *fleet, _ *Job) { f.engine.failing = map[int]error{201: errors.New("no worker")} },
			"read shard 0 of 1: ", nil},
		{"which entry it was", func(f *fleet, _ *Job) { f.engine.failing = map[int]error{201: errors.New("no worker")} },
			"few001/1: no worker", nil},
		{"a folder in the place of an image", func(f *fleet, _ *Job) {
			testkit.OK(f, os.Remove(f.image(posts[0])), os.Mkdir(f.image(posts[0]), 0o700))
		}, "few001: read", nil},
		{"a link in the workspace", func(f *fleet, _ *Job) {
			testkit.OK(f, os.Symlink(f.TempDir(), filepath.Join(f.ws.Dir(), state.ShardsDir, "mine")))
		}, "mine", nil},
		{"a disk with the images that is away", func(f *fleet, _ *Job) {
			testkit.OK(f, os.RemoveAll(filepath.Join(f.ws.Dir(), state.ImagesDir)))
		}, "4 or more of the 4 image files of the shard are not there: is the disk mounted that holds images/?", nil},
		{"split again meanwhile", func(f *fleet, _ *Job) {
			f.engine.during = func() { put(f.T, f.ws.Dir(), planName, lines(f.T, Plan{Format: Format, Shards: 3})) }
		}, "the work was split otherwise", ErrOtherPlan},
		{"a post that goes meanwhile", func(f *fleet, _ *Job) {
			f.engine.during = func() { put(f.T, f.ws.Dir(), workName(0), lines(f.T, Item{ID: "few001"}, Item{ID: "few003"})) }
		}, "images that it was reading have gone", nil},
		{"an image of a gallery that goes meanwhile", func(f *fleet, _ *Job) {
			f.engine.during = func() {
				put(f.T, f.ws.Dir(), workName(0), lines(f.T, Item{ID: "few001"}, Item{ID: "few002"}, Item{ID: "few003"}))
			}
		}, "images that it was reading have gone", nil},
		{"so many that go meanwhile that their disk could be away", func(f *fleet, j *Job) {
			items, err := os.ReadFile(filepath.Join(f.ws.Dir(), state.ShardsDir, workName(0)))
			testkit.OK(f, err)
			last := slices.Collect(bytes.Lines(items))[3]
			put(f.T, f.ws.Dir(), workName(0), string(items)+string(last)) // three can be away
			j.Workers = 1
			f.engine.during = func() {
				testkit.OK(f, os.RemoveAll(filepath.Join(f.ws.Dir(), state.ImagesDir)))
				put(f.T, f.ws.Dir(), workName(0), lines(f.T, Item{ID: "few001"}))
			}
		}, "images that it was reading have gone", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFleet(t, 1)
			f.split()
			j := f.job(0)
			test.change(f, &j)
			_, err := Work(t.Context(), j)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if _, _, err := Check(f.ws, f.plan); err == nil {
				t.Error("the shard counts as done")
			}
			if left, _ := filepath.Glob(filepath.Join(f.ws.Dir(), state.ShardsDir, partPrefix+"*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// TestWorkUnrecorded: results whose sidecar cannot be written are no success.
func TestWorkUnrecorded(t *testing.T) {
	f := newFleet(t, 1)
	f.split()
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, name string) error {
		if step == "rename" && strings.HasSuffix(name, sidecarName(0)) {
			return errors.New("the disk is full")
		}
		return nil
	})
	if _, err := Work(ctx, f.job(0)); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("the error is %v", err)
	}
}

// TestSplit: a post with all its images is in the shard that its id names, and a number of shards that makes no sense
// is refused.
func TestSplit(t *testing.T) {
	f := newFleet(t, 3)
	testkit.Same(t, "items", 4, f.split())
	var all []string
	for shard := range 3 {
		for item, err := range readLines[Item](os.DirFS(f.ws.Dir()), workName(shard)) {
			testkit.OK(t, err)
			testkit.Same(t, "the shard of "+string(item.ID), ShardOf(item.ID, 3), shard)
			testkit.Same(t, "its file", f.ws.ImageName(item.key(), "png"), item.File)
			all = append(all, item.key().String())
		}
	}
	slices.Sort(all)
	testkit.Same(t, "images", []string{"few001", "few001/1", "few002", "few003"}, all)
	for n, fails := range map[int]bool{-1: true, 0: true, 1: false, MaxShards + 1: true} {
		f.plan.Shards = n
		if _, err := Split(t.Context(), f.ws, f.plan, nil); (err != nil) != fails {
			t.Errorf("%d shards: %v", n, err)
		}
	}
	// By hand: the first 8 bytes of SHA-256 of "few001" are a number that others can compute.
	for id, want := range map[manifest.PostID]int{"few001": shardByHand("few001", 7), "abc": shardByHand("abc", 7)} {
		testkit.Same(t, "the shard of "+string(id), want, ShardOf(id, 7))
	}
}

// shardByHand is ShardOf by the digest in hex, digit by digit.
func shardByHand(id string, n int) (at int) {
	for _, digit := range state.SHA256([]byte(id))[:16] {
		at = (at*16 + strings.IndexRune("0123456789abcdef", digit)) % n
	}
	return at
}

// TestCheckSeveral: of several shards those that are not done are named, ten at most, and those that different engines
// or versions read are not merged.
func TestCheckSeveral(t *testing.T) {
	for _, test := range []struct {
		name   string
		shards int
		done   func(f *fleet)
		want   string
	}{
		{"two", 2, func(f *fleet) { f.work(0, 1) }, ""},
		{"one is missing", 2, func(f *fleet) { f.work(0) },
			"1 of 2 shards are not done: 1 (no result); for each: rehydrate cluster work --shard I/2"},
		{"ten are missing", 11, func(f *fleet) { f.work(10) },
			"10 of 11 shards are not done: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (no result)"},
		{"eleven are missing", 11, func(*fleet) {},
			"11 of 11 shards are not done: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (no result)"},
		{"no list", 2, func(f *fleet) {
			f.work(0, 1)
			testkit.OK(f, f.ws.RemoveFile(f.Context(), path.Join(state.ShardsDir, workName(1))))
		}, "1 of 2 shards are not done: 1 ("},
		{"results that are no JSON", 2, func(f *fleet) {
			f.work(0, 1)
			side, err := readSidecar(os.DirFS(f.ws.Dir()), 1)
			side.SHA256 = state.SHA256([]byte("{"))
			testkit.OK(f, err)
			put(f.T, f.ws.Dir(), resultName(1), "{")
			put(f.T, f.ws.Dir(), sidecarName(1), lines(f.T, side))
		}, "shards/result-00001.jsonl, line 1: "},
		{"two engines", 2, func(f *fleet) { f.work(0); f.engine.name = "other"; f.work(1) },
			"shards 0 and 1 were read by different engines (fake; other): read one of them again"},
		{"two versions", 2, func(f *fleet) {
			f.work(0, 1)
			side, err := readSidecar(os.DirFS(f.ws.Dir()), 1)
			side.Tool = "2"
			testkit.OK(f, err)
			put(f.T, f.ws.Dir(), sidecarName(1), lines(f.T, side))
		}, "shards 0 and 1 were read by different engines"},
	} {
		f := newFleet(t, test.shards)
		f.split()
		test.done(f)
		_, shards, err := Check(f.ws, f.plan)
		switch {
		case test.want == "":
			testkit.Same(t, test.name, test.shards, shards, err)
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func (f *fleet) work(shards ...int) {
	f.Helper()
	for _, shard := range shards {
		_, err := Work(f.Context(), f.job(shard))
		testkit.OK(f, err)
	}
}

// TestPlanThatDoesNotFit: a plan is read if it is of this format, of a number of shards that a split can have, and not
// too long.
func TestPlanThatDoesNotFit(t *testing.T) {
	for _, test := range []struct {
		name           string
		format, shards int
		size           int // of the file, with blanks
		fits           bool
	}{
		{"the fewest", Format, 1, 0, true}, {"the most", Format, MaxShards, 0, true}, {"none", Format, 0, 0, false},
		{"too many", Format, MaxShards + 1, 0, false}, {"a later format", Format + 1, 1, 0, false},
		{"the longest", Format, 1, maxPlan, true}, {"too long", Format, 1, maxPlan + 1, false},
	} {
		dir, _ := folder(t, 1)
		text := lines(t, Plan{Format: test.format, Shards: test.shards})
		put(t, dir, planName, text+strings.Repeat(" ", max(0, test.size-len(text))))
		if _, _, err := readPlan(os.DirFS(dir)); (err == nil) != test.fits {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	dir, _ := folder(t, 1)
	put(t, dir, planName, "{")
	if _, _, err := readPlan(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), "unexpected end of JSON") {
		t.Errorf("half a plan: %v", err)
	}
}

// TestDrop: what must go leaves the lists, the results and the parts; the others stay, and their shard stays done.
func TestDrop(t *testing.T) {
	for _, test := range []struct {
		name   string
		gone   []string // rows
		change func(f *fleet)
		left   []string // results of the shard, nil where it has to be read again
		files  string   // that are left, beside those of the plan
	}{
		{"nobody", nil, nil, []string{"few001: width 200", "few001/1: width 201", "few002: width 202", "few003: width 203"},
			"plan.json result-00000.json result-00000.jsonl work-00000.jsonl"},
		{"one post", []string{"few002"}, nil, []string{"few001: width 200", "few001/1: width 201", "few003: width 203"},
			"plan.json result-00000.json result-00000.jsonl work-00000.jsonl"},
		{"one image of a gallery", []string{"few001/1"}, nil,
			[]string{"few001: width 200", "few002: width 202", "few003: width 203"},
			"plan.json result-00000.json result-00000.jsonl work-00000.jsonl"},
		{"one that left the manifest", nil, func(f *fleet) { f.without("few003") },
			[]string{"few001: width 200", "few001/1: width 201", "few002: width 202"},
			"plan.json result-00000.json result-00000.jsonl work-00000.jsonl"},
		{"with a damaged result", []string{"few002"}, func(f *fleet) { put(f.T, f.ws.Dir(), resultName(0), "{") }, nil,
			"plan.json result-00000.json work-00000.jsonl"},
		{"without a sidecar", []string{"few002"}, func(f *fleet) {
			testkit.OK(f, f.ws.RemoveFile(f.Context(), path.Join(state.ShardsDir, sidecarName(0))))
		}, nil, "plan.json result-00000.jsonl work-00000.jsonl"},
		{"with a damaged sidecar", []string{"few002"}, func(f *fleet) { put(f.T, f.ws.Dir(), sidecarName(0), "{") }, nil,
			"plan.json result-00000.jsonl work-00000.jsonl"},
		{"while parts are written", []string{"few002"}, func(f *fleet) {
			put(f.T, f.ws.Dir(), partPrefix+"00000-aa", lines(f.T, Result{ID: "few002"}))
			put(f.T, f.ws.Dir(), partPrefix+"00000-bb", lines(f.T, Result{ID: "few003"}))
		}, []string{"few001: width 200", "few001/1: width 201", "few003: width 203"},
			"part-00000-bb plan.json result-00000.json result-00000.jsonl work-00000.jsonl"},
		{"with what is not of a cluster", nil, func(f *fleet) { put(f.T, f.ws.Dir(), "notes.txt", "x") },
			[]string{"few001: width 200", "few001/1: width 201", "few002: width 202", "few003: width 203"},
			"plan.json result-00000.json result-00000.jsonl work-00000.jsonl"},
		{"without a plan", nil, func(f *fleet) { testkit.OK(f, f.ws.RemoveFile(f.Context(), PlanFile)) }, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFleet(t, 1)
			f.split()
			f.work(0)
			if test.change != nil {
				test.change(f)
			}
			testkit.OK(t, Drop(t.Context(), f.ws, func(row string) bool { return slices.Contains(test.gone, row) }))
			names, err := f.ws.Files(t.Context(), state.ShardsDir)
			testkit.Same(t, "files", test.files, strings.ReplaceAll(strings.Join(names, " "), state.ShardsDir+"/", ""), err)
			_, _, err = Check(f.ws, f.plan)
			if (err == nil) != (test.left != nil) {
				t.Errorf("whether it is done: %v", err)
			}
			if err == nil {
				testkit.Same(t, "results", test.left, f.results(0))
			}
			for _, name := range names {
				text, err := os.ReadFile(filepath.Join(f.ws.Dir(), name))
				testkit.OK(t, err)
				for _, id := range test.gone {
					if key, _ := manifest.ParseKey(id); key.Image == 0 && strings.Contains(string(text), id) {
						t.Errorf("%s has %s:\n%s", name, id, text)
					}
				}
			}
		})
	}
}

// without loads the manifest again, without a post.
func (f *fleet) without(id manifest.PostID) {
	testkit.OK(f, f.ws.Load(f.Context(), workspace.Binding{Release: "x", ReleaseDigest: "r2", ManifestDigest: "m2",
		Splits: []string{"train"}}, func(yield func(manifest.Entry, error) bool) {
		for i, key := range posts {
			if key.ID != id && !yield(manifest.Entry{Ordinal: i, Key: key, Split: "train"}, nil) {
				return
			}
		}
	}, nil))
}
