package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"rehydrate/pipeline/dataset"
)

// Meaning says in one sentence what the verdict means.
func (r Report) Meaning() string {
	switch r.Verdict {
	case Fail:
		return fmt.Sprintf("%d findings: erased content was found, or the audit log is inconsistent.", len(r.Findings))
	case Incomplete:
		return fmt.Sprintf("Nothing was found, and %d things could not be asked or read.", len(r.Gaps))
	}
	return "Nothing was found of any post that must be gone, and everything could be asked and read."
}

// A Fact is one line of a report: what, and its value.
type Fact struct{ Name, Value string }

// Facts are the head of the report: who audited what, when, and how much of it there is evidence on.
func (r Report) Facts() []Fact {
	s, c, l := r.Scope, r.Coverage, r.Log
	facts := []Fact{
		{"time", r.Time.Format(time.RFC3339)},
		{"mode", r.Who.Mode},
		{"tool", "rehydrate " + r.Who.Tool},
		{"approval", r.Who.Approval},
		{"grant", r.Who.Grant},
		{"holder", r.Who.Holder},
		{"signer's key", r.Who.Fingerprint},
		{"release", s.Release + " " + s.ReleaseVersion},
		{"release digest", s.ReleaseDigest},
		{"manifest digest", s.ManifestDigest},
		{"policy digest", s.PolicyDigest},
		{"scope", fmt.Sprintf("%d entries of %d posts, %d files", s.Entries, s.Posts, s.LookedAt)},
		{"workspace", cmp.Or(s.Workspace, "none")},
		{"asked", fmt.Sprintf("%d posts, %d answers", c.Asked, c.Answered)},
		{"evidence", fmt.Sprintf("on %d of %d posts", c.Judged, len(r.Posts))},
	}
	if c.Oldest != nil {
		facts = append(facts, Fact{"oldest check", c.Oldest.Format(time.RFC3339) + ", of " + c.OldestID})
	}
	switch {
	case !l.Present:
		facts = append(facts, Fact{"log", "none"})
	case l.Broken != nil:
		facts = append(facts, Fact{"log", fmt.Sprintf("breaks at record %d", *l.Broken)})
	default:
		facts = append(facts, Fact{"log", fmt.Sprintf("%d records, %d more to be published, root %s", l.Records, l.Pending, l.Root)})
	}
	if s := l.Since; s != nil {
		text := fmt.Sprintf("the log goes on from the %d records that were kept", s.Records)
		if !s.Holds {
			text = "the log does not go on from the checkpoint that was kept: " + s.What
		}
		facts = append(facts, Fact{"since", text})
	}
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.Value == "" })
}

// Page is the report as a page for people.
func (r Report) Page() dataset.AuditPage {
	text := func(heads ...string) []dataset.AuditColumn {
		columns := make([]dataset.AuditColumn, len(heads))
		for i, h := range heads {
			columns[i].Head = h
		}
		return columns
	}
	facts := dataset.AuditPart{Heading: "Who, when and what", Columns: text("what", "value")}
	for _, f := range r.Facts() {
		facts.Rows = append(facts.Rows, []string{f.Name, f.Value})
	}
	found := dataset.AuditPart{Heading: "Findings", Note: "None."}
	if len(r.Findings) > 0 {
		found.Note, found.Columns = "What must go, or does not hold.", text("where", "kind", "entry", "what")
	}
	for _, f := range r.Findings {
		found.Rows = append(found.Rows, []string{f.Where, string(f.Kind), f.ID, f.What})
	}
	gaps := dataset.AuditPart{Heading: "What could not be asked or read", Note: "Nothing."}
	if len(r.Gaps) > 0 {
		gaps.Note, gaps.Columns = "", text("where", "post", "what")
	}
	for _, g := range r.Gaps {
		gaps.Rows = append(gaps.Rows, []string{g.Where, g.ID, g.What})
	}
	open := dataset.AuditPart{Heading: "Open obligations", Note: "None."}
	if len(r.Obligations) > 0 {
		open.Note, open.Columns = "", text("where", "what", "due")
	}
	for _, o := range r.Obligations {
		open.Rows = append(open.Rows, []string{o.Where, o.What, instant(o.Due)})
	}
	parts := []dataset.AuditPart{facts, found, gaps, open}
	if len(r.Notes) > 0 {
		notes := dataset.AuditPart{Heading: "Notes", Columns: text("note")}
		for _, n := range r.Notes {
			notes.Rows = append(notes.Rows, []string{n})
		}
		parts = append(parts, notes)
	}
	return dataset.AuditPage{Title: "Audit of " + r.Scope.Release, Verdict: string(r.Verdict), Good: r.Verdict == Pass, Lead: r.Meaning(),
		Parts: append(parts, r.totalsPart(), r.filesPart(), r.postsPart())}
}

func (r Report) totalsPart() dataset.AuditPart {
	part := dataset.AuditPart{Heading: "Posts by state", Columns: []dataset.AuditColumn{{Head: "state"}, {Head: "posts", Number: true}}}
	for _, state := range slices.Sorted(maps.Keys(r.Totals)) {
		part.Rows = append(part.Rows, []string{state, strconv.Itoa(r.Totals[state])})
	}
	return part
}

func (r Report) filesPart() dataset.AuditPart {
	part := dataset.AuditPart{Heading: "Files looked at as datasets", Note: "None."}
	if len(r.Scope.Files) > 0 {
		part.Note, part.Columns = "", []dataset.AuditColumn{{Head: "file"}, {Head: "rows", Number: true}, {Head: "sha256"}}
	}
	for _, f := range r.Scope.Files {
		part.Rows = append(part.Rows, []string{f.Name, strconv.Itoa(f.Rows), f.SHA256})
	}
	return part
}

func (r Report) postsPart() dataset.AuditPart {
	part := dataset.AuditPart{Heading: "Every post", Folded: true, Columns: []dataset.AuditColumn{{Head: "post"}, {Head: "state"}, {Head: "by"},
		{Head: "must be gone"}, {Head: "last seen live"}, {Head: "last answer"}, {Head: "log record", Number: true}}}
	for _, p := range r.Posts {
		gone, record := "", ""
		if p.MustGo {
			gone = "yes"
		}
		if p.Record != nil {
			record = strconv.FormatInt(*p.Record, 10)
		}
		part.Rows = append(part.Rows, []string{string(p.ID), withReason(cmp.Or(string(p.State), "never asked"), p.Reason), p.Because, gone,
			instant(p.LastLive), instant(p.Checked), record})
	}
	return part
}

func instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
