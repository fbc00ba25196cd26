package redditemu

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/webp"

	"rehydrate/manifest"
)

const noTrap = "127.0.0.1:1"

// sound decodes a file with the decoder of its format; files of none are an error.
func sound(b []byte) (image.Image, error) {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xd8")):
		return jpeg.Decode(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte("\x89PNG")):
		return png.Decode(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte("GIF8")):
		return gif.Decode(bytes.NewReader(b))
	}
	return webp.Decode(bytes.NewReader(b))
}

// TestHostileImages holds the corpus to what it says of itself: enough cases, each named once
// and written the same every time, and what is to be kept is a picture.
func TestHostileImages(t *testing.T) {
	all := HostileImages(noTrap)
	if len(all) < 60 {
		t.Errorf("%d images, want 60 or more", len(all))
	}
	name, seen := regexp.MustCompile(`^[a-z0-9_]+$`), map[string]bool{}
	for _, h := range all {
		if !name.MatchString(h.Name) || seen[h.Name] || h.Reason == "" || h.Outcome == "" {
			t.Errorf("%q: a bad or repeated name, or no outcome and reason", h.Name)
		}
		seen[h.Name] = true
		var once, twice bytes.Buffer
		if err := h.Write(&once); err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		if err := h.Write(&twice); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Errorf("%s: not the same bytes twice (%v)", h.Name, err)
		}
		if h.Outcome != manifest.Kept {
			continue
		}
		if _, err := sound(once.Bytes()); err != nil {
			t.Errorf("%s is to be kept, and is no picture: %v", h.Name, err)
		}
	}
}

// TestBombs shows that the bombs are real: what they unfold to is as large as they say, so that
// a client that refuses them refuses them for the right reason.
func TestBombs(t *testing.T) {
	const n = 70<<20 + 12345
	z, err := zlib.NewReader(bytes.NewReader(zlibZeros(n)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.Copy(io.Discard, z); got != n || err != nil {
		t.Errorf("zlibZeros(%d) unfolds to %d bytes, %v", int64(n), got, err)
	}
	var b bytes.Buffer
	if err := gzipBomb(&b, ' ', n); err != nil {
		t.Fatal(err)
	}
	if b.Len() > n/500 {
		t.Errorf("a gzip bomb of %d bytes is %d long", int64(n), b.Len())
	}
	g, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.Copy(io.Discard, g); got != n || err != nil {
		t.Errorf("gzipBomb(%d) unfolds to %d bytes, %v", int64(n), got, err)
	}
	if img, err := sound(flatPNG(3000, 3000, 1, 0, 0)); err != nil || img.Bounds().Dx() != 3000 {
		t.Errorf("flatPNG: %v", err)
	}
	if img, err := sound(flatWebP(3000, 3000, 0)); err != nil || img.Bounds().Dx() != 3000 {
		t.Errorf("flatWebP: %v", err)
	}
	if img, err := sound(rawJPEG(jpegPlan{w: 64, h: 64, components: 3, progressive: true, scans: 1000})); err != nil || img.Bounds().Dx() != 64 {
		t.Errorf("a JPEG of 1000 scans: %v", err)
	}
	if all, err := gif.DecodeAll(bytes.NewReader(gifFrames(120, 90, 10000, 1))); err != nil || len(all.Image) != 10000 {
		t.Errorf("a GIF of 10000 frames: %v", err)
	}
}

// TestHostileAnswers holds the answers to what they say of themselves.
func TestHostileAnswers(t *testing.T) {
	all := HostileAnswers(noTrap)
	if n := len(all) + len(HostileImages(noTrap)); n < 80 {
		t.Errorf("the corpus has %d cases, want 80 or more", n)
	}
	seen := map[string]bool{}
	for _, h := range all {
		if seen[h.Name] || h.Reason == "" || h.Outcome == "" || h.Kind.String() == "" {
			t.Errorf("%q: a repeated name, no outcome and reason, or no kind", h.Name)
		}
		seen[h.Name] = true
	}
}

// TestHostileKinds shows what a client sees of the answers that the corpus is made of, and that
// each counts.
func TestHostileKinds(t *testing.T) {
	const host = "https://case.example/picture.jpg"
	p := start(t, Options{Hosts: []string{"case.example"}})
	whole := ""
	for _, tt := range []struct {
		name string
		kind FaultKind
		see  func(a answer, err error) bool
	}{
		{"picture", onPicture(WrongLength(0)), func(a answer, err error) bool {
			whole = string(a.body)
			return err == nil && a.StatusCode == 200 && strings.HasPrefix(whole, "\xff\xd8\xff")
		}},
		{"more announced", onPicture(WrongLength(9)), func(a answer, err error) bool { return a.err != nil && string(a.body) == whole }},
		{"less announced", onPicture(WrongLength(-9)), func(a answer, err error) bool {
			return a.err == nil && string(a.body) == whole[:len(whole)-9]
		}},
		{"empty reply", EmptyReply(), func(_ answer, err error) bool { return err != nil && strings.Contains(err.Error(), "EOF") }},
		{"not HTTP", NotHTTP(), func(_ answer, err error) bool { return err != nil && strings.Contains(err.Error(), "malformed HTTP") }},
		{"loop", RedirectLoop(), func(a answer, err error) bool { return a.StatusCode == 302 && a.Header.Get("Location") == host }},
		{"hops", RedirectHops(1), func(a answer, err error) bool { return a.StatusCode == 302 && a.Header.Get("Location") == "/hop1" }},
		{"cookies", SetCookies(RedirectHops(1)), func(a answer, err error) bool {
			return a.StatusCode == 302 && strings.HasPrefix(a.Header.Get("Set-Cookie"), "session=")
		}},
		{"gzip", GzipBomb(1 << 20), func(a answer, err error) bool {
			return a.Header.Get("Content-Encoding") == "gzip" && len(a.body) > 0 && len(a.body) < 1<<14
		}},
		{"header", onPicture(HugeHeader(11 << 20)), func(_ answer, err error) bool { return err != nil && strings.Contains(err.Error(), "header") }},
	} {
		f := p.s.Fault(Fault{Host: "case.example", Kind: tt.kind})
		a, err := p.do(http.MethodGet, host, "")
		if !tt.see(a, err) || f.Fired() == 0 {
			t.Errorf("%s: %.200v, %d bytes, %v, fired %d", tt.name, err, len(a.body), a.err, f.Fired())
		}
		f.Clear()
	}
	p.s.Fault(Fault{Host: "case.example", Kind: RedirectHops(1)})
	if a := p.get("https://case.example/hop1"); a.StatusCode != 200 || string(a.body) != whole {
		t.Errorf("after the last hop: %d, %d bytes", a.StatusCode, len(a.body))
	}
}

// TestEndless reads past any limit, and finds each byte of a slow body on its own.
func TestEndless(t *testing.T) {
	p := start(t, Options{Hosts: []string{"endless.example", "slow.example"}})
	p.s.Fault(Fault{Host: "endless.example", Kind: Endless()})
	resp, err := p.http.Get("https://endless.example/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.CopyN(io.Discard, resp.Body, 30<<20); err != nil || resp.ContentLength != -1 {
		t.Errorf("%d bytes, %v, length %d announced", n, err, resp.ContentLength)
	}
	p.s.Fault(Fault{Host: "slow.example", Kind: onPicture(OneByteASecond())})
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
		a := p.s.Fault(Fault{Host: "share.example", Share: 0.2, Kind: ServerError(502)})
		b := p.s.Fault(Fault{Host: "share.example", Share: 0.2, Kind: ServerError(503)})
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
