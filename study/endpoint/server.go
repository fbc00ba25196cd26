// Package endpoint is the client of a server of models that a user names by URL, behind an OpenAI-compatible API. It
// follows no redirect, and reads a bounded answer.
package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
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
	URL        string                            // the base, as http://127.0.0.1:8000/v1
	Key        secret.Secret                     // sent to that server alone; empty for none
	ThirdParty bool                              // any machine may be asked, not this one alone
	PerMinute  float64                           // requests; 0 is without limit
	Timeout    time.Duration                     // of one attempt, its answer included; 0 is 5 min
	Proxy      polite.Proxy                      // by which a third party is reached; a server on this machine never is
	RootCAs    *x509.CertPool                    // nil = the system's
	Scrubber   *secret.Scrubber                  // learns the key; nil = none
	Log        *slog.Logger                      // nil = none
	OnWait     func(d time.Duration, why string) // is called before a pause of more than 2 s; nil = none
}

// ErrNotLocal is the error of a server that is not on this machine, without Options.ThirdParty.
var ErrNotLocal = errors.New("the server is not on this machine")

// errClear is the error of a key that would leave this machine without TLS.
var errClear = errors.New("the key would leave this machine unencrypted: write https, or leave the key out")

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

// Hint says what to do.
func (e *Unsupported) Hint() string {
	if e.Parameter == "max_tokens" && strings.Contains(strings.ToLower(e.Detail), "use 'max_completion_tokens'") {
		return "it wants max_completion_tokens, which --server openai sends"
	}
	return "leave it out: --omit " + e.Parameter
}

// An Unreachable is the error of a server that cannot be asked at all. It stops the run, which goes on where it was
// when started again.
type Unreachable struct {
	Host   string
	Detail string // what the server did or said, and what to do; printable
	Nobody bool   // no such server is there: it is not running, or the URL is not its base
	err    error
}

// Error says which server it is, and what it did.
func (e *Unreachable) Error() string { return e.Host + " " + e.Detail }

// Unwrap is what happened to the last attempt, or nil.
func (e *Unreachable) Unwrap() error { return e.err }

// A Server is the client of one server. It is safe for concurrent use.
type Server struct {
	o     Options
	base  *url.URL
	http  *polite.Client
	check func(sent int) error // of Checked; nil for none
}

// Open makes a client. It asks nothing.
func Open(o Options) (*Server, error) {
	base, err := url.Parse(o.URL)
	switch {
	case err != nil || base.Hostname() == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("the endpoint is not a URL: write its base, for example http://127.0.0.1:8000/v1")
	case base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		return nil, fmt.Errorf("the endpoint holds more than a base, as http://127.0.0.1:8000/v1: a key belongs into %s",
			KeyName)
	}
	base.Path, base.RawPath = strings.TrimRight(base.Path, "/"), ""
	o.Log, o.Scrubber = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Scrubber, new(secret.Scrubber))
	o.Scrubber.Learn(o.Key.Reveal(), o.Proxy.Password())
	s := &Server{o: o, base: base}
	gate := &polite.Gate{Pace: "no more requests a minute are wanted"}
	if o.OnWait != nil {
		gate.Waits = &polite.Waits{Tell: func(w polite.Wait) { o.OnWait(w.For, w.Reason) }}
	}
	if o.PerMinute > 0 {
		gate.Limiter = rate.NewLimiter(rate.Limit(o.PerMinute/60), 1)
	}
	s.http = &polite.Client{Transport: refused{s.transport()}, Timeout: cmp.Or(o.Timeout, 5*time.Minute),
		MaxAnswer: maxAnswer,
		Gate:      gate, Asked: reset, Permanent: []error{ErrNotLocal, errClear},
		Hopeless: func(body []byte) bool { return readSaid(body).isQuota() }}
	return s, nil
}

// transport is the lowest layer. Without ThirdParty it reaches this machine alone, and asks no DNS server either.
func (s *Server) transport() *http.Transport {
	d := &polite.Dialer{Timeout: connectTimeout, Guard: s.guard}
	t := &http.Transport{
		DialContext:            d.Dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.o.RootCAs},
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
	}
	if s.o.ThirdParty {
		d.Proxy = s.o.Proxy
		t.Proxy = func(r *http.Request) (*url.URL, error) { return d.Via(r.URL) }
	} else {
		d.Resolver = &net.Resolver{PreferGo: true,
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, ErrNotLocal }}
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := d.Dial(ctx, network, address)
			if _, unknown := errors.AsType[*net.DNSError](err); unknown {
				err = ErrNotLocal // what /etc/hosts does not have is not on this machine
			}
			return c, err
		}
	}
	return t
}

// guard looks at each address before it is dialled, after its name was looked up.
func (s *Server) guard(*polite.ConnectTo) func(network, address string, c syscall.RawConn) error {
	clear := s.base.Scheme == "http" && !s.o.Key.Empty()
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		switch {
		case err == nil && at.Addr().Unmap().IsLoopback():
			return nil
		case !s.o.ThirdParty:
			return ErrNotLocal
		case clear:
			return errClear
		}
		return nil
	}
}

// Checked returns the same server for requests that have check called before each attempt, when its turn has come, with
// how many were sent for the question by then, as Reply.Sent counts them. An error of check keeps the request back, and
// is the question's.
func (s *Server) Checked(check func(sent int) error) *Server {
	checked := *s
	checked.check = check
	return &checked
}

// ask sends a request until an answer is worth having, and reads it.
func (s *Server) ask(ctx context.Context, path string, body []byte, read func(map[string]any) Reply) (Reply, error) {
	var sent sending
	request, err := http.NewRequestWithContext(sent.counting(ctx), http.MethodPost, s.base.String()+path,
		bytes.NewReader(body))
	if err != nil {
		return Reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if !s.o.Key.Empty() {
		request.Header.Set("Authorization", "Bearer "+s.o.Key.Reveal())
	}
	begin := time.Now()
	var check func() error
	if s.check != nil {
		check = func() error { return s.check(sent.sent()) }
	}
	response, err := s.http.Do(request, check)
	var reply Reply
	if err != nil {
		reply, err = s.unanswered(ctx, err)
	} else {
		reply, err = s.answered(response, parametersOf(body), read)
	}
	reply.Sent = sent.sent()
	s.o.Log.Debug("asked", "path", path, "outcome", reply.Outcome, "took", time.Since(begin).Round(time.Millisecond),
		"error", err)
	return reply, err
}

// A sending counts the attempts of one question that reached the server whole, and that it may have worked for.
type sending struct{ n atomic.Int64 }

// sendingKey is the key of a context's *sending.
type sendingKey struct{}

// counting returns a context whose requests are counted.
func (s *sending) counting(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, sendingKey{}, s)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			s.n.Add(1)
		}
	}})
}

func (s *sending) sent() int { return max(0, int(s.n.Load())) }

// A refused transport takes back what was counted of a request that the server did not take: 429.
type refused struct{ http.RoundTripper }

func (r refused) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if counted, ok := request.Context().Value(sendingKey{}).(*sending); ok && err == nil &&
		response.StatusCode == http.StatusTooManyRequests {
		counted.n.Add(-1)
	}
	return response, err
}

func (s *Server) unreachable(detail string, nobody bool, err error) error {
	return &Unreachable{s.base.Host, detail, nobody, err}
}

// unanswered says what it means that no answer came.
func (s *Server) unanswered(ctx context.Context, err error) (Reply, error) {
	err = polite.Bare(err)
	if kept, ok := errors.AsType[*polite.NotSent](err); ok {
		return Reply{}, kept.Err
	}
	detail := s.o.Scrubber.Printable(err.Error())
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		return Reply{}, ctx.Err()
	case errors.Is(err, polite.ErrTooLong):
		return Reply{Outcome: TooLarge, Detail: fmt.Sprintf("%s: %d bytes", detail, maxAnswer)}, nil
	case errors.Is(err, ErrNotLocal):
		return Reply{}, fmt.Errorf("%s: %w", s.base.Host, ErrNotLocal)
	case polite.IsBadHeader(err): // that of a redirect, perhaps, whose Location holds what none may
		return Reply{}, s.unreachable("answers with a header that is not one of HTTP", true, err)
	case polite.IsDial(err), untrusted, errors.Is(err, errClear):
		return Reply{}, s.unreachable("cannot be asked: "+detail, polite.IsDial(err) && !errors.Is(err, errClear), err)
	}
	return Reply{Outcome: Failed, Detail: detail}, nil
}
