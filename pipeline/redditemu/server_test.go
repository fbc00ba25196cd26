package redditemu_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	. "rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

const agent = "linux:redditemu.test:v1 (by /u/nobody)"

// A probe is a plain HTTP client that reaches the emulator under every name.
type probe struct {
	t     *testing.T
	s     *hostile.Server
	http  *http.Client
	token string
}

func start(t *testing.T, o Options) *probe {
	t.Helper()
	s, err := hostile.Start(o)
	testkit.OK(t, err)
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CAPEM()) {
		t.Fatal("CAPEM holds no certificate")
	}
	tr := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: pool},
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Addr())
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &probe{t: t, s: s, http: &http.Client{Transport: tr, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// An answer is a response with its body read; err is that of reading it.
type answer struct {
	*http.Response
	body []byte
	err  error
}

func (p *probe) do(method, u, body string, header ...string) (answer, error) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, u, strings.NewReader(body))
	testkit.OK(p.t, err)
	req.Header.Set("User-Agent", agent)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Host = req.Header.Get("Host")
	res, err := p.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res, b, err}, nil
}

func (p *probe) get(u string, header ...string) answer {
	p.t.Helper()
	a, err := p.do(http.MethodGet, u, "", header...)
	testkit.OK(p.t, err)
	return a
}

// grant asks for a token with the given form.
func (p *probe) grant(form string, header ...string) answer {
	p.t.Helper()
	basic := base64.StdEncoding.EncodeToString([]byte(p.s.ClientID + ":" + p.s.Secret))
	h := append([]string{"Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic " + basic},
		header...)
	a, err := p.do(http.MethodPost, "https://www.reddit.com/api/v1/access_token", form, h...)
	testkit.OK(p.t, err)
	return a
}

func (p *probe) login() {
	p.t.Helper()
	var body struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(p.grant("grant_type=client_credentials").body, &body); err != nil || body.AccessToken == "" {
		p.t.Fatalf("no token: %v", err)
	}
	p.token = body.AccessToken
}

func (p *probe) api(path string) answer {
	p.t.Helper()
	return p.get("https://oauth.reddit.com"+path, "Authorization", "bearer "+p.token)
}

func (p *probe) info(ids ...string) answer {
	p.t.Helper()
	return p.api("/api/info?raw_json=1&id=" + strings.Join(ids, ","))
}

// children decodes a listing to the data of its things.
func (p *probe) children(a answer) []map[string]any {
	p.t.Helper()
	var l struct {
		Kind string
		Data struct {
			Children []struct{ Data map[string]any }
		}
	}
	if err := json.Unmarshal(a.body, &l); err != nil || l.Kind != "Listing" || a.StatusCode != 200 {
		p.t.Fatalf("not a listing: %d %v %.200s", a.StatusCode, err, a.body)
	}
	var all []map[string]any
	for _, c := range l.Data.Children {
		all = append(all, c.Data)
	}
	return all
}

func (p *probe) names(a answer) []string {
	p.t.Helper()
	var names []string
	for _, d := range p.children(a) {
		names = append(names, fmt.Sprint(d["name"]))
	}
	return names
}

func (p *probe) put(posts ...Post) {
	p.t.Helper()
	testkit.OK(p.t, p.s.Put(posts...))
}

func TestToken(t *testing.T) {
	p := start(t, Options{TokenLifetime: time.Hour})
	const client = "grant_type=client_credentials"
	for _, tt := range []struct {
		form   string
		header []string
		status int
		want   string // in the headers or the body
	}{
		{client, nil, 200, `"token_type": "bearer", "expires_in": 3600`},
		{"grant_type=magic", nil, 200, `"error":"unsupported_grant_type"`},
		{client, []string{"Authorization", "Basic bm86bm8="}, 401, `[Basic realm="reddit"]`},
		{client, []string{"User-Agent", "Go-http-client/1.1"}, 403, "<title>Blocked"},
	} {
		a := p.grant(tt.form, tt.header...)
		if got := fmt.Sprint(a.Header, string(a.body)); a.StatusCode != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("grant(%q, %q) = %d %s, want %d with %s", tt.form, tt.header, a.StatusCode, got, tt.status, tt.want)
		}
	}
}

func TestBearer(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Unix(1_700_000_000, 0).UnixNano())
	p := start(t, Options{TokenLifetime: time.Hour, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	p.put(Post{ID: "abc"})
	for _, header := range [][]string{nil, {"Authorization", "bearer x", "User-Agent", "python-requests/2.25.1"}} {
		if a := p.get("https://oauth.reddit.com/api/info?id=t3_abc", header...); a.StatusCode != 403 {
			t.Errorf("%q: %d %s", header, a.StatusCode, a.body)
		}
	}
	p.token = "made up"
	if a := p.info("t3_abc"); a.StatusCode != 401 ||
		!strings.Contains(a.Header.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("bad bearer: %d %v", a.StatusCode, a.Header)
	}
	p.login()
	if got := p.names(p.info("t3_abc")); !slices.Equal(got, []string{"t3_abc"}) {
		t.Errorf("info = %v", got)
	}
	now.Add(int64(time.Hour))
	if a := p.info("t3_abc"); a.StatusCode != 401 {
		t.Errorf("expired bearer: %d", a.StatusCode)
	}
}

func TestInfo(t *testing.T) {
	p := start(t, Options{})
	p.login()
	p.put(Post{ID: "b"}, Post{ID: "a"}, Post{ID: "gone", Condition: Absent}, Post{ID: "priv", Condition: AbsentPrivate},
		Post{ID: "quar", Condition: AbsentQuarantined}, Post{ID: "gated", Condition: AbsentGated},
		Post{ID: "ban", Condition: AbsentBanned}, Post{ID: "removed", Condition: Removed})
	for _, tt := range []struct {
		id   string
		want []string
	}{
		{"t3_a,t3_b", []string{"t3_a", "t3_b"}},
		{"t3_b,%20t3_a", []string{"t3_b", "t3_a"}},
		{"t3_b%20%20t3_nobody,,t3_gone,t3_priv,t3_ban,t3_removed", []string{"t3_b", "t3_removed"}},
		{"t3_A,t9_b,b,t1_b,t3_,t3_a", []string{"t3_a"}},
		{"t3_a,t3_a", []string{"t3_a"}},
		{"", nil},
		{"t3_a" + strings.Repeat(",t3_b", 99), []string{"t3_a", "t3_b"}},
		{"t3_a" + strings.Repeat(",t3_b", 100), nil},
	} {
		if got := p.names(p.api("/api/info?raw_json=1&id=" + tt.id)); !slices.Equal(got, tt.want) {
			t.Errorf("info(%.60s) = %v, want %v", tt.id, got, tt.want)
		}
	}
	for sub, want := range map[string]string{"memes_emulated": `200 "kind": "t5"`,
		"private_emulated": `403 "reason": "private"`,
		"banned_emulated":  `404 "reason": "banned"`, "gated_emulated": `403 "reason": "gated"`,
		"quarantined_emulated": `403 "reason": "quarantined"`, "nowhere": "302 "} {
		a := p.api("/r/" + sub + "/about?raw_json=1")
		status, text, _ := strings.Cut(want, " ")
		if strconv.Itoa(a.StatusCode) != status || !strings.Contains(string(a.body), text) {
			t.Errorf("about %s = %d %s, want %s", sub, a.StatusCode, a.body, want)
		}
		if to := a.Header.Get("Location"); status == "302" && to != "https://oauth.reddit.com/subreddits/search?q=nowhere" {
			t.Errorf("about %s leads to %q, want the search for it", sub, to)
		}
	}
}

// Every condition must show the marks of section 5 of the specification, in every kind.
func TestShapes(t *testing.T) {
	p := start(t, Options{})
	p.login()
	for _, tt := range []struct {
		post Post
		want map[string]any // "absent" = the key is not there
	}{
		{Post{}, map[string]any{"author": CanaryAuthor, "removed_by_category": nil, "is_robot_indexable": true,
			"post_hint": "image"}},
		{Post{Condition: LiveNotIndexable}, map[string]any{"author": CanaryAuthor, "is_robot_indexable": false,
			"removed_by_category": nil}},
		{Post{Condition: LiveAccountDeleted}, map[string]any{"author": "[deleted]", "author_fullname": "absent",
			"is_robot_indexable": true}},
		{Post{Condition: Deleted}, map[string]any{"author": "[deleted]", "removed_by_category": "deleted", "url": "",
			"title": "[deleted by user]"}},
		{Post{Condition: Deleted, RemovedBy: "author"}, map[string]any{"removed_by_category": "author"}},
		{Post{Condition: DeletedNoCategory}, map[string]any{"removed_by_category": nil, "title": "[deleted by user]"}},
		{Post{Condition: DeletedOld}, map[string]any{"author": "[deleted]", "selftext": "[deleted]",
			"removed_by_category": nil,
			"is_robot_indexable":  false, "is_crosspostable": false, "thumbnail": "default"}},
		{Post{Condition: Removed}, map[string]any{"removed_by_category": "moderator", "author": CanaryAuthor,
			"preview": "absent", "post_hint": "absent"}},
		{Post{Condition: Removed, RemovedBy: "reddit"}, map[string]any{"removed_by_category": "reddit"}},
		{Post{Condition: Removed, Kind: KindSelf}, map[string]any{"selftext": "[removed]", "is_self": true}},
		{Post{Condition: RemovedModView}, map[string]any{"banned_by": "AutoModerator", "removed_by_category": nil}},
		{Post{Condition: RemovedAdmin}, map[string]any{"title": "[ Removed by Reddit ]",
			"removed_by_category": "anti_evil_ops"}},
		{Post{Condition: RemovedTitle}, map[string]any{"title": "[ Removed by Reddit ]", "removed_by_category": nil}},
		{Post{Condition: RemovedSelftext}, map[string]any{"selftext": "[removed]", "removed_by_category": nil}},
		{Post{Condition: RemovedLegal}, map[string]any{"removal_reason": "legal"}},
		{Post{Condition: Quarantined}, map[string]any{"quarantine": true}},
		{Post{Kind: KindVideo}, map[string]any{"is_video": true, "domain": "v.redd.it"}},
		{Post{Kind: KindLink, Link: "https://else.example/x"},
			map[string]any{"url": "https://else.example/x", "domain": "else.example"}},
		{Post{Kind: KindImgurPage}, map[string]any{"domain": "imgur.com"}},
		{Post{Kind: KindGallery, Set: map[string]any{"gallery_data": nil}},
			map[string]any{"is_gallery": true, "gallery_data": nil}},
		{Post{Over18: true, Subreddit: "u_someone", Set: map[string]any{"author_new": "x"}},
			map[string]any{"over_18": true, "subreddit": "u_someone", "author_new": "x"}},
	} {
		tt.post.ID = "shape1"
		p.put(tt.post)
		got := p.children(p.info("t3_shape1"))
		if len(got) != 1 {
			t.Fatalf("%+v: %d things", tt.post, len(got))
		}
		for k, want := range tt.want {
			v, ok := got[0][k]
			if !ok {
				v = "absent"
			}
			if diff := cmp.Diff(want, v); diff != "" {
				t.Errorf("%s %s: %s (-want +got)\n%s", tt.post.Kind, tt.post.Condition, k, diff)
			}
		}
	}
}

// TestThings: the answers hold every canary, and a raw thing byte for byte.
func TestThings(t *testing.T) {
	p := start(t, Options{})
	p.login()
	raw := `{"data":  {"id":"r1", "title":"a & <b>", "big":12345678901234567890}, "kind":"t3"}`
	p.put(Post{ID: "c1"}, Post{ID: "r1", Raw: json.RawMessage(raw)})
	body := string(p.info("t3_c1", "t3_r1").body) + string(p.get(Post{ID: "c1"}.URLs()[0]).body)
	for _, want := range append(hostile.Canaries(), raw) {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in the answers", want)
		}
	}
}

func TestRateLimit(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Unix(1_700_000_400, 0).UnixNano()) // 1,700,000,400 = 600 * 2,833,334
	p := start(t, Options{RequestsPerWindow: 3, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	p.login()
	get := func() [5]string {
		a := p.info("t3_a")
		return [5]string{strconv.Itoa(a.StatusCode), a.Header.Get("X-Ratelimit-Used"),
			a.Header.Get("X-Ratelimit-Remaining"),
			a.Header.Get("X-Ratelimit-Reset"), a.Header.Get("Retry-After")}
	}
	var got [][5]string
	got = append(got, get())
	now.Add(int64(599500 * time.Millisecond))
	got = append(got, get(), get(), get())
	now.Add(int64(500 * time.Millisecond))
	got = append(got, get())
	want := [][5]string{
		{"200", "1", "2.0", "600", ""}, {"200", "2", "1.0", "0", ""}, {"200", "3", "0.0", "0", ""},
		{"429", "3", "0.0", "0", "0"}, {"200", "1", "2.0", "600", ""},
	}
	testkit.Same(t, "rate headers", want, got)
}

func TestImageHosts(t *testing.T) {
	p := start(t, Options{Hosts: []string{"else.example"}})
	p.login()
	p.put(Post{ID: "i1", Images: []Image{{Spec: Spec{Seed: 1}}}},
		Post{ID: "g1", Kind: KindGallery, Images: []Image{
			{Spec: Spec{Seed: 2, Format: "png"}}, {Spec: Spec{Seed: 3}, TitleSlug: true},
			{Spec: Spec{Seed: 4, Format: "gif"}},
			{Status: "failed"}}},
		Post{ID: "m1", Kind: KindImgur, Images: []Image{{Spec: Spec{Seed: 5}}}},
		Post{ID: "w1", Images: []Image{{Spec: Spec{Seed: 6, Format: "webp"}}}},
		Post{ID: "x1", Kind: KindCrosspost})
	for id, want := range map[string][]string{"i1": {"jpeg"}, "g1": {"png", "jpeg", "gif", ""}, "m1": {"jpeg"},
		"w1": {"webp"}, "x1": {"jpeg"}} {
		post, _ := p.s.Post(manifest.PostID(id))
		var got []string
		for _, u := range post.URLs() {
			if u == "" {
				got = append(got, "")
				continue
			}
			a := p.get(u, "Accept", "*/*")
			_, format, err := image.Decode(bytes.NewReader(a.body))
			if err != nil || a.Header.Get("Content-Type") != "image/"+format {
				t.Errorf("%s: %d %s, %v", u, a.StatusCode, a.Header.Get("Content-Type"), err)
			}
			got = append(got, format)
		}
		if !slices.Equal(got, want) {
			t.Errorf("formats of %s = %q, want %q", id, got, want)
		}
	}
	for _, tt := range []struct {
		url    string
		header []string
		status int
		want   string // in the body or the Location
	}{
		{"https://i.redd.it/some-title-v0-xuae6nj1e7vd1.jpeg", nil, 403, "AccessDenied"},
		{"https://i.imgur.com/nothere.jpg", nil, 302, "https://i.imgur.com/removed.png"},
		{"https://i.imgur.com/removed.png", nil, 200, "PNG"},
		{"https://i.imgur.com/abc.jpg", []string{"Referer", "https://www.reddit.com/"}, 429, "hotlink"},
		{"https://i.imgur.com/abc", nil, 302, "https://imgur.com/abc"},
		{"https://i.imgur.com/abc.jpg", []string{"User-Agent", "Go-http-client/1.1"}, 429, "429"},
		{"https://imgur.com/a/abc", nil, 200, "<html"},
		{"https://else.example/x.jpg", nil, 404, "nothing"},
		{"https://preview.redd.it/abc.jpg?auto=webp&s=1234", nil, 403, "Guru Meditation"},
		{Signed("preview.redd.it", "/abc.jpg", "auto=webp"), nil, 404, "PNG"},
	} {
		a := p.get(tt.url, tt.header...)
		if a.StatusCode != tt.status || !strings.Contains(a.Header.Get("Location")+string(a.body), tt.want) {
			t.Errorf("%s %v: %d %s %.80q, want %d %s", tt.url, tt.header, a.StatusCode, a.Header.Get("Location"), a.body,
				tt.status, tt.want)
		}
	}
	if n := len(p.get("https://i.redd.it/unknown.jpg").body); n != 418 {
		t.Errorf("403 of i.redd.it has %d bytes, want 418", n)
	}
}

func TestPreviewSignature(t *testing.T) {
	p := start(t, Options{})
	p.login()
	p.put(Post{ID: "g2", Kind: KindGallery, Images: []Image{{Spec: Spec{Seed: 9}, TitleSlug: true, Slug: "abc"}}})
	metadata := p.children(p.info("t3_g2"))[0]["media_metadata"].(map[string]any)
	good := metadata["abc"].(map[string]any)["s"].(map[string]any)["u"].(string)
	bare, _, _ := strings.Cut(good, "?")
	if !strings.HasSuffix(bare, "-v0-abc.jpg") {
		t.Errorf("source %s has no title slug", good)
	}
	for u, want := range map[string]int{
		good: 200, strings.Replace(good, "width=", "width=1", 1): 403, bare: 403,
		strings.Replace(bare, "preview", "i", 1): 403, "https://i.redd.it/abc.jpg": 200,
	} {
		if a := p.get(u); a.StatusCode != want {
			t.Errorf("%s: %d %.80s, want %d", u, a.StatusCode, a.body, want)
		}
	}
}

func TestServe(t *testing.T) {
	p := start(t, Options{})
	drawn, err := Draw(Spec{Seed: 8})
	testkit.OK(t, err)
	whole := len(hostile.Plant(drawn.Body))
	for _, tt := range []struct {
		serve  Serve
		status int
		kind   string
		bytes  int
	}{
		{ServeImage, 200, "image/jpeg", whole},
		{ServeNotFound, 404, "text/html; charset=UTF-8", -1},
		{ServeForbidden, 403, "application/xml", 418},
		{ServePlaceholder, 404, "image/png", 1048},
		{ServeImgurRemoved, 302, "text/html; charset=utf-8", 0},
		{ServeImgurChain, 302, "text/html; charset=utf-8", 0},
		{ServeHTML, 200, "text/html; charset=UTF-8", -1},
		{ServeEmpty, 200, "image/jpeg", 0},
		{ServeCut, 200, "image/jpeg", whole / 2},
		{ServeGarbage, 200, "image/jpeg", 4096},
		{ServeUnavailable, 503, "text/html; charset=UTF-8", -1},
	} {
		post := Post{ID: "s1", Images: []Image{{Spec: Spec{Seed: 8}, Serve: tt.serve}}}
		p.put(post)
		a := p.get(post.URLs()[0])
		if a.StatusCode != tt.status || a.Header.Get("Content-Type") != tt.kind ||
			tt.bytes >= 0 && len(a.body) != tt.bytes {
			t.Errorf("%q: %d %s %d bytes, want %d %s %d", tt.serve, a.StatusCode, a.Header.Get("Content-Type"), len(a.body),
				tt.status, tt.kind, tt.bytes)
		}
	}
	if n := len(p.get("https://i.imgur.com/removed.png").body); n != 503 {
		t.Errorf("removed.png has %d bytes, want 503", n)
	}
	cfg, _, err := image.DecodeConfig(bytes.NewReader(GreyPNG(336, 478, 34641)))
	if err != nil || cfg.Width != 336 || len(GreyPNG(336, 478, 34641)) != 34641 {
		t.Errorf("region block: %v %v, %d bytes", cfg, err, len(GreyPNG(336, 478, 34641)))
	}
}

func TestUpdate(t *testing.T) {
	p := start(t, Options{})
	p.login()
	p.put(Post{ID: "u1"}, Post{ID: "u2"})
	u1, _ := p.s.Post("u1")
	addr := u1.URLs()[0]
	p.s.OnRequest(func(q hostile.Request) {
		if q.Host == "i.redd.it" {
			if err := p.s.Update("u1", func(post *Post) { post.Condition = Deleted }); err != nil {
				t.Error(err)
			}
		}
	})
	if a := p.get(addr); a.StatusCode != 200 {
		t.Errorf("image before deletion: %d", a.StatusCode)
	}
	if d := p.children(p.info("t3_u1"))[0]; d["title"] != "[deleted by user]" {
		t.Errorf("title after the update = %v", d["title"])
	}
	if a := p.get(addr); a.StatusCode != 200 {
		t.Errorf("image after deletion: %d, want the content network to keep it", a.StatusCode)
	}
	if got, _ := p.s.Post("u1"); got.Want != manifest.StateDeleted {
		t.Errorf("Want = %q", got.Want)
	}
	p.s.Remove("u1")
	if got := p.names(p.info("t3_u1", "t3_u2")); !slices.Equal(got, []string{"t3_u2"}) {
		t.Errorf("after Remove: %v", got)
	}
	if err := p.s.Update("u1", func(*Post) {}); err == nil {
		t.Error("Update of a missing post succeeded")
	}
	for _, bad := range []manifest.PostID{"", "ABC", "t3_abc", "12345678901234"} {
		if err := p.s.Put(Post{ID: bad}); err == nil {
			t.Errorf("Put(%q) succeeded", bad)
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	p := start(t, Options{})
	p.login()
	p.s.Fault(hostile.Fault{PathPrefix: "/slow", Kind: hostile.Hang()})
	failed := make(chan error)
	go func() {
		_, err := p.do(http.MethodGet, "https://i.redd.it/slow.jpg", "")
		failed <- err
	}()
	for !slices.ContainsFunc(p.s.Requests(), func(q hostile.Request) bool { return q.Path == "/slow.jpg" }) {
		runtime.Gosched()
	}
	p.s.Close()
	p.s.Close()
	if err := <-failed; err == nil {
		t.Error("a request under way outlived Close")
	}
	p.http.CloseIdleConnections()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines after Close, %d before", n, before)
	}
}

func TestMisdirected(t *testing.T) {
	p := start(t, Options{})
	if a := p.get("https://i.redd.it/x.jpg", "Host", "oauth.reddit.com"); a.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("Host other than the name in the handshake: %d, want 421", a.StatusCode)
	}
	if got := p.s.Requests(); len(got) != 1 || got[0].Status != 421 {
		t.Errorf("log %+v", got)
	}
}
