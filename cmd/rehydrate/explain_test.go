package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/report"
)

// captioned is a live post with a picture of that caption.
func captioned(id string, caption int, seed uint64, shade uint8) redditemu.Post {
	return redditemu.Post{ID: manifest.PostID(id), Images: []redditemu.Image{sketch(caption, seed, shade, "jpg")}}
}

// toldSite has run over one entry of every kind that explain tells of.
func toldSite(t *testing.T) *site {
	t.Helper()
	posts := []redditemu.Post{captioned("few000", withHandle, 7, 0), captioned("few001", withHandle, 7, 3), captioned("few002", spanish, 8, 0), {ID: "few003", Condition: redditemu.Removed}}
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	return s
}

func (s *site) explain(id string) report.Explanation {
	s.t.Helper()
	f := s.do(nil, "explain", id, "-w", s.workspace, "--json")
	var x report.Explanation
	if err := json.Unmarshal([]byte(f.stdout), &x); err != nil || f.code != exitDone {
		s.t.Fatalf("explain %s = exit %d, %v\n%s%s", id, f.code, err, f.stderr, f.stdout)
	}
	return x
}

// TestExplain tells of entries that were kept, dropped by each filter and removed, and asks nobody.
func TestExplain(t *testing.T) {
	t.Parallel()
	s := toldSite(t)
	s.emulator.ForgetRequests()
	kept := s.explain("few000")
	if kept.Outcome.Outcome != manifest.Kept || kept.Last != nil || kept.Post.State != manifest.StateLive || kept.Post.Asked == nil || kept.Post.Live == nil ||
		kept.Image == nil || len(kept.Image.SHA256) != 64 || kept.Image.Format != "jpeg" || kept.Tombstone != nil {
		t.Errorf("the kept row: %+v", kept)
	}
	if len(kept.Near) != 1 || kept.Near[0].ID != "few001" || kept.Near[0].Kept || !kept.Near[0].Holds {
		t.Errorf("near the kept row: %+v", kept.Near)
	}
	if kept.Language == nil || !kept.Language.Passes || kept.Language.Votes.Model != language.VoteEnglish {
		t.Errorf("the kept row's verdict: %+v", kept.Language)
	}
	if r := kept.Reading; r == nil || r.Masked != 1 || !strings.Contains(r.Text, "[user]") || strings.Contains(r.Text, "somebody") ||
		!slices.ContainsFunc(r.Words, func(w report.ReadWord) bool {
			return w.Text == "HOMEWORK" && w.Confidence > 50 && w.Accepted && w.Box[2] > 0
		}) {
		t.Errorf("the kept row's reading: %+v", r)
	}
	if got := kept.Labels["figurative"]; !slices.Equal(got, []string{"F1", "F3"}) {
		t.Errorf("labels: %v", kept.Labels)
	}
	dup := s.explain("few001")
	if dup.Outcome.DuplicateOf != "few000" || len(dup.Near) != 1 || !dup.Near[0].Kept || dup.Near[0].Class != string(dup.Outcome.Reason) {
		t.Errorf("the duplicate: %+v", dup)
	}
	foreign := s.explain("few002")
	if l := foreign.Language; foreign.Outcome.Outcome != manifest.NotEnglish || l == nil || l.Passes || !l.Decided || l.Threshold != 0.6 ||
		l.Votes.FunctionWords != language.VoteOther || l.Other != "es" || l.Foreign <= l.English {
		t.Errorf("the Spanish row: %+v %+v", foreign, foreign.Language)
	}
	gone := s.explain("t3_few003")
	if gone.Outcome.Outcome != manifest.Removed || gone.Tombstone == nil || gone.Tombstone.State != manifest.StateRemoved || gone.Image != nil || gone.Reading != nil {
		t.Errorf("the removed row: %+v", gone)
	}
	kinds := func(x report.Explanation) (kinds []auditlog.Kind) {
		for i, h := range x.History {
			if i > 0 && h.Record <= x.History[i-1].Record {
				t.Errorf("the history is out of order: %+v", x.History)
			}
			kinds = append(kinds, h.Kind)
		}
		return kinds
	}
	if got := kinds(kept); !slices.Contains(got, auditlog.Verdicts) || !slices.Contains(got, auditlog.Fetch) || slices.Contains(got, auditlog.Buried) {
		t.Errorf("the kept row's history: %+v", kept.History)
	}
	if got := kinds(gone); !slices.Contains(got, auditlog.Verdicts) || !slices.Contains(got, auditlog.Buried) || slices.Contains(got, auditlog.Fetch) {
		t.Errorf("the removed row's history: %+v", gone.History)
	}
	if n := len(s.emulator.Requests()); n != 0 {
		t.Errorf("explain sent %d requests", n)
	}
}

// TestExplainText reads what people read, and what a wrong id says.
func TestExplainText(t *testing.T) {
	t.Parallel()
	s := toldSite(t)
	for id, want := range map[string][]string{
		"few000": {"few000    kept\n", "1 name was masked", "few001 was dropped or marked as its duplicate (", "jpeg, ", "last seen live 20"},
		"few001": {"duplicate, ", "few000 came first and is near ("},
		"few002": {"not_english, foreign_words", "; the policy drops such a row", "function words: other (", `of "es"`, "60 % are English"},
		"few003": {"removed, ", "tombstone", "image      none", "history", ": verdicts removed, ", ": tombstone removed"},
	} {
		f := s.do(nil, "explain", id, "-w", s.workspace)
		if f.code != exitDone {
			t.Errorf("explain %s = exit %d\n%s", id, f.code, f.stderr)
		}
		for _, w := range want {
			if !strings.Contains(f.stdout, w) {
				t.Errorf("explain %s does not say %q:\n%s", id, w, f.stdout)
			}
		}
	}
	for id, want := range map[string]string{
		"nosuch": "has no entry nosuch", "few000/1": "of this post it has few000", "few000/01": "names no entry", "few000/0": "names no entry",
		"no such id": "is not a post id", "few000/\x1b[2J": "names no entry",
	} {
		f := s.do(nil, "explain", id, "-w", s.workspace)
		if f.code != exitUsage || !strings.Contains(f.stderr, want) || !strings.Contains(f.stderr, "hint:") || strings.Contains(f.stderr, "\x1b") {
			t.Errorf("explain %q = exit %d, want 2 and %q\n%s", id, f.code, want, f.stderr)
		}
	}
}
