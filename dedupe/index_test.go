package dedupe

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIndexEqualsBruteForce asks after every few hundred hashes, through all sizes of
// parts, for hashes of every kind.
func TestIndexEqualsBruteForce(t *testing.T) {
	for _, radius := range []int{0, 4, 8, 16, 17} {
		r := rand.New(rand.NewPCG(3, uint64(radius)))
		all := slices.Concat(codes("uniform", r, 9000, radius), codes("clustered", r, 5000, radius), codes("at the limit", r, 300, radius))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		x, err := NewIndex(radius)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range all {
			if n := x.Add(h); n != i || x.Len() != i+1 {
				t.Fatalf("Add number %d gave number %d and length %d", i, n, x.Len())
			}
			if i%1201 == 0 || i == len(all)-1 {
				checkNear(t, x, all[:i+1], flip(r, all[r.IntN(i+1)], r.IntN(radius+2)))
			}
		}
	}
	if _, err := NewIndex(65); err == nil {
		t.Error("NewIndex(65) succeeds")
	}
}

// checkNear compares what the index finds of a hash with a scan of all.
func checkNear(t *testing.T, x *Index, all []uint64, h uint64) {
	t.Helper()
	var want, got [][2]int
	for i, other := range all {
		if d := bits.OnesCount64(h ^ other); d <= x.radius {
			want = append(want, [2]int{i, d})
		}
	}
	for number, distance := range x.Near(h) {
		got = append(got, [2]int{number, distance})
	}
	slices.SortFunc(got, func(a, b [2]int) int { return a[0] - b[0] })
	if !slices.Equal(got, want) {
		t.Errorf("radius %d, %d hashes: Near(%x) = %v, brute force %v", x.radius, len(all), h, got, want)
	}
}

// TestIndexStops: a caller that has found one may leave.
func TestIndexStops(t *testing.T) {
	x, err := NewIndex(8)
	if err != nil {
		t.Fatal(err)
	}
	for range indexTail + 10 {
		x.Add(7)
	}
	for range 3 {
		for range x.Near(7) {
			break
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(uint8(8), []byte("0123456701234567abcdefgh"))
	f.Add(uint8(3), make([]byte, 64))
	f.Fuzz(func(t *testing.T, radius uint8, data []byte) {
		x, err := NewIndex(int(radius % 17))
		if err != nil {
			t.Fatal(err)
		}
		var all []uint64
		for ; len(data) >= 8; data = data[8:] {
			h := binary.LittleEndian.Uint64(data)
			all = append(all, h)
			x.Add(h)
			if len(all)%7 == 0 {
				x.sortTail() // long before it is due
			}
			checkNear(t, x, all, h^uint64(radius))
		}
	})
}
