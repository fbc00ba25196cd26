package redditemu

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest"
)

// A Fault says which requests to spoil, and how. The zero value of every field but
// Kind means "any" or "always".
type Fault struct {
	Host       string          // exact host name
	Method     string          // exact method
	PathPrefix string          // of the URL path
	Post       manifest.PostID // requests that ask /api/info for this post, or one of its images
	After      int             // let this many matching requests pass first
	Every      int             // then spoil each n-th of them; 0 = each
	Share      float64         // or this share of them, picked by the server's seed; 0 = each
	Times      int             // and at most so many; 0 = without end
	Kind       FaultKind
}

// A FaultKind is a way to spoil an answer: one of the functions of this package makes
// it. make answers in place of the emulator, change alters what the emulator answered.
type FaultKind struct {
	name   string
	make   func(*Server, *http.Request) *reply
	change func(*Server, *http.Request, *reply)
}

// String returns the kind's name, which Request.Fault repeats.
func (k FaultKind) String() string { return k.name }

// An Armed fault is one that was given to a server.
type Armed struct {
	s     *Server
	fault Fault
	place int // among all that were armed: each picks its share on its own
	seen  int // s.mu: matching requests
	fired int // s.mu
}

// Fault arms a fault. Of several that are due for one request the one armed first fires
// alone.
func (s *Server) Fault(f Fault) *Armed {
	a := &Armed{s: s, fault: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places++
	a.place = s.places
	s.armed = append(s.armed, a)
	return a
}

// picks reports whether the n-th matching request is in the fault's share. It follows from
// the seed alone: the same seed spoils the same places in the order of arrival.
func (a *Armed) picks(n int) bool {
	if a.fault.Share == 0 {
		return true
	}
	h := hash64(strconv.FormatUint(a.s.opt.Seed, 10), "share", strconv.Itoa(a.place), strconv.Itoa(n))
	return float64(h>>11)/(1<<53) < a.fault.Share
}

// Fired returns how many requests the fault spoiled.
func (a *Armed) Fired() int {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return a.fired
}

// Clear disarms the fault; its count stays.
func (a *Armed) Clear() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.s.armed = slices.DeleteFunc(a.s.armed, func(b *Armed) bool { return a == b })
}

// ClearFaults disarms every fault.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = nil
}

// due returns the fault to fire on a request, or nil. Every matching fault counts the
// request, whether it fires or not.
func (s *Server) due(q Request, r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fire *Armed
	for _, a := range s.armed {
		if !s.matches(&a.fault, q, r) {
			continue
		}
		a.seen++
		n := a.seen - a.fault.After
		ready := n > 0 && (a.fault.Every < 2 || n%a.fault.Every == 0) && a.picks(n) && (a.fault.Times == 0 || a.fired < a.fault.Times)
		if ready && fire == nil {
			fire = a
		}
	}
	if fire == nil {
		return nil
	}
	fire.fired++
	return &fire.fault
}

// matches needs mu.
func (s *Server) matches(f *Fault, q Request, r *http.Request) bool {
	if f.Host != "" && f.Host != q.Host || f.Method != "" && f.Method != q.Method || !strings.HasPrefix(q.Path, f.PathPrefix) {
		return false
	}
	if f.Post == "" {
		return true
	}
	a := s.assets[assetKey(q.Host, r.URL.Path)]
	return slices.Contains(q.IDs, f.Post) || a != nil && a.post == f.Post
}

// instead makes a kind that answers in place of the emulator.
func instead(name string, f func() *reply) FaultKind {
	return FaultKind{name: name, make: func(*Server, *http.Request) *reply { return f() }}
}

// Status answers with a status, headers and body of the caller's.
func Status(code int, header http.Header, body []byte) FaultKind {
	return instead("status "+strconv.Itoa(code), func() *reply {
		r := &reply{status: code, header: header.Clone(), body: body, cut: -1}
		if r.header == nil {
			r.header = http.Header{}
		}
		return r
	})
}

// The three recorded kinds of 429.

// TooManyHTML is the page "whoa there, pardner!" with Retry-After in seconds and no rate headers.
func TooManyHTML(retryAfter int) FaultKind {
	return instead("429 html", func() *reply { return tooManyHTML(retryAfter) })
}

// TooManyJSON is the JSON 429 without Retry-After and without rate headers.
func TooManyJSON() FaultKind { return instead("429 json", tooManyJSON) }

// TooManyEmpty is the empty 429 with the rate headers of a window that ends in reset seconds.
func TooManyEmpty(reset int) FaultKind {
	return FaultKind{name: "429 empty", make: func(s *Server, _ *http.Request) *reply {
		rep := limited(s.opt.RequestsPerWindow, 0, reset)
		rep.header.Del("Retry-After")
		return rep
	}}
}

// The three recorded pages of a block, all 403.

// BlockedHTML is the page titled "Blocked".
func BlockedHTML() FaultKind { return instead("403 blocked", blocked) }

// NetworkSecurityHTML is the newer page, "You've been blocked by network security".
func NetworkSecurityHTML() FaultKind { return instead("403 network security", networkSecurity) }

// AdministrativeHTML is the page of 93 bytes, "Request forbidden by administrative rules".
func AdministrativeHTML() FaultKind { return instead("403 administrative", administrative) }

// ForbiddenReason is a JSON 403 with a reason: private, quarantined, gated.
func ForbiddenReason(reason string) FaultKind {
	return instead("403 "+reason, func() *reply { return forbiddenReason(reason) })
}

// ForbiddenRetryAfter is a 403 that is rate limiting: it carries Retry-After.
func ForbiddenRetryAfter(seconds int) FaultKind {
	return instead("403 retry-after", func() *reply {
		return jsonReply(http.StatusForbidden, `{"message": "Forbidden", "error": 403}`).with("Retry-After", strconv.Itoa(seconds))
	})
}

// URITooLong is Varnish's 414: text/plain with Retry-After 0.
func URITooLong() FaultKind {
	return instead("414", func() *reply {
		return newReply(http.StatusRequestURITooLong, "text/plain", []byte("414 URI Too Long\n")).with("Retry-After", "0")
	})
}

// LegalReasons is a 451.
func LegalReasons() FaultKind {
	return instead("451", func() *reply {
		return htmlReply(http.StatusUnavailableForLegalReasons, "451", "Unavailable For Legal Reasons")
	})
}

// ServerError is an HTML page with a 408 or 5xx status.
func ServerError(code int) FaultKind {
	return instead(strconv.Itoa(code), func() *reply { return serverError(code) })
}

// Reset cuts the connection with a TCP reset before any answer.
func Reset() FaultKind {
	return instead("reset", func() *reply { return &reply{reset: true, cut: -1} })
}

// Hang never answers: the client must give up.
func Hang() FaultKind {
	return instead("hang", func() *reply { return &reply{hang: true, cut: -1} })
}

// TruncatedJSON sends the first half of the right body, JSON or an image, as a whole HTTP answer.
func TruncatedJSON() FaultKind {
	return changing("truncated json", func(rep *reply) { rep.body = rep.body[:len(rep.body)/2] })
}

// TruncatedBody announces the right length and cuts the connection halfway.
func TruncatedBody() FaultKind {
	return changing("truncated body", func(rep *reply) { rep.cut = len(rep.body) / 2 })
}

// EmptyBody sends the right headers and no body.
func EmptyBody() FaultKind { return changing("empty body", func(rep *reply) { rep.body = nil }) }

// SlowBody spreads the body over the time d.
func SlowBody(d time.Duration) FaultKind {
	return changing("slow body", func(rep *reply) { rep.slow = d })
}

// HTML200 is an HTML page with status 200, where JSON or an image was asked for.
func HTML200() FaultKind {
	return instead("html 200", func() *reply { return htmlReply(http.StatusOK, "reddit: the front page of the internet", CanaryTitle) })
}

// EmptyListing is a well-formed listing that holds nothing.
func EmptyListing() FaultKind {
	return instead("empty listing", func() *reply { return listing(nil, true) })
}

// ExtraChild adds a post that nobody asked for to a listing.
func ExtraChild(p Post) FaultKind {
	return FaultKind{name: "extra child", change: func(s *Server, _ *http.Request, rep *reply) {
		thing, err := p.Thing()
		if err != nil {
			*rep = *drawFailed(err)
			return
		}
		rep.body = addChild(rep.body, thing)
	}}
}

// DuplicateChild repeats the first post of a listing at its end.
func DuplicateChild() FaultKind {
	return FaultKind{name: "duplicate child", change: func(s *Server, r *http.Request, rep *reply) {
		ids, _ := askedIDs(r.URL.Query().Get("id"))
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, id := range ids {
			if e := s.posts[id]; e != nil && !e.post.absent() {
				rep.body = addChild(rep.body, e.thing)
				return
			}
		}
	}}
}

// addChild puts one more thing at the end of a listing that this package wrote.
func addChild(body, thing []byte) []byte {
	head, ok := strings.CutSuffix(string(body), "]}}")
	if !ok {
		return body
	}
	if !strings.HasSuffix(head, "[") {
		head += ", "
	}
	return []byte(head + string(thing) + "]}}")
}

// RedirectTo answers 302 to an address.
func RedirectTo(url string) FaultKind {
	return instead("redirect", func() *reply { return redirectReply(url) })
}

// NoRateHeaders leaves the three x-ratelimit headers out.
func NoRateHeaders() FaultKind {
	return changing("no rate headers", func(rep *reply) {
		for _, h := range []string{"Used", "Remaining", "Reset"} {
			rep.header.Del("X-Ratelimit-" + h)
		}
	})
}

// RateHeaders sends these values in place of the true ones, as they stand.
func RateHeaders(used, remaining, reset string) FaultKind {
	return changing("rate headers", func(rep *reply) {
		rep.with("X-Ratelimit-Used", used, "X-Ratelimit-Remaining", remaining, "X-Ratelimit-Reset", reset)
	})
}

// OAuthError200 is an OAuth2 error with status 200: invalid_request,
// unsupported_grant_type, unauthorized_client, invalid_scope.
func OAuthError200(code string) FaultKind {
	return instead("oauth "+code, func() *reply { return oauthError(code, "") })
}

// ExpireToken ends every token and answers the recorded JSON 401.
func ExpireToken() FaultKind {
	return expiring("expire token", unauthorized)
}

// ExpireTokenHTML does the same with an HTML body of 34 KB.
func ExpireTokenHTML() FaultKind {
	return expiring("expire token html", func() *reply {
		rep := htmlReply(http.StatusUnauthorized, "reddit.com: Unauthorized", strings.Repeat("who goes there? ", 2150))
		return rep.with("WWW-Authenticate", unauthorized().header.Get("WWW-Authenticate"))
	})
}

func expiring(name string, f func() *reply) FaultKind {
	return FaultKind{name: name, make: func(s *Server, _ *http.Request) *reply {
		s.mu.Lock()
		clear(s.tokens)
		s.mu.Unlock()
		return f()
	}}
}

// InsufficientScope is the 403 of a token whose scope is too small.
func InsufficientScope() FaultKind { return instead("insufficient scope", insufficientScope) }

// BadCredentials is the 401 of the token endpoint.
func BadCredentials() FaultKind {
	return instead("bad credentials", func() *reply {
		return jsonReply(http.StatusUnauthorized, `{"message": "Unauthorized", "error": 401}`).
			with("WWW-Authenticate", `Basic realm="reddit"`)
	})
}

// Placeholder404PNG is a 404 whose body is a grey PNG of 130x60 pixels and 1048 bytes.
func Placeholder404PNG() FaultKind { return instead("placeholder png", placeholder404) }

// ImgurRemovedRedirect redirects to https://i.imgur.com/removed.png.
func ImgurRemovedRedirect() FaultKind { return RedirectTo("https://i.imgur.com/removed.png") }

// RegionBlock is imgur's picture for regions it does not serve: 200, 336x478, 34641 bytes.
func RegionBlock() FaultKind { return instead("region block", regionBlock) }

// OverCapacity is imgur's JSON "temporarily over capacity", with 403 or 429.
func OverCapacity(code int) FaultKind {
	return instead("over capacity", func() *reply {
		return newReply(code, "application/json", fmt.Appendf(nil,
			`{"data":{"error":"Imgur is temporarily over capacity. Please try again later."},"success":false,"status":%d}`, code))
	})
}

func changing(name string, f func(*reply)) FaultKind {
	return FaultKind{name: name, change: func(_ *Server, _ *http.Request, rep *reply) { f(rep) }}
}

func tooManyHTML(retryAfter int) *reply {
	return newReply(http.StatusTooManyRequests, "text/html; charset=UTF-8", fmt.Appendf(nil,
		"<!doctype html>\n<html>\n  <head>\n    <title>Too Many Requests</title>\n  </head>\n  <body>\n    <h1>whoa there, pardner!</h1>\n"+
			"    <p>we're sorry, but you appear to be a bot and we've seen too many requests from you lately. "+
			"please wait %d second(s) and try again.</p>\n  </body>\n</html>\n", retryAfter)).with("Retry-After", strconv.Itoa(retryAfter))
}

func tooManyJSON() *reply {
	return jsonReply(http.StatusTooManyRequests, `{"message": "Too Many Requests", "error": 429}`)
}

func blocked() *reply {
	return htmlReply(http.StatusForbidden, "Blocked", "whoa there, pardner! Your request has been blocked due to a network policy. "+
		"If you're running a script or application, please register or sign in with your developer credentials, and make sure "+
		"your User-Agent is not empty and is something unique and descriptive.")
}

func networkSecurity() *reply {
	return htmlReply(http.StatusForbidden, "Reddit - Blocked", "You've been blocked by network security. "+
		"To continue, log in to your account or use your developer token.")
}

// administrative is the page of exactly 93 bytes that was recorded.
func administrative() *reply {
	return newReply(http.StatusForbidden, "text/html",
		[]byte("<html><body><h1>403 Forbidden</h1>\nRequest forbidden by administrative rules.\n</body></html>\n"))
}

func forbiddenReason(reason string) *reply {
	return jsonReply(http.StatusForbidden, fmt.Sprintf(`{"reason": %q, "message": "Forbidden", "error": 403}`, reason))
}

func serverError(code int) *reply {
	text := http.StatusText(code)
	if text == "" {
		text = "Error" // 520 and 522 are Cloudflare's own
	}
	return htmlReply(code, strconv.Itoa(code)+" "+text, "Our CDN was unable to reach our servers")
}

func unauthorized() *reply {
	return jsonReply(http.StatusUnauthorized, `{"message": "Unauthorized", "error": 401}`).
		with("WWW-Authenticate", `Bearer realm="reddit", error="invalid_token"`)
}

func insufficientScope() *reply {
	return jsonReply(http.StatusForbidden, `{"message": "Forbidden", "error": 403}`).
		with("WWW-Authenticate", `Bearer realm="reddit", error="insufficient_scope"`)
}
