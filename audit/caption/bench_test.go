package caption

import (
	"crypto/sha256"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ordinary returns text that everybody who can run this has: the documented source of Go's library.
func ordinary(b *testing.B) (all []byte) {
	b.Helper()
	for _, pattern := range []string{"net/http/*.go", "compress/testdata/*.txt", "text/template/*.go", "time/*.go"} {
		names, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", pattern))
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, text...)
		}
	}
	if len(all) == 0 {
		b.Skip("GOROOT has no source")
	}
	return all
}

// madeUp returns captions of common and rare words, as people mix them.
func madeUp(words *Words, n int) *Index[int] {
	var common []string
	for w, rarity := range words.rarity {
		for range int(100 * (words.rarest - rarity)) {
			common = append(common, w)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	b := New[int](words)
	for i := range n {
		var text strings.Builder
		for range 6 + rnd.IntN(25) {
			if rnd.IntN(3) == 0 {
				fmt.Fprintf(&text, "rare%d ", rnd.IntN(3000))
			} else {
				text.WriteString(common[rnd.IntN(len(common))] + " ")
			}
		}
		b.Add(i, text.String(), true)
	}
	return b.Build()
}

// BenchmarkFind searches ordinary text for many captions, beside what reading it with SHA-256 takes.
func BenchmarkFind(b *testing.B) {
	text := ordinary(b)
	words, err := Common()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sha256", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			sha256.Sum256(text)
		}
	})
	for _, n := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprintf("captions=%d", n), func(b *testing.B) {
			t := madeUp(words, n).NewText()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				t.scan.write(text)
				t.End()
			}
		})
	}
	if dir := os.Getenv("REHYDRATE_MEMES"); dir != "" {
		b.Run("memes", func(b *testing.B) {
			build := New[string](words)
			for _, m := range transcripts(b, filepath.Join(dir, "transcripts.jsonl")) {
				build.Add(m.File, m.Text, true)
			}
			t := build.Build().NewText()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				t.scan.write(text)
				t.End()
			}
		})
	}
}

// BenchmarkHostile searches texts that were made to take long: of words of many captions, in no order.
func BenchmarkHostile(b *testing.B) {
	words, err := Common()
	if err != nil {
		b.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	rare := func() string { return fmt.Sprintf("rareword%c%c ", 'a'+rune(rnd.IntN(5)), 'a'+rune(rnd.IntN(5))) }
	build := New[int](words)
	for i := range 1000 { // of 25 words
		var text strings.Builder
		for range 20 {
			text.WriteString(rare())
		}
		build.Add(i, text.String(), true)
	}
	x := build.Build()
	var anchors strings.Builder
	for anchors.Len() < 100_000 {
		anchors.WriteString(rare())
	}
	for name, text := range map[string]string{
		"anchors": anchors.String(),
		"word":    strings.Repeat("a", 1<<20),
		"tags":    strings.Repeat("<a", 1<<19),
		"marks":   strings.Repeat("e\u0301", 1<<18),
		"arabic":  strings.Repeat("\ufdfa", 1<<18),
	} {
		b.Run(name, func(b *testing.B) {
			t := x.NewText()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				t.scan.write([]byte(text))
				t.End()
			}
		})
	}
}
