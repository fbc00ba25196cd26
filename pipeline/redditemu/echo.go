package redditemu

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"strings"
)

// Echo answers with a status and a page that repeats the request, its credentials among it,
// as error pages of proxies do. In page every REQUEST stands for the request in one line,
// with its Authorization as it was sent and decoded; JSON or HTML is made of it, as page
// begins with { or not.
func Echo(code int, page string) FaultKind {
	return FaultKind{name: fmt.Sprintf("echo %d", code), make: func(_ *Server, r *http.Request) *reply {
		text := requestLine(r)
		if strings.HasPrefix(page, "{") {
			quoted, _ := marshal(text) // a string only
			return jsonReply(code, strings.ReplaceAll(page, "REQUEST", string(quoted[1:len(quoted)-1])))
		}
		return newReply(code, "text/html; charset=UTF-8", []byte(strings.ReplaceAll(page, "REQUEST", html.EscapeString(text))))
	}}
}

// requestLine is a request in one line.
func requestLine(r *http.Request) string {
	var b strings.Builder
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && kind == "Basic" {
		fmt.Fprintf(&b, "%s ", decoded)
	}
	fmt.Fprintf(&b, "%s %s https://%s%s", value, r.Method, r.Host, r.URL.RequestURI())
	for name, values := range r.Header {
		fmt.Fprintf(&b, " %s: %s", name, strings.Join(values, ", "))
	}
	return b.String()
}

// Tokens returns the bearer tokens that are good or were until they ran out, in no order. A
// test searches for them.
func (s *Server) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.tokens))
	for value := range s.tokens {
		all = append(all, value)
	}
	return all
}
