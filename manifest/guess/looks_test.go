package guess

import (
	"slices"
	"strings"
	"testing"
)

// TestLookOfName: what publish says of the name of a column or category, of which it shows the one in the release.
func TestLookOfName(t *testing.T) {
	known := func(word string) bool {
		return slices.Contains(strings.Fields("schmidt miller kim garcia mood white joy grace"), word)
	}
	for name, want := range map[string]string{
		"schmidt": "may name somebody", "miller": "may name somebody", "kim": "may name somebody",
		"garcia": "may name somebody", slug("Müller"): "may name somebody", "mood_schmidt": "may name somebody",
		"mood": "", "white": "", "joy": "", "grace": "",
		"kvamsdal": "may be a person's name: this program does not know all its words",
	} {
		if got := LookOfName(name, known); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestLooksOfNames: what publish says of values that may name somebody, of which some are in its dictionary.
func TestLooksOfNames(t *testing.T) {
	for text, want := range map[string]string{
		"Jana vs Mei": "looks like the name of a person", "Jana-1": "looks like the name of a person",
		"by annaschmidt": "looks like the name of a person", "by aschmidt": "looks like the name of an account",
		"checked by kvamsdal": "looks like the name of an account", "aschmidt": "looks like the name of an account",
		"Schmidt": "may name somebody", "schmidt 2": "may name somebody",
		"J.S.": "may name somebody", "A. M. K.": "may name somebody", "U.S.": "", "U.K.": "", "J.": "", "A.I": "",
		"by anger": "", "twang": "", "skim": "", "white": "", "King vs White": "", "joy": "", "Hope": "",
	} {
		if got := LooksOfValues([]string{text, "anger", "sad"}, lexicon)[0]; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
