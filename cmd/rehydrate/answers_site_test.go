package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

// answersPolicy is quick, keeps what the text filter would drop, and erases at once what is gone.
const answersPolicy = `
[reddit]
requests_per_minute = 100
second_look_after = "1s"
mass_removal_share = 1.0

[filter]
mode = "flag"

[[images.host]]
name = "i.redd.it"
requests_per_second = 100
concurrency = 4

[[images.host]]
name = "i.imgur.com"
requests_per_second = 100
concurrency = 1

[[images.host]]
name = "api.imgur.com"
requests_per_second = 100
concurrency = 1
`

// A postCase is a postAnswer in its place: the post as the emulator has it.
type postCase struct {
	postAnswer
	name string
	id   manifest.PostID
	slug string // of its image; no other case's contains it
}

// castAnswers gives every case of the list a post of its own.
func castAnswers() []postCase {
	var all []postCase
	for _, name := range slices.Sorted(maps.Keys(postAnswers)) {
		a := postAnswers[name]
		c := postCase{postAnswer: a, name: name, id: manifest.PostID(fmt.Sprintf("s%03d", len(all)))}
		c.slug = string(c.id) + "img" // 7 letters and digits: imgur's form
		c.post.ID = c.id
		c.post.Images = slices.Clone(a.post.Images)
		if c.post.Images == nil && c.post.Kind != redditemu.KindLink {
			c.post.Images = []redditemu.Image{{}}
		}
		for i := range c.post.Images {
			c.post.Images[i].Slug = c.slug
			c.post.Images[i].Spec.Seed = uint64(1000 + len(all))
		}
		if a.with != nil {
			a.with(&c.post, c.slug)
		}
		all = append(all, c)
	}
	return all
}

// newAnswersSite has the cases' posts, and what spoils their images.
func newAnswersSite(t *testing.T, cases []postCase) *site {
	t.Helper()
	const header = "id,split,figurative,severity,related_content,modality,context,subreddit\n"
	var rows strings.Builder
	var posts []redditemu.Post
	for _, c := range cases {
		posts = append(posts, c.post)
		subreddit := ""
		if c.named {
			subreddit = c.post.Subreddit
		}
		fmt.Fprintf(&rows, "%s,train,F1,SS6,SR3,M1,C1,%s\n", c.id, subreddit)
	}
	return newSite(t, header+rows.String(), answersPolicy, posts...)
}

// spoil arms what spoils the cases' images, and returns what takes it back.
func (s *site) spoil(cases []postCase) (mend func()) {
	s.t.Helper()
	for _, c := range cases {
		if c.spoil.String() != "" {
			s.emulator.Fault(hostile.Fault{PathPrefix: imagePath(c), Kind: c.spoil})
		}
	}
	return s.emulator.ClearFaults
}

// imagePath is where the first request for the case's image goes.
func imagePath(c postCase) string {
	if c.post.Kind == redditemu.KindImgurPage {
		return "/3/image/" + c.slug
	}
	return "/" + c.slug
}

// A snapshot is what one run left.
type snapshot struct {
	outcomes map[manifest.PostID]manifest.Result
	requests []hostile.Request
	files    map[manifest.PostID]map[string]string // of the images: name to digest
	rows     []string                              // ids in the Parquet
}

// asked are the requests to image hosts whose path names the slug.
func (r snapshot) asked(slug string) []hostile.Request {
	var all []hostile.Request
	for _, q := range r.requests {
		if q.Host != "oauth.reddit.com" && q.Host != "www.reddit.com" && strings.Contains(q.Path, slug) {
			all = append(all, q)
		}
	}
	return all
}

// rehydrateOnce runs the release and looks at what is there then.
func (s *site) rehydrateOnce() snapshot {
	s.t.Helper()
	s.emulator.ForgetRequests()
	env := s.env()
	env["IMGUR_CLIENT_ID"] = s.emulator.ImgurClientID
	if f := s.do(env, s.args()...); f.code != exitDone && f.code != exitRetry {
		s.t.Fatalf("run = exit %d\n%s%s", f.code, f.stderr, f.stdout)
	}
	r := snapshot{outcomes: map[manifest.PostID]manifest.Result{}, requests: s.emulator.Requests(),
		files: map[manifest.PostID]map[string]string{}, rows: s.exported()}
	for _, o := range s.outcomes() {
		r.outcomes[o.ID] = o
	}
	for _, name := range s.images() {
		b, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		base := filepath.Base(name)
		id := manifest.PostID(strings.TrimSuffix(base, filepath.Ext(base)))
		if r.files[id] == nil {
			r.files[id] = map[string]string{}
		}
		r.files[id][base] = fmt.Sprintf("%x", sha256.Sum256(b))
	}
	return r
}

// exported are the ids in the workspace's Parquet.
func (s *site) exported() []string {
	s.t.Helper()
	return slices.Sorted(maps.Keys(rowsOf(s.t, filepath.Join(s.workspace, "dataset", "data"))))
}

// TestPostAnswers rehydrates one release that has a post for every answer, four times, and
// then looks at each.
func TestPostAnswers(t *testing.T) {
	t.Parallel()
	cases := castAnswers()
	s := newAnswersSite(t, cases)
	mend := s.spoil(cases)
	runs := []snapshot{s.rehydrateOnce()}
	mend()
	for n := range 3 {
		if n == 2 {
			s.write(filepath.Join(s.release, "policy.toml"), strings.Replace(answersPolicy, "[reddit]", "[reddit]\nreadmit = \"moderator\"", 1))
		}
		for _, c := range cases {
			if n < len(c.then) && c.then[n].update != nil {
				s.update(c.id, c.then[n].update)
			}
		}
		runs = append(runs, s.rehydrateOnce())
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.look(t, s, runs) })
	}
}

// look holds what became of the case in each run against what was to become of it.
func (c postCase) look(t *testing.T, s *site, runs []snapshot) {
	t.Helper()
	wants := []string{c.want}
	for _, later := range c.then {
		wants = append(wants, later.want)
	}
	for i, want := range wants {
		c.lookAt(t, runs[i], want, fmt.Sprintf("run %d", i+1))
	}
	if asked := len(runs[0].asked(c.slug)); (asked > 0) != c.asked {
		t.Errorf("run 1 made %d requests for the image, want some: %t", asked, c.asked)
	}
	if c.check != nil {
		c.check(t, s, runs, c)
	}
}

// lookAt holds one run against "outcome/reason". An image and a row are there when the
// outcome is kept, and only then; of a post that is not live nothing is asked for.
func (c postCase) lookAt(t *testing.T, r snapshot, want, when string) {
	t.Helper()
	got := r.outcomes[c.id]
	outcome, reason, _ := strings.Cut(want, "/")
	if string(got.Outcome) != outcome || reason != "" && string(got.Reason) != reason {
		t.Errorf("%s: outcome %s/%s (%s), want %s", when, got.Outcome, got.Reason, got.Detail, want)
	}
	there := outcome == string(manifest.Kept)
	if files := len(r.files[c.id]); files > 1 || (files == 1) != there {
		t.Errorf("%s: %d files, want one: %t", when, files, there)
	}
	if slices.Contains(r.rows, string(c.id)) != there {
		t.Errorf("%s: a row in the Parquet: %t, want %t", when, !there, there)
	}
	switch manifest.Outcome(outcome) {
	case manifest.Removed, manifest.Deleted, manifest.Unavailable, manifest.Refused, manifest.NoMedia:
		if n := len(r.asked(c.slug)); n > 0 {
			t.Errorf("%s: the image was asked for %d times", when, n)
		}
	}
}
