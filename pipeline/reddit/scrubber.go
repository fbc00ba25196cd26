package reddit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// secretVars are the variables whose values are secrets; each can be a file's name as well.
var secretVars = []string{"REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "IMGUR_CLIENT_ID"}

const (
	// scrubAtLeast is the length of the shortest string that a Scrubber takes out: a shorter
	// one would stand in ordinary words.
	scrubAtLeast = 6
	// tokensKept is how many of the latest tokens a Scrubber knows. An older one has run out
	// long before what was said with it is printed.
	tokensKept = 8
)

// A Scrubber keeps the operator's secrets out of what a program writes, whatever part of it
// writes them: the client id and secret, imgur's client id, and the tokens that a Client
// with this Scrubber gets. It is the last resort; errors and log lines are made without
// secrets in the first place. The zero value knows none. It is safe for concurrent use.
type Scrubber struct {
	mu     sync.Mutex // guards what follows
	values []Secret   // fmt follows a pointer to a struct, even in an unexported field, but no further
	tokens []Secret   // the latest last
	forms  *forms     // of both; never changed, only replaced
}

// Format writes [redacted] for every verb.
func (*Scrubber) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LearnEnv makes it know what getenv (os.Getenv) has of secrets, in variables or in the files
// that they name. What can't be read is no error here: nothing of it can be shown either.
func (s *Scrubber) LearnEnv(getenv func(string) string) {
	of := map[string]string{}
	for _, name := range secretVars {
		of[name] = strings.TrimSpace(getenv(name))
		s.learn(of[name])
		if path := getenv(name + "_FILE"); path != "" {
			of[name], _ = readPrivate(path)
			s.learn(of[name])
		}
	}
	s.learnPair(of["REDDIT_CLIENT_ID"], of["REDDIT_CLIENT_SECRET"])
}

// learnCredentials makes it know what a Client was given. A nil Scrubber learns nothing.
func (s *Scrubber) learnCredentials(o Options) {
	if s == nil {
		return
	}
	id, secret := o.ClientID, o.ClientSecret.reveal()
	s.learn(id, secret, o.ImgurClientID.reveal())
	s.learnPair(id, secret)
}

// learnPair makes it know what Basic authorization encodes.
func (s *Scrubber) learnPair(id, secret string) {
	if id != "" && secret != "" {
		s.learn(id + ":" + secret)
	}
}

func (s *Scrubber) learn(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if len(v) >= scrubAtLeast && !holds(s.values, v) {
			s.values = append(s.values, NewSecret(v))
			s.forms = nil
		}
	}
}

// learnToken makes it know a bearer token. A nil Scrubber learns nothing.
func (s *Scrubber) learnToken(token string) {
	if s == nil || len(token) < scrubAtLeast {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if holds(s.tokens, token) {
		return
	}
	s.tokens = append(s.tokens, NewSecret(token))
	if len(s.tokens) > tokensKept {
		s.tokens = slices.Delete(s.tokens, 0, 1)
	}
	s.forms = nil
}

func holds(secrets []Secret, value string) bool {
	return slices.ContainsFunc(secrets, func(s Secret) bool { return s.reveal() == value })
}

func (s *Scrubber) current() *forms {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forms == nil {
		var all []string
		for _, secret := range slices.Concat(s.values, s.tokens) {
			all = append(all, secret.reveal())
		}
		s.forms = newForms(false, all...)
	}
	return s.forms
}

// Writer returns a writer that hands on to w what it is given, with [redacted] in place of
// each form of a secret.
func (s *Scrubber) Writer(w io.Writer) *ScrubbingWriter { return &ScrubbingWriter{scrubber: s, w: w} }

// A ScrubbingWriter takes out secrets that lie within one Write as well as those that several
// bring in pieces. It holds back only an end that can be the beginning of a secret, so a line
// with its line feed is never held back: no secret holds one. It is safe for concurrent use.
type ScrubbingWriter struct {
	scrubber *Scrubber

	mu   sync.Mutex // guards what follows
	w    io.Writer
	held []byte
}

// Write writes p, but for the end that it holds back.
func (w *ScrubbingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.pass(append(w.held, p...), false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what is held back.
func (w *ScrubbingWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(w.held, true)
}

// pass needs mu.
func (w *ScrubbingWriter) pass(b []byte, last bool) error {
	out, rest := w.scrubber.current().redact(b, last)
	w.held = bytes.Clone(rest)
	if len(out) == 0 {
		return nil
	}
	_, err := w.w.Write(out)
	return err
}

// forms are secrets in each form in which a request, an error or a dump can hold them.
type forms struct {
	fold    bool          // match in any case; the texts are in lower case then
	byFirst [256][]string // by first byte, the longest first
}

func newForms(fold bool, secrets ...string) *forms {
	f := &forms{fold: fold}
	var all []string
	for _, s := range secrets {
		if s != "" {
			all = append(all, spellings(s)...)
		}
	}
	for i, s := range all {
		all[i] = string(f.folded([]byte(s)))
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	for _, s := range slices.Compact(all) {
		f.byFirst[s[0]] = append(f.byFirst[s[0]], s)
	}
	return f
}

// folded lowers ASCII letters and nothing else: every byte keeps its place.
func (f *forms) folded(b []byte) []byte {
	if !f.fold {
		return b
	}
	b = bytes.Clone(b)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

// redact replaces the forms in b, at each place the longest. Unless b is the last of its text,
// it leaves the end that more text could make a form, and returns it as rest.
func (f *forms) redact(b []byte, last bool) (out, rest []byte) {
	text := f.folded(b)
	for i := 0; i < len(b); {
		n, open := f.at(text[i:])
		switch {
		case open && !last:
			return out, b[i:]
		case n > 0:
			out = append(out, redacted...)
			i += n
		default:
			out = append(out, b[i])
			i++
		}
	}
	return out, nil
}

// at returns the length of the longest form that text begins with, and whether the whole of
// text is the beginning of a longer one.
func (f *forms) at(text []byte) (n int, open bool) {
	for _, s := range f.byFirst[text[0]] {
		switch {
		case len(s) > len(text):
			open = open || s[:len(text)] == string(text)
		case s == string(text[:len(s)]):
			return len(s), open
		}
	}
	return 0, open
}

// spellings are the forms of one secret: as it is, escaped, quoted once and twice, in hex, and
// in base64 at each place that a longer text can give it.
func spellings(s string) []string {
	quoted := strconv.Quote(s)
	all := []string{s, hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))), html.EscapeString(s),
		inner(quoted), inner(strconv.Quote(inner(quoted))), inJSON(s), inJSON(inner(quoted))}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, inBase64(e, s, before)...)
		}
	}
	for _, form := range all {
		for _, escaped := range []string{url.QueryEscape(form), url.PathEscape(form)} {
			all = append(all, escaped, lowerEscapes(escaped))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(form string) bool {
		return len(form) < scrubAtLeast && form != s
	})
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

func inJSON(s string) string {
	b, _ := json.Marshal(s) // of a string: no error
	return inner(string(b))
}

// inBase64 returns what of the base64 of a text stands for s, when before bytes (0 to 2, or 3
// more) stand before it in the text: where s ends the text, and where more follows.
func inBase64(e *base64.Encoding, s string, before int) []string {
	encoded := e.EncodeToString([]byte(strings.Repeat("\x00", before) + s))[(before*8+5)/6:]
	if (before+len(s))%3 == 0 {
		return []string{encoded}
	}
	return []string{encoded, encoded[:len(encoded)-1]} // the last character depends on what follows
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}
