package polite

import (
	"strings"
	"testing"
)

func TestParseConnectTo(t *testing.T) {
	for in, want := range map[string]struct {
		to   ConnectTo
		fits bool // i.redd.it:443
	}{
		"i.redd.it:443:127.0.0.1:8443": {ConnectTo{"i.redd.it", "443", "127.0.0.1", "8443"}, true},
		"::127.0.0.1:8443":             {ConnectTo{"", "", "127.0.0.1", "8443"}, true},
		"I.Redd.It::[::1]:1":           {ConnectTo{"i.redd.it", "", "::1", "1"}, true},
		"[2001:db8::1]:443:mirror:":    {ConnectTo{"2001:db8::1", "443", "mirror", ""}, false},
		":443::8443":                   {ConnectTo{"", "443", "", "8443"}, true},
		":80:a:65535":                  {ConnectTo{"", "80", "a", "65535"}, false},
		"redd.it:443:a:1":              {ConnectTo{"redd.it", "443", "a", "1"}, false},
		":::":                          {ConnectTo{}, true},
	} {
		if got, err := ParseConnectTo(in); err != nil || got != want.to || got.fits("i.redd.it", "443") != want.fits {
			t.Errorf("ParseConnectTo(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "a", "a:1", "a:1:b", "a:1:b:2:c", "a:x:b:2", "a:1:b:0", "a:1:b:65536", "a:1:b:+2",
		"[::1:443:b:2", "[::1]x:443:b:2", "[nothing]:1:b:2", "[]:1:b:2", "a:1:::1:2"} {
		if got, err := ParseConnectTo(in); err == nil ||
			!strings.Contains(err.Error(), "HOST:PORT:ADDR:PORT") && !strings.Contains(err.Error(), "is not a port") {
			t.Errorf("ParseConnectTo(%q) = %+v, %v; want an error that says how", in, got, err)
		}
	}
}

func TestProxyFromEnv(t *testing.T) {
	for value, want := range map[string]string{"": "", "http://proxy.example:3128": "proxy.example:3128",
		"proxy.example":         "proxy.example:80",
		"https://proxy.example": "proxy.example:443", "socks5://[::1]": "[::1]:1080",
		"ftp://canary:pw@proxy.example": "error", "http://canary:pw@": "error", "http://canary\x7f": "error",
		"http://proxy.example:99999": "error"} {
		p, err := ProxyFromEnv(func(name string) string { return map[string]string{"https_proxy": value}[name] })
		got := p.address()
		if err != nil {
			got = "error"
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("%q: %v", value, err)
			}
		}
		if got != want || p.IsSet() != (got != "" && err == nil) {
			t.Errorf("%q = %q, %v; want %q", value, got, err, want)
		}
	}
}
