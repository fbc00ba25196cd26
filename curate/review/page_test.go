package review

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rehydrate/curate/annotate"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// keys are the images of the workspace of a page: two of a gallery, and two.
var keys = []manifest.Key{{ID: "aaaa"}, {ID: "aaaa", Image: 1}, {ID: "bbbb"}, {ID: "cccc"}}

// A page is one that is open on a workspace.
type page struct {
	*testing.T
	Config
	ws     *workspace.Workspace
	server *Server
	now    time.Time
	order  []string // of the images
}

// newPage opens a page for batches of images, with a scheme of one category of one label and one of several.
func newPage(t *testing.T, batches ...int) *page {
	t.Helper()
	p := &page{T: t, now: time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)}
	ws, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws"), workspace.Options{})
	testkit.OK(t, err)
	t.Cleanup(func() { ws.Close() })
	p.ws = ws
	testkit.OK(t, ws.Load(t.Context(), workspace.Binding{Release: "x", ReleaseDigest: "r", ManifestDigest: "m",
		Splits: []string{"train"}}, func(yield func(manifest.Entry, error) bool) {
		for i, key := range keys {
			if !yield(manifest.Entry{Ordinal: i, Key: key, Split: "train"}, nil) {
				return
			}
		}
	}, nil))
	var results []manifest.Result
	for i, key := range keys {
		body := []byte("the image of " + key.String())
		img := workspace.Image{SHA256: state.SHA256(body), OriginalSHA256: state.SHA256([]byte(key.String())),
			PixelsSHA256: state.SHA256([]byte("pixels" + key.String())), Format: "png", Width: 300, Height: 300,
			Bytes: int64(len(body)), PHash: uint64(i) << 40}
		testkit.OK(t, ws.StoreImage(t.Context(), key, body, img), ws.SetReadings(t.Context(), workspace.NewReading{Key: key,
			Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "THE TEXT OF " + key.String(),
				Confidence: 95}}))
		results = append(results, manifest.Result{Key: key, Split: "train", Outcome: manifest.Kept})
	}
	testkit.OK(t, ws.SetResults(t.Context(), results))
	p.set(manifest.StateLive, "", "aaaa", "bbbb", "cccc")
	p.Config = Config{Workspace: ws.Dir(), Scheme: manifest.Schema{Categories: []manifest.Category{
		{Name: "mood", Kind: manifest.Single, Labels: []manifest.Label{{Code: "L"}, {Code: "H"}}},
		{Name: "tags", Kind: manifest.Multi, Labels: []manifest.Label{{Code: "X"}, {Code: "Y"}}}}},
		Pick: annotate.Pick{Seed: "1"}, Batches: batches, Annotator: "A7",
		Answers: filepath.Join(t.TempDir(), "A7.jsonl"), Now: func() time.Time { return p.now }}
	p.open()
	return p
}

// set says what Reddit said of posts.
func (p *page) set(s manifest.PostState, reason manifest.Reason, ids ...manifest.PostID) {
	p.Helper()
	var posts []workspace.Post
	for _, id := range ids {
		post := workspace.Post{ID: id, State: s, Reason: reason, CheckedAt: p.now}
		if s == manifest.StateLive {
			post.LiveAt = p.now
		}
		posts = append(posts, post)
	}
	testkit.OK(p, p.ws.SetPosts(p.Context(), posts))
}

// open opens the page, as after a restart.
func (p *page) open() {
	p.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	p.server, err = Open(ctx, p.Config)
	testkit.OK(p, err)
	p.order = nil
	for _, key := range p.server.posts {
		p.order = append(p.order, key.String())
	}
	ended, server := make(chan error, 1), p.server
	go func() { ended <- server.Serve(ctx) }()
	p.Cleanup(func() { cancel(); testkit.OK(p, <-ended) })
}

// ask sends a request as the page does, but for what change changes.
func (p *page) ask(method, path, body string, change func(*http.Request)) (int, string, http.Header) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), method, p.server.URL()+path, strings.NewReader(body))
	testkit.OK(p, err)
	if method == http.MethodPost {
		req.Header.Set("Origin", p.server.origin())
		req.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	testkit.OK(p, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	testkit.OK(p, err)
	return res.StatusCode, string(b), res.Header
}

// do makes a change that has to succeed, or to fail with an error; it returns the state.
func (p *page) do(path, body, want string) (now status) {
	p.Helper()
	method := http.MethodPost
	if path == "state" {
		method = http.MethodGet
	}
	code, text, _ := p.ask(method, path, body, nil)
	switch {
	case want != "":
		if code != http.StatusConflict || !strings.Contains(text, want) {
			p.Errorf("%s %s: %d %s, want %q", path, body, code, text, want)
		}
	case code != http.StatusOK:
		p.Errorf("%s %s: %d %s", path, body, code, text)
	default:
		testkit.OK(p, json.Unmarshal([]byte(text), &now))
	}
	return now
}

// chosen is an answer for an image.
func chosen(id, mood string, tags ...string) string {
	return fmt.Sprintf(`{"id":%q,"labels":{"mood":[%q],"tags":["%s"]}}`, id, mood, strings.Join(tags, `","`))
}

// shows is the state in a line: the image, counts, and what is offered.
func shows(s status) string {
	post := "-"
	if s.Post != nil {
		post = s.Post.ID + " of batch " + s.Post.Batch
	}
	return fmt.Sprintf("%s: %d images, %d answered, %d skipped, %d care, %d stale, %d gone, rest %t, undo %t", post,
		s.Images,
		s.Answered, s.Skipped, s.Care, s.Stale, s.Gone, s.Rest, s.Undo)
}

// TestPage: one image after the other is shown until all have an answer, each with its text, batch and picture.
func TestPage(t *testing.T) {
	p := newPage(t, 1, 3)
	first := p.order[0]
	now := p.do("state", "", "")
	testkit.Same(t, "at first",
		first+" of batch 1: 4 images, 0 answered, 0 skipped, 0 care, 0 stale, 0 gone, rest false, undo false", shows(now))
	testkit.Same(t, "the annotator", "A7", now.Annotator)
	testkit.Same(t, "what is done", []string{}, now.Done)
	for i, id := range p.order {
		testkit.Same(t, "the image", id, now.Post.ID)
		testkit.Same(t, "its batch", map[bool]string{true: "1", false: "2"}[i == 0], now.Post.Batch)
		testkit.Same(t, "its text", "THE TEXT OF "+id, now.Post.Text)
		testkit.Same(t, "what was answered before", map[string][]string{}, now.Post.Given)
		code, body, header := p.ask(http.MethodGet, now.Post.Source, "", nil)
		testkit.Same(t, "its picture", fmt.Sprint(200, " the image of ", id, " image/png no-store"),
			fmt.Sprint(code, " ", body, " ", header.Get("Content-Type"), " ", header.Get("Cache-Control")))
		switch i {
		case 1:
			now = p.do("answer", `{"id":"`+id+`","skip":true,"care":true}`, "")
		default:
			now = p.do("answer", chosen(id, "L", "X"), "")
		}
	}
	testkit.Same(t, "at last", "-: 4 images, 3 answered, 1 skipped, 1 care, 0 stale, 0 gone, rest false, undo true",
		shows(now))
	testkit.Same(t, "what is done", p.order, now.Done)
	testkit.Same(t, "the summary", Summary{Images: 4, Answered: 3, Skipped: 1, Care: 1}, p.server.Summary())
	p.open()
	testkit.Same(t, "after a restart", shows(now), shows(p.do("state", "", "")))
	// In fewer batches, what was answered of others is not counted, shown or taken back.
	p.Batches = []int{1}
	p.open()
	now = p.do("state", "", "")
	testkit.Same(t, "in one batch",
		"-: 1 images, 1 answered, 0 skipped, 0 care, 0 stale, 0 gone, rest false, undo true", shows(now))
	testkit.Same(t, "what is done of it", p.order, now.Done)
	p.do("undo", "", "which is not asked for in these batches")
	p.do("back", `{"id":"zzzz"}`, "no answer to go back to")
	// More images than there are make no more, and without batches all are asked for.
	for _, batches := range [][]int{{2, 9}, nil} {
		p.Batches = batches
		p.open()
		testkit.Same(t, "images", 4, p.do("state", "", "").Images)
	}
}

// TestChange: an answer that was taken back or gone back to is shown as it was given, and another one takes its place.
func TestChange(t *testing.T) {
	p := newPage(t)
	a, b := p.order[0], p.order[1]
	p.do("undo", "", "there is no answer to take back")
	p.do("answer", chosen(a, "H", "Y", "X"), "")
	p.do("answer", `{"id":"`+b+`","skip":true,"care":true}`, "")
	given := map[string][]string{"mood": {"H"}, "tags": {"X", "Y"}}
	now := p.do("back", `{"id":"`+a+`"}`, "")
	testkit.Same(t, "gone back", a+" "+fmt.Sprint(given)+" false",
		fmt.Sprint(now.Post.ID, " ", now.Post.Given, " ", now.Post.Care))
	testkit.Same(t, "it stays answered", []string{a, b}, now.Done)
	now = p.do("answer", chosen(a, "L", "X"), "")
	testkit.Same(t, "goes on at", p.order[2], now.Post.ID)
	testkit.Same(t, "in its old place", []string{a, b}, now.Done)
	p.do("answer", chosen(a, "L", "X"), "has an answer already: take it back first")
	now = p.do("undo", "", "")
	testkit.Same(t, "taken back", b+" map[] true", fmt.Sprint(now.Post.ID, " ", now.Post.Given, " ", now.Post.Care))
	testkit.Same(t, "no more answered", []string{a}, now.Done)
	testkit.Same(t, "nor counted", 0, now.Skipped+now.Care)
	p.do("answer", chosen(b, "H", "X"), "")
	body, err := os.ReadFile(p.Answers)
	testkit.Same(t, "the file", `{"care":false,"id":"`+a+`","mood":"L","status":"answered","tags":["X"]}`+"\n"+
		`{"care":false,"id":"`+b+`","mood":"H","status":"answered","tags":["X"]}`+"\n", string(body), err)
}

// TestReopened: who opens the page again after somebody else changed the answers continues from theirs.
func TestReopened(t *testing.T) {
	p := newPage(t)
	a, b, c := p.order[0], p.order[1], p.order[2]
	p.do("answer", chosen(a, "L", "X"), "")
	first := p.server
	p.open()
	second := p.server
	p.do("answer", chosen(b, "L", "X"), "")
	p.server = first
	p.do("back", `{"id":"`+a+`"}`, "")
	p.do("answer", chosen(a, "H", "X"), "somebody else changed "+p.Answers+": close this page, and open it again")
	opened := func(code int, want string) {
		t.Helper()
		if got, text, _ := p.ask(http.MethodGet, "", "", nil); got != code || !strings.Contains(text, want) {
			t.Errorf("the page is %d %s, want %d and %q", got, text, code, want)
		}
	}
	opened(http.StatusOK, "<!doctype html>")
	now := p.do("state", "", "")
	testkit.Same(t, "the next image", c, now.Post.ID)
	testkit.Same(t, "what is done", []string{a, b}, now.Done)
	p.do("answer", chosen(c, "H", "Y"), "")
	// An image that was gone back to is still shown to who opens the page, where nobody else changed the answers.
	p.do("back", `{"id":"`+b+`"}`, "")
	opened(http.StatusOK, "<!doctype html>")
	testkit.Same(t, "gone back to", b, p.do("state", "", "").Post.ID)
	p.server = second
	p.do("undo", "", "somebody else changed")
	whole, err := os.ReadFile(p.Answers)
	testkit.OK(t, err, os.WriteFile(p.Answers, append(whole, "what is this\n"...), 0o600))
	opened(http.StatusConflict, "line 4: it is not an answer of this page")
	p.do("undo", "", "somebody else changed")
	testkit.OK(t, os.WriteFile(p.Answers, whole, 0o600))
	opened(http.StatusOK, "<!doctype html>")
	p.do("undo", "", "")
	body, err := os.ReadFile(p.Answers)
	testkit.Same(t, "the answers", `{"care":false,"id":"`+a+`","mood":"L","status":"answered","tags":["X"]}`+"\n"+
		`{"care":false,"id":"`+b+`","mood":"L","status":"answered","tags":["X"]}`+"\n", string(body), err)
}

// TestPageRefuses: what is no answer changes nothing, and says why.
func TestPageRefuses(t *testing.T) {
	p := newPage(t, 1)
	first, other := p.order[0], "cccc"
	if first == other {
		other = "bbbb"
	}
	for _, test := range []struct{ name, path, body, want string }{
		{"no JSON", "answer", `{`, "the answer is not JSON"},
		{"no id", "answer", `{"id":"a b"}`, "is not a post id"},
		{"no labels", "answer", `{"id":"` + first + `"}`, "category mood takes one label"},
		{"two of one", "answer", `{"id":"` + first + `","labels":{"mood":["L","H"]}}`, "category mood takes one label"},
		{"an unknown one", "answer", chosen(first, "Q", "X"), "is not a label of category mood"},
		{"another image", "answer", chosen(other, "L", "X"), other + " is not asked for"},
		{"another image skipped", "answer", `{"id":"` + other + `","skip":true}`, other + " is not asked for"},
		{"back to no JSON", "back", `{`, "the request is not JSON"},
		{"back to no id", "back", `{"id":"a b"}`, "is not a post id"},
		{"back to what has no answer", "back", `{"id":"` + first + `"}`, first + " has no answer to go back to"},
		{"too long", "answer", `{"id":"` + strings.Repeat("a", 70<<10) + `"}`, "not JSON"},
	} {
		p.do(test.path, test.body, test.want)
		if _, err := os.Stat(p.Answers); err == nil {
			t.Fatalf("%s: there are answers", test.name)
		}
	}
	p.do("answer", chosen(first, "L", "X"), "")
	p.do("answer", chosen(first, "H", "X"), "has an answer already")
}

// TestGuard: only the page itself is answered, and nothing that it sends may be kept, framed or led elsewhere.
func TestGuard(t *testing.T) {
	p := newPage(t)
	for _, test := range []struct {
		name, method string
		change       func(*http.Request)
		want         int
	}{
		{"the page", "GET", nil, 200},
		{"its URL, typed", "GET", func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "none") }, 200},
		{"its own script", "GET", func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		{"another site", "GET", func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"another host", "GET", func(q *http.Request) { q.Host = "rebound.invalid" }, 403},
		{"another token", "GET", func(q *http.Request) { q.URL.Path = "/" + strings.Repeat("A", 26) + "/state" }, 403},
		{"no token", "GET", func(q *http.Request) { q.URL.Path = "/" }, 403},
		{"a change", "POST", nil, 200},
		{"a change of another origin", "POST", func(q *http.Request) { q.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		{"a change of no origin", "POST", func(q *http.Request) { q.Header.Del("Origin") }, 403},
		{"a form", "POST", func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") }, 403},
	} {
		path := map[string]string{"GET": "state", "POST": "rest"}[test.method]
		code, text, header := p.ask(test.method, path, "{}", test.change)
		testkit.Same(t, test.name, test.want, code)
		if code == 403 && !strings.Contains(text, "not from here") {
			t.Errorf("%s: %s", test.name, text)
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff"} {
			testkit.Same(t, test.name+": "+name, want, header.Get(name))
		}
	}
	for path, kind := range map[string]string{"": "text/html", "review.js": "text/javascript", "review.css": "text/css",
		"icon.svg": "image/svg+xml", "scheme": "application/json"} {
		code, text, header := p.ask(http.MethodGet, path, "", nil)
		if code != 200 || !strings.HasPrefix(header.Get("Content-Type"), kind) || text == "" {
			t.Errorf("%q: %d %v", path, code, header)
		}
	}
	_, text, _ := p.ask(http.MethodGet, "scheme", "", nil)
	var scheme []manifest.Category
	testkit.OK(t, json.Unmarshal([]byte(text), &scheme))
	testkit.Same(t, "the scheme", p.Scheme.Categories, scheme)
}

// TestShown: an image that may not be shown any more is not, neither its answer kept, and the page says why it is left
// out.
func TestShown(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(p *page)
		want   string // of all three posts, four images
	}{
		{"removed", func(p *page) { p.set(manifest.StateRemoved, "moderator", "aaaa", "bbbb", "cccc") }, "0 stale, 4 gone"},
		{"seen too long ago", func(p *page) { p.now = p.now.Add(49 * time.Hour) }, "4 stale, 0 gone"},
		{"a duplicate now", func(p *page) {
			var all []manifest.Result
			for _, key := range keys {
				all = append(all, manifest.Result{Key: key, Split: "train", Outcome: manifest.Duplicate})
			}
			testkit.OK(p, p.ws.SetResults(p.Context(), all))
		}, "0 stale, 4 gone"},
		{"absent once", func(p *page) {
			for _, id := range []manifest.PostID{"aaaa", "bbbb", "cccc"} {
				testkit.OK(p, p.ws.SetPosts(p.Context(), []workspace.Post{{ID: id, State: manifest.StateLive, CheckedAt: p.now,
					LiveAt: p.now, AbsentAt: p.now}}))
			}
		}, "4 stale, 0 gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPage(t)
			first := p.do("state", "", "").Post
			test.change(p)
			now := p.do("state", "", "")
			if got := shows(now); !strings.HasPrefix(got, "-: ") || !strings.Contains(got, test.want) {
				t.Errorf("the page shows %s", got)
			}
			if code, text, _ := p.ask(http.MethodGet, first.Source, "", nil); code != 404 ||
				strings.Contains(text, "image of") {
				t.Errorf("its picture: %d %s", code, text)
			}
			p.do("answer", chosen(first.ID, "L", "X"), first.ID+" may not be shown any more: its answer is not kept")
			if _, err := os.Stat(p.Answers); err == nil {
				t.Error("the answer was kept")
			}
		})
	}
	p := newPage(t)
	for _, source := range []string{"image/zzzz/0", "image/aaaa/7", "image/aaaa/x", "image/a%20b/0"} {
		if code, text, _ := p.ask(http.MethodGet, source, "", nil); code != 404 {
			t.Errorf("%s: %d %s", source, code, text)
		}
	}
	// One of the posts that is gone leaves the others.
	p.set(manifest.StateRemoved, "moderator", "aaaa")
	if now := p.do("state", "", ""); now.Post == nil || strings.HasPrefix(now.Post.ID, "aaaa") {
		t.Errorf("the page shows %s", shows(now))
	}
}

// TestRest: a break is suggested after half an hour, and again half an hour after it.
func TestRest(t *testing.T) {
	p := newPage(t)
	for _, step := range []struct {
		after time.Duration
		path  string
		want  bool
	}{
		{29 * time.Minute, "state", false}, {time.Minute, "state", true}, {time.Hour, "state", true}, {0, "rest", false},
		{29 * time.Minute, "state", false}, {time.Minute, "state", true},
	} {
		p.now = p.now.Add(step.after)
		testkit.Same(t, fmt.Sprint(step.path, " after ", step.after), step.want, p.do(step.path, "{}", "").Rest)
	}
}

// TestOpenFails: a page that cannot be served is not.
func TestOpenFails(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
	}{
		{"no workspace", func(c *Config) { c.Workspace += "-none" }},
		{"answers that are none", func(c *Config) { testkit.OK(t, os.WriteFile(c.Answers, []byte("x\n"), 0o600)) }},
		{"a folder in place of the answers", func(c *Config) { testkit.OK(t, os.Mkdir(c.Answers, 0o700)) }},
		{"a category called as a column", func(c *Config) {
			c.Scheme = manifest.Schema{Categories: []manifest.Category{{Name: "status"}}}
		}},
	} {
		p := newPage(t)
		c := p.Config
		test.change(&c)
		if _, err := Open(t.Context(), c); err == nil {
			t.Errorf("%s: the page is open", test.name)
		}
	}
}

// TestOtherPage: two pages on one file lose no answer of either.
func TestOtherPage(t *testing.T) {
	p := newPage(t)
	p.do("answer", chosen(p.order[0], "L", "X"), "")
	testkit.OK(t, os.WriteFile(p.Answers, nil, 0o600))
	p.do("answer", chosen(p.order[1], "L", "X"), "somebody else changed")
	p.do("undo", "", "somebody else changed")
	testkit.Same(t, "what the page counts", 1, p.server.Summary().Answered)
}
