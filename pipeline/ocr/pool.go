package ocr

import (
	"context"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"rehydrate/pipeline/contain"
)

// Defaults of Config.
const (
	// The slowest of 549 real memes took 0.66 s on an idle core, and noise, the worst
	// seen, 1.5 s. The rest is for busy machines: a deadline that fires there would make
	// the answer depend on the machine. 10 s were seen to fire on 2 cores that had 12
	// other processes to run.
	defaultTimeout = 30 * time.Second
	// A worker peaks at about 100 MB over real memes.
	defaultMemoryLimit = 512 << 20
	// gosseract frees none of the words it returns: about 6 KB an image.
	defaultRecycleAfter = 2000
	// addressSpace is RLIMIT_AS of a worker whose MemoryLimit is small; a Go and
	// Tesseract process runs well under it.
	addressSpace = 4 << 30
)

// A Config says how to run workers. The zero value of every field but Command is its
// default.
type Config struct {
	// Command is the worker program with its arguments: {"bin/ocr", "worker"}.
	Command []string
	// Workers is the number of processes at most, each started when first needed.
	// Default runtime.NumCPU().
	Workers int
	// Timeout bounds the reading of one image by one worker, all passes together.
	// Default 30 s.
	Timeout time.Duration
	// MemoryLimit is the resident memory a worker may reach, in bytes. Default 512 MiB.
	MemoryLimit int64
	// RecycleAfter is the number of images after which a worker is replaced. Default
	// 2,000.
	RecycleAfter int
	// TessdataDir is the folder with the language model; "" lets the worker look in the
	// usual places.
	TessdataDir string
	// Env is added to the worker's environment, which otherwise holds only PATH, the
	// library paths, TMPDIR and TESSDATA_PREFIX of this process, and OMP_THREAD_LIMIT=1.
	Env []string
	// Dictionary reports whether a word that was read, with its punctuation, is a word of
	// the language. It may be called from many goroutines. Without one, words are accepted
	// by their confidence alone, which is much worse.
	Dictionary func(word string) bool
	// DictionaryID is the digest of Dictionary; it stands in Engine.Parameters.
	DictionaryID string
	// DecisionOnly stops reading an image as soon as its text is English for certain by
	// the dictionary: Reading then holds enough to decide by and not the whole text. It
	// stands in Engine.Parameters.
	DecisionOnly bool
	// Log gets the starts and ends of workers; nil discards.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Workers <= 0 {
		c.Workers = runtime.NumCPU()
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.MemoryLimit <= 0 {
		c.MemoryLimit = defaultMemoryLimit
	}
	if c.RecycleAfter <= 0 {
		c.RecycleAfter = defaultRecycleAfter
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// environment is the worker's whole environment. OMP_THREAD_LIMIT must be there before
// exec, since libgomp reads it while it loads; without it Tesseract's threads fight
// each other and an image takes two to seven times as long.
func (c Config) environment() []string {
	var env []string
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TESSDATA_PREFIX"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, c.Env...)
	if c.TessdataDir != "" {
		env = append(env, "TESSDATA_PREFIX="+c.TessdataDir)
	}
	return append(env, "OMP_THREAD_LIMIT=1")
}

// Stats count what a pool has been through.
type Stats struct {
	Images   int   // read, well or not
	Failed   int   // images given up with a *Failure
	Started  int   // workers
	Recycled int   // workers replaced after RecycleAfter images
	Lost     int   // workers killed or dead while they read
	PeakRSS  int64 // largest resident memory seen of a worker while it read, in bytes
}

// A Pool reads images with a bounded number of worker processes. Its methods may be
// called from many goroutines.
type Pool struct {
	config  Config
	engine  Engine
	slots   chan struct{} // one token for each worker in use
	done    chan struct{} // closed by Close: kills what is being read
	closing sync.Once
	spawner *spawner

	mu    sync.Mutex
	idle  []*worker
	stats Stats
}

// Start starts the first worker, which names the engine, and returns the pool.
// ctx bounds the start only. A worker that cannot be started is a *StartError with a
// hint. The caller closes the pool.
func Start(ctx context.Context, c Config) (*Pool, error) {
	c = c.withDefaults()
	if len(c.Command) == 0 || c.Command[0] == "" {
		return nil, &StartError{Err: errors.New("no worker program was named"), Hint: buildHint}
	}
	if (c.Dictionary == nil) != (c.DictionaryID == "") {
		return nil, errors.New("start the OCR pool: a dictionary and its digest go together")
	}
	p := &Pool{config: c, slots: make(chan struct{}, c.Workers), done: make(chan struct{}), spawner: newSpawner()}
	// The first worker is started here, so that a missing model is told before the first image.
	w, err := p.spawn(ctx)
	if err != nil {
		p.spawner.close()
		return nil, err
	}
	p.engine, p.idle = w.engine, []*worker{w}
	return p, nil
}

const (
	buildHint = "build the worker with `go build -o bin/ ./cmd/...` after scripts/setup has installed Tesseract"
	setupHint = "run scripts/setup, which installs Tesseract and its English model, then `go build -o bin/ ./cmd/...`"
)

// Engine names the engine of every worker of the pool, with all parameters.
func (p *Pool) Engine() Engine {
	e := p.engine
	e.Parameters = strings.TrimPrefix(e.Parameters+"; "+parameters()+"; "+p.lexicon().parameters(), "; ")
	if p.config.DecisionOnly {
		e.Parameters += fmt.Sprintf("; enough at %d words of %d letters, %d%%, from %d", enoughWords, enoughLetters, enoughPct, enoughConfidence)
	}
	return e
}

// Stats returns the counts so far.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Read reads one image. It blocks while all workers are busy. The error is a *Failure
// for this image's trouble, a panic over it among them; anything else concerns the pool:
// ctx's error, ErrClosed, a *StartError.
func (p *Pool) Read(ctx context.Context, img image.Image) (Reading, error) {
	if err := ctx.Err(); err != nil {
		return Reading{}, err
	}
	bounds := img.Bounds()
	if bounds.Empty() {
		return Reading{}, nil
	}
	out, err := p.read(ctx, img)
	_, failed := errors.AsType[*Failure](err)
	p.count(func(s *Stats) {
		if err == nil || failed {
			s.Images++
		}
		if failed {
			s.Failed++
		}
	})
	return out, err
}

func (p *Pool) read(ctx context.Context, img image.Image) (out Reading, err error) {
	// Before taking a worker: one image is prepared while another is being read.
	var j job
	if err := p.contain(func() error {
		views := newPlanes(img)
		j = job{views: views, first: views.render(passes[0]), lexicon: p.lexicon(), decisionOnly: p.config.DecisionOnly}
		return nil
	}); err != nil {
		return Reading{}, err
	}
	if err := p.acquire(ctx); err != nil {
		return Reading{}, err
	}
	defer func() { <-p.slots }()
	words, err := p.readWithRetry(ctx, j)
	if err != nil {
		return Reading{}, err
	}
	err = p.contain(func() error {
		out = newReading(words, img.Bounds().Min, p.lexicon())
		return nil
	})
	return out, err
}

// contain calls f and turns its panic into the *Failure of one image: the work on an image
// depends on its pixels and words, and an unforeseen one must not end a run.
func (p *Pool) contain(f func() error) error {
	err := contain.Do(f)
	var internal *contain.Panic
	if errors.As(err, &internal) {
		p.config.Log.Warn("internal error while an image was read", "error", internal.Value)
		p.config.Log.Debug("where it was", "stack", string(internal.Stack))
		return &Failure{ReasonInternal, oneLine(internal.Error())}
	}
	return err
}

func (p *Pool) lexicon() lexicon {
	return lexicon{knows: p.config.Dictionary, id: p.config.DictionaryID}
}

// Close kills what is being read, ends all workers and returns once none is left. Safe
// to call twice.
func (p *Pool) Close() error {
	p.closing.Do(func() {
		close(p.done)
		// Holding every slot means that all readers have returned and p.idle is ours.
		for range cap(p.slots) {
			p.slots <- struct{}{}
		}
		var ending sync.WaitGroup
		for _, w := range p.idle {
			ending.Go(w.stop)
		}
		ending.Wait()
		p.idle = nil
		p.spawner.close()
	})
	return nil
}

func (p *Pool) acquire(ctx context.Context) error {
	select {
	case <-p.done:
		return ErrClosed
	default:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
		return ErrClosed
	case p.slots <- struct{}{}:
		return nil
	}
}

// A job is one image, rendered for the first pass.
type job struct {
	views planes
	first *image.Gray
	lexicon
	decisionOnly bool
}

func (p *Pool) readWithRetry(ctx context.Context, j job) ([]candidate, error) {
	for attempt := 1; ; attempt++ {
		w, err := p.take(ctx)
		if err != nil {
			return nil, err
		}
		words, err := p.readOn(ctx, w, j)
		if err == nil {
			p.release(w)
			return words, nil
		}
		// Whatever went wrong, the worker is not used again: half an answer may still be in its pipe.
		p.count(func(s *Stats) { s.Lost++ })
		if ctx.Err() != nil {
			return nil, ctx.Err() // killed because the caller gave up, not lost
		}
		p.config.Log.Warn("lost an OCR worker", "pid", w.cmd.Process.Pid, "images", w.images, "error", err)
		failure, ok := errors.AsType[*Failure](err)
		if !ok || attempt == 2 || !failure.again() {
			return nil, err
		}
	}
}

// readOn reads one image on one worker. After any error the worker is dead.
func (p *Pool) readOn(ctx context.Context, w *worker, j job) ([]candidate, error) {
	w.stderr.reset()
	end := w.guard(ctx, p.done, p.config.Timeout, p.config.MemoryLimit)
	var words []candidate
	err := p.contain(func() (err error) {
		words, err = j.run(w)
		return err
	})
	w.resident() // an image can take less than watchEvery
	if cause := end(); cause != nil {
		return nil, cause
	}
	w.images++
	p.count(func(s *Stats) { s.PeakRSS = max(s.PeakRSS, w.peak.Load()) })
	if err != nil {
		return nil, w.autopsy(err)
	}
	return words, nil
}

// run makes the passes on one worker, one after the other.
func (j job) run(w *worker) ([]candidate, error) {
	var all []candidate
	original := j.views.luma.Rect.Size()
	for i, s := range passes {
		if i == 1 && j.decisionOnly && enough(all) || s.sparse && sureLetters(merge(all)) >= sparseBelow {
			break
		}
		gray := j.first
		if i > 0 {
			gray = j.views.render(s)
		}
		if s.unread {
			gray = without(gray, certainlyRead(all), original)
			if !s.worthwhile(gray, all) {
				continue
			}
		}
		words, err := w.recognize(gray, s.mode)
		if err != nil {
			return nil, err
		}
		all = append(all, collect(words, i, gray.Rect.Size(), original, j.lexicon)...)
	}
	return merge(all), nil
}

// take returns an idle worker or starts one. The caller holds a slot.
func (p *Pool) take(ctx context.Context) (*worker, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return w, nil
	}
	p.mu.Unlock()
	w, err := p.spawn(ctx)
	if err != nil {
		return nil, err
	}
	// Readings of two engines under one fingerprint would be taken for the same.
	if w.engine != p.engine {
		w.kill()
		return nil, &StartError{
			Err:  fmt.Errorf("the engine changed while the pool was running: it was %+v, it is %+v", p.engine, w.engine),
			Hint: "somebody replaced the worker program or its model; start again",
		}
	}
	return w, nil
}

// release puts a worker back, or ends it when it has read its share.
func (p *Pool) release(w *worker) {
	if w.images >= p.config.RecycleAfter {
		p.config.Log.Debug("recycle an OCR worker", "pid", w.cmd.Process.Pid, "images", w.images)
		w.stop()
		p.count(func(s *Stats) { s.Recycled++ })
		return
	}
	p.mu.Lock()
	p.idle = append(p.idle, w)
	p.mu.Unlock()
}

func (p *Pool) spawn(ctx context.Context) (*worker, error) {
	command := p.config.Command
	w, err := p.spawner.start(command, p.config.environment())
	if err != nil {
		return nil, &StartError{Err: err, Hint: buildHint}
	}
	err = w.greet(ctx, p.done, startTimeout, max(addressSpace, 2*p.config.MemoryLimit))
	if err == nil {
		p.count(func(s *Stats) { s.Started++ })
		p.config.Log.Debug("started an OCR worker", "pid", w.cmd.Process.Pid)
		return w, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, ErrClosed) {
		return nil, ErrClosed
	}
	return nil, &StartError{Err: fmt.Errorf("%s: %w", filepath.Base(command[0]), err), Hint: setupHint}
}

func (p *Pool) count(add func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.stats)
}
