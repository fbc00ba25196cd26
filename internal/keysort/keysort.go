// Package keysort puts any number of small keys in order, in little memory.
package keysort

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"rehydrate/internal/scratch"
)

// A Key has 128 bits, whose order is that of the number, and a note that comes with it.
type Key struct{ Hi, Lo, Note uint64 }

// Compare orders keys; notes do not count.
func (k Key) Compare(o Key) int { return cmp.Or(cmp.Compare(k.Hi, o.Hi), cmp.Compare(k.Lo, o.Lo)) }

const keyBytes = 24

// A Sorter puts any number of keys in order, in 24 MiB of memory and a temporary file.
type Sorter struct {
	keys []Key    // that are not in the file yet
	disk *os.File // nil until keys are many; it has no name, so that nothing is left of it
	runs []int64  // the ends of the sorted runs in it, in bytes
}

const inMemory = 1 << 20 // keys

// Add adds a key.
func (s *Sorter) Add(k Key) error {
	if len(s.keys) == inMemory {
		if err := s.spill(); err != nil {
			return fmt.Errorf("sort ids in a temporary file (TMPDIR says where): %w", err)
		}
	}
	s.keys = append(s.keys, k)
	return nil
}

func (s *Sorter) spill() (err error) {
	if s.disk == nil {
		s.disk, err = scratch.File()
		if err != nil {
			return err
		}
	}
	slices.SortFunc(s.keys, Key.Compare)
	out := bufio.NewWriter(s.disk)
	end := int64(len(s.keys)) * keyBytes
	if n := len(s.runs); n > 0 {
		end += s.runs[n-1]
	}
	var b [keyBytes]byte
	for _, k := range s.keys {
		binary.BigEndian.PutUint64(b[:], k.Hi)
		binary.BigEndian.PutUint64(b[8:], k.Lo)
		binary.BigEndian.PutUint64(b[16:], k.Note)
		_, _ = out.Write(b[:]) // a failed write is remembered until the end
	}
	s.runs, s.keys = append(s.runs, end), s.keys[:0]
	return out.Flush()
}

// Each gives all keys in order.
func (s *Sorter) Each(yield func(Key)) error {
	slices.SortFunc(s.keys, Key.Compare)
	type run struct {
		in   *bufio.Reader
		head Key
	}
	var runs []run
	advance := func(r *run) error {
		var b [keyBytes]byte
		_, err := io.ReadFull(r.in, b[:])
		r.head = Key{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
		return err
	}
	start := int64(0)
	for _, end := range s.runs {
		r := run{in: bufio.NewReaderSize(io.NewSectionReader(s.disk, start, end-start), 64<<10)}
		if err := advance(&r); err != nil {
			return fmt.Errorf("read the sorted ids: %w", err)
		}
		runs, start = append(runs, r), end
	}
	for keys := s.keys; len(runs) > 0 || len(keys) > 0; {
		least := -1 // of the runs; -1 is the memory
		for i := range runs {
			if least < 0 && len(keys) == 0 || least < 0 && runs[i].head.Compare(keys[0]) < 0 ||
				least >= 0 && runs[i].head.Compare(runs[least].head) < 0 {
				least = i
			}
		}
		if least < 0 {
			yield(keys[0])
			keys = keys[1:]
			continue
		}
		yield(runs[least].head)
		if err := advance(&runs[least]); err == io.EOF {
			runs = slices.Delete(runs, least, least+1)
		} else if err != nil {
			return fmt.Errorf("read the sorted ids: %w", err)
		}
	}
	return nil
}

// Close gives the file back.
func (s *Sorter) Close() {
	if s.disk != nil {
		s.disk.Close()
	}
}
