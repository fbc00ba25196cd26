package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	canarySecret = "CANARY-secret-5d1f"
	canaryToken  = "CANARY-token-a7c3"
)

// oddSecret changes its look in every encoding, and holds what looks like a tag.
const oddSecret = "CANARY+s3c<r>et/5d&1f=="

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
		s.Learn(secret)
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
		s.Learn(secret)
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
	s.Learn("short", "", canarySecret, "ab:"+canarySecret)
	s.LearnToken("tiny")
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
	if err := os.WriteFile(file, []byte("\ufeff"+canarySecret+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, env := range []map[string]string{
		{"REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET": " " + canarySecret + "\n", "IMGUR_CLIENT_ID": "canary-imgur"},
		{"REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET_FILE": file, "IMGUR_CLIENT_ID": "canary-imgur", "IMGUR_CLIENT_ID_FILE": "/none"},
		{"REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET": "canary-other", "REDDIT_CLIENT_SECRET_FILE": file, "IMGUR_CLIENT_ID": "canary-imgur"},
	} {
		s := new(Scrubber)
		env["ENDPOINT_API_KEY"] = "canary-endpoint"
		s.LearnEnv(func(k string) string { return env[k] })
		basic := base64.RawStdEncoding.EncodeToString([]byte("canary-id:" + canarySecret))
		basic = basic[:len(basic)-1] // which holds 4 bits of the secret at most
		for _, secret := range []string{"canary-id", canarySecret, "canary-imgur", "canary-endpoint", basic, env["REDDIT_CLIENT_SECRET"]} {
			got := scrubbed(t, s, "x "+strings.TrimSpace(secret)+" x")
			if want := "x " + redacted + " x"; secret != "" && got != want {
				t.Errorf("%q became %q, want %q", secret, got, want)
			}
		}
	}
}

// TestScrubberForgetsTokens: of many tokens the latest are known, and tokens drive out no credential.
func TestScrubberForgetsTokens(t *testing.T) {
	s := new(Scrubber)
	s.Learn(canarySecret)
	for i := range tokensKept + 3 {
		s.LearnToken(fmt.Sprintf("canary-token-%d.", i))
	}
	first, last := scrubbed(t, s, "canary-token-3."), scrubbed(t, s, fmt.Sprintf("canary-token-%d.", tokensKept+2))
	if first != redacted || last != redacted || len(s.known.tokens) != tokensKept {
		t.Errorf("of the last %d tokens %d are kept: %q, %q", tokensKept, len(s.known.tokens), first, last)
	}
	if got := scrubbed(t, s, canarySecret); got != redacted {
		t.Errorf("tokens drove out the secret: %q", got)
	}
}

// FuzzScrubber: however a text is cut into writes, no secret is left, and nothing is lost.
func FuzzScrubber(f *testing.F) {
	f.Add([]byte("aab aabaab aabab"), uint64(1))
	f.Add([]byte("CANARY-aba CANARY-abaCANARY-abab"), uint64(2))
	s := new(Scrubber)
	secrets := []string{"CANARY-aba", "CANARY-abab", "ba CANARY", "aabaab"}
	s.Learn(secrets...)
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

// TestDummyKey: what guides to a local server give as its key is a word, which stays; anything like it is a key.
func TestDummyKey(t *testing.T) {
	var s Scrubber
	s.Learn("ollama", "LM-Studio", "ollama1", "ollamas-key")
	const said = "ollama, lm-studio: [redacted], [redacted]"
	if got := s.Scrub("ollama, lm-studio: ollama1, ollamas-key"); got != said {
		t.Errorf("%q, want %q", got, said)
	}
}
