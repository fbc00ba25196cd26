package reddit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/redditemu"
	"rehydrate/policy"
)

// TestScenario takes every state of a post and every ill answer of an image host that the
// emulator knows through Ask, Judge and Download.
func TestScenario(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	s, c := w.emulator, w.client
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
		if r.Auth != want || r.Referer != "" || !strings.Contains(r.UserAgent, "(by /u/test_user)") {
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

// TestEmulatedAbout asks why posts are absent.
func TestEmulatedAbout(t *testing.T) {
	w := newWire(t, redditemu.Options{})
	s, c := w.emulator, w.client
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
