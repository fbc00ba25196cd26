package unpack

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"rehydrate/internal/testkit"
)

// packedWide returns content as zstd --long=31 packs what comes through a pipe.
func packedWide(t testing.TB, content []byte, options ...zstd.EOption) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, append([]zstd.EOption{zstd.WithWindowSize(512 << 20), zstd.WithEncoderConcurrency(1)},
		options...)...)
	testkit.OK(t, err)
	_, err = z.Write(content)
	testkit.OK(t, err)
	testkit.OK(t, z.Flush()) // before its end, so that the length of the content is not known
	testkit.OK(t, z.Close())
	return b.Bytes()
}

func windowOf(t *testing.T, frame []byte) uint64 {
	t.Helper()
	var h zstd.Header
	testkit.OK(t, h.Decode(frame))
	return h.WindowSize
}

// TestNarrow lowers the windows of all frames of a small file, and what comes out stays the same.
func TestNarrow(t *testing.T) {
	content := []byte(strings.Repeat("a line of a dump\n", 30_000) + "another")
	frame := packedWide(t, content)
	testkit.Same(t, "the window that is claimed", uint64(512<<20), windowOf(t, frame))
	skipped := []byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc")
	empty := packedWide(t, nil, zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
	for _, tt := range []struct {
		name   string
		frames [][]byte
		last   int // which frame is looked at
		want   int // times the content
	}{
		{"one frame", [][]byte{frame}, 0, 1},
		{"behind an empty one, and another", [][]byte{empty, skipped, frame, frame}, 3, 2},
	} {
		file := bytes.Join(tt.frames, nil)
		r, err := NewWideReader(bytes.NewReader(file))
		testkit.OK(t, err)
		got, err := io.ReadAll(r)
		r.Close()
		testkit.Same(t, tt.name, tt.want*len(content), len(got), err)
		narrow(file, freeBytes+maxBlock)
		at := len(bytes.Join(tt.frames[:tt.last], nil))
		testkit.Same(t, tt.name+": the window that is taken", uint64(128<<20), windowOf(t, file[at:]))
	}
}

// TestCutFrames cuts a file off anywhere: it is an error, and no panic.
func TestCutFrames(t *testing.T) {
	frame := packedWide(t, []byte(strings.Repeat("a line of a dump\n", 100)))
	for n := range len(frame) {
		narrow(bytes.Clone(frame[:n]), freeBytes)
	}
	for n := 4; n < len(frame); n += 5 { // each takes the memory of a window
		r, err := NewWideReader(bytes.NewReader(frame[:n]))
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if err == nil {
			t.Errorf("cut off at %d: no error", n)
		}
	}
}

// TestWindowBeforeContent reads 9 bytes that claim a window of 2 GiB.
func TestWindowBeforeContent(t *testing.T) {
	file := []byte("\x28\xb5\x2f\xfd\x04\xa8\x01\x00\x00")
	narrow(file, freeBytes+maxBlock)
	testkit.Same(t, "the window that is taken", uint64(128<<20), windowOf(t, file))
	r, err := NewWideReader(bytes.NewReader(file))
	if err == nil {
		defer r.Close()
		_, err = io.ReadAll(r)
	}
	if err == nil {
		t.Error("no error of a frame that is cut off")
	}
}
