package polite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/http/httpproxy"
)

// A Proxy leads to the hosts that are asked. The zero value stands for none.
type Proxy struct {
	at *url.URL
	of func(*url.URL) (*url.URL, error)
}

// ProxyFromEnv reads HTTPS_PROXY and NO_PROXY, or the same in lower case, as curl does. Its error does not show the
// value, which can hold a password.
func ProxyFromEnv(getenv func(string) string) (Proxy, error) {
	name := cmp.Or(getenv("HTTPS_PROXY"), getenv("https_proxy"))
	if name == "" {
		return Proxy{}, nil
	}
	if !strings.Contains(name, "://") {
		name = "http://" + name
	}
	at, err := url.Parse(name)
	if err == nil && at.Port() != "" {
		_, err = strconv.ParseUint(at.Port(), 10, 16)
	}
	if err != nil || at.Hostname() == "" || defaultPorts[at.Scheme] == "" {
		return Proxy{}, errors.New("HTTPS_PROXY is not the address of a proxy: write http://HOST:PORT, or unset it")
	}
	c := httpproxy.Config{HTTPSProxy: name, NoProxy: cmp.Or(getenv("NO_PROXY"), getenv("no_proxy"))}
	return Proxy{at, c.ProxyFunc()}, nil
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// IsSet reports whether there is one.
func (p Proxy) IsSet() bool { return p.at != nil }

// address is where it is dialled.
func (p Proxy) address() string {
	if p.at == nil {
		return ""
	}
	return net.JoinHostPort(p.at.Hostname(), cmp.Or(p.at.Port(), defaultPorts[p.at.Scheme]))
}

// Password is what must not be shown of it.
func (p Proxy) Password() string {
	if p.at == nil {
		return ""
	}
	secret, _ := p.at.User.Password()
	return secret
}

// A ProxyError is the error of a request for which a proxy made no connection to its host.
type ProxyError struct {
	Proxy  string // HOST:PORT, without user name and password
	Status int    // that the proxy answered with; 0 when it did not answer
	Err    error  // why not; nil beside a Status
}

// Error names the proxy and says what it did, in words of this package alone.
func (e *ProxyError) Error() string {
	timeout, ok := errors.AsType[net.Error](e.Err)
	does := "gave no usable answer"
	switch {
	case e.Status != 0:
		does = strings.TrimSpace(fmt.Sprintf("answered with status %d %s", e.Status, http.StatusText(e.Status)))
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		does = "refused the connection"
	case is[*net.DNSError](e.Err):
		does = "has a name that could not be resolved"
	case Permanent(e.Err) && !IsBadHeader(e.Err):
		does = "has a certificate that is not trusted"
	case ok && timeout.Timeout(), errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, context.Canceled):
		does = "did not answer in time"
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF), errors.Is(e.Err, syscall.ECONNRESET),
		errors.Is(e.Err, syscall.EPIPE):
		does = "closed the connection early"
	case IsDial(errors.Unwrap(e.Err)): // below the "proxyconnect" of net/http
		does = "could not be reached"
	}
	return "the proxy " + e.Proxy + " " + does
}

// Unwrap is why the proxy did not answer.
func (e *ProxyError) Unwrap() error { return e.Err }

// Refuses reports whether the proxy would answer the same again: it wants a password, or does not lead to this host.
func (e *ProxyError) Refuses() bool {
	return e.Status != 0 && !Repeatable(e.Status)
}

// RoundTripper is t, which must not be in use, with this dialer and its proxy. Where the proxy makes no connection the
// error is a *ProxyError.
func (d *Dialer) RoundTripper(t *http.Transport) http.RoundTripper {
	t.DialContext, t.Proxy = d.Dial, func(r *http.Request) (*url.URL, error) { return d.Via(r.URL) }
	t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
		if answer.StatusCode != http.StatusOK {
			return &ProxyError{Proxy: d.Proxy.address(), Status: answer.StatusCode}
		}
		return nil
	}
	return proxied{t, d}
}

// proxied tells a proxy's trouble from that of the hosts behind it.
type proxied struct {
	*http.Transport
	d *Dialer
}

func (p proxied) RoundTrip(r *http.Request) (*http.Response, error) {
	via, err := p.d.Via(r.URL)
	if err != nil || via == nil {
		return p.Transport.RoundTrip(r)
	}
	// The host is reached when TLS begins with it, or on a connection that was kept.
	var handshakes atomic.Int32
	if via.Scheme == "https" {
		handshakes.Add(-1) // the first is with the proxy itself
	}
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		TLSHandshakeStart: func() { handshakes.Add(1) },
		GotConn:           func(httptrace.GotConnInfo) { handshakes.Add(2) },
	})
	answer, err := p.Transport.RoundTrip(r.WithContext(ctx))
	if err == nil || handshakes.Load() > 0 || is[*ProxyError](err) {
		return answer, err
	}
	if r.Context().Err() != nil {
		err = r.Context().Err() // whatever its cause says: it is the proxy that did not answer
	}
	return nil, &ProxyError{Proxy: p.d.Proxy.address(), Err: err}
}
