package reddit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"rehydrate/internal/secret"
)

type emptyAnswers struct{}

func (emptyAnswers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: io.NopCloser(strings.NewReader(""))}, nil
}

// TestClosedBodyLetsGo: an exchange does not stay in memory once the body of its answer is closed.
func TestClosedBodyLetsGo(t *testing.T) {
	type key struct{}
	const exchanges = 100
	held := 0
	var all []weak.Pointer[[1 << 16]byte]
	for range exchanges {
		exchange := new([1 << 16]byte)
		all = append(all, weak.Make(exchange))
		req, err := http.NewRequestWithContext(context.WithValue(t.Context(), key{}, exchange), http.MethodGet,
			"https://"+apiHost, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := guarded{emptyAnswers{}}.RoundTrip(req)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	for _, p := range all {
		if p.Value() != nil {
			held++
		}
	}
	if held > exchanges/2 { // the runtime takes its time to forget some timers that were stopped
		t.Errorf("%d of %d are", held, exchanges)
	}
}

// A countingServer counts requests and connections; told to, it cuts the connection of every
// request that comes over one that has served before, as a host does that has closed it.
type countingServer struct {
	pause sync.WaitGroup // of the requests that shall be open together

	mu    sync.Mutex
	asked int
	conns []string // the clients' addresses, one for each connection
	cut   []string // those of connections to be cut
	body  []byte
}

func (s *countingServer) handle(w http.ResponseWriter, r *http.Request) {
	// Nothing is sent of the body that keeps net/http from repeating a request.
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 || r.Header.Get("Content-Type") != "" {
		http.Error(w, "a body", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked++
	if !slices.Contains(s.conns, r.RemoteAddr) {
		s.conns = append(s.conns, r.RemoteAddr)
	}
	cut := slices.Contains(s.cut, r.RemoteAddr)
	s.mu.Unlock()
	if cut {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == "/together.png" {
		s.pause.Done()
		s.pause.Wait()
	}
	_, _ = w.Write(s.body)
}

// TestCutConnections: of several kept connections that are all found cut, a request meets one,
// and its repetition is paced, counted and made over a new one.
func TestCutConnections(t *testing.T) {
	const open = 4
	s := &countingServer{body: pngBytes(t)}
	o := serve(t, s.handle)
	c := newTestClient(t, o)
	get := func(name string) { download(t, c, "https://i.redd.it/"+name, "") }
	s.pause.Add(open)
	var all sync.WaitGroup
	for range open {
		all.Go(func() { get("together.png") })
	}
	all.Wait()
	get("one.png")
	if len(s.conns) != open {
		t.Fatalf("%d connections for %d requests at once and one more: none was kept", len(s.conns), open)
	}
	s.mu.Lock()
	s.cut = slices.Clone(s.conns)
	s.mu.Unlock()
	get("two.png")
	if got := c.Calls(); got.Images != open+3 || s.asked != open+3 || got.Retries != 1 || len(s.conns) != open+1 {
		t.Errorf("the server saw %d requests over %d connections, the client counted %+v; want %d over %d and one repetition",
			s.asked, len(s.conns), got, open+3, open+1)
	}
}

// TestAPIConnections: imgur's API, which counts requests as Reddit's does, is asked over one connection. Where that is
// found cut, the request is repeated once, counted.
func TestAPIConnections(t *testing.T) {
	s := &countingServer{body: []byte(`{"data":{"images":[{"link":"https://i.imgur.com/a.mp4","type":"video/mp4"}]},"success":true,"status":200}`)}
	o := serve(t, s.handle)
	o.ImgurClientID = secret.New(imgurTestID)
	c := newTestClient(t, o)
	for i := range 4 {
		if i == 3 {
			s.mu.Lock()
			s.cut = slices.Clone(s.conns)
			s.mu.Unlock()
		}
		download(t, c, fmt.Sprintf("https://imgur.com/a/Album%02d#0", i), "no_media/video")
	}
	if got := c.Calls(); s.asked != 5 || len(s.conns) != 2 || got.ImageAPI != 5 || got.Retries != 1 {
		t.Errorf("%d requests over %d connections, counted %+v; want 5 over 2 and one repetition", s.asked, len(s.conns),
			got)
	}
}
