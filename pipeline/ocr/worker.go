package ocr

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

const (
	startTimeout = 30 * time.Second       // to say hello: a cold disk has the model to load
	stopTimeout  = 2 * time.Second        // to end after its stdin did
	lastWords    = 200 * time.Millisecond // to end after its stdout did
	watchEvery   = 20 * time.Millisecond  // between two looks at resident memory
)

// A worker is one child process. One goroutine at a time uses it; kill may be called
// from any.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	frames *bufio.Reader
	stderr capture
	exited chan struct{} // closed when the process has been reaped
	engine Engine
	images int    // read so far
	lastID uint64 // of requests
	peak   atomic.Int64
}

// startProcess starts the program without waiting for its hello. The caller's
// goroutine must be locked to a thread that lives as long as the worker may; see
// spawner.
func startProcess(command, env []string) (*worker, error) {
	w := &worker{cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{})}
	// What a dead worker left in its stderr is waited for a moment: somebody else may hold the pipe open.
	w.cmd.Env, w.cmd.SysProcAttr, w.cmd.WaitDelay = env, processAttributes(), lastWords
	w.cmd.Stderr = &w.stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	w.in, w.frames = in, bufio.NewReader(out)
	go func() {
		// Wait closes the pipes, so that whoever reads or writes them returns. An answer that was still in one
		// is lost: its image is read once more. How the process ended is in cmd.ProcessState.
		_ = w.cmd.Wait()
		close(w.exited)
	}()
	return w, nil
}

// greet waits for the worker's hello and brings its memory under the hard limit.
func (w *worker) greet(ctx context.Context, stop <-chan struct{}, timeout time.Duration, addressSpace int64) error {
	// From outside, so that it holds whatever the worker does.
	if err := limitAddressSpace(w.cmd.Process.Pid, addressSpace); err != nil {
		w.kill()
		return fmt.Errorf("limit its memory: %w", err)
	}
	end := w.guard(ctx, stop, timeout, 0)
	hello, err := readHello(w.frames)
	cause := end()
	// A Failure is about an image, and here is none: its text is passed on, not itself.
	if failure, ok := errors.AsType[*Failure](cause); ok {
		return fmt.Errorf("it did not say hello: %s", failure.Detail)
	}
	if cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("it did not say hello: %s", w.autopsy(err).Detail)
	}
	w.engine = hello.Engine
	return nil
}

// recognize sends one image and waits for its words. Any error leaves the worker in an
// unknown state: call autopsy.
func (w *worker) recognize(gray *image.Gray, m Mode) ([]RawWord, error) {
	w.lastID++
	if err := writeRequest(w.in, request{id: w.lastID, mode: m, gray: gray}); err != nil {
		return nil, err
	}
	return readAnswer(w.frames, w.lastID, gray.Rect.Size())
}

// guard watches the worker while it is busy, and kills it when ctx or stop ends, when
// timeout has passed, or when its resident memory is over memory bytes (0 = no limit).
// A killed worker's pipes end, so whoever reads them returns. end stops the watch and
// tells why it killed, nil if it did not.
func (w *worker) guard(ctx context.Context, stop <-chan struct{}, timeout time.Duration, memory int64) (end func() error) {
	over, finished := make(chan struct{}), make(chan error, 1)
	go func() {
		cause := w.watch(ctx, stop, over, timeout, memory)
		if cause != nil {
			w.kill()
		}
		finished <- cause
	}()
	return func() error {
		close(over)
		return <-finished
	}
}

func (w *worker) watch(ctx context.Context, stop, over <-chan struct{}, timeout time.Duration, memory int64) error {
	deadline := time.After(timeout)
	tick := time.Tick(watchEvery)
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-stop:
			return ErrClosed
		case <-deadline:
			return &Failure{ReasonTimeout, fmt.Sprintf("no answer within %v", timeout)}
		case <-tick:
			if size := w.resident(); memory > 0 && size > memory {
				return &Failure{ReasonMemory, fmt.Sprintf("the worker grew over its limit of %d MiB", memory>>20)}
			}
		}
	}
}

// resident is the worker's resident memory in bytes, 0 where that cannot be told.
func (w *worker) resident() int64 {
	size := residentBytes(w.cmd.Process.Pid)
	if size > w.peak.Load() {
		w.peak.Store(size)
	}
	return size
}

// kill ends the process now and waits until it is reaped. Safe to call twice.
func (w *worker) kill() {
	// The only error is that it has ended already.
	_ = w.cmd.Process.Kill()
	<-w.exited
}

// stop lets the process end by itself, as it does when its stdin ends.
func (w *worker) stop() {
	w.in.Close()
	select {
	case <-w.exited:
	case <-time.After(stopTimeout):
		w.kill()
	}
}

// autopsy ends the worker after err of greet or recognize and says what became of the
// image. A pipe that broke means that the process died; it gets a moment to do so by
// itself, because the way it ended is the best detail there is.
func (w *worker) autopsy(err error) *Failure {
	var engine engineError
	failure, ours := errors.AsType[*Failure](err)
	switch {
	case ours: // it may be in the middle of an answer
	case errors.As(err, &engine):
		failure = &Failure{ReasonEngine, oneLine(string(engine))}
	case errors.Is(err, errProtocol):
		failure = &Failure{ReasonProtocol, oneLine(err.Error())}
	default:
		select {
		case <-w.exited:
			return w.death()
		case <-time.After(lastWords):
			failure = &Failure{ReasonProtocol, "the worker closed its output without an answer"}
		}
	}
	w.kill()
	return failure
}

// death says how the process ended by itself.
func (w *worker) death() *Failure {
	detail, heard := w.cmd.ProcessState.String(), w.stderr.epitaph()
	if heard != "" {
		detail += ": " + heard
	}
	if ranOutOfMemory(heard) {
		return &Failure{ReasonMemory, oneLine(detail)}
	}
	return &Failure{ReasonCrashed, oneLine(detail)}
}

// ranOutOfMemory knows what the C++ and Go runtimes say when RLIMIT_AS stops them.
func ranOutOfMemory(stderr string) bool {
	return strings.Contains(stderr, "bad_alloc") || strings.Contains(stderr, "out of memory") ||
		strings.Contains(stderr, "cannot allocate memory")
}

// oneLine makes a detail of text that a worker chose.
func oneLine(s string) string {
	const limit = 300
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.C)
	}), " ")
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit]) + "..."
	}
	return s
}

// A capture keeps the first kilobytes that a worker wrote to its stderr since the last
// reset: a dying runtime says what happened first and prints registers after.
type capture struct {
	mu   sync.Mutex
	kept []byte
}

const captureBytes = 8 << 10

// Write takes everything, so that the worker never blocks.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, b[:min(len(b), captureBytes-len(c.kept))]...)
	return len(b), nil
}

func (c *capture) reset() {
	c.mu.Lock()
	c.kept = c.kept[:0]
	c.mu.Unlock()
}

// epitaph is the line that says why the worker died: the first that looks like the last
// words of a runtime or of cmd/ocr, else the last line there is.
func (c *capture) epitaph() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := ""
	for text := range strings.Lines(string(c.kept)) {
		text = strings.TrimSpace(text)
		for _, start := range []string{"ocr: error:", "SIG", "fatal error:", "panic:", "terminate called", "runtime:"} {
			if strings.HasPrefix(text, start) {
				return text
			}
		}
		if text != "" {
			last = text
		}
	}
	return last
}
