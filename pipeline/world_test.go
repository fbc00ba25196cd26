package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A world is a release, a workspace on the disk, and what Reddit, its image hosts and the OCR engine answer, in
// memory. A test changes it and does jobs in it by the words of do.
type world struct {
	testing.TB
	dir      string // has the workspace and its copies
	release  *manifest.Release
	manifest manifest.Summary
	stones   []manifest.Tombstone // that the release publishes
	named    map[string]string    // digests that it names of rows
	without  []string             // rows that it does not have
	policy   policy.Policy
	now      time.Time
	reddit   *fakeReddit
	ocr      *fakeOCR
	hook     func(step, name string) error // before each step that changes the disk
	struck   atomic.Bool                   // the last disturbance took place
	stop     chan struct{}                 // of the job that is being done
	done     []string                      // all steps so far
	summary  state.Summary                 // of the last job
	purged   PurgeReport
	reread   state.Reread
	err      error
}

// newWorld has a post for each id, of one image or, as in "a*3", of several. The image n of the posts, counted through
// all of them, shows the picture n.
func newWorld(t testing.TB, posts ...string) *world {
	w := &world{TB: t, dir: t.TempDir(), policy: policy.Default(), now: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
		reddit: &fakeReddit{posts: map[manifest.PostID]*fakePost{}, sends: map[string]string{},
			hosts: map[string]string{}, sent: map[string]bool{}},
		ocr: &fakeOCR{name: "A", fails: map[int]bool{}}, named: map[string]string{}}
	w.policy.Reddit.SecondLookAfter = 0
	n := 0
	for _, p := range posts {
		id, times, _ := strings.Cut(p, "*")
		post := &fakePost{state: "live"}
		count, _ := strconv.Atoi(cmp.Or(times, "1"))
		for i := range count {
			post.images = append(post.images, "")
			post.moved = append(post.moved, 0)
			w.reddit.sends[post.url(manifest.PostID(id), i)] = strconv.Itoa(n)
			n++
		}
		w.reddit.posts[manifest.PostID(id)] = post
		w.reddit.order = append(w.reddit.order, manifest.PostID(id))
	}
	w.publish(w.reddit.order...)
	return w
}

// copied is a world like w that shares nothing with it, so that many tests can begin where one run ended. A copy made
// by an export would lie where w has it: those are made afterwards.
func (w *world) copied(t testing.TB) *world {
	t.Helper()
	if _, err := os.Stat(filepath.Join(w.dir, "copies")); err == nil {
		t.Fatal("a world with copies cannot be copied")
	}
	r := w.reddit
	c := &world{TB: t, dir: t.TempDir(), stones: slices.Clone(w.stones), named: maps.Clone(w.named),
		without: slices.Clone(w.without), policy: w.policy, now: w.now, done: slices.Clone(w.done),
		ocr: &fakeOCR{name: w.ocr.name, fails: maps.Clone(w.ocr.fails)},
		reddit: &fakeReddit{order: r.order, posts: map[manifest.PostID]*fakePost{}, sends: maps.Clone(r.sends),
			hosts: maps.Clone(r.hosts), sent: maps.Clone(r.sent)}}
	for id, p := range r.posts {
		c.reddit.posts[id] = &fakePost{p.state, p.parent, slices.Clone(p.images), slices.Clone(p.moved),
			slices.Clone(p.list)}
	}
	testkit.OK(c, os.CopyFS(c.dir, os.DirFS(w.dir)))
	c.load()
	return c
}

// leftOut reports whether -short leaves the case n of a long table out: it takes one of so many.
func leftOut(n, of int) bool { return testing.Short() && n%of != 0 }

// numbered are n ids.
func numbered(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("p%02d", i))
	}
	return ids
}

// publish makes the release of these posts.
func (w *world) publish(ids ...manifest.PostID) {
	w.Helper()
	dir := filepath.Join(w.dir, "release")
	testkit.OK(w, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "release.toml"),
		[]byte("name = \"Test\"\nmanifest = \"annotations.csv\"\nschema = \"figsim\"\n"), 0o600))
	rows := "id,image,split,figurative,severity,related_content,modality,context,sha256\n"
	for _, id := range ids {
		for i := range w.reddit.posts[id].images {
			row, split := manifest.Key{ID: id, Image: i}.String(), "train"
			if slices.Contains(w.without, row) {
				continue
			}
			if len(rows)%2 == 0 {
				split = "test"
			}
			rows += fmt.Sprintf("%s,%d,%s,F1,SS6,SR3,M1,C1,%s\n", id, i, split, w.named[row])
		}
	}
	testkit.OK(w, os.WriteFile(filepath.Join(dir, "annotations.csv"), []byte(rows), 0o600))
	w.load()
}

// load opens the release and reads its manifest.
func (w *world) load() {
	w.Helper()
	var err, failed error
	w.release, err = manifest.Open(filepath.Join(w.dir, "release"), manifest.Options{})
	testkit.OK(w, err)
	w.manifest, failed = w.release.Check(w.Context())
	testkit.OK(w, failed)
}

// do does steps, which a semicolon or a line's end separates. What a step is, its first word says:
//
//	post WORD ID...      Reddit says of the posts: live, deleted, crosspost (deleted as one), moderator, copyright,
//	                     absent, quarantined, unclear
//	crosspost ID ID...   the posts are crossposts of the first one, whose images they show
//	image WORD ROW...    and of images of live posts: a key of oddities or ok
//	serve WHAT ROW...    the host sends there: a picture as drawn takes it, or a key of answers
//	move WHAT ROW...     Reddit names another place, where the host sends that: of a gallery another item
//	item WHAT ROW...     Reddit names the item again from which the image of the row came, and the host sends that
//	list ID N...         a gallery lists these of its items alone; all, if none is named
//	host WHAT NAME       a host sends that for whatever is asked; "ok" ends it
//	clock DURATION       time passes
//	engine NAME          another engine reads
//	fail N...            it fails at the pictures
//	stones WORD ID...    the release publishes tombstones
//	names WHAT ROW...    the release names the digest of that picture
//	without ROW...       the release does not have the rows
//	manifest N           the release has the first N posts, and no others
//	policy WORD          readmit, strict (which readmits nobody), larger (which allows larger images), flag, drop
//	audit ID...          an audit heard that the posts are deleted, live:ID that they are live, left:ROW that their
//	                     images were taken out of the gallery, and recorded it; first the word cut: it was cut off
//	copy NAME [FORMAT]   an export, as Parquet if nothing is said
//	answers              a model answers about every stored image
//
// and the jobs: run, recheck, purge, end, reread, split, work, merge; with the words confirm, offline, all, id=ID,
// denied (there is no access), retry=WORD, stop=N (at the question N to Reddit or a host), blocked=N (Reddit refuses
// from that on), die=N (the process is gone at the step N that changes the disk), fault=N (that step alone fails),
// on=N/WHAT (before the question N the change WHAT takes place, with commas in place of spaces) and unwritable=NAME
// (each step fails that changes a file with this in its name).
func (w *world) do(steps string) *world {
	w.Helper()
	for _, step := range strings.FieldsFunc(steps, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(step)
		if len(words) == 0 {
			continue
		}
		w.done = append(w.done, strings.Join(words, " "))
		if !w.change(words) {
			w.err = w.job(words[0], words[1:])
		}
	}
	return w
}

// ok fails the test when the last job failed.
func (w *world) ok() *world {
	w.Helper()
	if w.err != nil {
		w.Fatalf("%s: %v", strings.Join(w.done, "; "), w.err)
	}
	return w
}

// change does a step that is no job.
func (w *world) change(words []string) bool {
	w.Helper()
	w.reddit.mu.Lock()
	defer w.reddit.mu.Unlock()
	what := words[min(1, len(words)-1)]
	switch words[0] {
	case "post":
		for _, id := range words[2:] {
			w.post(id).state = what
		}
	case "crosspost":
		for _, id := range words[2:] {
			w.post(id).parent = manifest.PostID(what)
		}
	case "image":
		for _, row := range words[2:] {
			id, i := splitRow(row)
			p := w.post(id)
			p.images[i] = strings.TrimPrefix(what, "ok")
			if what == "parent" { // it is a crosspost, and stays one when its parent is back
				p.parent = cmp.Or(p.parent, "orig")
			}
		}
	case "serve", "move":
		for _, row := range words[2:] {
			id, i := splitRow(row)
			p := w.post(id)
			if words[0] == "move" {
				p.moved[i]++
			}
			w.reddit.sends[p.url(manifest.PostID(id), i)] = what
		}
	case "item":
		w.read(func(ctx context.Context, ws *workspace.Workspace) {
			for _, row := range words[2:] {
				id, i := splitRow(row)
				k, p := manifest.Key{ID: manifest.PostID(id), Image: i}, w.post(id)
				from, err := ws.Origins(ctx, []manifest.PostID{k.ID})
				testkit.OK(w, err)
				is := func() bool { return reddit.Candidate{Media: p.media(k.ID, i)}.IsFrom(from.Of(k)) }
				for from.Of(k) != "" && !is() && p.moved[i] > 0 {
					p.moved[i]--
				}
				w.reddit.sends[p.url(k.ID, i)] = what
			}
		})
	case "list":
		p := w.post(what)
		p.list = nil
		for _, n := range words[2:] {
			_, i := splitRow("/" + n)
			p.list = append(p.list, i)
		}
	case "host":
		w.reddit.hosts[words[2]] = strings.TrimPrefix(what, "ok")
	case "clock":
		d, err := time.ParseDuration(what)
		testkit.OK(w, err)
		w.now = w.now.Add(d)
	case "engine":
		w.ocr.name = what
	case "fail":
		for _, n := range words[1:] {
			picture, err := strconv.Atoi(n)
			testkit.OK(w, err)
			w.ocr.fails[picture] = true
		}
	case "stones":
		for _, id := range words[2:] {
			w.stones = append(w.stones, manifest.Tombstone{ID: manifest.PostID(id), State: manifest.PostState(what),
				Time: w.now})
		}
	case "names":
		for _, row := range words[2:] {
			w.named[row] = state.SHA256(drawn(what))
		}
		w.publish(w.reddit.order...)
	case "without":
		w.without = words[1:]
		w.publish(w.reddit.order...)
	case "manifest":
		n, err := strconv.Atoi(what)
		testkit.OK(w, err)
		w.publish(w.reddit.order[:n]...)
	case "policy":
		switch what {
		case "readmit":
			w.policy.Reddit.Readmit = policy.ReadmitModerator
		case "strict":
			w.policy.Reddit.Readmit = policy.Default().Reddit.Readmit
		case "larger":
			w.policy.Images.MaxBytes++
		default:
			w.policy.Filter.Mode = policy.Mode(what)
		}
	case "copy":
		testkit.OK(w, os.MkdirAll(filepath.Join(w.dir, "copies"), 0o700))
		err := w.inWorkspace(w.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
			_, err := copies.Export(ctx, copies.Config{Release: w.release, Tombstones: w.stones, Policy: w.policy,
				Workspace: ws,
				Now:       func() time.Time { return w.now }, To: filepath.Join(w.dir, "copies", what), Note: "test",
				Format: cmp.Or(strings.Join(words[2:], ""), "parquet")})
			return err
		})
		if _, stale := errors.AsType[*copies.NotExportable](err); !stale && !errors.Is(err, workspace.ErrNoWorkspace) {
			testkit.OK(w, err)
		}
	case "audit":
		testkit.OK(w, w.inWorkspace(w.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
			var records []auditlog.Event
			for _, id := range words[1:] {
				if id == "cut" {
					continue
				}
				e := auditlog.Event{Kind: auditlog.Audit, Verdict: "fail", CutOff: words[1] == "cut"}
				p := auditlog.Post{ID: manifest.PostID(id), State: manifest.StateDeleted, Reason: "author"}
				if live, is := strings.CutPrefix(id, "live:"); is {
					p = auditlog.Post{ID: manifest.PostID(live), State: manifest.StateLive}
				}
				if row, is := strings.CutPrefix(id, "left:"); is {
					id, e.Image = splitRow(row)
					p = auditlog.Post{ID: manifest.PostID(id), State: manifest.StateLive, Reason: policy.LeftGallery}
				}
				e.Posts = append(e.Posts, p)
				records = append(records, e)
			}
			return state.RecordAudit(ctx, ws, w.now, records)
		}))
	case "answers":
		testkit.OK(w, w.inWorkspace(w.Context(), w.answer))
	default:
		return false
	}
	return true
}

// answer stores what a model says of each image, as its own digest.
func (w *world) answer(ctx context.Context, ws *workspace.Workspace) error {
	var all []workspace.Answer
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Image != nil {
			all = append(all, workspace.Answer{Key: rec.Key, Asked: rec.Image.SHA256, ImageSHA256: rec.Image.SHA256,
				Task: "test", Run: 1,
				Outcome: "ok", Text: rec.Image.SHA256, At: w.now})
		}
	}
	return ws.SetAnswers(ctx, all, "model", workspace.Spending{Requests: len(all)})
}

func (w *world) post(id string) *fakePost {
	w.Helper()
	p := w.reddit.posts[manifest.PostID(id)]
	if p == nil {
		w.Fatalf("there is no post %s", id)
	}
	return p
}

// splitRow splits the name of a row into its post and its image.
func splitRow(row string) (id string, image int) {
	id, text, _ := strings.Cut(row, "/")
	image, _ = strconv.Atoi(text)
	return id, image
}

// config is what a job of the world works with, but for the workspace.
func (w *world) config() Config {
	c := Config{Release: w.release, Manifest: w.manifest, Tombstones: w.stones, Policy: w.policy, Reddit: w.reddit,
		OCR: w.ocr, Workers: 2,
		Language: english(), Version: "test", Now: func() time.Time { return w.now }, Stop: w.stop,
		LastAct:  time.Minute,
		Progress: NewProgress(func(Snapshot) {}),
		Log:      slog.New(slog.DiscardHandler)}
	return c
}

var errAccess = errors.New("the grant has expired")

// english is the filter, which is unpacked once.
var english = sync.OnceValue(func() *language.Filter {
	f, err := language.New()
	if err != nil {
		panic(err)
	}
	return f
})

// job does a job, and returns its error.
func (w *world) job(name string, words []string) (err error) {
	w.Helper()
	w.reddit.begin()
	w.ocr.begin()
	w.stop = make(chan struct{})
	has := func(word string) bool { return slices.Contains(words, word) }
	c := w.config()
	c.ConfirmRemovals = has("confirm")
	if has("denied") {
		c.Access = func(time.Time) error { return errAccess }
	}
	hook, before := w.hook, w.reddit.before
	defer func() { w.hook, w.reddit.before = hook, before }()
	var q PurgeRequest
	for _, word := range words {
		if id, ok := strings.CutPrefix(word, "id="); ok {
			q.IDs, q.Reason = append(q.IDs, manifest.PostID(id)), state.ReasonTakedown
		}
		if reason, ok := strings.CutPrefix(word, "retry="); ok {
			c.Retry = append(c.Retry, reason)
		}
		if name, ok := strings.CutPrefix(word, "unwritable="); ok {
			w.hook = func(_, changed string) error {
				if strings.Contains(changed, name) {
					return errFault
				}
				return nil
			}
		}
		if what, text, ok := strings.Cut(word, "="); ok &&
			slices.Contains([]string{"stop", "blocked", "die", "fault", "on"}, what) {
			at, change, _ := strings.Cut(text, "/")
			n, err := strconv.ParseInt(at, 10, 64)
			testkit.OK(w, err)
			w.disturb(what, n, strings.Split(change, ","))
		}
	}
	w.summary, w.purged, w.reread = state.Summary{}, PurgeReport{}, state.Reread{}
	ctx := w.Context()
	if w.hook != nil {
		ctx = context.WithValue(ctx, durable.HookKey{}, w.hook)
	}
	return w.inWorkspace(ctx, func(ctx context.Context, ws *workspace.Workspace) (err error) {
		c.Workspace = ws
		switch name {
		case "run":
			w.summary, err = Run(ctx, c)
		case "recheck":
			c.OCR = nil
			w.summary, err = Recheck(ctx, c)
		case "purge":
			if has("offline") {
				c.Reddit = nil
			}
			c.OCR = nil
			w.purged, err = Purge(ctx, c, q)
		case "end":
			_, err = End(ctx, ws, w.now)
		case "reread":
			c.Reddit = nil
			w.reread, err = ReadAgain(ctx, c, has("all"))
			if err == nil {
				err = ws.EndReread(ctx)
			}
		case "split":
			c.OCR, c.Workers = nil, 0
			w.summary, err = Split(ctx, c, 2)
		case "work":
			for i := range 2 {
				_, failed := cluster.Work(ctx, cluster.Job{Workspace: ws.Dir(), Shard: i, Shards: 2, Tool: "test", OCR: w.ocr,
					Workers:  2,
					Progress: func(int, int) {}})
				err = errors.Join(err, failed)
			}
		case "merge":
			c.OCR, c.Workers = nil, 0
			w.summary, err = Merge(ctx, c)
		default:
			w.Fatalf("%q is no step", name)
		}
		return err
	})
}

// errDead is the error of each step on the disk of a process that is gone, errFault of one that fails.
var (
	errDead  = errors.New("killed")
	errFault = errors.New("no space left")
)

// disturb disturbs the job that begins, at its step or question n.
func (w *world) disturb(how string, n int64, change []string) {
	var count atomic.Int64
	w.struck.Store(false)
	stop := sync.OnceFunc(func() { close(w.stop) })
	switch how {
	case "stop":
		w.reddit.before = func(string) error {
			if count.Add(1) == n {
				stop()
			}
			return nil
		}
	case "on":
		before := w.reddit.before // another disturbance
		w.reddit.before = func(call string) error {
			if count.Add(1) == n {
				w.change(change)
			}
			if before == nil {
				return nil
			}
			return before(call)
		}
	case "blocked":
		w.reddit.before = func(call string) error {
			if call == "ask" && count.Add(1) >= n {
				return &reddit.Denied{Reason: "blocked"}
			}
			return nil
		}
	case "die":
		w.hook = func(string, string) error {
			if count.Add(1) >= n {
				w.struck.Store(true)
				return errDead
			}
			return nil
		}
	case "fault":
		w.hook = func(string, string) error {
			if count.Add(1) == n {
				w.struck.Store(true)
				return errFault
			}
			return nil
		}
	}
}

func (w *world) inWorkspace(ctx context.Context, do func(context.Context, *workspace.Workspace) error) error {
	w.Helper()
	ws, err := workspace.Open(ctx, filepath.Join(w.dir, "ws"), workspace.Options{Now: func() time.Time { return w.now }})
	if err != nil {
		return err
	}
	err = do(ctx, ws)
	return errors.Join(err, ws.Close())
}

// read answers a question about the workspace, which it opens for reading alone.
func (w *world) read(do func(ctx context.Context, ws *workspace.Workspace)) {
	w.Helper()
	ws, err := workspace.Open(w.Context(), filepath.Join(w.dir, "ws"), workspace.Options{ReadOnly: true})
	testkit.OK(w, err)
	do(w.Context(), ws)
	testkit.OK(w, ws.Close())
}

// A fakeReddit is Reddit with its image hosts.
type fakeReddit struct {
	mu             sync.Mutex
	order          []manifest.PostID
	posts          map[manifest.PostID]*fakePost
	sends          map[string]string       // what is sent for an URL
	hosts          map[string]string       // what is sent for all of a host's
	sent           map[string]bool         // URLs of which a picture was sent
	before         func(call string) error // "ask", "fetch URL" or "about"; without mu
	asked, fetched []string                // by the job: posts, URLs
}

// A fakePost is one post.
type fakePost struct {
	state  string          // as in do
	parent manifest.PostID // the post that it is a crosspost of, "" for none
	images []string        // what is odd about each image, "" for nothing
	moved  []int           // how often each got another place: of a gallery that is another item
	list   []int           // which of them are listed, nil for all
}

// media is the id of an item of a gallery.
func (p *fakePost) media(id manifest.PostID, i int) string {
	return fmt.Sprintf("%s-%d-%d", id, i, p.moved[i])
}

func (p *fakePost) url(id manifest.PostID, i int) string {
	return "https://i.redd.it/" + p.media(id, i) + ".png"
}

// facts are what Reddit says of a post in a state.
var facts = map[string]policy.Facts{
	"live":        {HasMedia: true},
	"deleted":     {HasMedia: true, RemovedBy: "deleted"},
	"crosspost":   {HasMedia: true, RemovedBy: "deleted", OfParent: true},
	"moderator":   {HasMedia: true, RemovedBy: "moderator"},
	"copyright":   {HasMedia: true, RemovedBy: "copyright_takedown"},
	"quarantined": {HasMedia: true, Quarantine: true},
}

// oddities are what Reddit says of an image of a live post. The first two are removals.
var oddities = map[string]policy.Fault{
	"left":            {Outcome: manifest.Gone, Reason: policy.LeftGallery},
	"parent":          {Outcome: manifest.Gone, Reason: policy.CrosspostParent},
	"no_url":          {Outcome: manifest.NoMedia, Reason: "no_url"},
	"link":            {Outcome: manifest.NoMedia, Reason: "link"},
	"self":            {Outcome: manifest.NoMedia, Reason: "self_post"},
	"video":           {Outcome: manifest.NoMedia, Reason: "video"},
	"gallery_missing": {Outcome: manifest.NoMedia, Reason: "gallery_missing"},
	"item_missing":    {Outcome: manifest.Gone, Reason: "gallery_item_missing"},
	"item_failed":     {Outcome: manifest.Gone, Reason: "gallery_item_failed"},
	"unprocessed":     {Outcome: manifest.Failed, Reason: "gallery_item_unprocessed"},
	"parent_held":     {Outcome: manifest.Refused, Reason: "crosspost_parent_held"},
	"host":            {Outcome: manifest.Refused, Reason: "host_not_allowed"},
	"malformed":       {Outcome: manifest.Failed, Reason: "malformed_media"},
	"no_such_image":   {Outcome: manifest.Gone, Reason: "no_such_image"},
}

// isRemoval reports whether one of the oddities takes the image with it.
func isRemoval(odd string) bool { return odd == "left" || odd == "parent" }

// answers are what a host sends in place of an image: a fault, or a body that is none.
var answers = map[string]struct {
	fault policy.Fault
	body  string
}{
	"404":   {policy.Fault{Outcome: manifest.Gone, Reason: "http_404"}, ""},
	"403":   {policy.Fault{Outcome: manifest.Gone, Reason: "http_403"}, ""},
	"503":   {policy.Fault{Outcome: manifest.Failed, Reason: "http_503"}, ""},
	"login": {policy.Fault{Outcome: manifest.Refused, Reason: "redirect_host_not_allowed"}, ""},
	"avif":  {policy.Fault{}, "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf"},
	"html":  {policy.Fault{}, "<!DOCTYPE html><html><body>Hello</body></html>"},
	"empty": {policy.Fault{}, ""},
	"cut":   {policy.Fault{}, "\x89PNG\r\n\x1a\n\x00\x00"},
}

func (f *fakeReddit) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.fetched = nil, nil
}

func (f *fakeReddit) announce(call string) error {
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(call)
}

// Ask answers as Reddit's API does.
func (f *fakeReddit) Ask(ctx context.Context, ids []manifest.PostID) (reddit.Answer, error) {
	if err := cmp.Or(f.announce("ask"), ctx.Err()); err != nil {
		return reddit.Answer{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := reddit.Answer{Posts: map[manifest.PostID]reddit.Post{}, Unclear: map[manifest.PostID]manifest.Reason{}}
	for _, id := range ids {
		f.asked = append(f.asked, string(id))
		p := f.posts[id]
		switch {
		case p == nil || p.state == "absent":
			a.Absent = append(a.Absent, id)
		case p.state == "unclear":
			a.Unclear[id] = "malformed_thing"
		default:
			a.Posts[id] = p.answer(id)
		}
	}
	if len(a.Posts)+len(a.Unclear) == 0 {
		return reddit.Answer{}, &reddit.Unanswered{Reason: reddit.ReasonEmptyListing}
	}
	return a, nil
}

func (p *fakePost) answer(id manifest.PostID) reddit.Post {
	out := reddit.Post{Facts: facts[p.state], Subreddit: "memes"}
	for i, odd := range p.images {
		c := reddit.Candidate{URL: p.url(id, i), Host: "i.redd.it"}
		if f, ok := oddities[odd]; ok {
			c = reddit.Candidate{Fault: &f}
		}
		c.Parent = p.parent
		if len(p.images) > 1 {
			c.Media = p.media(id, i)
		}
		out.Images = append(out.Images, c)
	}
	if p.list == nil {
		return out
	}
	all := out.Images
	out.Images = nil
	for _, i := range p.list {
		out.Images = append(out.Images, all[i])
	}
	return out
}

// About says that every community is open.
func (f *fakeReddit) About(context.Context, string) (manifest.Reason, error) {
	return policy.CommunityOpen, f.announce("about")
}

// Download sends what lies at a URL.
func (f *fakeReddit) Download(ctx context.Context, c reddit.Candidate) (reddit.Download, error) {
	if err := cmp.Or(f.announce("fetch "+c.URL), ctx.Err()); err != nil {
		return reddit.Download{}, err
	}
	f.mu.Lock()
	f.fetched = append(f.fetched, c.URL)
	what := cmp.Or(f.hosts[c.Host], f.sends[c.URL], "404")
	f.mu.Unlock()
	d := reddit.Download{Host: c.Host}
	if a, ok := answers[what]; ok && a.fault.Reason != "" {
		return d, &a.fault
	} else if ok {
		d.Body = []byte(a.body)
	} else {
		if picture, ok := strings.CutPrefix(what, "flaky:"); ok { // cut the first time
			what = picture
			if !f.sent[c.URL] {
				what = "short:" + picture
			}
		}
		f.mu.Lock()
		f.sent[c.URL] = true
		f.mu.Unlock()
		d.Body, d.Redirected = drawn(what), strings.HasPrefix(what, "redirected:")
		if strings.HasPrefix(what, "own:") {
			d.Body = withComment(d.Body, c.URL)
		}
	}
	info, fault := policy.Default().InspectImage(d.Body)
	d.Info = info
	if fault != nil {
		if !reddit.NoImage(fault.Reason) {
			d.Body = nil
		}
		return d, fault
	}
	return d, nil
}

// GivenUp has no host: a fake one answers at once.
func (f *fakeReddit) GivenUp() []reddit.HostTrouble { return nil }

// Calls counts nothing.
func (f *fakeReddit) Calls() calls.Counts { return calls.Counts{} }

// drawn is a flat picture, "3", "small:3", "redirected:3", "own:3" (each with a comment of its own) or "short:3" (cut
// at its end): its colour is its number, which the fake engine reads. None is near another.
func drawn(what string) []byte {
	kind, text, ok := strings.Cut(what, ":")
	if !ok {
		kind, text = "", what
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("no picture is called " + what)
	}
	height := state.SmallSide
	if kind == "small" {
		height = 20
	}
	img := image.NewPaletted(image.Rect(0, 0, 1, height), color.Palette{color.NRGBA{uint8(n), uint8(n >> 8), 7, 255}})
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a bytes.Buffer takes everything
	if kind == "short" {
		return b.Bytes()[:b.Len()-2]
	}
	return b.Bytes()
}

// withComment is a PNG with a comment of its own in front of its end.
func withComment(body []byte, text string) []byte {
	const end = 12 // bytes of the last chunk
	chunk := append([]byte("tEXtComment\x00"), text...)
	out := slices.Clone(body[:len(body)-end])
	out = binary.BigEndian.AppendUint32(out, uint32(len(chunk)-4))
	out = append(out, chunk...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
	return append(out, body[len(body)-end:]...)
}

// A fakeOCR reads the number of a picture from its colour.
type fakeOCR struct {
	mu    sync.Mutex
	name  string
	fails map[int]bool // pictures that it cannot read
	reads []int        // by the job
}

func (f *fakeOCR) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = nil
}

// Engine names it.
func (f *fakeOCR) Engine() ocr.Engine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return ocr.Engine{Name: "fake " + f.name, Model: "eng"}
}

// Read reads a picture.
func (f *fakeOCR) Read(ctx context.Context, img image.Image) (layout.Reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, g, _, _ := img.At(0, 0).RGBA()
	n := int(r>>8) + int(g>>8)<<8
	f.reads = append(f.reads, n)
	if f.fails[n] {
		return layout.Reading{}, &ocr.Failure{Reason: ocr.ReasonTimeout, Detail: "fake"}
	}
	var out layout.Reading
	for i, text := range strings.Fields(textOf(f.name, n)) {
		out.Words = append(out.Words, word.Word{Text: text, Confidence: 90, X: 10 * i, W: 8, H: 8, Accepted: true})
	}
	out.Text, out.Confidence = word.Join(out.Words)
	return out, ctx.Err()
}

// textOf is what an engine reads in a picture. No two texts are near.
func textOf(engine string, n int) string {
	nouns := strings.Fields("house water friend dinner window garden doctor summer winter street letter brother mother flower kitchen river")
	return fmt.Sprintf("the %s and the %s %s", nouns[n%16], nouns[(n/16+5)%16], unique(engine, n))
}

// unique is a word that an engine reads in one picture alone.
func unique(engine string, n int) string { return strings.ToLower(fmt.Sprintf("z%sq%dx", engine, n)) }

// namesOf are the names in a set, in order.
func namesOf[V any](set map[string]V) string { return strings.Join(slices.Sorted(maps.Keys(set)), " ") }
