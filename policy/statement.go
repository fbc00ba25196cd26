package policy

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// AuditNamespace is the namespace in which audits are signed: ssh-keygen -Y verify -n rehydrate-audit checks one.
const AuditNamespace = "rehydrate-audit"

// SignStatement signs the statement of an audit with an SSH private key, as ssh-keygen -Y sign does.
func SignStatement(key, statement []byte) ([]byte, error) {
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("the key has a passphrase: sign the statement with ssh-keygen -Y sign -n %s", AuditNamespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	if err := checkKey(signer.PublicKey()); err != nil {
		return nil, err
	}
	sig, err := sshsig.Sign(bytes.NewReader(statement), signer, sshsig.HashSHA512, AuditNamespace)
	if err != nil {
		return nil, fmt.Errorf("sign the statement: %w", err)
	}
	return sshsig.Armor(sig), nil
}

// CheckStatement verifies the signature of an audit's statement and returns the fingerprint of the key that made it.
// Whose key that is, is for the reader to know.
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
	if err := sshsig.Verify(bytes.NewReader(statement), sig, sig.PublicKey, sig.HashAlgorithm, AuditNamespace); err != nil {
		return "", errors.New("the signature is not one of these bytes: the statement or its signature was changed")
	}
	return ssh.FingerprintSHA256(sig.PublicKey), nil
}
