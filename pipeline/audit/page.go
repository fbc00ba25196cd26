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

// recognised begins the sentence on what n of all posts that must be gone are recognised by; what follows says whom to ask
// for the rest.
func recognised(n, of int, what string) string {
	switch n {
	case of:
		return "Recognised: " + what + ", of all of them.\x00"
	case 0:
		return "Not recognised: " + what + ": "
	}
	return fmt.Sprintf("Recognised: %s, of %d of them. For the others ", what, n)
}

// said fills in a part of head.txt, and returns its lines.
func (r Report) said(part string) (lines []string) {
	var b strings.Builder
	if err := head.ExecuteTemplate(&b, part, r); err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(strings.TrimSpace(b.String())) {
		line, _, _ = strings.Cut(line, "\x00")
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return lines
}

// Meaning says in one sentence what the verdict means.
func (r Report) Meaning() string { return strings.Join(r.said("meaning"), " ") }

// Explains says what this audit could recognise with what it had, and whom to ask for what it lacked.
func (r Report) Explains() []string { return r.said("explains") }

// A Fact is one line of a report: what, and its value.
type Fact struct{ Name, Value string }

// Facts are the head of the report: who audited what, when, and how much of it there is evidence on.
func (r Report) Facts() (facts []Fact) {
	for _, line := range r.said("facts") {
		if name, value, _ := strings.Cut(line, "\t"); value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	return facts
}

// WritePage writes the report as a page for people: one file that opens from disk, without scripts. Digest is the SHA-256
// of the report as JSON, by which the log names it.
func (r Report) WritePage(w io.Writer, digest string) error {
	if err := page.Write(w, auditPage, struct {
		Report
		Digest string // of the statement
	}{r, digest}); err != nil {
		return fmt.Errorf("write the audit page: %w", err)
	}
	return nil
}
