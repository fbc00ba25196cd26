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
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
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
	s := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ErrorLog: log.New(io.Discard, "", 0)}
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
	_, err := z.Write(bytes.Repeat([]byte(" "), n))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
			download(t, c, "https://i.redd.it/a.png", tt.image)
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

// TestNothingIsCarriedAlong: cookies are forgotten, and a redirect of the API is not followed, to whatever host, so
// that the bearer token and the credentials go nowhere else.
func TestNothingIsCarriedAlong(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := api(func(int, *http.Request) answer {
			return reply(status, "", "Location", "https://i.redd.it/steal", "Set-Cookie",
				"session=x; Domain=reddit.com; Path=/")
		})
		c := s.client(t, testOptions())
		for range 2 {
			if _, err := c.Ask(t.Context(), ids("a1")); noAnswer(err) == "" {
				t.Errorf("Ask = %v, want Unanswered", err)
			}
		}
		for i, r := range s.seen {
			if len(s.seen) != 3 || r.host == "i.redd.it" || len(r.req.Cookies()) > 0 {
				t.Errorf("status %d: request %d of %d to %s with cookies %v", status, i, len(s.seen), r.host, r.req.Cookies())
			}
		}
	}
}

// TestNamesThatPointInward: what a name resolves to is looked at when it is dialled, for each of its addresses and each
// time, though it was public before.
func TestNamesThatPointInward(t *testing.T) {
	errPassed := errors.New("the guard let it pass")
	var address netip.Addr // of every name
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			query := make([]byte, 512)
			n, _ := theirs.Read(query)
			query = query[2:n] // as over TCP, behind its length
			end := 12 + bytes.IndexByte(query[12:], 0) + 5
			reply := append([]byte{0, 0, query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
			if raw := address.AsSlice(); (len(raw) == 4) == (query[end-3] == 1) { // the kind that was asked for
				reply[9]++
				reply = append(append(reply, 0xc0, 12, 0, query[end-3], 0, 1, 0, 0, 0, 0, 0, byte(len(raw))), raw...)
			}
			binary.BigEndian.PutUint16(reply, uint16(len(reply)-2))
			_, _ = theirs.Write(reply)
		}()
		return ours, nil
	}}
	d := &polite.Dialer{Guard: func(rule *polite.ConnectTo) func(string, string, syscall.RawConn) error {
		return func(network, address string, c syscall.RawConn) error {
			if err := guard(rule)(network, address, c); err != nil {
				return err
			}
			return errPassed
		}
	}}
	for _, ip := range []string{"93.184.215.14", "127.0.0.1", "::1", "10.1.2.3", "169.254.169.254", "fd00::1"} {
		address = netip.MustParseAddr(ip)
		_, err := d.Dial(t.Context(), "tcp", "i.redd.it:443")
		if public := ip == "93.184.215.14"; public != errors.Is(err, errPassed) || public == isGuard(err) {
			t.Errorf("a name that is %s: %v", ip, err)
		}
	}
}

// TestInwardNameIsNamed: Reddit's own name that leads inward stops the run, without the address.
func TestInwardNameIsNamed(t *testing.T) {
	o := testOptions()
	api, images := newTransports(o)
	transportOf(api).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&polite.Dialer{Guard: guard}).Dial(ctx, network, "localhost:443")
	}
	c, err := newClient(o, api, images)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Ask(t.Context(), ids("a1"))
	if err == nil || noAnswer(err) != "" || !strings.Contains(err.Error(), "--connect-to") || c.Calls().Retries != 0 {
		t.Errorf("Ask = %v after %+v, want an error that stops and names --connect-to", err, c.Calls())
	}
}
