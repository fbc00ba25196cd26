package redditemu

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// hosts are the names that the emulator's certificate holds.
func hosts() []string {
	return []string{wwwHost, apiHost, "i.redd.it", previewHost, "external-preview.redd.it",
		imgurFileHost, "api.imgur.com", "imgur.com", "v.redd.it"}
}

// An Asset is one image at its address.
type Asset struct {
	Post  manifest.PostID // that brought it; of a crosspost the parent has the image
	URL   string          // the image's own address
	of    Post            // which has the image
	place int             // of the image in it
}

// Image returns the image.
func (a *Asset) Image() Image { return a.of.Images[a.place] }

// assetKey names an address.
func assetKey(host, p string) string {
	if host == imgurFileHost { // ignores extensions
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
	if r.Method != http.MethodGet {
		return HTMLReply(http.StatusMethodNotAllowed, "405 Method Not Allowed", "")
	}
	switch host {
	case previewHost, "external-preview.redd.it":
		return s.preview(host, r)
	case imgurFileHost:
		return s.imgur(r)
	case "imgur.com":
		return HTMLReply(http.StatusOK, "Imgur: The magic of the Internet", CanaryTitle)
	}
	a := s.asset(host, r.URL.Path)
	switch {
	case a != nil:
		return s.serveAsset(a, r)
	case host == "i.redd.it":
		return accessDenied()
	}
	return HTMLReply(http.StatusNotFound, "404 Not Found", "nothing here")
}

// preview checks the signed query, then serves.
func (s *Server) preview(host string, r *http.Request) *Reply {
	query, signature, _ := strings.Cut(r.URL.RawQuery, "&s=")
	// Before the image is looked for: a client that changes the address must not learn whether it is there.
	if signature != sign(r.URL.Path, query) {
		return HTMLReply(http.StatusForbidden, "403 Forbidden", "Guru Meditation: Varnish cache server")
	}
	if a := s.asset(host, r.URL.Path); a != nil {
		return s.serveAsset(a, r)
	}
	return placeholder404()
}

// imgur answers for i.imgur.com. It ignores extensions.
func (s *Server) imgur(r *http.Request) *Reply {
	a := s.asset(imgurFileHost, r.URL.Path)
	switch {
	case !identifies(r) || r.Referer() != "":
		return HTMLReply(http.StatusTooManyRequests, "429 Too Many Requests", "no robots, no hotlinking")
	case r.URL.Path == "/removed.png":
		return NewReply(http.StatusOK, "image/png", GreyPNG(161, 81, 503)).
			With("Etag", `"d835884373f4d6c8f24742ceabe74946"`)
	case path.Ext(r.URL.Path) == "": // the page
		return RedirectReply("https://imgur.com" + r.URL.Path)
	case a == nil:
		return RedirectReply("https://i.imgur.com/removed.png")
	}
	return s.serveAsset(a, r)
}

// insteadOf are the answers in place of an image, by the path that was asked for.
var insteadOf = map[Serve]func(path string) *Reply{
	ServeNotFound: func(string) *Reply {
		return HTMLReply(http.StatusNotFound, "404 Not Found", "The specified key does not exist.")
	},
	ServeForbidden:    func(string) *Reply { return accessDenied() },
	ServePlaceholder:  func(string) *Reply { return placeholder404() },
	ServeImgurRemoved: func(string) *Reply { return RedirectReply("https://i.imgur.com/removed.png") },
	ServeImgurChain:   func(string) *Reply { return RedirectReply("https://i.imgur.com/uH6EmZ7.png") },
	ServeHTML:         func(string) *Reply { return HTMLReply(http.StatusOK, CanaryTitle, "not an image") },
	ServeEmpty:        func(string) *Reply { return NewReply(http.StatusOK, "image/jpeg", nil) },
	ServeUnavailable:  func(string) *Reply { return ServerError(http.StatusServiceUnavailable) },
	ServeGarbage:      func(path string) *Reply { return NewReply(http.StatusOK, "image/jpeg", garbage(path)) },
}

// serveAsset answers for an image in the way its Serve asks.
func (s *Server) serveAsset(a *Asset, r *http.Request) *Reply {
	img := a.Image()
	if instead := insteadOf[img.Serve]; instead != nil {
		return instead(r.URL.Path)
	}
	body := img.Body
	var err error
	switch {
	case img.Write != nil:
		var b bytes.Buffer
		err = img.Write(&b)
		body = b.Bytes()
	case body == nil: // drawn at each request: a thousand posts would take 100 MB
		var drawn Drawn
		drawn, err = Draw(img.Spec)
		body = drawn.Body
		if s.opt.Plant != nil && err == nil {
			body = s.opt.Plant(body)
		}
	}
	if err != nil {
		return failed(err)
	}
	if img.Serve == ServeCut {
		body = body[:len(body)/2]
	}
	return NewReply(http.StatusOK, http.DetectContentType(body), body).
		With("Cache-Control", "public, max-age=2592000, immutable", "Accept-Ranges", "bytes")
}

// failed says to a test's author, through the client, that a post cannot be made.
func failed(err error) *Reply {
	return NewReply(http.StatusInternalServerError, "text/plain", []byte("redditemu: "+err.Error()+"\n"))
}

func garbage(name string) []byte {
	b := make([]byte, 4096)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(name))).Read(b) // never fails
	// no magic number begins with it that an image decoder knows
	b[0] = 0
	return b
}

// accessDenied is the 403 of i.redd.it for a name it does not know: 418 bytes.
func accessDenied() *Reply {
	body := `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>\n"
	return NewReply(http.StatusForbidden, "application/xml", []byte(body+strings.Repeat(" ", 418-len(body))))
}

// placeholder404 is the grey picture that preview.redd.it sends with a 404.
func placeholder404() *Reply {
	return NewReply(http.StatusNotFound, "image/png", GreyPNG(130, 60, 1048))
}

// GreyPNG is a grey picture of exactly size bytes.
func GreyPNG(w, h, size int) []byte {
	img := image.NewGray(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = 0xd8
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a bytes.Buffer takes everything
	// Clients know the stand-ins of hosts by their sizes: a text makes up the rest.
	text := "Comment\x00" + strings.Repeat(".", size-b.Len()-len("Comment\x00")-12)
	return InsertPNG(b.Bytes(), PNGChunk("tEXt", []byte(text)))
}

// InsertPNG puts chunks directly behind the header chunk, which must be the first.
func InsertPNG(b []byte, chunks ...[]byte) []byte {
	const header = 8 + 12 + 13
	return slices.Concat(b[:header], slices.Concat(chunks...), b[header:])
}

// PNGChunk is one chunk of a PNG.
func PNGChunk(kind string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}
