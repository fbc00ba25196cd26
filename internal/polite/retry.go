package polite

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// ErrTooLong is the error of an answer that is longer than its reader allows.
var ErrTooLong = errors.New("the answer is longer than what is read of one")

// Repeatable reports whether a status says "again later": 408, 425, 429, every 5xx but 501, and those in also, which
// one server means so and another does not.
func Repeatable(status int, also ...int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented || slices.Contains(also, status)
}

// Permanent reports whether an error would be the same again: that of a certificate which is not trusted, IsBadHeader,
// ErrTooLong, or one of those in also.
func Permanent(err error, also ...error) bool {
	if slices.ContainsFunc(also, func(e error) bool { return errors.Is(err, e) }) {
		return true
	}
	return errors.Is(err, ErrTooLong) || IsBadHeader(err) || is[*tls.CertificateVerificationError](err) ||
		is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err)
}

// IsBadHeader reports whether an error says that the header of an answer breaks the protocol, such as a Location with
// a control character in it.
func IsBadHeader(err error) bool { return is[textproto.ProtocolError](err) }

// is reports whether an error wraps one of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// IsDial reports whether an error says that there was no connection.
func IsDial(err error) bool {
	at, ok := errors.AsType[*net.OpError](err)
	return ok && at.Op == "dial"
}

// Bare is an error of net/http without the method and the URL, which it puts on every one.
func Bare(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// ReadBody reads a body of at most so many bytes. The error of a longer one is ErrTooLong; others are the reader's own.
func ReadBody(r io.Reader, most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if int64(len(body)) > most {
		return nil, ErrTooLong
	}
	return body, err
}

// A Retry sends one request, and again while Again wants it. It belongs to one goroutine. All fields but Waits are
// required.
type Retry struct {
	// Attempt makes one attempt: it waits for the turn, sends, and reads the whole answer.
	Attempt http.RoundTripper
	Most    int // repetitions, after the first attempt
	// Again decides after each attempt whether it is repeated. It gets the answer, or a Bare error. An error that it
	// returns with false takes the place of that of the attempt.
	Again func(ctx context.Context, answer *http.Response, err error) (bool, error)
	// Wait is the pause before repetition n, from 1, that Again wants; answer is nil when none came.
	Wait  func(n int, answer *http.Response) Wait
	Waits *Waits // is told of these pauses; nil = none is
}

// Do sends a request until Again is content or the repetitions are used up, and returns the last answer, whatever its
// status, or the last error, as http.Client.Do does. It follows no redirect, and deletes a Location that is not a URL.
func (r Retry) Do(request *http.Request) (*http.Response, error) {
	req, err := retryablehttp.FromRequest(request)
	if err != nil {
		return nil, err
	}
	waited := func() {}
	defer func() { waited() }()
	// The library's hooks do not learn which request they are called for, so each request has a client. The connections
	// are those of the lowest transport, which all of them share.
	client := retryablehttp.Client{ // without a logger: it would print URLs
		HTTPClient: &http.Client{
			Transport:     whole{r.Attempt},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax: r.Most,
		CheckRetry: func(ctx context.Context, answer *http.Response, err error) (bool, error) {
			return r.Again(ctx, answer, Bare(err))
		},
		Backoff: func(_, _ time.Duration, repeated int, answer *http.Response) time.Duration {
			w := r.Wait(repeated+1, answer)
			if r.Waits != nil {
				waited = r.Waits.Begin(w)
			}
			return w.For
		},
		RequestLogHook: func(retryablehttp.Logger, *http.Request, int) {
			waited()
			waited = func() {}
		},
		// The last answer says more than "giving up after 6 attempts".
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return client.Do(req)
}

// whole makes net/http hand on every answer: it reads a Location even of what it does not follow, and fails on a bad
// one as if no answer had come.
type whole struct{ next http.RoundTripper }

func (t whole) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if _, bad := r.URL.Parse(answer.Header.Get("Location")); bad != nil {
		answer.Header.Del("Location")
	}
	return answer, nil
}
