package pipeline

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/reading"
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
	// Reread are stored images that are read again: Remask of them because text.mask_names of the policy was another when
	// they were read, the rest because the OCR engine, its model or its settings were. Without Config.OCR the rest is not
	// known, and 0.
	Reread int   `json:"reread,omitempty"`
	Remask int   `json:"remask,omitempty"`
	stored int64 // bytes of the images that are here
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
	// Part is how many posts a run finishes with within it when all others are asked about as well, all if 0, and Parts
	// how many such parts there are.
	Part  int `json:"part,omitempty"`
	Parts int `json:"parts,omitempty"`
	// Most is how many posts can be asked about within it, set when that is less than there are, and where no part leaves
	// the time for that, how many a run finishes with.
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

// PlanRun says what Run would do where every post that is not known to be gone is live, and every image lies where it
// was asked for last. It only reads: Config.Workspace need not be locked, and is nil where there is none.
func PlanRun(ctx context.Context, c Config) (RunPlan, error) {
	p := RunPlan{Posts: c.Manifest.Posts, Entries: c.Manifest.Entries, Images: c.Manifest.Entries}
	r := newRun(c)
	if c.Workspace != nil {
		if err := r.checkList(ctx); err != nil {
			return p, err
		}
		if err := p.count(ctx, r, r.upcoming(ctx, workspace.Select{})); err != nil {
			return p, err
		}
	}
	p.time(c)
	return p, nil
}

// PlanRecheck says what Recheck would do, which fetches nothing, as PlanRun does.
func PlanRecheck(ctx context.Context, c Config) (RunPlan, error) {
	p := RunPlan{Posts: c.Manifest.Posts, Entries: c.Manifest.Entries}
	if c.Workspace != nil {
		var err error
		p.Entries, p.Posts, err = c.Workspace.Counts(ctx)
		if err != nil {
			return p, err
		}
		if err := p.count(ctx, newRun(c), c.Workspace.Records(ctx, workspace.Select{})); err != nil {
			return p, err
		}
		p.Images, p.Reread, p.Remask = 0, 0, 0
	}
	p.time(c)
	return p, nil
}

// count counts what entries need, and measures the images that are stored.
func (p *RunPlan) count(ctx context.Context, r *run, entries iter.Seq2[workspace.Record, error]) error {
	if err := r.suppose(ctx); err != nil {
		return err
	}
	removed, err := r.removedPictures(ctx)
	if err != nil {
		return err
	}
	p.Images = 0
	t := newTerms(r.Config, removed, nil)
	if err := t.findSuspected(ctx, r.Workspace); err != nil {
		return err
	}
	if r.OCR != nil {
		t.reader = reading.New(r.OCR, r.Policy)
	}
	for rec, err := range entries {
		if err != nil {
			return err
		}
		s := next(t, rec, t.supposed(rec, r.stones))
		if s.fetch {
			p.Images++
		}
		if rec.Image != nil && rec.Reading != nil && !s.gone && s.outcome == "" {
			masked := state.MaskedOtherwise(*rec.Reading, r.Policy)
			if masked {
				p.Remask++
			}
			if masked || s.read {
				p.Reread++
			}
		}
		switch {
		case rec.Image != nil:
			p.Stored++
			p.stored += rec.Image.Bytes
		case !s.fetch:
			p.Settled++
		}
	}
	return nil
}

// suppose reads the tombstones that would hold in a job, which open stores.
func (r *run) suppose(ctx context.Context) (err error) {
	if err := state.CheckTombstones(ctx, r.Workspace); err != nil {
		return err
	}
	r.stones, err = state.Stones(ctx, r.Workspace, r.Release, r.Tombstones, r.Policy, r.Now())
	if err != nil {
		return err
	}
	listed, err := r.newListed(ctx)
	if err != nil {
		return err
	}
	for _, t := range listed {
		r.stones[t.ID] = t
	}
	return nil
}

// upcoming yields what is stored of the entries as they will be when a job has loaded the manifest.
func (r *run) upcoming(ctx context.Context, o workspace.Select) iter.Seq2[workspace.Record, error] {
	return func(yield func(workspace.Record, error) bool) {
		b, _, err := r.Workspace.Binding(ctx)
		if err != nil {
			yield(workspace.Record{}, err)
			return
		}
		if r.isLoaded(b) {
			r.Workspace.Records(ctx, o)(yield)
			return
		}
		seen := map[manifest.Key]bool{} // an entry can have several rows
		var batch []manifest.Entry
		for e, err := range r.entries(ctx) {
			if err != nil {
				yield(workspace.Record{}, err)
				return
			}
			if seen[e.Key] {
				continue
			}
			seen[e.Key] = true
			batch = append(batch, e)
			if len(batch) == upcomingAtOnce {
				if !r.yieldStored(ctx, o, batch, yield) {
					return
				}
				batch = batch[:0]
			}
		}
		r.yieldStored(ctx, o, batch, yield)
	}
}

// upcomingAtOnce is how many entries a question to the workspace is about.
const upcomingAtOnce = 1000

// yieldStored yields entries with what is stored of them, and reports whether the loop goes on.
func (r *run) yieldStored(ctx context.Context, o workspace.Select, entries []manifest.Entry,
	yield func(workspace.Record, error) bool) bool {
	stored := map[manifest.Key]workspace.Record{}
	o.IDs = []manifest.PostID{}
	for _, e := range entries {
		o.IDs = append(o.IDs, e.ID)
	}
	for rec, err := range r.Workspace.Records(ctx, o) {
		if err != nil {
			return yield(rec, err)
		}
		stored[rec.Key] = rec
	}
	for _, e := range entries {
		rec := stored[e.Key]
		rec.Entry = e
		rec.Post.ID = e.ID
		if !yield(rec, nil) {
			return false
		}
	}
	return true
}

// time fills in what follows from the policy's rates and from the images that are stored.
func (p *RunPlan) time(c Config) {
	mean := int64(usualImage)
	p.Measured = p.Stored > 0
	if p.Measured {
		mean = p.stored / int64(p.Stored)
	}
	p.Bytes = int64(p.Images) * mean
	// Each image once by itself and once in the dataset, of which one shard is there twice while it is replaced.
	p.Disk = 2*p.Bytes + int64(p.Images)*usualEntry + min(int64(p.Images+p.Stored)*mean, dataset.ShardBytes)
	p.Within, p.Hosts = c.Policy.Reddit.RecheckWithin, []HostPlan{}
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
	p.Read = span(float64(p.Images+p.Reread) / (usualRate * float64(max(c.Workers, 1))))
	p.All = max(p.Sweep, p.Fetch, p.Read) + p.Look
	share := func(d time.Duration) int { return int(float64(p.Posts) * float64(p.Within) / float64(d)) }
	switch {
	case p.Sweep > p.Within:
		p.Most = share(p.Sweep)
	case p.All > p.Within:
		// While the last part runs, the others are asked about: Part*All + (Posts-Part)*Sweep is at most Posts*Within.
		p.Part = int(float64(p.Posts) * float64(p.Within-p.Sweep) / float64(p.All-p.Sweep))
		if p.Part > 0 {
			p.Parts = (p.Posts + p.Part - 1) / p.Part
		} else {
			p.Most = max(share(p.All), 1)
		}
	}
}

// span is a time in seconds, also one that is longer than a time.Duration.
func span(seconds float64) time.Duration {
	return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/4))
}

// A PurgePlan is what a purge would remove by what is known now.
type PurgePlan struct {
	Posts    []PlannedPost      `json:"posts"` // as PurgeReport.Erased has them
	Rows     []string           `json:"rows"`  // of the dataset, as PurgeReport has them
	Others   []string           `json:"other_rows,omitempty"`
	Same     []string           `json:"same_as_removed"` // entries that show the same picture as one that was taken down
	Copies   []state.CopyReport `json:"copies"`
	Withheld int                `json:"withheld"` // posts that are gone, or lost images, and wait for a confirmation
	// WithheldImages is how many of these are there, and lost images.
	WithheldImages int `json:"withheld_images,omitempty"`
	// Lost are the missing image files that the confirmation is about. It is then not about the posts that are withheld.
	Lost int `json:"lost_files,omitempty"`
	// Heard are posts with an image that an audit heard are gone: they go, too, unless they are so many at once that they
	// are withheld.
	Heard int `json:"heard_gone,omitempty"`
	// Unknown are posts of the request that the manifest of the last run does not have.
	Unknown []manifest.PostID `json:"unknown"`
	// Already are the tombstones that posts of the request have.
	Already []state.TombstoneEntry `json:"already"`
	// Empty are the other posts of the request of which there is neither image nor text. They would get a tombstone.
	Empty []manifest.PostID `json:"empty"`
}

// A PlannedPost is a post that would be erased, or that would lose images and stays.
type PlannedPost struct {
	state.RemovedPost
	Images int `json:"images"` // that would be erased, as the texts
	Texts  int `json:"texts"`
}

// PlanPurge says what Purge would remove offline. It only reads: Config.Workspace need not be locked. It fails with
// *MissingError where Purge would.
func PlanPurge(ctx context.Context, c Config, q PurgeRequest) (PurgePlan, error) {
	plan := PurgePlan{Posts: []PlannedPost{}, Rows: []string{}, Same: []string{}, Copies: []state.CopyReport{},
		Unknown: append([]manifest.PostID{}, q.IDs...), Already: []state.TombstoneEntry{}}
	r := newRun(c)
	erased, lost, err := r.supposePurge(ctx, q, &plan)
	if err != nil {
		return plan, err
	}
	removed, err := r.removedPictures(ctx)
	if err != nil {
		return plan, err
	}
	heard, err := state.ReadNote[state.HeardNote](ctx, c.Workspace)
	if err != nil {
		return plan, err
	}
	had, err := mayLeave(ctx, c.Workspace)
	if err != nil {
		return plan, err
	}
	e := erasing{plan: &plan, erased: erased, lost: lost, heard: heard, refuses: func(rec workspace.Record) *policy.Fault {
		return removed.Refuses(r.Policy, rec.ID, *rec.Image)
	}, planned: map[manifest.PostID]PlannedPost{}}
	after := e.entries(r.Workspace.Records(ctx, workspace.Select{}))
	rows, err := r.supposeTakeOut(ctx, after)
	if err != nil {
		return plan, err
	}
	for _, name := range plan.Same { // the copies lose these rows, too
		erased.Entries[name] = state.GonePost{ID: dataset.PostOf(name), State: manifest.StateRemoved,
			Reason: policy.SameAsRemoved}
	}
	for _, row := range rows {
		if erased.HasRow(row) {
			plan.Rows = append(plan.Rows, row)
		} else {
			plan.Others = append(plan.Others, row)
		}
	}
	posts, err := removedOf(ctx, c.Workspace, had, erased)
	if err != nil {
		return plan, err
	}
	for _, p := range posts {
		planned := e.planned[p.ID]
		planned.RemovedPost = p
		plan.Posts = append(plan.Posts, planned)
	}
	gone, err := state.MustLeaveCopies(ctx, c.Workspace, erased, r.stones, r.Policy)
	if err != nil {
		return plan, err
	}
	list, err := state.OwingCopies(ctx, c.Workspace, gone)
	for _, reported := range list {
		if reported.State != state.CopyClosed && (reported.State != state.CopyGood || len(reported.Owed) > 0) {
			plan.Copies = append(plan.Copies, reported)
		}
	}
	return plan, err
}

// supposePurge are the rows whose content an offline purge would erase, by the tombstones that would hold then, and the
// entries whose image is lost. The plan gets the tombstones that posts of the request have now.
func (r *run) supposePurge(ctx context.Context, q PurgeRequest, plan *PurgePlan) (erased state.GoneSet,
	lost map[manifest.Key]bool, err error) {
	if err := r.suppose(ctx); err != nil {
		return erased, nil, err
	}
	lost, err = r.supposeLost(ctx, plan)
	if err != nil {
		return erased, nil, err
	}
	plan.Already = q.already(r.stones)
	plan.Empty = slices.DeleteFunc(append([]manifest.PostID{}, q.IDs...), r.stones.Has)
	for _, t := range q.tombstones(r.Now()) {
		r.stones[t.ID] = t
	}
	erased, err = state.MustErase(ctx, r.Workspace, r.stones, r.Policy)
	if err != nil || !r.confirmsRemovals() {
		return erased, lost, err
	}
	confirmed, err := state.Unconfirmed(ctx, r.Workspace)
	maps.Copy(erased.Posts, confirmed.Posts)
	maps.Copy(erased.Entries, confirmed.Entries)
	for id, p := range confirmed.Posts {
		if p.State != manifest.StateUnavailable && !r.stones.Has(id) {
			r.stones[id] = workspace.Tombstone{Reason: p.Reason, Tombstone: manifest.Tombstone{ID: id, State: p.State}}
		}
	}
	return erased, lost, err
}

// supposeLost are the entries whose image repair would find missing and not find in the dataset.
func (r *run) supposeLost(ctx context.Context, plan *PurgePlan) (map[manifest.Key]bool, error) {
	missing, err := r.supposeMissing(ctx)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	if r.spent {
		plan.Lost = len(missing)
	}
	lost := map[manifest.Key]bool{}
	for k := range missing {
		lost[k] = true
	}
	err = r.findInDataset(ctx, slices.Collect(maps.Keys(missing)), func(k manifest.Key, body []byte) error {
		if state.SHA256(body) == missing[k] {
			delete(lost, k)
		}
		return nil
	})
	return lost, err
}

// supposeMissing are the digests of the images that repair would find missing, by entry. The error is that of repair.
func (r *run) supposeMissing(ctx context.Context) (map[manifest.Key]string, error) {
	a, err := r.Workspace.Astray(ctx)
	if err != nil || len(a.Missing) == 0 {
		return nil, err
	}
	// What is erased when the workspace is opened is not missed.
	erased, err := state.MustErase(ctx, r.Workspace, r.stones, r.Policy)
	if err != nil {
		return nil, err
	}
	a.Missing = slices.DeleteFunc(a.Missing, func(k manifest.Key) bool { return erased.HasRow(k.String()) })
	missing := map[manifest.Key]string{}
	for _, k := range a.Missing {
		missing[k] = ""
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true}) {
		_, isMissing := missing[rec.Key]
		switch {
		case err != nil:
			return nil, err
		case rec.Image == nil:
		case isMissing:
			missing[rec.Key] = rec.Image.SHA256
		case erased.HasRow(rec.Key.String()):
			a.Images--
		}
	}
	return missing, r.allowMissing(a)
}

// CheckRun says why Run would not begin in Config.Workspace, as far as that shows by reading: a symbolic link in it,
// another release, a manifest without many of the stored images, damaged tombstones, or many images that are missing.
// The workspace need not be locked.
func CheckRun(ctx context.Context, c Config) error { return newRun(c).check(ctx, (*run).supposeLoad) }

// CheckRecheck is CheckRun for Recheck, which leaves a changed manifest to the next run.
func CheckRecheck(ctx context.Context, c Config) error {
	return newRun(c).check(ctx, func(*run, context.Context) error { return nil })
}

func (r *run) check(ctx context.Context, load func(*run, context.Context) error) error {
	if err := r.Workspace.CheckLinks(ctx); err != nil {
		return err
	}
	err := r.isBound(ctx)
	if errors.Is(err, workspace.ErrNoWorkspace) {
		return nil // it is empty
	}
	if err == nil {
		err = load(r, ctx)
	}
	if err == nil {
		err = r.suppose(ctx)
	}
	if err == nil {
		_, err = r.supposeMissing(ctx)
	}
	return err
}

// supposeLoad fails where load would because the manifest no longer names images that are stored, or removals that wait
// for a confirmation.
func (r *run) supposeLoad(ctx context.Context) error {
	b, _, err := r.Workspace.Binding(ctx)
	if err != nil || r.isLoaded(b) {
		return err
	}
	left, of := map[manifest.Key]bool{}, 0
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return err
		}
		if rec.Image == nil {
			continue
		}
		of++
		if !isWithheld(rec) { // else it is asked about as a removal
			left[rec.Key] = true
		}
	}
	for e, err := range r.entries(ctx) {
		if err != nil {
			return err
		}
		delete(left, e.Key)
	}
	if len(left) > 0 {
		if err := r.allowLoss(len(left), of); err != nil {
			return err
		}
	}
	posts, err := r.leaving(ctx)
	maps.DeleteFunc(posts, func(_ manifest.PostID, unconfirmed bool) bool { return !unconfirmed })
	if err != nil || len(posts) == 0 || r.confirmsRemovals() {
		return err
	}
	return &WaitingError{len(posts)}
}

// isLoaded reports whether a workspace with this binding has the entries of the release as they are now.
func (r *run) isLoaded(b workspace.Binding) bool {
	return b.ReleaseDigest == r.Release.Digest && b.ManifestDigest == r.Release.ManifestDigest
}

// An erasing notes in a plan what of the entries a purge would erase.
type erasing struct {
	plan    *PurgePlan
	erased  state.GoneSet
	lost    map[manifest.Key]bool // entries whose image is not there any more
	heard   state.HeardNote
	refuses func(workspace.Record) *policy.Fault // says that an image shows a picture that was taken down
	planned map[manifest.PostID]PlannedPost      // how much of each post goes
}

// entries yields entries as they would be after the purge.
func (e *erasing) entries(before iter.Seq2[workspace.Record, error]) iter.Seq2[workspace.Record, error] {
	return func(yield func(workspace.Record, error) bool) {
		withheld, lost, heard := map[manifest.PostID]bool{}, map[manifest.PostID]bool{}, map[manifest.PostID]bool{}
		content := map[manifest.PostID]bool{} // of the known posts, whether there is an image or a text
		for rec, err := range before {
			if err == nil {
				content[rec.ID] = content[rec.ID] || rec.Image != nil || rec.Reading != nil
				_, goes := e.erased.Of(rec.Key.String())
				rec = e.entry(rec)
				if _, gone := e.heard.Applied(rec); gone && rec.Image != nil {
					heard[rec.ID] = true
				}
				if t := rec.Trouble; rec.Post.Unconfirmed {
					withheld[rec.ID] = true
				} else if t != nil && t.Beside == workspace.Unconfirmed && !goes {
					lost[rec.ID] = true
				}
			}
			if !yield(rec, err) {
				return
			}
		}
		e.plan.Withheld, e.plan.WithheldImages, e.plan.Heard = len(withheld)+len(lost), len(lost), len(heard)
		unknown := func(id manifest.PostID) bool { _, known := content[id]; return !known }
		e.plan.Empty = slices.DeleteFunc(e.plan.Empty, func(id manifest.PostID) bool { return content[id] || unknown(id) })
		e.plan.Unknown = slices.DeleteFunc(e.plan.Unknown, func(id manifest.PostID) bool { return !unknown(id) })
	}
}

// entry is one of entries.
func (e *erasing) entry(rec workspace.Record) workspace.Record {
	switch {
	case e.erased.HasRow(rec.Key.String()):
		e.count(rec)
		if e.erased.Has(rec.ID) {
			rec.Post.Withheld, rec.Post.Unconfirmed, rec.Trouble = false, false, nil
		} else if rec.Trouble != nil {
			t := *rec.Trouble
			t.Beside, rec.Trouble = "", &t
		}
	case e.lost[rec.Key]:
		if rec.Trouble != nil && !rec.Trouble.Withheld() {
			rec.Trouble = nil
		}
	case rec.Image == nil:
		return rec
	default:
		f := e.refuses(rec)
		if f == nil {
			return rec
		}
		e.count(rec)
		e.plan.Same = append(e.plan.Same, rec.Key.String())
		t := trouble(f)
		rec.Trouble = &t
	}
	rec.Image, rec.Reading = nil, nil
	return rec
}

// count counts what an entry has that would be erased.
func (e *erasing) count(rec workspace.Record) {
	p := e.planned[rec.ID]
	if rec.Image != nil {
		p.Images++
	}
	if rec.Reading != nil && rec.Reading.Text != "" {
		p.Texts++
	}
	e.planned[rec.ID] = p
}

// supposeTakeOut returns the rows that leave the dataset when these are its entries, in their order.
func (r *run) supposeTakeOut(ctx context.Context, entries iter.Seq2[workspace.Record, error]) ([]string, error) {
	d, err := r.readDataset(ctx)
	if err != nil {
		return nil, err
	}
	j := state.Judge{Policy: r.Policy, Tombstones: r.stones, Now: r.Now()}
	out, err := j.TakeOut(entries, d.rows, nil, r.ConfirmRemovals) // an outcome more or less takes no row out
	if err != nil {
		return nil, err
	}
	unwanted, err := d.unwanted(ctx, r)
	if err != nil {
		return nil, err
	}
	lost := map[string]bool{} // with a file that goes whole
	for _, name := range unwanted {
		if _, err := state.ReadRows(ctx, r.Workspace, name, lost); err != nil && ctx.Err() != nil {
			return nil, err // one that can't be read names no rows
		}
	}
	rows := []string{}
	for _, res := range out.Results {
		if row := res.Key.String(); out.Leave[row] || lost[row] && !d.rows[row] {
			rows = append(rows, row)
		}
	}
	return rows, nil
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

// PlanReread says what ReadAgain would have to do. It only reads: Config.Workspace need not be locked.
func PlanReread(ctx context.Context, c Config, all bool) (Workload, error) {
	var out Workload
	r := newRun(c)
	if err := r.suppose(ctx); err != nil {
		return out, err
	}
	g := r.newGatherer(nil, true)
	for rec, err := range r.upcoming(ctx, workspace.Select{WithEarlier: true}) {
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
