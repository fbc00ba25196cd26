package reddit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	o.ClientSecret, o.retryWait = NewSecret(oddSecret), 1
	s := &script{play: func(_ int, r *http.Request) answer {
		if r.URL.Hostname() == tokenHost && host != tokenHost {
			return tokenReply(3600)
		}
		return a
	}}
	c := s.client(t, o)
	if host == tokenHost {
		c.o.Scrubber.learnToken(canaryToken) // an old one, that has run out
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

// scrubbed writes text in the pieces that cuts makes of it, and returns what came out.
func scrubbed(t *testing.T, s *Scrubber, text string, cuts ...int) string {
	t.Helper()
	var out bytes.Buffer
	w := s.Writer(&out)
	from := 0
	for _, to := range append(cuts, len(text)) {
		if n, err := w.Write([]byte(text[from:to])); err != nil || n != to-from {
			t.Fatalf("Write = %d, %v, want %d", n, err, to-from)
		}
		from = to
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestScrubber: a secret is taken out in every form, also when it comes in two writes, at
// whichever byte they part, or one byte a write; what stands around it stays.
func TestScrubber(t *testing.T) {
	for _, secret := range []string{canarySecret, oddSecret, "six666", `q"u\o<t>e&'d`, strings.Repeat("x", 40) + "y"} {
		s := new(Scrubber)
		s.learn(secret)
		encode := func(e *base64.Encoding) string { return e.EncodeToString([]byte(secret)) }
		js, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{secret, secret + secret, url.QueryEscape(secret), lowered(url.QueryEscape(secret)),
			url.PathEscape(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("%q", secret), string(js),
			html.EscapeString(secret), encode(base64.RawStdEncoding), encode(base64.RawURLEncoding),
			url.QueryEscape(encode(base64.StdEncoding))} {
			line := "before " + text + " after\n"
			whole := scrubbed(t, s, line)
			if strings.Contains(whole, text) || !strings.Contains(whole, redacted) ||
				!strings.HasPrefix(whole, "before ") || !strings.HasSuffix(whole, " after\n") {
				t.Errorf("%q became %q", line, whole)
			}
			cuts := [][]int{nil}
			for i := range line {
				cuts[0] = append(cuts[0], i) // byte by byte
				cuts = append(cuts, []int{i})
			}
			for _, at := range cuts {
				// The last character of base64 may stay: it holds 4 bits of the secret at most.
				if got := scrubbed(t, s, line, at...); strings.Contains(got, text) || len(got) > len(whole)+1 {
					t.Fatalf("cut at %v: %q, whole %q", at, got, whole)
				}
			}
		}
	}
}

// lowered writes the escapes of a query in lower case, by another way than the program's.
func lowered(query string) string {
	parts := strings.Split(query, "%")
	for i := range parts[1:] {
		parts[i+1] = strings.ToLower(parts[i+1][:2]) + parts[i+1][2:]
	}
	return strings.Join(parts, "%")
}

// TestScrubberInDumps: base64 and hex of a longer text, such as a request, hold the secret at any place. Decoding what is
// left brings none of it back.
func TestScrubberInDumps(t *testing.T) {
	for _, secret := range []string{canarySecret, oddSecret, "canary1", "canary22", "canary333"} {
		s := new(Scrubber)
		s.learn(secret)
		for i := range 6 * 4 {
			before, after := i/4, i%4
			text := []byte(strings.Repeat("b", before) + secret + strings.Repeat("a", after))
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				left, _, found := strings.Cut(scrubbed(t, s, e.EncodeToString(text)+"\n"), redacted)
				if !found || len(left) > (before*8+5)/6 {
					t.Errorf("base64 of %q: %q holds some of the secret", text, left)
				}
			}
			if got := scrubbed(t, s, hex.EncodeToString(text)); strings.Contains(got, hex.EncodeToString([]byte(secret))) {
				t.Errorf("hex of %q was let through", text)
			}
		}
	}
}

// TestScrubberLetsPass: all else comes out as it went in, and a whole line at once.
func TestScrubberLetsPass(t *testing.T) {
	s := new(Scrubber)
	s.learn("short", "", canarySecret, "ab:"+canarySecret)
	s.learnToken("tiny")
	for _, text := range []string{"", "short tiny ab\n", canarySecret[:len(canarySecret)-1] + "\n", strings.Repeat(canarySecret[:3], 50) + "\n",
		"\r 50% |████  | [3s:5s]", "\x00\xff\xfe" + canarySecret[1:], `{"outcome":"kept","entries":3}` + "\n"} {
		if got := scrubbed(t, s, text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := scrubbed(t, new(Scrubber), canarySecret); got != canarySecret {
		t.Errorf("one that knows nothing made %q", got)
	}
	closed, err := os.Open(".")
	if err != nil || closed.Close() != nil {
		t.Fatal(err)
	}
	if n, err := s.Writer(closed).Write([]byte("x\n")); n != 0 || err == nil {
		t.Errorf("Write to a broken stream = %d, %v", n, err)
	}
	var out bytes.Buffer
	w := s.Writer(&out)
	for _, step := range []struct{ write, want string }{
		{"a line that ends with the beginning: CANA\n", "a line that ends with the beginning: CANA\n"},
		{"progress CANA", "progress "}, // what can be a secret waits
		{"\r", "CANA\r"},
	} {
		fmt.Fprint(w, step.write)
		if got := out.String(); got != step.want {
			t.Errorf("Write(%q): %q came out, want %q", step.write, got, step.want)
		}
		out.Reset()
	}
}

// TestScrubberLearnsEnv: what the environment holds is known, whether a variable or a file
// holds it and whether or not the rest of the environment is good.
func TestScrubberLearnsEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(canarySecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, env := range []map[string]string{
		{"REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET": " " + canarySecret + "\n", "IMGUR_CLIENT_ID": "canary-imgur"},
		{"REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET_FILE": file, "IMGUR_CLIENT_ID": "canary-imgur", "IMGUR_CLIENT_ID_FILE": "/none"},
		{"REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET": "canary-other", "REDDIT_CLIENT_SECRET_FILE": file, "IMGUR_CLIENT_ID": "canary-imgur"},
	} {
		s := new(Scrubber)
		s.LearnEnv(func(k string) string { return env[k] })
		basic := base64.RawStdEncoding.EncodeToString([]byte("canary-id:" + canarySecret))
		basic = basic[:len(basic)-1] // which holds 4 bits of the secret at most
		for _, secret := range []string{"canary-id", canarySecret, "canary-imgur", basic, env["REDDIT_CLIENT_SECRET"]} {
			got := scrubbed(t, s, "x "+strings.TrimSpace(secret)+" x")
			if want := "x " + redacted + " x"; secret != "" && got != want {
				t.Errorf("%q became %q, want %q", secret, got, want)
			}
		}
	}
}

// TestScrubberLearnsFromClient: credentials when the client is made, each token when it comes,
// and of many tokens the latest.
func TestScrubberLearnsFromClient(t *testing.T) {
	s := new(Scrubber)
	var log strings.Builder
	o := testOptions()
	o.Scrubber, o.ImgurClientID = s, NewSecret("canary-imgur")
	o.Log = slog.New(slog.NewTextHandler(s.Writer(&log), nil))
	c := (&script{play: func(_ int, r *http.Request) answer {
		if r.URL.Hostname() == tokenHost {
			return tokenReply(3600)
		}
		return reply(200, listingOf())
	}}).client(t, o)
	if got := scrubbed(t, s, o.ClientSecret.reveal()+" canary-imgur"); got != redacted+" "+redacted {
		t.Errorf("after New: %q", got)
	}
	_, _ = c.Ask(t.Context(), ids("a1"))
	if got := scrubbed(t, s, "bearer "+canaryToken); got != "bearer "+redacted {
		t.Errorf("after the token came: %q", got)
	}
	for i := range tokensKept {
		s.learnToken(fmt.Sprintf("canary-token-%d", i))
	}
	first, last := scrubbed(t, s, "canary-token-0"), scrubbed(t, s, fmt.Sprintf("canary-token-%d", tokensKept-1))
	if first != redacted || last != redacted || len(s.known.tokens) != tokensKept {
		t.Errorf("of the last %d tokens %d are kept: %q, %q", tokensKept, len(s.known.tokens), first, last)
	}
	if got := scrubbed(t, s, o.ClientSecret.reveal()); got != redacted {
		t.Errorf("tokens drove out the secret: %q", got)
	}
}

// FuzzScrubber: however a text is cut into writes, no secret is left, and nothing is lost.
func FuzzScrubber(f *testing.F) {
	f.Add([]byte("aab aabaab aabab"), uint64(1))
	f.Add([]byte("CANARY-aba CANARY-abaCANARY-abab"), uint64(2))
	s := new(Scrubber)
	secrets := []string{"CANARY-aba", "CANARY-abab", "ba CANARY", "aabaab"}
	s.learn(secrets...)
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		var cuts []int
		for i := range text {
			if random.IntN(3) == 0 {
				cuts = append(cuts, i)
			}
		}
		whole := scrubbed(t, s, string(text))
		for _, got := range []string{whole, scrubbed(t, s, string(text), cuts...)} {
			for part := range strings.SplitSeq(got, redacted) {
				if slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(part, secret) }) {
					t.Errorf("a secret is left in %q", got)
				}
				if !bytes.Contains(text, []byte(part)) {
					t.Errorf("%q of %q does not stand in %q", part, got, text)
				}
			}
		}
	})
}
