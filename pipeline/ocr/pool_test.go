package ocr

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr/layout"
)

// fakePool starts a pool of fake workers and asserts at the end that none is left.
func fakePool(t *testing.T, how string, c Config) *Pool {
	t.Helper()
	pool, err := startFake(t, how, c)
	testkit.OK(t, err)
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		checkNoChildren(t)
	})
	return pool
}

func startFake(t *testing.T, how string, c Config) (*Pool, error) {
	t.Helper()
	c.Command = []string{os.Args[0]}
	c.Env = append(c.Env, fakeStart+"="+how, fakeFolder+"="+t.TempDir(),
		"GORACE=atexit_sleep_ms=0") // under -race every worker would end a second late
	return Start(t.Context(), c)
}

// checkNoChildren looks for child processes of this one, zombies included.
func checkNoChildren(t *testing.T) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat") // none but on Linux
	testkit.OK(t, err)
	for _, name := range stats {
		body, err := os.ReadFile(name)
		if err != nil {
			continue // ended meanwhile
		}
		_, rest, _ := strings.Cut(string(body), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			t.Errorf("a process is left: %s, state %s", name, fields[0])
		}
	}
}

// checkReads reads the image that is always read.
func checkReads(t *testing.T, pool *Pool) {
	t.Helper()
	got, err := pool.Read(t.Context(), imageFor(imageOK))
	if want := fmt.Sprintf("KIND %d INTERNATIONAL PROBLEMS", imageOK); err != nil || got.Text != want {
		t.Errorf("Read = %q, %v, want %q", got.Text, err, want)
	}
}

// reasonOf is the reason of a Failure whose detail holds a text; "" for none, and for any other error.
func reasonOf(err error, detail string) manifest.Reason {
	if failure, ok := errors.AsType[*Failure](err); ok && strings.Contains(failure.Detail, detail) {
		return failure.Reason
	}
	return ""
}

func onlyLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("workers are limited, and bound to their supervisor, on Linux only")
	}
}

func TestReadFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   int
		want   manifest.Reason // "" = read
		detail string          // part of Failure.Detail
		lost   int             // workers
	}{
		{"crash", imageCrash, ReasonCrashed, "exit status 7", 2},
		{"crash once", imageCrashOnce, "", "", 1},
		{"segfault", imageSegfault, ReasonCrashed, "SIGSEGV", 2},
		{"hang", imageHang, ReasonTimeout, "no answer within 500ms", 2},
		{"garbage", imageGarbage, ReasonProtocol, `begins with "W"`, 2},
		{"answer to another request", imageWrongID, ReasonProtocol, "expected 1", 2},
		{"word outside the image", imageOutside, ReasonProtocol, "9999", 2},
		{"closed stdout", imageClosesStdout, ReasonProtocol, "closed its output", 2},
		{"error of the engine", imageEngineError, ReasonEngine, "no such mode", 1},
		{"half a megabyte of stderr", imageNoisyStderr, "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			timeout := time.Minute // which a busy machine does not take
			if tt.want == ReasonTimeout {
				timeout = 500 * time.Millisecond
			}
			pool := fakePool(t, "ok", Config{Workers: 1, Timeout: timeout})
			got, err := pool.Read(t.Context(), imageFor(tt.kind))
			if reasonOf(err, tt.detail) != tt.want || (err == nil) != strings.HasSuffix(got.Text, " INTERNATIONAL PROBLEMS") {
				t.Errorf("Read = %q, %v, want %q with %q", got.Text, err, tt.want, tt.detail)
			}
			if got := pool.Stats().Lost; got != tt.lost {
				t.Errorf("%d workers lost, want %d", got, tt.lost)
			}
			checkReads(t, pool)
		})
	}
}

// A panicking image is one that no decoder should give.
type panicking struct{ image.Image }

func (panicking) At(x, y int) color.Color { panic("no such pixel") }

// TestPanicCostsOneImage: a panic in preparing an image or in judging its words fails that image, and
// leaves the pool whole.
func TestPanicCostsOneImage(t *testing.T) {
	bad := true
	pool := fakePool(t, "ok", Config{Workers: 1, DictionaryID: "x", Dictionary: func(word string) bool {
		if bad && word == "INTERNATIONAL" {
			var none []int
			return none[len(word)] == 0
		}
		return true
	}})
	for _, tt := range []struct {
		detail string
		img    image.Image
		lost   int
	}{
		{"no such pixel", panicking{imageFor(imageOK)}, 0},
		{"index out of range", imageFor(imageOK), 1},
	} {
		_, err := pool.Read(t.Context(), tt.img)
		if got := pool.Stats().Lost; reasonOf(err, tt.detail) != ReasonInternal || got != tt.lost {
			t.Errorf("Read error = %v, %d workers lost, want %s with %q, %d lost", err, got, ReasonInternal, tt.detail,
				tt.lost)
		}
	}
	bad = false
	checkReads(t, pool)
	if got := pool.Stats(); got.Images != 3 || got.Failed != 2 {
		t.Errorf("Stats = %+v, want 2 of 3 images failed", got)
	}
}

func TestReadMemoryLimit(t *testing.T) {
	onlyLinux(t)
	pool := fakePool(t, "ok", Config{Workers: 1, Timeout: 20 * time.Second, MemoryLimit: 128 << 20})
	if _, err := pool.Read(t.Context(), imageFor(imageGrow)); reasonOf(err, "limit of 128 MiB") != ReasonMemory {
		t.Errorf("Read error = %v, want %s", err, ReasonMemory)
	}
	checkReads(t, pool)
}

func TestStartErrors(t *testing.T) {
	for how, want := range map[string]string{
		"exit":    "no eng.traineddata in /nowhere",
		"garbage": "not the worker protocol",
		"version": "the worker speaks version 7, this program version 6",
	} {
		_, err := startFake(t, how, Config{})
		start, ok := errors.AsType[*StartError](err)
		if !ok || !strings.Contains(err.Error(), want) || !strings.Contains(start.Hint, "scripts/setup") {
			t.Errorf("%s: Start error = %v, want a StartError with %q and a hint", how, err, want)
		}
		if reasonOf(err, "") != "" {
			t.Error("a worker that cannot start is not an image's trouble")
		}
	}
	_, err := Start(t.Context(), Config{Command: []string{filepath.Join(t.TempDir(), "ocr"), "worker"}})
	if start, ok := errors.AsType[*StartError](err); !ok || !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(start.Hint, "go build") {
		t.Errorf("without the program: Start error = %v, want a StartError that it does not exist", err)
	}
	if _, err := Start(t.Context(), Config{}); err == nil {
		t.Error("Start without a command succeeded")
	}
	if _, err := startFake(t, "ok", Config{Dictionary: func(string) bool { return true }}); err == nil {
		t.Error("a dictionary without its digest was taken")
	}

	ctx, cancel := context.WithCancel(t.Context())
	busy := newBusy(t)
	go func() { busy.wait(1); cancel() }()
	_, err = Start(ctx, Config{Command: []string{os.Args[0]}, Env: []string{fakeStart + "=silent", busy.env()}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: Start error = %v, want %v", err, context.Canceled)
	}

	if _, err := startFake(t, "silent", Config{startTimeout: time.Millisecond}); err == nil ||
		!strings.Contains(err.Error(), "hello: no answer within 1ms") {
		t.Errorf("a worker that says nothing: %v", err)
	}
	checkNoChildren(t)
}

// The deadline is for reading, not for starting.
func TestSlowStartIsNoFailure(t *testing.T) {
	pool := fakePool(t, "ok", Config{Workers: 1, Timeout: 1})
	_, err := pool.Read(t.Context(), imageFor(imageHang))
	if reasonOf(err, "") != ReasonTimeout || pool.Stats().Started != 2 {
		t.Errorf("Read = %v after %d starts", err, pool.Stats().Started)
	}
}

func TestEngineMustNotChange(t *testing.T) {
	pool := fakePool(t, "changed", Config{Workers: 1, RecycleAfter: 1})
	checkReads(t, pool)
	_, err := pool.Read(t.Context(), imageFor(imageOK))
	if _, ok := errors.AsType[*StartError](err); !ok {
		t.Errorf("Read on another engine: error = %v, want a StartError", err)
	}
}

func TestCancelKillsAtOnce(t *testing.T) {
	busy := newBusy(t)
	pool := fakePool(t, "ok", Config{Workers: 1, Timeout: time.Hour, Env: []string{busy.env()}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { busy.wait(1); cancel() }()
	if _, err := pool.Read(ctx, imageFor(imageHang)); !errors.Is(err, context.Canceled) {
		t.Errorf("Read after cancel = %v, want %v", err, context.Canceled)
	}
	checkReads(t, pool)
	if s := pool.Stats(); s.Images != 1 || s.Failed != 0 {
		t.Errorf("Stats = %+v, want one image", s)
	}
	if _, err := pool.Read(ctx, imageFor(imageOK)); !errors.Is(err, context.Canceled) {
		t.Errorf("Read with a cancelled context = %v", err)
	}
}

func TestCloseKillsWhatIsRead(t *testing.T) {
	busy := newBusy(t)
	pool := fakePool(t, "ok", Config{Workers: 2, Timeout: time.Hour, Env: []string{busy.env()}})
	errs := make(chan error, 3)
	for range cap(errs) { // one more than workers: it waits for its turn
		go func() {
			_, err := pool.Read(t.Context(), imageFor(imageHang))
			errs <- err
		}()
	}
	busy.wait(2)
	pool.Close()
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("Read on a pool being closed = %v, want %v", err, ErrClosed)
		}
	}
	if _, err := pool.Read(t.Context(), imageFor(imageOK)); !errors.Is(err, ErrClosed) {
		t.Errorf("Read on a closed pool = %v, want %v", err, ErrClosed)
	}
}

func TestLazyStartAndRecycling(t *testing.T) {
	pool := fakePool(t, "ok", Config{Workers: 8, RecycleAfter: 3})
	for range 7 {
		checkReads(t, pool)
	}
	// One image at a time needs one worker at a time: 3 + 3 + 1 images.
	s := pool.Stats()
	if s.PeakRSS < 1<<20 && runtime.GOOS == "linux" {
		t.Errorf("PeakRSS = %d bytes", s.PeakRSS)
	}
	s.PeakRSS = 0
	testkit.Same(t, "Stats", Stats{Images: 7, Started: 3, Recycled: 2}, s)
}

func TestRanOutOfMemory(t *testing.T) {
	for text, want := range map[string]bool{"std::bad_alloc": true, "runtime: out of memory: x": true,
		"mmap: cannot allocate memory": true, "SIGSEGV": false} {
		if got := ranOutOfMemory.MatchString(text); got != want {
			t.Errorf("ranOutOfMemory of %q: %v", text, got)
		}
	}
}

// TestWorkerIsConfined looks at the environment and the memory limit of a worker.
func TestWorkerIsConfined(t *testing.T) {
	onlyLinux(t)
	t.Setenv("REDDIT_CLIENT_SECRET", "canary")
	t.Setenv("OMP_THREAD_LIMIT", "64")
	pool := fakePool(t, "ok", Config{Workers: 1, TessdataDir: "/models"})
	w := <-pool.idle
	pool.idle <- w
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", w.cmd.Process.Pid))
	testkit.OK(t, err)
	_, rest, _ := strings.Cut(string(limits), "Max address space")
	if got, want := strings.Fields(rest)[0], strconv.Itoa(addressSpace); got != want {
		t.Errorf("RLIMIT_AS of the worker = %s, want %s", got, want)
	}
	r, err := pool.Read(t.Context(), imageFor(imageEnvironment))
	testkit.OK(t, err)
	var env []string
	for _, w := range r.Words {
		env = append(env, w.Text)
	}
	for _, want := range []string{"OMP_THREAD_LIMIT=1", "TESSDATA_PREFIX=/models"} {
		if !slices.Contains(env, want) {
			t.Errorf("worker environment %q lacks %q", env, want)
		}
	}
	if strings.Contains(strings.Join(env, "\n"), "canary") {
		t.Errorf("worker environment %q holds a secret", env)
	}
}

// golang/go#27505: the parent-death signal comes when the creating thread ends.
func TestWorkersOutliveTheThreadThatStartedThePool(t *testing.T) {
	onlyLinux(t)
	started := make(chan *Pool)
	thread := 0
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		thread = syscall.Gettid()
		pool, err := startFake(t, "ok", Config{Workers: 1})
		if err != nil {
			t.Error(err)
		}
		started <- pool
	}()
	pool := <-started
	if pool == nil {
		return
	}
	defer pool.Close()
	for ended := false; !ended; runtime.Gosched() {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		ended = err != nil
	}
	checkReads(t, pool)
	if pool.Stats().Lost > 0 {
		t.Error("the worker died with a thread")
	}
}

func TestWorkersDieWithTheSupervisor(t *testing.T) {
	onlyLinux(t)
	busy := newBusy(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), fakeStart+"=parent", busy.env())
	testkit.OK(t, parent.Start())
	worker := busy.wait(1)
	testkit.OK(t, parent.Process.Signal(syscall.SIGKILL))
	_ = parent.Wait()                             // killed
	if _, err := io.ReadAll(worker); err != nil { // ends with the last process that has it open, the worker
		t.Error(err)
	}
}

func TestReadImages(t *testing.T) {
	pool := fakePool(t, "ok", Config{Workers: 1})
	for _, img := range []image.Image{image.NewGray(image.Rectangle{}), imageFor(imageNoText)} {
		r, err := pool.Read(t.Context(), img)
		testkit.Same(t, "what is read of nothing", layout.Reading{}, r, err)
	}
	// Boxes are in the image's own coordinates.
	whole := image.NewGray(image.Rect(0, 0, 3*fakeWidth, 3*fakeUnit*imageOK))
	part := whole.SubImage(image.Rect(100, 10, 100+2*fakeWidth, 10+2*fakeUnit*imageOK))
	r, err := pool.Read(t.Context(), part)
	if err != nil || len(r.Words) == 0 || r.Confidence != 95 {
		t.Fatalf("Reading = %+v, %v, want words of confidence 95", r, err)
	}
	for _, w := range r.Words {
		if !w.Box().In(part.Bounds()) {
			t.Errorf("word %q at %v is outside %v", w.Text, w.Box(), part.Bounds())
		}
	}
}

func TestEngine(t *testing.T) {
	// The constants are pinned in package layout.
	rules := layout.Rules{Dictionary: func(string) bool { return true }, DictionaryID: "all", DecisionOnly: true}
	decides, err := startFake(t, "ok", Config{Workers: 1, Dictionary: rules.Dictionary, DictionaryID: "all",
		DecisionOnly: true})
	testkit.OK(t, err)
	want := "fake; " + rules.Parameters("psm 13", "psm 11 invert")
	testkit.Same(t, "Parameters", want, decides.Engine().Parameters, decides.Close())
	e := fakePool(t, "ok", Config{Workers: 1}).Engine()
	if e.Tesseract != "5.0-fake" || !strings.HasPrefix(e.Parameters, "fake; method ") {
		t.Errorf("Engine = %+v", e)
	}
	seen := map[string]bool{e.Fingerprint(): true}
	for _, change := range []func(*Engine){
		func(e *Engine) { e.Tesseract += "x" }, func(e *Engine) { e.Leptonica += "x" },
		func(e *Engine) { e.Gosseract += "x" }, func(e *Engine) { e.Model += "x" },
		func(e *Engine) { e.ModelSHA256 += "x" }, func(e *Engine) { e.Parameters += "x" }, func(e *Engine) { e.Name = "x" },
		func(*Engine) {},
	} {
		other := e
		change(&other)
		seen[other.Fingerprint()] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d fingerprints of 8 engines", len(seen))
	}
}
