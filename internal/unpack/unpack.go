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
	packed *counter
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

// usualWindow is the window of zstd --long, the largest that its program takes unasked.
const usualWindow = 128 << 20

// NewReader tells by the first bytes how a file is packed.
func NewReader(r io.Reader) (*Reader, error) { return newReader(r, usualWindow) }

// NewWideReader is NewReader for files that were packed with zstd --long=31, as dumps of Reddit are. A window of 2 GiB
// takes
// 4.2 GiB of memory, but that of a small file takes no more than the file can become.
func NewWideReader(r io.Reader) (*Reader, error) { return newReader(r, widestWindow) }

func newReader(r io.Reader, window uint64) (*Reader, error) {
	u := &Reader{packed: &counter{in: r}, close: func() {}}
	size := 64 << 10
	if held, ok := r.(*bytes.Reader); ok { // as the pages of a Parquet are, of which there are many
		size = min(size, held.Len())
	}
	in := bufio.NewReaderSize(u.packed, size)
	magic, _ := in.Peek(4) // a shorter file is not packed
	var err error
	switch {
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		u.out, err = gzip.NewReader(in)
	case string(magic) == magicZstd:
		err = u.unzstd(in, window)
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

func (u *Reader) unzstd(in io.Reader, window uint64) error {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1)}
	if window > usualWindow {
		// The decoder takes the memory of a window before it sees content, so it is held to what a small file can become.
		small, err := io.ReadAll(io.LimitReader(in, wideFrom))
		if err != nil {
			return err
		}
		if len(small) < wideFrom {
			most := uint64(mostOf(int64(len(small)))) + maxBlock
			narrow(small, most)
			window = 2 * most // windows are powers of two
		}
		// What it becomes is compared with what was taken of it so far.
		u.packed = &counter{in: io.MultiReader(bytes.NewReader(small), in)}
		in = bufio.NewReaderSize(u.packed, 64<<10)
		// With the default, low memory, the decoder moves the whole window for every megabyte: minutes in place of seconds.
		options = append(options, zstd.WithDecoderLowmem(false))
	}
	z, err := zstd.NewReader(in, append(options, zstd.WithDecoderMaxWindow(window))...)
	if err == nil {
		u.out, u.close = z, z.Close
	}
	return err
}

// mostOf returns how large a packed file of n bytes may become.
func mostOf(n int64) int64 { return max(freeBytes, maxExpansion*n) }

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
	if !u.plain && u.read > mostOf(u.packed.n) {
		return 0, &Error{fmt.Sprintf("the packed file becomes more than %d times as large", maxExpansion)}
	}
	return n, u.wrong(err)
}

// Plain reports whether the bytes are given as they are.
func (u *Reader) Plain() bool { return u.plain }

// Close frees the decompressor; the file stays open.
func (u *Reader) Close() { u.close() }
