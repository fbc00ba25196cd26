package policy

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"rehydrate/internal/userfile"
	"rehydrate/manifest"
)

// A Signer is one whose signature a release accepts.
type Signer struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"` // as ssh-keygen -l prints it: SHA256:...
	key         ssh.PublicKey
}

// minRSA is the least length of an RSA key, in bits. NIST SP 800-57 lets 2048 stand until 2030.
const minRSA = 2048

// ParseSigners reads the keys that release.toml pins. A key that would prove nothing is an
// error, so that no release is published with one.
func ParseSigners(pins []manifest.Signer) ([]Signer, error) {
	var signers []Signer
	for _, pin := range pins {
		key, err := parseKey(pin.Key)
		if err != nil {
			return nil, fmt.Errorf("the key of the signer %q: %w", pin.Name, err)
		}
		signers = append(signers, Signer{Name: pin.Name, Fingerprint: ssh.FingerprintSHA256(key), key: key})
	}
	return signers, nil
}

// ReadSigner reads an OpenSSH public key file. Its comment, or else its name, names the signer.
func ReadSigner(b []byte, file string) (manifest.Signer, error) {
	b = userfile.Unmarked(b)
	fields := strings.Fields(string(b))
	// The errors do not repeat the file's content: it could be a private key.
	if bytes.Contains(b, []byte("PRIVATE KEY")) {
		return manifest.Signer{},
			errors.New("this is a private key, which must stay private; name the file beside it that ends in .pub")
	}
	if len(fields) < 2 || bytes.ContainsRune(bytes.TrimSpace(b), '\n') {
		return manifest.Signer{},
			errors.New("not an OpenSSH public key file: it has one line, such as ssh-ed25519 AAAA... comment")
	}
	base := filepath.Base(file)
	name := cmp.Or(strings.Join(fields[2:], " "), strings.TrimSuffix(base, filepath.Ext(base)))
	_, err := parseKey(fields[0] + " " + fields[1])
	return manifest.Signer{Name: name, Key: fields[0] + " " + fields[1]}, err
}

// parseKey reads the line of an OpenSSH .pub file: type, base64, comment. Unlike an authorized_keys line it has no
// options.
func parseKey(line string) (ssh.PublicKey, error) {
	fields := strings.Fields(line)
	// No error repeats the line: it could be a private key that was pasted here.
	if len(fields) < 2 {
		return nil, errors.New("not an OpenSSH public key; the line of a .pub file reads: ssh-ed25519 AAAA... comment")
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(fields[1])
	if err != nil {
		return nil, errors.New("not an OpenSSH public key: its second word is not base64")
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil || key.Type() != fields[0] || !bytes.Equal(key.Marshal(), blob) {
		return nil, errors.New("not an OpenSSH public key: " +
			"its second word does not hold a key of the type that the first one names")
	}
	return key, checkKey(key)
}

// checkKey refuses keys whose signature proves too little.
func checkKey(key ssh.PublicKey) error {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
		ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return nil
	case ssh.KeyAlgoRSA:
		public, ok := key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey)
		if ok && public.N.BitLen() >= minRSA {
			return nil
		}
		return fmt.Errorf("an RSA key of fewer than %d bits is not accepted: use Ed25519 (ssh-keygen -t ed25519), "+
			"or RSA with 3072 bits", minRSA)
	}
	return fmt.Errorf("a key of type %q is not accepted: use Ed25519 (ssh-keygen -t ed25519), ECDSA, "+
		"or RSA with 3072 bits", key.Type())
}

// verifySignature returns the signer that signed exactly these bytes for this namespace.
func verifySignature(f SignedFile, namespace string, signers []Signer) (signer Signer, fault *GrantFault) {
	again := "get both files again, " + f.Name + " and " + f.Name + manifest.SignatureSuffix + ", byte for byte"
	if len(f.Signature) == 0 {
		return signer, refuse("unsigned",
			"put "+f.Name+manifest.SignatureSuffix+" beside it; its signers make it with ssh-keygen -Y sign",
			"%s has no signature", f.Name)
	}
	sig, err := readSignature(f.Signature)
	if err != nil {
		return signer, refuse("bad_signature", again, "the signature of %s cannot be read: %v", f.Name, err)
	}
	if err := checkKey(sig.PublicKey); err != nil {
		return signer, refuse("weak_key", askAgain+", signed with another key", "the signature of %s: %v", f.Name, err)
	}
	blob := sig.PublicKey.Marshal()
	i := slices.IndexFunc(signers, func(s Signer) bool { return bytes.Equal(s.key.Marshal(), blob) })
	switch {
	case i < 0:
		return signer, refuse("unknown_signer",
			"is it the right release? If its maintainers changed their keys, get the release as it is now",
			"%s is signed with the key %s, which the release does not pin", f.Name, ssh.FingerprintSHA256(sig.PublicKey))
	case sig.Namespace != namespace: // Verify would refuse it, too, and could not say why
		return signer, refuse("wrong_namespace", "its signers sign it again with: ssh-keygen -Y sign -n "+namespace,
			"%s is signed for the namespace %q, not %q", f.Name, sig.Namespace, namespace)
	}
	// The signer's own key verifies, not the one that the signature brings along.
	if err := sshsig.Verify(bytes.NewReader(f.Body), sig, signers[i].key, sig.HashAlgorithm, namespace); err != nil {
		return signer, refuse("bad_signature", again,
			"the signature is not one of these bytes of %s: one of the two files was changed", f.Name)
	}
	return signers[i], nil
}

// maxSignature bounds a signature file. One by a key of 16,384 bits has 6 kB.
const maxSignature = 16 << 10

// readSignature reads what ssh-keygen -Y sign writes, and nothing that only looks like it: each signature has one form,
// but for the length and the ends of its lines.
func readSignature(b []byte) (*sshsig.Signature, error) {
	if len(b) > maxSignature {
		return nil, fmt.Errorf("it is longer than %d bytes", maxSignature)
	}
	sig, err := sshsig.Unarmor(b)
	if err != nil {
		return nil, errors.New("it is damaged, or not an SSH signature as ssh-keygen -Y sign writes it")
	}
	// PEM forgives text around the block, headers and stray bits: what was read must be all there is. Only the
	// signatures of security keys have a rest.
	lines := strings.NewReplacer("\r\n", "", "\n", "")
	if lines.Replace(string(b)) != lines.Replace(string(sshsig.Armor(sig))) ||
		len(sig.Signature.Rest) > 0 && !strings.HasPrefix(sig.PublicKey.Type(), "sk-") {
		return nil, errors.New("it holds more than a signature")
	}
	return sig, nil
}

// AuditNamespace is the namespace in which audits are signed: ssh-keygen -Y verify -n rehydrate-audit checks one.
const AuditNamespace = "rehydrate-audit"

// ReleaseNamespace is the namespace in which a published release is signed.
const ReleaseNamespace = "rehydrate-release"

// Sign signs a file with an SSH private key, as ssh-keygen -Y sign does.
func Sign(key []byte, namespace string, file io.Reader) ([]byte, error) {
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("the key has a passphrase: sign the file with ssh-keygen -Y sign -n %s", namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	if err := checkKey(signer.PublicKey()); err != nil {
		return nil, err // now, not when somebody checks the signature
	}
	sig, err := sshsig.Sign(file, signer, sshsig.HashSHA512, namespace)
	if err != nil {
		return nil, fmt.Errorf("sign the file: %w", err)
	}
	return sshsig.Armor(sig), nil
}

// CheckStatement verifies the signature of an audit's statement and returns the fingerprint of the key that made it:
// whose key that is, is for the reader to know.
func CheckStatement(signature, statement []byte) (fingerprint string, err error) {
	sig, err := readSignature(signature)
	if err != nil {
		return "", err
	}
	if err := checkKey(sig.PublicKey); err != nil {
		return "", err
	}
	if sig.Namespace != AuditNamespace {
		return "", fmt.Errorf("it is signed for the namespace %q, not %q", sig.Namespace, AuditNamespace)
	}
	err = sshsig.Verify(bytes.NewReader(statement), sig, sig.PublicKey, sig.HashAlgorithm, AuditNamespace)
	if err != nil {
		return "", errors.New("the signature is not one of these bytes: the statement or its signature was changed")
	}
	return ssh.FingerprintSHA256(sig.PublicKey), nil
}
