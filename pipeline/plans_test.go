package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestPlansSayWhatJobsDo: in workspaces with a random history, each plan says what the job then does.
func TestPlansSayWhatJobsDo(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	if os.Getenv("REHYDRATE_TEST") == "full" {
		seeds = 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, 1000+seed)
			h.step("run")
			for range 3 {
				h.step(h.anyChange())
				h.step(h.anyChange())
				h.step(pick(h, "run", "recheck", "split", "run stop=3", "recheck stop=2", "run blocked=1",
					"run die=70", "reread"))
			}
			h.step("engine D; copy last")
			checkRereadPlan(h)
			h.lose(pick(h, 0, 0, 2, 8))
			checkPurgePlan(h, pick(h, "", " confirm"), PurgeRequest{})
			checkPurgePlan(h, "", PurgeRequest{IDs: []manifest.PostID{"p05", "nobody"}, Reason: state.ReasonTakedown})
			for range 2 {
				h.step("run confirm")
				h.step(pick(h, "policy larger", "policy strict", "policy readmit", "manifest 9", "manifest 10",
					"stones removed p02", "names 40 p03",
					"names 4 p04", "clock 25h"))
				checkRecheckPlan(h)
				checkRunPlan(h, pick(h, "", "", "http_404", "invalid", "gallery_item_deleted"))
			}
			if t.Failed() {
				t.Logf("the steps: %s", strings.Join(h.done, "; "))
			}
		})
	}
}

// TestPlanParts: the parts of a long run leave the time to ask about those that are finished.
func TestPlanParts(t *testing.T) {
	p := policy.Default()
	p.Reddit.RequestsPerMinute = 1 // 288,000 posts in 48 hours
	for _, test := range []struct{ posts, part, parts, most int }{
		{100_000, 0, 0, 0}, // 2,000 requests, the last look with them, of 2,880
		{144_000, 0, 0, 0},
		{150_000, 138_000, 2, 0},
		{280_000, 8_000, 35, 0},
		{288_000, 0, 0, 144_000}, // no time is left for a second look at anything
		{400_000, 0, 0, 288_000},
	} {
		plan := RunPlan{Posts: test.posts, Images: test.posts}
		plan.time(Config{Policy: p, Workers: 1000})
		testkit.Same(t, fmt.Sprint(test.posts), [3]int{test.part, test.parts, test.most},
			[3]int{plan.Part, plan.Parts, plan.Most})
	}
}

// TestPurgePlanKnowsWhatIsConfirmed: who confirms that files are lost has not confirmed the removals that are withheld,
// in the plan as in the job. Without a confirmation the plan ends with the error of the job.
func TestPurgePlanKnowsWhatIsConfirmed(t *testing.T) {
	for _, test := range []struct {
		words        string
		lost, erased int
		spent        int // files that the confirmation is about
		err          string
	}{
		{" confirm", 0, 3, 0, ""},
		{" confirm", 3, 3, 0, ""},
		{" confirm", 5, 0, 5, ""},
		{"", 3, 0, 0, ""},
		{"", 5, 0, 0, "5 of the 12 stored images are not there, p05 first: is the disk mounted that holds them?"},
	} {
		h := &history{world: newWorld(t, numbered(12)...)}
		h.do("run; post deleted p01 p02 p03; recheck").ok()
		for _, name := range h.imagesOf()[5 : 5+test.lost] {
			testkit.OK(t, os.Remove(name))
		}
		p, err := planned(h, planOfPurge(test.words, PurgeRequest{}))
		testkit.Same(t, "error", test.err, messageOf(err))
		if err == nil {
			testkit.Same(t, "posts that go, and files", []int{test.erased, test.spent}, []int{len(p.Posts), p.Lost})
		}
		checkPurgePlan(h, test.words, PurgeRequest{})
	}
}

// TestPurgePlanNamesWhatGoes: a plan has the posts of the job, of galleries that stay the images, and what shows the
// picture of a removed post.
func TestPurgePlanNamesWhatGoes(t *testing.T) {
	ran := newWorld(t, append(numbered(9), "g*3")...).do("serve 5 g/1; run").ok()
	const held = "post deleted p03; image left g/1; recheck; "
	for _, test := range []struct {
		steps, words, request string
		want                  []string // with how many images and texts
	}{
		{"", "", "p05", []string{"p05 removed takedown: 1, 1", "g/1 removed same_as_removed: 1, 1"}},
		{"", "", "g", []string{"p05 removed same_as_removed: 1, 1", "g removed takedown: 3, 3"}},
		{held, "", "", nil},
		{held, "", "p03", []string{"p03 removed takedown: 1, 1"}},
		{held, " confirm", "", []string{"p03 deleted author: 1, 1", "g/1 removed gallery_item_deleted: 1, 1"}},
	} {
		h := &history{world: ran.copied(t).do(test.steps).ok()}
		q := PurgeRequest{Reason: state.ReasonTakedown}
		if test.request != "" {
			q.IDs = []manifest.PostID{manifest.PostID(test.request)}
		}
		p, err := planned(h, planOfPurge(test.words, q))
		var got []string
		for _, post := range p.Posts {
			got = append(got, fmt.Sprintf("%s %s %s: %d, %d", strings.Join(post.Names(), " "), post.State, post.Reason,
				post.Images, post.Texts))
		}
		testkit.Same(t, test.steps+test.words+test.request, test.want, got, err)
		checkPurgePlan(h, test.words, q)
	}
}

// planned opens the workspace for reading alone, as a plan has it.
func planned[P any](h *history, plan func(context.Context, Config) (P, error)) (p P, err error) {
	h.Helper()
	h.read(func(ctx context.Context, ws *workspace.Workspace) {
		c := h.config()
		c.Workspace, c.Reddit, c.OCR = ws, nil, h.ocr
		p, err = plan(ctx, c)
	})
	return p, err
}

func planOfPurge(words string, q PurgeRequest) func(context.Context, Config) (PurgePlan, error) {
	return func(ctx context.Context, c Config) (PurgePlan, error) {
		c.ConfirmRemovals = strings.Contains(words, "confirm")
		return PlanPurge(ctx, c, q)
	}
}

// lose deletes so many image files.
func (h *history) lose(n int) {
	h.Helper()
	records := h.inspect().records
	var names []string
	h.read(func(_ context.Context, ws *workspace.Workspace) {
		for _, row := range h.rows {
			if rec := records[row]; rec.Image != nil && len(names) < n {
				names, h.mayGo[row] = append(names, ws.ImageName(rec.Key, rec.Image.Format)), true
			}
		}
	})
	for _, name := range names {
		testkit.OK(h, os.Remove(filepath.Join(h.dir, "ws", name)))
	}
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func checkRereadPlan(h *history) {
	h.Helper()
	for _, all := range []bool{false, true} {
		p, err := planned(h, func(ctx context.Context, c Config) (Workload, error) { return PlanReread(ctx, c, all) })
		testkit.OK(h, err)
		h.do(map[bool]string{false: "reread confirm", true: "reread all confirm"}[all]).ok()
		testkit.Same(h, "images read", p.Read, len(h.ocr.reads))
	}
}

func checkPurgePlan(h *history, words string, q PurgeRequest) {
	h.Helper()
	p, failed := planned(h, planOfPurge(words, q))
	before := h.inspect()
	steps := "purge offline" + words
	for _, id := range q.IDs {
		steps += " id=" + string(id)
	}
	h.do(steps)
	var planned, met *MissingError
	errors.As(failed, &planned)
	errors.As(h.err, &met)
	if met != nil || planned != nil {
		testkit.Same(h, "missing files", met, planned)
		return
	}
	testkit.OK(h, failed)
	h.ok()
	after := h.checkSound()
	var posts, erased []string
	for _, post := range p.Posts {
		posts = append(posts, post.Names()...)
	}
	for _, post := range h.purged.Erased {
		erased = append(erased, post.Names()...)
	}
	var left []string
	for row := range before.rows {
		if _, there := after.rows[row]; !there {
			left = append(left, row)
		}
	}
	slices.Sort(left)
	testkit.Same(h, "posts erased", strings.Join(posts, " "), strings.Join(erased, " "))
	testkit.Same(h, "rows, as the report has them", strings.Join(p.Rows, " "), strings.Join(h.purged.Rows, " "))
	testkit.Same(h, "others, as the report has them", strings.Join(p.Others, " "), strings.Join(h.purged.Others, " "))
	testkit.Same(h, "rows, as they lie there", strings.Join(slices.Sorted(slices.Values(slices.Concat(p.Rows, p.Others))),
		" "), strings.Join(left, " "))
	testkit.Same(h, "pictures that were taken down", strings.Join(p.Same, " "), strings.Join(h.purged.Same, " "))
	testkit.Same(h, "unknown posts", fmt.Sprint(p.Unknown), fmt.Sprint(h.purged.Unknown))
	testkit.Same(h, "posts without an image", fmt.Sprint(p.Empty), fmt.Sprint(h.purged.Empty))
	testkit.Same(h, "posts that wait", p.Withheld, waiting(after))
	testkit.Same(h, "rows that copies owe", owed(p.Copies), owed(h.purged.Copies))
}

// waiting counts the posts that are withheld, or images of which are.
func waiting(s inventory) int {
	posts := map[manifest.PostID]bool{}
	for _, rec := range s.records {
		if rec.Post.Withheld || rec.Trouble != nil && rec.Trouble.Withheld() {
			posts[rec.ID] = true
		}
	}
	return len(posts)
}

// owed are the rows that copies owe, or lost in a purge.
func owed(list []state.CopyReport) string {
	var rows []string
	for _, c := range list {
		rows = append(rows, c.Owed...)
		rows = append(rows, c.Purged...)
	}
	slices.Sort(rows)
	return strings.Join(rows, " ")
}

func checkRecheckPlan(h *history) {
	h.Helper()
	p, err := planned(h, PlanRecheck)
	testkit.OK(h, err)
	h.do("recheck").ok()
	testkit.Same(h, "posts that a recheck asks about", p.Posts, len(distinct(h.reddit.asked)))
	testkit.Same(h, "images that it fetches", p.Images, len(h.reddit.fetched))
}

// checkRunPlan does the run in a world that is as the plan supposes.
func checkRunPlan(h *history, retry string) {
	h.Helper()
	before := h.inspect()
	h.suppose(before, retry)
	p, err := planned(h, func(ctx context.Context, c Config) (RunPlan, error) {
		if retry != "" {
			c.Retry = []string{retry}
		}
		return PlanRun(ctx, c)
	})
	testkit.OK(h, err)
	h.do(strings.TrimSuffix("run confirm retry="+retry, " retry="))
	if _, none := errors.AsType[*UnknownRetry](h.err); none {
		h.do("run confirm")
	}
	h.ok()
	var fetched []string // rows whose image was fetched, but as a witness
	for _, row := range h.rows {
		id, i := splitRow(row)
		url := h.post(id).url(manifest.PostID(id), i)
		img := before.records[row].Image
		if slices.Contains(h.reddit.fetched, url) && (img == nil || img.Source != state.SHA256([]byte(url))) {
			fetched = append(fetched, row)
		}
	}
	testkit.Same(h, "posts that a run asks about", p.Posts, len(distinct(h.reddit.asked)))
	if p.Images != len(fetched) {
		h.Errorf("a run was to fetch %d images, and fetched those of %v", p.Images, fetched)
	}
}

// suppose makes the world one where what is not known to be gone, by an answer or a tombstone, is live, and each image
// lies where it was asked for last.
func (h *history) suppose(s inventory, retry string) {
	h.Helper()
	h.do("host ok i.redd.it")
	stones := map[string]bool{}
	h.read(func(ctx context.Context, ws *workspace.Workspace) {
		all, err := ws.Tombstones(ctx)
		testkit.OK(h, err)
		for _, t := range all {
			stones[string(t.ID)] = !t.Readmitted
		}
	})
	for _, row := range h.rows {
		rec := s.records[row]
		id, i := splitRow(row)
		p := h.post(id)
		switch {
		case rec.Post.State.Gone():
			continue
		case rec.Post.State == "" && stones[id]: // an edition that lacked it forgot the answer
			p.state = "moderator"
			continue
		}
		p.state, p.images[i] = "live", ""
		source := ""
		if rec.Image != nil {
			source = rec.Image.Source
		}
		if t := rec.Trouble; t != nil {
			last, _, _ := strings.Cut(t.Source, " ")
			source = cmp.Or(last, source)
			if last == "" && rec.Image == nil && !t.Outcome.Retryable() && retry != string(t.Reason) &&
				retry != string(t.Outcome) {
				p.images[i] = oddityOf(*t)
			}
		}
		for moved := range p.moved[i] {
			if at := (&fakePost{moved: []int{moved}}).url(manifest.PostID(id),
				0); state.SHA256([]byte(strings.Replace(at, "-0-", fmt.Sprintf("-%d-", i), 1))) == source {
				p.moved[i] = moved
				break
			}
		}
	}
}

// oddityOf is what Reddit says of an image where it is for this reason that there is none.
func oddityOf(t workspace.Trouble) string {
	for name, f := range oddities {
		if f.Reason == t.Reason {
			return name
		}
	}
	return ""
}

// distinct are the ids in a list.
func distinct(ids []string) map[string]bool {
	set := map[string]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}
