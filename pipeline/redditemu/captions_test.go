package redditemu

import (
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
}
