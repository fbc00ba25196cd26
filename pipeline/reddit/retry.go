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
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
)

const (
	retries    = 3                // after the first attempt
	maxBackoff = 30 * time.Second // between two attempts, when no Retry-After asks for more
	// maxTrying is from the end of a call's first attempt to the start of its last: polite.MaxWait and some.
	maxTrying = 20 * time.Minute
	maxScrap  = 4 << 10 // of the body of an answer that is not a 200
	maxHops   = 3       // redirects that an image is followed through
)

// An exchange is the last answer to a request, read and closed.
type exchange struct {
	status int
	header http.Header
	body   []byte // whole for a 200, else at most maxScrap bytes of it
}

// useless reports whether a validator's error says that nothing was answered. A refusal is an answer, and of an empty
// listing only the caller knows what it means.
func useless(err error) bool {
	none, ok := errors.AsType[*Unanswered](err)
	return ok && none.Reason != ReasonEmptyListing
}

// A call is one request with its repetitions. It belongs to one goroutine, and makes each attempt as a RoundTripper.
type call struct {
	c        *Client
	lane     *lane
	next     http.RoundTripper // the layers below
	maxBody  int64
	validate func(exchange) error // nil for images, where any answer says something of the image
	before   int                  // failures of the host when the call began
	start    time.Time            // when the first attempt ended
	attempt  int                  // that is being made, from 1
	sent     time.Time            // when it was made
	got      exchange
	refused  error // what validate said of got

	// Of the repetition that again wants:
	wait   polite.Wait
	why    manifest.Reason
	paused time.Duration // the rest of the host's pause
}

// get asks for a URL through one of the stacks until an answer is worth having or the attempts, or the time for them,
// are used up. Any status is a result, if use, which may be nil, accepts it. The error is use's, that of the last
// attempt, an *Unreachable, or the context's.
func (c *Client) get(
	ctx context.Context, next http.RoundTripper, link, accept string, maxBody int64, use func(exchange) error,
) (exchange, error) {
	method, form := http.MethodGet, io.Reader(nil)
	if link == tokenURL {
		method, form = http.MethodPost, strings.NewReader("grant_type=client_credentials")
	}
	req, err := http.NewRequestWithContext(ctx, method, link, form)
	if err != nil {
		return exchange{}, err
	}
	req.Header.Set("Accept", accept)
	if use == nil {
		req.Header.Set("Accept-Encoding", "identity") // some hosts pack images where no word is said
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	k := &call{c: c, lane: c.pace.lanes[req.URL.Hostname()], next: next, maxBody: maxBody, validate: use, attempt: 1}
	k.lane.begin()
	defer k.lane.end()
	k.lane.mu.Lock()
	k.before = k.lane.failures
	k.lane.mu.Unlock()
	begin := time.Now()
	_, err = polite.Retry{Attempt: k, Most: retries, Again: k.again, Wait: k.backoff, Waits: &c.pace.waits}.Do(req)
	err = polite.Bare(err)
	k.log(time.Since(begin), err)
	if ctx.Err() != nil {
		return exchange{}, ctx.Err() // before conclude: whoever stops a run says nothing of the host
	}
	if shut := k.conclude(err); shut != nil {
		return exchange{}, shut
	}
	if err != nil {
		return exchange{}, err
	}
	return k.got, k.refused
}

// log notes how a call ended: without the path, which names an image or an album, and without the words of an error,
// which can repeat an answer.
func (k *call) log(took time.Duration, err error) {
	args := []any{"host", k.lane.Host, "status", k.got.status, "bytes", len(k.got.body),
		"took", took.Round(time.Millisecond)}
	if err != nil {
		reason, detail := trouble(err)
		args = append(args, "reason", reason, "detail", detail)
	}
	k.c.o.Log.Debug("asked", args...)
}

// RoundTrip makes one attempt: it waits for its turn, sends the request, counts it, and reads the answer.
func (k *call) RoundTrip(req *http.Request) (*http.Response, error) {
	answered, err := k.lane.Pass(req.Context())
	if long, ok := errors.AsType[*polite.TooLong](err); ok {
		return nil, k.tooLong(long.For)
	}
	if err != nil {
		return nil, err
	}
	k.sent = time.Now()
	resp, err := k.next.RoundTrip(req)
	answered()
	if errors.Is(err, errForbidden) || errors.Is(err, errNoToken) {
		return nil, err // it was never sent
	}
	k.c.pace.count(k.lane, req.URL.Path, k.attempt)
	k.lane.heed(resp)
	if err != nil {
		if strings.Contains(err.Error(), "server response headers exceeded") {
			// net/http has no error value for it; a test fails when its text changes.
			err = tooLarge("headers_too_large", "header of the answer", maxHeaderBytes)
		}
		return nil, err
	}
	err = k.read(resp)
	if err != nil {
		return nil, err
	}
	resp.Body = http.NoBody
	return resp, nil
}

// read takes in an answer and judges it. Its error makes the attempt a failed one.
func (k *call) read(resp *http.Response) error {
	defer resp.Body.Close()
	e := exchange{status: resp.StatusCode, header: resp.Header}
	ok := e.status == http.StatusOK
	if !ok {
		// The status says it all; a broken body must not hide it.
		e.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxScrap))
	} else {
		if resp.ContentLength > k.maxBody {
			return tooLarge("too_large", "body", k.maxBody) // before a byte of it is waited for
		}
		body, err := polite.ReadBody(resp.Body, k.maxBody)
		if errors.Is(err, polite.ErrTooLong) {
			return tooLarge("too_large", "body", k.maxBody)
		}
		if err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		e.body = body
	}
	if k.validate != nil {
		k.refused = k.validate(e)
	}
	if ok && useless(k.refused) {
		return k.refused // a host in trouble sends pages with status 200, so it is asked again as after a 5xx
	}
	k.got = e
	return nil
}

// again decides whether an attempt is repeated, and after which wait.
func (k *call) again(ctx context.Context, _ *http.Response, err error) (bool, error) {
	now := time.Now()
	if k.start.IsZero() {
		k.start = now
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var asked time.Duration // to be left alone
	named := false
	if err == nil && saysLater(k.got.status, k.got.header) {
		asked, named = polite.RetryAfter(k.got.header, now)
	}
	if gone := k.weigh(err, asked); gone != nil {
		return false, gone
	}
	switch {
	case err != nil && permanent(err), err == nil && !saysLater(k.got.status, k.got.header):
		return false, err
	}
	// Each pause is a random part of its longest, so that clients that failed together do not come back together.
	w := polite.Wait{Host: k.lane.Host, Reason: waitServer}
	w.For = k.jittered(min(k.c.o.retryWait<<(k.attempt-1), maxBackoff))
	if err != nil {
		k.why, _ = trouble(err)
		if !is[*Unanswered](err) {
			w.Reason = waitNetwork
		}
	} else {
		k.why = status("http_", k.got.status)
		switch {
		case named: // and a little more, so that not all clients come back at once
			w.Reason, w.For = waitRetryAfter, max(w.For, asked+k.jittered(min(asked/10, time.Second)))
		case k.got.status == http.StatusTooManyRequests: // no time was named: never at once
			w.Reason, w.For = waitRateLimit, max(w.For, k.c.o.retryWait)
		}
		if w.Reason != waitServer {
			// All of the host's requests sit it out, also after the last attempt.
			k.lane.Pause(now.Add(w.For), w.Reason)
		}
	}
	k.wait = w
	k.paused, _, _ = k.lane.Paused(now)
	switch {
	case asked > polite.MaxWait:
		return false, k.tooLong(asked)
	case !k.forImage() && k.paused > polite.MaxWait+time.Second: // by its rate-limit headers; a second is the jitter's
		return false, k.tooLong(k.paused)
	}
	// One more attempt could keep an image for over a minute. An answer of the API speaks of many posts.
	slow := k.validate == nil && (errors.Is(err, errDeadline) || k.attempt > 1 && timedOut(err))
	if slow || now.Add(max(w.For, k.paused)).Sub(k.start) > maxTrying {
		return false, err
	}
	return true, nil
}

// backoff is the wait that again decided on, before the next attempt.
func (k *call) backoff(int, *http.Response) polite.Wait {
	k.attempt++
	k.c.o.Log.Debug("trying again", "host", k.lane.Host, "why", k.why,
		"wait", max(k.wait.For, k.paused).Round(time.Millisecond), "attempt", k.attempt, "of", retries+1)
	return k.wait
}

// jittered is a random time from 0 to most.
func (k *call) jittered(most time.Duration) time.Duration {
	return time.Duration(k.c.jitter() * float64(most))
}

// saysLater reports whether an answer says "again later": it is asked again, and a host that keeps saying so is paused
// and given up for a while. A status that speaks of one image alone never belongs here.
func saysLater(status int, h http.Header) bool {
	if h.Get("Retry-After") != "" { // both seen as rate limits, with this header only
		return polite.Repeatable(status, http.StatusForbidden, http.StatusRequestURITooLong)
	}
	return polite.Repeatable(status)
}

// tooLarge is the error of a part of an answer that would be as long again.
func tooLarge(reason manifest.Reason, part string, most int64) error {
	return &Unanswered{reason, fmt.Sprintf("the %s is longer than %d bytes", part, most)}
}

// permanent reports whether an error would be the same again.
func permanent(err error) bool {
	if none, ok := errors.AsType[*Unanswered](err); ok {
		return none.Reason == "too_large" || none.Reason == "headers_too_large"
	}
	if p, ok := errors.AsType[*polite.ProxyError](err); ok {
		return p.Refuses()
	}
	return is[*Unreachable](err) || isGuard(err) || polite.Permanent(err, errForbidden, errNoToken)
}

const (
	notPublic   manifest.Reason = "address_not_allowed"
	reasonProxy manifest.Reason = "proxy"
)

var isGuard = isAny(ssrf.ErrProhibitedIP, ssrf.ErrProhibitedPort, ssrf.ErrProhibitedNetwork)

// trouble names why no answer came, in one of a few fixed texts: nothing of it comes from the answer, or differs from
// run to run or from machine to machine, but for the address of the proxy with reasonProxy.
func trouble(err error) (manifest.Reason, string) {
	if none, ok := errors.AsType[*Unanswered](err); ok {
		return none.Reason, none.Detail
	}
	if p, ok := errors.AsType[*polite.ProxyError](err); ok {
		return reasonProxy, p.Error()
	}
	for _, t := range troubles {
		if t.is(err) {
			return t.reason, t.detail
		}
	}
	return "connection", "the connection failed"
}

// troubles are the kinds of errors without an answer. The first that fits is it.
var troubles = []struct {
	is     func(error) bool
	reason manifest.Reason
	detail string
}{
	{isAny(errDeadline), "timeout", errDeadline.Error()},
	{isAny(errStalled), "timeout", errStalled.Error()},
	{isAny(io.ErrUnexpectedEOF), "truncated", "the body ended early"},
	{isGuard, notPublic, "the host's name leads to an address that is not public"},
	{is[x509.UnknownAuthorityError], "tls", "the certificate is signed by an unknown authority"},
	{is[x509.HostnameError], "tls", "the certificate is for another host"},
	{isExpired, "tls", "the certificate has expired or is not valid yet; is this machine's clock right?"},
	{is[*tls.CertificateVerificationError], "tls", "the certificate is not valid"},
	{is[*net.DNSError], "dns", "the host's name could not be resolved"},
	{timedOut, "timeout", "no answer in time"},
	{isAny(syscall.ECONNREFUSED), "connection", "the host refused the connection"},
	{isAny(syscall.ECONNRESET, syscall.EPIPE, io.EOF), "connection", "the connection was closed early"},
}

// isAny makes a check whether an error wraps one of those.
func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
}

func isExpired(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired
}

// is reports whether an error wraps one of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
