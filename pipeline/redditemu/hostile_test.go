package redditemu_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

// TestHostileKinds shows what a client sees of the answers that the corpus is made of, and that
// each counts.
func TestHostileKinds(t *testing.T) {
	const host = "https://case.example/picture.jpg"
	p := start(t, Options{Hosts: []string{"case.example"}})
	whole := ""
	for _, tt := range []struct {
		name string
		kind hostile.FaultKind
		see  func(a answer, err error) bool
	}{
		{"picture", hostile.OnPicture(hostile.WrongLength(0)), func(a answer, err error) bool {
			whole = string(a.body)
			return err == nil && a.StatusCode == 200 && strings.HasPrefix(whole, "\xff\xd8\xff")
		}},
		{"more announced", hostile.OnPicture(hostile.WrongLength(9)), func(a answer, err error) bool { return a.err != nil && string(a.body) == whole }},
		{"less announced", hostile.OnPicture(hostile.WrongLength(-9)), func(a answer, err error) bool {
			return a.err == nil && string(a.body) == whole[:len(whole)-9]
		}},
		{"empty reply", hostile.EmptyReply(), func(_ answer, err error) bool { return err != nil && strings.Contains(err.Error(), "EOF") }},
		{"not HTTP", hostile.NotHTTP(), func(_ answer, err error) bool { return err != nil && strings.Contains(err.Error(), "malformed HTTP") }},
		{"loop", hostile.RedirectLoop(), func(a answer, err error) bool { return a.StatusCode == 302 && a.Header.Get("Location") == host }},
		{"hops", hostile.RedirectHops(1), func(a answer, err error) bool { return a.StatusCode == 302 && a.Header.Get("Location") == "/hop1" }},
		{"cookies", hostile.SetCookies(hostile.RedirectHops(1)), func(a answer, err error) bool {
			return a.StatusCode == 302 && strings.HasPrefix(a.Header.Get("Set-Cookie"), "session=")
		}},
		{"gzip", hostile.GzipBomb(1 << 20), func(a answer, err error) bool {
			return a.Header.Get("Content-Encoding") == "gzip" && len(a.body) > 0 && len(a.body) < 1<<14
		}},
		{"header", hostile.OnPicture(hostile.HugeHeader(11 << 20)), func(_ answer, err error) bool { return err != nil && strings.Contains(err.Error(), "header") }},
	} {
		f := p.s.Fault(hostile.Fault{Host: "case.example", Kind: tt.kind})
		a, err := p.do(http.MethodGet, host, "")
		if !tt.see(a, err) || f.Fired() == 0 {
			t.Errorf("%s: %.200v, %d bytes, %v, fired %d", tt.name, err, len(a.body), a.err, f.Fired())
		}
		f.Clear()
	}
	p.s.Fault(hostile.Fault{Host: "case.example", Kind: hostile.RedirectHops(1)})
	if a := p.get("https://case.example/hop1"); a.StatusCode != 200 || string(a.body) != whole {
		t.Errorf("after the last hop: %d, %d bytes", a.StatusCode, len(a.body))
	}
}

// TestEndless reads past any limit, and finds each byte of a slow body on its own.
func TestEndless(t *testing.T) {
	p := start(t, Options{Hosts: []string{"endless.example", "slow.example"}})
	p.s.Fault(hostile.Fault{Host: "endless.example", Kind: hostile.Endless()})
	resp, err := p.http.Get("https://endless.example/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.CopyN(io.Discard, resp.Body, 30<<20); err != nil || resp.ContentLength != -1 {
		t.Errorf("%d bytes, %v, length %d announced", n, err, resp.ContentLength)
	}
	p.s.Fault(hostile.Fault{Host: "slow.example", Kind: hostile.OnPicture(hostile.OneByteASecond())})
	slow, err := p.http.Get("https://slow.example/x")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	began := time.Now()
	if n, err := io.ReadFull(slow.Body, make([]byte, 3)); err != nil || time.Since(began) < time.Second {
		t.Errorf("%d bytes in %v, %v", n, time.Since(began), err)
	}
}

// TestFaultShare shows that a share of requests is spoiled, the same for the same seed, and that
// two shares are picked apart.
func TestFaultShare(t *testing.T) {
	spoiled := func(seed uint64) string {
		p := start(t, Options{Seed: seed, Hosts: []string{"share.example"}})
		a := p.s.Fault(hostile.Fault{Host: "share.example", Share: 0.2, Kind: hostile.ServerError(502)})
		b := p.s.Fault(hostile.Fault{Host: "share.example", Share: 0.2, Kind: hostile.ServerError(503)})
		var seen strings.Builder
		for range 400 {
			seen.WriteString(map[int]string{404: ".", 502: "a", 503: "b"}[p.get("https://share.example/x").StatusCode])
		}
		if a.Fired() < 50 || a.Fired() > 110 || b.Fired() < 35 || b.Fired() > 100 {
			t.Errorf("seed %d: fired %d and %d of 400, want about 80 and 64", seed, a.Fired(), b.Fired())
		}
		return seen.String()
	}
	one, again, two := spoiled(1), spoiled(1), spoiled(2)
	if one != again || one == two {
		t.Errorf("the same seed spoils the same: %v; another one others: %v", one == again, one != two)
	}
}
