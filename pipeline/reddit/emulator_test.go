package reddit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// emulated starts an emulator, and returns options that lead there.
func emulated(t *testing.T, posts ...redditemu.Post) (*hostile.Server, Options) {
	t.Helper()
	s, err := hostile.Start(redditemu.Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Put(posts...); err != nil {
		t.Fatal(err)
	}
	o := testOptions()
	o.Credentials = Credentials{ClientID: s.ClientID, ClientSecret: NewSecret(s.Secret), Username: "some_body"}
	lead(t, &o, s.ConnectTo(), s.CAPEM())
	return s, o
}

// TestScenario takes every state of a post and every ill answer of an image host that the
// emulator knows through Ask, Judge and Download.
func TestScenario(t *testing.T) {
	var names []manifest.PostID
	for i := range 500 {
		names = append(names, manifest.PostID(fmt.Sprintf("s%d", i)))
	}
	posts := redditemu.Scenario(names, 7)
	s, o := emulated(t, posts...)
	c := newTestClient(t, o)
	conditions := map[redditemu.Condition]bool{}
	for batch := range slices.Chunk(posts, MaxAsk) {
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
	auth := map[string]string{tokenHost: "basic", apiHost: "bearer"}
	for _, r := range s.Requests() {
		if want := auth[r.Host]; r.Auth != want && (want != "" || r.Auth != "none") || r.Referer != "" {
			t.Errorf("request %+v", r)
		}
	}
}

// checkPost compares what came of a post with what the emulator's author says it is. Of
// those that are plainly fine only the fields are looked at: drawing takes long.
func checkPost(t *testing.T, c *Client, p redditemu.Post, a Answer) {
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

// TestWireAnswers: what spoils one answer is got over, and what spoils all is no verdict, over TLS.
func TestWireAnswers(t *testing.T) {
	for _, tt := range []struct {
		kind hostile.FaultKind
		want manifest.Reason // when it stays
	}{
		{hostile.Reset(), "connection"}, {hostile.TruncatedBody(), "truncated"}, {hostile.TruncatedJSON(), "truncated_json"},
		{hostile.HTML200(), "html"}, {hostile.ServerError(522), "http_522"}, {hostile.ServerError(408), "http_408"},
		{hostile.TooManyHTML(0), "http_429"}, {hostile.ExpireTokenHTML(), "unauthorized"}, {hostile.EmptyListing(), ReasonEmptyListing},
	} {
		t.Run(tt.kind.String(), func(t *testing.T) {
			t.Parallel()
			s, o := emulated(t, redditemu.Post{ID: "a1"}, redditemu.Post{ID: "b2", Condition: redditemu.Removed})
			c := newTestClient(t, o)
			s.Fault(hostile.Fault{Host: apiHost, Times: 1, Kind: tt.kind})
			if tt.want != ReasonEmptyListing { // which only the caller can call trouble
				a, err := c.Ask(t.Context(), ids("a1", "b2", "c3"))
				if err != nil || len(a.Posts) != 2 || !slices.Equal(a.Absent, ids("c3")) || len(s.Requests()) > 5 {
					t.Errorf("Ask = %+v, %v after %d requests", a, err, len(s.Requests()))
				}
			}
			s.Fault(hostile.Fault{Host: apiHost, Kind: tt.kind})
			a, err := c.Ask(t.Context(), ids("a1", "b2", "c3"))
			var denied *Denied
			if noAnswer(err) != tt.want && (!errors.As(err, &denied) || denied.Reason != tt.want) {
				t.Errorf("Ask = %v, want %s", err, tt.want)
			}
			if len(a.Posts)+len(a.Absent)+len(a.Unclear) != 0 {
				t.Errorf("a failed Ask has verdicts: %+v", a)
			}
			for _, canary := range hostile.Canaries() {
				if strings.Contains(err.Error(), canary) {
					t.Errorf("a canary is in the error: %v", err)
				}
			}
		})
	}
}
