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
		for form, text := range map[string]string{
			"raw":           secret,
			"query":         url.QueryEscape(secret),
			"lower escapes": lowered(url.QueryEscape(secret)),
			"path":          url.PathEscape(secret),
			"hex":           fmt.Sprintf("%x", secret),
			"HEX":           fmt.Sprintf("%X", secret),
			"quoted":        fmt.Sprintf("%q", secret),
			"json":          string(js),
			"html":          html.EscapeString(secret),
			"base64":        encode(base64.RawStdEncoding),
			"base64 URL":    encode(base64.RawURLEncoding),
			"in a query":    url.QueryEscape(encode(base64.StdEncoding)),
			"twice":         secret + secret,
		} {
			line := "before " + text + " after\n"
			whole := scrubbed(t, s, line)
			if found := strings.Contains(whole, text); found || !strings.Contains(whole, redacted) {
				t.Errorf("%s: %q became %q", form, line, whole)
			}
			if !strings.HasPrefix(whole, "before ") || !strings.HasSuffix(whole, " after\n") {
				t.Errorf("%s: what stood around is gone: %q", form, whole)
			}
			every := make([]int, len(line))
			for i := range line {
				every[i] = i
				// The last character of base64 may stay: it holds 4 bits of the secret at most.
				if got := scrubbed(t, s, line, i); strings.Contains(got, text) || len(got) > len(whole)+1 {
					t.Fatalf("%s: cut at %d: %q, whole %q", form, i, got, whole)
				}
			}
			if got := scrubbed(t, s, line, every...); strings.Contains(got, text) || len(got) > len(whole)+1 {
				t.Errorf("%s: byte by byte: %q, whole %q", form, got, whole)
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

// TestScrubberInDumps: base64 and hex of a longer text, such as a request, hold the secret at
// any place. Decoding what is left brings none of it back.
func TestScrubberInDumps(t *testing.T) {
	for _, secret := range []string{canarySecret, oddSecret, "canary1", "canary22", "canary333"} {
		s := new(Scrubber)
		s.learn(secret)
		for before := range 6 {
			for after := range 4 {
				text := []byte(strings.Repeat("b", before) + secret + strings.Repeat("a", after))
				for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
					got := scrubbed(t, s, e.EncodeToString(text)+"\n")
					if !strings.Contains(got, redacted) {
						t.Errorf("base64 of %q was let through: %q", text, got)
					}
					left, _, _ := strings.Cut(got, redacted)
					if len(left) > (before*8+5)/6 {
						t.Errorf("base64 of %q: %q holds some of the secret", text, left)
					}
				}
				if got := scrubbed(t, s, hex.EncodeToString(text)); strings.Contains(got, hex.EncodeToString([]byte(secret))) {
					t.Errorf("hex of %q was let through", text)
				}
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
	closed, err := os.Open(".")
	if err != nil || closed.Close() != nil {
		t.Fatal(err)
	}
	if n, err := s.Writer(closed).Write([]byte("x\n")); n != 0 || err == nil {
		t.Errorf("Write to a broken stream = %d, %v", n, err)
	}
	var out bytes.Buffer
	w := s.Writer(&out)
	line := "a line that ends with the beginning of a secret: " + canarySecret[:4] + "\n"
	fmt.Fprint(w, line)
	if out.String() != line {
		t.Errorf("of a whole line only %q came out", &out)
	}
	fmt.Fprint(w, "progress "+canarySecret[:4])
	if want := line + "progress "; out.String() != want {
		t.Errorf("%q came out, want %q: what can be a secret waits", &out, want)
	}
	fmt.Fprint(w, "\r")
	if want := line + "progress " + canarySecret[:4] + "\r"; out.String() != want {
		t.Errorf("%q came out, want %q: it is not a secret after all", &out, want)
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
	var log lockedBuffer
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
	for i := range tokensKept {
		if got := scrubbed(t, s, fmt.Sprintf("canary-token-%d", i)); got != redacted {
			t.Errorf("token %d of the last %d: %q", i, tokensKept, got)
		}
	}
	if len(s.known.tokens) != tokensKept {
		t.Errorf("%d tokens are kept, want %d", len(s.known.tokens), tokensKept)
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
