package reddit

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"image"
	"image/png"
	"io"
	"log"
	"log/slog"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// The secrets that no test output may ever show.
const (
	canarySecret = "CANARY-secret-5d1f"
	canaryToken  = "CANARY-token-a7c3"
	canaryName   = "CANARY_author"
)

func testOptions() Options {
	p := policy.Default()
	p.Reddit.RequestsPerMinute = 60e6 // pacing has tests of its own
	for i := range p.Images.Hosts {
		p.Images.Hosts[i].RequestsPerSecond = 1e6
	}
	return Options{
		Credentials: Credentials{ClientID: "client-id", ClientSecret: secret.New(canarySecret), Username: "some_body"},
		Approval:    "RFR-1", Policy: p, Version: "1.2.3", retryWait: time.Millisecond,
	}
}

// An answer is what a scripted host says.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
	held   time.Duration // before the answer
}

func reply(status int, body string, header ...string) answer {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return answer{status: status, header: h, body: body}
}

func tokenReply(life int) answer {
	return reply(200,
		`{"access_token":"`+canaryToken+`","token_type":"bearer","expires_in":`+strconv.Itoa(life)+`,"scope":"*"}`)
}

// A script plays Reddit and the image hosts below a Client's own layers, so that tests can
// run on synctest's clock. It records when which host was asked.
type script struct {
	mu   sync.Mutex
	seen []seen
	play func(n int, r *http.Request) answer // n counts the requests, from 0
}

type seen struct {
	at   time.Time
	host string
	req  *http.Request
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.seen)
	s.seen = append(s.seen, seen{time.Now(), r.URL.Hostname(), r})
	s.mu.Unlock()
	a := s.play(n, r)
	if err := wait(r.Context(), a.held); err != nil {
		return nil, err
	}
	if a.err != nil {
		return nil, a.err
	}
	h := a.header
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body)),
		ContentLength: int64(len(a.body)), Request: r}, nil
}

// wait sleeps for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	return new(polite.Waits).Sleep(ctx, polite.Wait{For: d})
}

// times returns when host was asked, in seconds from start.
func (s *script) times(host string, start time.Time) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []float64
	for _, r := range s.seen {
		if r.host == host {
			out = append(out, math.Round(r.at.Sub(start).Seconds()*100)/100)
		}
	}
	return out
}

// askedAt checks when host was asked, in seconds from start.
func (s *script) askedAt(t *testing.T, host string, start time.Time, want ...float64) {
	t.Helper()
	if got := s.times(host, start); !slices.Equal(got, want) {
		t.Errorf("%s was asked at %v, want %v", host, got, want)
	}
}

// noAnswer is the reason of an *Unanswered, "" of any other error.
func noAnswer(err error) manifest.Reason {
	if none, ok := errors.AsType[*Unanswered](err); ok {
		return none.Reason
	}
	return ""
}

// bubble runs f as a subtest on synctest's clock.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func mustAsk(t *testing.T, c *Client) {
	t.Helper()
	if _, err := c.Ask(t.Context(), ids("a1")); err != nil {
		t.Fatal(err)
	}
}

// download wants an image, or the fault outcome/reason, which must not name an address.
func download(t *testing.T, c *Client, url, want string) Download {
	t.Helper()
	d, err := c.Download(t.Context(), Candidate{URL: url})
	got, hasBody := "", true
	if f, ok := errors.AsType[*policy.Fault](err); ok {
		hasBody = NoImage(f.Reason)
		got, err = string(f.Outcome)+"/"+string(f.Reason), nil
		if strings.Contains(f.Detail, "://") || strings.Contains(f.Detail, ".png") ||
			strings.Contains(f.Detail, "127.0.0.1:") {
			t.Errorf("%s: the detail holds an address: %q", url, f.Detail)
		}
	}
	if err != nil || got != want || (d.Body != nil) != hasBody {
		t.Errorf("Download(%s) = %v, %q, %v; want %q", url, d.Info, got, err, want)
	}
	return d
}

func (s *script) client(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := newClient(o, s, s)
	if err != nil {
		t.Fatal(err)
	}
	c.jitter = func() float64 { return 0.5 }
	return c
}

// api plays the token endpoint and leaves the rest to play, which counts on its own.
func api(play func(n int, r *http.Request) answer) *script {
	s := &script{}
	var mu sync.Mutex
	n := 0
	s.play = func(_ int, r *http.Request) answer {
		if r.URL.Hostname() == tokenHost {
			return tokenReply(86400)
		}
		mu.Lock()
		i := n
		n++
		mu.Unlock()
		return play(i, r)
	}
	return s
}

// listing is an answer of /api/info that holds a live post for each id.
func listing(ids ...string) string {
	var things []string
	for _, id := range ids {
		things = append(things, thing(id, ""))
	}
	return listingOf(things...)
}

func listingOf(things ...string) string {
	return `{"kind":"Listing","data":{"after":null,"dist":1,"children":[` + strings.Join(things, ",") + `]}}`
}

// thing is a live post with an image; more is put behind its fields, and wins.
func thing(id, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"kind":"t3","data":{"id":"` + id + `","name":"t3_` + id + `","author":"` + canaryName + `","title":"` + canaryName +
		`","selftext":"","subreddit":"memes","removed_by_category":null,"removal_reason":null,"banned_by":null,` +
		`"is_robot_indexable":true,"quarantine":false,"is_self":false,"url":"https://i.redd.it/` + id + `.png"` + more + `}}`
}

func ids(names ...string) []manifest.PostID {
	var out []manifest.PostID
	for _, n := range names {
		out = append(out, manifest.PostID(n))
	}
	return out
}

func pngBytes(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// serve starts an HTTPS server that answers for every host a test asks, with a certificate
// of an authority of its own, and returns options that lead there.
func serve(t *testing.T, h http.HandlerFunc) Options {
	t.Helper()
	return serveUntil(t, time.Now().Add(time.Hour), h)
}

// serveUntil is serve with a certificate that ends then.
func serveUntil(t *testing.T, end time.Time, h http.HandlerFunc) Options {
	t.Helper()
	o := testOptions()
	names := []string{apiHost, tokenHost}
	for _, host := range o.Policy.Images.Hosts {
		names = append(names, host.Name)
	}
	cert, pool := certificate(t, names, end)
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	t.Cleanup(s.Close)
	lead(t, &o, "::"+s.Listener.Addr().String(), nil)
	o.RootCAs = pool
	return o
}

// lead makes options lead to a server with a certificate of its own.
func lead(t *testing.T, o *Options, connectTo string, pem []byte) {
	t.Helper()
	rule, err := polite.ParseConnectTo(connectTo)
	if err != nil {
		t.Fatal(err)
	}
	o.ConnectTo, o.RootCAs = []polite.ConnectTo{rule}, x509.NewCertPool()
	o.RootCAs.AppendCertsFromPEM(pem)
}

func certificate(t *testing.T, names []string, end time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func newTestClient(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logged returns options that log everything into b.
func logged(o Options, b io.Writer) Options {
	o.Log = slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return o
}
