package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// TestBrowserSees: a page that asks, complains, is cut and cannot be read by all is seen to do so.
func TestBrowserSees(t *testing.T) {
	chromium := Start(t)
	name := filepath.Join(t.TempDir(), "bad.html")
	testkit.OK(t, os.WriteFile(name, []byte(`<!doctype html><title>bad</title><script>console.error("complaint")</script>
<img src="http://pictures.invalid/x.png"><p style="color: #999; background: #aaa">pale</p><div style="width: 800px">wide</div>
<svg viewBox="0 0 1600 100" width="100%"><text x="9" y="50">small</text><text x="1590" y="50">cut</text></svg>
<div style="overflow-x: auto"><div style="width: 2000px">wide</div></div><style>details::details-content { content-visibility: hidden }</style><details><summary>more</summary><p>hidden</p></details>`), 0o600))
	v := chromium.Open(t, name)
	if console := strings.Join(v.Console, "\n"); !strings.Contains(console, "complaint") {
		t.Errorf("console = %q, want the complaint", console)
	}
	if requests := strings.Join(v.Requests, "\n"); !strings.Contains(requests, "http://pictures.invalid/x.png") {
		t.Errorf("requests = %q, want the picture", requests)
	}
	found := strings.Join(chromium.Faults(t, name), "\n")
	for _, want := range []string{"1280 px, dark false, paper false: image-alt",
		"dark true, paper false: color-contrast", "390 px, dark false, paper false: the page is 80",
		"718 px, dark false, paper true: the page is 80", "small: <text", "cut: <text",
		"scrolls, and does not show it: <div", "paper true: folded up: <p>hidden"} {
		if !strings.Contains(found, want) {
			t.Errorf("no fault %q in\n%s", want, found)
		}
	}
	testkit.OK(t,
		os.WriteFile(name, []byte(`<!doctype html><html lang="en"><title>good</title><main><h1>good</h1></main>`), 0o600))
	testkit.Same(t, "faults of a good page", []string(nil), chromium.Faults(t, name))
}
