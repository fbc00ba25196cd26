package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"
)

const (
	retries    = 5                // after the first attempt
	maxBackoff = 30 * time.Second // between two attempts, when the server asks for no more
	maxPause   = 15 * time.Minute // the longest that a run waits because a server asks for it
	quietWait  = 2 * time.Second  // the longest pause that OnWait is not called for
)

var (
	errTooLong = errors.New("the answer is longer than what is read of one")
	errSlow    = errors.New("no whole answer in time")
)

// An exchange sends requests to one server, each attempt in its turn. The zero value paces nothing.
type exchange struct {
	next    http.RoundTripper
	timeout time.Duration // of one attempt, its answer included
	most    int64         // bytes of an answer
	limiter *rate.Limiter // nil = none
	onWait  func(d time.Duration, why string)

	met atomic.Bool // the server has answered

	mu     sync.Mutex
	paused time.Time // no request before this; guarded by mu
}

type checkKey struct{}

// WithCheck has check called before each attempt, when its turn has come. Its error keeps the request back, and is the
// question's.
func WithCheck(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, checkKey{}, check)
}

// notSent is the error of a check.
type notSent struct{ error }

func (e *notSent) Unwrap() error { return e.error }

// client is what sends requests: it tries again, and follows no redirect, so that another host than the one that was
// named learns nothing. Answers have their whole body in memory.
func (x *exchange) client() *retryablehttp.Client {
	return &retryablehttp.Client{ // without a logger: it would print URLs
		HTTPClient: &http.Client{Transport: x,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		RetryMax:   retries,
		CheckRetry: x.again,
		Backoff:    backoff,
		// The last answer says more than "giving up after 6 attempts".
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// RoundTrip makes one attempt when its turn has come.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := x.turn(r.Context()); err != nil {
		return nil, err
	}
	if check, ok := r.Context().Value(checkKey{}).(func() error); ok {
		if err := check(); err != nil {
			return nil, &notSent{err}
		}
	}
	// Below the pacing, so that no wait counts.
	ctx, cancel := context.WithTimeoutCause(r.Context(), x.timeout, errSlow)
	defer cancel()
	response, err := x.next.RoundTrip(r.WithContext(ctx))
	if err == nil {
		err = x.read(response)
	}
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		err = errSlow
	}
	if err != nil {
		return nil, err
	}
	x.met.Store(true)
	// net/http reads a Location even of what it does not follow, and fails on a bad one as if no answer had come.
	if _, bad := r.URL.Parse(response.Header.Get("Location")); bad != nil {
		response.Header.Del("Location")
	}
	return response, nil
}

// read replaces the body of an answer by what it holds. A small one that unfolds into a large one is a large one.
func (x *exchange) read(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, x.most+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case int64(len(body)) > x.most:
		return errTooLong
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// turn waits until a request may go out.
func (x *exchange) turn(ctx context.Context) error {
	// What another request learned during a wait counts, so that all is looked at again after each.
	for reserved := x.limiter == nil; ; {
		x.mu.Lock()
		d, why := time.Until(x.paused), "the server asked for a pause"
		x.mu.Unlock()
		if d <= 0 {
			if reserved {
				return nil
			}
			d, why, reserved = x.limiter.Reserve().Delay(), "no more requests a minute are wanted", true
		}
		if d > quietWait && x.onWait != nil {
			x.onWait(d, why)
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// again decides whether an attempt is repeated.
func (x *exchange) again(ctx context.Context, response *http.Response, err error) (bool, error) {
	switch {
	case ctx.Err() != nil:
		return false, nil // what came, if it did, is the answer
	case err != nil:
		// A server that was there may come back; one that was not is not waited for.
		return !permanent(err) && (x.met.Load() || !isDial(err)), nil
	case !repeatable(response.StatusCode):
		return false, nil
	}
	body, err := peek(response)
	if err != nil || readSaid(body).isQuota() {
		return false, err
	}
	now := time.Now()
	pause, named := reset(response.Header, now)
	if pause > maxPause {
		return false, nil
	}
	if named {
		x.mu.Lock()
		defer x.mu.Unlock()
		if until := now.Add(pause); until.After(x.paused) {
			x.paused = until // for all requests, also after the last attempt of this one
		}
	}
	return true, nil
}

// peek returns the body of an answer, which can be read again.
func peek(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// isDial reports whether there was no connection.
func isDial(err error) bool {
	at, ok := errors.AsType[*net.OpError](err)
	return ok && at.Op == "dial"
}

// permanent reports whether an error would be the same again. A second attempt at a slow answer would take as long.
func permanent(err error) bool {
	for _, e := range []error{errTooLong, errSlow, ErrNotLocal, errClear} {
		if errors.Is(err, e) {
			return true
		}
	}
	_, kept := errors.AsType[*notSent](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, unencrypted := errors.AsType[tls.RecordHeaderError](err)
	return kept || untrusted || unencrypted
}

// repeatable reports whether a status says "again later".
func repeatable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented // 529: the server is overloaded
}

// backoff is the pause before a repetition. A random part of it keeps requests that failed together apart.
func backoff(_, _ time.Duration, attempt int, response *http.Response) time.Duration {
	most := min(time.Second<<attempt, maxBackoff)
	if response != nil {
		if pause, named := reset(response.Header, time.Now()); named && pause > 0 {
			most = min(pause/10, time.Second) // more than what turn waits for
		}
	}
	return most/2 + time.Duration(rand.Float64()*float64(most)/2)
}

// reset reads how long a server asks to be left alone: retry-after-ms, Retry-After in seconds or as a date, or the
// headers of OpenAI's rate limits, as "6m0s".
func reset(h http.Header, now time.Time) (d time.Duration, named bool) {
	const ceiling = 365 * 24 * time.Hour // what is longer is as good as this, and cannot overflow
	number := func(name string, unit time.Duration) (time.Duration, bool) {
		n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64)
		if err != nil || !(n >= 0) {
			return 0, false
		}
		return time.Duration(min(n*float64(unit), float64(ceiling))), true
	}
	if d, ok := number("Retry-After-Ms", time.Millisecond); ok {
		return d, true
	}
	if d, ok := number("Retry-After", time.Second); ok {
		return d, true
	}
	if t, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date // by the server's own clock: this machine's may be wrong
		}
		return min(max(t.Sub(now), 0), ceiling), true
	}
	for _, kind := range []string{"Requests", "Tokens"} {
		// A limit that is not used up says nothing of when the other is.
		if left := h.Get("X-Ratelimit-Remaining-" + kind); left != "" && left != "0" {
			continue
		}
		name := "X-Ratelimit-Reset-" + kind
		one, ok := number(name, time.Second)
		ok = ok && one < 24*time.Hour // else it is a date in seconds, of which dialect is not known
		if parsed, err := time.ParseDuration(h.Get(name)); err == nil && parsed >= 0 {
			one, ok = parsed, true
		}
		if ok {
			d, named = max(d, min(one, ceiling)), true
		}
	}
	return d, named
}
