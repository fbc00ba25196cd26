package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestPlans: in workspaces with a random history, each plan says what the job then does.
func TestPlans(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, 1000+seed)
			h.step("run")
			for range 3 {
				h.step(h.anyChange())
				h.step(h.anyChange())
				h.step(pick(h, "run", "recheck", "split", "run stop=3", "recheck stop=2", "reread"))
			}
			h.step("manifest 10; run; engine D; copy last")
			checkRereadPlan(h)
			checkPurgePlan(h, PurgeRequest{})
			checkPurgePlan(h, PurgeRequest{IDs: []manifest.PostID{"p05", "nobody"}, Reason: state.ReasonTakedown})
			checkRunPlan(h)
		})
	}
}

// planned opens the workspace for reading alone, as a plan has it.
func planned[P any](h *history, plan func(context.Context, Config) (P, error)) (p P) {
	h.Helper()
	h.read(func(ctx context.Context, ws *workspace.Workspace) {
		c := h.config()
		c.Workspace, c.Reddit, c.OCR = ws, nil, h.ocr
		var err error
		p, err = plan(ctx, c)
		testkit.OK(h, err)
	})
	return p
}

func checkRereadPlan(h *history) {
	h.Helper()
	for _, all := range []bool{false, true} {
		p := planned(h, func(ctx context.Context, c Config) (Workload, error) { return PlanReread(ctx, c, all) })
		h.do(map[bool]string{false: "reread", true: "reread all"}[all]).ok()
		testkit.Same(h, "images read", p.Read, len(h.ocr.reads))
	}
}

func checkPurgePlan(h *history, q PurgeRequest) {
	h.Helper()
	p := planned(h, func(ctx context.Context, c Config) (PurgePlan, error) { return PlanPurge(ctx, c, q) })
	before := h.look()
	steps := "purge offline"
	for _, id := range q.IDs {
		steps += " id=" + string(id)
	}
	h.do(steps).ok()
	after := h.checkSound()
	var posts []string
	for _, post := range p.Posts {
		posts = append(posts, string(post.ID))
	}
	var erased []string
	for _, post := range h.purged.Erased {
		erased = append(erased, string(post.ID))
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
	testkit.Same(h, "rows, as they lie there", strings.Join(slices.Sorted(slices.Values(p.Rows)), " "), strings.Join(left, " "))
	testkit.Same(h, "pictures that were taken down", strings.Join(p.Same, " "), strings.Join(h.purged.Same, " "))
	testkit.Same(h, "unknown posts", fmt.Sprint(p.Unknown), fmt.Sprint(h.purged.Unknown))
}

// checkRunPlan does the run in a world where every post is live that is not known to be gone, as its plan supposes.
func checkRunPlan(h *history) {
	h.Helper()
	before := h.look()
	h.do("host ok i.redd.it")
	for row, rec := range before.records {
		if rec.Post.State.Gone() {
			continue
		}
		h.do("post live " + string(rec.ID))
		if rec.Trouble == nil || rec.Trouble.Outcome.Retryable() { // else what Reddit says of it would be new
			h.do("image ok " + row)
		}
	}
	p := planned(h, PlanRun)
	h.do("run")
	asked := map[string]bool{}
	for _, id := range h.reddit.asked {
		asked[id] = true
	}
	fetched := map[string]bool{}
	for _, url := range h.reddit.fetched {
		fetched[url] = true
	}
	var missing []string // entries without an image whose images were fetched
	for row, rec := range before.records {
		id, i := splitRow(row)
		if rec.Image == nil && !rec.Post.State.Gone() && fetched[h.post(id).url(rec.ID, i)] {
			missing = append(missing, row)
		}
	}
	testkit.Same(h, "posts", p.Posts, len(asked))
	testkit.Same(h, "images", p.Images, len(missing))
}
