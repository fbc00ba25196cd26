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

	previewHost   = "preview.redd.it"
	imgurFileHost = "i.imgur.com"

	// maxIDs is how many ids /api/info looks up; more of them get an empty listing.
	maxIDs = 100
)

// identifies reports whether a request names its program and operator as Reddit and imgur want it, and not
// as a library does that was told nothing.
func identifies(r *http.Request) bool { return strings.Contains(r.UserAgent(), "(by /u/") }

// www answers for www.reddit.com: the token endpoint alone.
func (s *Server) www(r *http.Request) *Reply {
	if !identifies(r) || r.URL.Path != "/api/v1/access_token" || r.Method != http.MethodPost {
		return Blocked()
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
	n := strconv.Itoa(len(s.world.Tokens) + 1)
	value := "emu." + base36(Hash64(s.ClientID, "token", n), 13) + base36(Hash64(s.ClientID, "more", n), 13)
	s.world.Tokens[value] = s.opt.Now().Add(s.opt.TokenLifetime)
	s.mu.Unlock()
	return JSONReply(http.StatusOK,
		fmt.Sprintf(`{"access_token": %q, "token_type": "bearer", "expires_in": %d, "scope": "*"}`,
			value, s.opt.TokenLifetime/time.Second)).With("Cache-Control", "max-age=0, must-revalidate")
}

// charge counts one request. left is negative when the window had no request left, reset the whole seconds to
// its end.
func (s *Server) charge() (used, left, reset int) {
	now := s.opt.Now().UnixNano()
	// Windows are aligned to the epoch, not to a client's first request: so they were recorded.
	window := now / int64(s.opt.Window)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window != window {
		s.window, s.used = window, 0
	}
	s.used++
	// Rounded down, to 0 in the last second: a client must not take that for "now".
	reset = int(time.Duration((window+1)*int64(s.opt.Window)-now) / time.Second)
	return min(s.used, s.opt.RequestsPerWindow), s.opt.RequestsPerWindow - s.used, reset
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
	used, left, reset := s.charge()
	if left < 0 {
		rep := NewReply(http.StatusTooManyRequests, "text/plain", nil).With("Retry-After", strconv.Itoa(reset))
		rateHeaders(rep, used, left, reset)
		return rep
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
		ids = nil // what is asked for too much gets an empty listing, not an error
	}
	var things []json.RawMessage
	seen := map[manifest.PostID]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		p, ok := s.world.Posts[id]
		if _, absent := absence[p.Condition]; !ok || absent || seen[id] {
			continue
		}
		seen[id] = true
		thing, err := p.thing()
		if err != nil {
			return failed(err)
		}
		things = append(things, thing)
	}
	return Listing(things)
}

// Listing puts things into the recorded envelope, their bytes untouched.
func Listing(things []json.RawMessage) *Reply {
	var children []string
	for _, thing := range things {
		children = append(children, string(thing))
	}
	return JSONReply(http.StatusOK,
		fmt.Sprintf(`{"kind": "Listing", "data": {"after": null, "dist": %d, "modhash": null, `+
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
	return JSONReply(http.StatusOK,
		fmt.Sprintf(`{"kind": "t5", "data": {"display_name": %q, "subreddit_type": "public", `+
			`"title": %q, "public_description": %q}}`, name, CanaryTitle, CanarySelftext))
}
