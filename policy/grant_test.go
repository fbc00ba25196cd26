package policy

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

const testDigest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// testGrant is a grant that counts on testNow for testScope.
const testGrant = `{
  "v": 1,
  "type": "rehydrate-grant",
  "id": "2026-007",
  "holder": {"name": "Test Holder", "organization": "Test University", "ror": "https://ror.org/012345678"},
  "release": {"name": "Test", "digest": "` + testDigest + `"},
  "purpose": {"statement": "A test.", "academic": true, "commercial": false},
  "ethics": {"body": "Test Board", "reference": "TB-1"},
  "platform_approval": {"program": "Reddit for Researchers", "reference": "RFR-TEST-1", "expires": "2027-03-01T00:00:00Z"},
  "asserted": "2026-01-01T12:00:00Z",
  "not_before": "2026-01-02T00:00:00Z",
  "expires": "2027-01-02T00:00:00+01:00"
}
`

const testRevocations = `{
  "v": 1,
  "type": "rehydrate-revocations",
  "release": {"name": "Test"},
  "serial": 3,
  "issued": "2026-06-01T00:00:00Z",
  "next_update": "2026-06-15T00:00:00Z",
  "revoked": [
    {"id": "2025-001", "at": "2026-02-01T00:00:00Z", "reason": "asked for by the holder"},
    {"id": "2025-002", "at": "2026-03-01T00:00:00Z"}
  ]
}
`

func date(y, m, d int) time.Time { return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC) }

var testNow = date(2026, 6, 10)

// testKey makes a key of a name: obviously nobody's.
func testKey(t testing.TB, name string) ssh.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("rehydrate test key " + name))
	return asSigner(t, ed25519.NewKeyFromSeed(seed[:]))
}

func asSigner(t testing.TB, key any) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromKey(key)
	testkit.OK(t, err)
	return s
}

func publicLine(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey()))) + " test@example.invalid"
}

func signedFile(t testing.TB, name, body string, key ssh.Signer, namespace string) SignedFile {
	t.Helper()
	sig, err := sshsig.Sign(strings.NewReader(body), key, sshsig.HashSHA512, namespace)
	testkit.OK(t, err)
	return SignedFile{Name: name, Body: []byte(body), Signature: sshsig.Armor(sig)}
}

func pinned(t testing.TB, keys ...ssh.Signer) []Signer {
	t.Helper()
	var pins []manifest.Signer
	for _, k := range keys {
		pins = append(pins, manifest.Signer{Name: "Test Signer", Key: publicLine(k)})
	}
	signers, err := ParseSigners(pins)
	testkit.OK(t, err)
	return signers
}

var testRelease = GrantedRelease{Name: "Test", Digest: testDigest}

func TestParseGrant(t *testing.T) {
	got, err := ParseGrant([]byte(testGrant), "grant.json")
	testkit.OK(t, err)
	want := Grant{ID: "2026-007", Release: GrantedRelease{Name: "Test", Digest: testDigest},
		Asserted: date(2026, 1, 1).Add(12 * time.Hour), NotBefore: date(2026, 1, 2),
		Expires: date(2027, 1, 1).Add(23 * time.Hour)}
	want.Holder.Name, want.Holder.Organization, want.Holder.ROR = "Test Holder", "Test University",
		"https://ror.org/012345678"
	want.Purpose.Statement, want.Purpose.Academic, want.Ethics.Body, want.Ethics.Reference = "A test.", true,
		"Test Board", "TB-1"
	want.Approval.Program, want.Approval.Reference, want.Approval.Expires = "Reddit for Researchers", "RFR-TEST-1",
		date(2027, 3, 1)
	testkit.Same(t, "the grant", want, got)
}

func TestParseGrantOptional(t *testing.T) {
	body := strings.Replace(testGrant, `, "ror": "https://ror.org/012345678"`, "", 1)
	if got, err := ParseGrant([]byte(body), "grant.json"); err != nil || got.Holder.ROR != "" || body == testGrant {
		t.Errorf("without an address of the registry: %+v, error %v", got.Holder, err)
	}
}

func TestParseRevocations(t *testing.T) {
	got, err := parseRevocations([]byte(testRevocations), "revocations.json")
	testkit.OK(t, err)
	want := Revocations{Release: "Test", Serial: 3, Issued: date(2026, 6, 1), NextUpdate: date(2026, 6, 15),
		Revoked: []Revocation{
			{ID: "2025-001", At: date(2026, 2, 1), Reason: "asked for by the holder"},
			{ID: "2025-002", At: date(2026, 3, 1)}}}
	testkit.Same(t, "the list", want, got)
}

// An edit changes one thing of a file that is right.
type edit struct {
	name     string
	from, to string // to replaces from, the first time it stands there
	want     string // of the error; it starts with the line
}

func TestParseGrantRefuses(t *testing.T) {
	for _, e := range []edit{
		{"path in the id", `"2026-007"`, `"../grant"`, "grant.json:4: id is not"},
		{"dots in the id", `"2026-007"`, `"a..b"`, "grant.json:4: id is not"},
		{"homoglyph in the id", `"2026-007"`, `"2026-00` + "\uff17" + `"`, "grant.json:4: id is not"},
		{"unknown key", `"ethics"`, `"may": true, "ethics"`, `grant.json:8: unknown key "may"`},
		{"unknown key inside", `"body"`, `"irb": "", "body"`, `grant.json:8: unknown key "irb" in [ethics]`},
		{"missing key", `"reference": "TB-1"`, `"body2": "x"`, "grant.json:8: ethics.reference is missing"},
		{"newer version", `"v": 1`, `"v": 2`, "grant.json:2: v is 2"},
		{"another type", `"rehydrate-grant"`, `"rehydrate-revocations"`, `grant.json:3: type is not "rehydrate-grant"`},
		{"digest in capitals", testDigest, strings.ToUpper(testDigest), "grant.json:6: release.digest is not a SHA-256"},
		{"digest too short", testDigest, testDigest[2:], "grant.json:6: release.digest is not a SHA-256"},
		{"commercial left out", `, "commercial": false`, "", "grant.json:7: purpose.commercial is missing"},
		{"another registry", "https://ror.org/", "https://ror.example/", "grant.json:5: holder.ror is not an address"},
		{"expires before it begins", "2027-01-02", "2026-01-01", "grant.json:11: not_before is not before expires"},
		{"asserted after it expires", "2026-01-01T12", "2028-01-01T12", "grant.json:10: asserted is not before expires"},
	} {
		t.Run(e.name, func(t *testing.T) {
			_, err := ParseGrant([]byte(e.apply(t, testGrant)), "grant.json")
			e.check(t, err)
		})
	}
}

func (e edit) apply(t *testing.T, s string) string {
	t.Helper()
	if !strings.Contains(s, e.from) {
		t.Fatalf("the file does not hold %q: the test changes nothing", e.from)
	}
	return strings.Replace(s, e.from, e.to, 1)
}

// columns are left out of what an edit wants.
var columns = regexp.MustCompile(`(json:\d+):\d+: `)

func (e edit) check(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(columns.ReplaceAllString(err.Error(), "$1: "), e.want) {
		t.Fatalf("error = %v\nwant one with %q", err, e.want)
	}
	if problems := (*manifest.Problems)(nil); !errors.As(err, &problems) {
		t.Errorf("the error is a %T, want *manifest.Problems", err)
	}
}

func TestParseRevocationsRefuses(t *testing.T) {
	for _, e := range []edit{
		{"serial 0", `"serial": 3`, `"serial": 0`, "revocations.json:5: serial is not a whole number of 1 or more"},
		{"a grant for a list", "rehydrate-revocations", "rehydrate-grant",
			`revocations.json:3: type is not "rehydrate-revocations"`},
		{"no next list", `"next_update": "2026-06-15T00:00:00Z",`, "", "next_update is missing"},
		{"due before it was issued", "2026-06-15", "2026-05-15", "issued is not before next_update"},
		{"revoked twice", `"2025-002"`, `"2025-001"`, "revocations.json:10: the grant 2025-001 is revoked twice"},
		{"unknown key inside", `"at": "2026-03-01T00:00:00Z"`, `"at": "2026-03-01T00:00:00Z", "by": "x"`,
			`revocations.json:10: unknown key "by" in [revoked]`},
		{"a path for an id", `"2025-002"`, `"../../x"`, "revocations.json:10: revoked[1].id is not"},
	} {
		t.Run(e.name, func(t *testing.T) {
			_, err := parseRevocations([]byte(e.apply(t, testRevocations)), "revocations.json")
			e.check(t, err)
		})
	}
}

// TestJudge holds every reason, and the five minutes that a clock may be wrong.
func TestJudge(t *testing.T) {
	const skew = 5 * time.Minute
	expires := date(2027, 1, 1).Add(23 * time.Hour)
	type situation struct {
		SignedGrant
		release GrantedRelease
		seen    int64
	}
	list := func(change func(*Revocations)) func(*situation) {
		return func(s *situation) {
			s.Revocations = &Revocations{Release: "Test", Serial: 3, Issued: date(2026, 6, 1), NextUpdate: date(2026, 6, 15),
				Revoked: []Revocation{{ID: "2025-001", At: date(2026, 2, 1)}}}
			if change != nil {
				change(s.Revocations)
			}
		}
	}
	seen := func(n int64) func(*situation) {
		return func(s *situation) {
			list(nil)(s)
			s.seen = n
		}
	}
	for _, c := range []struct {
		name   string
		change func(*situation)
		now    time.Time // testNow when zero
		want   manifest.Reason
	}{
		{name: "as it is"},
		{name: "another release", change: func(s *situation) { s.release.Name = "Other" }, want: "wrong_release"},
		{name: "homoglyph in the release's name", change: func(s *situation) { s.Grant.Release.Name = "T\u0435st" },
			want: "wrong_release"},
		{name: "another digest", change: func(s *situation) { s.release.Digest = strings.Repeat("0", 64) },
			want: "wrong_release"},
		{name: "not academic", change: func(s *situation) { s.Grant.Purpose.Academic = false },
			want: "purpose_not_allowed"},
		{name: "commercial", change: func(s *situation) { s.Grant.Purpose.Commercial = true }, want: "purpose_not_allowed"},
		{name: "the moment it begins", now: date(2026, 1, 2)},
		{name: "5 minutes early", now: date(2026, 1, 2).Add(-skew)},
		{name: "more than 5 minutes early", now: date(2026, 1, 2).Add(-skew - time.Second), want: "not_yet_valid"},
		{name: "asserted in the future", change: func(s *situation) { s.Grant.Asserted = testNow.Add(time.Hour) },
			want: "not_yet_valid"},
		{name: "5 minutes late", now: expires.Add(skew)},
		{name: "more than 5 minutes late", now: expires.Add(skew + time.Second), want: "expired"},
		{name: "approval ran out first",
			change: func(s *situation) { s.Grant.Approval.Expires = testNow.Add(-time.Hour) }, want: "approval_expired"},
		{name: "a list without it", change: list(nil)},
		{name: "revoked", change: list(func(r *Revocations) { r.Revoked[0].ID = "2026-007" }), want: "revoked"},
		{name: "revoked from a later day on",
			change: list(func(r *Revocations) { r.Revoked[0] = Revocation{ID: "2026-007", At: date(2030, 1, 1)} }),
			want:   "revoked"},
		{name: "another release's list", change: list(func(r *Revocations) { r.Release = "Other" }),
			want: "revocations_bad"},
		{name: "list of 5 minutes ahead", change: list(func(r *Revocations) { r.Issued = testNow.Add(skew) })},
		{name: "list from the future", change: list(func(r *Revocations) { r.Issued = testNow.Add(time.Hour) }),
			want: "revocations_bad"},
		{name: "the list's last minutes", change: list(nil), now: date(2026, 6, 15).Add(skew)},
		{name: "list too old", change: list(nil), now: date(2026, 6, 15).Add(skew + time.Second),
			want: "revocations_stale"},
		{name: "the list that was seen", change: seen(3)},
		{name: "rolled back", change: seen(4), want: "revocations_rolled_back"},
		{name: "list gone", change: func(s *situation) { s.seen = 1 }, want: "revocations_missing"},
		{name: "revoked counts before the dates",
			change: list(func(r *Revocations) { r.Revoked[0].ID, r.NextUpdate = "2026-007", date(2099, 1, 1) }),
			now:    date(2030, 1, 1), want: "revoked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := ParseGrant([]byte(testGrant), "grant.json")
			testkit.OK(t, err)
			s, now := situation{SignedGrant{Grant: g}, testRelease, 0}, c.now
			if c.change != nil {
				c.change(&s)
			}
			if now.IsZero() {
				now = testNow
			}
			wantFault(t, s.Judge(s.release, s.seen, now), c.want)
		})
	}
}

func wantFault(t *testing.T, got *GrantFault, want manifest.Reason) {
	t.Helper()
	switch {
	case got == nil && want == "":
	case got == nil:
		t.Errorf("no fault, want %s", want)
	case got.Reason != want:
		t.Errorf("fault = %s (%s), want %q", got.Reason, got.Detail, want)
	case got.Detail == "" || got.Hint == "":
		t.Errorf("the fault %s says %q, hint %q: both have to say something", got.Reason, got.Detail, got.Hint)
	}
}

// TestStatement signs a statement, and refuses it changed, under another namespace or by what is not a key.
func TestStatement(t *testing.T) {
	seed := sha256.Sum256([]byte("a statement"))
	key := ed25519.NewKeyFromSeed(seed[:])
	block, err := ssh.MarshalPrivateKey(key, "")
	testkit.OK(t, err)
	sig, err := Sign(pem.EncodeToMemory(block), AuditNamespace, strings.NewReader("PASS"))
	testkit.OK(t, err)
	if print, err := CheckStatement(sig, []byte("PASS")); err != nil ||
		print != ssh.FingerprintSHA256(asSigner(t, key).PublicKey()) {
		t.Errorf("%q, %v", print, err)
	}
	other := signedFile(t, "a.json", "PASS", asSigner(t, key), "rehydrate-grant")
	for name, c := range map[string][2][]byte{"changed": {sig, []byte("FAIL")},
		"another namespace": {other.Signature, []byte("PASS")}, "no signature": {nil, nil}} {
		if _, err := CheckStatement(c[0], c[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("secret"))
	testkit.OK(t, err)
	for name, c := range map[string]struct {
		key,
		says string
	}{"a passphrase": {string(pem.EncodeToMemory(locked)), "ssh-keygen -Y sign"},
		"no key": {"x", "read the key"}} {
		if _, err := Sign([]byte(c.key), AuditNamespace, strings.NewReader("")); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEnded: what has no end never ends, and a clock may be wrong by five minutes.
func TestEnded(t *testing.T) {
	for _, c := range []struct {
		until, now time.Time
		want       bool
	}{
		{time.Time{}, testNow, false},
		{testNow, testNow, false},
		{testNow, testNow.Add(5 * time.Minute), false},
		{testNow, testNow.Add(5*time.Minute + time.Second), true},
	} {
		if got := Ended(c.until, c.now); got != c.want {
			t.Errorf("Ended(%v, %v) = %v, want %v", c.until, c.now, got, c.want)
		}
	}
}
