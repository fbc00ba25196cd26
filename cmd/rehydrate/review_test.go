package main

import (
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rehydrate/curate/annotate"
	"rehydrate/curate/review"
	"rehydrate/internal/testkit/browser"
	"rehydrate/manifest"
)

// A reviewed site is one whose images somebody annotates.
type reviewed struct {
	*site
	server  *review.Server
	answers string
	ahead   time.Duration // of the page's clock
	close   func()
}

// reviewing runs a site of so many posts and opens the page on it.
func reviewing(t *testing.T, n int) *reviewed {
	t.Helper()
	posts := fewPosts(n)
	r := &reviewed{site: newSite(t, fewAnnotations(posts), fastPolicy, posts...), answers: filepath.Join(t.TempDir(), "A1.jsonl")}
	r.run(exitDone)
	r.open()
	t.Cleanup(func() { r.close() })
	return r
}

// open opens the page, as after a restart.
func (r *reviewed) open() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	var err error
	r.server, err = review.Open(ctx, review.Config{Workspace: r.workspace, Scheme: manifest.FigSIM(), Pick: annotate.Pick{Seed: "1"},
		Batches: []int{1, 2}, Annotator: "A1", Answers: r.answers, Now: func() time.Time { return time.Now().Add(r.ahead) }})
	check(r.t, err)
	ended := make(chan error, 1)
	go func() { ended <- r.server.Serve(ctx) }()
	r.close = func() {
		cancel()
		check(r.t, <-ended)
		r.close = func() {}
	}
}

// ask sends a request as the page does, but for what change changes.
func (r *reviewed) ask(method, path, body string, change func(*http.Request)) (code int, answer string, header http.Header) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL()+path, strings.NewReader(body))
	check(r.t, err)
	base, _ := url.Parse(r.server.URL())
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == "POST" {
		req.Header.Set("Origin", base.Scheme+"://"+base.Host)
		req.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	check(r.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	check(r.t, err)
	return res.StatusCode, string(b), res.Header
}

// post is the image that the page shows, "" for none.
func (r *reviewed) post() string {
	r.t.Helper()
	code, text, _ := r.ask("GET", "state", "", nil)
	var state struct{ Post *struct{ ID string } }
	if code != 200 || json.Unmarshal([]byte(text), &state) != nil {
		r.t.Fatalf("state: %d %s", code, text)
	}
	if state.Post == nil {
		return ""
	}
	return state.Post.ID
}

func (r *reviewed) answer(id, labels string) (int, string) {
	r.t.Helper()
	code, text, _ := r.ask("POST", "answer", fmt.Sprintf(`{"id":%q,"labels":%s}`, id, labels), nil)
	return code, text
}

const someLabels = `{"figurative":["F3","F1"],"severity":["SS2"],"related_content":["SR6"],"modality":["M1"],"context":["C1"]}`

// TestReview: answers are stored as they are given, taken back, and read by the commands; a request that is not the page's own is refused.
func TestReview(t *testing.T) {
	t.Parallel()
	r := reviewing(t, 5)
	first := r.post()
	for name, change := range map[string]func(*http.Request){
		"another host's name":        func(q *http.Request) { q.Host = "rebound.invalid:80" },
		"the name of this machine":   func(q *http.Request) { q.Host = strings.Replace(q.URL.Host, "127.0.0.1", "localhost", 1) },
		"no token":                   func(q *http.Request) { q.URL.Path = "/state" },
		"a wrong token":              func(q *http.Request) { q.URL.Path = "/" + strings.Repeat("A", 26) + "/state" },
		"another site":               func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port":               func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "same-site") },
		"a change of no origin":      func(q *http.Request) { q.Method = "POST" },
		"a change of another origin": func(q *http.Request) { q.Method = "POST"; q.Header.Set("Origin", "http://127.0.0.1:1") },
		"a change as a form sends it": func(q *http.Request) {
			q.Method = "POST"
			q.Header.Set("Origin", "http://"+q.URL.Host)
			q.Header.Set("Content-Type", "text/plain")
		},
	} {
		if code, text, _ := r.ask("GET", "undo", "", change); code != http.StatusForbidden {
			t.Errorf("%s: %d %s, want it refused", name, code, text)
		}
	}
	for path, kind := range map[string]string{"": "text/html", "review.js": "text/javascript", "review.css": "text/css", "icon.svg": "image/svg+xml", "state": "application/json", "image/" + first + "/0": "image/jpeg"} {
		code, _, header := r.ask("GET", path, "", nil)
		if code != 200 || !strings.HasPrefix(header.Get("Content-Type"), kind) || header.Get("Cache-Control") != "no-store" ||
			header.Get("Cross-Origin-Resource-Policy") != "same-origin" || strings.Contains(header.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: %d %v", path, code, header)
		}
	}
	for labels, want := range map[string]string{
		"{}": "takes", strings.Replace(someLabels, "SS2", "SS9", 1): "is not a label", strings.Replace(someLabels, `"SR6"`, `"SR6","SR1"`, 1): "stands alone",
		strings.Replace(someLabels, `"M1"`, `"M1","M2"`, 1): "takes one label", strings.Replace(someLabels, `"F3",`, `"F1",`, 1): "given twice",
		`"`: "not JSON"} {
		if code, text := r.answer(first, labels); code != http.StatusConflict || !strings.Contains(text, want) {
			t.Errorf("labels %s: %d %s, want %q", labels, code, text, want)
		}
	}
	if code, text := r.answer("zzzz", someLabels); code != http.StatusConflict || !strings.Contains(text, "is not asked for") {
		t.Errorf("an image that is not asked for: %d %s", code, text)
	}

	// Given, taken back, given again, and there after a restart.
	if code, text := r.answer(first, someLabels); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	if _, text, _ := r.ask("POST", "undo", "", nil); !strings.Contains(text, `"given":{"context":["C1"],"figurative":["F1","F3"]`) || r.post() != first {
		t.Errorf("taken back: %s", text)
	}
	r.answer(first, someLabels)
	r.close()
	r.open()
	second := r.post()

	// Gone back to, and changed, while the answer before stays on the disk.
	before := read(t, r.answers)
	if _, text, _ := r.ask("POST", "back", `{"id":"`+first+`"}`, nil); !strings.Contains(text, `"done":["`+first+`"]`) || r.post() != first || read(t, r.answers) != before {
		t.Errorf("gone back: %s, then\n%s", text, read(t, r.answers))
	}
	if r.answer(first, strings.Replace(someLabels, "SS2", "SS4", 1)); r.post() != second || !strings.Contains(read(t, r.answers), "SS4") {
		t.Errorf("after another answer the page shows %s, and the answers are\n%s", r.post(), read(t, r.answers))
	}
	r.ask("POST", "back", `{"id":"`+first+`"}`, nil)
	r.answer(first, someLabels)
	if code, text, _ := r.ask("POST", "back", `{"id":"`+second+`"}`, nil); code != http.StatusConflict || !strings.Contains(text, "no answer to go back to") {
		t.Errorf("back to an image without an answer: %d %s", code, text)
	}
	if code, text := r.answer(first, someLabels); code != http.StatusConflict || !strings.Contains(text, "has an answer already") {
		t.Errorf("answered twice: %d %s", code, text)
	}
	r.ask("POST", "answer", `{"id":"`+second+`","skip":true,"care":true}`, nil)
	third := r.post()
	want := `{"batch":"1","care":false,"context":"C1","figurative":["F1","F3"],"id":"` + first + `","modality":"M1","related_content":["SR6"],"severity":"SS2","status":"answered"}` + "\n" +
		`{"batch":"2","care":true,"context":null,"figurative":null,"id":"` + second + `","modality":null,"related_content":null,"severity":null,"status":"skipped"}` + "\n"
	if got := read(t, r.answers); got != want {
		t.Errorf("the answers:\n%swant\n%s", got, want)
	}

	// The commands read it. A purge, which no lock of the page holds up, takes the next image out of it.
	r.do(nil, "labels", "agreement", r.answers, filepath.Join(r.release, "annotations.csv")).want(t, exitDone, "figurative")
	r.do(nil, "annotate", "merge", r.answers, filepath.Join(r.release, "annotations.csv"), "--release", r.release, "--out",
		filepath.Join(t.TempDir(), "m.jsonl")).want(t, exitRetry, "questions are open")
	r.do(r.env(), "purge", r.release, "-w", r.workspace, "--offline", "--id", third).want(t, exitDone)
	if code, text, _ := r.ask("GET", "image/"+third+"/0", "", nil); code != http.StatusNotFound {
		t.Errorf("the image of a post that was purged: %d, %d bytes", code, len(text))
	}
	if got := r.post(); got != "" {
		t.Errorf("after the purge the page shows %q", got)
	}
	r.ahead = 72 * time.Hour
	if code, _, _ := r.ask("GET", "image/"+first+"/0", "", nil); code != http.StatusNotFound {
		t.Errorf("an image whose post was last seen live too long ago: %d", code)
	}
	// Two pages on one file would lose answers.
	writeAs(t, r.answers, want[:strings.Index(want, "\n")+1], 0o600)
	if code, text, _ := r.ask("POST", "undo", "", nil); code != http.StatusConflict || !strings.Contains(text, "somebody else changed") {
		t.Errorf("another writer: %d %s", code, text)
	}
}

// TestReviewByKeyboard annotates in Chromium without a mouse, looks for what keeps people out, and lets hostile pages try.
func TestReviewByKeyboard(t *testing.T) {
	long(t)
	t.Parallel() // first: it waits, and Chromium has two minutes
	chromium := browser.Start(t)
	r := reviewing(t, 5)
	base, err := url.Parse(r.server.URL())
	check(t, err)
	chromium.Lead(base.Host, base.Host)
	seen := func(name string, width int, dark bool) {
		if dir := os.Getenv("SCREENSHOTS"); dir != "" {
			f, err := os.Create(filepath.Join(dir, name+".png"))
			check(t, err)
			check(t, png.Encode(f, chromium.Seen(t, browser.View{Width: width, Dark: dark})))
			check(t, f.Close())
		}
	}
	if faults := chromium.Faults(t, r.server.URL()); len(faults) > 0 {
		t.Errorf("faults of the page:\n%s", strings.Join(faults, "\n"))
	}
	v := chromium.Open(t, r.server.URL())
	blurred := `getComputedStyle(image).filter.startsWith("blur")`
	chromium.Until(t, `image.complete && image.naturalWidth > 0 && `+blurred)
	first := r.post()
	seen("blurred", 1280, false)
	chromium.Hold(t, "v")
	chromium.Until(t, "!("+blurred+")")
	seen("shown", 1280, true)
	chromium.Release(t, "v")
	chromium.Until(t, blurred)

	// 1 and 3, on; then one label each: the last Enter saves. None stands alone.
	for _, key := range strings.Fields("4 1 3 Enter 3 6 Enter 1 1") {
		chromium.Press(t, key)
	}
	seen("chosen", 390, false)
	chromium.Press(t, "c")
	chromium.Press(t, "Enter")
	chromium.Until(t, `said.textContent == "Saved. Image 2 of 3."`)
	if got := read(t, r.answers); !strings.Contains(got, `"care":true,"context":"C1","figurative":["F1","F3"],"id":"`+first+`","modality":"M1","related_content":["SR6"],"severity":"SS2"`) {
		t.Errorf("by keyboard: %s", got)
	}
	chromium.Press(t, "u")
	chromium.Until(t, `said.textContent == "Taken back. Image 1 of 3." && document.querySelectorAll("input[name=figurative]:checked").length == 2`)
	for _, key := range strings.Fields("Enter Enter Enter Enter Enter") {
		chromium.Press(t, key)
	}
	chromium.Until(t, `said.textContent.startsWith("Saved.")`)
	chromium.Press(t, "s")
	chromium.Until(t, `said.textContent == "Skipped. Image 3 of 3."`)
	chromium.Press(t, "1")
	chromium.Press(t, "Enter")
	chromium.Press(t, "Enter")
	chromium.Press(t, "Enter")
	chromium.Press(t, "Enter")
	chromium.Press(t, "Enter")
	chromium.Until(t, `said.className == "bad" && said.textContent.includes("has no answer yet")`)
	// With the keys off, a letter does nothing.
	chromium.Value(t, `keys.click()`)
	chromium.Press(t, "s")
	chromium.Value(t, `keys.click()`)
	r.ahead = 31 * time.Minute
	chromium.Until(t, `!rest.hidden`) // the page asks by itself
	seen("rest", 1280, false)
	chromium.Press(t, "b")
	chromium.Until(t, `rest.hidden`)

	// A purge takes the image away from whoever sits before it.
	r.do(r.env(), "purge", r.release, "-w", r.workspace, "--offline", "--id", r.post()).want(t, exitDone)
	chromium.Until(t, `work.hidden && !image.hasAttribute("src") && text.textContent == ""`)
	seen("gone", 1280, false)
	if len(v.Console) > 0 {
		t.Errorf("the console says %v", v.Console)
	}
	r.hostile(t, chromium, base, first)
}

// hostile lets pages of other origins, which know the address of the page, read and write what they can.
func (r *reviewed) hostile(t *testing.T, chromium *browser.Browser, base *url.URL, first string) {
	before := read(t, r.answers)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!doctype html><title>hostile</title><iframe name="f"></iframe><form id="form" method="post" enctype="text/plain" target="f"><input id="field"></form>`)
	}))
	defer evil.Close()
	chromium.Lead(strings.TrimPrefix(evil.URL, "http://"), strings.TrimPrefix(evil.URL, "http://"))
	chromium.Open(t, evil.URL)
	there := r.server.URL()
	got := chromium.Value(t, `(async () => {
		const found = [], there = "`+there+`"
		for (const mode of ["cors", "no-cors"]) for (const path of ["", "state", "image/`+first+`/0", "review.js"])
			try { found.push((await (await fetch(there + path, {mode})).text()).length) } catch { found.push("no") }
		for (const [mode, type] of [["cors", "application/json"], ["no-cors", "text/plain"]])
			try { await fetch(there + "undo", {mode, method: "POST", headers: {"Content-Type": type}, body: "{}"}) } catch {}
		const load = (tag, path) => new Promise(done => {
			const e = document.createElement(tag)
			e.onload = () => done("loaded"), e.onerror = () => done("no")
			e.src = there + path
			document.body.append(e)
		})
		found.push(await load("img", "image/`+first+`/0"), await load("script", "review.js"))
		field.name = '{"x":"', field.value = '"}'
		form.action = there + "undo"
		await new Promise(done => {
			document.querySelector("iframe").onload = done
			form.submit()
			setTimeout(done, 20000)
		})
		try { found.push(frames.f.document.body.innerText) } catch { found.push("no") }
		return found.join(" ")
	})()`)
	if want := "no no no no no no no no no no no"; got != want {
		t.Errorf("a page of another origin gets %q, want %q", got, want)
	}
	// A name that leads to the page's address makes the hostile page of the same origin.
	chromium.Lead("rebound.invalid", base.Host)
	chromium.Open(t, "http://rebound.invalid"+base.Path)
	if got := chromium.Value(t, `document.body.innerText.trim()`); got != "not from here" {
		t.Errorf("by another name: %q", got)
	}
	if got := read(t, r.answers); got != before {
		t.Errorf("hostile pages made of the answers\n%s", got)
	}
}
