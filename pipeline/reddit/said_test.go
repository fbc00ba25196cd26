package reddit

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"rehydrate/internal/secret"
)

// oddSecret changes its look in every encoding, and holds what looks like a tag.
const oddSecret = "CANARY+s3c<r>et/5d&1f=="

// leaks finds what must not stand in a text, whatever its case.
func leaks(text string) string {
	text = strings.ToLower(text)
	for _, s := range []string{"canary", "some_body", "client-id",
		base64.RawStdEncoding.EncodeToString([]byte("client-id:" + oddSecret))[:20], base64.RawStdEncoding.EncodeToString([]byte(oddSecret))[:20], "s3c", "5d%261f"} {
		if strings.Contains(text, strings.ToLower(s)) {
			return s
		}
	}
	return ""
}

// TestEchoes: an answer that repeats its request brings nothing of it into an error or a log, wherever in the answer it
// stands and whatever the status.
func TestEchoes(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("client-id:" + oddSecret))
	for name, echo := range map[string]string{
		"token": canaryToken, "bearer": "Authorization: bearer " + canaryToken,
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
		"unknown key": strings.Repeat("CANARY", 7),
	} {
		// net/http quotes an answer that it cannot read.
		for _, host := range []string{tokenHost, apiHost} {
			checkEcho(t, name+" in an error", host, answer{err: fmt.Errorf("malformed HTTP response %q", echo)})
		}
		for shape, body := range map[string]string{
			"message":     fmt.Sprintf(`{"message":%q,"error":400}`, echo),
			"reason":      fmt.Sprintf(`{"message":"Bad Request","reason":%q}`, "not good: "+echo),
			"error":       fmt.Sprintf(`{"error":%q,"error_description":%q}`, echo, echo),
			"other field": fmt.Sprintf(`{"message":"Bad Request","headers":{"Authorization":%q},"explanation":%q}`, echo, echo),
			"title":       "<html><title>400 " + echo + "</title><body>" + echo,
			"page":        "<html><title>400</title><body>" + echo,
			"text":        echo,
			"cut":         strings.Repeat(" ", maxScrap-len(echo)/2) + echo,
		} {
			for _, status := range []int{200, 400, 401, 403, 404, 429, 500} {
				for _, host := range []string{tokenHost, apiHost} {
					checkEcho(t, name+" as "+shape, host, reply(status, body))
				}
			}
		}
	}
}

func checkEcho(t *testing.T, name, host string, a answer) {
	t.Helper()
	var b strings.Builder
	o := logged(testOptions(), &b)
	o.ClientSecret, o.retryWait = secret.New(oddSecret), 1
	s := &script{play: func(_ int, r *http.Request) answer {
		if r.URL.Hostname() == tokenHost && host != tokenHost {
			return tokenReply(3600)
		}
		return a
	}}
	c := s.client(t, o)
	if host == tokenHost {
		c.o.Scrubber.LearnToken(canaryToken) // an old one, that has run out
	}
	_, err := c.Ask(t.Context(), ids("a1"))
	if err == nil {
		t.Fatalf("%s: Ask succeeded", name)
	}
	fmt.Fprintf(&b, "%v %#v", err, err)
	if found := leaks(b.String()); found != "" {
		t.Errorf("%s, status %d of %s: %q came out:\n%s", name, a.status, host, found, b.String())
	}
}

// TestSaid: what remains is of use, short and printable.
func TestSaid(t *testing.T) {
	c := (&script{}).client(t, testOptions())
	for _, tt := range []struct{ body, want string }{
		{`{"message":"Forbidden","error":403,"reason":"private"}`, "Forbidden, 403, private"},
		{`{"error":"invalid_grant","error_description":"unsupported_response_type"}`, "invalid_grant, unsupported_response_type"},
		{`{"message":{"text":"x"},"error":null,"reason":["y"],"Message":"z"}`, ""},
		{"{\"message\":\"two\\nlines\\u001b[31m \\u202eand <b>tags</b>\"}", "two lines [31m and tags"},
		{`{"message":"` + strings.Repeat("no ", 100) + `"}`, strings.Repeat("no ", 53) + "n..."},
		{"<html><head><TITLE\n>Too &amp; Many</TITLE>", "Too & Many"},
		{"<html><title>never ends", ""},
		{"<html>no title", ""},
		{"plain text", ""},
		{"[1]", ""},
		{"", ""},
	} {
		if got := c.said(exchange{status: 400, body: []byte(tt.body)}); got != tt.want {
			t.Errorf("said(%q) = %q, want %q", tt.body, got, tt.want)
		}
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
