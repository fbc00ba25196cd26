package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

// spread are n live posts with a speck each, at hosts in turn, whose ids spread over folders as Reddit's do.
func spread(n int, hosts ...redditemu.Kind) []redditemu.Post {
	rng := rand.New(rand.NewPCG(1, 2))
	posts := make([]redditemu.Post, n)
	for i := range posts {
		posts[i] = redditemu.Post{ID: manifest.PostID(fmt.Sprintf("1%c%04d", "abcdefghijklmnopqrstuvwxyz"[rng.IntN(26)],
			i)),
			Kind: hosts[i%len(hosts)], Images: []redditemu.Image{{Body: speck(rng), Ext: "png"}}}
	}
	return posts
}

// asPaced is a policy of two image hosts, with so many requests a second each.
func asPaced(reddit, imgur int) string {
	return fmt.Sprintf(`
[reddit]
requests_per_minute = 100
second_look_after = "0s"

[[images.host]]
name = "i.redd.it"
requests_per_second = %d
concurrency = 4

[[images.host]]
name = "i.imgur.com"
requests_per_second = %d
concurrency = 4
`, reddit, imgur)
}

// TestSlowHost: a host that is asked slowly does not hold up another, whose posts come behind its own.
func TestSlowHost(t *testing.T) {
	t.Parallel()
	posts := append(spread(150, redditemu.KindImgur), fewPosts(10)...)
	s := newSiteOn(t, redditemu.Options{Seed: 1}, fewAnnotations(posts), asPaced(100, 5), posts...)
	var mu sync.Mutex
	asked := map[string]int{}
	s.emulator.OnRequest(func(r hostile.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked[r.Host]++; r.Host == "i.redd.it" && asked[r.Host] == 10 {
			close(s.stop)
		}
	})
	s.do(s.env(), s.args()...).want(t, exitInterrupted)
	if asked["i.redd.it"] != 10 || asked["i.imgur.com"] > 50 {
		t.Errorf("%v were asked for, want 10 of i.redd.it before many of the other", asked)
	}
}

// A call is a system call in the log of strace, with the lines at which it began and ended.
type call struct {
	began, ended int
	at           float64 // when it began, in seconds
	text         string
}

// calls reads a log of strace -f -ttt.
func calls(t *testing.T, log string) (all []call) {
	t.Helper()
	open, n := map[string]call{}, 0
	for line := range strings.Lines(log) {
		n++
		thread, text, _ := strings.Cut(line, " ")
		at, text, _ := strings.Cut(strings.TrimSpace(text), " ")
		c := call{began: n, ended: n, text: text}
		if strings.HasPrefix(text, "<... ") {
			c = open[thread]
			c.ended = n
		} else {
			var err error
			c.at, err = strconv.ParseFloat(at, 64)
			check(t, err)
		}
		if strings.Contains(text, "<unfinished ...>") {
			open[thread] = c
			continue
		}
		all = append(all, c)
	}
	return all
}

var (
	synced  = regexp.MustCompile(`^f(?:data)?sync\(\d+<[^>]*/ws/?([^>]*)>`)
	renamed = regexp.MustCompile(`^renameat\(\d+<[^>]*/ws/(images/..)>, "(.*?)", \d+<[^>]*>, "(.*?)"`)
)

// TestStoredASecond fetches on a disk whose every sync takes 5 ms. The content of each image is on the disk before the
// file gets its name, and the name after it. Also then more images are stored than the default policy fetches, 20.6 a
// second.
func TestStoredASecond(t *testing.T) {
	long(t)
	orSkip(t, "strace", works(t, "strace", "-f", "-qqq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync",
		"-e", "inject=fsync:delay_exit=10", "true"))
	posts := spread(often(1000, 60), redditemu.KindImage, redditemu.KindImgur)
	s := newSiteOn(t, redditemu.Options{Seed: 1}, fewAnnotations(posts), asPaced(100, 100), posts...)
	s.workspace = place(t)
	log := filepath.Join(t.TempDir(), "strace")
	outcome(t, s.command(t.Context(), []string{"strace", "-f", "-y", "-qqq", "--seccomp-bpf", "-ttt", "-o", log, "-e",
		"signal=none",
		"-e", "trace=fsync,fdatasync,renameat", "-e", "inject=fsync,fdatasync:delay_exit=5000", "--"},
		s.job("cluster split", "--shards", "1")...)).want(t, exitDone)

	syncs, all := map[string][]call{}, 0 // by name below the workspace
	var named []call
	for _, c := range calls(t, read(t, log)) {
		if m := synced.FindStringSubmatch(c.text); m != nil {
			syncs[m[1]] = append(syncs[m[1]], c)
			all++
		} else if renamed.MatchString(c.text) {
			named = append(named, c)
		}
	}
	if len(named) != len(posts) || len(s.images()) != len(posts) {
		t.Fatalf("%d images got a name and %d are there, want %d", len(named), len(s.images()), len(posts))
	}
	for _, c := range named {
		m := renamed.FindStringSubmatch(c.text)
		content := syncs[m[1]+"/"+m[2]]
		if len(content) != 1 || content[0].ended > c.began {
			t.Errorf("%s got its name before its content was on the disk", m[3])
		}
		if !slices.ContainsFunc(syncs[m[1]], func(folder call) bool { return folder.began > c.ended }) {
			t.Errorf("the name of %s was not brought to the disk", m[3])
		}
	}
	perImage := float64(all) / float64(len(posts))
	aSecond := float64(len(posts)-1) / (named[len(named)-1].at - named[0].at)
	t.Logf("%.2f syncs an image, %.0f images a second", perImage, aSecond)
	if perImage > 8 || aSecond < 21 {
		t.Error("want at most 8 syncs, and 21 images a second")
	}
	asked, connections := map[string]int{}, map[string]map[string]bool{}
	for _, r := range s.emulator.Requests() {
		if connections[r.Host] == nil {
			connections[r.Host] = map[string]bool{}
		}
		asked[r.Host]++
		connections[r.Host][r.Client] = true
	}
	for host, of := range connections {
		t.Logf("%d requests to %s over %d connections", asked[host], host, len(of))
	}
}
