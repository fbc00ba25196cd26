package main

import (
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/diff"
)

// TestKeyLine: of long values the line has the part that differs, and no line is wider than a terminal.
func TestKeyLine(t *testing.T) {
	long, digest := "grey pixels, "+strings.Repeat("x", 80), strings.Repeat("0a", 32)
	for _, test := range []struct{ old, now, want string }{
		{"", "1.0", "k               none -> 1.0"},
		{"0", "6", "k               0 -> 6"},
		{digest, digest[1:] + "b", "k               " + digest + "\n             -> " + digest[1:] + "b"},
		{long + "; Y ran", long + "; Y sat", "k               ...xxxx; Y ran -> ...xxxx; Y sat"},
		{long, long + "; Y", "k               ...xxxxxxxx -> ...xxxxxxxx; Y"},
		{"a" + long, "b", "k               agrey pixels, " + strings.Repeat("x", 47) + "...\n             -> b"},
		{"a\tb", "", `k               a\tb -> none`},
	} {
		got := keyLine(diff.KeyChange{Key: "k", Old: test.old, New: test.now})
		testkit.Same(t, test.old+" to "+test.now, got, test.want)
		for line := range strings.Lines(got) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s is too wide", line)
			}
		}
	}
}
