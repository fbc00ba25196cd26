package redditemu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
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

// A token is one bearer token that was given out.
type token struct {
	expires time.Time
	scope   string
}

// A bucket counts the requests of one window.
type bucket struct {
	window int64
	used   int
}

// www answers for www.reddit.com: the token endpoint and the page around an image.
func (s *Server) www(r *http.Request) *Reply {
	if r.URL.Path == "/api/v1/access_token" {
		if rep := badAgent(r, true); rep != nil {
			return rep
		}
		return s.accessToken(r)
	}
	if rep := badAgent(r, false); rep != nil {
		return rep
	}
	if r.URL.Path == "/media" {
		return HTMLReply(http.StatusOK, CanaryTitle, "An image, and a page around it. "+CanaryAuthor)
	}
	return NetworkSecurity()
}

// libraryAgents are user agents that libraries send when the program chose none.
var libraryAgents = []string{"go-http-client/", "python-requests/", "python-urllib/", "curl/", "wget/", "java/", "okhttp/", "node-fetch/", "axios/"}

func isLibraryAgent(ua string) bool {
	for _, p := range libraryAgents {
		if strings.HasPrefix(strings.ToLower(ua), p) {
			return true
		}
	}
	return false
}

// badAgent returns the answer to a user agent that Reddit does not like, or nil. The
// token endpoint says no in JSON, every other in HTML.
func badAgent(r *http.Request, token bool) *Reply {
	ua := r.UserAgent()
	switch {
	case isLibraryAgent(ua) && token:
		return TooManyJSON()
	case isLibraryAgent(ua):
		return TooManyHTML(4)
	case len(ua) < 7:
		return Blocked()
	case strings.HasPrefix(ua, "Mozilla/") && r.Header.Get("Authorization") == "":
		return NetworkSecurity()
	}
	return nil
}

func (s *Server) accessToken(r *http.Request) *Reply {
	if r.Method != http.MethodPost {
		return JSONReply(http.StatusNotFound, `{"message": "Not Found", "error": 404}`)
	}
	if _, left, _ := s.charge("token", tokenRequests); left < 0 {
		return TooManyJSON()
	}
	id, secret, ok := r.BasicAuth()
	if !ok || id != s.ClientID || secret != s.Secret {
		return JSONReply(http.StatusUnauthorized, `{"message": "Unauthorized", "error": 401}`).
			With("WWW-Authenticate", `Basic realm="reddit"`)
	}
	r.Body = http.MaxBytesReader(nil, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		return JSONReply(http.StatusBadRequest, `{"message": "Bad Request", "error": 400}`)
	}
	scope := r.PostForm.Get("scope")
	if scope == "" {
		scope = "*"
	}
	switch grant := r.PostForm.Get("grant_type"); {
	case strings.Trim(scope, "abcdefghijklmnopqrstuvwxyz*, ") != "":
		return OAuthError("invalid_scope")
	case grant == "client_credentials" && s.opt.InstalledApp:
		return OAuthError("unauthorized_client")
	case grant == "client_credentials":
		return s.grant(scope)
	}
	return OAuthError("unsupported_grant_type")
}

// OAuthError is an error with status 200, which is what Reddit sends.
func OAuthError(code string) *Reply {
	return JSONReply(http.StatusOK, fmt.Sprintf(`{"error":%q}`, code))
}

func (s *Server) grant(scope string) *Reply {
	s.mu.Lock()
	s.issued++
	n := strconv.Itoa(s.issued)
	value := "emu." + base36(Hash64(s.ClientID, "token", n), 13) + base36(Hash64(s.ClientID, "more", n), 13)
	s.world.Tokens[value] = token{expires: s.opt.Now().Add(s.opt.TokenLifetime), scope: scope}
	s.mu.Unlock()
	body := map[string]any{"access_token": value, "token_type": "bearer",
		"expires_in": int(s.opt.TokenLifetime / time.Second), "scope": scope}
	b, _ := marshal(body) // strings and an integer only
	return JSONReply(http.StatusOK, string(b)).With("Cache-Control", "max-age=0, must-revalidate")
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
	if rep := badAgent(r, false); rep != nil {
		return rep
	}
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "bearer") {
		return Blocked()
	}
	s.mu.Lock()
	t, known := s.world.Tokens[value]
	s.mu.Unlock()
	if !known || !s.opt.Now().Before(t.expires) {
		return Unauthorized()
	}
	used, left, reset := s.charge("api", s.opt.RequestsPerWindow)
	if left < 0 {
		return Limited(used, 0, reset)
	}
	var rep *Reply
	if name, ok := aboutPath(r.URL.Path); !strings.Contains(" "+t.scope+" ", " read ") && t.scope != "*" {
		rep = InsufficientScope()
	} else if r.URL.Path == "/api/info" {
		rep = s.info(r)
	} else if ok {
		rep = s.about(name)
	} else {
		rep = JSONReply(http.StatusNotFound, `{"message": "Not Found", "error": 404}`)
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
	return Listing(things, r.URL.Query().Get("raw_json") == "1")
}

// Listing puts things into the recorded envelope, their bytes untouched when raw. A
// client that does not ask for raw_json gets HTML entities in every string.
func Listing(things []json.RawMessage, raw bool) *Reply {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind": "Listing", "data": {"after": null, "dist": %d, "modhash": null, "geo_filter": "", "before": null, "children": [`, len(things))
	for i, t := range things {
		if i > 0 {
			b.WriteString(", ")
		}
		if raw {
			b.Write(t)
		} else {
			b.Write(entities(t))
		}
	}
	b.WriteString("]}}")
	return NewReply(http.StatusOK, "application/json; charset=UTF-8", b.Bytes())
}

// entities rewrites & < > in the strings of a JSON value as HTML entities. Input that
// is not JSON comes back as it is.
func entities(raw []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return raw
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return raw
	}
	b, err := marshal(escapeStrings(v))
	if err != nil {
		return raw
	}
	return b
}

// entityEscaper leaves quotes alone, which html.EscapeString would not.
var entityEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escapeStrings(v any) any {
	switch v := v.(type) {
	case string:
		return entityEscaper.Replace(v)
	case []any:
		for i := range v {
			v[i] = escapeStrings(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = escapeStrings(v[k])
		}
	}
	return v
}

// subredditForm is what a subreddit can be called.
var subredditForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_]{1,20}$`)

func aboutPath(path string) (subreddit string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/r/")
	if !ok {
		return "", false
	}
	name, tail, _ := strings.Cut(rest, "/")
	return name, name != "" && (tail == "about" || tail == "about.json")
}

// about says whether a subreddit can be seen, and if not why.
func (s *Server) about(name string) *Reply {
	s.mu.Lock()
	reason, known := s.world.subs[strings.ToLower(name)]
	s.mu.Unlock()
	switch {
	case !known && subredditForm.MatchString(name):
		// A name that is free leads to the search for it (prawcore: Redirect).
		return RedirectReply("https://" + apiHost + "/subreddits/search?q=" + name)
	case !known:
		return JSONReply(http.StatusNotFound, `{"message": "Not Found", "error": 404}`)
	case reason == "banned":
		return JSONReply(http.StatusNotFound, `{"reason": "banned", "message": "Not Found", "error": 404}`)
	case reason != "":
		return ForbiddenReason(reason)
	}
	b, _ := marshal(map[string]any{"kind": "t5", "data": map[string]any{"display_name": name,
		"subreddit_type": "public", "title": CanaryTitle, "public_description": html.EscapeString(CanarySelftext)}})
	return JSONReply(http.StatusOK, string(b))
}
