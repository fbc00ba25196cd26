package reddit

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/manifest"
	"rehydrate/policy"
)

func subreddit(more string) string {
	return `{"kind":"t5","data":{"display_name":"Memes","subreddit_type":"public","quarantine":false,"title":"` + canaryName + `"` + more + `}}`
}

// TestAbout: what each recorded answer of /r/NAME/about says, and that only a well-formed one
// says anything.
func TestAbout(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		want   manifest.Reason
		asked  int
	}{
		{"public", reply(200, subreddit("")), policy.CommunityOpen, 1},
		{"restricted", reply(200, subreddit(`,"subreddit_type":"restricted"`)), policy.CommunityOpen, 1},
		{"private, seen by a member", reply(200, subreddit(`,"subreddit_type":"private"`)), policy.CommunityPrivate, 1},
		{"employees_only", reply(200, subreddit(`,"subreddit_type":"employees_only"`)), policy.CommunityPrivate, 1},
		{"gold_only", reply(200, subreddit(`,"subreddit_type":"gold_only"`)), policy.CommunityPrivate, 1},
		{"quarantined, opted in", reply(200, subreddit(`,"quarantine":true`)), policy.CommunityQuarantined, 1},
		{"private", reply(403, `{"reason":"private","message":"Forbidden","error":403}`), policy.CommunityPrivate, 1},
		{"quarantined", reply(403, `{"reason":"quarantined","quarantine_message":"x","message":"Forbidden","error":403}`),
			policy.CommunityQuarantined, 1},
		{"gated", reply(403, `{"reason":"gated","message":"Forbidden","error":403}`), policy.CommunityGated, 1},
		{"banned", reply(404, `{"reason":"banned","message":"Not Found","error":404}`), policy.CommunityBanned, 1},
		{"unknown name", reply(404, `{"message":"Not Found","error":404}`), policy.CommunityMissing, 1},
		{"led to the search", reply(302, "", "Location", "https://www.reddit.com/subreddits/search?q=memes"),
			policy.CommunityMissing, 1},
		{"led there within the API", reply(302, "", "Location", "/subreddits/search.json?q=memes"),
			policy.CommunityMissing, 1},
		{"led to a login", reply(302, "", "Location", "https://www.reddit.com/login?dest=x"), policy.CommunityUnknown, 1},
		{"led to a warning", reply(302, "", "Location", "https://www.reddit.com/over18?dest=/subreddits/search"),
			policy.CommunityUnknown, 1},
		{"led elsewhere", reply(302, "", "Location", "https://evil.example/subreddits/search"), policy.CommunityUnknown, 1},
		{"led to a name that ends like Reddit's", reply(302, "", "Location", "https://evilreddit.com/subreddits/search"),
			policy.CommunityUnknown, 1},
		{"unknown name, by the number", reply(404, `{"error":404}`), policy.CommunityMissing, 1},
		{"unknown name, in words", reply(404, `{"message":"Not Found"}`), policy.CommunityMissing, 1},
		{"an empty object with 404", reply(404, `{}`), policy.CommunityUnknown, 1},
		{"another error with 404", reply(404, `{"message":"no route","error":40404}`), policy.CommunityUnknown, 1},
		{"403 without a reason", reply(403, `{"message":"Forbidden","error":403}`), policy.CommunityUnknown, 1},
		{"a reason of tomorrow", reply(403, `{"reason":"moved_out","message":"Forbidden","error":403}`),
			policy.CommunityUnknown, 1},
		{"another reason with 404", reply(404, `{"reason":"moved_out"}`), policy.CommunityUnknown, 1},
		{"another subreddit", reply(200, strings.Replace(subreddit(""), "Memes", "dankmemes", 1)),
			policy.CommunityUnknown, 4},
		{"a user", reply(200, `{"kind":"t2","data":{}}`), policy.CommunityUnknown, 4},
		{"half an answer", reply(200, subreddit("")[:40]), policy.CommunityUnknown, 4},
		{"HTML", reply(200, "<html>hello"), policy.CommunityUnknown, 4},
		{"HTML with 404", reply(404, "<html>not here"), policy.CommunityUnknown, 1},
		{"451", reply(451, "{}"), policy.CommunityUnknown, 1},
		{"403 as a rate limit", reply(403, `{"reason":"private"}`, "Retry-After", "1"), policy.CommunityUnknown, 4},
		{"503", reply(503, ""), policy.CommunityUnknown, 4},
		{"no answer", answer{err: errors.New("broken")}, policy.CommunityUnknown, 4},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var b strings.Builder
			s := api(func(int, *http.Request) answer { return tt.answer })
			got, err := s.client(t, logged(testOptions(), &b)).About(t.Context(), "Memes")
			if err != nil || got != tt.want {
				t.Errorf("About = %q, %v; want %q", got, err, tt.want)
			}
			asked := s.seen[1:] // the first asks for a token
			if len(asked) != tt.asked {
				t.Errorf("%d requests, want %d", len(asked), tt.asked)
			}
			for _, r := range asked {
				if u := r.req.URL.String(); u != "https://oauth.reddit.com/r/memes/about?raw_json=1" ||
					r.req.Header.Get("Authorization") == "" {
					t.Errorf("asked %s", u)
				}
			}
			if strings.Contains(b.String(), canaryName) {
				t.Errorf("the answer is in the log: %s", b.String())
			}
		})
	}
}

// TestAboutStops: what would stop an Ask stops an About, and a name that is none costs nothing.
func TestAboutStops(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		want   manifest.Reason
	}{
		{"blocked", reply(403, "<html><title>Blocked</title>"), "blocked"},
		{"403 that is not JSON", reply(403, "Forbidden"), "forbidden"},
		{"scope", reply(403, `{"message":"Forbidden"}`, "WWW-Authenticate",
			`Bearer realm="reddit", error="insufficient_scope"`), "insufficient_scope"},
		{"401 for ever", reply(401, ""), "unauthorized"},
	} {
		s := api(func(int, *http.Request) answer { return tt.answer })
		_, err := s.client(t, testOptions()).About(t.Context(), "memes")
		var denied *Denied
		if !errors.As(err, &denied) || denied.Reason != tt.want {
			t.Errorf("%s: About = %v, want Denied %s", tt.name, err, tt.want)
		}
	}
	s := api(func(int, *http.Request) answer { return reply(200, subreddit("")) })
	c := s.client(t, testOptions())
	for _, name := range []string{"", "u_somebody", "U_somebody", "r/memes", "me mes", "../api/v1/me", "memes/about",
		"memes?x", strings.Repeat("a", 22)} {
		if kind, err := c.About(t.Context(), name); err == nil || kind != policy.CommunityUnknown {
			t.Errorf("About(%q) = %q, %v; want an error", name, kind, err)
		}
	}
	if len(s.seen) != 0 {
		t.Errorf("%d requests were made for bad names", len(s.seen))
	}
}

// TestAboutAndBreaker: private subreddits are answers and end a row of failures, and so is a 403 without a reason. An
// API that only fails stops the run from About as well, and so does JSON that explains nothing.
func TestAboutAndBreaker(t *testing.T) {
	for _, bad := range []answer{reply(503, ""), reply(404, `{"message":"Who knows","error":"404"}`)} {
		synctest.Test(t, func(t *testing.T) {
			now := reply(403, `{"reason":"private"}`)
			s := api(func(int, *http.Request) answer { return now })
			c := s.client(t, testOptions())
			for i := range 4 * maxFailures {
				switch i {
				case 2 * maxFailures: // an answer, too
					now = reply(403, `{"message":"Forbidden","error":403}`)
				case 3 * maxFailures:
					now = bad
				}
				kind, err := c.About(t.Context(), "memes")
				last := i >= 4*maxFailures-1
				if is[*Unreachable](err) != last || !last &&
					(err != nil || (kind == policy.CommunityPrivate) != (i < 2*maxFailures)) {
					t.Fatalf("About %d = %q, %v", i, kind, err)
				}
			}
		})
	}
}

// FuzzAnswers: whatever an answer holds, each reader makes of it what it says, or an error with a reason.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		listing("a1", "b2"), `{"kind":"Listing","data":{"children":[null]}}`,
		listingOf(thing("a1",
			`"removed_by_category":"x","crosspost_parent_list":[{"author":"y","url":"http://i.imgur.com/a.jpg"}]`)),
		listingOf(thing("a1",
			`"is_gallery":true,"gallery_data":{"items":[{"media_id":"m"}]},"media_metadata":{"m":{"status":"valid",`+
				`"e":"Image","m":"image/jpg","s":{"u":"https://preview.redd.it/m.jpg?a&amp;b"}}}`)),
		subreddit(""), `{"reason":"private","message":"Forbidden","error":403}`, `{"kind":"t5","data":{"display_name":7}}`,
		tokenReply(3600).body, `{"error":"invalid_request","error_description":"bad device_id"}`,
		`{"access_token":"x","token_type":"BEARER","expires_in":1e300,"error":null}`,
		`{"data":{"link":"https://i.imgur.com/a.png","type":"image/png"},"success":true,"status":200}`,
		`{"data":{"images":[{"link":"http://i.imgur.com/a.png"},{"link":"//evil.example"}]},"success":true,"status":200}`,
		`{"data":{"error":{"message":"Invalid client_id"}},"success":false,"status":401}`, `<html>`, `null`, `[]`, ``,
	} {
		for _, status := range []int{200, 302, 401, 403, 404} {
			f.Add(status, []byte(body))
		}
	}
	c := (&script{}).client(f, imgurOptions())
	denials := append(slices.Clone(oauthErrors), "bad_credentials", "blocked", "forbidden", "oauth_error",
		"insufficient_scope")
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := exchange{status: status, header: http.Header{}, body: body}
		children, err := readListing(e)
		a, odd := Answer{}, err
		if err == nil {
			a, odd = readChildren(children, ids("a1", "b2"), c.o.Policy)
		}
		if n := len(a.Posts) + len(a.Absent) + len(a.Unclear); odd == nil && n != 2 ||
			len(a.Absent) > 0 && len(a.Posts) == 0 {
			t.Errorf("answer %+v", a)
		}
		for _, post := range a.Posts {
			for _, i := range post.Images {
				if _, fault := allowed(i.URL, c.o.Policy); (i.URL == "") == (i.Fault == nil) ||
					i.Fault == nil && fault != nil && i.Host != imgurAPIHost {
					t.Errorf("candidate %+v, %v", i, fault)
				}
			}
		}
		kind, err := readAbout(e, "memes")
		known := slices.Contains([]int{200, 403, 404}, status) || redirects[status]
		if err != nil && (kind != "" || !is[*Unanswered](err) && !is[*Denied](err)) || is[*Denied](err) && status != 403 ||
			kind != "" && !known {
			t.Errorf("readAbout = %q, %v", kind, err)
		}
		c.token = tokenCache{}
		err = c.readToken(e)
		value, life := c.token.current().Reveal(), time.Until(c.token.expires)
		denied, ok := errors.AsType[*Denied](err)
		switch {
		case err == nil:
			if status != 200 || !tokenForm.MatchString(value) || len(value) > maxToken || life <= 0 || life > maxTokenLife {
				t.Errorf("token of %d bytes for %v with status %d", len(value), life, status)
			}
		case value != "", noAnswer(err) == "" && !ok, ok && !slices.Contains(denials, string(denied.Reason)):
			t.Errorf("readToken = %v with a token of %d bytes", err, len(value))
		}
		for _, accepted := range []bool{false, true} {
			files, fault := readImgur(accepted, e, accepted)
			if fault != nil && (fault.Outcome == "" || fault.Reason == "" || files != nil ||
				accepted && fault.Reason == imgurRejected().Reason) {
				t.Errorf("readImgur = %v, %+v", files, fault)
			}
			for _, file := range files {
				link, err := imgurLink(file)
				if at, fault := allowed(link, c.o.Policy); (link == "") == (err == nil) ||
					err == nil && fault == nil && at.Host != imgurFileHost {
					t.Errorf("%q: asks for %q, %v", file.Link, link, err)
				}
			}
		}
	})
}
