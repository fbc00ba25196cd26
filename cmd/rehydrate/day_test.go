package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

// The scripted day: Reddit's 1,000 requests a 10 minutes, scaled to 10 a 6 seconds, and a
// client whose policy stays below them as the default policy does.
const (
	dayWindow    = 6 * time.Second
	dayLimit     = 10 // requests a window
	dayMaxRuns   = 4
	dayPerMinute = 90 // of the policy
	dayPolicy    = `
[reddit]
requests_per_minute = 90
second_look_after = "1s"

[[images.host]]
name = "i.redd.it"
requests_per_second = 100
concurrency = 32
`
)

// dayConditions are those of every second post; the others are live.
var dayConditions = []redditemu.Condition{
	redditemu.LiveNotIndexable, redditemu.LiveAccountDeleted, redditemu.Deleted, redditemu.DeletedNoCategory,
	redditemu.DeletedOld,
	redditemu.Removed, redditemu.RemovedModView, redditemu.RemovedAdmin, redditemu.RemovedTitle,
	redditemu.RemovedSelftext,
	redditemu.RemovedLegal, redditemu.Quarantined, redditemu.Absent, redditemu.AbsentBanned, redditemu.AbsentPrivate,
	redditemu.AbsentQuarantined, redditemu.AbsentGated,
}

var outcomeOfState = map[manifest.PostState]manifest.Outcome{
	manifest.StateLive: manifest.Kept, manifest.StateDeleted: manifest.Deleted, manifest.StateRemoved: manifest.Removed,
	manifest.StateUnavailable: manifest.Unavailable, manifest.StateHeld: manifest.Refused,
}

// speck is a picture of its own that OCR is quick with: 8 by 8 pixels of noise.
func speck(rng *rand.Rand) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range img.Pix {
		img.Pix[i] = byte(rng.Uint32())
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a bytes.Buffer takes everything
	return b.Bytes()
}

// A day is the site with its posts and what is in store for it.
type day struct {
	*site
	posts  map[manifest.PostID]redditemu.Post
	faults []dayFault
}

type dayFault struct {
	name  string
	at    string // api or images
	armed *hostile.Armed
	share float64 // of the requests there; 0 = exactly times
	times int
}

func newDay(t *testing.T) *day {
	_, seed := chance(t)
	rng := rand.New(rand.NewPCG(seed, 0x646179))
	d := &day{posts: map[manifest.PostID]redditemu.Post{}}
	var posts []redditemu.Post
	for i := range often(2000, 700) {
		p := redditemu.Post{ID: manifest.PostID(fmt.Sprintf("1d%04d", i)),
			Images: []redditemu.Image{{Body: speck(rng), Ext: "png"}}}
		if i%2 == 1 {
			p.Condition = dayConditions[i/2%len(dayConditions)]
		}
		posts, d.posts[p.ID] = append(posts, p), p
	}
	d.site = newSiteOn(t, redditemu.Options{Seed: seed, RequestsPerWindow: dayLimit, Window: dayWindow},
		fewAnnotations(posts), dayPolicy, posts...)
	d.script()
	return d
}

// script arms the faults of the day. Those that are due at one place of the API come first.
func (d *day) script() {
	part := often(1, 3) // a sample has its faults sooner
	api := func(name string, f hostile.Fault) {
		f.After /= part
		f.Host, f.PathPrefix = "oauth.reddit.com", "/api/info"
		d.faults = append(d.faults, dayFault{name: name, at: "api", armed: d.emulator.Fault(f), times: f.Times})
	}
	images := func(name string, share float64, k hostile.FaultKind) {
		a := d.emulator.Fault(hostile.Fault{Host: "i.redd.it", Share: share, Kind: k})
		d.faults = append(d.faults, dayFault{name: name, at: "images", armed: a, share: share})
	}
	api("429 storm, HTML", hostile.Fault{After: 3, Times: 3, Kind: hostile.TooManyHTML(3)})
	api("token expiry", hostile.Fault{After: 8, Times: 1, Kind: hostile.ExpireToken()})
	api("hang", hostile.Fault{After: 12, Times: 1, Kind: hostile.Hang()})
	api("429 storm, JSON", hostile.Fault{After: 15, Times: 3, Kind: hostile.TooManyJSON()})
	api("window used up", hostile.Fault{After: 20, Times: 1, Kind: hostile.RateHeaders("10", "0.0", "5")})
	// 5 % each of some sixty requests.
	api("503", hostile.Fault{After: 6, Every: 10, Times: often(3, 1), Kind: hostile.ServerError(503)})
	api("half the JSON", hostile.Fault{After: 10, Every: 9, Times: often(2, 1), Kind: hostile.TruncatedJSON()})
	api("body cut off", hostile.Fault{After: 22, Times: 1, Kind: hostile.TruncatedBody()})

	images("502", 0.05, hostile.ServerError(502))
	images("body cut off", 0.03, hostile.TruncatedBody())
	images("half as a whole", 0.02, hostile.TruncatedJSON())
	images("hang", 0.01, hostile.Hang())
}

// TestScriptedDay runs a release of 2,000 posts, or of 700, through a day of trouble, and starts the run
// again while it says that something can be retried: in the end every live image is here whole,
// and at no time was a verdict wrong or Reddit asked faster than it allows.
func TestScriptedDay(t *testing.T) {
	t.Parallel()
	long(t)
	d := newDay(t)
	began := time.Now()
	var log strings.Builder
	for runs := 1; ; runs++ {
		at := time.Now()
		f := d.do(d.env(), d.args("--retry", "invalid")...)
		log.WriteString(f.stderr)
		left := d.checkVerdicts(t)
		t.Logf("run %d: exit %d after %v, %d entries without an outcome that stays", runs, f.code,
			time.Since(at).Round(time.Second), left)
		if f.code == exitDone && left == 0 {
			break
		}
		if f.code != exitDone && f.code != exitRetry || runs == dayMaxRuns {
			t.Fatalf("run %d ended with exit %d and %d entries to go, want it finished after %d\n%.3000s", runs, f.code,
				left, dayMaxRuns, f.stderr)
		}
	}
	t.Logf("the day took %v", time.Since(began).Round(time.Second))
	d.checkImages(t)
	d.checkPace(t)
	d.checkFaults(t)
	for _, reason := range []string{"it asked to be left alone", "its rate limit is used up"} {
		said := regexp.MustCompile(`waiting \d+s for oauth\.reddit\.com: `+reason).FindAllString(log.String(), -1)
		if len(said) == 0 {
			t.Errorf("no wait for %s was shown\n%.3000s", reason, log.String())
		}
		t.Logf("waits shown for %s: %q", reason, slices.Compact(said))
	}
}

// checkVerdicts holds outcomes.csv against the posts. An outcome may be missing for now, but
// what is said must be right. It returns how many are missing.
func (d *day) checkVerdicts(t *testing.T) (left int) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(d.workspace, "outcomes.csv")); err != nil {
		return len(d.posts) // Reddit stopped the run before it could write any
	}
	got := d.outcomes()
	if len(got) != len(d.posts) {
		t.Errorf("%d outcomes of %d entries", len(got), len(d.posts))
	}
	for _, r := range got {
		p := d.posts[r.Key.ID]
		live := p.Condition.State() == manifest.StateLive
		want := outcomeOfState[p.Condition.State()]
		switch {
		case r.Outcome == want:
		case r.Outcome == manifest.Failed, r.Outcome == manifest.Pending, r.Outcome == manifest.Invalid && live:
			left++
		default:
			t.Errorf("%s, which is %s: %s/%s, want %s", r.Key.ID, p.Condition, r.Outcome, r.Reason, want)
		}
	}
	return left
}

// checkImages holds every stored image against the bytes that the emulator has, and every
// request for one against the state of its post.
func (d *day) checkImages(t *testing.T) {
	whole, live, stored := 0, 0, tree(t, filepath.Join(d.workspace, "images"))
	for _, p := range d.posts {
		if p.Condition.State() == manifest.StateLive {
			live++
		}
	}
	for _, rec := range d.records() {
		if rec.Image == nil {
			continue
		}
		served := string(d.posts[rec.ID].Images[0].Body)
		if stored["1d/"+string(rec.ID)+".png"] != served ||
			rec.Image.OriginalSHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(served))) {
			t.Errorf("the image of %s is not the one that was served", rec.ID)
			continue
		}
		whole++
	}
	if whole != live {
		t.Errorf("%d whole images of %d live posts", whole, live)
	}
	gone := map[string]manifest.PostID{}
	for id, p := range d.posts {
		if p.Condition.State() != manifest.StateLive {
			gone[p.URLs()[0]] = id
		}
	}
	for _, r := range d.imageRequests() {
		if id, ok := gone["https://"+r.Host+r.Path]; ok {
			t.Errorf("the image of %s was asked for, which is %s", id, d.posts[id].Condition)
		}
	}
	t.Logf("%d posts, %d live, %d images whole", len(d.posts), live, whole)
}

// checkPace counts what arrived at Reddit in every minute, which bounds the burst of a rested client too, and looks
// whether the pauses that it asked for were made and its own limit was never met.
func (d *day) checkPace(t *testing.T) {
	var times []time.Time
	refused, asked := 0, time.Duration(0)
	pauses := map[string]time.Duration{"429 html": 3 * time.Second, "rate headers": 5 * time.Second}
	for _, r := range d.emulator.Requests() {
		if r.Host != "www.reddit.com" && r.Host != "oauth.reddit.com" {
			continue
		}
		if n := len(times); n > 0 && r.Time.Sub(times[n-1]) < asked {
			t.Errorf("asked again after %v, when Reddit had asked for a pause of %v", r.Time.Sub(times[n-1]), asked)
		}
		asked = pauses[r.Fault]
		times = append(times, r.Time)
		if r.Status == 429 && r.Fault == "" {
			refused++
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	most, first := 0, 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	t.Logf("%d requests to Reddit, at most %d in any minute; %d are allowed", len(times), most, dayPerMinute)
	if most > dayPerMinute || refused > 0 {
		t.Errorf("%d requests in a minute, %d refused for the limit; %d are allowed", most, refused, dayPerMinute)
	}
	if len(times) < len(d.posts)/100 {
		t.Errorf("only %d requests to Reddit: the test saw too little", len(times))
	}
}

// checkFaults shows that the day was as bad as it was meant to be.
func (d *day) checkFaults(t *testing.T) {
	all := len(d.imageRequests())
	for _, f := range d.faults {
		n := f.armed.Fired()
		t.Logf("%-6s  %-16s  %3d times", f.at, f.name, n)
		want := f.share * float64(all)
		// A day in which chance alone does this comes once in 100,000.
		if f.share == 0 && n != f.times || f.share > 0 && (poisson(want, 0, n) < 1e-5 || 1-poisson(want, 0, n-1) < 1e-5) {
			t.Errorf("%s at %s came %d times of %d requests, want %d or about %.0f", f.name, f.at, n, all, f.times, want)
		}
	}
}

// poisson is the probability of from to to events where want are expected.
func poisson(want float64, from, to int) (sum float64) {
	for k := from; k <= to; k++ {
		log, _ := math.Lgamma(float64(k + 1))
		sum += math.Exp(float64(k)*math.Log(want) - want - log)
	}
	return sum
}
