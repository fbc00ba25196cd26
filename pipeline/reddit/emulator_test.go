package reddit_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// emulated starts an emulator and a client that reaches it as it would reach a mirror.
func emulated(t *testing.T) (*hostile.Server, *reddit.Client) {
	t.Helper()
	s, err := hostile.Start(redditemu.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	rule, err := reddit.ParseConnectTo(s.ConnectTo())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CAPEM()) {
		t.Fatal("the emulator's certificate cannot be read")
	}
	p := policy.Default()
	p.Reddit.RequestsPerMinute = 60e6
	for i := range p.Images.Hosts {
		p.Images.Hosts[i].RequestsPerSecond = 1e6
	}
	c, err := reddit.New(reddit.Options{
		Credentials: reddit.Credentials{ClientID: s.ClientID, ClientSecret: reddit.NewSecret(s.Secret), Username: "some_body"},
		Approval:    "test", Policy: p, ConnectTo: []reddit.ConnectTo{rule}, RootCAs: pool, RetryWait: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// TestScenario takes every state of a post and every ill answer of an image host that the
// emulator knows through Ask, Judge and Download.
func TestScenario(t *testing.T) {
	s, c := emulated(t)
	var names []manifest.PostID
	for i := range 500 {
		names = append(names, manifest.PostID(fmt.Sprintf("s%d", i)))
	}
	posts := redditemu.Scenario(names, 7)
	if err := s.Put(posts...); err != nil {
		t.Fatal(err)
	}
	conditions := map[redditemu.Condition]bool{}
	for batch := range slices.Chunk(posts, reddit.MaxAsk) {
		var asked []manifest.PostID
		for _, p := range batch {
			asked = append(asked, p.ID)
			conditions[p.Condition] = true
		}
		a, err := c.Ask(t.Context(), asked)
		if err != nil || len(a.Unclear) > 0 {
			t.Fatalf("Ask: unclear %v, %v", a.Unclear, err)
		}
		for _, p := range batch {
			checkPost(t, c, p, a)
		}
	}
	if len(conditions) != 18 {
		t.Errorf("only %d conditions were met: %v", len(conditions), conditions)
	}
	for _, r := range s.Requests() {
		want := map[string]string{"www.reddit.com": "basic", "oauth.reddit.com": "bearer"}[r.Host]
		if want == "" {
			want = "none"
		}
		if r.Auth != want || r.Referer != "" || !strings.Contains(r.UserAgent, "(by /u/some_body)") {
			t.Errorf("request %+v", r)
		}
	}
}

// checkPost compares what came of a post with what the emulator's author says it is. Of
// those that are plainly fine only the fields are looked at: drawing takes long.
func checkPost(t *testing.T, c *reddit.Client, p redditemu.Post, a reddit.Answer) {
	t.Helper()
	post, found := a.Posts[p.ID]
	if absent := slices.Contains(a.Absent, p.ID); absent == found || absent != (p.Want == manifest.StateUnavailable) {
		t.Errorf("%s (%s): absent is %v, found %v", p.ID, p.Condition, absent, found)
	}
	if !found {
		return
	}
	if v := policy.Judge(post.Facts); v.State != p.Want {
		t.Errorf("%s (%s %s): %v, want %s", p.ID, p.Kind, p.Condition, v, p.Want)
	}
	if p.Want != manifest.StateLive {
		return
	}
	cand := post.Image(0)
	switch p.WantOutcome {
	case manifest.Kept, manifest.NotEnglish, manifest.Unreadable, manifest.Duplicate:
		if urls := p.URLs(); cand.Fault != nil || cand.URL != urls[0] {
			t.Errorf("%s (%s): candidate %+v, want %s", p.ID, p.Kind, cand, urls[0])
		}
		return
	case "":
		return
	}
	d, err := c.Download(t.Context(), cand)
	var f *policy.Fault
	switch {
	case errors.As(err, &f):
		if f.Outcome != p.WantOutcome {
			t.Errorf("%s (%s): %v, want %s", p.ID, p.Kind, f, p.WantOutcome)
		}
	case err != nil:
		t.Errorf("%s: %v", p.ID, err)
	default: // half an image has a good header, and fails only when it is decoded
		if _, err := policy.DecodeImage(d.Body); err == nil || p.WantOutcome != manifest.Invalid {
			t.Errorf("%s (%s): downloaded and decoded, want %s", p.ID, p.Kind, p.WantOutcome)
		}
	}
}

// TestEmulatedImages downloads one image of each format and kind of post.
func TestEmulatedImages(t *testing.T) {
	s, c := emulated(t)
	posts := []redditemu.Post{
		{ID: "jpeg", Images: []redditemu.Image{{Spec: redditemu.Spec{Seed: 1}}}},
		{ID: "png", Images: []redditemu.Image{{Spec: redditemu.Spec{Seed: 2, Format: "png"}}}},
		{ID: "gif", Images: []redditemu.Image{{Spec: redditemu.Spec{Seed: 3, Format: "gif"}}}},
		{ID: "webp", Images: []redditemu.Image{{Spec: redditemu.Spec{Seed: 4, Format: "webp"}}}},
		{ID: "imgur", Kind: redditemu.KindImgur},
		{ID: "cross", Kind: redditemu.KindCrosspost},
		{ID: "gallery", Kind: redditemu.KindGallery, Images: []redditemu.Image{{Status: "failed"}, {Spec: redditemu.Spec{Seed: 5}, TitleSlug: true}, {NoMetadata: true}}},
	}
	if err := s.Put(posts...); err != nil {
		t.Fatal(err)
	}
	var asked []manifest.PostID
	for _, p := range posts {
		asked = append(asked, p.ID)
	}
	a, err := c.Ask(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range posts {
		i := 0
		if p.ID == "gallery" {
			i = 1
		}
		d, err := c.Download(t.Context(), a.Posts[p.ID].Image(i))
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}
		img, err := policy.DecodeImage(d.Body)
		if err != nil || img.Bounds().Dx() != d.Info.Width || img.Bounds().Dy() != d.Info.Height {
			t.Errorf("%s: decoded as %v, %v; the header says %v", p.ID, img, err, d.Info)
		}
		if slices.Contains([]string{"jpeg", "png", "gif", "webp"}, string(p.ID)) && d.Info.Format != string(p.ID) {
			t.Errorf("%s: the format is %s", p.ID, d.Info.Format)
		}
	}
	for i, want := range map[int]string{0: "gone/gallery_item_failed", 2: "gone/gallery_item_missing", 3: "gone/no_such_image"} {
		f := a.Posts["gallery"].Image(i).Fault
		if f == nil || string(f.Outcome)+"/"+string(f.Reason) != want {
			t.Errorf("gallery image %d: %v, want %s", i, f, want)
		}
	}
}

// TestFaults spoils answers in every way the emulator can, once: passing trouble is got
// over, and the rest is no verdict or stops the run.
func TestFaults(t *testing.T) {
	s, c := emulated(t)
	if err := s.Put(redditemu.Post{ID: "a1"}, redditemu.Post{ID: "b2", Condition: redditemu.Removed}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind hostile.FaultKind
		want string // reason of Unanswered or Denied, "" when the trouble passes
	}{
		{hostile.TooManyHTML(0), ""}, {hostile.TooManyJSON(), ""}, {hostile.TooManyEmpty(0), ""},
		{hostile.ForbiddenRetryAfter(0), ""}, {hostile.URITooLong(), ""}, {hostile.ServerError(500), ""},
		{hostile.ServerError(408), ""}, {hostile.ServerError(522), ""}, {hostile.Reset(), ""}, {hostile.TruncatedBody(), ""},
		{hostile.Status(401, nil, []byte("<html>"+strings.Repeat("x", 34<<10))), ""},
		{hostile.ExpireToken(), ""}, {hostile.ExpireTokenHTML(), ""}, {hostile.InsufficientScope(), "insufficient_scope"},
		{hostile.NoRateHeaders(), ""}, {hostile.RateHeaders("999", "1.0", "0"), ""}, {hostile.RateHeaders("x", "NaN", "-1e99"), ""},
		{hostile.ExtraChild(redditemu.Post{ID: "x9"}), ""}, {hostile.DuplicateChild(), ""},
		{hostile.TruncatedJSON(), ""}, {hostile.EmptyBody(), ""}, {hostile.HTML200(), ""},
		{hostile.EmptyListing(), "empty_listing"}, {hostile.LegalReasons(), "http_451"},
		{hostile.Status(404, http.Header{}, nil), "http_404"},
		{hostile.BlockedHTML(), "blocked"}, {hostile.NetworkSecurityHTML(), "blocked"}, {hostile.AdministrativeHTML(), "blocked"},
		{hostile.ForbiddenReason("private"), "forbidden"},
	} {
		armed := s.Fault(hostile.Fault{Host: "oauth.reddit.com", Times: 1, Kind: tt.kind})
		a, err := c.Ask(t.Context(), []manifest.PostID{"a1", "b2", "c3"})
		armed.Clear()
		if armed.Fired() != 1 {
			t.Errorf("%s: fired %d times", tt.kind, armed.Fired())
		}
		var none *reddit.Unanswered
		var denied *reddit.Denied
		switch {
		case tt.want == "":
			if err != nil || len(a.Posts) != 2 || !slices.Equal(a.Absent, []manifest.PostID{"c3"}) {
				t.Errorf("%s: Ask = %+v, %v; want it got over", tt.kind, a, err)
			}
		case errors.As(err, &none) && string(none.Reason) == tt.want:
		case errors.As(err, &denied) && string(denied.Reason) == tt.want:
		default:
			t.Errorf("%s: Ask = %+v, %v; want %s", tt.kind, a, err, tt.want)
		}
		for _, canary := range hostile.Canaries() {
			if s := fmt.Sprintf("%+v %v", a, err); strings.Contains(s, canary) {
				t.Errorf("%s: a canary came out: %s", tt.kind, s)
			}
		}
	}
}

// TestTokenFaults spoils the token endpoint's first answer.
func TestTokenFaults(t *testing.T) {
	for _, tt := range []struct {
		kind hostile.FaultKind
		want manifest.Reason // of Denied, "" when the trouble passes
	}{
		{hostile.OAuthError200("invalid_request"), "invalid_request"}, {hostile.OAuthError200("unsupported_grant_type"), "unsupported_grant_type"},
		{hostile.OAuthError200("unauthorized_client"), "unauthorized_client"}, {hostile.OAuthError200("invalid_scope"), "invalid_scope"},
		{hostile.BadCredentials(), "bad_credentials"}, {hostile.BlockedHTML(), "blocked"},
		{hostile.HTML200(), ""}, {hostile.TruncatedJSON(), ""}, {hostile.EmptyBody(), ""}, {hostile.TooManyJSON(), ""},
		{hostile.ServerError(503), ""}, {hostile.Reset(), ""}, {hostile.NoRateHeaders(), ""},
	} {
		s, c := emulated(t)
		if err := s.Put(redditemu.Post{ID: "a1"}); err != nil {
			t.Fatal(err)
		}
		armed := s.Fault(hostile.Fault{Host: "www.reddit.com", Times: 1, Kind: tt.kind})
		a, err := c.Ask(t.Context(), []manifest.PostID{"a1"})
		var denied *reddit.Denied
		if armed.Fired() != 1 || tt.want == "" && (err != nil || len(a.Posts) != 1) || tt.want != "" && (!errors.As(err, &denied) || denied.Reason != tt.want) {
			t.Errorf("%s: fired %d times, Ask = %+v, %v; want %q", tt.kind, armed.Fired(), a, err, tt.want)
		}
		s.Close()
	}
}

// TestEmulatedAbout asks why posts are absent.
func TestEmulatedAbout(t *testing.T) {
	s, c := emulated(t)
	for id, tt := range map[manifest.PostID]struct {
		condition redditemu.Condition
		want      policy.Community
	}{
		"a1": {redditemu.AbsentPrivate, policy.CommunityPrivate}, "a2": {redditemu.AbsentBanned, policy.CommunityBanned},
		"a3": {redditemu.AbsentQuarantined, policy.CommunityQuarantined}, "a4": {redditemu.AbsentGated, policy.CommunityGated},
		"a5": {redditemu.Absent, policy.CommunityOpen}, "a6": {redditemu.Live, policy.CommunityOpen},
	} {
		name := "sub_of_" + string(id)
		if err := s.Put(redditemu.Post{ID: id, Subreddit: name, Condition: tt.condition}); err != nil {
			t.Fatal(err)
		}
		if got, err := c.About(t.Context(), name); err != nil || got != tt.want {
			t.Errorf("%s: About = %q, %v; want %q", tt.condition, got, err, tt.want)
		}
	}
	if got, err := c.About(t.Context(), "nowhere"); err != nil || got != policy.CommunityMissing {
		t.Errorf("an unknown name: About = %q, %v", got, err)
	}
	a, err := c.Ask(t.Context(), []manifest.PostID{"a6"})
	if err != nil || a.Posts["a6"].Subreddit != "sub_of_a6" {
		t.Errorf("Ask = %+v, %v; want the post's subreddit", a, err)
	}
	if got := c.Calls(); got.About != 7 || got.Info != 1 || got.Token != 1 {
		t.Errorf("Calls = %+v", got)
	}
}
