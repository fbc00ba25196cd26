package pipeline

import (
	"fmt"
	"runtime/debug"
)

// An InternalError is a mistake in this program: a panic that was caught, so that the
// workspace is closed and the run ends as with any other error.
type InternalError struct {
	Value any    // what the panic was called with
	Stack []byte // of the goroutine that panicked
}

func (e *InternalError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// Guard calls f and returns its error, or an *InternalError when f panics. A panic of a
// goroutine ends the program at once, whoever waits for it: the command line and the
// goroutines of a fetch go through here. Those that wait for a signal, a process or the end of
// an answer, and do no more, do not.
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &InternalError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
