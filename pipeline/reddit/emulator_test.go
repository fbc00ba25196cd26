package reddit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
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
