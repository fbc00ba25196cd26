package ocr

import (
	"cmp"
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

	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr/layout"
)

// Defaults of Config.
const (
	// Noise, the worst seen, takes 3 s on 2 cores with 20 other processes. The rest is for busier machines: a deadline
	// that fires there would make the answer depend on the machine.
	defaultTimeout = 30 * time.Second
	// To say hello: a cold disk has the model to load.
	defaultStartTimeout = 30 * time.Second
	// A worker peaks at about 75 MB over real memes.
	defaultMemoryLimit = 512 << 20
	// Nothing was seen to leak over 5,000 images; what a C library holds on to ends with it.
	defaultRecycleAfter = 2000
	// addressSpace is RLIMIT_AS of a worker whose MemoryLimit is small; a Go and
	// Tesseract process runs well under it.
	addressSpace = 4 << 30
)

// A Config says how to run workers. The zero value of every field but Command is its
// default.
type Config struct {
	// Command is the worker program with its arguments: {"bin/ocr", "worker"}.
	Command      []string
	Workers      int           // processes at most, each started when first needed; default runtime.NumCPU()
	Timeout      time.Duration // for one image on one worker, all its lines; default 30 s
	MemoryLimit  int64         // resident memory a worker may reach, in bytes; default 512 MiB
	RecycleAfter int           // images after which a worker is replaced; default 2,000
	TessdataDir  string        // folder of the language model; default the usual places
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

	startTimeout time.Duration // tests shorten it
}

func (c Config) withDefaults() Config {
	c.Workers = cmp.Or(c.Workers, runtime.NumCPU())
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.MemoryLimit = cmp.Or(c.MemoryLimit, defaultMemoryLimit)
	c.RecycleAfter = cmp.Or(c.RecycleAfter, defaultRecycleAfter)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.startTimeout = cmp.Or(c.startTimeout, defaultStartTimeout)
	return c
}

// Environment is the worker's whole environment.
func (c Config) Environment() []string {
	var env []string
	// Not that of this process, which has credentials in it.
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TESSDATA_PREFIX"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, c.Env...)
	if c.TessdataDir != "" {
		env = append(env, "TESSDATA_PREFIX="+c.TessdataDir)
	}
	// It must be there before exec, since libgomp reads it while it loads; without it Tesseract's threads fight each
	// other and an image takes two to seven times as long.
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
	open    context.Context // ends when Close begins: that kills what is being read
	shut    context.CancelFunc
	closing sync.Once

	// A worker, or the right to start one, is in one of these or with the one goroutine that took it.
	idle   chan *worker
	unborn chan struct{}
	starts chan func() // see keepThread

	mu    sync.Mutex
	stats Stats // mu
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
	p := &Pool{config: c, idle: make(chan *worker, c.Workers), unborn: make(chan struct{}, c.Workers),
		starts: make(chan func())}
	p.open, p.shut = context.WithCancel(context.Background())
	go p.keepThread()
	for range c.Workers - 1 {
		p.replace()
	}
	// The first worker is started here, so that a missing model is told before the first image.
	w, err := p.spawn(ctx)
	if err != nil {
		close(p.starts)
		return nil, err
	}
	p.engine = w.engine
	p.idle <- w
	return p, nil
}

// keepThread runs p.starts on one OS thread.
func (p *Pool) keepThread() {
	// Linux sends the parent-death signal when the thread that created a child ends, not the process
	// (golang/go#27505), and Go ends threads when it likes: a worker started from an ordinary goroutine could be
	// killed at any time. The end of stdin is not enough alone: a worker that hangs in C does not read. Never
	// unlocked, so that the thread ends with the goroutine, and with it any child that is left.
	runtime.LockOSThread()
	for start := range p.starts {
		start()
	}
}

const (
	buildHint = "build the worker with `go build -o bin/ ./cmd/...` after scripts/setup has installed Tesseract"
	setupHint = "run scripts/setup, which installs Tesseract and its English model, then `go build -o bin/ ./cmd/...`; " +
		"`ocr conform PROGRAM` checks a worker of another engine"
)

// Engine names the engine of every worker of the pool, with all parameters.
func (p *Pool) Engine() Engine {
	e := p.engine
	reading := p.rules().Parameters(lineMode.parameters(), pageMode.parameters())
	e.Parameters = strings.TrimPrefix(e.Parameters+"; "+reading, "; ")
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
func (p *Pool) Read(ctx context.Context, img image.Image) (out layout.Reading, err error) {
	if err := ctx.Err(); err != nil {
		return layout.Reading{}, err
	}
	if img.Bounds().Empty() {
		return layout.Reading{}, nil
	}
	// One context for both ends, the caller's and the pool's: whoever waits below waits for it alone.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(p.open, func() { cancel(ErrClosed) })
	defer stop()
	defer func() {
		_, failed := errors.AsType[*Failure](err)
		p.count(func(s *Stats) {
			if err == nil || failed {
				s.Images++
			}
			if failed {
				s.Failed++
			}
		})
	}()
	// Before a worker is taken: one image is prepared while another is being read.
	var page *layout.Page
	if err := p.contain(func() error {
		page = layout.Find(img, p.rules())
		return nil
	}); err != nil {
		return layout.Reading{}, err
	}
	words, err := p.readWithRetry(ctx, page)
	if err != nil {
		return layout.Reading{}, err
	}
	// After the worker is free for another image.
	err = p.contain(func() error {
		out = words.Reading()
		return nil
	})
	return out, err
}

// contain calls f and turns its panic into the *Failure of one image.
func (p *Pool) contain(f func() error) error {
	// The work on an image depends on its pixels and words, and an unforeseen one must not end a run.
	err := safely.Do(f)
	var internal *safely.Panic
	if errors.As(err, &internal) {
		p.config.Log.Warn("internal error while an image was read", "error", internal.Value)
		p.config.Log.Debug("where it was", "stack", string(internal.Stack))
		return &Failure{ReasonInternal, oneLine(internal.Error())}
	}
	return err
}

func (p *Pool) rules() layout.Rules {
	c := p.config
	return layout.Rules{Dictionary: c.Dictionary, DictionaryID: c.DictionaryID, DecisionOnly: c.DecisionOnly}
}

// Close kills what is being read, ends all workers and returns once none is left. Safe
// to call twice.
func (p *Pool) Close() error {
	p.closing.Do(func() {
		p.shut()
		var ending sync.WaitGroup
		// Who has all of them knows that all readers have returned.
		for range cap(p.idle) {
			select {
			case w := <-p.idle:
				ending.Go(w.stop)
			case <-p.unborn:
			}
		}
		ending.Wait()
		close(p.starts)
	})
	return nil
}

// ended is why ctx ended: ErrClosed, or the error of the caller's context.
func ended(ctx context.Context) error {
	if context.Cause(ctx) == ErrClosed {
		return ErrClosed
	}
	return ctx.Err()
}

func (p *Pool) readWithRetry(ctx context.Context, page *layout.Page) (layout.Words, error) {
	for attempt := 1; ; attempt++ {
		w, err := p.take(ctx)
		if err != nil {
			return layout.Words{}, err
		}
		words, err := p.readOn(ctx, w, page)
		if err == nil {
			p.release(w)
			return words, nil
		}
		p.replace() // whatever went wrong: half an answer may still be in its pipe
		p.count(func(s *Stats) { s.Lost++ })
		if ctx.Err() != nil {
			return layout.Words{}, ended(ctx) // killed because the caller gave up
		}
		p.config.Log.Warn("lost an OCR worker", "pid", w.cmd.Process.Pid, "images", w.images, "error", err)
		// A fresh worker may do better after all but an error of the engine, and a mistake of ours: the rest can come
		// from what the old worker, or the machine, had been through.
		failure, ok := errors.AsType[*Failure](err)
		if !ok || attempt == 2 || failure.Reason == ReasonEngine || failure.Reason == ReasonInternal {
			return layout.Words{}, err
		}
	}
}

// readOn reads one image on one worker. After any error the worker is dead.
func (p *Pool) readOn(ctx context.Context, w *worker, page *layout.Page) (layout.Words, error) {
	w.images++
	var words layout.Words
	err := w.watched(ctx, p.config, func() error {
		return p.contain(func() (err error) {
			words, err = page.Read(w.read)
			return err
		})
	})
	p.count(func(s *Stats) { s.PeakRSS = max(s.PeakRSS, w.peak.Load()) })
	return words, err
}

// take returns an idle worker or starts one.
func (p *Pool) take(ctx context.Context) (*worker, error) {
	select { // none is started while one is idle
	case w := <-p.idle:
		return w, nil
	default:
	}
	select {
	case <-ctx.Done():
		return nil, ended(ctx)
	case w := <-p.idle:
		return w, nil
	case <-p.unborn:
	}
	w, err := p.spawn(ctx)
	// Readings of two engines under one fingerprint would be taken for the same.
	if err == nil && w.engine != p.engine {
		w.kill()
		err = &StartError{
			Err:  fmt.Errorf("the engine changed while the pool was running: it was %+v, it is %+v", p.engine, w.engine),
			Hint: "somebody replaced the worker program or its model; start again",
		}
	}
	if err != nil {
		p.replace()
		return nil, err
	}
	return w, nil
}

// release puts a worker back, or ends it when it has read its share.
func (p *Pool) release(w *worker) {
	if w.images < p.config.RecycleAfter {
		p.idle <- w
		return
	}
	p.config.Log.Debug("recycle an OCR worker", "pid", w.cmd.Process.Pid, "images", w.images)
	w.stop()
	p.count(func(s *Stats) { s.Recycled++ })
	p.replace()
}

// replace lets another worker be started in the place of one that was taken and has ended.
func (p *Pool) replace() { p.unborn <- struct{}{} }

func (p *Pool) spawn(ctx context.Context) (w *worker, err error) {
	started := make(chan struct{})
	p.starts <- func() {
		defer close(started)
		w, err = startProcess(p.config.Command, p.config.Environment())
	}
	<-started
	if err != nil {
		return nil, &StartError{Err: err, Hint: buildHint}
	}
	if err := w.greet(ctx, p.config); err != nil {
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		return nil, &StartError{Err: fmt.Errorf("%s: %w", filepath.Base(p.config.Command[0]), err), Hint: setupHint}
	}
	p.count(func(s *Stats) { s.Started++ })
	p.config.Log.Debug("started an OCR worker", "pid", w.cmd.Process.Pid)
	return w, nil
}

func (p *Pool) count(add func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.stats)
}

// The reasons of a Failure.
const (
	ReasonTimeout  manifest.Reason = "ocr_timeout"  // not read within Config.Timeout, twice
	ReasonCrashed  manifest.Reason = "ocr_crashed"  // the worker died of it, twice
	ReasonMemory   manifest.Reason = "ocr_memory"   // the worker outgrew Config.MemoryLimit, twice
	ReasonProtocol manifest.Reason = "ocr_protocol" // the worker sent something else than an answer, twice
	ReasonEngine   manifest.Reason = "ocr_engine"   // the engine itself reported an error
	ReasonInternal manifest.Reason = "ocr_internal" // a mistake in this package: it panicked over the image
)

// A Failure is one image's trouble: data about that image, not a reason to stop a run.
type Failure struct {
	Reason manifest.Reason
	Detail string // for people, one line
}

func (f *Failure) Error() string { return string(f.Reason) + ": " + f.Detail }

// A StartError says that no worker could be started, so that no image can be read: it
// stops a run.
type StartError struct {
	Err  error
	Hint string // what to try
}

func (e *StartError) Error() string { return "start an OCR worker: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// ErrClosed is returned by Read on a closed pool.
var ErrClosed = errors.New("ocr pool is closed")
