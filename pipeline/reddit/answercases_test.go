package reddit_test

// The answers that wireAnswers names, one function for each or for a few of one kind.

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// Rate headers.

func remainingParses(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 1, hostile.RateHeaders("23", "977.0", "599"))
	w.good()
	w.good()
	w.apart(790 * time.Millisecond) // a burst of 20 is free; 600 s - 600 s * 3/1000 is 598.2 s: 0.8 s ahead
}

// headersAsk wants the request after these headers to wait.
func headersAsk(used, remaining, reset string, low, high time.Duration) func(*testing.T) {
	return func(t *testing.T) {
		w := newWire(t, redditemu.Options{})
		w.fault(apiHost, 1, hostile.RateHeaders(used, remaining, reset))
		w.good()
		w.waitsFor("rate_limit", low, high)
		w.count(apiHost, 1)
	}
}

// resetZero plays the recorded end of a window (praw issue 2046): 429 without a body, then
// the next window.
func resetZero(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 1, hostile.RateHeaders("1000", "0.0", "0"))
	w.good()
	w.good()
	w.apart(990 * time.Millisecond)
}

func absentHeaders(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 1, hostile.RateHeaders("100", "2.0", "10"))
	w.fault(apiHost, 0, hostile.NoRateHeaders())
	for range 3 {
		w.good()
	}
	if len(w.waits) != 0 {
		t.Errorf("waits with requests left: %v", w.waits)
	}
	w.waitsFor("rate_limit", 5*time.Second, 12*time.Second)
	w.count(apiHost, 3)
}

// 429 and 403.

// limited is a rate limit that says how long to wait.
func limited(kind func(seconds int) hostile.FaultKind, reason string) func(*testing.T) {
	return func(t *testing.T) {
		w := newWire(t, redditemu.Options{})
		w.fault(apiHost, 1, kind(1))
		w.good()
		w.count(apiHost, 2)
		w.apart(990 * time.Millisecond)
		w.fault(apiHost, 0, kind(5))
		w.waitsFor(reason, 5*time.Second, 6*time.Second)

		w = newWire(t, redditemu.Options{})
		w.fault(apiHost, 0, kind(0))
		w.givesUp()
	}
}

func tooManyJSON(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 1, hostile.TooManyJSON())
	w.good()
	w.count(apiHost, 2)

	w = newWire(t, redditemu.Options{}, slowRetries)
	w.fault(apiHost, 0, hostile.TooManyJSON())
	w.waitsFor("rate_limit", 2*time.Second, 2*time.Minute)

	w = newWire(t, redditemu.Options{})
	w.fault(apiHost, 0, hostile.TooManyJSON())
	w.givesUp()
}

func tooManyEmpty(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 1, hostile.TooManyEmpty(0))
	w.good()
	w.count(apiHost, 2)
	w.apart(990 * time.Millisecond)
	w.fault(apiHost, 0, hostile.TooManyEmpty(5))
	w.waitsFor("rate_limit", 4*time.Second, 7*time.Second)
}

// defaultAgent shows what a library's own User-Agent is answered, and that the client never
// sends one: a 429 of the token endpoint is a rate limit like any other.
func defaultAgent(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	for _, agent := range []string{"Go-http-client/1.1", "python-requests/2.25.1"} {
		for host, form := range map[string]string{tokenHost: "json", apiHost: "html"} {
			head, _ := raw(t, w.emulator, host, "POST /api/v1/access_token HTTP/1.1", "User-Agent: "+agent)
			if !strings.Contains(head, " 429 ") || !strings.Contains(head, form) {
				t.Errorf("%s answers %s with\n%s", host, agent, head)
			}
		}
	}
	w.emulator.ForgetRequests()
	w.fault(tokenHost, 1, hostile.TooManyJSON())
	w.good()
	w.count(tokenHost, 2)
	form := regexp.MustCompile(`^[a-z]+:rehydrate:[^ ]+ \(by /u/test_user\)$`)
	for _, r := range w.emulator.Requests() {
		if !form.MatchString(r.UserAgent) {
			t.Errorf("%s was sent the User-Agent %q", r.Host, r.UserAgent)
		}
	}
}

// blocked is a page that refuses the client: the run stops, and at an image host the image
// is not gone.
func blocked(page hostile.FaultKind) func(*testing.T) {
	return func(t *testing.T) {
		w := newWire(t, redditemu.Options{})
		armed := w.fault(apiHost, 0, page)
		w.denied("blocked")
		w.count(apiHost, 1)
		armed.Clear()
		w.good()

		w.fault("i.redd.it", 0, page)
		post, _ := w.emulator.Post("a1")
		_, err := w.client.Download(w.ctx, reddit.Candidate{URL: post.URLs()[0], Host: "i.redd.it"})
		var f *policy.Fault
		if !errors.As(err, &f) || f.Outcome != manifest.Failed || f.Reason != "blocked" {
			t.Errorf("Download = %v, want failed/blocked", err)
		}
	}
}

func forbidden(t *testing.T) {
	for _, reason := range []string{"private", "quarantined", "gated"} {
		w := newWire(t, redditemu.Options{})
		w.fault(apiHost, 0, hostile.ForbiddenReason(reason))
		w.denied("forbidden")
		w.count(apiHost, 1)
	}
}

func uriTooLong(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 1, hostile.URITooLong())
	w.good()
	w.count(apiHost, 2)
	w.emulator.ForgetRequests()
	w.fault(apiHost, 0, hostile.URITooLong())
	w.unknown("http_414")
	w.count(apiHost, 1+retries)
}

// unanswered is an answer that proves nothing and is not asked for again at once; the next
// call is answered.
func unanswered(kind hostile.FaultKind, reason manifest.Reason) func(*testing.T) {
	return func(t *testing.T) {
		w := newWire(t, redditemu.Options{})
		armed := w.fault(apiHost, 0, kind)
		w.unknown(reason)
		w.count(apiHost, 1)
		armed.Clear()
		w.good()
	}
}

// passing is trouble that asking again gets over, and that proves nothing when it stays.
func passing(kind hostile.FaultKind, reason manifest.Reason) func(*testing.T) {
	return func(t *testing.T) {
		w := newWire(t, redditemu.Options{})
		w.fault(apiHost, 1, kind)
		w.good()
		w.count(apiHost, 2)

		w = newWire(t, redditemu.Options{})
		armed := w.fault(apiHost, 0, kind)
		w.unknown(reason)
		w.count(apiHost, 1+retries)
		armed.Clear()
		w.good()
	}
}

func serverError(status int) func(*testing.T) {
	return passing(hostile.ServerError(status), manifest.Reason(fmt.Sprint("http_", status)))
}

// Token.

func oauthErrors(t *testing.T) {
	for _, code := range []string{"invalid_request", "unsupported_grant_type", "unauthorized_client", "invalid_scope"} {
		w := newWire(t, redditemu.Options{})
		w.fault(tokenHost, 0, hostile.OAuthError200(code))
		w.denied(manifest.Reason(code))
		w.count(tokenHost, 1)
		w.count(apiHost, 0)
	}
	w := newWire(t, redditemu.Options{InstalledApp: true}, func(o *reddit.Options) { o.ClientSecret = reddit.NewSecret("none") })
	w.fault(tokenHost, 0, hostile.BadCredentials())
	w.denied("bad_credentials")
	w.count(apiHost, 0)
}

// tokenLife has tokens of that life and moves the emulator's clock past an hour: it says how
// many tokens that takes. What the client read is in its log.
func tokenLife(life time.Duration, tokens int) func(*testing.T) {
	return func(t *testing.T) {
		var mu sync.Mutex
		var later time.Duration
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(later)
		}
		w := newWire(t, redditemu.Options{TokenLifetime: life, Now: now})
		w.good()
		w.good()
		w.count(tokenHost, 1)
		mu.Lock()
		later = time.Hour + time.Second
		mu.Unlock()
		w.good()
		w.count(tokenHost, tokens)
		if want := "life=" + life.String(); !strings.Contains(w.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, &w.log)
		}
	}
}

// refreshed is a 401 in the middle: one new token, and on.
func refreshed(kind hostile.FaultKind) func(*testing.T) {
	return func(t *testing.T) {
		w := newWire(t, redditemu.Options{})
		w.good()
		w.fault(apiHost, 1, kind)
		w.good()
		w.good()
		w.count(tokenHost, 2)
		w.count(apiHost, 4)
	}
}

func noTokenLoop(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 0, hostile.ExpireToken())
	w.denied("unauthorized")
	w.count(tokenHost, 2)
	w.count(apiHost, 2)
}

func insufficientScope(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 0, hostile.InsufficientScope())
	w.denied("insufficient_scope")
	w.count(apiHost, 1)
	w.count(tokenHost, 1)
}

// bearerStays sends the client to every host there is, redirects included.
func bearerStays(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	imgur := redditemu.Post{ID: "d4", Kind: redditemu.KindImgur}
	if err := w.emulator.Put(imgur); err != nil {
		t.Fatal(err)
	}
	w.good()
	post, _ := w.emulator.Post("a1")
	w.emulator.Fault(hostile.Fault{Host: "i.imgur.com", Times: 1, Kind: hostile.RedirectTo(post.URLs()[0])})
	for _, u := range []string{post.URLs()[0], imgur.URLs()[0], imgur.URLs()[0]} {
		host := strings.Split(u, "/")[2]
		if _, err := w.client.Download(w.ctx, reddit.Candidate{URL: u, Host: host}); err != nil {
			t.Errorf("Download from %s: %v", host, err)
		}
	}
	w.emulator.Fault(hostile.Fault{Host: apiHost, Kind: hostile.RedirectTo("https://i.redd.it/bearer")})
	w.unknown("http_302") // and not followed
	kinds := map[string]string{apiHost: "bearer", tokenHost: "basic", "i.redd.it": "none", "i.imgur.com": "none"}
	seen := map[string]bool{}
	for _, r := range w.emulator.Requests() {
		if seen[r.Host] = true; r.Auth != kinds[r.Host] || r.Path == "/bearer" {
			t.Errorf("%s%s was sent the authorization %q", r.Host, r.Path, r.Auth)
		}
	}
	if len(seen) != len(kinds) {
		t.Errorf("asked %v, want all of %v", seen, kinds)
	}
}

// Id lists.

func manyIDs(n int) []manifest.PostID {
	ids := make([]manifest.PostID, n)
	for i := range ids {
		ids[i] = manifest.PostID(fmt.Sprintf("many%03d", i))
	}
	return ids
}

func hundredIDs(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	ids := manyIDs(100)
	for _, id := range ids {
		if err := w.emulator.Put(redditemu.Post{ID: id, Condition: redditemu.Removed}); err != nil {
			t.Fatal(err)
		}
	}
	a, err := w.client.Ask(w.ctx, ids)
	if err != nil || len(a.Posts) != 100 {
		t.Fatalf("Ask = %d posts, %v; want 100", len(a.Posts), err)
	}
	if all := w.requests(apiHost); len(all) != 1 || !slices.Equal(all[0].IDs, ids) {
		t.Errorf("%d requests, want one that asks all 100 in order", len(all))
	}
}

// overHundred shows the answer that Reddit gives to a longer list, and that the client does
// not ask for it.
func overHundred(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	ids := append(manyIDs(reddit.MaxAsk), "a1")
	form := "grant_type=client_credentials"
	basic := base64.StdEncoding.EncodeToString([]byte(w.emulator.ClientID + ":" + w.emulator.Secret))
	_, body := raw(t, w.emulator, tokenHost, "POST /api/v1/access_token HTTP/1.1", otherAgent, "Authorization: Basic "+basic,
		"Content-Type: application/x-www-form-urlencoded", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form))
	var token struct {
		Value string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &token); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ids   []manifest.PostID
		empty bool
	}{{ids, true}, {ids[1:], false}} {
		var names []string
		for _, id := range tt.ids {
			names = append(names, id.Fullname())
		}
		_, body := raw(t, w.emulator, apiHost, "GET /api/info?raw_json=1&id="+strings.Join(names, ",")+" HTTP/1.1", otherAgent, "Authorization: bearer "+token.Value)
		if got := strings.Contains(body, `"children": []`); got != tt.empty {
			t.Errorf("the listing for %d ids is empty: %t, want %t\n%.200s", len(tt.ids), got, tt.empty, body)
		}
	}
	w.emulator.ForgetRequests()
	if a, err := w.client.Ask(w.ctx, ids); err == nil {
		t.Errorf("Ask of %d ids = %+v, want an error", len(ids), a)
	}
	if n := len(w.emulator.Requests()); n != 0 {
		t.Errorf("%d requests were made for %d ids", n, len(ids))
	}
}

func absentIDs(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	asked := []manifest.PostID{"zz9", "a1", "c3", "b2", "y8"}
	a, err := w.client.Ask(w.ctx, asked)
	if err != nil || len(a.Posts) != 2 || !slices.Equal(a.Absent, []manifest.PostID{"zz9", "c3", "y8"}) || len(a.Unclear) != 0 {
		t.Errorf("Ask = %+v, %v; want zz9, c3 and y8 absent", a, err)
	}
}

func extraID(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	w.fault(apiHost, 0, hostile.ExtraChild(redditemu.Post{ID: "x9", Condition: redditemu.Removed}))
	w.good()
	// Alone it shows nothing of the posts that were asked for.
	if a, err := w.client.Ask(w.ctx, []manifest.PostID{"c3"}); err == nil {
		t.Errorf("Ask = %+v, want no usable answer", a)
	}
}

func duplicateID(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	a, err := w.client.Ask(w.ctx, []manifest.PostID{"a1", "b2", "a1", "c3", "c3"})
	if err != nil {
		t.Fatal(err)
	}
	w.truth(a)
	if ids := w.requests(apiHost)[0].IDs; len(ids) != 3 {
		t.Errorf("asked for %v, want each id once", ids)
	}
	w.fault(apiHost, 0, hostile.DuplicateChild())
	w.good()
}

// Media hosts.

// ampersands names a picture by its signed address, as an answer without raw_json=1 would
// write it, under a policy that has nothing but that address to go by.
func ampersands(t *testing.T) {
	w := newWire(t, redditemu.Options{}, func(o *reddit.Options) {
		o.Policy.Images.Hosts = []policy.Host{{Name: "preview.redd.it", RequestsPerSecond: 100, Concurrency: 1}}
	})
	p := redditemu.Post{ID: "e5", Kind: redditemu.KindGallery, Images: []redditemu.Image{{Slug: "e5picture"}}}
	signed := signedURL(t, p)
	p.Set = map[string]any{"media_metadata": map[string]any{"e5picture": map[string]any{"status": "valid", "e": "Image",
		"m": "image/jpg", "id": "e5picture", "s": map[string]any{"u": strings.ReplaceAll(signed, "&", "&amp;")}}}}
	if err := w.emulator.Put(p); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(signed, "https://preview.redd.it")
	for path, want := range map[string]string{path: " 200 ", strings.ReplaceAll(path, "&", "&amp;"): " 403 "} {
		if head, _ := raw(t, w.emulator, "preview.redd.it", "GET "+path+" HTTP/1.1", otherAgent); !strings.Contains(head, want) {
			t.Errorf("%s is answered\n%s\nwant%s", path, head, want)
		}
	}
	a, err := w.client.Ask(w.ctx, []manifest.PostID{"e5"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Download(w.ctx, a.Posts["e5"].Image(0)); err != nil {
		t.Errorf("Download: %v", err)
	}
}

// signedURL is the preview address of a gallery's image.
func signedURL(t *testing.T, p redditemu.Post) string {
	t.Helper()
	thing, err := p.Thing()
	if err != nil {
		t.Fatal(err)
	}
	var link struct {
		Data struct {
			Metadata map[string]struct{ S struct{ U string } } `json:"media_metadata"`
		}
	}
	if err := json.Unmarshal(thing, &link); err != nil {
		t.Fatal(err)
	}
	u := link.Data.Metadata[p.Images[0].Slug].S.U
	if !strings.HasPrefix(u, "https://preview.redd.it/") || !strings.Contains(u, "&") {
		t.Fatalf("the gallery names %q: no signed address", u)
	}
	return u
}
