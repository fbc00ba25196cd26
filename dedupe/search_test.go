package dedupe

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/safely"
)

// keeperOf decides on hashes without texts; the list is of all.
func keeperOf(hashes []uint64, radius int, near func(i, j uint32) bool) (k *keeper, list []uint32) {
	k = &keeper{search: search{hashes: hashes, radius: radius, few: 1024}, near: near,
		of: slices.Repeat([]uint32{none}, len(hashes))}
	k.met = k.drop
	for i := range hashes {
		list = append(list, uint32(i))
	}
	return k, list
}

// flip returns h with n random bits flipped.
func flip(r *rand.Rand, h uint64, n int) uint64 {
	for _, bit := range r.Perm(64)[:n] {
		h ^= 1 << bit
	}
	return h
}

// codes draws n hashes of a kind: unrelated ones; groups around templates; groups whose members differ in exactly the
// radius or one more, spread evenly over the bits so that every band is at its limit; all the same, all 0, or one of a
// few; a walk of one bit at a time, in which each is near the last few; and all of those in turn.
func codes(kind string, r *rand.Rand, n, radius int) []uint64 {
	hashes := make([]uint64, n)
	template, few := r.Uint64(), [3]uint64{r.Uint64(), r.Uint64(), r.Uint64()}
	for i := range hashes {
		kind := kind
		if kind == "mixed" {
			kind = codeKinds[i%(len(codeKinds)-1)]
		}
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
		case "few":
			hashes[i] = few[r.IntN(len(few))]
		case "walk":
			template = flip(r, template, 1)
			hashes[i] = template
		}
	}
	return hashes
}

var codeKinds = []string{"uniform", "clustered", "at the limit", "equal", "zero", "few", "walk", "mixed"}

// TestKeepBrute: whatever the codes, the radius and the number of workers, keep decides as comparing each code with
// every kept one before it does.
func TestKeepBrute(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	nears := []func(i, j uint32) bool{
		func(i, j uint32) bool { return true },
		func(i, j uint32) bool { return (i+j)%3 > 0 },
		func(i, j uint32) bool { return (i*7+j)%29 == 0 },
		func(i, j uint32) bool { return j-i <= 2 }, // chains
	}
	radii := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 24, 31, 63, 64}
	r, rounds := longer()
	cases := 0
	for range rounds {
		for _, kind := range codeKinds {
			for _, radius := range radii {
				for _, near := range nears {
					n := 1 + r.IntN([]int{80, 400, 1500}[r.IntN(3)])
					k, list := keeperOf(codes(kind, r, n, radius), radius, near)
					k.few = 2 + r.IntN(60)
					procs := 1 + r.IntN(4)
					runtime.GOMAXPROCS(procs)
					want := bruteKeep(k)
					kept, err := k.keep(t.Context(), list)
					if err != nil || !slices.Equal(k.of, want) {
						t.Fatalf("%d %s codes, radius %d, %d workers: error %v (-want +got):\n%s",
							n, kind, radius, procs, err, cmp.Diff(want, k.of))
					}
					slices.Sort(kept)
					for i, of := range want {
						if _, found := slices.BinarySearch(kept, uint32(i)); found != (of == none) {
							t.Fatalf("%d %s codes, radius %d: %d is in the list of the kept: %v", n, kind, radius, i, found)
						}
					}
					cases++
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// bruteKeep is what keep leaves in of.
func bruteKeep(k *keeper) []uint32 {
	of := slices.Repeat([]uint32{none}, len(k.hashes))
	for j := range of {
		for i := 0; i < j && of[j] == none; i++ {
			if of[i] == none && bits.OnesCount64(k.hashes[i]^k.hashes[j]) <= k.radius &&
				k.near(uint32(i), uint32(j)) {
				of[j] = uint32(i)
			}
		}
	}
	return of
}

// TestPlanBands: the bands share no bit, are none too many to count by, and lose no pair within the radius.
func TestPlanBands(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 100, 3000, 100_000, 1 << 20, 1 << 25} {
		for radius := range 65 {
			bands := planBands(n, n, radius)
			if len(bands) == 0 && (n < 1000 || radius > 20) {
				continue // each is compared with each
			}
			var used uint64
			reach := 0
			for _, b := range bands {
				bits := b.of(^uint64(0)) << b.shift
				if used&bits != 0 || b.reach < 0 || b.width > maxWidth {
					t.Errorf("planBands(%d, %d): %+v", n, radius, bands)
				}
				used |= bits
				reach += b.reach + 1
			}
			if reach <= radius {
				t.Errorf("planBands(%d, %d) = %+v: a pair that differs in one bit more than the reach of each is lost", n,
					radius, bands)
			}
			for range 100 {
				diff := flip(r, 0, r.IntN(radius+1))
				if !slices.ContainsFunc(bands, func(b band) bool { return bits.OnesCount64(b.of(diff)) <= b.reach }) {
					t.Errorf("planBands(%d, %d) = %+v loses hashes that differ in %064b", n, radius, bands, diff)
				}
			}
		}
	}
}

// TestChunksPanic: a panic in a worker does not end the program, and nothing is begun after the end of the context.
func TestChunksPanic(t *testing.T) {
	err := inChunks(t.Context(), 1000, 256, func(from, to int) {
		if from == 512 {
			panic("no such item")
		}
	})
	if p, ok := errors.AsType[*safely.Panic](err); !ok || p.Value != "no such item" {
		t.Errorf("inChunks = %v after a panic", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = inChunks(ctx, 1000, 256, func(from, to int) {
		t.Errorf("items %d to %d are looked at after the end", from, to)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("inChunks, cancelled = %v", err)
	}
}
