package reddit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
	"rehydrate/policy"
)

// imgurTestID is the client id that no output may show.
const imgurTestID = "CANARYimgur91"

func imgurOptions() Options {
	o := testOptions()
	o.ImgurClientID = secret.New(imgurTestID)
	return o
}

// imgurScript answers for imgur's API by path, and for i.imgur.com with an image.
func imgurScript(t *testing.T, api map[string]answer) *script {
	t.Helper()
	picture := string(pngBytes(t))
	return &script{play: func(_ int, r *http.Request) answer {
		auth := r.Header.Get("Authorization")
		switch r.URL.Host {
		case imgurAPIHost:
			if auth != "Client-ID "+imgurTestID || r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != "" {
				t.Errorf("%s: request headers %v", r.URL.Path, r.Header)
			}
			if a, ok := api[r.URL.Path]; ok {
				return a
			}
			return imgurSays(404, `{"error":"Unable to find it"}`)
		case imgurFileHost:
			if auth != "" {
				t.Errorf("%s got the client id", r.URL)
			}
			return reply(200, picture)
		}
		t.Errorf("unexpected request for %s", r.URL)
		return reply(404, "")
	}}
}

// imgurSays is an answer of the API.
func imgurSays(status int, data string) answer {
	return reply(status, fmt.Sprintf(`{"data":%s,"success":%t,"status":%d}`, data, status == 200, status),
		"Content-Type", "application/json")
}

func imgurImageSays(link, kind string) answer {
	return imgurSays(200, fmt.Sprintf(`{"id":"x","type":%q,"link":%q}`, kind, link))
}

// asked lists the URLs that were requested.
func (s *script) asked() (urls []string) {
	for _, r := range s.seen {
		urls = append(urls, r.req.URL.String())
	}
	return urls
}

func TestImgurPages(t *testing.T) {
	album := imgurSays(200, `{"images":[{"link":"https://i.imgur.com/first11.png","type":"image/png"},`+
		`{"link":"https://i.imgur.com/second2.jpg","type":"image/jpeg"},{"link":"https://i.imgur.com/third33.mp4","type":"video/mp4"}]}`)
	image := func(link string) answer { return imgurImageSays(link, "image/png") }
	const elsewhere = "refused/host_not_allowed"
	for _, tt := range []struct {
		name, link string // of imgur.com
		image      int
		answer     answer // of the API about that image or album; all else is a 404
		want       string // outcome/reason, "" for an image
		asked      string // paths in order, of the API and then of i.imgur.com
	}{
		{"image", "abcdefg", 0, image("https://i.imgur.com/abcdefg.png"), "", "image/abcdefg abcdefg.png"},
		{"http and a query", "abcdefg/", 0, image("http://i.imgur.com/abcdefg.png?fb"), "", "image/abcdefg abcdefg.png"},
		{"short id", "r/memes/abcde", 0, image("https://i.imgur.com/abcde.png"), "", "image/abcde abcde.png"},
		{"thumbnail of a page", "abcdefgh", 0, image("https://i.imgur.com/a.gif"), "", "image/abcdefg a.gif"},
		{"video", "abcdefg", 0, imgurImageSays("https://i.imgur.com/a.png", "video/mp4"), "no_media/video",
			"image/abcdefg"},
		{"video by its name", "abcdefg", 0, image("https://i.imgur.com/a.gifv"), "no_media/video", "image/abcdefg"},
		{"API 404, direct link lives", "abcdefg", 0, answer{}, "", "image/abcdefg abcdefg.jpg"},
		{"album", "a/AlbumID", 0, album, "", "album/AlbumID first11.png"},
		{"album, second image", "a/AlbumID/layout/grid#0", 1, album, "", "album/AlbumID second2.jpg"},
		{"album, a video in it", "a/AlbumID", 2, album, "no_media/video", "album/AlbumID"},
		{"album, past its end", "a/AlbumID", 3, album, "gone/no_such_image", "album/AlbumID"},
		{"empty album", "a/AlbumID", 0, imgurSays(200, `{"images":[]}`), "failed/empty_album", "album/AlbumID"},
		{"album gone", "a/AlbumID", 0, answer{}, "gone/http_404", "album/AlbumID"},
		{"gallery that is an album", "gallery/some-title-AlbumID", 1, album, "", "album/AlbumID second2.jpg"},
		{"gallery that is an image", "t/memes/abcdefg", 0, image("https://i.imgur.com/a.png"), "",
			"album/abcdefg image/abcdefg a.png"},
		{"gallery gone", "gallery/abcdefg", 0, answer{}, "gone/http_404", "album/abcdefg image/abcdefg"},
		{"gallery gone, not the image", "gallery/abcde", 0, image("https://i.imgur.com/a.png"), "gone/http_404",
			"album/abcde"},
		{"file elsewhere", "abcdefg", 0, image("https://evil.example/a.png"), elsewhere, "image/abcdefg"},
		{"file at the API", "abcdefg", 0, image("https://api.imgur.com/a.png"), elsewhere, "image/abcdefg"},
		{"file at an address", "abcdefg", 0, image("http://127.0.0.1/a.png"), elsewhere, "image/abcdefg"},
		{"file at another port", "abcdefg", 0, image("https://i.imgur.com:8443/a.png"), "refused/url_port",
			"image/abcdefg"},
		{"no file", "abcdefg", 0, image(""), "failed/malformed_answer", "image/abcdefg"},
	} {
		id, kind := path.Base(strings.Fields(tt.asked)[0]), "image/"
		if strings.Contains(tt.answer.body, `"images"`) {
			kind = "album/"
		}
		answers := map[string]answer{}
		if tt.answer.status != 0 {
			answers["/3/"+kind+id] = tt.answer
		}
		s := imgurScript(t, answers)
		c := s.client(t, imgurOptions())
		post := Post{Images: findImages(json.RawMessage(`{"url":"https://imgur.com/`+tt.link+`"}`), c.o.Policy)}
		cand := post.Image(tt.image)
		if cand.Host != imgurAPIHost || cand.Fault != nil {
			t.Errorf("%s: candidate %+v", tt.name, cand)
		}
		download(t, c, cand.URL, tt.want)
		asked := strings.NewReplacer("https://api.imgur.com/3/", "", "https://i.imgur.com/",
			"").Replace(strings.Join(s.asked(), " "))
		if asked != tt.asked {
			t.Errorf("%s: asked %q, want %q", tt.name, asked, tt.asked)
		}
	}
}

// TestImgurCandidates: one image has one name, however it is linked to, and a page has none
// without an id for the API.
func TestImgurCandidates(t *testing.T) {
	with := (&script{}).client(t, imgurOptions())
	without := (&script{}).client(t, testOptions())
	o := imgurOptions()
	o.Policy.Images.Hosts = o.Policy.Images.Hosts[:3]
	unnamed := (&script{}).client(t, o)
	for link, want := range map[string]string{
		"http://imgur.com/AbC12":                     "https://imgur.com/AbC12",
		"https://m.imgur.com/AbC123x?s=1":            "https://imgur.com/AbC123x",
		"https://imgur.com/AbC123xm":                 "https://imgur.com/AbC123x",
		"https://imgur.com/r/memes/AbC123x":          "https://imgur.com/AbC123x",
		"https://imgur.com/a/AbC12":                  "https://imgur.com/a/AbC12#0",
		"https://imgur.com/a/some-title-AbC123x#5":   "https://imgur.com/a/AbC123x#0",
		"https://imgur.com/a/AbC12/embed?pub=true":   "https://imgur.com/a/AbC12#0",
		"https://imgur.com/gallery/AbC123x/new":      "https://imgur.com/gallery/AbC123x#0",
		"https://imgur.com/t/funny/a-title-AbC123x":  "https://imgur.com/gallery/AbC123x#0",
		"https://imgur.com/gallery":                  "refused/imgur_other_page",
		"https://imgur.com/":                         "refused/imgur_other_page",
		"https://imgur.com/search?q=x":               "refused/imgur_other_page",
		"https://imgur.com/user/somebody":            "refused/imgur_other_page",
		"https://imgur.com/abcde,fghij":              "refused/imgur_other_page",
		"https://imgur.com/a/not-an-id":              "refused/imgur_other_page",
		"https://imgur.com/AbC123x/../../etc/passwd": "refused/imgur_other_page",
		"https://api.imgur.com/3/image/AbC123x.json": "no_media/link",
	} {
		data := json.RawMessage(`{"url":"` + link + `"}`)
		if got := describe(findImages(data, with.o.Policy)); got[0] != want {
			t.Errorf("%s: %s, want %s", link, got[0], want)
		}
		if strings.HasPrefix(want, "https://") {
			want = "refused/imgur_page"
		}
		for _, c := range []*Client{without, unnamed} {
			if got := describe(findImages(data, c.o.Policy)); got[0] != want {
				t.Errorf("%s without the API: %s, want %s", link, got[0], want)
			}
		}
	}
	if len(testOptions().Policy.Images.Hosts) != 4 || len(o.Policy.Images.Hosts) != 3 {
		t.Error("a client changed the policy that it was given")
	}
	// A candidate from somewhere else gets no further.
	for _, c := range []*Client{without, unnamed} {
		download(t, c, "https://imgur.com/a/AbC12#1", "refused/imgur_page")
	}
}

func TestImgurAPIAnswers(t *testing.T) {
	const path = "/3/album/AlbumID"
	html := []string{"Content-Type", "text/html"}
	for _, tt := range []struct {
		name   string
		answer answer
		want   string
	}{
		{"over capacity, 403", imgurSays(403, `{"error":"Imgur is temporarily over capacity. Please try again later."}`),
			"failed/over_capacity"},
		{"over capacity, 200",
			reply(200, `{"data":{"error":"Imgur is temporarily over capacity"},"success":false,"status":403}`),
			"failed/over_capacity"},
		{"429", imgurSays(429, `{"error":{"message":"Too many"}}`), "failed/rate_limited"},
		{"403 with Retry-After", reply(403, "{}", "Retry-After", "0"), "failed/rate_limited"},
		{"401", imgurSays(401, `{"error":"Authentication required"}`), "refused/imgur_client_id_rejected"},
		{"403 of a bad id", imgurSays(403, `{"error":"Invalid client_id"}`), "refused/imgur_client_id_rejected"},
		{"403 of a bad id, as an object", imgurSays(403, `{"error":{"message":"The client ID is unknown"}}`),
			"refused/imgur_client_id_rejected"},
		{"bad id inside of a 200", reply(200, `{"data":{"error":"Invalid client_id"},"success":false,"status":403}`),
			"refused/imgur_client_id_rejected"},
		{"403 that repeats a path", imgurSays(403, `{"error":"Forbidden","request":"/3/album/client_id"}`),
			"failed/http_403"},
		{"403 with data of another form", imgurSays(403, `["Invalid client_id"]`), "failed/http_403"},
		{"403 page", reply(403, "<html>You have been blocked", html...), "failed/blocked"},
		{"404", imgurSays(404, `{"error":"Unable to find an album with the id, AlbumID"}`), "gone/http_404"},
		{"404 without a word", reply(404, ""), "failed/http_404"},
		{"404 inside of a 200", reply(200, `{"data":{"error":"Unable to find it"},"success":false,"status":404}`),
			"gone/http_404"},
		{"page", reply(200, "<!doctype html><html>", html...), "failed/html"},
		{"cut", reply(200, `{"data":{"images":[{"li`), "failed/malformed_answer"},
		{"no data", reply(200, `{"success":true,"status":200}`), "failed/malformed_answer"},
		{"images null", imgurSays(200, `{"images":null}`), "failed/malformed_answer"},
		{"images of another form", imgurSays(200, `{"images":{"0":{"link":"https://i.imgur.com/a.png"}}}`), "failed/malformed_answer"},
		{"redirect", reply(302, "", "Location", "https://evil.example/"), "failed/http_302"},
		{"endless", reply(200, strings.Repeat(" ", maxImgurBody+1)), "failed/too_large"},
		{"reset", answer{err: errors.New("connection reset")}, "failed/connection"},
	} {
		s := imgurScript(t, map[string]answer{path: tt.answer})
		var log strings.Builder
		c := s.client(t, logged(imgurOptions(), &log))
		_, err := c.Download(t.Context(), Candidate{URL: "https://imgur.com/a/AlbumID#0", Host: imgurAPIHost})
		if f, ok := errors.AsType[*policy.Fault](err); !ok || string(f.Outcome)+"/"+string(f.Reason) != tt.want {
			t.Errorf("%s: Download = %v, want %s", tt.name, err, tt.want)
		}
		for _, u := range s.asked() {
			if u != "https://"+imgurAPIHost+path {
				t.Errorf("%s: %s was asked", tt.name, u)
			}
		}
		if text := fmt.Sprint(err) + log.String(); strings.Contains(text, "CANARY") || strings.Contains(text, "AlbumID") {
			t.Errorf("%s: told too much: %s", tt.name, text)
		}
	}
}

// TestImgurIDs: imgur is not asked again with an id that it does not know. One that has been good once is not
// rejected in the same run, whatever is said of an album, and the images after it are asked for.
func TestImgurIDs(t *testing.T) {
	s := imgurScript(t, map[string]answer{"/3/image/abcdefg": imgurSays(403, `{"error":"Invalid client_id"}`)})
	c := s.client(t, imgurOptions())
	for range 3 {
		download(t, c, "https://imgur.com/abcdefg", "refused/imgur_client_id_rejected")
	}
	if len(s.seen) != 1 {
		t.Errorf("%d requests, want 1", len(s.seen))
	}
	c = imgurScript(t, map[string]answer{"/3/album/Private": imgurSays(401, `{"error":"Authentication required"}`),
		"/3/image/abcdefg": imgurImageSays("https://i.imgur.com/a.png", "image/png")}).client(t, imgurOptions())
	download(t, c, "https://imgur.com/abcdefg", "")
	download(t, c, "https://imgur.com/a/Private#0", "failed/http_401")
	download(t, c, "https://imgur.com/abcdefg", "")
}

// TestImgurOverrun: a 429 that names no time is not repeated, and nothing more is asked in the run.
func TestImgurOverrun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header []string
		body   string
		want   string
	}{
		{"nothing named", nil, `{"data":{"error":{"message":"Too many"}}}`, "failed/rate_limited"},
		{"over capacity", nil, `{"data":{"error":"Imgur is temporarily over capacity"}}`, "failed/over_capacity"},
		{"a page", nil, "<html>", "failed/rate_limited"},
		{"credits are left", []string{"X-RateLimit-UserRemaining", "400", "X-RateLimit-ClientRemaining", "9000"}, `{}`, "failed/rate_limited"},
		{"Retry-After too long", []string{"Retry-After", "3600"}, `{}`, "failed/rate_limited"},
		{"Retry-After of no sense", []string{"Retry-After", "soon"}, `{}`, "failed/rate_limited"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{play: func(int, *http.Request) answer { return reply(429, tt.body, tt.header...) }}
			o := imgurOptions()
			o.retryWait = time.Second
			c := s.client(t, o)
			for i := range 40 {
				want := tt.want
				if i > 0 {
					want = "failed/rate_limited"
				}
				download(t, c, fmt.Sprintf("https://imgur.com/abcd%03d", i), want)
				time.Sleep(time.Minute) // 40 of them are less than the hour that one case names
			}
			if len(s.seen) != 1 {
				t.Errorf("%s: %d requests, want 1", tt.name, len(s.seen))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // one that names a time is waited for
		s := &script{play: func(n int, _ *http.Request) answer {
			return []answer{reply(429, `{}`, "Retry-After", "60"), imgurImageSays("https://i.imgur.com/a.mp4", "video/mp4")}[n]
		}}
		download(t, s.client(t, imgurOptions()), "https://imgur.com/abcdefg", "no_media/video")
	})
}

// TestImgurAlbumOnce: the images of an album cost one call to the API together, if they are
// asked for one after the other, and another one when much later.
func TestImgurAlbumOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		album := imgurSays(200, `{"images":[{"link":"https://i.imgur.com/a.png"},{"link":"https://i.imgur.com/b.png"}]}`)
		s := imgurScript(t, map[string]answer{"/3/album/AlbumID": album})
		c := s.client(t, imgurOptions())
		start := time.Now()
		for i, wait := range []time.Duration{0, imgurMemory, 0} {
			download(t, c, fmt.Sprintf("https://imgur.com/a/AlbumID#%d", i%2), "")
			time.Sleep(wait)
		}
		s.askedAt(t, imgurAPIHost, start, 0, imgurMemory.Seconds())
	})
}

// TestImgurCredits: when imgur says that nothing is left, the next call waits for the reset,
// or is not made.
func TestImgurCredits(t *testing.T) {
	for _, tt := range []struct {
		name         string
		user, client string
		reset        time.Duration // 0 = no header
		want         time.Duration // of the second call after the first; -1 = it is not made
	}{
		{"plenty", "499", "12000", time.Hour, 0},
		{"none left, soon again", "0", "12000", 5 * time.Minute, 5 * time.Minute},
		{"none left, reset passed", "0", "12000", -time.Hour, time.Second},
		{"none left for long", "0", "12000", time.Hour, -1},
		{"none left, no reset", "0", "12000", 0, -1},
		{"none left of the app's", "499", "0", time.Minute, -1},
		{"no headers", "", "", 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			a := imgurImageSays("https://i.imgur.com/a.png", "image/png")
			a.header.Set("X-RateLimit-UserRemaining", tt.user)
			a.header.Set("X-RateLimit-ClientRemaining", tt.client)
			if tt.reset != 0 {
				a.header.Set("X-RateLimit-UserReset", fmt.Sprint(start.Add(tt.reset).Unix()))
			}
			o := imgurOptions()
			var waits []polite.Wait
			o.OnWait = func(w polite.Wait) { waits = append(waits, w) }
			s := imgurScript(t, map[string]answer{"/3/image/abcdefg": a, "/3/image/hijklmn": a})
			c := s.client(t, o)
			download(t, c, "https://imgur.com/abcdefg", "")
			if tt.want < 0 {
				download(t, c, "https://imgur.com/hijklmn", "failed/rate_limited")
				s.askedAt(t, imgurAPIHost, start, 0)
				return
			}
			download(t, c, "https://imgur.com/hijklmn", "")
			s.askedAt(t, imgurAPIHost, start, 0, tt.want.Seconds())
			if long := tt.want > 2*time.Second; long != (len(waits) == 1) || long && (waits[0].Host != imgurAPIHost || waits[0].Reason != waitRateLimit) {
				t.Errorf("%s: waits %v", tt.name, waits)
			}
		})
	}
}
