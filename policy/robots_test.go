package policy

import (
	"testing"

	"rehydrate/internal/testkit"
)

func TestTagForbids(t *testing.T) {
	for _, test := range []struct {
		headers []string
		want    string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"noindex"}, ""},
		{[]string{"noindex, nofollow, noarchive, noimageindex, none"}, ""},
		{[]string{"noai"}, "noai"},
		{[]string{"noindex, NoImageAI"}, "noimageai"},
		{[]string{"noindex", " noai "}, "noai"},
		{[]string{"googlebot: noai"}, ""},
		{[]string{"googlebot: noindex, noai"}, ""},
		{[]string{"rehydrate: noai"}, "noai"},
		{[]string{"*: noindex, noimageai"}, "noimageai"},
		{[]string{"googlebot: noai, Rehydrate: noindex, noai"}, "noai"},
		{[]string{"googlebot: noai", "noimageai"}, "noimageai"},
		{[]string{"unavailable_after: 25 Jun 2010 15:00:00 PST, noai"}, "noai"},
		{[]string{"googlebot: max-snippet: 20, noai"}, ""},
		{[]string{"noairport, xnoai"}, ""},
	} {
		if got := TagForbids(test.headers); got != test.want {
			t.Errorf("%q forbids by %q, want %q", test.headers, got, test.want)
		}
	}
}

// TestRespectRobotsTag: the tag counts by default on hosts that are not Reddit's own.
func TestRespectRobotsTag(t *testing.T) {
	p, err := Parse([]byte("[[images.host]]\nname = 'i.redd.it'\n[[images.host]]\nname = 'Images.example.org'\n"+
		"[[images.host]]\nname = 'preview.redd.it'\nrespect_robots_tag = true\n[[images.host]]\nname = "+
		"'i.imgur.com'\nrespect_robots_tag = false\n"+
		"[[images.host]]\nname = 'notredd.it'\n"), "p")
	testkit.OK(t, err)
	for name, want := range map[string]bool{"i.redd.it": false, "images.example.org": true,
		"preview.redd.it": true, "i.imgur.com": false, "notredd.it": true} {
		if h, ok := p.Host(name); !ok || h.RespectRobotsTag != want {
			t.Errorf("%s: %+v", name, h)
		}
	}
	for _, p := range []Policy{Default(), Cautious()} {
		for _, h := range p.Images.Hosts {
			if h.RespectRobotsTag != respectsTag(h.Name) {
				t.Errorf("by default %+v", h)
			}
		}
	}
	other := Default()
	other.Images.Hosts[0].RespectRobotsTag = true
	if other.Digest() == Default().Digest() {
		t.Error("the digest does not say that a tag counts")
	}
}

func FuzzTagForbids(f *testing.F) {
	f.Add("googlebot: noai, *: noimageai")
	f.Fuzz(func(t *testing.T, header string) {
		if got := TagForbids([]string{header}); got != "" && got != "noai" && got != "noimageai" {
			t.Errorf("%q forbids by %q", header, got)
		}
	})
}
