package redditemu

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rehydrate/manifest"
)

// hosts are the names that the emulator's certificate holds.
func hosts() []string {
	return []string{wwwHost, apiHost, "i.redd.it", "preview.redd.it", "external-preview.redd.it",
		imgurFileHost, imgurAPIHost, "imgur.com", "v.redd.it"}
}

// An Asset is one image at its address.
type Asset struct {
	Post    manifest.PostID
	image   Image
	queries []string // exact signed queries of recorded addresses
}

// assetKey names an address. imgur ignores extensions, the others do not.
func assetKey(host, p string) string {
	if host == imgurFileHost {
		p = strings.TrimSuffix(p, path.Ext(p))
	}
	return host + p
}

func (s *Server) asset(host, p string) (a *Asset) {
	s.With(func(w *World) { a = w.Asset(host, p) })
	return a
}

// image answers for every host but the two of Reddit itself.
func (s *Server) image(host string, r *http.Request) *Reply {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return HTMLReply(http.StatusMethodNotAllowed, "405 Method Not Allowed", "")
	}
	switch host {
	case "i.redd.it":
		return s.iReddit(r)
	case "preview.redd.it", "external-preview.redd.it":
		return s.preview(host, r)
	case imgurFileHost:
		return s.imgur(r)
	case imgurAPIHost:
		return s.imgurAPI(r)
	case "imgur.com":
		return HTMLReply(http.StatusOK, "Imgur: The magic of the Internet", CanaryTitle)
	}
	if a := s.asset(host, r.URL.Path); a != nil {
		return s.serveAsset(a, r)
	}
	return HTMLReply(http.StatusNotFound, "404 Not Found", "nothing here")
}

func (s *Server) iReddit(r *http.Request) *Reply {
	if prefersHTML(r.Header.Get("Accept")) {
		return RedirectReply("https://" + wwwHost + "/media?url=" + url.QueryEscape("https://i.redd.it"+r.URL.Path))
	}
	if a := s.asset("i.redd.it", r.URL.Path); a != nil {
		return s.serveAsset(a, r)
	}
	return accessDenied()
}

// preview checks the signed query, then serves. An address it has no image for gets
// the grey stand-in with 404.
func (s *Server) preview(host string, r *http.Request) *Reply {
	a := s.asset(host, r.URL.Path)
	exact := a != nil && slices.Contains(a.queries, r.URL.RawQuery)
	if !exact && !signatureHolds(r.URL) {
		return guruMeditation()
	}
	if a == nil {
		return Placeholder404()
	}
	return s.serveAsset(a, r)
}

func signatureHolds(u *url.URL) bool {
	query, sig, ok := strings.Cut(u.RawQuery, "&s=")
	return ok && sig == signature(u.Path, query)
}

// serveAsset answers for an image in the way its Serve asks.
func (s *Server) serveAsset(a *Asset, r *http.Request) *Reply {
	switch a.image.Serve {
	case ServeNotFound:
		return HTMLReply(http.StatusNotFound, "404 Not Found", "The specified key does not exist.")
	case ServeForbidden:
		return accessDenied()
	case ServePlaceholder:
		return Placeholder404()
	case ServeImgurRemoved:
		return RedirectReply("https://i.imgur.com/removed.png")
	case ServeImgurChain:
		return RedirectReply("https://i.imgur.com/uH6EmZ7.png")
	case ServeHTML:
		return HTMLReply(http.StatusOK, CanaryTitle, "not an image")
	case ServeEmpty:
		return NewReply(http.StatusOK, "image/jpeg", nil)
	case ServeUnavailable:
		return ServerError(http.StatusServiceUnavailable)
	case ServeGarbage:
		return NewReply(http.StatusOK, "image/jpeg", garbage(r.URL.Path))
	}
	if a.image.Write != nil {
		return streamReply(a.image.Write)
	}
	body := a.image.Body
	if body == nil {
		var err error
		body, err = s.cache.draw(a.image.Spec)
		if err != nil {
			return DrawFailed(err)
		}
	}
	if a.image.Serve == ServeCut {
		body = body[:len(body)/2]
	}
	return NewReply(http.StatusOK, http.DetectContentType(body), body).
		With("Cache-Control", "public, max-age=2592000, immutable", "Accept-Ranges", "bytes")
}

// streamReply writes an image while it is made, its length announced.
func streamReply(write func(io.Writer) error) *Reply {
	var n counter
	if err := write(&n); err != nil {
		return DrawFailed(err)
	}
	rep := NewReply(http.StatusOK, "image/jpeg", nil)
	rep.Stream, rep.Length = write, int64(n)
	return rep
}

// A counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// DrawFailed says to a test's author, through the client, that a Spec cannot be drawn.
func DrawFailed(err error) *Reply {
	return NewReply(http.StatusInternalServerError, "text/plain", []byte("redditemu: "+err.Error()+"\n"))
}

func garbage(name string) []byte {
	rng := rand.New(rand.NewPCG(Hash64(name), 1))
	b := make([]byte, 4096)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	b[0] = 0 // no magic number begins with it that an image decoder knows
	return b
}

// prefersHTML reports whether an Accept header names text/html at least as high as any
// image type.
func prefersHTML(accept string) bool {
	page, picture := 0.0, 0.0
	for _, part := range strings.Split(accept, ",") {
		t, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if v, err := strconv.ParseFloat(params["q"], 64); err == nil {
			q = v
		}
		switch {
		case t == "text/html":
			page = max(page, q)
		case strings.HasPrefix(t, "image/"):
			picture = max(picture, q)
		}
	}
	return page > 0 && page >= picture
}

// accessDenied is the 403 of i.redd.it for a name it does not know: 418 bytes.
func accessDenied() *Reply {
	body := `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>\n"
	return NewReply(http.StatusForbidden, "application/xml", []byte(body+strings.Repeat(" ", 418-len(body))))
}

func guruMeditation() *Reply {
	return NewReply(http.StatusForbidden, "text/html; charset=utf-8", []byte("<!DOCTYPE html>\n<html>\n  <head>\n    <title>403 Forbidden</title>\n"+
		"  </head>\n  <body>\n    <h1>Error 403 Forbidden</h1>\n    <p>Forbidden</p>\n    <h3>Guru Meditation:</h3>\n    <p>Varnish cache server</p>\n  </body>\n</html>\n"))
}

// Placeholder404 is the grey picture that preview.redd.it sends with a 404.
func Placeholder404() *Reply {
	return NewReply(http.StatusNotFound, "image/png", GreyPNG(130, 60, 1048))
}

// GreyPNG draws a grey picture with a few darker bars and pads it, with a text chunk,
// to exactly size bytes when it is smaller than that.
func GreyPNG(w, h, size int) []byte {
	img := image.NewGray(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = 0xd8
	}
	for y := h / 3; y < h*2/3; y++ {
		for x := w / 6; x < w*5/6; x++ {
			if y/4%2 == 0 && x/3%4 != 0 {
				img.SetGray(x, y, color.Gray{Y: 0x80})
			}
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a bytes.Buffer takes everything
	if pad := size - b.Len() - 12; pad > 0 {
		text := append([]byte("Comment\x00"), bytes.Repeat([]byte{'.'}, max(0, pad-8))...)
		return InsertPNG(b.Bytes(), PNGChunk("tEXt", text[:pad]))
	}
	return b.Bytes()
}

// A cache keeps drawn images up to a bound, the least recently used going first, and
// draws each at most once at a time.
type cache struct {
	limit int64

	mu   sync.Mutex
	size int64    // mu
	used []*drawn // mu: the most recently used last
}

type drawn struct {
	key  string
	size int64 // cache.mu; 0 until drawn
	once sync.Once
	body []byte // once
	err  error  // once
}

func (c *cache) draw(spec Spec) ([]byte, error) {
	d := c.slot(spec.key())
	d.once.Do(func() {
		out, err := Draw(spec)
		d.body, d.err = out.Body, err
		c.account(d, int64(len(d.body)))
	})
	return d.body, d.err
}

func (c *cache) slot(key string) *drawn {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &drawn{key: key}
	if i := slices.IndexFunc(c.used, func(d *drawn) bool { return d.key == key }); i >= 0 {
		d = c.used[i]
		c.used = slices.Delete(c.used, i, i+1)
	}
	c.used = append(c.used, d)
	return d
}

// account adds a body's size and evicts down to the bound.
func (c *cache) account(d *drawn, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.used, d) { // evicted while it was drawn
		return
	}
	d.size = size
	c.size += size
	for c.size > c.limit && len(c.used) > 1 {
		c.size -= c.used[0].size
		c.used = slices.Delete(c.used, 0, 1)
	}
}
