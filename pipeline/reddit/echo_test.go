package reddit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"rehydrate/internal/secret"
	"rehydrate/policy"
)

// oddSecret changes its look in every encoding, and holds what looks like a tag.
const oddSecret = "CANARY+s3c<r>et/5d&1f=="

// ownWords are of no use to anybody but the host that says them.
const ownWords = "Quagga! Over capacity, blocked, client_id: authentication required"

// leaks finds what must not stand in a text, whatever its case.
func leaks(text string) string {
	text = strings.ToLower(text)
	for _, s := range []string{"canary", "quagga", "authentication required", "some_body", "client-id",
		base64.RawStdEncoding.EncodeToString([]byte("client-id:" + oddSecret))[:20],
		base64.RawStdEncoding.EncodeToString([]byte(oddSecret))[:20], "s3c", "5d%261f"} {
		if strings.Contains(text, strings.ToLower(s)) {
			return s
		}
	}
	return ""
}

// echoes are texts that an answer can hold: what was sent, in every encoding, and words of its own.
func echoes() map[string]string {
	basic := base64.StdEncoding.EncodeToString([]byte("client-id:" + oddSecret))
	return map[string]string{
		"own words": ownWords,
		"token":     canaryToken, "bearer": "Authorization: bearer " + canaryToken,
		"token in upper case": strings.ToUpper(canaryToken), "secret": oddSecret,
		"secret in a query": url.QueryEscape(oddSecret), "secret in a path": url.PathEscape(oddSecret),
		"lower case escapes": strings.ToLower(url.QueryEscape(oddSecret)),
		"entities":           strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(oddSecret),
		"id and secret":      "client-id:" + oddSecret, "basic": "Basic " + basic,
		"basic without end":    strings.TrimRight(basic, "="),
		"basic for URLs":       base64.URLEncoding.EncodeToString([]byte("client-id:" + oddSecret)),
		"basic in a query":     url.QueryEscape(basic),
		"base64 of the secret": base64.StdEncoding.EncodeToString([]byte(oddSecret)), "client id": "client-id",
		"user name": "some_body", "User-Agent": "linux:rehydrate:1.2.3 (by /u/Some_Body)",
		"profile": "r/u_some_body", "somebody else": "deleted by u/" + canaryName,
		"permalink":   "https://www.reddit.com/r/memes/comments/a1/" + canaryName,
		"unknown key": strings.Repeat("CANARY", 7), "a code": "canary_code",
	}
}

// TestEchoes: nothing of the text of an answer that is not used comes into an error, a fault or a log, whatever it
// says, wherever in the answer it stands, whatever the status and whoever was asked for what.
func TestEchoes(t *testing.T) {
	for name, echo := range echoes() {
		// net/http quotes an answer that it cannot read.
		answers := map[string]answer{"an error": {err: fmt.Errorf("malformed HTTP response %q", echo)}}
		for _, status := range []int{200, 401, 403, 404, 429, 500} {
			for shape, body := range map[string]string{
				"message": fmt.Sprintf(`{"message":%q,"error":400}`, echo),
				"reason":  fmt.Sprintf(`{"message":"Bad Request","reason":%q}`, "not good: "+echo),
				"error":   fmt.Sprintf(`{"error":%q,"error_description":%q}`, echo, echo),
				"other field": fmt.Sprintf(`{"message":"Bad Request","headers":{"Authorization":%q},"explanation":%q}`, echo,
					echo),
				"imgur": fmt.Sprintf(`{"data":{"error":{"message":%q},"link":%q},"status":403}`, echo, "https://"+echo),
				"title": "<html><title>400 " + echo + "</title><body>" + echo,
				"cut":   strings.Repeat(" ", maxScrap-len(echo)/2) + echo,
			} {
				if name == "own words" || shape == "message" || shape == "title" {
					answers[fmt.Sprintf("%s, status %d", shape, status)] = reply(status, body)
				}
			}
		}
		answers["headers"] = reply(403, "", "Retry-After", echo, "Www-Authenticate", echo, "Content-Type", "text/"+echo,
			"X-Ratelimit-Used", echo, "X-Ratelimit-Userreset", echo, "Content-Encoding", echo)
		bubble(t, name, func(t *testing.T) {
			for in, a := range answers {
				for of, check := range callsOf(a) {
					checkEcho(t, in+" of "+of, check)
				}
			}
		})
	}
}

// An echoing is a call whose answer comes from a host that echoes; all others answer well.
type echoing struct {
	host string
	call func(context.Context, *Client) error
	a    answer
}

func callsOf(a answer) map[string]echoing {
	ask := func(ctx context.Context, c *Client) error {
		_, err := c.Ask(ctx, ids("a1"))
		return err
	}
	fetch := func(url string) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error {
			_, err := c.Download(ctx, Candidate{URL: url})
			return err
		}
	}
	return map[string]echoing{
		"the token endpoint": {tokenHost, ask, a},
		"the listing":        {apiHost, ask, a},
		"a subreddit": {apiHost, func(ctx context.Context, c *Client) error {
			kind, err := c.About(ctx, "memes")
			return errors.Join(errors.New(string(kind)), err)
		}, a},
		"an image":         {"i.redd.it", fetch("https://i.redd.it/a.png"), a},
		"a file of imgur":  {imgurFileHost, fetch("https://i.imgur.com/abcdefg.png"), a},
		"an image's page":  {imgurAPIHost, fetch("https://imgur.com/abcdefg"), a},
		"an album's page":  {imgurAPIHost, fetch("https://imgur.com/a/AlbumID#0"), a},
		"its host's files": {imgurFileHost, fetch("https://imgur.com/a/AlbumID#0"), a},
	}
}

func checkEcho(t *testing.T, name string, e echoing) {
	t.Helper()
	var b strings.Builder
	o := logged(imgurOptions(), &b)
	o.ClientSecret, o.retryWait = secret.New(oddSecret), 1
	s := &script{play: func(_ int, r *http.Request) answer {
		host := r.URL.Hostname()
		switch {
		case host == e.host:
			return e.a
		case host == tokenHost:
			return tokenReply(3600)
		case host == imgurAPIHost:
			return reply(200, `{"data":{"images":[{"link":"https://i.imgur.com/abcdefg.png"}]},"success":true,"status":200}`)
		}
		return reply(200, "")
	}}
	c := s.client(t, o)
	c.o.Scrubber.LearnToken(canaryToken) // an old one, that has run out
	calls := 1
	if e.a.status == 500 {
		calls = 2*maxFailures + 1 // the host is left alone in the end
	}
	for range calls {
		err := e.call(t.Context(), c)
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		fmt.Fprintf(&b, "%v %#v\n", err, err)
		if f, ok := errors.AsType[*policy.Fault](err); ok {
			fmt.Fprintf(&b, "%#v\n", *f)
		}
	}
	if found := leaks(b.String()); found != "" {
		t.Errorf("%s: %q came out:\n%s", name, found, b.String())
	}
}

const redacted = "[redacted]"

// scrubbed is what a scrubber lets out of a text.
func scrubbed(t *testing.T, s *secret.Scrubber, text string) string {
	t.Helper()
	var out strings.Builder
	w := s.Writer(&out)
	_, err := w.Write([]byte(text))
	if flushed := w.Flush(); err != nil || flushed != nil {
		t.Fatal(err, flushed)
	}
	return out.String()
}

// TestScrubberLearnsFromClient: credentials when the client is made, and each token when it comes.
func TestScrubberLearnsFromClient(t *testing.T) {
	s := new(secret.Scrubber)
	var log strings.Builder
	o := testOptions()
	o.Scrubber, o.ImgurClientID = s, secret.New("canary-imgur")
	o.Log = slog.New(slog.NewTextHandler(s.Writer(&log), nil))
	c := (&script{play: func(_ int, r *http.Request) answer {
		if r.URL.Hostname() == tokenHost {
			return tokenReply(3600)
		}
		return reply(200, listingOf())
	}}).client(t, o)
	if got := scrubbed(t, s, o.ClientSecret.Reveal()+" canary-imgur"); got != redacted+" "+redacted {
		t.Errorf("after New: %q", got)
	}
	_, _ = c.Ask(t.Context(), ids("a1"))
	if got := scrubbed(t, s, "bearer "+canaryToken); got != "bearer "+redacted {
		t.Errorf("after the token came: %q", got)
	}
}
