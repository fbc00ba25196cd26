package reddit

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/secret"
	"rehydrate/manifest"
	"rehydrate/policy"
)

func TestAsk(t *testing.T) {
	var asked *http.Request
	s := api(func(_ int, r *http.Request) answer {
		asked = r
		all := listingOf(thing("c3", ""), thing("a1", ""), thing("x9", ""), thing("a1", ""))
		return reply(200, all+strings.Repeat(" ", maxInfoBody-len(all))) // as long as it may be
	})
	a, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1", "b2", "c3", "a1"))
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	post := func(id string) Post {
		return Post{Facts: policy.Facts{RobotIndexable: &yes, HasMedia: true}, Subreddit: "memes",
			Images: []Candidate{{URL: "https://i.redd.it/" + id + ".png", Host: "i.redd.it"}}}
	}
	want := Answer{Posts: map[manifest.PostID]Post{"a1": post("a1"), "c3": post("c3")}, Absent: ids("b2"),
		Unclear: map[manifest.PostID]manifest.Reason{}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("Ask (-want +got):\n%s", diff)
	}
	if got := asked.URL.String(); got != "https://oauth.reddit.com/api/info?id=t3_a1,t3_b2,t3_c3&raw_json=1" {
		t.Errorf("asked %s", got)
	}
	if got := asked.Header.Get("User-Agent"); !strings.HasSuffix(got, ":rehydrate:1.2.3 (by /u/some_body)") ||
		strings.HasPrefix(got, ":") {
		t.Errorf("User-Agent %q", got)
	}
}

func TestAskIDs(t *testing.T) {
	s := api(func(int, *http.Request) answer { return reply(200, listing("a0")) })
	c := s.client(t, testOptions())
	many := make([]manifest.PostID, 101)
	for i := range many {
		many[i] = manifest.PostID(fmt.Sprintf("a%d", i))
	}
	for name, bad := range map[string][]manifest.PostID{
		"none": nil, "101": many, "two in one": ids("a1,t3_b2"), "a query": ids("a1&x=y"), "with prefix": ids("t3_a1"),
		"upper case": ids("A1"), "empty": ids(""),
	} {
		if _, err := c.Ask(t.Context(), bad); err == nil {
			t.Errorf("%s: Ask succeeded", name)
		}
	}
	if len(s.seen) != 0 {
		t.Errorf("%d requests were made for bad ids", len(s.seen))
	}
	if a, err := c.Ask(t.Context(), many[:100]); err != nil || len(a.Absent) != 99 {
		t.Errorf("exactly 100 ids: %d absent, %v", len(a.Absent), err)
	}
}

// TestUnanswered: an answer that is not well formed gives no verdict.
func TestUnanswered(t *testing.T) {
	whole := listing("a1", "b2")
	for _, tt := range []struct {
		name   string
		answer answer
		want   manifest.Reason
	}{
		{"html by its type", reply(200, whole, "Content-Type", "text/html; charset=utf-8"), "html"},
		{"without its last brace", reply(200, whole[:len(whole)-1]), "truncated_json"},
		{"empty", reply(200, ""), "truncated_json"},
		{"two documents", reply(200, whole+whole), "bad_json"},
		{"an array", reply(200, "[]"), "not_a_listing"},
		{"null", reply(200, "null"), "not_a_listing"},
		{"no children", reply(200, `{"kind":"Listing","data":{}}`), "not_a_listing"},
		{"children of another type", reply(200, `{"kind":"Listing","data":{"children":{}}}`), "not_a_listing"},
		{"empty listing", reply(200, listingOf()), "empty_listing"},
		{"fewer than announced", reply(200, strings.Replace(whole, `"dist":1`, `"dist":3`, 1)), "cut_listing"},
		{"others only", reply(200, listing("x1", "x2")), "none_asked"},
		{"comments only", reply(200, listingOf(`{"kind":"t1","data":{"id":"a1"}}`)), "none_asked"},
		{"204", reply(204, ""), "http_204"},
		{"403 that stays a rate limit", reply(403, "<html>", "Retry-After", "0"), "http_403"},
	} {
		s := api(func(int, *http.Request) answer { return tt.answer })
		a, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1", "b2"))
		if noAnswer(err) != tt.want || len(a.Posts)+len(a.Absent)+len(a.Unclear) != 0 {
			t.Errorf("%s: Ask = %+v, %v; want Unanswered %s and nothing else", tt.name, a, err, tt.want)
		}
	}
}

func TestDenied(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		want   manifest.Reason
		says   string
	}{
		{"blocked", reply(403, "<html><title>Blocked</title><p>whoa\x1b[31m there \u202e</p>"), "blocked",
			"blocked: it answered with status 403;"},
		{"blocked by network security", reply(403, "<!doctype html>You've been blocked by network security."), "blocked",
			"this client or network"},
		{"administrative rules",
			reply(403, "<html><body><h1>403 Forbidden</h1>\nRequest forbidden by administrative rules.\n</body></html>"),
			"blocked", "this client or network"},
		{"scope", reply(403, `{"message":"Forbidden"}`, "WWW-Authenticate",
			`Bearer realm="reddit", error="insufficient_scope"`), "insufficient_scope", "scope read"},
		{"private", reply(403, `{"reason":"private","message":"Forbidden","error":403}`), "forbidden",
			"forbidden: it answered with status 403;"},
		{"401 for ever", reply(401, strings.Repeat("<html>x", 5000)), "unauthorized", "just given out"},
	} {
		s := api(func(int, *http.Request) answer { return tt.answer })
		_, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1"))
		var denied *Denied
		if !errors.As(err, &denied) || denied.Reason != tt.want || denied.Hint == "" ||
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: Ask = %v, want Denied %s that says %q", tt.name, err, tt.want, tt.says)
		}
		if err != nil && (len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\x1b\n\u202e")) {
			t.Errorf("%s: the error is long or holds control characters: %q", tt.name, err)
		}
		if len(s.seen) > 4 {
			t.Errorf("%s: %d requests", tt.name, len(s.seen))
		}
	}
}

// TestOddThings: trouble with one thing leaves that one without a verdict, and says nothing of
// the others, except that a thing without a name may be any that is missing.
func TestOddThings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		posts string          // found, of a1 and b2
		want  manifest.Reason // why b2 is unclear, "" = absent
		more  []string        // things beside a1
	}{
		{"number for a category", "a1", "malformed_thing", []string{thing("b2", `"removed_by_category":5`)}},
		{"list for an author", "a1", "malformed_thing", []string{thing("b2", `"author":[]`)}},
		{"no author", "a1", "malformed_thing", []string{`{"kind":"t3","data":{"id":"b2"}}`}},
		{"malformed, then sound", "a1", "malformed_thing", []string{thing("b2", `"author":1`), thing("b2", "")}},
		{"sound, then malformed", "a1", "malformed_thing", []string{thing("b2", ""), thing("b2", `"author":1`)}},
		{"live and removed", "a1", "contradiction",
			[]string{thing("b2", ""), thing("b2", `"removed_by_category":"moderator"`)}},
		{"twice the same", "a1 b2", "", []string{thing("b2", ""), thing("b2", "")}},
		{"nameless", "a1", "missing_beside_malformed", []string{`{"kind":"t3","data":{}}`}},
		{"two names", "a1", "missing_beside_malformed", []string{strings.Replace(thing("b2", ""), "t3_b2", "t3_c3", 1)}},
		{"null", "a1", "missing_beside_malformed", []string{"null"}},
		{"comment with the id", "a1", "", []string{`{"kind":"t1","data":{"id":"b2"}}`}},
		{"post called a comment", "a1", "missing_beside_malformed",
			[]string{strings.Replace(thing("b2", ""), `"t3"`, `"t1"`, 1)}},
		{"post of another kind", "a1", "missing_beside_malformed",
			[]string{strings.Replace(thing("b2", ""), `"t3"`, `"T3"`, 1)}},
		{"malformed media only", "a1 b2", "", []string{thing("b2", `"gallery_data":7`)}},
	} {
		s := api(func(int, *http.Request) answer { return reply(200, listingOf(append(tt.more, thing("a1", ""))...)) })
		a, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1", "b2"))
		found := slices.Sorted(maps.Keys(a.Posts))
		absent := tt.want == "" && tt.posts == "a1"
		if err != nil || !slices.Equal(found, ids(strings.Fields(tt.posts)...)) || a.Unclear["b2"] != tt.want ||
			slices.Equal(a.Absent, ids("b2")) != absent {
			t.Errorf("%s: Ask = %+v, %v", tt.name, a, err)
		}
	}
	s := api(func(int, *http.Request) answer { return reply(200, listingOf(thing("b2", `"author":1`))) })
	a, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1", "b2"))
	want := map[manifest.PostID]manifest.Reason{"a1": "missing_beside_malformed", "b2": "malformed_thing"}
	if err != nil || !cmp.Equal(a.Unclear, want) {
		t.Errorf("malformed alone: Ask = %+v, %v", a, err)
	}
}

func TestFactsOfModeratorFields(t *testing.T) {
	for more, want := range map[string]bool{
		`"banned_by":null`: false, `"banned_by":false`: false, `"banned_by":""`: false,
		`"removed":false,"spam":false`: false,
		`"banned_by":true`:             true, `"banned_by":"somebody"`: true, `"removed_by":"somebody"`: true,
		`"removed_by":null`: false,
		`"removed":true`:    true, `"spam":true`: true,
	} {
		f, _, err := readFacts(json.RawMessage(`{"author":"x",` + more + `}`))
		if err != nil || f.ModRemoved != want {
			t.Errorf("%s: ModRemoved = %v, %v; want %v", more, f.ModRemoved, err, want)
		}
	}
	// Whatever else it is, an answer of a type that Reddit never sends erases nothing.
	for _, wrong := range []string{
		`"removed":"false"`, `"removed":"true"`, `"removed":0`, `"removed":1`, `"removed":{}`, `"spam":"false"`,
		`"spam":[]`,
		`"banned_by":{}`, `"banned_by":1`, `"banned_by":[]`, `"removed_by":0`, `"removed_by":{"name":"x"}`,
		`"removed_by_category":false`, `"removed_by_category":["moderator"]`, `"removal_reason":true`, `"title":1`,
		`"selftext":{}`,
		`"is_robot_indexable":"false"`, `"quarantine":"true"`, `"subreddit":1`,
	} {
		f, _, err := readFacts(json.RawMessage(`{"author":"x",` + wrong + `}`))
		if err == nil {
			t.Errorf("%s is read as %+v, want an error", wrong, f)
		}
	}
}

func TestToken(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		denied bool
		want   manifest.Reason
	}{
		{"bad credentials", reply(401, `{"message":"Unauthorized","error":401}`, "WWW-Authenticate",
			`Basic realm="reddit"`), true, "bad_credentials"},
		{"bad request", reply(400, ""), true, "bad_credentials"},
		{"oauth error in a 200", reply(200, `{"error":"unauthorized_client"}`), true, "unauthorized_client"},
		{"with a description", reply(200, `{"error":"invalid_request","error_description":"bad device_id"}`), true,
			"invalid_request"},
		{"error number", reply(200, `{"error":401}`), true, "oauth_error"},
		{"error with a token",
			reply(200, `{"error":"invalid_scope","access_token":"x","token_type":"bearer","expires_in":1}`), true,
			"invalid_scope"},
		{"blocked", reply(403, "<html>Blocked"), true, "blocked"},
		{"default client", reply(429, `{"message": "Too Many Requests", "error": 429}`), false, "token_http_429"},
		{"server error", reply(503, ""), false, "token_http_503"},
		{"html", reply(200, "<html>"), false, "token_malformed"},
		{"empty object", reply(200, "{}"), false, "token_malformed"},
		{"no life", reply(200, `{"access_token":"x","token_type":"bearer","expires_in":0}`), false, "token_malformed"},
		{"a life in words", reply(200, `{"access_token":"x","token_type":"bearer","expires_in":"soon"}`), false,
			"token_malformed"},
		{"another type", reply(200, `{"access_token":"x","token_type":"mac","expires_in":3600}`), false, "token_malformed"},
		{"header in the token", reply(200, `{"access_token":"x\r\nX-Y: z","token_type":"bearer","expires_in":3600}`),
			false, "token_malformed"},
		{"endless token", reply(200, `{"access_token":"`+strings.Repeat("x",
			maxToken+1)+`","token_type":"bearer","expires_in":3600}`), false, "token_malformed"},
		{"too large", reply(200, strings.Repeat(" ", maxTokenBody+1)), false, "too_large"},
		{"broken connection", answer{err: errors.New("reset")}, false, "connection"},
	} {
		s := &script{play: func(int, *http.Request) answer { return tt.answer }}
		_, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1"))
		denied, ok := errors.AsType[*Denied](err)
		if ok != tt.denied || ok && (denied.Reason != tt.want || denied.Hint == "") || !ok && noAnswer(err) != tt.want {
			t.Errorf("%s: Ask = %v, want %s", tt.name, err, tt.want)
		}
		for _, r := range s.seen {
			if r.host != tokenHost || r.req.Method != http.MethodPost {
				t.Errorf("%s: asked %s %s", tt.name, r.req.Method, r.req.URL)
			}
		}
	}
}

// TestTokenLife: a life in quotes counts as it is, and one that is not named is an hour.
func TestTokenLife(t *testing.T) {
	for life, want := range map[string]int{`,"expires_in":"600"`: 2, `,"expires_in":null`: 1, "": 1} {
		bubble(t, life, func(t *testing.T) {
			tokens, s := 0, api(func(int, *http.Request) answer { return reply(200, listing("a1")) })
			play := s.play
			s.play = func(n int, r *http.Request) answer {
				if r.URL.Hostname() != tokenHost {
					return play(n, r)
				}
				tokens++
				return reply(200, `{"access_token":"x","token_type":"bearer"`+life+`}`)
			}
			c := s.client(t, testOptions())
			mustAsk(t, c)
			time.Sleep(15 * time.Minute)
			mustAsk(t, c)
			if tokens != want {
				t.Errorf("%d tokens in 15 minutes, want %d", tokens, want)
			}
		})
	}
}

// TestNoName: where not even the first name resolves, the run ends, and says what to look at.
func TestNoName(t *testing.T) {
	s := &script{play: func(int, *http.Request) answer { return answer{err: &net.DNSError{Err: "no such host"}} }}
	_, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1"))
	if !is[*Unreachable](err) || !strings.Contains(err.Error(), "name service") || len(s.seen) != 1+retries {
		t.Errorf("Ask = %v after %d requests", err, len(s.seen))
	}
}

// countedTokens is a Reddit whose tokens are token-1, token-2, ..., each good for so many seconds.
func countedTokens(t *testing.T, life *int, rejected *string) (s *script, tokens *int) {
	tokens = new(int)
	return &script{play: func(_ int, r *http.Request) answer {
		if r.URL.Hostname() == tokenHost {
			*tokens++
			return reply(200, fmt.Sprintf(`{"access_token":"token-%d","token_type":"Bearer","expires_in":%d}`, *tokens,
				*life))
		}
		if got := r.Header.Get("Authorization"); got == *rejected {
			return reply(401, strings.Repeat("<html>who goes there?", 1700), "Content-Type", "text/html")
		} else if want := fmt.Sprintf("bearer token-%d", *tokens); got != want {
			t.Errorf("Authorization %q, want %q", got, want)
		}
		return reply(200, listing("a1"))
	}}, tokens
}

// TestTokenExpires: a token of either of the lives that were recorded is renewed before its
// end, and once when Reddit ends it early.
func TestTokenExpires(t *testing.T) {
	for _, life := range []time.Duration{time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			seconds, rejected := int(life.Seconds()), ""
			s, tokens := countedTokens(t, &seconds, &rejected)
			c := s.client(t, testOptions())
			ask := func(want int, when string) {
				t.Helper()
				mustAsk(t, c)
				if *tokens != want {
					t.Errorf("%s: %d tokens were asked for, want %d", when, *tokens, want)
				}
			}
			ask(1, "at first")
			time.Sleep(life - 2*time.Minute)
			ask(1, "two minutes early")
			time.Sleep(time.Minute + time.Second)
			ask(2, "in the last minute")
			rejected = "bearer token-2"
			ask(3, "after an early end")
			ask(3, "after that")
		})
	}
}

// TestTokenEndsInTheWait: the wait for a turn can outlive the token; the request then goes
// out with a new one, and never without.
func TestTokenEndsInTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, rejected := 3600, ""
		s, tokens := countedTokens(t, &life, &rejected)
		o := testOptions()
		o.Policy.Reddit.RequestsPerMinute = 0.1 // one in 10 min
		c := s.client(t, o)
		for range 8 { // the seventh waits from the 60th minute to the 70th
			mustAsk(t, c)
		}
		if *tokens != 2 {
			t.Errorf("%d tokens were asked for, want 2", *tokens)
		}
		c.token.keep(secret.Secret{}, 0)
		life = 300 // none lives until its turn
		before, start := len(s.times(apiHost, time.Now())), time.Now()
		_, err := c.Ask(t.Context(), ids("a1"))
		if noAnswer(err) != "token_expired" || len(s.times(apiHost, time.Now())) != before {
			t.Errorf("Ask = %v, want Unanswered token_expired and no request to the API", err)
		}
		if d := time.Since(start); d > time.Hour { // three tries of two turns each, no repetitions
			t.Errorf("it took %v", d)
		}
	})
}

// TestCredentialsStayHome: each credential goes to its one host, and neither they nor an author's name come
// out anywhere, whatever fails.
func TestCredentialsStayHome(t *testing.T) {
	var b strings.Builder
	image, basic := string(pngBytes(t)), base64.StdEncoding.EncodeToString([]byte("client-id:"+canarySecret))
	want := map[string]string{tokenHost: "Basic " + basic, apiHost: "bearer " + canaryToken}
	for _, odd := range []answer{
		{}, reply(401, "no"), reply(403, "<html>Blocked"), reply(200, "<html>"+canaryName), reply(500, "x"),
		reply(429, ""), reply(200, "{"), reply(200, listingOf(thing("a1", `"author":1`))), {err: errors.New("broken")},
		reply(302, "", "Location", "https://i.imgur.com/b.png"),
	} {
		s := &script{play: func(n int, r *http.Request) answer {
			host, h := r.URL.Hostname(), r.Header
			if h.Get("Authorization") != want[host] || h.Get("Cookie") != "" || h.Get("Referer") != "" {
				t.Errorf("%s got %v", host, h)
			}
			switch {
			case odd.err != nil && n == 0, odd.status != 0 && (host == apiHost && odd.status != 302 || host == "i.redd.it"):
				return odd
			case host == tokenHost:
				return tokenReply(3600)
			case host == apiHost:
				return reply(200, listing("a1"))
			}
			return reply(200, image, "Set-Cookie", "a=b")
		}}
		c := s.client(t, logged(testOptions(), &b))
		a, err := c.Ask(t.Context(), ids("a1"))
		fmt.Fprintf(&b, "%+v %v %#v\n", a, err, err)
		d, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a1.png"})
		fmt.Fprintf(&b, "%v %v %#v\n%+v\n", d.Info, err, err, c)
	}
	for _, secret := range []string{canarySecret, canaryToken, canaryName, basic} {
		if i := strings.Index(b.String(), secret); i >= 0 {
			t.Errorf("%q came out: ...%s", secret, b.String()[max(0, i-200):i+60])
		}
	}
	if !strings.Contains(b.String(), "trying again") {
		t.Error("nothing was logged")
	}
}

// TestPolicyNamesTheAPI: a policy that names Reddit's own hosts as image hosts does not
// get at the credentials.
func TestPolicyNamesTheAPI(t *testing.T) {
	o := imgurOptions()
	for _, host := range []string{apiHost, tokenHost} {
		o.Policy.Images.Hosts = append(o.Policy.Images.Hosts,
			policy.Host{Name: host, RequestsPerSecond: 1e6, Concurrency: 1})
	}
	s := api(func(int, *http.Request) answer { return reply(200, listing("a1")) })
	c := s.client(t, o)
	mustAsk(t, c)
	before := len(s.seen)
	for _, url := range []string{"https://oauth.reddit.com/a.png", "https://www.reddit.com/a.png"} {
		if _, err := c.Download(t.Context(), Candidate{URL: url}); err == nil {
			t.Errorf("%s was downloaded", url)
		}
	}
	for _, r := range s.seen[before:] {
		if r.req.Header.Get("Authorization") != "" {
			t.Errorf("%s got credentials", r.req.URL)
		}
	}
	// The last gate of each stack, should a caller ever fail to check.
	for url, authorize := range map[string]func(*http.Request) error{
		"https://i.redd.it/a.png": c.toReddit, "http://i.redd.it/a.png": nil,
		"https://i.redd.it:8443/a.png": nil, "https://u:p@oauth.reddit.com": c.toReddit,
		"https://i.imgur.com/a.png":      c.toImgur,
		"http://api.imgur.com/3/image/a": c.toImgur, "https://api.imgur.com.evil.example/": c.toImgur,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := (identified{c, s, authorize}).RoundTrip(req); !errors.Is(err, errForbidden) {
			t.Errorf("%s: %v, %v; want it forbidden", url, resp, err)
		}
	}
	req := s.seen[len(s.seen)-1].req.Clone(t.Context())
	req.Header = http.Header{}
	if _, err := (identified{c, s, c.toReddit}).RoundTrip(req); err != nil || len(req.Header) > 0 {
		t.Errorf("the request itself got %v, %v", req.Header, err)
	}
}
