package redditemu

import (
	"cmp"
	"net/http"
	"path"
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

// imgurAPI answers for api.imgur.com: /3/image/ID.
func (s *Server) imgurAPI(r *http.Request) *Reply {
	answer := func(status int, data map[string]any) *Reply {
		b, err := marshal(map[string]any{"data": data, "success": status == http.StatusOK, "status": status})
		if err != nil {
			return failed(err)
		}
		return NewReply(status, "application/json", b)
	}
	id := path.Base(r.URL.Path)
	// The id of an image is its name at i.imgur.com.
	a := s.asset(imgurFileHost, "/"+id)
	switch {
	case r.Header.Get("Authorization") != "Client-ID "+s.ImgurClientID:
		return answer(http.StatusForbidden, map[string]any{"error": "Invalid client_id"})
	case a == nil || a.image().NoAPI:
		return answer(http.StatusNotFound, map[string]any{"error": "Unable to find an image with the id, " + id})
	}
	ext := a.image().ext()
	kind := cmp.Or(map[string]string{"jpg": "image/jpeg", "mp4": "video/mp4"}[ext], "image/"+ext)
	w, h := a.image().Spec.Size()
	return answer(http.StatusOK, map[string]any{"id": id, "title": CanaryTitle, "type": kind, "animated": ext == "gif" || ext == "mp4",
		"width": w, "height": h, "account_url": CanaryAuthor, "link": a.of.imageURL(a.place)})
}
