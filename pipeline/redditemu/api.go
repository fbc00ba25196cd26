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
func (s *Server) www(r *http.Request) *reply {
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
		return htmlReply(http.StatusOK, CanaryTitle, "An image, and a page around it. "+CanaryAuthor)
	}
	return networkSecurity()
}

// libraryAgents are user agents that libraries send when nobody chose one.
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
func badAgent(r *http.Request, token bool) *reply {
	ua := r.UserAgent()
	switch {
	case isLibraryAgent(ua) && token:
		return tooManyJSON()
	case isLibraryAgent(ua):
		return tooManyHTML(4)
	case len(ua) < 7:
		return blocked()
	case strings.HasPrefix(ua, "Mozilla/") && r.Header.Get("Authorization") == "":
		return networkSecurity()
	}
	return nil
}

func (s *Server) accessToken(r *http.Request) *reply {
	if r.Method != http.MethodPost {
		return jsonReply(http.StatusNotFound, `{"message": "Not Found", "error": 404}`)
	}
	if _, left, _ := s.charge("token", tokenRequests); left < 0 {
		return tooManyJSON()
	}
	id, secret, ok := r.BasicAuth()
	if !ok || id != s.ClientID || secret != s.Secret {
		return jsonReply(http.StatusUnauthorized, `{"message": "Unauthorized", "error": 401}`).
			with("WWW-Authenticate", `Basic realm="reddit"`)
	}
	r.Body = http.MaxBytesReader(nil, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		return jsonReply(http.StatusBadRequest, `{"message": "Bad Request", "error": 400}`)
	}
	scope := r.PostForm.Get("scope")
	if scope == "" {
		scope = "*"
	}
	device := r.PostForm.Get("device_id")
	switch grant := r.PostForm.Get("grant_type"); {
	case strings.Trim(scope, "abcdefghijklmnopqrstuvwxyz*, ") != "":
		return oauthError("invalid_scope", "")
	case grant == "client_credentials" && s.opt.InstalledApp:
		return oauthError("unauthorized_client", "")
	case grant == "client_credentials":
		return s.grant(scope, "")
	case grant == "https://oauth.reddit.com/grants/installed_client":
		if device != "DO_NOT_TRACK_THIS_DEVICE" && (len(device) < 20 || len(device) > 50) {
			return oauthError("invalid_request", "bad device_id")
		}
		return s.grant(scope, device)
	}
	return oauthError("unsupported_grant_type", "")
}

// oauthError is an error with status 200, which is what Reddit sends.
func oauthError(code, description string) *reply {
	body := map[string]any{"error": code}
	if description != "" {
		body["error_description"] = description
	}
	b, _ := marshal(body) // strings only
	return jsonReply(http.StatusOK, string(b))
}

func (s *Server) grant(scope, device string) *reply {
	s.mu.Lock()
	s.issued++
	n := strconv.Itoa(s.issued)
	value := "emu." + base36(hash64(s.ClientID, "token", n), 13) + base36(hash64(s.ClientID, "more", n), 13)
	s.tokens[value] = token{expires: s.opt.Now().Add(s.opt.TokenLifetime), scope: scope}
	s.mu.Unlock()
	body := map[string]any{"access_token": value, "token_type": "bearer",
		"expires_in": int(s.opt.TokenLifetime / time.Second), "scope": scope}
	if device != "" {
		body["device_id"] = device
	}
	b, _ := marshal(body) // strings and an integer only
	return jsonReply(http.StatusOK, string(b)).with("Cache-Control", "max-age=0, must-revalidate")
}

// TokensIssued returns how many tokens were given out.
func (s *Server) TokensIssued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued
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
func (s *Server) api(r *http.Request) *reply {
	if rep := badAgent(r, false); rep != nil {
		return rep
	}
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "bearer") {
		return blocked()
	}
	s.mu.Lock()
	t, known := s.tokens[value]
	s.mu.Unlock()
	if !known || !s.opt.Now().Before(t.expires) {
		return unauthorized()
	}
	used, left, reset := s.charge("api", s.opt.RequestsPerWindow)
	if left < 0 {
		return limited(used, 0, reset)
	}
	var rep *reply
	if name, ok := aboutPath(r.URL.Path); !strings.Contains(" "+t.scope+" ", " read ") && t.scope != "*" {
		rep = insufficientScope()
	} else if r.URL.Path == "/api/info" {
		rep = s.info(r)
	} else if ok {
		rep = s.about(name)
	} else {
		rep = jsonReply(http.StatusNotFound, `{"message": "Not Found", "error": 404}`)
	}
	rateHeaders(rep, used, left, reset)
	return rep.with("Server", "snooserv", "Via", "1.1 varnish",
		"Cache-Control", "private, s-maxage=0, max-age=0, must-revalidate, no-store")
}

// rateHeaders writes the three headers in their recorded forms: "3", "997.0", "599".
func rateHeaders(rep *reply, used, left, reset int) {
	rep.with("X-Ratelimit-Used", strconv.Itoa(used), "X-Ratelimit-Remaining", strconv.Itoa(max(0, left))+".0",
		"X-Ratelimit-Reset", strconv.Itoa(reset))
}

// limited is the 429 of an exhausted window: empty, rate headers, Retry-After.
func limited(used, left, reset int) *reply {
	rep := newReply(http.StatusTooManyRequests, "text/plain", nil).with("Retry-After", strconv.Itoa(reset))
	rateHeaders(rep, used, left, reset)
	return rep
}

// askedIDs splits an id parameter as Reddit does. n counts all well-formed names, of
// links or not; malformed ones are dropped.
func askedIDs(param string) (links []manifest.PostID, n int) {
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
func (s *Server) info(r *http.Request) *reply {
	ids, n := askedIDs(r.URL.Query().Get("id"))
	if n > maxIDs {
		ids = nil
	}
	var things []json.RawMessage
	seen := map[manifest.PostID]bool{}
	s.mu.Lock()
	for _, id := range ids {
		if e := s.posts[id]; e != nil && !e.post.absent() && !seen[id] {
			things = append(things, e.thing)
		}
		seen[id] = true
	}
	s.mu.Unlock()
	return listing(things, r.URL.Query().Get("raw_json") == "1")
}

// listing puts things into the recorded envelope, their bytes untouched when raw. A
// client that does not ask for raw_json gets HTML entities in every string.
func listing(things []json.RawMessage, raw bool) *reply {
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
	return newReply(http.StatusOK, "application/json; charset=UTF-8", b.Bytes())
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
func (s *Server) about(name string) *reply {
	s.mu.Lock()
	reason, known := s.subs[strings.ToLower(name)]
	s.mu.Unlock()
	switch {
	case !known && subredditForm.MatchString(name):
		// A name that nobody has taken leads to the search for it (prawcore: Redirect).
		return redirectReply("https://" + apiHost + "/subreddits/search?q=" + name)
	case !known:
		return jsonReply(http.StatusNotFound, `{"message": "Not Found", "error": 404}`)
	case reason == "banned":
		return jsonReply(http.StatusNotFound, `{"reason": "banned", "message": "Not Found", "error": 404}`)
	case reason != "":
		return forbiddenReason(reason)
	}
	b, _ := marshal(map[string]any{"kind": "t5", "data": map[string]any{"display_name": name,
		"subreddit_type": "public", "title": CanaryTitle, "public_description": html.EscapeString(CanarySelftext)}})
	return jsonReply(http.StatusOK, string(b))
}
