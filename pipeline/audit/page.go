package audit

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"rehydrate/pipeline/page"
)

// Meaning says in one sentence what the verdict means.
func (r Report) Meaning() string {
	switch r.Verdict {
	case Fail:
		return counted(len(r.Findings), "finding") + ": erased content was found, or the audit log is inconsistent."
	case Incomplete:
		return "Nothing was found, and " + counted(len(r.Gaps), "thing") + " could not be asked or read."
	}
	// Without a request to Reddit the verdict is as old as the evidence that it stands on.
	if r.Coverage.Asked == 0 {
		return "Nothing was found of any post that must be gone, and everything could be read. Reddit was not asked now."
	}
	return "Nothing was found of any post that must be gone, and everything could be asked and read."
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// Explains says what this audit could recognise with what it had, and whom to ask for what it lacked.
func (r Report) Explains() []string {
	k := r.Known
	if k.MustGo == 0 {
		if r.Coverage.Judged == 0 {
			return []string{"Nothing is known of any post: ask Reddit (--live), name the workspace (-w), or ask the maintainer for tombstones.csv."}
		}
		return []string{"No post that is known of must be gone."}
	}
	said := []string{"Recognised: the ids of all " + strconv.Itoa(k.MustGo) + " posts that must be gone, in every spelling."}
	add := func(n int, what, lacks string) {
		switch {
		case n == k.MustGo:
			said = append(said, "Recognised: "+what+", of all of them.")
		case n > 0:
			said = append(said, fmt.Sprintf("Recognised: %s, of %d of them. For the others %s.", what, n, lacks))
		default:
			said = append(said, "Not recognised: "+what+": "+lacks+".")
		}
	}
	workspace := ", or for the workspace"
	if r.Scope.Workspace != "" { // it is here, and has none
		workspace = ": this workspace had no image of them, or keeps no digest of it"
	}
	add(k.Digests, "their images, byte for byte, with other metadata, or as the same pixels",
		"ask the maintainer for a manifest with sha256, sha256_stripped and sha256_pixels"+workspace)
	add(k.Hashes, "their images after a change (recompressed, scaled, mirrored)",
		"ask the maintainer for a manifest with phash, or for a workspace from before the purge")
	add(k.Texts, "texts that were read off them", "only a workspace from before the purge has them")
	return said
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
		{"known", fmt.Sprintf("of %d posts that must be gone: digests of %d, perceptual hash of %d, text of %d are known", r.Known.MustGo, r.Known.Digests, r.Known.Hashes, r.Known.Texts)},
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

//go:embed audit.html
var files embed.FS

var auditPage = page.Parse(files, "audit.html")

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
