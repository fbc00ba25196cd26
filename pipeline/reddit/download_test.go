package reddit

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// redirectTo answers with a redirect to where.
func redirectTo(where string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", where)
		w.WriteHeader(http.StatusFound)
	}
}

func say(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// once answers with first, and from then on with rest.
func once(first, rest http.HandlerFunc) http.HandlerFunc {
	var asked atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if asked.CompareAndSwap(false, true) {
			first(w, r)
			return
		}
		rest(w, r)
	}
}

// drop breaks the connection off after what has been said.
func drop(w http.ResponseWriter, r *http.Request) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

func TestDownload(t *testing.T) {
	body := string(pngBytes(t))
	var hops atomic.Int64
	hosts := map[string]http.HandlerFunc{
		"/good.png":        say(200, body),
		"/lies.png":        say(200, body, "Content-Type", "text/html"),
		"/moved.png":       redirectTo("/good.png"),
		"/other.png":       redirectTo("https://i.imgur.com/good.png"),
		"/chain.png":       redirectTo("/moved.png"),
		"/three.png":       redirectTo("/chain.png"),
		"/four.png":        redirectTo("/three.png"),
		"/loop.png":        redirectTo("/loop.png"),
		"/nowhere.png":     say(302, ""),
		"/bad.png":         redirectTo("https://[::1/%zz"),
		"/circle.png":      redirectTo("/circle-back.png"),
		"/circle-back.png": redirectTo("/circle.png"),
		"/media.png":       redirectTo("https://www.reddit.com/media?url=x"),
		"/imgur-page.png":  redirectTo("http://imgur.com/abcdefg"),
		"/gone-plain.png":  redirectTo("http://i.imgur.com/removed.png"),
		"/gone.png":        redirectTo("https://i.imgur.com/removed.png"),
		"/404.png":         say(404, body, "Content-Type", "image/png"),
		"/410.png":         say(410, ""),
		"/403.png":         say(403, "<?xml?><Error><Code>AccessDenied</Code></Error>"),
		"/403-block.png":   say(403, "<html>Request forbidden by administrative rules."),
		"/403-rate.png":    say(403, "", "Retry-After", "0"),
		"/451.png":         say(451, ""),
		"/429.png":         say(429, ""),
		"/500.png":         say(500, ""),
		"/503.png":         say(503, ""),
		"/400.png":         say(400, ""),
		"/204.png":         say(204, ""),
		"/206.png":         say(206, body),
		"/304.png":         say(304, ""),
		"/html.png":        say(200, "<!DOCTYPE html><html>"),
		"/json.png":        say(200, `{"data":{"error":"Imgur is asleep"}}`),
		"/xml.png":         say(200, `<?xml version="1.0"?><Error/>`),
		"/capacity.png":    say(200, `{"data":{"error":"Imgur is temporarily over capacity"}}`),
		"/html-once.png":   once(say(200, "<!DOCTYPE html><html>"), say(200, body)),
		"/empty-once.png":  once(say(200, ""), say(200, body)),
		"/empty.png":       say(200, ""),
		"/packed.png":      say(200, body, "Content-Encoding", "gzip"),
		"/large.png":       say(200, body+strings.Repeat("x", 100_000)),
		"/endless.png":     func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, endless{}) },
		"/cut.png": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = io.WriteString(w, body[:len(body)/2])
			drop(w, r)
		},
		"/cut-chunked.png": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, body[:len(body)/2])
			drop(w, r)
		},
		"/reset.png":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"/headers.png": say(200, body, "X-Long", strings.Repeat("x", 2*maxHeaderBytes)),
		"/twice.png": func(w http.ResponseWriter, r *http.Request) {
			if hops.Add(1) == 1 {
				drop(w, r)
			}
			_, _ = io.WriteString(w, body)
		},
	}
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "*/*" || r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Authorization") != "" ||
			r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != "" || !strings.Contains(r.Header.Get("User-Agent"), ":rehydrate:1.2.3 (by /u/some_body)") {
			t.Errorf("request headers %v", r.Header)
		}
		if r.Host == apiHost || r.Host == tokenHost {
			t.Errorf("%s was asked for an image", r.Host)
		}
		h, ok := hosts[r.URL.Path]
		if !ok {
			t.Errorf("unexpected request for %s%s", r.Host, r.URL.Path)
			h = say(404, "")
		}
		w.Header().Set("Set-Cookie", "tracking=1")
		h(w, r)
	})
	o.Policy.Images.MaxBytes = 50_000
	c := newTestClient(t, o)
	for path, want := range map[string]string{
		"good.png": "", "lies.png": "", "moved.png": "", "other.png": "", "chain.png": "", "three.png": "", "twice.png": "",
		"html-once.png": "", "empty-once.png": "",
		"four.png": "failed/too_many_redirects", "loop.png": "failed/redirect_loop", "circle.png": "failed/redirect_loop",
		"nowhere.png": "failed/bad_redirect", "bad.png": "failed/bad_redirect",
		"media.png": "failed/redirect_to_page", "imgur-page.png": "failed/redirect_to_page",
		"gone.png": "placeholder/known_placeholder", "gone-plain.png": "placeholder/known_placeholder",
		"404.png": "gone/http_404", "410.png": "gone/http_410", "403.png": "gone/http_403", "451.png": "gone/http_451",
		"403-block.png": "failed/blocked", "403-rate.png": "failed/rate_limited",
		"429.png": "failed/http_429", "500.png": "failed/http_500", "503.png": "failed/http_503", "400.png": "failed/http_400",
		"204.png": "failed/http_204", "206.png": "failed/http_206", "304.png": "failed/http_304",
		"html.png": "invalid/not_an_image_html", "json.png": "invalid/not_an_image_json", "xml.png": "invalid/not_an_image_xml", "capacity.png": "failed/over_capacity", "empty.png": "invalid/empty_body",
		"packed.png": "failed/content_encoding", "large.png": "invalid/too_large", "endless.png": "invalid/too_large",
		"cut.png": "failed/truncated", "cut-chunked.png": "failed/truncated", "reset.png": "failed/connection", "headers.png": "failed/headers_too_large",
	} {
		d, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/" + path})
		if want == "" {
			if err != nil || string(d.Body) != body || d.Info.Format != "png" || d.Info.Width != 30 || d.Info.Height != 20 {
				t.Errorf("%s: Download = %v, %v", path, d.Info, err)
			}
			continue
		}
		checkFault(t, path, d, err, want)
		// A row of failures, in whatever order the map gives them, would close the host.
		if _, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/good.png"}); err != nil {
			t.Errorf("after %s: %v", path, err)
		}
	}
}

func checkFault(t *testing.T, name string, d Download, err error, want string) {
	t.Helper()
	var f *policy.Fault
	if !errors.As(err, &f) || string(f.Outcome)+"/"+string(f.Reason) != want || d.Body != nil {
		t.Errorf("%s: Download = %v, %v; want %s", name, d.Info, err, want)
		return
	}
	if strings.Contains(f.Detail, "://") || strings.Contains(f.Detail, ".png") || strings.Contains(f.Detail, "127.0.0.1:") {
		t.Errorf("%s: the detail holds an address: %q", name, f.Detail)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestDownloadAllowed: what a candidate names is checked again, whoever made it.
func TestDownloadAllowed(t *testing.T) {
	s := &script{play: func(int, *http.Request) answer { return reply(200, string(pngBytes(t))) }}
	c := s.client(t, imgurOptions())
	for raw, want := range map[string]string{
		"":                                "refused/bad_url",
		"i.redd.it/a.png":                 "refused/bad_url",
		"https:a.png":                     "refused/bad_url",
		"https://[::1/a":                  "refused/bad_url",
		"http://i.redd.it/a.png":          "refused/not_https",
		"https://u@i.redd.it/a.png":       "refused/url_userinfo",
		"https://i.redd.it:80/a.png":      "refused/url_port",
		"https://example.com/a.png":       "refused/host_not_allowed",
		"https://api.imgur.com/3/image/a": "refused/host_not_allowed",
		"https:///a.png":                  "refused/bad_url",
		"https://oauth.reddit.com/api":    "refused/host_not_allowed",
		"https://i.redd.it\\@example.com": "refused/bad_url",
	} {
		d, err := c.Download(t.Context(), Candidate{URL: raw})
		checkFault(t, raw, d, err, want)
	}
	cand := fault(manifest.NoMedia, "video", "")
	if _, err := c.Download(t.Context(), cand); err != error(cand.Fault) {
		t.Errorf("Download of a fault = %v, want the fault itself", err)
	}
	if len(s.seen) != 0 {
		t.Errorf("%d requests were made", len(s.seen))
	}
	if d, err := c.Download(t.Context(), Candidate{URL: "https://I.REDD.IT.:443/a.png#x"}); err != nil || len(s.seen) != 1 || s.seen[0].req.URL.String() != "https://i.redd.it/a.png" {
		t.Errorf("another spelling of a host: %v, %v, asked %v", d, err, s.seen)
	}
}

// redirectTargets are places that no host may send the client to, with the reason.
var redirectTargets = map[string]manifest.Reason{
	"https://127.0.0.1/a.png":                        "redirect_bare_address",
	"https://127.1/a.png":                            "redirect_bare_address",
	"https://2130706433/a.png":                       "redirect_bare_address",
	"https://0x7f000001/a.png":                       "redirect_bare_address",
	"https://0x7F.0.0.1/a.png":                       "redirect_bare_address",
	"https://127.0.0.0x1/a.png":                      "redirect_bare_address",
	"https://017700000001/a.png":                     "redirect_bare_address",
	"https://0177.0.0.01/a.png":                      "redirect_bare_address",
	"https://0/a.png":                                "redirect_bare_address",
	"https://127.0.0.1./a.png":                       "redirect_bare_address",
	"https://10.0.0.1/a.png":                         "redirect_bare_address",
	"https://169.254.169.254/latest/meta-data":       "redirect_bare_address",
	"https://93.184.216.34/a.png":                    "redirect_bare_address",
	"https://[::1]/a.png":                            "redirect_bare_address",
	"https://[::]/a.png":                             "redirect_bare_address",
	"https://[::ffff:127.0.0.1]/a.png":               "redirect_bare_address",
	"https://[0:0:0:0:0:ffff:7f00:1]/a.png":          "redirect_bare_address",
	"https://[64:ff9b::7f00:1]/a.png":                "redirect_bare_address",
	"https://[fe80::1%25eth0]/a.png":                 "redirect_bare_address",
	"https://[fc00::1]:443/a.png":                    "redirect_bare_address",
	"https://localhost/a.png":                        "redirect_host_not_allowed",
	"https://localhost.localdomain/a.png":            "redirect_host_not_allowed",
	"https://i.redd.it.example.com/a.png":            "redirect_host_not_allowed",
	"https://xi.redd.it/a.png":                       "redirect_host_not_allowed",
	"https://127.0.0.1.nip.example/a.png":            "redirect_host_not_allowed",
	"https://\u217d.redd.it/a.png":                   "redirect_host_not_allowed",
	"https://\uff11\uff12\uff17.0.0.1.example/a.png": "redirect_host_not_allowed",
	"https://www.example.com/a.png":                  "redirect_host_not_allowed",
	"//www.example.com/a.png":                        "redirect_host_not_allowed",
	"https://www.reddit.com/api/v1/access_token":     "redirect_host_not_allowed",
	"https://oauth.reddit.com/api/v1/me":             "redirect_host_not_allowed",
	"https://api.imgur.com/3/image/abcdefg":          "redirect_host_not_allowed",
	"http://i.redd.it/good.png":                      "redirect_not_https",
	"http://169.254.169.254/latest/meta-data":        "redirect_not_https",
	"http://[::1]/a.png":                             "redirect_not_https",
	"file:///etc/passwd":                             "redirect_not_https",
	"ftp://i.redd.it/a.png":                          "redirect_not_https",
	"gopher://127.0.0.1:6379/_FLUSHALL":              "redirect_not_https",
	"javascript:alert(1)":                            "redirect_bad_url",
	"data:image/png;base64,iVBORw0KGgo=":             "redirect_bad_url",
	"https:///a.png":                                 "redirect_bad_url",
	"https://u:p@i.redd.it/good.png":                 "redirect_url_userinfo",
	"https://i.redd.it@127.0.0.1/a.png":              "redirect_url_userinfo",
	"https://i.redd.it:8443/good.png":                "redirect_url_port",
	"https://i.redd.it:80/good.png":                  "redirect_url_port",
	"https://127.0.0.1:22/a.png":                     "redirect_url_port",
}

// TestRedirectsElsewhere: a redirect off the allow list is refused with its reason, and no
// connection is made.
func TestRedirectsElsewhere(t *testing.T) {
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "i.redd.it" || r.URL.Path != "/a.png" {
			t.Errorf("%s%s was asked", r.Host, r.URL.Path)
		}
		redirectTo(r.Header.Get("X-To"))(w, r)
	})
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var caught atomic.Int64
	var closing sync.WaitGroup
	closing.Go(func() {
		for {
			conn, err := trap.Accept()
			if err != nil {
				return
			}
			caught.Add(1)
			_ = conn.Close()
		}
	})
	// All but the one host that is asked leads into the trap.
	rule, err := ParseConnectTo("::" + trap.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	only := o.ConnectTo[0]
	only.Host, only.Port = "i.redd.it", "443"
	o.ConnectTo = []ConnectTo{only, rule}
	api, images := newTransports(o)
	for where, want := range redirectTargets {
		c, err := newClient(o, api, redirecting{images, where})
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a.png"})
		checkFault(t, where, d, err, "refused/"+string(want))
	}
	// That the trap would catch something is to be seen, too.
	d, err := newTestClient(t, o).Download(t.Context(), Candidate{URL: "https://i.imgur.com/a.png"})
	checkFault(t, "trap", d, err, "failed/connection")
	if n := caught.Swap(0); n != retries+1 {
		t.Errorf("%d connections off the allow list, and %d expected", n-retries-1, 0)
	}
	_ = trap.Close()
	closing.Wait()
}

// redirecting tells the server of a test where to redirect to.
type redirecting struct {
	next  http.RoundTripper
	where string
}

func (r redirecting) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-To", r.where)
	return r.next.RoundTrip(req)
}

// TestPlaceholders: what hosts send for an image that they do not have, over TLS.
func TestPlaceholders(t *testing.T) {
	s, o := emulated(t, redditemu.Post{ID: "a1"}, redditemu.Post{ID: "b2", Kind: redditemu.KindImgur})
	own, _ := s.Post("a1")
	imgur, _ := s.Post("b2")
	c := newTestClient(t, o)
	for _, tt := range []struct {
		name, url string
		kind      hostile.FaultKind
		asked     int // requests to image hosts
		want      string
	}{
		{"removed.png itself", "https://i.imgur.com/removed.png", hostile.FaultKind{}, 0, "placeholder/known_placeholder"},
		{"redirect to removed.png", imgur.URLs()[0], hostile.RedirectTo("https://i.imgur.com/removed.png"), 1, "placeholder/known_placeholder"},
		{"chain to removed.png", imgur.URLs()[0], hostile.RedirectTo("https://i.imgur.com/uH6EmZ7.png"), 2, "placeholder/known_placeholder"},
		{"unknown to imgur", "https://i.imgur.com/nothere.jpg", hostile.FaultKind{}, 1, "placeholder/known_placeholder"},
		{"region block", imgur.URLs()[0], hostile.RegionBlock(), 1, "failed/region_block"},
		{"404 with a picture", own.URLs()[0], hostile.Status(404, nil, pngBytes(t)), 1, "gone/http_404"},
		{"over capacity", imgur.URLs()[0], hostile.OverCapacity(403), 1, "failed/over_capacity"},
		{"over capacity, 429", imgur.URLs()[0], hostile.OverCapacity(429), retries + 1, "failed/over_capacity"},
		{"page of i.redd.it", own.URLs()[0], hostile.RedirectTo("https://www.reddit.com/media?url=x"), 1, "failed/redirect_to_page"},
		{"page of imgur", imgur.URLs()[0], hostile.RedirectTo("https://imgur.com/abcdefg"), 1, "failed/redirect_to_page"},
		{"page with 200", own.URLs()[0], hostile.HTML200(), 2, "invalid/not_an_image_html"},
		{"empty", own.URLs()[0], hostile.EmptyBody(), 2, "invalid/empty_body"},
		{"cut", own.URLs()[0], hostile.TruncatedBody(), retries + 1, "failed/truncated"},
	} {
		s.ForgetRequests()
		if tt.kind.String() != "" {
			s.Fault(hostile.Fault{PathPrefix: strings.TrimPrefix(tt.url, tt.url[:strings.LastIndexByte(tt.url, '/')]), Kind: tt.kind})
		}
		d, err := c.Download(t.Context(), Candidate{URL: tt.url})
		s.ClearFaults()
		checkFault(t, tt.name, d, err, tt.want)
		if n := len(s.Requests()); n != tt.asked {
			t.Errorf("%s: %d requests, want %d", tt.name, n, tt.asked)
		}
		for _, url := range []string{own.URLs()[0], imgur.URLs()[0]} { // ends a row of failures
			if _, err := c.Download(t.Context(), Candidate{URL: url}); err != nil {
				t.Errorf("after %s: %v", tt.name, err)
			}
		}
	}
}

// TestDownloadGuards: names that lead inward are not dialled, and a certificate of an unknown
// authority, of others or of the past is not believed.
func TestDownloadGuards(t *testing.T) {
	o := testOptions()
	o.Policy.Images.Hosts = []policy.Host{{Name: "localhost", RequestsPerSecond: 100, Concurrency: 1}}
	d, err := newTestClient(t, o).Download(t.Context(), Candidate{URL: "https://localhost/a.png"})
	checkFault(t, "localhost", d, err, "refused/address_not_allowed")

	unknown, others := serve(t, say(200, "")), serve(t, say(200, ""))
	unknown.RootCAs = nil
	others.Policy.Images.Hosts = append(others.Policy.Images.Hosts, policy.Host{Name: "unnamed.example", RequestsPerSecond: 100, Concurrency: 1})
	for url, o := range map[string]Options{
		"https://i.redd.it/a.png": unknown, "https://unnamed.example/a.png": others,
		"https://i.redd.it/past.png": serveUntil(t, time.Now().Add(-time.Minute), say(200, "")),
	} {
		d, err := newTestClient(t, o).Download(t.Context(), Candidate{URL: url})
		checkFault(t, url, d, err, "failed/tls")
	}
}

// TestFaultDetails: what a fault tells of a failure is the same in every run, on every
// machine and at any time.
func TestFaultDetails(t *testing.T) {
	expired := x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired, Detail: "current time 2031-01-02T03:04:05Z is after 2030-01-01T00:00:00Z"}
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 40123}, Addr: &net.TCPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 8443}, Err: err}
	}
	for _, tt := range []struct {
		err          error
		reason, want string
	}{
		{&tls.CertificateVerificationError{Err: expired}, "tls", "the certificate has expired or is not valid yet"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{Cert: &x509.Certificate{}}}, "tls", "the certificate is signed by an unknown authority"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"host-17.example"}}, Host: "i.redd.it"}}, "tls", "the certificate is for another host"},
		{&tls.CertificateVerificationError{Err: errors.New("at 03:04:05")}, "tls", "the certificate is not valid"},
		{dial(syscall.ECONNREFUSED), "connection", "the connection was refused"},
		{dial(syscall.ECONNRESET), "connection", "the connection was closed early"},
		{dial(errors.New("at 03:04:05")), "connection", "the connection failed"},
		{dial(&net.DNSError{Err: "no such host", Name: "i.redd.it", Server: "10.0.0.1:53"}), "dns", "the host's name could not be resolved"},
		{fmt.Errorf("from 10.1.2.3:40123: %w", errStalled), "timeout", "less than 1024 bytes came in 10s"},
		{fmt.Errorf("from 10.1.2.3:40123: %w", errDeadline), "timeout", "the answer took longer than 1m0s"},
	} {
		s := &script{play: func(int, *http.Request) answer { return answer{err: tt.err} }}
		_, err := s.client(t, testOptions()).Download(t.Context(), Candidate{URL: "https://i.redd.it/a.png"})
		var f *policy.Fault
		if !errors.As(err, &f) || f.Outcome != manifest.Failed || string(f.Reason) != tt.reason || f.Detail != tt.want {
			t.Errorf("%v: Download = %+v, want %s: %s", tt.err, f, tt.reason, tt.want)
		}
		s = api(func(int, *http.Request) answer { return answer{err: tt.err} })
		if _, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1")); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "03:04:05") {
			t.Errorf("%v: Ask = %v, want %q in it", tt.err, err, tt.want)
		}
	}
}

// TestForbidden: a 403 says that an image is gone in the words of the store behind i.redd.it
// alone. A row of others closes the host, as a row of 5xx does.
func TestForbidden(t *testing.T) {
	const (
		denied   = `<Error><Code>AccessDenied</Code><Message>Access Denied</Message><RequestId>0</RequestId></Error>`
		meditate = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\">\n<html><h1>Error 403 Forbidden</h1><h3>Guru Meditation:</h3></html>"
	)
	for _, tt := range []struct {
		name, url, body, want string
		closes                bool
	}{
		{"store", "https://i.redd.it/a.png", `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + denied, "gone/http_403", false},
		{"store, no declaration", "https://i.redd.it/a.png", denied, "gone/http_403", false},
		{"store, no such key", "https://i.redd.it/a.png", "<Error><Code>NoSuchKey</Code></Error>", "gone/http_403", false},
		{"store, another error", "https://i.redd.it/a.png", "<Error><Code>RequestTimeTooSkewed</Code></Error>", "failed/http_403", true},
		{"Guru Meditation", "https://i.redd.it/a.png", meditate, "failed/http_403", true},
		{"Access Denied", "https://i.redd.it/a.png", "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD>You don't have permission", "failed/http_403", true},
		{"a page that quotes a store", "https://i.redd.it/a.png", "<html><pre>" + denied, "failed/http_403", true},
		{"nothing", "https://i.redd.it/a.png", "", "failed/http_403", true},
		{"text", "https://i.redd.it/a.png", "Forbidden", "failed/http_403", true},
		{"block", "https://i.redd.it/a.png", "<html>Request forbidden by administrative rules.", "failed/blocked", true},
		{"store of another host", "https://i.imgur.com/a.png", denied, "failed/http_403", true},
		{"signature", "https://preview.redd.it/x/a.png?s=1", meditate, "failed/http_403", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{play: func(int, *http.Request) answer { return reply(403, tt.body) }}
			c := s.client(t, testOptions())
			for i := range 3 * maxFailures {
				want := tt.want
				if tt.closes && i >= 2*maxFailures-1 {
					want = "failed/host_unreachable"
				}
				d, err := c.Download(t.Context(), Candidate{URL: tt.url})
				checkFault(t, fmt.Sprintf("%s, call %d", tt.name, i), d, err, want)
			}
		})
	}
}

// TestDownloadsTogether is for the race detector: many images at once, some of them slow
// to come.
func TestDownloadsTogether(t *testing.T) {
	body := pngBytes(t)
	var n atomic.Int64
	c := newTestClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "access_token"):
			_, _ = io.WriteString(w, tokenReply(3600).body)
		case r.URL.Path == "/api/info":
			_, _ = io.WriteString(w, listing("a1"))
		case n.Add(1)%5 == 0:
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = w.Write(body)
		}
	}))
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			host := c.policy.Images.Hosts[i%3].Name
			d, err := c.Download(t.Context(), Candidate{URL: fmt.Sprintf("https://%s/x/%d.png", host, i)})
			var f *policy.Fault
			if err == nil && !bytes.Equal(d.Body, body) || err != nil && !errors.As(err, &f) {
				t.Errorf("Download = %v, %v", d.Info, err)
			}
		})
		if i%10 == 0 {
			wg.Go(func() {
				if _, err := c.Ask(t.Context(), ids("a1")); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}
