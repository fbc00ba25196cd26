package policy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestOpenGrant opens a grant with every kind of key that a maintainer may have.
func TestOpenGrant(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.OK(t, err)
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.OK(t, err)
	list := signedFile(t, "revocations.json", testRevocations, testKey(t, "a"), RevocationsNamespace)
	for name, key := range map[string]ssh.Signer{"ed25519": testKey(t, "b"), "ecdsa": asSigner(t, p256),
		"rsa": asSigner(t, rsa2048)} {
		t.Run(name, func(t *testing.T) {
			signers := pinned(t, testKey(t, "a"), key)
			signers[1].Name = "Second Signer"
			got, fault := OpenGrant(signedFile(t, "grant.json", testGrant, key, GrantNamespace), &list, signers)
			if fault != nil {
				t.Fatal(fault)
			}
			if got.ID != "2026-007" || got.Signer.Name != "Second Signer" ||
				got.Signer.Fingerprint != ssh.FingerprintSHA256(key.PublicKey()) || got.Revocations.Serial != 3 {
				t.Errorf("opened %s, signed by %s (%s), list %d", got.ID, got.Signer.Name, got.Signer.Fingerprint,
					got.Revocations.Serial)
			}
			wantFault(t, got.Judge(testRelease, 0, testNow), "")
		})
	}
}

// TestOpenGrantRefuses is the hostile corpus of grants: one named reason each.
func TestOpenGrantRefuses(t *testing.T) {
	key, other := testKey(t, "a"), testKey(t, "other")
	signers := pinned(t, key)
	grant := signedFile(t, "grant.json", testGrant, key, GrantNamespace)
	list := signedFile(t, "revocations.json", testRevocations, key, RevocationsNamespace)
	rsa1024, err := rsa.GenerateKey(rand.Reader, 1024)
	testkit.OK(t, err)
	with := func(f SignedFile, change func(*SignedFile)) SignedFile { change(&f); return f }
	sig := func(b []byte) SignedFile { return with(grant, func(f *SignedFile) { f.Signature = b }) }
	forged := func(change func(*sshsig.Signature)) SignedFile { return grant.forged(t, change) }
	sign := func(body string, key ssh.Signer, namespace string) SignedFile {
		return signedFile(t, "grant.json", body, key, namespace)
	}
	revoke := func(body string, key ssh.Signer, namespace string) *SignedFile {
		f := signedFile(t, "revocations.json", body, key, namespace)
		return &f
	}
	rename := func(s *sshsig.Signature) { s.Namespace = GrantNamespace }
	asPin := pinned(t, other)[0].key
	changedList := with(list, func(f *SignedFile) {
		f.Body = bytes.Replace(f.Body, []byte("2025-001"),
			[]byte("2025-003"), 1)
	})
	for _, c := range []struct {
		name  string
		grant SignedFile
		list  *SignedFile
		want  manifest.Reason
	}{
		{"no signature", sig(nil), nil, "unsigned"},
		{"empty signature", sig([]byte{}), nil, "unsigned"},
		{"words for a signature", sig([]byte("signed, the maintainers")), nil, "bad_signature"},
		{"endless signature", sig(bytes.Repeat([]byte("A"), 1<<20)), nil, "bad_signature"},
		{"text before the signature", sig(append([]byte("x\n"), grant.Signature...)), nil, "bad_signature"},
		{"text after the signature", sig(append(bytes.Clone(grant.Signature), "x\n"...)), nil, "bad_signature"},
		{"two signatures", sig(append(bytes.Clone(grant.Signature), grant.Signature...)), nil, "bad_signature"},
		{"header in the signature", sig(bytes.Replace(grant.Signature, []byte("\n"), []byte("\nComment: x\n\n"), 1)), nil,
			"bad_signature"},
		{"another PEM type", sig(bytes.ReplaceAll(grant.Signature, []byte("SSH SIGNATURE"), []byte("PRIVATE KEY"))), nil,
			"bad_signature"},
		{"bytes after the signature's", forged(func(s *sshsig.Signature) { s.Signature.Rest = []byte{1} }), nil,
			"bad_signature"},
		{"unknown hash", forged(func(s *sshsig.Signature) { s.HashAlgorithm = "sha1" }), nil, "bad_signature"},
		{"the other hash", forged(func(s *sshsig.Signature) { s.HashAlgorithm = sshsig.HashSHA256 }), nil, "bad_signature"},
		{"unknown signer", sign(testGrant, other, GrantNamespace), nil, "unknown_signer"},
		{"unknown signer who names a pinned key", sign(testGrant, other, GrantNamespace).naming(t, key.PublicKey()), nil,
			"bad_signature"},
		{"pinned signer, another key named", grant.naming(t, asPin), nil, "unknown_signer"},
		{"wrong namespace", sign(testGrant, key, "file"), nil, "wrong_namespace"},
		{"namespace of revocations", sign(testGrant, key, RevocationsNamespace), nil, "wrong_namespace"},
		{"namespace renamed", forged(func(s *sshsig.Signature) { s.Namespace = "file" }), nil, "wrong_namespace"},
		{"namespace renamed to the right one", sign(testGrant, key, "file").forged(t, rename), nil, "bad_signature"},
		{"RSA of 1024 bits", sign(testGrant, asSigner(t, rsa1024), GrantNamespace), nil, "weak_key"},
		{"DSA", grant.naming(t, dsaKey(t)), nil, "weak_key"},
		{"certificate", grant.naming(t, certificate(t, key)), nil, "weak_key"},
		{"trailing bytes", with(grant, func(f *SignedFile) { f.Body = append(bytes.Clone(f.Body), '\n') }), nil,
			"bad_signature"},
		{"trailing bytes, signed", sign(testGrant+"{}", key, GrantNamespace), nil, "malformed"},
		{"line ends changed", with(grant, func(f *SignedFile) {
			f.Body = bytes.ReplaceAll(f.Body, []byte("\n"),
				[]byte("\r\n"))
		}), nil, "bad_signature"},
		{"a list for a grant", sign(testRevocations, key, GrantNamespace), nil, "malformed"},
		{"list unsigned", grant, &SignedFile{Name: "revocations.json", Body: list.Body}, "revocations_bad"},
		{"list of another signer", grant, revoke(testRevocations, other, RevocationsNamespace), "revocations_bad"},
		{"list signed as a grant", grant, revoke(testRevocations, key, GrantNamespace), "revocations_bad"},
		{"list changed", grant, &changedList, "revocations_bad"},
		{"list malformed", grant, revoke("{}", key, RevocationsNamespace), "revocations_bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, fault := OpenGrant(c.grant, c.list, signers)
			if got != nil {
				t.Errorf("it was opened: %+v", got)
			}
			wantFault(t, fault, c.want)
		})
	}
	_, fault := OpenGrant(grant, nil, nil)
	wantFault(t, fault, "no_signer")
	if _, err := readSignature(make([]byte, maxSignature+1)); err == nil ||
		!strings.Contains(err.Error(), "longer than 16384 bytes") {
		t.Errorf("a signature that is too long: %v", err)
	}
}

// forged is the file with a changed signature.
func (f SignedFile) forged(t *testing.T, change func(*sshsig.Signature)) SignedFile {
	t.Helper()
	s, err := sshsig.Unarmor(f.Signature)
	testkit.OK(t, err)
	change(s)
	f.Signature = sshsig.Armor(s)
	return f
}

// naming is the file with a signature that claims to be by another key.
func (f SignedFile) naming(t *testing.T, key ssh.PublicKey) SignedFile {
	return f.forged(t, func(s *sshsig.Signature) { s.PublicKey = key })
}

// dsaKey has the form of a DSA key and no more.
func dsaKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Type       string
		P, Q, G, Y *big.Int
	}{"ssh-dss", new(big.Int).Lsh(big.NewInt(1), 1023), new(big.Int).Lsh(big.NewInt(1), 159), big.NewInt(2),
		big.NewInt(4)}))
	testkit.OK(t, err)
	return public
}

func certificate(t *testing.T, key ssh.Signer) ssh.PublicKey {
	t.Helper()
	c := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	testkit.OK(t, c.SignCert(rand.Reader, key))
	return c
}

// TestFlippedBits changes every bit of a grant and of its signature: none is let pass.
func TestFlippedBits(t *testing.T) {
	key := testKey(t, "a")
	signers := pinned(t, key)
	grant := signedFile(t, "grant.json", testGrant, key, GrantNamespace)
	refused := func(f SignedFile) *GrantFault { _, fault := OpenGrant(f, nil, signers); return fault }
	if fault := refused(grant); fault != nil {
		t.Fatalf("the grant is refused as it is: %v", fault)
	}
	flip := func(b []byte, i, bit int) []byte {
		b = bytes.Clone(b)
		b[i] ^= 1 << bit
		return b
	}
	for bit := range 8 {
		for i := range grant.Body {
			if f := refused(SignedFile{"grant.json", flip(grant.Body, i, bit), grant.Signature}); f == nil ||
				f.Reason != "bad_signature" {
				t.Fatalf("bit %d of byte %d of the grant: fault %v, want %s", bit, i, f, "bad_signature")
			}
		}
		for i := range grant.Signature {
			if f := refused(SignedFile{"grant.json", grant.Body, flip(grant.Signature, i, bit)}); f == nil {
				t.Fatalf("bit %d of byte %d of the signature was let pass", bit, i)
			}
		}
	}
}

func TestParseSigners(t *testing.T) {
	good := publicLine(testKey(t, "a"))
	fields := strings.Fields(good)
	rsa1024, err := rsa.GenerateKey(rand.Reader, 1024)
	testkit.OK(t, err)
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	testkit.OK(t, err)
	for _, c := range []struct{ name, key, want string }{
		{"as it is", good, ""},
		{"without a comment", fields[0] + " " + fields[1], ""},
		{"one word", fields[1], "not an OpenSSH public key"},
		{"options before it", `from="*" ` + good, "not an OpenSSH public key"},
		{"another type named", "ssh-rsa " + fields[1], "does not hold a key of the type"},
		{"cut", fields[0] + " " + fields[1][:40], "does not hold a key"},
		{"bytes after it", fields[0] + " " + base64.StdEncoding.EncodeToString(append(blob, 0)), "does not hold a key"},
		{"not base64", fields[0] + " <key>", "not base64"},
		{"RSA of 1024 bits", publicLine(asSigner(t, rsa1024)), "fewer than 2048 bits"},
		{"DSA", string(ssh.MarshalAuthorizedKey(dsaKey(t))), `"ssh-dss" is not accepted`},
		{"certificate", string(ssh.MarshalAuthorizedKey(certificate(t, testKey(t, "a")))), "is not accepted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			signers, err := ParseSigners([]manifest.Signer{{Name: "Test Signer", Key: c.key}})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && signers[0].Fingerprint != ssh.FingerprintSHA256(testKey(t, "a").PublicKey()):
				t.Errorf("fingerprint %s", signers[0].Fingerprint)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "Test Signer")):
				t.Errorf("error %v, want one with %q that names the signer", err, c.want)
			}
		})
	}
}

// FuzzReadSignature holds that what is read as a signature is that signature and no more: it
// has one form. The input is a file, and the bytes within the lines of one.
func FuzzReadSignature(f *testing.F) {
	signers := pinned(f, testKey(f, "a"))
	grant := signedFile(f, "grant.json", testGrant, testKey(f, "a"), GrantNamespace)
	signed, err := sshsig.Unarmor(grant.Signature)
	testkit.OK(f, err)
	blob := signed.Marshal()
	f.Add(blob)
	f.Add(grant.Signature)
	f.Add(bytes.ReplaceAll(grant.Signature, []byte("\n"), []byte("\r\n")))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, file := range [][]byte{b, pem.EncodeToMemory(&pem.Block{Type: sshsig.PEMType, Bytes: b})} {
			sig, err := readSignature(file)
			if err != nil {
				continue
			}
			again, err := readSignature(sshsig.Armor(sig))
			if err != nil {
				t.Fatalf("a signature that was read is not one when it is written again: %v", err)
			}
			if !bytes.Equal(again.Marshal(), sig.Marshal()) {
				t.Error("the signature changed")
			}
			_, fault := verifySignature(SignedFile{"grant.json", []byte(testGrant), file}, GrantNamespace, signers)
			if fault == nil && !bytes.Equal(sig.Marshal(), blob) {
				t.Error("another signature than the signer's was let pass")
			}
		}
	})
}

// TestReadSignerMark: an editor's byte order mark is no part of a key.
func TestReadSignerMark(t *testing.T) {
	line := publicLine(testKey(t, "b"))
	want, err := ReadSigner([]byte(line), "office.pub")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadSigner([]byte("\ufeff"+line+"\r\n"), "office.pub")
	if err != nil || got != want {
		t.Errorf("with a byte order mark: %+v, %v, want %+v", got, err, want)
	}
}
