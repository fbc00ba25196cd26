package redditemu

import (
	"slices"
	"strings"
	"testing"
)

// wordDistance is the least number of words that an edit of one text into the other changes.
func wordDistance(a, b []string) int {
	shared := 0
	for _, word := range a {
		if slices.Contains(b, word) {
			shared++
		}
	}
	return max(len(a), len(b)) - shared
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
	if n := Captions(); n < 1000 {
		t.Errorf("Captions() = %d, want more than 1000", n)
	}
}
