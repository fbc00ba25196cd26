package redditemu_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
	. "rehydrate/pipeline/redditemu"
)

func TestImgurAPI(t *testing.T) {
	p := start(t, Options{Seed: 5})
	image := func(i Image) []Image { return []Image{i} }
	p.put(Post{ID: "page", Kind: KindImgurPage},
		Post{ID: "noapi", Kind: KindImgurPage, Images: image(Image{NoAPI: true})},
		Post{ID: "png", Kind: KindImgur, Images: image(Image{Spec: Spec{Seed: 2, Format: "png"}})},
		Post{ID: "mp4", Kind: KindImgurPage, Images: image(Image{Ext: "mp4"})},
		Post{ID: "cross", Kind: KindCrosspost, Parent: &Post{ID: "parent", Kind: KindImgurPage}})
	for _, tt := range []struct {
		post, client string // a post's id or that of an image; "" = the right client
		status       int
		kind         string // of the image
	}{
		{"page", "", 200, "image/jpeg"}, {"png", "", 200, "image/png"}, {"mp4", "", 200, "video/mp4"},
		{"cross", "", 200, "image/jpeg"},
		{"noapi", "", 404, ""}, {"nothere", "", 404, ""}, {"page", "other", 403, ""},
	} {
		path, link := tt.post, ""
		if q, ok := p.s.Post(manifest.PostID(tt.post)); ok {
			if q.Kind == KindCrosspost {
				q = *q.Parent
			}
			path, link = q.Slug(0), q.URLs()[0]
		}
		a := p.get("https://api.imgur.com/3/image/"+path, "Authorization",
			"Client-ID "+cmp.Or(tt.client, p.s.ImgurClientID))
		var body struct {
			Data    struct{ Link, Type string }
			Success bool
			Status  int
		}
		if err := json.Unmarshal(a.body, &body); err != nil || a.StatusCode != tt.status || body.Status != tt.status ||
			body.Success != (tt.status == 200) || body.Data.Type != tt.kind ||
			body.Data.Link != "" && body.Data.Link != link {
			t.Errorf("%+v: %d %s, %v", tt, a.StatusCode, a.body, err)
		}
	}
	q, _ := p.s.Post("noapi")
	if a := p.get(q.URLs()[0]); a.StatusCode != 200 {
		t.Errorf("the direct link of an image that the API does not know: %d", a.StatusCode)
	}
	if a := p.get("https://api.imgur.com/3/image/x"); a.StatusCode != 403 {
		t.Errorf("no client id: %d", a.StatusCode)
	}
	log := p.s.Requests()
	if got := []string{log[0].Auth, log[len(log)-1].Auth}; !slices.Equal(got, []string{"client-id", "none"}) {
		t.Errorf("Auth of the requests: %q", got)
	}
	if a := p.get(strings.TrimSuffix(q.URLs()[0], "jpg") + "png"); a.StatusCode != 200 {
		t.Errorf("the image of a page, at its direct link under another extension: %d", a.StatusCode)
	}
}
