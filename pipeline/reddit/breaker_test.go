package reddit

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
)

// TestUnreachable: an API that only fails is asked less and less often, and then the run is
// stopped; a quarter of an hour later it may be asked again.
func TestUnreachable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		reason manifest.Reason
		wait   string // the reason of the pauses
		says   string
	}{
		{"429", reply(429, `{"message": "Too Many Requests", "error": 429}`), "http_429", waitRateLimit,
			"http_429; the host limits"},
		{"403 as a rate limit", reply(403, "<html>", "Retry-After", "0"), "http_403", waitRateLimit,
			"start again in an hour"},
		{"5xx", reply(503, "<title>Ow!</title>"), "http_503", waitServer, "http_503; the host has trouble of its own"},
		{"408", reply(408, ""), "http_408", waitServer, "trouble of its own"},
		{"no network", answer{err: errors.New("no route to host")}, "connection", waitNetwork, "see that the network"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var w []polite.Wait
			well := false
			s := api(func(int, *http.Request) answer {
				if well {
					return reply(200, listing("a1"))
				}
				return tt.answer
			})
			c := s.client(t, paceOptions(60e6, &w))
			start := time.Now()
			unreachable := func() bool {
				_, err := c.Ask(t.Context(), ids("a1"))
				shut, ok := errors.AsType[*Unreachable](err)
				if ok && (shut.Host != apiHost || shut.Reason != tt.reason || !strings.Contains(err.Error(), tt.says)) ||
					!ok && noAnswer(err) != tt.reason {
					t.Fatalf("Ask = %v, want Unanswered or Unreachable %s that says %q", err, tt.reason, tt.says)
				}
				return ok
			}
			for i := range 50 {
				if got, want := unreachable(), i >= maxFailures-1; got != want {
					t.Fatalf("Ask %d: unreachable is %v", i, got)
				}
			}
			// Half of 1, 2 and 4 s, by the test's jitter; after a 429 never less than 1 s.
			steps, rests := []float64{0, 0.5, 1.5, 3.5}, []float64{0, 16, 64, 256, 0}
			if tt.wait == waitRateLimit {
				rests[0] = 4
			}
			if tt.name == "429" {
				steps = []float64{0, 1, 2, 4}
			}
			var want []float64
			for at := 0.0; len(rests) > 0; rests = rests[1:] {
				for _, step := range steps {
					want = append(want, at+step)
				}
				at += steps[3] + rests[0]
			}
			s.askedAt(t, apiHost, start, want...)
			for _, told := range w {
				if told.Host != apiHost || told.For > 4*time.Second && told.Reason != tt.wait {
					t.Errorf("OnWait was told %v", told)
				}
			}
			time.Sleep(restFor - time.Second)
			if !unreachable() || len(s.times(apiHost, start)) != 20 {
				t.Error("asked again too early")
			}
			time.Sleep(time.Second)
			if !unreachable() || len(s.times(apiHost, start)) != 24 { // one call shuts it again
				t.Errorf("%d requests after the rest, want 24", len(s.times(apiHost, start)))
			}
			time.Sleep(restFor)
			well = true
			if _, err := c.Ask(t.Context(), ids("a1")); err != nil {
				t.Error(err)
			}
			well = false
			if unreachable() {
				t.Error("an answer did not end the row of failures")
			}
		})
	}
}

// TestUselessAnswers: what is whole HTTP and no answer of Reddit's API is asked for again a few
// times, then gives no verdict, and when it goes on stops the run with what was wrong.
func TestUselessAnswers(t *testing.T) {
	whole := listing("a1")
	for _, tt := range []struct {
		name   string
		answer answer
		reason manifest.Reason
		asked  int // requests of each call
		says   string
	}{
		{"html", reply(200, "<html><title>Our CDN was unable to reach our servers</title>"), "html", 4,
			"a page in place of JSON;"},
		{"truncated", reply(200, whole[:len(whole)-9]), "truncated_json", 4, "breaks off"},
		{"no JSON", reply(200, "ok"), "bad_json", 4, "at byte"},
		{"deeper than anything", reply(200, `{"kind":"Listing","data":`+strings.Repeat("[", 1e5)+strings.Repeat("]",
			1e5)+`}`), "bad_json", 4, "not JSON at byte"},
		{"not a listing", reply(200, `{"message":"hello"}`), "not_a_listing", 4, "not a listing"},
		{"too large", reply(200, strings.Repeat(" ", maxInfoBody+1)), "too_large", 1, "longer than"},
		{"not found", reply(404, `{"message":"Not Found"}`), "http_404", 1, "http_404;"},
		{"451", reply(451, ""), "http_451", 1, "start again later"},
		{"moved", reply(302, "", "Location", "https://www.reddit.com/"), "http_302", 1, "start again later"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var w []polite.Wait
			s := api(func(int, *http.Request) answer { return tt.answer })
			o := paceOptions(60e6, &w)
			o.retryWait = 10 * time.Second // so that every wait is told
			c := s.client(t, o)
			for i := 1; i < maxFailures; i++ {
				_, err := c.Ask(t.Context(), ids("a1"))
				if noAnswer(err) != tt.reason || c.Calls().Info != i*tt.asked {
					t.Fatalf("Ask = %v after %+v, want Unanswered %s and %d requests", err, c.Calls(), tt.reason, i*tt.asked)
				}
			}
			_, err := c.Ask(t.Context(), ids("a1"))
			var shut *Unreachable
			if !errors.As(err, &shut) || shut.Reason != tt.reason || !strings.Contains(err.Error(), tt.says) ||
				!strings.Contains(err.Error(), uselessHint) {
				t.Errorf("Ask = %v, want Unreachable %s that says %q", err, tt.reason, tt.says)
			}
			for _, told := range w {
				if told.Reason != waitServer {
					t.Errorf("OnWait was told %v", told)
				}
			}
		})
	}
}

// TestEmptyListingIsAnAnswer: only the caller can tell what it means, so it is not repeated
// and no failure.
func TestEmptyListingIsAnAnswer(t *testing.T) {
	s := api(func(int, *http.Request) answer { return reply(200, listingOf()) })
	c := s.client(t, testOptions())
	for i := range 3 * maxFailures {
		_, err := c.Ask(t.Context(), ids("a1"))
		if noAnswer(err) != ReasonEmptyListing || c.Calls().Info != i+1 {
			t.Fatalf("Ask = %v after %+v", err, c.Calls())
		}
	}
}

// TestTokenHostUnreachable: the token endpoint is counted on its own.
func TestTokenHostUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{play: func(int, *http.Request) answer { return reply(429, "") }}
		c := s.client(t, testOptions())
		var err error
		for range maxFailures + 10 {
			_, err = c.Ask(t.Context(), ids("a1"))
		}
		var shut *Unreachable
		if !errors.As(err, &shut) || shut.Host != tokenHost || len(s.seen) != maxFailures*(retries+1) {
			t.Errorf("Ask = %v after %d requests", err, len(s.seen))
		}
	})
}

// TestOneImagesTrouble: what says nothing of the host does not close it.
func TestOneImagesTrouble(t *testing.T) {
	for want, a := range map[string]answer{
		"gone/http_404": reply(404, ""), "invalid/too_large": reply(200, strings.Repeat("x", 1000)),
		"invalid/not_an_image_html": reply(200, "<html>"), "failed/bad_redirect": reply(302, ""),
	} {
		o := testOptions()
		o.Policy.Images.MaxBytes = 500
		c := (&script{play: func(int, *http.Request) answer { return a }}).client(t, o)
		for range 3 * maxFailures {
			download(t, c, "https://i.redd.it/a.png", want)
		}
	}
}
