package redditemu

import "testing"

// Whatever is asked, the ids that come out are well-formed and no more than were named.
func FuzzAskedIDs(f *testing.F) {
	for _, s := range []string{"t3_a,t3_b", " ,t1_a t5_2zmfe", "t3_", "t3_A", "t3_12345678901234", "\x00_\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		links, n := AskedIDs(s)
		if len(links) > n {
			t.Errorf("AskedIDs(%q) = %d links of %d names", s, len(links), n)
		}
		for _, id := range links {
			if _, err := manifestID(string(id)); err != nil {
				t.Errorf("AskedIDs(%q): %v", s, err)
			}
		}
	})
}
