package policy

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestDefault: a change of a default changes what runs do, and docs/files.md, which lists them.
func TestDefault(t *testing.T) {
	if got, want := Default().Digest(), "0ff1b23b6bcb43f26d7837075bfac104de5058302ea90c2462731b73d6d7af37"; got != want {
		t.Errorf("the defaults have the digest %s, want %s", got, want)
	}
	showsKeys(t, reflect.TypeFor[document]())
}

// showsKeys: each key must be written out, for a maintainer edits what stands there.
func showsKeys(t *testing.T, of reflect.Type) {
	for f := range of.Fields() {
		key, in := f.Tag.Get("toml"), f.Type
		if !strings.Contains(defaultTOML, key+" =") && !strings.Contains(defaultTOML, key+"]") {
			t.Errorf("the default policy does not show %s", key)
		}
		if in.Kind() == reflect.Slice {
			in = in.Elem()
		}
		if in.Kind() == reflect.Struct {
			showsKeys(t, in)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := Parse([]byte(`
[reddit]
requests_per_minute = 100   # whole numbers will do
recheck_within = "90m"
readmit = "moderator"
[access]
grant = "required"
[images]
suspect_after = 0
[[images.placeholder]]
name = "gone"
meaning = "a picture for nothing"
url = "upload.example.org/gone"
outcome = "placeholder"
source = "seen there"
[[images.placeholder]]
name = "away"
meaning = "not in this region"
sha256 = "9b5936f4006146e4e1e9025b474c02863c0b5614132ad40db4b925a10e8bfbb9"
md5 = "d835884373f4d6c8f24742ceabe74946"
format = "png"
width = 3
height = 4
bytes = 5
outcome = "failed"
source = "seen there"
[[images.host]]
name = "I.Redd.It"
[[images.host]]
name = "upload.example.org"
requests_per_second = 0.25
concurrency = 2
[text]
mask_names = false
[filter]
mode = "flag"
[dedupe]
word_difference = 0
`), "p")
	testkit.OK(t, err)
	want := Default()
	want.Reddit.RequestsPerMinute = 100
	want.Reddit.RecheckWithin = 90 * time.Minute
	want.Reddit.Readmit = ReadmitModerator
	want.Access.GrantRequired = true
	want.Images.SuspectAfter = 0
	want.Images.Placeholders = []Placeholder{
		{Name: "gone", Meaning: "a picture for nothing", URL: "upload.example.org/gone", Outcome: manifest.Placeholder,
			Source: "seen there"},
		{Name: "away", Meaning: "not in this region",
			SHA256: "9b5936f4006146e4e1e9025b474c02863c0b5614132ad40db4b925a10e8bfbb9",
			MD5:    "d835884373f4d6c8f24742ceabe74946", Format: "png", Width: 3, Height: 4, Bytes: 5,
			Outcome: manifest.Failed,
			Source:  "seen there"},
	}
	want.Images.Hosts = []Host{{"i.redd.it", 1, 1, false}, {"upload.example.org", 0.25, 2, true}}
	want.Text.MaskNames = false
	want.Filter.Mode = Flag
	want.Dedupe.WordDifference = 0
	testkit.Same(t, "Parse", want, got)
	if got, err := Parse(nil, "p"); err != nil || !cmp.Equal(got, Default()) {
		t.Errorf("Parse of an empty file = %v, %v; want the defaults", got, err)
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"misspelt key", "[reddit]\nrequest_per_minute = 3\n",
			"p.toml:2:1: unknown key \"request_per_minute\" in [reddit]\n  hint: did you mean requests_per_minute?"},
		{"unknown key of the second host", "[[images.host]]\nname='a.b'\n[[images.host]]\nname='c.d'\nratio = 3\n",
			"p.toml:5:1: unknown key \"ratio\" in [images.host]"},
		{"too fast", "[reddit]\nrequests_per_minute = 101\n",
			"p.toml:2:1: reddit.requests_per_minute is 101; it must be more than 0 and at most 100"},
		{"stopped", "[reddit]\nrequests_per_minute = 0.0\n", "reddit.requests_per_minute is 0"},
		{"not a number", "[reddit]\nrequests_per_minute = nan\n", "reddit.requests_per_minute is NaN"},
		{"infinite", "[filter]\nenglish_threshold = inf\n", "filter.english_threshold is +Inf"},
		{"duration without a unit", "[reddit]\nrecheck_within = '48'\n",
			`p.toml:2:1: reddit.recheck_within: "48" is not a duration`},
		{"less than nothing", "[filter]\nenglish_threshold = -0.1\n", "filter.english_threshold is -0.1"},
		{"recheck too late", "[reddit]\nrecheck_within = '49h'\n", "at most 48h"},
		{"negative pause", "[reddit]\nsecond_look_after = '-1s'\n", "reddit.second_look_after is -1s"},
		{"share of nothing", "[reddit]\nmass_removal_share = 0\n", "reddit.mass_removal_share is 0"},
		{"no bytes", "[images]\nmax_bytes = 0\n", "images.max_bytes is 0"},
		{"too many pixels", "[images]\nmax_pixels = 300000000\n",
			"images.max_pixels is 300000000; it must be 1 to 268402689"},
		{"no side", "[images]\nmax_side = -1\n", "images.max_side is -1"},
		{"readmit", "[reddit]\nreadmit = 'author'\n",
			`p.toml:2:1: reddit.readmit is "author"; it must be "never" or "moderator"`},
		{"grant", "\n[access]\ngrant = 'yes'\n", `p.toml:3:1: access.grant is "yes"; it must be "required" or "optional"`},
		{"grant without a word", "[access]\ngrant = ''\n", `p.toml:2:1: access.grant is ""`},
		{"every image suspect", "[images]\nsuspect_after = 1\n",
			"p.toml:2:1: images.suspect_after is 1; it must be 0, which is never, or 2 to 1000000"},
		{"a name for an id", "[images]\nallow_same_as_removed = ['abc', 't3_abd']\n",
			`images.allow_same_as_removed[1] is "t3_abd"; it must be a post id, in lower case without t3_`},
		{"negative suspicion", "[images]\nsuspect_after = -4\n", "p.toml:2:1: images.suspect_after is -4"},
		{"mode", "[filter]\nmode = 'keep'\n", `filter.mode is "keep"; it must be "drop" or "flag"`},
		{"radius", "[dedupe]\nhash_radius = 32\n", "dedupe.hash_radius is 32"},
		{"words", "[dedupe]\nword_difference = -1\n", "dedupe.word_difference is -1"},
		{"host without a name", "[[images.host]]\nconcurrency = 1\n", `p.toml:1:3: images.host[0].name is ""`},
		{"host as a URL", "[[images.host]]\nname = 'https://i.redd.it'\n", "without scheme"},
		{"host with a port", "[[images.host]]\nname = 'i.redd.it:443'\n", "without scheme"},
		{"host with a wildcard", "[[images.host]]\nname = '*.redd.it'\n", "without scheme"},
		{"host with a hyphen at the end", "[[images.host]]\nname = 'a-.b'\n", "without scheme"},
		{"host with an empty label", "[[images.host]]\nname = 'a..b'\n", "without scheme"},
		{"host of one label", "[[images.host]]\nname = 'localhost'\n", "without scheme"},
		{"host with a long label", "[[images.host]]\nname = '" + strings.Repeat("a", 64) + ".b'\n", "without scheme"},
		{"host too long", "[[images.host]]\nname = '" + strings.Repeat("a.", 126) + "bc'\n", "without scheme"},
		{"host stopped", "[[images.host]]\nname = 'a.b'\nrequests_per_second = 0\n",
			"images.host[0].requests_per_second is 0"},
		{"recheck at once", "[reddit]\nrecheck_within = '0s'\n", "reddit.recheck_within is 0s"},
		{"more than the whole", "[reddit]\nmass_removal_share = 1.01\n", "reddit.mass_removal_share is 1.01"},
		{"pause too long", "[reddit]\nsecond_look_after = '25h'\n", "reddit.second_look_after is 25h"},
		{"host as an address", "[[images.host]]\nname = '127.0.0.1'\n", "without scheme"},
		{"host twice", "[[images.host]]\nname = 'a.b'\n[[images.host]]\nname = 'A.B'\n",
			`p.toml:4:1: images.host[1].name is "a.b"; it must be a host that is not in the list already`},
		{"host too fast", "[[images.host]]\nname = 'a.b'\nrequests_per_second = 1000\n",
			"p.toml:3:1: images.host[0].requests_per_second is 1000"},
		{"host without a place", "[[images.host]]\nname = 'a.b'\nconcurrency = 0\n", "images.host[0].concurrency is 0"},
		{"Reddit's API as a host", "[[images.host]]\nname = 'oauth.reddit.com'\n",
			`p.toml:2:1: images.host[0].name is "oauth.reddit.com"; it must be a host of images: reddit.com holds the API`},
		{"Reddit itself as a host", "[[images.host]]\nname = 'reddit.com'\n",
			`images.host[0].name is "reddit.com"; it must be a host of images`},
		{"imgur's API twice at once", "[[images.host]]\nname = 'api.imgur.com'\nconcurrency = 2\n",
			"p.toml:3:1: images.host[0].concurrency is 2; it must be 1 for api.imgur.com"},
	}
	// Whoever mends a policy sees all that is wrong with it.
	all := "[filter]\nmode = 'keep'\n[reddit]\nrecheck_within = '48'\nrequests = 3\n[[images.host]]\nname = 'a.b'\nconcurrency = 65\n"
	for _, want := range []string{"p.toml:2:1: filter.mode is", "p.toml:4:1: reddit.recheck_within",
		"p.toml:5:1: unknown key", "p.toml:8:1: images.host[0].concurrency"} {
		tests = append(tests, struct{ name, text, want string }{"all at once", all, want})
	}
	// What just keeps to its limit.
	for _, text := range []string{"[reddit]\nrequests_per_minute = 100\nrecheck_within = '48h'\nsecond_look_after = '24h'\nmass_removal_share = 1.0\n",
		"[reddit]\nsecond_look_after = '0s'\n[images]\nmax_bytes = 268435456\nmax_pixels = 268402689\nmax_side = 65535\nsuspect_after = 1000000\n",
		"[filter]\nenglish_threshold = 0\n[dedupe]\nhash_radius = 0\nword_difference = 0\n",
		"[images]\nmax_bytes = 1\nmax_pixels = 1\nmax_side = 1\nsuspect_after = 2\n[filter]\nenglish_threshold = 1\n[dedupe]\nhash_radius = 31\nword_difference = 1000\n",
		"[[images.placeholder]]\nname = 'a'\nmeaning = '" + strings.Repeat("b",
			200) + "'\nurl = 'a.b/c'\noutcome = 'failed'\nsource = 'd'\n",
		"[[images.host]]\nname = 'a.b'\nconcurrency = 64\nrequests_per_second = 100\n[[images.host]]\nname = '" + strings.Repeat(strings.Repeat("a", 61)+".", 4) + "abcde'\n",
	} {
		if _, err := Parse([]byte(text), "p.toml"); err != nil {
			t.Errorf("Parse(%q) = %v", text, err)
		}
	}
	for _, tt := range tests {
		_, err := Parse([]byte(tt.text), "p.toml")
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "p.toml") {
			t.Errorf("%s: Parse = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

func TestDigest(t *testing.T) {
	parse := func(s string) Policy {
		t.Helper()
		p, err := Parse([]byte(s), "p")
		testkit.OK(t, err)
		return p
	}
	same := []string{
		"",
		defaultTOML,
		"[dedupe]\nword_difference = 3\nhash_radius = 0x8\n[reddit]\nrequests_per_minute = 6e1\nrecheck_within = '2880m'\n",
		"[[images.host]]\nname='api.imgur.com'\nrequests_per_second=0.13\n[[images.host]]\nname='i.imgur.com'\nrequests_per_second=0.5\n[[images.host]]\nname='preview.redd.it'\nrequests_per_second=10\nconcurrency=4\n[[images.host]]\nname='i.redd.it'\nrequests_per_second=10\nconcurrency=4\n",
	}
	for _, s := range same {
		if got := parse(s).Digest(); got != Default().Digest() || len(got) != 64 {
			t.Errorf("Digest of %q = %s, want that of the default %s", s, got, Default().Digest())
		}
	}
	seen := map[string]string{Default().Digest(): "the default"}
	for _, s := range []string{
		"[reddit]\nrequests_per_minute = 61", "[reddit]\nrecheck_within = '47h'", "[reddit]\nsecond_look_after = '31s'",
		"[reddit]\nmass_removal_share = 0.11", "[images]\nmax_bytes = 1", "[images]\nmax_pixels = 1",
		"[images]\nmax_side = 1",
		"[[images.host]]\nname='i.redd.it'", "[[images.host]]\nname='i.redd.it'\nconcurrency=2",
		"[[images.host]]\nname='i.redd.it'\nrequests_per_second=2",
		"[access]\ngrant='required'", "[reddit]\nreadmit='moderator'", "[images]\nsuspect_after=5",
		"[images]\nsuspect_after=0",
		"[text]\nmask_names=false", "[filter]\nmode='flag'", "[filter]\nenglish_threshold=0.5", "[dedupe]\nhash_radius=7",
		"[dedupe]\nword_difference=2",
		"[dedupe]\nguard=true", "[images]\nallow_same_as_removed=['abc']", "[images]\nallow_same_as_removed=['abd']",
	} {
		d := parse(s).Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("Digest of %q is that of %s", s, other)
		}
		seen[d] = s
	}
}

func TestHost(t *testing.T) {
	p := Default()
	for name, want := range map[string]bool{
		"i.redd.it": true, "I.REDD.IT": true, "i.redd.it.": true, "i.redd.it..": false, "redd.it": false,
		"i.redd.it.example.com": false, "xi.redd.it": false, "i.redd.it:443": false, "": false, ".": false,
		" i.redd.it": false,
	} {
		if h, ok := p.Host(name); ok != want || ok && h.Name != "i.redd.it" {
			t.Errorf("Host(%q) = %v, %v; want %v", name, h, ok, want)
		}
	}
	if _, ok := (Policy{}).Host("i.redd.it"); ok {
		t.Error("the zero policy allows a host")
	}
}

func TestStale(t *testing.T) {
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	p := Default()
	for _, tt := range []struct {
		age  time.Duration
		want bool
	}{
		{0, false}, {48 * time.Hour, false}, {48*time.Hour + 1, true}, {-time.Minute, false}, {-5 * time.Minute, false},
		{-5*time.Minute - 1, true},
		{math.MaxInt64, true},
	} {
		if got := p.Stale(now.Add(-tt.age), now); got != tt.want {
			t.Errorf("Stale at age %v = %v, want %v", tt.age, got, tt.want)
		}
	}
	if !p.Stale(time.Time{}, now) {
		t.Error("a post never seen live is not stale")
	}
}

// TestGoneBy: a time that a clock which was ahead wrote gives nobody longer than from now on.
func TestGoneBy(t *testing.T) {
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ ahead, want time.Duration }{
		{-time.Hour, 47 * time.Hour}, {0, 48 * time.Hour}, {ClockSkew, 48*time.Hour + ClockSkew},
		{ClockSkew + 1, 48 * time.Hour}, {100 * time.Hour, 48 * time.Hour},
	} {
		if got := GoneBy(now.Add(tt.ahead), now).Sub(now); got != tt.want {
			t.Errorf("%v ahead: %v, want %v", tt.ahead, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(defaultTOML)
	f.Add("[[images.host]]\nname = 'a.b'\n")
	f.Add("images.host = [{name = 'a.b'}]\nreddit.x = 1")
	f.Add("[reddit]\n'requests_per_minute' = 1e308\n")
	f.Add("[access]\ngrant = 'required'\n")
	f.Add("[reddit]\nreadmit = 'moderator'\n")
	f.Add("[images]\nsuspect_after = 2\n")
	f.Add("[[images.placeholder]]\nname = 'a'\nmeaning = 'b'\nurl = 'a.b/c'\noutcome = 'failed'\nsource = 'd'\n")
	f.Add("[[images.placeholder]]\nformat = 'png'\nwidth = 1\nheight = -1\nsha256 = 'x'\n")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse([]byte(s), "p")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "p") {
				t.Errorf("error without the file: %v", err)
			}
			return
		}
		reversed := p
		reversed.Images.Hosts = slices.Clone(p.Images.Hosts)
		slices.Reverse(reversed.Images.Hosts)
		reversed.Images.Placeholders = slices.Clone(p.Images.Placeholders)
		slices.Reverse(reversed.Images.Placeholders)
		if p.Digest() != reversed.Digest() {
			t.Error("the digest depends on the order of the hosts or placeholders")
		}
	})
}

func TestRequiringGrant(t *testing.T) {
	p, err := Parse(RequiringGrant(), "policy.toml")
	if err != nil || !p.Access.GrantRequired {
		t.Errorf("a grant is not required: %v", err)
	}
}

// TestCautious holds the policy of lists to be at least as careful as the default.
func TestCautious(t *testing.T) {
	c, d := Cautious(), Default()
	for _, h := range c.Images.Hosts {
		own, ok := d.Host(h.Name)
		if !ok || !strings.HasSuffix(h.Name, ".redd.it") || h.RequestsPerSecond > own.RequestsPerSecond ||
			h.Concurrency > own.Concurrency {
			t.Errorf("host %+v, by default %+v", h, own)
		}
	}
	if c.Reddit.RequestsPerMinute > d.Reddit.RequestsPerMinute || c.Reddit.RecheckWithin > d.Reddit.RecheckWithin ||
		c.Reddit.Readmit != ReadmitNever || !c.Text.MaskNames || c.Images.MaxBytes > d.Images.MaxBytes ||
		len(c.Images.Hosts) == 0 {
		t.Errorf("less careful than the default: %+v", c)
	}
	c.Images.Hosts[0].Name = "example.org"
	if Cautious().Images.Hosts[0].Name == "example.org" {
		t.Error("a caller changes the policy of others")
	}
}
