package language

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMaskNames(t *testing.T) {
	for _, test := range []struct {
		line, want string
		n          Masked
	}{
		{"Posted by u/some_user-12 3 hours ago", "Posted by [user] 3 hours ago", Masked{Users: 1}},
		{"/u/spez, said:", "[user], said:", Masked{Users: 1}},
		{"U/SOMEBODY AND U/ELSE", "[user] AND [user]", Masked{Users: 2}},
		{"(u/somebody's post)", "([user]'s post)", Masked{Users: 1}},
		{"u/ somebody said", "[user] said", Masked{Users: 1}},
		{"see reddit.com/u/somebody or reddit.com/user/else", "see reddit.com[user] or reddit.com[user]", Masked{Users: 2}},
		{"r/memes u/somebody", "r/memes [user]", Masked{Users: 1}},
		{"u/one/u/two12", "[user][user]", Masked{Users: 2}},
		{"@someone: hi", "[user]: hi", Masked{Users: 1}},
		{".@Some_One2 and @2pac_fan", ".[user] and [user]", Masked{Users: 2}},
		{"made with @some.app.", "made with [user].", Masked{Users: 1}},
		{"@müller", "[user]", Masked{Users: 1}},
		{"by @jo, @j_ and @5abc or @5a_b", "by [user], [user] and [user] or [user]", Masked{Users: 4}},
		{"write to jane.doe+memes@example.co.uk now", "write to [email] now", Masked{Emails: 1}},
		{"<JANE@EXAMPLE.ORG>", "<[email]>", Masked{Emails: 1}},
		{"jane @example.com", "[email]", Masked{Emails: 1}},
		{"jane@ example.com!", "[email]!", Masked{Emails: 1}},
		{"by@somebody", "[email]", Masked{Emails: 1}}, // what it was is anybody's guess
		{"@jane@mastodon.example", "[email]", Masked{Emails: 1}},
		{"call 555-0123-4567", "call [phone]", Masked{Phones: 1}},
		{"(555) 010-4567", "[phone]", Masked{Phones: 1}},
		{"1-800-555-0199!", "[phone]!", Masked{Phones: 1}},
		{"555.010.4567 or 555 010 4567", "[phone] or [phone]", Masked{Phones: 2}},
		{"555-010-4567/555-010-4568", "[phone]/[phone]", Masked{Phones: 2}},
		{"5550104567", "[phone]", Masked{Phones: 1}},
		{"+1 (555) 010-4567", "[phone]", Masked{Phones: 1}},
		{"+49 30 1234 5678, sofort", "[phone], sofort", Masked{Phones: 1}},
		{"+491701234567 +1 2345678", "[phone] [phone]", Masked{Phones: 2}},
		{"+33 6 12 34 56 78", "[phone]", Masked{Phones: 1}},
		{"0049 30 1234567 or 001-555-010-4567", "[phone] or [phone]", Masked{Phones: 2}},
		{"Tel. 030 1234567", "Tel. [phone]", Masked{Phones: 1}},
		{"text me at 555-0199", "text me at [phone]", Masked{Phones: 1}},
		{"u/somebody @other x@example.com +1 555 010 4567", "[user] [user] [email] [phone]", Masked{2, 1, 1}},
		// What stays.
		{line: ""},
		{line: "r/memes and r/AskReddit"},
		{line: "you/them and/or w/ u/ I/O 24/7 A/B U/S"},
		{line: "user/password"},
		{line: "at @ home, @5pm, @ 7, @3:00, @2nd, @100"},
		{line: "C++ @ work"},
		{line: "#hashtag #2020 #5550104567"},
		{line: "$1,000,000 and $5550104567 and 99 % of 1000000"},
		{line: "1939-1945, 2016 2017 2018 2019 2020, in 2020-2021"},
		{line: "call of duty 2019, call 911, text 2020-11-03"},
		{line: "3-2 10-0 100-99 score 21:30 12:00:00 at 10:30-11:45"},
		{line: "500-1000 words, 192.168.100.200, 3.14159265358979"},
		{line: "+100 +50% +1000000 points +1.000.000.000 +1,000,000,000"},
		{line: "11/03/2020 2020-11-03 03.11.2020"},
		{line: "1234 5678 9012 3456"},
		{line: "001 002 003 004 00"},
		{line: "3.141.592.6535 ISBN 978-3-16-148410-0"},
		{line: "1605571200"}, // a time in seconds
		{line: "2+4915112345678 5+491701234567"},
		{line: "555.010.4567.89 555-010-4567% $555-010-4567"},
		{line: "12345678901234567890"},
		{line: "100000 12 345 678"},
		{line: "text 555-0199% or call 555-0199$"},
	} {
		want := test.want
		if want == "" {
			want = test.line
		}
		masked, n := MaskNames([][]string{strings.Fields(test.line)})
		got := strings.Join(slices.DeleteFunc(masked[0], func(w string) bool { return w == "" }), " ")
		if diff := cmp.Diff(want, got); diff != "" || n != test.n {
			t.Errorf("MaskNames(%q) = %+v, want %+v (-want +got):\n%s", test.line, n, test.n, diff)
		}
	}
}

// TestMaskShape holds that masked words keep their places, and that no match goes over the end of a line.
func TestMaskShape(t *testing.T) {
	lines := [][]string{{"call", "(555)", "010-4567", "now"}, nil, {"from", "u/"}, {"somebody", "@", "jane@", "", "example.com"}}
	before := strings.Join(slices.Concat(lines...), "|")
	masked, n := MaskNames(lines)
	want := [][]string{{"call", "[phone]", "", "now"}, nil, {"from", "u/"}, {"somebody", "@", "[email]", "", ""}}
	want[1] = []string{}
	if diff := cmp.Diff(want, masked); diff != "" {
		t.Errorf("MaskNames differs (-want +got):\n%s", diff)
	}
	if (n != Masked{Emails: 1, Phones: 1}) {
		t.Errorf("MaskNames counts %+v", n)
	}
	if after := strings.Join(slices.Concat(lines...), "|"); after != before {
		t.Errorf("MaskNames changed its argument: %q", after)
	}
}

func FuzzMaskNames(f *testing.F) {
	for _, s := range []string{"", "u/ab @a u/u/abc", "call +1 (555) 010-4567 2", "a@b@c.de @x@y", "1-555-010-4567-", "[user]@[email] [phone] 5550199",
		"call phone 555 0199 +++1 2 3 4 5 6 7 8", "\xff@ab\xfe u/\xc3abc", "@ü u/üüü", "u/\na\nbcd", "jane\n@\nexample.com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\n") // words with spaces, and empty ones, too
		masked, n := MaskNames([][]string{words})
		if len(masked) != 1 || len(masked[0]) != len(words) {
			t.Fatalf("MaskNames(%q) has another shape: %q", words, masked)
		}
		again, none := MaskNames(masked)
		if diff := cmp.Diff(masked, again); diff != "" || none != (Masked{}) {
			t.Errorf("MaskNames(%q) = %q, which is masked again, %+v:\n%s", words, masked, none, diff)
		}
		before, after := len(strings.Join(words, "")), len(strings.Join(masked[0], ""))
		matches := n.Users + n.Emails + n.Phones
		if after > before+4*matches { // 3, and a space inside of a match that had no words
			t.Errorf("MaskNames(%q) = %q: %d bytes longer with %d matches", words, masked, after-before, matches)
		}
		if matches == 0 && !slices.Equal(words, masked[0]) {
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
	if n.Users+n.Emails+n.Phones != 3 {
		t.Fatalf("masked %+v in %q, want three", n, masked)
	}
	for i, w := range masked[0] {
		if got, want := IsMask(w), i%2 == 1; got != want {
			t.Errorf("IsMask(%q) = %t", w, got)
		}
	}
}
