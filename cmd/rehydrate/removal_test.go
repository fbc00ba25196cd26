package main

import (
	"strings"
	"testing"

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

// TestAbsenceExplained lets whole subreddits go: the reason says how, where it is known in which
// subreddit a post was, and each subreddit is asked about once.
func TestAbsenceExplained(t *testing.T) {
	posts := fewPosts(7)
	gone := []redditemu.Condition{redditemu.AbsentPrivate, redditemu.AbsentPrivate, redditemu.AbsentBanned,
		redditemu.AbsentQuarantined, redditemu.AbsentGated, redditemu.Absent}
	subreddits := []string{"closed", "closed", "banned", "behind_a_warning", "gated", "open"}
	for i := range gone {
		posts[i].Subreddit = subreddits[i]
	}
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	for i, c := range gone {
		s.update(posts[i].ID, func(p *redditemu.Post) { p.Condition = c })
	}
	s.emulator.ForgetRequests()
	sum := s.run(exitDone)
	for i, want := range []string{"subreddit_private", "subreddit_private", "subreddit_banned", "subreddit_quarantined", "subreddit_gated", "absent_twice"} {
		if got := s.outcomeOf(posts[i].ID); got != "unavailable/"+want {
			t.Errorf("post %d, in %s: %s, want unavailable/%s", i, subreddits[i], got, want)
		}
	}
	if got := s.outcomeOf(posts[6].ID); got != "kept/" {
		t.Errorf("the post that stayed: %s", got)
	}
	if sum.Calls.About != 5 {
		t.Errorf("asked about subreddits %d times, want 5: one for each", sum.Calls.About)
	}
	if sum = s.run(exitDone); sum.Calls.About != 0 {
		t.Errorf("the next run asked about subreddits %d times again", sum.Calls.About)
	}
}

// TestAbsenceExplainedByManifest knows the subreddit from the release alone.
func TestAbsenceExplainedByManifest(t *testing.T) {
	posts := fewPosts(2)
	posts[0].Condition, posts[0].Subreddit = redditemu.AbsentBanned, "banned"
	lines := strings.Split(strings.TrimSpace(fewAnnotations(posts)), "\n")
	for i, more := range []string{",subreddit", ",r/Banned", ","} {
		lines[i] += more
	}
	s := newSite(t, strings.Join(lines, "\n")+"\n", fastPolicy, posts...)
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); got != "unavailable/subreddit_banned" {
		t.Errorf("outcome %s, want unavailable/subreddit_banned", got)
	}
}

// TestComesBack brings posts back to life after a removal: they stay out, whatever the policy
// says of those whose author or Reddit itself took them down; one that a moderator had removed
// returns where the policy says so, and leaves again when it no longer does.
func TestComesBack(t *testing.T) {
	posts := fewPosts(5)
	took := []string{"moderator", "automod_filtered", "anti_evil_ops", "reddit"}
	live := quick("mass_removal_share = 1.0")
	s := newSite(t, fewAnnotations(posts), live, posts...)
	s.run(exitDone)
	for i, by := range took {
		s.update(posts[i].ID, func(p *redditemu.Post) { p.Condition, p.RemovedBy = redditemu.Removed, by })
	}
	s.update(posts[4].ID, func(p *redditemu.Post) { p.Condition = redditemu.Deleted })
	s.run(exitDone)
	if got := s.images(); len(got) != 0 {
		t.Fatalf("removed, and still stored: %v", got)
	}
	for i := range posts {
		s.update(posts[i].ID, func(p *redditemu.Post) { p.Condition, p.RemovedBy = redditemu.Live, "" })
	}
	all := func(when string, kept ...int) {
		t.Helper()
		s.emulator.ForgetRequests()
		s.run(exitDone)
		in := map[int]bool{}
		for _, i := range kept {
			in[i] = true
		}
		for i, p := range posts {
			want := "removed/tombstone"
			switch {
			case in[i]:
				want = "kept/"
			case i == 4:
				want = "deleted/tombstone"
			}
			if got := s.outcomeOf(p.ID); got != want {
				t.Errorf("%s: post %d is %s, want %s", when, i, got, want)
			}
		}
		if n := len(s.images()); n != len(kept) {
			t.Errorf("%s: %d images stored, want %d", when, n, len(kept))
		}
		if len(kept) == 0 && len(s.imageRequests()) != 0 {
			t.Errorf("%s: images of buried posts were requested", when)
		}
	}
	all("the default")
	s.write(s.release+"/policy.toml", strings.Replace(live, "[reddit]\n", "[reddit]\nreadmit = \"moderator\"\n", 1))
	all("readmit = moderator", 0, 1)
	all("the same again", 0, 1)
	s.write(s.release+"/policy.toml", live)
	all("the default again")
	s.write(s.release+"/policy.toml", strings.Replace(live, "[reddit]\n", "[reddit]\nreadmit = \"moderator\"\n", 1))
	s.write(s.release+"/tombstones.csv", "id,state,time\n"+string(posts[0].ID)+",removed,2026-01-01T00:00:00Z\n")
	all("published by the release", 1)
}

// TestSuspectedPlaceholder gives four posts the same picture under four URLs.
func TestSuspectedPlaceholder(t *testing.T) {
	posts := fewPosts(6)
	drawn, err := redditemu.Draw(redditemu.Spec{Caption: "this picture stands in for another one that is not here", Format: "png"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		posts[i].Images = []redditemu.Image{{Body: drawn.Body, Ext: "png"}}
	}
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	for i := range 6 {
		want := "placeholder/suspected_placeholder"
		if i > 3 {
			want = "kept/"
		}
		if got := s.outcomeOf(posts[i].ID); got != want {
			t.Errorf("post %d: %s, want %s", i, got, want)
		}
	}
	s.write(s.release+"/policy.toml", strings.Replace(fastPolicy, "[reddit]\n", "[images]\nsuspect_after = 5\n[reddit]\n", 1))
	s.emulator.ForgetRequests()
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); got != "kept/" {
		t.Errorf("with suspect_after = 5: %s, want kept", got)
	}
	if got := s.outcomeOf(posts[1].ID); !strings.HasPrefix(got, "duplicate/") {
		t.Errorf("with suspect_after = 5 the second one is %s, want a duplicate of the first", got)
	}
	if n := len(s.imageRequests()); n != 0 {
		t.Errorf("%d images were fetched again for a changed threshold", n)
	}
}

// TestLastLook removes a post after its image was fetched and before the export.
func TestLastLook(t *testing.T) {
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	image := posts[1].URLs()[0]
	s.emulator.OnRequest(func(r redditemu.Request) {
		if "https://"+r.Host+r.Path == image {
			s.update(posts[1].ID, func(p *redditemu.Post) { p.Condition = redditemu.Removed })
		}
	})
	sum := s.run(exitDone)
	if got := s.outcomeOf(posts[1].ID); got != "removed/moderator" {
		t.Errorf("removed during the run: %s, want removed/moderator", got)
	}
	if sum.Outcomes[manifest.Kept] != 2 || len(s.images()) != 2 || len(s.rows()) != 2 {
		t.Errorf("outcomes %v, %d images, %d rows, want 2 kept", sum.Outcomes, len(s.images()), len(s.rows()))
	}
	if sum.Looks.Resolve != 1 || sum.Looks.Last != 1 {
		t.Errorf("asked %+v times, want once to resolve and once before the export", *sum.Looks)
	}
	if sum = s.run(exitDone); sum.Looks.Last != 0 {
		t.Errorf("a run without a download took a last look %d times", sum.Looks.Last)
	}
}

// TestImgurClientIDGoes runs with imgur's API and then without: images found through it stay.
func TestImgurClientIDGoes(t *testing.T) {
	posts := fewPosts(2)
	posts[0].Kind = redditemu.KindImgurPage
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); got != "refused/imgur_page" {
		t.Fatalf("without a client id: %s, want refused/imgur_page", got)
	}
	env := s.env()
	env["IMGUR_CLIENT_ID"] = s.emulator.ImgurClientID
	for _, step := range []struct {
		name string
		env  map[string]string
	}{{"with a client id", env}, {"without it again", s.env()}} {
		if f := s.do(step.env, s.args()...); f.code != exitDone {
			t.Fatalf("%s: exit %d\n%s%s", step.name, f.code, f.stdout, f.stderr)
		}
		if got := s.outcomeOf(posts[0].ID); got != "kept/" {
			t.Errorf("%s: %s, want kept", step.name, got)
		}
	}
}
