package ocr

import "runtime"

// A spawner starts processes from one OS thread that it keeps for itself. Linux sends
// the parent-death signal when the thread that created a child ends, not the process
// (golang/go#27505), and Go ends threads when it likes: a worker started from an
// ordinary goroutine can be killed at any time. The end of stdin, which also ends a
// worker, is not enough alone: a worker that hangs in C does not read.
type spawner struct {
	jobs chan func()
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go func() {
		// Never unlocked, so the thread ends with the goroutine, and with it any child
		// that is left.
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// start runs startProcess on the spawner's thread.
func (s *spawner) start(command, env []string) (w *worker, err error) {
	done := make(chan struct{})
	s.jobs <- func() {
		defer close(done)
		w, err = startProcess(command, env)
	}
	<-done
	return w, err
}

// close ends the thread. No start may be under way or follow.
func (s *spawner) close() { close(s.jobs) }
