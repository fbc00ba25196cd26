package reddit

import (
	"net"
	"strings"
	"testing"

	"rehydrate/internal/polite"
)

// TestDialGuard: without a rule of the operator only public addresses and port 443 are
// dialled. The guard answers before a packet leaves.
func TestDialGuard(t *testing.T) {
	d := &polite.Dialer{Guard: guard}
	for address := range strings.FieldsSeq("2130706433:443 0x7f000001:443 0177.0.0.1:443 127.1:443 127.0.0.1.:443 127.0.0.1:443 localhost:443 0.0.0.0:443 10.0.0.1:443 172.16.0.1:443 192.168.1.1:443 " +
		"169.254.169.254:443 100.64.0.1:443 198.18.0.1:443 192.0.0.1:443 240.0.0.1:443 255.255.255.255:443 224.0.0.1:443 " +
		"[::1]:443 [::]:443 [fe80::1]:443 [fd00::1]:443 [ff02::1]:443 [2001:db8::1]:443 [::ffff:127.0.0.1]:443 " +
		"[64:ff9b::7f00:1]:443 [2002:7f00:1::]:443 93.184.215.14:8443") {
		conn, err := d.Dial(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
		}
		// Some spellings of an address are names to Go, which does not look up what is all digits.
		if !isGuard(err) && !is[*net.DNSError](err) {
			t.Errorf("dial %s = %v, want the guard's error", address, err)
		}
	}
	if _, err := d.Dial(t.Context(), "tcp", "nothing"); err == nil {
		t.Error("an address without a port was dialled")
	}
}

// TestDialRules: the first rule that fits decides, what it names is dialled as it stands,
// and a rule that keeps the host keeps the guard.
func TestDialRules(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d := &polite.Dialer{Guard: guard, Rules: []polite.ConnectTo{
		{Host: "other.example", ToHost: "127.0.0.1", ToPort: "1"},
		{Host: "i.redd.it", Port: "443", ToHost: "127.0.0.1", ToPort: port},
		{Host: "i.redd.it", ToHost: "127.0.0.1", ToPort: "1"},
		{Host: "localhost", ToPort: port},
	}}
	conn, err := d.Dial(t.Context(), "tcp", "i.redd.it:443")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := d.Dial(t.Context(), "tcp", "localhost:443"); !isGuard(err) {
		t.Errorf("a rule without an address: %v, want the guard's error", err)
	}
}
