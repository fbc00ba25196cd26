package dedupe

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSearchProperty: whichever way it searches, it finds what the definition says. Near
// here is any relation, drawn at random.
func TestSearchProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		radius := rapid.IntRange(0, 10).Draw(t, "radius")
		n := rapid.IntRange(0, 120).Draw(t, "n")
		r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		hashes := codes(rapid.SampledFrom([]string{"clustered", "at the limit", "equal"}).Draw(t, "kind"), r, n, radius)
		share, salt := rapid.Uint64Range(0, 10).Draw(t, "share"), r.Uint64()
		near := func(i, j uint32) bool {
			return rand.New(rand.NewPCG(salt, uint64(i)<<32|uint64(j))).Uint64()%10 < share
		}
		want := make([]uint32, n)
		for j := range want {
			want[j] = none
			for i := range j {
				if want[i] == none && bits.OnesCount64(hashes[i]^hashes[j]) <= radius && near(uint32(i), uint32(j)) {
					want[j] = uint32(i)
					break
				}
			}
		}
		s := newSearch(keys{hashes: hashes}, radius, rapid.IntRange(1, 3).Draw(t, "workers"), near)
		s.edgesMore = rapid.IntRange(0, 60).Draw(t, "edgesMore")
		if err := s.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.of); diff != "" {
			t.Errorf("the search differs from the definition (-want +got):\n%s", diff)
		}
	})
}

// TestDrop takes both ways of looking up, with hashes of all kinds.
func TestDrop(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	hashes := slices.Concat(codes("uniform", r, 2000, 8), codes("clustered", r, 2000, 8), codes("at the limit", r, 200, 8))
	r.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	list := make([]uint32, len(hashes))
	for i := range list {
		list[i] = uint32(i)
	}
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
			s := newSearch(keys{hashes: hashes}, radius, 2, near)
			s.of = slices.Repeat([]uint32{none}, len(hashes))
			if err := s.drop(t.Context(), list[:half], list[half:]); err != nil || !slices.Equal(s.of, want) {
				t.Errorf("drop by the first %d within %d bits differs from the definition (error %v):\n%s", half, radius, err, cmp.Diff(want, s.of))
			}
		}
	}
}
