package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
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

// TestAbsenceExplained lets whole subreddits go: the reason says how, where it is known in which
// subreddit a post was, and each subreddit is asked about once.
func TestAbsenceExplained(t *testing.T) {
	t.Parallel()
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
	for i, want := range []string{"subreddit_private", "subreddit_private", "subreddit_banned", "subreddit_quarantined", "subreddit_gated", "subreddit_open"} {
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	image := posts[1].URLs()[0]
	s.emulator.OnRequest(func(r hostile.Request) {
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
	t.Parallel()
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

// whenFetched has do called once, at the first request of an image of i.redd.it.
func (s *site) whenFetched(do func()) {
	var once sync.Once
	s.emulator.OnRequest(func(r hostile.Request) {
		if r.Host == "i.redd.it" {
			once.Do(do)
		}
	})
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

// TestLastLookUnanswered: what the last look gets no answer about is not exported.
func TestLastLookUnanswered(t *testing.T) {
	t.Parallel()
	t.Run("no listing", func(t *testing.T) {
		posts := fewPosts(3)
		s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
		s.whenFetched(func() { s.becomes(redditemu.Removed, posts[2]) })
		s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info", After: 1, Kind: hostile.EmptyListing()})
		s.run(exitRetry)
		s.notExported(posts...)
	})
	t.Run("nobody else to ask about", func(t *testing.T) {
		posts := fewPosts(1)
		s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
		s.whenFetched(func() { s.becomes(redditemu.AbsentPrivate, posts...) })
		s.run(exitRetry)
		s.notExported(posts...)
	})
	t.Run("one new image among old ones", func(t *testing.T) {
		posts := fewPosts(6)
		posts[5] = unavailable(posts[5])
		s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
		s.run(exitRetry)
		s.update(posts[5].ID, func(p *redditemu.Post) { p.Images = []redditemu.Image{{}} })
		s.whenFetched(func() { s.becomes(redditemu.AbsentPrivate, posts[5]) })
		s.run(exitDone)
		s.notExported(posts[5])
		if got := s.outcomeOf(posts[5].ID); !strings.HasPrefix(got, "unavailable/") {
			t.Errorf("outcome %s, want unavailable: a witness was there", got)
		}
	})
	t.Run("stopped before it, then an outage", func(t *testing.T) {
		posts := fewPosts(3)
		s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
		asked := 0
		s.emulator.OnRequest(func(r hostile.Request) {
			if r.Path != "/api/info" {
				return
			}
			if asked++; asked == 2 {
				s.becomes(redditemu.Removed, posts...)
				s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info", Kind: hostile.EmptyListing()})
				close(s.stop)
			}
		})
		if f := s.do(s.env(), s.args()...); f.code != exitInterrupted || len(s.images()) != 3 {
			t.Fatalf("stopped: exit %d with %d images, want %d with 3", f.code, len(s.images()), exitInterrupted)
		}
		s.stop = make(chan struct{})
		s.run(exitRetry)
		s.notExported(posts...)
	})
}

// TestWithdrawTakesAway: a run that is stopped takes rows out of the dataset and puts none in.
func TestWithdrawTakesAway(t *testing.T) {
	t.Parallel()
	posts := fewPosts(8)
	posts[6], posts[7] = unavailable(posts[6]), unavailable(posts[7])
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitRetry)
	before := s.exported()
	for _, i := range []int{6, 7} {
		s.update(posts[i].ID, func(p *redditemu.Post) { p.Images = []redditemu.Image{{}} })
	}
	s.becomes(redditemu.Removed, posts[0])
	asked := 0
	s.emulator.OnRequest(func(r hostile.Request) {
		if r.Path != "/api/info" {
			return
		}
		if asked++; asked == 2 { // the last look
			s.becomes(redditemu.AbsentPrivate, posts[6], posts[7])
			close(s.stop)
		}
	})
	if f := s.do(s.env(), s.args()...); f.code != exitInterrupted {
		t.Fatalf("exit %d, want %d\n%s", f.code, exitInterrupted, f.stderr)
	}
	want := slices.DeleteFunc(before, func(id string) bool { return id == string(posts[0].ID) })
	if diff := cmp.Diff(want, s.exported()); diff != "" {
		t.Errorf("rows after the interrupt (-want +got):\n%s", diff)
	}
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

// TestFirstRunIsNoMassRemoval: a few posts that go while a first run fetches are not measured
// against the posts that were live before it, of which there are none.
func TestFirstRunIsNoMassRemoval(t *testing.T) {
	t.Parallel()
	posts := fewPosts(30)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.whenFetched(func() { s.becomes(redditemu.Removed, posts[3], posts[4]) })
	if sum := s.run(exitDone); sum.MassRemoval || sum.Outcomes[manifest.Removed] != 2 {
		t.Errorf("mass removal %t, outcomes %v, want two removed", sum.MassRemoval, sum.Outcomes)
	}
}

// TestWithheldThenSilent: posts that Reddit called deleted, withheld as a mass removal, and that
// are absent when the operator confirms, never come back.
func TestWithheldThenSilent(t *testing.T) {
	t.Parallel()
	posts := fewPosts(8)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.becomes(redditemu.Deleted, posts[:4]...)
	s.run(exitRetry)
	s.becomes(redditemu.Absent, posts[:4]...)
	s.run(exitDone, "--confirm-removals")
	s.becomes(redditemu.Live, posts[:4]...)
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); got != "deleted/tombstone" {
		t.Errorf("deleted by its author, silent, and back: %s, want deleted/tombstone", got)
	}
}

// TestAbsenceStaysExplained: the reason outlasts a mass removal that waits, and a run that ended
// while it asked; what Reddit said of the place is forgotten then.
func TestAbsenceStaysExplained(t *testing.T) {
	t.Parallel()
	t.Run("withheld, then confirmed", func(t *testing.T) {
		posts := fewPosts(7)
		for i := range 4 {
			posts[i].Subreddit = "closed"
		}
		s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
		s.run(exitDone)
		s.becomes(redditemu.AbsentPrivate, posts[:4]...)
		s.run(exitRetry)
		s.run(exitDone, "--confirm-removals")
		if got := s.outcomeOf(posts[0].ID); got != "unavailable/subreddit_private" {
			t.Errorf("confirmed: %s, want unavailable/subreddit_private", got)
		}
	})
	t.Run("the run ended there", func(t *testing.T) {
		posts := fewPosts(5)
		posts[0].Subreddit = "closed"
		s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
		s.run(exitDone)
		s.becomes(redditemu.AbsentPrivate, posts[0])
		blocked := s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/r/closed/about", Kind: hostile.BlockedHTML()})
		s.do(s.env(), s.args()...)
		if blocked.Fired() == 0 {
			t.Fatal("the subreddit was not asked about")
		}
		blocked.Clear()
		s.run(exitDone)
		if got := s.outcomeOf(posts[0].ID); got != "unavailable/subreddit_private" {
			t.Errorf("after a run that ended in /about: %s, want unavailable/subreddit_private", got)
		}
	})
	t.Run("held before", func(t *testing.T) {
		posts := fewPosts(3)
		posts[0].Condition, posts[0].Subreddit = redditemu.Quarantined, "told_by_reddit"
		s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
		s.run(exitDone)
		s.becomes(redditemu.AbsentBanned, posts[0])
		s.run(exitDone)
		if got := s.outcomeOf(posts[0].ID); got != "unavailable/subreddit_banned" {
			t.Errorf("outcome %s, want unavailable/subreddit_banned", got)
		}
		s.grep("told_by_reddit", "where a post that is gone was made")
	})
}

// TestSameAnswersSameSuspects: history does not decide what is suspected.
func TestSameAnswersSameSuspects(t *testing.T) {
	t.Parallel()
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
	s.becomes(redditemu.Quarantined, posts[3])
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); got != "kept/" {
		t.Errorf("with the fourth URL held: %s, want kept, as a fresh workspace would have it", got)
	}
}

// TestPlaceholderKnownLater: a policy that learns of a placeholder finds it among stored images.
func TestPlaceholderKnownLater(t *testing.T) {
	t.Parallel()
	posts := fewPosts(2)
	drawn, err := redditemu.Draw(redditemu.Spec{Caption: "this picture stands in for another one that is not here", Format: "jpeg"})
	if err != nil {
		t.Fatal(err)
	}
	posts[0].Images = []redditemu.Image{{Body: drawn.Body, Ext: "jpg"}}
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.write(s.release+"/policy.toml", fastPolicy+fmt.Sprintf("\n[[images.placeholder]]\nname = \"mine\"\nmeaning = \"a stand-in\"\n"+
		"sha256 = \"%x\"\noutcome = \"placeholder\"\nsource = \"a test\"\n", sha256.Sum256(drawn.Body)))
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); got != "placeholder/known_placeholder" {
		t.Errorf("outcome %s, want placeholder/known_placeholder", got)
	}
}

// TestImgurPageIsHeldToRules: an image that was found through imgur's API is held to the policy
// and the manifest also where the API is out of reach.
func TestImgurPageIsHeldToRules(t *testing.T) {
	t.Parallel()
	posts := fewPosts(2)
	posts[0].Kind = redditemu.KindImgurPage
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	env := s.env()
	env["IMGUR_CLIENT_ID"] = s.emulator.ImgurClientID
	if f := s.do(env, s.args()...); f.code != exitDone {
		t.Fatalf("exit %d\n%s", f.code, f.stderr)
	}
	lines := strings.Split(strings.TrimSpace(fewAnnotations(posts)), "\n")
	for i, more := range []string{",sha256", "," + strings.Repeat("ab", 32), ","} {
		lines[i] += more
	}
	s.write(s.release+"/annotations.csv", strings.Join(lines, "\n")+"\n")
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); got != "changed/sha256" {
		t.Errorf("the manifest names another image: %s, want changed/sha256", got)
	}
	s.write(s.release+"/annotations.csv", fewAnnotations(posts))
	if f := s.do(env, s.args("--retry", "changed")...); f.code != exitDone || s.outcomeOf(posts[0].ID) != "kept/" {
		t.Fatalf("exit %d, %s, want it kept again\n%s", f.code, s.outcomeOf(posts[0].ID), f.stderr)
	}
	imgur := strings.Index(fastPolicy, "[[images.host]]\nname = \"i.imgur.com\"")
	s.write(s.release+"/policy.toml", fastPolicy[:imgur])
	s.run(exitDone)
	if got := s.outcomeOf(posts[0].ID); !strings.HasPrefix(got, "refused/") {
		t.Errorf("the policy allows no imgur: %s, want refused", got)
	}
}
