package policy

import "fmt"

// A SignedFile is a file and its detached signature, as they lie on disk.
type SignedFile struct {
	Name      string // for messages
	Body      []byte
	Signature []byte // nil when there is none
}

// A SignedGrant is a grant that one of the release's signers signed, and the release's
// revocation list, signed too.
type SignedGrant struct {
	Grant
	Signer      Signer
	Revocations *Revocations // nil when the release has none
}

// OpenGrant verifies and reads a grant and, unless it is nil, the release's list of
// revocations. Signatures come first: nothing of an unsigned file is read, and only the
// signers' own keys count, never the key that a signature brings along.
func OpenGrant(grant SignedFile, revocations *SignedFile, signers []Signer) (*SignedGrant, *GrantFault) {
	if len(signers) == 0 {
		return nil, &GrantFault{GrantNoSigner, "the release pins no signer, so no grant can be checked",
			"its maintainers add a [[signer]] to release.toml; a bare annotations file has none"}
	}
	var s SignedGrant
	var fault *GrantFault
	s.Signer, fault = verifySignature(grant, GrantNamespace, signers)
	if fault != nil {
		return nil, fault
	}
	var err error
	// Only signed bytes are parsed.
	s.Grant, err = ParseGrant(grant.Body, grant.Name)
	if err != nil {
		return nil, &GrantFault{GrantMalformed, err.Error(), askAgain}
	}
	if revocations == nil {
		return &s, nil
	}
	if _, fault := verifySignature(*revocations, RevocationsNamespace, signers); fault != nil {
		return nil, &GrantFault{RevocationsBad, fmt.Sprintf("the revocation list cannot be trusted (%s): %s", fault.Reason, fault.Detail), getCurrent}
	}
	list, err := parseRevocations(revocations.Body, revocations.Name)
	if err != nil {
		return nil, &GrantFault{RevocationsBad, err.Error(), getCurrent}
	}
	s.Revocations = &list
	return &s, nil
}
