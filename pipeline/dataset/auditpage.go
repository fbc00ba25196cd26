package dataset

import (
	"fmt"
	"io"
	"slices"
)

// An AuditPage is the report of an audit as a page for people.
type AuditPage struct {
	Title   string
	Verdict string
	Good    bool   // the verdict is the good one
	Lead    string // what the verdict means here
	Parts   []AuditPart
}

// An AuditPart is a part of the page: a heading, and what belongs to it.
type AuditPart struct {
	Heading string
	Note    string        // "" for none
	Columns []AuditColumn // of Rows; none leaves the table out
	Rows    [][]string    // as many cells each as there are columns
	Folded  bool          // the table is shown when somebody opens it
}

// An AuditColumn is the head of a column.
type AuditColumn struct {
	Head   string
	Number bool
}

// WriteAuditPage writes the page: one file that opens from disk, without scripts, and asks for nothing.
// Every text in it is escaped.
func WriteAuditPage(w io.Writer, a AuditPage) error {
	p := newPage(w, a.Title)
	class := "bad"
	if a.Good {
		class = "good"
	}
	p.begin("p", at("class", "notice"))
	p.el("strong", a.Verdict, at("class", class))
	p.text(" " + a.Lead)
	p.end()
	for _, part := range a.Parts {
		p.auditPart(part)
	}
	if err := p.close(); err != nil {
		return fmt.Errorf("write the audit page: %w", err)
	}
	return nil
}

func (p *page) auditPart(part AuditPart) {
	p.begin("section")
	defer p.end()
	p.el("h2", part.Heading)
	if part.Note != "" {
		p.el("p", part.Note)
	}
	if len(part.Columns) == 0 {
		return
	}
	if part.Folded {
		p.begin("details")
		defer p.end()
		p.el("summary", fmt.Sprintf("show %d rows", len(part.Rows)))
	}
	columns := make([]column, len(part.Columns))
	for i, c := range part.Columns {
		columns[i] = column{head: c.Head, number: c.Number}
	}
	p.table(part.Heading, columns, slices.Values(part.Rows))
}
