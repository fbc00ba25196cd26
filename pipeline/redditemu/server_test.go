package redditemu_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
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
	if err != nil {
		p.t.Fatalf("GET %s: %v", u, err)
	}
	return a
}

// grant asks for a token with the given form.
func (p *probe) grant(form string, header ...string) answer {
	p.t.Helper()
	auth := (&http.Request{Header: http.Header{}})
	auth.SetBasicAuth(p.s.ClientID, p.s.Secret)
	h := append([]string{"Content-Type", "application/x-www-form-urlencoded", "Authorization", auth.Header.Get("Authorization")}, header...)
	a, err := p.do(http.MethodPost, "https://www.reddit.com/api/v1/access_token", form, h...)
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

func (p *probe) login() {
	p.t.Helper()
	a := p.grant("grant_type=client_credentials")
	var body struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil || a.StatusCode != 200 || body.TokenType != "bearer" {
		p.t.Fatalf("token: %d %s", a.StatusCode, a.body)
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
			Dist     int
			Children []struct {
				Kind string
				Data map[string]any
			}
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
	if err := p.s.Put(posts...); err != nil {
		p.t.Fatal(err)
	}
}

func TestToken(t *testing.T) {
	p := start(t, Options{TokenLifetime: time.Hour})
	for _, tt := range []struct {
		form   string
		status int
		want   string
	}{
		{"grant_type=client_credentials", 200, `"expires_in":3600`},
		{"grant_type=client_credentials&scope=read", 200, `"scope":"read"`},
		{"grant_type=client_credentials&scope=R%C3%89AD", 200, `"error":"invalid_scope"`},
		{"grant_type=magic", 200, `"error":"unsupported_grant_type"`},
	} {
		a := p.grant(tt.form)
		if a.StatusCode != tt.status || !strings.Contains(string(a.body), tt.want) {
			t.Errorf("grant(%q) = %d %s, want %d with %s", tt.form, a.StatusCode, a.body, tt.status, tt.want)
		}
	}
	a := p.grant("grant_type=client_credentials", "Authorization", "Basic bm86bm8=")
	if a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") != `Basic realm="reddit"` {
		t.Errorf("bad credentials: %d %v", a.StatusCode, a.Header)
	}
	installed := start(t, Options{InstalledApp: true})
	if a := installed.grant("grant_type=client_credentials"); !strings.Contains(string(a.body), "unauthorized_client") {
		t.Errorf("client_credentials of an installed app: %d %s", a.StatusCode, a.body)
	}
}

func TestBearer(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Unix(1_700_000_000, 0).UnixNano())
	p := start(t, Options{TokenLifetime: time.Hour, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	p.put(Post{ID: "abc"})
	if a := p.get("https://oauth.reddit.com/api/info?id=t3_abc"); a.StatusCode != 403 || !strings.Contains(string(a.body), "<title>Blocked") {
		t.Errorf("no bearer: %d %s", a.StatusCode, a.body)
	}
	p.token = "made up"
	if a := p.info("t3_abc"); a.StatusCode != 401 || !strings.Contains(a.Header.Get("WWW-Authenticate"), "invalid_token") {
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
	var scoped struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(p.grant("grant_type=client_credentials&scope=identity").body, &scoped); err != nil {
		t.Fatal(err)
	}
	p.token = scoped.AccessToken
	if a := p.info("t3_abc"); a.StatusCode != 403 || !strings.Contains(a.Header.Get("WWW-Authenticate"), "insufficient_scope") {
		t.Errorf("small scope: %d %v", a.StatusCode, a.Header)
	}
}

func TestUserAgent(t *testing.T) {
	p := start(t, Options{})
	p.login()
	const info, token = "https://oauth.reddit.com/api/info?id=t3_abc", "https://www.reddit.com/api/v1/access_token"
	for _, tt := range []struct {
		url, agent string
		status     int
		retryAfter string
		body       string
	}{
		{info, "Go-http-client/1.1", 429, "4", "whoa there, pardner!"},
		{token, "python-requests/2.25.1", 429, "", `"error": 429`},
		{info, "", 403, "", "<title>Blocked"},
		{info, "short", 403, "", "<title>Blocked"},
		{token, "Mozilla/5.0 (X11)", 403, "", "network security"},
		{info, agent, 403, "", "<title>Blocked"}, // no bearer
	} {
		a := p.get(tt.url, "User-Agent", tt.agent)
		if a.StatusCode != tt.status || a.Header.Get("Retry-After") != tt.retryAfter || !strings.Contains(string(a.body), tt.body) {
			t.Errorf("%s as %q: %d, Retry-After %q, %s", tt.url, tt.agent, a.StatusCode, a.Header.Get("Retry-After"), a.body)
		}
		if a.Header.Get("X-Ratelimit-Used") != "" {
			t.Errorf("%s as %q has rate headers", tt.url, tt.agent)
		}
	}
}

func TestInfo(t *testing.T) {
	p := start(t, Options{})
	p.login()
	p.put(Post{ID: "b"}, Post{ID: "a"}, Post{ID: "gone", Condition: Absent}, Post{ID: "priv", Condition: AbsentPrivate},
		Post{ID: "quar", Condition: AbsentQuarantined}, Post{ID: "gated", Condition: AbsentGated}, Post{ID: "ban", Condition: AbsentBanned}, Post{ID: "removed", Condition: Removed})
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
	for sub, want := range map[string]string{"memes_emulated": `200 "kind":"t5"`, "private_emulated": `403 "reason": "private"`,
		"banned_emulated": `404 "reason": "banned"`, "gated_emulated": `403 "reason": "gated"`,
		"quarantined_emulated": `403 "reason": "quarantined"`, "u-1": `404 "Not Found"`, "nowhere": "302 "} {
		a := p.api("/r/" + sub + "/about?raw_json=1")
		status, text, _ := strings.Cut(want, " ")
		if strconv.Itoa(a.StatusCode) != status || !strings.Contains(string(a.body), text) {
			t.Errorf("about %s = %d %s, want %s", sub, a.StatusCode, a.body, want)
		}
		if to := a.Header.Get("Location"); status == "302" && to != "https://oauth.reddit.com/subreddits/search?q=nowhere" {
			t.Errorf("about %s leads to %q, want the search for it", sub, to)
		}
	}
	ids := p.s.Requests()[1].IDs
	if !slices.Equal(ids, []manifest.PostID{"a", "b"}) && !slices.Equal(ids, []manifest.PostID{"b", "a"}) {
		t.Errorf("Requests()[1].IDs = %v", ids)
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
		{Post{}, map[string]any{"author": CanaryAuthor, "removed_by_category": nil, "is_robot_indexable": true, "post_hint": "image"}},
		{Post{Condition: LiveNotIndexable}, map[string]any{"author": CanaryAuthor, "is_robot_indexable": false, "removed_by_category": nil}},
		{Post{Condition: LiveAccountDeleted}, map[string]any{"author": "[deleted]", "author_fullname": "absent", "is_robot_indexable": true}},
		{Post{Condition: Deleted}, map[string]any{"author": "[deleted]", "removed_by_category": "deleted", "url": "", "title": "[deleted by user]"}},
		{Post{Condition: Deleted, RemovedBy: "author"}, map[string]any{"removed_by_category": "author"}},
		{Post{Condition: DeletedNoCategory}, map[string]any{"removed_by_category": nil, "title": "[deleted by user]"}},
		{Post{Condition: DeletedOld}, map[string]any{"author": "[deleted]", "selftext": "[deleted]", "removed_by_category": nil,
			"is_robot_indexable": false, "is_crosspostable": false, "thumbnail": "default"}},
		{Post{Condition: Removed}, map[string]any{"removed_by_category": "moderator", "author": CanaryAuthor, "preview": "absent", "post_hint": "absent"}},
		{Post{Condition: Removed, RemovedBy: "reddit"}, map[string]any{"removed_by_category": "reddit"}},
		{Post{Condition: Removed, Kind: KindSelf}, map[string]any{"selftext": "[removed]", "is_self": true}},
		{Post{Condition: RemovedModView}, map[string]any{"banned_by": "AutoModerator", "removed_by_category": nil}},
		{Post{Condition: RemovedAdmin}, map[string]any{"title": "[ Removed by Reddit ]", "removed_by_category": "anti_evil_ops"}},
		{Post{Condition: RemovedTitle}, map[string]any{"title": "[ Removed by Reddit ]", "removed_by_category": nil}},
		{Post{Condition: RemovedSelftext}, map[string]any{"selftext": "[removed]", "removed_by_category": nil}},
		{Post{Condition: RemovedLegal}, map[string]any{"removal_reason": "legal"}},
		{Post{Condition: Quarantined}, map[string]any{"quarantine": true}},
		{Post{Kind: KindVideo}, map[string]any{"is_video": true, "domain": "v.redd.it"}},
		{Post{Kind: KindLink, Link: "https://else.example/x"}, map[string]any{"url": "https://else.example/x", "domain": "else.example"}},
		{Post{Kind: KindImgurPage}, map[string]any{"domain": "imgur.com"}},
		{Post{Kind: KindGallery, NoGalleryData: true, NoMediaMetadata: true}, map[string]any{"is_gallery": true, "gallery_data": nil, "media_metadata": nil}},
		{Post{Kind: KindCrosspost, EmptyParentList: true}, map[string]any{"crosspost_parent_list": []any{}}},
		{Post{Over18: true, Subreddit: "u_someone", Set: map[string]any{"author_new": "x"}, Unset: []string{"score"}},
			map[string]any{"over_18": true, "subreddit": "u_someone", "author_new": "x", "score": "absent"}},
	} {
		tt.post.ID = "shape1"
		p.put(tt.post)
		got := p.children(p.info("t3_shape1"))
		if len(got) != 1 {
			t.Fatalf("%+v: %d things", tt.post, len(got))
		}
		for k, want := range tt.want {
			v, ok := got[0][k]
			if want == "absent" {
				if ok {
					t.Errorf("%s %s: %s = %v, want it absent", tt.post.Kind, tt.post.Condition, k, v)
				}
			} else if diff := cmp.Diff(want, v); diff != "" || !ok {
				t.Errorf("%s %s: %s (-want +got)\n%s", tt.post.Kind, tt.post.Condition, k, diff)
			}
		}
	}
}

func TestCanaries(t *testing.T) {
	p := start(t, Options{})
	p.login()
	p.put(Post{ID: "c1"})
	body := string(p.info("t3_c1").body) + string(p.get(Post{ID: "c1"}.URLs()[0]).body)
	for _, c := range hostile.Canaries() {
		if !strings.Contains(body, c) {
			t.Errorf("canary %q is not in the answers", c)
		}
	}
}

func TestRawJSON(t *testing.T) {
	p := start(t, Options{})
	p.login()
	raw := json.RawMessage(`{"data":  {"id":"r1", "name":"t3_r1", "title":"a & <b> \"c\"", "big":12345678901234567890}, "kind":"t3"}`)
	p.put(Post{ID: "r1", Raw: raw})
	if a := p.info("t3_r1"); !bytes.Contains(a.body, raw) {
		t.Errorf("raw thing is not byte for byte: %s", a.body)
	}
	a := p.api("/api/info?id=t3_r1")
	if want := `"title":"a &amp; &lt;b&gt; \"c\""`; !strings.Contains(string(a.body), want) || !strings.Contains(string(a.body), "12345678901234567890") {
		t.Errorf("without raw_json: %s, want %s", a.body, want)
	}
}

func TestRateLimit(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Unix(1_700_000_400, 0).UnixNano()) // 1,700,000,400 = 600 * 2,833,334
	p := start(t, Options{RequestsPerWindow: 3, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	p.login()
	get := func() [5]string {
		a := p.info("t3_a")
		return [5]string{strconv.Itoa(a.StatusCode), a.Header.Get("X-Ratelimit-Used"), a.Header.Get("X-Ratelimit-Remaining"),
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rate headers (-want +got)\n%s", diff)
	}
}

func TestImageHosts(t *testing.T) {
	p := start(t, Options{Hosts: []string{"else.example"}})
	p.login()
	p.put(Post{ID: "i1", Images: []Image{{Spec: Spec{Seed: 1}}}},
		Post{ID: "g1", Kind: KindGallery, Images: []Image{
			{Spec: Spec{Seed: 2, Format: "png"}}, {Spec: Spec{Seed: 3}, TitleSlug: true}, {Spec: Spec{Seed: 4, Format: "gif"}},
			{Status: "failed"}, {NoMetadata: true}}},
		Post{ID: "m1", Kind: KindImgur, Images: []Image{{Spec: Spec{Seed: 5}}}},
		Post{ID: "w1", Images: []Image{{Spec: Spec{Seed: 6, Format: "webp"}}}},
		Post{ID: "x1", Kind: KindCrosspost})
	for id, want := range map[string][]string{"i1": {"jpeg"}, "g1": {"png", "jpeg", "gif", "", ""}, "m1": {"jpeg"}, "w1": {"webp"}, "x1": {"jpeg"}} {
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
	i1, _ := p.s.Post("i1")
	u := i1.URLs()[0]
	for _, tt := range []struct {
		url    string
		header []string
		status int
		want   string // in the body or the Location
	}{
		{u, []string{"Accept", "text/html,image/webp,*/*;q=0.8"}, 302, "https://www.reddit.com/media?url=https%3A%2F%2Fi.redd.it"},
		{u, []string{"Accept", "image/webp,text/html;q=0.5"}, 200, "JFIF-free"},
		{"https://i.redd.it/some-title-v0-xuae6nj1e7vd1.jpeg", nil, 403, "AccessDenied"},
		{"https://i.imgur.com/nothere.jpg", nil, 302, "https://i.imgur.com/removed.png"},
		{"https://i.imgur.com/removed.png", nil, 200, "PNG"},
		{"https://i.imgur.com/abc.gifv", nil, 200, "<html"},
		{"https://i.imgur.com/abc.jpg", []string{"Referer", "https://www.reddit.com/"}, 403, "hotlink"},
		{"https://i.imgur.com/abc.jpg", []string{"User-Agent", "Go-http-client/1.1"}, 429, "429"},
		{"https://imgur.com/a/abc", nil, 200, "<html"},
		{"https://else.example/x.jpg", nil, 404, "nothing"},
		{"https://www.reddit.com/media?url=x", nil, 200, "<html"},
		{"https://preview.redd.it/abc.jpg?auto=webp&s=1234", nil, 403, "Guru Meditation"},
		{Signed("preview.redd.it", "/abc.jpg", "auto=webp"), nil, 404, "PNG"},
	} {
		a := p.get(tt.url, tt.header...)
		if tt.want == "JFIF-free" {
			tt.want = string([]byte{0xff, 0xd8, 0xff})
		}
		if a.StatusCode != tt.status || !strings.Contains(a.Header.Get("Location")+string(a.body), tt.want) {
			t.Errorf("%s %v: %d %s %.80q, want %d %s", tt.url, tt.header, a.StatusCode, a.Header.Get("Location"), a.body, tt.status, tt.want)
		}
	}
	if n := len(p.get("https://i.redd.it/unknown.jpg").body); n != 418 {
		t.Errorf("403 of i.redd.it has %d bytes, want 418", n)
	}
}

func TestPreviewSignature(t *testing.T) {
	p := start(t, Options{})
	p.login()
	p.put(Post{ID: "g2", Kind: KindGallery, Images: []Image{{Spec: Spec{Seed: 9}, TitleSlug: true}}})
	source := func(raw string) string {
		d := p.children(p.api("/api/info?id=t3_g2" + raw))[0]
		mm := d["media_metadata"].(map[string]any)
		for _, item := range mm {
			return item.(map[string]any)["s"].(map[string]any)["u"].(string)
		}
		t.Fatal("no item")
		return ""
	}
	good, escaped := source("&raw_json=1"), source("")
	if !strings.Contains(good, "-v0-") {
		t.Errorf("source %s has no title slug", good)
	}
	if a := p.get(good); a.StatusCode != 200 || a.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("signed: %d %s", a.StatusCode, a.Header.Get("Content-Type"))
	}
	for _, bad := range []string{escaped, strings.Replace(good, "width=", "width=1", 1), strings.Split(good, "?")[0]} {
		if a := p.get(bad); a.StatusCode != 403 || !strings.Contains(string(a.body), "Guru Meditation") {
			t.Errorf("%s: %d %.80s", bad, a.StatusCode, a.body)
		}
	}
	u, _ := url.Parse(good)
	if a := p.get("https://i.redd.it" + u.Path); a.StatusCode != 403 {
		t.Errorf("i.redd.it with the title slug: %d, want 403", a.StatusCode)
	}
	if a := p.get("https://i.redd.it/" + u.Path[strings.Index(u.Path, "-v0-")+4:]); a.StatusCode != 200 {
		t.Errorf("i.redd.it without it: %d, want 200", a.StatusCode)
	}
}

func TestServe(t *testing.T) {
	p := start(t, Options{})
	whole, err := Draw(Spec{Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		serve  Serve
		status int
		kind   string
		bytes  int
	}{
		{ServeImage, 200, "image/jpeg", len(whole.Body)},
		{ServeNotFound, 404, "text/html; charset=UTF-8", -1},
		{ServeForbidden, 403, "application/xml", 418},
		{ServePlaceholder, 404, "image/png", 1048},
		{ServeImgurRemoved, 302, "text/html; charset=utf-8", 0},
		{ServeImgurChain, 302, "text/html; charset=utf-8", 0},
		{ServeHTML, 200, "text/html; charset=UTF-8", -1},
		{ServeEmpty, 200, "image/jpeg", 0},
		{ServeCut, 200, "image/jpeg", len(whole.Body) / 2},
		{ServeGarbage, 200, "image/jpeg", 4096},
		{ServeUnavailable, 503, "text/html; charset=UTF-8", -1},
	} {
		post := Post{ID: "s1", Images: []Image{{Spec: Spec{Seed: 8}, Serve: tt.serve}}}
		p.put(post)
		a := p.get(post.URLs()[0])
		if a.StatusCode != tt.status || a.Header.Get("Content-Type") != tt.kind || tt.bytes >= 0 && len(a.body) != tt.bytes {
			t.Errorf("%q: %d %s %d bytes, want %d %s %d", tt.serve, a.StatusCode, a.Header.Get("Content-Type"), len(a.body), tt.status, tt.kind, tt.bytes)
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

func TestPutRecorded(t *testing.T) {
	p := start(t, Options{})
	p.login()
	thing := json.RawMessage(`{"kind": "t3", "data": {"id": "rec1", "name": "t3_rec1", "url": "https://www.reddit.com/gallery/rec1",
 "gallery_data": {"items": [{"media_id": "aaa", "id": 1}, {"media_id": "bbb", "id": 2}]},
 "media_metadata": {"aaa": {"status": "valid", "m": "image/jpg", "s": {"u": "https://preview.redd.it/t-v0-aaa.jpg?width=9&s=da5b"}},
  "bbb": {"status": "valid", "m": "image/gif", "s": {"gif": "https://i.redd.it/bbb.gif"}}}}}`)
	if err := p.s.PutRecorded(thing, nil); err != nil {
		t.Fatal(err)
	}
	if a := p.info("t3_rec1"); !bytes.Contains(a.body, thing) {
		t.Error("the recorded thing is not byte for byte")
	}
	signed, bare := p.get("https://preview.redd.it/t-v0-aaa.jpg?width=9&s=da5b"), p.get("https://i.redd.it/aaa.jpg")
	if signed.StatusCode != 200 || !bytes.Equal(signed.body, bare.body) {
		t.Errorf("preview %d and i.redd.it %d differ", signed.StatusCode, bare.StatusCode)
	}
	if a := p.get("https://i.redd.it/bbb.gif"); a.Header.Get("Content-Type") != "image/gif" || bytes.Equal(a.body, bare.body) {
		t.Errorf("second image: %d %s", a.StatusCode, a.Header.Get("Content-Type"))
	}
	if a := p.get("https://preview.redd.it/t-v0-aaa.jpg?width=10&s=da5b"); a.StatusCode != 403 {
		t.Errorf("changed query: %d, want 403", a.StatusCode)
	}
	if err := p.s.PutRecorded(json.RawMessage(`{"kind":"t3","data":{"id":"rec2","url":"http://i.imgur.com/OiIWx.jpg"}}`), []byte("GIF89a...")); err != nil {
		t.Fatal(err)
	}
	if a := p.get("https://i.imgur.com/OiIWx.png"); string(a.body) != "GIF89a..." {
		t.Errorf("imgur: %d %q", a.StatusCode, a.body)
	}
	for _, bad := range []string{`{`, `{"kind":"t1","data":{"id":"x"}}`, `{"kind":"t3","data":{"id":7}}`, `null`} {
		if err := p.s.PutRecorded(json.RawMessage(bad), nil); err == nil {
			t.Errorf("PutRecorded(%s) succeeded", bad)
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

// Every fault kind: what a client sees, and that it counts.
func TestFaults(t *testing.T) {
	p := start(t, Options{Hosts: []string{"else.example"}})
	post := Post{ID: "f1"}
	p.put(post, Post{ID: "f2"})
	img := post.URLs()[0]
	size := len(p.get(img).body)
	for _, tt := range []struct {
		kind   hostile.FaultKind
		image  bool
		status int
		header string // Name: value, "" value = absent
		body   string
	}{
		{hostile.Status(418, http.Header{"X-Tea": {"pot"}}, []byte("short")), false, 418, "X-Tea: pot", "short"},
		{hostile.TooManyHTML(7), false, 429, "Retry-After: 7", "whoa there"},
		{hostile.TooManyJSON(), false, 429, "Retry-After: ", `"error": 429`},
		{hostile.TooManyEmpty(0), false, 429, "X-Ratelimit-Reset: 0", ""},
		{hostile.BlockedHTML(), false, 403, "", "<title>Blocked"},
		{hostile.NetworkSecurityHTML(), false, 403, "", "blocked by network security"},
		{hostile.AdministrativeHTML(), false, 403, "Content-Length: 93", "administrative rules"},
		{hostile.ForbiddenReason("gated"), false, 403, "", `"reason": "gated"`},
		{hostile.ForbiddenRetryAfter(3), false, 403, "Retry-After: 3", ""},
		{hostile.URITooLong(), false, 414, "Retry-After: 0", ""},
		{hostile.LegalReasons(), false, 451, "", ""},
		{hostile.ServerError(503), false, 503, "", "<html"},
		{hostile.ServerError(522), false, 522, "", "<html"},
		{hostile.TruncatedJSON(), false, 200, "", `{"kind": "Listing"`},
		{hostile.HTML200(), false, 200, "Content-Type: text/html; charset=UTF-8", "<html"},
		{hostile.EmptyListing(), false, 200, "", `"dist": 0`},
		{hostile.ExtraChild(Post{ID: "extra"}), false, 200, "", `"name":"t3_extra"`},
		{hostile.DuplicateChild(), false, 200, "", `"name":"t3_f1"`},
		{hostile.NoRateHeaders(), false, 200, "X-Ratelimit-Remaining: ", "t3_f1"},
		{hostile.RateHeaders("10000", "0.0", "99999"), false, 200, "X-Ratelimit-Reset: 99999", "t3_f1"},
		{hostile.ExpireToken(), false, 401, `Www-Authenticate: Bearer realm="reddit", error="invalid_token"`, "401"},
		{hostile.ExpireTokenHTML(), false, 401, "Content-Type: text/html; charset=UTF-8", "who goes there"},
		{hostile.InsufficientScope(), false, 403, `Www-Authenticate: Bearer realm="reddit", error="insufficient_scope"`, ""},
		{hostile.SlowBody(20 * time.Millisecond), true, 200, "Content-Length: " + strconv.Itoa(size), ""},
		{hostile.EmptyBody(), true, 200, "Content-Length: 0", ""},
		{hostile.RedirectTo("https://else.example/x"), true, 302, "Location: https://else.example/x", ""},
		{hostile.Placeholder404PNG(), true, 404, "Content-Type: image/png", "PNG"},
		{hostile.ImgurRemovedRedirect(), true, 302, "Location: https://i.imgur.com/removed.png", ""},
		{hostile.RegionBlock(), true, 200, "Content-Length: 34641", "PNG"},
		{hostile.OverCapacity(403), true, 403, "", "over capacity"},
	} {
		p.login()
		f := p.s.Fault(hostile.Fault{Post: "f1", Times: 1, Kind: tt.kind})
		ask := func() answer {
			if tt.image {
				return p.get(img)
			}
			return p.info("t3_f2", "t3_f1")
		}
		a := ask()
		name, value, _ := strings.Cut(tt.header, ": ")
		if a.StatusCode != tt.status || a.err != nil || name != "" && a.Header.Get(name) != value || !strings.Contains(string(a.body), tt.body) {
			t.Errorf("%v: %d %v %v %.200s", tt.kind, a.StatusCode, a.err, a.Header, a.body)
		}
		p.login()
		if a := ask(); a.StatusCode != 200 || f.Fired() != 1 {
			t.Errorf("%v: then %d, fired %d, want 200 and 1", tt.kind, a.StatusCode, f.Fired())
		}
		f.Clear()
	}
	log := p.s.Requests()
	if got := log[len(log)-3]; got.Fault != "over capacity" || got.Status != 403 || got.Auth != "none" || got.Host != "i.redd.it" {
		t.Errorf("logged as %+v", got)
	}
}

// After, Every and Times choose the requests; the fault armed first wins.
func TestFaultSchedule(t *testing.T) {
	p := start(t, Options{})
	p.login()
	f := p.s.Fault(hostile.Fault{Host: "oauth.reddit.com", After: 2, Every: 2, Times: 2, Kind: hostile.ServerError(500)})
	p.s.Fault(hostile.Fault{PathPrefix: "/api/info", After: 5, Kind: hostile.ServerError(502)})
	var got []int
	for range 8 {
		got = append(got, p.info("t3_a").StatusCode)
	}
	if want := []int{200, 200, 200, 500, 200, 500, 502, 502}; !slices.Equal(got, want) || f.Fired() != 2 {
		t.Errorf("statuses %v, fired %d, want %v, 2", got, f.Fired(), want)
	}
	p.s.ClearFaults()
	if a := p.info("t3_a"); a.StatusCode != 200 {
		t.Errorf("after ClearFaults: %d", a.StatusCode)
	}
}

func TestMisdirected(t *testing.T) {
	p := start(t, Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://i.redd.it/x.jpg", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "oauth.reddit.com"
	res, err := p.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("Host other than the name in the handshake: %d, want 421", res.StatusCode)
	}
	if got := p.s.Requests(); len(got) != 1 || got[0].Status != 421 {
		t.Errorf("log %+v", got)
	}
}

// A thing of any shape is refused or served; nothing panics.
func FuzzPutRecorded(f *testing.F) {
	s, err := hostile.Start(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	for _, seed := range []string{
		`{"kind":"t3","data":{"id":"a","url":"https://i.redd.it/a.jpg","media_metadata":{"m":{"s":{"u":"https://preview.redd.it/m.jpg?s=1"}}}}}`,
		`{"kind":"t3","data":{"id":"b","media_metadata":[],"preview":{"images":[null,{"source":3}]},"crosspost_parent_list":[{"url":"%"},7]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if s.PutRecorded(b, []byte("x")) == nil && !json.Valid(b) {
			t.Errorf("PutRecorded took %q", b)
		}
	})
}
