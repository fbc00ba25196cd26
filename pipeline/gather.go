package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/contain"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// queueLength bounds what waits between two stages: enough that a slow host or a slow page
// leaves the other stage work, small beside an image in memory.
const queueLength = 64

// A fetchJob is one image to download.
type fetchJob struct {
	entry     manifest.Entry
	candidate reddit.Candidate
	source    string
}

// A readJob is one stored image to read.
type readJob struct {
	key   manifest.Key
	image workspace.Image
	old   *workspace.Reading // of this image, nil when there is none
	// rehashed says that image has a hash which is not stored yet.
	rehashed bool
}

// newReadJob is the job of reading the stored image of a record.
func newReadJob(rec workspace.Record) readJob {
	return readJob{key: rec.Key, image: *rec.Image, old: rec.Reading}
}

// queues join the stages. The resolver closes the fetch queues; the read queue is closed
// when the resolver and all fetchers have ended.
type queues struct {
	fetch  map[string]chan fetchJob // by host name of the policy
	read   chan readJob
	memory *semaphore.Weighted // bytes of decoded images at once, over all stages
}

// gather runs resolve, fetch and ocr side by side.
func (r *run) gather(ctx context.Context) error {
	g, running := errgroup.WithContext(ctx) // running ends with the group
	r.queues = &queues{fetch: map[string]chan fetchJob{}, read: make(chan readJob, queueLength),
		memory: semaphore.NewWeighted(r.Policy.Images.MaxDecodedBytes())}
	var senders sync.WaitGroup
	for _, host := range r.Policy.Images.Hosts {
		jobs := make(chan fetchJob, queueLength)
		r.queues.fetch[host.Name] = jobs
		for range host.Concurrency {
			senders.Add(1)
			contain.Go(g, func() error {
				defer senders.Done()
				return work(running, r, jobs, r.fetch)
			})
		}
	}
	senders.Add(1)
	contain.Go(g, func() error {
		defer senders.Done()
		defer func() {
			for _, jobs := range r.queues.fetch {
				close(jobs)
			}
		}()
		return r.resolve(running)
	})
	contain.Go(g, func() error {
		senders.Wait()
		close(r.queues.read)
		return nil
	})
	for range r.Workers {
		contain.Go(g, func() error { return work(running, r, r.queues.read, r.read) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if r.stopping() {
		return state.ErrInterrupted
	}
	return nil
}

// work does the jobs of one queue until it is closed. A stopped run lets the queue run dry
// without doing them: they are found again by the next run.
func work[J any](ctx context.Context, r *run, jobs <-chan J, do func(context.Context, J) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case j, open := <-jobs:
			if !open {
				return nil
			}
			if r.stopping() {
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

// handOn gives every entry of a post that was asked about its next step.
func (r *run) handOn(ctx context.Context, p workspace.Post, answer reddit.Answer) error {
	found, ok := answer.Posts[p.ID]
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{ID: p.ID}) {
		if err != nil {
			return err
		}
		_, buried := r.buried[p.ID]
		switch {
		case buried || p.State != manifest.StateLive || !ok && rec.Image == nil:
			r.settled(rec.Key, r.judge(rec))
			continue
		case !ok: // without a verdict the row can stay, and then it is read as all others are
			err = r.readIfStale(ctx, rec)
		default:
			err = r.assign(ctx, rec, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// assign decides what one entry of a live post still needs: a download, a reading or nothing.
func (r *run) assign(ctx context.Context, rec workspace.Record, post reddit.Post) error {
	c := post.Image(rec.Key.Image)
	if c.Fault != nil {
		if rec.Image != nil && r.onlyUnclear(c.Fault) {
			return r.keep(ctx, rec, "") // the image is here; only its place is unclear now
		}
		return r.lose(ctx, rec.Key, "", c.Fault)
	}
	source, attempt := state.SHA256([]byte(c.URL)), r.attempt(rec.Entry, c)
	if rec.Image != nil && rec.Image.Source == source {
		return r.keep(ctx, rec, attempt)
	}
	if t := rec.Trouble; t != nil && t.Source == attempt && !r.again(*t) {
		r.settled(rec.Key, manifest.Result{Outcome: t.Outcome, Reason: t.Reason})
		return nil
	}
	jobs, ok := r.queues.fetch[c.Host]
	if !ok {
		return r.lose(ctx, rec.Key, "", &policy.Fault{Outcome: manifest.Refused, Reason: "host_not_allowed"})
	}
	return send(ctx, r, jobs, fetchJob{entry: rec.Entry, candidate: c, source: source})
}

// onlyUnclear reports whether a candidate's fault says nothing of an image that is stored: it may
// pass, or there is no client id for imgur's API while the policy still allows imgur.
func (r *run) onlyUnclear(f *policy.Fault) bool {
	_, imgur := r.Policy.Host("i.imgur.com")
	return f.Outcome.Retryable() || f.Reason == reddit.ReasonImgurPage && imgur
}

// keep reads the stored image of a record, if need be, or loses it if it is no longer good.
func (r *run) keep(ctx context.Context, rec workspace.Record, attempt string) error {
	fault, err := r.stillGood(ctx, rec)
	if err != nil {
		return err
	}
	if fault != nil {
		return r.lose(ctx, rec.Key, attempt, fault)
	}
	return r.readIfStale(ctx, rec)
}

// attempt names all that decides how a download ends: when none of it changed, neither does
// an answer that was final.
func (r *run) attempt(e manifest.Entry, c reddit.Candidate) string {
	return state.SHA256([]byte(fmt.Sprintln(c.URL, r.fetchSettings(), e.SHA256, e.PHash, r.Policy.Dedupe.HashRadius)))
}

// again reports whether a download that ended in t is to be tried once more.
func (r *run) again(t workspace.Trouble) bool {
	return t.Outcome.Retryable() || slices.Contains(r.Retry, string(t.Outcome)) || slices.Contains(r.Retry, string(t.Reason))
}

// stillGood holds a stored image against the manifest's digests, the placeholders that are known by
// now and, where it was stored under other limits, against the policy's: the same release gives the same answers, whatever was there before.
func (r *run) stillGood(ctx context.Context, rec workspace.Record) (*policy.Fault, error) {
	img := *rec.Image
	if f := r.compare(rec.Entry, img); f != nil {
		return f, nil
	}
	header := policy.ImageInfo{Format: img.Format, Width: img.Width, Height: img.Height}
	if f := r.Policy.StoredPlaceholder(img.OriginalSHA256, header, img.OriginalBytes); f != nil || img.Limits == r.fetchSettings() {
		return f, nil
	}
	if rec.Image.OriginalBytes > r.Policy.Images.MaxBytes {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "too_large",
			Detail: fmt.Sprintf("%d bytes, %d are allowed", rec.Image.OriginalBytes, r.Policy.Images.MaxBytes)}, nil
	}
	body, err := r.Workspace.ReadImage(ctx, rec.Key, *rec.Image)
	var damaged *workspace.Damaged
	if errors.As(err, &damaged) {
		return damagedFile(), nil
	}
	if err != nil {
		return nil, err
	}
	_, fault := r.Policy.InspectImage(body)
	return fault, nil
}

// readIfStale sends a stored image to the readers unless its reading is of the present engine.
func (r *run) readIfStale(ctx context.Context, rec workspace.Record) error {
	if r.current(rec) {
		r.settled(rec.Key, manifest.Result{})
		return nil
	}
	return send(ctx, r, r.queues.read, newReadJob(rec))
}

// current reports whether the record's hash and reading were made by the present code and engine.
func (r *run) current(rec workspace.Record) bool {
	return rec.Image.HashKind == dedupe.HashKind() && rec.Reading != nil && rec.Reading.Failed == nil &&
		rec.Reading.Fingerprint == r.fingerprint() && rec.Reading.ImageSHA256 == rec.Image.SHA256
}

// fingerprint names what makes a reading in this run.
func (r *run) fingerprint() string { return state.ReadingFingerprint(r.engine.Fingerprint(), r.Policy) }

// fetchSettings names what decides, besides the URL, how a download ends.
func (r *run) fetchSettings() string {
	im := r.Policy.Images
	s := fmt.Sprint(im.MaxBytes, im.MaxPixels, im.MaxSide)
	for _, h := range im.Hosts {
		s += " " + h.Name
	}
	for _, p := range im.Placeholders {
		s += fmt.Sprintf(" %+v", p)
	}
	return s
}

// lose records why an entry has no image.
func (r *run) lose(ctx context.Context, k manifest.Key, source string, f *policy.Fault) error {
	t := workspace.Trouble{Source: source, Outcome: f.Outcome, Reason: f.Reason, Detail: f.Detail}
	if err := r.Workspace.SetTrouble(ctx, k, t); err != nil {
		return err
	}
	r.settled(k, manifest.Result{Outcome: f.Outcome, Reason: f.Reason})
	return nil
}

// settled counts an entry that needs nothing more, or nothing that this run can do.
func (r *run) settled(k manifest.Key, res manifest.Result) {
	r.Log.Debug("entry settled", "id", k.ID, "image", k.Image, "outcome", res.Outcome, "reason", res.Reason)
	r.Progress.settled(res.Outcome)
}

// damagedFile is the trouble of an entry whose stored image is not what it was.
func damagedFile() *policy.Fault {
	return &policy.Fault{Outcome: manifest.Failed, Reason: "damaged_file", Detail: "fetched again by the next run"}
}

// fetch downloads one image, checks it and stores it.
func (r *run) fetch(ctx context.Context, j fetchJob) error {
	if r.access() != nil {
		return nil // publish says so, when the sweep is done
	}
	d, err := r.Reddit.Download(ctx, j.candidate)
	if err == nil {
		err = r.admit(ctx, j, d)
	}
	if undecodable(err) {
		first := sha256.Sum256(d.Body)
		d.Body = nil // two bodies at a time would be twice the memory
		err = r.fetchAgain(ctx, j, first, err)
	}
	var f *policy.Fault
	if errors.As(err, &f) {
		return r.lose(ctx, j.entry.Key, r.attempt(j.entry, j.candidate), f)
	}
	if err != nil {
		return fmt.Errorf("fetch the image of %s: %w", j.entry.ID, err)
	}
	return nil
}

func undecodable(err error) bool {
	var f *policy.Fault
	return errors.As(err, &f) && f.Outcome == manifest.Invalid && (f.Reason == "undecodable" || f.Reason == "bad_container")
}

// fetchAgain downloads an image once more that did not decode. The same bytes twice are what the
// host has; others mean that one of the two was cut or spoiled on its way.
func (r *run) fetchAgain(ctx context.Context, j fetchJob, first [sha256.Size]byte, trouble error) error {
	d, err := r.Reddit.Download(ctx, j.candidate)
	switch {
	case err != nil:
		return err
	case sha256.Sum256(d.Body) == first:
		return trouble
	}
	if err = r.admit(ctx, j, d); undecodable(err) {
		return &policy.Fault{Outcome: manifest.Failed, Reason: "damaged_on_its_way", Detail: "two downloads gave different bytes, and neither decodes"}
	}
	return err
}

// admit strips, decodes, hashes and compares a downloaded image, stores it and sends it to
// the readers. What it stores decodes. A *policy.Fault says why it is not stored.
func (r *run) admit(ctx context.Context, j fetchJob, d reddit.Download) error {
	body, err := workspace.Strip(d.Body, d.Info.Format)
	if err != nil {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "bad_container", Detail: err.Error()}
	}
	info, fault := r.Policy.InspectImage(body)
	if fault != nil {
		return fault
	}
	done, err := r.reserve(ctx, info)
	if err != nil {
		return err
	}
	hash, err := decodeAndHash(body)
	done()
	if err != nil {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "undecodable", Detail: err.Error()}
	}
	img := workspace.Image{Source: j.source, Limits: r.fetchSettings(),
		OriginalSHA256: state.SHA256(d.Body), OriginalBytes: int64(len(d.Body)), SHA256: state.SHA256(body),
		Format: info.Format, Width: info.Width, Height: info.Height, Bytes: int64(len(body)),
		PHash: hash.Bits, Flat: hash.Flat, HashKind: dedupe.HashKind()}
	if f := r.compare(j.entry, img); f != nil {
		return f
	}
	if err := r.Workspace.StoreImage(ctx, j.entry.Key, body, img); err != nil {
		return err
	}
	r.Progress.fetched()
	return send(ctx, r, r.queues.read, readJob{key: j.entry.Key, image: img})
}

// reserve waits until an image may be decoded: all that are decoded at once take no more
// memory than the largest that the policy allows.
func (r *run) reserve(ctx context.Context, info policy.ImageInfo) (done func(), err error) {
	weight := min(info.DecodedBytes, r.Policy.Images.MaxDecodedBytes())
	if err := r.queues.memory.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { r.queues.memory.Release(weight) }, nil
}

func decodeAndHash(body []byte) (dedupe.Hash, error) {
	img, err := policy.DecodeImage(body)
	if err != nil {
		return dedupe.Hash{}, err
	}
	return dedupe.HashImage(img)
}

// compare holds an image against the digests that the manifest names. The sha256 may be that
// of the image as it was downloaded or as rehydrate stores it. Where the manifest has a phash,
// a fault says how far from it the image is: one that was only encoded anew is near.
func (r *run) compare(e manifest.Entry, img workspace.Image) *policy.Fault {
	distance, radius := 0, r.Policy.Dedupe.HashRadius
	if e.PHash != "" {
		want, err := strconv.ParseUint(e.PHash, 16, 64)
		if err != nil {
			return &policy.Fault{Outcome: manifest.Invalid, Reason: "bad_phash", Detail: e.PHash}
		}
		distance = bits.OnesCount64(want ^ img.PHash)
	}
	if e.SHA256 != "" && e.SHA256 != img.OriginalSHA256 && e.SHA256 != img.SHA256 {
		f := &policy.Fault{Outcome: manifest.Changed, Reason: "sha256", Detail: "the image has sha256 " + img.OriginalSHA256}
		if e.PHash != "" {
			f.Detail += fmt.Sprintf(" and is %d bits from the manifest's phash", distance)
		}
		return f
	}
	if distance > radius {
		return &policy.Fault{Outcome: manifest.Changed, Reason: "phash",
			Detail: fmt.Sprintf("the image is %d bits from the manifest's phash, %d are allowed", distance, radius)}
	}
	return nil
}

// read reads the text of one stored image.
func (r *run) read(ctx context.Context, j readJob) error {
	body, err := r.Workspace.ReadImage(ctx, j.key, j.image)
	var damaged *workspace.Damaged
	if errors.As(err, &damaged) {
		return r.lose(ctx, j.key, "", damagedFile())
	}
	if err != nil {
		return err
	}
	info, fault := r.Policy.InspectImage(body)
	if fault != nil {
		return r.lose(ctx, j.key, "", fault)
	}
	done, err := r.reserve(ctx, info)
	if err != nil {
		return err
	}
	reading, err := r.recognize(ctx, &j, body)
	done()
	if err != nil {
		return err
	}
	if err := r.storeReading(ctx, j, reading); err != nil {
		return err
	}
	// After the reading: killed in between, the older kind of hash has the image read once more.
	if j.rehashed {
		if err := r.Workspace.SetHash(ctx, j.key, j.image); err != nil {
			return err
		}
	}
	if reading.Failed != nil {
		r.settled(j.key, manifest.Result{Outcome: reading.Failed.Outcome, Reason: reading.Failed.Reason})
		return nil
	}
	r.Log.Debug("image read", "id", j.key.ID, "image", j.key.Image, "words", len(reading.Words))
	r.Progress.read()
	return nil
}

// storeReading stores a reading, in a re-reading beside the text of the one it replaces.
func (r *run) storeReading(ctx context.Context, j readJob, reading workspace.Reading) error {
	if !r.rereading || j.old == nil {
		return r.Workspace.SetReading(ctx, j.key, reading)
	}
	old := j.old.Text
	if r.Policy.Text.MaskNames {
		old = state.MaskText(old)
	}
	return r.Workspace.Reread(ctx, j.key, reading, old)
}

// recognize decodes an image and has it read, and hashes it where the hash is of another kind.
// Trouble with the image is in the reading.
func (r *run) recognize(ctx context.Context, j *readJob, body []byte) (workspace.Reading, error) {
	out := workspace.Reading{Fingerprint: r.fingerprint(), ImageSHA256: j.image.SHA256}
	img, err := policy.DecodeImage(body)
	if err != nil {
		out.Failed = &workspace.Trouble{Outcome: manifest.Failed, Reason: "undecodable", Detail: err.Error()}
		return out, nil
	}
	if j.image.HashKind != dedupe.HashKind() {
		hash, err := dedupe.HashImage(img)
		if err != nil {
			return out, fmt.Errorf("hash %s again: %w", j.key.ID, err)
		}
		j.image.PHash, j.image.Flat, j.image.HashKind, j.rehashed = hash.Bits, hash.Flat, dedupe.HashKind(), true
	}
	read, err := r.OCR.Read(ctx, ocr.Upright(img, body))
	var failure *ocr.Failure
	if errors.As(err, &failure) {
		out.Failed = &workspace.Trouble{Outcome: manifest.Failed, Reason: failure.Reason, Detail: failure.Detail}
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("read the image of %s: %w", j.key.ID, err)
	}
	out.Text, out.Confidence = read.Text, read.Confidence
	out.Words = make([]workspace.Word, len(read.Words))
	for i, w := range read.Words {
		out.Words[i] = workspace.Word{Text: w.Text, Confidence: w.Confidence, Line: w.Line,
			X: w.Box.Min.X, Y: w.Box.Min.Y, W: w.Box.Dx(), H: w.Box.Dy(), Accepted: w.Accepted}
	}
	if r.Policy.Text.MaskNames {
		state.MaskReading(&out)
	}
	if len(state.Tokens(out.Words)) == 0 {
		// Nothing to tell two images apart by but the image: dedupe wants a finer hash.
		wide, err := dedupe.HashImage256(img)
		if err != nil {
			return out, fmt.Errorf("hash %s: %w", j.key.ID, err)
		}
		out.Wide = (*[4]uint64)(&wide)
	}
	return out, nil
}
