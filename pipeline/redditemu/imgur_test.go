package redditemu_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	. "rehydrate/pipeline/redditemu"
)

func TestImgurAPI(t *testing.T) {
	p := start(t, Options{Seed: 5})
	unknown := Image{NoAPI: true}
	p.put(Post{ID: "page", Kind: KindImgurPage}, Post{ID: "noapi", Kind: KindImgurPage, Images: []Image{unknown}},
		Post{ID: "album", Kind: KindImgurAlbum, Images: []Image{{Spec: Spec{Seed: 1}}, {Spec: Spec{Seed: 2, Format: "png"}}, {Ext: "mp4"}, {Spec: Spec{Format: "gif"}}}},
		Post{ID: "cross", Kind: KindCrosspost, Parent: &Post{ID: "parent", Kind: KindImgurAlbum}})
	post := func(id string) Post {
		q, _ := p.s.Post(manifest.PostID(id))
		return q
	}
	for _, tt := range []struct {
		path   string
		id     string // "" = the right one
		status int
		types  []string // of the images
		links  []string
	}{
		{"image/" + post("page").Slug(0), "", 200, []string{"image/jpeg"}, post("page").URLs()},
		{"image/" + post("album").Slug(1), "", 200, []string{"image/png"}, post("album").URLs()[1:2]},
		{"album/" + post("album").Album(), "", 200, []string{"image/jpeg", "image/png", "video/mp4", "image/gif"}, post("album").URLs()},
		{"album/" + post("cross").Parent.Album(), "", 200, []string{"image/jpeg"}, post("cross").URLs()},
		{"image/" + post("noapi").Slug(0), "", 404, nil, nil},
		{"image/nothere", "", 404, nil, nil},
		{"album/" + post("page").Slug(0), "", 404, nil, nil},
		{"image/" + post("page").Slug(0), "other", 403, nil, nil},
	} {
		id := tt.id
		if id == "" {
			id = p.s.ImgurClientID
		}
		a := p.get("https://api.imgur.com/3/"+tt.path, "Authorization", "Client-ID "+id)
		var body struct {
			Data struct {
				Link, Type string
				Images     []struct{ Link, Type string }
			}
			Success bool
			Status  int
		}
		if err := json.Unmarshal(a.body, &body); err != nil || a.StatusCode != tt.status || body.Status != tt.status || body.Success != (tt.status == 200) {
			t.Errorf("%s: %d %s, %v; want %d", tt.path, a.StatusCode, a.body, err, tt.status)
		}
		images := body.Data.Images
		if body.Data.Link != "" {
			images = append(images, struct{ Link, Type string }{body.Data.Link, body.Data.Type})
		}
		var types, links []string
		for _, img := range images {
			types, links = append(types, img.Type), append(links, img.Link)
		}
		if diff := cmp.Diff(tt.types, types) + cmp.Diff(tt.links, links); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
	if a := p.get(post("noapi").URLs()[0]); a.StatusCode != 200 {
		t.Errorf("the direct link of an image that the API does not know: %d", a.StatusCode)
	}
	if a := p.get("https://api.imgur.com/3/image/x"); a.StatusCode != 403 {
		t.Errorf("no client id: %d", a.StatusCode)
	}
	log := p.s.Requests()
	if got := []string{log[0].Auth, log[len(log)-1].Auth}; !cmp.Equal(got, []string{"client-id", "none"}) {
		t.Errorf("Auth of the requests: %q", got)
	}
	if a := p.get(strings.TrimSuffix(post("page").URLs()[0], "jpg") + "png"); a.StatusCode != 200 {
		t.Errorf("the image of a page, at its direct link under another extension: %d", a.StatusCode)
	}
}
