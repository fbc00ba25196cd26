package redditemu_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	. "rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

// TestFaults shows what a client sees of each kind, and that it counts.
func TestFaults(t *testing.T) {
	p := start(t, Options{Hosts: []string{"case.example"}})
	post := Post{ID: "f1"}
	p.put(post, Post{ID: "f2"})
	const picture = "https://case.example/picture.jpg"
	whole := len(p.get(post.URLs()[0]).body)
	for _, tt := range []struct {
		kind hostile.FaultKind
		url  string // "" for the API
		want string // status, and what stands in the headers, the body or the error
	}{
		{hostile.Status(418, http.Header{"X-Tea": {"pot"}}, []byte("short")), "", "418 X-Tea:[pot]"},
		{hostile.TooManyHTML(7), "", "429 Retry-After:[7]"}, {hostile.TooManyJSON(), "", `429 "error": 429`},
		{hostile.BlockedHTML(), "", "403 <title>Blocked"}, {hostile.ServerError(522), "", "522 <html"},
		{hostile.TruncatedJSON(), "", `200 {"kind": "Listing"`}, {hostile.HTML200(), "", "200 <html"},
		{hostile.EmptyListing(), "", `200 "dist": 0`}, {hostile.ExpireToken(), "", "401 invalid_token"},
		{hostile.RateHeaders("10000", "0.0", "99999"), "", "200 X-Ratelimit-Reset:[99999]"},
		{hostile.ExpireTokenHTML(), "", "401 who goes there"}, {hostile.RegionBlock(), "", "200 Content-Length:[34641]"},
		{hostile.OverCapacity(403), "", "403 over capacity"}, {hostile.Reset(), "", "0 reset"},
		{hostile.EmptyBody(), post.URLs()[0], "200 Content-Length:[0]"},
		{hostile.TruncatedBody(), post.URLs()[0], fmt.Sprintf("200 Content-Length:[%d]", whole)},
		{hostile.OnPicture(hostile.WrongLength(0)), picture, "200 \xff\xd8\xff"},
		{hostile.OnPicture(hostile.WrongLength(9)), picture, "200 unexpected EOF"},
		{hostile.EmptyReply(), picture, "0 EOF"}, {hostile.NotHTTP(), picture, "0 malformed HTTP"},
		{hostile.RedirectLoop(), picture, "302 Location:[" + picture + "]"},
		{hostile.RedirectHops(1), picture, "302 /hop1"},
		{hostile.SetCookies(hostile.RedirectHops(1)), picture, "302 Set-Cookie:[session="},
		{hostile.GzipBomb(1 << 20), picture, "200 Content-Encoding:[gzip]"},
		{hostile.OnPicture(hostile.HugeHeader(11 << 20)), picture, "0 header"},
	} {
		p.login()
		f := p.s.Fault(hostile.Fault{Kind: tt.kind})
		if tt.url == "" {
			tt.url = "https://oauth.reddit.com/api/info?id=t3_f1"
		}
		a, err := p.do(http.MethodGet, tt.url, "", "Authorization", "bearer "+p.token)
		got := fmt.Sprint("0 ", err)
		if err == nil {
			got = fmt.Sprint(a.StatusCode, " ", a.Header, string(a.body), a.err)
		}
		status, text, _ := strings.Cut(tt.want, " ")
		if !strings.HasPrefix(got, status+" ") || !strings.Contains(got, text) || f.Fired() == 0 {
			t.Errorf("%v: fired %d, %.400s; want %s", tt.kind, f.Fired(), got, tt.want)
		}
		f.Clear()
	}
}

// TestSchedule: After, Every, Times and Post choose the requests; the fault armed first wins, and the log
// says so.
func TestSchedule(t *testing.T) {
	p := start(t, Options{})
	p.login()
	p.put(Post{ID: "a"})
	f := p.s.Fault(hostile.Fault{Post: "a", After: 2, Every: 2, Times: 2, Kind: hostile.ServerError(500)})
	p.s.Fault(hostile.Fault{PathPrefix: "/api/info", After: 5, Kind: hostile.ServerError(502)})
	p.s.Fault(hostile.Fault{Post: "b", Kind: hostile.ServerError(503)})
	var got []int
	for range 8 {
		got = append(got, p.info("t3_a").StatusCode)
	}
	if want := []int{200, 200, 200, 500, 200, 500, 502, 502}; !slices.Equal(got, want) || f.Fired() != 2 {
		t.Errorf("statuses %v, fired %d, want %v, 2", got, f.Fired(), want)
	}
	p.s.ClearFaults()
	if a := p.get(Post{ID: "a"}.URLs()[0]); a.StatusCode != 200 {
		t.Errorf("after ClearFaults: %d", a.StatusCode)
	}
	log := p.s.Requests()
	if q := log[4]; q.Fault != "500" || q.Status != 500 || q.Auth != "bearer" ||
		!slices.Equal(q.IDs, []manifest.PostID{"a"}) {
		t.Errorf("logged as %+v", q)
	}
}

// TestEndless reads past any limit, and finds each byte of a slow body on its own.
func TestEndless(t *testing.T) {
	p := start(t, Options{Hosts: []string{"endless.example", "slow.example"}})
	p.s.Fault(hostile.Fault{Host: "endless.example", Kind: hostile.Endless()})
	resp, err := p.http.Get("https://endless.example/x")
	testkit.OK(t, err)
	defer resp.Body.Close()
	if n, err := io.CopyN(io.Discard, resp.Body, 30<<20); err != nil || resp.ContentLength != -1 {
		t.Errorf("%d bytes, %v, length %d announced", n, err, resp.ContentLength)
	}
	p.s.Fault(hostile.Fault{Host: "slow.example", Kind: hostile.OnPicture(hostile.OneByteASecond())})
	slow, err := p.http.Get("https://slow.example/x")
	testkit.OK(t, err)
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
