package redditemu

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
)

// wordDistance is the edit distance of two texts in words.
func wordDistance(a, b []string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i, wa := range a {
		cur := make([]int, len(b)+1)
		cur[0] = i + 1
		for j, wb := range b {
			cost := 1
			if wa == wb {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
		}
		prev = cur
	}
	return prev[len(b)]
}

// A bag is the words of a text as numbered bits; a repeated word takes a second bit.
type bag [10]uint64

func bagOf(words []string, number map[string]int) bag {
	var b bag
	seen := map[string]int{}
	for _, w := range words {
		seen[w]++
		key := fmt.Sprint(w, seen[w])
		if _, ok := number[key]; !ok {
			number[key] = len(number)
		}
		b[number[key]/64] |= 1 << (number[key] % 64)
	}
	return b
}

func (b bag) common(c bag) int {
	n := 0
	for i := range b {
		n += bits.OnesCount64(b[i] & c[i])
	}
	return n
}

func TestCaptionsDiffer(t *testing.T) {
	en := captions()["en"]
	for name, list := range map[string][]string{"upper": en[:len(en)/2], "lower": en[len(en)/2:]} {
		for i, a := range list {
			if n := len(strings.Fields(a)); n < 4 || n > 7 {
				t.Errorf("%s: %q has %d words, want 4 to 7", name, a, n)
			}
			for _, b := range list[:i] {
				if d := wordDistance(strings.Fields(a), strings.Fields(b)); d < 4 {
					t.Errorf("%s: %q and %q differ by %d words, want at least 4", name, a, b, d)
				}
			}
		}
	}
	n := Captions()
	if n < 1000 {
		t.Errorf("Captions() = %d, want more than 1000", n)
	}
	words, bags := make([][]string, n), make([]bag, n)
	number := map[string]int{}
	for i := range n {
		words[i] = strings.Fields(Caption(i))
		bags[i] = bagOf(words[i], number)
	}
	worst := 100
	for i := range words {
		for j := range i {
			// As many edits are needed at least as words of the longer are not in both.
			if max(len(words[i]), len(words[j]))-bags[i].common(bags[j]) < 4 {
				worst = min(worst, wordDistance(words[i], words[j]))
			}
		}
	}
	if worst < 4 {
		t.Errorf("two captions differ by %d words, want at least 4", worst)
	}
}
