package reddit

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/policy"
)

func TestLook(t *testing.T) {
	var asked *http.Request
	s := api(func(_ int, r *http.Request) answer {
		asked = r
		return reply(200, listingOf(thing("c3", ""), thing("a1", ""), thing("x9", ""), thing("a1", "")))
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
	want := Answer{Posts: map[manifest.PostID]Post{"a1": post("a1"), "c3": post("c3")}, Absent: ids("b2"), Unclear: map[manifest.PostID]manifest.Reason{}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("Ask (-want +got):\n%s", diff)
	}
	if got := asked.URL.String(); got != "https://oauth.reddit.com/api/info?id=t3_a1,t3_b2,t3_c3&raw_json=1" {
		t.Errorf("asked %s", got)
	}
	if got := asked.Header.Get("User-Agent"); !strings.HasSuffix(got, ":rehydrate:1.2.3 (by /u/some_body)") || strings.HasPrefix(got, ":") {
		t.Errorf("User-Agent %q", got)
	}
}

func TestLookIDs(t *testing.T) {
	s := api(func(int, *http.Request) answer { return reply(200, listing("a0")) })
	c := s.client(t, testOptions())
	many := make([]manifest.PostID, 101)
	for i := range many {
		many[i] = manifest.PostID(fmt.Sprintf("a%d", i))
	}
	for name, bad := range map[string][]manifest.PostID{
		"none": nil, "101": many, "two in one": ids("a1,t3_b2"), "a query": ids("a1&x=y"), "with prefix": ids("t3_a1"), "upper case": ids("A1"), "empty": ids(""),
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

// TestLookUnanswered: an answer that is not well formed gives no verdict.
func TestLookUnanswered(t *testing.T) {
	whole := listing("a1", "b2")
	for _, tt := range []struct {
		name   string
		answer answer
		want   manifest.Reason
	}{
		{"html with 200", reply(200, "<html><body>hello"), "html"},
		{"html by its type", reply(200, whole, "Content-Type", "text/html; charset=utf-8"), "html"},
		{"without its last brace", reply(200, whole[:len(whole)-1]), "truncated_json"},
		{"empty", reply(200, ""), "truncated_json"},
		{"two documents", reply(200, whole+whole), "bad_json"},
		{"an array", reply(200, "[]"), "not_a_listing"},
		{"null", reply(200, "null"), "not_a_listing"},
		{"another kind", reply(200, `{"kind":"more","data":{"children":[]}}`), "not_a_listing"},
		{"no children", reply(200, `{"kind":"Listing","data":{}}`), "not_a_listing"},
		{"null children", reply(200, `{"kind":"Listing","data":{"children":null}}`), "not_a_listing"},
		{"children of another type", reply(200, `{"kind":"Listing","data":{"children":{}}}`), "not_a_listing"},
		{"empty listing", reply(200, listingOf()), "empty_listing"},
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

func TestLookDenied(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		want   manifest.Reason
		says   string
	}{
		{"blocked", reply(403, "<html><title>Blocked</title><p>whoa\x1b[31m there \u202e</p>"), "blocked", "blocked: Blocked;"},
		{"blocked by network security", reply(403, "<!doctype html>You've been blocked by network security."), "blocked", "this client or network"},
		{"administrative rules", reply(403, "<html><body><h1>403 Forbidden</h1>\nRequest forbidden by administrative rules.\n</body></html>"), "blocked", "this client or network"},
		{"scope", reply(403, `{"message":"Forbidden"}`, "WWW-Authenticate", `Bearer realm="reddit", error="insufficient_scope"`), "insufficient_scope", "scope read"},
		{"private", reply(403, `{"reason":"private","message":"Forbidden","error":403}`), "forbidden", "Forbidden, 403, private;"},
		{"401 for ever", reply(401, strings.Repeat("<html>x", 5000)), "unauthorized", "just given out"},
	} {
		s := api(func(int, *http.Request) answer { return tt.answer })
		_, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1"))
		var denied *Denied
		if !errors.As(err, &denied) || denied.Reason != tt.want || denied.Hint == "" || !strings.Contains(err.Error(), tt.says) {
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

// TestLookOddThings: trouble with one thing leaves that one without a verdict, and says nothing of
// the others, except that a thing without a name may be any that is missing.
func TestLookOddThings(t *testing.T) {
	sound := thing("a1", "")
	for _, tt := range []struct {
		name   string
		things []string
		absent []manifest.PostID
		want   map[manifest.PostID]manifest.Reason // unclear
		posts  int
	}{
		{"number for a category", []string{sound, thing("b2", `"removed_by_category":5`)}, nil, map[manifest.PostID]manifest.Reason{"b2": "malformed_thing"}, 1},
		{"list for an author", []string{sound, thing("b2", `"author":[]`)}, nil, map[manifest.PostID]manifest.Reason{"b2": "malformed_thing"}, 1},
		{"no author", []string{sound, `{"kind":"t3","data":{"id":"b2"}}`}, nil, map[manifest.PostID]manifest.Reason{"b2": "malformed_thing"}, 1},
		{"word for a truth", []string{sound, thing("b2", `"is_robot_indexable":"yes"`)}, nil, map[manifest.PostID]manifest.Reason{"b2": "malformed_thing"}, 1},
		{"malformed, then sound", []string{sound, thing("b2", `"author":1`), thing("b2", "")}, nil, map[manifest.PostID]manifest.Reason{"b2": "malformed_thing"}, 1},
		{"sound, then malformed", []string{sound, thing("b2", ""), thing("b2", `"author":1`)}, nil, map[manifest.PostID]manifest.Reason{"b2": "malformed_thing"}, 1},
		{"live and removed", []string{sound, thing("b2", ""), thing("b2", `"removed_by_category":"moderator"`)}, nil, map[manifest.PostID]manifest.Reason{"b2": "contradiction"}, 1},
		{"twice the same", []string{sound, thing("b2", ""), thing("b2", "")}, nil, map[manifest.PostID]manifest.Reason{}, 2},
		{"nameless", []string{sound, `{"kind":"t3","data":{}}`}, nil, map[manifest.PostID]manifest.Reason{"b2": "missing_beside_malformed"}, 1},
		{"two names", []string{sound, strings.Replace(thing("b2", ""), "t3_b2", "t3_c3", 1)}, nil, map[manifest.PostID]manifest.Reason{"b2": "missing_beside_malformed"}, 1},
		{"null", []string{sound, "null"}, nil, map[manifest.PostID]manifest.Reason{"b2": "missing_beside_malformed"}, 1},
		{"comment with the id", []string{sound, `{"kind":"t1","data":{"id":"b2"}}`}, ids("b2"), map[manifest.PostID]manifest.Reason{}, 1},
		{"malformed alone", []string{thing("b2", `"author":1`)}, nil, map[manifest.PostID]manifest.Reason{"a1": "missing_beside_malformed", "b2": "malformed_thing"}, 0},
		{"malformed media only", []string{sound, thing("b2", `"gallery_data":7`)}, nil, map[manifest.PostID]manifest.Reason{}, 2},
	} {
		s := api(func(int, *http.Request) answer { return reply(200, listingOf(tt.things...)) })
		a, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1", "b2"))
		if err != nil || len(a.Posts) != tt.posts || !slices.Equal(a.Absent, tt.absent) || !cmp.Equal(a.Unclear, tt.want) {
			t.Errorf("%s: Ask = %+v, %v", tt.name, a, err)
		}
	}
}

func TestFactsOfModeratorFields(t *testing.T) {
	for more, want := range map[string]bool{
		`"banned_by":null`: false, `"banned_by":false`: false, `"banned_by":""`: false, `"removed":false,"spam":false`: false,
		`"banned_by":true`: true, `"banned_by":"somebody"`: true, `"banned_by":{}`: true, `"removed_by":"somebody"`: true, `"removed_by":null`: false,
		`"removed":true`: true, `"spam":true`: true,
	} {
		f, _, err := readFacts(json.RawMessage(`{"author":"x",` + more + `}`))
		if err != nil || f.ModRemoved != want {
			t.Errorf("%s: ModRemoved = %v, %v; want %v", more, f.ModRemoved, err, want)
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
		{"bad credentials", reply(401, `{"message":"Unauthorized","error":401}`, "WWW-Authenticate", `Basic realm="reddit"`), true, "bad_credentials"},
		{"bad request", reply(400, ""), true, "bad_credentials"},
		{"oauth error in a 200", reply(200, `{"error":"unauthorized_client"}`), true, "unauthorized_client"},
		{"with a description", reply(200, `{"error":"invalid_request","error_description":"bad device_id"}`), true, "invalid_request"},
		{"error number", reply(200, `{"error":401}`), true, "oauth_error"},
		{"error with a token", reply(200, `{"error":"invalid_scope","access_token":"x","token_type":"bearer","expires_in":1}`), true, "invalid_scope"},
		{"blocked", reply(403, "<html>Blocked"), true, "blocked"},
		{"default client", reply(429, `{"message": "Too Many Requests", "error": 429}`), false, "token_http_429"},
		{"server error", reply(503, ""), false, "token_http_503"},
		{"html", reply(200, "<html>"), false, "token_malformed"},
		{"empty object", reply(200, "{}"), false, "token_malformed"},
		{"no life", reply(200, `{"access_token":"x","token_type":"bearer"}`), false, "token_malformed"},
		{"another type", reply(200, `{"access_token":"x","token_type":"mac","expires_in":3600}`), false, "token_malformed"},
		{"header in the token", reply(200, `{"access_token":"x\r\nX-Y: z","token_type":"bearer","expires_in":3600}`), false, "token_malformed"},
		{"endless token", reply(200, `{"access_token":"`+strings.Repeat("x", maxToken+1)+`","token_type":"bearer","expires_in":3600}`), false, "token_malformed"},
		{"too large", reply(200, strings.Repeat(" ", maxTokenBody+1)), false, "too_large"},
		{"broken connection", answer{err: errors.New("reset")}, false, "connection"},
	} {
		s := &script{play: func(int, *http.Request) answer { return tt.answer }}
		_, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1"))
		var none *Unanswered
		var denied *Denied
		switch {
		case tt.denied && (!errors.As(err, &denied) || denied.Reason != tt.want || denied.Hint == ""):
			t.Errorf("%s: Ask = %v, want Denied %s", tt.name, err, tt.want)
		case !tt.denied && (!errors.As(err, &none) || none.Reason != tt.want):
			t.Errorf("%s: Ask = %v, want Unanswered %s", tt.name, err, tt.want)
		}
		for _, r := range s.seen {
			if r.host != tokenHost || r.req.Method != http.MethodPost {
				t.Errorf("%s: asked %s %s", tt.name, r.req.Method, r.req.URL)
			}
		}
	}
}

// TestTokenExpires: a token of either of the lives that were recorded is renewed before its
// end, and once when Reddit ends it early.
func TestTokenExpires(t *testing.T) {
	for _, life := range []time.Duration{time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) { tokenExpires(t, life) })
	}
}

func tokenExpires(t *testing.T, life time.Duration) {
	tokens := 0
	rejected := ""
	s := &script{}
	s.play = func(_ int, r *http.Request) answer {
		if r.URL.Hostname() == tokenHost {
			tokens++
			return reply(200, fmt.Sprintf(`{"access_token":"token-%d","token_type":"Bearer","expires_in":%.0f}`, tokens, life.Seconds()))
		}
		if got := r.Header.Get("Authorization"); got == rejected {
			return reply(401, `{"error": 401}`, "WWW-Authenticate", `Bearer realm="reddit", error="invalid_token"`)
		} else if want := fmt.Sprintf("bearer token-%d", tokens); got != want {
			t.Errorf("Authorization %q, want %q", got, want)
		}
		return reply(200, listing("a1"))
	}
	c := s.client(t, testOptions())
	look := func(want int, when string) {
		t.Helper()
		mustAsk(t, c)
		if tokens != want {
			t.Errorf("%s: %d tokens were asked for, want %d", when, tokens, want)
		}
	}
	look(1, "at first")
	time.Sleep(life - 2*time.Minute)
	look(1, "two minutes early")
	time.Sleep(time.Minute + time.Second)
	look(2, "in the last minute")
	rejected = "bearer token-2"
	look(3, "after an early end")
	look(3, "after that")
}

// TestTokenEndsInTheWait: the wait for a turn can outlive the token; the request then goes
// out with a new one, and never without.
func TestTokenEndsInTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, life := 0, 3600
		s := &script{}
		s.play = func(_ int, r *http.Request) answer {
			if r.URL.Hostname() == tokenHost {
				tokens++
				return reply(200, fmt.Sprintf(`{"access_token":"token-%d","token_type":"bearer","expires_in":%d}`, tokens, life))
			}
			if got, want := r.Header.Get("Authorization"), fmt.Sprintf("bearer token-%d", tokens); got != want {
				t.Errorf("Authorization %q, want %q", got, want)
			}
			return reply(200, listing("a1"))
		}
		o := testOptions()
		o.Policy.Reddit.RequestsPerMinute = 0.1 // one in 10 min
		c := s.client(t, o)
		for range 8 { // the seventh waits from the 60th minute to the 70th
			mustAsk(t, c)
		}
		if tokens != 2 {
			t.Errorf("%d tokens were asked for, want 2", tokens)
		}
		c.token.keep(Secret{}, 0)
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

// TestCredentialsStayHome: each credential goes to its one host, and neither they nor an
// author's name come out anywhere, whatever fails.
func TestCredentialsStayHome(t *testing.T) {
	var b lockedBuffer
	image := string(pngBytes(t))
	for _, odd := range []answer{
		{}, reply(401, "no"), reply(403, "<html>Blocked"), reply(200, "<html>"+canaryName), reply(500, "x"), reply(429, ""), reply(200, "{"),
		reply(200, listingOf(thing("a1", `"author":1`))), {err: errors.New("broken")}, reply(302, "", "Location", "https://i.imgur.com/b.png"),
	} {
		s := &script{}
		s.play = func(n int, r *http.Request) answer {
			auth := r.Header.Get("Authorization")
			switch r.URL.Hostname() {
			case tokenHost:
				if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("client-id:"+canarySecret)); auth != want {
					t.Errorf("the token endpoint got %q", auth)
				}
				if odd.err != nil && n == 0 {
					return odd
				}
				return tokenReply(3600)
			case apiHost:
				if auth != "bearer "+canaryToken {
					t.Errorf("the API got %q", auth)
				}
				if odd.err == nil && odd.status != 0 && odd.status != 302 {
					return odd
				}
				return reply(200, listing("a1"))
			}
			if auth != "" || r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" {
				t.Errorf("an image host got %v", r.Header)
			}
			if r.URL.Hostname() == "i.redd.it" && odd.status != 0 {
				return odd
			}
			return reply(200, image, "Set-Cookie", "a=b")
		}
		c := s.client(t, logged(testOptions(), &b))
		a, err := c.Ask(t.Context(), ids("a1"))
		fmt.Fprintf(&b, "%+v %v %#v\n", a, err, err)
		d, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a1.png"})
		fmt.Fprintf(&b, "%v %v %#v\n%+v\n", d.Info, err, err, c)
	}
	for _, secret := range []string{canarySecret, canaryToken, canaryName, base64.StdEncoding.EncodeToString([]byte("client-id:" + canarySecret))} {
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
	o := testOptions()
	for _, host := range []string{apiHost, tokenHost} {
		o.Policy.Images.Hosts = append(o.Policy.Images.Hosts, policy.Host{Name: host, RequestsPerSecond: 1e6, Concurrency: 1})
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
	for url, stack := range map[string]http.RoundTripper{
		"https://i.redd.it/a.png":      identified{c, s, c.toReddit},
		"https://example.com/a.png":    identified{c, s, c.toImages},
		"http://i.redd.it/a.png":       identified{c, s, c.toImages},
		"https://i.redd.it:8443/a.png": identified{c, s, c.toImages},
		"https://u:p@oauth.reddit.com": identified{c, s, c.toReddit},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := stack.RoundTrip(req); !errors.Is(err, errForbidden) {
			t.Errorf("%s: %v, %v; want it forbidden", url, resp, err)
		}
	}
}

func FuzzListing(f *testing.F) {
	f.Add([]byte(listing("a1", "b2")))
	f.Add([]byte(listingOf(thing("a1", `"removed_by_category":"x","crosspost_parent_list":[{"author":"y","url":"http://i.imgur.com/a.jpg"}]`))))
	f.Add([]byte(listingOf(thing("a1", `"is_gallery":true,"gallery_data":{"items":[{"media_id":"m"}]},"media_metadata":{"m":{"status":"valid","e":"Image","m":"image/jpg","s":{"u":"https://preview.redd.it/m.jpg?a&amp;b"}}}`))))
	f.Add([]byte(`{"kind":"Listing","data":{"children":[null]}}`))
	c := (&script{}).client(f, testOptions())
	asked := ids("a1", "b2")
	f.Fuzz(func(t *testing.T, body []byte) {
		children, err := c.readListing(exchange{status: 200, body: body})
		if err != nil {
			return
		}
		a, err := readChildren(children, asked, c.policy)
		if err != nil {
			var none *Unanswered
			if !errors.As(err, &none) {
				t.Errorf("error %v", err)
			}
			return
		}
		if len(a.Posts)+len(a.Absent)+len(a.Unclear) != len(asked) || len(a.Absent) > 0 && len(a.Posts) == 0 {
			t.Errorf("answer %+v", a)
		}
		for _, post := range a.Posts {
			if len(post.Images) == 0 {
				t.Error("a post without a candidate")
			}
			for _, i := range post.Images {
				if (i.URL == "") == (i.Fault == nil) {
					t.Errorf("candidate %+v", i)
				}
				if i.Fault == nil {
					if _, fault := c.allowed(i.URL); fault != nil {
						t.Errorf("candidate %q is %v", i.URL, fault)
					}
				}
			}
		}
	})
}
