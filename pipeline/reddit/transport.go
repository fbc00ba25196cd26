package reddit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"rehydrate/internal/polite"
)

// The limits on one exchange.
const (
	connectTimeout  = 10 * time.Second
	tlsTimeout      = 10 * time.Second
	headerTimeout   = 20 * time.Second
	attemptTimeout  = 60 * time.Second // one attempt, body included
	maxHeaderBytes  = 64 << 10
	progressEvery   = 10 * time.Second
	progressAtLeast = 1 << 10 // bytes of body
)

// guard refuses addresses that are not public, and ports other than 443, except as far as a rule of the operator names
// others. It sees the address that was resolved, however often the answer for a name that points inward changes.
func guard(rule *polite.ConnectTo) func(network, address string, c syscall.RawConn) error {
	switch {
	case rule == nil:
		return ssrf.New(ssrf.WithPorts(443)).Safe
	case rule.ToHost == "":
		return ssrf.New(ssrf.WithAnyPort()).Safe
	}
	return nil
}

// newTransports makes the lowest layer.
func newTransports(o Options) (api, images http.RoundTripper) {
	d := &polite.Dialer{Rules: o.ConnectTo, Proxy: o.Proxy, Guard: guard, Timeout: connectTimeout}
	// With a dialer of its own it speaks HTTP/1.1 only: HTTP/2 would give a header without end several errors.
	t := &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    64, // as many as a policy lets be open
		IdleConnTimeout:        90 * time.Second,
	}
	stored := t.Clone()
	stored.DisableCompression = true // a small body cannot unfold into a large one
	return guarded{unrepeated{t, d.RoundTripper(t)}}, guarded{unrepeated{stored, d.RoundTripper(stored)}}
}

// unrepeated sends a request once, because Reddit and imgur count requests. net/http by itself sends it again when a
// connection that it kept is found cut, on one kept connection after the other, at once and uncounted.
type unrepeated struct {
	*http.Transport
	next http.RoundTripper // of which it is the lowest part
}

func (t unrepeated) RoundTrip(req *http.Request) (*http.Response, error) {
	// net/http repeats no POST of which something was sent, and of the rest only a request whose body it can get again,
	// so each has an empty one here that it cannot. With the encoding "identity" nothing of that body, and no header
	// for it, is sent.
	if req.Body == nil || req.Body == http.NoBody {
		req = req.WithContext(req.Context()) // a copy
		req.Body, req.GetBody, req.TransferEncoding = io.NopCloser(strings.NewReader("")), nil, []string{"identity"}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		t.CloseIdleConnections() // likely cut as well: the repetition gets a new one
	}
	return resp, err
}

var (
	errDeadline = fmt.Errorf("the answer took longer than %v", attemptTimeout)
	errStalled  = fmt.Errorf("less than %d bytes came in %v", progressAtLeast, progressEvery)
	// Of requests that were not sent.
	errForbidden = errors.New("request not allowed") // a mistake in the package, not in the input
	errNoToken   = errors.New("the token ran out during a wait")
)

// guarded ends an attempt that takes too long or whose body trickles. Below the pacing, so that no wait counts.
type guarded struct{ next http.RoundTripper }

func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	within, stop := context.WithTimeoutCause(req.Context(), attemptTimeout, errDeadline)
	ctx, cancel := context.WithCancelCause(within)
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		err = ended(ctx, err)
		cancel(nil)
		stop()
		return nil, err
	}
	stall := time.AfterFunc(progressEvery, func() { cancel(errStalled) })
	resp.Body = &guardedBody{ReadCloser: resp.Body, ctx: ctx, stop: stop, stall: stall}
	return resp, nil
}

// ended is why the guard has ended an attempt, or err.
func ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if (errors.Is(cause, errDeadline) || errors.Is(cause, errStalled)) && !is[*polite.ProxyError](err) {
		return cause
	}
	return err
}

type guardedBody struct {
	io.ReadCloser
	ctx   context.Context // of the attempt; holds the cause when the guard ends it
	stop  func()
	stall *time.Timer // ends the attempt, unless enough comes in time
	fresh int         // bytes since it was set
}

// Read fails once the guard has ended the attempt.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.fresh += n
	if b.fresh >= progressAtLeast {
		b.fresh = 0
		b.stall.Reset(progressEvery)
	}
	if err != nil {
		// Even where the body seems to end well: a host can end it in good order in the middle, as the connection ends.
		err = ended(b.ctx, err)
	}
	return n, err
}

func (b *guardedBody) Close() error {
	defer b.stop()
	b.stall.Stop() // it holds the answer in memory
	return b.ReadCloser.Close()
}

// identified sends the requests of one kind, with what says who asks, and is the last to look at where they go.
type identified struct {
	c    *Client
	next http.RoundTripper
	// authorize puts on the credentials of a host, or refuses the host; nil for images. It belongs to the stack: a
	// policy or a redirect that names a host of the API gets no credential.
	authorize func(*http.Request) error
}

func (t identified) RoundTrip(req *http.Request) (*http.Response, error) {
	u := req.URL
	if u.Scheme != "https" || u.User != nil || u.Port() != "" && u.Port() != "443" {
		return nil, fmt.Errorf("%w: only https on port 443, without user information", errForbidden)
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", t.c.userAgent)
	if t.authorize != nil {
		if err := t.authorize(req); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(req)
}

// toReddit puts on each request to Reddit's API the credentials of its one host.
func (c *Client) toReddit(req *http.Request) error {
	switch req.URL.Hostname() {
	case apiHost:
		token := c.token.current()
		if token.Empty() {
			return errNoToken
		}
		req.Header.Set("Authorization", "bearer "+token.Reveal())
	case tokenHost:
		req.SetBasicAuth(c.o.ClientID, c.o.ClientSecret.Reveal())
	default:
		return fmt.Errorf("%w: not a host of Reddit's API", errForbidden)
	}
	return nil
}

// toImgur puts the client id on requests to imgur's API, and lets no other pass.
func (c *Client) toImgur(req *http.Request) error {
	if req.URL.Hostname() != imgurAPIHost {
		return fmt.Errorf("%w: not imgur's API", errForbidden)
	}
	req.Header.Set("Authorization", "Client-ID "+c.o.ImgurClientID.Reveal())
	return nil
}
