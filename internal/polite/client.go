package polite

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	retries    = 5                // of a Client, after the first attempt
	maxBackoff = 30 * time.Second // between two attempts, when the server asks for no more
)

// errSlow is the error of an attempt that took longer than Client.Timeout.
var errSlow = errors.New("no whole answer in time")

// A Client asks one server that a user names by URL. What may pass is tried again, at most five times, but a connection
// that was refused only after the server has answered once: a server that was never there is not waited for.
// Transport, Timeout, MaxAnswer and Gate are required. It is safe for concurrent use.
type Client struct {
	Transport http.RoundTripper
	Timeout   time.Duration // of one attempt, its answer included
	MaxAnswer int64         // bytes of an answer
	Gate      *Gate         // lets each attempt out
	// Asked reads how long the server asks to be left alone; nil is RetryAfter.
	Asked func(h http.Header, now time.Time) (d time.Duration, named bool)
	// Hopeless reports whether the body of an answer that says "again later" names trouble that does not pass. It may
	// be nil.
	Hopeless func(body []byte) bool
	// Permanent are errors of Transport that would be the same again.
	Permanent []error

	met atomic.Bool // the server has answered
}

// A NotSent is the error of a request that its check kept back.
type NotSent struct{ Err error }

// Error says why it was kept back.
func (e *NotSent) Error() string { return e.Err.Error() }

// Unwrap is the error of the check.
func (e *NotSent) Unwrap() error { return e.Err }

// Repeatable reports whether a Client takes a status as "again later".
func (c *Client) Repeatable(status int) bool { return Repeatable(status, http.StatusConflict) }

// Do sends a request until an answer is worth having. The body of the answer is in memory. check, which may be nil, is
// called before each attempt, when its turn has come; its error keeps the request back, and is returned in a *NotSent.
func (c *Client) Do(request *http.Request, check func() error) (*http.Response, error) {
	r := Retry{Attempt: attempt{c, check}, Most: retries, Again: c.again, Wait: c.backoff}
	return r.Do(request)
}

// An attempt is one request of a Client.
type attempt struct {
	c     *Client
	check func() error
}

func (a attempt) RoundTrip(r *http.Request) (*http.Response, error) {
	answered, err := a.c.Gate.Pass(r.Context())
	if err != nil {
		return nil, err
	}
	defer answered()
	if a.check != nil {
		if err := a.check(); err != nil {
			return nil, &NotSent{err}
		}
	}
	// Below the pacing, so that no wait counts.
	ctx, cancel := context.WithTimeoutCause(r.Context(), a.c.Timeout, errSlow)
	defer cancel()
	response, err := a.c.Transport.RoundTrip(r.WithContext(ctx))
	if err == nil {
		err = a.c.read(response)
	}
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		err = errSlow
	}
	if err != nil {
		return nil, err
	}
	a.c.met.Store(true)
	return response, nil
}

// read replaces the body of an answer by what it holds. A small one that unfolds into a large one is a large one.
func (c *Client) read(response *http.Response) error {
	defer response.Body.Close()
	body, err := ReadBody(response.Body, c.MaxAnswer)
	if err != nil && !errors.Is(err, ErrTooLong) {
		err = fmt.Errorf("read the answer: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return err
}

// again decides whether an attempt is repeated.
func (c *Client) again(ctx context.Context, response *http.Response, err error) (bool, error) {
	switch {
	case ctx.Err() != nil:
		return false, nil // what came, if it did, is the answer
	case err != nil:
		return !c.permanent(err) && (c.met.Load() || !IsDial(err)), nil
	case !c.Repeatable(response.StatusCode):
		return false, nil
	}
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body)) // to be read again
	if err != nil || c.Hopeless != nil && c.Hopeless(body) {
		return false, err
	}
	now := time.Now()
	pause, named := c.asked(response.Header, now)
	if pause > MaxWait {
		return false, nil
	}
	if named { // for all requests, also after the last attempt of this one
		c.Gate.Pause(now.Add(pause), "the server asked for a pause")
	}
	return true, nil
}

// permanent reports whether an error would be the same again. A second attempt at a slow answer would take as long.
func (c *Client) permanent(err error) bool {
	return Permanent(err, c.Permanent...) || errors.Is(err, errSlow) ||
		is[*NotSent](err) || is[tls.RecordHeaderError](err)
}

// backoff is the pause before a repetition. A random part of it keeps requests that failed together apart.
func (c *Client) backoff(n int, response *http.Response) Wait {
	most := min(time.Second<<(n-1), maxBackoff)
	if response != nil {
		if pause, named := c.asked(response.Header, time.Now()); named && pause > 0 {
			most = min(pause/10, time.Second) // more than what the gate waits for
		}
	}
	return Wait{For: most/2 + time.Duration(rand.Float64()*float64(most)/2)}
}

func (c *Client) asked(h http.Header, now time.Time) (time.Duration, bool) {
	if c.Asked == nil {
		return RetryAfter(h, now)
	}
	return c.Asked(h, now)
}

// A Status is the error of an answer other than 200, as the server words it: "404 Not Found".
type Status string

// Error says what the server answers.
func (s Status) Error() string { return "answers " + string(s) }

// Post sends body to url, as the Content-Type kind, with a Client of its own and the proxy that the environment names.
// It returns an answer of at most so many bytes. An attempt takes at most a minute. The error of an answer other than
// 200 is a Status.
func Post(ctx context.Context, url, kind string, body []byte, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	c := &Client{Transport: http.DefaultTransport, Timeout: time.Minute, MaxAnswer: most, Gate: new(Gate)}
	response, err := c.Do(request, nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, Status(response.Status)
	}
	return io.ReadAll(response.Body)
}
