package dedupe

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/safely"
)

// searchOf is a search of hashes without texts, with the list of all.
func searchOf(hashes []uint64, radius int, near func(i, j uint32) bool) (s *search, list []uint32) {
	s = &search{radius: radius, near: near, of: slices.Repeat([]uint32{none}, len(hashes))}
	for i, hash := range hashes {
		s.codes, list = append(s.codes, code{hash: hash}), append(list, uint32(i))
	}
	return s, list
}

// TestDrop takes both ways of looking up, with hashes of all kinds. Neither compares two texts twice.
func TestDrop(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	hashes := slices.Concat(codes("uniform", r, 2000, 8), codes("clustered", r, 2000, 8), codes("at the limit", r, 200, 8))
	r.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	near := func(i, j uint32) bool { return (i+j)%3 > 0 }
	for _, half := range []int{50, 2500} { // below and above scanBelow
		for _, radius := range []int{0, 4, 8, 16, 20} {
			want := make([]uint32, len(hashes))
			for j := range want {
				want[j] = none
				for i := 0; i < half && j >= half && want[j] == none; i++ {
					if bits.OnesCount64(hashes[i]^hashes[j]) <= radius && near(uint32(i), uint32(j)) {
						want[j] = uint32(i)
					}
				}
			}
			var mu sync.Mutex
			compared := map[[2]uint32]bool{}
			s, list := searchOf(hashes, radius, func(i, j uint32) bool {
				mu.Lock()
				defer mu.Unlock()
				if compared[[2]uint32{i, j}] {
					t.Errorf("%d and %d are compared twice within %d bits", i, j, radius)
				}
				compared[[2]uint32{i, j}] = true
				return near(i, j)
			})
			if err := s.drop(t.Context(), list[:half], list[half:]); err != nil || !slices.Equal(s.of, want) {
				t.Errorf("drop by the first %d within %d bits differs from the definition (error %v):\n%s", half, radius, err, cmp.Diff(want, s.of))
			}
		}
	}
}

// flip returns h with n random bits flipped.
func flip(r *rand.Rand, h uint64, n int) uint64 {
	for _, bit := range r.Perm(64)[:n] {
		h ^= 1 << bit
	}
	return h
}

// codes draws n hashes of a kind: unrelated ones; groups around templates; groups whose
// members differ in exactly the radius or one more, spread evenly over the bits so that
// every band is at its limit; and all the same.
func codes(kind string, r *rand.Rand, n, radius int) []uint64 {
	hashes := make([]uint64, n)
	template := r.Uint64()
	for i := range hashes {
		switch kind {
		case "uniform":
			hashes[i] = r.Uint64()
		case "clustered":
			if i%50 == 0 {
				template = r.Uint64()
			}
			hashes[i] = flip(r, template, r.IntN(10))
		case "at the limit":
			differ := min(64, radius+r.IntN(2))
			h := template
			for k := range differ {
				h ^= 1 << ((k*64/max(1, differ) + i) % 64)
			}
			hashes[i] = h
		case "equal":
			hashes[i] = template
		}
	}
	return hashes
}

func TestPlanBands(t *testing.T) {
	for _, test := range []struct {
		n, radius int
		want      []int
	}{
		// The published plans (Norouzi, Punjani, Fleet 2014).
		{4, 4, []int{1, 0, 0, 0}}, {4, 8, []int{2, 1, 1, 1}}, {4, 10, []int{2, 2, 2, 1}},
		{5, 4, []int{0, 0, 0, 0, 0}}, {5, 8, []int{1, 1, 1, 1, 0}}, {5, 10, []int{2, 1, 1, 1, 1}},
		{5, 0, []int{0, -1, -1, -1, -1}},
	} {
		var reach []int
		width := 0
		for _, b := range planBands(test.n, test.radius) {
			if b.shift != width || b.of(5<<width) != 5 {
				t.Errorf("planBands(%d, %d): a band starts at bit %d, want %d", test.n, test.radius, b.shift, width)
			}
			width += b.width
			reach = append(reach, b.reach)
		}
		if diff := cmp.Diff(test.want, reach); diff != "" || width != 64 {
			t.Errorf("planBands(%d, %d) covers %d bits; reach differs (-want +got):\n%s", test.n, test.radius, width, diff)
		}
	}
}

// TestChunksPanic: a panic in a worker does not end the program, and nothing is begun after the end of the context.
func TestChunksPanic(t *testing.T) {
	err := inChunks(t.Context(), 1000, func(i int) {
		if i == 500 {
			panic("no such item")
		}
	})
	if p, ok := errors.AsType[*safely.Panic](err); !ok || p.Value != "no such item" {
		t.Errorf("inChunks = %v after a panic", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = inChunks(ctx, 1000, func(i int) { t.Errorf("item %d is looked at after the end", i) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("inChunks, cancelled = %v", err)
	}
}
