package dump

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// wish wants the pictures of two years of r/somememes on i.redd.it.
func wish(n int) Wish {
	return Wish{Subreddits: []string{"r/SomeMemes"}, From: Month{2018, 4}, To: Month{2019, 12}, N: n, Seed: "1",
		Today: time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC),
		Host:  func(name string) bool { return name == "i.redd.it" }}
}

// line is a submission of June 2018 with a picture, with keys replaced or added as "key: value" says.
func line(id string, changes ...string) string {
	fields := []string{`"id":"` + id + `"`, `"subreddit":"SomeMemes"`, `"created_utc":1528000000`, `"author":"somebody"`,
		`"title":"CANARY"`, `"url":"https://i.redd.it/CANARY.jpg"`, `"is_self":false`}
	for _, c := range changes {
		key, _, _ := strings.Cut(c, ":")
		key = strings.TrimSpace(key)
		fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, key+":") })
		fields = append(fields, c)
	}
	return "{" + strings.Join(fields, ",") + "}\n"
}

// TestFilters: what becomes of each kind of line.
func TestFilters(t *testing.T) {
	candidate := Funnel{Candidates: 1, Chosen: 1}
	for text, want := range map[string]Funnel{
		line("aaaa"): candidate,
		line("aaaa",
			`"subreddit" : "SOMEmemes"`): candidate,
		line("aaaa",
			`"created_utc":"1528000000"`): candidate,
		line("aaaa",
			`"created_utc":1528000000.0`): candidate,
		line("aaaa", `"created_utc":1522540800`): candidate, // 2018-04-01
		line("aaaa", `"created_utc":1577836799`): candidate, // 2019-12-31
		line("aaaa", `"url":""`,
			`"is_gallery":true`): candidate,
		line("aaaa",
			`"url":"https://www.reddit.com/gallery/aaaa"`): candidate,
		line("aaaa", `"url":"https://example.org/"`,
			`"url_overridden_by_dest":"https://i.redd.it/x.png"`): candidate,
		line("aaaa", `"removed_by_category":null`, `"over_18":"odd"`,
			`"gallery_data":[]`): candidate,
		line("aaaa",
			`"subreddit":"others"`): {Other: 1},
		line("aaaa", `"subreddit":"others"`,
			`"crosspost_parent_list":[{"subreddit":"SomeMemes"}]`): {Other: 1},
		line("aaaa", `"subreddit_id":"somememes"`,
			`"subreddit":"x"`): {Other: 1},
		line("aaaa",
			`"created_utc":1522540799`): {Outside: 1},
		line("aaaa",
			`"created_utc":1577836800`): {Outside: 1},
		line("aaaa",
			`"removed_by_category":"moderator"`): {Removed: 1},
		line("aaaa",
			`"author":"[deleted]"`): {Removed: 1},
		line("aaaa",
			`"selftext":"[removed]"`): {Removed: 1},
		line("aaaa",
			`"_meta":{"was_deleted_later":true}`): {Removed: 1},
		line("aaaa",
			`"_meta":{"removal_type":"moderator"}`): {Removed: 1},
		line("aaaa",
			`"_meta":{"was_deleted_later":"true"}`): {Removed: 1},
		line("aaaa",
			`"_meta":{"removal_type":"","was_deleted_later":"False"}`): candidate,
		line("aaaa",
			`"is_video":"true"`): {NoImage: 1},
		line("aaaa",
			`"is_self":0`, `"is_video":"false"`): candidate,
		line("aaaa",
			`"banned_by":"moderators"`): {Removed: 1},
		line("aaaa",
			`"banned_at_utc":1591000099`): {Removed: 1},
		line("aaaa", `"name":"t3_bbbb"`):                        {Damaged: 1, First: 1},
		line("aaaa", `"permalink":"/r/memes/comments/bbbb/x/"`): {Damaged: 1, First: 1},
		line("aaaa", `"name":"t3_AAAA"`,
			`"permalink":"/r/memes/comments/aaaa/x/"`): candidate,
		line("aaaa",
			`"banned_by":true`): {Removed: 1},
		line("aaaa",
			`"removal_reason":"legal"`): {Removed: 1},
		line("aaaa", `"banned_by":null`, `"removal_reason":""`,
			`"removed_by":false`): candidate,
		"\xef\xbb\xbf" +
			line("aaaa"): candidate,
		" " + strings.TrimSpace(line("aaaa")) +
			" \r\n": candidate,
		line("aaaa") + line("bbbb", `"subreddit":"others"`)[:60] +
			"\n": {Lines: 1, Candidates: 1, Chosen: 1, Damaged: 1, First: 2},
		line("aaaa") + "others," + line("bbbb", `"subreddit":"others"`): {Lines: 1, Candidates: 1, Chosen: 1, Damaged: 1,
			First: 2},
		line("aaaa") + "\x00\xff" +
			"\n": {Lines: 1, Candidates: 1,
			Chosen: 1, Damaged: 1, First: 2},
		line("aaaa",
			`"is_self":true`): {NoImage: 1},
		line("aaaa",
			`"removed_by":"moderator"`): {Removed: 1},
		line("aaaa",
			`"title":"[deleted by user]"`): {Removed: 1},
		line("aaaa",
			`"is_video":true`): {NoImage: 1},
		line("aaaa",
			`"url":"https://example.org/i.redd.it"`): {NoImage: 1},
		line("aaaa",
			`"url":"https://notreddit.com/gallery/aaaa"`): {NoImage: 1},
		line("aaaa",
			`"url":"::"`): {NoImage: 1},
		line("aaaa", `"url":"https://i.redd.it/a.MP4?x=1"`): {NoImage: 1},
		line("aaaa", `"url":"https://i.redd.it/a.gifv"`):    {NoImage: 1},
		line("aaaa") + `{"id":"aaaa","created_utc":1522540800,"removed_by_category":"moderator"}` +
			"\n": {Lines: 1, Other: 1, Elsewhere: 1},
		`{"id":"aaaa","author":"[deleted]"}` + "\n" + line("aaaa"): {Lines: 1, Damaged: 1, First: 1, Elsewhere: 1},
		line("not an id"):                    {Damaged: 1, First: 1},
		line("aaaa", `"created_utc":null`):   {Damaged: 1, First: 1},
		line("aaaa", `"created_utc":"soon"`): {Damaged: 1, First: 1},
		line("aaaa", `"created_utc":1e300`):  {Damaged: 1, First: 1},
		line("aaaa")[:60] +
			"\n": {Damaged: 1, First: 1},
		"\n  \n" +
			line("x")[:40]: {Damaged: 1,
			First: 3},
		line("aaaa", `"removed_by_category":"deleted"`) +
			line("aaaa"): {Lines: 1, Removed: 1, Elsewhere: 1},
		line("aaaa") + line("aaaa", `"removed_by_category":"deleted"`): {Lines: 1, Removed: 1, Elsewhere: 1},
		line("aaaa") + line("AAAA") + line("t3_aaaa", `"title":"[removed]"`) +
			line("aaaa"): {Lines: 3, Removed: 1, Elsewhere: 3},
		line("aaaa") + line("aaaa", `"banned_by":"x"`,
			`"created_utc":null`): {Lines: 1, Damaged: 1, First: 2, Elsewhere: 1},
		line("aaaa") + line("aaaa", `"banned_by":"x"`,
			`"created_utc":1577836800`): {Lines: 1, Outside: 1, Elsewhere: 1},
		line("aaaa", `"url":"https://x.example/"`) +
			line("aaaa"): {Lines: 1, NoImage: 1, Candidates: 1,
			Chosen: 1},
		line("aaaa",
			`"selftext":"[ Removed by Reddit ]"`): {Removed: 1},
		line("aaaa", `"selftext":"[ Removed by Reddit on account of violating the `+
			`[content policy](/help/contentpolicy). ]"`): {Removed: 1},
		line("aaaa",
			`"title":" [Deleted] "`): {Removed: 1},
		line("aaaa",
			`"selftext":"\\[deleted\\]"`): {Removed: 1},
		line("aaaa",
			`"removed":true`): {Removed: 1},
		line("aaaa",
			`"spam":true`): {Removed: 1},
		line("aaaa",
			`"deleted":true`): {Removed: 1},
		line("aaaa", `"removed":false`, `"spam":null`,
			`"deleted":0`): candidate,
		line("aaaa",
			`"title":"[removed] a mod said"`): candidate,
		strings.Replace(line("aaaa"), "}", `,"removed_by_category":"moderator","removed_by_category":null}`,
			1): {Damaged: 1, First: 1},
		line("aaaa",
			`"crosspost_parent_list":[{"author":"a","title":"t","removed_by_category":null}]`): candidate,
		line("aaaa", `"name":"t3_aaaa"`, `"link_id":null`, `"parent_id":""`,
			`"body":null`): candidate,
		line("aaaa",
			`"permalink":"/r/SomeMemes/comments/aaaa/a_title/"`): candidate,
		line("aaaa") +
			line("aaaa"): {Lines: 1,
			Candidates: 1, Chosen: 1, Twice: 1},
		"": {Lines: -1},
	} {
		c := New(wish(0))
		want.Lines++
		none := want.Lines == want.Damaged
		if err := c.Read(strings.NewReader(text)); none != errors.Is(err, ErrNoDump) || !none && err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, c.Funnel); diff != "" {
			t.Errorf("%s(-want +got):\n%s", text, diff)
		}
	}
}

// TestOfNone: a line that names no subreddit, in whichever way, is of none: it is no candidate, and what it says is
// removed is removed. A line of another subreddit than those that are wanted says nothing.
func TestOfNone(t *testing.T) {
	for how, of := range map[string]struct {
		subreddit string
		counts    bool
	}{
		"no key":                          {``, true},
		"null":                            {`"subreddit":null,`, true},
		"empty":                           {`"subreddit" : "",`, true},
		"blank":                           {`"subreddit":"\u0020 \t",`, true},
		"spaces":                          {`"subreddit": "  ",`, true},
		"a list":                          {`"subreddit":[],`, true},
		"a word of another field":         {`"post_hint":"subreddit",`, true},
		"only the post that it shows":     {`"crosspost_parent_list":[{"subreddit":"others"}],`, true},
		"the wanted":                      {`"subreddit":"somememes",`, true},
		"the wanted, with escapes":        {`"subreddit":"some\u006demes",`, true},
		"another":                         {`"subreddit":"others",`, false},
		"another, and shows the wanted":   {`"crosspost_parent_list":[{"subreddit":"somememes"}],"subreddit":"others",`, false},
		"a profile":                       {`"subreddit":"u_somebody",`, false},
		"a profile that shows no forum's": {`"subreddit":"u_somebody","crosspost_parent_list":[{"subreddit":null}],`, false},
	} {
		removed := "{" + of.subreddit + `"id":"aaaa","created_utc":1528000000,"removed_by_category":"moderator"}` + "\n"
		live := "{" + of.subreddit + `"id":"bbbb","created_utc":1528000000,"url":"https://i.redd.it/a.jpg"}` + "\n"
		for order, text := range map[string]string{
			"before": removed + live + line("aaaa") + line("cccc"), "after": line("aaaa") + line("cccc") + live + removed,
		} {
			c := New(wish(0))
			testkit.OK(t, c.Read(strings.NewReader(text)))
			want := Funnel{Lines: 4, Other: 2, Candidates: 2, Chosen: 2}
			switch {
			case strings.HasPrefix(how, "the wanted"):
				want = Funnel{Lines: 4, Removed: 1, Elsewhere: 1, Candidates: 2, Chosen: 2}
			case of.counts:
				want = Funnel{Lines: 4, Other: 2, Elsewhere: 1, Candidates: 1, Chosen: 1}
			}
			testkit.Same(t, how+", "+order, want, c.Funnel)
		}
	}
}

// TestFirstThatFits: each line is counted in the first filter that does not let it pass, in whichever order the lines
// of a post come.
func TestFirstThatFits(t *testing.T) {
	lines := []string{line("aaaa"), line("aaaa"), line("aaaa", `"is_self":true`), line("aaaa", `"url":"::"`),
		line("aaaa", `"author":"[deleted]"`), line("aaaa", `"created_utc":1522540799`), line("aaaa", `"subreddit":"x"`),
		line("bbbb"), line("bbbb"), line("bbbb", `"is_self":true`)}
	want := Funnel{Lines: 10, Other: 1, Outside: 1, Removed: 1, Elsewhere: 4, NoImage: 1, Twice: 1, Candidates: 1,
		Chosen: 1}
	for range 50 {
		rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		c := New(wish(0))
		testkit.OK(t, c.Read(strings.NewReader(strings.Join(lines, ""))))
		testkit.Same(t, strings.Join(lines, ""), want, c.Funnel)
	}
}

// TestReadFaults: what is cut, packed wrongly or made of comments.
func TestReadFaults(t *testing.T) {
	body := strings.Repeat(line("aaaa")+line("bbbb"), 100)
	packed := pack(t, body)
	long := line("cccc", `"selftext":"`+strings.Repeat("x", maxLine)+`"`)
	for name, tt := range map[string]struct {
		dump       []byte
		want       string // of the error
		candidates int
		damaged    int
	}{
		"packed":            {packed, "", 2, 0},
		"a window of 2 GiB": {wide(t, packed), "", 2, 0},
		"cut off":           {packed[:len(packed)-9], "after line 0", 0, 0},
		"a spoilt beginning": {append([]byte("\x28\xb5\x2f\xfd"), "nonsense"...),
			"the packed file cannot be read", 0, 0},
		"comments": {[]byte(line("aaaa") + line("dddd", `"link_id":"t3_aaaa"`)),
			"line 2: it has comments", 1, 0},
		"an id of a comment": {[]byte(line("aaaa") + line("eebbqej")), "line 2: it has comments", 1, 0},
		"a fullname":         {[]byte(line("aaaa") + line("t1_dddd")), "line 2: it has comments", 1, 0},
		"a name":             {[]byte(line("dddd", `"name":"t1_dddd"`)), "line 1: it has comments", 0, 0},
		"a comment's parent": {[]byte(line("dddd", `"parent_id":"t3_aaaa"`)), "line 1: it has comments", 0, 0},
		"a comment's text":   {[]byte(line("dddd", `"body":"CANARY"`)), "line 1: it has comments", 0, 0},
		"a comment's address": {[]byte(line("dddd", `"permalink":"/r/x/comments/aaaa/_/dddd/"`)),
			"line 1: it has comments", 0, 0},
		"a post that is too new": {[]byte(line("zzzzzz") + line("2zzzzzz")), "line 2: it has comments", 1, 0},
		"byte order mark":        {[]byte("\ufeff" + line("aaaa")), "", 1, 0},
		"one that is packed":     {pack(t, "\ufeff"+line("aaaa")), "", 1, 0},
		"a line of 16 MiB":       {[]byte(long + line("aaaa")), "", 1, 1},
		"a table":                {[]byte("id,subreddit\naaaa,somememes\n"), "not a dump of submissions", 0, 2},
		"bytes":                  {[]byte("\x00\x01\n\xff\n"), "not a dump of submissions", 0, 2},
		"nothing":                {nil, "not a dump of submissions", 0, 0},
	} {
		c := New(wish(0))
		err := c.Read(bytes.NewReader(tt.dump))
		if tt.want == "" && err != nil || tt.want != "" &&
			(err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "CANARY")) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if c.Funnel.Candidates != tt.candidates || c.Funnel.Damaged != tt.damaged {
			t.Errorf("%s: %+v", name, c.Funnel)
		}
	}
	everywhere := New(Wish{Host: wish(0).Host})
	if err := everywhere.Read(strings.NewReader(line("aaaa") + line("bbbb", `"subreddit":"u_somebody"`) + line("cccc",
		`"subreddit":"=1+1"`))); err != nil {
		t.Fatal(err)
	}
	if got := everywhere.Chosen(); len(got) != 1 || got[0].ID != "aaaa" || everywhere.Funnel.Other != 2 {
		t.Errorf("of all subreddits and profiles: %v, %+v", got, everywhere.Funnel)
	}
	broken := errors.New("the disk is gone")
	if err := New(wish(0)).Read(&failing{strings.NewReader(body), broken}); !errors.Is(err, broken) {
		t.Errorf("an error of the disk is told as %v", err)
	}
}

type failing struct {
	*strings.Reader
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	if err != nil {
		err = f.err
	}
	return n, err
}

// pack writes one zstd frame with a window, as the program does.
func pack(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithSingleSegment(false))
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wide makes the window of a frame 2 GiB: its descriptor is the byte behind magic and flags (RFC 8878, 3.1.1.1.2).
func wide(t testing.TB, packed []byte) []byte {
	t.Helper()
	if packed[4]&0x20 != 0 {
		t.Fatal("the frame has no window")
	}
	packed = bytes.Clone(packed)
	packed[5] = 0xA8
	return packed
}

// TestChosen: the choice does not depend on the order of lines, and the first of many are the choice of few.
func TestChosen(t *testing.T) {
	var lines []string
	for i := range 300 {
		lines = append(lines, line(fmt.Sprintf("a%dz", 100+i)))
	}
	choose := func(n int) (ids []manifest.PostID) {
		rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		c := New(wish(n))
		if err := c.Read(strings.NewReader(strings.Join(lines, ""))); err != nil {
			t.Fatal(err)
		}
		for _, one := range c.Chosen() {
			if one.Month != (Month{2018, 6}) || one.Subreddit != "somememes" {
				t.Errorf("%+v is chosen", one)
			}
			ids = append(ids, one.ID)
		}
		if c.Funnel.Candidates != 300 || c.Funnel.Chosen != len(ids) {
			t.Errorf("of 300 lines, %d chosen: %+v", len(ids), c.Funnel)
		}
		return ids
	}
	all, few := choose(0), choose(20)
	if len(all) != 300 || !cmp.Equal(all[:20], few) {
		t.Errorf("of %d, %v are chosen; 20 are %v", len(all), all[:20], few)
	}
	if got := Sample(all, 20, "1"); !cmp.Equal(got, few) {
		t.Errorf("the sample is %v, want %v", got, few)
	}
	if got := Sample(all, 400, "2"); len(got) != 300 || cmp.Equal(got, all) {
		t.Errorf("another seed gives %d posts", len(got))
	}
}

// TestRemovedAmongMany: a post that was among the chosen, and turns out to be removed, gives its place to the next one.
func TestRemovedAmongMany(t *testing.T) {
	c := New(wish(2))
	text := ""
	for _, id := range []string{"aaaa", "bbbb", "cccc", "dddd"} {
		text += line(id)
	}
	testkit.OK(t, c.Read(strings.NewReader(text)))
	all := New(wish(0))
	testkit.OK(t, all.Read(strings.NewReader(text)))
	order := all.Chosen()
	testkit.OK(t, c.Read(strings.NewReader(line(string(order[0].ID), `"author":"[deleted]"`))))
	testkit.Same(t, "chosen", order[1:3], c.Chosen())
	testkit.Same(t, "counts", Funnel{Lines: 5, Removed: 1, Elsewhere: 1, Candidates: 3, Chosen: 2}, c.Funnel)
}

func TestParseMonth(t *testing.T) {
	for _, bad := range []string{"", "2018", "2018-4", "2018-13", "2018-04-01", "April 2018"} {
		if m, err := ParseMonth(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, m)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(line("aaaa") + line("bbbb", `"subreddit":"others"`)))
	f.Add([]byte(`"subreddit":"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := New(wish(1))
		if err := c.Read(bytes.NewReader(body)); err != nil {
			return
		}
		n := c.Funnel
		if n.Lines != n.Damaged+n.Other+n.Outside+n.Removed+n.Elsewhere+n.NoImage+n.Twice+n.Candidates {
			t.Errorf("%+v does not add up", n)
		}
	})
}

// BenchmarkRead reads lines of which one in a hundred is wanted.
func BenchmarkRead(b *testing.B) {
	text := `"selftext":"` + strings.Repeat("some words ", 200) + `"`
	body := []byte(line("aaaa", text) + strings.Repeat(line("bbbb", `"subreddit":"others"`, text), 99))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := New(wish(0)).Read(bytes.NewReader(body)); err != nil {
			b.Fatal(err)
		}
	}
}
