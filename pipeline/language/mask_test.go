package language

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
)

func TestMaskNames(t *testing.T) {
	for _, test := range []struct {
		line, want string // "": as it is
	}{
		{"Posted by u/some_user-12 3 hours ago", "Posted by [user] 3 hours ago"},
		{"/u/spez, said:", "[user], said:"},
		{"U/SOMEBODY AND U/ELSE", "[user] AND [user]"},
		{"(u/somebody's post)", "([user]'s post)"},
		{"u/ somebody said", "[user] said"},
		{"see reddit.com/u/somebody or reddit.com/user/else", "see reddit.com[user] or reddit.com[user]"},
		{"r/memes u/somebody", "r/memes [user]"},
		{"+491701234567u/somebody", "[phone][user]"}, // after a digit it is no name, after a mask it is one
		{"u/one/u/two12", "[user][user]"},
		{"@someone: hi", "[user]: hi"},
		{".@Some_One2 and @2pac_fan", ".[user] and [user]"},
		{"made with @some.app.", "made with [user]."},
		{"@müller", "[user]"},
		{"by @jo, @j_ and @5abc or @5a_b", "by [user], [user] and [user] or [user]"},
		{"write to jane.doe+memes@example.co.uk now", "write to [email] now"},
		{"<JANE@EXAMPLE.ORG>", "<[email]>"},
		{"jane @example.com", "[email]"},
		{"jane@ example.com!", "[email]!"},
		{"by@somebody", "[email]"}, // what it was is anybody's guess
		{"@jane@mastodon.example", "[email]"},
		{"call 555-0123-4567", "call [phone]"},
		{"(555) 010-4567", "[phone]"},
		{"1-800-555-0199!", "[phone]!"},
		{"555.010.4567 or 555 010 4567", "[phone] or [phone]"},
		{"555-010-4567/555-010-4568", "[phone]/[phone]"},
		{"5550104567", "[phone]"},
		{"+1 (555) 010-4567", "[phone]"},
		{"+49 30 1234 5678, sofort", "[phone], sofort"},
		{"+491701234567 +1 2345678", "[phone] [phone]"},
		{"+33 6 12 34 56 78", "[phone]"},
		{"0049 30 1234567 or 001-555-010-4567", "[phone] or [phone]"},
		{"Tel. 030 1234567", "Tel. [phone]"},
		{"text me at 555-0199", "text me at [phone]"},
		{"u/somebody @other x@example.com +1 555 010 4567", "[user] [user] [email] [phone]"},
		// What stays.
		{"", ""},
		{"r/memes and r/AskReddit", ""},
		{"24u/day", ""},
		{"you/them and/or w/ u/ I/O 24/7 A/B U/S", ""},
		{"user/password", ""},
		{"at @ home, @5pm, @ 7, @3:00, @2nd, @100", ""},
		{"C++ @ work", ""},
		{"#hashtag #2020 #5550104567", ""},
		{"$1,000,000 and $5550104567 and 99 % of 1000000", ""},
		{"1939-1945, 2016 2017 2018 2019 2020, in 2020-2021", ""},
		{"call of duty 2019, call 911, text 2020-11-03", ""},
		{"3-2 10-0 100-99 score 21:30 12:00:00 at 10:30-11:45", ""},
		{"500-1000 words, 192.168.100.200, 3.14159265358979", ""},
		{"+100 +50% +1000000 points +1.000.000.000 +1,000,000,000", ""},
		{"11/03/2020 2020-11-03 03.11.2020", ""},
		{"1234 5678 9012 3456", ""},
		{"001 002 003 004 00", ""},
		{"3.141.592.6535 ISBN 978-3-16-148410-0", ""},
		{"1605571200", ""}, // a time in seconds
		{"2+4915112345678 5+491701234567", ""},
		{"555.010.4567.89 555-010-4567% $555-010-4567", ""},
		{"12345678901234567890", ""},
		{"100000 12 345 678", ""},
		{"text 555-0199% or call 555-0199$", ""},
	} {
		want := test.want
		if want == "" {
			want = test.line
		}
		masked, n := MaskNames([][]string{strings.Fields(test.line)})
		got := strings.Join(slices.DeleteFunc(masked[0], func(w string) bool { return w == "" }), " ")
		if diff := cmp.Diff(want, got); diff != "" || n != strings.Count(want, "[") {
			t.Errorf("MaskNames(%q) masked %d (-want +got):\n%s", test.line, n, diff)
		}
	}
}

// TestMaskShape holds that masked words keep their places, and that no match goes over the end of a line.
func TestMaskShape(t *testing.T) {
	lines := [][]string{{"call", "(555)", "010-4567", "now"}, nil, {"from", "u/"},
		{"somebody", "@", "jane@", "", "example.com"}}
	before := strings.Join(slices.Concat(lines...), "|")
	masked, n := MaskNames(lines)
	want := [][]string{{"call", "[phone]", "", "now"}, nil, {"from", "u/"}, {"somebody", "@", "[email]", "", ""}}
	testkit.Same(t, "MaskNames", want, masked)
	if n != 2 {
		t.Errorf("MaskNames masked %d", n)
	}
	if after := strings.Join(slices.Concat(lines...), "|"); after != before {
		t.Errorf("MaskNames changed its argument: %q", after)
	}
}

func FuzzMaskNames(f *testing.F) {
	for _, s := range []string{"", "u/ab @a u/u/abc", "call +1 (555) 010-4567 2", "a@b@c.de @x@y", "1-555-010-4567-",
		"[user]@[email] [phone] 5550199",
		"call phone 555 0199 +++1 2 3 4 5 6 7 8", "\xff@ab\xfe u/\xc3abc", "@ü u/üüü", "u/\na\nbcd",
		"jane\n@\nexample.com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\n") // words with spaces, and empty ones, too
		masked, n := MaskNames([][]string{words})
		if len(masked) != 1 || len(masked[0]) != len(words) {
			t.Fatalf("MaskNames(%q) has another shape: %q", words, masked)
		}
		again, none := MaskNames(masked)
		if diff := cmp.Diff(masked, again); diff != "" || none != 0 {
			t.Errorf("MaskNames(%q) = %q, which is masked again, %d:\n%s", words, masked, none, diff)
		}
		before, after := len(strings.Join(words, "")), len(strings.Join(masked[0], ""))
		if after > before+4*n { // 3, and a space inside of a match that had no words
			t.Errorf("MaskNames(%q) = %q: %d bytes longer with %d matches", words, masked, after-before, n)
		}
		if n == 0 && !slices.Equal(words, masked[0]) {
			t.Errorf("MaskNames(%q) = %q without a match", words, masked)
		}
		line := strings.Join(slices.DeleteFunc(slices.Clone(masked[0]), func(w string) bool { return w == "" }), " ")
		for _, r := range maskRules {
			if from, to, found := r.first(line); found {
				t.Errorf("MaskNames(%q) left %q", words, line[from:to])
			}
		}
	})
}

func TestIsMask(t *testing.T) {
	masked, n := MaskNames([][]string{{"by", "(@somebody),", "call", "555-123-4567", "or", "me@example.org!"}})
	if n != 3 {
		t.Fatalf("masked %+v in %q, want three", n, masked)
	}
	for i, w := range masked[0] {
		if got, want := IsMask(w), i%2 == 1; got != want {
			t.Errorf("IsMask(%q) = %t", w, got)
		}
	}
}
