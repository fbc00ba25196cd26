package redditemu_test

import (
	"bytes"
	"encoding/json"
	"image"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	. "rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
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
}

func TestImgurCredits(t *testing.T) {
	now := time.Unix(1_700_000_100, 0) // 100 s into a window
	p := start(t, Options{Window: 1000 * time.Second, Now: func() time.Time { return now }})
	ask := func() answer {
		return p.get("https://api.imgur.com/3/image/x", "Authorization", "Client-ID "+p.s.ImgurClientID)
	}
	check := func(name string, a answer, status int, user, client, reset string) {
		t.Helper()
		got := []string{strconv.Itoa(a.StatusCode), a.Header.Get("X-RateLimit-UserRemaining"), a.Header.Get("X-RateLimit-ClientRemaining"), a.Header.Get("X-RateLimit-UserReset")}
		if diff := cmp.Diff([]string{strconv.Itoa(status), user, client, reset}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("first", ask(), 404, "499", "12499", "1700001000")
	for range 500 - 1 {
		ask()
	}
	check("one too many", ask(), 429, "0", "12000", "1700001000")
	now = now.Add(1000 * time.Second)
	check("next window", ask(), 404, "499", "12499", "1700002000")
	p.s.Fault(hostile.Fault{Host: "api.imgur.com", Kind: hostile.ImgurCredits(0, 7, time.Minute)})
	check("fault", ask(), 404, "0", "7", "1700001160")
}

func TestImgurFiles(t *testing.T) {
	p := start(t, Options{})
	p.put(Post{ID: "m1", Kind: KindImgur}, Post{ID: "p1", Kind: KindImgurPage})
	m1, _ := p.s.Post("m1")
	whole := m1.URLs()[0]
	stem := strings.TrimSuffix(whole, ".jpg")
	size := func(url string) (int, int) {
		a := p.get(url)
		c, _, err := image.DecodeConfig(bytes.NewReader(a.body))
		if a.StatusCode != http.StatusOK || err != nil {
			t.Errorf("%s: %d, %v", url, a.StatusCode, err)
		}
		return c.Width, c.Height
	}
	w, h := size(whole)
	if w2, h2 := size(stem + ".png"); w2 != w || h2 != h {
		t.Errorf("under another extension: %d by %d, want %d by %d", w2, h2, w, h)
	}
	for _, suffix := range []string{"s", "b", "t", "m", "l", "h"} {
		if w2, h2 := size(stem + suffix + ".jpg"); w2 >= w || h2 >= h {
			t.Errorf("thumbnail %s: %d by %d of %d by %d", suffix, w2, h2, w, h)
		}
	}
	for url, want := range map[string]string{
		stem:            "https://imgur.com",
		stem + "x.jpg":  "https://i.imgur.com/removed.png",
		stem + "mm.jpg": "https://i.imgur.com/removed.png",
	} {
		if a := p.get(url); a.StatusCode != http.StatusFound || !strings.HasPrefix(a.Header.Get("Location"), want) {
			t.Errorf("%s: %d %s, want a redirect to %s", url, a.StatusCode, a.Header.Get("Location"), want)
		}
	}
	p1, _ := p.s.Post("p1")
	if w, _ := size(p1.URLs()[0]); w == 0 {
		t.Error("the image of a page is not at its direct link")
	}
}
