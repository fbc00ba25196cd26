package reddit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"github.com/hashicorp/go-retryablehttp"

	"rehydrate/manifest"
)

const (
	retries    = 3                // after the first attempt
	maxBackoff = 30 * time.Second // between two attempts, when no Retry-After asks for more
	maxScrap   = 4 << 10          // of the body of an answer that is not a 200
)

// An exchange is the last answer to a request, read and closed.
type exchange struct {
	status int
	header http.Header
	body   []byte // whole for a 200, else at most maxScrap bytes of it
}

// A call is one request with its repetitions. It belongs to one goroutine.
type call struct {
	c       *Client
	lane    *lane
	maxBody int64
	before  int // failures of the host when the call began
	got     exchange
}

// stack builds the layers between the retries and a transport.
func (c *Client) stack(identity http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: paced{c.pace, identity},
		// Redirects are never followed here: Download checks each one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// do sends a request through one of the stacks until an answer is worth having or the
// attempts are used up. An answer of any status is a result; the error is that of the
// last attempt, a *WaitTooLong, an *Unreachable, or the context's.
func (c *Client) do(hc *http.Client, req *retryablehttp.Request, maxBody int64) (exchange, error) {
	l := c.pace.lanes[req.URL.Hostname()]
	k := &call{c: c, lane: l, maxBody: maxBody, before: l.breaker.failures()}
	req.SetResponseHandler(k.read)
	// The library's client is a handful of settings; one for each call lets Backoff know
	// the host even when there was no answer. Its logger stays off: it prints URLs.
	rc := &retryablehttp.Client{
		HTTPClient:   hc,
		RetryMax:     retries,
		CheckRetry:   k.again,
		Backoff:      k.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := rc.Do(req)
	if err == nil && k.got.status == 0 {
		err = k.read(resp) // a last answer that asked to be repeated has not been read
	} else if resp != nil {
		_ = resp.Body.Close()
	}
	if ctxErr := req.Context().Err(); ctxErr != nil {
		return exchange{}, ctxErr
	}
	if shut := k.conclude(err); shut != nil {
		return exchange{}, shut
	}
	if err != nil {
		return exchange{}, bare(err)
	}
	return k.got, nil
}

// read takes in an answer. It is called for each one that needs no repetition by its
// status, and its error, when a body breaks off, makes the attempt a failed one.
func (k *call) read(resp *http.Response) error {
	defer resp.Body.Close()
	e := exchange{status: resp.StatusCode, header: resp.Header}
	if e.status != http.StatusOK {
		// The status says it all; a broken body must not hide it.
		e.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxScrap))
		k.got = e
		return nil
	}
	if resp.ContentLength > k.maxBody {
		return &tooLarge{k.maxBody}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, k.maxBody+1))
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if int64(len(body)) > k.maxBody {
		return &tooLarge{k.maxBody}
	}
	e.body = body
	k.got = e
	return nil
}

// again decides whether an attempt is repeated.
func (k *call) again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		if permanent(err) {
			return false, err
		}
		return true, nil
	}
	if !repeatable(resp.StatusCode, resp.Header) {
		return false, nil
	}
	if d, ok := retryAfter(resp.Header, time.Now()); ok && d > maxWait {
		k.lane.pauseUntil(time.Now().Add(d), waitRetryAfter) // spares the host the next requests too
		return false, &WaitTooLong{Host: k.lane.host, For: d}
	}
	return true, nil
}

// repeatable reports whether an answer says "again later".
func repeatable(status int, h http.Header) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusForbidden, http.StatusRequestURITooLong:
		return h.Get("Retry-After") != "" // both seen as rate limits, with this header only
	default:
		return status >= 500 && status != http.StatusNotImplemented
	}
}

// backoff is the pause before the next attempt. All of a host's requests sit out a pause
// that the host asked for.
func (k *call) backoff(_, _ time.Duration, attempt int, resp *http.Response) time.Duration {
	d := min(k.c.retryWait<<min(attempt, 16), maxBackoff)
	d = d/2 + time.Duration(k.c.jitter()*float64(d/2))
	w := Wait{k.lane.host, waitNetwork, d}
	status := 0
	if resp != nil && repeatable(resp.StatusCode, resp.Header) {
		status = resp.StatusCode
		w.Reason = waitServer
		asked, ok := retryAfter(resp.Header, time.Now())
		switch {
		case ok:
			w.Reason = waitRetryAfter
			spread := min(asked/10, time.Second) // so that not all clients come back at once
			w.For = max(d, asked+time.Duration(k.c.jitter()*float64(spread)))
		case status == http.StatusTooManyRequests:
			w.Reason = waitRateLimit
		}
		if w.Reason != waitServer {
			k.lane.pauseUntil(time.Now().Add(w.For), w.Reason)
		}
	}
	k.c.log.Debug("trying again", "host", w.Host, "status", status, "reason", w.Reason, "wait", w.For)
	if w.For > quietWait {
		k.c.onWait(w)
	}
	return w.For
}

// retryAfter reads a Retry-After in either of its forms: seconds, or a date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	const ceiling = 365 * 24 * 3600 // what is longer is as good as this, and cannot overflow
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		if !(n >= 0) {
			return 0, false
		}
		return seconds(min(n, ceiling)), true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(t.Sub(now), 0), true
}

// tooLarge is the error of a body that is longer than it may be.
type tooLarge struct{ limit int64 }

func (e *tooLarge) Error() string { return fmt.Sprintf("the body is longer than %d bytes", e.limit) }

// permanent reports whether an error would be the same again.
func permanent(err error) bool {
	var large *tooLarge
	var long *WaitTooLong
	var shut *Unreachable
	return errors.As(err, &large) || errors.As(err, &long) || errors.As(err, &shut) ||
		errors.Is(err, errForbidden) || errors.Is(err, errNoToken) || isGuard(err) || isCertificate(err)
}

func isGuard(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedPort) ||
		errors.Is(err, ssrf.ErrProhibitedNetwork)
}

func isCertificate(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host)
}

// trouble names why no answer came. The detail is one of a few fixed texts: nothing of it
// may differ from run to run or from machine to machine, or come from the answer.
func trouble(err error) (manifest.Reason, string) {
	var large *tooLarge
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &large):
		return "too_large", large.Error()
	case errors.Is(err, errDeadline):
		return "timeout", errDeadline.Error()
	case errors.Is(err, errStalled):
		return "timeout", errStalled.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated", "the body ended early"
	case isGuard(err):
		return "address_not_allowed", "the host's name leads to an address that is not public"
	case isCertificate(err):
		return "tls", badCertificate(err)
	case errors.As(err, &dns):
		return "dns", "the host's name could not be resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout", "no answer in time"
	}
	return "connection", brokenBy(err)
}

// badCertificate says what is wrong with a certificate, without the present time, the names
// and the addresses that crypto/x509 tells.
func badCertificate(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "the certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return "the certificate is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet"
	}
	return "the certificate is not valid"
}

// brokenBy says how a connection failed, without the addresses and port numbers that differ
// from run to run.
func brokenBy(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF):
		return "the connection was closed early"
	}
	return "the connection failed"
}

// bare takes the request's method and URL off an error, which net/http puts on every one.
func bare(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}
