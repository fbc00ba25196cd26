package draw

import (
	"fmt"
	"testing"
)

// TestRankOf holds the vectors of the draw with the seed 1.
func TestRankOf(t *testing.T) {
	for id, want := range map[string]string{"1rj7k7": "0b8ca2899d1037e5", "1n6oiw": "5b6d89ccfae685c6",
		"1wdfn2": "7d0608f467cdc3fa",
		"1fmx6e": "ab2fd389f3c0f6b9", "12nf38": "eb8df5d430f049c3"} {
		if got := fmt.Sprintf("%x", RankOf("1", id)); got[:16] != want {
			t.Errorf("%s has rank %s, want %s", id, got[:16], want)
		}
	}
}
