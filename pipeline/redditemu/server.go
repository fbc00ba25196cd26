package redditemu

import (
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"rehydrate/manifest"
)

// Options configure an emulator. The zero value is a good default.
type Options struct {
	Seed              uint64              // of tokens and client credentials; pictures follow from their Spec alone
	RequestsPerWindow int                 // of one client id at oauth.reddit.com; 0 = 1000, as recorded since 2023
	Window            time.Duration       // 0 = 600 s; windows are aligned to the epoch
	TokenLifetime     time.Duration       // 0 = 24 h, as recorded since 2022
	Hosts             []string            // more host names to answer for (a mirror, a host that no policy allows)
	Now               func() time.Time    // nil = time.Now
	Log               *slog.Logger        // one debug line a request; nil = discard
	Plant             func([]byte) []byte // changes each drawn picture; nil = leaves it as drawn
	// Around, when not nil, answers every request: with what next answers, or with something else.
	Around func(r *http.Request, next func() *Reply) *Reply
}

// A Server is a running emulator. Its methods are safe for concurrent use.
type Server struct {
	ClientID string // the one app it knows
	Secret   string
	// ImgurClientID is the one app that api.imgur.com knows.
	ImgurClientID string

	opt  Options
	cert tls.Certificate
	ln   net.Listener
	http *http.Server
	wg   sync.WaitGroup // the serving goroutine

	mu     sync.Mutex
	world  World // mu
	window int64 // mu: the window of rate limits that used counts in
	used   int   // mu: requests of the API
}

// A World is what an emulator knows.
type World struct {
	Posts  map[manifest.PostID]Post
	Tokens map[string]time.Time // the bearer tokens that were given out, good or run out, and when they end
	subs   map[string]string    // subreddit, lower case -> reason that /about gives, "" = public
	assets map[string]*Asset    // host + path
}

// With calls f with all that the server knows, while no request can see it.
func (s *Server) With(f func(*World)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.world)
}

// Start begins to listen on 127.0.0.1 and returns at once. Close it when done.
func Start(o Options) (*Server, error) {
	o.RequestsPerWindow = cmp.Or(o.RequestsPerWindow, 1000)
	o.Window = cmp.Or(o.Window, 600*time.Second)
	o.TokenLifetime = cmp.Or(o.TokenLifetime, 24*time.Hour)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Around == nil {
		o.Around = func(_ *http.Request, next func() *Reply) *Reply { return next() }
	}
	cert, err := newCertificate(append(hosts(), o.Hosts...), time.Now())
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	seed := fmt.Sprint(o.Seed)
	s := &Server{
		ClientID:      "emu" + base36(Hash64(seed, "client"), 11),
		Secret:        base36(Hash64(seed, "secret", "a"), 13) + base36(Hash64(seed, "secret", "b"), 13),
		ImgurClientID: base36(Hash64(seed, "imgur"), 12) + "emu",
		opt:           o, cert: cert, ln: ln,
		world: World{Posts: map[manifest.PostID]Post{}, Tokens: map[string]time.Time{}, subs: map[string]string{},
			assets: map[string]*Asset{}},
	}
	s.http = &http.Server{
		Handler:   http.HandlerFunc(s.serve),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ErrorLog:  slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), ReadHeaderTimeout: 30 * time.Second,
		// HTTP/1.1 alone: a connection reset cannot be told to one HTTP/2 stream.
		Protocols: new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true)
	s.wg.Go(func() {
		if err := s.http.ServeTLS(ln, "", ""); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("emulator stopped", "error", err)
		}
	})
	return s, nil
}

// Close stops listening and cuts open connections. A second Close does nothing.
func (s *Server) Close() {
	s.http.Close() // its error is that of closing sockets we are done with
	s.wg.Wait()
}

// Addr returns the address it listens on, 127.0.0.1:PORT.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// ConnectTo returns the rule that sends every host and port to it, in curl's form:
// ::127.0.0.1:PORT.
func (s *Server) ConnectTo() string { return "::" + s.Addr() }

// CAPEM returns the certificate of its authority, PEM encoded. It holds for a day.
func (s *Server) CAPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Certificate[0]})
}

// Put adds posts, or puts them in place of those of the same id.
func (s *Server) Put(posts ...Post) error {
	for _, p := range posts {
		if _, err := manifestID(string(p.ID)); err != nil {
			return fmt.Errorf("put post: %w", err)
		}
		s.With(func(w *World) { w.Put(p) })
	}
	return nil
}

// Put is Server.Put for one post of a well-formed id.
func (w *World) Put(p Post) {
	p = p.normalized()
	w.Posts[p.ID] = p
	w.subs[strings.ToLower(p.Subreddit)] = absence[p.Condition]
	owner := p
	if p.Kind == KindCrosspost {
		owner = *p.Parent
	}
	// The images of an older post of this id stay where they were: so it is with a real content network.
	for i, u := range owner.URLs() {
		if u == "" {
			continue
		}
		for _, key := range owner.addresses(i) {
			w.assets[key] = &Asset{Post: p.ID, URL: u, of: owner, place: i}
		}
	}
}

// Asset returns the image at an address, nil when there is none.
func (w *World) Asset(host, path string) *Asset { return w.assets[assetKey(host, path)] }

// manifestID checks an id that must be written as Reddit writes it, without its prefix.
func manifestID(s string) (manifest.PostID, error) {
	id, err := manifest.ParsePostID(s)
	if err == nil && string(id) != s {
		err = fmt.Errorf("id %q: want base-36 digits in lower case", s)
	}
	return id, err
}

// serve is the handler of every host.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	next := func() *Reply { return s.answer(r) }
	// What Around changed is logged and sent like any other answer.
	rep := s.opt.Around(r, next)
	s.opt.Log.Debug("emulator", "host", HostOf(r), "path", r.URL.Path, "status", rep.Status)
	// The connection must not be reused after a body that was not read.
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
	rep.send(w, r)
}

// answer routes by host.
func (s *Server) answer(r *http.Request) *Reply {
	host := HostOf(r)
	// A client that keeps connections must not send a host's credentials over that of another one.
	if r.TLS != nil && r.TLS.ServerName != "" && !strings.EqualFold(r.TLS.ServerName, host) {
		return NewReply(http.StatusMisdirectedRequest, "text/plain", []byte("misdirected request\n"))
	}
	switch host {
	case apiHost:
		return s.api(r)
	case wwwHost:
		return s.www(r)
	}
	return s.image(host, r)
}

// send writes a reply out.
func (r *Reply) send(w http.ResponseWriter, req *http.Request) {
	if r.Send != nil {
		r.Send(w, req)
		return
	}
	maps.Copy(w.Header(), r.Header)
	if r.Stream == nil {
		// Also for an empty body: a client can tell it from one that was cut.
		w.Header().Set("Content-Length", fmt.Sprint(len(r.Body)))
	}
	w.WriteHeader(r.Status)
	if r.Stream == nil {
		_, _ = w.Write(r.Body) // fails mostly because the client has gone, which is its right
	} else if err := r.Stream(w); err != nil {
		panic(http.ErrAbortHandler) // cuts the connection; net/http does not log it
	}
}

// HostOf returns the host that a request names, in lower case and without a port.
func HostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(host)
}
