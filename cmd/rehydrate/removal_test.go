package main

import (
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

// outcomeOf is the outcome of a post's first entry, as "outcome/reason".
func (s *site) outcomeOf(id manifest.PostID) string {
	s.t.Helper()
	for _, r := range s.outcomes() {
		if r.ID == id {
			return string(r.Outcome) + "/" + string(r.Reason)
		}
	}
	s.t.Fatalf("no entry %s", id)
	return ""
}

// quick is fastPolicy with more keys under [reddit].
func quick(keys string) string {
	return strings.Replace(fastPolicy, "[reddit]\n", "[reddit]\n"+keys+"\n", 1)
}

// becomes puts posts into a condition.
func (s *site) becomes(c redditemu.Condition, posts ...redditemu.Post) {
	for _, p := range posts {
		s.update(p.ID, func(p *redditemu.Post) { p.Condition = c })
	}
}

// unavailable is a post whose image host fails.
func unavailable(p redditemu.Post) redditemu.Post {
	p.Images = []redditemu.Image{{Serve: redditemu.ServeUnavailable}}
	return p
}
