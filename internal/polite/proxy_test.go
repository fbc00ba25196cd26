package polite

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveTCP answers each connection with play, and returns the address.
func serveTCP(t *testing.T, play func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				play(c)
			}()
		}
	}()
	return l.Addr().String()
}

// says reads a request and answers with a text.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, text)
	}
}

func TestProxyUnreachable(t *testing.T) {
	err := &ProxyError{Proxy: "p:1", Err: &net.OpError{Op: "proxyconnect",
		Err: &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}}}
	if got := err.Error(); got != "the proxy p:1 could not be reached" {
		t.Error(got)
	}
}

// TestProxyError: a proxy that makes no connection is named, without its password and its own words. What happens
// behind it is not its trouble.
func TestProxyError(t *testing.T) {
	nobody := serveTCP(t, says(""))
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := closed.Addr().String()
	closed.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(untrusted.Close)
	const canary = "CANARY\r\nX-Canary: CANARY\r\nContent-Length: 6\r\n\r\nCANARY"
	slow := func(net.Conn) { <-t.Context().Done() }
	for name, tt := range map[string]struct {
		scheme, address, want string // want "" is an error of the host
		refuses               bool
	}{
		"wants a password": {"http", serveTCP(t, says("HTTP/1.1 407 "+canary)),
			"answered with status 407 Proxy Authentication Required", true},
		"does not lead": {"http", serveTCP(t, says("HTTP/1.1 403 "+canary)), "answered with status 403 Forbidden", true},
		"bad gateway": {"http", serveTCP(t, says("HTTP/1.1 502 "+canary)), "answered with status 502 Bad Gateway",
			false},
		"odd status":     {"http", serveTCP(t, says("HTTP/1.1 299 "+canary)), "answered with status 299", true},
		"refuses":        {"http", refusing, "refused the connection", false},
		"refuses, https": {"https", refusing, "refused the connection", false},
		"refuses, socks": {"socks5", refusing, "refused the connection", false},
		"cuts":           {"http", nobody, "closed the connection early", false},
		"cuts, https":    {"https", nobody, "closed the connection early", false},
		"cuts, socks":    {"socks5", nobody, "closed the connection early", false},
		"half an answer": {"http", serveTCP(t, says("HTTP/1.1 200 CANARY\r\nX-Ca")), "gave no usable answer", false},
		"garbage":        {"http", serveTCP(t, says("CANARY\r\n\r\n")), "gave no usable answer", false},
		"denies, socks": {"socks5", serveTCP(t, func(c net.Conn) { says("\x05\xff")(c) }), "gave no usable answer",
			false},
		"hangs":         {"http", serveTCP(t, slow), "did not answer in time", false},
		"no such name":  {"http", "no-such-host.invalid:3128", "has a name that could not be resolved", false},
		"untrusted":     {"https", untrusted.Listener.Addr().String(), "has a certificate that is not trusted", false},
		"the host cuts": {"http", serveTCP(t, says("HTTP/1.1 200 OK\r\n\r\n")), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"https_proxy": tt.scheme + "://canary:canary-pw@" + tt.address}
			p, err := ProxyFromEnv(func(name string) string { return env[name] })
			if err != nil {
				t.Fatal(err)
			}
			d := &Dialer{Proxy: p, Timeout: time.Second,
				Guard: func(*ConnectTo) func(string, string, syscall.RawConn) error { return nil }}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if name == "hangs" {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
			}
			r := (&http.Request{URL: &url.URL{Scheme: "https", Host: "h.example"}, Header: http.Header{}}).WithContext(ctx)
			_, err = d.RoundTripper(&http.Transport{}).RoundTrip(r)
			if err == nil {
				t.Fatal("no error")
			}
			p2, ok := err.(*ProxyError)
			if ok != (tt.want != "") || ok && (err.Error() != "the proxy "+tt.address+" "+tt.want ||
				p2.Refuses() != tt.refuses) {
				t.Errorf("%q, want %q", err, tt.want)
			}
			if ok && strings.Contains(strings.ToLower(err.Error()), "canary") {
				t.Errorf("printed: %v", err)
			}
		})
	}
}
