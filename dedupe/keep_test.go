package dedupe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// says is an item with text, h one hash that the tests vary.
const h = 0x0f0f_3355_aa33_cc0f

func says(bits uint64, text string) Item {
	return Item{Hash: Hash{Bits: bits}, Tokens: strings.Fields(text)}
}

var literal = Rule{Radius: 8, Words: 3}

// near is the rule in its plainest form: the class of a pair, or "" when not near.
func near(a, b Item, rule Rule) string {
	flat := a.Hash.Flat || b.Hash.Flat
	distance := bits.OnesCount64(a.Hash.Bits ^ b.Hash.Bits)
	if flat && (a.Hash.Flat != b.Hash.Flat || a.Content == "" || a.Content != b.Content) ||
		!flat && distance > rule.Radius {
		return ""
	}
	if rule.ImageOnly {
		if flat {
			return ClassFlat
		}
		return ClassImage
	}
	words := levenshtein(a.Tokens, b.Tokens)
	switch {
	case words >= rule.Words:
		return ""
	case rule.Guard && len(a.Tokens)+len(b.Tokens) > 0 &&
		2*bagApart(a.Tokens, b.Tokens) >= max(len(a.Tokens), len(b.Tokens)):
		return ""
	case flat:
		return ClassFlat
	case len(a.Tokens) == 0 && len(b.Tokens) == 0:
		if a.Wide == nil || b.Wide == nil || distance > 4 || a.Wide.Distance(*b.Wide) > 16 {
			return ""
		}
		return ClassNoText
	case len(a.Tokens) == 0 || len(b.Tokens) == 0:
		return ClassOneEmpty
	case words == 0:
		return ClassSameText
	default:
		return ClassNearText
	}
}

// bagApart is bagDistance by counting.
func bagApart(a, b []string) int {
	missing := func(a, b []string) int {
		n := 0
		b = slices.Clone(b)
		for _, s := range a {
			if i := slices.Index(b, s); i >= 0 {
				b = slices.Delete(b, i, i+1)
			} else {
				n++
			}
		}
		return n
	}
	return max(missing(a, b), missing(b, a))
}

// naive is KeepFirst in O(n^2).
func naive(items []Item, rule Rule) []Decision {
	decisions := make([]Decision, len(items))
	for i, it := range items {
		decisions[i].Of = -1
		for j := range i {
			if decisions[j].Of >= 0 {
				continue
			}
			if class := near(items[j], it, rule); class != "" {
				decisions[i] = decisionOf(items, i, j, class, rule)
				break
			}
		}
	}
	return decisions
}

func decisionOf(items []Item, i, j int, class string, rule Rule) Decision {
	d := Decision{Of: j, HashDistance: bits.OnesCount64(items[j].Hash.Bits ^ items[i].Hash.Bits), Class: class}
	if !rule.ImageOnly {
		d.WordDistance = levenshtein(items[j].Tokens, items[i].Tokens)
	}
	return d
}

func drawRule(t *rapid.T) Rule {
	return Rule{Radius: rapid.IntRange(0, 20).Draw(t, "radius"), Words: rapid.IntRange(0, 5).Draw(t, "words"),
		Guard: rapid.Bool().Draw(t, "guard"), ImageOnly: rapid.IntRange(0, 4).Draw(t, "image only") == 0}
}

// drawItems draws items that are near each other often, in every class.
func drawItems(t *rapid.T) []Item {
	base := rapid.SliceOfN(rapid.Uint64(), 1, 3).Draw(t, "base")
	contents := []string{"", "c1", "c2"}
	hash := rapid.Custom(func(t *rapid.T) uint64 {
		h := rapid.SampledFrom(base).Draw(t, "of")
		for _, bit := range rapid.SliceOfN(rapid.IntRange(0, 63), 0, 8).Draw(t, "flips") {
			h ^= 1 << bit
		}
		return h
	})
	token := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
		it := Item{
			Hash:    Hash{Bits: hash.Draw(t, "hash"), Flat: rapid.IntRange(0, 5).Draw(t, "flat") == 0},
			Content: rapid.SampledFrom(contents).Draw(t, "content"),
			Tokens:  rapid.SliceOfN(token, 0, 5).Draw(t, "tokens"),
		}
		if rapid.IntRange(0, 4).Draw(t, "wide") > 0 {
			it.Wide = &Hash256{0, rapid.Uint64Range(0, 1<<20).Draw(t, "w"), hash.Draw(t, "w2"), 1}
		}
		return it
	}), 0, 30).Draw(t, "items")
}

func TestKeepFirstProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t)
		rule := drawRule(t)
		got, err := KeepFirst(context.Background(), items, rule)
		if err != nil {
			t.Fatalf("KeepFirst: %v", err)
		}
		if diff := cmp.Diff(naive(items, rule), got); diff != "" {
			t.Fatalf("KeepFirst differs from the definition (-want +got):\n%s", diff)
		}
		// What comes later changes nothing before it.
		half := len(items) / 2
		some, err := KeepFirst(context.Background(), items[:half], rule)
		if diff := cmp.Diff(got[:half], some); diff != "" || err != nil {
			t.Errorf("decisions on the first %d items change with those after them (error %v):\n%s", half, err, diff)
		}
	})
}

// corpus is n items like a release's: some templates with many captions, reposts with
// small changes, no text, flat pictures.
func corpus(n int) []Item {
	r := rand.New(rand.NewPCG(11, 12))
	templates := codes("uniform", r, n/20+1, 0)
	items := make([]Item, n)
	for i := range items {
		it := Item{Hash: Hash{Bits: flip(r, templates[r.IntN(len(templates))], r.IntN(4))},
			Content: fmt.Sprint("c", r.IntN(n))}
		for range 2 + r.IntN(14) {
			// Common words are common: the square makes low numbers likelier.
			w := r.Float64()
			it.Tokens = append(it.Tokens, fmt.Sprint("w", int(w*w*5000)))
		}
		k := r.IntN(100)
		switch {
		case k < 30 && i > 0: // a repost
			earlier := items[r.IntN(i)]
			it.Hash.Bits = flip(r, earlier.Hash.Bits, r.IntN(3))
			it.Tokens = append([]string(nil), earlier.Tokens...)
			if len(it.Tokens) > 0 && k < 15 {
				it.Tokens[r.IntN(len(it.Tokens))] = "changed"
			}
			it.Wide = earlier.Wide
		case k < 35:
			it.Tokens, it.Wide = nil, &Hash256{it.Hash.Bits, r.Uint64() & 0xff, 0, 0}
		case k < 37:
			it.Hash, it.Content = Hash{Bits: 1 << 63, Flat: true}, fmt.Sprint("flat", r.IntN(3))
		}
		items[i] = it
	}
	return items
}

// oneText is pictures that all say the same.
func oneText(hashes []uint64) []Item {
	items := make([]Item, len(hashes))
	for i, hash := range hashes {
		items[i] = says(hash, "when you see it")
	}
	return items
}

// TestKeepFirstLarge cannot run beside other tests: GOMAXPROCS is the process's.
func TestKeepFirstLarge(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, items := range map[string][]Item{
		"a release":                      corpus(3500), // large enough for the index
		"one text, a walk":               oneText(codes("walk", rand.New(rand.NewPCG(7, 7)), 6000, 8)),
		"one text, copies of a template": oneText(codes("clustered", rand.New(rand.NewPCG(7, 8)), 6000, 8)),
	} {
		for _, rule := range []Rule{{Radius: 8, Words: 3}, {Radius: 10, Words: 2}} {
			want := naive(items, rule)
			for _, procs := range []int{1, 2, 7} {
				runtime.GOMAXPROCS(procs)
				got, err := KeepFirst(t.Context(), items, rule)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%s, %+v, GOMAXPROCS=%d: error %v; KeepFirst differs from the definition (-want +got):\n%s", name,
						rule,
						procs, err, diff)
				}
			}
		}
	}
}

// TestDecideBrute: KeepFirst is its definition with and without the index of words, whatever the rule and the number of
// workers, where texts and pictures are in crowds, in chains, alone or all of that. DEDUPE_LONG=N tries N times as
// many.
func TestDecideBrute(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r, rounds := longer()
	cases := 0
	for range rounds {
		for _, kind := range codeKinds {
			for _, vocabulary := range []int{1, 3, 12, 1000} {
				for _, rule := range []Rule{{8, 3, false, false}, {8, 3, true, false}, {3, 1, false, false},
					{10, 2, true, false},
					{64, 3, true, false}, {17, 5, false, false}, {8, math.MaxInt, true, false}, {8, 0, false, false},
					{6, 3, false, true}} {
					items := wordy(kind, vocabulary, r, 1+r.IntN(300))
					runtime.GOMAXPROCS(1 + r.IntN(4))
					c, err := newComparison(items, rule)
					if err != nil {
						t.Fatal(err)
					}
					c.few = 2 + r.IntN(50)
					of, err := c.decide(t.Context(), rule.Guard)
					if diff := cmp.Diff(naive(items, rule), c.decisions(of)); diff != "" || err != nil {
						t.Fatalf("%d items, %s hashes, texts of %d words, %+v: error %v; differs from the definition (-want +got):\n%s",
							len(items), kind, vocabulary, rule, err, diff)
					}
					cases++
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// longer returns what draws the cases of a test, and how often it is to draw all of them: once, and the same ones, but
// others and DEDUPE_LONG times where that is set.
func longer() (r *rand.Rand, rounds int) {
	rounds, err := strconv.Atoi(os.Getenv("DEDUPE_LONG"))
	if err != nil {
		return rand.New(rand.NewPCG(1, 8)), 1
	}
	return rand.New(rand.NewPCG(rand.Uint64(), 8)), rounds
}

// wordy draws items with hashes of a kind and texts of few words, some of which are changed ones of the item before.
func wordy(kind string, vocabulary int, r *rand.Rand, n int) []Item {
	items := make([]Item, n)
	word := func() string { return fmt.Sprint("w", int(float64(vocabulary)*r.Float64()*r.Float64())) }
	for i, hash := range codes(kind, r, n, 8) {
		it := Item{Hash: Hash{Bits: hash, Flat: r.IntN(10) == 0}, Content: []string{"", "c1", "c2"}[r.IntN(3)]}
		k := r.IntN(8)
		switch {
		case k < 3 && i > 0:
			it.Tokens = slices.Clone(items[i-1].Tokens)
			for range r.IntN(4) {
				at := r.IntN(len(it.Tokens) + 1)
				it.Tokens = slices.Concat(it.Tokens[:at], []string{word()}, it.Tokens[min(len(it.Tokens), at+r.IntN(3)):])
			}
		case k < 7:
			for range r.IntN(9) {
				it.Tokens = append(it.Tokens, word())
			}
		}
		if r.IntN(4) > 0 {
			it.Wide = &Hash256{0, r.Uint64() & 0xffff, hash, 1}
		}
		items[i] = it
	}
	return items
}

func TestKeepFirst(t *testing.T) {
	far := ^uint64(h)
	rule := literal
	wide, wideNear, wideFar := &Hash256{}, &Hash256{0xffff}, &Hash256{0x1ffff}
	mute := func(bits uint64, w *Hash256) Item { return Item{Hash: Hash{Bits: bits}, Wide: w} }
	flat := func(content string, tokens ...string) Item {
		return Item{Hash: Hash{Bits: 1 << 63, Flat: true}, Content: content, Tokens: tokens}
	}
	kept := Decision{Of: -1}
	for _, test := range []struct {
		name  string
		rule  Rule
		items []Item
		want  []Decision
	}{
		{"none", rule, nil, []Decision{}},
		{"same", rule, []Item{says(h, "a b c"), says(h, "a b c")}, []Decision{kept, {0, 0, 0, ClassSameText}}},
		{"same text at the radius", rule, []Item{says(h, "a"), says(h^0xff, "a")},
			[]Decision{kept, {0, 8, 0, ClassSameText}}},
		{"beyond the radius", rule, []Item{says(h, "a"), says(h^0x1ff, "a")}, []Decision{kept, kept}},
		{"two words differ", rule, []Item{says(h, "a b c"), says(h^3, "a x y")},
			[]Decision{kept, {0, 2, 2, ClassNearText}}},
		{"three words differ", rule, []Item{says(h, "a b c d"), says(h, "a x y z")}, []Decision{kept, kept}},
		{"same text, another picture", rule, []Item{says(h, "a b"), says(far, "a b")}, []Decision{kept, kept}},
		{"one empty, two words", rule, []Item{mute(h, wide), says(h^1, "a b")}, []Decision{kept, {0, 1, 2, ClassOneEmpty}}},
		{"one empty, three words", rule, []Item{mute(h, wide), says(h, "a b c")}, []Decision{kept, kept}},
		{"both empty", rule, []Item{mute(h, wide), mute(h^0xf, wideNear)}, []Decision{kept, {0, 4, 0, ClassNoText}}},
		{"both empty, 5 of 64 bits", rule, []Item{mute(h, wide), mute(h^0x1f, wide)}, []Decision{kept, kept}},
		{"both empty, 17 of 256 bits", rule, []Item{mute(h, wide), mute(h, wideFar)}, []Decision{kept, kept}},
		{"both empty, no wide hash", rule, []Item{mute(h, nil), mute(h, nil), mute(h, wide)}, []Decision{kept, kept, kept}},
		{"both empty, a smaller radius", Rule{Radius: 2, Words: 3}, []Item{mute(h, wide), mute(h^7, wide)},
			[]Decision{kept, kept}},
		{"flat, same bytes", rule, []Item{flat("x"), flat("x"), flat("x", "a", "b")},
			[]Decision{kept, {0, 0, 0, ClassFlat}, {0, 0, 2, ClassFlat}}},
		{"flat, other bytes", rule, []Item{flat("x"), flat("y"), flat(""), flat("")}, []Decision{kept, kept, kept, kept}},
		{"flat, same bytes, other text", rule, []Item{flat("x"), flat("x", "a", "b", "c")}, []Decision{kept, kept}},
		{"a chain keeps its ends", rule, []Item{says(h, "a b c"), says(h^0xff, "a b c"), says(h^0xffff, "a b c")},
			[]Decision{kept, {0, 8, 0, ClassSameText}, kept}},
		{"the earliest witness, not the nearest", rule,
			[]Item{says(h, "a b c"), says(h^0xfff, "a b c"), says(h^0xff, "a b c")},
			[]Decision{kept, kept, {0, 8, 0, ClassSameText}}},
		{"a copy of a dropped item", rule, []Item{says(h, "a b c"), says(h^1, "a b x"), says(h^1, "a b x")},
			[]Decision{kept, {0, 1, 1, ClassNearText}, {0, 1, 1, ClassNearText}}},
		{"no words may differ, not even none", Rule{Radius: 8, Words: 0}, []Item{says(h, "a"), says(h, "a")},
			[]Decision{kept, kept}},
		{"any picture", Rule{Radius: 64, Words: 3}, []Item{says(h, "a b"), says(far, "a b")},
			[]Decision{kept, {0, 64, 0, ClassSameText}}},
		{"pictures alone, no words", Rule{Radius: 8, ImageOnly: true}, []Item{says(h, "a"), says(h, "b")},
			[]Decision{kept, {0, 0, 0, ClassImage}}},
		{"any words", Rule{Radius: 8, Words: math.MaxInt}, []Item{says(h, "a"), says(h, "x y z u")},
			[]Decision{kept, {0, 0, 4, ClassNearText}}},
	} {
		got, err := KeepFirst(t.Context(), test.items, test.rule)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v; decisions differ (-want +got):\n%s", test.name, err, diff)
		}
	}
}

func TestKeepFirstRefuses(t *testing.T) {
	for _, rule := range []Rule{{Radius: -1, Words: 3}, {Radius: 65, Words: 3}, {Radius: 8, Words: -1}} {
		if got, err := KeepFirst(t.Context(), nil, rule); err == nil {
			t.Errorf("KeepFirst with %+v = %v, want an error", rule, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int{0, 10, 3000} {
		if _, err := KeepFirst(ctx, corpus(n), literal); !errors.Is(err, context.Canceled) {
			t.Errorf("KeepFirst of %d items, cancelled: %v, want %v", n, err, context.Canceled)
		}
	}
}

// An expiring context is cancelled after that many looks at it.
type expiring struct {
	context.Context
	left atomic.Int64
}

func (e *expiring) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestKeepFirstExpires: wherever the context ends, the answer is its error and no decision.
func TestKeepFirstExpires(t *testing.T) {
	items := append(corpus(300), crowds(900)["short texts"]...)
	items = append(items, corpus(2100)...)
	const many = 1 << 40
	ctx := &expiring{Context: t.Context()}
	ctx.left.Store(many)
	if _, err := KeepFirst(ctx, items, literal); err != nil {
		t.Fatal(err)
	}
	looks := many - ctx.left.Load()
	for n := range looks {
		if n > 20 && n < looks-20 && n%10 > 0 {
			continue
		}
		ctx.left.Store(n)
		if got, err := KeepFirst(ctx, items, literal); got != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d of %d looks: %d decisions, error %v", n, looks, len(got), err)
		}
	}
	if _, _, err := KeepAndSpare(ctx, items, literal); !errors.Is(err, context.Canceled) {
		t.Errorf("KeepAndSpare, cancelled: %v", err)
	}
}

func TestRuleString(t *testing.T) {
	for rule, want := range map[Rule]string{
		{Radius: 8, Words: 3, Guard: true}:     "radius 8, fewer than 3 words, less than half changed",
		{Radius: 8, Words: 3, ImageOnly: true}: "radius 8, images only",
		{Radius: 8, Words: 1}:                  "radius 8, fewer than 1 words",
	} {
		if got := rule.String(); got != want {
			t.Errorf("%#v is %q, want %q", rule, got, want)
		}
	}
}

// TestKeepFirstCopies: a picture posted 200,000 times must not cost 20,000,000,000
// comparisons.
func TestKeepFirstCopies(t *testing.T) {
	items := slices.Repeat([]Item{says(1, "same words"), {Hash: Hash{Bits: ^uint64(1)}, Wide: &Hash256{}},
		{Hash: Hash{Flat: true}, Content: "x"}}, 66_667)
	got, err := KeepFirst(t.Context(), items, literal)
	if err != nil || len(got) != len(items) {
		t.Fatalf("%d decisions on %d items, error %v", len(got), len(items), err)
	}
	for i, d := range got {
		if i >= 3 && d.Of != i%3 || i < 3 && !d.Kept() {
			t.Fatalf("item %d: %+v, want the first three kept and copies of them after", i, d)
		}
	}
}

// crowds are items of which nearly all pairs are near, or nearly all that share a picture
// are not: n items each.
func crowds(n int) map[string][]Item {
	two := func(i int) []string { return []string{fmt.Sprint("a", i), fmt.Sprint("b", i)} }
	four := func(i int) []string { return append(two(i), fmt.Sprint("c", i), fmt.Sprint("d", i)) }
	spread := codes("uniform", rand.New(rand.NewPCG(3, 4)), n, 0)
	crowds := map[string][]Item{}
	for i := range n {
		add := func(name string, it Item) { crowds[name] = append(crowds[name], it) }
		add("short texts", Item{Hash: Hash{Bits: 7}, Tokens: two(i)})
		add("short texts, some bits", Item{Hash: Hash{Bits: 7 ^ 1<<(i%64)}, Tokens: two(i)})
		add("flat, short texts", Item{Hash: Hash{Flat: true}, Content: "x", Tokens: two(i)})
		late := Item{Hash: Hash{Bits: spread[i]}, Tokens: four(i)}
		if i >= n/2 {
			late = Item{Hash: Hash{Bits: 7}, Tokens: two(i)}
		}
		add("after unrelated ones", late)
		// Each is near all without text, and no two with text are near.
		star := Item{Hash: Hash{Bits: 7}, Tokens: append(two(i), "c")[:2+i%2]}
		add("texts of two and three words", star)
		// Each text differs by one word from its neighbours only: chains.
		chain := []string{fmt.Sprint("w", i/3), fmt.Sprint("w", (i+1)/3), fmt.Sprint("w", (i+2)/3), "x"}
		add("chains", Item{Hash: Hash{Bits: 7 ^ uint64(i%3)}, Tokens: chain})
	}
	return crowds
}

func TestKeepFirstCrowds(t *testing.T) {
	for name, items := range crowds(1100) { // enough for the index of words
		got, err := KeepFirst(t.Context(), items, literal)
		if diff := cmp.Diff(naive(items, literal), got); diff != "" || err != nil {
			t.Errorf("%s: error %v; KeepFirst differs from the definition (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestKeepFirstMemory: 10,000 items that are near pairwise are 50,000,000 pairs. What is
// allocated in all bounds what is held at a time.
func TestKeepFirstMemory(t *testing.T) {
	const n, perItem = 10_000, 2500
	all := crowds(n)
	delete(all, "chains") // few of which are near, and slow
	for name, items := range all {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := KeepFirst(t.Context(), items, literal); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / n; got > perItem {
			t.Errorf("%s: KeepFirst allocates %d bytes an item, want at most %d", name, got, perItem)
		}
	}
}

func TestGuard(t *testing.T) {
	guarded := Rule{Radius: 8, Words: 3, Guard: true}
	for _, test := range []struct {
		a, b string
		near bool
	}{
		{"one", "other", false},
		{"one two", "one other", false},
		{"one two three", "one two other", true},
		{"one two three four", "one two x y", false},
		{"one two three four five", "one two three x y", true},
		{"one two", "two one", true}, // two edits, and the same words
		{"", "one", false},
		{"", "one two", false},
		{"same", "same", true},
	} {
		items := []Item{says(h, test.a), says(h, test.b)}
		for range 2 {
			d, err := KeepFirst(t.Context(), items, guarded)
			if err != nil || d[1].Kept() == test.near {
				t.Errorf("%q and %q with the guard: %+v, error %v, want near %v", test.a, test.b, d[1], err, test.near)
			}
			free, spared, err := KeepAndSpare(t.Context(), items, literal)
			if want := map[bool]int{false: 1}[test.near]; err != nil || spared != want || free[1].Kept() {
				t.Errorf("%q and %q without the guard: %+v; %d spared, error %v, want %d", test.a, test.b, free[1], spared,
					err, want)
			}
			slices.Reverse(items)
		}
	}
}
