package polite

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A ConnectTo sends connections that are meant for one host and port to another address. TLS still checks the
// certificate of the host that was meant, and requests still name it.
type ConnectTo struct {
	Host, Port     string // those meant; "" fits any
	ToHost, ToPort string // those dialled; "" keeps the one that was meant
}

// connectToForm is four parts with colons between them; only an address in brackets may hold colons.
var connectToForm = regexp.MustCompile(
	`^(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*)):(\d*):(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*)):(\d*)$`)

// ParseConnectTo reads HOST:PORT:ADDR:PORT, as curl's --connect-to does: an IPv6 address stands in brackets, an empty
// HOST or PORT means any, an empty ADDR or second PORT means no change.
func ParseConnectTo(s string) (ConnectTo, error) {
	m := connectToForm.FindStringSubmatch(s)
	if m == nil {
		return ConnectTo{}, fmt.Errorf("connect-to %q: write HOST:PORT:ADDR:PORT, "+
			"for example i.redd.it:443:127.0.0.1:8443, with an IPv6 address in brackets", s)
	}
	for _, port := range []string{m[3], m[6]} {
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			return ConnectTo{}, fmt.Errorf("connect-to %q: %q is not a port: 1 to 65535", s, port)
		}
	}
	return ConnectTo{Host: strings.ToLower(m[1] + m[2]), Port: m[3], ToHost: m[4] + m[5], ToPort: m[6]}, nil
}

func (r ConnectTo) fits(host, port string) bool {
	return (r.Host == "" || strings.EqualFold(r.Host, strings.TrimSuffix(host, "."))) &&
		(r.Port == "" || r.Port == port)
}

// A Dialer dials what Rules, Proxy and Guard let it.
type Dialer struct {
	Rules   []ConnectTo // the first that fits wins
	Proxy   Proxy
	Timeout time.Duration // of a connection
	// Guard gives, for the rule that fits or nil, what looks at an address after its name was looked up; nil lets all
	// pass. The proxy has no guard: the operator names it.
	Guard func(rule *ConnectTo) func(network, address string, c syscall.RawConn) error
	// Resolver looks names up; nil is the system's.
	Resolver *net.Resolver
}

// rule is the one for a host, or nil.
func (d *Dialer) rule(host, port string) *ConnectTo {
	if i := slices.IndexFunc(d.Rules, func(r ConnectTo) bool { return r.fits(host, port) }); i >= 0 {
		return &d.Rules[i]
	}
	return nil
}

// Dial connects to a host and port as net.Dialer does.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, _ := net.SplitHostPort(address) // net/http gives both
	plain := net.Dialer{Timeout: d.Timeout, Resolver: d.Resolver}
	if address != d.Proxy.address() {
		rule := d.rule(host, port)
		plain.Control = d.Guard(rule)
		if rule != nil {
			address = net.JoinHostPort(cmp.Or(rule.ToHost, host), cmp.Or(rule.ToPort, port))
		}
	}
	return plain.DialContext(ctx, network, address)
}

// Via is the proxy for a URL, or nil. What the operator leads elsewhere goes by none.
func (d *Dialer) Via(u *url.URL) (*url.URL, error) {
	if d.Proxy.at == nil || d.rule(u.Hostname(), cmp.Or(u.Port(), defaultPorts[u.Scheme])) != nil {
		return nil, nil
	}
	return d.Proxy.of(u)
}
