package pipeline

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A RunPlan is what a run would ask and take at most, by the manifest, the policy's rates and what is stored.
type RunPlan struct {
	Posts   int `json:"posts"`
	Entries int `json:"entries"`
	Stored  int `json:"stored"`  // images that are here
	Settled int `json:"settled"` // entries of which no image is fetched: gone, or final by an earlier run
	Images  int `json:"images"`  // to fetch, if every other post is live
	// Requests to Reddit, of up to policy.MaxAsk posts each: to resolve, and in the last look.
	Resolve int `json:"resolve"`
	Last    int `json:"last"`
	// Sweep is how long asking about every post takes, Look the last look, Fetch the images if all are at the policy's
	// first host, Read their text. Fetching and reading go on while Reddit is asked.
	Sweep time.Duration `json:"sweep_ns"`
	Look  time.Duration `json:"look_ns"`
	Fetch time.Duration `json:"fetch_ns"`
	Read  time.Duration `json:"read_ns"`
	All   time.Duration `json:"all_ns"`
	Hosts []HostPlan    `json:"hosts"`
	// Bytes of the images, by the mean of the stored ones, or usualImage where none is; Disk is what has to be free.
	Bytes    int64 `json:"bytes"`
	Disk     int64 `json:"disk"`
	Measured bool  `json:"measured"` // the bytes, by images that are stored
	// Within is the policy's recheck_within. A post that is gone has to go from here in this time.
	Within time.Duration `json:"within_ns"`
	// Part is how many posts a run finishes with within it, all if 0, and Parts how many such parts there are.
	Part  int `json:"part,omitempty"`
	Parts int `json:"parts,omitempty"`
	// Most is how many posts can be asked about within it, set when that is less than there are.
	Most int `json:"most,omitempty"`
}

// A HostPlan is how long a host would take if it had all the images.
type HostPlan struct {
	Name  string        `json:"name"`
	Rate  float64       `json:"requests_per_second"`
	Fetch time.Duration `json:"fetch_ns"`
}

const (
	usualImage = 200_000 // bytes: of memes at Reddit
	usualEntry = 3_300   // bytes of state.db for an entry that was read, of the demo's
	// usualRate is how many images a worker reads in a second (docs/ocr.md).
	usualRate = 3.25
)

// PlanRun says what Run would do. It only reads: Config.Workspace need not be locked, and is nil where there is none.
func PlanRun(ctx context.Context, c Config) (RunPlan, error) {
	return planAsking(ctx, c, func(p RunPlan) int { return max(p.Entries-p.Stored-p.Settled, 0) })
}

// PlanRecheck says what Recheck would do, which fetches nothing, as PlanRun does.
func PlanRecheck(ctx context.Context, c Config) (RunPlan, error) {
	return planAsking(ctx, c, func(RunPlan) int { return 0 })
}

// planAsking plans a job that asks about every post; images says how many it fetches of what is counted.
func planAsking(ctx context.Context, c Config, images func(RunPlan) int) (RunPlan, error) {
	p := RunPlan{Posts: c.Manifest.Posts, Entries: c.Manifest.Entries, Within: c.Policy.Reddit.RecheckWithin,
		Hosts: []HostPlan{}}
	var bytes int64
	if c.Workspace != nil {
		stones, err := state.Stones(ctx, c.Workspace, c.Release, c.Tombstones, c.Now())
		if err != nil {
			return p, err
		}
		for rec, err := range c.Workspace.Records(ctx, workspace.Select{}) {
			if err != nil {
				return p, err
			}
			switch t := rec.Trouble; {
			case rec.Image != nil:
				p.Stored++
				bytes += rec.Image.Bytes
			case stones.Has(rec.ID), rec.Post.State.Gone(), t != nil && !t.Outcome.Retryable() &&
				!slices.Contains(c.Retry, string(t.Outcome)) &&
				!slices.Contains(c.Retry, string(t.Reason)):
				p.Settled++
			}
		}
	}
	p.Images = images(p)
	p.time(c)
	mean := int64(usualImage)
	p.Measured = p.Stored > 0
	if p.Measured {
		mean = bytes / int64(p.Stored)
	}
	p.Bytes = int64(p.Images) * mean
	// Each image once by itself and once in the dataset, of which one shard is there twice while it is replaced.
	p.Disk = 2*p.Bytes + int64(p.Images)*usualEntry + min(int64(p.Images+p.Stored)*mean, dataset.ShardBytes)
	return p, nil
}

// time fills in what follows from the policy's rates.
func (p *RunPlan) time(c Config) {
	ask := func(posts int) (requests int, d time.Duration) {
		requests = (posts + policy.MaxAsk - 1) / policy.MaxAsk
		return requests, span(float64(requests) * 60 / c.Policy.Reddit.RequestsPerMinute)
	}
	p.Resolve, p.Sweep = ask(p.Posts)
	p.Last, p.Look = ask(min(p.Images, p.Posts))
	for _, h := range c.Policy.Images.Hosts {
		if h.Name != "api.imgur.com" { // which has no images, as the policy says
			p.Hosts = append(p.Hosts, HostPlan{h.Name, h.RequestsPerSecond,
				span(float64(p.Images) / h.RequestsPerSecond)})
		}
	}
	if len(p.Hosts) > 0 {
		p.Fetch = p.Hosts[0].Fetch
	}
	p.Read = span(float64(p.Images) / (usualRate * float64(max(c.Workers, 1))))
	p.All = max(p.Sweep, p.Fetch, p.Read) + p.Look
	share := func(d time.Duration) int { return int(float64(p.Posts) * float64(p.Within) / float64(d)) }
	if p.Sweep > p.Within {
		p.Most = share(p.Sweep)
	}
	if p.All > p.Within {
		p.Part = max(share(p.All), 1)
		p.Parts = (p.Posts + p.Part - 1) / p.Part
	}
}

// span is a time in seconds, also one that is longer than a time.Duration.
func span(seconds float64) time.Duration {
	return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/4))
}

// A PurgePlan is what a purge would remove by what is known now.
type PurgePlan struct {
	Posts    []PlannedPost      `json:"posts"`           // that the workspace has content of
	Rows     []string           `json:"rows"`            // of the dataset
	Same     []string           `json:"same_as_removed"` // entries that show the same picture as one that was taken down
	Copies   []state.CopyReport `json:"copies"`
	Withheld int                `json:"withheld"` // posts that are gone, and stay until that is confirmed
	// Unknown are posts of the request that the manifest of the last run does not have.
	Unknown []manifest.PostID `json:"unknown"`
}

// A PlannedPost is a post that would be erased.
type PlannedPost struct {
	state.GonePost
	Images int `json:"images"`
	Texts  int `json:"texts"`
}

// PlanPurge says what Purge would remove offline. It only reads: Config.Workspace need not be locked.
func PlanPurge(ctx context.Context, c Config, q PurgeRequest) (PurgePlan, error) {
	plan := PurgePlan{Posts: []PlannedPost{}, Rows: []string{}, Same: []string{}, Copies: []state.CopyReport{},
		Unknown: append([]manifest.PostID{}, q.IDs...)}
	r := newRun(c)
	gone, err := r.wouldGo(ctx, q)
	if err != nil {
		return plan, err
	}
	had, err := takeStock(ctx, r)
	if err != nil {
		return plan, err
	}
	taken, err := r.findTaken(ctx)
	if err != nil {
		return plan, err
	}
	planned, withheld, known := map[manifest.PostID]int{}, map[manifest.PostID]bool{}, map[manifest.PostID]bool{}
	for rec, err := range c.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return plan, err
		}
		name := rec.Key.String()
		why, goes := gone.Of(name)
		known[rec.ID] = true
		if rec.Post.Withheld && !goes {
			withheld[rec.ID] = true
		}
		same := !goes && rec.Image != nil && taken.refuses(r.Policy, rec.ID, *rec.Image) != nil
		if same {
			plan.Same = append(plan.Same, name)
		}
		if (goes || same) && had.rows[name] {
			plan.Rows = append(plan.Rows, name)
		}
		if !goes || rec.Image == nil {
			continue
		}
		at, have := planned[rec.ID]
		if !have {
			at = len(plan.Posts)
			planned[rec.ID] = at
			plan.Posts = append(plan.Posts, PlannedPost{GonePost: why})
		}
		plan.Posts[at].Images++
		if rec.Reading != nil && rec.Reading.Text != "" {
			plan.Posts[at].Texts++
		}
	}
	plan.Withheld = len(withheld)
	plan.Unknown = slices.DeleteFunc(plan.Unknown, func(id manifest.PostID) bool { return known[id] })
	for _, name := range plan.Same { // the copies lose these rows, too
		gone.Entries[name] = state.GonePost{ID: dataset.PostOf(name), State: manifest.StateRemoved,
			Reason: policy.SameAsRemoved}
	}
	list, err := state.OwingCopies(ctx, c.Workspace, gone)
	for _, reported := range list {
		if reported.State != state.CopyClosed && (reported.State != state.CopyGood || len(reported.Owed) > 0) {
			plan.Copies = append(plan.Copies, reported)
		}
	}
	return plan, err
}

// wouldGo are the posts that would be gone after an offline purge.
func (r *run) wouldGo(ctx context.Context, q PurgeRequest) (state.GoneSet, error) {
	var err error
	r.stones, err = state.Stones(ctx, r.Workspace, r.Release, r.Tombstones, r.Now())
	if err != nil {
		return state.GoneSet{}, err
	}
	for _, t := range q.tombstones(r.Now()) {
		r.stones[t.ID] = t
	}
	gone, err := state.MustGo(ctx, r.Workspace, r.stones)
	if err != nil || !r.ConfirmRemovals {
		return gone, err
	}
	confirmed, err := state.GonePosts(ctx, r.Workspace, true)
	maps.Copy(gone.Posts, confirmed.Posts)
	maps.Copy(gone.Entries, confirmed.Entries)
	return gone, err
}

// A Workload says how much work a re-reading would be.
type Workload struct {
	Images int     `json:"images"`  // of live posts that are stored
	Read   int     `json:"to_read"` // images that it would read
	Rate   float64 `json:"rate"`    // images a second of the last re-reading, 0 when not known
	Stale  int     `json:"stale"`   // rows whose posts were last seen live too long ago: they stay, and are not handed out
	// Estimate is how long the reading would take at that rate, 0 when not known.
	Estimate time.Duration `json:"estimate_ns"`
}

// PlanReread says what ReadAgain would have to do. It only reads: Config.Workspace need not be
// locked.
func PlanReread(ctx context.Context, c Config, all bool) (Workload, error) {
	var out Workload
	r := newRun(c)
	var err error
	r.stones, err = state.Stones(ctx, c.Workspace, c.Release, c.Tombstones, c.Now())
	if err != nil {
		return out, err
	}
	g := r.newGatherer(true)
	for rec, err := range c.Workspace.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return out, err
		}
		if !r.readable(rec) {
			continue
		}
		out.Images++
		if g.due(rec, all) {
			out.Read++
		}
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept && c.Policy.Stale(rec.Post.LiveAt, c.Now()) {
			out.Stale++
		}
	}
	rate, err := state.ReadNote[state.OCRRate](ctx, c.Workspace)
	if err != nil {
		return out, err
	}
	out.Rate = float64(rate)
	if out.Rate > 0 {
		out.Estimate = time.Duration(float64(out.Read) / out.Rate * float64(time.Second)).Round(time.Second)
	}
	return out, nil
}
