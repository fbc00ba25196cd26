// Package pipeline is the engine: it turns a release into a dataset, inside a workspace.
//
//	resolve -> fetch -> ocr -> language -> dedupe -> export
//
// # What it promises
//
//   - Reddit's verdict comes first, on every run: an image host is asked only about a
//     post that was seen live in the same run. No answer is no evidence: a post nobody
//     could be asked about keeps the state it had.
//   - Every entry of the manifest ends in exactly one outcome. An entry's trouble is an
//     outcome with a reason; an error of Run is the run's own trouble.
//   - A run that is killed anywhere is continued by the next one, through the same code.
//     Equal answers give equal bytes of Parquet and outcomes.csv, whatever the number of
//     workers, the order of answers or the number of interruptions.
//   - A post found removed leaves the dataset, loses its image, its text and its hashes, and is
//     not fetched again. When more posts than the policy's share vanish in one sweep they are
//     withheld from the dataset instead, and nothing is erased, until the operator confirms.
//   - No row is exported whose post was last seen live longer ago than the policy allows, or
//     before its image was fetched.
//
// # What runs concurrently
//
// Resolve, fetch and ocr overlap, joined by bounded channels under one errgroup:
//
//	resolver: for each batch of 100 posts in manifest order: ask, record, hand on the live ones
//	fetchers: one group for each image host: download, check, strip, hash, store
//	readers:  one for each OCR worker: decode the stored file, read, store
//
// Language, dedupe and export follow when all three have ended; they are pure functions of
// what is stored. ReadAgain has the readers and these alone.
//
// # Limitations
//
// Dedupe holds the hashes and words of all candidates in memory. A run that is killed, or has
// too little time after an interrupt, between finding a post removed and writing the dataset
// leaves the older dataset files in place; the next run replaces them.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Config is what a run works with. Tombstones, ConfirmRemovals, Rehearsal, Access, Retry, Stop,
// Progress and Log may be left out.
type Config struct {
	Release  *manifest.Release
	Manifest manifest.Summary // what Release.Check returned
	// Tombstones are those the release publishes.
	Tombstones []manifest.Tombstone
	Policy     policy.Policy
	Workspace  *workspace.Workspace // locked by this process
	Reddit     *reddit.Client
	OCR        *ocr.Pool
	Workers    int // how many images OCR reads at once
	Language   *language.Filter
	Version    string // of the tool, for the provenance of the dataset
	Now        func() time.Time
	// ConfirmRemovals accepts the mass removal that an earlier run withheld (not what this one
	// finds), and a manifest that drops as much.
	ConfirmRemovals bool
	// Rehearsal marks the workspace as one of made-up posts: a real run refuses it, and a
	// rehearsal refuses a real one.
	Rehearsal bool
	// Access tells whether images may be fetched and rows exported at a time. With an error a run
	// fetches no more, finishes its sweep, so that what is gone goes, and returns the error instead
	// of exporting. nil where no grant is needed.
	Access func(now time.Time) error
	// Retry names outcomes and reasons that are final but to be tried again. A reason that no entry
	// has is refused with *UnknownRetry.
	Retry []string
	// Stop, when closed, makes the run finish what is in flight and return state.ErrInterrupted.
	Stop     <-chan struct{}
	Progress *Progress
	Log      *slog.Logger
}

// grace bounds how long a stopped run waits for what is in flight: a download that has
// begun and the images on the OCR workers' desks take less. lastAct bounds what it then does
// about posts that it found gone.
const (
	grace   = 6 * time.Second
	lastAct = 3 * time.Second
)

// run is one call of Run: the configuration and what the stages share.
type run struct {
	Config
	buried state.Holding // those that hold, the release's among them
	engine ocr.Engine
	queues *queues
	// The resolver alone uses these, until it has ended.
	live     int                      // posts that were live when the run began
	withheld map[manifest.PostID]bool // posts that were withheld then
	erased   int                      // posts that this run erased without a confirmation
	abouts   map[string]policy.Community
	looks    int // how often it asked about posts
	// unanswered are the posts that Reddit gave no verdict on in this run.
	unanswered map[manifest.PostID]bool
	// witness is a post that Reddit answered for in this run, a live one if there is any. An answer
	// that holds it shows that what else was asked for is missing.
	witness *workspace.Post
	// withdrawing lets rows leave the dataset and none come in.
	withdrawing bool
	guardSpares int // duplicates that the policy's guard would keep
	// rereading keeps the text of each reading that is replaced: see ReadAgain.
	rereading bool
	purge     *purge // of a Purge, nil for any other run
}

// Run does the whole job and returns the summary of what became of every entry. The
// errors are state.ErrInterrupted, ctx's error, *reddit.Denied when Reddit refuses the operator,
// and those of the workspace. On every error the workspace is whole and the next Run goes
// on from there.
func Run(ctx context.Context, c Config) (state.Summary, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = NewProgress(nil)
	}
	r := &run{Config: c, engine: c.OCR.Engine(), unanswered: map[manifest.PostID]bool{}, abouts: map[string]policy.Community{}}
	if err := r.access(); err != nil {
		return state.Summary{}, err
	}
	if err := checkRetry(ctx, c.Workspace, c.Retry); err != nil {
		return state.Summary{}, err
	}
	began := c.Now()
	if err := r.open(ctx); err != nil {
		return state.Summary{}, err
	}
	if err := r.Workspace.Note(ctx, r.runEvent(auditlog.Started, "")); err != nil {
		return state.Summary{}, err
	}
	var err error
	if r.rereading, err = r.Workspace.Rereading(ctx); err != nil {
		return state.Summary{}, err
	}
	exported, err := r.inGrace(ctx, r.job)
	if err != nil {
		err = errors.Join(err, r.withdraw(ctx))
	}
	if err := r.noteEnd(ctx, err); err != nil {
		return state.Summary{}, err
	}
	s, err := state.Status(ctx, c.Workspace, c.Now())
	if err != nil {
		return state.Summary{}, err
	}
	s.Elapsed = c.Now().Sub(began)
	s.Files, s.Unchanged, s.Unverified = exported.files, exported.unchanged, len(r.unanswered)
	s.GuardSpares = r.guardSpares
	calls := c.Reddit.Calls()
	s.Calls, s.Looks = &calls, &exported.looks
	return s, state.WriteNote(ctx, c.Workspace, state.LastRun{At: c.Now().UTC().Truncate(time.Second), Elapsed: s.Elapsed,
		Unverified: s.Unverified, Looks: *s.Looks, Calls: *s.Calls})
}

// job gathers and publishes.
func (r *run) job(ctx context.Context) (exported, error) {
	if err := r.gather(ctx); err != nil {
		return exported{}, err
	}
	return r.publish(ctx)
}

// inGrace does a job, and ends it within the grace once the run is asked to stop.
func (r *run) inGrace(ctx context.Context, job func(context.Context) (exported, error)) (exported, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.enforceStop(ctx, cancel)
	out, err := job(ctx)
	if err != nil && r.stopping() && errors.Is(err, context.Canceled) {
		err = state.ErrInterrupted
	}
	return out, err
}

// enforceStop ends a stopped run that does not come to rest within its grace.
func (r *run) enforceStop(ctx context.Context, cancel context.CancelFunc) {
	select {
	case <-ctx.Done():
		return
	case <-r.Stop:
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
		cancel()
	}
}

// withdraw is the last act of a run that ends early, by an interrupt or because Reddit
// refused it, when the dataset holds rows of posts that are known to be gone: they leave it
// now, not at the end of some later run. No row comes in: nobody has looked at its post last, and
// the grant may be over. It asks nobody. A stopped run gives it little time;
// what it can't finish the next run does.
func (r *run) withdraw(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if r.stopping() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lastAct)
		defer cancel()
	}
	err := r.withdrawGone(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		r.Log.Warn("no time to write the dataset without the posts that are gone: the next run does")
		return nil
	}
	return err
}

func (r *run) withdrawGone(ctx context.Context) error {
	r.withdrawing = true
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Result == nil || rec.Result.Outcome != manifest.Kept {
			continue
		}
		switch r.judge(rec).Outcome {
		case manifest.Removed, manifest.Deleted, manifest.Unavailable:
			_, err := r.write(ctx)
			return err
		}
	}
	return nil
}

// open binds the workspace to the release and mends what a killed run left behind.
func (r *run) open(ctx context.Context) error {
	rel := r.Release
	b := workspace.Binding{Release: r.releaseName(), ReleaseDigest: rel.Digest, ManifestDigest: rel.ManifestDigest,
		Schema: rel.Schema, Splits: r.Manifest.Splits}
	if err := r.keepOwed(ctx, b); err != nil {
		return err
	}
	if err := r.Workspace.Load(ctx, b, rel.Entries(ctx), r.allowLoss); err != nil {
		return fmt.Errorf("load the manifest into the workspace: %w", err)
	}
	if err := state.WriteNote(ctx, r.Workspace, state.PolicyNote{Policy: r.Policy}); err != nil {
		return err
	}
	if err := r.takeOver(ctx); err != nil {
		return err
	}
	if err := r.exhume(ctx); err != nil {
		return err
	}
	// Content of a tombstoned post can be here when the release's list grew or a backup came
	// back: Sweep erases it before anything else happens.
	swept, err := r.Workspace.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("clean up after an earlier run: %w", err)
	}
	r.Log.Debug("workspace swept", "swept", swept)
	r.Progress.begin(r.Manifest.Entries)
	return nil
}

// releaseName is the release's name as it stands in everything that is written: nobody may
// take the made-up posts of a rehearsal for the dataset.
func (r *run) releaseName() string {
	if r.Rehearsal {
		return state.RehearsalOf(r.Release.Name)
	}
	return r.Release.Name
}

// takeOver adds tombstones that state.db need not have.
func (r *run) takeOver(ctx context.Context) error {
	add, err := state.OtherTombstones(ctx, r.Workspace, r.Tombstones)
	if err != nil {
		return err
	}
	if err := r.Workspace.AddTombstones(ctx, add); err != nil {
		return fmt.Errorf("take over the release's tombstones: %w", err)
	}
	return nil
}

// allowLoss is asked when a changed manifest no longer names images that are stored.
func (r *run) allowLoss(images, of int) error {
	if r.ConfirmRemovals || float64(images) <= max(1, r.Policy.Reddit.MassRemovalShare*float64(of)) {
		return nil
	}
	return &LossError{Images: images, Of: of}
}

// A LossError says that a changed manifest would erase more of the stored images than the
// policy's mass_removal_share.
type LossError struct{ Images, Of int }

func (e *LossError) Error() string {
	return fmt.Sprintf("the manifest no longer names %d of the %d images in the workspace", e.Images, e.Of)
}

// access returns why this run may neither fetch nor export now, or nil.
func (r *run) access() error {
	if r.Access == nil {
		return nil
	}
	return r.Access(r.Now())
}

// stopping reports whether the run was asked to stop.
func (r *run) stopping() bool {
	select {
	case <-r.Stop:
		return true
	default:
		return false
	}
}
