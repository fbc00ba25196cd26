package redditemu

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"strings"
)

const (
	imgurFileHost = "i.imgur.com"
	imgurAPIHost  = "api.imgur.com"
)

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
	return a.serve(r)
}

// imgurAPI answers for api.imgur.com: /3/image/ID and /3/album/ID.
func (s *Server) imgurAPI(r *http.Request) *Reply {
	if r.Header.Get("Authorization") != "Client-ID "+s.ImgurClientID {
		return ImgurError(http.StatusForbidden, "Invalid client_id")
	}
	kind, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/3/"), "/")
	a := s.asset(imgurAPIHost, r.URL.Path)
	switch {
	case a == nil || a.image().NoAPI:
		return ImgurError(http.StatusNotFound, "Unable to find an image with the id, "+id)
	case kind == "image":
		return imgurAnswer(a.of.imgurImage(a.place))
	}
	images := []any{}
	for i := range a.of.Images {
		images = append(images, a.of.imgurImage(i))
	}
	return imgurAnswer(map[string]any{"id": id, "title": CanaryTitle, "description": CanarySelftext,
		"account_url": CanaryAuthor, "images_count": len(images), "images": images})
}

// imgurImage is what the API says of an image.
func (p Post) imgurImage(i int) map[string]any {
	ext := p.Images[i].ext()
	kind := cmp.Or(map[string]string{"jpg": "image/jpeg", "mp4": "video/mp4"}[ext], "image/"+ext)
	w, h := p.Images[i].Spec.Size()
	return map[string]any{"id": p.slug(i), "title": CanaryTitle, "description": nil, "type": kind, "animated": ext == "gif" || ext == "mp4",
		"width": w, "height": h, "account_url": CanaryAuthor, "link": p.imageURL(i)}
}

// album is the id of the post's album at imgur.
func (p Post) album() string { return base36(Hash64(string(p.ID), "album"), 7) }

func imgurAnswer(data any) *Reply {
	b, err := marshal(map[string]any{"data": data, "success": true, "status": 200})
	if err != nil {
		return DrawFailed(err)
	}
	return NewReply(http.StatusOK, "application/json", b)
}

// ImgurError is an answer of imgur's API that holds an error.
func ImgurError(status int, text string) *Reply {
	return NewReply(status, "application/json", fmt.Appendf(nil,
		`{"data":{"error":%q,"request":"/3/","method":"GET"},"success":false,"status":%d}`, text, status))
}
