// Package unpack reads what gzip, zstd or bzip2 packed, and anything else as it is.
package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// An Error says what is wrong with a packed file. Errors of the disk are no Error.
type Error struct{ what string }

func (e *Error) Error() string { return e.what }

// What a packed file may become. Rows of ids and labels shrink to a tenth at most, a file of one byte to a millionth.
const (
	freeBytes    = 64 << 20
	maxExpansion = 250
)

// A Reader gives the bytes that were packed.
type Reader struct {
	packed counter
	out    io.Reader
	read   int64 // of out
	plain  bool
	close  func()
}

// A counter counts what a decompressor reads, and keeps the error of the disk.
type counter struct {
	in  io.Reader
	n   int64
	err error
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.n += int64(n)
	if err != io.EOF {
		c.err = err
	}
	return n, err
}

// NewReader tells by the first bytes how a file is packed.
func NewReader(r io.Reader) (*Reader, error) {
	// 128 MiB is the window of zstd --long, the largest that its program takes unasked.
	return newReader(r, zstd.WithDecoderMaxWindow(128<<20))
}

// NewWideReader is NewReader for files that were packed with zstd --long=31, as dumps of Reddit are. A window of 2 GiB takes
// 4.2 GiB of memory.
func NewWideReader(r io.Reader) (*Reader, error) {
	// With the default, low memory, the decoder moves the whole window for every megabyte: minutes in place of seconds.
	return newReader(r, zstd.WithDecoderMaxWindow(1<<31), zstd.WithDecoderLowmem(false))
}

func newReader(r io.Reader, options ...zstd.DOption) (*Reader, error) {
	u := &Reader{packed: counter{in: r}, close: func() {}}
	size := 64 << 10
	if held, ok := r.(*bytes.Reader); ok { // as the pages of a Parquet are, of which there are many
		size = min(size, held.Len())
	}
	in := bufio.NewReaderSize(&u.packed, size)
	magic, _ := in.Peek(4) // a shorter file is not packed
	var err error
	switch {
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		u.out, err = gzip.NewReader(in)
	case string(magic) == "\x28\xb5\x2f\xfd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(in, append(options, zstd.WithDecoderConcurrency(1))...)
		if err == nil {
			u.out, u.close = z, z.Close
		}
	case strings.HasPrefix(string(magic), "BZh"):
		u.out = bzip2.NewReader(in)
	default:
		u.out, u.plain = in, true
	}
	if err == io.EOF { // in the middle of the header
		err = io.ErrUnexpectedEOF
	}
	return u, u.wrong(err)
}

func (u *Reader) wrong(err error) error {
	if err == nil || err == io.EOF || u.plain || u.packed.err != nil {
		return err
	}
	return &Error{"the packed file cannot be read: " + err.Error()}
}

// Read gives an *Error where the file is damaged, or becomes so much larger that it can only be meant as a trap.
func (u *Reader) Read(b []byte) (int, error) {
	n, err := u.out.Read(b)
	u.read += int64(n)
	if !u.plain && u.read > freeBytes && u.read > maxExpansion*u.packed.n {
		return 0, &Error{fmt.Sprintf("the packed file becomes more than %d times as large", maxExpansion)}
	}
	return n, u.wrong(err)
}

// Plain reports whether the bytes are given as they are.
func (u *Reader) Plain() bool { return u.plain }

// Close frees the decompressor; the file stays open.
func (u *Reader) Close() { u.close() }
