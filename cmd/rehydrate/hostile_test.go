package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
	"rehydrate/internal/testkit/measure"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// The bars of the hostile corpus.
const (
	mostMemory       = 512 << 20  // of rehydrate, resident
	mostWorkerMemory = 1536 << 20 // of an OCR worker
	mostTime         = 60 * time.Second
)

// A hostileSite is a site whose every post is a case of the hostile corpus, but for a few
// good ones and the first hundred, whose answer from the API is a gzip bomb.
type hostileSite struct {
	*site
	trap  *trap
	hosts []string                            // with an answer of the corpus each
	want  map[manifest.PostID]manifest.Result // outcome and reason
	names map[manifest.PostID]string          // of the cases
	armed map[manifest.PostID]*hostile.Armed  // the answers
	where map[string]manifest.PostID          // host and path of an image -> its post
}

// wrongCertificate is a host whose certificate is for others.
const wrongCertificate = "wrong-certificate.hostile.example"

func newHostileSite(t *testing.T) *hostileSite {
	h := &hostileSite{trap: setTrap(t), want: map[manifest.PostID]manifest.Result{}, names: map[manifest.PostID]string{},
		armed: map[manifest.PostID]*hostile.Armed{}, where: map[string]manifest.PostID{}}
	var posts []redditemu.Post
	add := func(name string, p redditemu.Post, o manifest.Outcome, r manifest.Reason) {
		posts = append(posts, p)
		h.names[p.ID], h.want[p.ID] = name, manifest.Result{Outcome: o, Reason: r}
		for _, u := range p.URLs() {
			h.where[strings.TrimPrefix(u, "https://")] = p.ID
		}
	}
	for i := range 100 {
		add("api_gzip_bomb", redditemu.Post{ID: manifest.PostID(fmt.Sprintf("1b%03d", i))}, manifest.Failed, "too_large")
	}
	for i, c := range hostile.Images(h.trap.address) {
		p := redditemu.Post{ID: manifest.PostID(fmt.Sprintf("1i%03d", i)), Images: []redditemu.Image{{Write: c.Write}}}
		add(c.Name, p, c.Outcome, c.Reason)
	}
	kinds := map[string]hostile.FaultKind{}
	link := func(id, name, host string, o manifest.Outcome, r manifest.Reason) {
		p := redditemu.Post{ID: manifest.PostID(id), Kind: redditemu.KindLink, Link: "https://" + host + "/picture.jpg"}
		add(name, p, o, r)
		h.where[host+"/picture.jpg"] = p.ID
	}
	for i, c := range hostile.Answers(h.trap.address) {
		host := strings.ReplaceAll(c.Name, "_", "-") + ".hostile.example"
		h.hosts, kinds[host] = append(h.hosts, host), c.Kind
		link(fmt.Sprintf("1a%03d", i), c.Name, host, c.Outcome, c.Reason)
	}
	link("1w000", "wrong_certificate", wrongCertificate, manifest.Failed, "tls")
	for i, p := range fewPosts(5) {
		p.Images = nil // drawn by the emulator, for Tesseract to read
		add(fmt.Sprintf("good_%d", i), p, manifest.Kept, "")
	}
	h.site = newSiteOn(t, redditemu.Options{Seed: 1, Hosts: h.hosts}, fewAnnotations(posts), fastPolicy+h.policy(),
		posts...).real() // Tesseract sees what comes of hostile pictures
	h.emulator.Fault(hostile.Fault{PathPrefix: "/api/info", Post: "1b000", Kind: hostile.GzipBomb(1 << 30)})
	for host, kind := range kinds {
		h.armed[h.where[host+"/picture.jpg"]] = h.emulator.Fault(hostile.Fault{Host: host, Kind: kind})
	}
	return h
}

// policy lists the hosts of the answers, each with room for one request.
func (h *hostileSite) policy() string {
	var b strings.Builder
	for _, host := range append(h.hosts, wrongCertificate) {
		fmt.Fprintf(&b, "\n[[images.host]]\nname = %q\nrequests_per_second = 50\nconcurrency = 1\n", host)
	}
	return b.String()
}

// args leads to the emulator only what the policy names: any other connection is a real one.
func (h *hostileSite) args() []string {
	args := []string{"run", h.release, "-w", h.workspace, "--approval", "TEST-1", "--cacert", h.cacert, "--ocr",
		h.reader, "-v"}
	for _, host := range append([]string{"www.reddit.com", "oauth.reddit.com", "i.redd.it", wrongCertificate},
		h.hosts...) {
		args = append(args, "--connect-to", host+":443:"+h.emulator.Addr())
	}
	return args
}

// A trap is a listener that nobody may connect to.
type trap struct {
	address string
	sprung  atomic.Int32
}

func setTrap(t *testing.T) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	tr := &trap{address: l.Addr().String()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tr.sprung.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return tr
}

// TestHostileCorpus runs rehydrate as a process of its own against the hostile corpus, one
// post a case, and holds it to the bars: every case costs its own row and nothing else.
func TestHostileCorpus(t *testing.T) {
	t.Parallel() // most of its time is that of hosts that send nothing
	long(t)
	if measure.Raced {
		t.Skip("it bounds the memory and the time of whole processes")
	}
	h := newHostileSite(t)
	apiDone := h.lookAtHostileAPI(t)
	began := time.Now()
	c := h.watch(t)
	took := time.Since(began)
	<-apiDone

	if c.code != exitRetry {
		t.Errorf("exit %d, want %d: some cases can be retried\n%.2000s", c.code, exitRetry, c.log)
	}
	if regexp.MustCompile(`(?m)^(panic:|fatal error:|goroutine \d)`).MatchString(c.log) {
		t.Errorf("rehydrate or a worker panicked:\n%.4000s", c.log)
	}
	got := h.outcomes()
	if len(got) != len(h.want) || len(got) < 100+80+5 {
		t.Errorf("%d outcomes of %d entries", len(got), len(h.want))
	}
	counts := map[manifest.Outcome]int{}
	for _, r := range got {
		w, name := h.want[r.Key.ID], h.names[r.Key.ID]
		counts[r.Outcome]++
		if r.Outcome != w.Outcome || r.Reason != w.Reason {
			t.Errorf("%s = %s/%s (%s), want %s/%s", name, r.Outcome, r.Reason, r.Detail, w.Outcome, w.Reason)
		}
		if d := c.spent[r.Key.ID]; d > mostTime {
			t.Errorf("%s took %v, at most %v are allowed", name, d, mostTime)
		}
	}
	for id, a := range h.armed {
		if a.Fired() == 0 {
			t.Errorf("the answer of %s was never given", h.names[id])
		}
	}
	h.checkRequests(t)
	h.checkNothingHidden(t)
	if c.memory > mostMemory || c.workerMemory > mostWorkerMemory {
		t.Errorf("rehydrate took %d MB, an OCR worker %d MB; %d and %d are allowed",
			c.memory>>20, c.workerMemory>>20, mostMemory>>20, mostWorkerMemory>>20)
	}
	if c.memory == 0 || c.workerMemory == 0 {
		t.Errorf("memory was not measured: %d, %d", c.memory, c.workerMemory)
	}
	slowest := slices.MaxFunc(got,
		func(a, b manifest.Result) int { return int(c.spent[a.Key.ID] - c.spent[b.Key.ID]) }).Key.ID
	t.Logf("%d cases in %v; outcomes %v; slowest %s with %v; rehydrate %d MB, OCR worker %d MB",
		len(h.want)-100-5+1, took.Round(time.Second), counts, h.names[slowest], c.spent[slowest].Round(time.Second),
		c.memory>>20, c.workerMemory>>20)
}

// checkRequests holds every request to the hosts that the policy allows, without cookies or
// credentials, and none to a place where a hostile redirect leads.
func (h *hostileSite) checkRequests(t *testing.T) {
	allowed := append([]string{"www.reddit.com", "oauth.reddit.com", "i.redd.it"}, h.hosts...)
	for _, r := range h.emulator.Requests() {
		isAPI := strings.HasSuffix(r.Host, ".reddit.com")
		switch {
		case !slices.Contains(allowed, r.Host):
			t.Errorf("%s was asked", r.Host)
		case strings.Contains(r.Path+r.Query, "trap"), strings.Contains(r.Path, "meta-data"):
			t.Errorf("a hostile redirect was followed to %s%s", r.Host, r.Path)
		case !isAPI && r.Auth != "none":
			t.Errorf("credentials (%s) were sent to %s", r.Auth, r.Host)
		case isAPI && r.Path == "/api/v1/access_token" && r.Method != "POST":
			t.Errorf("%s %s%s", r.Method, r.Host, r.Path)
		case r.Cookie != "" || r.Referer != "":
			t.Errorf("%s was sent a cookie or a referer", r.Host)
		}
	}
	if n := h.trap.sprung.Load(); n > 0 {
		t.Errorf("%d connections were made to an address that is not public", n)
	}
}

// checkNothingHidden looks through the workspace for what the files of the corpus hide beside
// their pixels, and for what the API says of people.
func (h *hostileSite) checkNothingHidden(t *testing.T) {
	for _, canary := range append(hostile.Canaries(), h.trap.address, "alert(1)", "<?php") {
		h.grep(canary, "what a file hides, or what is said of people")
	}
	if n := len(h.images()); n < 20 {
		t.Errorf("%d images in the workspace", n)
	}
}

// A watched is what was seen of a run from outside.
type watched struct {
	code                 int
	log                  string
	memory, workerMemory int64 // at most, resident
	spent                map[manifest.PostID]time.Duration
}

var settledLine = regexp.MustCompile(`msg="(?:entry settled|image read)" id=([0-9a-z]+)`)

// watch runs rehydrate in a process of its own to its end. What an entry took is from the
// first request for its image to the line that says what became of it.
func (h *hostileSite) watch(t *testing.T) watched {
	t.Helper()
	var mu sync.Mutex
	asked, w := map[manifest.PostID]time.Time{}, watched{spent: map[manifest.PostID]time.Duration{}}
	h.emulator.OnRequest(func(r hostile.Request) {
		mu.Lock()
		defer mu.Unlock()
		if id, ok := h.where[r.Host+r.Path]; ok && asked[id].IsZero() {
			asked[id] = time.Now()
		}
	})
	// What goes on after 3 minutes is a hang: killed, it fails the test by its exit status.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := h.command(ctx, nil, h.args()...)
	stderr, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	gauge := time.NewTicker(100 * time.Millisecond)
	defer gauge.Stop()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(stderr); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	var log strings.Builder
	for open := true; open; {
		var line string
		select {
		case line, open = <-lines:
			log.WriteString(line + "\n")
			if m := settledLine.FindStringSubmatch(line); m != nil {
				mu.Lock()
				if id := manifest.PostID(m[1]); !asked[id].IsZero() {
					w.spent[id] = time.Since(asked[id])
				}
				mu.Unlock()
			}
		case <-gauge.C:
			w.memory = max(w.memory, peakMemory(cmd.Process.Pid))
			w.workerMemory = max(w.workerMemory, peakOfChildren(cmd.Process.Pid))
		}
	}
	_ = cmd.Wait() // its status says more
	w.code, w.log = cmd.ProcessState.ExitCode(), log.String()
	return w
}

// peakOfChildren is the most that a process which this one started has had. What the kernel tells of a process that
// ended counts also the memory of the one that it was forked from.
func peakOfChildren(pid int) (most int64) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // a bad pattern is its only error
	for _, name := range lists {
		b, _ := os.ReadFile(name) // of a thread that ended there is none
		for _, child := range strings.Fields(string(b)) {
			n, _ := strconv.Atoi(child)
			most = max(most, peakMemory(n))
		}
	}
	return most
}

// peakMemory is the most memory, in bytes, that a process has had resident; 0 when it is gone.
func peakMemory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(field, 10, 64)
	return n << 10
}

// hostileAPI are answers of the API that hold no verdict, with the reason of each.
var hostileAPI = map[string]struct {
	kind   hostile.FaultKind
	reason manifest.Reason
}{
	"gzip bomb":         {hostile.GzipBomb(1 << 30), "too_large"},
	"endless chunks":    {hostile.Endless(), "too_large"},
	"one byte a second": {hostile.OneByteASecond(), "timeout"},
	"header of 10 MB":   {hostile.HugeHeader(10 << 20), "headers_too_large"},
	"nested 100,000 times": {hostile.Status(200, nil,
		[]byte(strings.Repeat(`[`, 100_000)+strings.Repeat(`]`, 100_000))), "bad_json"},
	"redirect to a trap": {hostile.RedirectTo("https://127.0.0.1/trap"), "http_302"},
	"wrong length":       {hostile.WrongLength(100), "truncated"},
	"shorter than said":  {hostile.WrongLength(-100), "truncated_json"},
	"empty reply":        {hostile.EmptyReply(), "connection"},
	"no HTTP":            {hostile.NotHTTP(), "connection"},
	"a number":           {hostile.Status(200, nil, []byte("42")), "not_a_listing"},
	"null children": {hostile.Status(200, nil, []byte(`{"kind":"Listing","data":{"children":null}}`)),
		"not_a_listing"},
}

// lookAtHostileAPI asks about a live post once for each hostile answer, all at the same time,
// and closes done. None is a verdict, and none takes longer than an image may.
func (h *hostileSite) lookAtHostileAPI(t *testing.T) (done chan struct{}) {
	var all sync.WaitGroup
	for name, c := range hostileAPI {
		all.Go(func() {
			emulator, notStarted := hostile.Start(redditemu.Options{Seed: 2})
			if notStarted != nil {
				t.Error(notStarted)
				return
			}
			defer emulator.Close()
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(emulator.CAPEM())
			to, unparsed := polite.ParseConnectTo(emulator.ConnectTo())
			client, err := reddit.New(reddit.Options{Approval: "TEST-1", Policy: policy.Default(), RootCAs: roots,
				ConnectTo: []polite.ConnectTo{to},
				Credentials: reddit.Credentials{ClientID: emulator.ClientID, ClientSecret: secret.New(emulator.Secret),
					Username: "test_user"}})
			if err := errors.Join(unparsed, err, emulator.Put(redditemu.Post{ID: "1live"})); err != nil {
				t.Error(err)
				return
			}
			emulator.Fault(hostile.Fault{PathPrefix: "/api/info", Kind: c.kind})
			began := time.Now()
			_, err = client.Ask(t.Context(), []manifest.PostID{"1live"})
			var none *reddit.Unanswered
			if !errors.As(err, &none) || none.Reason != c.reason {
				t.Errorf("API, %s: error %v, want no verdict for the reason %s", name, err, c.reason)
			}
			if d := time.Since(began); d > mostTime {
				t.Errorf("API, %s: took %v, at most %v are allowed", name, d, mostTime)
			}
		})
	}
	done = make(chan struct{})
	go func() { all.Wait(); close(done) }()
	return done
}
