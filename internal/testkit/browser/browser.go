// Package browser lets tests open pages in one headless Chromium, from disk or from a server of theirs, press keys, and
// see what they look like, what they ask for and complain of, and what axe-core says of them. scripts/setup
// --with-readers installs both. Where one of them is missing a test skips, except under CI=true, where it fails.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rehydrate/internal/testkit"
)

// A Browser is a Chromium with one tab, which ends with the test. It is spoken to in the DevTools protocol over a pipe,
// which needs no library: https://chromedevtools.github.io/devtools-protocol/.
type Browser struct {
	trap    *trap
	in      io.Writer
	out     *bufio.Reader
	log     bytes.Buffer // Chromium's own words
	last    int          // number of the last command
	session string
	console []string // since the tab was last opened
	loaded  bool
}

// Start starts Chromium with a profile of its own and everything that it wants of the network sent to a trap.
func Start(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("Chromium takes seconds")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		testkit.Lacking(t, "Chromium", err)
	}
	b := &Browser{trap: newTrap(t)}
	// What hangs longer fails.
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--hide-scrollbars", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-extensions", "--disable-default-apps", "--disable-domain-reliability", "--user-data-dir="+t.TempDir(),
		"--proxy-server="+b.trap.addr, "--proxy-bypass-list=<-loopback>",
		"--remote-debugging-pipe", "about:blank") // or Debian's Chromium asks for its start page
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home) // it leaves folders in both
	cmd.Stderr = &b.log
	theirIn, in, err := os.Pipe()
	testkit.OK(t, err)
	out, theirOut, err := os.Pipe()
	testkit.OK(t, err)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as the flag has it
	b.in, b.out = in, bufio.NewReader(out)
	testkit.OK(t, cmd.Start(), theirIn.Close(), theirOut.Close())
	t.Cleanup(func() {
		in.Close() // Chromium ends; its profile can then be removed
		cmd.Wait()
		out.Close()
		stop()
	})
	target := struct{ TargetID string }{}
	b.do(t, "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	attached := struct{ SessionID string }{}
	b.do(t, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.do(t, domain+".enable", nil, nil)
	}
	return b
}

// do gives a command and waits for its answer. What Chromium says in between is noted.
func (b *Browser) do(t testing.TB, method string, params, result any) {
	t.Helper()
	b.last++
	command, err := json.Marshal(struct {
		ID        int    `json:"id"`
		Session   string `json:"sessionId,omitempty"`
		Method    string `json:"method"`
		Parameter any    `json:"params,omitempty"`
	}{b.last, b.session, method, params})
	testkit.OK(t, err)
	_, err = b.in.Write(append(command, 0))
	testkit.OK(t, err)
	for {
		id, answer := b.read(t)
		if id != b.last {
			continue
		}
		if answer.Error != nil {
			t.Fatalf("Chromium: %s: %s", method, answer.Error)
		}
		if result != nil {
			testkit.OK(t, json.Unmarshal(answer.Result, result))
		}
		return
	}
}

type message struct {
	Method                string
	Params, Result, Error json.RawMessage
}

// read reads an answer, or an event, whose id is 0.
func (b *Browser) read(t testing.TB) (id int, m message) {
	t.Helper()
	line, err := b.out.ReadBytes(0)
	if err != nil {
		t.Fatalf("Chromium: %v\n%s", err, b.log.Bytes())
	}
	envelope := struct {
		ID int
		message
	}{}
	testkit.OK(t, json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &envelope))
	switch m = envelope.message; m.Method {
	case "Page.loadEventFired":
		b.loaded = true
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
		b.console = append(b.console, string(m.Params))
	}
	return envelope.ID, m
}

// A View is how a page is looked at.
type View struct {
	Width int
	Dark  bool
	Paper bool // as it is printed
}

func (v View) String() string {
	return fmt.Sprintf("%d px, dark %t, paper %t", v.Width, v.Dark, v.Paper)
}

// look sets how pages are looked at from now on.
func (b *Browser) look(t testing.TB, v View) {
	t.Helper()
	media, scheme := "screen", "light"
	if v.Paper {
		media = "print"
	}
	if v.Dark {
		scheme = "dark"
	}
	b.do(t, "Emulation.setDeviceMetricsOverride",
		map[string]any{"width": v.Width, "height": 1600, "deviceScaleFactor": 1, "mobile": false}, nil)
	theme := map[string]any{"name": "prefers-color-scheme", "value": scheme}
	b.do(t, "Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []any{theme}}, nil)
}

// Lead has requests to a host and port, of whatever name, answered by the server at an address of this machine.
func (b *Browser) Lead(host, addr string) {
	b.trap.mu.Lock()
	defer b.trap.mu.Unlock()
	b.trap.ways[host] = addr
}

// Press presses a key and lets it go: a character, or Enter or Tab.
func (b *Browser) Press(t testing.TB, key string) {
	t.Helper()
	b.Hold(t, key)
	b.key(t, "keyUp", key)
}

// Hold presses a key and does not let it go.
func (b *Browser) Hold(t testing.TB, key string) {
	t.Helper()
	b.key(t, "keyDown", key)
}

// Release lets a key go.
func (b *Browser) Release(t testing.TB, key string) {
	t.Helper()
	b.key(t, "keyUp", key)
}

func (b *Browser) key(t testing.TB, kind, key string) {
	t.Helper()
	text, number := key, int(strings.ToUpper(key)[0])
	switch key {
	case "Enter":
		text, number = "\r", 13
	case "Tab":
		text, number = "", 9
	}
	b.do(t, "Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "text": text,
		"windowsVirtualKeyCode": number}, nil)
}

// Until waits until a script, run in the page that is open, is true.
func (b *Browser) Until(t testing.TB, script string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		is := false
		b.run(t, "new Promise(done => setTimeout(() => done(Boolean("+script+")), 20))", &is)
		if is {
			return
		}
		if time.Now().After(end) {
			var dom string
			b.run(t, "document.body.innerText", &dom)
			t.Fatalf("not within 20 s: %s\nconsole: %v\n%s", script, b.console, dom)
		}
	}
}

// Value returns what a script is, or promises, in the page that is open.
func (b *Browser) Value(t testing.TB, script string) (text string) {
	t.Helper()
	b.run(t, "Promise.resolve("+script+").then(String)", &text)
	return text
}

// Seen returns what is seen of the page that is open.
func (b *Browser) Seen(t testing.TB, v View) image.Image {
	t.Helper()
	b.look(t, v)
	var shot struct{ Data []byte }
	b.do(t, "Page.captureScreenshot", nil, &shot)
	img, err := png.Decode(bytes.NewReader(shot.Data))
	testkit.OK(t, err)
	return img
}

// show opens a file, or a URL of a server that Lead names, and waits until it is loaded.
func (b *Browser) show(t testing.TB, file string) {
	t.Helper()
	url := file
	if !strings.HasPrefix(file, "http://") {
		path, err := filepath.Abs(file)
		testkit.OK(t, err)
		url = "file://" + path
	}
	b.console, b.loaded = nil, false
	b.do(t, "Page.navigate", map[string]any{"url": url}, nil)
	for !b.loaded {
		b.read(t)
	}
}

// run runs a script in the page, whose content security policy does not bind it, and decodes what its last expression
// is, or promises.
func (b *Browser) run(t testing.TB, script string, into any) {
	t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.do(t, "Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &got)
	if got.ExceptionDetails != nil {
		t.Fatalf("Chromium: a script failed: %s", got.ExceptionDetails)
	}
	if into != nil {
		testkit.OK(t, json.Unmarshal(got.Result.Value, into))
	}
}

// A Visit is what came of opening a page.
type Visit struct {
	DOM     string   // the document as it stands when it is loaded, as HTML
	Console []string // what the page's console was told: errors, refusals
	// Requests has the first line of everything that was asked for over the network. What Chromium
	// asks its maker on its own account (the time, updates), page or no page, is left out.
	Requests []string
}

// Open opens a file.
func (b *Browser) Open(t testing.TB, file string) (v Visit) {
	t.Helper()
	before := len(b.trap.requests())
	b.look(t, View{Width: 1100})
	b.show(t, file)
	b.run(t, "document.documentElement.outerHTML", &v.DOM)
	v.Console, v.Requests = b.console, b.trap.requests()[before:]
	return v
}

// Screenshot opens a file and returns what is seen of its upper 1,600 pixels.
func (b *Browser) Screenshot(t testing.TB, file string, v View) image.Image {
	t.Helper()
	b.look(t, v)
	b.show(t, file)
	return b.Seen(t, v)
}

// views are those in which Check looks at a page. Paper is as wide as A4 without its margins.
var views = []View{
	{Width: 1280}, {Width: 1280, Dark: true}, {Width: 390}, {Width: 390, Dark: true}, {Width: 718, Paper: true}}

// Faults looks at a page with everything unfolded: light and dark, on a wide screen and a telephone, and on paper. It
// returns what axe-core finds fault with, and what the script of faults does.
func (b *Browser) Faults(t testing.TB, file string) (all []string) {
	t.Helper()
	axe, err := os.ReadFile(testkit.Reader(t, "axe-core/axe.min.js"))
	if err != nil {
		testkit.Lacking(t, "axe-core", err)
	}
	b.show(t, file)
	b.run(t, string(axe)+";0", nil)
	for _, v := range views {
		b.look(t, v)
		unfold := `for (const d of document.querySelectorAll("details:not(.veil)")) d.open = %t; 0`
		b.run(t, fmt.Sprintf(unfold, !v.Paper), nil)
		var found, violations []string
		if !v.Paper { // it unfolds by itself, and is not focused
			b.run(t, `axe.run({preload: false}).then(r => r.violations.flatMap(v =>
				v.nodes.map(n => v.id + ": " + n.html + "\n" + n.failureSummary)))`, &violations)
		}
		b.run(t, faults, &found)
		for _, fault := range append(violations, found...) {
			all = append(all, fmt.Sprintf("%s at %v: %.600s", filepath.Base(file), v, fault))
		}
	}
	return all
}

// faults are what axe-core does not look for: a page that scrolls sideways as a whole or is cut on paper, text of a
// drawing that is small or cut, a table that does not show that it scrolls, and, on paper, what stays folded up.
const faults = `(() => {
	const found = [], wide = document.documentElement.clientWidth
	const all = document.documentElement.scrollWidth
	if (all > wide) found.push("the page is " + all + " px wide")
	for (const text of document.querySelectorAll("svg text")) {
		const box = text.getBoundingClientRect(), svg = text.closest("svg").getBoundingClientRect()
		if (box.height < 12) found.push("small: " + text.outerHTML)
		if (box.left < svg.left - 1 || box.right > svg.right + 1 || box.top < svg.top - 4)
			found.push("cut: " + text.outerHTML)
	}
	for (const e of document.querySelectorAll("body *")) {
		const style = getComputedStyle(e)
		if (style.overflowX == "auto" && e.scrollWidth > e.clientWidth && style.maskImage == "none")
			found.push("scrolls, and does not show it: " + e.outerHTML)
	}
	if (matchMedia("print").matches) for (const e of document.querySelectorAll("details:not(.veil) > :not(summary)"))
		if (!e.checkVisibility({contentVisibilityAuto: true})) found.push("folded up: " + e.outerHTML.slice(0, 100))
	return found
})()`

// A trap is a proxy on this machine that notes what it was asked for, and answers nothing but what leads to a test's
// server.
type trap struct {
	addr  string
	mu    sync.Mutex
	lines []string          // guarded by mu
	ways  map[string]string // guarded by mu; host and port -> address
}

func newTrap(t testing.TB) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	t.Cleanup(func() { l.Close() })
	trap := &trap{addr: l.Addr().String(), ways: map[string]string{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go trap.note(conn)
		}
	}()
	return trap
}

func (t *trap) note(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		t.mu.Lock()
		t.lines = append(t.lines, fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, r.Proto))
		way := t.ways[r.Host]
		t.mu.Unlock()
		if way == "" {
			return
		}
		// As Chromium wrote it, but for where it goes.
		r.URL.Host = way
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return
		}
		err = answer.Write(conn)
		answer.Body.Close()
		if err != nil {
			return
		}
	}
}

// makers matches requests to the hosts of Chromium's maker. No flag keeps it from all of them; the
// trap does.
var makers = regexp.MustCompile(`^[A-Z]+ (https?://)?[a-z0-9.-]+\.(google|googleapis|gvt1)\.com[:/]`)

func (t *trap) requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.lines), makers.MatchString)
}
