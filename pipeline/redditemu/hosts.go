package redditemu

import (
	"bytes"
	"container/list"
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

func imageHost(host string) bool {
	switch host {
	case "i.redd.it", "preview.redd.it", "external-preview.redd.it", imgurFileHost:
		return true
	}
	return false
}

// An asset is one image at its address.
type asset struct {
	post    manifest.PostID
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

// bareName turns /some-title-v0-ID.jpg into /ID.jpg.
func bareName(p string) string {
	if _, id, ok := strings.Cut(p, "-v0-"); ok {
		return "/" + id
	}
	return p
}

func formatOf(p string) string {
	switch strings.ToLower(path.Ext(p)) {
	case ".png":
		return "png"
	case ".gif":
		return "gif"
	}
	return "jpeg"
}

func (s *Server) asset(host, p string) *asset {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.assets[assetKey(host, p)]
}

// image answers for every host but the two of Reddit itself.
func (s *Server) image(host string, r *http.Request) *reply {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return htmlReply(http.StatusMethodNotAllowed, "405 Method Not Allowed", "")
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
		return htmlReply(http.StatusOK, "Imgur: The magic of the Internet", CanaryTitle)
	}
	if a := s.asset(host, r.URL.Path); a != nil {
		return s.serveAsset(a, r)
	}
	return htmlReply(http.StatusNotFound, "404 Not Found", "nothing here")
}

func (s *Server) iReddit(r *http.Request) *reply {
	if prefersHTML(r.Header.Get("Accept")) {
		return redirectReply("https://" + wwwHost + "/media?url=" + url.QueryEscape("https://i.redd.it"+r.URL.Path))
	}
	if a := s.asset("i.redd.it", r.URL.Path); a != nil {
		return s.serveAsset(a, r)
	}
	return accessDenied()
}

// preview checks the signed query, then serves. An address it has no image for gets
// the grey stand-in with 404.
func (s *Server) preview(host string, r *http.Request) *reply {
	a := s.asset(host, r.URL.Path)
	exact := a != nil && slices.Contains(a.queries, r.URL.RawQuery)
	if !exact && !signatureHolds(r.URL) {
		return guruMeditation()
	}
	if a == nil {
		return placeholder404()
	}
	rep := s.serveAsset(a, r)
	if rep.status == http.StatusOK && r.URL.Query().Get("auto") == "webp" && acceptsWebP(r) && a.image.Body == nil && a.image.Serve == ServeImage {
		return s.asWebP(a)
	}
	return rep
}

// asWebP serves the same picture as WebP, under whatever extension the address has.
func (s *Server) asWebP(a *asset) *reply {
	spec := a.image.Spec
	spec.Format = "webp"
	body, err := s.cache.draw(spec)
	if err != nil {
		return drawFailed(err)
	}
	return newReply(http.StatusOK, "image/webp", body)
}

func signatureHolds(u *url.URL) bool {
	query, sig, ok := strings.Cut(u.RawQuery, "&s=")
	return ok && sig == signature(u.Path, query)
}

// serveAsset answers for an image in the way its Serve asks.
func (s *Server) serveAsset(a *asset, r *http.Request) *reply {
	switch a.image.Serve {
	case ServeNotFound:
		return htmlReply(http.StatusNotFound, "404 Not Found", "The specified key does not exist.")
	case ServeForbidden:
		return accessDenied()
	case ServePlaceholder:
		return placeholder404()
	case ServeImgurRemoved:
		return redirectReply("https://i.imgur.com/removed.png")
	case ServeImgurChain:
		return redirectReply("https://i.imgur.com/uH6EmZ7.png")
	case ServeHTML:
		return htmlReply(http.StatusOK, CanaryTitle, "not an image")
	case ServeEmpty:
		return newReply(http.StatusOK, "image/jpeg", nil)
	case ServeUnavailable:
		return serverError(http.StatusServiceUnavailable)
	case ServeGarbage:
		return newReply(http.StatusOK, "image/jpeg", garbage(r.URL.Path))
	}
	if a.image.Write != nil {
		return streamReply(a.image.Write)
	}
	body := a.image.Body
	if body == nil {
		var err error
		if body, err = s.cache.draw(a.image.Spec); err != nil {
			return drawFailed(err)
		}
	}
	if a.image.Serve == ServeCut {
		body = body[:len(body)/2]
	}
	return newReply(http.StatusOK, http.DetectContentType(body), body).
		with("Cache-Control", "public, max-age=2592000, immutable", "Accept-Ranges", "bytes")
}

// streamReply writes an image while it is made, its length announced.
func streamReply(write func(io.Writer) error) *reply {
	var n counter
	if err := write(&n); err != nil {
		return drawFailed(err)
	}
	rep := newReply(http.StatusOK, "image/jpeg", nil)
	rep.stream, rep.length = write, int64(n)
	return rep
}

// A counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// drawFailed tells a test's author, through the client, that a Spec cannot be drawn.
func drawFailed(err error) *reply {
	return newReply(http.StatusInternalServerError, "text/plain", []byte("redditemu: "+err.Error()+"\n"))
}

func garbage(name string) []byte {
	rng := rand.New(rand.NewPCG(hash64(name), 1))
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

func acceptsWebP(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "image/webp")
}

// accessDenied is the 403 of i.redd.it for a name it does not know: 418 bytes.
func accessDenied() *reply {
	body := `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>\n"
	return newReply(http.StatusForbidden, "application/xml", []byte(body+strings.Repeat(" ", 418-len(body))))
}

func guruMeditation() *reply {
	return newReply(http.StatusForbidden, "text/html; charset=utf-8", []byte("<!DOCTYPE html>\n<html>\n  <head>\n    <title>403 Forbidden</title>\n"+
		"  </head>\n  <body>\n    <h1>Error 403 Forbidden</h1>\n    <p>Forbidden</p>\n    <h3>Guru Meditation:</h3>\n    <p>Varnish cache server</p>\n  </body>\n</html>\n"))
}

// placeholder404 is the grey picture that preview.redd.it sends with a 404.
func placeholder404() *reply {
	return newReply(http.StatusNotFound, "image/png", greyPNG(130, 60, 1048))
}

// regionBlock is what imgur sends for every address where it does not serve.
func regionBlock() *reply {
	return newReply(http.StatusOK, "image/png", greyPNG(336, 478, 34641))
}

// greyPNG draws a grey picture with a few darker bars and pads it, with a text chunk,
// to exactly size bytes when it is smaller than that.
func greyPNG(w, h, size int) []byte {
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
		return insertPNG(b.Bytes(), pngChunk("tEXt", text[:pad]))
	}
	return b.Bytes()
}

// A cache keeps drawn images up to a bound, the least recently used going first, and
// draws each at most once at a time.
type cache struct {
	limit int64

	mu    sync.Mutex
	size  int64                    // mu
	order list.List                // mu: of *drawn, most recently used first
	byKey map[string]*list.Element // mu
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
	if c.byKey == nil {
		c.byKey = map[string]*list.Element{}
	}
	if e := c.byKey[key]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*drawn)
	}
	d := &drawn{key: key}
	c.byKey[key] = c.order.PushFront(d)
	return d
}

// account adds a body's size and evicts down to the bound. A slot that was evicted
// while it was drawn is nobody's any more.
func (c *cache) account(d *drawn, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[d.key]; e == nil || e.Value != d {
		return
	}
	d.size = size
	c.size += size
	for c.size > c.limit && c.order.Len() > 1 {
		old := c.order.Remove(c.order.Back()).(*drawn)
		delete(c.byKey, old.key)
		c.size -= old.size
	}
}
