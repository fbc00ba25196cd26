package reddit

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
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
	"rehydrate/manifest"
	"rehydrate/policy"
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
		tunnel(t, w, net.JoinHostPort(there.ToHost, there.ToPort))
	}))
	defer proxy.Close()
	env := map[string]string{"HTTPS_PROXY": strings.Replace(proxy.URL, "://", "://me:canary-pw@", 1),
		"no_proxy": "imgur.com"}
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
	if diff := cmp.Diff([]string{"CONNECT i.redd.it:443", "CONNECT oauth.reddit.com:443", "CONNECT www.reddit.com:443"},
		asked); diff != "" {
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

// TestProxyTrouble: a proxy that makes no connection is named by its address and what it did, and an answer of it is
// not taken for the host's. What it would answer again is not asked for again.
func TestProxyTrouble(t *testing.T) {
	answer := func(status int) http.HandlerFunc { return say(status, "CANARY", "Proxy-Authenticate", "CANARY") }
	for name, tt := range map[string]struct {
		proxy  http.HandlerFunc // nil: it is not there
		says   string           // behind its address
		detail string           // of an image's fault
		hint   string
		asked  int // of each host
	}{
		"407": {answer(407), " answered with status 407 Proxy Authentication Required;",
			"the proxy that HTTPS_PROXY names answered with status 407", "user name and password", 1},
		"403": {answer(403), " answered with status 403 Forbidden;",
			"the proxy that HTTPS_PROXY names answered with status 403", "correct HTTPS_PROXY", 1},
		"502": {answer(502), " answered with status 502 Bad Gateway;",
			"the proxy that HTTPS_PROXY names answered with status 502", "see that the proxy runs", 1 + retries},
		"cut": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
			" closed the connection early;",
			"the proxy that HTTPS_PROXY names made no connection to the host", "see that the proxy runs", 1 + retries},
		"absent": {nil, " refused the connection;", "the proxy that HTTPS_PROXY names made no connection to the host",
			"see that the proxy runs", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			asked := map[string]int{}
			proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked[r.Host]++
				mu.Unlock()
				tt.proxy(w, r)
			}))
			proxy.Config.ErrorLog = log.New(io.Discard, "", 0)
			proxy.Start()
			at := proxy.Listener.Addr().String()
			defer proxy.Close()
			if tt.proxy == nil {
				proxy.Close()
			}
			var logs strings.Builder
			o := logged(testOptions(), &logs)
			var err error
			o.Proxy, err = polite.ProxyFromEnv(func(string) string { return "http://me:canary-pw@" + at })
			if err != nil {
				t.Fatal(err)
			}
			c := newTestClient(t, o)
			_, err = c.Ask(t.Context(), ids("a1"))
			shut, ok := errors.AsType[*Unreachable](err)
			if !ok || shut.Reason != reasonProxy || shut.Host != tokenHost ||
				!strings.Contains(err.Error(), "the proxy "+at+tt.says) ||
				!strings.Contains(err.Error(), tt.hint) {
				t.Errorf("Ask = %v, want Unreachable that says %q and %q", err, "the proxy "+at+tt.says, tt.hint)
			}
			_, fault := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a.png"})
			if f, ok := errors.AsType[*policy.Fault](fault); !ok || f.Outcome != manifest.Failed ||
				f.Reason != reasonProxy || f.Detail != tt.detail {
				t.Errorf("Download = %v, want %q", fault, tt.detail)
			}
			mu.Lock()
			defer mu.Unlock()
			if asked[tokenHost+":443"] != tt.asked || asked["i.redd.it:443"] != tt.asked {
				t.Errorf("asked %v, want %d of each", asked, tt.asked)
			}
			gone := c.GivenUp()
			if tt.asked == 1 {
				download(t, c, "https://i.redd.it/b.png", "failed/proxy")
				if len(gone) != 1 || gone[0].Host != "i.redd.it" || gone[0].Reason != reasonProxy ||
					gone[0].Detail+";" != "the proxy "+at+tt.says || asked["i.redd.it:443"] != 1 {
					t.Errorf("GivenUp = %+v after %v", gone, asked)
				}
			} else if gone != nil {
				t.Errorf("GivenUp = %+v", gone)
			}
			if all := fmt.Sprint(logs.String(), err, fault, gone); strings.Contains(strings.ToLower(all), "canary") ||
				strings.Contains(all, "the connection was refused") || !strings.Contains(logs.String(), "the proxy "+at) {
				t.Errorf("printed %s", all)
			}
		})
	}
}

// TestProxyRefusesOneHost: a proxy that does not lead to one host, or to one image of it, is no trouble of the others.
func TestProxyRefusesOneHost(t *testing.T) {
	o := serve(t, say(200, string(pngBytes(t))))
	there := net.JoinHostPort(o.ConnectTo[0].ToHost, o.ConnectTo[0].ToPort)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "i.redd.it:443" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		tunnel(t, w, there)
	}))
	defer proxy.Close()
	var err error
	o.ConnectTo = nil
	o.Proxy, err = polite.ProxyFromEnv(func(string) string { return proxy.URL })
	if err != nil {
		t.Fatal(err)
	}
	c := newTestClient(t, o)
	download(t, c, "https://i.redd.it/a.png", "failed/proxy")
	download(t, c, "https://i.imgur.com/a.png", "")
	download(t, c, "https://i.redd.it/b.png", "failed/proxy")
	if gone := c.GivenUp(); len(gone) != 1 || gone[0].Host != "i.redd.it" {
		t.Errorf("GivenUp = %+v", gone)
	}
}

// tunnel connects a client to an address.
func tunnel(t *testing.T, w http.ResponseWriter, to string) {
	up, err := net.Dial("tcp", to)
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
}
