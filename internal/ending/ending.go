// Package ending knows by which signals people and systems end a program.
package ending

import (
	"os"
	"os/signal"
	"syscall"
)

// Hangup says that the terminal or the connection is gone.
const Hangup = syscall.SIGHUP

// Signals are those at which a program finishes what it has begun, and ends. Call it before any of them is caught: a
// hangup that the program was started to ignore, as nohup does, is none of them.
func Signals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(Hangup) {
		signals = append(signals, Hangup)
	}
	return signals
}

// Watch catches Signals. It closes stop at the first of them, after it told hangup if that is one. It calls cancel at
// the next that is no hangup: of those, a terminal that is closed sends several.
//
// From the first on, output that nobody reads any more does not end the program: what reads it in a pipe may have
// ended by the same signal.
func Watch(hangup, cancel func()) (stop <-chan struct{}) {
	stopped, signals := make(chan struct{}), make(chan os.Signal, 2)
	signal.Notify(signals, Signals()...)
	go func() {
		first := <-signals
		signal.Ignore(syscall.SIGPIPE)
		if first == Hangup {
			hangup()
		}
		close(stopped)
		for s := range signals {
			if s != Hangup {
				cancel()
				signal.Reset(os.Interrupt, syscall.SIGTERM) // one more ends a program that waits for its input
				return
			}
		}
	}()
	return stopped
}
