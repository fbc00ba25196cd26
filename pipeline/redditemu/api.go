package redditemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest"
)

const (
	apiHost = "oauth.reddit.com"
	wwwHost = "www.reddit.com"

	// tokenRequests is the bucket of the token endpoint, recorded 2021-22.
	tokenRequests = 300
	// maxIDs is how many ids /api/info looks up; more of them get an empty listing.
	maxIDs = 100
)

// A bucket counts the requests of one window.
type bucket struct {
	window int64
	used   int
}

// identifies reports whether a request names its program and operator as Reddit and imgur want it, and not
// as a library does that was told nothing.
func identifies(r *http.Request) bool { return strings.Contains(r.UserAgent(), "(by /u/") }

// www answers for www.reddit.com: the token endpoint alone.
func (s *Server) www(r *http.Request) *Reply {
	if !identifies(r) || r.URL.Path != "/api/v1/access_token" || r.Method != http.MethodPost {
		return Blocked()
	}
	if _, left, _ := s.charge("token", tokenRequests); left < 0 {
		return TooManyJSON()
	}
	id, secret, ok := r.BasicAuth()
	if !ok || id != s.ClientID || secret != s.Secret {
		return apiError(http.StatusUnauthorized).With("WWW-Authenticate", `Basic realm="reddit"`)
	}
	r.Body = http.MaxBytesReader(nil, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		return apiError(http.StatusBadRequest)
	}
	if r.PostForm.Get("grant_type") != "client_credentials" {
		// An error of OAuth2 has status 200.
		return JSONReply(http.StatusOK, `{"error":"unsupported_grant_type"}`)
	}
	return s.grant()
}

func (s *Server) grant() *Reply {
	s.mu.Lock()
	s.issued++
	n := strconv.Itoa(s.issued)
	value := "emu." + base36(Hash64(s.ClientID, "token", n), 13) + base36(Hash64(s.ClientID, "more", n), 13)
	s.world.Tokens[value] = s.opt.Now().Add(s.opt.TokenLifetime)
	s.mu.Unlock()
	return JSONReply(http.StatusOK, fmt.Sprintf(`{"access_token": %q, "token_type": "bearer", "expires_in": %d, "scope": "*"}`,
		value, s.opt.TokenLifetime/time.Second)).With("Cache-Control", "max-age=0, must-revalidate")
}

// charge counts one request against a bucket. left is negative when the window had no
// request left, reset the whole seconds to its end (0 in its last second, as recorded).
func (s *Server) charge(name string, limit int) (used, left, reset int) {
	now := s.opt.Now().UnixNano()
	window := now / int64(s.opt.Window)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if b == nil || b.window != window {
		b = &bucket{window: window}
		s.buckets[name] = b
	}
	b.used++
	reset = int(time.Duration((window+1)*int64(s.opt.Window)-now) / time.Second)
	return min(b.used, limit), limit - b.used, reset
}

// api answers for oauth.reddit.com.
func (s *Server) api(r *http.Request) *Reply {
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !identifies(r) || !strings.EqualFold(kind, "bearer") {
		return Blocked()
	}
	s.mu.Lock()
	expires := s.world.Tokens[value] // long ago for an unknown one
	s.mu.Unlock()
	if !s.opt.Now().Before(expires) {
		return Unauthorized()
	}
	used, left, reset := s.charge("api", s.opt.RequestsPerWindow)
	if left < 0 {
		return Limited(used, 0, reset)
	}
	rep := apiError(http.StatusNotFound)
	rest, inside := strings.CutPrefix(r.URL.Path, "/r/")
	if name, about := strings.CutSuffix(rest, "/about"); inside && about {
		rep = s.about(name)
	} else if r.URL.Path == "/api/info" {
		rep = s.info(r)
	}
	rateHeaders(rep, used, left, reset)
	return rep.With("Server", "snooserv", "Via", "1.1 varnish",
		"Cache-Control", "private, s-maxage=0, max-age=0, must-revalidate, no-store")
}

// rateHeaders writes the three headers in their recorded forms: "3", "997.0", "599".
func rateHeaders(rep *Reply, used, left, reset int) {
	rep.With("X-Ratelimit-Used", strconv.Itoa(used), "X-Ratelimit-Remaining", strconv.Itoa(max(0, left))+".0",
		"X-Ratelimit-Reset", strconv.Itoa(reset))
}

// Limited is the 429 of an exhausted window: empty, rate headers, Retry-After.
func Limited(used, left, reset int) *Reply {
	rep := NewReply(http.StatusTooManyRequests, "text/plain", nil).With("Retry-After", strconv.Itoa(reset))
	rateHeaders(rep, used, left, reset)
	return rep
}

// AskedIDs splits an id parameter as Reddit does. n counts all well-formed names, of
// links or not; malformed ones are dropped.
func AskedIDs(param string) (links []manifest.PostID, n int) {
	for _, name := range strings.FieldsFunc(param, func(c rune) bool { return c == ' ' || c == ',' }) {
		kind, rest, _ := strings.Cut(name, "_")
		id, err := manifestID(rest)
		if err != nil || (kind != "t1" && kind != "t3" && kind != "t5") {
			continue
		}
		n++
		if kind == "t3" {
			links = append(links, id)
		}
	}
	return links, n
}

// info answers /api/info: the posts it has, in the order asked, a repeated id once.
func (s *Server) info(r *http.Request) *Reply {
	ids, n := AskedIDs(r.URL.Query().Get("id"))
	if n > maxIDs {
		ids = nil
	}
	var things []json.RawMessage
	seen := map[manifest.PostID]bool{}
	s.mu.Lock()
	for _, id := range ids {
		if e := s.world.Posts[id]; e != nil && !e.Post.absent() && !seen[id] {
			things = append(things, e.Thing)
		}
		seen[id] = true
	}
	s.mu.Unlock()
	return Listing(things)
}

// Listing puts things into the recorded envelope, their bytes untouched.
func Listing(things []json.RawMessage) *Reply {
	var children []string
	for _, thing := range things {
		children = append(children, string(thing))
	}
	return JSONReply(http.StatusOK, fmt.Sprintf(`{"kind": "Listing", "data": {"after": null, "dist": %d, "modhash": null, `+
		`"geo_filter": "", "before": null, "children": [%s]}}`, len(things), strings.Join(children, ", ")))
}

// about says whether a subreddit can be seen, and if not why.
func (s *Server) about(name string) *Reply {
	s.mu.Lock()
	reason, known := s.world.subs[strings.ToLower(name)]
	s.mu.Unlock()
	switch {
	case !known: // a name that is free leads to the search for it (prawcore: Redirect)
		return RedirectReply("https://" + apiHost + "/subreddits/search?q=" + url.QueryEscape(name))
	case reason == "banned":
		return JSONReply(http.StatusNotFound, `{"reason": "banned", "message": "Not Found", "error": 404}`)
	case reason != "":
		return JSONReply(http.StatusForbidden, fmt.Sprintf(`{"reason": %q, "message": "Forbidden", "error": 403}`, reason))
	}
	return JSONReply(http.StatusOK, fmt.Sprintf(`{"kind": "t5", "data": {"display_name": %q, "subreddit_type": "public", `+
		`"title": %q, "public_description": %q}}`, name, CanaryTitle, CanarySelftext))
}
