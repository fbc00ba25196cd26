//go:build unix

package dedupe

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/corona10/goimagehash"
)

// cpu is the processor time that this process has used so far, all threads together: on
// a machine that does other things as well it says more than the clock.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A cost is the least that some repeats of the same work took.
type cost struct{ cpu, wall time.Duration }

// least does the work that often and returns the least cost. What earlier work left to
// collect is collected first.
func least(b *testing.B, repeats int, do func()) cost {
	c := cost{math.MaxInt64, math.MaxInt64}
	for range repeats {
		runtime.GC()
		began, used := time.Now(), cpu(b)
		do()
		c.cpu, c.wall = min(c.cpu, cpu(b)-used), min(c.wall, time.Since(began))
	}
	return c
}

// photoLike draws a hash as photographs have it: 32 ones, the top bit among them.
func photoLike(r *rand.Rand) uint64 {
	h := uint64(1) << 63
	for _, bit := range r.Perm(63)[:31] {
		h |= 1 << bit
	}
	return h
}

// swap exchanges n pairs of bits, as a copy does to the hash of a photograph: 2n bits
// or fewer.
func swap(r *rand.Rand, h uint64, n int) uint64 {
	for range n {
		if i, j := r.IntN(63), r.IntN(63); h>>i&1 != h>>j&1 {
			h ^= 1<<i | 1<<j
		}
	}
	return h
}

// A zipf draws 0..n-1, i in proportion to (i+v)^-s.
type zipf []float64

func newZipf(n int, s, v float64) zipf {
	z := make(zipf, n)
	sum := 0.0
	for i := range z {
		sum += math.Pow(float64(i)+v, -s)
		z[i] = sum
	}
	return z
}

func (z zipf) draw(r *rand.Rand) int {
	i, _ := slices.BinarySearch(z, r.Float64()*z[len(z)-1])
	return i
}

// captions draws texts as the captions of memes have been counted: a median of 10 words
// and a tenth with 21 and more, from a vocabulary of 90,000; 5 in 100 with a word or two;
// in a template 8 in 100 after one of three stock captions.
type captions struct {
	r     *rand.Rand
	words zipf
	stock map[int][]string
}

func (c *captions) draw(template int) []string {
	if template >= 0 && c.r.IntN(100) < 8 {
		key := 3*template + c.r.IntN(3)
		if c.stock[key] == nil {
			c.stock[key] = c.text(c.length())
		}
		return c.change(c.stock[key], c.r.IntN(3))
	}
	if c.r.IntN(100) < 5 {
		return c.text(1 + c.r.IntN(2))
	}
	return c.text(c.length())
}

func (c *captions) length() int {
	return max(3, int(math.Round(math.Exp(math.Log(10)+0.58*c.r.NormFloat64()))))
}

func (c *captions) text(n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = fmt.Sprint("w", c.words.draw(c.r))
	}
	return tokens
}

// change replaces n words.
func (c *captions) change(tokens []string, n int) []string {
	tokens = slices.Clone(tokens)
	for range n {
		if len(tokens) > 0 {
			tokens[c.r.IntN(len(tokens))] = fmt.Sprint("w", c.words.draw(c.r))
		}
	}
	return tokens
}

// memes draws n items as a large release of memes has them: half of the pictures are
// alone, half on one of n/50 templates, Zipf-distributed with exponent 1.2 from rank 8 on
// (no template has more than one meme in twenty), a fifth of those with the same hash as the template and the others up
// to four swaps away. 2 in 100 have no text, and a tenth repeats an earlier item with up to two swaps and two words
// changed.
func memes(n int) []Item {
	r := rand.New(rand.NewPCG(uint64(n), 5))
	templates := make([]uint64, max(1, n/50))
	for i := range templates {
		templates[i] = photoLike(r)
	}
	sizes := newZipf(len(templates), 1.2, 8)
	text := captions{r: r, words: newZipf(90_000, 1, 1), stock: map[int][]string{}}
	items := make([]Item, n)
	for i := range items {
		it := &items[i]
		if i > 0 && r.IntN(10) == 0 {
			earlier := &items[r.IntN(i)]
			it.Hash.Bits, it.Wide = swap(r, earlier.Hash.Bits, r.IntN(3)), earlier.Wide
			it.Tokens = text.change(earlier.Tokens, r.IntN(3))
			continue
		}
		template := -1
		if r.IntN(2) == 0 {
			it.Hash.Bits = photoLike(r)
		} else {
			template = sizes.draw(r)
			it.Hash.Bits = templates[template]
			if r.IntN(5) > 0 {
				it.Hash.Bits = swap(r, it.Hash.Bits, r.IntN(5))
			}
		}
		if r.IntN(50) > 0 {
			it.Tokens = text.draw(template)
		} else {
			it.Wide = &Hash256{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
		}
	}
	return items
}

// bruteForceRate compares some of the codes with all after them and returns the processor
// time that all n*(n-1)/2 pairs would take.
func bruteForceRate(b *testing.B, hashes []uint64, radius, rows int) time.Duration {
	compared := 0
	took := least(b, 2, func() { _, compared = compareAll(hashes, radius, rows) })
	n := float64(len(hashes))
	return time.Duration(float64(took.cpu) * n * (n - 1) / 2 / float64(compared))
}

// compareAll is brute force four codes at a pass, which is the fastest that plain Go gets.
// The pairs among the four are left out.
func compareAll(hashes []uint64, radius, rows int) (pairs, compared int) {
	for i := 0; i+4 <= rows; i += 4 {
		h0, h1, h2, h3 := hashes[i], hashes[i+1], hashes[i+2], hashes[i+3]
		others := hashes[i+4:]
		for _, other := range others {
			if bits.OnesCount64(h0^other) <= radius {
				pairs++
			}
			if bits.OnesCount64(h1^other) <= radius {
				pairs++
			}
			if bits.OnesCount64(h2^other) <= radius {
				pairs++
			}
			if bits.OnesCount64(h3^other) <= radius {
				pairs++
			}
		}
		compared += 4 * len(others)
	}
	return pairs, compared
}

// BenchmarkBars measures what docs/dedupe.md has a bar for. scripts/bench dedupe makes
// the table of it.
func BenchmarkBars(b *testing.B) {
	b.Run("file", benchFile)
	for _, n := range []int{100_000, 1_000_000} {
		for _, kind := range []string{"uniform", "photo-like"} {
			b.Run(fmt.Sprintf("images/%s/%d", kind, n), func(b *testing.B) { benchImages(b, kind, n) })
		}
	}
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("memes/%d", n), func(b *testing.B) { benchMemes(b, n) })
	}
}

// benchFile measures what a file costs: decoding the JPEG of an 800x800 picture of about
// 126 kB, the mean that captioned photographs of that size have been found to have, and
// hashing it.
func benchFile(b *testing.B) {
	file := noisyJPEG(b, 800, 126_000)
	const times = 20
	var decode, hash, library cost
	for b.Loop() {
		var img image.Image
		decode = least(b, 5, func() {
			for range times {
				var err error
				img, err = jpeg.Decode(bytes.NewReader(file))
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		hash = least(b, 5, func() {
			for range times {
				if _, err := HashImage(img); err != nil {
					b.Fatal(err)
				}
			}
		})
		library = least(b, 3, func() {
			for range times {
				if _, err := goimagehash.PerceptionHash(img); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	ms := func(c cost) float64 { return 1000 * c.cpu.Seconds() / times }
	b.ReportMetric(ms(decode), "decode-ms")
	b.ReportMetric(ms(hash), "hash-ms")
	b.ReportMetric(ms(decode)+ms(hash), "cpu-ms")
	b.ReportMetric(ms(library), "library-hash-ms")
	b.ReportMetric(float64(len(file)), "B/file")
}

// noisyJPEG is a picture with as much noise as makes a JPEG of that size of it.
func noisyJPEG(b *testing.B, side, size int) []byte {
	var file bytes.Buffer
	for noise := 0; file.Len() < size; noise += 2 {
		img := photo(5, side, side)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range img.Pix {
			if i%4 < 3 {
				img.Pix[i] = uint8(max(0, min(255, int(img.Pix[i])+r.IntN(noise+1)-noise/2)))
			}
		}
		file.Reset()
		if err := jpeg.Encode(&file, img, &jpeg.Options{Quality: 85}); err != nil {
			b.Fatal(err)
		}
	}
	return file.Bytes()
}

func benchImages(b *testing.B, kind string, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = r.Uint64()
		if kind == "photo-like" {
			hashes[i] = photoLike(r)
		}
	}
	const radius = 8
	brute := bruteForceRate(b, hashes, radius, min(n, 400_000_000/n*5))
	var took cost
	var scratch uint64
	for b.Loop() {
		took = least(b, 3, func() {
			k, list := keeperOf(hashes, radius, func(uint32, uint32) bool { return false })
			scratch = allocated(func() {
				if _, err := k.keep(b.Context(), list); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
	b.ReportMetric(took.cpu.Seconds(), "cpu-s")
	b.ReportMetric(brute.Seconds(), "brute-cpu-s")
	b.ReportMetric(brute.Seconds()/took.cpu.Seconds(), "x-brute")
	b.ReportMetric(float64(scratch)/float64(n), "B/code")
}

// allocated is what do allocates in all: no less than it holds at any time.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func benchMemes(b *testing.B, n int) {
	items := memes(n)
	rule := Rule{Radius: 8, Words: 3}
	var took, both cost
	var scratch uint64
	var decisions []Decision
	for b.Loop() {
		took = least(b, max(2, 500_000/n), func() {
			var err error
			decisions, err = KeepFirst(b.Context(), items, rule)
			if err != nil {
				b.Fatal(err)
			}
		})
		both = least(b, 1, func() {
			if _, _, err := KeepAndSpare(b.Context(), items, rule); err != nil {
				b.Fatal(err)
			}
		})
		c, err := newComparison(items, rule)
		if err != nil {
			b.Fatal(err)
		}
		scratch = allocated(func() {
			if _, err := c.decide(b.Context(), false); err != nil {
				b.Fatal(err)
			}
		})
	}
	kept := 0
	for _, d := range decisions {
		if d.Kept() {
			kept++
		}
	}
	b.ReportMetric(took.cpu.Seconds(), "cpu-s")
	b.ReportMetric(took.wall.Seconds(), "wall-s")
	b.ReportMetric(both.cpu.Seconds(), "both-cpu-s")
	b.ReportMetric(float64(scratch)/float64(n), "B/code")
	b.ReportMetric(float64(kept), "kept")
}

// BenchmarkSpeed fails when KeepFirst has lost a third of what it gains over brute force, which is measured in the same
// run and by its hashes alone. scripts/check full runs it.
func BenchmarkSpeed(b *testing.B) {
	pictures := func(kind string, n int) []Item {
		items := make([]Item, n)
		for i, hash := range codes(kind, rand.New(rand.NewPCG(1, 2)), n, 8) {
			items[i] = Item{Hash: Hash{Bits: hash}, Tokens: []string{"when", "you", "see", "it"}}
		}
		return items
	}
	template := pictures("equal", 20_000)
	for i := range template {
		template[i].Tokens = []string{"the", fmt.Sprint(i), fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)}
	}
	shuffled := pictures("walk", 200_000)
	rand.New(rand.NewPCG(3, 9)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	copies := pictures("uniform", 1000)
	for i := range copies {
		copies[i].Tokens, copies[i].Wide = nil, &Hash256{}
	}
	copies = slices.Repeat(copies, 200)
	images := Rule{Radius: 8, ImageOnly: true}
	for _, test := range []struct {
		name  string
		items []Item
		rule  Rule
		gain  float64 // times brute force, as measured
	}{
		{"images", pictures("uniform", 100_000), images, 55},
		{"many images", pictures("uniform", 1_000_000), images, 210},
		{"walk", pictures("walk", 200_000), images, 80},
		{"walk, one text", pictures("walk", 200_000), literal, 50},
		{"shuffled walk", shuffled, images, 70},
		{"shuffled walk, one text", shuffled, literal, 47},
		{"copies of 1000, no text", copies, literal, 180},
		{"copies", pictures("equal", 200_000), literal, 240},
		{"memes", memes(100_000), literal, 20},
		{"one template", template, literal, 7},
	} {
		b.Run(test.name, func(b *testing.B) {
			n := len(test.items)
			hashes := codes("uniform", rand.New(rand.NewPCG(1, 2)), n, 8)
			var gain float64
			var took time.Duration
			for b.Loop() {
				brute := time.Duration(math.MaxInt64)
				took, gain = brute, 0
				// In turns, and for longer while the gain is too small: what else the machine does makes the one or the
				// other slow for a while, and a search that became slower stays slow.
				for round := 0; round < 4 || round < 24 && gain < test.gain*2/3; round++ {
					brute = min(brute, bruteForceRate(b, hashes, 8, 200_000_000/n))
					took = min(took, least(b, 2, func() {
						if _, err := KeepFirst(b.Context(), test.items, test.rule); err != nil {
							b.Fatal(err)
						}
					}).cpu)
					gain = brute.Seconds() / took.Seconds()
				}
			}
			b.ReportMetric(gain, "x-brute")
			b.ReportMetric(took.Seconds(), "cpu-s")
			if gain < test.gain*2/3 {
				b.Errorf("%.1f times as fast as brute force, want %.1f, or two thirds of that", gain, test.gain)
			}
		})
	}
}
