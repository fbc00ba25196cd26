package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/policy"
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

// notExported checks that none of the posts is in the dataset.
func (s *site) notExported(posts ...redditemu.Post) {
	s.t.Helper()
	for _, p := range posts {
		if slices.Contains(s.exported(), string(p.ID)) {
			s.t.Errorf("%s was exported as %s: no answer has shown it live since its image was fetched", p.ID, s.outcomeOf(p.ID))
		}
	}
}

// unavailable is a post whose image host fails.
func unavailable(p redditemu.Post) redditemu.Post {
	p.Images = []redditemu.Image{{Serve: redditemu.ServeUnavailable}}
	return p
}

// TestGrantOverMidRun: when the grant runs out during a run, no row comes in, and what is gone
// still goes, image and all.
func TestGrantOverMidRun(t *testing.T) {
	t.Parallel()
	s := figSIMSite(t, 12)
	posts := fewPosts(12)
	late := posts[10:]
	for _, p := range late {
		s.update(p.ID, func(p *redditemu.Post) { p.Images = []redditemu.Image{{Serve: redditemu.ServeUnavailable}} })
	}
	s.signed(s.grantPath(), policy.GrantNamespace, grantText(t, s.release, nil))
	s.now = time.Now
	s.granted().want(t, exitRetry)
	for _, p := range late {
		s.update(p.ID, func(p *redditemu.Post) { p.Images = []redditemu.Image{{}} })
	}
	s.becomes(redditemu.Removed, posts[0])
	s.emulator.ForgetRequests()
	s.now = func() time.Time {
		if len(s.imageRequests()) > 0 {
			return time.Now().Add(25 * time.Hour)
		}
		return time.Now()
	}
	s.granted().want(t, exitRejected)
	s.notExported(append([]redditemu.Post{posts[0]}, late...)...)
	if found, _ := filepath.Glob(filepath.Join(s.workspace, "images", "*", string(posts[0].ID)+"*")); len(found) > 0 {
		t.Errorf("the image of the removed post is still there: %v", found)
	}
}
