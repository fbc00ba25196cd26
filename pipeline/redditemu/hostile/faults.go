package hostile

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

const apiHost = "oauth.reddit.com"

// A Fault says which requests to spoil, and how. The zero value of every field but
// Kind means "any" or "always".
type Fault struct {
	Host       string          // exact host name
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
	make   func(*Server, *http.Request) *redditemu.Reply
	change func(*Server, *http.Request, *redditemu.Reply)
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
	h := redditemu.Hash64(strconv.FormatUint(a.s.opt.Seed, 10), "share", strconv.Itoa(a.place), strconv.Itoa(n))
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
		ready := n > 0 && (a.fault.Every < 2 || n%a.fault.Every == 0) && a.picks(n) &&
			(a.fault.Times == 0 || a.fired < a.fault.Times)
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
	if f.Host != "" && f.Host != q.Host || !strings.HasPrefix(q.Path, f.PathPrefix) {
		return false
	}
	if f.Post == "" {
		return true
	}
	if slices.Contains(q.IDs, f.Post) {
		return true
	}
	var a *redditemu.Asset
	s.With(func(w *redditemu.World) { a = w.Asset(q.Host, r.URL.Path) })
	return a != nil && a.Post == f.Post
}

type reply = redditemu.Reply

// instead makes a kind that answers in place of the emulator.
func instead(name string, f func() *reply) FaultKind {
	return FaultKind{name: name, make: func(*Server, *http.Request) *reply { return f() }}
}

// Status answers with a status, headers and body of the caller's.
func Status(code int, header http.Header, body []byte) FaultKind {
	return instead("status "+strconv.Itoa(code), func() *reply {
		r := &reply{Status: code, Header: header.Clone(), Body: body}
		if r.Header == nil {
			r.Header = http.Header{}
		}
		return r
	})
}

// The three recorded kinds of 429.

// TooManyHTML is the page "whoa there, pardner!" with Retry-After in seconds and no rate headers.
func TooManyHTML(retryAfter int) FaultKind {
	return instead("429 html", func() *reply {
		return redditemu.NewReply(http.StatusTooManyRequests, "text/html; charset=UTF-8", fmt.Appendf(nil,
			"<!doctype html>\n<html>\n  <head>\n    <title>Too Many Requests</title>\n  </head>\n  <body>\n    <h1>whoa there, pardner!</h1>\n"+
				"    <p>we're sorry, but you appear to be a bot and we've seen too many requests from you lately. "+
				"please wait %d second(s) and try again.</p>\n  </body>\n</html>\n", retryAfter)).With("Retry-After",
			strconv.Itoa(retryAfter))
	})
}

// TooManyJSON is the JSON 429 without Retry-After and without rate headers.
func TooManyJSON() FaultKind {
	return instead("429 json", func() *reply {
		return redditemu.JSONReply(http.StatusTooManyRequests, `{"message": "Too Many Requests", "error": 429}`)
	})
}

// BlockedHTML is the page titled "Blocked".
func BlockedHTML() FaultKind { return instead("403 blocked", redditemu.Blocked) }

// ServerError is an HTML page with a 408 or 5xx status.
func ServerError(code int) FaultKind {
	return instead(strconv.Itoa(code), func() *reply { return redditemu.ServerError(code) })
}

// Reset cuts the connection with a TCP reset before any answer.
func Reset() FaultKind {
	return instead("reset", func() *reply { return &reply{Send: closing(nil, true)} })
}

// Hang never answers: the client must give up.
func Hang() FaultKind {
	return instead("hang", func() *reply {
		return &reply{Send: func(_ http.ResponseWriter, r *http.Request) {
			pause(r.Context(), time.Hour)
			panic(http.ErrAbortHandler)
		}}
	})
}

// TruncatedJSON sends the first half of the right body, JSON or an image, as a whole HTTP answer.
func TruncatedJSON() FaultKind {
	return changing("truncated json", func(rep *reply) { rep.Body = rep.Body[:len(rep.Body)/2] })
}

// TruncatedBody announces the right length and cuts the connection halfway.
func TruncatedBody() FaultKind {
	return changing("truncated body", func(rep *reply) { sendBody(rep, len(rep.Body), len(rep.Body)/2, 1, 0) })
}

// EmptyBody sends the right headers and no body.
func EmptyBody() FaultKind { return changing("empty body", func(rep *reply) { rep.Body = nil }) }

// HTML200 is an HTML page with status 200, where JSON or an image was asked for.
func HTML200() FaultKind {
	return instead("html 200", func() *reply {
		return redditemu.HTMLReply(http.StatusOK, "reddit: the front page of the internet", redditemu.CanaryTitle)
	})
}

// EmptyListing is a well-formed listing that holds nothing.
func EmptyListing() FaultKind {
	return instead("empty listing", func() *reply { return redditemu.Listing(nil) })
}

// RedirectTo answers 302 to an address.
func RedirectTo(url string) FaultKind {
	return instead("redirect", func() *reply { return redditemu.RedirectReply(url) })
}

// RateHeaders sends these values in place of the true ones, as they stand.
func RateHeaders(used, remaining, reset string) FaultKind {
	return changing("rate headers", func(rep *reply) {
		rep.With("X-Ratelimit-Used", used, "X-Ratelimit-Remaining", remaining, "X-Ratelimit-Reset", reset)
	})
}

// ExpireToken ends every token and answers the recorded JSON 401.
func ExpireToken() FaultKind {
	return expiring("expire token", redditemu.Unauthorized)
}

// ExpireTokenHTML does the same with an HTML body of 34 KB.
func ExpireTokenHTML() FaultKind {
	return expiring("expire token html", func() *reply {
		rep := redditemu.HTMLReply(http.StatusUnauthorized, "reddit.com: Unauthorized",
			strings.Repeat("who goes there? ", 2150))
		return rep.With("WWW-Authenticate", redditemu.Unauthorized().Header.Get("WWW-Authenticate"))
	})
}

func expiring(name string, f func() *reply) FaultKind {
	return FaultKind{name: name, make: func(s *Server, _ *http.Request) *reply {
		s.With(func(w *redditemu.World) {
			for token := range w.Tokens {
				w.Tokens[token] = time.Time{}
			}
		})
		return f()
	}}
}

// RegionBlock is imgur's picture for regions it does not serve: 200, 336x478, 34641 bytes.
func RegionBlock() FaultKind {
	return instead("region block", func() *reply {
		return redditemu.NewReply(http.StatusOK, "image/png", redditemu.GreyPNG(336, 478, 34641))
	})
}

// OverCapacity is imgur's JSON "temporarily over capacity", with 403 or 429.
func OverCapacity(code int) FaultKind {
	return instead("over capacity", func() *reply {
		return redditemu.NewReply(code, "application/json", fmt.Appendf(nil,
			`{"data":{"error":"Imgur is temporarily over capacity. Please try again later."},"success":false,"status":%d}`,
			code))
	})
}

func changing(name string, f func(*reply)) FaultKind {
	return FaultKind{name: name, change: func(_ *Server, _ *http.Request, rep *reply) { f(rep) }}
}

// Echo answers with a status and a page that repeats the request, its credentials among it,
// as error pages of proxies do. In page every REQUEST stands for the request in one line,
// with its Authorization as it was sent and decoded; JSON or HTML is made of it, as page
// begins with { or not.
func Echo(code int, page string) FaultKind {
	return FaultKind{name: fmt.Sprintf("echo %d", code), make: func(_ *Server, r *http.Request) *reply {
		text := requestLine(r)
		if strings.HasPrefix(page, "{") {
			quoted := strconv.Quote(text) // of ASCII: JSON as well
			return redditemu.JSONReply(code, strings.ReplaceAll(page, "REQUEST", quoted[1:len(quoted)-1]))
		}
		return redditemu.NewReply(code, "text/html; charset=UTF-8",
			[]byte(strings.ReplaceAll(page, "REQUEST", html.EscapeString(text))))
	}}
}

// requestLine is a request in one line.
func requestLine(r *http.Request) string {
	var b strings.Builder
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && kind == "Basic" {
		fmt.Fprintf(&b, "%s ", decoded)
	}
	fmt.Fprintf(&b, "%s %s https://%s%s", value, r.Method, r.Host, r.URL.RequestURI())
	for name, values := range r.Header {
		fmt.Fprintf(&b, " %s: %s", name, strings.Join(values, ", "))
	}
	return b.String()
}

// closing closes the connection in place of an answer: with a TCP reset, or in good order after bare
// bytes.
func closing(bytes []byte, reset bool) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = conn.Write(bytes)
		if t, ok := conn.(interface{ NetConn() net.Conn }); ok && reset {
			conn = t.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // discard what is unsent: close becomes a reset
		}
		_ = conn.Close()
	}
}

// sendBody makes a reply announce a body of so many bytes and send so many, in pieces over the time
// d. It cuts the connection when bytes are left. Write errors mean that the client has gone, which is
// its right.
func sendBody(rep *reply, announced, sent, pieces int, d time.Duration) {
	rep.Send = func(w http.ResponseWriter, r *http.Request) {
		for k, v := range rep.Header {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", strconv.Itoa(announced))
		w.WriteHeader(rep.Status)
		for i := range pieces {
			from, to := sent*i/pieces, sent*(i+1)/pieces
			if _, err := w.Write(rep.Body[from:to]); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			if d > 0 && !pause(r.Context(), d/time.Duration(pieces)) {
				return
			}
		}
		if announced != sent {
			panic(http.ErrAbortHandler) // cuts the connection; net/http does not log it
		}
	}
}

// pause waits, and reports false when the client or the server gave up first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
