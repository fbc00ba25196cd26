package audit

import (
	"embed"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"rehydrate/pipeline/page"
	"rehydrate/pipeline/state"
)

//go:embed audit.html head.txt
var files embed.FS

var (
	auditPage = page.Parse(files, "audit.html")
	head      = template.Must(template.New("").Funcs(template.FuncMap{
		"at":         func(t time.Time) string { return t.Format(time.RFC3339) },
		"line":       state.PrintableLine,
		"counted":    page.Counted,
		"recognised": recognised,
	}).ParseFS(files, "head.txt"))
)

// recognised says what n of all posts that must be gone are recognised by, and whom to ask for the rest.
func recognised(n, of int, what, ask string) string {
	switch n {
	case of:
		return "Recognised: " + what + ", of all of them."
	case 0:
		return "Not recognised: " + what + ": " + ask
	}
	return fmt.Sprintf("Recognised: %s, of %d of them. For the others %s", what, n, ask)
}

// Said returns the lines of a part of head.txt: "meaning", what the verdict means; "explains", what this audit could recognise
// with what it had, and whom to ask for what it lacked; or "facts".
func (r Report) Said(part string) []string {
	var b strings.Builder
	if err := head.ExecuteTemplate(&b, part, r); err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// Facts are the head of the report, each a name and its value: who audited what, when, and how much of it there is
// evidence on.
func (r Report) Facts() (facts [][]string) {
	for _, line := range r.Said("facts") {
		if fact := strings.SplitN(line, "\t", 2); len(fact) == 2 && fact[1] != "" {
			facts = append(facts, fact)
		}
	}
	return facts
}

// WritePage writes the report as a page for people: one file that opens from disk, without scripts. Digest is the SHA-256
// of the report as JSON, by which the log names it.
func (r Report) WritePage(w io.Writer, digest string) error {
	return page.Write(w, auditPage, struct {
		Report
		Digest string // of the statement
	}{r, digest})
}
