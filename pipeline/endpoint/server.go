package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"

	"rehydrate/pipeline/secret"
)

const (
	maxAnswer      = 4 << 20 // bytes; one of 128 tokens has about 1,000
	connectTimeout = 10 * time.Second
	maxHeaderBytes = 64 << 10
)

// KeyName is the environment variable of the key, and with _FILE added of the private file that holds it.
const KeyName = "ENDPOINT_API_KEY"

// KeyFromEnv reads the key through getenv (os.Getenv). It may be missing: a server on this machine needs none.
func KeyFromEnv(getenv func(string) string) (secret.Secret, error) {
	key, err := secret.FromEnv(getenv, KeyName)
	if err == nil && strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		key, err = "", fmt.Errorf("%s is not a key: printable ASCII without spaces", KeyName)
	}
	return secret.New(key), err
}

// Options are what a Server is asked with. URL is required.
type Options struct {
	URL        string        // the base, as http://127.0.0.1:8000/v1
	Key        secret.Secret // sent to that server alone; empty for none
	ThirdParty bool          // any machine may be asked, not this one alone
	PerMinute  float64       // requests; 0 is without limit
	Timeout    time.Duration // of one attempt, its answer included; 0 is 5 min
	RootCAs    *x509.CertPool
	Scrubber   *secret.Scrubber                  // learns the key; nil = none
	Log        *slog.Logger                      // nil = none
	OnWait     func(d time.Duration, why string) // is called before a pause of more than 2 s; nil = none
}

// ErrNotLocal is the error of a server that is not on this machine, without Options.ThirdParty.
var ErrNotLocal = errors.New("the server is not on this machine")

// A Denied is the error of a server that does not let the key in, or not any more. It stops the run.
type Denied struct{ Detail, Hint string }

// Error says what the server said.
func (e *Denied) Error() string { return e.Detail }

// An Unsupported is the error of a server that does not take one of the parameters. It stops the run.
type Unsupported struct {
	Parameter string // of Parameters
	Detail    string // what the server said
}

// Error says which parameter it is, and what the server said.
func (e *Unsupported) Error() string {
	return fmt.Sprintf("the server does not take %s: %s", e.Parameter, e.Detail)
}

// An Unreachable is the error of a server that cannot be asked at all. It stops the run, which goes on where it was
// when started again.
type Unreachable struct {
	Host   string
	Detail string
	err    error
}

// Error says which server it is, and what it did.
func (e *Unreachable) Error() string { return e.Host + ": " + e.Detail }

func (e *Unreachable) Unwrap() error { return e.err }

// A Server is the client of one server. It is safe for concurrent use.
type Server struct {
	o    Options
	base *url.URL
	http *retryablehttp.Client
	pace pace
}

// Open makes a client. It asks nothing.
func Open(o Options) (*Server, error) {
	base, err := url.Parse(o.URL)
	switch {
	case err != nil || base.Hostname() == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("the endpoint is not a URL: write the base, for example http://127.0.0.1:8000/v1")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("the endpoint holds more than a base: no user, ? or #; a key belongs into %s", KeyName)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	o.Log, o.Scrubber = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Scrubber, new(secret.Scrubber))
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	o.Scrubber.Learn(o.Key.Reveal())
	limit := rate.Inf
	if o.PerMinute > 0 {
		limit = rate.Limit(o.PerMinute / 60)
	}
	s := &Server{o: o, base: base, pace: pace{limiter: rate.NewLimiter(limit, 1), onWait: o.OnWait}}
	local := net.Dialer{Timeout: connectTimeout, Control: loopback}
	s.http = client(paced{&s.pace, bounded{&http.Transport{
		DialContext:            local.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
	}, o.Timeout, maxAnswer}})
	return s, nil
}

// loopback refuses to connect to another machine. It sees the address after the name was looked up.
func loopback(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return ErrNotLocal
	}
	return nil
}

// ask sends a request until an answer is worth having, and reads it.
func (s *Server) ask(ctx context.Context, path string, body []byte, read func([]byte) Reply) (Reply, error) {
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, s.base.String()+path, body)
	if err != nil {
		return Reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if !s.o.Key.Empty() {
		request.Header.Set("Authorization", "Bearer "+s.o.Key.Reveal())
	}
	response, err := s.http.Do(request)
	if err != nil {
		return s.unanswered(ctx, err)
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return Reply{}, err
	}
	return s.answered(response, []byte(s.o.Scrubber.Scrub(string(answer))), sent(body), read)
}

// unanswered says what it means that no answer came.
func (s *Server) unanswered(ctx context.Context, err error) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, ctx.Err()
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	dial, _ := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, errTooLong):
		return Reply{Outcome: TooLarge, Detail: errTooLong.Error()}, nil
	case dial != nil && dial.Op == "dial":
		return Reply{}, &Unreachable{s.base.Host, s.o.Scrubber.Printable(err.Error()), err}
	}
	return Reply{Outcome: Failed, Detail: s.o.Scrubber.Printable(err.Error())}, nil
}

// said is what a server says of an error, in the forms that the dialects have for it.
type said struct {
	Message, Type, Param, Code string
}

func readSaid(body []byte) said {
	var outer struct {
		Error json.RawMessage
		said
	}
	return outer.said
}

// answered says what an answer means.
func (s *Server) answered(response *http.Response, body []byte, sent []string, read func([]byte) Reply) (Reply, error) {
	if response.StatusCode != http.StatusOK {
		return Reply{Outcome: Failed, Detail: "the server answers " + response.Status}, nil
	}
	r := read(body)
	r.Detail = s.o.Scrubber.Printable(r.Detail)
	var more struct {
		Model string
		Usage Usage
	}
	_ = json.Unmarshal(body, &more) // without them the answer is as good
	r.Model, r.Usage = more.Model, more.Usage
	if json.Valid(body) {
		r.Raw = body
	}
	return r, nil
}

// A pace says when a request may go out.
type pace struct {
	limiter *rate.Limiter
	onWait  func(time.Duration, string)
	mu      sync.Mutex
	paused  time.Time // no request before this; guarded by mu
}

type paced struct {
	*pace
	next http.RoundTripper
}

// RoundTrip lets each attempt wait for its turn.
func (t paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.limiter.Wait(r.Context()); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// errTooLong is the error of an answer that is longer than is read of it.
var errTooLong = errors.New("the answer is longer than is read of one")

// bounded reads answers whole: of most bytes at most, each within timeout.
type bounded struct {
	next    http.RoundTripper
	timeout time.Duration
	most    int64
}

// RoundTrip returns an answer with its body in memory.
func (t bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithTimeout(r.Context(), t.timeout)
	defer stop()
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, t.most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > t.most:
		return nil, errTooLong
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// client is the layer above a transport: it tries again, and follows no redirect, so that another host than the one
// that was named learns nothing.
func client(transport http.RoundTripper) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.Logger, c.RetryMax, c.RetryWaitMax = nil, 2, 5*time.Second // it would print URLs
	c.HTTPClient = &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	// The last answer says more than "giving up after 3 attempts".
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c
}
