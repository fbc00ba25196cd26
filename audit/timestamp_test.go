package audit

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/pkcs7"
	"github.com/digitorus/timestamp"

	"rehydrate/internal/testkit"
)

// An authority is `openssl ts`, with certificates that openssl made.
type authority struct {
	dir string
	*httptest.Server
	roots *x509.CertPool
	// answer replaces what openssl answers; nil leaves it.
	answer func(w http.ResponseWriter, r *http.Request, query []byte)
}

// opensslConfig has the extensions of each kind of certificate.
const opensslConfig = `
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical,CA:TRUE
[tsa]
extendedKeyUsage = critical,timeStamping
[tls]
extendedKeyUsage = serverAuth
[any]
basicConstraints = CA:FALSE
[loose]
extendedKeyUsage = timeStamping
[also]
extendedKeyUsage = critical,timeStamping,codeSigning
[ts]
serial = serial
digests = sha256
default_policy = 1.2.3.4.1
signer_digest = sha256
ess_cert_id_alg = sha256
`

// newAuthority starts an authority whose certificate has the extensions of the section usage of opensslConfig.
func newAuthority(t *testing.T, usage string) *authority {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("openssl is missing: scripts/setup installs it")
	}
	a := &authority{dir: t.TempDir()}
	a.write(t, "config", []byte(opensslConfig))
	a.write(t, "serial", []byte("01"))
	a.openssl(t,
		"req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.pem -days 9 -subj /CN=Root -config config -extensions root")
	a.openssl(t, "req -new -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /CN=Stamps -config config")
	a.openssl(t,
		"x509 -req -in tsa.csr -CA root.pem -CAkey root.key -CAcreateserial -out tsa.pem -days 9 -extfile config -extensions "+usage)
	a.roots = x509.NewCertPool()
	a.roots.AppendCertsFromPEM(a.read(t, "root.pem"))
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if a.answer != nil {
			a.answer(w, r, query)
			return
		}
		a.write(t, "query", query)
		a.openssl(t,
			"ts -reply -config config -section ts -queryfile query -inkey tsa.key -signer tsa.pem -chain root.pem -out reply")
		w.Write(a.read(t, "reply"))
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *authority) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), data, 0o600); err != nil {
		t.Error(err)
	}
}

func (a *authority) read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(a.dir, name))
	if err != nil {
		t.Error(err)
	}
	return b
}

func (a *authority) openssl(t *testing.T, args string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openssl", strings.Fields(args)...)
	cmd.Dir = a.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("openssl %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// byHand answers as openssl refuses to: signed with a certificate that is not made for it.
func (a *authority) byHand(t *testing.T) func(http.ResponseWriter, *http.Request, []byte) {
	pair, err := tls.X509KeyPair(a.read(t, "tsa.pem"), a.read(t, "tsa.key"))
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request, query []byte) {
		q, err := timestamp.ParseRequest(query)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := (&timestamp.Timestamp{HashAlgorithm: q.HashAlgorithm, HashedMessage: q.HashedMessage,
			Nonce: q.Nonce, Time: time.Now(),
			Policy: asn1.ObjectIdentifier{1, 2, 3}, AddTSACertificate: true}).CreateResponseWithOpts(pair.Leaf,
			pair.PrivateKey.(crypto.Signer), crypto.SHA256)
		if err != nil {
			t.Error(err)
		}
		w.Write(answer)
	}
}

// asDocument signs the content of an answer as one signs any document.
func (a *authority) asDocument(t *testing.T, answer []byte) []byte {
	t.Helper()
	stamped, err := timestamp.ParseResponse(answer)
	testkit.OK(t, err)
	token, err := pkcs7.Parse(stamped.RawToken)
	testkit.OK(t, err)
	pair, err := tls.X509KeyPair(a.read(t, "tsa.pem"), a.read(t, "tsa.key"))
	testkit.OK(t, err)
	document, err := pkcs7.NewSignedData(token.Content)
	testkit.OK(t, err, document.AddSigner(pair.Leaf, pair.PrivateKey, pkcs7.SignerInfoConfig{}))
	signed, err := document.Finish()
	testkit.OK(t, err)
	var parts struct{ Status, Token asn1.RawValue }
	_, err = asn1.Unmarshal(answer, &parts)
	testkit.OK(t, err)
	parts.Token = asn1.RawValue{FullBytes: signed}
	answer, err = asn1.Marshal(parts)
	testkit.OK(t, err)
	return answer
}

func TestRequestStamp(t *testing.T) {
	a := newAuthority(t, "tsa")
	document := []byte(`{"verdict": "PASS"}`)
	answer, stamp, err := RequestStamp(t.Context(), a.URL, sha256.Sum256(document), a.roots)
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(stamp.Time); age < -time.Minute || age > time.Minute || stamp.Authority != "CN=Stamps" {
		t.Errorf("stamp %+v", stamp)
	}
	// openssl believes what was written.
	a.write(t, "document", document)
	a.write(t, "answer", answer)
	if out := a.openssl(t, "ts -verify -in answer -data document -CAfile root.pem"); !strings.Contains(out,
		"Verification: OK") {
		t.Error(out)
	}
	if again, err := CheckStamp(answer, sha256.Sum256(document), a.roots); err != nil || again != stamp {
		t.Errorf("read again: %+v, %v", again, err)
	}

	damaged := bytes.Clone(answer)
	damaged[len(damaged)-9] ^= 1
	for _, tt := range []struct {
		name             string
		answer, document []byte
		roots            *x509.CertPool
		want             string
	}{
		{"another document", answer, []byte("other"), a.roots, "one of another document"},
		{"a damaged signature", damaged, document, a.roots, "verification error"},
		{"roots of others", answer, document, x509.NewCertPool(), "unknown authority"},
		{"no roots", answer, document, nil, "no root certificates"},
		{"cut", answer[:len(answer)-1], document, a.roots, "read the time stamp"},
		{"no stamp", []byte("<html>"), document, a.roots, "is no time stamp, but a web page"},
	} {
		if _, err := CheckStamp(tt.answer, sha256.Sum256(tt.document), tt.roots); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// An authority that misbehaves gives no stamp.
func TestRequestStampRefuses(t *testing.T) {
	a, web := newAuthority(t, "tsa"), newAuthority(t, "tls")
	anything, loose, also := newAuthority(t, "any"), newAuthority(t, "loose"), newAuthority(t, "also")
	document := []byte("statement")
	stale, _, err := RequestStamp(t.Context(), a.URL, sha256.Sum256(document), a.roots)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		from   *authority
		answer func(w http.ResponseWriter, r *http.Request, query []byte)
		want   string
	}{
		{"an older answer", a, func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.Write(stale) },
			"to another request"},
		{"no service", a, func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusNotFound) },
			"404 Not Found"},
		{"elsewhere", a, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, web.URL, http.StatusTemporaryRedirect)
		}, "307"},
		{"a refusal", a, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Write([]byte("\x30\x05\x30\x03\x02\x01\x02"))
		}, "read the time stamp"},
		{"without end", a, func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.Write(make([]byte, maxStamp+1)) },
			"longer than"},
		{"a certificate for web servers", web, web.byHand(t), "not one for time stamps alone"},
		{"a certificate for anything", anything, anything.byHand(t), "not one for time stamps alone"},
		{"a certificate whose use need not be heeded", loose, loose.byHand(t), "not one for time stamps alone"},
		{"a certificate for code, too", also, also.byHand(t), "not one for time stamps alone"},
		{"a signed document", a, func(w http.ResponseWriter, r *http.Request, query []byte) {
			stamped := httptest.NewRecorder()
			a.byHand(t)(stamped, r, query)
			w.Write(a.asDocument(t, stamped.Body.Bytes()))
		}, "what it signs is no time stamp"},
	} {
		tt.from.answer = tt.answer
		_, _, err := RequestStamp(t.Context(), tt.from.URL, sha256.Sum256(document), tt.from.roots)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.from.URL) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func FuzzCheckStamp(f *testing.F) {
	f.Add([]byte("\x30\x05\x30\x03\x02\x01\x00"))
	f.Add([]byte("\x30\x0b\x30\x03\x02\x01\x00\x30\x04\x06\x02\x2a\x03"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if stamp, err := CheckStamp(answer, sha256.Sum256([]byte("document")), x509.NewCertPool()); err == nil {
			t.Errorf("%x is taken for a stamp: %+v", answer, stamp)
		}
	})
}
