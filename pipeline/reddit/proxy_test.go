package reddit

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
)

// TestProxy: Reddit and image hosts are asked through the environment's proxy, by their names; what --connect-to leads
// elsewhere is not, and neither is what NO_PROXY names.
func TestProxy(t *testing.T) {
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Host {
		case tokenHost:
			say(200, tokenReply(3600).body)(w, r)
		case apiHost:
			say(200, listingOf(thing("a1", "")))(w, r)
		default:
			say(200, string(pngBytes(t)))(w, r)
		}
	})
	there := o.ConnectTo[0]
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host)
		mu.Unlock()
		if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:canary-pw")) {
			t.Errorf("the proxy got %v", r.Header)
		}
		up, err := net.Dial("tcp", net.JoinHostPort(there.ToHost, there.ToPort))
		if err != nil {
			t.Error(err)
			return
		}
		defer up.Close()
		down, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer down.Close()
		_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, down) }()
		_, _ = io.Copy(down, up)
	}))
	defer proxy.Close()
	env := map[string]string{"HTTPS_PROXY": strings.Replace(proxy.URL, "://", "://me:canary-pw@", 1), "no_proxy": "imgur.com"}
	var err error
	o.Proxy, err = polite.ProxyFromEnv(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	direct := newTestClient(t, o)
	mustAsk(t, direct)
	if len(asked) > 0 {
		t.Errorf("with --connect-to the proxy was asked: %q", asked)
	}
	o.ConnectTo, o.Scrubber = nil, new(secret.Scrubber)
	c := newTestClient(t, o)
	mustAsk(t, c)
	download(t, c, "https://i.redd.it/good.png", "")
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"CONNECT i.redd.it:443", "CONNECT oauth.reddit.com:443", "CONNECT www.reddit.com:443"}, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var shown strings.Builder
	_, _ = io.WriteString(o.Scrubber.Writer(&shown), "pass canary-pw on\n")
	if strings.Contains(shown.String(), "canary-pw") {
		t.Errorf("printed %q", &shown)
	}
	d := &polite.Dialer{Guard: guard, Proxy: o.Proxy}
	if at, err := d.Via(&url.URL{Scheme: "https", Host: "i.imgur.com"}); at != nil || err != nil {
		t.Errorf("NO_PROXY: %v, %v", at, err)
	}
	if _, err := d.Dial(t.Context(), "tcp", "127.0.0.1:1"); !isGuard(err) {
		t.Errorf("another address than the proxy's: %v, want the guard's error", err)
	}
}
