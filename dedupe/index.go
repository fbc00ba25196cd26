package dedupe

import (
	"fmt"
	"iter"
	"math/bits"
)

// An Index finds the hashes within a radius of one, exactly, in a set that grows. It is
// for sets that are not known as a whole; Compare and KeepFirst join a whole set with
// itself, which is quicker than to ask for each hash in turn.
//
// The hashes lie in parts of doubling size, each sorted by every band once
// (multi-index hashing), and the last few thousand in a list that is scanned. Adding n
// hashes costs the order of n log n in all, a question at a radius of 8 looks at about
// 0.6 % of a set of a million; from a radius of 17 on every hash is looked at.
//
// Any number of goroutines may ask at a time as long as none adds.
type Index struct {
	radius int
	parts  []indexPart // from old and large to new and small
	tail   []uint64
	length int
}

// indexTail is the number of hashes that are scanned: about as quick as a look into the
// tables of as many.
const indexTail = 4096

// An indexPart holds the hashes numbered first and on.
type indexPart struct {
	first  int
	hashes []uint64
	bands  []band
	tables []*table // by band; nil where its reach is negative
	flips  [][]uint32
}

// NewIndex returns an empty index. The error says that the radius is not 0 to 64.
func NewIndex(radius int) (*Index, error) {
	if radius < 0 || radius > 64 {
		return nil, fmt.Errorf("index hashes: the radius is %d, want 0 to 64 bits", radius)
	}
	return &Index{radius: radius}, nil
}

// Len returns the number of hashes.
func (x *Index) Len() int { return x.length }

// Add adds a hash, which may be there already, and returns its number: 0 for the first,
// and one more for each after it.
func (x *Index) Add(hash uint64) int {
	x.tail = append(x.tail, hash)
	x.length++
	if len(x.tail) >= indexTail && x.radius <= maxIndexed {
		x.sortTail()
	}
	return x.length - 1
}

// sortTail makes a part of the tail and of the parts that are not larger than what comes
// after them.
func (x *Index) sortTail() {
	hashes := x.tail
	for n := len(x.parts); n > 0 && len(x.parts[n-1].hashes) <= len(hashes); n-- {
		hashes = append(x.parts[n-1].hashes, hashes...)
		x.parts = x.parts[:n-1]
	}
	x.parts = append(x.parts, newIndexPart(x.length-len(hashes), hashes, x.radius))
	x.tail = nil
}

func newIndexPart(first int, hashes []uint64, radius int) indexPart {
	p := indexPart{first: first, hashes: hashes, bands: bandsFor(max(len(hashes), scanBelow), radius)}
	for _, b := range p.bands {
		var t *table
		var flips []uint32
		if b.reach >= 0 {
			k := &keys{hashes: hashes}
			t = newTable(k)
			t.fill(k, b)
			flips = flipsWithin(b.width, b.reach)
		}
		p.tables, p.flips = append(p.tables, t), append(p.flips, flips)
	}
	return p
}

// Near yields the number and the distance of every hash within the radius of hash, each
// once, in no particular order.
func (x *Index) Near(hash uint64) iter.Seq2[int, int] {
	return func(yield func(number, distance int) bool) {
		for i := range x.parts {
			if !x.parts[i].near(hash, x.radius, yield) {
				return
			}
		}
		first := x.length - len(x.tail)
		for i, other := range x.tail {
			if d := bits.OnesCount64(hash ^ other); d <= x.radius && !yield(first+i, d) {
				return
			}
		}
	}
}

func (p *indexPart) near(hash uint64, radius int, yield func(number, distance int) bool) bool {
	for k, b := range p.bands {
		value := uint32(b.of(hash))
		for _, flip := range p.flips[k] {
			from, to := p.tables[k].start[value^flip], p.tables[k].start[value^flip+1]
			for i, other := range p.tables[k].hashes[from:to] {
				diff := hash ^ other
				d := bits.OnesCount64(diff)
				if d <= radius && !metBefore(diff, p.bands[:k]) && !yield(p.first+int(p.tables[k].place[int(from)+i]), d) {
					return false
				}
			}
		}
	}
	return true
}
