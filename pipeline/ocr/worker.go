package ocr

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"rehydrate/internal/word"
)

const (
	stopTimeout = 2 * time.Second        // to end after its stdin did
	lastWords   = 200 * time.Millisecond // to end after its stdout did
	watchEvery  = 20 * time.Millisecond  // between two looks at resident memory
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

// startProcess starts the program without waiting for its hello. See Pool.keepThread for who may call it.
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
	w.in, w.frames = in, bufio.NewReaderSize(out, maxAnswer)
	go func() {
		// Wait closes the pipes, so that whoever reads or writes them returns. An answer that was still in one
		// is lost: its image is read once more. How the process ended is in cmd.ProcessState.
		_ = w.cmd.Wait()
		close(w.exited)
	}()
	return w, nil
}

// greet waits for the worker's hello and brings its memory under the hard limit.
func (w *worker) greet(ctx context.Context, c Config) error {
	// From outside, so that it holds whatever the worker does.
	if err := limitAddressSpace(w.cmd.Process.Pid, max(addressSpace, 2*c.MemoryLimit)); err != nil {
		w.kill()
		return fmt.Errorf("limit its memory: %w", err)
	}
	end := w.guard(ctx, c.startTimeout, 0)
	hello, err := readHello(w.frames)
	if cause := end(); cause != nil {
		err = cause
	}
	if err != nil {
		// A Failure is about an image, and here is none: its text is passed on, not itself.
		return fmt.Errorf("it did not say hello: %s", w.autopsy(err).Detail)
	}
	w.engine = hello.Engine
	return nil
}

// recognize sends pictures and waits for the words of each. Any error leaves the worker in an
// unknown state: call autopsy.
func (w *worker) recognize(pictures []*image.Gray, m Mode) ([][]word.Raw, error) {
	w.lastID++
	if err := writeRequest(w.in, w.lastID, m, pictures); err != nil {
		return nil, err
	}
	return readAnswer(w.frames, w.lastID, pictures)
}

// read is recognize in the mode of a line, or of a whole page.
func (w *worker) read(pictures []*image.Gray, whole bool) ([][]word.Raw, error) {
	if whole {
		return w.recognize(pictures, pageMode)
	}
	return w.recognize(pictures, lineMode)
}

// watched does something with the worker under guard. After any error, which is do's or says why the worker was killed,
// the worker is dead.
func (w *worker) watched(ctx context.Context, c Config, do func() error) error {
	w.stderr.reset() // what is in it by the end is about this
	end := w.guard(ctx, c.Timeout, c.MemoryLimit)
	err := do()
	w.resident() // it can take less than watchEvery
	if cause := end(); cause != nil {
		return cause
	}
	if err != nil {
		return w.autopsy(err)
	}
	return nil
}

// guard watches the worker while it is busy, and kills it when ctx ends, when timeout has passed, or when its
// resident memory is over memory bytes (0 = no limit). end stops the watch and tells why it killed, nil if it did not.
func (w *worker) guard(ctx context.Context, timeout time.Duration, memory int64) (end func() error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		&Failure{ReasonTimeout, fmt.Sprintf("no answer within %v", timeout)})
	over, killed := make(chan struct{}), make(chan error, 1)
	// A killed worker's pipes end, so that whoever reads them returns.
	kill := func(cause error) {
		w.kill()
		killed <- cause
	}
	go func() {
		defer close(killed)
		tick := time.Tick(watchEvery)
		for {
			select {
			case <-over:
				return
			case <-ctx.Done():
				kill(context.Cause(ctx))
				return
			case <-tick:
				if size := w.resident(); memory > 0 && size > memory {
					kill(&Failure{ReasonMemory, fmt.Sprintf("the worker grew over its limit of %d MiB", memory>>20)})
					return
				}
			}
		}
	}()
	return func() error {
		close(over)
		defer cancel() // not before: it would look like the end of ctx
		return <-killed
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
	if ranOutOfMemory.MatchString(heard) {
		return &Failure{ReasonMemory, oneLine(detail)}
	}
	return &Failure{ReasonCrashed, oneLine(detail)}
}

// What the C++ and Go runtimes say when RLIMIT_AS stops them, and the last words of runtimes and of cmd/ocr.
var (
	ranOutOfMemory = regexp.MustCompile(`bad_alloc|out of memory|cannot allocate memory`)
	lastLine       = regexp.MustCompile(`(?m)^\s*(ocr: error:|SIG|fatal error:|panic:|terminate called|runtime:).*`)
)

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

// epitaph is the line that says why the worker died: the first that looks like last words, else the last line.
func (c *capture) epitaph() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if words := lastLine.Find(c.kept); words != nil {
		return strings.TrimSpace(string(words))
	}
	text := strings.TrimSpace(string(c.kept))
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}
