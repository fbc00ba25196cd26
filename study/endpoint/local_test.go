package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/study/endpoint"
)

// elsewhere is a server on an address of this machine that is not loopback, as another machine would have, the number
// of connections that it saw, and what has a value for each time that it was taken for a proxy.
func elsewhere(t *testing.T) (*modelserver.Server, *atomic.Int64, <-chan struct{}) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.IsLinkLocalUnicast() {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip.IP.String(), "0"))
		if err != nil {
			continue
		}
		server, _ := modelserver.InMemory(t, "vllm")
		tunnels := make(chan struct{}, 10)
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect {
				tunnels <- struct{}{}
				w.WriteHeader(http.StatusForbidden)
				return
			}
			server.ServeHTTP(w, r)
		})
		var seen atomic.Int64
		web := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler,
			ConnState: func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					seen.Add(1)
				}
			}}}
		web.Start()
		t.Cleanup(web.Close)
		server.URL = web.URL + "/v1"
		return server, &seen, tunnels
	}
	t.Skip("this machine has loopback addresses alone")
	return nil, nil, nil
}

// TestLocalAlone: the address that is dialled decides, not the name: without ThirdParty another address sees no
// connection, and with it the request arrives.
func TestLocalAlone(t *testing.T) {
	server, seen, tunnels := elsewhere(t)
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(server.URL, "http://"), "/v1"))
	redirect := httptest.NewServer(http.RedirectHandler(server.URL+"/chat/completions", http.StatusTemporaryRedirect))
	defer redirect.Close()
	proxy, err := polite.ProxyFromEnv(func(name string) string {
		return map[string]string{"HTTPS_PROXY": strings.TrimSuffix(server.URL, "/v1")}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTP_PROXY", strings.TrimSuffix(server.URL, "/v1"))
	for name, tt := range map[string]struct {
		o    endpoint.Options
		want error
	}{
		"its address":          {endpoint.Options{URL: server.URL}, endpoint.ErrNotLocal},
		"a name of no machine": {endpoint.Options{URL: "http://models.example:1/v1"}, endpoint.ErrNotLocal},
		"0.0.0.0":              {endpoint.Options{URL: "http://0.0.0.0:" + port + "/v1"}, endpoint.ErrNotLocal},
		"an address in another spelling": {endpoint.Options{URL: "http://3221225986:" + port + "/v1"},
			endpoint.ErrNotLocal},
		"a redirect to it":                 {endpoint.Options{URL: redirect.URL}, nil},
		"a proxy for what is on localhost": {endpoint.Options{URL: "https://127.0.0.1:1/v1", Proxy: proxy}, nil},
		"the key in clear": {endpoint.Options{URL: server.URL, ThirdParty: true, Key: secret.New(canary)},
			nil},
	} {
		r, err := open(t, tt.o).Chat(t.Context(), hello)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) ||
			strings.Contains(fmt.Sprintf("%+v %#v", err, err), "CANARY") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("the other address saw %d connections", n)
	}
	if r, err := open(t, endpoint.Options{URL: server.URL, ThirdParty: true}).Chat(t.Context(), hello); err != nil ||
		r.Outcome != ok || seen.Load() != 1 {
		t.Errorf("as a third party: %+v, %v, %d connections", r, err, seen.Load())
	}
	// The proxy is that of the environment.
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() { <-tunnels; cancel() }()
	_, err = open(t, endpoint.Options{URL: "https://models.example/v1", ThirdParty: true, Proxy: proxy}).Chat(soon, hello)
	if !errors.Is(err, context.Canceled) || seen.Load() != 2 {
		t.Errorf("by a proxy: %v, %d connections", err, seen.Load())
	}

	// Ollama hands these on to machines of its maker.
	here := modelserver.New(t, "ollama")
	for model, local := range map[string]bool{"gpt-oss:120b-cloud": false, "glm-4.6:cloud": false, "qwen3-vl:8b": true,
		"cloud": false, "my-cloudy:1b": true, "GPT-OSS:120B-Cloud": false} {
		c := hello
		c.Model = model
		if _, err := open(t, endpoint.Options{URL: here.URL}).Chat(t.Context(), c); (err == nil) != local ||
			err != nil && !errors.Is(err, endpoint.ErrNotLocal) {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// TestHuge: an answer of 1 GB, with its length told or not, packed or not, costs a few MB of memory and is not waited
// for.
func TestHuge(t *testing.T) {
	const gb = 1 << 30
	server := modelserver.New(t, "vllm")
	s := open(t, endpoint.Options{URL: server.URL})
	var taken atomic.Int64
	for name, play := range map[string]modelserver.Play{"told": modelserver.Huge(gb, true, &taken),
		"not told": modelserver.Huge(gb, false, &taken),
		"packed":   modelserver.Bomb(gb)} {
		server.Play = play
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		r, err := s.Chat(t.Context(), hello)
		runtime.ReadMemStats(&after)
		if err != nil || r.Outcome != tooLarge || r.Raw != nil ||
			!strings.Contains(r.Detail, fmt.Sprint(endpoint.MaxAnswer)) {
			t.Errorf("%s: %s %q, %v", name, r.Outcome, r.Detail, err)
		}
		t.Logf("%s: %d MB allocated, %v", name, (after.TotalAlloc-before.TotalAlloc)>>20, time.Since(began))
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
		if most := uint64(12 * endpoint.MaxAnswer); after.TotalAlloc-before.TotalAlloc > most {
			t.Errorf("%s: %d MB were allocated", name, (after.TotalAlloc-before.TotalAlloc)>>20)
		}
	}
	if taken.Load() > 16*endpoint.MaxAnswer {
		t.Errorf("%d MB were read", taken.Load()>>20)
	}
}

// TestOpenRefuses: a base that is not one is refused, without what stands in it.
func TestOpenRefuses(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:8000", "localhost:8000/v1", "ftp://127.0.0.1/v1", "http:///v1",
		"http://me:" + canary + "@127.0.0.1/v1",
		"http://127.0.0.1/v1?key=" + canary, "http://127.0.0.1/v1#" + canary, "http://127.0.0.1:" + canary,
		"http://127.0.0.1/v1?", "\x7f"} {
		if s, err := endpoint.Open(endpoint.Options{URL: url}); err == nil || s != nil ||
			strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q: %v", url, err)
		}
	}
	server := modelserver.New(t, "vllm")
	for _, base := range []string{server.URL, server.URL + "/", server.URL + "//"} {
		if r, err := open(t, endpoint.Options{URL: base}).Chat(t.Context(), hello); err != nil || r.Outcome != ok {
			t.Errorf("%s: %+v, %v", base, r, err)
		}
	}
}

// TestKey: the key comes from the environment, is sent as OpenAI wants it, and is known to the scrubber.
func TestKey(t *testing.T) {
	file := t.TempDir() + "/key"
	if err := os.WriteFile(file, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		env  map[string]string
		want string // in the error
		key  string
	}{
		"none":     {nil, "", ""},
		"variable": {map[string]string{"ENDPOINT_API_KEY": canary}, "", canary},
		"file":     {map[string]string{"ENDPOINT_API_KEY_FILE": file}, "", canary},
		"both":     {map[string]string{"ENDPOINT_API_KEY": canary, "ENDPOINT_API_KEY_FILE": file}, "unset one", ""},
		"no file":  {map[string]string{"ENDPOINT_API_KEY_FILE": file + canary}, "ENDPOINT_API_KEY_FILE names", ""},
		"a space":  {map[string]string{"ENDPOINT_API_KEY": canary + " x"}, "is not a key", ""},
		"no key":   {map[string]string{"ENDPOINT_API_KEY": canary + "\r\nX: y"}, "is not a key", ""},
	} {
		key, err := endpoint.KeyFromEnv(func(name string) string { return tt.env[name] })
		if (err == nil) != (tt.want == "") || err != nil &&
			(!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "CANARY")) || key.Reveal() != tt.key {
			t.Errorf("%s: %v", name, err)
		}
	}
	server := modelserver.New(t, "vllm")
	server.Answer = func(modelserver.Request) string { return "the key is " + canary }
	scrubber := new(secret.Scrubber)
	r, err := open(t, endpoint.Options{URL: server.URL, Key: secret.New(canary), Scrubber: scrubber}).Chat(t.Context(),
		hello)
	if err != nil || r.Text != "the key is [redacted]" || strings.Contains(string(r.Raw), "CANARY") {
		t.Errorf("an answer that repeats the key: %q, %v", r.Text, err)
	}
	server.Play = modelserver.Status(200,
		`{"model":"\u0043ANARY-key-5d1f77","choices":[{"finish_reason":"stop","message":{"content":"\u0043ANARY-key-5d1f77"}}]}`)
	r, err = open(t, endpoint.Options{URL: server.URL, Key: secret.New(canary)}).Chat(t.Context(), hello)
	if err != nil || r.Text != "[redacted]" || r.Model != "[redacted]" {
		t.Errorf("the key in another spelling: %q of %q, %v", r.Text, r.Model, err)
	}
	server.Play = nil
	if got := server.Requests()[0].Header.Get("Authorization"); got != "Bearer "+canary {
		t.Errorf("Authorization: %q", got)
	}
	if got := scrubber.Scrub("x " + canary); got != "x [redacted]" {
		t.Errorf("scrubbed: %q", got)
	}
	if _, err := open(t, endpoint.Options{URL: server.URL}).Chat(t.Context(), hello); err != nil ||
		server.Requests()[2].Header.Get("Authorization") != "" {
		t.Errorf("without a key: %v", err)
	}
}

// FuzzAnswer: whatever a server answers is read without a panic into one of the outcomes or an error, with valid JSON
// and a printable detail.
func FuzzAnswer(f *testing.F) {
	for _, m := range misbehaviours() {
		w := httptest.NewRecorder()
		func() {
			defer func() { _ = recover() }() // of a broken connection
			m.play(w, modelserver.Request{})
		}()
		f.Add(w.Code, w.Header().Get("Content-Type"), w.Body.Bytes(), false)
	}
	f.Add(200, "application/json", []byte(`{"model":"m","results":[{"flagged":true,"categories":{"a":true}}]}`), true)
	s, err := endpoint.Open(endpoint.Options{URL: "http://127.0.0.1:1/v1", Key: secret.New(canary)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte, moderation bool) {
		answer := &http.Response{StatusCode: status, Status: fmt.Sprint(status),
			Header: http.Header{"Content-Type": {kind}, "Retry-After": {kind}, "Location": {kind}},
			Body:   io.NopCloser(strings.NewReader(string(body)))}
		r, err := s.Answered(answer, moderation)
		if (r.Outcome == "") != (err != nil) || r.Outcome == ok && !moderation && strings.TrimSpace(r.Text) == "" ||
			r.Outcome == ok && r.Raw == nil {
			t.Errorf("%+v, %v", r, err)
		}
		if strings.ContainsFunc(r.Detail, func(c rune) bool { return c < ' ' || c > '~' }) || len(r.Detail) > 200 {
			t.Errorf("detail %q", r.Detail)
		}
		if err == nil && (r.Usage.Prompt < 0 || r.Usage.Completion < 0) ||
			strings.Contains(string(r.Raw)+r.Text+r.Detail+fmt.Sprint(err), canary) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
