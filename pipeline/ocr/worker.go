package ocr

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
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
	in     *os.File
	out    *os.File
	frames *bufio.Reader
	stderr *capture
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
	// Pipes of our own, not those of exec.Cmd: its Wait closes them, perhaps before the last answer was read.
	var child, ours []*os.File
	var err error
	for i := range 3 {
		var r, w *os.File
		r, w, err = os.Pipe()
		if err != nil {
			break
		}
		if i == 0 { // stdin
			r, w = w, r
		}
		ours, child = append(ours, r), append(child, w)
	}
	cmd := exec.Command(command[0], command[1:]...)
	if err == nil {
		cmd.Env, cmd.SysProcAttr = env, processAttributes()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = child[0], child[1], child[2]
		err = cmd.Start()
	}
	for _, f := range child {
		f.Close()
	}
	if err != nil {
		for _, f := range ours {
			f.Close()
		}
		return nil, err
	}
	w := &worker{cmd: cmd, in: ours[0], out: ours[1], frames: bufio.NewReader(ours[1]), stderr: newCapture(ours[2]), exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(w.exited)
	}()
	return w, nil
}

// greet waits for the worker's hello and brings its memory under the hard limit.
func (w *worker) greet(ctx context.Context, stop <-chan struct{}, timeout time.Duration, addressSpace int64) error {
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
	return readAnswer(w.frames, w.lastID, gray.Rect.Dx(), gray.Rect.Dy())
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
	w.closePipes()
}

// stop lets the process end by itself, as it does when its stdin ends.
func (w *worker) stop() {
	w.in.Close()
	select {
	case <-w.exited:
		w.closePipes()
	case <-time.After(stopTimeout):
		w.kill()
	}
}

// closePipes also unblocks whoever still reads them. Errors say that they are closed.
func (w *worker) closePipes() {
	w.in.Close()
	w.out.Close()
	w.stderr.finish()
}

// autopsy ends the worker after err of greet or recognize and says what became of the
// image. A pipe that broke means that the process died; it gets a moment to do so by
// itself, because the way it ended is the best detail there is.
func (w *worker) autopsy(err error) *Failure {
	var engine engineError
	if failure, ours := errors.AsType[*Failure](err); ours {
		w.kill() // it may be in the middle of an answer
		return failure
	}
	switch {
	case errors.As(err, &engine):
		w.kill()
		return &Failure{ReasonEngine, oneLine(string(engine))}
	case errors.Is(err, errProtocol):
		w.kill()
		return &Failure{ReasonProtocol, oneLine(err.Error())}
	}
	select {
	case <-w.exited:
	case <-time.After(lastWords):
		w.kill()
		return &Failure{ReasonProtocol, "the worker closed its output without an answer"}
	}
	w.kill()
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

// A capture drains a worker's stderr, so that the worker never blocks on it, and keeps
// the first kilobytes since the last reset: a dying runtime says what happened first
// and prints registers after.
type capture struct {
	file *os.File
	done chan struct{}

	mu   sync.Mutex
	kept []byte
}

const captureBytes = 8 << 10

func newCapture(f *os.File) *capture {
	c := &capture{file: f, done: make(chan struct{})}
	go c.drain()
	return c
}

func (c *capture) drain() {
	defer close(c.done)
	buf := make([]byte, 4096)
	for {
		n, err := c.file.Read(buf)
		c.mu.Lock()
		c.kept = append(c.kept, buf[:min(n, captureBytes-len(c.kept))]...)
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *capture) reset() {
	c.mu.Lock()
	c.kept = c.kept[:0]
	c.mu.Unlock()
}

// finish waits a moment for what a dead worker left in the pipe, then lets go of it.
func (c *capture) finish() {
	select {
	case <-c.done:
	case <-time.After(lastWords):
	}
	c.file.Close()
	<-c.done
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
