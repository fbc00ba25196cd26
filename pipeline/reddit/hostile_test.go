package reddit

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// wire is a listener in memory: TLS and HTTP run as they would over a network, on synctest's
// clock and without a socket.
type wire struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { w.once.Do(func() { close(w.closed) }); return nil }
func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case w.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// wired is a client of all its layers whose connections end at a handler.
func wired(t *testing.T, o Options, h http.HandlerFunc) *Client {
	t.Helper()
	names := []string{apiHost, tokenHost, "i.redd.it"}
	cert, pool := certificate(t, names, time.Now().Add(24*time.Hour))
	w := &wire{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = s.ServeTLS(w, "", "") }()
	o.RootCAs = pool
	api, images := newTransports(o)
	for _, layer := range []http.RoundTripper{api, images} {
		transportOf(layer).DialContext = w.dial
	}
	t.Cleanup(func() {
		transportOf(api).CloseIdleConnections()
		transportOf(images).CloseIdleConnections()
		// A TLS connection that the other end no longer reads takes 5 s to say goodbye. The server
		// would do so under its lock, where the clock of the test stands still.
		time.Sleep(6 * time.Second)
		_ = s.Close()
		time.Sleep(6 * time.Second)
	})
	c, err := newClient(o, api, images)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func transportOf(layer http.RoundTripper) *http.Transport {
	next := layer.(guarded).next
	if u, ok := next.(unrepeated); ok {
		return u.Transport
	}
	return next.(*http.Transport)
}

// gzipped is n bytes of white space, packed.
func gzipped(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.CopyN(z, spaces{}, int64(n)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// pour writes some bytes at a time, with a pause after each, until the client is gone.
func pour(w http.ResponseWriter, r *http.Request, some []byte, pause time.Duration, written *atomic.Int64) {
	for r.Context().Err() == nil {
		n, err := w.Write(some)
		written.Add(int64(n))
		if err != nil || http.NewResponseController(w).Flush() != nil || wait(r.Context(), pause) != nil {
			return
		}
	}
}

// TestHostileAnswers: each has a name of its own, costs one answer or image, and is bounded in
// time and in what is read.
func TestHostileAnswers(t *testing.T) {
	const mib = 1 << 20
	bomb := gzipped(t, 64*mib)
	var written atomic.Int64
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		api    manifest.Reason // of Ask's Unanswered
		image  string          // outcome/reason of Download
		asked  int             // requests of Ask
		images int             // requests of Download, which has less patience
		within time.Duration   // of Ask; Download has a minute and its pauses
	}{
		{"gzip bomb", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}, "too_large", "failed/content_encoding", 1, 1, time.Second},
		{"endless chunks", func(w http.ResponseWriter, r *http.Request) {
			pour(w, r, bytes.Repeat([]byte(" "), mib), 0, &written)
		}, "too_large", "invalid/too_large", 1, 1, time.Second},
		{"announced far too long", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000000000")
			pour(w, r, []byte(" "), time.Second, &written)
		}, "too_large", "invalid/too_large", 1, 1, time.Second},
		{"a byte a second", func(w http.ResponseWriter, r *http.Request) {
			pour(w, r, []byte(" "), time.Second, &written)
		}, "timeout", "failed/timeout", 4, 4, 4*progressEvery + 8*time.Second},
		{"just fast enough, for ever", func(w http.ResponseWriter, r *http.Request) {
			pour(w, r, bytes.Repeat([]byte(" "), 200), time.Second, &written)
		}, "timeout", "failed/timeout", 4, 1, 4*attemptTimeout + 8*time.Second},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			"timeout", "failed/timeout", 4, 2, 4*headerTimeout + 8*time.Second},
		{"ten megabytes of header", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 10*mib))
		}, "headers_too_large", "failed/headers_too_large", 1, 1, time.Second},
		{"many headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Many"] = strings.Split(strings.Repeat("x,", 100_000), ",")
		}, "headers_too_large", "failed/headers_too_large", 1, 1, time.Second},
		{"hints without end", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Header().Set("Link", strings.Repeat("x", 1000))
				w.WriteHeader(http.StatusEarlyHints)
			}
		}, "headers_too_large", "failed/headers_too_large", 1, 1, time.Second},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			written.Store(0)
			c := wired(t, testOptions(), func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/v1/access_token" {
					_, _ = w.Write([]byte(tokenReply(86400).body))
					return
				}
				tt.answer(w, r)
			})
			start := time.Now()
			_, err := c.Ask(t.Context(), ids("a1"))
			if noAnswer(err) != tt.api || c.Calls().Info != tt.asked {
				t.Errorf("Ask = %v after %d requests, want Unanswered %s after %d", err, c.Calls().Info, tt.api, tt.asked)
			}
			if d := time.Since(start); d > tt.within {
				t.Errorf("Ask took %v", d)
			}
			start = time.Now()
			d, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a.png"})
			checkFault(t, "image", d, err, tt.image)
			if n := c.Calls().Images; n != tt.images {
				t.Errorf("%d requests for the image, want %d", n, tt.images)
			}
			if d := time.Since(start); d > min(tt.within, time.Minute+time.Second) {
				t.Errorf("Download took %v", d)
			}
			if n := written.Load(); n > maxInfoBody+testOptions().Policy.Images.MaxBytes+8*mib {
				t.Errorf("%d bytes were taken", n)
			}
		})
	}
}

// TestNothingIsCarriedAlong: cookies are forgotten, and a redirect of the API is not followed,
// to whatever host, so that the bearer token and the credentials go nowhere else.
func TestNothingIsCarriedAlong(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		synctest.Test(t, func(t *testing.T) {
			c := wired(t, testOptions(), func(w http.ResponseWriter, r *http.Request) {
				if len(r.Cookies()) > 0 {
					t.Errorf("%s got the cookies %v", r.Host, r.Cookies())
				}
				auth, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
				if want := map[string]string{apiHost: "bearer", tokenHost: "Basic"}[r.Host]; auth != want {
					t.Errorf("%s got %q, want %q", r.Host, auth, want)
				}
				http.SetCookie(w, &http.Cookie{Name: "session", Value: "x", Domain: "reddit.com", Path: "/"})
				if r.URL.Path == "/api/v1/access_token" {
					_, _ = w.Write([]byte(tokenReply(86400).body))
					return
				}
				if r.Host != apiHost {
					t.Errorf("%s was asked for %s", r.Host, r.URL.Path)
				}
				http.Redirect(w, r, "https://i.redd.it/steal", status)
			})
			for range 2 {
				_, err := c.Ask(t.Context(), ids("a1"))
				if noAnswer(err) == "" {
					t.Errorf("Ask = %v, want Unanswered", err)
				}
			}
			if got := c.Calls(); got.Info != 2 || got.Token != 1 || got.Images != 0 {
				t.Errorf("status %d: %+v", status, got)
			}
		})
	}
}

// names is a name service that answers every name: with the addresses of turn n for the n-th
// question after an IPv4 address, the last turn for all later ones.
func names(t *testing.T, turns ...[]net.IP) *net.Resolver {
	var n atomic.Int64
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			var size [2]byte
			if _, err := io.ReadFull(theirs, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(theirs, query); err != nil {
				return
			}
			end := 12 + bytes.IndexByte(query[12:], 0) + 5 // of the question
			kind := binary.BigEndian.Uint16(query[end-4:])
			var ips []net.IP
			if kind == 1 {
				ips = turns[min(int(n.Add(1)), len(turns))-1]
			} else {
				ips = turns[len(turns)-1]
			}
			if _, err := theirs.Write(dnsAnswer(query[:end], kind, ips)); err != nil {
				t.Error(err)
			}
		}()
		return ours, nil
	}}
}

// dnsAnswer answers a question with those of the addresses that are of its kind, as over TCP.
func dnsAnswer(question []byte, kind uint16, ips []net.IP) []byte {
	b := bytes.Clone(question)
	count := uint16(0)
	for _, ip := range ips {
		raw, of := ip.To4(), uint16(1)
		if raw == nil {
			raw, of = ip.To16(), 28
		}
		if of != kind {
			continue
		}
		count++
		b = append(b, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(raw)))
		b = append(b, raw...)
	}
	copy(b[2:], []byte{0x81, 0x80, 0, 1, byte(count >> 8), byte(count), 0, 0, 0, 0})
	return append([]byte{byte(len(b) >> 8), byte(len(b))}, b...)
}

var errPassed = errors.New("the guard let it pass")

// resolving is a dialer with that name service. What its guard lets pass is written down and
// not dialled.
func resolving(r *net.Resolver) (d *dialer, passed func() []string) {
	d = newDialer(nil)
	var mu sync.Mutex
	var addresses []string
	d.resolver = r
	guard := d.guard
	d.guard = func(network, address string, c syscall.RawConn) error {
		if err := guard(network, address, c); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		addresses = append(addresses, address)
		return errPassed
	}
	return d, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return addresses
	}
}

// public is an address that is nobody's secret and that no test reaches.
var public = net.IPv4(93, 184, 215, 14)

// TestNamesThatPointInward: what a name resolves to is looked at when it is dialled, for each
// of its addresses and each time.
func TestNamesThatPointInward(t *testing.T) {
	inward := []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
		"fe80::1", "fd00::1", "100.64.0.1", "198.18.0.1", "192.0.0.1", "240.0.0.1", "255.255.255.255", "224.0.0.1", "ff02::1",
		"64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1"}
	for _, ip := range inward {
		d, passed := resolving(names(t, []net.IP{net.ParseIP(ip)}))
		_, err := d.dial(t.Context(), "tcp", "i.redd.it:443")
		if !isGuard(err) || len(passed()) > 0 {
			t.Errorf("a name that is %s: %v, passed %v; want the guard's error", ip, err, passed())
		}
	}
	// Spellings of 127.0.0.1 that are names to Go and an address to others: Go does not look
	// those up that are all digits.
	for _, host := range []string{"2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1.", "0"} {
		d, passed := resolving(names(t, []net.IP{net.IPv4(127, 0, 0, 1)}))
		_, err := d.dial(t.Context(), "tcp", host+":443")
		var dns *net.DNSError
		if !isGuard(err) && !errors.As(err, &dns) || len(passed()) > 0 {
			t.Errorf("%s: %v, passed %v; want an error before it is dialled", host, err, passed())
		}
	}
	d, passed := resolving(names(t, []net.IP{public, net.IPv4(127, 0, 0, 1), net.ParseIP("::1")}))
	if _, err := d.dial(t.Context(), "tcp", "i.redd.it:443"); err == nil || strings.Join(passed(), " ") != "93.184.215.14:443" {
		t.Errorf("one public address among others: %v, passed %v", err, passed())
	}
}

// TestRebinding: a name that was public when it was first asked for and then points inward.
func TestRebinding(t *testing.T) {
	d, passed := resolving(names(t, []net.IP{public}, []net.IP{net.IPv4(127, 0, 0, 1)}))
	if _, err := d.dial(t.Context(), "tcp", "i.redd.it:443"); !errors.Is(err, errPassed) {
		t.Fatalf("at first: %v", err)
	}
	for range 2 {
		if _, err := d.dial(t.Context(), "tcp", "i.redd.it:443"); !isGuard(err) {
			t.Errorf("later: %v, want the guard's error", err)
		}
	}
	if got := strings.Join(passed(), " "); got != "93.184.215.14:443" {
		t.Errorf("passed %s", got)
	}
}

// TestInwardNameIsNamed: an image host that points inward is refused, and Reddit itself so
// stops the run, neither with the address.
func TestInwardNameIsNamed(t *testing.T) {
	d, _ := resolving(names(t, []net.IP{net.IPv4(10, 1, 2, 3)}))
	o := testOptions()
	api, images := newTransports(o)
	for _, layer := range []http.RoundTripper{api, images} {
		transportOf(layer).DialContext = d.dial
	}
	c, err := newClient(o, api, images)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a.png"})
	var f *policy.Fault
	if !errors.As(err, &f) || f.Outcome != manifest.Refused || f.Reason != "address_not_allowed" || strings.Contains(f.Detail, "10.") {
		t.Errorf("Download = %v, want refused/address_not_allowed", err)
	}
	_, err = c.Ask(t.Context(), ids("a1"))
	var none *Unanswered
	if err == nil || errors.As(err, &none) || !strings.Contains(err.Error(), "--connect-to") {
		t.Errorf("Ask = %v, want an error that stops and names --connect-to", err)
	}
	if got := c.Calls().Retries; got != 0 {
		t.Errorf("%d repetitions of what would be the same again", got)
	}
}
