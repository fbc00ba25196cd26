// Package pipeline is the engine: it turns a release into a dataset, inside a workspace.
//
//	resolve -> fetch -> ocr -> language -> dedupe -> export
//
// What it promises:
//
//   - Reddit's verdict comes first, on every run: an image host is asked only about a post that was seen live in the
//     same run. A post that could not be asked about keeps the state it had.
//   - Every entry of the manifest ends in exactly one outcome. An error of Run is the run's own trouble.
//   - A run that is killed anywhere is continued by the next one. Equal answers give equal bytes of Parquet and
//     outcomes.csv, whatever the number of workers, the order of answers or of interruptions.
//   - A post found removed leaves the dataset, loses its image, text and hashes, and is not fetched again; so does an image
//     that its author took out of a gallery, or whose crosspost lost its parent. When more vanish in one sweep than the
//     policy's share, they are withheld, and nothing is erased until the operator confirms.
//   - Nothing else that Reddit or an image host answers costs a stored image or its row.
//   - Run, merge and re-reading let rows into the dataset. Every job takes out what must go, when it ends, however it ends
//     (takeout.go). A stored result is kept exactly if the row is in the dataset.
//   - No row comes in whose post was last seen live longer ago than the policy allows, or before its image was fetched.
//
// Resolve, fetch and ocr overlap, joined by bounded channels. Language, dedupe and export follow; they are pure
// functions of what is stored (state.Judge.Decide), and hold the hashes, words and results of all entries in memory. A
// job that only asks reads these meanwhile (state.DraftAll).
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/pipeline/reddit/sweep"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Config is what a job works with. Tombstones, Listed, ConfirmRemovals, Rehearsal, Entry, Access, Retry, Stop and
// LastAct may be left out, and OCR, Workers and Language where the job reads no image.
type Config struct {
	Release  *manifest.Release
	Manifest manifest.Summary // what Release.Check returned
	// Tombstones are those the release publishes.
	Tombstones []manifest.Tombstone
	Listed     []manifest.ReasonedTombstone // of lists of the workspace that were kept elsewhere: a purge names them
	Policy     policy.Policy
	PolicyText []byte               // its file, where the release has none: run, split and merge keep a copy
	Workspace  *workspace.Workspace // locked by this process
	Reddit     Reddit               // nil for a recheck or a purge that asks nobody
	OCR        reading.Engine
	Workers    int // how many images OCR reads at once
	Language   *language.Filter
	Version    string // of the tool, for the provenance of the dataset
	Now        func() time.Time
	// ConfirmRemovals accepts the first of these that there is: a manifest that drops many images, many image files
	// that are missing, and the mass removal that an earlier run withheld (not what this one finds).
	ConfirmRemovals bool
	Rehearsal       bool // the workspace is one of made-up posts
	// Entry changes an entry of a rehearsal before it is loaded, or leaves it out. nil changes none.
	Entry func(manifest.Entry) (manifest.Entry, bool)
	// Access tells whether images may be fetched and rows exported at a time. With an error a run only finishes its
	// sweep, so that what is gone goes, and returns the error. nil where no grant is needed.
	// A recheck and a purge need none: they bring nothing in.
	Access   func(now time.Time) error
	Retry    []string        // final outcomes and reasons to be tried again; one that no entry has is *UnknownRetry
	Stop     <-chan struct{} // closed, it makes the run finish what is in flight and return state.ErrInterrupted
	LastAct  time.Duration   // how long a run that is stopped may take posts out that are gone; 3 s where it is 0
	Progress *Progress
	Log      *slog.Logger
}

// A Reddit is what a job asks Reddit and its image hosts by. *reddit.Client is one; a nil one of these is not nil here.
type Reddit interface {
	sweep.Asker
	About(ctx context.Context, subreddit string) (manifest.Reason, error)
	Download(context.Context, reddit.Candidate) (reddit.Download, error)
	GivenUp() []reddit.HostTrouble
	Calls() calls.Counts
}

const (
	grace   = 6 * time.Second // a stopped run waits for what is in flight
	lastAct = 3 * time.Second // then it deals with posts that it found gone
)

// A run is what the stages of one job share.
type run struct {
	Config
	heard   state.HeardNote        // what audits heard since the last sweep
	settled bool                   // that, and what is confirmed
	stones  state.Holding          // tombstones that hold, the release's among them; the asker alone changes them
	made    dataset.Provenance     // the OCR engine, tool and Go version that will make the dataset
	dropped []manifest.Key         // entries whose image this job removed: the same picture was taken down elsewhere
	draft   *state.Draft           // of the outcomes, where it was made while Reddit was asked
	copies  []state.CopyReport     // registered copies after this job took rows out of them
	hosts   []state.HostTrouble    // image hosts that sent nothing
	wrote   bool                   // the dataset has exactly what was decided
	cleared bool                   // what must go has gone from dataset, shards and copies
	spent   bool                   // ConfirmRemovals answered for missing files, or a manifest that lost entries
	loads   bool                   // the job has loaded the manifest
	later   []workspace.LooseImage // image files without rows that a later job takes back
	// laterGone are those of them whose posts turned out to be gone.
	laterGone []manifest.Key
	leftGone  []state.RemovedPost // removed before a manifest was loaded that does not name them all
	out       state.Summary       // what the job says of the dataset: Files, Unchanged, GuardSpares, Looks, rows
}

func newRun(c Config) *run {
	r := &run{Config: c, copies: []state.CopyReport{}}
	if c.OCR != nil {
		r.made = engineProvenance(c.OCR.Engine(), c.Policy, c.Version)
	}
	return r
}

// do is the frame of a job: it opens the workspace, does the body, and takes out what is gone, however the body ended.
// Its error says what had to go and is still there. bind is load for a job that lets rows in, else isBound. A driver
// need not remember what stands here.
func (r *run) do(ctx context.Context, bind, body func(context.Context) error) (state.Summary, error) {
	began, reported := r.Now(), r.hasReport()
	had, err := mayLeave(ctx, r.Workspace) // before it is opened, which erases what an earlier job left
	if err != nil {
		return state.Summary{}, err
	}
	if err := r.open(ctx, bind, r.event(auditlog.Started, "")); err != nil {
		return state.Summary{}, r.unfinished(ctx, err)
	}
	err = r.inGrace(ctx, body)
	if ctx.Err() == nil {
		err = errors.Join(err, r.settleUnasked(ctx), r.takeOut(ctx))
	}
	sum, err := r.end(ctx, began, err)
	if err != nil {
		return sum, r.unfinished(ctx, err)
	}
	gone, err := state.MustErase(ctx, r.Workspace, r.stones, r.Policy)
	if err != nil {
		return sum, err
	}
	sum.ReportGone = reported && !r.hasReport()
	sum.Removed, err = removedOf(ctx, r.Workspace, had, gone)
	sum.Removed = r.addLaterGone(sum.Removed, gone)
	return sum, err
}

// hasReport reports whether the workspace has a report.
func (r *run) hasReport() bool {
	f, err := r.Workspace.OpenFile(workspace.ReportName)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// doAsking is do for a job that asks Reddit, which leaves a note of what it asked.
func (r *run) doAsking(ctx context.Context, bind func(context.Context) error, body func(context.Context,
	*asker) error) (state.Summary, error) {
	s := newAsker(r)
	sum, err := r.do(ctx, bind, func(ctx context.Context) error { return body(ctx, s) })
	if err != nil {
		return state.Summary{}, err
	}
	sum.Unverified, sum.Back = len(s.unanswered), len(s.back)
	last := state.LastRun{At: r.Now().UTC().Truncate(time.Second), Elapsed: sum.Elapsed, Unverified: sum.Unverified}
	if sum.Looks != nil {
		last.Looks = *sum.Looks
	}
	if r.Reddit != nil {
		last.Calls = r.Reddit.Calls()
		sum.Calls = &last.Calls
	}
	return sum, state.WriteNote(ctx, r.Workspace, last)
}

// open mends what a killed run left behind. A job that lets rows in binds the workspace to the release before; the
// others leave a changed manifest to the next run. Then the log hears what started.
func (r *run) open(ctx context.Context, bind func(context.Context) error, started auditlog.Event) error {
	if err := r.Workspace.CheckImages(ctx); err != nil { // the other folders were looked through when it was opened
		return err
	}
	if err := state.CheckTombstones(ctx, r.Workspace); err != nil {
		return err
	}
	if err := bind(ctx); err != nil {
		return err
	}
	// Tombstones before anything is mended: Sweep erases by them.
	stones, err := state.OtherTombstones(ctx, r.Workspace, r.Release, r.Tombstones, r.Now())
	if err != nil {
		return err
	}
	if err := r.Workspace.AddTombstones(ctx, stones); err != nil {
		return fmt.Errorf("take over the release's tombstones: %w", err)
	}
	if err := r.holdTombstones(ctx); err != nil {
		return err
	}
	if err := r.takeListed(ctx); err != nil {
		return err
	}
	// Content of a tombstoned post can be here when the release's list grew or a backup came
	// back: Sweep erases it before anything else happens.
	swept, err := r.Workspace.Sweep(ctx, r.repair)
	if err != nil {
		return fmt.Errorf("clean up after an earlier run: %w", err)
	}
	r.Log.Debug("workspace swept", "swept", swept)
	if swept.Strays > 0 {
		r.Log.Warn("files in images/ that no run wrote were removed: a picture that was taken down may lie there under any name",
			"files", swept.Strays)
	}
	if n := swept.Orphans - swept.Strays; n > 0 {
		r.Log.Warn("image files without a row were removed: a killed run or an unfinished removal leaves some, and a "+
			"backup that is laid over a workspace all that came since", "files", n)
	}
	// After the images are back of which state.db knew nothing: only of what was here a removal is withheld.
	if err := r.takeHeard(ctx); err != nil {
		return err
	}
	if r.loads {
		if err := r.forgetUnwritten(ctx); err != nil {
			return err
		}
	}
	entries, _, err := r.Workspace.Counts(ctx)
	if err != nil {
		return err
	}
	r.Progress.begin(entries)
	return r.Workspace.Note(ctx, started)
}

// bind binds the workspace to the release, and stores its entries.
func (r *run) bind(ctx context.Context) error {
	rel := r.Release
	b := workspace.Binding{Release: r.releaseName(), ReleaseDigest: rel.Digest, ManifestDigest: rel.ManifestDigest,
		Schema: rel.Schema.Joined(), Splits: r.Manifest.Splits}
	if err := r.Workspace.Load(ctx, b, safely.Ahead(ctx, r.entries(ctx)), r.allowLoss); err != nil {
		return fmt.Errorf("load the manifest into the workspace: %w", err)
	}
	r.loads = true
	return nil
}

// load binds the workspace to the release and its policy.
func (r *run) load(ctx context.Context) error {
	if err := r.checkList(ctx); err != nil {
		return err
	}
	if err := r.settleLeaving(ctx); err != nil {
		return err
	}
	if err := r.bind(ctx); err != nil {
		return err
	}
	rel := r.Release
	// Recheck, purge and audit find list and policy there.
	if rel.IsList() {
		if _, err := r.Workspace.Replace(ctx, manifest.ListName,
			func(w io.Writer) error { return rel.WriteList(ctx, w) }, nil); err != nil {
			return fmt.Errorf("keep the list in the workspace: %w", err)
		}
	}
	if r.PolicyText != nil {
		if _, err := r.Workspace.Replace(ctx, state.PolicyFile,
			func(w io.Writer) error { _, err := w.Write(r.PolicyText); return err }, nil); err != nil {
			return fmt.Errorf("keep the policy in the workspace: %w", err)
		}
	}
	return state.WriteNote(ctx, r.Workspace, state.PolicyNote{Policy: r.Policy})
}

// checkList returns a *workspace.Altered for a list that is the workspace's own copy and that no command left there:
// what it no longer names would be erased.
func (r *run) checkList(ctx context.Context) error {
	if !r.Release.IsList() {
		return nil
	}
	named, err := os.Stat(r.Release.ManifestPath)
	if err != nil {
		return err
	}
	own, err := os.Stat(filepath.Join(r.Workspace.Dir(), manifest.ListName))
	if err != nil || !os.SameFile(named, own) {
		return nil // there is no copy to mistake the list for, or the list is somebody's own
	}
	return r.Workspace.CheckFile(ctx, manifest.ListName)
}

// isBound refuses a workspace that belongs to another release, or to none.
func (r *run) isBound(ctx context.Context) error {
	b, bound, err := r.Workspace.Binding(ctx)
	switch {
	case err != nil:
		return err
	case !bound:
		return fmt.Errorf("%w: no run has loaded a release into it", workspace.ErrNoWorkspace)
	case b.Release != r.releaseName():
		return &workspace.OtherRelease{Have: b.Release, Want: r.releaseName()}
	}
	return nil
}

// entries yields those of the manifest, in a rehearsal as they are to be.
func (r *run) entries(ctx context.Context) iter.Seq2[manifest.Entry, error] {
	return func(yield func(manifest.Entry, error) bool) {
		for e, err := range r.Release.Entries(ctx) {
			stays := true
			if r.Entry != nil && err == nil {
				e, stays = r.Entry(e)
			}
			if stays && !yield(e, err) {
				return
			}
		}
	}
}

// allowLoss is asked when a changed manifest no longer names images that are stored.
func (r *run) allowLoss(images, of int) error {
	few := r.Rehearsal || float64(images) <= max(1, r.Policy.Reddit.MassRemovalShare*float64(of))
	if !few && !r.ConfirmRemovals {
		return &LossError{Images: images, Of: of}
	}
	r.spent = r.spent || !few // a run binds a second time, to what it then has of the manifest
	r.out.LeftManifest = images
	return nil
}

// confirmsRemovals reports whether the operator has confirmed the removals that earlier runs withheld. A confirmation
// answers one question: who was asked about files or entries that are missing was not asked about posts.
func (r *run) confirmsRemovals() bool { return r.ConfirmRemovals && !r.spent }

// A LossError says that a changed manifest would erase more of the stored images than the policy's mass_removal_share.
type LossError struct{ Images, Of int }

func (e *LossError) Error() string {
	return fmt.Sprintf("the manifest no longer names %d of the %d images in the workspace", e.Images, e.Of)
}

// inGrace does a job, and ends it within the grace once the run is asked to stop.
func (r *run) inGrace(ctx context.Context, job func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-r.Stop:
			time.AfterFunc(grace, cancel) // after the end of the job it does nothing
		}
	}()
	err := job(ctx)
	if err != nil && r.stopping() && errors.Is(err, context.Canceled) {
		err = state.ErrInterrupted
	}
	return err
}

// end ends a job with its error, and sums it up.
func (r *run) end(ctx context.Context, began time.Time, err error) (state.Summary, error) {
	verdict := "done"
	switch {
	case errors.Is(err, state.ErrInterrupted) || errors.Is(err, context.Canceled):
		verdict = "interrupted"
	case err != nil:
		verdict = "failed"
	}
	// A run without this record was killed. An interrupted one is told, too, so the record is not cancelled with it.
	err = errors.Join(err, r.Workspace.Note(context.WithoutCancel(ctx), r.event(auditlog.Ended, verdict)))
	if err != nil {
		return state.Summary{}, err
	}
	// From the state and not from what this run counted: a summary says the same as the command status.
	sum, err := state.Status(ctx, r.Workspace, r.Now())
	sum.Elapsed, sum.Files, sum.Unchanged = r.Now().Sub(began), r.out.Files, r.out.Unchanged
	sum.Before, sum.Stay, sum.GuardSpares, sum.Looks = r.out.Before, r.out.Stay, r.out.GuardSpares, r.out.Looks
	sum.Copies, sum.Hosts, sum.LeftManifest, sum.FilesGone = r.copies, r.hosts, r.out.LeftManifest, r.out.FilesGone
	sum.Strays, sum.Left = r.out.Strays, r.out.Left
	return sum, err
}

func (r *run) lastAct(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.stopping() {
		return context.WithTimeout(ctx, cmp.Or(r.LastAct, lastAct))
	}
	return ctx, func() {}
}

// releaseName is the release's name as it stands in everything that is written.
func (r *run) releaseName() string {
	if r.Rehearsal { // no one may take the made-up posts for the dataset
		return state.RehearsalOf(r.Release.Name)
	}
	return r.Release.Name
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

// event is the record of a run for the audit log: what made it, and from what.
func (r *run) event(phase, verdict string) auditlog.Event {
	return auditlog.Event{Kind: auditlog.Run, Phase: phase, Verdict: verdict, Tool: r.Version,
		Release: r.Release.Digest, Manifest: r.Release.ManifestDigest, Policy: r.Policy.Digest()}
}
