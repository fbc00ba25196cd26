package ocr

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// fakePool starts a pool of fake workers and asserts at the end that none is left.
func fakePool(t *testing.T, how string, c Config) *Pool {
	t.Helper()
	pool, err := startFake(t, how, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		if left := children(t); len(left) > 0 {
			t.Errorf("processes left after Close: %v", left)
		}
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

// children lists the child processes of this one, zombies included.
func children(t *testing.T) []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range stats {
		body, err := os.ReadFile(name)
		if err != nil {
			continue // ended meanwhile
		}
		_, rest, _ := strings.Cut(string(body), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			found = append(found, filepath.Base(filepath.Dir(name))+" "+fields[0])
		}
	}
	return found
}

func wantText(kind int) string { return fmt.Sprintf("KIND %d INTERNATIONAL PROBLEMS", kind) }

func TestReadFailures(t *testing.T) {
	tests := []struct {
		name   string
		kind   int
		want   manifest.Reason // "" = read
		detail string          // part of Failure.Detail
		lost   int             // workers
	}{
		{"ok", imageOK, "", "", 0},
		{"crash", imageCrash, ReasonCrashed, "exit status 7", 2},
		{"crash once", imageCrashOnce, "", "", 1},
		{"segfault", imageSegfault, ReasonCrashed, "SIGSEGV", 2},
		{"hang", imageHang, ReasonTimeout, "no answer within 1s", 2},
		{"garbage", imageGarbage, ReasonProtocol, "frame of", 2},
		{"garbage once", imageGarbageOnce, "", "", 1},
		{"answer to another request", imageWrongID, ReasonProtocol, "expected 1", 2},
		{"word outside the image", imageOutside, ReasonProtocol, "9999", 2},
		{"closed stdout", imageClosesStdout, ReasonProtocol, "closed its output", 2},
		{"error of the engine", imageEngineError, ReasonEngine, "no such mode", 1},
		{"half a megabyte of stderr", imageNoisyStderr, "", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pool := fakePool(t, "ok", Config{Workers: 1, Timeout: time.Second})
			got, err := pool.Read(t.Context(), imageFor(tt.kind))
			if tt.want == "" {
				if err != nil || got.Text != wantText(tt.kind) {
					t.Errorf("Read = %q, %v, want %q", got.Text, err, wantText(tt.kind))
				}
			} else {
				failure, ok := errors.AsType[*Failure](err)
				if !ok || failure.Reason != tt.want || !strings.Contains(failure.Detail, tt.detail) {
					t.Errorf("Read error = %v, want %s with %q", err, tt.want, tt.detail)
				}
			}
			if got := pool.Stats().Lost; got != tt.lost {
				t.Errorf("%d workers lost, want %d", got, tt.lost)
			}
			if got, err := pool.Read(t.Context(), imageFor(imageOK)); err != nil || got.Text != wantText(imageOK) {
				t.Errorf("next image: Read = %q, %v", got.Text, err)
			}
		})
	}
}

// A panicking image is one that nobody thought of.
type panicking struct{ image.Image }

func (panicking) At(x, y int) color.Color { panic("no such pixel") }

// TestPanicCostsOneImage: a panic in preparing an image or in judging its words fails that image, and
// leaves the pool whole.
func TestPanicCostsOneImage(t *testing.T) {
	const trap = "INTERNATIONAL"
	bad := true
	pool := fakePool(t, "ok", Config{Workers: 1, DictionaryID: "x", Dictionary: func(word string) bool {
		if bad && word == trap {
			var none []int
			return none[len(word)] == 0
		}
		return true
	}})
	for _, tt := range []struct {
		name, detail string
		img          image.Image
		lost         int
	}{
		{"prepared", "no such pixel", panicking{imageFor(imageOK)}, 0},
		{"judged", "index out of range", imageFor(imageOK), 1},
	} {
		_, err := pool.Read(t.Context(), tt.img)
		failure, ok := errors.AsType[*Failure](err)
		if !ok || failure.Reason != ReasonInternal || !strings.Contains(failure.Detail, tt.detail) {
			t.Errorf("%s: Read error = %v, want %s with %q", tt.name, err, ReasonInternal, tt.detail)
		}
		if got := pool.Stats().Lost; got != tt.lost {
			t.Errorf("%s: %d workers lost, want %d", tt.name, got, tt.lost)
		}
	}
	bad = false
	if got, err := pool.Read(t.Context(), imageFor(imageOK)); err != nil || got.Text != wantText(imageOK) {
		t.Errorf("next image: Read = %q, %v", got.Text, err)
	}
	if got := pool.Stats(); got.Images != 3 || got.Failed != 2 {
		t.Errorf("Stats = %+v, want 2 of 3 images failed", got)
	}
}

func TestReadMemoryLimit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is watched on Linux only")
	}
	const limit = 128 << 20
	pool := fakePool(t, "ok", Config{Workers: 1, Timeout: 20 * time.Second, MemoryLimit: limit})
	_, err := pool.Read(t.Context(), imageFor(imageGrow))
	if failure, ok := errors.AsType[*Failure](err); !ok || failure.Reason != ReasonMemory {
		t.Errorf("Read error = %v, want %s", err, ReasonMemory)
	}
	if got, err := pool.Read(t.Context(), imageFor(imageOK)); err != nil || got.Text != wantText(imageOK) {
		t.Errorf("next image: Read = %q, %v", got.Text, err)
	}
}

// Nine faults among a hundred images: those nine fail, each with its reason, and every other reading is, bit for bit,
// that of a run without faults on one worker.
func TestNineFaultsAmongAHundred(t *testing.T) {
	const images = 100
	faults := map[int]struct {
		kind int
		want manifest.Reason
	}{
		0: {imageHang, ReasonTimeout}, 41: {imageSegfault, ReasonCrashed}, 42: {imageSegfault, ReasonCrashed},
		47: {imageGarbage, ReasonProtocol}, 50: {imageHang, ReasonTimeout}, 51: {imageCrash, ReasonCrashed},
		52: {imageOutside, ReasonProtocol}, 55: {imageEngineError, ReasonEngine}, 99: {imageClosesStdout, ReasonProtocol},
	}
	read := func(t *testing.T, c Config, faulty bool) ([]Reading, []error) {
		readings, errs := make([]Reading, images), make([]error, images)
		pool := fakePool(t, "ok", c)
		next := make(chan int)
		var readers sync.WaitGroup
		for range c.Workers + 1 {
			readers.Go(func() {
				for i := range next {
					img := imageFor(imageDigest).(*image.Gray)
					random := rand.New(rand.NewPCG(uint64(i), 0))
					for k := range img.Pix {
						img.Pix[k] = uint8(180 + random.IntN(70))
					}
					if fault, ok := faults[i]; ok && faulty {
						img = imageFor(fault.kind).(*image.Gray)
					}
					readings[i], errs[i] = pool.Read(t.Context(), img)
				}
			})
		}
		for i := range images {
			next <- i
		}
		close(next)
		readers.Wait()
		return readings, errs
	}
	var clean, got []Reading
	var cleanErrs, errs []error
	t.Run("clean", func(t *testing.T) { clean, cleanErrs = read(t, Config{Workers: 1}, false) })
	t.Run("faulty", func(t *testing.T) {
		got, errs = read(t, Config{Workers: 3, Timeout: 2 * time.Second, RecycleAfter: 25}, true)
	})
	seen := map[string]bool{}
	for i := range images {
		if cleanErrs[i] != nil {
			t.Fatalf("image %d of the clean run: %v", i, cleanErrs[i])
		}
		seen[clean[i].Text] = true
		fault, faulty := faults[i]
		failure, failed := errors.AsType[*Failure](errs[i])
		switch {
		case faulty && (!failed || failure.Reason != fault.want):
			t.Errorf("image %d: error %v, want %s", i, errs[i], fault.want)
		case !faulty && errs[i] != nil:
			t.Errorf("image %d was lost with its neighbours: %v", i, errs[i])
		case !faulty && !cmp.Equal(clean[i], got[i]):
			t.Errorf("image %d (-clean +got):\n%s", i, cmp.Diff(clean[i], got[i]))
		}
	}
	if len(seen) < images {
		t.Errorf("%d different readings of %d images: the test sees no mix-up", len(seen), images)
	}
}

func TestStartErrors(t *testing.T) {
	tests := []struct {
		how, want string
	}{
		{"exit", "no eng.traineddata in /nowhere"},
		{"garbage", "not the worker protocol"},
		{"version", "the worker speaks version 3, this program version 2"},
	}
	for _, tt := range tests {
		t.Run(tt.how, func(t *testing.T) {
			_, err := startFake(t, tt.how, Config{})
			start, ok := errors.AsType[*StartError](err)
			if !ok || !strings.Contains(err.Error(), tt.want) || !strings.Contains(start.Hint, "scripts/setup") {
				t.Errorf("Start error = %v, want a StartError with %q and a hint", err, tt.want)
			}
			if _, isFailure := errors.AsType[*Failure](err); isFailure {
				t.Error("a worker that cannot start is not an image's trouble")
			}
			if left := children(t); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
	t.Run("missing program", func(t *testing.T) {
		_, err := Start(t.Context(), Config{Command: []string{filepath.Join(t.TempDir(), "ocr"), "worker"}})
		start, ok := errors.AsType[*StartError](err)
		if !ok || !errors.Is(err, os.ErrNotExist) || !strings.Contains(start.Hint, "go build") {
			t.Errorf("Start error = %v, want a StartError that it does not exist", err)
		}
	})
	t.Run("no program", func(t *testing.T) {
		if _, err := Start(t.Context(), Config{}); err == nil {
			t.Error("Start without a command succeeded")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		busy := newBusy(t)
		go func() { busy.wait(1); cancel() }()
		_, err := Start(ctx, Config{Command: []string{os.Args[0]}, Env: []string{fakeStart + "=silent", busy.env()}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Start error = %v, want %v", err, context.Canceled)
		}
	})
	t.Run("silent", func(t *testing.T) {
		s := newSpawner()
		defer s.close()
		w, err := s.start([]string{os.Args[0]}, append(os.Environ(), fakeStart+"=silent"))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.greet(t.Context(), nil, time.Millisecond, addressSpace); err == nil || !strings.Contains(err.Error(), "hello: no answer within 1ms") {
			t.Errorf("greet = %v", err)
		}
		if left := children(t); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
}

// The deadline is for reading, not for starting.
func TestSlowStartIsNoFailure(t *testing.T) {
	pool := fakePool(t, "ok", Config{Workers: 1, Timeout: 1})
	_, err := pool.Read(t.Context(), imageFor(imageHang))
	if failure, ok := errors.AsType[*Failure](err); !ok || failure.Reason != ReasonTimeout || pool.Stats().Started != 2 {
		t.Errorf("Read = %v after %d starts", err, pool.Stats().Started)
	}
}

func TestEngineMustNotChange(t *testing.T) {
	pool := fakePool(t, "changed", Config{Workers: 1, RecycleAfter: 1})
	if _, err := pool.Read(t.Context(), imageFor(imageOK)); err != nil {
		t.Fatal(err)
	}
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
	if _, err := pool.Read(t.Context(), imageFor(imageOK)); err != nil {
		t.Errorf("next image: %v", err)
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
		if _, err := pool.Read(t.Context(), imageFor(imageOK)); err != nil {
			t.Fatal(err)
		}
	}
	// One image at a time needs one worker at a time: 3 + 3 + 1 images.
	s := pool.Stats()
	s.PeakRSS = 0
	if diff := cmp.Diff(Stats{Images: 7, Started: 3, Recycled: 2}, s); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
}

// Where the decision is all that is wanted, an image is asked about once if that is
// enough, and the pool says so in its parameters.
func TestDecisionOnly(t *testing.T) {
	known := func(string) bool { return true }
	passes := func(t *testing.T, c Config, kind int) uint64 {
		pool := fakePool(t, "ok", c)
		if _, err := pool.Read(t.Context(), imageFor(kind)); err != nil {
			t.Fatal(err)
		}
		return pool.idle[0].lastID
	}
	c := Config{Workers: 1, Dictionary: known, DictionaryID: "all", DecisionOnly: true}
	t.Run("enough", func(t *testing.T) {
		if got := passes(t, c, imageManyWords); got != 1 {
			t.Errorf("%d passes, want 1", got)
		}
	})
	t.Run("not enough", func(t *testing.T) {
		if got := passes(t, c, imageNoText); got < 2 {
			t.Errorf("%d passes, want more than one", got)
		}
	})
	t.Run("all text wanted", func(t *testing.T) {
		whole := c
		whole.DecisionOnly = false
		pool := fakePool(t, "ok", whole)
		if strings.Contains(pool.Engine().Parameters, "enough at") || !strings.Contains(pool.Engine().Parameters, "dictionary all") {
			t.Errorf("parameters %q", pool.Engine().Parameters)
		}
	})
	t.Run("parameters", func(t *testing.T) {
		if got := fakePool(t, "ok", c).Engine().Parameters; !strings.Contains(got, "enough at 4 words") {
			t.Errorf("parameters %q do not tell that reading ends early", got)
		}
	})
	if _, err := startFake(t, "ok", Config{Dictionary: known}); err == nil {
		t.Error("a dictionary without its digest was taken")
	}
}

func TestWorkerEnvironment(t *testing.T) {
	t.Setenv("REDDIT_CLIENT_SECRET", "canary")
	t.Setenv("OMP_THREAD_LIMIT", "64")
	pool := fakePool(t, "ok", Config{Workers: 1, TessdataDir: "/models"})
	r, err := pool.Read(t.Context(), imageFor(imageEnvironment))
	if err != nil {
		t.Fatal(err)
	}
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

func TestWorkerLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits are set on Linux only")
	}
	pool := fakePool(t, "ok", Config{Workers: 1})
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pool.idle[0].cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max address space"); ok {
			if got, want := strings.Fields(rest)[0], strconv.Itoa(addressSpace); got != want {
				t.Errorf("RLIMIT_AS of the worker = %s, want %s", got, want)
			}
			return
		}
	}
	t.Error("no address space limit in /proc/PID/limits")
}

// golang/go#27505: the parent-death signal comes when the creating thread ends.
func TestWorkersOutliveTheThreadThatStartedThePool(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux alone has the signal")
	}
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
	if _, err := pool.Read(t.Context(), imageFor(imageOK)); err != nil || pool.Stats().Lost > 0 {
		t.Errorf("Read = %v with %+v: the worker died with a thread", err, pool.Stats())
	}
}

func TestWorkersDieWithTheSupervisor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a worker that hangs is killed with its supervisor on Linux only")
	}
	busy := newBusy(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), fakeStart+"=parent", busy.env())
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	worker := busy.wait(1)
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()                             // killed
	if _, err := io.ReadAll(worker); err != nil { // ends with the last process that has it open, the worker
		t.Error(err)
	}
}

func TestReadImages(t *testing.T) {
	pool := fakePool(t, "ok", Config{Workers: 1})
	t.Run("empty", func(t *testing.T) {
		r, err := pool.Read(t.Context(), image.NewGray(image.Rectangle{}))
		if diff := cmp.Diff(Reading{}, r); err != nil || diff != "" {
			t.Errorf("Read = %+v, %v, want nothing", r, err)
		}
	})
	t.Run("no text", func(t *testing.T) {
		r, err := pool.Read(t.Context(), imageFor(imageNoText))
		if diff := cmp.Diff(Reading{}, r); err != nil || diff != "" {
			t.Errorf("Read = %+v, %v, want nothing", r, err)
		}
	})
	t.Run("boxes in the image's own coordinates", func(t *testing.T) {
		whole := image.NewGray(image.Rect(0, 0, 3*fakeWidth, 3*fakeUnit*imageOK))
		part := whole.SubImage(image.Rect(100, 10, 100+2*fakeWidth, 10+2*fakeUnit*imageOK))
		r, err := pool.Read(t.Context(), part)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Words) == 0 || r.Confidence != 90 {
			t.Fatalf("Reading = %+v, want words of confidence 90", r)
		}
		for _, w := range r.Words {
			if !w.Box.In(part.Bounds()) {
				t.Errorf("word %q at %v is outside %v", w.Text, w.Box, part.Bounds())
			}
		}
	})
}

func TestEngine(t *testing.T) {
	pool := fakePool(t, "ok", Config{Workers: 1})
	e := pool.Engine()
	if e.Tesseract != "5.0-fake" || !strings.HasPrefix(e.Parameters, "fake; method ") {
		t.Errorf("Engine = %+v", e)
	}
	seen := map[string]bool{e.Fingerprint(): true}
	for _, change := range []func(*Engine){
		func(e *Engine) { e.Tesseract += "x" }, func(e *Engine) { e.Leptonica += "x" },
		func(e *Engine) { e.Gosseract += "x" }, func(e *Engine) { e.Model += "x" },
		func(e *Engine) { e.ModelSHA256 += "x" }, func(e *Engine) { e.Parameters += "x" },
	} {
		other := e
		change(&other)
		seen[other.Fingerprint()] = true
	}
	if len(seen) != 7 || pool.Engine().Fingerprint() != e.Fingerprint() {
		t.Errorf("%d fingerprints of 7 engines", len(seen))
	}
	want := "method 2; P1 Y soft white 180-250 @550 psm 3 invert; P2 Y soft dark 20-140 unread from 12 shapes @700 psm 3 invert; " +
		"P3 M soft white 180-250 components unread from 4 shapes @700 psm 11; " +
		"P4 M soft white 200-252 components unread from 8 shapes @1000 psm 11; P5 below 12 letters of 60 Y @1000 psm 11 invert; " +
		"minimum from 150; enlarge at most 4; components ink 160 high 25% wide 50% speck 8/1000; " +
		"unread but lines from 60 of 4, margin 1/8; " +
		"shapes after 24 letters, high 7 narrow 2 wide 3 like 70%; merge floor 50 overlap 30% length^0.3 unlisted 80%; " +
		"agree floor 30 overlap 50%; line 45%"
	if got := parameters(); got != want {
		t.Errorf("parameters() =\n%s\nwant\n%s\n(a change here makes everyone's OCR run again)", got, want)
	}
}
