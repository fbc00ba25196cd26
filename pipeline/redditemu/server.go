package redditemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"rehydrate/manifest"
)

// Options configure an emulator. The zero value is a good default.
type Options struct {
	Seed              uint64           // of tokens and client credentials; pictures follow from their Spec alone
	RequestsPerWindow int              // of one client id at oauth.reddit.com; 0 = 1000, as recorded since 2023
	Window            time.Duration    // 0 = 600 s; windows are aligned to the epoch
	TokenLifetime     time.Duration    // 0 = 24 h, as recorded since 2022
	InstalledApp      bool             // the client has no secret: Secret is "", client_credentials is refused
	Hosts             []string         // more host names to answer for (a mirror, a host that no policy allows)
	CacheBytes        int64            // bound of the drawn images kept in memory; 0 = 64 MiB
	LogLimit          int              // requests kept for Requests; 0 = 100,000
	Now               func() time.Time // nil = time.Now
	Log               *slog.Logger     // one debug line a request; nil = discard
}

// A Request is one request as the emulator saw it, with the status it answered.
type Request struct {
	Time      time.Time
	Host      string // without port
	Method    string
	Path      string
	Query     string
	IDs       []manifest.PostID // asked of /api/info, in order, well-formed ones only
	UserAgent string
	Auth      string // none, basic, bearer, client-id or other: the kind of Authorization header
	Referer   string
	Cookie    string
	Status    int // 0 when the connection was cut before an answer
	Bytes     int // of the body that was meant to be sent
	Fault     string
}

// A Server is a running emulator. Its methods are safe for concurrent use.
type Server struct {
	ClientID string // the one app it knows
	Secret   string
	// ImgurClientID is the one app that api.imgur.com knows.
	ImgurClientID string

	opt  Options
	ca   *authority
	ln   net.Listener
	http *http.Server
	done chan struct{}  // closed by Close
	wg   sync.WaitGroup // the serving goroutine and one count per open connection

	mu       sync.Mutex
	posts    map[manifest.PostID]*entry  // mu
	subs     map[string]string           // mu: subreddit, lower case -> reason that /about gives, "" = public
	assets   map[string]*asset           // mu: host + path
	tokens   map[string]token            // mu
	issued   int                         // mu
	buckets  map[string]*bucket          // mu: per client id and endpoint
	armed    []*Armed                    // mu
	places   int                         // mu: faults that were ever armed
	requests []Request                   // mu
	observer func(Request)               // mu
	conns    map[net.Conn]http.ConnState // mu: open connections
	cache    cache
}

// entry is a post with its image addresses, so that Update can take them back.
type entry struct {
	post  Post
	thing json.RawMessage
	keys  []string
}

// Start begins to listen on 127.0.0.1 and returns at once. Close it when done.
func Start(o Options) (*Server, error) {
	o = o.withDefaults()
	ca, err := newAuthority(append(hosts(), o.Hosts...), time.Now())
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	seed := fmt.Sprint(o.Seed)
	s := &Server{
		ClientID: "emu" + base36(hash64(seed, "client"), 11),
		opt:      o, ca: ca, ln: ln, done: make(chan struct{}),
		posts: map[manifest.PostID]*entry{}, subs: map[string]string{}, assets: map[string]*asset{},
		tokens: map[string]token{}, buckets: map[string]*bucket{}, conns: map[net.Conn]http.ConnState{},
		cache: cache{limit: o.CacheBytes},
	}
	s.ImgurClientID = base36(hash64(seed, "imgur"), 12) + "emu"
	if !o.InstalledApp {
		s.Secret = base36(hash64(seed, "secret", "a"), 13) + base36(hash64(seed, "secret", "b"), 13)
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), TLSConfig: ca.tlsConfig(), ConnState: s.track,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), ReadHeaderTimeout: 30 * time.Second,
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

func (o Options) withDefaults() Options {
	if o.RequestsPerWindow == 0 {
		o.RequestsPerWindow = 1000
	}
	if o.Window == 0 {
		o.Window = 600 * time.Second
	}
	if o.TokenLifetime == 0 {
		o.TokenLifetime = 24 * time.Hour
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.LogLimit == 0 {
		o.LogLimit = 100_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Close stops listening, cuts open connections and waits until no goroutine of the
// server is left. A second Close does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
		s.mu.Unlock()
		return
	default:
		close(s.done)
	}
	s.mu.Unlock()
	s.http.Close() // its error is that of closing sockets we are done with
	s.wg.Wait()
}

// track counts open connections for Close. A hijacked one is closed by its handler.
func (s *Server) track(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.conns[c]
	switch {
	case state == http.StateNew && !known:
		s.wg.Add(1)
		s.conns[c] = state
	case (state == http.StateClosed || state == http.StateHijacked) && known:
		delete(s.conns, c)
		s.wg.Done()
	}
}

// Addr returns the address it listens on, 127.0.0.1:PORT.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// ConnectTo returns the rule that sends every host and port to it, in curl's form:
// ::127.0.0.1:PORT.
func (s *Server) ConnectTo() string { return "::" + s.Addr() }

// CAPEM returns the certificate of its authority, PEM encoded. It holds for a day.
func (s *Server) CAPEM() []byte { return s.ca.pem }

// Requests returns what was asked so far, oldest first. A request is in it before the
// first byte of its answer is sent.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ForgetRequests empties the log.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// OnRequest has f called once for every request that arrives, before it is answered
// (Status and Bytes are 0). f may call Update, Put and Remove: so a test makes a post
// vanish between two steps of a client.
func (s *Server) OnRequest(f func(Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observer = f
}

// Put adds posts, or replaces those of the same id.
func (s *Server) Put(posts ...Post) error {
	for _, p := range posts {
		if _, err := manifestID(string(p.ID)); err != nil {
			return fmt.Errorf("put post: %w", err)
		}
		p = p.normalized()
		e, images, err := newEntry(p)
		if err != nil {
			return fmt.Errorf("put post: %w", err)
		}
		s.mu.Lock()
		s.drop(p.ID)
		s.install(e, images)
		s.mu.Unlock()
	}
	return nil
}

// PutRecorded serves a recorded thing exactly as it is, and at every image address it
// names the image img, or one drawn for that address when img is nil.
func (s *Server) PutRecorded(thing json.RawMessage, img []byte) error {
	var t struct {
		Kind string
		Data map[string]any
	}
	if err := json.Unmarshal(thing, &t); err != nil {
		return fmt.Errorf("put recorded thing: %w", err)
	}
	name, _ := t.Data["id"].(string)
	id, err := manifestID(name)
	if err != nil || t.Kind != "t3" {
		return fmt.Errorf("put recorded thing: kind %q id %q is not a link", t.Kind, name)
	}
	e := &entry{post: Post{ID: id, Raw: thing}, thing: thing}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
	s.posts[id] = e
	for _, v := range recordedAddresses(t.Data) {
		if !imageHost(v.host) {
			continue
		}
		image := Image{Body: img, Spec: Spec{Seed: hash64(bareName(v.path)), Format: formatOf(v.path)}}
		s.serveAt(e, v, &asset{post: id, image: image})
	}
	return nil
}

// Update changes a post under the server's feet. Its images stay where they were,
// also when the post is deleted: what a real content network does. f must not call
// methods of the server.
func (s *Server) Update(id manifest.PostID, f func(*Post)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.posts[id]
	if !ok {
		return fmt.Errorf("update post %s: the emulator does not have it", id)
	}
	p := old.post
	before := p.Condition
	f(&p)
	p.ID = id
	if p.Condition != before && p.Want == old.post.Want {
		p.Want = "" // follows the condition, unless f set it
	}
	p = p.normalized()
	e, images, err := newEntry(p)
	if err != nil {
		return fmt.Errorf("update post: %w", err)
	}
	e.keys = old.keys // a recorded post keeps the addresses that only it knows
	s.install(e, images)
	return nil
}

// Remove makes Reddit forget posts. Their images stay on the image hosts.
func (s *Server) Remove(ids ...manifest.PostID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.posts, id)
	}
}

// Posts returns the ids of the posts it has, in no order.
func (s *Server) Posts() []manifest.PostID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]manifest.PostID, 0, len(s.posts))
	for id := range s.posts {
		ids = append(ids, id)
	}
	return ids
}

// Post returns a post as the emulator has it now.
func (s *Server) Post(id manifest.PostID) (Post, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.posts[id]
	if !ok {
		return Post{}, false
	}
	return e.post, true
}

// newEntry prepares what install puts in place: the JSON once, the images by address.
func newEntry(p Post) (*entry, map[variant]*asset, error) {
	thing, err := p.Thing()
	if err != nil {
		return nil, nil, err
	}
	images := map[variant]*asset{}
	owner := p
	if p.Kind == KindCrosspost {
		owner = *p.Parent
	}
	for i, vs := range owner.addresses() {
		a := &asset{post: p.ID, image: owner.Images[i]}
		for _, v := range vs {
			images[v] = a
		}
	}
	return &entry{post: p, thing: thing}, images, nil
}

// install needs mu.
func (s *Server) install(e *entry, images map[variant]*asset) {
	p := e.post
	s.posts[p.ID] = e
	s.subs[strings.ToLower(p.Subreddit)] = absence[p.Condition]
	for v, a := range images {
		s.serveAt(e, v, a)
	}
}

// serveAt needs mu. Several signed queries may name one path.
func (s *Server) serveAt(e *entry, v variant, a *asset) {
	key := assetKey(v.host, v.path)
	if v.query != "" {
		a.queries = []string{v.query}
		if old := s.assets[key]; old != nil && old.post == a.post {
			a.queries = append(a.queries, old.queries...)
		}
	}
	s.assets[key] = a
	e.keys = append(e.keys, key)
}

// drop needs mu. It takes a post and its images away.
func (s *Server) drop(id manifest.PostID) {
	old, ok := s.posts[id]
	if !ok {
		return
	}
	for _, key := range old.keys {
		if a := s.assets[key]; a != nil && a.post == id {
			delete(s.assets, key)
		}
	}
	delete(s.posts, id)
}

// manifestID checks an id without its prefix: base 36, at most 13 digits.
func manifestID(s string) (manifest.PostID, error) {
	if len(s) == 0 || len(s) > 13 {
		return "", fmt.Errorf("id %q: want 1 to 13 base-36 digits", s)
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return "", fmt.Errorf("id %q: want base-36 digits in lower case", s)
		}
	}
	return manifest.PostID(s), nil
}

// A reply is one answer before it is sent. Faults change it.
type reply struct {
	status int
	header http.Header
	body   []byte

	// stream, when not nil, writes the body in place of body; length is announced, 0 = in
	// chunks, without a length. Its error cuts the connection.
	stream func(io.Writer) error
	length int64

	reset bool          // cut the connection, no answer
	shut  bool          // close the connection in good order, no answer
	hang  bool          // wait until the client gives up
	cut   int           // send so many bytes of the body, then cut; -1 = all
	extra int           // announce so many bytes more than the body has, or fewer
	slow  time.Duration // spread the body over this time
	drip  bool          // one byte of the body a second
}

func newReply(status int, contentType string, body []byte) *reply {
	return &reply{status: status, header: http.Header{"Content-Type": {contentType}}, body: body, cut: -1}
}

func (r *reply) with(kv ...string) *reply {
	for i := 0; i < len(kv); i += 2 {
		r.header.Set(kv[i], kv[i+1])
	}
	return r
}

func jsonReply(status int, body string) *reply {
	return newReply(status, "application/json; charset=UTF-8", []byte(body))
}

func htmlReply(status int, title, text string) *reply {
	page := "<!doctype html>\n<html>\n  <head>\n    <title>" + title + "</title>\n  </head>\n  <body>\n    <h1>" +
		title + "</h1>\n    <p>" + text + "</p>\n  </body>\n</html>\n"
	return newReply(status, "text/html; charset=UTF-8", []byte(page))
}

func redirectReply(to string) *reply {
	return newReply(http.StatusFound, "text/html; charset=utf-8", nil).with("Location", to)
}

// serve is the handler of every host.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	entry := s.describe(r)
	s.mu.Lock()
	observer := s.observer
	s.mu.Unlock()
	if observer != nil {
		observer(entry)
	}
	fault := s.due(entry, r)
	var rep *reply
	if fault != nil && fault.Kind.make != nil {
		rep = fault.Kind.make(s, r)
	} else {
		rep = s.answer(r)
	}
	if fault != nil {
		entry.Fault = fault.Kind.name
		if fault.Kind.change != nil {
			fault.Kind.change(s, r, rep)
		}
	}
	entry.Status, entry.Bytes = rep.status, len(rep.body)+int(rep.length)
	if rep.reset || rep.shut || rep.hang {
		entry.Status, entry.Bytes = 0, 0
	}
	s.log(entry)
	s.send(w, r, rep)
}

// describe makes the log entry of a request before it is answered.
func (s *Server) describe(r *http.Request) Request {
	q := Request{Time: s.opt.Now(), Host: hostOf(r), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		UserAgent: r.UserAgent(), Referer: r.Referer(), Cookie: r.Header.Get("Cookie"), Auth: "none"}
	if kind, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); kind != "" {
		switch k := strings.ToLower(kind); k {
		case "basic", "bearer", "client-id":
			q.Auth = k
		default:
			q.Auth = "other"
		}
	}
	if q.Host == apiHost && r.URL.Path == "/api/info" {
		q.IDs, _ = askedIDs(r.URL.Query().Get("id"))
	}
	return q
}

func (s *Server) log(q Request) {
	s.opt.Log.Debug("emulator", "host", q.Host, "path", q.Path, "status", q.Status, "fault", q.Fault)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) >= s.opt.LogLimit {
		s.requests = append(s.requests[:0], s.requests[len(s.requests)/2:]...)
	}
	s.requests = append(s.requests, q)
}

// answer routes by host. A name in the TLS handshake other than the Host is misdirected.
func (s *Server) answer(r *http.Request) *reply {
	host := hostOf(r)
	if r.TLS != nil && r.TLS.ServerName != "" && !strings.EqualFold(r.TLS.ServerName, host) {
		return newReply(http.StatusMisdirectedRequest, "text/plain", []byte("misdirected request\n"))
	}
	switch host {
	case apiHost:
		return s.api(r)
	case wwwHost:
		return s.www(r)
	}
	return s.image(host, r)
}

// send writes a reply out, with the ill manners it asks for.
func (s *Server) send(w http.ResponseWriter, r *http.Request, rep *reply) {
	// The connection must not be reused after a body nobody read.
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
	switch {
	case rep.reset, rep.shut:
		dropConnection(w, rep)
		return
	case rep.hang:
		s.pause(r.Context(), time.Hour)
		panic(http.ErrAbortHandler)
	}
	for k, v := range rep.header {
		w.Header()[k] = v
	}
	if n := int64(len(rep.body)+rep.extra) + rep.length; rep.stream == nil || n > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(n))
	}
	w.WriteHeader(rep.status)
	if r.Method == http.MethodHead {
		return
	}
	if rep.stream != nil {
		if err := rep.stream(w); err != nil {
			panic(http.ErrAbortHandler) // mostly the client has gone, which is its right
		}
		return
	}
	body := rep.body[:len(rep.body)+min(rep.extra, 0)]
	if rep.cut >= 0 && rep.cut < len(body) {
		body = body[:rep.cut]
	}
	if rep.drip {
		s.drip(w, r, body)
		return
	}
	s.trickle(w, r, body, rep.slow)
	if len(body) < len(rep.body) {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // cuts the connection; net/http does not log it
	}
}

// trickle writes body, in ten pieces over the time slow when that is not zero. Write
// errors mean that the client has gone, which is its right.
func (s *Server) trickle(w http.ResponseWriter, r *http.Request, body []byte, slow time.Duration) {
	if slow <= 0 {
		_, _ = w.Write(body)
		return
	}
	const pieces = 10
	for i := range pieces {
		from, to := len(body)*i/pieces, len(body)*(i+1)/pieces
		if _, err := w.Write(body[from:to]); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		if !s.pause(r.Context(), slow/pieces) {
			return
		}
	}
}

// drip writes one byte of body a second, until it is out or the client gives up.
func (s *Server) drip(w http.ResponseWriter, r *http.Request, body []byte) {
	for i := range body {
		if _, err := w.Write(body[i : i+1]); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		if !s.pause(r.Context(), time.Second) {
			return
		}
	}
}

// pause waits, and reports false when the client or the server gave up first.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}

// dropConnection ends the connection in place of an answer: with a TCP reset, or in good
// order after the bare bytes of the body.
func dropConnection(w http.ResponseWriter, rep *reply) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = conn.Write(rep.body)
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok && rep.reset {
		conn = t.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // discard what is unsent: close becomes a reset
	}
	_ = conn.Close()
}

func hostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(host)
}
