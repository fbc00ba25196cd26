package polite

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// A Proxy leads to the hosts that are asked. The zero value stands for none.
type Proxy struct {
	at *url.URL
	of func(*url.URL) (*url.URL, error)
}

// ProxyFromEnv reads HTTPS_PROXY and NO_PROXY, or the same in lower case, as curl does. Its error does not show the
// value, which can hold a password.
func ProxyFromEnv(getenv func(string) string) (Proxy, error) {
	name := cmp.Or(getenv("HTTPS_PROXY"), getenv("https_proxy"))
	if name == "" {
		return Proxy{}, nil
	}
	if !strings.Contains(name, "://") {
		name = "http://" + name
	}
	at, err := url.Parse(name)
	if err != nil || at.Hostname() == "" || defaultPorts[at.Scheme] == "" {
		return Proxy{}, errors.New("HTTPS_PROXY is not the address of a proxy: write http://HOST:PORT, or unset it")
	}
	c := httpproxy.Config{HTTPSProxy: name, NoProxy: cmp.Or(getenv("NO_PROXY"), getenv("no_proxy"))}
	return Proxy{at, c.ProxyFunc()}, nil
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// IsSet reports whether there is one.
func (p Proxy) IsSet() bool { return p.at != nil }

// address is where it is dialled.
func (p Proxy) address() string {
	if p.at == nil {
		return ""
	}
	return net.JoinHostPort(p.at.Hostname(), cmp.Or(p.at.Port(), defaultPorts[p.at.Scheme]))
}

// Password is what must not be shown of it.
func (p Proxy) Password() string {
	if p.at == nil {
		return ""
	}
	secret, _ := p.at.User.Password()
	return secret
}
