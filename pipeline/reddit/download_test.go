package reddit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/manifest"
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

// TestDownload: what hosts send for an image, over TLS.
func TestDownload(t *testing.T) {
	body := string(pngBytes(t))
	cut := func(length string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			_, _ = io.WriteString(w, body[:len(body)/2])
			drop(w, r)
		}
	}
	type host struct {
		answer http.HandlerFunc
		want   string // outcome/reason, "" for the image
	}
	hosts := map[string]host{
		"good":          {say(200, body), ""},
		"lies":          {say(200, body, "Content-Type", "text/html"), ""},
		"moved":         {redirectTo("/good.png"), ""},
		"other":         {redirectTo("https://i.imgur.com/good.png"), ""},
		"chain":         {redirectTo("/moved.png"), ""},
		"three":         {redirectTo("/chain.png"), ""},
		"four":          {redirectTo("/three.png"), "failed/too_many_redirects"},
		"loop":          {redirectTo("/loop.png"), "failed/too_many_redirects"},
		"nowhere":       {say(302, ""), "failed/bad_redirect"},
		"bad":           {redirectTo("https://[::1/%zz"), "failed/bad_redirect"},
		"media":         {redirectTo("https://www.reddit.com/media?url=x"), "failed/redirect_to_page"},
		"imgur-page":    {redirectTo("http://imgur.com/abcdefg"), "failed/redirect_to_page"},
		"gone-plain":    {redirectTo("http://i.imgur.com/removed.png"), "placeholder/known_placeholder"},
		"gone":          {redirectTo("https://i.imgur.com/removed.png"), "placeholder/known_placeholder"},
		"404":           {say(404, body, "Content-Type", "image/png"), "gone/http_404"},
		"410":           {say(410, ""), "gone/http_410"},
		"403":           {say(403, "<?xml?><Error><Code>AccessDenied</Code></Error>"), "gone/http_403"},
		"403-block":     {say(403, "<html>Request forbidden by administrative rules."), "failed/blocked"},
		"403-rate":      {say(403, "", "Retry-After", "0"), "failed/rate_limited"},
		"451":           {say(451, ""), "failed/http_451"},
		"429":           {say(429, ""), "failed/http_429"},
		"503":           {say(503, ""), "failed/http_503"},
		"206":           {say(206, body), "failed/http_206"},
		"html":          {say(200, "<!DOCTYPE html><html>"), "invalid/not_an_image_html"},
		"json":          {say(200, `{"data":{"error":"Imgur is asleep"}}`), "invalid/not_an_image_json"},
		"xml":           {say(200, `<?xml version="1.0"?><Error/>`), "invalid/not_an_image_xml"},
		"capacity":      {say(200, `{"data":{"error":"Imgur is temporarily over capacity"}}`), "failed/over_capacity"},
		"html-once":     {once(say(200, "<!DOCTYPE html><html>"), say(200, body)), ""},
		"empty-once":    {once(say(200, ""), say(200, body)), ""},
		"empty":         {say(200, ""), "invalid/empty_body"},
		"packed":        {say(200, body, "Content-Encoding", "gzip"), "failed/content_encoding"},
		"large":         {say(200, body+strings.Repeat("x", 100_000)), "invalid/too_large"},
		"endless":       {func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, endless{}) }, "invalid/too_large"},
		"cut":           {cut(fmt.Sprint(len(body))), "failed/truncated"},
		"cut-chunked":   {cut(""), "failed/truncated"},
		"dropped":       {drop, "failed/truncated"},
		"reset":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "failed/connection"},
		"headers":       {say(200, body, "X-Long", strings.Repeat("x", 2*maxHeaderBytes)), "failed/headers_too_large"},
		"dropped-once":  {once(drop, say(200, body)), ""},
		"over-capacity": {say(403, `{"data":{"error":"over capacity"}}`), "failed/blocked"},
	}
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if h := r.Header; h.Get("Accept") != "*/*" || h.Get("Accept-Encoding") != "identity" ||
			h.Get("Authorization")+h.Get("Referer")+h.Get("Cookie") != "" ||
			!strings.Contains(h.Get("User-Agent"), ":rehydrate:1.2.3 (by /u/some_body)") || r.Host == apiHost ||
			r.Host == tokenHost {
			t.Errorf("%s got %v", r.Host, h)
		}
		w.Header().Set("Set-Cookie", "tracking=1")
		hosts[strings.TrimSuffix(r.URL.Path[1:], ".png")].answer(w, r)
	})
	o.Policy.Images.MaxBytes = 50_000
	c := newTestClient(t, o)
	for name, h := range hosts {
		d := download(t, c, "https://i.redd.it/"+name+".png", h.want)
		if h.want == "" && (string(d.Body) != body || d.Info.Format != "png" || d.Info.Width != 30 || d.Info.Height != 20) {
			t.Errorf("%s: Download = %v", name, d.Info)
		}
		// A row of failures, in whatever order the map gives them, would close the host.
		download(t, c, "https://i.redd.it/good.png", "")
	}
}

// TestRedirected: a download says whether it was sent on, and of which host it was asked.
func TestRedirected(t *testing.T) {
	body := string(pngBytes(t))
	to := func(where string) answer { return reply(302, "", "Location", where) }
	images := map[string]answer{
		"/good.png": reply(200, body), "/moved.png": to("/good.png"), "/over.png": to("https://i.redd.it/good.png"),
		"/404.png": reply(404, ""), "/moved404.png": to("/404.png"), "/removed1.png": to("https://i.imgur.com/removed.png"),
		"/login.png": to("https://www.reddit.com/login"), "/loop.png": to("/loop.png"), "/html.png": reply(200, "<html>"),
		"/media.png": to("https://www.reddit.com/media?url=x"), "/nowhere.png": to(""), "/movedhtml.png": to("/html.png"),
		"/3/image/abcdefg": reply(200, `{"data":{"link":"https://i.imgur.com/moved.png"},"success":true,"status":200}`),
	}
	s := &script{play: func(_ int, r *http.Request) answer { return images[r.URL.Path] }}
	c := s.client(t, imgurOptions())
	for link, want := range map[string]struct {
		fault, host string
		redirected  bool
	}{
		"https://i.redd.it/good.png":       {"", "i.redd.it", false},
		"https://i.redd.it/moved.png":      {"", "i.redd.it", true},
		"https://i.imgur.com/over.png":     {"", "i.imgur.com", true},
		"https://imgur.com/abcdefg":        {"", "i.imgur.com", true},
		"https://i.redd.it/404.png":        {"gone/http_404", "i.redd.it", false},
		"https://i.redd.it/moved404.png":   {"gone/http_404", "i.redd.it", true},
		"https://i.imgur.com/removed1.png": {"placeholder/known_placeholder", "i.imgur.com", true},
		"https://i.imgur.com/removed.png":  {"placeholder/known_placeholder", "i.imgur.com", false},
		"https://i.redd.it/login.png":      {"refused/redirect_host_not_allowed", "i.redd.it", true},
		"https://i.redd.it/media.png":      {"failed/redirect_to_page", "i.redd.it", true},
		"https://i.redd.it/nowhere.png":    {"failed/bad_redirect", "i.redd.it", true},
		"https://i.redd.it/loop.png":       {"failed/too_many_redirects", "i.redd.it", true},
		"https://i.redd.it/html.png":       {"invalid/not_an_image_html", "i.redd.it", false},
		"https://i.redd.it/movedhtml.png":  {"invalid/not_an_image_html", "i.redd.it", true},
		"https://example.com/a.png":        {"refused/host_not_allowed", "", false},
	} {
		if d := download(t, c, link, want.fault); d.Host != want.host || d.Redirected != want.redirected {
			t.Errorf("%s: of %q, redirected is %v; want %+v", link, d.Host, d.Redirected, want)
		}
	}
}

// TestRobotsTag: an image that its host keeps out of datasets is refused where the policy says so, and nothing else is.
func TestRobotsTag(t *testing.T) {
	body := string(pngBytes(t))
	images := map[string]answer{
		"/noai.png": reply(200, body, "X-Robots-Tag", "noindex, noai"), "/noimageai.png": reply(200, body,
			"X-Robots-Tag", "NoImageAI"),
		"/noindex.png": reply(200, body, "X-Robots-Tag", "noindex"), "/other.png": reply(200, body, "X-Robots-Tag",
			"googlebot: noai"),
		"/404.png": reply(404, "", "X-Robots-Tag", "noai"), "/html.png": reply(200, "<html>", "X-Robots-Tag", "noai"),
		"/moved.png": reply(302, "", "Location", "/noindex.png", "X-Robots-Tag", "noai"), "/to.png": reply(302, "",
			"Location", "https://i.imgur.com/noai.png"),
	}
	s := &script{play: func(_ int, r *http.Request) answer { return images[r.URL.Path] }}
	o := imgurOptions()
	for i := range o.Policy.Images.Hosts {
		h := &o.Policy.Images.Hosts[i]
		h.RespectRobotsTag = h.Name == "i.imgur.com"
	}
	c := s.client(t, o)
	for link, want := range map[string]string{
		"https://i.imgur.com/noai.png": "refused/robots_tag", "https://i.imgur.com/noimageai.png": "refused/robots_tag",
		"https://i.imgur.com/noindex.png": "", "https://i.imgur.com/other.png": "",
		"https://i.imgur.com/404.png":  "gone/http_404",
		"https://i.imgur.com/html.png": "invalid/not_an_image_html", "https://i.imgur.com/moved.png": "",
		"https://i.redd.it/noai.png": "", "https://i.redd.it/to.png": "refused/robots_tag",
	} {
		if d := download(t, c, link, want); want == "refused/robots_tag" && len(d.Body) > 0 {
			t.Errorf("%s: the image is given out", link)
		}
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
		download(t, c, raw, want)
	}
	cand := fault(manifest.NoMedia, "video", "")
	if _, err := c.Download(t.Context(), cand); err != error(cand.Fault) {
		t.Errorf("Download of a fault = %v, want the fault itself", err)
	}
	if len(s.seen) != 0 {
		t.Errorf("%d requests were made", len(s.seen))
	}
	if d, err := c.Download(t.Context(), Candidate{URL: "https://I.REDD.IT.:443/a.png#x"}); err != nil ||
		len(s.seen) != 1 || s.seen[0].req.URL.String() != "https://i.redd.it/a.png" {
		t.Errorf("another spelling of a host: %v, %v, asked %v", d, err, s.seen)
	}
}

// TestRedirectsElsewhere: a redirect off the allow list is refused with its reason, and not followed.
func TestRedirectsElsewhere(t *testing.T) {
	for want, targets := range map[string]string{
		"host_not_allowed": "https://127.0.0.1/a.png https://127.1/a.png https://2130706433/a.png https://0x7f000001/a.png " +
			"https://0x7F.0.0.1/a.png https://127.0.0.0x1/a.png https://0177.0.0.01/a.png https://0/a.png https://127.0.0.1./a.png " +
			"https://169.254.169.254/latest/meta-data https://93.184.216.34/a.png https://[::1]/a.png https://[::ffff:127.0.0.1]/a.png " +
			"https://[64:ff9b::7f00:1]/a.png https://[fe80::1%25eth0]/a.png https://[fc00::1]:443/a.png " +
			"https://localhost/a.png https://i.redd.it.example.com/a.png https://xi.redd.it/a.png " +
			"https://127.0.0.1.nip.example/a.png https://\u217d.redd.it/a.png //www.example.com/a.png " +
			"https://www.reddit.com/api/v1/access_token https://oauth.reddit.com/api/v1/me https://api.imgur.com/3/image/abcdefg",
		"not_https": "http://i.redd.it/good.png http://[::1]/a.png file:///etc/passwd ftp://i.redd.it/a.png " +
			"gopher://127.0.0.1:6379/_FLUSHALL",
		"bad_url":      "javascript:alert(1) data:image/png;base64,iVBORw0KGgo= https:///a.png",
		"url_userinfo": "https://u:p@i.redd.it/good.png https://i.redd.it@127.0.0.1/a.png",
		"url_port":     "https://i.redd.it:8443/good.png https://i.redd.it:80/good.png https://127.0.0.1:22/a.png",
	} {
		for _, target := range strings.Fields(targets) {
			s := &script{play: func(int, *http.Request) answer { return reply(302, "", "Location", target) }}
			download(t, s.client(t, testOptions()), "https://i.redd.it/a.png", "refused/redirect_"+want)
			if len(s.seen) != 1 {
				t.Errorf("%s: %d requests", target, len(s.seen))
			}
		}
	}
}

// TestDownloadGuards: names that lead inward are not dialled, and a certificate of an unknown
// authority, of others or of the past is not believed.
func TestDownloadGuards(t *testing.T) {
	o := testOptions()
	o.Policy.Images.Hosts = []policy.Host{{Name: "localhost", RequestsPerSecond: 100, Concurrency: 1}}
	download(t, newTestClient(t, o), "https://localhost/a.png", "refused/address_not_allowed")
	unknown, others := serve(t, say(200, "")), serve(t, say(200, ""))
	unknown.RootCAs = nil
	others.Policy.Images.Hosts = append(others.Policy.Images.Hosts,
		policy.Host{Name: "unnamed.example", RequestsPerSecond: 100, Concurrency: 1})
	for url, o := range map[string]Options{
		"https://i.redd.it/a.png": unknown, "https://unnamed.example/a.png": others,
		"https://i.redd.it/past.png": serveUntil(t, time.Now().Add(-time.Minute), say(200, "")),
	} {
		download(t, newTestClient(t, o), url, "failed/tls")
		if o.RootCAs != nil {
			continue
		}
		// As behind a portal that wants a login: no answer of Reddit's, which the next run can get.
		_, err := newTestClient(t, o).Ask(t.Context(), ids("a1"))
		if shut, ok := errors.AsType[*Unreachable](err); !ok || shut.Host != tokenHost || shut.Reason != "tls" ||
			!strings.Contains(err.Error(), "--cacert") {
			t.Errorf("Ask with an unknown authority = %v, want Unreachable that names --cacert", err)
		}
	}
}

// TestFaultDetails: what a fault tells of a failure is the same in every run, on every
// machine and at any time.
func TestFaultDetails(t *testing.T) {
	expired := x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired,
		Detail: "current time 2031-01-02T03:04:05Z is after 2030-01-01T00:00:00Z"}
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 40123},
			Addr: &net.TCPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 8443}, Err: err}
	}
	for _, tt := range []struct {
		err          error
		reason, want string
	}{
		{&tls.CertificateVerificationError{Err: expired}, "tls",
			"the certificate has expired or is not valid yet; is this machine's clock right?"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{Cert: &x509.Certificate{}}}, "tls",
			"the certificate is signed by an unknown authority"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"host-17.example"}}, Host: "i.redd.it"}}, "tls", "the certificate is for another host"},
		{&tls.CertificateVerificationError{Err: errors.New("at 03:04:05")}, "tls", "the certificate is not valid"},
		{dial(syscall.ECONNREFUSED), "connection", "the host refused the connection"},
		{dial(syscall.ECONNRESET), "connection", "the connection was closed early"},
		{dial(errors.New("at 03:04:05")), "connection", "the connection failed"},
		{dial(&net.DNSError{Err: "no such host", Name: "i.redd.it", Server: "10.0.0.1:53"}), "dns",
			"the host's name could not be resolved"},
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
		if _, err := s.client(t, testOptions()).Ask(t.Context(), ids("a1")); err == nil ||
			!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "03:04:05") {
			t.Errorf("%v: Ask = %v, want %q in it", tt.err, err, tt.want)
		}
	}
}

// TestForbidden: a 403 says that an image is gone in the words of the store behind i.redd.it
// alone. A host that sends only others is given up, as it is for 5xx, and so is imgur's API that is over capacity.
func TestForbidden(t *testing.T) {
	const (
		album    = "https://imgur.com/a/AlbumID#0"
		denied   = `<Error><Code>AccessDenied</Code><Message>Access Denied</Message><RequestId>0</RequestId></Error>`
		meditate = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\">\n<html><h1>Error 403 Forbidden</h1><h3>Guru Meditation:</h3></html>"
	)
	for _, tt := range []struct {
		url, body, want string
		closes          bool
	}{
		{"https://i.redd.it/a.png", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + denied, "gone/http_403", false},
		{"https://i.redd.it/a.png", denied, "gone/http_403", false},
		{"https://i.redd.it/a.png", "<Error><Code>NoSuchKey</Code></Error>", "gone/http_403", false},
		{"https://i.redd.it/a.png", "<Error><Code>RequestTimeTooSkewed</Code></Error>", "failed/http_403", true},
		{"https://i.redd.it/a.png", meditate, "failed/http_403", true},
		{"https://i.redd.it/a.png", "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD>You don't have permission",
			"failed/http_403", true},
		{"https://i.redd.it/a.png", "<html><pre>" + denied, "failed/http_403", true},
		{"https://i.redd.it/a.png", "", "failed/http_403", true},
		{"https://i.redd.it/a.png", "Forbidden", "failed/http_403", true},
		{"https://i.redd.it/a.png", "<html>Request forbidden by administrative rules.", "failed/blocked", true},
		{"https://i.imgur.com/a.png", denied, "failed/http_403", true},
		{"https://preview.redd.it/x/a.png?s=1", meditate, "failed/http_403", true},
		{album, imgurSays(403, `{"error":"Imgur is temporarily over capacity."}`).body, "failed/over_capacity", true},
		{album, "<html><title>403</title>", "failed/http_403", true},
		{album, imgurSays(403, `{"error":"Permission denied"}`).body, "failed/http_403", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{play: func(int, *http.Request) answer { return reply(403, tt.body) }}
			c := s.client(t, hostOptions())
			asked := 0
			for asked < 30 && c.GivenUp() == nil { // none is repeated within a call
				_, err := c.Download(t.Context(), Candidate{URL: tt.url})
				asked++
				if c.GivenUp() == nil && !strings.HasPrefix(fmt.Sprint(err), tt.want) {
					t.Errorf("%s: Download = %v, want %s", tt.body, err, tt.want)
				}
			}
			if tt.closes {
				download(t, c, tt.url, "failed/host_given_up")
			}
			if len(s.seen) != asked || tt.closes == (asked == 30) {
				t.Errorf("%s: %d requests, want %d", tt.body, len(s.seen), asked)
			}
		})
	}
}
