package policy

import (
	"testing"

	"rehydrate/internal/picture"
	"rehydrate/internal/testkit"
)

// TestAdmits: an image that one policy took is taken by another that is laxer, slower or written in another order, and
// not by one that is stricter in anything that can be about it.
func TestAdmits(t *testing.T) {
	const hosts = "[[images.host]]\nname='b.example'\n[[images.host]]\nname='a.example'\n"
	const mark = "[[images.placeholder]]\nname='p'\nmeaning='m'\nsource='s'\noutcome='placeholder'\n"
	const md5 = "md5='0123456789abcdef0123456789abcdef'\n"
	parse := func(s string) Policy {
		p, err := Parse([]byte(s), "p")
		testkit.OK(t, err)
		return p
	}
	for _, tt := range []struct {
		then, now string
		want      bool
	}{
		{hosts, hosts, true},
		{hosts, "[reddit]\nrequests_per_minute = 1\n" + hosts, true},
		{hosts, "[[images.host]]\nname='a.example'\nconcurrency=1\n[[images.host]]\nname='b.example'\n", true},
		{hosts, "[[images.host]]\nname='c.example'\n" + hosts, true},
		{hosts, "[[images.host]]\nname='a.example'\n", false},
		{hosts + mark + md5, "[[images.host]]\nname='a.example'\n" + mark + md5, false},
		{"", "[images]\nmax_bytes = 999", false}, {"", "[images]\nmax_bytes = 1000", true},
		{"", "[images]\nmax_side = 39", false}, {"", "[images]\nmax_side = 40", true},
		{"", "[images]\nmax_pixels = 1199", false}, {"", "[images]\nmax_pixels = 1200", true},
		{"", mark + "format='png'\nwidth=40\nheight=30\nbytes=1000\n", false},
		{"", mark + "format='png'\nwidth=40\nheight=30\nbytes=1001\n", true},
		{"", mark + md5, false}, {mark + md5, "[images]\nmax_side = 40\n" + mark + md5, true}, {mark + md5, "", true},
	} {
		img := HeldImage{Limits: parse(tt.then).ImageLimits(), Bytes: 1000,
			Info: picture.Info{Format: "png", Width: 40, Height: 30}}
		if got := parse(tt.now).Admits(img); got != tt.want {
			t.Errorf("%q after %q: %t, want %t", tt.now, tt.then, got, tt.want)
		}
	}
}
