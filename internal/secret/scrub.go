package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	maxShown = 160 // the most bytes of an answer that an error or a log line shows
	// scrubAtLeast is the shortest string that a Scrubber takes out: a shorter one would stand in ordinary words.
	scrubAtLeast = 6
	tokensKept   = 8 // of the latest; an older one has run out long before what was said with it is printed
)

var (
	// Tags, control characters and whatever is not ASCII.
	unprintable = regexp.MustCompile(`<[^>]*(?:>|$)|[^!-~]+`)
	escapes     = regexp.MustCompile(`%[0-9A-F]{2}`)
	// What may be somebody's name or a key: addresses, users, and runs of characters longer than a word.
	privateForm = regexp.MustCompile(`(?i)https?://\S*|\bu(?:ser)?/[0-9a-z_-]+|[0-9a-z_+/=.%~-]{32,}`)
)

// Printable turns text that came from outside, and may echo a request, into a line of at most 160 bytes that may be
// shown. It takes out also the more secrets, however short.
func (s *Scrubber) Printable(text string, more ...string) string {
	forms := append(spellings(more...), s.spellings()...)
	slices.SortFunc(forms, longestFirst)
	for i, form := range forms {
		forms[i] = regexp.QuoteMeta(form)
	}
	text = html.UnescapeString(text)
	if len(forms) > 0 {
		// In any case: Reddit's user names have none. Before tags: a secret may hold what looks like one.
		text = regexp.MustCompile("(?i)"+strings.Join(forms, "|")).ReplaceAllLiteralString(text, redacted)
	}
	words := strings.Fields(unprintable.ReplaceAllString(text, " "))
	shown := privateForm.ReplaceAllString(strings.Join(words, " "), redacted)
	if len(shown) > maxShown {
		shown = shown[:maxShown] + "..."
	}
	return shown
}

func longestFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// spellings are the forms in which a request, an error or a dump can hold one of the secrets, the longest first.
func spellings(secrets ...string) []string {
	var all []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		// As it is, quoted, escaped, in hex, and in base64 at each place that a longer text can give it.
		quoted, inHex := strconv.Quote(s), hex.EncodeToString([]byte(s))
		inJSON, _ := json.Marshal(s) // of a string: no error
		forms := []string{s, quoted[1 : len(quoted)-1], string(inJSON[1 : len(inJSON)-1]), html.EscapeString(s),
			inHex, strings.ToUpper(inHex)}
		for before := range 3 {
			for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				// The first and the last character depend on the text around the secret. The last may stay: it holds
				// 4 bits of the secret at most.
				encoded := e.EncodeToString(append(make([]byte, before), s...))
				forms = append(forms, encoded[(before*8+5)/6:(before+len(s))*8/6])
			}
		}
		for _, f := range forms {
			forms = append(forms, url.QueryEscape(f), url.PathEscape(f))
		}
		for _, f := range forms {
			forms = append(forms, escapes.ReplaceAllStringFunc(f, strings.ToLower))
		}
		// What is short would stand in ordinary words, as the hex of a letter does.
		all = append(all, slices.DeleteFunc(forms, func(f string) bool { return len(f) < scrubAtLeast && f != s })...)
	}
	slices.SortFunc(all, longestFirst)
	return slices.Compact(all)
}

// A Scrubber keeps the operator's credentials and the tokens of its Client out of what a program writes, as the last
// resort: errors are made without them. The zero value knows none. It is safe for concurrent use.
type Scrubber struct {
	mu    sync.Mutex
	known *known // guarded by mu. fmt follows one pointer, even in an unexported field, but not two
}

type known struct {
	values, tokens []string // the latest token last
	forms          []string // of both, the longest first
	replacer       *strings.Replacer
}

// Format writes [redacted] for every verb.
func (*Scrubber) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LearnEnv makes it know what getenv (os.Getenv) has of secrets, in variables or in the files that they name.
func (s *Scrubber) LearnEnv(getenv func(string) string) {
	var of [4]string
	for i, name := range []string{"REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "IMGUR_CLIENT_ID", "ENDPOINT_API_KEY"} {
		of[i] = strings.TrimSpace(getenv(name))
		s.Learn(of[i])
		if path := getenv(name + "_FILE"); path != "" {
			of[i], _ = readPrivate(path) // nothing of a file that can't be read can be shown either
		}
	}
	s.Learn(append(of[:], of[0]+":"+of[1])...)
}

// Learn makes it know credentials. The empty string is none, nor is a word that servers on one's own machine want and
// do not check: taken out, it would be missing in names of models and folders.
func (s *Scrubber) Learn(values ...string) { s.change(slices.DeleteFunc(slices.Clone(values), dummy)) }

// dummy reports whether guides to a local server give this key: a list, because a rule could let a weak real key pass.
func dummy(key string) bool {
	return slices.Contains(strings.Fields("ollama lm-studio lmstudio llama-cpp llama.cpp localai localhost dummy not-needed not_needed "+
		"no-key no-key-required sk-no-key-required api-key api_key unused placeholder whatever"), strings.ToLower(key))
}

// LearnToken makes it know a bearer token, and forget old ones when there are many.
func (s *Scrubber) LearnToken(token string) { s.change(nil, token) }

func (s *Scrubber) change(values []string, tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = new(known)
	}
	k := s.known
	k.values, k.tokens = append(k.values, values...), append(k.tokens, tokens...)
	k.tokens = k.tokens[max(len(k.tokens)-tokensKept, 0):]
	tooShort := func(form string) bool { return len(form) < scrubAtLeast }
	k.forms = slices.DeleteFunc(spellings(slices.Concat(k.values, k.tokens)...), tooShort)
	var pairs []string
	for _, form := range k.forms {
		pairs = append(pairs, form, redacted)
	}
	k.replacer = strings.NewReplacer(pairs...)
}

// spellings are the forms of all that it knows.
func (s *Scrubber) spellings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		return nil
	}
	return slices.Clone(s.known.forms)
}

// scrub replaces the secrets in text. Its end from rest on may be the beginning of one.
func (s *Scrubber) scrub(text string) (clean string, rest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known.forms) == 0 {
		return text, len(text)
	}
	forms := s.known.forms
	text = s.known.replacer.Replace(text)
	// No secret is longer than the first form, so that no earlier byte can begin one that is not whole.
	for rest = max(len(text)-len(forms[0])+1, 0); rest < len(text); rest++ {
		if slices.ContainsFunc(forms, func(f string) bool { return strings.HasPrefix(f, text[rest:]) }) {
			break
		}
	}
	return text, rest
}

// Writer returns a writer that hands on to w what it is given, with [redacted] in place of each form of a secret.
func (s *Scrubber) Writer(w io.Writer) *ScrubbingWriter { return &ScrubbingWriter{scrubber: s, w: w} }

// A ScrubbingWriter takes out secrets, also those that several Writes bring in pieces. It holds back only an end that
// can be the beginning of one, and so no whole line. It is safe for concurrent use.
type ScrubbingWriter struct {
	scrubber *Scrubber

	mu   sync.Mutex // guards what follows
	w    io.Writer
	held string
}

// Write writes p, but for the end that it holds back.
func (w *ScrubbingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, rest := w.scrubber.scrub(w.held + string(p))
	w.held = text[rest:]
	if _, err := io.WriteString(w.w, text[:rest]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what is held back.
func (w *ScrubbingWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = ""
	_, err := io.WriteString(w.w, held)
	return err
}

// Scrub returns text with [redacted] in place of each form of a secret.
func (s *Scrubber) Scrub(text string) string {
	clean, _ := s.scrub(text)
	return clean
}
