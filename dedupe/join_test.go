package dedupe

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type pair struct{ I, J uint32 }

// bruteForce is the definition of the search.
func bruteForce(hashes []uint64, radius int) []pair {
	var pairs []pair
	for i := range hashes {
		for j := i + 1; j < len(hashes); j++ {
			if bits.OnesCount64(hashes[i]^hashes[j]) <= radius {
				pairs = append(pairs, pair{uint32(i), uint32(j)})
			}
		}
	}
	return pairs
}

// collect runs a join and returns its pairs in order, with repeats if there are any.
func collect(workers int, run func(visitor) error) ([]pair, error) {
	found := make([][]pair, workers)
	err := run(func(worker int, i, j uint32) { found[worker] = append(found[worker], pair{i, j}) })
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b pair) int {
		if a.I != b.I {
			return int(a.I) - int(b.I)
		}
		return int(a.J) - int(b.J)
	})
	return all, err
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

func TestJoinEqualsBruteForce(t *testing.T) {
	for _, kind := range []string{"uniform", "clustered", "at the limit", "equal"} {
		for radius := range 17 {
			r := rand.New(rand.NewPCG(1, uint64(radius)))
			hashes := codes(kind, r, 300, radius)
			want := bruteForce(hashes, radius)
			for _, bands := range []int{4, 5, 7} {
				got, err := collect(3, func(v visitor) error {
					return indexJoin(t.Context(), &keys{hashes: hashes}, radius, planBands(bands, radius), 3, v)
				})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, radius %d, %d bands: %d pairs, brute force %d, error %v", kind, radius, bands, len(got), len(want), err)
				}
			}
			got, err := collect(2, func(v visitor) error { return scanJoin(t.Context(), &keys{hashes: hashes}, radius, 2, v) })
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, radius %d, scan: %d pairs, brute force %d, error %v", kind, radius, len(got), len(want), err)
			}
		}
	}
}

// TestJoinLarge takes the paths that join chooses by size, with hashes of both kinds.
func TestJoinLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	hashes := slices.Concat(codes("uniform", r, 2000, 8), codes("clustered", r, 2000, 8), codes("at the limit", r, 200, 8))
	r.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	for _, radius := range []int{0, 4, 8, 9, 16, 20, 64} {
		set := hashes
		if radius > 16 {
			set = hashes[:600]
		}
		want := bruteForce(set, radius)
		for _, workers := range []int{1, 2, 5} {
			got, err := collect(workers, func(v visitor) error { return join(t.Context(), &keys{hashes: set}, radius, workers, v) })
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("radius %d, %d workers: %d pairs, brute force %d, error %v", radius, workers, len(got), len(want), err)
			}
		}
	}
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
			if b.shift != width {
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

func TestJoinStops(t *testing.T) {
	hashes := codes("equal", rand.New(rand.NewPCG(1, 1)), 20_000, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var seen atomic.Int64
	err := join(ctx, &keys{hashes: hashes}, 8, 2, func(int, uint32, uint32) {
		if seen.Add(1) == 1000 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("join of a cancelled context: %v after %d pairs, want %v", err, seen.Load(), context.Canceled)
	}
}

// TestJoinTexts: with texts the join finds what the definition says, by the index and by the scan.
func TestJoinTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(5, rapid.Uint64().Draw(t, "seed")))
		radius := rapid.IntRange(0, 16).Draw(t, "radius")
		n := rapid.IntRange(0, 150).Draw(t, "n")
		k := &keys{hashes: codes(rapid.SampledFrom([]string{"clustered", "at the limit", "equal"}).Draw(t, "kind"), r, n, radius),
			signatures: make([]uint64, n), differ: rapid.SampledFrom([]int{-1, 0, 1, 4, 64}).Draw(t, "differ")}
		for i := range n {
			k.signatures[i] = flip(r, 0x5555, r.IntN(5))
		}
		var want []pair
		for _, p := range bruteForce(k.hashes, radius) {
			if bits.OnesCount64(k.signatures[p.I]^k.signatures[p.J]) <= k.differ {
				want = append(want, p)
			}
		}
		bands := planBands(rapid.IntRange(4, 8).Draw(t, "bands"), radius)
		for name, run := range map[string]func(visitor) error{
			"index": func(v visitor) error { return indexJoin(context.Background(), k, radius, bands, 2, v) },
			"scan":  func(v visitor) error { return scanJoin(context.Background(), k, radius, 2, v) },
		} {
			if got, err := collect(2, run); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, brute force %v, error %v", name, got, want, err)
			}
		}
	})
}

// TestChunksPanic: a panic in a worker is one of the caller, when all workers have ended.
func TestChunksPanic(t *testing.T) {
	defer func() {
		if v := recover(); v != "no such item" {
			t.Errorf("recovered %v, want the worker's panic", v)
		}
	}()
	err := inChunks(t.Context(), 1000, 10, 2, func(_, i int) int {
		if i == 500 {
			panic("no such item")
		}
		return 1
	})
	t.Errorf("inChunks = %v after a panic", err)
}
