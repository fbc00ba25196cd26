package reddit_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// wireAnswers are answers of Reddit that a client bears in one request, as they were recorded or deduced (PRAW and
// prawcore cassettes, gallery-dl, the Reddit Data API wiki): each has an emulator and a client of its own. The answers
// about a post, and those of image hosts, are in cmd/rehydrate.
var wireAnswers = map[string]func(*testing.T){
	"rate headers: remaining 997.0 parses":                      remainingParses,
	"rate headers: remaining 0.0 trips the limiter":             headersAsk("1000", "0.0", "30", 29*time.Second, 32*time.Second),
	"rate headers: reset 0 with remaining 0 waits a second":     resetZero,
	"rate headers: absent headers decrement the count":          absentHeaders,
	"rate headers: used and remaining sum to 600":               headersAsk("80", "520.0", "545", 4*time.Second, 5*time.Second),
	"rate headers: used and remaining sum to 1000":              headersAsk("120", "880.0", "545", 4*time.Second, 5*time.Second),
	"rate headers: used and remaining sum to 10000":             headersAsk("1020", "8980.0", "545", 4*time.Second, 5*time.Second),
	"rate headers: huge reset gives a visible and bounded wait": headersAsk("1000", "0.0", "86400", time.Minute, 15*time.Minute),

	"429 and 403: 429 as HTML with Retry-After":           limited(hostile.TooManyHTML, "retry_after"),
	"429 and 403: 429 as JSON without Retry-After":        tooManyJSON,
	"429 and 403: 429 with an empty body":                 tooManyEmpty,
	"429 and 403: 429 for a default User-Agent":           defaultAgent,
	"429 and 403: 403 HTML, Blocked":                      blocked(hostile.BlockedHTML()),
	"429 and 403: 403 HTML, blocked by network security":  blocked(hostile.NetworkSecurityHTML()),
	"429 and 403: 403 HTML, administrative rules":         blocked(hostile.AdministrativeHTML()),
	"429 and 403: 403 JSON with a reason":                 forbidden,
	"429 and 403: 403 with Retry-After is a rate limit":   limited(hostile.ForbiddenRetryAfter, "retry_after"),
	"429 and 403: 414":                                    uriTooLong,
	"429 and 403: 451":                                    unanswered(hostile.LegalReasons(), "http_451"),
	"token: 200 with an error is a failure":               oauthErrors,
	"token: expires_in 3600":                              tokenLife(time.Hour, 2),
	"token: expires_in 86400":                             tokenLife(24*time.Hour, 1),
	"token: expiry in the middle of a run refreshes once": refreshed(hostile.ExpireToken()),
	"token: a token that always expires makes no loop":    noTokenLoop,
	"token: 401 with 34 KB of HTML":                       refreshed(hostile.ExpireTokenHTML()),
	"token: 403 insufficient_scope":                       insufficientScope,
	"token: the bearer goes to oauth.reddit.com only":     bearerStays,

	"server errors: 500":              serverError(500),
	"server errors: 502":              serverError(502),
	"server errors: 503":              serverError(503),
	"server errors: 504":              serverError(504),
	"server errors: 520":              serverError(520),
	"server errors: 522":              serverError(522),
	"server errors: 408":              serverError(408),
	"server errors: reset connection": passing(hostile.Reset(), "connection"),
	"server errors: truncated JSON":   passing(hostile.TruncatedJSON(), "truncated_json"),
	"server errors: truncated body":   passing(hostile.TruncatedBody(), "truncated"),
	"server errors: HTML with 200":    passing(hostile.HTML200(), "html"),

	"id lists: exactly 100 ids":                                  hundredIDs,
	"id lists: over 100 ids are never sent":                      overHundred,
	"id lists: absent ids":                                       absentIDs,
	"id lists: an extra id":                                      extraID,
	"id lists: a duplicate id":                                   duplicateID,
	"id lists: an empty listing for all is unknown, not removal": unanswered(hostile.EmptyListing(), "empty_listing"),

	"media hosts: &amp; in a signed URL": ampersands,
}

// TestWireAnswers runs them, over TLS.
func TestWireAnswers(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(wireAnswers)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wireAnswers[name](t)
		})
	}
}

const apiHost, tokenHost = "oauth.reddit.com", "www.reddit.com"

// retries is how often the client asks again after a failed attempt.
const retries = 3

// A wire is a client and the emulator it asks. The emulator has the live post a1 and b2,
// which was removed; c3 it does not know.
type wire struct {
	*testing.T
	emulator *hostile.Server
	client   *reddit.Client
	log      bytes.Buffer // complete when no call is under way
	ctx      context.Context
	cancel   context.CancelFunc

	mu        sync.Mutex
	waits     []reddit.Wait // mu: those told
	impatient bool          // mu: the next wait that is told ends ctx
}

func newWire(t *testing.T, o redditemu.Options, change ...func(*reddit.Options)) *wire {
	t.Helper()
	emulator, err := hostile.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Close)
	if err := emulator.Put(redditemu.Post{ID: "a1"}, redditemu.Post{ID: "b2", Condition: redditemu.Removed}); err != nil {
		t.Fatal(err)
	}
	w := &wire{T: t, emulator: emulator}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	rule, err := reddit.ParseConnectTo(emulator.ConnectTo())
	if err != nil {
		t.Fatal(err)
	}
	opt := reddit.Options{
		Credentials: reddit.Credentials{ClientID: emulator.ClientID, ClientSecret: reddit.NewSecret(emulator.Secret), Username: "test_user"},
		Approval:    "TEST-1", Policy: unhurried(), ConnectTo: []reddit.ConnectTo{rule}, RootCAs: authorities(t, emulator),
		RetryWait: time.Millisecond, OnWait: w.told, Log: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&opt)
	}
	if w.client, err = reddit.New(opt); err != nil {
		t.Fatal(err)
	}
	return w
}

// unhurried is a policy whose own rates never make a client wait: what waits is Reddit's doing.
func unhurried() policy.Policy {
	p := policy.Default()
	p.Reddit.RequestsPerMinute = 60e6
	for i := range p.Images.Hosts {
		p.Images.Hosts[i].RequestsPerSecond = 1e6
	}
	return p
}

func authorities(t *testing.T, s *hostile.Server) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CAPEM()) {
		t.Fatal("the emulator's certificate cannot be read")
	}
	return pool
}

// told is the client's OnWait.
func (w *wire) told(wait reddit.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, wait)
	if w.impatient {
		w.cancel()
	}
}

// slowRetries makes a client wait long enough between attempts to be told of.
func slowRetries(o *reddit.Options) { o.RetryWait = 30 * time.Second }

// fault spoils so many requests of a host, 0 = all.
func (w *wire) fault(host string, times int, kind hostile.FaultKind) *hostile.Armed {
	return w.emulator.Fault(hostile.Fault{Host: host, Times: times, Kind: kind})
}

func (w *wire) look() (reddit.Answer, error) {
	return w.client.Ask(w.ctx, []manifest.PostID{"a1", "b2", "c3"})
}

// good asks and wants the whole truth.
func (w *wire) good() {
	w.Helper()
	a, err := w.look()
	if err != nil {
		w.Fatalf("Ask = %v, want an answer", err)
	}
	w.truth(a)
}

func (w *wire) truth(a reddit.Answer) {
	w.Helper()
	if live, gone := policy.Judge(a.Posts["a1"].Facts), policy.Judge(a.Posts["b2"].Facts); len(a.Posts) != 2 ||
		live.State != manifest.StateLive || gone.State != manifest.StateRemoved {
		w.Errorf("%d posts, a1 %s, b2 %s; want 2, live and removed", len(a.Posts), live.State, gone.State)
	}
	if !slices.Equal(a.Absent, []manifest.PostID{"c3"}) || len(a.Unclear) != 0 {
		w.Errorf("absent %v, unclear %v; want c3 alone absent", a.Absent, a.Unclear)
	}
}

// nothing asks and wants an error and no verdict.
func (w *wire) nothing() error {
	w.Helper()
	a, err := w.look()
	if err == nil {
		w.Fatal("Ask has no error")
	}
	if len(a.Posts)+len(a.Absent)+len(a.Unclear) != 0 {
		w.Errorf("a failed Ask has verdicts: %+v", a)
	}
	for _, canary := range hostile.Canaries() {
		if strings.Contains(err.Error(), canary) {
			w.Errorf("a canary is in the error: %v", err)
		}
	}
	return err
}

// unknown asks and wants an *Unanswered of that reason: the run goes on, without a verdict.
func (w *wire) unknown(reason manifest.Reason) {
	w.Helper()
	var none *reddit.Unanswered
	if err := w.nothing(); !errors.As(err, &none) || none.Reason != reason {
		w.Errorf("Ask = %v, want no usable answer: %s", err, reason)
	}
}

// denied asks and wants a *Denied of that reason, with something to do: the run stops.
func (w *wire) denied(reason manifest.Reason) {
	w.Helper()
	var denied *reddit.Denied
	if err := w.nothing(); !errors.As(err, &denied) || denied.Reason != reason || denied.Hint == "" {
		w.Errorf("Ask = %v, want denied: %s, with a hint", err, reason)
	}
}

// requests are those to a host that the emulator saw.
func (w *wire) requests(host string) []hostile.Request {
	var all []hostile.Request
	for _, r := range w.emulator.Requests() {
		if r.Host == host {
			all = append(all, r)
		}
	}
	return all
}

func (w *wire) count(host string, want int) {
	w.Helper()
	if got := len(w.requests(host)); got != want {
		w.Errorf("%s was asked %d times, want %d", host, got, want)
	}
}

// apart wants the last two requests to the API at least d apart.
func (w *wire) apart(d time.Duration) {
	w.Helper()
	all := w.requests(apiHost)
	if len(all) < 2 {
		w.Fatalf("%s was asked %d times", apiHost, len(all))
	}
	if got := all[len(all)-1].Time.Sub(all[len(all)-2].Time); got < d {
		w.Errorf("asked again after %v, want at least %v", got, d)
	}
}

// waitsFor asks, wants a wait of the API to be told with that reason and length, and does
// not sit it out.
func (w *wire) waitsFor(reason string, low, high time.Duration) {
	w.Helper()
	w.mu.Lock()
	w.waits, w.impatient = nil, true
	w.mu.Unlock()
	err := w.nothing()
	if !errors.Is(err, context.Canceled) {
		err = w.nothing() // chance may make the pauses within one call too short to be told
	}
	if !errors.Is(err, context.Canceled) {
		w.Fatalf("Ask = %v, want it to wait", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waits) == 0 {
		w.Fatal("no wait was told")
	}
	if got := w.waits[0]; got.Host != apiHost || got.Reason != reason || got.For < low || got.For > high {
		w.Errorf("told %+v, want %s for %s, %v to %v", got, apiHost, reason, low, high)
	}
}

// givesUp asks until the client leaves the host alone: some tens of requests, no verdict.
func (w *wire) givesUp() {
	w.Helper()
	var shut *reddit.Unreachable
	for n := 1; !errors.As(w.nothing(), &shut); n++ {
		if n == 10 {
			w.Fatalf("after %d calls %s is still asked", n, apiHost)
		}
	}
	n := len(w.requests(apiHost))
	if n > 40 || shut.Host != apiHost || shut.Hint == "" {
		w.Errorf("gave up after %d requests: %v", n, shut)
	}
	_ = w.nothing()
	w.count(apiHost, n)
}

// otherAgent is the header of a well-behaved client that is not the tool.
const otherAgent = "User-Agent: linux:test:1 (by /u/test_user)"

// raw makes a request as some other client would. It returns the head and the body of the answer.
func raw(t *testing.T, s *hostile.Server, host, line string, headers ...string) (head, body string) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: authorities(t, s), ServerName: host})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := line + "\r\nHost: " + host + "\r\nConnection: close\r\n" + strings.Join(headers, "\r\n") + "\r\n"
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ = strings.Cut(string(b), "\r\n\r\n")
	return head, body
}
