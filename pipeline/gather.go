package pipeline

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// What waits between two stages is bounded.
const (
	queueLength = 64 // images to read: enough that a slow page leaves the other stage work
	// hostQueue is how many downloads wait for one host. Posts are handed on in one line, so that a host which is asked
	// slowly holds up the others once its queue is full; and a post is fetched so much later than it was seen live.
	hostQueue = 1024
)

// A fetchJob is one image to download.
type fetchJob struct {
	entry     manifest.Entry
	candidate reddit.Candidate
	source    string
	before    manifest.Reason       // why the same download failed in an earlier run, if it did
	stored    bool                  // the entry has an image, which stays unless another one is to take its place
	refused   bool                  // release or policy do not take that one
	removed   bool                  // its image was removed from its live post: it stays so until another one is there
	erased    *workspace.Digests    // of the one that left its gallery, where only these can tell it; else nil
	gallery   []workspace.ItemImage // that entries of its gallery have or had
}

// A readJob is one image to read. Its picture is there when its fetcher decoded it and there was room to keep it.
type readJob struct {
	workspace.Record
	picture *reading.Picture
}

// A gatherer is what the fetchers and readers share.
type gatherer struct {
	*run
	fetch        map[string]chan fetchJob // by host name of the policy
	senders      sync.WaitGroup           // to read
	read         chan readJob
	reader       *reading.Reader
	waiting      *semaphore.Weighted // bytes, of decoded images that wait for a reader
	terms        terms
	known        hosts                                 // what the hosts sent
	replacements replacements                          // images that may take the place of stored ones
	later        map[manifest.Key]workspace.LooseImage // run.later: what nothing is written over
	storedNow    sync.Map                              // keys of the images that were stored in this run where none was
	keepTexts    bool                                  // keep the text of each reading that is replaced: see ReadAgain
}

func (r *run) newGatherer(removed state.RemovedPictures, keepTexts bool) *gatherer {
	g := &gatherer{run: r, fetch: map[string]chan fetchJob{}, read: make(chan readJob, queueLength),
		reader: reading.New(r.OCR, r.Policy), waiting: semaphore.NewWeighted(r.Policy.Images.MaxDecodedBytes() / 2),
		keepTexts: keepTexts, known: hosts{byHost: map[string]*host{}}, later: map[manifest.Key]workspace.LooseImage{}}
	for _, l := range r.later {
		g.later[l.Key] = l
	}
	g.terms = newTerms(r.Config, removed, nil)
	if r.OCR != nil {
		g.terms.reader = g.reader
	}
	return g
}

// gather runs resolve, fetch and ocr side by side.
func (r *run) gather(ctx context.Context, s *asker) error {
	keepTexts, err := r.Workspace.Rereading(ctx)
	if err != nil {
		return err
	}
	removed, err := state.FindRemovedPictures(ctx, r.Workspace, r.stones)
	if err != nil {
		return err
	}
	g := r.newGatherer(removed, keepTexts)
	if err := g.terms.findSuspected(ctx, r.Workspace); err != nil {
		return err
	}
	cutOff, err := state.ReadNote[state.UnjudgedNote](ctx, r.Workspace)
	if err != nil {
		return err
	}
	g.known.unjudged = bool(cutOff)
	if err := state.WriteNote(ctx, r.Workspace, state.UnjudgedNote(true)); err != nil {
		return err
	}
	defer g.replacements.discard(context.WithoutCancel(ctx))
	group, running := errgroup.WithContext(ctx) // running ends with the group
	for _, host := range r.Policy.Images.Hosts {
		jobs := make(chan fetchJob, hostQueue)
		g.fetch[host.Name] = jobs
		for range host.Concurrency {
			g.senders.Add(1)
			safely.Go(group, func() error {
				defer g.senders.Done()
				return work(running, r, jobs, g.fetchImage)
			})
		}
	}
	// The asker sends stored images that have to be read again, and closes the queues of the fetchers.
	g.senders.Add(1)
	safely.Go(group, func() error {
		defer g.senders.Done()
		// When every post has been handed on, the fetchers run dry and end.
		defer func() {
			for _, jobs := range g.fetch {
				close(jobs)
			}
		}()
		return s.resolve(running, s.everyPost(running), g.assign)
	})
	safely.Go(group, func() error {
		g.senders.Wait() // the readers end when no sender is left
		close(g.read)
		return nil
	})
	g.startReaders(running, group)
	if err := group.Wait(); err != nil {
		return err
	}
	if r.stopping() {
		return state.ErrInterrupted
	}
	g.known.waits = g.known.unjudged && len(s.unanswered) > 0 // an image of theirs was not looked at
	if err := g.settleHosts(ctx); err != nil {
		return err
	}
	if err := g.settleReplacements(ctx); err != nil {
		return err
	}
	return s.followParents(ctx)
}

// work does the jobs of one queue until it is closed.
func work[J any](ctx context.Context, r *run, jobs <-chan J, do func(context.Context, J) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case j, open := <-jobs:
			if !open {
				return nil
			}
			if r.stopping() { // the queue runs dry, and the next run finds its jobs again
				continue
			}
			if err := do(ctx, j); err != nil {
				return err
			}
		}
	}
}

// send puts a job on a queue, unless the run ends first.
func send[J any](ctx context.Context, r *run, jobs chan<- J, j J) error {
	select {
	case jobs <- j:
		return nil
	case <-r.Stop:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
