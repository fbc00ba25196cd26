package reddit

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// describe writes candidates short: a URL, or outcome/reason.
func describe(images []Candidate) []string {
	var out []string
	for _, c := range images {
		if c.Fault != nil {
			out = append(out, string(c.Fault.Outcome)+"/"+string(c.Fault.Reason))
		} else {
			out = append(out, c.URL)
		}
	}
	return out
}

func TestFindImages(t *testing.T) {
	const gallery = `"is_gallery":true,"url":"https://www.reddit.com/gallery/x","gallery_data":{"items":[%]},"media_metadata":{` +
		`"jpg":{"status":"valid","e":"Image","m":"image/jpg","s":{"u":"https://preview.redd.it/jpg.jpg?width=10&format=pjpg&s=ab"}},` +
		`"amp":{"status":"valid","e":"Image","m":"image/png","s":{"u":"https://preview.redd.it/amp.png?width=10&amp;s=ab"}},` +
		`"mime":{"status":"valid","e":"Image","m":"image/png","s":{"u":"https://preview.redd.it/mime.jpg?s=ab"}},` +
		`"slug":{"status":"valid","e":"Image","m":"image/jpeg","s":{"u":"https://preview.redd.it/some-title-v0-abc123.jpeg?s=ab"}},` +
		`"gif":{"status":"valid","e":"AnimatedImage","m":"image/gif","s":{"gif":"https://i.redd.it/gif.gif","mp4":"https://preview.redd.it/gif.gif?format=mp4"}},` +
		`"video":{"status":"valid","e":"RedditVideo"},"failed":{"status":"failed"},"soon":{"status":"unprocessed","e":"Image"},` +
		`"bare":{"status":"valid","e":"Image","m":"image/jpg"},` +
		`"away":{"status":"valid","e":"Image","m":"image/jpg","s":{"u":"https://evil.example/a.jpg"}}}`
	items := func(names ...string) string {
		var list []string
		for _, n := range names {
			list = append(list, `{"media_id":"`+n+`","id":1}`)
		}
		return strings.Replace(gallery, "%", strings.Join(list, ","), 1)
	}
	tests := []struct {
		name, data string
		want       []string
	}{
		{"direct", `"url":"https://i.redd.it/abc.jpeg"`, []string{"https://i.redd.it/abc.jpeg"}},
		{"destination first", `"url":"https://example.com/","url_overridden_by_dest":"https://i.redd.it/abc.png"`,
			[]string{"https://i.redd.it/abc.png"}},
		{"http, query and fragment", `"url":"http://i.redd.it/abc.png?x=1#y"`, []string{"https://i.redd.it/abc.png"}},
		{"host in capitals, with a dot", `"url":"HTTPS://I.Redd.It./abc.png"`, []string{"https://i.redd.it/abc.png"}},
		{"slug", `"url":"https://i.redd.it/god-bless-the-king-v0-xuae6nj1e7vd1.jpeg"`,
			[]string{"https://i.redd.it/xuae6nj1e7vd1.jpeg"}},
		{"preview link", `"url":"https://preview.redd.it/abc.png?width=640&amp;s=00"`,
			[]string{"https://i.redd.it/abc.png"}},
		{"preview of another kind", `"url":"https://preview.redd.it/award_images/t5_x/a.png?width=16&s=00"`,
			[]string{"https://preview.redd.it/award_images/t5_x/a.png?width=16&s=00"}},
		{"preview with a title", `"url":"https://preview.redd.it/some-title-v0-abc123.png?width=640&s=00"`,
			[]string{"https://i.redd.it/abc123.png"}},
		{"external preview", `"url":"https://external-preview.redd.it/a.png?s=00"`, []string{"refused/host_not_allowed"}},
		{"legacy upload", `"url":"https://i.reddituploads.com/0123456789abcdef?fit=max&h=1536&w=1536&s=00"`,
			[]string{"refused/host_not_allowed"}},
		{"preview field of a post without a URL",
			`"url":"","preview":{"enabled":true,"images":[{"source":{"url":"https://preview.redd.it/abc.png?s=00"}}]}`,
			[]string{"no_media/no_url"}},
		{"preview field of a page",
			`"url":"https://example.com/","preview":{"images":[{"source":{"url":"https://external-preview.redd.it/abc.png?s=00"}}]}`, []string{"no_media/link"}},
		{"preview field of a video",
			`"url":"https://v.redd.it/abc","is_video":true,"preview":{"images":[{"source":{"url":"https://preview.redd.it/abc.png?s=00"}}]}`, []string{"no_media/video"}},
		{"null fields",
			`"url":"https://i.redd.it/abc.png","url_overridden_by_dest":null,"post_hint":null,"is_self":null,"is_video":null,"is_gallery":null,"crosspost_parent_list":null,"gallery_data":null,"media_metadata":null`, []string{"https://i.redd.it/abc.png"}},
		{"imgur direct", `"url":"http://i.imgur.com/abcdefg.jpg?1"`, []string{"https://i.imgur.com/abcdefg.jpg"}},
		{"imgur without an extension", `"url":"http://i.imgur.com/bsSFFxG"`, []string{"https://i.imgur.com/bsSFFxG.jpg"}},
		{"imgur file at the page's host", `"url":"http://www.imgur.com/bcvSSgM.jpg"`,
			[]string{"https://i.imgur.com/bcvSSgM.jpg"}},
		{"imgur thumbnail", `"url":"https://i.imgur.com/abcdefgm.jpg"`, []string{"https://i.imgur.com/abcdefg.jpg"}},
		{"imgur thumbnail without an extension", `"url":"https://i.imgur.com/abcdefgh"`,
			[]string{"https://i.imgur.com/abcdefg.jpg"}},
		{"imgur id that is not a thumbnail's", `"url":"https://i.imgur.com/abcdefgx.jpg"`,
			[]string{"https://i.imgur.com/abcdefgx.jpg"}},
		{"imgur id of 7 that ends like a thumbnail", `"url":"https://i.imgur.com/abcdefm.jpg"`,
			[]string{"https://i.imgur.com/abcdefm.jpg"}},
		{"imgur id of 6 that may be a thumbnail's", `"url":"https://i.imgur.com/abcdem.jpg"`,
			[]string{"https://i.imgur.com/abcdem.jpg"}},
		{"imgur's API", `"url":"https://api.imgur.com/3/image/abcdefg.jpg"`, []string{"no_media/link"}},
		{"gifv of a page's host", `"url":"https://imgur.com/9EKhBNa.gifv"`, []string{"no_media/video"}},
		{"gifv", `"url":"https://i.imgur.com/9EKhBNa.gifv"`, []string{"no_media/video"}},
		{"gfycat", `"url":"https://gfycat.com/SomeOldThing","post_hint":"rich:video"`, []string{"no_media/video"}},
		{"reddit video", `"url":"https://v.redd.it/abc","is_video":true`, []string{"no_media/video"}},
		{"reddit video without its mark", `"url":"https://v.redd.it/abc"`, []string{"no_media/video"}},
		{"youtube", `"url":"https://www.youtube.com/watch?v=x"`, []string{"no_media/video"}},
		{"text", `"is_self":true,"url":"https://www.reddit.com/r/x/comments/y/z/"`, []string{"no_media/self_post"}},
		{"page", `"url":"https://example.com/story"`, []string{"no_media/link"}},
		{"other post", `"url":"/r/x/comments/y/z/"`, []string{"no_media/link"}},
		{"nothing", `"url":""`, []string{"no_media/no_url"}},
		{"image elsewhere", `"url":"https://some-name.tumblr.com/a.JPG?x"`, []string{"refused/host_not_allowed"}},
		{"image elsewhere by its hint", `"url":"https://host.example/a","post_hint":"image"`,
			[]string{"refused/host_not_allowed"}},
		{"host that only looks right", `"url":"https://i.redd.it.example.com/a.jpg"`, []string{"refused/host_not_allowed"}},
		{"user information", `"url":"https://i.redd.it@evil.example/a.jpg"`, []string{"refused/host_not_allowed"}},
		{"user information at the right host", `"url":"https://u:p@i.redd.it/a.jpg"`, []string{"refused/url_userinfo"}},
		{"port", `"url":"https://i.redd.it:8443/a.jpg"`, []string{"refused/url_port"}},
		{"port of http", `"url":"http://i.redd.it:80/a.jpg"`, []string{"https://i.redd.it/a.jpg"}},
		{"file", `"url":"file:///etc/passwd.jpg"`, []string{"no_media/link"}},
		{"no URL", `"url":"https://[::1/%zz"`, []string{"refused/bad_url"}},
		{"gallery in order", items("gif", "jpg", "mime", "amp"),
			[]string{"https://i.redd.it/gif.gif", "https://i.redd.it/jpg.jpg", "https://i.redd.it/mime.png",
				"https://i.redd.it/amp.png"}},
		{"gallery items null", `"is_gallery":true,"gallery_data":{"items":null},"media_metadata":{}`,
			[]string{"no_media/gallery_missing"}},
		{"gallery of null fields",
			`"is_gallery":true,"gallery_data":{"items":[{"media_id":null},{"media_id":"a","is_deleted":null}]},"media_metadata":{"a":null}`, []string{"gone/gallery_item_missing", "gone/gallery_item_failed"}},
		{"gallery source null",
			`"is_gallery":true,"gallery_data":{"items":[{"media_id":"a"}]},"media_metadata":{"a":{"status":"valid","e":"Image","m":null,"s":null}}`, []string{"failed/gallery_item_no_source"}},
		{"animation without its source",
			`"is_gallery":true,"gallery_data":{"items":[{"media_id":"a"}]},"media_metadata":{"a":{"status":"valid","e":"AnimatedImage","m":"image/gif","s":{"mp4":"https://preview.redd.it/a.gif?format=mp4&s=0"},"p":[{"u":"https://preview.redd.it/a.gif?width=108&s=0"}]}}`, []string{"failed/gallery_item_no_source"}},
		{"gallery slug", items("slug"), []string{"https://i.redd.it/abc123.jpg"}},
		{"gallery faults keep their places", items("failed", "jpg", "soon", "none", "video", "bare", "away"),
			[]string{"gone/gallery_item_failed", "https://i.redd.it/jpg.jpg",
				"failed/gallery_item_unprocessed", "gone/gallery_item_missing", "no_media/video",
				"failed/gallery_item_no_source", "refused/host_not_allowed"}},
		{"deleted item",
			`"is_gallery":true,"gallery_data":{"items":[{"media_id":"a","is_deleted":true},{"media_id":"b"}]},"media_metadata":{"a":{"status":"valid"}}`,
			[]string{"gone/gallery_item_deleted", "gone/gallery_item_missing"}},
		{"all items deleted, one after the other, and the post not",
			`"is_gallery":true,"gallery_data":{"items":[{"media_id":"a","is_deleted":true},{"media_id":"b","is_deleted":true}]},"media_metadata":{"a":{"status":"valid"}}`,
			[]string{"gone/gallery_item_deleted", "gone/gallery_item_deleted"}},
		{"gallery without metadata",
			`"is_gallery":true,"gallery_data":{"items":[{"media_id":"a"},{"media_id":"b"}]},"media_metadata":null`,
			[]string{"gone/gallery_item_missing", "gone/gallery_item_missing"}},
		{"malformed", `"gallery_data":"?"`, []string{"failed/malformed_media"}},
		{"crosspost of an image",
			`"url":"https://example.com/","crosspost_parent_list":[{"author":"x","url":"https://i.redd.it/parent.png"}]`,
			[]string{"https://i.redd.it/parent.png"}},
		{"crosspost of a gallery", `"crosspost_parent_list":[{"author":"x",` + items("jpg", "gif") + `}]`,
			[]string{"https://i.redd.it/jpg.jpg", "https://i.redd.it/gif.gif"}},
		{"crosspost of a text",
			`"url":"https://i.redd.it/own.png","crosspost_parent_list":[{"author":"x","is_self":true}]`,
			[]string{"https://i.redd.it/own.png"}},
		{"crosspost of a removed post",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"x","removed_by_category":"moderator","url":"https://i.redd.it/parent.png"}]`, []string{"gone/crosspost_parent_removed"}},
		{"crosspost of a deleted post",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"[deleted]","is_robot_indexable":false,"url":"https://i.redd.it/parent.png"}]`, []string{"gone/crosspost_parent_removed"}},
		{"crosspost of a quarantined post",
			`"crosspost_parent_list":[{"author":"x","quarantine":true,"url":"https://i.redd.it/parent.png"}]`,
			[]string{"refused/crosspost_parent_held"}},
		{"crosspost of a deleted post that names itself",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"[deleted]","selftext":"[deleted]","removed_by_category":"deleted","url":"https://www.reddit.com/r/a/comments/1abc/x/"}]`, []string{"gone/crosspost_parent_removed"}},
		{"crosspost of a deleted post that is a text now",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"[deleted]","removed_by_category":"deleted","is_self":true,"url":"https://i.redd.it/parent.png"}]`, []string{"gone/crosspost_parent_removed"}},
		{"crosspost of a post that Reddit took down",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"x","title":"[ Removed by Reddit ]","removed_by_category":"content_takedown","is_self":true}]`, []string{"gone/crosspost_parent_removed"}},
		{"crosspost of a post whose text says that Reddit took it down",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"x","url":"https://i.redd.it/parent.png",` +
				`"selftext":"[ Removed by Reddit on account of violating the [content policy](/help/contentpolicy). ]"}]`,
			[]string{"gone/crosspost_parent_removed"}},
		{"crosspost of a deleted post with malformed media",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"x","removed_by_category":"deleted","gallery_data":"?"}]`, []string{"gone/crosspost_parent_removed"}},
		{"crosspost of a quarantined text",
			`"url":"https://i.redd.it/parent.png","crosspost_parent_list":[{"author":"x","quarantine":true,"is_self":true}]`, []string{"refused/crosspost_parent_held"}},
		{"crosspost that tells of its post and of one that was deleted",
			`"crosspost_parent":"t3_1abc","crosspost_parent_list":[` +
				`{"author":"x","id":"1abc","url":"https://i.redd.it/parent.png"},{"author":"[deleted]","id":"2def","removed_by_category":"deleted"}]`, []string{"https://i.redd.it/parent.png"}},
		{"crosspost that tells of another post, which was deleted",
			`"crosspost_parent":"t3_1abc","url":"https://i.redd.it/parent.png","crosspost_parent_list":[` +
				`{"author":"[deleted]","id":"2def","removed_by_category":"deleted"}]`, []string{"failed/malformed_media"}},
		{"crosspost of a malformed post", `"url":"https://i.redd.it/own.png","crosspost_parent_list":[7]`,
			[]string{"failed/malformed_media"}},
	}
	for _, tt := range tests {
		images := findImages(json.RawMessage("{"+tt.data+"}"), policy.Default())
		if diff := gocmp.Diff(tt.want, describe(images)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		for _, c := range images {
			checkHost(t, tt.name, c, policy.Default())
			if c.Fault != nil && (strings.Contains(c.Fault.Detail, "/") || strings.Contains(c.Fault.Detail, "some-name")) {
				t.Errorf("%s: the detail tells too much: %q", tt.name, c.Fault.Detail)
			}
		}
	}
}

// TestFindImagesUnderAnotherPolicy: a signed query is kept byte for byte where it is needed, but for the entities that
// stand for its ampersands.
// TestParent: an image that a crosspost shows names the post that it is of; one of its own names none.
func TestParent(t *testing.T) {
	const own, parent = `"url":"https://i.redd.it/abc.png"`, `"crosspost_parent_list":[{"author":"a","id":"1ldm3ke",`
	for data, want := range map[string]manifest.PostID{
		own: "",
		own + "," + parent + `"url":"https://i.redd.it/abc.png"}]`: "1ldm3ke",
		own + "," + parent + `"is_self":true}]`:                    "",
		parent + `"url":"https://imgur.com/a/abcdefg"}]`:           "1ldm3ke",
	} {
		c := Post{Images: findImages(json.RawMessage("{"+data+"}"), policy.Default())}.Image(0)
		if c.Parent != want {
			t.Errorf("%s: of %q, want %q", data, c.Parent, want)
		}
	}
}

func TestFindImagesUnderAnotherPolicy(t *testing.T) {
	const preview, external, legacy = "preview.redd.it", "external-preview.redd.it", "i.reddituploads.com"
	for _, tt := range []struct{ only, link, want string }{ // "" as the link
		{preview, "https://preview.redd.it/abc.png?width=640&s=00", ""},
		{preview, "https://i.redd.it/abc.png", "refused/host_not_allowed"},
		{preview, "https://imgur.com/abcdefg.png", "refused/host_not_allowed"},
		{"i.redd.it", "https://preview.redd.it/abc.png?width=640&s=00", "https://i.redd.it/abc.png"},
		{"i.redd.it", "https://preview.redd.it/a/abc.png?s=00", "refused/host_not_allowed"},
		{external, "https://external-preview.redd.it/a-B_c.jpg?width=640&crop=smart&format=pjpg&s=0123456789abcdef", ""},
		{external, "https://external-preview.redd.it/a.jpg?auto=webp&amp;s=ab",
			"https://external-preview.redd.it/a.jpg?auto=webp&s=ab"},
		{external, "https://external-preview.redd.it/a%2Fb.jpg?s=ab%2fcd&&x=%7E+y&empty=", ""},
		{external, "http://external-preview.redd.it/a?s=ab#part", "https://external-preview.redd.it/a?s=ab"},
		{legacy, "https://i.reddituploads.com/0123456789abcdef?fit=max&h=1536&w=1536&s=0123456789abcdef", ""},
	} {
		p := policy.Default()
		p.Images.Hosts = []policy.Host{{Name: tt.only, RequestsPerSecond: 1, Concurrency: 1}}
		c := classify(tt.link, "", false, p)
		if got := describe([]Candidate{c}); got[0] != cmp.Or(tt.want, tt.link) {
			t.Errorf("%s: %s, want %s", tt.link, got[0], tt.want)
		}
		checkHost(t, tt.link, c, p)
	}
}

// checkHost: a candidate's host is the one that is asked first, and the policy names it.
func checkHost(t *testing.T, name string, c Candidate, p policy.Policy) {
	t.Helper()
	if c.Fault != nil {
		if c.URL != "" || c.Host != "" {
			t.Errorf("%s: a faulty candidate names %q at %q", name, c.URL, c.Host)
		}
		return
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	want := u.Host
	if want == "imgur.com" {
		want = imgurAPIHost
	}
	if h, ok := p.Host(c.Host); !ok || h.Name != c.Host || c.Host != want {
		t.Errorf("%s: the host of %s is %q", name, c.URL, c.Host)
	}
}

func TestPostImage(t *testing.T) {
	one := Post{Images: []Candidate{{URL: "u"}}}
	none := Post{Images: []Candidate{fault(manifest.NoMedia, "video", "")}}
	lone := Post{Images: []Candidate{fault(manifest.Gone, policy.LeftGallery, "")}}
	album := Post{Images: []Candidate{{URL: "https://imgur.com/a/AbC12#0", Host: imgurAPIHost}}}
	page := Post{Images: []Candidate{{URL: "https://imgur.com/AbC12", Host: imgurAPIHost}}}
	for _, tt := range []struct {
		post Post
		i    int
		want string
	}{
		{one, 0, "u"}, {one, 1, "gone/no_such_image"}, {one, -1, "gone/no_such_image"}, {none, 0, "no_media/video"},
		{none, 3, "no_media/video"}, {lone, 0, "gone/gallery_item_deleted"}, {lone, 1, "gone/no_such_image"},
		{Post{}, 0, "gone/no_such_image"}, {album, 7, "https://imgur.com/a/AbC12#7"}, {album, -1, "gone/no_such_image"},
		{page, 1, "gone/no_such_image"},
	} {
		if got := describe([]Candidate{tt.post.Image(tt.i)}); got[0] != tt.want {
			t.Errorf("Image(%d) of %v = %s, want %s", tt.i, describe(tt.post.Images), got[0], tt.want)
		}
	}
}

// TestImageFrom: a mark in a gallery is of an image, by its media id, and not of the place of a stored one.
func TestImageFrom(t *testing.T) {
	source := func(url string) string { return Candidate{URL: url}.Source() }
	const a, b, gone, alone = "https://i.redd.it/a.png", "https://i.redd.it/b.jpg", `{"media_id":"a","is_deleted":true}`,
		`{"media_id":"b"}`
	for _, tt := range []struct {
		name, items string
		i           int
		source      string
		want        string
		other       string
	}{
		{"its own mark", gone + "," + alone, 0, source(a), "gone/gallery_item_deleted", ""},
		{"its own mark, elsewhere", alone + "," + gone, 0, source(a), "gone/gallery_item_deleted", ""},
		{"its own mark, and no place", alone + "," + gone, 5, source(a), "gone/gallery_item_deleted", ""},
		{"another one's mark in its place", alone + "," + gone, 1, source(b), "changed/another_image", ""},
		{"another one in its place", alone + "," + gone, 0, source("https://i.redd.it/c.jpg"), b, ""},
		{"not known whence", alone + "," + gone, 1, "", "gone/gallery_item_deleted", ""},
		{"its own place", alone + "," + gone, 0, source(b), b, ""},
		{"of another policy", alone + "," + gone, 0, source("https://preview.redd.it/a.webp"), "gone/gallery_item_deleted", ""},
		{"not known whence, and of another entry", alone + "," + gone, 1, "", "changed/another_image", source(a)},
		{"not known whence, and another one is", alone + "," + gone, 1, "", "gone/gallery_item_deleted", source(b)},
	} {
		images := findImages(json.RawMessage(`{"is_gallery":true,"gallery_data":{"items":[`+tt.items+`]},"media_metadata":{`+
			`"b":{"status":"valid","e":"Image","m":"image/jpg","s":{"u":"https://preview.redd.it/b.jpg?s=ab"}}}}`),
			policy.Default())
		c := Post{Images: images}.ImageFrom(tt.i, tt.source, slices.Values([]string{tt.other}))
		if got := describe([]Candidate{c}); got[0] != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got[0], tt.want)
		}
	}
}

// TestRecordedThings holds what the API really answered against states that were read off the decision table by hand.
func TestRecordedThings(t *testing.T) {
	states, err := os.ReadFile("testdata/reddit-states.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(states)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[manifest.PostID]policy.Verdict{}, map[manifest.PostID]policy.Verdict{}
	for _, row := range rows[1:] {
		want[manifest.PostID(row[0])] = policy.Verdict{State: manifest.PostState(row[1]), Reason: manifest.Reason(row[2])}
	}
	things, err := os.ReadFile("testdata/reddit-things.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	p := policy.Default()
	for line := range bytes.Lines(things) {
		id, _, ok := identify(line)
		a, err := readChildren([]json.RawMessage{line}, []manifest.PostID{id}, p)
		post, found := a.Posts[id]
		if !ok || err != nil || !found {
			t.Fatalf("%s: %+v, %v", line, a, err)
		}
		got[id] = policy.Judge(post.Facts)
		for _, c := range post.Images {
			if u, err := url.Parse(c.URL); c.Fault == nil && (err != nil || u.Scheme != "https" || u.RawQuery != "") {
				t.Errorf("%s: candidate %s", id, c.URL)
			}
			checkHost(t, string(id), c, p)
		}
		if post.Facts.HasMedia != hasMedia(post.Images) {
			t.Errorf("%s: HasMedia is %v for %v", id, post.Facts.HasMedia, describe(post.Images))
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" || len(got) != 291 {
		t.Errorf("%d states (-want +got):\n%s", len(got), diff)
	}
}

// TestDomain: a fault names a host that is known in full, and of any other what cannot be the name of a user.
func TestDomain(t *testing.T) {
	for host, want := range map[string]string{
		"i.redd.it": "i.redd.it", "i.imgur.com": "i.imgur.com", "v.redd.it": "v.redd.it",
		"some-name.example.com": "example.com", "127.0.0.1": "the host", "xn--a_b.com": "the host",
	} {
		testkit.Same(t, host, want, domain(host))
	}
}
