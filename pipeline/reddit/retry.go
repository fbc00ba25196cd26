package reddit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
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
	maxTrying  = 20 * time.Minute // from the end of a call's first attempt to the start of its last: maxWait and some
	maxScrap   = 4 << 10          // of the body of an answer that is not a 200
	maxHops    = 3                // redirects that an image is followed through
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

// A call is one request with its repetitions. It belongs to one goroutine.
type call struct {
	c        *Client
	lane     *lane
	maxBody  int64
	validate func(exchange) error // nil for images, where any answer says something of the image
	before   int                  // failures of the host when the call began
	start    time.Time            // when the first attempt ended
	attempt  int                  // that is being made, from 1
	got      exchange
	refused  error // what validate said of got
}

// callKey finds the call of a request in its context, which is all that the library's hooks share.
type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// stack builds the layers above a transport for the requests of one kind.
func (c *Client) stack(next http.RoundTripper, authorize func(*http.Request) error) *retryablehttp.Client {
	return &retryablehttp.Client{ // without a logger: it would print URLs
		HTTPClient: &http.Client{
			Transport: paced{c.pace, identified{c, next, authorize}},
			// Redirects are never followed here: Download checks each one.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax: retries,
		CheckRetry: func(ctx context.Context, resp *http.Response, err error) (bool, error) {
			return callOf(ctx).again(ctx, resp, err)
		},
		// The wait is made before: Backoff does not learn whose request it is when no answer came.
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// get asks for a URL through one of the stacks until an answer is worth having or the attempts, or the time for them,
// are used up. Any status is a result, if use, which may be nil, accepts it. The error is use's, that of the last
// attempt, an *Unreachable, or the context's.
func (c *Client) get(
	ctx context.Context, hc *retryablehttp.Client, link, accept string, maxBody int64, use func(exchange) error,
) (exchange, error) {
	method, form := http.MethodGet, any(nil)
	if link == tokenURL {
		method, form = http.MethodPost, []byte("grant_type=client_credentials")
	}
	k := &call{c: c, maxBody: maxBody, validate: use, attempt: 1}
	req, err := retryablehttp.NewRequestWithContext(context.WithValue(ctx, callKey{}, k), method, link, form)
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
	k.lane = c.pace.lanes[req.URL.Hostname()]
	k.lane.mu.Lock()
	k.before = k.lane.failures
	k.lane.mu.Unlock()
	begin := time.Now()
	_, err = hc.Do(req) // again has read and closed the body of every answer
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the method and the URL, which net/http puts on every one
	}
	if c.o.Log.Enabled(ctx, slog.LevelDebug) { // printable takes as long as the rest of a small request
		// Without the path, which names an image or an album.
		c.o.Log.Debug("asked", "host", k.lane.host, "status", k.got.status, "bytes", len(k.got.body),
			"took", time.Since(begin).Round(time.Millisecond), "error", c.printable(fmt.Sprint(err)))
	}
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

// read takes in an answer and judges it. Its error makes the attempt a failed one.
func (k *call) read(resp *http.Response) error {
	defer resp.Body.Close()
	e := exchange{status: resp.StatusCode, header: resp.Header}
	ok, most := e.status == http.StatusOK, k.maxBody
	if !ok {
		most = maxScrap
	} else if resp.ContentLength > most {
		return tooLarge("too_large", "body", most) // before a byte of it is waited for
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case !ok: // the status says it all; a broken body must not hide it
	case int64(len(body)) > most:
		return tooLarge("too_large", "body", most)
	case err != nil:
		return fmt.Errorf("read the body: %w", err)
	}
	e.body = body[:min(int64(len(body)), most)]
	if k.validate != nil {
		k.refused = k.validate(e)
	}
	if ok && useless(k.refused) {
		return k.refused // a host in trouble sends pages with status 200, so it is asked again as after a 5xx
	}
	k.got = e
	return nil
}

// again decides whether an attempt is repeated, and waits for the time to do so.
func (k *call) again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if err == nil {
		// The library closes the body of an answer that it repeats, so each is read here.
		err = k.read(resp)
	} else if strings.Contains(err.Error(), "server response headers exceeded") {
		// net/http has no error value for it; a test fails when its text changes.
		err = tooLarge("headers_too_large", "header of the answer", maxHeaderBytes)
	}
	now := time.Now()
	if k.start.IsZero() {
		k.start = now
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil && permanent(err), err == nil && !repeatable(k.got.status, k.got.header):
		return false, err
	}
	// Each pause is a random part of its longest, so that clients that failed together do not come back together.
	w := Wait{k.lane.host, waitServer, k.jittered(min(k.c.o.retryWait<<(k.attempt-1), maxBackoff))}
	var why manifest.Reason
	if err != nil {
		why, _ = trouble(err)
		if !is[*Unanswered](err) {
			w.Reason = waitNetwork
		}
	} else {
		why = status("http_", k.got.status)
		asked, named := retryAfter(k.got.header, now)
		switch {
		case named: // and a little more, so that not all clients come back at once
			w.Reason, w.For = waitRetryAfter, max(w.For, asked+k.jittered(min(asked/10, time.Second)))
		case k.got.status == http.StatusTooManyRequests: // no time was named: never at once
			w.Reason, w.For = waitRateLimit, max(w.For, k.c.o.retryWait)
		}
		if w.Reason != waitServer {
			k.lane.mu.Lock()
			// All of the host's requests sit it out, also after the last attempt.
			k.lane.pauseUntil(now.Add(w.For), w.Reason)
			k.lane.mu.Unlock()
		}
		if asked > maxWait {
			return false, tooLong(k.lane.host, asked)
		}
	}
	paused, _, _ := k.lane.look(now)
	wait := max(w.For, paused)
	// One more attempt could keep an image for over a minute. An answer of the API speaks of many posts.
	slow := k.validate == nil && (errors.Is(err, errDeadline) || k.attempt > 1 && timedOut(err))
	if k.attempt > retries || slow || now.Add(wait).Sub(k.start) > maxTrying {
		return false, err
	}
	k.attempt++
	k.c.o.Log.Debug("trying again", "host", w.Host, "why", why, "wait", wait.Round(time.Millisecond),
		"attempt", k.attempt, "of", retries+1)
	if err := k.c.pace.sleep(ctx, w); err != nil {
		return false, err
	}
	return true, nil
}

// jittered is a random time from 0 to most.
func (k *call) jittered(most time.Duration) time.Duration {
	return time.Duration(k.c.jitter() * float64(most))
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

// retryAfter reads a Retry-After in either of its forms: seconds, or a date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
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
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // by the host's own clock: this machine's may be wrong
	}
	return max(t.Sub(now), 0), true
}

// tooLarge is the error of a part of an answer that would be as long again.
func tooLarge(reason manifest.Reason, part string, most int64) error {
	return &Unanswered{reason, fmt.Sprintf("the %s is longer than %d bytes", part, most)}
}

// permanent reports whether an error would be the same again.
func permanent(err error) bool {
	switch reason, _ := trouble(err); reason {
	case "too_large", "headers_too_large", "tls", notPublic:
		return true
	}
	return is[*Unreachable](err) || errors.Is(err, errForbidden) || errors.Is(err, errNoToken)
}

const notPublic manifest.Reason = "address_not_allowed"

var isGuard = isAny(ssrf.ErrProhibitedIP, ssrf.ErrProhibitedPort, ssrf.ErrProhibitedNetwork)

// trouble names why no answer came, in one of a few fixed texts: nothing of it may differ from run to run or from
// machine to machine, or come from the answer.
func trouble(err error) (manifest.Reason, string) {
	if none, ok := errors.AsType[*Unanswered](err); ok {
		return none.Reason, none.Detail
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
	{isAny(syscall.ECONNREFUSED), "connection", "the connection was refused"},
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
