package manifest

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestParsePostID(t *testing.T) {
	for _, in := range []string{
		"abc123", "ABC123", " abc123\t", "t3_abc123", "T3_Abc123",
		"https://www.reddit.com/r/x/comments/abc123/title_of_it/",
		"http://old.reddit.com/r/x/comments/abc123",
		"https://new.reddit.com/r/x/comments/ABC123/t/?utm_source=share#top",
		"https://np.reddit.com/r/x/comments/abc123/t/",
		"https://reddit.com/comments/abc123",
		"HTTPS://WWW.REDDIT.COM/r/x/comments/abc123/",
		"www.reddit.com/r/x/comments/abc123/t",
		"//www.reddit.com/r/x/comments/abc123/t",
		"/r/x/comments/abc123", "r/x/comments/abc123/t?x=1", "r/x/comments/abc123/t/.json",
		"r/x/comments/abc123/t/?sort=top&comment=", "r/x/comments/abc123/t/#lightbox",
		"r/x/comments/abc123/t/#content", "r/x/comments/abc123/t/#commentarea",
		"r/x/comments/abc123/t/?comment_sort=new", "r/x/comments/abc123/t1/", "r/x/comments/abc123#t",
		"/comments/abc123", "/user/x/comments/abc123/t/",
		"https://www.reddit.com/gallery/abc123",
		"https://www.reddit.com/r/x/comments/ab%6312%33/",
		"https://redd.it/abc123", "redd.it/ABC123", "https://redd.it/abc123/?x=1", "redd.it/comments/abc123",
		"redd.it/r/x/comments/abc123/title", "redd.it/gallery/abc123",
	} {
		if got, err := ParsePostID(in); err != nil || got != "abc123" {
			t.Errorf("ParsePostID(%q) = %q, %v, want abc123", in, got, err)
		}
	}
	for in, want := range map[string]PostID{"1e5": "1e5", "1E5": "1e5", "AZ09az": "az09az", "t1xabc": "t1xabc",
		"0": "0", "1y2p0ij32e8e7": "1y2p0ij32e8e7", "t3": "t3", "100000": "100000"} {
		if got, err := ParsePostID(in); err != nil || got != want {
			t.Errorf("ParsePostID(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestParsePostIDRefuses(t *testing.T) {
	tests := []struct{ in, message, hint string }{
		{"", "empty", "t3_abc123"},
		{" \u00a0", "empty", ""},
		{"t1_abc123", "id of a comment", "start with t3_"},
		{"t2_abc123", "id of an account", ""},
		{"T5_abc123", "id of a subreddit", ""},
		{"t0_abc", "id of something else", ""},
		{"t9_abc", "id of something else", ""},
		{"t1_", "not a post id", ""},
		{"x1_abc", "not a post id", "letters"},
		{"t-_abc", "not a post id", "letters"},
		{"tx_abc", "not a post id", "letters"},
		{"abcdefghijkl mn", "not a post id", "letters"},
		{"t3_", "not a post id", ""},
		{"t3_t3_abc", "not a post id", ""},
		{"1.00E+05", "spreadsheet", "damaged"},
		{"1E+05", "spreadsheet", "damaged"},
		{"1,5e+12", "spreadsheet", "damaged"},
		{"123.0", "spreadsheet", "damaged"},
		{"1E-05", "spreadsheet", "damaged"},
		{"1-Jan", "a number or day as a spreadsheet", "damaged"},
		{"Sep-01", "a number or day as a spreadsheet", "damaged"},
		{"2-mar-2020", "a number or day as a spreadsheet", "damaged"},
		{"1-2-3", "not a post id", "letters"},
		{"jan-feb", "not a post id", "letters"},
		{"abc.def", "not a post id", "letters"},
		{"abcdefghijklmn", "not a post id", "at most 13"},
		{"abc\x00", "not a post id", ""},
		{"../../etc", "not an address on Reddit", ""},
		{"\u212aelvin", "not a post id", ""}, // Kelvin sign: folds to k in Unicode
		{"аbc123", "not a post id", ""},      // Cyrillic a
		{"https://i.redd.it/abc123.jpg", "address of an image", "id or permalink"},
		{"https://preview.redd.it/abc.png?width=1", "address of an image", ""},
		{"i.imgur.com/abc.png", "address of an image", ""},
		{"https://www.reddit.com/r/x/s/AbCdEf", "share link", "open it"},
		{"https://np.reddit.com/r/x/comments/abc123/t/def456/", "permalink of a comment", "which is meant"},
		{"https://www.reddit.com/r/x/comments/abc123/t/def4567.json", "permalink of a comment", "which is meant"},
		{"/r/x/comments/abc123/t/def4567/.json", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/?comment=def4567", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/#def4567", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/#t1_def", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/#kabcdef", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/t1_def4567", "permalink of a comment", ""},
		{"https://www.reddit.com/comments/abc123/t1_def4567/", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/?commentId=t1_def4567", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/?utm_source=x&comment_id=def4567", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/comments/abc123/t/#thing_t1_def", "permalink of a comment", ""},
		{"https://www.reddit.com/r/x/", "does not name a post", "/comments/"},
		{"t3_abc123/0", "does not name a post", "the post's id alone"},
		{"abc123/", "does not name a post", "/comments/"},
		{"https://www.reddit.com:8443/r/x/comments/abc/", "can be read", ""},
		{"https://u:p@www.reddit.com/r/x/comments/abc/", "can be read", ""},
		{"file:///r/x/comments/abc/", "can be read", ""},
		{"https://example.com/r/x/comments/abc123/", "not an address on Reddit", "www.reddit.com"},
		{"https://www.reddit.com.example.com/r/x/comments/abc/", "not an address on Reddit", ""},
		{"https://redd.it/", "does not name a post", "the id alone"},
		{"https://redd.it/r/pics", "does not name a post", "the id alone"},
		{"redd.it/r/pics/abc123", "does not name a post", "the id alone"},
		{"redd.it/r/pics/comments", "does not name a post", "the id alone"},
		{"redd.it/comments", "does not name a post", "the id alone"},
		{"redd.it/user/x", "does not name a post", "the id alone"},
		{"redd.it/abc123/x", "does not name a post", "the id alone"},
		{"http://[::1/x", "can be read", ""},
	}
	for _, test := range tests {
		got, err := ParsePostID(test.in)
		var p *Problem
		if !errors.As(err, &p) || got != "" {
			t.Errorf("ParsePostID(%q) = %q, %v, want a *Problem", test.in, got, err)
			continue
		}
		if !strings.Contains(p.Message, test.message) || !strings.Contains(p.Hint, test.hint) || p.Hint == "" {
			t.Errorf("ParsePostID(%q): %v, want message %q and hint %q", test.in, err, test.message, test.hint)
		}
	}
}

func FuzzParsePostID(f *testing.F) {
	for _, seed := range []string{"abc123", "t3_ABC", "1.00E+05", "https://redd.it/abc", "/r/x/comments/abc123/t",
		"t1_x", "//", "http://%", "e+", "\u212a"} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^[0-9a-z]{1,13}$`)
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParsePostID(s)
		if err != nil {
			var p *Problem
			if !errors.As(err, &p) || p.Message == "" || p.Hint == "" || id != "" {
				t.Fatalf("ParsePostID(%q) = %q, %#v, want a *Problem with a hint and no id", s, id, err)
			}
			return
		}
		if !grammar.MatchString(string(id)) {
			t.Fatalf("ParsePostID(%q) = %q, which is not an id", s, id)
		}
		if again, err := ParsePostID(id.Fullname()); err != nil || again != id {
			t.Fatalf("ParsePostID(%q) = %q, %v", id.Fullname(), again, err)
		}
	})
}

// TestIsComment: fullnames and permalinks of comments, and nothing else.
func TestIsComment(t *testing.T) {
	for text, want := range map[string]bool{
		"t1_abc": true, " T1_ABC ": true, "/r/x/comments/abc/title/def/": true,
		"https://old.reddit.com/r/x/comments/abc/_/def?context=3": true,
		"t3_abc": false, "abc": false, "": false, "t1_": false, "/r/x/comments/abc/title/": false,
		"/r/x/comments/abc/": false, "::": false,
	} {
		if got := IsComment(text); got != want {
			t.Errorf("IsComment(%q) = %t", text, got)
		}
	}
}
