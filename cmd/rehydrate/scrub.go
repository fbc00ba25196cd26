package main

import (
	"errors"
	"fmt"
	"io"

	"rehydrate/pipeline/contain"
	"rehydrate/pipeline/reddit"
)

// panicHint is what to do about an *contain.Panic.
const panicHint = "this is a mistake in rehydrate: please report it, with the command and what it prints with -v; " +
	"what was stored is whole, and the same command goes on from there"

// The streams of a command. Everything that it writes, whoever writes it, goes through a
// writer that takes the operator's secrets out.
type streams struct {
	scrubber       *reddit.Scrubber
	stdout, stderr *stream
	// bare is stdout as it is, for the made-up credentials of the emulator alone, which a user
	// may have put into the environment.
	bare io.Writer
}

// A stream remembers its first error.
type stream struct {
	*reddit.ScrubbingWriter
	err error
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.ScrubbingWriter.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

func newStreams(p process) streams {
	s := new(reddit.Scrubber)
	return streams{scrubber: s, stdout: &stream{ScrubbingWriter: s.Writer(p.stdout)}, stderr: &stream{ScrubbingWriter: s.Writer(p.stderr)}, bare: p.stdout}
}

func (s streams) flush() {
	// The last call of the program: there is no other stream to report an error on.
	_ = s.stdout.Flush()
	_ = s.stderr.Flush()
}

func (c *command) execute(do func() error) error {
	// A panic becomes an error: deferred calls close the workspace, and the message is scrubbed.
	return contain.Do(func() error {
		// Before anything is printed: an error about arguments repeats them.
		c.streams.scrubber.LearnEnv(c.getenv)
		return do()
	})
}

// trace prints where an internal error happened, for whoever looks for the mistake.
func (c *command) trace(err error) {
	var internal *contain.Panic
	if c.verbose && errors.As(err, &internal) {
		fmt.Fprintf(c.stderr, "%s\n", internal.Stack)
	}
}
