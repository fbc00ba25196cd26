// Package chromiumtest lets tests open a page from disk in headless Chromium, and see what it
// asked for and what it complained of. scripts/setup --with-readers installs Chromium. Where it is
// missing a test skips, except under CI=true, where it fails.
package chromiumtest

import (
	"bufio"
	"bytes"
	"image"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Visit is what came of opening a page.
type Visit struct {
	DOM     string   // the document as it stands when it is loaded, as HTML
	Console []string // what the page's console was told: errors, refusals
	// Requests has the first line of everything that was asked for over the network. What Chromium
	// asks its maker on its own account (the time, updates), page or no page, is left out.
	Requests []string
}

// Open opens a file. Any failure of Chromium ends t.
func Open(t testing.TB, file string) Visit {
	t.Helper()
	trap := newTrap(t)
	out, log := start(t, trap, file, "--dump-dom", "--enable-logging=stderr")
	v := Visit{DOM: out}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "CONSOLE") {
			v.Console = append(v.Console, strings.TrimSpace(line))
		}
	}
	v.Requests = trap.requests()
	return v
}

// Screenshot opens a file in a theme and returns what is seen of its upper part.
func Screenshot(t testing.TB, file string, dark bool) image.Image {
	t.Helper()
	shot := filepath.Join(t.TempDir(), "shot.png")
	theme := "--blink-settings=preferredColorScheme=1"
	if dark {
		theme = "--blink-settings=preferredColorScheme=0"
	}
	start(t, newTrap(t), file, "--screenshot="+shot, "--window-size=1100,1600", "--hide-scrollbars", theme)
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// start runs Chromium with a profile of its own and everything that it wants of the network sent
// to the trap.
func start(t testing.TB, trap *trap, file string, flags ...string) (stdout, stderr string) {
	t.Helper()
	if testing.Short() {
		t.Skip("Chromium takes seconds")
	}
	chromium, err := find()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("Chromium is needed under CI (scripts/setup --with-readers): %v", err)
		}
		t.Skipf("no Chromium (scripts/setup --with-readers): %v", err)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--disable-domain-reliability",
		"--user-data-dir=" + t.TempDir(), "--proxy-server=" + trap.addr, "--proxy-bypass-list=<-loopback>"}, flags, []string{"file://" + path})
	cmd := exec.CommandContext(t.Context(), chromium, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("Chromium: %v\n%s", err, errs.Bytes())
	}
	return out.String(), errs.String()
}

func find() (string, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return exec.LookPath("chromium-browser")
	}
	return path, nil
}

// A trap is a proxy on this machine that answers nothing and notes what it was asked for.
type trap struct {
	addr  string
	mu    sync.Mutex
	lines []string // guarded by mu
}

func newTrap(t testing.TB) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	trap := &trap{addr: l.Addr().String()}
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
	line, _ := bufio.NewReader(conn).ReadString('\n')
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, strings.TrimSpace(line))
}

// makers matches requests to the hosts of Chromium's maker. No flag keeps it from all of them; the
// trap does.
var makers = regexp.MustCompile(`^[A-Z]+ (https?://)?[a-z0-9.-]+\.(google|googleapis|gvt1)\.com[:/]`)

func (t *trap) requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.lines), makers.MatchString)
}
